//! {Type}.

use super::*;

/// How near a result must be to PyTorch's in `f64`, and why.
fn bound(expected: f64) -> f64 {
    todo!("the bound for {expected}: count the roundings of the formula, {U32} each")
}

#[test]
fn it_computes_what_pytorch_computes() {
    let goldens = Goldens::open("{slug}");
    assert!(goldens.cases("f32").count() > 0, "tests/goldens/generate.py has no case in f32");
    for case in goldens.cases("f32") {
        let shape = (case.size("b"), case.size("s"), case.size("h"));
        let y = quadrivium::{slug}::{slug}(tensor(&case.f32("x"), shape)).unwrap();
        let want = case.f64("y64");
        assert_within(&widen(&y.as_vec()), &want, |i| bound(want[i]));
    }
}
