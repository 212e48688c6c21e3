//! Two encodings that only the sweeps have: frequencies `theta exp(alpha)`, and RoPE on normalized queries and keys.

use quadrivium::error::{Error, Result};
use quadrivium::functional::rotate_by_frequencies;
use quadrivium::position::{PositionEncoding, Positions};
use quadrivium::rope::{Layout, rotary_frequencies};
use quadrivium::tensor::*;
use quadrivium::{GroupRmsNorm, GroupRmsNormConfig};
use std::marker::PhantomData;

/// Queries or keys, `[b, s, n, hd]`.
type Heads<B, S, N, const HD: usize, T> = Tensor<(B, S, N, Const<HD>), f32, Cpu, T>;

/// RoPE with the frequencies `theta_i exp(alpha_i)`: `theta` stays, `alpha` is trained and starts at 0. A step of the
/// optimizer changes each frequency by a share of it, where a step on `theta` itself changes all by the same amount.
#[derive(Debug, Clone)]
pub struct ExpAlphaRope<const HD: usize, F: Dtype, D: Storage<F>> {
    /// The logarithm of what each frequency is multiplied by, `[hd/2]`.
    pub alpha: Tensor<(Quotient<HD, 2>,), F, D>,
    base: f64,
}

impl<const HD: usize> ExpAlphaRope<HD, f32, Cpu> {
    /// # Errors
    /// A base that is not above 1.
    pub fn new(dev: &Cpu, base: f64) -> Result<Self> {
        rotary_frequencies(HD, base, 1.0)?;
        Ok(Self { alpha: dev.try_zeros().map_err(Error::device)?, base })
    }
}

impl<const HD: usize> PositionEncoding<HD, f32, Cpu> for ExpAlphaRope<HD, f32, Cpu> {
    // ANCHOR: exp_alpha
    fn on_heads<B: Dim, S: Dim, N: Dim, T: Tape<f32, Cpu>>(
        &self,
        heads: Heads<B, S, N, HD, T>,
        positions: &Positions,
    ) -> Result<Heads<B, S, N, HD, T>> {
        let plain = rotary_frequencies(HD, self.base, 1.0)?.into_iter().map(|theta| theta as f32);
        let plain = heads.device().try_tensor_from_vec(plain.collect(), *self.alpha.shape());
        let plain = plain.map_err(Error::device)?; //                         [hd/2]
        let (heads, tape) = heads.split_tape();
        // The gradient goes on from theta to alpha: both are on the tape of the heads.
        let alpha = self.alpha.clone().put_tape(tape);
        let theta = alpha.try_exp().and_then(|e| e.try_mul(plain)).map_err(Error::device)?;
        let (theta, tape) = theta.split_tape(); //                            [hd/2]
        rotate_by_frequencies(heads.put_tape(tape), &theta, positions, Layout::HalfSplit)
    }
    // ANCHOR_END: exp_alpha
}

impl<const HD: usize, F: Dtype, D: Device<F>> TensorCollection<F, D> for ExpAlphaRope<HD, F, D> {
    type To<F2: Dtype, D2: Device<F2>> = ExpAlphaRope<HD, F2, D2>;

    fn iter_tensors<V: ModuleVisitor<Self, F, D>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        visitor.visit_fields(
            Self::tensor(
                "alpha",
                |rope| &rope.alpha,
                |rope| &mut rope.alpha,
                TensorOptions::reset_to_zeros(),
            ),
            |alpha| ExpAlphaRope { alpha, base: super::encodings::BASE },
        )
    }
}

/// Divides each query and each key by its root mean square, with weights, and turns them then.
#[derive(Debug, Clone)]
pub struct OnNormed<const HD: usize, F: Dtype, D: Storage<F>, P> {
    /// For queries, `[hd]`, the same for all heads.
    pub q_norm: GroupRmsNorm<HD, HD, F, D>,
    /// For keys.
    pub k_norm: GroupRmsNorm<HD, HD, F, D>,
    /// What follows.
    pub rope: P,
    device: PhantomData<(F, D)>,
}

impl<const HD: usize, P> OnNormed<HD, f32, Cpu, P> {
    /// Norms that start with weights of 1.
    ///
    /// # Errors
    /// What the library refuses.
    pub fn new(dev: &Cpu, eps: f64, rope: P) -> Result<Self> {
        let ones = GroupRmsNormConfig { eps, init_range: (1.0, 1.0), ..Default::default() };
        let norm = || GroupRmsNorm::new(dev, ones);
        Ok(Self { q_norm: norm()?, k_norm: norm()?, rope, device: PhantomData })
    }
}

/// A norm of each head, `[b, s, n, hd]`.
fn normed<const HD: usize, B: Dim, S: Dim, N: Dim, T: Tape<f32, Cpu>>(
    norm: &GroupRmsNorm<HD, HD, f32, Cpu>,
    heads: Heads<B, S, N, HD, T>,
) -> Result<Heads<B, S, N, HD, T>> {
    let shape = *heads.shape();
    let (b, s, n, _) = shape;
    let rows = (b.size() * s.size(), n.size(), Const::<HD>);
    let heads = heads.try_reshape_like(&rows).map_err(Error::device)?;
    norm.try_forward(heads)?.try_reshape_like(&shape).map_err(Error::device)
}

impl<const HD: usize, P: PositionEncoding<HD, f32, Cpu>> PositionEncoding<HD, f32, Cpu>
    for OnNormed<HD, f32, Cpu, P>
{
    fn on_queries<B: Dim, S: Dim, N: Dim, T: Tape<f32, Cpu>>(
        &self,
        queries: Heads<B, S, N, HD, T>,
        positions: &Positions,
    ) -> Result<Heads<B, S, N, HD, T>> {
        self.rope.on_queries(normed(&self.q_norm, queries)?, positions)
    }

    fn on_keys<B: Dim, S: Dim, N: Dim, T: Tape<f32, Cpu>>(
        &self,
        keys: Heads<B, S, N, HD, T>,
        positions: &Positions,
    ) -> Result<Heads<B, S, N, HD, T>> {
        self.rope.on_keys(normed(&self.k_norm, keys)?, positions)
    }
}

impl<const HD: usize, P: TensorCollection<f32, Cpu>> TensorCollection<f32, Cpu>
    for OnNormed<HD, f32, Cpu, P>
{
    type To<F2: Dtype, D2: Device<F2>> = OnNormed<HD, F2, D2, P::To<F2, D2>>;

    fn iter_tensors<V: ModuleVisitor<Self, f32, Cpu>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        visitor.visit_fields(
            (
                Self::module("q_norm", |m| &m.q_norm, |m| &mut m.q_norm),
                Self::module("k_norm", |m| &m.k_norm, |m| &mut m.k_norm),
                Self::module("rope", |m| &m.rope, |m| &mut m.rope),
            ),
            |(q_norm, k_norm, rope)| OnNormed { q_norm, k_norm, rope, device: PhantomData },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads() -> Tensor<(usize, usize, usize, Const<8>), f32, Cpu> {
        let values = (0..2 * 3 * 2 * 8).map(|i| (0.7 * (i as f32 + 1.0)).sin()).collect();
        Cpu::default().tensor_from_vec(values, (2, 3, 2, Const))
    }

    /// The gradient of alpha is theta times that of theta; with alpha 0 the turn is RoPE's.
    #[test]
    fn alpha_gets_the_gradient_of_its_frequency_times_the_frequency() {
        let dev = Cpu::default();
        let rope = ExpAlphaRope::<8, f32, Cpu>::new(&dev, 10_000.0).unwrap();
        let config = quadrivium::pos_emb::LearnableRopeConfig::default();
        let plain = quadrivium::pos_emb::LearnableRope::<8, f32, Cpu>::new(&dev, config).unwrap();
        let positions = Positions::from(5);
        let weights = heads().try_add(0.3).unwrap();
        let sum = |y: Heads<usize, usize, usize, 8, OwnedTape<f32, Cpu>>| {
            y.try_mul(weights.clone()).unwrap().sum::<Rank0, _>()
        };
        let x = heads();
        let of_alpha = sum(rope.on_heads(x.leaky_trace(), &positions).unwrap()).backward();
        let of_theta = sum(plain.on_heads(x.leaky_trace(), &positions).unwrap()).backward();
        let y = rope.on_heads(x.clone(), &positions).unwrap().as_vec();
        assert_eq!(y, plain.on_heads(x.clone(), &positions).unwrap().as_vec());
        let (alpha, theta) =
            (of_alpha.get(&rope.alpha).as_vec(), of_theta.get(&plain.theta).as_vec());
        for ((alpha, theta), frequency) in alpha.iter().zip(theta).zip(plain.theta.as_vec()) {
            let want = theta * frequency;
            assert!((alpha - want).abs() <= 1e-6 * want.abs(), "{alpha} {want}");
            assert!(want != 0.0);
        }
        assert_eq!(of_alpha.get(&x).as_vec(), of_theta.get(&x).as_vec());
    }

    /// A query that is 100 times as long gives the same scores.
    #[test]
    fn a_normed_query_has_lost_its_length() {
        let dev = Cpu::default();
        let rope = ExpAlphaRope::<8, f32, Cpu>::new(&dev, 10_000.0).unwrap();
        let normed = OnNormed::new(&dev, 1e-6, rope.clone()).unwrap();
        let positions = Positions::from(2);
        let short = normed.on_queries(heads(), &positions).unwrap().as_vec();
        let long = normed.on_queries(heads() * 100.0, &positions).unwrap().as_vec();
        for (short, long) in short.iter().zip(&long) {
            assert!((short - long).abs() < 1e-4, "{short} {long}");
        }
        for head in short.chunks(8) {
            let square: f32 = head.iter().map(|x| x * x).sum();
            assert!((square - 8.0).abs() < 1e-3, "{square}");
        }
        assert_ne!(short, rope.on_heads(heads(), &positions).unwrap().as_vec());
    }
}
