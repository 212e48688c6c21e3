//! Questions to biases in the scores.

use crate::biases::interface::*;
use crate::biases::laws::{beside_edges, large_among_ones, published};
use crate::component::Fingerprint;
use crate::laws::widen;

/// Asks them all.
pub fn fingerprints(biases: &dyn ScoreBiases) -> Vec<Fingerprint> {
    let mut fingerprints = Vec::new();
    for num_heads in [1, 2, 4, 8, 16, 3, 6, 7, 12, 20] {
        fingerprints.push(Fingerprint::ask("slopes", || biases.slopes(num_heads)));
    }
    for case in alibi() {
        fingerprints.push(Fingerprint::ask("alibi", || Ok(widen(&biases.alibi(&case)?))));
    }
    for case in buckets() {
        fingerprints.push(Fingerprint::ask("bucket", || Ok(vec![biases.bucket(&case)? as f64])));
    }
    for case in t5() {
        let dy = wave(case.num_heads * case.shape[0] * case.shape[1], 5, 0.25);
        fingerprints.push(Fingerprint::ask("t5", || Ok(widen(&biases.t5(&case)?))));
        fingerprints
            .push(Fingerprint::ask("t5_backward", || Ok(widen(&biases.t5_backward(&case, &dy)?))));
    }
    let (case, dy) = large_among_ones();
    fingerprints
        .push(Fingerprint::ask("t5_backward", || Ok(widen(&biases.t5_backward(&case, &dy)?))));
    for case in kerple() {
        let dy = wave(case.r1.len() * case.positions, 3, 0.25);
        let grads = || biases.kerple_backward(&case, &dy);
        fingerprints.push(Fingerprint::ask("kerple", || Ok(widen(&biases.kerple(&case)?))));
        fingerprints.push(Fingerprint::ask("kerple_backward", || Ok(widen(&grads()?.dr1))));
        fingerprints.push(Fingerprint::ask("kerple_backward", || Ok(widen(&grads()?.dr2))));
    }
    for case in transformer_xl() {
        fingerprints
            .push(Fingerprint::ask("transformer_xl", || Ok(widen(&biases.transformer_xl(&case)?))));
    }
    fingerprints
}

/// Plain values between -6 and 6, times `scale`, none of them 0.
fn wave(n: usize, step: usize, scale: f32) -> Vec<f32> {
    (0..n).map(|i| ((i * step % 13) as f32 - 6.25) * scale).collect()
}

/// Zeros and others, a whole text and its last token, heads of one element and of more.
fn alibi() -> Vec<AlibiCase> {
    let of = |shape: [usize; 4], scale: f32| {
        let [s, t, nh, hd] = shape;
        AlibiCase { shape, q: wave(s * nh * hd, 5, scale), k: wave(t * nh * hd, 7, scale) }
    };
    let mut unseen = of([3, 3, 1, 2], 0.25);
    unseen.k[4..].fill(f32::NAN);
    vec![
        unseen,
        of([1, 6, 2, 1], 0.0),
        of([1, 6, 2, 4], 0.0),
        of([4, 4, 3, 1], 0.0),
        of([1, 6, 2, 1], 0.25),
        of([1, 6, 2, 4], 0.25),
        of([5, 5, 2, 4], 0.25),
        of([3, 7, 3, 2], 0.25),
    ]
}

/// Edges, far keys and later ones; an odd number of buckets; one whose parts are near a half.
fn buckets() -> Vec<BucketCase> {
    let mut cases: Vec<BucketCase> = Vec::new();
    for relative in [
        0, -1, -7, -8, -15, -16, -19, -30, -46, -80, -112, -113, -126, -127, -128, -200, -1000, 1,
        9, 40, 300,
    ] {
        cases.push(published(relative, false));
        cases.push(published(relative, true));
    }
    for relative in [-2, -3, -5, -6, -8, -9, -11, -12, -13, -14, -19, -25, -29, 4] {
        for (num_buckets, max_distance) in [(7, 30), (8, 20), (20, 14)] {
            for bidirectional in [false, true] {
                cases.push(BucketCase { relative, bidirectional, num_buckets, max_distance });
            }
        }
    }
    // What is a whole number except for its last digits, and what is only near one.
    for relative in [-8, -16, -64] {
        let (num_buckets, max_distance) = (9, 128);
        cases.push(BucketCase { relative, bidirectional: false, num_buckets, max_distance });
    }
    cases.extend(beside_edges().take(8));
    cases
}

fn t5() -> Vec<T5Case> {
    let of = |shape, num_heads, num_buckets, max_distance, bidirectional| T5Case {
        shape,
        num_heads,
        bidirectional,
        num_buckets,
        max_distance,
        table: (0..num_buckets * num_heads).map(|i| 0.5 + 0.25 * i as f32).collect(),
    };
    vec![
        of([1, 5], 1, 6, 10, false),
        of([1, 20], 2, 6, 10, false),
        of([6, 6], 2, 6, 10, false),
        of([6, 6], 2, 12, 50, true),
        of([3, 40], 2, 8, 20, false),
        of([3, 140], 1, 32, 128, true),
    ]
}

/// Within the bounds, and out of them.
fn kerple() -> Vec<KerpleCase> {
    let kernels = [Kernel::Logarithmic, Kernel::Power];
    let of = |r1: [f32; 2], r2: [f32; 2], positions| {
        kernels.map(|kernel| KerpleCase { kernel, r1: r1.to_vec(), r2: r2.to_vec(), positions })
    };
    [
        of([0.75, 2.0], [1.5, 0.5], 2),
        of([0.75, 2.0], [1.5, 0.5], 6),
        of([-1.5, 1.0], [0.5, 1.25], 6),
        of([1.0, 0.5], [3.0, -1.0], 6),
        of([1.0, 0.5], [2.5, 1.0], 9),
    ]
    .concat()
}

/// Each part alone, all of them, the last token, several texts.
fn transformer_xl() -> Vec<XlCase> {
    let of = |shape: [usize; 4], keys: usize, hidden_size: usize, [q, u, v, w]: [f32; 4]| {
        let [b, s, nh, hd] = shape;
        XlCase {
            shape,
            keys,
            hidden_size,
            base: 100.0,
            q: wave(b * s * nh * hd, 5, 0.125 * q),
            k: wave(b * keys * nh * hd, 7, 0.125),
            u: wave(nh * hd, 3, 0.125 * u),
            v: wave(nh * hd, 8, 0.125 * v),
            weight: wave(nh * hd * hidden_size, 6, 0.0625 * w),
        }
    };
    let mut unseen = of([1, 3, 1, 2], 3, 4, [1.0; 4]);
    unseen.k[4..].fill(f32::NAN);
    vec![
        unseen,
        of([1, 1, 1, 1], 4, 2, [1.0, 0.0, 0.0, 1.0]),
        of([1, 1, 1, 1], 4, 4, [0.0, 0.0, 1.0, 1.0]),
        of([1, 1, 1, 1], 4, 4, [0.0, 1.0, 0.0, 1.0]),
        of([1, 3, 2, 2], 3, 4, [1.0, 1.0, 0.0, 0.0]),
        of([1, 3, 2, 2], 6, 4, [1.0, 0.0, 0.0, 1.0]),
        of([1, 4, 1, 4], 4, 6, [1.0, 1.0, 1.0, 1.0]),
        of([2, 3, 2, 2], 6, 4, [1.0, 1.0, 1.0, 1.0]),
    ]
}
