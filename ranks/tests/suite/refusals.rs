//! Nobody waits for ever, and every rank says who it was.

use crate::support::{PARTY, alone};
use ranks::act::Question;
use ranks::party::{OfProcesses, OfThreads, Party, Said};
use std::path::Path;
use std::time::Duration;

/// Short, since it is waited for. A rank that is slower than this is not what these tests are about: they ask for its name.
const SHORT: Duration = Duration::from_secs(3);

fn question() -> Question {
    Question::Lookup {
        shape: [1, 2],
        width: 1,
        table: vec![1.0; 24],
        ids: vec![0, 5],
        dy: None,
        block: None,
    }
}

#[test]
fn processes_under_a_condition_are_told_apart() {
    let _alone = alone();
    let party = OfProcesses::start(Path::new(PARTY), 4, Duration::from_secs(60)).unwrap();
    let question = Question::UnderCondition { but: 2, question: Box::new(question()) };
    let Said::Failed(words) = party.ask(&question).unwrap() else { panic!("it passed") };
    assert!(words[0].starts_with("rank 2 is at call "), "{words:?}");
    assert!(words[0].contains("a sum of 3 f32"), "{words:?}");
}

#[test]
fn a_process_that_never_comes_is_named() {
    let _alone = alone();
    let party = OfProcesses::start(Path::new(PARTY), 4, SHORT).unwrap();
    let question = Question::Absent { rank: 2, question: Box::new(question()) };
    let Said::Failed(words) = party.ask(&question).unwrap() else { panic!("it passed") };
    assert!(words[0].starts_with("rank 2 did not come to call "), "{words:?}");
    assert!(
        words[0].contains("a lookup of 1 x 2 tokens") && words[0].contains("within 3 s"),
        "{words:?}"
    );
}

/// A thread that ends is noticed at once, without the patience.
#[test]
fn a_thread_that_panics_is_named() {
    let said = ranks::link::threads::run(3, |comm| {
        assert!(comm.rank() != 1, "on purpose");
        comm.gather(b"here").map(drop)
    });
    assert_eq!(said[1], None);
    for rank in [0, 2] {
        let error = said[rank].clone().unwrap().unwrap_err().to_string();
        assert_eq!(error, "rank 1 ended before call 0, a gathering: its own message says why");
    }
}

/// Without a patience of its own each rank would wait for ever.
#[test]
fn a_thread_that_never_comes_is_named() {
    let said = ranks::link::threads::run_for(3, Duration::from_millis(200), |comm| {
        if comm.rank() == 1 {
            std::thread::sleep(Duration::from_secs(2));
            return Ok(());
        }
        comm.gather(b"here").map(drop)
    });
    assert_eq!(said[1], Some(Ok(())));
    for rank in [0, 2] {
        let error = said[rank].clone().unwrap().unwrap_err().to_string();
        assert!(
            error.starts_with("rank 1 did not come to call 0, a gathering within 0 s"),
            "{error}"
        );
    }
}

/// The vocabulary must be cut evenly for the loss: a row that is no id's would be a part of the sum.
#[test]
fn a_world_size_that_does_not_divide_is_refused() {
    let question = Question::Loss {
        shape: [1, 1],
        width: 1,
        x: vec![1.0],
        weight: vec![1.0; 7],
        targets: vec![Some(3)],
        block: None,
    };
    let Said::Failed(words) = OfThreads::new(2).ask(&question).unwrap() else {
        panic!("it passed")
    };
    let expected = "world size 2 does not divide vocabulary size 7: every rank owns the same number of rows; pad the \
                    vocabulary to a multiple of 2";
    assert_eq!(words, [expected; 2]);
}
