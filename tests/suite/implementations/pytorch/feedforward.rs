//! SwiGLU of PyTorch.

use super::*;
use crate::implementations::{Adapter, adapter};
use contract::interface::*;

fn question(call: &str, case: &SwiGluCase) -> Value {
    let SwiGluCase { shape, ffn_hidden_size, gate, up, down, x } = case;
    let [gate, up, down, x] = [gate, up, down, x].map(|values| plain(values));
    json!({"call": call, "shape": shape, "ffn_hidden_size": ffn_hidden_size, "gate": gate, "up": up,
           "down": down, "x": x})
}

/// The adapter.
pub const ADAPTER: Adapter<PyTorch> = adapter!(SwiGlu, &[]);

impl SwiGlu for PyTorch {
    fn size(&self, case: &SizeCase) -> Reply<usize> {
        let SizeCase { hidden_size, multiple_of, multiplier } = case;
        let size = self
            .ask_whole(json!({"call": "feedforward.size", "hidden_size": hidden_size,
                                         "multiple_of": multiple_of, "multiplier": multiplier}))?;
        Ok(size[0])
    }

    fn forward_in(&self, _: Manner, case: &SwiGluCase) -> Reply<Vec<f32>> {
        self.ask_f32(question("feedforward.forward", case))
    }

    fn backward_in(&self, _: Manner, case: &SwiGluCase, dy: &[f32]) -> Reply<SwiGluGrads> {
        let mut dx = self.ask_f32(with_dy(question("feedforward.backward", case), dy))?;
        let mut dgate = dx.split_off(case.x.len());
        let mut dup = dgate.split_off(case.gate.len());
        let ddown = dup.split_off(case.up.len());
        Ok(SwiGluGrads { dx, dgate, dup, ddown })
    }
}
