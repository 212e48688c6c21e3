//! A tensor may be a permuted or broadcast view of its memory. Every function that takes a tensor
//! gives the same values and gradients for the view as for a copy of it in plain order.
//!
//! dfdx's traps here: `copy_into` ignores a permutation, a reshape off the tape makes a tensor of
//! a new identity, and a gradient of a broadcast leaf is a sum.

use crate::support::*;
use quadrivium::functional::*;
use quadrivium::pos_emb::{RotaryTables, rotary_frequencies};
use quadrivium::tensor::*;
use quadrivium::weights::{load_weights, save_weights};
use quadrivium::*;

type Taped<S> = Tensor<S, f32, Dev, OwnedTape<f32, Dev>>;
type Plain<S> = Tensor<S, f32, Dev>;

/// `n` values, no two the same, positive and negative.
fn telling(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7 + 3) % 31) as f32 * 0.125 - 1.9 + i as f32 * 0.001).collect()
}

/// One tensor of values that lies in memory in another order, or several times in one place.
struct View<S: Shape> {
    name: &'static str,
    x: Taped<S>,
    /// For each element of `x`, the element of the leaf that it is.
    of_leaf: Vec<usize>,
    /// The gradient of the leaf, in its own order, once a tape has run backward.
    leaf_gradient: Box<dyn Fn(&Gradients<f32, Dev>) -> Vec<f32>>,
}

/// The view that `look` makes of a leaf, with the tape begun before it (`later` false) or at the
/// view itself, which is the leaf then.
fn view<L: Shape, S: Shape>(
    name: &'static str,
    leaf: L,
    look: impl Fn(Plain<L>) -> Plain<S>,
    taped: impl Fn(Taped<L>) -> Taped<S>,
) -> [View<S>; 2] {
    let n = leaf.num_elements();
    let numbers: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let of_leaf: Vec<usize> =
        look(tensor(&numbers, leaf)).as_vec().iter().map(|&i| i as usize).collect();
    let below = tensor(&telling(n), leaf);
    let top = look(below.clone());
    [
        View {
            name,
            x: taped(below.leaky_trace()),
            of_leaf: of_leaf.clone(),
            leaf_gradient: Box::new(move |grads| grads.get(&below).as_vec()),
        },
        View {
            name,
            x: top.leaky_trace(),
            of_leaf: of_leaf.clone(),
            leaf_gradient: Box::new(move |grads| {
                let mut gradient = vec![0.0; n];
                let seen = grads.get(&top).as_vec();
                of_leaf.iter().zip(seen).for_each(|(&i, dx)| gradient[i] = dx);
                gradient
            }),
        },
    ]
}

macro_rules! views {
    ($(($name:literal, $leaf:expr, |$x:ident| $look:expr)),+ $(,)?) => {
        [$(view($name, $leaf, |$x| $look, |$x| $look)),+].into_iter().flatten()
    };
}

type Heads = (usize, usize, usize, usize);
type Rows = (usize, usize, usize);
const HEADS: Heads = (2, 3, 5, 4);
const ROWS: Rows = (2, 3, 6);

/// `[b, s, nh, hd]` of [`HEADS`].
fn heads() -> impl Iterator<Item = View<Heads>> {
    let (b, s, n, h) = HEADS;
    views![
        ("in order", (b, s, n, h), |x| x),
        ("heads before rows", (b, n, s, h), |x| x.permute::<Heads, Axes4<0, 2, 1, 3>>()),
        ("elements first", (h, b, s, n), |x| x.permute::<Heads, Axes4<1, 2, 3, 0>>()),
        ("one batch row", (s, n, h), |x| x.broadcast_like::<_, Axis<0>>(&HEADS)),
        ("one element a head", (b, s, n), |x| x.broadcast_like::<_, Axis<3>>(&HEADS)),
        ("one row a head", (b, n, h), |x| x.broadcast_like::<_, Axis<1>>(&HEADS)),
    ]
}

/// `[b, s, h]` of [`ROWS`].
fn rows() -> impl Iterator<Item = View<Rows>> {
    let (b, s, h) = ROWS;
    views![
        ("in order", (b, s, h), |x| x),
        ("rows first", (s, b, h), |x| x.permute::<Rows, Axes3<1, 0, 2>>()),
        ("elements first", (h, b, s), |x| x.permute::<Rows, Axes3<1, 2, 0>>()),
        ("one row", (h,), |x| x.broadcast_like::<_, Axes2<0, 1>>(&ROWS)),
        ("one element a row", (b, s), |x| x.broadcast_like::<_, Axis<2>>(&ROWS)),
    ]
}

/// `y` and the gradient of `x`, for the view and for the same values in order.
fn same_as_in_order<S: Shape>(call: &str, view: View<S>, f: impl Fn(Taped<S>) -> Taped<S>) {
    let at = format!("{call}, {}", view.name);
    let shape = *view.x.shape();
    let dy: Vec<f32> = telling(shape.num_elements()).iter().map(|x| x * 1.5 + 0.3).collect();

    let plain = tensor(&view.x.as_vec(), shape);
    let y = f(plain.leaky_trace());
    let want = y.as_vec();
    let dx = backward(y, &dy).get(&plain).as_vec();
    assert!(dx.iter().any(|dx| *dx != 0.0), "{at}: the gradient says something");

    let y = f(view.x);
    let got = y.as_vec();
    assert!(got == want, "{at}: y is {got:?}, in order {want:?}");
    let got = (view.leaf_gradient)(&backward(y, &dy));
    let (mut want, mut size) = (vec![0.0; got.len()], vec![0.0; got.len()]);
    for (&i, dx) in view.of_leaf.iter().zip(dx) {
        want[i] += f64::from(dx);
        size[i] += f64::from(dx).abs();
    }
    // A sum of so many terms, in any order.
    let terms = view.of_leaf.len() / got.len();
    for (i, got) in got.iter().enumerate() {
        let (error, bound) = ((f64::from(*got) - want[i]).abs(), terms as f64 * U32 * size[i]);
        assert!(error <= bound, "{at}: gradient {i} is {got:e}, in order {:e}", want[i]);
    }
}

/// Cosines and sines for [`HEADS`], in order.
fn tables(layout: Layout) -> RotaryTables<usize, Dev> {
    let (_, s, _, h) = HEADS;
    let frequencies = rotary_frequencies(h, 50.0, 1.0).unwrap();
    RotaryTables::new(&dev(), h, &frequencies, 3..3 + s, layout).unwrap()
}

type OfHeads = (&'static str, Box<dyn Fn(Taped<Heads>) -> Taped<Heads>>);

/// Every function of heads, with tables in order and with tables that lie transposed.
fn of_heads() -> Vec<OfHeads> {
    let (half, pairs) = (tables(Layout::HalfSplit), tables(Layout::Interleaved));
    let (half_t, pairs_t) = (transposed(&half), transposed(&pairs));
    let (complex, complex_t) = (half.clone(), half_t.clone());
    let rope = NtkAwareRope::<4, Dev>::new(&dev(), Default::default()).unwrap();
    let mut list: Vec<OfHeads> = Vec::new();
    let mut add = |name, f| list.push((name, f));
    add("half-split", Box::new(move |x| apply_rotary_pos_emb(x, &half.cos, &half.sin).unwrap()));
    add(
        "half-split, tables transposed",
        Box::new(move |x| apply_rotary_pos_emb(x, &half_t.cos, &half_t.sin).unwrap()),
    );
    add(
        "interleaved",
        Box::new(move |x| apply_rotary_pos_emb_interleaved(x, &pairs.cos, &pairs.sin).unwrap()),
    );
    add(
        "interleaved, tables transposed",
        Box::new(move |x| apply_rotary_pos_emb_interleaved(x, &pairs_t.cos, &pairs_t.sin).unwrap()),
    );
    add(
        "complex",
        Box::new(move |x| apply_rotary_pos_emb_complex(x, &complex.cos, &complex.sin).unwrap()),
    );
    add(
        "complex, tables transposed",
        Box::new(move |x| apply_rotary_pos_emb_complex(x, &complex_t.cos, &complex_t.sin).unwrap()),
    );
    add("to interleaved", Box::new(|x| half_split_to_interleaved(x).unwrap()));
    add("to half-split", Box::new(|x| interleaved_to_half_split(x).unwrap()));
    add(
        "the module",
        Box::new(move |x| {
            let x = x.realize::<(usize, usize, usize, Const<4>)>();
            rope.try_forward((x, 3)).unwrap().realize()
        }),
    );
    list
}

/// The same tables, lying in memory as `[hd, s]`.
fn transposed(tables: &RotaryTables<usize, Dev>) -> RotaryTables<usize, Dev> {
    let turn = |table: &Plain<(usize, usize)>| {
        let (s, h) = *table.shape();
        let values = table.clone().permute::<(usize, usize), Axes2<1, 0>>().as_vec();
        let turned = tensor(&values, (h, s)).permute::<(usize, usize), Axes2<1, 0>>();
        assert_same_bits(&turned.as_vec(), &table.as_vec());
        turned
    };
    let mut turned = tables.clone();
    (turned.cos, turned.sin) = (turn(&tables.cos), turn(&tables.sin));
    turned
}

#[test]
fn rotations_of_views() {
    for (name, f) in of_heads() {
        heads().for_each(|view| same_as_in_order(name, view, &f));
    }
}

/// Transposed tables turn as the same tables in order do.
#[test]
fn tables_that_lie_transposed() {
    let calls = of_heads();
    let (b, s, n, h) = HEADS;
    let x = tensor(&telling(b * s * n * h), HEADS);
    for pair in calls.chunks(2).take(3) {
        let [in_order, turned] = [&pair[0], &pair[1]].map(|(_, f)| f(x.leaky_trace()).as_vec());
        assert_same_bits(&turned, &in_order);
    }
}

fn norm_of(weight: Plain<(usize,)>) -> impl Fn(Taped<Rows>) -> Taped<Rows> {
    move |x| group_rms_norm(x, &weight, 3, 1e-5).unwrap()
}

#[test]
fn norms_of_views() {
    let norm = GroupRmsNorm::<6, 3, f32, Dev>::new(&dev(), Default::default()).unwrap();
    let module = |x: Taped<Rows>| {
        let x = x.realize::<(usize, usize, Const<6>)>();
        norm.try_forward(x).unwrap().realize()
    };
    let gamma = tensor(&telling(6), (6usize,));
    let one_gamma = tensor(&[0.7], ()).broadcast_like::<(usize,), Axis<0>>(&(6,));
    for view in rows() {
        same_as_in_order("the norm", view, norm_of(gamma.clone()));
    }
    for view in rows() {
        same_as_in_order("the norm with one gamma", view, norm_of(one_gamma.clone()));
    }
    rows().for_each(|view| same_as_in_order("the module", view, module));
    for view in rows() {
        let x = view.x.split_tape().0.realize::<(usize, usize, Const<6>)>();
        let plain = tensor(&x.as_vec(), *x.shape());
        let [got, want] = [x, plain].map(|x| norm.try_forward_mixed(x).unwrap().as_vec());
        assert_same_bits(&got, &want);
    }
}

/// The gradient of a weight that is one number for all elements is the sum over them.
#[test]
fn a_broadcast_weight_of_the_norm_gets_the_sum() {
    let x = tensor(&telling(36), ROWS);
    let plain = tensor(&[0.7f32; 6], (6usize,));
    let one = tensor(&[0.7], ()).broadcast_like::<(usize,), Axis<0>>(&(6,));
    let dy = telling(36);
    let gradient = |weight: &Plain<(usize,)>| {
        let y = group_rms_norm(x.leaky_trace(), weight, 3, 1e-5).unwrap();
        widen(&backward(y, &dy).get(weight).as_vec())
    };
    let parts = gradient(&plain);
    let (sum, size) = (parts.iter().sum::<f64>(), parts.iter().map(|x| x.abs()).sum::<f64>());
    assert_within(&gradient(&one), &[sum; 6], |_| 6.0 * U32 * size);
}

type Matrix = (usize, usize);

/// Views of `[b, s]` ids: the values and how they lie.
fn id_views() -> Vec<(&'static str, Tensor<Matrix, usize, Dev>)> {
    vec![
        ("in order", ids(&[5, 0, 3, 3, 1, 2], (2, 3))),
        ("transposed", ids(&[5, 0, 3, 3, 1, 2], (3, 2)).permute::<Matrix, Axes2<1, 0>>()),
        ("one row", ids(&[5, 0, 3], (3usize,)).broadcast_like::<_, Axis<0>>(&(2, 3))),
        ("one id a row", ids(&[5, 2], (2usize,)).broadcast_like::<_, Axis<1>>(&(2, 3))),
    ]
}

/// Views of a `[6, 4]` table.
fn table_views() -> Vec<(&'static str, Plain<Matrix>)> {
    vec![
        ("in order", tensor(&telling(24), (6, 4))),
        ("transposed", tensor(&telling(24), (4, 6)).permute::<Matrix, Axes2<1, 0>>()),
        ("one row", tensor(&telling(4), (4usize,)).broadcast_like::<_, Axis<0>>(&(6, 4))),
        ("one value a row", tensor(&telling(6), (6usize,)).broadcast_like::<_, Axis<1>>(&(6, 4))),
    ]
}

/// Where each element of a view lies: elements of one place share a gradient.
fn places(name: &str, (rows, columns): Matrix) -> Vec<usize> {
    let all = (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j)));
    let place = |(i, j)| match name {
        "one row" => j,
        "one value a row" => i,
        _ => i * columns + j,
    };
    all.map(place).collect()
}

/// Whole tables, shards of them, and the modules with such a table as their weight.
#[test]
fn lookups_of_views() {
    type Found = Taped<(usize, usize, usize)>;
    type Call = (&'static str, fn(Tensor<Matrix, usize, Dev>, &Plain<Matrix>) -> Found);
    fn trace(ids: Tensor<Matrix, usize, Dev>) -> Tensor<Matrix, usize, Dev, OwnedTape<f32, Dev>> {
        Trace::<f32, Dev>::leaky_trace(&ids)
    }
    let calls: [Call; 4] = [
        ("the lookup", |ids, table| vocab_embedding(trace(ids), table).unwrap()),
        ("a shard", |ids, table| vocab_shard_embedding(trace(ids), table, 0, 2).unwrap()),
        ("the module", |ids, table| {
            let mut module = VocabEmbedding::<6, 4, f32, Dev>::new(&dev(), Default::default());
            module.as_mut().unwrap().weight = table.clone().realize();
            module.unwrap().try_forward(trace(ids)).unwrap().realize()
        }),
        ("the shard's module", |ids, table| {
            let config = ParallelVocabEmbeddingConfig::default();
            let mut shard = ParallelVocabEmbedding::<12, 4, 2, f32, Dev>::new(&dev(), config);
            shard.as_mut().unwrap().weight = table.clone().realize();
            shard.unwrap().try_forward(trace(ids)).unwrap().realize()
        }),
    ];
    let dy = telling(24);
    for (call, look_up) in calls {
        for (of_ids, tokens) in id_views() {
            for (of_table, table) in table_views() {
                let at = format!("{call}, ids {of_ids}, table {of_table}");
                let plain = tensor(&table.as_vec(), (6usize, 4usize));
                let y = look_up(ids(&tokens.as_vec(), (2, 3)), &plain);
                let want = y.as_vec();
                let parts = backward(y, &dy).get(&plain).as_vec();

                let y = look_up(tokens.clone(), &table);
                assert!(y.as_vec() == want, "{at}: {:?}, in order {want:?}", y.as_vec());
                let got = backward(y, &dy).get(&table).as_vec();
                let place = places(of_table, (6, 4));
                for (i, got) in got.iter().enumerate() {
                    let mine = || (0..24).filter(|&j| place[j] == place[i]);
                    let want: f64 = mine().map(|j| f64::from(parts[j])).sum();
                    let bound: f64 = mine().map(|j| f64::from(parts[j]).abs()).sum();
                    let error = (f64::from(*got) - want).abs();
                    assert!(error <= 30.0 * U32 * bound, "{at}: gradient {i} is {got}, not {want}");
                }
            }
        }
    }
}

/// An input that is used a second time keeps that part of its gradient.
#[test]
fn an_input_that_is_used_elsewhere_too() {
    fn twice<S: Shape>(call: &str, shape: S, f: impl Fn(Taped<S>) -> Taped<S>) {
        let n = shape.num_elements();
        let x = tensor(&telling(n), shape);
        let dy = telling(n);
        let alone = backward(f(x.leaky_trace()), &dy).get(&x).as_vec();
        for first in [true, false] {
            let traced = x.leaky_trace();
            let again = traced.with_empty_tape();
            let y = match first {
                true => f(traced) + again.abs(),
                false => again.abs() + f(traced),
            };
            let got = widen(&backward(y, &dy).get(&x).as_vec());
            let other: Vec<f32> = x.as_vec().iter().zip(&dy).map(|(x, d)| x.signum() * d).collect();
            let want: Vec<f64> =
                alone.iter().zip(&other).map(|(a, b)| f64::from(*a) + f64::from(*b)).collect();
            for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                let bound = U32 * want.abs();
                assert!((got - want).abs() <= bound, "{call}: gradient {i} is {got}, not {want}");
            }
        }
    }
    for (name, f) in of_heads() {
        twice(name, HEADS, f);
    }
    twice("the norm", ROWS, norm_of(tensor(&telling(6), (6usize,))));
}

/// A weight that lies transposed is saved, loaded, reset and trained like one in order.
#[test]
fn weights_that_lie_transposed() {
    let folder = tempfile::tempdir().unwrap();
    let model = |turned: bool, seed: u64| {
        let config = VocabEmbeddingConfig { init_seed: seed, ..Default::default() };
        let mut embedding = VocabEmbedding::<6, 4, f32, Dev>::new(&dev(), config).unwrap();
        if turned {
            let values = embedding.weight.clone().permute::<Rank2<4, 6>, _>().as_vec();
            embedding.weight = tensor(&values, (Const::<4>, Const::<6>)).permute();
        }
        embedding
    };
    let bytes = |turned| {
        let path = folder.path().join("model.safetensors");
        save_weights::<f32, Dev, _>(&model(turned, 1), &path).unwrap();
        std::fs::read(path).unwrap()
    };
    assert_eq!(bytes(true), bytes(false));
    let mut loaded = model(true, 2);
    load_weights::<f32, Dev, _>(&mut loaded, folder.path().join("model.safetensors")).unwrap();
    assert_same_bits(&loaded.weight.as_vec(), &model(false, 1).weight.as_vec());

    let mut reset = model(true, 3);
    reset.reset_parameters().unwrap();
    assert_same_bits(&reset.weight.as_vec(), &model(false, 3).weight.as_vec());
    let mut reset = model(true, 3);
    ResetParams::<f32, Dev>::reset_params(&mut reset);
    assert_same_bits(&reset.weight.as_vec(), &model(false, 3).weight.as_vec());

    let held = VocabEmbedding::with_weight(model(true, 4).weight, Default::default()).unwrap();
    assert_same_bits(&held.weight.as_vec(), &model(false, 4).weight.as_vec());

    let trained = |turned| {
        let mut model = model(turned, 5);
        let tokens = Trace::<f32, Dev>::leaky_trace(&ids(&[5, 0, 5, 2], (2, 2)));
        let y = model.try_forward(tokens).unwrap();
        let grads = backward(y, &telling(16));
        let config = optim::SgdConfig { lr: 0.5, ..Default::default() };
        let mut sgd: optim::Sgd<_, f32, Dev> = optim::Sgd::new(&model, config);
        optim::Optimizer::update(&mut sgd, &mut model, &grads).unwrap();
        model.weight.as_vec()
    };
    assert_same_bits(&trained(true), &trained(false));
}
