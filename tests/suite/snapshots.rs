//! What a reader sees: numbers of small worked examples, messages, modules in print.
//!
//! The files are in `snapshots/`. After a wanted change run `INSTA_UPDATE=always cargo test` and
//! read the difference.

use crate::support::*;
use quadrivium::functional::*;
use quadrivium::init::Init;
use quadrivium::pos_emb::*;
use quadrivium::tensor::*;
use quadrivium::*;
use std::fmt::Write;

fn snapshot(name: &str, text: impl AsRef<str>) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(root().join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text.as_ref()));
}

/// A table with a header. The first column takes what distinguishes the rows; the others take four
/// decimals, which are the same on every machine.
fn table(columns: &[&str], rows: &[Vec<f64>]) -> String {
    let mut text: String = columns.iter().map(|name| format!("{name:>12}")).collect();
    for row in rows {
        write!(text, "\n{:>12.1}", row[0]).unwrap();
        row[1..].iter().for_each(|x| write!(text, "{x:>12.4}").unwrap());
    }
    text
}

#[test]
fn norm_by_hand() {
    let mut norm = GroupRmsNorm::<4, 2, f32, _>::new(&dev(), Default::default()).unwrap();
    norm.weight = tensor(&[1.0, 1.0, 2.0, 2.0], (Const,));
    let x = tensor(&[3.0, 4.0, 0.6, -0.8], (1, 1, Const::<4>));
    let y = norm.forward(x.leaky_trace());
    let values = widen(&y.as_vec());
    let dy = [1.0, 0.0, 1.0, 0.0];
    let grads = backward(y, &dy);
    let (dx, dgamma) = (widen(&grads.get(&x).as_vec()), widen(&grads.get(&norm.weight).as_vec()));
    let gamma = widen(&norm.weight.as_vec());
    let x = widen(&x.as_vec());
    let row = |i: usize| vec![x[i], gamma[i], values[i], f64::from(dy[i]), dx[i], dgamma[i]];
    let columns = ["x", "gamma", "y", "dy", "dx", "dgamma"];
    snapshot("norm_by_hand", table(&columns, &(0..4).map(row).collect::<Vec<_>>()));
}

#[test]
fn initial_values() {
    let sources = [
        Init::Uniform { low: 0.0, high: 1.0, seed: 42 },
        Init::Uniform { low: -1.0, high: 1.0, seed: 42 },
        Init::Normal { mean: 0.0, std: 1.0, seed: 42 },
    ];
    let mut text = String::new();
    for init in sources {
        for n in [4, 16] {
            let values: Vec<f32> = init.values(n);
            writeln!(text, "{init:?}, first 4 of {n}: {:.4?}", &values[..4]).unwrap();
        }
    }
    snapshot("initial_values", text);
}

#[test]
fn shards_and_their_sum() {
    const V: usize = 8;
    let tokens = [6, 1, 3, 6];
    let mut text = String::from("one value a row of the table (embedding_dim = 1)\n");
    let mut sum = [0.0; 4];
    for rank in 0..4 {
        let config = ParallelVocabEmbeddingConfig { rank, ..Default::default() };
        let shard = ParallelVocabEmbedding::<V, 1, 4, f32, _>::new(&dev(), config).unwrap();
        let y = shard.forward(Trace::<f32, Dev>::leaky_trace(&ids(&tokens, (1, 4))));
        let values = y.as_vec();
        sum.iter_mut().zip(&values).for_each(|(sum, y)| *sum += y);
        let counts = y.sum::<Rank0, _>().backward().get(&shard.weight).as_vec();
        let (owned, rows) = (shard.owned_ids(), shard.weight.as_vec());
        writeln!(text, "rank {rank} owns {owned:?} = {rows:.4?}").unwrap();
        writeln!(text, "    of {tokens:?}: {values:.4?}, gradient of ones {counts:?}").unwrap();
    }
    writeln!(text, "sum over ranks: {sum:.4?}").unwrap();
    snapshot("shards_and_their_sum", text);
}

#[test]
fn frequencies_with_and_without_ntk() {
    let (plain, ntk) = (
        rotary_frequencies(16, 10_000.0, 1.0).unwrap(),
        rotary_frequencies(16, 10_000.0, 4.0).unwrap(),
    );
    let wavelength = |theta: f64| std::f64::consts::TAU / theta;
    let row = |i: usize| {
        vec![
            i as f64,
            plain[i],
            wavelength(plain[i]),
            ntk[i],
            wavelength(ntk[i]),
            plain[i] / ntk[i],
        ]
    };
    let columns = ["plane", "theta", "wave", "theta k=4", "wave k=4", "slowed by"];
    let text = table(&columns, &(0..8).map(row).collect::<Vec<_>>());
    snapshot("frequencies", format!("head_dim 16, base 10000\n{text}"));
}

#[test]
fn a_rotation_by_hand() {
    let config = NtkAwareRopeConfig { base: 100.0, max_seq_len: 8, ..Default::default() };
    let rope = NtkAwareRope::<4, _>::new(&dev(), config).unwrap();
    let x = [1.0, 1.0, 0.0, 0.0];
    let rows = (0..5).map(|m| {
        let y = rope.forward((tensor(&x, (1, 1, 1, Const::<4>)), m)).as_vec();
        std::iter::once(m as f64).chain(widen(&y)).collect::<Vec<_>>()
    });
    let text = table(&["position", "x0", "x1", "x2", "x3"], &rows.collect::<Vec<_>>());
    snapshot("rotation_by_hand", format!("base 100: planes (x0, x2) and (x1, x3)\n{text}"));
}

#[test]
fn the_long_call() {
    let mut text = String::from("max_seq_len 6, ratio 4: the cache holds 24 positions\n");
    writeln!(text, "{:>8}{:>16}{:>16}", "end", "static keeps", "dynamic keeps").unwrap();
    for end in [1, 24, 25, 36, 37, 48, 49] {
        let kept = |dynamic| {
            let config =
                NtkAwareRopeConfig { max_seq_len: 6, ratio: 4, dynamic, ..Default::default() };
            let mut rope = NtkAwareRope::<4, _>::new(&dev(), config).unwrap();
            rope.forward_mut((tensor(&[1.0; 4], (1, 1, 1, Const::<4>)), end - 1));
            rope.ratio()
        };
        writeln!(text, "{end:>8}{:>16}{:>16}", kept(false), kept(true)).unwrap();
    }
    snapshot("long_call", text);
}

#[test]
fn modules_in_print() {
    let dev = dev();
    let norm = GroupRmsNorm::<8, 4, f32, _>::new(&dev, Default::default()).unwrap();
    let embedding = VocabEmbedding::<100, 8, f32, _>::new(&dev, Default::default()).unwrap();
    let config = ParallelVocabEmbeddingConfig { rank: 1, ..Default::default() };
    let shard = ParallelVocabEmbedding::<100, 8, 4, f32, _>::new(&dev, config).unwrap();
    let rope = NtkAwareRope::<64, Dev>::new(&dev, Default::default()).unwrap();
    snapshot(
        "modules",
        format!(
            "{norm}\n{embedding}\n{shard}\n{rope}\n\n{norm:#?}\n{embedding:#?}\n{shard:#?}\n{rope:#?}\n"
        ),
    );
}

/// Every error, as a user sees it. A message states the rule, the expected, the got, what to do.
#[test]
fn messages() {
    let x = || tensor(&[0.0f32; 8], (1usize, 1usize, 8usize));
    let gamma = tensor(&[1.0f32; 8], (8usize,));
    let table = tensor(&[0.0f32; 12], (6usize, 2usize));
    let norm = |eps| GroupRmsNormConfig { eps, ..Default::default() };
    let rope = |config| NtkAwareRope::<4, Dev>::new(&dev(), config).unwrap_err();
    let default = NtkAwareRopeConfig::default();
    let short = NtkAwareRope::<4, Dev>::new(&dev(), default).unwrap();
    let overflow =
        short.try_forward((tensor(&[0.0f32; 4], (1, 1, 1, Const)), usize::MAX)).unwrap_err();
    let mut norm_8 = GroupRmsNorm::<8, 4, f32, Dev>::new(&dev(), norm(1e-5)).unwrap();
    let missing =
        weights::load_weights::<f32, Dev, _>(&mut norm_8, "no-such-file.safetensors").unwrap_err();
    let unnamed = weights::save_weights::<f32, Dev, _>(&norm_8, "").unwrap_err();
    let angles = |frequencies: &[f64], positions| {
        RotaryTables::new(&dev(), 4usize, frequencies, positions, Layout::HalfSplit).unwrap_err()
    };
    let striped = vocab_emb::Ownership::new(vocab_emb::Sharing::Striped, 8, 2).unwrap();
    let endless = tensor(&[1.0f32], ()).broadcast_like::<_, Axes3<0, 1, 2>>(&(1 << 32, 1 << 32, 8));
    let errors = [
        group_rms_norm(x(), &gamma, 3, 1e-5).unwrap_err(),
        group_rms_norm(x(), &gamma, 0, 1e-5).unwrap_err(),
        group_rms_norm(x(), &tensor(&[1.0; 4], (4usize,)), 4, 1e-5).unwrap_err(),
        GroupRmsNorm::<8, 4, f32, _>::new(&dev(), norm(-1.0)).unwrap_err(),
        GroupRmsNorm::<8, 4, f32, _>::new(&dev(), norm(f64::NAN)).unwrap_err(),
        Init::Uniform { low: 1.0, high: 0.5, seed: 0 }.check().unwrap_err(),
        Init::Normal { mean: 0.0, std: -1.0, seed: 0 }.check().unwrap_err(),
        vocab_embedding(ids(&[1, 2, 3, 6], (2, 2)), &table).unwrap_err(),
        vocab_embedding(ids(&[], (0, 2)), &table).unwrap_err(),
        vocab_shard_embedding(ids(&[1], (1, 1)), &table, 2, 2).unwrap_err(),
        vocab_emb::shard_range(7, 2, 0).unwrap_err(),
        vocab_emb::shard_range(8, 0, 0).unwrap_err(),
        vocab_emb::shard_range(0, 2, 1).unwrap_err(),
        striped.owner(8).unwrap_err(),
        striped.global_id(1, 4).unwrap_err(),
        ntk_base(10_000.0, 7, 1.0).unwrap_err(),
        rope(NtkAwareRopeConfig { base: 1.0, ..default }),
        rope(NtkAwareRopeConfig { ratio: 0, ..default }),
        rope(NtkAwareRopeConfig { max_seq_len: 0, ..default }),
        rope(NtkAwareRopeConfig { ratio: 100_000, ..default }),
        ratio_for_length(usize::MAX, 1).unwrap_err(),
        overflow,
        angles(&[f64::NAN, 1.0], 0..1),
        angles(&[1.0, 1.0], 1 << 53..(1 << 53) + 1),
        group_rms_norm(endless, &gamma, 4, 1e-5).unwrap_err(),
        missing,
        unnamed,
        // These two need a GPU.
        Error::TableTooLarge { elements: 1 << 33, limit: u32::MAX as usize },
        Error::device("CUDA_ERROR_OUT_OF_MEMORY"),
    ];
    let text: Vec<String> = errors.iter().map(|error| format!("{error}\n")).collect();
    snapshot("messages", text.join("\n"));
}
