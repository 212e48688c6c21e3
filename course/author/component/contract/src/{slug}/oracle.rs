//! {Type}. TO DO: the formula in one line.

use crate::oracle::{Loops, Oracle};
use crate::{slug}::interface::{{Type}, {Type}Case, Refusal, Reply};
use std::rc::Rc;

/// The steps of {Type}. A bug writes one of them wrong, so make them small.
pub trait {Type}Loops {
    /// Element `i` of the result, counted in row-major order.
    fn element(&self, case: &{Type}Case, i: usize) -> f64 {
        todo!("the formula in f64 loops: element {i} of the result for {case}")
    }

    /// Refuses values that do not fill their shape.
    fn check(&self, case: &{Type}Case) -> Reply<()> {
        let {Type}Case { shape, x } = case;
        if x.len() == shape.iter().product::<usize>() {
            return Ok(());
        }
        Err(Refusal::new(format!("x must have shape {shape:?}, got {} values", x.len())))
    }
}

impl {Type}Loops for Oracle {}

/// The implementation of some loops.
pub fn implementation(loops: impl {Type}Loops + 'static) -> Box<dyn {Type}> {
    Box::new(Loops::<dyn {Type}Loops>(Rc::new(loops)))
}

impl {Type} for Loops<dyn {Type}Loops> {
    fn forward(&self, case: &{Type}Case) -> Reply<Vec<f32>> {
        self.0.check(case)?;
        Ok((0..case.x.len()).map(|i| self.0.element(case, i) as f32).collect())
    }
}
