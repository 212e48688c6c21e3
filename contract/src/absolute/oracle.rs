//! AbsolutePositions. TO DO: the formula in one line.

use crate::absolute::party::{AbsolutePositions, AbsolutePositionsCase, Refusal, Reply};
use crate::oracle::{Loops, Oracle};
use std::rc::Rc;

/// The steps of AbsolutePositions. A bug writes one of them wrong, so make them small.
pub trait AbsolutePositionsLoops {
    /// Element `i` of the result, counted in row-major order.
    fn element(&self, case: &AbsolutePositionsCase, i: usize) -> f64 {
        todo!("the formula in f64 loops: element {i} of the result for {case}")
    }

    /// Refuses values that do not fill their shape.
    fn check(&self, case: &AbsolutePositionsCase) -> Reply<()> {
        let AbsolutePositionsCase { shape, x } = case;
        if x.len() == shape.iter().product::<usize>() {
            return Ok(());
        }
        Err(Refusal::new(format!("x must have shape {shape:?}, got {} values", x.len())))
    }
}

impl AbsolutePositionsLoops for Oracle {}

/// The party of some loops.
pub fn party(loops: impl AbsolutePositionsLoops + 'static) -> Box<dyn AbsolutePositions> {
    Box::new(Loops::<dyn AbsolutePositionsLoops>(Rc::new(loops)))
}

impl AbsolutePositions for Loops<dyn AbsolutePositionsLoops> {
    fn forward(&self, case: &AbsolutePositionsCase) -> Reply<Vec<f32>> {
        self.0.check(case)?;
        Ok((0..case.x.len()).map(|i| self.0.element(case, i) as f32).collect())
    }
}
