//! Mutants of the loss.

use crate::graded_cases::Draw;
use crate::laws::widen;
use crate::loss::graded_cases::{LARGE, VOCABULARIES};
use crate::loss::interface::*;
use crate::mutants::mixer::{Axes, Mixed};
use crate::mutants::way::{
    BACK_TRACED, Call, FORWARD_REFUSES, NotAsked, OF_GRADIENTS, OF_TENSORS, Way,
};
use crate::mutants::{Said, answered};

type Loss = dyn CrossEntropy;

/// What their conditions are about.
pub const AXES: Axes = Axes {
    calls: &["next_tokens", "forward", "backward", "perplexity"],
    not_asked: &[
        NotAsked {
            calls: &["next_tokens", "perplexity"],
            ways: &OF_TENSORS,
            why: "it takes plain numbers",
        },
        NotAsked {
            calls: &["next_tokens"],
            ways: &[Way::Special, Way::Words, Way::AfterRefusal],
            why: "it takes ids; what is refused can be said in any words, and nothing is kept",
        },
        NotAsked {
            calls: &["perplexity"],
            ways: &[Way::Refusal, Way::Words, Way::AfterRefusal],
            why: "no task says that something is refused",
        },
        NotAsked {
            calls: &["forward"],
            ways: &[Way::UsedTwice, Way::Continued],
            why: OF_GRADIENTS,
        },
        NotAsked {
            calls: &["forward", "backward"],
            ways: &[Way::Cloned],
            why: "it is a function: there is nothing to clone",
        },
        NotAsked {
            calls: &["forward", "backward"],
            ways: &[Way::AfterRefusal],
            why: "it is a function: nothing is kept",
        },
        NotAsked { calls: &["backward"], ways: &[Way::Traced], why: BACK_TRACED },
        NotAsked { calls: &["backward"], ways: &[Way::Refusal, Way::Words], why: FORWARD_REFUSES },
    ],
    parts: &["b", "s", "v"],
    sizes: &["b", "s", "parts"],
    types: &["v"],
    quantities: &[("target", &[3, 6, 16, 32, 63]), ("id", &[3, 6, 16, 20])],
};

fn call(name: &'static str, case: &LossCase) -> Call {
    let [b, s, v] = case.shape;
    let target = case.targets.iter().flatten().copied().max().unwrap_or(0);
    Call::of(name, [("b", b), ("s", s), ("v", v), ("target", target)]).with(&case.logits)
}

impl CrossEntropy for Mixed<Loss> {
    fn next_tokens(&self, case: &TextCase) -> Reply<Pairs> {
        let [b, s] = case.shape;
        let id = case.ids.iter().copied().max().unwrap_or(0);
        let turn = self.mixer.turn(&Call::of("next_tokens", [("b", b), ("s", s), ("id", id)]));
        let [right, wrong] =
            [&self.right, &self.wrong].map(|cross_entropy| cross_entropy.next_tokens(case));
        let axes = [("b", b), ("s", s.saturating_sub(1))];
        let part = |of: fn(Pairs) -> Vec<usize>| {
            turn.values(&axes, || right.clone().map(of), || wrong.clone().map(of))
        };
        Ok(Pairs { inputs: part(|pairs| pairs.inputs)?, targets: part(|pairs| pairs.targets)? })
    }

    fn forward_in(&self, manner: Manner, case: &LossCase) -> Reply<f32> {
        let turn = self.mixer.turn(&call("forward", case).asked(manner));
        let ask = |cross_entropy: &Loss| cross_entropy.forward_in(manner, case);
        turn.whole(|| ask(&*self.right), || ask(&*self.wrong))
    }

    fn backward_in(&self, manner: Manner, case: &LossCase, dloss: f32) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&call("backward", case).asked(manner));
        let ask = |cross_entropy: &Loss| cross_entropy.backward_in(manner, case, dloss);
        let [b, s, v] = case.shape;
        let axes = [("b", b), ("s", s), ("v", v)];
        turn.values(&axes, || ask(&*self.right), || ask(&*self.wrong))
    }

    fn perplexity(&self, parts: &[Part]) -> Reply<f32> {
        let losses: Vec<f32> = parts.iter().map(|part| part.loss).collect();
        let turn = self.mixer.turn(&Call::of("perplexity", [("parts", parts.len())]).with(&losses));
        turn.whole(|| self.right.perplexity(parts), || self.wrong.perplexity(parts))
    }
}

/// Answers to random questions.
pub fn fuzz(cross_entropy: &Loss, mut draw: Draw) -> Vec<Said> {
    let menu = [&VOCABULARIES[..], &LARGE[..1]].concat();
    let (b, s, v) = (1 + draw.below(5), 1 + draw.below(9), menu[draw.below(menu.len())]);
    let level = [0.0, 100.0, -1000.0][draw.below(3)];
    let mut logits: Vec<f32> = draw.values(b * s * v).iter().map(|x| x + level).collect();
    let mut target = || if draw.below(3) == 0 { None } else { Some(draw.below(v)) };
    let mut targets: Vec<Option<usize>> = (0..b * s).map(|_| target()).collect();
    targets[0] = targets[0].or(Some(0));
    if draw.below(4) == 0 {
        // Not in a place that is ignored: its gradient there is not specified.
        let id = draw.below(v);
        let special = [0.0, f32::NAN, f32::NEG_INFINITY][draw.below(3)];
        logits[id] = if targets[0] == Some(id) { 0.0 } else { special };
    }
    let good = LossCase { shape: [b, s, v], logits, targets };
    let mut bad = good.clone();
    let place = draw.below(b * s);
    bad.targets[place] = Some(v.saturating_add(draw.bits() as usize >> (1 + draw.below(63))));
    let unasked = LossCase { targets: vec![None; b * s], ..good.clone() };
    let dloss = draw.value();
    let manner = [Manner::Plain, Manner::Again][draw.below(2)];
    let ids = (0..b * s).map(|_| draw.bits() as usize >> (40 + draw.below(20))).collect();
    let text = TextCase { shape: [b, s], ids };
    let part = |draw: &mut Draw| Part { loss: draw.value().abs(), places: 1 + draw.below(40) };
    let parts: Vec<Part> = (0..1 + draw.below(70)).map(|_| part(&mut draw)).collect();
    let loss = |case: &LossCase| Ok(vec![f64::from(cross_entropy.forward_in(manner, case)?)]);
    let pairs = || {
        let Pairs { inputs, targets } = cross_entropy.next_tokens(&text)?;
        Ok([inputs, targets].concat().into_iter().map(|id| id as f64).collect())
    };
    vec![
        answered(pairs),
        answered(|| loss(&good)),
        answered(|| loss(&bad)),
        answered(|| loss(&unasked)),
        answered(|| Ok(widen(&cross_entropy.backward_in(manner, &good, dloss)?))),
        answered(|| Ok(vec![f64::from(cross_entropy.perplexity(&parts)?)])),
    ]
}
