//! Sinusoids beside PyTorch; transformers' Marian has the same in another order of columns.

use super::*;
use quadrivium::position::sinusoids;

/// An angle is off by the rounding of its frequency and its own.
#[test]
fn sinusoidal() {
    for case in Goldens::open("absolute").of_kind("sinusoidal") {
        let (offset, s, h) = (case.size("offset"), case.size("s"), case.size("h"));
        let got = sinusoids(offset..offset + s, h, 10_000.0).unwrap();
        let far = (offset + s) as f64;
        // The exponent's rounding, times ln 10000 < 10, and a few more.
        assert_within(&got, &case.f64("table"), |_| 16.0 * far * U64);
    }
}
