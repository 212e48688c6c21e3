//! A checkpoint of shards: a file for each rank and an index, whole or absent, to be read by any number of ranks.
//!
//! ```text
//! DIR/step-000100/index.json               which tensors there are, which rows each file has, its SHA-256
//! DIR/step-000100/rank-0-of-4.safetensors  the first quarter of the rows, and what is the same on every rank
//! DIR/step-000100/rank-1-of-4.safetensors  the second quarter
//! ```
//! After the last step, the model itself is beside them, in Hugging Face's layout: see [`folder`].
//!
//! It is written as `.new-step-000100`. Only when every rank has said that its file is on the disk is the index written
//! and the folder renamed. The one before gets a name with a dot, too, before its files are removed. A run that is killed
//! leaves one whole checkpoint or two, and perhaps a folder with a dot, which the next one removes.
//!
//! `DIR` may be a folder that all hosts share, or one on each host's own disk: the ranks find out. Then each has the files
//! of its ranks and the index, and what is read from only one of them is sent to the others.

use crate::communicator::{Call, Communicator, accept, fnv};
use crate::disks::{PROBE, is_first, read_or_sent};
use crate::error::{Error, Refusal, Result};
use crate::folder;
use crate::roll::host;
use crate::train::Named;
use crate::watch;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The contents of `index.json`.
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
    /// The SHA-256 of all that comes before, in hexadecimal.
    pub sha256: String,
}

impl Index {
    /// With the digest of the rest.
    fn signed(self) -> Self {
        let rest = Self { sha256: String::new(), ..self };
        let sha256 = hex(rest.text().as_bytes());
        Self { sha256, ..rest }
    }

    /// As it is in its file.
    fn text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
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
    /// The host that wrote it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
}

/// What can't be written, and what to do.
fn unwritten(path: &Path, e: std::io::Error) -> Refusal {
    refuse(path, format!("{e}; make room for it, {ELSEWHERE}"))
}

fn refuse(path: &Path, reason: impl std::fmt::Display) -> Refusal {
    Refusal::Other(format!("{}: {reason}", path.display()))
}

/// Before the step in the name of a whole checkpoint, of one that is being written, and of one that is being removed.
const WHOLE: &str = "step-";
const NEW: &str = ".new-step-";
const OLD: &str = ".old-step-";

fn named(dir: &Path, kind: &str, step: usize) -> PathBuf {
    dir.join(format!("{kind}{step:06}"))
}

/// The folder of a step.
pub fn folder_of(dir: &Path, step: usize) -> PathBuf {
    named(dir, WHOLE, step)
}

/// What has the name of a kind, by its step, and whether it is a folder.
fn named_so(dir: &Path, kind: &str) -> std::io::Result<BTreeMap<usize, (PathBuf, bool)>> {
    let entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        entries => entries?,
    };
    let mut found = BTreeMap::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let step = name.strip_prefix(kind).and_then(|step| step.parse().ok());
        if let Some(step) = step.filter(|step| named(dir, kind, *step) == path) {
            let is_folder = path.is_dir();
            found.insert(step, (path, is_folder));
        }
    }
    Ok(found)
}

/// The folders of a kind, by their steps.
fn folders(dir: &Path, kind: &str) -> std::io::Result<BTreeMap<usize, PathBuf>> {
    let found = named_so(dir, kind)?.into_iter();
    Ok(found.filter_map(|(step, (path, is_folder))| is_folder.then_some((step, path))).collect())
}

const INDEX: &str = "index.json";

/// The file of a rank.
fn file_of(rank: usize, world_size: usize) -> String {
    format!("rank-{rank}-of-{world_size}.safetensors")
}

/// Whether a folder holds a checkpoint's files and nothing else: a user may have one of the same name.
fn is_ours(folder: &Path) -> bool {
    let ours = |entry: std::io::Result<fs::DirEntry>| {
        let Ok(entry) = entry else { return false };
        let name = entry.file_name().to_string_lossy().into_owned();
        let of_rank = || {
            let (rank, w) = name.strip_prefix("rank-")?.split_once('.')?.0.split_once("-of-")?;
            Some(file_of(rank.parse().ok()?, w.parse().ok()?) == name)
        };
        entry.file_type().is_ok_and(|kind| kind.is_file())
            && (name == INDEX || folder::FILES.contains(&&name[..]) || of_rank() == Some(true))
    };
    fs::read_dir(folder).is_ok_and(|mut entries| entries.all(ours))
}

/// The checkpoints in a folder, the newest last. A folder that is not there has none.
///
/// # Errors
/// A folder that can't be read.
pub fn all(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    Ok(folders(dir, WHOLE)?.into_values().collect())
}

/// The step of the newest checkpoint in a folder of this host.
///
/// # Errors
/// A folder that can't be read.
pub fn newest(dir: &Path) -> std::result::Result<Option<usize>, Refusal> {
    let folders = folders(dir, WHOLE).map_err(|e| refuse(dir, e))?;
    Ok(folders.into_keys().next_back())
}

/// What a disk has of a checkpoint.
#[derive(Default, Serialize, Deserialize)]
struct Seen {
    there: BTreeSet<String>,
    /// By the index.
    named: BTreeSet<String>,
    /// Of the index.
    digest: BTreeSet<String>,
}

impl Seen {
    fn of(folder: &Path) -> std::io::Result<Self> {
        let index = bytes(&folder.join(INDEX)).ok();
        let index: Option<Index> = index.and_then(|index| serde_json::from_slice(&index).ok());
        let digest = index.iter().map(|index| index.sha256.clone()).collect();
        let named = index.into_iter().flat_map(|index| index.files).map(|part| part.file).collect();
        let entries = fs::read_dir(folder)?.flatten();
        let there = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        Ok(Self { there, named, digest })
    }
}

/// The step of the newest checkpoint of which all files are on the disk of some rank, and that of the newest of which some
/// are. They differ after a run that ended while a checkpoint was renamed on one disk after the other, which leaves the one
/// before whole. If none is whole, both are the newest; `None` if nothing is there.
///
/// # Errors
/// The same on every rank: a folder that can't be read; disks with checkpoints of two runs. What [`Communicator::gather`]
/// reports.
pub fn newest_of_all(comm: &dyn Communicator, dir: &Path) -> Result<Option<(usize, usize)>> {
    let seen = || -> std::io::Result<BTreeMap<usize, Seen>> {
        let of_step = |(step, folder): (usize, PathBuf)| Ok((step, Seen::of(&folder)?));
        folders(dir, WHOLE)?.into_iter().map(of_step).collect()
    };
    let mine = agree(comm, "the newest", seen().map_err(|e| refuse(dir, e)))?;
    let mut all = BTreeMap::<usize, Seen>::new();
    for of_rank in comm.gather(&serde_json::to_vec(&mine).unwrap_or_default())? {
        let of_rank: BTreeMap<usize, Seen> = serde_json::from_slice(&of_rank).unwrap_or_default();
        for (step, Seen { there, named, digest }) in of_rank {
            let seen = all.entry(step).or_default();
            seen.there.extend(there);
            seen.named.extend(named);
            seen.digest.extend(digest);
        }
    }
    let Some((&newest, _)) = all.last_key_value() else { return Ok(None) };
    let whole = all.iter().rev().find(|(_, seen)| seen.named.is_subset(&seen.there));
    let (step, seen) = whole.map_or((newest, &all[&newest]), |(step, seen)| (*step, seen));
    if seen.digest.len() > 1 {
        return Err(Error::Checkpoint {
            path: folder_of(dir, step).display().to_string(),
            reason: "hosts have checkpoints of different runs there, and a run needs all files of one; remove it on the \
                     hosts whose run is not to be continued"
                .into(),
        });
    }
    Ok(Some((step, newest)))
}

/// Puts aside what is newer than a step: parts of a checkpoint that was never whole.
///
/// # Errors
/// The same on every rank: a folder that can't be renamed. What [`Communicator::agree`] reports.
pub fn forget_newer(comm: &dyn Communicator, dir: &Path, step: usize) -> Result<()> {
    let rename = || -> std::io::Result<()> {
        for (newer, folder) in folders(dir, WHOLE)?.into_iter().filter(|(newer, _)| *newer > step) {
            let aside = named(dir, OLD, newer);
            if is_ours(&aside) {
                fs::remove_dir_all(&aside)?;
            }
            fs::rename(folder, aside)?;
        }
        Ok(())
    };
    let renamed = if is_first(comm, dir)? { rename() } else { Ok(()) };
    agree(comm, "what is newer", renamed.map_err(|e| unwritten(dir, e)))
}

/// Keeps other runs out of a folder, on each disk, for as long as the results live.
///
/// # Errors
/// The same on every rank: what [`lock`] and [`Communicator::agree`] report.
pub fn lock_all(comm: &dyn Communicator, dir: &Path) -> Result<Option<File>> {
    let lock = is_first(comm, dir)?.then(|| lock(dir).map_err(Refusal::from)).transpose();
    agree(comm, "a folder of its own", lock)
}

/// Keeps other runs out of a folder, which is made if it is not there, for as long as the result lives.
///
/// # Errors
/// Another run holds it; a folder in which nothing can be written, or that holds a model itself; something that has a checkpoint's name and is none.
pub fn lock(dir: &Path) -> Result<File> {
    let failed = |path: &Path, reason: String| Error::Checkpoint {
        path: path.display().to_string(),
        reason: format!("{reason}; {ELSEWHERE}"),
    };
    // The folder itself is locked: a file in it could be removed, or be a pipe.
    let open = || {
        fs::create_dir_all(dir)?;
        tempfile::tempfile_in(dir)?;
        File::open(dir)
    };
    let folder = open().map_err(|e| failed(dir, e.to_string()))?;
    match folder.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(failed(
                dir,
                "another run keeps its checkpoints there; wait for its end".into(),
            ));
        }
        Err(TryLockError::Error(e)) => return Err(failed(dir, e.to_string())),
    }
    if dir.join(folder::FILES[0]).is_file() {
        return Err(failed(
            dir,
            "it holds a model, which would be read instead of the run's".into(),
        ));
    }
    for kind in [WHOLE, NEW] {
        for (path, is_folder) in
            named_so(dir, kind).map_err(|e| failed(dir, e.to_string()))?.into_values()
        {
            if !is_folder || (kind == NEW && !is_ours(&path)) {
                return Err(failed(
                    &path,
                    "it is no checkpoint and has the name of one; move it away".into(),
                ));
            }
        }
    }
    Ok(folder)
}

const ELSEWHERE: &str = "or name another folder with --out";

// ANCHOR: save
/// Writes a checkpoint into `dir`, replacing older ones. `tensors` are this rank's: of those that are cut, its rows.
///
/// # Errors
/// The same on every rank: tensors that have not the same names and shapes on all; a file that can't be written. Then there
/// is what was there before. What [`Communicator::agree`] reports.
pub fn save(
    comm: &dyn Communicator,
    dir: &Path,
    (step, run): (usize, &str),
    tensors: &[Named],
) -> Result<()> {
    let (rank, w) = (comm.rank(), comm.world_size());
    let (new, whole) = (named(dir, NEW, step), folder_of(dir, step));
    let entries = entries(tensors, w);
    let digest = serde_json::to_string(entries.as_ref().unwrap_or(&Vec::new()));
    let digest = fnv(digest.unwrap_or_default().into_bytes().into_iter());
    let call = Call::same("a checkpoint", "tensors of these names and shapes", digest);
    let entries = accept(comm, call, entries)?;
    let first = is_first(comm, dir)?;
    let once = |what: &dyn Fn() -> _| if first { what() } else { Ok(()) };
    agree(comm, "a new folder", once(&|| begin(&new, &whole)))?;

    let file = file_of(rank, w);
    let own: Vec<&Named> = tensors.iter().filter(|named| named.cut || rank == 0).collect();
    let sha256 = {
        let written = watch::alone("the writing of a checkpoint", || write(&new.join(&file), &own));
        agree(comm, "the files of all ranks", written)?
    };

    let part = Part { file, sha256, host: host() };
    let parts = comm.gather(&serde_json::to_vec(&part).unwrap_or_default())?;
    let files = parts.iter().filter_map(|bytes| serde_json::from_slice(bytes).ok()).collect();
    let (run, sha256) = (run.into(), String::new());
    let index = Index { step, run, tensors: entries, files, sha256 }.signed();
    agree(comm, "the index", once(&|| write_index(&new, &index)))?;
    agree(comm, "its name", once(&|| publish(dir, &new, &whole)))?;
    if first {
        forget_older(dir, step);
    }
    Ok(())
}
// ANCHOR_END: save

fn agree<T>(
    comm: &dyn Communicator,
    what: &str,
    mine: std::result::Result<T, Refusal>,
) -> Result<T> {
    accept(comm, Call::new("a checkpoint", what), mine)
}

/// What the index says of them.
fn entries(tensors: &[Named], world_size: usize) -> std::result::Result<Vec<Entry>, Refusal> {
    let mut entries: Vec<Entry> = Vec::new();
    for Named { name, shape, values, cut } in tensors {
        let mut shape = shape.clone();
        let twice = entries.iter().any(|entry| entry.name == *name);
        if twice || shape.iter().product::<usize>() != values.len() || (*cut && shape.is_empty()) {
            let rule = "each tensor needs a name of its own, as many values as its shape, and rows if it is cut";
            return Err(Refusal::Other(format!(
                "{name} of shape {shape:?} with {} values: {rule}",
                values.len()
            )));
        }
        if *cut {
            shape[0] *= world_size;
        }
        entries.push(Entry { name: name.clone(), shape, cut: *cut });
    }
    Ok(entries)
}

fn begin(new: &Path, whole: &Path) -> std::result::Result<(), Refusal> {
    if whole.exists() {
        return Err(refuse(whole, "this step is there already; name another folder with --out"));
    }
    if is_ours(new) {
        fs::remove_dir_all(new).map_err(|e| unwritten(new, e))?;
    }
    fs::create_dir_all(whole.parent().unwrap_or(whole)).map_err(|e| unwritten(new, e))?;
    fs::create_dir(new).map_err(|e| unwritten(new, e))
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
    let pytorch = HashMap::from([("format".to_string(), "pt".to_string())]); // some readers ask
    let bytes = views
        .collect::<std::result::Result<Vec<_>, safetensors::SafeTensorError>>()
        .and_then(|views| safetensors::serialize(views, Some(pytorch)))
        .map_err(|e| refuse(path, e))?;
    put(path, &bytes).map_err(|e| unwritten(path, e))?;
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

fn write_index(new: &Path, index: &Index) -> std::result::Result<(), Refusal> {
    let path = new.join(INDEX);
    put(&path, index.text().as_bytes()).map_err(|e| unwritten(&path, e))?;
    sync(new); // the names of the files
    Ok(())
}

fn publish(dir: &Path, new: &Path, whole: &Path) -> std::result::Result<(), Refusal> {
    fs::rename(new, whole).map_err(|e| unwritten(whole, e))?;
    sync(dir); // and that of the folder
    Ok(())
}

/// Once the new one is whole on all disks.
fn forget_older(dir: &Path, step: usize) {
    for (older, folder) in folders(dir, WHOLE).unwrap_or_default() {
        // First by its name: a run that is killed while files are removed would leave one that looks broken.
        if older < step && is_ours(&folder) && folder.join(INDEX).exists() {
            let _ = fs::rename(folder, named(dir, OLD, older));
        }
    }
    for left in [OLD, NEW] {
        for folder in folders(dir, left).unwrap_or_default().into_values().filter(|at| is_ours(at))
        {
            let _ = fs::remove_dir_all(folder); // the new one is there: what can't be removed does no harm
        }
    }
    // Of ranks that were killed.
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PROBE) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Not every system can.
fn sync(folder: &Path) {
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

/// The index of a checkpoint, once every file of it is known to be as it was written.
///
/// # Errors
/// A file that is missing, or that has other bytes.
pub fn check(folder: &Path) -> Result<Index> {
    let read = files(folder).map(|(index, _)| index);
    read.map_err(|why| Error::Checkpoint {
        path: folder.display().to_string(),
        reason: why.to_string(),
    })
}

const AGAIN: &str = "put the checkpoint back as it was, or begin again in another folder";

fn broken(path: &Path, reason: impl std::fmt::Display) -> Refusal {
    refuse(path, format!("{reason}; {AGAIN}"))
}

/// The index, and the bytes of the files that it names, in their order.
fn files(folder: &Path) -> std::result::Result<(Index, Vec<Vec<u8>>), Refusal> {
    let index = index_of(folder, &bytes(&folder.join(INDEX))?)?;
    let files = index.files.iter().map(|part| bytes_of(folder, part));
    let files = files.collect::<std::result::Result<_, _>>()?;
    Ok((index, files))
}

/// The index of a checkpoint, from its bytes.
fn index_of(folder: &Path, read: &[u8]) -> std::result::Result<Index, Refusal> {
    let path = folder.join(INDEX);
    let index: Index = serde_json::from_slice(read).map_err(|e| broken(&path, e))?;
    if read != index.clone().signed().text().into_bytes() {
        return Err(broken(&path, OTHER_BYTES));
    }
    let dir = folder.parent().unwrap_or(folder);
    if folder_of(dir, index.step) != folder {
        let rule = format!("it is of step {}, and the folder is not", index.step);
        return Err(broken(&path, rule));
    }
    Ok(index)
}

/// The bytes of a file that an index names.
fn bytes_of(folder: &Path, part: &Part) -> std::result::Result<Vec<u8>, Refusal> {
    let path = folder.join(&part.file);
    if path.file_name().is_none_or(|name| name != part.file.as_str()) {
        return Err(broken(&path, "it is not in the checkpoint's folder"));
    }
    if !path.exists() && !part.host.is_empty() {
        return Err(refuse(
            &path,
            format!(
                "it was written on {}, and no host of this run has it unchanged; start a rank on that host, too, or copy \
                 the file",
                part.host
            ),
        ));
    }
    let bytes = bytes(&path)?;
    if hex(&bytes) == part.sha256 { Ok(bytes) } else { Err(broken(&path, OTHER_BYTES)) }
}

const OTHER_BYTES: &str = "its bytes are not those that were written";

/// The bytes of a file.
fn bytes(path: &Path) -> std::result::Result<Vec<u8>, Refusal> {
    learner::read::whole(path, u64::MAX).map_err(|e| broken(path, e))
}

// ANCHOR: load
/// Reads this rank's part of a checkpoint that any number of ranks wrote: the index, and all tensors, of those that are
/// cut the rows that are this rank's now, among the `shards`. All of `world` read together: a file that is not on this
/// rank's disk is sent by one that has it.
///
/// # Errors
/// The same on every rank: a file that is missing or broken; rows that the ranks do not divide. What
/// [`Communicator::agree`] reports.
pub fn load(
    world: &dyn Communicator,
    shards: &dyn Communicator,
    folder: &Path,
) -> Result<(Index, Vec<Named>)> {
    let alone = |read: &dyn Fn() -> _| watch::alone("the reading of a checkpoint", read);
    let index = read_or_sent(world, alone(&|| bytes(&folder.join(INDEX))))?;
    let index = agree(world, "its index", index.and_then(|index| index_of(folder, &index)))?;
    let mut files = Vec::new();
    for part in &index.files {
        let bytes = read_or_sent(world, alone(&|| bytes_of(folder, part)))?;
        files.push(agree(world, "its files", bytes)?);
    }
    let tensors = tensors(folder, &index, &files, (shards.rank(), shards.world_size()));
    Ok((index, agree(world, "its tensors", tensors)?))
}

fn tensors(
    folder: &Path,
    index: &Index,
    files: &[Vec<u8>],
    (rank, w): (usize, usize),
) -> std::result::Result<Vec<Named>, Refusal> {
    let files = files.iter().map(|bytes| SafeTensors::deserialize(bytes));
    let files = files.collect::<std::result::Result<Vec<_>, _>>().map_err(|e| broken(folder, e))?;
    let mut tensors = Vec::new();
    for Entry { name, shape, cut } in &index.tensors {
        let sources = if *cut { &files[..] } else { &files[..files.len().min(1)] };
        let mut values = Vec::new();
        for file in sources {
            let tensor = file.tensor(name).map_err(|e| broken(folder, e))?;
            let words = tensor.data().chunks_exact(4);
            values.extend(words.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])));
        }
        let elements = shape.iter().try_fold(1usize, |all, length| all.checked_mul(*length));
        if elements != Some(values.len()) {
            return Err(broken(folder, format!("{name} is not all there")));
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
    Ok(tensors)
}
// ANCHOR_END: load
