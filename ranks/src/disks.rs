//! Folders that have one path on every host, and may be one folder or several.

use crate::communicator::{Call, Communicator, accept};
use crate::error::{Refusal, Result};
use std::path::Path;

/// How the name of the file begins that each rank makes for the others to look for.
pub(crate) const PROBE: &str = ".probe-";

/// Whether this rank is the first of those that see the same folder: the first does what is needed once per folder, which is
/// made if it is not there.
///
/// # Errors
/// A folder in which this rank or another one can't write. What [`Communicator::gather`] reports.
pub(crate) fn is_first(comm: &dyn Communicator, folder: &Path) -> Result<bool> {
    let probe = || {
        std::fs::create_dir_all(folder)?;
        tempfile::Builder::new().prefix(PROBE).tempfile_in(folder)
    };
    let refuse = |e: std::io::Error| {
        let advice =
            "make it a folder in which each rank can write, or name another folder with --out";
        Refusal::Other(format!("{}: {e}; {advice}", folder.display()))
    };
    let call = |what| Call::new("a checkpoint", what);
    let probe = accept(comm, call("a folder"), probe().map_err(refuse))?;
    let name = probe.path().file_name().unwrap_or_default().to_string_lossy();
    let names = comm.gather(name.as_bytes())?;
    let is_here = |name: &Vec<u8>| folder.join(String::from_utf8_lossy(name).as_ref()).exists();
    let first = names.iter().position(is_here);
    // No probe is removed before all have looked.
    comm.agree(call("who shares a folder"), Ok(()))?;
    Ok(first == Some(comm.rank()))
}

/// The bytes that this rank has read, or, where it could not, those of the first rank that could. The error within is this
/// rank's, if none could.
///
/// # Errors
/// What [`Communicator::gather`] reports.
pub(crate) fn read_or_sent<E>(
    comm: &dyn Communicator,
    mine: std::result::Result<Vec<u8>, E>,
) -> Result<std::result::Result<Vec<u8>, E>> {
    let have = comm.gather(&[u8::from(mine.is_ok())])?;
    let has = |has: &Vec<u8>| *has == [1];
    match have.iter().position(has) {
        Some(root) if !have.iter().all(has) => {
            let sent = comm.broadcast(root, mine.as_deref().unwrap_or_default())?;
            Ok(Ok(mine.unwrap_or(sent)))
        }
        _ => Ok(mine),
    }
}
