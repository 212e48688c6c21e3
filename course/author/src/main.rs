//! The program of `cargo course read`, `lab`, `exam` and `new`, and of the notebooks' kernel.

#![forbid(unsafe_code)]

use author::book::read;
use author::component;
use author::exam;
use author::lab::{self, kernel};
use course::arguments::{
    Command, ExamArguments, KernelArguments, LabArguments, NewArguments, ReadArguments,
};
use course::{ended, not_here};
use std::process::ExitCode;

fn main() -> ExitCode {
    match course::command() {
        Some(Command::Read(ReadArguments { build, host, port, open, update, beside })) => {
            ended(read::run(&read::Options { build, host, port, open, update, beside }))
        }
        Some(Command::Lab(LabArguments {
            notebook,
            check,
            update,
            clear,
            no_browser,
            host,
            port,
        })) => ended(lab::run(&lab::Options {
            notebook,
            check,
            update,
            clear,
            no_browser,
            host,
            port,
        })),
        Some(Command::New(NewArguments { slug, type_name })) => {
            ended(component::run(&slug, type_name.as_deref()))
        }
        Some(Command::Exam(ExamArguments { components, seed, riddles, written, out })) => {
            ended(exam::run(&exam::Options { seed, components, riddles, written, out }))
        }
        Some(Command::Kernel(KernelArguments { evcxr, connection_file })) => {
            ended(kernel::run(&evcxr, &connection_file))
        }
        _ => not_here(),
    }
}
