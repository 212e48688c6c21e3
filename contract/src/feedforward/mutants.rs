//! Mutants of SwiGLU.

use crate::feedforward::interface::*;
use crate::feedforward::menu::{FEEDFORWARD, LARGE};
use crate::graded_cases::Draw;
use crate::laws::widen;
use crate::mutants::mixer::{Axes, Mixed};
use crate::mutants::way::{BACK_TRACED, Call, NotAsked, OF_GRADIENTS, OF_TENSORS, Way};
use crate::mutants::{Said, answered};

type Network = dyn SwiGlu;

/// What their conditions are about.
pub const AXES: Axes = Axes {
    calls: &["size", "forward", "backward"],
    not_asked: &[
        NotAsked { calls: &["size"], ways: &OF_TENSORS, why: "it takes three numbers" },
        NotAsked { calls: &["size"], ways: &[Way::Special], why: "it takes whole numbers" },
        NotAsked {
            calls: &["forward"],
            ways: &[Way::UsedTwice, Way::Continued],
            why: OF_GRADIENTS,
        },
        NotAsked {
            calls: &["size", "forward", "backward"],
            ways: &[Way::Refusal, Way::Words, Way::AfterRefusal],
            why: "no task says that something is refused",
        },
        NotAsked { calls: &["backward"], ways: &[Way::Traced], why: BACK_TRACED },
    ],
    parts: &["b", "s", "h", "f"],
    sizes: &["b", "s"],
    types: &["h", "f"],
    quantities: &[("width", &[3, 6, 8, 12, 16]), ("multiple", &[1, 6, 8, 12])],
};

fn call(name: &'static str, case: &SwiGluCase) -> Call {
    let [b, s, h] = case.shape;
    Call::of(name, [("b", b), ("s", s), ("h", h), ("f", case.ffn_hidden_size)]).with(&case.x)
}

impl SwiGlu for Mixed<Network> {
    fn size(&self, case: &SizeCase) -> Reply<usize> {
        let sizes = [("width", case.hidden_size), ("multiple", case.multiple_of)];
        let turn = self.mixer.turn(&Call::of("size", sizes));
        turn.whole(|| self.right.size(case), || self.wrong.size(case))
    }

    fn forward_in(&self, manner: Manner, case: &SwiGluCase) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&call("forward", case).asked(manner));
        let [b, s, h] = case.shape;
        let ask = |swiglu: &Network| swiglu.forward_in(manner, case);
        let axes = [("b", b), ("s", s), ("h", h)];
        turn.values(&axes, || ask(&*self.right), || ask(&*self.wrong))
    }

    fn backward_in(&self, manner: Manner, case: &SwiGluCase, dy: &[f32]) -> Reply<SwiGluGrads> {
        let turn = self.mixer.turn(&call("backward", case).asked(manner).with(dy));
        let [right, wrong] =
            [&self.right, &self.wrong].map(|swiglu| swiglu.backward_in(manner, case, dy));
        let part = |axes: &[_], of: fn(SwiGluGrads) -> Vec<f32>| {
            turn.values(axes, || right.clone().map(of), || wrong.clone().map(of))
        };
        let ([b, s, h], f) = (case.shape, case.ffn_hidden_size);
        Ok(SwiGluGrads {
            dx: part(&[("b", b), ("s", s), ("h", h)], |grads| grads.dx)?,
            dgate: part(&[("f", f), ("h", h)], |grads| grads.dgate)?,
            dup: part(&[("f", f), ("h", h)], |grads| grads.dup)?,
            ddown: part(&[("h", h), ("f", f)], |grads| grads.ddown)?,
        })
    }
}

/// Answers to random questions.
pub fn fuzz(swiglu: &Network, mut draw: Draw) -> Vec<Said> {
    // A network may have its sizes in its type, and is compiled for these.
    let menu = [&FEEDFORWARD[..], &LARGE[..]].concat();
    let (h, f) = menu[draw.below(menu.len())];
    let shape = [1 + draw.below(5), 1 + draw.below(9), h];
    let n: usize = shape.iter().product();
    let scale = [1e-3, 1.0, 30.0][draw.below(3)] / h as f32;
    let mut x: Vec<f32> = draw.values(n).iter().map(|x| x * scale).collect();
    if draw.below(4) == 0 {
        x[draw.below(n)] = [0.0, f32::NAN, 1e-40][draw.below(3)];
    }
    let (gate, up, down) = (draw.values(f * h), draw.values(f * h), draw.values(h * f));
    let case = SwiGluCase { shape, ffn_hidden_size: f, gate, up, down, x };
    let dy = draw.values(n);
    let manner = [Manner::Plain, Manner::Again][draw.below(2)];
    let multiplier = [None, Some(1.3), Some(0.25 + draw.below(8) as f64 / 4.0)][draw.below(3)];
    let hidden_size = 1 + (draw.bits() as usize >> (44 + draw.below(18)));
    let multiple_of = [1, 3, 64, 256, 1 + draw.below(5000)][draw.below(5)];
    let size = SizeCase { hidden_size, multiple_of, multiplier };
    let grads = || {
        let SwiGluGrads { dx, dgate, dup, ddown } = swiglu.backward_in(manner, &case, &dy)?;
        Ok([dx, dgate, dup, ddown].map(|values| widen(&values)))
    };
    let mut answers = vec![
        answered(|| Ok(vec![swiglu.size(&size)? as f64])),
        answered(|| Ok(widen(&swiglu.forward_in(manner, &case)?))),
    ];
    // One after the other: they differ in size.
    answers.extend((0..4).map(|nth| answered(|| Ok(grads()?[nth].clone()))));
    answers
}
