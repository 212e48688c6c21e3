//! Fixed questions whose inputs make every term matter. The diagnosis compares the answers.

mod norm;
mod parallel_vocab_emb;
mod rope;
mod vocab_emb;
