//! The tasks of more rotations.
//!
//! RoPE turns each plane of a head, a pair of its elements, by the position. Here it gets a decay (xPos: Sun et al.
//! 2022), several coordinates (images and films), and attention without a softmax (Katharopoulos et al. 2020; Su et al.
//! 2021, section 3.3). The layout is half-split, so plane `i` has the elements `i` and `i + hd/2`.

use crate::prelude::*;

/// Given: one plane, `(a, b)`, turned by an angle.
pub fn turned_pair([a, b]: [f64; 2], angle: f64) -> [f64; 2] {
    let (sin, cos) = angle.sin_cos();
    [a * cos - b * sin, b * cos + a * sin]
}

/// Given: one head turned, half-split, with plane `i` by `angles[i]`.
pub fn turned_head(head: &[f64], angles: &[f64]) -> Vec<f64> {
    let half = head.len() / 2;
    let mut y = vec![0.0; head.len()];
    for i in 0..half {
        [y[i], y[i + half]] = turned_pair([head[i], head[i + half]], angles[i]);
    }
    y
}

/// Given: the angles of RoPE at a position, `m · base^(-2i / hd)` for `i = 0 .. hd/2 - 1`.
pub fn rope_angles(head_dim: usize, base: f64, position: usize) -> Vec<f64> {
    let theta = |i: usize| base.powf(-2.0 * i as f64 / head_dim as f64);
    (0..head_dim / 2).map(|i| position as f64 * theta(i)).collect()
}

/// Settings of xPos.
#[derive(Debug, Clone, Copy)]
pub struct XPos {
    /// Base of the frequencies.
    pub base: f64,
    /// Over how many positions a plane of scale `zeta` decays by `zeta`.
    pub scale_base: f64,
    /// The position at which both scales are 1.
    pub center: usize,
}

/// Which side of a score a head is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// It asks.
    Query,
    /// It is asked.
    Key,
}

/// Task `rotations/xpos`. One head at a position: turned as by RoPE, and scaled.
///
/// ```text
/// zeta_i = (2i / hd + 0.4) / 1.4        scale_i = zeta_i^((position - center) / scale_base)
/// ```
///
/// Both elements of plane `i` of a query are multiplied by `scale_i`, and those of a key are divided by it. `position`
/// may be smaller than `center`.
pub fn xpos(head: &[f64], settings: &XPos, position: usize, side: Side) -> Vec<f64> {
    // task rotations/xpos: begin
    todo!("task rotations/xpos")
    // task rotations/xpos: end
}

/// Which frequencies the planes of a section have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frequencies {
    /// Each section has its own, from 1 down: `base^(-i / p)` for the `i`-th of its `p` planes.
    Anew,
    /// Plane `i` of the head has `base^(-2i / hd)`, whichever section it is in.
    OneList,
}

/// Task `rotations/two-axes`. How far each plane of a token turns: `hd/2` angles in radians.
///
/// `sections` says how many planes each coordinate turns: the first `sections[0]` planes turn by `coordinates[0]`, the
/// next `sections[1]` by `coordinates[1]`, and so on. With `[2, 2]`, half of the planes are for the row of a patch and
/// half for its column. All sections together are `hd/2`, and the angle is the coordinate times the frequency.
pub fn axial_angles(
    sections: &[usize],
    frequencies: Frequencies,
    base: f64,
    coordinates: &[usize],
) -> Vec<f64> {
    // task rotations/two-axes: begin
    todo!("task rotations/two-axes")
    // task rotations/two-axes: end
}

/// `[b, s, nh, hd]`, with sizes at run time.
pub type Heads<D, T = NoneTape> = Tensor<(usize, usize, usize, usize), f32, D, T>;

/// Given: `x` turned, each row `t` by the angles of `angles[t]`, `[s][hd/2]`.
pub fn turned<D: Device<f32>, T: Tape<f32, D>>(x: Heads<D, T>, angles: &[Vec<f64>]) -> Heads<D, T> {
    let shape = *x.shape();
    let (half, row) = (shape.3 / 2, (shape.1, shape.3));
    let dev = x.device().clone();
    let table = |of: &dyn Fn(f64, usize) -> f64| -> Tensor<(usize, usize), f32, D> {
        let rows = angles.iter().flat_map(|row| (0..2 * half).map(|j| of(row[j % half], j) as f32));
        dev.tensor_from_vec(rows.collect(), row) //                         [s, hd]
    };
    let cos = table(&|angle, _| angle.cos()).broadcast_like::<_, Axes2<0, 2>>(&shape);
    // The first half gets minus its partner.
    let sin = table(&|angle, j| if j < half { -angle.sin() } else { angle.sin() });
    let sin = sin.broadcast_like::<_, Axes2<0, 2>>(&shape); //              [b, s, nh, hd]
    let partners = x.with_empty_tape().roll::<Axis<3>>(half); //            [b, s, nh, hd]
    x * cos + partners * sin
}

/// The planes of a head as a type: `T` for the time, `H` for the height, `W` for the width, of `HD` elements.
#[derive(Debug, Clone, Copy)]
pub struct Sections<const HD: usize, const T: usize, const H: usize, const W: usize>;

#[allow(clippy::new_without_default)]
impl<const HD: usize, const T: usize, const H: usize, const W: usize> Sections<HD, T, H, W> {
    /// Task `rotations/types`, about types. A plane has two elements, so `T`, `H` and `W` planes must be all of the
    /// head's `HD` elements, and each section must have a plane. Make sections that break either rule impossible to
    /// compile, here, each with a message.
    pub fn new() -> Self {
        // task rotations/types: begin
        // to do: task rotations/types, in place of this line
        // task rotations/types: end
        Self
    }
}

/// Task `rotations/linear`. Causal linear attention, with the rotation in the numerator alone. `[b, s, nh, hd]`.
///
/// ```text
/// y_m = sum over n <= m of (R_m φ(q_m) · R_n φ(k_n)) v_n  /  sum over n <= m of φ(q_m) · φ(k_n)
/// φ(x) = elu(x) + 1: x + 1 above 0, exp(x) from 0 down
/// ```
///
/// [`turned`] is `R`: give it your features and `angles`, while the denominator has the features as they are. A
/// gradient must reach `q`, `k` and `v`, also through the denominator, and the slope of `φ` at 0 is 1. All three have
/// tapes of one type; `with_empty_tape` copies a tensor whose tape goes on elsewhere.
pub fn linear_attention<D: Device<f32>, T: Tape<f32, D>>(
    q: Heads<D, T>,
    k: Heads<D, T>,
    v: Heads<D, T>,
    angles: &[Vec<f64>],
) -> Heads<D, T> {
    // task rotations/linear: begin
    todo!("task rotations/linear")
    // task rotations/linear: end
}

/// Given: `φ(x) = elu(x) + 1`.
pub fn phi(x: f64) -> f64 {
    if x > 0.0 { x + 1.0 } else { x.exp() }
}

/// What linear attention keeps of one head between the pieces of a text.
#[derive(Debug, Clone)]
pub struct Running {
    /// The sum of turned keys times values: `sums[i][j]` is that of `R_n φ(k_n)[i] · v_n[j]`.
    pub sums: Vec<Vec<f64>>,
    /// The sum of `φ(k_n)`, not turned.
    pub total: Vec<f64>,
    /// The position of the next token.
    pub position: usize,
}

impl Running {
    /// Nothing is in it yet.
    pub fn new(head_dim: usize, offset: usize) -> Self {
        let sums = vec![vec![0.0; head_dim]; head_dim];
        Self { sums, total: vec![0.0; head_dim], position: offset }
    }

    /// Task `rotations/running`. The next piece of a text: a row of `q`, `k` and `v` for each token, and one of the result.
    ///
    /// This is what task `rotations/linear` computes over all pairs, with sums that are carried along: token after
    /// token, its key and value go into the sums, and then its query reads them. `base` is that of the angles,
    /// [`rope_angles`], and all pieces of a text have the same; without one, nothing turns. The denominator's sum is of
    /// keys that are not turned, and the next piece goes on where this one ends.
    pub fn piece(
        &mut self,
        q: &[Vec<f64>],
        k: &[Vec<f64>],
        v: &[Vec<f64>],
        base: Option<f64>,
    ) -> Vec<Vec<f64>> {
        // task rotations/running: begin
        todo!("task rotations/running")
        // task rotations/running: end
    }
}

/// Task `rotations/relative`. An invariant of your own: what is relative.
///
/// `rotations` claims to be all of this chapter, in plain values. Return `Ok`, or an `Err` that says what is wrong with
/// it. `rotations.xpos(&case)` takes an
/// `interface::XPosCase { shape: [b, s, nh, hd], base, scale_base, center, offset, q, k }` and gives an
/// `interface::TurnedPair { q, k }`; `rotations.axial(&case)` takes an
/// `interface::AxialCase { shape, planes, sections, base, coordinates, x }` with `interface::Sections::Anew` or
/// `OneList`; `rotations.linear(&case)` and `rotations.running(&case, &pieces)` take an
/// `interface::LinearCase { shape, base, offset, q, k, v }`. Each may refuse: `?` makes that your `Err`, with its words
/// in `refusal.0`. Use head sizes 4, 6, 8 or 12, and elements between -2 and 2.
///
/// Move everything by the same number of positions: neither a score nor what linear attention gives may change. You are
/// graded by the known bugs that you catch, at least 12, and you may not reject a correct one, which may compute in
/// `f32`. An unchanged score says little by itself, so think of a cache, of distance 0, of the origin, and of a text
/// that is cut.
pub fn property(rotations: &dyn interface::Rotations) -> Result<()> {
    // task rotations/relative: begin
    todo!("task rotations/relative")
    // task rotations/relative: end
}
