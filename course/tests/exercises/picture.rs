//! The picture in the README is what a learner sees in a terminal.

use crate::scratch::{Said, Scratch};
use console::AnsiCodeIterator;
use std::fmt::Write;
use std::path::Path;

const COLUMN: f32 = 7.83;
const ROW: usize = 18;

/// Eps outside the root, the mistake that is made most. `INSTA_UPDATE=always` writes the picture.
#[test]
fn the_picture_in_the_readme_is_what_a_learner_sees() {
    let scratch = Scratch::with_solutions();
    let (right, wrong) =
        ("(mean_square + self.eps as f32).sqrt()", "mean_square.sqrt() + self.eps as f32");
    scratch.change("exercises/src/norm.rs", right, wrong);
    let mut check = scratch.command(&["check", "norm"]);
    let said = Said::new(check.env("CLICOLOR_FORCE", "1").output().unwrap()).ends_with(1);
    let picture = svg("cargo course check norm", &said.out);
    let file = Path::new("../book/report.svg");
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(file, &picture).unwrap();
    }
    let kept = std::fs::read_to_string(file).unwrap();
    assert_eq!(kept, picture, "book/report.svg is no longer what the command prints");
}

/// A dark terminal with a command and what it printed.
fn svg(command: &str, printed: &str) -> String {
    let lines: Vec<_> = printed.trim_end().lines().collect();
    let columns = lines.iter().map(|line| console::measure_text_width(line)).max().unwrap();
    let (width, height) = ((columns as f32 * COLUMN) as usize + 40, (lines.len() + 3) * ROW);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
         <title>{command}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#1b1f27\"/>\n\
         <g font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"13\" fill=\"#d7dae0\">\n\
         <text x=\"20\" y=\"{y}\"><tspan fill=\"#7ee787\">$</tspan> {command}</text>\n",
        y = 2 * ROW - 6,
    );
    let mut style = Style::default();
    for (row, line) in lines.iter().enumerate() {
        let _ = write!(out, "<text x=\"20\" y=\"{}\">", (row + 3) * ROW - 6);
        for (part, is_code) in AnsiCodeIterator::new(line) {
            if is_code {
                style.change(part);
            } else {
                style.paint(part, &mut out);
            }
        }
        out.push_str("</text>\n");
    }
    out + "</g>\n</svg>\n"
}

/// How a terminal shows what follows.
#[derive(Default)]
struct Style {
    fill: Option<&'static str>,
    is_bold: bool,
}

impl Style {
    /// Takes in a code such as `ESC[31m`.
    fn change(&mut self, code: &str) {
        for number in code.trim_start_matches("\u{1b}[").trim_end_matches('m').split(';') {
            match number {
                "0" | "" => *self = Self::default(),
                "1" => self.is_bold = true,
                "2" => self.fill = Some("#8b949e"),
                "31" => self.fill = Some("#ff8b82"),
                "32" => self.fill = Some("#7ee787"),
                "33" => self.fill = Some("#e8c268"),
                "36" => self.fill = Some("#76d9e6"),
                other => panic!("no colour for the code {other}"),
            }
        }
    }

    fn paint(&self, text: &str, out: &mut String) {
        // A space that no viewer takes away.
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace(' ', "\u{a0}");
        let fill = self.fill.map_or(String::new(), |fill| format!(" fill=\"{fill}\""));
        let weight = if self.is_bold { " font-weight=\"bold\"" } else { "" };
        match (&*fill, weight) {
            ("", "") => out.push_str(&text),
            (fill, weight) => {
                let _ = write!(out, "<tspan{fill}{weight}>{text}</tspan>");
            }
        }
    }
}
