//! Products of a few rows with a matrix of weights, and of many rows.
//!
//! With few rows, each weight is used once or a few times, so the product is as fast as weights come from memory. A row of weights is
//! read once, made `f32` in registers, and multiplied with all rows. With many, weights are made `f32` tile by tile, and a tile
//! stays in the cache for all rows.

use super::matrix::{Matrix, NIBBLES, Values};
use crate::cpu::{each, multiply, tiles, view, view_mut};
use half::{bf16, f16};
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

impl pulp::NullaryFnOnce for Few<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { w, first, x, y } = self;
        let columns = w.columns;
        match &w.values {
            Values::F32(all) => rows(&all[first * columns..], columns, x, y, |w| w, |_| 1.0),
            Values::Bf16(all) => rows(&all[first * columns..], columns, x, y, wide_bf16, |_| 1.0),
            Values::F16(all) => rows(&all[first * columns..], columns, x, y, wide_f16, |_| 1.0),
            Values::Int8 { q, scales } => {
                let scale = |row: usize| scales[first + row];
                rows(&q[first * columns..], columns, x, y, |q| f32::from(q), scale);
            }
            Values::Int4 { q, scales, group_size } => {
                let groups = columns.div_ceil(*group_size);
                let half = groups * group_size / 2;
                let n = x.len() / columns;
                let of_rows =
                    q[first * half..].chunks(half).zip(scales[first * groups..].chunks(groups));
                for ((q, scales), y) in of_rows.zip(y.chunks_mut(n)) {
                    for (y, x) in y.iter_mut().zip(x.chunks(columns)) {
                        *y = nibbles(q, scales, *group_size, x);
                    }
                }
            }
        }
    }
}

/// A `bf16` is the first half of an `f32`.
#[inline(always)]
fn wide_bf16(w: bf16) -> f32 {
    f32::from_bits(u32::from(w.to_bits()) << 16)
}

/// Without branches: the bits of a finite `f16`, read as an `f32`, are `2^112` times too small.
#[inline(always)]
fn wide_f16(w: f16) -> f32 {
    const FACTOR: f32 = f32::from_bits((127 + 112) << 23);
    let bits = u32::from(w.to_bits());
    f32::from_bits((bits & 0x7fff) << 13 | (bits & 0x8000) << 16) * FACTOR
}

/// As [`wide_f16`], of a list.
pub(super) fn widen_f16(from: &[f16], into: &mut [f32]) {
    into.iter_mut().zip(from).for_each(|(into, from)| *into = wide_f16(*from));
}

/// Each row of weights with all rows of `x`.
#[inline(always)]
fn rows<W: Copy>(
    w: &[W],
    columns: usize,
    x: &[f32],
    y: &mut [f32],
    wide: impl Fn(W) -> f32 + Copy,
    scale: impl Fn(usize) -> f32,
) {
    let n = x.len() / columns;
    for (row, (w, y)) in w.chunks_exact(columns).zip(y.chunks_mut(n)).enumerate() {
        let mut x = x;
        let mut left = y;
        while !left.is_empty() {
            let sums: &[f32] = match left.len() {
                1 => &dots::<W, 1, 64>(w, x, wide),
                2 | 3 => &dots::<W, 2, 32>(w, x, wide),
                _ => &dots::<W, 4, 16>(w, x, wide),
            };
            let (now, after) = left.split_at_mut(sums.len());
            now.iter_mut().zip(sums).for_each(|(y, sum)| *y = *sum * scale(row));
            (x, left) = (&x[now.len() * columns..], after);
        }
    }
}

/// The products of one row of weights with `R` rows of `x`, each in `LANES` sums side by side.
#[inline(always)]
fn dots<W: Copy, const R: usize, const LANES: usize>(
    w: &[W],
    x: &[f32],
    wide: impl Fn(W) -> f32,
) -> [f32; R] {
    let columns = w.len();
    let (blocks, rest) = w.as_chunks::<LANES>();
    let x: [&[f32]; R] = from_fn(|r| &x[r * columns..][..columns]);
    let mut sums = [[0.0f32; LANES]; R];
    for (nth, block) in blocks.iter().enumerate() {
        let block: [f32; LANES] = from_fn(|lane| wide(block[lane]));
        for r in 0..R {
            let x: &[f32; LANES] = x[r][nth * LANES..].first_chunk().expect("as many as weights");
            for lane in 0..LANES {
                sums[r][lane] += block[lane] * x[lane];
            }
        }
    }
    from_fn(|r| {
        let tail = rest.iter().zip(&x[r][columns - rest.len()..]);
        tail.fold(halved(sums[r]), |sum, (w, x)| sum + wide(*w) * x)
    })
}

/// The sum of all lanes, half by half.
#[inline(always)]
fn halved<const LANES: usize>(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        let (low, high) = lanes.split_at_mut(half);
        low.iter_mut().zip(high).for_each(|(low, high)| *low += *high);
        half /= 2;
    }
    lanes[0]
}

/// The product of a row of 4 bits with a row of `x`, group by group.
#[inline(always)]
fn nibbles(q: &[u8], scales: &[f16], group_size: usize, x: &[f32]) -> f32 {
    const HALF: usize = NIBBLES / 2;
    let mut sums = [0.0f32; HALF];
    let groups = q.chunks_exact(group_size / 2).zip(scales).zip(x.chunks(group_size));
    for ((q, scale), x) in groups {
        let mut of_group = [0.0f32; HALF];
        let (whole, rest) = x.as_chunks::<NIBBLES>();
        let (q, q_rest) = q.as_chunks::<HALF>().0.split_at(whole.len());
        for (q, x) in q.iter().zip(whole) {
            for lane in 0..HALF {
                let low = f32::from((q[lane] & 15) as i8 - 8) * x[lane];
                of_group[lane] += low + f32::from((q[lane] >> 4) as i8 - 8) * x[lane + HALF];
            }
        }
        if let ([q, ..], false) = (q_rest, rest.is_empty()) {
            for (place, x) in rest.iter().enumerate() {
                let byte = q[place % HALF];
                let q = if place < HALF { byte & 15 } else { byte >> 4 };
                of_group[place % HALF] += f32::from(q as i8 - 8) * x;
            }
        }
        let scale = scale.to_f32();
        for lane in 0..HALF {
            sums[lane] += of_group[lane] * scale;
        }
    }
    halved(sums)
}
