//! What the autograder does with a component: it judges in the learner's own process.

use crate::adapters::Learner;
use contract::grade::Grade;
use contract::property::Shown;
use contract::run::Run;
use contract::task::Task;
use contract::violation::Verdict;

/// How the tasks of one component are graded.
pub struct Adapter {
    /// The component.
    pub slug: &'static str,
    /// A task that is graded by invariants.
    pub invariants: fn(&Task, &Learner, &Run) -> Grade,
    /// One invariant, by its id: its sentence, and what it says.
    pub keeps: fn(&str, &Learner, &Run) -> (&'static str, Verdict),
    /// What the learner's own invariant says of an implementation, if the component has a task about it.
    pub property: Option<fn(Shown) -> Option<String>>,
}

/// The adapter of a component: its implementation, and the learner's own invariant of it.
macro_rules! adapter {
    ($slug:literal, dyn $interface:ident, None) => {
        adapter!(@ $slug, $interface, None)
    };
    ($slug:literal, dyn $interface:ident, Some($property:expr)) => {
        adapter!(@ $slug, $interface, Some(|shown| contract::property::refusal_of::<dyn $interface>(shown, &$property)))
    };
    (@ $slug:literal, $interface:ident, $property:expr) => {
        $crate::adapter::Adapter {
            slug: $slug,
            invariants: |task, learner, run| {
                contract::grade::by_invariants::<dyn $interface>(task, learner, run)
            },
            keeps: |id, learner, run| contract::grade::one::<dyn $interface>(id, learner, run),
            property: $property,
        }
    };
}
pub(crate) use adapter;
