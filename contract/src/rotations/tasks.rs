//! The tasks of more rotations, in the order in which they are meant to be done.

use crate::task::{At, Grading, Spec};
use crate::types::{By, Rule};

/// The tasks.
pub static TASKS: &[Spec] = &[
    Spec {
        name: "rotations/xpos",
        subject: "a rotation that fades",
        place: "rotations/xpos",
        needs: &[],
        chapter: "rotations#xpos",
        library: At { file: "src/rotations/formula.rs", mark: "ANCHOR: xpos_scale" },
        grading: Grading::Invariants {
            ids: &[
                "rotations/xpos-by-numbers",
                "rotations/xpos-center",
                "rotations/xpos-scales-cancel",
                "rotations/xpos-relative",
                "rotations/xpos-fades",
                "rotations/xpos-any-input",
            ],
            calls: &["xpos"],
            by_hand: false,
        },
    },
    Spec {
        name: "rotations/two-axes",
        subject: "a position of several numbers",
        place: "rotations/two-axes",
        needs: &[],
        chapter: "rotations#axial",
        library: At { file: "src/rotations/formula.rs", mark: "ANCHOR: axial_planes" },
        grading: Grading::Invariants {
            ids: &[
                "rotations/axial-origin",
                "rotations/axial-sections-start-anew",
                "rotations/axial-one-list",
                "rotations/axial-text-is-rope",
                "rotations/axial-rows-and-columns",
                "rotations/axial-swap",
                "rotations/axial-keeps-lengths",
                "rotations/axial-relative",
                "rotations/axial-any-input",
                "rotations/axial-gradient-turns-back",
                "rotations/axial-gradient-any-input",
            ],
            calls: &["axial", "axial_backward"],
            by_hand: false,
        },
    },
    Spec {
        name: "rotations/types",
        subject: "sections that do not fill a head must not compile",
        place: "rotations/types",
        needs: &[],
        chapter: "rotations#axial",
        library: At { file: "src/rotations/axial.rs", mark: "pub fn new(config: AxialRopeConfig)" },
        grading: Grading::Types(&TYPES),
    },
    Spec {
        name: "rotations/linear",
        subject: "attention without a softmax",
        place: "rotations/linear",
        needs: &[],
        chapter: "rotations#linear",
        library: At { file: "src/rotations/formula.rs", mark: "ANCHOR: linear_attention" },
        grading: Grading::Invariants {
            ids: &[
                "rotations/linear-phi-by-numbers",
                "rotations/linear-first-token",
                "rotations/linear-constant-values",
                "rotations/linear-numerator-alone",
                "rotations/linear-causal",
                "rotations/linear-relative",
                "rotations/linear-heads-are-apart",
                "rotations/linear-any-input",
                "rotations/linear-gradient-of-scale",
                "rotations/linear-gradient-of-constants",
                "rotations/linear-gradient-differences",
                "rotations/linear-gradient-of-queries",
                "rotations/linear-gradient-of-keys",
                "rotations/linear-gradient-of-values",
            ],
            calls: &[
                "linear",
                "linear_backward (dq)",
                "linear_backward (dk)",
                "linear_backward (dv)",
            ],
            by_hand: false,
        },
    },
    Spec {
        name: "rotations/running",
        subject: "the same as a state that runs",
        place: "rotations/running",
        needs: &[],
        chapter: "rotations#running",
        library: At { file: "src/rotations/running.rs", mark: "ANCHOR: linear_attention_running" },
        grading: Grading::Invariants {
            ids: &[
                "rotations/running-own-token",
                "rotations/running-is-all-pairs",
                "rotations/running-cut-anywhere",
                "rotations/running-any-input",
            ],
            calls: &["running"],
            by_hand: false,
        },
    },
    Spec {
        name: "rotations/relative",
        subject: "what is relative",
        place: "rotations/relative",
        needs: &[],
        chapter: "rotations#relative",
        library: At { file: "tests/suite/rotations.rs", mark: "//!" },
        grading: Grading::Property { needed: 12 },
    },
];

/// What must compile, and what must not: three sections that fill the planes of a head, each of 1 plane at least.
static TYPES: Rule = Rule {
    imports: &["exercises::rotations::Sections"],
    sizes: || {
        let small =
            (0..4usize).flat_map(|t| (0..4).flat_map(move |h| (0..4).map(move |w| [t, h, w])));
        let near = |[t, h, w]: [usize; 3]| {
            let hd = 2 * (t + h + w);
            [hd.saturating_sub(2), hd.saturating_sub(1), hd, hd + 1, hd + 2, t + h + w]
                .map(|hd| vec![hd, t, h, w])
        };
        let more = [[16, 24, 24], [24, 20, 20], [1, 1, 30], [11, 11, 10]];
        let mut sizes: Vec<Vec<usize>> = small.chain(more).flat_map(near).collect();
        // The compiler says of each type once that it is refused.
        sizes.sort();
        sizes.dedup();
        sizes
    },
    fits: |sizes| match sizes {
        [hd, parts @ ..] => !parts.contains(&0) && 2 * parts.iter().sum::<usize>() == *hd,
        [] => false,
    },
    function: |sizes| {
        let list: Vec<String> = sizes.iter().map(ToString::to_string).collect();
        format!("() {{ let _: fn() -> _ = Sections::<{}>::new; }}", list.join(", "))
    },
    refused_by: By::Assertion,
    keeps: None,
};
