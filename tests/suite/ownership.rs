//! Who owns which row: each id has one owner and one row there, and the shards together are the table.

use crate::support::*;
use proptest::prelude::*;
use quadrivium::Error;
use quadrivium::functional::{owned_shard_embedding, vocab_embedding};
use quadrivium::tensor::*;
use quadrivium::vocab_emb::{Ownership, Sharing, Shuffle, shard_range};
use quadrivium::weights::{load_weights, save_weights};

const HASHED: Sharing = Sharing::Hashed { seed: 42 };
const ALL: [Sharing; 3] = [Sharing::Contiguous, Sharing::Striped, HASHED];

fn sharing() -> impl Strategy<Value = Sharing> {
    prop_oneof![
        Just(Sharing::Contiguous),
        Just(Sharing::Striped),
        any::<u64>().prop_map(|seed| Sharing::Hashed { seed })
    ]
}

/// Any ownership of a small vocabulary.
fn ownership() -> impl Strategy<Value = Ownership> {
    (sharing(), 1..9usize, 1..40usize)
        .prop_map(|(sharing, w, n)| Ownership::new(sharing, w * n, w).unwrap())
}

/// Two ownerships of one vocabulary. 60 is divided by many.
fn two() -> impl Strategy<Value = (Ownership, Ownership)> {
    let world = || prop::sample::select(vec![1, 2, 3, 4, 5, 6, 10, 12, 60]);
    (sharing(), world(), sharing(), world()).prop_map(|(one, w, other, w2)| {
        (Ownership::new(one, 60, w).unwrap(), Ownership::new(other, 60, w2).unwrap())
    })
}

// --- integers ---------------------------------------------------------------------------------

// ANCHOR: one_owner
/// Every id has exactly one owner and one row there: of all places of all ranks, one is the id's.
#[test]
fn every_id_has_one_owner_and_one_row() {
    forall(ownership(), |shared| {
        let mut seen = vec![0; shared.vocab_size()];
        for rank in 0..shared.world_size() {
            for (row, id) in shared.owned_ids(rank).unwrap().into_iter().enumerate() {
                seen[id] += 1;
                assert_eq!((shared.owner(id), shared.local_row(id)), (Ok(rank), Ok(row)));
                assert_eq!(shared.global_id(rank, row), Ok(id));
            }
        }
        assert_eq!(seen, vec![1; shared.vocab_size()]);
    });
}
// ANCHOR_END: one_owner

/// There and back, of large vocabularies, for which no one could list all ids.
#[test]
fn there_and_back_in_large_vocabularies() {
    fn law(seed: u64, rows: u32, world: u16, id: u64) -> bool {
        let (n, w) = (rows as usize + 1, world as usize + 1);
        let id = (id % (n * w) as u64) as usize;
        let kinds = [Sharing::Contiguous, Sharing::Striped, Sharing::Hashed { seed }];
        kinds.into_iter().all(|sharing| {
            let shared = Ownership::new(sharing, n * w, w).unwrap();
            let (rank, row) = (shared.owner(id).unwrap(), shared.local_row(id).unwrap());
            rank < w
                && row < n
                && shared.global_id(rank, row) == Ok(id)
                && shared.position(id) == Ok(rank * n + row)
        })
    }
    super::support::law(law as fn(u64, u32, u16, u64) -> bool);
}

#[test]
fn all_shards_have_the_same_size() {
    forall(ownership(), |shared| {
        let (v, w) = (shared.vocab_size(), shared.world_size());
        for rank in 0..w {
            assert_eq!(shared.rows(rank), Ok(v / w));
            assert_eq!(shared.owned_ids(rank).unwrap().len(), v / w);
        }
    });
}

/// Blocks are those of the other functions, turns are the remainder, and the shuffle is none of both.
#[test]
fn each_way_is_what_its_name_says() {
    let [blocks, turns, hashed] = ALL.map(|sharing| Ownership::new(sharing, 12, 3).unwrap());
    for rank in 0..3 {
        let range: Vec<usize> = shard_range(12, 3, rank).unwrap().collect();
        assert_eq!(blocks.owned_ids(rank), Ok(range));
        assert_eq!(turns.owned_ids(rank), Ok(vec![rank, rank + 3, rank + 6, rank + 9]));
    }
    // The places of a checkpoint: another program, another machine or another release must give these.
    let ids = [0, 1, 2].map(|rank| hashed.owned_ids(rank).unwrap());
    assert_eq!(ids, [[1, 10, 5, 2], [9, 3, 8, 7], [6, 4, 0, 11]]);
    let names = ALL.map(|sharing| sharing.to_string());
    assert_eq!(names, ["contiguous", "striped", "hashed(42)"]);
}

/// A world of one owns all, in each way; only the hashed order is another.
#[test]
fn a_world_of_one_owns_all() {
    for sharing in ALL {
        let mut ids = Ownership::new(sharing, 50, 1).unwrap().owned_ids(0).unwrap();
        assert_eq!(ids.is_sorted(), sharing != HASHED);
        ids.sort_unstable();
        assert_eq!(ids, (0..50).collect::<Vec<_>>());
    }
}

/// With `w` ids more, each striped shard has one row more, at its end, and no row has moved.
#[test]
fn a_striped_vocabulary_grows_without_a_move() {
    fn law(rows: u8, world: u8) -> bool {
        let (v, w) = (usize::from(rows) * usize::from(world), usize::from(world));
        if v == 0 {
            return true;
        }
        let [old, new] = [v, v + w].map(|v| Ownership::new(Sharing::Striped, v, w).unwrap());
        let place = |shared: &Ownership, id| (shared.owner(id), shared.local_row(id));
        (0..v).all(|id| place(&old, id) == place(&new, id))
            && (v..v + w).all(|id| new.local_row(id) == Ok(v / w))
    }
    super::support::law(law as fn(u8, u8) -> bool);
}

/// Of 4000 seeds, each rank of 4 owns an id about 1000 times: a binomial with a standard deviation of
/// `sqrt(4000 / 4 * 3 / 4) = 27.4`. Six of these are 165; by chance that happens once in 10^8.
#[test]
fn seeds_give_an_id_to_each_rank_equally_often() {
    for id in [0, 1, 7, 98, 99] {
        let mut owned = [0i64; 4];
        for seed in 0..4000 {
            let shared = Ownership::new(Sharing::Hashed { seed }, 100, 4).unwrap();
            owned[shared.owner(id).unwrap()] += 1;
        }
        assert!(owned.iter().all(|times| (times - 1000).abs() <= 165), "id {id}: {owned:?}");
    }
}

/// Neighbours are torn apart: of 10,000 pairs of neighbours about a quarter share one of 4 owners, as for ids that are
/// dealt by chance. `0.25 ± 6 sqrt(0.25 * 0.75 / 10^4) = 0.25 ± 0.026`; neighbouring pairs share an id, so
/// twice that is asked. Blocks would have all of them together, turns none.
#[test]
fn a_hash_does_not_keep_neighbours_together() {
    for seed in 0..20 {
        let shared = Ownership::new(Sharing::Hashed { seed }, 10_004, 4).unwrap();
        let owner = |id| shared.owner(id).unwrap();
        let together = (0..10_000).filter(|&id| owner(id) == owner(id + 1)).count();
        assert!((1980..=3020).contains(&together), "seed {seed}: {together}");
    }
}

#[test]
fn what_is_no_number_below_the_size_stays() {
    let shuffle = Shuffle::new(5, 1).unwrap();
    for number in [5, 6, 7, 8, usize::MAX] {
        assert_eq!((shuffle.apply(number), shuffle.undo(number)), (number, number));
    }
}

// --- refusals ---------------------------------------------------------------------------------

/// At every edge: the last that is there, the first that is not, and far past it.
#[test]
fn what_does_not_fit_is_refused() {
    forall(ownership(), |shared| {
        let (v, w) = (shared.vocab_size(), shared.world_size());
        let n = v / w;
        let around = |size: usize| [0, size - 1, size, size + 1, usize::MAX];
        for id in around(v) {
            let refused = (id >= v).then_some(Error::NoOwner { id, vocab_size: v });
            assert_eq!(shared.owner(id).err(), refused);
            assert_eq!(shared.local_row(id).err(), refused);
            assert_eq!(shared.position(id).err(), refused);
        }
        for rank in around(w) {
            let refused = (rank >= w).then_some(Error::Rank { rank, world_size: w });
            assert_eq!(shared.rows(rank).err(), refused);
            assert_eq!(shared.owned_ids(rank).err(), refused);
            for row in around(n) {
                let no_row = (row >= n).then_some(Error::ShardRow { row, rows: n });
                assert_eq!(shared.global_id(rank, row).err(), refused.clone().or(no_row));
            }
        }
    });
}

#[test]
fn a_world_that_does_not_divide_is_refused() {
    fn law(v: u8, w: u8) -> bool {
        let [v, w] = [v % 64, w % 16].map(usize::from);
        ALL.into_iter().all(|sharing| match Ownership::new(sharing, v, w) {
            Err(error) if w == 0 || v % w != 0 => {
                error == Error::WorldSize { world_size: w, vocab_size: v }
            }
            Err(Error::Setting { name: "vocab_size", .. }) => v == 0,
            Err(_) => false,
            Ok(shared) => v > 0 && w > 0 && shared.rows(w - 1) == Ok(v / w),
        })
    }
    super::support::law(law as fn(u8, u8) -> bool);
}

#[test]
fn a_vocabulary_is_padded_to_what_fits() {
    let padded = |ids, w| Ownership::padded(HASHED, ids, w).map(|shared| shared.vocab_size());
    assert_eq!(padded(100_277, 4), Ok(100_280));
    assert_eq!(padded(12, 4), Ok(12));
    assert_eq!(padded(7, 0), Err(Error::WorldSize { world_size: 0, vocab_size: 7 }));
    assert!(matches!(padded(0, 3), Err(Error::Setting { name: "vocab_size", .. })));
    for (ids, w) in [(usize::MAX, 2), (usize::MAX, 1), (1 << 62, 1 << 62)] {
        assert!(matches!(padded(ids, w), Err(Error::TooLarge { .. })), "{ids} on {w}");
    }
    for size in [usize::MAX, usize::MAX / 2] {
        assert!(matches!(Shuffle::new(size, 1), Err(Error::TooLarge { .. })));
    }
    assert!(matches!(Shuffle::new(0, 1), Err(Error::Setting { name: "size", .. })));
}

// --- lookups ----------------------------------------------------------------------------------

/// Values of all bits but NaN, and no 0: an owner is distinguished from the others by its numbers, and a sum turns -0
/// into 0.
fn any_table(v: usize, e: usize) -> impl Strategy<Value = Vec<f32>> {
    let value = any::<f32>().prop_map(|x| if x.is_nan() || x == 0.0 { 1.0 } else { x });
    proptest::collection::vec(value, v * e)
}

/// An ownership, a table, ids and their shape, and a gradient.
fn calls() -> impl Strategy<Value = (Ownership, Vec<f32>, Vec<usize>, (usize, usize), Vec<f32>)> {
    (ownership(), 1..4usize, 1..6usize).prop_flat_map(|(shared, b, s)| {
        let v = shared.vocab_size();
        (
            Just(shared),
            any_table(v, E),
            proptest::collection::vec(0..v, b * s),
            Just((b, s)),
            values(b * s * E),
        )
    })
}

const E: usize = 3;

/// The one shard of a whole table.
fn whole(vocab_size: usize) -> Ownership {
    Ownership::new(Sharing::Contiguous, vocab_size, 1).unwrap()
}

fn shards(shared: &Ownership, table: &[f32]) -> Vec<Vec<f32>> {
    let whole = whole(shared.vocab_size());
    let cut = |rank| whole.reshard(&[table], E, shared, rank).unwrap();
    (0..shared.world_size()).map(cut).collect()
}

// ANCHOR: sum
/// The sum over the ranks is the lookup in the whole table, bit for bit, no matter who owns what. An owned token has
/// its row on one rank, and zeros on all others.
#[test]
fn the_lookups_of_all_ranks_sum_to_the_whole() {
    forall(calls(), |(shared, table, tokens, shape, _)| {
        let v = shared.vocab_size();
        let expected = vocab_embedding(ids(&tokens, shape), &tensor(&table, (v, E))).unwrap();
        let mut sum = vec![0.0f32; tokens.len() * E];
        for (rank, shard) in shards(&shared, &table).iter().enumerate() {
            let shard = tensor(shard, (v / shared.world_size(), E));
            let part = owned_shard_embedding(ids(&tokens, shape), &shard, rank, &shared).unwrap();
            let part = part.as_vec();
            for (token, id) in part.chunks(E).zip(&tokens) {
                let zeros = token.iter().all(|x| x.to_bits() == 0);
                assert_eq!(zeros, shared.owner(*id) != Ok(rank), "rank {rank}, id {id}");
            }
            sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        assert_same_bits(&sum, &expected.as_vec());
    });
}
// ANCHOR_END: sum

/// The shards' gradients, put together, are the gradient of the whole table, bit for bit.
#[test]
fn the_gradients_of_all_ranks_are_that_of_the_whole() {
    forall(calls(), |(shared, table, tokens, shape, dy)| {
        let (v, w) = (shared.vocab_size(), shared.world_size());
        let traced = || Trace::<f32, Dev>::leaky_trace(&ids(&tokens, shape));
        let full = tensor(&table, (v, E));
        let y = vocab_embedding(traced(), &full).unwrap();
        let expected = backward(y, &dy).get(&full).as_vec();
        let gradients: Vec<Vec<f32>> = shards(&shared, &table)
            .iter()
            .enumerate()
            .map(|(rank, shard)| {
                let shard = tensor(shard, (v / w, E));
                let y = owned_shard_embedding(traced(), &shard, rank, &shared).unwrap();
                backward(y, &dy).get(&shard).as_vec()
            })
            .collect();
        let together = shared.reshard(&gradients, E, &whole(v), 0).unwrap();
        assert_same_bits(&together, &expected);
    });
}

/// Every rank refuses the same id in the same words, by the name that the caller gave it.
#[test]
fn a_lookup_refuses_what_does_not_fit() {
    for sharing in ALL {
        let shared = Ownership::new(sharing, 12, 3).unwrap();
        let shard = tensor(&[1.0f32; 4 * E], (4usize, E));
        for rank in 0..3 {
            for id in [12, 13, usize::MAX] {
                let error = owned_shard_embedding(ids(&[3, id], (1, 2)), &shard, rank, &shared);
                let expected = Error::TokenId { id, batch: 0, position: 1, vocab_size: 12 };
                assert_eq!(error.err(), Some(expected));
            }
            let short = tensor(&[1.0f32; 3 * E], (3usize, E));
            let error = owned_shard_embedding(ids(&[3], (1, 1)), &short, rank, &shared);
            let (expected, got) = (vec![4, E], vec![3, E]);
            assert_eq!(error.err(), Some(Error::Shape { name: "shard", expected, got }));
        }
        let error = owned_shard_embedding(ids(&[3], (1, 1)), &shard, 3, &shared);
        assert_eq!(error.err(), Some(Error::Rank { rank: 3, world_size: 3 }));
    }
}

// --- checkpoints ------------------------------------------------------------------------------

// ANCHOR: reshard
/// The shards of one ownership become those of another, which are the ones that the whole table would have
/// been cut into; and back.
#[test]
fn shards_go_from_one_ownership_to_another() {
    forall((two(), any_table(60, E)), |((from, to), table)| {
        let (old, new) = (shards(&from, &table), shards(&to, &table));
        for (rank, expected) in new.iter().enumerate() {
            assert_same_bits(&from.reshard(&old, E, &to, rank).unwrap(), expected);
        }
        for (rank, expected) in old.iter().enumerate() {
            assert_same_bits(&to.reshard(&new, E, &from, rank).unwrap(), expected);
        }
    });
}
// ANCHOR_END: reshard

/// A table with its rows.
#[derive(Clone)]
struct Rows<const N: usize> {
    weight: Tensor<Rank2<N, E>, f32, Dev>,
}

impl<const N: usize> TensorCollection<f32, Dev> for Rows<N> {
    type To<F2: Dtype, D2: Device<F2>> = ();

    fn iter_tensors<V: ModuleVisitor<Self, f32, Dev>>(
        visitor: &mut V,
    ) -> Result<Option<()>, V::Err> {
        let weight = Self::tensor(
            "weight",
            |rows: &Self| &rows.weight,
            |rows: &mut Self| &mut rows.weight,
            TensorOptions::detached(|_| Ok(())),
        );
        visitor.visit_fields(weight, |_| ())
    }
}

/// The same with files: 3 striped shards are written, and 4 hashed ones are read from them.
#[test]
fn a_checkpoint_is_read_by_another_world() {
    let folder = tempfile::tempdir().unwrap();
    let file = |rank: usize| folder.path().join(format!("{rank}.safetensors"));
    let table: Vec<f32> = (0..12 * E).map(|x| x as f32).collect();
    let from = Ownership::new(Sharing::Striped, 12, 3).unwrap();
    for (rank, shard) in shards(&from, &table).iter().enumerate() {
        let rows = Rows::<4> { weight: tensor(shard, (Const, Const)) };
        save_weights::<f32, Dev, _>(&rows, file(rank)).unwrap();
    }
    let read = |rank| {
        let mut rows = Rows::<4> { weight: dev().zeros() };
        load_weights::<f32, Dev, _>(&mut rows, file(rank)).unwrap();
        rows.weight.as_vec()
    };
    let old: Vec<Vec<f32>> = (0..3).map(read).collect();
    let to = Ownership::new(HASHED, 12, 4).unwrap();
    for rank in 0..4 {
        let new = from.reshard(&old, E, &to, rank).unwrap();
        for (row, values) in new.chunks(E).enumerate() {
            let id = to.global_id(rank, row).unwrap();
            assert_eq!(values, &table[id * E..][..E], "rank {rank}, row {row}");
        }
    }
}

#[test]
fn shards_that_do_not_fit_are_refused() {
    let from = Ownership::new(Sharing::Striped, 12, 3).unwrap();
    let to = Ownership::new(HASHED, 12, 4).unwrap();
    let good = vec![vec![0u8; 4 * E]; 3];
    let refused = |shards: &[Vec<u8>], e, to: &Ownership, rank| {
        from.reshard(shards, e, to, rank).unwrap_err()
    };
    let shape = |name, expected: usize, got: usize| Error::Shape {
        name,
        expected: vec![expected],
        got: vec![got],
    };
    assert_eq!(refused(&good[..2], E, &to, 0), shape("the list of shards", 3, 2));
    let short = [good[0].clone(), good[0].clone(), vec![0; 11]];
    assert_eq!(refused(&short, E, &to, 0), shape("a shard's values", 12, 11));
    let larger = Ownership::new(HASHED, 16, 4).unwrap();
    let name = "the vocabulary of the new shard";
    assert_eq!(refused(&good, E, &larger, 0), shape(name, 12, 16));
    assert_eq!(refused(&good, E, &to, 4), Error::Rank { rank: 4, world_size: 4 });
    assert!(matches!(refused(&good, 0, &to, 0), Error::Empty { .. }));
    assert!(matches!(refused(&good, usize::MAX, &to, 0), Error::TooLarge { .. }));
}

// --- balance ----------------------------------------------------------------------------------

/// Counts of a small vocabulary, with an ownership of it.
fn counted() -> impl Strategy<Value = (Ownership, Vec<u64>)> {
    ownership().prop_flat_map(|shared| {
        let v = shared.vocab_size();
        let counts = prop_oneof![
            proptest::collection::vec(0..1000u64, v),
            proptest::collection::vec(0..10u64, 1..v + 1) // the rest is padding
        ];
        (Just(shared), counts)
    })
}

/// All tokens are counted, each at its owner. The busiest rank has at least the mean, and at least the most frequent
/// id, which can't be shared.
#[test]
fn the_load_counts_each_token_at_its_owner() {
    forall(counted(), |(shared, counts)| {
        let load = shared.load(&counts).unwrap();
        for (rank, tokens) in load.tokens().iter().enumerate() {
            let owned = shared.owned_ids(rank).unwrap();
            let expected: u64 = owned.iter().filter_map(|&id| counts.get(id)).sum();
            assert_eq!(*tokens, expected);
            let share = expected as f64 / load.total() as f64;
            assert_eq!(load.share(rank), (load.total() > 0).then_some(share));
        }
        let total: u64 = counts.iter().sum();
        assert_eq!(load.total(), u128::from(total));
        let w = shared.world_size() as f64;
        let most_frequent = counts.iter().max().copied().unwrap_or(0);
        match load.max_over_mean() {
            None => assert_eq!(total, 0),
            // One rounding in each product and quotient: 4 of 2^-53 are more than enough.
            Some(ratio) => {
                let least = (w * most_frequent as f64 / total as f64).max(1.0);
                assert!((least * (1.0 - 4.0 * U64)..=w * (1.0 + 4.0 * U64)).contains(&ratio));
            }
        }
    });
}

/// If ids are numbered by falling frequency, stripes differ by no more than the most frequent id: rank 0's `k`-th
/// id comes after all but `k` ids of any other rank. And blocks put the most on rank 0.
#[test]
fn sorted_ids_make_stripes_even_and_blocks_uneven() {
    forall(counted(), |(shared, mut counts)| {
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let (v, w) = (shared.vocab_size(), shared.world_size());
        let load = |sharing| Ownership::new(sharing, v, w).unwrap().load(&counts).unwrap();
        let stripes = load(Sharing::Striped);
        let (first, last) = (stripes.tokens()[0], stripes.tokens()[w - 1]);
        assert!(stripes.tokens().is_sorted_by(|a, b| a >= b));
        assert!(first - last <= counts[0], "{:?}", stripes.tokens());
        let blocks = load(Sharing::Contiguous);
        let any = shared.load(&counts).unwrap();
        assert!(any.tokens().iter().all(|tokens| *tokens <= blocks.tokens()[0]));
    });
}

/// Where every w-th id is frequent, stripes put all on one rank, and a hash does not care: with 250 such ids of
/// equal weight, a rank of 4 gets 62.5 of them by chance, with a standard deviation below 6.9, and 6 of these are 41.
#[test]
fn a_pattern_in_the_ids_ruins_stripes_and_no_hash() {
    let counts: Vec<u64> = (0..1000).map(|id| u64::from(id % 4 == 1)).collect();
    let load = |sharing| Ownership::new(sharing, 1000, 4).unwrap().load(&counts).unwrap();
    assert_eq!(load(Sharing::Striped).tokens(), [0, 250, 0, 0]);
    assert_eq!(load(Sharing::Striped).max_over_mean(), Some(4.0));
    for seed in 0..100 {
        let hashed = load(Sharing::Hashed { seed });
        assert!(hashed.tokens().iter().all(|tokens| (22..=103).contains(tokens)), "{hashed:?}");
    }
}

#[test]
fn counts_that_do_not_fit_are_refused() {
    let shared = Ownership::new(HASHED, 12, 3).unwrap();
    let error = shared.load(&[1; 13]).unwrap_err();
    assert_eq!(error, Error::NoOwner { id: 12, vocab_size: 12 });
    let none = shared.load(&[]).unwrap();
    assert_eq!((none.total(), none.share(0), none.max_over_mean()), (0, None, None));
    let most = Ownership::new(HASHED, 12, 1).unwrap().load(&[u64::MAX; 12]).unwrap();
    assert_eq!(most.tokens(), [u64::MAX]);
    assert_eq!((most.share(0), most.share(1)), (Some(1.0), None));
}
