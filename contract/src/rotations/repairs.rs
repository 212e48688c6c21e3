//! Repairs of more rotations: steps whose value can be found from the answers.

use crate::oracle::Oracle;
use crate::repair::{Repair, number, one_value, same};
use crate::rotations::interface::{LinearCase, Rotations, XPosCase};
use crate::rotations::oracle::RotationsLoops;

type Any = dyn Rotations;

/// They are tried in this order.
pub static REPAIRS: &[Repair<Any>] = &[
    Repair { call: "linear", explain: weights },
    Repair { call: "linear", explain: phi },
    Repair { call: "xpos", explain: zeta },
];

/// What the weights of a query add up to, if all else is right: two values that are 1, and nothing that turns.
fn weights(rotations: &Any) -> Option<String> {
    let mut sums = Vec::new();
    for (key, query) in [(1.0, 0.5), (-1.0, 0.5), (0.5, 2.0), (2.0, -0.5)] {
        let y = weighed(rotations, key, query, [1.0, 1.0])?;
        sums.push(y);
    }
    let got = one_value(sums)?;
    (!same(got, 1.0)).then(|| {
        format!(
            "the weights of a query, which add up to 1 where nothing turns, add up to {}",
            number(got)
        )
    })
}

/// What the second of two tokens finds: keys of `x` and of 0, and these values.
fn weighed(rotations: &Any, x: f32, query: f32, values: [f32; 2]) -> Option<f64> {
    let k = [[x; 4], [0.0; 4]].concat();
    let v = values.map(|value| [value; 4]).concat();
    let case = LinearCase { shape: [1, 2, 1, 4], base: None, offset: 0, q: vec![query; 8], k, v };
    rotations.linear(&case).ok().filter(|y| y.len() == 8).map(|y| f64::from(y[4]))
}

/// What takes phi's place, if all else is right: of two keys, of `x` and of 0, the weights show their quotient.
fn phi(rotations: &Any) -> Option<String> {
    let share = |x: f32, query: f32| {
        // They are shares if they add up to 1.
        let whole = weighed(rotations, x, query, [1.0, 1.0])?;
        same(whole, 1.0).then(|| weighed(rotations, x, query, [1.0, 0.0])).flatten()
    };
    // If phi(0) is 1, a share of s belongs to a feature of s / (1 - s).
    let mut wrong = None;
    for x in [1.0, -1.0, 2.0, -0.5] {
        let got = share(x, 0.5)?;
        if !same(share(x, 2.0)?, got) {
            return None;
        }
        let (got, right) = (got / (1.0 - got), Oracle.phi(f64::from(x)));
        if wrong.is_none() && !same(got, right) {
            wrong = Some(format!("φ({x}) is {}, but {} was used", number(right), number(got)));
        }
    }
    wrong
}

/// What takes zeta's place, if queries and keys are scaled by it and its inverse.
fn zeta(rotations: &Any) -> Option<String> {
    for plane in [0, 1] {
        let mut x = vec![0.0; 4];
        x[plane] = 1.0;
        let (q, k) = (x.clone(), x);
        let case = XPosCase {
            shape: [1, 1, 1, 4],
            base: 100.0,
            scale_base: 512.0,
            center: 0,
            offset: 512,
            q,
            k,
        };
        let got = rotations.xpos(&case).ok().filter(|got| got.q.len() == 4 && got.k.len() == 4)?;
        let [q, k] =
            [&got.q, &got.k].map(|head| f64::from(head[plane]).hypot(f64::from(head[plane + 2])));
        let right = Oracle.zeta(plane, 4);
        if !same(q * k, 1.0) {
            return None;
        }
        if !same(q, right) {
            let (right, got) = (number(right), number(q));
            return Some(format!("ζ of plane {plane} of 2 is {right}, but {got} was used"));
        }
    }
    None
}
