//! Where a component is in the workspace: the files that are its own, and its lines in the few lists that
//! the compiler needs. A test of this crate looks for each of them: that it is there, and that nothing in it is
//! left to be written. It does not see whether it is good. `cargo course new` writes them for a new component.
//!
//! In the patterns, `{slug}` is the component's slug, and `{title}` its whole name.

use crate::registry::component;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A file or a folder that every component has, and what it is for.
pub struct Own {
    /// Its path from the workspace.
    pub path: &'static str,
    /// What is in it.
    pub holds: &'static str,
}

/// The files and folders that every component has, in the order in which they are best written.
pub static OWN: &[Own] = &[
    own("contract/src/{slug}/mod.rs", "its names, and what the contract knows of it"),
    own(
        "contract/interfaces/src/{slug}/interface.rs",
        "what an implementation is asked, and what it answers",
    ),
    own("contract/src/{slug}/oracle.rs", "the formula as f64 loops"),
    own("contract/src/{slug}/laws.rs", "its invariants"),
    own("contract/src/{slug}/graded_cases.rs", "its questions, from the plainest on"),
    own("contract/src/{slug}/museum.rs", "its bugs"),
    own("contract/src/{slug}/mutants.rs", "the museum's bugs under conditions"),
    own("contract/src/{slug}/variants.rs", "correct implementations, written differently"),
    own("contract/src/{slug}/repairs.rs", "the steps whose replacement explains wrong answers"),
    own("contract/src/{slug}/tasks.rs", "the exercises"),
    own("src/{slug}/formula.rs", "what it computes, forward and backward side by side"),
    own("src/{slug}/mod.rs", "the module of the library, with its settings"),
    own("exercises/{slug}/solution.rs", "the model solution, with the tasks' marks"),
    own(
        "exercises/src/{slug}.rs",
        "the learner's file: `cargo course reset {slug}` cuts it from the solution",
    ),
    own("exercises/{slug}/hints", "a file of hints for each task"),
    own("exercises/adapters/src/{slug}.rs", "the learner's code as an implementation"),
    own("tests/suite/implementations/reference/{slug}.rs", "the library as an implementation"),
    own("tests/suite/{slug}.rs", "the tests of the library's module"),
    own("notebook-support/src/{slug}.rs", "the check that a notebook's cells call"),
    own("book/src/{slug}.md", "the chapter"),
    own(
        "snapshots/matrix_{slug}.snap",
        "the kill matrix: `INSTA_UPDATE=always cargo proof {slug}/` writes it",
    ),
    own("tests/suite/implementations/pytorch/{slug}.rs", "PyTorch as an implementation"),
    own("tests/suite/pytorch/{slug}.rs", "the library against PyTorch's numbers"),
    own(
        "tests/goldens/{slug}.safetensors",
        "PyTorch's numbers: tests/goldens/generate.py writes it, once its FILES name {slug}",
    ),
];

/// Of these, the ones that are there for their tests.
const TESTED: [&str; 2] = ["tests/suite/{slug}.rs", "tests/suite/pytorch/{slug}.rs"];

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
    line("contract/src/registry.rs", "{slug}: "),
    line("contract/src/lib.rs", "pub mod {slug};"),
    line("contract/interfaces/src/lib.rs", "    {slug}"),
    line("src/lib.rs", "pub mod {slug};"),
    line("exercises/src/lib.rs", "pub mod {slug};"),
    line(
        "exercises/src/lib.rs",
        "#[cfg_attr(starter = \"{slug}\", path = \"../{slug}/starter.rs\")]",
    ),
    line("exercises/adapters/src/lib.rs", "mod {slug};"),
    line("exercises/adapters/src/lib.rs", "            {slug}: "),
    line("tests/suite/implementations/reference/mod.rs", "mod {slug};"),
    line("tests/suite/implementations/reference/mod.rs", "{slug}::ADAPTER"),
    line("tests/suite/implementations/pytorch/mod.rs", "mod {slug};"),
    line("tests/suite/implementations/pytorch/mod.rs", "{slug}::ADAPTER"),
    line("tests/suite/main.rs", "mod {slug};"),
    line("tests/suite/pytorch/mod.rs", "mod {slug};"),
    line("notebook-support/src/lib.rs", "pub mod {slug};"),
    line("tests/goldens/generate.py", "def {slug}_cases("),
    line("tests/goldens/generate.py", "def make_{slug}("),
    line("tests/goldens/generate.py", "\"{slug}\": ({slug}_cases, make_{slug}),"),
    line("tests/goldens/README.md", "| `{slug}.safetensors` |"),
    line("tests/goldens/README.md", "- `{slug}`: "),
    line("book/src/SUMMARY.md", "({slug}.md)"),
    line("book/src/index.md", "| [{title}]({slug}.md) |"),
    line("book/src/library.md", "]({slug}.md) |"),
    line("exercises/README.md", "| `src/{slug}.rs` |"),
    line("exercises/src/lib.rs", "in [`{slug}`]"),
    line("src/lib.rs", "| [`{slug}`] |"),
];

const fn line(file: &'static str, holds: &'static str) -> Line {
    Line { file, holds }
}

/// What the component `slug` lacks in the workspace `root`, each with what to do. Nothing if all is there.
pub fn missing(root: &Path, slug: &str) -> Vec<String> {
    let here = |pattern: &str| pattern.replace("{slug}", slug);
    let mut missing = Vec::new();
    let entry = component(slug);
    for Own { path, holds } in OWN {
        let path = here(path);
        let found = found(root, &path);
        if !holds_something(&found) {
            missing.push(format!("{path} is missing or empty. It should hold {}", here(holds)));
        } else if TESTED.iter().any(|pattern| here(pattern) == path) && !has_tests(&found) {
            missing.push(format!("{path} has no `#[test]`. It should hold {}", here(holds)));
        }
    }
    for Line { file, holds } in LISTED {
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        // Until the registry knows it, a name is found by the slug alone.
        let wanted = match entry {
            Some(entry) => here(holds).replace("{title}", entry.title),
            None => here(holds.split("{title}").last().unwrap_or(holds)),
        };
        if !text.lines().any(|line| stands_in(line, &wanted)) {
            missing.push(format!(
                "{file} has no `{wanted}`. Add it next to those of the other components"
            ));
        }
    }
    missing.extend(unasked(root, slug));
    missing
}

/// The calls that PyTorch is asked, and that `answers.py` does not know. Recorded answers hide this.
fn unasked(root: &Path, slug: &str) -> Vec<String> {
    let file = format!("tests/suite/implementations/pytorch/{slug}.rs");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap_or_default();
    let (asks, answers) = (read(&file), read("tests/goldens/answers.py"));
    let calls: BTreeSet<&str> = asks
        .split('"')
        .filter_map(|text| text.strip_prefix(slug)?.strip_prefix('.'))
        .filter(|call| call.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
        .collect();
    if calls.is_empty() && found(root, &file).exists() {
        return vec![format!(
            "{file} asks PyTorch nothing: name a call, such as \"{slug}.forward\""
        )];
    }
    let unknown =
        calls.into_iter().filter(|call| !answers.contains(&format!("\ndef {slug}_{call}(")));
    let told =
        |call| format!("tests/goldens/answers.py has no `def {slug}_{call}(`, which {file} asks");
    unknown.map(told).collect()
}

/// What `cargo course new` leaves to the author begins with one of these: in code, and in texts.
const LEFT: [&str; 2] = ["todo!(", "TO DO"];

/// The lines that are still to be written in a component's own places, in the order of [`OWN`]: file, line, and
/// what belongs there.
pub fn unwritten(root: &Path, slug: &str) -> Vec<String> {
    let mut unwritten = Vec::new();
    for Own { path, .. } in OWN {
        let path = path.replace("{slug}", slug);
        // What a learner fills in is empty by design.
        if path.starts_with("exercises/src/") {
            continue;
        }
        unwritten.extend(
            files(&found(root, &path)).iter().flat_map(|file| left_in(root, file, &is_left)),
        );
    }
    unwritten
}

/// The same in the files that list all components.
pub fn unwritten_in_lists(root: &Path) -> Vec<String> {
    let lists: BTreeSet<&str> = LISTED.iter().map(|line| line.file).collect();
    let lists = lists.into_iter().chain(["tests/goldens/answers.py"]).map(|list| root.join(list));
    lists.flat_map(|list| left_in(root, &list, &|line| line.contains(LEFT[1]))).collect()
}

fn left_in(root: &Path, file: &Path, left: &dyn Fn(&str) -> bool) -> Vec<String> {
    let name = file.strip_prefix(root).unwrap_or(file).display();
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let lines = text.lines().enumerate().filter(|(_, line)| left(line));
    lines.map(|(row, line)| format!("{name}:{}: {}", row + 1, line.trim())).collect()
}

/// A line for the starter alone, `//|`, is not the author's to fill; nor is a `todo!()` that a test hands in.
fn is_left(line: &str) -> bool {
    let own = !line.trim_start().starts_with("//|") && !line.contains("todo!()");
    own && LEFT.iter().any(|mark| line.contains(mark))
}

/// The files below a path, or the path itself, in their order.
fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = path.read_dir() else { return vec![path.to_path_buf()] };
    let mut inner: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    inner.sort();
    inner.iter().flat_map(|path| files(path)).collect()
}

/// The file of a path, or its folder: a file `laws.rs` may have become a folder `laws` with a `mod.rs`.
fn found(root: &Path, path: &str) -> PathBuf {
    let (file, folder) = (root.join(path), root.join(path).with_extension(""));
    if !file.exists() && folder.join("mod.rs").is_file() { folder } else { file }
}

/// Whether a folder has an entry, or a file a line. Comments alone are nothing.
fn holds_something(path: &Path) -> bool {
    if let Ok(mut entries) = path.read_dir() {
        return entries.next().is_some();
    }
    let comment = |line: &str| line.trim().is_empty() || line.trim_start().starts_with("//");
    match std::fs::read_to_string(path) {
        Ok(text) => !text.lines().all(comment),
        Err(_) => std::fs::metadata(path).is_ok_and(|file| file.len() > 0), // not a text
    }
}

/// The text of a place: of its file, or of all files in its folder.
pub fn text_of(root: &Path, path: &str) -> String {
    let texts = files(&found(root, path)).into_iter().map(std::fs::read_to_string);
    texts.map(Result::unwrap_or_default).collect()
}

fn has_tests(path: &Path) -> bool {
    let text = |file: &PathBuf| std::fs::read_to_string(file).unwrap_or_default();
    let test = |line: &str| line.trim_start().starts_with("#[test]");
    files(path).iter().any(|file| text(file).lines().any(test))
}

/// Whether a line holds the wanted words, not as the end of longer ones: `norm;` is not in `layernorm;`. A
/// comment holds nothing, but documentation `//!` may be a list.
fn stands_in(line: &str, wanted: &str) -> bool {
    let start = line.trim_start();
    let comment = ["//", "<!--", "# "].iter().any(|comment| start.starts_with(comment));
    if (comment && !start.starts_with("//!")) || start.starts_with("#[cfg(any())]") {
        return false;
    }
    let line = line.split("/*").next().unwrap_or(line);
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
        assert!(stands_in("&[norm::ADAPTER, rope::ADAPTER]", "norm::ADAPTER"));
        assert!(!stands_in("&[layernorm::ADAPTER, rope::ADAPTER]", "norm::ADAPTER"));
        for comment in ["// pub mod norm;", "    # mod norm;", "[] /* mod norm; */"] {
            assert!(!stands_in(comment, "mod norm;"), "{comment}");
        }
    }
}
