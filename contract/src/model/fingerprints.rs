//! Questions to a model.

use crate::component::Fingerprint;
use crate::graded_cases::Draw;
use crate::laws::widen;
use crate::model::interface::*;
use crate::model::plan::{PLAIN, Plan, pieces};
use crate::run::Run;

/// Asks them all.
pub fn fingerprints(llama: &dyn Llama) -> Vec<Fingerprint> {
    let run = Run { seed: 77, ..Run::default() };
    let mut fingerprints = Vec::new();
    for plan in plans() {
        let (block, model) = (plan.block(&run), plan.model(&run));
        fingerprints.push(Fingerprint::ask("block", || Ok(widen(&llama.block(&block)?))));
        fingerprints.push(Fingerprint::ask("forward", || Ok(widen(&llama.forward(&model)?))));
        for kind in 0..4 {
            let pieces = pieces(plan.tokens[1], kind);
            let decode = || Ok(widen(&llama.decode(&model, &pieces)?));
            fingerprints.push(Fingerprint::ask("decode", decode));
        }
        let s = plan.tokens[1];
        let short = ModelCase { positions: s - 1, ..model };
        fingerprints.push(Fingerprint::ask("decode", || Ok(widen(&llama.decode(&short, &[s])?))));
    }
    for offset in [1, 3] {
        let block = Plan { tokens: [1, 5], offset, ..PLAIN }.block(&run);
        fingerprints.push(Fingerprint::ask("block", || Ok(widen(&llama.block(&block)?))));
    }
    // A gradient by differences is dear: one step, and losses without a step.
    let (block, dy) = Plan { tokens: [1, 3], place: 1, eps: 0.1, ..PLAIN }.block_back(&run);
    fingerprints.push(Fingerprint::ask("block_backward", || {
        Ok(widen(&llama.block_backward(&block, &dy)?))
    }));
    let (model, dy) = Plan { tokens: [1, 3], place: 1, eps: 0.1, ..PLAIN }.model_back(&run);
    fingerprints.push(Fingerprint::ask("backward", || Ok(widen(&llama.backward(&model, &dy)?))));
    for (tokens, rate) in [([1, 3], 1.0), ([2, 4], 0.0), ([3, 2], 0.0)] {
        let model = Plan { tokens, place: 1, eps: 0.1, ..PLAIN }.model(&run);
        fingerprints.push(Fingerprint::ask("train", || {
            let Trained { loss, weights } = llama.train(&model, rate)?;
            Ok(std::iter::once(f64::from(loss)).chain(widen(&weights)).collect())
        }));
    }
    for case in samples(&mut Draw::new(&run, 1)) {
        fingerprints.push(Fingerprint::ask("sample", || Ok(vec![llama.sample(&case)? as f64])));
    }
    fingerprints
}

/// One token and several, one block and several, tied or not, with an eps that is felt.
fn plans() -> [Plan; 4] {
    [
        PLAIN,
        Plan { tokens: [2, 5], blocks: 2, eps: 0.5, ..PLAIN },
        Plan { tokens: [1, 6], blocks: 3, place: 3, base: 50.0, tied: true, ..PLAIN },
        Plan { tokens: [1, 2], blocks: 12, place: 1, ..PLAIN },
    ]
}

fn samples(draw: &mut Draw) -> Vec<SampleCase> {
    let mut cases: Vec<SampleCase> = (0..48).map(|i| super::plan::drawn(draw, 2 + i % 9)).collect();
    let plain = SampleCase {
        logits: vec![1.0, 3.0, 3.0, 0.0],
        temperature: 0.0,
        top_k: None,
        top_p: 1.0,
        unit: 0.3,
    };
    let large = SampleCase {
        logits: vec![800.0, 799.0, 801.0],
        temperature: 1.0,
        unit: 0.9,
        ..plain.clone()
    };
    let equal = SampleCase { logits: vec![1.0; 4], temperature: 1.0, unit: 0.5, ..plain.clone() };
    let cut = SampleCase { top_p: 0.5, unit: 0.7, ..equal.clone() };
    let many = (0..50u8).map(|i| f32::from(i % 3)).collect();
    let many = SampleCase { logits: many, unit: 0.4, ..equal.clone() };
    let nearly_cold = SampleCase { temperature: 1e-9, ..equal.clone() };
    let bad = |temperature| {
        let none = SampleCase { top_k: Some(0), temperature, ..equal.clone() };
        let nan = SampleCase { top_p: f64::NAN, temperature, ..equal.clone() };
        let diverged = SampleCase { logits: vec![0.0, f32::NAN], temperature, ..equal.clone() };
        [none, nan, diverged]
    };
    cases.extend(bad(0.0).into_iter().chain(bad(1.0)));
    const NONE: f32 = f32::NEG_INFINITY;
    let forbidden = SampleCase { logits: vec![NONE, 0.0, NONE, 0.5], ..equal.clone() };
    let small = SampleCase { logits: vec![1e-9, 0.0, 2e-9], temperature: 1e-9, ..equal.clone() };
    let edges =
        SampleCase { logits: vec![0.5, 2.0, -1.0, 1.25], temperature: 0.7, ..equal.clone() };
    cases.extend(super::plan::beside_edges(&edges));
    cases.extend([plain, large, equal, cut, many, nearly_cold, forbidden, small]);
    cases
}
