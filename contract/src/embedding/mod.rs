//! VocabEmbedding: what it promises, and who keeps it.
//!
//! - [`party`]: the seam, a trait of plain values.
//! - [`oracle`]: the formula as `f64` loops, in small steps.
//! - [`laws`]: the invariants, with their names, formulas and tolerances.
//! - [`museum`]: wrong implementations, each with one step of the oracle written wrong.
//! - [`variants`]: correct implementations, written differently.
//! - [`probes`]: fixed questions by which the diagnosis knows a bug.
//! - [`tasks`]: the exercises.
//! - [`menu`]: the sizes that are compiled.

pub mod laws;
pub mod menu;
pub mod museum;
pub mod oracle;
pub mod party;
pub mod probes;
pub mod tasks;
pub mod variants;

use crate::component::{Bug, Component, Invariant, Probe, Variant};
use crate::oracle::Oracle;
use crate::task::Spec;
use party::VocabEmbedding;

impl Component for dyn VocabEmbedding {
    const SLUG: &'static str = "embedding";
    const NAME: &'static str = "VocabEmbedding";
    const TITLE: &'static str = "VocabEmbedding";
    const ABOUT: &'static str = "turns token ids into rows of a table";

    fn invariants() -> &'static [Invariant<Self>] {
        laws::INVARIANTS
    }

    fn bugs() -> &'static [Bug<Self>] {
        museum::BUGS
    }

    fn variants() -> &'static [Variant<Self>] {
        variants::VARIANTS
    }

    fn tasks() -> &'static [Spec] {
        tasks::TASKS
    }

    fn oracle() -> Box<Self> {
        oracle::party(Oracle)
    }

    fn probes(party: &Self) -> Vec<Probe> {
        probes::probes(party)
    }
}
