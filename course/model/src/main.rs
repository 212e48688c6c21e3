//! The program of `cargo course model`.

#![forbid(unsafe_code)]

use course::arguments::{Command, ModelCommand};
use model::{attention, evaluate, generate, inspect, long, train};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let Some(Command::Model(arguments)) = course::command() else {
        return course::not_here();
    };
    course::ended(match &arguments.command {
        ModelCommand::Train(arguments) => train::run(arguments, None),
        ModelCommand::Generate(arguments) => generate::run(arguments, None),
        ModelCommand::Eval(arguments) => evaluate::run(arguments),
        ModelCommand::Inspect(arguments) => inspect::run(arguments),
        ModelCommand::Attention(arguments) => attention::run(arguments),
        ModelCommand::Long(arguments) => long::run(arguments),
    })
}
