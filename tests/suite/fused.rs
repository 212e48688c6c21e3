//! Fused code on a CPU beside the formulas as the book shows them: large inputs, threads, f16, memory.

use contract::graded_cases::Draw;
use contract::run::Run;
use quadrivium::functional::*;
use quadrivium::tensor::*;
use quadrivium::{NtkAwareRope, NtkAwareRopeConfig, composed};

/// Values and gradients of some computation.
pub(crate) type Answer = Vec<Vec<f32>>;

/// Values of 24 bits: nearly every product and sum of them is rounded, so that their order shows.
pub(crate) fn draw<S: Shape>(seed: u64, shape: S) -> Tensor<S, f32, Cpu> {
    let values = Draw::new(&Run::default(), seed).values(shape.num_elements());
    Cpu::default().tensor_from_vec(values.into_iter().map(|x| x * 0.3).collect(), shape)
}

/// Sizes at which threads are used, and that no block, piece or lane divides.
pub(crate) const TOKENS: [(usize, usize); 3] = [(1, 1), (2, 389), (3, 517)];

/// Runs on so many threads.
pub(crate) fn on_threads<R: Send>(threads: usize, run: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(run)
}

/// The same bits on any number of threads, and nearly what the formula gives.
pub(crate) fn expect(name: &str, within: f32, run: impl Fn() -> Answer + Sync) {
    let fused = on_threads(1, &run);
    for threads in [2, 3, 8] {
        assert_eq!(on_threads(threads, &run), fused, "{name} on {threads} threads");
    }
    beside_the_formula(name, within, fused, run);
}

/// Nearly what the formula gives.
pub(crate) fn beside_the_formula(name: &str, within: f32, fused: Answer, run: impl Fn() -> Answer) {
    let formula = composed(run);
    for (nth, (fused, formula)) in fused.iter().zip(&formula).enumerate() {
        let size = formula.iter().fold(0f32, |size, x| size.max(x.abs()));
        let off = fused.iter().zip(formula).fold(0f32, |off, (a, b)| off.max((a - b).abs()));
        assert!(off <= within * size, "{name}: answer {nth} is off by {off} of {size}");
        let nan = |values: &[f32]| values.iter().map(|x| x.is_nan()).collect::<Vec<_>>();
        assert_eq!(nan(fused), nan(formula), "{name}: answer {nth}, where it is NaN");
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
        let ids = (0..b * s).map(|_| draws.below(101)).collect();
        let ids: Tensor<(usize, usize), usize, _> = dev.tensor_from_vec(ids, (b, s));
        for e in [1, 67, 130] {
            let table = draw(6, (101, e));
            expect(&format!("vocab_embedding {b} {s} {e}"), 0.0, || {
                let y = vocab_embedding(ids.leaky_trace(), &table).unwrap();
                answer(y, |_| vec![], &table)
            });
            let shard = draw(7, (26, e));
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

/// A gradient that is there already is added to, in every row, and the gradient of the result is left as it was.
#[test]
fn gradients_are_added_to() {
    let (x, gamma, beta) = (draw(1, (2, 389, 130)), draw(2, (130,)), draw(3, (130,)));
    let norm = |x| group_rms_norm(x, &gamma, 10, 1e-5).unwrap();
    expect("norm, used twice", 1e-5, || {
        let y = norm(x.leaky_trace()) + norm(x.leaky_trace() * 2.0);
        answer(y, |grads| vec![grads.get(&gamma).as_vec()], &x)
    });
    let layer = |x| layer_norm(x, &gamma, &beta, 1e-5).unwrap();
    expect("layer norm, used twice", 1e-5, || {
        let y = layer(x.leaky_trace()) + layer(x.leaky_trace() * 2.0);
        answer(y, |grads| vec![grads.get(&gamma).as_vec(), grads.get(&beta).as_vec()], &x)
    });
    let rope = NtkAwareRope::<6, _>::new(&Cpu::default(), Default::default()).unwrap();
    let heads = draw(1, (1, 700, 9, Const::<6>));
    expect("rotation, used twice", 1e-6, || {
        let y = rope.forward((heads.leaky_trace(), 3)) + rope.forward((heads.leaky_trace(), 90));
        answer(y, |_| vec![], &heads)
    });
    let table = draw(1, (101, 67));
    let ids = |step: usize| -> Tensor<(usize, usize), usize, Cpu> {
        let ids = (0..700).map(|i| i * step % 101).collect();
        Cpu::default().tensor_from_vec(ids, (1, 700))
    };
    expect("embedding, used twice", 1e-6, || {
        let [one, two] = [37, 53].map(|step| ids(step).leaky_trace());
        let y = vocab_embedding(one, &table).unwrap() + vocab_embedding(two, &table).unwrap();
        answer(y, |_| vec![], &table)
    });

    let kept = |y: Tensor<(usize, usize, usize), f32, Cpu, OwnedTape<f32, Cpu>>| {
        let (shown, dy) = (y.retaped::<NoneTape>(), draw(99, *y.shape()));
        let grads = (y * dy.clone()).sum::<Rank0, _>().backward();
        assert_eq!(grads.get(&shown).as_vec(), dy.as_vec());
    };
    kept(norm(x.leaky_trace()));
    kept(layer(x.leaky_trace()));
    kept(vocab_embedding(ids(37).leaky_trace(), &table).unwrap());
}

/// Rows and blocks as long and as many as nowhere else here: what is left out only there shows.
#[test]
fn large_inputs() {
    let beside = |name: &str, within: f32, run: &dyn Fn() -> Answer| {
        beside_the_formula(name, within, run(), run);
    };
    let (x, gamma, beta) = (draw(1, (1, 2100, 1100)), draw(2, (1100,)), draw(3, (1100,)));
    for gz in [1100, 10] {
        beside(&format!("norm, groups of {gz}"), 1e-5, &|| {
            let y = group_rms_norm(x.leaky_trace(), &gamma, gz, 1e-5).unwrap();
            let y = y + group_rms_norm(x.leaky_trace(), &gamma, gz, 1e-5).unwrap();
            answer(y, |grads| vec![grads.get(&gamma).as_vec()], &x)
        });
    }
    // Far from 0 beside its spread, where a variance in one pass loses its digits.
    let far = x.clone() + 64.0;
    beside("layer norm", 1e-4, &|| {
        let y = layer_norm(far.leaky_trace(), &gamma, &beta, 1e-5).unwrap();
        answer(y, |grads| vec![grads.get(&gamma).as_vec(), grads.get(&beta).as_vec()], &far)
    });
    let heads = draw(1, (1, 2100, 17, 66));
    let (cos, sin) = (draw(2, (2100, 66)), draw(3, (2100, 66)));
    beside("rotation", 0.0, &|| {
        let y = apply_rotary_pos_emb(heads.leaky_trace(), &cos, &sin).unwrap();
        answer(y, |_| vec![], &heads)
    });
    let table = draw(1, (4201, 131));
    // Most in the last rows.
    let row = |i: usize| if i % 3 == 0 { i * 1009 % 4201 } else { 4200 - i % 97 };
    let ids = (0..700).map(row).collect();
    let ids: Tensor<(usize, usize), usize, _> = Cpu::default().tensor_from_vec(ids, (1, 700));
    beside("embedding", 0.0, &|| {
        let y = vocab_embedding(ids.leaky_trace(), &table).unwrap();
        answer(y, |_| vec![], &table)
    });
}

/// A row that is no number makes the sums over rows none, also where its gradient is 0: nothing is left out.
#[test]
fn what_is_no_number_stays_none() {
    let (gamma, beta) = (draw(2, (67,)), draw(3, (67,)));
    let mut values = draw(1, (1, 389, 67)).as_vec();
    values[40 * 67 + 3] = f32::NAN;
    let x = Cpu::default().tensor_from_vec(values, (1, 389, 67));
    let mut weights = draw(4, (1, 389, 67)).as_vec();
    weights[40 * 67..41 * 67].fill(0.0);
    let weights = Cpu::default().tensor_from_vec(weights, (1, 389, 67));
    let sums = |y: Tensor<_, f32, Cpu, OwnedTape<f32, Cpu>>| {
        let grads = (y * weights.clone()).sum::<Rank0, _>().backward();
        vec![grads.get(&gamma).as_vec(), grads.get(&x).as_vec()]
    };
    for fused in [true, false] {
        let norm = || sums(group_rms_norm(x.leaky_trace(), &gamma, 67, 1e-5).unwrap());
        let layer = || sums(layer_norm(x.leaky_trace(), &gamma, &beta, 1e-5).unwrap());
        let answers = match fused {
            true => [norm(), layer()],
            false => [composed(norm), composed(layer)],
        };
        for answer in answers {
            assert!(answer[0].iter().all(|x| x.is_nan()), "dgamma: {:?}", answer[0]);
            for (row, dx) in answer[1].chunks(67).enumerate() {
                assert_eq!(dx.iter().all(|x| x.is_nan()), row == 40, "row {row}");
            }
        }
    }
}

/// Half precision computes in f32 and rounds once: the bits of the f32 code on the same numbers, rounded.
#[test]
#[cfg(feature = "f16")]
fn half_precision_is_rounded_once() {
    fn halves<S: Shape>(x: &Tensor<S, f32, Cpu>) -> Tensor<S, f16, Cpu> {
        let values = x.as_vec().into_iter().map(f16::from_f32).collect();
        Cpu::default().tensor_from_vec(values, *x.shape())
    }
    let wide = |x: &Tensor<(usize, usize, usize), f32, Cpu>| halves(x).to_dtype::<f32>();
    let (x, dy) = (draw(1, (2, 389, 67)), draw(4, (2, 389, 67)));
    let gamma = draw(2, (67,));
    let (x16, dy16, gamma16) = (halves(&x), halves(&dy), halves(&gamma));
    let (x, dy, gamma) = (wide(&x), wide(&dy), gamma16.clone().to_dtype::<f32>());
    let rounded = |values: Vec<f32>| values.into_iter().map(f16::from_f32).collect::<Vec<_>>();

    let y = group_rms_norm(x.leaky_trace(), &gamma, 67, 1e-5).unwrap();
    let y16 = group_rms_norm(x16.leaky_trace(), &gamma16, 67, 1e-5).unwrap();
    assert_eq!(y16.as_vec(), rounded(y.as_vec()));
    // The gradient of a product of y and dy with respect to y is dy, in either type.
    let grads = (y * dy).sum::<Rank0, _>().backward();
    let grads16 = (y16 * dy16).sum::<Rank0, _>().backward();
    assert_eq!(grads16.get(&x16).as_vec(), rounded(grads.get(&x).as_vec()));
    assert_eq!(grads16.get(&gamma16).as_vec(), rounded(grads.get(&gamma).as_vec()));
}
