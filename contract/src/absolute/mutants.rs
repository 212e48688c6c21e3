//! Mutants of absolute positions.

use crate::absolute::interface::*;
use crate::graded_cases::Draw;
use crate::laws::widen;
use crate::mutants::mixer::{Axes, Mixed, Turn};
use crate::mutants::way::{
    BACK_TRACED, Call, FORWARD_REFUSES, NotAsked, OF_GRADIENTS, OF_TENSORS, Way,
};
use crate::mutants::{Said, answered};
use std::cell::LazyCell;
use std::ops::Range;

type Positions = dyn AbsolutePositions;

/// What their conditions are about.
pub const AXES: Axes = Axes {
    calls: &[
        "table",
        "shift",
        "add_sinusoids",
        "sinusoids_backward",
        "add_learned",
        "learned_backward",
        "add_sinusoids_at",
        "add_learned_at",
        "learned_backward_at",
    ],
    not_asked: &[
        NotAsked {
            calls: &["table", "shift"],
            ways: &OF_TENSORS,
            why: "it takes numbers, and keeps nothing",
        },
        NotAsked {
            calls: &["table", "shift"],
            ways: &[Way::Special, Way::Words, Way::AfterRefusal],
            why: "it takes numbers, and keeps nothing; bad ones are refused, in any words",
        },
        NotAsked {
            calls: &["add_sinusoids", "add_sinusoids_at"],
            ways: &[Way::Words],
            why: "a bad size is refused, in any words",
        },
        NotAsked {
            calls: &["add_sinusoids", "add_learned", "add_sinusoids_at", "add_learned_at"],
            ways: &[Way::UsedTwice, Way::Continued],
            why: OF_GRADIENTS,
        },
        NotAsked {
            calls: &[
                "add_sinusoids",
                "sinusoids_backward",
                "add_learned",
                "learned_backward",
                "add_sinusoids_at",
                "add_learned_at",
                "learned_backward_at",
            ],
            ways: &[Way::Cloned, Way::AfterRefusal],
            why: "it is a function: there is nothing to clone, and nothing is kept",
        },
        NotAsked {
            calls: &["sinusoids_backward", "learned_backward", "learned_backward_at"],
            ways: &[Way::Traced],
            why: BACK_TRACED,
        },
        NotAsked {
            calls: &["sinusoids_backward", "learned_backward", "learned_backward_at"],
            ways: &[Way::Refusal, Way::Words],
            why: FORWARD_REFUSES,
        },
    ],
    parts: &["b", "s", "h", "r"],
    sizes: &["b", "s", "h"],
    types: &[],
    quantities: &[
        ("position", &[1, 2, 3, 4, 6]),
        ("steps", &[1, 2, 3, 4, 6]),
        ("rows", &[1, 2, 3, 6]),
    ],
};

fn of_sinusoids(name: &'static str, case: &SinusoidCase) -> Call {
    let [b, s, h] = case.shape;
    Call::of(name, [("b", b), ("s", s), ("h", h), ("position", case.offset)]).with(&case.x)
}

fn of_learned(name: &'static str, case: &LearnedCase) -> Call {
    let [b, s, h] = case.shape;
    let sizes =
        [("b", b), ("s", s), ("h", h), ("position", case.offset), ("rows", case.max_seq_len)];
    Call::of(name, sizes).with(&case.x)
}

/// The same, with a position for each token.
fn at(call: Call, position_ids: &[usize]) -> Call {
    let last = position_ids.iter().max().copied().unwrap_or(0);
    let others = call.sizes.into_iter().filter(|(name, _)| *name != "position");
    Call { sizes: others.chain([("position", last)]).collect(), ..call }
}

/// The axes of tokens.
fn axes([b, s, h]: [usize; 3]) -> [(&'static str, usize); 3] {
    [("b", b), ("s", s), ("h", h)]
}

impl AbsolutePositions for Mixed<Positions> {
    fn table(&self, h: usize, base: f64, positions: Range<usize>) -> Reply<Vec<f32>> {
        let sizes = [("s", positions.len()), ("h", h), ("position", positions.start)];
        let turn = self.mixer.turn(&Call::of("table", sizes));
        let ask = |absolute: &Positions| absolute.table(h, base, positions.clone());
        turn.values(&[("s", positions.len()), ("h", h)], || ask(&*self.right), || ask(&*self.wrong))
    }

    fn shift(&self, h: usize, base: f64, steps: usize) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&Call::of("shift", [("h", h), ("steps", steps)]));
        let ask = |absolute: &Positions| absolute.shift(h, base, steps);
        turn.values(&[("r", h), ("h", h)], || ask(&*self.right), || ask(&*self.wrong))
    }

    fn add_sinusoids_in(&self, manner: Manner, case: &SinusoidCase) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&of_sinusoids("add_sinusoids", case).asked(manner));
        let ask = |absolute: &Positions| absolute.add_sinusoids_in(manner, case);
        turn.values(&axes(case.shape), || ask(&*self.right), || ask(&*self.wrong))
    }

    fn sinusoids_backward_in(
        &self,
        manner: Manner,
        case: &SinusoidCase,
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        let turn =
            self.mixer.turn(&of_sinusoids("sinusoids_backward", case).asked(manner).with(dy));
        let ask = |absolute: &Positions| absolute.sinusoids_backward_in(manner, case, dy);
        turn.values(&axes(case.shape), || ask(&*self.right), || ask(&*self.wrong))
    }

    fn add_learned_in(&self, manner: Manner, case: &LearnedCase) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&of_learned("add_learned", case).asked(manner));
        let ask = |absolute: &Positions| absolute.add_learned_in(manner, case);
        turn.values(&axes(case.shape), || ask(&*self.right), || ask(&*self.wrong))
    }

    fn learned_backward_in(
        &self,
        manner: Manner,
        case: &LearnedCase,
        dy: &[f32],
    ) -> Reply<LearnedGrads> {
        let turn = self.mixer.turn(&of_learned("learned_backward", case).asked(manner).with(dy));
        self.gradients(turn, case, &|absolute| absolute.learned_backward_in(manner, case, dy))
    }

    fn add_sinusoids_at(
        &self,
        manner: Manner,
        case: &SinusoidCase,
        position_ids: &[usize],
    ) -> Reply<Vec<f32>> {
        let call = at(of_sinusoids("add_sinusoids_at", case).asked(manner), position_ids);
        let ask = |absolute: &Positions| absolute.add_sinusoids_at(manner, case, position_ids);
        let turn = self.mixer.turn(&call);
        turn.values(&axes(case.shape), || ask(&*self.right), || ask(&*self.wrong))
    }

    fn add_learned_at(
        &self,
        manner: Manner,
        case: &LearnedCase,
        position_ids: &[usize],
    ) -> Reply<Vec<f32>> {
        let call = at(of_learned("add_learned_at", case).asked(manner), position_ids);
        let ask = |absolute: &Positions| absolute.add_learned_at(manner, case, position_ids);
        let turn = self.mixer.turn(&call);
        turn.values(&axes(case.shape), || ask(&*self.right), || ask(&*self.wrong))
    }

    fn learned_backward_at(
        &self,
        manner: Manner,
        case: &LearnedCase,
        position_ids: &[usize],
        dy: &[f32],
    ) -> Reply<LearnedGrads> {
        let call = of_learned("learned_backward_at", case).asked(manner).with(dy);
        let turn = self.mixer.turn(&at(call, position_ids));
        self.gradients(turn, case, &|absolute| {
            absolute.learned_backward_at(manner, case, position_ids, dy)
        })
    }
}

impl Mixed<Positions> {
    /// The gradients of one of both, or of one here and of the other there.
    fn gradients(
        &self,
        turn: Turn,
        case: &LearnedCase,
        ask: &dyn Fn(&Positions) -> Reply<LearnedGrads>,
    ) -> Reply<LearnedGrads> {
        let [right, wrong] =
            [&self.right, &self.wrong].map(|absolute| LazyCell::new(move || ask(&**absolute)));
        let part = |axes: &[_], of: fn(LearnedGrads) -> Vec<f32>| {
            turn.values(axes, || right.clone().map(of), || wrong.clone().map(of))
        };
        let of_table = [("r", case.max_seq_len), ("h", case.shape[2])];
        Ok(LearnedGrads {
            dx: part(&axes(case.shape), |grads| grads.dx)?,
            dtable: part(&of_table, |grads| grads.dtable)?,
        })
    }
}

/// Answers to random questions.
pub fn fuzz(absolute: &Positions, mut draw: Draw) -> Vec<Said> {
    let h = 2 * (1 + draw.below(40));
    let shape = [1 + draw.below(5), 1 + draw.below(9), h];
    let n: usize = shape.iter().product();
    let base = [100.0, 10_000.0, 500_000.0][draw.below(3)];
    // Of any size up to 2¹¹: as many small ones as large ones.
    let far = |draw: &mut Draw| draw.bits() as usize >> (63 - draw.below(11));
    let offset = far(&mut draw);
    let steps = far(&mut draw);
    let mut x = draw.values(n);
    if draw.below(4) == 0 {
        x[draw.below(n)] = [0.0, f32::NAN, 1e-40][draw.below(3)];
    }
    let dy = draw.values(n);
    let manner = [Manner::Plain, Manner::Again][draw.below(2)];
    let sinusoids = SinusoidCase { shape, base, offset, x: x.clone() };
    let offset = draw.below(70);
    let max_seq_len = offset + shape[1] + draw.below(9);
    let table = draw.values(max_seq_len * h);
    let good = LearnedCase { shape, max_seq_len, table, offset, x };
    let bad = LearnedCase { offset: max_seq_len + draw.below(70), ..good.clone() };
    let grads = || absolute.learned_backward_in(manner, &good, &dy);
    let ids: Vec<usize> = (0..n / h).map(|_| draw.below(max_seq_len)).collect();
    let mut past = ids.clone();
    past[draw.below(n / h)] += max_seq_len;
    let grads_at = || absolute.learned_backward_at(manner, &good, &ids, &dy);
    vec![
        answered(|| Ok(widen(&absolute.table(h, base, steps..steps + 3)?))),
        answered(|| Ok(widen(&absolute.shift(h, base, steps)?))),
        answered(|| Ok(widen(&absolute.add_sinusoids_in(manner, &sinusoids)?))),
        answered(|| Ok(widen(&absolute.sinusoids_backward_in(manner, &sinusoids, &dy)?))),
        answered(|| Ok(widen(&absolute.add_learned_in(manner, &good)?))),
        answered(|| Ok(widen(&absolute.add_learned_in(manner, &bad)?))),
        answered(|| Ok(widen(&grads()?.dx))),
        answered(|| Ok(widen(&grads()?.dtable))),
        answered(|| Ok(widen(&absolute.add_sinusoids_at(manner, &sinusoids, &ids)?))),
        answered(|| Ok(widen(&absolute.add_learned_at(manner, &good, &ids)?))),
        answered(|| Ok(widen(&absolute.add_learned_at(manner, &good, &past)?))),
        answered(|| Ok(widen(&grads_at()?.dx))),
        answered(|| Ok(widen(&grads_at()?.dtable))),
    ]
}
