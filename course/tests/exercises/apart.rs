//! Learners' code as a separate program: judged over a pipe, it gets the grade that the autograder gives.

use crate::scratch::Scratch;
use contract::component::Component;
use contract::grade::{Grade, by_invariants};
use contract::registry::task;
use contract::run::Run;
use contract::task::{Grading, Task};
use interfaces::interface::*;
use protocol::{Asker, Ends, Implementations, Order, Served, VERSION, serve, whole};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The program, with the files of the exercises as they are in the copy.
fn built(scratch: &Scratch) -> PathBuf {
    let mut cargo = scratch.cargo();
    cargo
        .args(["build", "--package", "submission", "--message-format=json"])
        .stderr(Stdio::inherit());
    let output = cargo.output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout);
    let mut messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = messages.find_map(|message| Some(message["executable"].as_str()?.into()));
    program.expect("a program")
}

/// It runs, and has its order.
fn started(program: &Path, order: &Order) -> (Child, Ends) {
    let mut child = Command::new(program);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut ends = Ends::new(child.stdout.take().unwrap(), child.stdin.take().unwrap());
    ends.send(order).unwrap();
    assert_eq!(whole::<u32>(&ends.receive().unwrap()).unwrap(), VERSION);
    (child, ends)
}

fn judged(program: &Path, task: &Task) -> Grade {
    let Grading::Invariants { calls, by_hand, .. } = task.grading else { panic!("{}", task.name) };
    let calls = calls.iter().map(|call| call.to_string()).collect();
    let (mut child, ends) = started(program, &Order::Answer { calls, by_hand });
    let asker = Asker::new(ends, 0);
    let (implementation, run) = (&asker, &Run::default());
    let grade = match task.component {
        "norm" => by_invariants::<dyn GroupRmsNorm>(task, implementation, run),
        "rope" => by_invariants::<dyn NtkAwareRope>(task, implementation, run),
        "attention" => by_invariants::<dyn GroupedQueryAttention>(task, implementation, run),
        other => panic!("{other}"),
    };
    assert_eq!(asker.lost(), None, "{}", task.name);
    drop(asker);
    assert!(child.wait().unwrap().success());
    grade
}

/// A grade without the last digits of its numbers: JSON may round them, and the autograder's has come that way.
fn rounded(grade: &Grade) -> Value {
    fn round(value: &mut Value) {
        match value {
            Value::Number(number) => {
                let digits = format!("{:.12e}", number.as_f64().unwrap());
                *value = Value::String(digits);
            }
            Value::Array(all) => all.iter_mut().for_each(round),
            Value::Object(all) => all.values_mut().for_each(round),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(grade).unwrap();
    round(&mut value);
    value
}

/// What the learner's invariant of the norm says of an implementation in this process.
fn refusal(program: &Path, implementation: &dyn GroupRmsNorm) -> Option<String> {
    let (mut child, mut ends) = started(program, &Order::Judge { slug: "norm".into() });
    let implementations =
        Implementations { norm: Some(implementation), ..Implementations::default() };
    let Served::Done(last) = serve(&mut ends, &implementations).unwrap() else {
        panic!("not done")
    };
    assert!(child.wait().unwrap().success());
    whole(&last).unwrap()
}

/// What the autograder says of a task.
fn graded(scratch: &Scratch, task: &str) -> Grade {
    let json = scratch.file("grades.json");
    scratch.run(&["check", task, "--json", json.to_str().unwrap()]);
    let grades: Vec<Grade> = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    let [grade]: [Grade; 1] = grades.try_into().unwrap();
    // Whom it waits for depends on the grades of others.
    Grade { waits: None, ..grade }
}

#[test]
fn code_that_is_judged_apart_gets_the_same_grade() {
    let scratch = Scratch::with_solutions();
    let program = built(&scratch);
    // Values, a machine that is made and called several times, and a cache.
    for name in ["norm/uniform", "rope/module", "attention/cache"] {
        let apart = judged(&program, task(name).unwrap());
        assert!(apart.passed, "{apart:?}");
        assert_eq!(rounded(&apart), rounded(&graded(&scratch, name)));
    }
    let [oracle, bug] =
        [<dyn GroupRmsNorm>::oracle(), (<dyn GroupRmsNorm>::bugs()[0].implementation)()];
    assert_eq!(refusal(&program, &*oracle), None);
    assert!(refusal(&program, &*bug).is_some());

    // Code that is wrong, code that panics, and code that is not there: a mistake's name and a panic's place are the same.
    scratch.change(
        "exercises/src/norm.rs",
        "squares.mean::<_, Axis<3>>()",
        "squares.sum::<_, Axis<3>>()",
    );
    scratch.change("exercises/src/rope.rs", "// task rope/ratio: begin", "todo!();");
    let program = built(&scratch);
    for name in ["norm/forward", "norm/tape", "rope/ratio"] {
        let apart = judged(&program, task(name).unwrap());
        assert!(!apart.passed, "{name}");
        assert_eq!(rounded(&apart), rounded(&graded(&scratch, name)));
    }
}
