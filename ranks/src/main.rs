//! The program of `cargo course ranks`: what starts the ranks, and each of them.

#![forbid(unsafe_code)]

use course::arguments::Command;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let Some(Command::Ranks(arguments)) = course::command() else {
        return course::not_here();
    };
    if ranks::run::is_rank() {
        ranks::run::rank(&arguments);
        return ExitCode::SUCCESS;
    }
    course::ended(ranks::run::launch(&arguments).map(|()| true))
}
