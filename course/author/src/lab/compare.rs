//! What a notebook holds, against what it gives now.

use super::svg;
use crate::notebook::{Cell, Notebook, text};
use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};

/// A cell whose outputs are not what it holds.
#[derive(Debug)]
pub struct Difference {
    /// Its place among all cells.
    pub cell: usize,
    /// What is different, line by line.
    pub lines: Vec<String>,
}

/// The cells that differ. Both notebooks are clean, and have the same cells. Texts are compared
/// exactly, figures by what they show.
pub fn differences(held: &Notebook, now: &Notebook) -> Vec<Difference> {
    let pairs = held.cells.iter().zip(&now.cells).enumerate();
    let differ = |(cell, (held, now)): (usize, (&Cell, &Cell))| {
        let lines = compare(held, now);
        (!lines.is_empty()).then_some(Difference { cell, lines })
    };
    pairs.filter_map(differ).collect()
}

fn compare(held: &Cell, now: &Cell) -> Vec<String> {
    let (held, now) = (shown(held), shown(now));
    let mut lines = Vec::new();
    for nth in 0..held.len().max(now.len()) {
        match (held.get(nth), now.get(nth)) {
            (Some((kind, before)), Some((now_kind, after))) if kind == now_kind => {
                if is_figure(before) && is_figure(after) {
                    let seen = svg::difference(before, after);
                    lines.extend(seen.map(|seen| format!("{kind}: {seen}")));
                } else if before != after {
                    lines.push(format!("{kind}:"));
                    lines.extend(changed_lines(before, after));
                }
            }
            (before, after) => {
                let name = |output: Option<&(String, String)>| {
                    output.map_or("nothing".to_string(), |(kind, _)| kind.clone())
                };
                lines.push(format!("it holds {}, and gives {}", name(before), name(after)));
                lines.extend(after.iter().flat_map(|(_, text)| beginning(text)));
            }
        }
    }
    lines
}

/// Each output as its kind and its text, without colours.
fn shown(cell: &Cell) -> Vec<(String, String)> {
    let plain = |value: &Value| console::strip_ansi_codes(&text(value)).into_owned();
    let mut shown = Vec::new();
    for output in cell.outputs.iter().flatten() {
        match output["output_type"].as_str() {
            Some("stream") => shown.push((text(&output["name"]), plain(&output["text"]))),
            Some("error") => {
                let trace = output.get("traceback").and_then(Value::as_array);
                let lines: Vec<String> = trace.into_iter().flatten().map(plain).collect();
                shown.push(("error".into(), lines.join("\n")));
            }
            _ => {
                let empty = Map::new();
                let data = output.get("data").and_then(Value::as_object).unwrap_or(&empty);
                shown.extend(data.iter().map(|(mime, value)| (mime.clone(), plain(value))));
            }
        }
    }
    shown
}

fn is_figure(text: &str) -> bool {
    text.trim_start().starts_with('<') && text.contains("<svg")
}

/// The lines that are gone, and those that are new.
fn changed_lines(before: &str, after: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(before, after);
    let line = |change: similar::Change<&str>| {
        let sign = match change.tag() {
            ChangeTag::Equal => return None,
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        Some(format!("{sign} {}", change.value().trim_end()))
    };
    diff.iter_all_changes().filter_map(line).take(20).collect()
}

/// The first lines of a text; of a figure, nothing.
pub fn beginning(text: &str) -> Vec<String> {
    let lines = text.lines().take(if is_figure(text) { 0 } else { 12 });
    lines.map(|line| format!("+ {}", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn a_cell(outputs: Value) -> Cell {
        serde_json::from_value(json!({"cell_type": "code", "source": "1", "outputs": outputs}))
            .unwrap()
    }

    fn printed(text: &str) -> Value {
        json!([{"output_type": "stream", "name": "stdout", "text": text}])
    }

    #[test]
    fn equal_cells_have_no_difference() {
        let cell = a_cell(printed("0.7071\n"));
        assert!(compare(&cell, &cell).is_empty());
    }

    #[test]
    fn one_letter_is_a_difference() {
        let lines = compare(&a_cell(printed("a\n0.7071\n")), &a_cell(printed("a\n0.9968\n")));
        assert_eq!(lines, ["stdout:", "- 0.7071", "+ 0.9968"]);
    }

    #[test]
    fn an_output_that_comes_or_goes_is_a_difference() {
        let (none, some) = (a_cell(json!([])), a_cell(printed("a\n")));
        assert_eq!(compare(&none, &some), ["it holds nothing, and gives stdout", "+ a"]);
        assert_eq!(compare(&some, &none), ["it holds stdout, and gives nothing"]);
    }

    #[test]
    fn figures_are_compared_by_what_they_show() {
        let figure = |x: u32| {
            let svg = format!("<svg><circle cx=\"{x}\"/></svg>");
            a_cell(json!([{"output_type": "execute_result", "data": {"image/svg+xml": svg}}]))
        };
        assert!(compare(&figure(10), &figure(11)).is_empty());
        assert_eq!(compare(&figure(10), &figure(20)).len(), 1);
    }
}
