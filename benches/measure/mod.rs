//! Four implementations at the same work: the fused code, the composed code, a loop on one thread, and a copy of the
//! output's bytes with all threads. The last lines are one table, in multiples of the copy.
//!
//! `cargo bench -- norm` measures one component.

mod embedding;
mod norm;
mod rope;
mod table;

use criterion::{BenchmarkId, Criterion, Throughput};
use quadrivium::composed;
use quadrivium::tensor::{Cache, Cpu};
use std::time::Duration;

/// What is measured, and under which circumstances.
struct Race<'c> {
    criterion: &'c mut Criterion,
    dev: Cpu,
    /// Whether all sizes are measured, or one.
    every_size: bool,
}

/// One implementation's work.
type Work<'w> = &'w mut dyn FnMut();

/// What is measured at one size: a name such as `norm forward`, and how large it is.
struct Size<'s> {
    name: &'s str,
    size: &'s str,
    /// Numbers in the output.
    elements: usize,
}

/// Measures everything and prints the table.
pub fn all(memory: &str, kept: bool) {
    let folder = tempfile::tempdir().expect("a folder for the measurements");
    let mut criterion = Criterion::default()
        .without_plots()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .output_directory(folder.path())
        .configure_from_args();
    let dev = Cpu::default();
    if kept {
        dev.enable_cache();
    }
    let mut race = Race { criterion: &mut criterion, dev, every_size: kept };
    norm::race(&mut race);
    rope::race(&mut race);
    embedding::race(&mut race);
    criterion.final_summary();
    table::print(folder.path(), memory).expect("the measurements of this run");
}

impl Race<'_> {
    /// Measures the implementations at one size: the component's code on both ways, and a loop. A size whose composed
    /// code would fill the memory leaves that out.
    fn run(&mut self, of: &Size, module: Work, with_composed: bool, plain: Work) {
        let (source, mut target) = (benches::values(of.elements), vec![0.0; of.elements]);
        let mut group = self.criterion.benchmark_group(of.name);
        group.throughput(Throughput::Elements(of.elements as u64));
        let id = |implementation: &str| BenchmarkId::new(implementation, of.size);
        group.bench_function(id("copy"), |bench| {
            bench.iter(|| benches::copy(&source, std::hint::black_box(&mut target)));
        });
        drop((source, target));
        group.bench_function(id("fused"), |bench| bench.iter(&mut *module));
        group.bench_function(id("loop"), |bench| bench.iter(&mut *plain));
        if with_composed {
            group.bench_function(id("composed"), |bench| bench.iter(|| composed(&mut *module)));
        }
        group.finish();
    }
}
