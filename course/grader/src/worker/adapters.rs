//! What is done for each component: its implementations have types, and a program has a copy of the grading for each.

use contract::grade::{Grade, Undiagnosed, by_invariants_in_steps, one};
use contract::property::{Shown, shown_implementation};
use contract::run::Run;
use contract::task::Task;
use contract::violation::Verdict;
use interfaces::interface::*;
use protocol::{Asker, Ends, Implementations, Served, serve};
use std::io;

/// How one component is judged.
pub struct Adapter {
    /// The component.
    pub slug: &'static str,
    /// A task that is graded by invariants. The last argument is given the grade before the bug is looked for.
    pub invariants: fn(&Task, &Asker, &Run, &Undiagnosed<'_>) -> Grade,
    /// One invariant, by its id: its sentence, and what it says.
    pub keeps: fn(&str, &Asker, &Run) -> (&'static str, Verdict),
    /// Lets an implementation answer until the other side has said its last words.
    pub serve: fn(Shown, &mut Ends) -> io::Result<Served>,
}

macro_rules! adapters {
    ($($slug:ident: $interface:ident,)+) => {
        /// An adapter for each component of the contract's registry.
        pub static ADAPTERS: &[Adapter] = &[$(Adapter {
            slug: stringify!($slug),
            invariants: |task, asker, run, undiagnosed| {
                by_invariants_in_steps::<dyn $interface>(task, asker, run, undiagnosed)
            },
            keeps: |id, asker, run| one::<dyn $interface>(id, asker, run),
            serve: |shown, ends| {
                let implementation = shown_implementation::<dyn $interface>(shown);
                serve(ends, &Implementations { $slug: Some(&*implementation), ..Implementations::default() })
            },
        },)+];
    };
}

adapters! {
    embedding: VocabEmbedding,
    norm: GroupRmsNorm,
    layernorm: LayerNorm,
    parallel: ParallelVocabEmbedding,
    rope: NtkAwareRope,
    attention: GroupedQueryAttention,
    feedforward: SwiGlu,
    loss: CrossEntropy,
    model: Llama,
    absolute: AbsolutePositions,
    biases: ScoreBiases,
    frequencies: StretchedRope,
    rotations: Rotations,
    collectives: Collectives,
}

#[cfg(test)]
mod tests {
    use super::ADAPTERS;
    use contract::registry::COMPONENTS;

    #[test]
    fn every_component_has_a_adapter() {
        let adapters: Vec<&str> = ADAPTERS.iter().map(|adapter| adapter.slug).collect();
        let components: Vec<&str> = COMPONENTS.iter().map(|component| component.slug).collect();
        assert_eq!(adapters, components);
    }
}
