//! The sizes of published models, with random weights: how long a prompt and one more token take, and how much memory. Prints
//! the table that the book includes: `cargo run --release --features quadrivium --bin sizes > book/src/measured/sizes.md`.

use quadrivium::model::*;
use quadrivium::tensor::*;
use std::time::Instant;

/// Holds the allocator that keeps its memory.
use peers as _;

const PROMPT: usize = 128;
const DECODED: usize = 16;

/// Reads a prompt and decodes some tokens. Each result is the time of one of them.
fn measure<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
    O: Head<V, H, f32, Cpu>,
>(
    name: &str,
    dev: &Cpu,
    model: LlamaTransformer<V, H, NH, NKV, HD, FF, L, f32, Cpu, O>,
    weights: usize,
) {
    let mut cache = LlamaCache::new(PROMPT + 2 * DECODED);
    let id = |place: usize| place * 7919 % V;
    let prompt =
        |first| dev.tensor_from_vec((first..first + PROMPT).map(id).collect(), (1, PROMPT));
    drop(model.try_decode(prompt(0), &mut cache).expect("logits")); // memory is fetched
    cache.truncate(0).expect("fewer positions");
    let start = Instant::now();
    drop(model.try_decode(prompt(1), &mut cache).expect("logits"));
    let of_prompt = start.elapsed().as_secs_f64();
    let mut times = Vec::new();
    for place in 0..DECODED {
        let token = dev.tensor_from_vec(vec![id(place)], (1, 1));
        let start = Instant::now();
        drop(model.try_decode(token, &mut cache).expect("logits"));
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let token = times[DECODED / 2];
    println!(
        "| {name} | {:.2} | {:.2} | {:.0} | {:.1} |",
        weights as f64 / 1e9,
        resident().unwrap_or(f64::NAN),
        PROMPT as f64 / of_prompt,
        1.0 / token,
    );
}

/// GiB that the process has in memory.
fn resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / (1 << 20) as f64)
}

fn main() {
    let dev = Cpu::default();
    dev.enable_cache();
    println!(
        "| Size | Weights, billions | Memory, GiB | Prompt, tokens a second | Decoded, tokens a second |"
    );
    println!("| --- | ---: | ---: | ---: | ---: |");
    let config = LlamaConfig::default;
    let smol = SmolLm135M::<f32, Cpu>::tied(&dev, config()).expect("a model");
    measure("SmolLM-135M", &dev, smol, 134_515_008);
    let llama = TinyLlama1B::<f32, Cpu>::new(&dev, config()).expect("a model");
    dev.empty_cache();
    measure("TinyLlama-1.1B", &dev, llama, 1_100_048_384);
    let llama = Llama32Of1B::<f32, Cpu>::tied(&dev, config()).expect("a model");
    dev.empty_cache();
    measure("Llama-3.2-1B", &dev, llama, 1_235_814_400);
}
