//! NtkAwareRope.

use super::*;
use quadrivium::rope::{
    Layout, RotaryTables, apply_rotary_pos_emb_interleaved, rotary_frequencies,
};

/// Within 1e-6 max|x| of the float64 run at every position, and within `n 2^-23 max|x|` of the
/// float32 run, whose angles err that much.
fn rope<const HD: usize>(case: &Case) {
    let (b, s, n, offset) = (case.size("b"), case.size("s"), case.size("nh"), case.size("offset"));
    let config = NtkAwareRopeConfig {
        base: case.number("base"),
        max_seq_len: case.size("max_seq_len"),
        ratio: case.size("ratio"),
        dynamic: true,
        ..Default::default()
    };
    let mut rope = NtkAwareRope::<HD, _>::new(&dev(), config).unwrap();
    let x = tensor(&case.f32("x"), (b, s, n, Const::<HD>));
    let y = rope.forward_mut((x.leaky_trace(), offset));
    assert_eq!(rope.ratio(), case.size("k_used"), "{}", case.name);

    let max_x = largest(&widen(&x.as_vec()));
    let float32 = |i: usize| (offset + i / (n * HD) % s + 1) as f64 * 2.0 * U32 * max_x;
    let values = widen(&y.as_vec());
    assert_within(&values, &case.f64("y64"), |_| 1e-6 * max_x);
    assert_within(&values, &widen(&case.f32("y")), float32);
    let dy = case.f32("dy");
    let dx = widen(&backward(y, &dy).get(&x).as_vec());
    assert_within(&dx, &case.f64("dx64"), |_| 1e-6 * largest(&widen(&dy)));
    let max_dy = largest(&widen(&dy));
    assert_within(&dx, &widen(&case.f32("dx")), |i| 1e-5 + float32(i) / max_x * max_dy);

    // The tables themselves, and the adjacent-pair layout.
    let frequencies = rotary_frequencies(HD, config.base, rope.ratio() as f64).unwrap();
    let tables = |layout| {
        RotaryTables::new(&dev(), Const::<HD>, &frequencies, offset..offset + s, layout).unwrap()
    };
    let half = tables(Layout::HalfSplit);
    assert_within(&widen(&half.cos.as_vec()), &case.f64("cos64"), |_| 1e-7);
    assert_within(&widen(&half.sin.as_vec()), &case.f64("sin64"), |_| 1e-7);
    let pairs = tables(Layout::Interleaved);
    let y = apply_rotary_pos_emb_interleaved(x, &pairs.cos, &pairs.sin).unwrap();
    assert_within(&widen(&y.as_vec()), &case.f64("y64_interleaved"), |_| 1e-6 * max_x);
}

#[test]
fn ntk_aware_rope() {
    let goldens = Goldens::open("rope");
    let mut tested = 0;
    for case in goldens.cases("f32") {
        match case.size("hd") {
            4 => rope::<4>(&case),
            8 => rope::<8>(&case),
            64 => rope::<64>(&case),
            128 => rope::<128>(&case),
            other => panic!("{}: add {other} to this list", case.name),
        }
        tested += 1;
    }
    assert_eq!(tested, 7);
}
