//! What the course knows about each component: invariants, bugs, correct variants.

use crate::category::Category;
use crate::graded_cases::{Draw, GradedCase};
use crate::mutants::Said;
use crate::mutants::mixer::{Axes, Mixer};
use crate::repair::Repair;
use crate::run::Run;
use crate::task::Spec;
use crate::violation::{Verdict, Violation};
pub(crate) use contract_macros::{bug, law};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// One thing that a component promises.
pub struct Invariant<P: ?Sized> {
    /// Stable name, such as `norm/eps-inside-root`.
    pub id: &'static str,
    /// The promise in one sentence.
    pub sentence: &'static str,
    /// The promise as a formula, in Unicode.
    pub formula: &'static str,
    /// Where to read about it: a chapter of the book and a section in it.
    pub chapter: &'static str,
    /// What a mistake that breaks it is about.
    pub category: Category,
    /// Points.
    pub weight: u32,
    /// Why it stays although every bug that it catches is caught by another as well. `None` if
    /// some bug is caught by it alone.
    pub stays: Option<&'static str>,
    /// The check.
    pub check: fn(&P, &Run) -> Verdict,
}

/// The list of a component's laws, from the names of their checks.
macro_rules! laws {
    ($($law:ty),+ $(,)?) => {
        /// All of them, the most informative first.
        pub static INVARIANTS: &[$crate::component::Invariant<super::Interface>] = &[$(<$law>::LAW),+];
    };
}
pub(crate) use laws;

/// The list of a component's known bugs, from their names.
macro_rules! bugs {
    ($($bug:ty),+ $(,)?) => {
        /// All of them, in the order of the matrix.
        pub static BUGS: &[$crate::component::Bug<super::Interface>] = &[$(<$bug>::BUG),+];
    };
}
pub(crate) use bugs;

impl<P: ?Sized> Invariant<P> {
    /// Runs the check. A panic in it is a violation too: some answer was stranger than it expected.
    pub fn judge(&self, implementation: &P, run: &Run) -> Verdict {
        catch_unwind(AssertUnwindSafe(|| (self.check)(implementation, run))).unwrap_or_else(
            |payload| {
                let message = crate::panics::message(&*payload);
                Err(Violation::new("check", crate::violation::Fault::Panicked { message }))
            },
        )
    }
}

/// Why an invariant stays that asks all graded cases of a call. It catches what the others catch, so that they are
/// measured without it.
pub const NET: &str = "The net below the witnesses: it catches what nobody thought of.";

/// A wrong implementation that compiles, has the right shapes and looks fine.
pub struct Bug<P: ?Sized> {
    /// Stable name, such as `norm/eps-outside-root`.
    pub id: &'static str,
    /// What the code does wrong, as the report says it: "The code ...".
    pub misconception: &'static str,
    /// How it comes about, and why it is not seen.
    pub story: &'static str,
    /// Where it happened in a real project.
    pub source: Option<&'static str>,
    /// The invariant by whose name it is known.
    pub named_by: &'static str,
    /// The wrong implementation.
    pub implementation: fn() -> Box<P>,
}

/// A right implementation that is written differently. No invariant may refuse it.
pub struct Variant<P: ?Sized> {
    /// Stable name, such as `norm/reciprocal-root`.
    pub id: &'static str,
    /// How it is written.
    pub about: &'static str,
    /// The implementation.
    pub implementation: fn() -> Box<P>,
}

/// An invariant without its check.
#[derive(Debug, Clone, Copy)]
pub struct Promise {
    /// Its name.
    pub id: &'static str,
    /// In one sentence.
    pub sentence: &'static str,
    /// As a formula.
    pub formula: &'static str,
    /// The chapter and section that explain it, such as `norm#eps`.
    pub chapter: &'static str,
    /// What a mistake that breaks it is about.
    pub category: Category,
    /// Points.
    pub weight: u32,
    /// Why it stays although others catch its bugs too.
    pub stays: Option<&'static str>,
}

/// A bug without its code.
#[derive(Debug, Clone, Copy)]
pub struct Exhibit {
    /// Its name.
    pub id: &'static str,
    /// "The code ...".
    pub misconception: &'static str,
    /// How it comes about.
    pub story: &'static str,
    /// Where it happened.
    pub source: Option<&'static str>,
    /// The invariant that names it.
    pub named_by: &'static str,
}

/// What a component promises.
pub(crate) fn promises<P: Component + ?Sized>() -> Vec<Promise> {
    let promise = |law: &Invariant<P>| {
        let Invariant { id, sentence, formula, chapter, category, weight, stays, .. } = *law;
        Promise { id, sentence, formula, chapter, category, weight, stays }
    };
    P::invariants().iter().map(promise).collect()
}

/// The known bugs of a component.
pub(crate) fn exhibits<P: Component + ?Sized>() -> Vec<Exhibit> {
    let exhibit = |bug: &Bug<P>| {
        let Bug { id, misconception, story, source, named_by, .. } = *bug;
        Exhibit { id, misconception, story, source, named_by }
    };
    P::bugs().iter().map(exhibit).collect()
}

/// A component of the course. Implemented by the trait object of its interface.
pub trait Component: 'static {
    /// What it is called everywhere: its folders, its page in the book, and the first part of all ids.
    const SLUG: &'static str;

    /// Its short name, as the board and the reports have it.
    const NAME: &'static str;

    /// Its whole name.
    const TITLE: &'static str;

    /// What it promises, the most informative first.
    fn invariants() -> &'static [Invariant<Self>];

    /// The known bugs.
    fn bugs() -> &'static [Bug<Self>];

    /// The correct variants.
    fn variants() -> &'static [Variant<Self>];

    /// The exercises, in the order in which they are meant to be done.
    fn tasks() -> &'static [Spec];

    /// The oracle, as an implementation.
    fn oracle() -> Box<Self>;

    /// Questions from the plainest on.
    fn graded_cases(run: &Run) -> Vec<GradedCase<Self>>;

    /// What the conditions of its mutants are about.
    fn axes() -> &'static Axes;

    /// The oracle, which does what `wrong` does when the mixer chooses that.
    fn mixed(wrong: Box<Self>, mixer: Mixer) -> Box<Self>;

    /// Answers to random questions, which no invariant knows.
    fn fuzz(implementation: &Self, draw: Draw) -> Vec<Said>;

    /// Steps whose replacement may explain wrong answers, in the order in which they are tried.
    fn repairs() -> &'static [Repair<Self>];
}

/// Implements [`Component`] for an implementation, from what differs between components. What does not differ is where
/// its parts are: in the files of its folder.
macro_rules! component {
    ($interface:ident { slug: $slug:literal, name: $name:literal, title: $title:literal }) => {
        /// What an implementation of this component is.
        pub type Interface = dyn interface::$interface;

        impl $crate::component::Component for Interface {
            const SLUG: &'static str = $slug;
            const NAME: &'static str = $name;
            const TITLE: &'static str = $title;

            fn invariants() -> &'static [$crate::component::Invariant<Self>] {
                laws::INVARIANTS
            }

            fn bugs() -> &'static [$crate::component::Bug<Self>] {
                museum::BUGS
            }

            fn variants() -> &'static [$crate::component::Variant<Self>] {
                variants::VARIANTS
            }

            fn tasks() -> &'static [$crate::task::Spec] {
                tasks::TASKS
            }

            fn oracle() -> Box<Self> {
                oracle::implementation($crate::oracle::Oracle)
            }

            fn graded_cases(run: &$crate::run::Run) -> Vec<$crate::graded_cases::GradedCase<Self>> {
                graded_cases::graded_cases(run)
            }

            fn axes() -> &'static $crate::mutants::mixer::Axes {
                &mutants::AXES
            }

            fn mixed(wrong: Box<Self>, mixer: $crate::mutants::mixer::Mixer) -> Box<Self> {
                Box::new($crate::mutants::mixer::Mixed { right: Self::oracle(), wrong, mixer })
            }

            fn fuzz(
                implementation: &Self,
                draw: $crate::graded_cases::Draw,
            ) -> Vec<$crate::mutants::Said> {
                mutants::fuzz(implementation, draw)
            }

            fn repairs() -> &'static [$crate::repair::Repair<Self>] {
                repairs::REPAIRS
            }
        }
    };
}
pub(crate) use component;
