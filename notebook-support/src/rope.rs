//! NTK-aware RoPE in a notebook.
//!
//! The numbers behind its figures are in [`numbers`], the figures in [`figures`] and [`mod@products`].

pub mod figures;
pub mod numbers;
pub mod products;

pub use figures::{clocks, decay, drift, hands, slowing};
pub use numbers::{averaged_bound, product, table_error, turn};
pub use products::products;

use crate::check::{Verdict, check, not_asked};
use contract::interface::{
    Layout, Manner, NtkAwareRope, Refusal, Reply, RopeModule, RopeSettings, RotateCase, Tables,
};
use std::ops::Range;

/// A learner's frequencies `theta_i`, `[head_dim / 2]`, in radians per position, or why there are none.
pub type Frequencies = fn(head_dim: usize, base: f64, ratio: f64) -> Result<Vec<f64>, String>;

/// A learner's rotation of one head in the half-split layout: `x`, `cos` and `sin` are `[head_dim]`, and
/// so is the result.
pub type Rotate = fn(x: &[f32], cos: &[f32], sin: &[f32]) -> Vec<f32>;

/// Grades it by the invariants of the task `rope/frequencies`.
pub fn check_frequencies(frequencies: Frequencies) -> Verdict {
    check::<dyn NtkAwareRope>(
        "rope/frequencies",
        &Lines { frequencies: Some(frequencies), rotate: None },
    )
}

/// Grades it by the invariants of the task `rope/rotate`.
///
/// The lines turn one head. Batch, sequence and heads are walked here, each row of the sequence with its
/// row of the tables. The gradient comes from the lines too: a map that is linear is known by what it
/// does to the unit vectors.
pub fn check_rotate(rotate: Rotate) -> Verdict {
    check::<dyn NtkAwareRope>("rope/rotate", &Lines { frequencies: None, rotate: Some(rotate) })
}

struct Lines {
    frequencies: Option<Frequencies>,
    rotate: Option<Rotate>,
}

impl Lines {
    /// `f(head of values, cos, sin)` for every head, in the half-split layout, as `[b, s, nh, hd]`.
    fn each_head(
        case: &RotateCase,
        values: &[f32],
        f: impl Fn(&[f32], &[f32], &[f32]) -> Vec<f32>,
    ) -> Reply<Vec<f32>> {
        let [_, s, nh, hd] = case.shape;
        let Tables { cos, sin } = &case.tables;
        if [cos.len(), sin.len()] != [s * hd; 2] {
            return Err(Refusal::new(format!("the tables need {s} rows, one for each row of x")));
        }
        let mut out = Vec::with_capacity(values.len());
        for (nth, head) in values.chunks(hd).enumerate() {
            let row = nth / nh % s; // of the sequence, and of the tables
            let row = row * hd..(row + 1) * hd;
            let [head, cos, sin] =
                [head, &cos[row.clone()], &sin[row]].map(|x| halves(case.layout, x));
            let y = f(&head, &cos, &sin);
            if y.len() != hd {
                return Err(Refusal::new(format!("a head of {hd} became one of {}", y.len())));
            }
            out.extend(back(case.layout, &y));
        }
        Ok(out)
    }
}

/// A head as half-split.
fn halves(layout: Layout, x: &[f32]) -> Vec<f32> {
    match layout {
        Layout::HalfSplit => x.to_vec(),
        Layout::Interleaved => {
            (0..2).flat_map(|first| x.iter().skip(first).step_by(2)).copied().collect()
        }
    }
}

/// A half-split head in `layout`.
fn back(layout: Layout, x: &[f32]) -> Vec<f32> {
    let half = x.len() / 2;
    match layout {
        Layout::HalfSplit => x.to_vec(),
        Layout::Interleaved => (0..half).flat_map(|i| [x[i], x[i + half]]).collect(),
    }
}

impl NtkAwareRope for Lines {
    fn frequencies(&self, head_dim: usize, base: f64, ratio: f64) -> Reply<Vec<f64>> {
        let frequencies = self.frequencies.ok_or_else(not_asked)?;
        frequencies(head_dim, base, ratio).map_err(Refusal::new)
    }

    fn tables(&self, _: usize, _: f64, _: f64, _: Range<usize>) -> Reply<Tables> {
        Err(not_asked())
    }

    fn rotate_in(&self, _: Manner, case: &RotateCase) -> Reply<Vec<f32>> {
        let rotate = self.rotate.ok_or_else(not_asked)?;
        Self::each_head(case, &case.x, rotate)
    }

    fn rotate_backward_in(&self, _: Manner, case: &RotateCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let rotate = self.rotate.ok_or_else(not_asked)?;
        // dx_j = <R e_j, dy>: column j of R is what becomes of a unit vector.
        Self::each_head(case, dy, |dy, cos, sin| {
            let column = |j: usize| {
                let mut unit = vec![0.0; dy.len()];
                unit[j] = 1.0;
                rotate(&unit, cos, sin)
            };
            let products = |j| -> f64 {
                let column = column(j);
                // Where x_j does not go, a NaN does not come from.
                let reached = column.iter().zip(dy).filter(|(r, _)| **r != 0.0);
                reached.map(|(&r, &dy)| f64::from(r) * f64::from(dy)).sum()
            };
            (0..dy.len()).map(|j| products(j) as f32).collect()
        })
    }

    fn to_interleaved(&self, _: usize, _: &[f32]) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn to_half_split(&self, _: usize, _: &[f32]) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn ratio_for_length(&self, _: usize, _: usize) -> Reply<usize> {
        Err(not_asked())
    }

    fn build(&self, _: &RopeSettings) -> Reply<Box<dyn RopeModule>> {
        Err(not_asked())
    }
}

#[cfg(test)]
mod tests;
