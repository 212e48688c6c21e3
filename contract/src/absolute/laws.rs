//! What absolute positions promise.

mod ids;

use super::tolerance::*;
use crate::absolute::interface::*;
use crate::absolute::oracle::PositionLoops;
use crate::category::Category;
use crate::component::{Invariant, NET};
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

/// A law of the table or of the shift: id, sentence, formula, section, points, why it stays, check.
macro_rules! laws {
    ($($id:literal, $category:ident, $weight:literal, $chapter:literal, $stays:expr, $check:ident:
        $sentence:literal, $formula:literal;)+) => {
        /// All of them, the most telling first.
        pub static INVARIANTS: &[Invariant<Positions>] = &[$(Invariant {
            id: $id,
            sentence: $sentence,
            formula: $formula,
            chapter: $chapter,
            category: Category::$category,
            weight: $weight,
            stays: $stays,
            check: $check,
        }),+];
    };
}

laws! {
    "absolute/position-zero", Rotation, 1, "absolute#definition",
        Some("The first row by heart: no number in it needs a sine."), position_zero:
        "At position 0 every sine is 0 and every cosine is 1, and they alternate.",
        "P[0] = (0, 1, 0, 1, …)";
    "absolute/ten-times-slower", Frequencies, 2, "absolute#definition",
        Some("The frequencies by hand, for round numbers."), ten_times_slower:
        "With 8 columns and base 10,000 each pair turns ten times as slowly as the one before.",
        "P[1] = (sin 1, cos 1, sin 0.1, cos 0.1, sin 0.01, cos 0.01, sin 0.001, cos 0.001)";
    "absolute/unit-circles", Rotation, 1, "absolute#circles",
        Some("A law without an oracle: each pair is a point of the unit circle."), unit_circles:
        "Each pair of a row is a point of the unit circle.",
        "P[m,2i]² + P[m,2i+1]² = 1";
    "absolute/far-positions", Precision, 2, "absolute#precision",
        Some("The plain questions never come so far."), far_positions:
        "At far positions the values are right to f32's own rounding.",
        "|P[m] − P₆₄[m]| ≤ 2⁻²⁴ + m·2⁻⁴⁶,  m ≈ 10⁶";
    "absolute/rows-are-a-slice", Offset, 1, "absolute#definition",
        Some("A law without an oracle: a row knows its own position and no other."), rows_are_a_slice:
        "The rows from any position on are a slice of the longer table.",
        "P[a..b] = P[0..b][a..]";
    "absolute/rows-differ", Offset, 1, "absolute#definition",
        Some("Why a vector can name a position at all."), rows_differ:
        "Of the first 64 positions no two have nearly the same row.",
        "‖P[m] − P[n]‖² > 0.4,  h = 8, 0 ≤ n < m < 64";
    "absolute/distance-in-the-product", Rotation, 2, "absolute#distance",
        Some("What is relative about sinusoids, and needs no oracle."), distance_in_the_product:
        "The inner product of two rows depends on their distance alone.",
        "P[m]·P[n] = Σ cos((m − n)·wᵢ)";
    "absolute/table-f64-loops", Rotation, 2, "absolute#definition", Some(NET), table_f64_loops:
        "For any positions, size and base, the table is what plain f64 loops give.",
        "P[m,2i] = sin(m·wᵢ),  P[m,2i+1] = cos(m·wᵢ),  wᵢ = base^(−2i/h)";
    "absolute/sinusoids-refuse", Refusal, 1, "absolute#definition",
        Some("The table, the shift and the sum have the same settings, and each must look at them."), sinusoids_refuse:
        "An odd hidden size and a base that is not above 1 are refused.",
        "h odd, h = 0, base ≤ 1, base = ∞ or NaN  ⇒  refused";
    "absolute/shift-moves", Rotation, 3, "absolute#shift", None, shift_moves:
        "One matrix takes the row of every position to the row k positions on.",
        "P[m + k] = S(k)·P[m], for every m";
    "absolute/shift-composes", Rotation, 1, "absolute#shift",
        Some("Steps add up, in any order."), shift_composes:
        "A shift by a and then by b is the shift by a + b.",
        "S(a)·S(b) = S(a + b),  S(0) = 1";
    "absolute/shift-keeps-lengths", Rotation, 1, "absolute#shift",
        Some("A shift only turns: its transpose undoes it."), shift_keeps_lengths:
        "The transpose of a shift undoes it.",
        "S(k)ᵀ·S(k) = 1";
    "absolute/shift-f64-loops", Rotation, 2, "absolute#shift", Some(NET), shift_f64_loops:
        "For any steps, size and base, the shift is what plain f64 loops give: blocks, and zeros around them.",
        "blockᵢ = (cos k·wᵢ, sin k·wᵢ; −sin k·wᵢ, cos k·wᵢ)";
    "absolute/shift-refuses", Refusal, 1, "absolute#shift",
        Some("The table, the shift and the sum have the same settings, and each must look at them."), shift_refuses:
        "What has no sinusoids has no shift.",
        "h odd, h = 0, base ≤ 1, base = ∞ or NaN  ⇒  refused";
    "absolute/sinusoids-start-at-the-offset", Offset, 2, "absolute#adding",
        Some("Decoding with a cache, in one question."), sinusoids_start_at_the_offset:
        "A text in pieces, each with its offset, gets what it gets as a whole.",
        "y(x[a..], offset a) = y(x)[a..]";
    "absolute/same-for-each-text", Offset, 1, "absolute#adding", None, same_for_each_text:
        "Every text of a batch gets the same rows.",
        "x = 0  ⇒  y[b] = y[0]";
    "absolute/additive", Wiring, 1, "absolute#adding", Some("A law without an oracle: what is added is the same for all tokens."), additive:
        "What is added does not depend on the tokens.",
        "y(x) − x = y(0)";
    "absolute/not-relative", Offset, 2, "absolute#not-relative",
        Some("The property that is NOT there: a score moves with the place. Who has it adds no positions."), not_relative:
        "The score of two tokens moves when both move: a token meets the other's position too.",
        "x = e₀:  y[m]·y[n] = 1 + sin m + sin n + cos(m − n),  h = 2";
    "absolute/adding-refuses", Refusal, 1, "absolute#adding",
        Some("The table, the shift and the sum have the same settings, and each must look at them."), adding_refuses:
        "Tokens of an odd size get no sinusoids.",
        "h odd, base ≤ 1, base = ∞ or NaN  ⇒  refused";
    "absolute/sinusoids-any-input", Order, 2, "absolute#adding", Some(NET), sinusoids_any_input:
        "On any input, the sum is what plain f64 loops give.",
        "y[b,t] = x[b,t] + P[offset + t]";
    "absolute/rows-are-taken", Lookup, 2, "absolute#learned",
        Some("The rows themselves, bit for bit."), rows_are_taken:
        "Tokens of zeros get the rows from the offset on, bit for bit.",
        "x = 0  ⇒  y[b,t] = T[offset + t]";
    "absolute/whole-table", Refusal, 1, "absolute#learned",
        Some("The last row is a row."), whole_table:
        "A text may be as long as the table.",
        "offset + s = ms  ⇒  answered";
    "absolute/past-the-table", Refusal, 2, "absolute#learned", Some("Refusing at all, whatever the words are."), past_the_table:
        "There is nothing past the last row: a text that ends there is refused.",
        "offset + s > ms  ⇒  refused";
    "absolute/refusal-names-the-rows", Refusal, 1, "absolute#learned", None, refusal_names_the_rows:
        "The refusal names the rows that the table has, and where the text ends.",
        "the words have ms, and offset + s or offset + s − 1";
    "absolute/refused-past-any-table", Refusal, 1, "absolute#learned", Some(NET), refused_past_any_table:
        "For any sizes, a text past the table is refused, in words that name the rows.",
        "offset + s > ms  ⇒  refused";
    "absolute/learned-any-input", Lookup, 2, "absolute#learned", Some(NET), learned_any_input:
        "On any input, the sum is what plain f64 loops give.",
        "y[b,t] = x[b,t] + T[offset + t]";
    "absolute/gradient-passes", Gradient, 1, "absolute#gradient", None, gradient_passes:
        "The gradient of the tokens is that of the sum, bit for bit, for both tables.",
        "dx = dy";
    "absolute/unseen-rows-stay", Gradient, 1, "absolute#gradient", None, unseen_rows_stay:
        "A row that no token used has no gradient.",
        "m < offset or m ≥ offset + s  ⇒  dT[m] = 0";
    "absolute/gradient-counts-texts", Gradient, 2, "absolute#gradient", None, gradient_counts_texts:
        "With a gradient of ones, a row that was used gets the number of texts.",
        "dy = 1  ⇒  dT[m] = b";
    "absolute/sinusoids-gradient", Gradient, 1, "absolute#gradient", Some(NET), sinusoids_gradient:
        "On any input, the gradient through sinusoids is dy.",
        "dx = dy";
    "absolute/learned-gradient-of-x", Gradient, 1, "absolute#gradient", Some(NET), learned_gradient_of_x:
        "On any input, the gradient of the tokens is dy.",
        "dx = dy";
    "absolute/gradient-of-the-table", Gradient, 2, "absolute#gradient", Some(NET), gradient_of_the_table:
        "On any input, the gradient of a row is the sum over the texts, as plain f64 loops give it.",
        "dT[offset + t] = Σ_b dy[b,t]";
    "absolute/each-token-its-row", Offset, 2, "absolute#position-ids", None, each_token_its_row:
        "With position_ids each token gets the row of its own position, as in a text alone: packed, padded at its start, in any order, in each text of the batch.",
        "y[b,t] = x[b,t] + P[p[b,t]]";
    "absolute/tokens-at-one-position-add", Gradient, 2, "absolute#position-ids", None, tokens_at_one_position_add:
        "With position_ids a row of a learned table gets the sum over all tokens that stand there, twice in one text too, and a row that no token uses gets 0.",
        "dT[m] = Σ_{p[b,t] = m} dy[b,t]";
    "absolute/id-past-the-table", Refusal, 1, "absolute#position-ids", None, id_past_the_table:
        "A position past the table is refused wherever it stands among position_ids, and the words name it and the rows.",
        "p[b,t] ≥ ms  ⇒  refused, and the words have p[b,t] and ms";
    "absolute/one-id-for-each-token", Refusal, 1, "absolute#position-ids", None, one_id_for_each_token:
        "Position_ids that are not one for each token are refused.",
        "shape(p) ≠ [b,s]  ⇒  refused";
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

fn unit_circles(absolute: &Positions, run: &Run) -> Verdict {
    run.integers(|drawing| {
        let asked = drawn(drawing);
        let lengths: Vec<f64> =
            table(absolute, &asked)?.chunks(2).map(|pair| pair[0].powi(2) + pair[1].powi(2)).collect();
        let off = off(asked.h, asked.base, asked.positions.end);
        let why = "a sine and a cosine, each off by what a value may be: twice |sin| + |cos| of it at most";
        let ones = vec![1.0; lengths.len()];
        within_f64("table", &[2, asked.h / 2], &lengths, &ones, |_| 3.0 * off, why)
            .map_err(|violation| violation.on(&asked))
    })?;
    Ok(None)
}

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

fn table_f64_loops(absolute: &Positions, run: &Run) -> Verdict {
    judge_graded_cases(absolute, run, "table")
}

fn rows_are_a_slice(absolute: &Positions, _: &Run) -> Verdict {
    let (h, base) = (6, 100.0);
    let whole = table(absolute, &rows(h, base, 0..40))?;
    for part in [0..1, 1..2, 7..11, 30..40] {
        let asked = rows(h, base, part.clone());
        let why = "twice what a value may be off: each row is computed anew";
        let off = 2.0 * off(h, base, 40);
        let expected = &whole[part.start * h..part.end * h];
        within_f64("table", &[part.len(), h], &table(absolute, &asked)?, expected, |_| off, why)
            .map_err(|violation| violation.on(&asked))?;
    }
    Ok(None)
}

fn rows_differ(absolute: &Positions, _: &Run) -> Verdict {
    let asked = rows(8, 10_000.0, 0..64);
    let got = table(absolute, &asked)?;
    for (m, n) in (0..64).flat_map(|m| (0..m).map(move |n| (m, n))) {
        let apart = |c: usize| (got[m * 8 + c] - got[n * 8 + c]).powi(2);
        let apart: f64 = (0..8).map(apart).sum();
        holds("table", apart > 0.4, || {
            format!("the rows of positions {n} and {m} are {apart:.3} apart, squared: more than 0.4 is expected")
        })
        .map_err(|violation| violation.on(&asked))?;
    }
    Ok(None)
}

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
        let why = "for each plane the four values of two products, each off by what a value may be";
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

fn sinusoids_refuse(absolute: &Positions, _: &Run) -> Verdict {
    for (h, base) in BAD {
        let rule = format!("hidden size {h} with base {base}");
        refusal_of_sizes("table", &rule, || absolute.table(h, base, 0..2))?;
    }
    Ok(None)
}

fn shift_refuses(absolute: &Positions, _: &Run) -> Verdict {
    for (h, base) in BAD {
        let rule = format!("hidden size {h} with base {base}");
        refusal_of_sizes("shift", &rule, || absolute.shift(h, base, 1))?;
    }
    Ok(None)
}

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
    within_f64("shift", &[h, h], &of(0)?, &identity(h), |_| off, "no step moves nothing")?;
    Ok(None)
}

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

fn shift_f64_loops(absolute: &Positions, run: &Run) -> Verdict {
    judge_graded_cases(absolute, run, "shift")
}

// --- adding sinusoids -----------------------------------------------------------------------

fn sinusoids_start_at_the_offset(absolute: &Positions, _: &Run) -> Verdict {
    let shape = [1, 12, 6];
    let x: Vec<f32> = (0..72).map(|i| (i * 7 % 13) as f32 / 4.0 - 1.5).collect();
    let whole = widen(&add(absolute, &sinusoid_case(shape, 0, x.clone()))?);
    for part in [3..12, 11..12, 5..7] {
        let piece = x[part.start * 6..part.end * 6].to_vec();
        let case = sinusoid_case([1, part.len(), 6], part.start, piece);
        let expected = &whole[part.start * 6..part.end * 6];
        let tolerance = |i: usize| 2.0 * off_of_sum(expected[i], off(6, 10_000.0, 12));
        let why = "twice what a sum may be off: each piece is computed anew";
        within("add_sinusoids", &case.shape, &add(absolute, &case)?, expected, tolerance, why)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

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
        let why = "four factors of size 2 and 1 at most, each off by what a sum may be";
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

fn sinusoids_gradient(absolute: &Positions, run: &Run) -> Verdict {
    judge_graded_cases(absolute, run, "sinusoids_backward")
}

// --- the learned table ----------------------------------------------------------------------

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

fn learned_any_input(absolute: &Positions, run: &Run) -> Verdict {
    judge_graded_cases(absolute, run, "add_learned")
}

// --- gradients ------------------------------------------------------------------------------

fn backward(absolute: &Positions, case: &LearnedCase, dy: &[f32]) -> Step<LearnedGrads> {
    answer("learned_backward", || absolute.learned_backward(case, dy))
        .map_err(|violation| violation.on(format!("{case}\ndy    = {}", List(dy))))
}

fn gradient_passes(absolute: &Positions, _: &Run) -> Verdict {
    let dy: Vec<f32> = (0..24).map(|i| 1.0 - 0.3125 * i as f32).collect();
    let case = sinusoid_case([2, 3, 4], 5, zeros([2, 3, 4]));
    matches_sinusoids_dx(absolute, &Asked { manner: Manner::Plain, case, dy: dy.clone() })?;
    let case = learned_case([2, 3, 4], 1);
    matches_learned_dx(absolute, &Asked { manner: Manner::Plain, case, dy })?;
    Ok(None)
}

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

fn learned_gradient_of_x(absolute: &Positions, run: &Run) -> Verdict {
    judge_graded_cases(absolute, run, "learned_backward (dx)")
}

fn gradient_of_the_table(absolute: &Positions, run: &Run) -> Verdict {
    judge_graded_cases(absolute, run, "learned_backward (dtable)")
}
