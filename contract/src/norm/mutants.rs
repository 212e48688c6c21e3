//! Mutants of GroupRMSNorm.

use crate::graded_cases::Draw;
use crate::laws::widen;
use crate::mutants::mixer::{Axes, Mixed};
use crate::mutants::way::{
    BACK_TRACED, Call, FORWARD_REFUSES, NotAsked, OF_GRADIENTS, OF_TENSORS, Way,
};
use crate::mutants::{Said, answered};
use crate::norm::interface::*;
use crate::norm::menu::{LARGE, NORM};
use crate::oracle::to_f16;

type Norm = dyn GroupRmsNorm;

/// What their conditions are about.
pub const AXES: Axes = Axes {
    calls: &["initial_gamma", "forward", "backward", "forward_half"],
    not_asked: &[
        NotAsked {
            calls: &["initial_gamma"],
            ways: &OF_TENSORS,
            why: "it takes a size, a range and a seed; each is asked twice in the plain way",
        },
        NotAsked {
            calls: &["initial_gamma"],
            ways: &[Way::Special, Way::Refusal, Way::Words, Way::AfterRefusal],
            why: "no size, range or seed is special, and none is refused",
        },
        NotAsked {
            calls: &["forward", "forward_half"],
            ways: &[Way::UsedTwice, Way::Continued],
            why: OF_GRADIENTS,
        },
        NotAsked {
            calls: &["forward_half"],
            ways: &[Way::Traced],
            why: "dfdx can't record a change of float type",
        },
        NotAsked {
            calls: &["forward_half"],
            ways: &[Way::Refusal],
            why: "the same check as in the forward pass of f32: a task about types asks for it",
        },
        NotAsked {
            calls: &["forward", "forward_half"],
            ways: &[Way::Words, Way::AfterRefusal],
            why: "a group size is refused by the compiler: there is no module to ask again, and no words",
        },
        NotAsked { calls: &["backward"], ways: &[Way::Traced], why: BACK_TRACED },
        NotAsked {
            calls: &["backward"],
            ways: &[Way::Refusal, Way::Words, Way::AfterRefusal],
            why: FORWARD_REFUSES,
        },
    ],
    parts: &["b", "s", "h"],
    sizes: &["b", "s"],
    types: &["h", "gz", "groups"],
    quantities: &[("n", &[3, 6, 8, 12, 16]), ("seed", &[16, 24, 32, 63])],
};

fn call(name: &'static str, case: &NormCase) -> Call {
    let ([b, s, h], gz) = (case.shape, case.group_size);
    Call::of(name, [("b", b), ("s", s), ("h", h), ("gz", gz), ("groups", h / gz.max(1))])
        .with(&case.x)
}

fn axes(case: &NormCase) -> [(&'static str, usize); 3] {
    let [b, s, h] = case.shape;
    [("b", b), ("s", s), ("h", h)]
}

impl GroupRmsNorm for Mixed<Norm> {
    fn initial_gamma(&self, hidden_size: usize, range: (f32, f32), seed: u64) -> Reply<Vec<f32>> {
        let ask = |norm: &Norm| norm.initial_gamma(hidden_size, range, seed);
        let turn = self
            .mixer
            .turn(&Call::of("initial_gamma", [("n", hidden_size), ("seed", seed as usize)]));
        turn.values(&[("h", hidden_size)], || ask(&*self.right), || ask(&*self.wrong))
    }

    fn forward_in(&self, manner: Manner, case: &NormCase) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&call("forward", case).asked(manner));
        let ask = |norm: &Norm| norm.forward_in(manner, case);
        turn.values(&axes(case), || ask(&*self.right), || ask(&*self.wrong))
    }

    fn backward_in(&self, manner: Manner, case: &NormCase, dy: &[f32]) -> Reply<NormGrads> {
        let turn = self.mixer.turn(&call("backward", case).asked(manner).with(dy));
        let [right, wrong] =
            [&self.right, &self.wrong].map(|norm| norm.backward_in(manner, case, dy));
        let part = |axes: &[_], of: fn(NormGrads) -> Vec<f32>| {
            turn.values(axes, || right.clone().map(of), || wrong.clone().map(of))
        };
        let dx = part(&axes(case), |grads| grads.dx)?;
        Ok(NormGrads { dx, dgamma: part(&axes(case)[2..], |grads| grads.dgamma)? })
    }

    fn forward_half_in(&self, manner: Manner, case: &NormCase) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&call("forward_half", case).asked(manner));
        let ask = |norm: &Norm| norm.forward_half_in(manner, case);
        turn.values(&axes(case), || ask(&*self.right), || ask(&*self.wrong))
    }
}

/// Answers to random questions.
pub fn fuzz(norm: &Norm, mut draw: Draw) -> Vec<Said> {
    // A norm may have its sizes in its type, and is compiled for these.
    let menu = [&NORM[..], &LARGE[..2]].concat();
    let (h, group_size) = menu[draw.below(menu.len())];
    let shape = [1 + draw.below(5), 1 + draw.below(9), h];
    let eps = [1e-6, 1e-3, 0.1, 1.0][draw.below(4)];
    let n: usize = shape.iter().product();
    let scale = [1e-3, 1.0, 300.0][draw.below(3)];
    let mut x: Vec<f32> = draw.values(n).iter().map(|x| x * scale).collect();
    if draw.below(4) == 0 {
        x[draw.below(n)] = [0.0, f32::NAN, 1e-40][draw.below(3)];
    }
    let case = NormCase { shape, group_size, eps, gamma: draw.values(shape[2]), x };
    let dy = draw.values(n);
    let half = NormCase { x: case.x.iter().map(|&x| to_f16(x.into())).collect(), ..case.clone() };
    let manner = [Manner::Plain, Manner::Again][draw.below(2)];
    let (size, seed) = (draw.below(3000), draw.bits() >> draw.below(64));
    let grads = || {
        let NormGrads { dx, dgamma } = norm.backward_in(manner, &case, &dy)?;
        Ok(widen(&[dx, dgamma].concat()))
    };
    let gamma = || Ok(widen(&norm.initial_gamma(size, (-1.0, 1.0), seed)?));
    vec![
        answered(|| Ok(widen(&norm.forward_in(manner, &case)?))),
        answered(grads),
        answered(|| Ok(widen(&norm.forward_half(&half)?))),
        answered(gamma),
    ]
}
