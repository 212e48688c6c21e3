//! Which submissions there are, and what they are called.

use crate::error::{Error, Result};
use crate::intake::is_archive;
use contract::registry::COMPONENTS;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Submissions by name, in the order of their names.
pub type Submissions = BTreeMap<String, PathBuf>;

/// Names in the folder of results that no submission can have.
const TAKEN: &[&str] = &[
    "grades.csv",
    "class.html",
    "class.json",
    "junit.xml",
    "moodle.csv",
    "canvas.csv",
    "github.md",
];

/// The submissions that are named: a folder that holds folders or archives, and no file of a learner's, is a class.
///
/// # Errors
/// A path that is not there; nothing in a folder; two of one name.
pub fn found(paths: &[PathBuf]) -> Result<Submissions> {
    let mut all = Submissions::new();
    for path in paths {
        let members =
            if path.is_dir() && !is_submission(path) { members(path)? } else { vec![path.clone()] };
        for member in members {
            let mut name = name(&member)?;
            if let Some(other) = all.get(&name) {
                if other.file_name() != member.file_name() {
                    // Alike only as far as it can be shown.
                    name = (2..)
                        .map(|nth| format!("{name}-{nth}"))
                        .find(|new| !all.contains_key(new))
                        .unwrap_or(name);
                    all.insert(name, member);
                    continue;
                }
                return Err(Error::Argument {
                    what: "each submission has a name of its own: that of its folder or archive"
                        .to_string(),
                    expected: format!("one submission called \"{name}\""),
                    got: format!("{} and {}", other.display(), member.display()),
                    to_do: "rename one of them".to_string(),
                });
            }
            all.insert(name, member);
        }
    }
    Ok(all)
}

/// Whether a folder holds learners' files itself.
fn is_submission(folder: &Path) -> bool {
    let holds = |folder: &Path| {
        COMPONENTS.iter().any(|component| folder.join(format!("{}.rs", component.slug)).exists())
    };
    holds(folder) || holds(&folder.join("src")) || folder.join("exercises").is_dir()
}

fn members(class: &Path) -> Result<Vec<PathBuf>> {
    let failed = |reason| Error::file(class, "can't be read")(reason);
    let mut members = Vec::new();
    for entry in class.read_dir().map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().map_err(failed)?;
        if !name.starts_with('.') && (kind.is_dir() || (kind.is_file() && is_archive(&name))) {
            members.push(entry.path());
        }
    }
    if members.is_empty() {
        return Err(Error::Argument {
            what: format!("{} is a submission, or a folder of submissions", class.display()),
            expected: "learners' files such as norm.rs, or folders, .zip or .tar.gz files"
                .to_string(),
            got: "none of these".to_string(),
            to_do: "name the folder that holds them".to_string(),
        });
    }
    Ok(members)
}

/// What a submission is called, and its folder of results too. Its author chose the name: it stops nobody's grading.
fn name(path: &Path) -> Result<String> {
    if let Err(error) = path.symlink_metadata() {
        return Err(Error::Argument {
            what: "a submission is a folder, a .zip or a .tar.gz".to_string(),
            expected: "a path that is there".to_string(),
            got: path.display().to_string(),
            to_do: format!("see whether it is written rightly ({error})"),
        });
    }
    let whole = path.canonicalize().map_err(Error::file(path, "can't be read"))?;
    let file = path.file_name().or(whole.file_name()).unwrap_or_default();
    let file = file.to_string_lossy();
    let lower = file.to_ascii_lowercase();
    let ends = [".zip", ".tar.gz", ".tgz"];
    let end =
        ends.iter().find(|end| !path.is_dir() && lower.ends_with(*end)).map_or(0, |end| end.len());
    let mut name: String = file[..file.len() - end].chars().map(plain).take(150).collect();
    if name.is_empty() || name.starts_with('.') || is_taken(&name) {
        name.insert(0, '_');
    }
    Ok(name)
}

/// Some file systems do not tell `A` from `a`.
fn is_taken(name: &str) -> bool {
    TAKEN.iter().any(|taken| name.eq_ignore_ascii_case(taken))
}

/// What breaks no line, and turns no text's direction.
fn plain(c: char) -> char {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if c.is_control() || turns || c == '/' || c == '\\' { '_' } else { c }
}

/// The part `nth` of `of` parts, counted from 1: of the names in their order, each `of`-th.
pub fn shard(all: Submissions, nth: usize, of: usize) -> Submissions {
    let own = |(at, _): &(usize, _)| at % of == nth - 1;
    all.into_iter().enumerate().filter(own).map(|(_, submission)| submission).collect()
}
