//! What a reader sees: lines of at most 80 columns, with colours on a terminal only.

use crate::error::Result;
use crate::finding::Finding;
use console::{measure_text_width, style};
pub use kit::plot::thousands;
use std::io::{ErrorKind, Write};
use std::time::Duration;

/// Lines are not longer than this.
pub const WIDTH: usize = 80;

/// Standard output, or nothing.
///
/// If the reader goes away (`cargo course tour | head -3`), the rest is dropped without an
/// error: the tour still measures everything, and the exit code still says what it found.
#[derive(Debug)]
pub struct Terminal {
    silent: bool,
}

impl Terminal {
    /// Standard output.
    pub fn stdout() -> Self {
        Self { silent: false }
    }

    /// Prints nothing.
    pub fn silent() -> Self {
        Self { silent: true }
    }

    /// One line as it is.
    ///
    /// # Errors
    /// Standard output can't be written, and not because its reader has gone.
    pub fn line(&mut self, line: &str) -> Result<()> {
        if self.silent {
            return Ok(());
        }
        match writeln!(std::io::stdout(), "{line}") {
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

    /// An invariant: whether it holds, what was measured, what it says.
    ///
    /// # Errors
    /// As for [`Terminal::line`].
    pub fn finding(&mut self, finding: &Finding) -> Result<()> {
        let Finding { measured, bound, unit, .. } = finding;
        let (measured, bound) = (number(*measured), number(*bound));
        let (mark, sign) = if finding.holds {
            (style("holds").green().bold(), "<=")
        } else {
            (style("FAILS").red().bold(), "is not <=")
        };
        let name = finding.invariant;
        let value = match finding.out_of {
            Some(cases) => format!("{measured} of {} {unit} differ", thousands(cases)),
            None => format!("{measured} {sign} {bound} {unit}"),
        };
        let gap = WIDTH.saturating_sub(9 + name.len() + value.len()).max(1);
        self.line("")?;
        let gap = " ".repeat(gap);
        self.line(&format!("  {mark}  {}{gap}{value}", style(name).bold()))?;
        self.text("         ", finding.words)?;
        for line in wrap(finding.formula, WIDTH - 9) {
            self.line(&format!("         {}", style(line).dim()))?;
        }
        Ok(())
    }
}

/// A count as it is; a measurement with three digits.
pub fn number(x: f64) -> String {
    match x {
        x if x.fract() == 0.0 && x.abs() < 1e9 => format!("{x:.0}"),
        x if (0.01..1e5).contains(&x.abs()) => format!("{x:.5}"),
        x => format!("{x:.2e}"),
    }
}

/// A time in the unit that suits it.
pub fn time(duration: Duration) -> String {
    match duration.as_secs_f64() {
        s if s >= 1.0 => format!("{s:.1} s"),
        s if s >= 1e-3 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.0} us", s * 1e6),
    }
}

/// Breaks a text between words. A word that is too long has a line of its own.
fn wrap(text: &str, width: usize) -> Vec<String> {
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
    fn numbers() {
        assert_eq!(number(0.0), "0");
        assert_eq!(number(5.656861), "5.65686");
        assert_eq!(number(2.384e-6), "2.38e-6");
        assert_eq!(number(f64::NAN), "NaN");
        assert_eq!(thousands(100280), "100,280");
        assert_eq!(thousands(999), "999");
    }

    #[test]
    fn lines_fit() {
        let lines = wrap("one two three four", 9);
        assert_eq!(lines, ["one two", "three", "four"]);
    }
}
