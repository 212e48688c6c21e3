//! Made for the page "Who owns which row". The tokens of the course's own book were counted by
//! `cargo test --release -p model --test token_counts`, which keeps them in `book/src/measured`.

mod figures;

use super::kinds::{Figure, Listing, Made, Numbers};
use crate::error::{Error, Result};
use notebook_support::plot::thousands;
use quadrivium::parallel::cost::{
    AllReduce, CROSS_ENTROPY_NUMBERS, Costs, cross_entropy_seconds, gathered_logits_seconds,
    lookup_seconds,
};
use quadrivium::parallel::{Ownership, Sharing, TokenLoad};
use serde::Deserialize;
use std::fmt::Write;

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure { name: "ownership-owners", draw: figures::owners },
        Figure { name: "ownership-load", draw: figures::load },
        Figure { name: "ownership-cost", draw: figures::cost },
    ],
    listings: &[
        Listing { name: "ownership-shares", text: shares },
        Listing { name: "ownership-memory", text: memory },
        Listing { name: "ownership-cost", text: cost },
        Listing { name: "ownership-measured", text: measured },
    ],
    numbers,
};

/// The three ways, in the order of all tables.
const SHARINGS: [(&str, Sharing); 3] = [
    ("contiguous", Sharing::Contiguous),
    ("striped", Sharing::Striped),
    ("hashed", Sharing::Hashed { seed: 42 }),
];

fn owned(sharing: Sharing, vocab_size: usize, world_size: usize) -> Result<Ownership> {
    Ownership::new(sharing, vocab_size, world_size).map_err(Error::from)
}

// --- texts ------------------------------------------------------------------------------------

const COUNTED: &str = include_str!("../../../../../book/src/measured/tokens.json");

/// How often each token occurs in the book.
fn book() -> Vec<u64> {
    #[derive(Deserialize)]
    struct Counted {
        counts: Vec<u64>,
    }
    let Counted { counts } = serde_json::from_str(COUNTED).expect("a file that a test wrote");
    counts
}

/// Llama 3's vocabulary.
const ZIPF_IDS: usize = 128_256;
/// Enough tokens that rounding to whole ones changes no digit that is shown.
const ZIPF_TOKENS: f64 = 1e12;

/// Zipf's law: the id `i` occurs in the text `1 / (i + 1)` times as often as id 0.
fn zipf() -> Vec<u64> {
    let sum: f64 = (1..=ZIPF_IDS).map(|rank| 1.0 / rank as f64).sum();
    (1..=ZIPF_IDS).map(|rank| (ZIPF_TOKENS / sum / rank as f64).round() as u64).collect()
}

/// Both, with what they are called.
fn texts() -> [(&'static str, Vec<u64>); 2] {
    [("book", book()), ("zipf", zipf())]
}

fn loaded(sharing: Sharing, counts: &[u64], world_size: usize) -> Result<TokenLoad> {
    owned(sharing, counts.len(), world_size)?.load(counts).map_err(Error::from)
}

fn percent(load: &TokenLoad, rank: usize) -> String {
    format!("{:.1} %", 100.0 * load.share(rank).unwrap_or(f64::NAN))
}

fn ratio(load: &TokenLoad) -> String {
    format!("{:.2}", load.max_over_mean().unwrap_or(f64::NAN))
}

/// Worlds of the table of shares.
const WORLDS: [usize; 3] = [2, 4, 8];

fn shares() -> Result<String> {
    let texts = texts();
    let mut text = String::from(
        "                   the book, v = 512          Zipf's law, v = 128,256\n \
         w   ownership     first rank   max / mean     first rank   max / mean\n",
    );
    for w in WORLDS {
        for (name, sharing) in SHARINGS {
            let _ = write!(text, "{w:2}   {name:<10}");
            for (_, counts) in &texts {
                let load = loaded(sharing, counts, w)?;
                let _ = write!(text, "  {:>12}   {:>10}", percent(&load, 0), ratio(&load));
            }
            text.push('\n');
        }
    }
    Ok(text)
}

/// Seeds that are tried in the sentences.
const SEEDS: u64 = 1000;

/// The least, the middle and the most of max by mean, over the seeds, for the book on 8 ranks.
fn over_seeds() -> Result<[f64; 3]> {
    let counts = book();
    let ratio = |seed| {
        let load = loaded(Sharing::Hashed { seed }, &counts, 8)?;
        Ok(load.max_over_mean().unwrap_or(f64::NAN))
    };
    let mut ratios = (0..SEEDS).map(ratio).collect::<Result<Vec<f64>>>()?;
    ratios.sort_by(f64::total_cmp);
    Ok([ratios[0], ratios[ratios.len() / 2], ratios[ratios.len() - 1]])
}

// --- memory -----------------------------------------------------------------------------------

/// Vocabularies and world sizes of the table of memory.
const VOCABULARIES: [usize; 4] = [128_256, 256_000, 512_000, 1_000_000];
const RANKS: [usize; 4] = [1, 2, 8, 64];
/// `e`.
const E: usize = 4096;
/// Values for each weight in training: it, its gradient, and AdamW's two moments.
const IN_TRAINING: usize = 4;

/// MiB on one rank, of `values` values of `width` bytes for each weight of its rows.
fn mib(vocab_size: usize, world_size: usize, values: usize, width: usize) -> Result<f64> {
    let rows = owned(Sharing::Contiguous, vocab_size, world_size)?.rows(0).map_err(Error::from)?;
    Ok((rows * E * values * width) as f64 / f64::from(1 << 20))
}

fn memory() -> Result<String> {
    let mut text = String::from(
        "                    the rows alone, MiB          in training, MiB\n        v   type",
    );
    for _ in 0..2 {
        for w in RANKS {
            let _ = write!(text, "{:>7}", if w == 1 { "w = 1".into() } else { w.to_string() });
        }
        text.push_str("   ");
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    for v in VOCABULARIES {
        for (name, width) in [("f32", 4), ("bf16", 2)] {
            let _ = write!(text, "{:>9}   {name:<4}", thousands(v));
            for (values, gap) in [(1, "   "), (IN_TRAINING, "\n")] {
                for w in RANKS {
                    let mib = mib(v, w, values, width)?.round() as usize;
                    let _ = write!(text, "{:>7}", thousands(mib));
                }
                text.push_str(gap);
            }
        }
    }
    Ok(text)
}

// --- time -------------------------------------------------------------------------------------

/// Round numbers that no machine was measured for: 10 microseconds a message, 10 GB/s on a link, 100 GB/s to add
/// up, a microsecond a row.
const COSTS: Costs = Costs { message: 1e-5, byte: 1e-10, added: 1e-11, row: 1e-6 };
/// Bytes of an `f16`, and of an `f32`.
const F16: f64 = 2.0;
const F32: f64 = 4.0;
/// Tokens of a step in training.
const STEP: f64 = 4096.0;

/// The three ways to add up, with their names.
const ALL_REDUCES: [(&str, AllReduce); 3] = [
    ("ring", AllReduce::Ring),
    ("recursive doubling", AllReduce::RecursiveDoubling),
    ("halving and doubling", AllReduce::HalvingDoubling),
];

/// Milliseconds of the all-reduce after a lookup of `tokens` tokens.
fn sum_ms(all_reduce: AllReduce, world_size: usize, tokens: f64) -> Result<f64> {
    let bytes = tokens * E as f64 * F16;
    let seconds = all_reduce.seconds(&COSTS, world_size, bytes).map_err(Error::from)?;
    Ok(1e3 * seconds)
}

fn cross_entropy_ms(world_size: usize) -> Result<f64> {
    let way = AllReduce::HalvingDoubling;
    let seconds = cross_entropy_seconds(&COSTS, way, world_size, STEP, F32);
    Ok(1e3 * seconds.map_err(Error::from)?)
}

fn gathered_ms(world_size: usize) -> Result<f64> {
    let seconds = gathered_logits_seconds(&COSTS, world_size, STEP, ZIPF_IDS, F32);
    Ok(1e3 * seconds.map_err(Error::from)?)
}

/// Milliseconds with three digits that count.
fn ms(x: f64) -> String {
    match x {
        x if x >= 100.0 => thousands(x.round() as usize),
        x if x >= 10.0 => format!("{x:.1}"),
        x if x >= 1.0 => format!("{x:.2}"),
        x => format!("{x:.3}"),
    }
}

fn cost() -> Result<String> {
    let mut text = String::from(
        "milliseconds    lookup, 1 token      lookup, 4096 tokens     cross-entropy, 4096\n     \
         ranks       ring   doubling       ring   halving          3 numbers    logits\n",
    );
    for w in [2, 8, 64, 512, 4096] {
        let one = |all_reduce| sum_ms(all_reduce, w, 1.0);
        let step = |all_reduce| sum_ms(all_reduce, w, STEP);
        let _ = writeln!(
            text,
            "{:>10} {:>10} {:>10} {:>10} {:>9} {:>18} {:>9}",
            thousands(w),
            ms(one(AllReduce::Ring)?),
            ms(one(AllReduce::RecursiveDoubling)?),
            ms(step(AllReduce::Ring)?),
            ms(step(AllReduce::HalvingDoubling)?),
            ms(cross_entropy_ms(w)?),
            ms(gathered_ms(w)?),
        );
    }
    Ok(text)
}

/// What `cargo run --release -p ranks --bin measure` wrote.
#[derive(Deserialize)]
struct Recorded {
    processor: String,
    cores: usize,
    load: [f64; 2],
    shown: Vec<String>,
}

fn recorded() -> Recorded {
    let text = include_str!("../../../../../book/src/measured/ranks.json");
    serde_json::from_str(text).expect("a file that `measure` wrote")
}

/// What it printed.
fn measured() -> Result<String> {
    Ok(recorded().shown.join("\n") + "\n")
}

/// Names of the least time and of the model's, of the line that begins with these words.
fn step_ratios(numbers: &mut Numbers, name: &str, words: &str) {
    let shown = recorded().shown;
    let line = shown.iter().find_map(|line| line.trim().strip_prefix(words));
    let mut ratios = line.unwrap_or_default().split_whitespace();
    numbers.add(&format!("ownership/{name}-least"), ratios.next().unwrap_or_default());
    numbers.add(&format!("ownership/{name}-model"), ratios.nth(1).unwrap_or_default());
}

/// By how many percent the model's step is off where it is off most.
fn worst_step() -> f64 {
    let shown = recorded().shown;
    let steps = shown.iter().skip_while(|line| !line.starts_with("a step")).skip(1);
    let off = steps.filter_map(|line| {
        let mut ratios = line.split_whitespace().rev().map_while(|word| word.parse::<f64>().ok());
        let (model, _, least) = (ratios.next()?, ratios.next()?, ratios.next()?);
        Some(100.0 * (model / least - 1.0).abs())
    });
    off.fold(0.0, f64::max)
}

// --- numbers ----------------------------------------------------------------------------------

fn numbers(numbers: &mut Numbers) -> Result<()> {
    by_hand(numbers)?;
    balance(numbers)?;
    let widest = VOCABULARIES[3];
    numbers.add("ownership/million-mib", thousands(mib(widest, 1, 1, 4)? as usize));
    numbers.add("ownership/million-training", thousands(mib(widest, 1, IN_TRAINING, 4)? as usize));
    numbers
        .add("ownership/million-64", thousands(mib(widest, 64, IN_TRAINING, 4)?.round() as usize));
    time(numbers)
}

/// Twelve ids on three ranks.
fn by_hand(numbers: &mut Numbers) -> Result<()> {
    for (name, sharing) in SHARINGS {
        let owned = owned(sharing, 12, 3)?;
        let (owner, row) = (owned.owner(5), owned.local_row(5));
        numbers.add(&format!("ownership/{name}-owner"), owner.map_err(Error::from)?);
        numbers.add(&format!("ownership/{name}-row"), row.map_err(Error::from)?);
    }
    // A network of two rounds on two times two bits, small enough to be followed with a pen.
    let made_of = |half: usize| (3 * half + 1) % 4;
    let pass = |x: usize| {
        let (high, low) = (x / 4, x % 4);
        let high = high ^ made_of(low);
        4 * high + (low ^ made_of(high))
    };
    numbers.add("ownership/pass-one", pass(2));
    numbers.add("ownership/pass-two", pass(pass(2)));
    numbers.add("ownership/made-of-2", made_of(2));
    numbers.add("ownership/made-of-3", made_of(3));
    Ok(())
}

fn balance(numbers: &mut Numbers) -> Result<()> {
    for (text, counts) in texts() {
        let total: u64 = counts.iter().sum();
        let most = counts.iter().copied().max().unwrap_or(0);
        let share = most as f64 / total as f64;
        numbers.add(&format!("ownership/{text}-most"), format!("{:.1}", 100.0 * share));
        let blocks = loaded(Sharing::Contiguous, &counts, 8)?;
        if text == "zipf" {
            let owned = owned(SHARINGS[2].1, counts.len(), 8)?;
            let owners = [owned.owner(0), owned.owner(1)].map(|rank| rank.map_err(Error::from));
            let [one, other] = owners;
            let (one, other) = (one?, other?);
            let alike = if one == other { "same" } else { "different" };
            numbers.add("ownership/zipf-first-two", alike);
            let load = owned.load(&counts).map_err(Error::from)?;
            numbers.add("ownership/zipf-hashed-most", percent(&load, one).replace(" %", ""));
            numbers.add("ownership/zipf-hashed-ratio", ratio(&load));
            let stripes = loaded(Sharing::Striped, &counts, 8)?;
            numbers.add("ownership/zipf-striped-ratio", ratio(&stripes));
        }
        let share_of = |rank| percent(&blocks, rank).replace(" %", "");
        numbers.add(&format!("ownership/{text}-contiguous-first-8"), share_of(0));
        // The most frequent token is on one rank in every assignment.
        numbers.add(&format!("ownership/{text}-floor-64"), format!("{:.1}", 64.0 * share));
        for (name, sharing) in SHARINGS {
            let load = loaded(sharing, &counts, 64)?;
            if sharing != Sharing::Contiguous {
                numbers.add(&format!("ownership/{text}-{name}-ratio-64"), ratio(&load));
            }
        }
        if text == "book" {
            numbers.add("ownership/book-tokens", thousands(total as usize));
            let never = counts.iter().filter(|count| **count == 0).count();
            numbers.add("ownership/book-never", never);
            let at = counts.iter().position(|count| *count == most).unwrap_or(0);
            numbers.add("ownership/book-most-id", at);
            let busiest = (0..8).max_by_key(|&rank| blocks.tokens()[rank]).unwrap_or(0);
            numbers.add("ownership/book-busiest", busiest);
            numbers.add("ownership/book-busiest-share", share_of(busiest));
            numbers.add("ownership/book-rank-2", share_of(2));
            let bytes: u64 = counts[..256].iter().sum();
            numbers
                .add("ownership/book-bytes", format!("{:.1}", 100.0 * bytes as f64 / total as f64));
        }
    }
    let [least, middle, most] = over_seeds()?;
    numbers.add("ownership/seeds", thousands(SEEDS as usize));
    numbers.add("ownership/seeds-least", format!("{least:.2}"));
    numbers.add("ownership/seeds-middle", format!("{middle:.2}"));
    numbers.add("ownership/seeds-most", format!("{most:.2}"));
    Ok(())
}

fn time(numbers: &mut Numbers) -> Result<()> {
    let Recorded { processor, cores, load: [before, after], .. } = recorded();
    numbers.add("ownership/measured-on", processor);
    numbers.add("ownership/measured-cores", cores);
    numbers.add("ownership/measured-before", format!("{before:.0}"));
    numbers.add("ownership/measured-after", format!("{after:.0}"));
    step_ratios(numbers, "two", "2 ranks share a table");
    step_ratios(numbers, "eight", "8 ranks share a table");
    step_ratios(numbers, "eight-copies", "8 copies");
    numbers.add("ownership/worst-step", format!("{:.0}", worst_step()));
    let (w, doubling) = (4096, AllReduce::RecursiveDoubling);
    numbers.add("ownership/ring-messages-4096", thousands(2 * (w - 1)));
    numbers.add("ownership/doubling-messages-4096", w.ilog2());
    numbers.add("ownership/ring-one-4096", ms(sum_ms(AllReduce::Ring, w, 1.0)?));
    numbers.add("ownership/doubling-one-4096", ms(sum_ms(doubling, w, 1.0)?));
    numbers.add("ownership/ring-step-4096", ms(sum_ms(AllReduce::Ring, w, STEP)?));
    numbers.add("ownership/halving-step-4096", ms(sum_ms(AllReduce::HalvingDoubling, w, STEP)?));
    // The first power of two for which fewer messages are worth more bytes.
    let mut worlds = (1..=12).map(|level| 1usize << level);
    let crossed = worlds.find(|&w| {
        let of = |way| sum_ms(way, w, STEP).unwrap_or(f64::NAN);
        of(doubling) < of(AllReduce::Ring)
    });
    numbers.add("ownership/crossed-step", thousands(crossed.unwrap_or(0)));
    let looked_up = |rows| {
        let bytes = STEP * E as f64 * F16;
        lookup_seconds(&COSTS, AllReduce::Ring, 8, rows, bytes).map_err(Error::from)
    };
    numbers.add("ownership/rows-all", ms(1e3 * (looked_up(STEP)? - looked_up(0.0)?)));
    numbers.add("ownership/rows-even", ms(1e3 * (looked_up(STEP / 8.0)? - looked_up(0.0)?)));
    numbers.add("ownership/sum-8", ms(1e3 * looked_up(0.0)?));
    // Shoeybi et al. 2019: petaFLOPs of 512 GPUs, and teraFLOPs of one.
    numbers.add("ownership/megatron", format!("{:.2}", 15.1e15 / (512.0 * 39e12)));
    let logits = STEP * ZIPF_IDS as f64 * F32;
    numbers.add("ownership/logits-mib", thousands((logits / f64::from(1 << 20)) as usize));
    let three = STEP * CROSS_ENTROPY_NUMBERS as f64 * F32;
    numbers.add("ownership/three-kib", (three / 1024.0) as usize);
    numbers.add("ownership/logits-by-three", thousands(ZIPF_IDS / CROSS_ENTROPY_NUMBERS));
    numbers.add("ownership/cross-entropy-8", ms(cross_entropy_ms(8)?));
    numbers.add("ownership/gathered-8", ms(gathered_ms(8)?));
    Ok(())
}
