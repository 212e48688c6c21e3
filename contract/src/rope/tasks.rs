//! The tasks of NTK-aware RoPE, in the order in which they are meant to be done.

use crate::task::{At, Grading, Spec};
use crate::types::{By, Rule};

/// The tasks.
pub static TASKS: &[Spec] = &[
    Spec {
        name: "rope/frequencies",
        subject: "the frequencies",
        place: "rope/frequencies",
        needs: &[],
        chapter: "rope#frequencies",
        library: At { file: "src/rope/frequencies.rs", mark: "ANCHOR: frequencies" },
        grading: Grading::Invariants {
            ids: &[
                "rope/fastest-plane-first",
                "rope/plain-frequencies",
                "rope/ntk-slows-last-plane",
                "rope/ntk-constant-quotient",
                "rope/ntk-composes",
                "rope/frequencies-f64-loops",
                "rope/frequencies-refuse",
            ],
            calls: &["frequencies"],
            by_hand: false,
        },
    },
    Spec {
        name: "rope/tables",
        subject: "the tables",
        place: "rope/tables",
        needs: &["rope/frequencies"],
        chapter: "rope#tables",
        library: At {
            file: "src/rope/tables.rs",
            mark: "impl<H: Dim, D: Device<f32>> RotaryTables<H, D>",
        },
        grading: Grading::Invariants {
            ids: &[
                "rope/tables-position-zero",
                "rope/tables-position-one",
                "rope/tables-equal-halves",
                "rope/tables-on-circle",
                "rope/tables-rows",
                "rope/tables-precision",
                "rope/tables-f64-loops",
            ],
            calls: &["tables"],
            by_hand: false,
        },
    },
    Spec {
        name: "rope/rotate",
        subject: "the rotation",
        place: "rope/rotate",
        needs: &[],
        chapter: "rope#rotation",
        library: At { file: "src/rope/formula.rs", mark: "ANCHOR: rope_forward" },
        grading: Grading::Invariants {
            ids: &[
                "rope/rotate-unit-vector",
                "rope/rotate-position-zero",
                "rope/rotate-keeps-lengths",
                "rope/rotate-linear",
                "rope/rotate-same-for-all",
                "rope/rotate-planes-apart",
                "rope/rotate-composes",
                "rope/rotate-f64-loops",
                "rope/gradient-f64-loops",
            ],
            calls: &["rotate", "rotate_backward"],
            by_hand: false,
        },
    },
    Spec {
        name: "rope/backward",
        subject: "the gradient by hand",
        place: "rope/backward",
        needs: &["rope/rotate"],
        chapter: "rope#gradient",
        library: At { file: "src/rope/formula.rs", mark: "ANCHOR: rope_backward" },
        grading: Grading::Invariants {
            ids: &[
                "rope/gradient-turns-back",
                "rope/gradient-keeps-lengths",
                "rope/gradient-undoes",
                "rope/gradient-adjoint",
                "rope/gradient-f64-loops",
            ],
            calls: &["rotate_backward", "rotate"],
            by_hand: true,
        },
    },
    Spec {
        name: "rope/interleave",
        subject: "adjacent pairs",
        place: "rope/interleave",
        needs: &[],
        chapter: "rope#layouts",
        library: At { file: "src/rope/layouts.rs", mark: "pub fn half_split_to_interleaved<" },
        grading: Grading::Invariants {
            ids: &["rope/interleaved-order", "rope/interleaved-any-size"],
            calls: &["to_interleaved"],
            by_hand: false,
        },
    },
    Spec {
        name: "rope/back",
        subject: "and back",
        place: "rope/back",
        needs: &["rope/rotate", "rope/interleave"],
        chapter: "rope#layouts",
        library: At { file: "src/rope/layouts.rs", mark: "pub fn interleaved_to_half_split<" },
        grading: Grading::Invariants {
            ids: &[
                "rope/half-split-order",
                "rope/half-split-any-size",
                "rope/layouts-round-trip",
                "rope/rotate-interleaved",
                "rope/layouts-agree",
            ],
            calls: &["to_half_split", "to_interleaved", "rotate"],
            by_hand: false,
        },
    },
    Spec {
        name: "rope/ratio",
        subject: "the ratio for a long call",
        place: "rope/ratio",
        needs: &[],
        chapter: "longer#long-calls",
        library: At { file: "src/rope/frequencies.rs", mark: "pub fn ratio_for_length(" },
        grading: Grading::Invariants {
            ids: &[
                "rope/long-ratio-edges",
                "rope/long-ratio-smallest-even",
                "rope/ratio-any-length",
            ],
            calls: &["ratio_for_length"],
            by_hand: false,
        },
    },
    Spec {
        name: "rope/module",
        subject: "the module and its cache",
        place: "rope/module",
        needs: &["rope/frequencies", "rope/tables", "rope/rotate", "rope/ratio"],
        chapter: "longer#long-calls",
        library: At { file: "src/rope/mod.rs", mark: "ANCHOR: long_call" },
        grading: Grading::Invariants {
            ids: &[
                "rope/fresh-state",
                "rope/turns-by-position",
                "rope/relative-positions",
                "rope/offset",
                "rope/exact-end-uses-cache",
                "rope/offset-counts-in-length",
                "rope/long-call-ratio",
                "rope/long-call-same-either-way",
                "rope/static-state-stays",
                "rope/dynamic-grows",
                "rope/dynamic-later-calls",
                "rope/dynamic-grows-again",
                "rope/dynamic-never-shrinks",
                "rope/large-positions",
                "rope/overflow-is-refused",
                "rope/refused-call-changes-nothing",
                "rope/settings-refused",
                "rope/modules-are-apart",
                "rope/module-f64-loops",
            ],
            calls: &["build", "forward", "state"],
            by_hand: false,
        },
    },
    Spec {
        name: "rope/types",
        subject: "heads that can't be turned must not compile",
        place: "rope/types",
        needs: &[],
        chapter: "shapes#const-assertions",
        library: At { file: "src/rope/mod.rs", mark: "pub(crate) const fn assert_head(" },
        grading: Grading::Types(&TYPES),
    },
    Spec {
        name: "rope/property",
        subject: "an invariant of your own",
        place: "rope/property",
        needs: &[],
        chapter: "testing#properties",
        library: At { file: "tests/suite/rope.rs", mark: "//!" },
        grading: Grading::Property { needed: 30 },
    },
];

/// What must compile, and what must not.
static TYPES: Rule = Rule {
    imports: &["exercises::rope::NtkAwareRope", "exercises::prelude::*"],
    sizes: || {
        let large = [96, 100, 127, 128, 160, 192, 255, 256, 511, 512, 1025];
        (0..=70).chain(large).map(|hd| vec![hd]).collect()
    },
    fits: |sizes| sizes[0] >= 4 && sizes[0] % 2 == 0,
    function: |sizes| {
        let new = format!("NtkAwareRope::<{}, Cpu>::new", sizes[0]);
        format!("() {{ let _: fn(&_, f64, usize, usize, bool) -> _ = {new}; }}")
    },
    refused_by: By::Assertion,
    keeps: None,
};
