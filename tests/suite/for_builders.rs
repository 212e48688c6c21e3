//! What your own model asks of the components: norms of other ranks, adjacent pairs, the rows
//! of a table, and a refusal past the cache.

use crate::support::*;
use proptest::prelude::*;
use quadrivium::functional::{Layout, apply_rotary_pos_emb_interleaved, half_split_to_interleaved};
use quadrivium::pos_emb::{PastCache, RotaryTables, rotary_frequencies};
use quadrivium::tensor::*;
use quadrivium::{Error, GroupRmsNorm, NtkAwareRope, NtkAwareRopeConfig};

type Norm = GroupRmsNorm<6, 3, f32, Dev>;
type Rope = NtkAwareRope<8, Dev>;

fn norm() -> Norm {
    Norm::new(&dev(), Default::default()).unwrap()
}

/// `[2, 3, 4, hd]` of one head size, all values different.
fn wave<const HD: usize>() -> Tensor<(usize, usize, usize, Const<HD>), f32, Dev> {
    let wave: Vec<f32> = (0..24 * HD).map(|i| (1.7 * i as f32).sin()).collect();
    tensor(&wave, (2, 3, 4, Const))
}

// --- Norms of rank 2 and 4 -------------------------------------------------------------------

/// A norm knows tokens and not how they are laid out: every rank gives the same bits, forward and
/// backward.
#[test]
fn a_norm_takes_ranks_two_and_four() {
    let rows = [[0.5f32, -1.0, 2.0, 0.1, 0.2, 0.3], [4.0, 1.0, -2.0, 0.0, 0.0, 1e-3]];
    let dy: Vec<f32> = (0..12).map(|i| (0.3 * i as f32).cos()).collect();
    let norm = norm();

    let three: Tensor<(usize, usize, Const<6>), _, _> = tensor(&rows.concat(), (1, 2, Const));
    let y = norm.forward(three.leaky_trace());
    let (want, grads) = (y.as_vec(), backward(y, &dy));
    let (dx, dgamma) = (grads.get(&three).as_vec(), grads.get(&norm.weight).as_vec());

    macro_rules! same {
        ($forward:ident, $x:expr) => {
            let x = $x;
            let y = norm.$forward(x.leaky_trace()).unwrap();
            assert_eq!(y.shape().concrete(), x.shape().concrete());
            assert_same_bits(&y.as_vec(), &want);
            let grads = backward(y, &dy);
            assert_same_sums(&grads.get(&x).as_vec(), &dx);
            assert_same_bits(&grads.get(&norm.weight).as_vec(), &dgamma);
        };
    }
    same!(try_forward_rows, tensor(&rows.concat(), (2usize, Const::<6>)));
    same!(try_forward_rows, tensor(&rows.concat(), (Const::<2>, Const::<6>)));
    same!(try_forward_heads, tensor(&rows.concat(), (2usize, 1usize, 1usize, Const::<6>)));
    same!(try_forward_heads, tensor(&rows.concat(), (Const::<1>, 1usize, Const::<2>, Const::<6>)));
}

/// A permuted tensor keeps its order in memory. It must be read in the order of its shape, and its
/// gradient must come back to the tensor that was permuted.
#[test]
fn a_norm_reads_a_permuted_tensor_in_the_order_of_its_shape() {
    let norm = norm();
    let x = wave::<6>(); //                                          [b, s, nh, hd]
    let dy: Vec<f32> = (0..x.shape().num_elements()).map(|i| (0.3 * i as f32).cos()).collect();

    // The norm of [b, s, nh, hd], then permuted.
    let y = norm.try_forward_heads(x.leaky_trace()).unwrap().permute::<_, Axes4<0, 2, 1, 3>>();
    let (want, grads) = (y.as_vec(), backward(y, &dy));
    let (dx, dgamma) = (grads.get(&x).as_vec(), grads.get(&norm.weight).as_vec());

    // The norm of the permuted tensor, [b, nh, s, hd].
    let y = norm.try_forward_heads(x.leaky_trace().permute::<_, Axes4<0, 2, 1, 3>>()).unwrap();
    assert_same_bits(&y.as_vec(), &want);
    let grads = backward(y, &dy);
    assert_same_sums(&grads.get(&x).as_vec(), &dx);
    // Its rows come in another order, so gamma's gradient adds up 24 terms in another order.
    let (got, want) = (widen(&grads.get(&norm.weight).as_vec()), widen(&dgamma));
    assert!(want.iter().all(|g| g.abs() > 1e-2), "{want:?}");
    // |dy| <= 1 and |xhat| <= sqrt(gz); each of two sums of 24 terms is off by 24 u of their size.
    assert_within(&got, &want, |_| 2.0 * 24.0 * U32 * 24.0 * 3f64.sqrt());

    // Rank 2, transposed: [h, rows] in memory, [rows, h] in shape. The leaf itself is permuted.
    let lying: Tensor<(Const<6>, usize), _, _> = tensor(&wave::<6>().as_vec()[..12], (Const, 2));
    let rows = lying.clone().permute::<(usize, Const<6>), Axes2<1, 0>>();
    let copied: Tensor<(usize, Const<6>), f32, Dev> = tensor(&rows.as_vec(), (2, Const));
    let y = norm.try_forward_rows(copied.leaky_trace()).unwrap();
    let (want, grads) = (y.as_vec(), backward(y, &dy[..12]));
    let dx = grads.get(&copied).permute::<(Const<6>, usize), Axes2<1, 0>>().as_vec();
    let y = norm
        .try_forward_rows(lying.leaky_trace().permute::<(usize, Const<6>), Axes2<1, 0>>())
        .unwrap();
    assert_same_bits(&y.as_vec(), &want);
    assert_same_sums(&backward(y, &dy[..12]).get(&lying).as_vec(), &dx);
}

/// A broadcast tensor has fewer numbers in memory than in its shape; each gets the sum.
#[test]
fn a_norm_reads_a_broadcast_tensor() {
    let norm = norm();
    let row: Tensor<Rank1<6>, f32, Dev> = dev().tensor([0.5, -1.0, 2.0, 0.1, 0.2, 0.3]);
    let shape = (2usize, 1usize, 3usize, Const::<6>);
    let once = norm
        .try_forward_rows(row.leaky_trace().broadcast_like::<_, Axis<0>>(&(1usize, Const::<6>)))
        .unwrap();
    let one = once.as_vec();
    let dx = backward(once, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).get(&row).as_vec();

    let y = norm
        .try_forward_heads(row.leaky_trace().broadcast_like::<_, Axes3<0, 1, 2>>(&shape))
        .unwrap();
    assert_same_bits(&y.as_vec(), &one.repeat(6));
    let grads = backward(y, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0].repeat(6));
    let (got, want) = (widen(&grads.get(&row).as_vec()), widen(&dx));
    // Six equal terms: five roundings, each of at most six times the term.
    assert_within(&got, &want.iter().map(|g| 6.0 * g).collect::<Vec<_>>(), |i| {
        5.0 * U32 * 6.0 * want[i].abs()
    });
}

#[test]
fn a_norm_refuses_empty_tensors_of_every_rank() {
    let refused = |error: Error| {
        assert!(
            matches!(&error, Error::Empty { name: "x", shape } if shape.contains(&0)),
            "{error}"
        )
    };
    let two: Tensor<(usize, Const<6>), f32, Dev> = tensor(&[], (0, Const));
    refused(norm().try_forward_rows(two).unwrap_err());
    let four: Tensor<(usize, usize, usize, Const<6>), f32, Dev> = tensor(&[], (2, 0, 3, Const));
    refused(norm().try_forward_heads(four).unwrap_err());
}

// --- Adjacent pairs --------------------------------------------------------------------------

fn adjacent() -> Rope {
    let config = NtkAwareRopeConfig {
        max_seq_len: 6,
        ratio: 2,
        layout: Layout::Interleaved,
        ..Default::default()
    };
    Rope::new(&dev(), config).unwrap()
}

/// In the cache and past it, the module rotates adjacent pairs by tables of adjacent pairs.
#[test]
fn a_module_of_adjacent_pairs_rotates_adjacent_pairs() {
    for (offset, ratio) in [(0, 2.0), (9, 2.0), (10, 4.0), (100, 18.0)] {
        let x = wave::<8>(); //                                      [b, s, nh, hd]
        let frequencies = rotary_frequencies(8, 10_000.0, ratio).unwrap();
        let positions = offset..offset + 3;
        let tables =
            RotaryTables::new(&dev(), Const, &frequencies, positions, Layout::Interleaved).unwrap();
        let want = apply_rotary_pos_emb_interleaved(x.clone(), &tables.cos, &tables.sin).unwrap();
        assert_same_bits(&adjacent().forward((x, offset)).as_vec(), &want.as_vec());
    }
}

/// The layouts are two orders of one rotation.
#[test]
fn a_module_of_adjacent_pairs_is_the_other_one_reordered() {
    let config = NtkAwareRopeConfig { layout: Layout::HalfSplit, ..*adjacent().config() };
    let halves = Rope::new(&dev(), config).unwrap();
    assert_ne!(
        halves.forward((wave(), 5)).as_vec(),
        adjacent().forward((wave(), 5)).as_vec(),
        "the layout has no effect"
    );
    let want = half_split_to_interleaved(halves.forward((wave(), 5))).unwrap();
    let got = adjacent().forward((half_split_to_interleaved(wave()).unwrap(), 5));
    assert_same_bits(&got.as_vec(), &want.as_vec());
}

/// The layout goes with the module where dfdx copies it, and where it grows.
#[test]
fn the_layout_travels_with_the_module() {
    let copy: Rope = ToDtype::<f32, Dev>::to_dtype::<f64>(&adjacent());
    assert_eq!(copy.config(), adjacent().config());
    assert_same_bits(&copy.forward(wave()).as_vec(), &adjacent().forward(wave()).as_vec());

    let config = NtkAwareRopeConfig { dynamic: true, ..*adjacent().config() };
    let mut growing = Rope::new(&dev(), config).unwrap();
    growing.forward_mut((wave(), 20));
    assert_eq!((growing.ratio(), growing.config().layout), (4, Layout::Interleaved));
    assert_eq!(growing.to_string().matches("layout=interleaved").count(), 1, "{growing}");
}

// --- Rows of a table -------------------------------------------------------------------------

/// The rows are those that a call at these positions uses, in the cache and past it.
#[test]
fn rows_are_what_a_call_uses() {
    forall((0usize..40, 1usize..4, any::<bool>()), |(start, length, adjacent_pairs)| {
        let layout = if adjacent_pairs { Layout::Interleaved } else { Layout::HalfSplit };
        let config = NtkAwareRopeConfig { layout, ..*adjacent().config() };
        let rope = Rope::new(&dev(), config).unwrap();
        let rows = rope.rows(&dev(), start..start + length).unwrap();
        assert_eq!(rows.cos.shape().concrete(), [length, 8]);

        // cos + quarter turn of the first basis vector's plane: x = e_0 is turned to (cos, sin).
        let partner = if adjacent_pairs { 1 } else { 4 };
        let mut one = vec![0.0f32; length * 8];
        (0..length).for_each(|t| one[t * 8] = 1.0);
        let x: Tensor<(usize, usize, usize, Const<8>), f32, Dev> =
            tensor(&one, (1, length, 1, Const));
        let y = rope.forward((x, start)).as_vec();
        let (cos, sin) = (rows.cos.as_vec(), rows.sin.as_vec());
        for t in 0..length {
            assert_eq!((y[t * 8], y[t * 8 + partner]), (cos[t * 8], sin[t * 8 + partner]));
        }
    });
}

#[test]
fn rows_that_are_not_there_are_refused() {
    let rope = adjacent();
    let tables = rope.tables(&dev()).unwrap(); //                     [12, hd]
    assert_eq!(tables.rows(9..12).unwrap().cos.shape().concrete(), [3, 8]);
    assert_same_bits(&tables.rows(9..12).unwrap().sin.as_vec(), &tables.sin.as_vec()[72..]);
    let error = tables.rows(9..13).unwrap_err();
    assert_eq!(
        error.to_string(),
        "rows 9..13 are not in a table of 12 rows: a range has at least one row and ends at 12 or \
         before; choose one that does, or build a longer table"
    );
    #[allow(clippy::reversed_empty_ranges)]
    for range in [3..3, 4..3, usize::MAX..usize::MAX, 0..usize::MAX] {
        assert!(matches!(tables.rows(range), Err(Error::Rows { rows: 12, .. })));
    }
    assert!(matches!(rope.rows(&dev(), 3..3), Err(Error::Empty { name: "positions", .. })));

    // The two tables are public: they may be given other lengths.
    let mut unequal = tables.clone();
    unequal.sin = dev().zeros_like(&(3usize, Const));
    assert!(matches!(unequal.rows(0..6), Err(Error::Shape { name: "sin", .. })));
}

// --- A refusal past the cache ----------------------------------------------------------------

fn refusing() -> Rope {
    let config = NtkAwareRopeConfig {
        max_seq_len: 6,
        ratio: 2,
        past_cache: PastCache::Refuse,
        ..Default::default()
    };
    Rope::new(&dev(), config).unwrap()
}

/// 12 positions are kept. A call that ends there is as always; one further it is refused, mutably or
/// not, and nothing has changed.
#[test]
fn a_module_may_refuse_a_call_past_its_cache() {
    let mut rope = refusing();
    let other = NtkAwareRopeConfig { past_cache: PastCache::Rescale, ..*rope.config() };
    let other = Rope::new(&dev(), other).unwrap();
    assert_same_bits(&rope.forward((wave(), 9)).as_vec(), &other.forward((wave(), 9)).as_vec());

    let error = rope.try_forward((wave(), 10)).unwrap_err();
    assert_eq!(error, Error::PastCache { end: 13, cached_len: 12 });
    assert_eq!(
        error.to_string(),
        "the call ends at position 13, but the table has 12 positions; choose a longer table \
         (max_position_embeddings in a config.json, max_position, or max_seq_len or ratio), or PastCache::Rescale where \
         the module has it and no keys are kept"
    );
    assert_eq!(rope.try_forward_mut((wave(), 10)).unwrap_err(), error);
    assert_eq!(rope.rows(&dev(), 12..13).unwrap_err(), error);
    assert_eq!((rope.ratio(), rope.cached_len()), (2, 12));
    assert!(other.try_forward((wave(), 10)).is_ok());
}

/// To grow and to refuse is a contradiction.
#[test]
fn a_dynamic_module_can_not_refuse() {
    let config = NtkAwareRopeConfig { dynamic: true, ..*refusing().config() };
    let error = Rope::new(&dev(), config).unwrap_err();
    assert!(matches!(error, Error::Setting { name: "dynamic", got: 1.0, .. }), "{error}");
}

/// The default is what the module always did.
#[test]
fn the_defaults_are_halves_that_rescale() {
    let default = NtkAwareRopeConfig::default();
    assert_eq!((default.layout, default.past_cache), (Layout::HalfSplit, PastCache::Rescale));
    let rope = Rope::new(&dev(), default).unwrap();
    assert!(!rope.to_string().contains("layout"), "{rope}");
}
