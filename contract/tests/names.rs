//! Names agree: between invariants, bugs, variants and tasks.

use contract::component::Component;
use contract::party::*;
use contract::tasks::{Grading, TASKS};
use std::collections::BTreeSet;

/// Names of one component.
struct Names {
    component: &'static str,
    invariants: Vec<&'static str>,
    bugs: Vec<(&'static str, &'static str)>,
    variants: Vec<&'static str>,
    chapters: Vec<&'static str>,
}

fn names<P: Component + ?Sized>() -> Names {
    Names {
        component: P::NAME,
        invariants: P::invariants().iter().map(|invariant| invariant.id).collect(),
        bugs: P::bugs().iter().map(|bug| (bug.id, bug.named_by)).collect(),
        variants: P::variants().iter().map(|variant| variant.id).collect(),
        chapters: P::invariants().iter().map(|invariant| invariant.chapter).collect(),
    }
}

fn all() -> [Names; 4] {
    [
        names::<dyn GroupRmsNorm>(),
        names::<dyn VocabEmbedding>(),
        names::<dyn ParallelVocabEmbedding>(),
        names::<dyn NtkAwareRope>(),
    ]
}

#[test]
fn each_name_is_there_once_and_in_its_form() {
    let mut seen = BTreeSet::new();
    for names in all() {
        let bugs = names.bugs.iter().map(|(id, _)| *id);
        for id in names.invariants.iter().copied().chain(bugs).chain(names.variants.clone()) {
            let (component, rest) = id.split_once('/').expect("component/name");
            assert_eq!(component, names.component, "{id}");
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(!rest.is_empty() && rest.chars().all(plain), "{id}");
            assert!(seen.insert(id), "{id} is there twice");
        }
    }
}

#[test]
fn bugs_are_named_by_invariants() {
    for names in all() {
        for (bug, named_by) in &names.bugs {
            assert!(names.invariants.contains(named_by), "{bug}: no invariant {named_by}");
        }
    }
}

#[test]
fn chapters_are_those_of_the_component() {
    for names in all() {
        for chapter in names.chapters {
            let (file, section) = chapter.split_once('#').expect("chapter#section");
            assert_eq!(file, names.component, "{chapter}");
            assert!(!section.is_empty());
        }
    }
}

/// Not asked of a learner: const generics refuse these sizes before any code runs, or the sizes of
/// the tables are in their types.
const NOT_A_TASK: [&str; 2] = ["norm/group-size-divides", "rope/rotate-table-shape"];

#[test]
fn tasks_are_graded_by_every_invariant() {
    let all = all();
    let known: BTreeSet<&str> = all.iter().flat_map(|names| names.invariants.clone()).collect();
    let mut used: BTreeSet<&str> = NOT_A_TASK.into();
    for task in TASKS {
        assert!(task.points() > 0, "task {} has no points", task.number);
        if let Grading::Invariants { ids, .. } = task.grading {
            for id in ids {
                assert!(known.contains(id), "task {}: no invariant {id}", task.number);
                used.insert(id);
            }
        }
    }
    assert_eq!(known, used);
}

#[test]
fn a_property_can_be_written_for_every_component() {
    for task in TASKS {
        let bugs = |module| match module {
            "norm" => <dyn GroupRmsNorm>::bugs().len(),
            "vocab_emb" => <dyn VocabEmbedding>::bugs().len(),
            "parallel_vocab_emb" => <dyn ParallelVocabEmbedding>::bugs().len(),
            _ => <dyn NtkAwareRope>::bugs().len(),
        };
        if let Grading::Property { needed } = task.grading {
            assert!(0 < needed && needed < bugs(task.module()), "task {}", task.number);
        }
    }
}
