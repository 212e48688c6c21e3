//! The interface of grouped-query attention: what an implementation is asked, and what it answers.

use crate::describe::List;
pub use crate::interface::{Manner, Refusal, Reply};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// The sizes of one call. The queries are those of the LAST `s` of the `t` positions, so `t - s` are in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttendSizes {
    /// `b`.
    pub batch: usize,
    /// `s`, tokens that ask.
    pub queries: usize,
    /// `t`, tokens that may be read.
    pub keys: usize,
    /// `nh`, query heads.
    pub num_heads: usize,
    /// `nkv`, key and value heads.
    pub num_kv_heads: usize,
    /// `hd`.
    pub head_dim: usize,
}

impl AttendSizes {
    /// Of queries, `[b, s, nh, hd]`.
    pub fn of_queries(&self) -> [usize; 4] {
        [self.batch, self.queries, self.num_heads, self.head_dim]
    }

    /// Of keys and of values, `[b, t, nkv, hd]`.
    pub fn of_keys(&self) -> [usize; 4] {
        [self.batch, self.keys, self.num_kv_heads, self.head_dim]
    }
}

/// One call of attention.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttendCase {
    /// The sizes.
    pub sizes: AttendSizes,
    /// Queries, `[b, s, nh, hd]`.
    pub q: Vec<f32>,
    /// Keys, `[b, t, nkv, hd]`.
    pub k: Vec<f32>,
    /// Values, `[b, t, nkv, hd]`.
    pub v: Vec<f32>,
}

/// What attention's backward pass gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttendGrads {
    /// `[b, s, nh, hd]`.
    pub dq: Vec<f32>,
    /// `[b, t, nkv, hd]`.
    pub dk: Vec<f32>,
    /// `[b, t, nkv, hd]`.
    pub dv: Vec<f32>,
}

/// Keys and values of some tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeysValues {
    /// `[b, s, nkv, hd]`, of the keys and of the values.
    pub shape: [usize; 4],
    /// Keys.
    pub k: Vec<f32>,
    /// Values.
    pub v: Vec<f32>,
}

/// `y = softmax(q·kᵀ / √hd) · v`, causal, with grouped heads: its parts, itself, and its cache.
pub trait GroupedQueryAttention {
    /// Each head of `x` `times` times, one copy beside the other: `[b, t, nkv, hd]` to `[b, t, nkv·times, hd]`.
    fn repeat(&self, shape: [usize; 4], times: usize, x: &[f32]) -> Reply<Vec<f32>> {
        self.repeat_in(Manner::Plain, shape, times, x)
    }

    /// Which token may look at which when `p` tokens are in the cache and `s` are new: `[s, p + s]`, row by row.
    fn mask(&self, s: usize, p: usize) -> Reply<Vec<bool>>;

    /// The same where a token sees no more than the last `window` positions, its own among them. `window` is at least 1.
    fn window_mask(&self, s: usize, p: usize, window: usize) -> Reply<Vec<bool>>;

    /// `y`, `[b, s, nh, hd]`.
    fn forward(&self, case: &AttendCase) -> Reply<Vec<f32>> {
        self.forward_in(Manner::Plain, case)
    }

    /// The gradients of the loss, when `dy`, `[b, s, nh, hd]`, is its gradient with respect to `y`.
    fn backward(&self, case: &AttendCase, dy: &[f32]) -> Reply<AttendGrads> {
        self.backward_in(Manner::Plain, case, dy)
    }

    /// The gradient of the scores, `[b, nh, s, t]`, when `dy` is that of the weights `y`: the softmax runs along the
    /// last axis.
    fn softmax_backward(&self, shape: [usize; 4], y: &[f32], dy: &[f32]) -> Reply<Vec<f32>> {
        self.softmax_backward_in(Manner::Plain, shape, y, dy)
    }

    /// An empty cache for at most `capacity` positions.
    fn cache(&self, capacity: usize) -> Reply<Box<dyn KeyValueCache>>;

    /// The gradient of `x`, when `dy`, `[b, t, nkv·times, hd]`, is that of its repeated heads. `shape` is that of `x`.
    fn repeat_backward(
        &self,
        manner: Manner,
        shape: [usize; 4],
        times: usize,
        dy: &[f32],
    ) -> Reply<Vec<f32>>;

    /// [`GroupedQueryAttention::repeat`], asked in this manner.
    fn repeat_in(
        &self,
        manner: Manner,
        shape: [usize; 4],
        times: usize,
        x: &[f32],
    ) -> Reply<Vec<f32>>;

    /// [`GroupedQueryAttention::forward`], asked in this manner.
    fn forward_in(&self, manner: Manner, case: &AttendCase) -> Reply<Vec<f32>>;

    /// [`GroupedQueryAttention::backward`], asked in this manner.
    fn backward_in(&self, manner: Manner, case: &AttendCase, dy: &[f32]) -> Reply<AttendGrads>;

    /// [`GroupedQueryAttention::softmax_backward`], asked in this manner.
    fn softmax_backward_in(
        &self,
        manner: Manner,
        shape: [usize; 4],
        y: &[f32],
        dy: &[f32],
    ) -> Reply<Vec<f32>>;
}

/// The keys and values of a text so far.
pub trait KeyValueCache {
    /// Adds those of the next tokens, and gives all, `[b, p + s, nkv, hd]`. What does not fit is refused, and then
    /// nothing has changed.
    fn push(&mut self, piece: &KeysValues) -> Reply<KeysValues> {
        self.push_in(Manner::Plain, piece)
    }

    /// `p`, how many positions are kept.
    fn positions(&self) -> Reply<usize>;

    /// [`KeyValueCache::push`], asked in this manner.
    fn push_in(&mut self, manner: Manner, piece: &KeysValues) -> Reply<KeysValues>;
}

// The cases as a report shows them.

impl Display for AttendCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { sizes, q, k, v } = self;
        let (of_q, of_k) = (sizes.of_queries(), sizes.of_keys());
        writeln!(f, "q {of_q:?}, k and v {of_k:?}")?;
        writeln!(f, "q = {}", List(q))?;
        writeln!(f, "k = {}", List(k))?;
        write!(f, "v = {}", List(v))
    }
}

impl Display for KeysValues {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, k, v } = self;
        writeln!(f, "k and v {shape:?}")?;
        writeln!(f, "k = {}", List(k))?;
        write!(f, "v = {}", List(v))
    }
}
