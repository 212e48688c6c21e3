//! A matrix of weights `[out, in]`, as it is kept for inference.
//!
//! A decoded token reads each weight once, so its time is the bytes of the weights over the speed of memory. Fewer bytes a weight
//! are more tokens a second, and each kind says what it costs: by how much a weight is off at most.

use super::mapped::{Numbers, Stored};
use super::packed::Packed;
use crate::checkpoint::problem::CheckpointProblem as Problem;
use crate::cpu::each;
use half::{bf16, f16};
use safetensors::tensor::Dtype;
use std::fmt;

/// How weights are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WeightKind {
    /// As the file has them, in the file itself: nothing is copied.
    #[default]
    AsStored,
    /// 4 bytes a weight.
    F32,
    /// 2 bytes a weight; of an `f32`, the first 8 bits of the significand stay.
    Bf16,
    /// 2 bytes a weight, with 11 bits of the significand; weights above 65,504 are refused.
    F16,
    /// 1 byte a weight, and a factor for each row: the largest of a row becomes 127 or 126.
    Int8,
    /// Half a byte a weight, and 2 bytes for the factor of each group of neighbours in a row, whose largest becomes 7.
    Int4 {
        /// How many neighbours share a factor: 32, 64 or 128.
        group_size: usize,
    },
}

impl fmt::Display for WeightKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AsStored => f.write_str("as stored"),
            Self::F32 => f.write_str("f32"),
            Self::Bf16 => f.write_str("bf16"),
            Self::F16 => f.write_str("f16"),
            Self::Int8 => f.write_str("int8"),
            Self::Int4 { group_size } => write!(f, "int4 in groups of {group_size}"),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum Values {
    F32(Numbers<f32>),
    /// The bits of each.
    Bf16(Numbers<u16>),
    /// The bits of each.
    F16(Numbers<u16>),
    Packed(Packed),
}

/// A matrix `[rows, columns]`.
#[derive(Debug, Clone)]
pub(super) struct Matrix {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) values: Values,
}

/// How far kept weights are from those of the file.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WeightError {
    /// The sum of the squares of what they are off by.
    pub(super) squares: f64,
    /// The sum of the squares of the weights.
    pub(super) of: f64,
    /// The most that one is off by.
    pub largest: f64,
}

impl WeightError {
    /// What they are off by beside what they are: the root of the mean squares of both, divided.
    pub fn relative(&self) -> f64 {
        if self.of == 0.0 { 0.0 } else { (self.squares / self.of).sqrt() }
    }

    fn add(&mut self, kept: f32, weight: f32) {
        let off = f64::from(kept) - f64::from(weight);
        self.squares += off * off;
        self.of += f64::from(weight) * f64::from(weight);
        self.largest = self.largest.max(off.abs());
    }

    pub(super) fn join(self, other: Self) -> Self {
        Self {
            squares: self.squares + other.squares,
            of: self.of + other.of,
            largest: self.largest.max(other.largest),
        }
    }
}

impl Matrix {
    /// The rows `range` of a stored matrix, kept as `kind` says, and what that costs.
    pub(super) fn of(
        (name, stored): (&str, &Stored),
        range: std::ops::Range<usize>,
        kind: WeightKind,
    ) -> Result<(Self, WeightError), Problem> {
        let (rows, columns) = (range.len(), stored.columns());
        let exact = |values| Ok((Self { rows, columns, values }, WeightError::default()));
        let part = stored.rows(range.clone());
        if stored.is_kept(kind) {
            // A file whose numbers do not lie at a multiple of their size is copied.
            macro_rules! as_stored {
                ($values:path) => {
                    match part.is_in_order(stored.size()) {
                        true => exact($values(Numbers::Mapped(part))),
                        false => exact($values(Numbers::Owned(copied(part.bytes())))),
                    }
                };
            }
            return match stored.dtype {
                Dtype::F32 => as_stored!(Values::F32),
                Dtype::BF16 => as_stored!(Values::Bf16),
                _ => as_stored!(Values::F16),
            };
        }
        if ![Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16].contains(&stored.dtype) {
            let got = format!("{:?}", stored.dtype);
            return Err(Problem::FloatType { name: name.into(), got });
        }
        let mut error = WeightError::default();
        let mut row = vec![0.0; columns];
        // Each row, once it is known to have numbers only.
        let mut each_row = |keep: &mut dyn FnMut(usize, &[f32], &mut WeightError)| {
            for nth in 0..rows {
                stored.read(range.start + nth, &mut row);
                if let Some(at) = row.iter().position(|w| !w.is_finite()) {
                    let (place, value) = ((range.start + nth) * columns + at, row[at].into());
                    return Err(Problem::NotFinite { name: name.into(), place, value });
                }
                keep(nth, &row, &mut error);
            }
            Ok(())
        };
        let mut halves = |narrow: fn(f32) -> u16, wide: fn(u16) -> f32| {
            let (mut kept, mut large) = (Vec::with_capacity(rows * columns), None);
            each_row(&mut |nth, row, error| {
                for (at, w) in row.iter().enumerate() {
                    let half = narrow(*w);
                    if !wide(half).is_finite() && large.is_none() {
                        large = Some(((range.start + nth) * columns + at, f64::from(*w)));
                    }
                    error.add(wide(half), *w);
                    kept.push(half);
                }
            })?;
            match large {
                Some((place, value)) => Err(Problem::TooLarge { name: name.into(), place, value }),
                None => Ok(Numbers::Owned(kept)),
            }
        };
        let values = match kind {
            WeightKind::Bf16 => {
                let wide = |bits| bf16::from_bits(bits).to_f32();
                Values::Bf16(halves(|w| bf16::from_f32(w).to_bits(), wide)?)
            }
            WeightKind::F16 => {
                let wide = |bits| f16::from_bits(bits).to_f32();
                Values::F16(halves(|w| f16::from_f32(w).to_bits(), wide)?)
            }
            WeightKind::AsStored | WeightKind::F32 => {
                let mut all = Vec::with_capacity(rows * columns);
                each_row(&mut |_, row, _| all.extend_from_slice(row))?;
                Values::F32(Numbers::Owned(all))
            }
            WeightKind::Int8 | WeightKind::Int4 { .. } => {
                let mut packed = match kind {
                    WeightKind::Int4 { group_size } => Packed::new(4, [rows, columns], group_size),
                    _ => Packed::new(8, [rows, columns], columns),
                };
                let mut back = vec![0.0; columns];
                each_row(&mut |nth, row, error| {
                    packed.set(nth, row);
                    packed.get(nth, &mut back);
                    row.iter().zip(&back).for_each(|(w, back)| error.add(*back, *w));
                })?;
                Values::Packed(packed)
            }
        };
        Ok((Self { rows, columns, values }, error))
    }

    /// Bytes that a product reads.
    pub(super) fn bytes(&self) -> usize {
        let all = self.rows * self.columns;
        match &self.values {
            Values::F32(_) => 4 * all,
            Values::Bf16(_) | Values::F16(_) => 2 * all,
            Values::Packed(packed) => packed.bytes(),
        }
    }

    /// Whether it lies in its file.
    pub(super) fn is_mapped(&self) -> bool {
        matches!(
            self.values,
            Values::F32(Numbers::Mapped(_))
                | Values::Bf16(Numbers::Mapped(_))
                | Values::F16(Numbers::Mapped(_))
        )
    }

    /// One row, as `f32`.
    pub(super) fn row(&self, row: usize, into: &mut [f32]) {
        let (columns, first) = (self.columns, row * self.columns);
        match &self.values {
            Values::F32(all) => into.copy_from_slice(&all[first..][..columns]),
            Values::Bf16(all) => {
                widen(&all[first..][..columns], into, |bits| bf16::from_bits(bits).to_f32())
            }
            Values::F16(all) => {
                widen(&all[first..][..columns], into, |bits| f16::from_bits(bits).to_f32())
            }
            Values::Packed(packed) => packed.get(row, into),
        }
    }

    /// Some rows, as `f32`: those that are there, or copies.
    pub(super) fn rows(&self, range: std::ops::Range<usize>) -> std::borrow::Cow<'_, [f32]> {
        if let Values::F32(all) = &self.values {
            return all[range.start * self.columns..range.end * self.columns].into();
        }
        let mut rows = vec![0.0; range.len() * self.columns];
        for (row, into) in range.zip(rows.chunks_mut(self.columns)) {
            self.row(row, into);
        }
        rows.into()
    }

    /// The place of the first weight that is no finite number.
    pub(super) fn not_finite(&self) -> Option<(usize, f64)> {
        const PIECE: usize = 64;
        let found = std::sync::Mutex::new(None);
        let pieces = (0..self.rows).step_by(PIECE);
        each(self.rows * self.columns, pieces, |first| {
            let rows = self.rows(first..self.rows.min(first + PIECE));
            if let Some(place) = rows.iter().position(|w| !w.is_finite()) {
                let mut found = found.lock().unwrap_or_else(|e| e.into_inner());
                let at = (first * self.columns + place, f64::from(rows[place]));
                *found = found.filter(|(other, _)| *other < at.0).or(Some(at));
            }
        });
        found.into_inner().unwrap_or_else(|e| e.into_inner())
    }
}

fn widen<T: Copy>(from: &[T], into: &mut [f32], wide: impl Fn(T) -> f32) {
    into.iter_mut().zip(from).for_each(|(into, from)| *into = wide(*from));
}

/// Numbers that lie at any place.
fn copied<T: bytemuck::Pod>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}
