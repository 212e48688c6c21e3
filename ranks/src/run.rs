//! `cargo course ranks`: what the command does, and what each rank of it does.

use crate::checkpoint;
use crate::communicator::{Call, Communicator, Order, accept};
use crate::disks::read_or_sent;
use crate::error::{Error, Refusal, Result};
use crate::folder::{self, Beginning};
use crate::launch::{Ended, Hosts, Launch, as_rank, end_on_interrupt};
use crate::roll::host;
use crate::show::{self, OfRank, Run};
use crate::size::{BLOCK, Size};
use crate::start::Setup;
use crate::train::{Batch, Grid, Steps};
use crate::watch;
use course::arguments::{Fault, FaultKind, RanksArguments, SumOrder};
use model::batches::{Batches, Position};
use model::corpus::Corpus;
use model::sizes;
use model::text::Text;
use model::tokens::Tokens;
use quadrivium::training::Schedule;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The highest learning rate, as for `cargo course model train`.
const RATE: f64 = 0.004;
const MOST_RANKS: u64 = 1024;
/// How many, if neither the arguments nor a world that is there already says so.
const RANKS: usize = 4;
/// In seconds: a year.
const MOST_PATIENCE: u64 = 365 * 24 * 3600;
/// How long a run may take: it does not end by itself.
const FOREVER: Duration = Duration::from_secs(u32::MAX as u64);

/// Whether this process is a rank: one that [`launch`] has started, or one of a world that mpirun or srun has.
pub fn is_rank() -> bool {
    watch::started_as().is_some()
}

/// The size of a model that begins with random weights.
fn size(arguments: &RanksArguments) -> Size {
    if arguments.tiny { Size::TINY } else { Size::SMALL }
}

/// Checks what can be checked without the others.
fn check(arguments: &RanksArguments, ranks: usize, size: Size) -> Result<()> {
    let RanksArguments { copies, steps, every, patience, .. } = arguments;
    let within = |name, most: u64, value: u64| match value {
        0 => Err(Error::Setting { name, rule: "at least 1".into(), got: "0".into() }),
        _ if value > most => {
            Err(Error::Setting { name, rule: format!("at most {most}"), got: value.to_string() })
        }
        _ => Ok(()),
    };
    within("--ranks", MOST_RANKS, ranks as u64)?;
    within("--copies", MOST_RANKS, *copies as u64)?;
    within("--steps", u64::MAX, *steps as u64)?;
    within("--every", u64::MAX, *every as u64)?;
    within("--patience", MOST_PATIENCE, *patience)?;
    if ranks % copies != 0 {
        let (name, rule) = ("--ranks", format!("a multiple of --copies, which is {copies}"));
        return Err(Error::Setting { name, rule, got: ranks.to_string() });
    }
    if let Some(fault) = arguments.fault.filter(|fault| fault.rank >= ranks) {
        let (name, rule) = ("--fault", format!("of a rank below {ranks}"));
        return Err(Error::Setting { name, rule, got: fault.rank.to_string() });
    }
    size.check(ranks / copies, arguments.tensor_parallel)?;
    if let Some(text) = arguments.text.as_ref().filter(|text| text.exists() && !text.is_file()) {
        let got = format!("{}, which is none", text.display());
        // Each rank reads it, so what can be read once only is not enough.
        return Err(Error::Setting { name: "--text", rule: "a file".into(), got });
    }
    Ok(())
}

/// Starts ranks, and waits for their end.
///
/// # Errors
/// Arguments that fit no grid; a text or a folder that can't be used; no MPI; a rank that ended, with its reason.
pub fn launch(arguments: &RanksArguments) -> Result<()> {
    let RanksArguments { hostfile, host, mpirun, out, .. } = arguments;
    let hosts = Hosts { files: hostfile.clone(), names: host.clone(), mpirun: mpirun.clone() };
    let ranks = match arguments.ranks {
        None if !hosts.is_here() => {
            let (name, rule) =
                ("--ranks", "given if hosts are, because mpirun fills their slots in order");
            return Err(Error::Setting { name, rule: rule.into(), got: "none".into() });
        }
        ranks => ranks,
    };
    let beginning = arguments.model.as_deref().map(Beginning::read).transpose()?;
    let size = beginning.as_ref().map_or(size(arguments), |beginning| beginning.size);
    let most = match arguments.tensor_parallel {
        true => size.config().num_key_value_heads.saturating_mul(arguments.copies),
        false => RANKS,
    };
    let ranks = ranks.unwrap_or(most);
    check(arguments, ranks, size)?;
    if let Some(out) = out.as_ref().filter(|out| !hosts.is_here() && out.is_relative()) {
        let (name, rule) =
            ("--out", "an absolute path, because hosts may begin in different folders");
        return Err(Error::Setting { name, rule: rule.into(), got: out.display().to_string() });
    }
    if std::env::var_os("SLURM_STEP_NUM_TASKS").is_some_and(|tasks| tasks != "1") {
        return Err(Error::Start {
            what: "srun has started tasks that do not know each other".into(),
            reason: "they meet through PMIx; start them with srun --mpi=pmix".into(),
        });
    }
    corpus(&read(arguments)?, arguments.copies, size, beginning.map(|beginning| beginning.tokens))?;
    let program = std::env::current_exe().map_err(|e| Error::Start {
        what: "this program does not find itself".into(),
        reason: e.to_string(),
    })?;
    end_on_interrupt();
    let mut started = Launch {
        program,
        arguments: std::env::args_os().skip(1).collect(),
        ranks,
        threads: None,
        piped: false,
        patience: Duration::from_secs(arguments.patience),
        hosts,
    }
    .start()?;
    match started.wait(FOREVER) {
        Ended::Well => Ok(()),
        Ended::Badly(reason) => Err(Error::Start { what: "the ranks ended".into(), reason }),
    }
}

fn of_text(e: impl std::fmt::Display) -> Error {
    Error::Start { what: "the text".into(), reason: e.to_string() }
}

fn read(arguments: &RanksArguments) -> Result<Text> {
    Text::read(arguments.text.as_slice()).map_err(of_text)
}

/// The text in tokens. The tokenizer is trained on it, unless a model brings one.
fn corpus(text: &Text, copies: usize, size: Size, tokens: Option<Tokens>) -> Result<Corpus> {
    // All copies together read one batch.
    let shape = (size.batch.0 * copies, size.batch.1);
    match tokens {
        Some(tokens) => Corpus::with_tokens(text, tokens, shape, size.vocab_size),
        None => Corpus::new(text, shape, size.vocab_size),
    }
    .map_err(of_text)
}

/// The text, from this rank's host or from another one.
fn text(world: &dyn Communicator, arguments: &RanksArguments) -> Result<Text> {
    let mine = watch::alone("the reading of the text", || read(arguments));
    let name = mine.as_ref().map(|text| text.name.clone());
    let name = read_or_sent(world, name.map(String::into_bytes).map_err(Error::clone))??;
    let content = read_or_sent(world, mine.map(|text| text.content.into_bytes()))??;
    let words = |bytes| String::from_utf8(bytes).map_err(of_text);
    Ok(Text { name: words(name)?, content: words(content)? })
}

/// What one rank of the command does.
pub fn rank(arguments: &RanksArguments) {
    watch::end_with_mpirun();
    let fault = |kind: FaultKind, step: usize| {
        let (rank, _) = watch::started_as().unwrap_or_default();
        arguments.fault == Some(Fault { rank, kind, step })
    };
    if fault(FaultKind::Never, 0) {
        sleep_for_good();
    }
    let patience = Duration::from_secs(arguments.patience);
    if fault(FaultKind::Late, 0) {
        watch::begin(patience);
        sleep_for_good();
    }
    as_rank(patience, |world| train(world, arguments, &fault));
}

fn sleep_for_good() -> ! {
    loop {
        std::thread::sleep(FOREVER);
    }
}

fn train(
    world: &Rc<dyn Communicator>,
    arguments: &RanksArguments,
    fault: &dyn Fn(FaultKind, usize) -> bool,
) -> Result<()> {
    let ranks = world.world_size();
    if let Some(got) = arguments.ranks.filter(|wanted| *wanted != ranks) {
        let (name, rule) = ("--ranks", format!("{ranks}, as many as were started, or left out"));
        return Err(Error::Setting { name, rule, got: got.to_string() });
    }
    let read = |folder: &PathBuf| Beginning::read_or_sent(world.as_ref(), folder);
    let beginning = arguments.model.as_ref().map(read).transpose()?;
    let mut size = beginning.as_ref().map_or(size(arguments), |beginning| beginning.size);
    check(arguments, ranks, size)?;
    let vocab_size = size.vocab_size;
    if fault(FaultKind::Vocabulary, 0) {
        size.vocab_size -= 12;
    }
    let RanksArguments { copies, steps, order, tensor_parallel, .. } = arguments;
    let seed = arguments.seed.wrapping_add(u64::from(fault(FaultKind::Seed, 0)));
    let text = text(world.as_ref(), arguments)?;
    let tokens = beginning.as_ref().map(|beginning| beginning.tokens.clone());
    let mut corpus = watch::alone("tokenizing the text", || corpus(&text, *copies, size, tokens))?;
    if fault(FaultKind::Text, 0) {
        corpus.trained.pop();
    }
    let digest = corpus.fingerprint().map_err(of_text)?;
    let first_weights = match &beginning {
        Some(of) => format!("{} and settings {}", of.fingerprint(), of.settings()),
        None => format!("of seed {seed}"),
    };
    let mut setup = Setup::new(&[
        ("the world size", ranks.to_string()),
        ("copies", copies.to_string()),
        ("--tensor-parallel", tensor_parallel.to_string()),
        ("the vocabulary", size.vocab_size.to_string()),
        ("the hidden size", size.hidden_size.to_string()),
        ("the seed", seed.to_string()),
        ("the steps", steps.to_string()),
        ("first weights", first_weights.clone()),
        ("the order of sums", format!("{order:?}")),
        ("a text whose tokens have the fingerprint", digest[..16].to_string()),
    ]);
    if fault(FaultKind::Version, 0) {
        setup.0[0].1 = "0.0.1".into();
    }
    setup.agree(world.as_ref())?;
    size.vocab_size = vocab_size;

    let order = match order {
        SumOrder::Fixed => Order::Fixed { block: BLOCK },
        SumOrder::Any => Order::Any,
    };
    let config = beginning.as_ref().map_or(size.config(), |beginning| beginning.config.clone());
    let settings = sizes::settings(&config, seed);
    let grid = Grid::new(world, ranks / copies)?;
    let mut model = size.trainer(grid, settings, order, *tensor_parallel)?;
    let mut begun_from = String::new();
    if let Some(beginning) = beginning {
        let shards = &model.grid().shards;
        let part = (shards.rank(), shards.world_size());
        let own = beginning.of_rank(part, *tensor_parallel);
        model.take_weights(&own)?;
        begun_from = format!("first weights {first_weights}, ");
    }
    // Not the number of ranks: any number may go on.
    let cut = if *tensor_parallel { "blocks cut, " } else { "" };
    let run = format!(
        "{begun_from}{cut}seed {seed}, {steps} steps, {copies} copies, sums in {} order, text {}",
        if order == Order::Any { "any" } else { "fixed" },
        &digest[..16]
    );
    let lock = |dir: &PathBuf| checkpoint::lock_all(world.as_ref(), dir);
    let _lock = arguments.out.as_ref().map(lock).transpose()?;
    let (mut step, newest) = match &arguments.out {
        Some(dir) => go_on(model.as_mut(), dir, (&run, *steps))?,
        None => (0, 0),
    };
    let begun = step;
    let schedule =
        Schedule { peak: RATE, warmup: (steps / 20).max(1), steps: *steps, end: RATE / 10.0 };
    let shape = (size.batch.0 * copies, size.batch.1);
    let mut batches = Batches::new(&corpus.trained, seed, shape);
    let mut position: Position = batches.after(step);
    let mut report = Run::new(&text, &corpus, size, (*copies, *tensor_parallel), order, begun);
    let mut owned = Owned::new(size.vocab_size, model.grid().shards.as_ref());
    let before = (sent(model.as_ref()), waited(model.as_ref()), Instant::now());
    while step < *steps {
        disturb(fault, step);
        let (batch, next) = batches.at(position);
        let mut batch = part(&batch, model.grid().copy(), size.batch);
        if fault(FaultKind::Batch, step) {
            batch.ids.swap(0, 1);
            batch.ids[0] = (batch.ids[0] + 1) % size.vocab_size;
        }
        owned.count(&batch.ids);
        let seen = model.step(&batch, schedule.rate(step))?;
        report.losses.push(seen.loss);
        (position, step) = (next, step + 1);
        if let Some(dir) = &arguments.out
            && (step % arguments.every == 0 || step == *steps)
        {
            let dir = if fault(FaultKind::Disk, step) { Path::new("/dev/null") } else { dir };
            save(model.as_mut(), dir, (step, &run))?;
        }
    }
    let cut_values: usize =
        model.weights()?.iter().filter(|named| named.cut).map(|named| named.values.len()).sum();
    let mine = OfRank {
        rank: world.rank(),
        host: host(),
        copy: model.grid().copy(),
        rows: owned.rows.clone(),
        shard_bytes: 4 * cut_values,
        owned: owned.part(),
        sent: sent(model.as_ref()) - before.0,
        seconds: before.2.elapsed().as_secs_f64(),
        waited: (waited(model.as_ref()) - before.1).as_secs_f64(),
    };
    report.in_parts = (newest > begun).then_some(newest);
    let whole = folder::gathered(model.as_mut())?;
    report.weights = folder::digest(&whole);
    if let Some(dir) = &arguments.out {
        let last = checkpoint::folder_of(dir, *steps);
        folder::write(world.as_ref(), &whole, (&config, &corpus.tokens), &last)?;
    }
    let all = world.gather(&serde_json::to_vec(&mine).unwrap_or_default())?;
    if world.rank() == 0 {
        report.ranks = all.iter().filter_map(|bytes| serde_json::from_slice(bytes).ok()).collect();
        // A reader that has gone is no reason to end the others.
        let _ = if arguments.json { show::json(&report) } else { show::table(&report) };
    }
    Ok(())
}

/// What happens to this rank before a step.
fn disturb(fault: &dyn Fn(FaultKind, usize) -> bool, step: usize) {
    if fault(FaultKind::Stuck, step) {
        sleep_for_good();
    }
    if fault(FaultKind::Leaves, step) {
        std::process::exit(0);
    }
    assert!(!fault(FaultKind::Panics, step), "on purpose, at step {step}");
}

/// The rows of a batch that one copy reads.
fn part(batch: &model::batches::Batch, copy: usize, (b, s): (usize, usize)) -> Batch {
    let places = copy * b * s..(copy + 1) * b * s;
    Batch {
        ids: batch.ids[places.clone()].to_vec(),
        next: batch.next[places].to_vec(),
        shape: (b, s),
    }
}

fn sent(model: &dyn Steps) -> u64 {
    model.grid().groups().map(|comm| comm.sent()).sum()
}

fn waited(model: &dyn Steps) -> Duration {
    model.grid().groups().map(|comm| comm.waited()).sum()
}

/// Writes a checkpoint, from the first copy. All ranks wait for it.
fn save(model: &mut dyn Steps, dir: &Path, (step, run): (usize, &str)) -> Result<()> {
    let state = model.state()?;
    let grid = model.grid();
    let saved = match grid.copy() {
        0 => checkpoint::save(grid.shards.as_ref(), dir, (step, run), &state),
        _ => Ok(()),
    };
    grid.in_all_copies("a checkpoint", saved)
}

/// Takes the newest checkpoint, if there is one, and returns its step and that of the newest that was begun.
fn go_on(model: &mut dyn Steps, dir: &Path, (run, steps): (&str, usize)) -> Result<(usize, usize)> {
    let grid = model.grid();
    let Some((newest, begun)) = checkpoint::newest_of_all(grid.world.as_ref(), dir)? else {
        return Ok((0, 0));
    };
    let folder = checkpoint::folder_of(dir, newest);
    let (index, state) = checkpoint::load(grid.world.as_ref(), grid.shards.as_ref(), &folder)?;
    let path = folder.display().to_string();
    if index.run != run {
        let reason = format!(
            "it is of another run ({}), and this one is of {run}; give the same settings, or name another folder with --out",
            index.run
        );
        return Err(Error::Checkpoint { path, reason });
    }
    if index.step > steps {
        let reason = format!("it is of step {}, and a run has {steps}", index.step);
        return Err(Error::Checkpoint { path, reason });
    }
    let taken = model.take_state(index.step, &state).map_err(Refusal::from);
    let world = model.grid().world.clone();
    accept(world.as_ref(), Call::new("a checkpoint", "its weights"), taken)?;
    if begun > index.step {
        checkpoint::forget_newer(world.as_ref(), dir, index.step)?;
    }
    Ok((index.step, begun))
}

/// How many of the tokens that were read are this rank's own.
struct Owned {
    rows: std::ops::Range<usize>,
    own: usize,
    all: usize,
}

impl Owned {
    fn new(vocab_size: usize, shards: &dyn Communicator) -> Self {
        let n = vocab_size / shards.world_size();
        Self { rows: shards.rank() * n..(shards.rank() + 1) * n, own: 0, all: 0 }
    }

    fn count(&mut self, ids: &[usize]) {
        self.own += ids.iter().filter(|id| self.rows.contains(id)).count();
        self.all += ids.len();
    }

    fn part(&self) -> f64 {
        self.own as f64 / self.all.max(1) as f64
    }
}
