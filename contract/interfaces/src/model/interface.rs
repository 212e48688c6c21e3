//! The interface of the model: what an implementation is asked, and what it answers.

use crate::describe::List;
pub use crate::interface::{Refusal, Reply};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// The sizes of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sizes {
    /// Vocabulary.
    pub v: usize,
    /// Hidden size, `nh * hd`.
    pub h: usize,
    /// Query heads.
    pub nh: usize,
    /// Key and value heads.
    pub nkv: usize,
    /// Size of a head.
    pub hd: usize,
    /// Hidden size of the feed-forward network.
    pub f: usize,
}

/// The weights of a block, as its checkpoint has them: a matrix is `[out, in]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockWeights {
    /// Gamma before attention, `[h]`.
    pub input_norm: Vec<f32>,
    /// `[nh * hd, h]`.
    pub q: Vec<f32>,
    /// `[nkv * hd, h]`.
    pub k: Vec<f32>,
    /// `[nkv * hd, h]`.
    pub v: Vec<f32>,
    /// `[h, nh * hd]`.
    pub o: Vec<f32>,
    /// Gamma before the network, `[h]`.
    pub post_norm: Vec<f32>,
    /// `[f, h]`.
    pub gate: Vec<f32>,
    /// `[f, h]`.
    pub up: Vec<f32>,
    /// `[h, f]`.
    pub down: Vec<f32>,
}

impl BlockWeights {
    /// Its tensors, in their order.
    pub fn tensors(&self) -> [&Vec<f32>; 9] {
        let Self { input_norm, q, k, v, o, post_norm, gate, up, down } = self;
        [input_norm, q, k, v, o, post_norm, gate, up, down]
    }

    /// The same, to be changed.
    pub fn tensors_mut(&mut self) -> [&mut Vec<f32>; 9] {
        let Self { input_norm, q, k, v, o, post_norm, gate, up, down } = self;
        [input_norm, q, k, v, o, post_norm, gate, up, down]
    }
}

/// One call of a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockCase {
    /// `b` and `s`.
    pub tokens: [usize; 2],
    /// The vocabulary does not matter here.
    pub sizes: Sizes,
    /// Of both norms.
    pub eps: f64,
    /// Of the rotation.
    pub base: f64,
    /// The weights.
    pub weights: BlockWeights,
    /// Tokens of each text that come before the others, in a separate call: the block finds their keys and values
    /// before those of the others. 0 is one call.
    pub offset: usize,
    /// `[b, s, h]`.
    pub x: Vec<f32>,
}

impl BlockCase {
    /// What a gradient is asked for: `x`, then each weight in its order.
    pub fn tensors(&self) -> Vec<&Vec<f32>> {
        std::iter::once(&self.x).chain(self.weights.tensors()).collect()
    }

    /// The same, to be changed.
    pub fn tensors_mut(&mut self) -> Vec<&mut Vec<f32>> {
        std::iter::once(&mut self.x).chain(self.weights.tensors_mut()).collect()
    }
}

/// A model, and a text for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCase {
    /// The sizes.
    pub sizes: Sizes,
    /// Of all norms.
    pub eps: f64,
    /// Of the rotation.
    pub base: f64,
    /// `[v, h]`.
    pub table: Vec<f32>,
    /// One for each block.
    pub blocks: Vec<BlockWeights>,
    /// Gamma after the last block, `[h]`.
    pub norm: Vec<f32>,
    /// `[v, h]`. Without it, the table serves as output too: the weights are tied.
    pub head: Option<Vec<f32>>,
    /// `b` and `s`.
    pub tokens: [usize; 2],
    /// `[b, s]`.
    pub ids: Vec<usize>,
    /// Positions that the caches have room for, and that the rotation was made for: `s`, or fewer where a text is too long.
    pub positions: usize,
}

impl ModelCase {
    /// All weights: the table, each block's in its order, the last gamma, and the head if there is one.
    pub fn weights(&self) -> Vec<&Vec<f32>> {
        let blocks = self.blocks.iter().flat_map(BlockWeights::tensors);
        std::iter::once(&self.table).chain(blocks).chain([&self.norm]).chain(&self.head).collect()
    }

    /// The same, to be changed.
    pub fn weights_mut(&mut self) -> Vec<&mut Vec<f32>> {
        let blocks = self.blocks.iter_mut().flat_map(BlockWeights::tensors_mut);
        let (table, norm) = (std::iter::once(&mut self.table), [&mut self.norm]);
        table.chain(blocks).chain(norm).chain(&mut self.head).collect()
    }
}

/// The logits of one place, and how the next token is drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleCase {
    /// `[v]`.
    pub logits: Vec<f32>,
    /// The logits are divided by it. 0 takes the likeliest token.
    pub temperature: f64,
    /// Only so many of the likeliest tokens may be drawn.
    pub top_k: Option<usize>,
    /// Only the likeliest tokens that together have this probability may be drawn.
    pub top_p: f64,
    /// A number from 0 to below 1, which decides.
    pub unit: f64,
}

/// What a step of training gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trained {
    /// The loss before the step.
    pub loss: f32,
    /// All weights after it, one after the other: see [`ModelCase::weights`].
    pub weights: Vec<f32>,
}

/// A Llama decoder, and what is done with it.
pub trait Llama {
    /// A pre-norm block: from tokens `[b, s, h]` to tokens `[b, s, h]`.
    fn block(&self, case: &BlockCase) -> Reply<Vec<f32>>;

    /// The gradients of [`BlockCase::tensors`], one after the other, when `dy`, `[b, s, h]`, is that of a block's answer in one
    /// call.
    fn block_backward(&self, case: &BlockCase, dy: &[f32]) -> Reply<Vec<f32>>;

    /// The logits `[b, s, v]` of texts.
    fn forward(&self, case: &ModelCase) -> Reply<Vec<f32>>;

    /// The gradients of [`ModelCase::weights`], one after the other, when `dy`, `[b, s, v]`, is that of the logits.
    fn backward(&self, case: &ModelCase, dy: &[f32]) -> Reply<Vec<f32>>;

    /// The same logits, when the texts come in pieces of these lengths, with keys and values kept in between. Refused, if the
    /// caches have no room for a piece.
    fn decode(&self, case: &ModelCase, pieces: &[usize]) -> Reply<Vec<f32>>;

    /// The next token.
    fn sample(&self, case: &SampleCase) -> Reply<usize>;

    /// One step of gradient descent on the texts: `w - rate * gradient` for each weight `w`. The loss is the mean
    /// cross-entropy of each token but the first, given those before it.
    fn train(&self, case: &ModelCase, rate: f32) -> Reply<Trained>;
}

// The cases as a report shows them.

impl Display for Sizes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { v, h, nh, nkv, hd, f: ff } = self;
        write!(f, "v {v}, h {h}, nh {nh}, nkv {nkv}, hd {hd}, f {ff}")
    }
}

impl Display for BlockCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { tokens: [b, s], sizes, eps, base, weights, offset, x } = self;
        writeln!(f, "x [{b}, {s}, {}], {sizes}, eps {eps:e}, base {base}", sizes.h)?;
        if *offset > 0 {
            writeln!(f, "the first {offset} tokens in a call of their own, the others from offset {offset} on")?;
        }
        writeln!(f, "x = {}", List(x))?;
        write!(f, "first norm's gamma = {}", List(&weights.input_norm))?;
        write!(f, "\nsecond norm's gamma = {}", List(&weights.post_norm))
    }
}

impl Display for ModelCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { tokens: [b, s], sizes, eps, base, ids, .. } = self;
        let tied = if self.head.is_none() { ", tied" } else { "" };
        let blocks = self.blocks.len();
        writeln!(f, "ids [{b}, {s}], {blocks} blocks, {sizes}, eps {eps:e}, base {base}{tied}")?;
        write!(f, "ids = {}", List(ids))
    }
}

impl Display for SampleCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { logits, temperature, top_k, top_p, unit } = self;
        let top_k = top_k.map_or("none".to_string(), |k| k.to_string());
        writeln!(f, "temperature {temperature}, top_k {top_k}, top_p {top_p}, unit {unit}")?;
        write!(f, "logits = {}", List(logits))
    }
}
