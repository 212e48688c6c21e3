//! Tasks about types: programs that must compile, and programs that must not.
//!
//! They are in the component's folder: `norm/types/good.rs`, `norm/types/bad-*.rs`. Each is compiled as a library
//! against the learner's crate, with code made for it, because a const assertion runs only then.

use contract::breach::{Breach, Fault};
use contract::grade::Grade;
use contract::task::Task;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A `rustc` at work on one program.
struct Compilation {
    program: PathBuf,
    process: std::process::Child,
}

/// Grades a task about types.
pub fn judge(task: &Task) -> Grade {
    match compile_all(task) {
        Ok(results) => grade(task, results),
        Err(error) => Grade::failed(
            task,
            "types/compiler",
            "The programs of the task are compiled against your crate.",
            format!("rustc can't be run: {error}"),
        ),
    }
}

fn grade(task: &Task, results: Vec<(PathBuf, Output)>) -> Grade {
    let good = results.iter().any(|(program, _)| stem(program) == "good");
    let bad = results.iter().any(|(program, _)| stem(program) != "good");
    if !good || !bad {
        return Grade::failed(
            task,
            "types/programs",
            "A task about types has a program that fits and one that does not. That one is missing is a mistake of \
             the course.",
            format!(
                "write exercises/{0}/types/good.rs and exercises/{0}/types/bad-....rs",
                task.component
            ),
        );
    }
    let mut grade = Grade::new(task);
    for (program, output) in results {
        let name = stem(&program);
        let source = std::fs::read_to_string(&program).unwrap_or_default();
        let said = String::from_utf8_lossy(&output.stderr);
        let compiled = output.status.success();
        let (rule, sentence, fault) = if name == "good" {
            let what = format!("it does not compile:\n{}", first_error(&said));
            ("types/good-compiles", "What fits still compiles.", (!compiled).then_some(what))
        } else {
            // Wrong for the right reason: the sizes, and not a name that is missing.
            let reason = said.contains("E0080") || said.contains("E0308") || said.contains("E0277");
            let what = if compiled {
                Some("it compiles".to_string())
            } else {
                (!reason).then(|| format!("it fails for another reason:\n{}", first_error(&said)))
            };
            ("types/bad-does-not-compile", "What does not fit does not compile.", what)
        };
        match fault {
            Some(what) => {
                let breach = Breach::new(&name, Fault::Broken { what });
                grade.fail(rule, sentence, breach.on(body(&source)));
            }
            None => grade.held.push(name),
        }
    }
    grade.begun = grade.passed || !still_to_do(task);
    grade
}

/// A program's name, such as `bad-remainder`.
fn stem(program: &Path) -> String {
    program.file_stem().unwrap_or_default().to_string_lossy().to_string()
}

/// Whether the line that the starter has in the task's place is still there.
fn still_to_do(task: &Task) -> bool {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(task.file());
    let source = std::fs::read_to_string(file).unwrap_or_default();
    source.contains(&format!("// to do: task {}", task.name))
}

/// A program without its comments and blank lines.
fn body(source: &str) -> String {
    let lines = source.lines().filter(|line| !line.starts_with("//") && !line.trim().is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// The first error in what the compiler said.
fn first_error(said: &str) -> String {
    let start = said.find("error").unwrap_or(0);
    said[start..].split("\n\n").next().unwrap_or_default().to_string()
}

/// Compiles the programs of a task, all at once.
fn compile_all(task: &Task) -> io::Result<Vec<(PathBuf, Output)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(task.component).join("types");
    // A folder that is not there has no programs, and that is told.
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut programs: Vec<PathBuf> =
        entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    programs.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    programs.sort();
    let out = tempfile::tempdir()?;
    let started = programs.into_iter().enumerate().map(|(i, program)| {
        // A name of its own for each, so that compilers at work together do not mix their files.
        let process = compiler(&program, &format!("program_{i}"), out.path())?.spawn()?;
        Ok(Compilation { program, process })
    });
    let started: Vec<Compilation> = started.collect::<io::Result<_>>()?;
    let ended = started
        .into_iter()
        .map(|Compilation { program, process }| Ok((program, process.wait_with_output()?)));
    ended.collect()
}

fn compiler(program: &Path, name: &str, out: &Path) -> io::Result<Command> {
    // The autograder stands beside the crates that it was built from.
    let deps = std::env::current_exe()?;
    let deps = deps.parent().ok_or_else(|| io::Error::other("no folder of built crates"))?;
    let mut dependency = std::ffi::OsString::from("dependency=");
    dependency.push(deps);
    let mut learner = std::ffi::OsString::from("exercises=");
    learner.push(newest(deps, "libexercises-")?);
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc
        .args(["--edition=2024", "--crate-type=lib", "--emit=obj", "--crate-name", name])
        .args(["--cap-lints=allow", "--color=never"])
        .arg("--out-dir")
        // Each its own: they are compiled at once, and all have one name.
        .arg(out.join(program.file_stem().unwrap_or_default()))
        .arg("-L")
        .arg(dependency)
        .arg("--extern")
        .arg(learner)
        .arg(program)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    Ok(rustc)
}

/// The crate that was built last: it is the one that this program was built with.
fn newest(deps: &Path, name: &str) -> io::Result<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(deps)? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        if file.starts_with(name) && file.ends_with(".rlib") {
            found.push((path.metadata()?.modified()?, path));
        }
    }
    let newest = found.into_iter().max().map(|(_, path)| path);
    newest.ok_or_else(|| io::Error::other(format!("no {name}*.rlib is built")))
}
