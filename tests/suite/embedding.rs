//! VocabEmbedding: rows are copied, gradients are added up.

mod unasked;

use crate::support::*;
use proptest::prelude::*;
use quadrivium::tensor::*;
use quadrivium::{VocabEmbedding, VocabEmbeddingConfig};

const V: usize = 11;
const M: usize = 5;

/// A table of 11 rows of 5 values.
fn embedding() -> VocabEmbedding<V, M, f32, Dev> {
    VocabEmbedding::new(&dev(), VocabEmbeddingConfig::default()).unwrap()
}

/// Gradient of a table: each row gets the sum of the gradients that looked it up.
pub(crate) fn gradient(ids: &[usize], dy: &[f64], vocab_size: usize, dim: usize) -> Vec<f64> {
    let mut grad = vec![0.0; vocab_size * dim];
    for (token, &id) in ids.iter().enumerate() {
        for j in 0..dim {
            grad[id * dim + j] += dy[token * dim + j];
        }
    }
    grad
}

#[derive(Debug, Clone)]
struct Call {
    shape: (usize, usize),
    tokens: Vec<usize>,
    dy: Vec<f32>,
}

fn calls() -> impl Strategy<Value = Call> {
    (1..4usize, 1..6usize).prop_flat_map(|(b, s)| {
        let tokens = proptest::collection::vec(0..V, b * s);
        (tokens, values(b * s * M)).prop_map(move |(tokens, dy)| Call { shape: (b, s), tokens, dy })
    })
}

#[test]
fn every_row_is_bit_equal_to_the_table() {
    let embedding = embedding();
    let table = embedding.weight.as_vec();
    forall(calls(), |Call { shape, tokens, .. }| {
        let y = embedding.forward(ids(&tokens, shape));
        assert_eq!(y.shape().concrete(), [shape.0, shape.1, M]);
        for (row, id) in y.as_vec().chunks(M).zip(tokens) {
            assert_same_bits(row, &table[id * M..][..M]);
        }
    });
}

// ANCHOR: scatter_add
/// The gradient against loops; a row that no token looked up gets exactly 0.
#[test]
fn the_gradient_is_a_scatter_add() {
    let embedding = embedding();
    forall(calls(), |Call { shape, tokens, dy }| {
        let y = embedding.forward(Trace::<f32, Dev>::leaky_trace(&ids(&tokens, shape)));
        let got = backward(y, &dy).get(&embedding.weight).as_vec();
        let want = gradient(&tokens, &widen(&dy), V, M);
        let abs: Vec<f64> = widen(&dy).iter().map(|x| x.abs()).collect();
        let scale = gradient(&tokens, &abs, V, M);
        // A sum of at most n terms errs by n u of the sum of their sizes; 0 terms err by 0.
        assert_within(&widen(&got), &want, |i| tokens.len() as f64 * U32 * scale[i]);
    });
}
// ANCHOR_END: scatter_add

/// Names do not matter: if rows and ids are renamed in the same way, the output stays.
#[test]
fn renaming_ids_with_their_rows_changes_nothing() {
    let embedding = embedding();
    let table = embedding.weight.as_vec();
    let order = Just((0..V).collect::<Vec<usize>>()).prop_shuffle();
    forall((calls(), order), |(Call { shape, tokens, .. }, new_name)| {
        let mut renamed_table = vec![0.0; V * M];
        for (old, new) in new_name.iter().enumerate() {
            renamed_table[new * M..][..M].copy_from_slice(&table[old * M..][..M]);
        }
        let mut renamed = embedding.clone();
        renamed.weight = tensor(&renamed_table, (Const, Const));
        let renamed_tokens: Vec<usize> = tokens.iter().map(|&id| new_name[id]).collect();
        let y = renamed.forward(ids(&renamed_tokens, shape)).as_vec();
        assert_same_bits(&y, &embedding.forward(ids(&tokens, shape)).as_vec());
    });
}

/// With `dy = 1`, the gradient counts how often each id occurs. With quickcheck: any bytes are a text.
#[test]
fn a_gradient_of_ones_counts() {
    fn counts(first: u8, others: Vec<u8>) -> bool {
        let bytes = [vec![first], others].concat();
        let tokens: Vec<usize> = bytes.iter().map(|byte| usize::from(*byte) % V).collect();
        let embedding = embedding();
        let text = ids(&tokens, (1, tokens.len()));
        let y = embedding.forward(Trace::<f32, Dev>::leaky_trace(&text));
        let grads = y.sum::<Rank0, _>().backward().get(&embedding.weight).as_vec();
        let count = |id: usize| tokens.iter().filter(|token| **token == id).count() as f32;
        grads.chunks(M).enumerate().all(|(id, row)| row == [count(id); M])
    }
    law(counts as fn(u8, Vec<u8>) -> bool);
}
