//! Mutants of attention and its cache.

use crate::attention::interface::*;
use crate::attention::oracle::implementation;
use crate::graded_cases::Draw;
use crate::laws::widen;
use crate::mutants::mixer::{Axes, Mixed, Mixer, Turn};
use crate::mutants::way::{
    Answer, BACK_TRACED, Call, FORWARD_REFUSES, NotAsked, OF_GRADIENTS, OF_TENSORS, Way,
};
use crate::mutants::{Said, answered};
use crate::oracle::Oracle;

type Attention = dyn GroupedQueryAttention;

/// What their conditions are about.
pub const AXES: Axes = Axes {
    calls: &[
        "repeat",
        "repeat_backward",
        "mask",
        "window_mask",
        "forward",
        "backward",
        "softmax_backward",
        "cache",
        "push",
        "positions",
    ],
    not_asked: &[
        NotAsked {
            calls: &["repeat", "repeat_backward", "forward", "backward", "softmax_backward"],
            ways: &[Way::AfterRefusal],
            why: "a function: there is no module",
        },
        NotAsked {
            calls: &["repeat", "repeat_backward", "softmax_backward"],
            ways: &[Way::Cloned],
            why: "a function: there is no module",
        },
        NotAsked {
            calls: &["repeat", "forward"],
            ways: &[Way::UsedTwice, Way::Continued],
            why: OF_GRADIENTS,
        },
        NotAsked {
            calls: &["repeat_backward", "backward"],
            ways: &[Way::Traced],
            why: BACK_TRACED,
        },
        NotAsked {
            calls: &["softmax_backward"],
            ways: &[Way::Traced, Way::UsedTwice, Way::Continued],
            why: "it is written by hand, without a tape",
        },
        NotAsked {
            calls: &["repeat", "repeat_backward", "mask", "window_mask", "softmax_backward"],
            ways: &[Way::Refusal, Way::Words],
            why: "it refuses nothing",
        },
        NotAsked { calls: &["backward"], ways: &[Way::Refusal, Way::Words], why: FORWARD_REFUSES },
        NotAsked {
            calls: &["forward", "push"],
            ways: &[Way::Words],
            why: "the tasks ask for no words",
        },
        NotAsked {
            calls: &["mask", "window_mask", "cache"],
            ways: &OF_TENSORS,
            why: "it takes numbers, and keeps nothing",
        },
        NotAsked {
            calls: &["mask", "window_mask", "cache"],
            ways: &[Way::Special, Way::AfterRefusal],
            why: "it takes numbers, and keeps nothing",
        },
        NotAsked {
            calls: &["cache"],
            ways: &[Way::Refusal, Way::Words],
            why: "a cache may have any capacity, also 0",
        },
        NotAsked {
            calls: &["push"],
            ways: &[Way::Traced, Way::UsedTwice, Way::Continued],
            why: "a cache is for decoding, where there is no tape",
        },
        NotAsked {
            calls: &["push"],
            ways: &[Way::Cloned, Way::Again],
            why: "each push comes after others, and a cache belongs to one text",
        },
        NotAsked {
            calls: &["positions"],
            ways: &OF_TENSORS,
            why: "it is looked at after each push, in whichever manner that was",
        },
        NotAsked {
            calls: &["positions"],
            ways: &[Way::Special, Way::Refusal, Way::Words],
            why: "it takes nothing, and refuses nothing",
        },
    ],
    parts: &["b", "s", "t", "n", "k", "d"],
    sizes: &["b", "s", "p", "t", "w", "k", "g", "d"],
    types: &[],
    quantities: &[],
};

type Shape = [(&'static str, usize); 4];

fn of_queries(sizes: &AttendSizes) -> Shape {
    let [b, s, n, d] = sizes.of_queries();
    [("b", b), ("s", s), ("n", n), ("d", d)]
}

fn of_keys([b, t, k, d]: [usize; 4]) -> Shape {
    [("b", b), ("t", t), ("k", k), ("d", d)]
}

fn call(name: &'static str, case: &AttendCase) -> Call {
    let AttendSizes { batch, queries, keys, num_heads, num_kv_heads, head_dim } = case.sizes;
    let sizes = [
        ("b", batch),
        ("s", queries),
        ("p", keys.saturating_sub(queries)),
        ("t", keys),
        ("k", num_kv_heads),
        ("g", num_heads / num_kv_heads.max(1)),
        ("d", head_dim),
    ];
    Call::of(name, sizes).with(&case.q).with(&case.k).with(&case.v)
}

impl Answer for bool {
    fn spoilt(self) -> Self {
        !self
    }
}

impl Answer for Box<dyn KeyValueCache> {
    fn spoilt(self) -> Self {
        implementation(Oracle).cache(0).unwrap_or(self)
    }
}

impl GroupedQueryAttention for Mixed<Attention> {
    fn repeat_in(
        &self,
        manner: Manner,
        shape: [usize; 4],
        times: usize,
        x: &[f32],
    ) -> Reply<Vec<f32>> {
        let [b, t, k, d] = shape;
        let call = Call::of("repeat", [("b", b), ("t", t), ("k", k), ("g", times), ("d", d)]);
        let turn = self.mixer.turn(&call.asked(manner).with(x));
        let ask = |attention: &Attention| attention.repeat_in(manner, shape, times, x);
        let axes = [("b", b), ("t", t), ("n", k * times), ("d", d)];
        turn.values(&axes, || ask(&*self.right), || ask(&*self.wrong))
    }

    fn repeat_backward(
        &self,
        manner: Manner,
        shape: [usize; 4],
        times: usize,
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        let [b, t, k, d] = shape;
        let sizes = [("b", b), ("t", t), ("k", k), ("g", times), ("d", d)];
        let turn = self.mixer.turn(&Call::of("repeat_backward", sizes).asked(manner).with(dy));
        let ask = |attention: &Attention| attention.repeat_backward(manner, shape, times, dy);
        turn.values(&of_keys(shape), || ask(&*self.right), || ask(&*self.wrong))
    }

    fn mask(&self, s: usize, p: usize) -> Reply<Vec<bool>> {
        let turn = self.mixer.turn(&Call::of("mask", [("s", s), ("p", p), ("t", p + s)]));
        let ask = |attention: &Attention| attention.mask(s, p);
        turn.values(&[("s", s), ("t", p + s)], || ask(&*self.right), || ask(&*self.wrong))
    }

    fn window_mask(&self, s: usize, p: usize, window: usize) -> Reply<Vec<bool>> {
        let sizes = [("s", s), ("p", p), ("t", p + s), ("w", window)];
        let turn = self.mixer.turn(&Call::of("window_mask", sizes));
        let ask = |attention: &Attention| attention.window_mask(s, p, window);
        turn.values(&[("s", s), ("t", p + s)], || ask(&*self.right), || ask(&*self.wrong))
    }

    fn forward_in(&self, manner: Manner, case: &AttendCase) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&call("forward", case).asked(manner));
        let ask = |attention: &Attention| attention.forward_in(manner, case);
        turn.values(&of_queries(&case.sizes), || ask(&*self.right), || ask(&*self.wrong))
    }

    fn backward_in(&self, manner: Manner, case: &AttendCase, dy: &[f32]) -> Reply<AttendGrads> {
        let turn = self.mixer.turn(&call("backward", case).asked(manner).with(dy));
        let [right, wrong] =
            [&self.right, &self.wrong].map(|attention| attention.backward_in(manner, case, dy));
        let part = |axes: Shape, of: fn(AttendGrads) -> Vec<f32>| {
            turn.values(&axes, || right.clone().map(of), || wrong.clone().map(of))
        };
        Ok(AttendGrads {
            dq: part(of_queries(&case.sizes), |grads| grads.dq)?,
            dk: part(of_keys(case.sizes.of_keys()), |grads| grads.dk)?,
            dv: part(of_keys(case.sizes.of_keys()), |grads| grads.dv)?,
        })
    }

    fn softmax_backward_in(
        &self,
        manner: Manner,
        shape: [usize; 4],
        y: &[f32],
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        let [b, n, s, t] = shape;
        let axes = [("b", b), ("n", n), ("s", s), ("t", t)];
        let call = Call::of("softmax_backward", axes).asked(manner).with(y).with(dy);
        let ask = |attention: &Attention| attention.softmax_backward_in(manner, shape, y, dy);
        self.mixer.turn(&call).values(&axes, || ask(&*self.right), || ask(&*self.wrong))
    }

    fn cache(&self, capacity: usize) -> Reply<Box<dyn KeyValueCache>> {
        let call = Call::of("cache", [("c", capacity)]);
        if let Some(turn) = self.mixer.turn_of_method(&call) {
            return turn.whole(|| self.right.cache(capacity), || self.wrong.cache(capacity));
        }
        let (right, wrong) = (self.right.cache(capacity)?, self.wrong.cache(capacity)?);
        let (mixer, last) = (self.mixer.of_module(), Turn::Right);
        Ok(Box::new(MixedCache { right, wrong, mixer, last, refused: false }))
    }
}

/// Two caches that get the same pieces.
struct MixedCache {
    right: Box<dyn KeyValueCache>,
    wrong: Box<dyn KeyValueCache>,
    mixer: Mixer,
    last: Turn,
    refused: bool,
}

impl KeyValueCache for MixedCache {
    fn push_in(&mut self, manner: Manner, piece: &KeysValues) -> Reply<KeysValues> {
        let [b, s, k, d] = piece.shape;
        let p = self.right.positions().unwrap_or(0);
        let sizes = [("b", b), ("s", s), ("p", p), ("t", p + s), ("k", k), ("d", d)];
        let mut call = Call::of("push", sizes).asked(manner).with(&piece.k).with(&piece.v);
        call.after_refusal = self.refused;
        let turn = self.mixer.turn(&call);
        self.last = turn;
        let (right, wrong) = (self.right.push_in(manner, piece), self.wrong.push_in(manner, piece));
        self.refused = right.is_err();
        // The shape is one of the two implementations', as the values are.
        let shape = match (&right, &wrong, turn) {
            (_, Ok(wrong), Turn::Wrong) => wrong.shape,
            (Ok(right), ..) => right.shape,
            _ => piece.shape,
        };
        let part = |of: fn(KeysValues) -> Vec<f32>| {
            turn.values(&of_keys(shape), || right.clone().map(of), || wrong.clone().map(of))
        };
        Ok(KeysValues { shape, k: part(|kept| kept.k)?, v: part(|kept| kept.v)? })
    }

    fn positions(&self) -> Reply<usize> {
        let mut call = Call::of("positions", []);
        call.after_refusal = self.refused;
        // A bug that was seen in the last push has changed them by then.
        let turn = self.mixer.turn_of_method(&call).unwrap_or(self.last);
        turn.whole(|| self.right.positions(), || self.wrong.positions())
    }
}

/// Answers to random questions.
pub fn fuzz(attention: &Attention, mut draw: Draw) -> Vec<Said> {
    let [b, s, p] = [1 + draw.below(3), 1 + draw.below(6), draw.below(7)];
    let [nkv, group, hd] = [1 + draw.below(3), 1 + draw.below(3), 1 + draw.below(9)];
    let sizes = AttendSizes {
        batch: b,
        queries: s,
        keys: p + s,
        num_heads: nkv * group,
        num_kv_heads: nkv,
        head_dim: hd,
    };
    let n = |shape: [usize; 4]| shape.iter().product::<usize>();
    let scale = [0.1, 0.5, 8.0][draw.below(3)];
    let q = draw.values(n(sizes.of_queries())).iter().map(|q| q * scale).collect();
    let (k, v) = (draw.values(n(sizes.of_keys())), draw.values(n(sizes.of_keys())));
    let mut case = AttendCase { sizes, q, k, v };
    if draw.below(5) == 0 {
        *case.q.last_mut().expect("there is a query") = f32::NAN;
    }
    let dy = draw.values(n(sizes.of_queries()));
    let of_scores = [b, nkv * group, s, p + s];
    let (y, dweights) = (draw.values(n(of_scores)), draw.values(n(of_scores)));
    let manner = [Manner::Plain, Manner::Again][draw.below(2)];
    let capacity = draw.below(12);
    let piece = |shape: [usize; 4], draw: &mut Draw| KeysValues {
        shape,
        k: draw.values(n(shape)),
        v: draw.values(n(shape)),
    };
    let shapes = [(); 4].map(|()| [b, 1 + draw.below(5), nkv, hd]);
    let pieces = shapes.map(|shape| piece(shape, &mut draw));
    let pushes = || {
        let mut cache = attention.cache(capacity)?;
        let mut said = Vec::new();
        for piece in &pieces {
            match cache.push(piece) {
                Ok(kept) => said.extend(widen(&[kept.k, kept.v].concat())),
                Err(_) => said.push(-1.0),
            }
            said.push(cache.positions()? as f64);
        }
        Ok(said)
    };
    let seen = |mask: Vec<bool>| mask.into_iter().map(|seen| f64::from(u8::from(seen))).collect();
    let window = 1 + draw.below(9);
    let grads = || {
        let AttendGrads { dq, dk, dv } = attention.backward_in(manner, &case, &dy)?;
        Ok(widen(&[dq, dk, dv].concat()))
    };
    let softmax = || attention.softmax_backward_in(manner, of_scores, &y, &dweights);
    let repeat = || attention.repeat_in(manner, sizes.of_keys(), group, &case.k);
    let copies = draw.values(n(sizes.of_keys()) * group);
    let repeat_back = || attention.repeat_backward(manner, sizes.of_keys(), group, &copies);
    vec![
        answered(|| Ok(widen(&repeat()?))),
        answered(|| Ok(widen(&repeat_back()?))),
        answered(|| Ok(seen(attention.mask(s, p)?))),
        answered(|| Ok(seen(attention.window_mask(s, p, window)?))),
        answered(|| Ok(widen(&attention.forward_in(manner, &case)?))),
        answered(grads),
        answered(|| Ok(widen(&softmax()?))),
        answered(pushes),
    ]
}
