//! Mutants of stretched RoPE.

use crate::frequencies::interface::*;
use crate::graded_cases::Draw;
use crate::laws::widen;
use crate::mutants::mixer::{Axes, Mixed};
use crate::mutants::way::{BACK_TRACED, Call, NotAsked, OF_GRADIENTS, OF_TENSORS, Way};
use crate::mutants::{Said, answered};
use std::cell::LazyCell;

type Any = dyn StretchedRope;

/// What their conditions are about.
pub const AXES: Axes = Axes {
    calls: &["frequencies", "forward", "backward"],
    not_asked: &[
        NotAsked {
            calls: &["frequencies"],
            ways: &OF_TENSORS,
            why: "it takes numbers; that it keeps nothing, a law asks by itself",
        },
        NotAsked { calls: &["frequencies"], ways: &[Way::Special], why: "it takes settings" },
        NotAsked {
            calls: &["forward"],
            ways: &[Way::UsedTwice, Way::Continued],
            why: OF_GRADIENTS,
        },
        NotAsked {
            calls: &["frequencies", "forward", "backward"],
            ways: &[Way::Refusal, Way::Words, Way::AfterRefusal],
            why: "no task says that something is refused",
        },
        NotAsked { calls: &["backward"], ways: &[Way::Traced], why: BACK_TRACED },
    ],
    parts: &["b", "s", "n", "d", "plane"],
    sizes: &["b", "s", "n"],
    types: &["d"],
    quantities: &[("position", &[1, 3, 6, 8]), ("length", &[3, 6, 10, 12]), ("ms", &[6, 8, 12])],
};

fn call(name: &'static str, case: &StretchedRopeCase) -> Call {
    let [b, s, n, d] = case.shape;
    Call::of(name, [("b", b), ("s", s), ("n", n), ("d", d), ("position", case.offset)])
        .with(&case.x)
}

fn trained(rule: &Stretch) -> usize {
    match rule {
        Stretch::Plain | Stretch::Interpolated { .. } | Stretch::Ntk { .. } => 0,
        Stretch::DynamicNtk { max_seq_len, .. }
        | Stretch::Yarn { max_seq_len, .. }
        | Stretch::Llama3 { max_seq_len, .. }
        | Stretch::LongRope { max_seq_len, .. } => *max_seq_len,
    }
}

impl StretchedRope for Mixed<Any> {
    fn frequencies(&self, case: &FrequenciesCase) -> Reply<Frequencies> {
        let FrequenciesCase { rule, rotary_dim, offset, seq_len, .. } = case;
        let sizes = [("d", *rotary_dim), ("length", offset + seq_len), ("ms", trained(rule))];
        let turn = self.mixer.turn(&Call::of("frequencies", sizes));
        let [right, wrong] =
            [&self.right, &self.wrong].map(|rope| LazyCell::new(move || rope.frequencies(case)));
        let list = |reply: &Reply<Frequencies>| Ok(reply.clone()?.frequencies);
        let planes = [("plane", rotary_dim / 2)];
        let frequencies = turn.values(&planes, || list(&right), || list(&wrong))?;
        let scale = turn.whole(|| Ok(right.clone()?.scale), || Ok(wrong.clone()?.scale))?;
        Ok(Frequencies { frequencies, scale })
    }

    fn forward_in(&self, manner: Manner, case: &StretchedRopeCase) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&call("forward", case).asked(manner));
        let [b, s, n, d] = case.shape;
        let ask = |rope: &Any| rope.forward_in(manner, case);
        let axes = [("b", b), ("s", s), ("n", n), ("d", d)];
        turn.values(&axes, || ask(&*self.right), || ask(&*self.wrong))
    }

    fn backward_in(
        &self,
        manner: Manner,
        case: &StretchedRopeCase,
        dy: &[f32],
    ) -> Reply<StretchedRopeGrads> {
        let turn = self.mixer.turn(&call("backward", case).asked(manner).with(dy));
        let [right, wrong] = [&self.right, &self.wrong]
            .map(|rope| LazyCell::new(move || rope.backward_in(manner, case, dy)));
        let part = |axes: &[_], of: fn(StretchedRopeGrads) -> Vec<f32>| {
            turn.values(axes, || right.clone().map(of), || wrong.clone().map(of))
        };
        let [b, s, n, d] = case.shape;
        Ok(StretchedRopeGrads {
            dx: part(&[("b", b), ("s", s), ("n", n), ("d", d)], |grads| grads.dx)?,
            dtheta: part(&[("plane", case.frequencies.len())], |grads| grads.dtheta)?,
        })
    }
}

/// Answers to random questions.
pub fn fuzz(rope: &Any, mut draw: Draw) -> Vec<Said> {
    let factor = 1.0 + draw.below(16) as f64 / 4.0;
    let max_seq_len = 64 + draw.below(4000);
    let d = 2 * (2 + draw.below(40));
    let list = |draw: &mut Draw| (0..d / 2).map(|_| 0.5 + draw.below(64) as f64 / 8.0).collect();
    let (short_factor, long_factor) = (list(&mut draw), list(&mut draw));
    let rule = match draw.below(6) {
        0 => Stretch::Interpolated { factor },
        1 => Stretch::Ntk { factor },
        2 => Stretch::DynamicNtk { factor, max_seq_len },
        3 => {
            let (beta_fast, beta_slow, truncate) = (8.0, 0.75, draw.below(2) == 0);
            Stretch::Yarn { factor, max_seq_len: 1000, beta_fast, beta_slow, truncate }
        }
        4 => {
            let (low_freq_factor, high_freq_factor) = (1.0, 2.0 + draw.below(5) as f64);
            Stretch::Llama3 { factor, max_seq_len, low_freq_factor, high_freq_factor }
        }
        _ => Stretch::LongRope { factor, max_seq_len, short_factor, long_factor },
    };
    let (offset, seq_len) = (draw.below(5000), 1 + draw.below(100));
    let base = [1000.0, 10_000.0, 500_000.0][draw.below(3)];
    let head_dim = d * (1 + draw.below(2));
    let frequencies = FrequenciesCase { rule, head_dim, rotary_dim: d, base, offset, seq_len };

    let hd = [4, 6, 8][draw.below(3)];
    let planes = if draw.below(3) == 0 { 2 } else { hd / 2 };
    let shape = [1 + draw.below(3), 1 + draw.below(9), 1 + draw.below(4), hd];
    let n: usize = shape.iter().product();
    let (mut x, dy) = (draw.values(n), draw.values(n));
    if draw.below(4) == 0 {
        x[draw.below(n)] = [0.0, f32::NAN, 1e-40][draw.below(3)];
    }
    let theta = (0..planes).map(|_| f64::from(draw.value().abs() / 4.0)).collect();
    let scale = [1.0, 1.25][draw.below(2)];
    let offset = draw.below(100);
    let case = StretchedRopeCase { shape, offset, frequencies: theta, scale, x };
    let manner = [Manner::Plain, Manner::Again][draw.below(2)];
    let mut answers = vec![
        answered(|| Ok(told(&rope.frequencies(&frequencies)?))),
        answered(|| Ok(widen(&rope.forward_in(manner, &case)?))),
        answered(|| Ok(widen(&rope.backward_in(manner, &case, &dy)?.dx))),
    ];
    if 2 * planes == hd {
        let dtheta = || Ok(widen(&rope.backward_in(manner, &case, &dy)?.dtheta));
        answers.push(answered(dtheta));
    }
    answers
}

/// The logarithms of the frequencies, so that the slow planes are not lost beside the fast ones, and the scale.
pub(super) fn told(got: &Frequencies) -> Vec<f64> {
    got.frequencies.iter().map(|theta| theta.abs().ln()).chain([got.scale]).collect()
}
