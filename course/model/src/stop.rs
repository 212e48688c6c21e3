//! What Ctrl-C says while a model is trained.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The exit code of a program that SIGINT ended, as shells count it.
const INTERRUPTED: i32 = 130;

/// Steps that were made.
static MADE: AtomicUsize = AtomicUsize::new(0);
/// Steps that the newest checkpoint has.
static SAVED: AtomicUsize = AtomicUsize::new(0);

/// Records for [`on_interrupt`] how many steps were made.
pub fn made(step: usize) {
    MADE.store(step, Ordering::Relaxed);
}

/// Records for [`on_interrupt`] how many steps the newest checkpoint has.
pub fn saved(step: usize) {
    SAVED.store(step, Ordering::Relaxed);
}

/// From now on, Ctrl-C ends the program with a line that says how to go on. Nothing need be written then: a run can be killed at
/// any moment.
pub fn on_interrupt() {
    // It fails only if there is a handler already, or the system has none to give. Then Ctrl-C ends the program without a word.
    let _ = ctrlc::set_handler(|| {
        let [made, saved] = [&MADE, &SAVED].map(|steps| steps.load(Ordering::Relaxed));
        eprintln!("\n  Stopped after step {made}. The same command goes on after step {saved}.");
        std::process::exit(INTERRUPTED);
    });
}
