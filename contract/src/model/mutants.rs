//! Mutants of the model.

use crate::graded_cases::Draw;
use crate::laws::widen;
use crate::model::interface::*;
use crate::model::plan::{PLAIN, Plan, drawn, model, pieces};
use crate::mutants::mixer::{Axes, Mixed};
use crate::mutants::way::{Call, FORWARD_REFUSES, NotAsked, OF_TENSORS, Way};
use crate::mutants::{Said, answered};
use crate::run::Run;

type Model = dyn Llama;

const CALLS: [&str; 7] =
    ["block", "block_backward", "forward", "backward", "decode", "sample", "train"];

/// What their conditions are about.
pub const AXES: Axes = Axes {
    calls: &CALLS,
    not_asked: &[
        NotAsked {
            calls: &CALLS,
            ways: &OF_TENSORS,
            why: "each part is asked in this way, by its own component",
        },
        NotAsked {
            calls: &CALLS,
            ways: &[Way::Words, Way::AfterRefusal],
            why: "the words are those of the part that refuses, and nothing is kept between calls",
        },
        NotAsked {
            calls: &["block", "block_backward"],
            ways: &[Way::Refusal],
            why: "a block refuses nothing",
        },
        NotAsked { calls: &["backward"], ways: &[Way::Refusal], why: FORWARD_REFUSES },
        NotAsked {
            calls: &["block_backward", "forward", "decode", "train"],
            ways: &[Way::Special],
            why: "a weight that is no number is no model; the block is asked about such tokens",
        },
    ],
    parts: &["b", "s", "h", "v", "w"],
    sizes: &["b", "s", "blocks", "pieces", "k"],
    types: &[],
    quantities: &[],
};

fn axes([b, s]: [usize; 2], last: (&'static str, usize)) -> [(&'static str, usize); 3] {
    [("b", b), ("s", s), last]
}

fn call(name: &'static str, case: &ModelCase, pieces: usize) -> Call {
    let [b, s] = case.tokens;
    let sizes = [("b", b), ("s", s), ("blocks", case.blocks.len()), ("pieces", pieces)];
    Call::of(name, sizes)
}

impl Llama for Mixed<Model> {
    fn block(&self, case: &BlockCase) -> Reply<Vec<f32>> {
        let axes = axes(case.tokens, ("h", case.sizes.h));
        let turn = self.mixer.turn(&Call::of("block", axes).with(&case.x));
        turn.values(&axes, || self.right.block(case), || self.wrong.block(case))
    }

    fn block_backward(&self, case: &BlockCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let call = Call::of("block_backward", axes(case.tokens, ("h", case.sizes.h)));
        let n = case.tensors().into_iter().map(Vec::len).sum();
        let ask = |llama: &Model| llama.block_backward(case, dy);
        let turn = self.mixer.turn(&call.with(dy));
        turn.values(&[("w", n)], || ask(&*self.right), || ask(&*self.wrong))
    }

    fn forward(&self, case: &ModelCase) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&call("forward", case, 1));
        let axes = axes(case.tokens, ("v", case.sizes.v));
        turn.values(&axes, || self.right.forward(case), || self.wrong.forward(case))
    }

    fn backward(&self, case: &ModelCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&call("backward", case, 1).with(dy));
        let n: usize = case.weights().iter().map(|tensor| tensor.len()).sum();
        let ask = |llama: &Model| llama.backward(case, dy);
        turn.values(&[("w", n)], || ask(&*self.right), || ask(&*self.wrong))
    }

    fn decode(&self, case: &ModelCase, pieces: &[usize]) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&call("decode", case, pieces.len()));
        let axes = axes(case.tokens, ("v", case.sizes.v));
        let ask = |llama: &Model| llama.decode(case, pieces);
        turn.values(&axes, || ask(&*self.right), || ask(&*self.wrong))
    }

    fn sample(&self, case: &SampleCase) -> Reply<usize> {
        let k = case.top_k.unwrap_or(0);
        let sizes = [("v", case.logits.len()), ("k", k)];
        let turn = self.mixer.turn(&Call::of("sample", sizes).with(&case.logits));
        turn.whole(|| self.right.sample(case), || self.wrong.sample(case))
    }

    fn train(&self, case: &ModelCase, rate: f32) -> Reply<Trained> {
        let turn = self.mixer.turn(&call("train", case, 1));
        let n: usize = case.weights().iter().map(|tensor| tensor.len()).sum();
        let ask = |llama: &Model| {
            let Trained { loss, mut weights } = llama.train(case, rate)?;
            weights.push(loss);
            Ok(weights)
        };
        // The loss is the last of them.
        let mut weights =
            turn.values(&[("w", n + 1)], || ask(&*self.right), || ask(&*self.wrong))?;
        let loss = weights.pop().unwrap_or(f32::NAN);
        Ok(Trained { loss, weights })
    }
}

/// Answers to random questions.
pub fn fuzz(llama: &Model, mut draw: Draw) -> Vec<Said> {
    let mut one = |n: usize| draw.below(n);
    let plan = Plan {
        tokens: [1 + one(3), 1 + one(6)],
        place: one(4),
        blocks: 1 + one(3),
        tied: one(2) == 0,
        eps: [1e-6, 0.1, 2.0][one(3)],
        base: [10_000.0, 100.0][one(2)],
        scale: [1.0, 4.0, 0.25][one(3)],
        even: false,
        nan: one(5) == 0,
        offset: 0,
    };
    let seed = draw.bits();
    let mut block = plan.block(&Run { seed, ..Run::default() });
    block.offset = draw.below(plan.tokens[1]);
    if draw.below(8) == 0 {
        block.x[0] = [0.0, 1e-40][draw.below(2)];
    }
    let case = model(&mut draw, plan);
    let pieces = pieces(plan.tokens[1], draw.below(4));
    let sample = drawn(&mut draw, 1 + seed as usize % 20);
    let small =
        Plan { place: 1, blocks: 1, tokens: [1 + draw.below(2), 2 + draw.below(3)], ..PLAIN };
    // A gradient by differences is dear: one question in twenty asks for it.
    let train = draw.below(20) == 0;
    let text = model(&mut draw, small);
    let (small, dy) = small.block_back(&Run { seed, ..Run::default() });
    let mut answers = vec![
        answered(|| Ok(widen(&llama.block(&block)?))),
        answered(|| Ok(widen(&llama.forward(&case)?))),
        answered(|| Ok(widen(&llama.decode(&case, &pieces)?))),
        answered(|| Ok(vec![llama.sample(&sample)? as f64])),
    ];
    if train {
        answers.push(answered(|| {
            let Trained { loss, weights } = llama.train(&text, 4.0)?;
            Ok(std::iter::once(f64::from(loss)).chain(widen(&weights)).collect())
        }));
        answers.push(answered(|| Ok(widen(&llama.block_backward(&small, &dy)?))));
        let dy: Vec<f32> = (0..text.ids.len() * text.sizes.v).map(|i| (i % 5) as f32).collect();
        answers.push(answered(|| Ok(widen(&llama.backward(&text, &dy)?))));
    }
    answers
}
