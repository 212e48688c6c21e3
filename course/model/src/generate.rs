//! `cargo course model generate`.

use crate::error::{Error, Result};
use crate::mine::{Mine, asked};
use crate::opened::Opened;
use crate::run::State;
use crate::sizes::Size;
use crate::tokens::Tokens;
use crate::writer::Writer;
use course::arguments::{GenerateArguments, Weights};
use notebook_support::plot::thousands;
use quadrivium::checkpoint::Checkpoint;
use quadrivium::inference::{CacheKind, LlamaModel, TextCache, WeightKind};
use quadrivium::model::{Sampler, SamplingConfig};
use std::io::Write;
use std::path::Path;

/// A model, and what it keeps of the text.
struct Library {
    model: LlamaModel,
    cache: TextCache,
}

impl Writer for Library {
    fn next(&mut self, ids: &[usize]) -> Result<Vec<f32>> {
        Ok(self.model.decode(&[ids], std::slice::from_mut(&mut self.cache))?)
    }

    fn forget(&mut self) {
        self.cache = self.model.cache(CacheKind::F32);
    }

    fn positions(&self) -> usize {
        self.model.positions()
    }
}

/// The model in a folder, with its tokenizer. It computes with the learner's code, if there is one.
///
/// # Errors
/// A model that can't be read; for the learner's code, one of another size than those that there are types for; code of the
/// learner that is not complete.
fn open(model: &Path, kind: WeightKind, mine: Option<&Mine>) -> Result<(Box<dyn Writer>, Opened)> {
    let (opened, writer) = Opened::with(model, |opened| match mine {
        Some(mine) => {
            let checkpoint = Checkpoint::open(&opened.folder)?;
            (mine.writer)(Size::of(&checkpoint), &checkpoint)
        }
        None => {
            let model = LlamaModel::open_with(&opened.folder, kind)?;
            let cache = model.cache(CacheKind::F32);
            Ok(Box::new(Library { model, cache }) as Box<dyn Writer>)
        }
    })?;
    Ok((writer, opened))
}

/// How weights are kept, by what the option says.
pub fn kind_of(weights: Weights) -> WeightKind {
    match weights {
        Weights::AsStored => WeightKind::AsStored,
        Weights::F32 => WeightKind::F32,
        Weights::Bf16 => WeightKind::Bf16,
        Weights::F16 => WeightKind::F16,
        Weights::Int8 => WeightKind::Int8,
        Weights::Int4 => WeightKind::Int4 { group_size: 32 },
    }
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
        min_p,
        repetition_penalty,
        seed,
        stop,
        weights,
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
    let mine = asked(*is_mine, mine)?;
    let (mut writer, opened) = open(model, kind_of(*weights), mine)?;
    let Opened { tokens, state, config: of_model, .. } = opened;
    let prompt = tokens.prompt(prompt)?;
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
    let rows = of_model.llama.vocab_size;
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
        if of_model.llama.eos_token_id.contains(&id) {
            break;
        }
        ids.push(id);
        if said.say_until(&mut out, &tokens, &ids, (prompt.len(), stop))? {
            return Ok(true);
        }
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
        let mut logits = tokens.of_tokens(writer.next(&new)?); //             [v]
        sampler.config().penalize(&mut logits, &seen)?;
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

    /// The same up to the first of some texts that comes behind the prompt, if one does. What may become the beginning of
    /// one waits.
    fn say_until(
        &mut self,
        out: &mut impl Write,
        tokens: &Tokens,
        ids: &[usize],
        (prompt, stop): (usize, &[String]),
    ) -> Result<bool> {
        if stop.is_empty() {
            self.say(out, tokens, ids)?;
            return Ok(false);
        }
        let (all, before) = (tokens.decode(ids)?, tokens.decode(&ids[..prompt])?);
        let from = all.ceil_char_boundary(before.len());
        let end = stop.iter().filter_map(|stop| all[from..].find(stop.as_str())).min();
        let begins = |at: &usize| stop.iter().any(|stop| stop.starts_with(&all[*at..]));
        let places = || all.char_indices().map(|(at, _)| at).filter(|at| *at >= from);
        let shown = match end {
            Some(at) => from + at,
            None => places().find(begins).unwrap_or(all.trim_end_matches('\u{FFFD}').len()),
        };
        if let Some(new) = all[..shown].strip_prefix(&self.text) {
            let new: String = new.chars().map(harmless).collect();
            self.print(out, &new)?;
            self.text = all[..shown].to_string();
        }
        if end.is_some() {
            self.print(out, "\n")?;
        }
        Ok(end.is_some())
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

    /// What is printed of ids that come one at a time, of which the first is the prompt, until one of some texts comes.
    fn printed_until(tokens: &Tokens, ids: &[usize], stop: &[&str]) -> (String, bool) {
        let stop: Vec<String> = stop.iter().map(|stop| stop.to_string()).collect();
        let (mut said, mut out) = (Said::default(), Vec::new());
        said.say(&mut out, tokens, &ids[..1]).unwrap();
        let mut stopped = false;
        for end in 2..=ids.len() {
            stopped = said.say_until(&mut out, tokens, &ids[..end], (1, &stop)).unwrap();
            if stopped {
                break;
            }
        }
        if !stopped {
            said.end(&mut out, tokens, ids).unwrap();
        }
        (String::from_utf8(out).unwrap(), stopped)
    }

    #[test]
    fn a_text_ends_where_a_stop_word_begins() {
        let tokens = Tokens::train("ab", 256).unwrap(); // a token for each byte
        let of =
            |text: &str, stop: &[&str]| printed_until(&tokens, &tokens.encode(text).unwrap(), stop);
        assert_eq!(of("one two three", &[" thr"]), ("one two\n".into(), true));
        assert_eq!(of("one two three", &["w", " t"]), ("one\n".into(), true));
        assert_eq!(of("one two three", &["four"]), ("one two three\n".into(), false));
        // The beginning of a stop word waits, and is printed when it was none.
        assert_eq!(of("aabab", &["abb"]), ("aabab\n".into(), false));
        // A letter of several bytes, and the prompt's own words.
        assert_eq!(of("aé昭b", &["昭"]), ("aé\n".into(), true));
        assert_eq!(of("abc", &["a"]), ("abc\n".into(), false));
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
