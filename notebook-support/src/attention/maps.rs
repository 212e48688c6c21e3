//! What the heads of a model look at: the weights of its attention, as numbers and as maps.

use crate::chart::centred;
use crate::error::Result;
use crate::heat::heat;
use crate::plot::{Area, Figure, INK, PALE, Painted, small_font};
use plotters::prelude::*;
use quadrivium::Error;
use quadrivium::attention::{GroupedQueryAttention, causal_mask, repeat_kv};
use quadrivium::model::{Embed, LlamaTransformer, Normalize};
use quadrivium::position::PositionEncoding;
use quadrivium::tensor::*;

// ANCHOR: weights
/// The weights of attention, `[b, nh, s, s]`: row `i` of a head says how much of each value token `i`
/// takes.
///
/// `x` are the tokens as they come in, after the norm. [`GroupedQueryAttention`] computes the same weights on its way,
/// and keeps none of them.
///
/// # Errors
/// Positions that the encoding does not have; what the device reports.
pub fn weights<const H: usize, const NH: usize, const NKV: usize, const HD: usize, F, P>(
    attention: &GroupedQueryAttention<H, NH, NKV, HD, F, Cpu, P>,
    x: Tensor<(usize, usize, Const<H>), F, Cpu>,
) -> Result<Tensor<(usize, usize, usize, usize), F, Cpu>>
where
    F: Float,
    Cpu: Backend<F> + HasErr<Err = CpuError>,
    P: PositionEncoding<HD, F, Cpu>,
{
    let (b, s, _) = *x.shape();
    let root = F::nearest((HD as f64).sqrt());
    let q = attention.q_proj.try_forward(x.clone())?; //                     [b, s, nh * hd]
    let k = attention.k_proj.try_forward(x)?; //                             [b, s, nkv * hd]
    let q = q.try_reshape_like(&(b, s, NH, Const)).map_err(Error::from)?; //  [b, s, nh, hd]
    let k = k.try_reshape_like(&(b, s, NKV, Const)).map_err(Error::from)?; // [b, s, nkv, hd]
    let q = attention.position.on_queries(q, &0.into())?; //                 [b, s, nh, hd]
    let k = attention.position.on_keys(k, &0.into())?; //                    [b, s, nkv, hd]
    let k = repeat_kv(k, NH / NKV)?; //                                      [b, s, nh, hd]

    let run = || -> std::result::Result<_, CpuError> {
        let q = q.try_permute::<_, Axes4<0, 2, 1, 3>>()?; //                 [b, nh, s, hd]
        let k = k.try_permute::<_, Axes4<0, 2, 3, 1>>()?; //                 [b, nh, hd, s]
        let scores = q.try_matmul(k)?.try_div(root)?; //                     [b, nh, s, s]
        let dev = scores.device();
        let seen = causal_mask(0, s, s, &vec![0; b]);
        let seen = dev.try_tensor_from_vec(seen, (b, s, s))?; //             [b, s, s]
        let seen = seen.try_broadcast_like::<_, Axis<1>>(scores.shape())?; // [b, nh, s, s]
        let hidden = dev.try_zeros_like(scores.shape())?.try_sub(F::infinity())?;
        seen.try_choose(scores, hidden)?.try_softmax::<Axis<3>>() //         [b, nh, s, s]
    };
    Ok(run().map_err(Error::from)?)
}
// ANCHOR_END: weights

/// One head on one text. Row `i` has the weights of the positions `0 ..= i`; those after are 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// `s` rows, of 1 to `s` weights.
    pub rows: Vec<Vec<f64>>,
}

/// Rows from here on are averaged. Row 0 sees itself alone, and for row 1 the token before is the first one.
const FROM: usize = 2;

impl Head {
    /// A head that gives each position that it sees the same weight: what a head does that prefers nothing.
    pub fn alike(s: usize) -> Self {
        Self { rows: (1..=s).map(|seen| vec![1.0 / seen as f64; seen]).collect() }
    }

    /// The mean of something over the rows from 2 on.
    fn mean(&self, of: impl Fn(usize, &[f64]) -> f64) -> f64 {
        let rows = self.rows.iter().enumerate().skip(FROM);
        let sum: f64 = rows.map(|(i, row)| of(i, row)).sum();
        sum / (self.rows.len() - FROM) as f64
    }

    /// How many positions it looks back, in the mean of its weights.
    pub fn steps_back(&self) -> f64 {
        self.mean(|i, row| row.iter().enumerate().map(|(j, weight)| weight * (i - j) as f64).sum())
    }

    /// Its weight on the token that asks.
    pub fn itself(&self) -> f64 {
        self.mean(|i, row| row[i])
    }

    /// Its weight on the token before.
    pub fn before(&self) -> f64 {
        self.mean(|i, row| row[i - 1])
    }

    /// Its weight on the first token of the text.
    pub fn first(&self) -> f64 {
        self.mean(|_, row| row[0])
    }
}

/// All heads of a model on one text.
#[derive(Debug, Clone, PartialEq)]
pub struct Maps {
    /// The tokens, as a reader can see them.
    pub tokens: Vec<String>,
    /// The heads of each block.
    pub blocks: Vec<Vec<Head>>,
}

/// The fewest tokens of a text whose heads are looked at.
pub const LEAST: usize = FROM + 1;

// ANCHOR: look
/// The heads of each block of a model on one text, `[s]`. Each block gets what the block before it gives.
///
/// # Errors
/// An id that the model does not have; a text that is longer than its positions; what the device reports.
pub fn look<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
    F: Float,
    O,
    E: Embed<V, H, F, Cpu>,
    N: Normalize<H, F, Cpu>,
    P: PositionEncoding<HD, F, Cpu>,
>(
    model: &LlamaTransformer<V, H, NH, NKV, HD, FF, L, F, Cpu, O, E, N, P>,
    dev: &Cpu,
    ids: &[usize],
) -> Result<Vec<Vec<Head>>>
where
    Cpu: Backend<F> + HasErr<Err = CpuError>,
{
    let s = ids.len();
    let ids = dev.try_tensor_from_vec(ids.to_vec(), (1, s)).map_err(Error::from)?; // [1, s]
    let mut x = model.embed_tokens.embed(ids)?; //                           [1, s, h]
    let mut blocks = Vec::new();
    for block in &model.layers.modules {
        let n = block.input_layernorm.normalize(x.clone())?; //              [1, s, h]
        blocks.push(heads(&weights(&block.self_attn, n)?.as_vec(), s)); //   [1, nh, s, s]
        x = block.try_forward(x)?; //                                        [1, s, h]
    }
    Ok(blocks)
}
// ANCHOR_END: look

/// The heads of one block from their weights, `[nh, s, s]`.
pub fn heads<F: Float>(weights: &[F], s: usize) -> Vec<Head> {
    let number = |weight: &F| weight.to_f64().unwrap_or(f64::NAN);
    let row = |(i, row): (usize, &[F])| row[..=i].iter().map(number).collect();
    let head = |head: &[F]| Head { rows: head.chunks(s).enumerate().map(row).collect() };
    weights.chunks(s * s).map(head).collect()
}

/// The mean of what there is, if there is anything.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The side of a map, with its title and its axes.
const SIDE: u32 = 232;

/// A weight below would be nearly white, and is not drawn: most are.
const DRAWN: f64 = 0.02;

impl Maps {
    /// Where the word of token `i` begins: at the last token up to it that begins with a space, or at the first one.
    fn word(&self, i: usize) -> usize {
        (0..=i).rev().find(|j| self.tokens[*j].starts_with('␣')).unwrap_or(0)
    }

    /// Two means of a head's weights, over tokens that are two or more after the beginning of their word: the weight on
    /// that beginning, and the weight of any token on one that is as far back and begins no word. `None` if there are
    /// none to compare.
    pub fn words(&self, head: &Head) -> Option<[f64; 2]> {
        let tokens = 0..self.tokens.len();
        let pairs: Vec<[f64; 2]> = (tokens.clone().filter(|i| self.word(*i) + 2 <= *i))
            .filter_map(|i| {
                let far = i - self.word(i);
                let others = tokens.clone().skip(far).filter(|i| self.word(i - far) < i - far);
                Some([head.rows[i][i - far], mean(others.map(|i| head.rows[i][i - far]))?])
            })
            .collect();
        let of = |nth: usize| mean(pairs.iter().map(|pair| pair[nth]));
        Some([of(0)?, of(1)?])
    }

    /// A map for each head: blocks from top to bottom, heads from left to right.
    ///
    /// # Errors
    /// What plotters reports.
    pub fn figure(&self) -> Result<Figure> {
        let heads = self.blocks.iter().map(Vec::len).max().unwrap_or(0);
        let lines = self.lines(SIDE as usize * heads / 8);
        let foot = 24 * lines.len() as u32 + 8;
        let size = (SIDE * heads as u32 + 80, SIDE * self.blocks.len() as u32 + foot + 50);
        Figure::paint("What does each head look at?", size, |area| {
            let (maps, below) = area.split_vertically(SIDE * self.blocks.len() as u32);
            let (maps, scale) = maps.split_horizontally(SIDE * heads as u32);
            let places = maps.split_evenly((self.blocks.len(), heads));
            for (b, block) in self.blocks.iter().enumerate() {
                for (h, head) in block.iter().enumerate() {
                    let title = format!("block {}, head {}", b + 1, h + 1);
                    map(&places[b * heads + h], &title, head)?;
                }
            }
            color_scale(&scale)?;
            for (nth, line) in lines.iter().enumerate() {
                below.draw(&Text::new(line.as_str(), (8, 24 * nth as i32 + 4), small_font()))?;
            }
            Ok(())
        })
    }

    /// The tokens with spaces between them, in lines of at most about `letters` letters. A token's own spaces can be seen.
    fn lines(&self, letters: usize) -> Vec<String> {
        let mut lines = vec![String::new()];
        for token in &self.tokens {
            let full = |line: &String| line.chars().count() + token.chars().count() > letters;
            if lines.last().is_some_and(full) {
                lines.push(String::new());
            }
            if let Some(line) = lines.last_mut() {
                line.push_str(&format!("{token} "));
            }
        }
        lines
    }
}

/// Rows ask, columns are looked at. White is 0.
fn map(area: &Area, title: &str, head: &Head) -> Painted {
    let s = head.rows.len();
    let mut chart = ChartBuilder::on(area)
        .caption(title, small_font())
        .margin_right(12)
        .x_label_area_size(26)
        .y_label_area_size(32)
        .build_cartesian_2d(0.0..s as f64, s as f64..0.0)?;
    let mut mesh = chart.configure_mesh();
    let mesh = mesh.disable_mesh().x_labels(4).y_labels(4).axis_style(PALE);
    let whole = &crate::plot::whole;
    mesh.label_style(small_font()).x_label_formatter(whole).y_label_formatter(whole).draw()?;
    for (i, row) in head.rows.iter().enumerate() {
        let cells = row.iter().enumerate().filter(|(_, weight)| **weight >= DRAWN);
        chart.draw_series(cells.map(|(j, weight)| {
            let corner = (j as f64, i as f64);
            Rectangle::new([corner, (corner.0 + 1.0, corner.1 + 1.0)], heat(*weight).filled())
        }))?;
    }
    // Past this line is what comes later.
    let edge = [(0.0, 0.0), (s as f64, s as f64)];
    chart.draw_series(LineSeries::new(edge, INK))?;
    Ok(())
}

/// The colours of weights from 1 to 0.
fn color_scale(area: &Area) -> Painted {
    let (top, bottom, steps) = (60, 200, 20);
    let y = |step: i32| top + (bottom - top) * step / steps;
    for step in 0..steps {
        let weight = 1.0 - (f64::from(step) + 0.5) / f64::from(steps);
        area.draw(&Rectangle::new([(4, y(step)), (18, y(step + 1))], heat(weight).filled()))?;
    }
    area.draw(&Rectangle::new([(4, top), (18, bottom)], PALE))?;
    for (at, value) in [(top, "1.0"), ((top + bottom) / 2, "0.5"), (bottom, "0.0")] {
        area.draw(&Text::new(value, (34, at), centred()))?;
    }
    area.draw(&Text::new("weight", (0, top - 28), small_font()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use quadrivium::linear::{Linear, LinearConfig};
    use quadrivium::{NtkAwareRope, NtkAwareRopeConfig};

    const U: f64 = 1.0 / (1u32 << 24) as f64;
    /// Tokens, query heads, key heads, elements of a head.
    const S: usize = 9;
    const NH: usize = 4;
    const NKV: usize = 2;
    const HD: usize = 8;
    const H: usize = NH * HD;

    type Attention = GroupedQueryAttention<H, NH, NKV, HD, f32, Cpu>;

    /// Attention whose last matrix changes nothing, so that it gives what its heads found, bit for bit. The other matrices are
    /// large, so that the weights differ.
    fn attention(dev: &Cpu) -> Attention {
        let rope = NtkAwareRope::new(dev, NtkAwareRopeConfig::default()).unwrap();
        let mut attention = Attention::new(dev, 7, 0.4, rope).unwrap();
        let unit: Vec<f32> =
            (0..H * H).map(|at| if at / H == at % H { 1.0 } else { 0.0 }).collect();
        let unit = dev.tensor_from_vec(unit, Default::default());
        attention.o_proj = Linear::with_weight(unit, LinearConfig::default()).unwrap();
        attention
    }

    fn tokens(dev: &Cpu) -> Tensor<(usize, usize, Const<H>), f32, Cpu> {
        let draws = quadrivium::init::Init::Normal { mean: 0.0, std: 1.0, seed: 3 };
        dev.tensor_from_vec(draws.values(S * H), (1, S, Const)) // [1, s, h]
    }

    /// A softmax of `n` terms in `f32`: its sum is off by `n` roundings, and each quotient by one. What an exponential
    /// is off is shown above and below the line.
    #[test]
    fn each_row_sums_to_one_and_does_not_look_ahead() {
        let dev = Cpu::default();
        let weights = weights(&attention(&dev), tokens(&dev)).unwrap().as_vec();
        assert_eq!(weights.len(), NH * S * S);
        for (at, row) in weights.chunks(S).enumerate() {
            let sum: f64 = row.iter().map(|w| f64::from(*w)).sum();
            assert!((sum - 1.0).abs() <= (S as f64 + 1.0) * U, "row {at}: {sum}");
            assert!(row[at % S + 1..].iter().all(|w| *w == 0.0), "row {at}: {row:?}");
        }
        let sharp = weights.iter().filter(|w| **w > 0.5).count();
        assert!(sharp > NH * S / 4, "the heads prefer something: {sharp}");
    }

    /// The weights times the values, in `f64` loops, beside what the module gives.
    ///
    /// Both have the same queries, keys and values, bit for bit. A score is a sum of `hd` products, divided by a root: two
    /// ways to compute it are apart by `2 (hd + 2)` roundings of its terms. That is the relative distance of two exponentials,
    /// and their sums' are not larger, so a weight is off by twice as much. To this comes what an exponential rounds: the difference to the
    /// largest score, which is at most twice the largest terms, and `2^-22` in either; the sum over `s` and the quotient,
    /// in both; and the module's own `s` products with values.
    #[test]
    fn the_weights_times_the_values_are_what_attention_gives() {
        let dev = Cpu::default();
        let (attention, x) = (attention(&dev), tokens(&dev));
        let weights = weights(&attention, x.clone()).unwrap().as_vec(); // [1, nh, s, s]
        let values = attention.v_proj.try_forward(x.clone()).unwrap().as_vec(); // [1, s, nkv * hd]
        let given = attention.try_forward(x.clone()).unwrap().as_vec(); // [1, s, h]
        let q = attention.q_proj.try_forward(x.clone()).unwrap().as_vec(); // [1, s, nh * hd]
        let k = attention.k_proj.try_forward(x).unwrap().as_vec(); // [1, s, nkv * hd]
        let size = |x: &[f32]| x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        let (s, hd) = (S as f64, HD as f64);
        for head in 0..NH {
            let key_head = head / (NH / NKV);
            for i in 0..S {
                // A turn keeps the length, and no sum of products' sizes is above the product of the lengths.
                let asks = size(&q[i * H + head * HD..][..HD]);
                let keys = (0..=i).map(|j| size(&k[(j * NKV + key_head) * HD..][..HD]));
                let terms = asks * keys.fold(0.0, f64::max) / hd.sqrt();
                let score = 2.0 * (hd + 2.0) * U * terms;
                let off = 2.0 * (score + (4.0 * terms + 8.0 + s + 1.0) * U) + (s + 1.0) * U;
                for d in 0..HD {
                    let value = |j: usize| f64::from(values[(j * NKV + key_head) * HD + d]);
                    let weight = |j: usize| f64::from(weights[(head * S + i) * S + j]);
                    let found: f64 = (0..S).map(|j| weight(j) * value(j)).sum();
                    let terms: f64 = (0..S).map(|j| weight(j) * value(j).abs()).sum();
                    let given = f64::from(given[i * H + head * HD + d]);
                    let apart = (found - given).abs();
                    assert!(apart <= off * terms, "head {head}, row {i}: {found} and {given}");
                }
            }
        }
    }

    #[test]
    fn the_numbers_of_known_heads() {
        let one_back = |i: usize| (0..=i).map(|j| f64::from(u8::from(j + 1 == i.max(1)))).collect();
        let head = Head { rows: (0..6).map(one_back).collect() };
        assert_eq!(
            [head.steps_back(), head.itself(), head.before(), head.first()],
            [1.0, 0.0, 1.0, 0.0]
        );
        // Rows of 3 and 4 positions: 1 and 1.5 steps back, and a third and a quarter of the weight on each.
        let alike = Head::alike(4);
        assert_eq!(alike.steps_back(), 1.25);
        for weight in [alike.itself(), alike.before(), alike.first()] {
            assert!((weight - 7.0 / 24.0).abs() < 1e-15);
        }
    }

    #[test]
    fn words_of_several_tokens() {
        let tokens = |tokens: &[&str]| tokens.iter().map(|token| token.to_string()).collect();
        let maps =
            Maps { tokens: tokens(&["E", "ach", "er", "␣t", "o", "k", "en"]), blocks: vec![] };
        assert_eq!((0..7).map(|i| maps.word(i)).collect::<Vec<_>>(), [0, 0, 0, 3, 3, 3, 3]);
        // Rows 2, 5 and 6 count, with a third, a sixth and a seventh. Two back from rows 3, 4 and 6, and three back
        // from rows 4 and 5, are tokens that begin no word.
        let [start, others] = maps.words(&Head::alike(7)).unwrap();
        assert!((start - (1.0 / 3.0 + 1.0 / 6.0 + 1.0 / 7.0) / 3.0).abs() < 1e-15, "{start}");
        let [two, three] =
            [(1.0 / 4.0 + 1.0 / 5.0 + 1.0 / 7.0) / 3.0, (1.0 / 5.0 + 1.0 / 6.0) / 2.0];
        assert!((others - (two + two + three) / 3.0).abs() < 1e-15, "{others}");
        let short = Maps { tokens: tokens(&["␣a", "b", "␣c"]), blocks: vec![] };
        assert_eq!(short.words(&Head::alike(3)), None);
    }

    #[test]
    fn a_model_has_a_map_for_each_head() {
        type Model = LlamaTransformer<5, 16, 2, 1, 8, 48, 3, f32, Cpu>;
        let dev = Cpu::default();
        let model = Model::new(&dev, Default::default()).unwrap();
        let blocks = look(&model, &dev, &[0, 1, 2, 1]).unwrap();
        assert_eq!(blocks.iter().map(Vec::len).collect::<Vec<_>>(), [2; 3]);
        assert!(look(&model, &dev, &[0, 5]).is_err(), "there is no id 5");
        // Each block gets what the one before it gives, and its attention gets that after the norm.
        let ids = dev.tensor_from_vec(vec![0, 1, 2, 1], (1, 4)); //           [b, s]
        let mut x = model.embed_tokens.embed(ids).unwrap(); //                [b, s, h]
        for (block, shown) in model.layers.modules.iter().zip(&blocks) {
            let n = block.input_layernorm.normalize(x.clone()).unwrap(); //   [b, s, h]
            let of_block = weights(&block.self_attn, n).unwrap().as_vec(); // [b, nh, s, s]
            assert_eq!(heads(&of_block, 4), *shown);
            let bare = weights(&block.self_attn, x.clone()).unwrap().as_vec();
            assert_ne!(heads(&bare, 4), *shown, "a norm changes something");
            x = block.try_forward(x).unwrap(); //                             [b, s, h]
        }

        let tokens = ["a", "b", "<c>", "b"].map(String::from).to_vec();
        let svg = Maps { tokens, blocks }.figure().unwrap();
        assert!(svg.svg().contains("block 3, head 2"), "{}", svg.svg());
        assert!(svg.svg().contains("a b &lt;c&gt; b"), "{}", svg.svg());
    }
}
