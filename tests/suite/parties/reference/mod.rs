//! The library as a party: plain values in, plain values out.
//!
//! The free functions have sizes at run time and are asked for all of them. The modules have sizes
//! in their types; they are asked for the sizes of the contract's menu.

mod embedding;
mod layernorm;
mod norm;
mod parallel;
mod rope;

use crate::parties::Seat;
use crate::support::*;
use contract::party::Refusal;
use quadrivium::Error;
use quadrivium::tensor::*;

/// A seat for each component of the contract's registry.
pub static SEATS: &[Seat<Library>] =
    &[norm::SEAT, embedding::SEAT, parallel::SEAT, rope::SEAT, layernorm::SEAT];

/// The library.
pub struct Library;

fn refused(error: Error) -> Refusal {
    Refusal::new(error)
}

/// The gradient of `of`; zeros if none reached it.
fn gradient<S: Shape>(grads: &mut Gradients<f32, Dev>, of: &Tensor<S, f32, Dev>) -> Vec<f32> {
    grads.try_alloc_for(of).unwrap();
    grads.get(of).as_vec()
}
