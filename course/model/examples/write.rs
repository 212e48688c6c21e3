//! From the folder of a checkpoint to a text: `cargo run --release -p model --example write -- DIR`.

use quadrivium::inference::{GenerateConfig, LlamaModel};
use std::ops::ControlFlow;
use tokenizers::Tokenizer;

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let folder = std::env::args().nth(1).ok_or("name the folder of a checkpoint")?;
    // ANCHOR: write
    let tokenizer = Tokenizer::from_file(format!("{folder}/tokenizer.json"))?;
    let model = LlamaModel::open(&folder)?;
    let prompt = tokenizer.encode("The norm", true)?;
    let prompt: Vec<usize> = prompt.get_ids().iter().map(|id| *id as usize).collect();
    let mut letters = tokenizer.decode_stream(true); // a letter may have several tokens
    model.generate(&[&prompt], &GenerateConfig::default(), |_, id| {
        print!("{}", letters.step(id as u32).ok().flatten().unwrap_or_default());
        ControlFlow::Continue(())
    })?;
    // ANCHOR_END: write
    println!();
    Ok(())
}
