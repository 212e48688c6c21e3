//! The learner's {Type} as an implementation of the contract.

use super::{Learner, tensor};
use exercises::prelude::Const;
use exercises::{slug};
use interfaces::with_{slug}_size;
use interfaces::{slug}::interface::{Refusal, Reply, {Type}, {Type}Case};

impl {Type} for Learner {
    fn forward(&self, case: &{Type}Case) -> Reply<Vec<f32>> {
        self.may("forward")?;
        let [b, s, h] = case.shape;
        with_{slug}_size!(h, |H| {
            let y = {slug}::{Type}::<H>::new().forward(tensor(&case.x, (b, s, Const::<H>)));
            Ok(y.as_vec())
        }, _ => Err(Refusal::not_compiled("this hidden size")))
    }
}
