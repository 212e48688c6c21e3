//! The rotation by trainable frequencies in one pass over memory, on a CPU.

use crate::cpu::{BLOCK, Source, Values, each, gradient, is_fused, record};
use crate::positions::Places;
use crate::rope::RotaryTables;
use crate::rope::fused::apply_rotary;
use crate::rope::layouts::Pairs;
use crate::tensor::*;
use num_traits::ToPrimitive;

/// `y`, with its gradient on the tape. `None` on other devices. All must be contiguous.
///
/// Kept for the backward pass, if there is a tape: `x`, shared, and the tables of this call.
pub(super) fn rotate_by_frequencies<B: Dim, S: Dim, N: Dim, H: Dim, P: Dim, F, D, T>(
    x: &Tensor<(B, S, N, H), F, D>,
    theta: &Tensor<(P,), F, D>,
    tables: &RotaryTables<H, D>,
    places: &Places,
    tape: &mut T,
    pairs: Pairs,
) -> Raw<Option<Tensor<(B, S, N, H), F, D>>, D>
where
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
{
    let (Some(values), Some(cos), Some(sin), true) =
        (Values::of(x), Values::of(&tables.cos), Values::of(&tables.sin), is_fused::<D>())
    else {
        return Ok(None);
    };
    let mut untaped = NoneTape;
    let rows = Places::Row(0..places.rows()); // those of the tables
    let y = apply_rotary(x, (&tables.cos, &tables.sin), &rows, &mut untaped, pairs)?;
    if let (Some(y), true) = (&y, T::OWNS_TAPE) {
        let ((_, _, nh, hd), places) = (*x.shape(), places.clone());
        let back = Back { cos, sin, places, rows, nh: nh.size(), hd: hd.size(), pairs };
        let (x, theta) = (x.clone(), theta.clone());
        record(tape, y, move |dy, grads| {
            let parts = back.backward(&values, dy, gradient(grads, &x)?);
            let sums = gradient(grads, &theta)?;
            for (i, sum) in sums.iter_mut().enumerate() {
                let parts = parts.iter().skip(i).step_by(back.hd / 2).sum::<f64>();
                *sum = F::nearest(sum.to_f64().unwrap_or(f64::NAN) + parts);
            }
            Ok(())
        });
    }
    Ok(y)
}

struct Back {
    cos: Values<f32>,
    sin: Values<f32>,
    places: Places,
    rows: Places,
    nh: usize,
    hd: usize,
    pairs: Pairs,
}

impl Back {
    /// Adds to `dx`, and returns dtheta in parts, `[blocks, hd/2]`, summed in `f64`.
    fn backward<F: Float>(&self, x: &Values<F>, dy: &[F], dx: &mut [F]) -> Vec<f64> {
        let (row, half) = (self.nh * self.hd, self.hd / 2);
        let mut parts = vec![0.0; (x.len() / row).div_ceil(BLOCK) * half];
        let pieces = parts.chunks_mut(half).zip(dx.chunks_mut(BLOCK * row));
        each(x.len(), pieces.enumerate(), |(nth, (dtheta, dx))| {
            let mut heads = vec![F::Wide::default(); row];
            for (t, dx) in dx.chunks_mut(row).enumerate() {
                let token = nth * BLOCK + t;
                x.widen(token * row, &mut heads);
                let heads = heads.chunks(self.hd).zip(dy[token * row..].chunks(self.hd));
                for ((x, dy), dx) in heads.zip(dx.chunks_mut(self.hd)) {
                    self.head(token, x, dy, dx, dtheta);
                }
            }
        });
        parts
    }

    fn head<F: Float>(
        &self,
        token: usize,
        x: &[F::Wide],
        dy: &[F],
        dx: &mut [F],
        dtheta: &mut [f64],
    ) {
        let (position, row) = (self.places.of_token(token) as f64, self.rows.of_token(token));
        for (plane, dtheta) in dtheta.iter_mut().enumerate() {
            let [a, b] = self.pairs.of(plane);
            let at = |table: &Values<f32>| F::Wide::nearest(table.at(row * self.hd + a).into());
            let (cos, sin) = (at(&self.cos), at(&self.sin));
            let (dy_a, dy_b) = (dy[a].wide(), dy[b].wide());
            let (dx_a, dx_b) = (dy_a * cos + dy_b * sin, dy_b * cos - dy_a * sin);
            let wide = |value: F::Wide| value.to_f64().unwrap_or(f64::NAN);
            let area = wide(dx_b) * wide(x[a]) - wide(dx_a) * wide(x[b]);
            *dtheta += position * area;
            dx[a] = F::narrow(dx[a].wide() + dx_a);
            dx[b] = F::narrow(dx[b].wide() + dx_b);
        }
    }
}
