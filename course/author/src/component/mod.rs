//! `cargo course new`: a component's files and its lines in the lists, from templates.
//!
//! The templates are in `course/author/component`, each at the path that its file will have in the workspace.
//! In names and texts, `{slug}` and `{Type}` are the component's slug and type. Everything is made in memory and checked; then all is written, or nothing.

mod lines;
mod name;
mod rustfmt;
mod templates;
mod write;

use crate::error::Result;
use contract::places::{missing, unwritten, unwritten_in_lists};
use learner::exercise::Workspace;
use learner::exercise::source::cut;
use learner::terminal::Terminal;
use name::Name;
use std::collections::BTreeMap;
use std::path::Path;

/// What was written, and what an author has to do next.
#[derive(Debug)]
pub struct Written {
    /// The files that are new, named from the workspace.
    pub files: Vec<String>,
    /// The files that got lines.
    pub lists: Vec<String>,
    /// Lines for which no place was found: file, and the line.
    pub by_hand: Vec<(String, String)>,
    /// The places that are still missing, each with what to do.
    pub missing: Vec<String>,
    /// Files that hold places to fill in, in the order in which they are best filled, each with their number.
    pub unwritten: Vec<(String, usize)>,
}

/// Writes a component and says what is left to do.
///
/// # Errors
/// The name can't be used, a file is there already or can't be written. Then nothing has changed.
pub fn run(slug: &str, type_name: Option<&str>) -> Result<bool> {
    let workspace = Workspace::find()?;
    let written = new(&workspace.path(""), slug, type_name)?;
    let mut terminal = Terminal::stdout();
    for line in summary(slug, &written) {
        terminal.line(&line)?;
    }
    Ok(true)
}

/// Writes a component into the workspace `root`.
///
/// # Errors
/// As [`run`].
pub fn new(root: &Path, slug: &str, type_name: Option<&str>) -> Result<Written> {
    let name = Name::checked(root, slug, type_name)?;
    let mut files = name.templates(root)?;
    if let Some(solution) = files.get(&format!("exercises/{slug}/solution.rs")) {
        files.insert(format!("exercises/src/{slug}.rs"), cut(solution));
    }
    let changed = lines::added(root, &name)?;
    let formatted = |files: BTreeMap<String, String>| -> Result<BTreeMap<String, String>> {
        let format = |(file, text): (String, String)| {
            let text = if file.ends_with(".rs") { rustfmt::format(root, &text)? } else { text };
            Ok((file, text))
        };
        files.into_iter().map(format).collect()
    };
    let (files, lists) = (formatted(files)?, formatted(changed.files)?);
    write::all(root, &files, &lists)?;
    let mut counts: Vec<(String, usize)> = Vec::new();
    for line in unwritten(root, slug).into_iter().chain(unwritten_in_lists(root)) {
        let file = line.split(':').next().unwrap_or_default().to_string();
        match counts.last_mut() {
            Some((last, count)) if *last == file => *count += 1,
            _ => counts.push((file, 1)),
        }
    }
    Ok(Written {
        files: files.into_keys().collect(),
        lists: lists.into_keys().collect(),
        by_hand: changed.by_hand,
        missing: missing(root, slug),
        unwritten: counts,
    })
}

/// What is printed: what was written, then what is left, in order.
fn summary(slug: &str, written: &Written) -> Vec<String> {
    let Written { files, lists, by_hand, missing, unwritten } = written;
    let mut out = vec![
        format!("{} files are new, and {} lists have lines more.", files.len(), lists.len()),
        String::new(),
        "left to do, in this order:".to_string(),
    ];
    let mut step = 0;
    let mut next = |out: &mut Vec<String>, words: String| {
        step += 1;
        out.push(format!("{step:>3}  {words}"));
    };
    for (file, line) in by_hand {
        next(&mut out, format!("{file}: no place was found for this. Add it beside its like:"));
        out.extend(line.lines().map(|line| format!("       {line}")));
    }
    next(&mut out, "cargo check --workspace --all-targets: it compiles as it is".to_string());
    let all: usize = unwritten.iter().map(|(_, count)| count).sum();
    next(
        &mut out,
        format!(
            "write what belongs into {all} places; `cargo test -p contract --test places` lists them:"
        ),
    );
    for (file, count) in unwritten {
        out.push(format!("       {file} ({count})"));
    }
    for command in COMMANDS {
        next(&mut out, command.replace("{slug}", slug));
    }
    out.push(String::new());
    out.push("still missing, until these commands have run:".to_string());
    out.extend(missing.iter().map(|line| format!("     {line}")));
    out.push(String::new());
    out.push(
        "book/src/adding.md, \"Adding a component\", has the same order and says how.".to_string(),
    );
    out
}

/// What shows whether it is right, in the order of the work.
const COMMANDS: [&str; 11] = [
    "cargo test -p contract --lib --test names: names agree, and each invariant has its task",
    "cargo proof {slug}/: every bug is caught, and no variant is refused",
    "cargo test --test suite -- {slug}:: the_library_keeps --skip pytorch: the library keeps the contract",
    "cargo course reset {slug}: cuts the starter from the solution",
    "cargo test -p learner --lib exercise: tasks have places, solutions and hints",
    "cargo test -p course --test exercises -- solutions starters: the solutions pass, the starters do not",
    "cargo test -p notebook-support --lib {slug}: the notebook's check",
    "INSTA_UPDATE=always cargo proof {slug}/: keeps the matrix, which the book shows",
    "cargo course read --update: puts the new counts into the book",
    "cargo test -p author --test book: the chapter, the README and the lists agree",
    "tests/goldens/README.md: PyTorch's numbers, and its answers to the contract",
];
