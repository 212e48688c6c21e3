//! A Python environment of the project's own, with JupyterLab.

use super::home::Home;
use super::program::run_program;
use learner::progress::Progress;
use std::path::Path;
use std::process::{Command, Stdio};

/// The oldest Python that the pinned packages run on.
const OLDEST: (u32, u32) = (3, 11);

/// Makes the environment, unless it is there with these very packages. Says what is there, or what
/// to do.
///
/// # Errors
/// One line that says what to do.
pub fn ensure(home: &Home, progress: Progress<'_>) -> Result<String, String> {
    let file = "notebooks/requirements.txt";
    let requirements = std::fs::read_to_string(home.root().join(file))
        .map_err(|error| format!("{file} can't be read ({error}): restore it"))?;
    let jupyterlab = requirements.lines().find_map(|line| line.strip_prefix("jupyterlab=="));
    let there = format!("JupyterLab {} in target/lab/python", jupyterlab.unwrap_or_default());
    // Written last, so an installation that was interrupted is begun again.
    let stamp = home.environment().join("requirements.txt");
    let is_done = std::fs::read_to_string(&stamp).is_ok_and(|done| done == requirements);
    if is_done && works(home) {
        return Ok(there);
    }
    let python = find()?;
    progress("making a Python environment");
    let make = ["-m", "venv", "--clear"];
    run_program(Command::new(python).args(make).arg(home.environment()), |_| {}).map_err(
        |said| {
            format!(
                "`python3 -m venv` does not work; on Debian and Ubuntu, `apt install python3-venv` \
                 brings it\n{said}"
            )
        },
    )?;
    progress("installing JupyterLab (about a minute)");
    let install = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet"];
    let mut pip = home.python();
    pip.args(install).arg("--requirement").arg(home.root().join(file));
    run_program(&mut pip, |_| {})
        .map_err(|said| format!("pip can't install {file}: is there a network?\n{said}"))?;
    std::fs::write(&stamp, requirements)
        .map_err(|error| format!("target/lab can't be written ({error}): make room for it"))?;
    Ok(there)
}

/// Whether JupyterLab is found. It is not in a copy of the course from another machine, whose Python may be somewhere else here, and
/// not after this machine's Python was replaced.
fn works(home: &Home) -> bool {
    let mut python = home.python();
    python.args(["-c", "import jupyterlab"]);
    python.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}

/// A Python that is new enough.
fn find() -> Result<String, String> {
    let (major, minor) = OLDEST;
    let wanted = format!("install Python {major}.{minor} or newer, or name one in PYTHON");
    let names = match std::env::var("PYTHON") {
        Ok(name) => vec![name],
        Err(_) => ["python3", "python"].map(String::from).to_vec(),
    };
    let mut found = None;
    for name in &names {
        match version(Path::new(name)) {
            Some(version) if version >= OLDEST => return Ok(name.clone()),
            Some(version) => found = Some((name, version)),
            None => {}
        }
    }
    Err(match found {
        Some((name, (x, y))) => format!("`{name}` is Python {x}.{y}, which is too old: {wanted}"),
        None => format!("no Python answers to {}: {wanted}", names.join(" or ")),
    })
}

fn version(python: &Path) -> Option<(u32, u32)> {
    let print = "import sys; print(sys.version_info[0], sys.version_info[1])";
    let output = Command::new(python).args(["-c", print]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
