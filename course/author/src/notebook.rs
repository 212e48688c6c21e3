//! A notebook file: as much of Jupyter's format as is used here (nbformat 4.5).

use crate::error::{Error, Result};
use learner::save;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;

/// A notebook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notebook {
    /// Its cells, from top to bottom.
    pub cells: Vec<Cell>,
    /// Which kernel it wants.
    pub metadata: Map<String, Value>,
    /// Version of the format.
    pub nbformat: u32,
    /// The same.
    pub nbformat_minor: u32,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// `code` or `markdown`.
    pub cell_type: String,
    /// The how-many-th cell it was that the kernel ran. `null` is kept, so that a cell that never ran stays
    /// a cell of the format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_count: Option<Value>,
    /// Its name, which stays when it is edited.
    #[serde(default)]
    pub id: String,
    /// Its tags, and what an editor notes.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// What is below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Vec<Map<String, Value>>>,
    /// Its text.
    pub source: Text,
}

/// A text, which the format keeps as one string or as a list of lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Text {
    /// One string.
    Whole(String),
    /// Lines, each with its line feed.
    Lines(Vec<String>),
}

impl Text {
    /// One string.
    pub fn whole(&self) -> String {
        match self {
            Text::Whole(text) => text.clone(),
            Text::Lines(lines) => lines.concat(),
        }
    }

    /// Lines, as Jupyter writes them.
    pub fn lines(text: &str) -> Self {
        Text::Lines(text.split_inclusive('\n').map(String::from).collect())
    }
}

/// A text in an output.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.to_string(),
    }
}

impl Cell {
    /// Whether it is run.
    pub fn is_code(&self) -> bool {
        self.cell_type == "code"
    }

    /// Whether it has this tag.
    pub fn has_tag(&self, tag: &str) -> bool {
        let tags = self.metadata.get("tags").and_then(Value::as_array);
        tags.is_some_and(|tags| tags.iter().any(|has| has == tag))
    }

    /// Its outputs of this type: `stream`, `display_data`, `execute_result` or `error`.
    pub fn outputs_of(&self, kind: &str) -> impl Iterator<Item = &Map<String, Value>> {
        let of_kind = move |output: &&Map<String, Value>| output["output_type"] == kind;
        self.outputs.iter().flatten().filter(of_kind)
    }
}

impl Notebook {
    /// A file.
    ///
    /// # Errors
    /// It can't be read, or is not a notebook.
    pub fn read(file: &Path) -> Result<Self> {
        let refuse = |reason: String| Error::File { file: shown(file), reason };
        let text = std::fs::read_to_string(file).map_err(|error| refuse(error.to_string()))?;
        serde_json::from_str(&text)
            .map_err(|error| refuse(format!("it is not a notebook: {error}")))
    }

    /// Takes all outputs out of it, as Jupyter's "Clear Outputs of All Cells" does.
    pub fn clear(&mut self) {
        for cell in self.cells.iter_mut().filter(|cell| cell.is_code()) {
            cell.execution_count = Some(Value::Null);
            cell.outputs = Some(Vec::new());
        }
    }

    /// Writes it, in the form in which Jupyter writes it.
    ///
    /// # Errors
    /// It can't be written.
    pub fn write(&self, file: &Path) -> Result<()> {
        let mut bytes = Vec::new();
        let form = serde_json::ser::PrettyFormatter::with_indent(b" ");
        let mut writer = serde_json::Serializer::with_formatter(&mut bytes, form);
        let refuse = |reason: String| Error::File { file: shown(file), reason };
        self.serialize(&mut writer).map_err(|error| refuse(error.to_string()))?;
        bytes.push(b'\n');
        save::write(file, bytes).map_err(|error| refuse(error.to_string()))
    }
}

fn shown(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_again() {
        let text = "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": 2,\n   \
                    \"id\": \"a\",\n   \"metadata\": {\n    \"tags\": [\n     \"yours\"\n    ]\n   },\n   \
                    \"outputs\": [],\n   \"source\": [\n    \"a\\n\",\n    \"b\"\n   ]\n  }\n ],\n \
                    \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n";
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.ipynb");
        std::fs::write(&file, text).unwrap();
        let notebook = Notebook::read(&file).unwrap();
        assert!(notebook.cells[0].has_tag("yours"));
        assert_eq!(notebook.cells[0].source.whole(), "a\nb");
        notebook.write(&file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        // Nothing but the outputs is lost.
        let mut ran = notebook.clone();
        ran.cells[0].outputs = Some(vec![Map::from_iter([("text".into(), "6".into())])]);
        ran.clear();
        ran.write(&file).unwrap();
        let cleared = std::fs::read_to_string(&file).unwrap();
        assert_eq!(cleared, text.replace("\"execution_count\": 2", "\"execution_count\": null"));
    }

    #[test]
    fn lines_and_whole_are_the_same_text() {
        assert_eq!(Text::lines("a\nb\n").whole(), "a\nb\n");
        assert_eq!(text(&serde_json::json!(["a\n", "b"])), "a\nb");
    }
}
