//! The rotation as it is written with PyTorch.

use super::*;
use crate::implementations::{Adapter, Apart, adapter};
use contract::component::Component;
use contract::interface::*;
use contract::registry::task;
use contract::task::Grading;
use std::ops::Range;

fn rotate_question(call: &str, case: &RotateCase) -> Value {
    let RotateCase { shape, tables, x, layout } = case;
    json!({"call": call, "shape": shape, "cos": plain(&tables.cos), "sin": plain(&tables.sin),
           "x": plain(x), "layout": format!("{layout:?}")})
}

/// PyTorch has no rotary module: nothing that is about its ratio, its calls and its cache.
fn apart() -> Vec<Apart> {
    let ids = |name| match task(name).map(|task| task.grading) {
        Some(Grading::Invariants { ids, .. }) => ids,
        _ => panic!("task {name} is graded by invariants"),
    };
    let by_id = <dyn NtkAwareRope>::invariants().iter();
    let by_id = by_id.filter(|law| law.chapter == "longer#position-ids").map(|law| law.id);
    let ids = ids("rope/ratio").iter().chain(ids("rope/module")).copied().chain(by_id);
    ids.map(|id| (id, "PyTorch has no rotary module")).collect()
}

/// The adapter.
pub const ADAPTER: Adapter<PyTorch> = adapter!(NtkAwareRope, &apart());

impl NtkAwareRope for PyTorch {
    fn frequencies(&self, head_dim: usize, base: f64, ratio: f64) -> Reply<Vec<f64>> {
        let call = "rope.frequencies";
        let (base, ratio) = (plain_f64(base), plain_f64(ratio));
        self.ask(json!({"call": call, "head_dim": head_dim, "base": base, "ratio": ratio}))
    }

    fn tables(
        &self,
        head_dim: usize,
        base: f64,
        ratio: f64,
        positions: Range<usize>,
    ) -> Reply<Tables> {
        let mut cos = self
            .ask_f32(json!({"call": "rope.tables", "head_dim": head_dim, "base": base,
            "ratio": ratio, "start": positions.start, "end": positions.end}))?;
        let sin = cos.split_off(cos.len() / 2);
        Ok(Tables { cos, sin })
    }

    fn rotate_in(&self, _: Manner, case: &RotateCase) -> Reply<Vec<f32>> {
        self.ask_f32(rotate_question("rope.rotate", case))
    }

    fn rotate_backward_in(&self, _: Manner, case: &RotateCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.ask_f32(with_dy(rotate_question("rope.rotate_backward", case), dy))
    }

    fn to_interleaved(&self, head_dim: usize, x: &[f32]) -> Reply<Vec<f32>> {
        self.ask_f32(json!({"call": "rope.to_interleaved", "head_dim": head_dim, "x": plain(x)}))
    }

    fn to_half_split(&self, head_dim: usize, x: &[f32]) -> Reply<Vec<f32>> {
        self.ask_f32(json!({"call": "rope.to_half_split", "head_dim": head_dim, "x": plain(x)}))
    }

    fn ratio_for_length(&self, _: usize, _: usize) -> Reply<usize> {
        Err(Refusal::not_asked("PyTorch has no NTK ratio"))
    }

    fn build(&self, _: &RopeSettings) -> Reply<Box<dyn RopeModule>> {
        Err(Refusal::not_asked("PyTorch has no RoPE module"))
    }
}
