//! NtkAwareRope of the library.

use super::*;
use crate::implementations::{Adapter, adapter};
use contract::interface::*;
use contract::with_head_dim;
use quadrivium::NtkAwareRopeConfig;
use quadrivium::rope::{
    self, RotaryTables, apply_rotary_pos_emb, apply_rotary_pos_emb_interleaved,
    half_split_to_interleaved, interleaved_to_half_split,
};
use std::ops::Range;

/// The layout, as the library calls it.
fn layout(layout: contract::interface::Layout) -> rope::Layout {
    match layout {
        contract::interface::Layout::HalfSplit => rope::Layout::HalfSplit,
        contract::interface::Layout::Interleaved => rope::Layout::Interleaved,
    }
}

type Heads<T = NoneTape> = Tensor<(usize, usize, usize, usize), f32, Dev, T>;

fn rotated<T: Tape<f32, Dev>>(x: Heads<T>, case: &RotateCase) -> Reply<Heads<T>> {
    let hd = case.shape[3];
    let table = |values: &[f32]| tensor(values, (values.len() / hd, hd));
    let (cos, sin) = (table(&case.tables.cos), table(&case.tables.sin));
    let y = match layout(case.layout) {
        rope::Layout::HalfSplit => apply_rotary_pos_emb(x, &cos, &sin),
        rope::Layout::Interleaved => apply_rotary_pos_emb_interleaved(x, &cos, &sin),
    };
    y.map_err(refused)
}

/// The adapter.
pub const ADAPTER: Adapter<Library> = adapter!(NtkAwareRope, &[]);

impl NtkAwareRope for Library {
    fn frequencies(&self, head_dim: usize, base: f64, ratio: f64) -> Reply<Vec<f64>> {
        rope::rotary_frequencies(head_dim, base, ratio).map_err(refused)
    }

    fn tables(&self, hd: usize, base: f64, ratio: f64, positions: Range<usize>) -> Reply<Tables> {
        let frequencies = rope::rotary_frequencies(hd, base, ratio).map_err(refused)?;
        let half = rope::Layout::HalfSplit;
        let tables = RotaryTables::new(&dev(), hd, &frequencies, positions, half);
        let tables = tables.map_err(refused)?;
        Ok(Tables { cos: tables.cos.as_vec(), sin: tables.sin.as_vec() })
    }

    fn rotate_in(&self, manner: Manner, case: &RotateCase) -> Reply<Vec<f32>> {
        let x = heads(case.shape, &case.x, manner);
        match manner {
            Manner::Traced => Ok(rotated(x.leaky_trace(), case)?.as_vec()),
            _ => Ok(rotated(x, case)?.as_vec()),
        }
    }

    fn rotate_backward_in(&self, manner: Manner, case: &RotateCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let x = heads(case.shape, &case.x, leaf_manner(manner));
        let mut grads = run_back(manner, dy, || rotated(traced(&x, manner), case))?;
        Ok(gradient(&mut grads, &x))
    }

    fn to_interleaved(&self, head_dim: usize, x: &[f32]) -> Reply<Vec<f32>> {
        let x = heads([1, x.len() / head_dim, 1, head_dim], x, Manner::Plain);
        Ok(half_split_to_interleaved(x).map_err(refused)?.as_vec())
    }

    fn to_half_split(&self, head_dim: usize, x: &[f32]) -> Reply<Vec<f32>> {
        let x = heads([1, x.len() / head_dim, 1, head_dim], x, Manner::Plain);
        Ok(interleaved_to_half_split(x).map_err(refused)?.as_vec())
    }

    fn ratio_for_length(&self, length: usize, max_seq_len: usize) -> Reply<usize> {
        rope::ratio_for_length(length, max_seq_len).map_err(refused)
    }

    fn build(&self, settings: &RopeSettings) -> Reply<Box<dyn RopeModule>> {
        let RopeSettings { head_dim, base, max_seq_len, ratio, dynamic } = *settings;
        let config = NtkAwareRopeConfig { base, max_seq_len, ratio, dynamic, ..Default::default() };
        with_head_dim!(head_dim, |HD| {
            quadrivium::NtkAwareRope::<HD, Dev>::new(&dev(), config)
                .map(|rope| Box::new(Built(rope)) as Box<dyn RopeModule>)
                .map_err(refused)
        }, _ => Err(Refusal::not_compiled("this head size")))
    }
}

/// A module of the library.
struct Built<const HD: usize>(quadrivium::NtkAwareRope<HD, Dev>);

type Typed<const HD: usize, T> = Tensor<(usize, usize, usize, Const<HD>), f32, Dev, T>;

impl<const HD: usize> Built<HD> {
    fn call<T: Tape<f32, Dev> + std::fmt::Debug>(
        &mut self,
        x: Heads<T>,
        positions: &Positions,
    ) -> Reply<Typed<HD, T>> {
        let x: Typed<HD, T> = x.realize::<(usize, usize, usize, Const<HD>)>();
        self.0.try_forward_mut((x, positions)).map_err(refused)
    }

    fn turned(
        &mut self,
        manner: Manner,
        case: &RopeCase,
        positions: &Positions,
    ) -> Reply<Vec<f32>> {
        let x = heads(case.shape, &case.x, manner);
        match manner {
            Manner::Traced => Ok(self.call(x.leaky_trace(), positions)?.as_vec()),
            _ => Ok(self.call(x, positions)?.as_vec()),
        }
    }

    fn turned_back(
        &mut self,
        manner: Manner,
        case: &RopeCase,
        positions: &Positions,
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        let x = heads(case.shape, &case.x, manner);
        let mut grads = run_back(manner, dy, || self.call(traced(&x, manner), positions))?;
        Ok(gradient(&mut grads, &x))
    }
}

impl<const HD: usize> RopeModule for Built<HD> {
    fn forward_in(&mut self, manner: Manner, case: &RopeCase) -> Reply<Vec<f32>> {
        self.turned(manner, case, &case.offset.into())
    }

    fn backward_in(&mut self, manner: Manner, case: &RopeCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.turned_back(manner, case, &case.offset.into(), dy)
    }

    fn forward_at(
        &mut self,
        manner: Manner,
        case: &RopeCase,
        position_ids: &[usize],
    ) -> Reply<Vec<f32>> {
        self.turned(manner, case, &positions(position_ids, case.shape[1], manner))
    }

    fn backward_at(
        &mut self,
        manner: Manner,
        case: &RopeCase,
        position_ids: &[usize],
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        self.turned_back(manner, case, &positions(position_ids, case.shape[1], manner), dy)
    }

    fn state(&self) -> Reply<RopeState> {
        let tables = self.0.tables(&dev()).map_err(refused)?;
        let tables = Tables { cos: tables.cos.as_vec(), sin: tables.sin.as_vec() };
        Ok(RopeState { ratio: self.0.ratio(), cached_len: self.0.cached_len(), tables })
    }

    fn cloned(&self) -> Reply<Box<dyn RopeModule>> {
        Ok(Box::new(Self(self.0.clone())))
    }
}
