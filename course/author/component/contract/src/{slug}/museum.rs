//! Bugs of {Type}.

use crate::component::Bug;
use crate::{slug}::oracle::{{Type}Loops, implementation};
use crate::{slug}::interface::{{Type}, {Type}Case};

/// A bug: its name, and the steps that it writes wrong.
macro_rules! bug {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl {Type}Loops for $name { $($steps)* }
        || -> Box<dyn {Type}> { implementation($name) }
    }};
}

/// All of them. TO DO: at least 5, each one step written wrong, with its story.
pub static BUGS: &[Bug<dyn {Type}>] = &[
    Bug {
        id: "{slug}/input-returned",
        misconception: "returns its input as it is",
        story: "A branch for a layer that is switched off. Shapes and gradients look fine.",
        source: None,
        named_by: "{slug}/forward-any-input",
        implementation: bug!(InputReturned {
            fn element(&self, case: &{Type}Case, i: usize) -> f64 {
                f64::from(case.x[i])
            }
        }),
    },
    Bug {
        id: "{slug}/zeros-returned",
        misconception: "returns zeros, of the right shape",
        story: "The result was allocated and never filled.",
        source: None,
        named_by: "{slug}/forward-any-input",
        implementation: bug!(ZerosReturned {
            fn element(&self, _: &{Type}Case, _: usize) -> f64 {
                0.0
            }
        }),
    },
];
