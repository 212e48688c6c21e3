//! `cargo course ranks`: is there what it is built and started with? The ranks themselves are another program.

use crate::error::{Error, Result};
use crate::program;
use std::process::{Command, Stdio};

/// What to do where there is no MPI.
pub const GET_MPI: &str = "install Open MPI, on Debian and Ubuntu with `apt-get install libopenmpi-dev openmpi-bin \
     libclang-dev`, then try again";

/// Starts the ranks in place of this program.
///
/// # Errors
/// There is no MPI; cargo can't be run.
pub fn run() -> Result<u8> {
    check()?;
    program::hand_over_as("release", "ranks")
}

/// Whether there are the programs that start ranks and that build them.
///
/// # Errors
/// One that is missing.
pub fn check() -> Result<()> {
    let runs = |program: &str| {
        let mut command = Command::new(program);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    match ["mpirun", "mpicc"].into_iter().find(|program| !runs(program)) {
        None => Ok(()),
        Some("mpirun") => Err(missing("there is no mpirun here, which starts ranks")),
        Some(_) => Err(missing("there is no mpicc here, which ranks are built with")),
    }
}

fn missing(what: &'static str) -> Error {
    Error::Program { what, reason: GET_MPI.into() }
}
