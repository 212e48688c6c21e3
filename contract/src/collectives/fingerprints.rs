//! Questions to ranks.

use crate::collectives::interface::*;
use crate::component::Fingerprint;
use crate::graded_cases::Draw;
use crate::run::Run;

/// Asks them all.
pub fn fingerprints(collectives: &dyn Collectives) -> Vec<Fingerprint> {
    let mut fingerprints = Vec::new();
    for case in cases() {
        let loss = |entropy: &Entropy| vec![entropy.loss];
        fingerprints
            .push(Fingerprint::ask("entropy", || Ok(told(&collectives.entropy(&case)?, loss))));
        let gradient = |entropy: &Entropy| entropy.dlogits.clone();
        fingerprints
            .push(Fingerprint::ask("entropy", || Ok(told(&collectives.entropy(&case)?, gradient))));
    }
    // As numbers, 0 and -0 are equal.
    let seen = |x: &f32| if x.to_bits() == (-0.0f32).to_bits() { -0.5 } else { *x };
    let bits = |sum: &Vec<f32>| sum.iter().map(seen).collect();
    for case in sums() {
        fingerprints
            .push(Fingerprint::ask("tree_sum", || Ok(told(&collectives.tree_sum(&case)?, bits))));
    }
    fingerprints
}

/// A world as numbers: how each rank ended, and what it handed over. A rank's values come last.
pub(super) fn told<T>(world: &World<T>, values: impl Fn(&T) -> Vec<f32>) -> Vec<f64> {
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

/// Worlds of one and more; targets on one rank and on all; levels whose exp is no number; forbidden ids; bad targets.
fn cases() -> Vec<EntropyCase> {
    let case = |world_size: usize, n: usize, targets: Vec<usize>| {
        let vocab_size = world_size * n;
        let run = Run::default();
        let logits = Draw::new(&run, vocab_size as u64).values(targets.len() * vocab_size);
        EntropyCase { world_size, vocab_size, logits, targets, lost: None }
    };
    let lifted = |mut case: EntropyCase, rank: usize, by: f32| {
        let (v, n) = (case.vocab_size, case.own());
        let of_rank = |i: usize| i % v / n == rank;
        case.logits.iter_mut().enumerate().filter(|(i, _)| of_rank(*i)).for_each(|(_, l)| *l += by);
        case
    };
    let mut tokens_apart = case(2, 3, vec![5, 0, 2]);
    tokens_apart.logits[6..12].iter_mut().for_each(|logit| *logit += 300.0);
    let mut forbidden = case(2, 3, vec![4, 1]);
    [0, 2, 3, 5, 6, 8, 9, 11].into_iter().for_each(|i| forbidden.logits[i] = f32::NEG_INFINITY);
    let mut edges = case(3, 2, vec![0, 1, 2, 3, 4, 5]);
    edges.logits.iter_mut().enumerate().for_each(|(i, logit)| *logit += (i % 6) as f32);
    vec![
        case(1, 5, vec![3]),
        case(1, 5, vec![3, 0, 4]),
        case(2, 3, vec![0]),
        case(2, 3, vec![5]),
        case(2, 3, vec![3]),
        case(2, 3, vec![2, 3, 0, 5]),
        case(3, 4, vec![11, 0, 4, 7, 8]),
        case(3, 4, vec![9, 10, 11]),
        case(4, 1, vec![2, 2]),
        edges,
        EntropyCase { logits: vec![-1.5; 12], ..case(2, 3, vec![4, 1]) },
        lifted(case(2, 3, vec![1, 4]), 0, 100.0),
        lifted(case(2, 3, vec![1, 4]), 1, 1e4),
        lifted(case(3, 2, vec![1, 4]), 2, -1e4),
        lifted(case(2, 3, vec![1, 1]), 1, f32::NEG_INFINITY),
        tokens_apart,
        forbidden,
        case(2, 3, vec![1, 6]),
        case(2, 3, vec![7, 1, 9]),
        case(3, 2, vec![(1 << 32) + 3, 2]),
        case(2, 20, vec![39, 0]),
        EntropyCase { lost: Some(Lost { rank: 1, after: 0 }), ..case(2, 3, vec![3]) },
        EntropyCase { lost: Some(Lost { rank: 1, after: 1 }), ..case(2, 3, vec![3]) },
    ]
}

fn sums() -> Vec<SumCase> {
    let sum = |world_size: usize, blocks: usize, len: usize| {
        let mut draw = Draw::new(&Run::default(), (blocks * len) as u64);
        let values = (0..blocks * len).map(|_| draw.value() / 3.0).collect();
        SumCase { world_size, blocks, len, values, lost: None }
    };
    // The orders differ by much here, since an answer may be off in its last digits.
    let large = |world_size: usize| {
        let l = 2f32.powi(25);
        let values = [
            [l, 1.0, 3.0],
            [1.0, l, l],
            [-l, -l, 1.0],
            [1.0, 1.0, -l],
            [1.0, l, 1.0],
            [l, 1.0, -l],
            [-l, 1.0, 1.0],
            [1.0, -l, l],
        ];
        SumCase { world_size, blocks: 8, len: 3, values: values.concat(), lost: None }
    };
    vec![
        sum(1, 2, 3),
        sum(2, 2, 3),
        sum(4, 4, 2),
        large(1),
        large(2),
        large(4),
        large(8),
        sum(2, 32, 4),
        SumCase { world_size: 2, blocks: 4, len: 1, values: vec![-0.0; 4], lost: None },
    ]
}
