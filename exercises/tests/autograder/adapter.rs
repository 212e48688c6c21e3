//! What the autograder does with a component: it judges in the learner's own process.

use adapters::Learner;
use contract::grade::{Grade, Undiagnosed, by_invariants_in_steps, one};
use contract::property::{Shown, refusal_of};
use contract::run::Run;
use contract::task::Task;
use contract::violation::Verdict;
use interfaces::interface::*;

/// How the tasks of one component are graded.
pub struct Adapter {
    /// The component.
    pub slug: &'static str,
    /// A task that is graded by invariants. The last argument is given the grade before the bug is looked for.
    pub invariants: fn(&Task, &Learner, &Run, &Undiagnosed<'_>) -> Grade,
    /// One invariant, by its id: its sentence, and what it says.
    pub keeps: fn(&str, &Learner, &Run) -> (&'static str, Verdict),
    /// What the learner's own invariant says of an implementation, if the component has a task about it.
    pub property: fn(Shown) -> Option<Option<String>>,
}

macro_rules! adapters {
    ($($slug:ident: $interface:ident, $property:expr;)+) => {
        /// An adapter for each component.
        pub static ADAPTERS: &[Adapter] = &[$(Adapter {
            slug: stringify!($slug),
            invariants: |task, learner, run, undiagnosed| {
                by_invariants_in_steps::<dyn $interface>(task, learner, run, undiagnosed)
            },
            keeps: |id, learner, run| one::<dyn $interface>(id, learner, run),
            property: |shown| {
                let property: Option<fn(&dyn $interface) -> Result<(), String>> = $property;
                let property = property?;
                Some(refusal_of::<dyn $interface>(shown, &|shown| property(shown)))
            },
        },)+];
    };
}
adapters::components!(adapters);
