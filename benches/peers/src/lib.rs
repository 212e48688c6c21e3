//! What all Rust implementations share: the inputs, the allocator, and how they are asked.
//!
//! An implementation reads a line and prints a line. `NAME` is an operation, and the answer the seconds of one call.
//! `check NAME` is answered with two numbers for each result: its outputs, or its gradients if it has a backward
//! pass. A decoder answers with a sample of its logits and the largest magnitude. An implementation that does not have the operation answers
//! `none`.

use std::io::Write;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub const SEQ: usize = 2048;
pub const HIDDEN: usize = 4096;
pub const HEADS: usize = 32;
pub const HEAD: usize = 128;
pub const GROUP: usize = 128;
pub const VOCAB: usize = 32_000;
/// The rows of rank 1 of 4.
pub const OWNED: std::ops::Range<usize> = 8000..16_000;
/// The default of quadrivium and of burn.
pub const EPS: f64 = 1e-5;
/// Calls before an operation is timed for the first time.
const WARM_UP: usize = 3;
/// Seconds of calls in each turn before the one that is timed.
const SETTLE: f64 = 0.05;
/// How many logits a check samples.
const PLACES: usize = 32;

/// Values at places counted from `first`, without a pattern that matters.
pub fn values(first: usize, len: usize) -> Vec<f32> {
    let value = |i: usize| (i as u64 * 2_654_435_761 % 1000) as f32 / 500.0 - 1.0;
    (first..first + len).map(value).collect()
}

pub fn x() -> Vec<f32> {
    values(0, SEQ * HIDDEN)
}

pub fn ones() -> Vec<f32> {
    vec![1.0; HIDDEN]
}

pub fn table() -> Vec<f32> {
    values(0, VOCAB * HIDDEN)
}

pub fn shard() -> Vec<f32> {
    values(OWNED.start * HIDDEN, OWNED.len() * HIDDEN)
}

pub fn ids() -> Vec<usize> {
    (0..SEQ).map(|i| i * 2_654_435_761 % VOCAB).collect()
}

/// The cosines and sines of all positions, `[s, d / 2]` each.
pub fn angles() -> (Vec<f32>, Vec<f32>) {
    let angle = |i: usize| {
        let (position, plane) = (i / (HEAD / 2), i % (HEAD / 2));
        position as f64 * 10_000f64.powf(-2.0 * plane as f64 / HEAD as f64)
    };
    let angles = (0..SEQ * HEAD / 2).map(angle);
    angles.map(|angle| (angle.cos() as f32, angle.sin() as f32)).unzip()
}

/// Heads `[b, s, nh, d]` in the layout `[b, nh, s, d]`.
pub fn heads(values: &[f32]) -> Vec<f32> {
    let mut moved = vec![0.0; values.len()];
    for (i, value) in values.iter().enumerate() {
        moved[heads_first(i)] = *value;
    }
    moved
}

/// Back from that layout.
pub fn heads_back(values: &[f32]) -> Vec<f32> {
    (0..values.len()).map(|i| values[heads_first(i)]).collect()
}

fn heads_first(i: usize) -> usize {
    let (token, head, j) = (i / HIDDEN, i / HEAD % HEADS, i % HEAD);
    (head * SEQ + token) * HEAD + j
}

/// The results of a call, still in the library's own form. Called, it gives their values.
pub type Results = Box<dyn FnOnce() -> Vec<Vec<f32>>>;

/// A call, with inputs that were made before.
pub type Call = Box<dyn Fn() -> Results>;

/// Answers until there is nothing more to read.
pub fn serve(make: impl Fn(&str) -> Option<Call>) {
    answer(make, |list| fingerprint(list).to_vec());
}

/// The same, of calls whose results are logits.
pub fn serve_logits(make: impl Fn(&str) -> Option<Call>) {
    answer(make, some_logits);
}

fn answer(make: impl Fn(&str) -> Option<Call>, of: fn(&[f32]) -> Vec<f64>) {
    let mut current: Option<(String, Call)> = None;
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let name = line.trim_start_matches("check ");
        if current.as_ref().is_none_or(|(made, _)| made != name) {
            drop(current.take()); // frees its memory first
            current = make(name).map(|call| (name.to_string(), call));
            if let Some((_, call)) = &current {
                (0..WARM_UP).for_each(|_| drop(call()));
            }
        }
        match &current {
            None => println!("none"),
            Some((_, call)) if name != line => {
                let numbers: Vec<f64> = call()().iter().flat_map(|list| of(list)).collect();
                println!("{}", numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(" "));
            }
            Some((_, call)) => println!("{}", seconds(call)),
        }
        std::io::stdout().flush().expect("a listener");
    }
}

/// The seconds of one call. Dropping its results is part of it, as it is of every step of a training.
///
/// The calls before it are not timed. After a pause threads have gone to sleep, and for some milliseconds the
/// system may have two of them on one core; in a training no operation comes after a pause.
fn seconds(call: &Call) -> f64 {
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < SETTLE {
        drop(call());
    }
    let start = Instant::now();
    drop(call());
    start.elapsed().as_secs_f64()
}

/// Two sums that show whether two results are the same: one sees signs and places, the other sizes.
fn fingerprint(list: &[f32]) -> [f64; 2] {
    let weigh = |i: usize| (i as u64 * 40_503 % 1009) as f64 / 1009.0;
    let weighed = list.iter().enumerate().map(|(i, value)| (f64::from(*value), weigh(i)));
    weighed.fold([0.0; 2], |[one, two], (v, w)| [one + v * w, two + v * v * w])
}

/// Logits at some places, and the size of the largest. With fewer bits every logit is slightly off, so comparing sums would not work.
fn some_logits(logits: &[f32]) -> Vec<f64> {
    let largest = logits.iter().fold(0.0f32, |most, logit| most.max(logit.abs()));
    let some = (0..PLACES).map(|i| logits[i * logits.len() / PLACES]);
    some.chain([largest]).map(f64::from).collect()
}
