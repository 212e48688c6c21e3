//! The loops over weights, written in registers, for each kind of weights.
//!
//! A product with few rows is as fast as weights come from memory only if a processor makes each weight an `f32` in less time than
//! memory takes to deliver it. So nothing is converted number by number: neighbours are read as words of 32 bits, and a
//! shift, a mask or an exponent makes floats of all words in a register at once. All of it must be inlined into the function that knows the
//! registers, so what computes with them is in functions that always are, and in no closure that might not be.

use super::packed::{Packed, ROWS};
use pulp::{Simd, WithSimd};
use std::array::from_fn;

/// The inner product, in four sums of a register each, so that a processor need not wait for one to begin with the next.
#[inline(always)]
pub(super) fn dot<S: Simd>(simd: S, w: &[f32], x: &[f32]) -> f32 {
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
pub(super) fn dots<S: Simd>(simd: S, w: &[f32], x: [&[f32]; 4]) -> [f32; 4] {
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
    let sums = [
        simd.reduce_sum_f32s(a),
        simd.reduce_sum_f32s(b),
        simd.reduce_sum_f32s(c),
        simd.reduce_sum_f32s(d),
    ];
    from_fn(|r| w_rest.iter().zip(parts[r].1).fold(sums[r], |sum, (w, x)| sum + w * x))
}

/// How two halves of a word become floats.
pub(super) trait Halves: Copy {
    /// The half in the low bits, and the other.
    fn floats<S: Simd>(simd: S, words: S::u32s) -> [S::f32s; 2];
}

/// `bf16`: the first half of an `f32`.
#[derive(Clone, Copy)]
pub(super) struct InBf16;

// ANCHOR: bf16
impl Halves for InBf16 {
    #[inline(always)]
    fn floats<S: Simd>(simd: S, words: S::u32s) -> [S::f32s; 2] {
        let low = simd.wrapping_dyn_shl_u32s(words, simd.splat_u32s(16));
        let high = simd.and_u32s(words, simd.splat_u32s(0xFFFF_0000));
        [simd.transmute_f32s_u32s(low), simd.transmute_f32s_u32s(high)]
    }
}
// ANCHOR_END: bf16

/// `f16`: the bits of a finite one, read as an `f32`, are `2^112` times too small.
#[derive(Clone, Copy)]
pub(super) struct InF16;

impl Halves for InF16 {
    #[inline(always)]
    fn floats<S: Simd>(simd: S, words: S::u32s) -> [S::f32s; 2] {
        let low = simd.wrapping_dyn_shl_u32s(words, simd.splat_u32s(16));
        [of_f16(simd, low), of_f16(simd, words)]
    }
}

/// Those in the high bits of words.
#[inline(always)]
fn of_f16<S: Simd>(simd: S, words: S::u32s) -> S::f32s {
    let sign = simd.and_u32s(words, simd.splat_u32s(0x8000_0000));
    let rest = simd.wrapping_dyn_shr_u32s(words, simd.splat_u32s(3));
    let rest = simd.and_u32s(rest, simd.splat_u32s(0x0FFF_E000));
    let factor = simd.splat_f32s(f32::from_bits((127 + 112) << 23));
    simd.mul_f32s(simd.transmute_f32s_u32s(simd.or_u32s(sign, rest)), factor)
}

/// The inner product of a row of halves, two in each word, with a list that is given as its even places and its odd ones.
#[inline(always)]
pub(super) fn dot_of_halves<S: Simd, H: Halves>(
    simd: S,
    _: H,
    words: &[u32],
    [even, odd]: [&[f32]; 2],
) -> f32 {
    let (w, w_rest) = S::as_simd_u32s(words);
    let ((even, even_rest), (odd, odd_rest)) = (S::as_simd_f32s(even), S::as_simd_f32s(odd));
    let zeros = simd.splat_f32s(0.0);
    let (mut a, mut b, mut c, mut d) = (zeros, zeros, zeros, zeros);
    let (w, w_after) = w.as_chunks::<2>();
    let ((even, even_after), (odd, odd_after)) = (even.as_chunks::<2>(), odd.as_chunks::<2>());
    for ((w, even), odd) in w.iter().zip(even).zip(odd) {
        let ([low, high], [low_after, high_after]) = (H::floats(simd, w[0]), H::floats(simd, w[1]));
        a = simd.mul_add_e_f32s(low, even[0], a);
        b = simd.mul_add_e_f32s(high, odd[0], b);
        c = simd.mul_add_e_f32s(low_after, even[1], c);
        d = simd.mul_add_e_f32s(high_after, odd[1], d);
    }
    for ((w, even), odd) in w_after.iter().zip(even_after).zip(odd_after) {
        let [low, high] = H::floats(simd, *w);
        a = simd.mul_add_e_f32s(low, *even, a);
        b = simd.mul_add_e_f32s(high, *odd, b);
    }
    let mut sum = simd.add_f32s(simd.add_f32s(a, b), simd.add_f32s(c, d));
    if !w_rest.is_empty() {
        let [low, high] = H::floats(simd, simd.partial_load_u32s(w_rest));
        sum = simd.mul_add_e_f32s(low, simd.partial_load_f32s(even_rest), sum);
        sum = simd.mul_add_e_f32s(high, simd.partial_load_f32s(odd_rest), sum);
    }
    simd.reduce_sum_f32s(sum)
}

/// A whole number as a float, without a conversion: under the exponent of `2^(23 - first)`, the bits from `first` on count ones. From the
/// sum of both, the power and the bias are taken away, exactly.
#[inline(always)]
fn number<S: Simd, const BITS: u32>(simd: S, words: S::u32s, first: u32) -> S::f32s {
    let bits = simd.and_u32s(words, simd.splat_u32s(((1 << BITS) - 1) << first));
    let power = simd.splat_u32s((127 + 23 - first) << 23);
    let bias = (1u32 << (23 - first)) as f32 + (1u32 << (BITS - 1)) as f32;
    let float = simd.transmute_f32s_u32s(simd.or_u32s(bits, power));
    simd.sub_f32s(float, simd.splat_f32s(bias))
}

/// Makes floats of the numbers in words, the low bits first, and gives each with its place.
#[inline(always)]
fn each_number<S: Simd, const BITS: u32>(
    simd: S,
    words: S::u32s,
    mut then: impl FnMut(usize, S::f32s),
) {
    // A number must lie below the exponent, in the lower 23 bits.
    let at_once = 23 / BITS;
    let mut words = words;
    for nth in 0..32 / BITS {
        if nth > 0 && nth % at_once == 0 {
            words = simd.wrapping_dyn_shr_u32s(words, simd.splat_u32s(BITS * at_once));
        }
        then(nth as usize, number::<S, BITS>(simd, words, nth % at_once * BITS));
    }
}

/// The products of a block of rows of whole numbers with `R` rows of the input. Each lane of a register is a row of weights, so nothing
/// is added up across lanes; the input's numbers are spread over all lanes.
#[inline(always)]
pub(super) fn of_block<S: Simd, const BITS: u32, const R: usize>(
    simd: S,
    packed: &Packed,
    block: usize,
    x: [&[f32]; R],
) -> [[f32; ROWS]; R] {
    let (lanes, per_word) = (S::F32_LANES.min(ROWS), (32 / BITS) as usize);
    let of_group = packed.words_of_group();
    let mut found = [[0.0; ROWS]; R];
    for part in (0..ROWS).step_by(lanes) {
        let mut sums = [simd.splat_f32s(0.0); R];
        for (group, words) in packed.words(block).chunks_exact(of_group * ROWS).enumerate() {
            let mut two = [[simd.splat_f32s(0.0); 2]; R];
            let first = group * of_group * per_word;
            for (nth, words) in words.chunks_exact(ROWS).enumerate() {
                let (words, _) = S::as_simd_u32s(&words[part..][..lanes]);
                let x = x.map(|x| &x[first + nth * per_word..][..per_word]);
                each_number::<S, BITS>(simd, words[0], |place, w| {
                    for (two, x) in two.iter_mut().zip(x) {
                        let sum = &mut two[place % 2];
                        *sum = simd.mul_add_e_f32s(w, simd.splat_f32s(x[place]), *sum);
                    }
                });
            }
            let scales = packed.scales(block, group)[part..].iter();
            let mut wide = [0.0; ROWS];
            wide.iter_mut().zip(scales).for_each(|(wide, scale)| *wide = scale.to_f32());
            let (scales, _) = S::as_simd_f32s(&wide[..lanes]);
            for (sum, [a, b]) in sums.iter_mut().zip(two) {
                *sum = simd.mul_add_e_f32s(simd.add_f32s(a, b), scales[0], *sum);
            }
        }
        for (found, sum) in found.iter_mut().zip(sums) {
            simd.partial_store_f32s(&mut found[part..][..lanes], sum);
        }
    }
    found
}

/// The inner products of a few queries, `[rows, hd]`, with the keys of a page, `[.., hd]`: into `scores`, `[rows, count]`, from the column
/// `first` on.
pub(super) struct Score<'a> {
    pub(super) queries: &'a [f32],
    pub(super) keys: &'a [f32],
    pub(super) hd: usize,
    pub(super) scores: &'a mut [f32],
    pub(super) first: usize,
}

impl WithSimd for Score<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { queries, keys, hd, scores, first } = self;
        let count = scores.len() * hd / queries.len();
        let query = |row: usize| &queries[row * hd..][..hd];
        let rows = queries.len() / hd;
        for (column, key) in (first..).zip(keys.chunks_exact(hd)) {
            let mut row = 0;
            while row + 4 <= rows {
                let found = dots(simd, key, from_fn(|r| query(row + r)));
                (row..).zip(found).for_each(|(row, found)| scores[row * count + column] = found);
                row += 4;
            }
            for row in row..rows {
                scores[row * count + column] = dot(simd, key, query(row));
            }
        }
    }
}

/// Adds the values of a page, `[.., hd]`, to `y`, `[rows, hd]`, each with its weight: `weights` are `[rows, count]`, and those of the page begin at
/// the column `first`.
pub(super) struct Gather<'a> {
    pub(super) weights: &'a [f32],
    pub(super) first: usize,
    pub(super) values: &'a [f32],
    pub(super) hd: usize,
    pub(super) y: &'a mut [f32],
}

impl WithSimd for Gather<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { weights, first, values, hd, y } = self;
        let count = weights.len() * hd / y.len();
        let mut weights = weights.chunks_exact(count).map(|weights| &weights[first..]);
        let (fours, rest) = y.split_at_mut(y.len() / (4 * hd) * 4 * hd);
        for y in fours.chunks_exact_mut(4 * hd) {
            let weights = from_fn(|_| weights.next().unwrap_or_default());
            gather::<S, 4>(simd, weights, values, hd, y);
        }
        for (y, weights) in rest.chunks_exact_mut(hd).zip(weights) {
            gather::<S, 1>(simd, [weights], values, hd, y);
        }
    }
}

/// The same for `R` rows: two registers per row hold the sums while all values stream past.
#[inline(always)]
fn gather<S: Simd, const R: usize>(
    simd: S,
    weights: [&[f32]; R],
    values: &[f32],
    hd: usize,
    y: &mut [f32],
) {
    let weights = weights.map(|weights| &weights[..values.len() / hd]);
    let pairs = hd / S::F32_LANES / 2;
    for pair in 0..pairs {
        let mut sums = [[simd.splat_f32s(0.0); 2]; R];
        for (nth, value) in values.chunks_exact(hd).enumerate() {
            let [low, high] = S::as_simd_f32s(value).0.as_chunks::<2>().0[pair];
            for (sums, weights) in sums.iter_mut().zip(weights) {
                let weight = simd.splat_f32s(weights[nth]);
                sums[0] = simd.mul_add_e_f32s(weight, low, sums[0]);
                sums[1] = simd.mul_add_e_f32s(weight, high, sums[1]);
            }
        }
        for (y, sums) in y.chunks_exact_mut(hd).zip(sums) {
            let y = &mut S::as_mut_simd_f32s(y).0.as_chunks_mut::<2>().0[pair];
            y[0] = simd.add_f32s(y[0], sums[0]);
            y[1] = simd.add_f32s(y[1], sums[1]);
        }
    }
    // The tail of a head whose size is not a multiple of two registers.
    let done = 2 * pairs * S::F32_LANES;
    if done == hd {
        return;
    }
    for (y, weights) in y.chunks_exact_mut(hd).zip(weights) {
        for (value, weight) in values.chunks_exact(hd).zip(weights) {
            let rest = y[done..].iter_mut().zip(&value[done..]);
            rest.for_each(|(y, value)| *y += weight * value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Heads of whole registers, of parts of them, and of both; groups of one row, of four and of both.
    #[test]
    fn a_head_looks_back() {
        let mut state = 7u32;
        let mut numbers = |count: usize| -> Vec<f32> {
            let next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 23) as f32 - 1.0
            };
            std::iter::repeat_with(next).take(count).collect()
        };
        for hd in [4, 12, 16, 20, 32, 64, 80, 96, 128] {
            for rows in 1..=9 {
                let (count, first, page) = (50, 7, 31);
                let [queries, keys, values] = [rows, page, page].map(|n| numbers(n * hd));
                let mut scores = vec![9.0; rows * count];
                let mut y = numbers(rows * hd);
                let before = y.clone();
                let weights = numbers(rows * count);
                let arch = pulp::Arch::new();
                let scored = &mut scores;
                arch.dispatch(Score { queries: &queries, keys: &keys, hd, scores: scored, first });
                arch.dispatch(Gather { weights: &weights, first, values: &values, hd, y: &mut y });
                let close = |got: f32, expected: f64, why: &str| {
                    assert!((f64::from(got) - expected).abs() < 1e-4, "{why} {hd} {rows}");
                };
                for row in 0..rows {
                    for column in 0..count {
                        let got = scores[row * count + column];
                        let Some(key) = column.checked_sub(first).filter(|key| *key < page) else {
                            assert_eq!(got, 9.0);
                            continue;
                        };
                        let products = (0..hd).map(|j| {
                            f64::from(queries[row * hd + j]) * f64::from(keys[key * hd + j])
                        });
                        close(got, products.sum(), "score");
                    }
                    for j in 0..hd {
                        let products = (0..page).map(|key| {
                            let weight = weights[row * count + first + key];
                            f64::from(weight) * f64::from(values[key * hd + j])
                        });
                        let at = row * hd + j;
                        close(y[at], f64::from(before[at]) + products.sum::<f64>(), "value");
                    }
                }
            }
        }
    }
}
