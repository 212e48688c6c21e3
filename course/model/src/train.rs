//! `cargo course model train`.

use crate::batches::Batches;
use crate::corpus::{Corpus, mean};
use crate::error::{Error, Moment, Result};
use crate::figures;
use crate::guard::guarded;
use crate::mine::{Mine, asked};
use crate::network::{Library, Network, Trainee};
use crate::run::{self, Run, Settings, State};
use crate::show::Show;
use crate::sizes::{self, SMALL_VOCAB, Size, TINY_VOCAB};
use crate::stop;
use crate::text::Text;
use course::arguments::TrainArguments;
use quadrivium::among_threads;
use quadrivium::checkpoint::CheckpointConfig;
use quadrivium::training::Schedule;
use std::path::Path;
use std::time::Instant;

/// The part of all steps in which the rate rises.
const WARMUP: usize = 20;
/// The part of the highest rate that the last step has.
const END: f64 = 10.0;

/// The learning rate of each step of a run.
pub fn schedule(settings: &Settings) -> Schedule {
    let Settings { steps, rate, .. } = *settings;
    Schedule { peak: rate, warmup: (steps / WARMUP).max(1), steps, end: rate / END }
}

/// A model that is to be trained, of the library's parts.
///
/// # Errors
/// What the library refuses.
pub fn network(size: Size, config: CheckpointConfig, seed: u64) -> Result<Box<dyn Network>> {
    let dev = sizes::device();
    Ok(match size {
        Size::Small => {
            let model = sizes::small(&dev, seed)?;
            Box::new(Trainee::<SMALL_VOCAB, _>::new(&dev, model, Library, config)?)
        }
        Size::Tiny => {
            let model = sizes::tiny(&dev, seed)?;
            Box::new(Trainee::<TINY_VOCAB, _>::new(&dev, model, Library, config)?)
        }
    })
}

/// Trains, or goes on. `mine` is the learner's code, where the program has it. Returns whether the learner's parts, if they are asked for, agree with the library's.
///
/// # Errors
/// A text or a folder that can't be used; what the library refuses.
pub fn run(arguments: &TrainArguments, mine: Option<&Mine>) -> Result<bool> {
    // A step is hundreds of short calls.
    among_threads(|| train(arguments, mine))
}

fn train(arguments: &TrainArguments, mine: Option<&Mine>) -> Result<bool> {
    let TrainArguments { text, out, steps, seed, rate, every, fresh, mine: is_mine, tiny } =
        arguments;
    let mine = asked(*is_mine, mine)?;
    let size = if *tiny { Size::Tiny } else { Size::Small };
    let refused = |name, rule, got: String| Err(Error::Setting { name, rule, got });
    for (name, number) in [("--steps", *steps), ("--every", *every)] {
        if number == 0 {
            return refused(name, "at least 1", "0".into());
        }
    }
    if !(*rate > 0.0 && *rate <= 1.0) {
        return refused("--rate", "above 0 and at most 1", rate.to_string());
    }
    let text = Text::read(text)?;
    let config = size.config();
    let corpus = Corpus::new(&text, size.batch(), config.vocab_size)?;
    let settings = Settings {
        size,
        mine: mine.is_some(),
        seed: *seed,
        steps: *steps,
        rate: *rate,
        text: corpus.fingerprint()?,
        encoding: None,
        tuned_from: None,
    };
    let trigram = corpus.trigram_losses();
    let mut show = Show::new();
    show.text(&text, &corpus)?;
    show.model(&config)?;

    let make = || match mine {
        Some(mine) => (mine.network)(size, &config, *seed),
        None => network(size, config.clone(), *seed),
    };
    let (mut training, goes_on) = Training::open(out, &corpus, &settings, (*fresh, *every), make)?;
    if let Some(parts) = training.network.parts() {
        show.parts(&parts)?;
    }
    let begun = training.state.step;
    stop::made(begun);
    stop::saved(begun);
    stop::on_interrupt();
    show.begin(&training.state, goes_on, mean(&trigram))?;
    let start = Instant::now();
    let agrees = training.go_on(&mut show)?;
    let made = training.state.step - begun;
    let (b, s) = settings.shape();
    show.took(begun, made * b * s, start.elapsed())?;
    let Training { state, network, .. } = &training;
    if let Some(differs) = network.differs() {
        show.differs(&differs)?;
        return Ok(agrees);
    }
    if let Some(apart) = network.apart() {
        show.agrees(apart)?;
    }
    let model = show.measured(|| losses(network.as_ref(), &corpus))?;
    let advice = "More --steps with --fresh may help, or more text.";
    show.result(&corpus, &trigram, &model, Some(advice))?;
    let figure = out.join("loss.svg");
    let curve = figures::curve(state, mean(&trigram));
    figures::write(&figure, &curve.figure()?)?;
    figures::write_text(&out.join("loss.json"), &figures::json(&curve))?;
    let written = run::newest(out).unwrap_or_default();
    show.written(&written, &figure)?;
    Ok(agrees)
}

/// The loss of each held-out token.
///
/// # Errors
/// What the library refuses.
pub fn losses(network: &dyn Network, corpus: &Corpus) -> Result<Vec<f64>> {
    let mut losses = Vec::new();
    for batch in corpus.asked() {
        losses.extend(network.losses(&batch)?);
    }
    Ok(losses)
}

/// A run at work.
pub struct Training<'c> {
    /// Its folder.
    pub folder: Run,
    /// Its text.
    pub corpus: &'c Corpus,
    /// How far it is.
    pub state: State,
    /// The model.
    pub network: Box<dyn Network>,
    /// Steps between two checkpoints, each with a look at the held-out text.
    pub every: usize,
}

impl<'c> Training<'c> {
    /// Takes the folder of a run, which begins there with the model of `make`, or goes on. The second value says which.
    /// `every` are the steps between two checkpoints.
    ///
    /// # Errors
    /// A folder that can't be used, or that holds another run; what `make` reports.
    pub fn open(
        out: &Path,
        corpus: &'c Corpus,
        settings: &Settings,
        (fresh, every): (bool, usize),
        make: impl FnOnce() -> Result<Box<dyn Network>>,
    ) -> Result<(Self, bool)> {
        let folder = Run::open(out)?;
        let older = run::newest(out).filter(|_| !fresh);
        let state = match &older {
            None => State::new(settings.clone()),
            Some(checkpoint) => run::state(checkpoint)?,
        };
        run::same(out, &state.settings, settings)?;
        let shape = settings.shape();
        let read = Batches::new(&corpus.trained, settings.seed, shape).after(state.step);
        if state.position != read {
            let (file, step) = (older.unwrap_or_default().join("training.json"), state.step);
            let reason =
                format!("step {step} has read up to {read:?}, not to {:?}", state.position);
            return Err(Error::broken(&file, reason));
        }
        let mut network = guarded(settings.mine, Moment::Start, make)?;
        if let Some(checkpoint) = &older {
            network.load(checkpoint, state.step)?;
        }
        match fresh {
            true => folder.check_ours()?, // the first checkpoint of this run takes the place of the others
            false => folder.tidy()?,
        }
        Ok((Self { folder, corpus, state, network, every }, older.is_some()))
    }

    // ANCHOR: go_on
    /// Makes the steps that are left. Each depends on the state alone: where the text is read, the weights, the optimizer.
    /// It therefore does not matter whether the process that makes it is the one that made the step before.
    ///
    /// # Errors
    /// What the library refuses; a checkpoint that can't be written.
    pub fn go_on(&mut self, show: &mut Show) -> Result<bool> {
        let Self { folder, corpus, state, network, every } = self;
        let settings = state.settings.clone();
        let schedule = schedule(&settings);
        let mut batches = Batches::new(&corpus.trained, settings.seed, settings.shape());
        if state.held_out.is_empty() {
            checkpoint(folder, corpus, state, network.as_mut(), show)?;
        }
        while state.step < settings.steps {
            let (batch, position) = batches.at(state.position);
            let nth = state.step;
            let seen = guarded(settings.mine, Moment::Step(nth), || network.look(&batch))?;
            if network.differs().is_some() {
                return Ok(false);
            }
            network.update(schedule.rate(nth))?;
            state.losses.push(seen.loss);
            state.step = nth + 1;
            state.position = position;
            stop::made(state.step);
            show.step(state);
            if state.step % *every == 0 || state.step == settings.steps {
                checkpoint(folder, corpus, state, network.as_mut(), show)?;
            }
        }
        show.end();
        Ok(true)
    }
    // ANCHOR_END: go_on
}

/// Looks at the held-out text, and writes a checkpoint.
fn checkpoint(
    folder: &Run,
    corpus: &Corpus,
    state: &mut State,
    network: &mut dyn Network,
    show: &mut Show,
) -> Result<()> {
    let losses =
        guarded(state.settings.mine, Moment::Step(state.step), || losses(network, corpus))?;
    state.held_out.push((state.step, mean(&losses)));
    folder.save(state, network, &corpus.tokens)?;
    stop::saved(state.step);
    show.checkpoint(state)
}
