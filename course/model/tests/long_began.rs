//! The committed curves of `cargo course model long` can be made again: each model's first losses, bit for bit.

use course::arguments::{MOVED, STRETCHED, SWEEPS, all_encodings, swept};
use model::batches::{Batches, Position};
use model::corpus::Corpus;
use model::long::{RATE, encodings};
use model::run::Settings;
use model::sizes::Size;
use model::text::Text;
use model::train::schedule;
use serde_json::Value;

/// Of the eight that are kept: a step takes a quarter of a second without full optimization.
const STEPS: usize = 4;
const COMMITTED: &str = include_str!("../../../book/src/measured/long.json");
const SWEPT: &str = include_str!("../../../book/src/measured/sweeps.json");

#[test]
fn each_curve_begins_as_it_was_measured() {
    let trained = all_encodings().filter(|name| !STRETCHED.contains(name) && !MOVED.contains(name));
    begins_as_it_was_measured(COMMITTED, trained);
}

#[test]
fn each_sweep_begins_as_it_was_measured() {
    begins_as_it_was_measured(SWEPT, swept(&SWEEPS.map(|(name, _)| name.to_string())).into_iter());
}

/// Trains the first steps of these models again, with the first seed of a file of numbers.
fn begins_as_it_was_measured(committed: &str, names: impl Iterator<Item = &'static str>) {
    let committed: Value = serde_json::from_str(committed).unwrap();
    let steps = committed["steps"].as_u64().unwrap() as usize;
    let size = Size::Small;
    let corpus = Corpus::new(&Text::book(), size.batch(), size.config().vocab_size).unwrap();
    let first = &committed["seeds"][0];
    let seed = first["seed"].as_u64().unwrap();
    for name in names {
        let of = |encoding: &&Value| encoding["name"] == name;
        let encoding = first["encodings"].as_array().unwrap().iter().find(of).unwrap();
        let began: Vec<f32> = serde_json::from_value(encoding["began"].clone()).unwrap();
        assert!(!began.is_empty(), "{name}");
        let settings = Settings {
            size,
            mine: false,
            seed,
            steps,
            rate: RATE,
            text: corpus.fingerprint().unwrap(),
            encoding: Some(name.to_string()),
            tuned_from: None,
        };
        let schedule = schedule(&settings);
        let mut network = encodings::network(name, size, seed).unwrap();
        let mut batches = Batches::new(&corpus.trained, seed, settings.shape());
        let mut position = Position::default();
        for (nth, was) in began.iter().take(STEPS).enumerate() {
            let (batch, next) = batches.at(position);
            let seen = network.look(&batch).unwrap();
            assert_eq!(
                seen.loss.to_bits(),
                was.to_bits(),
                "{name}, step {nth}: {} is not {was}",
                seen.loss
            );
            network.update(schedule.rate(nth)).unwrap();
            position = next;
        }
    }
}
