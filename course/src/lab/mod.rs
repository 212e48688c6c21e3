//! `cargo course lab`: the notebooks, in Jupyter.
//!
//! Everything is installed under `target/lab`, for this project only: a Python environment with
//! JupyterLab ([`python`]), the Rust kernel evcxr ([`evcxr`]), and a kernel of the project's own name
//! that starts it ([`kernel`]). Then the page is opened ([`serve`]), or the notebooks are run without
//! one and compared with what they hold ([`check`]).

pub mod check;
pub mod clean;
pub mod compare;
pub mod evcxr;
pub mod execute;
pub mod home;
pub mod kernel;
pub mod notebook;
pub mod python;
pub mod serve;
pub mod svg;

use crate::book::serve::Server;
use crate::error::{Error, Result};
use crate::exercise::Workspace;
use crate::exercise::check::with_spinner;
use crate::exercise::compile::Progress;
use crate::terminal::Terminal;
use home::Home;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// What to do with the notebooks.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// One notebook, such as `norm`, `1-norm` or a file.
    pub notebook: Option<String>,
    /// Run them and compare.
    pub check: bool,
    /// Run them and keep the outputs.
    pub update: bool,
    /// Open no browser.
    pub no_browser: bool,
    /// The port of the page.
    pub port: Option<u16>,
}

/// Does it. The page is served until Ctrl-C. `false` if a notebook does not hold what it gives.
///
/// # Errors
/// What is missing and can't be installed; a notebook that is not there; a port that is taken.
pub fn run(options: &Options) -> Result<bool> {
    let home = Home::new(&Workspace::find()?);
    let mut terminal = Terminal::stdout();
    let notebooks = home.select(options.notebook.as_deref())?;
    if let Some(port) = options.port {
        Server::bind(Some(port))?; // said now, and not after minutes of building
    }
    prepare(&home, &mut terminal)?;
    if options.check || options.update {
        return check::run(&home, &notebooks, options.update, &mut terminal);
    }
    serve::run(&home, options, &notebooks, &mut terminal)?;
    Ok(true)
}

/// Installs what is missing, and says what is there.
fn prepare(home: &Home, terminal: &mut Terminal) -> Result<()> {
    type Step = fn(&Home, Progress<'_>) -> std::result::Result<String, String>;
    let steps: [(&str, Step); 3] =
        [("Python", python::ensure), ("rust-src", evcxr::ensure_sources), ("evcxr", evcxr::ensure)];
    // Two commands that install into one folder would break each other.
    std::fs::create_dir_all(home.lab())?;
    let lock = File::create(home.lab().join("lock"))?;
    if lock.try_lock().is_err() {
        terminal.line("Another `cargo course lab` is installing. This one waits for it.")?;
        lock.lock()?;
    }
    let mut missing = Vec::new();
    for (name, ensure) in steps {
        match aloud(|progress| ensure(home, progress)) {
            Ok(there) => terminal.line(&format!("{name:<10}{there}"))?,
            Err(what_to_do) => missing.push(format!("{name:<10}{what_to_do}")),
        }
    }
    if !missing.is_empty() {
        return Err(Error::Missing(missing));
    }
    let evcxr = evcxr::find(home).ok_or_else(|| Error::Missing(vec!["evcxr".into()]))?;
    kernel::register(home, &evcxr).map_err(|error| Error::Program {
        what: "the kernel can't be registered",
        reason: error.to_string(),
    })?;
    aloud(|progress| kernel::warm(home, progress))
}

/// Does something with a progress line. Where no terminal shows it, its first words are printed, so
/// that nobody waits for minutes without knowing for what.
fn aloud<T>(work: impl FnOnce(Progress<'_>) -> T) -> T {
    let silent = AtomicBool::new(!std::io::stderr().is_terminal());
    with_spinner(|progress| {
        work(&|words| {
            if silent.swap(false, Ordering::Relaxed) {
                let _ = writeln!(std::io::stderr(), "{words}");
            }
            progress(words);
        })
    })
}

/// Runs a program to its end. What it says on standard error goes to `heard`, piece by piece; the end
/// of it comes back if the program fails.
fn run_program(
    command: &mut Command,
    mut heard: impl FnMut(&str),
) -> std::result::Result<(), String> {
    use std::io::Read;
    use std::process::Stdio;
    let name = command.get_program().to_string_lossy().into_owned();
    let cannot = |error: std::io::Error| format!("`{name}` can't be run: {error}");
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(cannot)?;
    let mut said = String::new();
    let mut piece = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        // A progress bar ends its pieces with a carriage return, not with a line feed.
        for byte in std::io::BufReader::new(stderr).bytes().map_while(std::io::Result::ok) {
            if byte != b'\n' && byte != b'\r' {
                piece.push(byte);
                continue;
            }
            let text = console::strip_ansi_codes(&String::from_utf8_lossy(&piece)).into_owned();
            heard(&text);
            if byte == b'\n' {
                said.push_str(&text);
                said.push('\n');
            }
            piece.clear();
        }
    }
    match child.wait().map_err(cannot)?.success() {
        true => Ok(()),
        false => Err(last_lines(&said, 12)),
    }
}

/// The end of a text.
fn last_lines(text: &str, limit: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(limit)..].join("\n")
}
