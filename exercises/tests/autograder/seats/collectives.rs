//! The learner's Collectives as a party to the contract.

use super::{Learner, tensor};
use crate::seat::{Seat, seat};
use exercises::collectives;
use exercises::prelude::Const;
use seams::collectives::party::{Collectives, CollectivesCase, Refusal, Reply};
use seams::with_collectives_size;

/// The seat of Collectives. With a task about a property, `None` becomes `Some(|party| collectives::property(party))`.
pub const SEAT: Seat = seat!("collectives", dyn Collectives, None);

impl Collectives for Learner {
    fn forward(&self, case: &CollectivesCase) -> Reply<Vec<f32>> {
        self.may("forward")?;
        let [b, s, h] = case.shape;
        with_collectives_size!(h, |H| {
            let y = collectives::Collectives::<H>::new().forward(tensor(&case.x, (b, s, Const::<H>)));
            Ok(y.as_vec())
        }, _ => Err(Refusal::not_compiled("this hidden size")))
    }
}
