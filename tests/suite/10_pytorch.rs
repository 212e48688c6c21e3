//! Equal to PyTorch 2.15: initial values, outputs and gradients.
//!
//! `tests/goldens/generate.py` wrote the numbers; its README says what they are. Reading them
//! needs no Python.

use crate::oracle;
use crate::support::*;
use quadrivium::functional::{Layout, apply_rotary_pos_emb_interleaved};
use quadrivium::init::Init;
use quadrivium::pos_emb::{RotaryTables, rotary_frequencies};
use quadrivium::tensor::*;
use quadrivium::*;
use safetensors::SafeTensors;
use safetensors::tensor::Dtype as FileDtype;
use serde_json::Value;
use std::path::Path;

/// One file of goldens.
struct Goldens {
    bytes: Vec<u8>,
    cases: Vec<Value>,
}

impl Goldens {
    fn open(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(name);
        let bytes = std::fs::read(path.with_extension("safetensors")).unwrap();
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let cases = &header.metadata().as_ref().unwrap()["cases"];
        let cases = serde_json::from_str(cases).unwrap();
        Self { bytes, cases }
    }

    /// The cases of one float type.
    fn cases(&self, dtype: &str) -> impl Iterator<Item = Case<'_>> {
        let dtype = dtype.to_string();
        let of_type = move |settings: &&Value| settings["dtype"].as_str().unwrap_or("f32") == dtype;
        let file = &self.bytes;
        self.cases.iter().filter(of_type).map(move |settings| {
            let file = SafeTensors::deserialize(file).unwrap();
            Case { name: settings["name"].as_str().unwrap(), settings, file }
        })
    }
}

struct Case<'a> {
    name: &'a str,
    settings: &'a Value,
    file: SafeTensors<'a>,
}

impl Case<'_> {
    fn size(&self, key: &str) -> usize {
        self.settings[key].as_u64().unwrap_or_else(|| panic!("{}: no {key}", self.name)) as usize
    }

    fn number(&self, key: &str) -> f64 {
        self.settings[key].as_f64().unwrap_or_else(|| panic!("{}: no {key}", self.name))
    }

    fn bytes<const N: usize>(&self, what: &str, dtype: FileDtype) -> Vec<[u8; N]> {
        let tensor = self.file.tensor(&format!("{}.{what}", self.name)).unwrap();
        assert_eq!(tensor.dtype(), dtype, "{}.{what}", self.name);
        tensor.data().chunks_exact(N).map(|word| word.try_into().unwrap()).collect()
    }

    fn f32(&self, what: &str) -> Vec<f32> {
        self.bytes(what, FileDtype::F32).into_iter().map(f32::from_le_bytes).collect()
    }

    fn f64(&self, what: &str) -> Vec<f64> {
        self.bytes(what, FileDtype::F64).into_iter().map(f64::from_le_bytes).collect()
    }

    fn ids(&self, what: &str) -> Vec<usize> {
        let ids = self.bytes(what, FileDtype::I64).into_iter().map(i64::from_le_bytes);
        ids.map(|id| usize::try_from(id).unwrap()).collect()
    }

    fn init(&self) -> Init {
        let seed = self.settings["seed"].as_u64().unwrap();
        match self.settings["kind"].as_str() {
            Some("uniform") => {
                Init::Uniform { low: self.number("low"), high: self.number("high"), seed }
            }
            _ => Init::Normal { mean: self.number("mean"), std: self.number("std"), seed },
        }
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |largest, x| x.abs().max(largest))
}

/// Same seed, same numbers. Uniform: bit for bit, for every range and size, in f32 and f64.
/// Normal: to `1e-6 std`, and one rounding of the mean; PyTorch takes its f32 logarithm and sine to
/// a few ulps only.
#[test]
fn initial_values() {
    let goldens = Goldens::open("init");
    for case in goldens.cases("f32") {
        let (init, want) = (case.init(), case.f32("values"));
        let got: Vec<f32> = init.values(case.size("n"));
        match init {
            Init::Uniform { .. } => assert_same_bits(&got, &want),
            Init::Normal { std, mean, .. } => {
                let bound = 1e-6 * std + 2.0 * U32 * mean.abs();
                assert_within(&widen(&got), &widen(&want), |_| bound);
            }
        }
    }
    for case in goldens.cases("f64") {
        let (init, want) = (case.init(), case.f64("values"));
        let got: Vec<f64> = init.values(case.size("n"));
        match init {
            Init::Uniform { .. } => assert_eq!(got, want, "{}", case.name),
            Init::Normal { .. } => assert_within(&got, &want, |_| 8.0 * U64),
        }
    }
    #[cfg(feature = "f16")]
    for case in goldens.cases("f16") {
        let want = case.bytes("values", FileDtype::F16).into_iter().map(f16::from_le_bytes);
        let got: Vec<f16> = case.init().values(case.size("n"));
        assert_eq!(got, want.collect::<Vec<_>>(), "{}", case.name);
    }
    let count = |dtype| goldens.cases(dtype).count();
    assert_eq!((count("f32"), count("f64"), count("f16")), (152, 6, 3));
    for n in [1, 12, 15, 16, 17, 30, 1000, 100_000] {
        let tested = goldens.cases("f32").filter(|case| case.size("n") == n).count();
        assert!(tested >= if n == 100_000 { 3 } else { 18 }, "{tested} cases of {n} values");
    }
}

/// The modules draw the same tables: 32-bit, by seed.
#[test]
fn modules_start_from_the_same_numbers() {
    let goldens = Goldens::open("parallel_vocab_emb");
    for case in goldens.cases("f32").filter(|case| case.size("w") == 3) {
        for rank in 0..3 {
            let config = ParallelVocabEmbeddingConfig { rank, ..Default::default() };
            let shard = ParallelVocabEmbedding::<12, 5, 3, f32, _>::new(&dev(), config).unwrap();
            let want = widen(&case.f32(&format!("table_{rank}")));
            assert_within(&widen(&shard.weight.as_vec()), &want, |_| 1e-6);
        }
    }
}

/// Forward within 2e-6 of each value: the promise, though two sums of 128 may differ by more in
/// the worst case. Gradients within 1e-5 of the size of their terms. (In a
/// group of one the terms of `dx` cancel to 1e-5 of their size, in PyTorch as here.)
fn norm<const H: usize, const GZ: usize>(case: &Case) {
    let (b, s) = (case.size("b"), case.size("s"));
    let config = GroupRmsNormConfig { eps: case.number("eps"), ..Default::default() };
    let mut norm = GroupRmsNorm::<H, GZ, f32, _>::new(&dev(), config).unwrap();
    norm.weight = tensor(&case.f32("weight"), (Const,));
    let x = tensor(&case.f32("x"), (b, s, Const::<H>));
    let y = norm.forward(x.leaky_trace());
    let got = widen(&y.as_vec());
    let grads = backward(y, &case.f32("dy"));
    let dx = widen(&grads.get(&x).as_vec());
    let dgamma = widen(&grads.get(&norm.weight).as_vec());
    let read = |what: &str| widen(&case.f32(what));
    let terms = oracle::norm(&read("x"), &read("weight"), &read("dy"), GZ, config.eps);
    for suffix in ["", "64"] {
        let read = |what: &str| match suffix {
            "" => widen(&case.f32(what)),
            _ => case.f64(&format!("{what}64")),
        };
        let want = read("y");
        assert_within(&got, &want, |i| 2e-6 * want[i].abs());
        let want = read("dx");
        assert_within(&dx, &want, |i| 1e-5 * terms.dx_scale[i]);
        let want = read("dweight");
        assert_within(&dgamma, &want, |i| 1e-5 * terms.dgamma_scale[i]);
    }
}

#[test]
fn group_rms_norm() {
    let goldens = Goldens::open("norm");
    let mut tested = 0;
    for case in goldens.cases("f32") {
        match (case.size("h"), case.size("gz")) {
            (8, 8) => norm::<8, 8>(&case),
            (8, 4) => norm::<8, 4>(&case),
            (8, 1) => norm::<8, 1>(&case),
            (12, 3) => norm::<12, 3>(&case),
            (64, 16) => norm::<64, 16>(&case),
            (128, 128) => norm::<128, 128>(&case),
            other => panic!("{}: add {other:?} to this list", case.name),
        }
        tested += 1;
    }
    assert_eq!(tested, 8);
}

#[test]
fn group_rms_norm_in_f64() {
    let goldens = Goldens::open("norm");
    assert_eq!(goldens.cases("f64").count(), 1);
    for case in goldens.cases("f64") {
        let config = GroupRmsNormConfig { eps: case.number("eps"), ..Default::default() };
        let mut norm = GroupRmsNorm::<8, 4, f64, _>::new(&dev(), config).unwrap();
        norm.weight = tensor(&case.f64("weight"), (Const,));
        let x = tensor(&case.f64("x"), (2usize, 3usize, Const::<8>));
        let y = norm.forward(x.leaky_trace());
        let want = case.f64("y");
        assert_within(&y.as_vec(), &want, |i| 8.0 * U64 * want[i].abs());
        let grads = backward(y, &case.f64("dy"));
        let want = case.f64("dx");
        assert_within(&grads.get(&x).as_vec(), &want, |_| 32.0 * U64 * largest(&want));
        let want = case.f64("dweight");
        assert_within(&grads.get(&norm.weight).as_vec(), &want, |_| 32.0 * U64 * largest(&want));
    }
}

/// PyTorch, too, takes the statistics in f32 and rounds once; so at most one `f16` apart, where
/// the f32 value lies near the middle of two.
#[test]
#[cfg(feature = "f16")]
fn group_rms_norm_in_f16() {
    let goldens = Goldens::open("norm");
    assert_eq!(goldens.cases("f16").count(), 1);
    for case in goldens.cases("f16") {
        let read = |what: &str| -> Vec<f16> {
            case.bytes(what, FileDtype::F16).into_iter().map(f16::from_le_bytes).collect()
        };
        let config = GroupRmsNormConfig { eps: case.number("eps"), ..Default::default() };
        let mut norm = GroupRmsNorm::<8, 4, f16, _>::new(&dev(), config).unwrap();
        norm.weight = tensor(&read("weight"), (Const,));
        let x = tensor(&read("x"), (2usize, 3usize, Const::<8>));
        assert!(x.as_vec().iter().any(|x| x.to_f32().abs() >= 300.0));
        let y = norm.forward(x.leaky_trace());
        let wide = |v: &[f16]| v.iter().map(|x| x.to_f64()).collect::<Vec<f64>>();
        let ulp = |x: f64| (x.abs() * 2f64.powi(-10)).max(2f64.powi(-24));
        let want = wide(&read("y"));
        assert_within(&wide(&y.as_vec()), &want, |i| ulp(want[i]));
        let grads = backward(y, &read("dy"));
        let want = wide(&read("dx"));
        assert_within(&wide(&grads.get(&x).as_vec()), &want, |_| ulp(largest(&want)));
        let want = wide(&read("dweight"));
        assert_within(&wide(&grads.get(&norm.weight).as_vec()), &want, |_| ulp(largest(&want)));
    }
}

/// Rows bit for bit; gradients to 1e-5, and unused rows exactly 0.
fn embedding<const V: usize, const M: usize>(case: &Case) {
    let drawn = VocabEmbeddingConfig {
        init_mean: case.number("mean"),
        init_std: case.number("std"),
        init_seed: case.size("seed") as u64,
    };
    let mut embedding = VocabEmbedding::<V, M, f32, _>::new(&dev(), drawn).unwrap();
    let table = case.f32("table");
    let bound = 1e-6 * drawn.init_std + U32 * drawn.init_mean.abs();
    assert_within(&widen(&embedding.weight.as_vec()), &widen(&table), |_| bound);

    embedding.weight = tensor(&table, (Const, Const));
    let tokens = case.ids("ids");
    let y = embedding.forward(Trace::<f32, Dev>::leaky_trace(&ids(&tokens, (2usize, 7usize))));
    assert_same_bits(&y.as_vec(), &case.f32("y"));
    let grads = backward(y, &case.f32("dy")).get(&embedding.weight).as_vec();
    let want = case.f32("dtable");
    let abs: Vec<f64> = widen(&case.f32("dy")).iter().map(|x| x.abs()).collect();
    let terms = oracle::embedding_gradient(&tokens, &abs, V, M);
    // Two sums of at most 14 terms, in two orders.
    assert_within(&widen(&grads), &widen(&want), |i| 28.0 * U32 * terms[i]);
    for id in (0..V).filter(|id| !tokens.contains(id)) {
        assert_eq!(grads[id * M..][..M], [0.0; M]);
    }
}

#[test]
fn vocab_embedding() {
    let goldens = Goldens::open("vocab_emb");
    assert_eq!((goldens.cases("f32").count(), goldens.cases("f64").count()), (3, 1));
    for case in goldens.cases("f32") {
        match (case.size("v"), case.size("e")) {
            (11, 5) => embedding::<11, 5>(&case),
            (32, 16) => embedding::<32, 16>(&case),
            (100, 8) => embedding::<100, 8>(&case),
            other => panic!("{}: add {other:?} to this list", case.name),
        }
    }
    for case in goldens.cases("f64") {
        let mut embedding =
            VocabEmbedding::<11, 5, f64, _>::new(&dev(), Default::default()).unwrap();
        embedding.weight = tensor(&case.f64("table"), (Const, Const));
        let input = ids(&case.ids("ids"), (2usize, 7usize));
        let y = embedding.forward(Trace::<f64, Dev>::leaky_trace(&input));
        assert_eq!(y.as_vec(), case.f64("y"));
        let grads = backward(y, &case.f64("dy")).get(&embedding.weight).as_vec();
        assert_within(&grads, &case.f64("dtable"), |_| 1e-14);
    }
}

fn parallel<const W: usize>(case: &Case) {
    let input = ids(&case.ids("ids"), (2usize, 7usize));
    let mut sum = vec![0.0; 2 * 7 * 5];
    for rank in 0..W {
        let read = |what: &str| case.f32(&format!("{what}_{rank}"));
        let config = ParallelVocabEmbeddingConfig { rank, ..Default::default() };
        let mut shard = ParallelVocabEmbedding::<12, 5, W, f32, _>::new(&dev(), config).unwrap();
        shard.weight = tensor(&read("table"), (Quotient, Const));
        let y = shard.forward(Trace::<f32, Dev>::leaky_trace(&input));
        assert_eq!(y.as_vec(), read("y"));
        sum.iter_mut().zip(y.as_vec()).for_each(|(sum, y)| *sum += y);
        let grads = backward(y, &case.f32("dy")).get(&shard.weight).as_vec();
        let largest_sum = 14.0 * largest(&widen(&case.f32("dy")));
        assert_within(&widen(&grads), &widen(&read("dtable")), |_| 28.0 * U32 * largest_sum);
    }
    assert_eq!(sum, case.f32("y_sum"));
}

#[test]
fn parallel_vocab_embedding() {
    let goldens = Goldens::open("parallel_vocab_emb");
    assert_eq!(goldens.cases("f32").count(), 4);
    for case in goldens.cases("f32") {
        match case.size("w") {
            1 => parallel::<1>(&case),
            2 => parallel::<2>(&case),
            3 => parallel::<3>(&case),
            4 => parallel::<4>(&case),
            other => panic!("{}: add {other:?} to this list", case.name),
        }
    }
}

/// Within 1e-6 max|x| of the float64 run at every position, and within `n 2^-23 max|x|` of the
/// float32 run, whose angles err that much.
fn rope<const HD: usize>(case: &Case) {
    let (b, s, n, offset) = (case.size("b"), case.size("s"), case.size("nh"), case.size("offset"));
    let config = NtkAwareRopeConfig {
        base: case.number("base"),
        max_seq_len: case.size("max_seq_len"),
        ratio: case.size("ratio"),
        dynamic: true,
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
