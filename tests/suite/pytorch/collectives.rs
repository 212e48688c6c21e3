//! Collectives: the loss of a cut vocabulary is PyTorch's of the whole.

use super::*;
use crate::implementations::reference::collectives::Way;
use contract::collectives::world;
use contract::interface::RankOutcome;
use quadrivium::collectives::vocab_parallel_cross_entropy;

/// The sum of `v` exponentials rounds once a term, and each exponent once, which is as large as the largest logit. The
/// largest logit and the logarithm do, too, and the mean over `t` tokens. No probability is above 1.
#[test]
fn losses_of_a_cut_vocabulary() {
    let goldens = Goldens::open("collectives");
    assert_eq!(goldens.cases("f32").count(), 4);
    for case in goldens.cases("f32") {
        let (t, v, w) = (case.size("t"), case.size("v"), case.size("w"));
        let logits = case.f32("logits");
        let targets = case.bytes("targets", FileDtype::I64).into_iter().map(i64::from_le_bytes);
        let targets: Vec<usize> = targets.map(|target| target as usize).collect();
        let n = v / w;
        let found = world::run(w, None, |comm| {
            let own = logits.chunks(v).flat_map(|row| &row[comm.rank() * n..][..n]);
            let own: Vec<f32> = own.copied().collect();
            Ok(vocab_parallel_cross_entropy(&Way(comm), &own, &targets, v).unwrap())
        });
        let exponent = 2.0 * U32 * (v as f64 + 8.0 + 2.0 * largest(&widen(&logits)));
        let (loss, dlogits) = (case.f64("loss64"), case.f64("dlogits64"));
        for (rank, end) in found.unwrap().ranks.into_iter().enumerate() {
            let RankOutcome::Result(found) = end else { panic!("rank {rank} of {w}: {end:?}") };
            assert_within(&[f64::from(found.loss)], &loss, |_| {
                exponent + 2.0 * t as f64 * U32 * loss[0]
            });
            let want: Vec<f64> =
                dlogits.chunks(v).flat_map(|row| &row[rank * n..][..n]).copied().collect();
            assert_within(&widen(&found.dlogits), &want, |_| exponent + 8.0 * U32);
        }
    }
}
