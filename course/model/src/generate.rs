//! `cargo course model generate`.

use crate::error::{Error, Result};
use crate::mine::{Mine, asked};
use crate::opened::Opened;
use crate::run::State;
use crate::sizes::{Size, Small, Tiny, device};
use crate::tokens::Tokens;
use crate::writer::Writer;
use course::arguments::GenerateArguments;
use notebook_support::plot::thousands;
use quadrivium::model::{LlamaCache, Sampler, SamplingConfig};
use quadrivium::tensor::*;
use std::io::Write;
use std::path::Path;

/// A model with its cache.
struct Cached<M, C> {
    model: M,
    cache: C,
    dev: Cpu,
    positions: usize,
}

macro_rules! writer {
    ($model:ty, $cache:ty) => {
        impl Writer for Cached<$model, $cache> {
            fn next(&mut self, ids: &[usize]) -> Result<Vec<f32>> {
                let shape = (1, ids.len());
                let ids = self.dev.try_tensor_from_vec(ids.to_vec(), shape);
                let ids = ids.map_err(quadrivium::Error::from)?; //           [1, s]
                let logits = self.model.try_decode(ids, &mut self.cache)?; // [1, s, v]
                let v = logits.shape().2.size();
                Ok(logits.as_vec().split_off((shape.1 - 1) * v))
            }

            fn forget(&mut self) {
                self.cache = LlamaCache::new(self.positions);
            }

            fn positions(&self) -> usize {
                self.positions
            }
        }
    };
}

writer!(Small, LlamaCache<2, 32, 4, f32, Cpu>);
writer!(Tiny, LlamaCache<1, 8, 2, f32, Cpu>);

/// The model in a folder, with its tokenizer. It computes with the learner's code, if there is one.
///
/// # Errors
/// A model that can't be read, or of a size that there is no type for; code of the learner that is not complete.
fn open(model: &Path, mine: Option<&Mine>) -> Result<(Box<dyn Writer>, Opened)> {
    let (opened, writer) = Opened::with(model, |Opened { checkpoint, size, .. }| {
        let (dev, positions) = (device(), checkpoint.config().cached_positions());
        Ok(match (size, mine) {
            (size, Some(mine)) => (mine.writer)(*size, checkpoint)?,
            (Size::Small, None) => {
                let model = Small::from_checkpoint(&dev, checkpoint)?;
                let cache = LlamaCache::new(positions);
                Box::new(Cached::<Small, _> { model, cache, dev, positions }) as Box<dyn Writer>
            }
            (Size::Tiny, None) => {
                let model = Tiny::from_checkpoint(&dev, checkpoint)?;
                let cache = LlamaCache::new(positions);
                Box::new(Cached::<Tiny, _> { model, cache, dev, positions })
            }
        })
    })?;
    Ok((writer, opened))
}

/// Writes on, word by word. `mine` is the learner's code, where the program has it.
///
/// # Errors
/// A model or a prompt that can't be used; standard output can't be written.
pub fn run(arguments: &GenerateArguments, mine: Option<&Mine>) -> Result<bool> {
    let GenerateArguments {
        prompt,
        model,
        tokens: count,
        temperature,
        top_k,
        top_p,
        seed,
        mine: is_mine,
    } = arguments;
    let config = SamplingConfig {
        temperature: *temperature,
        top_k: *top_k,
        top_p: *top_p,
        min_p: *min_p,
        repetition_penalty: *repetition_penalty,
        seed: *seed,
    };
    let mut sampler = Sampler::new(config)?;
    let (mut writer, opened) = open(model, asked(*is_mine, mine)?)?;
    let Opened { tokens, state, checkpoint, .. } = opened;
    let prompt = tokens.encode(prompt)?;
    if prompt.is_empty() {
        return Err(Error::Prompt);
    }
    if let Some(State { step, settings, .. }) = state
        && step < settings.steps
    {
        let (made, steps) = (thousands(step), thousands(settings.steps));
        eprintln!("  The run of this model has made {made} of {steps} steps.");
    }
    let positions = writer.positions();
    if prompt.len() > positions {
        let (given, positions) = (thousands(prompt.len()), thousands(positions));
        eprintln!(
            "  The prompt has {given} tokens. The model sees {positions} at once, so it goes on from the last of them."
        );
    }
    let rows = checkpoint.config().vocab_size;
    if tokens.len() < rows {
        let (without, rows) = (thousands(rows - tokens.len()), thousands(rows));
        eprintln!("  {without} of the table's {rows} rows have no token, and are never drawn.");
    }
    let mut ids = prompt.clone();
    let mut out = std::io::stdout().lock();
    let mut said = Said::default();
    said.say(&mut out, &tokens, &ids)?;
    for id in written((writer.as_mut(), &tokens), &mut sampler, &prompt, *count) {
        let id = id?;
        if checkpoint.config().eos_token_id.contains(&id) {
            break;
        }
        ids.push(id);
        said.say(&mut out, &tokens, &ids)?;
    }
    if said.end(&mut out, &tokens, &ids)? {
        eprintln!(
            "  The text ends inside a letter, shown as \u{FFFD}: with more --tokens the model can finish it."
        );
    }
    Ok(true)
}

// ANCHOR: written
/// The tokens that a model writes after a prompt, one at a time.
///
/// The cache has as many positions as the model was trained with. When it is full, a new one begins with the second half
/// of what was in it.
pub fn written<'w>(
    (writer, tokens): (&'w mut dyn Writer, &'w Tokens),
    sampler: &'w mut Sampler,
    prompt: &[usize],
    count: usize,
) -> impl Iterator<Item = Result<usize>> + 'w {
    let positions = writer.positions();
    let half = (positions / 2).max(1);
    let keep = move |seen: &[usize]| seen[seen.len().saturating_sub(half)..].to_vec();
    let mut seen = if prompt.len() > positions { keep(prompt) } else { prompt.to_vec() };
    let mut new = seen.clone(); // what the cache does not have yet
    writer.forget();
    (0..count).map(move |_| {
        if seen.len() > positions {
            seen = keep(&seen);
            new = seen.clone();
            writer.forget();
        }
        let logits = tokens.of_tokens(writer.next(&new)?); //                 [v]
        let id = writer.choose(&logits, sampler)?;
        new = vec![id];
        seen.push(id);
        Ok(id)
    })
}
// ANCHOR_END: written

/// What was printed so far. A letter may have several tokens, so it waits until it is whole, or until the end.
#[derive(Debug, Default)]
struct Said {
    text: String,
    /// The ids whose text this is.
    ids: usize,
    gone: bool,
}

impl Said {
    fn say(&mut self, out: &mut impl Write, tokens: &Tokens, ids: &[usize]) -> Result<()> {
        self.show(out, tokens, ids, false).map(drop)
    }

    /// All that waits, and the end of the line. Returns whether the last letter is not whole.
    fn end(&mut self, out: &mut impl Write, tokens: &Tokens, ids: &[usize]) -> Result<bool> {
        let text = self.show(out, tokens, ids, true)?;
        self.print(out, "\n")?;
        Ok(text.ends_with('\u{FFFD}'))
    }

    /// Prints what is new, and gives all of the text.
    fn show(
        &mut self,
        out: &mut impl Write,
        tokens: &Tokens,
        ids: &[usize],
        last: bool,
    ) -> Result<String> {
        let text = tokens.decode(ids)?;
        let whole = if last { &text } else { text.trim_end_matches('\u{FFFD}') };
        let is_all = whole.len() == text.len();
        let new = match whole.strip_prefix(&self.text) {
            Some(new) => new.to_string(),
            // Some tokenizers decode bytes before a broken one in another way than alone.
            None if is_all => tokens.decode(&ids[self.ids..])?,
            None => return Ok(text),
        };
        self.text = whole.to_string();
        if is_all {
            self.ids = ids.len();
        }
        let new: String = new.chars().map(harmless).collect();
        self.print(out, &new)?;
        Ok(text)
    }

    /// A reader that goes away is no error.
    fn print(&mut self, out: &mut impl Write, text: &str) -> Result<()> {
        if self.gone {
            return Ok(());
        }
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => {
                self.gone = true;
                Ok(())
            }
            result => Ok(result.map_err(learner::Error::from)?),
        }
    }
}

/// A letter that can't steer the terminal.
fn harmless(letter: char) -> char {
    if letter.is_control() && letter != '\n' && letter != '\t' { '\u{FFFD}' } else { letter }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model that counts what it has taken in since it last forgot.
    struct Counts {
        positions: usize,
        taken: usize,
    }

    impl Writer for Counts {
        fn next(&mut self, ids: &[usize]) -> Result<Vec<f32>> {
            self.taken += ids.len();
            assert!(!ids.is_empty() && self.taken <= self.positions, "{ids:?}, {}", self.taken);
            Ok(vec![0.0, 1.0])
        }

        fn forget(&mut self) {
            self.taken = 0;
        }

        fn positions(&self) -> usize {
            self.positions
        }
    }

    /// What is printed of ids that come one at a time, and whether the last letter is not whole.
    fn printed(tokens: &Tokens, ids: &[usize]) -> (String, bool) {
        let (mut said, mut out) = (Said::default(), Vec::new());
        for end in 1..=ids.len() {
            said.say(&mut out, tokens, &ids[..end]).unwrap();
        }
        let cut = said.end(&mut out, tokens, ids).unwrap();
        (String::from_utf8(out).unwrap(), cut)
    }

    /// All that a tokenizer decodes is printed, wherever the ids end.
    #[test]
    fn what_is_no_whole_letter_is_printed_too() {
        let tokens = Tokens::train(&"the norm of a token ".repeat(20), 270).unwrap();
        let ids = tokens.encode("a 昭 é 🦀b").unwrap();
        for end in 1..=ids.len() {
            let (text, cut) = printed(&tokens, &ids[..end]);
            assert_eq!(text, tokens.decode(&ids[..end]).unwrap() + "\n");
            assert_eq!(cut, text.ends_with("\u{FFFD}\n"));
        }
        // The first bytes of a letter, bytes that begin none, a letter that is cut by another one. No byte of these letters was
        // learned with another one.
        let [sun, e] = ["昭", "é"].map(|letter| tokens.encode(letter).unwrap());
        let of = |text: &str| tokens.encode(text).unwrap();
        for (ids, want, is_cut) in [
            (vec![of("a"), sun[..2].to_vec()], "a\u{FFFD}\n", true),
            (vec![of("a"), sun[1..].to_vec()], "a\u{FFFD}\u{FFFD}\n", true),
            (vec![of("a"), sun[..2].to_vec(), of("b")], "a\u{FFFD}b\n", false),
            (vec![sun[2..].to_vec(), e[..1].to_vec(), e.clone()], "\u{FFFD}\u{FFFD}é\n", false),
            (vec![of("a\u{1b}c\n")], "a\u{FFFD}c\n\n", false), // the terminal is not steered
        ] {
            assert_eq!(printed(&tokens, &ids.concat()), (want.to_string(), is_cut), "{ids:?}");
        }
    }

    /// Llama's tokenizer has a token for each byte.
    #[test]
    fn letters_of_single_bytes() {
        let vocabulary: serde_json::Map<String, serde_json::Value> =
            (0..256).map(|byte| (format!("<0x{byte:02X}>"), byte.into())).collect();
        let json = serde_json::json!({
            "version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": null, "post_processor": null,
            "decoder": { "type": "Sequence", "decoders": [{ "type": "ByteFallback" }, { "type": "Fuse" }] },
            "model": { "type": "BPE", "byte_fallback": true, "unk_token": null, "vocab": vocabulary, "merges": [] },
        });
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tokenizer.json"), json.to_string()).unwrap();
        let tokens = Tokens::load(folder.path(), 256).unwrap();
        let ids = tokens.encode("é昭").unwrap();
        assert_eq!(ids.len(), 5, "{ids:?}");
        assert_eq!(printed(&tokens, &ids), ("é昭\n".to_string(), false));
        assert_eq!(printed(&tokens, &ids[..4]), ("é\u{FFFD}\u{FFFD}\n".to_string(), true));
        assert_eq!(printed(&tokens, &ids[..1]), ("\u{FFFD}\n".to_string(), true));
        // It decodes the letter before a broken byte as broken, too; but that one was printed.
        let broken = [&ids[..2], &ids[4..], &ids[..2]].concat();
        assert_eq!(printed(&tokens, &broken), ("é\u{FFFD}\u{FFFD}\u{FFFD}\n".to_string(), true));
    }

    #[test]
    fn a_model_takes_in_as_many_tokens_as_it_has_positions() {
        let tokens = Tokens::train("ab", 256).unwrap();
        for positions in 1..=5 {
            for prompt in 1..=7 {
                let mut model = Counts { positions, taken: 0 };
                let config = SamplingConfig { temperature: 0.0, ..Default::default() };
                let mut sampler = Sampler::new(config).unwrap();
                let ids = written((&mut model, &tokens), &mut sampler, &vec![0; prompt], 20);
                assert_eq!(ids.map(Result::unwrap).collect::<Vec<_>>(), [1; 20]);
            }
        }
    }

    /// A table that was padded: the rows that no token has look likelier to it than all others.
    struct Padded;

    impl Writer for Padded {
        fn next(&mut self, _: &[usize]) -> Result<Vec<f32>> {
            Ok((0..300).map(|id| if id < 256 { 0.0 } else { 9.0 }).collect())
        }

        fn forget(&mut self) {}

        fn positions(&self) -> usize {
            4
        }
    }

    #[test]
    fn what_no_token_has_is_not_drawn() {
        let tokens = Tokens::train("ab", 256).unwrap();
        assert_eq!(tokens.len(), 256);
        for temperature in [0.0, 1.0, 100.0] {
            let config = SamplingConfig { temperature, ..Default::default() };
            let mut sampler = Sampler::new(config).unwrap();
            let ids: Vec<usize> = written((&mut Padded, &tokens), &mut sampler, &[0], 200)
                .map(Result::unwrap)
                .collect();
            assert!(ids.iter().all(|id| *id < 256), "{ids:?}");
            assert!(!tokens.decode(&ids).unwrap().is_empty());
        }
    }
}
