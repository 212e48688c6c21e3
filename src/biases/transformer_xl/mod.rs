//! Transformer-XL's relative positions: what a query has to say of each distance, regardless of the
//! key.

mod formula;
mod module;

pub use formula::{add_to_heads, relative_scores, relative_scores_direct};
pub use module::{TransformerXl, TransformerXlConfig};
