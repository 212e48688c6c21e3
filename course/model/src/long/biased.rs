//! Queries and keys with a bias each, before they are turned, for the sweeps.

use quadrivium::error::{Error, Result};
use quadrivium::position::{PositionEncoding, Positions};
use quadrivium::tensor::*;

/// Queries or keys, `[b, s, n, hd]`.
type Heads<B, S, N, const HD: usize, T> = Tensor<(B, S, N, Const<HD>), f32, Cpu, T>;

/// Adds a number to each element of all queries, and one to each of all keys, and turns them then. The numbers start at 0.
/// Qwen's models have such biases, and Llama's have none.
#[derive(Debug, Clone)]
pub struct Biased<const Q: usize, const K: usize, F: Dtype, D: Storage<F>, P> {
    /// For queries, `[nh * hd]`.
    pub q_bias: Tensor<Rank1<Q>, F, D>,
    /// For keys, `[nkv * hd]`.
    pub k_bias: Tensor<Rank1<K>, F, D>,
    /// What follows.
    pub rope: P,
}

impl<const Q: usize, const K: usize, P> Biased<Q, K, f32, Cpu, P> {
    /// # Errors
    /// What the device reports.
    pub fn new(dev: &Cpu, rope: P) -> Result<Self> {
        let (q_bias, k_bias) = (dev.try_zeros(), dev.try_zeros());
        Ok(Self {
            q_bias: q_bias.map_err(Error::device)?,
            k_bias: k_bias.map_err(Error::device)?,
            rope,
        })
    }
}

/// The same numbers are added to each token.
fn biased<const M: usize, const HD: usize, B: Dim, S: Dim, N: Dim, T: Tape<f32, Cpu>>(
    bias: &Tensor<Rank1<M>, f32, Cpu>,
    heads: Heads<B, S, N, HD, T>,
) -> Result<Heads<B, S, N, HD, T>> {
    let shape = *heads.shape();
    let rows = (shape.0.size() * shape.1.size(), Const::<M>);
    let (rows, tape) = heads.try_reshape_like(&rows).map_err(Error::device)?.split_tape(); // [b s, n hd]
    let bias = bias.clone().put_tape(tape).try_broadcast_like(rows.shape());
    let sum = bias.and_then(|bias| bias.try_add(rows)).map_err(Error::device)?;
    sum.try_reshape_like(&shape).map_err(Error::device)
}

impl<const Q: usize, const K: usize, const HD: usize, P> PositionEncoding<HD, f32, Cpu>
    for Biased<Q, K, f32, Cpu, P>
where
    P: PositionEncoding<HD, f32, Cpu>,
{
    fn on_queries<B: Dim, S: Dim, N: Dim, T: Tape<f32, Cpu>>(
        &self,
        queries: Heads<B, S, N, HD, T>,
        positions: &Positions,
    ) -> Result<Heads<B, S, N, HD, T>> {
        self.rope.on_queries(biased(&self.q_bias, queries)?, positions)
    }

    fn on_keys<B: Dim, S: Dim, N: Dim, T: Tape<f32, Cpu>>(
        &self,
        keys: Heads<B, S, N, HD, T>,
        positions: &Positions,
    ) -> Result<Heads<B, S, N, HD, T>> {
        self.rope.on_keys(biased(&self.k_bias, keys)?, positions)
    }
}

impl<const Q: usize, const K: usize, P: TensorCollection<f32, Cpu>> TensorCollection<f32, Cpu>
    for Biased<Q, K, f32, Cpu, P>
{
    type To<F2: Dtype, D2: Device<F2>> = Biased<Q, K, F2, D2, P::To<F2, D2>>;

    fn iter_tensors<V: ModuleVisitor<Self, f32, Cpu>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        visitor.visit_fields(
            (
                Self::tensor(
                    "q_bias",
                    |m| &m.q_bias,
                    |m| &mut m.q_bias,
                    TensorOptions::reset_to_zeros(),
                ),
                Self::tensor(
                    "k_bias",
                    |m| &m.k_bias,
                    |m| &mut m.k_bias,
                    TensorOptions::reset_to_zeros(),
                ),
                Self::module("rope", |m| &m.rope, |m| &mut m.rope),
            ),
            |(q_bias, k_bias, rope)| Biased { q_bias, k_bias, rope },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quadrivium::position::NoPosition;

    /// Each head has numbers of its own, every token the same ones, and their gradient is the sum over tokens.
    #[test]
    fn every_token_gets_the_numbers_of_its_head() {
        let dev = Cpu::default();
        let mut biased = Biased::<4, 2, f32, Cpu, _>::new(&dev, NoPosition).unwrap();
        biased.q_bias = dev.tensor([1.0, 2.0, 3.0, 4.0]);
        biased.k_bias = dev.tensor([5.0, 6.0]);
        let heads = |n: usize| -> Tensor<(usize, usize, usize, Const<2>), f32, Cpu> {
            dev.tensor_from_vec((0..6 * n).map(|i| i as f32 / 8.0).collect(), (1, 3, n, Const))
        };
        let positions = Positions::from(0);
        let (q, k) = (heads(2), heads(1));
        let y = biased.on_queries(q.leaky_trace(), &positions).unwrap();
        for (nth, (y, x)) in y.as_vec().iter().zip(q.as_vec()).enumerate() {
            assert_eq!(*y, x + (nth % 4 + 1) as f32);
        }
        assert_eq!(y.sum::<Rank0, _>().backward().get(&biased.q_bias).as_vec(), [3.0; 4]);
        let y = biased.on_keys(k.clone(), &positions).unwrap().as_vec();
        for (nth, (y, x)) in y.iter().zip(k.as_vec()).enumerate() {
            assert_eq!(*y, x + (nth % 2 + 5) as f32);
        }
    }
}
