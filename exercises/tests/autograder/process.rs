//! Runs the learner's code in a process of its own, with a time limit.

use crate::child;
use contract::grade::{Grade, Shown};
use contract::task::Task;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use wait_timeout::ChildExt;

/// Time limit of a process in seconds, of computing.
const SECONDS: &str = "QUADRIVIUM_SECONDS";
const DEFAULT_SECONDS: u64 = 10;

/// A failure that proptest keeps in a file would be tried first the next time: another grade for the same code.
const NO_FAILURES_KEPT: &str = "PROPTEST_DISABLE_FAILURE_PERSISTENCE";

/// How a process ended that gave no answer.
enum Lost {
    NotStarted(io::Error),
    Stopped(u64),
    Ended(ExitStatus),
}

/// What a process of this program answers, and what the learner's code printed: the grade of a task, or, with a
/// party, the words with which the learner's invariant refuses it.
///
/// # Errors
/// A grade that says why there is no answer.
pub fn ask<T: DeserializeOwned>(
    task: &'static Task,
    shown: Option<Shown>,
) -> Result<(T, String), Box<Grade>> {
    let (answer, printed) =
        run(task, shown).unwrap_or_else(|error| (Err(Lost::NotStarted(error)), String::new()));
    let (rule, sentence, what) = match answer {
        Ok(answer) => return Ok((answer, printed)),
        Err(Lost::NotStarted(error)) => (
            "autograder/process",
            "The autograder starts a process for each task.",
            format!("it can't be started: {error}"),
        ),
        Err(Lost::Stopped(seconds)) => (
            "autograder/time",
            "A task ends within its time limit.",
            format!(
                "it did not end in {seconds} seconds of computing, so it was stopped. Is there a loop that does not \
                 end, or does it wait for something? ({SECONDS}=60 sets another limit.)"
            ),
        ),
        Err(Lost::Ended(status)) => (
            "autograder/no-grade",
            "A task lets its process live.",
            format!(
                "the process ended without a grade ({status}): your code ended it, or it ran out of \
                 stack. Look for `exit`, `abort` and endless recursion."
            ),
        ),
    };
    Err(Box::new(crate::parent::with_output(Grade::failed(task, rule, sentence, what), &printed)))
}

/// How the process ended, or nothing once its time is over: it has run for so long, and has computed for so long. On a
/// machine with much to do it gets a core only now and then; so it is given more time, but not for ever, since it may also
/// wait for something that never comes.
fn ended(process: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    const PATIENCE: u32 = 6;
    let start = Instant::now();
    let mut left = limit;
    loop {
        if let Some(status) = process.wait_timeout(left)? {
            return Ok(Some(status));
        }
        let computed = computed(process.id()).unwrap_or(limit);
        if computed >= limit || start.elapsed() >= limit * PATIENCE {
            return Ok(None);
        }
        left = (limit - computed).clamp(Duration::from_millis(100), limit);
    }
}

/// How long a process has computed. Known on Linux.
fn computed(id: u32) -> Option<Duration> {
    let about = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // Behind the name, which stands in parentheses, are the state and other fields; the 12th and the 13th count the
    // hundredths of a second in the program and in the system.
    let fields: Vec<&str> = about.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |nth: usize| fields.get(nth)?.parse::<u64>().ok();
    Some(Duration::from_millis(10 * (ticks(11)? + ticks(12)?)))
}

fn run<T: DeserializeOwned>(
    task: &'static Task,
    shown: Option<Shown>,
) -> io::Result<(Result<T, Lost>, String)> {
    let folder = tempfile::tempdir()?;
    let (answer, output) = (folder.path().join("answer.json"), folder.path().join("output.txt"));
    let seconds = std::env::var(SECONDS).ok().and_then(|text| text.parse().ok());
    let seconds = seconds.unwrap_or(DEFAULT_SECONDS);
    let printed = File::create(&output)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.env(child::TASK, &task.number).env(child::ANSWER, &answer).env(NO_FAILURES_KEPT, "1");
    // What one process leaves in its temporary folder, the next one does not find.
    for name in ["TMPDIR", "TMP", "TEMP"] {
        command.env(name, folder.path());
    }
    command.stdin(Stdio::piped()).stdout(printed.try_clone()?).stderr(printed);
    let mut process = command.spawn()?;
    if let Some(mut order) = process.stdin.take() {
        order.write_all(&serde_json::to_vec(&shown)?)?;
    }
    let answer = match ended(&mut process, Duration::from_secs(seconds))? {
        None => {
            process.kill()?;
            process.wait()?;
            Err(Lost::Stopped(seconds))
        }
        Some(status) => {
            let answer = std::fs::read(&answer).ok();
            let answer = answer.and_then(|text| serde_json::from_slice(&text).ok());
            answer.ok_or(Lost::Ended(status))
        }
    };
    let printed = std::fs::read(&output).unwrap_or_default();
    Ok((answer, String::from_utf8_lossy(&printed).into_owned()))
}
