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
    diagnose_among(party, calls, P::bugs())
}

/// [`diagnose`] with some of the bugs only.
pub fn diagnose_among<P: Component + ?Sized>(
    party: &P,
    calls: &[&str],
    bugs: impl IntoIterator<Item = &'static Bug<P>>,
) -> Option<Diagnosis<P>> {
    let answers = P::probes(party);
    let truth = P::probes(&P::oracle());
    let mut fits: Vec<Diagnosis<P>> = bugs
        .into_iter()
        .filter_map(|bug| {
            let wrong = P::probes(&(bug.party)());
            fit(&answers, &truth, &wrong, calls).map(|fit| Diagnosis { bug, fit })
        })
        .collect();
    fits.sort_by(|a, b| b.fit.total_cmp(&a.fit));
    let best = fits.first()?;
    let alike = fits.iter().filter(|other| other.fit == best.fit).count();
    (best.fit >= ENOUGH && alike == 1).then(|| fits.swap_remove(0))
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
