//! Repairs of an attention.

use crate::attention::interface::*;
use crate::attention::oracle::AttentionLoops;
use crate::oracle::Oracle;
use crate::repair::{Repair, number, one_value, same};

type Attention = dyn GroupedQueryAttention;

/// They are tried in this order.
pub static REPAIRS: &[Repair<Attention>] = &[
    Repair { call: "forward", explain: divisor },
    Repair { call: "forward", explain: heads },
    Repair { call: "forward", explain: seen },
];

fn sizes(s: usize, t: usize, nh: usize, nkv: usize, hd: usize) -> AttendSizes {
    AttendSizes { batch: 1, queries: s, keys: t, num_heads: nh, num_kv_heads: nkv, head_dim: hd }
}

/// What the products of queries and keys were divided by. Two keys, and one value that is 1: `y` is a weight, and
/// its odds are the exponential of the difference of the scores.
fn divisor(attention: &Attention) -> Option<String> {
    let sizes = sizes(1, 2, 2, 1, 9);
    let divisor = |product: f32| -> Option<f64> {
        let key = |part: f32| vec![part / 9.0; 9];
        let case = AttendCase {
            sizes,
            q: vec![1.0; 18],
            k: [key(product), key(0.0)].concat(),
            v: [vec![1.0; 9], vec![0.0; 9]].concat(),
        };
        let y = attention.forward(&case).ok().filter(|y| y.len() == 18)?;
        let weight = one_value(y.iter().map(|y| f64::from(*y)))?;
        // A weight of 0 or 1 has no odds: it was not a divisor that made it.
        let weight = (0.0 < weight && weight < 1.0).then_some(weight)?;
        Some(f64::from(product) / (weight / (1.0 - weight)).ln())
    };
    let got = one_value([divisor(1.0)?, divisor(2.0)?, divisor(-1.5)?])?;
    let right = Oracle.divisor(&sizes);
    let words =
        || format!("for heads of size 9, √hd is {}, but {} was used", number(right), number(got));
    (!same(got, right)).then(words)
}

/// The value head that each query head read: values are the numbers of their heads.
fn heads(attention: &Attention) -> Option<String> {
    let sizes = sizes(1, 1, 6, 3, 2);
    let v: Vec<f32> = (0..6).map(|i| (i / 2) as f32).collect();
    let case = AttendCase { sizes, q: vec![0.5; 12], k: vec![0.25; 6], v };
    let y = attention.forward(&case).ok().filter(|y| y.len() == 12)?;
    let whole = |y: f32| (y.fract() == 0.0 && (0.0..3.0).contains(&y)).then_some(y as usize);
    let got: Vec<usize> =
        y.chunks(2).map(|y| whole(y[0]).filter(|_| y[0] == y[1])).collect::<Option<_>>()?;
    let right: Vec<usize> = (0..6).map(|head| Oracle.value_head(head, &sizes)).collect();
    (got != right).then(|| {
        format!(
            "with 6 query heads and 3 value heads, the queries read value heads {got:?}, not {right:?}"
        )
    })
}

/// The positions that each query saw, where all scores are equal: `y` is a mean of powers of two, which shows them.
fn seen(attention: &Attention) -> Option<String> {
    let sizes = sizes(3, 5, 1, 1, 1);
    let v: Vec<f32> = (0..5).map(|j| 2f32.powi(j)).collect();
    let case = AttendCase { sizes, q: vec![0.0; 3], k: vec![1.0; 5], v: v.clone() };
    let y = attention.forward(&case).ok().filter(|y| y.len() == 3)?;
    let set = |y: f32| -> Option<Vec<usize>> {
        (1u32..32).find_map(|set| {
            let of: Vec<usize> = (0..5).filter(|j| set & (1 << j) != 0).collect();
            let mean = of.iter().map(|j| f64::from(v[*j])).sum::<f64>() / of.len() as f64;
            same(mean, f64::from(y)).then_some(of)
        })
    };
    let got: Vec<Vec<usize>> = y.iter().map(|y| set(*y)).collect::<Option<_>>()?;
    let sees = |i| (0..5).filter(|j| Oracle.seen(i, *j, &sizes)).collect::<Vec<usize>>();
    let right: Vec<Vec<usize>> = (0..3).map(sees).collect();
    let words =
        || format!("of 5 positions, 3 of them new, the new ones saw {got:?}, not {right:?}");
    (got != right).then(words)
}
