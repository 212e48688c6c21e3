//! What RoPE's figures show, as numbers.

use crate::error::Result;
use quadrivium::functional::{Layout, apply_rotary_pos_emb};
use quadrivium::rope::{RotaryTables, rotary_frequencies};
use quadrivium::tensor::*;

/// The averaged bound of Su et al. 2021, section 3.4.3, at distances `0 ..= distances`.
///
/// `1/(d/2) * sum_i |S_i|` with `S_i = sum_(j < i) e^(i m theta_j)` and `i` from 1 to `d/2`. It
/// bounds an average from above. A single product may well grow with distance.
pub fn averaged_bound(frequencies: &[f64], distances: usize) -> Vec<f64> {
    let bound_at = |m: usize| {
        let (mut re, mut im, mut sum) = (0.0, 0.0, 0.0);
        for theta in frequencies {
            let (sin, cos) = (m as f64 * theta).sin_cos();
            re += cos;
            im += sin;
            sum += f64::hypot(re, im);
        }
        sum / frequencies.len() as f64
    };
    (0..=distances).map(bound_at).collect()
}

/// One half-split head, `[2p]` for `p` frequencies, turned to a position, in `f64`. A negative position
/// turns back.
pub fn turn(frequencies: &[f64], x: &[f64], position: f64) -> Vec<f64> {
    let p = frequencies.len();
    let mut y = vec![0.0; 2 * p];
    for i in 0..p {
        let (sin, cos) = (position * frequencies[i]).sin_cos();
        y[i] = x[i] * cos - x[i + p] * sin;
        y[i + p] = x[i + p] * cos + x[i] * sin;
    }
    y
}

/// `<R_r q, k> / (|q| |k|)` of half-split heads, in `f64`: `r` is the distance.
pub fn product(frequencies: &[f64], q: &[f64], k: &[f64], distance: f64) -> f64 {
    let p = frequencies.len();
    let y = turn(frequencies, q, distance);
    let sum: f64 = (0..p).map(|i| y[i] * k[i] + y[i + p] * k[i + p]).sum();
    let length = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    sum / (length(q) * length(k))
}

/// One half-split head at a position, turned by the library, `[head_dim]`.
pub(crate) fn turned(x: &[f32], position: usize, base: f64, ratio: f64) -> Result<Vec<f32>> {
    let (dev, head_dim) = (Cpu::default(), x.len());
    let theta = rotary_frequencies(head_dim, base, ratio)?;
    let positions = position..position + 1;
    let tables = RotaryTables::new(&dev, head_dim, &theta, positions, Layout::HalfSplit)?;
    let x = dev.tensor_from_vec(x.to_vec(), (1, 1, 1, head_dim));
    Ok(apply_rotary_pos_emb(x, &tables.cos, &tables.sin)?.as_vec())
}

/// Rounded to the eight bits of `bf16`, ties to even.
fn to_bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    let up = 0x7FFF + (bits >> 16 & 1);
    f32::from_bits(bits.wrapping_add(up) & 0xFFFF_0000)
}

/// How tables are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Angles {
    /// As the library does.
    Library,
    /// Frequencies and their products with positions in `f32`.
    F32,
    /// The same, with positions in `bf16`.
    Bf16Positions,
}

/// The largest error of a cosine or sine at 16 positions from `start` on. The truth is from an `f64`
/// angle, which is itself off by less than `n * 2^-52`.
///
/// # Errors
/// What the library reports.
pub fn table_error(frequencies: &[f64], angles: Angles, start: usize) -> Result<f64> {
    let positions = start..start + 16;
    let (dev, head_dim) = (Cpu::default(), 2 * frequencies.len());
    let tables =
        RotaryTables::new(&dev, head_dim, frequencies, positions.clone(), Layout::HalfSplit)?;
    let (cos, sin) = (tables.cos.as_vec(), tables.sin.as_vec());
    let mut worst = 0.0f64;
    for (row, n) in positions.enumerate() {
        for (i, theta) in frequencies.iter().enumerate() {
            let (true_sin, true_cos) = (n as f64 * theta).sin_cos();
            let angle = |n: f32| n * *theta as f32;
            let (c, s) = match angles {
                Angles::Library => (cos[row * head_dim + i], sin[row * head_dim + i]),
                Angles::F32 => (angle(n as f32).cos(), angle(n as f32).sin()),
                Angles::Bf16Positions => {
                    let angle = angle(to_bf16(n as f32));
                    (angle.cos(), angle.sin())
                }
            };
            let error = (f64::from(c) - true_cos).abs().max((f64::from(s) - true_sin).abs());
            worst = worst.max(error);
        }
    }
    Ok(worst)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Vec<f64> {
        rotary_frequencies(64, 10_000.0, 1.0).unwrap()
    }

    #[test]
    fn at_distance_0_all_planes_agree() {
        // |S_i| = i, so the mean over i = 1 .. d/2 is (d/2 + 1)/2.
        assert_eq!(averaged_bound(&plain(), 0), [16.5]);
    }

    #[test]
    fn the_bound_is_no_law() {
        let bound = averaged_bound(&plain(), 512);
        assert!(bound.windows(2).any(|pair| pair[0] < pair[1]), "it also rises");
    }

    #[test]
    fn a_product_is_largest_where_it_was_made_to_be() {
        let (theta, ones) = (plain(), [1.0; 64]);
        let q = turn(&theta, &ones, -40.0);
        let at = |r: usize| product(&theta, &q, &ones, r as f64);
        assert!((at(40) - 1.0).abs() < 1e-12);
        assert!((0..200).all(|r| r == 40 || at(r) < at(40)));
    }

    #[test]
    fn the_library_turns_alike() {
        let x: Vec<f64> = (0..64).map(|i| (1.3 * f64::from(i)).sin()).collect();
        let single: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        let (ours, library) = (turn(&plain(), &x, 77.0), turned(&single, 77, 10_000.0, 1.0));
        for (ours, library) in ours.iter().zip(library.unwrap()) {
            assert!((ours - f64::from(library)).abs() < 1e-6);
        }
    }

    #[test]
    fn f32_angles_drift_and_f64_angles_do_not() {
        let error = |angles, n| table_error(&plain(), angles, n).unwrap();
        assert!(error(Angles::Library, 1_000_000) < 1e-7);
        assert!(error(Angles::F32, 1_000_000) > 1e-2);
        assert!(error(Angles::F32, 1_000_000) < 1_000_016.0 * 2f64.powi(-23));
        assert!(error(Angles::Bf16Positions, 240) < 1e-4, "bf16 holds 240 to 255");
        assert!(error(Angles::Bf16Positions, 4096) > 1.0);
    }
}
