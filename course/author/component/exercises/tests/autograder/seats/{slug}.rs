//! The learner's {Type} as a party to the contract.

use super::{Learner, Seat, tensor};
use crate::types::{By, Rule};
use contract::component::Component;
use contract::grade::{by_invariants, refusal_of};
use contract::{slug}::party::{Refusal, Reply, {Type}, {Type}Case};
use contract::with_{slug}_size;
use exercises::prelude::Const;
use exercises::{slug};

/// The seat of {Type}.
pub const SEAT: Seat = Seat {
    slug: <dyn {Type}>::SLUG,
    invariants: |task, learner, run| by_invariants::<dyn {Type}>(task, learner, run),
    // With a task about a property, this is `|party| {slug}::property(party)`.
    property: |shown| refusal_of::<dyn {Type}>(shown, &|_| Err("{slug} has no such task".to_string())),
    types: Some(Rule {
        imports: &["exercises::{slug}::{Type}", "exercises::prelude::*"],
        sizes: || (0..70).map(|h| vec![h]).collect(),
        fits: |sizes| sizes[0] > 0,
        function: |sizes| format!("() {{ let _: fn() -> _ = {Type}::<{}>::new; }}", sizes[0]),
        refused_by: By::Assertion,
        keeps: None,
    }),
};

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
