//! A race as bars: in the terminal, and as a figure.

use crate::{COMPOSED, COPY, FUSED, PLAIN, Race, Times, YOURS};
use console::style;
use learner::{Error, Result};
use notebook_support::plot::{
    Area, BLUE, Figure, GREEN, INK, ORANGE, PALE, PURPLE, Painted, VERMILLION, small_font,
};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::Path;

/// Columns of the longest bar.
const COLUMNS: f64 = 18.0;

/// The fastest first.
fn sorted(race: &Race) -> Vec<&Times> {
    let mut times: Vec<&Times> = race.times.iter().collect();
    times.sort_by(|a, b| a.median.total_cmp(&b.median));
    times
}

/// The time of the copy: the unit.
fn copy(race: &Race) -> f64 {
    race.times
        .iter()
        .find(|times| times.implementation == COPY)
        .map_or(f64::NAN, |copy| copy.median)
}

/// How far the copy's own times are apart, where it is too far for the bars to mean much.
pub fn disturbed(race: &Race) -> Option<f64> {
    let copy = race.times.iter().find(|times| times.implementation == COPY)?;
    Some(copy.most / copy.least).filter(|apart| *apart > 4.0)
}

fn longest(race: &Race) -> f64 {
    race.times.iter().map(|times| times.median).fold(0.0, f64::max)
}

/// Of its bar. The part comes first: `18 * x / x` may be more than 18, by rounding.
fn columns(median: f64, longest: f64) -> usize {
    (COLUMNS * (median / longest)).ceil() as usize
}

/// A line for each implementation: its bar, its time in copies, and in milliseconds.
pub fn lines(race: &Race) -> Vec<String> {
    let line = |times: &Times| {
        let Times { implementation, median, least, most, recorded } = times;
        let columns = columns(*median, longest(race));
        let bar = style("━".repeat(columns));
        let bar = if *implementation == YOURS { bar.green().bold() } else { bar.cyan() };
        let rest = " ".repeat(COLUMNS as usize - columns);
        let copies = median / copy(race);
        let measured = match recorded {
            true => "recorded".to_string(),
            false => {
                let [median, least, most] = [median, least, most].map(|time| time * 1e3);
                format!("{median:>6.2} ms ({least:.2} to {most:.2})")
            }
        };
        format!("  {implementation:<18}{bar}{rest}{copies:>6.1} copies {measured}")
    };
    sorted(race).into_iter().map(line).collect()
}

/// Draws the races of a component, one above the other.
pub fn draw(races: &[Race], out: &Path) -> Result<()> {
    const QUESTION: &str = "How many copies of the bytes does each version cost?";
    let rows: usize = races.iter().map(|race| race.times.len() + 2).sum();
    let figure = Figure::paint(QUESTION, (900, 60 + 30 * rows as u32), |area| paint(area, races));
    let refused = |reason: String| Error::File { file: out.display().to_string(), reason };
    let figure = figure.map_err(|error| refused(error.to_string()))?;
    let folder = out.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| learner::save::write(out, figure.svg()))
        .map_err(|error| refused(error.to_string()))
}

fn paint(area: &Area, races: &[Race]) -> Painted {
    let (left, width) = (190, 560.0);
    let mut y = 10;
    for race in races {
        area.draw(&Text::new(race.title.clone(), (10, y), small_font()))?;
        y += 30;
        for times in sorted(race) {
            let end = left + (width * times.median / longest(race)).ceil() as i32;
            let right = small_font().pos(Pos::new(HPos::Right, VPos::Top));
            let copies = format!("{:.1}", times.median / copy(race));
            area.draw(&Text::new(times.implementation.to_string(), (left - 10, y + 3), right))?;
            area.draw(&Rectangle::new(
                [(left, y), (end, y + 18)],
                colour(times.implementation).filled(),
            ))?;
            area.draw(&Text::new(copies, (end + 8, y + 3), small_font()))?;
            y += 30;
        }
        area.draw(&PathElement::new([(left, y), (left + width as i32, y)], PALE))?;
        y += 30;
    }
    Ok(())
}

fn colour(implementation: &str) -> RGBColor {
    match implementation {
        COPY => INK,
        YOURS => VERMILLION,
        FUSED => GREEN,
        COMPOSED => BLUE,
        PLAIN => ORANGE,
        _ => PURPLE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_race() -> Race {
        let times = |implementation, median: f64| {
            let (least, most) = (median / 2.0, median * 3.0);
            Times { implementation, median, least, most, recorded: implementation == "PyTorch" }
        };
        let times = vec![
            times(YOURS, 0.040),
            times(COPY, 0.004),
            times("PyTorch", 0.006),
            times("plain loop", 0.0199),
        ];
        Race { slug: "norm", title: "norm".to_string(), times, note: String::new() }
    }

    #[test]
    fn the_fastest_is_first_and_all_are_told_in_copies() {
        let lines = lines(&a_race());
        let implementations = [COPY, "PyTorch", "plain loop", YOURS];
        let said = implementations.into_iter().zip(["1.0", "1.5", "5.0", "10.0"]);
        assert_eq!(lines.len(), implementations.len());
        for (line, (implementation, copies)) in lines.iter().zip(said) {
            // What was not run here has no time.
            assert_eq!(line.contains(" ms"), implementation != "PyTorch", "{line}");
            assert!(
                line.contains(implementation) && line.contains(&format!("{copies} copies")),
                "{line}"
            );
            assert!(console::measure_text_width(line) <= 80, "{line}");
        }
    }

    #[test]
    fn a_machine_that_does_something_else_is_told() {
        let mut race = a_race();
        assert_eq!(disturbed(&race), Some(6.0));
        race.times[1].least = race.times[1].most / 3.0;
        assert_eq!(disturbed(&race), None);
    }

    #[test]
    fn the_figure_has_every_implementation() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/norm.svg");
        draw(&[a_race()], &file).unwrap();
        let svg = std::fs::read_to_string(&file).unwrap();
        assert!(["copy", "plain loop", "yours", "10.0"].iter().all(|text| svg.contains(text)));
        assert!(draw(&[a_race()], &file.join("x.svg")).is_err(), "a file is no folder");
    }

    #[test]
    fn no_bar_is_longer_than_the_longest() {
        let (mut wrong, mut time) = (0, 1e-4);
        for _ in 0..10_000 {
            time *= 1.000_731;
            assert_eq!(columns(time, time), 18, "{time}");
            assert!((1..=9).contains(&columns(time / 2.0, time)), "{time}");
            wrong += usize::from((COLUMNS * time / time).ceil() > COLUMNS);
        }
        assert!(wrong > 0, "in the other order it would be as good");
    }
}
