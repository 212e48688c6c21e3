//! `cargo course read`: builds the book, and serves it or writes it.

use super::build::{Built, build};
use super::serve::Server;
use super::{publish, update};
use crate::error::{Error, Result};
use learner::exercise::Workspace;
use learner::progress::with_spinner;
use learner::terminal::Terminal;
use std::path::{Path, PathBuf};

/// Where the site is built when it is served.
pub const SITE: &str = "target/book";

/// What to do with the book.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Write the site to this folder, and serve nothing.
    pub build: Option<PathBuf>,
    /// Serve on this address, or the address of this name.
    pub host: Option<String>,
    /// Serve on this port.
    pub port: Option<u16>,
    /// Open it in the browser.
    pub open: bool,
    /// Make the figures, the listings and the numbers in the pages again.
    pub update: bool,
    /// Serve as long as standard input is open, and print only the address.
    pub beside: bool,
}

/// Does it. Serving ends with Ctrl-C.
///
/// # Errors
/// What is wrong in the sources of the book; a folder or a port that can't be used.
pub fn run(options: &Options) -> Result<bool> {
    let workspace = Workspace::find()?;
    let mut terminal = Terminal::stdout();
    if options.update {
        let pages = workspace.path("book/src");
        let (made, changed) = with_spinner(|progress| {
            progress("drawing the figures of the book");
            Ok::<_, Error>((update::make(&pages)?, update::put_numbers(&pages)?))
        })?;
        terminal.line(&format!("{} figures and listings are in book/src", made.len()))?;
        for page in changed {
            let page = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
            terminal.line(&format!("book/src/{page} has new numbers; read the difference"))?;
        }
        return Ok(true);
    }
    if let Some(folder) = &options.build {
        return write(&workspace, folder, &mut terminal);
    }
    if options.beside {
        return beside(&workspace, options.host.as_deref(), &mut terminal);
    }
    let server = Server::bind(options.host.as_deref(), options.port)?;
    let site = workspace.path(SITE);
    let Built { pages, .. } = spinning(|| renew(&workspace.path("")))?;
    let url = server.url();
    terminal.line(&format!("The book is at {url}: {pages} pages. Ctrl-C ends."))?;
    if let Some(readers) = server.readers() {
        terminal.line(&readers)?;
    }
    if options.open && opener::open_browser(&url).is_err() {
        terminal.line("No browser could be opened; open the address yourself.")?;
    }
    server.serve(&site)?;
    Ok(true)
}

/// Serves the book for another program, and ends with it, however that ends.
fn beside(workspace: &Workspace, host: Option<&str>, terminal: &mut Terminal) -> Result<bool> {
    let (server, site) = ready(&workspace.path(""), host)?;
    terminal.line(&server.url())?;
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    server.serve(&site)?;
    Ok(true)
}

/// Builds the book of the workspace in `root`. Returns where it will be served, and its folder.
///
/// # Errors
/// The host is no address of this machine; there is no free port; what is wrong in the sources of the book.
pub fn ready(root: &Path, host: Option<&str>) -> Result<(Server, PathBuf)> {
    let server = Server::bind(host, None)?;
    renew(root)?;
    Ok((server, root.join(SITE)))
}

/// Builds the site that is served. Of two at once, one builds after the other, and neither takes pages from one that is served:
/// a new site takes the place of the old one when it is whole.
fn renew(root: &Path) -> Result<Built> {
    let (site, target) = (root.join(SITE), root.join("target"));
    std::fs::create_dir_all(&target)?;
    let lock = std::fs::File::create(target.join("book.lock"))?;
    lock.lock()?;
    let work = tempfile::tempdir_in(&target)?;
    let (new, old) = (work.path().join("new"), work.path().join("old"));
    let built = build(root, &new)?;
    if site.exists() {
        std::fs::rename(&site, old)?;
    }
    std::fs::rename(new, site)?;
    Ok(built)
}

/// Writes the site to a folder.
fn write(workspace: &Workspace, folder: &Path, terminal: &mut Terminal) -> Result<bool> {
    publish::check(folder)?;
    let site = tempfile::tempdir()?;
    let Built { pages, .. } = spinning(|| build(&workspace.path(""), site.path()))?;
    publish::publish(site.path(), folder)?;
    let folder = folder.display();
    terminal.line(&format!("The book is in {folder}: {pages} pages. Open index.html there."))?;
    Ok(true)
}

fn spinning(build: impl FnOnce() -> Result<Built>) -> Result<Built> {
    with_spinner(|progress| {
        progress("building the book");
        build()
    })
}
