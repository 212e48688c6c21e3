//! What is done for each component: its parties have types, and a program has a copy of the grading for each.

use contract::grade::{Grade, Shown, by_invariants, one, shown_party};
use contract::run::Run;
use contract::task::Task;
use contract::violation::Verdict;
use interfaces::party::*;
use std::io;
use wire::{Asker, Ends, Parties, Served, serve};

/// How one component is judged.
pub struct Seat {
    /// The component.
    pub slug: &'static str,
    /// A task that is graded by invariants.
    pub invariants: fn(&Task, &Asker, &Run) -> Grade,
    /// One invariant, by its id: its sentence, and what it says.
    pub keeps: fn(&str, &Asker, &Run) -> (&'static str, Verdict),
    /// Lets a party answer until the other side has said its last words.
    pub serve: fn(Shown, &mut Ends) -> io::Result<Served>,
}

macro_rules! seats {
    ($($slug:ident: $party:ident,)+) => {
        /// A seat for each component of the contract's registry.
        pub static SEATS: &[Seat] = &[$(Seat {
            slug: stringify!($slug),
            invariants: |task, asker, run| by_invariants::<dyn $party>(task, asker, run),
            keeps: |id, asker, run| one::<dyn $party>(id, asker, run),
            serve: |shown, ends| {
                let party = shown_party::<dyn $party>(shown);
                serve(ends, &Parties { $slug: Some(&*party), ..Parties::default() })
            },
        },)+];
    };
}

seats! {
    norm: GroupRmsNorm,
    embedding: VocabEmbedding,
    parallel: ParallelVocabEmbedding,
    rope: NtkAwareRope,
    layernorm: LayerNorm,
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
    use super::SEATS;
    use contract::registry::COMPONENTS;

    #[test]
    fn every_component_has_a_seat() {
        let seats: Vec<&str> = SEATS.iter().map(|seat| seat.slug).collect();
        let components: Vec<&str> = COMPONENTS.iter().map(|component| component.slug).collect();
        assert_eq!(seats, components);
    }
}
