//! Judges one task of a submission, in a separate process: strange answers may lead a judge anywhere, and then only
//! this process is lost.

mod adapters;
mod property;
mod talk;

use crate::cage::Cage;
use crate::parts::{Parts, library_of};
use crate::program::{ALONE, compile, named_crates, not_of_the_code};
use crate::record::TaskRecord;
use adapters::{ADAPTERS, Adapter};
use contract::grade::{Grade, Undiagnosed};
use contract::panics;
use contract::run::Run;
use contract::task::{Grading, Task};
use contract::types::{self, Compiler, Keeps, PROGRAM, Rule, Said};
use learner::exercise::compile::diagnostics::errors;
use protocol::{Asker, Order};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use talk::{End, NotStarted, Talk, Why};

/// Says to this program that it is to judge one task. What to judge comes on standard input.
pub const WORKER: &str = "QUADRIVIUM_WORKER";

/// What is to be judged.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Asked {
    /// The task's name.
    pub task: String,
    /// The sandbox.
    pub cage: Cage,
    /// What the program is linked with.
    pub parts: Parts,
    /// The folder in which it was built.
    pub stage: PathBuf,
    /// The program.
    pub program: PathBuf,
    /// The text of the learner's file.
    pub file: String,
    /// The seed of random inputs.
    pub seed: u64,
    /// Random inputs of each property.
    pub cases: u32,
}

/// What came of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Judged {
    /// A grade, and what the code printed.
    Grade(Box<Grade>, String),
    /// The grade of a program that ended without an answer. It counts if this happens again.
    Broken(Box<Grade>, String),
    /// The program did not start, or was killed, and it was none of its limits. That is the machine's fault.
    NoGrade(String),
}

/// What came of it, and the seconds that the program and the compiler have computed.
pub type Heard = (Judged, f64);

/// Judges what standard input asks for, and writes to standard output what came of it.
///
/// # Errors
/// What comes is no question; standard output can't be written.
pub fn run() -> io::Result<()> {
    panics::silence();
    let asked: Asked = serde_json::from_reader(io::stdin().lock())?;
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{
            Resource, Rlimit, Signal, getpid, set_child_subreaper, set_parent_process_death_signal,
            setrlimit,
        };
        // What a sandbox leaves behind is waited for, and its time counted: bubblewrap ends before its own inner process.
        set_child_subreaper(Some(getpid()))?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // A compiler that it starts may have no more than this process.
        let most = Some(asked.cage.limits.build_memory_mib << 20);
        setrlimit(Resource::As, Rlimit { current: most, maximum: most })?;
    }
    let heard: Heard = (judge(&asked), computed());
    serde_json::to_writer(io::stdout().lock(), &heard)?;
    Ok(())
}

/// The seconds that processes have computed which this one has started. Those that live on are waited for, since they end with
/// what started them. Known on Linux.
fn computed() -> f64 {
    #[cfg(target_os = "linux")]
    while let Ok(Some(_)) = rustix::process::wait(rustix::process::WaitOptions::empty()) {}
    let about = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name, which is in parentheses, are the state and other fields; the 14th and the 15th count the
    // hundredths of a second of those processes in their programs and in the system.
    let fields = about.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    fields.skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Judges a task. Where answers carry the system's words about what it lacks, the code may only have met it, so it is asked again.
pub fn judge(asked: &Asked) -> Judged {
    match judged(asked) {
        Judged::Grade(grade, printed) if !grade.passed && is_of_the_system(&grade) => {
            Judged::Broken(grade, printed)
        }
        judged => judged,
    }
}

/// As Rust writes an error of the system, in its two ways.
fn is_of_the_system(grade: &Grade) -> bool {
    let text = serde_json::to_string(grade).unwrap_or_default();
    ["(os error ", "Os { code: "].iter().any(|words| text.contains(words))
}

fn judged(asked: &Asked) -> Judged {
    let task = contract::registry::task(&asked.task);
    let adapter =
        task.and_then(|task| ADAPTERS.iter().find(|adapter| adapter.slug == task.component));
    let (Some(task), Some(adapter)) = (task, adapter) else {
        return Judged::NoGrade(format!(
            "{} has no adapter in the grader: a mistake of the course",
            asked.task
        ));
    };
    match task.grading {
        Grading::Invariants { calls, by_hand, .. } => {
            let run = run_of(asked);
            talked(asked, task, calls, by_hand, |asker, undiagnosed| {
                (adapter.invariants)(task, asker, &run, undiagnosed)
            })
        }
        Grading::Types(rule) => of_types(asked, task, rule, adapter),
        Grading::Property { .. } => {
            // The words of an implementation that panics go to the learner's code. Without the place, they do not show
            // whether it is one of the known bugs.
            std::panic::set_hook(Box::new(|_| {}));
            property::judge(asked, task, adapter)
        }
    }
}

fn run_of(asked: &Asked) -> Run {
    Run { seed: asked.seed, cases: asked.cases, ..Run::default() }
}

/// A grade by what the program answers. What `judge` gives its last argument is the grade if the code ends the program after that, or
/// leads the judge astray.
fn talked(
    asked: &Asked,
    task: &Task,
    calls: &[&str],
    by_hand: bool,
    judge: impl FnOnce(&Asker, &Undiagnosed<'_>) -> Grade,
) -> Judged {
    let calls = calls.iter().map(ToString::to_string).collect();
    let (talk, ends) =
        match Talk::start(&asked.cage, &asked.program, &Order::Answer { calls, by_hand }) {
            Ok(started) => started,
            Err(NotStarted(words)) => return Judged::NoGrade(words),
        };
    // No one knows which number the first question will have.
    let asker = Asker::new(ends, number() >> 1);
    let first = RefCell::new(None);
    let undiagnosed = |grade: &Grade| {
        if asker.lost().is_none() {
            first.replace(Some(grade.clone()));
        }
    };
    let judged = catch_unwind(AssertUnwindSafe(|| judge(&asker, &undiagnosed)));
    let lost = asker.lost();
    drop(asker);
    let end = talk.end(lost);
    match (broken(task, &asked.cage, &end), judged, first.into_inner()) {
        (None, Ok(grade), _) => Judged::Grade(Box::new(grade), end.printed),
        (Some(Judged::NoGrade(words)), ..) => Judged::NoGrade(words),
        (_, _, Some(grade)) => Judged::Grade(Box::new(grade), end.printed),
        (Some(broken), ..) => broken,
        (None, Err(payload), None) => {
            let sentence = "Answers are such that they can be judged.";
            let what = format!("the judge ended over them: {}", panics::message(&*payload));
            let grade = Grade::failed(task, "autograder/judge", sentence, what);
            Judged::Broken(Box::new(grade), end.printed)
        }
    }
}

/// What it means for its task, if a conversation broke off.
fn broken(task: &Task, cage: &Cage, end: &End) -> Option<Judged> {
    let graded = |rule: &str, sentence: &str, what: String| {
        Box::new(Grade::failed(task, rule, sentence, what))
    };
    let printed = end.printed.clone();
    let of_time = |what| graded("autograder/time", "A task ends within its time limit.", what);
    Some(match &end.why {
        Why::Whole => return None,
        Why::Killed(words) => Judged::NoGrade(words.clone()),
        // No machine's fault makes a program compute.
        Why::Computed => Judged::Grade(
            of_time(format!(
                "it did not end in {} seconds of computing, so it was stopped. Is there a loop that does not end?",
                cage.limits.cpu_seconds
            )),
            printed,
        ),
        Why::Late => Judged::Broken(
            of_time(format!(
                "it did not end in {} seconds, so it was stopped. Does it wait for something?",
                cage.limits.wall_seconds
            )),
            printed,
        ),
        Why::Ended(how) => Judged::Broken(
            graded(
                "autograder/no-grade",
                "A task lets its process live.",
                format!(
                    "the process ended without a grade ({how}): your code ended it, or it ran out of memory or stack. Look for \
                     `exit`, `abort` and endless recursion."
                ),
            ),
            printed,
        ),
    })
}

/// Tasks about types: rustc is asked, in the sandbox.
fn of_types(asked: &Asked, task: &Task, rule: &Rule, adapter: &Adapter) -> Judged {
    // What is not the code's answer, or not yet.
    let lost = RefCell::new(None);
    let run = run_of(asked);
    let keeps = |Keeps { id, calls }: &Keeps| {
        let (mut sentence, mut verdict) = ("", None);
        let judged = talked(asked, task, calls, false, |asker, _| {
            let (of_rule, said) = (adapter.keeps)(id, asker, &run);
            (sentence, verdict) = (of_rule, Some(said));
            Grade::new(task)
        });
        match (judged, verdict) {
            (Judged::Grade(grade, _), Some(verdict)) if grade.passed => (sentence, verdict),
            (Judged::Grade(grade, _), _) => {
                let violation =
                    grade.broken.into_iter().next().map(|broken| Box::new(broken.violation));
                (sentence, violation.map_or(Ok(None), Err))
            }
            (other, _) => {
                lost.replace(Some(other));
                (sentence, Ok(None))
            }
        }
    };
    let compiler: Compiler = &|program, emit| {
        compiled(asked, program, emit).inspect_err(|error| {
            lost.replace(Some(match error.kind() {
                // No machine's fault makes a compiler compute.
                io::ErrorKind::TimedOut => {
                    let sentence = "A program of these types is compiled within its time limit.";
                    let grade = Grade::failed(task, "autograder/time", sentence, error.to_string());
                    Judged::Grade(Box::new(grade), String::new())
                }
                _ => Judged::NoGrade(error.to_string()),
            }));
        })
    };
    let grade = types::judge(task, rule, &asked.file, &run, keeps, compiler);
    lost.into_inner().unwrap_or_else(|| match grade.passed || !grade.begun {
        true => Judged::Grade(Box::new(grade), String::new()),
        // What the compiler says once may be said by a machine that is full.
        false => Judged::Broken(Box::new(grade), String::new()),
    })
}

/// What rustc says of a program against the submission's crate. Where it was stopped because it computed too long, the error is
/// `TimedOut`.
fn compiled(asked: &Asked, program: &str, emit: &str) -> io::Result<Said> {
    let Asked { cage, parts, stage, task, .. } = asked;
    let name = task.replace('/', "-");
    let (folder, out) = (stage.join("course").join(&name), stage.join("out").join(&name));
    std::fs::create_dir_all(&folder)?;
    std::fs::create_dir_all(&out)?;
    std::fs::write(folder.join(PROGRAM), program)?;
    let mut arguments = vec![format!("{name}/{PROGRAM}"), "--crate-type=lib".to_string()];
    arguments.extend(["--cap-lints=allow".to_string(), format!("--emit={emit}")]);
    arguments.push(format!("--out-dir={}", out.display()));
    let named = BTreeMap::from([("exercises".to_string(), library_of("exercises"))]);
    arguments.extend(named_crates(parts, stage, &named));
    // It is as small as a file alone.
    let mut cage = cage.clone();
    cage.limits.build_seconds = cage.limits.build_seconds.div_ceil(ALONE);
    let output = compile(&cage, parts, stage, &arguments).map_err(io::Error::other)?;
    if output.by_limit {
        let words = format!(
            "the compiler was stopped after {} seconds of computing. Is there a constant that is computed without end?",
            cage.limits.build_seconds
        );
        return Err(io::Error::new(io::ErrorKind::TimedOut, words));
    }
    let messages =
        output.words.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if !output.success
        && let Some(words) = not_of_the_code(&errors(&output.words), &output.status, &named)
    {
        return Err(io::Error::other(words));
    }
    Ok(Said { success: output.success, messages, words: output.words })
}

/// A number that no one can guess.
fn number() -> u64 {
    getrandom::u64().unwrap_or_default()
}

/// The longest text of a grade that is kept.
const LONGEST: usize = 8 << 10;

/// What a record of it holds: texts that the submission has made are cut, if they are very long.
pub fn recorded(
    task: &'static Task,
    mut grade: Grade,
    printed: String,
    points: (f64, f64),
) -> TaskRecord {
    for remark in &mut grade.remarks {
        cut(remark);
    }
    for broken in &mut grade.broken {
        broken.violation.cut(LONGEST);
    }
    let mut report = contract::report::report(task, &grade, contract::report::WIDTH);
    cut(&mut report);
    let (points, out_of) = points;
    TaskRecord {
        name: task.name.to_string(),
        title: task.title.clone(),
        points,
        out_of,
        grade,
        report,
        printed: last_lines(&printed),
    }
}

fn cut(text: &mut String) {
    if text.len() > LONGEST {
        let end = text.floor_char_boundary(LONGEST);
        text.truncate(end);
        text.push_str(" [cut]");
    }
}

/// The end of what was printed.
fn last_lines(printed: &str) -> String {
    const LINES: usize = 40;
    let lines: Vec<&str> = printed.lines().collect();
    let mut text = lines[lines.len().saturating_sub(LINES)..].join("\n");
    cut(&mut text);
    text
}
