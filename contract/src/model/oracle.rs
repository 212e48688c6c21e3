//! A Llama decoder in `f64` loops: one batch row after the other, one token after the other.

use crate::model::bounds::{question, question_of_block};
use crate::model::interface::*;
use crate::oracle::known::{Known, Question};
use crate::oracle::{Loops, Oracle};
use std::rc::Rc;

/// Tokens, each `[h]`.
pub type Rows = Vec<Vec<f64>>;

/// What one cache keeps: the keys and values of all positions, each `[nkv * hd]`.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// After the rotation.
    pub keys: Rows,
    /// As they are.
    pub values: Rows,
}

/// Where a call is in its text.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Tokens before it.
    pub offset: usize,
    /// Calls before it.
    pub calls: usize,
}

/// Which of them are turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A query.
    Query,
    /// A key.
    Key,
    /// A value.
    Value,
}

/// What a block has besides its weights.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The sizes.
    pub sizes: Sizes,
    /// Of all norms.
    pub eps: f64,
    /// Of the rotation.
    pub base: f64,
}

/// Any loops as a trait object: what goes over many steps is compiled once.
pub trait AsLlamaLoops {
    /// Itself.
    fn as_loops(&self) -> &dyn LlamaLoops;
}

impl<L: LlamaLoops> AsLlamaLoops for L {
    fn as_loops(&self) -> &dyn LlamaLoops {
        self
    }
}

/// The steps of the model. A bug writes one of them wrong.
pub trait LlamaLoops: AsLlamaLoops {
    /// The row of an id, if the table has one.
    fn row(&self, id: usize, v: usize) -> Option<usize> {
        (id < v).then_some(id)
    }

    /// A row of the table, as it enters the first block.
    fn embedded(&self, row: Vec<f64>) -> Vec<f64> {
        row
    }

    /// `x / rms(x) * gamma` of one token.
    fn normed(&self, x: &[f64], gamma: &[f32], eps: f64) -> Vec<f64> {
        let rms = (x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64 + eps).sqrt();
        x.iter().zip(gamma).map(|(x, gamma)| x / rms * f64::from(*gamma)).collect()
    }

    /// The position of token `t` of a call.
    fn position(&self, place: Place, t: usize) -> usize {
        place.offset + t
    }

    /// The heads of a projection, one after the other, each of `hd` elements.
    fn split(&self, projected: Vec<f64>, _heads: usize) -> Vec<f64> {
        projected
    }

    /// One head at a position. Values are not turned.
    fn turned(&self, role: Role, head: &[f64], position: usize, base: f64) -> Vec<f64> {
        if role == Role::Value { head.to_vec() } else { rotate(head, position, base) }
    }

    /// Whether the query at one position sees the key at another. The call begins at `place`.
    fn sees(&self, query: usize, key: usize, _place: Place) -> bool {
        key <= query
    }

    /// What attention gives for normed tokens, `[s, h]`. The cache takes them in.
    fn attention(
        &self,
        on: &Settings,
        weights: &BlockWeights,
        x: &[Vec<f64>],
        kept: &mut Kept,
        place: Place,
    ) -> Rows {
        attention(self.as_loops(), on, weights, x, kept, place)
    }

    /// From what the heads found to a token.
    fn merged(&self, o: &[f32], found: &[f64]) -> Vec<f64> {
        product(o, found)
    }

    /// What the network gives for a normed token.
    fn network(&self, weights: &BlockWeights, x: &[f64]) -> Vec<f64> {
        let (gate, up) = (product(&weights.gate, x), product(&weights.up, x));
        let between: Vec<f64> =
            gate.iter().zip(up).map(|(a, b)| a / (1.0 + (-a).exp()) * b).collect();
        product(&weights.down, &between)
    }

    /// The block, around its two halves.
    fn block(
        &self,
        on: &Settings,
        weights: &BlockWeights,
        x: Rows,
        kept: &mut Kept,
        place: Place,
    ) -> Rows {
        block(self.as_loops(), on, weights, x, kept, place)
    }

    /// Whether a gradient reaches a tensor of a block, by its place among [`BlockCase::tensors`].
    fn block_reaches(&self, _tensor: usize) -> bool {
        true
    }

    /// Whether a gradient reaches a weight of the model, by its place among [`ModelCase::weights`].
    fn reaches(&self, case: &ModelCase, tensor: usize) -> bool {
        let in_blocks = (1..=9 * case.blocks.len()).contains(&tensor);
        !in_blocks || self.block_reaches((tensor - 1) % 9 + 1)
    }

    /// The blocks, in the order in which they are passed.
    fn order(&self, blocks: usize) -> Vec<usize> {
        (0..blocks).collect()
    }

    /// The cache of a block.
    fn cache_of(&self, block: usize) -> usize {
        block
    }

    /// The norm after the last block.
    fn last_norm(&self, x: &[f64], gamma: &[f32], eps: f64) -> Vec<f64> {
        self.normed(x, gamma, eps)
    }

    /// The matrix that gives the logits.
    fn output<'a>(&self, case: &'a ModelCase) -> &'a [f32] {
        case.head.as_ref().unwrap_or(&case.table)
    }

    /// The logits `[s, v]` of the next tokens of one text.
    fn piece(&self, case: &ModelCase, ids: &[usize], caches: &mut [Kept], place: Place) -> Rows {
        piece(self.as_loops(), case, ids, caches, place)
    }

    /// Which place is to predict which token, in a text.
    fn targets(&self, ids: &[usize]) -> Vec<(usize, usize)> {
        ids[1..].iter().copied().enumerate().collect()
    }

    /// The mean of the losses of all texts.
    fn mean(&self, losses: &[f64], _texts: usize) -> f64 {
        losses.iter().sum::<f64>() / losses.len() as f64
    }

    /// A weight after a step.
    fn stepped(&self, weight: f64, rate: f64, gradient: f64) -> f64 {
        weight - rate * gradient
    }

    /// Whether a tensor is trained: its place among all, and how many there are.
    fn is_trained(&self, case: &ModelCase, tensor: usize) -> bool {
        self.reaches(case, tensor)
    }

    /// The loss that a step reports, of those before and after it.
    fn told(&self, before: f64, _after: f64) -> f64 {
        before
    }

    /// Whether so many positions have room in a cache.
    fn fits(&self, wanted: usize, positions: usize) -> bool {
        wanted <= positions
    }

    /// Which of two tokens is likelier: that with the larger logit, and of equal ones that with the smaller id. Neither is NaN.
    fn likelier(&self, a: (usize, f64), b: (usize, f64)) -> std::cmp::Ordering {
        b.1.partial_cmp(&a.1).unwrap_or(std::cmp::Ordering::Equal).then(a.0.cmp(&b.0))
    }

    /// How many of `n` tokens are among the likeliest `top_k`.
    fn among(&self, top_k: usize, n: usize) -> usize {
        top_k.min(n)
    }

    /// Logits as they enter softmax. The likeliest is the first.
    fn tempered(&self, logits: &[f64], temperature: f64) -> Vec<f64> {
        logits.iter().map(|logit| (logit - logits[0]) / temperature).collect()
    }

    /// How many tokens are kept, of these probabilities, the largest first.
    fn nucleus(&self, p: &[f64], top_p: f64) -> usize {
        let mut before = 0.0;
        let kept = p.iter().take_while(|p| {
            let kept = before < top_p;
            before += *p;
            kept
        });
        kept.count()
    }

    /// The place of the token that is drawn, of these probabilities.
    fn drawn(&self, p: &[f64], unit: f64) -> usize {
        let mut left = unit * p.iter().sum::<f64>();
        for (place, p) in p.iter().enumerate() {
            left -= p;
            if left < 0.0 {
                return place;
            }
        }
        p.len() - 1
    }

    /// Refuses logits and settings from which nothing can be drawn.
    fn checked(&self, case: &SampleCase) -> Reply<()> {
        check(case)
    }

    /// The next token.
    fn sampled(&self, case: &SampleCase) -> usize {
        sampled(self.as_loops(), case)
    }
}

impl LlamaLoops for Oracle {}

/// `matrix x`; the matrix is `[out, in]`.
pub fn product(matrix: &[f32], x: &[f64]) -> Vec<f64> {
    let row = |row: &[f32]| row.iter().zip(x).map(|(w, x)| f64::from(*w) * x).sum();
    matrix.chunks(x.len()).map(row).collect()
}

/// One head at a position, in half-split pairs. Cosine and sine are numbers of `f32`, as tables hold them.
pub fn rotate(head: &[f64], position: usize, base: f64) -> Vec<f64> {
    let half = head.len() / 2;
    let mut y = vec![0.0; head.len()];
    for i in 0..half {
        let angle = position as f64 * base.powf(-(i as f64) / half as f64);
        let [cos, sin] = [angle.cos(), angle.sin()].map(|value| f64::from(value as f32));
        y[i] = head[i] * cos - head[i + half] * sin;
        y[i + half] = head[i + half] * cos + head[i] * sin;
    }
    y
}

/// The sum of two tokens.
pub fn sum(x: &[f64], y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| x + y).collect()
}

fn attention(
    loops: &dyn LlamaLoops,
    on: &Settings,
    weights: &BlockWeights,
    x: &[Vec<f64>],
    kept: &mut Kept,
    place: Place,
) -> Rows {
    let Sizes { nh, nkv, hd, .. } = on.sizes;
    let heads = |matrix: &[f32], x: &[f64], n: usize, role: Role, position: usize| -> Vec<f64> {
        let heads = loops.split(product(matrix, x), n);
        heads.chunks(hd).flat_map(|head| loops.turned(role, head, position, on.base)).collect()
    };
    let before = kept.keys.len();
    for (t, x) in x.iter().enumerate() {
        let position = loops.position(place, t);
        kept.keys.push(heads(&weights.k, x, nkv, Role::Key, position));
        kept.values.push(heads(&weights.v, x, nkv, Role::Value, position));
    }
    let rows = x.iter().enumerate().map(|(t, x)| {
        let q = heads(&weights.q, x, nh, Role::Query, loops.position(place, t));
        let at = before + t;
        let mut found = vec![0.0; nh * hd];
        for head in 0..nh {
            let shared = head / (nh / nkv) * hd;
            let seen: Vec<usize> =
                (0..kept.keys.len()).filter(|&key| loops.sees(at, key, place)).collect();
            let q = &q[head * hd..][..hd];
            let score = |key: &usize| {
                let k = &kept.keys[*key][shared..][..hd];
                q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>() / (hd as f64).sqrt()
            };
            let scores: Vec<f64> = seen.iter().map(score).collect();
            let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let terms: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
            let total: f64 = terms.iter().sum();
            for (key, term) in seen.iter().zip(terms) {
                for j in 0..hd {
                    found[head * hd + j] += term / total * kept.values[*key][shared + j];
                }
            }
        }
        loops.merged(&weights.o, &found)
    });
    rows.collect()
}

fn block(
    loops: &dyn LlamaLoops,
    on: &Settings,
    weights: &BlockWeights,
    x: Rows,
    kept: &mut Kept,
    place: Place,
) -> Rows {
    let normed: Rows = x.iter().map(|x| loops.normed(x, &weights.input_norm, on.eps)).collect();
    let found = loops.attention(on, weights, &normed, kept, place);
    let x = x.iter().zip(&found).map(|(x, found)| sum(x, found));
    let network = |x: Vec<f64>| {
        let y = loops.network(weights, &loops.normed(&x, &weights.post_norm, on.eps));
        sum(&x, &y)
    };
    x.map(network).collect()
}

fn piece(
    loops: &dyn LlamaLoops,
    case: &ModelCase,
    ids: &[usize],
    caches: &mut [Kept],
    place: Place,
) -> Rows {
    let on = Settings { sizes: case.sizes, eps: case.eps, base: case.base };
    let h = on.sizes.h;
    let row = |id: &usize| case.table[id * h..][..h].iter().map(|&x| f64::from(x)).collect();
    let mut x: Rows = ids.iter().map(|id| loops.embedded(row(id))).collect();
    for block in loops.order(case.blocks.len()) {
        let kept = &mut caches[loops.cache_of(block)];
        x = loops.block(&on, &case.blocks[block], x, kept, place);
    }
    let normed = x.iter().map(|x| loops.last_norm(x, &case.norm, case.eps));
    normed.map(|x| product(loops.output(case), &x)).collect()
}

/// The logits of all texts, `[b, s, v]`, in pieces of these lengths.
pub fn logits(loops: &dyn LlamaLoops, case: &ModelCase, pieces: &[usize]) -> Vec<f64> {
    let texts = case.ids.chunks(case.tokens[1].max(1));
    let of_text = |ids: &[usize]| -> Rows {
        let mut caches = vec![Kept::default(); case.blocks.len()];
        let (mut rows, mut offset) = (Vec::new(), 0);
        for (calls, &n) in pieces.iter().enumerate() {
            let place = Place { offset, calls };
            rows.extend(loops.piece(case, &ids[offset..offset + n], &mut caches, place));
            offset += n;
        }
        rows
    };
    texts.flat_map(of_text).flatten().collect()
}

/// The cross-entropy of all texts.
pub fn loss(loops: &dyn LlamaLoops, case: &ModelCase) -> f64 {
    let [b, s] = case.tokens;
    let logits = logits(loops, case, &[s]);
    let texts = case.ids.chunks(s).zip(logits.chunks(s * case.sizes.v));
    let of_text = |(ids, logits): (&[usize], &[f64])| {
        let of_place = |(t, target): (usize, usize)| {
            let row = &logits[t * case.sizes.v..][..case.sizes.v];
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            largest + row.iter().map(|x| (x - largest).exp()).sum::<f64>().ln() - row[target]
        };
        loops.targets(ids).into_iter().map(of_place).collect::<Vec<_>>()
    };
    let losses: Vec<f64> = texts.flat_map(of_text).collect();
    loops.mean(&losses, b)
}

/// The tensors of a case, in their order.
type Tensors<C> = fn(&mut C) -> Vec<&mut Vec<f32>>;

/// The gradient of a loss with respect to each number of the tensors, by differences: no formula for it is needed.
///
/// The numbers are of `f32`, so a step of a power of 2 can be too coarse for a small one and is exact for
/// none. The step that was made is what is divided by.
fn differences<C: Clone>(case: &C, tensors: Tensors<C>, loss: &dyn Fn(&C) -> f64) -> Vec<f64> {
    let mut moved = case.clone();
    let sizes: Vec<usize> = tensors(&mut moved).iter().map(|tensor| tensor.len()).collect();
    let mut gradient = Vec::new();
    for (nth, n) in sizes.into_iter().enumerate() {
        for i in 0..n {
            let w = tensors(&mut moved)[nth][i];
            // Of fourth order in the step: what is left is some 1e-9 of the gradient's size.
            let step = 2f32.powi(-8);
            let mut at = |times: f32| {
                tensors(&mut moved)[nth][i] = w + times * step;
                (f64::from(w + times * step), loss(&moved))
            };
            let [far, near, other, far_other] = [2.0, 1.0, -1.0, -2.0].map(&mut at);
            let slope = |(x, l): (f64, f64), (y, m): (f64, f64)| (l - m) / (x - y);
            gradient.push((4.0 * slope(near, other) - slope(far, far_other)) / 3.0);
            tensors(&mut moved)[nth][i] = w;
        }
    }
    gradient
}

/// The same, of some loops. Loops whose loss has the oracle's bits, here and where all numbers are others, have its gradient,
/// which is known: most bugs are not in what is differentiated, and differences are dear.
fn slopes<C: Clone>(
    loops: &dyn LlamaLoops,
    (case, question): (&C, Question),
    tensors: Tensors<C>,
    loss: &dyn Fn(&dyn LlamaLoops, &C) -> f64,
) -> Rc<Vec<f64>> {
    thread_local!(static KNOWN: Known<Vec<f64>> = Known::default());
    let mut moved = case.clone();
    for tensor in tensors(&mut moved) {
        tensor.iter_mut().enumerate().for_each(|(i, w)| *w += (i * 7 % 11) as f32 / 64.0 - 0.09);
    }
    let of = |loops: &dyn LlamaLoops| differences(case, tensors, &|case| loss(loops, case));
    let is_known = |case: &C| loss(loops, case).to_bits() == loss(&Oracle, case).to_bits();
    if is_known(case) && is_known(&moved) {
        return KNOWN.with(|known| known.get(question, || of(&Oracle)));
    }
    Rc::new(of(loops))
}

/// The gradient of the loss of all texts with respect to each weight.
fn gradient(loops: &dyn LlamaLoops, case: &ModelCase) -> Rc<Vec<f64>> {
    let question = question(case).sizes(&[0]);
    slopes(loops, (case, question), ModelCase::weights_mut, &|loops, case| loss(loops, case))
}

/// The gradient of all logits with respect to each weight.
fn logits_gradient(loops: &dyn LlamaLoops, case: &ModelCase, dy: &[f32]) -> Rc<Vec<f64>> {
    let question = question(case).values(dy).sizes(&[2]);
    slopes(loops, (case, question), ModelCase::weights_mut, &|loops, case| {
        let logits = logits(loops, case, &[case.tokens[1]]);
        logits.iter().zip(dy).map(|(y, dy)| y * f64::from(*dy)).sum()
    })
}

/// What of a gradient reaches the tensors.
fn reached(slopes: &[f64], tensors: &[&Vec<f32>], reaches: impl Fn(usize) -> bool) -> Vec<f32> {
    let of_tensor = |(nth, tensor): (usize, &&Vec<f32>)| vec![reaches(nth); tensor.len()];
    let reached = tensors.iter().enumerate().flat_map(of_tensor);
    round(slopes.iter().zip(reached).map(|(slope, is)| if is { *slope } else { 0.0 }))
}

/// The gradient of a block with respect to what goes in, and to each weight.
fn block_gradient(loops: &dyn LlamaLoops, case: &BlockCase, dy: &[f32]) -> Rc<Vec<f64>> {
    let question = question_of_block(case).values(dy).sizes(&[1]);
    slopes(loops, (case, question), BlockCase::tensors_mut, &|loops, case| {
        block_answer(loops, case).iter().zip(dy).map(|(y, dy)| y * f64::from(*dy)).sum()
    })
}

/// The answer of a block, `[b, s, h]`.
fn block_answer(loops: &dyn LlamaLoops, case: &BlockCase) -> Vec<f64> {
    let (h, s) = (case.sizes.h, case.tokens[1]);
    let on = Settings { sizes: case.sizes, eps: case.eps, base: case.base };
    let of_text = |text: &[f32]| -> Rows {
        let row = |row: &[f32]| row.iter().map(|&x| f64::from(x)).collect();
        let (mut kept, mut y) = (Kept::default(), Rows::new());
        let parts = [0..case.offset, case.offset..s].into_iter().filter(|part| !part.is_empty());
        for (calls, part) in parts.enumerate() {
            let x = text[part.start * h..part.end * h].chunks(h).map(row).collect();
            let place = Place { offset: part.start, calls };
            y.extend(loops.block(&on, &case.weights, x, &mut kept, place));
        }
        y
    };
    case.x.chunks(s * h).flat_map(of_text).flatten().collect()
}

fn sampled(loops: &dyn LlamaLoops, case: &SampleCase) -> usize {
    let mut tokens: Vec<(usize, f64)> =
        case.logits.iter().map(|&logit| f64::from(logit)).enumerate().collect();
    tokens.sort_by(|a, b| loops.likelier(*a, *b));
    if case.temperature == 0.0 {
        return tokens[0].0;
    }
    tokens.truncate(loops.among(case.top_k.unwrap_or(usize::MAX), tokens.len()));
    let logits: Vec<f64> = tokens.iter().map(|(_, logit)| *logit).collect();
    let terms: Vec<f64> =
        loops.tempered(&logits, case.temperature).into_iter().map(f64::exp).collect();
    let total: f64 = terms.iter().sum();
    let mut p: Vec<f64> = terms.iter().map(|term| term / total).collect();
    p.truncate(loops.nucleus(&p, case.top_p));
    tokens[loops.drawn(&p, case.unit)].0
}

/// The implementation of some loops.
pub fn implementation(loops: impl LlamaLoops + 'static) -> Box<dyn Llama> {
    Box::new(Loops::<dyn LlamaLoops>(Rc::new(loops)))
}

fn round(values: impl IntoIterator<Item = f64>) -> Vec<f32> {
    values.into_iter().map(|value| value as f32).collect()
}

impl Llama for Loops<dyn LlamaLoops> {
    fn block(&self, case: &BlockCase) -> Reply<Vec<f32>> {
        Ok(round(block_answer(&*self.0, case)))
    }

    fn block_backward(&self, case: &BlockCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let slopes = block_gradient(&*self.0, case, dy);
        Ok(reached(&slopes, &case.tensors(), |nth| self.0.block_reaches(nth)))
    }

    fn forward(&self, case: &ModelCase) -> Reply<Vec<f32>> {
        Ok(round(logits(&*self.0, &with_rows(&*self.0, case)?, &[case.tokens[1]])))
    }

    fn backward(&self, case: &ModelCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let case = &with_rows(&*self.0, case)?;
        let slopes = logits_gradient(&*self.0, case, dy);
        Ok(reached(&slopes, &case.weights(), |nth| self.0.reaches(case, nth)))
    }

    fn decode(&self, case: &ModelCase, pieces: &[usize]) -> Reply<Vec<f32>> {
        if !self.0.fits(pieces.iter().sum(), case.positions) {
            return Err(Refusal::new("the caches are full"));
        }
        Ok(round(logits(&*self.0, &with_rows(&*self.0, case)?, pieces)))
    }

    fn sample(&self, case: &SampleCase) -> Reply<usize> {
        self.0.checked(case)?;
        Ok(self.0.sampled(case))
    }

    fn train(&self, case: &ModelCase, rate: f32) -> Reply<Trained> {
        has_targets(case)?;
        let case = &with_rows(&*self.0, case)?;
        if rate == 0.0 {
            let weights = case.weights().into_iter().flatten().copied().collect();
            return Ok(Trained { loss: loss(&*self.0, case) as f32, weights });
        }
        let gradient = gradient(&*self.0, case);
        let (before, mut after, mut at) = (loss(&*self.0, case), case.clone(), 0);
        for (nth, tensor) in after.weights_mut().into_iter().enumerate() {
            for weight in tensor {
                if self.0.is_trained(case, nth) {
                    *weight =
                        self.0.stepped(f64::from(*weight), f64::from(rate), gradient[at]) as f32;
                }
                at += 1;
            }
        }
        let told = self.0.told(before, loss(&*self.0, &after));
        let weights = after.weights().into_iter().flatten().copied().collect();
        Ok(Trained { loss: told as f32, weights })
    }
}

/// The case with the rows of its ids.
fn with_rows(loops: &dyn LlamaLoops, case: &ModelCase) -> Reply<ModelCase> {
    let (v, s) = (case.sizes.v, case.tokens[1]);
    let row = |(at, &id): (usize, &usize)| {
        let refused =
            || Refusal::new(format!("id {id} at [{}, {}] is not below {v}", at / s, at % s));
        loops.row(id, v).ok_or_else(refused)
    };
    let ids = case.ids.iter().enumerate().map(row).collect::<Reply<_>>()?;
    Ok(ModelCase { ids, ..case.clone() })
}

/// Whether there is anything to learn from a text.
pub(super) fn has_targets(case: &ModelCase) -> Reply<()> {
    match case.tokens[1] {
        0 | 1 => Err(Refusal::new("no token follows the only one of a text")),
        _ => Ok(()),
    }
}

/// Logits and settings from which nothing can be drawn.
fn check(case: &SampleCase) -> Reply<()> {
    let SampleCase { logits, temperature, top_k, top_p, .. } = case;
    let refuse = |rule: &str| Err(Refusal::new(rule));
    if logits.is_empty() || logits.iter().any(|x| x.is_nan() || *x == f32::INFINITY) {
        return refuse("every logit must be a number below infinity");
    }
    if logits.iter().all(|x| *x == f32::NEG_INFINITY) {
        return refuse("some logit must be above minus infinity");
    }
    if !(temperature.is_finite() && *temperature >= 0.0) {
        return refuse("the temperature must be finite and at least 0");
    }
    if *top_k == Some(0) {
        return refuse("top_k must be at least 1");
    }
    if !(*top_p > 0.0 && *top_p <= 1.0) {
        return refuse("top_p must be above 0 and at most 1");
    }
    Ok(())
}
