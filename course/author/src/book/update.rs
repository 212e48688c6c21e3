//! The figures and the listings of the book, made and written.

use super::made::CHAPTERS;
use crate::error::{Error, Result};
use learner::save;
use std::path::{Path, PathBuf};

/// Makes every figure and every listing into a folder like `book/src`. Returns their files.
///
/// # Errors
/// A component refused its input; a file can't be written.
pub fn make(folder: &Path) -> Result<Vec<PathBuf>> {
    let refuse = |file: &Path, error: std::io::Error| Error::File {
        file: file.display().to_string(),
        reason: error.to_string(),
    };
    let mut files = Vec::new();
    for kind in ["figures", "listings"] {
        let folder = folder.join(kind);
        std::fs::create_dir_all(&folder).map_err(|error| refuse(&folder, error))?;
    }
    for chapter in CHAPTERS {
        for figure in chapter.figures {
            let file = folder.join(format!("figures/{}.svg", figure.name));
            (figure.draw)(&file)?;
            files.push(file);
        }
        for listing in chapter.listings {
            let file = folder.join(format!("listings/{}.txt", listing.name));
            save::write(&file, (listing.text)()?).map_err(|error| refuse(&file, error))?;
            files.push(file);
        }
    }
    Ok(files)
}
