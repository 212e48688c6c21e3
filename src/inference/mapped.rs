//! The files of a checkpoint as they lie in memory: mapped, and read when they are used.

use super::matrix::WeightKind;
use crate::checkpoint::problem::CheckpointProblem as Problem;
use crate::checkpoint::{files, refuse};
use crate::error::Result;
use bytemuck::Pod;
use half::{bf16, f16};
use mmap_io::MemoryMappedFile;
use safetensors::tensor::{Dtype, SafeTensors};
use std::collections::BTreeMap;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file whose bytes are read from disk when they are used. It must not be written to meanwhile.
#[derive(Debug)]
struct Map(MemoryMappedFile);

impl Map {
    fn bytes(&self, range: Range<usize>) -> std::result::Result<&[u8], Problem> {
        let (first, len) = (range.start as u64, range.len() as u64);
        self.0.as_slice_bytes(first, len).map_err(|e| Problem::File(e.to_string()))
    }
}

/// Numbers in memory of their own, or in a file.
#[derive(Debug, Clone)]
pub(super) enum Numbers<T> {
    Owned(Vec<T>),
    Mapped(Part),
}

/// Some bytes of a file.
#[derive(Debug, Clone)]
pub(super) struct Part {
    map: Arc<Map>,
    range: Range<usize>,
}

impl Part {
    pub(super) fn bytes(&self) -> &[u8] {
        self.map.bytes(self.range.clone()).unwrap_or_default()
    }

    /// Whether numbers of `size` bytes lie at a multiple of their size.
    pub(super) fn is_in_order(&self, size: usize) -> bool {
        self.bytes().as_ptr() as usize % size == 0
    }
}

impl<T: Pod> Deref for Numbers<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Owned(numbers) => numbers,
            // That they are in order was seen when they were opened.
            Self::Mapped(part) => bytemuck::try_cast_slice(part.bytes()).unwrap_or_default(),
        }
    }
}

/// One tensor of a file.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    pub(super) part: Part,
    pub(super) file: PathBuf,
}

/// The tensors of a checkpoint by name. Files are mapped and checked; no weight is read yet.
pub(super) fn open(folder: &Path) -> Result<BTreeMap<String, Stored>> {
    let mut found = BTreeMap::new();
    for file in files::names(folder)? {
        let stored = of_file(&file).map_err(|problem| refuse(&file, problem))?;
        for (name, tensor) in stored {
            if found.insert(name.clone(), tensor).is_some() {
                return Err(refuse(&file, Problem::Twice { name }));
            }
        }
    }
    Ok(found)
}

fn of_file(file: &Path) -> std::result::Result<Vec<(String, Stored)>, Problem> {
    files::check_file(file, u64::MAX)?;
    let broken = |e: &dyn std::fmt::Display| Problem::NotSafetensors(e.to_string());
    if std::fs::metadata(file).map_err(|e| Problem::File(e.to_string()))?.len() == 0 {
        return Err(broken(&"it is empty"));
    }
    let map = MemoryMappedFile::open_ro(file).map_err(|e| Problem::File(e.to_string()))?;
    let map = Arc::new(Map(map));
    let bytes = map.bytes(0..map.0.len() as usize)?;
    let tensors = SafeTensors::deserialize(bytes).map_err(|e| broken(&e))?;
    let begin = bytes.as_ptr() as usize;
    let mut found = Vec::new();
    for (name, tensor) in tensors.iter() {
        if files::is_no_weight(name) {
            continue;
        }
        let first = tensor.data().as_ptr() as usize - begin;
        let range = first..first + tensor.data().len();
        let part = Part { map: map.clone(), range };
        let (dtype, shape) = (tensor.dtype(), tensor.shape().to_vec());
        found.push((name.to_string(), Stored { dtype, shape, part, file: file.into() }));
    }
    Ok(found)
}

impl Stored {
    /// Bytes of a number.
    pub(super) fn size(&self) -> usize {
        self.dtype.bitsize() / 8
    }

    /// Numbers of a row; a list has one in each.
    pub(super) fn columns(&self) -> usize {
        self.shape.get(1).copied().unwrap_or(1)
    }

    /// Whether this kind keeps the numbers as they are.
    pub(super) fn is_kept(&self, kind: WeightKind) -> bool {
        let floats = [
            (Dtype::F32, WeightKind::F32),
            (Dtype::BF16, WeightKind::Bf16),
            (Dtype::F16, WeightKind::F16),
        ];
        let own = floats.iter().find(|(dtype, _)| *dtype == self.dtype);
        own.is_some_and(|(_, own)| kind == WeightKind::AsStored || kind == *own)
    }

    /// Some rows.
    pub(super) fn rows(&self, rows: Range<usize>) -> Part {
        let (len, begin) = (self.columns() * self.size(), self.part.range.start);
        let range = begin + rows.start * len..begin + rows.end * len;
        Part { map: self.part.map.clone(), range }
    }

    /// Bytes of memory that it needs if it is kept as a kind: none where it stays in its file.
    pub(super) fn own_bytes(&self, kind: WeightKind) -> u64 {
        let bits = match kind {
            _ if self.is_kept(kind) && self.part.is_in_order(self.size()) => return 0,
            WeightKind::AsStored if self.is_kept(kind) => 8 * self.size() as u64,
            WeightKind::AsStored | WeightKind::F32 => 32,
            WeightKind::Bf16 | WeightKind::F16 => 16,
            WeightKind::Int8 => 8,
            WeightKind::Int4 { .. } => 5, // with the factors
        };
        self.shape.iter().fold(bits, |all, size| all.saturating_mul(*size as u64)) / 8
    }

    /// One row, as `f32`.
    pub(super) fn read(&self, row: usize, into: &mut [f32]) {
        let (part, size) = (self.rows(row..row + 1), self.size());
        let numbers = part.bytes().chunks_exact(size).zip(into);
        match self.dtype {
            Dtype::F64 => {
                numbers.for_each(|(b, w)| *w = bytemuck::pod_read_unaligned::<f64>(b) as f32)
            }
            Dtype::F32 => numbers.for_each(|(b, w)| *w = bytemuck::pod_read_unaligned(b)),
            Dtype::F16 => numbers
                .for_each(|(b, w)| *w = f16::from_bits(bytemuck::pod_read_unaligned(b)).to_f32()),
            _ => numbers
                .for_each(|(b, w)| *w = bf16::from_bits(bytemuck::pod_read_unaligned(b)).to_f32()),
        }
    }
}
