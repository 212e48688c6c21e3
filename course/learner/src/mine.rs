//! `cargo course model .. --mine`: which of the learner's files must compile. The model with them is another program, which is
//! built with optimization.

use crate::error::{Error, Result};
use crate::exercise::Workspace;
use crate::exercise::compile::{Built, build, stand_in};
use crate::program::{in_place, run_package};
use crate::progress::with_spinner;

/// The components that training can't do without. The others are used in the model once they are all there.
pub const PARTS: [&str; 3] = ["norm", "embedding", "rope"];

/// The components of a model that writes.
pub const WRITER: [&str; 6] = ["norm", "embedding", "rope", "attention", "feedforward", "model"];

/// Starts the model, replacing this program. Where a file that is not `needed` fails to compile, its starter takes its
/// place.
///
/// # Errors
/// A file that is needed does not compile; cargo can't be run.
pub fn run(needed: &[&str]) -> Result<u8> {
    let workspace = Workspace::find()?;
    let Built { uncompiled, .. } = with_spinner(|progress| build(&workspace, needed, progress))?;
    let needed = |slug: Option<&str>| slug.is_none_or(|slug| needed.contains(&slug));
    let (parts, others): (Vec<_>, Vec<_>) =
        uncompiled.into_iter().partition(|error| needed(error.component));
    if let Some(error) = parts.into_iter().next() {
        return Err(Error::DoesNotCompile(Box::new(error)));
    }
    let others: Vec<&str> = others.iter().filter_map(|error| error.component).collect();
    let mut model = run_package(&workspace, "mine", &["--release"]);
    stand_in(&mut model, &workspace, &others)?;
    in_place(model)
}
