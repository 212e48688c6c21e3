//! Mutants of NTK-aware RoPE.

use crate::graded_cases::Draw;
use crate::laws::widen;
use crate::mutants::mixer::{Axes, Mixed, Mixer, Turn};
use crate::mutants::way::{
    Answer, BACK_TRACED, Call, FORWARD_REFUSES, NotAsked, OF_GRADIENTS, OF_TENSORS, Way,
};
use crate::mutants::{Said, answered};
use crate::oracle::Oracle;
use crate::rope::interface::*;
use crate::rope::menu::{HEAD_DIM, LARGE};
use crate::rope::oracle::implementation;
use std::ops::Range;

type Rope = dyn NtkAwareRope;

/// What their conditions are about.
pub const AXES: Axes = Axes {
    calls: &[
        "frequencies",
        "tables",
        "rotate",
        "rotate_backward",
        "to_interleaved",
        "to_half_split",
        "ratio_for_length",
        "build",
        "module forward",
        "module backward",
        "module state",
        "module forward_at",
        "module backward_at",
    ],
    not_asked: &[
        NotAsked {
            calls: &["frequencies", "tables", "ratio_for_length", "build"],
            ways: &OF_TENSORS,
            why: "it takes numbers, and keeps nothing",
        },
        NotAsked {
            calls: &["frequencies", "tables", "ratio_for_length", "build"],
            ways: &[Way::Special, Way::Words, Way::AfterRefusal],
            why: "it takes numbers, and keeps nothing; bad ones are refused, in any words",
        },
        NotAsked {
            calls: &["tables"],
            ways: &[Way::Refusal],
            why: "its settings are those of the frequencies, which refuse them",
        },
        NotAsked {
            calls: &["to_interleaved", "to_half_split"],
            ways: &OF_TENSORS,
            why: "it takes a slice",
        },
        NotAsked {
            calls: &["to_interleaved", "to_half_split"],
            ways: &[Way::Refusal, Way::Words, Way::AfterRefusal],
            why: "no task says that something is refused",
        },
        NotAsked {
            calls: &["rotate", "rotate_backward"],
            ways: &[Way::Cloned, Way::AfterRefusal],
            why: "a function: there is no module",
        },
        NotAsked {
            calls: &["rotate", "module forward", "module forward_at"],
            ways: &[Way::Words],
            why: "the tasks ask for no words",
        },
        NotAsked { calls: &["rotate"], ways: &[Way::UsedTwice, Way::Continued], why: OF_GRADIENTS },
        NotAsked { calls: &["rotate_backward"], ways: &[Way::Traced], why: BACK_TRACED },
        NotAsked {
            calls: &["rotate_backward", "module backward", "module backward_at"],
            ways: &[Way::Refusal, Way::Words],
            why: FORWARD_REFUSES,
        },
        NotAsked {
            calls: &["module backward", "module backward_at"],
            ways: &[Way::Broadcast],
            why: "the gradient of a broadcast tensor is that of one row, and not of the call",
        },
        NotAsked {
            calls: &["module backward", "module backward_at"],
            ways: &[Way::Special],
            why: "a NaN in dy is asked of rotate_backward",
        },
        NotAsked {
            calls: &["module state"],
            ways: &OF_TENSORS,
            why: "it is looked at after each call, in whichever manner that was",
        },
        NotAsked {
            calls: &["module state"],
            ways: &[Way::Special, Way::Refusal, Way::Words],
            why: "it takes nothing, and refuses nothing",
        },
    ],
    parts: &["b", "s", "n", "d"],
    sizes: &["b", "s", "n", "k", "ms"],
    types: &["d"],
    quantities: &[
        ("position", &[1, 3, 6, 8, 12, 16, 20, 24, 32, 40]),
        ("length", &[3, 6, 8, 16, 24, 32, 53, 62]),
    ],
};

fn call(name: &'static str, case: &RotateCase) -> Call {
    let RotateCase { tables, x, .. } = case;
    Call::of(name, axes(case.shape)).with(x).with(&tables.cos).with(&tables.sin)
}

fn axes([b, s, n, d]: [usize; 4]) -> [(&'static str, usize); 4] {
    [("b", b), ("s", s), ("n", n), ("d", d)]
}

impl NtkAwareRope for Mixed<Rope> {
    fn frequencies(&self, head_dim: usize, base: f64, ratio: f64) -> Reply<Vec<f64>> {
        let ask = |rope: &Rope| rope.frequencies(head_dim, base, ratio);
        let turn =
            self.mixer.turn(&Call::of("frequencies", [("d", head_dim), ("k", ratio as usize)]));
        turn.values(&[("d", head_dim / 2)], || ask(&*self.right), || ask(&*self.wrong))
    }

    fn tables(&self, hd: usize, base: f64, ratio: f64, positions: Range<usize>) -> Reply<Tables> {
        let [right, wrong] =
            [&self.right, &self.wrong].map(|rope| rope.tables(hd, base, ratio, positions.clone()));
        let (rows, first) = (positions.len(), positions.start);
        let call = Call::of(
            "tables",
            [("d", hd), ("k", ratio as usize), ("s", rows), ("position", first)],
        );
        let turn = self.mixer.turn(&call);
        let axes = [("s", rows), ("d", hd)];
        Ok(Tables {
            cos: turn.values(&axes, || Ok(right.clone()?.cos), || Ok(wrong.clone()?.cos))?,
            sin: turn.values(&axes, || Ok(right.clone()?.sin), || Ok(wrong.clone()?.sin))?,
        })
    }

    fn rotate_in(&self, manner: Manner, case: &RotateCase) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&call("rotate", case).asked(manner));
        let ask = |rope: &Rope| rope.rotate_in(manner, case);
        turn.values(&axes(case.shape), || ask(&*self.right), || ask(&*self.wrong))
    }

    fn rotate_backward_in(&self, manner: Manner, case: &RotateCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&call("rotate_backward", case).asked(manner).with(dy));
        let ask = |rope: &Rope| rope.rotate_backward_in(manner, case, dy);
        turn.values(&axes(case.shape), || ask(&*self.right), || ask(&*self.wrong))
    }

    fn to_interleaved(&self, d: usize, x: &[f32]) -> Reply<Vec<f32>> {
        let rows = x.len() / d.max(1);
        let turn = self.mixer.turn(&Call::of("to_interleaved", [("n", rows), ("d", d)]).with(x));
        let ask = |rope: &Rope| rope.to_interleaved(d, x);
        turn.values(&[("n", rows), ("d", d)], || ask(&*self.right), || ask(&*self.wrong))
    }

    fn to_half_split(&self, d: usize, x: &[f32]) -> Reply<Vec<f32>> {
        let rows = x.len() / d.max(1);
        let turn = self.mixer.turn(&Call::of("to_half_split", [("n", rows), ("d", d)]).with(x));
        let ask = |rope: &Rope| rope.to_half_split(d, x);
        turn.values(&[("n", rows), ("d", d)], || ask(&*self.right), || ask(&*self.wrong))
    }

    fn ratio_for_length(&self, length: usize, max_seq_len: usize) -> Reply<usize> {
        let ask = |rope: &Rope| rope.ratio_for_length(length, max_seq_len);
        let turn = self
            .mixer
            .turn(&Call::of("ratio_for_length", [("length", length), ("ms", max_seq_len)]));
        turn.whole(|| ask(&*self.right), || ask(&*self.wrong))
    }

    fn build(&self, settings: &RopeSettings) -> Reply<Box<dyn RopeModule>> {
        let sizes = [("d", settings.head_dim), ("k", settings.ratio), ("ms", settings.max_seq_len)];
        let call = Call::of("build", sizes);
        if let Some(turn) = self.mixer.turn_of_method(&call) {
            return turn.whole(|| self.right.build(settings), || self.wrong.build(settings));
        }
        let (right, wrong) = (self.right.build(settings), self.wrong.build(settings));
        match (right, wrong) {
            (Ok(right), Ok(wrong)) => {
                let (mixer, of_module, last) = (self.mixer.of_module(), call, Turn::Right);
                Ok(Box::new(MixedModule { right, wrong, mixer, of_module, last, refused: false }))
            }
            // One of them refuses: there is no module of both.
            (right, wrong) => self.mixer.turn(&call).whole(|| right, || wrong),
        }
    }
}

impl Answer for RopeState {
    fn spoilt(self) -> Self {
        Self { cached_len: self.cached_len + 1, ..self }
    }
}

impl Answer for Box<dyn RopeModule> {
    fn spoilt(self) -> Self {
        Self::any().expect("the settings are good")
    }

    fn any() -> Option<Self> {
        let (base, max_seq_len) = (10_000.0, 8);
        let settings = RopeSettings { head_dim: 4, base, max_seq_len, ratio: 1, dynamic: false };
        implementation(Oracle).build(&settings).ok()
    }
}

fn end(case: &RopeCase) -> usize {
    case.offset.saturating_add(case.shape[1])
}

fn end_of(position_ids: &[usize]) -> usize {
    position_ids.iter().max().map_or(0, |last| last.saturating_add(1))
}

/// Two modules that get the same calls.
struct MixedModule {
    right: Box<dyn RopeModule>,
    wrong: Box<dyn RopeModule>,
    mixer: Mixer,
    of_module: Call,
    last: Turn,
    refused: bool,
}

impl MixedModule {
    /// `end` is the position after the call's last.
    fn turn(&mut self, name: &'static str, manner: Manner, case: &RopeCase, end: usize) -> Turn {
        let mut call = self.of_module.clone().asked(manner).with(&case.x);
        (call.name, call.after_refusal) = (name, self.refused);
        call.sizes.extend(axes(case.shape).into_iter().filter(|(name, _)| *name != "d"));
        call.sizes.push(("position", end));
        self.last = self.mixer.turn(&call);
        self.last
    }
}

impl RopeModule for MixedModule {
    fn forward_in(&mut self, manner: Manner, case: &RopeCase) -> Reply<Vec<f32>> {
        let turn = self.turn("module forward", manner, case, end(case));
        let (right, wrong) =
            (self.right.forward_in(manner, case), self.wrong.forward_in(manner, case));
        self.refused = right.is_err();
        turn.values(&axes(case.shape), || right, || wrong)
    }

    fn backward_in(&mut self, manner: Manner, case: &RopeCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let turn = self.turn("module backward", manner, case, end(case));
        let (right, wrong) =
            (self.right.backward_in(manner, case, dy), self.wrong.backward_in(manner, case, dy));
        self.refused = right.is_err();
        turn.values(&axes(case.shape), || right, || wrong)
    }

    fn forward_at(
        &mut self,
        manner: Manner,
        case: &RopeCase,
        position_ids: &[usize],
    ) -> Reply<Vec<f32>> {
        let turn = self.turn("module forward_at", manner, case, end_of(position_ids));
        let ask = |module: &mut Box<dyn RopeModule>| module.forward_at(manner, case, position_ids);
        let (right, wrong) = (ask(&mut self.right), ask(&mut self.wrong));
        self.refused = right.is_err();
        turn.values(&axes(case.shape), || right, || wrong)
    }

    fn backward_at(
        &mut self,
        manner: Manner,
        case: &RopeCase,
        position_ids: &[usize],
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        let turn = self.turn("module backward_at", manner, case, end_of(position_ids));
        let ask =
            |module: &mut Box<dyn RopeModule>| module.backward_at(manner, case, position_ids, dy);
        let (right, wrong) = (ask(&mut self.right), ask(&mut self.wrong));
        self.refused = right.is_err();
        turn.values(&axes(case.shape), || right, || wrong)
    }

    fn state(&self) -> Reply<RopeState> {
        let call =
            Call { name: "module state", after_refusal: self.refused, ..self.of_module.clone() };
        // A bug that was seen in the last call has changed the state by then.
        let turn = self.mixer.turn_of_method(&call).unwrap_or(self.last);
        turn.whole(|| self.right.state(), || self.wrong.state())
    }

    fn cloned(&self) -> Reply<Box<dyn RopeModule>> {
        let (right, wrong) = (self.right.cloned()?, self.wrong.cloned()?);
        let (mixer, of_module, last) = (self.mixer.clone(), self.of_module.clone(), self.last);
        Ok(Box::new(Self { right, wrong, mixer, of_module, last, refused: self.refused }))
    }
}

/// Answers to random questions.
pub fn fuzz(rope: &Rope, mut draw: Draw) -> Vec<Said> {
    let head_dim = 4 + 2 * draw.below(12);
    let (base, ratio) = ([100.0, 10_000.0, 500_000.0][draw.below(3)], 1 + draw.below(5));
    let first = draw.bits() as usize >> (36 + draw.below(28));
    // Heads may have their size in their type, and are compiled for these.
    let of_type = [HEAD_DIM[0], HEAD_DIM[1], HEAD_DIM[2], HEAD_DIM[3], LARGE][draw.below(5)];
    let shape = [1 + draw.below(3), 1 + draw.below(6), 1 + draw.below(4), of_type];
    let n: usize = shape.iter().product();
    let (x, dy) = (draw.values(n), draw.values(n));
    let rows = shape[1] * of_type;
    let tables = Tables { cos: draw.values(rows), sin: draw.values(rows) };
    let layout = [Layout::HalfSplit, Layout::Interleaved][draw.below(2)];
    let case = RotateCase { shape, tables, x, layout };
    let manner = [Manner::Plain, Manner::Again][draw.below(2)];
    let dynamic = draw.below(2) == 0;
    let max_seq_len = 1 + draw.below(9);
    let settings = RopeSettings { head_dim: of_type, base, max_seq_len, ratio, dynamic };
    let offsets = [draw.below(12), draw.below(40), draw.below(9)];
    let (length, max_seq_len) = (draw.bits() as usize >> draw.below(64), 1 + draw.below(5000));
    let of_tables = |tables: Tables| widen(&[tables.cos, tables.sin].concat());
    let table = || rope.tables(head_dim, base, ratio as f64, first..first + 3);
    let calls = || {
        let mut module = rope.build(&settings)?;
        let mut said = Vec::new();
        for offset in offsets {
            let call = RopeCase { shape, offset, x: case.x.clone() };
            said.extend(widen(&module.forward_in(manner, &call)?));
            said.extend(widen(&module.backward_in(manner, &call, &dy)?));
            let RopeState { ratio, cached_len, tables } = module.state()?;
            said.extend([ratio as f64, cached_len as f64]);
            said.extend(of_tables(tables));
        }
        Ok(said)
    };
    // In the cache, in any order; or texts that are padded at their starts and may be longer.
    let [b, s, ..] = shape;
    let padded = draw.below(2) == 0;
    let padding = draw.below(s);
    let ids: Vec<usize> = match padded {
        true => (0..b * s).map(|token| (token % s).saturating_sub(token / s * padding)).collect(),
        false => (0..b * s).map(|_| draw.below(settings.max_seq_len * ratio)).collect(),
    };
    let calls_at = || {
        let mut module = rope.build(&RopeSettings { dynamic: false, ..settings })?;
        let call = RopeCase { shape, offset: 0, x: case.x.clone() };
        let mut said = widen(&module.forward_at(manner, &call, &ids)?);
        said.extend(widen(&module.backward_at(manner, &call, &ids, &dy)?));
        Ok(said)
    };
    let frequencies = || rope.frequencies(head_dim, base, ratio as f64);
    let a_ratio = || Ok(vec![rope.ratio_for_length(length, max_seq_len)? as f64]);
    vec![
        answered(frequencies),
        answered(|| Ok(of_tables(table()?))),
        answered(|| Ok(widen(&rope.rotate_in(manner, &case)?))),
        answered(|| Ok(widen(&rope.rotate_backward_in(manner, &case, &dy)?))),
        answered(|| Ok(widen(&rope.to_interleaved(of_type, &case.x)?))),
        answered(|| Ok(widen(&rope.to_half_split(of_type, &case.x)?))),
        answered(a_ratio),
        answered(calls),
        answered(calls_at),
    ]
}
