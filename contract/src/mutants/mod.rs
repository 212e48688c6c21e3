//! Mutants: parties that are right, and do what a known bug does under one condition only. In the last row, from
//! the 65th token on, for an input with a tape, in the second call.
//!
//! The museum's bugs are wrong always, or were chosen by hand. These are not chosen: every bug meets every
//! condition. A mutant that no invariant refuses shows a place where nothing is asked. Some mutants are wrong
//! nowhere (a bug of the gradient, under a condition on values): they are told apart by asking them and the
//! oracle many random questions, which no invariant knows.

pub mod asked;
pub mod mixer;
mod table;

pub use table::{Table, table};

use crate::component::{Component, NET, Probe};
use crate::diagnosis;
use crate::ladder::Draw;
use crate::run::Run;
use mixer::{Condition, Mixer};
use rayon::prelude::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One mutant: a bug of the museum, by its place there, under a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mutant {
    /// The bug's place.
    pub bug: usize,
    /// When it acts.
    pub when: Condition,
}

/// What became of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// An invariant refuses it.
    Caught,
    /// No invariant does, and none of [`QUESTIONS`] random questions tells it from the oracle.
    Alike,
    /// No invariant does, and it is wrong.
    Survived,
}

/// Mutants that are wrong, and that no invariant may refuse: bug, condition, and why.
const ALLOWED: [(&str, &str, &str); 1] =
    [("rope/short-pi", "d: last", "no further off than angles in f32, which are allowed")];

/// Random questions before a mutant is taken for a right party.
pub const QUESTIONS: usize = 200;

/// Makes and judges each `step`-th mutant of a component, on all cores. `told` hears how many are done, and of
/// how many.
pub fn fates<P: Component + ?Sized>(step: usize, told: Told<'_>) -> Vec<(Mutant, Fate)> {
    let conditions = mixer::conditions(P::axes());
    let of_bug = |bug| conditions.iter().map(move |&when| Mutant { bug, when });
    let all: Vec<Mutant> = (0..P::bugs().len()).flat_map(of_bug).step_by(step).collect();
    let met = met::<P>(&conditions);
    let right: Vec<_> = (0..QUESTIONS).map(|question| roam(&*P::oracle(), question)).collect();
    let done = AtomicUsize::new(0);
    let judge = |&mutant: &Mutant| {
        let fate = fate::<P>(mutant, &met[&mutant.when], &right);
        told(done.fetch_add(1, Ordering::Relaxed) + 1, all.len());
        (mutant, fate)
    };
    all.par_iter().map(judge).collect()
}

/// Hears how many of how many are done.
pub type Told<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// The answers of a party to a random question.
fn roam<P: Component + ?Sized>(party: &P, question: usize) -> Vec<Probe> {
    P::roam(party, Draw::new(&Run::default(), 0x6A09_E667 + question as u64))
}

/// What the invariants are asked.
fn run() -> Run {
    Run { shrink: false, ..Run::default() }
}

/// Of each condition, the invariants that meet it in some call. To all others a mutant under this condition answers as
/// the oracle does, call by call: nothing is drawn anew, so what it is asked depends on its answers alone.
fn met<P: Component + ?Sized>(conditions: &[Condition]) -> HashMap<Condition, Vec<usize>> {
    let mut met: HashMap<_, Vec<usize>> = conditions.iter().map(|&when| (when, vec![])).collect();
    for (nth, law) in P::invariants().iter().enumerate() {
        let marks = Rc::new(RefCell::new(conditions.iter().map(|&when| (when, false)).collect()));
        let right = law.judge(&*P::mixed(P::oracle(), Mixer::marking(&marks)), &run());
        assert!(right.is_ok(), "{}: the oracle breaks {}", P::SLUG, law.id);
        for &(when, _) in marks.borrow().iter().filter(|(_, met)| *met) {
            met.entry(when).or_default().push(nth);
        }
    }
    met
}

fn fate<P: Component + ?Sized>(mutant: Mutant, met: &[usize], right: &[Vec<Probe>]) -> Fate {
    // Each question meets it new: a mutant may count its calls.
    let party = || P::mixed((P::bugs()[mutant.bug].party)(), Mixer::new(mutant.when));
    let run = run();
    // The nets first: they catch most.
    let (nets, others): (Vec<_>, Vec<_>) =
        met.iter().map(|&nth| &P::invariants()[nth]).partition(|law| law.stays == Some(NET));
    if nets.iter().chain(&others).any(|law| law.judge(&party(), &run).is_err()) {
        return Fate::Caught;
    }
    let (id, words) = (P::bugs()[mutant.bug].id, mutant.when.words());
    if ALLOWED.iter().any(|(bug, when, _)| *bug == id && *when == words) {
        return Fate::Alike;
    }
    let differs = |(question, right): (usize, &Vec<Probe>)| {
        let answers = roam(&*party(), question);
        answers.iter().zip(right).any(|(answer, right)| !diagnosis::same(answer, right))
    };
    if right.iter().enumerate().any(differs) { Fate::Survived } else { Fate::Alike }
}
