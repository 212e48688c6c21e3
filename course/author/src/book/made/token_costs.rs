//! Made for the chapter "What a token costs". The times were recorded: `cargo course bench token` wrote them as `token.json`,
//! `benches/peers/run.py --decode` those beside other libraries as `decode.json`, and both are kept in `book/src/measured`.

use super::kinds::{Figure, Made, Numbers};
use crate::book::measured::{digits, heading};
use crate::error::Result;
use crate::figures::write;
use notebook_support::roofline::{Machine, Point, Work, figure};
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// All of it.
pub static MADE: Made =
    Made { figures: &[Figure { name: "token-roofline", draw: roofline }], listings: &[], numbers };

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

/// Those that the sentences of the page have.
fn numbers(numbers: &mut Numbers) -> Result<()> {
    let Recorded { threads, prompt, models } = Recorded::read();
    numbers.add("token/threads", threads);
    numbers.add("token/prompt", prompt);
    let of = |name: &str| models.iter().find(|model| model.name == name).expect("a recorded model");
    let [small, large] = ["25M", "400M"].map(of);
    let [of_small, f32, int4] = [(small, "f32"), (large, "f32"), (large, "int4")]
        .map(|(model, kind)| model.rows.iter().find(|row| row.kind == kind).expect("its weights"));
    numbers.add("token/400M/read", digits(large.read / 1e9));
    numbers.add("token/25M/f32/share", percent(of_small.bytes_a_second() / small.read));
    numbers.add("token/400M/f32/ms", digits(f32.token.median * 1e3));
    numbers.add("token/400M/int4/ms", digits(int4.token.median * 1e3));
    numbers.add("token/400M/int4/faster", digits(f32.token.median / int4.token.median));
    let record: Value = serde_json::from_str(BESIDE).expect("a file that a run wrote");
    for (work, one, other) in [
        ("decode", "transformers-f32", "quadrivium-f32"),
        ("decode", "candle-f32", "quadrivium-f32"),
        ("prompt", "transformers-bf16", "quadrivium-bf16"),
    ] {
        let of = |name: &str| record["results"][format!("{work}-25M")][name]["median"].as_f64();
        let [one_takes, other_takes] = [one, other].map(|name| of(name).expect("a recorded time"));
        numbers.add(&format!("token/{work}/{one}/{other}"), digits(one_takes / other_takes));
    }
    Ok(())
}
