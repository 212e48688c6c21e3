//! What a script, an editor or an assistant reads: JSON on standard output, and nothing else there.

use crate::scratch::Scratch;
use serde_json::Value;

const NORM: &str = "exercises/src/norm.rs";

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn grades_are_all_that_is_on_standard_output() {
    let scratch = Scratch::with_solutions();
    // The code forgets eps, and prints.
    scratch.change(NORM, "(mean_square + self.eps as f32)", "{ println!(\"mine\"); mean_square }");
    let said = scratch.run(&["check", "norm", "--json", "-"]).ends_with(1);
    let grades = parsed(&said.out);
    for words in ["norm/eps-inside-root", "7 tasks done", "cargo course hint"] {
        assert!(said.err.contains(words), "{words}: {said:#?}");
    }
    let forward = grades.as_array().unwrap().iter().find(|grade| grade["name"] == "norm/forward");
    assert_eq!(forward.unwrap()["misconception"]["bug"], "norm/no-eps", "{forward:#?}");
    // A file gets the same, and the report is where it was.
    let json = scratch.file("grades.json");
    let file = scratch.run(&["check", "norm", "--json", json.to_str().unwrap()]).ends_with(1);
    assert_eq!(std::fs::read_to_string(json).unwrap(), said.out);
    assert_eq!(file.out, said.err);
}

/// Where something does not compile, the rest is graded, and the compiler's words are on standard error.
#[test]
fn what_does_not_compile_is_told_beside_the_grades() {
    let scratch = Scratch::with_starters();
    scratch.change("exercises/src/rope.rs", "use crate::prelude::*;", "use crate::nothing;");
    let said = scratch.run(&["check", "rope", "--json", "-"]).ends_with(2);
    assert_eq!(parsed(&said.out)[0]["broken"][0]["id"], "autograder/compiles", "{said:#?}");
    assert!(said.err.contains("no task of exercises/src/rope.rs can be graded"), "{said:#?}");
}

#[test]
fn a_hint_says_which_one_is_next() {
    let scratch = Scratch::with_starters();
    let mut command = "cargo course hint norm/forward --json".to_string();
    for (level, kind) in [(1, "Idea"), (2, "Formula"), (3, "dfdx call")] {
        let words: Vec<&str> = command.split(' ').skip(2).collect();
        let said = scratch.run(&words).ends_with(0);
        let hint = parsed(&said.out);
        assert!(said.err.is_empty(), "{said:#?}");
        assert_eq!((&hint["level"], &hint["kind"]), (&level.into(), &kind.into()));
        if level == 1 {
            insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => "../../../snapshots", omit_expression => true }, {
                insta::assert_snapshot!("hint_json", format!("{hint:#}"));
            });
        }
        command = hint["next"]["command"].as_str().unwrap_or_default().to_string();
    }
    assert!(command.is_empty(), "nothing follows the last level: {command}");
    // What goes wrong is said elsewhere.
    for words in [&["hint", "norm/none", "--json"][..], &["check", "norm/none", "--json", "-"]] {
        let said = scratch.run(words).ends_with(2);
        assert!(said.out.is_empty() && said.err.contains("no task is called"), "{said:#?}");
    }
}
