//! VocabEmbedding: what the contract does not ask. The sign of a zero, a large table, the errors by their names, empty input.

use super::embedding;
use crate::support::*;
use quadrivium::Error;
use quadrivium::functional::vocab_embedding;
use quadrivium::tensor::*;

/// Also rows of NaN, infinity and negative zero are copied as they are.
#[test]
fn a_row_is_copied_not_computed() {
    let table = [f32::NAN, f32::INFINITY, -0.0, f32::MIN_POSITIVE / 2.0, 1.0, 2.0, 3.0, 4.0];
    let y = vocab_embedding(ids(&[0, 1], (1, 2)), &tensor(&table, (2usize, 4usize)));
    assert_same_bits(&y.unwrap().as_vec(), &table);
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

/// The first and the last id work; the next one is an error that names id, place and size.
#[test]
fn the_edges_of_the_vocabulary() {
    let embedding = embedding();
    embedding.try_forward(ids(&[0, 10], (1, 2))).unwrap();
    for id in [11, 12, usize::MAX] {
        let error = embedding.try_forward(ids(&[0, 1, 2, id], (2, 2))).unwrap_err();
        assert_eq!(error, Error::TokenId { id, batch: 1, position: 1, vocab_size: 11 });
    }
}

/// Empty batches and sequences are refused, because dfdx can't hold them.
#[test]
fn empty_input_is_an_error() {
    let embedding = embedding();
    for shape in [(0, 3), (3, 0), (0, 0)] {
        let error = embedding.try_forward(ids(&[], shape)).unwrap_err();
        assert_eq!(error, Error::Empty { name: "ids", shape: vec![shape.0, shape.1] });
    }
    let table = tensor::<_, f32>(&[], (3usize, 0usize));
    let error = vocab_embedding(ids(&[0], (1, 1)), &table).unwrap_err();
    assert_eq!(error, Error::Empty { name: "table", shape: vec![3, 0] });
}
