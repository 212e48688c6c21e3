//! `cargo course model eval`.

use crate::corpus::{Corpus, by_position, mean};
use crate::error::{Error, Result, shown};
use crate::figures;
use crate::network::{Library, Network, Trainee};
use crate::opened::{Opened, has_positions};
use crate::show::Show;
use crate::sizes::{SMALL_VOCAB, Size, Small, TINY_VOCAB, Tiny, device};
use crate::text::Text;
use crate::train::losses;
use course::arguments::EvalArguments;

/// Looks at a model's held-out loss, as a whole and by position.
///
/// # Errors
/// A model or a text that can't be used; a figure that can't be written.
pub fn run(arguments: &EvalArguments) -> Result<bool> {
    let EvalArguments { text: named, model: place, out } = arguments;
    let text = Text::read(named)?;
    text.check()?;
    let dev = device();
    let (opened, network) = Opened::with(place, |Opened { checkpoint, size, .. }| {
        let config = checkpoint.config().clone();
        let network: Box<dyn Network> = match size {
            Size::Small => {
                let model = Small::from_checkpoint(&dev, checkpoint)?;
                Box::new(Trainee::<SMALL_VOCAB, _>::new(&dev, model, Library, config)?)
            }
            Size::Tiny => {
                let model = Tiny::from_checkpoint(&dev, checkpoint)?;
                Box::new(Trainee::<TINY_VOCAB, _>::new(&dev, model, Library, config)?)
            }
        };
        Ok(network)
    })?;
    let Opened { checkpoint, tokens, size, state } = opened;
    let config = checkpoint.config();
    has_positions(config, size.batch().1)?;
    let corpus = Corpus::with_tokens(&text, tokens, size.batch(), config.vocab_size)?;
    // Where no run wrote the model, it is unknown what it has seen.
    let is_another = match &state {
        Some(state) => state.settings.text != corpus.fingerprint()?,
        None => false,
    };
    if is_another && named.is_empty() {
        return Err(Error::OtherText { path: shown(place) });
    }
    let mut show = Show::new();
    let model = show.measured(|| losses(network.as_ref(), &corpus))?;
    let out = out.as_ref().unwrap_or(place);
    let trigram = corpus.trigram_losses();
    let s = size.batch().1;
    let (model_by, trigram_by) = (by_position(&model, s), by_position(&trigram, s));
    std::fs::create_dir_all(out).map_err(|e| Error::write(out, e))?;
    let figure = out.join("positions.svg");
    figures::write(&figure, &notebook_support::training::by_position(&model_by, &trigram_by)?)?;

    show.text(&text, &corpus)?;
    if is_another {
        show.another_text()?;
    }
    show.model(config)?;
    show.result(&corpus, &trigram, &model, None)?;
    let rows = bands(s).map(|(from, to)| {
        let of = |by: &[f64]| mean(&by[from - 1..to]);
        (from, to, of(&model_by), of(&trigram_by))
    });
    show.positions(rows)?;
    show.figure(&figure)?;
    Ok(true)
}

/// How many tokens the model sees: 1, 2, 3 to 4, 5 to 8, and so on to `s`.
fn bands(s: usize) -> impl Iterator<Item = (usize, usize)> {
    let starts = std::iter::successors(Some(1), move |from| Some(2 * from).filter(|to| *to < s));
    std::iter::once((1, 1)).chain(starts.map(move |from| (from + 1, (2 * from).min(s))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_position_is_in_one_band() {
        for s in [2, 16, 100, 128] {
            let all: Vec<usize> = bands(s).flat_map(|(from, to)| from..=to).collect();
            assert_eq!(all, (1..=s).collect::<Vec<_>>());
        }
    }
}
