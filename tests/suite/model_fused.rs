//! The model's fused code on a CPU: beside the formulas, beside loops in `f64`, on any number of threads, with values that
//! are no numbers; and the cache that is written at its end.

use crate::attention::attend;
use crate::fused::{Answer, TOKENS, draw, expect};
use crate::support::assert_within;
use quadrivium::attention::*;
use quadrivium::feedforward::silu_mul;
use quadrivium::functional::linear;
use quadrivium::loss::{IGNORE, cross_entropy};
use quadrivium::model::*;
use quadrivium::position::{PositionEncoding, Positions};
use quadrivium::tensor::*;
use quadrivium::{Error, among_threads, composed, in_threads};

type Traced<S, F> = Tensor<S, F, Cpu, OwnedTape<F, Cpu>>;
type Four = (usize, usize, usize, usize);

/// `<y, dy>`, and its gradients with respect to some tensors of one shape each.
fn both<S: Shape>(y: Traced<S, f32>, of: impl FnOnce(&Gradients<f32, Cpu>) -> Answer) -> Answer {
    let values = y.as_vec();
    let dy = draw(99, *y.shape());
    let grads = (y * dy).sum::<Rank0, _>().backward();
    let mut all = vec![values];
    all.extend(of(&grads));
    all
}

fn attention_of([q, k, v]: &[Tensor<Four, f32, Cpu>; 3], padding: &[usize]) -> Traced<Four, f32> {
    let [k_taped, v_taped] = [k, v].map(|x| x.retaped::<OwnedTape<f32, Cpu>>());
    causal_attention(q.leaky_trace(), k_taped, v_taped, padding).unwrap()
}

/// Blocks that are full, one that is not, and keys before the first query.
#[test]
fn attention_is_that_of_the_formula() {
    for (b, s, t, nh, nkv, hd) in [
        (1, 1, 1, 1, 1, 2),
        (2, 1, 300, 6, 2, 34),
        (1, 3, 70, 4, 1, 16),
        (2, 65, 65, 3, 3, 7),
        (1, 130, 197, 4, 2, 17),
        (3, 64, 64, 2, 1, 64),
    ] {
        let inputs = [
            draw(1, (b, s, nh, hd)) * 4.0,
            draw(2, (b, t, nkv, hd)) * 4.0,
            draw(3, (b, t, nkv, hd)),
        ];
        let padded: Vec<usize> = (0..b).map(|row| [2, 0, t - 1][row % 3].min(t - 1)).collect();
        for padding in [&[][..], &padded] {
            // Sums of up to t products, in another order: some tens of roundings of the largest.
            expect(
                &format!("{b} {s} {t} {nh} {nkv} {hd} {padding:?}"),
                2e-6 * (t as f32).sqrt(),
                || {
                    both(attention_of(&inputs, padding), |grads| {
                        inputs.iter().map(|x| grads.get(x).as_vec()).collect()
                    })
                },
            );
        }
    }
}

/// In `f64`, within some hundred roundings of the loops.
#[test]
fn attention_is_that_of_the_loops() {
    let dev = Cpu::default();
    let wide = |seed, shape: Four| -> Vec<f64> {
        draw(seed, shape).as_vec().into_iter().map(|x| f64::from(x) * 5.0).collect()
    };
    for (nh, nkv) in [(1, 1), (4, 4), (4, 2), (6, 2), (5, 1)] {
        for (b, s, t, hd) in
            [(1, 1, 9, 3), (2, 5, 5, 2), (3, 4, 11, 70), (1, 2, 9, 150), (1, 70, 70, 5)]
        {
            let padding: Vec<usize> = (0..b).map(|row| row * 2).collect();
            let (q, k, v) =
                (wide(1, (b, s, nh, hd)), wide(2, (b, t, nkv, hd)), wide(3, (b, t, nkv, hd)));
            let q_of = dev.tensor_from_vec(q.clone(), (b, s, nh, hd));
            let [k_of, v_of] = [&k, &v].map(|x| dev.tensor_from_vec(x.clone(), (b, t, nkv, hd)));
            let got = causal_attention(q_of, k_of, v_of, &padding).unwrap().as_vec();
            let mut want = Vec::new();
            for row in 0..b {
                let lists = |x: &[f64]| -> Vec<Vec<f64>> {
                    let row = &x[row * t * nkv * hd..][..t * nkv * hd];
                    row.chunks(nkv * hd).map(<[f64]>::to_vec).collect()
                };
                for i in 0..s {
                    let q = &q[(row * s + i) * nh * hd..][..nh * hd];
                    let at = (t - s + i, padding[row]);
                    want.extend(attend(q, (&lists(&k), &lists(&v)), at, (nh, nkv)));
                }
            }
            assert_within(&got, &want, |i| 1e-13 * want[i].abs().max(1.0));
        }
    }
}

/// Scores whose exponentials are no numbers; what is no number stays with those who see it.
#[test]
fn large_scores_and_values_that_are_no_numbers() {
    let (s, nh, hd) = (70, 2, 4);
    let inputs = [1, 2, 3].map(|seed| draw(seed, (1, s, nh, hd)));
    let [q, k, v] = &inputs;
    let large = [q.clone() * 300.0, k.clone() * 300.0, v.clone()];
    let y = attention_of(&large, &[]).as_vec();
    assert!(y.iter().all(|y| y.is_finite() && y.abs() <= 2.0), "weights that do not sum to 1");

    let whole = attention_of(&inputs, &[]).as_vec();
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for (which, at) in [(1, 40), (2, 40), (2, 66), (1, 3)] {
            let mut inputs = inputs.clone();
            let mut values = inputs[which].as_vec();
            values[(at * nh + 1) * hd] = bad;
            inputs[which] = Cpu::default().tensor_from_vec(values, (1, s, nh, hd));
            let y = attention_of(&inputs, &[]).as_vec();
            let same = |(place, (a, b)): (usize, (&f32, &f32))| {
                let (token, head) = (place / (nh * hd), place / hd % nh);
                token >= at && head == 1 || (a - b).abs() <= 1e-6
            };
            assert!(y.iter().zip(&whole).enumerate().all(same), "{bad} in {which} at {at}");
            let own = &y[(at * nh + 1) * hd..][..hd];
            let seen = which == 1 || own.iter().any(|y| !y.is_finite());
            assert!(seen, "{bad} in {which} at {at} is not seen: {own:?}");
            if bad.is_nan() {
                let last = &y[((s - 1) * nh + 1) * hd..][..hd];
                assert!(last.iter().any(|y| y.is_nan()), "{which} at {at}: {last:?}");
            }
        }
    }
}

/// A mean of values is no larger than the largest, also near the largest number there is; and the mean of equal values is
/// that value, up to the roundings of a block of keys and of the sum of blocks.
#[test]
fn large_values_and_many_of_them() {
    let dev = Cpu::default();
    for s in [1, 4, 5] {
        let mean = |t: usize, value: f32| {
            let shape = (1, t, 1, 83);
            let zeros = |len| dev.zeros_like(&(1usize, len, 1usize, 83usize));
            let v = dev.tensor_from_vec(vec![value; t * 83], shape);
            causal_attention(zeros(s), zeros(t), v, &[]).unwrap().as_vec()
        };
        for (t, value, roundings) in [(7, f32::MAX / 2.0, 20.0), (20_000, 0.1, 400.0)] {
            for y in mean(t, value) {
                let most = roundings * f32::EPSILON / 2.0 * value;
                assert!((y - value).abs() <= most, "{y} for {value}, {s} of {t}");
            }
        }
    }
}

/// Another future changes no bit of the past, no matter what numbers it has, or none; nor of its queries' gradients.
#[test]
fn the_future_changes_no_bit() {
    let (nh, hd) = (2, 4);
    let run = |inputs: &[Tensor<Four, f32, Cpu>; 3], at: usize| {
        let y = attention_of(inputs, &[]);
        let past = y.as_vec()[..at * nh * hd].to_vec();
        // A loss that asks only for the past.
        let asked = (0..y.shape().num_elements()).map(|place| f32::from(place < at * nh * hd));
        let dy = Cpu::default().tensor_from_vec(asked.collect(), *y.shape());
        let dq = (y * dy).sum::<Rank0, _>().backward().get(&inputs[0]).as_vec();
        (past, dq[..at * nh * hd].to_vec())
    };
    for s in [4, 70, 200] {
        let inputs = [1, 2, 3].map(|seed| draw(seed, (1, s, nh, hd)));
        for at in [1, 3, 63, 64, 69, 199].into_iter().filter(|at| *at < s) {
            let before = run(&inputs, at);
            for other in [3.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                // In the values alone, where the product of a weight of 0 is no number.
                for which in if other.is_finite() { 0..3 } else { 2..3 } {
                    let mut changed = inputs.clone();
                    let mut values = inputs[which].as_vec();
                    values[at * nh * hd..].iter_mut().for_each(|x| *x *= other);
                    changed[which] = Cpu::default().tensor_from_vec(values, (1, s, nh, hd));
                    assert_eq!(run(&changed, at), before, "{which} times {other} from {at} of {s}");
                }
            }
        }
    }
}

/// A token that sees only itself has a weight of 1, and its scores a gradient of 0: not about 0.
#[test]
fn who_sees_only_itself_learns_nothing_of_its_scores() {
    for s in [1, 2, 4, 5, 64, 70] {
        let inputs = [1, 2, 3].map(|seed| draw(seed, (2, s, 4, 16)) * 10.0);
        let y = attention_of(&inputs, &[]);
        let dy = draw(4, *y.shape());
        let grads = (y * dy).sum::<Rank0, _>().backward();
        let dq = grads.get(&inputs[0]).as_vec();
        for row in dq.chunks(s * 64) {
            assert!(row[..64].iter().all(|dq| *dq == 0.0), "{s} tokens: {:?}", &row[..64]);
            assert!(s == 1 || row[64..].iter().any(|dq| *dq != 0.0), "{s} tokens: all are 0");
        }
    }
}

#[test]
fn the_gate_is_that_of_the_formula() {
    for (b, s) in TOKENS {
        for n in [1, 67, 130] {
            let (a, c) = (draw(1, (b, s, n)) * 30.0, draw(2, (b, s, n)));
            // An exponential off by 4 roundings, and some products.
            expect(&format!("silu_mul {b} {s} {n}"), 1e-6, || {
                let y = silu_mul(a.leaky_trace(), c.retaped::<OwnedTape<f32, Cpu>>()).unwrap();
                both(y, |grads| vec![grads.get(&a).as_vec(), grads.get(&c).as_vec()])
            });
        }
    }
}

/// Tiles that are full, and tiles that are not, also where a tile has as many rows and columns as it may; few tokens, and many rows of
/// the weight.
#[test]
fn a_projection_is_that_of_the_formula() {
    for (b, s, k, n) in [
        (1, 1, 5, 3),
        (1, 1, 700, 601),
        (2, 2, 130, 1100),
        (1, 5, 67, 130),
        (2, 389, 67, 131),
        (1, 600, 300, 17),
        (1, 130, 40, 2100),
        (1, 1030, 9, 1030),
    ] {
        let (x, weight) = (draw(1, (b, s, k)), draw(2, (n, k)));
        // Sums of up to 2100 products in another order.
        expect(&format!("linear {b} {s} {k} {n}"), 1e-5, || {
            let y = linear(x.leaky_trace(), &weight).unwrap();
            both(y, |grads| vec![grads.get(&x).as_vec(), grads.get(&weight).as_vec()])
        });
    }
}

#[test]
fn the_loss_is_that_of_the_formula() {
    for (b, s) in TOKENS {
        for v in [2, 101, 130] {
            let logits = draw(1, (b, s, v)) * 400.0; // exp of most is infinite
            let target = |i: usize| if i % 3 == 1 { IGNORE } else { i * 7919 % v };
            let targets = (0..b * s).map(target).collect();
            let targets = Cpu::default().tensor_from_vec(targets, (b, s));
            expect(&format!("cross_entropy {b} {s} {v}"), 2e-6, || {
                let loss = cross_entropy(logits.leaky_trace() * 2.0, &targets).unwrap();
                let value = loss.array();
                vec![vec![value], (loss * 3.0).backward().get(&logits).as_vec()]
            });
        }
    }
    let uniform: Tensor<Rank3<1, 1, 7>, f64, Cpu> = Cpu::default().zeros();
    let loss = cross_entropy(uniform, &Cpu::default().tensor([[3]])).unwrap().array();
    assert!((loss - 7f64.ln()).abs() < 1e-15);
    let nan = Cpu::default().tensor([[[1.0, f32::NAN, 0.0], [1.0, 2.0, 3.0]]]);
    let loss = |first: usize| {
        let targets = Cpu::default().tensor([[first, 1]]);
        cross_entropy(nan.clone(), &targets).unwrap().array()
    };
    assert!(loss(0).is_nan() && loss(IGNORE).is_finite());
}

/// A gradient that is there already is added to, and that of the result is left as it was.
#[test]
fn gradients_are_added_to() {
    let inputs = [1, 2, 3].map(|seed| draw(seed, (2, 70, 2, 6)));
    expect("attention, used twice", 1e-5, || {
        let y = attention_of(&inputs, &[]) + attention_of(&inputs, &[3, 0]);
        both(y, |grads| inputs.iter().map(|x| grads.get(x).as_vec()).collect())
    });
    let same = draw(4, (2, 70, 4, 6)) * 3.0;
    expect("one tensor as queries, keys and values", 1e-5, || {
        let [k, v] = [(); 2].map(|()| same.retaped::<OwnedTape<f32, Cpu>>());
        let y = causal_attention(same.leaky_trace(), k, v, &[]).unwrap();
        both(y, |grads| vec![grads.get(&same).as_vec()])
    });
    let a = draw(5, (2, 389, 67));
    expect("one tensor as gate and what passes", 1e-6, || {
        let y = silu_mul(a.leaky_trace(), a.retaped::<OwnedTape<f32, Cpu>>()).unwrap();
        let once_more = silu_mul(a.leaky_trace(), a.retaped::<OwnedTape<f32, Cpu>>()).unwrap();
        both(y + once_more, |grads| vec![grads.get(&a).as_vec()])
    });
    let (x, weight) = (draw(6, (1, 300, 67)), draw(7, (67, 67)));
    expect("a projection, used twice", 1e-5, || {
        let y = linear(linear(x.leaky_trace(), &weight).unwrap(), &weight).unwrap();
        both(y, |grads| vec![grads.get(&x).as_vec(), grads.get(&weight).as_vec()])
    });
    let targets = Cpu::default().tensor_from_vec((0..300).map(|i| i % 67).collect(), (1, 300));
    expect("a loss, used twice", 1e-5, || {
        let loss = |scale| cross_entropy(x.leaky_trace() * scale, &targets).unwrap();
        let both = loss(2.0) + loss(9.0);
        vec![vec![both.array()], both.backward().get(&x).as_vec()]
    });
}

/// Views of other strides, and rows that are one row in memory.
#[test]
fn views_are_read_in_their_order() {
    let across = draw(1, (70, 2, 4, 6));
    expect("a permuted view", 1e-5, || {
        let q = across.leaky_trace().permute::<_, Axes4<1, 0, 2, 3>>();
        let [k, v] = [(); 2].map(|()| q.with_empty_tape());
        let y = causal_attention(q, k, v, &[]).unwrap();
        both(y, |grads| vec![grads.get(&across).as_vec()])
    });
    let row = draw(2, (67,));
    expect("a broadcast view and a permuted weight", 1e-5, || {
        let x = row.leaky_trace().broadcast_like::<_, Axes2<0, 1>>(&(2, 150, 67));
        let across = draw(3, (67, 31)).permute::<(usize, usize), Axes2<1, 0>>();
        both(linear(x, &across).unwrap(), |grads| vec![grads.get(&row).as_vec()])
    });
}

/// The exponential below 0, at every 61st number of `f32`.
#[test]
fn the_exponential_is_within_two_ulps() {
    let mut worst = 0f64;
    for bits in (0x8000_0000u32..0xc2ae_ac4f).step_by(61) {
        let x = f32::from_bits(bits); // from -0 to -87.33
        let want = f64::from(x).exp();
        worst = worst.max((f64::from(x.exp_below_zero()) / want - 1.0).abs());
    }
    assert!(worst <= 2f64.powi(-22), "{worst:e}");
    assert_eq!([0f32, -0.0].map(Float::exp_below_zero), [1.0, 1.0]);
    assert_eq!([-88f32, -1e30, f32::NEG_INFINITY].map(Float::exp_below_zero), [0.0; 3]);
    assert!(f32::NAN.exp_below_zero().is_nan());
}

type Llama = LlamaTransformer<11, 12, 3, 1, 4, 10, 2, f32, Cpu>;

fn logits(model: &Llama, cache: &mut LlamaCache<1, 4, 2, f32, Cpu>, ids: &[usize]) -> Vec<f32> {
    let ids = Cpu::default().tensor_from_vec(ids.to_vec(), (1, ids.len()));
    model.try_decode(ids, cache).unwrap().as_vec()
}

/// Which way is taken is decided by who calls, on whatever thread the work is done.
#[test]
fn among_threads_the_answers_are_the_same() {
    let run = || {
        let config = LlamaConfig { init_std: 0.5, ..Default::default() };
        let model = Llama::new(&Cpu::default(), config).unwrap();
        logits(&model, &mut LlamaCache::new(9), &[1, 2, 3, 4, 5, 6, 7])
    };
    let [fused, formula] = [run(), composed(run)];
    assert_ne!(fused, formula, "so that their last digits tell them apart");
    assert_eq!(among_threads(run), fused);
    assert_eq!(among_threads(|| among_threads(run)), fused);
    assert_eq!(composed(|| among_threads(run)), formula);
    assert_eq!(among_threads(|| composed(run)), formula);
    assert_eq!(in_threads(|| among_threads(run)), in_threads(run));
}

/// A cache that is cut goes on as one that never had more; a copy of it goes its own way; a call that fails
/// leaves it as it was; and tensors and lists follow each other.
#[test]
fn a_cache_is_cut_copied_and_left() {
    let config = LlamaConfig { init_std: 0.5, ..Default::default() };
    let model = Llama::new(&Cpu::default(), config).unwrap();
    for way in [|run: &mut dyn FnMut()| run(), |run: &mut dyn FnMut()| composed(run)] {
        way(&mut || {
            let mut cache = LlamaCache::new(9);
            logits(&model, &mut cache, &[1, 2, 3, 4]);
            let mut copy = cache.clone();
            let at_four = logits(&model, &mut copy, &[5, 6]);
            logits(&model, &mut cache, &[7, 8, 9]);
            assert_eq!((cache.positions(), copy.positions()), (7, 6));
            cache.truncate(4).unwrap();
            assert_eq!(cache.positions(), 4);
            assert_eq!(logits(&model, &mut cache, &[5, 6]), at_four);
            assert_eq!(cache.truncate(7), Err(Error::BehindCache { kept: 6, positions: 7 }));

            let kept = |cache: &LlamaCache<1, 4, 2, f32, Cpu>| format!("{cache:?}");
            let before = kept(&cache);
            let two_rows = Cpu::default().tensor([[1], [2]]);
            assert!(model.try_decode(two_rows, &mut cache).is_err());
            let too_many = Cpu::default().tensor([[1, 2, 3, 4]]);
            assert!(matches!(
                model.try_decode(too_many, &mut cache),
                Err(Error::CacheFull { positions: 6, capacity: 9, asked: 4 })
            ));
            assert_eq!(kept(&cache), before);
            cache.truncate(0).unwrap();
            assert_eq!(cache.positions(), 0);
            let again = logits(&model, &mut cache, &[1, 2, 3, 4, 5, 6]);
            for (a, b) in again[4 * 11..].iter().zip(&at_four) {
                assert!((a - b).abs() < 1e-5, "{a}, not {b}");
            }
        });
    }

    let mut mixed = LlamaCache::new(9);
    let mut plain = LlamaCache::new(9);
    for (nth, id) in [1, 2, 3, 4, 5, 6].into_iter().enumerate() {
        let want = logits(&model, &mut plain, &[id]);
        let got = match nth % 3 {
            2 => logits(&model, &mut mixed, &[id]),
            _ => composed(|| logits(&model, &mut mixed, &[id])),
        };
        for (a, b) in got.iter().zip(&want) {
            assert!((a - b).abs() < 1e-5, "{a}, not {b}, at {nth}");
        }
    }
}

/// A call that fails before its cache has taken the tokens in, and one that fails after that.
#[test]
fn a_failure_leaves_the_cache_as_it_was() {
    /// Refuses the fifth time that it is asked: each call asks for queries and for keys.
    struct Fifth(std::cell::Cell<usize>);
    impl PositionEncoding<4, f32, Cpu> for Fifth {
        fn on_heads<B: Dim, S: Dim, N: Dim, T: Tape<f32, Cpu>>(
            &self,
            heads: Tensor<(B, S, N, Const<4>), f32, Cpu, T>,
            _: &Positions,
        ) -> Result<Tensor<(B, S, N, Const<4>), f32, Cpu, T>, Error> {
            self.0.set(self.0.get() + 1);
            match self.0.get() {
                5 => Err(Error::FewerKeys { keys: 0, queries: 1 }),
                _ => Ok(heads),
            }
        }
    }
    let fifth = Fifth(std::cell::Cell::new(0));
    let attention =
        GroupedQueryAttention::<12, 3, 1, 4, f32, Cpu, _>::new(&Cpu::default(), 1, 0.5, fifth)
            .unwrap();
    let x = |seed| draw(seed, (1, 2, Const::<12>));
    let mut cache = KvCache::new(9);
    attention.try_decode(x(1), &mut cache, &[]).unwrap();
    let kept = cache.kept().unwrap().unwrap();
    attention.try_decode(x(2), &mut cache, &[]).unwrap();
    cache.truncate(2).unwrap();
    // Padding for another number of rows.
    attention.try_decode(x(2), &mut cache, &[1, 2, 3]).unwrap_err();
    assert_eq!(cache.positions(), 2);
    attention.try_decode(x(2), &mut cache, &[]).unwrap_err();
    let now = cache.kept().unwrap().unwrap();
    assert_eq!((now.0.as_vec(), now.1.as_vec()), (kept.0.as_vec(), kept.1.as_vec()));
}

/// On any number of threads a step of training has the same bits.
#[test]
fn a_model_has_the_same_bits_on_any_number_of_threads() {
    let config = LlamaConfig { init_std: 0.5, ..Default::default() };
    let model = Llama::new(&Cpu::default(), config).unwrap();
    let ids = Cpu::default().tensor_from_vec((0..140).map(|i| i * 7 % 11).collect(), (2, 70));
    let step = || {
        in_threads(|| {
            let loss = cross_entropy(model.forward(ids.leaky_trace()), &ids).unwrap();
            let value = loss.array();
            let grads = loss.backward();
            let weight = &model.layers.modules[0].self_attn.k_proj.weight;
            let table = &model.embed_tokens.weight;
            (value, grads.get(weight).as_vec(), grads.get(table).as_vec())
        })
    };
    let one = crate::fused::on_threads(1, step);
    for threads in [2, 3, 8] {
        assert_eq!(crate::fused::on_threads(threads, step), one, "{threads} threads");
    }
}

/// The types of published sizes: how many weights each has, and which checkpoints fit.
#[test]
fn published_sizes() {
    use quadrivium::checkpoint::CheckpointConfig;
    use std::any::type_name;

    // The numbers of each type, in its order.
    fn sizes<M>() -> Vec<usize> {
        let name = type_name::<M>();
        let inside = &name[name.find('<').unwrap() + 1..];
        inside.split(", ").map_while(|word| word.parse().ok()).collect()
    }
    let weights = |sizes: &[usize], tied: bool| {
        let [v, h, nh, nkv, hd, f, layers] = sizes.try_into().unwrap();
        let block = 2 * h * nh * hd + 2 * h * nkv * hd + 3 * h * f + 2 * h;
        v * h * (2 - usize::from(tied)) + layers * block + h
    };
    assert_eq!(weights(&sizes::<SmolLm135M<f32, Cpu>>(), true), 134_515_008);
    assert_eq!(weights(&sizes::<TinyLlama1B<f32, Cpu>>(), false), 1_100_048_384);
    assert_eq!(weights(&sizes::<Llama32Of1B<f32, Cpu>>(), true), 1_235_814_400);

    let smol = CheckpointConfig::parse(
        r#"{"model_type": "llama", "vocab_size": 49152, "hidden_size": 576, "num_attention_heads": 9,
        "num_key_value_heads": 3, "intermediate_size": 1536, "num_hidden_layers": 30,
        "tie_word_embeddings": true, "rms_norm_eps": 1e-5}"#,
    )
    .unwrap();
    let of_checkpoint = [
        smol.vocab_size,
        smol.hidden_size,
        smol.num_attention_heads,
        smol.num_key_value_heads,
        smol.head_dim,
        smol.intermediate_size,
        smol.num_hidden_layers,
    ];
    assert_eq!(sizes::<SmolLm135M<f32, Cpu>>(), of_checkpoint);
}

/// The norm of all gradients together, of more elements than one piece of work has; and all are scaled by the same
/// factor.
#[test]
fn the_norm_of_gradients_is_that_of_the_formula() {
    use quadrivium::linear::Linear;
    use quadrivium::training::clip_gradients;

    type Matrix = Linear<Const<401>, Const<103>, f32, Cpu>;
    let mut matrix = Matrix::new(&Cpu::default(), Default::default()).unwrap();
    let x = draw(1, (1, 3, Const::<401>));
    let mut clipped = |bound: f64| {
        let traced = x.clone().traced(matrix.try_alloc_grads().unwrap());
        let mut grads = matrix.forward(traced).square().sum::<Rank0, _>().backward();
        let norm = clip_gradients(&mut matrix, &mut grads, bound).unwrap();
        (norm, grads.get(&matrix.weight).as_vec())
    };
    let (norm, whole) = clipped(1e9);
    let want = whole.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
    assert!((norm - want).abs() <= 1e-12 * want, "{norm}, not {want}");
    let (_, scaled) = clipped(norm / 3.0);
    for (scaled, whole) in scaled.iter().zip(&whole) {
        // One rounding of a third, and one of the product.
        assert!((scaled - whole / 3.0).abs() <= 2e-7 * whole.abs(), "{scaled}, not {whole} / 3");
    }
}
