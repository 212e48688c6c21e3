//! Rotations of the library.

use super::*;
use crate::implementations::{Adapter, adapter};
use contract::interface::*;
use contract::with_rotations_size;
use quadrivium::frequencies::RotaryFrequencies;
use quadrivium::pos_emb::{AxialPlanes, AxialRope, AxialRopeConfig, XPos, XPosConfig};
use quadrivium::rope::{self, RotaryTables};
use quadrivium::rotations::{LinearState, linear_attention, linear_attention_running};

/// The adapter.
pub const ADAPTER: Adapter<Library> = adapter!(Rotations, &[]);

type Heads<T = NoneTape> = Tensor<(usize, usize, usize, usize), f32, Dev, T>;
type Typed<const HD: usize, T = NoneTape> = Tensor<(usize, usize, usize, Const<HD>), f32, Dev, T>;

fn typed<const HD: usize, T: Tape<f32, Dev> + std::fmt::Debug>(x: Heads<T>) -> Typed<HD, T> {
    x.realize::<(usize, usize, usize, Const<HD>)>()
}

fn config(case: &XPosCase) -> XPosConfig {
    let XPosCase { shape, base, scale_base, center, offset, .. } = *case;
    let max_position = offset + shape[1];
    XPosConfig { base, scale_base, center, max_position, ..XPosConfig::default() }
}

fn both<const HD: usize, T: Tape<f32, Dev>>(
    xpos: &XPos<HD, Dev>,
    q: Typed<HD, T>,
    k: Typed<HD, T>,
    offset: usize,
) -> Reply<TurnedPair> {
    let q = xpos.queries(q, offset).map_err(refused)?;
    let k = xpos.keys(k, offset).map_err(refused)?;
    Ok(TurnedPair { q: q.as_vec(), k: k.as_vec() })
}

fn planes(case: &AxialCase) -> Result<AxialPlanes, Error> {
    match case.sections {
        Sections::Anew => AxialPlanes::direct_sum(&case.planes, case.base),
        Sections::OneList => {
            let thetas = rope::rotary_frequencies(case.shape[3], case.base, 1.0)?;
            AxialPlanes::cut(&case.planes, &RotaryFrequencies::new(thetas, 1.0)?)
        }
    }
}

fn turned<const HD: usize, const AXES: usize, T: Tape<f32, Dev>>(
    x: Typed<HD, T>,
    case: &AxialCase,
) -> Reply<Typed<HD, T>> {
    let planes = planes(case).map_err(refused)?;
    let config = AxialRopeConfig { planes, layout: rope::Layout::HalfSplit };
    let rope = AxialRope::<HD, AXES, Dev>::new(config).map_err(refused)?;
    let (rows, _) = case.coordinates.as_chunks::<AXES>();
    rope.try_forward((x, rows)).map_err(refused)
}

fn by_axes<const HD: usize, T: Tape<f32, Dev>>(
    x: Typed<HD, T>,
    case: &AxialCase,
) -> Reply<Typed<HD, T>> {
    match case.planes.len() {
        1 => turned::<HD, 1, T>(x, case),
        2 => turned::<HD, 2, T>(x, case),
        3 => turned::<HD, 3, T>(x, case),
        axes => Err(Refusal::not_compiled(format!("{axes} coordinates"))),
    }
}

/// The tables of a call's positions.
fn tables(
    case: &LinearCase,
    positions: std::ops::Range<usize>,
) -> Reply<Option<RotaryTables<usize, Dev>>> {
    let Some(base) = case.base else { return Ok(None) };
    let hd = case.shape[3];
    let frequencies = rope::rotary_frequencies(hd, base, 1.0).map_err(refused)?;
    let half = rope::Layout::HalfSplit;
    RotaryTables::new(&dev(), hd, &frequencies, positions, half).map(Some).map_err(refused)
}

fn attended<T: Tape<f32, Dev>>([q, k, v]: [Heads<T>; 3], case: &LinearCase) -> Reply<Heads<T>> {
    let tables = tables(case, case.offset..case.offset + case.shape[1])?;
    linear_attention(q, k, v, tables.as_ref()).map_err(refused)
}

/// Another input of the same size, for a call before the one that is asked.
fn reversed(values: &[f32]) -> Vec<f32> {
    values.iter().rev().copied().collect()
}

impl Rotations for Library {
    fn xpos_in(&self, manner: Manner, case: &XPosCase) -> Reply<TurnedPair> {
        with_rotations_size!(case.shape[3], |HD| {
            let mut xpos = XPos::<HD, Dev>::new(&dev(), config(case)).map_err(refused)?;
            let (q, k) = (heads(case.shape, &case.q, manner), heads(case.shape, &case.k, manner));
            if manner == Manner::Again {
                let other = |x: &[f32]| typed(heads(case.shape, &reversed(x), Manner::Plain));
                both::<HD, _>(&xpos, other(&case.q), other(&case.k), 0)?;
                xpos = xpos.clone();
            }
            if manner == Manner::Traced {
                let (q, k) = (typed(q.leaky_trace()), typed(k.leaky_trace()));
                return both::<HD, _>(&xpos, q, k, case.offset);
            }
            both::<HD, _>(&xpos, typed(q), typed(k), case.offset)
        }, _ => Err(Refusal::not_compiled("this head size")))
    }

    fn axial_in(&self, manner: Manner, case: &AxialCase) -> Reply<Vec<f32>> {
        with_rotations_size!(case.shape[3], |HD| {
            let x = heads(case.shape, &case.x, manner);
            if manner == Manner::Traced {
                return Ok(by_axes::<HD, _>(typed(x.leaky_trace()), case)?.as_vec());
            }
            Ok(by_axes::<HD, _>(typed(x), case)?.as_vec())
        }, _ => Err(Refusal::not_compiled("this head size")))
    }

    fn axial_backward_in(&self, manner: Manner, case: &AxialCase, dy: &[f32]) -> Reply<Vec<f32>> {
        with_rotations_size!(case.shape[3], |HD| {
            let x = heads(case.shape, &case.x, leaf_manner(manner));
            let call = || by_axes::<HD, _>(typed(traced(&x, manner)), case);
            let mut grads = run_back(manner, dy, call)?;
            Ok(gradient(&mut grads, &x))
        }, _ => Err(Refusal::not_compiled("this head size")))
    }

    fn linear_in(&self, manner: Manner, case: &LinearCase) -> Reply<Vec<f32>> {
        let all = [&case.q, &case.k, &case.v].map(|x| heads(case.shape, x, manner));
        if manner == Manner::Traced {
            return Ok(attended(all.map(|x| x.leaky_trace()), case)?.as_vec());
        }
        Ok(attended(all, case)?.as_vec())
    }

    fn linear_backward_in(
        &self,
        manner: Manner,
        case: &LinearCase,
        dy: &[f32],
    ) -> Reply<LinearGrads> {
        let all = [&case.q, &case.k, &case.v].map(|x| heads(case.shape, x, leaf_manner(manner)));
        let call = || attended([0, 1, 2].map(|nth| traced(&all[nth], manner)), case);
        let mut grads = run_back(manner, dy, call)?;
        let [dq, dk, dv] = all.each_ref().map(|x| gradient(&mut grads, x));
        Ok(LinearGrads { dq, dk, dv })
    }

    fn running(&self, case: &LinearCase, pieces: &[usize]) -> Reply<Vec<f32>> {
        let [b, s, n, hd] = case.shape;
        let row = n * hd;
        let mut y = vec![0.0; case.v.len()];
        let mut state = LinearState::new();
        for &piece in pieces {
            let start = state.positions();
            let at = |b: usize| (b * s + start) * row..(b * s + start + piece) * row;
            let [q, k, v] = [&case.q, &case.k, &case.v].map(|list| {
                let values: Vec<f32> = (0..b).flat_map(|b| list[at(b)].to_vec()).collect();
                tensor(&values, (b, piece, n, hd))
            });
            let first = case.offset + start;
            let tables = tables(case, first..first + piece)?;
            let of_piece = linear_attention_running(q, k, v, tables.as_ref(), &mut state);
            let of_piece = of_piece.map_err(refused)?.as_vec();
            for (b, values) in of_piece.chunks(piece * row).enumerate() {
                y[at(b)].copy_from_slice(values);
            }
        }
        Ok(y)
    }
}
