//! VocabEmbedding.

use super::*;

/// Rows bit for bit; gradients to 1e-5, and unused rows exactly 0.
fn embedding<const V: usize, const M: usize>(case: &Case) {
    let drawn = VocabEmbeddingConfig {
        init_mean: case.number("mean"),
        init_std: case.number("std"),
        init_seed: case.size("seed") as u64,
    };
    let mut embedding = VocabEmbedding::<V, M, f32, _>::new(&dev(), drawn).unwrap();
    let table = case.f32("table");
    let bound = 1e-6 * drawn.init_std + U32 * drawn.init_mean.abs();
    assert_within(&widen(&embedding.weight.as_vec()), &widen(&table), |_| bound);

    embedding.weight = tensor(&table, (Const, Const));
    let tokens = case.ids("ids");
    let y = embedding.forward(Trace::<f32, Dev>::leaky_trace(&ids(&tokens, (2usize, 7usize))));
    assert_same_bits(&y.as_vec(), &case.f32("y"));
    let grads = backward(y, &case.f32("dy")).get(&embedding.weight).as_vec();
    let want = case.f32("dtable");
    let abs: Vec<f64> = widen(&case.f32("dy")).iter().map(|x| x.abs()).collect();
    let terms = crate::embedding::gradient(&tokens, &abs, V, M);
    // Two sums of at most 14 terms, in two orders.
    assert_within(&widen(&grads), &widen(&want), |i| 28.0 * U32 * terms[i]);
    for id in (0..V).filter(|id| !tokens.contains(id)) {
        assert_eq!(grads[id * M..][..M], [0.0; M]);
    }
}

#[test]
fn vocab_embedding() {
    let goldens = Goldens::open("embedding");
    assert_eq!((goldens.cases("f32").count(), goldens.cases("f64").count()), (3, 1));
    for case in goldens.cases("f32") {
        match (case.size("v"), case.size("e")) {
            (11, 5) => embedding::<11, 5>(&case),
            (32, 16) => embedding::<32, 16>(&case),
            (100, 8) => embedding::<100, 8>(&case),
            other => panic!("{}: add {other:?} to this list", case.name),
        }
    }
    for case in goldens.cases("f64") {
        let mut embedding =
            VocabEmbedding::<11, 5, f64, _>::new(&dev(), Default::default()).unwrap();
        embedding.weight = tensor(&case.f64("table"), (Const, Const));
        let input = ids(&case.ids("ids"), (2usize, 7usize));
        let y = embedding.forward(Trace::<f64, Dev>::leaky_trace(&input));
        assert_eq!(y.as_vec(), case.f64("y"));
        let grads = backward(y, &case.f64("dy")).get(&embedding.weight).as_vec();
        assert_within(&grads, &case.f64("dtable"), |_| 1e-14);
    }
}
