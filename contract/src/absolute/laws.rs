//! What absolute positions promise.

mod ids;

use super::tolerance::*;
use crate::absolute::interface::*;
use crate::absolute::oracle::PositionLoops;
use crate::category::Category;
use crate::component::{NET, law, laws};
use crate::describe::List;
use crate::graded_cases::judge::judge_graded_cases;
use crate::graded_cases::{Asked, stands_still};
use crate::laws::{U, repeats, values, widen};
use crate::oracle::Oracle;
use crate::run::Run;
use crate::violation::*;
use ids::*;
use proptest::prelude::*;
use std::fmt;
use std::ops::Range;

type Positions = dyn AbsolutePositions;

laws! {
    position_zero, ten_times_slower, unit_circles, far_positions, rows_are_a_slice, rows_differ,
    distance_in_the_product, table_f64_loops, sinusoids_refuse, shift_moves, shift_composes, shift_keeps_lengths,
    shift_f64_loops, shift_refuses, sinusoids_start_at_the_offset, same_for_each_text, additive, not_relative,
    adding_refuses, sinusoids_any_input, rows_are_taken, whole_table, past_the_table, refusal_names_the_rows,
    refused_past_any_table, learned_any_input, gradient_passes, unseen_rows_stay, gradient_counts_texts,
    sinusoids_gradient, learned_gradient_of_x, gradient_of_the_table, each_token_its_row, tokens_at_one_position_add,
    id_past_the_table, one_id_for_each_token,
}

// --- asking ---------------------------------------------------------------------------------

/// A question about rows of the table.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    pub h: usize,
    pub base: f64,
    pub positions: Range<usize>,
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { h, base, positions } = self;
        write!(f, "hidden_size {h}, base {base}, positions {positions:?}")
    }
}

fn table(absolute: &Positions, asked: &Rows) -> Step<Vec<f64>> {
    let Rows { h, base, positions } = asked;
    let shape = [positions.len(), *h];
    let got = answer("table", || absolute.table(*h, *base, positions.clone()));
    let long = |got: Vec<f32>| {
        let fault = Fault::Length { shape: shape.to_vec(), got: got.len() };
        if got.len() == shape[0] * h {
            Ok(widen(&got))
        } else {
            Err(Violation::new("table", fault))
        }
    };
    got.and_then(long).map_err(|violation| violation.on(asked))
}

fn rows(h: usize, base: f64, positions: Range<usize>) -> Rows {
    Rows { h, base, positions }
}

/// A question about a shift.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps {
    pub h: usize,
    pub base: f64,
    pub steps: usize,
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { h, base, steps } = self;
        write!(f, "hidden_size {h}, base {base}, steps {steps}")
    }
}

fn shift(absolute: &Positions, asked: Steps) -> Step<Vec<f64>> {
    let Steps { h, base, steps } = asked;
    let long = |got: Vec<f32>| {
        let fault = Fault::Length { shape: vec![h, h], got: got.len() };
        if got.len() == h * h { Ok(widen(&got)) } else { Err(Violation::new("shift", fault)) }
    };
    let got = answer("shift", || absolute.shift(h, base, steps));
    got.and_then(long).map_err(|violation| violation.on(asked))
}

/// The product of `[h, h]` and `[h, n]`.
fn product(a: &[f64], b: &[f64], h: usize) -> Vec<f64> {
    let n = b.len() / h;
    let element = |at: usize| (0..h).map(|k| a[at / n * h + k] * b[k * n + at % n]).sum();
    (0..h * n).map(element).collect()
}

fn identity(h: usize) -> Vec<f64> {
    (0..h * h).map(|at| if at / h == at % h { 1.0 } else { 0.0 }).collect()
}

fn sinusoid_case(shape: [usize; 3], offset: usize, x: Vec<f32>) -> SinusoidCase {
    SinusoidCase { shape, base: 10_000.0, offset, x }
}

fn zeros([b, s, h]: [usize; 3]) -> Vec<f32> {
    vec![0.0; b * s * h]
}

fn add(absolute: &Positions, case: &SinusoidCase) -> Step<Vec<f32>> {
    let got = answer("add_sinusoids", || absolute.add_sinusoids(case));
    let long = |y: Vec<f32>| {
        let fault = Fault::Length { shape: case.shape.to_vec(), got: y.len() };
        if y.len() == case.x.len() { Ok(y) } else { Err(Violation::new("add_sinusoids", fault)) }
    };
    got.and_then(long).map_err(|violation| violation.on(case))
}

/// Five rows of three elements, all different, and tokens of zeros.
fn learned_case(shape: [usize; 3], offset: usize) -> LearnedCase {
    let max_seq_len = 5;
    let table = (0..max_seq_len * shape[2]).map(|i| 1.5 - 0.375 * i as f32).collect();
    LearnedCase { shape, max_seq_len, table, offset, x: zeros(shape) }
}

// --- the table ------------------------------------------------------------------------------

/// At position 0 every sine is 0 and every cosine is 1, and they alternate.
#[law("absolute/position-zero", see = "absolute#definition", about = Rotation, points = 1,
    formula = "P[0] = (0, 1, 0, 1, …)",
    stays = "The first row by heart: no number in it needs a sine.")]
fn position_zero(absolute: &Positions, _: &Run) -> Verdict {
    for h in [2, 4, 6, 8] {
        let asked = rows(h, 10_000.0, 0..1);
        let got: Vec<f32> =
            table(absolute, &asked)?.into_iter().map(|value| value as f32).collect();
        let expected: Vec<f32> = (0..h).map(|c| (c % 2) as f32).collect();
        same_values("table", &[1, h], &got, &expected, "sin 0 = 0 and cos 0 = 1")
            .map_err(|violation| violation.on(&asked))?;
    }
    Ok(None)
}

/// With 8 columns and base 10,000, each pair turns ten times as slowly as the one before.
#[law("absolute/ten-times-slower", see = "absolute#definition", about = Frequencies, points = 2,
    formula = "P[1] = (sin 1, cos 1, sin 0.1, cos 0.1, sin 0.01, cos 0.01, sin 0.001, cos 0.001)",
    stays = "The frequencies by hand, for round numbers.")]
fn ten_times_slower(absolute: &Positions, _: &Run) -> Verdict {
    let asked = rows(8, 10_000.0, 1..2);
    let got = table(absolute, &asked)?;
    let expected = [1.0f64, 0.1, 0.01, 0.001].map(|angle| [angle.sin(), angle.cos()]).concat();
    within_f64("table", &[1, 8], &got, &expected, |_| off(8, 10_000.0, 1), TABLE_WHY)
        .map_err(|violation| violation.on(&asked))?;
    Ok(None)
}

/// Sizes, bases and positions for a law, in whole numbers.
fn drawn(&(half, base, m): &(u8, u8, u16)) -> Rows {
    let (half, base) = (1 + usize::from(half) % 16, 2.0 + f64::from(base) * 50.0);
    rows(2 * half, base, usize::from(m) % 3000..usize::from(m) % 3000 + 2)
}

/// Each pair of a row is a point on the unit circle.
#[law("absolute/unit-circles", see = "absolute#circles", about = Rotation, points = 1,
    formula = "P[m,2i]² + P[m,2i+1]² = 1",
    stays = "A law without an oracle: each pair is a point of the unit circle.")]
fn unit_circles(absolute: &Positions, run: &Run) -> Verdict {
    run.integers(|drawing| {
        let asked = drawn(drawing);
        let lengths: Vec<f64> =
            table(absolute, &asked)?.chunks(2).map(|pair| pair[0].powi(2) + pair[1].powi(2)).collect();
        let off = off(asked.h, asked.base, asked.positions.end);
        let why = "a sine and a cosine, each off by as much as a value may be: at most twice |sin| + |cos| of it";
        let ones = vec![1.0; lengths.len()];
        within_f64("table", &[2, asked.h / 2], &lengths, &ones, |_| 3.0 * off, why)
            .map_err(|violation| violation.on(&asked))
    })?;
    Ok(None)
}

/// Even at far positions, values are exact up to f32's own rounding.
#[law("absolute/far-positions", see = "absolute#precision", about = Precision, points = 2,
    formula = "|P[m] − P₆₄[m]| ≤ 2⁻²⁴ + m·2⁻⁴⁶,  m ≈ 10⁶",
    stays = "The plain questions never go so far.")]
fn far_positions(absolute: &Positions, _: &Run) -> Verdict {
    // Beyond 2²⁴ and 2³², where f32 and 32 bits hold no odd positions, or none at all.
    for start in [255, 1000, 200_000, 1_000_000, (1 << 24) + 1, (1 << 32) + 1] {
        matches_table(absolute, &rows(6, 10_000.0, start..start + 4))?;
    }
    Ok(None)
}

pub(super) fn matches_table(absolute: &Positions, asked: &Rows) -> Step {
    answers_table(absolute, asked, asked.positions.clone())
}

/// What is asked must be answered as these positions should be.
pub(super) fn answers_table(absolute: &Positions, asked: &Rows, other: Range<usize>) -> Step {
    let Rows { h, base, positions } = asked;
    let expected = Oracle.table(*h, *base, other);
    let off = off(*h, *base, positions.end);
    within_f64(
        "table",
        &[positions.len(), *h],
        &table(absolute, asked)?,
        &expected,
        |_| off,
        TABLE_WHY,
    )
    .map_err(|violation| {
        let row = |m: usize| Oracle.table(*h, *base, m..m + 1);
        let still = |got: Vec<f64>| stands_still(&got, *h, positions.start, row);
        let stopped = positions.start < 1 << 21 && table(absolute, asked).is_ok_and(still);
        if stopped { violation.at(Category::Offset) } else { violation }.on(asked)
    })
}

/// For any positions, size and base, the table is what plain f64 loops give.
#[law("absolute/table-f64-loops", see = "absolute#definition", about = Rotation, points = 2,
    formula = "P[m,2i] = sin(m·wᵢ),  P[m,2i+1] = cos(m·wᵢ),  wᵢ = base^(−2i/h)", stays = NET)]
fn table_f64_loops(absolute: &Positions, run: &Run) -> Verdict {
    judge_graded_cases(absolute, run, "table")
}

/// The rows from any position on are a slice of the longer table.
#[law("absolute/rows-are-a-slice", see = "absolute#definition", about = Offset, points = 1,
    formula = "P[a..b] = P[0..b][a..]",
    stays = "A law without an oracle: a row knows its own position and no other.")]
fn rows_are_a_slice(absolute: &Positions, _: &Run) -> Verdict {
    let (h, base) = (6, 100.0);
    let whole = table(absolute, &rows(h, base, 0..40))?;
    for part in [0..1, 1..2, 7..11, 30..40] {
        let asked = rows(h, base, part.clone());
        let why = "twice the tolerance of a value: each row is computed again";
        let off = 2.0 * off(h, base, 40);
        let expected = &whole[part.start * h..part.end * h];
        within_f64("table", &[part.len(), h], &table(absolute, &asked)?, expected, |_| off, why)
            .map_err(|violation| violation.on(&asked))?;
    }
    Ok(None)
}

/// Among the first 64 positions, no two have nearly the same row.
#[law("absolute/rows-differ", see = "absolute#definition", about = Offset, points = 1,
    formula = "‖P[m] − P[n]‖² > 0.4,  h = 8, 0 ≤ n < m < 64",
    stays = "Why a vector can name a position at all.")]
fn rows_differ(absolute: &Positions, _: &Run) -> Verdict {
    let asked = rows(8, 10_000.0, 0..64);
    let got = table(absolute, &asked)?;
    for (m, n) in (0..64).flat_map(|m| (0..m).map(move |n| (m, n))) {
        let apart = |c: usize| (got[m * 8 + c] - got[n * 8 + c]).powi(2);
        let apart: f64 = (0..8).map(apart).sum();
        holds("table", apart > 0.4, || {
            format!("the squared distance between the rows of positions {n} and {m} is {apart:.3}, expected more than 0.4")
        })
        .map_err(|violation| violation.on(&asked))?;
    }
    Ok(None)
}

/// The inner product of two rows depends only on the distance between their positions.
#[law("absolute/distance-in-the-product", see = "absolute#distance", about = Rotation, points = 2,
    formula = "P[m]·P[n] = Σ cos((m − n)·wᵢ)",
    stays = "What is relative about sinusoids, and needs no oracle.")]
fn distance_in_the_product(absolute: &Positions, run: &Run) -> Verdict {
    run.integers(|drawing: &(u8, u8, u16)| {
        let asked = drawn(drawing);
        let (h, base, m) = (asked.h, asked.base, asked.positions.start);
        let far = usize::from(drawing.0) % 40;
        let here = table(absolute, &rows(h, base, m..m + 1))?;
        let there = table(absolute, &rows(h, base, m + far..m + far + 1))?;
        let got: f64 = here.iter().zip(&there).map(|(a, b)| a * b).sum();
        let cosine = |i| (far as f64 * Oracle.frequency(i, h, base)).cos();
        let expected: f64 = (0..h / 2).map(cosine).sum();
        let off = 4.0 * (h / 2) as f64 * off(h, base, m + far + 1);
        let why =
            "for each plane the four values of two products, each off by as much as a value may be";
        within_f64("table", &[], &[got], &[expected], |_| off, why).map_err(|violation| {
            violation.on(format!("hidden_size {h}, base {base}, positions {m} and {}", m + far))
        })
    })?;
    Ok(None)
}

/// Sizes and bases that have no sinusoids.
pub(super) const BAD: [(usize, f64); 10] = [
    (1, 10_000.0),
    (3, 10_000.0),
    (7, 10_000.0),
    (0, 10_000.0),
    (4, 1.0),
    (4, 0.0),
    (4, 0.5),
    (4, -10_000.0),
    (4, f64::INFINITY),
    (4, f64::NAN),
];

/// An odd hidden size, a size of 0, and a base that is not finite and above 1 are refused.
#[law("absolute/sinusoids-refuse", see = "absolute#definition", about = Refusal, points = 1,
    formula = "h odd, h = 0, base ≤ 1, base = ∞ or NaN  ⇒  refused",
    stays = "The table, the shift and the sum have the same settings, and each must look at them.")]
fn sinusoids_refuse(absolute: &Positions, _: &Run) -> Verdict {
    for (h, base) in BAD {
        let rule = format!("hidden size {h} with base {base}");
        refusal_of_sizes("table", &rule, || absolute.table(h, base, 0..2))?;
    }
    Ok(None)
}

/// What has no sinusoids has no shift either, and is refused.
#[law("absolute/shift-refuses", see = "absolute#shift", about = Refusal, points = 1,
    formula = "h odd, h = 0, base ≤ 1, base = ∞ or NaN  ⇒  refused",
    stays = "The table, the shift and the sum have the same settings, and each must look at them.")]
fn shift_refuses(absolute: &Positions, _: &Run) -> Verdict {
    for (h, base) in BAD {
        let rule = format!("hidden size {h} with base {base}");
        refusal_of_sizes("shift", &rule, || absolute.shift(h, base, 1))?;
    }
    Ok(None)
}

/// Adding sinusoids is refused for an odd size, and for a base that is not finite and above 1.
#[law("absolute/adding-refuses", see = "absolute#adding", about = Refusal, points = 1,
    formula = "h odd, base ≤ 1, base = ∞ or NaN  ⇒  refused",
    stays = "The table, the shift and the sum have the same settings, and each must look at them.")]
fn adding_refuses(absolute: &Positions, _: &Run) -> Verdict {
    for (h, base) in BAD.into_iter().filter(|(h, _)| *h > 0) {
        let shape = [1, 2, h];
        let case = SinusoidCase { shape, base, offset: 1, x: zeros(shape) };
        let rule = format!("hidden size {h} with base {base}");
        refusal_of_sizes("add_sinusoids", &rule, || absolute.add_sinusoids(&case))?;
    }
    Ok(None)
}

// --- the shift ------------------------------------------------------------------------------

/// One matrix takes the row of every position to the row k positions on.
#[law("absolute/shift-moves", see = "absolute#shift", about = Rotation, points = 3,
    formula = "P[m + k] = S(k)·P[m], for every m")]
fn shift_moves(absolute: &Positions, _: &Run) -> Verdict {
    for (h, base) in [(2, 10_000.0), (6, 100.0), (8, 10_000.0)] {
        for (m, k) in [(0, 1), (1, 1), (5, 3), (0, 10), (17, 4), (100, 0), (40, 29)] {
            let matrix = shift(absolute, Steps { h, base, steps: k })?;
            let moved = product(&matrix, &table(absolute, &rows(h, base, m..m + 1))?, h);
            let there = table(absolute, &rows(h, base, m + k..m + k + 1))?;
            let off = 4.0 * off(h, base, m + k + 1);
            within_f64("shift", &[h], &moved, &there, |_| off, MOVED_WHY).map_err(|violation| {
                violation
                    .on(format!("hidden_size {h}, base {base}, from position {m} by {k} steps"))
            })?;
        }
    }
    Ok(None)
}

/// A shift by a and then by b is the shift by a + b, and a shift by 0 changes nothing.
#[law("absolute/shift-composes", see = "absolute#shift", about = Rotation, points = 1,
    formula = "S(a)·S(b) = S(a + b),  S(0) = 1",
    stays = "Steps add up, in any order.")]
fn shift_composes(absolute: &Positions, _: &Run) -> Verdict {
    let (h, base) = (6, 100.0);
    let of = |steps| shift(absolute, Steps { h, base, steps });
    let off = 4.0 * off(h, base, 101);
    for (a, b) in [(0, 0), (1, 1), (2, 5), (5, 2), (70, 30)] {
        let got = product(&of(a)?, &of(b)?, h);
        within_f64("shift", &[h, h], &got, &of(a + b)?, |_| off, MOVED_WHY).map_err(
            |violation| violation.on(format!("hidden_size {h}, base {base}, steps {a} and {b}")),
        )?;
    }
    within_f64("shift", &[h, h], &of(0)?, &identity(h), |_| off, "a shift by 0 moves nothing")?;
    Ok(None)
}

/// The transpose of a shift undoes it.
#[law("absolute/shift-keeps-lengths", see = "absolute#shift", about = Rotation, points = 1,
    formula = "S(k)ᵀ·S(k) = 1",
    stays = "A shift only turns: its transpose undoes it.")]
fn shift_keeps_lengths(absolute: &Positions, _: &Run) -> Verdict {
    let (h, base) = (8, 10_000.0);
    for steps in [1, 2, 7, 1000] {
        let asked = Steps { h, base, steps };
        let matrix = shift(absolute, asked)?;
        let transposed: Vec<f64> = (0..h * h).map(|at| matrix[at % h * h + at / h]).collect();
        let got = product(&transposed, &matrix, h);
        let off = 4.0 * off(h, base, steps + 1);
        within_f64("shift", &[h, h], &got, &identity(h), |_| off, MOVED_WHY)
            .map_err(|violation| violation.on(asked))?;
    }
    Ok(None)
}

pub(super) fn matches_shift(absolute: &Positions, asked: &Steps) -> Step {
    let Steps { h, base, steps } = *asked;
    let (expected, off) = (Oracle.shift(h, base, steps), off(h, base, steps + 1));
    within_f64("shift", &[h, h], &shift(absolute, *asked)?, &expected, |_| off, TABLE_WHY)
        .map_err(|violation| violation.on(asked))
}

/// For any steps, size and base, the shift is what plain f64 loops give: blocks, and zeros around them.
#[law("absolute/shift-f64-loops", see = "absolute#shift", about = Rotation, points = 2,
    formula = "blockᵢ = (cos k·wᵢ, sin k·wᵢ; −sin k·wᵢ, cos k·wᵢ)", stays = NET)]
fn shift_f64_loops(absolute: &Positions, run: &Run) -> Verdict {
    judge_graded_cases(absolute, run, "shift")
}

// --- adding sinusoids -----------------------------------------------------------------------

/// A text in pieces, each with its offset, gets the same as in one call.
#[law("absolute/sinusoids-start-at-the-offset", see = "absolute#adding", about = Offset, points = 2,
    formula = "y(x[a..], offset a) = y(x)[a..]",
    stays = "Decoding with a cache, in one question.")]
fn sinusoids_start_at_the_offset(absolute: &Positions, _: &Run) -> Verdict {
    let shape = [1, 12, 6];
    let x: Vec<f32> = (0..72).map(|i| (i * 7 % 13) as f32 / 4.0 - 1.5).collect();
    let whole = widen(&add(absolute, &sinusoid_case(shape, 0, x.clone()))?);
    for part in [3..12, 11..12, 5..7] {
        let piece = x[part.start * 6..part.end * 6].to_vec();
        let case = sinusoid_case([1, part.len(), 6], part.start, piece);
        let expected = &whole[part.start * 6..part.end * 6];
        let tolerance = |i: usize| 2.0 * off_of_sum(expected[i], off(6, 10_000.0, 12));
        let why = "twice the tolerance of a sum: each piece is computed again";
        within("add_sinusoids", &case.shape, &add(absolute, &case)?, expected, tolerance, why)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// Every text of a batch gets the same rows.
#[law("absolute/same-for-each-text", see = "absolute#adding", about = Offset, points = 1,
    formula = "x = 0  ⇒  y[b] = y[0]")]
fn same_for_each_text(absolute: &Positions, _: &Run) -> Verdict {
    let shape = [3, 4, 6];
    let case = sinusoid_case(shape, 2, zeros(shape));
    let y = add(absolute, &case)?;
    let first = [&y[..24]; 3].concat();
    same_values(
        "add_sinusoids",
        &shape,
        &y,
        &first,
        "the first text has these rows, and all tokens are 0",
    )
    .map_err(|violation| violation.on(&case))?;
    Ok(None)
}

/// A call of any small size.
#[derive(Debug, Clone)]
struct Any(SinusoidCase);

impl fmt::Display for Any {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn any_sinusoids() -> impl Strategy<Value = Any> {
    (1..=2usize, 1..=4usize, 1..=4usize, 0..50usize).prop_flat_map(|(b, s, half, offset)| {
        let shape = [b, s, 2 * half];
        values(b * s * 2 * half).prop_map(move |x| Any(sinusoid_case(shape, offset, x)))
    })
}

/// What is added does not depend on the tokens.
#[law("absolute/additive", see = "absolute#adding", about = Wiring, points = 1,
    formula = "y(x) − x = y(0)",
    stays = "A law without an oracle: what is added is the same for all tokens.")]
fn additive(absolute: &Positions, run: &Run) -> Verdict {
    run.forall(any_sinusoids(), |Any(case)| {
        let alone = add(absolute, &SinusoidCase { x: zeros(case.shape), ..case.clone() })?;
        let expected: Vec<f64> =
            case.x.iter().zip(&alone).map(|(&x, &p)| f64::from(x) + f64::from(p)).collect();
        let tolerance = |i: usize| U * (1.0 + expected[i].abs());
        let why = "one rounding of the sum, and one of the vector that was added to 0";
        within("add_sinusoids", &case.shape, &add(absolute, case)?, &expected, tolerance, why)
    })?;
    Ok(None)
}

/// The score of two tokens changes when both move, because each token also meets the other's position.
#[law("absolute/not-relative", see = "absolute#not-relative", about = Offset, points = 2,
    formula = "x = e₀:  y[m]·y[n] = 1 + sin m + sin n + cos(m − n),  h = 2",
    stays = "The property that is NOT there: code whose scores do not change adds no positions.")]
fn not_relative(absolute: &Positions, _: &Run) -> Verdict {
    for (m, far) in [(0, 1), (1, 1), (5, 1), (9, 3), (30, 2)] {
        let s = far + 1;
        let x: Vec<f32> = (0..2 * s).map(|i| if i % 2 == 0 { 1.0 } else { 0.0 }).collect();
        let case = sinusoid_case([1, s, 2], m, x);
        let y = widen(&add(absolute, &case)?);
        let score = y[0] * y[2 * far] + y[1] * y[2 * far + 1];
        let (at, to) = (m as f64, (m + far) as f64);
        let expected = 1.0 + at.sin() + to.sin() + (at - to).cos();
        // Values of 2 and 1 at most, in four factors.
        let off = 6.0 * off_of_sum(2.0, off(2, 10_000.0, m + s));
        let why = "four factors of size 2 and 1 at most, each off by as much as a sum may be";
        within_f64("add_sinusoids", &[], &[score], &[expected], |_| off, why).map_err(
            |violation| violation.on(format!("tokens (1, 0) at positions {m} and {}", m + far)),
        )?;
    }
    Ok(None)
}

/// One graded case of sinusoids.
pub(super) type AskedSinusoids = Asked<SinusoidCase>;

pub(super) fn matches_sum(absolute: &Positions, asked: &AskedSinusoids) -> Step {
    answers_sum(absolute, asked, asked.case.offset)
}

/// What is asked must be answered as a text from this position on should be.
pub(super) fn answers_sum(absolute: &Positions, asked: &AskedSinusoids, other: usize) -> Step {
    let Asked { manner, case, .. } = asked;
    let [_, s, h] = case.shape;
    let p = Oracle.table(h, case.base, other..other + s);
    let element = |(i, &x): (usize, &f32)| f64::from(x) + p[i % (s * h)];
    let expected: Vec<f64> = case.x.iter().enumerate().map(element).collect();
    let of_table = off(h, case.base, case.offset + s);
    let tolerance = |i: usize| off_of_sum(expected[i], of_table);
    answer("add_sinusoids", || absolute.add_sinusoids_in(*manner, case))
        .and_then(|y| within("add_sinusoids", &case.shape, &y, &expected, tolerance, SUM_WHY))
        .map_err(|violation| violation.on(asked))
}

/// On any input, the sum is what plain f64 loops give.
#[law("absolute/sinusoids-any-input", see = "absolute#adding", about = Order, points = 2,
    formula = "y[b,t] = x[b,t] + P[offset + t]", stays = NET)]
fn sinusoids_any_input(absolute: &Positions, run: &Run) -> Verdict {
    judge_graded_cases(absolute, run, "add_sinusoids")
}

const PASSES_WHY: &str = "a sum lets the gradient pass as it is";

pub(super) fn matches_sinusoids_dx(absolute: &Positions, asked: &AskedSinusoids) -> Step {
    let Asked { manner, case, dy } = asked;
    answer("sinusoids_backward", || absolute.sinusoids_backward_in(*manner, case, dy))
        .and_then(|dx| same_values("sinusoids_backward", &case.shape, &dx, dy, PASSES_WHY))
        .map_err(|violation| violation.on(asked))
}

/// On any input, the gradient through sinusoids is dy.
#[law("absolute/sinusoids-gradient", see = "absolute#gradient", about = Gradient, points = 1,
    formula = "dx = dy", stays = NET)]
fn sinusoids_gradient(absolute: &Positions, run: &Run) -> Verdict {
    judge_graded_cases(absolute, run, "sinusoids_backward")
}

// --- the learned table ----------------------------------------------------------------------

/// Tokens of zeros get the rows from the offset on, bit for bit.
#[law("absolute/rows-are-taken", see = "absolute#learned", about = Lookup, points = 2,
    formula = "x = 0  ⇒  y[b,t] = T[offset + t]",
    stays = "The rows themselves, bit for bit.")]
fn rows_are_taken(absolute: &Positions, _: &Run) -> Verdict {
    for (offset, s) in [(0, 1), (1, 1), (0, 3), (2, 2)] {
        let case = learned_case([2, s, 3], offset);
        let row = &case.table[offset * 3..(offset + s) * 3];
        let expected = [row, row].concat();
        answer("add_learned", || absolute.add_learned(&case))
            .and_then(|y| {
                same_values("add_learned", &case.shape, &y, &expected, "the rows, added to 0")
            })
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// A text may reach the last row of the table.
#[law("absolute/whole-table", see = "absolute#learned", about = Refusal, points = 1,
    formula = "offset + s = ms  ⇒  answered",
    stays = "The last row is a row.")]
fn whole_table(absolute: &Positions, _: &Run) -> Verdict {
    for (offset, s) in [(0, 5), (4, 1), (2, 3)] {
        let case = learned_case([1, s, 3], offset);
        let expected = &case.table[offset * 3..];
        answer("add_learned", || absolute.add_learned(&case))
            .and_then(|y| {
                same_values("add_learned", &case.shape, &y, expected, "the rows up to the last")
            })
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// There is nothing past the last row: a text that goes beyond it is refused.
#[law("absolute/past-the-table", see = "absolute#learned", about = Refusal, points = 2,
    formula = "offset + s > ms  ⇒  refused",
    stays = "Refusing at all, whatever the words are.")]
fn past_the_table(absolute: &Positions, _: &Run) -> Verdict {
    for (offset, s) in [(0, 6), (5, 1), (4, 2), (1000, 1), (usize::MAX, 1)] {
        refused(absolute, Manner::Plain, &learned_case([1, s, 3], offset))?;
    }
    Ok(None)
}

/// The words with which a text past the table is refused.
fn refused(absolute: &Positions, manner: Manner, case: &LearnedCase) -> Step<String> {
    let rule = format!("a text past the table's {} rows", case.max_seq_len);
    refusal("add_learned", &rule, || absolute.add_learned_in(manner, case))
        .map_err(|violation| violation.on(case))
}

/// The refusal names the number of rows in the table, and where the text ends.
#[law("absolute/refusal-names-the-rows", see = "absolute#learned", about = Refusal, points = 1,
    formula = "the words have ms, and offset + s or offset + s − 1")]
fn refusal_names_the_rows(absolute: &Positions, _: &Run) -> Verdict {
    for (offset, s) in [(0, 7), (3, 9), (1000, 2)] {
        refused_in_words(
            absolute,
            &Asked { manner: Manner::Plain, case: learned_case([1, s, 3], offset), dy: Vec::new() },
        )?;
    }
    Ok(None)
}

pub(super) fn refused_in_words(absolute: &Positions, asked: &AskedLearned) -> Step {
    let Asked { manner, case, .. } = asked;
    let words = refused(absolute, *manner, case)?;
    let said = |number| said(&words, number);
    let (ms, end) = (case.max_seq_len, case.offset + case.shape[1]);
    holds("add_learned", said(ms) && (said(end) || said(end - 1)), || {
        format!(
            "the refusal must name the table's {ms} rows and the text's end, {end}: \"{words}\""
        )
    })
    .map_err(|violation| violation.on(asked))
}

/// Whether the words have a number.
fn said(words: &str, number: usize) -> bool {
    words.split(|c: char| !c.is_ascii_digit()).any(|digits| digits == number.to_string())
}

/// For any sizes, a text past the table is refused, in words that name the number of rows.
#[law("absolute/refused-past-any-table", see = "absolute#learned", about = Refusal, points = 1,
    formula = "offset + s > ms  ⇒  refused", stays = NET)]
fn refused_past_any_table(absolute: &Positions, run: &Run) -> Verdict {
    judge_graded_cases(absolute, run, "refusal")
}

/// One graded case of a learned table.
pub(super) type AskedLearned = Asked<LearnedCase>;

pub(super) fn matches_learned(absolute: &Positions, asked: &AskedLearned) -> Step {
    answers_learned(absolute, asked, asked.case.offset)
}

/// What is asked must be answered as a text from this row on should be.
pub(super) fn answers_learned(absolute: &Positions, asked: &AskedLearned, other: usize) -> Step {
    let Asked { manner, case, .. } = asked;
    let [_, s, h] = case.shape;
    let row = |i: usize| f64::from(case.table[other * h + i % (s * h)]);
    let expected: Vec<f64> =
        case.x.iter().enumerate().map(|(i, &x)| f64::from(x) + row(i)).collect();
    let tolerance = |i: usize| U * expected[i].abs();
    answer("add_learned", || absolute.add_learned_in(*manner, case))
        .and_then(|y| within("add_learned", &case.shape, &y, &expected, tolerance, "one rounding"))
        .map_err(|violation| violation.on(asked))
}

/// On any input, the sum is what plain f64 loops give.
#[law("absolute/learned-any-input", see = "absolute#learned", about = Lookup, points = 2,
    formula = "y[b,t] = x[b,t] + T[offset + t]", stays = NET)]
fn learned_any_input(absolute: &Positions, run: &Run) -> Verdict {
    judge_graded_cases(absolute, run, "add_learned")
}

// --- gradients ------------------------------------------------------------------------------

fn backward(absolute: &Positions, case: &LearnedCase, dy: &[f32]) -> Step<LearnedGrads> {
    answer("learned_backward", || absolute.learned_backward(case, dy))
        .map_err(|violation| violation.on(format!("{case}\ndy    = {}", List(dy))))
}

/// The gradient of the tokens is that of the sum, bit for bit, for sinusoids and for a learned table.
#[law("absolute/gradient-passes", see = "absolute#gradient", about = Gradient, points = 1,
    formula = "dx = dy")]
fn gradient_passes(absolute: &Positions, _: &Run) -> Verdict {
    let dy: Vec<f32> = (0..24).map(|i| 1.0 - 0.3125 * i as f32).collect();
    let case = sinusoid_case([2, 3, 4], 5, zeros([2, 3, 4]));
    matches_sinusoids_dx(absolute, &Asked { manner: Manner::Plain, case, dy: dy.clone() })?;
    let case = learned_case([2, 3, 4], 1);
    matches_learned_dx(absolute, &Asked { manner: Manner::Plain, case, dy })?;
    Ok(None)
}

/// A row that no token used has a gradient of 0.
#[law("absolute/unseen-rows-stay", see = "absolute#gradient", about = Gradient, points = 1,
    formula = "m < offset or m ≥ offset + s  ⇒  dT[m] = 0")]
fn unseen_rows_stay(absolute: &Positions, _: &Run) -> Verdict {
    for (offset, s) in [(0, 2), (1, 2), (3, 2)] {
        let case = learned_case([2, s, 3], offset);
        let dy = vec![1.5; 6 * s];
        let grads = backward(absolute, &case, &dy)?.dtable;
        let seen = |at: usize| (offset..offset + s).contains(&(at / 3));
        let stray = (0..grads.len()).find(|&at| !seen(at) && grads[at] != 0.0);
        holds("learned_backward (dtable)", stray.is_none(), || {
            let at = stray.unwrap_or_default();
            format!(
                "no token is at position {}, and its row has the gradient {}",
                at / 3,
                grads[at]
            )
        })
        .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// If every dy is 1, the gradient of a row that was used is the number of texts.
#[law("absolute/gradient-counts-texts", see = "absolute#gradient", about = Gradient, points = 2,
    formula = "dy = 1  ⇒  dT[m] = b")]
fn gradient_counts_texts(absolute: &Positions, _: &Run) -> Verdict {
    for b in [1, 2, 3, 5] {
        let case = learned_case([b, 2, 3], 0);
        let grads = backward(absolute, &case, &vec![1.0; b * 6])?.dtable;
        let expected: Vec<f64> = (0..15).map(|at| if at < 6 { b as f64 } else { 0.0 }).collect();
        // A mean and a last text differ from a sum by 1/2 at least; what is not seen is another law.
        let seen = 6.min(grads.len());
        let exact = "whole numbers of this size have no rounding";
        within(
            "learned_backward (dtable)",
            &[2, 3],
            &grads[..seen],
            &expected[..6],
            |_| 0.0,
            exact,
        )
        .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

pub(super) fn matches_learned_dx(absolute: &Positions, asked: &AskedLearned) -> Step {
    let Asked { manner, case, dy } = asked;
    answer("learned_backward", || absolute.learned_backward_in(*manner, case, dy))
        .and_then(|LearnedGrads { dx, .. }| {
            same_values("learned_backward (dx)", &case.shape, &dx, dy, PASSES_WHY)
        })
        .map_err(|violation| violation.on(asked))
}

pub(super) fn matches_dtable(absolute: &Positions, asked: &AskedLearned) -> Step {
    let Asked { manner, case, dy } = asked;
    let call = "learned_backward (dtable)";
    let shape = [case.max_seq_len, case.shape[2]];
    let expected = Oracle.dtable(case, dy);
    let sizes: Vec<f32> = dy.iter().map(|dy| dy.abs()).collect();
    let sizes = Oracle.dtable(case, &sizes);
    let tolerance = |i: usize| case.shape[0] as f64 * U * sizes[i];
    let why = "b roundings, in any order of the sum over the texts, of Σ|dy|";
    let ask = || answer("learned_backward", || absolute.learned_backward_in(*manner, case, dy));
    ask()
        .and_then(|LearnedGrads { dtable, .. }| {
            within(call, &shape, &dtable, &expected, tolerance, why)?;
            let tokens = dy.len() / case.shape[2];
            repeats(call, tokens, &shape, &dtable, || Ok(ask()?.dtable))
        })
        .map_err(|violation| violation.on(asked))
}

/// On any input, the gradient of the tokens is dy.
#[law("absolute/learned-gradient-of-x", see = "absolute#gradient", about = Gradient, points = 1,
    formula = "dx = dy", stays = NET)]
fn learned_gradient_of_x(absolute: &Positions, run: &Run) -> Verdict {
    judge_graded_cases(absolute, run, "learned_backward (dx)")
}

/// On any input, the gradient of a row is the sum over the texts, as plain f64 loops give it.
#[law("absolute/gradient-of-the-table", see = "absolute#gradient", about = Gradient, points = 2,
    formula = "dT[offset + t] = Σ_b dy[b,t]", stays = NET)]
fn gradient_of_the_table(absolute: &Positions, run: &Run) -> Verdict {
    judge_graded_cases(absolute, run, "learned_backward (dtable)")
}
