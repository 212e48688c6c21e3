//! Repairs of biases in the scores: steps whose value can be found from the answers.

use crate::biases::interface::*;
use crate::biases::oracle::BiasLoops;
use crate::oracle::Oracle;
use crate::repair::{Repair, number, one_value, same};

type Biases = dyn ScoreBiases;

/// They are tried in this order.
pub static REPAIRS: &[Repair<Biases>] = &[
    Repair { call: "slopes", explain: exponents },
    Repair { call: "bucket", explain: longest },
    Repair { call: "kerple", explain: factor },
];

/// What takes the place of 8, if the slopes of powers of two are right otherwise.
fn exponents(biases: &Biases) -> Option<String> {
    let last = |nh: usize| Some(-biases.slopes(nh).ok()?.last()?.log2());
    let all = [1, 2, 4, 8].map(last);
    let whole: Option<Vec<f64>> = all.into_iter().collect();
    let got = one_value(whole?)?;
    let right = |nh: usize| {
        let slopes = biases.slopes(nh).ok()?;
        let of = |t: usize| (-got * t as f64 / nh as f64).exp2();
        Some((1..=nh).all(|t| slopes.get(t - 1).is_some_and(|slope| same(*slope, of(t)))))
    };
    let explains = !same(got, 8.0) && right(4)? && right(8)?;
    explains.then(|| format!("the exponent of the last head is 8, but {} was used", number(got)))
}

/// Which longest distance explains the buckets, if another one was asked for.
fn longest(biases: &Biases) -> Option<String> {
    let case = |distance: i64| BucketCase {
        relative: -distance,
        bidirectional: false,
        num_buckets: 32,
        max_distance: 128,
    };
    let got: Option<Vec<usize>> = (0..300).map(|j| biases.bucket(&case(j)).ok()).collect();
    let got = got?;
    let of = |max_distance| {
        (0..300).all(|j| got[j as usize] == Oracle.bucket(&BucketCase { max_distance, ..case(j) }))
    };
    let found = (17..300).find(|&max_distance| of(max_distance)).filter(|found| *found != 128)?;
    Some(format!("the longest distance is 128, but {found} was used"))
}

/// What takes the place of `r1`, if the bias is that many times as large.
fn factor(biases: &Biases) -> Option<String> {
    let mut factors = Vec::new();
    for kernel in [Kernel::Logarithmic, Kernel::Power] {
        let case = KerpleCase { kernel, r1: vec![0.5], r2: vec![1.5], positions: 6 };
        let bias = biases.kerple(&case).ok()?;
        let right = Oracle.kerple(&case);
        factors.extend((1..6).map(|j| 0.5 * f64::from(bias[j]) / right[j]));
    }
    let got = one_value(factors).filter(|got| !same(*got, 0.5))?;
    Some(format!("r₁ is 0.5, but {} was used", number(got)))
}
