//! Mutants of more rotations.

use crate::graded_cases::Draw;
use crate::laws::widen;
use crate::mutants::mixer::{Axes, Mixed};
use crate::mutants::way::{BACK_TRACED, Call, NotAsked, OF_GRADIENTS, OF_TENSORS, Way};
use crate::mutants::{Said, answered};
use crate::rotations::interface::*;
use crate::rotations::menu::{HEAD_DIM, SECTIONS};
use std::cell::LazyCell;

type Any = dyn Rotations;

const CALLS: &[&str] = &["xpos", "axial", "axial_backward", "linear", "linear_backward", "running"];

/// What their conditions are about.
pub const AXES: Axes = Axes {
    calls: CALLS,
    not_asked: &[
        NotAsked {
            calls: CALLS,
            ways: &[Way::Refusal, Way::Words, Way::AfterRefusal],
            why: "no task says that something is refused: sections that do not fill a head do not compile",
        },
        NotAsked {
            calls: &["running"],
            ways: &OF_TENSORS,
            why: "it takes lists, and a state of its own",
        },
        NotAsked {
            calls: &["xpos", "axial", "linear"],
            ways: &[Way::UsedTwice, Way::Continued],
            why: OF_GRADIENTS,
        },
        NotAsked {
            calls: &["axial_backward", "linear_backward"],
            ways: &[Way::Traced],
            why: BACK_TRACED,
        },
    ],
    parts: &["b", "s", "n", "d"],
    sizes: &["b", "s", "n", "pieces"],
    types: &["d"],
    quantities: &[("position", &[1, 3, 6, 9, 12]), ("coordinate", &[1, 3, 6, 9, 16])],
};

fn axes([b, s, n, d]: [usize; 4]) -> [(&'static str, usize); 4] {
    [("b", b), ("s", s), ("n", n), ("d", d)]
}

fn of_linear(name: &'static str, case: &LinearCase) -> Call {
    let mut call = Call::of(name, axes(case.shape)).with(&case.q).with(&case.k).with(&case.v);
    call.sizes.push(("position", case.offset));
    call
}

fn of_axial(name: &'static str, case: &AxialCase) -> Call {
    let mut call = Call::of(name, axes(case.shape)).with(&case.x);
    call.sizes.push(("coordinate", case.coordinates.iter().copied().max().unwrap_or(0)));
    call
}

impl Rotations for Mixed<Any> {
    fn xpos_in(&self, manner: Manner, case: &XPosCase) -> Reply<TurnedPair> {
        let mut call = Call::of("xpos", axes(case.shape)).asked(manner).with(&case.q).with(&case.k);
        call.sizes.push(("position", case.offset));
        let turn = self.mixer.turn(&call);
        let [right, wrong] = [&self.right, &self.wrong]
            .map(|rotations| LazyCell::new(move || rotations.xpos_in(manner, case)));
        let part = |of: fn(TurnedPair) -> Vec<f32>| {
            turn.values(&axes(case.shape), || right.clone().map(of), || wrong.clone().map(of))
        };
        Ok(TurnedPair { q: part(|pair| pair.q)?, k: part(|pair| pair.k)? })
    }

    fn axial_in(&self, manner: Manner, case: &AxialCase) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&of_axial("axial", case).asked(manner));
        let ask = |rotations: &Any| rotations.axial_in(manner, case);
        turn.values(&axes(case.shape), || ask(&*self.right), || ask(&*self.wrong))
    }

    fn axial_backward_in(&self, manner: Manner, case: &AxialCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&of_axial("axial_backward", case).asked(manner).with(dy));
        let ask = |rotations: &Any| rotations.axial_backward_in(manner, case, dy);
        turn.values(&axes(case.shape), || ask(&*self.right), || ask(&*self.wrong))
    }

    fn linear_in(&self, manner: Manner, case: &LinearCase) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&of_linear("linear", case).asked(manner));
        let ask = |rotations: &Any| rotations.linear_in(manner, case);
        turn.values(&axes(case.shape), || ask(&*self.right), || ask(&*self.wrong))
    }

    fn linear_backward_in(
        &self,
        manner: Manner,
        case: &LinearCase,
        dy: &[f32],
    ) -> Reply<LinearGrads> {
        let turn = self.mixer.turn(&of_linear("linear_backward", case).asked(manner).with(dy));
        let [right, wrong] = [&self.right, &self.wrong]
            .map(|rotations| LazyCell::new(move || rotations.linear_backward_in(manner, case, dy)));
        let part = |of: fn(LinearGrads) -> Vec<f32>| {
            turn.values(&axes(case.shape), || right.clone().map(of), || wrong.clone().map(of))
        };
        Ok(LinearGrads {
            dq: part(|grads| grads.dq)?,
            dk: part(|grads| grads.dk)?,
            dv: part(|grads| grads.dv)?,
        })
    }

    fn running(&self, case: &LinearCase, pieces: &[usize]) -> Reply<Vec<f32>> {
        let mut call = of_linear("running", case);
        call.sizes.push(("pieces", pieces.len()));
        let turn = self.mixer.turn(&call);
        let ask = |rotations: &Any| rotations.running(case, pieces);
        turn.values(&axes(case.shape), || ask(&*self.right), || ask(&*self.wrong))
    }
}

/// Answers to random questions.
pub fn fuzz(rotations: &Any, mut draw: Draw) -> Vec<Said> {
    let planes = SECTIONS[draw.below(SECTIONS.len())].to_vec();
    let (b, s, n) = (1 + draw.below(3), 1 + draw.below(9), 1 + draw.below(3));
    let manner = [Manner::Plain, Manner::Again][draw.below(2)];
    let shape = [b, s, n, 2 * planes.iter().sum::<usize>()];
    let size: usize = shape.iter().product();
    let base = [100.0, 10_000.0][draw.below(2)];
    let sections = [Sections::Anew, Sections::OneList][draw.below(2)];
    let reach = [3, 20, 1000][draw.below(3)];
    let coordinates = (0..s * planes.len()).map(|_| draw.below(reach)).collect();
    let (x, dy) = (draw.values(size), draw.values(size));
    let axial = AxialCase { shape, planes, sections, base, coordinates, x };

    let shape = [b, s, n, HEAD_DIM[draw.below(HEAD_DIM.len())]];
    let size: usize = shape.iter().product();
    let (q, k) = (draw.values(size), draw.values(size));
    let (center, offset) = (draw.below(500), draw.below(2000));
    let xpos = XPosCase { shape, base, scale_base: 512.0, center, offset, q, k };
    let [q, k] = [0, 1].map(|_| draw.values(size).iter().map(|x| x / 2.0).collect());
    let v = draw.values(size);
    let turns = draw.below(3) > 0;
    let linear = LinearCase { shape, base: turns.then_some(base), offset, q, k, v };
    let back = draw.values(size);
    let cut = draw.below(s);
    let pieces = if cut == 0 { vec![s] } else { vec![cut, s - cut] };
    let both = || {
        let TurnedPair { q, k } = rotations.xpos_in(manner, &xpos)?;
        Ok(widen(&[q, k].concat()))
    };
    let grads = || {
        let LinearGrads { dq, dk, dv } = rotations.linear_backward_in(manner, &linear, &back)?;
        Ok(widen(&[dq, dk, dv].concat()))
    };
    vec![
        answered(both),
        answered(|| Ok(widen(&rotations.axial_in(manner, &axial)?))),
        answered(|| Ok(widen(&rotations.axial_backward_in(manner, &axial, &dy)?))),
        answered(|| Ok(widen(&rotations.linear_in(manner, &linear)?))),
        answered(grads),
        answered(|| Ok(widen(&rotations.running(&linear, &pieces)?))),
    ]
}
