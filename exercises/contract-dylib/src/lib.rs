//! For building alone: the contract, and all that the autograder and the contract share, as one library that is linked when a program starts.
//!
//! A linker copies what a program needs of each library into it, and the contract is large: that was a third of what the processor
//! did from an edit to its verdict. With this, an edit links the learner's code and its adapters alone.

pub use contract;
// What learners' code takes from it must be here, too: rustc takes a crate from one place only.
use dfdx_prebuilt as _;
