//! `cargo course grade`: a grade that can count.
//!
//! ```text
//! intake -> program built in the sandbox -> run in the sandbox -> values over a pipe -> the contract judges -> results
//! ```
//!
//! The parts, in this order: [`submissions`] and [`intake`] take the learner's files; [`parts`] and [`program`] make a program
//! of them; [`cage`] is the sandbox; [`worker`] judges a task; [`grade`] a submission; [`class`] all of them; [`output`] writes
//! what came of it.

#![forbid(unsafe_code)]

pub mod cage;
pub mod changes;
pub mod class;
pub mod error;
pub mod fair;
pub mod folder;
pub mod grade;
mod inherited;
pub mod intake;
mod limit;
pub mod output;
pub mod package;
pub mod parts;
pub mod program;
pub mod record;
pub mod settings;
pub mod similar;
pub mod submissions;
pub mod systems;
pub mod temporary;
pub mod told;
pub mod worker;
