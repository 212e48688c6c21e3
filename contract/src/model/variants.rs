//! Correct variants of the model, all in `f32`.

use crate::component::Variant;
use crate::model::bounds;
use crate::model::interface::*;
use crate::model::oracle::{LlamaLoops, has_targets};
use crate::oracle::Oracle;

/// The variants.
pub static VARIANTS: &[Variant<dyn Llama>] = &[
    Variant {
        id: "model/plain-f32",
        about: "f32 throughout, sums from the left, keys and values in a cache that grows",
        implementation: || Box::new(InF32::default()),
    },
    Variant {
        id: "model/from-right",
        about: "adds from the right",
        implementation: || Box::new(InF32 { from_right: true, ..InF32::default() }),
    },
    Variant {
        id: "model/folded-gammas",
        about: "moves each gamma into the matrices behind its norm before it begins, as some runtimes do",
        implementation: || Box::new(InF32 { folds: true, ..InF32::default() }),
    },
    Variant {
        id: "model/online-softmax",
        about: "one pass over the keys: what was found so far is scaled down when a larger score comes, as \
                FlashAttention does",
        implementation: || Box::new(InF32 { online: true, ..InF32::default() }),
    },
    Variant {
        id: "model/no-cache",
        about: "keeps no keys: each call computes the whole text again",
        implementation: || Box::new(InF32 { again: true, ..InF32::default() }),
    },
    Variant {
        id: "model/scaled-queries",
        about: "divides the queries by the root of the head size, before the scores",
        implementation: || Box::new(InF32 { scaled_queries: true, ..InF32::default() }),
    },
];

/// The model in `f32`.
#[derive(Debug, Clone, Copy, Default)]
struct InF32 {
    from_right: bool,
    folds: bool,
    online: bool,
    again: bool,
    scaled_queries: bool,
}

type Rows = Vec<Vec<f32>>;

/// Keys and values of one block.
type Kept = (Rows, Rows);

fn rotate(head: &[f32], position: usize, base: f64) -> Vec<f32> {
    let half = head.len() / 2;
    let angle = |i: usize| position as f64 / base.powf(i as f64 / half as f64);
    let turn = |i: usize| {
        let (sin, cos) = angle(i % half).sin_cos();
        let other = if i < half { -head[i + half] } else { head[i - half] };
        head[i] * cos as f32 + other * sin as f32
    };
    (0..head.len()).map(turn).collect()
}

impl InF32 {
    fn sum(&self, terms: impl DoubleEndedIterator<Item = f32>) -> f32 {
        if self.from_right { terms.rev().sum() } else { terms.sum() }
    }

    fn dot(&self, x: &[f32], y: &[f32]) -> f32 {
        self.sum(x.iter().zip(y).map(|(x, y)| x * y))
    }

    fn product(&self, matrix: &[f32], x: &[f32]) -> Vec<f32> {
        matrix.chunks(x.len()).map(|row| self.dot(row, x)).collect()
    }

    fn normed(&self, x: &[f32], gamma: &[f32], eps: f64) -> Vec<f32> {
        let rms = (self.dot(x, x) / x.len() as f32 + eps as f32).sqrt();
        x.iter().zip(gamma).map(|(x, gamma)| x / rms * gamma).collect()
    }

    /// What one head finds.
    fn found(&self, q: &[f32], keys: &[&[f32]], values: &[&[f32]]) -> Vec<f32> {
        let root = (q.len() as f32).sqrt();
        let q: Vec<f32> =
            q.iter().map(|q| if self.scaled_queries { q / root } else { *q }).collect();
        let score = |key: &&[f32]| {
            let score = self.dot(&q, key);
            if self.scaled_queries { score } else { score / root }
        };
        let scores: Vec<f32> = keys.iter().map(score).collect();
        if self.online {
            let (mut largest, mut total) = (f32::NEG_INFINITY, 0.0);
            let mut found = vec![0.0; q.len()];
            for (&score, value) in scores.iter().zip(values) {
                // A NaN is no number to compare with, and stays.
                let next = if score > largest || score.is_nan() { score } else { largest };
                let (down, term) = ((largest - next).exp(), (score - next).exp());
                total = total * down + term;
                found.iter_mut().zip(*value).for_each(|(f, v)| *f = *f * down + term * v);
                largest = next;
            }
            return found.into_iter().map(|f| f / total).collect();
        }
        let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let terms: Vec<f32> = scores.iter().map(|score| (score - largest).exp()).collect();
        let total = self.sum(terms.iter().copied());
        let at = |j: usize| self.sum(terms.iter().zip(values).map(|(term, v)| term / total * v[j]));
        (0..q.len()).map(at).collect()
    }

    fn block(&self, on: (Sizes, f64, f64), weights: &BlockWeights, x: &mut Rows, kept: &mut Kept) {
        let (Sizes { nh, nkv, hd, .. }, eps, base) = on;
        let before = kept.0.len();
        let mut queries = Vec::new();
        for (t, x) in x.iter().enumerate() {
            let n = self.normed(x, &weights.input_norm, eps);
            let turned = |matrix: &[f32]| -> Vec<f32> {
                let heads = self.product(matrix, &n);
                heads.chunks(hd).flat_map(|head| rotate(head, before + t, base)).collect()
            };
            queries.push(turned(&weights.q));
            kept.0.push(turned(&weights.k));
            kept.1.push(self.product(&weights.v, &n));
        }
        for (t, (x, q)) in x.iter_mut().zip(queries).enumerate() {
            let seen = before + t + 1;
            let found = (0..nh).flat_map(|head| {
                let shared = head / (nh / nkv) * hd;
                let [keys, values] = [&kept.0, &kept.1].map(|rows| {
                    rows[..seen].iter().map(|row| &row[shared..][..hd]).collect::<Vec<_>>()
                });
                self.found(&q[head * hd..][..hd], &keys, &values)
            });
            let found: Vec<f32> = found.collect();
            let add =
                |x: &mut Vec<f32>, y: Vec<f32>| x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
            add(x, self.product(&weights.o, &found));
            let n = self.normed(x, &weights.post_norm, eps);
            let (gate, up) = (self.product(&weights.gate, &n), self.product(&weights.up, &n));
            let between: Vec<f32> =
                gate.iter().zip(up).map(|(a, b)| a / (1.0 + (-a).exp()) * b).collect();
            add(x, self.product(&weights.down, &between));
        }
    }

    fn logits(&self, case: &ModelCase, pieces: &[usize]) -> Vec<f32> {
        let on = (case.sizes, case.eps, case.base);
        let h = case.sizes.h;
        let output = case.head.as_ref().unwrap_or(&case.table);
        let mut logits = Vec::new();
        for text in case.ids.chunks(case.tokens[1]) {
            let mut caches: Vec<Kept> = vec![Kept::default(); case.blocks.len()];
            let mut end = 0;
            for n in pieces {
                let begin = if self.again { 0 } else { end };
                let before = end - begin;
                end += n;
                if self.again {
                    caches.fill(Kept::default());
                }
                let row = |id: &usize| case.table[id * h..][..h].to_vec();
                let mut x: Rows = text[begin..end].iter().map(row).collect();
                for (weights, kept) in case.blocks.iter().zip(&mut caches) {
                    self.block(on, weights, &mut x, kept);
                }
                for x in &x[before..] {
                    logits.extend(self.product(output, &self.normed(x, &case.norm, case.eps)));
                }
            }
        }
        logits
    }

    /// The same model with gammas of 1.
    fn folded(&self, case: &ModelCase) -> ModelCase {
        let mut case = case.clone();
        if self.folds {
            case.blocks.iter_mut().for_each(fold_block);
            let head = case.head.unwrap_or_else(|| case.table.clone());
            case.head = Some(folded(&head, &case.norm));
            case.norm.fill(1.0);
        }
        case
    }
}

/// `matrix · diag(gamma)`.
fn folded(matrix: &[f32], gamma: &[f32]) -> Vec<f32> {
    matrix.chunks(gamma.len()).flat_map(|row| row.iter().zip(gamma).map(|(w, g)| w * g)).collect()
}

fn fold_block(weights: &mut BlockWeights) {
    let BlockWeights { input_norm, q, k, v, post_norm, gate, up, .. } = weights;
    [q, k, v].into_iter().for_each(|matrix| *matrix = folded(matrix, input_norm));
    [gate, up].into_iter().for_each(|matrix| *matrix = folded(matrix, post_norm));
    input_norm.fill(1.0);
    post_norm.fill(1.0);
}

fn known(case: &ModelCase) -> Reply<()> {
    let unknown = case.ids.iter().find(|id| **id >= case.sizes.v);
    unknown.map_or(Ok(()), |id| Err(Refusal::new(format!("the table has no row {id}"))))
}

impl Llama for InF32 {
    fn block(&self, case: &BlockCase) -> Reply<Vec<f32>> {
        let mut weights = case.weights.clone();
        if self.folds {
            fold_block(&mut weights);
        }
        let h = case.sizes.h;
        let texts = case.x.chunks(case.tokens[1] * h).flat_map(|text| {
            let mut x: Rows = text.chunks(h).map(<[f32]>::to_vec).collect();
            let on = (case.sizes, case.eps, case.base);
            let (mut kept, mut others) = (Kept::default(), x.split_off(case.offset));
            for part in [&mut x, &mut others] {
                InF32::block(self, on, &weights, part, &mut kept);
            }
            x.into_iter().chain(others).flatten().collect::<Vec<_>>()
        });
        Ok(texts.collect())
    }

    /// By the chain rule, and not by differences.
    fn block_backward(&self, case: &BlockCase, dy: &[f32]) -> Reply<Vec<f32>> {
        Ok(bounds::of_block_back(case, dy).iter().map(|near| near.value as f32).collect())
    }

    fn forward(&self, case: &ModelCase) -> Reply<Vec<f32>> {
        known(case)?;
        Ok(self.logits(&self.folded(case), &[case.tokens[1]]))
    }

    /// By the chain rule, and not by differences.
    fn backward(&self, case: &ModelCase, dy: &[f32]) -> Reply<Vec<f32>> {
        known(case)?;
        Ok(bounds::of_backward(case, dy).iter().map(|near| near.value as f32).collect())
    }

    fn decode(&self, case: &ModelCase, pieces: &[usize]) -> Reply<Vec<f32>> {
        known(case)?;
        if pieces.iter().sum::<usize>() > case.positions {
            return Err(Refusal::new("more tokens than positions"));
        }
        Ok(self.logits(&self.folded(case), pieces))
    }

    fn sample(&self, case: &SampleCase) -> Reply<usize> {
        Oracle.checked(case)?;
        let wide = case.logits.iter().map(|&logit| f64::from(logit));
        let mut tokens: Vec<(usize, f64)> = wide.enumerate().collect();
        tokens.sort_by(|a, b| b.1.total_cmp(&a.1)); // stable: the first of equals stays before
        if case.temperature == 0.0 {
            return Ok(tokens[0].0);
        }
        tokens.truncate(case.top_k.unwrap_or(usize::MAX));
        let first = tokens[0].1;
        let mut sum = 0.0;
        let cumulated: Vec<f64> = tokens
            .iter()
            .map(|(_, logit)| {
                sum += ((logit - first) / case.temperature).exp();
                sum
            })
            .collect();
        let enough = case.top_p * sum;
        let kept = 1 + cumulated.iter().take_while(|sum| **sum < enough).count();
        let kept = kept.min(tokens.len());
        let at = case.unit * cumulated[kept - 1];
        let place = cumulated[..kept].iter().position(|sum| *sum > at).unwrap_or(kept - 1);
        Ok(tokens[place].0)
    }

    /// By the chain rule, and not by differences.
    fn train(&self, case: &ModelCase, rate: f32) -> Reply<Trained> {
        has_targets(case)?;
        known(case)?;
        let truth = bounds::of_training(case);
        let (loss, gradient) = &*truth;
        let weights = case.weights().into_iter().flatten();
        let step = |(w, gradient): (&f32, &bounds::Near)| w - rate * gradient.value as f32;
        Ok(Trained { loss: loss.value as f32, weights: weights.zip(gradient).map(step).collect() })
    }
}
