//! How long ranks take on this machine: to add up messages, and to train. Beside it what the cost model says.
//!
//! `cargo run --release -p ranks --bin measure` writes `book/src/measured/ranks.json` again. Worlds of all sizes take
//! turns, so that what else the machine does meets all of them, and of many repeats the shortest counts: others can
//! only make a time longer.

use crate::communicator::{Call, Communicator, Op, Order, Values};
use crate::error::{Error, Result};
use crate::launch::{Ended, Hosts, Launch};
use crate::loss::projected_loss;
use crate::size::Size;
use crate::train::{Batch, Grid};
use ndarray::Array2;
use quadrivium::parallel::cost::{AllReduce, Costs, Measured};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// `w` of the worlds that are measured.
pub const WORLDS: [usize; 4] = [2, 3, 4, 8];
/// Bytes that each rank has; with 0 ranks only agree on the call.
const BYTES: [usize; 9] = [0, 8, 256, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304];
/// Times that a world adds up, and makes a step.
const SUMS: usize = 30;
const STEPS: usize = 6;
/// Times that each world is started.
const TURNS: usize = 3;
/// How long one world may take.
const LIMIT: Duration = Duration::from_secs(300);

/// What was timed, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// `w`.
    pub ranks: usize,
    /// Bytes that each rank had; 0 for a step.
    pub bytes: usize,
    /// The shortest of all.
    pub least: f64,
    /// The middle one of all.
    pub middle: f64,
}

/// All that was timed, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The processor, as the system names it.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// The MPI library.
    pub mpi: String,
    /// Processes that wanted a core, on the mean of a minute: before, and after.
    pub load: [f64; 2],
    /// All-reduces of `f32`, each with the agreement before it.
    pub sums: Vec<Timed>,
    /// Both ends of the model on one rank alone: the logits, the loss and their gradients.
    pub ends: Timed,
    /// A step of one rank alone.
    pub alone: Timed,
    /// Steps whose ranks share the table and read one batch.
    pub shards: Vec<Timed>,
    /// Steps whose ranks have a copy and a batch each.
    pub copies: Vec<Timed>,
    /// Weights of the blocks.
    pub blocks: usize,
    /// [`Record::table`] as it was printed.
    pub shown: Vec<String>,
}

/// What a world is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Sums,
    Ends,
    Shards,
    Copies,
}

impl Work {
    const ALL: [(&'static str, Self); 4] = [
        ("sums", Self::Sums),
        ("ends", Self::Ends),
        ("shards", Self::Shards),
        ("copies", Self::Copies),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, work)| *work == self).map_or("", |(name, _)| name)
    }
}

/// What a rank has timed: of each size the seconds of all repeats.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Seconds {
    sizes: Vec<(usize, Vec<f64>)>,
    blocks: usize,
}

// --- on a rank ----------------------------------------------------------------------------------

/// What one rank of the program `measure` does; rank 0 prints what it has timed.
///
/// # Errors
/// What the ranks report; a word that names no work.
pub fn rank(comm: &Rc<dyn Communicator>, word: &str) -> Result<()> {
    let work = Work::ALL.iter().find(|(name, _)| *name == word);
    let seconds = match work {
        Some((_, Work::Sums)) => sums(comm.as_ref())?,
        Some((_, Work::Ends)) => ends(comm.as_ref())?,
        Some((_, Work::Shards)) => steps(comm, comm.world_size())?,
        Some((_, Work::Copies)) => steps(comm, 1)?,
        None => return Err(start("the work of ranks", format!("{word:?} is none"))),
    };
    if comm.rank() == 0 {
        println!("{}", serde_json::to_string(&seconds).unwrap_or_default());
    }
    Ok(())
}

fn timed(times: &mut Vec<f64>, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let begun = Instant::now();
    work()?;
    times.push(begun.elapsed().as_secs_f64());
    Ok(())
}

fn sums(comm: &dyn Communicator) -> Result<Seconds> {
    let mut sizes = BYTES.map(|bytes| (bytes, Vec::new())).to_vec();
    for _ in 0..SUMS {
        for (bytes, times) in &mut sizes {
            let mut values = vec![1.0f32; *bytes / 4];
            comm.agree(Call::new("a start", ""), Ok(()))?; // so that all begin together
            timed(times, || match *bytes {
                0 => comm.agree(Call::new("nothing", ""), Ok(())),
                _ => comm.all_reduce(Values::F32(&mut values), Op::Sum),
            })?;
        }
    }
    Ok(Seconds { sizes, blocks: 0 })
}

/// Numbers from -1 to 1 that look random enough to be multiplied.
fn numbers(rows: usize, columns: usize) -> Array2<f32> {
    Array2::from_shape_fn((rows, columns), |(row, column)| {
        ((row * 31 + column * 17) % 101) as f32 / 50.0 - 1.0
    })
}

fn ends(comm: &dyn Communicator) -> Result<Seconds> {
    let Size { vocab_size, hidden_size, batch: (b, s), .. } = Size::SMALL;
    let (x, weight) = (numbers(b * s, hidden_size), numbers(vocab_size, hidden_size));
    let targets: Vec<_> = (0..b * s).map(|token| Some(token * 7 % vocab_size)).collect();
    let mut times = Vec::new();
    for _ in 0..SUMS {
        timed(&mut times, || {
            projected_loss(comm, Order::Any, x.view(), weight.view(), &targets).map(drop)
        })?;
    }
    Ok(Seconds { sizes: vec![(0, times)], blocks: 0 })
}

fn steps(comm: &Rc<dyn Communicator>, world_size: usize) -> Result<Seconds> {
    let grid = Grid::new(comm, world_size)?;
    let (b, s) = Size::SMALL.batch;
    let first = grid.copy();
    let mut model = Size::SMALL.trainer(grid, Size::SMALL.settings(42), Order::Any, false)?;
    let ids = |step: usize| (0..b * s).map(move |t| (t * 13 + step * 5 + first) % 576).collect();
    let mut times = Vec::new();
    for step in 0..=STEPS {
        let batch = Batch { ids: ids(step), next: ids(step + 1), shape: (b, s) };
        comm.agree(Call::new("a start", ""), Ok(()))?;
        timed(&mut times, || model.step(&batch, 0.001).map(drop))?;
    }
    times.remove(0); // it allocates what the others use again
    let weights = model.weights()?;
    let whole = weights.iter().filter(|named| !named.cut).map(|named| named.values.len());
    Ok(Seconds { sizes: vec![(0, times)], blocks: whole.sum() })
}

// --- on all worlds ------------------------------------------------------------------------------

fn start(what: &str, reason: impl std::fmt::Display) -> Error {
    Error::Start { what: what.into(), reason: reason.to_string() }
}

/// How long a rank waits for another one, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Starts a world, and returns what its rank 0 printed.
fn world(program: &Path, ranks: usize, work: Work) -> Result<Seconds> {
    let (arguments, threads) = (vec![work.name().into()], Some(1));
    let (patience, hosts) = (PATIENCE, Hosts::default());
    let launch =
        Launch { program: program.into(), arguments, ranks, threads, patience, piped: true, hosts };
    let mut started = launch.start()?;
    let pipes = started.pipes();
    let mut said = String::new();
    if let Some((_, mut from)) = pipes {
        from.read_to_string(&mut said).map_err(|e| start("the ranks", e))?;
    }
    match started.wait(LIMIT) {
        Ended::Well => serde_json::from_str(&said).map_err(|e| start("what rank 0 printed", e)),
        Ended::Badly(why) => Err(start("the ranks ended", why)),
    }
}

/// The repeats of all turns.
#[derive(Default)]
struct All(Vec<(usize, usize, Vec<f64>)>);

impl All {
    fn take(&mut self, ranks: usize, seconds: Seconds) {
        for (bytes, times) in seconds.sizes {
            match self.0.iter_mut().find(|(w, of, _)| (*w, *of) == (ranks, bytes)) {
                Some((.., all)) => all.extend(times),
                None => self.0.push((ranks, bytes, times)),
            }
        }
    }

    fn timed(self) -> Vec<Timed> {
        let timed = |(ranks, bytes, mut times): (usize, usize, Vec<f64>)| {
            times.sort_by(f64::total_cmp);
            Some(Timed { ranks, bytes, least: *times.first()?, middle: times[times.len() / 2] })
        };
        self.0.into_iter().filter_map(timed).collect()
    }
}

/// Measures. `program` is the binary `measure`; `say` hears what is being done.
///
/// # Errors
/// Ranks that can't be started, or that fail.
pub fn measure(program: &Path, mut say: impl FnMut(&str)) -> Result<Record> {
    let before = load();
    let [mut sums, mut ends, mut alone, mut shards, mut copies] =
        [All::default(), All::default(), All::default(), All::default(), All::default()];
    let mut blocks = 0;
    for turn in 1..=TURNS {
        say(&format!("turn {turn} of {TURNS}: one rank"));
        ends.take(1, world(program, 1, Work::Ends)?);
        let one = world(program, 1, Work::Shards)?;
        blocks = one.blocks;
        alone.take(1, one);
        for ranks in WORLDS {
            say(&format!("turn {turn} of {TURNS}: {ranks} ranks"));
            sums.take(ranks, world(program, ranks, Work::Sums)?);
            shards.take(ranks, world(program, ranks, Work::Shards)?);
            copies.take(ranks, world(program, ranks, Work::Copies)?);
        }
    }
    let single = |all: All| {
        all.timed().first().copied().ok_or_else(|| start("one rank", "it timed nothing"))
    };
    let mut record = Record {
        processor: processor(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        mpi: mpi::environment::library_version().unwrap_or_default(),
        load: [before, load()],
        sums: sums.timed(),
        ends: single(ends)?,
        alone: single(alone)?,
        shards: shards.timed(),
        copies: copies.timed(),
        blocks,
        shown: Vec::new(),
    };
    record.mpi = record.mpi.split([',', '\0']).next().unwrap_or_default().trim().into();
    record.shown = record.table()?.lines().map(str::to_string).collect();
    Ok(record)
}

fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(f64::NAN)
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name"));
    line.and_then(|line| line.split_once(": ")).map_or("unknown".into(), |(_, name)| name.into())
}

// --- the model ----------------------------------------------------------------------------------

/// The kinds of all-reduce that the model knows, with their names.
const KINDS: [(&str, AllReduce); 3] = [
    ("ring", AllReduce::Ring),
    ("recursive doubling", AllReduce::RecursiveDoubling),
    ("halving and doubling", AllReduce::HalvingDoubling),
];

/// A fit, and how far it is from what was measured.
struct Fit {
    costs: Costs,
    /// The least and the largest `model / measured`.
    ratios: (f64, f64),
    /// The sum of their squared distances from 1.
    squares: f64,
}

impl Fit {
    fn of(kind: AllReduce, measured: &[Measured]) -> Result<Self> {
        let costs = Costs::fitted(kind, measured)?;
        let (mut ratios, mut squares) = ((f64::INFINITY, 0.0f64), 0.0);
        for of in measured {
            let ratio = kind.seconds(&costs, of.world_size, of.bytes)? / of.seconds;
            ratios = (ratios.0.min(ratio), ratios.1.max(ratio));
            squares += (ratio - 1.0) * (ratio - 1.0);
        }
        Ok(Self { costs, ratios, squares })
    }
}

impl Record {
    fn measured(&self, ranks: Option<usize>) -> Vec<Measured> {
        let of = |timed: &&Timed| timed.bytes > 0 && ranks.is_none_or(|w| w == timed.ranks);
        let measured = |timed: &Timed| Measured {
            world_size: timed.ranks,
            bytes: timed.bytes as f64,
            seconds: timed.least,
        };
        self.sums.iter().filter(of).map(measured).collect()
    }

    /// Seconds of an all-reduce of so many bytes in a world: the line of that world.
    fn line(&self, ranks: usize) -> Result<(Fit, impl Fn(usize) -> f64 + use<>)> {
        let fit = Fit::of(AllReduce::Ring, &self.measured(Some(ranks)))?;
        let costs = fit.costs;
        let at = move |bytes: usize| {
            AllReduce::Ring.seconds(&costs, ranks, bytes as f64).unwrap_or(f64::NAN)
        };
        Ok((fit, at))
    }

    /// What the model says of a step of `ranks` ranks, against one rank alone, with one table or with copies.
    ///
    /// A rank computes all blocks, and its rows' part of both ends; with copies both ends as well. Ranks that are more than
    /// the cores take turns. Then come the sums, each as long as its line says, and agreements.
    ///
    /// # Errors
    /// Times that no line fits.
    pub fn predicted(&self, ranks: usize, copies: bool) -> Result<f64> {
        let (_, sum) = self.line(ranks)?;
        let agreement = self.sums.iter().find(|timed| (timed.ranks, timed.bytes) == (ranks, 0));
        let agreement = agreement.map_or(0.0, |timed| timed.least);
        let Size { vocab_size: v, hidden_size: h, batch: (b, s), .. } = Size::SMALL;
        let t = b * s;
        let turns = (ranks as f64 / self.cores as f64).max(1.0);
        let (ends, blocks) = (self.ends.least, self.alone.least - self.ends.least);
        let (work, talk) = if copies {
            // The gradients of the table and of the blocks, and the loss.
            (ends + blocks, sum(4 * v * h) + sum(4 * self.blocks) + sum(4))
        } else {
            // The looked-up rows and the gradient of the last tokens; three numbers a token, of which two are `f64`; the
            // norm. Of agreements that no sum follows there are three.
            let numbers = sum(4 * t) + 2.0 * sum(8 * t) + sum(8);
            (ends / ranks as f64 + blocks, 2.0 * sum(4 * t * h) + numbers + 3.0 * agreement)
        };
        Ok((turns * work + talk) / self.alone.least)
    }

    /// What was measured, with the model beside it.
    ///
    /// # Errors
    /// Times that no line fits.
    pub fn table(&self) -> Result<String> {
        let mut text = String::from(
            "all-reduces        agreement     latency   bandwidth   model / measured\n",
        );
        let micro = |seconds: f64| format!("{:.0} us", seconds * 1e6);
        for ranks in WORLDS {
            let (fit, sum) = self.line(ranks)?;
            let agreement = self.sums.iter().find(|of| (of.ranks, of.bytes) == (ranks, 0));
            let (none, many) = (sum(0), 1 << 30);
            let bandwidth = f64::from(many) / (sum(many as usize) - none) / 1e9;
            let _ = writeln!(
                text,
                "{ranks:>8} ranks {:>14} {:>11} {:>6.2} GB/s     {:.2} to {:.2}",
                micro(agreement.map_or(f64::NAN, |of| of.least)),
                micro(none),
                bandwidth,
                fit.ratios.0,
                fit.ratios.1
            );
        }
        let all = self.measured(None);
        text.push_str("\none line for all worlds        message   bandwidth   model / measured\n");
        for (name, kind) in KINDS {
            let Fit { costs, ratios, squares } = Fit::of(kind, &all)?;
            let _ = writeln!(
                text,
                "  {name:<22} {:>13} {:>6.2} GB/s     {:.2} to {:.2}, {squares:.1}",
                micro(costs.message),
                1e-9 / costs.byte,
                ratios.0,
                ratios.1
            );
        }
        text.push_str("\na step against one rank alone    least   middle    model\n");
        let one = self.alone.middle / self.alone.least;
        let _ = writeln!(
            text,
            "  1 rank, {:>3.0} ms {:>22.2} {:>8.2} {:>8.2}",
            1e3 * self.alone.least,
            1.0,
            one,
            1.0
        );
        for (words, steps, copies) in
            [("ranks share a table", &self.shards, false), ("copies", &self.copies, true)]
        {
            for Timed { ranks, least, middle, .. } in steps {
                let _ = writeln!(
                    text,
                    "  {:<28} {:>8.2} {:>8.2} {:>8.2}",
                    format!("{ranks} {words}"),
                    least / self.alone.least,
                    middle / self.alone.least,
                    self.predicted(*ranks, copies)?
                );
            }
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Record {
        serde_json::from_str(include_str!("../../book/src/measured/ranks.json")).unwrap()
    }

    /// The model's numbers in the book are what this code makes of the times in the record.
    #[test]
    fn the_record_shows_what_its_times_say() {
        let record = kept();
        let shown: Vec<String> = record.table().unwrap().lines().map(str::to_string).collect();
        assert_eq!(shown, record.shown, "measure again: see CONTRIBUTING.md");
        let widest = shown.iter().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{widest:?}");
    }

    /// On 2 cores: sums take 1 second each at any size, agreements nothing, both ends 4 of 10 seconds.
    #[test]
    fn the_model_by_hand() {
        let timed = |ranks, bytes, least| Timed { ranks, bytes, least, middle: least };
        let sums = [2, 4].into_iter().flat_map(|ranks| {
            BYTES.map(move |bytes| timed(ranks, bytes, if bytes == 0 { 0.0 } else { 1.0 }))
        });
        let record = Record {
            cores: 2,
            sums: sums.collect(),
            ends: timed(1, 0, 4.0),
            alone: timed(1, 0, 10.0),
            ..kept()
        };
        let near = |got: f64, expected: f64| {
            assert!((got - expected).abs() < 1e-9, "{got}, expected {expected}")
        };
        // Six sums, and half of both ends.
        near(record.predicted(2, false).unwrap(), (2.0 + 6.0 + 6.0) / 10.0);
        // Four ranks take turns on two cores.
        near(record.predicted(4, false).unwrap(), (2.0 * (1.0 + 6.0) + 6.0) / 10.0);
        // Copies have all to do, and add up three times.
        near(record.predicted(2, true).unwrap(), (10.0 + 3.0) / 10.0);
        near(record.predicted(4, true).unwrap(), (20.0 + 3.0) / 10.0);
    }
}
