//! Made for the chapter on VocabEmbedding.

mod figures;

use super::kinds::{Figure, Listing, Made, Numbers};
use crate::error::{Error, Result};
use contract::oracle::random::MersenneTwister;
use contract::oracle::to_f16;
use notebook_support::embedding::{Counted, by_gradient};
use notebook_support::plot::thousands;
use notebook_support::text::{TOKENIZER_IDS, Text, Tokens, tokenize};
use quadrivium::init::Init;
use quadrivium::tensor::*;
use quadrivium::{VocabEmbedding, VocabEmbeddingConfig};
use std::f64::consts::{LN_2, TAU};
use std::fmt::Write;
use tour::steps::{backward, ids_tensor};

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure { name: "embedding-counts", draw: figures::counts },
        Figure { name: "embedding-box-muller", draw: figures::box_muller },
        Figure { name: "embedding-histogram", draw: figures::histogram },
        Figure { name: "embedding-tail", draw: figures::tail },
    ],
    listings: &[
        Listing { name: "embedding-counts", text: counts_listing },
        Listing { name: "embedding-long", text: long_listing },
        Listing { name: "embedding-short", text: short_listing },
        Listing { name: "embedding-refusal", text: refusal_listing },
    ],
    numbers,
};

fn numbers(numbers: &mut Numbers) -> Result<()> {
    by_hand(numbers)?;
    initial_values(numbers)?;
    costs(numbers);
    Ok(())
}

// --- the example by hand ----------------------------------------------------------------------

/// `[b, s]`: two sequences of two tokens.
const IDS: [[usize; 2]; 2] = [[2, 0], [2, 3]];
/// `[v, e]`.
const TABLE: [[f32; 2]; 4] = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]];
/// `[b s, e]`.
const DY: [[f32; 2]; 4] = [[1.0, 0.0], [2.0, 1.0], [3.0, -1.0], [4.0, 2.0]];

fn by_hand(numbers: &mut Numbers) -> Result<()> {
    let dev = Cpu::default();
    let table = dev.tensor(TABLE);
    let embedding = VocabEmbedding::with_weight(table, VocabEmbeddingConfig::default())?;
    let ids = dev.tensor(IDS);
    let y = embedding.try_forward(Trace::<f32, Cpu>::leaky_trace(&ids))?;
    numbers.add("embedding/hand-rows", matrix(&y.as_vec(), 2));
    let dy = dev.tensor([[DY[0], DY[1]], [DY[2], DY[3]]]);
    let gradient = backward(y, dy)?.get(&embedding.weight).as_vec();
    numbers.add("embedding/hand-gradient", matrix(&gradient, 2));
    let one_hot: Vec<f32> = (IDS.as_flattened().iter())
        .flat_map(|&id| (0..4).map(move |k| f32::from(k == id)))
        .collect();
    numbers.add("embedding/hand-one-hot", matrix(&one_hot, 4));
    let counts: Vec<f32> = (0..4).map(|k| one_hot.iter().skip(k).step_by(4).sum()).collect();
    numbers.add("embedding/hand-counts", matrix(&counts, 4));
    numbers.add("embedding/f16-limit", to_f16(2048.0 + 1.0));
    Ok(())
}

/// Rows of numbers as LaTeX.
pub(super) fn matrix(values: &[f32], columns: usize) -> String {
    let rows = values.chunks(columns).map(|row| {
        let row: Vec<String> = row.iter().map(f32::to_string).collect();
        row.join(" & ")
    });
    let rows: Vec<String> = rows.collect();
    format!(r"\begin{{pmatrix}} {} \end{{pmatrix}}", rows.join(r" \\ "))
}

// --- counts on a real text --------------------------------------------------------------------

/// The tokens of the course's licence, and the gradient of a table with one column when every
/// `dy` is 1. `[v, 1]`.
fn counted() -> Result<(Tokens, Vec<f32>)> {
    let dev = Cpu::default();
    let tokens = tokenize(&Text::licence())?;
    let config = VocabEmbeddingConfig::default();
    let embedding = VocabEmbedding::<TOKENIZER_IDS, 1, f32, _>::new(&dev, config)?;
    let ids = ids_tensor(&dev, &tokens.ids)?;
    let y = embedding.try_forward(Trace::<f32, Cpu>::leaky_trace(&ids))?;
    let ones = dev.try_tensor_from_vec(vec![1.0; tokens.ids.len()], *y.shape());
    let gradient = backward(y, ones.map_err(Error::device)?)?.get(&embedding.weight).as_vec();
    Ok((tokens, gradient))
}

fn counts_listing() -> Result<String> {
    let (tokens, gradient) = counted()?;
    let ids = by_gradient(&tokens, &gradient, 1);
    let mut text = String::from("token           id   gradient of its row\n");
    for Counted { id, piece, gradient } in &ids[..8] {
        writeln!(text, "{piece:<8}{:>10}{gradient:>22.1}", thousands(*id)).expect(TO_STRING);
    }
    let sum: f32 = gradient.iter().sum();
    let zeros = gradient.iter().filter(|g| g.to_bits() == 0).count();
    let line = |text: &mut String, words: &str, n: usize| {
        writeln!(text, "{words:<30}{:>10}", thousands(n)).expect(TO_STRING);
    };
    text.push('\n');
    line(&mut text, "tokens of the text", tokens.ids.len());
    line(&mut text, "sum of all gradients", sum as usize);
    line(&mut text, "rows with a gradient", ids.len());
    line(&mut text, "rows with gradient exactly 0", zeros);
    line(&mut text, "rows of the table", gradient.len());
    Ok(text)
}

const TO_STRING: &str = "a String takes all text";

// --- initial values ---------------------------------------------------------------------------

fn normal(n: usize) -> Vec<f32> {
    Init::Normal { mean: 0.0, std: 1.0, seed: 42 }.values(n)
}

/// The first `n` 24-bit uniforms of seed 42.
fn uniforms(n: usize) -> Vec<f64> {
    let mut random = MersenneTwister::new(42);
    (0..n).map(|_| random.unit24()).collect()
}

/// Radius and angle of two uniforms.
fn polar(of_radius: f64, of_angle: f64) -> (f64, f64) {
    ((-2.0 * (1.0 - of_radius).ln()).sqrt(), TAU * of_angle)
}

fn long_listing() -> Result<String> {
    let (d, z) = (uniforms(16), normal(16));
    let mut text = String::from(" j     d[j]   d[j+8]   radius    angle      z[j]    z[j+8]\n");
    for j in 0..8 {
        let (radius, angle) = polar(d[j], d[j + 8]);
        let (a, b) = (d[j], d[j + 8]);
        let (first, second) = (z[j], z[j + 8]);
        let row = format!(
            "{j:2} {a:>8.4} {b:>8.4} {radius:>8.4} {angle:>8.4}  {first:>8.4}  {second:>8.4}"
        );
        text = text + &row + "\n";
    }
    Ok(text)
}

fn short_listing() -> Result<String> {
    let z = normal(4);
    let mut random = MersenneTwister::new(42);
    let mut text = String::from("pair       u1       u2   radius    angle     first    second\n");
    for pair in 0..2 {
        let (u1, u2) = (random.unit53(), random.unit53());
        let (radius, angle) = polar(u2, u1);
        let (first, second) = (z[2 * pair], z[2 * pair + 1]);
        let row = format!(
            "{pair:4} {u1:>8.4} {u2:>8.4} {radius:>8.4} {angle:>8.4}  {first:>8.4}  {second:>8.4}"
        );
        text = text + &row + "\n";
    }
    Ok(text)
}

fn initial_values(numbers: &mut Numbers) -> Result<()> {
    let d = uniforms(16);
    let z = normal(16);
    let (radius, angle) = polar(d[0], d[8]);
    for (name, x) in [
        ("d0", d[0]),
        ("d8", d[8]),
        ("u1", 1.0 - d[0]),
        ("log", (1.0 - d[0]).ln()),
        ("radius", radius),
        ("angle", angle),
        ("cos", angle.cos()),
        ("sin", angle.sin()),
        ("z0", z[0].into()),
        ("z8", z[8].into()),
    ] {
        numbers.add(&format!("embedding/long-{name}"), format!("{x:.4}"));
    }
    let mut random = MersenneTwister::new(42);
    let word = random.word();
    numbers.add("embedding/first-word", thousands(word as usize));
    numbers.add("embedding/first-word-low", thousands((word & 0x00FF_FFFF) as usize));

    let mut random = MersenneTwister::new(42);
    let (u1, u2) = (random.unit53(), random.unit53());
    let (radius, angle) = polar(u2, u1);
    let z = normal(2);
    for (name, x) in [
        ("u1", u1),
        ("u2", u2),
        ("radius", radius),
        ("angle", angle),
        ("z0", z[0].into()),
        ("z1", z[1].into()),
    ] {
        numbers.add(&format!("embedding/short-{name}"), format!("{x:.4}"));
    }

    let equal = |a: &[f32], b: &[f32]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (longer, shorter) = (normal(32), normal(30));
    let same = equal(&longer, &shorter);
    numbers.add("embedding/tail-same", same);
    numbers.add("embedding/tail-twice", 32 - 16 - same);
    numbers.add("embedding/tail-words", shorter.len() + 16);
    numbers.add("embedding/exercise-same", equal(&normal(120), &normal(126)));
    numbers.add("embedding/largest-long", format!("{:.2}", (2.0 * 24.0 * LN_2).sqrt()));
    numbers.add("embedding/largest-short", format!("{:.2}", (2.0 * 53.0 * LN_2).sqrt()));

    let table: Vec<f64> = normal(figures::TABLE_VALUES).into_iter().map(f64::from).collect();
    let mean = table.iter().sum::<f64>() / table.len() as f64;
    let variance = table.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / table.len() as f64;
    numbers.add("embedding/histogram-mean", format!("{mean:.3}"));
    numbers.add("embedding/histogram-std", format!("{:.3}", variance.sqrt()));
    let within = table.iter().filter(|z| z.abs() < 1.0).count() as f64 / table.len() as f64;
    numbers.add("embedding/histogram-within", format!("{:.1}", 100.0 * within));
    Ok(())
}

// --- refusals ---------------------------------------------------------------------------------

fn refusal_listing() -> Result<String> {
    let dev = Cpu::default();
    let embedding = VocabEmbedding::<10, 4, f32, _>::new(&dev, VocabEmbeddingConfig::default())?;
    let too_large = embedding.try_forward(dev.tensor([[3, 1], [4, 10]]));
    let empty = dev.try_tensor_from_vec(Vec::new(), (0usize, 3usize)).map_err(Error::device)?;
    let empty = embedding.try_forward(empty);
    let words =
        |error: Option<quadrivium::Error>| error.map_or_else(String::new, |e| e.to_string());
    Ok(format!("{}\n\n{}\n", words(too_large.err()), words(empty.err())))
}

// --- cost -------------------------------------------------------------------------------------

/// A real size: `v`, `e`, and `b s` tokens.
const REAL: (usize, usize, usize) = (128_000, 4096, 4096);
/// Bytes of an `f16`.
const F16: usize = 2;
/// Bytes of a MiB.
const MIB: usize = 1 << 20;

fn costs(numbers: &mut Numbers) {
    let (v, e, tokens) = REAL;
    numbers.add("embedding/table-mib", thousands(v * e * F16 / MIB));
    numbers.add("embedding/table-values", thousands(v * e));
    numbers.add("embedding/one-hot-mib", thousands(tokens * v * F16 / MIB));
    let products = (tokens * v * e) as f64;
    numbers.add("embedding/one-hot-products", format!("{:.1}", products / 1e12));
    numbers.add("embedding/lookup-values", thousands(tokens * e));
    numbers.add("embedding/lookup-mib", thousands(2 * tokens * e * F16 / MIB));
    numbers.add("embedding/rows-mib", thousands(tokens * e * F16 / MIB));
    let used = 100.0 * tokens as f64 / v as f64;
    numbers.add("embedding/rows-used", format!("{used:.1}"));
    numbers.add("embedding/additions", thousands(tokens * e));
}
