//! A conversation with a submission's program, in the sandbox.

use crate::cage::Cage;
use crate::limit::{awaited, starved};
use crate::program::{OWN_SIGNALS, read_some, signal_of};
use protocol::{Ends, Order, VERSION, whole};
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use wait_timeout::ChildExt;

/// The most that is kept of what the code prints.
const PRINTED: u64 = 64 << 10;
/// How long a process may take to end after all was said.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long a process may take to end after its conversation has broken off.
const GRACE: Duration = Duration::from_secs(5);

/// A program that runs, and has its order.
pub struct Talk {
    waits: JoinHandle<io::Result<(String, Ending)>>,
    over: Sender<Over>,
}

/// What a conversation came to.
#[derive(PartialEq)]
enum Over {
    /// All was said.
    Whole,
    /// It broke off.
    Broken,
}

/// How a process ended.
enum Ending {
    /// By itself.
    Itself(ExitStatus),
    /// It was killed: its time was over.
    Late,
    /// It was killed: its answers were not wanted any more.
    Stopped,
}

/// How a program ended.
#[derive(Debug, Clone)]
pub struct End {
    /// What it printed.
    pub printed: String,
    /// Why its conversation broke off, if it did.
    pub why: Why,
}

/// Why a conversation broke off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It did not.
    Whole,
    /// It computed for too long.
    Computed,
    /// It took too long.
    Late,
    /// Something ended it that was not its limits, nor this program.
    Killed(String),
    /// It ended by itself, or said what is no answer.
    Ended(String),
}

/// Why a program has not even said its version.
pub struct NotStarted(pub String);

impl Talk {
    /// Starts a program in the sandbox, and gives it its order.
    ///
    /// # Errors
    /// It has not answered: no code of the learner's was called by then.
    pub fn start(cage: &Cage, program: &Path, order: &Order) -> Result<(Self, Ends), NotStarted> {
        let mut command = cage.run(program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let limit = Duration::from_secs(cage.limits.wall_seconds);
        let (over, ends_over) = channel();
        let (ready, started) = channel();
        // The process dies with the thread that has started it, so that thread waits for it.
        let waits = std::thread::spawn(move || {
            let mut child = command.spawn()?;
            let streams = (child.stdin.take(), child.stdout.take());
            let said = child.stderr.take();
            let _ = ready.send(streams);
            let printed = std::thread::spawn(move || read_some(said, PRINTED));
            let ending = wait(&mut child, limit, &ends_over)?;
            let printed =
                printed.join().map_err(|_| io::Error::other("its output can't be read"))?;
            Ok((printed, ending))
        });
        let talk = Self { waits, over };
        let Ok((Some(questions), Some(answers))) = started.recv() else {
            return Err(NotStarted(talk.words_of_failure()));
        };
        let mut ends = Ends::new(answers, questions);
        match greet(&mut ends, order) {
            Ok(()) => Ok((talk, ends)),
            Err(_) => {
                drop(ends);
                Err(NotStarted(talk.words_of_failure()))
            }
        }
    }

    fn words_of_failure(self) -> String {
        drop(self.over); // no one waits for the end of a conversation that there is not
        match self.waits.join() {
            Ok(Ok((printed, Ending::Itself(status)))) => format!("{} ({status})", printed.trim()),
            Ok(Ok((printed, _))) => format!("{} (it was stopped)", printed.trim()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "a thread ended".to_string(),
        }
    }

    /// The end of a conversation, whose ends are closed. `lost` says why it broke off, if it did.
    pub fn end(self, lost: Option<String>) -> End {
        let _ = self.over.send(if lost.is_some() { Over::Broken } else { Over::Whole });
        let (printed, ending) = match self.waits.join() {
            Ok(Ok(ended)) => ended,
            Ok(Err(error)) => {
                return End { printed: String::new(), why: Why::Killed(error.to_string()) };
            }
            Err(_) => {
                return End { printed: String::new(), why: Why::Killed("a thread ended".into()) };
            }
        };
        let why = match (lost, ending) {
            (None, _) => Why::Whole,
            (Some(_), Ending::Late) => Why::Late,
            (Some(lost), Ending::Stopped) => Why::Ended(lost),
            (Some(lost), Ending::Itself(status)) => reason(lost, status),
        };
        End { printed, why }
    }
}

/// Gives an order, and hears the version.
fn greet(ends: &mut Ends, order: &Order) -> io::Result<()> {
    ends.send(order)?;
    match whole::<u32>(&ends.receive()?)? {
        VERSION => Ok(()),
        other => {
            Err(io::Error::other(format!("its version is {other}, and {VERSION} is asked for")))
        }
    }
}

/// Waits for the process: until it has ended, until its conversation is over, or until its time is. Time in which it
/// waited for a core is not counted as its own: others may take them all.
fn wait(
    child: &mut std::process::Child,
    limit: Duration,
    over: &Receiver<Over>,
) -> io::Result<Ending> {
    let killed =
        |child: &mut std::process::Child| child.kill().and_then(|()| child.wait()).map(drop);
    let process = child.id();
    match awaited(over, || limit + starved(process)).0 {
        // It has nothing left to read, and ends. Killed, it would leave a dead process to the first process of the
        // system.
        Ok(Over::Whole) => match child.wait_timeout(FAREWELL)? {
            Some(status) => Ok(Ending::Itself(status)),
            None => killed(child).map(|()| Ending::Stopped),
        },
        // It was asked something and did not answer: how it ended says why, if it has.
        Ok(Over::Broken) | Err(RecvTimeoutError::Disconnected) => {
            match child.wait_timeout(GRACE)? {
                Some(status) => Ok(Ending::Itself(status)),
                None => killed(child).map(|()| Ending::Stopped),
            }
        }
        Err(RecvTimeoutError::Timeout) => killed(child).map(|()| Ending::Late),
    }
}

/// Why it ended.
fn reason(lost: String, status: ExitStatus) -> Why {
    match signal_of(status) {
        Some(24) => Why::Computed,
        Some(6) => Why::Ended("it was aborted (signal 6)".to_string()),
        Some(11) => Why::Ended("it ran out of stack, or of memory (signal 11)".to_string()),
        Some(signal) if OWN_SIGNALS.contains(&signal) => Why::Ended(format!("signal {signal}")),
        Some(signal) => Why::Killed(format!("something ended it by signal {signal}")),
        None => match status.code() {
            Some(0) => Why::Ended(format!("{lost}, and the process ended with exit code 0")),
            Some(code) => {
                Why::Ended(format!("{lost}, and the process ended with exit code {code}"))
            }
            None => Why::Ended(lost),
        },
    }
}
