//! Names agree: between invariants, bugs, variants, tasks and folders.

use contract::category::Category;
use contract::registry::{COMPONENTS, Entry, TASKS};
use contract::task::Grading;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

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

/// Words of one component say nothing to who writes another.
#[test]
fn what_a_mistake_is_about_is_told_in_the_components_words() {
    let of_ranks = &["parallel", "collectives"][..];
    let with_heads = &["rope", "attention", "model", "biases", "frequencies", "rotations"][..];
    let nouns: [(&str, &[&str]); 10] = [
        ("shard", of_ranks),
        ("rank", of_ranks),
        ("head", with_heads),
        ("norm", &["norm", "layernorm", "model"]),
        ("gate", &["feedforward", "model"]),
        ("slopes", &["biases"]),
        ("softmax", &["attention", "biases", "loss", "collectives", "model"]),
        ("roots", &["norm", "layernorm", "model"]),
        ("target", &["loss", "collectives"]),
        ("sinusoids", &["absolute"]),
    ];
    let mut asked = 0;
    for entry in COMPONENTS {
        for category in categories(entry) {
            let words = category.words(entry.slug);
            let has =
                |noun: &str| words.split(|c: char| !c.is_alphanumeric()).any(|word| word == noun);
            for (noun, whose) in nouns.iter().filter(|(noun, _)| has(noun)) {
                asked += 1;
                assert!(whose.contains(&entry.slug), "{}: {words}: no {noun} is there", entry.slug);
            }
        }
    }
    assert!(asked > nouns.len(), "{asked} words were found");
}

/// What the invariants, the graded cases and the checks of a component call a mistake, as they are written.
fn categories(entry: &Entry) -> BTreeSet<Category> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(entry.slug);
    let text = texts(&folder);
    let named = text.split("Category::").skip(1).filter_map(|rest| {
        let name = rest.split(|c: char| !c.is_alphanumeric()).next()?.to_lowercase();
        serde_json::from_value(serde_json::Value::String(name)).ok()
    });
    named.chain(entry.promises().into_iter().map(|promise| promise.category)).collect()
}

fn texts(folder: &Path) -> String {
    let paths = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let text = |path: std::path::PathBuf| match path.is_dir() {
        true => texts(&path),
        false => std::fs::read_to_string(path).unwrap(),
    };
    paths.map(text).collect()
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

/// A component has a page that is called as it is, and may have another. No two components share one.
#[test]
fn pages_belong_to_one_component() {
    let mut owners = BTreeMap::new();
    for entry in COMPONENTS {
        for promise in entry.promises() {
            let (page, section) = promise.chapter.split_once('#').expect("page#section");
            let owner = *owners.entry(page).or_insert(entry.slug);
            assert_eq!(owner, entry.slug, "{}: {page} explains {owner}", promise.id);
            assert!(!section.is_empty(), "{}", promise.id);
        }
        let pages = owners.iter().filter(|(_, owner)| **owner == entry.slug);
        let pages: Vec<_> = pages.map(|(page, _)| *page).collect();
        assert!(pages.contains(&entry.slug) && pages.len() <= 2, "{}: {pages:?}", entry.slug);
    }
}

/// Not asked of a learner: const generics refuse these sizes before any code runs, or the sizes of
/// the tables are in their types; or a learner's code takes an offset, and no position for each token.
const NOT_A_TASK: [&str; 10] = [
    "norm/group-size-divides",
    "rope/rotate-table-shape",
    "rope/each-token-its-position",
    "rope/each-text-its-length",
    "rope/position-ids-turn-back",
    "rope/one-id-for-each-token",
    "absolute/each-token-its-row",
    "absolute/tokens-at-one-position-add",
    "absolute/id-past-the-table",
    "absolute/one-id-for-each-token",
];

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

/// A task waits for what it calls, and a later task can't be written first.
#[test]
fn a_task_needs_tasks_before_it() {
    let place = |name: &str| TASKS.iter().position(|task| task.name == name);
    for (at, task) in TASKS.iter().enumerate() {
        let places: Vec<Option<usize>> = task.needs.iter().map(|name| place(name)).collect();
        assert!(places.iter().all(|other| other.is_some_and(|other| other < at)), "{}", task.name);
        assert!(
            places.is_sorted(),
            "{}: {:?} are not in the course's order",
            task.name,
            task.needs
        );
    }
}
