//! There is one order: of the registry, of the contents, of the plan for a class, and of every table that lists the
//! components.

use crate::pages::root;
use author::book::plan::parts;
use contract::registry::COMPONENTS;

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap()
}

/// The components in the order in which a text first says what `mark` makes of them.
fn order(text: &str, mark: impl Fn(&str, &str) -> String) -> Vec<&'static str> {
    let place =
        |of: &contract::registry::Entry| Some((text.find(&mark(of.slug, of.title))?, of.slug));
    let mut places: Vec<_> = COMPONENTS.iter().filter_map(place).collect();
    places.sort();
    places.into_iter().map(|(_, slug)| slug).collect()
}

fn link(slug: &str, _: &str) -> String {
    format!("({slug}.md")
}

/// What is between two texts.
fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let (_, text) = text.split_once(from).unwrap_or_else(|| panic!("no {from:?}"));
    text.split_once(to).unwrap_or_else(|| panic!("no {to:?} after {from:?}")).0
}

#[test]
fn all_orders_are_that_of_the_registry() {
    let registry: Vec<_> = COMPONENTS.iter().map(|of| of.slug).collect();
    let (index, plan) = (read("book/src/index.md"), read("book/src/instructors.md"));
    // Of the plan's tables, that of the sessions names every page before a lecture or a lab does.
    let sessions = between(&plan, "| Session | Read before it |", "\n\n");
    let lectures = between(&plan, "| Session | Sections, with minutes |", "\n\n");
    let labs = between(&plan, "| Session | Tasks, with minutes |", "\n\n");
    let task = |slug: &str, _: &str| format!("{{{{task {slug}/");
    let orders = [
        ("book/src/SUMMARY.md", order(&read("book/src/SUMMARY.md"), link)),
        (
            "the first table of book/src/index.md",
            order(between(&index, "| Component |", "\n\n"), link),
        ),
        (
            "\"In which order\" in book/src/index.md",
            order(between(&index, "## In which order", "\n## "), link),
        ),
        ("the sessions of book/src/instructors.md", order(sessions, link)),
        ("the lectures of book/src/instructors.md", order(lectures, link)),
        ("the labs of book/src/instructors.md", order(labs, task)),
        (
            "the table of exercises/README.md",
            order(&read("exercises/README.md"), |slug, _| format!("| `src/{slug}.rs` |")),
        ),
        (
            "exercises/src/lib.rs",
            order(&read("exercises/src/lib.rs"), |slug, _| format!("[`{slug}`]")),
        ),
    ];
    for (place, order) in orders {
        assert_eq!(order, registry, "the order of {place}, and that of contract/src/registry.rs");
    }
}

/// The same for the pages of the parts: the first page of each links the others in the order of the contents.
#[test]
fn a_part_opens_with_its_pages_in_order() {
    let parts = parts(&read("book/src/SUMMARY.md"));
    let mut opened = 0;
    for (first, others) in parts.iter().filter_map(|part| part.split_first()) {
        let text = read(&format!("book/src/{first}.md"));
        if !text.contains(&format!("<!-- = {first}/reading -->")) {
            continue;
        }
        opened += 1;
        let table = between(&text, "| Chapter |", "\n\n");
        let places: Vec<_> =
            others.iter().map(|page| table.find(&format!("({page}.md)"))).collect();
        assert!(
            places.iter().all(Option::is_some) && places.is_sorted(),
            "book/src/{first}.md: its table does not link {others:?} in this order"
        );
    }
    assert_eq!(opened, 5);
}

/// What a learner opens first is the first task, and the texts that send a beginner somewhere name it.
#[test]
fn beginners_are_sent_to_the_first_task() {
    let first = COMPONENTS[0].tasks().next().unwrap();
    for file in ["book/src/index.md", "book/src/front-end.md", "exercises/README.md"] {
        let text = read(file);
        let named =
            [format!("{{{{task {}}}}}", first.name), format!("todo!(\"task {}\")", first.name)];
        assert!(
            named.iter().any(|name| text.contains(name)),
            "{file} does not name {}",
            first.name
        );
    }
}
