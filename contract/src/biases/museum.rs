//! Bugs of ScoreBiases.

use crate::biases::oracle::{ScoreBiasesLoops, party};
use crate::biases::party::{ScoreBiases, ScoreBiasesCase};
use crate::component::Bug;

/// A bug: its name, and the steps that it writes wrong.
macro_rules! bug {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl ScoreBiasesLoops for $name { $($steps)* }
        || -> Box<dyn ScoreBiases> { party($name) }
    }};
}

/// All of them. TO DO: at least 5, each one step written wrong, with its story.
pub static BUGS: &[Bug<dyn ScoreBiases>] = &[
    Bug {
        id: "biases/input-returned",
        misconception: "returns its input as it is",
        story: "A branch for a layer that is switched off. Shapes and gradients look fine.",
        source: None,
        named_by: "biases/forward-any-input",
        party: bug!(InputReturned {
            fn element(&self, case: &ScoreBiasesCase, i: usize) -> f64 {
                f64::from(case.x[i])
            }
        }),
    },
    Bug {
        id: "biases/zeros-returned",
        misconception: "returns zeros, of the right shape",
        story: "The result was allocated and never filled.",
        source: None,
        named_by: "biases/forward-any-input",
        party: bug!(ZerosReturned {
            fn element(&self, _: &ScoreBiasesCase, _: usize) -> f64 {
                0.0
            }
        }),
    },
];
