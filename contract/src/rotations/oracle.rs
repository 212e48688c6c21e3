//! Rotations. TO DO: the formula in one line.

use crate::oracle::{Loops, Oracle};
use crate::rotations::party::{Refusal, Reply, Rotations, RotationsCase};
use std::rc::Rc;

/// The steps of Rotations. A bug writes one of them wrong, so make them small.
pub trait RotationsLoops {
    /// Element `i` of the result, counted in row-major order.
    fn element(&self, case: &RotationsCase, i: usize) -> f64 {
        todo!("the formula in f64 loops: element {i} of the result for {case}")
    }

    /// Refuses values that do not fill their shape.
    fn check(&self, case: &RotationsCase) -> Reply<()> {
        let RotationsCase { shape, x } = case;
        if x.len() == shape.iter().product::<usize>() {
            return Ok(());
        }
        Err(Refusal::new(format!("x must have shape {shape:?}, got {} values", x.len())))
    }
}

impl RotationsLoops for Oracle {}

/// The party of some loops.
pub fn party(loops: impl RotationsLoops + 'static) -> Box<dyn Rotations> {
    Box::new(Loops::<dyn RotationsLoops>(Rc::new(loops)))
}

impl Rotations for Loops<dyn RotationsLoops> {
    fn forward(&self, case: &RotationsCase) -> Reply<Vec<f32>> {
        self.0.check(case)?;
        Ok((0..case.x.len()).map(|i| self.0.element(case, i) as f32).collect())
    }
}
