//! Every name of the contract, every task and every public item can be reached in the book.

use crate::pages::{root, site};
use author::book::generated::section;
use author::book::names::Names;
use contract::registry::{COMPONENTS, TASKS, tasks_called};
use std::collections::BTreeSet;

/// The sources of a chapter.
fn source(chapter: &str) -> String {
    std::fs::read_to_string(root().join(format!("book/src/{chapter}.md"))).unwrap_or_default()
}

/// The text of a section: from its heading to the next one that is not below it.
fn text_of(chapter: &str, wanted: &str) -> Option<String> {
    let page = source(chapter);
    let mut lines = page.lines();
    let heading = lines.find(|line| section(line).is_some_and(|(_, id)| id == wanted))?;
    let level = |line: &str| line.len() - line.trim_start_matches('#').len();
    let mut fenced = false;
    let text = lines.take_while(|line| {
        fenced ^= line.trim_start().starts_with("```");
        fenced || level(line) == 0 || level(line) > level(heading)
    });
    Some(text.collect::<Vec<_>>().join("\n"))
}

#[test]
fn every_invariant_is_in_the_section_that_it_names() {
    for promise in Names::new().rooms.iter().flat_map(|room| &room.promises) {
        let (chapter, section) = promise.chapter.split_once('#').unwrap();
        let text = text_of(chapter, section);
        let text = text.unwrap_or_else(|| panic!("{}: no section {}", promise.id, promise.chapter));
        let named = format!("{{{{invariants {}}}}}", promise.chapter);
        let id = promise.id;
        assert!(text.contains(&named), "{id}: the line {named} is missing in its section");
        let letters = text.len();
        assert!(
            letters > 300,
            "{id}: its section {} has {letters} letters, and more than 300 are asked for",
            promise.chapter
        );
    }
}

#[test]
fn every_task_names_a_section() {
    for task in TASKS.iter() {
        let (chapter, section) = task.chapter.split_once('#').unwrap();
        assert!(text_of(chapter, section).is_some(), "{}: no {}", task.name, task.chapter);
    }
}

#[test]
fn every_task_is_in_a_chapter() {
    let chapters: String = COMPONENTS.iter().map(|component| source(component.slug)).collect();
    for task in TASKS.iter() {
        let table = format!("{{{{tasks {}}}}}", task.component);
        assert!(chapters.contains(&table), "{}: no chapter has the line {table}", task.name);
    }
}

/// What a text says to type, with the word that follows: `cargo course check norm` and its like.
#[test]
fn commands_in_texts_name_tasks() {
    let pages = ["book/src", "notebooks", "exercises", "."].map(|folder| root().join(folder));
    let files = pages.iter().flat_map(|folder| folder.read_dir().unwrap().flatten());
    let texts = files.map(|file| file.path()).filter(|path| {
        path.extension().is_some_and(|extension| extension == "md" || extension == "ipynb")
    });
    let mut named = 0;
    for path in texts {
        let text = std::fs::read_to_string(&path).unwrap();
        for verb in ["check", "hint", "diff", "reset"] {
            for (at, command) in text.match_indices(&format!("cargo course {verb} ")) {
                let rest = &text[at + command.len()..];
                let letter = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
                let word = &rest[..rest.find(|c| !letter(c)).unwrap_or(rest.len())];
                // A line of a file, as in `norm.rs:70`, is of its component.
                let word = word.trim_end_matches('.').trim_end_matches(".rs");
                // Options, words of a sentence on the next line, and the example of "Adding a component".
                if word.is_empty() || word.starts_with('-') || word == "softmax" {
                    continue;
                }
                named += 1;
                assert!(
                    !tasks_called(word).is_empty(),
                    "{}: nothing is called {word} in `{command}{word}`",
                    path.display()
                );
            }
        }
    }
    assert!(named > 10, "{named}");
}

/// From the first page on, by links alone.
#[test]
fn every_name_can_be_reached() {
    let site = site();
    let (mut seen, mut next) = (BTreeSet::new(), vec!["index.html".to_string()]);
    while let Some(name) = next.pop() {
        let Some(page) = site.pages.get(&name) else { continue };
        if seen.insert(name) {
            let files = page.links.iter().map(|link| link.split('#').next().unwrap());
            next.extend(files.filter(|file| !file.is_empty()).map(str::to_string));
        }
    }
    for (id, page) in Names::new().pages() {
        let (page, anchor) = page.split_once('#').unwrap();
        let file = page.replace(".md", ".html");
        assert!(seen.contains(&file), "{id}: nothing links to {file}");
        assert!(site.pages[&file].ids.contains(anchor), "{id}: no #{anchor} in {file}");
    }
}

#[test]
fn chapters_name_invariants_and_bugs_in_their_own_words() {
    for room in &Names::new().rooms {
        let text = source(room.component.slug);
        let named = |id: &str| text.contains(&format!("`{id}`"));
        let promises = room.promises.iter().filter(|promise| named(promise.id)).count();
        let bugs = room.exhibits.iter().filter(|bug| named(bug.id)).count();
        assert!(
            promises >= 5 && bugs >= 5,
            "book/src/{}.md names {promises} invariants and {bugs} bugs in backticks, and 5 of each are asked \
             for: say in its sentences what they see and do",
            room.component.slug
        );
    }
}

/// The names of what the library makes public, as its source says it.
fn public_items() -> BTreeSet<String> {
    let mut items = BTreeSet::new();
    let (mut files, mut folders) =
        (Vec::new(), vec![root().join("src"), root().join("tensor/src")]);
    while let Some(folder) = folders.pop() {
        let paths = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
        let (inner, outer): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
        folders.extend(inner);
        files.extend(outer);
    }
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        let before = std::iter::once("").chain(text.lines());
        for (line, before) in text.lines().zip(before) {
            let mut words = line.split(' ');
            if words.next() != Some("pub") || before == "#[doc(hidden)]" {
                continue;
            }
            let mut kind = words.next().unwrap_or_default();
            while ["const", "async"].contains(&kind) && line.contains(" fn ") {
                kind = words.next().unwrap_or_default();
            }
            if ["struct", "enum", "trait", "fn", "type", "const", "mod"].contains(&kind) {
                let rest = words.next().unwrap_or_default();
                let name = rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap();
                items.insert(name.to_string());
            }
        }
    }
    items
}

#[test]
fn every_public_item_is_in_the_book() {
    let items = public_items();
    for known in ["GroupRmsNorm", "NtkAwareRope", "apply_rotary_pos_emb", "shard_range", "Init"] {
        assert!(items.contains(known), "the scan misses {known}");
    }
    let code = &site().pages["library.html"].code;
    let words: BTreeSet<&str> = code
        .iter()
        .flat_map(|code| code.split(|c: char| !(c.is_alphanumeric() || c == '_')))
        .collect();
    let missing: Vec<_> = items.iter().filter(|item| !words.contains(item.as_str())).collect();
    assert!(missing.is_empty(), "library.md does not name {missing:?}");
}
