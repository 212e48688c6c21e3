//! Parties to the contract that are not made of its own loops: the library, and PyTorch.

pub mod pytorch;
pub mod reference;
