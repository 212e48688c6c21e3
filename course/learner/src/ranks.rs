//! `cargo course ranks`: is there what it is built and started with? The ranks themselves are another program.

use crate::error::{Error, Result};
use crate::program;
use std::process::{Command, Stdio};

/// What to do where there is no MPI.
pub const GET_MPI: &str = "install Open MPI, on Debian and Ubuntu with `apt-get install libopenmpi-dev openmpi-bin \
     libclang-dev`, then try again";

/// Starts the ranks, replacing this program.
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
/// One that is missing; another MPI.
pub fn check() -> Result<()> {
    is_open_mpi()?;
    match says("mpicc") {
        Some(_) => Ok(()),
        None => Err(refused("there is no mpicc here, which ranks are built with", GET_MPI.into())),
    }
}

/// Whether the `mpirun` here is Open MPI's: only for that one is it known how a process learns that it is a rank, and
/// which.
///
/// # Errors
/// There is none, or it is another MPI's.
pub fn is_open_mpi() -> Result<()> {
    match says("mpirun") {
        None => Err(refused("there is no mpirun here, which starts ranks", GET_MPI.into())),
        Some(said) if said.contains("Open MPI") => Ok(()),
        Some(said) => {
            let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
            let reason = format!("it says {:?}; {GET_MPI}", first.trim());
            Err(refused("the mpirun here is not Open MPI's", reason))
        }
    }
}

/// What a program says of its version, if it is there.
fn says(program: &str) -> Option<String> {
    let mut command = Command::new(program);
    let output = command.arg("--version").stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn refused(what: &'static str, reason: String) -> Error {
    Error::Program { what, reason }
}
