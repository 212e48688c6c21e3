//! A checkpoint of shards: a file for each rank and an index, whole or absent, to be read by any number of ranks.
//!
//! ```text
//! DIR/step-000100/index.json               which tensors there are, which rows each file has, its SHA-256
//! DIR/step-000100/rank-0-of-4.safetensors  the first quarter of the rows, and what every rank has alike
//! DIR/step-000100/rank-1-of-4.safetensors  the second quarter
//! ```
//!
//! It is written as `.new-step-000100`. Only when every rank has said that its file is on the disk, rank 0 writes the
//! index and renames the folder. The one before gets a name with a dot, too, before its files are removed. A run that is
//! killed leaves one whole checkpoint or two, and perhaps a folder with a dot, which the next one replaces.

use crate::communicator::{Call, Communicator};
use crate::error::{Error, Refusal, Result};
use crate::train::Named;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// What stands in `index.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// The step after which it was written.
    pub step: usize,
    /// What the run was started with, in words: another run is another checkpoint.
    pub run: String,
    /// The tensors that are cut by rows, and those that are whole.
    pub tensors: Vec<Entry>,
    /// The files, in the order of the ranks that wrote them.
    pub files: Vec<Part>,
}

/// A tensor in an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its shape, of all rows.
    pub shape: Vec<usize>,
    /// Whether each file has some of its rows. If not, the first file has it.
    pub cut: bool,
}

/// A file in an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its name.
    pub file: String,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
}

fn refuse(path: &Path, reason: impl std::fmt::Display) -> Refusal {
    Refusal::Other(format!("{}: {reason}", path.display()))
}

/// The folder of a step.
pub fn folder_of(dir: &Path, step: usize) -> PathBuf {
    dir.join(format!("step-{step:06}"))
}

// ANCHOR: save
/// Writes a checkpoint into `dir`, in place of older ones. `tensors` are this rank's: of those that are cut, its rows.
///
/// # Errors
/// The same on every rank: a file that can't be written; then there is what was there before. What
/// [`Communicator::agree`] reports.
pub fn save(
    comm: &dyn Communicator,
    dir: &Path,
    (step, run): (usize, &str),
    tensors: &[Named],
) -> Result<()> {
    let (rank, w) = (comm.rank(), comm.world_size());
    let (new, whole) = (dir.join(format!(".new-step-{step:06}")), folder_of(dir, step));
    let first = rank == 0;
    agree(comm, "a new folder", if first { begin(&new, &whole) } else { Ok(()) })?;

    let file = format!("rank-{rank}-of-{w}.safetensors");
    let own: Vec<&Named> = tensors.iter().filter(|named| named.cut || first).collect();
    let written = write(&new.join(&file), &own);
    let sha256 = written.as_ref().cloned().unwrap_or_default();
    agree(comm, "the files of all ranks", written.map(drop))?;

    let part = Part { file, sha256 };
    let parts = comm.gather(&serde_json::to_vec(&part).unwrap_or_default())?;
    let files = parts.iter().filter_map(|bytes| serde_json::from_slice(bytes).ok()).collect();
    let index = Index {
        step,
        run: run.into(),
        tensors: tensors.iter().map(|named| entry(named, w)).collect(),
        files,
    };
    agree(comm, "the index", if first { finish(dir, (&new, &whole), &index) } else { Ok(()) })
}
// ANCHOR_END: save

fn agree<T>(
    comm: &dyn Communicator,
    what: &str,
    mine: std::result::Result<T, Refusal>,
) -> Result<()> {
    comm.agree(Call::new("a checkpoint", what), mine.map(drop))
}

fn entry(named: &Named, world_size: usize) -> Entry {
    let mut shape = named.shape.clone();
    if let (true, Some(rows)) = (named.cut, shape.first_mut()) {
        *rows *= world_size;
    }
    Entry { name: named.name.clone(), shape, cut: named.cut }
}

fn begin(new: &Path, whole: &Path) -> std::result::Result<(), Refusal> {
    if whole.exists() {
        return Err(refuse(whole, "this step is there already; name another folder"));
    }
    if new.exists() {
        fs::remove_dir_all(new).map_err(|e| refuse(new, e))?;
    }
    fs::create_dir_all(new).map_err(|e| refuse(new, e))
}

/// Writes a file to the disk, and not to a cache alone. Returns its SHA-256.
fn write(path: &Path, tensors: &[&Named]) -> std::result::Result<String, Refusal> {
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|named| named.values.iter().flat_map(|x| x.to_le_bytes()).collect())
        .collect();
    let views = tensors.iter().zip(&bytes).map(|(named, bytes)| {
        Ok((&named.name, TensorView::new(Dtype::F32, named.shape.clone(), bytes)?))
    });
    let bytes = views
        .collect::<std::result::Result<Vec<_>, safetensors::SafeTensorError>>()
        .and_then(|views| safetensors::serialize(views, None))
        .map_err(|e| refuse(path, e))?;
    put(path, &bytes).map_err(|e| refuse(path, e))?;
    Ok(hex(&bytes))
}

fn put(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn finish(
    dir: &Path,
    (new, whole): (&Path, &Path),
    index: &Index,
) -> std::result::Result<(), Refusal> {
    let text = serde_json::to_string_pretty(index).map_err(|e| refuse(new, e))?;
    put(&new.join("index.json"), text.as_bytes()).map_err(|e| refuse(new, e))?;
    fs::rename(new, whole).map_err(|e| refuse(whole, e))?;
    let _ = File::open(dir).and_then(|dir| dir.sync_all()); // the new name, too; not every system can
    for older in all(dir).into_iter().filter(|older| older != whole) {
        // First by its name: a run that is killed while files are removed would leave one that looks broken.
        if let Some(name) = older.file_name() {
            let _ = fs::rename(&older, dir.join(format!("{OLD}{}", name.to_string_lossy())));
        }
    }
    for old in begins_with(dir, OLD) {
        let _ = fs::remove_dir_all(old); // the new one is there: what can't be removed does no harm
    }
    Ok(())
}

/// Before the name of what is being removed.
const OLD: &str = ".old-";

fn begins_with(dir: &Path, words: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().filter_map(std::result::Result::ok);
    let named = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(words))
    };
    entries.map(|entry| entry.path()).filter(named).collect()
}

/// The checkpoints in a folder, the newest last.
pub fn all(dir: &Path) -> Vec<PathBuf> {
    let mut all = begins_with(dir, "step-");
    all.sort();
    all
}

/// The index of a checkpoint, once every file of it is known to be as it was written.
///
/// # Errors
/// A file that is missing, or that has other bytes.
pub fn check(folder: &Path) -> Result<Index> {
    checked(folder).map_err(|why| Error::Checkpoint {
        path: folder.display().to_string(),
        reason: why.to_string(),
    })
}

const AGAIN: &str = "put the checkpoint back as it was, or begin again in another folder";

fn checked(folder: &Path) -> std::result::Result<Index, Refusal> {
    let path = folder.join("index.json");
    let text = fs::read(&path).map_err(|e| refuse(&path, format!("{e}; {AGAIN}")))?;
    let index: Index =
        serde_json::from_slice(&text).map_err(|e| refuse(&path, format!("{e}; {AGAIN}")))?;
    for part in &index.files {
        bytes_of(folder, part)?;
    }
    Ok(index)
}

fn bytes_of(folder: &Path, part: &Part) -> std::result::Result<Vec<u8>, Refusal> {
    let path = folder.join(&part.file);
    let bytes = fs::read(&path).map_err(|e| refuse(&path, format!("{e}; {AGAIN}")))?;
    match hex(&bytes) == part.sha256 {
        true => Ok(bytes),
        false => Err(refuse(&path, format!("its bytes are not those that were written; {AGAIN}"))),
    }
}

// ANCHOR: load
/// Reads this rank's part of a checkpoint that any number of ranks wrote: the index, and all tensors, of those that are
/// cut the rows that are this rank's now.
///
/// # Errors
/// The same on every rank: a file that is missing or broken; rows that the ranks do not divide. What
/// [`Communicator::agree`] reports.
pub fn load(comm: &dyn Communicator, folder: &Path) -> Result<(Index, Vec<Named>)> {
    let read = read(folder, comm.rank(), comm.world_size());
    let refused = read.as_ref().err().cloned();
    agree(comm, "its reading", refused.map_or(Ok(()), Err))?;
    read.map_err(|why| Error::Refused { rank: comm.rank(), why })
}

fn read(folder: &Path, rank: usize, w: usize) -> std::result::Result<(Index, Vec<Named>), Refusal> {
    let index = checked(folder)?;
    let files = index.files.iter().map(|part| bytes_of(folder, part));
    let files = files.collect::<std::result::Result<Vec<_>, _>>()?;
    let broken = |e: &dyn std::fmt::Display| refuse(folder, format!("{e}; {AGAIN}"));
    let files = files.iter().map(|bytes| SafeTensors::deserialize(bytes).map_err(|e| broken(&e)));
    let files = files.collect::<std::result::Result<Vec<_>, _>>()?;
    let mut tensors = Vec::new();
    for Entry { name, shape, cut } in &index.tensors {
        let sources = if *cut { &files[..] } else { &files[..files.len().min(1)] };
        let mut values = Vec::new();
        for file in sources {
            let tensor = file.tensor(name).map_err(|e| broken(&e))?;
            let words = tensor.data().chunks_exact(4);
            values.extend(words.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])));
        }
        if values.len() != shape.iter().product::<usize>() {
            return Err(broken(&format!("{name} is not all there")));
        }
        let mut shape = shape.clone();
        if let (true, Some(rows)) = (*cut, shape.first_mut()) {
            if *rows % w != 0 {
                return Err(
                    quadrivium::Error::WorldSize { world_size: w, vocab_size: *rows }.into()
                );
            }
            let n = values.len() / w;
            values = values[rank * n..(rank + 1) * n].to_vec();
            *rows /= w;
        }
        tensors.push(Named { name: name.clone(), shape, values, cut: *cut });
    }
    Ok((index, tensors))
}
// ANCHOR_END: load
