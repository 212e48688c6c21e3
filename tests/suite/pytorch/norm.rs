//! GroupRMSNorm.

use super::*;

/// Forward within 2e-6 of each value: the promise, though two sums of 128 may differ by more in
/// the worst case. Gradients within 1e-5 of the size of their terms. (In a
/// group of one the terms of `dx` cancel to 1e-5 of their size, in PyTorch as here.)
fn norm<const H: usize, const GZ: usize>(case: &Case) {
    let (b, s) = (case.size("b"), case.size("s"));
    let config = GroupRmsNormConfig { eps: case.number("eps"), ..Default::default() };
    let mut norm = GroupRmsNorm::<H, GZ, f32, _>::new(&dev(), config).unwrap();
    norm.weight = tensor(&case.f32("weight"), (Const,));
    let x = tensor(&case.f32("x"), (b, s, Const::<H>));
    let y = norm.forward(x.leaky_trace());
    let got = widen(&y.as_vec());
    let grads = backward(y, &case.f32("dy"));
    let dx = widen(&grads.get(&x).as_vec());
    let dgamma = widen(&grads.get(&norm.weight).as_vec());
    let read = |what: &str| widen(&case.f32(what));
    let terms = crate::norm::loops(&read("x"), &read("weight"), &read("dy"), GZ, config.eps);
    for suffix in ["", "64"] {
        let read = |what: &str| match suffix {
            "" => widen(&case.f32(what)),
            _ => case.f64(&format!("{what}64")),
        };
        let want = read("y");
        assert_within(&got, &want, |i| 2e-6 * want[i].abs());
        let want = read("dx");
        assert_within(&dx, &want, |i| 1e-5 * terms.dx_size[i]);
        let want = read("dweight");
        assert_within(&dgamma, &want, |i| 1e-5 * terms.dgamma_size[i]);
    }
}

#[test]
fn group_rms_norm() {
    let goldens = Goldens::open("norm");
    let mut tested = 0;
    for case in goldens.cases("f32") {
        match (case.size("h"), case.size("gz")) {
            (8, 8) => norm::<8, 8>(&case),
            (8, 4) => norm::<8, 4>(&case),
            (8, 1) => norm::<8, 1>(&case),
            (12, 3) => norm::<12, 3>(&case),
            (64, 16) => norm::<64, 16>(&case),
            (128, 128) => norm::<128, 128>(&case),
            other => panic!("{}: add {other:?} to this list", case.name),
        }
        tested += 1;
    }
    assert_eq!(tested, 8);
}

#[test]
fn group_rms_norm_in_f64() {
    let goldens = Goldens::open("norm");
    assert_eq!(goldens.cases("f64").count(), 1);
    for case in goldens.cases("f64") {
        let config = GroupRmsNormConfig { eps: case.number("eps"), ..Default::default() };
        let mut norm = GroupRmsNorm::<8, 4, f64, _>::new(&dev(), config).unwrap();
        norm.weight = tensor(&case.f64("weight"), (Const,));
        let x = tensor(&case.f64("x"), (2usize, 3usize, Const::<8>));
        let y = norm.forward(x.leaky_trace());
        let want = case.f64("y");
        assert_within(&y.as_vec(), &want, |i| 8.0 * U64 * want[i].abs());
        let grads = backward(y, &case.f64("dy"));
        let want = case.f64("dx");
        assert_within(&grads.get(&x).as_vec(), &want, |_| 32.0 * U64 * largest(&want));
        let want = case.f64("dweight");
        assert_within(&grads.get(&norm.weight).as_vec(), &want, |_| 32.0 * U64 * largest(&want));
    }
}

/// PyTorch, too, takes the statistics in f32 and rounds once; so at most one `f16` apart, where
/// the f32 value lies near the middle of two.
#[test]
#[cfg(feature = "f16")]
fn group_rms_norm_in_f16() {
    let goldens = Goldens::open("norm");
    assert_eq!(goldens.cases("f16").count(), 1);
    for case in goldens.cases("f16") {
        let read = |what: &str| -> Vec<f16> {
            case.bytes(what, FileDtype::F16).into_iter().map(f16::from_le_bytes).collect()
        };
        let config = GroupRmsNormConfig { eps: case.number("eps"), ..Default::default() };
        let mut norm = GroupRmsNorm::<8, 4, f16, _>::new(&dev(), config).unwrap();
        norm.weight = tensor(&read("weight"), (Const,));
        let x = tensor(&read("x"), (2usize, 3usize, Const::<8>));
        assert!(x.as_vec().iter().any(|x| x.to_f32().abs() >= 300.0));
        let y = norm.forward(x.leaky_trace());
        let wide = |v: &[f16]| v.iter().map(|x| x.to_f64()).collect::<Vec<f64>>();
        let ulp = |x: f64| (x.abs() * 2f64.powi(-10)).max(2f64.powi(-24));
        let want = wide(&read("y"));
        assert_within(&wide(&y.as_vec()), &want, |i| ulp(want[i]));
        let grads = backward(y, &read("dy"));
        let want = wide(&read("dx"));
        assert_within(&wide(&grads.get(&x).as_vec()), &want, |_| ulp(largest(&want)));
        let want = wide(&read("dweight"));
        assert_within(&wide(&grads.get(&norm.weight).as_vec()), &want, |_| ulp(largest(&want)));
    }
}
