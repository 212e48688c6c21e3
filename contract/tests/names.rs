//! Names agree: between invariants, bugs, variants, tasks and folders.

use contract::registry::{COMPONENTS, Entry, TASKS};
use contract::task::Grading;
use std::collections::BTreeSet;

fn ids(entry: &Entry) -> Vec<&'static str> {
    let laws = entry.promises().into_iter().map(|promise| promise.id);
    let bugs = entry.exhibits().into_iter().map(|bug| bug.id);
    let variants = entry.variants().into_iter().map(|(id, _)| id);
    laws.chain(bugs).chain(variants).collect()
}

#[test]
fn each_name_is_there_once_and_in_its_form() {
    let mut seen = BTreeSet::new();
    let names =
        COMPONENTS.iter().flat_map(|entry| ids(entry).into_iter().map(move |id| (entry.slug, id)));
    let tasks = TASKS.iter().map(|task| (task.component, task.name));
    for (slug, id) in names.chain(tasks) {
        let (component, rest) = id.split_once('/').expect("component/name");
        assert_eq!(component, slug, "{id}");
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(!rest.is_empty() && rest.chars().all(plain), "{id}");
        assert!(
            seen.insert(id),
            "{id} is there twice: invariants, bugs, variants and tasks share their names"
        );
    }
}

#[test]
fn bugs_are_named_by_invariants() {
    for entry in COMPONENTS {
        let laws: Vec<_> = entry.promises().into_iter().map(|promise| promise.id).collect();
        for bug in entry.exhibits() {
            assert!(laws.contains(&bug.named_by), "{}: no invariant {}", bug.id, bug.named_by);
        }
    }
}

#[test]
fn chapters_are_those_of_the_component() {
    for entry in COMPONENTS {
        for promise in entry.promises() {
            let (file, section) = promise.chapter.split_once('#').expect("chapter#section");
            assert_eq!(file, entry.slug, "{}: {}", promise.id, promise.chapter);
            assert!(!section.is_empty(), "{}", promise.id);
        }
    }
}

/// Not asked of a learner: const generics refuse these sizes before any code runs, or the sizes of
/// the tables are in their types.
const NOT_A_TASK: [&str; 2] = ["norm/group-size-divides", "rope/rotate-table-shape"];

#[test]
fn tasks_are_graded_by_every_invariant() {
    let mut used: BTreeSet<&str> = NOT_A_TASK.into();
    for task in TASKS.iter() {
        assert!(task.points > 0, "task {} has no points", task.name);
        if let Grading::Invariants { ids, .. } = task.grading {
            used.extend(ids);
        }
    }
    for promise in COMPONENTS.iter().flat_map(Entry::promises) {
        assert!(
            used.contains(promise.id),
            "no task is graded by {}: name it in a tasks.rs",
            promise.id
        );
    }
}

#[test]
fn a_property_can_be_written_for_every_component() {
    for task in TASKS.iter() {
        let entry = contract::registry::component(task.component).expect("it has this task");
        if let Grading::Property { needed } = task.grading {
            let bugs = entry.exhibits().len();
            assert!(
                0 < needed && needed < bugs,
                "{}: {needed} of {bugs} bugs are asked for",
                task.name
            );
        }
    }
}

#[test]
fn numbers_come_from_the_order() {
    for (place, entry) in COMPONENTS.iter().enumerate() {
        assert_eq!(entry.number(), place + 1);
        for (row, task) in entry.tasks().enumerate() {
            assert_eq!(task.number, format!("{}.{}", place + 1, row + 1));
        }
    }
}
