//! What PyTorch needed in the last measurement of `benches/peers`: a ratio to the library's fused code.

use crate::{Race, Times};
use serde_json::Value;

/// The name of its bar.
const PARTY: &str = "PyTorch, recorded";

/// Adds its bar: its recorded ratio times what the fused code needs here. None if nothing is recorded.
pub fn add_pytorch(race: &mut Race) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/peers/last.json");
    let record =
        std::fs::read_to_string(file).ok().and_then(|text| serde_json::from_str(&text).ok());
    let ratio = record.and_then(|record| ratio(&record, race.slug, &race.title));
    let fused = race.times.iter().find(|times| times.party == "library, fused");
    let Some((ratio, fused)) = ratio.zip(fused) else { return };
    let median = ratio * fused.median;
    let pytorch = Times { party: PARTY, median, least: median, most: median };
    race.times.push(pytorch);
}

/// PyTorch's time in times of the library: the faster of its two ways.
fn ratio(record: &Value, slug: &str, title: &str) -> Option<f64> {
    let operation = match slug {
        "norm" => "norm-128",
        "parallel" => "shard",
        slug => slug,
    };
    let pass = if title.contains("backward") { "forward+backward" } else { "forward" };
    let of = &record["results"][format!("{operation} {pass}")];
    let median = |party: &str| of[party]["median"].as_f64();
    let ways = ["torch-eager", "torch-compiled"].into_iter().filter_map(median);
    Some(ways.reduce(f64::min)? / median("quadrivium")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_way_of_pytorch_counts() {
        let times = |eager: f64, compiled: f64| {
            serde_json::json!({"torch-eager": {"median": eager}, "torch-compiled": {"median": compiled},
                "quadrivium": {"median": 0.5}})
        };
        let record = serde_json::json!({"results": {
            "norm-128 forward": times(3.0, 2.0), "shard forward+backward": times(1.0, 6.0)}});
        assert_eq!(ratio(&record, "norm", "norm, forward"), Some(4.0));
        assert_eq!(ratio(&record, "parallel", "parallel, forward and backward"), Some(2.0));
        assert_eq!(ratio(&record, "layernorm", "layernorm, forward"), None);
    }
}
