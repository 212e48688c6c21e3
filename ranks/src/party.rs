//! Parties of ranks, to be asked as one: threads, or processes behind a pipe.

use crate::act::{Answer, Question, answer};
use crate::communicator::Communicator;
use crate::error::{Error, Refusal, Result};
use crate::launch::{Ended, Launch, Started};
use crate::link::threads::{PATIENCE, run_for};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// What a party says: an answer, or what rank 0 refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Said {
    /// All ranks have answered.
    Answer(Answer),
    /// All ranks have the same error: the rank that refused, and why.
    Refused(usize, Refusal),
    /// Another error, in words, as each rank has it.
    Failed(Vec<String>),
}

/// Ranks that answer as one.
pub trait Party {
    /// `w`.
    fn world_size(&self) -> usize;

    /// What the ranks say.
    ///
    /// # Errors
    /// Ranks that can't be spoken with.
    fn ask(&self, question: &Question) -> Result<Said>;
}

/// Ranks that are threads.
#[derive(Debug, Clone, Copy)]
pub struct OfThreads {
    /// `w`.
    pub ranks: usize,
    /// How long one is waited for.
    pub patience: Duration,
}

impl OfThreads {
    /// So many.
    pub fn new(ranks: usize) -> Self {
        Self { ranks, patience: PATIENCE }
    }
}

impl Party for OfThreads {
    fn world_size(&self) -> usize {
        self.ranks
    }

    fn ask(&self, question: &Question) -> Result<Said> {
        let of_ranks = run_for(self.ranks, self.patience, |comm| answer(comm, question));
        Ok(said(of_ranks.into_iter().map(|of_rank| match of_rank {
            Some(result) => result,
            None => Err(Error::Start { what: "a rank".into(), reason: "it panicked".into() }),
        })))
    }
}

/// What the ranks' results come to.
fn said(results: impl Iterator<Item = Result<Answer>>) -> Said {
    let results: Vec<Result<Answer>> = results.collect();
    match &results[0] {
        Ok(first) if results.iter().all(Result::is_ok) => Said::Answer(first.clone()),
        Err(Error::Refused { rank, why }) if results.iter().all(|result| *result == results[0]) => {
            Said::Refused(*rank, why.clone())
        }
        _ => {
            let words = |result: &Result<Answer>| match result {
                Ok(_) => "answered".to_string(),
                Err(error) => error.to_string(),
            };
            Said::Failed(results.iter().map(words).collect())
        }
    }
}

/// Ranks that are processes under mpirun, started once and asked many times.
pub struct OfProcesses {
    ranks: usize,
    at_work: std::cell::RefCell<AtWork>,
}

struct AtWork {
    started: Started,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl OfProcesses {
    /// Starts them. `program` is the binary `party` of this package.
    ///
    /// # Errors
    /// As for [`Launch::start`].
    pub fn start(program: &Path, ranks: usize, patience: Duration) -> Result<Self> {
        let arguments = vec![patience.as_secs().to_string().into()];
        let mut started =
            Launch { program: program.into(), arguments, ranks, piped: true }.start()?;
        let Some((to, from)) = started.pipes() else {
            return Err(Error::Start { what: "mpirun".into(), reason: "it has no pipes".into() });
        };
        let at_work = AtWork { started, to, from: BufReader::new(from) };
        Ok(Self { ranks, at_work: at_work.into() })
    }
}

/// How long ranks that have failed may take to end.
const END: Duration = Duration::from_secs(60);

impl Party for OfProcesses {
    fn world_size(&self) -> usize {
        self.ranks
    }

    fn ask(&self, question: &Question) -> Result<Said> {
        let AtWork { started, to, from } = &mut *self.at_work.borrow_mut();
        let failed = |reason: String| Error::Start { what: "the ranks".into(), reason };
        let line = serde_json::to_string(question).map_err(|e| failed(e.to_string()))?;
        let written = writeln!(to, "{line}").and_then(|()| to.flush());
        let mut reply = String::new();
        if written.is_ok() && from.read_line(&mut reply).is_ok_and(|bytes| bytes > 0) {
            return serde_json::from_str(&reply).map_err(|e| failed(format!("{e} in {reply:?}")));
        }
        Ok(match started.wait(END) {
            Ended::Badly(why) => Said::Failed(vec![why]),
            Ended::Well => Said::Failed(vec!["they ended without an answer".into()]),
        })
    }
}

/// The pause after which rank 0 says that there is no question.
const REST: Duration = Duration::from_millis(500);
/// No question is this line.
const END_OF_QUESTIONS: &str = "end";

/// The lines of standard input, read by a thread.
fn lines() -> Receiver<String> {
    let (to, from) = channel();
    std::thread::spawn(move || {
        let lines = std::io::stdin().lock().lines();
        lines.map_while(std::io::Result::ok).try_for_each(|line| to.send(line))
    });
    from
}

/// What the program `party` does on each rank: rank 0 reads questions, a line each, and writes what all say.
///
/// # Errors
/// What can't be agreed on any more; then the ranks end.
pub fn serve(comm: &dyn Communicator) -> Result<()> {
    let lines = (comm.rank() == 0).then(lines);
    loop {
        // While there is no question, rank 0 says so: the others do not wait longer for it than for anybody.
        let line = match lines.as_ref().map(|lines| lines.recv_timeout(REST)) {
            Some(Ok(line)) => line,
            Some(Err(RecvTimeoutError::Disconnected)) => END_OF_QUESTIONS.into(),
            Some(Err(RecvTimeoutError::Timeout)) | None => String::new(),
        };
        let line = comm.broadcast(0, line.as_bytes())?;
        match line.as_slice() {
            b"" => continue,
            line if line == END_OF_QUESTIONS.as_bytes() => return Ok(()),
            _ => {}
        }
        let question = serde_json::from_slice(&line);
        let question: Question = question
            .map_err(|e| Error::Start { what: "the question".into(), reason: e.to_string() })?;
        let mine = answer(comm, &question);
        let went_on = match &mine {
            Ok(_)
            | Err(
                Error::Refused { .. }
                | Error::Apart { .. }
                | Error::Block { .. }
                | Error::Library(_),
            ) => true,
            Err(_) => false, // the ranks are not together any more
        };
        if !went_on {
            mine?;
            continue;
        }
        let word = match &mine {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        let words = comm.gather(word.as_bytes())?;
        let words: Vec<String> =
            words.iter().map(|word| String::from_utf8_lossy(word).into()).collect();
        if comm.rank() == 0 {
            let alike = words.iter().all(|word| *word == words[0]);
            let said = match mine {
                Ok(answer) if alike => Said::Answer(answer),
                Err(Error::Refused { rank, why }) if alike => Said::Refused(rank, why),
                _ => Said::Failed(words),
            };
            let line = serde_json::to_string(&said)
                .map_err(|e| Error::Start { what: "the answer".into(), reason: e.to_string() })?;
            let mut out = std::io::stdout().lock();
            let _ = writeln!(out, "{line}").and_then(|()| out.flush());
        }
    }
}
