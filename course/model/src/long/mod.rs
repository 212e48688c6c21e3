//! `cargo course model long`: train short, test long.
//!
//! One model for each position encoding, with the same seed, text and steps, trained at 128 positions and asked about the
//! held-out text at up to 1,024. Source: Press et al. 2022, "Train Short, Test Long".

mod biased;
mod dropout;
pub mod encodings;
mod heads;
mod linear;
pub mod measure;
pub mod report;

use crate::batches::Batches;
use crate::corpus::{Corpus, hex, mean};
use crate::error::{Error, Result, shown};
use crate::figures;
use crate::network::Network;
use crate::run::{self, Settings};
use crate::show::Show;
use crate::sizes::{LONGER, Size};
use crate::stop;
use crate::text::Text;
use crate::train::Training;
use course::arguments::{LongArguments, MOVED, STRETCHED, all_encodings, swept};
use notebook_support::plot::thousands;
use quadrivium::among_threads;
use quadrivium::rope::rotary_frequencies;
use report::{Measured, Report};
use safetensors::SafeTensors;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The highest learning rate, as `train` has it.
pub const RATE: f64 = 0.004;
/// The highest learning rate of a model that goes on from another.
const TUNING_RATE: f64 = 0.001;
/// Checkpoints of a run.
const CHECKPOINTS: usize = 4;
/// Steps whose losses are kept in the numbers, bit for bit.
const BEGINNING: usize = 8;
/// What was measured, in the folder of an encoding.
const MEASURED: &str = "measured.json";

/// Trains what is not trained, measures all, and writes the numbers and the figures.
///
/// # Errors
/// A text or a folder that can't be used; what the library refuses.
pub fn run(arguments: &LongArguments) -> Result<bool> {
    among_threads(|| measure_all(arguments))
}

fn measure_all(arguments: &LongArguments) -> Result<bool> {
    let LongArguments { text, out, steps, tune, seeds, only, sweep, fresh, tiny } = arguments;
    let size = if *tiny { Size::Tiny } else { Size::Small };
    let refused = |name, rule, got: String| Err(Error::Setting { name, rule, got });
    if *steps == 0 || *tune == 0 {
        return refused("--steps and --tune", "at least 1", "0".into());
    }
    if let Some(seed) = (1..seeds.len()).find(|nth| seeds[..*nth].contains(&seeds[*nth])) {
        return refused("--seeds", "different numbers", format!("{} twice", seeds[seed]));
    }
    let names: Vec<&str> = match sweep.is_empty() {
        true => all_encodings()
            .filter(|name| only.is_empty() || only.iter().any(|asked| asked == name))
            .collect(),
        false => swept(sweep),
    };

    let text = Text::read(text)?;
    let config = size.config();
    let corpus = Corpus::new(&text, size.batch(), config.vocab_size)?;
    let (_, s) = size.batch();
    long_enough(&text, &corpus, s)?;
    let asked = measure::blocks(corpus.held_out.len(), s);
    let trigram = mean(&corpus.trigram_losses()[asked.start * s..asked.end * s]);

    let mut show = Show::new();
    show.text(&text, &corpus)?;
    show.model(&config)?;
    let (b, _) = size.batch();
    show.entry("steps", &format!("{} of {b} x {s} tokens, for each", thousands(*steps)))?;
    let longest = thousands(LONGER * s);
    show.entry("asked", &format!("at up to {longest} positions, each band the same tokens"))?;
    show.entry("to beat", &format!("{trigram:.3}, the loss of a 3-gram model there"))?;

    let mut report = Report {
        s,
        steps: *steps,
        tune: *tune,
        tokens: asked.len() * s,
        trigram,
        seeds: Vec::new(),
    };
    stop::on_interrupt();
    for seed in seeds {
        report::head(&mut show, &format!("seed {seed}"), s, LONGER)?;
        let folder = out.join(format!("seed-{seed}"));
        let fingerprint = corpus.fingerprint()?;
        let mut runs = Runs {
            corpus: &corpus,
            text: fingerprint,
            folder,
            settings: (size, *seed, *steps, *tune),
            fresh: *fresh,
            trained: BTreeMap::new(),
        };
        let mut measured = Vec::new();
        for name in &names {
            let one = runs.one(name, &mut show)?;
            report::line(&mut show, name, &one, s, LONGER)?;
            measured.push((name.to_string(), one));
        }
        report.seeds.push((*seed, measured));
    }
    report.show(&mut show, LONGER)?;
    let numbers = out.join(if sweep.is_empty() { "long.json" } else { "sweeps.json" });
    figures::write_text(&numbers, &report.json())?;
    let drawn = if sweep.is_empty() { report.draw(out)? } else { Vec::new() };
    show.line("")?;
    for figure in &drawn {
        show.entry("figure", &shown(figure))?;
    }
    show.entry("numbers", &shown(&numbers))?;
    Ok(true)
}

/// Refuses a text without a whole window, held out and to learn from.
fn long_enough(text: &Text, corpus: &Corpus, s: usize) -> Result<()> {
    let parts = [
        ("training", Batches::least((1, LONGER * s)), corpus.trained.len()),
        ("held-out", measure::least(s), corpus.held_out.len()),
    ];
    for (part, least, got) in parts {
        if got < least {
            return Err(Error::Text {
                name: text.name.clone(),
                rule: format!("its {part} part has at least {least} tokens"),
                got: got.to_string(),
            });
        }
    }
    Ok(())
}

/// A model, and the losses of its first steps, if it has made some.
struct Trained {
    network: Box<dyn Network>,
    began: Vec<f32>,
}

/// The runs of a seed.
struct Runs<'c> {
    corpus: &'c Corpus,
    text: String,
    folder: PathBuf,
    /// Size, seed, steps, and steps of a fine-tuning.
    settings: (Size, u64, usize, usize),
    fresh: bool,
    /// The checkpoints of the models that others go on from, once they are trained.
    trained: BTreeMap<&'static str, PathBuf>,
}

impl Runs<'_> {
    /// The losses of one encoding, whose model is trained before, if it is not yet.
    fn one(&mut self, name: &str, show: &mut Show) -> Result<Measured> {
        let folder = self.folder.join(name);
        let (moved, stretched) = (MOVED.contains(&name), STRETCHED.contains(&name));
        if !moved && !stretched {
            let (training, checkpoint) = self.trained(name, None, show)?;
            return self.measured(name, &training, &checkpoint, show);
        }
        let older = if moved { "sinusoidal" } else { "rope" };
        let from = match self.trained.get(older) {
            Some(from) => from.clone(),
            None => {
                let (_, checkpoint) = self.trained(older, None, show)?;
                self.trained.entry(older).or_insert(checkpoint).clone()
            }
        };
        if moved || name.ends_with("-tuned") {
            let (training, checkpoint) = self.trained(name, Some(&from), show)?;
            return self.measured(name, &training, &checkpoint, show);
        }
        let (size, seed, ..) = self.settings;
        let mut network = encodings::network(name, size, seed)?;
        network.take_weights(&from)?;
        std::fs::create_dir_all(&folder).map_err(|e| Error::write(&folder, e))?;
        let untrained = Trained { network, began: Vec::new() };
        self.measured(name, &untrained, &from, show)
    }

    /// A model at the end of its run, and its checkpoint. If it goes on from another, it begins with those weights.
    fn trained(
        &mut self,
        name: &str,
        from: Option<&Path>,
        show: &mut Show,
    ) -> Result<(Trained, PathBuf)> {
        let (size, seed, steps, tune) = self.settings;
        let (steps, rate) = if from.is_some() { (tune, TUNING_RATE) } else { (steps, RATE) };
        let settings = Settings {
            size,
            mine: false,
            seed,
            steps,
            rate,
            text: self.text.clone(),
            encoding: Some(name.to_string()),
            tuned_from: from.map(weights_of).transpose()?,
        };
        let folder = self.folder.join(name);
        let every = steps.div_ceil(CHECKPOINTS);
        let make = || {
            let mut network = encodings::network(name, size, seed)?;
            if let Some(from) = from {
                network.take_weights(from)?;
            }
            Ok(network)
        };
        let (mut training, _) =
            Training::open(&folder, self.corpus, &settings, (self.fresh, every), make)?;
        show.begin_one(name, &training.state);
        training.go_on(show)?;
        let checkpoint =
            run::newest(&folder).ok_or_else(|| Error::NoModel { path: shown(&folder) })?;
        let began = training.state.losses.iter().copied().take(BEGINNING).collect();
        Ok((Trained { network: training.network, began }, checkpoint))
    }

    /// What was measured of these weights before, or what is measured now.
    fn measured(
        &self,
        name: &str,
        Trained { network, began }: &Trained,
        checkpoint: &Path,
        show: &mut Show,
    ) -> Result<Measured> {
        let file = self.folder.join(name).join(MEASURED);
        let weights = weights_of(checkpoint)?;
        let known = std::fs::read(&file).ok().filter(|_| !self.fresh);
        let known = known.and_then(|json| serde_json::from_slice::<Measured>(&json).ok());
        let of_these = |m: &Measured| m.weights == weights && m.text == self.text;
        if let Some(known) = known.filter(of_these) {
            return Ok(known);
        }
        let (_, s) = self.settings.0.batch();
        let network = network.as_ref();
        show.doing(format!("{name} is asked at up to {} positions", thousands(LONGER * s)));
        let tokens = &self.corpus.held_out;
        let end = measure::end(network, tokens, s)?;
        let losses = match (name, &end) {
            ("dynamic-ntk", _) => measure::by_length(network, tokens, s)?,
            (_, None) => measure::by_position(network, tokens, s, LONGER)?,
            (_, Some(_)) => measure::by_position(network, tokens, s, 1)?,
        };
        let (began, text) = (began.clone(), self.text.clone());
        let theta = frequencies_of(checkpoint)?;
        let measured = Measured { weights, text, began, end, losses, theta };
        let json = serde_json::to_string(&measured).map_err(|e| Error::write(&file, e))?;
        figures::write_text(&file, &format!("{json}\n"))?;
        show.end();
        Ok(measured)
    }
}

/// The frequencies of each block, if they were trained: as they are, or as a factor's logarithm.
fn frequencies_of(checkpoint: &Path) -> Result<Vec<Vec<f64>>> {
    let file = checkpoint.join("model.safetensors");
    let bytes = std::fs::read(&file).map_err(|e| Error::broken(&file, e))?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|e| Error::broken(&file, e))?;
    let mut blocks = Vec::new();
    for (name, tensor) in tensors.tensors() {
        let values = tensor.data().chunks_exact(4);
        let values =
            values.map(|four| f64::from(f32::from_le_bytes([four[0], four[1], four[2], four[3]])));
        let values: Vec<f64> = if name.ends_with("position.theta") {
            values.collect()
        } else if name.ends_with("position.alpha") {
            let values: Vec<f64> = values.collect();
            let plain = rotary_frequencies(2 * values.len(), encodings::BASE, 1.0)?;
            plain.into_iter().zip(values).map(|(theta, alpha)| theta * alpha.exp()).collect()
        } else {
            continue;
        };
        blocks.push((name, values));
    }
    blocks.sort_by(|(a, _), (b, _)| a.cmp(b)); // fewer than ten blocks
    Ok(blocks.into_iter().map(|(_, values)| values).collect())
}

/// A number that is another one for other weights.
fn weights_of(checkpoint: &Path) -> Result<String> {
    let file = checkpoint.join("model.safetensors");
    let bytes = std::fs::read(&file).map_err(|e| Error::broken(&file, e))?;
    Ok(hex(&Sha256::digest(bytes)))
}
