//! The learner's code as a program: plain values in, plain values out, over standard input and standard output.
//!
//! It holds no reference, no oracle and no known bug, and it gives no verdict. The judging program starts it, and sends
//! an [`Order`] first.

// rustc takes functions from it, so that a submission need not compile them.
extern crate dfdx_prebuilt as _;

use adapters::Learner;
use interfaces::interface::*;
use interfaces::panics;
use protocol::{Asker, Ends, Implementations, Order, VERSION, serve, whole};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("submission: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    panics::silence();
    let mut ends = ends()?;
    let order: Order = whole(&ends.receive()?)?;
    ends.send(&VERSION)?;
    match order {
        Order::Answer { calls, by_hand } => {
            if by_hand {
                exercises::prelude::close_tape();
            }
            // For as long as the process lives.
            let calls = calls.into_iter().map(|call| &*call.leak()).collect::<Vec<_>>().leak();
            let learner = Learner { calls, by_hand };
            serve(&mut ends, &Implementations::all(&learner)).map(drop)
        }
        Order::Judge { slug } => {
            let asker = Asker::new(ends, 0);
            let refusal = match catch_unwind(AssertUnwindSafe(|| property(&slug, &asker))) {
                Ok(None) => Some(format!("{slug} has no task about a property")),
                Ok(Some(said)) => said.err(),
                Err(payload) => Some(panics::message(&*payload)),
            };
            asker.done(&refusal)
        }
    }
}

macro_rules! properties {
    ($($slug:ident: $interface:ident, $property:expr;)+) => {
        /// What the learner's own invariant of a component says of the implementation on the other side, if there is a
        /// task about it.
        fn property(slug: &str, asker: &Asker) -> Option<Result<(), String>> {
            match slug {
                $(stringify!($slug) => {
                    let property: Option<fn(&dyn $interface) -> Result<(), String>> = $property;
                    Some(property?(asker))
                })+
                _ => None,
            }
        }
    };
}
adapters::components!(properties);

/// Answers go where standard output was. What the learner's code prints from now on goes to standard error.
#[cfg(unix)]
fn ends() -> io::Result<Ends> {
    use std::fs::File;
    use std::os::fd::AsFd;

    let questions = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let answers = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(Ends::new(questions, answers))
}

/// Grading apart is for Linux.
#[cfg(not(unix))]
fn ends() -> io::Result<Ends> {
    Err(io::Error::other("this program needs a system of the Unix family"))
}
