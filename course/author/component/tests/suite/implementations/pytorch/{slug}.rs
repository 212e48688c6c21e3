//! {Type} of PyTorch.

use super::{PyTorch, plain};
use crate::implementations::{Adapter, adapter};
use contract::interface::{{Type}, {Type}Case, Reply};
use serde_json::json;

/// The adapter.
pub const ADAPTER: Adapter<PyTorch> = adapter!({Type}, &[]);

impl {Type} for PyTorch {
    fn forward(&self, case: &{Type}Case) -> Reply<Vec<f32>> {
        let {Type}Case { shape, x } = case;
        self.ask_f32(json!({"call": "{slug}.forward", "shape": shape, "x": plain(x)}))
    }
}
