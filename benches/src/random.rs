//! Checkpoints with random weights: what a token costs depends on a model's sizes, and not on what it has learned.

use quadrivium::checkpoint::{CheckpointConfig, RopeScaling};
use quadrivium::inference::DecoderConfig;
use serde_json::{Map, json};
use std::fs::File;
use std::io::{BufWriter, Error, Result, Write};
use std::path::Path;

/// Tokens of a text before those that are decoded.
pub const PROMPT: usize = 512;

/// Llamas of about so many parameters, whose output is the table once more. The first has the sizes of `cargo course model train`.
pub fn models() -> [(&'static str, CheckpointConfig); 4] {
    // v, h, L, nh, nkv, hd, f
    let sizes = [
        ("1M", [512, 128, 4, 4, 2, 32, 384]),    //           853,120
        ("25M", [8192, 512, 8, 8, 2, 64, 1280]), //     25,174,528
        ("100M", [32_000, 768, 12, 12, 4, 64, 2048]), //   100,092,672
        ("400M", [32_000, 1024, 24, 16, 4, 64, 4096]), //   397,722,624
    ];
    sizes.map(|(name, [v, h, layers, nh, nkv, hd, f])| {
        let config = CheckpointConfig {
            vocab_size: v,
            hidden_size: h,
            intermediate_size: f,
            num_hidden_layers: layers,
            num_attention_heads: nh,
            num_key_value_heads: nkv,
            head_dim: hd,
            rms_norm_eps: 1e-6,
            rope_theta: 10_000.0,
            rope_scaling: RopeScaling::None,
            max_position_embeddings: 2048,
            tie_word_embeddings: true,
            eos_token_id: Vec::new(),
        };
        (name, config)
    })
}

/// Writes such a checkpoint in `f32` into a folder that is there, tensor by tensor, so that it need not fit in memory. `config.json`
/// comes last: where it is, the weights are whole.
///
/// # Errors
/// A file that can't be written.
pub fn write(folder: &Path, config: &CheckpointConfig) -> Result<()> {
    let text = config.to_json();
    let parsed =
        DecoderConfig::parse(&text).map_err(|problem| Error::other(problem.to_string()))?;
    let tensors = parsed.tensors();
    let (mut header, mut end) = (Map::new(), 0);
    header.insert("__metadata__".into(), json!({"format": "pt"})); // transformers asks for it
    for (name, shape) in &tensors {
        let begin = end;
        end += 4 * shape.iter().product::<usize>();
        let about = json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, end]});
        header.insert(name.clone(), about);
    }
    let mut header = serde_json::to_string(&header)?;
    // Numbers begin at a multiple of their size, so that they are read where the file is mapped.
    header += &" ".repeat(header.len().next_multiple_of(8) - header.len());
    let file = File::create(folder.join("model.safetensors"))?;
    let mut file = BufWriter::with_capacity(1 << 20, file);
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    let mut state = 42;
    for (_, shape) in &tensors {
        // A product with a row is about as large as what comes in; a norm's weights are 1.
        let most = shape.get(1).map(|columns| (3.0 / *columns as f32).sqrt());
        for _ in 0..shape.iter().product() {
            let weight = most.map_or(1.0, |most| most * draw(&mut state));
            file.write_all(&weight.to_le_bytes())?;
        }
    }
    file.flush()?;
    std::fs::write(folder.join("config.json"), text)
}

/// Between -1 and 1, from a linear congruential generator.
fn draw(state: &mut u64) -> f32 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 40) as f32 / (1 << 23) as f32 - 1.0
}
