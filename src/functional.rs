//! The four computations as free functions, forward and backward side by side.
//!
//! The modules hold weights and settings and call these. Sizes are run-time values here, so what
//! the compiler refuses for a module is an [`Error`] for a function.
//!
//! Every function takes a tensor with a tape or without. With a tape, the gradient that stands
//! under the forward pass is recorded. Norm and rotation compute in `f32` or better and round to
//! the input's type once. Embeddings copy rows.

use crate::error::{Error, Result, require};
use crate::tensor::*;

type Raw<T, D> = std::result::Result<T, <D as HasErr>::Err>;

// ANCHOR: norm_forward
/// `y = x / sqrt(mean(x^2) + eps) * weight`, with the mean over each group of `group_size`.
///
/// Shapes: `x` `[b, s, h]`, `weight` `[h]`, result `[b, s, h]`. A group is `group_size`
/// neighbours on the hidden axis. Source: Zhang and Sennrich 2019, "Root Mean Square Layer
/// Normalization"; in groups: Dao and Gu 2024, Mamba-2.
///
/// # Errors
/// A group size that does not divide `h`; an `eps` that is negative, not finite, or rounds to 0;
/// a `weight` of another length; an empty input. (With `eps = 0` a group of zeros gives NaN.)
pub fn group_rms_norm<B: Dim, S: Dim, H: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: Tensor<(B, S, H), F, D, T>,
    weight: &Tensor<(H,), F, D>,
    group_size: usize,
    eps: f64,
) -> Result<Tensor<(B, S, H), F, D, T>> {
    check_norm(x.shape(), weight.shape(), group_size)?;
    check_eps::<F::Wide>(eps)?;
    let run = || -> Raw<_, D> {
        let (x, tape) = x.try_contiguous()?.split_tape();
        let (weight, weight_tape) = weight.retaped::<T>().try_contiguous()?.split_tape();
        let mut tape = tape.merge(weight_tape);
        let (y, saved) = rms_forward(cast(&x)?, cast(&weight)?, group_size, eps)?;
        let y: Tensor<_, F, D> = cast::<F::Wide, F, _, _>(&y)?;
        on_backward(&mut tape, &y, move |dy, grads| {
            let (dx, dgamma) = rms_backward(cast(&dy)?, saved)?;
            add_gradient(grads, &x, cast::<F::Wide, F, _, _>(&dx)?)?;
            add_gradient(grads, &weight, cast::<F::Wide, F, _, _>(&dgamma)?)
        });
        Ok(y.put_tape(tape))
    };
    run().map_err(Error::device)
}

/// What the backward pass needs of the forward pass.
struct RmsSaved<B: Dim, S: Dim, H: Dim, W: Float, D: Device<W>> {
    xhat: Tensor<(B, S, H), W, D>,    // [b, s, h]
    rms: Tensor<(B, S, usize), W, D>, // [b, s, g]
    gamma: Tensor<(H,), W, D>,        // [h]
    group_size: usize,
}

/// xhat = x / sqrt(mean(x^2) + eps), y = gamma * xhat
fn rms_forward<B: Dim, S: Dim, H: Dim, W: Float, D: Device<W>>(
    x: Tensor<(B, S, H), W, D>,
    gamma: Tensor<(H,), W, D>,
    group_size: usize,
    eps: f64,
) -> Raw<(Tensor<(B, S, H), W, D>, RmsSaved<B, S, H, W, D>), D> {
    let (b, s, h) = *x.shape();
    let groups = (b, s, h.size() / group_size, group_size);

    let x = x.try_reshape_like(&groups)?; //                                  [b, s, g, gz]
    let sum = x.clone().try_square()?.try_sum::<_, Axis<3>>()?; //            [b, s, g]
    let mean_square = sum.try_div(W::nearest(group_size as f64))?; //         [b, s, g]
    let rms = mean_square.try_add(W::nearest(eps))?.try_sqrt()?; //           [b, s, g]
    let xhat = x.try_div(over_groups(&rms, &groups)?)?; //                    [b, s, g, gz]
    let xhat = xhat.try_reshape_like(&(b, s, h))?; //                         [b, s, h]
    let y = xhat.clone().try_mul(over_rows(&gamma, &(b, s, h))?)?; //         [b, s, h]

    Ok((y, RmsSaved { xhat, rms, gamma, group_size }))
}
// ANCHOR_END: norm_forward

// ANCHOR: norm_backward
/// dgamma = sum over rows of dy * xhat
/// dx     = (gamma*dy - xhat * mean(gamma*dy * xhat)) / rms, the mean over each group
fn rms_backward<B: Dim, S: Dim, H: Dim, W: Float, D: Device<W>>(
    dy: Tensor<(B, S, H), W, D>,
    saved: RmsSaved<B, S, H, W, D>,
) -> Raw<(Tensor<(B, S, H), W, D>, Tensor<(H,), W, D>), D> {
    let RmsSaved { xhat, rms, gamma, group_size } = saved;
    let (b, s, h) = *dy.shape();
    let groups = (b, s, h.size() / group_size, group_size);

    let dgamma = dy.clone().try_mul(xhat.clone())?; //                        [b, s, h]
    let dgamma = dgamma.try_sum::<_, Axes2<0, 1>>()?; //                      [h]

    let dxhat = dy.try_mul(over_rows(&gamma, &(b, s, h))?)?; //               [b, s, h]
    let dxhat = dxhat.try_reshape_like(&groups)?; //                          [b, s, g, gz]
    let xhat = xhat.try_reshape_like(&groups)?; //                            [b, s, g, gz]
    let along = dxhat.clone().try_mul(xhat.clone())?; //                      [b, s, g, gz]
    let along = along.try_sum::<_, Axis<3>>()?; //                            [b, s, g]
    let along = along.try_div(W::nearest(group_size as f64))?; //             [b, s, g]
    let along = xhat.try_mul(over_groups(&along, &groups)?)?; //              [b, s, g, gz]
    let dx = dxhat.try_sub(along)?.try_div(over_groups(&rms, &groups)?)?; //  [b, s, g, gz]

    Ok((dx.try_reshape_like(&(b, s, h))?, dgamma))
}
// ANCHOR_END: norm_backward

// ANCHOR: norm_broadcast
/// One number a group, `[b, s, g]`, seen as `[b, s, g, gz]`. Nothing is copied.
fn over_groups<B: Dim, S: Dim, W: Float, D: Device<W>>(
    per_group: &Tensor<(B, S, usize), W, D>,
    groups: &(B, S, usize, usize),
) -> Raw<Tensor<(B, S, usize, usize), W, D>, D> {
    per_group.clone().try_broadcast_like::<_, Axis<3>>(groups)
}

/// One number an element, `[h]`, seen as `[b, s, h]`. Nothing is copied.
fn over_rows<B: Dim, S: Dim, H: Dim, W: Float, D: Device<W>>(
    gamma: &Tensor<(H,), W, D>,
    shape: &(B, S, H),
) -> Raw<Tensor<(B, S, H), W, D>, D> {
    gamma.clone().try_broadcast_like::<_, Axes2<0, 1>>(shape)
}
// ANCHOR_END: norm_broadcast

fn check_norm<B: Dim, S: Dim, H: Dim>(
    x: &(B, S, H),
    weight: &(H,),
    group_size: usize,
) -> Result<()> {
    not_empty("x", x)?;
    let hidden_size = x.2.size();
    if group_size == 0 || hidden_size % group_size != 0 {
        return Err(Error::GroupSize { group_size, hidden_size });
    }
    same_shape("weight", &[hidden_size], &[weight.0.size()])
}

/// `eps` is added to a mean of squares in `W`, so it may be neither negative nor lost there.
pub(crate) fn check_eps<W: Float>(eps: f64) -> Result<()> {
    let held = W::nearest(eps);
    let holds = held.is_finite() && (eps == 0.0 || held > W::zero());
    require(holds, "eps", "0, or a positive number that its float type can hold", eps)
}

// ANCHOR: embedding
/// `y[i, j] = table[ids[i, j]]`: one row of the table for each id.
///
/// Shapes: `ids` `[b, s]`, `table` `[v, e]`, result `[b, s, e]`. The ids are not changed. Rows
/// are copied, not computed, so they are bit-equal to the table. The gradient of a row is the
/// sum of the gradients at the places that looked it up, and 0 if none did.
///
/// The ids are checked on the host, so a GPU sends them there once a call. The gradient is added
/// up in the table's own type: in `f16`, more than 2048 equal ids are not counted right.
///
/// # Errors
/// An id that is not below `v`, with its place. An empty `ids` or table: dfdx panics on empty
/// tensors. On a GPU, a table of `2^32` elements or more.
pub fn vocab_embedding<B: Dim, S: Dim, V: Dim, M: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    ids: Tensor<(B, S), usize, D, T>,
    table: &Tensor<(V, M), F, D>,
) -> Result<Tensor<(B, S, M), F, D, T>> {
    let (v, _) = *table.shape();
    check_table("table", table)?;
    let (ids, tape) = ids.split_tape();
    let rows = checked_ids(&ids, v.size())?;
    look_up(table, tape, rows, *ids.shape()).map_err(Error::device) // [b, s, e]
}

/// The rows of `table`, `[b, s, e]`. The gradient is dfdx's own: a scatter-add.
///
/// The rows are looked up as one list. For a matrix of ids, dfdx's GPU code multiplies token
/// number and table size in 32 bits, and silently gives other rows.
fn look_up<B: Dim, S: Dim, V: Dim, M: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    table: &Tensor<(V, M), F, D>,
    tape: T,
    rows: Vec<usize>,
    (b, s): (B, S),
) -> Raw<Tensor<(B, S, M), F, D, T>, D> {
    let (_, e) = *table.shape();
    let list = (b.size() * s.size(),);
    let rows = table.device().try_tensor_from_vec(rows, list)?; //            [b s]
    let found: Tensor<(usize, M), F, D, T> = table.clone().put_tape(tape).try_gather(rows)?;
    found.try_reshape_like(&(b, s, e)) //                                     [b, s, e]
}
// ANCHOR_END: embedding

// ANCHOR: parallel
/// Rank `rank`'s part of an embedding whose table is cut into `world_size` shards of `n` rows.
///
/// Shapes: `ids` `[b, s]`, `shard` `[n, e]`, result `[b, s, e]`. The rank owns the ids in
/// `[rank * n, (rank + 1) * n)`. Other ids give a zero vector, and no gradient. The sum over all
/// ranks is the embedding in the whole table. Source: Shoeybi et al. 2019, Megatron-LM.
///
/// # Errors
/// A rank that is not below `world_size`; an id that is not below `n * world_size`, on every
/// rank alike; an empty `ids` or shard; on a GPU, a shard of `2^32` elements or more.
pub fn vocab_shard_embedding<
    B: Dim,
    S: Dim,
    N: Dim,
    M: Dim,
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
>(
    ids: Tensor<(B, S), usize, D, T>,
    shard: &Tensor<(N, M), F, D>,
    rank: usize,
    world_size: usize,
) -> Result<Tensor<(B, S, M), F, D, T>> {
    let (n, e) = *shard.shape();
    let n = n.size();
    check_table("shard", shard)?;
    check_rank(rank, world_size)?;
    let vocab_size = n.saturating_mul(world_size);
    let (ids, tape) = ids.split_tape();
    let (b, s) = *ids.shape();
    let ids = checked_ids(&ids, vocab_size)?;

    let mask: Vec<bool> = ids.iter().map(|id| id / n == rank).collect();
    // Counted from the start of the owner's shard. For a foreign id this is some row, to have one
    // to look up; the mask throws it away.
    let rows: Vec<usize> = ids.iter().map(|id| id % n).collect();

    let run = || -> Raw<_, D> {
        let dev = shard.device();
        let mask = dev.try_tensor_from_vec(mask, (b, s))?; //                 [b, s]
        let mask = mask.try_broadcast_like::<_, Axis<2>>(&(b, s, e))?; //     [b, s, e]
        let zero: Tensor<(M,), F, D> = dev.try_zeros_like(&(e,))?; //         [e]
        let zero = zero.try_broadcast_like::<_, Axes2<0, 1>>(&(b, s, e))?; // [b, s, e]
        let looked_up = look_up(shard, tape, rows, (b, s))?; //               [b, s, e]
        // Zeros are written, not multiplied: a NaN in row 0 must not leak.
        mask.try_choose(looked_up, zero) //                                   [b, s, e]
    };
    run().map_err(Error::device)
}
// ANCHOR_END: parallel

pub(crate) fn check_rank(rank: usize, world_size: usize) -> Result<()> {
    if rank < world_size { Ok(()) } else { Err(Error::Rank { rank, world_size }) }
}

/// Refuses an empty table, and one that dfdx's GPU code can't address: it counts in 32 bits.
fn check_table<V: Dim, M: Dim, F: Float, D: Device<F>>(
    name: &'static str,
    table: &Tensor<(V, M), F, D>,
) -> Result<()> {
    not_empty(name, table.shape())?;
    let sizes = table.shape().concrete();
    let elements = sizes[0].saturating_mul(sizes[1]);
    match largest_table::<D>() {
        Some(limit) if elements > limit => Err(Error::TableTooLarge { elements, limit }),
        _ => Ok(()),
    }
}

// ANCHOR: checked_ids
/// The ids on the host, once all are known to be below `vocab_size`.
fn checked_ids<B: Dim, S: Dim, D: Storage<usize>>(
    ids: &Tensor<(B, S), usize, D>,
    vocab_size: usize,
) -> Result<Vec<usize>> {
    not_empty("ids", ids.shape())?;
    let length = ids.shape().1.size();
    let ids = ids.as_vec();
    match ids.iter().position(|&id| id >= vocab_size) {
        None => Ok(ids),
        Some(at) => Err(Error::TokenId {
            id: ids[at],
            batch: at / length,
            position: at % length,
            vocab_size,
        }),
    }
}
// ANCHOR_END: checked_ids

/// Which two dimensions of a head turn together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `(x_i, x_{i + d/2})`: Llama, GPT-NeoX. Tables have two equal halves.
    HalfSplit,
    /// `(x_{2i}, x_{2i + 1})`: GPT-J, GLM and the paper. Tables have equal neighbours.
    Interleaved,
}

// ANCHOR: rope_forward
/// `y = x * cos + rotate_half(x) * sin`, in the half-split layout.
///
/// Shapes: `x` `[b, s, nh, hd]`, `cos` and `sin` `[s, hd]`, result `[b, s, nh, hd]`. Row `t` of
/// the tables is for row `t` of `x`. `rotate_half(x)` is `concat(-x[hd/2..], x[..hd/2])`.
/// Source: Su et al. 2021, "RoFormer"; the layout is that of GPT-NeoX and Llama.
///
/// # Errors
/// A head size that is odd, below 4 or above 65,536; tables of another shape; an empty input.
pub fn apply_rotary_pos_emb<
    B: Dim,
    S: Dim,
    N: Dim,
    H: Dim,
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
>(
    x: Tensor<(B, S, N, H), F, D, T>,
    cos: &Tensor<(usize, H), f32, D>,
    sin: &Tensor<(usize, H), f32, D>,
) -> Result<Tensor<(B, S, N, H), F, D, T>> {
    apply_rotary(x, cos, sin, Layout::HalfSplit)
}

/// The twin of [`apply_rotary_pos_emb`] in the adjacent-pair layout.
///
/// The tables hold each frequency twice, side by side: `(t0, t0, t1, t1, ..)`.
///
/// # Errors
/// As for [`apply_rotary_pos_emb`].
pub fn apply_rotary_pos_emb_interleaved<
    B: Dim,
    S: Dim,
    N: Dim,
    H: Dim,
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
>(
    x: Tensor<(B, S, N, H), F, D, T>,
    cos: &Tensor<(usize, H), f32, D>,
    sin: &Tensor<(usize, H), f32, D>,
) -> Result<Tensor<(B, S, N, H), F, D, T>> {
    apply_rotary(x, cos, sin, Layout::Interleaved)
}

fn apply_rotary<B: Dim, S: Dim, N: Dim, H: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: Tensor<(B, S, N, H), F, D, T>,
    cos: &Tensor<(usize, H), f32, D>,
    sin: &Tensor<(usize, H), f32, D>,
    layout: Layout,
) -> Result<Tensor<(B, S, N, H), F, D, T>> {
    check_rotary(x.shape(), cos.shape(), sin.shape())?;
    let run = || -> Raw<_, D> {
        let cos = cast::<f32, F::Wide, _, _>(cos)?;
        let sin = cast::<f32, F::Wide, _, _>(sin)?;
        let (x, mut tape) = x.try_contiguous()?.split_tape();
        let y = rotate_forward(cast(&x)?, &cos, &sin, layout)?;
        let y: Tensor<_, F, D> = cast(&y)?;
        on_backward(&mut tape, &y, move |dy, grads| {
            let dx = rotate_backward(cast(&dy)?, &cos, &sin, layout)?;
            add_gradient(grads, &x, cast(&dx)?)
        });
        Ok(y.put_tape(tape))
    };
    run().map_err(Error::device)
}

/// y = x * cos + quarter_turn(x) * sin
fn rotate_forward<B: Dim, S: Dim, N: Dim, H: Dim, W: Float, D: Device<W>>(
    x: Tensor<(B, S, N, H), W, D>,
    cos: &Tensor<(usize, H), W, D>,
    sin: &Tensor<(usize, H), W, D>,
    layout: Layout,
) -> Raw<Tensor<(B, S, N, H), W, D>, D> {
    let turned = quarter_turn(x.clone(), layout)?; //                         [b, s, nh, hd]
    let cos = over_heads(cos, x.shape())?; //                                 [b, s, nh, hd]
    let sin = over_heads(sin, x.shape())?; //                                 [b, s, nh, hd]
    x.try_mul(cos)?.try_add(turned.try_mul(sin)?) //                          [b, s, nh, hd]
}
// ANCHOR_END: rope_forward

// ANCHOR: rope_backward
/// The transpose of the forward pass, which turns back: dx = dy * cos - quarter_turn(dy * sin)
fn rotate_backward<B: Dim, S: Dim, N: Dim, H: Dim, W: Float, D: Device<W>>(
    dy: Tensor<(B, S, N, H), W, D>,
    cos: &Tensor<(usize, H), W, D>,
    sin: &Tensor<(usize, H), W, D>,
    layout: Layout,
) -> Raw<Tensor<(B, S, N, H), W, D>, D> {
    let cos = over_heads(cos, dy.shape())?; //                                [b, s, nh, hd]
    let sin = over_heads(sin, dy.shape())?; //                                [b, s, nh, hd]
    let turned = quarter_turn(dy.clone().try_mul(sin)?, layout)?;
    dy.try_mul(cos)?.try_sub(turned) //                                       [b, s, nh, hd]
}
// ANCHOR_END: rope_backward

// ANCHOR: quarter_turn
/// Turns each pair by 90 degrees, `(a, b)` to `(-b, a)`: swaps partners, then the first changes
/// its sign. In the half-split layout this is the well-known `rotate_half`.
fn quarter_turn<B: Dim, S: Dim, N: Dim, H: Dim, W: Float, D: Device<W>>(
    x: Tensor<(B, S, N, H), W, D>,
    layout: Layout,
) -> Raw<Tensor<(B, S, N, H), W, D>, D> {
    let (b, s, n, h) = *x.shape();
    let hd = h.size();
    let swapped = match layout {
        Layout::HalfSplit => x.try_roll::<Axis<3>>(hd / 2)?,
        Layout::Interleaved => {
            let pairs = (b, s, n, hd / 2, Const::<2>);
            x.try_reshape_like(&pairs)?.try_roll::<Axis<4>>(1)?.try_reshape_like(&(b, s, n, h))?
        }
    };
    let is_first = |j: usize| match layout {
        Layout::HalfSplit => j < hd / 2,
        Layout::Interleaved => j % 2 == 0,
    };
    let signs = (0..hd).map(|j| if is_first(j) { -W::ONE } else { W::ONE }).collect();
    let signs = swapped.device().try_tensor_from_vec(signs, (h,))?; //        [hd]
    let shape = *swapped.shape();
    swapped.try_mul(signs.try_broadcast_like::<_, Axes3<0, 1, 2>>(&shape)?)
}
// ANCHOR_END: quarter_turn

/// A table `[s, hd]` seen as `[b, s, nh, hd]`: the same for every batch row and head.
fn over_heads<B: Dim, S: Dim, N: Dim, H: Dim, W: Float, D: Device<W>>(
    table: &Tensor<(usize, H), W, D>,
    shape: &(B, S, N, H),
) -> Raw<Tensor<(B, S, N, H), W, D>, D> {
    let table = table.clone().try_reshape_like(&(shape.1, shape.3))?; //      [s, hd]
    table.try_broadcast_like::<_, Axes2<0, 2>>(shape)
}

// ANCHOR: rope_complex
/// [`apply_rotary_pos_emb`] in complex numbers: `z = x_i + i x_{i + d/2}` becomes `z * e^(i m t)`.
///
/// The slow and obvious form, for reading and for testing the other, in `f32` and `f64`. The
/// gradient is dfdx's own.
/// Shapes and tables are those of [`apply_rotary_pos_emb`]; only their first halves are used.
///
/// # Errors
/// As for [`apply_rotary_pos_emb`].
pub fn apply_rotary_pos_emb_complex<B: Dim, S: Dim, N: Dim, H: Dim, F, D, T>(
    x: Tensor<(B, S, N, H), F, D, T>,
    cos: &Tensor<(usize, H), f32, D>,
    sin: &Tensor<(usize, H), f32, D>,
) -> Result<Tensor<(B, S, N, H), F, D, T>>
where
    F: Float<Wide = F>,
    D: Backend<F>,
    T: Tape<F, D>,
{
    check_rotary(x.shape(), cos.shape(), sin.shape())?;
    let run = || -> Raw<_, D> {
        let shape = *x.shape();
        let (b, s, n, h) = (shape.0.size(), shape.1.size(), shape.2.size(), shape.3.size());
        let halves = (b, s, n, h / 2);
        let phase = |table: &Tensor<(usize, H), f32, D>| {
            let table = cast::<f32, F, _, _>(table)?.try_slice((.., ..h / 2))?; // [s, hd/2]
            table.try_broadcast_like::<_, Axes2<0, 2>>(&halves)
        };
        let (cos, sin) = (phase(cos)?, phase(sin)?);
        let (x, tape) = x.split_tape();

        // z = re + i im
        let x = x.try_reshape_like(&(b, s, n, h))?.put_tape(tape);
        let re = x.with_empty_tape().try_slice((.., .., .., ..h / 2))?;
        let im = x.try_slice((.., .., .., h / 2..))?;

        // z * (cos + i sin) = (re cos - im sin) + i (re sin + im cos)
        let y_re = (re.with_empty_tape().try_mul(cos.clone())?)
            .try_sub(im.with_empty_tape().try_mul(sin.clone())?)?;
        let y_im = re.try_mul(sin)?.try_add(im.try_mul(cos)?)?;

        (y_re, y_im).try_concat_along(Axis::<3>)?.try_reshape_like(&shape)
    };
    run().map_err(Error::device)
}
// ANCHOR_END: rope_complex

/// Reorders each head from half-split to adjacent pairs: `(0, d/2, 1, d/2 + 1, ..)`.
///
/// Shape: `[b, s, nh, hd]`. Rotating adjacent pairs of the result equals rotating halves of `x`.
///
/// # Errors
/// A head size that is odd or below 4, an empty input.
pub fn half_split_to_interleaved<B: Dim, S: Dim, N: Dim, H: Dim, F, D, T>(
    x: Tensor<(B, S, N, H), F, D, T>,
) -> Result<Tensor<(B, S, N, H), F, D, T>>
where
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
{
    let half = check_heads(x.shape())? / 2;
    transpose_head(x, (2, half)).map_err(Error::device)
}

/// The inverse of [`half_split_to_interleaved`]: `(0, 2, 4, .., 1, 3, 5, ..)`.
///
/// # Errors
/// As for [`half_split_to_interleaved`].
pub fn interleaved_to_half_split<B: Dim, S: Dim, N: Dim, H: Dim, F, D, T>(
    x: Tensor<(B, S, N, H), F, D, T>,
) -> Result<Tensor<(B, S, N, H), F, D, T>>
where
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
{
    let half = check_heads(x.shape())? / 2;
    transpose_head(x, (half, 2)).map_err(Error::device)
}

/// Reads each head as a matrix of the given size and transposes it.
fn transpose_head<B: Dim, S: Dim, N: Dim, H: Dim, F, D, T>(
    x: Tensor<(B, S, N, H), F, D, T>,
    (rows, columns): (usize, usize),
) -> Raw<Tensor<(B, S, N, H), F, D, T>, D>
where
    F: Float,
    D: Device<F>,
    T: Tape<F, D>,
{
    let (b, s, n, h) = *x.shape();
    x.try_reshape_like(&(b, s, n, rows, columns))?
        .try_permute::<_, Axes5<0, 1, 2, 4, 3>>()?
        .try_reshape_like(&(b, s, n, h))
}

fn check_rotary<B: Dim, S: Dim, N: Dim, H: Dim>(
    x: &(B, S, N, H),
    cos: &(usize, H),
    sin: &(usize, H),
) -> Result<()> {
    let head_dim = check_heads(x)?;
    let expected = [x.1.size(), head_dim];
    same_shape("cos", &expected, &cos.concrete())?;
    same_shape("sin", &expected, &sin.concrete())
}

fn check_heads<B: Dim, S: Dim, N: Dim, H: Dim>(x: &(B, S, N, H)) -> Result<usize> {
    not_empty("x", x)?;
    check_head_dim(x.3.size())
}

/// The largest head size. Real ones are below 1000.
const MAX_HEAD_DIM: usize = 1 << 16;

pub(crate) fn check_head_dim(head_dim: usize) -> Result<usize> {
    if (4..=MAX_HEAD_DIM).contains(&head_dim) && head_dim % 2 == 0 {
        Ok(head_dim)
    } else {
        Err(Error::HeadDim { head_dim })
    }
}

pub(crate) fn not_empty<S: Shape>(name: &'static str, shape: &S) -> Result<()> {
    let shape: Vec<usize> = shape.concrete().into();
    if shape.contains(&0) { Err(Error::Empty { name, shape }) } else { Ok(()) }
}

fn same_shape(name: &'static str, expected: &[usize], got: &[usize]) -> Result<()> {
    if expected == got {
        return Ok(());
    }
    Err(Error::Shape { name, expected: expected.to_vec(), got: got.to_vec() })
}
