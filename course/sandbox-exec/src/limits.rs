//! Limits of resources. They hold for each process that follows.

use rustix::process::{Resource, Rlimit, setrlimit};
use signal_hook::consts::{SIGXCPU, SIGXFSZ};

/// Sets a limit, which nothing can raise again.
pub fn set(name: &str, most: u64) -> crate::Result<()> {
    let resource = match name {
        "cpu" => Resource::Cpu,
        "memory" => Resource::As,
        "file" => Resource::Fsize,
        "stack" => Resource::Stack,
        // Of the user, within the sandbox. It does not hold for anyone with the kernel's root: the grader starts
        // as another.
        "processes" => Resource::Nproc,
        "open" => Resource::Nofile,
        "core" => Resource::Core,
        _ => return Err(format!("no limit is called `{name}`").into()),
    };
    // A program that computes for too long gets its own signal first, so that it can be distinguished from others.
    let maximum = if name == "cpu" { most + 1 } else { most };
    setrlimit(resource, Rlimit { current: Some(most), maximum: Some(maximum) }).map_err(|error| {
        format!("the limit {name}={most} can't be set over a lower one ({error})").into()
    })
}

/// Lets the signals of the limits end what follows, also where a process above ignores them: that is inherited. A
/// signal that is caught here has no handler there.
pub fn heed_signals() -> crate::Result<()> {
    for signal in [SIGXCPU, SIGXFSZ] {
        signal_hook::flag::register(signal, Default::default())?;
    }
    Ok(())
}
