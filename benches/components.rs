//! Each component, forward and forward + backward, beside a plain copy of the bytes that its
//! output has. The last lines are the ratios to that copy.
//!
//! `cargo bench` runs all; `cargo bench -- norm` runs one group. The device's allocation cache is
//! on, as it would be in training.
#![allow(missing_docs)]

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};
use quadrivium::tensor::*;
use quadrivium::*;
use std::path::Path;
use std::time::Duration;

const SEQ: usize = 2048;
const HIDDEN: usize = 4096;
const VOCAB: usize = 32_000;
type Hidden = Rank3<1, SEQ, HIDDEN>;
type Heads = Rank4<1, SEQ, 32, 128>;

fn device() -> Cpu {
    let dev = Cpu::default();
    dev.enable_cache();
    dev
}

/// Values without a pattern, cheaply.
fn input<S: ConstShape>(dev: &Cpu) -> Tensor<S, f32, Cpu> {
    let values = (0..S::NUMEL).map(|i| ((i * 2_654_435_761) % 1000) as f32 / 500.0 - 1.0);
    dev.tensor_from_vec(values.collect(), S::default())
}

/// Token ids spread over the vocabulary.
fn tokens(dev: &Cpu) -> Tensor<Rank2<1, SEQ>, usize, Cpu> {
    let ids = (0..SEQ).map(|i| (i * 2_654_435_761) % VOCAB);
    dev.tensor_from_vec(ids.collect(), Default::default())
}

/// A group whose first entry copies the bytes of one output.
fn group<'c>(criterion: &'c mut Criterion, name: &str) -> BenchmarkGroup<'c, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10).warm_up_time(Duration::from_secs(1));
    group.throughput(Throughput::Bytes((SEQ * HIDDEN * size_of::<f32>()) as u64));
    let source = vec![1.0f32; SEQ * HIDDEN];
    let mut target = vec![0.0f32; SEQ * HIDDEN];
    group.bench_function("copy", |bench| {
        bench.iter(|| std::hint::black_box(&mut target).copy_from_slice(&source));
    });
    group
}

/// Benches a module on an input, with and without its gradient.
fn measure<X, S: Shape, M>(group: &mut BenchmarkGroup<WallTime>, label: &str, module: &M, x: &X)
where
    X: Clone + Trace<f32, Cpu>,
    M: Module<X, Output = Tensor<S, f32, Cpu>>
        + Module<X::Traced, Output = Tensor<S, f32, Cpu, OwnedTape<f32, Cpu>>>,
{
    group.bench_function(format!("forward{label}"), |bench| {
        bench.iter(|| module.forward(x.clone()));
    });
    group.bench_function(format!("forward+backward{label}"), |bench| {
        bench.iter(|| module.forward(x.leaky_trace()).sum::<Rank0, _>().backward());
    });
}

fn norm(criterion: &mut Criterion) {
    let dev = device();
    let x = input::<Hidden>(&dev);
    let mut group = group(criterion, "norm");
    let grouped = GroupRmsNorm::<HIDDEN, 128, f32, _>::new(&dev, Default::default()).unwrap();
    measure(&mut group, " gz=128", &grouped, &x);
    let plain = GroupRmsNorm::<HIDDEN, HIDDEN, f32, _>::new(&dev, Default::default()).unwrap();
    measure(&mut group, " gz=4096", &plain, &x);
}

fn embedding(criterion: &mut Criterion) {
    let dev = device();
    let mut group = group(criterion, "embedding");
    let whole = VocabEmbedding::<VOCAB, HIDDEN, f32, _>::new(&dev, Default::default()).unwrap();
    measure(&mut group, " whole", &whole, &tokens(&dev));
    drop(whole);
    let config = ParallelVocabEmbeddingConfig { rank: 1, ..Default::default() };
    let shard = ParallelVocabEmbedding::<VOCAB, HIDDEN, 4, f32, _>::new(&dev, config).unwrap();
    measure(&mut group, " shard 1 of 4", &shard, &tokens(&dev));
}

fn rope(criterion: &mut Criterion) {
    let dev = device();
    let x = input::<Heads>(&dev);
    let mut group = group(criterion, "rope");
    let rope = NtkAwareRope::<128, _>::new(&dev, Default::default()).unwrap();
    measure(&mut group, "", &rope, &x);
}

/// Reads the medians of this run back and prints them as multiples of the copy.
fn print_ratios(folder: &Path) -> std::io::Result<()> {
    let median = |entry: &Path| -> Option<f64> {
        let text = std::fs::read_to_string(entry.join("new/estimates.json")).ok()?;
        serde_json::from_str::<serde_json::Value>(&text).ok()?["median"]["point_estimate"].as_f64()
    };
    println!("\n{:<40}{:>10}{:>12}", "", "ms", "x copy");
    for group in ["norm", "embedding", "rope"] {
        let Some(copy) = median(&folder.join(group).join("copy")) else { continue };
        let entries = std::fs::read_dir(folder.join(group))?.filter_map(Result::ok);
        let mut rows: Vec<_> = entries.map(|entry| entry.path()).collect();
        rows.sort();
        for row in rows {
            let Some(time) = median(&row) else { continue };
            let name = row.file_name().unwrap_or_default().to_string_lossy();
            println!("{:<40}{:>10.1}{:>12.1}", format!("{group}/{name}"), time / 1e6, time / copy);
        }
    }
    Ok(())
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder for the measurements");
    let mut criterion =
        Criterion::default().without_plots().output_directory(folder.path()).configure_from_args();
    norm(&mut criterion);
    embedding(&mut criterion);
    rope(&mut criterion);
    criterion.final_summary();
    print_ratios(folder.path()).expect("the measurements of this run");
}
