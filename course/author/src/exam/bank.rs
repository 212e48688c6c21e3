//! The written questions: a Markdown file for each component.
//!
//! A question begins with `## Its title (4 points)`, and its key with `### Key`.

use super::Question;
use crate::error::{Error, Result};
use contract::registry::Entry;
use std::path::Path;

/// A component's questions.
///
/// # Errors
/// A file that can't be read, a question without points or without a key.
pub fn questions(folder: &Path, entry: &Entry) -> Result<Vec<Question>> {
    let file = folder.join(format!("{}.md", entry.slug));
    let refused = |reason: String| Error::File {
        file: format!("course/author/exam/{}.md", entry.slug),
        reason,
    };
    let text = std::fs::read_to_string(&file).map_err(|error| refused(error.to_string()))?;
    let texts = text.split("\n## ").skip(1);
    texts.map(|text| question(entry, text).map_err(|reason| refused(reason.to_string()))).collect()
}

fn question(entry: &Entry, text: &str) -> std::result::Result<Question, String> {
    let (heading, rest) = text.split_once('\n').unwrap_or((text, ""));
    let missing = |what: &str| format!("the question {heading:?} has {what}");
    let (title, points) = heading
        .strip_suffix(" points)")
        .and_then(|heading| heading.rsplit_once(" ("))
        .ok_or_else(|| missing("no `(4 points)` at the end of its title"))?;
    let points: u32 = points.parse().map_err(|_| missing("points that are no number"))?;
    let (text, key) = rest.split_once("\n### Key\n").ok_or_else(|| missing("no `### Key`"))?;
    Ok(Question {
        name: format!("{}/{title}", entry.slug),
        title: format!("{}: {title}", entry.title),
        points,
        text: text.trim().into(),
        key: key.trim().into(),
    })
}
