//! Products of a few rows with a matrix of weights, and of many rows.
//!
//! With few rows, each weight is used once or a few times, so the product is as fast as weights come from memory. A row of weights is
//! read once, made `f32` in registers, and multiplied with all rows. With many, weights are made `f32` tile by tile, and a tile
//! stays in the cache for all rows.

use super::matrix::{Matrix, NIBBLES, Values};
use crate::cpu::{each, multiply, tiles, view, view_mut};
use half::{bf16, f16};
use pulp::{Simd, WithSimd};
use std::array::from_fn;

/// With more rows than this, tiles are faster.
const FEW: usize = 16;
/// Bytes of weights that are one piece of work.
const PIECE: usize = 1 << 16;
/// Rows of weights in a tile.
const TILE: usize = 128;
/// Rows of the input that meet a tile at a time.
const BLOCK: usize = 512;

/// `y = x w^T` for `x`, `[n, in]`, and `w`, `[out, in]`: `y`, `[n, out]`.
pub(super) fn multiply_by(w: &Matrix, x: &[f32], y: &mut [f32]) {
    let n = x.len() / w.columns.max(1);
    if n > FEW {
        return in_tiles(w, x, y);
    }
    let step = (PIECE * w.rows / w.bytes().max(1)).clamp(1, w.rows.max(1));
    if n == 1 {
        each(w.rows * w.columns, y.chunks_mut(step).enumerate(), |(nth, y)| {
            few(w, nth * step, x, y);
        });
        return;
    }
    let mut turned = vec![0.0; y.len()]; // [out, n]: each piece of work has a part of its own
    each(w.rows * w.columns, turned.chunks_mut(step * n).enumerate(), |(nth, y)| {
        few(w, nth * step, x, y);
    });
    for (row, y) in y.chunks_mut(w.rows).enumerate() {
        y.iter_mut().zip(turned.chunks(n)).for_each(|(y, turned)| *y = turned[row]);
    }
}

fn in_tiles(w: &Matrix, x: &[f32], y: &mut [f32]) {
    let n = x.len() / w.columns;
    let found = tiles(view_mut(y, n, w.rows), [BLOCK, TILE]);
    each(n * w.rows * w.columns, found.into_iter(), |(row, column, y)| {
        let (rows, columns) = y.dim();
        let weights = w.rows(column..column + columns);
        let weights = view(&weights, columns, w.columns, w.columns);
        let x = &x[row * w.columns..][..rows * w.columns];
        multiply(view(x, rows, w.columns, w.columns), weights.t(), y);
    });
}

/// Weights that are made `f32` at a time: they stay in the nearest cache, and so does the part of the input that meets them.
const WIDENED: usize = 1024;

/// The products with the rows of weights from `first` on, `[rows, n]`.
fn few(w: &Matrix, first: usize, x: &[f32], y: &mut [f32]) {
    pulp::Arch::new().dispatch(Few { w, first, x, y });
}

struct Few<'a> {
    w: &'a Matrix,
    first: usize,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl WithSimd for Few<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { w: Matrix { columns, values, .. }, first, x, y } = self;
        let x = Input { x, columns: *columns, simd };
        y.fill(0.0);
        match values {
            Values::F32(all) => {
                let rows = all[first * columns..].chunks_exact(*columns);
                rows.zip(y.chunks_mut(x.rows())).for_each(|(w, y)| x.add_products(w, 0, y));
            }
            Values::Bf16(all) => {
                let all = &all[first * columns..];
                x.in_pieces((all, *columns), WIDENED, y, |w, _, into| widen_bf16(w, into));
            }
            Values::F16(all) => {
                let all = &all[first * columns..];
                x.in_pieces((all, *columns), WIDENED, y, |w, _, into| widen_f16(w, into));
            }
            Values::Int8 { q, scales } => {
                let q = &q[first * columns..];
                x.in_pieces((q, *columns), WIDENED, y, |q, _, into| widen_int8(q, into));
                for (y, scale) in y.chunks_mut(x.rows()).zip(&scales[first..]) {
                    y.iter_mut().for_each(|y| *y *= scale);
                }
            }
            Values::Int4 { q, scales, group_size } => {
                let groups = columns.div_ceil(*group_size);
                let width = groups * group_size / 2;
                let q = &q[first * width..];
                x.in_pieces((q, width), WIDENED / 2, y, |q, (row, piece), into| {
                    let before = (first + row) * groups + piece * (WIDENED / group_size);
                    widen_int4(q, &scales[before..], *group_size, into);
                });
            }
        }
    }
}

/// Rows of the input, `[n, in]`.
struct Input<'x, S> {
    x: &'x [f32],
    columns: usize,
    simd: S,
}

impl<S: Simd> Input<'_, S> {
    #[inline(always)]
    fn rows(&self) -> usize {
        self.x.len() / self.columns
    }

    /// Makes each row of weights `f32`, some numbers at a time, and adds the products with that part of each row of `x`. `widen` is told
    /// the row and the number of the part.
    #[inline(always)]
    fn in_pieces<W>(
        &self,
        (all, width): (&[W], usize),
        numbers: usize,
        y: &mut [f32],
        widen: impl Fn(&[W], (usize, usize), &mut [f32]),
    ) {
        let mut wide = [0.0; WIDENED];
        let rows = all.chunks_exact(width).zip(y.chunks_mut(self.rows()));
        for (row, (w, y)) in rows.enumerate() {
            for (piece, w) in w.chunks(numbers).enumerate() {
                let from = piece * WIDENED;
                let wide = &mut wide[..WIDENED.min(self.columns - from)];
                widen(w, (row, piece), wide);
                self.add_products(wide, from, y);
            }
        }
    }

    /// Adds the products of a part of a row of weights, from column `from` on, with that part of each row of `x`.
    #[inline(always)]
    fn add_products(&self, w: &[f32], from: usize, y: &mut [f32]) {
        let part = |row: usize| &self.x[row * self.columns + from..][..w.len()];
        let (fours, rest) = y.as_chunks_mut::<4>();
        let done = 4 * fours.len();
        for (nth, [a, b, c, d]) in fours.iter_mut().enumerate() {
            let sums = dots(self.simd, w, from_fn(|r| part(4 * nth + r)));
            (*a, *b, *c, *d) = (*a + sums[0], *b + sums[1], *c + sums[2], *d + sums[3]);
        }
        for (r, y) in rest.iter_mut().enumerate() {
            *y += dot(self.simd, w, part(done + r));
        }
    }
}

/// The inner product, in four sums of a register each, so that a processor need not wait for one to begin with the next.
#[inline(always)]
fn dot<S: Simd>(simd: S, w: &[f32], x: &[f32]) -> f32 {
    let ((w, w_rest), (x, x_rest)) = (S::as_simd_f32s(w), S::as_simd_f32s(x));
    let zeros = simd.splat_f32s(0.0);
    let (mut a, mut b, mut c, mut d) = (zeros, zeros, zeros, zeros);
    let ((w, w_after), (x, x_after)) = (w.as_chunks::<4>(), x.as_chunks::<4>());
    for (w, x) in w.iter().zip(x) {
        a = simd.mul_add_e_f32s(w[0], x[0], a);
        b = simd.mul_add_e_f32s(w[1], x[1], b);
        c = simd.mul_add_e_f32s(w[2], x[2], c);
        d = simd.mul_add_e_f32s(w[3], x[3], d);
    }
    for (w, x) in w_after.iter().zip(x_after) {
        a = simd.mul_add_e_f32s(*w, *x, a);
    }
    let sum = simd.reduce_sum_f32s(simd.add_f32s(simd.add_f32s(a, b), simd.add_f32s(c, d)));
    w_rest.iter().zip(x_rest).fold(sum, |sum, (w, x)| sum + w * x)
}

/// The inner products of one list with four.
#[inline(always)]
fn dots<S: Simd>(simd: S, w: &[f32], x: [&[f32]; 4]) -> [f32; 4] {
    let (w, w_rest) = S::as_simd_f32s(w);
    let parts = x.map(|x| S::as_simd_f32s(x));
    let [xa, xb, xc, xd] = parts.map(|(x, _)| &x[..w.len()]);
    let zeros = simd.splat_f32s(0.0);
    let (mut a, mut b, mut c, mut d) = (zeros, zeros, zeros, zeros);
    for (nth, w) in w.iter().enumerate() {
        a = simd.mul_add_e_f32s(*w, xa[nth], a);
        b = simd.mul_add_e_f32s(*w, xb[nth], b);
        c = simd.mul_add_e_f32s(*w, xc[nth], c);
        d = simd.mul_add_e_f32s(*w, xd[nth], d);
    }
    let sums = [a, b, c, d].map(|sum| simd.reduce_sum_f32s(sum));
    from_fn(|r| w_rest.iter().zip(parts[r].1).fold(sums[r], |sum, (w, x)| sum + w * x))
}

/// A `bf16` is the first half of an `f32`.
#[inline(always)]
fn widen_bf16(from: &[bf16], into: &mut [f32]) {
    let pairs = into.iter_mut().zip(from);
    pairs.for_each(|(into, w)| *into = f32::from_bits(u32::from(w.to_bits()) << 16));
}

/// Without branches: the bits of a finite `f16`, read as an `f32`, are `2^112` times too small.
#[inline(always)]
pub(super) fn widen_f16(from: &[f16], into: &mut [f32]) {
    const FACTOR: f32 = f32::from_bits((127 + 112) << 23);
    for (into, w) in into.iter_mut().zip(from) {
        let bits = u32::from(w.to_bits());
        *into = f32::from_bits((bits & 0x7fff) << 13 | (bits & 0x8000) << 16) * FACTOR;
    }
}

#[inline(always)]
fn widen_int8(from: &[i8], into: &mut [f32]) {
    into.iter_mut().zip(from).for_each(|(into, q)| *into = f32::from(*q));
}

/// Half a byte each, 8 more than it is, as many as `into` has.
#[inline(always)]
fn widen_int4(from: &[u8], scales: &[f16], group_size: usize, into: &mut [f32]) {
    const HALF: usize = NIBBLES / 2;
    let groups = into.chunks_mut(group_size).zip(from.chunks(group_size / 2)).zip(scales);
    for ((into, q), scale) in groups {
        let scale = scale.to_f32();
        let of = |q: u8| (i32::from(q) - 8) as f32 * scale;
        for (into, q) in into.chunks_mut(NIBBLES).zip(q.as_chunks::<HALF>().0) {
            if let Some(into) = into.first_chunk_mut::<NIBBLES>() {
                let (low, high) = into.split_at_mut(HALF);
                low.iter_mut().zip(q).for_each(|(w, q)| *w = of(q & 15));
                high.iter_mut().zip(q).for_each(|(w, q)| *w = of(q >> 4));
            } else {
                let all = q.iter().map(|q| q & 15).chain(q.iter().map(|q| q >> 4));
                into.iter_mut().zip(all).for_each(|(w, q)| *w = of(q));
            }
        }
    }
}
