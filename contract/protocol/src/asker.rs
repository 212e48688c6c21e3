//! The asking side: an implementation of every interface, whose answers come from the other side.

use crate::frame::{Ends, whole};
use interfaces::attention::interface::{KeyValueCache, KeysValues};
use interfaces::interface::{Manner, Refusal, Reply};
use interfaces::rope::interface::{RopeCase, RopeModule, RopeState};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::io;
use std::panic::resume_unwind;
use std::rc::Rc;

/// The addressee of a question. What it asks follows.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Whom<'q> {
    /// The implementation of a component's interface.
    Interface(&'q str),
    /// Something that an implementation has made.
    Made(u32),
}

/// The head of a frame from the side that asks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Head<'q> {
    /// A question, its number, and the name of the call; the arguments follow.
    Ask(u64, #[serde(borrow)] Whom<'q>, &'q str),
    /// Something that was made is not needed any more.
    Release(u32),
    /// There is no other question; the last words follow.
    Done,
}

/// What became of a question.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Outcome<T> {
    Answer(T),
    Refused(Refusal),
    Panicked(String),
}

/// What travels for an answer: itself, or the number of what was made.
pub(crate) trait Carried: Sized {
    type Sent: Serialize + DeserializeOwned;

    /// What the asking side makes of it.
    fn arrived(sent: Self::Sent, talk: &Talk) -> Self;
}

/// Why nothing more can be asked.
pub type Lost = String;

struct Line {
    ends: Ends,
    number: u64,
    lost: Option<Lost>,
}

/// The conversation, shared with what was made in it.
#[derive(Clone)]
pub(crate) struct Talk(Rc<RefCell<Line>>);

impl Talk {
    fn ask<T: Carried>(&self, whom: Whom, call: &str, arguments: &impl Serialize) -> Reply<T> {
        let mut line = self.0.borrow_mut();
        if let Some(lost) = &line.lost {
            return Err(Refusal::not_asked(lost));
        }
        let number = line.number;
        line.number = number.wrapping_add(1);
        let asked = line.ends.send(&(Head::Ask(number, whom, call), arguments));
        let answered = asked.and_then(|()| line.ends.receive());
        let outcome = answered.and_then(|bytes| whole::<(u64, Outcome<T::Sent>)>(&bytes));
        let outcome = outcome.and_then(|(of, outcome)| match of == number {
            true => Ok(outcome),
            false => Err(io::Error::other(format!("an answer to question {of}, not to {number}"))),
        });
        match outcome {
            Ok(Outcome::Answer(sent)) => {
                drop(line);
                Ok(T::arrived(sent, self))
            }
            Ok(Outcome::Refused(refusal)) => Err(refusal),
            // As if it had happened here: who judges catches it.
            Ok(Outcome::Panicked(words)) => {
                drop(line);
                resume_unwind(Box::new(words))
            }
            Err(error) => {
                let lost = error.to_string();
                line.lost = Some(lost.clone());
                Err(Refusal::not_asked(lost))
            }
        }
    }
}

/// An implementation whose answers come from the other side.
#[derive(Clone)]
pub struct Asker {
    talk: Talk,
}

impl Asker {
    /// Questions are numbered from `first` on.
    pub fn new(ends: Ends, first: u64) -> Self {
        Self { talk: Talk(Rc::new(RefCell::new(Line { ends, number: first, lost: None }))) }
    }

    /// Why nothing more can be asked, if so.
    pub fn lost(&self) -> Option<Lost> {
        self.talk.0.borrow().lost.clone()
    }

    /// Says that there is no other question, and some last words.
    ///
    /// # Errors
    /// A pipe that is closed.
    pub fn done(&self, last: &impl Serialize) -> io::Result<()> {
        self.talk.0.borrow_mut().ends.send(&(Head::Done, last))
    }

    pub(crate) fn ask<T: Carried>(
        &self,
        slug: &str,
        call: &str,
        arguments: &impl Serialize,
    ) -> Reply<T> {
        self.talk.ask(Whom::Interface(slug), call, arguments)
    }
}

/// Something that the other side has made.
pub(crate) struct Made {
    talk: Talk,
    id: u32,
}

impl Made {
    fn ask<T: Carried>(&self, call: &str, arguments: &impl Serialize) -> Reply<T> {
        self.talk.ask(Whom::Made(self.id), call, arguments)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // It may be dropped while a panic goes by, or after the end, when it does not matter.
        if let Ok(mut line) = self.talk.0.try_borrow_mut()
            && line.lost.is_none()
        {
            let _ = line.ends.send(&Head::Release(self.id));
        }
    }
}

impl RopeModule for Made {
    fn state(&self) -> Reply<RopeState> {
        self.ask("state", &())
    }

    fn cloned(&self) -> Reply<Box<dyn RopeModule>> {
        self.ask("cloned", &())
    }

    fn forward_in(&mut self, manner: Manner, case: &RopeCase) -> Reply<Vec<f32>> {
        self.ask("forward_in", &(manner, case))
    }

    fn backward_in(&mut self, manner: Manner, case: &RopeCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.ask("backward_in", &(manner, case, dy))
    }

    fn forward_at(
        &mut self,
        manner: Manner,
        case: &RopeCase,
        position_ids: &[usize],
    ) -> Reply<Vec<f32>> {
        self.ask("forward_at", &(manner, case, position_ids))
    }

    fn backward_at(
        &mut self,
        manner: Manner,
        case: &RopeCase,
        position_ids: &[usize],
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        self.ask("backward_at", &(manner, case, position_ids, dy))
    }
}

impl KeyValueCache for Made {
    fn positions(&self) -> Reply<usize> {
        self.ask("positions", &())
    }

    fn push_in(&mut self, manner: Manner, piece: &KeysValues) -> Reply<KeysValues> {
        self.ask("push_in", &(manner, piece))
    }
}

impl Carried for Box<dyn RopeModule> {
    type Sent = u32;

    fn arrived(id: u32, talk: &Talk) -> Self {
        Box::new(Made { talk: talk.clone(), id })
    }
}

impl Carried for Box<dyn KeyValueCache> {
    type Sent = u32;

    fn arrived(id: u32, talk: &Talk) -> Self {
        Box::new(Made { talk: talk.clone(), id })
    }
}
