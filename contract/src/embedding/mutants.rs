//! Mutants of VocabEmbedding.

use crate::embedding::interface::*;
use crate::embedding::menu::{EMBEDDING, LARGE};
use crate::graded_cases::Draw;
use crate::laws::widen;
use crate::mutants::mixer::{Axes, Mixed};
use crate::mutants::way::{
    BACK_TRACED, Call, FORWARD_REFUSES, NotAsked, OF_GRADIENTS, OF_TENSORS, Way,
};
use crate::mutants::{Said, answered};

type Embedding = dyn VocabEmbedding;

/// What their conditions are about.
pub const AXES: Axes = Axes {
    calls: &["initial_table", "forward", "backward"],
    not_asked: &[
        NotAsked {
            calls: &["initial_table"],
            ways: &OF_TENSORS,
            why: "it takes sizes and a distribution; the same is asked for twice",
        },
        NotAsked {
            calls: &["initial_table"],
            ways: &[Way::Special, Way::Refusal, Way::Words, Way::AfterRefusal],
            why: "no task says that something is refused",
        },
        NotAsked {
            calls: &["forward"],
            ways: &[Way::UsedTwice, Way::Continued],
            why: OF_GRADIENTS,
        },
        NotAsked {
            calls: &["forward", "backward"],
            ways: &[Way::AfterRefusal],
            why: "a table is not changed by a lookup: it is compared after each",
        },
        NotAsked { calls: &["backward"], ways: &[Way::Traced], why: BACK_TRACED },
        NotAsked { calls: &["backward"], ways: &[Way::Refusal, Way::Words], why: FORWARD_REFUSES },
    ],
    parts: &["b", "s", "v", "e"],
    sizes: &["b", "s", "tokens"],
    types: &["v", "e"],
    quantities: &[
        ("id", &[3, 6, 8, 16, 24, 32, 63]),
        ("n", &[3, 6, 8, 12, 16]),
        ("seed", &[16, 24, 32, 63]),
    ],
};

fn call(name: &'static str, case: &LookupCase) -> Call {
    let ([b, s], v, e) = (case.shape, case.vocab_size, case.embedding_dim);
    let id = case.ids.iter().copied().max().unwrap_or(0);
    let sizes = [("b", b), ("s", s), ("v", v), ("e", e), ("tokens", b * s), ("id", id)];
    Call::of(name, sizes).with(&case.table)
}

impl VocabEmbedding for Mixed<Embedding> {
    fn initial_table(&self, v: usize, e: usize, init: NormalInit) -> Reply<Vec<f32>> {
        let ask = |embedding: &Embedding| embedding.initial_table(v, e, init);
        let call = Call::of(
            "initial_table",
            [("v", v), ("e", e), ("n", v * e), ("seed", init.seed as usize)],
        );
        let axes = [("v", v), ("e", e)];
        self.mixer.turn(&call).values(&axes, || ask(&*self.right), || ask(&*self.wrong))
    }

    fn forward_in(&self, manner: Manner, case: &LookupCase) -> Reply<Found> {
        let turn = self.mixer.turn(&call("forward", case).asked(manner));
        let [right, wrong] =
            [&self.right, &self.wrong].map(|embedding| embedding.forward_in(manner, case));
        let [b, s] = case.shape;
        let axes = [("b", b), ("s", s), ("e", case.embedding_dim)];
        let y = turn.values(&axes, || Ok(right.clone()?.y), || Ok(wrong.clone()?.y))?;
        let ids_after = turn.values(
            &axes[..2],
            || Ok(right.clone()?.ids_after),
            || Ok(wrong.clone()?.ids_after),
        )?;
        Ok(Found { y, ids_after })
    }

    fn backward_in(&self, manner: Manner, case: &LookupCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&call("backward", case).asked(manner).with(dy));
        let ask = |embedding: &Embedding| embedding.backward_in(manner, case, dy);
        let axes = [("v", case.vocab_size), ("e", case.embedding_dim)];
        turn.values(&axes, || ask(&*self.right), || ask(&*self.wrong))
    }
}

/// Answers to random questions.
pub fn fuzz(embedding: &Embedding, mut draw: Draw) -> Vec<Said> {
    // A table may have its sizes in its type, and is compiled for these.
    let menu = [&EMBEDDING[..], &LARGE[..1]].concat();
    let (vocab_size, embedding_dim) = menu[draw.below(menu.len())];
    let shape = [1 + draw.below(5), 1 + draw.below(9)];
    let mut table = draw.values(vocab_size * embedding_dim);
    let places = table.len();
    if draw.below(4) == 0 {
        table[draw.below(places)] = [0.0, f32::NAN, 1e-40, f32::INFINITY][draw.below(4)];
    }
    let mut ids: Vec<usize> = (0..shape[0] * shape[1]).map(|_| draw.below(vocab_size)).collect();
    let dy = draw.values(ids.len() * embedding_dim);
    let good = LookupCase { shape, vocab_size, embedding_dim, table, ids: ids.clone() };
    let bad = draw.below(ids.len());
    ids[bad] = vocab_size.saturating_add(draw.bits() as usize >> draw.below(64));
    let bad = LookupCase { ids, ..good.clone() };
    let manner = [Manner::Plain, Manner::Again][draw.below(2)];
    let (mean, std) = (draw.value(), draw.value().abs());
    let init = NormalInit { mean, std, seed: draw.bits() >> draw.below(64) };
    let sizes = (1 + draw.below(200), 1 + draw.below(9));
    let lookup = |case: &LookupCase| {
        let Found { y, ids_after } = embedding.forward_in(manner, case)?;
        Ok(widen(&y).into_iter().chain(ids_after.into_iter().map(|id| id as f64)).collect())
    };
    vec![
        answered(|| lookup(&good)),
        answered(|| lookup(&bad)),
        answered(|| Ok(widen(&embedding.backward_in(manner, &good, &dy)?))),
        answered(|| Ok(widen(&embedding.initial_table(sizes.0, sizes.1, init)?))),
    ]
}
