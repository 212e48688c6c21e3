//! The learner's components in the library's places.
//!
//! Each adapter holds the weights as the library does, and calls the learner's code in `exercises`. The learner's whole
//! model is in `whole.rs`.

use crate::whole::Mine;
use learner::mine::PARTS;
use model::lockstep::{self, Lockstep};
use model::network::{Library, Network, Trainee};
use model::sizes::{SMALL_VOCAB, Small, TINY_VOCAB, Tiny, small, tiny};
use model::{Error, Result};
use quadrivium::attention::GroupedQueryAttention;
use quadrivium::checkpoint::CheckpointConfig;
use quadrivium::linear::linear;
use quadrivium::model::{
    Embed, InLlama, LlamaRopeConfig, LlamaTransformer, Normalize, Tokens, TransformerBlock,
};
use quadrivium::position::{NoPosition, PositionEncoding, Positions};
use quadrivium::tensor::*;
use quadrivium::{NtkAwareRopeConfig, PastCache};
use std::cell::{Cell, RefCell};

/// [`Small`] with the learner's parts.
type MySmall =
    Small<MyNorm<128, f32, Cpu>, MyEmbedding<{ SMALL_VOCAB }, 128, f32, Cpu>, MyRope<32>>;
/// [`Tiny`] with the learner's parts.
type MyTiny = Tiny<MyNorm<16, f32, Cpu>, MyEmbedding<{ TINY_VOCAB }, 16, f32, Cpu>, MyRope<8>>;

/// The learner's code in a model of one size, beside the library's model. As long as a task of the whole model is not solved,
/// their norm, table and RoPE are used in the library's.
macro_rules! network {
    ($name:ident, $theirs:ident, $parts:ty, $V:expr, $HD:literal) => {
        /// A model that computes with the learner's code, untrained, and the library's beside it.
        ///
        /// # Errors
        /// What the library or the learner's code refuses.
        pub fn $name(dev: &Cpu, config: &CheckpointConfig, seed: u64) -> Result<Box<dyn Network>> {
            let library =
                Trainee::<{ $V }, _>::new(dev, $theirs(dev, seed)?, Library, config.clone())?;
            let (weights, mine) = ($theirs(dev, seed)?, Mine::<$HD>::new(dev, config)?);
            let Some(task) = mine.unsolved(dev, &weights)? else {
                let mine = Trainee::new(dev, weights, mine, config.clone())?;
                let words = "the whole model and its loss; AdamW is the library's".to_string();
                return Ok(Box::new(Lockstep::new(mine, library, lockstep::WHOLE, words)));
            };
            if PARTS.iter().any(|part| task.starts_with(&format!("{part}/"))) {
                return Err(Error::Unsolved { task });
            }
            let rope = MyRope::<$HD>::new(dev, config)?;
            let mut layers = Vec::new();
            for block in weights.layers.modules {
                let attention = block.self_attn;
                layers.push(TransformerBlock {
                    input_layernorm: MyNorm::from(&block.input_layernorm),
                    self_attn: GroupedQueryAttention {
                        q_proj: attention.q_proj,
                        k_proj: attention.k_proj,
                        v_proj: attention.v_proj,
                        o_proj: attention.o_proj,
                        position: rope.clone(),
                    },
                    post_attention_layernorm: MyNorm::from(&block.post_attention_layernorm),
                    mlp: block.mlp,
                });
            }
            let parts: $parts = LlamaTransformer {
                embed_tokens: MyEmbedding::from(&weights.embed_tokens),
                position: NoPosition,
                layers: modules::Repeated { modules: layers },
                norm: MyNorm::from(&weights.norm),
                lm_head: weights.lm_head,
            };
            let words = format!(
                "norm, embedding and RoPE, in the library's model: task {task} is still a todo!()"
            );
            let parts = Trainee::new(dev, parts, Library, config.clone())?;
            Ok(Box::new(Lockstep::new(parts, library, lockstep::PARTS, words)))
        }
    };
}

network!(small_network, small, MySmall, SMALL_VOCAB, 32);
network!(tiny_network, tiny, MyTiny, TINY_VOCAB, 8);

type Refused<T> = std::result::Result<T, quadrivium::Error>;

/// The learner's norm, with one group.
#[derive(Clone)]
pub struct MyNorm<const H: usize, F: Dtype, D: Storage<F>> {
    weight: Tensor<Rank1<H>, F, D>,
    eps: f64,
}

impl<const H: usize> From<&quadrivium::GroupRmsNorm<H, H, f32, Cpu>> for MyNorm<H, f32, Cpu> {
    fn from(norm: &quadrivium::GroupRmsNorm<H, H, f32, Cpu>) -> Self {
        Self { weight: norm.weight.clone(), eps: norm.config().eps }
    }
}

impl<const H: usize> Normalize<H, f32, Cpu> for MyNorm<H, f32, Cpu> {
    fn normalize<B: Dim, S: Dim, T: Tape<f32, Cpu>>(
        &self,
        x: Tokens<B, S, H, f32, Cpu, T>,
    ) -> Refused<Tokens<B, S, H, f32, Cpu, T>> {
        let weight = self.weight.clone(); // the same tensor to a tape
        Ok(exercises::norm::GroupRmsNorm::<H, H, Cpu>::new(weight, self.eps).forward(x))
    }

    fn rms_norm_eps(&self) -> Option<f64> {
        Some(self.eps)
    }
}

/// The learner's table.
#[derive(Clone)]
pub struct MyEmbedding<const V: usize, const H: usize, F: Dtype, D: Storage<F>> {
    weight: Tensor<Rank2<V, H>, F, D>,
}

impl<const V: usize, const H: usize> From<&quadrivium::VocabEmbedding<V, H, f32, Cpu>>
    for MyEmbedding<V, H, f32, Cpu>
{
    fn from(table: &quadrivium::VocabEmbedding<V, H, f32, Cpu>) -> Self {
        Self { weight: table.weight.clone() }
    }
}

impl<const V: usize, const H: usize> Embed<V, H, f32, Cpu> for MyEmbedding<V, H, f32, Cpu> {
    fn embed<B: Dim, S: Dim, T: Tape<f32, Cpu>>(
        &self,
        ids: Tensor<(B, S), usize, Cpu, T>,
    ) -> Refused<Tokens<B, S, H, f32, Cpu, T>> {
        let shape = (ids.shape().0, ids.shape().1, Const);
        let table = exercises::embedding::VocabEmbedding::new(self.weight.clone());
        let rows = table.forward(ids).map_err(quadrivium::Error::Part)?; //   [b, s, h]
        // Before `embedding/types` is solved, the width is a number.
        Ok(rows.try_reshape_like(&shape)?)
    }

    /// Of a tied output, which is no task: the library's.
    fn products<B: Dim, S: Dim, T: Tape<f32, Cpu>>(
        &self,
        x: Tokens<B, S, H, f32, Cpu, T>,
    ) -> Refused<Tokens<B, S, V, f32, Cpu, T>> {
        linear(x, &self.weight)
    }

    fn is_of_llama(&self) -> bool {
        true
    }
}

/// The learner's RoPE. It has no weights.
#[derive(Clone)]
pub struct MyRope<const HD: usize> {
    rope: Option<RefCell<exercises::rope::NtkAwareRope<HD, Cpu>>>,
    /// What the library's would have.
    config: NtkAwareRopeConfig,
    no_weights: NoWeights,
}

/// dfdx visits a module's fields; this one has no tensors in it.
#[derive(Debug, Default, Clone, Copy)]
struct NoWeights;

impl ZeroSizedModule for NoWeights {}

impl<const HD: usize> MyRope<HD> {
    /// The learner's tables, for the positions that a model of these sizes has.
    ///
    /// # Errors
    /// What the learner's code refuses.
    pub fn new(dev: &Cpu, config: &CheckpointConfig) -> Result<Self> {
        let (base, positions) = (config.rope_theta, config.max_position_embeddings);
        let rope = exercises::rope::NtkAwareRope::new(dev, base, positions, 1, false);
        let rope = rope.map_err(quadrivium::Error::Part)?;
        let past_cache = PastCache::Refuse;
        let config =
            NtkAwareRopeConfig { base, max_seq_len: positions, past_cache, ..Default::default() };
        Ok(Self { rope: Some(RefCell::new(rope)), config, no_weights: NoWeights })
    }
}

impl<const HD: usize> PositionEncoding<HD, f32, Cpu> for MyRope<HD> {
    fn on_heads<B: Dim, S: Dim, N: Dim, T: Tape<f32, Cpu>>(
        &self,
        heads: Tensor<(B, S, N, Const<HD>), f32, Cpu, T>,
        positions: &Positions,
    ) -> Refused<Tensor<(B, S, N, Const<HD>), f32, Cpu, T>> {
        let without = || quadrivium::Error::Part("this copy of the model has no tables".into());
        let rope = self.rope.as_ref().ok_or_else(without)?;
        let each = || quadrivium::Error::Part("your RoPE takes one offset for all texts".into());
        let offset = positions.offset().ok_or_else(each)?;
        rope.borrow_mut().forward(heads, offset).map_err(quadrivium::Error::Part)
    }

    fn in_llama(&self) -> InLlama {
        InLlama::Rope(LlamaRopeConfig::NtkAware(self.config))
    }
}

impl<const H: usize, F: Dtype, D: Device<F>> TensorCollection<F, D> for MyNorm<H, F, D> {
    type To<F2: Dtype, D2: Device<F2>> = MyNorm<H, F2, D2>;

    fn iter_tensors<V: ModuleVisitor<Self, F, D>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        let eps = Cell::new(1e-6); // noted for a copy, as in the library's norm
        let noted = |norm: &Self| eps.set(norm.eps);
        let field = Self::tensor(
            "weight",
            |norm| {
                noted(norm);
                &norm.weight
            },
            |norm| {
                noted(norm);
                &mut norm.weight
            },
            TensorOptions::reset_to_ones(),
        );
        visitor.visit_fields(field, |weight| MyNorm { weight, eps: eps.get() })
    }
}

impl<const V: usize, const H: usize, F: Dtype, D: Device<F>> TensorCollection<F, D>
    for MyEmbedding<V, H, F, D>
{
    type To<F2: Dtype, D2: Device<F2>> = MyEmbedding<V, H, F2, D2>;

    fn iter_tensors<W: ModuleVisitor<Self, F, D>>(
        visitor: &mut W,
    ) -> std::result::Result<Option<Self::To<W::E2, W::D2>>, W::Err> {
        let options = TensorOptions::reset_to_zeros();
        visitor.visit_fields(
            Self::tensor("weight", |table| &table.weight, |table| &mut table.weight, options),
            |weight| MyEmbedding { weight },
        )
    }
}

impl<const HD: usize, F: Dtype, D: Device<F>> TensorCollection<F, D> for MyRope<HD> {
    type To<F2: Dtype, D2: Device<F2>> = MyRope<HD>;

    fn iter_tensors<V: ModuleVisitor<Self, F, D>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        visitor.visit_fields(
            <Self as TensorCollection<F, D>>::module(
                "",
                |rope| &rope.no_weights,
                |rope| &mut rope.no_weights,
            ),
            |no_weights| MyRope { rope: None, config: Default::default(), no_weights },
        )
    }
}
