//! JupyterLab on an address of this machine.

use super::home::Home;
use super::program::last_lines;
use crate::book::{read, serve};
use crate::error::{Error, Result};
use learner::progress::with_spinner;
use learner::terminal::Terminal;
use serde::Deserialize;
use std::fs::File;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

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

/// The program `jupyter trust`.
const TRUST: &str =
    "from nbformat.sign import TrustNotebookApp; TrustNotebookApp.launch_instance()";

/// What a running Jupyter writes down about itself.
#[derive(Deserialize)]
struct Running {
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
    at: (IpAddr, Option<u16>),
    open: bool,
    terminal: &mut Terminal,
) -> Result<()> {
    configure(home)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut told = Box::pin(told_to_end());
    let started = with_spinner(|progress| {
        progress("starting JupyterLab");
        runtime.block_on(async {
            let mut jupyter = start(home, at)?;
            tokio::select! {
                running = wait(home, at.0, &mut jupyter) => running.map(|running| Some((jupyter, running))),
                () = &mut told => Ok(None),
            }
        })
    })?;
    let Some((mut jupyter, running)) = started else { return Ok(()) };
    tell(home, notebooks, (at.0, &running), open, terminal)?;
    runtime.block_on(async {
        tokio::select! {
            ended = jupyter.wait() => Ok(ended.map(drop)?),
            () = told => end(home, &running, &mut jupyter).await,
        }
    })
}

/// Says where everything is.
fn tell(
    home: &Home,
    notebooks: &[PathBuf],
    (ip, running): (IpAddr, &Running),
    open: bool,
    terminal: &mut Terminal,
) -> Result<()> {
    let first = notebooks.first().map(|notebook| notebook.strip_prefix(home.root()));
    let page = match first {
        Some(Ok(notebook)) => format!("/tree/{}", notebook.display()),
        _ => String::new(),
    };
    let Running { port, token } = running;
    let url = format!("{}lab{page}?token={token}", serve::url(SocketAddr::new(ip, *port)));
    terminal.line("")?;
    terminal.line(&format!("The notebooks are at {url}"))?;
    if let Some(book) = serve_book(home, ip) {
        terminal.line(&format!("The book is at {book}"))?;
    }
    terminal.line(&match ip.is_loopback() {
        true => "Only this machine reaches them. Ctrl-C ends.".to_string(),
        false => format!(
            "Everybody who can reach this machine can read the book. With the token, which is sent without encryption, they can also \
             run any program as you, at port {port}. Ctrl-C ends."
        ),
    })?;
    if open && opener::open_browser(&url).is_err() {
        terminal.line("No browser could be opened; open the address yourself.")?;
    }
    Ok(())
}

/// Has JupyterLab end, which then ends its kernels. A signal alone would leave them running, each with its memory.
async fn end(home: &Home, running: &Running, jupyter: &mut Child) -> Result<()> {
    let mut stop = Command::from(home.python());
    stop.args(["-m", "jupyter_server", "stop"]).arg(running.port.to_string());
    stop.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    tokio::select! {
        ended = jupyter.wait() => return Ok(ended.map(drop)?),
        // A second Ctrl-C ends the program that stops it, too.
        stopped = stop.status() => if !stopped.is_ok_and(|status| status.success()) {
            jupyter.kill().await?;
        }
    }
    jupyter.wait().await?;
    Ok(())
}

#[cfg(unix)]
async fn told_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else {
        // Then nothing can report it, and JupyterLab must not end at once.
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
fn serve_book(home: &Home, ip: IpAddr) -> Option<String> {
    let (server, site) = read::ready(home.root(), Some(&ip.to_string())).ok()?;
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
    // Without a signature a notebook is shown without its figures. All of the course get one, no matter which is
    // opened first, and no foreign one.
    let _ = home
        .python()
        .args(["-c", TRUST])
        .args(home.select(None)?)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    Ok(())
}

fn start(home: &Home, (ip, port): (IpAddr, Option<u16>)) -> Result<Child> {
    let log = File::create(home.root().join(LOG))?;
    let mut jupyter = Command::from(home.python());
    jupyter.args(["-m", "jupyterlab", "--no-browser"]).arg(format!("--ServerApp.ip={ip}"));
    // The notebooks link to the chapters, which are in another folder of the project.
    jupyter.arg(format!("--ServerApp.root_dir={}", home.root().display()));
    jupyter.args(["--ServerApp.answer_yes=True", "--KernelSpecManager.ensure_native_kernel=False"]);
    jupyter.arg("--custom-css");
    // In a container every user is root, and no one reaches the page without its token.
    jupyter.arg("--allow-root");
    if let Some(port) = port {
        jupyter.arg(format!("--ServerApp.port={port}")).arg("--ServerApp.port_retries=0");
    }
    jupyter.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    // In its own group, Ctrl-C does not reach it: it is ended in order.
    #[cfg(unix)]
    jupyter.process_group(0);
    jupyter.kill_on_drop(true);
    jupyter.spawn().map_err(|error| failed(error.to_string()))
}

/// Waits until it says where it is.
async fn wait(home: &Home, ip: IpAddr, jupyter: &mut Child) -> Result<Running> {
    let id = jupyter.id().unwrap_or_default();
    let file = home.runtime().join(format!("jpserver-{id}.json"));
    // One that was killed has left its own, and in a container numbers come again.
    let _ = std::fs::remove_file(&file);
    let start = Instant::now();
    loop {
        // The file is there a moment before the server listens.
        if let Some(running) = running(&file).filter(|running| listens(ip, running.port)) {
            return Ok(running);
        }
        if jupyter.try_wait()?.is_some() || start.elapsed() > PATIENCE {
            let _ = jupyter.kill().await;
            let log = std::fs::read_to_string(home.root().join(LOG)).unwrap_or_default();
            return Err(failed(last_lines(&log, 8)));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn listens(ip: IpAddr, port: u16) -> bool {
    let here = if ip.is_ipv4() { [127, 0, 0, 1].into() } else { IpAddr::from(Ipv6Addr::LOCALHOST) };
    TcpStream::connect((if ip.is_unspecified() { here } else { ip }, port)).is_ok()
}

fn running(file: &Path) -> Option<Running> {
    serde_json::from_str(&std::fs::read_to_string(file).ok()?).ok()
}

fn failed(reason: String) -> Error {
    Error::Program { what: "JupyterLab does not start", reason }
}
