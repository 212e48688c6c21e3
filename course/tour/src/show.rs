//! Findings, numbers and times, as a reader sees them.

use crate::error::Result;
use crate::finding::Finding;
use console::style;
use learner::terminal::{Terminal, WIDTH, wrap};
use notebook_support::plot::thousands;
use std::time::Duration;

/// An invariant: whether it holds, what was measured, what it says.
///
/// # Errors
/// Standard output can't be written, and not because its reader has gone.
pub fn finding(terminal: &mut Terminal, finding: &Finding) -> Result<()> {
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
    terminal.line("")?;
    let gap = " ".repeat(gap);
    terminal.line(&format!("  {mark}  {}{gap}{value}", style(name).bold()))?;
    terminal.text("         ", finding.words)?;
    for line in wrap(finding.formula, WIDTH - 9) {
        terminal.line(&format!("         {}", style(line).dim()))?;
    }
    Ok(())
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
}
