//! Cross-entropy.

use super::*;
use quadrivium::loss::{IGNORE, cross_entropy};

/// A loss is off by a rounding for each term of the sum and one of the largest logit; so is the exponent of each
/// probability. `u` is half an ulp of 1 where the arithmetic is done.
fn loss<F: Float>(case: &Case, read: impl Fn(&str) -> Vec<F>, u: f64)
where
    Dev: Backend<F>,
{
    let wide = |values: &[F]| values.iter().map(|x| x.to_f64().unwrap()).collect::<Vec<_>>();
    let (b, s, v) = (case.size("b"), case.size("s"), case.size("v"));
    let targets = case.bytes("targets", FileDtype::I64).into_iter().map(i64::from_le_bytes);
    let targets: Vec<usize> =
        targets.map(|target| usize::try_from(target).unwrap_or(IGNORE)).collect();
    let logits = tensor(&read("logits"), (b, s, v));
    let got = cross_entropy(Trace::<F, Dev>::leaky_trace(&logits), &ids(&targets, (b, s)));
    let got = got.unwrap();
    let values = wide(&got.as_vec());
    let grads = wide(&got.backward().get(&logits).as_vec());
    let exponent = 2.0 * u * (v as f64 + 8.0 + 2.0 * largest(&wide(&read("logits"))));
    for want in [wide(&read("loss")), case.f64("loss64")] {
        assert_within(&values, &want, |_| exponent + 2.0 * (b * s) as f64 * u * want[0]);
    }
    for want in [wide(&read("dlogits")), case.f64("dlogits64")] {
        // No probability is above 1, and no share above 1 of them.
        assert_within(&grads, &want, |_| exponent + 8.0 * u);
        for (place, target) in targets.iter().enumerate() {
            let row = &grads[place * v..][..v];
            assert_eq!(*target == IGNORE, row.iter().all(|dlogit| *dlogit == 0.0), "{place}");
        }
    }
}

#[test]
fn losses() {
    let goldens = Goldens::open("loss");
    assert_eq!((goldens.cases("f32").count(), goldens.cases("f64").count()), (6, 1));
    for case in goldens.cases("f32") {
        loss::<f32>(&case, |what| case.f32(what), U32);
    }
    for case in goldens.cases("f64") {
        loss::<f64>(&case, |what| case.f64(what), U64);
    }
}
