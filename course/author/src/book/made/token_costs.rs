//! Made for the chapter "What a token costs". The times were recorded: `cargo course bench token` wrote them as `token.json`,
//! `benches/peers/run.py --decode` those beside other libraries as `decode.json`, and both are kept in `book/src/measured`.

use super::kinds::{Figure, Made, Numbers};
use crate::book::measured::{digits, heading};
use crate::error::Result;
use crate::figures::write;
use notebook_support::plot::thousands;
use notebook_support::roofline::{Machine, Point, Work, figure};
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// All of it.
pub static MADE: Made =
    Made { figures: &[Figure { name: "token-roofline", draw: roofline }], listings: &[], numbers };

/// The numbers of the text, after `token/`. More could be given, but the build refuses one that stands nowhere.
const SAID: &[&str] = &[
    "threads",
    "prompt",
    "400M/read",
    "25M/f32/share",
    "400M/f32/ms",
    "400M/int4/ms",
    "400M/int4/faster",
    "decode/transformers-f32/quadrivium-f32",
    "decode/candle-f32/quadrivium-f32",
    "prompt/transformers-bf16/quadrivium-bf16",
];

const RECORDED: &str = include_str!("../../../../../book/src/measured/token.json");
const BESIDE: &str = include_str!("../../../../../book/src/measured/decode.json");

#[derive(Deserialize)]
struct Recorded {
    threads: usize,
    /// Tokens of a prompt, and before the token that is decoded.
    prompt: usize,
    models: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    name: String,
    parameters: usize,
    /// Bytes a second.
    read: f64,
    /// Operations a second.
    products: f64,
    /// The first has the weights of the file.
    rows: Vec<Row>,
}

/// One kind of weights.
#[derive(Deserialize)]
struct Row {
    kind: String,
    error: f64,
    bytes: f64,
    /// Of a token, and of a prompt.
    operations: [f64; 2],
    token: Times,
    prompt: Times,
}

/// Seconds.
#[derive(Deserialize)]
struct Times {
    median: f64,
    least: f64,
    most: f64,
}

impl Recorded {
    fn read() -> Self {
        serde_json::from_str(RECORDED).expect("a file that a run wrote")
    }

    /// The bounds that were measured beside the largest model, as in the figure of the command.
    fn machine(&self) -> Machine {
        let Model { read, products, .. } = *self.models.last().expect("a model was measured");
        Machine { read, products }
    }
}

impl Row {
    fn bytes_a_second(&self) -> f64 {
        self.bytes / self.token.median
    }
}

fn roofline(out: &Path) -> Result<()> {
    let recorded = Recorded::read();
    let rows = recorded.models.iter().flat_map(|model| &model.rows);
    let points = rows.flat_map(|row| {
        let point = |work, operations, times: &Times| {
            let (bytes, seconds) = (row.bytes, times.median);
            Point { work, bytes, operations, seconds }
        };
        let [of_token, of_prompt] = row.operations;
        [point(Work::Token, of_token, &row.token), point(Work::Prompt, of_prompt, &row.prompt)]
    });
    let points: Vec<Point> = points.collect();
    write(out, &figure(recorded.machine(), &points)?)
}

/// `{{measured token}}`: a decoded token of each model, with each kind of weights.
pub fn tokens() -> String {
    let mut out = heading(&["Model", "Weights", "MB a token", "ms a token", "Share of the read"]);
    for Model { name, read, rows, .. } in Recorded::read().models {
        for row in rows {
            let Times { median, least, most } = row.token;
            let [median, least, most] = [median, least, most].map(|time| digits(time * 1e3));
            let (kind, megabytes) = (&row.kind, digits(row.bytes / 1e6));
            let share = percent(row.bytes_a_second() / read);
            let times = format!("{median} ({least} to {most})");
            let _ = writeln!(out, "| {name} | `{kind}` | {megabytes} | {times} | {share} % |");
        }
    }
    out
}

/// `{{measured prompt}}`: the tokens of a prompt that each model takes in a second, with each kind of weights.
pub fn prompts() -> String {
    let Recorded { prompt, models, .. } = Recorded::read();
    let kinds = models.iter().take(1).flat_map(|model| &model.rows);
    let kinds: Vec<String> = kinds.map(|row| format!("`{}`", row.kind)).collect();
    let columns: Vec<&str> =
        ["Model"].into_iter().chain(kinds.iter().map(String::as_str)).collect();
    let mut out = heading(&columns);
    for Model { name, rows, .. } in &models {
        let rates = rows.iter().map(|row| digits(prompt as f64 / row.prompt.median));
        let _ = writeln!(out, "| {name} | {} |", rates.collect::<Vec<_>>().join(" | "));
    }
    out
}

fn percent(share: f64) -> String {
    format!("{:.0}", 100.0 * share)
}

fn numbers(numbers: &mut Numbers) -> Result<()> {
    for (name, printed) in all(&Recorded::read()).into_iter().chain(beside()) {
        if SAID.contains(&name.as_str()) {
            numbers.add(&format!("token/{name}"), printed);
        }
    }
    Ok(())
}

/// Every number of a record: its name, such as `25M/f32/share`, and how it is printed.
fn all(recorded: &Recorded) -> Vec<(String, String)> {
    let Recorded { threads, prompt, models } = recorded;
    let of_run = [("threads", threads.to_string()), ("prompt", prompt.to_string())];
    let mut all: Vec<_> = of_run.map(|(what, printed)| (what.to_string(), printed)).into();
    for Model { name, parameters, read, products, rows } in models {
        let of_model = [
            ("parameters", thousands(*parameters)),
            ("read", digits(read / 1e9)),
            ("products", digits(products / 1e9)),
            ("border", digits(products / read)),
        ];
        all.extend(of_model.map(|(what, printed)| (format!("{name}/{what}"), printed)));
        for row in rows {
            let [of_token, of_prompt] = row.operations;
            let kind = &row.kind;
            let of_row = [
                ("megabytes", digits(row.bytes / 1e6)),
                ("ms", digits(row.token.median * 1e3)),
                ("least", digits(row.token.least * 1e3)),
                ("most", digits(row.token.most * 1e3)),
                ("bound", digits(row.bytes / read * 1e3)),
                ("tokens", digits(1.0 / row.token.median)),
                ("gigabytes", digits(row.bytes_a_second() / 1e9)),
                ("share", percent(row.bytes_a_second() / read)),
                ("faster", digits(rows[0].token.median / row.token.median)),
                ("error", digits(100.0 * row.error)),
                ("intensity", digits(of_token / row.bytes)),
                ("prompt", digits(*prompt as f64 / row.prompt.median)),
                ("prompt-share", percent(of_prompt / row.prompt.median / products)),
                ("prompt-intensity", digits(of_prompt / row.bytes)),
            ];
            all.extend(of_row.map(|(what, printed)| (format!("{name}/{kind}/{what}"), printed)));
        }
    }
    all
}

/// Of the libraries side by side: milliseconds, such as `decode/candle-f32`, and how many times as long one takes as another, such
/// as `decode/candle-f32/quadrivium-f32`.
fn beside() -> Vec<(String, String)> {
    let record: Value = serde_json::from_str(BESIDE).expect("a file that a run wrote");
    let mut all = Vec::new();
    for work in ["decode", "prompt"] {
        let times = record["results"][format!("{work}-25M")].as_object().into_iter().flatten();
        let medians = times.filter_map(|(name, times)| Some((name, times["median"].as_f64()?)));
        let medians: Vec<(&String, f64)> = medians.collect();
        for (of, time) in &medians {
            all.push((format!("{work}/{of}"), digits(time * 1e3)));
            for (to, other) in &medians {
                all.push((format!("{work}/{of}/{to}"), digits(time / other)));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_of_the_read_beside_its_model() {
        let times = |median: f64| serde_json::json!({"median": median, "least": 0.1, "most": 9.0});
        let row = serde_json::json!({"kind": "f32", "error": 0.0, "bytes": 1_000_000_000u64,
            "operations": [500_000_000u64, 200_000_000_000u64], "token": times(0.1), "prompt": times(2.0)});
        let record = serde_json::json!({"threads": 2, "prompt": 512, "models": [{"name": "250M",
            "parameters": 250_000_000, "read": 2e10, "products": 2e11, "rows": [row]}]});
        let all = all(&serde_json::from_value(record).unwrap());
        for (name, printed) in [
            ("250M/border", "10.0"),
            ("250M/f32/share", "50"),
            ("250M/f32/bound", "50.0"),
            ("250M/f32/prompt", "256"),
            ("250M/f32/prompt-share", "50"),
        ] {
            assert!(all.contains(&(name.to_string(), printed.to_string())), "{name}: {all:?}");
        }
    }

    /// A name that is written wrong here would give no number.
    #[test]
    fn every_number_of_the_text_was_measured() {
        let all: Vec<_> = all(&Recorded::read()).into_iter().chain(beside()).collect();
        for said in SAID {
            assert!(all.iter().any(|(name, _)| name == said), "{said}");
        }
    }
}
