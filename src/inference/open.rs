//! From a folder to a model.

use super::families::{DecoderConfig, Family};
use super::mapped::{self, Stored};
use super::matrix::{Matrix, WeightError, WeightKind};
use super::model::{Layer, Linear, LlamaModel};
use super::rotate::Rotation;
use crate::checkpoint::problem::CheckpointProblem as Problem;
use crate::checkpoint::settings::{Settings, object};
use crate::checkpoint::{files, refuse};
use crate::error::Result;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// How a model's weights are kept.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightReport {
    /// As which kind.
    pub kind: WeightKind,
    /// Bytes of all weights.
    pub bytes: usize,
    /// Bytes of them that a decoded token reads: all but the rows of other tokens.
    pub bytes_of_a_token: usize,
    /// How many of the bytes are in memory of the model's own. The rest is in the files.
    pub own_bytes: usize,
    /// How far matrices are from those of the file.
    pub error: WeightError,
}

impl LlamaModel {
    /// The model in a folder of Hugging Face's layout, its matrices kept as `kind` says. Norms and biases are `f32`.
    ///
    /// # Errors
    /// A folder or a file that can't be read; a setting that is not computed, by its name; a tensor that is missing, has no place,
    /// another shape or a type that is not read; a weight that is not finite; a group size that is not 32, 64 or 128; weights that
    /// need more memory than there is.
    pub fn open_with(folder: impl AsRef<Path>, kind: WeightKind) -> Result<Self> {
        let folder = folder.as_ref();
        if let WeightKind::Int4 { group_size } = kind {
            let rule = "32, 64 or 128";
            crate::checks::require(
                [32, 64, 128].contains(&group_size),
                "group_size",
                rule,
                group_size as f64,
            )?;
        }
        let config = DecoderConfig::open(folder)?;
        let rotation = Rotation::new(&config)?;
        let mut reader = Reader::new(folder, &config, kind)?;
        reader.check_memory(available_memory())?;
        let llama = config.llama.clone();
        let embed_tokens = reader.matrix("model.embed_tokens.weight")?;
        let lm_head = match llama.tie_word_embeddings {
            true => None,
            false => Some(reader.matrix("lm_head.weight")?),
        };
        let layers = (0..llama.num_hidden_layers).map(|layer| reader.layer(layer, &config));
        let layers = layers.collect::<Result<_>>()?;
        let norm = reader.list("model.norm.weight")?;
        let mut report = reader.report;
        if lm_head.is_some() {
            report.bytes_of_a_token -= embed_tokens.bytes();
        }
        let identity = Arc::new(());
        Ok(Self { config, embed_tokens, layers, norm, lm_head, rotation, report, identity })
    }
}

impl DecoderConfig {
    /// The settings of the checkpoint in a folder. The tokens that end a text are those of its `generation_config.json`, if it names
    /// some, and else those of `config.json`.
    ///
    /// # Errors
    /// A folder without a `config.json` that can be read; settings that [`parse`](Self::parse) refuses; an adapter beside the
    /// weights, which transformers would put on them.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let file = folder.join(files::CONFIG);
        let config = files::text_of(&file).and_then(|text| Self::parse(&text));
        let mut config = config.map_err(|problem| refuse(&file, problem))?;
        if folder.join(files::ADAPTER).exists() {
            return Err(refuse(&folder.join(files::ADAPTER), Problem::Adapter));
        }
        let file = folder.join("generation_config.json");
        if file.exists() {
            let ids = files::text_of(&file).and_then(|text| eos_of(&text));
            let ids = ids.map_err(|problem| refuse(&file, problem))?;
            if !ids.is_empty() {
                config.llama.eos_token_id = ids;
            }
        }
        Ok(config)
    }
}

struct Reader<'f> {
    folder: &'f Path,
    kind: WeightKind,
    stored: BTreeMap<String, Stored>,
    report: WeightReport,
}

impl<'f> Reader<'f> {
    /// The tensors, once they are known to be those of the settings.
    fn new(folder: &'f Path, config: &DecoderConfig, kind: WeightKind) -> Result<Self> {
        let mut stored = mapped::open(folder)?;
        let tied = config.llama.tie_word_embeddings;
        let wanted = config.tensors();
        for (name, expected) in &wanted {
            let Some(tensor) = stored.get(name) else {
                return Err(refuse(folder, Problem::MissingTensor { name: name.clone() }));
            };
            if tensor.shape != *expected {
                let (expected, got) = (expected.clone(), tensor.shape.clone());
                return Err(refuse(
                    &tensor.file,
                    Problem::Shape { name: name.clone(), expected, got },
                ));
            }
        }
        // A tied checkpoint may have the matrix twice; then both are the same.
        if tied && let Some(head) = stored.remove("lm_head.weight") {
            let table = &stored["model.embed_tokens.weight"];
            if head.shape != table.shape
                || head.dtype != table.dtype
                || head.part.bytes() != table.part.bytes()
            {
                return Err(refuse(folder, Problem::NotTied));
            }
        }
        let known: std::collections::BTreeSet<&String> =
            wanted.iter().map(|(name, _)| name).collect();
        if let Some((name, tensor)) = stored.iter().find(|(name, _)| !known.contains(name)) {
            return Err(refuse(&tensor.file, Problem::UnknownTensor { name: name.clone() }));
        }
        let error = WeightError::default();
        let report = WeightReport { kind, bytes: 0, bytes_of_a_token: 0, own_bytes: 0, error };
        Ok(Self { folder, kind, stored, report })
    }

    /// Weights that are converted need memory of their own, which is looked for before they are read.
    fn check_memory(&self, available: Option<u64>) -> Result<()> {
        let bytes = |stored: &Stored| match stored.shape.len() {
            2 => stored.own_bytes(self.kind),
            _ => 0, // norms and biases are few
        };
        let needed = self.stored.values().map(bytes).fold(0, u64::saturating_add);
        match available {
            Some(available) if needed > available => {
                Err(refuse(self.folder, Problem::Memory { needed, available }))
            }
            _ => Ok(()),
        }
    }

    fn of(&mut self, name: &str, rows: Range<usize>) -> Result<Matrix> {
        let stored = &self.stored[name];
        let failed = |problem| refuse(&stored.file, problem);
        let is_list = stored.shape.len() != 2;
        let kind = if is_list { WeightKind::F32 } else { self.kind };
        let (matrix, error) = Matrix::of((name, stored), rows.clone(), kind).map_err(failed)?;
        if let Some((place, value)) = matrix.not_finite() {
            let place = rows.start * matrix.columns + place;
            return Err(failed(Problem::NotFinite { name: name.into(), place, value }));
        }
        self.report.bytes += matrix.bytes();
        self.report.bytes_of_a_token += matrix.bytes();
        if is_list || !matrix.is_mapped() {
            self.report.own_bytes += matrix.bytes();
        }
        if !is_list {
            self.report.error = self.report.error.join(error);
        }
        Ok(matrix)
    }

    fn matrix(&mut self, name: &str) -> Result<Matrix> {
        let rows = self.stored[name].shape[0];
        self.of(name, 0..rows)
    }

    /// A norm's weight, or a bias.
    fn list(&mut self, name: &str) -> Result<Vec<f32>> {
        let len = self.stored[name].shape[0];
        let list = self.of(name, 0..len)?;
        Ok(list.rows(0..len).into_owned())
    }

    /// Some rows of a projection. The bias of one that lies alone is read with it.
    fn linear(&mut self, name: &str, rows: Option<Range<usize>>) -> Result<Linear> {
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        let weight = match rows {
            Some(rows) => self.of(&weight, rows)?,
            None => self.matrix(&weight)?,
        };
        let bias = self.stored.contains_key(&bias).then(|| self.list(&bias)).transpose()?;
        Ok(Linear { weight, bias })
    }

    fn layer(&mut self, layer: usize, config: &DecoderConfig) -> Result<Layer> {
        let name = |part: &str| format!("model.layers.{layer}.{part}");
        let llama = &config.llama;
        let (f, hd) = (llama.intermediate_size, llama.head_dim);
        let (queries, keys) = (llama.num_attention_heads * hd, llama.num_key_value_heads * hd);
        let fused = config.family == Family::Phi3;
        let mut one = |alone: &str, together: &str, rows: Range<usize>| match fused {
            true => self.linear(&name(together), Some(rows)),
            false => self.linear(&name(alone), None),
        };
        let (qkv, both) = ("self_attn.qkv_proj", "mlp.gate_up_proj");
        let q_proj = one("self_attn.q_proj", qkv, 0..queries)?;
        let k_proj = one("self_attn.k_proj", qkv, queries..queries + keys)?;
        let v_proj = one("self_attn.v_proj", qkv, queries + keys..queries + 2 * keys)?;
        let gate_proj = one("mlp.gate_proj", both, 0..f)?;
        let up_proj = one("mlp.up_proj", both, f..2 * f)?;
        let head_norms = match config.qk_norm {
            false => None,
            true => Some([
                self.list(&name("self_attn.q_norm.weight"))?,
                self.list(&name("self_attn.k_norm.weight"))?,
            ]),
        };
        Ok(Layer {
            input_layernorm: self.list(&name("input_layernorm.weight"))?,
            q_proj,
            k_proj,
            v_proj,
            head_norms,
            o_proj: self.linear(&name("self_attn.o_proj"), None)?,
            post_attention_layernorm: self.list(&name("post_attention_layernorm.weight"))?,
            gate_proj,
            up_proj,
            down_proj: self.linear(&name("mlp.down_proj"), None)?,
        })
    }
}

/// The tokens that end a text, by a `generation_config.json`.
fn eos_of(text: &str) -> std::result::Result<Vec<usize>, Problem> {
    let json = object(text)?;
    Settings { json: &json, place: String::new() }.ids("eos_token_id")
}

/// Memory that a program can still have, where the system says it.
fn available_memory() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_that_stay_in_their_file_need_no_memory() {
        let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/families");
        let (mut refused, mut kept) = (0, 0);
        for folder in goldens.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
            let config = DecoderConfig::open(&folder).unwrap();
            for kind in [WeightKind::AsStored, WeightKind::F32, WeightKind::Bf16, WeightKind::Int8]
            {
                let reader = Reader::new(&folder, &config, kind).unwrap();
                reader.check_memory(None).unwrap();
                reader.check_memory(Some(1 << 20)).unwrap();
                let own = LlamaModel::open_with(&folder, kind).unwrap().report.own_bytes;
                match reader.check_memory(Some(1)) {
                    Err(error) => {
                        let error = error.to_string();
                        assert!(error.contains("bytes of memory, and 1 are available"), "{error}");
                        refused += 1;
                    }
                    // Norms and biases are copied all the same.
                    Ok(()) => {
                        assert!(own < 4 * 4096, "{kind}: {own}");
                        kept += 1;
                    }
                }
            }
        }
        assert!(refused > 20 && kept > 12, "{refused} {kept}");
    }
}
