//! Questions to an NTK-aware RoPE.

use crate::component::Fingerprint;
use crate::laws::widen;
use crate::oracle::Oracle;
use crate::rope::interface::*;
use crate::rope::oracle::RopeLoops;

/// Asks them all.
pub fn fingerprints(rope: &dyn NtkAwareRope) -> Vec<Fingerprint> {
    let mut fingerprints = Vec::new();
    frequencies(rope, &mut fingerprints);
    rotations(rope, &mut fingerprints);
    ratios(rope, &mut fingerprints);
    modules(rope, &mut fingerprints);
    positions(rope, &mut fingerprints);
    fingerprints
}

fn both(Tables { cos, sin }: Tables) -> Vec<f64> {
    widen(&[cos, sin].concat())
}

/// Small and large heads, other bases than 10,000, ratios with a fraction, and bad settings;
/// positions near 0 and far away.
fn frequencies(rope: &dyn NtkAwareRope, fingerprints: &mut Vec<Fingerprint>) {
    for (d, base, ratio) in [
        (4, 10_000.0, 1.0),
        (8, 10_000.0, 1.0),
        (6, 500.0, 1.0),
        (8, 10_000.0, 4.0),
        (4, 10_000.0, 3.0),
        (16, 1e6, 2.5),
        (8, 10_000.0, 1.5),
        (5, 10_000.0, 2.0),
        (2, 10_000.0, 2.0),
        (8, 1.0, 2.0),
        (8, -3.0, 2.0),
        (8, f64::INFINITY, 2.0),
        (8, 10_000.0, 0.5),
        (8, 10_000.0, f64::NAN),
    ] {
        fingerprints.push(Fingerprint::ask("frequencies", || rope.frequencies(d, base, ratio)));
    }
    for (d, base, ratio, positions) in [
        (4, 10_000.0, 1.0, 0..3),
        (8, 500.0, 2.0, 0..4),
        (6, 10_000.0, 1.0, 5..7),
        (8, 100.0, 2.5, 31..32),
        (4, 10_000.0, 1.0, 4095..4097),
        (8, 10_000.0, 1.0, 20_010..20_011),
        (4, 10_000.0, 4.0, 1_000_003..1_000_004),
    ] {
        fingerprints
            .push(Fingerprint::ask("tables", || rope.tables(d, base, ratio, positions).map(both)));
    }
}

/// All sizes different, both layouts, tables on and off the circle, missing values, tables that
/// do not fit.
fn rotations(rope: &dyn NtkAwareRope, fingerprints: &mut Vec<Fingerprint>) {
    for layout in [Layout::HalfSplit, Layout::Interleaved] {
        for (d, kind) in [(4, 0), (6, 0), (8, 0), (6, 1), (4, 2), (6, 3), (6, 4), (6, 5)] {
            let case = rotation(layout, d, kind);
            let dy: Vec<f32> = case.x.iter().rev().map(|x| 0.5 - x).collect();
            fingerprints.push(Fingerprint::ask("rotate", || rope.rotate(&case).map(|y| widen(&y))));
            fingerprints.push(Fingerprint::ask("rotate_backward", || {
                rope.rotate_backward(&case, &dy).map(|dx| widen(&dx))
            }));
        }
    }
    for d in [4, 6, 8] {
        let x: Vec<f32> = (0..2 * d).map(|i| 1.0 + i as f32).collect();
        fingerprints.push(Fingerprint::ask("to_interleaved", || {
            rope.to_interleaved(d, &x).map(|y| widen(&y))
        }));
        fingerprints.push(Fingerprint::ask("to_half_split", || {
            rope.to_half_split(d, &x).map(|y| widen(&y))
        }));
    }
}

/// Kinds: 0 true tables, 1 off the circle, 2 one row too many, 3 a NaN, 4 position 0 alone,
/// 5 a single row for several.
fn rotation(layout: Layout, d: usize, kind: usize) -> RotateCase {
    let shape = if kind == 4 { [1, 1, 1, d] } else { [2, 3, 4, d] };
    let rows = match kind {
        2 => 4,
        4 | 5 => 1,
        _ => 3,
    };
    let start = if kind == 4 { 0 } else { 1 };
    let mut tables = Oracle.tables(d, 100.0, 1.0, start..start + rows);
    if kind == 1 {
        tables.cos.iter_mut().for_each(|cos| *cos = 1.5 * *cos + 0.25);
    }
    if layout == Layout::Interleaved {
        let to = |table: &[f32]| Oracle.to_interleaved(d, table);
        tables = Tables { cos: to(&tables.cos), sin: to(&tables.sin) };
    }
    let n = shape.iter().product::<usize>();
    let mut x: Vec<f32> = (0..n).map(|i| ((i * 37 + 11) % 64) as f32 / 13.0 - 1.9).collect();
    if kind == 3 {
        x[7] = f32::NAN;
    }
    RotateCase { shape, tables, x, layout }
}

fn ratios(rope: &dyn NtkAwareRope, fingerprints: &mut Vec<Fingerprint>) {
    for (length, max_seq_len) in [
        (4, 3),
        (6, 3),
        (7, 3),
        (12, 3),
        (13, 3),
        (11, 1),
        (4097, 2048),
        (9000, 5000),
        ((1 << 26) + 1, 2048),
    ] {
        fingerprints.push(Fingerprint::ask("ratio_for_length", || {
            rope.ratio_for_length(length, max_seq_len).map(|ratio| vec![ratio as f64])
        }));
    }
}

/// Scripts of calls. After each call there is a question for its values and one for the state.
fn modules(rope: &dyn NtkAwareRope, fingerprints: &mut Vec<Fingerprint>) {
    let settings = |head_dim, max_seq_len, ratio, dynamic| RopeSettings {
        head_dim,
        base: 100.0,
        max_seq_len,
        ratio,
        dynamic,
    };
    let scripts: [(RopeSettings, &[(usize, usize)]); 17] = [
        (settings(4, 6, 1, false), &[(0, 6), (1, 3), (5, 1)]),
        (settings(6, 2, 3, false), &[(0, 5), (0, 6)]),
        (settings(4, 3, 1, false), &[(0, 7), (1, 2)]),
        (settings(4, 3, 1, false), &[(0, 3), (0, 4), (2, 3)]),
        (settings(4, 3, 1, false), &[(2, 2), (7, 2)]),
        (settings(6, 2, 3, false), &[(5, 4), (1, 2)]),
        (settings(4, 3, 1, true), &[(0, 4), (0, 2), (0, 7), (1, 2), (0, 13)]),
        (settings(6, 2, 3, true), &[(5, 4), (4, 3), (0, 2), (8, 5), (2, 1)]),
        (settings(6, 2, 3, true), &[(0, 6), (0, 7), (0, 6)]),
        (settings(4, 3, 1, true), &[(usize::MAX, 2), (0, 2)]),
        (settings(4, 3, 1, false), &[(usize::MAX, 2), (0, 2)]),
        (settings(4, 3, 1, false), &[(20_009, 2)]),
        (settings(4, 2051, 1, false), &[(2049, 1)]),
        (settings(5, 3, 1, false), &[]),
        (settings(4, 0, 1, false), &[]),
        (settings(4, 3, 0, false), &[]),
        (RopeSettings { base: 1.0, ..settings(4, 3, 1, false) }, &[]),
    ];
    for (settings, calls) in &scripts {
        let mut module = None;
        fingerprints.push(Fingerprint::ask("build", || {
            module = Some(rope.build(settings)?);
            Ok(Vec::new())
        }));
        let missing = || Refusal::new("there is no module");
        for &(offset, s) in *calls {
            let shape = [2, s, 3, settings.head_dim];
            let n = shape.iter().product::<usize>();
            let x = (0..n).map(|i| ((i * 29 + 7) % 32) as f32 / 7.0 - 2.1).collect();
            let case = RopeCase { shape, offset, x };
            // A refusal does not end the script: the state is asked for all the same.
            fingerprints.push(Fingerprint::ask("forward", || {
                module.as_mut().ok_or_else(missing)?.forward(&case).map(|y| widen(&y))
            }));
            if settings.max_seq_len < 100 {
                fingerprints.push(Fingerprint::ask("state", || {
                    let RopeState { ratio, cached_len, tables } =
                        module.as_ref().ok_or_else(missing)?.state()?;
                    Ok([vec![ratio as f64, cached_len as f64], both(tables)].concat())
                }));
            }
        }
    }
}

/// A position for each token: of padded and packed texts, in no order, past the cache, one row for all.
fn positions(rope: &dyn NtkAwareRope, fingerprints: &mut Vec<Fingerprint>) {
    let asked: [(usize, &[usize]); 6] = [
        (9, &[0, 0, 0, 1, 0, 1, 2, 3]),
        (9, &[0, 1, 0, 1, 0, 1, 2, 0]),
        (9, &[3, 1, 8, 1, 0, 5, 2, 7]),
        (3, &[0, 1, 2, 3, 0, 0, 0, 1]),
        (3, &[0, 0, 1, 2, 0, 1, 2, 0]),
        (9, &[0, 1, 2, 3]),
    ];
    for (max_seq_len, ids) in asked {
        let settings =
            RopeSettings { head_dim: 4, base: 100.0, max_seq_len, ratio: 1, dynamic: false };
        let x = (0..32).map(|i| ((i * 29 + 7) % 32) as f32 / 7.0 - 2.1).collect();
        let case = RopeCase { shape: [2, 4, 1, 4], offset: 0, x };
        fingerprints.push(Fingerprint::ask("forward_at", || {
            let mut module = rope.build(&settings)?;
            module.forward_at(Manner::Plain, &case, ids).map(|y| widen(&y))
        }));
        fingerprints.push(Fingerprint::ask("backward_at", || {
            let mut module = rope.build(&settings)?;
            module.backward_at(Manner::Plain, &case, ids, &case.x).map(|dx| widen(&dx))
        }));
    }
}
