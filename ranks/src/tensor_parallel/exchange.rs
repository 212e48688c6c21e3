//! The two sums of a cut: what every part reads, and what all parts add up to.

use crate::communicator::{Communicator, Order, go_on, sum};
use crate::error::{Error, Result};
use quadrivium::tensor::*;
use std::cell::RefCell;
use std::rc::Rc;

/// How the ranks that share a model meet, on the way forward and on the way back.
pub struct Exchange {
    /// Those ranks.
    pub comm: Rc<dyn Communicator>,
    /// In which order they add up.
    pub order: Order,
    /// What the ranks reported on the way back, where a tape can only say that it has stopped.
    failed: RefCell<Option<Error>>,
}

impl Exchange {
    /// For these ranks.
    pub fn new(comm: Rc<dyn Communicator>, order: Order) -> Rc<Self> {
        Rc::new(Self { comm, order, failed: RefCell::new(None) })
    }

    /// The reason why a tape has stopped.
    pub fn why(&self, stopped: CpuError) -> Error {
        self.failed.take().unwrap_or_else(|| Error::Library(stopped.into()))
    }

    /// The sum of all ranks' parts. In the fixed order they are added up one by one, from the first part of the first rank to
    /// the last of the last, so it does not matter which of them lie on one rank.
    fn sum(&self, parts: &[Vec<f32>], len: usize) -> Result<Vec<f32>> {
        let mut total = vec![0.0; len];
        let add_own = |total: &mut [f32]| {
            for part in parts {
                total.iter_mut().zip(part).for_each(|(total, x)| *total += x);
            }
        };
        match self.order {
            Order::Any => {
                add_own(&mut total);
                sum(self.comm.as_ref(), self.order, &mut total)?;
            }
            Order::Fixed { .. } => go_on(self.comm.as_ref(), &mut total, add_own)?,
        }
        Ok(total)
    }
}

/// Tokens for `parts` parts of this rank: the same values for each. On the way back, the gradients of all parts of all ranks
/// are added up, since every one of them has read the tokens.
pub(super) fn copied<S: Shape, T: Tape<f32, Cpu>>(
    exchange: &Rc<Exchange>,
    x: Tensor<S, f32, Cpu, T>,
    parts: usize,
) -> Result<Vec<Tensor<S, f32, Cpu, T>>> {
    let (x, mut tape) = x.try_contiguous().map_err(device)?.split_tape();
    let copy = |_| x.device().try_tensor_from_vec(x.as_vec(), *x.shape());
    let copies: Vec<Tensor<S, f32, Cpu>> =
        (0..parts).map(copy).collect::<std::result::Result<_, _>>().map_err(device)?;
    let (exchange, all) = (Rc::clone(exchange), copies.clone());
    on_backward(&mut tape, &copies[0], move |_, grads| {
        let gradient = |copy: &Tensor<S, f32, Cpu>| {
            grads.try_alloc_for(copy)?;
            Ok(grads.get(copy).as_vec())
        };
        let parts = all.iter().map(gradient).collect::<std::result::Result<Vec<_>, CpuError>>()?;
        let total = exchange.sum(&parts, x.shape().num_elements()).map_err(|error| {
            exchange.failed.replace(Some(error));
            CpuError::OutOfMemory // stops the tape; `Exchange::why` has the reason
        })?;
        add_gradient(grads, &x, x.device().try_tensor_from_vec(total, *x.shape())?)
    });
    let mut tape = Some(tape);
    Ok(copies.into_iter().map(|copy| copy.put_tape(tape.take().unwrap_or_default())).collect())
}

/// The sum of all parts of all ranks, the same on every rank. On the way back, each part has the sum's gradient: nothing is
/// exchanged.
pub(super) fn reduced<S: Shape, T: Tape<f32, Cpu>>(
    exchange: &Exchange,
    parts: Vec<Tensor<S, f32, Cpu, T>>,
) -> Result<Tensor<S, f32, Cpu, T>> {
    let (mut tape, mut own) = (T::default(), Vec::new());
    for part in parts {
        let (part, of_part) = part.try_contiguous().map_err(device)?.split_tape();
        tape = tape.merge(of_part);
        own.push(part);
    }
    let values: Vec<Vec<f32>> = own.iter().map(Tensor::as_vec).collect();
    let shape = *own[0].shape();
    let total = exchange.sum(&values, shape.num_elements())?;
    let y = own[0].device().try_tensor_from_vec(total, shape).map_err(device)?;
    on_backward(&mut tape, &y, move |dy, grads| {
        own.iter().try_for_each(|part| add_gradient(grads, part, dy.clone()))
    });
    Ok(y.put_tape(tape))
}

pub(super) fn device(e: CpuError) -> Error {
    Error::Library(e.into())
}
