//! LayerNorm.

use super::*;

/// Everything within `32 u` of the largest value of its row, `u` being half an ulp of 1 where the arithmetic
/// is done: a sum of 128 is seldom off by more. What the mean is subtracted from loses as many digits as it
/// is larger than what is left, so `u` counts once more for each `max|x| / std`. `last` is the rounding
/// to the tensor's own type.
fn layer_norm<const H: usize, F: Float>(
    case: &Case,
    read: impl Fn(&str) -> Vec<F>,
    u: f64,
    last: f64,
) where
    Dev: Backend<F>,
{
    let wide = |values: &[F]| values.iter().map(|x| x.to_f64().unwrap()).collect::<Vec<_>>();
    let (b, s) = (case.size("b"), case.size("s"));
    let config = LayerNormConfig { eps: case.number("eps") };
    let mut norm = LayerNorm::<H, F, _>::new(&dev(), config).unwrap();
    norm.weight = tensor(&read("weight"), (Const,));
    norm.bias = tensor(&read("bias"), (Const,));
    let x = tensor(&read("x"), (b, s, Const::<H>));
    let y = norm.forward(Trace::<F, Dev>::leaky_trace(&x));
    let got = wide(&y.as_vec());
    let grads = backward(y, &read("dy"));
    let gradients = [
        ("dx", wide(&grads.get(&x).as_vec())),
        ("dweight", wide(&grads.get(&norm.weight).as_vec())),
        ("dbias", wide(&grads.get(&norm.bias).as_vec())),
    ];
    let lost = |row: &[f64]| {
        let mean = row.iter().sum::<f64>() / H as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / H as f64;
        32.0 * u * (1.0 + largest(row) / (variance + config.eps).sqrt()) + last
    };
    let lost: Vec<f64> = wide(&x.as_vec()).chunks(H).map(lost).collect();
    for (what, got) in [("y", got)].into_iter().chain(gradients) {
        for want in [wide(&read(what)), case.f64(&format!("{what}64"))] {
            // A sum over the rows has one row, and what the worst of them has lost.
            let worst = largest(&lost);
            let lost = |row: usize| if got.len() == H { worst } else { lost[row] };
            assert_within(&got, &want, |i| lost(i / H) * largest(&want[i / H * H..][..H]));
        }
    }
}

#[test]
fn layer_norms() {
    let goldens = Goldens::open("layernorm");
    let mut tested = 0;
    for case in goldens.cases("f32") {
        let read = |what: &str| case.f32(what);
        match case.size("h") {
            8 => layer_norm::<8, f32>(&case, read, U32, 0.0),
            12 => layer_norm::<12, f32>(&case, read, U32, 0.0),
            128 => layer_norm::<128, f32>(&case, read, U32, 0.0),
            other => panic!("{}: add {other} to this list", case.name),
        }
        tested += 1;
    }
    for case in goldens.cases("f64") {
        layer_norm::<8, f64>(&case, |what| case.f64(what), U64, 0.0);
        tested += 1;
    }
    assert_eq!(tested, 7);
}

/// PyTorch, too, takes the statistics in f32 and rounds once; so at most one `f16` apart.
#[test]
#[cfg(feature = "f16")]
fn layer_norm_in_f16() {
    let goldens = Goldens::open("layernorm");
    assert_eq!(goldens.cases("f16").count(), 1);
    for case in goldens.cases("f16") {
        let read = |what: &str| -> Vec<f16> {
            case.bytes(what, FileDtype::F16).into_iter().map(f16::from_le_bytes).collect()
        };
        layer_norm::<8, f16>(&case, read, U32, 2f64.powi(-10));
    }
}
