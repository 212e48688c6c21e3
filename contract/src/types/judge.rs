//! What the compiler says of the sizes, as a grade.

use super::programs::{ASSERTION, Compiled, Compiler, compile};
use super::sizes::sizes_of;
use super::{By, Keeps, Rule};
use crate::grade::{Grade, NO_COMPILER, is_todo};
use crate::run::Run;
use crate::task::Task;
use crate::violation::{Fault, Verdict, Violation};

/// Grades a task about types. `file` is the text of the learner's file, and `keeps` judges the invariant that the lines must
/// keep, if there is one. The run's seed draws sizes.
pub fn judge(
    task: &Task,
    rule: &Rule,
    file: &str,
    run: &Run,
    keeps: impl FnOnce(&Keeps) -> (&'static str, Verdict),
    compiler: Compiler,
) -> Grade {
    let mut grade = Grade::new(task);
    if let Some(kept) = &rule.keeps {
        match keeps(kept) {
            (_, Ok(_)) => grade.held.push(kept.id.to_string()),
            (sentence, Err(violation)) if is_todo(&violation) => {
                let what = "these lines call those of another task, which is still to do. Do that one first";
                grade.fail(kept.id, sentence, broken("", what.to_string()));
            }
            (sentence, Err(violation)) => grade.fail(kept.id, sentence, violation),
        }
    }
    let lines = lines_of(task, file);
    match compile(rule, sizes_of(rule, run), compiler) {
        Ok([good, bad]) => {
            for (id, sentence, violation) in [
                ("types/good-compiles", "What fits still compiles.", of_good(&good)),
                (
                    "types/bad-does-not-compile",
                    "What does not fit does not compile, and the compiler says why.",
                    of_bad(&bad, &code_of(lines), rule.refused_by),
                ),
            ] {
                match violation {
                    Some(violation) => grade.fail(id, sentence, violation),
                    None => grade.held.push(id.to_string()),
                }
            }
        }
        Err(error) => {
            let what = format!("rustc can't be run: {error}");
            let sentence = "The programs of the task are compiled against your crate.";
            grade.fail(NO_COMPILER, sentence, broken("", what));
        }
    }
    // The line that the starter has in the task's place. Where it takes the place of all of it, any code has begun the
    // task.
    let to_do = format!("// to do: task {}", task.name);
    let stands_for_all = lines.contains(&format!("{to_do}, in place of this line"));
    let has_begun = stands_for_all && !code_of(lines).trim().is_empty();
    let still_to_do = lines.contains(&to_do) && !has_begun;
    grade.begun = grade.passed || !still_to_do;
    grade
}

fn broken(program: &str, what: String) -> Box<Violation> {
    Violation::new(program, Fault::Broken { what })
}

/// Of sizes that fit: the first that does not compile.
fn of_good(good: &Compiled) -> Option<Box<Violation>> {
    let all = good.functions.len();
    let (&nth, error) = good.errors.first_key_value()?;
    let (failed, first) = (good.errors.len(), first_lines(&error.rendered));
    let what =
        format!("{failed} of {all} functions do not compile, the first of them is this:\n{first}");
    Some(broken("sizes that fit", what).on(good.function(nth)))
}

/// Of sizes that do not fit: the first that compiles, or that is refused for another reason.
fn of_bad(bad: &Compiled, code: &str, by: By) -> Option<Box<Violation>> {
    let all = bad.functions.len();
    let compile: Vec<usize> = (0..all).filter(|nth| !bad.errors.contains_key(nth)).collect();
    if let Some(&nth) = compile.first() {
        let mut what =
            format!("{} of {all} functions compile, the first of them is this", compile.len());
        if by == By::Assertion && compile.len() == all && asserts_at_run_time(code) {
            what += ". An assertion in the body of a function runs when the program runs. In `const { }` it runs \
                     while the program compiles";
        }
        return Some(broken("sizes that do not fit", what).on(bad.function(nth)));
    }
    if by == By::Assertion && code.contains("debug_assert") {
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
            By::Assertion if !error.names_a_rule(bad.has_zero(nth)) => {
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
fn asserts_at_run_time(code: &str) -> bool {
    (code.contains("assert") || code.contains("panic!")) && !code.contains("const {")
}

/// The learner's lines for a task.
fn lines_of<'f>(task: &Task, file: &'f str) -> &'f str {
    let mark = |end| format!("// task {}: {end}", task.name);
    let behind = file.split(&mark("begin")).nth(1).unwrap_or_default();
    behind.split(&mark("end")).next().unwrap_or_default()
}

/// The same without comments.
fn code_of(lines: &str) -> String {
    let code = lines.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.collect::<Vec<_>>().join("\n")
}

/// The beginning of what the compiler says of an error.
fn first_lines(rendered: &str) -> String {
    rendered.split("\n\n").next().unwrap_or_default().trim_end().to_string()
}
