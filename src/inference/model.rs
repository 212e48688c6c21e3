//! The model: from new tokens of some texts to logits.

use super::attend::{Attend, of_heads};
use super::cache::{CacheKind, TextCache};
use super::families::{DecoderConfig, LayerConfig};
use super::matrix::Matrix;
use super::open::WeightReport;
use super::product::{FEW, multiply_by};
use super::rotate::{Rotation, Turns};
use crate::attention::{score_keys, weigh};
use crate::cpu::{among_threads, each, threads};
use crate::error::{Error, Result};
use crate::feedforward::gate_rows;
use crate::norm::fused::Norm;
use std::path::Path;
use std::sync::Arc;

/// Numbers that are one piece of work where each is for itself.
const PIECE: usize = 1 << 12;

/// A decoder of Llama's shape whose sizes and family are a checkpoint's, for inference on a CPU.
///
/// Its weights stay in the checkpoint's files, which are mapped and must not be written to meanwhile, or are kept as a
/// [`WeightKind`](super::WeightKind) says. Each text of a batch has a cache of its own, so texts may have different lengths.
///
/// ```no_run
/// use quadrivium::inference::{CacheKind, LlamaModel};
///
/// let model = LlamaModel::open("SmolLM-135M")?;
/// let mut caches = vec![model.cache(CacheKind::F32)];
/// let logits = model.decode(&[&[504, 2365, 282]], &mut caches)?; // [1, v], of the last token
/// # assert_eq!(logits.len(), model.config().llama.vocab_size);
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LlamaModel {
    pub(super) config: DecoderConfig,
    pub(super) embed_tokens: Matrix,
    pub(super) layers: Vec<Layer>,
    pub(super) norm: Vec<f32>,
    /// `None`: the table once more.
    pub(super) lm_head: Option<Matrix>,
    pub(super) rotation: Rotation,
    pub(super) report: WeightReport,
    /// Which model a cache is of; copies have the same weights, and the same identity.
    pub(super) identity: Arc<()>,
}

#[derive(Debug, Clone)]
pub(super) struct Layer {
    pub(super) input_layernorm: Vec<f32>,
    pub(super) q_proj: Linear,
    pub(super) k_proj: Linear,
    pub(super) v_proj: Linear,
    /// Of queries and of keys.
    pub(super) head_norms: Option<[Vec<f32>; 2]>,
    pub(super) o_proj: Linear,
    pub(super) post_attention_layernorm: Vec<f32>,
    pub(super) gate_proj: Linear,
    pub(super) up_proj: Linear,
    pub(super) down_proj: Linear,
}

#[derive(Debug, Clone)]
pub(super) struct Linear {
    pub(super) weight: Matrix,
    pub(super) bias: Option<Vec<f32>>,
}

impl Linear {
    /// `x w^T + b`, `[n, out]`.
    fn of(&self, x: &[f32]) -> Vec<f32> {
        let [y] = Self::of_all([self], x);
        y
    }

    /// The same for several layers at once.
    fn of_all<const N: usize>(all: [&Self; N], x: &[f32]) -> [Vec<f32>; N] {
        let mut found = multiply_by(all.map(|linear| &linear.weight), x);
        for (linear, y) in all.iter().zip(&mut found) {
            if let Some(bias) = &linear.bias {
                y.chunks_mut(bias.len()).for_each(|y| add(y, bias));
            }
        }
        found
    }
}

impl LlamaModel {
    /// The model in a folder of Hugging Face's layout, its weights as they are stored.
    ///
    /// # Errors
    /// As for [`open_with`](Self::open_with).
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(folder, Default::default())
    }

    /// What `config.json` says.
    pub fn config(&self) -> &DecoderConfig {
        &self.config
    }

    /// How many tokens a text may have. Where its frequencies follow its length, there is no end before that of all tables.
    pub fn positions(&self) -> usize {
        self.rotation.end(&self.config)
    }

    /// How its weights are kept, and what that costs.
    pub fn weights(&self) -> &WeightReport {
        &self.report
    }

    /// A cache for one text.
    pub fn cache(&self, kind: CacheKind) -> TextCache {
        let llama = &self.config.llama;
        let heads = [llama.num_key_value_heads, llama.head_dim];
        TextCache::new(kind, self.layers.len(), heads, self.identity.clone())
    }

    /// Logits `[s, v]` of a whole text.
    ///
    /// # Errors
    /// As for [`decode`](Self::decode).
    pub fn logits(&self, ids: &[usize]) -> Result<Vec<f32>> {
        let caches = &mut [self.cache(CacheKind::F32)];
        let x = self.forward(&[ids], caches, |_, _, _| ())?;
        Ok(self.head(&x))
    }

    /// Logits `[n, v]` of the last new token of each of `n` texts. The caches take the new tokens in; a text's may be any number
    /// from 1 on, so a batch can have texts that begin and texts that go on.
    ///
    /// # Errors
    /// No text, or a text without new tokens; another number of caches than texts, or one that another model has made; an id
    /// that is not below `vocab_size`; a text longer than [`positions`](crate::checkpoint::CheckpointConfig::positions), unless its frequencies
    /// follow its length. Then the caches are as they were.
    pub fn decode(&self, new: &[&[usize]], caches: &mut [TextCache]) -> Result<Vec<f32>> {
        let llama = &self.config.llama;
        let (h, wide) = (llama.hidden_size, llama.vocab_size.max(2 * llama.intermediate_size));
        let count: usize = new.iter().map(|ids| ids.len()).sum();
        let mut work = || {
            let x = self.forward(new, caches, |_, _, _| ())?;
            let mut end = 0;
            let mut last = Vec::with_capacity(new.len() * h);
            for ids in new {
                end += ids.len();
                last.extend_from_slice(&x[(end - 1) * h..end * h]);
            }
            Ok(self.head(&last))
        };
        // Many tokens, or a small model, would gain nothing.
        if count <= FEW && threads(h.saturating_mul(wide)) > 1 {
            among_threads(work)
        } else {
            work()
        }
    }

    /// The weights of attention in each layer on a whole text, `[nh, s, s]`: row `i` of a head says how much of each value token
    /// `i` takes.
    ///
    /// # Errors
    /// As for [`decode`](Self::decode).
    pub fn attention(&self, ids: &[usize]) -> Result<Vec<Vec<f32>>> {
        let llama = &self.config.llama;
        let (nh, nkv, hd) = (llama.num_attention_heads, llama.num_key_value_heads, llama.head_dim);
        let (s, root) = (ids.len(), (hd as f32).sqrt());
        let mut layers = Vec::new();
        self.forward(&[ids], &mut [self.cache(CacheKind::F32)], |layer, q, k| {
            let mut weights = vec![0.0; nh * s * s];
            for (row, weights) in weights.chunks_mut(s).enumerate() {
                let (head, i) = (row / s, row % s);
                let window = self.config.layers[layer].window;
                let first = window.map_or(0, |window| (i + 1).saturating_sub(window));
                let query = q[(i * nh + head) * hd..][..hd].iter().map(|q| q / root);
                let keys = &k[first * nkv * hd + head / (nh / nkv) * hd..];
                let seen = &mut weights[first..=i];
                score_keys(&query.collect::<Vec<_>>(), keys, nkv * hd, seen);
                let [_, total] = weigh(seen);
                seen.iter_mut().for_each(|weight| *weight /= total);
            }
            layers.push(weights);
        })?;
        Ok(layers)
    }

    fn head(&self, x: &[f32]) -> Vec<f32> {
        let x = self.normalized(x, &self.norm);
        let matrix = self.lm_head.as_ref().unwrap_or(&self.embed_tokens);
        let [logits] = multiply_by([matrix], &x);
        logits
    }

    /// What comes out of the last layer, `[all new tokens, h]`. `watch` is shown the queries and keys of each layer, rotated.
    fn forward(
        &self,
        new: &[&[usize]],
        caches: &mut [TextCache],
        mut watch: impl FnMut(usize, &[f32], &[f32]),
    ) -> Result<Vec<f32>> {
        self.check(new, caches)?;
        let mut asked = Vec::new();
        for (ids, cache) in new.iter().zip(&mut *caches) {
            let changes = self.rotation.changes(cache.turned(), cache.len() + ids.len());
            let before = if changes { cache.clear() } else { Vec::new() };
            asked.push([&before, *ids].concat());
        }
        let turns = asked.iter().zip(&*caches);
        let turns = turns.map(|(ids, cache)| self.rotation.turns(cache.len(), ids.len()));
        let turns = turns.collect::<Result<Vec<_>>>()?;
        let h = self.config.llama.hidden_size;
        let ids = asked.concat();
        let mut x = vec![0.0; ids.len() * h];
        for (id, x) in ids.iter().zip(x.chunks_mut(h)) {
            self.embed_tokens.row(*id, x);
        }
        let lengths: Vec<usize> = asked.iter().map(|ids| ids.len()).collect();
        for (nth, (layer, config)) in self.layers.iter().zip(&self.config.layers).enumerate() {
            let normalized = self.normalized(&x, &layer.input_layernorm);
            let found = self.attend(
                (nth, layer, *config),
                &normalized,
                (&turns, &lengths),
                caches,
                &mut watch,
            );
            add(&mut x, &layer.o_proj.of(&found));
            let normalized = self.normalized(&x, &layer.post_attention_layernorm);
            let [gate, mut up] = Linear::of_all([&layer.gate_proj, &layer.up_proj], &normalized);
            let pieces = up.chunks_mut(PIECE).zip(gate.chunks(PIECE));
            each(gate.len(), pieces, |(up, gate)| gate_rows(gate, up));
            add(&mut x, &layer.down_proj.of(&up));
        }
        for (cache, ids) in caches.iter_mut().zip(&asked) {
            cache.advance(ids);
        }
        // Of a text that was computed again, the new tokens only.
        let mut end = 0;
        let mut of_new = Vec::with_capacity(x.len());
        for (ids, all) in new.iter().zip(asked) {
            end += all.len();
            of_new.extend_from_slice(&x[(end - ids.len()) * h..end * h]);
        }
        Ok(of_new)
    }

    fn attend(
        &self,
        (nth, layer, config): (usize, &Layer, LayerConfig),
        x: &[f32],
        (turns, lengths): (&[Turns], &[usize]),
        caches: &mut [TextCache],
        watch: &mut impl FnMut(usize, &[f32], &[f32]),
    ) -> Vec<f32> {
        let llama = &self.config.llama;
        let heads @ [nh, nkv, hd] =
            [llama.num_attention_heads, llama.num_key_value_heads, llama.head_dim];
        let [mut q, mut k, v] = Linear::of_all([&layer.q_proj, &layer.k_proj, &layer.v_proj], x);
        if let Some([of_queries, of_keys]) = &layer.head_norms {
            q = self.normalized(&q, of_queries);
            k = self.normalized(&k, of_keys);
        }
        let mut y = vec![0.0; q.len()];
        let (mut from, mut rest) = (0, &mut y[..]);
        let mut work = Vec::new();
        let mut touched = 0;
        for ((s, turns), cache) in lengths.iter().zip(turns).zip(caches) {
            let (queries, keys) =
                (from * nh * hd..(from + s) * nh * hd, from * nkv * hd..(from + s) * nkv * hd);
            if config.rotates {
                for heads in [&mut q[queries.clone()], &mut k[keys.clone()]] {
                    heads.copy_from_slice(&turns.rotate(heads));
                }
            }
            if let Some(window) = config.window {
                cache.forget_before(nth, (cache.len() + 1).saturating_sub(window));
            }
            cache.keep(nth, &k[keys.clone()], &v[keys]);
            let (now, after) = rest.split_at_mut(queries.len());
            let attend = Attend { cache, layer: nth, heads, window: config.window };
            touched += queries.len() * (attend.cache.len() + s);
            work.push((attend, queries, now));
            (from, rest) = (from + s, after);
        }
        watch(nth, &q, &k);
        let q = &q;
        let work = work.iter_mut().flat_map(|(attend, queries, y)| {
            let s = queries.len() / (nh * hd);
            let (attend, queries) = (&*attend, queries.clone());
            of_heads(y, s, heads).map(move |(head, y)| (attend, queries.clone(), head, y))
        });
        each(touched, work, |(attend, queries, head, y)| attend.head(head, &q[queries], y));
        y
    }

    /// Each row of `weight`'s length, divided by its root mean square and multiplied by `weight`.
    fn normalized(&self, x: &[f32], weight: &[f32]) -> Vec<f32> {
        let (len, eps) = (weight.len(), self.config.llama.rms_norm_eps as f32);
        let mut y = vec![0.0; x.len()];
        let norm = Norm { group_size: len, eps, gamma: weight.to_vec() };
        norm.forward(&x, &mut y, &mut []);
        y
    }

    fn check(&self, new: &[&[usize]], caches: &[TextCache]) -> Result<()> {
        let llama = &self.config.llama;
        let (texts, kept) = (new.len(), caches.len());
        crate::checks::same_shape("caches", &[texts], &[kept])?;
        if texts == 0 {
            return Err(Error::Empty { name: "texts", shape: vec![0] });
        }
        let end = self.positions();
        for (batch, (ids, cache)) in new.iter().zip(caches).enumerate() {
            if ids.is_empty() {
                return Err(Error::Empty {
                    name: "the new tokens of a text",
                    shape: vec![texts, 0],
                });
            }
            if !cache.is_of(&self.identity) {
                let rule = "one of this model's own, made by its method `cache`";
                return Err(Error::Setting { name: "each cache", rule, got: batch as f64 });
            }
            let vocab_size = llama.vocab_size;
            if let Some(position) = ids.iter().position(|id| *id >= vocab_size) {
                let id = ids[position];
                return Err(Error::TokenId { id, batch, position, vocab_size });
            }
            let length = cache.len() + ids.len();
            if length > end {
                return Err(Error::PastCache { end: length, cached_len: end });
            }
        }
        Ok(())
    }
}

fn add(x: &mut [f32], y: &[f32]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}
