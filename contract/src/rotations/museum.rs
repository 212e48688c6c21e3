//! Bugs of Rotations.

use crate::component::Bug;
use crate::rotations::oracle::{RotationsLoops, party};
use crate::rotations::party::{Rotations, RotationsCase};

/// A bug: its name, and the steps that it writes wrong.
macro_rules! bug {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl RotationsLoops for $name { $($steps)* }
        || -> Box<dyn Rotations> { party($name) }
    }};
}

/// All of them. TO DO: at least 5, each one step written wrong, with its story.
pub static BUGS: &[Bug<dyn Rotations>] = &[
    Bug {
        id: "rotations/input-returned",
        misconception: "returns its input as it is",
        story: "A branch for a layer that is switched off. Shapes and gradients look fine.",
        source: None,
        named_by: "rotations/forward-any-input",
        party: bug!(InputReturned {
            fn element(&self, case: &RotationsCase, i: usize) -> f64 {
                f64::from(case.x[i])
            }
        }),
    },
    Bug {
        id: "rotations/zeros-returned",
        misconception: "returns zeros, of the right shape",
        story: "The result was allocated and never filled.",
        source: None,
        named_by: "rotations/forward-any-input",
        party: bug!(ZerosReturned {
            fn element(&self, _: &RotationsCase, _: usize) -> f64 {
                0.0
            }
        }),
    },
];
