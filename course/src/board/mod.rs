//! The status board: what `cargo course` shows.
//!
//! It serves the book as long as it is open. It stores nothing. What is done is what the
//! autograder says is done, at each save again.

mod lines;
mod screen;

use crate::error::{Error, Result};
use crate::exercise::Workspace;
use crate::exercise::check::with_spinner;
use crate::exercise::grading::{Grades, grade};
use crate::exercise::show::width;
use crate::terminal::Terminal;
use console::user_attended;
use contract::registry::TASKS;
use contract::task::Task;
use std::io::IsTerminal;

/// What the board knows.
#[derive(Debug, Default)]
pub struct View {
    /// The last grades, if there were any.
    pub grades: Option<Grades>,
    /// Why the code could not be graded after that.
    pub error: Option<Error>,
    /// What is going on now.
    pub status: String,
    /// Where the book is, or why it is not there.
    pub book: Option<Result<String>>,
}

impl View {
    /// Takes in what came out of grading. The grades of a code that was, stay.
    fn learn(&mut self, outcome: Result<Grades>) {
        match outcome {
            Ok(grades) => (self.grades, self.error) = (Some(grades), None),
            Err(error) => self.error = Some(error),
        }
    }
}

/// Opens the board until the learner leaves; prints it once if there is no terminal.
///
/// # Errors
/// There are no exercises; saves can't be watched; the terminal can't be used. Without a terminal
/// also what can go wrong in grading, but for code that does not compile: the board shows that.
pub fn run() -> Result<bool> {
    let workspace = Workspace::find()?;
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if user_attended() && std::io::stdin().is_terminal() && !dumb {
        screen::run(workspace)?;
        return Ok(true);
    }
    let outcome = with_spinner(|progress| grade(&workspace, &every_task(), progress));
    let mut view = View::default();
    match outcome {
        Err(error) if !matches!(error, Error::DoesNotCompile(_)) => return Err(error),
        outcome => view.learn(outcome),
    }
    let mut terminal = Terminal::stdout();
    for line in lines::board(&view, &workspace, width(), None) {
        terminal.line(&line)?;
    }
    Ok(true)
}

fn every_task() -> Vec<&'static Task> {
    TASKS.iter().collect()
}
