//! NTK-aware RoPE: each pair of dimensions turns by `position * theta_i`.

use crate::interface::one_each;
use crate::oracle::{Loops, Oracle};
use crate::rope::interface::*;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

/// The most values of one table. More is refused, so that no input asks for all memory.
pub const MAX_CELLS: usize = 1 << 26;

/// A built module: settings that never change, and what it holds now.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// As it was built. `settings.ratio` is the first `k`.
    pub settings: RopeSettings,
    /// What it holds between calls.
    pub state: RopeState,
}

/// Any loops as a trait object. What goes over many steps is written for these, below the trait, so that
/// it is compiled once and not once a bug.
pub trait AsRopeLoops {
    /// Itself.
    fn as_loops(&self) -> &dyn RopeLoops;
}

impl<L: RopeLoops> AsRopeLoops for L {
    fn as_loops(&self) -> &dyn RopeLoops {
        self
    }
}

/// The steps of RoPE. A bug writes one of them wrong. `d` is the head size.
pub trait RopeLoops: AsRopeLoops {
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
        frequencies(self.as_loops(), d, base, ratio)
    }

    /// Checks a head size.
    fn check_head(&self, d: usize) -> Reply<()> {
        require(
            (4..=1 << 16).contains(&d) && d.is_multiple_of(2),
            &d,
            "a head size: even, at least 4",
        )
    }

    /// Checks a base.
    fn check_base(&self, base: f64) -> Reply<()> {
        require(base.is_finite() && base > 1.0, &base, "a base: finite, above 1")
    }

    /// Checks an NTK ratio.
    fn check_ratio(&self, ratio: f64) -> Reply<()> {
        require(ratio.is_finite() && ratio >= 1.0, &ratio, "a ratio: finite, at least 1")
    }

    /// Checks what frequencies are made of.
    fn check(&self, d: usize, base: f64, ratio: f64) -> Reply<()> {
        check(self.as_loops(), d, base, ratio)
    }

    // --- tables -----------------------------------------------------------------------------

    /// How far a plane has turned at a position.
    fn angle(&self, position: usize, theta: f64) -> f64 {
        position as f64 * theta
    }

    /// Cosine and sine of an angle.
    fn cos_sin(&self, angle: f64) -> (f64, f64) {
        let (sin, cos) = angle.sin_cos();
        (cos, sin)
    }

    /// The plane that column `j` of a half-split table belongs to.
    fn plane(&self, j: usize, d: usize) -> usize {
        j % (d / 2)
    }

    /// The half-split tables of some positions, rounded to `f32` once.
    fn tables(&self, d: usize, base: f64, ratio: f64, positions: Range<usize>) -> Tables {
        tables(self.as_loops(), d, base, ratio, positions)
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
        check_rotate(self.as_loops(), case)
    }

    /// `y`, `[b, s, nh, hd]`.
    fn rotate(&self, case: &RotateCase) -> Vec<f64> {
        rotate(self.as_loops(), case)
    }

    /// `dx`, `[b, s, nh, hd]`.
    fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Vec<f64> {
        rotate_backward(self.as_loops(), case, dy)
    }

    // --- layouts ----------------------------------------------------------------------------

    /// Where element `j` of an interleaved head is when the head is half-split.
    fn half_split_place(&self, j: usize, d: usize) -> usize {
        j / 2 + j % 2 * (d / 2)
    }

    /// Heads of `d` elements, half-split, reordered to adjacent pairs.
    fn to_interleaved(&self, d: usize, x: &[f32]) -> Vec<f32> {
        to_interleaved(self.as_loops(), d, x)
    }

    /// The inverse.
    fn to_half_split(&self, d: usize, x: &[f32]) -> Vec<f32> {
        to_half_split(self.as_loops(), d, x)
    }

    // --- long calls -------------------------------------------------------------------------

    /// The smallest even `k'` with `max_seq_len * k' >= length`, if it can be counted.
    fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
        length.max(1).div_ceil(max_seq_len.saturating_mul(2)).checked_mul(2)
    }

    /// [`RopeLoops::long_ratio`], or a refusal.
    fn ratio_for_length(&self, length: usize, max_seq_len: usize) -> Reply<usize> {
        ratio_for_length(self.as_loops(), length, max_seq_len)
    }

    // --- the module -------------------------------------------------------------------------

    /// Checks the settings of a module.
    fn check_settings(&self, settings: &RopeSettings) -> Reply<()> {
        check_settings(self.as_loops(), settings)
    }

    /// What a module holds when its ratio is `settings.ratio`: a cache of `ms * k` rows.
    fn fresh(&self, settings: &RopeSettings) -> Reply<RopeState> {
        fresh(self.as_loops(), settings)
    }

    /// The number of positions that a call needs.
    fn end(&self, offset: usize, s: usize) -> Reply<usize> {
        end(offset, s)
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
        ratio_of_call(self.as_loops(), machine, offset, s)
    }

    /// Rows of the cache. Past its end its last row is repeated; only a bug asks for that.
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
        rows_of_call(self.as_loops(), machine, offset, s)
    }

    /// What a long call with this ratio leaves behind: nothing unless dynamic.
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        after_long_call(self.as_loops(), machine, ratio)
    }

    /// What a call leaves behind, if anything.
    fn after_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<Option<RopeState>> {
        after_call(self.as_loops(), machine, offset, s)
    }

    /// Checks a call's input against the module.
    fn check_call(&self, machine: &Machine, case: &RopeCase) -> Reply<()> {
        check_call(self.as_loops(), machine, case)
    }

    /// One call. It changes the module last, so that a refused call changes nothing.
    fn call(&self, machine: &mut Machine, case: &RopeCase) -> Reply<Vec<f64>> {
        call(self.as_loops(), machine, case)
    }

    /// The gradient through one call.
    fn call_back(&self, machine: &mut Machine, case: &RopeCase, dy: &[f32]) -> Reply<Vec<f64>> {
        call_back(self.as_loops(), machine, case, dy)
    }

    // --- a position for each token ----------------------------------------------------------

    /// Checks that there is one, `[b, s]`.
    fn check_ids(&self, [b, s, _, _]: [usize; 4], ids: &[usize]) -> Reply<()> {
        one_each(ids, [b, s])
    }

    /// The position of token `t` of batch row `b`.
    fn position(&self, ids: &[usize], s: usize, [b, t]: [usize; 2]) -> usize {
        ids[b * s + t]
    }

    /// The same on the way back.
    fn position_back(&self, ids: &[usize], s: usize, place: [usize; 2]) -> usize {
        self.position(ids, s, place)
    }

    /// The length of a token's text, which its frequencies follow.
    fn length_of_text(&self, ids: &[usize], s: usize, place: [usize; 2]) -> usize {
        length_of_text(ids, s, place)
    }

    /// One call.
    fn call_at(&self, machine: &mut Machine, case: &RopeCase, ids: &[usize]) -> Reply<Vec<f64>> {
        call_at(self.as_loops(), machine, case, ids)
    }

    /// The gradient through one call.
    fn call_back_at(
        &self,
        machine: &mut Machine,
        case: &RopeCase,
        ids: &[usize],
        dy: &[f32],
    ) -> Reply<Vec<f64>> {
        call_back_at(self.as_loops(), machine, case, ids, dy)
    }
}

impl RopeLoops for Oracle {}

// --- what goes over many steps ----------------------------------------------------------------
// Not inlined: there are well over a hundred bugs, and each would get its own copy.

#[inline(never)]
fn frequencies(loops: &dyn RopeLoops, d: usize, base: f64, ratio: f64) -> Vec<f64> {
    (0..d / 2).map(|i| loops.frequency(i, d, base, ratio)).collect()
}

#[inline(never)]
fn check(loops: &dyn RopeLoops, d: usize, base: f64, ratio: f64) -> Reply<()> {
    loops.check_head(d)?;
    loops.check_base(base)?;
    loops.check_ratio(ratio)
}

#[inline(never)]
fn tables(
    loops: &dyn RopeLoops,
    d: usize,
    base: f64,
    ratio: f64,
    positions: Range<usize>,
) -> Tables {
    let frequencies = loops.frequencies(d, base, ratio);
    let mut tables = Tables { cos: Vec::new(), sin: Vec::new() };
    for position in positions {
        let turn = |&theta: &f64| loops.cos_sin(loops.angle(position, theta));
        let turns: Vec<(f64, f64)> = frequencies.iter().map(turn).collect();
        for j in 0..d {
            let (cos, sin) = turns[loops.plane(j, d)];
            tables.cos.push(cos as f32);
            tables.sin.push(sin as f32);
        }
    }
    tables
}

#[inline(never)]
fn check_rotate(loops: &dyn RopeLoops, case: &RotateCase) -> Reply<()> {
    let [_, s, _, d] = case.shape;
    loops.check_head(d)?;
    check_length("x", &case.shape, case.x.len())?;
    check_length("cos", &[s, d], case.tables.cos.len())?;
    check_length("sin", &[s, d], case.tables.sin.len())
}

#[inline(never)]
fn to_interleaved(loops: &dyn RopeLoops, d: usize, x: &[f32]) -> Vec<f32> {
    (0..x.len()).map(|i| x[i - i % d + loops.half_split_place(i % d, d)]).collect()
}

#[inline(never)]
fn to_half_split(loops: &dyn RopeLoops, d: usize, x: &[f32]) -> Vec<f32> {
    let mut y = vec![0.0; x.len()];
    for (i, &x) in x.iter().enumerate() {
        y[i - i % d + loops.half_split_place(i % d, d)] = x;
    }
    y
}

#[inline(never)]
fn ratio_for_length(loops: &dyn RopeLoops, length: usize, max_seq_len: usize) -> Reply<usize> {
    if max_seq_len == 0 {
        return Err(Refusal::new("max_seq_len is 0"));
    }
    let too_long = || Refusal::new(format!("no ratio for {length} positions"));
    loops.long_ratio(length, max_seq_len).ok_or_else(too_long)
}

#[inline(never)]
fn check_settings(loops: &dyn RopeLoops, settings: &RopeSettings) -> Reply<()> {
    loops.check(settings.head_dim, settings.base, settings.ratio as f64)?;
    let rows = settings.max_seq_len.saturating_mul(settings.ratio);
    if rows == 0 {
        return Err(Refusal::new("max_seq_len is 0"));
    }
    check_size(rows, settings.head_dim)
}

#[inline(never)]
fn fresh(loops: &dyn RopeLoops, settings: &RopeSettings) -> Reply<RopeState> {
    loops.check_settings(settings)?;
    let &RopeSettings { head_dim, base, max_seq_len, ratio, .. } = settings;
    let cached_len = max_seq_len * ratio;
    let tables = loops.tables(head_dim, base, ratio as f64, 0..cached_len);
    Ok(RopeState { ratio, cached_len, tables })
}

#[inline(never)]
fn end(offset: usize, s: usize) -> Reply<usize> {
    offset.checked_add(s).ok_or_else(|| Refusal::new(format!("offset {offset} + {s} overflows")))
}

#[inline(never)]
fn ratio_of_call(
    loops: &dyn RopeLoops,
    machine: &Machine,
    offset: usize,
    s: usize,
) -> Reply<usize> {
    loops.ratio_for_length(loops.end(offset, s)?, machine.settings.max_seq_len)
}

#[inline(never)]
fn rows_of_call(
    loops: &dyn RopeLoops,
    machine: &Machine,
    offset: usize,
    s: usize,
) -> Reply<Tables> {
    let positions = loops.positions(offset, s);
    if loops.fits(loops.end(offset, s)?, &machine.state) {
        return Ok(loops.cached_rows(machine, positions));
    }
    Ok(loops.long_rows(machine, loops.ratio_of_call(machine, offset, s)?, positions))
}

#[inline(never)]
fn after_call(
    loops: &dyn RopeLoops,
    machine: &Machine,
    offset: usize,
    s: usize,
) -> Reply<Option<RopeState>> {
    if loops.fits(loops.end(offset, s)?, &machine.state) {
        return Ok(None);
    }
    loops.after_long_call(machine, loops.ratio_of_call(machine, offset, s)?)
}

#[inline(never)]
fn after_long_call(
    loops: &dyn RopeLoops,
    machine: &Machine,
    ratio: usize,
) -> Reply<Option<RopeState>> {
    if !machine.settings.dynamic {
        return Ok(None);
    }
    loops.fresh(&RopeSettings { ratio, ..machine.settings }).map(Some)
}

#[inline(never)]
fn check_call(loops: &dyn RopeLoops, machine: &Machine, case: &RopeCase) -> Reply<()> {
    let [_, s, _, d] = case.shape;
    if d != machine.settings.head_dim {
        return Err(Refusal::new(format!("the module was not built for heads of {d}")));
    }
    check_size(s, d)?;
    loops.end(case.offset, s)?;
    check_length("x", &case.shape, case.x.len())
}

/// The rotation of a call. What it changes is changed then.
#[inline(never)]
fn turn_of_call(
    loops: &dyn RopeLoops,
    machine: &mut Machine,
    case: &RopeCase,
) -> Reply<RotateCase> {
    loops.check_call(machine, case)?;
    let RopeCase { shape, offset, x } = case.clone();
    let tables = loops.rows_of_call(machine, offset, shape[1])?;
    if let Some(state) = loops.after_call(machine, offset, shape[1])? {
        machine.state = state;
    }
    Ok(RotateCase { shape, tables, x, layout: Layout::HalfSplit })
}

#[inline(never)]
fn call(loops: &dyn RopeLoops, machine: &mut Machine, case: &RopeCase) -> Reply<Vec<f64>> {
    Ok(loops.rotate(&turn_of_call(loops, machine, case)?))
}

#[inline(never)]
fn call_back(
    loops: &dyn RopeLoops,
    machine: &mut Machine,
    case: &RopeCase,
    dy: &[f32],
) -> Reply<Vec<f64>> {
    Ok(loops.rotate_backward(&turn_of_call(loops, machine, case)?, dy))
}

/// Up to the last token that is further on than the one before it.
#[inline(never)]
pub fn length_of_text(ids: &[usize], s: usize, [b, t]: [usize; 2]) -> usize {
    let row = &ids[b * s..][..s];
    let last = (t..s - 1).find(|&t| row[t + 1] <= row[t]).unwrap_or(s - 1);
    row[last].saturating_add(1)
}

/// The rotation of a call with a position for each token: a row of tables for each, as if all were in one batch row.
#[inline(never)]
fn turn_at(
    loops: &dyn RopeLoops,
    machine: &mut Machine,
    case: &RopeCase,
    ids: &[usize],
    position: &dyn Fn([usize; 2]) -> usize,
) -> Reply<RotateCase> {
    let [b, s, nh, d] = case.shape;
    let case = RopeCase { offset: 0, ..case.clone() };
    loops.check_call(machine, &case)?;
    loops.check_ids(case.shape, ids)?;
    let (mut tables, mut longest) = (Tables { cos: Vec::new(), sin: Vec::new() }, 0);
    for place in (0..b * s).map(|token| [token / s, token % s]) {
        let (position, length) = (position(place), loops.length_of_text(ids, s, place));
        // What a bug makes of an offset is not asked here.
        let rows = position..Oracle.end(position, 1)?;
        let row = match loops.fits(length, &machine.state) {
            true => loops.cached_rows(machine, rows),
            false => {
                let ratio = loops.ratio_for_length(length, machine.settings.max_seq_len)?;
                loops.long_rows(machine, ratio, rows)
            }
        };
        tables.cos.extend(row.cos);
        tables.sin.extend(row.sin);
        longest = longest.max(length);
    }
    if let Some(state) = loops.after_call(machine, 0, longest)? {
        machine.state = state;
    }
    Ok(RotateCase { shape: [1, b * s, nh, d], tables, x: case.x, layout: Layout::HalfSplit })
}

#[inline(never)]
fn call_at(
    loops: &dyn RopeLoops,
    machine: &mut Machine,
    case: &RopeCase,
    ids: &[usize],
) -> Reply<Vec<f64>> {
    let position = |place| loops.position(ids, case.shape[1], place);
    Ok(loops.rotate(&turn_at(loops, machine, case, ids, &position)?))
}

#[inline(never)]
fn call_back_at(
    loops: &dyn RopeLoops,
    machine: &mut Machine,
    case: &RopeCase,
    ids: &[usize],
    dy: &[f32],
) -> Reply<Vec<f64>> {
    let position = |place| loops.position_back(ids, case.shape[1], place);
    Ok(loops.rotate_backward(&turn_at(loops, machine, case, ids, &position)?, dy))
}

#[inline(never)]
fn rotate(loops: &dyn RopeLoops, case: &RotateCase) -> Vec<f64> {
    each_pair(loops, case, &case.x, |x, cos, sin| loops.turn(x, cos, sin))
}

#[inline(never)]
fn rotate_backward(loops: &dyn RopeLoops, case: &RotateCase, dy: &[f32]) -> Vec<f64> {
    each_pair(loops, case, dy, |dy, cos, sin| loops.turn_back(dy, cos, sin))
}

/// Walks over all pairs of `values`, which are shaped like `case.x`. What is in no pair stays.
fn each_pair(
    loops: &dyn RopeLoops,
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
#[inline(never)]
pub fn pick_rows(tables: &Tables, d: usize, rows: Range<usize>) -> Tables {
    let last = (tables.cos.len() / d).saturating_sub(1);
    let pick = |table: &[f32]| -> Vec<f32> {
        rows.clone().flat_map(|row| table.iter().skip(row.min(last) * d).take(d)).copied().collect()
    };
    Tables { cos: pick(&tables.cos), sin: pick(&tables.sin) }
}

#[inline(never)]
fn require(good: bool, got: &dyn fmt::Display, rule: &str) -> Reply<()> {
    if good { Ok(()) } else { Err(Refusal::new(format!("{got} is not {rule}"))) }
}

#[inline(never)]
fn check_length(name: &str, shape: &[usize], got: usize) -> Reply<()> {
    let size = shape.iter().try_fold(1usize, |size, &n| size.checked_mul(n));
    let words = || Refusal::new(format!("{name} has {got} values, not those of {shape:?}"));
    (size == Some(got)).then_some(()).ok_or_else(words)
}

#[inline(never)]
fn check_size(rows: usize, d: usize) -> Reply<()> {
    let words = || Refusal::new(format!("a table of {rows} rows is too large"));
    (rows.saturating_mul(d) <= MAX_CELLS).then_some(()).ok_or_else(words)
}

#[inline(never)]
fn round(values: Vec<f64>) -> Vec<f32> {
    values.into_iter().map(|value| value as f32).collect()
}

/// The implementation of some loops.
pub fn implementation(loops: impl RopeLoops + 'static) -> Box<dyn NtkAwareRope> {
    Box::new(Loops::<dyn RopeLoops>(Rc::new(loops)))
}

impl NtkAwareRope for Loops<dyn RopeLoops> {
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
        check_size(positions.len(), head_dim)?;
        Ok(self.0.tables(head_dim, base, ratio, positions))
    }

    fn rotate_in(&self, _: Manner, case: &RotateCase) -> Reply<Vec<f32>> {
        self.0.check_rotate(case)?;
        Ok(round(self.0.rotate(case)))
    }

    fn rotate_backward_in(&self, _: Manner, case: &RotateCase, dy: &[f32]) -> Reply<Vec<f32>> {
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
struct Built {
    loops: Rc<dyn RopeLoops>,
    machine: Machine,
}

impl RopeModule for Built {
    fn forward_in(&mut self, _: Manner, case: &RopeCase) -> Reply<Vec<f32>> {
        self.loops.call(&mut self.machine, case).map(round)
    }

    fn backward_in(&mut self, _: Manner, case: &RopeCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.loops.call_back(&mut self.machine, case, dy).map(round)
    }

    fn forward_at(&mut self, _: Manner, case: &RopeCase, ids: &[usize]) -> Reply<Vec<f32>> {
        self.loops.call_at(&mut self.machine, case, ids).map(round)
    }

    fn backward_at(
        &mut self,
        _: Manner,
        case: &RopeCase,
        ids: &[usize],
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        self.loops.call_back_at(&mut self.machine, case, ids, dy).map(round)
    }

    fn state(&self) -> Reply<RopeState> {
        Ok(self.machine.state.clone())
    }

    fn cloned(&self) -> Reply<Box<dyn RopeModule>> {
        Ok(Box::new(Self { loops: self.loops.clone(), machine: self.machine.clone() }))
    }
}
