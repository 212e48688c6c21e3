//! The tasks of attention, in the order in which they are meant to be done.

use crate::task::{At, Grading, Spec};
use crate::types::{By, Rule};

/// The tasks.
pub static TASKS: &[Spec] = &[
    Spec {
        name: "attention/repeat",
        subject: "key heads for every query head",
        place: "attention/repeat",
        needs: &[],
        chapter: "attention#groups",
        library: At { file: "src/attention/formula.rs", mark: "ANCHOR: repeat_kv" },
        grading: Grading::Invariants {
            ids: &[
                "attention/repeat-neighbours",
                "attention/repeat-any-size",
                "attention/repeat-gradient",
            ],
            calls: &["repeat", "repeat_backward"],
            by_hand: false,
        },
    },
    Spec {
        name: "attention/mask",
        subject: "who sees whom",
        place: "attention/mask",
        needs: &[],
        chapter: "attention#mask",
        library: At { file: "src/attention/formula.rs", mark: "ANCHOR: causal_mask" },
        grading: Grading::Invariants {
            ids: &[
                "attention/mask-triangle",
                "attention/mask-with-cache",
                "attention/mask-tail",
                "attention/mask-any-size",
            ],
            calls: &["mask"],
            by_hand: false,
        },
    },
    Spec {
        name: "attention/forward",
        subject: "attention, and the gradients that its tape gives",
        place: "attention/forward",
        needs: &["attention/repeat", "attention/mask"],
        chapter: "attention#definition",
        library: At { file: "src/attention/formula.rs", mark: "ANCHOR: attention_forward" },
        grading: Grading::Invariants {
            ids: &[
                "attention/first-token",
                "attention/equal-scores",
                "attention/score-scale",
                "attention/causal",
                "attention/unseen-keys",
                "attention/key-shift",
                "attention/large-scores",
                "attention/weights-sum-to-one",
                "attention/decode",
                "attention/past-is-a-bag",
                "attention/groups-are-copies",
                "attention/heads-change-places",
                "attention/batch-rows-apart",
                "attention/forward-refuses",
                "attention/forward-f64-loops",
                "attention/gradient-differences",
                "attention/gradient-of-the-future",
                "attention/gradient-of-values-adds-up",
                "attention/gradient-of-keys-cancels",
                "attention/gradient-of-queries",
                "attention/gradient-of-keys",
                "attention/gradient-of-values",
            ],
            calls: &["forward", "backward (dq)", "backward (dk)", "backward (dv)"],
            by_hand: false,
        },
    },
    Spec {
        name: "attention/softmax-backward",
        subject: "the softmax's gradient by hand",
        place: "attention/softmax-backward",
        needs: &[],
        chapter: "attention#softmax-gradient",
        library: At { file: "src/attention/formula.rs", mark: "ANCHOR: softmax_backward" },
        grading: Grading::Invariants {
            ids: &[
                "attention/softmax-gradient-sums-to-zero",
                "attention/softmax-gradient-of-certainty",
                "attention/softmax-gradient-of-a-level",
                "attention/softmax-gradient-f64-loops",
            ],
            calls: &["softmax_backward"],
            by_hand: true,
        },
    },
    Spec {
        name: "attention/cache",
        subject: "keys and values that are kept",
        place: "attention/cache",
        needs: &["attention/repeat", "attention/mask", "attention/forward"],
        chapter: "attention#cache",
        library: At { file: "src/attention/cache.rs", mark: "pub fn push<" },
        grading: Grading::Invariants {
            ids: &[
                "attention/cache-keeps",
                "attention/pieces-are-one-call",
                "attention/full-cache-refuses",
                "attention/refused-piece-changes-nothing",
                "attention/cache-refuses-other-shapes",
                "attention/caches-are-apart",
                "attention/cache-any-size",
            ],
            calls: &["cache", "push", "positions", "forward"],
            by_hand: false,
        },
    },
    Spec {
        name: "attention/sliding-window",
        subject: "who sees whom through a window",
        place: "attention/sliding-window",
        needs: &[],
        chapter: "attention#window",
        library: At { file: "src/attention/formula.rs", mark: "ANCHOR: sliding_window_mask" },
        grading: Grading::Invariants {
            ids: &[
                "attention/window-band",
                "attention/window-with-cache",
                "attention/window-of-the-text",
                "attention/window-any-size",
            ],
            calls: &["window_mask"],
            by_hand: false,
        },
    },
    Spec {
        name: "attention/types",
        subject: "heads that do not fit must not compile",
        place: "attention/types",
        needs: &[],
        chapter: "shapes#const-assertions",
        library: At { file: "src/attention/mod.rs", mark: "const fn assert_attention(" },
        grading: Grading::Types(&TYPES),
    },
    Spec {
        name: "attention/property",
        subject: "an invariant of your own",
        place: "attention/property",
        needs: &[],
        chapter: "testing#properties",
        library: At { file: "tests/suite/attention.rs", mark: "//!" },
        grading: Grading::Property { needed: 15 },
    },
];

/// What must compile, and what must not.
static TYPES: Rule = Rule {
    imports: &["exercises::attention::HeadSizes"],
    sizes,
    fits: |sizes| {
        let &[h, nh, nkv, hd] = sizes else { return false };
        let heads = nh > 0 && nkv > 0 && nh % nkv == 0;
        heads && hd > 0 && hd % 2 == 0 && h == nh * hd
    },
    function: |sizes| {
        let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
        format!("() {{ let _: fn() -> _ = HeadSizes::<{}>::new; }}", sizes.join(", "))
    },
    refused_by: By::Assertion,
    keeps: None,
};

/// All small heads, with the hidden size that they make and with others; and sizes that real models have, with
/// their neighbours. `h`, `nh`, `nkv`, `hd`.
fn sizes() -> Vec<Vec<usize>> {
    let mut all = Vec::new();
    for (nh, nkv) in (0..=6usize).flat_map(|nh| (0..=nh + 2).map(move |nkv| (nh, nkv))) {
        for hd in 0..=4usize {
            let h = nh * hd;
            all.extend(
                [h, h + 1, h + hd, h.saturating_sub(hd), nkv * hd, hd].map(|h| [h, nh, nkv, hd]),
            );
        }
    }
    // SmolLM 135M, TinyLlama 1.1B, Llama 3.2 1B, Llama 2 7B and 70B, Llama 3 8B.
    let models = [
        [576, 9, 3, 64],
        [2048, 32, 4, 64],
        [2048, 32, 8, 64],
        [4096, 32, 32, 128],
        [8192, 64, 8, 128],
        [4096, 32, 8, 128],
    ];
    for model in models {
        all.push(model);
        for place in 0..4 {
            for near in [-2isize, -1, 1, 2] {
                let mut other = model;
                other[place] = other[place].wrapping_add_signed(near);
                all.push(other);
            }
        }
    }
    all.sort();
    all.dedup();
    all.into_iter().map(Vec::from).collect()
}
