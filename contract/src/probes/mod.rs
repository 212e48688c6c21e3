//! Fixed questions whose inputs make every term matter. The diagnosis compares the answers.

mod norm;
mod rope;
mod temp;
mod vocab_emb;
