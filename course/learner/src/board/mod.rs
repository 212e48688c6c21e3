//! The status board: what `cargo course` shows.
//!
//! The book is served as long as the board is open. It stores nothing. What is done is what the
//! autograder says is done, at each save again.

mod book;
mod lines;
mod screen;
mod view;

use crate::error::{Error, Result};
use crate::exercise::Workspace;
use crate::exercise::grading::grade;
use crate::exercise::show::width;
use crate::progress::with_spinner;
use crate::terminal::Terminal;
use console::user_attended;
use std::io::IsTerminal;
use view::{View, every_task};

/// Opens the board until the learner leaves, with the book beside it, served on the address `host`; prints it once if there is no
/// terminal.
///
/// # Errors
/// There are no exercises; saves can't be watched; the terminal can't be used. Without a terminal
/// also what can go wrong in grading, except for code that does not compile: the board shows that.
pub fn run(host: Option<String>) -> Result<bool> {
    let workspace = Workspace::find()?;
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if user_attended() && std::io::stdin().is_terminal() && !dumb {
        screen::run(workspace, host)?;
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
