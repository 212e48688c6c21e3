//! Files of a class that are similar. It is a hint for a person, and never a verdict: no point depends on it.
//!
//! Each file is compared with every file of the others, since a copy can be moved, by its fingerprints ([`winnow`]), without those
//! of the empty tasks, and without what much of the class has: people who write the obvious thing write the same. How often independent programs are listed, and edited copies are not,
//! is measured in `tests/similar.rs`, on programs that were written independently of each other.

pub mod winnow;

use crate::folder::Folder;
use crate::intake::{Taken, hex};
use crate::record::Record;
use contract::registry::COMPONENTS;
use learner::exercise::Workspace;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// The share of the fingerprints of the smaller file from which two files are called similar.
pub const SHARE: f64 = 0.75;
/// Fingerprints that two files have in common at least: short tasks have few right answers.
pub const COMMON: usize = 40;
/// The same for files that are equal to the letter, in which names and comments are equal, too.
const COMMON_OF_EQUAL: usize = 20;
/// What more than one of so many submissions have in common is what everyone writes.
const EVERYBODY: usize = 5;
/// In a small class that takes more than so many submissions.
const FEW: usize = 10;

/// What the course's own solution is called among the submissions.
pub const SOLUTION: &str = "the course's own solution";

/// A file as it is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Print {
    /// SHA-256 of its text.
    text: String,
    /// SHA-256 of its tokens.
    tokens: String,
    /// Its fingerprints.
    own: BTreeSet<u64>,
}

/// The files of a submission as they are compared, kept beside its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prints {
    /// What they are made with: those of another version can't be compared.
    measure: String,
    /// [`Taken::digest`] of the submission.
    digest: String,
    files: BTreeMap<String, Print>,
}

/// The file of a submission's [`Prints`] in its folder of results.
const FILE: &str = "prints.json";

/// Makes prints: knows the empty tasks and the solutions.
pub struct Printer {
    /// Of all empty tasks: code that was moved to another file takes what was given with it.
    given: BTreeSet<u64>,
    solution: Prints,
}

/// How two files are similar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// They are the same text.
    Equal,
    /// They differ in names, comments, spaces and literals only.
    Renamed,
    /// They share much.
    Near,
}

/// Two files that are similar.
#[derive(Debug, Clone, PartialEq)]
pub struct Alike {
    /// The submissions, in the order of their names; the second may be [`SOLUTION`].
    pub submissions: [String; 2],
    /// The file, such as `norm.rs`; `norm.rs as loss.rs` if the second one has it under another name.
    pub file: String,
    /// How.
    pub how: How,
    /// Fingerprints of the smaller file that the other one has, from 0 to 1.
    pub share: f64,
    /// Fingerprints that both have.
    pub common: usize,
}

/// What came of comparing a class.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// The pairs, those first that have most in common.
    pub alike: Vec<Alike>,
    /// Submissions that were compared.
    pub compared: usize,
    /// Submissions with files whose prints are not there: of an earlier version, or of another machine.
    pub not_compared: Vec<String>,
}

impl Printer {
    /// Reads the course's files.
    pub fn new(course: &Workspace) -> Self {
        let starter = |slug| course.starter(slug).unwrap_or_default();
        let solution =
            |slug| course.read(&format!("exercises/{slug}/solution.rs")).unwrap_or_default();
        let grams = |text: String| winnow::grams(&winnow::tokens(&text));
        let slugs = || COMPONENTS.iter().map(|component| component.slug);
        let given = slugs().flat_map(|slug| grams(starter(slug))).collect();
        let files = slugs().map(|slug| (slug, solution(slug))).collect();
        let nothing =
            Prints { measure: String::new(), digest: String::new(), files: BTreeMap::new() };
        let mut printer = Self { given, solution: nothing };
        printer.solution = printer.prints(&Taken { files, left_out: Vec::new() });
        printer
    }

    /// The prints of a submission.
    pub fn prints(&self, taken: &Taken) -> Prints {
        let hash = |text: &str| hex(&Sha256::digest(text));
        let print = |text: &str| {
            let tokens = winnow::tokens(text);
            let own = winnow::fingerprints(&winnow::grams(&tokens), &self.given);
            Print { text: hash(text), tokens: hash(&tokens.join(" ")), own }
        };
        let files = taken.files.iter().map(|(slug, text)| (slug.to_string(), print(text)));
        Prints { measure: measure(), digest: taken.digest(), files: files.collect() }
    }

    /// Compares the submissions whose results lie in a folder.
    pub fn class(&self, folder: &Folder, records: &[Record]) -> Comparison {
        let with_files = records.iter().filter(|record| !record.digest.is_empty());
        let mut class = BTreeMap::new();
        let mut not_compared = Vec::new();
        for record in with_files {
            match kept(folder, &record.submission).filter(|prints| prints.digest == record.digest) {
                Some(prints) => _ = class.insert(record.submission.clone(), prints),
                None => not_compared.push(record.submission.clone()),
            }
        }
        Comparison { alike: self.compare(&class), compared: class.len(), not_compared }
    }

    /// All pairs of files that are similar.
    pub fn compare(&self, class: &BTreeMap<String, Prints>) -> Vec<Alike> {
        let submissions = class.iter().map(|(name, prints)| (name.as_str(), prints));
        let all = submissions.chain([(SOLUTION, &self.solution)]).enumerate();
        let files = all.flat_map(|(of, (submission, prints))| {
            let files = prints.files.iter();
            files.map(move |(slug, print)| Member { of, submission, slug, print })
        });
        pairs(&files.collect::<Vec<_>>(), class.len())
    }
}

/// A file of the class, or of the solutions, which come last.
struct Member<'a> {
    /// Which submission.
    of: usize,
    submission: &'a str,
    slug: &'a str,
    print: &'a Print,
}

fn measure() -> String {
    format!("{} {} without all starters", winnow::K, winnow::W)
}

/// Keeps prints beside a result, unless they lie there.
///
/// # Errors
/// They can't be written.
pub fn keep(folder: &Folder, submission: &str, prints: &Prints) -> crate::error::Result<()> {
    if kept(folder, submission).as_ref() == Some(prints) {
        return Ok(());
    }
    let text = serde_json::to_string(prints).map_err(|error| crate::error::Error::Program {
        what: "fingerprints can't be written as JSON",
        reason: error.to_string(),
    })?;
    folder.write(&format!("{submission}/{FILE}"), text)
}

fn kept(folder: &Folder, submission: &str) -> Option<Prints> {
    let text = std::fs::read(folder.at(&format!("{submission}/{FILE}"))).ok()?;
    let prints: Prints = serde_json::from_slice(&text).ok()?;
    (prints.measure == measure()).then_some(prints)
}

/// The pairs of files, of so many submissions. An index of who has a fingerprint makes that fast: what two files share is counted only where
/// they share it.
fn pairs(files: &[Member<'_>], submissions: usize) -> Vec<Alike> {
    let mut having: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (place, file) in files.iter().enumerate() {
        for print in &file.print.own {
            having.entry(*print).or_default().push(place);
        }
    }
    // Submissions, not files: one may have the same in several. Their files lie side by side.
    let is_everybodys = (submissions / EVERYBODY).max(FEW);
    having.retain(|_, all| {
        let mut of: Vec<usize> = all.iter().map(|place| files[*place].of).collect();
        of.dedup();
        of.iter().filter(|of| **of < submissions).count() <= is_everybodys
    });
    let mut alike = Vec::new();
    // Of each file, what not everyone has; and what each of those before the file has of that.
    let mut own = vec![0; files.len()];
    for (nth, second) in files.iter().enumerate() {
        let mut common = vec![0_usize; nth];
        for all in second.print.own.iter().filter_map(|print| having.get(print)) {
            own[nth] += 1;
            for before in all.iter().take_while(|place| **place < nth) {
                common[*before] += 1;
            }
        }
        for (before, first) in files[..nth].iter().enumerate().filter(|(_, a)| a.of != second.of) {
            let (a, b) = (first.print, second.print);
            // Equal ones are equal, also where everyone has what they have.
            let (how, least, common, of) = match () {
                () if a.text == b.text => (How::Equal, COMMON_OF_EQUAL, a.own.len(), a.own.len()),
                () if a.tokens == b.tokens => (How::Renamed, COMMON, a.own.len(), a.own.len()),
                () => (How::Near, COMMON, common[before], own[before].min(own[nth])),
            };
            let share = common as f64 / of.max(1) as f64;
            if common >= least && share >= SHARE {
                let submissions = [first.submission, second.submission].map(String::from);
                let file = match first.slug == second.slug {
                    true => format!("{}.rs", first.slug),
                    false => format!("{}.rs as {}.rs", first.slug, second.slug),
                };
                alike.push(Alike { submissions, file, how, share, common });
            }
        }
    }
    alike
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::registry::TASKS;
    use learner::exercise::source::{Source, region, replaced};

    fn course() -> Workspace {
        Workspace::find().unwrap()
    }

    fn solution(slug: &str) -> String {
        course().read(&format!("exercises/{slug}/solution.rs")).unwrap()
    }

    fn class(printer: &Printer, files: &[(&str, &'static str, &str)]) -> BTreeMap<String, Prints> {
        let of = |(name, slug, text): &(&str, &'static str, &str)| {
            let files = [(*slug, text.to_string())].into();
            (name.to_string(), printer.prints(&Taken { files, left_out: Vec::new() }))
        };
        files.iter().map(of).collect()
    }

    fn seen(printer: &Printer, files: &[(&str, &'static str, &str)]) -> Vec<(String, String, How)> {
        let alike = printer.compare(&class(printer, files));
        alike.into_iter().map(|Alike { submissions: [a, b], how, .. }| (a, b, how)).collect()
    }

    #[test]
    fn equal_renamed_and_edited_files_are_told_apart() {
        let printer = Printer::new(&course());
        // Not the course's own: one sum is written in another way.
        let own = solution("loss")
            .replace("let asked = ", "let asked: Vec<_> = Vec::new(); let asked = ");
        let renamed =
            own.replace("inputs", "ins").replace("targets", "outs").replace("// ", "// my ");
        let edited =
            renamed.replacen("let places", "let (n, m) = (b.size(), s.size());\n    let places", 1);
        let files = [
            ("a", "loss", &*own),
            ("b", "loss", &own),
            ("c", "loss", &renamed),
            ("d", "loss", &edited),
        ];
        let all = seen(&printer, &files);
        let of = |a: &str, b: &str| {
            all.iter().find(|(one, other, _)| one == a && other == b).map(|(.., how)| *how)
        };
        assert_eq!(of("a", "b"), Some(How::Equal));
        assert_eq!(of("a", "c"), Some(How::Renamed));
        assert_eq!(of("c", "d"), Some(How::Near));
        // They all are the course's own with a change.
        assert_eq!(of("a", SOLUTION), Some(How::Near));
        assert_eq!(all.len(), 10, "{all:?}");
        assert_eq!(seen(&printer, &[("me", "loss", &solution("loss"))])[0].2, How::Equal);
    }

    #[test]
    fn a_file_that_was_moved_to_another_name_is_found() {
        let printer = Printer::new(&course());
        let own = solution("loss")
            .replace("let asked = ", "let asked: Vec<_> = Vec::new(); let asked = ");
        let norm = solution("norm").replace("let rms = ", "let unused = 1; let rms = ");
        let files = |name: &str, files: [(&'static str, String); 2]| {
            let taken = Taken { files: files.into(), left_out: Vec::new() };
            (name.to_string(), printer.prints(&taken))
        };
        let in_module = |text: &str| format!("pub use m::*;\nmod m {{\n{text}\n}}\n");
        let class = [
            files("a", [("loss", own.clone()), ("norm", norm.clone())]),
            files("b", [("loss", in_module(&norm)), ("norm", in_module(&own))]),
        ];
        let alike = printer.compare(&class.into());
        let found: Vec<(&str, &str)> = alike
            .iter()
            .filter(|one| one.submissions[1] == "b")
            .map(|one| (one.submissions[0].as_str(), one.file.as_str()))
            .collect();
        assert_eq!(found, [("a", "norm.rs as loss.rs"), ("a", "loss.rs as norm.rs")]);
        // The course's own are found under another name, too.
        let of_b = |one: &&Alike| one.submissions == ["b", SOLUTION];
        let solutions: Vec<&str> = alike.iter().filter(of_b).map(|one| one.file.as_str()).collect();
        assert_eq!(solutions, ["norm.rs as loss.rs", "loss.rs as norm.rs"]);
    }

    /// Of the model solutions: a learner who gets them right may well write them to the letter.
    #[test]
    fn empty_tasks_and_those_of_a_line_or_two_are_like_nobodys() {
        let printer = Printer::new(&course());
        let mut short = 0;
        for source in Source::all(&course()).unwrap() {
            let mut texts = vec![source.starter(), String::new(), "fn half( {".to_string()];
            for task in TASKS.iter().filter(|task| task.component == source.slug) {
                let Some(lines) = source.solution_region(task.name) else { continue };
                let is_code =
                    |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
                if lines.lines().filter(is_code).count() <= 2 {
                    let place = region(&texts[0], task.name).unwrap();
                    texts.push(replaced(&texts[0], &place, &format!("{lines}\n")));
                    short += 1;
                }
            }
            for text in &texts {
                let twice = [("a", source.slug, text.as_str()), ("b", source.slug, text)];
                assert_eq!(seen(&printer, &twice), [], "{text}");
            }
        }
        assert!(short >= 7, "{short}");
    }

    #[test]
    fn what_everybody_writes_is_no_likeness() {
        let printer = Printer::new(&course());
        let text = |nth: usize| {
            let own = format!("\nfn own() {{ {} }}\n", "let _ = a.b(1).c();".repeat(nth));
            solution("norm") + &own
        };
        let names: Vec<String> = (0..=FEW).map(|nth| format!("s{nth:02}")).collect();
        let texts: Vec<String> = (0..=FEW).map(text).collect();
        let files = |n: usize| -> Vec<(&str, &'static str, &str)> {
            (0..n).map(|nth| (names[nth].as_str(), "norm", texts[nth].as_str())).collect()
        };
        let among = |n: usize| {
            let all = seen(&printer, &files(n));
            all.into_iter().filter(|(_, other, _)| other != SOLUTION).count()
        };
        assert_eq!(among(FEW), FEW * (FEW - 1) / 2);
        assert_eq!(among(FEW + 1), 0);
        // Those that are equal are reported all the same.
        let mut equal = files(FEW + 1);
        equal[1].2 = equal[2].2;
        assert_eq!(seen(&printer, &equal), [("s01".to_string(), "s02".to_string(), How::Equal)]);
    }
}
