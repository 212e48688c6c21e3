//! The contract and its parties: the library keeps all of it, and so does PyTorch.
//!
//! `contract/` holds what each component promises. Its own tests prove it on known bugs and correct
//! variants; here it meets implementations that it knows nothing of.

use crate::parties::pytorch::PyTorch;
use crate::parties::reference::Library;
use contract::component::Component;
use contract::party::*;
use contract::report::result;
use contract::run::Run;
use contract::tasks::{self, Grading};

/// Every invariant holds, but for those that `apart` names, each with its reason: they must fail, or
/// the reason is gone.
fn keeps<P: Component + ?Sized>(party: &P, run: &Run, apart: &[(&str, &str)]) {
    for (id, _) in apart {
        assert!(P::invariants().iter().any(|invariant| invariant.id == *id), "no invariant {id}");
    }
    let mut surprises = Vec::new();
    for invariant in P::invariants() {
        let verdict = invariant.judge(party, run);
        match apart.iter().find(|(id, _)| *id == invariant.id) {
            None => surprises.extend(verdict.err().map(|breach| {
                format!("{} is broken\n{}\n{}", invariant.id, breach.input, result(&breach))
            })),
            Some((id, reason)) if verdict.is_ok() => {
                surprises.push(format!("{id} holds by now, although {reason}"));
            }
            Some(_) => {}
        }
    }
    assert!(surprises.is_empty(), "{}", surprises.join("\n\n"));
}

/// Without the feature, the library has no half precision.
const NO_HALF: &[(&str, &str)] = if cfg!(feature = "f16") {
    &[]
} else {
    &[
        ("norm/half-result-is-half", "this build has no f16"),
        ("norm/half-does-not-overflow", "this build has no f16"),
        ("norm/half-rounds-once", "this build has no f16"),
    ]
};

#[test]
fn the_library_keeps_the_contract() {
    let run = Run::default();
    keeps::<dyn GroupRmsNorm>(&Library, &run, NO_HALF);
    keeps::<dyn VocabEmbedding>(&Library, &run, &[]);
    keeps::<dyn ParallelVocabEmbedding>(&Library, &run, &[]);
    keeps::<dyn NtkAwareRope>(&Library, &run, &[]);
}

/// Few random inputs, because each answer is kept in a file.
const FOR_PYTORCH: Run = Run { seed: 7, cases: 4, shrink: false };

/// PyTorch has no rotary module: nothing that is about its ratio, its calls and its cache. (It refuses
/// all settings, bad ones too.)
fn no_module() -> Vec<(&'static str, &'static str)> {
    let ids = |number| match tasks::task(number).map(|task| task.grading) {
        Some(Grading::Invariants { ids, .. }) => ids,
        _ => panic!("task {number} is graded by invariants"),
    };
    let ids = ids("4.7").iter().chain(ids("4.8")).filter(|id| **id != "rope/settings-refused");
    ids.map(|id| (*id, "PyTorch has no rotary module")).collect()
}

fn pytorch_keeps(pytorch: &PyTorch) {
    keeps::<dyn GroupRmsNorm>(pytorch, &FOR_PYTORCH, &[]);
    let words = [("embedding/refusal-names-id", "PyTorch says `index out of range in self`")];
    keeps::<dyn VocabEmbedding>(pytorch, &FOR_PYTORCH, &words);
    keeps::<dyn ParallelVocabEmbedding>(pytorch, &FOR_PYTORCH, &[]);
    keeps::<dyn NtkAwareRope>(pytorch, &FOR_PYTORCH, &no_module());
}

#[test]
fn pytorch_keeps_the_contract() {
    pytorch_keeps(&PyTorch::recorded());
}

/// Its angles are in `f32`. That is accepted, and it is told how far off they are.
#[test]
fn pytorch_is_told_about_its_angles() {
    let rope = <dyn NtkAwareRope>::invariants();
    let precision = rope.iter().find(|law| law.id == "rope/tables-precision").unwrap();
    let of_pytorch = precision.judge(&PyTorch::recorded(), &FOR_PYTORCH).unwrap();
    assert!(of_pytorch.unwrap().contains("f32"));
    assert_eq!(precision.judge(&Library, &FOR_PYTORCH).unwrap(), None);
}

/// Asks PyTorch anew and keeps its answers. `tests/goldens/README.md` says how.
#[test]
#[ignore = "needs Python with PyTorch"]
fn record_pytorch() {
    let pytorch = PyTorch::live();
    pytorch_keeps(&pytorch);
    pytorch.save();
}
