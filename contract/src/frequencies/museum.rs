//! Bugs of StretchedRope.

use crate::component::Bug;
use crate::frequencies::oracle::{StretchedRopeLoops, party};
use crate::frequencies::party::{StretchedRope, StretchedRopeCase};

/// A bug: its name, and the steps that it writes wrong.
macro_rules! bug {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl StretchedRopeLoops for $name { $($steps)* }
        || -> Box<dyn StretchedRope> { party($name) }
    }};
}

/// All of them. TO DO: at least 5, each one step written wrong, with its story.
pub static BUGS: &[Bug<dyn StretchedRope>] = &[
    Bug {
        id: "frequencies/input-returned",
        misconception: "returns its input as it is",
        story: "A branch for a layer that is switched off. Shapes and gradients look fine.",
        source: None,
        named_by: "frequencies/forward-any-input",
        party: bug!(InputReturned {
            fn element(&self, case: &StretchedRopeCase, i: usize) -> f64 {
                f64::from(case.x[i])
            }
        }),
    },
    Bug {
        id: "frequencies/zeros-returned",
        misconception: "returns zeros, of the right shape",
        story: "The result was allocated and never filled.",
        source: None,
        named_by: "frequencies/forward-any-input",
        party: bug!(ZerosReturned {
            fn element(&self, _: &StretchedRopeCase, _: usize) -> f64 {
                0.0
            }
        }),
    },
];
