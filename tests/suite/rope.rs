//! Rotary position embedding: the rotation, its group law, its layouts and its frequencies.

use crate::oracle;
use crate::support::*;
use num_complex::Complex64;
use proptest::prelude::*;
use quadrivium::functional::*;
use quadrivium::pos_emb::{RotaryTables, ntk_base, rotary_frequencies};
use quadrivium::tensor::*;
use quadrivium::{NtkAwareRope, NtkAwareRopeConfig};

type X<const HD: usize, F = f32> = Tensor<(usize, usize, usize, Const<HD>), F, Dev>;

fn rope<const HD: usize>(base: f64, ratio: usize) -> NtkAwareRope<HD, Dev> {
    let config = NtkAwareRopeConfig { base, max_seq_len: 64, ratio, ..Default::default() };
    NtkAwareRope::new(&dev(), config).unwrap()
}

/// Rotates one head to a position.
fn at<const HD: usize>(x: &[f32], position: usize) -> Vec<f32> {
    rope::<HD>(10_000.0, 1).forward((tensor(x, (1, 1, 1, Const::<HD>)), position)).as_vec()
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    widen(a).iter().zip(widen(b)).map(|(a, b)| a * b).sum()
}

fn length(a: &[f32]) -> f64 {
    dot(a, a).sqrt()
}

#[derive(Debug, Clone)]
struct Case {
    shape: (usize, usize, usize),
    x: Vec<f32>,
    dy: Vec<f32>,
    ratio: usize,
    offset: usize,
}

fn cases(hd: usize) -> impl Strategy<Value = Case> {
    (1..3usize, 1..5usize, 1..4usize, 1..9usize, 0..700usize).prop_flat_map(
        move |(b, s, n, ratio, offset)| {
            let count = b * s * n * hd;
            (values(count), values(count)).prop_map(move |(x, dy)| Case {
                shape: (b, s, n),
                x,
                dy,
                ratio,
                offset,
            })
        },
    )
}

impl Case {
    fn tensor<const HD: usize>(&self) -> X<HD> {
        tensor(&self.x, (self.shape.0, self.shape.1, self.shape.2, Const))
    }
}

/// Forward and gradient against `f64` loops, within the cache and past it. The tables err by
/// `u = 2^-24`, then come a product and a sum: `3 u` of each of the two terms, so `4 u` of their
/// sizes with room for the tables' own angle (`1e-9` here).
#[test]
fn agrees_with_f64_loops() {
    fn check<const HD: usize>() {
        forall(cases(HD), |case| {
            let rope = rope::<HD>(10_000.0, case.ratio);
            let x = case.tensor::<HD>();
            let y = rope.forward((x.leaky_trace(), case.offset));
            let values = widen(&y.as_vec());
            let dx = widen(&backward(y, &case.dy).get(&x).as_vec());
            let (_, s, n) = case.shape;
            let heads = |v: &[f32], turn: f64| -> Vec<f64> {
                let heads = widen(v);
                let turned = heads.chunks(HD).enumerate().flat_map(|(i, head)| {
                    // NTK is used when the call is longer than the cache, too.
                    let end = case.offset + s;
                    let k = if end <= 64 * case.ratio { case.ratio } else { 2 * end.div_ceil(128) };
                    let position = case.offset + i / n % s;
                    oracle::rope::rotate(head, position as f64, 10_000.0, k as f64, turn)
                });
                turned.collect()
            };
            let size = |v: &[f32], i: usize| {
                let head = i / HD * HD;
                let partner = head + (i - head + HD / 2) % HD;
                f64::from(v[i].abs()) + f64::from(v[partner].abs())
            };
            assert_within(&values, &heads(&case.x, 1.0), |i| 4.0 * U32 * size(&case.x, i));
            assert_within(&dx, &heads(&case.dy, -1.0), |i| 4.0 * U32 * size(&case.dy, i));
        });
    }
    check::<4>();
    check::<6>();
    check::<64>();
}

/// Position 0 turns nothing: every bit stays, but for the sign of a zero.
#[test]
fn position_0_is_the_identity() {
    forall(values(8), |x| {
        let x: Vec<f32> = x.iter().map(|x| x + 0.0).collect(); // no negative zero
        assert_same_bits(&at::<8>(&x, 0), &x);
    });
}

/// A turn keeps the length of every plane, to `6 u`.
#[test]
fn lengths_are_kept_in_every_plane() {
    forall((values(8), 0..64usize), |(x, m)| {
        let y = at::<8>(&x, m);
        for i in 0..4 {
            let (before, after) = (length(&[x[i], x[i + 4]]), length(&[y[i], y[i + 4]]));
            assert!((before - after).abs() <= 6.0 * U32 * before);
        }
    });
}

/// `R_m R_n = R_{m+n}`: turning twice is turning by the sum.
#[test]
fn turns_add_up() {
    forall((values(8), 0..32usize, 0..32usize), |(x, m, n)| {
        let (twice, once) = (at::<8>(&at::<8>(&x, m), n), at::<8>(&x, m + n));
        assert_within(&widen(&twice), &widen(&once), |_| 12.0 * U32 * length(&x));
    });
}

/// `<R_m q, R_n k>` depends on `m - n` only.
#[test]
fn inner_products_depend_on_the_distance_only() {
    forall((values(8), values(8), 0..20usize, 0..20usize, 0..40usize), |(q, k, m, n, shift)| {
        let near = dot(&at::<8>(&q, m), &at::<8>(&k, n));
        let far = dot(&at::<8>(&q, m + shift), &at::<8>(&k, n + shift));
        assert!((near - far).abs() <= 24.0 * U32 * length(&q) * length(&k));
    });
}

/// The same around position 1,000,000 to 1e-6, where `f32` angles would be off by 6e-2: all rows
/// of one long call hold the same query, and of another the same key.
#[test]
fn inner_products_hold_at_a_million() {
    let rope = rope::<128>(10_000.0, 1);
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

/// `e_0` at position 1 shows the layout: `cos 1` at 0 and `sin 1` at `d / 2`.
#[test]
fn a_unit_vector_shows_the_half_split_layout() {
    let y = widen(&at::<4>(&[1.0, 0.0, 0.0, 0.0], 1));
    let (sin, cos) = 1.0f64.sin_cos();
    assert_within(&y, &[cos, 0.0, sin, 0.0], |_| U32);
}

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

/// The permutation sends `i` to `2i` and `i + d/2` to `2i + 1`, for every head size, and its
/// inverse undoes it.
#[test]
fn the_permutation_interleaves_the_halves() {
    fn interleaves(half: u8, heads: u8) -> bool {
        let (half, heads) = (usize::from(half % 60) + 2, usize::from(heads % 3) + 1);
        let numbers: Vec<f32> = (0..2 * half * heads).map(|i| i as f32).collect();
        let x = tensor(&numbers, (1usize, 1usize, heads, 2 * half));
        let there = half_split_to_interleaved(x).unwrap();
        let moved = there.as_vec().chunks(2 * half).enumerate().all(|(head, row)| {
            let first = 2 * half * head;
            let at = |i: usize| (first + i) as f32;
            (0..half).all(|i| row[2 * i] == at(i) && row[2 * i + 1] == at(i + half))
        });
        moved && interleaved_to_half_split(there).unwrap().as_vec() == numbers
    }
    law(interleaves as fn(u8, u8) -> bool);
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

/// The gradient is the transpose also for tables that are no rotation: `<A x, dy> = <x, A^T dy>`.
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

/// Linear in `x`; and `|dx| = |dy|`, because the transpose of a rotation is a rotation.
#[test]
fn the_rotation_is_linear_and_its_gradient_keeps_lengths() {
    forall(cases(8), |case| {
        let rope = rope::<8>(10_000.0, case.ratio);
        let x = case.tensor::<8>();
        let y = rope.forward((x.leaky_trace(), case.offset));
        let doubled: Vec<f32> = y.as_vec().iter().map(|y| -2.0 * y).collect();
        assert_eq!(rope.forward((x.clone() * -2.0, case.offset)).as_vec(), doubled);
        let z = tensor(&case.dy, *x.shape());
        let together = rope.forward((x.clone() + z.clone(), case.offset));
        let apart = y.with_empty_tape().split_tape().0 + rope.forward((z, case.offset));
        // Values of at most 4, sums of at most 8: a rounding before or three after the turn.
        assert_within(&widen(&together.as_vec()), &widen(&apart.as_vec()), |_| 64.0 * U32);
        let dx = backward(y, &case.dy).get(&x).as_vec();
        for (dx, dy) in dx.chunks(8).zip(case.dy.chunks(8)) {
            assert!((length(dx) - length(dy)).abs() <= 8.0 * U32 * length(dy));
        }
    });
}

/// One head seen at many places and used twice: its gradient is the sum over all of them.
#[test]
fn a_broadcast_input_collects_its_gradient() {
    let rope = rope::<4>(10_000.0, 1);
    let head = tensor(&[1.0f64, -2.0, 0.5, 3.0], (Const::<4>,));
    let wide = head
        .leaky_trace()
        .broadcast_like::<_, Axes3<0, 1, 2>>(&(1usize, 5usize, 1usize, Const::<4>));
    let twice = rope.forward(wide.with_empty_tape()) + rope.forward(wide);
    let got = twice.sum::<Rank0, _>().backward().get(&head).as_vec();
    let mut want = vec![0.0; 4];
    for position in 0..5 {
        let back = oracle::rope::rotate(&[2.0; 4], f64::from(position), 10_000.0, 1.0, -1.0);
        want.iter_mut().zip(back).for_each(|(sum, dx)| *sum += dx);
    }
    assert_within(&got, &want, |_| 40.0 * U32); // 10 terms of 2 entries of the f32 tables
}

/// `cos^2 + sin^2 = 1`, halves are equal, and the tables stay within 1e-7 of the truth at
/// positions where `f32` angles are long lost.
#[test]
fn tables_are_points_on_the_circle() {
    let frequencies = rotary_frequencies(128, 10_000.0, 1.0).unwrap();
    for start in [0, 4096, 1_000_000] {
        let RotaryTables { cos, sin, .. } = tables::<128>(8, start, Layout::HalfSplit);
        let (cos, sin) = (cos.as_vec(), sin.as_vec());
        for (i, (&c, &s)) in cos.iter().zip(&sin).enumerate() {
            let (c64, s64) = (f64::from(c), f64::from(s));
            assert!((c64 * c64 + s64 * s64 - 1.0).abs() <= 4.0 * U32);
            let half = i / 128 * 128 + (i % 128 + 64) % 128;
            assert_eq!((c, s), (cos[half], sin[half]));
            // Independent of a product m * theta: one step's turn, taken to the power m.
            let position = (start + i / 128) as u32;
            let turn = Complex64::cis(frequencies[i % 64]).powu(position);
            assert!((c64 - turn.re).abs() <= 1e-7 && (s64 - turn.im).abs() <= 1e-7);
        }
    }
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

/// Extending by `k1` and then by `k2` is extending by `k1 k2`.
#[test]
fn ratios_multiply() {
    forall((2..65usize, 1.0f64..32.0, 1.0f64..32.0), |(half, k1, k2)| {
        let twice = ntk_base(ntk_base(10_000.0, 2 * half, k1).unwrap(), 2 * half, k2).unwrap();
        let once = ntk_base(10_000.0, 2 * half, k1 * k2).unwrap();
        assert!((twice / once - 1.0).abs() < 1e-13);
    });
}

/// The longest wavelength at `d = 128` is 54,410 positions, not `2 pi * 10000`.
#[test]
fn the_longest_wavelength() {
    let slowest = *rotary_frequencies(128, 10_000.0, 1.0).unwrap().last().unwrap();
    assert_eq!((std::f64::consts::TAU / slowest).round(), 54_410.0);
}

/// An `f64` input is rotated in `f64`, with the `f32` tables.
#[test]
fn f64_input_stays_f64() {
    let rope = rope::<8>(10_000.0, 1);
    let wave: Vec<f64> = (0..32).map(|i| (1.7 * f64::from(i)).sin()).collect();
    let x: X<8, f64> = tensor(&wave, (1, 4, 1, Const));
    let y = rope.forward((x.leaky_trace(), 3)).as_vec();
    let tables = tables::<8>(4, 3, Layout::HalfSplit);
    let (cos, sin) = (widen(&tables.cos.as_vec()), widen(&tables.sin.as_vec()));
    let partner = |i: usize| if i % 8 < 4 { -wave[i + 4] } else { wave[i - 4] };
    let want: Vec<f64> = (0..32).map(|i| wave[i] * cos[i] + partner(i) * sin[i]).collect();
    assert_within(&y, &want, |_| 2.0 * U64);
}
