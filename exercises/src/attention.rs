//! The tasks of grouped-query attention and its cache.
//!
//! A token asks with its query, is found by its key, and gives its value:
//!
//! ```text
//! y = softmax(q · kᵀ / sqrt(hd)) · v        over the positions that a token sees: its own and those before it
//! ```
//!
//! Sources: Vaswani et al. 2017; grouped heads, Ainslie et al. 2023.
//!
//! Letters, besides those of the other files: `nkv` key and value heads, `p` positions in the cache, `t = p + s`
//! positions that can be read.

use crate::prelude::*;

/// Queries, keys or values of several heads, `[b, s, n, hd]`, with sizes that are known at run time.
pub type Heads<D, T = NoneTape> = Tensor<(usize, usize, usize, usize), f32, D, T>;

/// Task `attention/repeat`. Each head `times` times, `[b, t, nkv, hd]` to `[b, t, nkv * times, hd]`.
///
/// Grouped queries share a key: with two in a group, query heads 0 and 1 read key head 0, and heads 2 and 3 read key
/// head 1. Head `j` of the result is therefore head `j / times` of `x`, and copies are NEIGHBOURS, `0, 0, 1, 1`,
/// instead of taking turns, `0, 1, 0, 1`. `x` may be a view, and it may have a tape, which gives each head the
/// gradients of all its copies.
pub fn repeat_kv<D: Device<f32>, T: Tape<f32, D>>(x: Heads<D, T>, times: usize) -> Heads<D, T> {
    // task attention/repeat: begin
    todo!("task attention/repeat")
    // task attention/repeat: end
}

/// Task `attention/mask`. Who may look at whom, when `p` tokens are in the cache and `s` are new: `[s, p + s]`, row by
/// row.
///
/// Row `i` is the new token at position `p + i`, which sees itself, the new tokens before it, and all of the cache.
pub fn causal_mask(s: usize, p: usize) -> Vec<bool> {
    // task attention/mask: begin
    todo!("task attention/mask")
    // task attention/mask: end
}

/// Task `attention/forward`. Causal attention: `q` `[b, s, nh, hd]`, `k` and `v` `[b, t, nkv, hd]` to `[b, s, nh, hd]`.
///
/// ```text
/// scores  = q · kᵀ / sqrt(hd)                      of each query head with its key head
/// scores  = -infinity where a query does not see   with your mask
/// weights = softmax(scores)                        over the keys
/// y       = weights · v
/// ```
///
/// The queries are those of the LAST `s` of the `t` positions, because `p = t - s` were there before. Use your tasks
/// `attention/repeat` and `attention/mask`. Scores may be in the thousands, but dfdx's `softmax` subtracts the largest
/// first. What is not seen has no part, however large its score is and even if its key holds NaN: minus infinity
/// replaces the score, since a NaN to which you add minus infinity stays NaN.
///
/// Refuse an `nh` that is not a multiple of `nkv`, and an `s` above `t`. Everything you compute must be on the tape,
/// because the gradients of `q`, `k` and `v` are tested, too. A NaN in one text of a batch stays in that text.
pub fn attend<D: Device<f32> + TensorFromVec<bool>, T: Tape<f32, D>>(
    q: Heads<D, T>,
    k: Heads<D, T>,
    v: Heads<D, T>,
) -> Result<Heads<D, T>> {
    // task attention/forward: begin
    todo!("task attention/forward")
    // task attention/forward: end
}

/// Task `attention/softmax-backward`. The gradient of a softmax along the last axis, by hand and without a tape.
///
/// `y`, `[b, nh, s, t]`, is what the softmax gave, and `dy` the gradient of the loss with respect to it. What one
/// position gains, the others of its row lose:
///
/// ```text
/// dx = y · (dy - sum over the row of y · dy)
/// ```
///
/// A NaN stays in its row, and no number replaces it.
pub fn softmax_backward<D: Device<f32>>(y: Heads<D>, dy: Heads<D>) -> Heads<D> {
    // task attention/softmax-backward: begin
    todo!("task attention/softmax-backward")
    // task attention/softmax-backward: end
}

/// The keys and values of a text so far, kept so that they are not computed again for each new token.
#[derive(Clone)]
pub struct KvCache<D: Device<f32>> {
    /// The largest number of positions.
    pub capacity: usize,
    /// Keys and values, `[b, p, nkv, hd]` each; nothing before the first piece.
    pub kept: Option<(Heads<D>, Heads<D>)>,
}

impl<D: Device<f32>> KvCache<D> {
    /// An empty cache.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, kept: None }
    }

    /// `p`, how many positions are kept.
    pub fn positions(&self) -> usize {
        self.kept.as_ref().map_or(0, |(k, _)| k.shape().1)
    }

    /// Task `attention/cache`. Appends the keys and values of the next tokens, `[b, s, nkv, hd]` each, to those that
    /// are kept, in each batch row, and returns all of them, `[b, p + s, nkv, hd]`.
    ///
    /// Refuse a piece that does not fit into the capacity, and one whose `b`, `nkv` or `hd` differs from what is kept.
    /// A refused piece changes nothing, so the next one that fits goes on from there.
    pub fn push(&mut self, k: Heads<D>, v: Heads<D>) -> Result<(Heads<D>, Heads<D>)> {
        // task attention/cache: begin
        todo!("task attention/cache")
        // task attention/cache: end
    }
}

/// Task `attention/sliding-window`. Your mask with a window: a token sees at most the last `window` positions, its own among
/// them, when `p` tokens are in the cache and `s` are new: `[s, p + s]`, row by row.
///
/// A window of 1 shows each token itself, and one that is as long as the text hides nothing. `window` is at least 1, and
/// may be as large as a `usize` can be.
pub fn sliding_window_mask(s: usize, p: usize, window: usize) -> Vec<bool> {
    // task attention/sliding-window: begin
    todo!("task attention/sliding-window")
    // task attention/sliding-window: end
}

/// The sizes of an attention as a type: a token of `H` elements, `NH` query heads, `NKV` key and value heads, `HD`
/// elements a head.
#[derive(Debug, Clone, Copy)]
pub struct HeadSizes<const H: usize, const NH: usize, const NKV: usize, const HD: usize>;

#[allow(clippy::new_without_default)]
impl<const H: usize, const NH: usize, const NKV: usize, const HD: usize> HeadSizes<H, NH, NKV, HD> {
    /// Task `attention/types`, about types. Make these sizes impossible to compile, here, each with a message:
    ///
    /// - `NKV` 0, and an `NKV` that does not divide `NH`;
    /// - `NH` 0, and an `HD` that is 0 or odd: RoPE turns pairs;
    /// - an `H` that is not `NH * HD`.
    pub fn new() -> Self {
        // task attention/types: begin
        // to do: task attention/types, in place of this line
        // task attention/types: end
        Self
    }
}

/// Task `attention/property`. An invariant of your own.
///
/// `attention` claims to be grouped-query attention with its cache, in plain values. Return `Ok`, or an `Err` that says
/// what is wrong with it.
///
/// `attention.forward(&case)` takes an `interface::AttendCase { sizes, q, k, v }` with
/// `interface::AttendSizes { batch, queries, keys, num_heads, num_kv_heads, head_dim }` and gives `y`;
/// `attention.backward(&case, &dy)` gives an `interface::AttendGrads { dq, dk, dv }`. `attention.cache(capacity)` gives
/// a `Box<dyn interface::KeyValueCache>`: `cache.push(&piece)` takes an
/// `interface::KeysValues { shape: [b, s, nkv, hd], k, v }` and gives all that is kept, in the same form. The parts
/// have names too: `attention.repeat([b, t, nkv, hd], times, &x)`, `attention.mask(s, p)`,
/// `attention.window_mask(s, p, window)`, `attention.softmax_backward([b, nh, s, t], &y, &dy)`. Each may refuse: `?` makes
/// that your `Err`, with its words in `refusal.0`.
///
/// You are graded by the known bugs that you catch, at least 15, and you may not reject a correct one. Think of what a
/// later token may not change, of the result when all values are equal, and of a text in two pieces.
pub fn property(attention: &dyn interface::GroupedQueryAttention) -> Result<()> {
    // task attention/property: begin
    todo!("task attention/property")
    // task attention/property: end
}
