//! Bugs of the tables.

use super::tables_to_f16;
use crate::component::bug;
use crate::oracle::{Oracle, to_f16};
use crate::rope::interface::*;
use crate::rope::oracle::RopeLoops;
use std::ops::Range;

/// The nearest value of `bf16`.
fn to_bf16(x: f64) -> f64 {
    half::bf16::from_f64(x).to_f64()
}

/// treats the angles as degrees
///
/// Calculators and some languages do so, and at position 0 it is right.
#[bug("rope/degrees", named_by = "rope/tables-position-one")]
impl RopeLoops for Degrees {
    fn cos_sin(&self, angle: f64) -> (f64, f64) {
        Oracle.cos_sin(angle.to_radians())
    }
}

/// multiplies the angles by 2π
///
/// In physics a frequency is turns per second, but θ is radians per position.
#[bug("rope/full-turns", named_by = "rope/tables-position-one")]
impl RopeLoops for FullTurns {
    fn angle(&self, position: usize, theta: f64) -> f64 {
        std::f64::consts::TAU * position as f64 * theta
    }
}

/// swaps cosine and sine
///
/// Many functions return sin first.
#[bug("rope/cos-sin-swapped", named_by = "rope/tables-position-zero")]
impl RopeLoops for CosSinSwapped {
    fn cos_sin(&self, angle: f64) -> (f64, f64) {
        (angle.sin(), angle.cos())
    }
}

/// counts positions from 1
///
/// Inner products of a query and a key do not change at all, so the model works, but its values differ from everybody
/// else's.
#[bug("rope/positions-from-one", named_by = "rope/tables-position-zero")]
impl RopeLoops for FromPositionOne {
    fn angle(&self, position: usize, theta: f64) -> f64 {
        (position + 1) as f64 * theta
    }
}

/// builds the table for negative angles
///
/// Queries and keys both turn the wrong way, so attention scores keep their distances with the sign changed.
#[bug("rope/negative-angles", named_by = "rope/tables-position-one")]
impl RopeLoops for NegativeAngles {
    fn angle(&self, position: usize, theta: f64) -> f64 {
        -(position as f64 * theta)
    }
}

/// repeats each frequency side by side, (t0, t0, t1, t1), in a half-split table
///
/// Repeat-interleave instead of a concatenation gives the other layout's table.
#[bug("rope/repeated-side-by-side", named_by = "rope/tables-equal-halves")]
impl RopeLoops for SideBySide {
    fn plane(&self, j: usize, _: usize) -> usize {
        j / 2
    }
}

/// mirrors the second half of each row
///
/// The pairs were thought to be (0, d − 1), (1, d − 2), and so on.
#[bug("rope/mirrored-half", named_by = "rope/tables-equal-halves")]
impl RopeLoops for MirroredHalf {
    fn plane(&self, j: usize, d: usize) -> usize {
        if j < d / 2 { j } else { d - 1 - j }
    }
}

/// starts every table at position 0
///
/// The start of the range, 0 in prefill, was used only for the number of rows.
#[bug("rope/tables-from-zero", named_by = "rope/tables-rows")]
impl RopeLoops for FromZero {
    fn tables(&self, d: usize, base: f64, ratio: f64, positions: Range<usize>) -> Tables {
        Oracle.tables(d, base, ratio, 0..positions.len())
    }
}

/// builds one row too many, because it includes the end of the range
///
/// The rows that should exist are right.
#[bug("rope/tables-end-inclusive", named_by = "rope/tables-rows")]
impl RopeLoops for EndInclusive {
    fn tables(&self, d: usize, base: f64, ratio: f64, positions: Range<usize>) -> Tables {
        Oracle.tables(d, base, ratio, positions.start..positions.end.saturating_add(1))
    }
}

/// counts positions in f16, which has no odd numbers above 2048
///
/// The positions were cast to the model's type with everything else, so above 2048 neighbours share a position.
#[bug(
    "rope/positions-in-f16",
    named_by = "rope/tables-precision",
    source = "candle PR #3520; transformers PR #29285"
)]
impl RopeLoops for PositionsF16 {
    fn angle(&self, position: usize, theta: f64) -> f64 {
        f64::from(to_f16(position as f64)) * theta
    }
}

/// counts positions in bf16, which has no odd numbers above 256
///
/// bf16 has eight bits of precision, a loss that models trained in it hide and other code shows.
#[bug(
    "rope/positions-in-bf16",
    named_by = "rope/tables-precision",
    source = "candle PR #3520; transformers PR #29285"
)]
impl RopeLoops for PositionsBf16 {
    fn angle(&self, position: usize, theta: f64) -> f64 {
        to_bf16(position as f64) * theta
    }
}

/// rounds the frequencies to f16 before multiplying by the position
///
/// As a buffer, they were cast with the module, and the error grows with the position.
#[bug(
    "rope/frequencies-in-f16",
    named_by = "rope/tables-precision",
    source = "candle PR #3520; transformers PR #29285"
)]
impl RopeLoops for FrequenciesF16 {
    fn angle(&self, position: usize, theta: f64) -> f64 {
        position as f64 * f64::from(to_f16(theta))
    }
}

/// rounds the angles to f16
///
/// Autocast computed the product of positions and frequencies in half precision.
#[bug("rope/angles-in-f16", named_by = "rope/tables-precision")]
impl RopeLoops for AnglesF16 {
    fn angle(&self, position: usize, theta: f64) -> f64 {
        f64::from(to_f16(position as f64 * theta))
    }
}

/// counts positions in 16 bits, so that 65,536 is 0 again
///
/// No model was longer than that when the code was written.
#[bug("rope/positions-in-16-bits", named_by = "rope/tables-precision")]
impl RopeLoops for Positions16Bits {
    fn angle(&self, position: usize, theta: f64) -> f64 {
        f64::from(position as u16) * theta
    }
}

/// reduces the angles by 6.2832, a 2π with five digits
///
/// The range is reduced by hand, and each full turn adds an error of 1.5e-5.
#[bug("rope/short-pi", named_by = "rope/tables-precision")]
impl RopeLoops for ShortPi {
    fn cos_sin(&self, angle: f64) -> (f64, f64) {
        Oracle.cos_sin(angle % (62_832.0 / 10_000.0))
    }
}

/// rounds cosines and sines to f16
///
/// The cache was stored in the model's type, which changes lengths by one part in 2000.
#[bug("rope/tables-in-f16", named_by = "rope/tables-on-circle")]
impl RopeLoops for TablesF16 {
    fn tables(&self, d: usize, base: f64, ratio: f64, positions: Range<usize>) -> Tables {
        tables_to_f16(Oracle.tables(d, base, ratio, positions))
    }
}

/// scales the tables by 0.1·ln(ratio) + 1
///
/// YaRN's attention factor belongs to YaRN, and with ratio 1 it is 1.
#[bug("rope/attention-factor", named_by = "rope/tables-on-circle")]
impl RopeLoops for AttentionFactor {
    fn tables(&self, d: usize, base: f64, ratio: f64, positions: Range<usize>) -> Tables {
        let factor = (0.1 * ratio.ln() + 1.0) as f32;
        let Tables { mut cos, mut sin } = Oracle.tables(d, base, ratio, positions);
        cos.iter_mut().chain(&mut sin).for_each(|value| *value *= factor);
        Tables { cos, sin }
    }
}

/// builds tables from the plain frequencies and ignores the ratio
///
/// The right function for frequencies exists, but the tables call another one.
#[bug("rope/tables-ignore-ratio", named_by = "rope/tables-f64-loops")]
impl RopeLoops for TablesIgnoreRatio {
    fn tables(&self, d: usize, base: f64, _: f64, positions: Range<usize>) -> Tables {
        Oracle.tables(d, base, 1.0, positions)
    }
}

/// stops counting at position 4096
///
/// One model's longest length became a constant in the code.
#[bug("rope/position-clamped", named_by = "rope/tables-precision")]
impl RopeLoops for PositionClamped {
    fn angle(&self, position: usize, theta: f64) -> f64 {
        position.min(4096) as f64 * theta
    }
}
