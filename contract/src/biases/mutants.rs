//! Mutants of biases in the scores.

use crate::biases::interface::*;
use crate::graded_cases::Draw;
use crate::laws::widen;
use crate::mutants::mixer::{Axes, Mixed};
use crate::mutants::way::{BACK_TRACED, Call, NotAsked, OF_GRADIENTS, OF_TENSORS, Way};
use crate::mutants::{Said, answered};
use std::cell::LazyCell;

type Biases = dyn ScoreBiases;

/// What their conditions are about.
pub const AXES: Axes = Axes {
    calls: &[
        "slopes",
        "alibi",
        "bucket",
        "t5",
        "t5_backward",
        "kerple",
        "kerple_backward",
        "transformer_xl",
    ],
    not_asked: &[
        NotAsked { calls: &["slopes", "bucket"], ways: &OF_TENSORS, why: "it takes whole numbers" },
        NotAsked {
            calls: &["slopes", "bucket"],
            ways: &[Way::Special],
            why: "it takes whole numbers",
        },
        NotAsked {
            calls: &["alibi"],
            ways: &OF_TENSORS,
            why: "its queries and keys are attention's, of which this is asked there; the bias has no input of its own",
        },
        NotAsked {
            calls: &["t5", "kerple", "transformer_xl"],
            ways: &[Way::UsedTwice, Way::Continued],
            why: OF_GRADIENTS,
        },
        NotAsked {
            calls: &["t5_backward", "kerple_backward"],
            ways: &[Way::Traced],
            why: BACK_TRACED,
        },
        NotAsked {
            calls: &["kerple", "kerple_backward"],
            ways: &[Way::Permuted],
            why: "a list of heads has one axis",
        },
        NotAsked {
            calls: &["t5", "t5_backward", "kerple", "kerple_backward", "transformer_xl"],
            ways: &[Way::Broadcast],
            why: "what is learned is no batch; queries that are broadcast are asked of attention",
        },
        NotAsked {
            calls: &["t5", "t5_backward", "kerple", "kerple_backward", "transformer_xl"],
            ways: &[Way::Cloned, Way::Again],
            why: "a function: there is no module",
        },
        NotAsked {
            calls: &[
                "slopes",
                "alibi",
                "bucket",
                "t5",
                "t5_backward",
                "kerple",
                "kerple_backward",
                "transformer_xl",
            ],
            ways: &[Way::Refusal, Way::Words, Way::AfterRefusal],
            why: "no task says that something is refused",
        },
    ],
    parts: &["b", "n", "s", "t", "buckets"],
    sizes: &["b", "n", "s", "t"],
    types: &["d", "h"],
    quantities: &[("distance", &[1, 3, 4, 6, 7, 10, 20])],
};

impl ScoreBiases for Mixed<Biases> {
    fn slopes(&self, num_heads: usize) -> Reply<Vec<f64>> {
        let turn = self.mixer.turn(&Call::of("slopes", [("n", num_heads)]));
        let ask = |biases: &Biases| biases.slopes(num_heads);
        turn.values(&[("n", num_heads)], || ask(&*self.right), || ask(&*self.wrong))
    }

    fn alibi(&self, case: &AlibiCase) -> Reply<Vec<f32>> {
        let [s, t, nh, hd] = case.shape;
        let sizes = [("s", s), ("t", t), ("n", nh), ("d", hd)];
        let turn = self.mixer.turn(&Call::of("alibi", sizes).with(&case.q).with(&case.k));
        let ask = |biases: &Biases| biases.alibi(case);
        turn.values(&[("n", nh), ("s", s), ("t", t)], || ask(&*self.right), || ask(&*self.wrong))
    }

    fn bucket(&self, case: &BucketCase) -> Reply<usize> {
        let distance = case.relative.unsigned_abs() as usize;
        let turn = self.mixer.turn(&Call::of("bucket", [("distance", distance)]));
        turn.whole(|| self.right.bucket(case), || self.wrong.bucket(case))
    }

    fn t5_in(&self, manner: Manner, case: &T5Case) -> Reply<Vec<f32>> {
        let ([s, t], nh) = (case.shape, case.num_heads);
        let call = Call::of("t5", [("s", s), ("t", t), ("n", nh)]).with(&case.table).asked(manner);
        let turn = self.mixer.turn(&call);
        let ask = |biases: &Biases| biases.t5_in(manner, case);
        turn.values(&[("n", nh), ("s", s), ("t", t)], || ask(&*self.right), || ask(&*self.wrong))
    }

    fn t5_backward_in(&self, manner: Manner, case: &T5Case, dy: &[f32]) -> Reply<Vec<f32>> {
        let ([s, t], nh) = (case.shape, case.num_heads);
        let call = Call::of("t5_backward", [("s", s), ("t", t), ("n", nh)]).with(dy).asked(manner);
        let turn = self.mixer.turn(&call);
        let ask = |biases: &Biases| biases.t5_backward_in(manner, case, dy);
        let axes = [("buckets", case.num_buckets), ("n", nh)];
        turn.values(&axes, || ask(&*self.right), || ask(&*self.wrong))
    }

    fn kerple_in(&self, manner: Manner, case: &KerpleCase) -> Reply<Vec<f32>> {
        let (nh, t) = (case.r1.len(), case.positions);
        let call = Call::of("kerple", [("n", nh), ("t", t)]).with(&case.r1).with(&case.r2);
        let turn = self.mixer.turn(&call.asked(manner));
        let ask = |biases: &Biases| biases.kerple_in(manner, case);
        turn.values(&[("n", nh), ("t", t)], || ask(&*self.right), || ask(&*self.wrong))
    }

    fn kerple_backward_in(
        &self,
        manner: Manner,
        case: &KerpleCase,
        dy: &[f32],
    ) -> Reply<KerpleGrads> {
        let (nh, t) = (case.r1.len(), case.positions);
        let call = Call::of("kerple_backward", [("n", nh), ("t", t)]).with(dy).asked(manner);
        let turn = self.mixer.turn(&call);
        let [right, wrong] = [&self.right, &self.wrong]
            .map(|biases| LazyCell::new(move || biases.kerple_backward_in(manner, case, dy)));
        let part = |of: fn(KerpleGrads) -> Vec<f32>| {
            turn.values(&[("n", nh)], || right.clone().map(of), || wrong.clone().map(of))
        };
        Ok(KerpleGrads { dr1: part(|grads| grads.dr1)?, dr2: part(|grads| grads.dr2)? })
    }

    fn transformer_xl_in(&self, manner: Manner, case: &XlCase) -> Reply<Vec<f32>> {
        let ([b, s, nh, hd], t) = (case.shape, case.keys);
        let sizes = [("b", b), ("s", s), ("t", t), ("n", nh), ("d", hd), ("h", case.hidden_size)];
        let call = Call::of("transformer_xl", sizes).with(&case.q).with(&case.k);
        let turn = self.mixer.turn(&call.asked(manner));
        let ask = |biases: &Biases| biases.transformer_xl_in(manner, case);
        let axes = [("b", b), ("n", nh), ("s", s), ("t", t)];
        turn.values(&axes, || ask(&*self.right), || ask(&*self.wrong))
    }
}

/// Answers to random questions.
pub fn fuzz(biases: &Biases, mut draw: Draw) -> Vec<Said> {
    let nh = 1 + draw.below(9);
    let (s, hd) = (1 + draw.below(6), [1, 2, 4, 16][draw.below(4)]);
    let t = s + draw.below(12);
    let (q, k) = (draw.values(s * nh * hd), draw.values(t * nh * hd));
    let mut alibi = AlibiCase { shape: [s, t, nh, hd], q, k };
    if draw.below(4) == 0 {
        alibi.q[0] = 0.0;
    }
    let bidirectional = draw.below(2) == 0;
    let num_buckets = 4 + draw.below(40);
    let max_distance = num_buckets + draw.below(200);
    let relative = draw.below(300) as i64 - 200;
    let bucket = BucketCase { relative, bidirectional, num_buckets, max_distance };
    let table = draw.values(num_buckets * nh);
    let t5 = T5Case {
        shape: [s, 4 * t],
        num_heads: nh,
        bidirectional,
        num_buckets,
        max_distance,
        table,
    };
    let dy = draw.values(nh * s * 4 * t);
    let kernel = [Kernel::Logarithmic, Kernel::Power][draw.below(2)];
    let kerple = KerpleCase {
        kernel,
        r1: draw.values(nh),
        r2: draw.values(nh),
        positions: 1 + draw.below(70),
    };
    let dkerple = draw.values(nh * kerple.positions);
    let (b, h) = (1 + draw.below(3), 2 + 2 * draw.below(4));
    let small = |values: Vec<f32>| -> Vec<f32> { values.into_iter().map(|x| 0.25 * x).collect() };
    let xl = XlCase {
        shape: [b, s, nh, hd],
        keys: t,
        hidden_size: h,
        base: [100.0, 10_000.0][draw.below(2)],
        q: small(draw.values(b * s * nh * hd)),
        k: small(draw.values(b * t * nh * hd)),
        u: small(draw.values(nh * hd)),
        v: small(draw.values(nh * hd)),
        weight: small(draw.values(nh * hd * h)),
    };
    let slopes_of = 1 + draw.below(200);
    let grads = || {
        let KerpleGrads { dr1, dr2 } = biases.kerple_backward(&kerple, &dkerple)?;
        Ok([dr1, dr2].map(|values| widen(&values)))
    };
    let mut answers = vec![
        answered(|| biases.slopes(slopes_of)),
        answered(|| Ok(widen(&biases.alibi(&alibi)?))),
        answered(|| Ok(vec![biases.bucket(&bucket)? as f64])),
        answered(|| Ok(widen(&biases.t5(&t5)?))),
        answered(|| Ok(widen(&biases.t5_backward(&t5, &dy)?))),
        answered(|| Ok(widen(&biases.kerple(&kerple)?))),
        answered(|| Ok(widen(&biases.transformer_xl(&xl)?))),
    ];
    answers.extend((0..2).map(|nth| answered(|| Ok(grads()?[nth].clone()))));
    answers
}
