//! Rotations of PyTorch.

use super::*;
use crate::implementations::{Adapter, adapter};
use contract::interface::*;

/// The adapter.
pub const ADAPTER: Adapter<PyTorch> = adapter!(Rotations, &[]);

fn axial_question(call: &str, case: &AxialCase) -> Value {
    let AxialCase { shape, planes, sections, base, coordinates, x } = case;
    json!({"call": call, "shape": shape, "planes": planes, "sections": format!("{sections:?}"), "base": base,
           "coordinates": coordinates, "x": plain(x)})
}

fn linear_question(call: &str, case: &LinearCase) -> Value {
    let LinearCase { shape, base, offset, q, k, v } = case;
    let [q, k, v] = [q, k, v].map(|values| plain(values));
    json!({"call": call, "shape": shape, "base": base, "offset": offset, "q": q, "k": k, "v": v})
}

impl Rotations for PyTorch {
    fn xpos_in(&self, _: Manner, case: &XPosCase) -> Reply<TurnedPair> {
        let XPosCase { shape, base, scale_base, center, offset, q, k } = case;
        let mut both = self.ask_f32(json!({"call": "rotations.xpos", "shape": shape, "base": base,
            "scale_base": scale_base, "center": center, "offset": offset, "q": plain(q), "k": plain(k)}))?;
        let k = both.split_off(q.len());
        Ok(TurnedPair { q: both, k })
    }

    fn axial_in(&self, _: Manner, case: &AxialCase) -> Reply<Vec<f32>> {
        self.ask_f32(axial_question("rotations.axial", case))
    }

    fn axial_backward_in(&self, _: Manner, case: &AxialCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.ask_f32(with_dy(axial_question("rotations.axial_backward", case), dy))
    }

    fn linear_in(&self, _: Manner, case: &LinearCase) -> Reply<Vec<f32>> {
        self.ask_f32(linear_question("rotations.linear", case))
    }

    fn linear_backward_in(&self, _: Manner, case: &LinearCase, dy: &[f32]) -> Reply<LinearGrads> {
        let mut dq =
            self.ask_f32(with_dy(linear_question("rotations.linear_backward", case), dy))?;
        let mut dk = dq.split_off(case.q.len());
        let dv = dk.split_off(case.q.len());
        Ok(LinearGrads { dq, dk, dv })
    }

    fn running(&self, case: &LinearCase, pieces: &[usize]) -> Reply<Vec<f32>> {
        let mut question = linear_question("rotations.running", case);
        question["pieces"] = json!(pieces);
        self.ask_f32(question)
    }
}
