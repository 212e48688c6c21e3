//! What Ctrl-C says while a model is trained.

/// The exit code of a program that SIGINT ended, as shells count it.
const INTERRUPTED: i32 = 130;

/// From now on, Ctrl-C ends the program with a line that says how to go on. Nothing need be written then: a run can be killed at
/// any moment.
pub fn on_interrupt() {
    // It fails only if there is a handler already, or the system has none to give. Then Ctrl-C ends the program without a word.
    let _ = ctrlc::set_handler(|| {
        eprintln!("\n  Stopped. The same command goes on from the last checkpoint.");
        std::process::exit(INTERRUPTED);
    });
}
