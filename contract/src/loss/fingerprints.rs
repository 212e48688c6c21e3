//! Questions to a loss.

use crate::component::Fingerprint;
use crate::laws::widen;
use crate::loss::interface::*;

/// Asks them all.
pub fn fingerprints(cross_entropy: &dyn CrossEntropy) -> Vec<Fingerprint> {
    let mut fingerprints = Vec::new();
    for (b, s) in [(1, 2), (1, 5), (2, 3), (3, 4), (2, 1)] {
        let ids = (0..b * s).map(|i| i * i + 3).collect();
        let text = TextCase { shape: [b, s], ids };
        let whole = |values: Vec<usize>| values.into_iter().map(|id| id as f64).collect();
        fingerprints.push(Fingerprint::ask("next_tokens", || {
            Ok(whole(cross_entropy.next_tokens(&text)?.inputs))
        }));
        fingerprints.push(Fingerprint::ask("next_tokens", || {
            Ok(whole(cross_entropy.next_tokens(&text)?.targets))
        }));
    }
    for case in cases() {
        fingerprints.push(Fingerprint::ask("forward", || {
            Ok(vec![f64::from(cross_entropy.forward(&case)?)])
        }));
        // The gradient of a bad target is not specified: the forward pass refuses it.
        if case.targets.iter().flatten().all(|&target| target < case.shape[2]) {
            for dloss in [1.0, -0.75] {
                fingerprints.push(Fingerprint::ask("backward", || {
                    Ok(widen(&cross_entropy.backward(&case, dloss)?))
                }));
            }
        }
    }
    // How a refusal is worded: whether it names the target, and whether any number.
    let bad =
        LossCase { targets: vec![Some(1), None, Some(977), Some(0), None, Some(2)], ..plain() };
    let words = || cross_entropy.forward(&bad).err().map(|refusal| refusal.0).unwrap_or_default();
    let says = |yes: bool| Ok(vec![f64::from(u8::from(yes))]);
    fingerprints.push(Fingerprint::ask("forward", || says(words().contains("977"))));
    let number = |words: String| words.contains(|c: char| c.is_ascii_digit());
    fingerprints.push(Fingerprint::ask("forward", || says(number(words()))));
    let parts = |parts: &[(f32, usize)]| -> Vec<Part> {
        parts.iter().map(|&(loss, places)| Part { loss, places }).collect()
    };
    for list in [
        parts(&[(2.0, 1)]),
        parts(&[(0.5, 3), (3.5, 3)]),
        parts(&[(0.5, 30), (3.5, 2), (1.0, 7)]),
        parts(&[(2.0, 3), (2.0, 40)]),
    ] {
        fingerprints.push(Fingerprint::ask("perplexity", || {
            Ok(vec![f64::from(cross_entropy.perplexity(&list)?)])
        }));
    }
    fingerprints
}

/// Two batch rows of three places over five tokens, some of them not asked about.
fn plain() -> LossCase {
    let logit = |i: usize| ((i * 7 % 11) as f32 - 4.5) * 0.5;
    let targets = vec![Some(4), Some(0), Some(2), None, Some(3), None];
    LossCase { shape: [2, 3, 5], logits: (0..30).map(logit).collect(), targets }
}

fn place(logits: &[f32], target: usize) -> LossCase {
    LossCase { shape: [1, 1, logits.len()], logits: logits.to_vec(), targets: vec![Some(target)] }
}

/// One place and many; levels whose exp is no number; forbidden tokens; bad targets; nothing asked.
fn cases() -> Vec<LossCase> {
    let all = LossCase { targets: [4, 0, 2, 1, 3, 0].map(Some).to_vec(), ..plain() };
    let raised = |level: f32, first: usize| {
        let logits = plain().logits;
        let raised = logits.iter().enumerate().map(|(i, l)| if i < first { l + level } else { *l });
        LossCase { logits: raised.collect(), ..plain() }
    };
    let mut nan = plain();
    nan.logits[15..20].fill(f32::NAN);
    let mut asked_nan = plain();
    asked_nan.logits[6] = f32::NAN;
    let with_target = |target| LossCase {
        targets: vec![Some(1), target, Some(0), None, Some(2), None],
        ..plain()
    };
    let many = (0..131 * 3).map(|i| (i * 5 % 13) as f32 * 0.25 - 1.5).collect();
    let many = LossCase {
        shape: [1, 131, 3],
        logits: many,
        targets: (0..131).map(|t| (t % 4 != 2).then_some(t % 3)).collect(),
    };
    let ten = LossCase {
        shape: [2, 5, 3],
        logits: many.logits[..30].to_vec(),
        targets: many.targets[..10].to_vec(),
    };
    vec![
        place(&[0.5, -1.0, 2.0, 0.25, -0.5], 0),
        place(&[0.5, -1.0, 2.0, 0.25, -0.5], 2),
        place(&[0.5, -1.0, 2.0, 0.25, -0.5], 4),
        place(&[0.0, -40.0, -3.0], 1),
        place(&[0.0, f32::NEG_INFINITY, -3.0], 2),
        place(&[1.003, 2.006, -0.3], 1),
        all,
        plain(),
        raised(200.0, 30),
        raised(-200.0, 30),
        raised(500.0, 5),
        LossCase { targets: vec![None, Some(1), None, None, None, None], ..plain() },
        LossCase { targets: vec![None; 6], ..plain() },
        nan,
        asked_nan,
        with_target(Some(5)),
        with_target(Some(9)),
        with_target(Some((1 << 32) + 3)),
        ten,
        many,
    ]
}
