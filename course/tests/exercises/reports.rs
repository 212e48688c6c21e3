//! What is said beside the grades: where code does not compile, which mark is gone, and what was printed.

use crate::scratch::{Said, Scratch};
use learner::exercise::source::cut;

const NORM: &str = "exercises/src/norm.rs";

#[test]
fn a_compile_error_is_about_the_file_in_which_it_stands() {
    let scratch = Scratch::with_solutions();
    let reset = |module: &str| format!("cargo course reset {module}`");
    // The autograder calls what is not there any more.
    for (module, from, to) in [
        ("embedding", "f32, D>) -> Self", "f32, D>, _: u8) -> Self"),
        ("parallel", "rank: usize) -> Self", "rank: usize, _: u8) -> Self"),
    ] {
        let file = format!("exercises/src/{module}.rs");
        let text = scratch.read(&file);
        scratch.change(&file, from, to);
        let said = scratch.run(&["check", module]).ends_with(2);
        assert!(said.err.contains(&reset(module)), "{said:#?}");
        assert!(!said.err.contains(&reset("norm")), "{said:#?}");
        // Another task is graded, and the file is named beside it.
        let said = scratch.run(&["check", "2.1"]).ends_with(0);
        assert!(
            said.out.contains("does not compile. Its starter") && said.out.contains(&file),
            "{said:#?}"
        );
        std::fs::write(scratch.file(&file), text).unwrap();
    }
    // Found when the autograder uses it, at a place that is deep in Rust's own library.
    scratch.change(NORM, "GZ > 0 && H % GZ == 0", "GZ > 7 && H % GZ == 0");
    let row = scratch.read(NORM).lines().position(|line| line.contains("GZ > 7")).unwrap() + 1;
    let said = scratch.run(&["check", "2.1"]).ends_with(2);
    assert!(said.err.contains(&format!(" at {NORM}:{row}:")), "{said:#?}");
    assert!(said.err.contains("to do     fix the first error"), "{said:#?}");
}

#[test]
fn a_mark_that_is_gone_is_said_and_grading_goes_on() {
    let scratch = Scratch::with_solutions();
    scratch.change(NORM, "// task norm/forward: begin", "");
    for arguments in [&["check", "2.2"][..], &["check", "2.3"], &[]] {
        let said = scratch.run(arguments).ends_with(0);
        let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        let gone = format!("{NORM}: the line `// task norm/forward: begin` is missing");
        assert_eq!(words.matches(&gone).count(), 1, "{said:#?}");
        assert!(words.contains("`cargo course reset norm`"), "{said:#?}");
        assert!(said.out.contains("  ok      2."), "{said:#?}");
    }
    let said = scratch.run(&["check", "2.1"]).ends_with(0);
    assert!(!said.out.contains("is missing"), "{said:#?}");
}

/// However a task ends, the code's own lines are shown: of many the first and the last.
#[test]
fn what_the_code_prints_is_shown_for_every_ending() {
    let scratch = Scratch::with_solutions();
    let begin = "    // task norm/uniform: begin\n";
    let deep = "#[allow(unconditional_recursion)] fn deep(n: u64) -> u64 { std::hint::black_box([n; 99]); 1 + deep(n + 1) }";
    let endings = [
        ("", "ok "),
        ("if n > 0 { return vec![9.0; n]; }", "expected"),
        ("panic!(\"my panic\");", "panicked: my panic"),
        ("loop {}", "it did not end in 2 seconds"),
        ("std::process::exit(0);", "Look for `exit(0)`"),
        ("std::process::exit(3);", "Look for `exit(3)`"),
        ("std::process::abort();", "Look for `abort`"),
        (&format!("{deep}\n    deep(n as u64);"), "it ran out of stack"),
        ("todo!(\"later\");", "fill in task norm/uniform"),
    ];
    let solution = scratch.read(NORM);
    for (ending, words) in endings {
        let lines = format!(
            "    println!(\"my first line\");\n    for i in 0..50 {{ eprintln!(\"line {{i}}\"); }}\n    \
             println!(\"my last line\");\n    {ending}\n"
        );
        scratch.write(NORM, &solution.replacen(begin, &format!("{begin}{lines}"), 1));
        let mut check = scratch.command(&["check", "norm/uniform"]);
        let said = Said::new(check.env("QUADRIVIUM_SECONDS", "2").output().unwrap());
        let flat = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = flat.contains("my first line")
            && flat.contains("lines left out]")
            && flat.contains("my last line");
        assert!(shown && flat.contains(words), "{ending}: {said:#?}");
        assert!(said.out.lines().count() < 50, "{said:#?}");
    }
    scratch.write(NORM, &solution);
}

/// A million lines take time, and none of a task's own.
#[test]
fn who_prints_much_is_graded_or_told_so() {
    let scratch = Scratch::with_solutions();
    let begin = "    // task norm/uniform: begin\n";
    let prints =
        |times: &str| format!("{begin}    {times} {{ println!(\"one of many lines\"); }}\n");
    let once = "static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| for _ in 0..1_000_000 { println!(\"one of many lines\"); });\n";
    let solution = scratch.read(NORM);
    scratch.write(NORM, &solution.replacen(begin, &format!("{begin}    {once}"), 1));
    let said = scratch.run(&["check", "norm/uniform"]).ends_with(0);
    assert!(said.out.contains("[999,984 lines left out]"), "{said:#?}");
    scratch.write(NORM, &solution.replacen(begin, &prints("loop"), 1));
    let mut check = scratch.command(&["check", "norm/uniform"]);
    let said = Said::new(check.env("QUADRIVIUM_SECONDS", "2").output().unwrap()).ends_with(1);
    assert!(
        said.out.contains("It printed ") && said.out.contains("one of many lines"),
        "{said:#?}"
    );
    scratch.write(NORM, &solution);
}

#[test]
fn what_proptest_says_by_itself_is_not_in_a_report() {
    let scratch = Scratch::with_solutions();
    let begin = "    // task norm/property: begin\n";
    let property = "    use proptest::test_runner::{Config, TestCaseError, TestRunner};
    println!(\"my own line\");
    let config = Config { max_shrink_iters: 1, ..Config::default() };
    let law = |scale: f32| {
        let x = vec![scale, 2.0 * scale];
        let case = interface::NormCase { shape: [1, 1, 2], group_size: 2, eps: 0.5, gamma: vec![1.0; 2], x };
        match norm.forward(&case) {
            Ok(y) if y.iter().all(|y| y.abs() < 2.0) => Ok(()),
            _ => Err(TestCaseError::fail(\"too large\")),
        }
    };
    let outcome = TestRunner::new(config).run(&(1.0f32..100.0), law);
    outcome.map_err(|error| error.to_string())?;
";
    scratch.change(NORM, begin, &format!("{begin}{property}"));
    let said = scratch.run(&["check", "2.7"]).ends_with(0);
    assert!(said.out.contains("my own line"), "{said:#?}");
    assert!(!said.out.contains("proptest:"), "{said:#?}");
}

/// dfdx compares two names there, and says no more.
#[test]
fn a_tensor_on_both_sides_is_told_in_plain_words() {
    let scratch = Scratch::with_solutions();
    let square = "x.with_empty_tape().square()";
    scratch.change(NORM, square, "x.with_empty_tape() * x.with_empty_tape()");
    let said = scratch.run(&["check", "2.2", "2.3"]).ends_with(1);
    let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("as in `x * x`: write `x.square()` (dfdx-0.13"), "{said:#?}");
}

#[test]
fn what_grows_or_waits_without_end_is_not_called_a_loop() {
    let scratch = Scratch::with_solutions();
    let begin = "    // task norm/uniform: begin\n";
    for (code, words) in [
        (
            "let mut all = Vec::new(); loop { all.push(vec![1u8; 1 << 26]); }",
            "it took more than 2 GiB",
        ),
        (
            "loop { std::thread::sleep(std::time::Duration::from_secs(1)); }",
            "Does it wait for something",
        ),
        ("loop {}", "Is there a loop that does not end?"),
        ("std::hint::black_box(vec![1u8; 1 << 46]);", "it asked for more memory than there is"),
    ] {
        scratch.change(NORM, begin, &format!("{begin}    {code}\n"));
        let mut check = scratch.command(&["check", "norm/uniform"]);
        let said = Said::new(check.env("QUADRIVIUM_SECONDS", "3").output().unwrap()).ends_with(1);
        let out = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(out.contains(words), "{code}: {said:#?}");
        scratch.change(NORM, &format!("    {code}\n"), "");
    }
}

/// The way back that the README names keeps the copy's time with some programs, and cargo goes by times.
#[test]
fn a_file_with_an_older_time_is_graded_as_it_is() {
    let scratch = Scratch::with_solutions();
    let file = scratch.file(NORM);
    let kept = scratch.file("kept.rs");
    std::fs::rename(&file, &kept).unwrap();
    scratch.write(NORM, &cut(&scratch.read("exercises/norm/solution.rs")));
    scratch.run(&["check", "2.1"]).ends_with(1);
    std::fs::rename(&kept, &file).unwrap();
    scratch.run(&["check", "2.1"]).ends_with(0);
}

/// A full disk is no mistake of the code's.
#[test]
fn an_answer_that_can_not_be_written_is_no_grade() {
    let scratch = Scratch::with_solutions();
    scratch.run(&["check", "2.1"]).ends_with(0);
    let full = tempfile::tempdir().unwrap();
    let check = scratch.command(&["check"]);
    let mut inside = std::process::Command::new("bwrap");
    inside.args(["--dev-bind", "/", "/", "--size", "65536", "--tmpfs"]).arg(full.path());
    inside.arg(check.get_program()).args(check.get_args());
    let changed = |(name, value)| Some((name, value?));
    inside.envs(check.get_envs().filter_map(changed)).env("TMPDIR", full.path());
    let said = Said::new(inside.env_remove("RUSTFLAGS").output().unwrap());
    assert_ne!(said.code, Some(0), "it was not full: {said:#?}");
    assert!(!said.out.contains("\n  broken"), "{said:#?}");
    assert!(said.out.contains("\n  ?     "), "{said:#?}");
}

#[test]
fn grades_replace_nothing_but_grades() {
    let scratch = Scratch::with_solutions();
    let file = scratch.file(NORM);
    let said = scratch.run(&["check", "2.1", "--json", file.to_str().unwrap()]).ends_with(2);
    assert!(said.err.contains("it holds something else than grades"), "{said:#?}");
    assert!(scratch.read(NORM).contains("// task norm/uniform: begin"));
    let json = scratch.file("new.json");
    for _ in 0..2 {
        scratch.run(&["check", "2.1", "--json", json.to_str().unwrap()]).ends_with(0);
    }
}

/// A learner who keeps the starter's line has answered all the same.
#[test]
fn an_answer_beside_the_line_to_do_is_graded() {
    let scratch = Scratch::with_solutions();
    let text = scratch.read(NORM);
    let [begin, end] = ["begin", "end"].map(|end| format!("// task norm/types: {end}"));
    let lines = text.split(&begin).nth(1).unwrap().split(&end).next().unwrap();
    let late = "\n        // to do: task norm/types, in place of this line\n        assert!(H % GZ == 0, \"late\");\n        ";
    scratch.change(NORM, lines, late);
    let said = scratch.run(&["check", "norm/types"]).ends_with(1);
    assert!(said.out.contains("broken  2.6") && !said.out.contains("to do"), "{said:#?}");
}

#[test]
fn a_file_that_is_gone_or_empty_is_written_by_reset() {
    let scratch = Scratch::with_solutions();
    let solution = scratch.read(NORM);
    scratch.write(NORM, "\n");
    let said = scratch.run(&["check", "norm"]).ends_with(2);
    assert!(said.err.contains("is empty. `cargo course reset norm` writes it"), "{said:#?}");
    scratch.run(&["reset", "norm"]).ends_with(0);
    assert!(scratch.read(NORM).contains("// task norm/uniform: begin"));
    scratch.write(NORM, &solution);
}
