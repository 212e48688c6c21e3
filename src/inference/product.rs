//! Products of a few rows with a matrix of weights, and of many rows.
//!
//! With few rows, each weight is used once or a few times, so the product can't be faster than weights come from memory. A row of weights is
//! read once and multiplied with all rows. With many, weights are made `f32` tile by tile, and a tile stays in the cache
//! for all rows.

use super::loops::{Halves, InBf16, InF16, dot, dot_of_halves, dots, of_block};
use super::matrix::{Matrix, Values};
use super::packed::{Packed, ROWS};
use crate::cpu::{MatrixMut, each, multiply, threads, tiles, view, view_mut};
use pulp::{Simd, WithSimd};
use std::array::from_fn;
use std::borrow::Cow;

/// With more rows than this, tiles are faster.
pub(super) const FEW: usize = 16;
/// Bytes of weights that are one piece of work.
const PIECE: usize = 1 << 16;
/// The most and the fewest rows of weights in a tile. The input is packed again for every tile, so tiles should be large.
const TILE: usize = 384;
const LEAST: usize = 64;
/// Rows of the input that meet a tile at a time.
const BLOCK: usize = 512;

/// `x w^T` for `x`, `[n, in]`, and each `w`, `[out, in]`: `[n, out]`. Matrices that share an input are multiplied together, so that threads
/// wait for each other once instead of after every matrix.
pub(super) fn multiply_by<const N: usize>(all: [&Matrix; N], x: &[f32]) -> [Vec<f32>; N] {
    let n = x.len() / all[0].columns.max(1);
    let mut found = all.map(|w| vec![0.0; n * w.rows]);
    let weights: usize = all.iter().map(|w| w.rows * w.columns).sum();
    if n > FEW {
        let threads = threads(n * weights);
        let tiles = all.iter().zip(&mut found).flat_map(|(w, y)| {
            let tiles =
                tiles(view_mut(y, n, w.rows), [BLOCK, rows_of_a_tile(w.rows, threads)]).into_iter();
            tiles.map(move |(row, column, y)| (w, &x[row * w.columns..], column, y))
        });
        each(n * weights, tiles, |(w, x, column, y)| tile(w, x, column, y));
        return found;
    }
    let inputs = all.map(|w| arranged(w, x));
    let pieces = all.iter().zip(&inputs).zip(&mut found).flat_map(|((w, x), y)| {
        let rows = (PIECE * w.rows / w.bytes().max(1)).clamp(1, w.rows.max(1));
        let rows = rows.next_multiple_of(ROWS);
        let pieces = y.chunks_mut(rows * n).enumerate();
        pieces.map(move |(nth, y)| Few { w, first: nth * rows, x, n, y })
    });
    each(weights, pieces, |few| pulp::Arch::new().dispatch(few));
    // Each piece has written `[rows, n]`.
    if n > 1 { found.map(|y| turned(&y, n)) } else { found }
}

/// Every thread gets the same number of tiles, so that none waits for another. The cut does not change a bit of the result.
fn rows_of_a_tile(rows: usize, threads: usize) -> usize {
    let tiles = threads * rows.div_ceil(threads * TILE).max(1);
    rows.div_ceil(tiles).next_multiple_of(ROWS).max(LEAST)
}

/// `[out, n]` as `[n, out]`.
fn turned(y: &[f32], n: usize) -> Vec<f32> {
    (0..n).flat_map(|row| y.iter().skip(row).step_by(n).copied()).collect()
}

/// Rows of the input in the order in which weights of this kind come: filled up, or for halves that are read two at a time first the
/// even places and then the odd ones.
fn arranged<'x>(w: &Matrix, x: &'x [f32]) -> Cow<'x, [f32]> {
    let columns = w.columns;
    match &w.values {
        Values::F32(_) => x.into(),
        Values::Bf16(_) | Values::F16(_) => {
            let mut parts = Vec::with_capacity(x.len());
            for x in x.chunks(columns) {
                parts.extend(x.iter().step_by(2));
                parts.extend(x.iter().skip(1).step_by(2));
            }
            parts.into()
        }
        Values::Packed(packed) if packed.width() == columns => x.into(),
        Values::Packed(packed) => {
            let mut wide = vec![0.0; x.len() / columns * packed.width()];
            for (wide, x) in wide.chunks_mut(packed.width()).zip(x.chunks(columns)) {
                wide[..columns].copy_from_slice(x);
            }
            wide.into()
        }
    }
}

/// The products of rows of the input with the rows of weights from `first` on, in as many rows and columns as `y` has.
fn tile(w: &Matrix, x: &[f32], first: usize, y: MatrixMut<f32>) {
    let (rows, columns) = y.dim();
    let weights = w.rows(first..first + columns);
    let weights = view(&weights, columns, w.columns, w.columns);
    multiply(view(x, rows, w.columns, w.columns), weights.t(), y);
}

/// The products of `n` rows with the rows of weights from `first` on, `[rows, n]`.
struct Few<'a> {
    w: &'a Matrix,
    first: usize,
    x: &'a [f32],
    n: usize,
    y: &'a mut [f32],
}

impl WithSimd for Few<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { w: Matrix { columns, values, .. }, first, x, n, y } = self;
        let x = Input { x, n, simd };
        match values {
            Values::F32(all) => {
                let rows = all[first * columns..].chunks_exact(*columns);
                rows.zip(y.chunks_mut(n)).for_each(|(w, y)| x.of_floats(w, y));
            }
            Values::Bf16(all) => {
                let rows = all[first * columns..].chunks_exact(*columns);
                for (w, y) in rows.zip(y.chunks_mut(n)) {
                    x.of_halves(InBf16, w, y);
                }
            }
            Values::F16(all) => {
                let rows = all[first * columns..].chunks_exact(*columns);
                for (w, y) in rows.zip(y.chunks_mut(n)) {
                    x.of_halves(InF16, w, y);
                }
            }
            Values::Packed(packed) => {
                for (block, y) in y.chunks_mut(ROWS * n).enumerate() {
                    let block = first / ROWS + block;
                    match packed.bits {
                        8 => x.of_packed::<8>(packed, block, y),
                        _ => x.of_packed::<4>(packed, block, y),
                    }
                }
            }
        }
    }
}

/// Rows of the input, `[n, ..]`, in the order of the weights.
struct Input<'x, S> {
    x: &'x [f32],
    n: usize,
    simd: S,
}

impl<S: Simd> Input<'_, S> {
    #[inline(always)]
    fn row(&self, row: usize) -> &[f32] {
        let len = self.x.len() / self.n;
        &self.x[row * len..][..len]
    }

    /// One row of weights with each row, into `y`, `[n]`.
    #[inline(always)]
    fn of_floats(&self, w: &[f32], y: &mut [f32]) {
        let (fours, rest) = y.as_chunks_mut::<4>();
        let done = 4 * fours.len();
        for (nth, y) in fours.iter_mut().enumerate() {
            *y = dots(self.simd, w, from_fn(|r| self.row(4 * nth + r)));
        }
        for (r, y) in rest.iter_mut().enumerate() {
            *y = dot(self.simd, w, self.row(done + r));
        }
    }

    #[inline(always)]
    fn of_halves<H: Halves>(&self, halves: H, w: &[u16], y: &mut [f32]) {
        let even = w.len().div_ceil(2);
        let (pairs, rest) = w.as_chunks::<2>();
        // A row of an odd number of columns, or of a file with an odd place, is put together first.
        let copied: Vec<u32>;
        let words = match bytemuck::try_cast_slice::<[u16; 2], u32>(pairs) {
            Ok(words) => words,
            Err(_) => {
                copied = pairs
                    .iter()
                    .map(|[low, high]| u32::from(*low) | u32::from(*high) << 16)
                    .collect();
                &copied
            }
        };
        for (r, y) in y.iter_mut().enumerate() {
            let (even, odd) = self.row(r).split_at(even);
            *y = dot_of_halves(self.simd, halves, words, [&even[..words.len()], odd]);
            if let [last] = rest {
                *y += dot_of_halves(
                    self.simd,
                    halves,
                    &[u32::from(*last)],
                    [&even[words.len()..], &[0.0]],
                );
            }
        }
    }

    /// A block of rows of weights with each row, into `y`, `[ROWS, n]` or as many rows as there are.
    #[inline(always)]
    fn of_packed<const BITS: u32>(&self, packed: &Packed, block: usize, y: &mut [f32]) {
        let mut put = |r: usize, found: [f32; ROWS]| {
            let places = y.iter_mut().skip(r).step_by(self.n);
            places.zip(found).for_each(|(y, found)| *y = found);
        };
        let mut r = 0;
        while r + 4 <= self.n {
            let x = from_fn(|nth| self.row(r + nth));
            let found = of_block::<S, BITS, 4>(self.simd, packed, block, x);
            found.into_iter().enumerate().for_each(|(nth, found)| put(r + nth, found));
            r += 4;
        }
        for r in r..self.n {
            let [found] = of_block::<S, BITS, 1>(self.simd, packed, block, [self.row(r)]);
            put(r, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::mapped::Numbers;
    use super::*;
    use half::{bf16, f16};

    /// Numbers from -1 to 1 that look drawn.
    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        let next = |state: &mut u32| {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Some((*state >> 8) as f32 / (1 << 23) as f32 - 1.0)
        };
        std::iter::repeat_with({
            let mut state = seed;
            move || next(&mut state).unwrap_or_default()
        })
        .take(count)
        .collect()
    }

    fn kinds(rows: usize, columns: usize) -> Vec<Matrix> {
        let all = numbers(rows * columns, 1);
        let packed = |bits: usize, group_size: usize| {
            let mut packed = Packed::new(bits, [rows, columns], group_size);
            all.chunks(columns).enumerate().for_each(|(nth, row)| packed.set(nth, row));
            Values::Packed(packed)
        };
        let halves = |of: fn(f32) -> u16| Numbers::Owned(all.iter().map(|w| of(*w)).collect());
        [
            Values::Bf16(halves(|w| bf16::from_f32(w).to_bits())),
            Values::F16(halves(|w| f16::from_f32(w).to_bits())),
            packed(8, columns),
            packed(4, 32),
            packed(4, 64),
            packed(4, 128),
            Values::F32(Numbers::Owned(all.clone())),
        ]
        .map(|values| Matrix { rows, columns, values })
        .into()
    }

    /// In pieces and tiles of any number, for rows and columns that are no multiple of any register; the same bits in threads.
    #[test]
    fn products_are_sums_of_products() {
        let sizes =
            [(1, 1), (15, 2), (16, 7), (17, 31), (129, 33), (40, 64), (33, 129), (700, 257)];
        for (rows, columns) in sizes {
            for w in kinds(rows, columns) {
                for n in [1, 2, 4, 5, 16, 17, 513] {
                    if n == 513 && rows > 40 {
                        continue;
                    }
                    let x = numbers(n * columns, 2);
                    let [y, again] = multiply_by([&w, &w], &x);
                    assert_eq!(y, again);
                    let [in_threads] = crate::cpu::in_threads(|| multiply_by([&w], &x));
                    assert_eq!(y, in_threads);
                    let mut weights = vec![0.0; columns];
                    for row in 0..rows {
                        w.row(row, &mut weights);
                        for (nth, x) in x.chunks(columns).enumerate() {
                            let terms =
                                weights.iter().zip(x).map(|(w, x)| f64::from(*w) * f64::from(*x));
                            let size: f64 = terms.clone().map(f64::abs).sum();
                            let off = f64::from(y[nth * rows + row]) - terms.sum::<f64>();
                            let most = (columns + 8) as f64 * 2f64.powi(-24) * size;
                            assert!(off.abs() <= most, "{rows} {columns} {n} {row}: {off}");
                        }
                    }
                }
            }
        }
    }

    /// However many threads share the work.
    #[test]
    fn threads_change_no_bit() {
        // So many columns that the products of matrices add up several parts.
        let columns = 1100;
        for w in kinds(700, columns) {
            for n in [1, 7, 17, 530] {
                let x = numbers(n * columns, 3);
                let of = |threads| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                    pool.unwrap().install(|| crate::cpu::in_threads(|| multiply_by([&w], &x)))
                };
                let alone = of(1);
                assert!([2, 3, 16].iter().all(|threads| of(*threads) == alone));
            }
        }
    }

    #[test]
    fn halves_of_every_size() {
        // Subnormal ones too, and the sign of each.
        let all: Vec<u16> =
            (0..=u16::MAX).filter(|bits| f16::from_bits(*bits).is_finite()).collect();
        for bits in all {
            let w = Matrix {
                rows: 1,
                columns: 2,
                values: Values::F16(Numbers::Owned(vec![bits, bits])),
            };
            for x in [[1.0, 0.0], [0.0, 1.0]] {
                let [y] = multiply_by([&w], &x);
                assert_eq!(y, [f16::from_bits(bits).to_f32()]);
            }
        }
    }
}
