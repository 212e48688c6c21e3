//! Made for the chapter on claims that are wrong.

mod figures;

use super::kinds::{Figure, Made, Numbers};
use crate::error::{Error, Result};
use notebook_support::plot::thousands;
use quadrivium::rope::rotary_frequencies;
use std::f64::consts::{PI, TAU};

/// The head size of the examples, which is Llama 2's, as are the base and the training length.
const HEAD_DIM: usize = 128;
/// `base`.
const BASE: f64 = 10_000.0;
/// `ms`, the training length.
const TRAINED: usize = 4096;
/// How far positions are compared.
const FAR: usize = 2_000_000;

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure { name: "claims-theta-0", draw: theta_0 },
        Figure { name: "claims-longest", draw: figures::longest },
        Figure { name: "claims-coincide", draw: figures::coincide },
        Figure { name: "claims-extrapolates", draw: figures::extrapolates },
        Figure { name: "claims-decays", draw: figures::decays },
        Figure { name: "claims-one-part", draw: figures::one_part },
        Figure { name: "claims-sign", draw: figures::sign },
        Figure { name: "claims-types", draw: figures::types },
        Figure { name: "claims-kronecker", draw: figures::kronecker },
        Figure { name: "claims-memory", draw: figures::memory },
        Figure { name: "claims-repeat", draw: figures::repeat },
        Figure { name: "claims-adds", draw: figures::adds },
    ],
    listings: &[],
    numbers,
};

fn frequencies() -> Result<Vec<f64>> {
    rotary_frequencies(HEAD_DIM, BASE, 1.0).map_err(Error::from)
}

/// `|e^(i m theta) - e^(i n theta)|` at this distance `m - n`.
fn gap(distance: usize, theta: f64) -> f64 {
    2.0 * (distance as f64 * theta / 2.0).sin().abs()
}

/// The positions of one turn of the slowest plane.
fn one_turn(theta: &[f64]) -> usize {
    (TAU / theta[theta.len() - 1]).round() as usize
}

/// The distance from 3 to `FAR` at which the planes agree best, and the largest gap there.
fn best_agreement(theta: &[f64]) -> (usize, f64) {
    let mut best = (0, f64::MAX);
    for distance in 3..=FAR {
        let mut largest: f64 = 0.0;
        for &theta in theta {
            largest = largest.max(gap(distance, theta));
            if largest >= best.1 {
                break;
            }
        }
        if largest < best.1 {
            best = (distance, largest);
        }
    }
    best
}

/// Weights for the last three planes that cancel the terms `D^0` and `D^2` of their cosines.
fn quiet_weights(theta: &[f64]) -> [f64; 3] {
    let [a, b, c] = [61, 62, 63].map(|i| (theta[i] / theta[61]).powi(2));
    [b - c, c - a, a - b]
}

fn score(theta: &[f64], weights: &[f64; 3], distance: f64) -> f64 {
    (61..64).map(|i| weights[i - 61] * (distance * theta[i]).cos()).sum()
}

fn largest_score(theta: &[f64], weights: &[f64; 3], length: usize, slower: f64) -> f64 {
    let size = |d: usize| score(theta, weights, d as f64 / slower).abs();
    (0..length).map(size).fold(0.0, f64::max)
}

/// A query without zeros and a key that is the query, turned to this position: their product by
/// distance, as a part of the product of their lengths.
fn favourite_of(position: usize) -> Result<impl Fn(usize) -> f64> {
    let theta = frequencies()?;
    let wave = |j: usize| (1.3 * (j as f64 + 1.0)).sin();
    let size = |i: usize| wave(i).powi(2) + wave(i + HEAD_DIM / 2).powi(2);
    let sizes: Vec<f64> = (0..HEAD_DIM / 2).map(size).collect();
    let all: f64 = sizes.iter().sum();
    Ok(move |distance: usize| {
        let off = distance as f64 - position as f64;
        sizes.iter().zip(&theta).map(|(size, theta)| size * (off * theta).cos()).sum::<f64>() / all
    })
}

/// A query and a key of one plane.
const PAIR: ([f64; 2], [f64; 2]) = ([1.0, 0.4], [0.9, 0.8]);

/// One plane turned to position `m`, `theta = 1`.
fn rotate([x, y]: [f64; 2], m: f64) -> [f64; 2] {
    let (sin, cos) = m.sin_cos();
    [x * cos - y * sin, x * sin + y * cos]
}

/// The same without the minus.
fn swap([x, y]: [f64; 2], m: f64) -> [f64; 2] {
    let (sin, cos) = m.sin_cos();
    [x * cos + y * sin, x * sin + y * cos]
}

/// A sinusoid added.
fn add_sinusoid([x, y]: [f64; 2], m: f64) -> [f64; 2] {
    [x + m.sin(), y + m.cos()]
}

fn rotated(x: [f64; 2]) -> [f64; 2] {
    rotate(x, 1.0)
}

fn swapped(x: [f64; 2]) -> [f64; 2] {
    swap(x, 1.0)
}

fn one_part_twice(x: [f64; 2]) -> [f64; 2] {
    [rotate(x, 1.0)[1]; 2]
}

/// The nearest bf16: the upper half of an `f32`, ties to even.
fn bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF_0000)
}

const HEAD_OF_8: [f64; 8] = [0.8, -0.3, 0.5, 0.7, -0.6, 0.9, 0.4, -0.5];

/// Rows turn the first half of a head of 8, columns the second. Two planes each.
fn summed_turns(row: f64, column: f64) -> [f64; 8] {
    let mut y = [0.0; 8];
    for pair in 0..4 {
        let position = if pair < 2 { row } else { column };
        let x = [HEAD_OF_8[2 * pair], HEAD_OF_8[2 * pair + 1]];
        let turned = rotate(x, position * 0.5f64.powi(pair as i32 % 2));
        y[2 * pair..][..2].copy_from_slice(&turned);
    }
    y
}

/// A turn by the row in one plane, times a turn by the column in two planes.
fn multiplied_turns(row: f64, column: f64) -> [f64; 8] {
    let mut y = HEAD_OF_8;
    for pair in 0..4 {
        let turned = rotate([y[2 * pair], y[2 * pair + 1]], column * 0.5f64.powi(pair as i32 % 2));
        y[2 * pair..][..2].copy_from_slice(&turned);
    }
    for i in 0..4 {
        [y[i], y[i + 4]] = rotate([y[i], y[i + 4]], row);
    }
    y
}

/// A bias for each head, query and key, in f16.
fn bias_bytes(length: f64, heads: f64) -> f64 {
    heads * length * length * 2.0
}

/// 32 query heads share 8 key heads, as in Llama 3 8B.
fn interleaved_head(query_head: usize) -> usize {
    query_head / 4
}

fn tiled_head(query_head: usize) -> usize {
    query_head % 8
}

/// With a minus sign as it is printed in a text.
fn signed(x: f64) -> String {
    format!("{x:.3}").replace('-', "\u{2212}")
}

/// The tour's clocks.
fn theta_0(out: &std::path::Path) -> Result<()> {
    Ok(tour::figures::clocks::draw(out)?)
}

fn numbers(numbers: &mut Numbers) -> Result<()> {
    let add = &mut |name: &str, value: String| numbers.add(&format!("claims/{name}"), value);
    let theta = frequencies()?;
    let last = theta.len() - 1;

    add("first-turn", format!("{:.2}", TAU / theta[0]));
    add("last-step", format!("{:.6}", theta[last]));
    add("longest", thousands((TAU / theta[last]).round() as usize));
    add("two-pi-base", thousands((TAU * BASE).round() as usize));
    add("one-step-of-planes", format!("{:.3}", BASE.powf(2.0 / HEAD_DIM as f64)));

    let turn = one_turn(&theta);
    add("far-at-one-turn", theta.iter().filter(|&&t| gap(turn, t) > 1.0).count().to_string());
    add("gap-1", format!("{:.3}", gap(1, theta[0])));
    add("gap-2", format!("{:.3}", gap(2, theta[0])));
    let (distance, largest) = best_agreement(&theta);
    add("best-distance", thousands(distance));
    add("best-gap", format!("{largest:.3}"));
    add("best-degrees", format!("{:.0}", (2.0 * (largest / 2.0).asin()).to_degrees()));

    let unfinished = |length: usize| theta.iter().filter(|&t| t * length as f64 <= TAU).count();
    add("unfinished", unfinished(TRAINED).to_string());
    add("unfinished-twice", unfinished(2 * TRAINED).to_string());
    let weights = quiet_weights(&theta);
    let trained = largest_score(&theta, &weights, TRAINED, 1.0);
    let longer = largest_score(&theta, &weights, 4 * TRAINED, 1.0);
    let interpolated = largest_score(&theta, &weights, 4 * TRAINED, 4.0);
    add("growth", format!("{:.0}", longer / trained));
    add("growth-interpolated", format!("{:.2}", interpolated / trained));

    let half = (PI / theta[last]).floor() as usize;
    add("half-turn", thousands(half));
    let favourite = favourite_of(1000)?;
    add("favourite-0", format!("{:.2}", favourite(0)));

    let (sin, cos) = 1f64.sin_cos();
    add("cos-1", format!("{cos:.4}"));
    add("sin-1", format!("{sin:.4}"));
    let lengths = [45f64, -45.0].map(|degrees| {
        let (y, x) = degrees.to_radians().sin_cos();
        let [a, b] = swapped([x, y]);
        f64::hypot(a, b)
    });
    add("swap-longest", format!("{:.3}", lengths[0]));
    add("swap-shortest", format!("{:.3}", lengths[1]));

    let near = [1.0f32, 1.0 + 1.0 / 256.0];
    add("second-key", format!("{}", near[1]));
    add("second-key-bf16", format!("{}", bf16(near[1])));

    add("turns-fast", thousands((71_000.0 / TAU).round() as usize));
    add("turns-slow", thousands((71_000.0 * 0.01 / TAU).round() as usize));
    add("off-by", format!("{:.5}", 355.0 - 113.0 * PI));
    let gib = |length: usize| bias_bytes(length as f64, 32.0) as usize >> 30;
    add("bias-gib", thousands(gib(4096)));
    add("bias-gib-131072", thousands(gib(131_072)));
    add("vector-kib", thousands((32 * 4096 * 2) >> 10));
    add("rope-mib", thousands((2 * 4096 * HEAD_DIM * 4) >> 20));

    let right = (0..32).filter(|&head| interleaved_head(head) == tiled_head(head)).count();
    add("tiled-wrong", (32 - right).to_string());

    let (q, k) = PAIR;
    let product = |place: fn([f64; 2], f64) -> [f64; 2], m: f64| {
        let (a, b) = (place(q, m + 3.0), place(k, m));
        a[0] * b[0] + a[1] * b[1]
    };
    for m in [0.0, 1.0] {
        add(&format!("turned-{m}"), signed(product(rotate, m)));
        add(&format!("added-{m}"), signed(product(add_sinusoid, m)));
        add(&format!("swapped-{m}"), signed(product(swap, m)));
    }
    Ok(())
}
