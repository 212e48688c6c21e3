//! The collectives in a notebook.

use crate::chart::{Axis, Mark, Series, chart, power_of_two, tenths};
use crate::check::{Verdict, check, not_asked};
use crate::plot::{BLUE, Figure, INK, VERMILLION};
use contract::collectives::world;
use contract::interface::{
    Collectives, Communicator, Entropy, EntropyCase, RankError, Reply, SumCase, World,
};
use plotters::prelude::SeriesLabelPosition;

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

/// How far the sum of the same numbers is from the truth on 1, 2, 4 and more ranks: that of `all_reduce_sum`, and that of
/// a tree.
///
/// # Errors
/// What plotters reports.
pub fn orders(of_call: &[f32], of_tree: &[f32], truth: f64) -> crate::Result<Figure> {
    let off = |sums: &[f32]| -> Vec<(f64, f64)> {
        let off = |sum: &f32| (f64::from(*sum) - truth) * 1e6;
        sums.iter().enumerate().map(|(doubled, sum)| (doubled as f64, off(sum))).collect()
    };
    let (call, tree) = (off(of_call), off(of_tree));
    let least = call.iter().chain(&tree).fold(0.0, |least: f64, (_, y)| least.min(*y));
    let most = call.iter().chain(&tree).fold(0.0, |most: f64, (_, y)| most.max(*y));
    let end = of_call.len().max(of_tree.len()) as f64 - 0.5;
    let series = [
        Series::new("the truth", INK, Mark::Dotted, [(-0.5, 0.0), (end, 0.0)]),
        Series::new("", VERMILLION, Mark::Dashed, call.clone()),
        Series::new("all_reduce_sum", VERMILLION, Mark::Triangles, call),
        Series::new("", BLUE, Mark::Line, tree.clone()),
        Series::new("a tree", BLUE, Mark::Circles, tree),
    ];
    let x = Axis { name: "ranks", range: -0.5..end, labels: 8, label: power_of_two };
    let y = Axis {
        name: "sum minus truth, in millionths",
        range: least.floor() - 1.0..most.ceil() + 1.0,
        labels: 8,
        label: tenths,
    };
    let question = "Do the bits of a sum depend on the number of ranks?";
    chart(question, (x, y), &series, SeriesLabelPosition::LowerRight)
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

    #[test]
    fn both_orders_are_drawn() {
        let figure = orders(&[1.0, 1.5, 1.0], &[1.25; 3], 1.2).unwrap();
        for word in ["all_reduce_sum", "a tree", "the truth"] {
            assert!(figure.svg().lines().any(|line| line == word), "{word}: {}", figure.svg());
        }
        assert!(orders(&[1.0], &[1.0], 1.0).is_ok());
    }
}
