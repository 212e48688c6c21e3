//! Tables of cosines and sines.
//!
//! Angles are built in `f64` and only their cosines and sines are rounded to `f32`. An `f32`
//! angle at position `n` is wrong by up to `n * 2^-23`. These tables are within `1e-7` of the truth
//! up to position `3 * 10^8`; the `f64` angle itself is off by at most `n * 2^-52`.

use super::formula::{apply_rotary, check_rotary};
use super::frequencies::check_head_dim;
use super::fused;
use super::layouts::{Layout, Pairs, check_heads};
use crate::checks::{check_size, require, same_shape};
use crate::cpu::{each, rows_of_a_piece};
use crate::error::{Error, Result};
use crate::positions::Places;
use crate::tensor::*;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

/// The most positions a table may have. A table of this length with `hd = 128` takes 16 GiB.
pub const MAX_TABLE_POSITIONS: usize = 1 << 24;

/// Cosines and sines of a range of positions, each `[positions, hd]`, in one [`Layout`].
///
/// All rotations of this crate are such tables: an angle and a scale for each row and plane.
#[derive(Debug, Clone)]
pub struct RotaryTables<H: Dim, D: Storage<f32>> {
    /// `cos(m * theta_i)`.
    pub cos: Tensor<(usize, H), f32, D>,
    /// `sin(m * theta_i)`.
    pub sin: Tensor<(usize, H), f32, D>,
    pairs: Pairs,
}

impl<H: Dim, D: Device<f32>> RotaryTables<H, D> {
    /// Tables for `positions`. Each frequency appears twice in a row, where `layout` wants it.
    ///
    /// # Errors
    /// An empty range, one longer than [`MAX_TABLE_POSITIONS`] or past `2^53`; a number of frequencies
    /// that is not half of `head_dim`; one that is not finite; what the device reports.
    pub fn new(
        dev: &D,
        head_dim: H,
        frequencies: &[f64],
        positions: Range<usize>,
        layout: Layout,
    ) -> Result<Self> {
        let hd = check_head_dim(head_dim.size())?;
        if frequencies.len() != hd / 2 {
            let (expected, got) = (vec![hd / 2], vec![frequencies.len()]);
            return Err(Error::Shape { name: "frequencies", expected, got });
        }
        Self::at_places(dev, head_dim, (frequencies, 1.0), &Places::Row(positions), layout)
    }

    /// `cos` and `sin` of `position * frequency`, times the scale, a row for each place. With fewer frequencies than `hd / 2`,
    /// the elements after them stay.
    pub(crate) fn at_places(
        dev: &D,
        head_dim: H,
        (frequencies, scale): (&[f64], f64),
        places: &Places,
        layout: Layout,
    ) -> Result<Self> {
        let rows = check_rows(places.rows())?;
        check_turns(frequencies, places)?;
        let turns = (rows, frequencies.len());
        Self::from_turns(dev, head_dim, turns, layout, |row, plane| {
            (places.of_token(row) as f64 * frequencies[plane], scale)
        })
    }

    /// The same where the frequencies are those of the length of each text: `frequencies(length)` are a list of them, and
    /// the scale. All lists have as many planes.
    pub(crate) fn by_length(
        dev: &D,
        head_dim: H,
        frequencies: impl Fn(usize) -> Result<(Vec<f64>, f64)>,
        places: &Places,
        layout: Layout,
    ) -> Result<Self> {
        let rows = check_rows(places.rows())?;
        let lengths = places.lengths();
        let mut of_length = BTreeMap::new();
        for &length in &lengths {
            if let Entry::Vacant(place) = of_length.entry(length) {
                let (thetas, scale) = frequencies(length)?;
                check_turns(&thetas, places)?;
                place.insert((thetas, scale));
            }
        }
        let turns: Vec<_> = lengths.iter().map(|length| &of_length[length]).collect();
        let planes = turns[0].0.len();
        Self::from_turns(dev, head_dim, (rows, planes), layout, |row, plane| {
            let (thetas, scale) = turns[row];
            (places.of_token(row) as f64 * thetas[plane], *scale)
        })
    }

    /// Tables of any turns: `turn(row, plane)` is the angle by which a plane turns in a row, and the scale of both its
    /// values. With fewer `planes` than `hd / 2`, the elements after the first `2 * planes` of a head stay as they are.
    ///
    /// # Errors
    /// No rows, or more than [`MAX_TABLE_POSITIONS`]; no planes, or more than `hd / 2`; an angle or a scale that is not
    /// finite, the scale also in `f32`; what the device reports.
    pub fn from_turns(
        dev: &D,
        head_dim: H,
        (rows, planes): (usize, usize),
        layout: Layout,
        turn: impl Fn(usize, usize) -> (f64, f64) + Send + Sync,
    ) -> Result<Self> {
        let (hd, rows) = (head_dim.size(), check_rows(rows)?);
        let pairs = Pairs::new(layout, hd, planes)?;
        let (mut cos, mut sin) = (Vec::new(), Vec::new());
        for (table, unturned) in [(&mut cos, 1.0), (&mut sin, 0.0)] {
            table.try_reserve_exact(rows * hd).map_err(Error::device)?;
            table.resize(rows * hd, unturned);
        }
        // ANCHOR: tables
        // `turn` gives the angle, position times frequency, and a factor, which is 1 for plain RoPE.
        let fill = |row: usize, cos: &mut [f32], sin: &mut [f32]| {
            for plane in 0..planes {
                let (angle, scale) = turn(row, plane);
                let (s, c) = angle.sin_cos(); // the angle in f64
                for j in pairs.of(plane) {
                    (cos[j], sin[j]) = ((c * scale) as f32, (s * scale) as f32);
                }
            }
        };
        // ANCHOR_END: tables
        let piece = rows_of_a_piece(hd);
        let pieces = cos.chunks_mut(piece * hd).zip(sin.chunks_mut(piece * hd));
        each(rows * hd, pieces.enumerate(), |(nth, (cos, sin))| {
            let rows = cos.chunks_mut(hd).zip(sin.chunks_mut(hd));
            rows.zip(nth * piece..).for_each(|((cos, sin), row)| fill(row, cos, sin));
        });
        if let Some(at) = cos.iter().zip(&sin).position(|(c, s)| !(c.is_finite() && s.is_finite()))
        {
            let plane = (0..planes).find(|plane| pairs.of(*plane).contains(&(at % hd)));
            let (angle, scale) = turn(at / hd, plane.unwrap_or(0));
            require(angle.is_finite(), "every angle", "finite", angle)?;
            return Err(Error::Setting { name: "every scale", rule: "a finite f32", got: scale });
        }
        Ok(Self {
            cos: dev.try_tensor_from_vec(cos, (rows, head_dim)).map_err(Error::device)?,
            sin: dev.try_tensor_from_vec(sin, (rows, head_dim)).map_err(Error::device)?,
            pairs,
        })
    }

    /// The rows `range`, counted from the table's first: each table `[rows, hd]`.
    ///
    /// # Errors
    /// A range that is empty or ends past the table; what the device reports.
    pub fn rows(&self, range: Range<usize>) -> Result<Self> {
        let rows = self.cos.shape().0;
        if range.is_empty() || range.end > rows {
            return Err(Error::Rows { start: range.start, end: range.end, rows });
        }
        same_shape("sin", &self.cos.shape().concrete(), &self.sin.shape().concrete())?;
        // The tables are public, and may have been broadcast to any shape.
        check_size("cos", self.cos.shape())?;
        let cut = |table: &Tensor<(usize, H), f32, D>| table.clone().try_slice((range.clone(), ..));
        let run = || -> Raw<_, D> { Ok((cut(&self.cos)?, cut(&self.sin)?)) };
        let (cos, sin) = run().map_err(Error::device)?;
        Ok(Self { cos, sin, pairs: self.pairs })
    }

    /// Where a row has each frequency twice.
    pub fn layout(&self) -> Layout {
        self.pairs.layout
    }

    /// How many elements of a head turn: its first. The others stay as they are, bit for bit.
    pub fn rotary_dim(&self) -> usize {
        self.pairs.rotary_dim
    }

    /// Turns `x`, `[b, s, nh, hd]`, in the layout of these tables. Row `t` of the tables is for row
    /// `t` of `x`.
    ///
    /// # Errors
    /// As for [`apply_rotary_pos_emb`](super::apply_rotary_pos_emb).
    pub fn rotate<B: Dim, S: Dim, N: Dim, F: Float, T: Tape<F, D>>(
        &self,
        x: Tensor<(B, S, N, H), F, D, T>,
    ) -> Result<Tensor<(B, S, N, H), F, D, T>>
    where
        D: Backend<F>,
    {
        check_rotary(x.shape(), self.cos.shape(), self.sin.shape())?;
        self.rotate_each(x)
    }

    /// The same, also by `b * s` rows: one for each token, text after text.
    pub(crate) fn rotate_each<B: Dim, S: Dim, N: Dim, F: Float, T: Tape<F, D>>(
        &self,
        x: Tensor<(B, S, N, H), F, D, T>,
    ) -> Result<Tensor<(B, S, N, H), F, D, T>>
    where
        D: Backend<F>,
    {
        apply_rotary(x, &self.cos, &self.sin, self.pairs)
    }

    /// As [`rotate_each`](Self::rotate_each), where each token takes the row of its place. A CPU reads the rows where they are, so
    /// a call in a long table costs what it costs in a short one.
    pub(crate) fn rotate_from<B: Dim, S: Dim, N: Dim, F: Float, T: Tape<F, D>>(
        &self,
        x: Tensor<(B, S, N, H), F, D, T>,
        places: &Places,
    ) -> Result<Tensor<(B, S, N, H), F, D, T>>
    where
        D: Backend<F>,
    {
        check_heads(x.shape())?;
        places.check_below(self.cos.shape().0)?;
        let (x, mut tape) = x.try_in_order().map_err(Error::device)?.split_tape();
        let tables = (&self.cos, &self.sin);
        let fused = fused::apply_rotary(&x, tables, places, &mut tape, self.pairs);
        if let Some(y) = fused.map_err(Error::device)? {
            return Ok(y.put_tape(tape));
        }
        let own = match places {
            Places::Row(range) => self.rows(range.clone())?,
            Places::Each { ids, .. } => self.gather(ids).map_err(Error::device)?,
        };
        own.rotate_each(x.put_tape(tape))
    }

    /// A row for each of these: each table `[rows, hd]`. All must be there.
    fn gather(&self, rows: &[usize]) -> Raw<Self, D> {
        let rows = self.cos.device().try_tensor_from_vec(rows.to_vec(), (rows.len(),))?;
        let (cos, sin) = (self.cos.clone(), self.sin.clone());
        let (cos, sin) = (cos.try_gather(rows.clone())?, sin.try_gather(rows)?);
        Ok(Self { cos, sin, pairs: self.pairs })
    }
}

/// The last position, and each frequency times it, are numbers that can be held.
fn check_turns(frequencies: &[f64], places: &Places) -> Result<()> {
    let last = (places.end() - 1) as f64;
    let rule = "below 2^53, where f64 holds every whole number";
    require(places.end() as u64 <= 1 << 53, "every position", rule, last)?;
    for theta in frequencies {
        let rule = "finite, also times the last position";
        require((last * theta).is_finite(), "every frequency", rule, *theta)?;
    }
    Ok(())
}

fn check_rows(rows: usize) -> Result<usize> {
    match rows {
        0 => Err(Error::Empty { name: "positions", shape: vec![0] }),
        1..=MAX_TABLE_POSITIONS => Ok(rows),
        _ => Err(Error::TooManyPositions { rows, limit: MAX_TABLE_POSITIONS }),
    }
}
