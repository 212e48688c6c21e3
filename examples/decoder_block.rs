//! A model of your own: the modules of this crate beside dfdx's `Linear`, trained with Adam, saved,
//! loaded, and decoded token by token.
//!
//! `cargo run --release --example decoder_block` runs it; `tests/suite/decoder_block.rs` tests it.
//! Everything comes from `quadrivium`; the crate that uses it does not name dfdx.
//!
//! Letters: `b` batch, `s` tokens of this call, `t` tokens so far, `v` vocabulary size, `h` hidden
//! size, `nh` heads, `hd` head size, with `h = nh * hd`.

use quadrivium::error::{Error, Result};
use quadrivium::tensor::losses::cross_entropy_with_logits_loss;
use quadrivium::tensor::modules::Linear;
use quadrivium::tensor::optim::{Adam, AdamConfig, Optimizer};
use quadrivium::tensor::*;
use quadrivium::weights::{load_weights, save_weights};
use quadrivium::{
    GroupRmsNorm, GroupRmsNormConfig, NtkAwareRope, NtkAwareRopeConfig, PastCache, VocabEmbedding,
};

// ANCHOR: struct
/// One block: embedding, norm, causal attention with RoPE, residual, logits.
///
/// `V` vocabulary size, `H` hidden size, `HD` head size; `F` float type, `D` device.
pub struct Decoder<const V: usize, const H: usize, const HD: usize, F, D>
where
    F: Dtype,
    D: Storage<F> + Storage<f32>, // RoPE keeps its tables in f32
{
    /// From ids to rows, `[b, s]` to `[b, s, h]`.
    pub embedding: VocabEmbedding<V, H, F, D>,
    /// One group of `h`, which is RMSNorm.
    pub norm: GroupRmsNorm<H, H, F, D>,
    /// `[b, s, h]` to `[b, s, h]`, as are `key`, `value` and `output`.
    pub query: Linear<H, H, F, D>,
    /// What a query is compared with.
    pub key: Linear<H, H, F, D>,
    /// What is handed on where they agree.
    pub value: Linear<H, H, F, D>,
    /// Turns queries and keys by their position. It has no weights.
    pub rope: NtkAwareRope<HD, D>,
    /// Mixes the heads.
    pub output: Linear<H, H, F, D>,
    /// `[b, s, h]` to `[b, s, v]`.
    pub logits: Linear<H, V, F, D>,
}
// ANCHOR_END: struct

// ANCHOR: shapes
/// Token ids, `[b, s]`.
pub type Ids<D, T = NoneTape> = Tensor<(usize, usize), usize, D, T>;
/// A vector of `N` numbers for each token, `[b, s, N]`.
pub type Tokens<const N: usize, F, D, T = NoneTape> = Tensor<(usize, usize, Const<N>), F, D, T>;
/// The same cut into heads, `[b, s, nh, hd]`.
pub type Heads<const HD: usize, F, D, T = NoneTape> =
    Tensor<(usize, usize, usize, Const<HD>), F, D, T>;
// ANCHOR_END: shapes

// ANCHOR: collection
/// Names the parts. With this alone, dfdx counts, resets and converts the model, optimizers update
/// it, and `save_weights` writes it.
impl<const V: usize, const H: usize, const HD: usize, F: Float + SampleUniform, D: Backend<F>>
    TensorCollection<F, D> for Decoder<V, H, HD, F, D>
{
    type To<F2: Dtype, D2: Device<F2>> = Decoder<V, H, HD, F2, D2>;

    fn iter_tensors<Vis: ModuleVisitor<Self, F, D>>(
        visitor: &mut Vis,
    ) -> std::result::Result<Option<Self::To<Vis::E2, Vis::D2>>, Vis::Err> {
        visitor.visit_fields(
            // A tuple has at most six parts, so they are grouped. The names are in the file.
            (
                Self::module("embedding", |m| &m.embedding, |m| &mut m.embedding),
                Self::module("norm", |m| &m.norm, |m| &mut m.norm),
                (
                    Self::module("query", |m| &m.query, |m| &mut m.query),
                    Self::module("key", |m| &m.key, |m| &mut m.key),
                    Self::module("value", |m| &m.value, |m| &mut m.value),
                ),
                Self::module("rope", |m| &m.rope, |m| &mut m.rope),
                Self::module("output", |m| &m.output, |m| &mut m.output),
                Self::module("logits", |m| &m.logits, |m| &mut m.logits),
            ),
            |(embedding, norm, (query, key, value), rope, output, logits)| Decoder {
                embedding,
                norm,
                query,
                key,
                value,
                rope,
                output,
                logits,
            },
        )
    }
}
// ANCHOR_END: collection

// ANCHOR: new
impl<const V: usize, const H: usize, const HD: usize, F: Float + SampleUniform, D: Backend<F>>
    Decoder<V, H, HD, F, D>
where
    Error: From<D::Err>, // so that `?` takes what the device reports
{
    /// A model with weights drawn from the seeds of its parts and of `dev`.
    pub fn new(dev: &D) -> Result<Self> {
        const { assert!(H % HD == 0, "the head size must divide the hidden size") };
        // Gamma starts at 1, as PyTorch's does.
        let ones = GroupRmsNormConfig { init_range: (1.0, 1.0), ..Default::default() };
        // A text of more than 64 tokens is refused: kept keys would no longer fit.
        let past_cache = PastCache::Refuse;
        let rope = NtkAwareRopeConfig { max_seq_len: 64, past_cache, ..Default::default() };
        Ok(Self {
            embedding: VocabEmbedding::new(dev, Default::default())?,
            norm: GroupRmsNorm::new(dev, ones)?,
            query: Linear::try_build(dev)?,
            key: Linear::try_build(dev)?,
            value: Linear::try_build(dev)?,
            rope: NtkAwareRope::new(dev, rope)?,
            output: Linear::try_build(dev)?,
            logits: Linear::try_build(dev)?,
        })
    }
    // ANCHOR_END: new

    // ANCHOR: forward
    /// Logits `[b, s, v]` for whole texts `ids` `[b, s]`.
    pub fn try_forward<T: Tape<F, D>>(&self, ids: Ids<D, T>) -> Result<Tokens<V, F, D, T>> {
        let (x, q, k, v) = self.enter(ids, 0)?;
        self.leave(x, attend(q, k, v, 0)?)
    }

    /// From ids `[b, s]` to `x` `[b, s, h]` and its queries, keys and values `[b, s, nh, hd]`. The
    /// first token is at position `offset`.
    fn enter<T: Tape<F, D>>(
        &self,
        ids: Ids<D, T>,
        offset: usize,
    ) -> Result<(Tokens<H, F, D, T>, Heads<HD, F, D, T>, Heads<HD, F, D, T>, Heads<HD, F, D, T>)>
    {
        let (b, s) = *ids.shape();
        let heads = (b, s, H / HD, Const::<HD>);

        let x = self.embedding.try_forward(ids)?; //                  [b, s, h]
        // Used twice. `x.clone()` does not compile where `x` may have a tape.
        let n = self.norm.try_forward(x.with_empty_tape())?; //       [b, s, h]
        let q = self.query.try_forward(n.with_empty_tape())?; //      [b, s, h]
        let k = self.key.try_forward(n.with_empty_tape())?; //        [b, s, h]
        let v = self.value.try_forward(n)?; //                        [b, s, h]

        let q = q.try_reshape_like(&heads)?; //                       [b, s, nh, hd]
        let k = k.try_reshape_like(&heads)?; //                       [b, s, nh, hd]
        let v = v.try_reshape_like(&heads)?; //                       [b, s, nh, hd]
        let q = self.rope.try_forward((q, offset))?; //               [b, s, nh, hd]
        let k = self.rope.try_forward((k, offset))?; //               [b, s, nh, hd]
        Ok((x, q, k, v))
    }

    /// From `x` `[b, s, h]` and what attention found, `[b, s, nh, hd]`, to logits `[b, s, v]`.
    fn leave<T: Tape<F, D>>(
        &self,
        x: Tokens<H, F, D, T>,
        found: Heads<HD, F, D, T>,
    ) -> Result<Tokens<V, F, D, T>> {
        let (b, s, _) = *x.shape();
        let found = found.try_reshape_like(&(b, s, Const::<H>))?; //  [b, s, h]
        let x = x.try_add(self.output.try_forward(found)?)?; //       [b, s, h]
        Ok(self.logits.try_forward(x)?) //                            [b, s, v]
    }
}
// ANCHOR_END: forward

// ANCHOR: attend
/// Causal attention: query `i`, at position `offset + i`, sees keys `0 ..= offset + i`.
///
/// Shapes: `q` `[b, s, nh, hd]`, `k` and `v` `[b, t, nh, hd]`, result `[b, s, nh, hd]`.
pub fn attend<const HD: usize, F: Float, D: Backend<F>, T: Tape<F, D>>(
    q: Heads<HD, F, D, T>,
    k: Heads<HD, F, D, T>,
    v: Heads<HD, F, D, T>,
    offset: usize,
) -> Result<Heads<HD, F, D, T>>
where
    Error: From<D::Err>,
{
    let (b, s, nh, _) = *q.shape();
    let (_, t, _, _) = *k.shape();
    let q = q.try_permute::<_, Axes4<0, 2, 1, 3>>()?; //              [b, nh, s, hd]
    let k = k.try_permute::<_, Axes4<0, 2, 3, 1>>()?; //              [b, nh, hd, t]
    let v = v.try_permute::<_, Axes4<0, 2, 1, 3>>()?; //              [b, nh, t, hd]

    let hidden = |i: usize, j: usize| if j <= offset + i { F::zero() } else { F::neg_infinity() };
    let mask = (0..s).flat_map(|i| (0..t).map(move |j| hidden(i, j))).collect();
    let mask = q.device().try_tensor_from_vec(mask, (s, t))?; //      [s, t]
    let mask = mask.try_broadcast_like::<_, Axes2<0, 1>>(&(b, nh, s, t))?; // [b, nh, s, t]

    let scores = q.try_matmul(k)?; //                                 [b, nh, s, t]
    let scores = scores.try_div(F::nearest((HD as f64).sqrt()))?; //  [b, nh, s, t]
    let weights = scores.try_add(mask)?.try_softmax::<Axis<3>>()?; // [b, nh, s, t]
    let found = weights.try_matmul(v)?; //                            [b, nh, s, hd]
    Ok(found.try_permute::<_, Axes4<0, 2, 1, 3>>()?) //               [b, s, nh, hd]
}
// ANCHOR_END: attend

// ANCHOR: decode
/// The keys and values of the tokens so far, each `[b, t, nh, hd]`.
pub struct Cache<const HD: usize, F: Float, D: Backend<F>>(
    Option<(Heads<HD, F, D>, Heads<HD, F, D>)>,
);

impl<const HD: usize, F: Float, D: Backend<F>> Default for Cache<HD, F, D> {
    /// No tokens yet.
    fn default() -> Self {
        Self(None)
    }
}

impl<const HD: usize, F: Float, D: Backend<F>> Cache<HD, F, D> {
    /// `t`, which is the position of the next token.
    pub fn positions(&self) -> usize {
        self.0.as_ref().map_or(0, |(k, _)| k.shape().1)
    }
}

impl<const V: usize, const H: usize, const HD: usize, F: Float + SampleUniform, D: Backend<F>>
    Decoder<V, H, HD, F, D>
where
    Error: From<D::Err>,
{
    /// Logits `[b, s, v]` for `ids` `[b, s]`, the tokens that follow those in `cache`.
    pub fn try_decode(&self, ids: Ids<D>, cache: &mut Cache<HD, F, D>) -> Result<Tokens<V, F, D>> {
        let offset = cache.positions();
        let (x, q, k, v) = self.enter(ids, offset)?;
        let (k, v) = match cache.0.clone() {
            None => (k, v),
            Some((old_k, old_v)) => (
                (old_k, k).try_concat_along(Axis::<1>)?, //           [b, t, nh, hd]
                (old_v, v).try_concat_along(Axis::<1>)?, //           [b, t, nh, hd]
            ),
        };
        let y = self.leave(x, attend(q, k.clone(), v.clone(), offset)?)?; // [b, s, v]
        cache.0 = Some((k, v)); // last, so that a call that fails changes nothing
        Ok(y)
    }
}
// ANCHOR_END: decode

// ANCHOR: train
/// The tokens: one letter each, or the space.
const ALPHABET: &str = " abcdefghijklmnopqrstuvwxyz";
/// A model of letters: `v` 27, `h` 32, `nh` 4, `hd` 8.
pub type Letters<F = f32, D = Cpu> = Decoder<27, 32, 8, F, D>;
/// What it learns: `b` lines of 40 letters. Each is the question for the letter after it.
pub const LINES: [&str; 2] =
    ["to be or not to be that is the question ", "whether tis nobler in the mind to suffer"];

/// The ids of a text. A letter that is not in the alphabet gets one that the model refuses.
pub fn ids_of(text: &str) -> Vec<usize> {
    text.chars().map(|letter| ALPHABET.find(letter).unwrap_or(ALPHABET.len())).collect()
}

/// All letters but the last of each line `[b, s]`, and the letters that follow them, as a row of
/// zeros and a one each, `[b, s, v]`.
pub fn lesson(dev: &Cpu) -> Result<(Ids<Cpu>, Tokens<27, f32, Cpu>)> {
    let lines = LINES.map(ids_of);
    let (b, s) = (lines.len(), lines[0].len() - 1);
    let ids = lines.iter().flat_map(|line| &line[..s]).copied().collect();
    let next = lines.iter().flat_map(|line| &line[1..]);
    let one_hot = next.flat_map(|&id| (0..27).map(move |v| f32::from(v == id))).collect();
    Ok((dev.try_tensor_from_vec(ids, (b, s))?, dev.try_tensor_from_vec(one_hot, (b, s, Const))?))
}

/// Teaches `model` the lines. Returns the loss before each step.
pub fn train(model: &mut Letters, dev: &Cpu, steps: usize) -> Result<Vec<f32>> {
    let (ids, next) = lesson(dev)?; //                                [b, s], [b, s, v]
    let mut adam = Adam::new(model, AdamConfig { lr: 0.01, ..Default::default() });
    let mut grads = model.try_alloc_grads()?;
    let mut losses = Vec::new();
    for _ in 0..steps {
        let logits = model.try_forward(ids.clone().traced(grads))?; // [b, s, v]
        let loss = cross_entropy_with_logits_loss(logits, next.clone()); // []
        losses.push(loss.array());
        grads = loss.try_backward()?;
        adam.update(model, &grads)?;
        model.try_zero_grads(&mut grads)?;
    }
    Ok(losses)
}
// ANCHOR_END: train

// ANCHOR: continue
/// `start` and the `more` letters that the model finds likeliest after it.
pub fn continue_text(model: &Letters, dev: &Cpu, start: &str, more: usize) -> Result<String> {
    let mut cache = Cache::default();
    let mut text = start.to_string();
    let mut new = ids_of(start);
    for _ in 0..more {
        let s = new.len();
        let ids = dev.try_tensor_from_vec(new, (1, s))?; //           [1, s]
        let logits = model.try_decode(ids, &mut cache)?.as_vec(); //  [1, s, v]
        let last = &logits[(s - 1) * 27..]; //                        [v]
        let best = (0..27).max_by(|&a, &b| last[a].total_cmp(&last[b])).unwrap_or(0);
        text.push_str(&ALPHABET[best..=best]);
        new = vec![best]; // the cache knows the others
    }
    Ok(text)
}
// ANCHOR_END: continue

/// Trains a model, saves it, loads it into a new one, and lets that go on.
pub fn main() -> Result<()> {
    // ANCHOR: main
    let dev = Cpu::default();
    let mut model = Letters::new(&dev)?;
    let losses = train(&mut model, &dev, 60)?;
    println!("loss: {:.3} before, {:.3} after", losses[0], losses[losses.len() - 1]);

    let path = std::env::temp_dir().join(format!("decoder-{}.safetensors", std::process::id()));
    save_weights(&model, &path)?;
    let mut again = Letters::new(&dev)?;
    load_weights(&mut again, &path)?;

    for line in LINES {
        println!("{}", continue_text(&again, &dev, &line[..5], line.len() - 5)?);
    }
    // ANCHOR_END: main
    let _ = std::fs::remove_file(&path);
    Ok(())
}
