//! A notebook as a page of the book: to read it, without a kernel.

use crate::error::Result;
use crate::notebook::{Cell, Notebook, text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use std::path::Path;

/// The cells of a notebook, with their outputs, as Markdown.
///
/// # Errors
/// The file can't be read, or is not a notebook.
pub fn page(file: &Path) -> Result<String> {
    Ok(Notebook::read(file)?.cells.iter().map(cell).collect::<Vec<_>>().join("\n"))
}

fn cell(cell: &Cell) -> String {
    let source = cell.source.whole();
    if !cell.is_code() {
        return format!("{}\n", links(&source));
    }
    let mut page = fenced("rust", &source);
    for output in cell.outputs.iter().flatten() {
        page.push_str(&shown(output));
    }
    page
}

/// Links as they are in the book: a chapter is a neighbour there, and so is a notebook.
fn links(markdown: &str) -> String {
    let mut page = String::new();
    let mut rest = markdown;
    while let Some((before, link)) = rest.split_once("](") {
        let (target, after) = link.split_once(')').unwrap_or((link, ""));
        let target = match target.strip_prefix("../book/src/") {
            Some(chapter) => chapter.to_string(),
            None => match target.strip_suffix(".ipynb").and_then(|name| name.split_once('-')) {
                Some((_, subject)) => format!("notebook-{subject}.md"),
                None => target.to_string(),
            },
        };
        page.push_str(&format!("{before}]({target})"));
        rest = after;
    }
    page + rest
}

fn fenced(language: &str, text: &str) -> String {
    format!("```{language}\n{}\n```\n\n", text.trim_end())
}

fn shown(output: &Map<String, Value>) -> String {
    if let Some(data) = output.get("data").and_then(Value::as_object) {
        return data.values().map(|value| figure_or_text(&text(value))).collect();
    }
    let said = match output.get("traceback").and_then(Value::as_array) {
        Some(lines) => lines.iter().map(text).collect::<Vec<_>>().join("\n"),
        None => output.get("text").map(text).unwrap_or_default(),
    };
    fenced("text", &console::strip_ansi_codes(&said))
}

fn figure_or_text(shown: &str) -> String {
    let svg = shown.find("<svg").zip(shown.rfind("</svg>"));
    let Some((start, end)) = svg else { return fenced("text", shown) };
    let svg = &shown[start..end + "</svg>".len()];
    let between = |before: &str, after: &str| {
        let (_, rest) = svg.split_once(before)?;
        Some(rest.split_once(after)?.0.to_string())
    };
    // plotters escapes what it writes, so the title can be put in an attribute as it is.
    let title = between("<title>", "</title>").unwrap_or_default().replace('"', "&quot;");
    let size = |name: &str| between(&format!(" {name}=\""), "\"").unwrap_or_default();
    format!(
        "<figure>\n<div class=\"picture\"><img src=\"data:image/svg+xml;base64,{}\" alt=\"{title}\" \
         width=\"{}\" height=\"{}\"></div>\n</figure>\n\n",
        STANDARD.encode(svg),
        size("width"),
        size("height")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn links_lead_to_the_pages_of_the_book() {
        let markdown =
            "See [the norm](../book/src/norm.md#eps), [next](1-embedding.ipynb), [x](y).";
        let page = "See [the norm](norm.md#eps), [next](notebook-embedding.md), [x](y).";
        assert_eq!(links(markdown), page);
    }

    #[test]
    fn outputs_stand_below_their_code() {
        let cell: Cell = serde_json::from_value(json!({
            "cell_type": "code", "source": ["1 + 1\n"],
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["two\n"]},
                {"output_type": "error", "traceback": ["\u{1b}[31mno\u{1b}[0m"]},
                {"output_type": "execute_result", "data": {
                    "image/svg+xml": "<svg width=\"9\" height=\"8\">\n<title>A?</title></svg>"}},
            ],
        }))
        .unwrap();
        let page = super::cell(&cell);
        assert!(page.starts_with("```rust\n1 + 1\n```\n\n```text\ntwo\n```\n\n```text\nno\n```\n"));
        assert!(page.contains("alt=\"A?\" width=\"9\" height=\"8\""), "{page}");
    }
}
