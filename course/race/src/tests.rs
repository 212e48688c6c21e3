//! The plain loops compute what the library computes: otherwise they would win the race by doing less.

use benches::{copy, ids, loops, values};
use quadrivium::tensor::*;
use quadrivium::*;

/// Values that differ from each other, so that no error is hidden by a symmetry.
fn dy(count: usize) -> Vec<f32> {
    values(count).iter().enumerate().map(|(i, value)| value + 0.01 * (i % 7) as f32).collect()
}

fn close(what: &str, got: &[f32], expected: &[f32]) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        let off = (got - expected).abs();
        // A sum of ten terms of size 1, some roundings each.
        assert!(off <= 1e-5 * expected.abs().max(1.0), "{what} {i}: {got}, not {expected}");
    }
}

#[test]
fn norms() {
    let dev = Cpu::default();
    let x: Tensor<Rank3<1, 5, 8>, f32, _> = dev.tensor_from_vec(values(40), Default::default());
    let upstream: Tensor<Rank3<1, 5, 8>, f32, _> = dev.tensor_from_vec(dy(40), Default::default());
    let (mut y, mut dx) = (vec![0.0; 40], vec![0.0; 40]);

    let norm = GroupRmsNorm::<8, 4, f32, _>::new(&dev, Default::default()).unwrap();
    let (gamma, eps) = (norm.weight.as_vec(), GroupRmsNormConfig::default().eps as f32);
    loops::norm(&values(40), &gamma, 4, eps, &mut y);
    close("norm", &y, &norm.forward(x.clone()).as_vec());
    let mut dgamma = vec![0.0; 8];
    loops::norm_backward(&values(40), &gamma, (4, eps), &dy(40), &mut dx, &mut dgamma);
    let grads = (norm.forward(x.leaky_trace()) * upstream.clone()).sum::<Rank0, _>().backward();
    close("norm dx", &dx, &grads.get(&x).as_vec());
    close("norm dgamma", &dgamma, &grads.get(&norm.weight).as_vec());

    let norm = LayerNorm::<8, f32, _>::new(&dev, Default::default()).unwrap();
    let (gamma, beta) = (norm.weight.as_vec(), norm.bias.as_vec());
    let eps = LayerNormConfig::default().eps as f32;
    loops::layernorm(&values(40), &gamma, &beta, eps, &mut y);
    close("layernorm", &y, &norm.forward(x.clone()).as_vec());
    let (mut dgamma, mut dbeta) = (vec![0.0; 8], vec![0.0; 8]);
    loops::layernorm_backward(
        &values(40),
        &gamma,
        eps,
        &dy(40),
        &mut dx,
        (&mut dgamma, &mut dbeta),
    );
    let grads = (norm.forward(x.leaky_trace()) * upstream).sum::<Rank0, _>().backward();
    close("layernorm dx", &dx, &grads.get(&x).as_vec());
    close("layernorm dgamma", &dgamma, &grads.get(&norm.weight).as_vec());
    close("layernorm dbeta", &dbeta, &grads.get(&norm.bias).as_vec());
}

#[test]
fn rope() {
    let dev = Cpu::default();
    let x: Tensor<Rank4<1, 3, 2, 6>, f32, _> = dev.tensor_from_vec(values(36), Default::default());
    let upstream: Tensor<Rank4<1, 3, 2, 6>, f32, _> =
        dev.tensor_from_vec(dy(36), Default::default());
    let config = NtkAwareRopeConfig { max_seq_len: 3, ..Default::default() };
    let rope = NtkAwareRope::<6, _>::new(&dev, config).unwrap();
    let tables = rope.tables(&dev).unwrap();
    let (cos, sin) = (tables.cos.as_vec(), tables.sin.as_vec());
    let (mut y, mut dx) = (vec![0.0; 36], vec![0.0; 36]);
    loops::rope(&values(36), (&cos[..18], &sin[..18]), 6, 1.0, &mut y);
    close("rope", &y, &rope.forward(x.clone()).as_vec());
    loops::rope(&dy(36), (&cos[..18], &sin[..18]), 6, -1.0, &mut dx);
    let grads = (rope.forward(x.leaky_trace()) * upstream).sum::<Rank0, _>().backward();
    close("rope dx", &dx, &grads.get(&x).as_vec());
}

#[test]
fn lookups() {
    let dev = Cpu::default();
    let batch: Tensor<Rank2<1, 7>, usize, _> = dev.tensor_from_vec(ids(7, 12), Default::default());
    let upstream: Tensor<Rank3<1, 7, 2>, f32, _> = dev.tensor_from_vec(dy(14), Default::default());
    let config = ParallelVocabEmbeddingConfig { rank: 1, ..Default::default() };
    let shard = ParallelVocabEmbedding::<12, 2, 3, f32, _>::new(&dev, config).unwrap();
    let mut y = vec![9.0; 14];
    loops::lookup(&shard.weight.as_vec(), 2, 4, &ids(7, 12), &mut y);
    close("rows", &y, &shard.forward(batch.clone()).as_vec());
    assert!(y.chunks(2).any(|row| row == [0.0, 0.0]) && y.iter().any(|y| *y != 0.0));
    let mut dtable = vec![0.0; 8];
    loops::lookup_backward(&dy(14), 2, 4, &ids(7, 12), &mut dtable);
    let grads = (shard.forward(batch.leaky_trace()) * upstream).sum::<Rank0, _>().backward();
    close("dtable", &dtable, &grads.get(&shard.weight).as_vec());
}

#[test]
fn a_copy_copies_all() {
    let source = values((1 << 16) * 2 + 5);
    let mut target = vec![9.0; source.len()];
    copy(&source, &mut target);
    assert_eq!(source, target);
}
