//! One task, graded in this process.

use crate::adapter::Learner;
use crate::types;
use contract::grade::{Grade, by_bugs, by_invariants};
use contract::party::{GroupRmsNorm, NtkAwareRope, ParallelVocabEmbedding, VocabEmbedding};
use contract::run::Run;
use contract::tasks::{Grading, Task};
use exercises::{norm, parallel_vocab_emb, pos_emb, vocab_emb};

/// The seed and the number of random inputs, fixed unless the environment says otherwise.
fn run() -> Run {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let standard = Run::default();
    Run {
        seed: number("PROPTEST_RNG_SEED").unwrap_or(standard.seed),
        cases: number("PROPTEST_CASES").map_or(standard.cases, |cases| cases as u32),
        ..standard
    }
}

/// Grades a task.
// A property is written for every lifetime of its party; a closure fits, the function itself does not.
#[allow(clippy::redundant_closure)]
pub fn judge(task: &Task) -> Grade {
    let module = task.module();
    match task.grading {
        Grading::Types => types::judge(task),
        Grading::Property { .. } => match module {
            "norm" => by_bugs::<dyn GroupRmsNorm>(task, |p| norm::property(p)),
            "vocab_emb" => by_bugs::<dyn VocabEmbedding>(task, |p| vocab_emb::property(p)),
            "parallel_vocab_emb" => {
                by_bugs::<dyn ParallelVocabEmbedding>(task, |p| parallel_vocab_emb::property(p))
            }
            _ => by_bugs::<dyn NtkAwareRope>(task, |p| pos_emb::property(p)),
        },
        Grading::Invariants { calls, by_hand, .. } => {
            let learner = Learner { calls, by_hand };
            match module {
                "norm" => by_invariants::<dyn GroupRmsNorm>(task, &learner, &run()),
                "vocab_emb" => by_invariants::<dyn VocabEmbedding>(task, &learner, &run()),
                "parallel_vocab_emb" => {
                    by_invariants::<dyn ParallelVocabEmbedding>(task, &learner, &run())
                }
                _ => by_invariants::<dyn NtkAwareRope>(task, &learner, &run()),
            }
        }
    }
}
