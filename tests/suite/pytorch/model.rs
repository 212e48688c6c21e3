//! The model: logits, loss, and the gradient of every weight.

use super::*;
use crate::implementations::reference::Library;
use contract::interface::{BlockWeights, Llama, ModelCase, Sizes, Trained};

/// The model of a case, with its texts.
fn model(case: &Case) -> ModelCase {
    let [v, h, nh, nkv, hd, f] = ["v", "h", "nh", "nkv", "hd", "f"].map(|size| case.size(size));
    let mut weights = case.f32("weights").into_iter();
    let mut take = |n: usize| -> Vec<f32> { weights.by_ref().take(n).collect() };
    let table = take(v * h);
    let mut blocks = Vec::new();
    for _ in 0..case.size("blocks") {
        blocks.push(BlockWeights {
            input_norm: take(h),
            q: take(nh * hd * h),
            k: take(nkv * hd * h),
            v: take(nkv * hd * h),
            o: take(h * nh * hd),
            post_norm: take(h),
            gate: take(f * h),
            up: take(f * h),
            down: take(h * f),
        });
    }
    let norm = take(h);
    let head = (!case.settings["tied"].as_bool().unwrap()).then(|| take(v * h));
    assert_eq!(weights.next(), None);
    ModelCase {
        sizes: Sizes { v, h, nh, nkv, hd, f },
        eps: case.number("eps"),
        base: case.number("base"),
        table,
        blocks,
        norm,
        head,
        tokens: [case.size("b"), case.size("s")],
        ids: case.ids("ids"),
        positions: case.size("s"),
    }
}

/// Within the contract's own bounds of PyTorch in `f64`, and twice that of PyTorch in `f32`.
#[test]
fn logits_loss_and_gradients() {
    let goldens = Goldens::open("model");
    assert_eq!(goldens.cases("f32").count(), 3);
    for case in goldens.cases("f32") {
        let model = model(&case);
        let bounds = contract::model::bounds::of_logits(&model);
        let off = |i: usize| bounds[i].off + U32 * bounds[i].value.abs();
        let logits = widen(&Library.forward(&model).unwrap());
        assert_within(&logits, &case.f64("logits64"), off);
        assert_within(&logits, &widen(&case.f32("logits")), |i| 2.0 * off(i));

        // A step of length 1 is the gradient up to the rounding of the new weight.
        let before: Vec<f64> = model.weights().into_iter().flat_map(|w| widen(w)).collect();
        let Trained { loss, weights } = Library.train(&model, 1.0).unwrap();
        let truth = contract::model::bounds::of_training(&model);
        let (of_loss, of_gradient) = &*truth;
        assert_within(&[f64::from(loss)], &case.f64("loss64"), |_| of_loss.off);
        let gradient: Vec<f64> =
            before.iter().zip(widen(&weights)).map(|(before, after)| before - after).collect();
        let off = |i: usize| of_gradient[i].off + U32 * (before[i].abs() + 1.0);
        assert_within(&gradient, &case.f64("gradient64"), off);
        assert_within(&gradient, &widen(&case.f32("gradient")), |i| 2.0 * off(i));
    }
}
