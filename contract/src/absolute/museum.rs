//! Bugs of AbsolutePositions.

use crate::absolute::oracle::{AbsolutePositionsLoops, party};
use crate::absolute::party::{AbsolutePositions, AbsolutePositionsCase};
use crate::component::Bug;

/// A bug: its name, and the steps that it writes wrong.
macro_rules! bug {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl AbsolutePositionsLoops for $name { $($steps)* }
        || -> Box<dyn AbsolutePositions> { party($name) }
    }};
}

/// All of them. TO DO: at least 5, each one step written wrong, with its story.
pub static BUGS: &[Bug<dyn AbsolutePositions>] = &[
    Bug {
        id: "absolute/input-returned",
        misconception: "returns its input as it is",
        story: "A branch for a layer that is switched off. Shapes and gradients look fine.",
        source: None,
        named_by: "absolute/forward-any-input",
        party: bug!(InputReturned {
            fn element(&self, case: &AbsolutePositionsCase, i: usize) -> f64 {
                f64::from(case.x[i])
            }
        }),
    },
    Bug {
        id: "absolute/zeros-returned",
        misconception: "returns zeros, of the right shape",
        story: "The result was allocated and never filled.",
        source: None,
        named_by: "absolute/forward-any-input",
        party: bug!(ZerosReturned {
            fn element(&self, _: &AbsolutePositionsCase, _: usize) -> f64 {
                0.0
            }
        }),
    },
];
