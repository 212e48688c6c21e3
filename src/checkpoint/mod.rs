//! Llama checkpoints as they are published: a folder in Hugging Face's layout.
//!
//! `config.json` has the sizes, `model.safetensors` the weights; a large one has its weights in several files, which
//! `model.safetensors.index.json` lists. F64, F32, F16 and BF16 are read, and become the
//! float type of the model. RoPE is scaled as the settings say ([`RopeScaling`]). What this crate does not
//! compute (biases, a window, quantized weights) is refused by its name. A checkpoint that is refused leaves nothing
//! behind: a model is there when all of it is right.

mod config;
pub(crate) mod files;
mod model;
pub(crate) mod problem;
mod save;
mod scaling;
pub(crate) mod settings;

pub use config::CheckpointConfig;
pub use model::AsLlama;
use model::Differences;
pub use problem::{CheckpointProblem, SizeDiffers};
pub use save::save_checkpoint;
pub use scaling::RopeScaling;

use crate::attention::GroupedQueryAttention;
use crate::embedding::VocabEmbedding;
use crate::error::{Error, Result};
use crate::feedforward::SwiGlu;
use crate::linear::Linear;
use crate::model::{LlamaRope, LlamaTransformer, Tied, TransformerBlock};
use crate::norm::{GroupRmsNorm, GroupRmsNormConfig};
use crate::position::NoPosition;
use crate::tensor::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A checkpoint whose settings were read and found right. Its weights are read by
/// [`LlamaTransformer::from_checkpoint`].
#[derive(Debug, Clone)]
pub struct Checkpoint {
    folder: PathBuf,
    config: CheckpointConfig,
}

impl Checkpoint {
    /// Reads the settings of the checkpoint in a folder.
    ///
    /// # Errors
    /// A folder without a `config.json` that can be read; settings that [`CheckpointConfig::parse`] refuses; an adapter beside
    /// the weights, which transformers would put on them.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref().to_path_buf();
        let config = read_config(&folder)?;
        if folder.join(files::ADAPTER).exists() {
            return Err(refuse(&folder.join(files::ADAPTER), CheckpointProblem::Adapter));
        }
        Ok(Self { folder, config })
    }

    /// What `config.json` says.
    pub fn config(&self) -> &CheckpointConfig {
        &self.config
    }
}

fn read_config(folder: &Path) -> Result<CheckpointConfig> {
    let file = folder.join(files::CONFIG);
    let config = files::text_of(&file).and_then(|text| CheckpointConfig::parse(&text));
    config.map_err(|problem| refuse(&file, problem))
}

/// Each tensor of the model, with its shape.
fn tensors_of(config: &CheckpointConfig) -> BTreeMap<String, Vec<usize>> {
    let CheckpointConfig {
        vocab_size: v,
        hidden_size: h,
        intermediate_size: f,
        num_hidden_layers: layers,
        num_attention_heads: nh,
        num_key_value_heads: nkv,
        head_dim: hd,
        ..
    } = *config;
    let mut tensors = BTreeMap::new();
    tensors.insert(TABLE.to_string(), vec![v, h]);
    tensors.insert("model.norm.weight".to_string(), vec![h]);
    if !config.tie_word_embeddings {
        tensors.insert(HEAD.to_string(), vec![v, h]);
    }
    for layer in 0..layers {
        for (name, shape) in [
            ("input_layernorm", vec![h]),
            ("self_attn.q_proj", vec![nh.saturating_mul(hd), h]),
            ("self_attn.k_proj", vec![nkv.saturating_mul(hd), h]),
            ("self_attn.v_proj", vec![nkv.saturating_mul(hd), h]),
            ("self_attn.o_proj", vec![h, nh.saturating_mul(hd)]),
            ("post_attention_layernorm", vec![h]),
            ("mlp.gate_proj", vec![f, h]),
            ("mlp.up_proj", vec![f, h]),
            ("mlp.down_proj", vec![h, f]),
        ] {
            tensors.insert(format!("model.layers.{layer}.{name}.weight"), shape);
        }
    }
    tensors
}

/// The name of the embedding's table.
const TABLE: &str = "model.embed_tokens.weight";
/// The name of the output's matrix.
const HEAD: &str = "lm_head.weight";

pub(crate) fn refuse(file: &Path, problem: CheckpointProblem) -> Error {
    Error::Checkpoint { path: file.display().to_string(), problem }
}

/// The weights of a checkpoint, each taken once.
struct Weights<'d, F: Float, D: Backend<F>> {
    values: BTreeMap<String, Vec<F>>,
    dev: &'d D,
}

impl<F: Float, D: Backend<F>> Weights<'_, F, D> {
    /// A tensor whose shape was checked before.
    fn take<S: ConstShape>(&mut self, name: &str) -> Result<Tensor<S, F, D>> {
        let values = self.values.remove(name).unwrap_or_default();
        self.dev.try_tensor_from_vec(values, S::default()).map_err(Error::device)
    }

    fn linear<I: ConstDim, O: ConstDim>(&mut self, name: &str) -> Result<Linear<I, O, F, D>> {
        Linear::with_weight(self.take(&format!("{name}.weight"))?, Default::default())
    }

    fn norm<const H: usize>(&mut self, name: &str, eps: f64) -> Result<GroupRmsNorm<H, H, F, D>> {
        let config = GroupRmsNormConfig { eps, init_range: (1.0, 1.0), ..Default::default() };
        GroupRmsNorm::with_weight(self.take(&format!("{name}.weight"))?, config)
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
    F: Float,
    D: Backend<F>,
> LlamaTransformer<V, H, NH, NKV, HD, FF, L, F, D>
{
    /// The model of a checkpoint whose output has its own matrix.
    ///
    /// # Errors
    /// A checkpoint of another size than the type, each size named; one with a tied output; files that can't be read;
    /// a tensor that is missing, has no place, another shape or a type that is not read; a weight that is not finite;
    /// what the device reports.
    pub fn from_checkpoint(dev: &D, checkpoint: &Checkpoint) -> Result<Self> {
        let mut weights = read(dev, checkpoint, [V, H, NH, NKV, HD, FF, L], false)?;
        let lm_head = weights.linear("lm_head")?;
        build(weights, &checkpoint.config, lm_head)
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
    F: Float,
    D: Backend<F>,
> LlamaTransformer<V, H, NH, NKV, HD, FF, L, F, D, Tied>
{
    /// The model of a checkpoint whose output is its table once more.
    ///
    /// # Errors
    /// As for the other output; a checkpoint whose output is not tied.
    pub fn from_checkpoint(dev: &D, checkpoint: &Checkpoint) -> Result<Self> {
        let weights = read(dev, checkpoint, [V, H, NH, NKV, HD, FF, L], true)?;
        build(weights, &checkpoint.config, Tied)
    }
}

/// All weights, once the sizes are those of the type.
fn read<'d, F: Float, D: Backend<F>>(
    dev: &'d D,
    checkpoint: &Checkpoint,
    sizes @ [.., hd, _, _]: [usize; 7],
    tied: bool,
) -> Result<Weights<'d, F, D>> {
    let config = &checkpoint.config;
    let mut differences = Differences(Vec::new());
    differences.sizes(sizes, config);
    let in_file = config.tie_word_embeddings;
    let problem = match &differences.0[..] {
        // The type's is the one that its other sizes make.
        [one] if one.name == "head_dim" => {
            Some(CheckpointProblem::HeadDim { head_dim: config.head_dim, computed: hd })
        }
        [] if tied != in_file => Some(CheckpointProblem::Tie { in_file }),
        [] => None,
        _ => {
            differences.compare("tie_word_embeddings", tied, in_file);
            Some(CheckpointProblem::Sizes(differences.0))
        }
    };
    if let Some(problem) = problem {
        return Err(refuse(&checkpoint.folder.join(files::CONFIG), problem));
    }
    // Another checkpoint may have been saved there meanwhile, or another one and then this one again.
    let changed = || Err(refuse(&checkpoint.folder, CheckpointProblem::Changed));
    let before = files::version(&checkpoint.folder);
    if read_config(&checkpoint.folder).ok().as_ref() != Some(config) {
        return changed();
    }
    let values = files::read(&checkpoint.folder, &tensors_of(config))?;
    if before.is_none() || files::version(&checkpoint.folder) != before {
        return changed();
    }
    Ok(Weights { values, dev })
}

fn build<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
    F: Float,
    D: Backend<F>,
    O,
>(
    mut weights: Weights<'_, F, D>,
    config: &CheckpointConfig,
    lm_head: O,
) -> Result<LlamaTransformer<V, H, NH, NKV, HD, FF, L, F, D, O>> {
    let rope = LlamaRope::new(weights.dev, config.rope()?)?; // the blocks share its tables
    let eps = config.rms_norm_eps;
    let embed_tokens = VocabEmbedding::with_weight(weights.take(TABLE)?, Default::default())?;
    let mut block = |layer: usize| -> Result<_> {
        let name = |part: &str| format!("model.layers.{layer}.{part}");
        Ok(TransformerBlock {
            input_layernorm: weights.norm(&name("input_layernorm"), eps)?,
            self_attn: GroupedQueryAttention {
                q_proj: weights.linear(&name("self_attn.q_proj"))?,
                k_proj: weights.linear(&name("self_attn.k_proj"))?,
                v_proj: weights.linear(&name("self_attn.v_proj"))?,
                o_proj: weights.linear(&name("self_attn.o_proj"))?,
                position: rope.clone(),
            },
            post_attention_layernorm: weights.norm(&name("post_attention_layernorm"), eps)?,
            mlp: SwiGlu {
                gate_proj: weights.linear(&name("mlp.gate_proj"))?,
                up_proj: weights.linear(&name("mlp.up_proj"))?,
                down_proj: weights.linear(&name("mlp.down_proj"))?,
            },
        })
    };
    let layers = (0..L).map(&mut block).collect::<Result<_>>()?;
    let norm = weights.norm("model.norm", eps)?;
    Ok(LlamaTransformer {
        embed_tokens,
        position: NoPosition,
        layers: modules::Repeated { modules: layers },
        norm,
        lm_head,
    })
}
