//! Blocks whose matrices are cut across the ranks too: attention by its heads, the network by its columns.
//!
//! ```text
//!               norm(x)                [b, s, h]   the same on every rank
//!      copied ──┴──────────┐                       backward: the gradients of all ranks are added up
//!   heads 0, 1          heads 2, 3                 rows of q, k, v        rows of gate, up
//!   their columns       their columns              columns of o           columns of down
//!      └────────────┬──────┘
//!             reduced                  [b, s, h]   forward: the parts of all ranks are added up
//! ```
//!
//! Two sums on the way forward and two on the way back are all that a block exchanges, each of `b s h` numbers. What lies
//! between them, queries, keys, scores and the network's wide middle, stays on the rank that has the weights. The norms are
//! on every rank. Source: Shoeybi et al. 2019, "Megatron-LM", section 3.

mod collection;
mod exchange;
pub mod whole;

pub use exchange::Exchange;

use crate::communicator::Communicator;
use crate::error::{Error, Result};
use crate::model::Blocks;
use exchange::{copied, device, reduced};
use quadrivium::attention::causal_attention;
use quadrivium::feedforward::silu_mul;
use quadrivium::init::Init;
use quadrivium::linear::linear;
use quadrivium::model::{LlamaConfig, LlamaRope, LlamaRopeConfig};
use quadrivium::position::{PositionEncoding, Positions};
use quadrivium::tensor::*;
use quadrivium::{GroupRmsNorm, GroupRmsNormConfig};
use std::rc::Rc;
use whole::transposed;

type Tokens<B, S, const H: usize, T = NoneTape> = Tensor<(B, S, Const<H>), f32, Cpu, T>;
/// Rows of a matrix, `[n, h]`.
type Rows<N, const H: usize> = Tensor<(N, Const<H>), f32, Cpu>;

/// This rank's heads. All sizes but `H` and `HD` are the rank's own, `1/w` of those of the whole attention. A rank has `NKV`
/// groups, each a key and value head with its query heads.
#[derive(Debug, Clone)]
pub struct Heads<const H: usize, const NH: usize, const NKV: usize, const HD: usize> {
    /// Rows of the queries' matrix.
    pub q_proj: Rows<Product<NH, HD>, H>,
    /// Rows of the keys' matrix.
    pub k_proj: Rows<Product<NKV, HD>, H>,
    /// Rows of the values' matrix.
    pub v_proj: Rows<Product<NKV, HD>, H>,
    /// Columns of the matrix after attention, each as a row.
    pub o_proj: Rows<Product<NH, HD>, H>,
    position: LlamaRope<HD, Cpu>,
}

/// This rank's columns of the network, `FF` of them, in as many groups as it has groups of heads.
#[derive(Debug, Clone)]
pub struct Columns<const H: usize, const FF: usize> {
    /// Rows of the gate's matrix.
    pub gate_proj: Rows<Const<FF>, H>,
    /// Rows of what passes the gate.
    pub up_proj: Rows<Const<FF>, H>,
    /// Columns of the matrix back to tokens, each as a row.
    pub down_proj: Rows<Const<FF>, H>,
}

/// This rank's part of a block. In the fixed order, the parts of its groups are added up one by one.
#[derive(Debug, Clone)]
pub struct TensorParallelBlock<
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
> {
    /// Before attention, on every rank.
    pub input_layernorm: GroupRmsNorm<H, H, f32, Cpu>,
    /// Looks at earlier tokens.
    pub self_attn: Heads<H, NH, NKV, HD>,
    /// Before the network, on every rank.
    pub post_attention_layernorm: GroupRmsNorm<H, H, f32, Cpu>,
    /// Works on each token alone.
    pub mlp: Columns<H, FF>,
}

/// The matrices of a whole block as a checkpoint has them, row by row.
#[derive(Debug, Clone)]
pub struct Matrices {
    /// `[w nh hd, h]`.
    pub q: Vec<f32>,
    /// `[w nkv hd, h]`.
    pub k: Vec<f32>,
    /// `[w nkv hd, h]`.
    pub v: Vec<f32>,
    /// `[h, w nh hd]`.
    pub o: Vec<f32>,
    /// `[w f, h]`.
    pub gate: Vec<f32>,
    /// `[w f, h]`.
    pub up: Vec<f32>,
    /// `[h, w f]`.
    pub down: Vec<f32>,
}

impl<const H: usize, const NH: usize, const NKV: usize, const HD: usize, const FF: usize>
    TensorParallelBlock<H, NH, NKV, HD, FF>
{
    /// A rank's part of a whole block with these norms and matrices.
    ///
    /// # Errors
    /// Heads or columns that do not make `NKV` equal groups; matrices of other sizes than `w` times this rank's; what the
    /// device reports.
    pub fn new(
        position: LlamaRope<HD, Cpu>,
        norms: [GroupRmsNorm<H, H, f32, Cpu>; 2],
        whole: &Matrices,
        comm: &dyn Communicator,
    ) -> Result<Self> {
        if NKV == 0 || NH % NKV != 0 || FF % NKV != 0 {
            let (name, rule) = ("heads and columns of a rank", "as many in each of its groups");
            let got = format!("{NH} heads and {FF} columns in {NKV} groups");
            return Err(Error::Setting { name, rule: rule.into(), got });
        }
        let [input_layernorm, post_attention_layernorm] = norms;
        let dev = input_layernorm.weight.device();
        let self_attn = Heads {
            q_proj: part(dev, &whole.q, comm)?,
            k_proj: part(dev, &whole.k, comm)?,
            v_proj: part(dev, &whole.v, comm)?,
            o_proj: part(dev, &transposed(&whole.o, H), comm)?,
            position,
        };
        let mlp = Columns {
            gate_proj: part(dev, &whole.gate, comm)?,
            up_proj: part(dev, &whole.up, comm)?,
            down_proj: part(dev, &transposed(&whole.down, H), comm)?,
        };
        Ok(Self { input_layernorm, self_attn, post_attention_layernorm, mlp })
    }

    // ANCHOR: block
    /// From tokens to tokens, `[b, s, h]`, the same on every rank.
    ///
    /// # Errors
    /// What its parts refuse, and what the others report.
    pub fn try_forward<B: Dim, S: Dim, T: Tape<f32, Cpu>>(
        &self,
        exchange: &Rc<Exchange>,
        x: Tokens<B, S, H, T>,
    ) -> Result<Tokens<B, S, H, T>> {
        let n = self.input_layernorm.try_forward(x.with_empty_tape())?; //    [b, s, h]
        let groups = copied(exchange, n, NKV)?.into_iter().enumerate();
        let parts = groups.map(|(group, n)| self.self_attn.part(group, n));
        let found = reduced(exchange, parts.collect::<Result<_>>()?)?;
        let x = x.try_add(found).map_err(device)?; //                         [b, s, h]

        let n = self.post_attention_layernorm.try_forward(x.with_empty_tape())?;
        let groups = copied(exchange, n, NKV)?.into_iter().enumerate();
        let parts = groups.map(|(group, n)| self.mlp.part(group, FF / NKV, n));
        let found = reduced(exchange, parts.collect::<Result<_>>()?)?;
        x.try_add(found).map_err(device) //                                   [b, s, h]
    }
    // ANCHOR_END: block
}

impl<const H: usize, const NH: usize, const NKV: usize, const HD: usize> Heads<H, NH, NKV, HD> {
    /// What the heads of one group add to the tokens: `[b, s, h]`, a part of the sum.
    fn part<B: Dim, S: Dim, T: Tape<f32, Cpu>>(
        &self,
        group: usize,
        n: Tokens<B, S, H, T>,
    ) -> Result<Tokens<B, S, H, T>> {
        let ((b, s, _), nh) = (*n.shape(), NH / NKV);
        let q = product(n.with_empty_tape(), &self.q_proj, group, nh * HD)?;
        let k = product(n.with_empty_tape(), &self.k_proj, group, HD)?;
        let v = product(n, &self.v_proj, group, HD)?;
        let q = q.try_reshape_like(&(b, s, nh, Const)).map_err(device)?; //   [b, s, nh, hd]
        let k = k.try_reshape_like(&(b, s, 1, Const)).map_err(device)?; //    [b, s, 1, hd]
        let v = v.try_reshape_like(&(b, s, 1, Const)).map_err(device)?; //    [b, s, 1, hd]
        let positions = Positions::from(0);
        let q = self.position.on_queries(q, &positions)?;
        let k = self.position.on_keys(k, &positions)?;
        let found = causal_attention(q, k, v, &[])?; //                       [b, s, nh, hd]
        let found = found.try_reshape_like(&(b, s, nh * HD)).map_err(device)?;
        product_of_columns(found, &self.o_proj, group) //                     [b, s, h]
    }
}

impl<const H: usize, const FF: usize> Columns<H, FF> {
    /// What one group of columns adds to the tokens: `[b, s, h]`, a part of the sum.
    fn part<B: Dim, S: Dim, T: Tape<f32, Cpu>>(
        &self,
        group: usize,
        columns: usize,
        n: Tokens<B, S, H, T>,
    ) -> Result<Tokens<B, S, H, T>> {
        let gate = product(n.with_empty_tape(), &self.gate_proj, group, columns)?;
        let up = product(n, &self.up_proj, group, columns)?; //               [b, s, columns]
        product_of_columns(silu_mul(gate, up)?, &self.down_proj, group) //    [b, s, h]
    }
}

/// `x rows^T`, with the rows of one group.
fn product<B: Dim, S: Dim, N: ConstDim, const H: usize, T: Tape<f32, Cpu>>(
    x: Tokens<B, S, H, T>,
    rows: &Rows<N, H>,
    group: usize,
    len: usize,
) -> Result<Tensor<(B, S, usize), f32, Cpu, T>> {
    let (rows, of_rows) = group_of::<N, H, T>(rows, group, len)?.split_tape();
    let (x, tape) = x.split_tape();
    Ok(linear(x.put_tape(tape.merge(of_rows)), &rows)?)
}

/// `x columns`, with the columns of one group.
fn product_of_columns<B: Dim, S: Dim, N: ConstDim, const H: usize, T: Tape<f32, Cpu>>(
    x: Tensor<(B, S, usize), f32, Cpu, T>,
    columns: &Rows<N, H>,
    group: usize,
) -> Result<Tokens<B, S, H, T>> {
    let columns = group_of::<N, H, T>(columns, group, x.shape().2)?; //      [n, h]
    let matrix = columns.try_permute::<_, Axes2<1, 0>>().map_err(device)?; // [h, n]
    let (matrix, of_matrix) = matrix.try_contiguous().map_err(device)?.split_tape();
    let (x, tape) = x.split_tape();
    Ok(linear(x.put_tape(tape.merge(of_matrix)), &matrix)?)
}

fn group_of<N: ConstDim, const H: usize, T: Tape<f32, Cpu>>(
    rows: &Rows<N, H>,
    group: usize,
    len: usize,
) -> Result<Tensor<(usize, Const<H>), f32, Cpu, T>> {
    let own =
        rows.retaped::<T>().try_slice((group * len..(group + 1) * len, ..)).map_err(device)?;
    own.try_reshape_like(&(len, Const)).map_err(device)
}

/// The blocks, each cut, and the norm after them. The sizes are those of [`TensorParallelBlock`].
#[derive(Debug, Clone)]
pub struct TensorParallel<
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
> {
    /// The blocks.
    pub layers: modules::Repeated<TensorParallelBlock<H, NH, NKV, HD, FF>, L>,
    /// The norm after them, on every rank.
    pub norm: GroupRmsNorm<H, H, f32, Cpu>,
}

/// A rank's rows of a matrix, `[n, h]`.
fn part<N: ConstDim, const H: usize>(
    dev: &Cpu,
    whole: &[f32],
    comm: &dyn Communicator,
) -> Result<Rows<N, H>> {
    let len = N::SIZE * H;
    let (expected, got) = (vec![len * comm.world_size()], vec![whole.len()]);
    if expected != got {
        return Err(quadrivium::Error::Shape { name: "a matrix that is cut", expected, got }.into());
    }
    let own = whole[comm.rank() * len..][..len].to_vec();
    dev.try_tensor_from_vec(own, (N::default(), Const)).map_err(device)
}

impl<
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
> Blocks<H> for TensorParallel<H, NH, NKV, HD, FF, L>
{
    const LAYERS: usize = L;

    fn drawn(dev: &Cpu, config: LlamaConfig, comm: &dyn Communicator) -> Result<Self> {
        let LlamaConfig { eps, rope, init_std, init_seed } = config;
        let rope = LlamaRope::new(dev, LlamaRopeConfig::NtkAware(rope))?;
        let ones = GroupRmsNormConfig { eps, init_range: (1.0, 1.0), ..Default::default() };
        let norm = || GroupRmsNorm::new(dev, ones);
        let rows = [NH * HD, NKV * HD, NKV * HD, NH * HD, FF, FF, FF];
        let block = |nth: usize| {
            // The seeds of `LlamaTransformer`: each matrix has its own.
            let matrix = |at: usize| {
                let seed = init_seed.wrapping_add((1 + 7 * nth + at) as u64);
                let init = Init::Normal { mean: 0.0, std: init_std, seed };
                init.check().map(|()| init.values(rows[at] * comm.world_size() * H))
            };
            let (q, k, v, o) = (matrix(0)?, matrix(1)?, matrix(2)?, matrix(3)?);
            let (gate, up, down) = (matrix(4)?, matrix(5)?, matrix(6)?);
            let whole = Matrices { q, k, v, o, gate, up, down };
            TensorParallelBlock::new(rope.clone(), [norm()?, norm()?], &whole, comm)
        };
        let blocks = (0..L).map(block).collect::<Result<_>>()?;
        Ok(Self { layers: modules::Repeated { modules: blocks }, norm: norm()? })
    }

    fn try_forward<B: Dim, S: Dim, T: Tape<f32, Cpu>>(
        &self,
        exchange: &Rc<Exchange>,
        mut x: Tokens<B, S, H, T>,
    ) -> Result<Tokens<B, S, H, T>> {
        for block in &self.layers.modules {
            x = block.try_forward(exchange, x)?;
        }
        Ok(self.norm.try_forward(x)?)
    }
}
