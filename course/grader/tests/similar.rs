//! How often files are called similar that were written independently of each other, and how often edited copies are
//! not.
//!
//! Independent are the correct programs of `course/tests/unseen/variants`: authors who did not know of each other wrote the same
//! tasks. Copies are the model solutions, and these programs, after edits that leave what they compute.

use grader::intake::Taken;
use grader::similar::{How, Printer, Prints, SOLUTION};
use learner::exercise::Workspace;
use learner::exercise::source::{Source, region, replaced};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[derive(Deserialize)]
struct Cases {
    #[serde(default)]
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    task: String,
    code: String,
}

/// Programs of one component, each with the set whose author wrote it.
type Programs = Vec<(String, String)>;

struct Corpus {
    printer: Printer,
    sources: Vec<Source>,
    /// By set and component, what the set's author wrote for each task.
    written: BTreeMap<(String, &'static str), BTreeMap<String, Vec<String>>>,
}

impl Corpus {
    fn read() -> Self {
        let workspace = Workspace::find().unwrap();
        let sources = Source::all(&workspace).unwrap();
        let mut written: BTreeMap<_, BTreeMap<String, Vec<String>>> = BTreeMap::new();
        for set in entries(&workspace.path("course/tests/unseen/variants")) {
            for file in entries(&set) {
                let cases: Cases = toml::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
                let own = cases.case.into_iter().filter(|case| !case.code.contains("{right}"));
                for Case { task, code } in own {
                    let slug = sources.iter().find(|of| task.split('/').next() == Some(of.slug));
                    let name = set.file_name().unwrap().to_string_lossy().into_owned();
                    let of = written.entry((name, slug.unwrap().slug)).or_default();
                    of.entry(task).or_default().push(code);
                }
            }
        }
        Self { printer: Printer::new(&workspace), sources, written }
    }

    /// Whole files: of each set as many as it has ways to write one of the tasks.
    fn programs(&self, source: &Source) -> Programs {
        let mut programs = Programs::new();
        for ((set, slug), tasks) in &self.written {
            let most = tasks.values().map(Vec::len).max().unwrap_or(0);
            for nth in (0..most).filter(|_| *slug == source.slug) {
                let mut text = source.starter();
                for (task, ways) in tasks {
                    text = put(&text, task, &ways[nth % ways.len()]);
                }
                programs.push((set.clone(), text));
            }
        }
        programs
    }

    fn prints(&self, source: &Source, text: &str) -> Prints {
        let files = [(source.slug, text.to_string())].into();
        self.printer.prints(&Taken { files, left_out: Vec::new() })
    }

    /// How two files are similar, if they are. Two at a time: in a class, what many have is not compared.
    fn how(&self, files: [&Prints; 2]) -> Option<How> {
        let class = ["a", "b"].map(String::from).into_iter().zip(files.map(Prints::clone));
        let alike = self.printer.compare(&class.collect());
        alike.into_iter().find(|one| one.submissions[1] != SOLUTION).map(|one| one.how)
    }

    /// How many pairs of these were written by different authors, and which of them are similar.
    fn independent(&self, source: &Source, programs: &[(String, String)]) -> (usize, Vec<String>) {
        let (mut pairs, mut alike) = (0, Vec::new());
        let programs = programs.iter().map(|(set, text)| (set, self.prints(source, text)));
        let programs: Vec<(&String, Prints)> = programs.collect();
        for (nth, (other, file)) in programs.iter().enumerate() {
            for (one, before) in programs[..nth].iter().filter(|(one, _)| one != other) {
                pairs += 1;
                let how = self.how([before, file]);
                alike.extend(how.map(|how| format!("{} {one} {other} {how:?}", source.slug)));
            }
        }
        (pairs, alike)
    }
}

fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut all: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

fn put(text: &str, task: &str, code: &str) -> String {
    replaced(text, &region(text, task).unwrap(), &format!("{code}\n"))
}

#[test]
fn independent_programs_are_hardly_ever_called_alike() {
    let corpus = Corpus::read();
    let (mut pairs, mut called) = (0, Vec::new());
    for source in &corpus.sources {
        let (more, alike) = corpus.independent(source, &corpus.programs(source));
        pairs += more;
        called.extend(alike);
    }
    println!("{} of {pairs} pairs of independent programs: {called:?}", called.len());
    assert!(pairs > 2_000, "{pairs}");
    // Two authors wrote all of `parallel` in the plainest way.
    assert!(called.len() <= 2, "{called:?}");
}

/// Files of two components have even less in common, and each is compared with thirteen times as many of these.
#[test]
fn files_of_other_components_are_never_called_alike() {
    let corpus = Corpus::read();
    let mut class = BTreeMap::new();
    for source in &corpus.sources {
        for (nth, (set, text)) in corpus.programs(source).into_iter().enumerate() {
            class.insert(format!("{set} {nth} {}", source.slug), corpus.prints(source, &text));
        }
    }
    let alike = corpus.printer.compare(&class);
    let moved: Vec<_> = alike.iter().filter(|one| one.file.contains(" as ")).collect();
    assert!(class.len() > 200 && alike.len() > moved.len(), "{} {}", class.len(), alike.len());
    assert!(moved.is_empty(), "{moved:?}");
}

/// A file with one task done, as after the first lab.
#[test]
fn single_tasks_are_seldom_called_alike() {
    let corpus = Corpus::read();
    let (mut pairs, mut called) = (0, BTreeMap::new());
    let tasks: BTreeSet<&str> =
        corpus.written.values().flat_map(|tasks| tasks.keys().map(String::as_str)).collect();
    for task in tasks {
        let source =
            corpus.sources.iter().find(|of| task.split('/').next() == Some(of.slug)).unwrap();
        let mut programs = Programs::new();
        for ((set, _), tasks) in &corpus.written {
            let ways = tasks.get(task).into_iter().flatten();
            programs.extend(ways.map(|code| (set.clone(), put(&source.starter(), task, code))));
        }
        let (more, alike) = corpus.independent(source, &programs);
        pairs += more;
        called.insert(task, alike.len());
    }
    called.retain(|_, n| *n > 0);
    let n: usize = called.values().sum();
    println!("{n} of {pairs} pairs of single tasks: {called:?}");
    assert!(pairs > 2_000 && 100 * n <= pairs, "{n} of {pairs}: {called:?}");
    // The shortest have few right answers, and are never called similar.
    for short in [
        "loss/shift",
        "loss/perplexity",
        "attention/repeat",
        "feedforward/size",
        "parallel/shard-range",
    ] {
        assert!(!called.contains_key(short), "{called:?}");
    }
}

/// How a copy is edited. Each of these does what those before it do.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Edit {
    /// Other names and comments.
    Renamed,
    /// Every second pair of neighbouring `let` lines is swapped.
    Swapped,
    /// Before every fourth `let` there is another one.
    Inserted,
    /// All neighbouring `let` lines are swapped.
    AllSwapped,
}

const EDITS: [Edit; 4] = [Edit::Renamed, Edit::Swapped, Edit::Inserted, Edit::AllSwapped];

fn edited(text: &str, edit: Edit) -> String {
    let is_let = |line: &str| {
        let code = line.split("//").next().unwrap_or_default().trim();
        code.starts_with("let ") && code.ends_with(';')
    };
    let (mut inside, mut lets, mut lines) = (false, 0, Vec::new());
    for line in text.lines() {
        inside = (inside || line.contains(": begin")) && !line.contains(": end");
        if inside && edit >= Edit::Inserted && line.trim_start().starts_with("let ") {
            lets += 1;
            if lets % 4 == 0 {
                lines.push("    let spare = 0;".to_string());
            }
        }
        // Names of the file's own begin with a letter here and with another one there.
        let line = match inside {
            true => renamed(line.split("//").next().unwrap_or_default()),
            false => line.to_string(),
        };
        lines.push(line);
    }
    let (mut at, mut pairs) = (0, 0);
    while edit >= Edit::Swapped && at + 1 < lines.len() {
        if is_let(&lines[at]) && is_let(&lines[at + 1]) {
            pairs += 1;
            if edit == Edit::AllSwapped || pairs % 2 == 1 {
                lines.swap(at, at + 1);
                at += 1;
            }
        }
        at += 1;
    }
    lines.join("\n")
}

/// The names that a line declares, with another letter before them, wherever they are in it.
fn renamed(line: &str) -> String {
    let Some((before, rest)) = line.split_once("let ") else { return line.to_string() };
    let Some((names, value)) = rest.split_once('=') else { return line.to_string() };
    let new = |word: &str| match word {
        "mut" | "true" | "false" => word.to_string(),
        word if word.starts_with(char::is_lowercase) => format!("z{word}"),
        word => word.to_string(),
    };
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut out, mut word) = (String::new(), String::new());
    for c in names.split(':').next().unwrap_or_default().chars().chain([' ']) {
        if is_word(c) {
            word.push(c);
        } else {
            out += &new(&std::mem::take(&mut word));
            out.push(c);
        }
    }
    let annotation = names.split_once(':').map_or(String::new(), |(_, of)| format!(":{of}"));
    format!("{before}let {out}{annotation}={value}")
}

#[test]
fn edited_copies_are_called_alike() {
    let corpus = Corpus::read();
    let (mut copies, mut missed) = (0, Vec::new());
    for source in &corpus.sources {
        let mut originals = corpus.programs(source);
        originals.push(("solution".to_string(), source.solution.to_string()));
        for (set, text) in &originals {
            let own = corpus.prints(source, text);
            let with_comment = corpus.prints(source, &format!("{text}//"));
            // Short ones have few right answers, and are never called similar.
            if corpus.how([&own, &with_comment]) != Some(How::Renamed) {
                continue;
            }
            for edit in EDITS {
                copies += 1;
                let how = corpus.how([&own, &corpus.prints(source, &edited(text, edit))]);
                if how.is_none() || (edit == Edit::Renamed && how != Some(How::Renamed)) {
                    missed.push((source.slug, set.clone(), edit as usize, how));
                }
            }
        }
    }
    println!("{} of {copies} edited copies missed: {missed:?}", missed.len());
    assert!(copies > 700, "{copies}");
    assert!(missed.is_empty(), "{missed:?}");
}
