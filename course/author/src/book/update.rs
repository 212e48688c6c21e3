//! What code makes for the book, made and written: figures, listings, and the numbers in its pages.

use super::made::{self, CHAPTERS};
use super::{numbers, plan};
use crate::error::{Error, Result};
use learner::save;
use std::path::{Path, PathBuf};

/// Makes every figure and every listing into a folder like `book/src`. Returns their files.
///
/// # Errors
/// A component refused its input; a file can't be written.
pub fn make(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for kind in ["figures", "listings"] {
        let folder = folder.join(kind);
        std::fs::create_dir_all(&folder).map_err(|error| refuse(&folder, error))?;
    }
    for chapter in CHAPTERS {
        for figure in chapter.figures {
            let file = folder.join(format!("figures/{}.svg", figure.name));
            (figure.draw)(&file)?;
            files.push(file);
        }
        for listing in chapter.listings {
            let file = folder.join(format!("listings/{}.txt", listing.name));
            save::write(&file, (listing.text)()?).map_err(|error| refuse(&file, error))?;
            files.push(file);
        }
    }
    Ok(files)
}

/// Puts the numbers that code gives now into the pages of a folder like `book/src`. Returns the pages that
/// changed. Numbers within formulas and pieces of code stay: the build complains about them.
///
/// # Errors
/// A component refused its input; the plan for instructors is not in order; a page can't be read or written.
pub fn put_numbers(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| refuse(folder, error))? {
        let path = entry.map_err(|error| refuse(folder, error))?.path();
        if let (Some("md"), Some(name)) = (extension(&path), path.file_stem()) {
            let text = std::fs::read_to_string(&path).map_err(|error| refuse(&path, error))?;
            pages.push((name.to_string_lossy().into_owned(), text));
        }
    }
    pages.sort();
    let mut numbers = made::numbers()?;
    let summary = pages.iter().find(|page| page.0 == "SUMMARY").map_or("", |page| &page.1);
    let counted: Vec<(String, String)> =
        pages.iter().map(|(name, text)| (name.clone(), whole(folder, text))).collect();
    plan::add(&counted, summary, &mut numbers).map_err(|wrong| Error::Book(vec![wrong]))?;
    let mut changed = Vec::new();
    for (name, text) in &pages {
        let page = numbers::put_in(text, &numbers);
        if page != *text {
            let path = folder.join(format!("{name}.md"));
            save::write(&path, page).map_err(|error| refuse(&path, error))?;
            changed.push(path);
        }
    }
    Ok(changed)
}

/// A page with the pieces of text that mdBook puts into it.
fn whole(folder: &Path, page: &str) -> String {
    let included = |line: &str| {
        let file = line.strip_prefix("{{#include ")?.strip_suffix("}}")?;
        let text = file.ends_with(".md").then(|| std::fs::read_to_string(folder.join(file)))?;
        text.ok()
    };
    let lines = page.lines().map(|line| included(line).unwrap_or_else(|| line.to_string()));
    lines.collect::<Vec<_>>().join("\n")
}

fn extension(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

fn refuse(file: &Path, error: std::io::Error) -> Error {
    Error::File { file: file.display().to_string(), reason: error.to_string() }
}
