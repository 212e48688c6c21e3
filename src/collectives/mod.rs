//! What ranks say to each other: a loss whose vocabulary is cut, and a sum whose bits do not depend on the cut.
//!
//! A rank sees the others through a [`Communicator`] and nothing else. The library brings none but [`Alone`]: threads,
//! MPI or NCCL can implement the trait. The computations are [`vocab_parallel_cross_entropy`] and [`tree_sum`].

mod formula;

pub use formula::{ShardEntropy, tree_sum, vocab_parallel_cross_entropy};

use crate::error::Error;
use std::result::Result;

// ANCHOR: communicator
/// One rank's way to the others.
///
/// [`all_reduce_sum`](Self::all_reduce_sum), [`all_reduce_max`](Self::all_reduce_max) and
/// [`all_gather`](Self::all_gather) are *collectives*: every rank makes the same calls in the same order, with equally
/// many values, and none goes on before all have come. A connection that notices that a rank will never come says so
/// in its error.
pub trait Communicator {
    /// What goes wrong on the way, and what a computation here refuses.
    type Error: From<Error>;

    /// `r`, from 0 on.
    fn rank(&self) -> usize;

    /// `w`, at least 1.
    fn world_size(&self) -> usize;

    /// Element by element, the sum of all ranks' values, in their place. In which order it adds is the connection's own.
    ///
    /// # Errors
    /// What the connection reports.
    fn all_reduce_sum(&self, values: &mut [f32]) -> Result<(), Self::Error>;

    /// Element by element, the largest of all ranks' values, in their place.
    ///
    /// # Errors
    /// What the connection reports.
    fn all_reduce_max(&self, values: &mut [f32]) -> Result<(), Self::Error>;

    /// The values of rank 0, then those of rank 1, and so on: `w` times as many.
    ///
    /// # Errors
    /// What the connection reports.
    fn all_gather(&self, values: &[f32]) -> Result<Vec<f32>, Self::Error>;
}
// ANCHOR_END: communicator

/// A world of one rank: there is no one to talk to, and every collective gives back what it got.
///
/// ```
/// use quadrivium::collectives::{Alone, vocab_parallel_cross_entropy};
///
/// // One token over two ids: the probabilities are 1/4 and 3/4.
/// let found = vocab_parallel_cross_entropy(&Alone, &[0.0, 3f32.ln()], &[0], 2)?;
/// assert!((found.loss - 4f32.ln()).abs() < 1e-6);
/// assert!((found.dlogits[0] + 0.75).abs() < 1e-6);
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Alone;

impl Communicator for Alone {
    type Error = Error;

    fn rank(&self) -> usize {
        0
    }

    fn world_size(&self) -> usize {
        1
    }

    fn all_reduce_sum(&self, _: &mut [f32]) -> Result<(), Error> {
        Ok(())
    }

    fn all_reduce_max(&self, _: &mut [f32]) -> Result<(), Error> {
        Ok(())
    }

    fn all_gather(&self, values: &[f32]) -> Result<Vec<f32>, Error> {
        Ok(values.to_vec())
    }
}
