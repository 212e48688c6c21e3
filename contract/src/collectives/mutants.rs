//! Mutants of the collectives.

use super::graded_cases::blocks;
use crate::collectives::interface::*;
use crate::graded_cases::Draw;
use crate::mutants::mixer::{Axes, Mixed, Turn};
use crate::mutants::way::{Call, NotAsked, OF_TENSORS, Way};
use crate::mutants::{Said, answered};

type Ranks = dyn Collectives;

/// What their conditions are about.
pub const AXES: Axes = Axes {
    calls: &["entropy", "tree_sum"],
    not_asked: &[
        NotAsked {
            calls: &["entropy", "tree_sum"],
            ways: &OF_TENSORS,
            why: "it takes plain numbers",
        },
        NotAsked {
            calls: &["entropy", "tree_sum"],
            ways: &[Way::AfterRefusal],
            why: "each call has ranks of its own: nothing is kept",
        },
    ],
    parts: &["r", "element"],
    sizes: &["w", "t", "len"],
    types: &["n"],
    quantities: &[("target", &[3, 6, 16, 32, 63])],
};

/// The answer of one of two implementations, or of both, as the mixer chooses. An implementation that is not needed is
/// not asked: each world has its own threads. `take` and `put` turn a rank's result into values and back.
fn mixed<T>(
    turn: Turn,
    sizes: [usize; 2],
    implementations: [&Ranks; 2],
    ask: impl Fn(&Ranks) -> Reply<World<T>>,
    take: impl Fn(&T) -> Vec<f32>,
    put: impl Fn(&[f32]) -> T,
) -> Reply<World<T>> {
    let [right, wrong] = implementations;
    match turn {
        Turn::Right => return ask(right),
        Turn::Wrong => return ask(wrong),
        Turn::Part(..) | Turn::Spoilt(_) => {}
    }
    // A world in which a rank has no result has no values: it is a refusal.
    let values = |world: &World<T>| -> Reply<Vec<f32>> {
        let of_rank = |end: &RankOutcome<T>| match end {
            RankOutcome::Result(result) => Ok(take(result)),
            _ => Err(Refusal::new("a rank has no result")),
        };
        Ok(world.ranks.iter().map(of_rank).collect::<Reply<Vec<_>>>()?.concat())
    };
    let right = ask(right)?;
    let axes = [("r", sizes[0]), ("element", sizes[1])];
    match turn.values(&axes, || values(&right), || values(&ask(wrong)?)) {
        Ok(values) => {
            let ranks = values.chunks(sizes[1]).map(|of| RankOutcome::Result(put(of))).collect();
            Ok(World { ranks, ..right })
        }
        // Other words.
        Err(refusal) if refusal.0.is_empty() => {
            let other = RankError::Target { target: 0, place: 0, vocab_size: 0 };
            let ranks = right.ranks.iter().map(|_| RankOutcome::Refused(other)).collect();
            Ok(World { ranks, ..right })
        }
        Err(_) => Ok(right),
    }
}

impl Collectives for Mixed<Ranks> {
    fn entropy(&self, case: &EntropyCase) -> Reply<World<Entropy>> {
        let (w, t, n) = (case.world_size, case.targets.len(), case.own());
        let target = case.targets.iter().copied().max().unwrap_or(0);
        let sizes = [("w", w), ("t", t), ("n", n), ("target", target)];
        let turn = self.mixer.turn(&Call::of("entropy", sizes).with(&case.logits));
        let ask = |collectives: &Ranks| collectives.entropy(case);
        let take = |entropy: &Entropy| [&[entropy.loss], &entropy.dlogits[..]].concat();
        let put = |values: &[f32]| Entropy { loss: values[0], dlogits: values[1..].to_vec() };
        mixed(turn, [w, 1 + t * n], [&*self.right, &*self.wrong], ask, take, put)
    }

    fn tree_sum(&self, case: &SumCase) -> Reply<World<Vec<f32>>> {
        let (w, len) = (case.world_size, case.len);
        let turn =
            self.mixer.turn(&Call::of("tree_sum", [("w", w), ("len", len)]).with(&case.values));
        let ask = |collectives: &Ranks| collectives.tree_sum(case);
        mixed(turn, [w, len], [&*self.right, &*self.wrong], ask, Vec::clone, <[f32]>::to_vec)
    }
}

/// Answers to random questions.
pub fn fuzz(collectives: &Ranks, mut draw: Draw) -> Vec<Said> {
    let (w, t) = (1 + draw.below(8), 1 + draw.below(9));
    let n = [1, 2, 5][draw.below(3)];
    let v = w * n;
    let level = [0.0, 100.0, -1000.0][draw.below(3)];
    let mut logits: Vec<f32> = draw.values(t * v).iter().map(|x| x + level).collect();
    let targets: Vec<usize> = (0..t).map(|_| draw.below(v)).collect();
    let id = draw.below(v);
    if draw.below(4) == 0 && targets[0] != id {
        logits[id] = [0.0, f32::NEG_INFINITY][draw.below(2)];
    }
    let good = EntropyCase { world_size: w, vocab_size: v, logits, targets, lost: None };
    let mut bad = good.clone();
    let place = draw.below(t);
    bad.targets[place] = v.saturating_add(draw.bits() as usize >> (1 + draw.below(63)));
    let ranks = [1, 2, 4, 8][draw.below(4)];
    let sum = blocks([ranks, 8, 1 + draw.below(9)], draw);
    let loss = |entropy: &Entropy| [&[entropy.loss], &entropy.dlogits[..]].concat();
    vec![
        answered(|| Ok(told(&collectives.entropy(&good)?, loss))),
        answered(|| Ok(told(&collectives.entropy(&bad)?, loss))),
        answered(|| Ok(told(&collectives.tree_sum(&sum)?, Vec::clone))),
    ]
}

/// A world as numbers: how each rank ended, and what it handed over. A rank's values come last.
fn told<T>(world: &World<T>, values: impl Fn(&T) -> Vec<f32>) -> Vec<f64> {
    let mut told = Vec::new();
    for end in &world.ranks {
        match end {
            RankOutcome::Result(result) => {
                told.extend(values(result).iter().map(|x| f64::from(*x)))
            }
            // Large ones differ in their digits, and a target may be any number.
            RankOutcome::Refused(RankError::Target { target, place, vocab_size }) => {
                told.extend([-1.0, (*target as f64).ln(), *place as f64, *vocab_size as f64]);
            }
            RankOutcome::Refused(RankError::Ranks(_)) => told.push(-2.0),
            RankOutcome::Panicked(_) => told.push(-3.0),
            RankOutcome::Lost => told.push(-6.0),
        }
    }
    let call = |call: &RankCall| [call.kind as u8 as f64, call.values as f64, call.nth as f64];
    match &world.trouble {
        None => {}
        Some(Trouble::Gone { rank, call: of, gone }) => {
            told.extend([-4.0, *rank as f64, *gone as f64]);
            told.extend(call(of));
        }
        Some(Trouble::Apart { rank, call: of, other, its }) => {
            told.extend([-5.0, *rank as f64, *other as f64]);
            told.extend(call(of).into_iter().chain(call(its)));
        }
    }
    // How much travels is part of the answer where it is more than is needed.
    let handed = world.handed.iter().copied().max().unwrap_or(0);
    let refused = |end| matches!(end, &RankOutcome::Refused(RankError::Target { .. }));
    let needed = if world.ranks.iter().all(refused) { 0 } else { 30 };
    told.push(if handed > needed { 1.0 } else { 0.0 });
    told
}
