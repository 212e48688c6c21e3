//! `cargo course model inspect`.

use crate::error::{Result, shown};
use crate::opened::whole;
use course::arguments::InspectArguments;
use learner::terminal::Terminal;
use notebook_support::plot::thousands;
use quadrivium::inference::DecoderConfig;
use quadrivium::model::{Arithmetic, LlamaSizes, Parameters};

/// The models whose sizes are known by name.
pub const KNOWN: [(&str, LlamaSizes); 6] = [
    ("smollm-135m", LlamaSizes::SMOLLM_135M),
    ("tinyllama-1.1b", LlamaSizes::TINYLLAMA_1_1B),
    ("llama-3.2-1b", LlamaSizes::LLAMA_3_2_1B),
    ("llama-2-7b", LlamaSizes::LLAMA_2_7B),
    ("llama-3-8b", LlamaSizes::LLAMA_3_8B),
    ("llama-2-70b", LlamaSizes::LLAMA_2_70B),
];

/// How many positions a token sees, if its model has so many.
const POSITIONS: u64 = 4096;

/// Shows what a model costs.
///
/// # Errors
/// A folder without a model; standard output can't be written.
pub fn run(arguments: &InspectArguments) -> Result<bool> {
    let mut terminal = Terminal::stdout();
    match &arguments.size {
        Some(name) => {
            let known = KNOWN.iter().find(|(known, _)| known == name);
            let (name, sizes) = known.copied().unwrap_or(KNOWN[0]);
            show(&mut terminal, name, (&Arithmetic::new(sizes)?, 0), (2, POSITIONS))?;
        }
        None => {
            let (folder, config) = whole(&arguments.model, |folder| -> Result<_> {
                Ok((folder.to_path_buf(), DecoderConfig::open(folder)?))
            })?;
            let tensors = config.tensors();
            let all: usize = tensors.iter().map(|(_, shape)| shape.iter().product::<usize>()).sum();
            let config = config.llama;
            let positions = POSITIONS.min(config.max_position_embeddings as u64);
            let model = Arithmetic::of(&config)?;
            let others = (all as u64).saturating_sub(model.parameters().total());
            show(&mut terminal, &shown(&folder), (&model, others), (4, positions))?;
        }
    }
    all(&mut terminal)?;
    Ok(true)
}

/// One model, with `bytes` for each number, and the operations of a token that sees so many positions. `others` are the
/// parameters of biases and of the heads' norms.
fn show(
    terminal: &mut Terminal,
    name: &str,
    (model, others): (&Arithmetic, u64),
    (bytes, positions): (u64, u64),
) -> Result<()> {
    let sizes = model.sizes();
    terminal.heading(name)?;
    terminal.line(&format!(
        "  v {}  h {}  L {}  nh {}  nkv {}  hd {}  f {}",
        thousands(sizes.vocab_size as usize),
        thousands(sizes.hidden_size as usize),
        sizes.num_hidden_layers,
        sizes.num_attention_heads,
        sizes.num_key_value_heads,
        sizes.head_dim,
        thousands(sizes.intermediate_size as usize)
    ))?;
    let parameters = model.parameters();
    let Parameters { embedding, attention, feed_forward, norms, output } = parameters;
    let total = parameters.total() + others;
    terminal.line("")?;
    terminal.line("  part            parameters         part")?;
    for (part, count) in [
        ("embedding", embedding),
        ("attention", attention),
        ("feed-forward", feed_forward),
        ("norms", norms),
        ("output", output),
        ("biases", others),
        ("all", total),
    ] {
        if part == "biases" && count == 0 {
            continue;
        }
        let (share, count) = (100.0 * count as f64 / total as f64, thousands(count as usize));
        let tied = if part == "output" && sizes.tied { "   the table once more" } else { "" };
        terminal.line(&format!("  {part:<12} {count:>15} {share:>10.1} %{tied}"))?;
    }
    terminal.line("")?;
    terminal.entry("weights", &format!("{} at {bytes} bytes a number", bytes_of(total * bytes)))?;
    let training = "4 numbers each: weight, gradient, and AdamW's two moments, in f32";
    terminal.entry("training", &format!("{}: {training}", bytes_of(total * 16)))?;
    let [forward, step] = [model.forward_flops(positions), model.training_flops(positions)];
    let seen = thousands(positions as usize);
    let forward = format!("{:.3e} operations a token that sees {seen} positions", forward as f64);
    terminal.entry("forward", &forward)?;
    terminal.entry("a step", &format!("{:.3e} a token", step as f64))?;
    terminal.line("")?;
    terminal.line(&format!("  KV cache, {bytes} bytes a number    a token   4,096 positions"))?;
    let (nh, nkv) = (sizes.num_attention_heads, sizes.num_key_value_heads);
    for (kind, heads) in [("MHA", nh), ("GQA", nkv), ("MQA", 1)] {
        if kind == "GQA" && (nkv == nh || nkv == 1) {
            continue;
        }
        let this = if heads == nkv { "  this model" } else { "" };
        let each = model.cache_bytes(heads, bytes);
        let plural = if heads == 1 { "" } else { "s" };
        let (kind, all) = (format!("{kind}, {heads} key head{plural}"), bytes_of(each * 4096));
        terminal.line(&format!("    {kind:<22} {:>12} {all:>17}{this}", bytes_of(each)))?;
    }
    Ok(())
}

/// All that are known by name, in a table.
fn all(terminal: &mut Terminal) -> Result<()> {
    terminal.heading("known sizes, 2 bytes a number, a token that sees 4,096 positions")?;
    terminal
        .line("  --size             parameters     weights  cache a token  operations a token")?;
    for (name, sizes) in KNOWN {
        let model = Arithmetic::new(sizes)?;
        let total = model.parameters().total();
        terminal.line(&format!(
            "  {name:<14} {:>14} {:>11} {:>14} {:>19.2e}",
            thousands(total as usize),
            bytes_of(total * 2),
            bytes_of(model.cache_bytes(sizes.num_key_value_heads, 2)),
            model.forward_flops(POSITIONS) as f64
        ))?;
    }
    Ok(())
}

/// Bytes in a unit that a reader can take in.
pub fn bytes_of(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, shift)| bytes >= 1 << shift) {
        Some((unit, shift)) => format!("{:.1} {unit}", bytes as f64 / (1u64 << shift) as f64),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        assert_eq!(
            [0, 1023, 1024, 1 << 20, 3 << 29].map(bytes_of).join(" "),
            "0 B 1023 B 1.0 KiB 1.0 MiB 1.5 GiB"
        );
    }
}
