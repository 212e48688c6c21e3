//! A run that can be killed at any moment: its folder, and what is in it.
//!
//! A run's folder has a folder for its newest checkpoint, `step-000400`, with the model in Hugging Face's layout
//! (`config.json`, `model.safetensors`, `tokenizer.json`) and what the next step needs beside it
//! (`optimizer.safetensors`, `training.json`). A checkpoint is written under another name, brought to the disk, and renamed
//! when it is whole. The one before is removed after that.

use crate::batches::Position;
use crate::corpus::hex;
use crate::error::{Error, Result, shown};
use crate::network::{Network, OPTIMIZER};
use crate::sizes::{LONGER, Size};
use crate::tokens::{Tokens, without_mark};
use course::arguments::MOVED;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The names of models that are trained at another length begin like this.
const LENGTH: &str = "length-";

/// What two runs must have in common to have the same bits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The sizes of the model.
    pub size: Size,
    /// Whether the parts are the learner's.
    pub mine: bool,
    /// Of the weights, and of the order of the text.
    pub seed: u64,
    /// Steps in all.
    pub steps: usize,
    /// The highest learning rate.
    pub rate: f64,
    /// A number that belongs to the tokens of the text.
    pub text: String,
    /// The position encoding, in a run of `long`. In one of `train` there is no name: it has RoPE.
    #[serde(default)]
    pub encoding: Option<String>,
    /// A number that belongs to the weights from which a model is tuned to longer texts.
    #[serde(default)]
    pub tuned_from: Option<String>,
}

impl Settings {
    /// `b` and `s` of a batch: those of the size, or one longer text where a model is tuned to longer ones. A model of the
    /// sweep over the trained length has as many tokens in texts of its length.
    pub fn shape(&self) -> (usize, usize) {
        let (b, s) = self.size.batch();
        let length = self.encoding.as_deref().and_then(|name| name.strip_prefix(LENGTH));
        if let Some(length) = length.and_then(|length| length.parse::<usize>().ok()) {
            // The name counts positions of the small model; those of the tiny one are an eighth.
            let length = length * s / Size::Small.batch().1;
            return (b * s / length, length);
        }
        let moved = self.encoding.as_deref().is_some_and(|name| MOVED.contains(&name));
        if self.tuned_from.is_some() && !moved { (1, LONGER * s) } else { (b, s) }
    }
}

/// What a checkpoint knows beside the weights and the optimizer's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The settings of the run.
    pub settings: Settings,
    /// Steps that were made.
    pub step: usize,
    /// How far the text is read.
    pub position: Position,
    /// The loss of each step's batch.
    pub losses: Vec<f32>,
    /// Held-out losses: after how many steps, and what.
    pub held_out: Vec<(usize, f64)>,
    /// A number for each other file of the checkpoint.
    files: BTreeMap<String, String>,
}

impl State {
    /// A run that has made no step.
    pub fn new(settings: Settings) -> Self {
        let (losses, held_out, files) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { settings, step: 0, position: Position::default(), losses, held_out, files }
    }
}

const TRAINING: &str = "training.json";
/// What no run writes: it would name other weights.
const INDEX: &str = "model.safetensors.index.json";
/// What `eval` and `attention` may have written into a checkpoint.
const FIGURES: [&str; 3] = ["positions.svg", "attention.svg", "attention.json"];
/// The most bytes that are read of a file. Those of a run are far shorter.
const MOST: u64 = 1 << 30;
const FILES: [&str; 4] = ["config.json", "model.safetensors", "tokenizer.json", OPTIMIZER];
/// A checkpoint that is being written, or removed: no reader looks at them.
const UNFINISHED: [&str; 2] = [".checkpoint-new", ".checkpoint-old"];

/// The folder of a run, which no other process writes in.
#[derive(Debug)]
pub struct Run {
    folder: PathBuf,
    _lock: File,
}

impl Run {
    /// Takes a folder, which is made if it is not there.
    ///
    /// # Errors
    /// A folder that can't be made, in which another process trains, or that holds a model itself: that would be read
    /// instead of the run's.
    pub fn open(folder: &Path) -> Result<Self> {
        if folder.join("config.json").is_file() {
            return Err(Error::HoldsModel { path: shown(folder) });
        }
        fs::create_dir_all(folder).map_err(|e| Error::write(folder, e))?;
        // The system lets go of the lock when the process ends, however it ends.
        let lock = lockable(folder).map_err(|e| Error::write(folder, e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(Error::InUse { path: shown(folder) }),
            Err(fs::TryLockError::Error(e)) => return Err(Error::write(folder, e)),
        }
        Ok(Self { folder: folder.to_path_buf(), _lock: lock })
    }

    // ANCHOR: save
    /// Writes a checkpoint, and removes the one before. Killed at any moment, the folder holds the one or the other, whole.
    ///
    /// # Errors
    /// What can't be written.
    pub fn save(
        &self,
        state: &mut State,
        network: &mut dyn Network,
        tokens: &Tokens,
    ) -> Result<()> {
        let new = self.folder.join(UNFINISHED[0]);
        remove(&new)?;
        fs::create_dir(&new).map_err(|e| Error::write(&new, e))?;
        network.save(&new)?;
        write(&new.join("tokenizer.json"), tokens.json()?.as_bytes())?;
        state.files.clear();
        for name in FILES {
            let bytes = fs::read(new.join(name)).map_err(|e| Error::write(&new, e))?;
            state.files.insert(name.to_string(), hex(&Sha256::digest(bytes)));
        }
        let json = serde_json::to_string_pretty(state).map_err(|e| Error::write(&new, e))?;
        write(&new.join(TRAINING), format!("{json}\n").as_bytes())?;
        for name in FILES.iter().copied().chain([TRAINING, "."]) {
            synced(&new.join(name))?; // the files, and then their names
        }
        let place = self.folder.join(name_of(state.step));
        if place.is_dir() {
            self.discard(&place)?; // of another run, which had made as many steps
        }
        fs::rename(&new, &place).map_err(|e| Error::write(&place, e))?;
        synced(&self.folder)?;
        for (step, older) in checkpoints(&self.folder) {
            if step != state.step && foreign(&older).is_none() {
                self.discard(&older)?;
            }
        }
        Ok(())
    }
    // ANCHOR_END: save

    /// Removes a checkpoint. Its name goes first, so that no half of it is ever taken for one.
    fn discard(&self, checkpoint: &Path) -> Result<()> {
        let old = self.folder.join(UNFINISHED[1]);
        remove(&old)?;
        fs::rename(checkpoint, &old).map_err(|e| Error::write(checkpoint, e))?;
        remove(&old)
    }

    /// Removes what a killed run left beside its newest checkpoint, which is known to be good. A folder that holds other
    /// files is left alone.
    ///
    /// # Errors
    /// What can't be removed.
    pub fn tidy(&self) -> Result<()> {
        let newest = newest(&self.folder);
        for (_, checkpoint) in checkpoints(&self.folder) {
            if Some(&checkpoint) != newest.as_ref() && foreign(&checkpoint).is_none() {
                self.discard(&checkpoint)?;
            }
        }
        UNFINISHED.iter().try_for_each(|name| remove(&self.folder.join(name)))
    }

    /// Looks whether another run may take the place of this one.
    ///
    /// # Errors
    /// A folder with a checkpoint's name and with a file in it that no run wrote.
    pub fn check_ours(&self) -> Result<()> {
        let path = checkpoints(&self.folder).iter().find_map(|(_, checkpoint)| foreign(checkpoint));
        path.map_or(Ok(()), |path| Err(Error::NotOurs { path: shown(&path) }))
    }
}

/// The newest checkpoint in a run's folder.
pub fn newest(folder: &Path) -> Option<PathBuf> {
    checkpoints(folder).into_iter().max().map(|(_, checkpoint)| checkpoint)
}

/// The state in a checkpoint, to go on with: all its files are those that were written.
///
/// # Errors
/// A file that is missing or another one than was written; a state that can't be.
pub fn state(checkpoint: &Path) -> Result<State> {
    let read = read(checkpoint, &FILES);
    let state = read.map_err(|Wrong { file, reason }| Error::broken(&file, reason))?;
    let place = name_of(state.step);
    if !checkpoint.ends_with(&place) {
        let file = checkpoint.join(TRAINING);
        return Err(Error::broken(&file, format!("it belongs into {place}")));
    }
    Ok(state)
}

/// The state of the run that wrote a model, whose files are those that were written. `None` where no run wrote it.
///
/// # Errors
/// As for [`state`]. For a use of the model, however, neither the optimizer's state nor the folder's name matter.
pub fn written(model: &Path) -> Result<Option<State>> {
    let about = fs::symlink_metadata(model.join(TRAINING));
    if about.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return Ok(None);
    }
    let changed = |Wrong { file, reason }: Wrong| Error::Changed {
        path: shown(&file),
        reason,
        training: TRAINING,
    };
    let files = FILES.into_iter().filter(|name| *name != OPTIMIZER).collect::<Vec<_>>();
    read(model, &files).map(Some).map_err(changed)
}

/// A file of a checkpoint that is not as it was written.
struct Wrong {
    file: PathBuf,
    reason: String,
}

/// The state in a checkpoint, once these files of it are those that were written.
fn read(checkpoint: &Path, files: &[&str]) -> std::result::Result<State, Wrong> {
    let wrong = |name: &str, reason: String| Wrong { file: checkpoint.join(name), reason };
    let of = |name: &str| {
        learner::read::whole(&checkpoint.join(name), MOST).map_err(|e| wrong(name, e.to_string()))
    };
    let state: State = serde_json::from_slice(without_mark(&of(TRAINING)?))
        .map_err(|e| wrong(TRAINING, e.to_string()))?;
    for name in files {
        if state.files.get(*name) != Some(&hex(&Sha256::digest(of(name)?))) {
            return Err(wrong(name, "it is not the file that this run wrote".into()));
        }
    }
    if fs::symlink_metadata(checkpoint.join(INDEX)).is_ok() {
        return Err(wrong(INDEX, "no run writes it, and it names other weights".into()));
    }
    let State { settings, step, losses, held_out, .. } = &state;
    if *step > settings.steps || losses.len() != *step {
        let (steps, losses) = (settings.steps, losses.len());
        let reason = format!("{step} of {steps} steps can't have {losses} losses");
        return Err(wrong(TRAINING, reason));
    }
    let rise = held_out.is_sorted_by(|(one, _), (next, _)| one < next);
    let can_be = |loss: &f64| (0.0..=f64::from(f32::MAX)).contains(loss);
    let are_losses = held_out.iter().all(|(_, loss)| can_be(loss));
    if !rise || !are_losses || held_out.last().is_none_or(|(last, _)| last != step) {
        let reason = format!("its held-out losses can't be those of a run up to step {step}");
        return Err(wrong(TRAINING, reason));
    }
    Ok(state)
}

/// Something in a checkpoint's folder that no command of ours writes there.
fn foreign(checkpoint: &Path) -> Option<PathBuf> {
    let entries = checkpoint.read_dir().into_iter().flatten().flatten();
    let ours = |name: &std::ffi::OsStr| {
        [TRAINING].iter().chain(&FILES).chain(&FIGURES).any(|of_ours| name == *of_ours)
    };
    entries
        .map(|entry| entry.file_name())
        .find(|name| !ours(name))
        .map(|name| checkpoint.join(name))
}

/// Refuses to go on with a run whose settings are others than those asked for.
///
/// # Errors
/// Each setting that differs.
pub fn same(folder: &Path, of_run: &Settings, asked: &Settings) -> Result<()> {
    let fields = |settings: &Settings| match serde_json::to_value(settings) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => Default::default(),
    };
    let (of_run, asked) = (fields(of_run), fields(asked));
    let differs = |(name, run): (&String, &serde_json::Value)| {
        let now = asked.get(name).filter(|now| *now != run)?;
        Some(match name.as_str() {
            "text" => "`text` has other tokens".to_string(),
            "tuned_from" => "it was tuned from other weights".to_string(),
            _ => format!("`{name}` is {run} there, and {now} was asked for"),
        })
    };
    let differences: Vec<String> = of_run.iter().filter_map(differs).collect();
    if differences.is_empty() {
        return Ok(());
    }
    Err(Error::OtherRun { path: shown(folder), differences: differences.join(", ") })
}

fn name_of(step: usize) -> String {
    format!("step-{step:06}")
}

/// The checkpoints in a folder, with their steps.
fn checkpoints(folder: &Path) -> Vec<(usize, PathBuf)> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let step = |path: PathBuf| {
        let digits = path.file_name()?.to_str()?.strip_prefix("step-")?.parse().ok()?;
        path.ends_with(name_of(digits)).then_some((digits, path))
    };
    entries.filter_map(|entry| step(entry.path())).collect()
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(|e| Error::write(path, e))
}

/// What represents a folder: itself where it can be opened, else a file in it.
fn lockable(folder: &Path) -> std::io::Result<File> {
    if cfg!(unix) { File::open(folder) } else { File::create(folder.join(".lock")) }
}

/// Waits until the disk has it.
fn synced(path: &Path) -> Result<()> {
    let opened = match path.is_dir() {
        true if cfg!(not(unix)) => return Ok(()), // a folder can't be opened there
        true => File::open(path),
        false => File::options().append(true).open(path),
    };
    opened.and_then(|file| file.sync_all()).map_err(|e| Error::write(path, e))
}

/// Removes a folder, or a file that has its name.
fn remove(folder: &Path) -> Result<()> {
    let removed = match fs::symlink_metadata(folder) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(folder),
        Ok(_) => fs::remove_file(folder),
        Err(e) => Err(e),
    };
    match removed {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::write(folder, e)),
        _ => Ok(()),
    }
}
