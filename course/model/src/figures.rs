//! The figures of the command, and the numbers of a loss curve and of maps.

use crate::error::{Error, Result};
use crate::run::State;
use notebook_support::attention::maps::{Head, Maps};
use notebook_support::plot::Figure;
use notebook_support::training::Curve;
use std::path::Path;

/// Steps that a point of the training loss is a mean of.
const SMOOTH: usize = 10;

/// The curve of a run. The same run gives the same numbers.
pub fn curve(state: &State, trigram: f64) -> Curve {
    let point = |(nth, losses): (usize, &[f32])| {
        let mean = losses.iter().map(|loss| f64::from(*loss)).sum::<f64>() / losses.len() as f64;
        ((nth * SMOOTH) as f64 + (losses.len() as f64 - 1.0) / 2.0, mean)
    };
    let trained = state.losses.chunks(SMOOTH).enumerate().map(point).collect();
    let held_out = state.held_out.iter().map(|(step, loss)| (*step as f64, *loss)).collect();
    Curve { trained, held_out, trigram, steps: state.settings.steps }
}

/// A curve as JSON, a point a line, its losses with four digits after the point.
pub fn json(curve: &Curve) -> String {
    let points = |points: &[(f64, f64)]| {
        let points = points.iter().map(|(step, loss)| format!("    [{step}, {loss:.4}]"));
        points.collect::<Vec<_>>().join(",\n")
    };
    let Curve { trained, held_out, trigram, steps } = curve;
    let (trained, held_out) = (points(trained), points(held_out));
    format!(
        "{{\n  \"steps\": {steps},\n  \"trigram\": {trigram:.4},\n  \"held_out\": [\n{held_out}\n  ],\n  \
         \"trained\": [\n{trained}\n  ]\n}}\n"
    )
}

/// Maps as JSON, a head a line, its weights with four digits after the point.
pub fn maps_json(maps: &Maps) -> String {
    let weights = |row: &Vec<f64>| {
        let weights: Vec<String> = row.iter().map(|weight| format!("{weight:.4}")).collect();
        format!("[{}]", weights.join(", "))
    };
    let head = |head: &Head| {
        let rows: Vec<String> = head.rows.iter().map(weights).collect();
        format!("      [{}]", rows.join(", "))
    };
    let block = |block: &Vec<Head>| {
        let heads: Vec<String> = block.iter().map(head).collect();
        format!("    [\n{}\n    ]", heads.join(",\n"))
    };
    let blocks: Vec<String> = maps.blocks.iter().map(block).collect();
    let tokens = serde_json::json!(maps.tokens);
    format!("{{\n  \"tokens\": {tokens},\n  \"blocks\": [\n{}\n  ]\n}}\n", blocks.join(",\n"))
}

/// Writes a figure.
///
/// # Errors
/// A file that can't be written.
pub fn write(out: &Path, figure: &Figure) -> Result<()> {
    write_text(out, figure.svg())
}

/// Writes a text.
///
/// # Errors
/// A file that can't be written.
pub fn write_text(out: &Path, text: &str) -> Result<()> {
    learner::save::write(out, text).map_err(|e| Error::write(out, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_read_back() {
        let tokens = ["\"", "␣a"].map(String::from).to_vec();
        let maps = Maps { tokens, blocks: vec![vec![Head::alike(2)]; 2] };
        let json: serde_json::Value = serde_json::from_str(&maps_json(&maps)).unwrap();
        assert_eq!(json["tokens"], serde_json::json!(["\"", "␣a"]));
        assert_eq!(
            json["blocks"],
            serde_json::json!([[[[1.0], [0.5, 0.5]]], [[[1.0], [0.5, 0.5]]]])
        );
    }
}
