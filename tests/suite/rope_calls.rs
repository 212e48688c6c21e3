//! NtkAwareRope as a machine: the cache, the offset, the long call and the dynamic switch.

use crate::support::*;
use proptest::prelude::*;
use quadrivium::functional::{Layout, apply_rotary_pos_emb};
use quadrivium::pos_emb::*;
use quadrivium::tensor::*;
use quadrivium::{Error, NtkAwareRope, NtkAwareRopeConfig};

type Rope = NtkAwareRope<8, Dev>;

/// Training length 6.
const CONFIG: NtkAwareRopeConfig = NtkAwareRopeConfig {
    base: 10_000.0,
    max_seq_len: 6,
    ratio: 4,
    dynamic: false,
    layout: Layout::HalfSplit,
    past_cache: PastCache::Rescale,
};

/// A module with ratio 4, whose cache holds 24 positions.
fn rope(dynamic: bool) -> Rope {
    Rope::new(&dev(), NtkAwareRopeConfig { dynamic, ..CONFIG }).unwrap()
}

fn input(length: usize) -> Tensor<(usize, usize, usize, Const<8>), f32, Dev> {
    let wave: Vec<f32> = (0..length * 8).map(|i| (1.7 * i as f32).sin()).collect();
    tensor(&wave, (1, length, 1, Const))
}

fn call(rope: &mut Rope, offset: usize, length: usize) -> Vec<f32> {
    rope.forward_mut((input(length), offset)).as_vec()
}

/// The rotation with this ratio, without a module: the meaning of "uses k".
fn with_ratio(ratio: usize, offset: usize, length: usize) -> Vec<f32> {
    let frequencies = rotary_frequencies(8, CONFIG.base, ratio as f64).unwrap();
    let positions = offset..offset + length;
    let tables = RotaryTables::new(&dev(), Const, &frequencies, positions, Layout::HalfSplit);
    let RotaryTables { cos, sin, .. } = tables.unwrap();
    apply_rotary_pos_emb(input(length), &cos, &sin).unwrap().as_vec()
}

fn cache_bits(rope: &Rope) -> Vec<u32> {
    let tables = rope.tables(&dev()).unwrap();
    [tables.cos.as_vec(), tables.sin.as_vec()].concat().iter().map(|x| x.to_bits()).collect()
}

/// `&self` can't replace anything: `forward` on a dynamic module gives the same output, once.
#[test]
fn a_shared_reference_never_grows() {
    let rope = rope(true);
    assert_same_bits(&rope.forward((input(30), 0)).as_vec(), &with_ratio(6, 0, 30));
    assert_eq!(rope.ratio(), 4);
}

/// Any sequence of calls: each uses the ratio that the rules give, and leaves the state they give.
#[test]
fn any_sequence_of_calls_follows_the_rules() {
    let calls = proptest::collection::vec((0..40usize, 1..20usize), 1..6);
    forall((calls, any::<bool>(), 1..6usize), |(calls, dynamic, first)| {
        let config = NtkAwareRopeConfig { dynamic, ratio: first, ..CONFIG };
        let mut rope = Rope::new(&dev(), config).unwrap();
        let mut ratio = first;
        for (offset, length) in calls {
            let end = offset + length;
            let used = if end <= 6 * ratio { ratio } else { 2 * end.div_ceil(12) };
            let y = call(&mut rope, offset, length);
            assert_same_bits(&y, &with_ratio(used, offset, length));
            if dynamic {
                ratio = used;
            }
            assert_eq!(rope.ratio(), ratio);
        }
    });
}

/// Row `t` of a call is a separate call at `offset + t`: decoding token by token gives the bits of
/// the whole, for every batch row.
#[test]
fn the_offset_is_a_position() {
    let rope = rope(false);
    let x: Tensor<(usize, usize, usize, Const<8>), f32, Dev> =
        dev().sample_normal_like(&(2, 10, 3, Const));
    for offset in [0, 1, 14] {
        let whole = rope.forward((x.clone(), offset)).as_vec();
        for t in 0..10 {
            let token = x.clone().slice((.., t..t + 1, .., ..));
            let alone = rope.forward((token, offset + t)).as_vec();
            for b in 0..2 {
                let at = (b * 10 + t) * 24;
                assert_same_bits(&alone[b * 24..][..24], &whole[at..at + 24]);
            }
        }
    }
    assert_same_bits(&rope.forward(x.clone()).as_vec(), &rope.forward((x, 0)).as_vec());
}

/// A call that fails changes nothing: here, growing would need too large a table.
#[test]
fn a_refused_call_changes_nothing() {
    let mut rope = rope(true);
    let before = cache_bits(&rope);
    let error = rope.try_forward_mut((input(1), MAX_TABLE_POSITIONS)).unwrap_err();
    assert!(matches!(error, Error::TooManyPositions { .. }), "{error}");
    let error = rope.try_forward_mut((input(2), usize::MAX)).unwrap_err();
    assert_eq!(error, Error::PositionOverflow { offset: usize::MAX, length: 2 });
    assert_eq!((rope.ratio(), cache_bits(&rope)), (4, before));
    // Without growing, the same position is no problem: it needs one row.
    rope.try_forward((input(1), MAX_TABLE_POSITIONS)).unwrap();
}
