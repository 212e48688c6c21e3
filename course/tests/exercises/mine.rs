//! `cargo course model train --mine`: the learner's components in a model that is trained, beside the library's.

use crate::scratch::{Said, Scratch};
use learner::exercise::source::cut;

/// What `cargo course model` does with the code of a workspace. (Without optimization: a learner gets the same program with
/// it.)
fn model(scratch: &Scratch, bug: &str, arguments: &[&str]) -> Said {
    let mut cargo = scratch.cargo();
    cargo.args(["run", "--quiet", "--package", "mine", "--", "model"]).args(arguments);
    Said::new(cargo.env("BUG", bug).output().unwrap())
}

/// A short run of a tiny model.
fn trained(scratch: &Scratch, steps: &str, bug: &str) -> Said {
    let (text, out) = (scratch.file("LICENSE-APACHE"), scratch.file("mine"));
    let _ = std::fs::remove_dir_all(&out);
    let (text, out) = (text.to_str().unwrap(), out.to_str().unwrap());
    let files = ["--text", text, "--out", out];
    model(scratch, bug, &[&["train", "--mine", "--tiny", "--steps", steps], &files[..]].concat())
}

/// What the model of such a run writes.
fn written(scratch: &Scratch, bug: &str, arguments: &[&str]) -> Said {
    let out = scratch.file("mine");
    let model_of = ["--model", out.to_str().unwrap(), "--prompt", "The", "--tokens", "40"];
    model(scratch, bug, &[&["generate"], &model_of[..], arguments].concat())
}

/// Lines of the solutions, and the same lines with bugs that the environment chooses: one build for all.
const CHANGES: [(&str, &str, &str); 6] = [
    (
        "norm",
        "let rms = (mean_square + self.eps as f32).sqrt();",
        r#"let rms = match std::env::var("BUG").as_deref() {
            Ok("eps-outside-root") => mean_square.sqrt() + self.eps as f32,
            Ok("panic") => panic!("some words"),
            _ => (mean_square + self.eps as f32).sqrt(),
        };"#,
    ),
    (
        "norm",
        "let squares = x.with_empty_tape().square();",
        r#"let squares = match std::env::var("BUG").as_deref() {
            Ok("rms-is-constant") => x.with_empty_tape().square().split_tape().0.put_tape(T::default()),
            Ok("groups-of-twice") => x.with_empty_tape().square() * 0.5,
            _ => x.with_empty_tape().square(),
        };"#,
    ),
    (
        "attention",
        "let scores = q.matmul(k) / (hd as f32).sqrt();",
        r#"let scores = match std::env::var("BUG").as_deref() {
            Ok("not-scaled") => q.matmul(k),
            _ => q.matmul(k) / (hd as f32).sqrt(),
        };"#,
    ),
    (
        "loss",
        "Ok(found.sum::<Rank0, _>() / -(n as f32))",
        r#"let n = n + usize::from(std::env::var("BUG").as_deref() == Ok("one-too-many"));
        Ok(found.sum::<Rank0, _>() / -(n as f32))"#,
    ),
    (
        "model",
        "order.truncate(top_k.unwrap_or(usize::MAX));",
        r#"order.truncate(top_k.unwrap_or(usize::MAX));
        if std::env::var("BUG").as_deref() == Ok("always-the-first") {
            return Ok(order[0]);
        }
        assert!(std::env::var("BUG").as_deref() != Ok("sample-panics"), "some words");"#,
    ),
    (
        "attention",
        "let seen = dev.tensor_from_vec(causal_mask(s, t - s), (s, t));",
        r#"let p = if std::env::var("BUG").as_deref() == Ok("no-past") { 0 } else { t - s };
        let mask = causal_mask(s, p).into_iter().chain(std::iter::repeat(false));
        let seen = dev.tensor_from_vec(mask.take(s * t).collect(), (s, t));"#,
    ),
];

#[test]
fn solutions_give_the_librarys_losses_and_bugs_differ_in_a_step_that_is_named() {
    let scratch = Scratch::with_solutions();
    for (component, from, to) in CHANGES {
        scratch.change(&format!("exercises/src/{component}.rs"), from, to);
    }
    let said = trained(&scratch, "40", "").ends_with(0);
    assert!(said.out.contains("yours       the whole model and its loss"), "{said:#?}");
    assert!(said.out.contains("At every step your parts gave the library's loss"), "{said:#?}");

    // The learner's decoding, cache and sampling write what the library's do.
    for sampling in [&["--temperature", "0"][..], &["--top-k", "9", "--top-p", "0.9"]] {
        let library = written(&scratch, "", sampling).ends_with(0);
        let mine = written(&scratch, "", &[sampling, &["--mine"]].concat()).ends_with(0);
        assert!(mine.out.len() > 40, "{mine:#?}");
        assert_eq!(mine.out, library.out);
    }
    let library = written(&scratch, "", &[]).ends_with(0);
    for bug in ["always-the-first", "no-past"] {
        assert_ne!(written(&scratch, bug, &["--mine"]).ends_with(0).out, library.out, "{bug}");
    }
    let said = written(&scratch, "sample-panics", &["--mine"]).ends_with(2);
    assert!(said.err.contains("your code panicked at position 3: some words"), "{said:#?}");

    for (bug, what) in [
        ("eps-outside-root", "norm of the gradients"),
        ("rms-is-constant", "norm of the gradients"),
        ("groups-of-twice", "loss"),
        ("not-scaled", "norm of the gradients"),
        ("one-too-many", "loss"),
    ] {
        let said = trained(&scratch, "3", bug).ends_with(1);
        let words = format!("Step 0 is the first that differs. Its {what}:");
        assert!(said.out.contains(&words), "{bug}: {said:#?}");
        assert!(said.out.contains("the library's  "), "{said:#?}");
        assert!(
            scratch.file("mine/step-000000").is_dir() && !scratch.file("mine/loss.svg").exists()
        );
    }

    // As long as something is missing, the parts that are there are used in the library's model.
    let starter = cut(&scratch.read("exercises/attention/solution.rs"));
    scratch.write("exercises/src/attention.rs", &starter);
    let said = trained(&scratch, "10", "").ends_with(0);
    let words = "yours       norm, embedding and RoPE, in the library's model: task";
    assert!(said.out.contains(words), "{said:#?}");
    assert!(said.out.contains("At every step your parts gave the library's loss"), "{said:#?}");
    let said = written(&scratch, "", &["--mine"]).ends_with(2);
    assert!(said.err.contains("this needs task attention/"), "{said:#?}");
    let said = trained(&scratch, "3", "panic").ends_with(2);
    assert!(said.err.contains("your code panicked in step 0: some words"), "{said:#?}");
}

#[test]
fn code_that_is_not_there_is_named_by_its_task() {
    let scratch = Scratch::with_starters();
    let said = trained(&scratch, "3", "").ends_with(2);
    assert!(said.err.contains("this needs task rope/ratio, which is still"), "{said:#?}");
    assert!(!said.err.contains("panicked at"), "{said:#?}");
    assert!(!scratch.file("mine/step-000000").exists(), "nothing was trained");
}
