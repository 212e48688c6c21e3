//! The loops on slices: the same bits as on tensors, halves within their rounding, and refusals that write nothing.

use half::{bf16, f16};
use quadrivium::functional;
use quadrivium::kernels::*;
use quadrivium::rope::Layout;
use quadrivium::tensor::*;
use quadrivium::{Error, in_threads};
use std::fmt::Debug;

/// Numbers between -2 and 2.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let next = |state: &mut u32| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (*state >> 8) as f32 / (1 << 22) as f32 - 2.0
    };
    let mut state = seed;
    (0..count).map(|_| next(&mut state)).collect()
}

const ROWS: usize = 37;
const H: usize = 24;

/// Halves give what `f32` gives for the same numbers, rounded once.
fn halves<N: Scalar<Wide = f32> + PartialEq + Debug>(
    of: fn(f32) -> N,
    to: fn(N) -> f32,
    run: impl Fn(&[N], &mut [N]),
    run_wide: impl Fn(&[f32], &mut [f32]),
) {
    let x: Vec<N> = numbers(ROWS * H, 5).into_iter().map(of).collect();
    let wide: Vec<f32> = x.iter().map(|x| to(*x)).collect();
    let (mut y, mut y_wide) = (vec![of(0.0); x.len()], vec![0.0; x.len()]);
    run(&x, &mut y);
    run_wide(&wide, &mut y_wide);
    assert_eq!(y, y_wide.into_iter().map(of).collect::<Vec<_>>());
}

#[test]
fn halves_are_rounded_once() {
    macro_rules! of_type {
        ($half:ty) => {
            let (of, to) =
                (<$half>::from_f32 as fn(f32) -> $half, <$half>::to_f32 as fn($half) -> f32);
            let ones = [1.0f32; H];
            let half_ones = ones.map(of);
            halves(
                of,
                to,
                |x, y| group_rms_norm(x, &half_ones, 8, 1e-6, y).unwrap(),
                |x, y| group_rms_norm(x, &ones, 8, 1e-6, y).unwrap(),
            );
            halves(of, to, |x, y| silu_mul(x, x, y).unwrap(), |x, y| silu_mul(x, x, y).unwrap());
            let sizes = sizes();
            let keys = ..sizes.batch_size * sizes.kv_len * sizes.num_kv_heads * sizes.head_dim;
            halves(
                of,
                to,
                |x, y| drop(causal_attention(sizes, &[], x, (&x[keys], &x[keys]), y).unwrap()),
                |x, y| drop(causal_attention(sizes, &[], x, (&x[keys], &x[keys]), y).unwrap()),
            );
        };
    }
    of_type!(f16);
    of_type!(bf16);
}

fn sizes() -> AttentionSizes {
    let (batch_size, seq_len, kv_len) = (1, ROWS, ROWS);
    AttentionSizes { batch_size, seq_len, kv_len, num_heads: 4, num_kv_heads: 2, head_dim: H / 4 }
}

#[test]
fn a_norm_has_the_bits_of_a_tensors() {
    let dev = Cpu::default();
    let (x, weight, dy) = (numbers(ROWS * H, 1), numbers(H, 2), numbers(ROWS * H, 3));
    let x_of: Tensor<Rank3<1, ROWS, H>, f32, _> = dev.tensor(x.clone());
    let weight_of: Tensor<Rank1<H>, f32, _> = dev.tensor(weight.clone());
    let dy_of: Tensor<Rank3<1, ROWS, H>, f32, _> = dev.tensor(dy.clone());
    for run in [|work: &mut dyn FnMut()| work(), |work: &mut dyn FnMut()| in_threads(work)] {
        run(&mut || {
            let y_of = functional::group_rms_norm(x_of.leaky_trace(), &weight_of, 8, 1e-6).unwrap();
            let mut y = vec![0.0; x.len()];
            group_rms_norm(&x, &weight, 8, 1e-6, &mut y).unwrap();
            assert_eq!(y, y_of.as_vec());
            let grads = (y_of * dy_of.clone()).sum::<Rank0, _>().backward();
            let (mut dx, mut dweight) = (vec![0.0; x.len()], vec![0.0; H]);
            group_rms_norm_backward(&x, &weight, 8, 1e-6, &dy, (&mut dx, &mut dweight)).unwrap();
            assert_eq!(dx, grads.get(&x_of).as_vec());
            assert_eq!(dweight, grads.get(&weight_of).as_vec());
        });
    }
}

#[test]
fn attention_has_the_bits_of_tensors() {
    let dev = Cpu::default();
    const S: usize = 70; // more than a block
    let sizes = AttentionSizes {
        batch_size: 2,
        seq_len: S,
        kv_len: S + 5,
        num_heads: 4,
        num_kv_heads: 2,
        head_dim: 8,
    };
    let padding = [0, 9];
    let (q, dy) = (numbers(2 * S * 32, 1), numbers(2 * S * 32, 4));
    let (k, v) = (numbers(2 * (S + 5) * 16, 2), numbers(2 * (S + 5) * 16, 3));
    let q_of: Tensor<Rank4<2, S, 4, 8>, f32, _> = dev.tensor(q.clone());
    let k_of: Tensor<Rank4<2, { S + 5 }, 2, 8>, f32, _> = dev.tensor(k.clone());
    let v_of: Tensor<Rank4<2, { S + 5 }, 2, 8>, f32, _> = dev.tensor(v.clone());
    let dy_of: Tensor<Rank4<2, S, 4, 8>, f32, _> = dev.tensor(dy.clone());
    let y_of = functional::causal_attention(
        q_of.leaky_trace(),
        k_of.leaky_trace(),
        v_of.leaky_trace(),
        &padding,
    )
    .unwrap();
    let mut y = vec![0.0; q.len()];
    let kept = causal_attention(sizes, &padding, &q, (&k, &v), &mut y).unwrap();
    assert_eq!(y, y_of.as_vec());
    let again = SoftmaxStats::of(sizes, &padding, &q, &k).unwrap();
    let grads = (y_of * dy_of).sum::<Rank0, _>().backward();
    let (mut dq, mut dk, mut dv) = (vec![0.0; q.len()], vec![0.0; k.len()], vec![0.0; v.len()]);
    for stats in [kept, again] {
        for gradient in [&mut dq, &mut dk, &mut dv] {
            gradient.fill(0.0);
        }
        let gradients = (&mut dq[..], &mut dk[..], &mut dv[..]);
        causal_attention_backward(&stats, &q, (&k, &v), &dy, gradients).unwrap();
        assert_eq!(dq, grads.get(&q_of).as_vec());
        assert_eq!(dk, grads.get(&k_of).as_vec());
        assert_eq!(dv, grads.get(&v_of).as_vec());
    }
}

#[test]
fn a_gate_has_the_bits_of_tensors() {
    let dev = Cpu::default();
    let [gate, up, dy] = [1, 2, 3].map(|seed| numbers(ROWS * H, seed));
    let of = |list: &[f32]| -> Tensor<Rank3<1, ROWS, H>, f32, _> { dev.tensor(list.to_vec()) };
    let (gate_of, up_of) = (of(&gate), of(&up));
    let y_of = functional::silu_mul(gate_of.leaky_trace(), up_of.leaky_trace()).unwrap();
    let mut y = vec![0.0; gate.len()];
    silu_mul(&gate, &up, &mut y).unwrap();
    assert_eq!(y, y_of.as_vec());
    let grads = (y_of * of(&dy)).sum::<Rank0, _>().backward();
    let (mut dgate, mut dup) = (vec![0.0; gate.len()], vec![0.0; gate.len()]);
    silu_mul_backward(&gate, &up, &dy, (&mut dgate, &mut dup)).unwrap();
    assert_eq!(dgate, grads.get(&gate_of).as_vec());
    assert_eq!(dup, grads.get(&up_of).as_vec());
}

/// Each pair by hand; then the inverse rotation, which is the gradient, gives the input back.
#[test]
fn a_rotation_turns_and_its_gradient_turns_back() {
    let (tokens, heads, hd, rotary_dim) = (5, 2, 8, 6);
    let x = numbers(tokens * heads * hd, 1);
    let positions = [3, 0, 6, 6, 1];
    for layout in [Layout::HalfSplit, Layout::Interleaved] {
        let pair = |plane: usize| match layout {
            Layout::HalfSplit => [plane, plane + rotary_dim / 2],
            Layout::Interleaved => [2 * plane, 2 * plane + 1],
        };
        let (mut cos, mut sin) = (vec![0.0; 7 * rotary_dim], vec![0.0; 7 * rotary_dim]);
        for (place, angle) in
            (0..7).flat_map(|p| (0..3).map(move |j| ((p, j), p as f32 * 0.3f32.powi(j))))
        {
            for dimension in pair(place.1 as usize) {
                cos[place.0 * rotary_dim + dimension] = angle.cos();
                sin[place.0 * rotary_dim + dimension] = angle.sin();
            }
        }
        let angles = CosSin { cos: &cos, sin: &sin, rotary_dim, layout };
        let mut y = vec![0.0; x.len()];
        apply_rotary_pos_emb(&x, angles, &positions, hd, &mut y).unwrap();
        for (row, (x, y)) in x.chunks(hd).zip(y.chunks(hd)).enumerate() {
            for plane in 0..3 {
                let [a, b] = pair(plane as usize);
                let angle = positions[row / heads] as f32 * 0.3f32.powi(plane);
                assert!((y[a] - (x[a] * angle.cos() - x[b] * angle.sin())).abs() < 1e-6);
                assert!((y[b] - (x[b] * angle.cos() + x[a] * angle.sin())).abs() < 1e-6);
            }
            assert_eq!(y[6..], x[6..]);
        }
        let mut back = vec![0.0; x.len()];
        apply_rotary_pos_emb_backward(&y, angles, &positions, hd, &mut back).unwrap();
        assert!(back.iter().zip(&x).all(|(back, x)| (back - x).abs() < 1e-6));
    }
}

#[test]
fn rows_are_looked_up_and_added_back() {
    let table = numbers(5 * 3, 1);
    let ids = [4, 0, 4, 2];
    let mut y = vec![0.0; 12];
    vocab_embedding(&table, &ids, 3, &mut y).unwrap();
    let expected: Vec<f32> = ids.iter().flat_map(|id| table[id * 3..][..3].to_vec()).collect();
    assert_eq!(y, expected);
    let mut dtable = vec![1.0; 15];
    vocab_embedding_backward(&ids, 3, &[1.0; 12], &mut dtable).unwrap();
    assert_eq!(dtable, [2.0, 1.0, 2.0, 1.0, 3.0].map(|sum| [sum; 3]).concat());
    // As the documentation says: 256 + 1 is 256.
    let mut dtable = [bf16::ZERO; 2];
    vocab_embedding_backward(&[1; 1000], 1, &[bf16::ONE; 1000], &mut dtable).unwrap();
    assert_eq!(dtable.map(bf16::to_f32), [0.0, 256.0]);
}

/// By the definition, in `f64`.
#[test]
fn a_loss_and_its_gradient() {
    let (rows, v) = (6, 11);
    let logits: Vec<f64> = numbers(rows * v, 1).into_iter().map(f64::from).collect();
    let targets = [Some(3), None, Some(10), Some(0), None, Some(3)];
    let softmax = |row: &[f64]| {
        let powers: Vec<f64> = row.iter().map(|logit| logit.exp()).collect();
        let total: f64 = powers.iter().sum();
        powers.into_iter().map(|power| power / total).collect::<Vec<_>>()
    };
    let mut loss = 0.0;
    let mut expected = vec![0.0; logits.len()];
    for ((row, expected), target) in logits.chunks(v).zip(expected.chunks_mut(v)).zip(targets) {
        let Some(target) = target else { continue };
        let shares = softmax(row);
        loss -= shares[target].ln() / 4.0;
        let both = expected.iter_mut().zip(shares);
        both.for_each(|(dlogit, share)| *dlogit = 0.5 * share / 4.0);
        expected[target] -= 0.5 / 4.0;
    }
    assert!((cross_entropy(&logits, &targets).unwrap() - loss).abs() < 1e-12);
    let mut dlogits = vec![0.0; logits.len()];
    cross_entropy_backward(&logits, &targets, 0.5, &mut dlogits).unwrap();
    assert!(dlogits.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-12));
}

#[test]
fn what_is_refused_writes_nothing() {
    fn refused(got: quadrivium::error::Result<()>, words: &str) {
        let error = got.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let x = [1.0f32; 12];
    let mut y = [7.0f32; 12];
    let ones = [1.0; 4];
    refused(group_rms_norm(&x, &[], 1, 0.0, &mut y), "weight has shape [0]");
    refused(group_rms_norm(&x, &ones, 3, 0.0, &mut y), "group size 3 does not divide");
    refused(group_rms_norm(&x, &ones, 0, 0.0, &mut y), "group size 0 does not divide");
    refused(group_rms_norm(&x, &[1.0; 5], 5, 0.0, &mut y), "x must have shape");
    refused(group_rms_norm(&x, &ones, 4, -1.0, &mut y), "eps");
    refused(group_rms_norm(&x, &ones, 4, 0.0, &mut y[..8]), "y must have shape");
    let gradients = (&mut y[..], &mut [0.0; 4][..]);
    refused(group_rms_norm_backward(&x, &ones, 4, 0.0, &x[1..], gradients), "dy must have shape");
    refused(silu_mul(&x, &x[1..], &mut y), "up must have shape");
    refused(vocab_embedding(&x, &[4], 3, &mut y[..3]), "token id 4");
    refused(vocab_embedding(&x, &[0], 0, &mut y[..0]), "y has shape [0]");
    refused(vocab_embedding(&x, &[0], 3, &mut y), "y must have shape");
    refused(vocab_embedding(&x, &[0], 5, &mut y[..5]), "table must have shape");
    refused(vocab_embedding(&[], &[0], 1 << 61, &mut y), "addresses");
    refused(vocab_embedding_backward(&[0], 3, &x, &mut y), "dy must have shape");
    let table = [1.0; 8];
    let tables = |rotary_dim| {
        let layout = Layout::HalfSplit;
        CosSin { cos: &table, sin: &table, rotary_dim, layout }
    };
    refused(apply_rotary_pos_emb(&x, tables(4), &[0, 1, 2], 4, &mut y), "position id 2 at [0, 2]");
    refused(apply_rotary_pos_emb(&x, tables(3), &[0, 1, 1], 4, &mut y), "3 of the 4 elements");
    refused(apply_rotary_pos_emb(&x, tables(0), &[0, 1, 1], 4, &mut y), "0 of the 4 elements");
    refused(apply_rotary_pos_emb(&x, tables(8), &[0, 0, 0], 4, &mut y), "8 of the 4 elements");
    refused(apply_rotary_pos_emb(&x, tables(6), &[0, 0], 6, &mut y), "cos must have shape");
    refused(apply_rotary_pos_emb(&x, tables(4), &[0, 1], 4, &mut y), "x must have shape");
    refused(apply_rotary_pos_emb(&x, tables(4), &[], 4, &mut y), "x must have shape");
    refused(apply_rotary_pos_emb_backward(&x, tables(4), &[], 4, &mut y), "dy must have shape");
    refused(cross_entropy(&x, &[None]).map(drop), "at least 1");
    refused(cross_entropy(&x, &[Some(12)]).map(drop), "token id 12");
    refused(cross_entropy(&x, &[Some(0); 5]).map(drop), "logits must have shape");
    refused(cross_entropy(&x, &[Some(0); 13]).map(drop), "logits has shape [13, 0]");
    let sizes = AttentionSizes {
        batch_size: 1,
        seq_len: 3,
        kv_len: 3,
        num_heads: 1,
        num_kv_heads: 1,
        head_dim: 4,
    };
    let mut call =
        |sizes, padding: &[usize]| causal_attention(sizes, padding, &x, (&x, &x), &mut y).map(drop);
    refused(call(AttentionSizes { kv_len: 2, ..sizes }, &[]), "3 queries have 2 keys");
    refused(call(AttentionSizes { num_kv_heads: 2, ..sizes }, &[]), "can't be shared");
    refused(call(AttentionSizes { num_kv_heads: 0, ..sizes }, &[]), "k has shape [1, 3, 0, 4]");
    refused(call(AttentionSizes { num_heads: 0, ..sizes }, &[]), "q has shape [1, 3, 0, 4]");
    refused(call(AttentionSizes { head_dim: usize::MAX, ..sizes }, &[]), "addresses");
    refused(call(AttentionSizes { seq_len: 2, ..sizes }, &[]), "q must have shape");
    refused(call(sizes, &[3]), "3");
    refused(call(sizes, &[0, 0]), "padding");
    assert_eq!(y, [7.0; 12]);
    // Without rows there is nothing to do.
    group_rms_norm(&x[..0], &[1.0; 4], 4, 0.0, &mut y[..0]).unwrap();
    apply_rotary_pos_emb(&x[..0], tables(4), &[], 4, &mut y[..0]).unwrap();
    vocab_embedding(&x, &[], 3, &mut y[..0]).unwrap();
    assert!(matches!(
        vocab_embedding(&x, &[9], 3, &mut y[..3]),
        Err(Error::TokenId { position: 0, .. })
    ));
}
