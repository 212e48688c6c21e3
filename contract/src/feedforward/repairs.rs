//! Repairs of a SwiGLU.

use crate::feedforward::interface::*;
use crate::feedforward::oracle::SwiGluLoops;
use crate::oracle::Oracle;
use crate::repair::{Repair, number, same};

type Network = dyn SwiGlu;

/// They are tried in this order.
pub static REPAIRS: &[Repair<Network>] =
    &[Repair { call: "forward", explain: silu }, Repair { call: "size", explain: size }];

/// What takes silu's place, if all else is right: `y` is proportional to what comes up.
fn silu(swiglu: &Network) -> Option<String> {
    let y = |a: f32, b: f32| {
        let (gate, up, down, x) = (vec![a], vec![b], vec![1.0], vec![1.0]);
        let case = SwiGluCase { shape: [1, 1, 1], ffn_hidden_size: 1, gate, up, down, x };
        swiglu.forward(&case).ok().filter(|y| y.len() == 1).map(|y| f64::from(y[0]))
    };
    let mut wrong = None;
    for a in [1.0, -1.0, 2.0, -0.5] {
        let got = y(a, 1.0)?;
        for b in [3.0, -0.5] {
            if !same(y(a, b)?, f64::from(b) * got) {
                return None;
            }
        }
        let right = Oracle.silu(f64::from(a));
        if wrong.is_none() && !same(got, right) {
            wrong = Some(format!("silu({a}) is {}, but {} was used", number(right), number(got)));
        }
    }
    wrong
}

/// What the size is rounded up from, if it is no more than another number in two thirds' place.
fn size(swiglu: &Network) -> Option<String> {
    let of = |hidden_size, multiple_of| {
        swiglu.size(&SizeCase { hidden_size, multiple_of, multiplier: None }).ok()
    };
    let (h, multiple_of) = (1000, 64);
    let (got, right) = (of(h, 1)?, 2 * 4 * h / 3);
    let rounds_up = of(h, multiple_of)? == got.next_multiple_of(multiple_of);
    (got != right && rounds_up)
        .then(|| format!("two thirds of 4·{h} are {right}, but {got} was used"))
}
