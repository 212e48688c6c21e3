//! Attacks on the grader: each earns what it must earn, and leaves the machine as it was.
//!
//! One test for each attack in `tests/hostile`, and one more for each line of the sandbox that stops it, with that line alone.

#[cfg(target_os = "linux")]
mod corpus;
#[cfg(target_os = "linux")]
mod making;
#[cfg(target_os = "linux")]
mod runner;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    if std::env::var_os(grader::worker::WORKER).is_some() {
        // A judge is started by the name of the program that runs.
        return course::ended(grader::worker::run().map(|()| true));
    }
    runner::run()
}

/// Submissions are graded on Linux.
#[cfg(not(target_os = "linux"))]
fn main() {}
