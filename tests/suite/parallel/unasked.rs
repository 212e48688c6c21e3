//! ParallelVocabEmbedding: what the contract does not ask. How a module starts, and the errors by their names.

use super::*;
use quadrivium::Error;

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

/// What does not divide is refused, and so are an empty vocabulary and a rank that does not exist.
#[test]
fn no_range_is_an_error() {
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
    assert!(std::panic::catch_unwind(|| padded_vocab_size(usize::MAX, 2)).is_err());
}
