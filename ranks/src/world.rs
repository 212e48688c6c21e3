//! Worlds: ranks that are asked as one: threads, or processes behind a pipe.

use crate::act::{Answer, Question, answer};
use crate::communicator::Communicator;
use crate::error::{Error, Refusal, Result};
use crate::launch::{Ended, Hosts, Launch, Started};
use crate::link::threads::{PATIENCE, run_for};
use protocol::Ends;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// What a world says: an answer, or what rank 0 refused.
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
pub trait World {
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
    /// This many.
    pub fn new(ranks: usize) -> Self {
        Self { ranks, patience: PATIENCE }
    }
}

impl World for OfThreads {
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
    ends: Ends,
}

impl OfProcesses {
    /// Starts them. `program` is the binary `answers` of this package.
    ///
    /// # Errors
    /// As for [`Launch::start`].
    pub fn start(program: &Path, ranks: usize, patience: Duration) -> Result<Self> {
        let arguments = vec![patience.as_secs().to_string().into()];
        let mut started = Launch {
            program: program.into(),
            arguments,
            ranks,
            threads: None,
            patience,
            piped: true,
            hosts: Hosts::default(),
        }
        .start()?;
        let Some((to, from)) = started.pipes() else {
            return Err(Error::Start { what: "mpirun".into(), reason: "it has no pipes".into() });
        };
        let at_work = AtWork { started, ends: Ends::new(from, to) };
        Ok(Self { ranks, at_work: at_work.into() })
    }
}

/// How long ranks that have failed may take to end.
const END: Duration = Duration::from_secs(60);

impl World for OfProcesses {
    fn world_size(&self) -> usize {
        self.ranks
    }

    fn ask(&self, question: &Question) -> Result<Said> {
        let AtWork { started, ends } = &mut *self.at_work.borrow_mut();
        if ends.send(question).is_ok()
            && let Ok(reply) = ends.receive()
        {
            let failed = |e: std::io::Error| Error::Start {
                what: "the ranks".into(),
                reason: e.to_string(),
            };
            return protocol::whole(&reply).map_err(failed);
        }
        Ok(match started.wait(END) {
            Ended::Badly(why) => Said::Failed(vec![why]),
            Ended::Well => Said::Failed(vec!["they ended without an answer".into()]),
        })
    }
}

/// The pause after which rank 0 says that there is no question.
const REST: Duration = Duration::from_millis(500);
/// What is no question, because it is no frame of this length: the pipe is closed.
const CLOSED: &[u8] = b"";
/// There is no question yet.
const NOTHING: &[u8] = b"nothing";

/// The frames of standard input, read by a thread.
fn frames() -> Receiver<Vec<u8>> {
    let (to, from) = channel();
    std::thread::spawn(move || {
        let mut ends = Ends::new(std::io::stdin(), std::io::sink());
        while let Ok(frame) = ends.receive() {
            if to.send(frame).is_err() {
                return;
            }
        }
    });
    from
}

/// What the program `answers` does on each rank: rank 0 reads questions, a frame each, and writes what all say.
///
/// # Errors
/// What can't be agreed on any more; then the ranks end.
pub fn serve(comm: &Rc<dyn Communicator>) -> Result<()> {
    let failed =
        |e: std::io::Error| Error::Start { what: "the pipe".into(), reason: e.to_string() };
    let frames = (comm.rank() == 0).then(frames);
    let mut out = Ends::new(std::io::empty(), std::io::stdout());
    loop {
        // While there is no question, rank 0 says so: the others do not wait longer for it than for any other.
        let frame = match frames.as_ref().map(|frames| frames.recv_timeout(REST)) {
            Some(Ok(frame)) => frame,
            Some(Err(RecvTimeoutError::Timeout)) => NOTHING.to_vec(),
            Some(Err(RecvTimeoutError::Disconnected)) | None => CLOSED.to_vec(),
        };
        let frame = comm.broadcast(0, &frame)?;
        match frame.as_slice() {
            CLOSED => return Ok(()),
            NOTHING => continue,
            _ => {}
        }
        let question: Question = protocol::whole(&frame).map_err(failed)?;
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
            out.send(&said).map_err(failed)?;
        }
    }
}
