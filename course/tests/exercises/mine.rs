//! `cargo course model train --mine`: the learner's components in a model that is trained, beside the library's.

use crate::scratch::{Said, Scratch};

/// A short run of a tiny model with the code of a workspace. (Without optimization: a learner gets the same program with it.)
fn trained(scratch: &Scratch, steps: &str, bug: &str) -> Said {
    let text = scratch.file("LICENSE-APACHE");
    let out = scratch.file("mine");
    let _ = std::fs::remove_dir_all(&out);
    let mut cargo = scratch.cargo();
    cargo.args([
        "run",
        "--quiet",
        "--package",
        "model",
        "--",
        "model",
        "train",
        "--mine",
        "--tiny",
    ]);
    cargo.args(["--steps", steps, "--text"]).arg(text).arg("--out").arg(&out);
    Said::new(cargo.env("BUG", bug).output().unwrap())
}

/// Lines of the norm's solution, and the same lines with bugs that the environment chooses: one build for all.
const CHANGES: [(&str, &str); 2] = [
    (
        "let rms = (mean_square + self.eps as f32).sqrt();",
        r#"let rms = match std::env::var("BUG").as_deref() {
            Ok("eps-outside-root") => mean_square.sqrt() + self.eps as f32,
            Ok("panic") => panic!("some words"),
            _ => (mean_square + self.eps as f32).sqrt(),
        };"#,
    ),
    (
        "let squares = x.with_empty_tape().square();",
        r#"let squares = match std::env::var("BUG").as_deref() {
            Ok("rms-is-constant") => x.with_empty_tape().square().split_tape().0.put_tape(T::default()),
            Ok("groups-of-twice") => x.with_empty_tape().square() * 0.5,
            _ => x.with_empty_tape().square(),
        };"#,
    ),
];

#[test]
fn solutions_give_the_librarys_losses_and_bugs_differ_in_a_step_that_is_named() {
    let scratch = Scratch::with_solutions();
    for (from, to) in CHANGES {
        scratch.change("exercises/src/norm.rs", from, to);
    }
    let said = trained(&scratch, "40", "").ends_with(0);
    assert!(said.out.contains("At every step your parts gave the library's loss"), "{said:#?}");

    for (bug, what) in [
        ("eps-outside-root", "norm of the gradients"),
        ("rms-is-constant", "norm of the gradients"),
        ("groups-of-twice", "loss"),
    ] {
        let said = trained(&scratch, "3", bug).ends_with(1);
        let words = format!("Step 0 is the first that differs. Its {what}:");
        assert!(said.out.contains(&words), "{bug}: {said:#?}");
        assert!(said.out.contains("the library's  "), "{said:#?}");
        assert!(
            scratch.file("mine/step-000000").is_dir() && !scratch.file("mine/loss.svg").exists()
        );
    }

    let said = trained(&scratch, "3", "panic").ends_with(2);
    assert!(said.err.contains("your code panicked in step 0: some words"), "{said:#?}");
}

#[test]
fn code_that_is_not_there_is_named_by_its_task() {
    let scratch = Scratch::with_starters();
    let said = trained(&scratch, "3", "").ends_with(2);
    assert!(said.err.contains("training needs task rope/ratio, which is still"), "{said:#?}");
    assert!(!said.err.contains("panicked at"), "{said:#?}");
    assert!(!scratch.file("mine/step-000000").exists(), "nothing was trained");
}
