//! The rotation by given tables, its gradient, and the two layouts.

use super::{Rope, sizes, sizes_back, values};
use crate::category::Category;
use crate::component::{NET, law};
use crate::graded_cases::Draw;
use crate::graded_cases::judge::judge_graded_cases;
use crate::laws::{U, widen};
use crate::oracle::Oracle;
use crate::rope::interface::*;
use crate::rope::menu;
use crate::rope::oracle::RopeLoops;
use crate::run::Run;
use crate::violation::*;
use proptest::prelude::*;
use std::fmt;

const LAYOUTS: [Layout; 2] = [Layout::HalfSplit, Layout::Interleaved];

// --- inputs ---------------------------------------------------------------------------------

/// A rotation, and a second tensor of x's shape: a gradient, or another x.
#[derive(Debug, Clone)]
struct Input {
    case: RotateCase,
    dy: Vec<f32>,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, dy } = self;
        write!(f, "{case}\ndy  = {}", crate::describe::List(dy))
    }
}

/// Cosine and sine of one plane.
type Turn = (f32, f32);

/// Rotations of any size of the menu in both layouts. `turn` makes the turn of a plane from two
/// random numbers.
fn inputs(turn: fn(&[f32]) -> Turn) -> impl Strategy<Value = Input> {
    let layout = prop::sample::select(&LAYOUTS[..]);
    let sizes = (1..=2usize, 1..=2usize, 1..=2usize, prop::sample::select(&menu::HEAD_DIM[..3]));
    (sizes, layout).prop_flat_map(move |((b, s, nh, d), layout)| {
        let n = b * s * nh * d;
        (values(n), values(s * d), values(n)).prop_map(move |(x, numbers, dy)| {
            let tables = spread(&numbers.chunks(2).map(turn).collect::<Vec<_>>(), d, layout);
            Input { case: RotateCase { shape: [b, s, nh, d], tables, x, layout }, dy }
        })
    })
}

/// Any numbers for cosines and sines, not only those of a circle.
fn any_tables() -> impl Strategy<Value = Input> {
    inputs(|pair| (pair[0], pair[1]))
}

/// Cosines and sines of any angles.
fn true_tables() -> impl Strategy<Value = Input> {
    inputs(|pair| {
        let (sin, cos) = f64::from(pair[0]).sin_cos();
        (cos as f32, sin as f32)
    })
}

/// Tables with the planes' `(cos, sin)` where the layout wants them.
fn spread(turns: &[Turn], d: usize, layout: Layout) -> Tables {
    let plane = |j: usize| match layout {
        Layout::HalfSplit => j % (d / 2),
        Layout::Interleaved => j / 2,
    };
    let cells = turns.len() / (d / 2) * d;
    let turn = |i: usize| turns[i / d * (d / 2) + plane(i % d)];
    Tables {
        cos: (0..cells).map(|i| turn(i).0).collect(),
        sin: (0..cells).map(|i| turn(i).1).collect(),
    }
}

/// Tables of positions `start..start + s`, base 10,000.
fn true_rows(d: usize, start: usize, s: usize, layout: Layout) -> Tables {
    let Tables { cos, sin } = Oracle.tables(d, 10_000.0, 1.0, start..start + s);
    let half = |table: &[f32]| -> Vec<f32> {
        table.chunks(d).flat_map(|row| &row[..d / 2]).copied().collect()
    };
    let turns: Vec<Turn> = half(&cos).into_iter().zip(half(&sin)).collect();
    spread(&turns, d, layout)
}

/// Sizes that all differ, true tables from position `start` on, uneven values of both signs.
fn witness(d: usize, start: usize, layout: Layout) -> RotateCase {
    let shape = [2, 3, 5, d];
    let n = shape.iter().product::<usize>();
    let x = (0..n).map(|i| ((i * 37 + 11) % 64) as f32 / 16.0 - 1.96875).collect();
    RotateCase { shape, tables: true_rows(d, start, 3, layout), x, layout }
}

fn rotate(rope: &Rope, case: &RotateCase) -> Step<Vec<f32>> {
    let y = answer("rotate", || rope.rotate(case)).map_err(|violation| violation.on(case))?;
    let length = Fault::Length { shape: case.shape.to_vec(), got: y.len() };
    if y.len() == case.x.len() { Ok(y) } else { Err(Violation::new("rotate", length).on(case)) }
}

fn backward(rope: &Rope, case: &RotateCase, dy: &[f32]) -> Step<Vec<f32>> {
    let input = || Input { case: case.clone(), dy: dy.to_vec() };
    let dx = answer("rotate_backward", || rope.rotate_backward(case, dy))
        .map_err(|violation| violation.on(input()))?;
    let length = Fault::Length { shape: case.shape.to_vec(), got: dx.len() };
    if dx.len() == case.x.len() {
        Ok(dx)
    } else {
        Err(Violation::new("rotate_backward", length).on(input()))
    }
}

/// Two products and their sum, and one rounding more for those who work in another order.
const ROTATION: f64 = 3.0 * U;

const ROTATION_WHY: &str = "3·2⁻²⁴ of |x·cos| + |partner·sin|: two products and a sum in f32";

/// The partner of dimension `j` in its plane.
fn partner(j: usize, d: usize, layout: Layout) -> usize {
    match layout {
        Layout::HalfSplit => (j + d / 2) % d,
        Layout::Interleaved => j ^ 1,
    }
}

/// Lengths of all pairs, plane by plane.
fn lengths(case: &RotateCase, values: &[f32]) -> Vec<f64> {
    let d = case.shape[3];
    let heads = values.chunks(d).flat_map(|head| {
        let length = |i| {
            let [a, b] = Oracle.pair(case.layout, i, d);
            f64::from(head[a]).hypot(f64::from(head[b]))
        };
        (0..d / 2).map(length).collect::<Vec<_>>()
    });
    heads.collect()
}

/// One batch row and one head of it.
fn small(case: RotateCase) -> RotateCase {
    let [_, s, _, d] = case.shape;
    RotateCase { shape: [1, s, 1, d], x: case.x[..s * d].to_vec(), ..case }
}

/// A unit vector along dimension `j` in every head.
fn unit(case: RotateCase, j: usize) -> RotateCase {
    let d = case.shape[3];
    let x = (0..case.x.len()).map(|i| f32::from(u8::from(i % d == j))).collect();
    RotateCase { x, ..case }
}

/// What a unit vector along `j` becomes at positions `start..`. `sign` is -1 for turning back.
fn unit_turned(case: &RotateCase, j: usize, start: usize, sign: f64) -> Vec<f64> {
    let [_, s, nh, d] = case.shape;
    let plane = (0..d / 2).find(|&i| Oracle.pair(case.layout, i, d).contains(&j)).unwrap_or(0);
    let theta = 10_000f64.powf(-2.0 * plane as f64 / d as f64);
    let first = Oracle.pair(case.layout, plane, d)[0] == j;
    let value = |i: usize| {
        let angle = (start + i / d / nh % s) as f64 * theta;
        if i % d == j {
            angle.cos()
        } else if i % d == partner(j, d, case.layout) {
            if first { sign * angle.sin() } else { -sign * angle.sin() }
        } else {
            0.0
        }
    };
    (0..case.x.len()).map(value).collect()
}

// --- rotate ---------------------------------------------------------------------------------

fn unit_vectors(rope: &Rope, layout: Layout) -> Verdict {
    for d in menu::HEAD_DIM {
        for j in [0, d / 2 - 1, d / 2, d - 1] {
            let case = unit(small(witness(d, 1, layout)), j);
            let expected = unit_turned(&case, j, 1, 1.0);
            let y = rotate(rope, &case)?;
            let why = "x is 1 in one dimension, and row t is at position 1 + t: cos and ±sin of \
                       its angle, at 4·2⁻²⁴";
            within("rotate", &case.shape, &y, &expected, |_| 4.0 * U, why).map_err(
                |violation| violation.on(format!("x is 1 in dimension {j}, else 0; {case}")),
            )?;
        }
    }
    Ok(None)
}

/// At position 1, a 1 in dimension 0 becomes cos 1 in dimension 0 and sin 1 in dimension d/2, and likewise for every
/// dimension.
#[law("rope/rotate-unit-vector", see = "rope#rotation", about = Rotation, points = 2,
    formula = "R₁·e₀ = cos 1·e₀ + sin 1·e_{d/2}",
    stays = "It shows layout and sign at once, by numbers that can be checked by hand.")]
pub(super) fn rotate_unit_vector(rope: &Rope, _: &Run) -> Verdict {
    unit_vectors(rope, Layout::HalfSplit)
}

/// In the interleaved layout, neighbours turn together: at position 1, a 1 in dimension 0 becomes cos 1 there and sin 1
/// in dimension 1.
#[law("rope/rotate-interleaved", see = "rope#layouts", about = Order, points = 2,
    formula = "R₁·e₀ = cos 1·e₀ + sin 1·e₁",
    stays = "The same witness for the second layout, which may be written later.")]
pub(super) fn rotate_interleaved(rope: &Rope, _: &Run) -> Verdict {
    unit_vectors(rope, Layout::Interleaved)
}

/// Position 0 is the identity, bit for bit.
#[law("rope/rotate-position-zero", see = "rope#rotation", about = Rotation, points = 1,
    formula = "R₀·x = x",
    stays = "The one position with an exact answer.")]
pub(super) fn rotate_position_zero(rope: &Rope, _: &Run) -> Verdict {
    for layout in LAYOUTS {
        for d in [4, 6] {
            let case = witness(d, 0, layout);
            let [b, s, nh, d] = case.shape;
            let y = rotate(rope, &case)?;
            for batch in 0..b {
                let row = batch * s * nh * d..(batch * s + 1) * nh * d;
                let why = "position 0 turns by 0: x · 1 + partner · 0 is x";
                same_values("rotate", &[nh, d], &y[row.clone()], &case.x[row], why)
                    .map_err(|violation| violation.on(format!("row 0 of batch {batch}; {case}")))?;
            }
        }
    }
    Ok(None)
}

/// A rotation keeps the length of each pair.
#[law("rope/rotate-keeps-lengths", see = "rope#rotation", about = Rotation, points = 2,
    formula = "y_i² + y_{i+d/2}² = x_i² + x_{i+d/2}²",
    stays = "It says what a rotation is, without an oracle.")]
pub(super) fn rotate_keeps_lengths(rope: &Rope, run: &Run) -> Verdict {
    run.forall(true_tables(), |Input { case, .. }| {
        let expected = lengths(case, &case.x);
        let got = lengths(case, &rotate(rope, case)?);
        let [b, s, nh, d] = case.shape;
        let why = "the length of the pair before the turn. 6·2⁻²⁴ of it: 3√2 for the turn, √2 \
                   for rounded tables";
        let tolerance = |i: usize| 6.0 * U * expected[i];
        within_f64("rotate", &[b, s, nh, d / 2], &got, &expected, tolerance, why)
    })?;
    Ok(None)
}

/// The rotation is linear in x: nothing is added, nothing is bent.
#[law("rope/rotate-linear", see = "rope#rotation", about = Rotation, points = 1,
    formula = "R(2x + z) = 2·R(x) + R(z)",
    stays = "A law without an oracle: it tells what is added or bent from what is turned.")]
pub(super) fn rotate_linear(rope: &Rope, run: &Run) -> Verdict {
    run.forall(any_tables(), |Input { case, dy }| {
        let with = |x: Vec<f32>| RotateCase { x, ..case.clone() };
        let sum = with(case.x.iter().zip(dy).map(|(x, z)| 2.0 * x + z).collect());
        let other = with(dy.clone());
        let (rx, rz) = (widen(&rotate(rope, case)?), widen(&rotate(rope, &other)?));
        let expected: Vec<f64> = rx.iter().zip(&rz).map(|(x, z)| 2.0 * x + z).collect();
        let (size, other_size) = (sizes(case), sizes(&other));
        // The sum itself is rounded, and three turns are.
        let tolerance = |i: usize| (2.0 * ROTATION + U) * (2.0 * size[i] + other_size[i]);
        let why = "R(2x + z) = 2·R(x) + R(z), where z is dy; 7·2⁻²⁴ of all terms: a turn on \
                   either side, and the rounding of 2x + z";
        within("rotate", &case.shape, &rotate(rope, &sum)?, &expected, tolerance, why)
    })?;
    Ok(None)
}

/// Every batch row and every head turns by the same angle: only the place in the sequence counts.
#[law("rope/rotate-same-for-all", see = "rope#rotation", about = Order, points = 2,
    formula = "x[b, t, n] = x[0, t, 0]  ⇒  y[b, t, n] = y[0, t, 0]",
    stays = "A position that counts along the wrong axis shows here by name.")]
pub(super) fn rotate_same_for_all(rope: &Rope, _: &Run) -> Verdict {
    for layout in LAYOUTS {
        let mut case = witness(4, 1, layout);
        let [b, s, nh, d] = case.shape;
        // The same token in every batch row and head; tokens differ along the sequence.
        let token = |i: usize| case.x[i / d / nh % s * d + i % d];
        case.x = (0..b * s * nh * d).map(token).collect();
        let y = rotate(rope, &case)?;
        let expected: Vec<f32> = (0..y.len()).map(|i| y[i / d / nh % s * nh * d + i % d]).collect();
        let size = sizes(&case);
        let tolerance = |i: usize| 2.0 * ROTATION * size[i];
        let why = "batch row 0, head 0, where x is the same: position counts along the sequence \
                   only";
        within("rotate", &case.shape, &y, &widen(&expected), tolerance, why)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// A NaN in one plane leaves all other planes, heads and rows as they were, bit for bit.
#[law("rope/rotate-planes-apart", see = "rope#rotation", about = Order, points = 1,
    formula = "x_i = NaN  ⇒  y_j unchanged for j ≠ i, i + d/2")]
pub(super) fn rotate_planes_apart(rope: &Rope, _: &Run) -> Verdict {
    for layout in LAYOUTS {
        for plane in 0..3 {
            let case = witness(6, 1, layout);
            let y = rotate(rope, &case)?;
            let at = 17 * 6; // some head in the middle
            let touched = Oracle.pair(layout, plane, 6).map(|j| at + j);
            let mut changed = case.clone();
            changed.x[touched[0]] = f32::NAN;
            let again = rotate(rope, &changed)?;
            let rest = |y: &[f32]| -> Vec<f32> {
                let rest = y.iter().enumerate().filter(|(i, _)| !touched.contains(i));
                rest.map(|(_, &y)| y).collect()
            };
            let why = format!("x[{}] became NaN; all other planes are compared", touched[0]);
            same_values("rotate", &[y.len() - 2], &rest(&again), &rest(&y), &why)
                .map_err(|violation| violation.on(&changed))?;
        }
    }
    Ok(None)
}

/// Turning by m and then by n is turning by m + n.
#[law("rope/rotate-composes", see = "rope#rotation", about = Rotation, points = 1,
    formula = "R_n·R_m = R_{m+n}",
    stays = "The law from which the relative property follows.")]
pub(super) fn rotate_composes(rope: &Rope, _: &Run) -> Verdict {
    for layout in LAYOUTS {
        for (m, n) in [(1, 2), (5, 40), (7, 7)] {
            let at = |start, x: &[f32]| RotateCase {
                shape: [1, 1, 2, 8],
                tables: true_rows(8, start, 1, layout),
                x: x.to_vec(),
                layout,
            };
            let x = &witness(8, 0, layout).x[..16];
            let once = at(m + n, x);
            let expected = widen(&rotate(rope, &once)?);
            let twice = at(n, &rotate(rope, &at(m, x))?);
            let pair = |i: usize| {
                let mate = i - i % 8 + partner(i % 8, 8, layout);
                f64::from(x[i].abs()) + f64::from(x[mate].abs())
            };
            let why = "one turn by m + n. 16·2⁻²⁴ of the pair: three turns and their tables";
            within(
                "rotate",
                &once.shape,
                &rotate(rope, &twice)?,
                &expected,
                |i| 16.0 * U * pair(i),
                why,
            )
            .map_err(|violation| {
                violation.on(format!("turned by {m}, then by {n}; first {once}"))
            })?;
        }
    }
    Ok(None)
}

/// The two layouts are one rotation: reorder, turn in the other layout, reorder back.
#[law("rope/layouts-agree", see = "rope#layouts", about = Order, points = 2,
    formula = "R_half = P⁻¹ · R_interleaved · P",
    stays = "It ties the two layouts together, which separate witnesses do not.")]
pub(super) fn layouts_agree(rope: &Rope, run: &Run) -> Verdict {
    run.forall(any_tables(), |Input { case, .. }| {
        let d = case.shape[3];
        let (to, from): (Reorder, Reorder) = match case.layout {
            Layout::HalfSplit => (RopeLoops::to_interleaved, RopeLoops::to_half_split),
            Layout::Interleaved => (RopeLoops::to_half_split, RopeLoops::to_interleaved),
        };
        let other = RotateCase {
            shape: case.shape,
            tables: Tables {
                cos: to(&Oracle, d, &case.tables.cos),
                sin: to(&Oracle, d, &case.tables.sin),
            },
            x: to(&Oracle, d, &case.x),
            layout: if case.layout == LAYOUTS[0] { LAYOUTS[1] } else { LAYOUTS[0] },
        };
        let expected = widen(&from(&Oracle, d, &rotate(rope, &other)?));
        let size = sizes(case);
        let tolerance = |i: usize| 2.0 * ROTATION * size[i];
        let why = "the other layout's result, reordered; two turns in f32";
        within("rotate", &case.shape, &rotate(rope, case)?, &expected, tolerance, why)
    })?;
    Ok(None)
}

type Reorder = fn(&Oracle, usize, &[f32]) -> Vec<f32>;

/// For any tables, on the circle or not, and either layout, y is what plain f64 loops give.
#[law("rope/rotate-f64-loops", see = "rope#rotation", about = Rotation, points = 3,
    formula = "y = x ⊙ C + rotate_half(x) ⊙ S,  rotate_half(x) = (−x[d/2..], x[..d/2])", stays = NET)]
pub(super) fn rotate_f64_loops(rope: &Rope, run: &Run) -> Verdict {
    judge_graded_cases(rope, run, "rotate")
}

/// A rotation by any tables, on the circle or not. Each plane has one cosine and one sine.
#[derive(Debug, Clone, Copy)]
pub(in crate::rope) struct Turned {
    pub shape: [usize; 4],
    pub layout: Layout,
    pub manner: Manner,
    pub values: Values,
}

/// What is turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::rope) enum Values {
    /// Any values.
    Drawn,
    /// One of them is NaN.
    WithNan,
    /// 1, and 0 everywhere else: the answer shows where each cosine and sine goes.
    Unit,
}

impl Turned {
    fn input(&self, draw: &mut Draw) -> Input {
        let Self { shape, layout, manner, values } = *self;
        let [b, s, nh, d] = shape;
        let row = s * nh * d;
        let mut x = draw.values(b * row);
        if manner == Manner::Broadcast {
            (row..b * row).for_each(|i| x[i] = x[i - row]);
        }
        let mut dy = draw.values(b * row);
        match values {
            Values::Drawn => {}
            Values::WithNan => [x[row - 1], dy[0]] = [f32::NAN; 2],
            Values::Unit => {
                for values in [&mut x, &mut dy] {
                    values.fill(0.0);
                    values[0] = 1.0;
                }
            }
        }
        if manner == Manner::Broadcast {
            (row..b * row).for_each(|i| dy[i] = dy[i - row]);
        }
        let mut turns: Vec<Turn> = (0..s * d / 2).map(|_| (draw.value(), draw.value())).collect();
        if turns.len() > 2 {
            turns[1] = (0.0, 1.0); // a quarter turn: nothing can be divided by its cosine
        }
        let tables = spread(&turns, d, layout);
        Input { case: RotateCase { shape, tables, x, layout }, dy }
    }
}

impl Turned {
    /// A 1 that comes to other places is turned with another partner.
    fn tell(&self, mut violation: Box<Violation>, got: &[f32], expected: &[f64]) -> Box<Violation> {
        let mut places = got.iter().zip(expected);
        if self.values == Values::Unit && places.any(|(&g, &e)| g != 0.0 && e == 0.0) {
            violation.category = Some(Category::Order);
        }
        violation
    }
}

/// What `y` must be.
pub(in crate::rope) fn matches_y(rope: &Rope, turned: &Turned, draw: &mut Draw) -> Step {
    let case = turned.input(draw).case;
    let (size, expected) = (sizes(&case), Oracle.rotate(&case));
    answer("rotate", || rope.rotate_in(turned.manner, &case))
        .and_then(|y| {
            within("rotate", &case.shape, &y, &expected, |i| ROTATION * size[i], ROTATION_WHY)
                .map_err(|violation| turned.tell(violation, &y, &expected))
        })
        .map_err(|violation| {
            violation.on(format!("{}\n{case}", turned.manner.words()).trim_start())
        })
}

/// What the gradient must be.
pub(in crate::rope) fn matches_dx(rope: &Rope, turned: &Turned, draw: &mut Draw) -> Step {
    let input = turned.input(draw);
    let Input { case, dy } = &input;
    let (size, expected) = (sizes_back(case, dy), Oracle.rotate_backward(case, dy));
    let why = "3·2⁻²⁴ of |dy·cos| + |partner·sin|: two products and a sum in f32";
    answer("rotate_backward", || rope.rotate_backward_in(turned.manner, case, dy))
        .and_then(|dx| {
            within("rotate_backward", &case.shape, &dx, &expected, |i| ROTATION * size[i], why)
                .map_err(|violation| turned.tell(violation, &dx, &expected))
        })
        .map_err(|violation| {
            violation.on(format!("{}\n{input}", turned.manner.words()).trim_start())
        })
}

/// 0, NaN, 2, ..: values are moved, and a NaN is one.
fn numbered(n: usize) -> Vec<f32> {
    (0..n).map(|i| if i == 1 { f32::NAN } else { i as f32 }).collect()
}

/// Half-split heads in adjacent pairs.
pub(in crate::rope) fn matches_interleaved(rope: &Rope, [rows, d]: [usize; 2]) -> Step {
    let x = numbered(rows * d);
    let from = |i: usize| x[i / d * d + i % d / 2 + i % 2 * (d / 2)];
    let expected: Vec<f32> = (0..rows * d).map(from).collect();
    answer("to_interleaved", || rope.to_interleaved(d, &x))
        .and_then(|y| {
            same_values("to_interleaved", &[rows, d], &y, &expected, "x holds 0, NaN, 2, ..")
        })
        .map_err(|violation| violation.on(format!("{rows} rows of {d}: 0, NaN, 2, ..")))
}

/// And back.
pub(in crate::rope) fn matches_back(rope: &Rope, [rows, d]: [usize; 2]) -> Step {
    let x = numbered(rows * d);
    let from = |i: usize| x[i / d * d + i % d % (d / 2) * 2 + i % d / (d / 2)];
    let expected: Vec<f32> = (0..rows * d).map(from).collect();
    answer("to_half_split", || rope.to_half_split(d, &x))
        .and_then(|y| {
            same_values("to_half_split", &[rows, d], &y, &expected, "x holds 0, NaN, 2, ..")
        })
        .map_err(|violation| violation.on(format!("{rows} rows of {d}: 0, NaN, 2, ..")))
}

/// Tables must have one row for each row of x. One row for all, or more rows than x has, is refused.
#[law("rope/rotate-table-shape", see = "rope#rotation", about = Refusal, points = 1,
    formula = "rows(C) ≠ s  ⇒  no result")]
pub(super) fn rotate_table_shape(rope: &Rope, _: &Run) -> Verdict {
    for rows in [1, 2, 4] {
        let case = witness(4, 1, Layout::HalfSplit);
        let case = RotateCase { tables: true_rows(4, 1, rows, Layout::HalfSplit), ..case };
        let rule = format!("tables with {rows} rows for an x with 3");
        refusal("rotate", &rule, || rope.rotate(&case)).map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

// --- layouts --------------------------------------------------------------------------------

/// Two heads whose values are their places: 0, 1, 2, .. and 100, 101, 102, ..
fn places(d: usize) -> Vec<f32> {
    (0..2 * d).map(|i| (i / d * 100 + i % d) as f32).collect()
}

/// Interleaving takes the first of the first half, the first of the second half, and so on, in each head.
#[law("rope/interleaved-order", see = "rope#layouts", about = Order, points = 1,
    formula = "P: 0, d/2, 1, d/2 + 1, …",
    stays = "The order itself, to be read off: a round trip can't tell which way it went.")]
pub(super) fn interleaved_order(rope: &Rope, _: &Run) -> Verdict {
    for (d, order) in [(6, vec![0, 3, 1, 4, 2, 5]), (8, vec![0, 4, 1, 5, 2, 6, 3, 7])] {
        let x = places(d);
        let order = order.iter().map(|&j| x[j]).chain(order.iter().map(|&j| x[d + j]));
        let input = format!("head_dim {d}, x [2, {d}] = {}", crate::describe::List(&x));
        let why = "the order 0, d/2, 1, d/2 + 1, .. in every head";
        answer("to_interleaved", || rope.to_interleaved(d, &x))
            .and_then(|y| {
                let order: Vec<f32> = order.collect();
                same_values("to_interleaved", &[2, d], &y, &order, why)
            })
            .map_err(|violation| violation.on(input))?;
    }
    Ok(None)
}

/// Heads of any even size are interleaved in this way, however many there are.
#[law("rope/interleaved-any-size", see = "rope#layouts", about = Order, points = 1,
    formula = "P·x for d = 4, 6, 8, …", stays = NET)]
pub(super) fn interleaved_any_size(rope: &Rope, run: &Run) -> Verdict {
    judge_graded_cases(rope, run, "to_interleaved")
}

/// Splitting takes the even places first and then the odd ones, in each head.
#[law("rope/half-split-order", see = "rope#layouts", about = Order, points = 1,
    formula = "P⁻¹: 0, 2, 4, …, 1, 3, 5, …",
    stays = "The order itself, to be read off: a round trip can't tell which way it went.")]
pub(super) fn half_split_order(rope: &Rope, _: &Run) -> Verdict {
    for (d, order) in [(6, vec![0, 2, 4, 1, 3, 5]), (8, vec![0, 2, 4, 6, 1, 3, 5, 7])] {
        let x = places(d);
        let order = order.iter().map(|&j| x[j]).chain(order.iter().map(|&j| x[d + j]));
        let input = format!("head_dim {d}, x [2, {d}] = {}", crate::describe::List(&x));
        let why = "the even places first, then the odd ones, in every head";
        answer("to_half_split", || rope.to_half_split(d, &x))
            .and_then(|y| {
                let order: Vec<f32> = order.collect();
                same_values("to_half_split", &[2, d], &y, &order, why)
            })
            .map_err(|violation| violation.on(input))?;
    }
    Ok(None)
}

/// Heads of any even size are split in this way, however many there are.
#[law("rope/half-split-any-size", see = "rope#layouts", about = Order, points = 1,
    formula = "P⁻¹·x for d = 4, 6, 8, …", stays = NET)]
pub(super) fn half_split_any_size(rope: &Rope, run: &Run) -> Verdict {
    judge_graded_cases(rope, run, "to_half_split")
}

/// Heads of one size.
#[derive(Debug, Clone)]
struct Heads {
    d: usize,
    x: Vec<f32>,
}

impl fmt::Display for Heads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "head_dim {}, x = {}", self.d, crate::describe::List(&self.x))
    }
}

/// The two reorderings undo each other.
#[law("rope/layouts-round-trip", see = "rope#layouts", about = Order, points = 1,
    formula = "P⁻¹·P·x = x = P·P⁻¹·x",
    stays = "A law without an oracle, for any values and every head size.")]
pub(super) fn layouts_round_trip(rope: &Rope, run: &Run) -> Verdict {
    let sizes = (prop::sample::select(&menu::HEAD_DIM[..]), 1..=3usize);
    let heads = sizes.prop_flat_map(|(d, rows)| values(d * rows).prop_map(move |x| Heads { d, x }));
    run.forall(heads, |Heads { d, x }| {
        let to = |x: &[f32]| answer("to_interleaved", || rope.to_interleaved(*d, x));
        let from = |x: &[f32]| answer("to_half_split", || rope.to_half_split(*d, x));
        let shape = [x.len() / d, *d];
        same_values("to_half_split", &shape, &from(&to(x)?)?, x, "x, interleaved and back")?;
        same_values("to_interleaved", &shape, &to(&from(x)?)?, x, "x, half-split and back")
    })?;
    Ok(None)
}

// --- rotate_backward ------------------------------------------------------------------------

/// The gradient turns back: at position 1, a 1 in dimension 0 becomes cos 1 there and −sin 1 in its partner.
#[law("rope/gradient-turns-back", see = "rope#gradient", about = Gradient, points = 2,
    formula = "R₁ᵀ·e₀ = cos 1·e₀ − sin 1·e_{d/2}",
    stays = "It shows the sign of the turn by numbers that can be checked by hand.")]
pub(super) fn gradient_turns_back(rope: &Rope, _: &Run) -> Verdict {
    for layout in LAYOUTS {
        for d in [4, 6] {
            for j in 0..d {
                let case = small(witness(d, 1, layout));
                let dy = unit(case.clone(), j).x;
                let expected = unit_turned(&case, j, 1, -1.0);
                let dx = backward(rope, &case, &dy)?;
                let why = "dy is 1 in one dimension, and row t is at position 1 + t: cos and ∓sin \
                           of its angle, a turn by −m, at 4·2⁻²⁴";
                within("rotate_backward", &case.shape, &dx, &expected, |_| 4.0 * U, why).map_err(
                    |violation| violation.on(format!("dy is 1 in dimension {j}; {case}")),
                )?;
            }
        }
    }
    Ok(None)
}

/// The gradient is as long as dy, pair by pair: RoPE neither feeds nor starves the layers below.
#[law("rope/gradient-keeps-lengths", see = "rope#gradient", about = Gradient, points = 1,
    formula = "dx_i² + dx_{i+d/2}² = dy_i² + dy_{i+d/2}²",
    stays = "It says why RoPE is kind to training, without an oracle.")]
pub(super) fn gradient_keeps_lengths(rope: &Rope, run: &Run) -> Verdict {
    run.forall(true_tables(), |Input { case, dy }| {
        let expected = lengths(case, dy);
        let got = lengths(case, &backward(rope, case, dy)?);
        let [b, s, nh, d] = case.shape;
        let why = "the length of dy's pair. 6·2⁻²⁴ of it: 3√2 for the turn, √2 for rounded tables";
        let tolerance = |i: usize| 6.0 * U * expected[i];
        within_f64("rotate_backward", &[b, s, nh, d / 2], &got, &expected, tolerance, why)
    })?;
    Ok(None)
}

/// Turning x and sending the result back through the gradient gives x again.
#[law("rope/gradient-undoes", see = "rope#gradient", about = Gradient, points = 1,
    formula = "Rᵀ·R = 1",
    stays = "Forward and backward against each other: it needs no formula for either.")]
pub(super) fn gradient_undoes(rope: &Rope, run: &Run) -> Verdict {
    run.forall(true_tables(), |Input { case, .. }| {
        let d = case.shape[3];
        let back = backward(rope, case, &rotate(rope, case)?)?;
        let pair = |i: usize| {
            let mate = i - i % d + partner(i % d, d, case.layout);
            f64::from(case.x[i].abs()) + f64::from(case.x[mate].abs())
        };
        let why = "x, turned and turned back. 12·2⁻²⁴ of its pair: two turns, and rounded tables";
        let tolerance = |i: usize| 12.0 * U * pair(i);
        within("rotate_backward", &case.shape, &back, &widen(&case.x), tolerance, why)
    })?;
    Ok(None)
}

/// The gradient is the transpose of what the forward pass does, whatever that is.
#[law("rope/gradient-adjoint", see = "rope#gradient", about = Gradient, points = 2,
    formula = "⟨dy, R·x⟩ = ⟨Rᵀ·dy, x⟩")]
pub(super) fn gradient_adjoint(rope: &Rope, run: &Run) -> Verdict {
    run.forall(any_tables(), |Input { case, dy }| {
        let dot = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
        };
        let expected = [dot(dy, &rotate(rope, case)?)];
        let got = [dot(&backward(rope, case, dy)?, &case.x)];
        let size = sizes(case);
        let terms: f64 = size.iter().zip(dy).map(|(size, dy)| size * f64::from(dy.abs())).sum();
        let why = "⟨dy, R·x⟩, of which this is ⟨Rᵀ·dy, x⟩. 6·2⁻²⁴ of all terms: a turn on either \
                   side";
        within_f64("rotate_backward", &[1], &got, &expected, |_| 2.0 * ROTATION * terms, why)
    })?;
    Ok(None)
}

/// For any tables and either layout, dx is what plain f64 loops give.
#[law("rope/gradient-f64-loops", see = "rope#gradient", about = Gradient, points = 3,
    formula = "dx = Rᵀ·dy", stays = NET)]
pub(super) fn gradient_f64_loops(rope: &Rope, run: &Run) -> Verdict {
    judge_graded_cases(rope, run, "rotate_backward")
}
