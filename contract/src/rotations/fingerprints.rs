//! Questions to more rotations.

use crate::component::Fingerprint;
use crate::laws::widen;
use crate::rotations::interface::*;

/// Asks them all.
pub fn fingerprints(rotations: &dyn Rotations) -> Vec<Fingerprint> {
    let mut fingerprints = Vec::new();
    for case in xpos_cases() {
        let both = || rotations.xpos(&case).map(|TurnedPair { q, k }| widen(&[q, k].concat()));
        fingerprints.push(Fingerprint::ask("xpos", both));
    }
    for case in axial_cases() {
        let dy = wave(case.x.len(), 7);
        fingerprints.push(Fingerprint::ask("axial", || Ok(widen(&rotations.axial(&case)?))));
        let back = || Ok(widen(&rotations.axial_backward(&case, &dy)?));
        fingerprints.push(Fingerprint::ask("axial_backward", back));
    }
    for case in linear_cases() {
        let dy = wave(case.v.len(), 7);
        let grads = || rotations.linear_backward(&case, &dy);
        fingerprints.push(Fingerprint::ask("linear", || Ok(widen(&rotations.linear(&case)?))));
        fingerprints.push(Fingerprint::ask("linear_backward (dq)", || Ok(widen(&grads()?.dq))));
        fingerprints.push(Fingerprint::ask("linear_backward (dk)", || Ok(widen(&grads()?.dk))));
        fingerprints.push(Fingerprint::ask("linear_backward (dv)", || Ok(widen(&grads()?.dv))));
        let s = case.shape[1];
        for pieces in [vec![s], vec![1, s - 1], vec![1; s]] {
            fingerprints.push(Fingerprint::ask("running", || {
                Ok(widen(&rotations.running(&case, &pieces)?))
            }));
        }
    }
    fingerprints
}

/// Values of both signs, none of them 0.
fn wave(n: usize, step: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * step % 13) as f32 - 6.25) / 4.0).collect()
}

fn xpos_cases() -> Vec<XPosCase> {
    let case = |shape: [usize; 4], offset, center, scale_base| {
        let n = shape.iter().product();
        XPosCase { shape, base: 100.0, scale_base, center, offset, q: wave(n, 5), k: wave(n, 3) }
    };
    vec![
        case([1, 1, 1, 4], 0, 0, 512.0),
        case([1, 1, 1, 4], 512, 0, 512.0),
        case([1, 3, 2, 8], 0, 0, 512.0),
        case([2, 3, 1, 6], 40, 25, 64.0),
    ]
}

fn axial_cases() -> Vec<AxialCase> {
    let case = |shape: [usize; 4], planes: &[usize], sections, coordinates: &[usize]| AxialCase {
        shape,
        planes: planes.to_vec(),
        sections,
        base: 100.0,
        coordinates: coordinates.to_vec(),
        x: wave(shape.iter().product(), 5),
    };
    use Sections::{Anew, OneList};
    vec![
        case([1, 1, 1, 4], &[1, 1], Anew, &[2, 1]),
        case([1, 3, 1, 8], &[2, 2], Anew, &[0, 0, 3, 1, 1, 4]),
        case([1, 3, 1, 8], &[2, 2], OneList, &[0, 0, 3, 1, 1, 4]),
        case([2, 2, 2, 12], &[1, 2, 3], Anew, &[1, 2, 4, 3, 0, 5]),
        case([1, 2, 1, 8], &[1, 1, 2], OneList, &[1, 2, 4, 3, 0, 5]),
        case([1, 2, 1, 8], &[1, 3], Anew, &[1, 2, 4, 3]),
    ]
}

fn linear_cases() -> Vec<LinearCase> {
    let case = |shape: [usize; 4], base, offset| {
        let n = shape.iter().product();
        LinearCase { shape, base, offset, q: wave(n, 5), k: wave(n, 3), v: wave(n, 6) }
    };
    vec![
        case([1, 2, 1, 4], None, 0),
        case([1, 4, 1, 4], Some(100.0), 0),
        case([1, 3, 2, 4], Some(100.0), 5),
        case([2, 3, 1, 6], None, 0),
    ]
}
