//! Repairs of the model.

use crate::model::interface::*;
use crate::model::oracle::LlamaLoops;
use crate::oracle::Oracle;
use crate::repair::{Repair, number, same};

type Model = dyn Llama;

/// They are tried in this order.
pub static REPAIRS: &[Repair<Model>] = &[Repair { call: "sample", explain: temperature }];

/// The temperature that was used, if another one explains all draws.
fn temperature(llama: &Model) -> Option<String> {
    let case = |unit: f64, temperature| SampleCase {
        logits: vec![0.0, 1.0, 2.0, 3.0],
        temperature,
        top_k: None,
        top_p: 1.0,
        unit,
    };
    const ASKED: f64 = 0.5;
    let units = || (0..64).map(|i| (f64::from(i) + 0.5) / 64.0);
    let drawn: Option<Vec<usize>> =
        units().map(|unit| llama.sample(&case(unit, ASKED)).ok()).collect();
    let drawn = drawn?;
    let explains = |used: &f64| {
        units().zip(&drawn).all(|(unit, token)| Oracle.sampled(&case(unit, *used)) == *token)
    };
    let used = [0.25, 0.5, 1.0, 2.0, 4.0].into_iter().find(explains)?;
    let (asked, used) = (number(ASKED), (!same(used, ASKED)).then(|| number(used))?);
    Some(format!("a temperature of {asked} was taken as {used}"))
}
