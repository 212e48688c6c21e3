//! The learner's NTK-aware RoPE as an implementation of the contract.

use super::{Learner, continued, gradient_of, reversed, run_back, run_back_twice, tensor};
use exercises::prelude::{Axes4, Axis, BroadcastTo, Const, Cpu, PermuteTo, Tensor, Trace};
use exercises::rope;
use interfaces::interface::with_axes_reversed;
use interfaces::rope::interface::*;
use interfaces::with_head_dim;
use std::ops::Range;

type Heads<const HD: usize> = (usize, usize, usize, Const<HD>);

/// `[b, s, nh, hd]` values, as a tensor that lies in memory as the manner says: heads before rows.
fn heads<const HD: usize>(
    [b, s, n, _]: [usize; 4],
    values: &[f32],
    manner: Manner,
) -> Tensor<Heads<HD>, f32, Cpu> {
    match manner {
        Manner::Permuted => {
            tensor(&with_axes_reversed(values, &[b, s, n, HD]), (Const::<HD>, n, s, b))
                .permute::<_, Axes4<3, 2, 1, 0>>()
        }
        Manner::Broadcast => {
            let row = tensor(&values[..s * n * HD], (s, n, Const::<HD>));
            row.broadcast_like::<_, Axis<0>>(&(b, s, n, Const::<HD>))
        }
        _ => tensor(values, (b, s, n, Const::<HD>)),
    }
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

    fn rotate_in(&self, manner: Manner, case: &RotateCase) -> Reply<Vec<f32>> {
        self.may("rotate")?;
        if case.layout == Layout::Interleaved {
            let y = self.rotate_in(manner, &self.in_halves(case))?;
            return Ok(self.interleaved(case.shape[3], &y));
        }
        with_head_dim!(
            case.shape[3],
            |HD| rotate::<HD>(manner, case),
            _ => Err(Refusal::not_compiled("this head size"))
        )
    }

    fn rotate_backward_in(&self, manner: Manner, case: &RotateCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.may("rotate_backward")?;
        let hd = case.shape[3];
        if case.layout == Layout::Interleaved {
            let (halves, dy) = (self.in_halves(case), self.half_split(hd, dy));
            let dx = self.rotate_backward_in(manner, &halves, &dy)?;
            return Ok(self.interleaved(hd, &dx));
        }
        with_head_dim!(
            hd,
            |HD| rotate_backward::<HD>(self.by_hand, manner, case, dy),
            _ => Err(Refusal::not_compiled("this head size"))
        )
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
    fn forward_in(&mut self, manner: Manner, case: &RopeCase) -> Reply<Vec<f32>> {
        let x = heads::<HD>(case.shape, &case.x, manner);
        if manner == Manner::Traced {
            let y = self.0.forward(x.leaky_trace(), case.offset);
            return Ok(y.map_err(Refusal::new)?.as_vec());
        }
        Ok(self.0.forward(x, case.offset).map_err(Refusal::new)?.as_vec())
    }

    fn backward_in(&mut self, manner: Manner, case: &RopeCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let x = heads::<HD>(case.shape, &case.x, manner);
        if manner == Manner::Continued {
            let y = self.0.forward(continued(&x), case.offset).map_err(Refusal::new)?;
            return Ok(gradient_of(&mut run_back(y, dy), &x));
        }
        let mut y = || self.0.forward(x.leaky_trace(), case.offset).map_err(Refusal::new);
        let mut grads = match manner {
            Manner::UsedTwice => run_back_twice([y()?, y()?], dy),
            _ => run_back(y()?, dy),
        };
        Ok(gradient_of(&mut grads, &x))
    }

    fn state(&self) -> Reply<RopeState> {
        let rope::NtkAwareRope { ratio, cos, sin, .. } = &self.0;
        let tables = Tables { cos: cos.as_vec(), sin: sin.as_vec() };
        Ok(RopeState { ratio: *ratio, cached_len: tables.cos.len() / HD, tables })
    }

    fn cloned(&self) -> Reply<Box<dyn RopeModule>> {
        Ok(Box::new(Self(self.0.clone())))
    }
}

/// `rotate_in`, of sizes in the type.
fn rotate<const HD: usize>(manner: Manner, case: &RotateCase) -> Reply<Vec<f32>> {
    let (cos, sin) = (table::<HD>(&case.tables.cos), table::<HD>(&case.tables.sin));
    let x = heads::<HD>(case.shape, &case.x, manner);
    let turn = |x: Tensor<Heads<HD>, f32, Cpu>| rope::apply_rotary_pos_emb(x, &cos, &sin);
    if manner == Manner::Again {
        turn(heads::<HD>(case.shape, &reversed(&case.x), Manner::Plain));
    }
    if manner == Manner::Traced {
        return Ok(rope::apply_rotary_pos_emb(x.leaky_trace(), &cos, &sin).as_vec());
    }
    Ok(turn(x).as_vec())
}

/// `rotate_backward_in`, of sizes in the type.
fn rotate_backward<const HD: usize>(
    by_hand: bool,
    manner: Manner,
    case: &RotateCase,
    dy: &[f32],
) -> Reply<Vec<f32>> {
    let (cos, sin) = (table::<HD>(&case.tables.cos), table::<HD>(&case.tables.sin));
    if by_hand {
        let back = |dy| rope::apply_rotary_pos_emb_backward(dy, &cos, &sin);
        if manner == Manner::Again {
            back(heads::<HD>(case.shape, &reversed(dy), Manner::Plain));
        }
        return Ok(back(heads::<HD>(case.shape, dy, manner)).as_vec());
    }
    // The gradient of a broadcast tensor is that of one row.
    let plain = manner == Manner::Broadcast;
    let x = heads::<HD>(case.shape, &case.x, if plain { Manner::Plain } else { manner });
    let y = || rope::apply_rotary_pos_emb(x.leaky_trace(), &cos, &sin);
    if manner == Manner::Again {
        run_back(y(), &reversed(dy));
    }
    let mut grads = match manner {
        Manner::Continued => run_back(rope::apply_rotary_pos_emb(continued(&x), &cos, &sin), dy),
        Manner::UsedTwice => run_back_twice([y(), y()], dy),
        _ => run_back(y(), dy),
    };
    Ok(gradient_of(&mut grads, &x))
}
