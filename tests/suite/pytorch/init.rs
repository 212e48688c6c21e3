//! Initial values.

use super::*;

/// Same seed, same numbers. Uniform: bit for bit, for every range and size, in f32 and f64.
/// Normal: to `1e-6 std`, and one rounding of the mean; PyTorch takes its f32 logarithm and sine to
/// a few ulps only.
#[test]
fn initial_values() {
    let goldens = Goldens::open("init");
    for case in goldens.cases("f32") {
        let (init, want) = (case.init(), case.f32("values"));
        let got: Vec<f32> = init.values(case.size("n"));
        match init {
            Init::Uniform { .. } => assert_same_bits(&got, &want),
            Init::Normal { std, mean, .. } => {
                let bound = 1e-6 * std + 2.0 * U32 * mean.abs();
                assert_within(&widen(&got), &widen(&want), |_| bound);
            }
        }
    }
    for case in goldens.cases("f64") {
        let (init, want) = (case.init(), case.f64("values"));
        let got: Vec<f64> = init.values(case.size("n"));
        match init {
            Init::Uniform { .. } => assert_eq!(got, want, "{}", case.name),
            Init::Normal { .. } => assert_within(&got, &want, |_| 8.0 * U64),
        }
    }
    #[cfg(feature = "f16")]
    for case in goldens.cases("f16") {
        let want = case.bytes("values", FileDtype::F16).into_iter().map(f16::from_le_bytes);
        let got: Vec<f16> = case.init().values(case.size("n"));
        assert_eq!(got, want.collect::<Vec<_>>(), "{}", case.name);
    }
    let count = |dtype| goldens.cases(dtype).count();
    assert_eq!((count("f32"), count("f64"), count("f16")), (152, 6, 3));
    for n in [1, 12, 15, 16, 17, 30, 1000, 100_000] {
        let tested = goldens.cases("f32").filter(|case| case.size("n") == n).count();
        assert!(tested >= if n == 100_000 { 3 } else { 18 }, "{tested} cases of {n} values");
    }
}
