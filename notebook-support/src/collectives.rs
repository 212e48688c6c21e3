//! The collectives in a notebook.

use crate::check::{Verdict, check, not_asked};
use contract::collectives::world;
use contract::interface::{
    Collectives, Communicator, Entropy, EntropyCase, RankError, Reply, SumCase, World,
};

/// A learner's program of one rank: `logits` are `[t, n]` of its own ids, which begin with `first`.
pub type RankProgram = fn(
    comm: &dyn Communicator,
    logits: &[f32],
    targets: &[usize],
    first: usize,
) -> Result<Entropy, RankError>;

/// Runs it on ranks that are threads, and grades it by the invariants of the task `collectives/entropy`.
pub fn check_entropy(program: RankProgram) -> Verdict {
    check::<dyn Collectives>("collectives/entropy", &Lines(program))
}

struct Lines(RankProgram);

impl Collectives for Lines {
    fn entropy(&self, case: &EntropyCase) -> Reply<World<Entropy>> {
        world::run(case.world_size, case.lost, |comm| {
            let (logits, first) = (case.logits_of(comm.rank()), comm.rank() * case.own());
            (self.0)(comm, &logits, &case.targets, first)
        })
    }

    fn tree_sum(&self, _: &SumCase) -> Reply<World<Vec<f32>>> {
        Err(not_asked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loss, with the sums of exponentials shared or not.
    fn program(
        comm: &dyn Communicator,
        logits: &[f32],
        targets: &[usize],
        first: usize,
        shares: bool,
    ) -> Result<Entropy, RankError> {
        let (t, n) = (targets.len(), logits.len() / targets.len());
        let vocab_size = n * comm.world_size();
        if let Some(place) = targets.iter().position(|target| *target >= vocab_size) {
            return Err(RankError::Target { target: targets[place], place, vocab_size });
        }
        let own = |id: usize| id.checked_sub(first).filter(|column| *column < n);
        let rows = || logits.chunks(n);
        let largest = |row: &[f32]| row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut largest: Vec<f32> = rows().map(largest).collect();
        comm.all_reduce_max(&mut largest)?;
        let exp = |(row, largest): (&[f32], &f32)| -> Vec<f32> {
            row.iter().map(|logit| (logit - largest).exp()).collect()
        };
        let exps: Vec<Vec<f32>> = rows().zip(&largest).map(exp).collect();
        let mut totals: Vec<f32> = exps.iter().map(|row| row.iter().sum()).collect();
        if shares {
            comm.all_reduce_sum(&mut totals)?;
        }
        let of_target = |(row, id): (&[f32], &usize)| own(*id).map_or(0.0, |column| row[column]);
        let mut of_targets: Vec<f32> = rows().zip(targets).map(of_target).collect();
        comm.all_reduce_sum(&mut of_targets)?;
        let (mut loss, mut dlogits) = (0.0, Vec::new());
        for token in 0..t {
            loss += totals[token].ln() + largest[token] - of_targets[token];
            for (column, exp) in exps[token].iter().enumerate() {
                let hot = if own(targets[token]) == Some(column) { 1.0 } else { 0.0 };
                dlogits.push((exp / totals[token] - hot) / t as f32);
            }
        }
        Ok(Entropy { loss: loss / t as f32, dlogits })
    }

    #[test]
    fn right_lines_pass() {
        let verdict = check_entropy(|comm, l, t, first| program(comm, l, t, first, true));
        assert!(verdict.passed, "{verdict}");
    }

    #[test]
    fn wrong_lines_are_named() {
        let verdict = check_entropy(|comm, l, t, first| program(comm, l, t, first, false));
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("forgets to share the sums"), "{verdict}");
    }
}
