//! ScoreBiases. TO DO: the formula in one line.

use crate::biases::party::{Refusal, Reply, ScoreBiases, ScoreBiasesCase};
use crate::oracle::{Loops, Oracle};
use std::rc::Rc;

/// The steps of ScoreBiases. A bug writes one of them wrong, so make them small.
pub trait ScoreBiasesLoops {
    /// Element `i` of the result, counted in row-major order.
    fn element(&self, case: &ScoreBiasesCase, i: usize) -> f64 {
        todo!("the formula in f64 loops: element {i} of the result for {case}")
    }

    /// Refuses values that do not fill their shape.
    fn check(&self, case: &ScoreBiasesCase) -> Reply<()> {
        let ScoreBiasesCase { shape, x } = case;
        if x.len() == shape.iter().product::<usize>() {
            return Ok(());
        }
        Err(Refusal::new(format!("x must have shape {shape:?}, got {} values", x.len())))
    }
}

impl ScoreBiasesLoops for Oracle {}

/// The party of some loops.
pub fn party(loops: impl ScoreBiasesLoops + 'static) -> Box<dyn ScoreBiases> {
    Box::new(Loops::<dyn ScoreBiasesLoops>(Rc::new(loops)))
}

impl ScoreBiases for Loops<dyn ScoreBiasesLoops> {
    fn forward(&self, case: &ScoreBiasesCase) -> Reply<Vec<f32>> {
        self.0.check(case)?;
        Ok((0..case.x.len()).map(|i| self.0.element(case, i) as f32).collect())
    }
}
