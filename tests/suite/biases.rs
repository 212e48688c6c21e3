//! Biases by distance, beside their rules: ALiBi's slopes, T5's buckets in whole numbers, KERPLE's kernels in `f64`.

mod in_attention;
mod transformer_xl;
mod unasked;

use crate::support::*;
use proptest::prelude::*;
use quadrivium::position::*;
use quadrivium::tensor::*;

/// T5's rule in whole numbers, for `exact` and `max_distance / exact` that are powers of two: bucket `exact + k`
/// begins where `(d / exact)^(n - exact) >= (max / exact)^k`.
fn bucket_by_powers(d: u128, n: u32, max_distance: u128) -> usize {
    let exact = u128::from(n / 2);
    if d < exact {
        return d as usize;
    }
    if d >= max_distance {
        return n as usize - 1; // the next line's powers would not fit
    }
    let (of_exact, of_ratio) = (exact.ilog2(), (max_distance / exact).ilog2());
    let reached = |k: &u32| d.pow(n / 2) >= 1 << (of_ratio * k + of_exact * (n / 2));
    (exact as u32 + (0..n / 2).take_while(reached).last().unwrap()) as usize
}

/// The formula of a kernel at one distance.
fn formula(kernel: KerpleKernel, r1: f64, r2: f64, j: f64) -> f64 {
    match kernel {
        KerpleKernel::Logarithmic => -r1 * (1.0 + r2 * j).ln(),
        KerpleKernel::Power => -r1 * j.powf(r2),
    }
}

const KERNELS: [KerpleKernel; 2] = [KerpleKernel::Logarithmic, KerpleKernel::Power];

fn table(kernel: KerpleKernel, r1: &[f64], r2: &[f64], t: usize) -> Vec<f64> {
    let [r1, r2] = [r1, r2].map(|r| tensor(r, (r.len(),)));
    kerple_bias::<_, f64, Dev, NoneTape>(kernel, &r1, &r2, t).unwrap().as_vec()
}

/// A row of a bias: from 0 on it falls, and never rises.
fn assert_falls(row: &[f64]) {
    assert_eq!(row[0].to_bits(), 0.0f64.to_bits());
    assert!(row.is_sorted_by(|near, far| near > far), "{row:?}");
}

#[test]
fn t5_buckets_are_those_of_whole_numbers() {
    for (n, max_distance) in [(32, 128), (16, 128), (8, 128), (16, 64)] {
        for d in 0..300i64 {
            let want = bucket_by_powers(d as u128, n, max_distance as u128);
            let causal = t5_bucket(-d, false, n as usize, max_distance).unwrap();
            assert_eq!(causal, want, "{d} of {n} to {max_distance}");
            let earlier = t5_bucket(-d, true, 2 * n as usize, max_distance).unwrap();
            assert_eq!(earlier, want);
            let later = t5_bucket(d, true, 2 * n as usize, max_distance).unwrap();
            assert_eq!(later, if d == 0 { 0 } else { n as usize + want });
        }
    }
}

/// Any settings: no bucket is missing before one's own distances end, none comes before an earlier one, and the last
/// is the last.
#[test]
fn t5_buckets_never_fall() {
    let settings = (2usize..70, 0usize..500, any::<bool>());
    forall(settings, |(count, beyond, bidirectional)| {
        let (n, directions) = if bidirectional { (2 * count, 2) } else { (count, 1) };
        let max_distance = count / 2 + 1 + beyond;
        let of = |d: i64| t5_bucket(-d, bidirectional, n, max_distance).unwrap();
        let buckets: Vec<usize> = (0..=max_distance as i64).map(of).collect();
        assert!(buckets.is_sorted());
        assert!((0..count / 2).all(|d| buckets[d] == d));
        assert_eq!(buckets[count / 2], count / 2);
        assert_eq!((buckets[max_distance], of(1 << 50)), (n / directions - 1, n / directions - 1));
    });
}

/// The formula, 0 at distance 0, and falling. `1 + r2 j` is rounded before the logarithm here: an ulp of a number of
/// size 40, and the table's own roundings.
#[test]
fn kerple_is_the_formula() {
    let r = || proptest::collection::vec(0.02f64..1.9, 3);
    forall((r(), r()), |(r1, r2)| {
        for kernel in KERNELS {
            let rows = table(kernel, &r1, &r2, 20);
            for (head, row) in rows.chunks(20).enumerate() {
                let want: Vec<f64> =
                    (0..20).map(|j| formula(kernel, r1[head], r2[head], f64::from(j))).collect();
                assert_within(row, &want, |j| 8.0 * U64 * (want[j].abs() + 2.0));
                assert_falls(row);
            }
        }
    });
}

/// A farther key is punished by its head's slope for each step, and no two heads are the same. With quickcheck.
#[test]
fn alibi_falls_by_its_slope() {
    fn falls(heads: u8, positions: u8) -> bool {
        let (heads, t) = (usize::from(heads) + 1, usize::from(positions) + 1);
        let mut slopes = alibi_slopes(heads).unwrap();
        let bias = alibi_bias::<f64, _>(&dev(), heads, t).unwrap().as_vec();
        let rows = bias.chunks(t).zip(&slopes);
        let all =
            rows.flat_map(|(row, slope)| row.iter().enumerate().map(move |(j, y)| (j, y, slope)));
        let linear = all.into_iter().all(|(j, y, slope)| *y == -slope * j as f64);
        slopes.sort_by(f64::total_cmp);
        linear && slopes.is_sorted_by(|one, next| one < next)
    }
    law(falls as fn(u8, u8) -> bool);
}
