//! The learner's StretchedRope as a party to the contract.

use super::{Learner, tensor};
use crate::seat::{Seat, seat};
use exercises::frequencies;
use exercises::prelude::Const;
use seams::frequencies::party::{Refusal, Reply, StretchedRope, StretchedRopeCase};
use seams::with_frequencies_size;

/// The seat of StretchedRope. With a task about a property, `None` becomes `Some(|party| frequencies::property(party))`.
pub const SEAT: Seat = seat!("frequencies", dyn StretchedRope, None);

impl StretchedRope for Learner {
    fn forward(&self, case: &StretchedRopeCase) -> Reply<Vec<f32>> {
        self.may("forward")?;
        let [b, s, h] = case.shape;
        with_frequencies_size!(h, |H| {
            let y = frequencies::StretchedRope::<H>::new().forward(tensor(&case.x, (b, s, Const::<H>)));
            Ok(y.as_vec())
        }, _ => Err(Refusal::not_compiled("this hidden size")))
    }
}
