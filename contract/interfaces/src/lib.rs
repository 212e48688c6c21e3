//! The interfaces of all components: what an implementation is asked, and what it answers.
//!
//! A crate of its own, because learners' code is linked with it. It holds no oracle, no law and no bug. Each file stands in
//! its component's folder, beside those that only the judge has.

#[path = "../../src/describe.rs"]
pub mod describe;
#[path = "../../src/menu.rs"]
pub mod menu;
#[path = "../../src/panics.rs"]
pub mod panics;
#[path = "../../src/reply.rs"]
mod reply;

/// Lists the components, with their folders, and `menu` where sizes are compiled.
macro_rules! interfaces {
    ($($(#[$about:meta])* $slug:ident: $folder:literal $(, $menu:ident)?;)+) => {$(
        $(#[$about])*
        #[path = $folder]
        pub mod $slug {
            pub mod interface;
            $(pub mod $menu;)?
        }
    )+

        /// What all implementations are asked, and what they answer.
        pub mod interface {
            pub use crate::reply::*;
            $(pub use crate::$slug::interface::*;)+
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
