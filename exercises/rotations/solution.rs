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
    let hd = head.len();
    let mut y = turned_head(head, &rope_angles(hd, settings.base, position));
    let exponent = (position as f64 - settings.center as f64) / settings.scale_base;
    for (j, y) in y.iter_mut().enumerate() {
        let zeta = (2.0 * (j % (hd / 2)) as f64 / hd as f64 + 0.4) / 1.4;
        *y *= zeta.powf(if side == Side::Query { exponent } else { -exponent });
    }
    y
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
    let all: usize = sections.iter().sum(); // hd / 2
    let mut angles = Vec::with_capacity(all);
    for (&planes, &coordinate) in sections.iter().zip(coordinates) {
        for place in 0..planes {
            let share = match frequencies {
                Frequencies::Anew => place as f64 / planes as f64,
                Frequencies::OneList => angles.len() as f64 / all as f64,
            };
            angles.push(coordinate as f64 * base.powf(-share));
        }
    }
    angles
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
        const {
            assert!(T > 0 && H > 0 && W > 0, "each section must have a plane");
            assert!(2 * (T + H + W) == HD, "the sections must be all planes of the head");
        };
        // task rotations/types: starter
        //| // to do: task rotations/types, in place of this line
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
    let (b, s, n, hd) = *q.shape();
    let phi = |x: Heads<D, T>| x.with_empty_tape().clamp(f32::MIN, 0.0).exp() + x.relu();
    let in_heads = |x: Heads<D, T>| x.permute::<_, Axes4<0, 2, 1, 3>>(); //  [b, nh, s, hd]
    let across = |x: Heads<D, T>| x.permute::<_, Axes4<0, 2, 3, 1>>(); //    [b, nh, hd, s]
    let seen = (0..s * s).map(|at| if at % s <= at / s { 1.0 } else { 0.0 });
    let seen = q.device().tensor_from_vec(seen.collect(), (s, s)); //       [s, s]
    let seen = seen.broadcast_like::<_, Axes2<0, 1>>(&(b, n, s, s)); //     [b, nh, s, s]

    let (q, k) = (phi(q), phi(k)); //                                       [b, s, nh, hd]
    let turned_q = in_heads(turned(q.with_empty_tape(), angles));
    let turned_k = across(turned(k.with_empty_tape(), angles));
    let weights = turned_q.matmul(turned_k) * seen.clone(); //              [b, nh, s, s]
    let plain = in_heads(q).matmul(across(k)) * seen; //                    [b, nh, s, s]
    let divisors = plain.sum::<_, Axis<3>>(); //                            [b, nh, s]
    let y = weights.matmul(in_heads(v)); //                                 [b, nh, s, hd]
    let divisors = divisors.broadcast_like::<_, Axis<3>>(&(b, n, s, hd));
    (y / divisors).permute::<_, Axes4<0, 2, 1, 3>>() //                     [b, s, nh, hd]
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
        let mut y = Vec::new();
        for ((q, k), v) in q.iter().zip(k).zip(v) {
            let [q, k] = [q, k].map(|head| head.iter().map(|x| phi(*x)).collect::<Vec<_>>());
            let turn = |head: &[f64]| match base {
                Some(base) => turned_head(head, &rope_angles(head.len(), base, self.position)),
                None => head.to_vec(),
            };
            let (turned_q, turned_k) = (turn(&q), turn(&k));
            for i in 0..k.len() {
                self.total[i] += k[i];
                (0..v.len()).for_each(|j| self.sums[i][j] += turned_k[i] * v[j]);
            }
            let denominator: f64 = (0..q.len()).map(|i| q[i] * self.total[i]).sum();
            let numerator = |j| (0..q.len()).map(|i| turned_q[i] * self.sums[i][j]).sum::<f64>();
            y.push((0..v.len()).map(|j| numerator(j) / denominator).collect());
            self.position += 1;
        }
        y
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
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let same = |what: &str, a: f32, b: f32| match (a - b).abs() <= 1e-3 * (1.0 + a.abs()) {
        true => Ok(()),
        false => Err(format!("{what}: {a} and {b} should be the same")),
    };
    let (q, k) = ([1.0, -0.5, 0.75, 2.0], [0.5, 1.5, -1.0, 0.25f32]);

    // xPos: a query meets a key of another call; at distance 0 the scales cancel.
    let xpos = |offset: usize| {
        let (shape, base, scale_base) = ([1, 1, 1, 4], 100.0, 64.0);
        let (q, k) = (q.to_vec(), k.to_vec());
        let case = interface::XPosCase { shape, base, scale_base, center: 5, offset, q, k };
        rotations.xpos(&case)
    };
    let score = |m, n| Ok::<f32, String>(dot(&xpos(m)?.q, &xpos(n)?.k));
    same("xPos, moved by 30", score(20, 7)?, score(50, 37)?)?;
    same("xPos at distance 0", score(40, 40)?, dot(&q, &k))?;

    // Several coordinates: each moves alone, and the origin turns nothing.
    let axial = |x: &[f32; 4], coordinates: [usize; 2]| {
        let (shape, planes, base) = ([1, 1, 1, 4], vec![1, 1], 100.0);
        let (sections, coordinates) = (interface::Sections::Anew, coordinates.to_vec());
        let case = interface::AxialCase { shape, planes, sections, base, coordinates, x: x.to_vec() };
        rotations.axial(&case)
    };
    let score = |a, b| Ok::<f32, String>(dot(&axial(&q, a)?, &axial(&k, b)?));
    same("rows moved", score([3, 1], [1, 2])?, score([8, 1], [6, 2])?)?;
    same("columns moved", score([3, 1], [1, 2])?, score([3, 5], [1, 6])?)?;
    for (x, y) in axial(&q, [0, 0])?.iter().zip(&q) {
        same("the origin", *x, *y)?;
    }
    let turned = axial(&[1.0, 1.0, 0.0, 0.0], [1, 2])?;
    for (x, y) in turned.iter().zip([1f32.cos(), 2f32.cos(), 1f32.sin(), 2f32.sin()]) {
        same("row 1, column 2", *x, y)?;
    }

    // Linear attention: the offset is in no distance, and a cut changes nothing.
    let list = |step: usize| (0..12).map(|i| ((i * step % 7) as f32 - 3.0) / 2.0).collect();
    let case = |offset| interface::LinearCase {
        shape: [1, 3, 1, 4],
        base: Some(100.0),
        offset,
        q: list(3),
        k: list(2),
        v: list(5),
    };
    let near = rotations.linear(&case(0))?;
    let far = rotations.linear(&case(60))?;
    let whole = rotations.running(&case(9), &[3])?;
    let cut = rotations.running(&case(9), &[2, 1])?;
    for (i, near) in near.iter().enumerate() {
        same("linear attention, moved by 60", *near, far[i])?;
        same("a state that runs", *near, whole[i])?;
        same("a text that is cut", *near, cut[i])?;
    }
    Ok(())
    // task rotations/relative: end
}
