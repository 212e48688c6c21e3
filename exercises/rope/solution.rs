//! The tasks of NTK-aware RoPE.
//!
//! Each pair of dimensions of a head turns by an angle that grows with the position: plane `i`
//! at position `m` by `m · theta_i`. Source: Su et al. 2021, RoFormer. NTK scaling slows the slow
//! planes, so that positions past the training length stay in range. Source: bloc97 2023.

use crate::prelude::*;

/// Task `rope/frequencies`. The frequencies `theta_i` of the `head_dim / 2` planes.
///
/// ```text
/// theta_i = base'^(-2i / d),   i = 0 .. d/2 - 1        base' = base · k^(d / (d - 2))
/// ```
///
/// `d` is `head_dim`, and `k` is `ratio`. `theta_0 = 1` is the fastest and stays as it is, while the last plane gets
/// slower by exactly `k`. Powers in `f32` are good enough. Refuse a `head_dim` that is odd or below 4, a `base` that is
/// not finite and above 1, and a `ratio` that is not finite and at least 1.
pub fn rotary_frequencies(head_dim: usize, base: f64, ratio: f64) -> Result<Vec<f64>> {
    // task rope/frequencies: begin
    if head_dim < 4 || head_dim % 2 != 0 {
        return Err(format!("head size {head_dim} must be even and at least 4"));
    }
    if !(base.is_finite() && base > 1.0) {
        return Err(format!("base must be above 1, got {base}"));
    }
    if !(ratio.is_finite() && ratio >= 1.0) {
        return Err(format!("ratio must be at least 1, got {ratio}"));
    }
    let d = head_dim as f64;
    let base = base * ratio.powf(d / (d - 2.0));
    Ok((0..head_dim / 2).map(|i| base.powf(-2.0 * i as f64 / d)).collect())
    // task rope/frequencies: end
}

/// Task `rope/tables`. Cosines and sines of the angles of these positions: `(cos, sin)`, `[rows, hd]` each.
///
/// Row `t` is position `positions.start + t`. The layout is half-split, with plane `i` at `i` and again at `i + hd/2`.
/// Angles in `f64`, of which only the cosines and sines are rounded, are right at every position. Angles in `f32` pass
/// too, since transformers has them, but they are wrong by `m · 2⁻²³`, which is 0.1 at position 10⁶, and then the grade
/// says by how much yours are off.
pub fn rotary_tables(frequencies: &[f64], positions: Range<usize>) -> (Vec<f32>, Vec<f32>) {
    // task rope/tables: begin
    let angles = positions.flat_map(|m| {
        let row = frequencies.iter().map(move |theta| m as f64 * theta);
        row.clone().chain(row)
    });
    angles.map(|angle| (angle.cos() as f32, angle.sin() as f32)).unzip()
    // task rope/tables: end
}

/// Task `rope/rotate`. Turns `x`, `[b, s, nh, hd]`, by the tables, `[s, hd]`, in the half-split layout.
///
/// ```text
/// y = x · cos + rotate_half(x) · sin        rotate_half(x) = concat(-x[hd/2..], x[..hd/2])
/// ```
///
/// Row `t` of the tables is for row `t` of the sequence, in every batch row and every head. The tables are those of
/// task `rope/tables`, so both halves of a row are equal. `roll` turns an axis around, which makes `rotate_half` a roll
/// by `hd/2` and a sign. Remember the traps of task `norm/forward` if `x` has a tape. A NaN or an infinity reaches only
/// its own pair.
/// task `rope/tables`: both halves of a row are equal. `roll` turns an axis around: with it, `rotate_half` is a roll
/// by `hd/2` and a sign. Remember the traps of task `norm/forward` if `x` has a tape. A NaN or an infinity reaches
/// its own pair only.
pub fn apply_rotary_pos_emb<B, S, N, const HD: usize, D, T>(
    x: Tensor<(B, S, N, Const<HD>), f32, D, T>,
    cos: &Tensor<(usize, Const<HD>), f32, D>,
    sin: &Tensor<(usize, Const<HD>), f32, D>,
) -> Tensor<(B, S, N, Const<HD>), f32, D, T>
where
    B: Dim,
    S: Dim,
    N: Dim,
    D: Device<f32>,
    T: Tape<f32, D>,
{
    // task rope/rotate: begin
    let shape = *x.shape();
    let table = (shape.1, shape.3); //                                      [s, hd]
    let cos = cos.clone().reshape_like(&table).broadcast_like::<_, Axes2<0, 2>>(&shape);
    // The minus sign of rotate_half, put into the sines: -sin for the first half.
    let signs: Vec<f32> = (0..HD).map(|j| if j < HD / 2 { -1.0 } else { 1.0 }).collect();
    let signs: Tensor<Rank1<HD>, f32, D> = cos.device().tensor_from_vec(signs, (Const,)); // [hd]
    let sin = sin.clone().reshape_like(&table) * signs.broadcast_like::<_, Axis<0>>(&table);
    let sin = sin.broadcast_like::<_, Axes2<0, 2>>(&shape); //              [b, s, nh, hd]

    let swapped = x.with_empty_tape().roll::<Axis<3>>(HD / 2); //           [b, s, nh, hd]
    x * cos + swapped * sin
    // task rope/rotate: end
}

/// Task `rope/backward`. The gradient of [`apply_rotary_pos_emb`] by hand, without a tape.
///
/// The gradient is the transpose of the rotation, so what was turned forward is turned back. Find the formula with
/// `dy`, `cos` and `sin` in it. (If `cos` and `sin` belong to one angle, it is the rotation by minus that angle, and
/// their signs decide everything.) A NaN in `dy` reaches only its own pair, and no number replaces it.
pub fn apply_rotary_pos_emb_backward<B, S, N, const HD: usize, D>(
    dy: Tensor<(B, S, N, Const<HD>), f32, D>,
    cos: &Tensor<(usize, Const<HD>), f32, D>,
    sin: &Tensor<(usize, Const<HD>), f32, D>,
) -> Tensor<(B, S, N, Const<HD>), f32, D>
where
    B: Dim,
    S: Dim,
    N: Dim,
    D: Device<f32>,
{
    // task rope/backward: begin
    let shape = *dy.shape();
    let table = (shape.1, shape.3); //                                      [s, hd]
    let cos = cos.clone().reshape_like(&table).broadcast_like::<_, Axes2<0, 2>>(&shape);
    let sin = sin.clone().reshape_like(&table).broadcast_like::<_, Axes2<0, 2>>(&shape);
    // y_i = x_i cos_i - x_{i+d/2} sin_i and y_{i+d/2} = x_{i+d/2} cos_{i+d/2} + x_i sin_{i+d/2}:
    // so the product with sin comes first, then the swap, then the sign of the SECOND half.
    let swapped = (dy.clone() * sin).roll::<Axis<3>>(HD / 2); //            [b, s, nh, hd]
    let signs: Vec<f32> = (0..HD).map(|j| if j < HD / 2 { 1.0 } else { -1.0 }).collect();
    let signs: Tensor<Rank1<HD>, f32, D> = cos.device().tensor_from_vec(signs, (Const,)); // [hd]
    dy * cos + swapped * signs.broadcast_like::<_, Axes3<0, 1, 2>>(&shape)
    // task rope/backward: end
}

/// Task `rope/interleave`. Where dimension `j` of a half-split head goes among adjacent pairs.
///
/// GPT-J and the paper turn `(x_{2i}, x_{2i+1})`, while Llama and NeoX turn `(x_i, x_{i + d/2})`: half-split
/// `[0, 1, 2, 3, 4, 5]` becomes `[0, 3, 1, 4, 2, 5]`. `x` is `[rows, hd]`, row-major.
pub fn half_split_to_interleaved(x: &[f32], head_dim: usize) -> Vec<f32> {
    // task rope/interleave: begin
    let head = |head: &[f32]| -> Vec<f32> {
        let (first, second) = head.split_at(head_dim / 2);
        first.iter().zip(second).flat_map(|(a, b)| [*a, *b]).collect()
    };
    x.chunks(head_dim).flat_map(head).collect()
    // task rope/interleave: end
}

/// Task `rope/back`. The way back: `[0, 3, 1, 4, 2, 5]` becomes `[0, 1, 2, 3, 4, 5]`.
pub fn interleaved_to_half_split(x: &[f32], head_dim: usize) -> Vec<f32> {
    // task rope/back: begin
    let head = |head: &[f32]| -> Vec<f32> {
        let evens = head.iter().step_by(2);
        evens.chain(head.iter().skip(1).step_by(2)).copied().collect()
    };
    x.chunks(head_dim).flat_map(head).collect()
    // task rope/back: end
}

/// Task `rope/ratio`. `k'`, the ratio for a call that ends at `length` positions, past the cache.
///
/// It is the smallest EVEN whole number with `max_seq_len · k' >= length`, where `length` is at least 1. Refuse a
/// `max_seq_len` of 0.
pub fn ratio_for_length(length: usize, max_seq_len: usize) -> Result<usize> {
    // task rope/ratio: begin
    if max_seq_len == 0 {
        return Err("max_seq_len must be at least 1, got 0".to_string());
    }
    let pairs = length.div_ceil(max_seq_len.saturating_mul(2));
    pairs.checked_mul(2).ok_or_else(|| format!("no ratio for {length} positions"))
    // task rope/ratio: end
}

/// A rotary position embedding that keeps a table of `es = ms · k` positions.
#[derive(Clone)]
pub struct NtkAwareRope<const HD: usize, D: Device<f32>> {
    dev: D,
    base: f64,
    /// `ms`, the training length.
    pub max_seq_len: usize,
    /// `k` of the cache.
    pub ratio: usize,
    /// Whether a call past the cache replaces `ratio` and the cache for good.
    pub dynamic: bool,
    /// Cosines of the cache, `[es, hd]`.
    pub cos: Tensor<(usize, Const<HD>), f32, D>,
    /// Sines of the cache, `[es, hd]`.
    pub sin: Tensor<(usize, Const<HD>), f32, D>,
}

impl<const HD: usize, D: Device<f32>> NtkAwareRope<HD, D> {
    /// A module with its cache built. Refuses what [`rotary_frequencies`] and
    /// [`ratio_for_length`] refuse.
    ///
    /// Task `rope/types`, about types. Dimensions turn in pairs, and `d / (d - 2)` needs `d >= 4`, so make an odd `HD`
    /// and an `HD` below 4 impossible to compile, here, with a message.
    pub fn new(
        dev: &D,
        base: f64,
        max_seq_len: usize,
        ratio: usize,
        dynamic: bool,
    ) -> Result<Self> {
        // task rope/types: begin
        const { assert!(HD >= 4 && HD % 2 == 0, "the head size must be even and at least 4") };
        // task rope/types: starter
        //| // to do: task rope/types, in place of this line
        // task rope/types: end
        ratio_for_length(1, max_seq_len)?;
        let (cos, sin) = Self::rows(dev, base, ratio, 0..max_seq_len * ratio)?;
        Ok(Self { dev: dev.clone(), base, max_seq_len, ratio, dynamic, cos, sin })
    }

    /// The tables of these positions, `[rows, hd]`, made of your tasks `rope/frequencies` and `rope/tables`.
    fn rows(
        dev: &D,
        base: f64,
        ratio: usize,
        positions: Range<usize>,
    ) -> Result<(Tensor<(usize, Const<HD>), f32, D>, Tensor<(usize, Const<HD>), f32, D>)> {
        let shape = (positions.len(), Const::<HD>);
        let frequencies = rotary_frequencies(HD, base, ratio as f64)?;
        let (cos, sin) = rotary_tables(&frequencies, positions);
        Ok((dev.tensor_from_vec(cos, shape), dev.tensor_from_vec(sin, shape)))
    }

    /// Task `rope/module`. Turns `x`, `[b, s, nh, hd]`, by the positions `offset .. offset + s`.
    ///
    /// - If `offset + s <= es`, the rows of the cache are used.
    /// - If not, this call uses tables with `k'` of [`ratio_for_length`]. With `dynamic`, `ratio` and the cache (all
    ///   `ms · k'` rows of it) are replaced for good; without it, they stay as they are. The result of this call is the
    ///   same either way.
    /// - Refuse an `offset + s` that overflows, and with `dynamic` also an `ms · k'` that does.
    /// - A refused call changes nothing.
    pub fn forward<B: Dim, S: Dim, N: Dim, T: Tape<f32, D>>(
        &mut self,
        x: Tensor<(B, S, N, Const<HD>), f32, D, T>,
        offset: usize,
    ) -> Result<Tensor<(B, S, N, Const<HD>), f32, D, T>> {
        // task rope/module: begin
        let s = x.shape().1.size();
        let end = offset.checked_add(s).ok_or("offset + sequence length overflows")?;
        let cached_len = self.max_seq_len * self.ratio;
        if end > cached_len && self.dynamic {
            let ratio = ratio_for_length(end, self.max_seq_len)?;
            let all = 0..self.max_seq_len.checked_mul(ratio).ok_or("the cache is too long")?;
            (self.cos, self.sin) = Self::rows(&self.dev, self.base, ratio, all)?;
            self.ratio = ratio;
        }
        let (cos, sin) = if end <= self.max_seq_len * self.ratio {
            let slice = |table: &Tensor<(usize, Const<HD>), f32, D>| {
                table.clone().slice((offset..end, ..)).reshape_like(&(s, Const::<HD>))
            };
            (slice(&self.cos), slice(&self.sin)) //                         [s, hd]
        } else {
            let ratio = ratio_for_length(end, self.max_seq_len)?;
            Self::rows(&self.dev, self.base, ratio, offset..end)? //        [s, hd]
        };
        Ok(apply_rotary_pos_emb(x, &cos, &sin))
        // task rope/module: end
    }
}

/// Task `rope/property`. An invariant of your own.
///
/// `rope` claims to be an NTK-aware RoPE, in plain values: its parts, and the module that `build` gives. Return `Ok`,
/// or an `Err` that says what is wrong with it.
///
/// `rope.build(&settings)` gives a `Box<dyn interface::RopeModule>`, for
/// `interface::RopeSettings { head_dim, base, max_seq_len, ratio, dynamic }`. `module.forward(&case)` turns an
/// `interface::RopeCase { shape: [b, s, nh, hd], offset, x }`; `module.state()` gives an
/// `interface::RopeState { ratio, cached_len, tables }`. The parts have names too: `rope.frequencies(hd, base, ratio)`;
/// `rope.tables(hd, base, ratio, from..to)`, an `interface::Tables { cos, sin }`; `rope.rotate(&case)` and
/// `rope.rotate_backward(&case, &dy)`, for an `interface::RotateCase { shape, tables, x, layout }` with
/// `interface::Layout::HalfSplit` or `Interleaved`; `rope.to_interleaved(hd, &x)`, `rope.to_half_split(hd, &x)` and
/// `rope.ratio_for_length(length, max_seq_len)`. Each may refuse: `?` makes that your `Err`, with its words in
/// `refusal.0`. Use head sizes 4, 6, 8 or 16.
///
/// You are graded by the known bugs that you catch, at least 30, and you may not reject a correct one, which may build
/// its angles in `f32`. Think of what a turn keeps, of the difference of two positions, and of what a long call may
/// change.
pub fn property(rope: &dyn interface::NtkAwareRope) -> Result<()> {
    // task rope/property: begin
    let (q, k) = ([1.0, -2.0, 0.5, 3.0, 0.25, -1.0], [0.5, 1.5, -1.0, 2.0, -0.75, 1.0f32]);
    let settings =
        interface::RopeSettings { head_dim: 6, base: 100.0, max_seq_len: 4, ratio: 2, dynamic: false };
    let mut module = rope.build(&settings)?;
    let before = module.state()?;
    let mut at = |x: &[f32], offset| {
        let case = interface::RopeCase { shape: [1, 1, 1, 6], offset, x: x.to_vec() };
        module.forward(&case)
    };
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    if at(&q, 0)? != q {
        return Err("position 0 is not the identity".to_string());
    }
    // Only the difference of the positions counts.
    let products = [(3, 1), (5, 3), (7, 5)].map(|(m, n)| Ok(dot(&at(&q, m)?, &at(&k, n)?)));
    let products: Vec<f32> = products.into_iter().collect::<Result<_>>()?;
    if products.iter().any(|product| (product - products[0]).abs() > 1e-4) {
        return Err(format!("the same distance gave the products {products:?}"));
    }
    // The fastest plane turns by 1 radian a step, and pairs with half a head further on.
    let turned = at(&[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], 1)?;
    let expected = [1f32.cos(), 0.0, 0.0, 1f32.sin(), 0.0, 0.0];
    if dot(&turned, &expected) < 0.9999 {
        return Err(format!("e_0 at position 1 became {turned:?}"));
    }
    at(&q, 20)?;
    if module.state()? != before {
        return Err("a long call changed a static module".to_string());
    }
    Ok(())
    // task rope/property: end
}
