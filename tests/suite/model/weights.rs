//! The weights of a model, or its gradients, by the names that a checkpoint has.

use crate::oracle::model::Weights;
use crate::support::*;
use quadrivium::Error;
use quadrivium::tensor::nn::tensor_collection::{
    RecursiveWalker, TensorVisitor, ViewTensorMut, ViewTensorName,
};
use quadrivium::tensor::*;

/// Reads all weights, or their gradients.
struct Visit<'w> {
    weights: &'w mut Weights,
    grads: Option<&'w Gradients<f64, Dev>>,
}

impl TensorVisitor<f64, Dev> for Visit<'_> {
    type Viewer = (ViewTensorMut, ViewTensorName);
    type Err = Error;
    type E2 = f64;
    type D2 = Dev;

    fn visit<S: Shape>(
        &mut self,
        _: TensorOptions<S, f64, Dev>,
        (tensor, name): (&mut Tensor<S, f64, Dev>, String),
    ) -> Result<Option<Tensor<S, f64, Dev>>, Error> {
        let values = match self.grads {
            None => tensor.as_vec(),
            Some(grads) => grads.get(tensor).as_vec(),
        };
        self.weights.insert(name, values);
        Ok(None)
    }
}

/// The weights of a model, or its gradients, by name.
pub(crate) fn named<M: TensorCollection<f64, Dev>>(
    model: &mut M,
    grads: Option<&Gradients<f64, Dev>>,
) -> Weights {
    let mut weights = Weights::new();
    let mut visit = Visit { weights: &mut weights, grads };
    let walker = &mut RecursiveWalker { m: (model, String::new()), f: &mut visit };
    M::iter_tensors(walker).unwrap();
    weights
}
