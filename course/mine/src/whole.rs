//! The learner's whole model: everything that is computed is theirs, except for the optimizer.

use exercises::attention::KvCache;
use exercises::model::{Block, Llama, sample};
use exercises::rope::NtkAwareRope;
use model::error::Moment;
use model::guard::guarded;
use model::network::{Computes, Ids, Logits, Record};
use model::writer::Writer;
use model::{Error, Result};
use quadrivium::checkpoint::{CheckpointConfig, RopeScaling};
use quadrivium::model::{LlamaTransformer, Sampler, Tied};
use quadrivium::tensor::*;

/// The library's model, whose weights the learner's uses.
pub type Weights<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
> = LlamaTransformer<V, H, NH, NKV, HD, FF, L, f32, Cpu, Tied>;

/// What the learner's code refuses.
fn refused(words: String) -> Error {
    quadrivium::Error::Part(words).into()
}

/// The learner's code, to compute with the library's weights.
#[derive(Clone)]
pub struct Mine<const HD: usize> {
    rope: NtkAwareRope<HD, Cpu>,
}

impl<const HD: usize> Mine<HD> {
    /// With the learner's tables, for the positions that a model of these sizes has.
    ///
    /// # Errors
    /// What the learner's code refuses.
    pub fn new(dev: &Cpu, config: &CheckpointConfig) -> Result<Self> {
        if config.rope_scaling != RopeScaling::None {
            let words = "the task's RoPE is not scaled, and this model's config.json scales it: leave --mine out";
            return Err(refused(words.into()));
        }
        let (base, positions) = (config.rope_theta, config.max_position_embeddings);
        let rope = NtkAwareRope::new(dev, base, positions, 1, false).map_err(refused)?;
        Ok(Self { rope })
    }

    /// The first task that a step of training needs and that is not solved yet.
    ///
    /// What else is wrong with the learner's code is no error here: a step will see it.
    ///
    /// # Errors
    /// What the device reports.
    pub fn unsolved<
        const V: usize,
        const H: usize,
        const NH: usize,
        const NKV: usize,
        const FF: usize,
        const L: usize,
    >(
        &self,
        dev: &Cpu,
        weights: &Weights<V, H, NH, NKV, HD, FF, L>,
    ) -> Result<Option<String>> {
        let ids = || dev.try_zeros_like(&(1, 2)).map_err(quadrivium::Error::from); // [1, 2]
        let (now, next): (Ids, Ids) = (ids()?, ids()?);
        let step = || self.loss(weights, now.traced(Gradients::leaky()), &next);
        match guarded(true, Moment::Start, step) {
            Err(Error::Unsolved { task }) => Ok(Some(task)),
            _ => Ok(None),
        }
    }

    /// The learner's model with these weights. They are the same tensors to a tape.
    fn model<
        const V: usize,
        const H: usize,
        const NH: usize,
        const NKV: usize,
        const FF: usize,
        const L: usize,
    >(
        &self,
        weights: &Weights<V, H, NH, NKV, HD, FF, L>,
    ) -> Llama<V, H, HD, FF, Cpu> {
        let norm = |norm: &quadrivium::GroupRmsNorm<H, H, f32, Cpu>| {
            exercises::norm::GroupRmsNorm::new(norm.weight.clone(), norm.config().eps)
        };
        let blocks = weights.layers.modules.iter().map(|block| Block {
            input_norm: norm(&block.input_layernorm),
            q: block.self_attn.q_proj.weight.clone().realize(),
            k: block.self_attn.k_proj.weight.clone().realize(),
            v: block.self_attn.v_proj.weight.clone().realize(),
            o: block.self_attn.o_proj.weight.clone().realize(),
            rope: self.rope.clone(),
            post_norm: norm(&block.post_attention_layernorm),
            network: exercises::feedforward::SwiGlu {
                gate: block.mlp.gate_proj.weight.clone(),
                up: block.mlp.up_proj.weight.clone(),
                down: block.mlp.down_proj.weight.clone(),
            },
        });
        Llama {
            table: exercises::embedding::VocabEmbedding::new(weights.embed_tokens.weight.clone()),
            blocks: blocks.collect(),
            norm: norm(&weights.norm),
            head: None,
        }
    }
}

impl<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
> Computes<V, Weights<V, H, NH, NKV, HD, FF, L>> for Mine<HD>
{
    fn logits(&self, model: &Weights<V, H, NH, NKV, HD, FF, L>, ids: Ids) -> Result<Logits<V>> {
        self.model(model).forward(ids).map_err(refused)
    }

    fn loss(
        &self,
        model: &Weights<V, H, NH, NKV, HD, FF, L>,
        ids: Ids<Record>,
        next: &Ids,
    ) -> Result<Tensor<Rank0, f32, Cpu, Record>> {
        let logits = self.model(model).forward(ids).map_err(refused)?; //     [b, s, v]
        let targets: Vec<Option<usize>> = next.as_vec().into_iter().map(Some).collect();
        exercises::loss::cross_entropy(logits, &targets).map_err(refused) //  []
    }
}

/// The learner's model at work on a text: their decoding, their cache, their choice of the next token.
pub struct MyWriter<const V: usize, const H: usize, const HD: usize, const FF: usize> {
    model: Llama<V, H, HD, FF, Cpu>,
    caches: Vec<KvCache<Cpu>>,
    dev: Cpu,
    positions: usize,
}

impl<const V: usize, const H: usize, const HD: usize, const FF: usize> MyWriter<V, H, HD, FF> {
    /// With the weights of a trained model.
    ///
    /// # Errors
    /// What the learner's code refuses, or that it is not complete.
    pub fn new<const NH: usize, const NKV: usize, const L: usize>(
        dev: &Cpu,
        weights: &Weights<V, H, NH, NKV, HD, FF, L>,
        config: &CheckpointConfig,
    ) -> Result<Self> {
        let model = guarded(true, Moment::Start, || Ok(Mine::new(dev, config)?.model(weights)))?;
        let positions = config.max_position_embeddings;
        Ok(Self { model, caches: Vec::new(), dev: dev.clone(), positions })
    }
}

impl<const V: usize, const H: usize, const HD: usize, const FF: usize> Writer
    for MyWriter<V, H, HD, FF>
{
    fn next(&mut self, ids: &[usize]) -> Result<Vec<f32>> {
        let Self { model, caches, dev, .. } = self;
        let at = caches.first().map_or(0, KvCache::positions);
        let shape = (1, ids.len());
        let ids = dev.try_tensor_from_vec(ids.to_vec(), shape).map_err(quadrivium::Error::from)?;
        let logits = guarded(true, Moment::At(at), || model.decode(ids, caches).map_err(refused))?; // [1, s, v]
        Ok(logits.as_vec().split_off((shape.1 - 1) * V))
    }

    fn choose(&mut self, logits: &[f32], sampler: &mut Sampler) -> Result<usize> {
        let (config, unit) = (*sampler.config(), sampler.unit());
        let at = self.caches.first().map_or(0, KvCache::positions);
        guarded(true, Moment::At(at), || {
            sample(logits, config.temperature, config.top_k, config.top_p, unit).map_err(refused)
        })
    }

    fn forget(&mut self) {
        self.caches = self.model.blocks.iter().map(|_| KvCache::new(self.positions)).collect();
    }

    fn positions(&self) -> usize {
        self.positions
    }
}
