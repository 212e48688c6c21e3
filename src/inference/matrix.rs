//! A matrix of weights `[out, in]`, as it is kept for inference.
//!
//! A decoded token reads each weight once, so its time is the bytes of the weights over the speed of memory. Fewer bytes a weight
//! are more tokens a second, and each kind says what it costs: by how much a weight is off at most.

use super::mapped::{Numbers, Stored};
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
    /// 1 byte a weight, and a factor for each row: the largest of a row becomes 127.
    Int8,
    /// Half a byte a weight, and a factor for each group of neighbours in a row: the largest of a group becomes 7.
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

/// Weights of 4 bits that lie together: the first half of them in the low bits of each byte.
pub(super) const NIBBLES: usize = 32;

#[derive(Debug, Clone)]
pub(super) enum Values {
    F32(Numbers<f32>),
    Bf16(Numbers<bf16>),
    F16(Numbers<f16>),
    /// `w = q * scale of its row`
    Int8 {
        q: Vec<i8>,
        scales: Vec<f32>,
    },
    /// `w = (q - 8) * scale of its group`; a row ends with a whole group, filled up with zeros.
    Int4 {
        q: Vec<u8>,
        scales: Vec<f16>,
        group_size: usize,
    },
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
        let columns = stored.shape.get(1).copied().unwrap_or(1);
        let rows = range.len();
        let part =
            stored.part.numbers(range.start * columns, rows * columns, stored.dtype.bitsize() / 8);
        let exact = |values| Ok((Self { rows, columns, values }, WeightError::default()));
        let refused =
            || Problem::FloatType { name: name.into(), got: format!("{:?}", stored.dtype) };
        let in_place = kind == WeightKind::AsStored;
        // A file whose numbers do not lie at a multiple of their size is copied.
        macro_rules! stored_as {
            ($float:ty, $values:path, $same:expr) => {
                if in_place || kind == $same {
                    return match bytemuck::try_cast_slice::<u8, $float>(part.bytes()) {
                        Ok(_) => exact($values(Numbers::Mapped(part))),
                        Err(_) => exact($values(Numbers::Owned(bytemuck::pod_collect_to_vec(
                            part.bytes(),
                        )))),
                    };
                }
            };
        }
        match stored.dtype {
            Dtype::F32 => stored_as!(f32, Values::F32, WeightKind::F32),
            Dtype::BF16 => stored_as!(bf16, Values::Bf16, WeightKind::Bf16),
            Dtype::F16 => stored_as!(f16, Values::F16, WeightKind::F16),
            Dtype::F64 => {}
            _ => return Err(refused()),
        }
        let read = |row: usize, into: &mut [f32]| stored.read(range.start + row, into);
        let mut error = WeightError::default();
        let mut row = vec![0.0; columns];
        let mut all = Vec::new();
        let values = match kind {
            WeightKind::AsStored | WeightKind::F32 => {
                all.resize(rows * columns, 0.0);
                for (nth, into) in all.chunks_mut(columns).enumerate() {
                    read(nth, into);
                }
                Values::F32(Numbers::Owned(all))
            }
            WeightKind::Bf16 => {
                let mut kept = Vec::with_capacity(rows * columns);
                for nth in 0..rows {
                    read(nth, &mut row);
                    kept.extend(row.iter().map(|w| bf16::from_f32(*w)));
                    row.iter()
                        .zip(&kept[nth * columns..])
                        .for_each(|(w, k)| error.add(k.to_f32(), *w));
                }
                Values::Bf16(Numbers::Owned(kept))
            }
            WeightKind::F16 => {
                let mut kept = Vec::with_capacity(rows * columns);
                for nth in 0..rows {
                    read(nth, &mut row);
                    kept.extend(row.iter().map(|w| f16::from_f32(*w)));
                    row.iter()
                        .zip(&kept[nth * columns..])
                        .for_each(|(w, k)| error.add(k.to_f32(), *w));
                }
                if let Some(place) = kept.iter().position(|k: &f16| !k.is_finite()) {
                    read(place / columns, &mut row);
                    let value = row[place % columns].into();
                    return Err(Problem::TooLarge { name: name.into(), place, value });
                }
                Values::F16(Numbers::Owned(kept))
            }
            WeightKind::Int8 => {
                let (mut q, mut scales) = (vec![0; rows * columns], vec![0.0; rows]);
                for (nth, (q, scale)) in q.chunks_mut(columns).zip(&mut scales).enumerate() {
                    read(nth, &mut row);
                    *scale = to_int8(&row, q);
                    for (q, w) in q.iter().zip(&row) {
                        error.add(f32::from(*q) * *scale, *w);
                    }
                }
                Values::Int8 { q, scales }
            }
            WeightKind::Int4 { group_size } => {
                let groups = columns.div_ceil(group_size);
                let width = groups * group_size;
                let mut q = vec![0; rows * width / 2];
                let mut scales = vec![f16::ZERO; rows * groups];
                row.resize(width, 0.0);
                let mut back = vec![0.0; width];
                let of_rows = q.chunks_mut(width / 2).zip(scales.chunks_mut(groups));
                for (nth, (q, scales)) in of_rows.enumerate() {
                    read(nth, &mut row[..columns]);
                    to_int4(&row, group_size, q, scales);
                    of_int4(q, scales, group_size, &mut back);
                    row.iter().zip(&back).for_each(|(w, back)| error.add(*back, *w));
                }
                Values::Int4 { q, scales, group_size }
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
            Values::Int8 { q, scales } => q.len() + 4 * scales.len(),
            Values::Int4 { q, scales, .. } => q.len() + 2 * scales.len(),
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
            Values::Bf16(all) => widen(&all[first..][..columns], into, bf16::to_f32),
            Values::F16(all) => widen(&all[first..][..columns], into, f16::to_f32),
            Values::Int8 { q, scales } => {
                widen(&q[first..][..columns], into, |q| f32::from(q) * scales[row]);
            }
            Values::Int4 { q, scales, group_size } => {
                let groups = columns.div_ceil(*group_size);
                let half = groups * group_size / 2;
                of_int4(
                    &q[row * half..][..half],
                    &scales[row * groups..][..groups],
                    *group_size,
                    into,
                );
            }
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

/// Rounds a row to whole numbers from -127 to 127, and returns what one of them stands for.
pub(super) fn to_int8(row: &[f32], q: &mut [i8]) -> f32 {
    let largest = row.iter().fold(0.0f32, |a, w| a.max(w.abs()));
    let scale = largest / 127.0;
    let over = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    q.iter_mut().zip(row).for_each(|(q, w)| *q = (w * over).round() as i8);
    scale
}

/// Rounds each group of a row to whole numbers from -7 to 7. The scale is rounded first, so that what is rounded is divided by
/// the number that it will be multiplied by.
fn to_int4(row: &[f32], group_size: usize, q: &mut [u8], scales: &mut [f16]) {
    let groups = row.chunks(group_size).zip(q.chunks_mut(group_size / 2)).zip(scales);
    for ((group, q), scale) in groups {
        let largest = group.iter().fold(0.0f32, |a, w| a.max(w.abs()));
        *scale = f16::from_f32(largest / 7.0);
        let one = scale.to_f32();
        let over = if one > 0.0 && one.is_finite() { 1.0 / one } else { 0.0 };
        let of = |w: f32| ((w * over).round().clamp(-7.0, 7.0) + 8.0) as u8;
        for (weights, q) in group.chunks(NIBBLES).zip(q.chunks_mut(NIBBLES / 2)) {
            let (low, high) = weights.split_at(NIBBLES / 2);
            for ((q, low), high) in q.iter_mut().zip(low).zip(high) {
                *q = of(*low) | of(*high) << 4;
            }
        }
    }
}

/// The weights of a row of 4 bits, as many as `into` has.
fn of_int4(q: &[u8], scales: &[f16], group_size: usize, into: &mut [f32]) {
    for (place, into) in into.iter_mut().enumerate() {
        let (block, within) = (place / NIBBLES, place % NIBBLES);
        let byte = q[block * NIBBLES / 2 + within % (NIBBLES / 2)];
        let q = if within < NIBBLES / 2 { byte & 15 } else { byte >> 4 };
        *into = (f32::from(q) - 8.0) * scales[place / group_size].to_f32();
    }
}
