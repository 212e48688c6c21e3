//! Questions to an attention.

use crate::attention::interface::*;
use crate::component::Fingerprint;
use crate::graded_cases::Draw;
use crate::laws::widen;
use crate::run::Run;

/// Asks them all.
pub fn fingerprints(attention: &dyn GroupedQueryAttention) -> Vec<Fingerprint> {
    let mut fingerprints = Vec::new();
    for (shape, times) in
        [([1, 1, 2, 2], 2), ([2, 2, 3, 2], 2), ([1, 2, 2, 3], 3), ([1, 1, 1, 2], 4)]
    {
        let x: Vec<f32> = (0..shape.iter().product()).map(|i| i as f32 + 1.0).collect();
        fingerprints
            .push(Fingerprint::ask("repeat", || Ok(widen(&attention.repeat(shape, times, &x)?))));
        let dy: Vec<f32> = (0..x.len() * times).map(|i| (i % 7) as f32 - 2.0).collect();
        fingerprints.push(Fingerprint::ask("repeat_backward", || {
            Ok(widen(&attention.repeat_backward(Manner::Plain, shape, times, &dy)?))
        }));
    }
    for (s, p) in [(1, 0), (3, 0), (1, 3), (3, 2), (2, 5)] {
        fingerprints.push(Fingerprint::ask("mask", || {
            let mask = attention.mask(s, p)?;
            Ok(mask.into_iter().map(|seen| f64::from(u8::from(seen))).collect())
        }));
    }
    for case in cases() {
        let dy: Vec<f32> = (0..case.q.len()).map(|i| 0.75 - 0.25 * (i % 7) as f32).collect();
        let grads = || attention.backward(&case, &dy);
        fingerprints.push(Fingerprint::ask("forward", || Ok(widen(&attention.forward(&case)?))));
        fingerprints.push(Fingerprint::ask("backward (dq)", || Ok(widen(&grads()?.dq))));
        fingerprints.push(Fingerprint::ask("backward (dk)", || Ok(widen(&grads()?.dk))));
        fingerprints.push(Fingerprint::ask("backward (dv)", || Ok(widen(&grads()?.dv))));
    }
    softmaxes(attention, &mut fingerprints);
    caches(attention, &mut fingerprints);
    fingerprints
}

fn case(shape: [usize; 6], scale: f32) -> AttendCase {
    let [batch, queries, keys, num_heads, num_kv_heads, head_dim] = shape;
    let sizes = AttendSizes { batch, queries, keys, num_heads, num_kv_heads, head_dim };
    let n = |shape: [usize; 4]| shape.iter().product();
    let mut draw =
        Draw::new(&Run::default(), shape.iter().fold(7, |salt, n| salt * 31 + *n as u64));
    let q = draw.values(n(sizes.of_queries())).iter().map(|q| q * scale).collect();
    let (k, v) = (draw.values(n(sizes.of_keys())), draw.values(n(sizes.of_keys())));
    AttendCase { sizes, q, k, v }
}

/// One key, several; one head, groups; with a past and without; scores of hundreds, of either sign; NaN; what does
/// not fit.
fn cases() -> Vec<AttendCase> {
    let mut nan = case([2, 2, 3, 4, 2, 4], 0.25);
    nan.q[63] = f32::NAN;
    let mut low = case([1, 1, 4, 1, 1, 4], 1.0);
    low.q.fill(-100.0);
    low.k.iter_mut().for_each(|k| *k = 3.0 + k.abs());
    // A key that only the last query sees, a score that is lower than any number for minus infinity, and large ones.
    let mut unseen = case([1, 2, 2, 1, 1, 4], 0.25);
    unseen.k[4..].fill(f32::NAN);
    let lowest = [1e4, 1e6, 1e12].map(|scale: f32| {
        let mut lowest = case([1, 2, 2, 1, 1, 4], 0.25);
        (0..4).for_each(|d| lowest.q[d] = -scale * lowest.k[d]);
        lowest
    });
    let large = case([1, 1, 4, 1, 1, 4], 4e4);
    let mut cases = vec![
        case([1, 1, 1, 1, 1, 4], 0.25),
        case([1, 1, 3, 1, 1, 4], 0.25),
        case([1, 1, 3, 1, 1, 9], 0.25),
        case([1, 3, 3, 1, 1, 4], 0.25),
        case([1, 3, 5, 1, 1, 4], 0.25),
        case([1, 2, 2, 2, 2, 4], 0.25),
        case([1, 2, 3, 4, 2, 4], 0.25),
        case([1, 2, 3, 6, 3, 2], 0.25),
        case([2, 2, 4, 6, 2, 3], 0.25),
        case([2, 3, 3, 4, 1, 4], 0.25),
        case([1, 3, 4, 2, 1, 4], 40.0),
        case([1, 3, 20, 2, 1, 4], 0.25),
        low,
        nan,
        unseen,
        large,
        case([1, 1, 3, 2, 1, 4], 0.0),
        case([1, 2, 2, 4, 3, 2], 0.25),
        case([1, 2, 2, 2, 4, 2], 0.25),
        case([1, 3, 2, 2, 1, 2], 0.25),
    ];
    cases.extend(lowest);
    cases
}

/// Rows that sum to 1 and rows that do not.
fn softmaxes(attention: &dyn GroupedQueryAttention, fingerprints: &mut Vec<Fingerprint>) {
    let y = [0.5, 0.25, 0.25, 0.0, 1.0, 0.0, 0.125, 0.125, 0.75, 2.0, -1.0, 0.5f32];
    let dy = [1.0, -2.0, 0.5, 3.0, -1.5, 0.25, 4.0, 1.0, -0.75, 2.0, 0.5, -3.0f32];
    for (shape, rows) in [([1, 1, 1, 3], 0..3), ([1, 2, 2, 3], 0..12), ([2, 1, 3, 2], 0..12)] {
        let (y, dy) = (&y[rows.clone()], &dy[rows]);
        fingerprints.push(Fingerprint::ask("softmax_backward", || {
            Ok(widen(&attention.softmax_backward(shape, y, dy)?))
        }));
    }
}

/// Scripts of pieces: capacity, and the shape of each. After each there is a question for its values, and one for
/// the positions.
fn caches(attention: &dyn GroupedQueryAttention, fingerprints: &mut Vec<Fingerprint>) {
    let scripts: [(usize, &[[usize; 4]]); 9] = [
        (4, &[[1, 1, 2, 2], [1, 2, 2, 2], [1, 1, 2, 2]]),
        (6, &[[2, 3, 1, 2], [2, 1, 1, 2], [2, 2, 1, 2]]),
        (3, &[[1, 2, 2, 2], [1, 2, 2, 2], [1, 1, 2, 2]]),
        (2, &[[1, 2, 1, 2], [1, 1, 1, 2]]),
        (2, &[[1, 3, 1, 2], [1, 1, 1, 2]]),
        (8, &[[2, 2, 2, 2], [1, 1, 2, 2], [2, 1, 2, 2]]),
        (8, &[[2, 2, 2, 2], [2, 1, 4, 2], [2, 1, 2, 2]]),
        (8, &[[2, 2, 2, 2], [2, 1, 2, 3], [2, 1, 2, 2]]),
        (8, &[[1, 2, 2, 2], [3, 1, 2, 2], [1, 5, 2, 2]]),
    ];
    let mut other = None;
    for (capacity, pieces) in scripts {
        let mut cache = None;
        fingerprints.push(Fingerprint::ask("cache", || {
            cache = Some(attention.cache(capacity)?);
            Ok(Vec::new())
        }));
        let missing = || Refusal::new("there is no cache");
        for (nth, shape) in pieces.iter().enumerate() {
            let n = shape.iter().product::<usize>();
            let value = |i: usize| (100 * nth + i) as f32 + 1.0;
            let k: Vec<f32> = (0..n).map(value).collect();
            let piece = KeysValues { shape: *shape, v: k.iter().map(|k| -k).collect(), k };
            fingerprints.push(Fingerprint::ask("push", || {
                let kept = cache.as_mut().ok_or_else(missing)?.push(&piece)?;
                let shape = kept.shape.map(|n| n as f32);
                Ok(widen(&[shape.to_vec(), kept.k, kept.v].concat()))
            }));
            fingerprints.push(Fingerprint::ask("positions", || {
                Ok(vec![cache.as_ref().ok_or_else(missing)?.positions()? as f64])
            }));
        }
        // The cache before it is still there.
        if let Some(other) = other.replace(cache) {
            fingerprints.push(Fingerprint::ask("positions", || {
                Ok(vec![other.as_ref().ok_or_else(missing)?.positions()? as f64])
            }));
        }
    }
}
