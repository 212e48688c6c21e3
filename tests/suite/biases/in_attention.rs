//! Encodings in an attention: one call is token by token, two of them act together, and gradients reach what is learned.

use crate::support::*;
use quadrivium::Error;
use quadrivium::attention::{GroupedQueryAttention, KvCache};
use quadrivium::position::*;
use quadrivium::tensor::*;
use quadrivium::{NtkAwareRope, NtkAwareRopeConfig};

const T: usize = 6;

type Attention<P> = GroupedQueryAttention<8, 2, 1, 4, f64, Dev, P>;
type Tokens = Tensor<(usize, usize, Const<8>), f64, Dev>;

fn attention<P: PositionEncoding<4, f64, Dev>>(position: P) -> Attention<P> {
    GroupedQueryAttention::new(&dev(), 42, 0.5, position).unwrap()
}

fn tokens() -> Tokens {
    let wave = (0..2 * T * 8).map(|i| (1.7 * (i as f64 + 1.0)).sin());
    tensor(&wave.collect::<Vec<_>>(), (2, T, Const))
}

fn rope() -> NtkAwareRope<4, Dev> {
    NtkAwareRope::new(&dev(), NtkAwareRopeConfig { max_seq_len: T, ..Default::default() }).unwrap()
}

fn t5() -> T5Bias<2, 4, f64, Dev> {
    let config = T5BiasConfig { max_distance: 4, init_std: 1.0, ..Default::default() };
    T5Bias::new(&dev(), config).unwrap()
}

fn kerple(kernel: KerpleKernel) -> Kerple<2, f64, Dev> {
    Kerple::new(&dev(), KerpleConfig { kernel, init_seed: 42 }).unwrap()
}

fn xl() -> TransformerXl<8, 2, 4, f64, Dev> {
    let config = TransformerXlConfig { init_std: 0.5, ..Default::default() };
    TransformerXl::new(&dev(), config).unwrap()
}

/// Token by token is one call, except for the order of sums of size 1 in `f64`; RoPE's tables are the same for both.
fn token_by_token<P: PositionEncoding<4, f64, Dev>>(
    position: P,
    shared: &impl PositionEncoding<4, f64, Dev>,
) -> Vec<f64> {
    let attention = attention(position);
    let whole = attention.try_forward_with(tokens(), shared, 0).unwrap().as_vec();
    let mut cache = KvCache::new(T);
    for t in 0..T {
        let token = tokens().slice((.., t..t + 1, ..)).realize::<(usize, usize, Const<8>)>();
        let y = attention.try_decode_with(token, &mut cache, shared, &[]).unwrap().as_vec();
        let want = [&whole[t * 8..][..8], &whole[(T + t) * 8..][..8]].concat();
        assert_within(&y, &want, |_| 1e-13);
    }
    whole
}

#[test]
fn one_call_is_token_by_token() {
    let plain = token_by_token(NoPosition, &NoPosition);
    let all = [
        token_by_token(Alibi::<2>, &NoPosition),
        token_by_token(t5(), &NoPosition),
        token_by_token(kerple(KerpleKernel::Logarithmic), &NoPosition),
        token_by_token(kerple(KerpleKernel::Power), &NoPosition),
        token_by_token(xl(), &NoPosition),
    ];
    // Each does something, and each something else; the first token sees itself alone.
    for (nth, y) in all.iter().enumerate() {
        assert_within(&y[..8], &plain[..8], |_| 1e-13);
        let others = all[..nth].iter().chain([&plain]);
        others.for_each(|other| assert!(y.iter().zip(other).any(|(a, b)| (a - b).abs() > 1e-3)));
    }
}

/// RoPE on queries and keys, and a bias for all blocks: what both do is neither alone, in any place.
#[test]
fn rope_and_alibi_together() {
    let both = token_by_token(rope(), &Alibi::<2>);
    assert_within(&token_by_token(Alibi::<2>, &rope()), &both, |_| 1e-13);
    for one in [token_by_token(rope(), &NoPosition), token_by_token(NoPosition, &Alibi::<2>)] {
        assert!(one.iter().zip(&both).any(|(a, b)| (a - b).abs() > 1e-3));
    }
}

/// Central differences of the second order at a step of `2^-12`: a third derivative, below 10 here, times `2^-24 / 6`, is `1e-7`.
fn slopes(loss: impl Fn(usize, f64) -> f64, n: usize) -> Vec<f64> {
    let step = 2f64.powi(-12);
    (0..n).map(|i| (loss(i, step) - loss(i, -step)) / (2.0 * step)).collect()
}

fn loss<P: PositionEncoding<4, f64, Dev>>(position: P) -> f64 {
    attention(position).forward(tokens()).square().mean::<Rank0, _>().array()
}

#[test]
fn gradients_reach_what_is_learned() {
    let moved = |values: &[f64], i: usize, by: f64| {
        let mut values = values.to_vec();
        values[i] += by;
        values
    };
    let bias = attention(t5());
    let grads = bias.forward(tokens().leaky_trace()).square().mean::<Rank0, _>().backward();
    let at = bias.position.weight.as_vec();
    let of_weight = |i, by| {
        let mut bias = t5();
        bias.weight = tensor(&moved(&at, i, by), (Const, Const));
        loss(bias)
    };
    assert_within(&grads.get(&bias.position.weight).as_vec(), &slopes(of_weight, 8), |_| 1e-6);
    assert!(grads.get(&bias.position.weight).as_vec().iter().any(|dw| dw.abs() > 1e-4));

    let bias = attention(kerple(KerpleKernel::Power));
    let grads = bias.forward(tokens().leaky_trace()).square().mean::<Rank0, _>().backward();
    let at = bias.position.r2.as_vec();
    let of_r2 = |i, by| {
        let mut bias = kerple(KerpleKernel::Power);
        bias.r2 = tensor(&moved(&at, i, by), (Const,));
        loss(bias)
    };
    assert_within(&grads.get(&bias.position.r2).as_vec(), &slopes(of_r2, 2), |_| 1e-6);

    let bias = attention(xl());
    let grads = bias.forward(tokens().leaky_trace()).square().mean::<Rank0, _>().backward();
    let (of_u, of_v) = (bias.position.u.as_vec(), bias.position.v.as_vec());
    for second in [false, true] {
        let moves = |i, by| {
            let mut bias = xl();
            match second {
                false => bias.u = tensor(&moved(&of_u, i, by), (Const, Const)),
                true => bias.v = tensor(&moved(&of_v, i, by), (Const, Const)),
            }
            loss(bias)
        };
        let got = grads.get(if second { &bias.position.v } else { &bias.position.u });
        assert_within(&got.as_vec(), &slopes(moves, 8), |_| 1e-6);
    }
}

/// Another number of heads than the queries have. In a model it does not compile (`tests/compile_fail`).
#[test]
fn another_number_of_heads_is_an_error() {
    let queries = || tensor(&[0.5f64; 8], (1usize, 1usize, 2usize, Const::<4>));
    for error in [
        Alibi::<3>.on_scores(queries(), 1).map(drop).unwrap_err(),
        Alibi::<1>.on_scores(queries(), 1).map(drop).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Shape { name: "the queries", .. }), "{error}");
    }
}
