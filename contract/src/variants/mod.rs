//! Correct implementations, written differently than the oracle: in `f32`, in another order, by
//! another formula. No invariant may refuse one of them.

pub mod norm;
pub mod parallel_vocab_emb;
pub mod rope;
pub mod vocab_emb;
