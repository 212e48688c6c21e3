//! The interfaces over a pipe: an implementation that lives in another process answers as if it were here.
//!
//! One side asks and the other answers, one question at a time. A frame is a length of four bytes, little-endian, and so many
//! bytes of [postcard](https://postcard.jamesmunns.com). Floats travel as their bits, so an answer is the same here
//! and there, also if it is no number.
//!
//! - [`Asker`] is an implementation of every interface. What it is asked, it asks the other side.
//! - [`serve`] answers what comes with the implementations of this side.
//!
//! The asking side trusts nothing that comes back: an answer that is too long, that is to another question, that is not
//! of its type or that has something after it ends the conversation, and so does the end of the pipe. From then on
//! every question is refused as one that did not reach the implementation, and [`Asker::lost`] says why.

mod asker;
mod frame;
mod implementations;

pub use asker::{Asker, Lost};
pub use frame::{Ends, MOST, whole};
pub use implementations::{Implementations, Served, serve};

use serde::{Deserialize, Serialize};

/// Both sides must have the same. The answer to an [`Order`].
pub const VERSION: u32 = 1;

/// What a program with a learner's code is asked to do. The first frame that it reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// To answer questions, with [`serve`].
    Answer {
        /// The calls that may reach the code: others are refused before it.
        calls: Vec<String>,
        /// Whether gradients come from the functions that are written by hand, or from the tape.
        by_hand: bool,
    },
    /// To ask, with the learner's own invariant of a component, and then to say what it has refused, if anything.
    Judge {
        /// The component.
        slug: String,
    },
}
