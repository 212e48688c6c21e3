//! Fixed questions whose inputs make every term matter. The diagnosis compares the answers.

mod norm;
mod parallel_vocab_emb;
mod vocab_emb;
