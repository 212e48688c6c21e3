//! Positions that are added to tokens: what the contract does not ask. The modules, refusals by their names, saving, half
//! precision, rows that are kept.

use super::*;
use quadrivium::Error;
use quadrivium::weights::{load_weights, save_weights};

type Tokens<F> = Tensor<(usize, usize, Const<4>), F, Dev>;

fn tokens(b: usize, s: usize, k: f64) -> Tokens<f64> {
    tensor(&wave(b * s * 4, k), (b, s, Const))
}

/// Row `t` of a call is at `offset + t`, rounded to the tokens' type; and the call's text does not matter.
#[test]
fn sinusoids_start_at_the_offset() {
    let zeros: Tokens<f32> = dev().zeros_like(&(2, 3, Const));
    let y = Sinusoidal::default().forward((zeros.clone(), 41)).as_vec();
    let want: Vec<f32> = sinusoids(41..44, 4, 1e4).unwrap().into_iter().map(|x| x as f32).collect();
    assert_same_bits(&y, &[want.clone(), want].concat());
    let y = Sinusoidal::new(100.0).unwrap().forward(zeros).as_vec();
    assert_eq!(y[4..8], [1.0f64.sin(), 1.0f64.cos(), 0.1f64.sin(), 0.1f64.cos()].map(|x| x as f32));

    let token: Tokens<f64> = dev().zeros_like(&(1, 1, Const));
    let last = (1usize << 53) - 1;
    let y = Sinusoidal::default().forward((token.clone(), last)).as_vec();
    assert_eq!(y[..2], [(last as f64).sin(), (last as f64).cos()]);
    assert!(Sinusoidal::default().try_forward((token, last + 1)).is_err());
}

/// The gradient passes as it is, also through a view.
#[test]
fn sinusoids_let_the_gradient_pass() {
    let dy = wave(24, 0.9);
    let x = tokens(2, 3, 1.7);
    let grads = backward(Sinusoidal::default().forward((x.leaky_trace(), 5)), &dy);
    assert_eq!(grads.get(&x).as_vec(), dy);
    let x: Tensor<(usize, usize, Const<4>), f64, Dev> = tensor(&wave(24, 1.7), (3, 2, Const));
    let view = x.leaky_trace().permute::<(usize, usize, Const<4>), Axes3<1, 0, 2>>();
    let grads = backward(Sinusoidal::default().forward((view, 5)), &dy);
    let want =
        tensor(&dy, (2, 3, Const::<4>)).permute::<(usize, usize, Const<4>), Axes3<1, 0, 2>>();
    assert_eq!(grads.get(&x).as_vec(), want.as_vec());
}

/// A copy in another type has the base too: dfdx builds it again.
#[test]
fn the_base_travels() {
    let sinusoidal = Sinusoidal::new(100.0).unwrap();
    let copy = ToDtype::<f64, Dev>::to_dtype::<f32>(&sinusoidal);
    assert_eq!((copy.base(), copy.to_string()), (100.0, "Sinusoidal(base=100)".into()));
    assert_eq!(NumParams::<f64, Dev>::num_trainable_params(&sinusoidal), 0);
}

#[test]
fn what_sinusoids_refuse() {
    for (positions, h, base) in [
        (0..0, 4, 1e4),
        (0..3, 5, 1e4),
        (0..3, 0, 1e4),
        (0..3, 4, 1.0),
        (0..3, 4, f64::NAN),
        (0..3, 4, f64::INFINITY),
        (0..(1 << 53) + 1, 4, 1e4),
        (1 << 53..(1 << 53) + 1, 4, 1e4),
        (0..usize::MAX, 4, 1e4),
    ] {
        assert!(sinusoids(positions.clone(), h, base).is_err(), "{positions:?} {h} {base}");
    }
    assert!(Sinusoidal::new(0.5).is_err());
    assert!(sinusoid_shift((1 << 53) + 1, 4, 1e4).is_err());
    let odd = add_sinusoids(tensor(&[0.0; 6], (1, 2, 3)), 0, 1e4).unwrap_err();
    assert!(odd.to_string().starts_with("hidden_size must be even and at least 2"), "{odd}");
    let far = Sinusoidal::default().try_forward((tokens(1, 2, 1.0), usize::MAX)).unwrap_err();
    assert_eq!(far, Error::PositionOverflow { offset: usize::MAX, length: 2 });
    // Also where rows of an earlier call are kept.
    let used = Sinusoidal::default();
    used.try_forward((tokens(1, 2, 1.0), 0)).unwrap();
    for far in [1 << 53, 1 << 62, usize::MAX - 2] {
        let error = used.try_forward((tokens(1, 2, 1.0), far)).unwrap_err();
        assert_eq!(error, Sinusoidal::default().try_forward((tokens(1, 2, 1.0), far)).unwrap_err());
    }
    let empty: Tokens<f64> = dev().zeros_like(&(1, 0, Const));
    let error = Sinusoidal::default().try_forward((empty, 0)).unwrap_err();
    assert!(matches!(error, Error::Empty { .. }));
}

fn learned() -> LearnedPositions<6, 4, f64, Dev> {
    LearnedPositions::new(&dev(), Default::default()).unwrap()
}

/// Rows are added where they belong, and there is none past the last.
#[test]
fn learned_rows_are_added_and_end() {
    let (positions, x) = (learned(), tokens(2, 3, 1.7));
    let rows = positions.table.weight.as_vec();
    for offset in 0..=3 {
        let y = positions.forward((x.clone(), offset)).as_vec();
        let row = |at: usize| rows[(offset + at / 4 % 3) * 4 + at % 4];
        let want: Vec<f64> = x.as_vec().iter().enumerate().map(|(at, x)| x + row(at)).collect();
        assert_eq!(y, want);
    }
    let error = positions.try_forward((x.clone(), 4)).unwrap_err();
    assert_eq!(error, Error::Rows { start: 4, end: 7, rows: 6 });
    let error = positions.try_forward(tokens(1, 7, 1.0)).unwrap_err();
    assert_eq!(error, Error::Rows { start: 0, end: 7, rows: 6 });
    let error = positions.try_forward((x.clone(), usize::MAX)).unwrap_err();
    assert_eq!(error, Error::PositionOverflow { offset: usize::MAX, length: 3 });
    let narrow = tensor(&[0.0; 12], (6, 2));
    let error = add_learned_positions(x, &narrow, 0).unwrap_err();
    assert!(matches!(error, Error::Shape { name: "the table of positions", .. }), "{error}");
}

/// Drawn as a vocabulary is, and of standard deviation 0.02; saved and loaded by its name; converted.
#[test]
fn a_learned_table_is_a_table() {
    let big = LearnedPositions::<64, 64, f64, Dev>::new(&dev(), Default::default()).unwrap();
    let drawn = big.table.weight.as_vec();
    let std = (dot(&drawn, &drawn) / 4096.0).sqrt();
    assert!((std - 0.02).abs() < 5.0 * 0.02 / (2.0 * 4096f64).sqrt(), "{std}"); // five deviations
    assert_eq!(big.to_string(), "LearnedPositions(positions=64, hidden_size=64)");

    let (positions, mut other) = (learned(), learned());
    let path = tempfile::tempdir().unwrap().path().with_extension("safetensors");
    other.table.weight = tensor(&[0.5; 24], (Const, Const));
    save_weights(&positions, &path).unwrap();
    load_weights(&mut other, &path).unwrap();
    assert_eq!(other.table.weight.as_vec(), positions.table.weight.as_vec());
    std::fs::remove_file(path).unwrap();

    other.reset_params();
    assert_eq!(other.table.weight.as_vec(), positions.table.weight.as_vec());
    let half = positions.to_dtype::<f32>();
    assert_eq!(half.table.config(), positions.table.config());
    let error = LearnedPositions::<6, 4, f64, Dev>::new(
        &dev(),
        LearnedPositionsConfig { init_std: -1.0, init_seed: 42 },
    );
    assert!(error.is_err());
}

/// `f16`: the sum is rounded once, and 3000 texts are 3000, where adding up in `f16` would end at 2048.
#[test]
#[cfg(feature = "f16")]
fn halves_are_rounded_once() {
    let half = |x: f64| f16::from_f64(x);
    // 1000 + sin(1) lies between two halves whose distance is 0.5.
    let x = tensor(&[half(1000.0); 4], (1, 1, Const::<4>));
    let y = Sinusoidal::default().forward((x, 1)).as_vec();
    let rows = sinusoids(1..2, 4, 1e4).unwrap();
    let want: Vec<f16> = rows.iter().map(|&row| half(f64::from(1000.0 + row as f32))).collect();
    assert_eq!(y, want);

    let positions = LearnedPositions::<2, 1, f16, Dev>::new(&dev(), Default::default()).unwrap();
    let x: Tensor<(usize, usize, Const<1>), f16, Dev> = dev().zeros_like(&(3000, 1, Const));
    let grads = backward(positions.forward((x.leaky_trace(), 1)), &vec![half(1.0); 3000]);
    let counts = grads.get(&positions.table.weight).as_vec();
    assert_eq!(counts, [half(0.0), half(3000.0)]);
}

/// One pass over memory and operation by operation: the same bits.
#[test]
fn fused_and_composed_agree() {
    let learned = learned();
    let module = Sinusoidal::default();
    for (b, s) in [(1, 1), (3, 5), (40, 6)] {
        let x = tokens(b, s, 0.7);
        let run = || {
            let y = module.try_forward((x.leaky_trace(), 3)).unwrap();
            let values = y.as_vec();
            let grads = (y * tokens(b, s, 0.3)).sum::<Rank0, _>().backward();
            (values, grads.get(&x).as_vec())
        };
        assert_eq!(run(), quadrivium::composed(run));
        let x = tokens(b, s.min(5), 0.7);
        let table = &learned.table.weight;
        let run = || {
            let y = learned.try_forward((x.leaky_trace(), 1)).unwrap();
            let values = y.as_vec();
            let grads = y.square().sum::<Rank0, _>().backward();
            (values, grads.get(&x).as_vec(), grads.get(table).as_vec())
        };
        assert_eq!(run(), quadrivium::composed(run));
        assert_eq!(run(), quadrivium::in_threads(run));
    }
}

/// What was asked before, and by which clone, changes nothing.
#[test]
fn kept_rows_are_those_of_the_formula() {
    let module = Sinusoidal::default();
    let asked = [(0, 8), (3, 2), (6, 4), (100, 1), (0, 9), (5, 8), (1 << 40, 9)];
    for (offset, s) in asked {
        let zeros: Tokens<f64> = Dev::default().zeros_like(&(1, s, Const));
        let got = module.clone().try_forward((zeros, offset)).unwrap().as_vec();
        assert_eq!(got, sinusoids(offset..offset + s, 4, 10_000.0).unwrap());
    }
}
