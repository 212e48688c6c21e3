//! The contract and its implementations: the library keeps all of it, and so does PyTorch.
//!
//! `contract/` holds what each component promises. Its own tests prove it on known bugs and correct
//! variants; here it meets implementations that it knows nothing of.

use crate::implementations::pytorch::PyTorch;
use crate::implementations::reference::Library;
use crate::implementations::{Adapter, pytorch, reference};
use contract::component::Component;
use contract::interface::NtkAwareRope;
use contract::registry::COMPONENTS;
use contract::run::Run;
use quadrivium::{composed, in_threads};

/// Holds an implementation to every component of the registry, in its order.
fn keeps<T>(implementation: &T, run: &Run, adapters: &[Adapter<T>], folder: &str) {
    let of = |slug| {
        let adapter = adapters.iter().find(|adapter| adapter.slug == slug).unwrap_or_else(|| {
            panic!("write {folder}/{slug}.rs, and name it in ADAPTERS in {folder}/mod.rs")
        });
        (adapter.surprises)(implementation, run)
    };
    let surprises: Vec<String> = COMPONENTS.iter().flat_map(|one| of(one.slug)).collect();
    assert!(surprises.is_empty(), "{}", surprises.join("\n\n"));
}

/// On a GPU, sums over many tokens have no fixed order, and the contract asks for one.
fn for_the_library() -> Run {
    Run { blocks: cfg!(not(feature = "cuda")), ..Run::default() }
}

#[test]
fn the_library_keeps_the_contract() {
    keeps(
        &Library,
        &for_the_library(),
        reference::ADAPTERS,
        "tests/suite/implementations/reference",
    );
}

/// In threads, which inputs as small as these do not get by themselves.
#[test]
fn the_library_keeps_the_contract_in_threads() {
    in_threads(|| {
        keeps(
            &Library,
            &for_the_library(),
            reference::ADAPTERS,
            "tests/suite/implementations/reference",
        )
    });
}

/// The formulas as the book shows them, which a CPU does not take by itself.
#[test]
fn the_composed_formulas_keep_the_contract() {
    composed(|| {
        keeps(
            &Library,
            &for_the_library(),
            reference::ADAPTERS,
            "tests/suite/implementations/reference",
        )
    });
}

/// Few random inputs, because each answer is kept in a file.
const FOR_PYTORCH: Run = Run { seed: 7, cases: 4, shrink: false, every_size: false, blocks: false };

fn pytorch_keeps(pytorch: &PyTorch) {
    keeps(pytorch, &FOR_PYTORCH, pytorch::ADAPTERS, "tests/suite/implementations/pytorch");
    let unrecorded = pytorch.unrecorded();
    assert_eq!(unrecorded, 0, "questions have no recorded answer: see tests/goldens/README.md");
}

#[test]
fn pytorch_keeps_the_contract() {
    pytorch_keeps(&PyTorch::recorded());
}

/// Its angles are in `f32`. That is accepted, and the report says how far off they are.
#[test]
fn pytorch_is_told_about_its_angles() {
    let rope = <dyn NtkAwareRope>::invariants();
    let precision = rope.iter().find(|law| law.id == "rope/tables-precision").unwrap();
    let of_pytorch = precision.judge(&PyTorch::recorded(), &FOR_PYTORCH).unwrap();
    assert!(of_pytorch.unwrap().contains("f32"));
    assert_eq!(precision.judge(&Library, &FOR_PYTORCH).unwrap(), None);
}

/// Asks PyTorch again and keeps its answers. `tests/goldens/README.md` says how.
#[test]
#[ignore = "needs Python with PyTorch"]
fn record_pytorch() {
    let pytorch = PyTorch::live();
    pytorch_keeps(&pytorch);
    pytorch.save();
}
