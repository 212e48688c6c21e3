//! ParallelVocabEmbedding: the ranks together are one embedding, and nothing leaks between them.

use crate::support::*;
use proptest::prelude::*;
use quadrivium::tensor::*;
use quadrivium::vocab_emb::{padded_vocab_size, shard_range};
use quadrivium::{Error, ParallelVocabEmbedding, ParallelVocabEmbeddingConfig};
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

fn calls() -> impl Strategy<Value = ((usize, usize), Vec<usize>, Vec<f32>)> {
    (1..4usize, 1..6usize).prop_flat_map(|(b, s)| {
        (Just((b, s)), proptest::collection::vec(0..V, b * s), values(b * s * M))
    })
}

/// The sum over ranks is the lookup in the whole table: equal, and so bit-equal but for the sign
/// of a zero. At most one rank is not zero at a token: the one that owns the id.
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

/// Zeros are written, not multiplied: a NaN in row 0, or in the gradient of a foreign token,
/// stays where it is.
#[test]
fn nan_does_not_leak_into_foreign_tokens() {
    let mut shard = shards::<2>().remove(0); // owns 0..6
    let mut rows = shard.weight.as_vec();
    rows[..M].fill(f32::NAN);
    shard.weight = tensor(&rows, (Quotient, Const));
    let y = shard.forward(ids(&[7, 1], (1, 2))).as_vec();
    assert_eq!(y[..M], [0.0; M]);

    let y = shard.forward(Trace::<f32, Dev>::leaky_trace(&ids(&[7, 1], (1, 2))));
    let mut dy = [1.0; 2 * M];
    dy[..M].fill(f32::NAN);
    // <y, dy> is NaN, but its gradient is dy, which the mask drops.
    let grads = backward(y, &dy).get(&shard.weight).as_vec();
    assert_eq!(grads[..M], [0.0; M]);
    assert_eq!(grads[M..2 * M], [1.0; M]);
}

/// Each shard's edges: `rn - 1`, `rn`, `(r + 1)n - 1`, `(r + 1)n`.
#[test]
fn a_shard_owns_exactly_its_range() {
    let all: Vec<usize> = (0..V).collect();
    for (rank, shard) in shards::<3>().iter().enumerate() {
        let y = shard.forward(ids(&all, (1, V))).as_vec();
        let owned: Vec<usize> = (0..V).filter(|id| y[id * M..][..M] != [0.0; M]).collect();
        assert_eq!(owned, (4 * rank..4 * rank + 4).collect::<Vec<_>>());
    }
}

/// Rank `r`'s rows are an embedding of `n` rows with seed `base + r`; `w = 1` is the embedding.
#[test]
fn a_shard_starts_as_an_embedding_of_its_own_seed() {
    for (rank, shard) in shards::<3>().iter().enumerate() {
        let config = VocabEmbeddingConfig { init_seed: 42 + rank as u64, ..Default::default() };
        let alone = VocabEmbedding::<4, M, f32, _>::new(&dev(), config).unwrap();
        assert_same_bits(&shard.weight.as_vec(), &alone.weight.as_vec());
    }
    let alone = VocabEmbedding::<V, M, f32, _>::new(&dev(), Default::default()).unwrap();
    assert_same_bits(&shards::<1>()[0].weight.as_vec(), &alone.weight.as_vec());
}

/// Id `v` is the same error in every world and on every rank, also where `w = 1`.
#[test]
fn every_rank_refuses_the_same_ids() {
    fn check<const W: usize>() {
        let want = Error::TokenId { id: V, batch: 0, position: 1, vocab_size: V };
        for shard in shards::<W>() {
            assert_eq!(shard.try_forward(ids(&[0, V], (1, 2))).unwrap_err(), want);
            shard.try_forward(ids(&[0, V - 1], (1, 2))).unwrap();
        }
    }
    for_worlds!(check);
}

#[test]
fn a_rank_outside_the_world_is_an_error() {
    for rank in [2, 3, usize::MAX] {
        let config = ParallelVocabEmbeddingConfig { rank, ..Default::default() };
        assert_eq!(
            Shard::<2>::new(&dev(), config).unwrap_err(),
            Error::Rank { rank, world_size: 2 }
        );
    }
}

/// The integer laws, for all sizes: each id has one owner, `id / n`; what does not divide is
/// refused, and so are an empty vocabulary and a rank that does not exist.
#[test]
fn shard_ranges_partition_the_vocabulary() {
    fn one_owner(rows: u16, world: u8, id: u32) -> bool {
        let (rows, world) = (usize::from(rows) + 1, usize::from(world) + 1);
        let id = id as usize % (rows * world);
        let owns = |&rank: &usize| shard_range(rows * world, world, rank).unwrap().contains(&id);
        (0..world).filter(owns).collect::<Vec<_>>() == [id / rows]
    }
    law(one_owner as fn(u16, u8, u32) -> bool);

    fn refusals(vocab_size: u16, world: u8, rank: u8) -> bool {
        let (vocab_size, world_size, rank) = (vocab_size.into(), world.into(), rank.into());
        let got = shard_range(vocab_size, world_size, rank).err();
        if world_size == 0 || vocab_size % world_size != 0 {
            got == Some(Error::WorldSize { world_size, vocab_size })
        } else if vocab_size == 0 {
            matches!(got, Some(Error::Setting { name: "vocab_size", .. }))
        } else {
            got == (rank >= world_size).then_some(Error::Rank { rank, world_size })
        }
    }
    law(refusals as fn(u16, u8, u8) -> bool);
}

#[test]
fn padding_is_the_smallest_that_fits() {
    fn smallest(vocab_size: u32, world: u8) -> bool {
        let (v, w) = (vocab_size as usize, usize::from(world) + 1);
        let padded = padded_vocab_size(v, w);
        padded % w == 0 && padded >= v && padded < v + w
    }
    law(smallest as fn(u32, u8) -> bool);
    assert!(std::panic::catch_unwind(|| padded_vocab_size(usize::MAX, 2)).is_err());
}
