//! The learner's Rotations as a party to the contract.

use super::{Learner, tensor};
use crate::seat::{Seat, seat};
use exercises::prelude::Const;
use exercises::rotations;
use seams::rotations::party::{Refusal, Reply, Rotations, RotationsCase};
use seams::with_rotations_size;

/// The seat of Rotations. With a task about a property, `None` becomes `Some(|party| rotations::property(party))`.
pub const SEAT: Seat = seat!("rotations", dyn Rotations, None);

impl Rotations for Learner {
    fn forward(&self, case: &RotationsCase) -> Reply<Vec<f32>> {
        self.may("forward")?;
        let [b, s, h] = case.shape;
        with_rotations_size!(h, |H| {
            let y = rotations::Rotations::<H>::new().forward(tensor(&case.x, (b, s, Const::<H>)));
            Ok(y.as_vec())
        }, _ => Err(Refusal::not_compiled("this hidden size")))
    }
}
