//! Removes from a notebook what may vary between two runs, and puts the rest into one form.
//!
//! What varies: the folder of this project, what an editor notes about a cell, and the order in which
//! text and pictures arrive. Nothing else is removed, and no number.

use super::kernel;
use crate::notebook::{Cell, Notebook, Text, text};
use serde_json::{Map, Value, json};
use std::path::Path;

/// The notebook in the form in which it is kept. `root` is the folder of the project.
pub fn clean(notebook: &Notebook, root: &Path) -> Notebook {
    let mut notebook = notebook.clone();
    notebook.metadata = metadata();
    for cell in &mut notebook.cells {
        let tags = cell.metadata.remove("tags");
        cell.metadata = tags.map(|tags| ("tags".to_string(), tags)).into_iter().collect();
        cell.source = Text::lines(&cell.source.whole());
        if cell.is_code() {
            cell.outputs = Some(outputs(cell, root));
        }
    }
    notebook
}

/// Which kernel a notebook wants, and what editors need to colour its code.
fn metadata() -> Map<String, Value> {
    let spec = json!({
        "display_name": kernel::SHOWN,
        "language": "rust",
        "name": kernel::NAME,
    });
    let language = json!({
        "codemirror_mode": "rust",
        "file_extension": ".rs",
        "mimetype": "text/rust",
        "name": "Rust",
        "pygments_lexer": "rust",
        "version": "",
    });
    Map::from_iter([("kernelspec".into(), spec), ("language_info".into(), language)])
}

/// First what was printed, then what is shown, then errors. The kernel prints and shows in two threads,
/// so their order says nothing.
fn outputs(cell: &Cell, root: &Path) -> Vec<Map<String, Value>> {
    let mut cleaned = Vec::new();
    for name in ["stdout", "stderr"] {
        let streams = cell.outputs_of("stream").filter(|output| output["name"] == name);
        let printed: String = streams.map(|output| text(&output["text"])).collect();
        if !printed.is_empty() {
            let printed = lines(&without(root, &printed));
            cleaned.push(object(json!({"name": name, "output_type": "stream", "text": printed})));
        }
    }
    for kind in ["display_data", "execute_result"] {
        for output in cell.outputs_of(kind) {
            let mut output = output.clone();
            if let Some(Value::Object(data)) = output.get_mut("data") {
                for value in data.values_mut().filter(|value| !value.is_object()) {
                    *value = lines(&without(root, &text(value)));
                }
            }
            cleaned.push(output);
        }
    }
    for output in cell.outputs_of("error") {
        let mut output = output.clone();
        let said = output.get("evalue").map(text).unwrap_or_default();
        output.insert("evalue".into(), without(root, &said).into());
        let trace = output.get("traceback").and_then(Value::as_array).cloned().unwrap_or_default();
        let trace = trace.iter().map(|line| without(root, &text(line)));
        output.insert("traceback".into(), trace.collect());
        cleaned.push(output);
    }
    cleaned
}

/// A text in which the folder of the project has no name.
fn without(root: &Path, text: &str) -> String {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    text.replace(&*root.to_string_lossy(), "…")
}

fn lines(text: &str) -> Value {
    text.split_inclusive('\n').collect()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_notebook(outputs: Value) -> Notebook {
        let cell = json!({
            "cell_type": "code", "execution_count": 2, "id": "a", "source": "1",
            "metadata": {"tags": ["yours"], "scrolled": true},
            "outputs": outputs,
        });
        serde_json::from_value(json!({
            "cells": [cell], "metadata": {"widgets": 1}, "nbformat": 4, "nbformat_minor": 5,
        }))
        .unwrap()
    }

    #[test]
    fn only_what_varies_goes() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap().join("src/norm.rs");
        let notebook = a_notebook(json!([
            {"output_type": "display_data", "data": {"text/plain": "0.1"}, "metadata": {}},
            {"output_type": "stream", "name": "stdout", "text": "one\n"},
            {"output_type": "stream", "name": "stdout", "text": format!("at {}\n", path.display())},
        ]));
        let cleaned = clean(&notebook, root.path());
        let cell = &cleaned.cells[0];
        assert_eq!(json!(cell.metadata), json!({"tags": ["yours"]}));
        let outputs = cell.outputs.clone().unwrap();
        assert_eq!(text(&outputs[0]["text"]), "one\nat …/src/norm.rs\n");
        assert_eq!(text(&outputs[1]["data"]["text/plain"]), "0.1");
        assert_eq!(cleaned.metadata["kernelspec"]["name"], "quadrivium");
        assert_eq!(clean(&cleaned, root.path()), cleaned, "twice is once");
    }
}
