//! Mutants of {Type}.

use crate::graded_cases::Draw;
use crate::laws::widen;
use crate::mutants::way::Call;
use crate::mutants::{Said, answered};
use crate::mutants::mixer::{Axes, Mixed};
use crate::{slug}::interface::{Reply, {Type}, {Type}Case};

/// What their conditions are about.
pub const AXES: Axes =
    Axes { calls: &["forward"], not_asked: &[], parts: &["b", "s", "h"], sizes: &["b", "s"], types: &["h"], quantities: &[] };

impl {Type} for Mixed<dyn {Type}> {
    fn forward(&self, case: &{Type}Case) -> Reply<Vec<f32>> {
        let [b, s, h] = case.shape;
        let axes = [("b", b), ("s", s), ("h", h)];
        let turn = self.mixer.turn(&Call::of("forward", axes).with(&case.x));
        turn.values(&axes, || self.right.forward(case), || self.wrong.forward(case))
    }
}

/// Answers to random questions.
pub fn fuzz(implementation: &dyn {Type}, mut draw: Draw) -> Vec<Said> {
    let shape = [1 + draw.below(5), 1 + draw.below(9), 1 + draw.below(70)];
    let x = draw.values(shape.iter().product());
    let case = {Type}Case { shape, x };
    vec![answered(|| Ok(widen(&implementation.forward(&case)?)))]
}
