//! Fused code on a CPU beside the formulas as the book shows them: large inputs, threads, f16, memory.

use contract::ladder::Draw;
use contract::run::Run;
use quadrivium::functional::*;
use quadrivium::tensor::*;
use quadrivium::{NtkAwareRope, NtkAwareRopeConfig, composed};

/// Values and gradients of some computation.
type Answer = Vec<Vec<f32>>;

fn draw<S: Shape>(seed: u64, shape: S) -> Tensor<S, f32, Cpu> {
    let values = Draw::new(&Run::default(), seed).values(shape.num_elements());
    Cpu::default().tensor_from_vec(values, shape)
}

/// Sizes at which threads are used, and that no block, piece or lane divides.
const TOKENS: [(usize, usize); 3] = [(1, 1), (2, 389), (3, 517)];

/// Runs on so many threads.
fn on_threads<R: Send>(threads: usize, run: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(run)
}

/// The same bits on any number of threads, and nearly what the formula gives.
fn expect(name: &str, within: f32, run: impl Fn() -> Answer + Sync) {
    let fused = on_threads(1, &run);
    for threads in [2, 3, 8] {
        assert_eq!(on_threads(threads, &run), fused, "{name} on {threads} threads");
    }
    let formula = composed(&run);
    for (nth, (fused, formula)) in fused.iter().zip(&formula).enumerate() {
        let size = formula.iter().fold(0f32, |size, x| size.max(x.abs()));
        let off = fused.iter().zip(formula).fold(0f32, |off, (a, b)| off.max((a - b).abs()));
        assert!(off <= within * size, "{name}: answer {nth} is off by {off} of {size}");
        assert_eq!(fused.len(), formula.len());
    }
}

/// `y`, and the gradients of `<y, dy>`.
fn answer<S: Shape, X: Shape>(
    y: Tensor<S, f32, Cpu, OwnedTape<f32, Cpu>>,
    of: impl FnOnce(&Gradients<f32, Cpu>) -> Answer,
    x: &Tensor<X, f32, Cpu>,
) -> Answer {
    let values = y.as_vec();
    let dy = draw(99, *y.shape());
    let loss = (y * dy).sum::<Rank0, _>();
    let grads = loss.backward();
    let mut all = vec![values, grads.get(x).as_vec()];
    all.extend(of(&grads));
    all
}

#[test]
fn the_norm_is_that_of_the_formula() {
    for (b, s) in TOKENS {
        for (h, gz) in [(134, 67), (130, 2), (64, 4), (515, 515)] {
            let (x, gamma) = (draw(1, (b, s, h)), draw(2, (h,)));
            expect(&format!("group_rms_norm {b} {s} {h} {gz}"), 1e-5, || {
                let y = group_rms_norm(x.leaky_trace(), &gamma, gz, 1e-5).unwrap();
                answer(y, |grads| vec![grads.get(&gamma).as_vec()], &x)
            });
        }
    }
}

#[test]
fn the_layer_norm_is_that_of_the_formula() {
    for (b, s) in TOKENS {
        for h in [67, 130, 515] {
            let (x, gamma, beta) = (draw(1, (b, s, h)), draw(2, (h,)), draw(3, (h,)));
            expect(&format!("layer_norm {b} {s} {h}"), 1e-5, || {
                let y = layer_norm(x.leaky_trace(), &gamma, &beta, 1e-5).unwrap();
                let of = |grads: &Gradients<f32, Cpu>| {
                    vec![grads.get(&gamma).as_vec(), grads.get(&beta).as_vec()]
                };
                answer(y, of, &x)
            });
        }
    }
}

/// Rows are copied, and gradients added up in the order of the tokens: not a bit may differ.
#[test]
fn the_embeddings_are_those_of_the_formula() {
    let dev = Cpu::default();
    for (b, s) in TOKENS {
        let mut draws = Draw::new(&Run::default(), 5);
        let ids = (0..b * s).map(|_| draws.below(96)).collect();
        let ids: Tensor<(usize, usize), usize, _> = dev.tensor_from_vec(ids, (b, s));
        for e in [1, 67, 130] {
            let table = draw(6, (96, e));
            expect(&format!("vocab_embedding {b} {s} {e}"), 0.0, || {
                let y = vocab_embedding(ids.leaky_trace(), &table).unwrap();
                answer(y, |_| vec![], &table)
            });
            let shard = draw(7, (24, e));
            expect(&format!("vocab_shard_embedding {b} {s} {e}"), 0.0, || {
                let y = vocab_shard_embedding(ids.leaky_trace(), &shard, 2, 4).unwrap();
                answer(y, |_| vec![], &shard)
            });
        }
    }
}

/// The same products and sums in the same order: not a bit may differ.
#[test]
fn the_rotation_is_that_of_the_formula() {
    for (b, s) in TOKENS {
        for (layout, turn) in [
            (Layout::HalfSplit, apply_rotary_pos_emb as fn(_, &_, &_) -> _),
            (Layout::Interleaved, apply_rotary_pos_emb_interleaved),
        ] {
            let (x, cos, sin) = (draw(1, (b, s, 3, 66)), draw(2, (s, 66)), draw(3, (s, 66)));
            expect(&format!("rotation {b} {s} {layout:?}"), 0.0, || {
                let y: Result<Tensor<_, f32, Cpu, OwnedTape<f32, Cpu>>, quadrivium::Error> =
                    turn(x.leaky_trace(), &cos, &sin);
                answer(y.unwrap(), |_| vec![], &x)
            });
        }
    }
}

/// Tokens in the middle of the cached table, and of two batch rows.
#[test]
fn the_module_reads_its_table_where_it_is() {
    for layout in [Layout::HalfSplit, Layout::Interleaved] {
        let config = NtkAwareRopeConfig { max_seq_len: 2000, layout, ..Default::default() };
        let rope = NtkAwareRope::<6, _>::new(&Cpu::default(), config).unwrap();
        for (s, offset) in [(1, 0), (1, 1999), (389, 17), (389, 1611)] {
            let x = draw(1, (2, s, 9, Const::<6>));
            expect(&format!("module {layout:?} {s} {offset}"), 0.0, || {
                let y = rope.try_forward((x.leaky_trace(), offset)).unwrap();
                answer(y, |_| vec![], &x)
            });
        }
    }
}

/// A view of other strides, and one whose rows are one row in memory.
#[test]
fn views_are_read_in_their_order() {
    let (x, gamma) = (draw(1, (389, 3, 130)), draw(2, (130,)));
    expect("permuted", 1e-5, || {
        let view = x.leaky_trace().permute::<_, Axes3<1, 0, 2>>();
        let y = group_rms_norm(view, &gamma, 10, 1e-5).unwrap();
        answer(y, |grads| vec![grads.get(&gamma).as_vec()], &x)
    });
    let row = draw(3, (130,));
    expect("broadcast", 1e-5, || {
        let view = row.leaky_trace().broadcast_like::<_, Axes2<0, 1>>(&(3, 389, 130));
        let y = group_rms_norm(view, &gamma, 10, 1e-5).unwrap();
        answer(y, |grads| vec![grads.get(&gamma).as_vec()], &row)
    });
}

/// A gradient that is there already is added to, and the gradient of the result is left as it was.
#[test]
fn gradients_are_added_to() {
    let (x, gamma) = (draw(1, (2, 389, 130)), draw(2, (130,)));
    expect("used three times", 1e-5, || {
        let one = group_rms_norm(x.leaky_trace(), &gamma, 10, 1e-5).unwrap();
        let two = group_rms_norm(x.leaky_trace(), &gamma, 130, 1e-5).unwrap();
        let y = one.square() + two;
        answer(y, |grads| vec![grads.get(&gamma).as_vec()], &x)
    });
}
