//! Linear attention as a state that runs: the sum over earlier tokens is a matrix that is carried along, and a token
//! costs the same wherever it is.

use super::formula::{Heads, positive_features};
use crate::checks::{check_size, same_shape};
use crate::error::{Error, Result};
use crate::rope::RotaryTables;
use crate::tensor::*;

/// What linear attention keeps of the tokens before, in `f64`: for each text and head the sum of `R_n phi(k_n) v_n^T`,
/// `[hd, hd]`, and that of `phi(k_n)`, `[hd]`. It does not grow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinearState {
    /// `[b, n, hd]`; none before the first call.
    shape: Option<[usize; 3]>,
    of_values: Vec<f64>,
    of_keys: Vec<f64>,
    positions: usize,
}

impl LinearState {
    /// That of no tokens.
    pub fn new() -> Self {
        Self::default()
    }

    /// The tokens that it has taken in.
    pub fn positions(&self) -> usize {
        self.positions
    }
}

// ANCHOR: linear_attention_running
/// What [`linear_attention`](super::linear_attention) computes, token after token, with sums that are carried along: the cost of a token does
/// not depend on how many were before. For inference: no tape.
///
/// Shapes: `q`, `k`, `v` and the result `[b, s, n, hd]`. `tables`, `[s, hd]`, are for the positions of this call, from
/// [`LinearState::positions`] on. The sums are in `f64`, on the host.
///
/// # Errors
/// As for [`linear_attention`](super::linear_attention); another batch, number of heads or head size than in the calls before. Then the state
/// is as it was.
pub fn linear_attention_running<B: Dim, S: Dim, N: Dim, H: Dim, F: Float, D: Backend<F>>(
    q: Heads<B, S, N, H, F, D>,
    k: Heads<B, S, N, H, F, D>,
    v: Heads<B, S, N, H, F, D>,
    tables: Option<&RotaryTables<H, D>>,
    state: &mut LinearState,
) -> Result<Heads<B, S, N, H, F, D>> {
    let shape = *q.shape();
    check_size("q", &shape)?;
    same_shape("k", &shape.concrete(), &k.shape().concrete())?;
    same_shape("v", &shape.concrete(), &v.shape().concrete())?;
    let [b, s, n, hd] = shape.concrete();
    if let Some(before) = state.shape {
        same_shape("q without its positions", &before, &[b, n, hd])?;
    }
    let (q, k) = (positive_features(q)?, positive_features(k)?); //           [b, s, n, hd]
    let turned = |x: &Heads<B, S, N, H, F, D>| match tables {
        Some(tables) => tables.rotate(x.clone()),
        None => Ok(x.clone()),
    };
    let lists = [&turned(&q)?, &turned(&k)?, &q, &k, &v].map(|x| {
        x.as_vec().into_iter().map(|x| x.to_f64().unwrap_or(f64::NAN)).collect::<Vec<_>>()
    });
    let [turned_q, turned_k, q, k, values] = &lists;
    let mut after = state.clone();
    after.of_values.resize(b * n * hd * hd, 0.0);
    after.of_keys.resize(b * n * hd, 0.0);
    after.shape = Some([b, n, hd]);
    after.positions += s;
    let mut y = vec![F::zero(); b * s * n * hd];
    for (row, y) in y.chunks_mut(hd).enumerate() {
        let head = row / (s * n) * n + row % n; // of all texts
        let at = |list: &'_ [f64], j: usize| list[row * hd + j];
        let sums = &mut after.of_values[head * hd * hd..][..hd * hd];
        let total = &mut after.of_keys[head * hd..][..hd];
        for i in 0..hd {
            total[i] += at(k, i);
            (0..hd).for_each(|j| sums[i * hd + j] += at(turned_k, i) * at(values, j));
        }
        let denominator: f64 = (0..hd).map(|i| at(q, i) * total[i]).sum();
        if denominator == 0.0 {
            let (batch, head, token) = (row / (s * n), row % n, row / n % s);
            return Err(Error::NoWeight { batch, head, token });
        }
        for (j, y) in y.iter_mut().enumerate() {
            let numerator: f64 = (0..hd).map(|i| at(turned_q, i) * sums[i * hd + j]).sum();
            *y = F::nearest(numerator / denominator);
        }
    }
    let y = v.device().try_tensor_from_vec(y, shape).map_err(Error::device)?;
    *state = after; // last, so that a call that fails changes nothing
    Ok(y)
}
// ANCHOR_END: linear_attention_running
