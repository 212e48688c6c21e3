//! Grades and hints as JSON: one of each as a snapshot, and all kinds beside their schemas in `course/schemas`.

use contract::category::Category;
use contract::component::Component;
use contract::grade::{Grade, by_invariants};
use contract::registry::{TASKS, task};
use contract::run::Run;
use contract::violation::{Fault, Violation};
use interfaces::interface::GroupRmsNorm;
use learner::exercise::grading::Grades;
use learner::exercise::{Workspace, json};
use serde_json::Value;

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

fn schema(command: &str) -> Value {
    let file = format!("course/schemas/{command}.schema.json");
    serde_json::from_str(&Workspace::find().unwrap().read(&file).unwrap()).unwrap()
}

/// What is written of these grades.
fn written(grades: Vec<Grade>) -> Value {
    let workspace = Workspace::find().unwrap();
    serde_json::to_value(json::grades(&workspace, &Grades(grades))).unwrap()
}

/// The code forgets eps.
fn without_eps() -> Grade {
    let bug = <dyn GroupRmsNorm>::bugs().iter().find(|bug| bug.id == "norm/no-eps").unwrap();
    by_invariants(task("norm/forward").unwrap(), &*(bug.implementation)(), &Run::default())
}

#[test]
fn a_grade_says_what_a_tutor_needs() {
    let mut grade = written(vec![without_eps()])[0].take();
    // Where it is depends on the learner's file.
    assert!(grade["line"].take().is_u64());
    for words in ["sentence", "formula"] {
        assert!(!grade["broken"][0][words].as_str().unwrap().is_empty(), "{words}");
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => "../../snapshots", omit_expression => true }, {
        insta::assert_snapshot!("check_json", format!("{grade:#}"));
    });
}

#[test]
fn every_grade_is_as_its_schema_says() {
    let first = &TASKS[0];
    let text = String::new;
    let faults = [
        Fault::Differs {
            count: 1,
            total: 2,
            index: vec![0, 1],
            expected: 1.0,
            got: f64::NAN,
            tolerance: 0.0,
            why: text(),
        },
        Fault::Length { shape: vec![2, 3], got: 5 },
        Fault::Refused { words: text() },
        Fault::Accepted { rule: text() },
        Fault::Panicked { message: "not yet implemented: task rope/rotate (a.rs:1)".to_string() },
        Fault::Broken { what: text() },
    ];
    let failed = faults.into_iter().map(|fault| {
        let mut grade = Grade::new(first);
        grade.fail("autograder/none", "", Violation::new("forward", fault).about(Category::Order));
        grade
    });
    let more = [Grade::new(first), Grade::uncompiled(first, "a place"), without_eps()];
    let written = written(failed.chain(more).collect());
    let schema = schema("check");
    assert_eq!(schema["type"], "array");
    for grade in written.as_array().unwrap() {
        assert!(fits(grade, &schema["items"]), "{grade:#}");
    }
    assert_eq!(written[4]["waits_for"], "rope/rotate");
    assert_eq!(written[6]["hint"], Value::Null, "it passes");
    assert_eq!(written[8]["hint"]["command"], "cargo course hint norm/forward 1 --json");
    // It can fail.
    let mut other = written[0].clone();
    other["broken"][0]["violation"]["fault"]["kind"] = "other".into();
    assert!(!fits(&other, &schema["items"]));
    let mut other = written[0].clone();
    other["colour"] = "red".into();
    assert!(!fits(&other, &schema["items"]));
}

#[test]
fn every_hint_is_as_its_schema_says() {
    let (workspace, schema) = (Workspace::find().unwrap(), schema("hint"));
    for task in TASKS.iter() {
        for level in 1..=3 {
            let hint = json::hint(&workspace, task, level, "text");
            let hint = serde_json::to_value(hint).unwrap();
            assert!(fits(&hint, &schema), "{hint:#}");
            assert_eq!(hint["next"].is_null(), level == 3, "{hint:#}");
        }
    }
}
