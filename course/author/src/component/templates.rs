//! The templates, as they are.

use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// Where they are, from the workspace.
pub const FOLDER: &str = "course/author/component";

/// The files that a component gets: name and text.
pub type Files = BTreeMap<String, String>;

/// The templates as they are: name and text.
///
/// # Errors
/// One can't be read, or there is none.
pub fn raw(root: &Path) -> Result<Files> {
    let mut files = Files::new();
    let mut folders = vec![root.join(FOLDER)];
    while let Some(folder) = folders.pop() {
        let refuse = |error: std::io::Error| Error::File {
            file: folder.display().to_string(),
            reason: error.to_string(),
        };
        for entry in folder.read_dir().map_err(refuse)? {
            let path = entry.map_err(refuse)?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(root.join(FOLDER)).unwrap_or(&path);
            let name = name.to_string_lossy().replace('\\', "/");
            let text = std::fs::read_to_string(&path).map_err(refuse)?;
            files.insert(name, text.replace("\r\n", "\n"));
        }
    }
    Ok(files)
}
