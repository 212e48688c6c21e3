//! What is said beside the grades: where code does not compile, which mark is gone, and what was printed.

use crate::scratch::Scratch;

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
        let said = scratch.run(&["check", "1.1"]).ends_with(0);
        assert!(
            said.out.contains("does not compile. Its starter") && said.out.contains(&file),
            "{said:#?}"
        );
        std::fs::write(scratch.file(&file), text).unwrap();
    }
    // Found when the autograder uses it, at a place that is deep in Rust's own library.
    scratch.change(NORM, "GZ > 0 && H % GZ == 0", "GZ > 7 && H % GZ == 0");
    let row = scratch.read(NORM).lines().position(|line| line.contains("GZ > 7")).unwrap() + 1;
    let said = scratch.run(&["check", "1.1"]).ends_with(2);
    assert!(said.err.contains(&format!(" at {NORM}:{row}:")), "{said:#?}");
    assert!(said.err.contains("to do     mend the first error"), "{said:#?}");
}

#[test]
fn a_mark_that_is_gone_is_said_and_grading_goes_on() {
    let scratch = Scratch::with_solutions();
    scratch.change(NORM, "// task norm/forward: begin", "");
    for arguments in [&["check", "1.2"][..], &["check", "1.3"], &[]] {
        let said = scratch.run(arguments).ends_with(0);
        let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        let gone = format!("{NORM}: the line `// task norm/forward: begin` is missing");
        assert_eq!(words.matches(&gone).count(), 1, "{said:#?}");
        assert!(words.contains("`cargo course reset norm`"), "{said:#?}");
        assert!(said.out.contains("  ok      1."), "{said:#?}");
    }
    let said = scratch.run(&["check", "1.1"]).ends_with(0);
    assert!(!said.out.contains("is missing"), "{said:#?}");
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
        let case = party::NormCase { shape: [1, 1, 2], group_size: 2, eps: 0.5, gamma: vec![1.0; 2], x };
        match norm.forward(&case) {
            Ok(y) if y.iter().all(|y| y.abs() < 2.0) => Ok(()),
            _ => Err(TestCaseError::fail(\"too large\")),
        }
    };
    let outcome = TestRunner::new(config).run(&(1.0f32..100.0), law);
    outcome.map_err(|error| error.to_string())?;
";
    scratch.change(NORM, begin, &format!("{begin}{property}"));
    let said = scratch.run(&["check", "1.7"]).ends_with(0);
    assert!(said.out.contains("my own line"), "{said:#?}");
    assert!(!said.out.contains("proptest:"), "{said:#?}");
}
