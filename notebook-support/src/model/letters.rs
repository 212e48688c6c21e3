//! The model that the notebook trains: its tokens are letters, so that it needs no tokenizer and learns in seconds.
//!
//! Its numbers are `f64`. Processors round differently, and a training makes differences grow; from `f64` nothing of it is
//! seen in what a cell prints.

use crate::attention::maps::{Maps, look};
use crate::chart::{Axis, Mark, Series, chart, tenths};
use crate::error::Result;
use crate::plot::{BLUE, Figure, GREEN, VERMILLION, whole};
use crate::text::visible;
use plotters::prelude::SeriesLabelPosition;
use quadrivium::loss::cross_entropy;
use quadrivium::model::{LlamaConfig, LlamaTransformer, Tied};
use quadrivium::position::PositionEncoding;
use quadrivium::tensor::*;
use quadrivium::training::{AdamW, AdamWConfig, Schedule, clip_gradients};
use quadrivium::{Error, GroupRmsNorm, NtkAwareRopeConfig, PastCache, VocabEmbedding};

/// `v`: the ids are those of ASCII.
pub const VOCAB: usize = 128;

/// Two blocks, 32 elements a token, 4 query heads over 2 key heads of 8 elements.
pub type Model = LlamaTransformer<VOCAB, 32, 4, 2, 8, 96, 2, f64, Cpu, Tied>;

/// The same with other encodings of positions: `P` in each block, and `X` once for all blocks.
pub type Encoded<P, X> = LlamaTransformer<
    VOCAB,
    32,
    4,
    2,
    8,
    96,
    2,
    f64,
    Cpu,
    Tied,
    VocabEmbedding<VOCAB, 32, f64, Cpu>,
    GroupRmsNorm<32, 32, f64, Cpu>,
    P,
    X,
>;

/// An encoding that fits the model.
pub(super) trait Fits: PositionEncoding<8, f64, Cpu> + TensorCollection<f64, Cpu> {}

impl<P: PositionEncoding<8, f64, Cpu> + TensorCollection<f64, Cpu>> Fits for P {}

/// `b`: windows of a step.
pub const BATCH: usize = 8;
/// `s`: letters of a window, and positions of the model.
pub const WINDOW: usize = 64;
/// Windows of neighbouring steps begin so far apart. A prime, so that they begin everywhere.
const STRIDE: usize = 4093;
/// Steps between two looks at what is held out.
const LOOK: usize = 50;
/// Letters that are held out, from the middle of the text.
const HELD_OUT: usize = 1000;

/// The settings of the model. Its matrices begin larger than the default, which is for tokens of some thousand elements: from there
/// it would spend half of the steps on how frequent each letter is.
pub fn settings() -> LlamaConfig {
    let rope = NtkAwareRopeConfig {
        max_seq_len: WINDOW,
        past_cache: PastCache::Refuse,
        ..Default::default()
    };
    LlamaConfig { init_std: 0.05, rope, ..Default::default() }
}

/// The ids of a text. What is no ASCII becomes a question mark.
pub fn ids(text: &str) -> Vec<usize> {
    text.chars()
        .map(|letter| if letter.is_ascii() { letter as usize } else { '?' as usize })
        .collect()
}

/// The letters of ids.
pub fn letters(ids: &[usize]) -> String {
    ids.iter().map(|id| char::from(u8::try_from(*id).unwrap_or(b'?'))).collect()
}

/// What came out of a training.
#[derive(Debug, Clone)]
pub struct Lesson {
    /// The loss of each step's batch.
    pub losses: Vec<f64>,
    /// The loss on what is held out, and after how many steps.
    pub held_out: Vec<(usize, f64)>,
    /// The same of a model that counts pairs of letters.
    pub pairs: f64,
}

// ANCHOR: teach
/// Trains a model on the letters of a text, and looks at its loss on a piece from the middle that no step sees.
///
/// # Errors
/// What the library refuses.
pub fn teach(model: &mut Model, text: &str, steps: usize) -> Result<Lesson> {
    teach_any(model, text, steps)
}

pub(super) fn teach_any<P: Fits, X: Fits>(
    model: &mut Encoded<P, X>,
    text: &str,
    steps: usize,
) -> Result<Lesson> {
    let (ids, held_out) = split(&ids(text))?;
    let schedule = Schedule { peak: 0.01, warmup: (steps / 20).max(1), steps, end: 0.001 };
    let mut adam = AdamW::new(AdamWConfig::default())?;
    let mut grads = model.try_alloc_grads().map_err(Error::from)?;
    let mut lesson =
        Lesson { losses: Vec::new(), held_out: Vec::new(), pairs: pairs(&ids, &held_out) };
    for step in 0..steps {
        if step % LOOK == 0 {
            lesson.held_out.push((step, loss(model, &held_out)?));
        }
        let starts = (step * BATCH..).take(BATCH).map(|nth| nth * STRIDE % (ids.len() - WINDOW));
        let (x, next) = windows(model, &ids, starts)?; //                    [b, s] each
        let logits = model.try_forward(x.traced(grads))?; //                 [b, s, v]
        let loss = cross_entropy(logits, &next)?; //                         []
        lesson.losses.push(loss.array());
        grads = loss.try_backward().map_err(Error::from)?;
        clip_gradients(model, &mut grads, 1.0)?;
        adam.update(model, &mut grads, schedule.rate(step))?;
        model.try_zero_grads(&mut grads).map_err(Error::from)?;
    }
    lesson.held_out.push((steps, loss(model, &held_out)?));
    Ok(lesson)
}
// ANCHOR_END: teach

/// What is learned from, and what is held out.
pub(super) fn split(ids: &[usize]) -> Result<(Vec<usize>, Vec<usize>)> {
    if ids.len() < 4 * HELD_OUT {
        return Err(crate::Error::ShortText { least: 4 * HELD_OUT, letters: ids.len() });
    }
    let middle = ids.len() / 2;
    let (before, rest) = ids.split_at(middle);
    let (held_out, behind) = rest.split_at(HELD_OUT);
    Ok(([before, behind].concat(), held_out.to_vec()))
}

type Ids = Tensor<(usize, usize), usize, Cpu>;

/// Windows that begin at `starts`, and the letters that follow theirs, `[b, s]` each.
fn windows<P, X>(
    model: &Encoded<P, X>,
    ids: &[usize],
    starts: impl Iterator<Item = usize>,
) -> Result<(Ids, Ids)> {
    let starts: Vec<usize> = starts.collect();
    let dev = model.embed_tokens.weight.device();
    let tensor = |shift: usize| {
        let rows = starts.iter().flat_map(|start| &ids[start + shift..][..WINDOW]);
        dev.try_tensor_from_vec(rows.copied().collect(), (starts.len(), WINDOW))
            .map_err(Error::from)
    };
    Ok((tensor(0)?, tensor(1)?))
}

/// The mean loss over a text's whole windows.
fn loss<P: Fits, X: Fits>(model: &Encoded<P, X>, ids: &[usize]) -> Result<f64> {
    let starts = (0..ids.len() - WINDOW).step_by(WINDOW);
    let (x, next) = windows(model, ids, starts)?; //                         [b, s] each
    Ok(cross_entropy(model.try_forward(x)?, &next)?.array())
}

/// The mean loss of counted pairs: a letter after `a` is as probable as it was seen there, and a letter that was not seen
/// there as probable as it is anywhere. How much is left for those is the part of new letters after `a` so far (Witten
/// and Bell 1991). No letter is impossible: each is counted once more than it was seen.
fn pairs(ids: &[usize], asked: &[usize]) -> f64 {
    let mut single = [1.0f64; VOCAB];
    let mut pair = vec![[0.0f64; VOCAB]; VOCAB];
    for two in ids.windows(2) {
        single[two[1]] += 1.0;
        pair[two[0]][two[1]] += 1.0;
    }
    let all: f64 = single.iter().sum();
    let probability = |a: usize, b: usize| {
        let seen: f64 = pair[a].iter().sum();
        let kinds = pair[a].iter().filter(|count| **count > 0.0).count().max(1) as f64;
        (pair[a][b] + kinds * single[b] / all) / (seen + kinds)
    };
    let losses = asked.windows(2).map(|two| -probability(two[0], two[1]).ln());
    losses.sum::<f64>() / (asked.len() - 1) as f64
}

impl Lesson {
    /// The losses over the steps, and beside them the model that counts pairs.
    ///
    /// # Errors
    /// What plotters reports.
    pub fn figure(&self) -> Result<Figure> {
        let steps = self.losses.len() as f64;
        let means = self.losses.chunks(10).enumerate().map(|(nth, losses)| {
            let mean = losses.iter().sum::<f64>() / losses.len() as f64;
            (10.0 * nth as f64 + (losses.len() as f64 - 1.0) / 2.0, mean)
        });
        let held_out = self.held_out.iter().map(|(step, loss)| (*step as f64, *loss));
        let level = [(0.0, self.pairs), (steps, self.pairs)];
        let series = [
            Series::new("the batches, means of 10 steps", BLUE, Mark::Line, means),
            Series::new("letters that are held out", VERMILLION, Mark::Circles, held_out),
            Series::new("counted pairs of letters, held out", GREEN, Mark::Dashed, level),
        ];
        let x = Axis { name: "steps", range: 0.0..steps, labels: 6, label: whole };
        let y = Axis { name: "loss (nats a letter)", range: 0.0..6.0, labels: 6, label: tenths };
        chart("What does the model learn?", (x, y), &series, SeriesLabelPosition::UpperRight)
    }
}

/// What each head of the model looks at, on a text of 3 to 64 letters.
///
/// # Errors
/// A text that is longer; what plotters reports.
pub fn maps(model: &Model, text: &str) -> Result<Maps> {
    let dev = model.embed_tokens.weight.device();
    let blocks = look(model, dev, &ids(text))?;
    let tokens = text.chars().map(|letter| visible(letter.to_string().as_bytes())).collect();
    Ok(Maps { tokens, blocks })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text in which each letter determines the next one, except for the first after `x`.
    fn text() -> String {
        "xabcabcaxbcabcab".repeat(300)
    }

    #[test]
    fn a_few_steps_teach_something_and_the_same_steps_the_same() {
        let dev = Cpu::default();
        let run = || {
            let mut model = Model::tied(&dev, settings()).unwrap();
            teach(&mut model, &text(), 12).unwrap()
        };
        let lesson = run();
        assert_eq!(lesson.losses.len(), 12);
        assert_eq!(lesson.held_out.iter().map(|at| at.0).collect::<Vec<_>>(), [0, 12]);
        assert!((lesson.losses[0] - 128f64.ln()).abs() < 0.2, "{lesson:?}");
        assert!(lesson.held_out[1].1 < lesson.held_out[0].1 - 1.0, "{lesson:?}");
        assert_eq!(run().losses, lesson.losses);
        assert!(lesson.figure().unwrap().svg().contains("held out"));
    }

    /// Counts of a short text, by hand.
    #[test]
    fn pairs_by_hand() {
        let of = |text: &str| ids(text);
        // `abababac`: after a come b, b, b, c; so 4 were seen, of 2 kinds. Counted in all: b 4 times, with the one
        // more.
        let all = 7.0 + 128.0;
        let want = -((3.0 + 2.0 * 4.0 / all) / (4.0 + 2.0f64)).ln();
        assert!((pairs(&of("abababac"), &of("ab")) - want).abs() < 1e-12);
        // After c nothing was seen.
        let want = -(4.0f64 / all).ln();
        assert!((pairs(&of("abababac"), &of("cb")) - want).abs() < 1e-12);
    }

    #[test]
    fn nothing_that_is_held_out_is_learned_from() {
        let (trained, held_out) = split(&(0..5000).collect::<Vec<_>>()).unwrap();
        assert_eq!((trained.len(), held_out.len()), (4000, HELD_OUT));
        assert!(held_out.iter().all(|id| !trained.contains(id)));
        assert!(split(&[0; 3999]).is_err());
    }

    #[test]
    fn letters_are_ids() {
        assert_eq!(letters(&ids("The norm, é")), "The norm, ?");
    }
}
