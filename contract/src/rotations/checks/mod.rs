//! How what is promised is checked.

pub(super) mod axial;
pub(super) mod linear;
pub(super) mod xpos;

use crate::rotations::tolerance::Near;
use crate::violation::{Step, within_f64};

/// What values may be off.
fn off(near: &[Near]) -> impl Fn(usize) -> f64 + '_ {
    |i| near[i].off
}

/// The length of each plane of a head, half-split.
fn lengths(head: &[f32]) -> Vec<f64> {
    let half = head.len() / 2;
    (0..half).map(|i| f64::from(head[i]).hypot(f64::from(head[i + half]))).collect()
}

/// A length is off by what its two elements are.
fn lengths_off(near: &[Near]) -> Vec<f64> {
    let half = near.len() / 2;
    (0..half).map(|i| near[i].off + near[i + half].off).collect()
}

/// The product of two heads.
fn score(q: &[f32], k: &[f32]) -> f64 {
    q.iter().zip(k).map(|(q, k)| f64::from(*q) * f64::from(*k)).sum()
}

/// One number that must be another.
fn one(call: &str, got: f64, expected: f64, tolerance: f64, why: &str) -> Step {
    within_f64(call, &[], &[got], &[expected], |_| tolerance, why)
}
