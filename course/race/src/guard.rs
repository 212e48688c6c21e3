//! `cargo course bench --check`: ratios of times that were taken in one process. They depend little on the machine and on what else it
//! does, so code that has become slow is noticed without knowing how fast it was.

use crate::whole::{PARTS, PASS, PRODUCTS, STEP, TOKEN};
use crate::{COMPOSED, FUSED, PLAIN, Race, components, recorded, whole};
use learner::terminal::Terminal;
use serde_json::Value;
use std::error::Error;

/// Which program may take how many times as long as which.
const BOUNDS: [(&str, f64, &str); 5] = [
    (FUSED, 1.0, COMPOSED),
    (FUSED, 4.0, PLAIN),
    (STEP, 2.0, PARTS),
    (STEP, 6.0, PRODUCTS),
    (TOKEN, 20.0, PASS),
];

/// How many times a ratio of the book may be exceeded, on any machine: it has other cores and another memory.
const ELSEWHERE: f64 = 4.0;

/// How often a race is run before a ratio counts as exceeded. What disturbs a machine passes; slow code is slow each time.
const TRIES: usize = 3;

const ADVICE: &str = "The code is slower than its parts allow. If a change of the code does not explain it, look at the profiles in Cargo.toml: a crate that \
is built with less optimization than the program can slow down the functions that both use.";

/// Runs what is wanted, and compares: the races of components, those of the whole model as `model`, a decoded token as `token`.
/// Returns whether all ratios hold.
///
/// # Errors
/// Standard output can't be written; what the model refuses.
pub fn run(wanted: impl Fn(&str) -> bool) -> Result<bool, Box<dyn Error>> {
    let book = recorded::book()?;
    let mut hold = true;
    for (_, run) in components::ALL.iter().filter(|(slug, _)| wanted(slug)) {
        hold &= checked(|| Ok(run(false)), &book)?;
    }
    if wanted("model") {
        hold &= checked(whole::races, &book)?;
    }
    if wanted(course::arguments::TOKEN) {
        hold &= crate::token::check()?;
    }
    if !hold {
        Terminal::stdout().line(ADVICE)?;
    }
    Ok(hold)
}

/// Runs some races until all their ratios hold, or [`TRIES`] times.
fn checked(
    run: impl Fn() -> model::Result<Vec<Race>>,
    book: &Value,
) -> Result<bool, Box<dyn Error>> {
    let mut terminal = Terminal::stdout();
    let mut left = TRIES;
    loop {
        let races = run()?;
        left -= 1;
        let hold = races.iter().flat_map(|race| ratios(race, book)).all(|ratio| ratio.holds());
        if hold || left == 0 {
            for race in &races {
                terminal.heading(&race.title)?;
                for ratio in ratios(race, book) {
                    terminal.line(&ratio.line())?;
                }
            }
            return Ok(hold);
        }
    }
}

/// How many times as long one program takes as another.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ratio {
    who: &'static str,
    unit: &'static str,
    times: f64,
    most: f64,
}

impl Ratio {
    fn holds(self) -> bool {
        self.times <= self.most
    }

    fn line(self) -> String {
        let Self { who, unit, times, most } = self;
        let word = if self.holds() { "ok" } else { "SLOW" };
        format!("  {word:<6}{times:>6.2} (at most {most:.2})  {who} / {unit}")
    }
}

/// All ratios of a race, and of the same race in the book. The shortest times are compared, since nothing that disturbs makes a time
/// shorter.
fn ratios(race: &Race, book: &Value) -> Vec<Ratio> {
    let seen = |implementation: &str| {
        race.times
            .iter()
            .find(|times| times.implementation == implementation)
            .map(|times| times.least)
    };
    let recorded = |implementation: &str| book[&race.title][implementation]["least"].as_f64();
    let ratio = |(who, most, unit): (&'static str, f64, &'static str)| {
        let times = seen(who)? / seen(unit)?;
        let of_book = recorded(who).zip(recorded(unit)).map(|(who, unit)| who / unit);
        let most = of_book.map_or(most, |of_book| most.min(ELSEWHERE * of_book));
        Some(Ratio { who, unit, times, most })
    };
    BOUNDS.into_iter().filter_map(ratio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Times;

    fn a_race(fused: f64) -> Race {
        let times = |implementation, least: f64| {
            let (median, most) = (least * 2.0, least * 9.0);
            Times { implementation, median, least, most, recorded: false }
        };
        let times = vec![times(FUSED, fused), times(COMPOSED, 1.0), times(PLAIN, 0.2)];
        Race { slug: "norm", title: "norm, forward".to_string(), times, note: String::new() }
    }

    #[test]
    fn slow_code_exceeds_a_bound_and_the_line_names_it() {
        let slow = |fused: f64, book: &Value| -> Vec<String> {
            let ratios = ratios(&a_race(fused), book);
            assert_eq!(ratios.len(), 2);
            ratios.into_iter().filter(|ratio| !ratio.holds()).map(Ratio::line).collect()
        };
        let book = serde_json::json!({"norm, forward": {
            FUSED: {"least": 0.1}, COMPOSED: {"least": 2.0}, PLAIN: {"least": 0.1}}});
        assert_eq!(slow(0.7, &Value::Null), [""; 0]);
        let line = "  SLOW    4.50 (at most 4.00)  library, fused / plain loop";
        assert_eq!(slow(0.9, &Value::Null), [line]);
        assert_eq!(slow(1.1, &Value::Null).len(), 2);
        // The book says 1 / 20 of the composed code.
        let line = "  SLOW    0.21 (at most 0.20)  library, fused / library, composed";
        assert_eq!(slow(0.21, &book), [line]);
        assert_eq!(slow(0.19, &book), [""; 0]);
        assert_eq!(slow(f64::NAN, &book).len(), 2, "what is no number holds nothing");
    }
}
