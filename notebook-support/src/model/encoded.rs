//! The [model of letters](super::letters) with other encodings of positions: trained as it is, and asked about longer texts.

use super::letters::{BATCH, Encoded, Fits, Lesson, WINDOW, ids, split, teach_any};
use crate::error::Result;
use crate::long::Line;
use quadrivium::Error;
use quadrivium::pos_emb::ScaledRope;
use quadrivium::position::{Alibi, NoPosition};
use quadrivium::tensor::*;

/// The letters of a long window: four times as many as in training.
pub const LONG: usize = 4 * WINDOW;
/// The letters of a band, in which losses are averaged.
pub const BAND: usize = WINDOW / 2;
/// The bands of a long window.
const BANDS: usize = LONG / BAND;

/// A model that can be taught and asked. Cells are built without optimization, so each model has its code here.
pub trait Pupil {
    /// Trains it as [`teach`](super::letters::teach) does.
    ///
    /// # Errors
    /// What the library refuses.
    fn teach(&mut self, text: &str, steps: usize) -> Result<Lesson>;

    /// Its loss on what [`teach`](super::letters::teach) holds out of the text, by position in windows of [`LONG`] letters.
    ///
    /// Each point is the mean of a band of positions, over the same letters in all bands: what comes before them is all
    /// that differs.
    ///
    /// # Errors
    /// Positions that its encoding does not have.
    fn by_position(&self, name: &str, text: &str) -> Result<Line>;
}

macro_rules! pupils {
    ($([$block:ty, $shared:ty],)*) => {$(
        impl Pupil for Encoded<$block, $shared> {
            fn teach(&mut self, text: &str, steps: usize) -> Result<Lesson> {
                teach_any(self, text, steps)
            }

            fn by_position(&self, name: &str, text: &str) -> Result<Line> {
                let (_, held_out) = split(&ids(text))?;
                let points = bands(&letter_losses(self, &held_out)?);
                Ok(Line { name: name.to_string(), points })
            }
        }
    )*};
}

pupils! {
    [ScaledRope<8, Cpu>, NoPosition],
    [NoPosition, Alibi<4>],
    [ScaledRope<8, Cpu>, Alibi<4>],
}

/// The loss of each letter in long windows, one of which begins at each band: `[windows][LONG]`.
fn letter_losses<P: Fits, X: Fits>(
    model: &Encoded<P, X>,
    held_out: &[usize],
) -> Result<Vec<Vec<f64>>> {
    let dev = model.embed_tokens.weight.device();
    let starts: Vec<usize> = (0..held_out.len() - LONG).step_by(BAND).collect();
    let mut losses = Vec::new();
    for starts in starts.chunks(BATCH) {
        let rows = starts.iter().flat_map(|start| &held_out[*start..][..LONG]);
        let x = dev.try_tensor_from_vec(rows.copied().collect(), (starts.len(), LONG)); // [b, s]
        let logits = model.try_forward(x.map_err(Error::from)?)?.as_vec(); //   [b, s, v]
        for (start, logits) in starts.iter().zip(logits.chunks(logits.len() / starts.len())) {
            let next = &held_out[start + 1..][..LONG];
            let rows = logits.chunks(logits.len() / LONG).zip(next);
            losses.push(rows.map(|(row, next)| loss(row, *next)).collect());
        }
    }
    Ok(losses)
}

/// The cross-entropy of one row of logits.
fn loss(logits: &[f64], next: usize) -> f64 {
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + logits.iter().map(|logit| (logit - most).exp()).sum::<f64>().ln() - logits[next]
}

/// The means of the bands, each at the middle of its positions, which are counted from 1. The letters that are asked
/// about are once in each band of some window.
fn bands(losses: &[Vec<f64>]) -> Vec<(f64, f64)> {
    let point = |band: usize| {
        let windows = &losses[BANDS - 1 - band..losses.len() - band];
        let asked = windows.iter().flat_map(|window| &window[band * BAND..][..BAND]);
        let mean = asked.sum::<f64>() / (windows.len() * BAND) as f64;
        ((band * BAND) as f64 + (BAND as f64 + 1.0) / 2.0, mean)
    };
    (0..BANDS).map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::letters::{Model, settings};
    use quadrivium::pos_emb::{RotaryFrequencies, ScaledRopeConfig};

    fn rope(dev: &Cpu, positions: usize) -> ScaledRope<8, Cpu> {
        let plain = RotaryFrequencies::plain(8, 10_000.0).unwrap();
        ScaledRope::new(dev, ScaledRopeConfig::new(plain, positions)).unwrap()
    }

    /// Losses that show their letter: then each band has the mean of the same letters. Losses that show their position:
    /// then it has the mean of its own positions.
    #[test]
    fn each_band_asks_about_the_same_letters() {
        let windows = |loss: &dyn Fn(usize, usize) -> usize| -> Vec<Vec<f64>> {
            let window = |nth: usize| (0..LONG).map(|at| loss(nth * BAND, at) as f64).collect();
            (0..24).map(window).collect()
        };
        let letters = bands(&windows(&|start, at| start + at));
        assert_eq!(letters.len(), BANDS);
        // The bands 7 to 23 of the text are at each place of a window.
        let (first, last) = ((BANDS - 1) * BAND, 24 * BAND - 1);
        let mean = (first + last) as f64 / 2.0;
        assert!(letters.iter().all(|(_, loss)| *loss == mean), "{letters:?}");
        let positions = bands(&windows(&|_, at| at + 1));
        assert!(positions.iter().all(|(middle, loss)| middle == loss), "{positions:?}");
    }

    /// The same weights, turned by two modules of the library: the training is the same, bit for bit.
    #[test]
    fn a_pupil_is_taught_as_the_model_is() {
        let dev = Cpu::default();
        let text = "xabcabcaxbcabcab".repeat(300);
        let mut model = Model::tied(&dev, settings()).unwrap();
        let turned = model.clone().with_position(|_| Ok(rope(&dev, LONG)), NoPosition);
        let mut turned = turned.unwrap();
        let lesson = super::super::letters::teach(&mut model, &text, 3).unwrap();
        assert_eq!(turned.teach(&text, 3).unwrap().losses, lesson.losses);
    }

    /// ALiBi beside RoPE with no letter before: there the losses are those of single letters.
    #[test]
    fn the_losses_are_those_of_the_library() {
        let dev = Cpu::default();
        let model = Model::tied(&dev, settings()).unwrap();
        let text: Vec<usize> = ids(&"xabcabcaxbcabcab".repeat(32));
        let model = model.with_position(|_| Ok(NoPosition), Alibi::<4>).unwrap();
        let losses = letter_losses(&model, &text).unwrap();
        assert_eq!(losses.len(), 8);
        let x = dev.tensor_from_vec(text[BAND..BAND + LONG].to_vec(), (1, LONG)); //      [b, s]
        let next = dev.tensor_from_vec(text[BAND + 1..][..LONG].to_vec(), (1, LONG)); // [b, s]
        let whole = model.try_forward(x).unwrap(); //                         [b, s, v]
        let mean = quadrivium::loss::cross_entropy(whole, &next).unwrap().array();
        let ours = losses[1].iter().sum::<f64>() / LONG as f64;
        // Two sums of 256 losses of about 5, in f64: apart by less than 256 roundings of each.
        assert!((mean - ours).abs() < 2.0 * 256.0 * 5.0 * f64::EPSILON, "{mean} and {ours}");
    }

    #[test]
    fn a_table_that_is_too_short_is_refused() {
        let dev = Cpu::default();
        let model = Model::tied(&dev, settings()).unwrap();
        let model = model.with_position(|_| Ok(rope(&dev, WINDOW)), NoPosition).unwrap();
        assert!(model.by_position("RoPE", &"abc ".repeat(1000)).is_err());
        assert!(model.by_position("RoPE", "short").is_err());
    }
}
