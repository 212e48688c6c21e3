//! Positions inside the scores: what is added to the product of a query and a key depends on the distance between them.
//!
//! | Encoding | File | It adds |
//! | --- | --- | --- |
//! | [`T5Bias`] | `t5.rs` | a learned number for each bucket of distances |
//! | [`Alibi`] | `alibi.rs` | a slope times the distance |
//! | [`Kerple`] | `kerple.rs` | a logarithm or a power of the distance |
//! | [`TransformerXl`] | `transformer_xl/` | what a query has to say of each distance |
//!
//! Their formulas are in `formula.rs`, and that of Transformer-XL has its own file.
//!
//! A bias that knows the distance alone is a table by distance, `[nh, t]`, and never a matrix of queries and keys.

mod alibi;
mod formula;
mod kerple;
mod t5;
mod transformer_xl;

pub use alibi::Alibi;
pub use formula::{
    KerpleKernel, alibi_bias, alibi_slopes, kerple_bias, t5_bias, t5_bias_between, t5_bucket,
};
pub use kerple::{Kerple, KerpleConfig};
pub use t5::{T5Bias, T5BiasConfig};
pub use transformer_xl::{
    TransformerXl, TransformerXlConfig, add_to_heads, relative_scores, relative_scores_direct,
};
