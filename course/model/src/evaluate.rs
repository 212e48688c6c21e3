//! `cargo course model eval`.

use crate::corpus::{Corpus, by_position, mean};
use crate::error::Result;
use crate::figures;
use crate::generate::folder_of;
use crate::network::{Library, Trainee};
use crate::run;
use crate::show::Show;
use crate::sizes::{SMALL_VOCAB, Size, Small, TINY_VOCAB, Tiny, device};
use crate::text::Text;
use crate::tokens::Tokens;
use crate::train::losses;
use course::arguments::EvalArguments;
use quadrivium::checkpoint::Checkpoint;
use std::path::Path;

/// Looks at a model's held-out loss, as a whole and by position.
///
/// # Errors
/// A model or a text that can't be used; a figure that can't be written.
pub fn run(arguments: &EvalArguments) -> Result<bool> {
    let EvalArguments { text, model: place, out } = arguments;
    let text = Text::read(text)?;
    text.check()?;
    let folder = folder_of(place)?;
    let checkpoint = Checkpoint::open(&folder)?;
    let config = checkpoint.config().clone();
    let tokens = Tokens::load(&folder, config.vocab_size)?;
    let (dev, size) = (device(), Size::of(&checkpoint));
    let corpus = |tokens| Corpus::with_tokens(&text, tokens, size.batch(), config.vocab_size);
    let (corpus, model) = match size {
        Size::Small => {
            let model = Small::from_checkpoint(&dev, &checkpoint)?;
            let corpus = corpus(tokens)?;
            let network = Trainee::<SMALL_VOCAB, _>::new(&dev, model, Library, config.clone())?;
            let model = losses(&network, &corpus)?;
            (corpus, model)
        }
        Size::Tiny => {
            let model = Tiny::from_checkpoint(&dev, &checkpoint)?;
            let corpus = corpus(tokens)?;
            let network = Trainee::<TINY_VOCAB, _>::new(&dev, model, Library, config.clone())?;
            let model = losses(&network, &corpus)?;
            (corpus, model)
        }
    };
    let out = out.as_ref().unwrap_or(place);
    let trigram = corpus.trigram_losses();
    let s = size.batch().1;
    let (model_by, trigram_by) = (by_position(&model, s), by_position(&trigram, s));
    std::fs::create_dir_all(out).map_err(|e| crate::Error::write(out, e))?;
    let figure = out.join("positions.svg");
    figures::write(&figure, &kit::training::by_position(&model_by, &trigram_by)?)?;

    let mut show = Show::new();
    show.text(&text, &corpus)?;
    if is_of_another_text(&folder, &corpus)? {
        show.another_text()?;
    }
    show.model(&config)?;
    show.result(&corpus, &trigram, &model)?;
    let rows = bands(s).map(|(from, to)| {
        let of = |by: &[f64]| mean(&by[from - 1..to]);
        (from, to, of(&model_by), of(&trigram_by))
    });
    show.positions(rows)?;
    show.figure(&figure)?;
    Ok(true)
}

/// Whether a run wrote the model, and with other tokens than these. Nobody knows then what of them it has seen.
fn is_of_another_text(folder: &Path, corpus: &Corpus) -> Result<bool> {
    let Ok(state) = run::state(folder) else { return Ok(false) };
    Ok(state.settings.text != corpus.fingerprint()?)
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
