//! The rotation by given frequencies, and its gradients.

use super::Any;
use crate::category::Category;
use crate::component::{NET, law};
use crate::describe::List;
use crate::frequencies::interface::*;
use crate::frequencies::oracle::StretchedRopeLoops;
use crate::frequencies::tolerance::{THETA_WHY, TURN_WHY, of_dtheta, of_turn};
use crate::graded_cases::judge::judge_graded_cases;
use crate::laws::{U, values, widen};
use crate::oracle::Oracle;
use crate::run::Run;
use crate::violation::*;
use proptest::prelude::*;
use std::fmt;

/// One graded case.
pub(in crate::frequencies) type Asked = crate::graded_cases::Asked<StretchedRopeCase>;

// --- inputs ---------------------------------------------------------------------------------

/// A call, and a gradient of the loss with respect to its result.
#[derive(Debug, Clone)]
struct Input {
    case: StretchedRopeCase,
    dy: Vec<f32>,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, dy } = self;
        write!(f, "{case}\ndy = {}", List(dy))
    }
}

/// Small heads, all or a part of which turns, at the first hundred positions; frequencies up to 1 that are numbers of `f32`.
fn inputs(whole: bool) -> impl Strategy<Value = Input> {
    let sizes = (1..=2usize, 1..=3usize, 1..=2usize, prop::sample::select(vec![4usize, 6, 8]));
    (sizes, 2..=4usize, 0..100usize).prop_flat_map(move |((b, s, nh, hd), planes, offset)| {
        let planes = if whole { hd / 2 } else { planes.min(hd / 2) };
        let scale = 1.0..1.5f64;
        let theta = prop::collection::vec(0.001f32..1.0, planes);
        let n = b * s * nh * hd;
        (theta, scale, values(n), values(n)).prop_map(move |(theta, scale, x, dy)| Input {
            case: StretchedRopeCase {
                shape: [b, s, nh, hd],
                offset,
                frequencies: widen(&theta),
                scale,
                x,
            },
            dy,
        })
    })
}

/// Sizes that all differ, uneven values of both signs, frequencies that differ much.
fn witness(planes: usize, hd: usize, offset: usize, scale: f64) -> StretchedRopeCase {
    let shape = [2, 3, 5, hd];
    let n = shape.iter().product::<usize>();
    let x = (0..n).map(|i| ((i * 37 + 11) % 64) as f32 / 16.0 - 1.96875).collect();
    let frequencies = (0..planes).map(|i| 0.75 * 0.25f64.powi(i as i32)).collect();
    StretchedRopeCase { shape, offset, frequencies, scale, x }
}

/// One head of one token.
fn single(position: usize, theta: f64, x: [f32; 4], scale: f64) -> StretchedRopeCase {
    let frequencies = vec![theta, 0.125];
    StretchedRopeCase { shape: [1, 1, 1, 4], offset: position, frequencies, scale, x: x.to_vec() }
}

// --- asking ---------------------------------------------------------------------------------

fn forward(rope: &Any, case: &StretchedRopeCase) -> Step<Vec<f32>> {
    let y = answer("forward", || rope.forward(case)).map_err(|violation| violation.on(case))?;
    let length = Fault::Length { shape: case.shape.to_vec(), got: y.len() };
    if y.len() == case.x.len() { Ok(y) } else { Err(Violation::new("forward", length).on(case)) }
}

fn backward(rope: &Any, case: &StretchedRopeCase, dy: &[f32]) -> Step<StretchedRopeGrads> {
    let on =
        |violation: Box<Violation>| violation.on(Input { case: case.clone(), dy: dy.to_vec() });
    let grads = answer("backward", || rope.backward(case, dy)).map_err(on)?;
    if grads.dx.len() == dy.len() {
        return Ok(grads);
    }
    let fault = Fault::Length { shape: case.shape.to_vec(), got: grads.dx.len() };
    Err(on(Violation::new("backward (dx)", fault)))
}

/// `dtheta`, as long as it must be.
fn dtheta(rope: &Any, case: &StretchedRopeCase, dy: &[f32]) -> Step<Vec<f32>> {
    let got = backward(rope, case, dy)?.dtheta;
    let planes = case.frequencies.len();
    let fault = Fault::Length { shape: vec![planes], got: got.len() };
    if got.len() == planes {
        Ok(got)
    } else {
        Err(Violation::new("backward (dtheta)", fault).on(case))
    }
}

/// `y` must be what the loops give.
pub(in crate::frequencies) fn matches_y(rope: &Any, asked: &Asked) -> Step {
    answers_y(rope, asked, &asked.case)
}

/// What is asked must be answered as `other` should be.
pub(in crate::frequencies) fn answers_y(
    rope: &Any,
    asked: &Asked,
    other: &StretchedRopeCase,
) -> Step {
    let Asked { manner, case, .. } = asked;
    let (expected, off) = (Oracle.forward(other), of_turn(other, &case.x));
    answer("forward", || rope.forward_in(*manner, case))
        .and_then(|y| within("forward", &case.shape, &y, &expected, |i| off[i], TURN_WHY))
        .map_err(|violation| violation.on(asked))
}

/// And so must `dx`.
pub(in crate::frequencies) fn matches_dx(rope: &Any, asked: &Asked) -> Step {
    answers_dx(rope, asked, &asked.case)
}

/// The same for `dx`.
pub(in crate::frequencies) fn answers_dx(
    rope: &Any,
    asked: &Asked,
    other: &StretchedRopeCase,
) -> Step {
    let Asked { manner, case, dy } = asked;
    let (expected, off) = (Oracle.backward(other, dy).0, of_turn(other, dy));
    answer("backward (dx)", || rope.backward_in(*manner, case, dy))
        .and_then(|StretchedRopeGrads { dx, .. }| {
            within("backward (dx)", &case.shape, &dx, &expected, |i| off[i], TURN_WHY)
        })
        .map_err(|violation| violation.on(asked))
}

/// And so must `dtheta`.
pub(in crate::frequencies) fn matches_dtheta(rope: &Any, asked: &Asked) -> Step {
    let Asked { manner, case, dy } = asked;
    let (expected, off) = (Oracle.backward(case, dy).1, of_dtheta(case, dy));
    let shape = [expected.len()];
    answer("backward (dtheta)", || rope.backward_in(*manner, case, dy))
        .and_then(|StretchedRopeGrads { dtheta, .. }| {
            within("backward (dtheta)", &shape, &dtheta, &expected, |i| off[i], THETA_WHY)
        })
        .map_err(|violation| violation.on(asked))
}

// --- forward --------------------------------------------------------------------------------

/// At position 1, a 1 in the first element becomes the cosine and the sine of the first frequency, times the scale.
#[law("frequencies/turn-first-step", see = "frequencies#turning", about = Rotation, points = 2,
    formula = "e₀  ↦  scale·(cos θ₀·e₀ + sin θ₀·eₕ), h = d/2",
    stays = "By numbers: it tells which way a plane turns, and which two elements it has.")]
pub(super) fn turn_first_step(rope: &Any, _: &Run) -> Verdict {
    for (theta, scale) in [(1.0, 1.0), (0.5, 1.25)] {
        let case = single(1, theta, [1.0, 0.0, 0.0, 0.0], scale);
        let expected = [scale * f64::cos(theta), 0.0, scale * f64::sin(theta), 0.0];
        let off = of_turn(&case, &case.x);
        within("forward", &case.shape, &forward(rope, &case)?, &expected, |i| off[i], TURN_WHY)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// Which elements of a head come after the part that turns.
fn behind(case: &StretchedRopeCase, values: &[f32]) -> Vec<f32> {
    let (planes, hd) = (case.frequencies.len(), case.shape[3]);
    values.chunks(hd).flat_map(|head| &head[2 * planes..]).copied().collect()
}

/// The elements after the part that turns stay as they are, bit for bit.
#[law("frequencies/rest-of-a-head-stays", see = "frequencies#turning", about = Rotation, points = 2,
    formula = "j ≥ d  ⇒  yⱼ = xⱼ",
    stays = "It is exact: what stays may not even be rounded.")]
pub(super) fn rest_of_a_head_stays(rope: &Any, _: &Run) -> Verdict {
    for (planes, hd) in [(2, 6), (2, 8), (3, 8)] {
        let mut case = witness(planes, hd, 7, 1.25);
        case.x[hd - 1] = f32::NAN; // it stays where it is
        let [b, s, nh, hd] = case.shape;
        let (got, expected) = (behind(&case, &forward(rope, &case)?), behind(&case, &case.x));
        let shape = [b, s, nh, hd - 2 * planes];
        same_values("forward", &shape, &got, &expected, "x after the part that turns")
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// The part that turns does so as a head of its size would.
#[law("frequencies/part-turns-as-a-small-head", see = "frequencies#turning", about = Rotation, points = 1,
    formula = "y[..d] = turn(x[..d])",
    stays = "It needs no cosine: a head is compared with a smaller one.")]
pub(super) fn part_turns_as_a_small_head(rope: &Any, _: &Run) -> Verdict {
    for (planes, hd) in [(2, 6), (2, 8), (3, 8)] {
        let case = witness(planes, hd, 7, 1.25);
        let first = |values: &[f32]| -> Vec<f32> {
            values.chunks(hd).flat_map(|head| &head[..2 * planes]).copied().collect()
        };
        let [b, s, nh, _] = case.shape;
        let shape = [b, s, nh, 2 * planes];
        let small = StretchedRopeCase { shape, x: first(&case.x), ..case.clone() };
        let (got, expected) = (first(&forward(rope, &case)?), widen(&forward(rope, &small)?));
        let off = of_turn(&small, &small.x);
        let why = format!("what a head of that size becomes; both may be off. {TURN_WHY}");
        within("forward", &shape, &got, &expected, |i| 2.0 * off[i], &why)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// Lengths of all pairs, plane by plane.
fn lengths(case: &StretchedRopeCase, values: &[f32]) -> Vec<f64> {
    let (planes, hd) = (case.frequencies.len(), case.shape[3]);
    let of_head = |head: &[f32]| -> Vec<f64> {
        (0..planes).map(|i| f64::from(head[i]).hypot(f64::from(head[i + planes]))).collect()
    };
    values.chunks(hd).flat_map(of_head).collect()
}

/// A turn multiplies the length of each pair by the scale, and changes it in no other way.
#[law("frequencies/length-times-scale", see = "frequencies#turning", about = Rotation, points = 2,
    formula = "|(y₀, y₁)| = scale·|(x₀, x₁)|",
    stays = "It needs no angle, so it tells the scale from the turn.")]
pub(super) fn length_times_scale(rope: &Any, run: &Run) -> Verdict {
    run.forall(inputs(false), |Input { case, .. }| {
        let expected: Vec<f64> = lengths(case, &case.x).iter().map(|x| case.scale * x).collect();
        let got = lengths(case, &forward(rope, case)?);
        let [b, s, nh, _] = case.shape;
        // Each value of a pair is off by 6 roundings of |a| + |b|, which is √2 lengths at most; a wrong angle changes no length.
        let why = "scale times the length before: 6·2⁻²⁴ of |a| + |b| in each of two values, so 12·2⁻²⁴ of the length";
        let tolerance = |i: usize| 12.0 * U * expected[i];
        within_f64("forward", &[b, s, nh, case.frequencies.len()], &got, &expected, tolerance, why)
    })?;
    Ok(None)
}

/// The inner product of two heads.
fn score(q: &[f32], k: &[f32]) -> f64 {
    q.iter().zip(k).map(|(&q, &k)| f64::from(q) * f64::from(k)).sum()
}

/// The score of a query and a key depends on their distance alone, whatever the frequencies are.
#[law("frequencies/scores-by-distance", see = "frequencies#turning", about = Offset, points = 2,
    formula = "⟨R(m + a)q, R(n + a)k⟩ = ⟨R(m)q, R(n)k⟩",
    stays = "It is what RoPE is for, and it knows neither cosines nor frequencies.")]
pub(super) fn scores_by_distance(rope: &Any, run: &Run) -> Verdict {
    run.forall(inputs(false), |Input { case, dy: k }| {
        let hd = case.shape[3];
        let head = |x: &[f32], offset: usize| StretchedRopeCase {
            shape: [1, 1, 1, hd],
            offset,
            x: x[..hd].to_vec(),
            ..case.clone()
        };
        let (near, far) = (case.offset % 7, 40 + case.offset);
        let at = |distance: usize, offset: usize| -> Step<(f64, f64)> {
            let (q, k) = (head(&case.x, offset + distance), head(k, offset));
            let (turned_q, turned_k) = (forward(rope, &q)?, forward(rope, &k)?);
            let product = |(a, b): (f64, &f32)| a * f64::from(b.abs());
            let off = of_turn(&q, &q.x).into_iter().zip(&turned_k).map(product).sum::<f64>()
                + of_turn(&k, &k.x).into_iter().zip(&turned_q).map(product).sum::<f64>();
            Ok((score(&turned_q, &turned_k), 2.0 * off))
        };
        for distance in [0, 1, 5] {
            let ((expected, off), (got, far_off)) = (at(distance, near)?, at(distance, far)?);
            let why = format!(
                "the score at distance {distance}, from position {near} and from {far}. {TURN_WHY}, times the other vector"
            );
            within_f64("forward", &[1], &[got], &[expected], |_| off + far_off, &why)?;
        }
        Ok(())
    })?;
    Ok(None)
}

/// A text in pieces, each with its offset, is turned as the whole text is.
#[law("frequencies/pieces-are-the-whole", see = "frequencies#turning", about = Offset, points = 2,
    formula = "turn(x[t..], offset t) = turn(x, offset 0)[t..]",
    stays = "It is what a cache of keys needs, and compares an implementation with itself.")]
pub(super) fn pieces_are_the_whole(rope: &Any, _: &Run) -> Verdict {
    for offset in [0, 60] {
        let whole = witness(2, 6, offset, 1.25);
        let [b, s, nh, hd] = whole.shape;
        let y = forward(rope, &whole)?;
        let off = of_turn(&whole, &whole.x);
        let row = nh * hd;
        for t in 0..s {
            let of_row =
                |at: usize| (0..b).flat_map(move |i| (i * s + at) * row..(i * s + at + 1) * row);
            let x = of_row(t).map(|i| whole.x[i]).collect();
            let piece =
                StretchedRopeCase { shape: [b, 1, nh, hd], offset: offset + t, x, ..whole.clone() };
            let got = forward(rope, &piece)?;
            let expected: Vec<f64> = of_row(t).map(|i| f64::from(y[i])).collect();
            let off: Vec<f64> = of_row(t).map(|i| off[i]).collect();
            let why = format!("row {t} of the whole text; both may be off. {TURN_WHY}");
            within("forward", &piece.shape, &got, &expected, |i| 2.0 * off[i], &why)
                .map_err(|violation| violation.on(&piece))?;
        }
    }
    Ok(None)
}

/// On any input, the turned values are what plain f64 loops give.
#[law("frequencies/forward-any", see = "frequencies#turning", about = Rotation, points = 3,
    formula = "y = scale·R(m·θ)·x", stays = NET)]
pub(super) fn forward_any(rope: &Any, run: &Run) -> Verdict {
    judge_graded_cases(rope, run, "forward")?;
    angles_far_out("forward", |case| forward(rope, case), |case| Oracle.forward(case))
}

/// A frequency that `f32` holds, and whose angles it does not.
const THETA: f64 = 0.7f32 as f64;

/// Says by how much angles in `f32` are off, which may be: transformers has them. An implementation with angles in
/// `f64` at position a million has them everywhere. A 1 is turned: its cosine and its sine are rounded once, and
/// multiplied.
fn angles_far_out(
    call: &str,
    turned: impl Fn(&StretchedRopeCase) -> Step<Vec<f32>>,
    right: fn(&StretchedRopeCase) -> Vec<f64>,
) -> Verdict {
    for position in [1_000_003, (1 << 24) + 1, (1 << 32) + 1] {
        let case = single(position, THETA, [1.0, 0.0, 0.0, 0.0], 1.0);
        let apart = |(got, right): (&f32, &f64)| (f64::from(*got) - right).abs();
        let off = turned(&case)?.iter().zip(&right(&case)).map(apart).fold(0.0, f64::max);
        let may = 4.0 * U + 2.0 * position as f64 * f64::EPSILON;
        if off > may && position < 1 << 24 {
            let told = format!("angles built in f32: off by {off:.1e} at position {position}");
            return Ok(Some(format!("{told}; f64 angles give 6e-8")));
        }
        holds(call, off <= may, || format!("off by {off:.1e}, where f64 angles give {may:.1e}"))
            .map_err(|violation| violation.at(Category::Precision).on(&case))?;
    }
    Ok(None)
}

// --- backward -------------------------------------------------------------------------------

/// The backward pass is the transpose of the forward pass.
#[law("frequencies/gradient-turns-back", see = "frequencies#gradient", about = Gradient, points = 2,
    formula = "Σ dy·y = Σ dx·x")]
pub(super) fn gradient_turns_back(rope: &Any, run: &Run) -> Verdict {
    run.forall(inputs(false), |Input { case, dy }| {
        let dx = widen(&backward(rope, case, dy)?.dx);
        let pairs =
            |a: &[f64], b: &[f32]| -> f64 { a.iter().zip(b).map(|(a, b)| a * f64::from(*b)).sum() };
        // The loops' y. Another task asks for the implementation's own.
        let expected = pairs(&Oracle.forward(case), dy);
        let sizes: Vec<f32> = case.x.iter().map(|x| x.abs()).collect();
        let off = pairs(&of_turn(case, dy), &sizes);
        let why = format!("Σ dy·y, where Σ dx·x is compared. {TURN_WHY}, times |x|");
        let got = [pairs(&dx, &case.x)];
        within_f64("backward (dx)", &[1], &got, &[expected], |_| off, &why)
    })?;
    Ok(None)
}

/// The gradient of a frequency is the position times the cross product of the turned pair and dy.
#[law("frequencies/theta-by-hand", see = "frequencies#gradient", about = Gradient, points = 2,
    formula = "dθ = m·(dy₁·y₀ − dy₀·y₁)",
    stays = "It can be checked by hand.")]
pub(super) fn theta_by_hand(rope: &Any, _: &Run) -> Verdict {
    // x is 2 in the first element, so y is scale · (2 cos, 2 sin), and dy is (0, 1) or (1, 0).
    for (position, theta, scale) in [(1, 0.5, 1.0), (3, 0.25, 1.0), (0, 0.75, 1.0), (3, 0.25, 1.25)]
    {
        let case = single(position, theta, [2.0, 0.0, 0.0, 0.0], scale);
        let (m, angle) = (position as f64, position as f64 * theta);
        for (dy, slope) in [
            ([0.0, 0.0, 1.0, 0.0], 2.0 * scale * m * angle.cos()),
            ([1.0, 0.0, 0.0, 0.0], -2.0 * scale * m * angle.sin()),
        ] {
            let off = of_dtheta(&case, &dy);
            let got = dtheta(rope, &case, &dy)?;
            let expected = [slope, 0.0];
            within("backward (dtheta)", &[2], &got, &expected, |i| off[i], THETA_WHY)
                .map_err(|violation| violation.on(Input { case: case.clone(), dy: dy.to_vec() }))?;
        }
    }
    Ok(None)
}

/// The gradient of a frequency is the sum over all tokens and heads.
#[law("frequencies/theta-adds-up", see = "frequencies#gradient", about = Gradient, points = 2,
    formula = "dθ(x) = Σ dθ(one token, one head)",
    stays = "It compares an implementation with itself, and tells a sum that is not one.")]
pub(super) fn theta_adds_up(rope: &Any, run: &Run) -> Verdict {
    run.forall(inputs(true), |Input { case, dy }| {
        let [_, s, nh, hd] = case.shape;
        let mut expected = vec![0.0; hd / 2];
        let mut off = of_dtheta(case, dy);
        for (head, (x, dy)) in case.x.chunks(hd).zip(dy.chunks(hd)).enumerate() {
            let offset = case.offset + head / nh % s;
            let alone =
                StretchedRopeCase { shape: [1, 1, 1, hd], offset, x: x.to_vec(), ..case.clone() };
            let its_off = of_dtheta(&alone, dy);
            for (i, part) in dtheta(rope, &alone, dy)?.into_iter().enumerate() {
                expected[i] += f64::from(part);
                off[i] += its_off[i];
            }
        }
        let why = format!("the sum over tokens and heads, each asked alone. {THETA_WHY}");
        let got = dtheta(rope, case, dy)?;
        within("backward (dtheta)", &[hd / 2], &got, &expected, |i| off[i], &why)
    })?;
    Ok(None)
}

/// The gradient of a frequency is what a small change of that frequency does to the loss.
#[law("frequencies/theta-differences", see = "frequencies#gradient", about = Gradient, points = 2,
    formula = "dθ ≈ (L(θ + ε) − L(θ − ε)) / 2ε",
    stays = "It knows no formula of the gradient: only the values of the loops.")]
pub(super) fn theta_differences(rope: &Any, run: &Run) -> Verdict {
    run.forall(inputs(true), |Input { case, dy }| {
        let [_, s, _, hd] = case.shape;
        let step = 1e-5;
        let loss = |i: usize, by: f64| -> f64 {
            let mut moved = case.clone();
            moved.frequencies[i] += by;
            Oracle.forward(&moved).iter().zip(dy).map(|(y, &dy)| y * f64::from(dy)).sum()
        };
        let slope = |i: usize| (loss(i, step) - loss(i, -step)) / (2.0 * step);
        let expected: Vec<f64> = (0..hd / 2).map(slope).collect();
        let (off, sizes) = (of_dtheta(case, dy), of_values(case, dy));
        // A difference is off by the third derivative, m³·|y|·|dy|·ε²/6, and by the roundings of two losses in f64.
        let position = (case.offset + s) as f64;
        let size = sizes * case.x.len() as f64;
        let by_step = size * (position.powi(3) * step * step / 6.0 + 1e-15 / step);
        let why = format!("(L(θ + ε) − L(θ − ε)) / 2ε with ε = 10⁻⁵, from f64 loops. {THETA_WHY}");
        let got = dtheta(rope, case, dy)?;
        within("backward (dtheta)", &[hd / 2], &got, &expected, |i| off[i] + by_step, &why)
    })?;
    Ok(None)
}

/// The largest product of a pair's size and its gradient's.
fn of_values(case: &StretchedRopeCase, dy: &[f32]) -> f64 {
    let largest = |values: &[f32]| values.iter().fold(0.0, |m: f64, v| m.max(f64::from(v.abs())));
    4.0 * largest(&case.x) * largest(dy)
}

/// On any input, the gradient of x is what plain f64 loops give.
#[law("frequencies/dx-any", see = "frequencies#gradient", about = Gradient, points = 3,
    formula = "dx = scale·R(−m·θ)·dy", stays = NET)]
pub(super) fn dx_any(rope: &Any, run: &Run) -> Verdict {
    judge_graded_cases(rope, run, "backward (dx)")?;
    let dx = |case: &StretchedRopeCase| Ok(backward(rope, case, &case.x)?.dx);
    angles_far_out("backward (dx)", dx, |case| Oracle.backward(case, &case.x).0)
}

/// On any input, the gradient of the frequencies is what plain f64 loops give.
#[law("frequencies/dtheta-any", see = "frequencies#gradient", about = Gradient, points = 3,
    formula = "dθᵢ = Σ m·(dy₁·y₀ − dy₀·y₁)", stays = NET)]
pub(super) fn dtheta_any(rope: &Any, run: &Run) -> Verdict {
    judge_graded_cases(rope, run, "backward (dtheta)")
}
