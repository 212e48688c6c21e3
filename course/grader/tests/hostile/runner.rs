//! Grades each attack, and looks at what came of it.

use super::corpus::{Attack, Outcome, attacks};
use super::making::make;
use contract::registry::{COMPONENTS, task};
use grader::grade::Judge;
use grader::output::{class, report, table};
use grader::parts::Parts;
use grader::record::{Outcome as Came, Record, Sandbox};
use grader::settings::{Limits, Settings};
use grader::submissions::found;
use grader::systems::System;
use learner::exercise::Workspace;
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// What every test needs.
struct Ground {
    workspace: Workspace,
    /// As a class is graded; without the rule about names, and both lines of the sandbox, one of them, the other.
    judges: [LazyLock<Judge, Box<dyn FnOnce() -> Judge + Send>>; 4],
    /// Where right files lie that are no submission.
    outside: tempfile::TempDir,
}

/// What an attack may find that reaches out of its sandbox. Then it is right.
const TREASURES: &[&str] =
    &["/tmp/quadrivium-hostile-treasure", "/var/tmp/quadrivium-hostile-treasure"];
/// The most of a file of results.
const MOST: usize = 4 << 20;

impl Ground {
    fn new() -> Self {
        let workspace = Workspace::find().unwrap();
        let parts = Parts::build(&workspace, &|_| {}).unwrap();
        let judges = LINES.map(|(lines, layer)| {
            let parts = parts.clone();
            let judge = move || {
                let mut judge = Judge::new(parts, settings(), lines, 7).unwrap();
                judge.names = layer == NAMES;
                judge
            };
            LazyLock::new(Box::new(judge) as Box<dyn FnOnce() -> Judge + Send>)
        });
        let outside = tempfile::tempdir().unwrap();
        for component in COMPONENTS {
            let text =
                workspace.read(&format!("exercises/{}/solution.rs", component.slug)).unwrap();
            std::fs::write(outside.path().join(format!("{}.rs", component.slug)), text).unwrap();
        }
        for treasure in TREASURES {
            std::fs::write(treasure, "pub const TREASURE: bool = true;\n").unwrap();
        }
        Self { workspace, judges, outside }
    }
}

/// What attacks call the rule about names.
const NAMES: &str = "names";
/// The lines of the sandbox, and what attacks call the layer that works with them, or alone.
const LINES: [(Sandbox, &str); 4] = [
    (Sandbox::Full, NAMES),
    (Sandbox::Full, ""),
    (Sandbox::Namespaces, "namespaces"),
    (Sandbox::Confined, "sandbox-exec"),
];

/// Short limits: what lasts as long as it may is not graded better by lasting longer. Honest code needs a tenth of them.
fn settings() -> Settings {
    let limits = Limits {
        cpu_seconds: 4,
        wall_seconds: 24,
        submission_seconds: 120,
        build_seconds: 60,
        ..Limits::default()
    };
    Settings { limits, ..Settings::default() }
}

/// The tests.
pub fn run() -> ExitCode {
    let arguments = Arguments::from_args();
    let ground = Arc::new(LazyLock::new(Ground::new as fn() -> Ground));
    let folder = Path::new("../../tests/hostile");
    let mut trials = Vec::new();
    // All of them take long. `QUADRIVIUM_STEP=8` takes each eighth, from the one on that `QUADRIVIUM_FIRST` names, and all that
    // are honest: else it would go unnoticed if no one earned anything.
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (step, first) =
        (number("QUADRIVIUM_STEP").unwrap_or(1), number("QUADRIVIUM_FIRST").unwrap_or(0));
    for (at, (subject, attack)) in attacks(folder).into_iter().enumerate() {
        if at % step != first % step && subject != "controls" {
            continue;
        }
        let is_by_name = subject == "controls" || attack.stopped_by.iter().any(|by| by == NAMES);
        for (at, (_, layer)) in LINES.iter().enumerate() {
            // A layer that stops it stops it alone.
            let is_tried = match *layer {
                NAMES => is_by_name,
                "" => !is_by_name,
                layer => attack.stopped_by.iter().any(|by| by == layer),
            };
            if !is_tried {
                continue;
            }
            let is_alone = at > 1;
            let alone = if is_alone { format!(" ({layer} alone)") } else { String::new() };
            let (ground, attack) = (Arc::clone(&ground), attack.clone());
            // Known holes, and each line alone, are graded if they are asked for.
            let asked = attack.open.is_some() || is_alone;
            let name = format!("{subject}/{}{alone}", attack.id);
            let trial = Trial::test(name, move || {
                attacked(&ground, &attack, at).map_err(|what| Failed::from(what.join("\n")))
            });
            trials.push(trial.with_ignored_flag(asked));
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    for treasure in TREASURES {
        let _ = std::fs::remove_file(treasure);
    }
    let left = left_over();
    if !left.is_empty() {
        eprintln!("error: processes of submissions are left: {left:?}");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

/// Processes of submissions, once they have had time to end.
fn left_over() -> Vec<String> {
    for _ in 0..100 {
        if programs().is_empty() {
            return Vec::new();
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    programs()
}

/// Processes of submissions that this program has started, or that no one waits for any more. Others may grade on this
/// machine, too.
fn programs() -> Vec<String> {
    let processes = Path::new("/proc").read_dir().unwrap().flatten();
    let ids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let is_of_sandbox = |name: &str| ["submission", "sandbox-exec", "bwrap"].contains(&name);
    let is_left = |id: u32| {
        let (name, mut above) = process(id)?;
        while let Some((_, next)) = process(above).filter(|(name, _)| is_of_sandbox(name)) {
            above = next;
        }
        let orphan = above <= 1 || process(above).is_none_or(|(name, _)| name == "systemd");
        let left = name != "bwrap" && is_of_sandbox(&name);
        (left && (orphan || above == std::process::id())).then_some(name)
    };
    ids.filter_map(is_left).collect()
}

/// The name of a process, and the one above it.
fn process(id: u32) -> Option<(String, u32)> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (before, behind) = text.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_string();
    Some((name, behind.split_whitespace().nth(1)?.parse().ok()?))
}

/// What is wrong with what came of an attack.
fn attacked(ground: &Ground, attack: &Attack, lines: usize) -> Result<(), Vec<String>> {
    let class = tempfile::tempdir().unwrap();
    make(&ground.workspace, attack, class.path(), ground.outside.path());
    let submissions = found(&[class.path().to_path_buf()], &[System::Moodle])
        .map_err(|error| vec![error.to_string()])?;
    let (name, source) = submissions.first_key_value().unwrap();
    let tasks: Vec<_> = attack.tasks.iter().map(|name| task(name).unwrap()).collect();
    let record = ground.judges[lines].grade_tasks(name, &source.take(), &tasks, 1);
    remove(class);

    let mut wrong = Vec::new();
    let passed = record.tasks.iter().filter(|task| task.grade.passed);
    let earned: Vec<&str> = passed.map(|task| task.name.as_str()).collect();
    let mut earns: Vec<&str> = attack.tasks.iter().map(String::as_str).collect();
    earns.retain(|task| attack.earns.iter().any(|earned| earned == task));
    if earned != earns {
        wrong.push(format!("it earns {earned:?}, and must earn {earns:?}"));
    }
    let words = match &record.outcome {
        Came::Graded => record.tasks.first().map(|task| task.report.clone()).unwrap_or_default(),
        Came::NotGraded { why } | Came::Decided { why } => why.clone(),
    };
    if record.is_graded() != (attack.outcome == Outcome::Graded) {
        wrong.push(format!("it is to be {:?}, and came to {:?}", attack.outcome, record.outcome));
    }
    if let Some(says) = &attack.says
        && !words.contains(says.as_str())
    {
        wrong.push(format!("nothing says \"{says}\""));
    }
    for path in attack.leaves_no.iter().filter(|path| path.symlink_metadata().is_ok()) {
        wrong.push(format!("{} is there", path.display()));
        let _ = std::fs::remove_file(path);
    }
    let json = serde_json::to_string_pretty(&record).unwrap();
    let pages = pages(&record);
    for page in &pages[..2] {
        for text in attack.shows_no.iter().filter(|text| page.contains(text.as_str())) {
            wrong.push(format!("a page has {text:?}"));
        }
    }
    for file in pages.iter().chain([&json]).filter(|file| file.len() > MOST) {
        wrong.push(format!("a file of results has {} bytes", file.len()));
    }
    for page in pages {
        for text in attack.writes_no.iter().filter(|text| page.contains(text.as_str())) {
            wrong.push(format!("a file of results has {text:?}"));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    wrong.push(format!("{}, and hopes {}", attack.about, attack.hopes));
    wrong.push(words);
    wrong.extend(
        record.tasks.iter().map(|task| task.printed.clone()).filter(|words| !words.is_empty()),
    );
    Err(wrong)
}

/// What is written of it: two pages, and a table.
fn pages(record: &Record) -> [String; 3] {
    let records = std::slice::from_ref(record);
    [report::report(record), class::class(records), table::grades(records)]
}

/// A folder with more folders in each other than one path can name is not removed as others are.
fn remove(class: tempfile::TempDir) {
    let path = class.keep();
    let removed = std::process::Command::new("rm").arg("-rf").arg(&path).status();
    assert!(removed.is_ok_and(|status| status.success()), "{}", path.display());
}
