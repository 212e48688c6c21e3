//! No rank waits for ever, and every rank says who it was.

use crate::support::{ANSWERS, alone};
use quadrivium::loss::IGNORE;
use quadrivium::tensor::*;
use ranks::act::{Question, Tiny, tiny, tiny_batch};
use ranks::communicator::{Communicator, Order};
use ranks::embedding::parallel_embedding;
use ranks::error::{Error, Refusal};
use ranks::link::threads;
use ranks::loss::parallel_loss;
use ranks::train::Grid;
use ranks::world::{OfProcesses, OfThreads, Said, World};
use std::path::Path;
use std::rc::Rc;
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
    let world = OfProcesses::start(Path::new(ANSWERS), 4, Duration::from_secs(60)).unwrap();
    let question = Question::UnderCondition { but: 2, question: Box::new(question()) };
    let Said::Failed(words) = world.ask(&question).unwrap() else { panic!("it passed") };
    assert!(words[0].starts_with("rank 2 is at call "), "{words:?}");
    assert!(words[0].contains("a sum of 3 f32"), "{words:?}");
}

#[test]
fn a_process_that_never_comes_is_named() {
    let _alone = alone();
    let world = OfProcesses::start(Path::new(ANSWERS), 4, SHORT).unwrap();
    let question = Question::Absent { rank: 2, question: Box::new(question()) };
    let Said::Failed(words) = world.ask(&question).unwrap() else { panic!("it passed") };
    assert!(words[0].starts_with("rank 2 did not come to call "), "{words:?}");
    assert!(
        words[0].contains("a lookup of 1 x 2 tokens") && words[0].contains("within 3 s"),
        "{words:?}"
    );
}

/// Rank 2 waits for it, rank 3 for rank 2, and rank 0 for rank 3.
#[test]
fn a_process_that_stops_in_a_sum_is_named() {
    let _alone = alone();
    let world = OfProcesses::start(Path::new(ANSWERS), 4, SHORT).unwrap();
    let Said::Failed(words) = world.ask(&Question::StopsInSum { rank: 1 }).unwrap() else {
        panic!("it passed")
    };
    assert!(words[0].starts_with("rank 1 did not come to a sum in order"), "{words:?}");
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

/// Without its own patience each rank would wait for ever.
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

/// Of 5 ids with 2 x 3 rows the loss would have a row too much, and of 7 one too few: an id without owner would be zeros.
#[test]
fn rows_that_are_not_the_vocabulary_are_refused() {
    let refused = |vocab_size: usize, of_loss: bool| {
        let said = threads::run(2, |comm| {
            let dev = Cpu::default();
            let rows: Tensor<Rank2<3, 1>, f32, _> = dev.zeros();
            let ids: Tensor<Rank2<1, 1>, usize, _> = dev.tensor([[vocab_size - 1]]);
            if of_loss {
                let x: Tensor<Rank3<1, 1, 1>, f32, _> = dev.zeros();
                parallel_loss(comm.as_ref(), Order::Any, x, &rows, &ids, vocab_size).map(drop)
            } else {
                parallel_embedding(comm.as_ref(), Order::Any, ids, &rows, vocab_size).map(drop)
            }
        });
        assert_eq!(said[0], said[1]);
        said[0].clone().unwrap().err().map(|error| error.to_string())
    };
    for (vocab_size, of_loss) in [(5, true), (7, true), (7, false)] {
        let said = refused(vocab_size, of_loss).unwrap();
        let expected =
            format!("the vocabulary has {vocab_size} ids, and 2 ranks with 3 rows each have 6");
        assert!(said.contains(&expected), "{said}");
    }
    assert_eq!(refused(6, true), None);
    assert_eq!(refused(5, false), None, "the last row is padding");
}

/// A batch that one copy of the model refuses: the other copies would wait for it.
#[test]
fn what_a_copy_refuses_all_copies_refuse() {
    let said = threads::run(4, |comm| {
        let mut model = tiny(Grid::new(comm, 2)?, 1, Order::Any, Tiny::Tied)?;
        let copy = model.grid().copy();
        let mut batch = tiny_batch(1, 0, copy);
        if copy == 1 {
            batch.ids[1] = 48;
        }
        let refused = model.step(&batch, 0.1).map(drop);
        // They are together still.
        model.step(&tiny_batch(1, 1, copy), 0.1)?;
        refused
    });
    let why = Refusal::TokenId { id: 48, batch: 0, position: 1, vocab_size: 48 };
    let expected = Some(Err(Error::Refused { rank: 2, why }));
    assert!(said.iter().all(|of_rank| *of_rank == expected), "{said:?}");
}

/// What one rank alone can see is sent to the others before they wait for it.
#[test]
fn what_one_rank_refuses_is_the_same_on_all() {
    let alike = |work: &(dyn Fn(&Rc<dyn Communicator>) -> ranks::error::Result<()> + Sync)| {
        let said = threads::run(4, |comm| {
            let refused = work(comm).unwrap_err();
            // Those that were at different calls stay apart; the others go on.
            let again = comm.gather(b"together").map(drop);
            assert_eq!(again.is_err(), matches!(refused, Error::Elsewhere { .. }), "{refused}");
            refused
        });
        let first = said[0].clone().unwrap();
        assert!(said.into_iter().all(|of_rank| of_rank.as_ref() == Some(&first)), "{first}");
        first.to_string()
    };
    let said = alike(&|comm| {
        let mut model = tiny(Grid::new(comm, 2)?, 1, Order::Any, Tiny::Tied)?;
        let mut batch = tiny_batch(1, 0, model.grid().copy());
        if comm.rank() == 3 {
            batch.shape = (1, 5);
        }
        model.step(&batch, 0.1).map(drop)
    });
    assert!(said.starts_with("rank 3 refused: a batch"), "{said}");
    let said = alike(&|comm| {
        let root = if comm.rank() == 2 { 99 } else { 0 };
        comm.broadcast(root, b"").map(drop)
    });
    assert!(said.starts_with("rank 2 is at call 0, a broadcast of what rank 99 has"), "{said}");
    let said = alike(&|comm| comm.broadcast(99, b"").map(drop));
    assert!(said.starts_with("rank 0 refused: rank 99"), "{said}");
    let said = alike(&|comm| Grid::new(comm, if comm.rank() == 1 { 2 } else { 4 }).map(drop));
    assert!(said.starts_with("rank 1 is at call 0, a grid of 2 shards"), "{said}");
    for order in [Order::Any, Order::Fixed { block: 2 }] {
        let said = alike(&|comm| {
            let dev = Cpu::default();
            let x: Tensor<Rank3<1, 1, 1>, f32, _> = dev.zeros();
            let rows: Tensor<Rank2<3, 1>, f32, _> = dev.zeros();
            let ids: Tensor<Rank2<1, 1>, usize, _> =
                dev.tensor([[if order == Order::Any { 12 } else { 1 }]]);
            parallel_loss(comm.as_ref(), order, x, &rows, &ids, 12).map(drop)
        });
        assert!(said.starts_with("rank 0 refused: "), "{said}");
    }
    for shape in [(0, 3), (2, 0), (0, 0)] {
        let said = alike(&|comm| {
            let dev = Cpu::default();
            let rows: Tensor<Rank2<3, 1>, f32, _> = dev.zeros();
            let ids: Tensor<(usize, usize), usize, _> = dev.tensor_from_vec(Vec::new(), shape);
            parallel_embedding(comm.as_ref(), Order::Any, ids, &rows, 12).map(drop)
        });
        assert!(said.starts_with("rank 0 refused: there are no tokens"), "{said}");
        let said = alike(&|comm| {
            let dev = Cpu::default();
            let rows: Tensor<Rank2<3, 1>, f32, _> = dev.zeros();
            let ids: Tensor<(usize, usize), usize, _> = dev.tensor_from_vec(Vec::new(), shape);
            let x: Tensor<(usize, usize, Const<1>), f32, _> =
                dev.tensor_from_vec(Vec::new(), (shape.0, shape.1, Const));
            parallel_loss(comm.as_ref(), Order::Any, x, &rows, &ids, 12).map(drop)
        });
        assert!(said.starts_with("rank 0 refused: "), "{said}");
    }
}

/// Once ranks are at different calls nothing can be exchanged any more, and no one waits to learn it again.
#[test]
fn ranks_that_are_apart_stay_so() {
    let said = threads::run(3, |comm| {
        let other = comm.rank() == 1;
        let first = if other { comm.split(0).map(drop) } else { comm.broadcast(0, b"").map(drop) };
        (first, comm.gather(b"again").map(drop))
    });
    for of_rank in said {
        let (first, again) = of_rank.unwrap();
        assert!(matches!(first, Err(Error::Elsewhere { rank: 1, .. })), "{first:?}");
        assert_eq!(again, first);
    }
}

/// Where nothing is asked the gradient is 0, and an infinite one that arrives does not make 0 times infinity of it.
#[test]
fn what_is_not_asked_about_has_no_gradient_whatever_arrives() {
    for dloss in [f32::INFINITY, f32::NAN] {
        let dx = threads::run(2, |comm| {
            let dev = Cpu::default();
            let x: Tensor<Rank3<1, 2, 1>, f32, _> = dev.tensor([[[0.5], [0.25]]]);
            let rows: Tensor<Rank2<2, 1>, f32, _> = dev.tensor([[1.0], [2.0]]);
            let ids: Tensor<Rank2<1, 2>, usize, _> = dev.tensor([[3, IGNORE]]);
            let loss = parallel_loss(comm.as_ref(), Order::Any, x.leaky_trace(), &rows, &ids, 4);
            (loss.unwrap() * dloss).backward().get(&x).array()
        });
        for dx in dx {
            let [[[asked], [ignored]]] = dx.unwrap();
            assert!(!asked.is_finite());
            assert_eq!(ignored.to_bits(), 0.0_f32.to_bits(), "of {dloss}");
        }
    }
}
