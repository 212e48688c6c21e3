//! What each component of the course promises, and who keeps it.
//!
//! Everything that claims to be a GroupRMSNorm (the library, a learner's code, PyTorch, a known
//! bug) is an IMPLEMENTATION of one CONTRACT. The contract hands an implementation plain values and judges the plain
//! values that come back. It does not know the library, and the library does not know it.
//!
//! A folder for each component: oracle, laws, graded cases, museum, variants and tasks. Its interface is in the crate
//! `interfaces`, because learners' code is linked with that. All that serves every component knows none of them by name:
//!
//! - [`registry`]: the list of the components, and of the tasks. Everything else is made of it.
//! - [`component`]: what a component says of itself.
//! - [`interface`], [`oracle`], [`laws`] and [`menu`]: what interfaces, oracles, laws and sizes share.
//! - [`graded_cases`] and [`category`]: questions from the plainest on, and what the first wrong answer is about.
//! - [`run`] and [`violation`]: random inputs, and what is wrong with an answer.
//! - [`matrix`]: which bug is caught by which invariant.
//! - [`measured`]: bugs that the makers had not seen, and what came out when they were new.
//! - [`mutants`]: every bug under every condition, made and not chosen.
//! - [`task`], [`types`], [`grade`] and [`report`]: the exercises, how they are graded, and what a learner reads.
//! - [`diagnosis`]: which known bug a wrong implementation behaves like.
//! - [`repair`]: which one step, replaced, explains a wrong answer.
//! - [`places`]: where a component is in the workspace, and what it lacks.

pub mod category;
pub mod component;
pub mod diagnosis;
pub mod grade;
pub mod graded_cases;
pub mod laws;
pub mod layernorm;
pub mod matrix;
pub mod measured;
pub mod mutants;
pub mod oracle;
pub mod places;
pub mod printed;
pub mod property;
pub mod quiz;
pub mod registry;
pub mod repair;
pub mod report;
pub mod run;
pub mod task;
pub mod types;
pub mod violation;

pub mod absolute;
pub mod attention;
pub mod biases;
pub mod collectives;
pub mod embedding;
pub mod feedforward;
pub mod frequencies;
pub mod loss;
pub mod model;
pub mod norm;
pub mod parallel;
pub mod rope;
pub mod rotations;

use interfaces::describe;
pub use interfaces::{interface, menu, panics};
pub use interfaces::{
    with_cache_heads, with_embedding_sizes, with_feedforward_sizes, with_frequencies_size,
    with_head_dim, with_layernorm_sizes, with_model_sizes, with_norm_sizes, with_parallel_sizes,
    with_rotations_size,
};
