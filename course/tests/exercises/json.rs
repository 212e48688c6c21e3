//! What a script, an editor or an assistant reads: JSON on standard output, and nothing else there.

use crate::scratch::Scratch;
use learner::exercise::Workspace;
use serde_json::Value;

const NORM: &str = "exercises/src/norm.rs";

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Whether a value is as its schema in `course/schemas` says, in the words of JSON Schema that are used there.
fn fits(value: &Value, schema: &Value) -> bool {
    let is = |kind: &str| match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{other}"),
    };
    let each = |words: &Value, holds: &dyn Fn(&Value) -> bool| match words {
        Value::Array(words) => words.iter().any(holds),
        one => holds(one),
    };
    schema.as_object().unwrap().iter().all(|(word, rule)| match word.as_str() {
        "type" => each(rule, &|kind| is(kind.as_str().unwrap())),
        "const" => value == rule,
        "enum" => each(rule, &|one| value == one),
        "oneOf" => rule.as_array().unwrap().iter().filter(|one| fits(value, one)).count() == 1,
        "items" => value.as_array().is_none_or(|all| all.iter().all(|one| fits(one, rule))),
        "required" => {
            rule.as_array().unwrap().iter().all(|key| value.get(key.as_str().unwrap()).is_some())
        }
        "properties" => value.as_object().is_none_or(|fields| {
            fields.iter().all(|(key, field)| rule.get(key).is_some_and(|rule| fits(field, rule)))
        }),
        // Other properties are refused above.
        "additionalProperties" => rule == false,
        "$schema" | "title" | "description" => rule.as_str().is_some_and(|text| !text.is_empty()),
        other => panic!("{other}"),
    })
}

#[track_caller]
fn assert_fits(value: &Value, command: &str) {
    let file = format!("course/schemas/{command}.schema.json");
    let schema = parsed(&Workspace::find().unwrap().read(&file).unwrap());
    match value {
        // Of many entries, that which does not fit.
        Value::Array(entries) => {
            assert!(schema["type"] == "array");
            entries.iter().for_each(|one| assert!(fits(one, &schema["items"]), "{file}: {one:#}"));
        }
        one => assert!(fits(one, &schema), "{file}: {one:#}"),
    }
}

#[test]
fn grades_are_all_that_is_on_standard_output() {
    let scratch = Scratch::with_solutions();
    // The code forgets eps, and prints.
    scratch.change(NORM, "(mean_square + self.eps as f32)", "{ println!(\"mine\"); mean_square }");
    let said = scratch.run(&["check", "norm", "--json", "-"]).ends_with(1);
    let grades = parsed(&said.out);
    assert_fits(&grades, "check");
    for words in ["norm/eps-inside-root", "7 tasks done", "cargo course hint"] {
        assert!(said.err.contains(words), "{words}: {said:#?}");
    }
    let forward = grades.as_array().unwrap().iter().find(|grade| grade["name"] == "norm/forward");
    insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => "../../../snapshots", omit_expression => true }, {
        insta::assert_snapshot!("check_json", format!("{:#}", forward.unwrap()));
    });
    // A file gets the same, and the report is where it was.
    let json = scratch.file("grades.json");
    let file = scratch.run(&["check", "norm", "--json", json.to_str().unwrap()]).ends_with(1);
    assert_eq!(std::fs::read_to_string(json).unwrap(), said.out);
    assert_eq!(file.out, said.err);
}

/// All kinds of answers: what is empty, waits, does not compile, is about types or asks for an invariant.
#[test]
fn every_grade_is_as_its_schema_says() {
    let scratch = Scratch::with(|source| match source.slug {
        // Its second task calls the first.
        "embedding" => source.solution.replacen(
            "// task embedding/refuse: begin",
            "todo!(\"task embedding/refuse\");",
            1,
        ),
        "parallel" => source.starter().replace("todo!(\"task parallel/shard-range\")", "0..0"),
        "rope" => format!("{}\nfn broken( {{", source.solution),
        "norm" => source.solution.replacen("{ assert!(", "{ assert!(true ||", 1),
        _ => source.starter(),
    });
    let said = scratch.run(&["check", "--json", "-"]).ends_with(2);
    let grades = parsed(&said.out);
    assert_fits(&grades, "check");
    assert!(said.err.contains("no task of exercises/src/rope.rs can be graded"), "{said:#?}");
    let grades = grades.as_array().unwrap();
    let of = |name: &str| grades.iter().find(|grade| grade["name"] == name).unwrap();
    assert_eq!(of("rope/rotate")["broken"][0]["id"], "autograder/compiles");
    assert_eq!(of("embedding/forward")["waits_for"], "embedding/refuse");
    assert_eq!(of("embedding/refuse")["line"], Value::Null, "its mark is gone");
    assert_eq!(of("parallel/shard-range")["begun"], true);
    assert_eq!(of("norm/forward")["hint"], Value::Null, "it passes");
    for grade in grades.iter().filter(|grade| grade["passed"] == false) {
        let name = grade["name"].as_str().unwrap();
        assert_eq!(grade["hint"]["command"], format!("cargo course hint {name} 1 --json"));
    }
}

#[test]
fn a_hint_says_which_one_is_next() {
    let scratch = Scratch::with_starters();
    let mut command = "cargo course hint norm/forward --json".to_string();
    for (level, kind) in [(1, "Idea"), (2, "Formula"), (3, "dfdx call")] {
        let words: Vec<&str> = command.split(' ').skip(2).collect();
        let said = scratch.run(&words).ends_with(0);
        let hint = parsed(&said.out);
        assert_fits(&hint, "hint");
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
