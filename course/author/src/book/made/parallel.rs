//! Made for the chapter on ParallelVocabEmbedding.

mod figures;

use super::embedding::matrix;
use super::kinds::{Figure, Listing, Made, Numbers};
use crate::error::{Error, Result};
use contract::parallel::oracle::owned;
use notebook_support::plot::thousands;
use notebook_support::text::{TOKENIZER_IDS, Text, tokenize};
use quadrivium::parallel::{padded_vocab_size, shard_range};
use quadrivium::tensor::*;
use quadrivium::{ParallelVocabEmbedding, ParallelVocabEmbeddingConfig};
use std::fmt::Write;
use tour::steps::parallel::load;
use tour::steps::{SHARD_ROWS, TABLE_ROWS, WORLD_SIZE, backward};

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure { name: "parallel-memory", draw: figures::memory },
        Figure { name: "parallel-owners", draw: figures::owners },
        Figure { name: "parallel-sum", draw: figures::sum },
        Figure { name: "parallel-load", draw: figures::load },
    ],
    listings: &[
        Listing { name: "parallel-seeds", text: seeds_listing },
        Listing { name: "parallel-refusals", text: refusals_listing },
        Listing { name: "parallel-load", text: load_listing },
        Listing { name: "parallel-ranks", text: ranks_listing },
    ],
    numbers,
};

fn numbers(numbers: &mut Numbers) -> Result<()> {
    memory(numbers);
    ranges(numbers)?;
    by_hand(numbers)?;
    zeros(numbers);
    Ok(())
}

/// What `cargo course ranks -n 4` printed once; times are another machine's elsewhere.
fn ranks_listing() -> Result<String> {
    Ok(include_str!("../../../../../book/src/measured/ranks.txt").to_string())
}

// --- memory and traffic -----------------------------------------------------------------------

/// A real size: `v`, `e`, and `b s` tokens.
const REAL: (usize, usize, usize) = (128_000, 4096, 4096);
/// Bytes of an `f16`.
const F16: usize = 2;
/// Bytes that training keeps for one weight: weight and gradient in `f16`, then the weight and
/// Adam's two means in `f32`.
const TRAINING: usize = 2 + 2 + 4 + 4 + 4;
/// Bytes of a MiB.
const MIB: usize = 1 << 20;

/// MiB of one rank's rows.
fn shard_mib(world_size: usize, bytes: usize) -> f64 {
    let (v, e, _) = REAL;
    (v / world_size * e * bytes) as f64 / MIB as f64
}

/// MiB of the result, `b s e` values.
fn result_mib() -> f64 {
    let (_, e, tokens) = REAL;
    (tokens * e * F16) as f64 / MIB as f64
}

/// MiB that each rank sends in an all-reduce by a ring.
fn ring_mib(world_size: usize) -> f64 {
    result_mib() * 2.0 * (world_size as f64 - 1.0) / world_size as f64
}

fn memory(numbers: &mut Numbers) {
    let (v, e, tokens) = REAL;
    numbers.add("parallel/table-values", thousands(v * e));
    numbers.add("parallel/table-mib", thousands(shard_mib(1, F16) as usize));
    numbers.add("parallel/training-bytes", TRAINING);
    numbers.add("parallel/training-mib", thousands(shard_mib(1, TRAINING) as usize));
    numbers.add("parallel/shard-mib", thousands(shard_mib(8, F16) as usize));
    numbers.add("parallel/shard-training-mib", thousands(shard_mib(8, TRAINING) as usize));
    numbers.add("parallel/result-values", thousands(tokens * e));
    numbers.add("parallel/result-mib", result_mib());
    numbers.add("parallel/ring-mib", ring_mib(8));
    numbers.add("parallel/ring-factor", 2.0 * 7.0 / 8.0);
    numbers.add("parallel/gather-mib", result_mib() * 8.0);
    numbers.add("parallel/decode-kib", e * F16 / 1024);
}

// --- ranges -----------------------------------------------------------------------------------

fn ranges(numbers: &mut Numbers) -> Result<()> {
    let (v, w) = (12, 3);
    for rank in 0..w {
        let range = shard_range(v, w, rank)?;
        numbers.add(&format!("parallel/range-{rank}"), format!("[{}, {})", range.start, range.end));
    }
    numbers.add("parallel/owner-of-7", 7 / (v / w));
    numbers.add("parallel/row-of-7", 7 % (v / w));
    numbers.add("parallel/padded", thousands(TABLE_ROWS));
    numbers.add("parallel/padding", TABLE_ROWS - TOKENIZER_IDS);
    numbers.add("parallel/padded-rows", thousands(SHARD_ROWS));
    numbers.add("parallel/floor-rows", thousands(TOKENIZER_IDS / WORLD_SIZE));
    let lost = TOKENIZER_IDS - TOKENIZER_IDS / WORLD_SIZE * WORLD_SIZE;
    numbers.add("parallel/floor-lost", lost);
    numbers.add("parallel/floor-lost-id", thousands(TOKENIZER_IDS - 1));
    let megatron = padded_vocab_size(TOKENIZER_IDS, 128 * WORLD_SIZE);
    numbers.add("parallel/megatron-padded", thousands(megatron));
    numbers.add("parallel/megatron-padding", megatron - TOKENIZER_IDS);
    numbers.add("parallel/megatron-multiple", 128 * WORLD_SIZE);
    let gpt2 = padded_vocab_size(50_257, 128 * 8);
    numbers.add("parallel/gpt2-padded", thousands(gpt2));
    // Rounded up: the last of 4 ranks of 10 ids has 1 row, of 9 ids over 4 ranks none.
    let rows = 10usize.div_ceil(4);
    numbers.add("parallel/ceil-last", 10 - 3 * rows);
    Ok(())
}

// --- the example by hand ----------------------------------------------------------------------

/// `v`, `e`, `w`.
const HAND: (usize, usize, usize) = (6, 2, 3);
/// `[v, e]`.
const TABLE: [[f32; 2]; 6] =
    [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0], [9.0, 10.0], [11.0, 12.0]];
/// `[b s]`.
const IDS: [usize; 4] = [2, 0, 5, 2];
/// `[b s, e]`.
const DY: [[f32; 2]; 4] = [[1.0, 0.0], [2.0, 1.0], [3.0, -1.0], [4.0, 2.0]];

/// One rank's part, `[b s, e]`, and the gradient of its rows, `[n, e]`.
fn part(rank: usize) -> Result<(Vec<f32>, Vec<f32>)> {
    let dev = Cpu::default();
    let rows = owned(HAND.0, HAND.2, rank);
    let rows = TABLE[rows].as_flattened().to_vec();
    let rows = dev.try_tensor_from_vec(rows, (Quotient, Const)).map_err(Error::device)?;
    let config = ParallelVocabEmbeddingConfig { rank, ..Default::default() };
    let shard = ParallelVocabEmbedding::<6, 2, 3, f32, _>::with_weight(rows, config)?;
    let ids = dev.tensor([IDS]);
    let y = shard.try_forward(Trace::<f32, Cpu>::leaky_trace(&ids))?;
    let part = y.as_vec();
    let gradient = backward(y, dev.tensor([DY]))?.get(&shard.weight).as_vec();
    Ok((part, gradient))
}

fn by_hand(numbers: &mut Numbers) -> Result<()> {
    let mut sum = vec![0.0; IDS.len() * HAND.1];
    let mut gradients = Vec::new();
    for rank in 0..HAND.2 {
        let (part, gradient) = part(rank)?;
        numbers.add(&format!("parallel/hand-part-{rank}"), matrix(&part, HAND.1));
        numbers.add(&format!("parallel/hand-gradient-{rank}"), matrix(&gradient, HAND.1));
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        gradients.extend(gradient);
    }
    numbers.add("parallel/hand-sum", matrix(&sum, HAND.1));
    numbers.add("parallel/hand-gradient", matrix(&gradients, HAND.1));
    Ok(())
}

/// What `f32` says of sums with zeros.
fn zeros(numbers: &mut Numbers) {
    numbers.add("parallel/zero-plus", format!("{:?}", 0.0f32 + -0.0));
    numbers.add("parallel/minus-zero-plus", format!("{:?}", -0.0f32 + -0.0));
    numbers.add("parallel/zero-times-nan", 0.0 * f32::NAN);
    numbers.add("parallel/zero-times-infinity", 0.0 * f32::INFINITY);
}

// --- initial values ---------------------------------------------------------------------------

/// The first rows of every rank, for worlds of 1, 2 and 4.
fn seeds_listing() -> Result<String> {
    let mut text = String::from("world size 1\n");
    drawn::<1>(&mut text)?;
    text.push_str("world size 2\n");
    drawn::<2>(&mut text)?;
    text.push_str("world size 4\n");
    drawn::<4>(&mut text)?;
    Ok(text)
}

fn drawn<const W: usize>(text: &mut String) -> Result<()> {
    let dev = Cpu::default();
    for rank in 0..W {
        let config = ParallelVocabEmbeddingConfig { rank, ..Default::default() };
        let shard = ParallelVocabEmbedding::<8, 4, W, f32, _>::new(&dev, config)?;
        let seed = config.init_base_seed + rank as u64;
        let ids = shard.owned_ids();
        let row: Vec<String> =
            shard.weight.as_vec()[..4].iter().map(|x| format!("{x:>8.4}")).collect();
        let row = row.concat();
        let (first, end) = (ids.start, ids.end);
        writeln!(text, "  rank {rank}, seed {seed}, ids {first}..{end}: row {first} ={row}")
            .expect("a String takes all text");
    }
    Ok(())
}

// --- refusals ---------------------------------------------------------------------------------

fn refusals_listing() -> Result<String> {
    let dev = Cpu::default();
    let mut text = String::new();
    let ids = dev.tensor([[3, 12]]);
    let mut line = |who: String, error: Option<quadrivium::Error>| {
        let words = error.map_or_else(String::new, |error| error.to_string());
        writeln!(text, "{who}\n  {words}").expect("a String takes all text");
    };
    for rank in 0..3 {
        let config = ParallelVocabEmbeddingConfig { rank, ..Default::default() };
        let shard = ParallelVocabEmbedding::<12, 4, 3, f32, _>::new(&dev, config)?;
        line(format!("ids [[3, 12]] on rank {rank} of 3"), shard.try_forward(ids.clone()).err());
    }
    let shard = ParallelVocabEmbedding::<12, 4, 1, f32, _>::new(&dev, Default::default())?;
    line("ids [[3, 12]] on rank 0 of 1".into(), shard.try_forward(ids).err());
    line("the range of rank 3 of 3".into(), shard_range(12, 3, 3).err());
    line("the range of rank 0 of 5".into(), shard_range(12, 5, 0).err());
    Ok(text)
}

// --- the work of each rank --------------------------------------------------------------------

fn load_listing() -> Result<String> {
    let tokens = tokenize(&Text::licence())?;
    let load = load(&tokens.ids);
    let mut text = String::from("rank    rows   tokens of the text   share\n");
    for (rank, &n) in load.iter().enumerate() {
        let share = 100.0 * n as f64 / tokens.ids.len() as f64;
        let rows = thousands(SHARD_ROWS);
        writeln!(text, "{rank:4}  {rows:>6}   {:>18}   {share:>4.1}%", thousands(n))
            .expect("a String takes all text");
    }
    Ok(text)
}
