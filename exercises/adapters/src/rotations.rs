//! The learner's rotations as an implementation of the contract.

use super::{Learner, continued, gradient_of, heads, reversed, run_back, run_back_twice};
use exercises::prelude::Trace;
use exercises::rotations::{self, Frequencies, Running, Side, XPos};
use interfaces::rotations::interface::*;

/// The manner of a leaf. The gradient of a broadcast tensor is that of one row.
fn of_leaf(manner: Manner) -> Manner {
    if manner == Manner::Broadcast { Manner::Plain } else { manner }
}

/// The learner's angles, row by row.
fn axial_angles(case: &AxialCase) -> Vec<Vec<f64>> {
    let frequencies = match case.sections {
        Sections::Anew => Frequencies::Anew,
        Sections::OneList => Frequencies::OneList,
    };
    let rows = case.coordinates.chunks(case.planes.len());
    rows.map(|row| rotations::axial_angles(&case.planes, frequencies, case.base, row)).collect()
}

/// The angles of RoPE, which are given; 0 where nothing turns.
fn rope_angles(case: &LinearCase) -> Vec<Vec<f64>> {
    let [_, s, _, hd] = case.shape;
    let row = |row: usize| match case.base {
        Some(base) => rotations::rope_angles(hd, base, case.offset + row),
        None => vec![0.0; hd / 2],
    };
    (0..s).map(row).collect()
}

impl Rotations for Learner {
    fn xpos_in(&self, _: Manner, case: &XPosCase) -> Reply<TurnedPair> {
        self.may("xpos")?;
        let [_, s, n, hd] = case.shape;
        let settings = XPos { base: case.base, scale_base: case.scale_base, center: case.center };
        let one = |x: &[f32], side: Side| -> Vec<f32> {
            let heads = x.chunks(hd).enumerate();
            let head = |(token, head): (usize, &[f32])| {
                let head: Vec<f64> = head.iter().map(|x| f64::from(*x)).collect();
                rotations::xpos(&head, &settings, case.offset + token / n % s, side)
            };
            heads.flat_map(head).map(|y| y as f32).collect()
        };
        Ok(TurnedPair { q: one(&case.q, Side::Query), k: one(&case.k, Side::Key) })
    }

    fn axial_in(&self, manner: Manner, case: &AxialCase) -> Reply<Vec<f32>> {
        self.may("axial")?;
        let x = heads(case.shape, &case.x, manner);
        Ok(rotations::turned(x, &axial_angles(case)).as_vec())
    }

    fn axial_backward_in(&self, manner: Manner, case: &AxialCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.may("axial_backward")?;
        let x = heads(case.shape, &case.x, of_leaf(manner));
        let y = rotations::turned(x.leaky_trace(), &axial_angles(case));
        Ok(gradient_of(&mut run_back(y, dy), &x))
    }

    fn linear_in(&self, manner: Manner, case: &LinearCase) -> Reply<Vec<f32>> {
        self.may("linear")?;
        let angles = rope_angles(case);
        let of = |list: &[f32]| heads(case.shape, list, manner);
        let [q, k, v] = [of(&case.q), of(&case.k), of(&case.v)];
        if manner == Manner::Again {
            let other = |list: &[f32]| heads(case.shape, &reversed(list), Manner::Plain);
            let [q, k, v] = [other(&case.q), other(&case.k), other(&case.v)];
            rotations::linear_attention(q, k, v, &angles);
        }
        if manner == Manner::Traced {
            let [q, k, v] = [q, k, v].map(|x| x.leaky_trace());
            return Ok(rotations::linear_attention(q, k, v, &angles).as_vec());
        }
        Ok(rotations::linear_attention(q, k, v, &angles).as_vec())
    }

    fn linear_backward_in(
        &self,
        manner: Manner,
        case: &LinearCase,
        dy: &[f32],
    ) -> Reply<LinearGrads> {
        self.may("linear_backward")?;
        let angles = rope_angles(case);
        let of = |list: &[f32]| heads(case.shape, list, of_leaf(manner));
        let [q, k, v] = [of(&case.q), of(&case.k), of(&case.v)];
        let y = || {
            let [q, k, v] = [&q, &k, &v].map(|x| x.leaky_trace());
            rotations::linear_attention(q, k, v, &angles)
        };
        if manner == Manner::Again {
            run_back(y(), &reversed(dy));
        }
        let mut grads = match manner {
            Manner::Continued => {
                let [q, k, v] = [&q, &k, &v].map(continued);
                run_back(rotations::linear_attention(q, k, v, &angles), dy)
            }
            Manner::UsedTwice => run_back_twice([y(), y()], dy),
            _ => run_back(y(), dy),
        };
        let [dq, dk, dv] = [&q, &k, &v].map(|x| gradient_of(&mut grads, x));
        Ok(LinearGrads { dq, dk, dv })
    }

    fn running(&self, case: &LinearCase, pieces: &[usize]) -> Reply<Vec<f32>> {
        self.may("running")?;
        let [b, s, n, hd] = case.shape;
        let mut y = vec![0.0; case.v.len()];
        for (b, h) in (0..b).flat_map(|b| (0..n).map(move |h| (b, h))) {
            let at = |t: usize| ((b * s + t) * n + h) * hd;
            let mut state = Running::new(hd, case.offset);
            let mut start = 0;
            for &piece in pieces {
                let rows = |list: &[f32]| -> Vec<Vec<f64>> {
                    let row = |t: usize| list[at(t)..][..hd].iter().map(|x| f64::from(*x));
                    (start..start + piece).map(|t| row(t).collect()).collect()
                };
                let of_piece =
                    state.piece(&rows(&case.q), &rows(&case.k), &rows(&case.v), case.base);
                for (t, row) in of_piece.iter().enumerate() {
                    for (j, value) in row.iter().enumerate() {
                        y[at(start + t) + j] = *value as f32;
                    }
                }
                start += piece;
            }
        }
        Ok(y)
    }
}
