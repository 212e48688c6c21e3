//! Questions to a ParallelVocabEmbedding.

use crate::component::Fingerprint;
use crate::laws::widen;
use crate::parallel::interface::*;
use crate::parallel::oracle::owned;

/// Asks them all.
pub fn fingerprints(parallel: &dyn ParallelVocabEmbedding) -> Vec<Fingerprint> {
    let mut fingerprints = Vec::new();
    for (v, w, r) in RANGES {
        fingerprints.push(Fingerprint::ask("shard_range", || {
            let range = parallel.shard_range(v, w, r)?;
            Ok(vec![range.start as f64, range.end as f64])
        }));
    }
    for (v, e, w, r, init) in SHARDS {
        fingerprints.push(Fingerprint::ask("initial_shard", || {
            Ok(widen(&parallel.initial_shard(v, e, w, r, init)?))
        }));
    }
    for case in cases() {
        let found = || parallel.forward(&case);
        fingerprints.push(Fingerprint::ask("forward", || Ok(widen(&found()?.y))));
        fingerprints.push(Fingerprint::ask("forward", || {
            Ok(found()?.ids_after.iter().map(|&id| id as f64).collect())
        }));
        // The gradient of a bad id is not specified: the forward pass refuses it.
        if case.ids.iter().any(|&id| id >= case.vocab_size) {
            continue;
        }
        let mut dy: Vec<f32> = (0..case.ids.len() * case.embedding_dim)
            .map(|i| 1.75 - 0.25 * (i % 37) as f32)
            .collect();
        fingerprints
            .push(Fingerprint::ask("backward", || Ok(widen(&parallel.backward(&case, &dy)?))));
        dy[0] = f32::NAN;
        fingerprints
            .push(Fingerprint::ask("backward", || Ok(widen(&parallel.backward(&case, &dy)?))));
    }
    let frequent = rank((12, 2, 4), 1, [30, 100], vec![4; 3000]);
    let ones = [1.0; 6000];
    fingerprints
        .push(Fingerprint::ask("backward", || Ok(widen(&parallel.backward(&frequent, &ones)?))));
    // How a refusal is worded: whether it names the id, and whether any number.
    let bad = rank((12, 5, 3), 1, [1, 3], vec![1, 977, 5]);
    let words = || parallel.forward(&bad).err().map(|refusal| refusal.0).unwrap_or_default();
    let says = |yes: bool| Ok(vec![f64::from(u8::from(yes))]);
    fingerprints.push(Fingerprint::ask("forward", || says(words().contains("977"))));
    let number = |words: String| words.contains(|c: char| c.is_ascii_digit());
    fingerprints.push(Fingerprint::ask("forward", || says(number(words()))));
    fingerprints
}

/// `(v, w, r)`: good ones, a large one, many ranks, uneven worlds, no world, no such rank.
const RANGES: [(usize, usize, usize); 11] = [
    (12, 3, 0),
    (12, 3, 2),
    (20, 2, 1),
    (1 << 40, 1 << 10, 1000),
    (24, 12, 11),
    (13, 3, 2),
    (7, 2, 1),
    (12, 0, 0),
    (12, 3, 3),
    (12, 3, 4),
    (12, 1, 1),
];

const fn init(mean: f32, std: f32, seed: u64) -> NormalInit {
    NormalInit { mean, std, seed }
}

/// `(v, e, w, r)` and the distribution.
const SHARDS: [(usize, usize, usize, usize, NormalInit); 8] = [
    (12, 5, 1, 0, init(0.0, 1.0, 42)),
    (12, 5, 3, 0, init(0.0, 1.0, 42)),
    (12, 5, 3, 1, init(0.0, 1.0, 42)),
    (12, 5, 3, 2, init(0.5, 0.25, 42)),
    (12, 2, 4, 3, init(0.0, 1.0, 42)),
    (20, 4, 2, 1, init(-1.0, 2.0, 7)),
    (12, 5, 3, 2, init(0.0, 1.0, u32::MAX as u64)),
    (12, 5, 3, 2, init(0.0, 1.0, u64::MAX)),
];

/// A rank's part of a lookup in a table of plain values.
fn rank(
    (v, e, w): (usize, usize, usize),
    rank: usize,
    shape: [usize; 2],
    ids: Vec<usize>,
) -> ShardCase {
    let own = owned(v, w, rank);
    let value = |i: usize| 1.003 + 0.5 * i as f32 * (-1.0f32).powi(i as i32);
    ShardCase {
        shape,
        vocab_size: v,
        embedding_dim: e,
        world_size: w,
        rank,
        shard: (own.start * e..own.end * e).map(value).collect(),
        ids,
    }
}

/// Own and foreign tokens, both edges, repeats, no own token at all; strange values; bad ids.
fn cases() -> Vec<ShardCase> {
    let (one, three, two) = ((12, 5, 1), (12, 5, 3), (20, 4, 2));
    let mut cases = vec![
        rank(one, 0, [2, 3], vec![5, 0, 5, 2, 11, 5]),
        rank(three, 0, [2, 3], vec![6, 0, 6, 11, 3, 4]),
        rank(three, 1, [2, 3], vec![6, 0, 6, 11, 7, 6]),
        rank(three, 1, [1, 4], vec![3, 4, 7, 8]),
        rank(three, 2, [1, 4], vec![7, 8, 11, 0]),
        rank(three, 1, [1, 3], vec![0, 11, 9]),
        rank(two, 1, [4, 2], vec![13, 2, 19, 10, 10, 4, 17, 16]),
    ];
    for value in [f32::NAN, 1e-40] {
        let mut case = rank(three, 1, [1, 3], vec![0, 4, 11]);
        case.shard.fill(value);
        cases.push(case);
    }
    for id in [12, 13, (1 << 32) + 3, usize::MAX - 2] {
        cases.push(rank(one, 0, [2, 2], vec![1, 2, 3, id]));
        cases.extend((0..3).map(|r| rank(three, r, [2, 2], vec![1, 2, 3, id])));
    }
    cases.push(ShardCase { rank: 3, ..rank(three, 0, [1, 2], vec![0, 11]) });
    cases.push(ShardCase { rank: 4, ..rank(three, 0, [1, 2], vec![0, 11]) });
    cases
}
