//! The texts in the repository itself say what the registry says. If you add a component, this reports which
//! line is missing where.

use crate::pages::root;
use contract::measured::MEASURED;
use contract::registry::{COMPONENTS, Entry, TASKS};

/// Each of these lines must be in the file.
fn must_hold(file: &str, lines: impl IntoIterator<Item = String>) {
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    // A sentence may go over the end of a line.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let missing: Vec<String> =
        lines.into_iter().filter(|line| !words(&text).contains(&words(line))).collect();
    assert!(missing.is_empty(), "{file} does not say:\n{}", missing.join("\n"));
}

#[test]
fn the_readme_has_right_counts() {
    let variants: usize = COMPONENTS.iter().map(|component| component.variants().len()).sum();
    let newest = MEASURED.last().unwrap();
    let (caught, right): (_, usize) =
        (newest.caught(), newest.variants.iter().map(|(_, asked, _)| asked).sum());
    assert!(newest.variants.iter().all(|(_, _, refused)| *refused == 0));
    assert_eq!(newest.in_their_task().count, caught.count);
    must_hold(
        "README.md",
        [
            format!("explains the {} tasks", TASKS.len()),
            format!(
                "wrote {} bugs for all components. It caught {} at first",
                caught.of, caught.count
            ),
            format!("of the other {} turned out", caught.of - caught.count),
            format!("none of the {right} unusual but correct programs"),
            format!("it accepts {variants} others in every test run"),
        ],
    );
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
