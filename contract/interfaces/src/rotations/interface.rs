//! The interface of more rotations: what an implementation is asked, and what it answers.

use crate::describe::List;
pub use crate::interface::{Manner, Refusal, Reply};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// One call of xPos, half-split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct XPosCase {
    /// `[b, s, nh, hd]`.
    pub shape: [usize; 4],
    /// Base of the frequencies.
    pub base: f64,
    /// Over how many positions a plane of scale `zeta` decays by `zeta`.
    pub scale_base: f64,
    /// The position at which both scales are 1.
    pub center: usize,
    /// Position of row 0.
    pub offset: usize,
    /// `[b, s, nh, hd]`.
    pub q: Vec<f32>,
    /// `[b, s, nh, hd]`.
    pub k: Vec<f32>,
}

/// Queries and keys, turned and scaled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnedPair {
    /// `[b, s, nh, hd]`.
    pub q: Vec<f32>,
    /// `[b, s, nh, hd]`.
    pub k: Vec<f32>,
}

/// Which frequencies the planes of a section have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sections {
    /// Each section has all of them, from 1 down, `base^(-i / p)` for its `p` planes: a direct sum.
    Anew,
    /// All planes of a head have one list, `base^(-2i / hd)`, and a section is a part of it.
    OneList,
}

/// One rotation by several coordinates, half-split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AxialCase {
    /// `[b, s, nh, hd]`.
    pub shape: [usize; 4],
    /// How many planes each coordinate turns; `hd / 2` in all.
    pub planes: Vec<usize>,
    /// Their frequencies.
    pub sections: Sections,
    /// Base of the frequencies.
    pub base: f64,
    /// `[s, axes]`, the same for every batch row.
    pub coordinates: Vec<usize>,
    /// `[b, s, nh, hd]`.
    pub x: Vec<f32>,
}

/// One call of causal linear attention.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinearCase {
    /// `[b, s, nh, hd]`.
    pub shape: [usize; 4],
    /// Base of the frequencies that the numerator turns by; `None` if nothing turns.
    pub base: Option<f64>,
    /// Position of row 0.
    pub offset: usize,
    /// `[b, s, nh, hd]`.
    pub q: Vec<f32>,
    /// `[b, s, nh, hd]`.
    pub k: Vec<f32>,
    /// `[b, s, nh, hd]`.
    pub v: Vec<f32>,
}

/// What its backward pass gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinearGrads {
    /// `[b, s, nh, hd]`.
    pub dq: Vec<f32>,
    /// `[b, s, nh, hd]`.
    pub dk: Vec<f32>,
    /// `[b, s, nh, hd]`.
    pub dv: Vec<f32>,
}

/// Rotations of other kinds than RoPE's: with a decay, by several coordinates, and in attention without a softmax.
pub trait Rotations {
    /// Queries at `m` turned by `m theta_i` and multiplied by `zeta_i^((m - center) / scale_base)`, keys turned and
    /// divided by it, `zeta_i = (2i/hd + 0.4) / 1.4`.
    fn xpos(&self, case: &XPosCase) -> Reply<TurnedPair> {
        self.xpos_in(Manner::Plain, case)
    }

    /// `x` turned: each plane by its section's coordinate, times its frequency. `[b, s, nh, hd]`.
    fn axial(&self, case: &AxialCase) -> Reply<Vec<f32>> {
        self.axial_in(Manner::Plain, case)
    }

    /// The gradient of `x` for `dy`, `[b, s, nh, hd]`; `case.x` is not needed for it.
    fn axial_backward(&self, case: &AxialCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.axial_backward_in(Manner::Plain, case, dy)
    }

    /// `y_m = sum over n <= m of (R_m phi(q_m) . R_n phi(k_n)) v_n / sum over n <= m of phi(q_m) . phi(k_n)`, with
    /// `phi(x) = elu(x) + 1`. `[b, s, nh, hd]`.
    fn linear(&self, case: &LinearCase) -> Reply<Vec<f32>> {
        self.linear_in(Manner::Plain, case)
    }

    /// The gradients of the loss, when `dy`, `[b, s, nh, hd]`, is its gradient with respect to that.
    fn linear_backward(&self, case: &LinearCase, dy: &[f32]) -> Reply<LinearGrads> {
        self.linear_backward_in(Manner::Plain, case, dy)
    }

    /// [`Rotations::linear`] as sums that are carried along, piece after piece. `pieces` are their lengths; together
    /// they are `s`.
    fn running(&self, case: &LinearCase, pieces: &[usize]) -> Reply<Vec<f32>>;

    /// [`Rotations::xpos`], asked in this manner.
    fn xpos_in(&self, manner: Manner, case: &XPosCase) -> Reply<TurnedPair>;

    /// [`Rotations::axial`], asked in this manner.
    fn axial_in(&self, manner: Manner, case: &AxialCase) -> Reply<Vec<f32>>;

    /// [`Rotations::axial_backward`], asked in this manner.
    fn axial_backward_in(&self, manner: Manner, case: &AxialCase, dy: &[f32]) -> Reply<Vec<f32>>;

    /// [`Rotations::linear`], asked in this manner.
    fn linear_in(&self, manner: Manner, case: &LinearCase) -> Reply<Vec<f32>>;

    /// [`Rotations::linear_backward`], asked in this manner.
    fn linear_backward_in(
        &self,
        manner: Manner,
        case: &LinearCase,
        dy: &[f32],
    ) -> Reply<LinearGrads>;
}

// The cases as a report shows them.

impl Display for XPosCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, base, scale_base, center, offset, q, k } = self;
        writeln!(
            f,
            "q and k {shape:?}, base {base}, scale_base {scale_base}, center {center}, offset {offset}"
        )?;
        writeln!(f, "q = {}", List(q))?;
        write!(f, "k = {}", List(k))
    }
}

impl Display for AxialCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, planes, sections, base, coordinates, x } = self;
        let frequencies = match sections {
            Sections::Anew => "with frequencies from 1 down in each section",
            Sections::OneList => "with one list of frequencies",
        };
        writeln!(f, "x {shape:?}, sections of {planes:?} planes {frequencies}, base {base}")?;
        let shown = coordinates.iter().take(12 * planes.len().max(1));
        let rows: Vec<usize> = shown.copied().collect();
        let rows: Vec<String> =
            rows.chunks(planes.len().max(1)).map(|row| format!("{row:?}")).collect();
        let more = if rows.len() * planes.len() < coordinates.len() { ", .." } else { "" };
        writeln!(f, "coordinates {}{more}", rows.join(", "))?;
        write!(f, "x = {}", List(x))
    }
}

impl Display for LinearCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, base, offset, q, k, v } = self;
        match base {
            Some(base) => writeln!(f, "q, k and v {shape:?}, base {base}, offset {offset}")?,
            None => writeln!(f, "q, k and v {shape:?}, nothing turns")?,
        }
        writeln!(f, "q = {}", List(q))?;
        writeln!(f, "k = {}", List(k))?;
        write!(f, "v = {}", List(v))
    }
}
