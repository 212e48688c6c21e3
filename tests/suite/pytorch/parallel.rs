//! ParallelVocabEmbedding.

use super::*;

/// The modules draw the same tables: 32-bit, by seed.
#[test]
fn modules_start_from_the_same_numbers() {
    let goldens = Goldens::open("parallel");
    for case in goldens.cases("f32").filter(|case| case.size("w") == 3) {
        for rank in 0..3 {
            let config = ParallelVocabEmbeddingConfig { rank, ..Default::default() };
            let shard = ParallelVocabEmbedding::<12, 5, 3, f32, _>::new(&dev(), config).unwrap();
            let want = widen(&case.f32(&format!("table_{rank}")));
            assert_within(&widen(&shard.weight.as_vec()), &want, |_| 1e-6);
        }
    }
}

fn parallel<const W: usize>(case: &Case) {
    let input = ids(&case.ids("ids"), (2usize, 7usize));
    let mut sum = vec![0.0; 2 * 7 * 5];
    for rank in 0..W {
        let read = |what: &str| case.f32(&format!("{what}_{rank}"));
        let config = ParallelVocabEmbeddingConfig { rank, ..Default::default() };
        let mut shard = ParallelVocabEmbedding::<12, 5, W, f32, _>::new(&dev(), config).unwrap();
        shard.weight = tensor(&read("table"), (Quotient, Const));
        let y = shard.forward(Trace::<f32, Dev>::leaky_trace(&input));
        assert_eq!(y.as_vec(), read("y"));
        sum.iter_mut().zip(y.as_vec()).for_each(|(sum, y)| *sum += y);
        let grads = backward(y, &case.f32("dy")).get(&shard.weight).as_vec();
        let largest_sum = 14.0 * largest(&widen(&case.f32("dy")));
        assert_within(&widen(&grads), &widen(&read("dtable")), |_| 28.0 * U32 * largest_sum);
    }
    assert_eq!(sum, case.f32("y_sum"));
}

#[test]
fn parallel_vocab_embedding() {
    let goldens = Goldens::open("parallel");
    assert_eq!(goldens.cases("f32").count(), 4);
    for case in goldens.cases("f32") {
        match case.size("w") {
            1 => parallel::<1>(&case),
            2 => parallel::<2>(&case),
            3 => parallel::<3>(&case),
            4 => parallel::<4>(&case),
            other => panic!("{}: add {other:?} to this list", case.name),
        }
    }
}
