//! What ranks promise together.

use crate::category::Category;
use crate::collectives::interface::*;
use crate::collectives::oracle::{passes, tree, whole};
use crate::component::{NET, law, laws};
use crate::describe::List;
use crate::graded_cases::Draw;
use crate::graded_cases::judge::judge_graded_cases;
use crate::loss::tolerance::{GRADIENT_WHY, LOSS_WHY, gradient_off, loss_off};
use crate::run::Run;
use crate::violation::*;
use std::fmt::Display;

type Ranks = dyn Collectives;

laws! {
    everyone_comes, world_of_one, same_loss_on_all_ranks, any_number_of_ranks, one_owner, foreign_logits_stay_out,
    largest_of_all, forbidden_shard, mean_over_tokens, bad_target_refused_alike, lost_rank_is_told, logits_stay,
    gradient_of_uniform, gradient_sums_to_zero, gradient_any_number_of_ranks, entropy_f64_loops, sum_of_all_blocks,
    bits_of_one_rank, same_sum_on_all_ranks, order_of_the_tree, one_sum_a_rank, sum_needs_all_ranks, sum_any_blocks,
}

// --- questions ------------------------------------------------------------------------------

/// The results of all ranks. A rank without one is a violation: a panic before all else, then a collective that never ends.
fn results<T>(
    call: &str,
    case: &(impl Display + ?Sized),
    world_size: usize,
    ask: impl FnOnce() -> Reply<World<T>>,
) -> Step<World<T>> {
    let world = answer(call, ask).map_err(|violation| violation.on(case))?;
    ended_well(call, &world, world_size).map_err(|violation| violation.on(case))?;
    let refused = |(rank, end): (usize, &RankOutcome<T>)| match end {
        RankOutcome::Refused(error) => Some(format!("rank {rank}: {error}")),
        _ => None,
    };
    match world.ranks.iter().enumerate().find_map(refused) {
        None => Ok(world),
        Some(words) => Err(Violation::new(call, Fault::Refused { words }).on(case)),
    }
}

/// No rank panicked, and none waited for another that never came.
fn ended_well<T>(call: &str, world: &World<T>, world_size: usize) -> Step {
    for end in &world.ranks {
        if let RankOutcome::Panicked(message) = end {
            return Err(Violation::new(call, Fault::Panicked { message: message.clone() }));
        }
    }
    if let Some(trouble) = world.trouble {
        let mut violation = Violation::new(call, Fault::Broken { what: trouble.to_string() });
        violation.category = Some(Category::Exchange);
        return Err(violation);
    }
    holds(call, world.ranks.len() == world_size, || {
        format!("{} ranks have answered, of {world_size}", world.ranks.len())
    })
}

fn taken<T>(world: World<T>) -> Vec<T> {
    let result = |end| match end {
        RankOutcome::Result(result) => Some(result),
        _ => None,
    };
    world.ranks.into_iter().filter_map(result).collect()
}

/// What each rank comes to.
fn entropy(collectives: &Ranks, case: &EntropyCase) -> Step<Vec<Entropy>> {
    let ask = || collectives.entropy(case);
    let ranks = taken(results("entropy", case, case.world_size, ask)?);
    let shape = [case.targets.len(), case.own()];
    for rank in &ranks {
        if rank.dlogits.len() != shape[0] * shape[1] {
            let fault = Fault::Length { shape: shape.to_vec(), got: rank.dlogits.len() };
            return Err(Violation::new("entropy", fault).on(case));
        }
    }
    Ok(ranks)
}

fn losses(ranks: &[Entropy]) -> Vec<f32> {
    ranks.iter().map(|rank| rank.loss).collect()
}

/// `[t, v]`: the gradients of all ranks, side by side.
fn side_by_side(case: &EntropyCase, ranks: &[Entropy]) -> Vec<f32> {
    let n = case.own();
    let places = 0..case.targets.len();
    places
        .flat_map(|t| ranks.iter().flat_map(move |rank| &rank.dlogits[t * n..][..n]))
        .copied()
        .collect()
}

/// The loss of every rank must be `expected`, as far as this case is known exactly.
fn are_losses(case: &EntropyCase, ranks: &[Entropy], expected: f64, why: &str) -> Step {
    let off = loss_off(&whole(case), &passes(case));
    let expected = vec![expected; ranks.len()];
    within("entropy", &[ranks.len()], &losses(ranks), &expected, |_| off, why)
        .map_err(|violation| violation.on(case))
}

/// The gradients of all ranks must be `expected`, `[t, v]`.
fn are_gradients(case: &EntropyCase, ranks: &[Entropy], expected: &[f64], why: &str) -> Step {
    let off = gradient_off(&whole(case), &passes(case), 1.0);
    let shape = [case.targets.len(), case.vocab_size];
    within("entropy", &shape, &side_by_side(case, ranks), expected, |i| off[i], why)
        .map_err(|violation| violation.on(case))
}

/// Loss and gradient must be what the loops give, on every rank.
pub(super) fn matches_entropy(collectives: &Ranks, case: &EntropyCase) -> Step {
    let ranks = entropy(collectives, case)?;
    let passes = passes(case);
    are_losses(case, &ranks, passes.loss, LOSS_WHY)?;
    are_gradients(case, &ranks, &passes.dlogits, GRADIENT_WHY).map_err(|mut violation| {
        violation.category = violation.category.or(Some(Category::Gradient));
        violation
    })
}

/// Three tokens over twelve ids. Twelve has many divisors.
fn witness(world_size: usize) -> EntropyCase {
    let logit = |i: usize| ((i * 7 % 11) as f32 - 4.5) * 0.5;
    let (vocab_size, logits) = (12, (0..36).map(logit).collect());
    EntropyCase { world_size, vocab_size, logits, targets: vec![4, 11, 0], lost: None }
}

/// The worlds of twelve ids.
const WORLDS: [usize; 4] = [2, 3, 4, 12];

// --- what all do ------------------------------------------------------------------------------

/// All ranks make the same calls in the same order, with the same number of values, whatever their own logits and
/// targets are.
#[law("collectives/everyone-comes", see = "collectives#calls", about = Exchange, points = 2,
    formula = "calls(r) = calls(q),  r, q < w",
    stays = "The rule that all collectives have, asked with nothing else: code that breaks it hangs on a cluster.")]
fn everyone_comes(collectives: &Ranks, _: &Run) -> Verdict {
    for world_size in [2, 3, 12] {
        // All targets on one rank, and one on each of several.
        for targets in [[0, 0, 0], [11, 11, 11], [4, 11, 0], [6, 7, 8]] {
            let case = EntropyCase { targets: targets.to_vec(), ..witness(world_size) };
            let world =
                answer("entropy", || collectives.entropy(&case)).map_err(|b| b.on(&case))?;
            ended_well("entropy", &world, world_size).map_err(|violation| violation.on(&case))?;
        }
    }
    Ok(None)
}

/// One rank alone has the whole vocabulary, and gets the plain loss and its gradient.
#[law("collectives/world-of-one", see = "collectives#definition", about = Softmax, points = 1,
    formula = "w = 1  ⇒  loss = cross-entropy of all v logits",
    stays = "The plainest question: without others, it is the loss of the chapter on one machine.")]
fn world_of_one(collectives: &Ranks, _: &Run) -> Verdict {
    // Of two ids with the logits 0 and ln 3, one has the probability ¼ and the other ¾.
    let (vocab_size, logits) = (2, vec![0.0, 3f32.ln()]);
    let two = EntropyCase { world_size: 1, vocab_size, logits, targets: vec![0], lost: None };
    let why = "for ¼ and ¾; ln 3 is rounded, and so is the loss";
    are_losses(&two, &entropy(collectives, &two)?, 4f64.ln(), why)?;
    matches_entropy(collectives, &witness(1))?;
    Ok(None)
}

/// Every rank gets the same loss, bit for bit.
#[law("collectives/same-loss-on-all-ranks", see = "collectives#definition", about = Exchange, points = 2,
    formula = "loss(r) = loss(q),  r, q < w",
    stays = "A law without an oracle: ranks that disagree about the loss disagree about when to stop.")]
fn same_loss_on_all_ranks(collectives: &Ranks, _: &Run) -> Verdict {
    for world_size in WORLDS {
        let case = witness(world_size);
        let got = losses(&entropy(collectives, &case)?);
        let why = "the loss of rank 0";
        same_values("entropy", &[world_size], &got, &vec![got[0]; world_size], why)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// However many ranks share the vocabulary, the loss is that of one rank with everything.
#[law("collectives/any-number-of-ranks", see = "collectives#definition", about = Exchange, points = 2,
    formula = "loss(w) = loss(1),  w = 2, 3, 4, 12",
    stays = "A law without an oracle: it compares a world with one rank of the same implementation.")]
fn any_number_of_ranks(collectives: &Ranks, _: &Run) -> Verdict {
    let alone = entropy(collectives, &witness(1))?;
    for world_size in WORLDS {
        let case = witness(world_size);
        let off = 2.0 * loss_off(&whole(&case), &passes(&case));
        let got = losses(&entropy(collectives, &case)?);
        let expected = vec![f64::from(alone[0].loss); world_size];
        let why =
            "the loss of one rank; twice the tolerance of a loss, because sums have another order";
        within("entropy", &[world_size], &got, &expected, |_| off, why).map_err(|b| b.on(&case))?;
    }
    Ok(None)
}

/// The loss is the mean over all tokens, each with the same weight, wherever their targets lie.
#[law("collectives/mean-over-tokens", see = "collectives#definition", about = Statistics, points = 1,
    formula = "loss = Σ loss(token) / t",
    stays = "It compares the loss with its own tokens, one by one: a law without an oracle.")]
fn mean_over_tokens(collectives: &Ranks, _: &Run) -> Verdict {
    let all = witness(3);
    let (mut sum, mut off) = (0.0, 0.0);
    for (row, target) in all.logits.chunks(12).zip(&all.targets) {
        let one = EntropyCase { logits: row.to_vec(), targets: vec![*target], ..all.clone() };
        sum += f64::from(entropy(collectives, &one)?[0].loss);
        off += loss_off(&whole(&one), &passes(&one));
    }
    let got = losses(&entropy(collectives, &all)?);
    let tolerance = off / 3.0 + loss_off(&whole(&all), &passes(&all));
    let why = "the mean of what the same tokens give alone; how far all of them may be off";
    within("entropy", &[3], &got, &[sum / 3.0; 3], |_| tolerance, why).map_err(|b| b.on(&all))?;
    Ok(None)
}

// --- owners -----------------------------------------------------------------------------------

/// A token for each of these targets, over twelve ids whose logits are all given by `logit`.
fn asked_of_each(
    collectives: &Ranks,
    world_size: usize,
    targets: Vec<usize>,
    logit: impl Fn(usize) -> f32,
) -> Step {
    // Tokens differ in scale, so that ids which change places show in the mean.
    let scale = |i: usize| 1.0 + (i / 12) as f32 * 0.125;
    let logits = (0..12 * targets.len()).map(|i| logit(i % 12) * scale(i)).collect();
    let case = EntropyCase { world_size, vocab_size: 12, logits, targets, lost: None };
    are_losses(&case, &entropy(collectives, &case)?, passes(&case).loss, LOSS_WHY)
}

/// Each id, even the first and the last of a rank, has one owner, which alone has its logit.
#[law("collectives/one-owner", see = "collectives#owners", about = Range, points = 2,
    formula = "loss = ln Σ exp(l) − l(target),  target = 0 .. v − 1",
    stays = "Every id is asked for, so that both edges of every rank are among them.")]
fn one_owner(collectives: &Ranks, _: &Run) -> Verdict {
    for world_size in WORLDS {
        // Ids have logits that are as far apart as their squares, so that none can replace two others.
        asked_of_each(collectives, world_size, (0..12).collect(), |id| (id * id) as f32 * 0.0625)?;
    }
    Ok(None)
}

/// A rank that does not have the target adds 0, even where its own logits are −∞.
#[law("collectives/foreign-logits-stay-out", see = "collectives#owners", about = Special, points = 1,
    formula = "target not on r,  l = −∞ on r  ⇒  loss as in f64",
    stays = "One forbidden id on a rank is what happens; a whole rank of them is rarer.")]
fn foreign_logits_stay_out(collectives: &Ranks, _: &Run) -> Verdict {
    for world_size in [2, 3, 4] {
        let n = 12 / world_size;
        // The first and the last id of each rank are forbidden, and the targets are neither.
        let logit = |id: usize| match id % n {
            0 => f32::NEG_INFINITY,
            column if column + 1 == n => f32::NEG_INFINITY,
            _ => (id % 5) as f32 * 0.5,
        };
        let targets = (0..12).filter(|id| logit(*id).is_finite()).collect();
        asked_of_each(collectives, world_size, targets, logit)?;
    }
    Ok(None)
}

// --- the largest logit ------------------------------------------------------------------------

/// The number that is subtracted before exp is the largest logit of ALL ranks, token by token.
#[law("collectives/largest-of-all", see = "collectives#largest", about = Precision, points = 2,
    formula = "l(r) = l + c on one rank,  c = ±10⁴  ⇒  loss in f64")]
fn largest_of_all(collectives: &Ranks, _: &Run) -> Verdict {
    for world_size in [1, 2, 4] {
        for (far, rank) in [(1e4, 0), (1e4, world_size - 1), (-1e4, 0), (100.0, world_size - 1)] {
            let mut case = witness(world_size);
            let n = case.own();
            // On one rank, and of the second token on all.
            for (i, logit) in case.logits.iter_mut().enumerate() {
                let lifted = i / 12 == 1 || i % 12 / n == rank;
                *logit += if lifted { far } else { 0.0 };
            }
            matches_entropy(collectives, &case)?;
        }
    }
    Ok(None)
}

/// If a rank has only forbidden ids, its part of the sum is 0.
#[law("collectives/forbidden-shard", see = "collectives#largest", about = Special, points = 1,
    formula = "l = −∞ for all ids of r  ⇒  loss as without r")]
fn forbidden_shard(collectives: &Ranks, _: &Run) -> Verdict {
    for (world_size, rank) in [(2, 0), (2, 1), (3, 1), (12, 5)] {
        let mut case = witness(world_size);
        let n = case.own();
        case.targets.fill(if rank == 0 { 11 } else { 0 });
        case.logits.iter_mut().enumerate().filter(|(i, _)| i % 12 / n == rank).for_each(
            |(_, logit)| {
                *logit = f32::NEG_INFINITY;
            },
        );
        matches_entropy(collectives, &case)?;
    }
    Ok(None)
}

// --- refusal ----------------------------------------------------------------------------------

/// A target that is not below v is refused by every rank with the same error, which names the first such target, its
/// place, and v, and no rank waits.
#[law("collectives/bad-target-refused-alike", see = "collectives#refusal", about = Refusal, points = 2,
    formula = "target ≥ v  ⇒  error(r) = Target { target, place, v },  r < w")]
fn bad_target_refused_alike(collectives: &Ranks, run: &Run) -> Verdict {
    judge_graded_cases(collectives, run, "refusal")
}

/// Every rank must refuse the first bad target in the same words.
pub(super) fn refused_alike(collectives: &Ranks, case: &EntropyCase) -> Step {
    let bad = case.targets.iter().position(|target| *target >= case.vocab_size);
    let Some(place) = bad else { return Ok(()) };
    let (target, vocab_size) = (case.targets[place], case.vocab_size);
    let want = RankError::Target { target, place, vocab_size };
    let judge = || -> Step {
        let world = answer("entropy", || collectives.entropy(case))?;
        ended_well("entropy", &world, case.world_size)?;
        for (rank, end) in world.ranks.iter().enumerate() {
            match end {
                RankOutcome::Refused(error) if *error == want => {}
                RankOutcome::Refused(error) => {
                    let what = format!("rank {rank} says: {error}. Expected: {want}");
                    return Err(Violation::new("entropy", Fault::Broken { what }));
                }
                _ => {
                    let rule = format!("on rank {rank}: {want}");
                    return Err(Violation::new("entropy", Fault::Accepted { rule }));
                }
            }
        }
        holds("entropy", world.handed.iter().all(|handed| *handed == 0), || {
            format!(
                "the ranks refuse, but have sent each other values before: {}; expected: 0 each",
                List(&world.handed)
            )
        })
    };
    judge().map_err(|violation| violation.on(case))
}

/// Loses a rank before its first call, then after one, and so on until its program has no more: all others must end
/// with the error that their call returned.
fn others_are_told<T>(
    call: &str,
    world_size: usize,
    case: impl Fn(Lost) -> Step<(String, World<T>)>,
) -> Step {
    for rank in [0, world_size - 1] {
        for after in 0..MOST_CALLS {
            let (case, world) = case(Lost { rank, after })?;
            let Some(trouble) = world.trouble else {
                // After the last call no one misses it. Before the first one, all wait for it.
                let missed = || format!("no rank misses rank {rank}, which never called");
                holds(call, after > 0, missed).map_err(|violation| violation.on(&case))?;
                break;
            };
            let judge = |(other, end): (usize, &RankOutcome<T>)| match end {
                RankOutcome::Lost if other == rank => Ok(()),
                RankOutcome::Refused(RankError::Ranks(told)) if *told == trouble => Ok(()),
                RankOutcome::Panicked(message) => {
                    Err(Violation::new(call, Fault::Panicked { message: message.clone() }))
                }
                RankOutcome::Refused(error) => {
                    let what = format!(
                        "rank {other} says: {error}. Expected, as its call returned: {trouble}"
                    );
                    Err(Violation::new(call, Fault::Broken { what }))
                }
                RankOutcome::Result(_) | RankOutcome::Lost => {
                    let rule = format!("on rank {other}, whose call returned: {trouble}");
                    Err(Violation::new(call, Fault::Accepted { rule }))
                }
            };
            world
                .ranks
                .iter()
                .enumerate()
                .try_for_each(judge)
                .map_err(|violation| violation.on(&case))?;
        }
    }
    Ok(())
}

/// More than any program here makes: three for each token are the most of the variants.
const MOST_CALLS: usize = 40;

/// If a rank is lost on the way, at whichever call, each of the others ends with the error that its own call returned,
/// and without a loss.
#[law("collectives/lost-rank-is-told", see = "collectives#refusal", about = Refusal, points = 2,
    formula = "q gone after k calls  ⇒  error(r) = that of call k + 1,  r ≠ q")]
fn lost_rank_is_told(collectives: &Ranks, _: &Run) -> Verdict {
    for world_size in [2, 3] {
        others_are_told("entropy", world_size, |lost| {
            let case = EntropyCase { lost: Some(lost), ..witness(world_size) };
            let world =
                answer("entropy", || collectives.entropy(&case)).map_err(|b| b.on(&case))?;
            Ok((case.to_string(), world))
        })?;
    }
    Ok(None)
}

/// If a rank is lost on the way, each of the others ends with the error that its own call returned, and without a sum.
#[law("collectives/sum-needs-all-ranks", see = "collectives#refusal", about = Refusal, points = 1,
    formula = "q gone after k calls  ⇒  error(r) = that of call k + 1,  r ≠ q")]
fn sum_needs_all_ranks(collectives: &Ranks, _: &Run) -> Verdict {
    for world_size in [2, 4] {
        others_are_told("tree_sum", world_size, |lost| {
            let case = SumCase { lost: Some(lost), ..blocks(world_size) };
            let world =
                answer("tree_sum", || collectives.tree_sum(&case)).map_err(|b| b.on(&case))?;
            Ok((case.to_string(), world))
        })?;
    }
    Ok(None)
}

// --- what travels -----------------------------------------------------------------------------

/// No rank may hand more than this to the others.
fn hands_at_most<T>(
    call: &str,
    case: &impl Display,
    world: &World<T>,
    most: usize,
    why: &str,
) -> Step {
    let largest = world.handed.iter().copied().max().unwrap_or(0);
    holds(call, largest <= most, || {
        format!("a rank sends {largest} values to the others, but at most {most} are needed: {why}; each rank: {}", List(&world.handed))
    })
    .map_err(|violation| violation.on(case))
}

/// What a rank sends to the others does not grow with the vocabulary: at most four numbers per token.
#[law("collectives/logits-stay", see = "collectives#costs", about = Exchange, points = 2,
    formula = "values handed ≤ 4t,  v = 24, t = 3")]
fn logits_stay(collectives: &Ranks, _: &Run) -> Verdict {
    let (vocab_size, world_size) = (24, 2);
    let logits = (0..72).map(|i| (i * 5 % 13) as f32 * 0.25).collect();
    let case = EntropyCase { world_size, vocab_size, logits, targets: vec![4, 23, 0], lost: None };
    let world = results("entropy", &case, world_size, || collectives.entropy(&case))?;
    hands_at_most("entropy", &case, &world, 12, "4 per token, of 12 logits")?;
    Ok(None)
}

/// A rank sends the sum of its blocks, not the blocks themselves.
#[law("collectives/one-sum-a-rank", see = "collectives#order", about = Exchange, points = 1,
    formula = "values handed ≤ length of a block")]
fn one_sum_a_rank(collectives: &Ranks, _: &Run) -> Verdict {
    for world_size in [1, 2, 4] {
        let case = numbers(world_size, 8);
        let world = results("tree_sum", &case, world_size, || collectives.tree_sum(&case))?;
        hands_at_most("tree_sum", &case, &world, case.len, "one sum, of the length of a block")?;
    }
    Ok(None)
}

// --- the gradient -----------------------------------------------------------------------------

/// With t tokens whose logits are all equal, the gradient is 1/(t·v) on every rank, less 1/t for the target on its
/// owner.
#[law("collectives/gradient-of-uniform", see = "collectives#gradient", about = Gradient, points = 2,
    formula = "l = c  ⇒  dl(j) = (1/v − [j = target]) / t",
    stays = "The gradient can be written down by hand here.")]
fn gradient_of_uniform(collectives: &Ranks, _: &Run) -> Verdict {
    for (vocab_size, world_size) in [(2, 2), (6, 3), (8, 4)] {
        let targets = vec![1, vocab_size - 1, 0];
        let logits = vec![0.5; 3 * vocab_size];
        let case = EntropyCase { world_size, vocab_size, logits, targets, lost: None };
        let dlogit = |i: usize| {
            let hot = f64::from(u8::from(case.targets[i / vocab_size] == i % vocab_size));
            (1.0 / vocab_size as f64 - hot) / 3.0
        };
        let expected: Vec<f64> = (0..3 * vocab_size).map(dlogit).collect();
        are_gradients(&case, &entropy(collectives, &case)?, &expected, GRADIENT_WHY)?;
    }
    Ok(None)
}

/// Over all ranks together, the gradient of a token adds up to 0.
#[law("collectives/gradient-sums-to-zero", see = "collectives#gradient", about = Gradient, points = 1,
    formula = "Σ dl = 0 over the ids of all ranks, per token",
    stays = "A law without an oracle, of all ranks together: none alone can check it.")]
fn gradient_sums_to_zero(collectives: &Ranks, run: &Run) -> Verdict {
    for world_size in WORLDS {
        let logits = Draw::new(run, 3).values(36);
        let case = EntropyCase { logits, ..witness(world_size) };
        let sum = |values: Vec<f64>| -> Vec<f64> {
            values.chunks(12).map(|row| row.iter().sum()).collect()
        };
        let ranks = entropy(collectives, &case)?;
        let got = sum(side_by_side(&case, &ranks).iter().map(|&value| f64::from(value)).collect());
        let off = sum(gradient_off(&whole(&case), &passes(&case), 1.0));
        let why = "the sum of how far the values themselves may be off";
        within_f64("entropy", &[3], &got, &[0.0; 3], |token| off[token], why)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// Side by side, the gradients of all ranks make up that of one rank with everything: each rank has only its own part.
#[law("collectives/gradient-any-number-of-ranks", see = "collectives#gradient", about = Gradient, points = 2,
    formula = "[dl(0) dl(1) … dl(w − 1)] = dl,  w = 2, 3, 4, 12",
    stays = "A law without an oracle: what one rank owns does not change when there are more ranks.")]
fn gradient_any_number_of_ranks(collectives: &Ranks, _: &Run) -> Verdict {
    let one = witness(1);
    let alone = side_by_side(&one, &entropy(collectives, &one)?);
    let off = gradient_off(&whole(&one), &passes(&one), 1.0);
    let alone: Vec<f64> = alone.iter().map(|&value| f64::from(value)).collect();
    for world_size in WORLDS {
        let case = witness(world_size);
        let got = side_by_side(&case, &entropy(collectives, &case)?);
        let why = "the gradient of one rank; twice the tolerance, because sums have another order";
        within("entropy", &[3, 12], &got, &alone, |i| 2.0 * off[i], why)
            .map_err(|b| b.on(&case))?;
    }
    Ok(None)
}

/// On any input, loss and gradient are what plain f64 loops over the whole vocabulary give.
#[law("collectives/entropy-f64-loops", see = "collectives#definition", about = Softmax, points = 3,
    formula = "loss = Σ (ln Σ exp(l) − l(target)) / t,  dl = (softmax(l) − onehot) / t", stays = NET)]
fn entropy_f64_loops(collectives: &Ranks, run: &Run) -> Verdict {
    judge_graded_cases(collectives, run, "entropy")
}

// --- the order of sums ------------------------------------------------------------------------

/// What each rank comes to.
fn tree_sum(collectives: &Ranks, case: &SumCase) -> Step<Vec<Vec<f32>>> {
    let ask = || collectives.tree_sum(case);
    let ranks = taken(results("tree_sum", case, case.world_size, ask)?);
    match ranks.iter().find(|sum| sum.len() != case.len) {
        None => Ok(ranks),
        Some(sum) => {
            let fault = Fault::Length { shape: vec![case.len], got: sum.len() };
            Err(Violation::new("tree_sum", fault).on(case))
        }
    }
}

/// All ranks must have these bits.
fn are_sums(case: &SumCase, ranks: &[Vec<f32>], expected: &[f32], why: &str) -> Step {
    let (got, expected) = (ranks.concat(), expected.repeat(ranks.len()));
    let judge = || {
        same_values("tree_sum", &[ranks.len(), case.len], &got, &expected, why)?;
        // As numbers, 0 and -0 are equal.
        let signs = |values: &[f32]| -> Vec<bool> {
            values.iter().map(|x| *x == 0.0 && x.is_sign_negative()).collect()
        };
        holds("tree_sum", signs(&got) == signs(&expected), || {
            format!(
                "a zero has the wrong sign: {}, expected: {}; {why}",
                List(&got),
                List(&expected)
            )
        })
    };
    judge().map_err(|violation| violation.on(case))
}

/// The sum must have the bits of the tree, on every rank.
pub(super) fn matches_tree(collectives: &Ranks, case: &SumCase) -> Step {
    let why = "the bits of sum(first half) + sum(second half), each in f32";
    are_sums(case, &tree_sum(collectives, case)?, &tree(&case.values, case.len), why)
}

/// Blocks of 1, 2, 4, 8, ...: a block that is missing or is added twice shows.
fn numbers(world_size: usize, blocks: usize) -> SumCase {
    let values = (0..blocks).flat_map(|block| [(1 << block) as f32, -(block as f32)]).collect();
    SumCase { world_size, blocks, len: 2, values, lost: None }
}

/// Eight blocks whose sum depends on the order: large numbers, small ones, and thirds.
fn blocks(world_size: usize) -> SumCase {
    let large = 2f32.powi(25);
    let values = [
        [large, 0.1, 1.0],
        [1.0, 1.0 / 3.0, 1e-8],
        [-large, 0.7, 1e-8],
        [1.0, -1e6, 1e-8],
        [3.0, 1.0 / 7.0, 1e-8],
        [large, 1e6, 1e-8],
        [-1.0, 0.3, 1e-8],
        [-large, 2.0 / 3.0, 6e-8],
    ];
    SumCase { world_size, blocks: 8, len: 3, values: values.concat(), lost: None }
}

/// Each block is added exactly once, whichever rank has it: sums of small whole numbers are exact.
#[law("collectives/sum-of-all-blocks", see = "collectives#order", about = Statistics, points = 1,
    formula = "sum = Σ blocks,  exactly")]
fn sum_of_all_blocks(collectives: &Ranks, _: &Run) -> Verdict {
    for (world_size, blocks) in [(1, 1), (1, 2), (2, 2), (1, 8), (2, 8), (8, 8)] {
        let case = numbers(world_size, blocks);
        let expected = [(1 << blocks) as f32 - 1.0, -((blocks * (blocks - 1) / 2) as f32)];
        are_sums(
            &case,
            &tree_sum(collectives, &case)?,
            &expected,
            "whole numbers: no order rounds",
        )?;
    }
    Ok(None)
}

/// The sum is bit for bit that of one rank with all blocks, however many ranks share them.
#[law("collectives/bits-of-one-rank", see = "collectives#order", about = Order, points = 2,
    formula = "sum(w) = sum(1), bit for bit,  w = 2, 4, 8")]
fn bits_of_one_rank(collectives: &Ranks, _: &Run) -> Verdict {
    let alone = tree_sum(collectives, &blocks(1))?.concat();
    for world_size in [2, 4, 8] {
        let case = blocks(world_size);
        are_sums(
            &case,
            &tree_sum(collectives, &case)?,
            &alone,
            "the bits of one rank with all blocks",
        )?;
    }
    Ok(None)
}

/// Every rank gets the same sum, bit for bit.
#[law("collectives/same-sum-on-all-ranks", see = "collectives#order", about = Order, points = 1,
    formula = "sum(r) = sum(q),  r, q < w",
    stays = "A law without an oracle: weights that are equal stay equal.")]
fn same_sum_on_all_ranks(collectives: &Ranks, _: &Run) -> Verdict {
    for world_size in [2, 4, 8] {
        let case = blocks(world_size);
        let ranks = tree_sum(collectives, &case)?;
        are_sums(&case, &ranks, &ranks[0], "the bits of rank 0")?;
    }
    Ok(None)
}

/// The halves are summed separately and then added to each other: a different order gives different bits.
#[law("collectives/order-of-the-tree", see = "collectives#order", about = Order, points = 2,
    formula = "sum(b) = sum(b[.. m/2]) + sum(b[m/2 ..]),  in f32",
    stays = "Four numbers, by hand: each order has another result.")]
fn order_of_the_tree(collectives: &Ranks, _: &Run) -> Verdict {
    for world_size in [1, 2, 4] {
        // (2^25 + 1) + (-2^25 + 1): each 1 is lost beside 2^25. From the left, the second is not.
        let large = 2f32.powi(25);
        let values = vec![large, 1.0, -large, 1.0];
        matches_tree(collectives, &SumCase { world_size, blocks: 4, len: 1, values, lost: None })?;
        matches_tree(collectives, &blocks(world_size))?;
    }
    Ok(None)
}

/// For any blocks on any number of ranks, the sum is bit for bit that of the tree.
#[law("collectives/sum-any-blocks", see = "collectives#order", about = Order, points = 2,
    formula = "sum = tree(blocks), bit for bit", stays = NET)]
fn sum_any_blocks(collectives: &Ranks, run: &Run) -> Verdict {
    judge_graded_cases(collectives, run, "tree_sum")
}
