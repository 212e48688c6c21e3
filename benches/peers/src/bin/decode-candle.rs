//! The implementations `candle-f32`, `-f16`, `-q8_0` and `-q4_0`: decoding from a checkpoint's folder with the Llamas of
//! candle-transformers. It accepts `bf16` too, but candle 0.11 can't multiply bf16 matrices on a CPU.

use candle_core::quantized::gguf_file::{self, Content, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{DType, Device::Cpu, Tensor, safetensors};
use candle_nn::VarBuilder;
use candle_transformers::models::llama::{Cache, Llama, LlamaConfig};
use candle_transformers::models::quantized_llama::ModelWeights;
use peers::{Call, serve_logits};
use std::error::Error;
use std::fs::{self, File};
use std::path::Path;
use std::rc::Rc;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Parts of names in a checkpoint, and what llama.cpp calls them.
const NAMES: [(&str, &str); 12] = [
    ("model.embed_tokens", "token_embd"),
    ("model.norm", "output_norm"),
    ("model.layers", "blk"),
    ("input_layernorm", "attn_norm"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.o_proj", "attn_output"),
    ("post_attention_layernorm", "ffn_norm"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
];

fn main() {
    let [_, kind, models]: [String; 3] =
        std::env::args().collect::<Vec<_>>().try_into().expect("a kind, and a folder of models");
    serve_logits(|name| make(name, &kind, Path::new(&models)).expect("a model"));
}

fn make(name: &str, kind: &str, models: &Path) -> Result<Option<Call>> {
    let Some((work, size)) = name.split_once('-') else { return Ok(None) };
    if !["prompt", "decode"].contains(&work) {
        return Ok(None);
    }
    let folder = models.join(size);
    let ids: Vec<u32> = serde_json::from_slice(&fs::read(folder.join("ids.json"))?)?;
    let tokens = |ids: &[u32]| Tensor::from_slice(ids, (1, ids.len()), &Cpu);
    let (mut text, last) = (Text::open(&folder, kind)?, ids.len() - 1);
    let (new, first) = if work == "prompt" {
        (tokens(&ids[..last - 1])?, 0)
    } else {
        text.read(&tokens(&ids[..last])?, 0)?;
        (tokens(&ids[last..])?, last)
    };
    let call: Call = Box::new(move || {
        // A cache can't be cut back, but it is never written to: a longer one is made. So a copy has the same numbers.
        let logits = text.clone().read(&new, first).expect("logits");
        Box::new(move || vec![logits.flatten_all().and_then(|all| all.to_vec1()).expect("floats")])
    });
    Ok(Some(call))
}

/// A model, and what it keeps of a text.
#[derive(Clone)]
enum Text {
    Plain(Rc<Llama>, Cache),
    Quantized(ModelWeights),
}

impl Text {
    fn open(folder: &Path, kind: &str) -> Result<Self> {
        let config: LlamaConfig = serde_json::from_slice(&fs::read(folder.join("config.json"))?)?;
        let dtype = match kind {
            "f32" => DType::F32,
            "f16" => DType::F16,
            "bf16" => DType::BF16,
            "q8_0" => return Self::quantized(folder, &config, GgmlDType::Q8_0),
            "q4_0" => return Self::quantized(folder, &config, GgmlDType::Q4_0),
            _ => return Err(format!("no kind is {kind}").into()),
        };
        let weights = fs::read(folder.join("model.safetensors"))?;
        let weights = VarBuilder::from_buffered_safetensors(weights, dtype, &Cpu)?;
        let config = config.into_config(false);
        let cache = Cache::new(true, dtype, &config, &Cpu)?;
        Ok(Self::Plain(Rc::new(Llama::load(weights, &config)?), cache))
    }

    /// From a GGUF file, which is written once.
    fn quantized(folder: &Path, config: &LlamaConfig, dtype: GgmlDType) -> Result<Self> {
        let file = folder.join(format!("{dtype:?}.gguf"));
        if !file.exists() {
            let part = file.with_extension("part");
            write(&part, &folder.join("model.safetensors"), config, dtype)?;
            fs::rename(part, &file)?;
        }
        let mut file = File::open(file)?;
        let content = Content::read(&mut file)?;
        Ok(Self::Quantized(ModelWeights::from_gguf(content, &mut file, &Cpu)?))
    }

    /// Logits of the last of new tokens, the first of which is at the position `first`.
    fn read(&mut self, new: &Tensor, first: usize) -> candle_core::Result<Tensor> {
        match self {
            Self::Plain(model, cache) => model.forward(new, first, cache),
            Self::Quantized(model) => model.forward(new, first),
        }
    }
}

/// Matrices as `dtype`, norms as `f32`.
fn write(to: &Path, weights: &Path, config: &LlamaConfig, dtype: GgmlDType) -> Result<()> {
    let head_dim = config.hidden_size / config.num_attention_heads;
    let mut tensors = Vec::new();
    for (name, mut tensor) in safetensors::load(weights, &Cpu)? {
        // RoPE of a GGUF turns neighbours, not halves: row `i` of the second half comes after row `i` of the first.
        if name.contains("q_proj") || name.contains("k_proj") {
            let (rows, columns) = tensor.dims2()?;
            let halves = tensor.reshape((rows / head_dim, 2, head_dim / 2, columns))?;
            tensor = halves.transpose(1, 2)?.reshape((rows, columns))?;
        }
        let dtype = if tensor.rank() == 1 { GgmlDType::F32 } else { dtype };
        let name = NAMES.iter().fold(name, |name, (from, to)| name.replace(from, to));
        tensors.push((name, QTensor::quantize(&tensor, dtype)?));
    }
    let number = |number: usize| Value::U32(number as u32);
    let about = [
        ("llama.attention.head_count", number(config.num_attention_heads)),
        ("llama.attention.head_count_kv", number(config.num_key_value_heads())),
        ("llama.block_count", number(config.num_hidden_layers)),
        ("llama.embedding_length", number(config.hidden_size)),
        ("llama.rope.dimension_count", number(head_dim)),
        ("llama.rope.freq_base", Value::F32(config.rope_theta)),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(config.rms_norm_eps as f32)),
    ];
    let about: Vec<_> = about.iter().map(|(name, value)| (*name, value)).collect();
    let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    Ok(gguf_file::write(&mut File::create(to)?, &about, &tensors)?)
}
