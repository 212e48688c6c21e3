//! What the autograder does with a component: it judges in the learner's own process.

use adapters::Learner;
use contract::grade::{Grade, by_invariants, one};
use contract::property::{Shown, refusal_of};
use contract::run::Run;
use contract::task::Task;
use contract::violation::Verdict;
use interfaces::interface::*;

/// How the tasks of one component are graded.
pub struct Adapter {
    /// The component.
    pub slug: &'static str,
    /// A task that is graded by invariants.
    pub invariants: fn(&Task, &Learner, &Run) -> Grade,
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
            invariants: |task, learner, run| by_invariants::<dyn $interface>(task, learner, run),
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
