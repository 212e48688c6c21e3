//! The learner's AbsolutePositions as a party to the contract.

use super::{Learner, tensor};
use crate::seat::{Seat, seat};
use exercises::absolute;
use exercises::prelude::Const;
use seams::absolute::party::{AbsolutePositions, AbsolutePositionsCase, Refusal, Reply};
use seams::with_absolute_size;

/// The seat of AbsolutePositions. With a task about a property, `None` becomes `Some(|party| absolute::property(party))`.
pub const SEAT: Seat = seat!("absolute", dyn AbsolutePositions, None);

impl AbsolutePositions for Learner {
    fn forward(&self, case: &AbsolutePositionsCase) -> Reply<Vec<f32>> {
        self.may("forward")?;
        let [b, s, h] = case.shape;
        with_absolute_size!(h, |H| {
            let y = absolute::AbsolutePositions::<H>::new().forward(tensor(&case.x, (b, s, Const::<H>)));
            Ok(y.as_vec())
        }, _ => Err(Refusal::not_compiled("this hidden size")))
    }
}
