//! Tasks about types: sizes that fit compile, and no others do.
//!
//! The contract lists the sizes. A program is made of them, with a function for each size: those that fit
//! must compile, and no others may. So a condition that holds for a few sizes only is seen.
//! It is compiled as a library against the learner's crate, with code made for it where a const assertion is
//! asked for: it runs only then.

use crate::seat::Seat;
use crate::seats::Learner;
use contract::breach::{Breach, Fault};
use contract::grade::{Grade, is_todo};
use contract::run::Run;
use contract::task::Task;
use contract::types::{By, Keeps, Rule};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Grades a task about types.
pub fn judge(task: &Task, rule: &Rule, seat: &Seat, run: &Run) -> Grade {
    let mut grade = Grade::new(task);
    if let Some(Keeps { id, calls }) = rule.keeps {
        match (seat.keeps)(id, &Learner { calls, by_hand: false }, run) {
            (_, Ok(_)) => grade.held.push(id.to_string()),
            // The lines stand on another task, which is not done yet.
            (_, Err(breach)) if is_todo(&breach) => {}
            (sentence, Err(breach)) => grade.fail(id, sentence, breach),
        }
    }
    match compile(rule) {
        Ok([good, bad]) => {
            for (id, sentence, breach) in [
                ("types/good-compiles", "What fits still compiles.", of_good(&good)),
                (
                    "types/bad-does-not-compile",
                    "What does not fit does not compile, and the compiler says why.",
                    of_bad(&bad, task, rule.refused_by),
                ),
            ] {
                match breach {
                    Some(breach) => grade.fail(id, sentence, breach),
                    None => grade.held.push(id.to_string()),
                }
            }
        }
        Err(error) => {
            let what = format!("rustc can't be run: {error}");
            let sentence = "The programs of the task are compiled against your crate.";
            grade.fail("types/compiler", sentence, broken("", what));
        }
    }
    grade.begun = grade.passed || !still_to_do(task);
    grade
}

fn broken(program: &str, what: String) -> Box<Breach> {
    Breach::new(program, Fault::Broken { what })
}

/// Of sizes that fit: the first that does not compile.
fn of_good(good: &Compiled) -> Option<Box<Breach>> {
    let all = good.functions.len();
    let (&nth, error) = good.errors.first_key_value()?;
    let (failed, first) = (good.errors.len(), first_lines(&error.rendered));
    let what =
        format!("{failed} of {all} functions do not compile, the first of them is this:\n{first}");
    Some(broken("sizes that fit", what).on(good.function(nth)))
}

/// Of sizes that do not fit: the first that compiles, or that is refused for another reason.
fn of_bad(bad: &Compiled, task: &Task, by: By) -> Option<Box<Breach>> {
    let all = bad.functions.len();
    let compile: Vec<usize> = (0..all).filter(|nth| !bad.errors.contains_key(nth)).collect();
    if let Some(&nth) = compile.first() {
        let mut what =
            format!("{} of {all} functions compile, the first of them is this", compile.len());
        if by == By::Assertion && compile.len() == all && asserts_at_run_time(task) {
            what += ". An assertion in the body of a function runs when the program runs. In `const { }` it runs \
                     while the program compiles";
        }
        return Some(broken("sizes that do not fit", what).on(bad.function(nth)));
    }
    if by == By::Assertion && code_of(task).contains("debug_assert") {
        let what = "`debug_assert!` and what asks for `debug_assertions` are not there in a release build: what does \
                    not fit compiles in it";
        return Some(broken("sizes that do not fit", what.to_string()));
    }
    for (&nth, error) in &bad.errors {
        let what = match by {
            By::Assertion if error.code != ASSERTION => "it fails for another reason",
            By::Mismatch if !["E0308", "E0277", "E0271"].contains(&error.code.as_str()) => {
                "it fails for another reason"
            }
            By::Assertion if !error.names_a_rule() => {
                "the compiler does not say which rule is broken. An assertion takes words: `assert!(rule, \"words\")`"
            }
            _ => continue,
        };
        let what = format!("{what}:\n{}", first_lines(&error.rendered));
        return Some(broken("sizes that do not fit", what).on(bad.function(nth)));
    }
    None
}

/// Whether the task's lines hold an assertion, and none that runs while the program compiles.
fn asserts_at_run_time(task: &Task) -> bool {
    let lines = code_of(task);
    (lines.contains("assert") || lines.contains("panic!")) && !lines.contains("const {")
}

/// The learner's lines for a task.
fn lines_of(task: &Task) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(task.file());
    let source = std::fs::read_to_string(file).unwrap_or_default();
    let mark = |end| format!("// task {}: {end}", task.name);
    let behind = source.split(&mark("begin")).nth(1).unwrap_or_default();
    behind.split(&mark("end")).next().unwrap_or_default().to_string()
}

/// The same without comments.
fn code_of(task: &Task) -> String {
    let lines = lines_of(task);
    let code = lines.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.collect::<Vec<_>>().join("\n")
}

/// Whether the line that the starter has in the task's place is still there.
fn still_to_do(task: &Task) -> bool {
    lines_of(task).contains(&format!("// to do: task {}", task.name))
}

/// The beginning of what the compiler says of an error.
fn first_lines(rendered: &str) -> String {
    rendered.split("\n\n").next().unwrap_or_default().trim_end().to_string()
}

/// The file of a program.
const PROGRAM: &str = "sizes.rs";

/// The compiler's code for what fails while it computes a constant.
const ASSERTION: &str = "E0080";

/// A program, and the first error in each of its functions.
struct Compiled {
    functions: Vec<String>,
    errors: BTreeMap<usize, Error>,
}

impl Compiled {
    fn function(&self, nth: usize) -> String {
        self.functions.get(nth).cloned().unwrap_or_default()
    }
}

/// An error of the compiler.
struct Error {
    code: String,
    message: String,
    rendered: String,
}

impl Error {
    /// Whether an error in a constant is in somebody's words, or about a division by a size of 0.
    fn names_a_rule(&self) -> bool {
        match self.message.strip_prefix("evaluation panicked: ") {
            Some(words) => {
                let rust_s_own = [
                    "assertion failed",
                    "assertion `",
                    "explicit panic",
                    "called `",
                    "internal error: ",
                    "not yet implemented",
                    "not implemented",
                ];
                words.contains(' ') && !rust_s_own.iter().any(|own| words.starts_with(own))
            }
            None => self.message.contains("zero"),
        }
    }
}

/// Compiles the sizes that fit, and the others: in one program, since the compiler says for each function what is
/// wrong with it.
fn compile(rule: &Rule) -> io::Result<[Compiled; 2]> {
    let (good, bad): (Vec<_>, Vec<_>) =
        (rule.sizes)().into_iter().partition(|sizes| (rule.fits)(sizes));
    let all = program(rule, &[&good[..], &bad].concat())?;
    let fits = good.len();
    let late = |(nth, error): (&usize, &Error)| {
        *nth >= fits && (rule.refused_by == By::Mismatch || error.code == ASSERTION)
    };
    if all.errors.iter().all(late) {
        let Compiled { mut functions, errors } = all;
        let others = functions.split_off(fits);
        let errors = errors.into_iter().map(|(nth, error)| (nth - fits, error)).collect();
        let good = Compiled { functions, errors: BTreeMap::new() };
        return Ok([good, Compiled { functions: others, errors }]);
    }
    // An error of types hides those of assertions, which come later.
    Ok([program(rule, &good)?, program(rule, &bad)?])
}

/// Compiles a function for each of these sizes.
fn program(rule: &Rule, sizes: &[Vec<usize>]) -> io::Result<Compiled> {
    let out = tempfile::tempdir()?;
    let function =
        |(nth, sizes): (usize, &Vec<usize>)| format!("pub fn size_{nth}{}", (rule.function)(sizes));
    let functions: Vec<String> = sizes.iter().enumerate().map(function).collect();
    // A function a line, and the line says which.
    let imports: String = rule.imports.iter().map(|path| format!("use {path}; ")).collect();
    let program = out.path().join(PROGRAM);
    std::fs::write(&program, format!("{imports}\n{}\n", functions.join("\n")))?;
    let emit = if rule.refused_by == By::Assertion { "obj" } else { "metadata" };
    let output = compiler(&program, emit, out.path())?.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let mut errors = errors(&said);
    if !output.status.success() && errors.is_empty() {
        // What belongs to no function fails all of them.
        let rendered = said.to_string();
        errors.insert(0, Error { code: String::new(), message: String::new(), rendered });
    }
    Ok(Compiled { functions, errors })
}

/// The errors by function, from what the compiler writes as JSON, one message a line. An error in a constant
/// is in the learner's file; the note after it says which function asked for it.
fn errors(said: &str) -> BTreeMap<usize, Error> {
    let mut errors = BTreeMap::new();
    let mut last: Option<Error> = None;
    for message in said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        if message["level"] == "error" {
            last = Some(Error {
                code: text(&message["code"]["code"]),
                message: text(&message["message"]),
                rendered: text(&message["rendered"]),
            });
        }
        let mut spans = message["spans"].as_array().into_iter().flatten();
        let line = spans.find_map(|span| {
            let file = span["file_name"].as_str()?;
            file.ends_with(PROGRAM).then(|| span["line_start"].as_u64()).flatten()
        });
        // Imports are on line 1.
        if let Some(nth) = line.and_then(|line| usize::try_from(line).ok()?.checked_sub(2))
            && let Some(error) = last.take()
        {
            errors.entry(nth).or_insert(error);
        }
    }
    errors
}

fn compiler(program: &Path, emit: &str, out: &Path) -> io::Result<Command> {
    // The autograder stands beside the crates that it was built from.
    let deps = std::env::current_exe()?;
    let deps = deps.parent().ok_or_else(|| io::Error::other("no folder of built crates"))?;
    let mut dependency = std::ffi::OsString::from("dependency=");
    dependency.push(deps);
    let mut learner = std::ffi::OsString::from("exercises=");
    learner.push(newest(deps, "libexercises-")?);
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc
        .args(["--edition=2024", "--crate-type=lib", "--cap-lints=allow", "--error-format=json"])
        .arg(format!("--emit={emit}"))
        .arg("--out-dir")
        .arg(out)
        .arg("-L")
        .arg(dependency)
        .arg("--extern")
        .arg(learner)
        .arg(program)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    Ok(rustc)
}

/// The crate that was built last: it is the one that this program was built with.
fn newest(deps: &Path, name: &str) -> io::Result<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(deps)? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        if file.starts_with(name) && file.ends_with(".rlib") {
            found.push((path.metadata()?.modified()?, path));
        }
    }
    let newest = found.into_iter().max().map(|(_, path)| path);
    newest.ok_or_else(|| io::Error::other(format!("no {name}*.rlib is built")))
}
