//! Becomes another program, after it has given up what that program must not do.
//!
//! It is the inner line of the grader's sandbox, and needs no privilege. The outer line is bubblewrap's namespaces. Each
//! holds alone what it claims.
//!
//! ```text
//! sandbox-exec [guard run|build] [name=number].. [read=PATH].. [write=PATH].. -- PROGRAM ARGUMENT..
//! ```
//!
//! `guard` asks for Landlock and seccomp: as for a learner's program (`run`), or as for a compiler (`build`), which starts
//! other programs. Without it there are limits alone: `cpu` in seconds, `memory`, `file` and `stack` in bytes, and `processes`.

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod limits;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match become_it(&arguments) {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("sandbox-exec: {error}");
            ExitCode::from(125)
        }
    }
}

/// What could not be given up, or started.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[cfg(target_os = "linux")]
fn become_it(arguments: &[String]) -> Result<std::convert::Infallible> {
    use std::os::unix::process::CommandExt;

    let at = arguments.iter().position(|word| word == "--").ok_or("no `--` before the program")?;
    let (mut orders, program) = (&arguments[..at], &arguments[at + 1..]);
    let (program, of_program) = program.split_first().ok_or("no program behind `--`")?;
    let guard = match orders {
        [first, kind, rest @ ..] if first == "guard" => {
            orders = rest;
            Some(calls::Kind::of(kind).ok_or("guard is `run` or `build`")?)
        }
        _ => None,
    };
    limits::heed_signals()?;
    let (mut readable, mut writable) = (Vec::new(), Vec::new());
    for order in orders {
        match order.split_once('=').ok_or_else(|| format!("`{order}` is no order"))? {
            ("read", path) => readable.push(path),
            ("write", path) => writable.push(path),
            (name, number) => limits::set(name, number.parse()?)?,
        }
    }
    // It does not outlive the process that started it, not even if that one is killed.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    // What a process above had open and did not close. Standard input, output and error stay.
    close_fds::set_fds_cloexec(3, &[]);
    if let Some(kind) = guard {
        readable.push(program);
        files::restrict(&readable, &writable)?;
        calls::restrict(kind)?;
    }
    Err(std::process::Command::new(program).args(of_program).exec().into())
}

#[cfg(not(target_os = "linux"))]
fn become_it(_: &[String]) -> Result<std::convert::Infallible> {
    Err("what it gives up is known on Linux only".into())
}
