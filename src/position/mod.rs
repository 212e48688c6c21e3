//! Encodings of positions that are added: to tokens, below the first block, or to scores, inside attention. What turns
//! queries and keys instead is in [`rope`](crate::rope).
//!
//! | Encoding | File | It adds |
//! | --- | --- | --- |
//! | [`Sinusoidal`] | `sinusoidal.rs` | sines and cosines of the position, to tokens |
//! | [`LearnedPositions`] | `learned.rs` | a row of a table, to tokens |
//! | [`T5Bias`] | `t5.rs` | a learned number for each bucket of distances, to scores |
//! | [`Alibi`] | `alibi.rs` | a slope times the distance, to scores |
//! | [`Kerple`] | `kerple.rs` | a logarithm or a power of the distance, to scores |
//! | [`TransformerXl`] | `transformer_xl.rs` | what a query has to say of each distance, to scores |
//!
//! A bias that knows the distance alone is a table by distance, `[nh, t]`, and never a matrix of queries and keys.

mod alibi;
mod host;
mod kerple;
mod learned;
mod sinusoidal;
mod t5;
mod transformer_xl;

pub use alibi::{Alibi, alibi_bias, alibi_slopes};
pub use kerple::{Kerple, KerpleConfig, KerpleKernel, kerple_bias};
pub use learned::{LearnedPositions, LearnedPositionsConfig, add_learned_positions};
pub use sinusoidal::{Sinusoidal, add_sinusoids, sinusoid_shift, sinusoids};
pub use t5::{T5Bias, T5BiasConfig, t5_bias, t5_bias_between, t5_bucket};
pub use transformer_xl::{
    TransformerXl, TransformerXlConfig, add_to_heads, relative_scores, relative_scores_direct,
};
