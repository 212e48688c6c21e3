//! VocabEmbedding, and one of four shards.

use super::{Race, Size, Work};
use benches::{ids, loops};
use quadrivium::tensor::*;
use quadrivium::*;
use std::hint::black_box;

pub fn race(race: &mut Race) {
    whole::<32_000, 4096>(race, 2048);
    shard::<32_000, 4096>(race, 2048);
    if race.every_size {
        [256, 1024, 4096, 16_384]
            .into_iter()
            .for_each(|tokens| whole::<32_000, 1024>(race, tokens));
        whole::<128_256, 1024>(race, 2048);
        shard::<128_256, 1024>(race, 2048);
    }
}

fn whole<const V: usize, const E: usize>(race: &mut Race, tokens: usize) {
    let dev = race.dev.clone();
    let embedding = VocabEmbedding::<V, E, f32, _>::new(&dev, Default::default());
    let embedding = embedding.expect("an embedding");
    let batch = dev.tensor_from_vec(ids(tokens, V), (Const::<1>, tokens));
    let mut forward = || drop(black_box(embedding.forward(batch.clone())));
    let mut both = || drop(embedding.forward(batch.leaky_trace()).sum::<Rank0, _>().backward());
    let size = format!("[1, {tokens}] of [{V}, {E}]");
    let table = embedding.weight.as_vec();
    run(race, ("embedding", &size), (&table, E, 0), &ids(tokens, V), [&mut forward, &mut both]);
}

fn shard<const V: usize, const E: usize>(race: &mut Race, tokens: usize) {
    let dev = race.dev.clone();
    let config = ParallelVocabEmbeddingConfig { rank: 1, ..Default::default() };
    let shard = ParallelVocabEmbedding::<V, E, 4, f32, _>::new(&dev, config).expect("a shard");
    let batch = dev.tensor_from_vec(ids(tokens, V), (Const::<1>, tokens));
    let mut forward = || drop(black_box(shard.forward(batch.clone())));
    let mut both = || drop(shard.forward(batch.leaky_trace()).sum::<Rank0, _>().backward());
    let size = format!("[1, {tokens}] of [{V}, {E}]");
    let table = shard.weight.as_vec();
    run(
        race,
        ("shard 1 of 4", &size),
        (&table, E, V / 4),
        &ids(tokens, V),
        [&mut forward, &mut both],
    );
}

/// Measures the two works of a module beside a loop over a table whose first row belongs to the id `first`.
fn run(
    race: &mut Race,
    (name, size): (&str, &str),
    (table, e, first): (&[f32], usize, usize),
    ids: &[usize],
    [forward, both]: [Work; 2],
) {
    let elements = ids.len() * e;
    let mut y = vec![0.0; elements];
    let of = Size { name: &format!("{name} forward"), size, elements };
    race.run(&of, forward, true, &mut || {
        loops::lookup(table, e, first, ids, black_box(&mut y));
    });
    let of = Size { name: &format!("{name} forward and backward of a sum"), ..of };
    let (dy, mut dtable) = (vec![1.0; elements], vec![0.0; table.len()]);
    race.run(&of, both, true, &mut || {
        loops::lookup(table, e, first, ids, &mut y);
        black_box(y.iter().sum::<f32>());
        dtable.fill(0.0); // a gradient begins at zero, in each step
        loops::lookup_backward(&dy, e, first, ids, black_box(&mut dtable));
    });
}
