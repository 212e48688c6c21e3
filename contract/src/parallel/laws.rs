//! What ParallelVocabEmbedding promises.

use crate::component::{NET, law, laws};
use crate::embedding::interface::LookupCase;
use crate::embedding::laws::{HUGE, SPECIAL, names_all, same_normal, telling_table};
use crate::embedding::oracle as whole_table;
use crate::graded_cases::judge::judge_graded_cases;
use crate::graded_cases::tokens::{Bad, middle_is_right};
use crate::laws::{U, repeats, values};
use crate::oracle::Oracle;
use crate::parallel::interface::*;
use crate::parallel::menu;
use crate::parallel::oracle::{ShardLoops, owned};
use crate::run::Run;
use crate::violation::*;
use proptest::prelude::*;
use std::fmt;
use std::ops::Range;

type Parallel = dyn ParallelVocabEmbedding;

/// `v`, `e`, `w`.
pub(super) type Sizes = (usize, usize, usize);

laws! {
    range, ranges_partition, uneven_world_refused, rank_has_no_range, any_world, rank_refused, initial_shard,
    initial_mean_and_std, initial_seed_wraps, initial_ranks_differ, initial_any_shard, owned_rows, edges,
    foreign_tokens_are_zero, zeros_are_written, special_values, ids_kept, one_rank_answers, sum_is_the_lookup,
    world_of_one, forward_any_input, id_refused, id_refused_in_a_world_of_one, huge_id_refused, refusal_names_id,
    foreign_tokens_give_no_gradient, foreign_nan_stays_out, gradient_counts, gradient_at_the_edges, gradient_adds,
    gradient_not_of_shard, gradient_of_a_frequent_token, gradient_slices, gradient_any_input,
}

// --- inputs ---------------------------------------------------------------------------------

/// A lookup on all ranks, and a gradient of the loss with respect to its result.
#[derive(Debug, Clone)]
struct Input {
    world_size: usize,
    whole: LookupCase,
    dy: Vec<f32>,
}

impl Input {
    fn rank(&self, rank: usize) -> ShardCase {
        part(&self.whole, self.world_size, rank)
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { world_size, whole, dy } = self;
        write!(f, "{whole}\nworld_size {world_size}\ndy    = {}", crate::describe::List(dy))
    }
}

/// A call on one rank with its `dy`.
struct WithDy<'a>(&'a ShardCase, &'a [f32]);

impl fmt::Display for WithDy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\ndy    = {}", self.0, crate::describe::List(self.1))
    }
}

/// Any sizes of the menu, up to three batch rows of up to four tokens.
fn inputs() -> impl Strategy<Value = Input> {
    let sizes = (prop::sample::select(&menu::PARALLEL[..]), 1..=3usize, 1..=4usize);
    sizes.prop_flat_map(|((v, e, world_size), b, s)| {
        let ids = prop::collection::vec(0..v, b * s);
        (values(v * e), ids, values(b * s * e)).prop_map(move |(table, ids, dy)| Input {
            world_size,
            whole: LookupCase { shape: [b, s], vocab_size: v, embedding_dim: e, table, ids },
            dy,
        })
    })
}

/// What rank `rank` gets of a lookup in a whole table.
fn part(whole: &LookupCase, world_size: usize, rank: usize) -> ShardCase {
    let Range { start, end } = owned(whole.vocab_size, world_size, rank);
    let e = whole.embedding_dim;
    ShardCase {
        shape: whole.shape,
        vocab_size: whole.vocab_size,
        embedding_dim: e,
        world_size,
        rank,
        shard: whole.table[start * e..end * e].to_vec(),
        ids: whole.ids.clone(),
    }
}

/// One rank's part of a lookup of these ids in a table whose values show their place.
fn case(
    (v, e, w): (usize, usize, usize),
    rank: usize,
    shape: [usize; 2],
    ids: Vec<usize>,
) -> ShardCase {
    let table = telling_table(v, e);
    part(&LookupCase { shape, vocab_size: v, embedding_dim: e, table, ids }, w, rank)
}

/// All ranks of all sizes of the menu.
fn ranks() -> impl Iterator<Item = ((usize, usize, usize), usize)> {
    menu::PARALLEL.into_iter().flat_map(|sizes| (0..sizes.2).map(move |rank| (sizes, rank)))
}

/// Two batch rows of three tokens on rank 1 of 3, which owns 4 to 7. Id 6 comes three times; of
/// the foreign ones, 0 is the whole table's first row, 11 its last.
fn witness() -> ShardCase {
    case(menu::PARALLEL[1], 1, [2, 3], vec![6, 0, 6, 11, 7, 6])
}

/// Multiples of 1/8, all different, so that sums are exact.
fn witness_dy(case: &ShardCase) -> Vec<f32> {
    (0..case.ids.len() * case.embedding_dim).map(|i| 2.875 - 0.25 * i as f32).collect()
}

fn shape(case: &ShardCase) -> [usize; 3] {
    [case.shape[0], case.shape[1], case.embedding_dim]
}

fn shard_shape(case: &ShardCase) -> [usize; 2] {
    [case.shard.len() / case.embedding_dim, case.embedding_dim]
}

fn forward(parallel: &Parallel, case: &ShardCase) -> Step<Found> {
    let found =
        answer("forward", || parallel.forward(case)).map_err(|violation| violation.on(case))?;
    let length = Fault::Length { shape: shape(case).to_vec(), got: found.y.len() };
    if found.y.len() == shape(case).iter().product() {
        Ok(found)
    } else {
        Err(Violation::new("forward", length).on(case))
    }
}

fn backward(parallel: &Parallel, case: &ShardCase, dy: &[f32]) -> Step<Vec<f32>> {
    let on = |violation: Box<Violation>| violation.on(WithDy(case, dy));
    let grad = answer("backward", || parallel.backward(case, dy)).map_err(on)?;
    let length = Fault::Length { shape: shard_shape(case).to_vec(), got: grad.len() };
    if grad.len() == case.shard.len() {
        Ok(grad)
    } else {
        Err(on(Violation::new("backward", length)))
    }
}

const COPIED: &str = "owned rows are copied and zeros are written, so every bit is the same";

/// One graded case.
pub(super) type Asked = crate::graded_cases::Asked<ShardCase>;

/// What `y` must be, and that the ids are only read.
pub(super) fn matches_y(parallel: &Parallel, asked: &Asked) -> Step {
    let Asked { manner, case, .. } = asked;
    answer("forward", || parallel.forward_in(*manner, case))
        .and_then(|Found { y, ids_after }| {
            same_values("forward", &shape(case), &y, &Oracle.rows(case), COPIED)?;
            holds("forward", ids_after == case.ids, || {
                format!("the ids are {} after the call", crate::describe::List(&ids_after))
            })
        })
        .map_err(|violation| violation.on(asked))
}

/// [`matches_y`], asked plainly.
fn matches_rows(parallel: &Parallel, case: &ShardCase) -> Step {
    matches_y(parallel, &Asked { manner: Manner::Plain, case: case.clone(), dy: Vec::new() })
}

/// What the gradient must be.
pub(super) fn matches_dshard(parallel: &Parallel, asked: &Asked) -> Step {
    let Asked { manner, case, dy } = asked;
    let e = case.embedding_dim;
    let expected = Oracle.gradient(case, dy);
    let size: Vec<f32> = dy.iter().map(|dy| dy.abs()).collect();
    let size = Oracle.gradient(case, &size);
    let start = owned(case.vocab_size, case.world_size, case.rank).start;
    let mut count = vec![0.0; case.shard.len() / e];
    for id in &case.ids {
        if let Some(count) = id.checked_sub(start).and_then(|row| count.get_mut(row)) {
            *count += 1.0;
        }
    }
    let why = "count·2⁻²⁴ of Σ|dy|: a sum in f32 rounds once for each term";
    let ask = || answer("backward", || parallel.backward_in(*manner, case, dy));
    let shape = shard_shape(case);
    ask()
        .and_then(|got| {
            let tolerance = |i: usize| count[i / e] * U * size[i];
            within("backward", &shape, &got, &expected, tolerance, why)?;
            repeats("backward", case.ids.len(), &shape, &got, ask)
        })
        .map_err(|violation| violation.on(asked))
}

/// [`matches_dshard`] of [`APART`] in a world of one, where the first and the last tokens do not matter.
pub(super) fn matches_middle(parallel: &Parallel, asked: &Asked) -> Step {
    let Asked { case, dy, .. } = asked;
    matches_dshard(parallel, asked).or_else(|violation| {
        let middle = answer("backward", || parallel.backward(case, dy))
            .is_ok_and(|got| middle_is_right(&case.ids, &got, &Oracle.gradient(case, dy)));
        if middle && !violation.is_rearranged() { Ok(()) } else { Err(violation) }
    })
}

/// What the gradient must be where every sum is exact.
fn matches_gradient(parallel: &Parallel, case: &ShardCase, dy: &[f32], why: &str) -> Step {
    let expected: Vec<f32> = Oracle.gradient(case, dy).iter().map(|&sum| sum as f32).collect();
    let got = backward(parallel, case, dy)?;
    same_values("backward", &shard_shape(case), &got, &expected, why)
        .map_err(|violation| violation.on(WithDy(case, dy)))
}

// --- ranges ---------------------------------------------------------------------------------

fn of_world(v: usize, w: usize, r: usize) -> String {
    format!("vocab_size {v}, world_size {w}, rank {r}")
}

fn asked_range(parallel: &Parallel, v: usize, w: usize, r: usize) -> Step<Range<usize>> {
    answer("shard_range", || parallel.shard_range(v, w, r))
        .map_err(|violation| violation.on(of_world(v, w, r)))
}

/// Rank r owns the n ids from r·n up to, but not including, (r + 1)·n.
#[law("parallel/range", see = "parallel#ranges", about = Range, points = 2,
    formula = "[r·n, (r + 1)·n),  n = v / w")]
fn range(parallel: &Parallel, _: &Run) -> Verdict {
    let many = 1usize << 40; // more ids than 32 bits count
    for (v, w, r, expected) in [
        (12, 3, 0, 0..4),
        (12, 3, 1, 4..8),
        (12, 3, 2, 8..12),
        (20, 2, 1, 10..20),
        (12, 1, 0, 0..12),
        (5, 5, 3, 3..4),
        (many, 1 << 10, (1 << 10) - 1, many - (1 << 30)..many),
        (usize::MAX, 1, 0, 0..usize::MAX),
    ] {
        let got = asked_range(parallel, v, w, r)?;
        holds("shard_range", got == expected, || format!("expected {expected:?}, got {got:?}"))
            .map_err(|violation| violation.on(of_world(v, w, r)))?;
    }
    Ok(None)
}

/// For any vocabulary, world and rank, the range is the one that the definition gives, or there is none.
#[law("parallel/any-world", see = "parallel#ranges", about = Range, points = 1,
    formula = "[r·n, (r + 1)·n) for v to 2⁶⁴ − 1", stays = NET)]
fn any_world(parallel: &Parallel, run: &Run) -> Verdict {
    judge_graded_cases(parallel, run, "shard_range")
}

pub(super) fn matches_range(parallel: &Parallel, v: usize, w: usize, r: usize) -> Step {
    let (got, expected) = (asked_range(parallel, v, w, r)?, owned(v, w, r));
    holds("shard_range", got == expected, || format!("expected {expected:?}, got {got:?}"))
        .map_err(|violation| violation.on(of_world(v, w, r)))
}

/// Every id has exactly one owner, and all ranks own the same number of ids.
#[law("parallel/ranges-partition", see = "parallel#ranges", about = Range, points = 2,
    formula = "⋃ range(r) = [0, v),  range(r) ∩ range(q) = ∅,  |range(r)| = n",
    stays = "A law without an oracle: it holds for every right cut, whatever the numbers.")]
fn ranges_partition(parallel: &Parallel, run: &Run) -> Verdict {
    run.integers(|&(n, w): &(u8, u8)| {
        let (n, w) = (usize::from(n % 64) + 1, usize::from(w % 16) + 1);
        let mut next = 0;
        for r in 0..w {
            let Range { start, end } = asked_range(parallel, n * w, w, r)?;
            let here = start == next && end == next + n;
            holds("shard_range", here, || {
                format!(
                    "rank {r} owns {start}..{end}, but the {n} ids from {next} on are left to it"
                )
            })
            .map_err(|violation| violation.on(of_world(n * w, w, r)))?;
            next = end;
        }
        Ok(())
    })?;
    Ok(None)
}

pub(super) fn no_range(parallel: &Parallel, v: usize, w: usize, r: usize, rule: &str) -> Step {
    refusal("shard_range", rule, || parallel.shard_range(v, w, r))
        .map_err(|violation| violation.on(of_world(v, w, r)))?;
    Ok(())
}

/// A world size that does not divide the vocabulary size is refused, and so is a world of 0.
#[law("parallel/uneven-world-refused", see = "parallel#ranges", about = Refusal, points = 1,
    formula = "w = 0 or v mod w ≠ 0  ⇒  no range")]
fn uneven_world_refused(parallel: &Parallel, run: &Run) -> Verdict {
    let uneven = |v, w, r| {
        no_range(parallel, v, w, r, &format!("world size {w} does not divide vocabulary size {v}"))
    };
    for (v, w) in [(12, 0), (12, 5), (7, 2), (13, 12), (5, 7)] {
        uneven(v, w, 0)?;
    }
    run.integers(|&(v, w, r): &(u16, u8, u8)| {
        let (v, w) = (usize::from(v), usize::from(w).max(2));
        if v % w == 0 { Ok(()) } else { uneven(v, w, usize::from(r) % w) }
    })?;
    Ok(None)
}

/// A rank that is not below w owns no range, and is refused.
#[law("parallel/rank-has-no-range", see = "parallel#ranges", about = Refusal, points = 1,
    formula = "r ≥ w  ⇒  no range")]
fn rank_has_no_range(parallel: &Parallel, _: &Run) -> Verdict {
    for (v, w) in [(12, 1), (12, 3), (20, 2)] {
        for r in [w, w + 1, usize::MAX] {
            no_range(parallel, v, w, r, &format!("rank {r} does not exist in a world of {w}"))?;
        }
    }
    Ok(None)
}

/// A rank that is not below w is refused in the lookup, even if no token is its own.
#[law("parallel/rank-refused", see = "parallel#ranges", about = Refusal, points = 1,
    formula = "r ≥ w  ⇒  no result")]
fn rank_refused(parallel: &Parallel, _: &Run) -> Verdict {
    for sizes in menu::PARALLEL {
        let w = sizes.2;
        for rank in [w, w + 1, usize::MAX] {
            let case = ShardCase { rank, ..case(sizes, 0, [1, 2], vec![0, sizes.0 - 1]) };
            let rule = format!("rank {rank} does not exist in a world of {w}");
            refusal("forward", &rule, || parallel.forward(&case)).map_err(|b| b.on(&case))?;
        }
    }
    Ok(None)
}

// --- initial values -------------------------------------------------------------------------

const STANDARD: NormalInit = NormalInit { mean: 0.0, std: 1.0, seed: 42 };

fn drawn(
    parallel: &Parallel,
    (v, e, w): (usize, usize, usize),
    r: usize,
    init: NormalInit,
) -> Step<Vec<f32>> {
    answer("initial_shard", || parallel.initial_shard(v, e, w, r, init))
        .map_err(|violation| violation.on(told((v, e, w), r, init)))
}

fn told((v, e, w): (usize, usize, usize), r: usize, init: NormalInit) -> String {
    let NormalInit { mean, std, seed } = init;
    format!("{}, embedding_dim {e}, mean {mean}, std {std}, base seed {seed}", of_world(v, w, r))
}

/// What a shard must start with.
pub(super) fn matches_normal(
    parallel: &Parallel,
    sizes: Sizes,
    r: usize,
    init: NormalInit,
) -> Step {
    let (v, e, w) = sizes;
    let own = NormalInit { seed: init.seed.wrapping_add(r as u64), ..init };
    same_normal("initial_shard", [v / w, e], &drawn(parallel, sizes, r, init)?, own)
        .map_err(|violation| violation.on(told(sizes, r, init)))
}

/// A shard that does not exist has no first rows.
pub(super) fn no_shard(parallel: &Parallel, (v, e, w): Sizes, r: usize) -> Step {
    // Also where nothing has to be drawn.
    for init in [STANDARD, NormalInit { std: 0.0, ..STANDARD }] {
        let ask = || parallel.initial_shard(v, e, w, r, init);
        refusal("initial_shard", "shard_range refuses this shard", ask)
            .map_err(|violation| violation.on(told((v, e, w), r, init)))?;
    }
    Ok(())
}

/// A rank draws its n rows as a table of n rows does, from the base seed plus the rank.
#[law("parallel/initial-shard", see = "parallel#initial-values", about = Seed, points = 2,
    formula = "T_r = VocabEmbedding(n, e; seed = base + r)",
    stays = "The definition, on every rank of every size. The next three say which part of it is wrong.")]
fn initial_shard(parallel: &Parallel, _: &Run) -> Verdict {
    // Shards of 6, 20, 40 and 60 values: PyTorch draws short and long tables in different ways.
    for (sizes, rank) in ranks() {
        matches_normal(parallel, sizes, rank, STANDARD)?;
    }
    Ok(None)
}

/// For any base seed, mean and deviation, a shard is PyTorch's, and without a range there is none.
#[law("parallel/initial-any-shard", see = "parallel#initial-values", about = Seed, points = 1,
    formula = "T_r = mean + std·z(n·e; base + r)", stays = NET)]
fn initial_any_shard(parallel: &Parallel, run: &Run) -> Verdict {
    judge_graded_cases(parallel, run, "initial_shard")
}

/// Mean and standard deviation are the same on every rank, whatever w is.
#[law("parallel/initial-mean-and-std", see = "parallel#initial-values", about = Seed, points = 1,
    formula = "T_r = z·std + mean")]
fn initial_mean_and_std(parallel: &Parallel, _: &Run) -> Verdict {
    for (mean, std) in [(0.5, 0.02), (-3.0, 2.5)] {
        for (sizes, rank) in ranks() {
            matches_normal(parallel, sizes, rank, NormalInit { mean, std, seed: 42 })?;
        }
    }
    Ok(None)
}

/// Any base seed will do: base + r wraps around, and only its low 32 bits count.
#[law("parallel/initial-seed-wraps", see = "parallel#initial-values", about = Seed, points = 1,
    formula = "seed = (base + r) mod 2³²")]
fn initial_seed_wraps(parallel: &Parallel, _: &Run) -> Verdict {
    for seed in [u64::from(u32::MAX), u64::MAX, (1 << 32) + 42] {
        for (sizes, rank) in ranks() {
            matches_normal(parallel, sizes, rank, NormalInit { seed, ..STANDARD })?;
        }
    }
    Ok(None)
}

/// No two ranks start with the same values.
#[law("parallel/initial-ranks-differ", see = "parallel#initial-values", about = Seed, points = 1,
    formula = "r ≠ q  ⇒  T_r ≠ T_q",
    stays = "It shows what the rank in the seed is for, without an oracle.")]
fn initial_ranks_differ(parallel: &Parallel, _: &Run) -> Verdict {
    for sizes in menu::PARALLEL {
        let shards = (0..sizes.2).map(|rank| drawn(parallel, sizes, rank, STANDARD));
        let shards: Vec<Vec<f32>> = shards.collect::<Step<_>>()?;
        for r in 1..sizes.2 {
            let twin = (0..r).find(|&q| shards[q] == shards[r]);
            holds("initial_shard", twin.is_none(), || {
                format!("rank {r} starts with the values of rank {}", twin.unwrap_or(0))
            })
            .map_err(|violation| violation.on(told(sizes, r, STANDARD)))?;
        }
    }
    Ok(None)
}

// --- lookup ---------------------------------------------------------------------------------

/// An owned token gets its row, counted from the start of the shard, at its own place in batch and sequence.
#[law("parallel/owned-rows", see = "parallel#lookup", about = Lookup, points = 2,
    formula = "r·n ≤ I[i, j] < (r + 1)·n  ⇒  E_r[i, j] = T_r[I[i, j] − r·n]",
    stays = "The definition on two inputs that can be checked by hand.")]
fn owned_rows(parallel: &Parallel, _: &Run) -> Verdict {
    matches_rows(parallel, &witness())?;
    // More batch rows than tokens, on the last rank of 2.
    let ids = vec![13, 2, 19, 10, 10, 4, 17, 16];
    matches_rows(parallel, &case(menu::PARALLEL[3], 1, [4, 2], ids))?;
    Ok(None)
}

/// On any input, and however the call is made, an owned token gets its row and a foreign one zeros.
#[law("parallel/forward-any-input", see = "parallel#lookup", about = Lookup, points = 1,
    formula = "E_r[i, j] = T_r[I[i, j] − r·n], or 0", stays = NET)]
fn forward_any_input(parallel: &Parallel, run: &Run) -> Verdict {
    judge_graded_cases(parallel, run, "forward")
}

/// The ids at the ends of a rank and their neighbours, as far as they exist.
pub(super) fn edge_ids((v, _, w): (usize, usize, usize), rank: usize) -> Vec<usize> {
    let Range { start, end } = owned(v, w, rank);
    let ids = [start.checked_sub(1), Some(start), Some(end - 1), (end < v).then_some(end)];
    ids.into_iter().flatten().collect()
}

/// The first and the last id of a rank are its own, unlike those just outside.
#[law("parallel/edges", see = "parallel#lookup", about = Range, points = 2,
    formula = "r·n and (r + 1)·n − 1 are owned; r·n − 1 and (r + 1)·n are foreign",
    stays = "The four ids where off-by-one shows, by name; random ids rarely hit them.")]
fn edges(parallel: &Parallel, _: &Run) -> Verdict {
    for (sizes, rank) in ranks() {
        let ids = edge_ids(sizes, rank);
        matches_rows(parallel, &case(sizes, rank, [1, ids.len()], ids))?;
    }
    Ok(None)
}

/// All ids that other ranks own, in one batch row. None in a world of one.
fn all_foreign(sizes: (usize, usize, usize), rank: usize) -> Option<ShardCase> {
    let own = owned(sizes.0, sizes.2, rank);
    let ids: Vec<usize> = (0..sizes.0).filter(|id| !own.contains(id)).collect();
    (!ids.is_empty()).then(|| case(sizes, rank, [1, ids.len()], ids))
}

/// A token that another rank owns gives a vector of zeros, even if all tokens of the batch are foreign.
#[law("parallel/foreign-tokens-are-zero", see = "parallel#lookup", about = Mask, points = 2,
    formula = "I[i, j] ∉ [r·n, (r + 1)·n)  ⇒  E_r[i, j] = 0",
    stays = "The other half of the definition, by name.")]
fn foreign_tokens_are_zero(parallel: &Parallel, _: &Run) -> Verdict {
    for (sizes, rank) in ranks() {
        if let Some(case) = all_foreign(sizes, rank) {
            matches_rows(parallel, &case)?;
        }
    }
    Ok(None)
}

/// The zeros of foreign tokens are written, not multiplied: a NaN or an infinity in the shard does not reach them.
#[law("parallel/zeros-are-written", see = "parallel#lookup", about = Mask, points = 2,
    formula = "T_r[k] = NaN  ⇒  E_r of foreign tokens = 0")]
fn zeros_are_written(parallel: &Parallel, _: &Run) -> Verdict {
    for (sizes, rank) in ranks() {
        for value in [f32::NAN, f32::INFINITY] {
            if let Some(mut case) = all_foreign(sizes, rank) {
                case.shard.fill(value);
                matches_rows(parallel, &case)?;
            }
        }
    }
    Ok(None)
}

/// Owned rows are copied, whatever they hold.
#[law("parallel/special-values", see = "parallel#lookup", about = Special, points = 1,
    formula = "E_r = T_r[I − r·n] for T_r with NaN, ±∞, 10⁻⁴⁵, 10³⁸")]
fn special_values(parallel: &Parallel, _: &Run) -> Verdict {
    for (sizes, rank) in ranks() {
        let (v, e, w) = sizes;
        // Own tokens only: what the shard does to foreign ones has its own invariant.
        let ids: Vec<usize> = owned(v, w, rank).collect();
        let mut case = case(sizes, rank, [1, ids.len()], ids);
        for (i, value) in case.shard.iter_mut().enumerate() {
            let (row, j) = (i / e, i % e);
            if row % 2 == 0 {
                *value = SPECIAL[(row + rank + j) % SPECIAL.len()];
            }
        }
        matches_rows(parallel, &case)?;
    }
    Ok(None)
}

/// The ids are only read: the other ranks need them as they are.
#[law("parallel/ids-kept", see = "parallel#lookup", about = State, points = 1,
    formula = "I after = I before",
    stays = "It says what is wrong: the ids, and not the rows.")]
fn ids_kept(parallel: &Parallel, _: &Run) -> Verdict {
    for (sizes, rank) in ranks() {
        let ids: Vec<usize> = (0..sizes.0).rev().chain([3, 3]).collect();
        let case = case(sizes, rank, [1, ids.len()], ids);
        let after = forward(parallel, &case)?.ids_after;
        holds("forward", after == case.ids, || {
            format!("the ids are {} after the call", crate::describe::List(&after))
        })
        .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

// --- all ranks together ---------------------------------------------------------------------

/// What every rank gives.
fn all_ranks(parallel: &Parallel, input: &Input) -> Step<Vec<Vec<f32>>> {
    (0..input.world_size).map(|rank| Ok(forward(parallel, &input.rank(rank))?.y)).collect()
}

/// For every token, exactly one rank gives its row and all others give zeros.
#[law("parallel/one-rank-answers", see = "parallel#sum", about = Mask, points = 1,
    formula = "#{r: E_r[i, j] ≠ 0} = 1, for tables without zeros",
    stays = "A law without an oracle: it holds whatever the numbers are.")]
fn one_rank_answers(parallel: &Parallel, run: &Run) -> Verdict {
    run.forall(inputs(), |input| {
        let mut input = input.clone();
        let e = input.whole.embedding_dim;
        input.whole.table = telling_table(input.whole.vocab_size, e); // has no zeros
        let parts = all_ranks(parallel, &input)?;
        for (t, id) in input.whole.ids.iter().enumerate() {
            let answers = |y: &Vec<f32>| y[t * e..][..e].iter().any(|&y| y != 0.0);
            let who: Vec<usize> = (0..parts.len()).filter(|&r| answers(&parts[r])).collect();
            holds("forward", who.len() == 1, || {
                format!("token {t} has id {id}, and the ranks that give a vector are {who:?}")
            })
            .map_err(|violation| violation.on(&input))?;
        }
        Ok(())
    })?;
    Ok(None)
}

/// The sum over the ranks is the lookup in the whole table, bit for bit.
#[law("parallel/sum-is-the-lookup", see = "parallel#sum", about = Mask, points = 3,
    formula = "Σ_r E_r = T[I]", stays = NET)]
fn sum_is_the_lookup(parallel: &Parallel, run: &Run) -> Verdict {
    run.forall(inputs(), |input| {
        let whole = &input.whole;
        let mut sum = vec![0.0; whole.ids.len() * whole.embedding_dim];
        for y in all_ranks(parallel, input)? {
            sum.iter_mut().zip(y).for_each(|(sum, y)| *sum += y);
        }
        let [b, s] = whole.shape;
        let why = "the rows of the whole table: one rank gives a row, and + 0 changes no bit";
        let expected = whole_table::LookupLoops::rows(&Oracle, whole);
        same_values("forward", &[b, s, whole.embedding_dim], &sum, &expected, why)
    })?;
    Ok(None)
}

/// In a world of one the shard is the whole table: the same first values, the same rows, the same gradient.
#[law("parallel/world-of-one", see = "parallel#sum", about = Range, points = 1,
    formula = "w = 1  ⇒  ParallelVocabEmbedding = VocabEmbedding",
    stays = "Two components must agree where they are the same.")]
fn world_of_one(parallel: &Parallel, run: &Run) -> Verdict {
    let sizes = menu::PARALLEL[0];
    matches_normal(parallel, sizes, 0, NormalInit { seed: 7, ..STANDARD })?;
    run.forall(inputs(), |input| {
        let (v, e, w) = sizes;
        let mut input = Input { world_size: w, ..input.clone() };
        let tokens = input.whole.ids.len();
        input.whole.ids.iter_mut().for_each(|id| *id %= v);
        input.whole = LookupCase {
            vocab_size: v,
            embedding_dim: e,
            table: telling_table(v, e),
            ..input.whole
        };
        let case = input.rank(0);
        let gradient = vec![1.0; tokens * e];
        matches_rows(parallel, &case)
            .and_then(|()| {
                matches_gradient(parallel, &case, &gradient, "the number of the row's tokens")
            })
            .map_err(|violation| violation.on(&input))
    })?;
    Ok(None)
}

// --- refusals -------------------------------------------------------------------------------

/// Two batch rows of three tokens, `id` at place `t` and good ids elsewhere.
fn with_bad_id(sizes: (usize, usize, usize), rank: usize, t: usize, id: usize) -> ShardCase {
    let mut ids = vec![2, 0, sizes.0 - 1, 1, 3, 2];
    ids[t] = id;
    case(sizes, rank, [2, 3], ids)
}

fn refused(parallel: &Parallel, manner: Manner, case: &ShardCase, id: usize) -> Step<String> {
    let rule = format!("id {id} is not below the vocabulary size {}", case.vocab_size);
    refusal("forward", &rule, || parallel.forward_in(manner, case))
        .map_err(|violation| violation.on(format!("{}\n{case}", manner.words()).trim_start()))
}

fn ids_from_v_on(parallel: &Parallel, worlds: impl Fn(usize) -> bool) -> Step {
    for (sizes, rank) in ranks().filter(|(sizes, _)| worlds(sizes.2)) {
        for t in 0..6 {
            for id in [sizes.0, sizes.0 + 1, 2 * sizes.0] {
                refused(parallel, Manner::Plain, &with_bad_id(sizes, rank, t, id), id)?;
            }
        }
    }
    Ok(())
}

/// An id that is not below v is refused by every rank, not only by the one with the last rows.
#[law("parallel/id-refused", see = "parallel#ids", about = Refusal, points = 2,
    formula = "∃ i, j: I[i, j] ≥ v  ⇒  no result, for every r",
    stays = "Ids from v on, by name. Huge ids and a world of one are special cases of it.")]
fn id_refused(parallel: &Parallel, _: &Run) -> Verdict {
    ids_from_v_on(parallel, |w| w > 1)?;
    Ok(None)
}

/// Even a world of one refuses an id that is not below v.
#[law("parallel/id-refused-in-a-world-of-one", see = "parallel#ids", about = Refusal, points = 2,
    formula = "w = 1, I[i, j] ≥ v  ⇒  no result",
    stays = "It names the smallest world, where a check that belongs to the mask is missing.")]
fn id_refused_in_a_world_of_one(parallel: &Parallel, _: &Run) -> Verdict {
    ids_from_v_on(parallel, |w| w == 1)?;
    Ok(None)
}

/// An id is never cut to fewer bits or read as negative: huge ids are refused too.
#[law("parallel/huge-id-refused", see = "parallel#ids", about = Refusal, points = 1,
    formula = "I[i, j] ∈ {2⁸ + 3, 2¹⁶ + 3, 2³² + 3, 2⁶³, 2⁶⁴ − 1}  ⇒  no result",
    stays = "It says why: cut to 32 bits, 2³² + 3 is 3.")]
fn huge_id_refused(parallel: &Parallel, _: &Run) -> Verdict {
    // In a world of more than one. What a world of one lets pass has its own invariant.
    for (sizes, rank) in ranks().filter(|(sizes, _)| sizes.2 > 1) {
        for id in HUGE {
            refused(parallel, Manner::Plain, &with_bad_id(sizes, rank, 4, id), id)?;
        }
    }
    Ok(None)
}

/// The refusal names the first bad id as it was given, not counted from the start of the shard, its place in the batch,
/// and the vocabulary size.
#[law("parallel/refusal-names-id", see = "parallel#ids", about = Refusal, points = 1,
    formula = "I[2, 3] = 977 ≥ v = 20  ⇒  \"… 977 … [2, 3] … 20 …\"")]
fn refusal_names_id(parallel: &Parallel, run: &Run) -> Verdict {
    judge_graded_cases(parallel, run, "refusal")
}

/// Ids at these places are bad. Every rank names the first, its place, and the vocabulary size.
pub(super) fn refused_in_words(
    parallel: &Parallel,
    (sizes, rank): (Sizes, usize),
    manner: Manner,
    Bad { shape, ids: bad }: &Bad,
) -> Step {
    let shape = *shape;
    let mut ids: Vec<usize> = (0..shape[0] * shape[1]).map(|t| t % sizes.0).collect();
    bad.iter().for_each(|&(t, id)| ids[t] = id);
    let mut case = case(sizes, rank, shape, ids);
    if shape[1] % 2 == 1 {
        case.shard[0] = f32::NAN; // what the shard holds changes nothing
    }
    let (t, id) = bad[0];
    let words = refused(parallel, manner, &case, id)?;
    names_all(&words, id, [t / shape[1], t % shape[1]], sizes.0).map_err(|b| b.on(&case))
}

// --- gradient -------------------------------------------------------------------------------

/// A foreign token sends no gradient to the shard, not even to its first or last row.
#[law("parallel/foreign-tokens-give-no-gradient", see = "parallel#gradient", about = Mask, points = 2,
    formula = "I[i, j] ∉ [r·n, (r + 1)·n)  ⇒  dE_r[i, j] has no part in dT_r",
    stays = "The most common mistake on the way back, by name.")]
fn foreign_tokens_give_no_gradient(parallel: &Parallel, _: &Run) -> Verdict {
    for (sizes, rank) in ranks() {
        // One token of the middle of the shard, so that its first and last rows are not used.
        if let Some(mut case) = all_foreign(sizes, rank) {
            case.ids.push(owned(sizes.0, sizes.2, rank).start + 1);
            case.shape[1] += 1;
            let e = case.embedding_dim;
            let mut dy = vec![1024.0; case.ids.len() * e];
            dy[(case.ids.len() - 1) * e..].fill(0.5);
            let why = "0.5 for the only owned token; the foreign ones' dy is 1024";
            matches_gradient(parallel, &case, &dy, why)?;
        }
    }
    Ok(None)
}

/// A dy of NaN or infinity at a foreign token does not reach the shard.
#[law("parallel/foreign-nan-stays-out", see = "parallel#gradient", about = Mask, points = 1,
    formula = "dE_r = NaN at foreign tokens  ⇒  dT_r unchanged")]
fn foreign_nan_stays_out(parallel: &Parallel, _: &Run) -> Verdict {
    for value in [f32::NAN, f32::INFINITY] {
        let case = witness();
        let mut dy = witness_dy(&case);
        let e = case.embedding_dim;
        dy[e..2 * e].fill(value); // token [0, 1], id 0
        dy[3 * e..4 * e].fill(value); // token [1, 0], id 11
        let why = "finite: NaN and infinity are at foreign tokens only";
        matches_gradient(parallel, &case, &dy, why)?;
    }
    Ok(None)
}

/// If every dy is 1, the gradient of a row is the number of its tokens, and all ranks together count all tokens.
#[law("parallel/gradient-counts", see = "parallel#gradient", about = Gradient, points = 1,
    formula = "dE = 1  ⇒  dT_r[k, ·] = #{(i, j): I[i, j] = r·n + k}",
    stays = "The gradient can be written down by hand here: it counts.")]
fn gradient_counts(parallel: &Parallel, _: &Run) -> Verdict {
    for (sizes, rank) in ranks() {
        // Every id once, even ones once more, multiples of 3 once more.
        let v = sizes.0;
        let ids: Vec<usize> = (0..v).chain((0..v).step_by(2)).chain((0..v).step_by(3)).collect();
        let case = case(sizes, rank, [1, ids.len()], ids);
        let dy = vec![1.0; case.ids.len() * case.embedding_dim];
        matches_gradient(parallel, &case, &dy, "the number of the row's tokens")?;
    }
    Ok(None)
}

/// The first and the last id of a rank send their gradient, unlike those just outside.
#[law("parallel/gradient-at-the-edges", see = "parallel#gradient", about = Range, points = 1,
    formula = "dT_r[0] = dE(r·n),  dT_r[n − 1] = dE((r + 1)·n − 1)",
    stays = "Forward and backward may draw their edges in different places.")]
fn gradient_at_the_edges(parallel: &Parallel, _: &Run) -> Verdict {
    for (sizes, rank) in ranks() {
        let ids = edge_ids(sizes, rank);
        let case = case(sizes, rank, [1, ids.len()], ids);
        let dy = witness_dy(&case);
        let why = "dy of the first and the last owned id, each once";
        matches_gradient(parallel, &case, &dy, why)?;
    }
    Ok(None)
}

/// An owned row that is looked up three times gets the sum of its three dy.
#[law("parallel/gradient-adds", see = "parallel#gradient", about = Gradient, points = 1,
    formula = "dT_r[k] = Σ dE_r[i, j] over I[i, j] = r·n + k",
    stays = "Repeated ids by name.")]
fn gradient_adds(parallel: &Parallel, _: &Run) -> Verdict {
    let case = witness();
    let (e, dy) = (case.embedding_dim, witness_dy(&case));
    let got = backward(parallel, &case, &dy)?;
    let expected: Vec<f32> = (0..e).map(|j| dy[j] + dy[2 * e + j] + dy[5 * e + j]).collect();
    let why = "row 2, id 6: the sum of the dy of tokens [0, 0], [0, 2] and [1, 2]; exact";
    same_values("backward", &[e], &got[2 * e..3 * e], &expected, why)
        .map_err(|violation| violation.on(WithDy(&case, &dy)))?;
    Ok(None)
}

/// The gradient depends on ids and dy, not on what the shard holds.
#[law("parallel/gradient-not-of-shard", see = "parallel#gradient", about = Gradient, points = 1,
    formula = "dT_r(I, dE; T) = dT_r(I, dE; T')")]
fn gradient_not_of_shard(parallel: &Parallel, _: &Run) -> Verdict {
    let case = witness();
    let dy = witness_dy(&case);
    let expected = backward(parallel, &case, &dy)?;
    for value in [0.0, 1e30, f32::NAN] {
        let other = ShardCase { shard: vec![value; case.shard.len()], ..case.clone() };
        let got = backward(parallel, &other, &dy)?;
        let why = "the same ids and dy with another shard";
        same_values("backward", &shard_shape(&case), &got, &expected, why)
            .map_err(|violation| violation.on(WithDy(&other, &dy)))?;
    }
    Ok(None)
}

/// A token that occurs 3000 times is counted 3000 times: the sum is kept in f32 or better.
#[law("parallel/gradient-of-a-frequent-token", see = "parallel#gradient", about = Precision, points = 1,
    formula = "dE = 1, k looked up 3000 times  ⇒  dT_r[k − r·n] = 3000")]
fn gradient_of_a_frequent_token(parallel: &Parallel, _: &Run) -> Verdict {
    let case = case(menu::PARALLEL[2], 1, [30, 100], vec![4; 3000]);
    let dy = vec![1.0; 3000 * case.embedding_dim];
    matches_gradient(parallel, &case, &dy, "3000 times 1")?;
    Ok(None)
}

/// On any input, the ranks' gradients, stacked in order, are the gradient of the whole table.
#[law("parallel/gradient-slices", see = "parallel#gradient", about = Gradient, points = 3,
    formula = "dT_r = dT[r·n .. (r + 1)·n],  ± count·2⁻²⁴·Σ|dE|", stays = NET)]
fn gradient_slices(parallel: &Parallel, run: &Run) -> Verdict {
    run.forall(inputs(), |input| {
        let Input { world_size, whole, dy } = input;
        let e = whole.embedding_dim;
        let gradient = |dy: &[f32]| whole_table::LookupLoops::gradient(&Oracle, whole, dy);
        let expected = gradient(dy);
        let size: Vec<f32> = dy.iter().map(|dy| dy.abs()).collect();
        let size = gradient(&size);
        let count = |i: usize| whole.ids.iter().filter(|&&id| id == i / e).count() as f64;
        let mut got = Vec::with_capacity(expected.len());
        for rank in 0..*world_size {
            got.extend(backward(parallel, &input.rank(rank), dy)?);
        }
        let why = "count·2⁻²⁴ of Σ|dy|: a sum in f32 rounds once for each term";
        let tolerance = |i: usize| count(i) * U * size[i];
        within("backward", &[whole.vocab_size, e], &got, &expected, tolerance, why)
    })?;
    Ok(None)
}

/// On any input, and however the call is made, the gradient is what plain f64 loops give.
#[law("parallel/gradient-any-input", see = "parallel#gradient", about = Gradient, points = 1,
    formula = "|dT_r − dT₆₄| ≤ count·2⁻²⁴·Σ|dE|", stays = NET)]
fn gradient_any_input(parallel: &Parallel, run: &Run) -> Verdict {
    judge_graded_cases(parallel, run, "backward")
}
