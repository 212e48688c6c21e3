//! The commands around the exercises, as a learner runs them.

use crate::scratch::{Said, Scratch};
use contract::grade::Grade;
use contract::registry::TASKS;
use contract::task::{Grading, Task};
use learner::exercise::Workspace;
use learner::exercise::source::{Source, region, replaced};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// The norm's model solution.
fn norm() -> Source {
    Source::of(&Workspace::find().unwrap(), "norm").unwrap()
}

#[test]
#[ignore = "a learner may have changed the files: .ci/run asks for it"]
fn the_files_in_the_repository_are_the_starters() {
    let workspace = Workspace::find().unwrap();
    for source in Source::all(&workspace).unwrap() {
        let text = workspace.read(&source.file()).unwrap();
        let again = format!("`cargo course reset {}` cuts it again", source.slug);
        assert!(text == source.starter(), "{} is not the starter: {again}", source.file());
    }
}

#[test]
fn starters_fail_every_task_and_the_board_says_so() {
    let scratch = Scratch::with_starters();
    let json = scratch.file("grades.json");
    let said = scratch.run(&["check", "--json", json.to_str().unwrap()]).ends_with(1);
    assert!(said.out.contains("All red is how it starts"), "{said:#?}");
    let grades: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(grades.len(), TASKS.len());
    for grade in &grades {
        assert_eq!(grade["passed"], false, "{grade}");
        assert_eq!(grade["begun"], false, "{grade}");
    }

    let said = scratch.run(&[]).ends_with(0);
    assert!(said.out.contains("next       1.1"), "{said:#?}");
    assert!(said.out.contains("file       exercises/src/embedding.rs:"), "{said:#?}");

    let said = scratch.run(&["diff", "2.2"]).ends_with(1);
    assert!(said.out.contains("Task 2.2 does not pass yet."), "{said:#?}");
    let begin = |line: &str| line.ends_with("// task norm/forward: begin");
    let first = scratch.read("exercises/src/norm.rs").lines().position(begin).unwrap() + 2;
    assert!(said.out.contains(&format!("file       exercises/src/norm.rs:{first}\n")), "{said:#?}");
    let solution = norm().solution_region("norm/forward").unwrap();
    assert!(!said.out.contains(solution.lines().next().unwrap().trim()), "{said:#?}");
}

#[test]
fn solutions_pass_every_task_and_can_be_compared() {
    let scratch = Scratch::with_solutions();
    let said = scratch.run(&["check"]).ends_with(0);
    let tasks = &TASKS;
    assert!(said.out.contains(&format!("{0} of {0} tasks done", tasks.len())), "{said:#?}");
    for task in tasks.iter() {
        let line = |line: &str| line.starts_with(&format!("  ok      {} ", task.number));
        assert!(said.out.lines().any(line), "{}: {said:#?}", task.number);
    }
    let said = scratch.run(&["diff", "2.5"]).ends_with(0);
    assert!(said.out.contains("word for word"), "{said:#?}");
    assert!(said.out.contains("src/norm/formula.rs:"), "{said:#?}");

    scratch.change("exercises/src/norm.rs", "to_dtype::<f32>()).to", "to_dtype::<f32>()) .to");
    let said = scratch.run(&["diff", "2.5"]).ends_with(0);
    assert!(
        said.out.contains("- self.forward") && said.out.contains("+ self.forward"),
        "{said:#?}"
    );
}

/// A task whose place is empty is red, although all the others are solved: nothing else pays for it.
#[test]
fn one_empty_place_is_red() {
    const TODO: &str = "todo!(";
    // Types are there or not: their places are emptied together, one in a component at most. Everything else may be there and
    // not be reached: one build for all, and one place at a time.
    let empty = |source: &Source, of_types: bool| {
        let mut text = source.solution.to_string();
        let tasks = TASKS.iter().filter(|task| task.component == source.slug);
        for place in tasks.map(|task| task.place).collect::<BTreeSet<_>>() {
            let starter = source.starter_region(place).unwrap();
            let region = region(&text, place).unwrap();
            let lines = match (starter.trim_start().starts_with(TODO), of_types) {
                (true, false) => {
                    let asked = "std::env::var(\"EMPTY\").as_deref()";
                    let inner = &text[region.inner.clone()];
                    format!("if {asked} == Ok(\"{place}\") {{ {starter} }}\n{inner}")
                }
                (false, true) => starter,
                _ => continue,
            };
            text = replaced(&text, &region, &lines);
        }
        text
    };
    let is_red = |scratch: &Scratch, task: &Task| {
        let json = scratch.file("grades.json");
        // One that may call it, and does not in the solution, has nothing to wait for.
        let waits =
            |other: &Task| other.needs.contains(&task.place) && other.name != "frequencies/dynamic";
        // All that might call it, so that none is blamed for it without a report that it has to wait.
        let near = |other: &Task| {
            let of = |caller: &Task| caller.component == other.component;
            other.component == task.component || TASKS.iter().any(|one| waits(one) && of(one))
        };
        let asked = |other: &&Task| {
            let calls = matches!(other.grading, Grading::Invariants { .. }) && near(other);
            other.name == task.name || waits(other) || calls
        };
        let asked: Vec<&str> = TASKS.iter().filter(asked).map(|other| other.name).collect();
        let arguments = [&["check", "--json", json.to_str().unwrap()][..], &asked].concat();
        let said = scratch.command(&arguments).env("EMPTY", task.place).output().unwrap();
        let said = Said::new(said).ends_with(1);
        let grades: Vec<Grade> = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
        assert_eq!(grades.len(), asked.len(), "{said:#?}");
        for grade in &grades {
            let of = TASKS.iter().find(|of| of.number == grade.task).unwrap();
            let is_hit = of.place == task.place || waits(of);
            assert_eq!(grade.passed, !is_hit, "{}: {} is empty: {said:#?}", of.name, task.place);
            let types = matches!(of.grading, Grading::Types(_)) || task.place.ends_with("/types");
            assert!(
                !waits(of) || types || grade.waits_for(of) == Some(task.place),
                "{}: {grade:?}",
                of.name
            );
        }
    };
    for of_types in [false, true] {
        let scratch = Scratch::with(|source| empty(source, of_types));
        for task in TASKS.iter().filter(|task| task.place.ends_with("/types") == of_types) {
            is_red(&scratch, task);
        }
    }
}

#[test]
fn bad_input_is_refused_before_anything_is_built() {
    let scratch = Scratch::with_starters();
    // Nothing can be built here, so nothing was, if the message is the right one.
    let run = |arguments: &[&str]| {
        Said::new(scratch.command(arguments).env("CARGO", "/no/cargo").output().unwrap())
    };
    for command in ["check", "hint", "diff", "reset"] {
        let said = run(&[command, "9.9"]).ends_with(2);
        assert!(said.err.contains("no task is called \"9.9\""), "{said:#?}");
        for label in ["rule ", "expected ", "got ", "to do "] {
            assert!(said.err.lines().any(|line| line.starts_with(label)), "{said:#?}");
        }
        assert!(said.out.is_empty());
    }
    let said = run(&["check", "norm", "9.9"]).ends_with(2);
    assert!(said.err.contains("no task is called \"9.9\""), "{said:#?}");
    let said = run(&["hint", "norm"]).ends_with(2);
    assert!(said.err.contains("names several tasks"), "{said:#?}");
    for path in ["/no/such/folder/grades.json", std::env::temp_dir().to_str().unwrap()] {
        let said = run(&["check", "--json", path]).ends_with(2);
        assert!(said.err.contains("nothing was graded") && said.err.contains(path), "{said:#?}");
    }
    let said = run(&["check", "2.1"]).ends_with(2);
    assert!(said.err.contains("cargo can't build"), "{said:#?}");
}

/// Without cargo, it is the folder that a program is called in that says which copy of the course is meant.
#[test]
fn a_program_works_where_it_is_called() {
    let outside = tempfile::tempdir().unwrap();
    let hint = |folder: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_course"));
        command.args(["hint", "2.2"]).current_dir(folder);
        command.env_remove("QUADRIVIUM_ROOT").env_remove("CARGO_MANIFEST_DIR");
        Said::new(command.output().unwrap())
    };
    let scratch = Scratch::with_starters();
    for folder in ["", "exercises", "notebooks"] {
        let hints = "exercises/norm/hints/forward.md";
        assert!(hint(&scratch.file(folder)).ends_with(0).out.contains("2.2"), "{folder}");
        let words = scratch.read(hints);
        scratch.write(hints, &words.replace("A group", "Of this copy: a group"));
        let said = hint(&scratch.file(folder)).ends_with(0);
        scratch.write(hints, &words);
        assert!(said.out.contains("Of this copy"), "{said:#?}");
    }
    let said = hint(outside.path()).ends_with(2);
    assert!(said.err.contains("the course is not found from here"), "{said:#?}");
    assert!(said.err.contains("to do     run `cargo course` in that folder"), "{said:#?}");
}

#[test]
fn code_that_does_not_compile_is_told_with_its_first_error() {
    let scratch = Scratch::with_starters();
    let file = "exercises/src/norm.rs";
    scratch.change(file, "todo!(\"task norm/uniform\")", "let a: u32 = \"one\";\n    Vec::new()");
    scratch.change(file, "todo!(\"task norm/half\")", "nothing_of_this_name");
    let row = scratch.read(file).lines().position(|line| line.contains("let a: u32")).unwrap() + 1;
    let json = scratch.file("none.json");
    let _ = std::fs::remove_file(&json);
    let said = scratch.run(&["check", "2.2", "--json", json.to_str().unwrap()]).ends_with(2);
    for words in [
        "no task of exercises/src/norm.rs can be graded until it compiles".to_string(),
        "got       2 errors, the first at exercises/src/norm.rs:".to_string(),
        "There is 1 more error.".to_string(),
    ] {
        assert!(said.err.contains(&words), "{words}: {said:#?}");
    }
    // rustc looks for names before types.
    let other = scratch.read(file).lines().position(|l| l.contains("nothing_of")).unwrap() + 1;
    let at = |row: usize| said.err.contains(&format!("{file}:{row}:"));
    assert!(at(row) || at(other), "{said:#?}");
    let graded: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(graded[0]["broken"][0]["id"], "autograder/compiles", "{graded}");

    let said = scratch.run(&[]).ends_with(0);
    assert!(said.out.contains("norm.rs can be graded until it compiles"), "{said:#?}");

    // The autograder calls what the starter names.
    scratch.run(&["reset", "norm"]).ends_with(0);
    scratch.change(file, "pub fn uniform(", "pub fn uniform_values(");
    let said = scratch.run(&["check", "2.1"]).ends_with(2);
    assert!(said.err.contains("cargo course reset norm"), "{said:#?}");
}

/// One file that does not compile hides none of the others.
#[test]
fn what_compiles_is_graded() {
    let scratch = Scratch::with_solutions();
    for file in ["norm", "rope"] {
        scratch.change(
            &format!("exercises/src/{file}.rs"),
            "use crate::prelude::*;",
            "use crate::nothing;",
        );
    }
    let json = scratch.file("grades.json");
    let said = scratch.run(&["check", "--json", json.to_str().unwrap()]).ends_with(2);
    assert!(said.err.contains("no task of exercises/src/norm.rs can be graded"), "{said:#?}");
    let grades: Vec<Value> = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(grades.len(), TASKS.len());
    for (grade, task) in grades.iter().zip(TASKS.iter()) {
        // A model is made of these two, but its sampler is not.
        let waits = task.component == "model" && task.name != "model/sample";
        let compiles = !["norm", "rope"].contains(&task.component) && !waits;
        assert_eq!(grade["task"], task.number, "they come in their order");
        assert_eq!(grade["passed"], compiles, "{grade}");
    }
    // What is asked for compiles, so the rest does not matter.
    scratch.run(&["check", "embedding"]).ends_with(0);
    let said = scratch.run(&["diff", "rope/rotate"]).ends_with(2);
    assert!(said.err.contains("no task of exercises/src/rope.rs can be graded"), "{said:#?}");
    // A file is not blamed for what another one does not have any more.
    let scratch = {
        drop(scratch);
        Scratch::with_solutions()
    };
    scratch.change("exercises/src/embedding.rs", "pub fn check_ids(", "pub fn check_the_ids(");
    let said = scratch.run(&["check", "parallel"]).ends_with(1);
    assert!(said.out.contains("exercises/src/embedding.rs does not compile"), "{said:#?}");
    // These two call functions of the other file.
    let line = |task: &str, mark: &str| said.out.contains(&format!("  {mark}  {task}   "));
    assert!(line("4.1", "ok    ") && line("4.4", "ok    "), "{said:#?}");
    assert!(line("4.2", "waits ") && line("4.3", "waits "), "{said:#?}");
    scratch.run(&["check", "embedding"]).ends_with(2);
    // The board says both: what is graded, and what does not compile.
    let said = scratch.run(&[]).ends_with(0);
    assert!(said.out.contains("ok      2.1") && said.out.contains("error: the code"), "{said:#?}");
}

/// Nor does one that is no Rust at all.
#[test]
fn what_can_be_read_is_graded() {
    let scratch = Scratch::with_solutions();
    let file = "exercises/src/rope.rs";
    std::fs::write(scratch.file(file), b"// a letter of Latin-1: \xe9\n").unwrap();
    let said = scratch.run(&["check", "rope"]).ends_with(2);
    assert!(said.err.contains("exercises/src/rope.rs is not UTF-8"), "{said:#?}");
    scratch.run(&["check", "norm"]).ends_with(0);
    std::fs::remove_file(scratch.file(file)).unwrap();
    scratch.run(&["check", "norm"]).ends_with(0);
}

/// The code that passes races, with the one of PyTorch that was measured; the code that does not is named and stays
/// out, also where it does not compile.
#[test]
fn what_passes_may_race() {
    let scratch = Scratch::with(|source| match source.slug {
        "norm" => source.solution.to_string(),
        "embedding" => format!("{}\nfn broken( {{", source.solution),
        _ => source.starter(),
    });
    let folder = scratch.file("races");
    let _ = std::fs::remove_dir_all(&folder);
    for (component, races) in [("norm", true), ("embedding", false)] {
        let said = scratch.run(&["bench", component, "--out", folder.to_str().unwrap()]);
        let said = said.ends_with(0);
        for implementation in ["copy", "fused", "composed", "PyTorch"] {
            assert!(said.out.contains(implementation), "{component}: {implementation}: {said:#?}");
        }
        let bar = said.out.lines().any(|line| line.trim_start().starts_with("yours"));
        assert_eq!(bar, races, "{component}: {said:#?}");
        assert_eq!(!said.out.contains("Yours is not here yet"), races, "{component}: {said:#?}");
        let figure = std::fs::read_to_string(folder.join(format!("{component}.svg"))).unwrap();
        assert_eq!(figure.contains("yours"), races, "{component}");
    }
}

/// The smallest model takes seconds once it is built.
#[test]
fn a_token_is_measured() {
    let scratch = Scratch::with_starters();
    let folder = scratch.file("tokens");
    let arguments = ["bench", "token", "--size", "1M", "--out", folder.to_str().unwrap()];
    let said = scratch.run(&arguments).ends_with(0);
    let words = ["853,120", "f32", "bf16", "int8", "int4"];
    assert!(words.iter().all(|word| said.out.contains(word)), "{said:#?}");
    let figure = std::fs::read_to_string(folder.join("token.svg")).unwrap();
    assert!(figure.contains("Does a token wait for memory"));
}

#[test]
fn reset_restores_and_keeps_a_copy() {
    let scratch = Scratch::with_starters();
    let file = "exercises/src/norm.rs";
    let starter = scratch.read(file);
    scratch.change(file, "todo!(\"task norm/uniform\")", "vec![0.0; n] // mine");
    scratch.change(file, "todo!(\"task norm/half\")", "x // kept");
    let mine = scratch.read(file);

    let reader = std::fs::File::open(scratch.file(file)).unwrap();
    let said = scratch.run(&["reset", "2.1"]).ends_with(0);
    // Written over, the file would be empty for a moment, and stay so if the command is ended then.
    assert_eq!(std::io::read_to_string(reader).unwrap(), mine);
    assert!(said.out.contains("exercises/backups/norm-1.rs"), "{said:#?}");
    assert_eq!(scratch.read("exercises/backups/norm-1.rs"), mine);
    assert_eq!(
        scratch.read(file),
        mine.replace("vec![0.0; n] // mine", "todo!(\"task norm/uniform\")")
    );

    scratch.run(&["reset", "norm"]).ends_with(0);
    assert_eq!(scratch.read(file), starter);
    assert!(scratch.read("exercises/backups/norm-2.rs").contains("x // kept"));

    // `norm/tape` looks at what `norm/forward` wrote.
    scratch.change(file, "todo!(\"task norm/forward\")", "x");
    scratch.run(&["reset", "norm/tape"]).ends_with(0);
    assert_eq!(scratch.read(file), starter);

    scratch.change(file, "// task norm/backward: end", "");
    let broken = scratch.read(file);
    let said = scratch.run(&["reset", "2.4"]).ends_with(2);
    assert!(said.err.contains("`// task norm/backward: end` is missing"), "{said:#?}");
    assert!(said.err.contains("cargo course reset norm"), "{said:#?}");
    assert_eq!(scratch.read(file), broken);
}

#[test]
fn several_names_are_one_command() {
    let scratch = Scratch::with_starters();
    let file = "exercises/src/norm.rs";
    let starter = scratch.read(file);
    scratch.change(file, "todo!(\"task norm/uniform\")", "vec![0.0; n] // mine");
    scratch.change(file, "todo!(\"task norm/half\")", "x // mine");
    let mine = scratch.read(file);
    // Nothing is changed if one of them can't be.
    scratch.run(&["reset", "norm/uniform", "norm/hafl"]).ends_with(2);
    assert_eq!(scratch.read(file), mine);
    scratch.run(&["reset", "norm/uniform", "2.5", "embedding"]).ends_with(0);
    assert_eq!(scratch.read(file), starter);

    let said = scratch.run(&["check", "2.2", "loss", "norm/forward", "rope/ratio"]).ends_with(1);
    let line = |number: &str| said.out.matches(&format!("  to do   {number} ")).count();
    let shown = ["2.2", "5.7", "8.1", "8.4"].map(line);
    assert_eq!((shown, line("2.1")), ([1; 4], 0), "{said:#?}");
    assert!(said.out.contains("0 of 6 tasks done"), "{said:#?}");
    let said = scratch.run(&["check", "norm", "9.9"]).ends_with(2);
    assert!(said.err.contains("no task is called \"9.9\""), "{said:#?}");
    let said = scratch.run(&["diff", "2.1", "2.2"]).ends_with(1);
    assert_eq!(said.out.matches("does not pass yet").count(), 2, "{said:#?}");
}

/// A file that is gone, empty, or cut off in the middle.
#[test]
fn a_file_that_is_not_whole_is_told_in_few_words() {
    let scratch = Scratch::with_starters();
    let file = "exercises/src/norm.rs";
    let half = scratch.read(file);
    let half = &half[..half.len() / 2];
    for (text, marks) in [("", 0), (half, 0)] {
        std::fs::write(scratch.file(file), text).unwrap();
        let said = scratch.run(&["check", "norm"]).ends_with(2);
        assert!(said.err.contains(file) && said.err.contains("to do "), "{said:#?}");
        assert_eq!(said.out.matches("is missing").count(), marks, "{said:#?}");
    }
    // It compiles, and all marks of it are gone.
    let marked = norm().starter();
    let bare: String = marked
        .lines()
        .filter(|line| !line.contains("// task "))
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(scratch.file(file), bare).unwrap();
    let said = scratch.run(&["check", "norm"]).ends_with(1);
    assert_eq!(said.out.matches("cargo course reset norm`").count(), 1, "{said:#?}");
    std::fs::remove_file(scratch.file(file)).unwrap();
    for command in ["reset", "diff"] {
        let said = scratch.run(&[command, "norm/uniform"]).ends_with(2);
        assert!(said.err.contains("cargo course reset norm`"), "{said:#?}");
    }
    scratch.run(&["reset", "norm"]).ends_with(0);
    assert_eq!(scratch.read(file), marked);
}

#[test]
fn hints_come_in_tiers() {
    let scratch = Scratch::with_starters();
    let said = scratch.run(&["hint", "2.2"]).ends_with(0);
    assert!(said.out.contains("Hint 1 of 3: Idea"), "{said:#?}");
    assert!(said.out.trim_end().ends_with("more: cargo course hint 2.2 2"), "{said:#?}");
    let said = scratch.run(&["hint", "2.2", "3"]).ends_with(0);
    assert!(said.out.contains("reshape_like"), "{said:#?}");
    assert!(said.out.contains("That was the last one."), "{said:#?}");
    scratch.run(&["hint", "2.2", "4"]).ends_with(2);
}

/// A process that ends with its test, also with one that fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_save_is_graded_also_during_a_run() {
    let scratch = Scratch::with_starters();
    let norm = norm();
    let mut command = scratch.command(&["check", "2.1", "--watch"]);
    // No limit ends a loop here.
    command.env("QUADRIVIUM_SECONDS", "1000000");
    let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut watcher = Running(command.spawn().unwrap());
    let printed = BufReader::new(watcher.0.stdout.take().unwrap()).lines().map_while(Result::ok);
    let (tell, told) = channel();
    std::thread::spawn(move || printed.for_each(|line| tell.send(line).unwrap_or_default()));
    // A save that is never graded ends the test, too. The first build takes minutes.
    let mut lines = std::iter::from_fn(|| told.recv_timeout(Duration::from_secs(600)).ok());
    let mut verdict = || -> String {
        let verdict = lines.find(|line| line.contains("2.1   ")).expect("it goes on");
        lines.find(|line| line.starts_with("waiting for the next save")).expect("it waits");
        verdict
    };
    assert!(verdict().starts_with("  to do"));

    let starter = scratch.read(&norm.file());
    let place = region(&starter, "norm/uniform").unwrap();
    let save = |lines: &str| {
        std::fs::write(scratch.file(&norm.file()), replaced(&starter, &place, lines)).unwrap();
    };
    save("    vec![0.0; n]\n");
    // The compiler is at work on the first save now.
    std::thread::sleep(Duration::from_millis(700));
    save(&norm.solution_region("norm/uniform").unwrap());
    // The first save is graded too if the compiler was quicker.
    let passed = (0..3).any(|_| verdict().starts_with("  ok"));
    assert!(passed, "the second save was not graded");

    // A save ends the run before it, and the process of each of its tasks.
    let id = scratch.file("target-id");
    let _ = std::fs::remove_file(&id);
    let told = format!("std::fs::write({id:?}, std::process::id().to_string()).unwrap();");
    save(&format!("    {told}\n    loop {{}}\n"));
    let within = |what: &str, done: &dyn Fn() -> bool| {
        let begun = (0..6000).any(|_| {
            done() || {
                std::thread::sleep(Duration::from_millis(100));
                false
            }
        });
        assert!(begun, "{what}");
    };
    let process = || std::fs::read_to_string(&id).ok().filter(|id| !id.is_empty());
    within("the loop begins", &|| process().is_some());
    save(&norm.solution_region("norm/uniform").unwrap());
    assert!(verdict().starts_with("  ok"));
    let stat = format!("/proc/{}/stat", process().unwrap());
    // No one may have asked how it ended.
    within("the loop ends", &|| {
        std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "))
    });
    std::fs::remove_file(id).unwrap();
}

/// A clone that git has given Windows' line ends, as it could before `.gitattributes` forbade it.
#[test]
fn line_ends_of_another_system_change_nothing() {
    let scratch = Scratch::with_solutions();
    let texts = ["exercises/src/norm.rs", "exercises/norm/solution.rs"];
    let hints = ["forward", "uniform"].map(|name| format!("exercises/norm/hints/{name}.md"));
    let names = || texts.into_iter().chain(hints.iter().map(String::as_str));
    let commands = [
        &["hint", "norm/forward"][..],
        &["hint", "norm/uniform", "3"],
        &["check", "norm/uniform"],
        &["diff", "norm/uniform"],
        &["reset", "norm/uniform"],
        &["check", "norm/uniform"],
        &["reset", "norm"],
    ];
    let said = || {
        let _ = std::fs::remove_dir_all(scratch.file("exercises/backups"));
        commands.map(|arguments| {
            let Said { code, out, err } = scratch.run(arguments);
            (code, out, err)
        })
    };
    let before: Vec<String> = names().map(|name| scratch.read(name)).collect();
    let usual = said();
    for (name, text) in names().zip(&before) {
        scratch.write(name, &text.replace('\n', "\r\n"));
    }
    let windows = said();
    let starter = scratch.read(texts[0]);
    // The tests that follow find them as they were.
    names().zip(&before).for_each(|(name, text)| scratch.write(name, text));
    scratch.run(&["reset", "norm"]).ends_with(0);
    assert_eq!(windows, usual);
    assert_eq!(starter.replace("\r\n", "\n"), scratch.read(texts[0]));
    assert_eq!(starter.matches('\n').count(), starter.matches("\r\n").count());
}
