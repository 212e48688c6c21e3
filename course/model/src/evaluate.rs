//! `cargo course model eval`.

use crate::batches::Batch;
use crate::corpus::{Corpus, by_position, mean};
use crate::error::{Error, Result, shown};
use crate::figures;
use crate::generate::kind_of;
use crate::opened::Opened;
use crate::show::Show;
use crate::text::Text;
use course::arguments::EvalArguments;
use quadrivium::inference::LlamaModel;

/// Tokens that the model sees at once, if it has so many positions.
const WINDOW: usize = 128;

/// Looks at a model's held-out loss, as a whole and by position.
///
/// # Errors
/// A model or a text that can't be used; a figure that can't be written.
pub fn run(arguments: &EvalArguments) -> Result<bool> {
    let EvalArguments { text: named, model: place, weights, out } = arguments;
    let text = Text::read(named)?;
    text.check()?;
    let (opened, model) = Opened::with(place, |opened| Ok(LlamaModel::open(&opened.folder)?))?;
    let Opened { folder, config, tokens, state } = opened;
    let config = &config.llama;
    let s = WINDOW.min(config.max_position_embeddings);
    let corpus = Corpus::with_tokens(&text, tokens, (1, s), config.vocab_size)?;
    // Where no run wrote the model, it is unknown what it has seen.
    let is_another = match &state {
        Some(state) => state.settings.text != corpus.fingerprint()?,
        None => false,
    };
    if is_another && named.is_empty() {
        return Err(Error::OtherText { path: shown(place) });
    }
    let mut show = Show::new();
    let of_model = show.measured(|| losses(&model, &corpus))?;
    let out = out.as_ref().unwrap_or(place);
    let trigram = corpus.trigram_losses();
    let (model_by, trigram_by) = (by_position(&of_model, s), by_position(&trigram, s));
    std::fs::create_dir_all(out).map_err(|e| Error::write(out, e))?;
    let figure = out.join("positions.svg");
    figures::write(&figure, &notebook_support::training::by_position(&model_by, &trigram_by)?)?;

    show.text(&text, &corpus)?;
    if is_another {
        show.another_text()?;
    }
    show.model(config)?;
    show.result(&corpus, &trigram, &of_model, None)?;
    if !weights.is_empty() {
        show.kinds(None, mean(&of_model), model.weights())?;
    }
    for kind in weights {
        let model = LlamaModel::open_with(&folder, kind_of(*kind))?;
        let loss = mean(&show.measured(|| losses(&model, &corpus))?);
        show.kinds(Some(mean(&of_model)), loss, model.weights())?;
    }
    let rows = bands(s).map(|(from, to)| {
        let of = |by: &[f64]| mean(&by[from - 1..to]);
        (from, to, of(&model_by), of(&trigram_by))
    });
    show.positions(rows)?;
    show.figure(&figure)?;
    Ok(true)
}

/// The loss of each token of the held-out text.
fn losses(model: &LlamaModel, corpus: &Corpus) -> Result<Vec<f64>> {
    let v = model.config().llama.vocab_size;
    let mut losses = Vec::new();
    for Batch { ids, next, .. } in corpus.asked() {
        let logits = model.logits(&ids)?; //                                  [s, v]
        for (logits, next) in logits.chunks(v).zip(next) {
            let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f64 = logits.iter().map(|z| f64::from(z - largest).exp()).sum();
            losses.push(sum.ln() + f64::from(largest - logits[next]));
        }
    }
    Ok(losses)
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
