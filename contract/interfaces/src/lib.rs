//! The interfaces of all components: what an implementation is asked, and what it answers.
//!
//! It is a separate crate, because learners' code is linked with it. It holds no oracle, no law and no bug: those are
//! in the folder of the same name in `contract/src`.

pub mod describe;
pub mod menu;
pub mod panics;
mod reply;

/// Lists the components, each with its interface, and with `menu` where sizes are compiled.
macro_rules! interfaces {
    ($($(#[$about:meta])* $slug:ident $(, $menu:ident)?;)+) => {$(
        $(#[$about])*
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
    norm, menu;
    /// VocabEmbedding.
    embedding, menu;
    /// ParallelVocabEmbedding.
    parallel, menu;
    /// NTK-aware RoPE.
    rope, menu;
    /// LayerNorm.
    layernorm, menu;
    /// Grouped-query attention, and its cache.
    attention, menu;
    /// SwiGLU.
    feedforward, menu;
    /// Cross-entropy.
    loss;
    /// The Llama decoder.
    model, menu;
    /// Absolute positions.
    absolute;
    /// Biases in the scores: ALiBi, T5, KERPLE, Transformer-XL.
    biases;
    /// Stretched RoPE.
    frequencies, menu;
    /// More rotations.
    rotations, menu;
    /// Collectives: what ranks say to each other.
    collectives, world;
}
