//! `cargo bench --features cuda --bench gpu`: the composed code on an NVIDIA GPU, beside one pass of dfdx over the
//! same bytes. The throughput that is printed counts each output's bytes twice, once read and once written: what
//! code of one pass would need. Divide it by the card's bandwidth.
#![allow(missing_docs)]

use benches::{ids, values};
use criterion::{Criterion, Throughput};
use quadrivium::functional::Layout;
use quadrivium::tensor::*;
use quadrivium::*;
use std::time::Duration;

const ROWS: usize = 2048;
const H: usize = 4096;
/// One of four shards, and its ids' vocabulary.
const V: usize = 32_000;

/// One party's work.
type Work<'w> = &'w mut dyn FnMut();

fn main() {
    let mut criterion = Criterion::default()
        .without_plots()
        .warm_up_time(Duration::from_secs(1))
        .configure_from_args();
    let dev = Cuda::default();
    dev.enable_cache();
    let hidden = (Const::<1>, ROWS, Const::<H>);
    let x = dev.tensor_from_vec(values(ROWS * H), hidden);
    let mut run = |name: &str, works: &mut [(&str, Work)]| {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes((2 * ROWS * H * size_of::<f32>()) as u64));
        for (what, work) in works {
            group.bench_function(*what, |bench| {
                bench.iter(|| {
                    work();
                    dev.synchronize(); // a call returns before its work is done
                });
            });
        }
        group.finish();
    };

    run("one pass of dfdx", &mut [("negate", &mut || drop(x.clone().negate()))]);
    both(&mut run, "norm gz 128", &norm::<128>(&dev), &x);
    both(&mut run, "norm gz 4096", &norm::<4096>(&dev), &x);
    for layout in [Layout::HalfSplit, Layout::Interleaved] {
        let config = NtkAwareRopeConfig { max_seq_len: ROWS, layout, ..Default::default() };
        let rope = NtkAwareRope::<128, Cuda>::new(&dev, config).expect("a rope");
        let heads =
            dev.tensor_from_vec(values(ROWS * H), (Const::<1>, ROWS, Const::<32>, Const::<128>));
        both(&mut run, &format!("rope {layout:?}"), &rope, &heads);
    }
    let batch = dev.tensor_from_vec(ids(ROWS, V), (Const::<1>, ROWS));
    let whole = VocabEmbedding::<V, H, f32, Cuda>::new(&dev, Default::default());
    both(&mut run, "embedding", &whole.expect("an embedding"), &batch);
    let config = ParallelVocabEmbeddingConfig { rank: 1, ..Default::default() };
    let shard = ParallelVocabEmbedding::<V, H, 4, f32, Cuda>::new(&dev, config);
    both(&mut run, "shard 1 of 4", &shard.expect("a shard"), &batch);
}

fn norm<const GZ: usize>(dev: &Cuda) -> GroupRmsNorm<H, GZ, f32, Cuda> {
    GroupRmsNorm::new(dev, Default::default()).expect("a norm")
}

/// A module's forward pass, and forward and backward of a sum.
fn both<M, S: Shape, E: Unit, Y: Shape>(
    run: &mut impl FnMut(&str, &mut [(&str, Work)]),
    name: &str,
    module: &M,
    x: &Tensor<S, E, Cuda>,
) where
    Cuda: Device<f32> + Storage<E>,
    M: Module<Tensor<S, E, Cuda>, Output = Tensor<Y, f32, Cuda>>,
    M: Module<
            Tensor<S, E, Cuda, OwnedTape<f32, Cuda>>,
            Output = Tensor<Y, f32, Cuda, OwnedTape<f32, Cuda>>,
        >,
    Y: ReduceShape<Y::AllAxes, Reduced = Rank0>,
{
    let mut forward = || drop(module.forward(x.clone()));
    let mut backward = || drop(module.forward(x.leaky_trace()).sum::<Rank0, _>().backward());
    run(name, &mut [("forward", &mut forward), ("forward and backward of a sum", &mut backward)]);
}
