//! Wrong answers as questions: these are the numbers, so which mistake was made?

use crate::component::{Bug, Component, Exhibit, exhibits};
use crate::run::Run;
use crate::violation::{Fault, Violation};
use std::hash::{DefaultHasher, Hash, Hasher};

/// How many characters a question's numbers may take: it is answered on paper.
const LONGEST: usize = 420;
/// Wrong mistakes beside the right one.
const OTHERS: usize = 3;

/// A bug's wrong answer, with mistakes to choose from.
#[derive(Debug)]
pub struct Riddle {
    /// The mistake that was made.
    pub bug: Exhibit,
    /// A section of the book that explains it.
    pub chapter: &'static str,
    /// A question that the bug answers wrong, and its answer.
    pub violation: Violation,
    /// Mistakes that were not made: code with one of them answers this question in another way.
    pub others: Vec<Exhibit>,
}

/// At most `count` riddles that a component's museum gives. Which, and with which numbers, depends on the seed.
///
/// A mistake is offered beside another only where it is known to answer otherwise: it keeps the invariant, which asks the
/// same inputs of both, or breaks it at the same input with another answer.
pub(crate) fn riddles<P: Component + ?Sized>(seed: u64, count: usize) -> Vec<Riddle> {
    let run = Run { seed, shrink: false, ..Run::default() };
    let bugs = shuffled(P::bugs().iter().zip(exhibits::<P>()).collect(), seed, |(bug, _)| bug.id);
    let riddle = |(bug, exhibit): &(&Bug<P>, Exhibit)| {
        let law = P::invariants().iter().find(|law| law.id == bug.named_by)?;
        let wrong = |bug: &Bug<P>| law.judge(&*(bug.implementation)(), &run).err();
        let violation = *wrong(bug).filter(|violation| is_for_paper(violation))?;
        // The likeliest to be confused with it break the same invariant, then one of the same section.
        let mut near: Vec<_> = bugs.iter().filter(|(other, _)| other.id != bug.id).collect();
        near.sort_by_key(|(other, _)| {
            let its = P::invariants().iter().find(|of| of.id == other.named_by);
            let same_section = its.is_some_and(|its| its.chapter == law.chapter);
            (other.named_by != bug.named_by, !same_section)
        });
        let is_apart = |other: &Bug<P>| {
            wrong(other).is_none_or(|of| of.input == violation.input && of.fault != violation.fault)
        };
        let others: Vec<Exhibit> = near
            .into_iter()
            .filter(|(other, _)| is_apart(other))
            .map(|(_, exhibit)| *exhibit)
            .take(OTHERS)
            .collect();
        let chapter = law.chapter;
        (others.len() == OTHERS).then_some(Riddle { bug: *exhibit, chapter, violation, others })
    };
    bugs.iter().filter_map(riddle).take(count).collect()
}

/// Numbers that differ, in a question that is short and shows all of its input.
fn is_for_paper(violation: &Violation) -> bool {
    let input = &violation.input;
    matches!(violation.fault, Fault::Differs { .. })
        && !input.contains(" more]")
        && input.chars().count() <= LONGEST
}

/// In an order that depends on the seed and on names alone.
pub fn shuffled<T>(mut items: Vec<T>, seed: u64, name: impl Fn(&T) -> &str) -> Vec<T> {
    items.sort_by_cached_key(|item| {
        let mut hasher = DefaultHasher::new();
        (seed, name(item)).hash(&mut hasher);
        hasher.finish()
    });
    items
}
