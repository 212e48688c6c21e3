//! Which known bug a wrong implementation behaves like.
//!
//! The bugs of the museum can be run, so the diagnosis asks the implementation and every bug the same
//! fixed questions and compares their wrong answers. A bug fits as far as it is wrong where the
//! implementation is wrong, in the same way, and right where the implementation is right.
//!
//! The first call that the implementation answers wrong decides, because one mistake in a forward pass may
//! spoil the gradients in several ways. The other calls decide between bugs that fit equally well. If none fits well,
//! or several fit equally well in everything, the diagnosis says that it does not know.

use crate::component::{Component, Exhibit, Fingerprint, exhibits, fingerprints_of};
use rayon::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A known bug that fits.
pub struct Diagnosis {
    /// The bug.
    pub bug: Exhibit,
    /// How well it fits.
    pub fit: Fit,
}

/// How well a bug's answers fit an implementation's. Larger is better, and the first field counts most.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Fit {
    /// Of the call that decides: share of the informative questions that both answer in the same way.
    pub deciding: f64,
    /// The same for the other calls that are looked at.
    pub others: f64,
    /// The same for all calls: a bug that is wrong in calls that are not looked at is less likely.
    pub all: f64,
    /// Whether a gradient decides, and the other calls don't fit.
    pub strange: bool,
}

impl Fit {
    /// Whether the bug may be named. A forward pass that is wrong spoils the gradients in several ways, so they need not
    /// fit. Where the values are right, one gradient says nothing about the others: a bug that loses those of queries and
    /// keys is not the one that loses those of queries alone.
    fn is_enough(&self) -> bool {
        self.deciding >= ENOUGH && !self.strange
    }
}

/// A bug that answers fewer of the informative questions like the implementation is not named.
const ENOUGH: f64 = 0.8;

/// The bug that `implementation` behaves like, if one is known.
///
/// `calls` limits the questions to some calls of the interface, such as `forward`: a learner may not
/// have written the others yet. Empty means all.
pub fn diagnose<P: Component + ?Sized>(implementation: &P, calls: &[&str]) -> Option<Diagnosis> {
    let museum = museum::<P>(calls);
    let [answers, truth] = [implementation, &*P::oracle()]
        .map(|implementation| fingerprints_of(implementation, calls));
    closest(&answers, &truth, calls, &mut museum.iter())
}

/// The first repair that explains what an implementation answers in one of these calls.
pub fn repair<P: Component + ?Sized>(implementation: &P, calls: &[&str]) -> Option<String> {
    let of_calls = P::repairs().iter().filter(|repair| calls.contains(&repair.call));
    of_calls
        .filter_map(|repair| {
            catch_unwind(AssertUnwindSafe(|| (repair.explain)(implementation))).ok().flatten()
        })
        .next()
}

/// A bug and its answers to [`Component::fingerprints`]. The component's types end here, so that what follows is
/// compiled once and not once for each component.
type Known = (Exhibit, Vec<Fingerprint>);

fn museum<P: Component + ?Sized>(calls: &[&str]) -> Vec<Known> {
    let answers = (0..P::bugs().len()).into_par_iter();
    let answers = answers.map(|bug| fingerprints_of(&*(P::bugs()[bug].implementation)(), calls));
    exhibits::<P>().into_iter().zip(answers.collect::<Vec<_>>()).collect()
}

/// [`diagnose`] from the answers, among some of the bugs.
fn closest(
    answers: &[Fingerprint],
    truth: &[Fingerprint],
    calls: &[&str],
    museum: &mut dyn Iterator<Item = &Known>,
) -> Option<Diagnosis> {
    let fits = museum.filter_map(|(bug, wrong)| {
        fit(answers, truth, wrong, calls).map(|fit| Diagnosis { bug: *bug, fit })
    });
    let mut fits: Vec<Diagnosis> = fits.collect();
    fits.sort_by(|a, b| b.fit.partial_cmp(&a.fit).expect("shares are numbers"));
    let best = fits.first()?;
    let alike = fits.iter().filter(|other| other.fit == best.fit).count();
    (best.fit.is_enough() && alike == 1).then(|| fits.swap_remove(0))
}

/// How well the diagnosis names the bugs of the museum.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Accuracy {
    /// Bugs that were shown to it.
    pub shown: usize,
    /// Named right.
    pub right: usize,
    /// Named as another bug: id, and the name it got.
    pub wrong: Vec<(&'static str, &'static str)>,
    /// Not named.
    pub unknown: Vec<&'static str>,
    /// Bugs that were shown after they had been taken out of the museum, and got a name all the
    /// same: id, and the name. The right answer is that it does not know.
    pub strangers_named: Vec<(&'static str, &'static str)>,
}

impl Accuracy {
    /// Share of the bugs that were named right.
    pub fn top1(&self) -> f64 {
        self.right as f64 / self.shown as f64
    }

    /// Two accuracies as one.
    pub fn and(mut self, other: Self) -> Self {
        self.shown += other.shown;
        self.right += other.right;
        self.wrong.extend(other.wrong);
        self.unknown.extend(other.unknown);
        self.strangers_named.extend(other.strangers_named);
        self
    }
}

/// Shows every bug of a component to the diagnosis, in another hand: its answers are those of the
/// bug in `f32` arithmetic, off by up to three roundings.
pub fn accuracy<P: Component + ?Sized>() -> Accuracy {
    accuracy_among(&P::fingerprints(&P::oracle()), &museum::<P>(&[]))
}

fn accuracy_among(truth: &[Fingerprint], museum: &[Known]) -> Accuracy {
    let mut accuracy = Accuracy::default();
    for (bug, answers) in museum {
        let answers = in_another_hand(answers.clone());
        accuracy.shown += 1;
        match closest(&answers, truth, &[], &mut museum.iter()) {
            Some(named) if named.bug.id == bug.id => accuracy.right += 1,
            Some(named) => accuracy.wrong.push((bug.id, named.bug.id)),
            None => accuracy.unknown.push(bug.id),
        }
        let mut others = museum.iter().filter(|(other, _)| other.id != bug.id);
        if let Some(named) = closest(&answers, truth, &[], &mut others) {
            accuracy.strangers_named.push((bug.id, named.bug.id));
        }
    }
    accuracy
}

/// The same answers, rounded differently in the last digits of `f32`.
fn in_another_hand(mut fingerprints: Vec<Fingerprint>) -> Vec<Fingerprint> {
    let mut turn = 0u32;
    for fingerprint in &mut fingerprints {
        if let Some(Ok(values)) = &mut fingerprint.answer {
            for value in values {
                turn = (turn + 1) % 7;
                *value *= 1.0 + (f64::from(turn) - 3.0) * crate::laws::U;
            }
        }
    }
    fingerprints
}

/// How `bug` fits `implementation`. `None` if the implementation answers right in all `calls`.
fn fit(
    implementation: &[Fingerprint],
    truth: &[Fingerprint],
    bug: &[Fingerprint],
    calls: &[&str],
) -> Option<Fit> {
    let asked = |call: &str| calls.is_empty() || calls.contains(&call);
    let wrong = |(implementation, truth): &(&Fingerprint, &Fingerprint)| {
        asked(implementation.call) && !same(implementation, truth)
    };
    let decides = implementation.iter().zip(truth).find(wrong)?.0.call;
    let count = |counts: &dyn Fn(&str) -> bool| {
        let (mut telling, mut alike) = (0.0, 0.0);
        for ((implementation, truth), bug) in implementation.iter().zip(truth).zip(bug) {
            if counts(implementation.call) && !(same(implementation, truth) && same(bug, truth)) {
                telling += 1.0;
                alike += if same(implementation, bug) { 1.0 } else { 0.0 };
            }
        }
        (telling, alike)
    };
    let share = |counts: &dyn Fn(&str) -> bool| match count(counts) {
        (0.0, _) => 1.0,
        (telling, alike) => alike / telling,
    };
    let is_other = |call: &str| call != decides && asked(call);
    let (telling, alike) = count(&is_other);
    Some(Fit {
        deciding: share(&|call| call == decides),
        others: share(&is_other),
        all: share(&|_| true),
        // One answer may be another: squares of large numbers overflow in f32, no matter what else is wrong.
        strange: decides.contains("backward") && alike + 1.0 < ENOUGH * telling,
    })
}

/// Equal up to the last digits of `f32`, relative to the largest value of the answer. A panic is like a refusal: it is
/// no answer either.
pub(crate) fn same(a: &Fingerprint, b: &Fingerprint) -> bool {
    match (&a.answer, &b.answer) {
        (Some(Ok(a)), Some(Ok(b))) => {
            let largest = |v: &[f64]| {
                v.iter().filter(|x| x.is_finite()).fold(0.0, |m: f64, x| m.max(x.abs()))
            };
            let tolerance = 2e-6 * largest(a).max(largest(b));
            let close =
                |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance;
            a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| close(a, b))
        }
        (Some(Ok(_)), _) | (_, Some(Ok(_))) => false,
        _ => true,
    }
}
