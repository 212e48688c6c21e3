//! Grouped-query attention of PyTorch: as it is written with its operations, and its own where it has one.

use super::*;
use crate::implementations::{Adapter, Apart, adapter};
use contract::interface::*;
use contract::registry::task;
use contract::task::Grading;

fn question(call: &str, case: &AttendCase) -> Value {
    let AttendCase { sizes, q, k, v } = case;
    json!({"call": call, "of_q": sizes.of_queries(), "of_k": sizes.of_keys(),
           "q": plain(q), "k": plain(k), "v": plain(v)})
}

/// PyTorch adds a mask to its scores. It has no cache of keys and values: a user concatenates, or takes that of another library.
fn apart() -> Vec<Apart> {
    let ids = match task("attention/cache").map(|task| task.grading) {
        Some(Grading::Invariants { ids, .. }) => ids,
        _ => panic!("the cache is graded by invariants"),
    };
    let cache = ids.iter().map(|id| (*id, "PyTorch has no cache of keys and values"));
    let added =
        "scaled_dot_product_attention adds minus infinity to what is not seen, and NaN stays NaN";
    cache.chain([("attention/unseen-keys", added)]).collect()
}

/// The adapter.
pub const ADAPTER: Adapter<PyTorch> = adapter!(GroupedQueryAttention, &apart());

impl GroupedQueryAttention for PyTorch {
    fn repeat_in(&self, _: Manner, shape: [usize; 4], times: usize, x: &[f32]) -> Reply<Vec<f32>> {
        let call = "attention.repeat";
        self.ask_f32(json!({"call": call, "shape": shape, "times": times, "x": plain(x)}))
    }

    fn repeat_backward(
        &self,
        _: Manner,
        shape: [usize; 4],
        times: usize,
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        let call = "attention.repeat_backward";
        self.ask_f32(with_dy(json!({"call": call, "shape": shape, "times": times}), dy))
    }

    fn mask(&self, s: usize, p: usize) -> Reply<Vec<bool>> {
        let mask = self.ask_whole(json!({"call": "attention.mask", "s": s, "p": p}))?;
        Ok(mask.into_iter().map(|seen| seen == 1).collect())
    }

    fn window_mask(&self, s: usize, p: usize, window: usize) -> Reply<Vec<bool>> {
        let call = "attention.window_mask";
        let mask = self.ask_whole(json!({"call": call, "s": s, "p": p, "window": window}))?;
        Ok(mask.into_iter().map(|seen| seen == 1).collect())
    }

    fn forward_in(&self, _: Manner, case: &AttendCase) -> Reply<Vec<f32>> {
        self.ask_f32(question("attention.forward", case))
    }

    fn backward_in(&self, _: Manner, case: &AttendCase, dy: &[f32]) -> Reply<AttendGrads> {
        let mut dq = self.ask_f32(with_dy(question("attention.backward", case), dy))?;
        let mut dk = dq.split_off(case.q.len());
        let dv = dk.split_off(case.k.len());
        Ok(AttendGrads { dq, dk, dv })
    }

    fn softmax_backward_in(
        &self,
        _: Manner,
        shape: [usize; 4],
        y: &[f32],
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        let call = "attention.softmax_backward";
        self.ask_f32(with_dy(json!({"call": call, "shape": shape, "y": plain(y)}), dy))
    }

    fn cache(&self, _: usize) -> Reply<Box<dyn KeyValueCache>> {
        Err(Refusal::not_asked("PyTorch has no cache of keys and values"))
    }
}
