//! Mutants of the solutions: every small change that a machine can make, one at a time and two at once.
//!
//! Each that compiles is graded. One that passes is either as right as the solution, and `equivalent.toml` says
//! why, or it is a hole in the contract. A few are graded in each run. All of them (an hour):
//! `QUADRIVIUM_MUTANTS=1 cargo test -p course --test exercises mutants`. Instead of `1` you can name a component or
//! a task. What a component comes to is kept in `snapshots/`.

mod generate;

use crate::scratch::Scratch;
use contract::registry::{self, COMPONENTS, Entry};
use contract::task::{Grading, Task};
use generate::Mutant;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;

#[derive(Deserialize)]
struct Equivalents {
    equivalent: Vec<Equivalent>,
}

/// Mutants that are as right as the solution.
#[derive(Deserialize)]
struct Equivalent {
    /// Why.
    because: String,
    /// Their words.
    mutants: Vec<String>,
}

/// One in so many is graded if not all are: a dozen, and the same ones as long as their words are.
const SAMPLE: u64 = 1038;

/// What a task came to: mutants that compile, of these caught, of the others equivalent.
#[derive(Default)]
struct Count {
    compile: usize,
    caught: usize,
    equivalent: usize,
}

#[test]
fn mutants_are_caught() {
    let scratch = Scratch::with_solutions();
    let table = std::fs::read_to_string(Path::new("tests/exercises/mutants/equivalent.toml"));
    let table: Equivalents = toml::from_str(&table.unwrap()).unwrap();
    assert!(table.equivalent.iter().all(|of| of.because.contains(' ')), "a reason is a sentence");
    let equivalent = |words: &str| {
        table.equivalent.iter().any(|of| of.mutants.iter().any(|mutant| mutant == words))
    };
    let all = std::env::var("QUADRIVIUM_MUTANTS").ok();
    let is_of = |task: &str| {
        all.as_deref()
            .is_none_or(|of| of == "1" || of == task || task.starts_with(&format!("{of}/")))
    };
    let step = if all.is_some() { 1 } else { SAMPLE };
    let drawn = |entry: &Entry| {
        let source = scratch.read(&format!("exercises/{}/solution.rs", entry.slug));
        let mut mutants = generate::mutants(&source);
        mutants.extend(generate::pairs(&mutants));
        // By its words, so that a change of one solution chooses no others of the rest.
        let is_drawn = |mutant: &Mutant| {
            let mut hasher = DefaultHasher::new();
            mutant.words(&source).hash(&mut hasher);
            hasher.finish().is_multiple_of(step)
        };
        let chosen = mutants.into_iter().filter(|mutant| is_of(&mutant.task) && is_drawn(mutant));
        let chosen: Vec<Mutant> = chosen.collect();
        (source, chosen)
    };
    let mut drawn: Vec<_> = COMPONENTS.iter().map(|entry| (entry, drawn(entry))).collect();
    drawn.retain(|(_, (_, chosen))| !chosen.is_empty());
    // If a solution did not pass, every mutant of it would be caught.
    let program = build(&scratch).expect("the solutions compile");
    for (entry, (_, chosen)) in &drawn {
        assert!(!is_caught(&program, entry.slug, &chosen[0].task), "{} passes", entry.slug);
    }
    let mut survivors = Vec::new();
    for (entry, (source, chosen)) in drawn {
        println!("{}: {} changes", entry.slug, chosen.len());
        let mut counts: BTreeMap<String, Count> = BTreeMap::new();
        let survived = survivors.len();
        for (mutant, caught) in grade(&scratch, entry.slug, &source, chosen) {
            let words = mutant.words(&source);
            let count = counts.entry(mutant.task).or_default();
            count.compile += 1;
            match caught {
                true => {
                    assert!(
                        !equivalent(&words),
                        "it is caught, and so it is not equivalent: {words}"
                    );
                    count.caught += 1;
                }
                false if equivalent(&words) => count.equivalent += 1,
                false => survivors.push(words),
            }
        }
        let table = table_of(&counts);
        println!("{table}");
        if survivors.len() == survived
            && all.as_deref().is_some_and(|of| ["1", entry.slug].contains(&of))
        {
            insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => "../../../../snapshots", omit_expression => true }, {
                insta::assert_snapshot!(format!("solutions-{}", entry.slug), table);
            });
        }
    }
    assert!(survivors.is_empty(), "{} survived: {survivors:#?}", survivors.len());
}

/// A line a task, and their sum.
fn table_of(counts: &BTreeMap<String, Count>) -> String {
    let mut text = format!("{:<28} mutants  caught  equivalent\n", "task");
    let mut line = |task: &str, Count { compile, caught, equivalent }: &Count| {
        writeln!(text, "{task:<28} {compile:>7} {caught:>7} {equivalent:>11}").unwrap();
    };
    counts.iter().for_each(|(task, count)| line(task, count));
    let sum = |of: fn(&Count) -> usize| counts.values().map(of).sum();
    let all = Count {
        compile: sum(|of| of.compile),
        caught: sum(|of| of.caught),
        equivalent: sum(|of| of.equivalent),
    };
    line("all", &all);
    text
}

/// Those that compile, each with whether a task of its component fails. One is graded while the next is built.
fn grade(
    scratch: &Scratch,
    component: &str,
    source: &str,
    mutants: Vec<Mutant>,
) -> Vec<(Mutant, bool)> {
    let file = format!("exercises/src/{component}.rs");
    let (built, to_grade) = mpsc::sync_channel::<(Mutant, PathBuf)>(1);
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        let grader = tell.clone();
        scope.spawn(move || {
            for (mutant, program) in to_grade {
                let caught = is_caught(&program, component, &mutant.task);
                if !caught {
                    println!("passed: {}", mutant.words(source));
                }
                std::fs::remove_file(program).unwrap();
                grader.send((mutant, caught)).unwrap();
            }
        });
        for (nth, mutant) in mutants.into_iter().enumerate() {
            scratch.write(&file, &mutant.text(source));
            let Some(program) = build(scratch) else { continue };
            if mutant.task.ends_with("/types") {
                // It looks for the crates that are beside it.
                let caught = is_caught(&program, component, &mutant.task);
                tell.send((mutant, caught)).unwrap();
            } else {
                // Beside it, where its library is.
                let copy = program.with_file_name(format!("mutant-{nth}"));
                std::fs::copy(program, &copy).unwrap();
                built.send((mutant, copy)).unwrap();
            }
        }
        drop((built, tell));
    });
    scratch.solve(component);
    told.into_iter().collect()
}

/// The autograder, if it compiles.
fn build(scratch: &Scratch) -> Option<PathBuf> {
    let mut cargo = scratch.cargo();
    cargo.args(["test", "--package", "exercises", "--test", "autograder", "--no-run"]);
    let output = cargo.args(["--message-format=json"]).stderr(Stdio::null()).output().unwrap();
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages =
        text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut programs = messages.filter(|message| message["target"]["name"] == "autograder");
    programs.find_map(|message| Some(message["executable"].as_str()?.into()))
}

/// Whether its own task fails, or another one of its component.
fn is_caught(program: &Path, component: &str, task: &str) -> bool {
    let red = |arguments: &[&str]| {
        let mut autograder = Command::new(program);
        autograder.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        !autograder.status().unwrap().success()
    };
    let of_others = |task: &&Task| !matches!(task.grading, Grading::Invariants { .. });
    let tasks = registry::component(component).expect("it is in the registry").tasks();
    let skipped = tasks.filter(of_others).flat_map(|task| ["--skip", task.name]);
    let arguments: Vec<&str> = [component].into_iter().chain(skipped).collect();
    red(&[task]) || red(&arguments)
}
