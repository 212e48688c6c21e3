//! SwiGLU.

use super::*;
use quadrivium::feedforward::SwiGlu;

/// Everything within `64 u` of the largest value of its tensor, times the largest gate: `u` is half an ulp of 1 where
/// the arithmetic is done. A sum has 16 terms at most, and two roundings a term; a gate that is off by one rounding
/// moves its sigmoid by so much.
fn swiglu<const H: usize, const FF: usize, F: Float>(
    case: &Case,
    read: impl Fn(&str) -> Vec<F>,
    u: f64,
) where
    Dev: Backend<F>,
{
    let wide = |values: &[F]| values.iter().map(|x| x.to_f64().unwrap()).collect::<Vec<_>>();
    let mut network = SwiGlu::<H, FF, F, _>::new(&dev(), 1, 0.5).unwrap();
    network.gate_proj.weight = tensor(&read("gate"), (Const, Const));
    network.up_proj.weight = tensor(&read("up"), (Const, Const));
    network.down_proj.weight = tensor(&read("down"), (Const, Const));
    let x = tensor(&read("x"), (case.size("b"), case.size("s"), Const::<H>));
    let y = network.forward(Trace::<F, Dev>::leaky_trace(&x));
    let got = wide(&y.as_vec());
    let grads = backward(y, &read("dy"));
    let gradients = [
        ("dx", wide(&grads.get(&x).as_vec())),
        ("dgate", wide(&grads.get(&network.gate_proj.weight).as_vec())),
        ("dup", wide(&grads.get(&network.up_proj.weight).as_vec())),
        ("ddown", wide(&grads.get(&network.down_proj.weight).as_vec())),
    ];
    let gate = largest(&wide(&read("gate"))) * largest(&wide(&read("x")));
    for (what, got) in [("y", got)].into_iter().chain(gradients) {
        for want in [wide(&read(what)), case.f64(&format!("{what}64"))] {
            let bound = 64.0 * u * gate.max(1.0) * largest(&want);
            assert_within(&got, &want, |_| bound);
        }
    }
}

#[test]
fn networks() {
    let goldens = Goldens::open("feedforward");
    let mut tested = 0;
    for case in goldens.cases("f32") {
        match (case.size("h"), case.size("f")) {
            (8, 16) => swiglu::<8, 16, f32>(&case, |what| case.f32(what), U32),
            (6, 2) => swiglu::<6, 2, f32>(&case, |what| case.f32(what), U32),
            other => panic!("{}: add {other:?} to this list", case.name),
        }
        tested += 1;
    }
    for case in goldens.cases("f64") {
        swiglu::<8, 16, f64>(&case, |what| case.f64(what), U64);
        tested += 1;
    }
    assert_eq!(tested, 4);
}
