//! What one rank has: its rows of a table, and what it answers.

use crate::communicator::{Communicator, Order};
use crate::error::{Error, Result};
use quadrivium::parallel::{padded_vocab_size, shard_range};
use quadrivium::tensor::*;

/// What one rank has in hand when it has done its part.
#[derive(Default)]
pub(crate) struct Own {
    pub y: Vec<f32>,
    /// Of its rows, `[n, e]`.
    pub rows: Vec<f32>,
    pub dx: Vec<f32>,
    /// How many elements the rows of all ranks have, without what was filled up.
    pub elements: usize,
    pub ids: Vec<usize>,
}

pub(crate) fn order(block: Option<usize>) -> Order {
    block.map_or(Order::Any, |block| Order::Fixed { block })
}

/// Rows `[n, e]` of this rank. A vocabulary that the ranks do not divide is filled up, with rows that no id names.
pub(crate) fn own_rows(
    comm: &dyn Communicator,
    table: &[f32],
    width: usize,
    fill: f32,
) -> Result<Vec<f32>> {
    let v = table.len() / width.max(1);
    filled_rows(comm, v, |id| table[id * width..(id + 1) * width].to_vec(), vec![fill; width])
}

/// The same of a table that is given row by row. What is filled up is NaN.
pub(crate) fn own_rows_of(
    comm: &dyn Communicator,
    v: usize,
    row: impl Fn(usize) -> Vec<f32>,
    width: usize,
) -> Result<Vec<f32>> {
    filled_rows(comm, v, row, vec![f32::NAN; width])
}

fn filled_rows(
    comm: &dyn Communicator,
    v: usize,
    row: impl Fn(usize) -> Vec<f32>,
    fill: Vec<f32>,
) -> Result<Vec<f32>> {
    let padded = padded_vocab_size(v, comm.world_size());
    let own = shard_range(padded, comm.world_size(), comm.rank())?;
    Ok(own.flat_map(|id| if id < v { row(id) } else { fill.clone() }).collect())
}

pub(crate) fn matrix(
    dev: &Cpu,
    values: Vec<f32>,
    width: usize,
) -> Result<Tensor<(usize, usize), f32, Cpu>> {
    let rows = values.len() / width.max(1);
    dev.try_tensor_from_vec(values, (rows, width)).map_err(|e| Error::Library(e.into()))
}

pub(crate) fn gradient<S: Shape>(
    grads: &mut Gradients<f32, Cpu>,
    of: &Tensor<S, f32, Cpu>,
) -> Result<Vec<f32>> {
    grads.try_alloc_for(of).map_err(quadrivium::Error::from)?;
    Ok(grads.get(of).as_vec())
}

/// The gradients for a given `dy`: those of `<y, dy>`.
pub(crate) fn run_back<B: Dim, S: Dim, M: Dim>(
    dev: &Cpu,
    y: Tensor<(B, S, M), f32, Cpu, OwnedTape<f32, Cpu>>,
    dy: &[f32],
) -> Result<Gradients<f32, Cpu>> {
    let run = || {
        let dy = dev.try_tensor_from_vec(dy.to_vec(), *y.shape())?;
        y.try_mul(dy)?.try_sum::<Rank0, _>()?.try_backward()
    };
    run().map_err(|e| Error::Library(e.into()))
}
