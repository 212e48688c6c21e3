//! JupyterLab on this machine's own address.

use super::home::Home;
use super::program::last_lines;
use crate::book::read;
use crate::error::{Error, Result};
use learner::progress::with_spinner;
use learner::terminal::Terminal;
use serde::Deserialize;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// JupyterLab starts in seconds, unless the machine is very busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where JupyterLab's own words go.
const LOG: &str = "target/lab/jupyter.log";

/// The kernel writes compile errors in pale grey and mint, and JupyterLab shows them on pink.
const READABLE: &str = "\
.jp-RenderedText span[style='color:rgb(178,178,178)'],
.jp-RenderedText span[style='color:rgb(148,148,148)'] { color: #444 !important; }
.jp-RenderedText span[style='color:rgb(135,215,175)'] { color: #00603a !important; }
";

/// What a running Jupyter writes down about itself.
#[derive(Deserialize)]
struct Running {
    url: String,
    port: u16,
    token: String,
}

/// Starts JupyterLab, says its address, opens it in a browser if that is wanted, and waits
/// until it ends: Ctrl-C ends it.
///
/// # Errors
/// JupyterLab does not start.
pub fn run(
    home: &Home,
    notebooks: &[PathBuf],
    port: Option<u16>,
    open: bool,
    terminal: &mut Terminal,
) -> Result<()> {
    configure(home)?;
    let mut jupyter = start(home, port)?;
    let running = with_spinner(|progress| {
        progress("starting JupyterLab");
        wait(home, &mut jupyter)
    })?;
    end_with_this(home, &running)?;
    let first = notebooks.first().map(|notebook| notebook.strip_prefix(home.root()));
    let page = match first {
        Some(Ok(notebook)) => format!("/tree/{}", notebook.display()),
        _ => String::new(),
    };
    let url = format!("{}lab{page}?token={}", running.url, running.token);
    terminal.line("")?;
    terminal.line(&format!("The notebooks are at {url}"))?;
    if let Some(book) = serve_book(home) {
        terminal.line(&format!("The book is at {book}"))?;
    }
    terminal.line("Only this machine reaches them. Ctrl-C ends.")?;
    if open && opener::open_browser(&url).is_err() {
        terminal.line("No browser could be opened; open the address yourself.")?;
    }
    jupyter.wait()?;
    Ok(())
}

/// When this program is told to end, it has JupyterLab end, which then ends its kernels. A signal
/// alone would leave them running, each with its memory.
fn end_with_this(home: &Home, running: &Running) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut stop = home.command("jupyter-server");
    stop.arg("stop").arg(running.port.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
    std::thread::spawn(move || {
        runtime.block_on(told_to_end());
        let _ = stop.status();
    });
    Ok(())
}

#[cfg(unix)]
async fn told_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else {
        // Then nothing can tell it, and JupyterLab must not end at once.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}

#[cfg(not(unix))]
async fn told_to_end() {
    let _ = tokio::signal::ctrl_c().await;
}

/// Serves the book beside the notebooks. If it can't be built, the notebooks are there all the same:
/// `cargo course read` says why.
fn serve_book(home: &Home) -> Option<String> {
    let (server, site) = read::ready(home.root()).ok()?;
    let url = server.url();
    std::thread::spawn(move || server.serve(&site));
    Some(url)
}

/// Settings that make JupyterLab load nothing from elsewhere, and the signatures with which it shows
/// the figures that the notebooks hold before they are run.
fn configure(home: &Home) -> Result<()> {
    let folder = home.lab().join("jupyter/config/labconfig");
    std::fs::create_dir_all(&folder)?;
    std::fs::create_dir_all(home.runtime())?;
    let settings = serde_json::json!({
        "disabledExtensions": { "@jupyterlab/apputils-extension:announcements": true },
    });
    std::fs::write(folder.join("page_config.json"), format!("{settings:#}\n"))?;
    // A link to a chapter shows the page, not its source.
    let settings = serde_json::json!({
        "@jupyterlab/docmanager-extension:plugin": {
            "defaultViewers": { "markdown": "Markdown Preview" },
        },
    });
    std::fs::write(folder.join("default_setting_overrides.json"), format!("{settings:#}\n"))?;
    let folder = home.lab().join("jupyter/config/custom");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("custom.css"), READABLE)?;
    // Without a signature a notebook is shown without its figures. All of the course get one, whichever is
    // opened first, and no foreign one.
    let _ = home
        .command("jupyter-trust")
        .args(home.select(None)?)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    Ok(())
}

fn start(home: &Home, port: Option<u16>) -> Result<Child> {
    let log = File::create(home.root().join(LOG))?;
    let mut jupyter = home.command("python");
    jupyter.args(["-m", "jupyterlab", "--no-browser", "--ServerApp.ip=127.0.0.1"]);
    // The notebooks link to the chapters, which are in another folder of the project.
    jupyter.arg(format!("--ServerApp.root_dir={}", home.root().display()));
    jupyter.args(["--ServerApp.answer_yes=True", "--KernelSpecManager.ensure_native_kernel=False"]);
    jupyter.arg("--custom-css");
    // In a container everybody is root, and only this machine reaches the page.
    jupyter.arg("--allow-root");
    if let Some(port) = port {
        jupyter.arg(format!("--ServerApp.port={port}")).arg("--ServerApp.port_retries=0");
    }
    jupyter.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    // In a group of its own, Ctrl-C does not reach it: it is ended in order.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut jupyter, 0);
    let failed = |error: std::io::Error| failed(error.to_string());
    jupyter.spawn().map_err(failed)
}

/// Waits until it says where it is.
fn wait(home: &Home, jupyter: &mut Child) -> Result<Running> {
    let file = home.runtime().join(format!("jpserver-{}.json", jupyter.id()));
    let start = Instant::now();
    loop {
        if let Some(running) = running(&file) {
            return Ok(running);
        }
        if jupyter.try_wait()?.is_some() || start.elapsed() > PATIENCE {
            let _ = jupyter.kill();
            let log = std::fs::read_to_string(home.root().join(LOG)).unwrap_or_default();
            return Err(failed(last_lines(&log, 8)));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn running(file: &Path) -> Option<Running> {
    serde_json::from_str(&std::fs::read_to_string(file).ok()?).ok()
}

fn failed(reason: String) -> Error {
    Error::Program { what: "JupyterLab does not start", reason }
}
