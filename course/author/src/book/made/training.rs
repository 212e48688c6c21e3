//! Made for the chapter on training. Losses and maps were recorded: `cargo course model train` wrote the ones as `loss.json`,
//! `cargo course model attention` the others as `attention.json`, and they are kept in `book/src/measured`.

use super::kinds::{Figure, Listing, Made, Numbers};
use crate::error::{Error, Result};
use crate::figures::write;
use notebook_support::attention::maps::{Head, Maps};
use notebook_support::plot::thousands;
use notebook_support::training::Curve;
use quadrivium::loss::perplexity;
use quadrivium::model::{Arithmetic, LlamaSizes};
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure { name: "training-loss", draw: loss },
        Figure {
            name: "training-heads",
            draw: |out: &Path| write(out, &recorded_maps().figure()?),
        },
    ],
    listings: &[Listing { name: "training-adamw", text: adamw_text }],
    numbers,
};

const RECORDED: &str = include_str!("../../../../../book/src/measured/training.json");

/// The recorded run.
fn recorded() -> Curve {
    let json: Value = serde_json::from_str(RECORDED).expect("a file that a run wrote");
    let number = |value: &Value| value.as_f64().expect("a number");
    let points = |name: &str| -> Vec<(f64, f64)> {
        let points = json[name].as_array().expect("a list");
        points.iter().map(|point| (number(&point[0]), number(&point[1]))).collect()
    };
    Curve {
        trained: points("trained"),
        held_out: points("held_out"),
        trigram: number(&json["trigram"]),
        steps: number(&json["steps"]) as usize,
    }
}

const MAPS: &str = include_str!("../../../../../book/src/measured/attention.json");

/// What the heads of that run's model look at.
fn recorded_maps() -> Maps {
    #[derive(Deserialize)]
    struct Recorded {
        tokens: Vec<String>,
        blocks: Vec<Vec<Vec<Vec<f64>>>>,
    }
    let Recorded { tokens, blocks } = serde_json::from_str(MAPS).expect("a file that a run wrote");
    let heads = |block: Vec<_>| block.into_iter().map(|rows| Head { rows }).collect();
    Maps { tokens, blocks: blocks.into_iter().map(heads).collect() }
}

/// The numbers in the sentences on the maps: means over the heads of each block, and what a head would have that
/// prefers nothing.
fn numbers_of_maps(numbers: &mut Numbers) {
    let maps = recorded_maps();
    let alike = Head::alike(maps.tokens.len());
    let words = |nth: usize| {
        let maps = &maps;
        move |head: &Head| maps.words(head).map_or(f64::NAN, |words| words[nth])
    };
    let mut add = |name: &str, heads: &[Head]| {
        let mean =
            |of: &dyn Fn(&Head) -> f64| heads.iter().map(of).sum::<f64>() / heads.len() as f64;
        numbers.add(&format!("training/back-{name}"), format!("{:.1}", mean(&Head::steps_back)));
        numbers.add(&format!("training/before-{name}"), format!("{:.2}", mean(&Head::before)));
        numbers.add(&format!("training/word-{name}"), format!("{:.2}", mean(&words(0))));
        numbers.add(&format!("training/others-{name}"), format!("{:.2}", mean(&words(1))));
    };
    for (nth, heads) in maps.blocks.iter().enumerate() {
        add(&(nth + 1).to_string(), heads);
    }
    add("alike", &[alike]);
    let firsts = maps.blocks.iter().flatten().map(Head::first);
    numbers.add("training/first-most", format!("{:.2}", firsts.fold(0.0, f64::max)));
    numbers.add("training/first-alike", format!("{:.2}", Head::alike(maps.tokens.len()).first()));
    numbers.add("training/map-tokens", maps.tokens.len());
}

fn loss(out: &Path) -> Result<()> {
    write(out, &recorded().figure()?)
}

fn numbers(numbers: &mut Numbers) -> Result<()> {
    let Curve { held_out, trigram, steps, .. } = recorded();
    let [first, last] = [held_out.first(), held_out.last()].map(|point| point.map_or(0.0, |p| p.1));
    numbers.add("training/ln-512", format!("{:.2}", 512f64.ln()));
    numbers.add("training/first-held-out", format!("{first:.2}"));
    numbers.add("training/held-out", format!("{last:.3}"));
    numbers.add("training/perplexity", format!("{:.2}", perplexity(last)));
    numbers.add("training/trigram", format!("{trigram:.3}"));
    numbers.add("training/trigram-perplexity", format!("{:.2}", perplexity(trigram)));
    numbers.add("training/steps", steps);
    numbers_of_maps(numbers);
    // The model of the command, as `course/model/src/sizes.rs` has it.
    let small = LlamaSizes {
        vocab_size: 512,
        hidden_size: 128,
        num_hidden_layers: 4,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 32,
        intermediate_size: 384,
        tied: true,
    };
    numbers.add("training/parameters", thousands(parameters(small)? as usize));
    for (name, sizes) in
        [("llama-2-7b", LlamaSizes::LLAMA_2_7B), ("llama-3-8b", LlamaSizes::LLAMA_3_8B)]
    {
        let model = Arithmetic::new(sizes).map_err(Error::from)?;
        let parameters = model.parameters();
        let total = parameters.total();
        let share = |part: u64| format!("{:.0}", 100.0 * part as f64 / total as f64);
        let cache = model.cache_bytes(sizes.num_key_value_heads, 2);
        for (of, printed) in [
            ("parameters", thousands(total as usize)),
            ("feed-forward", share(parameters.feed_forward)),
            ("table", share(parameters.embedding + parameters.output)),
            ("forward", format!("{:.2e}", model.forward_flops(4096) as f64)),
            ("cache", bytes(cache).to_string()),
            ("cache-4096", bytes(cache * 4096).to_string()),
        ] {
            numbers.add(&format!("training/{name}-{of}"), printed);
        }
    }
    let llama_2 = Arithmetic::new(LlamaSizes::LLAMA_2_7B).map_err(Error::from)?;
    let llama_3 = Arithmetic::new(LlamaSizes::LLAMA_3_8B).map_err(Error::from)?;
    let (total, read) = (llama_2.parameters().total(), 2e12);
    numbers.add("training/llama-3-8b-cache-mqa", bytes(llama_3.cache_bytes(1, 2)));
    numbers.add("training/llama-2-7b-six", format!("{:.1e}", 6.0 * total as f64 * read));
    // A token of a window of 4096 sees 2048.5 positions in the mean.
    let training = llama_2.training_flops(1) + llama_2.training_flops(4096);
    numbers.add("training/llama-2-7b-training", format!("{:.1e}", training as f64 / 2.0 * read));
    numbers.add("training/llama-2-7b-memory", bytes(total * 16));
    Ok(())
}

fn parameters(sizes: LlamaSizes) -> Result<u64> {
    Ok(Arithmetic::new(sizes).map_err(Error::from)?.parameters().total())
}

/// Bytes in the largest unit of which there is one; the page names it.
fn bytes(bytes: u64) -> u64 {
    [30, 20, 10].into_iter().map(|shift| bytes >> shift).find(|units| *units > 0).unwrap_or(bytes)
}

/// Three steps of one weight, by the formulas.
fn adamw_text() -> Result<String> {
    let (rate, betas, decay) = (0.1, [0.9f64, 0.95], 0.1);
    let (mut m, mut r, mut w) = (0.0f64, 0.0f64, 1.0f64);
    let mut text =
        String::from("  n     g       m        r   m hat  r hat    move    decay       w\n");
    for (n, g) in [0.5, 0.5, -0.5].into_iter().enumerate() {
        m = betas[0] * m + (1.0 - betas[0]) * g;
        r = betas[1] * r + (1.0 - betas[1]) * g * g;
        let [m_hat, r_hat] =
            [(m, betas[0]), (r, betas[1])].map(|(of, beta)| of / (1.0 - beta.powi(n as i32 + 1)));
        let (moved, gone) = (rate * m_hat / r_hat.sqrt(), rate * decay * w);
        w -= moved + gone;
        let n = n + 1;
        let _ = writeln!(
            text,
            "{n:3} {g:5.1} {m:7.4} {r:8.5} {m_hat:7.4} {r_hat:6.3} {moved:7.4} {gone:8.5} {w:7.4}"
        );
    }
    Ok(text)
}
