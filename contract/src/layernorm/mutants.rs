//! Mutants of LayerNorm.

use crate::graded_cases::Draw;
use crate::laws::widen;
use crate::layernorm::interface::*;
use crate::layernorm::menu::{LARGE, LAYERNORM};
use crate::mutants::mixer::{Axes, Mixed};
use crate::mutants::way::{BACK_TRACED, Call, NotAsked, OF_GRADIENTS, Way};
use crate::mutants::{Said, answered};

type Norm = dyn LayerNorm;

/// What their conditions are about.
pub const AXES: Axes = Axes {
    calls: &["forward", "backward"],
    not_asked: &[
        NotAsked {
            calls: &["forward"],
            ways: &[Way::UsedTwice, Way::Continued],
            why: OF_GRADIENTS,
        },
        NotAsked {
            calls: &["forward", "backward"],
            ways: &[Way::Refusal, Way::Words, Way::AfterRefusal],
            why: "LayerNorm refuses nothing",
        },
        NotAsked { calls: &["backward"], ways: &[Way::Traced], why: BACK_TRACED },
    ],
    parts: &["b", "s", "h"],
    sizes: &["b", "s"],
    types: &["h"],
    quantities: &[],
};

fn axes(case: &LayerNormCase) -> [(&'static str, usize); 3] {
    let [b, s, h] = case.shape;
    [("b", b), ("s", s), ("h", h)]
}

impl LayerNorm for Mixed<Norm> {
    fn forward_in(&self, manner: Manner, case: &LayerNormCase) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&Call::of("forward", axes(case)).asked(manner).with(&case.x));
        let ask = |norm: &Norm| norm.forward_in(manner, case);
        turn.values(&axes(case), || ask(&*self.right), || ask(&*self.wrong))
    }

    fn backward_in(
        &self,
        manner: Manner,
        case: &LayerNormCase,
        dy: &[f32],
    ) -> Reply<LayerNormGrads> {
        let turn =
            self.mixer.turn(&Call::of("backward", axes(case)).asked(manner).with(&case.x).with(dy));
        let [right, wrong] =
            [&self.right, &self.wrong].map(|norm| norm.backward_in(manner, case, dy));
        let part = |axes: &[_], of: fn(LayerNormGrads) -> Vec<f32>| {
            turn.values(axes, || right.clone().map(of), || wrong.clone().map(of))
        };
        Ok(LayerNormGrads {
            dx: part(&axes(case), |grads| grads.dx)?,
            dgamma: part(&axes(case)[2..], |grads| grads.dgamma)?,
            dbeta: part(&axes(case)[2..], |grads| grads.dbeta)?,
        })
    }
}

/// Answers to random questions.
pub fn fuzz(norm: &Norm, mut draw: Draw) -> Vec<Said> {
    // A norm may have its size in its type, and is compiled for these.
    let menu = [&LAYERNORM[..], &LARGE[..1]].concat();
    let shape = [1 + draw.below(5), 1 + draw.below(9), menu[draw.below(menu.len())].0];
    let n: usize = shape.iter().product();
    let (scale, far) = ([1e-3, 1.0, 300.0][draw.below(3)], [0.0, 1.0, 64.0][draw.below(3)]);
    let mut x: Vec<f32> = draw.values(n).iter().map(|x| (x + far) * scale).collect();
    if draw.below(4) == 0 {
        x[draw.below(n)] = [0.0, f32::NAN, 1e-40][draw.below(3)];
    }
    let eps = [1e-6, 1e-3, 0.1, 1.0][draw.below(4)];
    let (gamma, beta) = (draw.values(shape[2]), draw.values(shape[2]));
    let case = LayerNormCase { shape, eps, gamma, beta, x };
    let dy = draw.values(n);
    let manner = [Manner::Plain, Manner::Again][draw.below(2)];
    let grads = || {
        let LayerNormGrads { dx, dgamma, dbeta } = norm.backward_in(manner, &case, &dy)?;
        Ok(widen(&[dx, dgamma, dbeta].concat()))
    };
    vec![answered(|| Ok(widen(&norm.forward_in(manner, &case)?))), answered(grads)]
}
