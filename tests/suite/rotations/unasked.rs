//! xPos and axial RoPE: what the contract does not ask. Settings that are refused, copies, a scale in several coordinates, a part of
//! a head.

use super::axial::{axial, head_at, image};
use super::*;
use quadrivium::Error;

/// Past 35,000 positions a scale is no normal number; a center in the middle takes it to twice that.
#[test]
fn xpos_that_would_overflow_is_refused() {
    let build = |config| XPos::<4, Dev>::new(&dev(), config).map(drop);
    let with =
        |max_position, center| build(XPosConfig { max_position, center, ..Default::default() });
    assert_eq!(with(35_000, 0), Ok(()));
    assert_eq!(with(70_000, 35_000), Ok(()));
    for (max_position, center) in [(36_000, 0), (75_000, 35_000), (75_000, 40_000), (10, 1 << 60)] {
        let error = with(max_position, center).unwrap_err();
        assert!(
            matches!(error, Error::Setting { name: "every position below max_position", .. }),
            "{error}"
        );
    }
    let last =
        XPos::<4, Dev>::new(&dev(), XPosConfig { max_position: 35_000, ..Default::default() });
    let tables = last.unwrap();
    for tables in [tables.query_tables(&dev()).unwrap(), tables.key_tables(&dev()).unwrap()] {
        assert!(tables.cos.as_vec().iter().chain(&tables.sin.as_vec()).all(|x| x.is_finite()));
    }
    let default = XPosConfig::default();
    for (config, name) in [
        (XPosConfig { gamma: 0.0, ..default }, "gamma"),
        (XPosConfig { scale_base: 0.0, ..default }, "scale_base"),
        (XPosConfig { scale_base: f64::NAN, ..default }, "scale_base"),
        (XPosConfig { base: 1.0, ..default }, "base"),
        (XPosConfig { max_position: 0, ..default }, "max_position"),
    ] {
        assert!(matches!(build(config).unwrap_err(), Error::Setting { name: n, .. } if n == name));
    }
}

#[test]
fn xpos_moves_and_refuses_as_the_others_do() {
    let xpos = xpos(Layout::Interleaved, 7);
    let copy: XPos<8, Dev> = ToDtype::<f32, Dev>::to_dtype::<f64>(&xpos);
    assert_eq!(copy.config(), xpos.config());
    let x: X<8> = tensor(&[0.5; 16], (1, 2, 1, Const));
    let same = |a: X<8>, b: X<8>| assert_same_bits(&a.as_vec(), &b.as_vec());
    same(copy.queries(x.clone(), 9).unwrap(), xpos.queries(x.clone(), 9).unwrap());
    same(copy.keys(x.clone(), 9).unwrap(), xpos.keys(x.clone(), 9).unwrap());
    let error = Error::PastCache { end: 3001, cached_len: 3000 };
    assert_eq!(xpos.queries(x.clone(), 2999).unwrap_err(), error);
    assert_eq!(xpos.keys(x, 2999).unwrap_err(), error);
    let text = "XPos(head_dim=8, base=10000, scale_base=512, gamma=0.4, max_position=3000, center=7, layout=interleaved)";
    assert_eq!(xpos.to_string(), text);
}

/// Where time, height and width are one number, Qwen2-VL's sections are RoPE in one dimension, bit for bit, with a scale
/// too. A direct sum is not: it has the fast frequencies three times.
#[test]
fn text_alone_is_one_dimension() {
    forall((values(32), 0..500usize, layouts()), |(x, start, layout)| {
        let yarn = Yarn { factor: 4.0, max_seq_len: 512, ..Yarn::default() };
        let frequencies = RotaryFrequencies::yarn(16, BASE, yarn).unwrap();
        let text = [[start; 3], [start + 1; 3]];
        let heads = || -> X<16> { tensor(&x, (1, 2, 1, Const)) };
        let mrope = axial::<3>(AxialPlanes::cut(&[2, 3, 3], &frequencies).unwrap(), layout);
        let config = ScaledRopeConfig { layout, ..ScaledRopeConfig::new(frequencies, 512) };
        let one = ScaledRope::<16, Dev>::new(&dev(), config).unwrap().forward((heads(), start));
        assert_same_bits(&mrope.forward((heads(), &text)).as_vec(), &one.as_vec());
        let moved = mrope.forward((heads(), &[[start + 1, start, start], [start + 1; 3]]));
        let sum = axial::<3>(AxialPlanes::direct_sum(&[2, 3, 3], BASE).unwrap(), layout);
        if x.iter().all(|x| *x != 0.0) {
            assert_ne!(moved.as_vec(), one.as_vec());
            assert_ne!(sum.forward((heads(), &text)).as_vec(), one.as_vec());
        }
    });
}

#[test]
fn axes_that_do_not_fit_are_refused() {
    let frequencies = RotaryFrequencies::plain(16, BASE).unwrap();
    let shape = Error::Shape { name: "frequencies", expected: vec![7], got: vec![8] };
    assert_eq!(AxialPlanes::cut(&[2, 2, 3], &frequencies), Err(shape));
    for sections in [vec![], vec![4, 0, 4], vec![usize::MAX, 2]] {
        assert!(matches!(AxialPlanes::direct_sum(&sections, BASE), Err(Error::Setting { .. })));
        assert!(matches!(AxialPlanes::cut(&sections, &frequencies), Err(Error::Setting { .. })));
    }
    assert!(matches!(AxialPlanes::direct_sum(&[4], 1.0), Err(Error::Setting { name: "base", .. })));
    let config = |planes| AxialRopeConfig { planes, layout: Layout::HalfSplit };
    let planes = AxialPlanes::direct_sum(&[4, 5], BASE).unwrap();
    let error = AxialRope::<16, 2, Dev>::new(config(planes)).map(drop).unwrap_err();
    assert_eq!(error, Error::RotaryDim { rotary_dim: 18, head_dim: 16 });
    let planes = AxialPlanes::cut(&[2, 3, 3], &frequencies).unwrap();
    let error = AxialRope::<16, 2, Dev>::new(config(planes)).map(drop).unwrap_err();
    assert!(matches!(error, Error::Setting { name: "every plane's coordinate", got: 2.0, .. }));

    let (rope, x) =
        (image(Layout::HalfSplit), || -> X<16> { tensor(&[1.0; 64], (2, 2, 1, Const)) });
    let error = rope.try_forward((x(), &[[0, 0]; 3])).unwrap_err();
    assert_eq!(
        error,
        Error::Shape { name: "coordinates", expected: vec![2, 2, 2], got: vec![3, 2] }
    );
    let error = rope.try_forward((x(), &[[0, 0], [1 << 54, 0]])).unwrap_err();
    assert!(matches!(error, Error::Setting { name: "every coordinate", .. }), "{error}");
    let empty: X<16> = tensor(&[], (0, 2, 1, Const));
    assert!(matches!(rope.try_forward((empty, &[[0, 0]; 2])), Err(Error::Empty { .. })));
}

/// Fewer planes leave the rest of a head as it is; and a copy has the same planes.
#[test]
fn axes_turn_a_part_of_a_head_and_move() {
    let rope = axial::<2>(AxialPlanes::direct_sum(&[2, 1], BASE).unwrap(), Layout::Interleaved);
    let x: Vec<f32> = (0..16).map(|i| (1.7 * i as f32).sin()).collect();
    let y = head_at(&rope, &x, [3, 5]);
    assert_same_bits(&y[6..], &x[6..]);
    assert!(y[..6].iter().zip(&x).all(|(y, x)| y != x));
    let copy: AxialRope<16, 2, Dev> = ToDtype::<f32, Dev>::to_dtype::<f64>(&rope);
    assert_eq!(copy.config(), rope.config());
    assert_same_bits(&head_at(&copy, &x, [3, 5]), &y);
    assert_eq!(
        rope.to_string(),
        "AxialRope(head_dim=16, planes=[2, 1], rotary_dim=6, layout=interleaved)"
    );
}
