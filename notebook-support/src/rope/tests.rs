//! The checks name what is wrong with a learner's lines.

use super::*;

fn refuses(head_dim: usize, base: f64, ratio: f64) -> Result<f64, String> {
    if !head_dim.is_multiple_of(2) || head_dim < 4 {
        return Err(format!("head_dim {head_dim}"));
    }
    if !(base.is_finite() && base > 1.0 && ratio.is_finite() && ratio >= 1.0) {
        return Err(format!("base {base}, ratio {ratio}"));
    }
    Ok(head_dim as f64)
}

fn powers(base: f64, d: f64) -> Vec<f64> {
    (0..d as usize / 2).map(|i| base.powf(-2.0 * i as f64 / d)).collect()
}

#[track_caller]
fn caught(verdict: &Verdict, words: &str) {
    assert!(!verdict.passed && verdict.to_string().contains(words), "{verdict}");
}

#[test]
fn right_frequencies_pass() {
    let verdict = check_frequencies(|head_dim, base, ratio| {
        let d = refuses(head_dim, base, ratio)?;
        Ok(powers(base * ratio.powf(d / (d - 2.0)), d))
    });
    assert!(verdict.passed, "{verdict}");
}

#[test]
fn interpolation_is_named() {
    let verdict = check_frequencies(|head_dim, base, ratio| {
        let d = refuses(head_dim, base, ratio)?;
        Ok(powers(base, d).iter().map(|theta| theta / ratio).collect())
    });
    caught(&verdict, "position interpolation");
    caught(&verdict, "rope/fastest-plane-first");
}

#[test]
fn a_base_without_its_exponent_is_named() {
    let verdict = check_frequencies(|head_dim, base, ratio| {
        let d = refuses(head_dim, base, ratio)?;
        Ok(powers(base * ratio, d))
    });
    caught(&verdict, "without the exponent");
    caught(&verdict, "rope/ntk-slows-last-plane");
}

#[test]
fn what_must_be_refused_is_asked_too() {
    let verdict = check_frequencies(|head_dim, base, ratio| {
        let d = head_dim as f64;
        Ok(powers(base * ratio.powf(d / (d - 2.0)), d))
    });
    caught(&verdict, "rope/frequencies-refuse");
}

fn right(x: &[f32], cos: &[f32], sin: &[f32]) -> Vec<f32> {
    let half = x.len() / 2;
    let mut y = vec![0.0; x.len()];
    for i in 0..half {
        y[i] = x[i] * cos[i] - x[i + half] * sin[i];
        y[i + half] = x[i + half] * cos[i + half] + x[i] * sin[i + half];
    }
    y
}

#[test]
fn the_right_rotation_passes() {
    let verdict = check_rotate(right);
    assert!(verdict.passed, "{verdict}");
}

#[test]
fn a_rotation_in_place_is_named() {
    let verdict = check_rotate(|x, cos, sin| {
        let half = x.len() / 2;
        let mut y = x.to_vec();
        for i in 0..half {
            y[i] = y[i] * cos[i] - y[i + half] * sin[i];
            y[i + half] = y[i + half] * cos[i + half] + y[i] * sin[i + half];
        }
        y
    });
    caught(&verdict, "computes the second half");
    caught(&verdict, "rope/rotate-keeps-lengths");
}

#[test]
fn neighbours_in_the_place_of_halves_are_caught() {
    let verdict = check_rotate(|x, cos, sin| {
        let mut y = vec![0.0; x.len()];
        for i in 0..x.len() / 2 {
            let (a, b) = (2 * i, 2 * i + 1);
            y[a] = x[a] * cos[i] - x[b] * sin[i];
            y[b] = x[b] * cos[i] + x[a] * sin[i];
        }
        y
    });
    caught(&verdict, "rope/rotate-unit-vector");
}

#[test]
fn the_other_way_is_named() {
    let verdict =
        check_rotate(|x, cos, sin| right(x, cos, &sin.iter().map(|sin| -sin).collect::<Vec<_>>()));
    caught(&verdict, "the other way");
}

#[test]
fn a_panic_and_a_lost_half_are_verdicts() {
    caught(&check_rotate(|_, _, _| todo!()), "replace the todo!()");
    caught(&check_rotate(|x, _, _| x[1..].to_vec()), "a head of 4 became one of 3");
}

#[test]
fn layouts_come_and_go() {
    let x: Vec<f32> = (0..6u8).map(f32::from).collect();
    assert_eq!(halves(Layout::Interleaved, &x), [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
    assert_eq!(back(Layout::Interleaved, &halves(Layout::Interleaved, &x)), x);
    assert_eq!(halves(Layout::HalfSplit, &x), x);
}
