//! Which submissions there are, and what they are called.

use crate::error::{Error, Result};
use crate::intake::{Source, hex, is_archive, is_junk, names_in_zip, shown};
use crate::output::page::is_hidden;
use crate::record::LeftOut;
use crate::systems::System;
use contract::registry::COMPONENTS;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Submissions by name, in the order of their names.
pub type Submissions = BTreeMap<String, Source>;

/// Names in the folder of results that no submission can have.
const TAKEN: &[&str] = &[
    "grades.csv",
    "alike.csv",
    "class.html",
    "class.json",
    "junit.xml",
    "moodle.csv",
    "canvas.csv",
    "github.md",
];

/// Something that may be a submission, and what it is called as a file.
struct Member {
    file: String,
    path: PathBuf,
    source: Source,
}

/// What lies in the folder of a class.
#[derive(Default)]
struct Members {
    all: Vec<Member>,
    /// What is not taken for a submission, and why.
    passed_over: Vec<LeftOut>,
}

impl From<Vec<Member>> for Members {
    fn from(all: Vec<Member>) -> Self {
        Self { all, ..Self::default() }
    }
}

/// What lies among the submissions and is not taken for one: see [`found`]. What the system itself leaves in every
/// folder is not named.
///
/// # Errors
/// As [`found`].
pub fn passed_over(paths: &[PathBuf], systems: &[System]) -> Result<Vec<LeftOut>> {
    let mut all = Vec::new();
    for path in paths {
        all.extend(members(path, systems)?.passed_over);
    }
    Ok(all)
}

/// The submissions that are named: a folder that holds folders or archives, and no file of a learner's, is a class. The
/// same holds for what Moodle makes of one, as an archive or unpacked, and what Canvas makes, if it is among the
/// `systems`. What is in a class and can't be a submission is among them, with the reason. Only what no one hands in,
/// such as `.git`, is not: [`passed_over`] names it.
///
/// # Errors
/// A path that is not there; nothing in a folder; two of one name.
pub fn found(paths: &[PathBuf], systems: &[System]) -> Result<Submissions> {
    let mut all = Submissions::new();
    let mut places: BTreeMap<String, (String, PathBuf, usize)> = BTreeMap::new();
    for (nth, path) in paths.iter().enumerate() {
        for Member { file, path, source } in members(path, systems)?.all {
            let whole = matches!(&source, Source::Path(path) if !path.is_dir());
            let name = name(&file, whole);
            if let Some((other, place, of)) = places.get(&name) {
                // In one folder, no name may stop the grading of the others.
                if *other == file && *place != path && *of != nth {
                    return Err(Error::Argument {
                        what:
                            "each submission has a name of its own: that of its folder or archive"
                                .to_string(),
                        expected: format!("one submission called \"{name}\""),
                        got: format!("{} and {}", place.display(), path.display()),
                        to_do: "rename one of them".to_string(),
                    });
                }
                // A folder and an archive of one name, or two archives.
                let why = match *other == file {
                    true => several(&[&format!("{file}/"), &format!("{file}..")]),
                    false => several(&[other, &file]),
                };
                all.insert(name, Source::None { why });
                continue;
            }
            places.insert(name.clone(), (file, path, nth));
            all.insert(name, source);
        }
    }
    Ok(all)
}

/// Why none of several is graded.
fn several(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    format!(
        "these are submissions of one participant, and nobody can know which one counts: {}. Leave one of them in the folder",
        names.join(" and ")
    )
}

/// Several submissions that have one identification: none of them is graded. `identification` says whose a name is, in words.
pub fn refuse_twins(all: &mut Submissions, identification: impl Fn(&str) -> Option<String>) {
    let mut by: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in all.keys() {
        if let Some(whose) = identification(name) {
            by.entry(whose).or_default().push(name.clone());
        }
    }
    for (whose, names) in by.into_iter().filter(|(_, names)| names.len() > 1) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let why = format!("{} ({whose})", several(&names));
        for name in names {
            all.insert(name.to_string(), Source::None { why: why.clone() });
        }
    }
}

/// Whether a folder holds learners' files itself.
fn is_submission(folder: &Path) -> bool {
    let holds = |folder: &Path| {
        COMPONENTS.iter().any(|component| folder.join(format!("{}.rs", component.slug)).exists())
    };
    holds(folder) || holds(&folder.join("src")) || folder.join("exercises").is_dir()
}

/// What a path of the command's means.
fn members(path: &Path, systems: &[System]) -> Result<Members> {
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
    let file = as_text(file);
    // The folder of one participant is one submission, regardless of what is in it.
    if !systems.iter().any(|system| system.split(&file).is_some()) {
        let class = of_system(path, systems)?;
        if path.is_dir() && (class.is_some() || !is_submission(path)) {
            return in_folder(path, systems);
        }
        if let Some((system, participants)) = class {
            return Ok(in_zip(path, system, &participants).into());
        }
        if path.is_file() && of_system(path, &[System::Canvas])?.is_some() {
            return Err(Error::Argument {
                what: "a submission is of one participant".to_string(),
                expected: "the files of one, or a class whose system is known".to_string(),
                got: format!("{}, whose names are those of a class from Canvas", path.display()),
                to_do: "add --format canvas".to_string(),
            });
        }
    }
    let (path, source) = (path.to_path_buf(), Source::Path(path.to_path_buf()));
    Ok(vec![Member { file, path, source }].into())
}

/// The first of these systems that has named the entries of a folder, or of a zip that holds nothing else, and the participants.
fn of_system(path: &Path, systems: &[System]) -> Result<Option<(System, BTreeSet<String>)>> {
    for &system in systems {
        let participants = participants(path, system)?;
        if !participants.is_empty() {
            return Ok(Some((system, participants)));
        }
    }
    Ok(None)
}

/// The participants that a system has named in a folder, or in a zip that holds nothing else.
fn participants(path: &Path, system: System) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    if path.is_dir() {
        for entry in path.read_dir().map_err(Error::file(path, "can't be read"))?.flatten() {
            found.extend(system.split(&as_text(&entry.file_name())).map(|(whose, _)| whose));
        }
    } else if path.to_string_lossy().to_lowercase().ends_with(".zip") {
        for name in names_in_zip(path).unwrap_or_default() {
            match system.split(&name) {
                Some((whose, _)) => _ = found.insert(whose),
                None if is_junk(name.split('/').next().unwrap_or_default()) => {}
                None => return Ok(BTreeSet::new()),
            }
        }
    }
    // What a student wrote into a field is beside the files that they handed in.
    let all = found.clone();
    found.retain(|whose| system.with_files(whose).is_none_or(|files| !all.contains(&files)));
    Ok(found)
}

/// A zip of a class: each participant's part of it.
fn in_zip(path: &Path, system: System, participants: &BTreeSet<String>) -> Vec<Member> {
    let member = |whose: &String| Member {
        file: whose.clone(),
        path: path.to_path_buf(),
        source: Source::Within { archive: path.to_path_buf(), system, whose: whose.clone() },
    };
    participants.iter().map(member).collect()
}

fn in_folder(class: &Path, systems: &[System]) -> Result<Members> {
    let failed = |reason| Error::file(class, "can't be read")(reason);
    let mut members: Vec<Member> = Vec::new();
    let mut passed_over: Vec<LeftOut> = Vec::new();
    let mut pass_over = |file: &str, why: &str| {
        passed_over.push(LeftOut { name: shown(file), why: why.to_string() });
    };
    // Files of one participant, where the system has made no folders.
    let mut loose: BTreeMap<String, Vec<(String, PathBuf)>> = BTreeMap::new();
    let own = of_system(class, systems)?;
    let mut entries =
        class.read_dir().map_err(failed)?.collect::<std::io::Result<Vec<_>>>().map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    entries.retain(|entry| {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        let is_hidden = name.starts_with('.') && !is_hidden_submission(&path);
        if is_hidden && !is_junk(&name) {
            pass_over(&name, "a name that begins with a dot is hidden, and no files of the exercises lie right in it");
        }
        !is_hidden && !is_junk(&name)
    });
    let is_alone = entries.len() == 1;
    let mut has_any = false;
    for entry in &entries {
        let (path, file) = (entry.path(), as_text(&entry.file_name()));
        let kind = entry.file_type().map_err(failed)?;
        let named = own.as_ref().and_then(|(system, own)| {
            system.split(&file).map(|(whose, inside)| (own.contains(&whose), whose, inside))
        });
        if let Some((is_own, whose, inside)) = named {
            if !is_own {
                pass_over(
                    &file,
                    "what a participant wrote into a field, beside the files that were handed in",
                );
                continue;
            }
            // A packed folder of Moodle's counts as the folder.
            let is_packed = is_archive(&inside) && stem(&inside).is_empty();
            if kind.is_file() && !is_packed {
                loose.entry(whose).or_default().push((inside.into_owned(), path));
                continue;
            }
        }
        let source = if kind.is_dir() || (kind.is_file() && is_archive(&file)) {
            has_any = true;
            let unasked = |path: &Path| -> Result<bool> {
                Ok(path.is_file() && of_system(path, &[System::Canvas])?.is_some())
            };
            match of_system(&path, systems)? {
                None if unasked(&path)? => Source::None {
                    why: "its names are those of a class from Canvas. If you took it from there, and no student handed it in, add \
                          --format canvas, and remove the folder of results of this name"
                        .to_string(),
                },
                // A class in a class. A student may have made it to hand in for others.
                Some((system, of)) if is_alone => {
                    return match path.is_dir() {
                        true => in_folder(&path, systems),
                        false => Ok(in_zip(&path, system, &of).into()),
                    };
                }
                Some((_, of)) if of.len() > 1 => Source::None {
                    why: format!(
                        "it holds the folders of several participants. If you made it, and not a student, name it in a call of its \
                         own: cargo course grade \"{}\" --out FOLDER",
                        path.display()
                    ),
                },
                _ => Source::Path(path.clone()),
            }
        } else {
            Source::None { why: no_submission(kind.is_symlink()) }
        };
        members.push(Member { file, path, source });
    }
    let loose_is_empty = loose.is_empty();
    for (whose, files) in loose {
        let path = class.join(&whose);
        members.push(Member { file: whose, path, source: Source::Files(files) });
    }
    members.sort_by(|a, b| a.file.cmp(&b.file));
    if !has_any && loose_is_empty {
        let names: Vec<&str> = members.iter().map(|member| member.file.as_str()).collect();
        let names = names.iter().take(5).copied().collect::<Vec<_>>().join(", ");
        return Err(Error::Argument {
            what: format!("{} is a submission, or a folder of submissions", class.display()),
            expected: "learners' files such as norm.rs, or folders, .zip or .tar.gz files"
                .to_string(),
            got: if names.is_empty() { "none of these".to_string() } else { names },
            to_do: "name the folder that holds them".to_string(),
        });
    }
    Ok(Members { all: members, passed_over })
}

/// Whether something whose name begins with a dot is a submission all the same. Editors and tools have such folders,
/// too.
fn is_hidden_submission(path: &Path) -> bool {
    let is_link = path.is_symlink();
    !is_link
        && (path.is_dir() && is_submission(path)
            || path.is_file() && is_archive(&path.to_string_lossy()))
}

/// Why a file in the folder of a class is no submission.
fn no_submission(is_link: bool) -> String {
    let kind = if is_link { "a link, which is not followed" } else { "a single file" };
    format!(
        "it is {kind}. A submission is a folder, a .zip or a .tar.gz. If Canvas has named this file, add --format canvas. If someone \
         else handed it in, put it into a folder of its own; if nobody did, take it out of the folder of submissions"
    )
}

/// What a submission is called, and its folder of results too. Its author chose the name: it does not stop anyone's
/// grading. One that has to be changed for that gets its own number at the end: changed, it may be another student's.
fn name(file: &str, is_archive: bool) -> String {
    let file = if is_archive { stem(file) } else { file };
    let mut name: String = file.chars().map(plain).collect();
    if name.is_empty() || name.starts_with('.') || is_taken(&name) {
        name.insert(0, '_');
    }
    if name == file && name.len() <= LONGEST {
        return name;
    }
    let digest = hex(&Sha256::digest(file)[..4]);
    if name.len() <= LONGEST {
        return format!("{name}-{digest}");
    }
    let (begin, end) =
        (name.floor_char_boundary(LONGEST - END), name.ceil_char_boundary(name.len() - END));
    format!("{}-{digest}-{}", &name[..begin], &name[end..])
}

/// The most bytes of a name, before its own number. File systems take 255.
const LONGEST: usize = 200;

/// The bytes at the end of a name that stay when it is cut: systems write there whose it is.
const END: usize = 60;

/// The name of a file as a text. Two names never become one: bytes that are no text are written as numbers.
fn as_text(name: &OsStr) -> String {
    let mut text = String::new();
    for chunk in name.as_encoded_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// A name without the ending of an archive.
fn stem(file: &str) -> &str {
    let lower = file.to_ascii_lowercase();
    let end = [".zip", ".tar.gz", ".tgz"].iter().find(|end| lower.ends_with(*end));
    &file[..file.len() - end.map_or(0, |end| end.len())]
}

/// Some file systems do not distinguish `A` from `a`.
fn is_taken(name: &str) -> bool {
    TAKEN.iter().any(|taken| name.eq_ignore_ascii_case(taken))
}

/// What breaks no line, turns no text's direction, and is seen.
fn plain(c: char) -> char {
    if is_hidden(c) || c == '/' || c == '\\' { '_' } else { c }
}

/// The part `nth` of `of` parts, counted from 1: of the names in their order, each `of`-th.
pub fn shard(all: Submissions, nth: usize, of: usize) -> Submissions {
    let own = |(at, _): &(usize, _)| at % of == nth - 1;
    all.into_iter().enumerate().filter(own).map(|(_, submission)| submission).collect()
}
