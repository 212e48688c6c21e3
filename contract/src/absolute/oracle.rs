//! Absolute positions: `y[b, t] = x[b, t] + P[offset + t]`, where `P` is computed or learned.

use crate::absolute::interface::*;
use crate::interface::one_each;
use crate::oracle::{Loops, Oracle};
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

/// A position for each token, `[b, s]`.
#[derive(Debug, Clone, Copy)]
pub struct Ids<'a> {
    /// The positions, text by text.
    pub of: &'a [usize],
    /// Tokens of a text.
    pub s: usize,
    /// Rows of the table. Sinusoids have no end.
    pub rows: usize,
}

/// Any loops as a trait object. What goes over many steps is written for these, below the trait, so that
/// it is compiled once and not once a bug.
pub trait AsPositionLoops {
    /// Itself.
    fn as_loops(&self) -> &dyn PositionLoops;
}

impl<L: PositionLoops> AsPositionLoops for L {
    fn as_loops(&self) -> &dyn PositionLoops {
        self
    }
}

/// The steps. A bug writes one of them wrong.
pub trait PositionLoops: AsPositionLoops {
    /// Refuses settings that have no sinusoids.
    fn check(&self, hidden_size: usize, base: f64) -> Reply<()> {
        let even = hidden_size >= 2 && hidden_size.is_multiple_of(2);
        require(even, &hidden_size, "an even hidden size of at least 2")?;
        require(base.is_finite() && base > 1.0, &base, "a base above 1")
    }

    /// `w_i`, in radians per position.
    fn frequency(&self, i: usize, h: usize, base: f64) -> f64 {
        base.powf(-2.0 * i as f64 / h as f64)
    }

    /// How far plane `i` has turned at a position.
    fn angle(&self, position: usize, w: f64) -> f64 {
        position as f64 * w
    }

    /// The entries of a row for one angle.
    fn pair(&self, angle: f64) -> [f64; 2] {
        [angle.sin(), angle.cos()]
    }

    /// Where the pair of plane `i` is in a row of `h`.
    fn places(&self, i: usize, _h: usize) -> [usize; 2] {
        [2 * i, 2 * i + 1]
    }

    /// One row of sinusoids.
    fn row(&self, m: usize, h: usize, base: f64) -> Vec<f64> {
        row(self.as_loops(), m, h, base)
    }

    /// The sinusoids of these positions.
    fn table(&self, h: usize, base: f64, positions: Range<usize>) -> Vec<f64> {
        positions.flat_map(|m| self.row(m, h, base)).collect()
    }

    /// How far plane `i` is turned by a shift.
    fn shift_angle(&self, steps: usize, w: f64) -> f64 {
        steps as f64 * w
    }

    /// What a shift does to one pair.
    fn block(&self, angle: f64) -> [[f64; 2]; 2] {
        let (sin, cos) = angle.sin_cos();
        [[cos, sin], [-sin, cos]]
    }

    /// Which columns the shift turns together for plane `i`.
    fn shift_places(&self, i: usize, _h: usize) -> [usize; 2] {
        [2 * i, 2 * i + 1]
    }

    /// The matrix of a shift, `[h, h]`.
    fn shift(&self, h: usize, base: f64, steps: usize) -> Vec<f64> {
        shift(self.as_loops(), h, base, steps)
    }

    /// The position of row `t` of text `b`, where sinusoids are added.
    fn position(&self, case: &SinusoidCase, _b: usize, t: usize) -> usize {
        case.offset + t
    }

    /// A token and its position.
    fn sum(&self, x: f64, p: f64, _h: usize) -> f64 {
        x + p
    }

    /// Refuses a text that ends past the table.
    fn check_rows(&self, case: &LearnedCase) -> Reply<()> {
        check_rows(case, case.shape[1])
    }

    /// The row of the table for row `t` of text `b`.
    fn learned_row(&self, case: &LearnedCase, _b: usize, t: usize) -> usize {
        case.offset + t
    }

    /// A token and the element of its row.
    fn learned_sum(&self, x: f64, p: f64) -> f64 {
        x + p
    }

    /// One element of the gradient of `x`.
    fn dx(&self, dy: f64) -> f64 {
        dy
    }

    /// The row of the table's gradient for row `t` of a text.
    fn gradient_row(&self, case: &LearnedCase, t: usize) -> usize {
        case.offset + t
    }

    /// What one token does to an element of its row's gradient. There are `b` texts.
    fn add(&self, sum: f64, dy: f64, _b: usize) -> f64 {
        sum + dy
    }

    /// The gradient of the table, `[ms, h]`.
    fn dtable(&self, case: &LearnedCase, dy: &[f32]) -> Vec<f64> {
        dtable(self.as_loops(), case, dy)
    }

    // --- a position for each token ----------------------------------------------------------

    /// Refuses positions that are not one for each token.
    fn check_ids(&self, [b, s, _]: [usize; 3], ids: &[usize]) -> Reply<()> {
        one_each(ids, [b, s])
    }

    /// Refuses a position past the table.
    fn check_below(&self, ids: Ids) -> Reply<()> {
        check_below(ids.of, ids.rows)
    }

    /// The position of row `t` of text `b`.
    fn position_at(&self, ids: Ids, b: usize, t: usize) -> usize {
        ids.of[b * ids.s + t]
    }

    /// The gradient of the table, `[rows, h]`.
    fn dtable_at(&self, ids: Ids, h: usize, dy: &[f32]) -> Vec<f64> {
        let mut sums = vec![0.0; ids.rows * h];
        for (&id, dy) in ids.of.iter().zip(dy.chunks(h)) {
            sums[id * h..].iter_mut().zip(dy).for_each(|(sum, &dy)| *sum += f64::from(dy));
        }
        sums
    }
}

impl PositionLoops for Oracle {}

fn row(loops: &dyn PositionLoops, m: usize, h: usize, base: f64) -> Vec<f64> {
    let mut row = vec![0.0; h];
    for i in 0..h / 2 {
        let pair = loops.pair(loops.angle(m, loops.frequency(i, h, base)));
        loops.places(i, h).into_iter().zip(pair).for_each(|(place, value)| row[place] = value);
    }
    row
}

fn shift(loops: &dyn PositionLoops, h: usize, base: f64, steps: usize) -> Vec<f64> {
    let mut matrix = vec![0.0; h * h];
    for i in 0..h / 2 {
        let block = loops.block(loops.shift_angle(steps, loops.frequency(i, h, base)));
        let places = loops.shift_places(i, h);
        for (row, values) in places.into_iter().zip(block) {
            places.into_iter().zip(values).for_each(|(at, value)| matrix[row * h + at] = value);
        }
    }
    matrix
}

fn add_sinusoids(
    loops: &dyn PositionLoops,
    case: &SinusoidCase,
    position: &dyn Fn(usize, usize) -> usize,
) -> Vec<f64> {
    let [b, s, h] = case.shape;
    let mut y = Vec::with_capacity(case.x.len());
    for (text, t) in (0..b).flat_map(|text| (0..s).map(move |t| (text, t))) {
        let row = loops.row(position(text, t), h, case.base);
        let x = &case.x[(text * s + t) * h..][..h];
        y.extend(x.iter().zip(row).map(|(&x, p)| loops.sum(f64::from(x), p, h)));
    }
    y
}

fn add_learned(
    loops: &dyn PositionLoops,
    case: &LearnedCase,
    position: &dyn Fn(usize, usize) -> usize,
) -> Vec<f64> {
    let [b, s, h] = case.shape;
    let mut y = Vec::with_capacity(case.x.len());
    for (text, t) in (0..b).flat_map(|text| (0..s).map(move |t| (text, t))) {
        let row = position(text, t);
        let x = &case.x[(text * s + t) * h..][..h];
        let p = |j| f64::from(element(&case.table, h, row, j));
        y.extend(x.iter().enumerate().map(|(j, &x)| loops.learned_sum(f64::from(x), p(j))));
    }
    y
}

fn dtable(loops: &dyn PositionLoops, case: &LearnedCase, dy: &[f32]) -> Vec<f64> {
    let [b, s, h] = case.shape;
    let mut sums = vec![0.0; case.max_seq_len * h];
    for (token, dy) in dy.chunks(h).enumerate() {
        let first = loops.gradient_row(case, token % s) * h;
        // A bug may name a row that is not there.
        for (sum, &dy) in sums.iter_mut().skip(first).zip(dy) {
            *sum = loops.add(*sum, f64::from(dy), b);
        }
    }
    sums
}

/// Element `j` of a row, or 0 where there is no such row. (A bug may ask for one.)
fn element(table: &[f32], h: usize, row: usize, j: usize) -> f32 {
    table.get(row.saturating_mul(h).saturating_add(j)).copied().unwrap_or(0.0)
}

/// Refuses a text whose `rows` rows end past the table, with the numbers.
#[inline(never)]
pub fn check_rows(case: &LearnedCase, rows: usize) -> Reply<()> {
    let (start, ms) = (case.offset, case.max_seq_len);
    let end = start.checked_add(rows).ok_or_else(|| Refusal::new("no such position"))?;
    let words = || format!("positions {start}..{end} are not in a table of {ms} rows");
    (end <= ms).then_some(()).ok_or_else(|| Refusal::new(words()))
}

/// Refuses a position that a table of `rows` rows does not have, with the numbers.
#[inline(never)]
pub fn check_below(ids: &[usize], rows: usize) -> Reply<()> {
    let past = ids.iter().find(|&&id| id >= rows);
    let words = |id| Refusal::new(format!("position {id} is not in a table of {rows} rows"));
    past.map_or(Ok(()), |id| Err(words(id)))
}

#[inline(never)]
fn require(good: bool, got: &dyn fmt::Display, rule: &str) -> Reply<()> {
    if good { Ok(()) } else { Err(Refusal::new(format!("{got} is not {rule}"))) }
}

#[inline(never)]
fn check_length(name: &str, shape: &[usize], got: usize) -> Reply<()> {
    let words = || Refusal::new(format!("{name} has {got} values, not those of {shape:?}"));
    (got == shape.iter().product::<usize>()).then_some(()).ok_or_else(words)
}

#[inline(never)]
fn round(values: Vec<f64>) -> Vec<f32> {
    values.into_iter().map(|value| value as f32).collect()
}

/// The implementation of some loops.
pub fn implementation(loops: impl PositionLoops + 'static) -> Box<dyn AbsolutePositions> {
    Box::new(Loops::<dyn PositionLoops>(Rc::new(loops)))
}

impl AbsolutePositions for Loops<dyn PositionLoops> {
    fn table(&self, hidden_size: usize, base: f64, positions: Range<usize>) -> Reply<Vec<f32>> {
        self.0.check(hidden_size, base)?;
        Ok(round(self.0.table(hidden_size, base, positions)))
    }

    fn shift(&self, hidden_size: usize, base: f64, steps: usize) -> Reply<Vec<f32>> {
        self.0.check(hidden_size, base)?;
        Ok(round(self.0.shift(hidden_size, base, steps)))
    }

    fn add_sinusoids_in(&self, _: Manner, case: &SinusoidCase) -> Reply<Vec<f32>> {
        self.0.check(case.shape[2], case.base)?;
        check_length("x", &case.shape, case.x.len())?;
        let position = |b, t| self.0.position(case, b, t);
        Ok(round(add_sinusoids(&*self.0, case, &position)))
    }

    fn sinusoids_backward_in(&self, _: Manner, case: &SinusoidCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.0.check(case.shape[2], case.base)?;
        check_length("dy", &case.shape, dy.len())?;
        Ok(dy.iter().map(|&dy| self.0.dx(f64::from(dy)) as f32).collect())
    }

    fn add_learned_in(&self, _: Manner, case: &LearnedCase) -> Reply<Vec<f32>> {
        check_length("x", &case.shape, case.x.len())?;
        check_length("table", &[case.max_seq_len, case.shape[2]], case.table.len())?;
        self.0.check_rows(case)?;
        let position = |b, t| self.0.learned_row(case, b, t);
        Ok(round(add_learned(&*self.0, case, &position)))
    }

    fn learned_backward_in(
        &self,
        _: Manner,
        case: &LearnedCase,
        dy: &[f32],
    ) -> Reply<LearnedGrads> {
        check_length("dy", &case.shape, dy.len())?;
        // The gradient has no place for other rows, no matter what the forward pass makes of them.
        check_rows(case, case.shape[1])?;
        let dx = dy.iter().map(|&dy| self.0.dx(f64::from(dy)) as f32).collect();
        Ok(LearnedGrads { dx, dtable: round(self.0.dtable(case, dy)) })
    }

    fn add_sinusoids_at(
        &self,
        _: Manner,
        case: &SinusoidCase,
        position_ids: &[usize],
    ) -> Reply<Vec<f32>> {
        let [_, s, h] = case.shape;
        self.0.check(h, case.base)?;
        check_length("x", &case.shape, case.x.len())?;
        self.0.check_ids(case.shape, position_ids)?;
        let ids = Ids { of: position_ids, s, rows: usize::MAX };
        let position = |b, t| self.0.position_at(ids, b, t);
        Ok(round(add_sinusoids(&*self.0, case, &position)))
    }

    fn add_learned_at(
        &self,
        _: Manner,
        case: &LearnedCase,
        position_ids: &[usize],
    ) -> Reply<Vec<f32>> {
        check_length("x", &case.shape, case.x.len())?;
        let ids = self.ids(case, position_ids)?;
        let position = |b, t| self.0.position_at(ids, b, t);
        Ok(round(add_learned(&*self.0, case, &position)))
    }

    fn learned_backward_at(
        &self,
        _: Manner,
        case: &LearnedCase,
        position_ids: &[usize],
        dy: &[f32],
    ) -> Reply<LearnedGrads> {
        check_length("dy", &case.shape, dy.len())?;
        let ids = self.ids(case, position_ids)?;
        check_below(position_ids, ids.rows)?; // as for an offset
        let dtable = round(self.0.dtable_at(ids, case.shape[2], dy));
        Ok(LearnedGrads { dx: dy.to_vec(), dtable })
    }
}

impl Loops<dyn PositionLoops> {
    /// The positions of a call, checked against its table.
    fn ids<'a>(&self, case: &LearnedCase, position_ids: &'a [usize]) -> Reply<Ids<'a>> {
        let [_, s, h] = case.shape;
        check_length("table", &[case.max_seq_len, h], case.table.len())?;
        self.0.check_ids(case.shape, position_ids)?;
        let ids = Ids { of: position_ids, s, rows: case.max_seq_len };
        self.0.check_below(ids)?;
        Ok(ids)
    }
}
