//! What a reader sees: lines of at most 80 columns, with colours on a terminal only.

use crate::error::Result;
use console::{measure_text_width, style};
use std::io::{ErrorKind, Write};

/// Lines are not longer than this.
pub const WIDTH: usize = 80;

/// Standard output, standard error, or nothing.
///
/// If the reader goes away (`cargo course tour | head -3`), the rest is dropped without an
/// error: the tour still measures everything, and the exit code still says what it found.
#[derive(Debug)]
pub struct Terminal {
    silent: bool,
    error: bool,
}

impl Terminal {
    /// Standard output.
    pub fn stdout() -> Self {
        Self { silent: false, error: false }
    }

    /// Standard error, where standard output belongs to a script.
    pub fn stderr() -> Self {
        Self { silent: false, error: true }
    }

    /// Prints nothing.
    pub fn silent() -> Self {
        Self { silent: true, error: false }
    }

    /// One line as it is.
    ///
    /// # Errors
    /// It can't be written, and not because its reader has gone.
    pub fn line(&mut self, line: &str) -> Result<()> {
        if self.silent {
            return Ok(());
        }
        let written = match self.error {
            true => writeln!(std::io::stderr(), "{line}"),
            false => writeln!(std::io::stdout(), "{line}"),
        };
        match written {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.silent = true;
                Ok(())
            }
            result => Ok(result?),
        }
    }

    /// A text in lines that fit, each with the same beginning.
    ///
    /// # Errors
    /// As for [`Terminal::line`].
    pub fn text(&mut self, indent: &str, text: &str) -> Result<()> {
        for line in wrap(text, WIDTH - indent.len()) {
            self.line(&format!("{indent}{line}"))?;
        }
        Ok(())
    }

    /// A name and what it is, in two columns.
    ///
    /// # Errors
    /// As for [`Terminal::line`].
    pub fn entry(&mut self, name: &str, text: &str) -> Result<()> {
        let mut name = format!("{name:<12}");
        for line in wrap(text, WIDTH - 14) {
            self.line(&format!("  {}{line}", style(&name).dim()))?;
            name = " ".repeat(12);
        }
        Ok(())
    }

    /// The title of a step.
    ///
    /// # Errors
    /// As for [`Terminal::line`].
    pub fn heading(&mut self, title: &str) -> Result<()> {
        self.line("")?;
        let rule = "─".repeat(WIDTH.saturating_sub(measure_text_width(title) + 1));
        self.line(&format!("{} {}", style(title).bold().cyan(), style(rule).dim()))
    }
}

/// Breaks a text between words. A word that is too long has its own line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if measure_text_width(line) + 1 + measure_text_width(word) <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_string());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit() {
        let lines = wrap("one two three four", 9);
        assert_eq!(lines, ["one two", "three", "four"]);
    }
}
