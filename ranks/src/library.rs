//! The library's collectives on these ranks: what sees `quadrivium::collectives::Communicator` alone runs over MPI.

use crate::communicator::{Communicator, Op};
use crate::error::{Error, Result};
use quadrivium::collectives;

/// A rank's way to the others, as the library knows it.
pub struct Way<'c>(pub &'c dyn Communicator);

impl collectives::Communicator for Way<'_> {
    type Error = Error;

    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn world_size(&self) -> usize {
        self.0.world_size()
    }

    fn all_reduce_sum(&self, values: &mut [f32]) -> Result<()> {
        self.0.all_reduce(values.into(), Op::Sum)
    }

    fn all_reduce_max(&self, values: &mut [f32]) -> Result<()> {
        self.0.all_reduce(values.into(), Op::Max)
    }

    fn all_gather(&self, values: &[f32]) -> Result<Vec<f32>> {
        let parts = self.0.gather(bytemuck::cast_slice(values))?;
        let floats = parts.iter().flat_map(|bytes| bytes.chunks_exact(size_of::<f32>()));
        Ok(floats.map(bytemuck::pod_read_unaligned).collect())
    }
}
