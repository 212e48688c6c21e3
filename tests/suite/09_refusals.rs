//! Bad input is refused with a typed error. Nothing panics, whatever comes in.

use crate::support::*;
use proptest::prelude::*;
use quadrivium::functional::*;
use quadrivium::init::Init;
use quadrivium::pos_emb::*;
use quadrivium::tensor::*;
use quadrivium::*;

/// Sizes that tests rarely try.
fn size() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), Just(1), Just(2), Just(3), Just(4), Just(6), Just(7), Just(8)]
}

fn any_size() -> impl Strategy<Value = usize> {
    prop_oneof![3 => size(), 1 => Just(usize::MAX), 1 => any::<usize>()]
}

/// Mostly what fits, so that what does not fit stands alone.
fn mostly(fitting: usize) -> impl Strategy<Value = usize> {
    prop_oneof![3 => Just(fitting), 1 => size()]
}

fn any_float() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        -1.0f64..1.0,
        prop::sample::select(vec![0.0, -1.0, 1.0, 1e-5, 3e38, -3e38, 1e308, 1e-320]),
        prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY])
    ]
}

fn zeros<S: Shape>(shape: S) -> Tensor<S, f32, Dev> {
    let n = shape.num_elements();
    tensor(&vec![0.0; n], shape)
}

#[test]
fn the_norm_accepts_exactly_what_fits() {
    let eps = prop_oneof![2 => Just(1e-5), 1 => any_float()];
    let group_size = prop_oneof![2 => 1..4usize, 1 => any_size()];
    let sizes = (mostly(1), mostly(2), size(), group_size, eps)
        .prop_flat_map(|(b, s, h, gz, eps)| (Just((b, s, h, gz, eps)), mostly(h)));
    forall(sizes, |((b, s, h, group_size, eps), weight)| {
        let x = zeros((b, s, h));
        let result = group_rms_norm(x, &zeros((weight,)), group_size, eps);
        let held = eps as f32;
        let fits = b * s * h > 0
            && weight == h
            && group_size > 0
            && h % group_size == 0
            && held.is_finite()
            && (eps == 0.0 || held > 0.0);
        assert_eq!(result.is_ok(), fits, "{:?}", result.err());
    });
}

#[test]
fn embeddings_accept_exactly_what_fits() {
    let sizes = (mostly(1), mostly(2), size(), mostly(2), any_size(), any_size());
    let id = prop_oneof![20 => 0..4usize, 5 => 0..9usize, 1 => any::<usize>()];
    let tokens = proptest::collection::vec(id, 64);
    forall((sizes, tokens), |((b, s, n, e, rank, world_size), tokens)| {
        let tokens = &tokens[..b * s];
        let input = || ids(tokens, (b, s));
        let fits = |v: usize| b * s * n * e > 0 && tokens.iter().all(|&id| id < v);
        let result = vocab_embedding(input(), &zeros((n, e)));
        assert_eq!(result.is_ok(), fits(n), "{:?}", result.err());
        let result = vocab_shard_embedding(input(), &zeros((n, e)), rank, world_size);
        let v = n.saturating_mul(world_size);
        assert_eq!(result.is_ok(), rank < world_size && fits(v), "{:?}", result.err());
    });
}

#[test]
fn rotations_accept_exactly_what_fits() {
    let sizes = (mostly(1), mostly(2), mostly(1), size())
        .prop_flat_map(|(b, s, n, h)| (Just((b, s, n, h)), mostly(s), mostly(h), mostly(h)));
    forall(sizes, |((b, s, n, h), rows, cos, sin)| {
        let tables = (zeros((rows, cos)), zeros((rows, sin)));
        let x = || zeros((b, s, n, h));
        let head = b * s * n > 0 && h >= 4 && h % 2 == 0;
        let fits = head && rows == s && cos == h && sin == h;
        assert_eq!(apply_rotary_pos_emb(x(), &tables.0, &tables.1).is_ok(), fits);
        assert_eq!(apply_rotary_pos_emb_interleaved(x(), &tables.0, &tables.1).is_ok(), fits);
        assert_eq!(apply_rotary_pos_emb_complex(x(), &tables.0, &tables.1).is_ok(), fits);
        assert_eq!(half_split_to_interleaved(x()).is_ok(), head);
        assert_eq!(interleaved_to_half_split(x()).is_ok(), head);
    });
}

#[test]
fn frequencies_and_tables_accept_exactly_what_fits() {
    let positions = (any_size(), any_size());
    let base = prop_oneof![Just(10_000.0), any_float()];
    let ratio = prop_oneof![Just(2.0), any_float()];
    let input = (any_size(), base, ratio, size(), positions);
    forall(input, |(hd, base, ratio, count, (from, to))| {
        let head = (4..=65_536).contains(&hd) && hd % 2 == 0;
        let d = hd as f64;
        let digits = base.log10() + ratio.log10() * d / (d - 2.0);
        let fits = head && base > 1.0 && ratio >= 1.0 && digits < 308.25;
        assert_eq!(ntk_base(base, hd, ratio).is_ok(), fits);
        assert_eq!(rotary_frequencies(hd, base, ratio).is_ok(), fits);
        let length = to.saturating_sub(from);
        if length <= 64 || length > MAX_TABLE_POSITIONS {
            let frequencies = vec![0.5; count];
            let tables = RotaryTables::new(&dev(), hd, &frequencies, from..to, Layout::HalfSplit);
            let fits = head && count == hd / 2 && (1..=MAX_TABLE_POSITIONS).contains(&length);
            assert_eq!(tables.is_ok(), fits);
        }
    });
}

#[test]
fn configurations_are_accepted_exactly_when_they_make_sense() {
    forall((any_float(), any_float(), any_float(), any_size()), |(a, b, c, rank)| {
        let finite = |x: f64| (x as f32).is_finite();
        let range = finite(b) && finite(c) && b <= c && finite(c - b);
        assert_eq!(Init::Uniform { low: b, high: c, seed: 0 }.check().is_ok(), range);
        let norm = GroupRmsNormConfig { eps: a, init_range: (b, c), init_seed: 1 };
        let norm = GroupRmsNorm::<4, 2, f32, _>::new(&dev(), norm);
        let eps = finite(a) && (a == 0.0 || a as f32 > 0.0);
        assert_eq!(norm.is_ok(), eps && range);

        let init = Init::Normal { mean: a, std: b, seed: 1 };
        let finite_values = || init.values::<f32>(8).iter().all(|x| x.is_finite());
        let fits = finite(a) && finite(b) && b >= 0.0 && finite_values();
        let table = VocabEmbeddingConfig { init_mean: a, init_std: b, init_seed: 1 };
        let table = VocabEmbedding::<4, 2, f32, _>::new(&dev(), table);
        assert_eq!(table.is_ok(), fits, "{:?}", table.err());
        let shard = ParallelVocabEmbeddingConfig {
            rank,
            init_mean: a,
            init_std: b,
            init_base_seed: 1u64.wrapping_sub(rank as u64), // seed 1
        };
        let shard = ParallelVocabEmbedding::<4, 2, 2, f32, _>::new(&dev(), shard);
        assert_eq!(shard.is_ok(), fits && rank < 2);
    });
}

#[test]
fn rope_accepts_exactly_what_fits() {
    let sizes = (prop_oneof![3 => 0..9usize, 1 => Just(usize::MAX)], 0..5usize);
    let call = (any_size(), size(), any::<bool>());
    forall((any_float(), sizes, call), |(base, (ratio, max_seq_len), (offset, s, dynamic))| {
        let config = NtkAwareRopeConfig { base, max_seq_len, ratio, dynamic, ..Default::default() };
        // d / (d - 2) = 2 for heads of 4.
        let fits = base > 1.0 && ratio > 0 && max_seq_len > 0;
        let fits = fits && base.log10() + 2.0 * (ratio as f64).log10() < 308.25;
        let small = max_seq_len.checked_mul(ratio).is_some_and(|rows| rows <= MAX_TABLE_POSITIONS);
        let rope = NtkAwareRope::<4, _>::new(&dev(), config);
        assert_eq!(rope.is_ok(), fits && small, "{:?}", rope.err());
        let Ok(mut rope) = rope else { return };

        let x = || (zeros((1usize, s, 1usize, Const::<4>)), offset);
        let end = offset.checked_add(s);
        let result = rope.try_forward(x());
        // With max_seq_len 1 the largest k' is one above the largest usize.
        let ratio = |end: usize| 2 * (end as u128).div_ceil(2 * max_seq_len as u128);
        let reachable = end.is_some_and(|end| usize::try_from(ratio(end)).is_ok());
        assert_eq!(result.is_ok(), s > 0 && reachable, "{:?}", result.err());
        if end.is_none_or(|end| !(1000..=2 * MAX_TABLE_POSITIONS).contains(&end)) {
            let growable = end.is_some_and(|end| !dynamic || end <= 2 * MAX_TABLE_POSITIONS);
            let result = rope.try_forward_mut(x());
            assert_eq!(result.is_ok(), s > 0 && reachable && growable, "{:?}", result.err());
        }
    });
}

/// The edges of what fits, one by one.
#[test]
fn the_edges_of_heads_and_bases() {
    assert!(rotary_frequencies(65_536, 10_000.0, 1.0).is_ok());
    assert_eq!(
        rotary_frequencies(65_538, 10_000.0, 1.0).unwrap_err(),
        Error::HeadDim { head_dim: 65_538 }
    );
    assert!(ntk_base(1e300, 4, 1e3).is_ok());
    assert!(ntk_base(1e300, 4, 1e5).is_err(), "1e310 is no f64");
}

/// An empty or mismatched input is refused through the modules as through the functions.
#[test]
fn modules_refuse_empty_input() {
    let norm = GroupRmsNorm::<4, 2, f32, Dev>::new(&dev(), Default::default()).unwrap();
    let error = norm.try_forward(zeros((0usize, 3usize, Const::<4>))).unwrap_err();
    assert_eq!(error, Error::Empty { name: "x", shape: vec![0, 3, 4] });
    let rope = NtkAwareRope::<4, Dev>::new(&dev(), Default::default()).unwrap();
    let error = rope.try_forward(zeros((1usize, 0usize, 1usize, Const::<4>))).unwrap_err();
    assert_eq!(error, Error::Empty { name: "x", shape: vec![1, 0, 1, 4] });
}
