//! `cargo course lab`: the notebooks, in Jupyter.
//!
//! A Python environment with JupyterLab ([`python`]) is installed under `target/lab`, for this project only,
//! and the Rust kernel evcxr ([`evcxr`]) in the user's cache folder. A kernel of the project's own name starts
//! it ([`kernel`]). Then the page is opened ([`serve`]), or the notebooks are run without
//! one and compared with what they hold ([`check`]).

pub mod check;
pub mod clean;
pub mod compare;
pub mod evcxr;
pub mod execute;
pub mod home;
pub mod kernel;
mod program;
pub mod python;
pub mod serve;
pub mod svg;

use crate::book::serve::Server;
use crate::error::{Error, Result};
use crate::notebook::Notebook;
use home::Home;
use learner::exercise::Workspace;
use learner::progress::Progress;
use learner::progress::with_spinner;
use learner::terminal::Terminal;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// What to do with the notebooks.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// One notebook, such as `norm`, `2-norm` or a file.
    pub notebook: Option<String>,
    /// Run them and compare.
    pub check: bool,
    /// Run them and keep the outputs.
    pub update: bool,
    /// Take the outputs out of them.
    pub clear: bool,
    /// Open no browser.
    pub no_browser: bool,
    /// The address of the page, or a name for it.
    pub host: Option<String>,
    /// The port of the page.
    pub port: Option<u16>,
}

/// Does it. The page is served until Ctrl-C. `false` if a notebook does not hold what it gives.
///
/// # Errors
/// What is missing and can't be installed; a notebook that is not there; a host that is not this machine; a port that is taken.
pub fn run(options: &Options) -> Result<bool> {
    let home = Home::new(&Workspace::find()?);
    let mut terminal = Terminal::stdout();
    let notebooks = home.select(options.notebook.as_deref())?;
    // Said now, and not after minutes of building.
    let ip = Server::bind(options.host.as_deref(), options.port.or(Some(0)))?.ip();
    prepare(&home, &mut terminal)?;
    if options.check || options.update {
        return check::run(&home, &notebooks, options.update, &mut terminal);
    }
    for file in notebooks.iter().filter(|_| options.clear) {
        let mut notebook = Notebook::read(file)?;
        notebook.clear();
        notebook.write(file)?;
    }
    serve::run(&home, &notebooks, (ip, options.port), !options.no_browser, &mut terminal)?;
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

/// Does something with a progress line. Where no terminal shows it, its first words are printed, so that no one waits
/// for minutes without knowing for what.
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
