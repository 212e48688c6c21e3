//! What was measured before: what PyTorch needed in the last measurement of `benches/peers`, as a ratio to the library's fused code; and
//! the races that the book shows.

use crate::{FUSED, Race, Times};
use learner::exercise::Workspace;
use serde_json::{Map, Value};

/// The races in the book: for each title and implementation the times in seconds, as [`json`] writes them.
///
/// # Errors
/// The record is no JSON.
pub fn book() -> serde_json::Result<Value> {
    serde_json::from_str(include_str!("../../../book/src/measured/bench.json"))
}

/// Races as the book keeps them.
pub fn json(races: &[Race]) -> Value {
    let of = |race: &Race| {
        let run_here = race.times.iter().filter(|times| !times.recorded);
        let times = run_here.map(|Times { implementation, median, least, most, .. }| {
            (
                implementation.to_string(),
                serde_json::json!({"median": median, "least": least, "most": most}),
            )
        });
        (race.title.clone(), Value::Object(times.collect()))
    };
    Value::Object(races.iter().map(of).collect::<Map<_, _>>())
}

/// Its two ways: their names in the record, and those of their bars.
const WAYS: [(&str, &str); 2] =
    [("torch-eager", "PyTorch"), ("torch-compiled", "PyTorch, compiled")];

/// Adds its bars: each recorded ratio times what the fused code needs here. Returns a line that says so, or that
/// nothing is recorded.
pub fn add_pytorch(race: &mut Race) -> String {
    let text = Workspace::find().and_then(|workspace| workspace.read("benches/peers/last.json"));
    let record: Option<Value> = text.ok().and_then(|text| serde_json::from_str(&text).ok());
    let fused =
        race.times.iter().find(|times| times.implementation == FUSED).map(|times| times.median);
    let (Some(record), Some(fused)) = (record, fused) else { return nothing() };
    let ratios = ratios(&record, race.slug, &race.title);
    for (implementation, ratio) in &ratios {
        let median = ratio * fused;
        let recorded = true;
        race.times.push(Times { implementation, median, least: median, most: median, recorded });
    }
    match record["date"].as_str() {
        Some(date) if !ratios.is_empty() => {
            format!("recorded: not run here, but its ratio to {FUSED}, as measured on {date}")
        }
        _ => nothing(),
    }
}

fn nothing() -> String {
    "PyTorch: no measurement of it is recorded".to_string()
}

/// PyTorch's times in times of the library.
fn ratios(record: &Value, slug: &str, title: &str) -> Vec<(&'static str, f64)> {
    let operation = match slug {
        "norm" => "norm-128",
        "parallel" => "shard",
        slug => slug,
    };
    let pass = if title.contains("backward") { "forward+backward" } else { "forward" };
    let of = &record["results"][format!("{operation} {pass}")];
    let median = |implementation: &str| of[implementation]["median"].as_f64();
    let Some(library) = median("quadrivium") else { return Vec::new() };
    let ratio = |(implementation, name)| Some((name, median(implementation)? / library));
    WAYS.into_iter().filter_map(ratio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_pytorch_have_their_ratio() {
        let times = |eager: f64, compiled: f64| {
            serde_json::json!({"torch-eager": {"median": eager}, "torch-compiled": {"median": compiled},
                "quadrivium": {"median": 0.5}})
        };
        let record = serde_json::json!({"results": {
            "norm-128 forward": times(3.0, 2.0), "shard forward+backward": times(1.0, 6.0)}});
        let named = |eager, compiled| vec![("PyTorch", eager), ("PyTorch, compiled", compiled)];
        assert_eq!(ratios(&record, "norm", "norm, forward"), named(6.0, 4.0));
        let both = "parallel, forward and backward";
        assert_eq!(ratios(&record, "parallel", both), named(2.0, 12.0));
        assert_eq!(ratios(&record, "layernorm", "layernorm, forward"), []);
    }
}
