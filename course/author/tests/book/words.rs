//! How the texts read: turns of phrase that they do without, and how long their sentences are.

use crate::pages::root;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::path::{Path, PathBuf};

/// What a native reader would stumble over, each with what to write instead.
const NEVER: [(&str, &str); 11] = [
    ("but for", "except for, or up to"),
    ("anew", "again"),
    ("whoever", "anyone who, or you"),
    ("somebody", "someone"),
    ("as good as", "almost"),
    ("is told", "is reported, or learns"),
    ("are told", "learn"),
    ("shall", "must, or will"),
    ("who does", "if you do"),
    ("mend", "fix"),
    ("mended", "fixed"),
];

#[test]
fn no_text_has_a_phrase_that_is_never_right() {
    let mut found = Vec::new();
    for (file, paragraphs) in texts().into_iter().chain(sources()) {
        for paragraph in paragraphs {
            let words = paragraph.split_whitespace().map(plain).filter(|word| !word.is_empty());
            let words: Vec<_> = words.collect();
            let text = format!(" {} ", words.join(" "));
            for (phrase, instead) in NEVER {
                if text.contains(&format!(" {phrase} ")) {
                    found.push(format!("{file}: {phrase:?}, write {instead}: {paragraph}"));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// No test, since no rate makes a text good: `cargo test -p author --test book rates -- --ignored --nocapture`.
#[test]
#[ignore = "prints a table"]
fn rates() {
    println!("words  a sentence  at most 8");
    let mut all = Vec::new();
    for (file, paragraphs) in texts() {
        let lengths: Vec<_> = paragraphs.iter().flat_map(|text| sentences(text)).collect();
        row(&lengths, &file);
        all.extend(lengths);
    }
    row(&all, "all");
}

fn row(lengths: &[usize], file: &str) {
    if lengths.is_empty() {
        return;
    }
    let (words, short) =
        (lengths.iter().sum::<usize>(), lengths.iter().filter(|words| **words <= 8).count());
    let (mean, share) = (words as f64 / lengths.len() as f64, 100 * short / lengths.len());
    println!("{words:5}  {mean:10.1}  {share:7} %  {file}");
}

/// The numbers of words of a paragraph's sentences, without labels of one or two words.
fn sentences(paragraph: &str) -> Vec<usize> {
    let mut lengths = vec![0];
    for word in paragraph.split_whitespace() {
        *lengths.last_mut().unwrap() += 1;
        if word.ends_with(['.', '!', '?']) {
            lengths.push(0);
        }
    }
    lengths.retain(|words| *words > 2);
    lengths
}

/// A word without its marks.
fn plain(word: &str) -> String {
    word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase()
}

/// The files that people read, each with its paragraphs.
fn texts() -> Vec<(String, Vec<String>)> {
    let root = root();
    let mut files = Vec::new();
    for folder in ["", "book/src", "book/src/measured", "exercises", "notebooks"] {
        listed(&root.join(folder), &mut files);
    }
    for component in contract::registry::COMPONENTS {
        listed(&root.join(format!("exercises/{}/hints", component.slug)), &mut files);
    }
    files.sort();
    let text = |file: PathBuf| {
        let name = file.strip_prefix(&root).unwrap().display().to_string();
        (name, paragraphs(&markdown(&file)))
    };
    files.into_iter().map(text).collect()
}

/// The sources, for their comments and messages. Those that strangers wrote are as they wrote them.
fn sources() -> Vec<(String, Vec<String>)> {
    let root = root();
    let (mut sources, mut folders) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            let apart = [".git", "target", "unseen", "hostile", "backups", "words.rs"];
            if apart.iter().any(|apart| path.ends_with(apart)) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let said = |line: &&str| line.contains("//") || line.contains('"');
                let said = |part: &str| part.lines().filter(said).collect::<Vec<_>>().join(" ");
                sources.push((name, text.split("\n\n").map(said).collect()));
            }
        }
    }
    sources
}

fn listed(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "md" || end == "ipynb") {
            files.push(path);
        }
    }
}

/// A file's Markdown; of a notebook, that of its cells.
fn markdown(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    if file.extension().is_some_and(|end| end == "md") {
        return text;
    }
    let notebook: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cells = notebook["cells"].as_array().unwrap().iter();
    let source = |cell: &serde_json::Value| {
        let lines = cell["source"].as_array().unwrap().iter();
        lines.map(|line| line.as_str().unwrap()).collect::<String>()
    };
    let texts: Vec<_> = cells.filter(|cell| cell["cell_type"] == "markdown").map(source).collect();
    texts.join("\n\n")
}

/// What is in paragraphs and in lists, with an `x` for each formula and piece of code.
fn paragraphs(markdown: &str) -> Vec<String> {
    let (mut paragraphs, mut text, mut within) = (Vec::new(), String::new(), 0);
    for event in Parser::new_ext(markdown, Options::ENABLE_MATH | Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::CodeBlock(_) | Tag::Heading { .. } | Tag::Table(_)) => within += 1,
            Event::End(TagEnd::CodeBlock | TagEnd::Heading(_) | TagEnd::Table) => within -= 1,
            Event::End(TagEnd::Paragraph | TagEnd::Item) => {
                paragraphs.push(std::mem::take(&mut text));
            }
            _ if within > 0 => {}
            Event::Text(part) => text.push_str(&part),
            Event::Code(_) | Event::InlineMath(_) | Event::DisplayMath(_) => text.push('x'),
            Event::SoftBreak | Event::HardBreak => text.push(' '),
            _ => {}
        }
    }
    paragraphs.retain(|paragraph| !paragraph.trim().is_empty());
    paragraphs
}
