//! The first step: ids become rows of one table.

use super::*;
use crate::finding::Claim;
use quadrivium::{
    ParallelVocabEmbedding, ParallelVocabEmbeddingConfig, VocabEmbedding, VocabEmbeddingConfig,
};
use std::collections::BTreeMap;

/// One rank's part of the table.
pub type Shard = ParallelVocabEmbedding<TABLE_ROWS, HIDDEN, WORLD_SIZE, f32, Cpu>;
/// The whole table.
pub type Whole = VocabEmbedding<TABLE_ROWS, HIDDEN, f32, Cpu>;

/// GPT-2 starts its embeddings with this standard deviation. It makes the mean square about
/// 4e-4, so small that the norm's eps of 1e-5 can be seen.
pub const INIT_STD: f64 = 0.02;

/// The same table twice: whole, and cut into shards.
#[derive(Debug, Clone)]
pub struct Tables {
    /// `[v, e]`.
    pub whole: Whole,
    /// `w` shards of `[n, e]`, in the order of the ranks.
    pub shards: Vec<Shard>,
}

/// How often [`draw`] calls `on_progress`: once a shard.
pub const DRAWN_TABLES: usize = WORLD_SIZE;

/// Draws the shards, and sets the whole table to the shards one under another.
///
/// # Errors
/// What a component or the device reports.
pub fn draw(dev: &Cpu, mut on_progress: impl FnMut()) -> Result<Tables> {
    let mut shards = Vec::new();
    let mut rows = Vec::with_capacity(TABLE_ROWS * HIDDEN);
    for rank in 0..WORLD_SIZE {
        let init_std = INIT_STD;
        let config = ParallelVocabEmbeddingConfig { rank, init_std, ..Default::default() };
        let shard = Shard::new(dev, config)?;
        rows.extend(shard.weight.as_vec());
        shards.push(shard);
        on_progress();
    }
    // A table with a single seed would have other numbers: each rank has its own seed.
    let rows = dev.try_tensor_from_vec(rows, (Const, Const)).map_err(Error::device)?;
    let whole = Whole::with_weight(rows, VocabEmbeddingConfig::default())?;
    Ok(Tables { whole, shards })
}

const ROWS: Claim = Claim {
    component: "embedding",
    invariant: "rows-bit-equal",
    words: "A token's vector is its row of the table, copied and not computed.",
    formula: "E[t] = T[id_t], bit for bit",
};
const COUNTS: Claim = Claim {
    component: "embedding",
    invariant: "gradient-counts",
    words: "If every token sends a gradient of 1, a row's gradient says how often its id occurs. \
            Rows that never occur get exactly 0.",
    formula: "dy = 1 gives dT[i, j] = |{t: id_t = i}|, exact below 2^24",
};
const REFUSED: Claim = Claim {
    component: "embedding",
    invariant: "id-v-refused",
    words: "An id that is not a row is an error that names the id and its place. It is tried at \
            the first, the middle and the last position of this text.",
    formula: "id = v gives an error",
};

/// Looks up `ids` in the whole table.
///
/// # Errors
/// What a component or the device reports.
pub fn run(dev: &Cpu, tables: &Tables, ids: &[usize]) -> Result<Step<Hidden>> {
    let (mut forward, mut checks) = (Duration::ZERO, Duration::ZERO);
    let tensor = ids_tensor(dev, ids)?;
    let x = timed(&mut forward, || tables.whole.try_forward(tensor))?;
    let findings = timed(&mut checks, || check(dev, tables, ids, &x))?;
    Ok(Step { output: x, findings, forward, checks })
}

fn check(dev: &Cpu, tables: &Tables, ids: &[usize], x: &Hidden) -> Result<Vec<Finding>> {
    let table = tables.whole.weight.as_vec(); // [v, e]
    let x = x.as_vec(); // [1, s, e]
    let wrong_rows = (ids.iter().zip(x.chunks_exact(HIDDEN)))
        .filter(|(id, x)| different_bits(x, &table[*id * HIDDEN..][..HIDDEN]) > 0)
        .count();

    let mut counts = BTreeMap::new();
    for &id in ids {
        *counts.entry(id).or_insert(0.0f32) += 1.0;
    }
    let y = tables.whole.try_forward(ids_tensor(dev, ids)?.leaky_traced())?;
    let ones = hidden_tensor(dev, vec![1.0; ids.len() * HIDDEN])?;
    let gradient = backward(y, ones)?.get(&tables.whole.weight).as_vec(); // [v, e]
    let wrong_counts = (gradient.chunks_exact(HIDDEN).enumerate())
        .map(|(id, row)| {
            let count = counts.get(&id).copied().unwrap_or(0.0);
            row.iter().filter(|&&g| g != count).count()
        })
        .sum();

    let mut not_refused = 0;
    for position in fingerprints(ids.len()) {
        let bad = ids_tensor(dev, &with_bad_id(ids, position))?;
        not_refused += usize::from(tables.whole.try_forward(bad).err() != Some(refusal(position)));
    }

    Ok(vec![
        ROWS.exceptions(wrong_rows, ids.len(), "tokens"),
        COUNTS.exceptions(wrong_counts, gradient.len(), "values"),
        REFUSED.exceptions(not_refused, FINGERPRINTS, "answers"),
    ])
}

/// At how many places a bad id is tried.
pub(crate) const FINGERPRINTS: usize = 3;

/// Where a bad id is tried.
pub(crate) fn fingerprints(tokens: usize) -> [usize; FINGERPRINTS] {
    [0, tokens / 2, tokens - 1]
}

/// The ids, with `v` at one place.
pub(crate) fn with_bad_id(ids: &[usize], position: usize) -> Vec<usize> {
    let mut ids = ids.to_vec();
    ids[position] = TABLE_ROWS;
    ids
}

/// The error that id `v` at this place must give.
pub(crate) fn refusal(position: usize) -> quadrivium::Error {
    quadrivium::Error::TokenId { id: TABLE_ROWS, batch: 0, position, vocab_size: TABLE_ROWS }
}
