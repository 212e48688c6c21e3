//! {Type}. TO DO: what is tested here, in a sentence.

use crate::support::*;
use proptest::prelude::*;
use quadrivium::Error;
use quadrivium::{slug}::{slug};

/// The formula in `f64` loops. It shares nothing with the library, nor with the contract.
fn loops(x: &[f64], shape: (usize, usize, usize)) -> Vec<f64> {
    todo!("the result for x of {shape:?}, {x:?}")
}

/// How far a result may be from `expected`, and why.
fn bound(expected: f64) -> f64 {
    todo!("the bound for {expected}: count the roundings of the formula, {U32} each")
}

#[test]
fn it_is_the_formula() {
    let sizes = (1..4usize, 1..5usize, 1..9usize);
    let inputs = sizes.prop_flat_map(|shape| (Just(shape), values(shape.0 * shape.1 * shape.2)));
    forall(inputs, |(shape, x)| {
        let y = {slug}(tensor(&x, shape)).unwrap();
        let want = loops(&widen(&x), shape);
        assert_within(&widen(&y.as_vec()), &want, |i| bound(want[i]));
    });
}

/// Empty tensors are refused, because dfdx can't hold them.
#[test]
fn empty_input_is_an_error() {
    for (b, s, h) in [(0, 3, 4), (3, 0, 4), (3, 4, 0)] {
        let error = {slug}(tensor::<_, f32>(&[], (b, s, h))).unwrap_err();
        assert_eq!(error, Error::Empty { name: "x", shape: vec![b, s, h] });
    }
}
