//! Bugs and correct code in dfdx by authors who knew the tasks, and neither the contract nor its museum.
//!
//! `course/tests/unseen` holds them, by set: each was newly written for a measurement, and kept after it. A few are
//! graded in each run. All of them (over an hour on two idle cores), or those of one set:
//! `QUADRIVIUM_UNSEEN=all cargo test -p course --test exercises unseen -- --nocapture`, or `QUADRIVIUM_UNSEEN=seventh`.
//! Each case is printed once it is graded, so that a run that was ended has not been in vain.
//! A new set goes into a new folder.

use crate::scratch::{Scratch, batches};
use learner::exercise::Workspace;
use learner::exercise::names::refused;
use learner::exercise::source::{Source, region, replaced};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

/// Lines that replace those of the solution.
#[derive(Deserialize)]
pub struct Case {
    pub id: String,
    /// The task between whose marks the lines are.
    pub task: String,
    pub code: String,
}

/// Bugs that pass, and why no one need be refused for them.
const NO_BUGS: &[(&str, &str)] = &[
    ("rope/rotate-first-half-of-the-tables", EQUAL_HALVES),
    ("rope/rotate-first-half-of-tables", EQUAL_HALVES),
    ("rope/backward-negated-sines", EQUAL_HALVES),
    ("rope/rotate-half-tables-twice", EQUAL_HALVES),
    ("rope/backward-minus-angle", EQUAL_HALVES),
    ("rope/backward-minus-the-sine", EQUAL_HALVES),
    ("rope/backward-cosine-swapped-too", EQUAL_HALVES),
    ("rope/freq-base-in-f32", BASE_IN_F32),
    ("rope/freq-single-precision-base", BASE_IN_F32),
    ("rope/module-static-refuses-far", "the library refuses positions from 2⁵³ on as well"),
    (
        "rope/tables-f32-angle",
        "right tables may have angles in f32, and the report says how far they are off",
    ),
    ("norm/forward-gamma-detached", NO_TAPE_NEEDED),
    ("layernorm/forward-beta-detached", NO_TAPE_NEEDED),
    ("norm/backward-cubed-rms", CUBE),
    ("norm/backward-rms-cubed", CUBE),
    ("norm/backward-cube-overflows", CUBE),
    (
        "norm/reciprocal-before-root",
        "an rms below 5·10⁻²⁰: its square has fewer digits in f32, and the values that are asked about begin at 10⁻¹⁵",
    ),
    ("parallel/backward-no-refusal", "no text asks the backward pass to refuse a shard"),
    ("embedding/refuse-above-last", "a vocabulary of no tokens: no table of the course is empty"),
    ("embedding/plus-zero", "the sign of a zero does not matter"),
    ("norm/backward-one-division-by-the-cube", CUBE),
    ("norm/gamma-times-x-overflows", "x·γ above 3·10³⁸: no task asks for this order"),
    ("layernorm/gamma-before-the-division", "x·γ above 3·10³⁸: no task asks for this order"),
    (
        "layernorm/folded-shift",
        "a fused kernel does the same: it is among the contract's own variants",
    ),
    ("layernorm/backward-dgamma-expanded", "its roundings stay within what right code may lose"),
    ("frequencies/turn-angles-in-f32", ANGLES_IN_F32),
    ("frequencies/turn-coarse-circle", ANGLES_IN_F32),
    (
        "rotations/running-waits-without-base",
        "all pieces of a text have one base: no task asks for a text that begins without one",
    ),
    (
        "collectives/first-from-the-rank",
        "the ids of rank r begin with r n in every question: no task cuts a vocabulary otherwise",
    ),
    (
        "collectives/panics-on-empty-blocks",
        "blocks have at least one element, and the text says so",
    ),
    ("norm/tape-gamma-detached", NO_TAPE_NEEDED),
    ("layernorm/tape-gamma", NO_TAPE_NEEDED),
    ("layernorm/tape-beta", NO_TAPE_NEEDED),
    ("norm/tape-x-detached", NO_TAPE_NEEDED),
    ("feedforward/gate-off-tape", NO_TAPE_NEEDED),
    ("feedforward/down-off-tape", NO_TAPE_NEEDED),
    ("rope/frequencies-f32", "frequencies may be powers in f32, and the text says so"),
    ("rope/ratio-saturates", "no text is that long, and no text asks what becomes of its ratio"),
    ("rope/ratio-at-least-two", "a length is at least 1, and the text says so"),
    ("rope/module-empty-early", NO_TOKENS),
    ("embedding/refuse-empty", NO_TOKENS),
    ("parallel/vocabulary-empty", "a vocabulary has at least one token, and the text says so"),
    ("frequencies/ntk-one-plane", "there are at least two planes, and the text says so"),
    (
        "rotations/running-position-if-turned",
        "all pieces of a text have one base, and the text says so",
    ),
    ("biases/bucket-smallest", "no key stands 2⁶³ positions from its query"),
];

/// Code that its author held for right and that is refused, and why.
const NO_VARIANTS: &[(&str, &str)] = &[
    (
        "attention/attend-bias-and-late-division",
        "minus infinity takes the place of a score that is not seen: added to one that is NaN it leaves NaN",
    ),
    ("embedding/rows-of-a-vector", OWNS_TAPE),
    ("layernorm/f64-without-a-tape", OWNS_TAPE),
    ("norm/f64-without-a-tape", OWNS_TAPE),
    ("parallel/rows-of-a-vector", OWNS_TAPE),
    ("rope/rotate-vectors-without-a-tape", OWNS_TAPE),
    ("rope/rotate-turned-back", OWNS_TAPE),
];
const OWNS_TAPE: &str =
    "this constant is `T::OWNS_TAPE` in the exercises, whose trait is one of their own";

/// Cheats that pass, and why no one need be refused for them.
const NO_CHEATS: &[(&str, &str)] = &[
    (
        "norm/types-zero-by-remainder",
        "a size of 0 is refused in the compiler's own words, and they name the zero",
    ),
    (
        "norm/property-panic-hook",
        "an invariant runs in the process of the implementation that it judges, and can read the names of its functions. \
         That is no exam, and the book says so",
    ),
];
const NO_TAPE_NEEDED: &str = "dfdx's `broadcast_like` and `permute` keep a tensor's identity, and so does a copy: its gradient is right without a tape";
const NO_TOKENS: &str = "no text asks what a call without tokens gives";
const CUBE: &str =
    "a right formula for the gradient may take the cube of the rms, which leaves f32 at 7·10¹²";
const BASE_IN_F32: &str = "a base above 3·10³⁸: right code may compute in f32";
const ANGLES_IN_F32: &str = "right code may have angles in f32, as transformers has them";
const EQUAL_HALVES: &str = "all tables of the course have two equal halves";

/// Shards of any size are drawn from it without a refusal, and one of them asks for more memory than there is.
pub const ENDS_WHEN_ASKED_MORE: &str = "parallel/remainder-to-last";

/// One in so many is graded if not all are.
const SAMPLE: usize = 268;

/// The empty tasks, the model solutions, and what others have written rightly.
#[test]
fn right_code_names_nothing_that_is_refused() {
    let sources = Source::all(&Workspace::find().unwrap()).unwrap();
    let files =
        sources.iter().map(|of| of.solution.clone()).chain(sources.iter().map(Source::starter));
    for text in files.chain(all_cases("variants").into_iter().map(|case| case.code)) {
        let refused = refused("norm", &text);
        assert!(refused.is_none(), "{refused:#?}");
    }
}

/// All cases of a kind.
pub fn all_cases(kind: &str) -> Vec<Case> {
    by_set(kind).into_iter().map(|(_, case)| case).collect()
}

/// All of them, those of one set, or a few.
fn cases(kind: &str) -> Vec<(String, Case)> {
    let cases = by_set(kind).into_iter();
    match std::env::var("QUADRIVIUM_UNSEEN") {
        Err(_) => cases.step_by(SAMPLE).collect(),
        Ok(all) if all == "all" => cases.collect(),
        Ok(chosen) => {
            let cases: Vec<_> = cases.filter(|(set, _)| *set == chosen).collect();
            assert!(!cases.is_empty(), "no {kind} in a set called {chosen}");
            cases
        }
    }
}

fn by_set(kind: &str) -> Vec<(String, Case)> {
    let folder = Path::new("tests/unseen").join(kind);
    let mut cases = Vec::new();
    for set in sorted(&folder) {
        for file in sorted(&set) {
            let text = std::fs::read_to_string(&file).unwrap();
            let of_file: Cases = toml::from_str(&text).unwrap();
            let set = set.file_name().unwrap().to_string_lossy().into_owned();
            cases.extend(of_file.case.into_iter().map(|case| (set.clone(), case)));
        }
    }
    assert!(cases.len() > 50, "{} cases in {}", cases.len(), folder.display());
    cases
}

fn sorted(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// The component that a case is about.
pub fn component(case: &Case) -> &str {
    case.task.split('/').next().unwrap()
}

/// The solution's file with the case's lines in it.
pub fn with_lines(scratch: &Scratch, case: &Case) -> String {
    let solution = scratch.read(&format!("exercises/{}/solution.rs", component(case)));
    let place = region(&solution, &case.task).expect("the task's marks");
    replaced(&solution, &place, &format!("{}\n", case.code))
}

/// What `cargo course check` says of each case's tasks, with its lines instead of the solution's.
fn graded(
    scratch: &Scratch,
    cases: Vec<(String, Case)>,
    tasks: impl Fn(&Case) -> &str,
) -> Vec<(String, Case, Vec<Value>)> {
    let mut graded = Vec::new();
    for batch in batches(cases, |(_, case)| component(case)) {
        for (_, case) in &batch {
            let file = format!("exercises/src/{}.rs", component(case));
            scratch.write(&file, &with_lines(scratch, case));
        }
        let json = scratch.file("grades.json");
        let asked = batch.iter().map(|(_, case)| tasks(case));
        let arguments = ["check", "--json", json.to_str().unwrap()].into_iter().chain(asked);
        scratch.run(&arguments.collect::<Vec<_>>());
        batch.iter().for_each(|(_, case)| scratch.solve(component(case)));
        let grades: Vec<Value> =
            serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
        for (set, case) in batch {
            let is_of = |grade: &&Value| {
                grade["name"].as_str().unwrap().split('/').next() == Some(component(&case))
            };
            let of_case: Vec<Value> = grades.iter().filter(is_of).cloned().collect();
            println!("{set}: {} {:?}", case.id, red(&of_case));
            graded.push((set, case, of_case));
        }
    }
    graded
}

/// The tasks that fail.
fn red(grades: &[Value]) -> Vec<String> {
    let failed = grades.iter().filter(|grade| grade["passed"] == false);
    failed
        .map(|grade| {
            let id = grade["broken"][0]["id"].as_str().unwrap();
            format!("{} by {id}", grade["task"])
        })
        .collect()
}

#[test]
fn unseen_bugs_are_caught() {
    let scratch = Scratch::with_solutions();
    let is_bug = |case: &Case| NO_BUGS.iter().all(|(id, _)| *id != case.id);
    let bugs = cases("bugs").into_iter().filter(|(_, case)| is_bug(case)).collect();
    let mut wrong = Vec::new();
    for (set, case, grades) in graded(&scratch, bugs, component) {
        let red = red(&grades);
        if red.is_empty() {
            wrong.push(format!("{set}: {} passes", case.id));
        } else if red.iter().any(|red| red.ends_with("autograder/compiles")) {
            wrong.push(format!("{set}: {} does not compile", case.id));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn unseen_variants_are_accepted() {
    let scratch = Scratch::with_solutions();
    let is_right = |case: &Case| NO_VARIANTS.iter().all(|(id, _)| *id != case.id);
    let variants = cases("variants").into_iter().filter(|(_, case)| is_right(case)).collect();
    let mut refused = Vec::new();
    for (set, case, grades) in graded(&scratch, variants, component) {
        let red = red(&grades);
        if !red.is_empty() {
            refused.push(format!("{set}: {} in {red:?}", case.id));
        }
    }
    assert!(refused.is_empty(), "refused: {refused:#?}");
}

/// Conditions on types that hold for some sizes only, and invariants that know nothing.
#[test]
fn cheats_earn_nothing() {
    let scratch = Scratch::with_solutions();
    let is_cheat = |case: &Case| NO_CHEATS.iter().all(|(id, _)| *id != case.id);
    let cheats = cases("cheats").into_iter().filter(|(_, case)| is_cheat(case)).collect();
    let mut passed = Vec::new();
    for (_, case, grades) in graded(&scratch, cheats, |case| &case.task) {
        assert_eq!(grades.len(), 1, "{}", case.task);
        if grades[0]["passed"] == true {
            passed.push(case.id);
        }
    }
    assert!(passed.is_empty(), "passed: {passed:#?}");
}
