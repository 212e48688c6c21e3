//! What the book's sources hold is what code makes, and all of it is used.

use crate::pages::root;
use author::book::made::CHAPTERS;
use author::book::plan::{self, Session};
use author::book::update;
use std::collections::BTreeSet;
use std::path::Path;

fn files(folder: &Path) -> BTreeSet<String> {
    let Ok(entries) = folder.read_dir() else { return BTreeSet::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn figures_and_listings_are_what_code_makes() {
    let (made, kept) = (tempfile::tempdir().unwrap(), root().join("book/src"));
    update::make(made.path()).unwrap();
    let again = "`cargo course read --update` makes them again";
    for kind in ["figures", "listings"] {
        let (made, kept) = (made.path().join(kind), kept.join(kind));
        assert_eq!(files(&made), files(&kept), "{kind} that are made, and that are kept; {again}");
        for name in files(&made) {
            let read = |folder: &Path| std::fs::read_to_string(folder.join(&name)).unwrap();
            assert!(read(&made) == read(&kept), "{kind}/{name} is not what code makes; {again}");
        }
    }
}

#[test]
fn every_figure_and_listing_is_shown() {
    let folder = root().join("book/src");
    let pages: String = files(&folder)
        .iter()
        .filter(|name| name.ends_with(".md"))
        .map(|name| std::fs::read_to_string(folder.join(name)).unwrap())
        .collect();
    for chapter in CHAPTERS {
        for figure in chapter.figures {
            assert!(pages.contains(&format!("(figures/{}.svg ", figure.name)), "{}", figure.name);
        }
        for listing in chapter.listings {
            let include = format!("{{{{#include listings/{}.txt", listing.name);
            assert!(pages.contains(&include), "{}", listing.name);
        }
    }
}

/// Code in the book comes from files that tests compile: a piece of Rust is an include, or a line.
#[test]
fn code_is_included() {
    let folder = root().join("book/src");
    for name in files(&folder).iter().filter(|name| name.ends_with(".md")) {
        let page = std::fs::read_to_string(folder.join(name)).unwrap();
        for piece in page.split("```rust").skip(1) {
            let (_, piece) = piece.split_once('\n').unwrap();
            let lines: Vec<&str> = piece.lines().take_while(|line| *line != "```").collect();
            let included = lines.iter().any(|line| line.contains("{{#include"));
            assert!(included || lines.len() <= 1, "{name}: this is not included:\n{lines:#?}");
        }
    }
}

/// Minutes that a session's reading may take.
const MOST_READING: usize = 80;

#[test]
fn no_session_asks_for_more_reading_than_it_has_time_for() {
    let folder = root().join("book/src");
    let pages: Vec<(String, String)> = files(&folder)
        .iter()
        .filter_map(|name| Some((name.strip_suffix(".md")?.to_string(), folder.join(name))))
        .map(|(name, file)| (name, std::fs::read_to_string(file).unwrap()))
        .collect();
    let sessions = plan::sessions(&pages).unwrap();
    let numbers: Vec<usize> = sessions.iter().map(|session| session.number).collect();
    assert_eq!(numbers, (1..=14).collect::<Vec<_>>());
    for Session { number, reading, .. } in sessions {
        let minutes = reading.minutes();
        assert!(minutes <= MOST_READING, "session {number}: {minutes} minutes, {reading:?}");
    }
}

/// A figure that paints values in many shades says which shade is which value.
#[test]
fn shades_have_a_scale() {
    let mut shaded = Vec::new();
    for name in files(&root().join("book/src/figures")) {
        let svg = std::fs::read_to_string(root().join("book/src/figures").join(&name)).unwrap();
        let rectangles = svg.split("<rect ").skip(1);
        let fills = rectangles.filter_map(|rect| rect.split("fill=\"").nth(1)?.split('"').next());
        if fills.collect::<BTreeSet<_>>().len() > 20 {
            let words: BTreeSet<&str> = svg.lines().map(str::trim).collect();
            let both = |word: &&str| {
                word.parse::<f64>().is_ok_and(|x| x > 0.0) && words.contains(&*format!("-{word}"))
            };
            // Values on both sides of 0, or weights from 0 to 1.
            let scale = words.iter().any(both) || words.contains("1.0");
            assert!(scale && words.contains("0.0"), "{name} has no scale");
            shaded.push(name);
        }
    }
    assert!(shaded.contains(&"rope-stripes.svg".to_string()), "{shaded:?}");
}
