//! A bound on how large a gradient may be.

use crate::checks::require;
use crate::cpu::{each, gradient, is_fused, sum};
use crate::error::Result;
use crate::tensor::nn::tensor_collection::{RecursiveWalker, TensorVisitor, ViewTensorMut};
use crate::tensor::*;

/// Scales all gradients of a module so that their norm TOGETHER is at most `max_norm`. Returns the norm before.
///
/// All gradients keep their direction, and their sizes beside each other: one factor for all. (A bound for each tensor by
/// itself would turn the step.) Source: Pascanu et al. 2013, "On the difficulty of training recurrent neural networks".
///
/// # Errors
/// A `max_norm` that is not above 0; a norm that is not finite, and then nothing is changed; what the device reports.
pub fn clip_gradients<F: Float, D: Backend<F>, M: TensorCollection<F, D>>(
    module: &mut M,
    grads: &mut Gradients<F, D>,
    max_norm: f64,
) -> Result<f64> {
    require(max_norm > 0.0, "max_norm", "above 0", max_norm)?;
    let mut squares = Clip { grads, sum: 0.0, factor: None };
    M::iter_tensors(&mut RecursiveWalker { m: (&mut *module), f: &mut squares })
        .map_err(crate::Error::device)?;
    let norm = squares.sum.sqrt();
    require(norm.is_finite(), "the norm of the gradients", "finite: the model has diverged", norm)?;
    if norm > max_norm {
        let mut scale = Clip { grads, sum: 0.0, factor: Some(max_norm / norm) };
        M::iter_tensors(&mut RecursiveWalker { m: module, f: &mut scale })
            .map_err(crate::Error::device)?;
    }
    Ok(norm)
}

/// Adds up the squares, or scales.
struct Clip<'g, F: Float, D: Backend<F>> {
    grads: &'g mut Gradients<F, D>,
    sum: f64,
    factor: Option<f64>,
}

impl<F: Float, D: Backend<F>> TensorVisitor<F, D> for Clip<'_, F, D> {
    type Viewer = ViewTensorMut;
    type Err = D::Err;
    type E2 = F;
    type D2 = D;

    fn visit<S: Shape>(
        &mut self,
        _: TensorOptions<S, F, D>,
        weight: &mut Tensor<S, F, D>,
    ) -> std::result::Result<Option<Tensor<S, F, D>>, D::Err> {
        if is_fused::<D>() {
            let gradient = gradient(self.grads, weight)?;
            match self.factor {
                Some(factor) => scale(gradient, F::Wide::nearest(factor)),
                None => self.sum += squares(gradient),
            }
            return Ok(None);
        }
        self.grads.try_alloc_for(weight)?;
        let gradient = self.grads.get(weight);
        match self.factor {
            Some(factor) => {
                let scaled =
                    cast::<F, F::Wide, _, _>(&gradient)?.try_mul(F::Wide::nearest(factor))?;
                set_gradient(self.grads, weight, cast(&scaled)?)?;
            }
            None => {
                let squares = gradient.as_vec().into_iter().map(|g| g.to_f64().unwrap_or(f64::NAN));
                self.sum += squares.map(|g| g * g).sum::<f64>();
            }
        }
        Ok(None)
    }
}

/// Elements of one piece of work, whose squares are added up alone. The number of threads therefore changes no bit.
const PIECE: usize = 1 << 14;

/// In the wide type: a small factor may be 0 in `f16`.
fn scale<F: Float>(gradient: &mut [F], factor: F::Wide) {
    let work = |piece: &mut [F]| piece.iter_mut().for_each(|g| *g = F::narrow(g.wide() * factor));
    each(gradient.len(), gradient.chunks_mut(PIECE), work);
}

fn squares<F: Float>(gradient: &[F]) -> f64 {
    let square = |[g]: [F; 1]| g.to_f64().unwrap_or(f64::NAN).powi(2);
    let mut sums = vec![0.0; gradient.len().div_ceil(PIECE)];
    each(gradient.len(), sums.iter_mut().zip(gradient.chunks(PIECE)), |(of_piece, piece)| {
        *of_piece = sum([piece], square);
    });
    sums.into_iter().sum()
}
