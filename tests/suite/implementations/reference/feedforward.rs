//! SwiGLU of the library.

use super::*;
use crate::implementations::{Adapter, adapter};
use contract::interface::*;
use quadrivium::functional::{ffn_hidden_size, linear, silu_mul};

/// The adapter.
pub const ADAPTER: Adapter<Library> = adapter!(SwiGlu, &[]);

type Matrix = Tensor<(usize, usize), f32, Dev>;

/// `W_1`, `W_3` and `W_2`.
fn matrices(case: &SwiGluCase) -> [Matrix; 3] {
    let ([_, _, h], f) = (case.shape, case.ffn_hidden_size);
    let of = |values: &[f32], shape| tensor(values, shape);
    [of(&case.gate, (f, h)), of(&case.up, (f, h)), of(&case.down, (h, f))]
}

/// What the module does with sizes in its type.
fn network<T: Tape<f32, Dev>>(
    x: Tensor<(usize, usize, usize), f32, Dev, T>,
    [gate, up, down]: &[Matrix; 3],
) -> Reply<Tensor<(usize, usize, usize), f32, Dev, T>> {
    let run = || {
        let gate = linear(x.with_empty_tape(), gate)?;
        let up = linear(x, up)?;
        linear(silu_mul(gate, up)?, down)
    };
    run().map_err(refused)
}

impl SwiGlu for Library {
    fn size(&self, case: &SizeCase) -> Reply<usize> {
        let SizeCase { hidden_size, multiple_of, multiplier } = *case;
        ffn_hidden_size(hidden_size, multiple_of, multiplier).map_err(refused)
    }

    fn forward_in(&self, manner: Manner, case: &SwiGluCase) -> Reply<Vec<f32>> {
        let (x, matrices) = (rows(&case.x, case.shape, manner), matrices(case));
        if manner == Manner::Traced {
            return Ok(network(x.leaky_trace(), &matrices)?.as_vec());
        }
        Ok(network(x, &matrices)?.as_vec())
    }

    fn backward_in(&self, manner: Manner, case: &SwiGluCase, dy: &[f32]) -> Reply<SwiGluGrads> {
        let matrices = matrices(case);
        let x = rows(&case.x, case.shape, leaf_manner(manner));
        let mut grads = run_back(manner, dy, || network(traced(&x, manner), &matrices))?;
        let [dgate, dup, ddown] = matrices.map(|matrix| gradient(&mut grads, &matrix));
        Ok(SwiGluGrads { dx: gradient(&mut grads, &x), dgate, dup, ddown })
    }
}
