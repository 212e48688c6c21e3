//! A model as a checkpoint that others can read.

use super::files::{CONFIG, WHOLE, remove_shards, tidy};
use super::{AsLlama, CheckpointConfig, CheckpointProblem, RopeScaling, refuse, tensors_of};
use crate::error::Result;
use crate::tensor::nn::tensor_collection::{
    RecursiveWalker, TensorVisitor, ViewTensorName, ViewTensorRef,
};
use crate::tensor::*;
use crate::weights::{NewFile, Stored, bytes_of};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

impl CheckpointConfig {
    /// The text of a `config.json` that [`CheckpointConfig::parse`] reads as these settings, and transformers too. It says
    /// that the weights are `float32`.
    ///
    /// ```
    /// use quadrivium::checkpoint::CheckpointConfig;
    ///
    /// let text = r#"{"vocab_size": 9, "hidden_size": 8, "intermediate_size": 24, "num_hidden_layers": 1,
    ///     "num_attention_heads": 2, "num_key_value_heads": 1}"#;
    /// let config = CheckpointConfig::parse(text)?;
    /// assert_eq!(CheckpointConfig::parse(&config.to_json())?, config);
    /// # Ok::<(), quadrivium::checkpoint::CheckpointProblem>(())
    /// ```
    pub fn to_json(&self) -> String {
        self.to_json_of("float32")
    }

    fn to_json_of(&self, float_type: &str) -> String {
        let mut json = json!({
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_act": "silu",
            "attention_bias": false,
            "mlp_bias": false,
            "torch_dtype": float_type,
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": self.num_attention_heads,
            "num_key_value_heads": self.num_key_value_heads,
            "head_dim": self.head_dim,
            "rms_norm_eps": self.rms_norm_eps,
            "rope_theta": self.rope_theta,
            "max_position_embeddings": self.max_position_embeddings,
            "tie_word_embeddings": self.tie_word_embeddings,
            // transformers would take ids 1 and 2 for the ends of a text if this were left out.
            "bos_token_id": null,
            "eos_token_id": null,
        });
        if self.rope_scaling != RopeScaling::None {
            json["rope_scaling"] = self.rope_scaling.to_json();
        }
        if let RopeScaling::LongRope(rule) = &self.rope_scaling {
            // Where versions of transformers before the fifth look for it.
            json["original_max_position_embeddings"] = rule.max_seq_len.into();
        }
        if !self.eos_token_id.is_empty() {
            json["eos_token_id"] = json!(self.eos_token_id);
        }
        format!("{json:#}\n")
    }
}

/// Writes `config.json` and `model.safetensors` into a folder that is there, replacing those that are, and the several
/// files that a larger checkpoint may have had. Other files stay: a `tokenizer.json` or a `generation_config.json` of
/// another model is yours to replace. A link is replaced, too, and what it leads to stays as it is: a folder in Hugging Face's
/// cache shares its files with others.
///
/// What the settings say is compared with the model, so that a reader computes what the model does: sizes, the norms' eps,
/// RoPE's base, scaling and length. Only `eos_token_id` is not the model's to know. No `config.json` says what happens past
/// `max_position_embeddings`: a model that takes another NTK ratio there ([`PastCache::Rescale`](crate::pos_emb::PastCache)) is
/// the same as its file up to there, and a reader of the file refuses more.
///
/// Both files are written whole before the first is put in its place, and meanwhile there is no `config.json`. At any
/// moment, even after a save that was killed, there is therefore one checkpoint or the other, or none, and never a
/// mixture. (Two saves into one folder at the same time may leave one: that is yours to prevent.)
///
/// # Errors
/// A model that is not of these settings, each that differs named; one with a part that no Llama has; a weight that is not
/// finite; settings that no `config.json` can hold, such as a norm's eps that is no number; a file that can't be written. Then
/// the folder holds the checkpoint that it held.
pub fn save_checkpoint<F: Stored, D: Device<F>, M: TensorCollection<F, D> + AsLlama>(
    module: &M,
    config: &CheckpointConfig,
    folder: impl AsRef<Path>,
) -> Result<()> {
    let folder = match folder.as_ref() {
        folder if folder == Path::new("") => Path::new("."),
        folder => folder,
    };
    let (file, weights) = (folder.join(CONFIG), folder.join(WHOLE));
    let json = config.to_json_of(&format!("float{}", 8 * std::mem::size_of::<F>()));
    let read = CheckpointConfig::parse(&json).map_err(|problem| refuse(&file, problem))?;
    if read != *config {
        let (ours, read) = (format!("{config:?}"), format!("{read:?}"));
        return Err(refuse(&file, CheckpointProblem::Unwritable { ours, read }));
    }
    module.check_llama(config).map_err(|problem| refuse(folder, problem))?;
    let mut found = Shapes { shapes: BTreeMap::new(), diverged: None };
    M::iter_tensors(&mut RecursiveWalker { m: (module, String::new()), f: &mut found })?;
    // More blocks than tensors: their names alone might fill the memory.
    if config.num_hidden_layers > found.shapes.len() {
        let name = format!("model.layers.{}.input_layernorm.weight", config.num_hidden_layers - 1);
        return Err(refuse(folder, CheckpointProblem::MissingTensor { name }));
    }
    let wanted = tensors_of(config);
    for (name, expected) in &wanted {
        let (name, expected) = (name.clone(), expected.clone());
        match found.shapes.remove(&name) {
            Some(got) if got == expected => {}
            None => return Err(refuse(folder, CheckpointProblem::MissingTensor { name })),
            Some(got) => {
                return Err(refuse(folder, CheckpointProblem::Shape { name, expected, got }));
            }
        }
    }
    if let Some((name, _)) = found.shapes.pop_first() {
        return Err(refuse(folder, CheckpointProblem::UnknownTensor { name }));
    }
    if let Some(problem) = found.diverged {
        return Err(refuse(folder, problem));
    }
    let problem = |e: std::io::Error| refuse(folder, CheckpointProblem::File(e.to_string()));
    tidy(folder).map_err(problem)?;
    let weights = NewFile::write_here(&weights, &bytes_of(module, &weights)?)?;
    let new = NewFile::write_here(&file, json.as_bytes())?;
    let old_config = new.set_aside()?;
    let old_weights = weights.set_aside()?;
    weights.put()?;
    if let Err(error) = new.put() {
        old_weights.undo();
        return Err(error);
    }
    drop((old_weights, old_config));
    remove_shards(folder);
    Ok(())
}

/// The shape of each tensor, and the first weight that is not finite.
struct Shapes {
    shapes: BTreeMap<String, Vec<usize>>,
    diverged: Option<CheckpointProblem>,
}

impl<F: Stored, D: Device<F>> TensorVisitor<F, D> for Shapes {
    type Viewer = (ViewTensorRef, ViewTensorName);
    type Err = crate::Error;
    type E2 = F;
    type D2 = D;

    fn visit<S: Shape>(
        &mut self,
        _: TensorOptions<S, F, D>,
        (tensor, name): (&Tensor<S, F, D>, String),
    ) -> Result<Option<Tensor<S, F, D>>> {
        if self.diverged.is_none() && tensor.shape().num_elements() > 0 {
            let values = tensor.as_vec();
            if let Some(place) = values.iter().position(|x| !x.is_finite()) {
                let value = values[place].to_f64().unwrap_or(f64::NAN);
                self.diverged =
                    Some(CheckpointProblem::Diverged { name: name.clone(), place, value });
            }
        }
        self.shapes.insert(name, tensor.shape().concrete().into());
        Ok(None)
    }
}
