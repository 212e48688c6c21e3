//! Stretched RoPE of transformers and PyTorch.

use super::*;
use crate::implementations::{Adapter, adapter};
use contract::interface::*;

fn question(call: &str, case: &StretchedRopeCase) -> Value {
    let StretchedRopeCase { shape, offset, frequencies, scale, x } = case;
    json!({"call": call, "shape": shape, "offset": offset, "frequencies": frequencies, "scale": scale, "x": plain(x)})
}

/// The adapter.
pub const ADAPTER: Adapter<PyTorch> = adapter!(StretchedRope, &[]);

impl StretchedRope for PyTorch {
    fn frequencies(&self, case: &FrequenciesCase) -> Reply<Frequencies> {
        let FrequenciesCase { rule, head_dim, rotary_dim, base, offset, seq_len } = case;
        let question = json!({"call": "frequencies.rule", "rule": rule, "head_dim": head_dim, "rotary_dim": rotary_dim,
                              "base": base, "offset": offset, "seq_len": seq_len});
        let mut frequencies = self.ask(question)?;
        let scale = frequencies.split_off(rotary_dim / 2)[0];
        Ok(Frequencies { frequencies, scale })
    }

    fn forward_in(&self, _: Manner, case: &StretchedRopeCase) -> Reply<Vec<f32>> {
        self.ask_f32(question("frequencies.forward", case))
    }

    fn backward_in(
        &self,
        _: Manner,
        case: &StretchedRopeCase,
        dy: &[f32],
    ) -> Reply<StretchedRopeGrads> {
        let mut dx = self.ask_f32(with_dy(question("frequencies.backward", case), dy))?;
        let dtheta = dx.split_off(case.x.len());
        Ok(StretchedRopeGrads { dx, dtheta })
    }
}
