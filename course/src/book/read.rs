//! `cargo course read`: builds the book, and serves it or writes it.

use super::build::{Built, build};
use super::serve::Server;
use super::update;
use crate::error::{Error, Result};
use crate::exercise::Workspace;
use crate::exercise::check::with_spinner;
use crate::terminal::Terminal;
use std::path::{Path, PathBuf};

/// Where the site is built when it is served.
pub const SITE: &str = "target/book";

/// What to do with the book.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Write the site to this folder, and serve nothing.
    pub build: Option<PathBuf>,
    /// Serve on this port.
    pub port: Option<u16>,
    /// Open it in the browser.
    pub open: bool,
    /// Make the figures and listings anew.
    pub update: bool,
}

/// Does it. Serving ends with Ctrl-C.
///
/// # Errors
/// What is wrong in the sources of the book; a folder or a port that can't be used.
pub fn run(options: &Options) -> Result<bool> {
    let workspace = Workspace::find()?;
    let mut terminal = Terminal::stdout();
    if options.update {
        let files = with_spinner(|progress| {
            progress("drawing the figures of the book");
            update::make(&workspace.path("book/src"))
        })?;
        terminal.line(&format!("{} figures and listings are in book/src", files.len()))?;
        return Ok(true);
    }
    let server = match options.build {
        Some(_) => None,
        None => Some(Server::bind(options.port)?),
    };
    let site = match &options.build {
        Some(folder) => absolute(folder)?,
        None => workspace.path(SITE),
    };
    let Built { pages, .. } = with_spinner(|progress| {
        progress("building the book");
        build(&workspace.path(""), &site)
    })?;
    let Some(server) = server else {
        let folder = options.build.as_deref().unwrap_or(&site).display();
        terminal
            .line(&format!("The book is in {folder}: {pages} pages. Open index.html there."))?;
        return Ok(true);
    };
    let url = server.url();
    terminal.line(&format!("The book is at {url}: {pages} pages. Ctrl-C ends."))?;
    if options.open && opener::open_browser(&url).is_err() {
        terminal.line("No browser could be opened; open the address yourself.")?;
    }
    server.serve(&site)?;
    Ok(true)
}

/// A folder that may be replaced by a site: it is new, or empty, or holds a book already.
fn absolute(folder: &Path) -> Result<PathBuf> {
    let refuse = |reason: String| Error::Site { folder: folder.display().to_string(), reason };
    let path = std::path::absolute(folder).map_err(|error| refuse(error.to_string()))?;
    let mut entries = match path.read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(path),
        Err(error) => return Err(refuse(error.to_string())),
    };
    if entries.next().is_some() && !holds_a_book(&path) {
        return Err(refuse("it holds other files, and they would be deleted".to_string()));
    }
    Ok(path)
}

fn holds_a_book(folder: &Path) -> bool {
    let index = std::fs::read_to_string(folder.join("index.html")).unwrap_or_default();
    index.contains("Book generated using mdBook")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_something_else_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        assert!(absolute(folder.path()).is_ok());
        assert!(absolute(&folder.path().join("new")).is_ok());
        std::fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
        let error = absolute(folder.path()).unwrap_err().to_string();
        assert!(error.contains("it holds other files"), "{error}");
        let index = "<!-- Book generated using mdBook -->";
        std::fs::write(folder.path().join("index.html"), index).unwrap();
        assert!(absolute(folder.path()).is_ok());
    }
}
