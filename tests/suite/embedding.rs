//! VocabEmbedding: rows are copied, gradients are added up.

use crate::oracle;
use crate::support::*;
use proptest::prelude::*;
use quadrivium::functional::vocab_embedding;
use quadrivium::tensor::*;
use quadrivium::{Error, VocabEmbedding, VocabEmbeddingConfig};

type Embedding<const V: usize, const M: usize, F = f32> = VocabEmbedding<V, M, F, Dev>;

fn embedding<const V: usize, const M: usize>() -> Embedding<V, M> {
    Embedding::new(&dev(), VocabEmbeddingConfig::default()).unwrap()
}

/// Shape and ids of one call.
fn calls(vocab_size: usize) -> impl Strategy<Value = ((usize, usize), Vec<usize>)> {
    (1..4usize, 1..6usize).prop_flat_map(move |(b, s)| {
        (Just((b, s)), proptest::collection::vec(0..vocab_size, b * s))
    })
}

#[test]
fn every_row_is_bit_equal_to_the_table() {
    fn check<const V: usize, const M: usize>() {
        let embedding = embedding::<V, M>();
        let table = embedding.weight.as_vec();
        forall(calls(V), |(shape, tokens)| {
            let y = embedding.forward(ids(&tokens, shape));
            assert_eq!(y.shape().concrete(), [shape.0, shape.1, M]);
            for (row, &id) in y.as_vec().chunks(M).zip(&tokens) {
                assert_same_bits(row, &table[id * M..][..M]);
            }
        });
    }
    check::<11, 5>();
    check::<1, 3>();
    check::<100, 1>();
}

/// Also rows of NaN, infinity and negative zero are copied as they are.
#[test]
fn a_row_is_copied_not_computed() {
    let mut embedding = embedding::<2, 4>();
    let table = [f32::NAN, f32::INFINITY, -0.0, f32::MIN_POSITIVE / 2.0, 1.0, 2.0, 3.0, 4.0];
    embedding.weight = tensor(&table, (Const, Const));
    assert_same_bits(&embedding.forward(ids(&[0, 1], (1, 2))).as_vec(), &table);
}

/// Token number times table size passes `2^32` here, where dfdx's GPU code for a matrix of ids
/// wraps.
#[test]
fn a_long_sequence_in_a_large_table() {
    const V: usize = 50_257;
    let rows: Vec<f32> = (0..V * 16).map(|i| (i % 9_973) as f32).collect();
    let table = tensor(&rows, (V, 16usize));
    let tokens: Vec<usize> = (0..6_000).map(|i| i * 7_919 % V).collect();
    let y = vocab_embedding(ids(&tokens, (2, 3_000)), &table).unwrap().as_vec();
    for (row, id) in y.chunks(16).zip(&tokens) {
        assert_same_bits(row, &rows[id * 16..][..16]);
    }
}

// ANCHOR: scatter_add
/// The gradient against loops; a row that no token looked up gets exactly 0.
#[test]
fn the_gradient_is_a_scatter_add() {
    let embedding = embedding::<11, 5>();
    let strategy = calls(11).prop_flat_map(|(shape, tokens)| {
        let dy = values(tokens.len() * 5);
        (Just(shape), Just(tokens), dy)
    });
    forall(strategy, |(shape, tokens, dy)| {
        let y = embedding.forward(Trace::<f32, Dev>::leaky_trace(&ids(&tokens, shape)));
        let got = backward(y, &dy).get(&embedding.weight).as_vec();
        let want = oracle::embedding::gradient(&tokens, &widen(&dy), 11, 5);
        let abs: Vec<f64> = widen(&dy).iter().map(|x| x.abs()).collect();
        let scale = oracle::embedding::gradient(&tokens, &abs, 11, 5);
        // A sum of at most n terms errs by n u of the sum of their sizes; 0 terms err by 0.
        assert_within(&widen(&got), &want, |i| tokens.len() as f64 * U32 * scale[i]);
    });
}
// ANCHOR_END: scatter_add

/// With `dy = 1`, the gradient counts how often each id occurs.
#[test]
fn a_gradient_of_ones_counts() {
    let embedding = embedding::<11, 5>();
    forall(calls(11), |(shape, tokens)| {
        let y = embedding.forward(Trace::<f32, Dev>::leaky_trace(&ids(&tokens, shape)));
        let grads = y.sum::<Rank0, _>().backward().get(&embedding.weight).as_vec();
        for (id, row) in grads.chunks(5).enumerate() {
            let count = tokens.iter().filter(|&&token| token == id).count();
            assert_eq!(row, [count as f32; 5]);
        }
    });
}

/// Names do not matter: if rows and ids are renamed alike, the output stays.
#[test]
fn renaming_ids_with_their_rows_changes_nothing() {
    let embedding = embedding::<11, 5>();
    let order = Just((0..11).collect::<Vec<usize>>()).prop_shuffle();
    forall((calls(11), order), |((shape, tokens), new_name)| {
        let table = embedding.weight.as_vec();
        let mut renamed_table = vec![0.0; table.len()];
        for (old, &new) in new_name.iter().enumerate() {
            renamed_table[new * 5..][..5].copy_from_slice(&table[old * 5..][..5]);
        }
        let mut renamed = embedding.clone();
        renamed.weight = tensor(&renamed_table, (Const, Const));
        let renamed_tokens: Vec<usize> = tokens.iter().map(|&id| new_name[id]).collect();
        let y = renamed.forward(ids(&renamed_tokens, shape)).as_vec();
        assert_same_bits(&y, &embedding.forward(ids(&tokens, shape)).as_vec());
    });
}

/// The first and the last id work; the next one is an error that names id, place and size.
#[test]
fn the_edges_of_the_vocabulary() {
    let embedding = embedding::<11, 5>();
    embedding.try_forward(ids(&[0, 10], (1, 2))).unwrap();
    for id in [11, 12, usize::MAX] {
        let error = embedding.try_forward(ids(&[0, 1, 2, id], (2, 2))).unwrap_err();
        assert_eq!(error, Error::TokenId { id, batch: 1, position: 1, vocab_size: 11 });
    }
}

/// Empty batches and sequences are refused, because dfdx can't hold them.
#[test]
fn empty_input_is_an_error() {
    let embedding = embedding::<11, 5>();
    for shape in [(0, 3), (3, 0), (0, 0)] {
        let error = embedding.try_forward(ids(&[], shape)).unwrap_err();
        assert_eq!(error, Error::Empty { name: "ids", shape: vec![shape.0, shape.1] });
    }
    let table = tensor::<_, f32>(&[], (3usize, 0usize));
    let error = vocab_embedding(ids(&[0], (1, 1)), &table).unwrap_err();
    assert_eq!(error, Error::Empty { name: "table", shape: vec![3, 0] });
}
