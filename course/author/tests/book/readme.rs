//! The texts that stand in the repository itself say what the registry says. Whoever adds a component is told
//! which line is missing where.

use crate::pages::root;
use contract::registry::{COMPONENTS, Entry, TASKS};

/// Each of these lines must stand in the file.
fn must_hold(file: &str, lines: impl IntoIterator<Item = String>) {
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    // A sentence may go over the end of a line.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let missing: Vec<String> =
        lines.into_iter().filter(|line| !words(&text).contains(&words(line))).collect();
    assert!(missing.is_empty(), "{file} does not say:\n{}", missing.join("\n"));
}

#[test]
fn the_readme_has_every_component_and_right_counts() {
    let variants: usize = COMPONENTS.iter().map(|component| component.variants().len()).sum();
    let rows = COMPONENTS.iter().map(|of| format!("| **{}** | {} |", of.title, of.about));
    let counts = [
        format!("in `exercises/`: {} tasks. Most are a function", TASKS.len()),
        format!("and {variants} correct ones that are written differently"),
    ];
    must_hold("README.md", rows.chain(counts));
}

#[test]
fn the_exercises_list_every_component() {
    let row = |of: &Entry| {
        let (first, last) = (of.tasks().next().unwrap(), of.tasks().last().unwrap());
        format!("| `src/{}.rs` | {} | {} to {} |", of.slug, of.title, first.number, last.number)
    };
    must_hold("exercises/README.md", COMPONENTS.iter().map(row));
    let line = |of: &Entry| format!("//! {}. {}, in [`{}`]", of.number(), of.title, of.slug);
    must_hold("exercises/src/lib.rs", COMPONENTS.iter().map(line));
    let module = |of: &Entry| {
        format!(
            "#[cfg_attr(starter = \"{0}\", path = \"../{0}/starter.rs\")] pub mod {0};",
            of.slug
        )
    };
    must_hold("exercises/src/lib.rs", COMPONENTS.iter().map(module));
}
