//! How bytes get from rank to rank: by channels between threads, or by MPI between processes.

pub mod processes;
pub mod threads;

use crate::communicator::{Op, Values};

/// What a message to another rank needs. [`Group`](crate::group::Group) makes collectives of it.
pub trait Link: Sized + 'static {
    /// `r`.
    fn rank(&self) -> usize;

    /// `w`.
    fn world_size(&self) -> usize;

    /// The number of a rank of this group among all that were started: the name by which people know it.
    fn name(&self, rank: usize) -> usize;

    /// Sends each message, and takes one from each rank of `from`, in that order.
    ///
    /// # Errors
    /// A rank that was not heard in time, or has ended. The error has its name.
    fn exchange(&self, out: &[(usize, &[u8])], from: &[usize]) -> Result<Vec<Vec<u8>>, Lost>;

    /// The engine's own reduction, if it has one.
    fn all_reduce(&self, _values: &mut Values<'_>, _op: Op) -> Option<Result<(), Lost>> {
        None
    }

    /// The link of those with the same colour. `colours` has that of each rank.
    ///
    /// # Errors
    /// As for [`Link::exchange`].
    fn split(&self, colours: &[usize]) -> Result<Self, Lost>;

    /// How long a rank is waited for, in seconds.
    fn patience(&self) -> u64;
}

/// The ranks that were not heard, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// Not in time.
    Missing(usize),
    /// It has ended.
    Gone(usize),
}

/// The ranks of a colour, in their order, and the place of `rank` among them.
pub(crate) fn members(colours: &[usize], rank: usize) -> (Vec<usize>, usize) {
    let members: Vec<usize> = (0..colours.len()).filter(|r| colours[*r] == colours[rank]).collect();
    let place = members.iter().position(|member| *member == rank).unwrap_or(0);
    (members, place)
}

/// Their names, where all ranks have those of `names`.
pub(crate) fn names_of(members: &[usize], names: &[usize]) -> Vec<usize> {
    members.iter().map(|member| names[*member]).collect()
}
