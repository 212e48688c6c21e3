//! Limits that the lecturer's shell hands on. They hold beside those of the sandbox, and one that is lower would cost honest
//! submissions their points.

use crate::error::Result;
use crate::settings::Limits;

/// Processes of a sandbox beside those of the program in it: bwrap's, and what watches them.
#[cfg(target_os = "linux")]
const OF_SANDBOX: u64 = 4;

/// Whether each limit leaves what the settings' limits allow, to `at_once` programs at the same time.
///
/// # Errors
/// The first that does not.
#[cfg(target_os = "linux")]
pub fn check(limits: &Limits, at_once: usize) -> Result<()> {
    use crate::cage;
    use rustix::process::{Resource, geteuid, getrlimit};

    let user = cage::user().unwrap_or_else(|| geteuid().as_raw());
    let running = threads_of(user);
    let memory = limits.memory_mib.max(limits.build_memory_mib).saturating_mul(MIB);
    let file = limits.file_mib.saturating_mul(MIB).max(cage::BUILT);
    // A judge computes for all tasks of a submission at most, on the clock.
    let seconds = limits.submission_seconds.saturating_mul(4).max(limits.build_seconds) + 1;
    let together = (at_once as u64).saturating_mul(limits.processes.saturating_add(OF_SANDBOX));
    // The limit, its letter, and what is needed.
    let table = [
        (Resource::Nproc, 'u', together.saturating_add(running)),
        (Resource::As, 'v', memory),
        (Resource::Data, 'd', memory),
        (Resource::Stack, 's', cage::STACK),
        (Resource::Fsize, 'f', file),
        (Resource::Cpu, 't', seconds),
        (Resource::Nofile, 'n', cage::OPEN),
    ];
    for (resource, letter, needed) in table {
        if let Some(most) = getrlimit(resource).current.filter(|most| *most < needed) {
            let more = match letter {
                'u' => format!(
                    ": {at_once} at a time, each with {} and {OF_SANDBOX} of its sandbox, beside {running} that run",
                    limits.processes
                ),
                _ => String::new(),
            };
            return Err(too_low(letter, amount(letter, needed) + &more, amount(letter, most)));
        }
    }
    Ok(())
}

/// Elsewhere nothing is graded.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn check(_: &Limits, _: usize) -> Result<()> {
    Ok(())
}

#[cfg(target_os = "linux")]
const MIB: u64 = 1 << 20;

#[cfg(target_os = "linux")]
fn too_low(letter: char, needed: String, most: String) -> crate::error::Error {
    crate::error::Error::Argument {
        what: format!(
            "no limit of the shell (`ulimit -{letter}`) is lower than what submissions may use: it would cost them points"
        ),
        expected: format!("at least {needed}"),
        got: most,
        to_do: format!(
            "raise it in the shell that starts the grader (`ulimit -{letter} unlimited`, or as far as `ulimit -H{letter}` shows; above that, \
             root may); or lower --jobs, or [limits] in the settings"
        ),
    }
}

#[cfg(target_os = "linux")]
fn amount(letter: char, amount: u64) -> String {
    match letter {
        'u' => format!("{amount} processes and threads"),
        'n' => format!("{amount} open files"),
        't' => format!("{amount} seconds of computing"),
        _ => format!("{} KiB", amount / 1024),
    }
}

/// The threads of a user that run now: a limit on processes counts them all.
#[cfg(target_os = "linux")]
fn threads_of(user: u32) -> u64 {
    use std::os::unix::fs::MetadataExt;

    let all = std::path::Path::new("/proc").read_dir().into_iter().flatten().flatten();
    let own = all.filter(|process| process.metadata().is_ok_and(|about| about.uid() == user));
    own.map(|process| process.path().join("task").read_dir().map_or(0, Iterator::count) as u64)
        .sum()
}
