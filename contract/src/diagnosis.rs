//! Which known bug a wrong implementation behaves like.
//!
//! The bugs of the museum can be run, so the diagnosis asks the party and every bug the same
//! fixed questions and compares their wrong answers. A bug fits as far as it is wrong where the
//! party is wrong, in the same way, and right where the party is right. If none fits well, or
//! several fit alike, the diagnosis says that it does not know.

use crate::component::{Bug, Component, Probe};

/// A known bug that fits.
pub struct Diagnosis<P: ?Sized + 'static> {
    /// The bug.
    pub bug: &'static Bug<P>,
    /// Share of the telling questions that it answers like the party, up to 1.
    pub fit: f64,
}

/// A bug that answers fewer of the telling questions like the party is not named.
const ENOUGH: f64 = 0.8;

/// The bug that `party` behaves like, if one is known.
///
/// `calls` limits the questions to some calls of the seam, such as `forward`: a learner may not
/// have written the others yet. Empty means all.
pub fn diagnose<P: Component + ?Sized>(party: &P, calls: &[&str]) -> Option<Diagnosis<P>> {
    closest(&P::probes(party), &P::probes(&P::oracle()), calls, &museum::<P>())
}

/// A bug and its answers to [`Component::probes`].
type Known<P> = (&'static Bug<P>, Vec<Probe>);

fn museum<P: Component + ?Sized>() -> Vec<Known<P>> {
    P::bugs().iter().map(|bug| (bug, P::probes(&(bug.party)()))).collect()
}

/// [`diagnose`] from the answers, among some of the bugs.
fn closest<'a, P: Component + ?Sized>(
    answers: &[Probe],
    truth: &[Probe],
    calls: &[&str],
    museum: impl IntoIterator<Item = &'a Known<P>>,
) -> Option<Diagnosis<P>> {
    let fits = museum.into_iter().filter_map(|(bug, wrong)| {
        fit(answers, truth, wrong, calls).map(|fit| Diagnosis { bug: *bug, fit })
    });
    let mut fits: Vec<Diagnosis<P>> = fits.collect();
    fits.sort_by(|a, b| b.fit.total_cmp(&a.fit));
    let best = fits.first()?;
    let alike = fits.iter().filter(|other| other.fit == best.fit).count();
    (best.fit >= ENOUGH && alike == 1).then(|| fits.swap_remove(0))
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
    let mut accuracy = Accuracy::default();
    let (truth, museum) = (P::probes(&P::oracle()), museum::<P>());
    for (bug, answers) in &museum {
        let answers = in_another_hand(answers.clone());
        accuracy.shown += 1;
        match closest(&answers, &truth, &[], &museum) {
            Some(named) if named.bug.id == bug.id => accuracy.right += 1,
            Some(named) => accuracy.wrong.push((bug.id, named.bug.id)),
            None => accuracy.unknown.push(bug.id),
        }
        let others = museum.iter().filter(|(other, _)| other.id != bug.id);
        if let Some(named) = closest(&answers, &truth, &[], others) {
            accuracy.strangers_named.push((bug.id, named.bug.id));
        }
    }
    accuracy
}

/// The same answers, rounded differently in the last digits of `f32`.
fn in_another_hand(mut probes: Vec<Probe>) -> Vec<Probe> {
    let mut turn = 0u32;
    for probe in &mut probes {
        if let Some(Ok(values)) = &mut probe.answer {
            for value in values {
                turn = (turn + 1) % 7;
                *value *= 1.0 + (f64::from(turn) - 3.0) * crate::laws::U;
            }
        }
    }
    probes
}

/// The share of telling questions that `bug` answers like `party`: those which at least one of
/// the two answers wrong. `None` if there is none.
fn fit(party: &[Probe], truth: &[Probe], bug: &[Probe], calls: &[&str]) -> Option<f64> {
    let mut telling = 0.0;
    let mut alike = 0.0;
    for ((party, truth), bug) in party.iter().zip(truth).zip(bug) {
        let asked = calls.is_empty() || calls.contains(&party.call);
        if !asked || (same(party, truth) && same(bug, truth)) {
            continue;
        }
        telling += 1.0;
        if same(party, bug) {
            alike += 1.0;
        }
    }
    (telling > 0.0).then(|| alike / telling)
}

/// Equal but for the last digits of `f32`, relative to the largest value of the answer.
fn same(a: &Probe, b: &Probe) -> bool {
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
        (Some(Err(_)), Some(Err(_))) | (None, None) => true,
        _ => false,
    }
}
