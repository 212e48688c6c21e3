//! Rotations of other kinds: with a decay, by several coordinates, and in attention without a softmax.

use crate::laws::widen;
use crate::oracle::{Loops, Oracle};
use crate::rotations::interface::*;
use std::rc::Rc;

/// What linear attention is computed from, `[b, s, nh, hd]` each.
#[derive(Debug, Clone)]
pub struct Features {
    /// The shape of all.
    pub shape: [usize; 4],
    /// Queries of the numerator.
    pub turned_q: Vec<f64>,
    /// Keys of the numerator.
    pub turned_k: Vec<f64>,
    /// Queries of the denominator.
    pub q: Vec<f64>,
    /// Keys of the denominator.
    pub k: Vec<f64>,
    /// Values.
    pub v: Vec<f64>,
}

impl Features {
    /// Where the head of this token begins.
    pub fn at(&self, [b, t, n]: [usize; 3]) -> usize {
        let [_, s, heads, hd] = self.shape;
        ((b * s + t) * heads + n) * hd
    }

    /// The head of this token, of one of the lists.
    pub fn head<'f>(&self, list: &'f [f64], token: [usize; 3]) -> &'f [f64] {
        &list[self.at(token)..][..self.shape[3]]
    }
}

/// Linear attention, forward and backward.
#[derive(Debug, Clone, Default)]
pub struct LinearPasses {
    /// `[b, s, nh, hd]`.
    pub y: Vec<f64>,
    /// `[b, s, nh, hd]`.
    pub dq: Vec<f64>,
    /// `[b, s, nh, hd]`.
    pub dk: Vec<f64>,
    /// `[b, s, nh, hd]`.
    pub dv: Vec<f64>,
}

/// What linear attention carries from token to token, for one head.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The sum of turned keys times values, `[hd, hd]`.
    pub sums: Vec<f64>,
    /// The sum of keys, `[hd]`.
    pub total: Vec<f64>,
}

/// Any loops as a trait object. What goes over many steps is written for these, below the trait, so that
/// it is compiled once and not once a bug.
pub trait AsRotationsLoops {
    /// Itself.
    fn as_loops(&self) -> &dyn RotationsLoops;
}

impl<L: RotationsLoops> AsRotationsLoops for L {
    fn as_loops(&self) -> &dyn RotationsLoops {
        self
    }
}

/// The inner product.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The steps of all of them. A bug writes one of them wrong.
pub trait RotationsLoops: AsRotationsLoops {
    // --- a plane ----------------------------------------------------------------------------

    /// Frequency `i` of a list of so many planes, in radians for each position.
    fn theta(&self, i: usize, planes: usize, base: f64) -> f64 {
        base.powf(-(i as f64) / planes as f64)
    }

    /// The two dimensions of plane `i`.
    fn pair(&self, i: usize, hd: usize) -> [usize; 2] {
        [i, i + hd / 2]
    }

    /// Two dimensions turned by an angle.
    fn turn(&self, [x, y]: [f64; 2], angle: f64) -> [f64; 2] {
        let (sin, cos) = angle.sin_cos();
        [x * cos - y * sin, y * cos + x * sin]
    }

    // --- xPos -------------------------------------------------------------------------------

    /// The position of a row, for the angles.
    fn xpos_position(&self, case: &XPosCase, row: usize) -> f64 {
        (case.offset + row) as f64
    }

    /// How far plane `i` has come, from 0 to nearly 1.
    fn share(&self, i: usize, hd: usize) -> f64 {
        2.0 * i as f64 / hd as f64
    }

    /// The scale of plane `i`.
    fn zeta(&self, i: usize, hd: usize) -> f64 {
        (self.share(i, hd) + 0.4) / 1.4
    }

    /// The position of a row, for the scales: counted from the center.
    fn scale_position(&self, case: &XPosCase, row: usize) -> f64 {
        (case.offset + row) as f64 - case.center as f64
    }

    /// The exponent of the scales.
    fn exponent(&self, case: &XPosCase, row: usize) -> f64 {
        self.scale_position(case, row) / case.scale_base
    }

    /// What a query is multiplied by.
    fn query_scale(&self, zeta: f64, exponent: f64) -> f64 {
        zeta.powf(exponent)
    }

    /// What a key is multiplied by.
    fn key_scale(&self, zeta: f64, exponent: f64) -> f64 {
        zeta.powf(-exponent)
    }

    /// The plane whose scale the dimensions of plane `i` get.
    fn scaled_as(&self, i: usize, _side: usize, _hd: usize) -> usize {
        i
    }

    /// `q` and `k`, turned and scaled.
    fn xpos(&self, case: &XPosCase) -> [Vec<f64>; 2] {
        xpos(self.as_loops(), case)
    }

    // --- several coordinates ----------------------------------------------------------------

    /// The coordinate that turns this plane.
    fn axis(&self, case: &AxialCase, plane: usize) -> usize {
        section(case, plane)[0]
    }

    /// The frequency of this plane.
    fn frequency(&self, case: &AxialCase, plane: usize) -> f64 {
        let [axis, place] = section(case, plane);
        match case.sections {
            Sections::Anew => self.theta(place, case.planes[axis], case.base),
            Sections::OneList => self.theta(plane, case.shape[3] / 2, case.base),
        }
    }

    /// A coordinate of a token.
    fn coordinate(&self, case: &AxialCase, row: usize, axis: usize) -> f64 {
        case.coordinates[row * case.planes.len() + axis] as f64
    }

    /// How far a plane of a token has turned.
    fn axial_angle(&self, case: &AxialCase, row: usize, plane: usize) -> f64 {
        self.coordinate(case, row, self.axis(case, plane)) * self.frequency(case, plane)
    }

    /// The two dimensions of a plane.
    fn axial_pair(&self, case: &AxialCase, plane: usize) -> [usize; 2] {
        self.pair(plane, case.shape[3])
    }

    /// The gradient of two dimensions: turned back.
    fn turn_back(&self, dy: [f64; 2], angle: f64) -> [f64; 2] {
        self.turn(dy, -angle)
    }

    /// `y`, `[b, s, nh, hd]`.
    fn axial(&self, case: &AxialCase) -> Vec<f64> {
        axial(self.as_loops(), case, &case.x, false)
    }

    /// `dx`, `[b, s, nh, hd]`.
    fn axial_backward(&self, case: &AxialCase, dy: &[f32]) -> Vec<f64> {
        axial(self.as_loops(), case, dy, true)
    }

    // --- linear attention -------------------------------------------------------------------

    /// The feature of one element: positive.
    fn phi(&self, x: f64) -> f64 {
        if x > 0.0 { x + 1.0 } else { x.exp() }
    }

    /// Its slope.
    fn slope(&self, x: f64) -> f64 {
        if x > 0.0 { 1.0 } else { x.exp() }
    }

    /// The position of a row.
    fn linear_position(&self, case: &LinearCase, row: usize) -> usize {
        case.offset + row
    }

    /// A head turned by its position.
    fn turned(&self, case: &LinearCase, head: &[f64], position: f64) -> Vec<f64> {
        turned(self.as_loops(), case, head, position)
    }

    /// The features of the numerator, for a head of `q` or of `k`.
    fn in_numerator(&self, case: &LinearCase, head: &[f64], position: usize) -> Vec<f64> {
        let features: Vec<f64> = head.iter().map(|x| self.phi(*x)).collect();
        self.turned(case, &features, position as f64)
    }

    /// Those of the denominator.
    fn in_denominator(&self, _: &LinearCase, head: &[f64], _position: usize) -> Vec<f64> {
        head.iter().map(|x| self.phi(*x)).collect()
    }

    /// Whether query `m` sees key `n`.
    fn sees(&self, m: usize, n: usize) -> bool {
        n <= m
    }

    /// The denominator of a token's head.
    fn denominator(&self, features: &Features, [b, m, head]: [usize; 3]) -> f64 {
        let q = features.head(&features.q, [b, m, head]);
        let seen = (0..features.shape[1]).filter(|n| self.sees(m, *n));
        seen.map(|n| dot(q, features.head(&features.k, [b, n, head]))).sum()
    }

    /// An element of the result, of the token in row `m`.
    fn quotient(&self, numerator: f64, denominator: f64, _m: usize) -> f64 {
        numerator / denominator
    }

    /// The gradient of the denominator, from `dy . y`.
    fn ddenominator(&self, along: f64, denominator: f64) -> f64 {
        -along / denominator
    }

    /// What reaches a key's features through the denominators: this, for each query that sees it.
    fn dkey(&self, ddenominator: f64, q: f64) -> f64 {
        ddenominator * q
    }

    /// Both passes. Without a `dy` there is no way back.
    fn linear(&self, case: &LinearCase, dy: &[f32]) -> LinearPasses {
        linear(self.as_loops(), case, dy)
    }

    // --- the same as a state that runs ------------------------------------------------------

    /// The position of row `t` of a piece that begins with row `start`.
    fn running_position(&self, case: &LinearCase, start: usize, t: usize) -> usize {
        case.offset + start + t
    }

    /// Which state a head has.
    fn state_of(&self, b: usize, head: usize, heads: usize) -> usize {
        b * heads + head
    }

    /// What a piece does to a state before its first token: nothing.
    fn begin_piece(&self, _state: &mut State) {}

    /// What it does after its last token, of so many: nothing.
    fn end_piece(&self, _state: &mut State, _before_last: &State) {}

    /// A token's key and value go in.
    fn take_in(&self, state: &mut State, [turned_k, k, v]: [&[f64]; 3]) {
        let hd = v.len();
        for i in 0..hd {
            state.total[i] += k[i];
            (0..hd).for_each(|j| state.sums[i * hd + j] += turned_k[i] * v[j]);
        }
    }

    /// What its query reads.
    fn read(&self, state: &State, turned_q: &[f64], q: &[f64]) -> Vec<f64> {
        let hd = q.len();
        let denominator = dot(q, &state.total);
        let numerator = |j: usize| (0..hd).map(|i| turned_q[i] * state.sums[i * hd + j]).sum();
        (0..hd).map(|j| self.quotient(numerator(j), denominator, 0)).collect()
    }

    /// A token: it goes in, and then it reads.
    fn token(&self, state: &mut State, [turned_q, q]: [&[f64]; 2], keys: [&[f64]; 3]) -> Vec<f64> {
        self.take_in(state, keys);
        self.read(state, turned_q, q)
    }

    /// `y`, `[b, s, nh, hd]`, piece after piece.
    fn running(&self, case: &LinearCase, pieces: &[usize]) -> Vec<f64> {
        running(self.as_loops(), case, pieces)
    }
}

impl RotationsLoops for Oracle {}

/// The section of a plane, and its place in it.
pub fn section(case: &AxialCase, plane: usize) -> [usize; 2] {
    let mut place = plane;
    for (axis, &planes) in case.planes.iter().enumerate() {
        if place < planes {
            return [axis, place];
        }
        place -= planes;
    }
    panic!("the sections {:?} have no plane {plane}", case.planes)
}

#[inline(never)]
fn xpos(loops: &dyn RotationsLoops, case: &XPosCase) -> [Vec<f64>; 2] {
    let [_, s, n, hd] = case.shape;
    let one = |x: &[f32], scale: &dyn Fn(f64, f64) -> f64| {
        let mut y = vec![0.0; x.len()];
        for (token, (x, y)) in x.chunks(hd).zip(y.chunks_mut(hd)).enumerate() {
            let row = token / n % s;
            let exponent = loops.exponent(case, row);
            for i in 0..hd / 2 {
                let pair = loops.pair(i, hd);
                let angle = loops.xpos_position(case, row) * loops.theta(i, hd / 2, case.base);
                let turned = loops.turn(pair.map(|at| f64::from(x[at])), angle);
                for side in 0..2 {
                    let zeta = loops.zeta(loops.scaled_as(i, side, hd), hd);
                    y[pair[side]] = turned[side] * scale(zeta, exponent);
                }
            }
        }
        y
    };
    let q = one(&case.q, &|zeta, exponent| loops.query_scale(zeta, exponent));
    [q, one(&case.k, &|zeta, exponent| loops.key_scale(zeta, exponent))]
}

#[inline(never)]
fn axial(loops: &dyn RotationsLoops, case: &AxialCase, x: &[f32], back: bool) -> Vec<f64> {
    let [_, s, n, hd] = case.shape;
    let angles: Vec<f64> =
        (0..s * (hd / 2)).map(|at| loops.axial_angle(case, at / (hd / 2), at % (hd / 2))).collect();
    let mut y = vec![0.0; x.len()];
    for (token, (x, y)) in x.chunks(hd).zip(y.chunks_mut(hd)).enumerate() {
        let row = token / n % s;
        for i in 0..hd / 2 {
            let pair = loops.axial_pair(case, i);
            let (of, angle) = (pair.map(|at| f64::from(x[at])), angles[row * (hd / 2) + i]);
            let [a, b] = if back { loops.turn_back(of, angle) } else { loops.turn(of, angle) };
            (y[pair[0]], y[pair[1]]) = (a, b);
        }
    }
    y
}

#[inline(never)]
fn turned(loops: &dyn RotationsLoops, case: &LinearCase, head: &[f64], position: f64) -> Vec<f64> {
    let Some(base) = case.base else { return head.to_vec() };
    let hd = head.len();
    let mut y = vec![0.0; hd];
    for i in 0..hd / 2 {
        let pair = loops.pair(i, hd);
        let angle = position * loops.theta(i, hd / 2, base);
        let [a, b] = loops.turn(pair.map(|at| head[at]), angle);
        (y[pair[0]], y[pair[1]]) = (a, b);
    }
    y
}

/// The features of all tokens, at these positions.
fn features(
    loops: &dyn RotationsLoops,
    case: &LinearCase,
    position: &dyn Fn(usize) -> usize,
) -> Features {
    let [_, s, n, hd] = case.shape;
    let of = |list: &[f32], feature: &dyn Fn(&[f64], usize) -> Vec<f64>| -> Vec<f64> {
        let heads = widen(list);
        let heads = heads.chunks(hd).enumerate();
        heads.flat_map(|(token, head)| feature(head, position(token / n % s))).collect()
    };
    let turned: &dyn Fn(&[f64], usize) -> Vec<f64> = &|head, at| loops.in_numerator(case, head, at);
    let plain: &dyn Fn(&[f64], usize) -> Vec<f64> =
        &|head, at| loops.in_denominator(case, head, at);
    Features {
        shape: case.shape,
        turned_q: of(&case.q, turned),
        turned_k: of(&case.k, turned),
        q: of(&case.q, plain),
        k: of(&case.k, plain),
        v: widen(&case.v),
    }
}

#[inline(never)]
fn linear(loops: &dyn RotationsLoops, case: &LinearCase, dy: &[f32]) -> LinearPasses {
    let [b, s, n, hd] = case.shape;
    let position = |row: usize| loops.linear_position(case, row);
    let f = features(loops, case, &position);
    let size = f.v.len();
    let (mut y, mut dv) = (vec![0.0; size], vec![0.0; size]);
    let zero = || vec![0.0; size];
    let [mut dturned_q, mut dturned_k, mut dq, mut dk] = [zero(), zero(), zero(), zero()];
    let dy = widen(dy);
    let tokens = (0..b).flat_map(|b| (0..n).flat_map(move |h| (0..s).map(move |m| [b, m, h])));
    for token @ [b, m, h] in tokens {
        let at = f.at(token);
        let denominator = loops.denominator(&f, token);
        let turned_q = f.head(&f.turned_q, token);
        let keys: Vec<usize> =
            (0..s).filter(|n| loops.sees(m, *n)).map(|n| f.at([b, n, h])).collect();
        let weight = |key: usize| dot(turned_q, &f.turned_k[key..][..hd]);
        let weights: Vec<f64> = keys.iter().map(|key| weight(*key)).collect();
        for j in 0..hd {
            let numerator = keys.iter().zip(&weights).map(|(key, w)| w * f.v[key + j]).sum();
            y[at + j] = loops.quotient(numerator, denominator, m);
        }
        if dy.is_empty() {
            continue;
        }
        let dnumerator: Vec<f64> = dy[at..][..hd].iter().map(|dy| dy / denominator).collect();
        let along = dot(&dy[at..][..hd], &y[at..][..hd]);
        let ddenominator = loops.ddenominator(along, denominator);
        for (key, weight) in keys.iter().zip(&weights) {
            let dweight = dot(&dnumerator, &f.v[*key..][..hd]);
            for j in 0..hd {
                dv[key + j] += weight * dnumerator[j];
                dturned_q[at + j] += dweight * f.turned_k[key + j];
                dturned_k[key + j] += dweight * turned_q[j];
                dq[at + j] += ddenominator * f.k[key + j];
                dk[key + j] += loops.dkey(ddenominator, f.q[at + j]);
            }
        }
    }
    // Through the rotation, which is turned back, and through phi.
    let through = |list: &[f32], dturned: &[f64], dplain: &[f64]| -> Vec<f64> {
        let heads = dturned.chunks(hd).enumerate();
        let back = heads
            .flat_map(|(token, head)| loops.turned(case, head, -(position(token / n % s) as f64)));
        let both = back.zip(dplain).zip(list);
        both.map(|((turned, plain), x)| (turned + plain) * loops.slope(f64::from(*x))).collect()
    };
    if dy.is_empty() {
        return LinearPasses { y, ..LinearPasses::default() };
    }
    let dq = through(&case.q, &dturned_q, &dq);
    LinearPasses { y, dq, dk: through(&case.k, &dturned_k, &dk), dv }
}

#[inline(never)]
fn running(loops: &dyn RotationsLoops, case: &LinearCase, pieces: &[usize]) -> Vec<f64> {
    let [batch, _, n, hd] = case.shape;
    // For each row the position that its piece gives it.
    let mut positions = Vec::new();
    for &piece in pieces {
        let start = positions.len();
        positions.extend((0..piece).map(|t| loops.running_position(case, start, t)));
    }
    let f = features(loops, case, &|row| positions[row]);
    let empty = State { sums: vec![0.0; hd * hd], total: vec![0.0; hd] };
    let mut states = vec![empty; batch * n];
    let mut y = vec![0.0; f.v.len()];
    let mut start = 0;
    for &piece in pieces {
        states.iter_mut().for_each(|state| loops.begin_piece(state));
        for (b, h) in (0..batch).flat_map(|b| (0..n).map(move |h| (b, h))) {
            let state = &mut states[loops.state_of(b, h, n)];
            let mut before_last = state.clone();
            for t in start..start + piece {
                before_last.clone_from(state);
                let token = [b, t, h];
                let [turned_q, q] = [&f.turned_q, &f.q].map(|list| f.head(list, token));
                let keys = [&f.turned_k, &f.k, &f.v].map(|list| f.head(list, token));
                let read = loops.token(state, [turned_q, q], keys);
                y[f.at(token)..][..hd].copy_from_slice(&read);
            }
            loops.end_piece(state, &before_last);
        }
        start += piece;
    }
    y
}

/// The implementation of some loops.
pub fn implementation(loops: impl RotationsLoops + 'static) -> Box<dyn Rotations> {
    Box::new(Loops::<dyn RotationsLoops>(Rc::new(loops)))
}

fn rounded(values: Vec<f64>) -> Vec<f32> {
    values.into_iter().map(|value| value as f32).collect()
}

impl Rotations for Loops<dyn RotationsLoops> {
    fn xpos_in(&self, _: Manner, case: &XPosCase) -> Reply<TurnedPair> {
        let [q, k] = self.0.xpos(case).map(rounded);
        Ok(TurnedPair { q, k })
    }

    fn axial_in(&self, _: Manner, case: &AxialCase) -> Reply<Vec<f32>> {
        Ok(rounded(self.0.axial(case)))
    }

    fn axial_backward_in(&self, _: Manner, case: &AxialCase, dy: &[f32]) -> Reply<Vec<f32>> {
        Ok(rounded(self.0.axial_backward(case, dy)))
    }

    fn linear_in(&self, _: Manner, case: &LinearCase) -> Reply<Vec<f32>> {
        Ok(rounded(self.0.linear(case, &[]).y))
    }

    fn linear_backward_in(&self, _: Manner, case: &LinearCase, dy: &[f32]) -> Reply<LinearGrads> {
        let LinearPasses { dq, dk, dv, .. } = self.0.linear(case, dy);
        Ok(LinearGrads { dq: rounded(dq), dk: rounded(dk), dv: rounded(dv) })
    }

    fn running(&self, case: &LinearCase, pieces: &[usize]) -> Reply<Vec<f32>> {
        Ok(rounded(self.0.running(case, pieces)))
    }
}
