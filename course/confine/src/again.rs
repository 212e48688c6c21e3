//! One process after the other, each as if it were the first.

use std::convert::Infallible;
use std::path::Path;
use std::process::Command;

/// Starts the program by these orders, again and again until it fails: in the end it finds nothing more to read.
pub fn and_again(orders: &[String], program: &[String]) -> crate::Result<Infallible> {
    let own = std::env::args_os().next().ok_or("this program has no name")?;
    loop {
        for path in orders.iter().filter_map(|order| order.strip_prefix("write=")) {
            empty(Path::new(path))?;
        }
        let status = Command::new(&own).args(orders).arg("--").args(program).status()?;
        if !status.success() {
            // As bubblewrap does: a signal's number becomes an exit code.
            let signal = std::os::unix::process::ExitStatusExt::signal(&status);
            std::process::exit(status.code().or(signal.map(|signal| 128 + signal)).unwrap_or(1));
        }
    }
}

/// Removes what is in a folder. Another thing is no place for a message to the next process.
fn empty(folder: &Path) -> std::io::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in folder.read_dir()? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
