//! The tasks of the model: your own parts, put together.
//!
//! A Llama decoder is a table, a row of blocks, a norm, and a matrix that gives the logits of the next token:
//!
//! ```text
//! x      = table[ids]                                              [b, s, h]
//! x      = x + attention(norm_1(x)),  x = x + network(norm_2(x))   in each block
//! logits = norm(x) Wᵀ                                              [b, s, v]
//! ```
//!
//! Source: Touvron et al. 2023, "LLaMA". This file uses your `norm`, `embedding`, `rope`, `attention`, `feedforward`
//! and `loss`, so their tasks come first: a panic that names another task means that the other one is not done yet.

use crate::attention::{Heads, KvCache, attend};
use crate::embedding::VocabEmbedding;
use crate::feedforward::SwiGlu;
use crate::loss::{cross_entropy, next_tokens};
use crate::norm::GroupRmsNorm;
use crate::prelude::*;
use crate::rope::NtkAwareRope;

/// Tokens, `[b, s, h]`.
pub type Tokens<const H: usize, D, T = NoneTape> = Tensor<(usize, usize, Const<H>), f32, D, T>;

/// A matrix with `H` elements in a row, `[rows, h]`.
pub type Matrix<const H: usize, D> = Tensor<(usize, Const<H>), f32, D>;

/// A block of hidden size `H`, with heads of `HD` elements and a network of `FF` between.
#[derive(Clone)]
pub struct Block<const H: usize, const HD: usize, const FF: usize, D: Device<f32>> {
    /// Before attention.
    pub input_norm: GroupRmsNorm<H, H, D>,
    /// To queries, `[nh * hd, h]`.
    pub q: Matrix<H, D>,
    /// To keys, `[nkv * hd, h]`.
    pub k: Matrix<H, D>,
    /// To values, `[nkv * hd, h]`.
    pub v: Matrix<H, D>,
    /// From what the heads found to tokens, `[h, nh * hd]`.
    pub o: Matrix<H, D>,
    /// Turns queries and keys.
    pub rope: NtkAwareRope<HD, D>,
    /// Before the network.
    pub post_norm: GroupRmsNorm<H, H, D>,
    /// Works on each token alone.
    pub network: SwiGlu<H, FF, D>,
}

/// The product of tokens `[b, s, h]` with each row of a matrix, `[b, s, rows]`.
pub fn project<const H: usize, D: Device<f32>, T: Tape<f32, D>>(
    x: Tokens<H, D, T>,
    matrix: &Matrix<H, D>,
) -> Tensor<(usize, usize, usize), f32, D, T> {
    x.matmul(matrix.retaped::<T>().permute::<_, Axes2<1, 0>>())
}

impl<const H: usize, const HD: usize, const FF: usize, D> Block<H, HD, FF, D>
where
    D: Device<f32> + TensorFromVec<bool>,
{
    /// Task `model/block`. Tokens `[b, s, h]` from position `offset` on, to tokens `[b, s, h]`.
    ///
    /// ```text
    /// n = input_norm(x)                  then queries, keys and values: n times q, k and v
    /// queries and keys turned by rope    positions offset .. offset + s; values are not turned
    /// x = x + found · oᵀ                 what `attend` finds
    /// x = x + network(post_norm(x))
    /// ```
    ///
    /// `attend` takes queries `[b, s, nh, hd]`, keys and values `[b, s, nkv, hd]`, and gives what was found,
    /// `[b, s, nh, hd]`. It is your attention, with or without a cache.
    ///
    /// [`project`] multiplies, and the heads of a row come one after the other, each of `HD` elements. A call may
    /// change an `NtkAwareRope`, so take a `clone()` of it. All of this must be on the tape: use `x.with_empty_tape()`,
    /// as in `norm/forward`.
    pub fn forward<T: Tape<f32, D>>(
        &self,
        x: Tokens<H, D, T>,
        offset: usize,
        attend: impl FnOnce(Heads<D, T>, Heads<D, T>, Heads<D, T>) -> Result<Heads<D, T>>,
    ) -> Result<Tokens<H, D, T>> {
        // task model/block: begin
        let (b, s, _) = *x.shape();
        let heads = |n: Tokens<H, D, T>, matrix: &Matrix<H, D>| {
            let number = matrix.shape().0 / HD;
            project(n, matrix).reshape_like(&(b, s, number, Const::<HD>)) // [b, s, n, hd]
        };
        let turned = |heads| self.rope.clone().forward(heads, offset);
        let plain = |heads: Tensor<(usize, usize, usize, Const<HD>), f32, D, T>| {
            let (b, s, n, _) = *heads.shape();
            heads.reshape_like(&(b, s, n, HD))
        };

        let n = self.input_norm.forward(x.with_empty_tape()); //            [b, s, h]
        let q = plain(turned(heads(n.with_empty_tape(), &self.q))?); //     [b, s, nh, hd]
        let k = plain(turned(heads(n.with_empty_tape(), &self.k))?); //     [b, s, nkv, hd]
        let v = plain(heads(n, &self.v)); //                                [b, s, nkv, hd]
        let found = attend(q, k, v)?.reshape_like(&(b, s, Const::<H>)); //  [b, s, nh * hd]
        let found = project(found, &self.o).reshape_like(&(b, s, Const::<H>));
        let x = x + found; //                                               [b, s, h]
        let n = self.post_norm.forward(x.with_empty_tape()); //             [b, s, h]
        Ok(x + self.network.forward(n)) //                                  [b, s, h]
        // task model/block: end
    }
}

/// A model with a vocabulary of `V`, whose other sizes are those of its blocks.
#[derive(Clone)]
pub struct Llama<const V: usize, const H: usize, const HD: usize, const FF: usize, D: Device<f32>> {
    /// The table, `[v, h]`.
    pub table: VocabEmbedding<V, H, D>,
    /// In their order.
    pub blocks: Vec<Block<H, HD, FF, D>>,
    /// After the last block.
    pub norm: GroupRmsNorm<H, H, D>,
    /// The output, `[v, h]`. If there is none, the table serves once more: the weights are tied.
    pub head: Option<Tensor<Rank2<V, H>, f32, D>>,
}

/// Logits, `[b, s, v]`.
pub type Logits<const V: usize, D, T = NoneTape> = Tensor<(usize, usize, Const<V>), f32, D, T>;

impl<const V: usize, const H: usize, const HD: usize, const FF: usize, D> Llama<V, H, HD, FF, D>
where
    D: Device<f32> + TensorFromVec<bool>,
{
    /// The table's rows for the ids, `[b, s]` to `[b, s, h]`. (The reshape changes nothing once `embedding/types` is
    /// done.)
    fn rows<T: Tape<f32, D>>(
        &self,
        ids: Tensor<(usize, usize), usize, D, T>,
    ) -> Result<Tokens<H, D, T>> {
        let (b, s) = *ids.shape();
        Ok(self.table.forward(ids)?.reshape_like(&(b, s, Const::<H>)))
    }

    /// The logits of tokens that left the last block: the last norm, and the output.
    fn logits<T: Tape<f32, D>>(&self, x: Tokens<H, D, T>) -> Logits<V, D, T> {
        let output = self.head.as_ref().unwrap_or(&self.table.weight).retaped::<T>(); // [v, h]
        self.norm.forward(x).matmul(output.permute::<_, Axes2<1, 0>>()) //               [b, s, v]
    }

    /// Task `model/forward`. From ids `[b, s]` to logits `[b, s, v]`: `rows`, all blocks, and `logits`.
    ///
    /// The ids carry the tape, since the gradient of every weight is tested. A text begins at position 0, and each
    /// block looks with your `attend`. What a part refuses is refused: `?` hands an `Err` on.
    pub fn forward<T: Tape<f32, D>>(
        &self,
        ids: Tensor<(usize, usize), usize, D, T>,
    ) -> Result<Logits<V, D, T>> {
        // task model/forward: begin
        let mut x = self.rows(ids)?; //                                     [b, s, h]
        for block in &self.blocks {
            x = block.forward(x, 0, attend)?; //                            [b, s, h]
        }
        Ok(self.logits(x)) //                                               [b, s, v]
        // task model/forward: end
    }

    /// Task `model/decode`. The logits `[b, s, v]` of tokens that follow those in the caches, one cache for each block.
    ///
    /// The tokens come after all that is kept, so their first position is `cache.positions()`. A block looks with your
    /// `attend` at what its cache holds once it has taken in the new keys and values.
    pub fn decode(
        &self,
        ids: Tensor<(usize, usize), usize, D>,
        caches: &mut [KvCache<D>],
    ) -> Result<Logits<V, D>> {
        // task model/decode: begin
        let mut x = self.rows(ids)?; //                                     [b, s, h]
        for (block, cache) in self.blocks.iter().zip(caches) {
            let offset = cache.positions();
            x = block.forward(x, offset, |q, k, v| {
                let (k, v) = cache.push(k, v)?; //                          [b, p + s, nkv, hd]
                attend(q, k, v)
            })?; //                                                         [b, s, h]
        }
        Ok(self.logits(x)) //                                               [b, s, v]
        // task model/decode: end
    }

    /// Task `model/learn`. One step of training on texts `[b, s]`, which moves every weight downhill by `rate` times
    /// its gradient. Returns the loss before the step.
    ///
    /// 1. `next_tokens` makes inputs and targets of the ids, and `dev.tensor_from_vec(inputs, (b, s - 1)).traced(..)`
    ///    puts a tape on the inputs: `Gradients::leaky()` makes an empty one.
    /// 2. Compute the logits of the inputs, and their `cross_entropy`.
    /// 3. `loss.backward()` gives the gradients, and [`Llama::step`] makes the step.
    pub fn learn(&mut self, ids: &[usize], [b, s]: [usize; 2], rate: f32) -> Result<f32>
    where
        D: TensorFromVec<usize>,
    {
        // task model/learn: begin
        let dev = self.table.weight.device().clone();
        let (inputs, targets) = next_tokens(ids, [b, s])?; //               [b, s - 1]
        let inputs = dev.tensor_from_vec(inputs, (b, s - 1)).traced(Gradients::leaky());
        let logits = self.forward(inputs)?; //                              [b, s - 1, v]
        let targets: Vec<Option<usize>> = targets.into_iter().map(Some).collect();
        let loss = cross_entropy(logits, &targets)?; //                     []
        let told = loss.as_vec()[0];
        self.step(loss.backward(), rate);
        Ok(told)
        // task model/learn: end
    }

    /// Every weight becomes `weight - rate * gradient`.
    pub fn step(&mut self, mut gradients: Gradients<f32, D>, rate: f32) {
        fn stepped<S: Shape, D: Device<f32>>(
            weight: &mut Tensor<S, f32, D>,
            gradients: &mut Gradients<f32, D>,
            rate: f32,
        ) {
            // Zeros, where no gradient has reached it.
            if gradients.try_alloc_for(weight).is_ok() {
                *weight = weight.clone() - gradients.get(weight) * rate;
            }
        }
        let gradients = &mut gradients;
        stepped(&mut self.table.weight, gradients, rate);
        for block in &mut self.blocks {
            for matrix in [&mut block.q, &mut block.k, &mut block.v, &mut block.o] {
                stepped(matrix, gradients, rate);
            }
            stepped(&mut block.input_norm.weight, gradients, rate);
            stepped(&mut block.post_norm.weight, gradients, rate);
            stepped(&mut block.network.gate, gradients, rate);
            stepped(&mut block.network.up, gradients, rate);
            stepped(&mut block.network.down, gradients, rate);
        }
        stepped(&mut self.norm.weight, gradients, rate);
        if let Some(head) = &mut self.head {
            stepped(head, gradients, rate);
        }
    }
}

/// Task `model/sample`. The next token, for the logits `[v]` of one place.
///
/// ```text
/// 1. temperature 0: the token with the largest logit. Of equal ones, the first.
/// 2. sort by logit, the largest first; of equal ones, the smaller id first
/// 3. keep the first top_k, if there is a top_k
/// 4. p = softmax(logits / temperature) over those that are kept
/// 5. keep the fewest from the front whose p sum to top_p or more
/// 6. draw: the first token at which the running sum of p exceeds unit · (sum of all p that are kept)
/// ```
///
/// `unit` is at least 0 and below 1. Compute in `f64`, because in `f32` a `unit` near an edge may draw the neighbour. A
/// logit of minus infinity forbids its id, which is then never drawn.
///
/// At any temperature, refuse logits that are empty, NaN or plus infinity, and logits of which none is above minus infinity; a
/// temperature that is negative or not finite; a `top_k` of 0; a `top_p` that is not above 0 or is above 1.
pub fn sample(
    logits: &[f32],
    temperature: f64,
    top_k: Option<usize>,
    top_p: f64,
    unit: f64,
) -> Result<usize> {
    // task model/sample: begin
    if logits.iter().any(|logit| logit.is_nan() || *logit == f32::INFINITY) {
        return Err("every logit must be a number below infinity".to_string());
    }
    if !logits.iter().any(|logit| logit.is_finite()) {
        return Err("some logit must be above minus infinity".to_string());
    }
    if !(temperature.is_finite() && temperature >= 0.0) {
        return Err(format!("the temperature must be at least 0, got {temperature}"));
    }
    if top_k == Some(0) || !(top_p > 0.0 && top_p <= 1.0) {
        return Err(format!("top_k {top_k:?} and top_p {top_p} must leave a token"));
    }
    let mut order: Vec<usize> = (0..logits.len()).collect();
    // No logit is NaN. The sort is stable: of equal ones the smaller id stays first.
    order.sort_by(|&a, &b| logits[b].partial_cmp(&logits[a]).unwrap_or(std::cmp::Ordering::Equal));
    if temperature == 0.0 {
        return Ok(order[0]);
    }
    order.truncate(top_k.unwrap_or(usize::MAX));

    let largest = f64::from(logits[order[0]]);
    let terms = order.iter().map(|&id| ((f64::from(logits[id]) - largest) / temperature).exp());
    let terms: Vec<f64> = terms.collect();
    let enough = top_p * terms.iter().sum::<f64>();
    let mut kept = 0.0;
    let nucleus = terms.iter().take_while(|term| {
        let inside = kept < enough;
        kept += if inside { **term } else { 0.0 };
        inside
    });
    let nucleus = nucleus.count();

    let mut sum = 0.0;
    for (place, term) in terms[..nucleus].iter().enumerate() {
        sum += term;
        if sum > unit * kept {
            return Ok(order[place]);
        }
    }
    Ok(order[nucleus - 1]) // rounding left a little over
    // task model/sample: end
}
