//! What an encoding of positions makes of a distance, as the scores of a query and a key.

use crate::chart::{Axis, Mark, Series, chart, tenths};
use crate::error::Result;
use crate::plot::{BLUE, Figure, GREEN, INK, ORANGE, VERMILLION, whole};
use plotters::prelude::SeriesLabelPosition;
use quadrivium::Error;
use quadrivium::position::{PositionEncoding, ScoreBias};
use quadrivium::tensor::*;

/// `nh`: heads that are asked.
pub const HEADS: usize = 4;
/// `hd`: elements of a head, two for each of four planes.
pub const HEAD_DIM: usize = 8;

/// Queries or keys, `[b, s, nh, hd]`.
type Heads = Tensor<(usize, usize, usize, Const<HEAD_DIM>), f64, Cpu>;

/// The scores of four heads at the distances `0 .. distances`, `[nh][distances]`.
///
/// The query and the key are the same at all positions, so that only the encoding distinguishes them. Those of head `n`
/// lie in plane `n`, in its first element, and have the score 1 without an encoding.
///
/// # Errors
/// No distances; what the encoding refuses.
pub fn scores<P: PositionEncoding<HEAD_DIM, f64, Cpu>>(
    encoding: &P,
    distances: usize,
) -> Result<Vec<Vec<f64>>> {
    let q = encoding.on_queries(alike(distances)?, &0.into())?;
    let k = encoding.on_keys(alike(distances)?, &0.into())?;
    let bias = encoding.on_scores(alike(distances)?, distances)?;
    Ok(of_last_query(&q.as_vec(), &k.as_vec(), &bias, distances))
}

/// The vector of each head at each of `s` positions.
fn alike(s: usize) -> Result<Heads> {
    let dev = Cpu::default();
    if s == 0 {
        return Err(Error::Empty { name: "distances", shape: vec![0] }.into());
    }
    // Squared and divided by the root of the head size, it is 1.
    let size = (HEAD_DIM as f64).powf(0.25);
    let element = |at: usize| {
        if at % HEAD_DIM == at / HEAD_DIM % HEADS { size } else { 0.0 }
    };
    let values = (0..s * HEADS * HEAD_DIM).map(element).collect();
    Ok(dev.try_tensor_from_vec(values, (1, s, HEADS, Const)).map_err(Error::from)?)
}

/// The scores of the last of `s` queries with all keys, from the nearest on.
fn of_last_query(
    q: &[f64],
    k: &[f64],
    bias: &ScoreBias<usize, usize, f64, Cpu>,
    s: usize,
) -> Vec<Vec<f64>> {
    let by_distance = bias.by_distance.as_ref().map(|bias| bias.as_vec()); // [nh, t]
    let by_score = bias.by_score.as_ref().map(|bias| bias.as_vec()); //       [1, nh, s, t]
    let head = |x: &[f64], position: usize, head: usize| -> Vec<f64> {
        x[(position * HEADS + head) * HEAD_DIM..][..HEAD_DIM].to_vec()
    };
    let score = |nth: usize, distance: usize| {
        let (query, key) = (s - 1, s - 1 - distance);
        let pairs = head(q, query, nth).into_iter().zip(head(k, key, nth));
        let product: f64 = pairs.map(|(q, k)| q * k).sum();
        let by_distance = by_distance.as_ref().map_or(0.0, |bias| bias[nth * s + distance]);
        let by_score = by_score.as_ref().map_or(0.0, |bias| bias[(nth * s + query) * s + key]);
        product / (HEAD_DIM as f64).sqrt() + by_distance + by_score
    };
    (0..HEADS).map(|nth| (0..s).map(|distance| score(nth, distance)).collect()).collect()
}

/// The [`scores`] of an encoding by distance, with a mark at `trained`, the length of a training.
///
/// # Errors
/// As for [`scores`]; what plotters reports.
pub fn by_distance<P: PositionEncoding<HEAD_DIM, f64, Cpu>>(
    encoding: &P,
    distances: usize,
    trained: usize,
) -> Result<Figure> {
    draw(&scores(encoding, distances)?, trained)
}

fn draw(scores: &[Vec<f64>], trained: usize) -> Result<Figure> {
    let all = || scores.iter().flatten().copied();
    let least = all().fold(0.0, f64::min);
    let most = all().fold(1.0, f64::max);
    let most = most + 0.45 * (most - least); // room for the names
    let styles = [
        (BLUE, Mark::Line),
        (VERMILLION, Mark::Dashed),
        (GREEN, Mark::Dotted),
        (ORANGE, Mark::Line),
    ];
    let named = |(nth, (scores, (color, mark))): (usize, (&Vec<f64>, (_, Mark)))| {
        let points = scores.iter().enumerate().map(|(distance, score)| (distance as f64, *score));
        Series::new(format!("head {}", nth + 1), color, mark, points)
    };
    let mut series: Vec<Series> = scores.iter().zip(styles).enumerate().map(named).collect();
    let mark = [(trained as f64, least), (trained as f64, most)];
    series.push(Series::new("", INK, Mark::Dotted, mark));
    let end = scores.first().map_or(1, Vec::len).max(2) as f64;
    let x = Axis { name: "distance", range: 0.0..end, labels: 9, label: whole };
    let y = Axis { name: "score", range: least..most, labels: 8, label: tenths };
    let question = "What does a distance do to a score?";
    chart(question, (x, y), &series, SeriesLabelPosition::UpperRight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quadrivium::pos_emb::{RotaryFrequencies, ScaledRope, ScaledRopeConfig, Yarn};
    use quadrivium::position::{Alibi, NoPosition, T5Bias, TransformerXl};

    /// A power of two of a root of a root, squared, and divided by a root: four roundings around 1.
    const OFF: f64 = 4.0 * f64::EPSILON;

    #[test]
    fn without_an_encoding_all_scores_are_one() {
        let scores = scores(&NoPosition, 5).unwrap();
        assert_eq!(scores.iter().map(Vec::len).collect::<Vec<_>>(), [5; HEADS]);
        assert!(scores.iter().flatten().all(|score| (score - 1.0).abs() <= OFF), "{scores:?}");
    }

    #[test]
    fn alibi_takes_its_slope_at_each_step() {
        for (nth, scores) in scores(&Alibi::<4>, 9).unwrap().iter().enumerate() {
            let slope = 0.25f64.powi(nth as i32 + 1);
            for (distance, score) in scores.iter().enumerate() {
                let want = 1.0 - slope * distance as f64;
                assert!((score - want).abs() <= OFF + f64::EPSILON * want.abs(), "{nth}: {score}");
            }
        }
    }

    /// The tables are `f32`: a cosine and a sine of each side, rounded once each, in a sum of four products.
    #[test]
    fn a_rotation_shows_the_cosine_of_its_plane() {
        let dev = Cpu::default();
        let yarn = Yarn { factor: 4.0, max_seq_len: 64, ..Default::default() };
        let yarn = RotaryFrequencies::yarn(HEAD_DIM, 10_000.0, yarn).unwrap();
        for rule in [RotaryFrequencies::plain(HEAD_DIM, 10_000.0).unwrap(), yarn] {
            let config = ScaledRopeConfig::new(rule.clone(), 100);
            let rope = ScaledRope::<HEAD_DIM, Cpu>::new(&dev, config).unwrap();
            for (scores, theta) in scores(&rope, 100).unwrap().iter().zip(rule.frequencies()) {
                for (distance, score) in scores.iter().enumerate() {
                    let want = rule.scale().powi(2) * (distance as f64 * theta).cos();
                    let off = 4.0 * rule.scale().powi(2) * f64::from(f32::EPSILON);
                    assert!((score - want).abs() <= off, "{theta}, {distance}: {score}");
                }
            }
        }
    }

    /// What depends on more than the distance is read at the last query: Transformer-XL's is, with a key at its distance.
    #[test]
    fn both_kinds_of_bias_are_read() {
        let dev = Cpu::default();
        let xl = TransformerXl::<32, HEADS, HEAD_DIM, f64, Cpu>::new(&dev, Default::default());
        let xl = xl.unwrap();
        let long = scores(&xl, 12).unwrap();
        assert!(long.iter().flatten().any(|score| (score - 1.0).abs() > 1e-6), "{long:?}");
        for (long, short) in long.iter().zip(scores(&xl, 7).unwrap()) {
            for (long, short) in long.iter().zip(&short) {
                assert!((long - short).abs() < 1e-12, "a distance, whatever the length");
            }
        }
    }

    #[test]
    fn refusals_come_from_the_encoding() {
        assert!(scores(&Alibi::<2>, 9).unwrap_err().to_string().contains("queries"));
        assert!(scores(&NoPosition, 0).is_err());
    }

    #[test]
    fn figures_of_what_is_tall_and_what_is_flat() {
        let dev = Cpu::default();
        let t5 = T5Bias::<HEADS, 32, f64, Cpu>::new(&dev, Default::default()).unwrap();
        for figure in [by_distance(&t5, 1, 1), by_distance(&Alibi::<4>, 300, 64)] {
            let svg = figure.unwrap();
            assert!((1..=HEADS).all(|nth| svg.svg().contains(&format!("head {nth}"))));
        }
    }
}
