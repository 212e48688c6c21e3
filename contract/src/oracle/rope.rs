//! NTK-aware RoPE: each pair of dimensions turns by `position * theta_i`.

use super::{Loops, Oracle};
use crate::party::*;
use std::ops::Range;

/// The most rows of one table. More is refused, so that no input asks for all memory.
pub const MAX_ROWS: usize = 1 << 24;

/// A built module: settings that never change, and what it holds now.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// As it was built. `settings.ratio` is the first `k`.
    pub settings: RopeSettings,
    /// What it holds between calls.
    pub state: RopeState,
}

/// The steps of RoPE. A bug writes one of them wrong. `d` is the head size.
pub trait RopeLoops: Clone + 'static {
    // --- frequencies ------------------------------------------------------------------------

    /// How far down the scale plane `i` is: 0 is the fastest, 1 would be the base.
    fn exponent(&self, i: usize, d: usize) -> f64 {
        2.0 * i as f64 / d as f64
    }

    /// The base after NTK: the last plane becomes `ratio` times slower.
    fn ntk_base(&self, base: f64, ratio: f64, d: usize) -> f64 {
        base * ratio.powf(d as f64 / (d as f64 - 2.0))
    }

    /// `theta_i`, radians per position.
    fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
        self.ntk_base(base, ratio, d).powf(-self.exponent(i, d))
    }

    /// All of them, the fastest first.
    fn frequencies(&self, d: usize, base: f64, ratio: f64) -> Vec<f64> {
        (0..d / 2).map(|i| self.frequency(i, d, base, ratio)).collect()
    }

    /// Checks a head size.
    fn check_head(&self, d: usize) -> Reply<()> {
        let good = d >= 4 && d % 2 == 0;
        good.then_some(()).ok_or(Refusal(format!("head size {d} is not even and at least 4")))
    }

    /// Checks a base.
    fn check_base(&self, base: f64) -> Reply<()> {
        let good = base.is_finite() && base > 1.0;
        good.then_some(()).ok_or(Refusal(format!("base {base} is not finite and above 1")))
    }

    /// Checks an NTK ratio.
    fn check_ratio(&self, ratio: f64) -> Reply<()> {
        let good = ratio.is_finite() && ratio >= 1.0;
        good.then_some(()).ok_or(Refusal(format!("ratio {ratio} is not finite and at least 1")))
    }

    /// Checks what frequencies are made of.
    fn check(&self, d: usize, base: f64, ratio: f64) -> Reply<()> {
        self.check_head(d)?;
        self.check_base(base)?;
        self.check_ratio(ratio)
    }

    // --- tables -----------------------------------------------------------------------------

    /// How far a plane has turned at a position.
    fn angle(&self, position: usize, theta: f64) -> f64 {
        position as f64 * theta
    }

    /// Cosine and sine of an angle.
    fn cos_sin(&self, angle: f64) -> (f64, f64) {
        (angle.cos(), angle.sin())
    }

    /// The plane that column `j` of a half-split table belongs to.
    fn plane(&self, j: usize, d: usize) -> usize {
        j % (d / 2)
    }

    /// The half-split tables of some positions, rounded to `f32` once.
    fn tables(&self, d: usize, base: f64, ratio: f64, positions: Range<usize>) -> Tables {
        let frequencies = self.frequencies(d, base, ratio);
        let mut tables = Tables { cos: Vec::new(), sin: Vec::new() };
        for position in positions {
            let turn = |&theta: &f64| self.cos_sin(self.angle(position, theta));
            let turns: Vec<(f64, f64)> = frequencies.iter().map(turn).collect();
            for j in 0..d {
                let (cos, sin) = turns[self.plane(j, d)];
                tables.cos.push(cos as f32);
                tables.sin.push(sin as f32);
            }
        }
        tables
    }

    // --- rotation ---------------------------------------------------------------------------

    /// The two dimensions of plane `i`.
    fn pair(&self, layout: Layout, i: usize, d: usize) -> [usize; 2] {
        match layout {
            Layout::HalfSplit => [i, i + d / 2],
            Layout::Interleaved => [2 * i, 2 * i + 1],
        }
    }

    /// The row of the tables for batch row `b`, position `t` and head `n`, of `x` of this shape.
    fn table_row(&self, [_b, t, _n]: [usize; 3], _shape: &[usize; 4]) -> usize {
        t
    }

    /// A pair turned. `cos` and `sin` hold the tables' values at its two dimensions.
    fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        [x[0] * cos[0] - x[1] * sin[0], x[1] * cos[1] + x[0] * sin[1]]
    }

    /// The gradient of a pair: the transpose of [`RopeLoops::turn`].
    fn turn_back(&self, dy: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        [dy[0] * cos[0] + dy[1] * sin[1], dy[1] * cos[1] - dy[0] * sin[0]]
    }

    /// Checks that there is one row of tables for each row of `x`.
    fn check_rotate(&self, case: &RotateCase) -> Reply<()> {
        let [_, s, _, d] = case.shape;
        self.check_head(d)?;
        check_length("x", &case.shape, case.x.len())?;
        check_length("cos", &[s, d], case.tables.cos.len())?;
        check_length("sin", &[s, d], case.tables.sin.len())
    }

    /// `y`, `[b, s, nh, hd]`.
    fn rotate(&self, case: &RotateCase) -> Vec<f64> {
        each_pair(self, case, &case.x, |x, cos, sin| self.turn(x, cos, sin))
    }

    /// `dx`, `[b, s, nh, hd]`.
    fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Vec<f64> {
        each_pair(self, case, dy, |dy, cos, sin| self.turn_back(dy, cos, sin))
    }

    // --- layouts ----------------------------------------------------------------------------

    /// Where element `j` of an interleaved head stands when the head is half-split.
    fn half_split_place(&self, j: usize, d: usize) -> usize {
        j / 2 + j % 2 * (d / 2)
    }

    /// Heads of `d` elements, half-split, reordered to adjacent pairs.
    fn to_interleaved(&self, d: usize, x: &[f32]) -> Vec<f32> {
        (0..x.len()).map(|i| x[i - i % d + self.half_split_place(i % d, d)]).collect()
    }

    /// The inverse.
    fn to_half_split(&self, d: usize, x: &[f32]) -> Vec<f32> {
        let mut y = vec![0.0; x.len()];
        for (i, &x) in x.iter().enumerate() {
            y[i - i % d + self.half_split_place(i % d, d)] = x;
        }
        y
    }

    // --- long calls -------------------------------------------------------------------------

    /// The smallest even `k'` with `max_seq_len * k' >= length`, if it can be counted.
    fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
        length.max(1).div_ceil(max_seq_len.saturating_mul(2)).checked_mul(2)
    }

    /// [`RopeLoops::long_ratio`], or a refusal.
    fn ratio_for_length(&self, length: usize, max_seq_len: usize) -> Reply<usize> {
        if max_seq_len == 0 {
            return Err(Refusal::new("max_seq_len is 0"));
        }
        let too_long = || Refusal(format!("no ratio for {length} positions"));
        self.long_ratio(length, max_seq_len).ok_or_else(too_long)
    }

    // --- the module -------------------------------------------------------------------------

    /// Checks the settings of a module.
    fn check_settings(&self, settings: &RopeSettings) -> Reply<()> {
        self.check(settings.head_dim, settings.base, settings.ratio as f64)?;
        match settings.max_seq_len.checked_mul(settings.ratio) {
            Some(rows) if (1..=MAX_ROWS).contains(&rows) => Ok(()),
            _ => Err(Refusal(format!(
                "max_seq_len {} times ratio {} is not from 1 to {MAX_ROWS}",
                settings.max_seq_len, settings.ratio
            ))),
        }
    }

    /// What a module holds when its ratio is `settings.ratio`: a cache of `ms * k` rows.
    fn fresh(&self, settings: &RopeSettings) -> Reply<RopeState> {
        self.check_settings(settings)?;
        let &RopeSettings { head_dim, base, max_seq_len, ratio, .. } = settings;
        let cached_len = max_seq_len * ratio;
        let tables = self.tables(head_dim, base, ratio as f64, 0..cached_len);
        Ok(RopeState { ratio, cached_len, tables })
    }

    /// The number of positions that a call needs.
    fn end(&self, offset: usize, s: usize) -> Reply<usize> {
        offset.checked_add(s).ok_or_else(|| Refusal(format!("offset {offset} + {s} overflows")))
    }

    /// Whether the cache has them.
    fn fits(&self, end: usize, state: &RopeState) -> bool {
        end <= state.cached_len
    }

    /// The positions of a call's rows.
    fn positions(&self, offset: usize, s: usize) -> Range<usize> {
        offset..offset + s
    }

    /// The ratio of a long call.
    fn ratio_of_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<usize> {
        self.ratio_for_length(self.end(offset, s)?, machine.settings.max_seq_len)
    }

    /// Rows of the cache. Past its end stands its last row; only a bug asks for that.
    fn cached_rows(&self, machine: &Machine, positions: Range<usize>) -> Tables {
        pick_rows(&machine.state.tables, machine.settings.head_dim, positions)
    }

    /// Rows for one long call.
    fn long_rows(&self, machine: &Machine, ratio: usize, positions: Range<usize>) -> Tables {
        let RopeSettings { head_dim, base, .. } = machine.settings;
        self.tables(head_dim, base, ratio as f64, positions)
    }

    /// The rows that a call turns by.
    fn rows_of_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<Tables> {
        let positions = self.positions(offset, s);
        if self.fits(self.end(offset, s)?, &machine.state) {
            return Ok(self.cached_rows(machine, positions));
        }
        Ok(self.long_rows(machine, self.ratio_of_call(machine, offset, s)?, positions))
    }

    /// What a long call with this ratio leaves behind: nothing unless dynamic.
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        if !machine.settings.dynamic {
            return Ok(None);
        }
        self.fresh(&RopeSettings { ratio, ..machine.settings }).map(Some)
    }

    /// What a call leaves behind, if anything.
    fn after_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<Option<RopeState>> {
        if self.fits(self.end(offset, s)?, &machine.state) {
            return Ok(None);
        }
        self.after_long_call(machine, self.ratio_of_call(machine, offset, s)?)
    }

    /// Checks a call's input against the module.
    fn check_call(&self, machine: &Machine, case: &RopeCase) -> Reply<()> {
        let [_, s, _, d] = case.shape;
        if d != machine.settings.head_dim || s > MAX_ROWS {
            return Err(Refusal(format!("a module for heads of {d} and {s} rows was not built")));
        }
        self.end(case.offset, s)?;
        check_length("x", &case.shape, case.x.len())
    }

    /// One call. It changes the module last, so that a refused call changes nothing.
    fn call(&self, machine: &mut Machine, case: &RopeCase) -> Reply<Vec<f64>> {
        self.check_call(machine, case)?;
        let RopeCase { shape, offset, x } = case.clone();
        let tables = self.rows_of_call(machine, offset, shape[1])?;
        if let Some(state) = self.after_call(machine, offset, shape[1])? {
            machine.state = state;
        }
        Ok(self.rotate(&RotateCase { shape, tables, x, layout: Layout::HalfSplit }))
    }
}

impl RopeLoops for Oracle {}

/// Walks over all pairs of `values`, which are shaped like `case.x`. What is in no pair stays.
pub fn each_pair<L: RopeLoops>(
    loops: &L,
    case: &RotateCase,
    values: &[f32],
    turn: impl Fn([f64; 2], [f64; 2], [f64; 2]) -> [f64; 2],
) -> Vec<f64> {
    let [_, s, nh, d] = case.shape;
    let mut out: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
    for head in 0..values.len() / d {
        let place = [head / nh / s, head / nh % s, head % nh];
        let row = loops.table_row(place, &case.shape) * d;
        for i in 0..d / 2 {
            let pair = loops.pair(case.layout, i, d);
            let at = |of: &[f32], start: usize| pair.map(|j| f64::from(of[start + j]));
            let (cos, sin) = (at(&case.tables.cos, row), at(&case.tables.sin, row));
            let turned = turn(at(values, head * d), cos, sin);
            pair.iter().zip(turned).for_each(|(&j, value)| out[head * d + j] = value);
        }
    }
    out
}

/// Rows of a table, its last row for those past its end.
pub fn pick_rows(tables: &Tables, d: usize, rows: Range<usize>) -> Tables {
    let last = (tables.cos.len() / d).saturating_sub(1);
    let pick = |table: &[f32]| -> Vec<f32> {
        rows.clone().flat_map(|row| table.iter().skip(row.min(last) * d).take(d)).copied().collect()
    };
    Tables { cos: pick(&tables.cos), sin: pick(&tables.sin) }
}

fn check_length(name: &str, shape: &[usize], got: usize) -> Reply<()> {
    let size = shape.iter().try_fold(1usize, |size, &n| size.checked_mul(n));
    let words = || Refusal(format!("{name} has {got} values, not those of {shape:?}"));
    (size == Some(got)).then_some(()).ok_or_else(words)
}

fn round(values: Vec<f64>) -> Vec<f32> {
    values.into_iter().map(|value| value as f32).collect()
}

impl<L: RopeLoops> NtkAwareRope for Loops<L> {
    fn frequencies(&self, head_dim: usize, base: f64, ratio: f64) -> Reply<Vec<f64>> {
        self.0.check(head_dim, base, ratio)?;
        Ok(self.0.frequencies(head_dim, base, ratio))
    }

    fn tables(
        &self,
        head_dim: usize,
        base: f64,
        ratio: f64,
        positions: Range<usize>,
    ) -> Reply<Tables> {
        self.0.check(head_dim, base, ratio)?;
        if positions.len() > MAX_ROWS {
            return Err(Refusal(format!("{} rows are more than {MAX_ROWS}", positions.len())));
        }
        Ok(self.0.tables(head_dim, base, ratio, positions))
    }

    fn rotate(&self, case: &RotateCase) -> Reply<Vec<f32>> {
        self.0.check_rotate(case)?;
        Ok(round(self.0.rotate(case)))
    }

    fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.0.check_rotate(&RotateCase { x: dy.to_vec(), ..case.clone() })?;
        Ok(round(self.0.rotate_backward(case, dy)))
    }

    fn to_interleaved(&self, head_dim: usize, x: &[f32]) -> Reply<Vec<f32>> {
        self.0.check_head(head_dim)?;
        check_length("x", &[x.len() / head_dim, head_dim], x.len())?;
        Ok(self.0.to_interleaved(head_dim, x))
    }

    fn to_half_split(&self, head_dim: usize, x: &[f32]) -> Reply<Vec<f32>> {
        self.0.check_head(head_dim)?;
        check_length("x", &[x.len() / head_dim, head_dim], x.len())?;
        Ok(self.0.to_half_split(head_dim, x))
    }

    fn ratio_for_length(&self, length: usize, max_seq_len: usize) -> Reply<usize> {
        self.0.ratio_for_length(length, max_seq_len)
    }

    fn build(&self, settings: &RopeSettings) -> Reply<Box<dyn RopeModule>> {
        let machine = Machine { settings: *settings, state: self.0.fresh(settings)? };
        Ok(Box::new(Built { loops: self.0.clone(), machine }))
    }
}

/// A module over some loops.
struct Built<L> {
    loops: L,
    machine: Machine,
}

impl<L: RopeLoops> RopeModule for Built<L> {
    fn forward(&mut self, case: &RopeCase) -> Reply<Vec<f32>> {
        self.loops.call(&mut self.machine, case).map(round)
    }

    fn state(&self) -> Reply<RopeState> {
        Ok(self.machine.state.clone())
    }
}
