//! The learner's NTK-aware RoPE as a party to the contract.

use super::{Learner, Seat, gradient_of, run_back, tensor};
use contract::component::Component;
use contract::grade::{by_bugs, by_invariants};
use contract::rope::party::*;
use contract::with_head_dim;
use exercises::prelude::{Const, Cpu, Tensor, Trace};
use exercises::rope;
use std::ops::Range;

/// The seat of NTK-aware RoPE.
pub const SEAT: Seat = Seat {
    slug: <dyn NtkAwareRope>::SLUG,
    invariants: |task, learner, run| by_invariants::<dyn NtkAwareRope>(task, learner, run),
    property: |task| by_bugs::<dyn NtkAwareRope>(task, &|party| rope::property(party)),
};

fn heads<const HD: usize>(
    [b, s, n, _]: [usize; 4],
    values: &[f32],
) -> Tensor<(usize, usize, usize, Const<HD>), f32, Cpu> {
    tensor(values, (b, s, n, Const::<HD>))
}

fn table<const HD: usize>(values: &[f32]) -> Tensor<(usize, Const<HD>), f32, Cpu> {
    tensor(values, (values.len() / HD, Const::<HD>))
}

/// Reorders each head: `from` says which dimension of the old head comes to each place.
fn reordered(hd: usize, x: &[f32], from: impl Fn(usize) -> usize) -> Vec<f32> {
    x.chunks(hd).flat_map(|head| (0..hd).map(|j| head[from(j)]).collect::<Vec<_>>()).collect()
}

impl Learner {
    /// `x` in adjacent pairs: by the learner's function if it is part of the task.
    fn interleaved(&self, hd: usize, x: &[f32]) -> Vec<f32> {
        let own = self.to_interleaved(hd, x);
        own.unwrap_or_else(|_| reordered(hd, x, |j| j / 2 + j % 2 * (hd / 2)))
    }

    /// The way back.
    fn half_split(&self, hd: usize, x: &[f32]) -> Vec<f32> {
        let own = self.to_half_split(hd, x);
        own.unwrap_or_else(|_| reordered(hd, x, |j| j % (hd / 2) * 2 + j / (hd / 2)))
    }

    /// The same rotation in the half-split layout, which is the one that the learner writes.
    fn in_halves(&self, case: &RotateCase) -> RotateCase {
        let halves = |values: &[f32]| self.half_split(case.shape[3], values);
        let tables = Tables { cos: halves(&case.tables.cos), sin: halves(&case.tables.sin) };
        RotateCase { tables, x: halves(&case.x), layout: Layout::HalfSplit, ..case.clone() }
    }
}

impl NtkAwareRope for Learner {
    fn frequencies(&self, head_dim: usize, base: f64, ratio: f64) -> Reply<Vec<f64>> {
        self.may("frequencies")?;
        rope::rotary_frequencies(head_dim, base, ratio).map_err(Refusal::new)
    }

    fn tables(&self, hd: usize, base: f64, ratio: f64, positions: Range<usize>) -> Reply<Tables> {
        self.may("tables")?;
        let frequencies = rope::rotary_frequencies(hd, base, ratio).map_err(Refusal::new)?;
        let (cos, sin) = rope::rotary_tables(&frequencies, positions);
        Ok(Tables { cos, sin })
    }

    fn rotate(&self, case: &RotateCase) -> Reply<Vec<f32>> {
        self.may("rotate")?;
        if case.layout == Layout::Interleaved {
            let y = self.rotate(&self.in_halves(case))?;
            return Ok(self.interleaved(case.shape[3], &y));
        }
        with_head_dim!(case.shape[3], |HD| {
            let (cos, sin) = (table::<HD>(&case.tables.cos), table::<HD>(&case.tables.sin));
            let x = heads::<HD>(case.shape, &case.x);
            Ok(rope::apply_rotary_pos_emb(x, &cos, &sin).as_vec())
        }, _ => Err(Refusal::not_compiled("this head size")))
    }

    fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.may("rotate_backward")?;
        let hd = case.shape[3];
        if case.layout == Layout::Interleaved {
            let dx = self.rotate_backward(&self.in_halves(case), &self.half_split(hd, dy))?;
            return Ok(self.interleaved(hd, &dx));
        }
        with_head_dim!(hd, |HD| {
            let (cos, sin) = (table::<HD>(&case.tables.cos), table::<HD>(&case.tables.sin));
            if self.by_hand {
                let dy = heads::<HD>(case.shape, dy);
                return Ok(rope::apply_rotary_pos_emb_backward(dy, &cos, &sin).as_vec());
            }
            let x = heads::<HD>(case.shape, &case.x);
            let y = rope::apply_rotary_pos_emb(x.leaky_trace(), &cos, &sin);
            Ok(gradient_of(&mut run_back(y, dy), &x))
        }, _ => Err(Refusal::not_compiled("this head size")))
    }

    fn to_interleaved(&self, head_dim: usize, x: &[f32]) -> Reply<Vec<f32>> {
        self.may("to_interleaved")?;
        Ok(rope::half_split_to_interleaved(x, head_dim))
    }

    fn to_half_split(&self, head_dim: usize, x: &[f32]) -> Reply<Vec<f32>> {
        self.may("to_half_split")?;
        Ok(rope::interleaved_to_half_split(x, head_dim))
    }

    fn ratio_for_length(&self, length: usize, max_seq_len: usize) -> Reply<usize> {
        self.may("ratio_for_length")?;
        rope::ratio_for_length(length, max_seq_len).map_err(Refusal::new)
    }

    fn build(&self, settings: &RopeSettings) -> Reply<Box<dyn RopeModule>> {
        self.may("build")?;
        let RopeSettings { head_dim, base, max_seq_len, ratio, dynamic } = *settings;
        let dev = Cpu::default();
        with_head_dim!(head_dim, |HD| {
            rope::NtkAwareRope::<HD, Cpu>::new(&dev, base, max_seq_len, ratio, dynamic)
                .map(|rope| Box::new(Built(rope)) as Box<dyn RopeModule>)
                .map_err(Refusal::new)
        }, _ => Err(Refusal::not_compiled("this head size")))
    }
}

/// A module of the learner's.
struct Built<const HD: usize>(rope::NtkAwareRope<HD, Cpu>);

impl<const HD: usize> RopeModule for Built<HD> {
    fn forward(&mut self, case: &RopeCase) -> Reply<Vec<f32>> {
        let y = self.0.forward(heads::<HD>(case.shape, &case.x), case.offset);
        Ok(y.map_err(Refusal::new)?.as_vec())
    }

    fn state(&self) -> Reply<RopeState> {
        let rope::NtkAwareRope { ratio, cos, sin, .. } = &self.0;
        let tables = Tables { cos: cos.as_vec(), sin: sin.as_vec() };
        Ok(RopeState { ratio: *ratio, cached_len: tables.cos.len() / HD, tables })
    }
}
