//! Rotary position embedding: what the contract does not ask. Gradients through both layouts, all digits of the frequencies,
//! far positions, the complex form, broadcast and `f64` input.

use super::*;
use quadrivium::pos_emb::{RotaryTables, ntk_base, rotary_frequencies};

fn tables<const HD: usize>(
    rows: usize,
    offset: usize,
    layout: Layout,
) -> RotaryTables<Const<HD>, Dev> {
    let frequencies = rotary_frequencies(HD, 10_000.0, 1.0).unwrap();
    RotaryTables::new(&dev(), Const, &frequencies, offset..offset + rows, layout).unwrap()
}

/// `half = P^-1 . interleaved . P`, bit for bit, gradients too.
#[test]
fn the_layouts_differ_by_a_permutation() {
    forall(cases(8), |case| {
        let s = case.shape.1;
        let x = case.tensor::<8>();
        let half = tables::<8>(s, case.offset, Layout::HalfSplit);
        let pairs = tables::<8>(s, case.offset, Layout::Interleaved);

        let direct = apply_rotary_pos_emb(x.leaky_trace(), &half.cos, &half.sin).unwrap();
        let around = half_split_to_interleaved(x.leaky_trace()).unwrap();
        let around = apply_rotary_pos_emb_interleaved(around, &pairs.cos, &pairs.sin).unwrap();
        let around = interleaved_to_half_split(around).unwrap();
        assert_same_bits(&around.as_vec(), &direct.as_vec());

        let want = backward(direct, &case.dy).get(&x).as_vec();
        assert_same_bits(&backward(around, &case.dy).get(&x).as_vec(), &want);
    });
}

/// The gradient is the transpose also for tables whose two halves differ: `<A x, dy> = <x, A^T dy>`.
#[test]
fn the_gradient_is_the_transpose_for_any_table() {
    forall((cases(4), values(4 * 8)), |(case, table)| {
        let s = case.shape.1;
        let x = case.tensor::<4>();
        let (cos, sin) = table.split_at(16);
        let [cos, sin] = [cos, sin].map(|t| tensor(&t[..4 * s], (s, Const::<4>)));
        for rotate in [apply_rotary_pos_emb, apply_rotary_pos_emb_interleaved] {
            let y = rotate(x.leaky_trace(), &cos, &sin).unwrap();
            let forward = dot(&y.as_vec(), &case.dy);
            let dx = backward(y, &case.dy).get(&x).as_vec();
            let scale = length(&case.x) * length(&case.dy) * 8.0; // tables reach 4
            assert!((forward - dot(&case.x, &dx)).abs() <= 8.0 * U32 * scale);
        }
    });
}

/// NTK leaves the fastest plane alone, slows the slowest by exactly k, and slows each plane by
/// the same factor more than the one before.
#[test]
fn ntk_slows_from_nothing_to_k() {
    let k = 1.0f64..64.0;
    let base = prop_oneof![Just(10_000.0f64), Just(500_000.0), Just(2.0)];
    forall((2..65usize, base, k), |(half, base, k)| {
        let d = 2 * half;
        let plain = rotary_frequencies(d, base, 1.0).unwrap();
        let ntk = rotary_frequencies(d, base, k).unwrap();
        let slowed: Vec<f64> = plain.iter().zip(&ntk).map(|(p, n)| p / n).collect();
        assert_eq!((plain[0], ntk[0]), (1.0, 1.0));
        assert!((slowed[half - 1] / k - 1.0).abs() < 1e-13);
        let c = k.powf(2.0 / (d as f64 - 2.0));
        let beta = base.powf(2.0 / d as f64);
        for i in 1..half {
            assert!((slowed[i] / slowed[i - 1] / c - 1.0).abs() < 1e-13);
            assert!((ntk[i] / ntk[i - 1] * (c * beta) - 1.0).abs() < 1e-13);
        }
    });
}

/// Inner products depend on the distance only around position 1,000,000 to 1e-6, where `f32` angles would be off by 6e-2: all rows
/// of one long call hold the same query, and of another the same key.
#[test]
fn inner_products_hold_at_a_million() {
    let rope = rope::<128>(1);
    let wave = |k: f32| (0..128).map(|i| (k * (i as f32 + 1.0)).sin()).collect::<Vec<f32>>();
    let rows = |head: &[f32]| {
        let x: X<128> = tensor(&head.repeat(64), (1, 64, 1, Const));
        rope.forward((x, 1_000_000)).as_vec()
    };
    let (q, k) = (wave(1.3), wave(0.7));
    let (queries, keys) = (rows(&q), rows(&k));
    let product = |m: usize, n: usize| dot(&queries[128 * m..][..128], &keys[128 * n..][..128]);
    for (m, n) in [(0, 0), (1, 0), (0, 5), (40, 3)] {
        for shift in 1..64 - m.max(n) {
            let error = (product(m + shift, n + shift) - product(m, n)).abs();
            assert!(error <= 1e-6 * length(&q) * length(&k));
        }
    }
}

/// The complex form is the same arithmetic in the same order, gradients by dfdx itself.
#[test]
fn the_complex_form_agrees() {
    forall(cases(8), |case| {
        let x = case.tensor::<8>();
        let RotaryTables { cos, sin, .. } =
            tables::<8>(case.shape.1, case.offset, Layout::HalfSplit);
        let real = apply_rotary_pos_emb(x.leaky_trace(), &cos, &sin).unwrap();
        let complex = apply_rotary_pos_emb_complex(x.leaky_trace(), &cos, &sin).unwrap();
        assert_eq!(complex.as_vec(), real.as_vec());
        let want = widen(&backward(real, &case.dy).get(&x).as_vec());
        let got = widen(&backward(complex, &case.dy).get(&x).as_vec());
        // Another order of the two terms, each of at most 4: three roundings of at most 8.
        assert_within(&got, &want, |_| 24.0 * U32);
    });
}

/// One head seen at many places and used twice: its gradient is the sum over all of them.
#[test]
fn a_broadcast_input_collects_its_gradient() {
    let rope = rope::<4>(1);
    let head = tensor(&[1.0f64, -2.0, 0.5, 3.0], (Const::<4>,));
    let wide = head
        .leaky_trace()
        .broadcast_like::<_, Axes3<0, 1, 2>>(&(1usize, 5usize, 1usize, Const::<4>));
    let twice = rope.forward(wide.with_empty_tape()) + rope.forward(wide);
    let got = twice.sum::<Rank0, _>().backward().get(&head).as_vec();
    let mut want = vec![0.0; 4];
    for position in 0..5 {
        let back = rotate(&[2.0; 4], f64::from(position), 10_000.0, 1.0, -1.0);
        want.iter_mut().zip(back).for_each(|(sum, dx)| *sum += dx);
    }
    assert_within(&got, &want, |_| 40.0 * U32); // 10 terms of 2 entries of the f32 tables
}

/// Extending by `k1` and then by `k2` is extending by `k1 k2`.
#[test]
fn ratios_multiply() {
    forall((2..65usize, 1.0f64..32.0, 1.0f64..32.0), |(half, k1, k2)| {
        let twice = ntk_base(ntk_base(10_000.0, 2 * half, k1).unwrap(), 2 * half, k2).unwrap();
        let once = ntk_base(10_000.0, 2 * half, k1 * k2).unwrap();
        assert!((twice / once - 1.0).abs() < 1e-13);
    });
}

/// An `f64` input is rotated in `f64`, with the `f32` tables.
#[test]
fn f64_input_stays_f64() {
    let rope = rope::<8>(1);
    let wave: Vec<f64> = (0..32).map(|i| (1.7 * f64::from(i)).sin()).collect();
    let x: X<8, f64> = tensor(&wave, (1, 4, 1, Const));
    let y = rope.forward((x.leaky_trace(), 3)).as_vec();
    let tables = tables::<8>(4, 3, Layout::HalfSplit);
    let (cos, sin) = (widen(&tables.cos.as_vec()), widen(&tables.sin.as_vec()));
    let partner = |i: usize| if i % 8 < 4 { -wave[i + 4] } else { wave[i - 4] };
    let want: Vec<f64> = (0..32).map(|i| wave[i] * cos[i] + partner(i) * sin[i]).collect();
    assert_within(&y, &want, |_| 2.0 * U64);
}
