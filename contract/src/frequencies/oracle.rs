//! StretchedRope. TO DO: the formula in one line.

use crate::frequencies::party::{Refusal, Reply, StretchedRope, StretchedRopeCase};
use crate::oracle::{Loops, Oracle};
use std::rc::Rc;

/// The steps of StretchedRope. A bug writes one of them wrong, so make them small.
pub trait StretchedRopeLoops {
    /// Element `i` of the result, counted in row-major order.
    fn element(&self, case: &StretchedRopeCase, i: usize) -> f64 {
        todo!("the formula in f64 loops: element {i} of the result for {case}")
    }

    /// Refuses values that do not fill their shape.
    fn check(&self, case: &StretchedRopeCase) -> Reply<()> {
        let StretchedRopeCase { shape, x } = case;
        if x.len() == shape.iter().product::<usize>() {
            return Ok(());
        }
        Err(Refusal::new(format!("x must have shape {shape:?}, got {} values", x.len())))
    }
}

impl StretchedRopeLoops for Oracle {}

/// The party of some loops.
pub fn party(loops: impl StretchedRopeLoops + 'static) -> Box<dyn StretchedRope> {
    Box::new(Loops::<dyn StretchedRopeLoops>(Rc::new(loops)))
}

impl StretchedRope for Loops<dyn StretchedRopeLoops> {
    fn forward(&self, case: &StretchedRopeCase) -> Reply<Vec<f32>> {
        self.0.check(case)?;
        Ok((0..case.x.len()).map(|i| self.0.element(case, i) as f32).collect())
    }
}
