//! The interfaces of all components: what a party is asked, and what it answers.
//!
//! A crate of its own, because learners' code is linked with it. It holds no oracle, no law and no bug. Each file stands in
//! its component's folder, beside those that only the judge has.

#[path = "../../src/describe.rs"]
pub mod describe;
#[path = "../../src/interface.rs"]
pub mod interface;
#[path = "../../src/menu.rs"]
pub mod menu;
#[path = "../../src/panics.rs"]
pub mod panics;

/// Lists the components, with their folders, and `menu` where sizes are compiled.
macro_rules! interfaces {
    ($($(#[$about:meta])* $slug:ident: $folder:literal $(, $menu:ident)?;)+) => {$(
        $(#[$about])*
        #[path = $folder]
        pub mod $slug {
            pub mod party;
            $(pub mod $menu;)?
        }
    )+

        /// What all parties are asked, and what they answer.
        pub mod party {
            pub use crate::interface::{Manner, NormalInit, Refusal, Reply};
            $(pub use crate::$slug::party::*;)+
        }
    };
}

interfaces! {
    /// GroupRMSNorm.
    norm: "../../src/norm", menu;
    /// VocabEmbedding.
    embedding: "../../src/embedding", menu;
    /// ParallelVocabEmbedding.
    parallel: "../../src/parallel", menu;
    /// NTK-aware RoPE.
    rope: "../../src/rope", menu;
    /// LayerNorm.
    layernorm: "../../src/layernorm", menu;
    /// Grouped-query attention, and its cache.
    attention: "../../src/attention", menu;
    /// SwiGLU.
    feedforward: "../../src/feedforward", menu;
    /// Cross-entropy.
    loss: "../../src/loss";
    /// The Llama decoder.
    model: "../../src/model", menu;
    /// Absolute positions.
    absolute: "../../src/absolute";
    /// Biases in the scores: ALiBi, T5, KERPLE, Transformer-XL.
    biases: "../../src/biases";
    /// Stretched RoPE.
    frequencies: "../../src/frequencies", menu;
    /// More rotations.
    rotations: "../../src/rotations", menu;
    /// Collectives: what ranks say to each other.
    collectives: "../../src/collectives", world;
}
