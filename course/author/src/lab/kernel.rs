//! The kernel of the notebooks: evcxr, in a folder that no other kernel builds in.
//!
//! evcxr builds a crate for each kernel, and two kernels that build in one folder break each other. A separate folder
//! for each new kernel would mean a minute of building at each start. There are therefore numbered folders,
//! `target/evcxr/0` and so on. A kernel takes the first that is free, by a lock that ends with it, and a folder that is
//! new begins with what the first one has built.

use super::execute;
use super::home::Home;
use crate::error::{Error, Result};
use learner::progress::Progress;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The name under which Jupyter knows it.
pub const NAME: &str = "quadrivium";
/// How kernels build what cells call. evcxr writes the profile of a cell's crate itself, and cargo adds what is in a
/// folder above. Without this, the model of a notebook would train for minutes. `notebook-support` alone is optimized,
/// with all generic code that it calls; the library is not, so that cells find its generic code made, and do not make
/// it again.
const PROFILE: &str = "\
[profile.dev.package]
notebook-support.opt-level = 2
matrixmultiply.opt-level = 3
";

/// The name that people see.
pub const SHOWN: &str = "Quadrivium (Rust)";

/// Writes down how Jupyter starts the kernel, in the project's Python environment only.
///
/// # Errors
/// The system does not let it.
pub fn register(home: &Home, evcxr: &Path) -> io::Result<()> {
    let program = std::env::current_exe()?.canonicalize().map_err(|_| {
        io::Error::other("the course was rebuilt meanwhile; start `cargo course lab` again")
    })?;
    let spec = serde_json::json!({
        "argv": [program, "kernel", evcxr.canonicalize()?, "{connection_file}"],
        "display_name": SHOWN,
        "language": "rust",
        // A message, not a signal: evcxr then ends the cell and goes on.
        "interrupt_mode": "message",
    });
    let kernels = home.environment().join("share/jupyter/kernels");
    // A Python kernel would only lead astray.
    let _ = fs::remove_dir_all(kernels.join("python3"));
    fs::create_dir_all(kernels.join(NAME))?;
    fs::write(kernels.join(NAME).join("kernel.json"), format!("{spec:#}\n"))
}

/// Builds what every kernel builds at first, so that no cell of a notebook waits for it.
///
/// # Errors
/// What the kernel says when it does not start.
pub fn warm(home: &Home, progress: Progress<'_>) -> Result<()> {
    // Cargo knows the course's own crates by the folder that they are in.
    let stamp = home.slots().join("warm");
    let here = home.root().display().to_string();
    if fs::read_to_string(&stamp).is_ok_and(|folder| folder == here) {
        return Ok(());
    }
    progress("building the crates that the notebooks use (one or two minutes, once)");
    execute::warm_up(home, |crate_name| {
        progress(&format!("building the crates that the notebooks use: {crate_name}"));
    })?;
    Ok(fs::write(stamp, here)?)
}

/// Runs the kernel until Jupyter ends it. Jupyter calls this in the notebooks' folder.
///
/// # Errors
/// No folder can be made, or evcxr can't be started.
pub fn run(evcxr: &Path, connection_file: &Path) -> Result<bool> {
    let failed = |error: io::Error| Error::Program {
        what: "the kernel can't be started",
        reason: error.to_string(),
    };
    let home = Home::of_notebooks(&std::env::current_dir()?);
    let slot = Slot::take(&home).map_err(failed)?;
    let mut command = Command::new(evcxr);
    command.arg("--control_file").arg(connection_file).env("EVCXR_TMPDIR", &slot.folder);
    // Cargo names its own folders there, and another build of a library that cells link may lie in them.
    command.env_remove("LD_LIBRARY_PATH").env_remove("DYLD_FALLBACK_LIBRARY_PATH");
    // What cells print does not come this way, but where the kernel found its settings does.
    command.stdout(Stdio::null());
    let status = command.status().map_err(failed)?;
    Ok(status.success())
}

/// A folder that only one kernel builds in.
struct Slot {
    folder: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

impl Slot {
    /// The first folder that is free.
    fn take(home: &Home) -> io::Result<Self> {
        fs::create_dir_all(home.slots())?;
        let slots = home.slots().canonicalize()?;
        set_profile(&slots.join(".cargo"))?;
        for number in 0.. {
            let folder = slots.join(number.to_string());
            fs::create_dir_all(&folder)?;
            let lock = File::create(folder.join("lock"))?;
            if lock.try_lock().is_err() {
                continue;
            }
            // The same versions as everything else here.
            fs::copy(home.root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
            let built = folder.join("target");
            if number > 0 && !built.is_dir() && copy_built(&slots.join("0/target"), &built).is_err()
            {
                // Then all of it is built here.
                let _ = fs::remove_dir_all(&built);
            }
            return Ok(Self { folder, _lock: lock });
        }
        unreachable!("there are more numbers than kernels")
    }
}

/// Writes the profile, unless it is there: another kernel may read it at this moment.
fn set_profile(folder: &Path) -> io::Result<()> {
    let file = folder.join("config.toml");
    if fs::read_to_string(&file).is_ok_and(|text| text == PROFILE) {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    fs::write(file, PROFILE)
}

/// Copies what the first folder has built, except for the crates of its cells. The times of the files
/// come along, because cargo builds again what looks changed. A library is linked: compilers and linkers replace it when
/// they build it again, and never write into it.
fn copy_built(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in from.read_dir()? {
        let entry = entry?;
        let name = entry.file_name();
        let text = name.to_string_lossy();
        if ["ctx", "libctx", "libcode_", "incremental"].iter().any(|cells| text.starts_with(cells))
        {
            continue;
        }
        let (source, copy) = (entry.path(), to.join(&name));
        let is_library = [".rlib", ".rmeta", ".so"].iter().any(|end| text.ends_with(end));
        if entry.file_type()?.is_dir() {
            copy_built(&source, &copy)?;
        } else if !(is_library && fs::hard_link(&source, &copy).is_ok()) {
            fs::copy(&source, &copy)?;
            File::options().write(true).open(&copy)?.set_modified(entry.metadata()?.modified()?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_home(folder: &Path) -> Home {
        fs::create_dir_all(folder.join("notebooks")).unwrap();
        fs::write(folder.join("Cargo.lock"), "locked").unwrap();
        Home::of_notebooks(&folder.join("notebooks"))
    }

    #[test]
    fn two_kernels_never_share_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let home = a_home(folder.path());
        let first = Slot::take(&home).unwrap();
        let second = Slot::take(&home).unwrap();
        assert!(first.folder.ends_with("0") && second.folder.ends_with("1"));
        drop(first);
        assert!(Slot::take(&home).unwrap().folder.ends_with("0"), "a free folder is used again");
    }

    #[test]
    fn a_new_folder_begins_with_what_is_built() {
        let folder = tempfile::tempdir().unwrap();
        let home = a_home(folder.path());
        let first = Slot::take(&home).unwrap();
        let deps = first.folder.join("target/debug/deps");
        fs::create_dir_all(&deps).unwrap();
        for name in ["libnotebook_support.rlib", "libctx.so"] {
            fs::write(deps.join(name), name).unwrap();
        }
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        File::options()
            .write(true)
            .open(deps.join("libnotebook_support.rlib"))
            .unwrap()
            .set_modified(old)
            .unwrap();
        let second = Slot::take(&home).unwrap();
        let copied = second.folder.join("target/debug/deps");
        let built = fs::metadata(copied.join("libnotebook_support.rlib")).unwrap();
        assert_eq!(built.modified().unwrap(), old, "cargo would build it again");
        assert!(!copied.join("libctx.so").exists(), "cells belong to their kernel");
        assert_eq!(fs::read_to_string(second.folder.join("Cargo.lock")).unwrap(), "locked");
    }
}
