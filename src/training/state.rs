//! AdamW's state in a file, so that training goes on as if it had never stopped.

use super::adamw::{AdamW, AdamWConfig};
use crate::checks::require;
use crate::error::{Error, Result};
use crate::tensor::nn::tensor_collection::{
    RecursiveWalker, TensorVisitor, ViewTensorName, ViewTensorRef,
};
use crate::tensor::*;
use crate::weights::{NewFile, Stored, file_of};
use safetensors::tensor::{SafeTensors, TensorView};
use std::collections::BTreeMap;
use std::path::Path;

/// The names of the two moments in a file: `mean.` or `square.`, followed by the name of the weight.
const MOMENTS: [&str; 2] = ["mean", "square"];
/// The entry of the file's header that counts the steps.
const STEPS: &str = "steps";

impl<F: Stored, D: Backend<F>> AdamW<F, D> {
    /// Writes what the optimizer remembers of `module`'s weights to `path`: both moments of each weight, and the number
    /// of steps. It replaces a file that is there, whole or not at all. The settings are not written.
    ///
    /// A weight that had no step yet has moments of 0, here as in a step.
    ///
    /// # Errors
    /// A moment that is not finite, which [`AdamW::load`] would refuse; a file that can't be written. Then what was there is as
    /// it was.
    pub fn save<M: TensorCollection<F, D>>(
        &mut self,
        module: &M,
        path: impl AsRef<Path>,
    ) -> Result<()> {
        let path = path.as_ref();
        let mut collect = Collect { adam: self, moments: Vec::new(), diverged: None };
        M::iter_tensors(&mut RecursiveWalker { m: (module, String::new()), f: &mut collect })
            .map_err(Error::device)?;
        if let Some(reason) = collect.diverged {
            return Err(refuse(path, reason));
        }
        let notes = BTreeMap::from([(STEPS.to_string(), collect.adam.steps().to_string())]);
        let views = collect.moments.iter().map(|(name, shape, bytes)| {
            Ok((name, TensorView::new(F::DTYPE, shape.clone(), bytes)?))
        });
        let bytes = views
            .collect::<std::result::Result<Vec<_>, _>>()
            .and_then(|views| file_of(views, notes))
            .map_err(|e| refuse(path, e))?;
        NewFile::write(path, &bytes)?.put()
    }

    /// The optimizer whose state is in `path`, for the weights of `module`. With the weights of the same moment, the
    /// next step is bit for bit that of the optimizer that was saved.
    ///
    /// # Errors
    /// Settings that [`AdamW::new`] refuses; a file that can't be read or does not say how many steps were made; a
    /// moment that is missing, of another type or shape, or not finite; a mean square below 0.
    pub fn load<M: TensorCollection<F, D>>(
        config: AdamWConfig,
        module: &M,
        path: impl AsRef<Path>,
    ) -> Result<Self> {
        let path = path.as_ref();
        let mut adam = Self::new(config)?;
        let bytes = crate::weights::read_file(path).map_err(|e| refuse(path, e))?;
        let whole = |e| refuse(path, format!("not a .safetensors file ({e})"));
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(whole)?;
        let file = SafeTensors::deserialize(&bytes).map_err(whole)?;
        let steps = header.metadata().as_ref().and_then(|header| header.get(STEPS)?.parse().ok());
        let steps: usize = steps
            .ok_or_else(|| refuse(path, "its header does not say how many steps were made"))?;
        require(
            i32::try_from(steps).is_ok(),
            "the number of steps",
            "at most 2147483647",
            steps as f64,
        )?;
        let mut restore = Restore { adam: &mut adam, file: &file };
        M::iter_tensors(&mut RecursiveWalker { m: (module, String::new()), f: &mut restore })
            .map_err(|reason| refuse(path, reason))?;
        adam.steps = steps;
        Ok(adam)
    }
}

fn refuse(path: &Path, reason: impl std::fmt::Display) -> Error {
    Error::Weights { path: path.display().to_string(), reason: reason.to_string() }
}

/// Name, shape and bytes of each moment.
struct Collect<'a, F: Float, D: Backend<F>> {
    adam: &'a mut AdamW<F, D>,
    moments: Vec<(String, Vec<usize>, Vec<u8>)>,
    /// The first that is not finite, in words.
    diverged: Option<String>,
}

impl<F: Stored, D: Backend<F>> TensorVisitor<F, D> for Collect<'_, F, D> {
    type Viewer = (ViewTensorRef, ViewTensorName);
    type Err = D::Err;
    type E2 = F;
    type D2 = D;

    fn visit<S: Shape>(
        &mut self,
        options: TensorOptions<S, F, D>,
        (weight, name): (&Tensor<S, F, D>, String),
    ) -> std::result::Result<Option<Tensor<S, F, D>>, D::Err> {
        if !options.do_gradient_update {
            return Ok(None);
        }
        let AdamW { means, squares, .. } = &mut *self.adam;
        for (moment, kept) in MOMENTS.into_iter().zip([means, squares]) {
            kept.try_alloc_for(weight)?;
            let (name, values) = (format!("{moment}.{name}"), kept.get(weight).as_vec());
            if let Some(place) = values.iter().position(|x| !x.is_finite()) {
                let words = || {
                    format!(
                        "{name:?} has {} at place {place}, and nobody can go on from there",
                        values[place]
                    )
                };
                self.diverged.get_or_insert_with(words);
            }
            let mut bytes = Vec::new();
            values.into_iter().for_each(|x| x.write(&mut bytes));
            self.moments.push((name, weight.shape().concrete().into(), bytes));
        }
        Ok(None)
    }
}

struct Restore<'a, F: Float, D: Backend<F>> {
    adam: &'a mut AdamW<F, D>,
    file: &'a SafeTensors<'a>,
}

impl<F: Stored, D: Backend<F>> TensorVisitor<F, D> for Restore<'_, F, D> {
    type Viewer = (ViewTensorRef, ViewTensorName);
    type Err = String;
    type E2 = F;
    type D2 = D;

    fn visit<S: Shape>(
        &mut self,
        options: TensorOptions<S, F, D>,
        (weight, name): (&Tensor<S, F, D>, String),
    ) -> std::result::Result<Option<Tensor<S, F, D>>, String> {
        if !options.do_gradient_update {
            return Ok(None);
        }
        let AdamW { means, squares, .. } = &mut *self.adam;
        for (moment, kept) in MOMENTS.into_iter().zip([means, squares]) {
            let name = format!("{moment}.{name}");
            let stored = self.file.tensor(&name);
            let stored = stored.map_err(|_| format!("no tensor is called {name:?}"))?;
            let expected: Vec<usize> = weight.shape().concrete().into();
            if stored.shape() != expected {
                let got = stored.shape();
                return Err(format!("{name:?} has shape {got:?}, expected {expected:?}"));
            }
            if stored.dtype() != F::DTYPE {
                let (got, expected) = (stored.dtype(), F::DTYPE);
                return Err(format!("{name:?} holds {got:?}, expected {expected:?}"));
            }
            let words = stored.data().chunks_exact(std::mem::size_of::<F>());
            let values: Vec<F> = words.map(F::read).collect();
            let refused = |x: &F| !x.is_finite() || (moment == MOMENTS[1] && *x < F::zero());
            if let Some(place) = values.iter().position(refused) {
                let (got, rule) = (values[place], "a mean is finite, and a mean square at least 0");
                return Err(format!("{name:?} has {got} at place {place}: {rule}"));
            }
            let values = weight.device().try_tensor_from_vec(values, *weight.shape());
            let values = values.map_err(|e| e.to_string())?;
            set_gradient(kept, weight, values).map_err(|e| e.to_string())?;
        }
        Ok(None)
    }
}
