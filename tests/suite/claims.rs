//! Claims about position encodings that many texts repeat and that are wrong. One test for each.
//!
//! The chapter "Claims that are wrong" shows these tests. What the library computes is asked from
//! it; what it does not have (ALiBi, grouped keys, two-dimensional positions) is written here in
//! `f64` from its formula.

use crate::support::*;
use quadrivium::functional::{Layout, apply_rotary_pos_emb, apply_rotary_pos_emb_complex};
use quadrivium::pos_emb::{RotaryTables, rotary_frequencies};
use quadrivium::tensor::*;
use std::collections::BTreeSet;
use std::f64::consts::{PI, TAU};

/// Head size, base and training length of the examples: those of Llama 2.
const D: usize = 128;
const BASE: f64 = 10_000.0;
const TRAINED: usize = 4096;

fn plain_frequencies() -> Vec<f64> {
    rotary_frequencies(D, BASE, 1.0).unwrap()
}

// ANCHOR: helpers
/// One head at each of these positions, turned by the library, `[positions, HD]`.
fn turned_by<const HD: usize>(
    frequencies: &[f64],
    head: &[f32],
    positions: &[usize],
) -> Vec<Vec<f64>> {
    let layout = Layout::HalfSplit;
    let turn = |&m: &usize| {
        let tables = RotaryTables::new(&dev(), Const::<HD>, frequencies, m..m + 1, layout).unwrap();
        let x = tensor(head, (1usize, 1usize, 1usize, Const::<HD>));
        widen(&apply_rotary_pos_emb(x, &tables.cos, &tables.sin).unwrap().as_vec())
    };
    positions.iter().map(turn).collect()
}

fn turned<const HD: usize>(head: &[f32], position: usize) -> Vec<f64> {
    let frequencies = rotary_frequencies(HD, BASE, 1.0).unwrap();
    turned_by::<HD>(&frequencies, head, &[position]).remove(0)
}
// ANCHOR_END: helpers

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A head of zeros except for these values.
fn sparse<const HD: usize>(values: &[(usize, f32)]) -> Vec<f32> {
    let mut head = vec![0.0; HD];
    values.iter().for_each(|&(at, value)| head[at] = value);
    head
}

/// A head without zeros, different for each `seed`.
fn wave<const HD: usize>(seed: f32) -> Vec<f32> {
    (0..HD).map(|i| (seed * (i as f32 + 1.0)).sin()).collect()
}

// ANCHOR: theta_0
#[test]
fn theta_0_is_the_fastest_clock() {
    let theta = plain_frequencies();
    assert_eq!(theta[0], 1.0);
    assert!(theta.is_sorted_by(|earlier, later| earlier > later));

    // The rotation says the same: one step turns plane 0 by 1 radian, the last by
    // 0.0001.
    let first = turned::<D>(&sparse::<D>(&[(0, 1.0)]), 1);
    let last = turned::<D>(&sparse::<D>(&[(D / 2 - 1, 1.0)]), 1);
    assert!((first[D / 2] - 1.0f64.sin()).abs() < U32);
    assert!(last[D - 1] > 0.0 && last[D - 1] < 1.2e-4);
}
// ANCHOR_END: theta_0

// ANCHOR: longest
#[test]
fn the_longest_wavelength_is_54_410() {
    let theta = plain_frequencies();
    let wavelengths: Vec<f64> = theta.iter().map(|theta| TAU / theta).collect();
    let longest = wavelengths.iter().copied().fold(0.0, f64::max);
    assert_eq!(longest.round(), 54_410.0);
    assert!((longest / (TAU * BASE.powf(126.0 / 128.0)) - 1.0).abs() < 1e-12);

    // 2 pi base would be the wavelength of a plane i = d/2, which does not exist.
    assert_eq!(theta.len(), D / 2);
    assert!(wavelengths.iter().all(|&turn| turn < 0.9 * TAU * BASE));
}
// ANCHOR_END: longest

// ANCHOR: coincide
#[test]
fn no_two_positions_up_to_two_million_coincide() {
    // Only distances matter: plane i holds m and n at the same place if (m - n)
    // theta_i is a whole number of turns. The gap is |e^(i m theta) - e^(i n
    // theta)|, 2 at most.
    let theta = plain_frequencies();
    let gap = |distance: usize, theta: f64| {
        let half_angle = distance as f64 * theta / 2.0;
        2.0 * half_angle.sin().abs()
    };

    // At the longest wavelength, the slowest plane is back. Most others are far
    // away.
    let one_turn = (TAU / theta[D / 2 - 1]).round() as usize;
    assert!(gap(one_turn, theta[D / 2 - 1]) < 1e-4);
    assert_eq!(theta.iter().filter(|&&theta| gap(one_turn, theta) > 1.0).count(), 45);

    // Neighbours are distinguished by plane 0, which turns by 1 radian.
    assert!((gap(1, theta[0]) - 0.9589).abs() < 1e-4 && gap(2, theta[0]) > 1.68);
    // From distance 3 on, some plane shows the two positions almost opposite to
    // each other.
    for distance in 3..=2_000_000 {
        let is_far = theta.iter().any(|&theta| gap(distance, theta) > 1.92);
        assert!(is_far, "distance {distance}");
    }
}
// ANCHOR_END: coincide

// ANCHOR: extrapolates
#[test]
fn what_is_small_in_training_may_be_large_after_it() {
    // 18 of 64 planes never complete a turn within the training length. For 14 of
    // them, which need twice that length or more, every phase of the second half is
    // new.
    let theta = plain_frequencies();
    let unfinished =
        |length: usize| theta.iter().filter(|&theta| theta * length as f64 <= TAU).count();
    assert_eq!((unfinished(TRAINED), unfinished(2 * TRAINED)), (18, 14));

    // Three of them are enough for a query and a key whose product nearly vanishes
    // at all trained distances: the weights cancel the terms D^0 and D^2 of their
    // cosines.
    let [a, b, c] = [61, 62, 63].map(|i| theta[i] * theta[i] / (theta[61] * theta[61]));
    let q = sparse::<D>(&[(61, 1.0), (62, 1.0), (63, 1.0)]);
    let weights = [b - c, c - a, a - b].map(|weight| weight as f32);
    let k = sparse::<D>(&[(61, weights[0]), (62, weights[1]), (63, weights[2])]);
    let key = widen(&k);
    let largest = |frequencies: &[f64], distances: &[usize]| {
        let rows = turned_by::<D>(frequencies, &q, distances);
        rows.iter().map(|row| dot(row, &key).abs()).fold(0.0, f64::max)
    };
    let trained: Vec<usize> = (0..TRAINED).step_by(65).collect();
    let four_times: Vec<usize> = (0..4 * TRAINED).step_by(260).collect();
    let in_training = largest(&theta, &trained);
    assert!(largest(&theta, &four_times) > 150.0 * in_training);

    // Position interpolation asks for no phase that training did not have.
    let slower: Vec<f64> = theta.iter().map(|theta| theta / 4.0).collect();
    assert!(largest(&slower, &four_times) < 1.01 * in_training);
}
// ANCHOR_END: extrapolates

// ANCHOR: decays
#[test]
fn inner_products_need_not_decay_with_distance() {
    // In the slowest plane alone, q.k grows at every step of a thousand, over
    // 27,000 positions.
    let slow = D / 2 - 1;
    let (q, k) = (sparse::<D>(&[(slow, 1.0)]), sparse::<D>(&[(slow, -1.0)]));
    let distances: Vec<usize> = (0..28).map(|step| 1000 * step).collect();
    let rows = turned_by::<D>(&plain_frequencies(), &q, &distances);
    let products: Vec<f64> = rows.iter().map(|row| dot(row, &widen(&k))).collect();
    assert!(products.is_sorted_by(|near, far| near < far));
    assert!(products[0] == -1.0 && products[27] > 0.999);

    // With all planes, a query may prefer any distance: here 1000, and 0 gets next
    // to nothing.
    let q = wave::<D>(1.3);
    let k = turned::<D>(&q, 1000);
    let distances: Vec<usize> = (0..2000).step_by(8).collect();
    let rows = turned_by::<D>(&plain_frequencies(), &q, &distances);
    let products: Vec<f64> = rows.iter().map(|row| dot(row, &k)).collect();
    let best = (0..products.len()).max_by(|&a, &b| products[a].total_cmp(&products[b])).unwrap();
    assert_eq!(distances[best], 1000);
    assert!(products[0].abs() < 0.3 * products[best]);
}
// ANCHOR_END: decays

// ANCHOR: one_part_twice
#[test]
fn one_part_twice_loses_a_dimension() {
    // z e^(im) has two parts. `torch.cat` of one part with itself has one, twice.
    let (sin, cos) = 1.0f64.sin_cos();
    let right = |[x, y]: [f64; 2]| [x * cos - y * sin, x * sin + y * cos];
    let twice = |[x, y]: [f64; 2]| [x * sin + y * cos; 2];

    // A head that is not zero becomes zero, and with it every product with every
    // key.
    let head = [cos, -sin];
    assert_eq!(twice(head), [0.0, 0.0]);
    assert!((f64::hypot(right(head)[0], right(head)[1]) - 1.0).abs() < 1e-15);

    // Both forms of the library keep it: plane 0 of a head of 4, at position 1.
    let x = sparse::<4>(&[(0, cos as f32), (2, -sin as f32)]);
    let theta = rotary_frequencies(4, BASE, 1.0).unwrap();
    let tables = RotaryTables::new(&dev(), Const::<4>, &theta, 1..2, Layout::HalfSplit).unwrap();
    let x = tensor(&x, (1usize, 1usize, 1usize, Const::<4>));
    let real = apply_rotary_pos_emb(x.clone(), &tables.cos, &tables.sin).unwrap();
    let complex = apply_rotary_pos_emb_complex(x, &tables.cos, &tables.sin).unwrap();
    for y in [widen(&real.as_vec()), widen(&complex.as_vec())] {
        assert_within(&[y[0], y[2]], &right(head), |_| 4.0 * U32);
    }
}
// ANCHOR_END: one_part_twice

// ANCHOR: sign_lost
#[test]
fn without_the_minus_it_is_no_rotation() {
    // rotate_half(x) = (-x2, x1). Without the minus it is a swap.
    let swapped = |x: &[f32], m: usize| -> Vec<f64> {
        let theta = rotary_frequencies(4, BASE, 1.0).unwrap();
        let turn = |j: usize| (m as f64 * theta[j % 2]).sin_cos();
        let partner = |j: usize| f64::from(x[(j + 2) % 4]);
        (0..4).map(|j| f64::from(x[j]) * turn(j).1 + partner(j) * turn(j).0).collect()
    };
    let (q, k) = (wave::<4>(1.3), wave::<4>(0.7));

    // Squared lengths change: by up to 1 + |sin 2m| in a plane.
    let length = |y: Vec<f64>| dot(&y, &y).sqrt();
    let of_q = length(widen(&q));
    assert!((length(turned::<4>(&q, 1)) / of_q - 1.0).abs() < 1e-6);
    assert!((length(swapped(&q, 1)) / of_q - 1.0).abs() > 0.2);

    // And the product no longer depends on the distance alone. Here it is 3 each
    // time.
    let right = |m: usize| dot(&turned::<4>(&q, m + 3), &turned::<4>(&k, m));
    let wrong = |m: usize| dot(&swapped(&q, m + 3), &swapped(&k, m));
    assert!((0..20).all(|m| (right(m) - right(0)).abs() < 1e-6));
    assert!((0..20).any(|m| (wrong(m) - wrong(0)).abs() > 0.3));
}
// ANCHOR_END: sign_lost

// ANCHOR: type_as
#[test]
fn a_key_keeps_its_own_type() {
    // bf16 is the upper half of an f32, rounded to nearest, ties to even.
    let bf16 = |x: f32| {
        let bits = x.to_bits();
        f32::from_bits((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF_0000)
    };
    // `xk_out.type_as(xq)` with queries in bf16 and keys in f32: two keys become
    // one.
    let keys = [1.0f32, 1.0 + 1.0 / 256.0];
    assert_ne!(keys[0], keys[1]);
    assert_eq!(bf16(keys[0]), bf16(keys[1]));

    // The library gives back what came in: the type of a result is that of its own
    // input.
    let theta = rotary_frequencies(4, BASE, 1.0).unwrap();
    let tables = RotaryTables::new(&dev(), Const::<4>, &theta, 3..4, Layout::HalfSplit).unwrap();
    type Head<F> = Tensor<(usize, usize, usize, Const<4>), F, Dev>;
    let q: Head<f32> = tensor(&wave::<4>(1.3), (1, 1, 1, Const));
    let exact: Vec<f64> = (1..5).map(|i| (0.7 * f64::from(i)).sin()).collect();
    let k: Head<f64> = tensor(&exact, (1, 1, 1, Const));
    let turned_q: Head<f32> = apply_rotary_pos_emb(q, &tables.cos, &tables.sin).unwrap();
    let turned_k: Head<f64> = apply_rotary_pos_emb(k, &tables.cos, &tables.sin).unwrap();
    assert_eq!(widen(&turned_q.as_vec()), turned::<4>(&wave::<4>(1.3), 3));
    // And these are f64 numbers, not f32 numbers in a wider coat.
    assert!(turned_k.as_vec().iter().any(|&y| f64::from(y as f32) != y));
}
// ANCHOR_END: type_as

type Matrix = Vec<Vec<f64>>;

fn rotation(angle: f64) -> Matrix {
    let (sin, cos) = angle.sin_cos();
    vec![vec![cos, -sin], vec![sin, cos]]
}

/// `a` above `b`: each has its own rows and columns.
fn direct_sum(a: &Matrix, b: &Matrix) -> Matrix {
    let (n, m) = (a.len(), b.len());
    let entry = |i: usize, j: usize| match (i < n, j < n) {
        (true, true) => a[i][j],
        (false, false) => b[i - n][j - n],
        _ => 0.0,
    };
    (0..n + m).map(|i| (0..n + m).map(|j| entry(i, j)).collect()).collect()
}

/// Every entry of `a` times all of `b`.
fn kronecker(a: &Matrix, b: &Matrix) -> Matrix {
    let (n, m) = (a.len(), b.len());
    let entry = |i: usize, j: usize| a[i / m][j / m] * b[i % m][j % m];
    (0..n * m).map(|i| (0..n * m).map(|j| entry(i, j)).collect()).collect()
}

fn times(matrix: &Matrix, x: &[f64]) -> Vec<f64> {
    matrix.iter().map(|row| dot(row, x)).collect()
}

fn farthest(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

// ANCHOR: kronecker
#[test]
fn two_dimensional_rope_is_a_direct_sum() {
    let x = [0.8, -0.3, 0.5, 0.7];
    let sum = |row: f64, column: f64| times(&direct_sum(&rotation(row), &rotation(column)), &x);
    let product = |row: f64, column: f64| times(&kronecker(&rotation(row), &rotation(column)), &x);

    // A step to the side. In the sum, the half of the head that holds the row does
    // not notice.
    assert_eq!(sum(5.0, 2.0)[..2], sum(5.0, 3.0)[..2]);
    let moved = product(5.0, 2.0).iter().zip(product(5.0, 3.0)).filter(|(a, b)| **a != *b).count();
    assert_eq!(moved, 4);

    // In the product two half turns cancel: (-R) x (-R) = R x R. 355 is 113 half turns up to
    // 0.00003, so these two places of an image are one.
    assert!((355.0 - 113.0 * PI).abs() < 3.1e-5);
    assert!(farthest(&product(5.0, 2.0), &product(360.0, 357.0)) < 1e-4);
    assert!(farthest(&sum(5.0, 2.0), &sum(360.0, 357.0)) > 1.0);

    // Sizes: two turns of 64 make a head of 128. Their product does not fit into
    // it.
    let [a, b] = [0, 1].map(|_| vec![vec![0.0; 64]; 64]);
    assert_eq!((direct_sum(&a, &b).len(), kronecker(&a, &b).len()), (128, 4096));
}
// ANCHOR_END: kronecker

fn softmax(scores: &[f64]) -> Vec<f64> {
    let top = scores.iter().copied().fold(f64::MIN, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - top).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

// ANCHOR: memory
#[test]
fn a_bias_matrix_takes_heads_times_length_squared() {
    let (heads, length) = (4, 32);
    let slope = |head: usize| 2.0f64.powf(-8.0 * (head + 1) as f64 / heads as f64);
    let bias = |head: usize, query: usize, key: usize| slope(head) * (key as f64 - query as f64);

    // As a matrix: one number for each head, query and key.
    let matrix: Vec<f64> = (0..heads * length * length)
        .map(|i| bias(i / length / length, i / length % length, i % length))
        .collect();
    assert_eq!(matrix.len(), heads * length * length);
    // Real sizes, in f16: 32 heads and 4096 tokens take 1 GiB, in each layer that
    // makes its own.
    assert_eq!(32 * 4096usize.pow(2) * 2, 1 << 30);

    // What is O(L) is the number of different values: one for each distance.
    let different: BTreeSet<u64> = matrix[..length * length].iter().map(|b| b.to_bits()).collect();
    assert_eq!(different.len(), 2 * length - 1);

    // A fused kernel stores none of it: it computes the bias from the two
    // positions. ALiBi has a second way out. Within a row the query's part is a
    // constant, and softmax does not see a constant, so a vector of `slope * key`
    // gives the same weights.
    let scores: Vec<f64> = (0..length).map(|key| (1.7 * key as f64).sin()).collect();
    for query in 0..length {
        let weights = |bias: &dyn Fn(usize) -> f64| {
            let row: Vec<f64> = (0..=query).map(|key| scores[key] + bias(key)).collect();
            softmax(&row)
        };
        let from_matrix = weights(&|key| matrix[query * length + key]);
        let from_vector = weights(&|key| slope(0) * key as f64);
        assert_within(&from_vector, &from_matrix, |_| 1e-14);
    }
}
// ANCHOR_END: memory

// ANCHOR: repeat_kv
#[test]
fn grouped_keys_are_interleaved_not_tiled() {
    // 8 query heads share 2 key heads: heads 0 to 3 were trained with key head 0.
    let (heads, key_heads) = (8, 2);
    let repeats = heads / key_heads;
    let interleaved: Vec<usize> =
        (0..key_heads).flat_map(|head| std::iter::repeat_n(head, repeats)).collect();
    let tiled: Vec<usize> = (0..repeats).flat_map(|_| 0..key_heads).collect();
    assert_eq!(interleaved, [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(tiled, [0, 1, 0, 1, 0, 1, 0, 1]);

    // Both have 8 heads, so no shape complains. Half of the query heads meet the
    // wrong key.
    let queries: Vec<Vec<f32>> = (0..heads).map(|head| wave::<4>(1.0 + head as f32)).collect();
    let keys: Vec<Vec<f32>> = (0..key_heads).map(|head| wave::<4>(0.3 + head as f32)).collect();
    let scores = |of: &[usize]| -> Vec<f64> {
        let score = |head: usize| dot(&widen(&queries[head]), &widen(&keys[of[head]]));
        (0..heads).map(score).collect()
    };
    let pairs = scores(&interleaved).into_iter().zip(scores(&tiled));
    assert_eq!(pairs.filter(|(right, wrong)| right != wrong).count(), heads / 2);
}
// ANCHOR_END: repeat_kv

// ANCHOR: adds
#[test]
fn rope_turns_where_sinusoids_are_added() {
    let theta = rotary_frequencies(8, BASE, 1.0).unwrap();
    let added = |x: &[f32], m: usize| -> Vec<f64> {
        let angle = |j: usize| m as f64 * theta[j % 4];
        let wave = |j: usize| if j < 4 { angle(j).sin() } else { angle(j).cos() };
        (0..8).map(|j| f64::from(x[j]) + wave(j)).collect()
    };
    let (q, k) = (wave::<8>(1.3), wave::<8>(0.7));

    // A turn leaves nothing where there is nothing. A sum does not.
    let nothing = [0.0; 8];
    assert!(turned::<8>(&nothing, 7).iter().all(|&y| y == 0.0));
    assert!(added(&nothing, 7).iter().any(|&y| y != 0.0));

    // A turn keeps the length.
    let length = |y: &[f64]| dot(y, y).sqrt();
    assert!((length(&turned::<8>(&q, 7)) / length(&widen(&q)) - 1.0).abs() < 1e-6);
    assert!((length(&added(&q, 7)) / length(&widen(&q)) - 1.0).abs() > 0.1);

    // After a turn, the product knows the distance only. After a sum, it knows
    // where it is.
    let rotated = |m: usize| dot(&turned::<8>(&q, m + 3), &turned::<8>(&k, m));
    let summed = |m: usize| dot(&added(&q, m + 3), &added(&k, m));
    assert!((0..20).all(|m| (rotated(m) - rotated(0)).abs() < 2e-6));
    assert!((0..20).any(|m| (summed(m) - summed(0)).abs() > 0.5));
}
// ANCHOR_END: adds
