//! The learner's ScoreBiases as a party to the contract.

use super::{Learner, tensor};
use crate::seat::{Seat, seat};
use exercises::biases;
use exercises::prelude::Const;
use seams::biases::party::{Refusal, Reply, ScoreBiases, ScoreBiasesCase};
use seams::with_biases_size;

/// The seat of ScoreBiases. With a task about a property, `None` becomes `Some(|party| biases::property(party))`.
pub const SEAT: Seat = seat!("biases", dyn ScoreBiases, None);

impl ScoreBiases for Learner {
    fn forward(&self, case: &ScoreBiasesCase) -> Reply<Vec<f32>> {
        self.may("forward")?;
        let [b, s, h] = case.shape;
        with_biases_size!(h, |H| {
            let y = biases::ScoreBiases::<H>::new().forward(tensor(&case.x, (b, s, Const::<H>)));
            Ok(y.as_vec())
        }, _ => Err(Refusal::not_compiled("this hidden size")))
    }
}
