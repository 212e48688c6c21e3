//! Mutants: implementations that are right, and do what a known bug does under one condition only. In the last row, from
//! the 65th token on, for an input with a tape, in the second call.
//!
//! The museum's bugs are wrong always, or were chosen by hand. These are not chosen: every bug meets every
//! condition. A mutant that no invariant refuses shows a place where nothing is asked. Some mutants are wrong
//! nowhere (a bug of the gradient, under a condition on values): they are distinguished by asking them and the
//! oracle many random questions, which no invariant knows.

pub mod asked;
pub mod mixer;
mod table;
pub mod way;

pub use table::{Table, table};

use crate::component::{Component, Invariant};
use crate::diagnosis::close;
use crate::graded_cases::{Draw, GradedCase};
use crate::interface::Reply;
use crate::run::Run;
use mixer::{Condition, Mixer};
use rayon::prelude::*;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
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
    /// No invariant does, and none of [`QUESTIONS`] random questions distinguishes it from the oracle.
    Alike,
    /// No invariant does, and it is wrong.
    Survived,
}

/// Mutants that are wrong, and that no invariant may refuse: bug, condition, and why.
const ALLOWED: [(&str, &str, &str); 1] =
    [("rope/short-pi", "d: last", "no further off than angles in f32, which are allowed")];

/// Random questions before a mutant is taken for a right implementation.
pub const QUESTIONS: usize = 200;

/// Makes and judges each `step`-th mutant of a component, on all cores. `told` hears how many are done, and of
/// how many.
pub fn fates<P: Component + ?Sized>(step: usize, told: Told<'_>) -> Vec<(Mutant, Fate)> {
    let judges = Judges::<P>::new(step > 1);
    let of_bug = |bug| judges.conditions.iter().map(move |&when| Mutant { bug, when });
    let all: Vec<Mutant> = (0..P::bugs().len()).flat_map(of_bug).step_by(step).collect();
    let done = AtomicUsize::new(0);
    let judge = |&mutant: &Mutant| {
        let fate = judges.fate(mutant);
        told(done.fetch_add(1, Ordering::Relaxed) + 1, all.len());
        (mutant, fate)
    };
    all.par_iter().map(judge).collect()
}

/// Hears how many of how many are done.
pub type Told<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// What comes back to a random question: numbers, or none of a refusal or a panic.
pub type Said = Option<Vec<f64>>;

/// Asks, and keeps every answer.
pub fn answered(ask: impl FnOnce() -> Reply<Vec<f64>>) -> Said {
    catch_unwind(AssertUnwindSafe(ask)).ok()?.ok()
}

fn is_same(a: &Said, b: &Said) -> bool {
    match (a, b) {
        // The last digits of `f32` may differ.
        (Some(a), Some(b)) => close(a, b, 2e-6),
        _ => a.is_none() && b.is_none(),
    }
}

/// The answers of an implementation to a random question.
fn fuzz<P: Component + ?Sized>(implementation: &P, question: usize) -> Vec<Said> {
    P::fuzz(implementation, Draw::new(&Run::default(), 0x6A09_E667 + question as u64))
}

/// What the invariants ask.
fn run() -> Run {
    Run { shrink: false, ..Run::default() }
}

/// Of each condition, the places of the questions that meet it in some call.
type Met = HashMap<Condition, Vec<usize>>;

/// Asks an implementation something, and says whether its answers are right.
type Question<P> = Box<dyn Fn(&P) -> bool>;

/// What is known of a component's questions before its mutants are judged. It changes no verdict, and saves most of the
/// time.
struct Judges<P: ?Sized> {
    conditions: Vec<Condition>,
    /// Of the invariants. To all others a mutant under the condition answers as the oracle does, call by call: what is
    /// asked next depends on its answers alone.
    laws: Met,
    near: Option<Near>,
    /// The oracle's answers to the random questions.
    right: Vec<Vec<Said>>,
    of: PhantomData<fn(&P)>,
}

/// Where a mutant is probably wrong: at a graded case where its bug is wrong and that meets its condition. A sample is judged
/// without it: to know it costs as much as a mutant of each bug.
struct Near {
    /// Of the graded cases that invariants ask.
    graded: Met,
    /// Of each bug, the graded cases at which it is wrong.
    wrong_at: Vec<HashSet<usize>>,
}

impl<P: Component + ?Sized> Judges<P> {
    fn new(is_sample: bool) -> Self {
        let conditions = mixer::conditions(P::axes());
        let law = |law: &'static Invariant<P>| -> Question<P> {
            Box::new(|implementation| law.judge(implementation, &run()).is_ok())
        };
        let laws: Vec<_> = P::invariants().iter().map(law).collect();
        Self {
            laws: met(&conditions, &laws),
            near: (!is_sample).then(|| Near {
                graded: met(&conditions, &graded::<P>()),
                wrong_at: P::bugs()
                    .par_iter()
                    .map(|bug| wrong_at(&*(bug.implementation)()))
                    .collect(),
            }),
            right: (0..QUESTIONS).map(|question| fuzz(&*P::oracle(), question)).collect(),
            conditions,
            of: PhantomData,
        }
    }

    fn fate(&self, mutant: Mutant) -> Fate {
        // Each question meets it new: a mutant may count its calls.
        let implementation =
            || P::mixed((P::bugs()[mutant.bug].implementation)(), Mixer::new(mutant.when));
        let is_near = |near: &Near| {
            let graded = graded::<P>();
            let mut met = near.graded[&mutant.when].iter();
            met.any(|nth| {
                near.wrong_at[mutant.bug].contains(nth) && !graded[*nth](&*implementation())
            })
        };
        let mut laws = self.laws[&mutant.when].iter().map(|&nth| &P::invariants()[nth]);
        if self.near.as_ref().is_some_and(is_near)
            || laws.any(|law| law.judge(&*implementation(), &run()).is_err())
        {
            return Fate::Caught;
        }
        let (id, words) = (P::bugs()[mutant.bug].id, mutant.when.words());
        if ALLOWED.iter().any(|(bug, when, _)| *bug == id && *when == words) {
            return Fate::Alike;
        }
        let differs = |(question, right): (usize, &Vec<Said>)| {
            let answers = fuzz(&*implementation(), question);
            answers.iter().zip(right).any(|(answer, right)| !is_same(answer, right))
        };
        if self.right.iter().enumerate().any(differs) { Fate::Survived } else { Fate::Alike }
    }
}

/// Which questions meet each condition. The oracle is asked.
fn met<P: Component + ?Sized>(conditions: &[Condition], questions: &[Question<P>]) -> Met {
    let mut met: Met = conditions.iter().map(|&when| (when, vec![])).collect();
    for (nth, question) in questions.iter().enumerate() {
        let marks = Rc::new(RefCell::new(conditions.iter().map(|&when| (when, false)).collect()));
        let right = question(&*P::mixed(P::oracle(), Mixer::marking(&marks)));
        assert!(right, "{}: the oracle breaks the contract", P::SLUG);
        for &(when, _) in marks.borrow().iter().filter(|(_, met)| *met) {
            met.entry(when).or_default().push(nth);
        }
    }
    met
}

/// The graded cases that invariants ask. A panic is a wrong answer, as it is for an invariant.
fn graded<P: Component + ?Sized>() -> Vec<Question<P>> {
    let asked =
        P::graded_cases(&run()).into_iter().filter(|graded| !graded.typical && !graded.elsewhere);
    let question = |graded: GradedCase<P>| -> Question<P> {
        Box::new(move |implementation| {
            catch_unwind(AssertUnwindSafe(|| (graded.judge)(implementation).is_ok()))
                .unwrap_or(false)
        })
    };
    asked.map(question).collect()
}

fn wrong_at<P: Component + ?Sized>(implementation: &P) -> HashSet<usize> {
    let graded = graded::<P>().into_iter().enumerate();
    graded.filter(|(_, is_right)| !is_right(implementation)).map(|(nth, _)| nth).collect()
}
