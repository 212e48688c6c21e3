//! Weights in `.safetensors` files, checked before a byte is changed.
//!
//! dfdx's own loader panics when a file holds another float type, and leaves a module half
//! loaded when a later tensor is missing. This one reads, checks everything, and only then
//! writes. Files are those of PyTorch and of dfdx: little-endian, one entry a tensor. Settings
//! and RoPE's cache are not saved.

use crate::checks::check_size;
use crate::error::{Error, Result};
use crate::number::Number;
use crate::tensor::nn::tensor_collection::{
    RecursiveWalker, TensorVisitor, ViewTensorMut, ViewTensorName, ViewTensorRef,
};
use crate::tensor::*;
use safetensors::tensor::{Dtype as FileDtype, SafeTensors, TensorView};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A float type that a `.safetensors` file can hold.
pub trait Stored: Float {
    /// Its name in the file.
    const DTYPE: FileDtype;

    /// Its little-endian bytes.
    fn write(self, bytes: &mut Vec<u8>);

    /// From its little-endian bytes.
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! stored {
    ($float:ty, $dtype:expr, $size:literal) => {
        impl Stored for $float {
            const DTYPE: FileDtype = $dtype;

            fn write(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }

            fn read(bytes: &[u8]) -> Self {
                let mut word = [0; $size];
                word.copy_from_slice(bytes);
                <$float>::from_le_bytes(word)
            }
        }
    };
}

stored!(f32, FileDtype::F32, 4);
stored!(f64, FileDtype::F64, 8);
#[cfg(feature = "f16")]
stored!(f16, FileDtype::F16, 2);

/// Writes all weights of `module` to `path`, replacing a file that is there. A link stays a link: the file that it
/// leads to is replaced.
///
/// # Errors
/// A file that can't be written. Then what was there is as it was, and nothing is left beside it.
pub fn save_weights<F: Stored, D: Device<F>, M: TensorCollection<F, D>>(
    module: &M,
    path: impl AsRef<Path>,
) -> Result<()> {
    let path = path.as_ref();
    NewFile::write(path, &bytes_of(module, path)?)?.put()
}

/// The file of a module's weights.
pub(crate) fn bytes_of<F: Stored, D: Device<F>, M: TensorCollection<F, D>>(
    module: &M,
    path: &Path,
) -> Result<Vec<u8>> {
    let mut collected = Collect { tensors: Vec::new() };
    M::iter_tensors(&mut RecursiveWalker { m: (module, String::new()), f: &mut collected })?;
    let views = collected
        .tensors
        .iter()
        .map(|t| Ok((&t.name, TensorView::new(F::DTYPE, t.shape.clone(), &t.bytes)?)))
        .collect::<std::result::Result<Vec<_>, safetensors::SafeTensorError>>()
        .map_err(|e| refuse(path, e))?;
    file_of(views, BTreeMap::new()).map_err(|e| refuse(path, e))
}

/// A `.safetensors` file with notes in its header, one of which says that its tensors are PyTorch's: some versions of
/// transformers read no other.
pub(crate) fn file_of<N: AsRef<str> + Ord + std::fmt::Display>(
    views: Vec<(N, TensorView<'_>)>,
    mut notes: BTreeMap<String, String>,
) -> std::result::Result<Vec<u8>, safetensors::SafeTensorError> {
    notes.insert("format".into(), "pt".into());
    let sorted = serde_json::to_vec(&notes)?;
    let mut file = safetensors::serialize(views, Some(notes.into_iter().collect()))?;
    // The notes come first, in an order that is drawn. The same weights are the same bytes.
    let first = 8 + r#"{"__metadata__":"#.len();
    file[first..first + sorted.len()].copy_from_slice(&sorted);
    Ok(file)
}

/// A file that is written whole, beside the one that it will replace. A full disk therefore costs nothing, and two
/// saves at a time do not mix. If it is not put in its place, it is removed.
pub(crate) struct NewFile {
    file: tempfile::NamedTempFile,
    target: PathBuf,
    path: PathBuf,
}

impl NewFile {
    /// Writes it. Where `path` is a link, it will replace the file that the link leads to.
    pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<Self> {
        let target = named(path).and_then(followed);
        Self::beside(path, target.map_err(|reason| refuse(path, reason))?, bytes)
    }

    /// Writes one that will replace a link itself, because others may share the file that it leads to, as they do in Hugging
    /// Face's cache.
    pub(crate) fn write_here(path: &Path, bytes: &[u8]) -> Result<Self> {
        Self::beside(path, path.into(), bytes)
    }

    fn beside(path: &Path, target: PathBuf, bytes: &[u8]) -> Result<Self> {
        let file = write_beside(&target, bytes).map_err(|reason| refuse(path, reason))?;
        Ok(Self { file, target, path: path.into() })
    }

    /// Renames it.
    pub(crate) fn put(self) -> Result<()> {
        self.file.persist(&self.target).map(drop).map_err(|e| refuse(&self.path, e.error))
    }

    /// Gives the file that it will replace another name, until the result is dropped: then it gets its own back, or is
    /// removed where there is a new one.
    pub(crate) fn set_aside(&self) -> Result<Aside> {
        let aside = self.target.with_file_name(aside_of(&name_of(&self.target)));
        match std::fs::rename(&self.target, &aside) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(refuse(&self.path, e)),
            _ => Ok(Aside { aside, target: self.target.clone() }),
        }
    }
}

/// The name of a file while it is replaced.
pub(crate) fn aside_of(name: &str) -> String {
    format!(".{name}.old")
}

/// What the names of new files that will replace one of this `name` begin and end with. A save that is killed leaves one.
pub(crate) fn new_of(name: &str) -> (String, &'static str) {
    (format!(".{name}."), ".new")
}

fn name_of(target: &Path) -> std::borrow::Cow<'_, str> {
    target.file_name().unwrap_or_default().to_string_lossy()
}

/// A file that is being replaced.
pub(crate) struct Aside {
    aside: PathBuf,
    target: PathBuf,
}

impl Aside {
    /// The new file was not wanted after all.
    pub(crate) fn undo(self) {
        let _ = std::fs::remove_file(&self.target);
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // Neither may exist, and there is no one to report to if one can't be moved.
        let _ = match self.target.exists() {
            true => std::fs::remove_file(&self.aside),
            false => std::fs::rename(&self.aside, &self.target),
        };
    }
}

const SPECIAL: &str = "this is a device, a pipe or a socket; name a file";

/// The new file, in the folder of its target.
fn write_beside(
    target: &Path,
    bytes: &[u8],
) -> std::result::Result<tempfile::NamedTempFile, String> {
    let old = target.metadata().ok();
    if old.as_ref().is_some_and(|old| old.is_dir()) {
        return Err("this is a folder; name a file".into());
    }
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return Err(SPECIAL.into());
    }
    let folder = match target.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(format!("there is no folder {}; make it first", folder.display()));
    }
    let (first, last) = new_of(&name_of(target));
    let mut new = tempfile::Builder::new();
    new.prefix(&first).suffix(last);
    #[cfg(unix)]
    new.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)); // less the umask
    let mut new = new.tempfile_in(folder).map_err(|e| e.to_string())?;
    if let Some(old) = old {
        new.as_file().set_permissions(old.permissions()).map_err(|e| e.to_string())?;
    }
    new.write_all(bytes).map_err(|e| e.to_string())?;
    Ok(new)
}

/// The file that a link leads to, so that the link stays one.
fn followed(path: &Path) -> std::result::Result<PathBuf, String> {
    let mut path = path.to_path_buf();
    for _ in 0..40 {
        match path.read_link() {
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(path), // not a link, or not there yet
        }
    }
    Err("its links lead in a circle; name a file".into())
}

fn named(path: &Path) -> std::result::Result<&Path, String> {
    if path == Path::new("") { Err("the path is empty; name a file".into()) } else { Ok(path) }
}

/// Reads all weights of `module` from `path`. Entries of the file that the module does not have
/// are left alone. F64, F32, F16 and BF16 are read: numbers of the module's own type bit for bit, others
/// as the nearest ones of it.
///
/// # Errors
/// A file that can't be read, a tensor that is missing, has another shape or is not of floats; a number of another type
/// that is not finite, or too large for the module's. Then no weight has changed.
pub fn load_weights<F: Stored, D: Device<F>, M: TensorCollection<F, D>>(
    module: &mut M,
    path: impl AsRef<Path>,
) -> Result<()> {
    let path = path.as_ref();
    named(path).map_err(|reason| refuse(path, reason))?;
    let bytes = read_file(path).map_err(|e| refuse(path, e))?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|e| refuse(path, format!("not a .safetensors file ({e})")))?;
    for write in [false, true] {
        let mut load = Load { file: &file, write };
        M::iter_tensors(&mut RecursiveWalker { m: (&mut *module, String::new()), f: &mut load })
            .map_err(|reason| refuse(path, reason))?;
    }
    Ok(())
}

/// The bytes of a file. A pipe would be waited for, and a device may have no end.
pub(crate) fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let about = std::fs::metadata(path)?;
    if !about.is_file() && !about.is_dir() {
        return Err(std::io::Error::other(SPECIAL));
    }
    std::fs::read(path)
}

/// Why the numbers of a tensor are not read.
pub(crate) enum Unread {
    /// They are of this type.
    Type(String),
    /// One of them is no number in the type that it becomes, and perhaps one in its own.
    NotFinite { place: usize, value: f64 },
}

/// The numbers of a tensor of floats, each as the nearest one of `F`.
pub(crate) fn nearest<F: Float>(tensor: &TensorView<'_>) -> std::result::Result<Vec<F>, Unread> {
    match tensor.dtype() {
        FileDtype::F64 => finite(tensor, f64::from_le_bytes),
        FileDtype::F32 => finite(tensor, |bytes| f32::from_le_bytes(bytes).into()),
        FileDtype::F16 => finite(tensor, |bytes| half::f16::from_le_bytes(bytes).into()),
        FileDtype::BF16 => finite(tensor, |bytes| half::bf16::from_le_bytes(bytes).into()),
        other => Err(Unread::Type(format!("{other:?}"))),
    }
}

/// The numbers of floats of `N` bytes.
fn finite<F: Float, const N: usize>(
    tensor: &TensorView<'_>,
    read: impl Fn([u8; N]) -> f64,
) -> std::result::Result<Vec<F>, Unread> {
    let words = tensor.data().as_chunks().0.iter();
    let one = |(place, word): (usize, &[u8; N])| {
        let value = read(*word);
        let nearest = F::nearest(value);
        if nearest.is_finite() { Ok(nearest) } else { Err(Unread::NotFinite { place, value }) }
    };
    words.enumerate().map(one).collect()
}

fn refuse(path: &Path, reason: impl std::fmt::Display) -> Error {
    let path = if path == Path::new("") { "\"\"".into() } else { path.display().to_string() };
    Error::Weights { path, reason: reason.to_string() }
}

struct Collected {
    name: String,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

struct Collect {
    tensors: Vec<Collected>,
}

impl<F: Stored, D: Device<F>> TensorVisitor<F, D> for Collect {
    type Viewer = (ViewTensorRef, ViewTensorName);
    type Err = Error;
    type E2 = F;
    type D2 = D;

    fn visit<S: Shape>(
        &mut self,
        _: TensorOptions<S, F, D>,
        (tensor, name): (&Tensor<S, F, D>, String),
    ) -> Result<Option<Tensor<S, F, D>>> {
        check_size("a weight", tensor.shape())?;
        let mut bytes = Vec::new();
        tensor.as_vec().into_iter().for_each(|x| x.write(&mut bytes));
        let shape = tensor.shape().concrete().into();
        self.tensors.push(Collected { name, shape, bytes });
        Ok(None)
    }
}

/// Checks each tensor against the file, and then copies it if `write`.
struct Load<'a> {
    file: &'a SafeTensors<'a>,
    write: bool,
}

impl<F: Stored, D: Device<F>> TensorVisitor<F, D> for Load<'_> {
    type Viewer = (ViewTensorMut, ViewTensorName);
    type Err = String;
    type E2 = F;
    type D2 = D;

    fn visit<S: Shape>(
        &mut self,
        _: TensorOptions<S, F, D>,
        (tensor, name): (&mut Tensor<S, F, D>, String),
    ) -> std::result::Result<Option<Tensor<S, F, D>>, String> {
        let names = || self.file.names().join(", ");
        let stored = (self.file.tensor(&name))
            .map_err(|_| format!("no tensor is called {name:?}; the file has: {}", names()))?;
        let expected: Vec<usize> = tensor.shape().concrete().into();
        if stored.shape() != expected {
            return Err(format!("{name:?} has shape {:?}, expected {expected:?}", stored.shape()));
        }
        let values = if stored.dtype() == F::DTYPE {
            let words = stored.data().chunks_exact(std::mem::size_of::<F>());
            words.map(F::read).collect()
        } else {
            nearest::<F>(&stored).map_err(|unread| match unread {
                Unread::Type(got) => {
                    format!("{name:?} holds {got}, and F64, F32, F16 and BF16 are read: convert the file")
                }
                Unread::NotFinite { place, value } => {
                    let (value, ours) = (Number(value), F::DTYPE);
                    format!("{name:?} has {value} at place {place}, which is no number in {ours:?}")
                }
            })?
        };
        if self.write {
            *tensor = tensor.clone().try_contiguous().map_err(|e| e.to_string())?;
            tensor.copy_from(&values);
        }
        Ok(None)
    }
}
