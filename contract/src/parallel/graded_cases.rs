//! The graded cases of ParallelVocabEmbedding: what is asked, from the plainest question on.

use crate::category::Category;
use crate::embedding::graded_cases::mixed_inits;
use crate::graded_cases::tokens::{
    APART, Ids, PLAIN, Plan, TYPICAL, Tokens, bad_batches, mixed, mixed_bad, plans,
};
use crate::graded_cases::{EDGES, GradedCase, combinations, is_short, sizes};
use crate::parallel::interface::*;
use crate::parallel::laws::{
    Asked, Sizes, edge_ids, matches_dshard, matches_middle, matches_normal, matches_range,
    matches_y, no_range, no_shard, refused_in_words,
};
use crate::parallel::menu::{LARGE, PARALLEL};
use crate::parallel::oracle::owned;
use crate::run::Run;
use crate::violation::Step;

type Parallel = dyn ParallelVocabEmbedding;
type Judge = fn(&Parallel, &Asked) -> Step;

fn ranks_of(sizes: Sizes) -> impl Iterator<Item = (Sizes, usize)> {
    (0..sizes.2).map(move |rank| (sizes, rank))
}

/// Every rank of these sizes.
fn ranks(menu: &[Sizes]) -> impl Iterator<Item = (Sizes, usize)> {
    menu.iter().copied().flat_map(ranks_of)
}

fn asked(plan: Plan, (v, e, world_size): Sizes, rank: usize, run: &Run) -> Asked {
    let Tokens { ids, table, dy } = plan.tokens(run);
    let rows = owned(v, world_size, rank);
    let shard = table[rows.start * e..rows.end * e].to_vec();
    let shape = plan.tokens;
    let case = ShardCase { shape, vocab_size: v, embedding_dim: e, world_size, rank, shard, ids };
    Asked { manner: plan.manner, case, dy }
}

/// Single ids on every rank: own ones, then those at the edges, then foreign ones.
fn single_ids() -> Vec<(Category, Plan, Sizes, usize)> {
    let mut plans = Vec::new();
    for (sizes, rank) in ranks(&PARALLEL) {
        let (v, e, w) = sizes;
        let own = owned(v, w, rank);
        let mut add = |category, id| {
            plans.push((category, Plan { sizes: (v, e), ids: Ids::One(id), ..PLAIN }, sizes, rank));
        };
        add(Category::Lookup, own.start + own.len() / 2);
        edge_ids(sizes, rank).into_iter().for_each(|id| add(Category::Range, id));
        (0..v).filter(|id| !own.contains(id)).for_each(|id| add(Category::Mask, id));
    }
    // On all ranks, one category after the other. At last id 0, which is a row like any other and no mark.
    let is_zero = |plan: &Plan, rank: usize| rank == 0 && matches!(plan.ids, Ids::One(0));
    for (category, ..) in plans.iter_mut().filter(|(_, plan, _, rank)| is_zero(plan, *rank)) {
        *category = Category::Mask;
    }
    plans.sort_by_key(|(category, plan, _, rank)| match category {
        _ if is_zero(plan, *rank) => 3,
        Category::Lookup => 0,
        Category::Mask => 1,
        _ => 2,
    });
    plans
}

/// Ranks of small and of larger worlds.
fn mixed_ranks(run: &Run) -> Vec<(Sizes, usize)> {
    if !run.every_size {
        return Vec::new();
    }
    // Those of many that have a NaN, if there is one in the table.
    let many = [3, 11, 19, 43, LARGE[2].2 - 1].map(|rank| (LARGE[2], rank));
    // Twice a world of one: there are few of it.
    ranks(&PARALLEL).chain(ranks(&PARALLEL[..1])).chain(ranks_of(LARGE[0])).chain(many).collect()
}

/// The category of a question about a gradient. An implementation that is right on rank 0 alone is wrong about
/// where a shard begins.
fn of_gradient(category: Category, rank: usize) -> Category {
    match category {
        Category::Lookup if rank > 0 => Category::Range,
        other => other.of_gradient(),
    }
}

/// Worlds: `v`, `w`, `r`.
fn worlds(run: &Run) -> Vec<(Category, usize, usize, usize)> {
    let mut worlds = vec![
        (Category::Range, 12, 3, 0),
        (Category::Range, 12, 3, 1),
        (Category::Range, 12, 3, 2),
        (Category::Range, 12, 1, 0),
    ];
    for w in sizes(run) {
        worlds.extend([(Category::Extent, w, w, w - 1), (Category::Extent, 5 * w, w, w / 2)]);
        worlds.push((Category::Extent, 2 * w, 2, 1));
    }
    // From 2^16 on in 16 bits, from 2^24 on in f32, from 2^32 on in 32 bits, and v·w above 2^64.
    for bits in [16, 24, 32, 40, 53, 63] {
        let n = (1 << bits) + 1;
        worlds.extend([(Category::Extent, n, 1, 0), (Category::Extent, n / 3 * 3, 3, 2)]);
        worlds.extend(run.every_size.then_some((Category::Extent, n / 12 * 12, 12, 11)));
    }
    worlds.extend((0..3).map(|rank| (Category::Extent, usize::MAX, 3, rank)));
    worlds
}

/// Seeds, means and deviations.
fn inits(run: &Run) -> Vec<(Category, NormalInit)> {
    let standard = NormalInit { mean: 0.0, std: 1.0, seed: 42 };
    let mut inits = vec![
        (Category::Seed, standard),
        (Category::Seed, NormalInit { mean: 0.5, std: 0.02, ..standard }),
        (Category::Seed, NormalInit { mean: -3.0, std: 2.5, ..standard }),
        (Category::Seed, NormalInit { mean: 0.25, std: 0.0, ..standard }),
    ];
    let seeds = [0, u64::from(u32::MAX), u64::MAX, u64::MAX - 1, (1 << 32) + 42, (1 << 24) + 1, 7];
    for seed in seeds.into_iter().chain([run.seed]) {
        inits.push((Category::Seed, NormalInit { seed, ..standard }));
    }
    inits.push((Category::State, standard)); // drawn again, after others
    inits
}

/// All graded cases, call by call.
pub fn graded_cases(run: &Run) -> Vec<GradedCase<Parallel>> {
    let run = *run;
    let mut graded: Vec<GradedCase<Parallel>> = Vec::new();
    for (category, v, w, r) in worlds(&run) {
        graded.push(GradedCase::new("shard_range", category, move |parallel| {
            matches_range(parallel, v, w, r)
        }));
    }
    let mut bad_worlds = vec![
        (12, 0, 0),
        (12, 5, 0),
        (7, 2, 1),
        (5, 7, 0),
        (12, 3, 3),
        (12, 1, 1),
        (12, 3, usize::MAX),
    ];
    for w in sizes(&run) {
        bad_worlds.extend([(2 * w, w, w), (2 * w + 1, w, 0)]);
    }
    for bits in [16, 24, 32, 40, 53, 63] {
        bad_worlds.extend([((1 << bits) + 1, 2, 0), ((1 << bits) + 1, 2, 1)]);
    }
    for (v, w, r) in bad_worlds {
        graded.push(GradedCase::new("shard_range", Category::Refusal, move |parallel| {
            no_range(parallel, v, w, r, "no such shard")
        }));
        graded.push(GradedCase::new("initial_shard", Category::Refusal, move |parallel| {
            no_shard(parallel, (v, 5, w), r)
        }));
    }
    // Ranks that there are not, of shards that no memory holds: their first values are not asked for.
    let far = [16, 24, 32, 40, 53].map(|bits| (1 << bits) / 3 * 3);
    for v in far.into_iter().chain([usize::MAX]).filter(|_| run.every_size) {
        for rank in [3, 4, (1 << 32) + 1, usize::MAX] {
            graded.push(GradedCase::new("shard_range", Category::Refusal, move |parallel| {
                no_range(parallel, v, 3, rank, "no such shard")
            }));
        }
    }
    for (category, init) in inits(&run) {
        for (sizes, rank) in ranks(&PARALLEL) {
            graded.push(GradedCase::new("initial_shard", category, move |parallel| {
                matches_normal(parallel, sizes, rank, init)
            }));
        }
    }
    let init = NormalInit { mean: 0.5, std: 1.5, seed: run.seed };
    for w in sizes(&run) {
        for (e, rank) in [(1, w - 1), (11, w / 2)] {
            graded.push(GradedCase::new("initial_shard", Category::Extent, move |parallel| {
                matches_normal(parallel, (2 * w, e, w), rank, init)
            }));
        }
        graded.push(GradedCase::new("initial_shard", Category::Extent, move |parallel| {
            matches_normal(parallel, (2, w, 2), 1, init)
        }));
    }
    for (sizes, rank) in mixed_ranks(&run) {
        for init in mixed_inits() {
            graded.push(GradedCase::new("initial_shard", Category::Extent, move |parallel| {
                matches_normal(parallel, sizes, rank, init)
            }));
        }
    }
    let (v, e, _) = PARALLEL[3];
    let typical = Plan { sizes: (v, e), ..TYPICAL };
    for (call, judge) in [("forward", matches_y as Judge), ("backward", matches_dshard)] {
        graded.push(GradedCase::typical(call, move |parallel| {
            judge(parallel, &asked(typical, PARALLEL[3], 1, &run))
        }));
    }
    for (category, judge) in
        [(Category::Gradient, matches_middle as Judge), (Category::Range, matches_dshard)]
    {
        graded.push(GradedCase::new("backward", category, move |parallel| {
            judge(parallel, &asked(APART, PARALLEL[0], 0, &run))
        }));
    }
    let mut lookups = single_ids();
    let (v, e, w) = PARALLEL[1];
    for (nth, (category, plan)) in plans(&run, &[(v, e)]).into_iter().enumerate() {
        let single = matches!(plan.ids, Ids::One(_)) && plan.tokens == PLAIN.tokens;
        if single || category == Category::Lookup {
            continue; // one of `single_ids`
        }
        for rank in 0..w {
            // What is asked at every size is asked of one rank each.
            let [b, s] = plan.tokens;
            if category != Category::Extent || EDGES.contains(&b.max(s)) || rank == nth % w {
                lookups.push((category, plan, (v, e, w), rank));
            }
        }
    }
    let large = LARGE.iter().filter(|_| run.every_size);
    for (sizes, rank) in ranks(&PARALLEL).chain(large.flat_map(|&sizes| ranks_of(sizes))) {
        let plan = Plan { tokens: [2, 3], sizes: (sizes.0, sizes.1), ..PLAIN };
        lookups.push((Category::Extent, plan, sizes, rank));
    }
    let of_ranks = mixed_ranks(&run);
    let narrow: Vec<_> = of_ranks.iter().copied().filter(|(sizes, _)| sizes.1 < 10).collect();
    let rank_of = |nth: usize, tokens| {
        let from = if is_short(tokens) { &of_ranks } else { &narrow };
        from[nth % from.len()]
    };
    for (nth, plan) in mixed(&run, &[PLAIN.sizes]).into_iter().enumerate() {
        let (sizes, rank) = rank_of(nth, plan.tokens);
        let own = owned(sizes.0, sizes.2, rank);
        // One in seven: nothing that is owned.
        let ids = match nth % 7 {
            6 if sizes.2 > 1 => Ids::One(own.end % sizes.0),
            _ => Ids::Near(own.start, own.end),
        };
        lookups.push((
            Category::Extent,
            Plan { sizes: (sizes.0, sizes.1), ids, ..plan },
            sizes,
            rank,
        ));
    }
    for (sizes, rank) in of_ranks.iter().copied() {
        // The first row of the shard is special: no foreign token may read it.
        let own = owned(sizes.0, sizes.2, rank);
        let (ids, even) = (Ids::Near(own.start, own.end), own.start.is_multiple_of(2));
        let plan = Plan { tokens: [1, 3], ids, special: true, even, ..PLAIN };
        lookups.push((Category::Extent, Plan { sizes: (sizes.0, sizes.1), ..plan }, sizes, rank));
    }
    for (category, plan, sizes, rank) in lookups {
        if plan.has_values() {
            graded.push(GradedCase::new("forward", category, move |parallel| {
                matches_y(parallel, &asked(plan, sizes, rank, &run))
            }));
        }
        if plan.has_gradient() {
            graded.push(GradedCase::new(
                "backward",
                of_gradient(category, rank),
                move |parallel| matches_dshard(parallel, &asked(plan, sizes, rank, &run)),
            ));
        }
    }
    // Also a world of one, where nothing has to be cut out, and some ranks of a large one.
    let many = LARGE[2];
    let some = [3, 5, 9, 17, 65, many.2 - 1].map(|rank| (many, rank));
    for (sizes, rank) in ranks(&PARALLEL[..2]).chain(some) {
        let batches = bad_batches(&run, sizes.0).into_iter();
        for bad in batches.take(if sizes == many { 6 } else { usize::MAX }) {
            graded.push(GradedCase::new("refusal", Category::Refusal, move |parallel| {
                refused_in_words(parallel, (sizes, rank), Manner::Plain, &bad)
            }));
        }
    }
    for (nth, combination) in combinations(&run).into_iter().enumerate() {
        let (sizes, rank) = rank_of(nth, combination.tokens);
        let (manner, bad) = mixed_bad(combination, sizes.0);
        graded.push(GradedCase::new("refusal", Category::Refusal, move |parallel| {
            refused_in_words(parallel, (sizes, rank), manner, &bad)
        }));
    }
    graded
}
