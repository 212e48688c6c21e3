//! Bad input is refused with a typed error. Nothing panics on any input.

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

/// Mostly what fits, so that what does not fit is alone.
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

/// Whether `base * ratio^power` is finite, from its logarithm. `None` at the edge, where the
/// logarithm can't say; the edge has its own test.
fn slowed_is_finite(base: f64, ratio: f64, power: f64) -> Option<bool> {
    let digits = base.log10() + ratio.log10() * power;
    let edge = f64::MAX.log10();
    if (digits - edge).abs() < 1e-9 { None } else { Some(digits < edge) }
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
        if let Some(slowed) = slowed_is_finite(base, ratio, d / (d - 2.0)) {
            let fits = head && base > 1.0 && ratio >= 1.0 && slowed;
            assert_eq!(ntk_base(base, hd, ratio).is_ok(), fits);
            assert_eq!(rotary_frequencies(hd, base, ratio).is_ok(), fits);
        }
        let length = to.saturating_sub(from);
        if length <= 64 || length > MAX_TABLE_POSITIONS {
            let frequencies = vec![0.5; count];
            let tables = RotaryTables::new(&dev(), hd, &frequencies, from..to, Layout::HalfSplit);
            let fits = head && count == hd / 2 && (1..=MAX_TABLE_POSITIONS).contains(&length);
            let fits = fits && to as u64 <= 1 << 53;
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
        let finite_values = |n| init.values::<f32>(n).iter().all(|x| x.is_finite());
        let moments = finite(a) && finite(b) && b >= 0.0;
        let table = VocabEmbeddingConfig { init_mean: a, init_std: b, init_seed: 1 };
        let table = VocabEmbedding::<4, 2, f32, _>::new(&dev(), table);
        assert_eq!(table.is_ok(), moments && finite_values(8), "{:?}", table.err());
        let shard = ParallelVocabEmbeddingConfig {
            rank,
            init_mean: a,
            init_std: b,
            init_base_seed: 1u64.wrapping_sub(rank as u64), // seed 1
        };
        let shard = ParallelVocabEmbedding::<4, 2, 2, f32, _>::new(&dev(), shard);
        // A shard is half of the table's size, and only what it draws has to be finite.
        assert_eq!(shard.is_ok(), moments && finite_values(4) && rank < 2);
    });
}

#[test]
fn rope_accepts_exactly_what_fits() {
    let sizes = (prop_oneof![3 => 0..9usize, 1 => Just(usize::MAX)], 0..5usize);
    let call = (any_size(), size(), any::<bool>());
    forall((any_float(), sizes, call), |(base, (ratio, max_seq_len), (offset, s, dynamic))| {
        let config = NtkAwareRopeConfig { base, max_seq_len, ratio, dynamic, ..Default::default() };
        // d / (d - 2) = 2 for heads of 4.
        let Some(slowed) = slowed_is_finite(base, ratio as f64, 2.0) else { return };
        let fits = base > 1.0 && ratio > 0 && max_seq_len > 0 && slowed;
        let small = max_seq_len.checked_mul(ratio).is_some_and(|rows| rows <= MAX_TABLE_POSITIONS);
        let rope = NtkAwareRope::<4, _>::new(&dev(), config);
        assert_eq!(rope.is_ok(), fits && small, "{:?}", rope.err());
        let Ok(mut rope) = rope else { return };

        let x = || (zeros((1usize, s, 1usize, Const::<4>)), offset);
        let end = offset.checked_add(s);
        let result = rope.try_forward(x());
        // A call past the cache has its own k', which must fit, slow the base to a finite one, and
        // have positions that f64 can separate. The largest k' is one above the largest usize.
        let own_ratio = |end: usize| 2 * (end as u128).div_ceil(2 * max_seq_len as u128);
        let past_cache = |end: usize| {
            let own = usize::try_from(own_ratio(end)).is_ok() && end as u64 <= 1 << 53;
            slowed_is_finite(base, own_ratio(end) as f64, 2.0).map(|slowed| own && slowed)
        };
        let reachable = match end {
            None => Some(false),
            Some(end) if end <= max_seq_len * ratio => Some(true),
            Some(end) => past_cache(end),
        };
        let Some(reachable) = reachable else { return };
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

/// One number, seen as a tensor of any shape: it takes no memory, no matter what its shape says.
macro_rules! seen {
    ($axes:ty, $shape:expr) => {
        tensor(&[1.0f32], ()).broadcast_like::<_, $axes>(&$shape)
    };
}

/// More elements than memory has addresses, or than a `usize` counts, are an error. The functions
/// never begin.
#[test]
fn shapes_beyond_memory_are_refused() {
    let too_large = |refused: quadrivium::error::Result<()>| {
        assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
    };
    const G: usize = 1 << 32;
    for (b, s) in [(G, G), (G, 1 << 28), (usize::MAX, 1), (usize::MAX, usize::MAX)] {
        let weight = zeros((6usize,));
        let x = seen!(Axes3<0, 1, 2>, (b, s, 6usize));
        too_large(group_rms_norm(x.leaky_trace(), &weight, 3, 1e-5).map(drop));
        let norm = GroupRmsNorm::<6, 3, f32, Dev>::new(&dev(), Default::default()).unwrap();
        let x = seen!(Axes3<0, 1, 2>, (b, s, Const::<6>));
        too_large(norm.try_forward(x.clone()).map(drop));
        too_large(norm.try_forward_mixed(x).map(drop));

        let tokens = ids(&[0], ()).broadcast_like::<(usize, usize), Axes2<0, 1>>(&(b, s));
        let table = zeros((4usize, 2usize));
        too_large(vocab_embedding(tokens.clone(), &table).map(drop));
        too_large(vocab_shard_embedding(tokens, &table, 1, 2).map(drop));

        let tables = seen!(Axes2<0, 1>, (1usize, 4usize));
        let x = || seen!(Axes4<0, 1, 2, 3>, (b, 1usize, s, 4usize)).leaky_trace();
        too_large(apply_rotary_pos_emb(x(), &tables, &tables).map(drop));
        too_large(apply_rotary_pos_emb_interleaved(x(), &tables, &tables).map(drop));
        too_large(apply_rotary_pos_emb_complex(x(), &tables, &tables).map(drop));
        too_large(half_split_to_interleaved(x()).map(drop));
        too_large(interleaved_to_half_split(x()).map(drop));
        let mut rope = NtkAwareRope::<4, Dev>::new(&dev(), Default::default()).unwrap();
        let x = || seen!(Axes4<0, 1, 2, 3>, (b, 1usize, s, Const::<4>));
        too_large(rope.try_forward(x()).map(drop));
        too_large(rope.try_forward_mut(x()).map(drop));

        let init = Init::Uniform { low: 0.0, high: 1.0, seed: 0 };
        too_large(init.fill(&mut seen!(Axes3<0, 1, 2>, (b, s, 6usize))));
    }
    // One axis is enough.
    let (x, weight) =
        (seen!(Axes3<0, 1, 2>, (1usize, 1usize, usize::MAX)), seen!(Axis<0>, (usize::MAX,)));
    too_large(group_rms_norm(x, &weight, 1, 1e-5).map(drop));
    // The ids fit and the table fits, but not what is found. A GPU counts no such table either.
    let too_large = |refused: quadrivium::error::Result<()>| match refused {
        Err(Error::TableTooLarge { .. }) if cfg!(feature = "cuda") => {}
        _ => too_large(refused),
    };
    let (tokens, table) =
        (ids(&[0; 1 << 20], (1, 1 << 20)), seen!(Axes2<0, 1>, (1usize, 1usize << 45)));
    too_large(vocab_embedding(tokens.clone(), &table).map(drop));
    too_large(vocab_shard_embedding(tokens, &table, 0, 2).map(drop));
    // A table whose last row has no address.
    let table = seen!(Axes2<0, 1>, (G, G));
    too_large(vocab_embedding(ids(&[0], (1, 1)), &table).map(drop));
    too_large(vocab_shard_embedding(ids(&[0], (1, 1)), &table, 0, 2).map(drop));
}

/// Values that would give rows that are no rotation, or one row for several positions.
#[test]
fn tables_of_angles_that_mean_nothing_are_refused() {
    let new = |frequencies: &[f64], positions| {
        RotaryTables::new(&dev(), 4usize, frequencies, positions, Layout::HalfSplit)
    };
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX] {
        let error = new(&[1.0, bad], 2..4).unwrap_err();
        assert!(matches!(error, Error::Setting { name: "every frequency", .. }), "{error}");
    }
    assert!(new(&[1.0, 1e300], 2..4).is_ok());
    let end = 1 << 53;
    assert!(new(&[1.0, 0.5], end - 2..end).is_ok());
    for positions in [end - 2..end + 1, end..end + 2, usize::MAX - 2..usize::MAX] {
        let error = new(&[1.0, 0.5], positions).unwrap_err();
        assert!(matches!(error, Error::Setting { name: "every position", .. }), "{error}");
    }
    let config = NtkAwareRopeConfig { base: 2.0, max_seq_len: 1 << 20, ..Default::default() };
    let rope = NtkAwareRope::<4, _>::new(&dev(), config).unwrap();
    let x = || zeros((1usize, 2usize, 1usize, Const::<4>));
    assert!(rope.try_forward((x(), end - 2)).is_ok());
    let error = rope.try_forward((x(), end - 1)).unwrap_err();
    assert!(matches!(error, Error::Setting { name: "every position", .. }), "{error}");
}

/// Tables know their layout, and turn with it: the length of each pair stays.
#[test]
fn tables_turn_with_their_own_layout() {
    let x = tensor(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], (1, 1, 1, 8usize));
    let frequencies = rotary_frequencies(8, 10.0, 1.0).unwrap();
    for layout in [Layout::HalfSplit, Layout::Interleaved] {
        let tables = RotaryTables::new(&dev(), 8usize, &frequencies, 3..4, layout).unwrap();
        assert_eq!(tables.layout(), layout);
        let y = tables.rotate(x.clone()).unwrap();
        let want = match layout {
            Layout::HalfSplit => apply_rotary_pos_emb(x.clone(), &tables.cos, &tables.sin),
            Layout::Interleaved => {
                apply_rotary_pos_emb_interleaved(x.clone(), &tables.cos, &tables.sin)
            }
        };
        assert_same_bits(&y.as_vec(), &want.unwrap().as_vec());
        let squared: f64 = widen(&y.as_vec()).iter().map(|y| y * y).sum();
        assert!((squared - 204.0).abs() <= 1e-4, "{squared}");
    }
}

#[test]
fn an_empty_vocabulary_has_no_shards() {
    for (world_size, rank) in [(1, 0), (2, 0), (2, 1)] {
        let error = vocab_emb::shard_range(0, world_size, rank).unwrap_err();
        assert!(matches!(error, Error::Setting { name: "vocab_size", .. }), "{error}");
    }
}

/// What a message says of a world of no ranks is true, and no number has 300 digits.
#[test]
fn messages_of_the_edges() {
    let table = zeros((2usize, 2usize));
    for error in [
        vocab_emb::shard_range(8, 0, 0).unwrap_err(),
        vocab_shard_embedding(ids(&[0], (1, 1)), &table, 0, 0).unwrap_err(),
    ] {
        let said = error.to_string();
        assert!(said.starts_with("world size is 0, but there is at least 1 rank"), "{said}");
    }
    let config = NtkAwareRopeConfig { base: 1e300, ..Default::default() };
    let rope = NtkAwareRope::<4, Dev>::new(&dev(), config).unwrap();
    for (said, number) in [
        (ntk_base(-1e300, 4, 1.0).unwrap_err().to_string(), "-1e300"),
        (
            ntk_base(10.0, 4, f64::MIN_POSITIVE / 4.0).unwrap_err().to_string(),
            "5.562684646268003e-309",
        ),
        (ntk_base(0.25, 4, 1.0).unwrap_err().to_string(), "got 0.25"),
        (rope.to_string(), "base=1e300"),
    ] {
        assert!(said.contains(number) && said.len() < 200, "{said}");
    }
}
