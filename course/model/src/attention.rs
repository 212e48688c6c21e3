//! `cargo course model attention`.

use crate::error::{Error, Result};
use crate::figures;
use crate::opened::{Opened, has_positions};
use crate::show::Show;
use course::arguments::AttentionArguments;
use notebook_support::attention::maps::{LEAST, Maps, heads};
use quadrivium::inference::LlamaModel;
use std::path::Path;

/// The most tokens that a map has room for.
const MOST: usize = 64;

/// The weights of all heads of the model in a folder, on a text.
///
/// # Errors
/// A model that can't be read; a text of too few or too many tokens.
pub fn maps(model: &Path, prompt: &str) -> Result<Maps> {
    let (opened, (ids, blocks)) = Opened::with(model, |opened| {
        let Opened { folder, config, tokens, .. } = opened;
        has_positions(&config.llama, LEAST)?;
        let ids = tokens.encode(prompt)?;
        if ids.is_empty() {
            return Err(Error::Prompt);
        }
        let most = MOST.min(config.llama.max_position_embeddings);
        if !(LEAST..=most).contains(&ids.len()) {
            return Err(Error::PromptLength { tokens: ids.len(), least: LEAST, most });
        }
        let weights = LlamaModel::open(folder)?.attention(&ids)?; //          [L][nh, s, s]
        let blocks = weights.iter().map(|weights| heads(weights, ids.len())).collect();
        Ok((ids, blocks))
    })?;
    Ok(Maps { tokens: opened.tokens.visible(&ids)?, blocks })
}

/// Shows what the heads look at.
///
/// # Errors
/// A model or a prompt that can't be used; a file that can't be written.
pub fn run(arguments: &AttentionArguments) -> Result<bool> {
    let AttentionArguments { prompt, model, out } = arguments;
    let maps = maps(model, prompt)?;
    let out = out.as_ref().unwrap_or(model);
    std::fs::create_dir_all(out).map_err(|e| Error::write(out, e))?;
    let (figure, numbers) = (out.join("attention.svg"), out.join("attention.json"));
    figures::write(&figure, &maps.figure()?)?;
    figures::write_text(&numbers, &figures::maps_json(&maps))?;
    let mut show = Show::new();
    show.heads(&maps)?;
    show.maps(&figure, &numbers)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use course::arguments::PROMPT;

    #[test]
    fn the_prompt_is_a_sentence_of_the_book_that_is_not_trained_on() {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(include_str!("../../../book/src/attention.md")).contains(PROMPT));
        assert!(!words(&crate::text::Text::book().content).contains(PROMPT));
    }
}
