//! What the board knows.

use super::book::Book;
use crate::error::{Error, Result};
use crate::exercise::grading::{Graded, Grades};
use contract::registry::TASKS;
use contract::task::Task;

/// What the board knows.
#[derive(Debug, Default)]
pub struct View {
    /// The last grades, if there were any.
    pub grades: Option<Grades>,
    /// Why the code could not be graded after that.
    pub error: Option<Error>,
    /// What grading does now; nothing if it is done.
    pub status: String,
    /// Where the book is, or why it is not there.
    pub book: Option<Book>,
}

impl View {
    /// Whether the grades may be those of a code that was.
    pub fn is_grading(&self) -> bool {
        !self.status.is_empty()
    }

    /// Takes in what came out of grading. Where nothing compiles, it is unknown what the code does; the grades of a
    /// code that could not be built for another reason stay.
    pub fn learn(&mut self, outcome: Result<Graded>) {
        match outcome {
            Ok(Graded { grades, uncompiled, .. }) => {
                (self.grades, self.error) = (Some(grades), uncompiled);
            }
            Err(error) => {
                self.grades.take_if(|_| matches!(error, Error::DoesNotCompile(_)));
                self.error = Some(error);
            }
        }
    }
}

/// The board is about all of them.
pub fn every_task() -> Vec<&'static Task> {
    TASKS.iter().collect()
}
