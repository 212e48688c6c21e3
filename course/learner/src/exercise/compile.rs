//! Builds the autograder with the learner's code in it.

use super::Workspace;
use crate::compile_error::CompileError;
use crate::error::{Error, Result};
use crate::program::{cargo, listen};
use crate::progress::Progress;
use contract::registry::COMPONENTS;
use serde::Deserialize;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Command;

/// The autograder with the learner's code in it.
#[derive(Debug)]
pub struct Autograder {
    /// The program.
    pub program: PathBuf,
}

/// What cargo says in JSON, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Message {
    reason: String,
    executable: Option<PathBuf>,
    target: Option<Target>,
    message: Option<Diagnostic>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Diagnostic {
    level: String,
    message: String,
    code: Option<Code>,
    rendered: Option<String>,
    spans: Vec<Span>,
    children: Vec<Diagnostic>,
}

#[derive(Debug, Deserialize)]
struct Code {
    code: String,
}

#[derive(Debug, Deserialize)]
struct Span {
    file_name: String,
    line_start: usize,
    column_start: usize,
    is_primary: bool,
}

const NAME: &str = "autograder";

/// Tells `exercises/build.rs` which files to leave out.
pub(crate) const STARTERS: &str = "QUADRIVIUM_STARTERS";

/// The learner's files.
const FOLDER: &str = "exercises/src/";
/// What calls them.
const SEATS: &str = "exercises/tests/autograder/seats/";

/// The compiler's number for a constant that can't be computed: an assertion on types that does not hold.
const CONSTANT: &str = "E0080";

/// The autograder, and the files that it was built without.
#[derive(Debug)]
pub struct Built {
    /// The autograder; none if no file of those that were asked for compiles.
    pub autograder: Option<Autograder>,
    /// Why files do not compile. Their starters stand in their places.
    pub uncompiled: Vec<CompileError>,
}

/// Builds the autograder, as `cargo test -p exercises` would. Where a file of a component does not compile,
/// its starter takes its place, so that one file does not hide the others. `wanted` are the components whose
/// tasks are to be graded: if none of their files compiles, no more is built.
///
/// # Errors
/// Code outside these files does not compile; cargo can't be run or fails for another reason.
pub fn build(workspace: &Workspace, wanted: &[&str], progress: Progress<'_>) -> Result<Built> {
    let mut uncompiled = unreadable(workspace);
    let autograder = loop {
        let starters = starters(&uncompiled);
        // One file, whose mistake is its own: nothing is left to grade.
        let own = uncompiled.iter().all(|error| blamed(error).len() == 1);
        if wanted.iter().all(|slug| starters.contains(slug)) && own {
            return Ok(Built { autograder: None, uncompiled });
        }
        match attempt(workspace, &starters, progress)? {
            Ok(autograder) => break autograder,
            Err(mut error) => {
                // An error in a starter is the mistake of another file that it names.
                let next = blamed(&error).into_iter().find(|slug| !starters.contains(slug));
                if next.is_none() {
                    // The starters did not help, so the error is not theirs.
                    let mut first = uncompiled.into_iter().next().unwrap_or(error);
                    first.component = None;
                    return Err(Error::DoesNotCompile(Box::new(first)));
                }
                error.component = next;
                uncompiled.push(error);
            }
        }
    };
    // A file may only have missed what another one should have: with that one's starter, it compiles.
    let mut autograder = Some(autograder);
    let mut place = 0;
    while uncompiled.len() > 1 && place + 1 < uncompiled.len() {
        let mut fewer = uncompiled.clone();
        fewer.remove(place);
        // Each attempt writes the same program, so the last one that is built must be the one that is kept.
        match attempt(workspace, &starters(&fewer), progress)? {
            Ok(kept) => (autograder, uncompiled) = (Some(kept), fewer),
            Err(_) => (autograder, place) = (None, place + 1),
        }
    }
    let left = starters(&uncompiled);
    if wanted.iter().all(|slug| left.contains(slug)) {
        return Ok(Built { autograder: None, uncompiled }); // an error that names others was their own all the same
    }
    if autograder.is_none() {
        autograder = attempt(workspace, &left, progress)?.ok();
    }
    Ok(Built { autograder, uncompiled })
}

/// The learner's files that are no Rust at all: gone, or in another encoding than UTF-8. The compiler would blame
/// the file that lists them.
fn unreadable(workspace: &Workspace) -> Vec<CompileError> {
    let error = |slug: &'static str| {
        let file = format!("{FOLDER}{slug}.rs");
        let first = match std::fs::read(workspace.path(&file)) {
            Ok(bytes) if std::str::from_utf8(&bytes).is_ok() => return None,
            Ok(_) => format!("error: {file} is not UTF-8: save it in this encoding"),
            Err(error) => format!("error: {file}: {error}. `cargo course reset {slug}` writes it"),
        };
        let place = Some(file);
        Some(CompileError { component: Some(slug), place, first, further: 0, signature: false })
    };
    COMPONENTS.iter().filter_map(|of| error(of.slug)).collect()
}

/// The components whose mistake an error may be: the one in whose file it stands, then those that it names.
fn blamed(error: &CompileError) -> Vec<&'static str> {
    // One that stands in none of these files is nobody's.
    let Some(own) = error.component else { return Vec::new() };
    let part = |c: char| !(c.is_alphanumeric() || c == '_');
    let words: Vec<&str> = error.first.split(part).collect();
    let slugs = COMPONENTS.iter().map(|of| of.slug);
    let named = slugs.filter(|slug| *slug != own && words.contains(slug));
    std::iter::once(own).chain(named).collect()
}

/// The components whose starters stand in.
fn starters(uncompiled: &[CompileError]) -> Vec<&'static str> {
    uncompiled.iter().filter_map(|error| error.component).collect()
}

/// Builds once, with the starters of these components in place of the learner's files.
fn attempt(
    workspace: &Workspace,
    starters: &[&str],
    progress: Progress<'_>,
) -> Result<std::result::Result<Autograder, CompileError>> {
    let failed = |reason: String| Error::Program { what: "cargo can't build", reason };
    let mut cargo =
        compiling(workspace, starters).spawn().map_err(|error| failed(error.to_string()))?;
    let (stdout, stderr) = (cargo.stdout.take(), cargo.stderr.take());
    let (program, errors, said) = std::thread::scope(|scope| {
        let listener = scope.spawn(|| listen(stderr, progress));
        let mut program = None;
        let mut errors = Vec::new();
        for line in stdout.into_iter().flat_map(|out| BufReader::new(out).lines()) {
            // Another line than a message is nothing of ours.
            let message = line.ok().and_then(|line| serde_json::from_str::<Message>(&line).ok());
            let Some(message) = message else { continue };
            let target = message.target.map_or(String::new(), |target| target.name);
            match (message.reason.as_str(), message.message) {
                ("compiler-artifact", _) if target == NAME => program = message.executable,
                ("compiler-message", Some(found)) if is_error(&found) => {
                    errors.push((target, found));
                }
                _ => {}
            }
        }
        (program, errors, listener.join().unwrap_or_default())
    });
    let status = cargo.wait().map_err(|error| failed(error.to_string()))?;
    if let Some(error) = compile_error(errors) {
        return Ok(Err(error));
    }
    match program {
        Some(program) if status.success() => Ok(Ok(Autograder { program })),
        _ => Err(failed(said)),
    }
}

fn compiling(workspace: &Workspace, starters: &[&str]) -> Command {
    let mut cargo = cargo(workspace);
    cargo
        .args(["test", "--package", "exercises", "--test", NAME, "--no-run"])
        .args(["--message-format=json", "--color=never"])
        .env_remove(STARTERS);
    if !starters.is_empty() {
        cargo.env(STARTERS, starters.join(","));
    }
    cargo
}

/// The last message of a failed compilation only counts the others.
fn is_error(found: &Diagnostic) -> bool {
    found.level.starts_with("error")
        && !found.message.starts_with("aborting due to")
        && !found.message.starts_with("could not compile")
}

fn compile_error(errors: Vec<(String, Diagnostic)>) -> Option<CompileError> {
    let further = errors.len().checked_sub(1)?;
    let (target, first) = errors.into_iter().next()?;
    let rendered = first.rendered.as_deref().unwrap_or(&first.message);
    let constant = first.code.as_ref().is_some_and(|code| code.code == CONSTANT);
    // A failed assertion is found where a type is used, and in Rust's own library. The learner wrote neither.
    let theirs = spans(&first).find_map(|span| span.of_the_learner().then(|| span.place()));
    let theirs = theirs.or_else(|| constant.then(|| shown_place(rendered)).flatten());
    let primary = first.spans.iter().find(|span| span.is_primary).or(first.spans.first());
    let place = theirs.or_else(|| primary.map(Span::place));
    Some(CompileError {
        component: component(place.as_deref().unwrap_or_default(), rendered),
        place,
        first: rendered.to_string(),
        further,
        signature: target == NAME && !constant,
    })
}

impl Span {
    /// On Windows too, the course writes `exercises/src`.
    fn file(&self) -> String {
        self.file_name.replace('\\', "/")
    }

    fn of_the_learner(&self) -> bool {
        self.file().starts_with(FOLDER)
    }

    fn place(&self) -> String {
        format!("{}:{}:{}", self.file(), self.line_start, self.column_start)
    }
}

/// All places that a message names: its own, the most important first, then those of its notes.
fn spans(found: &Diagnostic) -> impl Iterator<Item = &Span> {
    let (primary, others): (Vec<_>, Vec<_>) = found.spans.iter().partition(|span| span.is_primary);
    let notes = found.children.iter().flat_map(|note| &note.spans);
    primary.into_iter().chain(others).chain(notes)
}

/// The first of the learner's places in the compiler's own words, such as `exercises/src/norm.rs:46:17`.
fn shown_place(rendered: &str) -> Option<String> {
    let words = rendered.split_whitespace().map(|word| word.replace('\\', "/"));
    let mut places = words.filter_map(|word| Some(word[word.find(FOLDER)?..].to_string()));
    places.next().map(|place| place.trim_end_matches([':', ',', ')']).to_string())
}

/// The component whose file an error is about: by its place, or by the path of an item. (Its seat in the
/// autograder calls the learner's functions.)
fn component(place: &str, rendered: &str) -> Option<&'static str> {
    let slugs = || COMPONENTS.iter().map(|component| component.slug);
    let file = |slug: &&str| {
        let own = |folder: &&str| place.starts_with(&format!("{folder}{slug}.rs:"));
        [FOLDER, SEATS].iter().any(own) || place.starts_with(&format!("{FOLDER}{slug}/"))
    };
    let part = |c: char| !(c.is_alphanumeric() || c == '_');
    let named = || rendered.split(part).find_map(|word| slugs().find(|slug| *slug == word));
    // Another file of the learner's is nobody's. (A starter is seen as `exercises/src/../norm/starter.rs`.)
    let theirs = place.starts_with(FOLDER) && !place.contains("/../");
    slugs().find(file).or_else(|| if theirs { None } else { named() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(level: &str, message: &str) -> Diagnostic {
        let span = Span {
            file_name: "exercises\\src\\norm.rs".to_string(),
            line_start: 3,
            column_start: 7,
            is_primary: true,
        };
        let (level, message) = (level.to_string(), message.to_string());
        Diagnostic {
            level,
            message,
            code: None,
            rendered: None,
            spans: vec![span],
            children: vec![],
        }
    }

    #[test]
    fn the_first_error_is_told_and_the_others_are_counted() {
        let lib = || "exercises".to_string();
        let errors = vec![(lib(), diagnostic("error", "one")), (lib(), diagnostic("error", "two"))];
        let error = compile_error(errors).unwrap();
        assert_eq!(error.place.as_deref(), Some("exercises/src/norm.rs:3:7"));
        assert_eq!((error.first.as_str(), error.further, error.signature), ("one", 1, false));
        let said = error.to_string();
        assert!(said.contains("can be graded until it compiles"), "{said}");
        assert!(said.contains("2 errors, the first at exercises/src/norm.rs:3:7"), "{said}");
        assert!(compile_error(vec![]).is_none());
    }

    #[test]
    fn the_learners_place_is_told_also_where_the_autograder_stands_first() {
        let span = |file: &str, is_primary| {
            let (file_name, line_start, column_start) = (file.to_string(), 5, 9);
            Span { file_name, line_start, column_start, is_primary }
        };
        let of = |spans: Vec<Span>, notes: Vec<Span>, code: &str, rendered: &str| {
            let note = Diagnostic { spans: notes, ..diagnostic("note", "defined here") };
            let code = Some(Code { code: code.to_string() });
            let (rendered, children) = (Some(rendered.to_string()), vec![note]);
            let error = diagnostic("error", "no");
            let error = Diagnostic { spans, code, rendered, children, ..error };
            compile_error(vec![(NAME.to_string(), error)]).unwrap()
        };
        let ours = || vec![span("exercises/tests/autograder/seats/mod.rs", true)];
        let error = of(ours(), vec![span("exercises/src/embedding.rs", true)], "E0061", "");
        assert_eq!(error.place.as_deref(), Some("exercises/src/embedding.rs:5:9"));
        assert!(error.to_string().contains("`cargo course reset embedding`"), "{error}");
        let words = "cannot find function `table` in module `parallel`";
        let error = of(ours(), vec![], "E0425", words);
        assert_eq!(error.component, Some("parallel"));
        let error = of(ours(), vec![], "E0425", "of nothing in particular");
        assert_eq!(error.component, None);
        let core = || vec![span("/rustc/0/library/core/src/panic.rs", true)];
        let words = "error\n --> exercises\\src\\norm.rs:46:17\n";
        let error = of(core(), vec![], CONSTANT, words);
        assert_eq!(error.place.as_deref(), Some("exercises/src/norm.rs:46:17"));
        assert!(error.to_string().contains("mend the first error"), "{error}");
    }

    #[test]
    fn warnings_and_counts_are_not_errors() {
        assert!(is_error(&diagnostic("error", "mismatched types")));
        assert!(is_error(&diagnostic("error: internal compiler error", "oh")));
        assert!(!is_error(&diagnostic("warning", "unused")));
        assert!(!is_error(&diagnostic("error", "aborting due to 2 previous errors")));
    }
}
