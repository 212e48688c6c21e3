//! Bugs of attention and its cache.

use crate::attention::interface::*;
use crate::attention::oracle::{AttentionLoops, Scores, cut, implementation, joined};
use crate::component::Bug;
use crate::oracle::{Oracle, to_f16};
use std::cell::{Cell, RefCell};

/// A bug: its name, and the steps that it writes wrong.
macro_rules! bug {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl AttentionLoops for $name { $($steps)* }
        || -> Box<dyn GroupedQueryAttention> { implementation($name) }
    }};
}

/// The exponential in `f32`, which ends at 88.
fn exp_f32(x: f64) -> f64 {
    f64::from((x as f32).exp())
}

/// Weights in `f32`, when this is subtracted from all scores.
fn softmax_f32(scores: &[f64], subtracted: f64) -> Vec<f64> {
    let terms: Vec<f64> = scores.iter().map(|score| exp_f32(score - subtracted)).collect();
    let sum: f64 = terms.iter().sum();
    terms.iter().map(|term| term / sum).collect()
}

fn masked((scores, seen): Scores) -> Vec<Vec<f64>> {
    let row = |(scores, seen): (&Vec<f64>, &Vec<bool>)| {
        let pairs = scores.iter().zip(seen);
        pairs.map(|(&score, &seen)| if seen { score } else { f64::NEG_INFINITY }).collect()
    };
    scores.iter().zip(seen).map(row).collect()
}

/// What was pushed into the cache that was made last.
#[derive(Default)]
struct LastCache {
    kept: RefCell<Option<KeysValues>>,
    made: Cell<bool>,
}

impl AttentionLoops for LastCache {
    fn opened(&self) {
        self.made.set(true);
    }
    fn push(
        &self,
        kept: &mut Option<KeysValues>,
        capacity: usize,
        piece: &KeysValues,
    ) -> Reply<KeysValues> {
        let mut shared = self.kept.borrow_mut();
        if self.made.replace(false) {
            *shared = None;
        }
        let reply = Oracle.push(&mut shared, capacity, piece);
        *kept = shared.clone();
        reply
    }
}

/// All of them.
pub static BUGS: &[Bug<dyn GroupedQueryAttention>] = &[
    // --- heads ------------------------------------------------------------------------------
    Bug {
        id: "attention/tiled",
        misconception: "repeats key heads in turns, 0, 1, 0, 1, where they stand beside each other, 0, 0, 1, 1",
        story: "NumPy's tile and torch's repeat do the one, repeat_interleave does the other. Every shape is right, \
                and a model that is trained with it learns. Weights that were trained with the other order \
                give nonsense.",
        source: Some(
            "onnx/onnx pull request 7274, the operator Attention; apple/axlearn pull request 842",
        ),
        named_by: "attention/repeat-neighbours",
        implementation: bug!(Tiled {
            fn copy_of(&self, head: usize, nkv: usize, _: usize) -> usize {
                head % nkv
            }
        }),
    },
    Bug {
        id: "attention/divided-by-key-heads",
        misconception: "divides a head's number by the number of key heads, where the size of a group belongs",
        story: "With 4 query heads over 2 key heads, both are 2.",
        source: Some(
            "XunhaoLai/native-sparse-attention-triton issue 27: the two counts exchanged, in a backward pass",
        ),
        named_by: "attention/repeat-neighbours",
        implementation: bug!(ByKeyHeads {
            fn copy_of(&self, head: usize, nkv: usize, _: usize) -> usize {
                (head / nkv).min(nkv - 1)
            }
        }),
    },
    Bug {
        id: "attention/first-key-head-for-all",
        misconception: "gives every query head the first key head, as if there were one",
        story: "Code for multi-query attention, where there is one, broadcast over all heads.",
        source: None,
        named_by: "attention/repeat-neighbours",
        implementation: bug!(FirstForAll {
            fn copy_of(&self, _: usize, _: usize, _: usize) -> usize {
                0
            }
        }),
    },
    Bug {
        id: "attention/next-key-head",
        misconception: "moves to the next key head one query head early",
        story: "Heads were counted from 1 in one place and from 0 in the other.",
        source: None,
        named_by: "attention/repeat-neighbours",
        implementation: bug!(NextKeyHead {
            fn copy_of(&self, head: usize, nkv: usize, times: usize) -> usize {
                ((head + 1) / times).min(nkv - 1)
            }
        }),
    },
    Bug {
        id: "attention/values-tiled",
        misconception: "repeats keys side by side and values in turns",
        story: "Two lines that should be alike, and one was changed. Each weight is right, and meets the value \
                of another head.",
        source: None,
        named_by: "attention/groups-are-copies",
        implementation: bug!(ValuesTiled {
            fn value_head(&self, head: usize, sizes: &AttendSizes) -> usize {
                head % sizes.num_kv_heads
            }
        }),
    },
    Bug {
        id: "attention/any-heads",
        misconception: "accepts key heads that do not divide the query heads",
        story: "Integer division drops the rest, and the last heads read the last key head.",
        source: None,
        named_by: "attention/forward-refuses",
        implementation: bug!(AnyHeads {
            fn check(&self, case: &AttendCase) -> Reply<()> {
                let sizes = AttendSizes { num_heads: 1, num_kv_heads: 1, ..case.sizes };
                Oracle.check(&AttendCase { sizes, q: vec![], k: vec![], v: vec![] })
            }
            fn key_head(&self, head: usize, sizes: &AttendSizes) -> usize {
                let group = (sizes.num_heads / sizes.num_kv_heads).max(1);
                (head / group).min(sizes.num_kv_heads - 1)
            }
        }),
    },
    Bug {
        id: "attention/more-queries-than-keys",
        misconception: "accepts more queries than keys",
        story: "The first queries stand before all keys, and see nothing, or what a wrapped number lets them see.",
        source: None,
        named_by: "attention/forward-refuses",
        implementation: bug!(MoreQueries {
            fn check(&self, case: &AttendCase) -> Reply<()> {
                let AttendSizes { num_heads, num_kv_heads, .. } = case.sizes;
                let sizes = AttendSizes { queries: 1, keys: 1, ..case.sizes };
                let fits = num_kv_heads > 0 && num_heads % num_kv_heads == 0;
                if fits { Ok(()) } else { Oracle.check(&AttendCase { sizes, ..case.clone() }) }
            }
            fn seen(&self, row: usize, key: usize, sizes: &AttendSizes) -> bool {
                key + sizes.queries <= sizes.keys + row
            }
        }),
    },
    // --- mask -------------------------------------------------------------------------------
    Bug {
        id: "attention/no-mask",
        misconception: "lets every token see every other, later ones too",
        story: "In training, each token reads its answer. The loss falls fast, and the model can't write.",
        source: Some(
            "paiml/entrenar issue 310; keras-team/keras issue 23038, where a mask was dropped",
        ),
        named_by: "attention/mask-triangle",
        implementation: bug!(NoMask {
            fn sees(&self, _: usize, _: usize, _: usize, _: usize) -> bool {
                true
            }
        }),
    },
    Bug {
        id: "attention/mask-not-used",
        misconception: "builds the mask, and does not use it in attention",
        story: "The mask was an argument with a default, and the default is none.",
        source: Some("facebookresearch/xformers issue 103"),
        named_by: "attention/causal",
        implementation: bug!(MaskNotUsed {
            fn seen(&self, _: usize, _: usize, _: &AttendSizes) -> bool {
                true
            }
        }),
    },
    Bug {
        id: "attention/not-itself",
        misconception: "lets a token see what is before it, and not itself",
        story: "j < t was written for j ≤ t. The first token sees nothing, and its softmax is 0 / 0.",
        source: Some("pbloem/former issue 10, in its text"),
        named_by: "attention/mask-triangle",
        implementation: bug!(NotItself {
            fn sees(&self, row: usize, key: usize, p: usize, _: usize) -> bool {
                key < p + row
            }
        }),
    },
    Bug {
        id: "attention/one-ahead",
        misconception: "lets a token see the next one too",
        story: "A length was taken for the last place, or the diagonal was counted from 1. In training, the next \
                token is the answer.",
        source: Some("flashinfer-ai/flashinfer pull request 348"),
        named_by: "attention/mask-triangle",
        implementation: bug!(OneAhead {
            fn sees(&self, row: usize, key: usize, p: usize, _: usize) -> bool {
                key <= p + row + 1
            }
        }),
    },
    Bug {
        id: "attention/top-left",
        misconception: "puts the triangle at the top left of the mask, as if the new tokens were the first ones",
        story: "Row t is taken for position t, which it is while the cache is empty. A decoded token then sees \
                the first token of the text and nothing else. PyTorch's is_causal means this triangle.",
        source: Some(
            "tinygrad/tinygrad pull request 15949; onnx/onnx pull request 8068; pytorch/pytorch issue 108108",
        ),
        named_by: "attention/mask-with-cache",
        implementation: bug!(TopLeft {
            fn sees(&self, row: usize, key: usize, _: usize, _: usize) -> bool {
                key <= row
            }
        }),
    },
    Bug {
        id: "attention/top-left-in-attention",
        misconception: "builds the right mask, and attends with the triangle at the top left",
        story: "The kernel has a flag of its own for causal attention, and the flag knows no cache.",
        source: Some("pytorch/pytorch issue 144858"),
        named_by: "attention/decode",
        implementation: bug!(TopLeftInAttention {
            fn seen(&self, row: usize, key: usize, _: &AttendSizes) -> bool {
                key <= row
            }
        }),
    },
    Bug {
        id: "attention/cache-not-seen",
        misconception: "lets the new tokens see each other, and nothing of the cache",
        story: "A mask of the new tokens alone, s columns wide, was filled up with zeros.",
        source: Some(
            "meta-llama/llama issue 899, where such a mask met the scores and did not fit",
        ),
        named_by: "attention/mask-with-cache",
        implementation: bug!(CacheNotSeen {
            fn sees(&self, row: usize, key: usize, p: usize, _: usize) -> bool {
                key >= p && key <= p + row
            }
        }),
    },
    Bug {
        id: "attention/no-mask-with-cache",
        misconception: "masks nothing once something is in the cache",
        story: "One token at a time needs no mask, and code for decoding leaves it out. Then a prompt comes in two pieces.",
        source: Some("jingyaogong/minimind issue 631"),
        named_by: "attention/mask-with-cache",
        implementation: bug!(NoMaskWithCache {
            fn sees(&self, row: usize, key: usize, p: usize, _: usize) -> bool {
                p > 0 || key <= row
            }
        }),
    },
    Bug {
        id: "attention/mask-in-bytes",
        misconception: "counts positions in a byte, and begins anew at 256",
        story: "The mask is made of small integers, to save memory, and so are the positions that are compared.",
        source: None,
        named_by: "attention/mask-any-size",
        implementation: bug!(MaskInBytes {
            fn sees(&self, row: usize, key: usize, p: usize, _: usize) -> bool {
                key as u8 <= (p + row) as u8
            }
        }),
    },
    Bug {
        id: "attention/upper-triangle",
        misconception: "keeps the upper triangle: each token sees itself and what comes after it",
        story: "In some libraries a mask's 1 means hidden, in others it means seen.",
        source: Some(
            "harvard-edge/cs249r_book pull request 1785: the two meanings in two of its modules",
        ),
        named_by: "attention/mask-triangle",
        implementation: bug!(UpperTriangle {
            fn sees(&self, row: usize, key: usize, p: usize, _: usize) -> bool {
                key >= p + row
            }
        }),
    },
    Bug {
        id: "attention/window",
        misconception: "sees the last 16 positions and forgets those before them",
        story: "A sliding window that another model has, left on. No test had a text of 17 tokens.",
        source: None,
        named_by: "attention/mask-any-size",
        implementation: bug!(Window {
            fn sees(&self, row: usize, key: usize, p: usize, _: usize) -> bool {
                key <= p + row && p + row < key + 16
            }
        }),
    },
    // --- scale ------------------------------------------------------------------------------
    Bug {
        id: "attention/not-scaled",
        misconception: "does not divide the scores",
        story: "Scores are √hd times too large, so that one position takes nearly all weight. It trains, badly.",
        source: Some("mlc-ai/mlc-llm pull request 3426"),
        named_by: "attention/score-scale",
        implementation: bug!(NotScaled {
            fn divisor(&self, _: &AttendSizes) -> f64 {
                1.0
            }
        }),
    },
    Bug {
        id: "attention/scaled-twice",
        misconception: "divides by hd, because queries and scores are both divided by √hd",
        story: "The queries were scaled when they were made, and the kernel does it again.",
        source: None,
        named_by: "attention/score-scale",
        implementation: bug!(ScaledTwice {
            fn divisor(&self, sizes: &AttendSizes) -> f64 {
                sizes.head_dim as f64
            }
        }),
    },
    Bug {
        id: "attention/scaled-by-hidden-size",
        misconception: "divides by the root of the hidden size, not by that of the head size",
        story: "The paper's d_k was read as the size of the token. With one head it is.",
        source: Some("lucidrains/vit-pytorch issue 65; karpathy/ng-video-lecture pull request 6"),
        named_by: "attention/score-scale",
        implementation: bug!(ByHiddenSize {
            fn divisor(&self, sizes: &AttendSizes) -> f64 {
                ((sizes.num_heads * sizes.head_dim) as f64).sqrt()
            }
        }),
    },
    Bug {
        id: "attention/scaled-by-heads",
        misconception: "divides by the root of the number of heads",
        story: "Two numbers stood beside each other, and the wrong one was taken. The comment above said it right.",
        source: Some("tenstorrent/tt-metal pull request 56789"),
        named_by: "attention/score-scale",
        implementation: bug!(ByHeads {
            fn divisor(&self, sizes: &AttendSizes) -> f64 {
                (sizes.num_heads as f64).sqrt()
            }
        }),
    },
    Bug {
        id: "attention/scaled-up",
        misconception: "multiplies the scores by √hd",
        story: "The scale was kept as hd to the power of −0.5, and it was divided by.",
        source: Some("esceptico/perceiver-io issue 9"),
        named_by: "attention/score-scale",
        implementation: bug!(ScaledUp {
            fn divisor(&self, sizes: &AttendSizes) -> f64 {
                (sizes.head_dim as f64).sqrt().recip()
            }
        }),
    },
    // --- softmax ----------------------------------------------------------------------------
    Bug {
        id: "attention/no-maximum",
        misconception: "takes the exponential of the scores themselves, which ends at 88 in f32",
        story: "On paper nothing needs to be subtracted. A model whose scores reached 151 wrote garbage.",
        source: Some("pytorch/executorch pull request 18407; ggml-org/llama.cpp pull request 2665"),
        named_by: "attention/large-scores",
        implementation: bug!(NoMaximum {
            fn softmax(&self, scores: &[f64]) -> Vec<f64> {
                softmax_f32(scores, 0.0)
            }
        }),
    },
    Bug {
        id: "attention/first-subtracted",
        misconception: "subtracts the first score of a row, not the largest",
        story: "Any number will do on paper, and the first one needs no pass. In f32 another may be larger by more than 88.",
        source: None,
        named_by: "attention/large-scores",
        implementation: bug!(FirstSubtracted {
            fn softmax(&self, scores: &[f64]) -> Vec<f64> {
                softmax_f32(scores, scores[0])
            }
        }),
    },
    Bug {
        id: "attention/one-maximum-for-all",
        misconception: "subtracts the largest score of all queries, not that of the row",
        story: "One pass over the matrix finds it. A row whose scores are all lower by more than 103 is 0 / 0 then.",
        source: None,
        named_by: "attention/forward-f64-loops",
        implementation: bug!(OneMaximum {
            fn weights(&self, scores: Scores) -> Vec<Vec<f64>> {
                let rows = masked(scores);
                let largest = Oracle.largest(&rows.concat());
                rows.iter().map(|row| softmax_f32(row, largest)).collect()
            }
        }),
    },
    Bug {
        id: "attention/over-queries",
        misconception: "takes the softmax over the queries, so that the columns sum to 1 and not the rows",
        story: "The axes of the scores are called i and j, and one was taken for the other. The picture of the weights \
                looks alike.",
        source: Some(
            "labmlai/annotated_deep_learning_paper_implementations issue 146; PetrochukM/PyTorch-NLP issue 2",
        ),
        named_by: "attention/weights-sum-to-one",
        implementation: bug!(OverQueries {
            fn weights(&self, scores: Scores) -> Vec<Vec<f64>> {
                let rows = masked(scores);
                let column = |j: usize| -> Vec<f64> { rows.iter().map(|row| row[j]).collect() };
                let columns: Vec<_> =
                    (0..rows[0].len()).map(|j| Oracle.softmax(&column(j))).collect();
                (0..rows.len()).map(|i| columns.iter().map(|column| column[i]).collect()).collect()
            }
        }),
    },
    Bug {
        id: "attention/mask-after-softmax",
        misconception: "hides what is not seen after the softmax, so that the rest no longer sums to 1",
        story: "The weights of later tokens become 0, as they should. But they have taken their part of the sum before.",
        source: Some(
            "huggingface/pytorch-image-models pull request 2236; lucidrains/memory-compressed-attention issue 2",
        ),
        named_by: "attention/weights-sum-to-one",
        implementation: bug!(MaskAfterSoftmax {
            fn weights(&self, (scores, seen): Scores) -> Vec<Vec<f64>> {
                let row = |(scores, seen): (&Vec<f64>, &Vec<bool>)| -> Vec<f64> {
                    let weights = Oracle.softmax(scores);
                    weights.iter().zip(seen).map(|(&w, &s)| if s { w } else { 0.0 }).collect()
                };
                scores.iter().zip(seen).map(row).collect()
            }
        }),
    },
    Bug {
        id: "attention/hidden-scores-zero",
        misconception: "gives what is not seen the score 0, where −∞ belongs",
        story: "The scores were multiplied by the mask. A score of 0 is an ordinary one: e⁰ is 1.",
        source: None,
        named_by: "attention/causal",
        implementation: bug!(HiddenZero {
            fn hidden(&self, _: f64) -> f64 {
                0.0
            }
        }),
    },
    Bug {
        id: "attention/hidden-by-hundred",
        misconception: "subtracts 100 from the score of what is not seen, where −∞ belongs",
        story: "A large number that half precision can hold. A later token whose score is higher by a hundred is seen.",
        source: None,
        named_by: "attention/forward-f64-loops",
        implementation: bug!(HiddenByHundred {
            fn hidden(&self, score: f64) -> f64 {
                score - 100.0
            }
        }),
    },
    Bug {
        id: "attention/hidden-by-ten-thousand",
        misconception: "subtracts 10,000 from the score of what is not seen, where −∞ belongs",
        story: "Half precision holds no much larger number. While a model is trained from nothing, scores can pass it, and then \
                the future is read. A trained model with scores beyond 100,000 was found as well.",
        source: Some(
            "huggingface/transformers issue 14859; TransformerLensOrg/TransformerLens pull request 319",
        ),
        named_by: "attention/causal",
        implementation: bug!(HiddenByTenThousand {
            fn hidden(&self, score: f64) -> f64 {
                score - 1e4
            }
        }),
    },
    Bug {
        id: "attention/mask-added",
        misconception: "adds −∞ to the scores of what is not seen, where their place is to be taken",
        story: "Added to a number, −∞ hides it. A later key that holds NaN or infinity comes through: NaN plus −∞ is NaN, and \
                the tokens before it are lost with it. Scaled dot-product attention adds masks.",
        source: None,
        named_by: "attention/unseen-keys",
        implementation: bug!(MaskAdded {
            fn hidden(&self, score: f64) -> f64 {
                score + f64::NEG_INFINITY
            }
        }),
    },
    Bug {
        id: "attention/hidden-is-ten-thousand",
        misconception: "gives what is not seen the score −10,000, where −∞ belongs",
        story: "A mask that is filled in and not added. It hides, as long as what is seen has a score above it.",
        source: None,
        named_by: "attention/first-token",
        implementation: bug!(HiddenIsTenThousand {
            fn hidden(&self, _: f64) -> f64 {
                -1e4
            }
        }),
    },
    Bug {
        id: "attention/hidden-is-a-billion",
        misconception: "gives what is not seen the score −10⁹, where −∞ belongs",
        story: "No score is so low, until a model diverges. Then its first tokens read the future.",
        source: None,
        named_by: "attention/first-token",
        implementation: bug!(HiddenIsABillion {
            fn hidden(&self, _: f64) -> f64 {
                -1e9
            }
        }),
    },
    Bug {
        id: "attention/scores-clamped",
        misconception: "keeps the scores between −10,000 and 10,000",
        story: "Against infinities, where the largest score would have been subtracted anyway. Larger scores are all equal.",
        source: None,
        named_by: "attention/large-scores",
        implementation: bug!(ScoresClamped {
            fn softmax(&self, scores: &[f64]) -> Vec<f64> {
                let clamped = |score: &f64| match *score {
                    f64::NEG_INFINITY => f64::NEG_INFINITY,
                    score => score.clamp(-1e4, 1e4),
                };
                Oracle.softmax(&scores.iter().map(clamped).collect::<Vec<f64>>())
            }
        }),
    },
    Bug {
        id: "attention/not-divided",
        misconception: "does not divide by the sum of the exponentials",
        story: "The norm behind attention takes away any factor, so that the loss hardly shows it.",
        source: None,
        named_by: "attention/weights-sum-to-one",
        implementation: bug!(NotDivided {
            fn softmax(&self, scores: &[f64]) -> Vec<f64> {
                let largest = Oracle.largest(scores);
                scores.iter().map(|score| (score - largest).exp()).collect()
            }
        }),
    },
    Bug {
        id: "attention/one-more-in-sum",
        misconception: "adds 1 to the sum of the exponentials",
        story: "An epsilon against a sum of 0, much too large. The largest term is 1 already, so that none is needed.",
        source: None,
        named_by: "attention/weights-sum-to-one",
        implementation: bug!(OneMore {
            fn softmax(&self, scores: &[f64]) -> Vec<f64> {
                let largest = Oracle.largest(scores);
                let sum: f64 = scores.iter().map(|score| (score - largest).exp()).sum();
                scores.iter().map(|score| (score - largest).exp() / (1.0 + sum)).collect()
            }
        }),
    },
    Bug {
        id: "attention/half-weights",
        misconception: "rounds the weights to f16",
        story: "The product with the values is faster then. Three digits are right, and the fourth is not.",
        source: None,
        named_by: "attention/forward-f64-loops",
        implementation: bug!(HalfWeights {
            fn softmax(&self, scores: &[f64]) -> Vec<f64> {
                Oracle.softmax(scores).into_iter().map(|w| f64::from(to_f16(w))).collect()
            }
        }),
    },
    Bug {
        id: "attention/nan-becomes-zero",
        misconception: "replaces weights that are NaN by 0",
        story: "Against rows that see nothing, which padding can make. It also hides that something is wrong in the \
                layers before.",
        source: None,
        named_by: "attention/batch-rows-apart",
        implementation: bug!(NanBecomesZero {
            fn softmax(&self, scores: &[f64]) -> Vec<f64> {
                let weights = Oracle.softmax(scores);
                weights.into_iter().map(|w| if w.is_nan() { 0.0 } else { w }).collect()
            }
        }),
    },
    // --- gradients --------------------------------------------------------------------------
    Bug {
        id: "attention/softmax-gradient-without-sum",
        misconception: "takes y · dy for the softmax's gradient, and forgets what each score does to the other weights",
        story: "The derivative of an exponential. It forgets that what one position gains the others lose.",
        source: None,
        named_by: "attention/softmax-gradient-sums-to-zero",
        implementation: bug!(WithoutSum {
            fn softmax_back(&self, y: &[f64], dy: &[f64]) -> Vec<f64> {
                y.iter().zip(dy).map(|(y, dy)| y * dy).collect()
            }
        }),
    },
    Bug {
        id: "attention/softmax-gradient-diagonal",
        misconception: "takes y · (1 − y) · dy for the softmax's gradient, which is the sigmoid's",
        story: "The diagonal of the softmax's derivatives is this. It is right for one position against all others.",
        source: None,
        named_by: "attention/softmax-gradient-sums-to-zero",
        implementation: bug!(Diagonal {
            fn softmax_back(&self, y: &[f64], dy: &[f64]) -> Vec<f64> {
                y.iter().zip(dy).map(|(y, dy)| y * (1.0 - y) * dy).collect()
            }
        }),
    },
    Bug {
        id: "attention/softmax-gradient-plain-mean",
        misconception: "subtracts the plain mean of dy, where the mean weighted by y belongs",
        story: "As in LayerNorm. For equal weights both are the same.",
        source: None,
        named_by: "attention/softmax-gradient-sums-to-zero",
        implementation: bug!(PlainMean {
            fn softmax_back(&self, y: &[f64], dy: &[f64]) -> Vec<f64> {
                let mean = dy.iter().sum::<f64>() / dy.len() as f64;
                y.iter().zip(dy).map(|(y, dy)| y * (dy - mean)).collect()
            }
        }),
    },
    Bug {
        id: "attention/softmax-gradient-mean-of-products",
        misconception: "divides the sum of y · dy by the number of positions",
        story: "A mean was written for a sum. The weights are in it already.",
        source: None,
        named_by: "attention/softmax-gradient-sums-to-zero",
        implementation: bug!(MeanOfProducts {
            fn softmax_back(&self, y: &[f64], dy: &[f64]) -> Vec<f64> {
                let along: f64 = y.iter().zip(dy).map(|(y, dy)| y * dy).sum();
                let mean = along / dy.len() as f64;
                y.iter().zip(dy).map(|(y, dy)| y * (dy - mean)).collect()
            }
        }),
    },
    Bug {
        id: "attention/softmax-gradient-sign",
        misconception: "subtracts the other way round, so that the softmax's gradient has the wrong sign",
        story: "Each sum is still 0, and each step goes uphill.",
        source: None,
        named_by: "attention/softmax-gradient-f64-loops",
        implementation: bug!(WrongSign {
            fn softmax_back(&self, y: &[f64], dy: &[f64]) -> Vec<f64> {
                Oracle.softmax_back(y, dy).into_iter().map(|dx| -dx).collect()
            }
        }),
    },
    Bug {
        id: "attention/last-head-of-group-only",
        misconception: "keeps the gradient of a key head's last reader, and forgets the other heads of the group",
        story: "Each query head writes its gradient into the key head that it read, and the next one overwrites it.",
        source: Some(
            "marin-community/levanter pull request 449: the sum over the group was missing",
        ),
        named_by: "attention/gradient-of-values-adds-up",
        implementation: bug!(LastHeadOnly {
            fn share_back(&self, head: usize, sizes: &AttendSizes) -> f64 {
                let group = sizes.num_heads / sizes.num_kv_heads;
                if head % group == group - 1 { 1.0 } else { 0.0 }
            }
        }),
    },
    Bug {
        id: "attention/copies-off-the-tape",
        misconception: "copies keys and values outside of the tape: neither gets a gradient",
        story: "Copies of numbers have no past. The queries still learn, so the loss falls.",
        source: None,
        named_by: "attention/repeat-gradient",
        implementation: bug!(CopiesOffTheTape {
            fn share_back(&self, _: usize, _: &AttendSizes) -> f64 {
                0.0
            }
        }),
    },
    Bug {
        id: "attention/group-averaged",
        misconception: "takes the mean over the heads of a group for a key head's gradient, where their sum belongs",
        story: "Copies of one head were folded back into one, as one folds weights.",
        source: None,
        named_by: "attention/gradient-of-values-adds-up",
        implementation: bug!(GroupAveraged {
            fn share_back(&self, _: usize, sizes: &AttendSizes) -> f64 {
                sizes.num_kv_heads as f64 / sizes.num_heads as f64
            }
        }),
    },
    Bug {
        id: "attention/gradient-not-scaled",
        misconception: "forgets √hd in the gradients of queries and keys",
        story: "The scores were divided in place, and the backward pass starts from what was kept before.",
        source: None,
        named_by: "attention/gradient-differences",
        implementation: bug!(GradientNotScaled {
            fn divisor_back(&self, _: &AttendSizes) -> f64 {
                1.0
            }
        }),
    },
    Bug {
        id: "attention/weights-are-constants",
        misconception: "takes the weights for constants: queries and keys get no gradient",
        story: "The weights were taken off the tape to draw them. The values still learn, so the loss falls.",
        source: None,
        named_by: "attention/gradient-differences",
        implementation: bug!(Constants {
            fn dscores(&self, weights: &[f64], _: &[f64], _: &[bool]) -> Vec<f64> {
                vec![0.0; weights.len()]
            }
        }),
    },
    // --- cache ------------------------------------------------------------------------------
    Bug {
        id: "attention/oldest-overwritten",
        misconception: "drops the oldest positions when the cache is full",
        story: "A ring needs no error. The text goes on, and its beginning is gone; keys that were rotated are at \
                positions that no longer count.",
        source: None,
        named_by: "attention/full-cache-refuses",
        implementation: bug!(OldestOverwritten {
            fn room(&self, _: usize) -> usize {
                usize::MAX
            }
            fn join(&self, kept: Option<&KeysValues>, piece: &KeysValues, capacity: usize) -> KeysValues {
                let all = Oracle.join(kept, piece, capacity);
                cut(&all, all.shape[1].saturating_sub(capacity), all.shape[1])
            }
        }),
    },
    Bug {
        id: "attention/cut-at-the-end",
        misconception: "takes as many tokens as there is room for, and drops the rest",
        story: "A slice that ends past the array is shorter in some languages, and no error.",
        source: None,
        named_by: "attention/full-cache-refuses",
        implementation: bug!(CutAtTheEnd {
            fn room(&self, _: usize) -> usize {
                usize::MAX
            }
            fn join(&self, kept: Option<&KeysValues>, piece: &KeysValues, capacity: usize) -> KeysValues {
                let all = Oracle.join(kept, piece, capacity);
                cut(&all, 0, all.shape[1].min(capacity))
            }
        }),
    },
    Bug {
        id: "attention/never-full",
        misconception: "grows past its capacity",
        story: "The capacity is stored, printed, and never read. Memory ends it, far from here.",
        source: None,
        named_by: "attention/full-cache-refuses",
        implementation: bug!(NeverFull {
            fn room(&self, _: usize) -> usize {
                usize::MAX
            }
        }),
    },
    Bug {
        id: "attention/one-too-many",
        misconception: "has room for one position more than its capacity",
        story: "≤ where < belongs, in a check that is made before the piece is counted.",
        source: None,
        named_by: "attention/full-cache-refuses",
        implementation: bug!(OneTooMany {
            fn room(&self, capacity: usize) -> usize {
                capacity + 1
            }
        }),
    },
    Bug {
        id: "attention/last-place-unused",
        misconception: "refuses the piece that fills the cache",
        story: "< where ≤ belongs. A model trained for 4096 positions reads 4095.",
        source: None,
        named_by: "attention/full-cache-refuses",
        implementation: bug!(LastPlaceUnused {
            fn room(&self, capacity: usize) -> usize {
                capacity.saturating_sub(1)
            }
        }),
    },
    Bug {
        id: "attention/cleared-by-refusal",
        misconception: "is empty after a piece that was refused",
        story: "What is kept was taken out to be changed, and the error returned before it was put back.",
        source: None,
        named_by: "attention/refused-piece-changes-nothing",
        implementation: bug!(ClearedByRefusal {
            fn after_refusal(&self, _: Option<KeysValues>, _: &KeysValues) -> Option<KeysValues> {
                None
            }
        }),
    },
    Bug {
        id: "attention/refused-and-kept",
        misconception: "keeps the first token of a piece that it refuses",
        story: "Tokens are stored one by one, and the check comes when the room ends.",
        source: None,
        named_by: "attention/refused-piece-changes-nothing",
        implementation: bug!(RefusedAndKept {
            fn after_refusal(&self, kept: Option<KeysValues>, piece: &KeysValues) -> Option<KeysValues> {
                let fits = Oracle.check_piece(kept.as_ref(), piece).is_ok();
                kept.map(|kept| if fits { joined(&kept, &cut(piece, 0, 1)) } else { kept })
            }
        }),
    },
    Bug {
        id: "attention/new-before-old",
        misconception: "puts new keys and values before the old ones",
        story: "The arguments of a concatenation, exchanged. Without a mask nobody could tell: attention reads a bag.",
        source: None,
        named_by: "attention/cache-keeps",
        implementation: bug!(NewBeforeOld {
            fn join(&self, kept: Option<&KeysValues>, piece: &KeysValues, _: usize) -> KeysValues {
                kept.map_or_else(|| piece.clone(), |kept| joined(piece, kept))
            }
        }),
    },
    Bug {
        id: "attention/forgets",
        misconception: "keeps the last piece alone",
        story: "The cache is assigned, where something should be added to it.",
        source: None,
        named_by: "attention/cache-keeps",
        implementation: bug!(Forgets {
            fn join(&self, _: Option<&KeysValues>, piece: &KeysValues, _: usize) -> KeysValues {
                piece.clone()
            }
        }),
    },
    Bug {
        id: "attention/keys-for-values",
        misconception: "gives back the keys where the values should be",
        story: "Two fields of one type, and one of them was typed twice.",
        source: None,
        named_by: "attention/cache-keeps",
        implementation: bug!(KeysForValues {
            fn join(&self, kept: Option<&KeysValues>, piece: &KeysValues, capacity: usize) -> KeysValues {
                let all = Oracle.join(kept, piece, capacity);
                KeysValues { v: all.k.clone(), ..all }
            }
        }),
    },
    Bug {
        id: "attention/batch-rows-mixed",
        misconception: "appends a piece behind all batch rows, not behind each",
        story: "The values were concatenated as one list, along the batch. With a batch of one it is right.",
        source: None,
        named_by: "attention/cache-keeps",
        implementation: bug!(BatchRowsMixed {
            fn join(&self, kept: Option<&KeysValues>, piece: &KeysValues, _: usize) -> KeysValues {
                let Some(kept) = kept else { return piece.clone() };
                let [b, p, nkv, hd] = kept.shape;
                let shape = [b, p + piece.shape[1], nkv, hd];
                let (k, v) = ([&kept.k[..], &piece.k].concat(), [&kept.v[..], &piece.v].concat());
                KeysValues { shape, k, v }
            }
        }),
    },
    Bug {
        id: "attention/half-cache",
        misconception: "keeps keys and values as f16",
        story: "Half of the memory, and nobody was told. Scores are off in the fourth digit.",
        source: None,
        named_by: "attention/cache-keeps",
        implementation: bug!(HalfCache {
            fn join(&self, kept: Option<&KeysValues>, piece: &KeysValues, capacity: usize) -> KeysValues {
                let all = Oracle.join(kept, piece, capacity);
                let half = |x: &[f32]| x.iter().map(|x| to_f16(f64::from(*x))).collect();
                KeysValues { k: half(&all.k), v: half(&all.v), ..all }
            }
        }),
    },
    Bug {
        id: "attention/width-of-a-piece",
        misconception: "compares the width of a piece, nkv · hd, with that of the cache, and not its two sizes",
        story: "The cache is a matrix with a row for each position. Heads are cut from the row later, by whoever reads.",
        source: None,
        named_by: "attention/cache-refuses-other-shapes",
        implementation: bug!(WidthOfPiece {
            fn check_piece(&self, kept: Option<&KeysValues>, piece: &KeysValues) -> Reply<()> {
                let [b, s, nkv, hd] = piece.shape;
                let same = kept.is_some_and(|kept| kept.shape[2] * kept.shape[3] == nkv * hd);
                let [_, _, nkv, hd] = kept.filter(|_| same).map_or(piece.shape, |kept| kept.shape);
                Oracle.check_piece(kept, &KeysValues { shape: [b, s, nkv, hd], k: vec![], v: vec![] })
            }
        }),
    },
    Bug {
        id: "attention/any-batch",
        misconception: "accepts a piece for another number of texts",
        story: "Missing rows are filled with the first text's. A batch in which one text has ended becomes smaller, \
                and the rest goes on with the wrong past.",
        source: None,
        named_by: "attention/cache-refuses-other-shapes",
        implementation: bug!(AnyBatch {
            fn check_piece(&self, kept: Option<&KeysValues>, piece: &KeysValues) -> Reply<()> {
                let shape = [kept.map_or(0, |kept| kept.shape[0]), 0, piece.shape[2], piece.shape[3]];
                Oracle.check_piece(kept, &KeysValues { shape, k: vec![], v: vec![] })
            }
            fn join(&self, kept: Option<&KeysValues>, piece: &KeysValues, _: usize) -> KeysValues {
                let Some(kept) = kept else { return piece.clone() };
                let ([b, ..], [_, s, nkv, hd]) = (kept.shape, piece.shape);
                let rows = |x: &[f32]| x.iter().copied().cycle().take(b * s * nkv * hd).collect();
                joined(kept, &KeysValues { shape: [b, s, nkv, hd], k: rows(&piece.k), v: rows(&piece.v) })
            }
        }),
    },
    Bug {
        id: "attention/pushed-to-the-last-cache",
        misconception: "keeps all pieces in the cache that was made last",
        story: "One store for all blocks of a model, made anew with each cache. With one block it is right.",
        source: None,
        named_by: "attention/caches-are-apart",
        implementation: || implementation(LastCache::default()),
    },
];
