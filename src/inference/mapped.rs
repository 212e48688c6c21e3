//! The files of a checkpoint as they lie in memory: mapped, and read when they are used.

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

impl Part {
    /// Some neighbours of a list of numbers of `size` bytes.
    pub(super) fn numbers(&self, first: usize, count: usize, size: usize) -> Self {
        let begin = self.range.start + first * size;
        Self { map: self.map.clone(), range: begin..begin + count * size }
    }
}

impl Stored {
    /// One row of a matrix, or a list as the only row, as `f32`.
    pub(super) fn read(&self, row: usize, into: &mut [f32]) {
        let size = self.dtype.bitsize() / 8;
        let part = self.part.numbers(row * into.len(), into.len(), size);
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
