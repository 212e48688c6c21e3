//! An implementation on the other side of a pipe is judged as if it were here; and one that answers something other
//! than what was asked is not listened to any longer.

use contract::component::Component;
use contract::grade::{Grade, by_invariants};
use contract::registry::{COMPONENTS, TASKS};
use contract::run::Run;
use contract::task::{Grading, Task};
use interfaces::interface::*;
use protocol::{Asker, Ends, Implementations, Served, serve};
use std::io::{PipeReader, PipeWriter, Write, pipe};
use std::thread;

/// Few questions: what is compared is each answer, and not how many there are.
fn run() -> Run {
    Run { cases: 2, shrink: false, every_size: false, blocks: false, ..Run::default() }
}

/// The two sides of a conversation.
fn sides() -> [(PipeReader, PipeWriter); 2] {
    let (ours, theirs) = (pipe().unwrap(), pipe().unwrap());
    [(theirs.0, ours.1), (ours.0, theirs.1)]
}

/// What each task graded by invariants comes to, with an implementation here and with the same one on the other side.
fn alike<P: Component + ?Sized>(
    implementation: fn() -> Box<P>,
    here: impl Fn(&Asker, &Task) -> Grade,
    sit: impl for<'p> Fn(&'p P) -> Implementations<'p> + Copy + Send + Sync + 'static,
) -> usize {
    let of_component = |task: &&Task| {
        task.component == P::SLUG && matches!(task.grading, Grading::Invariants { .. })
    };
    let mut failed = 0;
    for task in TASKS.iter().filter(of_component) {
        let [(reader, writer), (questions, answers)] = sides();
        let other = thread::spawn(move || {
            let implementation = implementation();
            serve(&mut Ends::new(questions, answers), &sit(&implementation))
        });
        let asker = Asker::new(Ends::new(reader, writer), 7);
        let apart = here(&asker, task);
        assert_eq!(asker.lost(), None, "{}", task.name);
        drop(asker);
        assert_eq!(other.join().unwrap().unwrap(), Served::Closed);
        let direct = by_invariants::<P>(task, &implementation(), &run());
        // In words: an answer that is no number is not equal to itself.
        assert_eq!(format!("{apart:?}"), format!("{direct:?}"), "{}", task.name);
        failed += usize::from(!apart.passed);
    }
    failed
}

macro_rules! components {
    ($($slug:ident: $interface:ident,)+) => {
        /// A component that is missing above, or among the calls that go over a pipe, would not be judged so.
        #[test]
        fn every_component_goes_over_a_pipe() {
            let here = [$(stringify!($slug)),+];
            let missing: Vec<_> = COMPONENTS.iter().map(|entry| entry.slug).filter(|slug| !here.contains(slug)).collect();
            assert!(missing.is_empty(), "contract/protocol/src/implementations.rs and this list lack {missing:?}");
        }

        $(
        #[test]
        fn $slug() {
            let here = |asker: &Asker, task: &Task| by_invariants::<dyn $interface>(task, asker, &run());
            let oracle = <dyn $interface as Component>::oracle;
            assert_eq!(alike::<dyn $interface>(oracle, here, |implementation| Implementations { $slug: Some(implementation), ..Implementations::default() }), 0);
            let bug = <dyn $interface as Component>::bugs()[0].implementation;
            assert!(alike::<dyn $interface>(bug, here, |implementation| Implementations { $slug: Some(implementation), ..Implementations::default() }) > 0);
        }
    )+};
}

components! {
    norm: GroupRmsNorm,
    embedding: VocabEmbedding,
    parallel: ParallelVocabEmbedding,
    rope: NtkAwareRope,
    layernorm: LayerNorm,
    attention: GroupedQueryAttention,
    feedforward: SwiGlu,
    loss: CrossEntropy,
    model: Llama,
    biases: ScoreBiases,
    frequencies: StretchedRope,
    rotations: Rotations,
    absolute: AbsolutePositions,
    collectives: Collectives,
}

/// What comes back for the first question, when the other side writes these bytes at once and closes.
fn after(bytes: &[u8]) -> (Refusal, Option<String>) {
    let [(reader, writer), (_questions, mut answers)] = sides();
    answers.write_all(bytes).unwrap();
    drop(answers);
    let asker = Asker::new(Ends::new(reader, writer), 7);
    let refusal = SwiGlu::forward(
        &asker,
        &SwiGluCase {
            shape: [1, 1, 1],
            ffn_hidden_size: 1,
            x: vec![1.0],
            gate: vec![1.0],
            up: vec![1.0],
            down: vec![1.0],
        },
    );
    let refusal = refusal.unwrap_err();
    assert!(!refusal.is_answer());
    // Nothing more is asked.
    assert_eq!(GroupedQueryAttention::mask(&asker, 1, 0).unwrap_err(), refusal);
    (refusal, asker.lost())
}

fn frame(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u32).to_le_bytes()[..], message].concat()
}

#[test]
fn who_answers_something_else_is_heard_no_longer() {
    // Question 7 is answered by one value, 0.5: number, answer, length, bits.
    let answer = [&[7, 0, 1][..], &0.5f32.to_le_bytes()].concat();
    let cases: [(&str, Vec<u8>, &str); 8] = [
        ("the end", vec![], "failed to fill whole buffer"),
        ("half a length", vec![3, 0], "failed to fill whole buffer"),
        ("half a frame", frame(&answer)[..8].to_vec(), "unexpected end of file"),
        ("a frame without an end", u32::MAX.to_le_bytes().to_vec(), "are allowed"),
        ("no answer", frame(b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"), ""),
        ("another question", frame(&[&[8], &answer[1..]].concat()), "question 8, not to 7"),
        ("something behind it", frame(&[&answer[..], &[0]].concat()), "1 bytes behind the end"),
        ("a longer list than there is", frame(&[7, 0, 200, 1, 0, 0]), ""),
    ];
    for (name, bytes, words) in cases {
        let (refusal, lost) = after(&bytes);
        assert!(lost.as_ref().is_some_and(|lost| lost.contains(words)), "{name}: {lost:?}");
        assert_eq!(Some(refusal.0), lost, "{name}");
    }
}

/// The second answer to one question is taken for none to the next.
#[test]
fn an_answer_twice_is_none() {
    // Question 7, an answer, one element, true.
    let twice = frame(&[7, 0, 1, 1]).repeat(2);
    let [(reader, writer), (_questions, mut answers)] = sides();
    answers.write_all(&twice).unwrap();
    let asker = Asker::new(Ends::new(reader, writer), 7);
    assert_eq!(GroupedQueryAttention::mask(&asker, 1, 0), Ok(vec![true]));
    assert!(GroupedQueryAttention::mask(&asker, 1, 0).is_err());
    assert_eq!(asker.lost().unwrap(), "an answer to question 7, not to 8");
}

/// Values keep their bits, and a panic its words.
#[test]
fn bits_and_words_arrive() {
    struct Echo;
    impl LayerNorm for Echo {
        fn forward_in(&self, _: Manner, case: &LayerNormCase) -> Reply<Vec<f32>> {
            Ok(case.x.clone())
        }

        fn backward_in(&self, _: Manner, _: &LayerNormCase, _: &[f32]) -> Reply<LayerNormGrads> {
            panic!("these words")
        }
    }
    let [(reader, writer), (questions, answers)] = sides();
    let other = thread::spawn(|| {
        let implementations =
            Implementations { layernorm: Some(&Echo), ..Implementations::default() };
        serve(&mut Ends::new(questions, answers), &implementations)
    });
    let asker = Asker::new(Ends::new(reader, writer), u64::MAX);
    let bits = [0x7FC0_1234, 0xFFC0_0000, 0x8000_0000, 1, 0x7F80_0000, 0x3F80_0000];
    let case = LayerNormCase {
        shape: [1, 1, 6],
        eps: f64::NAN,
        gamma: vec![0.0; 6],
        beta: vec![0.0; 6],
        x: bits.map(f32::from_bits).to_vec(),
    };
    let back = LayerNorm::forward(&asker, &case).unwrap();
    assert_eq!(back.into_iter().map(f32::to_bits).collect::<Vec<_>>(), bits);
    let silent = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = LayerNorm::backward(&asker, &case, &[]);
    }));
    assert_eq!(silent.unwrap_err().downcast_ref::<String>().unwrap(), "these words");
    // There is none for the others.
    assert!(!GroupRmsNorm::initial_gamma(&asker, 1, (0.0, 1.0), 1).unwrap_err().is_answer());
    asker.done(&"the last words").unwrap();
    let Served::Done(last) = other.join().unwrap().unwrap() else { panic!("not done") };
    assert_eq!(protocol::whole::<String>(&last).unwrap(), "the last words");
}
