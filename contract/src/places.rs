//! Where a component stands in the workspace: the files that are its own, and its lines in the few lists that
//! the compiler needs. A test of this crate looks for each of them: that it is there, not that it is good.
//!
//! In the patterns, `{slug}` is the component's slug.

use crate::registry::Entry;
use std::path::Path;

/// A file or a folder that every component has, and what it is for.
pub struct Own {
    /// Its path from the workspace.
    pub path: &'static str,
    /// What stands in it.
    pub holds: &'static str,
}

/// The files and folders that every component has.
pub static OWN: &[Own] = &[
    own("src/{slug}/mod.rs", "the module of the library, with its settings"),
    own("src/{slug}/formula.rs", "what it computes, forward and backward side by side"),
    own("contract/src/{slug}/mod.rs", "its names, and what the contract knows of it"),
    own("contract/src/{slug}/party.rs", "what a party is asked, and what it answers"),
    own("contract/src/{slug}/oracle.rs", "the formula as f64 loops"),
    own("contract/src/{slug}/museum.rs", "its bugs"),
    own("contract/src/{slug}/variants.rs", "correct implementations, written differently"),
    own("contract/src/{slug}/probes.rs", "the questions of the diagnosis"),
    own("contract/src/{slug}/tasks.rs", "the exercises"),
    own("exercises/src/{slug}.rs", "the learner's file"),
    own("exercises/{slug}/solution.rs", "the model solution, with the tasks' marks"),
    own(
        "exercises/{slug}/starter.rs",
        "the starter: `cargo course reset {slug}` cuts it from the solution",
    ),
    own("exercises/{slug}/hints", "a file of hints for each task"),
    own("exercises/{slug}/types", "a program that fits, and programs that must not compile"),
    own("exercises/tests/autograder/seats/{slug}.rs", "the learner's code as a party"),
    own("tests/suite/parties/reference/{slug}.rs", "the library as a party"),
    own("tests/suite/parties/pytorch/{slug}.rs", "PyTorch as a party"),
    own("book/src/{slug}.md", "the chapter"),
    own(
        "snapshots/matrix_{slug}.snap",
        "the kill matrix: `INSTA_UPDATE=always cargo proof {slug}/` writes it",
    ),
];

const fn own(path: &'static str, holds: &'static str) -> Own {
    Own { path, holds }
}

/// A line that every component has in a file of all.
pub struct Line {
    /// The file, from the workspace.
    pub file: &'static str,
    /// The line, or a part of it.
    pub holds: &'static str,
}

/// The lines that every component has in lists. Each list is in one file a crate, and says nothing else.
pub static LISTED: &[Line] = &[
    line("contract/src/lib.rs", "pub mod {slug};"),
    line("src/lib.rs", "pub mod {slug};"),
    line("exercises/src/lib.rs", "pub mod {slug};"),
    line(
        "exercises/src/lib.rs",
        "#[cfg_attr(starter = \"{slug}\", path = \"../{slug}/starter.rs\")]",
    ),
    line("exercises/tests/autograder/seats/mod.rs", "mod {slug};"),
    line("exercises/tests/autograder/seats/mod.rs", "{slug}::SEAT"),
    line("tests/suite/parties/reference/mod.rs", "mod {slug};"),
    line("tests/suite/parties/reference/mod.rs", "{slug}::SEAT"),
    line("tests/suite/parties/pytorch/mod.rs", "mod {slug};"),
    line("tests/suite/parties/pytorch/mod.rs", "{slug}::SEAT"),
    line("tests/suite/main.rs", "_{slug}.rs\"]"),
    line("tests/suite/10_pytorch/mod.rs", "mod {slug};"),
    line("kit/src/lib.rs", "pub mod {slug};"),
    line("book/src/SUMMARY.md", "({slug}.md)"),
];

const fn line(file: &'static str, holds: &'static str) -> Line {
    Line { file, holds }
}

/// What a component lacks in the workspace `root`, each with what to do. Nothing if all is there.
pub fn missing(root: &Path, component: &Entry) -> Vec<String> {
    let here = |pattern: &str| pattern.replace("{slug}", component.slug);
    let mut missing = Vec::new();
    for Own { path, holds } in OWN {
        let path = here(path);
        if !holds_something(&root.join(&path)) {
            missing.push(format!("{path} is missing, or empty. It holds {}", here(holds)));
        }
    }
    for Line { file, holds } in LISTED {
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let wanted = here(holds);
        if !text.lines().any(|line| stands_in(line, &wanted)) {
            missing.push(format!(
                "{file} has no `{wanted}`. Add it beside those of the other components"
            ));
        }
    }
    missing
}

fn holds_something(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => std::fs::metadata(path).is_ok_and(|file| file.len() > 0),
    }
}

/// Whether a line holds the wanted words, not as the end of longer ones: `norm;` is not in `layernorm;`. A
/// comment holds nothing.
fn stands_in(line: &str, wanted: &str) -> bool {
    if ["//", "<!--"].iter().any(|comment| line.trim_start().starts_with(comment)) {
        return false;
    }
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.match_indices(wanted).any(|(at, _)| {
        let longer = line[..at].chars().next_back().is_some_and(letter);
        !(longer && wanted.starts_with(|c: char| c.is_ascii_alphanumeric()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_name_is_another_one() {
        assert!(stands_in("    pub mod norm;", "mod norm;"));
        assert!(stands_in("&[norm::SEAT, rope::SEAT]", "norm::SEAT"));
        assert!(!stands_in("&[layernorm::SEAT, rope::SEAT]", "norm::SEAT"));
        assert!(!stands_in("// pub mod norm;", "mod norm;"));
    }
}
