//! ParallelVocabEmbedding: the ranks together are one embedding, and nothing leaks between them.

mod unasked;

use crate::support::*;
use proptest::prelude::*;
use quadrivium::tensor::*;
use quadrivium::vocab_emb::{padded_vocab_size, shard_range};
use quadrivium::{ParallelVocabEmbedding, ParallelVocabEmbeddingConfig};
use quadrivium::{VocabEmbedding, VocabEmbeddingConfig};

const V: usize = 12;
const M: usize = 5;
type Shard<const W: usize> = ParallelVocabEmbedding<V, M, W, f32, Dev>;

fn shards<const W: usize>() -> Vec<Shard<W>> {
    let config = |rank| ParallelVocabEmbeddingConfig { rank, ..Default::default() };
    (0..W).map(|rank| Shard::new(&dev(), config(rank)).unwrap()).collect()
}

/// One table with the rows of all shards in the order of their ranks.
fn whole<const W: usize>(shards: &[Shard<W>]) -> VocabEmbedding<V, M, f32, Dev> {
    let mut whole = VocabEmbedding::new(&dev(), VocabEmbeddingConfig::default()).unwrap();
    let rows: Vec<f32> = shards.iter().flat_map(|shard| shard.weight.as_vec()).collect();
    whole.weight = tensor(&rows, (Const, Const));
    whole
}

macro_rules! for_worlds {
    ($check:ident) => {
        $check::<1>();
        $check::<2>();
        $check::<3>();
        $check::<4>();
        $check::<12>();
    };
}
use for_worlds;

fn calls() -> impl Strategy<Value = ((usize, usize), Vec<usize>, Vec<f32>)> {
    (1..4usize, 1..6usize).prop_flat_map(|(b, s)| {
        (Just((b, s)), proptest::collection::vec(0..V, b * s), values(b * s * M))
    })
}

/// The sum over ranks is the lookup in the whole table: equal, and so bit-equal except for the sign of
/// a zero. At most one rank is not zero at a token: the one that owns the id.
#[test]
fn the_ranks_sum_to_the_whole_lookup() {
    fn check<const W: usize>() {
        let shards = shards::<W>();
        let whole = whole(&shards);
        forall(calls(), |(shape, tokens, _)| {
            let parts: Vec<Vec<f32>> =
                shards.iter().map(|shard| shard.forward(ids(&tokens, shape)).as_vec()).collect();
            let sum: Vec<f32> =
                (0..tokens.len() * M).map(|i| parts.iter().map(|p| p[i]).sum()).collect();
            assert_eq!(sum, whole.forward(ids(&tokens, shape)).as_vec());
            for (token, &id) in tokens.iter().enumerate() {
                for (rank, part) in parts.iter().enumerate() {
                    let row = &part[token * M..][..M];
                    let owner = rank == id * W / V;
                    assert_eq!(
                        row.iter().all(|x| x.to_bits() == 0),
                        !owner,
                        "rank {rank}, id {id}"
                    );
                }
            }
        });
    }
    for_worlds!(check);
}

// ANCHOR: slices
/// A rank's gradient is its slice of the whole gradient, bit for bit. Foreign tokens send
/// nothing, not even to row 0.
#[test]
fn gradients_are_slices_of_the_whole_gradient() {
    fn check<const W: usize>() {
        let shards = shards::<W>();
        let whole = whole(&shards);
        forall(calls(), |(shape, tokens, mut dy)| {
            if cfg!(feature = "cuda") {
                // Tokens of one row come in no fixed order there. Sums of sixteenths have no rounding.
                dy.iter_mut().for_each(|dy| *dy = (*dy * 16.0).round() / 16.0);
            }
            let traced = || Trace::<f32, Dev>::leaky_trace(&ids(&tokens, shape));
            let full = backward(whole.forward(traced()), &dy).get(&whole.weight).as_vec();
            for (rank, shard) in shards.iter().enumerate() {
                let got = backward(shard.forward(traced()), &dy).get(&shard.weight).as_vec();
                let owned = shard.owned_ids();
                assert_eq!(Ok(owned.clone()), shard_range(V, W, rank));
                assert_eq!(got, full[owned.start * M..owned.end * M]);
            }
        });
    }
    for_worlds!(check);
}
// ANCHOR_END: slices

/// Each id has one owner, `id / n`. With quickcheck: any number of rows, of ranks, any id.
#[test]
fn shard_ranges_partition_the_vocabulary() {
    fn one_owner(rows: u16, world: u8, id: u32) -> bool {
        let (rows, world) = (usize::from(rows) + 1, usize::from(world) + 1);
        let id = id as usize % (rows * world);
        let owns = |&rank: &usize| shard_range(rows * world, world, rank).unwrap().contains(&id);
        (0..world).filter(owns).collect::<Vec<_>>() == [id / rows]
    }
    law(one_owner as fn(u16, u8, u32) -> bool);
}

#[test]
fn padding_is_the_smallest_that_fits() {
    fn smallest(vocab_size: u32, world: u8) -> bool {
        let (v, w) = (vocab_size as usize, usize::from(world) + 1);
        let padded = padded_vocab_size(v, w);
        padded % w == 0 && padded >= v && padded < v + w
    }
    law(smallest as fn(u32, u8) -> bool);
}
