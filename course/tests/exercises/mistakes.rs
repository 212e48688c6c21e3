//! Plausible mistakes, written with dfdx as a learner would write them, are called by their names.

use crate::scratch::{Said, Scratch, batches};
use crate::unseen::{ENDS_WHEN_ASKED_MORE, all_cases, with_lines};
use contract::registry::TASKS;
use serde_json::Value;

/// A change of the model solutions, and what the autograder must say of it.
struct Mistake {
    task: &'static str,
    from: &'static str,
    to: &'static str,
    /// The invariant at the top of the report.
    broken: &'static str,
    /// The known bug that the report names.
    bug: Option<&'static str>,
}

/// A change of the model solutions near the border between two causes: what the report must say that it is about, and
/// the words that it must not say.
struct Cause {
    task: &'static str,
    from: &'static str,
    to: &'static str,
    about: &'static str,
    never: &'static str,
}

const CAUSES: &[Cause] = &[
    // Rounding leaves every value in its place.
    Cause {
        task: "absolute/sinusoids",
        from: "m as f64 * frequency(i)",
        to: "(m as f32 * frequency(i) as f32) as f64",
        about: "precision",
        never: "",
    },
    Cause {
        task: "rotations/two-axes",
        from: "coordinate as f64 * base.powf(-share)",
        to: "(coordinate as f32 * base.powf(-share) as f32) as f64",
        about: "precision",
        never: "",
    },
    // The right values of another position.
    Cause {
        task: "frequencies/turn",
        from: "let position = offset + head / nh % s;",
        to: "let position = offset + head / nh % s + 1;",
        about: "offset",
        never: "",
    },
    Cause {
        task: "rotations/xpos",
        from: " - settings.center as f64",
        to: "",
        about: "offset",
        never: "",
    },
    Cause {
        task: "rope/tables",
        from: "m as f64 * theta",
        to: "m.min(4095) as f64 * theta",
        about: "offset",
        never: "",
    },
    // Only the queries lose their gradient.
    Cause {
        task: "attention/forward",
        from: "let q = q.permute",
        to: "let q = { let (q, tape) = q.split_tape(); (q * 1.0).put_tape(tape) };
        let q = q.permute",
        about: "gradient",
        never: "keys get no gradient",
    },
    // The turn is right, and in the wrong place.
    Cause {
        task: "rotations/linear",
        from: "let plain = in_heads(q).matmul(across(k)) * seen;",
        to: "let plain = in_heads(turned(q, angles)).matmul(across(turned(k, angles))) * seen;",
        about: "wiring",
        never: "",
    },
    Cause {
        task: "rotations/linear",
        from: "let weights = turned_q.matmul(turned_k) * seen.clone();",
        to: "let weights = turned_q.matmul(turned_k) * seen.clone() / (hd as f32).sqrt();",
        about: "wiring",
        never: "φ(1)",
    },
    Cause {
        task: "loss/backward",
        from: "dloss / n as f32",
        to: "dloss.signum() / n as f32",
        about: "gradient",
        never: "",
    },
    Cause {
        task: "biases/transformer-xl",
        from: "&r[j * hd..][..hd]",
        to: "&r[(t - 1 - j) * hd..][..hd]",
        about: "wiring",
        never: "the nearest first",
    },
];

const MISTAKES: &[Mistake] = &[
    Mistake {
        task: "norm/forward",
        from: "(mean_square + self.eps as f32).sqrt()",
        to: "mean_square.sqrt()",
        broken: "norm/eps-inside-root",
        bug: Some("norm/no-eps"),
    },
    Mistake {
        task: "norm/forward",
        from: "(mean_square + self.eps as f32).sqrt()",
        to: "mean_square.sqrt() + self.eps as f32",
        broken: "norm/eps-inside-root",
        bug: Some("norm/eps-outside-root"),
    },
    Mistake {
        task: "norm/forward",
        from: "let mean_square = squares.mean::<_, Axis<3>>();",
        to: "let (squares, tape) = squares.split_tape();
        let rounded = squares.as_vec().into_iter().map(|v| f16::from_f32(v).to_f32()).collect();
        let squares = squares.device().tensor_from_vec(rounded, groups).put_tape(tape);
        let mean_square = squares.mean::<_, Axis<3>>();",
        broken: "norm/statistics-in-f32",
        bug: Some("norm/squares-rounded-to-f16"),
    },
    Mistake {
        task: "norm/forward",
        from: "let groups = (b, s, H / GZ, Const::<GZ>);",
        to: "let groups = (b, s, 1, Const::<H>);",
        broken: "norm/groups-are-neighbours",
        bug: Some("norm/whole-row"),
    },
    Mistake {
        task: "norm/tape",
        from: "let squares = x.with_empty_tape().square();",
        to: "let squares = x.with_empty_tape().square().split_tape().0.put_tape(T::default());",
        broken: "norm/gradient-differences",
        bug: Some("norm/constant-rms"),
    },
    Mistake {
        task: "embedding/initial",
        from: "turn(tail);",
        to: "",
        broken: "embedding/initial-normal-tail",
        bug: None,
    },
    Mistake {
        task: "embedding/backward",
        from: "*sum += dy",
        to: "*sum = *dy",
        broken: "embedding/gradient-adds",
        bug: Some("embedding/gradient-overwritten"),
    },
    Mistake {
        task: "parallel/forward",
        from: "Ok(mask.choose(rows, zeros))",
        to: "Ok(rows)",
        broken: "parallel/foreign-tokens-are-zero",
        bug: Some("parallel/foreign-rows-wrap"),
    },
    Mistake {
        task: "parallel/backward",
        from: "if owned.contains(id) {
            let row = &mut dshard[(id - owned.start) * embedding_dim..][..embedding_dim];",
        to: "{
            let row = if owned.contains(id) { id - owned.start } else { 0 };
            let row = &mut dshard[row * embedding_dim..][..embedding_dim];",
        broken: "parallel/foreign-tokens-give-no-gradient",
        bug: Some("parallel/foreign-gradient-to-first-row"),
    },
    Mistake {
        task: "rope/rotate",
        from: "if j < HD / 2 { -1.0 } else { 1.0 }",
        to: "if j < HD / 2 { 1.0 } else { -1.0 }",
        broken: "rope/rotate-unit-vector",
        bug: Some("rope/sign-flipped"),
    },
    Mistake {
        task: "rope/module",
        from: "let end = offset.checked_add(s).ok_or(\"offset + sequence length overflows\")?;",
        to: "let (offset, end) = (0, s);",
        broken: "rope/offset",
        bug: Some("rope/offset-unread"),
    },
    Mistake {
        task: "rope/module",
        from: "table.clone().slice((offset..end, ..))",
        to: "table.clone().slice((0..s, ..))",
        broken: "rope/offset",
        bug: None,
    },
    Mistake {
        task: "rope/module",
        from: "self.ratio = ratio;",
        to: "",
        broken: "rope/dynamic-grows",
        bug: Some("rope/dynamic-cache-only"),
    },
    // It breaks nearly all that is asked of a model, and its report comes in time all the same.
    Mistake {
        task: "model/learn",
        from: "let found = project(found, &self.o).reshape_like(&(b, s, Const::<H>));",
        to: "",
        broken: "model/step-f64-loops",
        bug: None,
    },
    Mistake {
        task: "collectives/entropy",
        from: "    comm.all_reduce_sum(&mut of_target)?;",
        to: "    if targets.iter().any(|target| column(*target).is_some()) {
        comm.all_reduce_sum(&mut of_target)?;
    }",
        broken: "collectives/everyone-comes",
        bug: Some("collectives/call-under-a-condition"),
    },
];

fn grades(scratch: &Scratch, selection: &[&str], code: i32) -> Vec<Value> {
    let json = scratch.file("grades.json");
    let arguments = [&["check"], selection, &["--json", json.to_str().unwrap()]].concat();
    scratch.run(&arguments).ends_with(code);
    serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap()
}

/// What a grade says, if it is not what it should say.
type Surprise = dyn Fn(&Value) -> Option<String>;

/// A change of a solution, and what is wrong with what the autograder says of it.
struct Change {
    task: &'static str,
    from: &'static str,
    to: &'static str,
    surprise: Box<Surprise>,
}

impl Change {
    fn component(&self) -> &'static str {
        self.task.split('/').next().unwrap()
    }
}

impl From<&'static Mistake> for Change {
    fn from(&Mistake { task, from, to, broken, bug }: &'static Mistake) -> Self {
        let surprise = move |grade: &Value| {
            let id = grade["broken"][0]["id"].as_str().unwrap_or("nothing");
            let named = grade["misconception"]["bug"].as_str();
            ((id, named) != (broken, bug)).then(|| format!("{id}, {named:?}"))
        };
        Self { task, from, to, surprise: Box::new(surprise) }
    }
}

impl From<&'static Cause> for Change {
    fn from(&Cause { task, from, to, about, never }: &'static Cause) -> Self {
        let surprise = move |grade: &Value| {
            let told = [&grade["misconception"]["does"], &grade["repair"]].map(Value::to_string);
            let says_it = !never.is_empty() && told.iter().any(|words| words.contains(never));
            (grade["category"] != about || says_it)
                .then(|| format!("{}, {told:?}", grade["category"]))
        };
        Self { task, from, to, surprise: Box::new(surprise) }
    }
}

#[test]
fn mistakes_are_named_and_causes_are_told() {
    let scratch = Scratch::with_solutions();
    let changes = MISTAKES.iter().map(Change::from).chain(CAUSES.iter().map(Change::from));
    let mut surprises = Vec::new();
    for batch in batches(changes.collect(), |change: &Change| change.component()) {
        for change in &batch {
            let file = format!("exercises/src/{}.rs", change.component());
            scratch.change(&file, change.from, change.to);
        }
        let tasks: Vec<&str> = batch.iter().map(|change| change.task).collect();
        let grades = grades(&scratch, &tasks, 1);
        for Change { task, from, to, surprise } in &batch {
            let grade = grades.iter().find(|grade| grade["name"] == *task).unwrap();
            surprises.extend(surprise(grade).map(|told| format!("{from} -> {to}: {told}")));
        }
        batch.iter().for_each(|change| scratch.solve(change.component()));
    }
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}

/// Blame goes to the first task that is wrong. What calls it waits, also where it is checked alone.
#[test]
fn who_calls_what_is_wrong_waits_for_it() {
    let scratch = Scratch::with_solutions();
    let solutions = ["rope", "attention", "norm"].map(|slug| {
        let file = format!("exercises/src/{slug}.rs");
        (scratch.read(&file), file)
    });
    let wrong = [
        ("rope/frequencies", "2.0 * i as f64 / d)).collect", "2.0 * (i + 1) as f64 / d)).collect"),
        ("attention/mask", "j <= p + i", "j < p + i"),
        ("norm/forward", "(mean_square + self.eps as f32).sqrt()", "mean_square + self.eps as f32"),
    ];
    for ((task, from, to), (solution, file)) in wrong.into_iter().zip(&solutions) {
        scratch.write(file, solution);
        scratch.change(file, from, to);
        for grade in grades(&scratch, &[], 1) {
            let name = TASKS.iter().find(|task| task.number == grade["task"]).unwrap().name;
            assert_eq!(
                grade["passed"] == false && grade["waits"].is_null(),
                name == task,
                "{task}: {grade}"
            );
            assert!(grade["waits"].is_null() || grade["waits"] == task, "{task}: {grade}");
        }
        let later = TASKS
            .iter()
            .find(|later| later.needs.contains(&task) || later.place == task && later.name != task);
        let later = later.unwrap().name;
        let said = scratch.run(&["check", later]).ends_with(1);
        let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains(&format!("to do {task} first: this task calls it, and it is wrong")),
            "{said:#?}"
        );
        assert!(
            words.contains(&format!(
                "waits {}",
                TASKS.iter().find(|t| t.name == later).unwrap().number
            )),
            "{said:#?}"
        );
        scratch.write(file, solution);
    }
}

/// A judge sees values, and the tape's are right.
#[test]
fn a_gradient_by_hand_is_not_the_tapes() {
    let scratch = Scratch::with_solutions();
    let mean = "let mean_square = x.clone().square().mean";
    let tape = "self.weight.leaky_trace().sum::<Rank0, _>().backward();
        let mean_square = x.clone().square().mean";
    scratch.change("exercises/src/norm.rs", mean, tape);
    for grade in grades(&scratch, &["norm"], 1) {
        let by_hand = grade["task"] == "2.4";
        assert_eq!(grade["passed"] == false, by_hand, "{grade}");
        let said = grade["broken"].to_string();
        assert!(
            !by_hand || said.contains("runs dfdx's tape") && said.contains("norm.rs:"),
            "{said}"
        );
    }
}

/// Code that waits, for a core or for something else, is given more time than code that computes.
#[test]
fn who_waits_is_not_stopped_as_who_loops() {
    let scratch = Scratch::with_solutions();
    let wait = "static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| std::thread::sleep(std::time::Duration::from_secs(4)));
    let mut random = Mt";
    scratch.change("exercises/src/norm.rs", "let mut random = Mt", wait);
    let mut check = scratch.command(&["check", "norm/uniform"]);
    let said = Said::new(check.env("QUADRIVIUM_SECONDS", "2").output().unwrap());
    said.ends_with(0);
}

/// The search for the known bug asks more, and code that is wrong may end its process over that.
#[test]
fn what_is_wrong_is_told_though_its_bug_could_not_be_looked_for() {
    let scratch = Scratch::with_solutions();
    let case = all_cases("bugs").into_iter().find(|case| case.id == ENDS_WHEN_ASKED_MORE).unwrap();
    scratch.write("exercises/src/parallel.rs", &with_lines(&scratch, &case));
    let grades = grades(&scratch, &["parallel"], 1);
    let grade = grades.iter().find(|grade| grade["name"] == "parallel/initial").unwrap();
    assert_eq!(grade["broken"][0]["id"], "parallel/initial-any-shard", "{grade:#}");
    assert_eq!(grade["misconception"], Value::Null);
}

/// A task that panics, never answers, ends its process, or runs out of stack fails by itself alone.
#[test]
fn one_task_does_not_hide_the_others() {
    let scratch = Scratch::with_solutions();
    let norm = "exercises/src/norm.rs";
    scratch.change(norm, "let mut random = Mt", "std::process::exit(0);\n    let mut random = Mt");
    scratch.change(
        norm,
        "let (b, s, h) =",
        "assert!(x.shape().2.size() == 0);\n        let (b, s, h) =",
    );
    let rope = "exercises/src/rope.rs";
    scratch.change(rope, "if head_dim < 4", "loop {}\n    if head_dim < 4");
    scratch.change(
        rope,
        "let evens = head.iter()",
        "std::process::abort();\n        let evens = head.iter()",
    );
    let grades = grades(&scratch, &[], 1);
    let of = |task: &str| {
        let grade = grades.iter().find(|grade| grade["task"] == task).unwrap();
        grade["broken"][0]["id"].as_str().unwrap_or("nothing").to_string()
    };
    assert_eq!(of("2.1"), "autograder/no-grade");
    assert_eq!(of("2.2"), "norm/mean-square-is-one");
    assert_eq!(of("5.1"), "autograder/time");
    assert_eq!(of("5.6"), "autograder/no-grade");
    for task in ["2.4", "1.1", "1.3", "4.3", "5.3", "5.5", "5.7"] {
        assert_eq!(of(task), "nothing", "task {task}");
    }
}
