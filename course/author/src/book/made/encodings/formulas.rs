//! Position encodings from their formulas. The chapter includes them.

use crate::error::{Error, Result};
use quadrivium::rope::rotary_frequencies;
use std::f64::consts::TAU;

// ANCHOR: sinusoidal
/// What is added at position `m`, `[h]`: the sine and the cosine of each plane, side by side.
/// Source: Vaswani et al. 2017, section 3.5.
pub fn sinusoidal(m: usize, h: usize) -> Vec<f64> {
    let wave = |j: usize| {
        let (plane, is_cosine) = (j / 2, j % 2 == 1);
        let angle = m as f64 * 10_000f64.powf(-2.0 * plane as f64 / h as f64);
        if is_cosine { angle.cos() } else { angle.sin() }
    };
    (0..h).map(wave).collect()
}
// ANCHOR_END: sinusoidal

// ANCHOR: t5
/// The bucket of a distance in one direction. Half of the buckets are for one distance each; the
/// others grow by a constant factor up to `farthest`, and the last takes all that is farther.
/// Source: google-research/text-to-text-transfer-transformer, through mesh-tensorflow.
pub fn t5_bucket(distance: usize, buckets: usize, farthest: usize) -> usize {
    let exact = buckets / 2;
    if distance < exact {
        return distance;
    }
    let ratio = |length: usize| (length as f64 / exact as f64).ln();
    let share = ratio(distance) / ratio(farthest);
    (exact + (share * (buckets - exact) as f64) as usize).min(buckets - 1)
}
// ANCHOR_END: t5

// ANCHOR: alibi
/// The slopes of `heads` heads, a power of two: `2^(-8 i / heads)` for `i` from 1.
/// Source: Press et al. 2021, section 3.
pub fn alibi_slopes(heads: usize) -> Vec<f64> {
    (1..=heads).map(|i| 2f64.powf(-8.0 * i as f64 / heads as f64)).collect()
}
// ANCHOR_END: alibi

// ANCHOR: interpolation
/// Position interpolation: all planes are `k` times slower, which is position `m / k`.
/// Source: Chen et al. 2023.
pub fn interpolated(d: usize, base: f64, k: f64) -> Result<Vec<f64>> {
    let plain = rotary_frequencies(d, base, 1.0).map_err(Error::from)?;
    Ok(plain.iter().map(|theta| theta / k).collect())
}
// ANCHOR_END: interpolation

/// Gamma, the weight of a plane's plain frequency: 1 from 32 turns within the training length on,
/// 0 below one turn, and in between in proportion to the turns.
pub fn yarn_kept(theta: f64, trained: usize) -> f64 {
    let (low, high) = (1.0, 32.0);
    let turns = trained as f64 * theta / TAU;
    ((turns - low) / (high - low)).clamp(0.0, 1.0)
}

/// YaRN's frequencies: a mean of the plain and of the interpolated ones.
/// Source: Peng et al. 2023, section 3.2.
pub fn yarn(d: usize, base: f64, k: f64, trained: usize) -> Result<Vec<f64>> {
    let plain = rotary_frequencies(d, base, 1.0).map_err(Error::from)?;
    let mixed = |&theta: &f64| {
        let kept = yarn_kept(theta, trained);
        kept * theta + (1.0 - kept) * theta / k
    };
    Ok(plain.iter().map(mixed).collect())
}

/// What YaRN multiplies cosines and sines by, so that scores grow by its square.
pub fn yarn_scale(k: f64) -> f64 {
    0.1 * k.ln() + 1.0
}

/// The same ramp as the published code has it: linear in the number of the plane.
/// Source: jquesnelle/yarn, scaled_rope/LlamaYaRNScaledRotaryEmbedding.py.
pub fn yarn_kept_in_code(plane: usize, d: usize, base: f64, trained: usize) -> f64 {
    let plane_of =
        |turns: f64| d as f64 * (trained as f64 / (turns * TAU)).ln() / (2.0 * base.ln());
    let (low, high) = (plane_of(32.0).floor().max(0.0), plane_of(1.0).ceil().min(d as f64 - 1.0));
    1.0 - ((plane as f64 - low) / (high - low)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sinusoids_start_at_0_and_1_and_keep_their_length() {
        assert_eq!(sinusoidal(0, 4), [0.0, 1.0, 0.0, 1.0]);
        let square: f64 = sinusoidal(77, 64).iter().map(|x| x * x).sum();
        assert!((square - 32.0).abs() < 1e-12);
    }

    #[test]
    fn t5_counts_near_distances_one_by_one() {
        let bucket = |distance| t5_bucket(distance, 32, 128);
        assert!((0..16).all(|distance| bucket(distance) == distance));
        assert!((0..1000).all(|distance| bucket(distance) <= bucket(distance + 1)));
        assert_eq!(
            [16, 18, 19, 32, 64, 112, 113, 1000].map(bucket),
            [16, 16, 17, 21, 26, 30, 31, 31]
        );
        // An encoder has half of them for each direction.
        assert_eq!([7, 8, 127, 128].map(|d| t5_bucket(d, 16, 128)), [7, 8, 15, 15]);
    }

    #[test]
    fn alibi_halves_from_head_to_head_when_there_are_8() {
        assert_eq!(alibi_slopes(8)[..3], [0.5, 0.25, 0.125]);
        assert_eq!(alibi_slopes(8)[7], 1.0 / 256.0);
        assert_eq!(alibi_slopes(16)[15], 1.0 / 256.0);
    }

    #[test]
    fn yarn_is_plain_for_fast_planes_and_interpolated_for_slow_ones() {
        let plain = rotary_frequencies(128, 10_000.0, 1.0).unwrap();
        let slow = interpolated(128, 10_000.0, 4.0).unwrap();
        let yarn = yarn(128, 10_000.0, 4.0, 4096).unwrap();
        assert_eq!(yarn[..20], plain[..20]);
        assert_eq!(yarn[46..], slow[46..]);
        assert!((20..46).all(|i| slow[i] <= yarn[i] && yarn[i] <= plain[i]));
        assert!(yarn.is_sorted_by(|fast, slow| fast > slow));
        assert_eq!(yarn_scale(1.0), 1.0);
    }

    #[test]
    fn the_two_ramps_of_yarn_end_in_the_same_planes_but_differ_between() {
        let plain = rotary_frequencies(128, 10_000.0, 1.0).unwrap();
        let both =
            |i: usize| (yarn_kept(plain[i], 4096), yarn_kept_in_code(i, 128, 10_000.0, 4096));
        assert_eq!((both(0), both(20), both(46)), ((1.0, 1.0), (1.0, 1.0), (0.0, 0.0)));
        assert!(both(33).1 - both(33).0 > 0.3);
    }
}
