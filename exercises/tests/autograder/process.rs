//! Runs the learner's code in a separate process, with a time limit.

use crate::child::{self, UNWRITTEN};
use crate::own::Own;
use contract::grade::Grade;
use contract::printed::{Printed, with_commas};
use contract::property::Shown;
use contract::task::Task;
use serde::de::DeserializeOwned;
use std::io::{self, BufReader, PipeReader, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wait_timeout::ChildExt;

/// Time limit of a process in seconds, of computing.
const SECONDS: &str = "QUADRIVIUM_SECONDS";
const DEFAULT_SECONDS: u64 = 10;

/// What a line costs that is printed, at least. This much is not counted as computing, up to the time limit once more;
/// a program that prints more lines than that is stopped.
const LINE: Duration = Duration::from_micros(2);

/// If code prints this many lines, the report says that they may be what takes the time.
const MANY_LINES: u64 = 100_000;

/// The memory that a process may have, in GiB. A machine without any left stops for minutes, and with it the editor.
const MEMORY: u64 = 2;

/// A failure that proptest keeps in a file would be tried first the next time: another grade for the same code.
const NO_FAILURES_KEPT: &str = "PROPTEST_DISABLE_FAILURE_PERSISTENCE";

/// How a process ended that gave no answer.
enum Lost {
    NotStarted(String),
    Stopped(Stop),
    Ended(ExitStatus),
}

/// Why a process was stopped.
enum Stop {
    /// It has computed, or printed, for so long.
    Computed(Duration),
    /// It was there for so long, and computed for a part of it.
    Waited(Duration),
    /// It had more than [`MEMORY`].
    Memory,
}

/// What a process of this program answers, and what the learner's code printed: the grade of a task, or, with a
/// implementation, the words with which the learner's invariant refuses it.
///
/// # Errors
/// A grade that says why there is no answer.
pub fn ask<T: DeserializeOwned>(
    own: &Own,
    task: &'static Task,
    shown: Option<Shown>,
) -> Result<(T, Printed), Box<Grade>> {
    let (answer, printed) = run(own, task, shown)
        .unwrap_or_else(|error| (Err(Lost::NotStarted(error.to_string())), Printed::default()));
    let mut grade = match answer {
        Ok(answer) => return Ok((answer, printed)),
        Err(Lost::NotStarted(why)) => Grade::not_started(
            task,
            format!("it can't be judged here: {why}. Grade again once that is fixed"),
        ),
        Err(Lost::Stopped(Stop::Memory)) => Grade::failed(
            task,
            "autograder/memory",
            "A task needs little memory.",
            format!(
                "it took more than {MEMORY} GiB, so it was stopped. Does something grow in a loop that does not end?"
            ),
        ),
        Err(Lost::Stopped(Stop::Waited(whole))) => Grade::failed(
            task,
            "autograder/time",
            "A task ends within its time limit.",
            format!(
                "it did not end in {} seconds, and computed for a small part of them, so it was stopped. Does it wait for \
                 something that does not come: a lock, a message, a sleep?",
                whole.as_secs()
            ),
        ),
        Err(Lost::Stopped(Stop::Computed(limit))) => Grade::failed(
            task,
            "autograder/time",
            "A task ends within its time limit.",
            format!(
                "it did not end in {} seconds of computing, so it was stopped. {} ({SECONDS}=60 sets another limit.)",
                limit.as_secs(),
                why_so_long(printed.lines())
            ),
        ),
        Err(Lost::Ended(status)) => Grade::failed(
            task,
            "autograder/no-grade",
            "A task lets its process live.",
            format!(
                "the process ended without a grade ({status}): {}",
                why_ended(status, &printed)
            ),
        ),
    };
    grade.printed = printed.shown();
    Err(Box::new(grade))
}

fn why_so_long(lines: u64) -> String {
    if lines < MANY_LINES {
        return "Is there a loop that does not end?".to_string();
    }
    format!(
        "It printed {} lines until then, and printing takes time: print less, such as for one input only. If it prints for \
         ever, look for a loop that does not end.",
        with_commas(lines)
    )
}

/// What ends a process in this way.
fn why_ended(status: ExitStatus, printed: &Printed) -> String {
    if printed.memory_is_full {
        return "it asked for more memory than there is. Look for a size that is too large, or something that grows in a loop."
            .to_string();
    }
    if printed.stack_is_full {
        return "it ran out of stack. Look for a function that calls itself without end, or for a very large array."
            .to_string();
    }
    if let Some(code) = status.code() {
        return format!("your code ended it. Look for `exit({code})`.");
    }
    #[cfg(unix)]
    match std::os::unix::process::ExitStatusExt::signal(&status) {
        Some(6) => {
            return "your code ended it. Look for `abort`, or for a panic in a `drop`.".to_string();
        }
        Some(9) => {
            return "the system or someone else ended it. Does the code ask for more memory than there is?".to_string();
        }
        _ => {}
    }
    "look for `exit`, `abort` and a function that calls itself without end.".to_string()
}

/// How the process ended, or why it must be stopped: it has computed for so long. On a machine with much to do it gets a core
/// only now and then; so it is given more time, but not for ever, since it may also wait for something that never comes.
fn ended(
    process: &mut Child,
    limit: Duration,
    lines: impl Fn() -> u64,
) -> io::Result<Result<ExitStatus, Stop>> {
    const PATIENCE: u32 = 6;
    const LOOK: Duration = Duration::from_millis(100);
    // This process may be stopped too, as by Ctrl-Z, and that time is not counted.
    const LONGEST_LOOK: Duration = Duration::from_secs(1);
    let (mut last, mut so_far) = (Instant::now(), Duration::ZERO);
    loop {
        if let Some(status) = process.wait_timeout(LOOK)? {
            return Ok(Ok(status));
        }
        so_far += last.elapsed().min(LONGEST_LOOK);
        last = Instant::now();
        let printing = LINE.saturating_mul(lines().min(u32::MAX.into()) as u32);
        let computed = computed(process.id()).unwrap_or(so_far);
        if printing >= limit || computed >= limit + printing {
            return Ok(Err(Stop::Computed(limit)));
        }
        if memory(process.id()).is_some_and(|bytes| bytes >> 30 >= MEMORY) {
            return Ok(Err(Stop::Memory));
        }
        if so_far >= limit * PATIENCE {
            return Ok(Err(Stop::Waited(limit * PATIENCE)));
        }
    }
}

/// The memory of a process, in bytes. Known on Linux.
fn memory(id: u32) -> Option<u64> {
    let about = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = about.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// How long a process has computed. Known on Linux.
fn computed(id: u32) -> Option<Duration> {
    let about = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // After the name, which is in parentheses, are the state and other fields; the 12th and the 13th count the
    // hundredths of a second in the program and in the system.
    let fields: Vec<&str> = about.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |nth: usize| fields.get(nth)?.parse::<u64>().ok();
    Some(Duration::from_millis(10 * (ticks(11)? + ticks(12)?)))
}

fn run<T: DeserializeOwned>(
    own: &Own,
    task: &'static Task,
    shown: Option<Shown>,
) -> io::Result<(Result<T, Lost>, Printed)> {
    let folder = tempfile::tempdir()?;
    let answer = folder.path().join("answer.json");
    let seconds = std::env::var(SECONDS).ok().and_then(|text| text.parse().ok());
    // More than anyone waits, and less than overflows.
    let seconds = seconds.unwrap_or(DEFAULT_SECONDS).min(u32::MAX.into());
    let (output, printed) = io::pipe()?;
    let mut command = Command::new(&own.program);
    command.env(child::TASK, &task.number).env(child::ANSWER, &answer).env(NO_FAILURES_KEPT, "1");
    command.env(child::CRATES, &own.crates);
    // What one process leaves in its temporary folder, the next one does not find.
    for name in ["TMPDIR", "TMP", "TEMP"] {
        command.env(name, folder.path());
    }
    command.stdin(Stdio::piped()).stdout(printed.try_clone()?).stderr(printed);
    let mut process = command.spawn()?;
    drop(command); // and with it the ends of the pipe that are not the process's
    let output = Output::of(output);
    // Open until the process has ended: it ends when this end is closed.
    let mut order = process.stdin.take();
    if let Some(order) = &mut order {
        // One that could not begin does not read it, and is reported below.
        let _ = order.write_all(format!("{}\n", serde_json::to_string(&shown)?).as_bytes());
    }
    let lines = || output.so_far(Printed::lines);
    let status = ended(&mut process, Duration::from_secs(seconds), lines)?;
    if status.is_err() {
        process.kill()?;
        process.wait()?;
    }
    drop(order);
    let printed = output.end();
    let text = std::fs::read(&answer).ok();
    let answer = match (status, text) {
        // It makes the file before all else, and ends so if it can't write all of it.
        (Ok(status), text) if text.is_none() || status.code() == Some(UNWRITTEN.into()) => {
            let words = printed.shown().join("\n");
            Err(Lost::NotStarted(if words.is_empty() { status.to_string() } else { words }))
        }
        (status, text) => serde_json::from_slice(&text.unwrap_or_default())
            .map_err(|_| status.map_or_else(Lost::Stopped, Lost::Ended)),
    };
    Ok((answer, printed))
}

/// What a process prints, read beside it: its memory does not grow, and no disk fills up.
struct Output {
    printed: Arc<Mutex<Printed>>,
    over: Receiver<()>,
}

impl Output {
    fn of(pipe: PipeReader) -> Self {
        let printed = Arc::new(Mutex::new(Printed::default()));
        let (tell, over) = channel::<()>();
        let theirs = printed.clone();
        std::thread::spawn(move || {
            let take =
                |line: &str| theirs.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            // What can't be read is not shown; it is no part of the grade.
            let _ = Printed::read(BufReader::with_capacity(1 << 16, pipe), take);
            drop(tell);
        });
        Self { printed, over }
    }

    fn so_far<T>(&self, of: impl FnOnce(&Printed) -> T) -> T {
        of(&self.printed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All of it, once the process is over. One that it has started itself may go on, and keep the pipe open.
    fn end(self) -> Printed {
        let _ = self.over.recv_timeout(Duration::from_secs(1));
        self.so_far(Printed::clone)
    }
}
