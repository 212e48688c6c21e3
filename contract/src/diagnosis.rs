//! Which known bug a wrong implementation behaves like.
//!
//! The bugs of the museum can be run, so they are asked what the implementation was asked: graded cases and invariants.
//! A bug fits as far as it is wrong where the implementation is wrong, in the same way, and right where the implementation
//! is right.
//!
//! The first call that the implementation answers wrong, in the order of its task's calls, decides, because one mistake in a forward
//! pass may spoil the gradients in several ways. A bug that is wrong in a call before it fits less. The calls after it
//! decide between bugs that fit equally well. If none fits well, or several fit equally well in everything, the diagnosis says
//! that it does not know.

use crate::component::{Bug, Component, Exhibit, Invariant, NET, exhibits};
use crate::grade::is_todo;
use crate::graded_cases::GradedCase;
use crate::run::Run;
use crate::task::Grading;
use crate::violation::{Fault, Step, Violation, answer, numbers};
use rayon::prelude::*;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A known bug that fits.
#[derive(Clone, Copy)]
pub struct Diagnosis {
    /// The bug.
    pub bug: Exhibit,
    /// How well it fits.
    pub fit: Fit,
}

/// How well a bug's answers fit an implementation's. Larger is better, and the first field counts most.
///
/// A forward pass that is wrong spoils the gradients in several ways, so they need not fit. Where the values are right, one
/// gradient says nothing about the others, which must fit as well: a bug that loses those of queries and keys is not the one that
/// loses those of queries alone.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Fit {
    /// Of the call that decides, and those before it: share of the informative questions that both answer in the same way.
    pub deciding: f64,
    /// The same for the other calls.
    pub others: f64,
}

/// How many questions tell something, and how many of them both answer in the same way.
#[derive(Clone, Copy, Default)]
struct Share {
    telling: f64,
    alike: f64,
}

impl Share {
    fn add(&mut self, alike: bool) {
        self.telling += 1.0;
        self.alike += f64::from(u8::from(alike));
    }

    fn of_all(&self) -> f64 {
        if self.telling == 0.0 { 1.0 } else { self.alike / self.telling }
    }
}

/// A bug that answers fewer of the informative questions like the implementation is not named.
const ENOUGH: f64 = 0.9;

/// Wrong answers are the same up to this share of the largest value: a learner's `f32` may round much where a formula is wrong.
const ALIKE: f64 = 1e-4;

/// So many graded cases of a call that an implementation answers wrong tell bugs apart, the first ones, and so many that it answers
/// right.
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

/// The graded cases of these calls, call by call, and these invariants.
fn questions<P: Component + ?Sized>(calls: &[&str], broken: &[&str]) -> Vec<Question<P>> {
    let run = Run { cases: 1, shrink: false, every_size: false, blocks: false, ..Run::default() };
    let place = |graded: &GradedCase<P>| calls.iter().position(|call| *call == graded.call);
    let mut graded = P::graded_cases(&run);
    graded.retain(|graded| !graded.elsewhere && place(graded).is_some());
    graded.sort_by_key(|graded| (place(graded), !graded.typical));
    // The typical case tells most and is the largest, so a plain one rules most bugs out before it.
    for nth in (1..graded.len()).rev() {
        if graded[nth - 1].typical && graded[nth].call == graded[nth - 1].call {
            graded.swap(nth - 1, nth);
        }
    }
    // The nets ask the graded cases once more.
    let laws =
        P::invariants().iter().filter(|law| law.stays != Some(NET) && broken.contains(&law.id));
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
/// `calls` are those of its task, in the order in which one mistake spoils the next: a learner may not have written the others
/// yet. `broken` are the invariants that it breaks.
pub fn diagnose<P: Component + ?Sized>(
    implementation: &P,
    calls: &[&str],
    broken: &[&str],
) -> Option<Diagnosis> {
    closest(fitting(implementation, calls, broken, Answered::clone).into_iter())
}

/// The bugs that fit well enough. The implementation's answers are changed by `said`.
fn fitting<P: Component + ?Sized>(
    implementation: &P,
    calls: &[&str],
    broken: &[&str],
    said: impl Fn(&Answered) -> Answered,
) -> Vec<Diagnosis> {
    let asked = questions::<P>(calls, broken);
    let of: Vec<_> = asked.iter().map(|question| question.call).collect();
    let told = telling(&of, |question| asked[question].ask(implementation));
    let theirs: Vec<Answered> = told.iter().map(|(_, answered)| said(answered)).collect();
    let fitting = |asked: &mut Vec<Question<P>>, (bug, exhibit): (&Bug<P>, Exhibit)| {
        let implementation = (bug.implementation)();
        let fit = fit(&theirs, |nth| asked[told[nth].0].ask(&implementation))?;
        Some(Diagnosis { bug: exhibit, fit })
    };
    let bugs = P::bugs().par_iter().zip(exhibits::<P>());
    bugs.map_init(|| questions::<P>(calls, broken), fitting).flatten().collect()
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

/// The bug that fits best, if it is one.
fn closest(fitting: impl Iterator<Item = Diagnosis>) -> Option<Diagnosis> {
    let mut fitting: Vec<Diagnosis> = fitting.collect();
    fitting.sort_by(|a, b| b.fit.partial_cmp(&a.fit).expect("shares are numbers"));
    let best = fitting.first()?;
    let alike = fitting.iter().filter(|other| other.fit == best.fit).count();
    (alike == 1).then(|| fitting.swap_remove(0))
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

/// Shows every bug of a component to the diagnosis as a report does, in the first task that has the invariant whose name it
/// carries, and in another hand: its answers are those of the bug in `f32` arithmetic, off by up to three roundings.
pub fn accuracy<P: Component + ?Sized>() -> Accuracy {
    let shown = P::bugs().par_iter().zip(exhibits::<P>()).filter_map(|(bug, exhibit)| {
        let asked = P::tasks().iter().find_map(|task| match task.grading {
            Grading::Invariants { ids, calls, .. } => {
                ids.contains(&bug.named_by).then_some((ids, calls))
            }
            _ => None,
        });
        let (ids, calls) = asked?;
        let implementation = (bug.implementation)();
        let run = Run { shrink: false, ..Run::default() };
        let breaks = |law: &&Invariant<P>| {
            ids.contains(&law.id) && law.judge(&implementation, &run).is_err()
        };
        let broken: Vec<&str> = P::invariants().iter().filter(breaks).map(|law| law.id).collect();
        let fitting = fitting::<P>(&implementation, calls, &broken, in_another_hand);
        let others = fitting.iter().copied().filter(|other| other.bug.id != exhibit.id);
        let [named, stranger] = [closest(fitting.iter().copied()), closest(others)];
        let id = |named: Diagnosis| named.bug.id;
        Some((exhibit.id, named.map(id), stranger.map(id)))
    });
    let mut accuracy = Accuracy::default();
    for (bug, named, stranger) in shown.collect::<Vec<_>>() {
        accuracy.shown += 1;
        match named {
            Some(name) if name == bug => accuracy.right += 1,
            Some(name) => accuracy.wrong.push((bug, name)),
            None => accuracy.unknown.push(bug),
        }
        accuracy.strangers_named.extend(stranger.map(|name| (bug, name)));
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

/// How a bug fits the implementation with these answers. `None` if it does not fit well enough, or the implementation answers
/// everything right. The bug is asked no more than it takes to know that it is another one, because a learner waits.
fn fit(theirs: &[Answered], mut ask: impl FnMut(usize) -> Answered) -> Option<Fit> {
    let call = |answered: &Answered| match &answered.wrong {
        Some(wrong) => answered.call.unwrap_or(&wrong.call).to_string(),
        None => answered.call.unwrap_or_default().to_string(),
    };
    let calls: Vec<String> = theirs.iter().map(call).collect();
    let first = theirs.iter().position(|answered| answered.wrong.is_some())?;
    let decides = |nth: usize| nth < first || calls[nth] == calls[first];
    let is_due = |nth: &usize| decides(*nth) && theirs[*nth].wrong.is_some();
    let due = (0..theirs.len()).filter(is_due).count();
    let [mut deciding, mut others] = [Share::default(); 2];
    deciding.telling = due as f64;
    deciding.alike = due as f64;
    for (nth, theirs) in theirs.iter().enumerate() {
        let its = ask(nth);
        match (decides(nth), &theirs.wrong, &its.wrong) {
            // Of both answers that are right, none tells anything.
            (_, None, None) => {}
            (true, Some(_), _) if is_same(theirs, &its) => {}
            (true, Some(_), _) => deciding.alike -= 1.0,
            (true, None, Some(_)) => deciding.telling += 1.0,
            (false, ..) => others.add(is_same(theirs, &its)),
        }
        if deciding.of_all() < ENOUGH {
            return None;
        }
    }
    // One answer may be another: squares of large numbers overflow in f32, no matter what else is wrong.
    let fits_elsewhere = others.alike + 1.0 >= ENOUGH * others.telling;
    (fits_elsewhere || !calls[first].contains("backward"))
        .then(|| Fit { deciding: deciding.of_all(), others: others.of_all() })
}

/// Whether two answers are wrong in the same way.
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
                let (what, of_b) = (without_quotes(what), without_quotes(of_b));
                let ((a, words), (b, of_b)) = (numbers(&what), numbers(&of_b));
                let mut pairs = a.iter().zip(&b);
                words == of_b
                    && a.len() == b.len()
                    && pairs.all(|(a, b)| close(&[*a], &[*b], ALIKE))
                    && same_counts(&a, &b)
            }
            (Fault::Refused { .. }, Fault::Refused { .. }) => true,
            (Fault::Panicked { .. }, Fault::Panicked { .. }) => true,
            _ => false,
        }
}

/// Without what an implementation says: each says it in its own words.
fn without_quotes(what: &str) -> String {
    what.split('"').step_by(2).collect()
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
