//! What every world must keep, no matter what its ranks are. Each is a function from a world to a complaint.

use crate::support::Random;
use contract::collectives::oracle::{passes, tree, whole};
use contract::interface::{EntropyCase, SumCase};
use contract::loss::tolerance::{gradient_off, loss_off};
use ranks::act::{Answer, Question};
use ranks::error::Refusal;
use ranks::world::{Said, World};

/// What a world broke, in words.
pub type Verdict = Result<(), String>;

/// An invariant with its name.
pub type Invariant = (&'static str, fn(&dyn World) -> Verdict);

/// All of them.
pub const INVARIANTS: &[Invariant] = &[
    ("values", values),
    ("special-values", special_values),
    ("gradients", gradients),
    ("loss", loss),
    ("loss-in-order", loss_in_order),
    ("large-logits", large_logits),
    ("edges", edges),
    ("other-ids-refused", other_ids_refused),
    ("bad-id-refused", bad_id_refused),
    ("library-loss", library_loss),
    ("library-sum", library_sum),
];

/// Half a unit in the last place, relative: what one rounding to `f32` costs at most.
const U: f64 = 1.0 / (1 << 24) as f64;

fn asked(world: &dyn World, question: &Question) -> Result<Answer, String> {
    match world.ask(question).map_err(|e| e.to_string())? {
        Said::Answer(answer) if answer.same => Ok(answer),
        Said::Answer(_) => Err("the ranks do not have the same".into()),
        Said::Refused(rank, why) => Err(format!("rank {rank} refused: {why}")),
        Said::Failed(words) => Err(format!("failed: {words:?}")),
    }
}

fn same_bits(what: &str, got: &[f32], expected: &[f32]) -> Verdict {
    if got.len() != expected.len() {
        return Err(format!("{what}: {} elements, expected {}", got.len(), expected.len()));
    }
    match got.iter().zip(expected).position(|(got, expected)| got.to_bits() != expected.to_bits()) {
        None => Ok(()),
        Some(at) => Err(format!("{what}[{at}] is {}, expected {}", got[at], expected[at])),
    }
}

fn within(what: &str, got: &[f32], expected: &[f64], bounds: &[f64]) -> Verdict {
    if got.len() != expected.len() {
        return Err(format!("{what}: {} elements, expected {}", got.len(), expected.len()));
    }
    for (at, ((got, expected), bound)) in got.iter().zip(expected).zip(bounds).enumerate() {
        let apart = (f64::from(*got) - expected).abs();
        if apart.is_nan() || apart > *bound {
            return Err(format!(
                "{what}[{at}] is {got}, expected {expected} within {bound:e}: {apart:e} apart"
            ));
        }
    }
    Ok(())
}

/// A vocabulary that 1, 2, 3, 4 and 8 ranks divide.
const V: usize = 48;
/// Rows that are added up together. It divides every shard: 48, 24, 16, 12 and 6 rows.
const BLOCK: usize = 2;

fn lookup(seed: u64, v: usize, dy: bool, block: Option<usize>) -> (Vec<f32>, Vec<usize>, Question) {
    let (mut random, shape, width) = (Random::new(seed), [3, 7], 5);
    let table = random.floats(v * width, 1.0);
    let ids = random.ids(shape[0] * shape[1], v);
    let dy = dy.then(|| random.floats(ids.len() * width, 1.0));
    (table.clone(), ids.clone(), Question::Lookup { shape, width, table, ids, dy, block })
}

/// The sum over the ranks is the row itself, bit for bit in every order: one term alone is not 0. Also for a vocabulary that
/// the ranks do not divide.
fn values(world: &dyn World) -> Verdict {
    for (seed, v) in [(1, V), (2, V), (3, 50), (4, 9)] {
        for block in [None, Some(BLOCK)] {
            let (table, ids, question) = lookup(seed, v, false, block);
            let answer = asked(world, &question)?;
            let rows: Vec<f32> = ids.iter().flat_map(|id| table[id * 5..][..5].to_vec()).collect();
            same_bits("y", &answer.y, &rows)?;
        }
    }
    Ok(())
}

/// Rows are copied no matter what they hold; a NaN stays with the tokens that ask for it. Only the sign of a zero may
/// be lost: 0 + -0 = 0.
fn special_values(world: &dyn World) -> Verdict {
    let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-45, 3e38, -0.0];
    for (place, value) in special.into_iter().enumerate() {
        let mut table: Vec<f32> = (0..V).map(|row| row as f32 + 1.0).collect();
        let row = (place * 11) % V;
        table[row] = value;
        let ids: Vec<usize> = (0..V).collect();
        let question = Question::Lookup {
            shape: [2, V / 2],
            width: 1,
            table: table.clone(),
            ids,
            dy: None,
            block: None,
        };
        let y = asked(world, &question)?.y;
        for (id, (got, expected)) in y.iter().zip(&table).enumerate() {
            if got.to_bits() != expected.to_bits()
                && !(got.is_nan() && expected.is_nan())
                && !(*got == 0.0 && *expected == 0.0)
            {
                return Err(format!("y of id {id} is {got}, expected {expected}"));
            }
        }
    }
    Ok(())
}

/// The first and the last id of each rank, and its neighbours.
fn edges(world: &dyn World) -> Verdict {
    let n = V / world.world_size();
    let table: Vec<f32> = (0..V).map(|row| row as f32 + 1.0).collect();
    let ids: Vec<usize> =
        (0..world.world_size()).flat_map(|rank| [rank * n, (rank + 1) * n - 1]).collect();
    let dy = vec![1.0; ids.len()];
    let expected: Vec<f32> = ids.iter().map(|id| table[*id]).collect();
    let mut counts = vec![0.0; V];
    ids.iter().for_each(|id| counts[*id] += 1.0);
    let question =
        Question::Lookup { shape: [1, ids.len()], width: 1, table, ids, dy: Some(dy), block: None };
    let answer = asked(world, &question)?;
    same_bits("y", &answer.y, &expected)?;
    same_bits("dtable", &answer.dtable, &counts)
}

/// Each row's gradient, from its owner, is the sum of the `dy` of the places that looked it up, and 0 if none did. Two sums
/// of k terms in `f32` are at most `(k - 1) U` of the sum of absolute values from the true one.
fn gradients(world: &dyn World) -> Verdict {
    for (seed, v) in [(5, V), (6, 50), (7, 4)] {
        let (_, ids, question) = lookup(seed, v, true, None);
        let Question::Lookup { dy: Some(dy), .. } = &question else { unreachable!() };
        let answer = asked(world, &question)?;
        let (mut sums, mut sizes, mut counts) =
            (vec![0.0; v * 5], vec![0.0; v * 5], vec![0.0; v * 5]);
        for (place, id) in ids.iter().enumerate() {
            for j in 0..5 {
                sums[id * 5 + j] += f64::from(dy[place * 5 + j]);
                sizes[id * 5 + j] += f64::from(dy[place * 5 + j].abs());
                counts[id * 5 + j] += 1.0;
            }
        }
        let bounds: Vec<f64> =
            sizes.iter().zip(&counts).map(|(size, count)| size * count * U).collect();
        within("dtable", &answer.dtable, &sums, &bounds)?;
    }
    Ok(())
}

/// What a loss is asked with.
struct Projected {
    t: usize,
    h: usize,
    x: Vec<f32>,
    weight: Vec<f32>,
    targets: Vec<Option<usize>>,
}

impl Projected {
    fn new(seed: u64, scale: f32) -> Self {
        let (mut random, t, h) = (Random::new(seed), 10, 7);
        let (x, weight) = (random.floats(t * h, scale), random.floats(V * h, 1.0));
        // Among the targets are one that is not asked about, and those at the edges of every rank.
        let edges = [0, V / 2 - 1, V / 2, V - 1];
        let target = |place: usize| match place {
            3 => None,
            4..8 => Some(edges[place - 4]),
            _ => Some(random.below(V)),
        };
        let targets = (0..t).map(target).collect();
        Self { t, h, x, weight, targets }
    }

    fn question(&self, block: Option<usize>) -> Question {
        let Self { t, h, x, weight, targets } = self;
        let (x, weight, targets) = (x.clone(), weight.clone(), targets.clone());
        Question::Loss { shape: [2, t / 2], width: *h, x, weight, targets, block }
    }

    /// Values in `f64`, and how far an `f32` world may be from them.
    fn expected(&self) -> [(Vec<f64>, Vec<f64>); 3] {
        let Self { t, h, x, weight, targets } = self;
        let (t, h) = (*t, *h);
        let at = |values: &[f32], place: usize| f64::from(values[place]);
        let places = targets.iter().flatten().count() as f64;
        let (mut loss, mut loss_bound) = (0.0, 0.0);
        let [mut dx, mut dx_bound] = [vec![0.0; t * h], vec![0.0; t * h]];
        let [mut dw, mut dw_bound, mut dw_size] =
            [vec![0.0; V * h], vec![0.0; V * h], vec![0.0; V * h]];
        for (row, target) in targets.iter().enumerate() {
            let Some(target) = *target else { continue };
            let product = |id: usize, of: fn(f64) -> f64| {
                (0..h).map(|j| of(at(x, row * h + j) * at(weight, id * h + j))).sum::<f64>()
            };
            let logits: Vec<f64> = (0..V).map(|id| product(id, |p| p)).collect();
            // A logit is a sum of h products: h roundings of it, at most, of the sum of absolute values. One more
            // for what is of second order.
            let lost =
                (0..V).map(|id| (h as f64 + 1.0) * U * product(id, f64::abs)).fold(0.0, f64::max);
            let largest = logits.iter().copied().fold(f64::MIN, f64::max);
            let range = largest - logits.iter().copied().fold(f64::MAX, f64::min);
            // The difference to the largest is rounded once more.
            let lost_exponent = lost + U * range;
            let total: f64 = logits.iter().map(|logit| (logit - largest).exp()).sum();
            loss += total.ln() + largest - logits[target];
            loss_bound += lost + lost_exponent;
            for (id, logit) in logits.iter().enumerate() {
                let p = (logit - largest).exp() / total;
                let dlogit = (p - if id == target { 1.0 } else { 0.0 }) / places;
                // exp(e) of numerator and of denominator: p times 2 e, a tenth for what is of second order. Then two
                // roundings of at most 1 / places.
                let dlogit_bound =
                    p * 2.1 * lost_exponent / places + 2.0 * U * dlogit.abs().max(p / places);
                for j in 0..h {
                    let (token, element) = (row * h + j, id * h + j);
                    dx[token] += dlogit * at(weight, element);
                    // A sum of V products, in any order, over ranks or not: at most V roundings.
                    dx_bound[token] +=
                        (dlogit_bound + V as f64 * U * dlogit.abs()) * at(weight, element).abs();
                    dw[element] += dlogit * at(x, token);
                    dw_bound[element] += dlogit_bound * at(x, token).abs();
                    dw_size[element] += dlogit.abs() * at(x, token).abs();
                }
            }
        }
        dw_bound.iter_mut().zip(dw_size).for_each(|(bound, size)| *bound += t as f64 * U * size);
        let loss = loss / places;
        [(vec![loss], vec![loss_bound / places + U * loss.abs()]), (dx, dx_bound), (dw, dw_bound)]
    }

    fn holds(&self, answer: &Answer) -> Verdict {
        let [(loss, loss_bound), (dx, dx_bound), (dw, dw_bound)] = self.expected();
        within("loss", &answer.y, &loss, &loss_bound)?;
        within("dx", &answer.dx, &dx, &dx_bound)?;
        within("dweight", &answer.dtable, &dw, &dw_bound)
    }
}

/// Loss and gradients are those of loops in `f64`, within what `f32` costs.
fn loss(world: &dyn World) -> Verdict {
    for (seed, scale) in [(8, 1.0), (9, 4.0), (10, 0.01)] {
        let projected = Projected::new(seed, scale);
        projected.holds(&asked(world, &projected.question(None))?)?;
    }
    Ok(())
}

/// In the order of the vocabulary, any number of ranks gives the bits of one rank.
fn loss_in_order(world: &dyn World) -> Verdict {
    let one = ranks::world::OfThreads::new(1);
    for (seed, scale) in [(11, 1.0), (12, 4.0)] {
        let projected = Projected::new(seed, scale);
        let question = projected.question(Some(BLOCK));
        let (got, expected) = (asked(world, &question)?, asked(&one, &question)?);
        projected.holds(&got)?;
        same_bits("loss", &got.y, &expected.y)?;
        same_bits("dx", &got.dx, &expected.dx)?;
        same_bits("dweight", &got.dtable, &expected.dtable)?;
    }
    Ok(())
}

/// Logits of some hundreds, the largest on one rank: its exponential has no room in `f32` or `f64` unless the largest of
/// ALL ranks is taken away first.
fn large_logits(world: &dyn World) -> Verdict {
    let (h, t) = (2, 4);
    let mut weight: Vec<f32> = (0..V).flat_map(|id| [id as f32 / V as f32, 1.0]).collect();
    weight[2 * (V - 1)] = 900.0;
    weight[2] = -900.0;
    let x = (0..t).flat_map(|row| [1.0 + row as f32 * 0.125, 0.5]).collect();
    let targets = vec![Some(V - 1), Some(1), Some(0), Some(V / 2)];
    let projected = Projected { t, h, x, weight, targets };
    projected.holds(&asked(world, &projected.question(None))?)
}

/// A rank that reads other ids than the others is named. Two ranks can't know which of them is wrong, and both are
/// named.
fn other_ids_refused(world: &dyn World) -> Verdict {
    if world.world_size() == 1 {
        return Ok(());
    }
    let rank = world.world_size() - 1;
    let (_, ids, question) = lookup(13, V, false, None);
    let projected = Projected::new(14, 1.0).question(None);
    for question in [question, projected] {
        let id = (ids[0] + 1) % V;
        let question = Question::Altered { rank, place: 0, id, question: Box::new(question) };
        let others = if world.world_size() == 2 { "rank 0" } else { "the others" };
        let expected = format!("rank {rank} has other input than {others} in call ");
        match world.ask(&question).map_err(|e| e.to_string())? {
            Said::Failed(words) if words.iter().all(|words| words.starts_with(&expected)) => {}
            other => return Err(format!("expected {expected:?} on every rank, got {other:?}")),
        }
    }
    Ok(())
}

/// An id outside the vocabulary is the same error on every rank, no matter which one sees it, also where the ranks'
/// rows are filled up to a whole shard. Afterwards the ranks answer as before.
fn bad_id_refused(world: &dyn World) -> Verdict {
    for v in [V, 50] {
        let (_, _, question) = lookup(15, v, true, None);
        for id in [v, v + 1, usize::MAX] {
            for rank in [0, world.world_size() - 1] {
                let question =
                    Question::Altered { rank, place: 8, id, question: Box::new(question.clone()) };
                let expected = Said::Refused(
                    rank,
                    Refusal::TokenId { id, batch: 1, position: 1, vocab_size: v },
                );
                let said = world.ask(&question).map_err(|e| e.to_string())?;
                if said != expected {
                    return Err(format!("expected {expected:?}, got {said:?}"));
                }
            }
        }
    }
    values(world)
}

/// The library's loss over a cut vocabulary, on these ranks, is that of one rank with everything.
fn library_loss(world: &dyn World) -> Verdict {
    let mut random = Random::new(29);
    let w = world.world_size();
    for (n, t, scale) in [(1, 1, 1.0), (3, 5, 4.0), (7, 2, 200.0)] {
        let v = n * w;
        let (logits, targets) = (random.floats(t * v, scale), random.ids(t, v));
        let case = EntropyCase { world_size: w, vocab_size: v, logits, targets, lost: None };
        let (passes, whole) = (passes(&case), whole(&case));
        let answer = asked(world, &Question::LibraryLoss(case))?;
        within("loss", &answer.y, &[passes.loss], &[loss_off(&whole, &passes)])?;
        let turned = |values: &[f64]| -> Vec<f64> {
            (0..v)
                .flat_map(|id| (0..t).map(move |token| token * v + id))
                .map(|i| values[i])
                .collect()
        };
        let off = turned(&gradient_off(&whole, &passes, 1.0));
        within("dlogits", &answer.dtable, &turned(&passes.dlogits), &off)?;
    }
    Ok(())
}

/// The library's sum of blocks has the bits of the tree, on a number of ranks that is a power of 2. Any other is refused, by
/// all ranks.
fn library_sum(world: &dyn World) -> Verdict {
    let mut random = Random::new(31);
    let w = world.world_size();
    let (blocks, len) = (8 * w, 5);
    let values = random.floats(blocks * len, 1e3);
    let sum = tree(&values, len);
    let question = Question::LibrarySum(SumCase { world_size: w, blocks, len, values, lost: None });
    if w.is_power_of_two() {
        return same_bits("sum", &asked(world, &question)?.y, &sum);
    }
    match world.ask(&question).map_err(|e| e.to_string())? {
        Said::Failed(words) if words.iter().all(|word| word.contains("power of 2")) => Ok(()),
        said => Err(format!("{w} ranks: {said:?}")),
    }
}
