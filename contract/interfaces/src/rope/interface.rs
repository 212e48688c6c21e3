//! The interface of NTK-aware RoPE: what an implementation is asked, and what it answers.

use crate::describe::List;
use crate::interface::runs;
pub use crate::interface::{Manner, Refusal, Reply};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::ops::Range;

/// Which two dimensions of a head turn together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Layout {
    /// `(x_i, x_{i + d/2})`.
    HalfSplit,
    /// `(x_{2i}, x_{2i + 1})`.
    Interleaved,
}

/// Cosines and sines, `[rows, hd]` each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tables {
    /// Cosines of the angles.
    pub cos: Vec<f32>,
    /// Sines of the angles.
    pub sin: Vec<f32>,
}

/// One rotation by given tables.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RotateCase {
    /// `[b, s, nh, hd]`.
    pub shape: [usize; 4],
    /// Row `t` is for row `t` of `x`, `[s, hd]`.
    pub tables: Tables,
    /// `[b, s, nh, hd]`.
    pub x: Vec<f32>,
    /// Of `x` and of the tables.
    pub layout: Layout,
}

/// Settings of a RoPE module.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RopeSettings {
    /// `hd`.
    pub head_dim: usize,
    /// Base of the frequencies.
    pub base: f64,
    /// `ms`, training length in positions.
    pub max_seq_len: usize,
    /// `k`, NTK ratio.
    pub ratio: usize,
    /// Whether a call past the cache changes it for good.
    pub dynamic: bool,
}

/// One call of a RoPE module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RopeCase {
    /// `[b, s, nh, hd]`.
    pub shape: [usize; 4],
    /// Position of row 0.
    pub offset: usize,
    /// `[b, s, nh, hd]`, half-split.
    pub x: Vec<f32>,
}

impl RopeCase {
    /// The calls with an offset that ask what one with these `position_ids`, `[b, s]`, does.
    ///
    /// # Errors
    /// There is not one for each token.
    pub fn runs(&self, position_ids: &[usize]) -> Reply<Vec<Self>> {
        let [b, s, nh, hd] = self.shape;
        let run = |(ids, x): (&[usize], &[f32])| {
            Self { shape: [1, ids.len(), nh, hd], offset: ids[0], x: x.to_vec() }
        };
        Ok(runs(position_ids, [b, s], &self.x)?.into_iter().map(run).collect())
    }
}

/// What a RoPE module holds between calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RopeState {
    /// `k`.
    pub ratio: usize,
    /// `es = ms * k`, rows of the cache.
    pub cached_len: usize,
    /// The cache itself, `[es, hd]`.
    pub tables: Tables,
}

/// NTK-aware rotary position embedding: its parts, and the module made of them.
pub trait NtkAwareRope {
    /// `theta_i`, `i = 0 .. hd/2 - 1`.
    fn frequencies(&self, head_dim: usize, base: f64, ratio: f64) -> Reply<Vec<f64>>;

    /// The half-split tables of these positions, `[rows, hd]`.
    fn tables(
        &self,
        head_dim: usize,
        base: f64,
        ratio: f64,
        positions: Range<usize>,
    ) -> Reply<Tables>;

    /// `x` turned by the tables, `[b, s, nh, hd]`.
    fn rotate(&self, case: &RotateCase) -> Reply<Vec<f32>> {
        self.rotate_in(Manner::Plain, case)
    }

    /// The gradient of `x` for `dy`, `[b, s, nh, hd]`; `case.x` is not needed for it.
    fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.rotate_backward_in(Manner::Plain, case, dy)
    }

    /// [`NtkAwareRope::rotate`], asked in this manner.
    fn rotate_in(&self, manner: Manner, case: &RotateCase) -> Reply<Vec<f32>>;

    /// [`NtkAwareRope::rotate_backward`], asked in this manner.
    fn rotate_backward_in(&self, manner: Manner, case: &RotateCase, dy: &[f32]) -> Reply<Vec<f32>>;

    /// Each head, half-split, reordered to adjacent pairs. `x` is `[rows, hd]`.
    fn to_interleaved(&self, head_dim: usize, x: &[f32]) -> Reply<Vec<f32>>;

    /// The inverse of [`NtkAwareRope::to_interleaved`].
    fn to_half_split(&self, head_dim: usize, x: &[f32]) -> Reply<Vec<f32>>;

    /// `k'`, the ratio for a call that ends at `length` positions, past the cache.
    fn ratio_for_length(&self, length: usize, max_seq_len: usize) -> Reply<usize>;

    /// A module with these settings.
    fn build(&self, settings: &RopeSettings) -> Reply<Box<dyn RopeModule>>;
}

/// A built RoPE module: a small machine that is called several times.
pub trait RopeModule {
    /// `x` turned by its positions.
    fn forward(&mut self, case: &RopeCase) -> Reply<Vec<f32>> {
        self.forward_in(Manner::Plain, case)
    }

    /// The gradient of `x` through such a call, for `dy`, `[b, s, nh, hd]`.
    fn backward(&mut self, case: &RopeCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.backward_in(Manner::Plain, case, dy)
    }

    /// What it holds now.
    fn state(&self) -> Reply<RopeState>;

    /// Another one that is the same.
    fn cloned(&self) -> Reply<Box<dyn RopeModule>>;

    /// [`RopeModule::forward`], asked in this manner.
    fn forward_in(&mut self, manner: Manner, case: &RopeCase) -> Reply<Vec<f32>>;

    /// [`RopeModule::backward`], asked in this manner.
    fn backward_in(&mut self, manner: Manner, case: &RopeCase, dy: &[f32]) -> Reply<Vec<f32>>;

    /// `x` turned by a position for each token, `position_ids`, `[b, s]`; `case.offset` is not looked at. A module that knows
    /// offsets alone is called for each run of positions that go up by one.
    fn forward_at(
        &mut self,
        manner: Manner,
        case: &RopeCase,
        position_ids: &[usize],
    ) -> Reply<Vec<f32>> {
        let mut y = Vec::new();
        for run in case.runs(position_ids)? {
            y.extend(self.forward_in(manner, &run)?);
        }
        Ok(y)
    }

    /// The gradient of `x` through such a call, for `dy`, `[b, s, nh, hd]`.
    fn backward_at(
        &mut self,
        manner: Manner,
        case: &RopeCase,
        position_ids: &[usize],
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        let mut dx = Vec::new();
        for run in case.runs(position_ids)? {
            let dy = &dy[dx.len()..][..run.x.len()];
            dx.extend(self.backward_in(manner, &run, dy)?);
        }
        Ok(dx)
    }
}

// The cases as a report shows them.

impl Display for RotateCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, tables, x, layout } = self;
        writeln!(f, "x {shape:?}, layout {layout:?}")?;
        writeln!(f, "x   = {}", List(x))?;
        writeln!(f, "cos = {}", List(&tables.cos))?;
        write!(f, "sin = {}", List(&tables.sin))
    }
}

impl Display for RopeSettings {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { head_dim, base, max_seq_len, ratio, dynamic } = self;
        write!(
            f,
            "head_dim {head_dim}, base {base}, max_seq_len {max_seq_len}, ratio {ratio}, \
             dynamic {dynamic}"
        )
    }
}

impl Display for RopeCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, offset, x } = self;
        writeln!(f, "x {shape:?}, offset {offset}")?;
        write!(f, "x = {}", List(x))
    }
}
