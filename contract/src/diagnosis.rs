//! Which known bug a wrong implementation behaves like.
//!
//! The bugs of the museum can be run, so they are asked what the implementation was asked: graded cases and invariants.
//! A bug fits as far as it is wrong where the implementation is wrong, in the same way, and right where the implementation
//! is right.
//!
//! The first call that the implementation answers wrong, in the order of the tasks, decides, because one mistake in a forward
//! pass may spoil the gradients in several ways. A bug that is wrong in a call before it is another one. The calls after it
//! decide between bugs that fit equally well. If none fits well, or several fit equally well in everything, the diagnosis says
//! that it does not know.

use crate::component::{Bug, Component, Exhibit, NET, exhibits};
use crate::grade::is_todo;
use crate::run::Run;
use crate::task::{Grading, Spec};
use crate::violation::{Fault, Step, Violation, answer, numbers};
use rayon::prelude::*;
use std::collections::HashMap;
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
    /// The same for the other calls.
    pub others: f64,
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
const ENOUGH: f64 = 0.9;

/// Wrong answers are the same up to this share of the largest value: a learner's `f32` may round much where a formula is wrong.
const ALIKE: f64 = 1e-4;

/// So many graded cases of a call that an implementation answers wrong tell bugs apart, the plainest first, and so many that it
/// answers right. All bugs are asked these, while a learner waits.
const MOST: usize = 16;

/// Something that an implementation and the bugs are asked.
struct Question<P: ?Sized> {
    /// The call of a graded case. An invariant makes several.
    call: Option<&'static str>,
    judge: Box<dyn Fn(&P) -> Step>,
}

impl<P: ?Sized> Question<P> {
    fn ask(&self, implementation: &P) -> Answered {
        let judge = || Ok((self.judge)(implementation));
        let call = self.call.unwrap_or_default();
        Answered { call: self.call, wrong: answer(call, judge).and_then(|step| step).err() }
    }
}

/// What was answered. The component's types end here, so that what follows is compiled once and not once for each component.
#[derive(Clone)]
struct Answered {
    /// As in [`Question`]. The violation of an invariant names one.
    call: Option<&'static str>,
    wrong: Option<Box<Violation>>,
}

/// The graded cases of some calls and some invariants: all, if none is named.
fn questions<P: Component + ?Sized>(calls: &[&str], broken: &[&str]) -> Vec<Question<P>> {
    let run = Run { cases: 1, shrink: false, every_size: false, blocks: false, ..Run::default() };
    let graded = P::graded_cases(&run)
        .into_iter()
        .filter(|graded| !graded.elsewhere && (calls.is_empty() || calls.contains(&graded.call)));
    // One mistake spoils all that comes after it, so the order is that of the tasks: a gradient after its values.
    let of_task = |task: &'static Spec| match task.grading {
        Grading::Invariants { calls, .. } => calls,
        _ => &[],
    };
    let order: Vec<&str> = P::tasks().iter().flat_map(of_task).copied().collect();
    let mut graded: Vec<_> = graded.collect();
    graded.sort_by_key(|graded| order.iter().position(|call| *call == graded.call));
    // The nets ask the graded cases once more.
    let laws = P::invariants()
        .iter()
        .filter(|law| law.stays != Some(NET) && (broken.is_empty() || broken.contains(&law.id)));
    let graded =
        graded.into_iter().map(|graded| Question { call: Some(graded.call), judge: graded.judge });
    let laws = laws.map(|law| Question::<P> {
        call: None,
        judge: Box::new(move |implementation| law.judge(implementation, &run).map(|_remark| ())),
    });
    graded.chain(laws).collect()
}

/// The bug that `implementation` behaves like, if one is known.
///
/// `calls` limits the graded cases to some calls of the interface, such as `forward`: a learner may not have written the others
/// yet. `broken` are the invariants that it breaks. Empty means all.
pub fn diagnose<P: Component + ?Sized>(
    implementation: &P,
    calls: &[&str],
    broken: &[&str],
) -> Option<Diagnosis> {
    let asked = questions::<P>(calls, broken);
    let of: Vec<_> = asked.iter().map(|question| question.call).collect();
    let theirs = telling(&of, |question| asked[question].ask(implementation));
    let answers = |asked: &mut Vec<Question<P>>, bug: &Bug<P>| {
        let bug = (bug.implementation)();
        theirs.iter().map(|(question, _)| asked[*question].ask(&bug)).collect()
    };
    let bugs = P::bugs().par_iter().map_init(|| questions::<P>(calls, broken), answers);
    let bugs: Vec<Vec<Answered>> = bugs.collect();
    let known = exhibits::<P>().into_iter().zip(bugs.iter().map(|bug| bug.iter().collect()));
    let theirs: Vec<Answered> = theirs.iter().map(|(_, answered)| answered.clone()).collect();
    closest(&theirs, known)
}

/// Asks until there is enough to tell bugs apart: the questions, by their places, and the answers. `calls` are those of the
/// questions.
fn telling(
    calls: &[Option<&'static str>],
    mut ask: impl FnMut(usize) -> Answered,
) -> Vec<(usize, Answered)> {
    let mut counts: HashMap<(&str, bool), usize> = HashMap::new();
    let mut told = Vec::new();
    for (question, call) in calls.iter().enumerate() {
        let is_full = |call| counts.get(&(call, true)) == Some(&MOST);
        if call.is_some_and(is_full) {
            continue;
        }
        let answered = ask(question);
        let tells = match call {
            // What is not written yet is not wrong.
            _ if answered.wrong.as_deref().is_some_and(is_todo) => false,
            Some(call) => {
                let count = counts.entry((call, answered.wrong.is_some())).or_default();
                *count += 1;
                *count <= MOST
            }
            // That an invariant holds hardly tells bugs apart, and to ask them costs much.
            None => answered.wrong.is_some(),
        };
        if tells {
            told.push((question, answered));
        }
    }
    told
}

/// [`diagnose`] from the answers, among some of the bugs and their answers to the same questions.
fn closest<'a>(
    theirs: &[Answered],
    bugs: impl Iterator<Item = (Exhibit, Vec<&'a Answered>)>,
) -> Option<Diagnosis> {
    let fits =
        bugs.filter_map(|(bug, answers)| fit(theirs, &answers).map(|fit| Diagnosis { bug, fit }));
    let mut fits: Vec<Diagnosis> = fits.collect();
    fits.sort_by(|a, b| b.fit.partial_cmp(&a.fit).expect("shares are numbers"));
    let best = fits.first()?;
    let alike = fits.iter().filter(|other| other.fit == best.fit).count();
    (best.fit.is_enough() && alike == 1).then(|| fits.swap_remove(0))
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
    let answers = |bug: &Bug<P>| {
        let bug = (bug.implementation)();
        questions::<P>(&[], &[]).iter().map(|question| question.ask(&bug)).collect()
    };
    accuracy_among(&exhibits::<P>(), &P::bugs().par_iter().map(answers).collect::<Vec<_>>())
}

fn accuracy_among(bugs: &[Exhibit], answers: &[Vec<Answered>]) -> Accuracy {
    let mut accuracy = Accuracy::default();
    for (bug, its) in bugs.iter().zip(answers) {
        let calls: Vec<_> = its.iter().map(|answered| answered.call).collect();
        let (asked, theirs): (Vec<usize>, Vec<Answered>) =
            telling(&calls, |question| in_another_hand(&its[question])).into_iter().unzip();
        let known = || {
            let answers = answers.iter().map(|all| asked.iter().map(|&nth| &all[nth]).collect());
            bugs.iter().copied().zip(answers)
        };
        accuracy.shown += 1;
        match closest(&theirs, known()) {
            Some(named) if named.bug.id == bug.id => accuracy.right += 1,
            Some(named) => accuracy.wrong.push((bug.id, named.bug.id)),
            None => accuracy.unknown.push(bug.id),
        }
        let others = known().filter(|(other, _)| other.id != bug.id);
        if let Some(named) = closest(&theirs, others) {
            accuracy.strangers_named.push((bug.id, named.bug.id));
        }
    }
    accuracy
}

/// The same answer, rounded differently in the last digits of `f32`.
fn in_another_hand(answered: &Answered) -> Answered {
    let mut answered = answered.clone();
    let values = answered.wrong.iter_mut().flat_map(|violation| &mut violation.values);
    for (place, value) in values.enumerate() {
        *value *= 1.0 + ((place % 7) as f64 - 3.0) * crate::laws::U;
    }
    answered
}

/// How `bug` fits `implementation`. `None` if the implementation answers everything right.
fn fit(implementation: &[Answered], bug: &[&Answered]) -> Option<Fit> {
    let pairs = implementation.iter().zip(bug).filter_map(|(theirs, its)| {
        // Of both answers that are right, none tells anything.
        let wrong = theirs.wrong.as_ref().or(its.wrong.as_ref())?;
        Some((theirs.call.unwrap_or(&wrong.call), theirs, its))
    });
    let pairs: Vec<_> = pairs.collect();
    let first = pairs.iter().position(|(_, theirs, _)| theirs.wrong.is_some())?;
    let decides = pairs[first].0;
    // How many questions tell something, and how many of them both answer in the same way.
    let count = |of_deciding: bool| {
        let of = pairs
            .iter()
            .enumerate()
            .filter(|(place, (call, ..))| (*place < first || *call == decides) == of_deciding);
        let same: Vec<bool> = of.map(|(_, (_, theirs, its))| is_same(theirs, its)).collect();
        (same.len() as f64, same.iter().filter(|same| **same).count() as f64)
    };
    let share = |(telling, alike)| if telling == 0.0 { 1.0 } else { alike / telling };
    let (telling, alike) = count(false);
    Some(Fit {
        deciding: share(count(true)),
        others: share((telling, alike)),
        // One answer may be another: squares of large numbers overflow in f32, no matter what else is wrong.
        strange: decides.contains("backward") && alike + 1.0 < ENOUGH * telling,
    })
}

/// Whether two answers are wrong in the same way. A panic is like a refusal: it is no answer either.
fn is_same(a: &Answered, b: &Answered) -> bool {
    let (Some(a), Some(b)) = (&a.wrong, &b.wrong) else {
        return a.wrong.is_none() && b.wrong.is_none();
    };
    a.call == b.call
        && match (&a.fault, &b.fault) {
            (
                Fault::Differs { index, expected, got, .. },
                Fault::Differs { index: of_b, got: its, .. },
            ) => {
                // A small error is another one if it is twice as large, and where large values are due, tiny ones are roundings.
                let error = (got - expected).abs();
                let far = (got - its).abs() > error / 4.0;
                let tolerance = ALIKE * largest(&[&a.values, &b.values, &[*expected]]);
                index == of_b && !far && within(&a.values, &b.values, tolerance)
            }
            (Fault::Accepted { rule }, Fault::Accepted { rule: of_b }) => {
                rule == of_b
                    && close(&a.values, &b.values, ALIKE)
                    && same_counts(&a.values, &b.values)
            }
            (Fault::Length { got, .. }, Fault::Length { got: its, .. }) => got == its,
            (Fault::Broken { what }, Fault::Broken { what: of_b }) => {
                let ((a, words), (b, of_b)) = (numbers(what), numbers(of_b));
                let mut pairs = a.iter().zip(&b);
                words == of_b
                    && a.len() == b.len()
                    && pairs.all(|(a, b)| close(&[*a], &[*b], ALIKE))
                    && same_counts(&a, &b)
            }
            (
                Fault::Refused { .. } | Fault::Panicked { .. },
                Fault::Refused { .. } | Fault::Panicked { .. },
            ) => true,
            _ => false,
        }
}

/// Whether these are equal up to a share of the largest value.
pub(crate) fn close(a: &[f64], b: &[f64], share: f64) -> bool {
    within(a, b, share * largest(&[a, b]))
}

fn within(a: &[f64], b: &[f64], tolerance: f64) -> bool {
    let close = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance;
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| close(a, b))
}

fn largest(of: &[&[f64]]) -> f64 {
    let finite = of.iter().copied().flatten().filter(|x| x.is_finite());
    finite.fold(0.0, |largest, x| largest.max(x.abs()))
}

/// Whether numbers that may be counts, such as the ends of a range, are equal: 65,536 rows are not 65,537. From 2²⁴ on, every
/// `f32` is whole.
fn same_counts(a: &[f64], b: &[f64]) -> bool {
    let counts = |a: f64, b: f64| {
        a.fract() == 0.0 && b.fract() == 0.0 && a.abs().max(b.abs()) < 16_777_216.0
    };
    a.iter().zip(b).all(|(&a, &b)| a == b || !counts(a, b))
}
