//! The Rust kernel for Jupyter, at one version, and the sources that it reads.

use super::home::Home;
use super::program::run_program;
use directories::ProjectDirs;
use learner::progress::Progress;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version. The notebooks hold its words, and older ones do not build with this compiler.
pub const VERSION: &str = "0.22.0";

const PACKAGE: &str = "evcxr_jupyter";

/// The kernel, if this version is installed: by a copy of the course, or by `cargo install` for the user.
pub fn find(home: &Home) -> Option<PathBuf> {
    let users = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    kept(home).into_iter().chain(users).find_map(|root| installed_in(&root))
}

/// Where a copy of the course installs it: in the user's cache, where the next copy finds it; in this copy, if
/// there is no such folder or it can't be written.
fn kept(home: &Home) -> Vec<PathBuf> {
    // A home may be shared by unlike machines.
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let name = format!("{PACKAGE}-{VERSION}-{os}-{arch}");
    let cache = ProjectDirs::from("", "", "quadrivium").map(|of| of.cache_dir().join(name));
    cache.into_iter().chain([home.lab()]).collect()
}

/// cargo notes what it installed, and where: the kernel itself does not know its version.
fn installed_in(root: &Path) -> Option<PathBuf> {
    let notes = std::fs::read_to_string(root.join(".crates.toml")).ok()?;
    let program = root.join("bin").join(format!("{PACKAGE}{}", std::env::consts::EXE_SUFFIX));
    (notes.contains(&format!("\"{PACKAGE} {VERSION} ")) && program.is_file()).then_some(program)
}

/// Installs the kernel, unless it is there. Says where it is, or what to do.
///
/// # Errors
/// One line that says what to do.
pub fn ensure(home: &Home, progress: Progress<'_>) -> Result<String, String> {
    if find(home).is_none() {
        install(home, progress)?;
    }
    match find(home) {
        Some(program) if program.starts_with(home.lab()) => {
            Ok(format!("{VERSION} in target/lab/bin"))
        }
        Some(program) if kept(home).iter().any(|root| program.starts_with(root)) => {
            Ok(format!("{VERSION} in the user's cache"))
        }
        Some(_) => Ok(format!("{VERSION}, the user's own")),
        None => Err(format!("cargo installed no {PACKAGE} {VERSION}: run this command again")),
    }
}

fn install(home: &Home, progress: Progress<'_>) -> Result<(), String> {
    let takes = "perhaps six minutes on two cores, once for this machine";
    progress(&format!("building the Rust kernel ({takes})"));
    let (root, lock) = kept(home)
        .into_iter()
        .find_map(|root| locked(&root, progress).ok().map(|lock| (root, lock)))
        .ok_or("no folder for the Rust kernel can be written: make room in target/lab")?;
    // Another copy of the course may have installed it while this one waited.
    if installed_in(&root).is_some() {
        return Ok(());
    }
    // Kept until it is done: if this is interrupted, it goes on where it was.
    let build = root.join("build");
    let mut cargo = Command::new("cargo");
    cargo.args(["install", PACKAGE, "--locked", "--version", &format!("={VERSION}"), "--root"]);
    cargo.arg(&root).arg("--target-dir").arg(&build);
    cargo.current_dir(home.root());
    // Half of the time that full optimization takes; a kernel then starts two seconds later, and cells take as long.
    cargo.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
    cargo.env("CARGO_TERM_PROGRESS_WHEN", "always").env("CARGO_TERM_PROGRESS_WIDTH", "80");
    run_program(&mut cargo, |said| {
        if let Some(done) = crates_done(said) {
            progress(&format!("building the Rust kernel: {done} ({takes})"));
        }
    })
    .map_err(|said| {
        format!("`cargo install {PACKAGE}` failed: fix what it says, then run this again\n{said}")
    })?;
    let _ = std::fs::remove_dir_all(build); // a gigabyte that is of no more use
    drop(lock);
    Ok(())
}

/// The folder for this process alone, until the file is closed.
fn locked(root: &Path, progress: Progress<'_>) -> std::io::Result<File> {
    std::fs::create_dir_all(root)?;
    let lock = File::create(root.join("kernel.lock"))?;
    if lock.try_lock().is_err() {
        progress("another copy of the course builds the Rust kernel; this one waits for it");
        lock.lock()?;
    }
    Ok(lock)
}

/// `12 of 310 crates`, from cargo's progress bar: `Building [==>  ] 12/310: syn, libc`.
fn crates_done(bar: &str) -> Option<String> {
    let (_, counts) = bar.trim_start().strip_prefix("Building [")?.split_once("] ")?;
    let (done, all) = counts.split(':').next()?.split_once('/')?;
    let (done, all): (u32, u32) = (done.parse().ok()?, all.parse().ok()?);
    Some(format!("{done} of {all} crates"))
}

/// Installs the sources of Rust's own library, unless they are there: the kernel finds the types of
/// variables with them. Says that they are there, or what to do.
///
/// # Errors
/// One line that says what to do.
pub fn ensure_sources(home: &Home, progress: Progress<'_>) -> Result<String, String> {
    if has_sources(home) {
        return Ok("in the toolchain".into());
    }
    progress("adding the sources of Rust's library to the toolchain");
    let mut rustup = Command::new("rustup");
    rustup.args(["component", "add", "rust-src"]).current_dir(home.root());
    run_program(&mut rustup, |_| {}).map_err(|said| {
        format!(
            "the sources of Rust's library are missing: run `rustup component add rust-src`, or \
             install your system's package rust-src\n{said}"
        )
    })?;
    match has_sources(home) {
        true => Ok("in the toolchain".into()),
        false => Err("rustup added rust-src to another toolchain: unset RUSTUP_TOOLCHAIN".into()),
    }
}

fn has_sources(home: &Home) -> bool {
    let rustc =
        Command::new("rustc").args(["--print", "sysroot"]).current_dir(home.root()).output();
    let sysroot = rustc.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
    sysroot.is_ok_and(|root| Path::new(&root).join("lib/rustlib/src/rust/library").is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargos_progress_is_read() {
        let bar = "    Building [=====>              ] 97/310: syn, regex-automata(build)";
        assert_eq!(crates_done(bar).unwrap(), "97 of 310 crates");
        assert_eq!(crates_done("   Compiling syn v2.0.1"), None);
    }

    #[test]
    fn another_version_does_not_count() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("bin")).unwrap();
        let program =
            root.path().join("bin").join(format!("{PACKAGE}{}", std::env::consts::EXE_SUFFIX));
        std::fs::write(&program, "").unwrap();
        let note = |version: &str| {
            let line = format!("[v1]\n\"{PACKAGE} {version} (registry+x)\" = [\"{PACKAGE}\"]\n");
            std::fs::write(root.path().join(".crates.toml"), line).unwrap();
        };
        assert_eq!(installed_in(root.path()), None, "without a note");
        note("0.15.0");
        assert_eq!(installed_in(root.path()), None, "with another version's note");
        note(VERSION);
        assert_eq!(installed_in(root.path()), Some(program));
    }
}
