//! The program that is built of a submission: the learner's files in the course's own crate `exercises`, and `submission` around it.
//!
//! rustc itself is called, in the sandbox, and not cargo: there is no build script, no configuration and no other crate that a
//! submission could bring.

use crate::cage::{self, Cage};
use crate::error::{Error, Result};
use crate::intake::Taken;
use crate::parts::{Parts, is_built_apart};
use crate::temporary::Temporary;
use contract::registry::COMPONENTS;
use contract::types::Message;
use learner::compile_error::CompileError;
use learner::exercise::compile::diagnostics::{compile_error, errors};
use learner::exercise::compile::without::{Attempt, Ended, Settled, settle};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

/// The most that is kept of what a compiler says.
const SAID: u64 = 64 << 20;

/// What a submission's crate is called, and the program around it.
const EXERCISES: &str = "exercises";
const SUBMISSION: &str = "submission";

/// A submission on its way to a program: a folder with the pristine files, the learner's over them, and what is built.
pub struct Stage {
    folder: Temporary,
    /// The program alone, where the sandbox's user can reach it.
    program: Temporary,
}

impl Stage {
    /// Lays the files of a submission over the pristine ones.
    ///
    /// # Errors
    /// Files of the course can't be read; files can't be written.
    pub fn new(parts: &Parts, taken: &Taken) -> Result<Self> {
        let new = || {
            Temporary::new().map_err(Error::file(std::env::temp_dir(), "can't hold a new folder"))
        };
        let stage = Self { folder: new()?, program: new()? };
        let program = stage.program.path();
        cage::give(program).map_err(Error::file(program, "can't be given away"))?;
        let course = stage.path().join("course");
        for (from, to) in
            pristine(&parts.course).map_err(Error::file(&parts.course, "can't be read"))?
        {
            copy(&from, &course.join(to)).map_err(Error::file(from, "can't be copied"))?;
        }
        for (slug, text) in &taken.files {
            let file = course.join(format!("exercises/src/{slug}.rs"));
            std::fs::write(&file, text).map_err(Error::file(file, "can't be written"))?;
        }
        let out = stage.path().join("out");
        std::fs::create_dir(&out).map_err(Error::file(&out, "can't be made"))?;
        Ok(stage)
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The program, once it is built.
    pub fn program(&self) -> PathBuf {
        self.program.path().join(SUBMISSION)
    }

    /// A folder that the sandbox's user can reach.
    pub fn reachable(&self) -> &Path {
        self.program.path()
    }
}

/// The files of the course that a submission is built with: where they are, and where they are in the copy. What the
/// learner writes is there as the starter.
fn pristine(course: &Path) -> io::Result<Vec<(PathBuf, PathBuf)>> {
    let mut files: Vec<PathBuf> =
        ["exercises/src/lib.rs", "exercises/src/prelude.rs"].iter().map(PathBuf::from).collect();
    for folder in ["exercises/adapters/src", "exercises/submission/src"] {
        for entry in course.join(folder).read_dir()? {
            files.push(Path::new(folder).join(entry?.file_name()));
        }
    }
    let mut pairs: Vec<_> = files.into_iter().map(|file| (course.join(&file), file)).collect();
    for component in COMPONENTS {
        let starter = course.join(format!("exercises/{}/starter.rs", component.slug));
        for to in [
            format!("exercises/{}/starter.rs", component.slug),
            format!("exercises/src/{}.rs", component.slug),
        ] {
            pairs.push((starter.clone(), PathBuf::from(to)));
        }
    }
    Ok(pairs)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to.parent().unwrap_or(to))?;
    // Not `copy`: the permissions of the lecturer's files are theirs.
    std::fs::write(to, std::fs::read(from)?)
}

/// A file alone may take one in so many of the seconds that all have together. It is one of many, but a slow machine must compile an
/// honest one in that time.
pub const ALONE: u64 = 5;

/// Why there is no program.
#[derive(Debug)]
enum NoProgram {
    /// The compiler ended without a word about the code, by itself or by one of its limits.
    Unknown {
        /// How.
        words: String,
        /// Whether it was a limit.
        by_limit: bool,
    },
    /// The machine's fault.
    Machine(Error),
}

impl From<Error> for NoProgram {
    fn from(error: Error) -> Self {
        Self::Machine(error)
    }
}

/// What a compiler came to.
pub struct Output {
    /// Whether it made what it was asked for.
    pub success: bool,
    /// What it wrote, its beginning if it is very long.
    pub words: String,
    /// How it ended, in words.
    pub status: String,
    /// Whether it was one of its limits that ended it.
    pub by_limit: bool,
}

/// Builds the program of a submission. Where a file does not compile, its starter takes its place, and the same holds
/// for the files that are `refused`. `wanted` are the components whose tasks are graded.
///
/// # Errors
/// The machine can't build it, or not twice in the same way. What the compiler says once may be said by a machine that is full.
pub fn build(
    cage: &Cage,
    parts: &Parts,
    stage: &Stage,
    taken: &Taken,
    wanted: &[&str],
    refused: &[CompileError],
) -> Result<Settled<()>> {
    let attempt = |starters: &[&'static str]| attempt(cage, parts, stage, starters);
    let mut without = refused.to_vec();
    let first = match settle(wanted, without.clone(), attempt) {
        Err(Ended::Failed(NoProgram::Unknown { words, by_limit })) => {
            without.extend(fatal(cage, parts, stage, taken, refused)?);
            if without.len() == refused.len() {
                // Together they may be what each alone is not. No machine's fault makes a compiler compute, or write.
                let again = settle(wanted, refused.to_vec(), attempt);
                let is_again =
                    matches!(again, Err(Ended::Failed(NoProgram::Unknown { by_limit: true, .. })));
                if !(by_limit && is_again) {
                    return Err(Error::Machine(format!("{words}, and over no file alone")));
                }
                without.extend(uncompiled(taken, refused).map(|slug| ended_over(slug, &words)));
            }
            settle(wanted, without.clone(), attempt)
        }
        settled => settled,
    };
    let first = first.map_err(nobodys)?;
    if first.uncompiled.len() == without.len() {
        return Ok(first);
    }
    let again = settle(wanted, without, attempt).map_err(nobodys)?;
    // Only where and what: the rest of the words may name files that are called otherwise each time.
    let said = |of: &Settled<()>| -> Vec<_> {
        let line = |e: &CompileError| e.first.lines().next().unwrap_or_default().to_string();
        of.uncompiled.iter().map(|e| (e.component, e.place.clone(), line(e))).collect()
    };
    match said(&first) == said(&again) {
        true => Ok(again),
        false => Err(Error::Machine(format!(
            "the compiler said two things of the same code: {:?}, and {:?}",
            said(&first).last(),
            said(&again).last()
        ))),
    }
}

/// The files over which the compiler ends without a word, twice, where the others are starters.
fn fatal(
    cage: &Cage,
    parts: &Parts,
    stage: &Stage,
    taken: &Taken,
    refused: &[CompileError],
) -> Result<Vec<CompileError>> {
    let mut alone = cage.clone();
    // Each of them may be one that is compiled for ever.
    alone.limits.build_seconds = cage.limits.build_seconds.div_ceil(ALONE);
    let mut fatal = Vec::new();
    for slug in uncompiled(taken, refused) {
        let others: Vec<_> =
            COMPONENTS.iter().map(|of| of.slug).filter(|other| *other != slug).collect();
        let over = || match attempt(&alone, parts, stage, &others) {
            Err(NoProgram::Machine(error)) => Err(error),
            Err(NoProgram::Unknown { words, .. }) => Ok(Some(words)),
            Ok(_) => Ok(None),
        };
        let Some(first) = over()? else { continue };
        if over()?.is_none() {
            return Err(Error::Machine(format!("{slug}.rs, once of two times: {first}")));
        }
        fatal.push(ended_over(slug, &first));
    }
    Ok(fatal)
}

/// The files that are to be compiled.
fn uncompiled(taken: &Taken, refused: &[CompileError]) -> impl Iterator<Item = &'static str> {
    let is_refused = |slug: &&str| refused.iter().any(|error| error.component == Some(*slug));
    taken.files.keys().copied().filter(move |slug| !is_refused(slug))
}

/// The compiler ended over a file.
fn ended_over(slug: &'static str, words: &str) -> CompileError {
    let (place, first) = (Some(format!("exercises/src/{slug}.rs")), words.to_string());
    CompileError { place, first, further: 0, signature: false, component: Some(slug) }
}

/// A failure that is no student's mistake is the machine's.
fn nobodys(ended: Ended<NoProgram>) -> Error {
    match ended {
        Ended::Failed(NoProgram::Machine(error)) => error,
        Ended::Failed(NoProgram::Unknown { words, .. })
        | Ended::Nobodys(CompileError { first: words, .. }) => Error::Machine(words),
    }
}

fn attempt(cage: &Cage, parts: &Parts, stage: &Stage, starters: &[&str]) -> Attempt<(), NoProgram> {
    let library = ["--crate-type=lib", "--emit=metadata,link"];
    let chosen =
        starters.iter().map(|slug| format!("--cfg=starter=\"{slug}\"")).collect::<Vec<_>>();
    let mut exercises = vec!["exercises/src/lib.rs", "--check-cfg=cfg(starter, values(any()))"];
    exercises.extend(chosen.iter().map(String::as_str).chain(library));
    let adapters = [&["exercises/adapters/src/lib.rs"][..], &library].concat();
    // Whole in itself: it needs no file of the system, and so can't read one.
    let whole = "-Ctarget-feature=+crt-static";
    let program = ["exercises/submission/src/main.rs", "--crate-type=bin", whole];
    for (name, own, named) in [
        (EXERCISES, &exercises[..], &parts.of_exercises),
        ("adapters", &adapters, &parts.of_adapters),
        (SUBMISSION, &program, &parts.of_submission),
    ] {
        if let Some(error) = crate_of(cage, parts, stage, name, own, named)? {
            return Ok(Err(error));
        }
    }
    let moved = std::fs::rename(stage.path().join("out").join(SUBMISSION), stage.program());
    moved
        .and_then(|()| cage::share(&stage.program()))
        .map_err(Error::file(stage.program(), "can't be put there"))?;
    Ok(Ok(()))
}

/// Compiles a crate; its first error, if there is one.
fn crate_of(
    cage: &Cage,
    parts: &Parts,
    stage: &Stage,
    name: &str,
    own: &[&str],
    named: &BTreeMap<String, String>,
) -> std::result::Result<Option<CompileError>, NoProgram> {
    let mut arguments = vec![format!("--crate-name={name}")];
    arguments.extend(own.iter().map(|word| word.to_string()));
    arguments.extend(named_crates(parts, stage.path(), named));
    arguments.push(format!("--out-dir={}", stage.path().join("out").display()));
    let Output { success, words, status, by_limit } =
        compile(cage, parts, stage.path(), &arguments)?;
    if success {
        return Ok(None);
    }
    if let Some(line) = words.lines().find(|line| is_of_the_disk(line)) {
        return Err(Error::Machine(line.to_string()).into());
    }
    let found = errors(&words);
    if let Some(words) = not_of_the_code(&found, &status, named) {
        // An error of the compiler in itself is none of its files and crates.
        let is_its_own = found.iter().all(|error| error.level.contains("internal compiler error"));
        return Err(match is_its_own {
            true => NoProgram::Unknown { words, by_limit },
            false => NoProgram::Machine(Error::Machine(words)),
        });
    }
    Ok(compile_error(found.into_iter().map(|error| (name != EXERCISES, error)).collect()))
}

/// The compiler's numbers for a crate that it has found and can't read, or in two versions.
const UNREADABLE: [&str; 4] = ["E0460", "E0461", "E0462", "E0786"];

/// Crates that come with the compiler, and whose names every file may use.
const WITH_THE_COMPILER: [&str; 5] = ["alloc", "core", "proc_macro", "std", "test"];

/// What it says of a constant that it has not computed to its end, since a signal came. What a constant says before it panics
/// stands behind other words.
const INTERRUPTED: &str = "compilation was interrupted";

/// Whether a line is what LLVM says of a file that it can't write. It is no message of the compiler's own, which is JSON.
fn is_of_the_disk(line: &str) -> bool {
    let words = ["No space left on device", "IO failure on output stream"];
    !line.starts_with('{') && words.iter().any(|said| line.contains(said))
}

/// What a compiler that failed says of itself and its files, if it is not of the code alone: an error of the code has a place.
/// A crate that is not found is the machine's fault if the compiler was given it (`named`), or brings it, or if another crate
/// needs it. Any other crate never existed, so the code is at fault.
pub fn not_of_the_code(
    errors: &[Message],
    status: &str,
    named: &BTreeMap<String, String>,
) -> Option<String> {
    let is_lost = |of: &str| {
        let name = of.split('`').nth(1).unwrap_or_default();
        let is_given = named.contains_key(name) || WITH_THE_COMPILER.contains(&name);
        is_given || of.contains("` which `")
    };
    // Code that says the same by `compile_error!` has no grade either, until it says something else.
    let is_no_file = |said: &str| {
        let name =
            said.strip_prefix("extern location for ").and_then(|rest| rest.split(' ').next());
        name.is_some_and(|name| named.contains_key(name))
    };
    let is_of_code = |error: &Message| {
        let code = error.code.as_ref().map_or("", |code| code.code.as_str());
        let is_of_crate = match code {
            "E0463" => is_lost(&error.message),
            "" => is_no_file(&error.message),
            code => UNREADABLE.contains(&code),
        };
        let is_interrupted = code == "E0080" && error.message.starts_with(INTERRUPTED);
        !error.spans.is_empty() && !is_of_crate && !is_interrupted
    };
    let words = format!("the compiler ended without an error in the code ({status})");
    match errors.iter().find(|error| !is_of_code(error)) {
        Some(error) => Some(format!("{words}: {}", error.message)),
        None => errors.is_empty().then_some(words),
    }
}

/// What rustc is given about other crates, and of what holds for all.
pub fn named_crates(parts: &Parts, stage: &Path, named: &BTreeMap<String, String>) -> Vec<String> {
    let out = stage.join("out");
    let mut arguments: Vec<String> = [
        "--edition=2024",
        "--error-format=json",
        "-Cdebuginfo=0",
        "-Cembed-bitcode=no",
        "-Funsafe_code",
        // An assertion of a debug build is none where it counts. Sums that overflow panic as they do for the learner.
        "-Cdebug-assertions=off",
        "-Coverflow-checks=on",
    ]
    .map(String::from)
    .into();
    for folder in [&parts.deps, &out] {
        arguments.extend(["-L".to_string(), format!("dependency={}", folder.display())]);
    }
    for (name, file) in named {
        let folder = if is_built_apart(name) { &out } else { &parts.deps };
        let path = folder.join(file);
        arguments.extend(["--extern".to_string(), format!("{name}={}", path.display())]);
    }
    arguments
}

/// Seconds on the clock, for each that a compiler may compute: the machine has other things to do.
const CLOCK: u64 = 4;

/// Runs rustc in the sandbox.
///
/// # Errors
/// It can't be started, was ended from outside, or waited for something that did not come.
pub fn compile(cage: &Cage, parts: &Parts, stage: &Path, arguments: &[String]) -> Result<Output> {
    let failed = |reason: String| Error::Machine(format!("the compiler in the sandbox: {reason}"));
    let mut command = cage.compile(parts, stage, arguments);
    let mut child =
        command.stderr(Stdio::piped()).spawn().map_err(|error| failed(error.to_string()))?;
    let said = child.stderr.take();
    let limit = std::time::Duration::from_secs(cage.limits.build_seconds.saturating_mul(CLOCK));
    let (words, status, _) =
        crate::limit::watched(&mut child, limit, move || read_some(said, SAID))
            .map_err(|error| failed(error.to_string()))?;
    if words.starts_with("bwrap:") || words.starts_with("sandbox-exec:") {
        return Err(failed(words));
    }
    let Some(status) = status else {
        return Err(failed(format!("it had not ended after {} seconds", limit.as_secs())));
    };
    if let Some(signal) = signal_of(status).filter(|signal| !OWN_SIGNALS.contains(signal)) {
        return Err(failed(format!("something ended it by signal {signal}")));
    }
    let by_limit = signal_of(status).is_some_and(|signal| LIMITS.contains(&signal));
    Ok(Output { success: status.success(), words, status: status.to_string(), by_limit })
}

/// The signals that a process sends to itself by what it does, or gets for its limits: an instruction that there is not, a trap, an abort,
/// a wrong address, its computing time, the length of a file. Any other comes from outside.
pub const OWN_SIGNALS: [i32; 6] = [4, 5, 6, 11, 24, 25];

/// Those of them that are for limits: on computing time, and on the length of a file.
const LIMITS: [i32; 2] = [24, 25];

/// The signal that ended a process. bubblewrap makes an exit code of its number; there are 64, so a code above 192 is the program's own.
pub fn signal_of(status: ExitStatus) -> Option<i32> {
    #[cfg(unix)]
    let by_signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let by_signal: Option<i32> = None;
    by_signal.or(status.code().filter(|code| (129..=192).contains(code)).map(|code| code - 128))
}

/// The beginning of what comes. The rest is read, and not kept.
pub fn read_some(reader: Option<impl io::Read>, most: u64) -> String {
    let Some(mut reader) = reader else { return String::new() };
    let mut bytes = Vec::new();
    let _ = io::Read::read_to_end(&mut io::Read::take(&mut reader, most), &mut bytes);
    let _ = io::copy(&mut reader, &mut io::sink());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn what_code_can_bring_about_is_its_fault_and_what_a_machine_does_is_not() {
        let named = BTreeMap::from([("contract".to_string(), "libcontract.rlib".to_string())]);
        let of = |said: &str, code: Option<&str>| {
            let code = code.map(|code| serde_json::json!({ "code": code }));
            let message = serde_json::json!({
                "reason": "compiler-message", "level": "error", "message": said, "rendered": said,
                "code": code, "children": [],
                "spans": [{ "file_name": "exercises/src/norm.rs", "line_start": 1, "line_end": 1,
                    "column_start": 1, "column_end": 2, "is_primary": true, "text": [] }],
            });
            let message = serde_json::from_value(message).unwrap();
            not_of_the_code(&[message], "exit status: 1", &named).is_none()
        };
        let of_crate = |said| of(said, Some("E0463"));
        assert!(of_crate("can't find crate for `quadrivium`"));
        assert!(of_crate("can't find crate for `half`"));
        assert!(!of_crate("can't find crate for `contract`"));
        assert!(!of_crate("can't find crate for `std`"));
        assert!(!of_crate("can't find crate for `half` which `dfdx` depends on"));
        // The words of a file that is not there, by the compiler and by the code.
        assert!(!of("extern location for contract does not exist: libcontract.rlib", None));
        assert!(of("extern location for anything does not exist: anything.rlib", None));
        assert!(of("extern location for contract does not exist: a trait", Some("E0277")));
        assert!(!of("compilation was interrupted", Some("E0080")));
        assert!(of("evaluation panicked", Some("E0080")));
    }

    #[test]
    fn an_exit_code_that_no_signal_has_is_the_programs_own() {
        let ended = |code: i32| signal_of(ExitStatus::from_raw(code << 8));
        assert_eq!([ended(128 + 9), ended(128 + 64)], [Some(9), Some(64)]);
        assert_eq!([ended(0), ended(101), ended(128), ended(193), ended(255)], [None; 5]);
        assert_eq!(signal_of(ExitStatus::from_raw(9)), Some(9));
    }
}
