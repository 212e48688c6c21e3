//! How far the model's answers may be off in `f32`: the same model once more, exactly and with its roundings.

use crate::laws::U;
use crate::model::interface::*;
use crate::oracle::known::{Known, Question};
use error_bounds::{At, Digits, Order, Tape};
use std::rc::Rc;

/// Tokens, each `[h]`.
type Rows = Vec<Vec<At>>;

/// A value, and how far one in `f32` may be from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    /// The value.
    pub value: f64,
    /// How far an answer may be off.
    pub off: f64,
}

/// What bounds every answer here, for a report.
pub const WHY: &str =
    "16 times what the same model is off in f32, in the worst of three orders of its sums";

/// Other right code is off by other roundings, of the same size.
const TIMES: f64 = 16.0;

/// The values of `compute`, and for each how far it may be off. The roundings of neighbours are taken together, so that
/// a value which is right by luck bounds no one: `neighbours` of them each.
fn near(neighbours: &[usize], compute: impl Fn(Digits) -> Vec<f64>) -> Vec<Near> {
    let exact = compute(Digits::All);
    let orders = [Order::Left, Order::Right, Order::Halves];
    let rounded = orders.map(|order| compute(Digits::F32(order)));
    let (mut all, mut at) = (Vec::with_capacity(exact.len()), 0);
    for n in neighbours {
        let of = |values: &Vec<f64>| {
            (at..at + n).map(|i| (values[i] - exact[i]).abs()).fold(0.0, f64::max)
        };
        let off = rounded.iter().map(of).fold(0.0, f64::max);
        let size = exact[at..at + n].iter().map(|value| value.abs()).fold(0.0, f64::max);
        let off = TIMES * (off + U * size);
        all.extend(exact[at..at + n].iter().map(|&value| Near { value, off }));
        at += n;
    }
    all
}

/// A block's weights on a tape.
struct Block {
    tensors: [Vec<At>; 9],
}

impl Block {
    fn new(tape: &Tape, weights: &BlockWeights) -> Self {
        Self { tensors: weights.tensors().map(|tensor| given(tape, tensor)) }
    }
}

fn given(tape: &Tape, values: &[f32]) -> Vec<At> {
    values.iter().map(|&value| tape.given(f64::from(value))).collect()
}

/// Sizes, eps and base.
type On = (Sizes, f64, f64);

fn product(tape: &Tape, matrix: &[At], x: &[At]) -> Vec<At> {
    matrix.chunks(x.len()).map(|row| tape.dot(row, x)).collect()
}

fn normed(tape: &Tape, x: &[At], gamma: &[At], eps: f64) -> Vec<At> {
    let mean = tape.scaled(tape.dot(x, x), 1.0 / x.len() as f64);
    let inverse = tape.inverse_root(mean, eps);
    let element = |(&x, &gamma): (&At, &At)| tape.product(tape.product(x, inverse), gamma);
    x.iter().zip(gamma).map(element).collect()
}

fn rotate(tape: &Tape, head: &[At], position: usize, base: f64) -> Vec<At> {
    let half = head.len() / 2;
    let turn = |i: usize| {
        let angle = position as f64 * base.powf(-((i % half) as f64) / half as f64);
        let part = |x: At, by: f64| tape.scaled(x, by);
        let (cos, sin) = (f64::from(angle.cos() as f32), f64::from(angle.sin() as f32));
        match i < half {
            true => tape.sum(&[part(head[i], cos), part(head[i + half], -sin)]),
            false => tape.sum(&[part(head[i], cos), part(head[i - half], sin)]),
        }
    };
    (0..head.len()).map(turn).collect()
}

fn block(tape: &Tape, (sizes, eps, base): On, weights: &Block, x: Rows) -> Rows {
    let Sizes { nh, nkv, hd, .. } = sizes;
    let [input_norm, q, k, v, o, post_norm, gate, up, down] = &weights.tensors;
    let normal: Rows = x.iter().map(|x| normed(tape, x, input_norm, eps)).collect();
    let turned = |matrix: &[At]| -> Rows {
        let heads = normal.iter().enumerate().map(|(t, x)| {
            let heads = product(tape, matrix, x);
            heads.chunks(hd).flat_map(|head| rotate(tape, head, t, base)).collect()
        });
        heads.collect()
    };
    let (queries, keys) = (turned(q), turned(k));
    let values: Rows = normal.iter().map(|x| product(tape, v, x)).collect();
    let rows = x.iter().enumerate().map(|(t, x)| {
        let mut found = Vec::new();
        for head in 0..nh {
            let shared = head / (nh / nkv) * hd;
            let query = &queries[t][head * hd..][..hd];
            let score = |key: &Vec<At>| {
                tape.scaled(tape.dot(query, &key[shared..][..hd]), (hd as f64).powf(-0.5))
            };
            let scores: Vec<At> = keys[..=t].iter().map(score).collect();
            let weights = softmax(tape, &scores);
            for j in 0..hd {
                let column: Vec<At> = values[..=t].iter().map(|value| value[shared + j]).collect();
                found.push(tape.dot(&weights, &column));
            }
        }
        let x = sum(tape, x, &product(tape, o, &found));
        let n = normed(tape, &x, post_norm, eps);
        let (gate, up) = (product(tape, gate, &n), product(tape, up, &n));
        let between: Vec<At> =
            gate.iter().zip(&up).map(|(&a, &b)| tape.product(tape.silu(a), b)).collect();
        sum(tape, &x, &product(tape, down, &between))
    });
    rows.collect()
}

fn sum(tape: &Tape, x: &[At], y: &[At]) -> Vec<At> {
    x.iter().zip(y).map(|(&x, &y)| tape.sum(&[x, y])).collect()
}

/// The largest of some numbers. What is subtracted from all changes no softmax, so nothing goes back through it.
fn largest(tape: &Tape, values: &[At]) -> f64 {
    values.iter().map(|&at| tape.value(at)).fold(f64::NEG_INFINITY, f64::max)
}

fn softmax(tape: &Tape, scores: &[At]) -> Vec<At> {
    let less = tape.given(-largest(tape, scores));
    let terms: Vec<At> = scores.iter().map(|&x| tape.exp(tape.sum(&[x, less]))).collect();
    let total = tape.sum(&terms);
    terms.into_iter().map(|term| tape.quotient(term, total)).collect()
}

/// A block as a question. Its answer does not depend on the calls in which it comes.
pub(super) fn question_of_block(case: &BlockCase) -> Question {
    let question = of_sizes(case.sizes, case.tokens).settings(&[case.eps, case.base]);
    case.tensors().into_iter().fold(question, |question, tensor| question.values(tensor))
}

/// A model as a question.
pub(super) fn question(case: &ModelCase) -> Question {
    let question = of_sizes(case.sizes, case.tokens).settings(&[case.eps, case.base]);
    let question = question.sizes(&case.ids).sizes(&[case.blocks.len()]);
    case.weights().into_iter().fold(question, |question, tensor| question.values(tensor))
}

fn of_sizes(Sizes { v, h, nh, nkv, hd, f }: Sizes, [b, s]: [usize; 2]) -> Question {
    Question::default().sizes(&[v, h, nh, nkv, hd, f, b, s])
}

/// The answer of a block, `[b, s, h]`.
pub fn of_block(case: &BlockCase) -> Rc<Vec<Near>> {
    thread_local!(static KNOWN: Known<Vec<Near>> = Known::default());
    KNOWN.with(|known| known.get(question_of_block(case), || block_near(case)))
}

fn block_near(case: &BlockCase) -> Vec<Near> {
    let ([b, s], h) = (case.tokens, case.sizes.h);
    let of_text = |text: &[f32], digits| -> Vec<f64> {
        let tape = Tape::new(digits, false);
        let x = text.chunks(h).map(|row| given(&tape, row)).collect();
        let weights = Block::new(&tape, &case.weights);
        let y = block(&tape, (case.sizes, case.eps, case.base), &weights, x);
        y.into_iter().flatten().map(|at| tape.value(at)).collect()
    };
    near(&vec![h; b * s], |digits| {
        case.x.chunks(s * h).flat_map(|text| of_text(text, digits)).collect()
    })
}

/// The gradients of [`BlockCase::tensors`], when `dy` is that of the answer.
pub fn of_block_back(case: &BlockCase, dy: &[f32]) -> Rc<Vec<Near>> {
    thread_local!(static KNOWN: Known<Vec<Near>> = Known::default());
    let question = question_of_block(case).values(dy);
    KNOWN.with(|known| known.get(question, || block_back_near(case, dy)))
}

fn block_back_near(case: &BlockCase, dy: &[f32]) -> Vec<Near> {
    let ([_, s], h) = (case.tokens, case.sizes.h);
    let neighbours: Vec<usize> = case.tensors().iter().map(|tensor| tensor.len()).collect();
    let mut all = near(&neighbours, |digits| {
        let tape = Tape::new(digits, true);
        let (x, weights) = (given(&tape, &case.x), Block::new(&tape, &case.weights));
        let of_text = |text: &[At]| {
            let rows = text.chunks(h).map(<[At]>::to_vec).collect();
            block(&tape, (case.sizes, case.eps, case.base), &weights, rows).into_iter().flatten()
        };
        let y: Vec<At> = x.chunks(s * h).flat_map(of_text).collect();
        let gradient = tape.back(tape.dot(&y, &given(&tape, dy)));
        let tensors = x.iter().chain(weights.tensors.iter().flatten());
        tensors.map(|at| gradient[at.place()]).collect()
    });
    allow_cancelled(&mut all);
    all
}

/// Where two tokens are equal, what is sent back through their scores cancels: exactly in one way to write it, and to a
/// rounding of what cancels in another. No tensor knows the size of that, so it is the largest of all gradients'.
fn allow_cancelled(gradients: &mut [Near]) {
    let most = gradients.iter().map(|near| near.value.abs()).fold(0.0, f64::max);
    gradients.iter_mut().for_each(|near| near.off += TIMES * U * most);
}

/// A model's weights on a tape.
struct Weights {
    table: Vec<At>,
    blocks: Vec<Block>,
    norm: Vec<At>,
    head: Option<Vec<At>>,
}

impl Weights {
    fn new(tape: &Tape, case: &ModelCase) -> Self {
        Self {
            table: given(tape, &case.table),
            blocks: case.blocks.iter().map(|weights| Block::new(tape, weights)).collect(),
            norm: given(tape, &case.norm),
            head: case.head.as_ref().map(|head| given(tape, head)),
        }
    }

    /// In the order of [`ModelCase::weights`].
    fn all(&self) -> Vec<At> {
        let blocks = self.blocks.iter().flat_map(|block| block.tensors.iter().flatten());
        self.table
            .iter()
            .chain(blocks)
            .chain(&self.norm)
            .chain(self.head.iter().flatten())
            .copied()
            .collect()
    }
}

/// Logits of one text, `[s, v]`.
fn logits(tape: &Tape, case: &ModelCase, weights: &Weights, ids: &[usize]) -> Rows {
    let h = case.sizes.h;
    let mut x: Rows = ids.iter().map(|id| weights.table[id * h..][..h].to_vec()).collect();
    for weights in &weights.blocks {
        x = block(tape, (case.sizes, case.eps, case.base), weights, x);
    }
    let output = weights.head.as_ref().unwrap_or(&weights.table);
    let row = |x: Vec<At>| product(tape, output, &normed(tape, &x, &weights.norm, case.eps));
    x.into_iter().map(row).collect()
}

/// The logits, `[b, s, v]`.
pub fn of_logits(case: &ModelCase) -> Rc<Vec<Near>> {
    thread_local!(static KNOWN: Known<Vec<Near>> = Known::default());
    KNOWN.with(|known| known.get(question(case), || logits_near(case)))
}

fn logits_near(case: &ModelCase) -> Vec<Near> {
    let [b, s] = case.tokens;
    let of_text = |ids: &[usize], digits| -> Vec<f64> {
        let tape = Tape::new(digits, false);
        let weights = Weights::new(&tape, case);
        let rows = logits(&tape, case, &weights, ids);
        rows.into_iter().flatten().map(|at| tape.value(at)).collect()
    };
    near(&vec![case.sizes.v; b * s], |digits| {
        case.ids.chunks(s).flat_map(|ids| of_text(ids, digits)).collect()
    })
}

/// The gradients of [`ModelCase::weights`], when `dy` is that of the logits.
pub fn of_backward(case: &ModelCase, dy: &[f32]) -> Rc<Vec<Near>> {
    thread_local!(static KNOWN: Known<Vec<Near>> = Known::default());
    KNOWN.with(|known| known.get(question(case).values(dy), || backward_near(case, dy)))
}

fn backward_near(case: &ModelCase, dy: &[f32]) -> Vec<Near> {
    let neighbours: Vec<usize> = case.weights().iter().map(|tensor| tensor.len()).collect();
    let mut all = near(&neighbours, |digits| {
        let tape = Tape::new(digits, true);
        let weights = Weights::new(&tape, case);
        let texts = case.ids.chunks(case.tokens[1]);
        let logits: Vec<At> =
            texts.flat_map(|ids| logits(&tape, case, &weights, ids)).flatten().collect();
        let gradient = tape.back(tape.dot(&logits, &given(&tape, dy)));
        weights.all().into_iter().map(|at| gradient[at.place()]).collect()
    });
    allow_cancelled(&mut all);
    all
}

/// The loss, and its gradient with respect to each weight.
pub fn of_training(case: &ModelCase) -> Rc<(Near, Vec<Near>)> {
    thread_local!(static KNOWN: Known<(Near, Vec<Near>)> = Known::default());
    KNOWN.with(|known| known.get(question(case), || training_near(case)))
}

fn training_near(case: &ModelCase) -> (Near, Vec<Near>) {
    let mut neighbours = vec![1];
    neighbours.extend(case.weights().iter().map(|tensor| tensor.len()));
    let mut all = near(&neighbours, |digits| {
        let tape = Tape::new(digits, true);
        let weights = Weights::new(&tape, case);
        let loss = loss(&tape, case, &weights);
        let gradient = tape.back(loss);
        let gradient = weights.all().into_iter().map(|at| gradient[at.place()]);
        std::iter::once(tape.value(loss)).chain(gradient).collect()
    });
    let mut loss = all.remove(0);
    // The loss has no neighbours, and may be right by luck. It is a mean of differences of logits, which have some.
    loss.off = of_logits(case).iter().map(|logit| logit.off).fold(loss.off, f64::max);
    allow_cancelled(&mut all);
    (loss, all)
}

fn loss(tape: &Tape, case: &ModelCase, weights: &Weights) -> At {
    let mut losses = Vec::new();
    for ids in case.ids.chunks(case.tokens[1]) {
        let rows = logits(tape, case, weights, ids);
        for (row, &target) in rows.iter().zip(&ids[1..]) {
            let less = tape.given(-largest(tape, row));
            let shifted: Vec<At> = row.iter().map(|&x| tape.sum(&[x, less])).collect();
            let terms: Vec<At> = shifted.iter().map(|&x| tape.exp(x)).collect();
            let total = tape.ln(tape.sum(&terms));
            losses.push(tape.sum(&[total, tape.scaled(shifted[target], -1.0)]));
        }
    }
    tape.scaled(tape.sum(&losses), 1.0 / losses.len() as f64)
}
