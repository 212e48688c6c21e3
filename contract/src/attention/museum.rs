//! Bugs of attention and its cache.

use crate::attention::interface::*;
use crate::attention::oracle::{AttentionLoops, Scores, cut, joined};
use crate::component::{bug, bugs};
use crate::oracle::{Oracle, to_f16};
use std::cell::{Cell, RefCell};

bugs! {
    // --- heads ------------------------------------------------------------------------------
    Tiled, ByKeyHeads, FirstForAll, NextKeyHead, ValuesTiled, AnyHeads, MoreQueries,
    // --- mask -------------------------------------------------------------------------------
    NoMask, MaskNotUsed, NotItself, OneAhead, TopLeft, TopLeftInAttention, CacheNotSeen, NoMaskWithCache, MaskInBytes,
    UpperTriangle, Window,
    // --- a sliding window -------------------------------------------------------------------
    WindowIgnored, WindowOneMore, WindowOneLess, WindowBothWays, WindowInBlocks, WindowOfNewTokens, WindowFromTheLastToken,
    WindowNotForOneToken,
    // --- scale ------------------------------------------------------------------------------
    NotScaled, ScaledTwice, ByHiddenSize, ByHeads, ScaledUp,
    // --- softmax ----------------------------------------------------------------------------
    NoMaximum, FirstSubtracted, OneMaximum, OverQueries, MaskAfterSoftmax, HiddenZero, HiddenByHundred,
    HiddenByTenThousand, MaskAdded, HiddenIsTenThousand, HiddenIsABillion, ScoresClamped, NotDivided, OneMore,
    HalfWeights, NanBecomesZero,
    // --- gradients --------------------------------------------------------------------------
    WithoutSum, Diagonal, PlainMean, MeanOfProducts, WrongSign, LastHeadOnly, CopiesOffTheTape, GroupAveraged,
    GradientNotScaled, Constants,
    // --- cache ------------------------------------------------------------------------------
    OldestOverwritten, CutAtTheEnd, NeverFull, OneTooMany, LastPlaceUnused, ClearedByRefusal, RefusedAndKept,
    NewBeforeOld, Forgets, KeysForValues, BatchRowsMixed, HalfCache, WidthOfPiece, AnyBatch, LastCache,
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

/// stores every piece in the most recently created cache
///
/// All blocks of a model share one store, replaced with each new cache. With one block it is right.
#[bug("attention/pushed-to-the-last-cache", named_by = "attention/caches-are-apart", of = LastCache::default())]
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

// --- heads ------------------------------------------------------------------------------

/// repeats key heads in turns, 0, 1, 0, 1, instead of side by side, 0, 0, 1, 1
///
/// NumPy's tile and torch's repeat do the one, repeat_interleave does the other. Every shape is right, and a model trained
/// this way learns, but weights trained with the other order give nonsense.
#[bug(
    "attention/tiled",
    named_by = "attention/repeat-neighbours",
    source = "onnx/onnx pull request 7274, the operator Attention; apple/axlearn pull request 842"
)]
impl AttentionLoops for Tiled {
    fn copy_of(&self, head: usize, nkv: usize, _: usize) -> usize {
        head % nkv
    }
}

/// divides a head's number by the number of key heads instead of the group size
///
/// With 4 query heads over 2 key heads, both are 2.
#[bug(
    "attention/divided-by-key-heads",
    named_by = "attention/repeat-neighbours",
    source = "XunhaoLai/native-sparse-attention-triton issue 27: the two counts exchanged, in a backward pass"
)]
impl AttentionLoops for ByKeyHeads {
    fn copy_of(&self, head: usize, nkv: usize, _: usize) -> usize {
        (head / nkv).min(nkv - 1)
    }
}

/// gives every query head the first key head, as if there were only one
///
/// The code was written for multi-query attention, where one head is broadcast over all.
#[bug("attention/first-key-head-for-all", named_by = "attention/repeat-neighbours")]
impl AttentionLoops for FirstForAll {
    fn copy_of(&self, _: usize, _: usize, _: usize) -> usize {
        0
    }
}

/// moves on to the next key head one query head early
///
/// Heads were counted from 1 in one place and from 0 in the other.
#[bug("attention/next-key-head", named_by = "attention/repeat-neighbours")]
impl AttentionLoops for NextKeyHead {
    fn copy_of(&self, head: usize, nkv: usize, times: usize) -> usize {
        ((head + 1) / times).min(nkv - 1)
    }
}

/// repeats keys side by side but values in turns
///
/// Two lines should match, and only one was changed. Each weight is right, but meets the value of another head.
#[bug("attention/values-tiled", named_by = "attention/groups-are-copies")]
impl AttentionLoops for ValuesTiled {
    fn value_head(&self, head: usize, sizes: &AttendSizes) -> usize {
        head % sizes.num_kv_heads
    }
}

/// accepts key heads that do not divide the query heads
///
/// Integer division drops the remainder, so the last heads read the last key head.
#[bug("attention/any-heads", named_by = "attention/forward-refuses")]
impl AttentionLoops for AnyHeads {
    fn check(&self, case: &AttendCase) -> Reply<()> {
        let sizes = AttendSizes { num_heads: 1, num_kv_heads: 1, ..case.sizes };
        Oracle.check(&AttendCase { sizes, q: vec![], k: vec![], v: vec![] })
    }
    fn key_head(&self, head: usize, sizes: &AttendSizes) -> usize {
        let group = (sizes.num_heads / sizes.num_kv_heads).max(1);
        (head / group).min(sizes.num_kv_heads - 1)
    }
}

/// accepts more queries than keys
///
/// The first queries come before all keys and see nothing, or whatever a wrapped number lets them see.
#[bug("attention/more-queries-than-keys", named_by = "attention/forward-refuses")]
impl AttentionLoops for MoreQueries {
    fn check(&self, case: &AttendCase) -> Reply<()> {
        let AttendSizes { num_heads, num_kv_heads, .. } = case.sizes;
        let sizes = AttendSizes { queries: 1, keys: 1, ..case.sizes };
        let fits = num_kv_heads > 0 && num_heads % num_kv_heads == 0;
        if fits { Ok(()) } else { Oracle.check(&AttendCase { sizes, ..case.clone() }) }
    }
    fn seen(&self, row: usize, key: usize, sizes: &AttendSizes) -> bool {
        key + sizes.queries <= sizes.keys + row
    }
}

// --- mask -------------------------------------------------------------------------------

/// lets every token see every other, including later ones
///
/// In training each token reads its own answer, so the loss falls fast, but the model can't write.
#[bug(
    "attention/no-mask",
    named_by = "attention/mask-triangle",
    source = "paiml/entrenar issue 310; keras-team/keras issue 23038, where a mask was dropped"
)]
impl AttentionLoops for NoMask {
    fn sees(&self, _: usize, _: usize, _: usize, _: usize) -> bool {
        true
    }
}

/// builds the mask but does not use it in attention
///
/// The mask was an argument with a default, and the default is none.
#[bug(
    "attention/mask-not-used",
    named_by = "attention/causal",
    source = "facebookresearch/xformers issue 103"
)]
impl AttentionLoops for MaskNotUsed {
    fn seen(&self, _: usize, _: usize, _: &AttendSizes) -> bool {
        true
    }
}

/// lets a token see what comes before it, but not itself
///
/// j < t was written for j ≤ t. The first token sees nothing, so its softmax is 0 / 0.
#[bug(
    "attention/not-itself",
    named_by = "attention/mask-triangle",
    source = "pbloem/former issue 10, in its text"
)]
impl AttentionLoops for NotItself {
    fn sees(&self, row: usize, key: usize, p: usize, _: usize) -> bool {
        key < p + row
    }
}

/// lets a token see the next one too
///
/// A length was used as the last index, or the diagonal was counted from 1. In training, the next token is the answer.
#[bug(
    "attention/one-ahead",
    named_by = "attention/mask-triangle",
    source = "flashinfer-ai/flashinfer pull request 348"
)]
impl AttentionLoops for OneAhead {
    fn sees(&self, row: usize, key: usize, p: usize, _: usize) -> bool {
        key <= p + row + 1
    }
}

/// aligns the mask's triangle at the top left, as if the new tokens were the first ones
///
/// Row t is treated as position t, which is right while the cache is empty. A decoded token then sees only the first token
/// of the text. PyTorch's is_causal means this triangle.
#[bug(
    "attention/top-left",
    named_by = "attention/mask-with-cache",
    source = "tinygrad/tinygrad pull request 15949; onnx/onnx pull request 8068; pytorch/pytorch issue 108108"
)]
impl AttentionLoops for TopLeft {
    fn sees(&self, row: usize, key: usize, _: usize, _: usize) -> bool {
        key <= row
    }
}

/// builds the right mask, but attends with the triangle at the top left
///
/// The kernel has its own flag for causal attention, and the flag ignores the cache.
#[bug(
    "attention/top-left-in-attention",
    named_by = "attention/decode",
    source = "pytorch/pytorch issue 144858"
)]
impl AttentionLoops for TopLeftInAttention {
    fn seen(&self, row: usize, key: usize, _: &AttendSizes) -> bool {
        key <= row
    }
}

/// lets the new tokens see each other, but nothing in the cache
///
/// A mask for the new tokens alone, s columns wide, was padded with zeros.
#[bug(
    "attention/cache-not-seen",
    named_by = "attention/mask-with-cache",
    source = "meta-llama/llama issue 899, where such a mask met the scores and did not fit"
)]
impl AttentionLoops for CacheNotSeen {
    fn sees(&self, row: usize, key: usize, p: usize, _: usize) -> bool {
        key >= p && key <= p + row
    }
}

/// masks nothing once something is in the cache
///
/// Decoding one token at a time needs no mask, so its code leaves it out. Then a prompt comes in two pieces.
#[bug(
    "attention/no-mask-with-cache",
    named_by = "attention/mask-with-cache",
    source = "jingyaogong/minimind issue 631"
)]
impl AttentionLoops for NoMaskWithCache {
    fn sees(&self, row: usize, key: usize, p: usize, _: usize) -> bool {
        p > 0 || key <= row
    }
}

/// counts positions in a byte, and starts over at 256
///
/// The mask consists of small integers to save memory, and so do the positions it compares.
#[bug("attention/mask-in-bytes", named_by = "attention/mask-any-size")]
impl AttentionLoops for MaskInBytes {
    fn sees(&self, row: usize, key: usize, p: usize, _: usize) -> bool {
        key as u8 <= (p + row) as u8
    }
}

/// keeps the upper triangle, so that each token sees itself and everything after it
///
/// In some libraries a mask's 1 means hidden, in others it means visible.
#[bug(
    "attention/upper-triangle",
    named_by = "attention/mask-triangle",
    source = "harvard-edge/cs249r_book pull request 1785: the two meanings in two of its modules"
)]
impl AttentionLoops for UpperTriangle {
    fn sees(&self, row: usize, key: usize, p: usize, _: usize) -> bool {
        key >= p + row
    }
}

/// sees only the last 16 positions
///
/// A sliding window from another model was left on, and no test had a text of 17 tokens.
#[bug("attention/window", named_by = "attention/mask-any-size")]
impl AttentionLoops for Window {
    fn sees(&self, row: usize, key: usize, p: usize, _: usize) -> bool {
        key <= p + row && p + row < key + 16
    }
}

// --- a sliding window -------------------------------------------------------------------

/// forgets the window, so that each token sees the whole text before it
///
/// One of several kernels does not get the setting. Texts that are shorter than the window come out right.
#[bug(
    "attention/window-ignored",
    named_by = "attention/window-band",
    source = "sgl-project/sglang pull request 26516; unslothai/unsloth pull request 8253"
)]
impl AttentionLoops for WindowIgnored {
    fn sees_through(&self, row: usize, key: usize, (p, _): (usize, usize), _: usize) -> bool {
        key <= p + row
    }
}

/// shows one position more than the window has
///
/// A kernel counts the positions before the token, and a model's setting counts the token too.
#[bug(
    "attention/window-one-more",
    named_by = "attention/window-band",
    source = "huggingface/transformers issue 39408; ml-explore/mlx-lm pull request 390; zml/zml pull request 763"
)]
impl AttentionLoops for WindowOneMore {
    fn sees_through(&self, row: usize, key: usize, (p, _): (usize, usize), window: usize) -> bool {
        key <= p + row && p + row <= key.saturating_add(window)
    }
}

/// shows one position fewer than the window has
///
/// The token itself was counted twice. With a window of 1 it sees nothing, not even itself.
#[bug(
    "attention/window-one-less",
    named_by = "attention/window-band",
    source = "lightseekorg/tokenspeed pull request 578"
)]
impl AttentionLoops for WindowOneLess {
    fn sees_through(&self, row: usize, key: usize, (p, _): (usize, usize), window: usize) -> bool {
        key <= p + row && p + row + 1 < key.saturating_add(window)
    }
}

/// lets a token see as many tokens after it as before it
///
/// The window is a bound on the distance, and the mask was to be causal anyway.
#[bug("attention/window-both-ways", named_by = "attention/window-band")]
impl AttentionLoops for WindowBothWays {
    fn sees_through(&self, row: usize, key: usize, (p, _): (usize, usize), window: usize) -> bool {
        (p + row).abs_diff(key) < window
    }
}

/// cuts the text into blocks as long as the window, and shows a token the part of its own block
///
/// Both limit what is seen, and some models have blocks. The first token of a block then sees itself alone.
#[bug("attention/window-in-blocks", named_by = "attention/window-band")]
impl AttentionLoops for WindowInBlocks {
    fn sees_through(&self, row: usize, key: usize, (p, _): (usize, usize), window: usize) -> bool {
        key <= p + row && key / window == (p + row) / window
    }
}

/// counts the window from the number of a new token, as if nothing were in the cache
///
/// The triangle was moved for the cache and the other edge of the band was not, so the tokens see too much.
#[bug(
    "attention/window-of-new-tokens",
    named_by = "attention/window-with-cache",
    source = "trymirai/lalamo pull request 200"
)]
impl AttentionLoops for WindowOfNewTokens {
    fn sees_through(&self, row: usize, key: usize, (p, _): (usize, usize), window: usize) -> bool {
        key <= p + row && row < key.saturating_add(window)
    }
}

/// counts the window of all tokens from the last one
///
/// The keys are cut to the last ones before the piece is computed. Its first tokens then lose the beginning of their windows.
#[bug("attention/window-from-the-last-token", named_by = "attention/window-band")]
impl AttentionLoops for WindowFromTheLastToken {
    fn sees_through(&self, row: usize, key: usize, (p, s): (usize, usize), window: usize) -> bool {
        key <= p + row && p + s <= key.saturating_add(window)
    }
}

/// masks nothing for a single token
///
/// A single token sees all that is before it, so no mask was made. That was right until there was a window.
#[bug(
    "attention/window-not-for-one-token",
    named_by = "attention/window-with-cache",
    source = "rajveer43/VeloxQuant-MLX pull request 463"
)]
impl AttentionLoops for WindowNotForOneToken {
    fn sees_through(&self, row: usize, key: usize, (p, s): (usize, usize), window: usize) -> bool {
        key <= p + row && (s == 1 || p + row < key.saturating_add(window))
    }
}

// --- scale ------------------------------------------------------------------------------

/// does not divide the scores by √hd
///
/// The scores are √hd times too large, so one position takes nearly all the weight. The model trains, but badly.
#[bug(
    "attention/not-scaled",
    named_by = "attention/score-scale",
    source = "mlc-ai/mlc-llm pull request 3426"
)]
impl AttentionLoops for NotScaled {
    fn divisor(&self, _: &AttendSizes) -> f64 {
        1.0
    }
}

/// divides by hd, because queries and scores are both divided by √hd
///
/// The queries were scaled when they were computed, and the kernel scales again.
#[bug("attention/scaled-twice", named_by = "attention/score-scale")]
impl AttentionLoops for ScaledTwice {
    fn divisor(&self, sizes: &AttendSizes) -> f64 {
        sizes.head_dim as f64
    }
}

/// divides by the root of the hidden size instead of the head size
///
/// The paper's d_k was read as the size of the token, which is right for a single head.
#[bug(
    "attention/scaled-by-hidden-size",
    named_by = "attention/score-scale",
    source = "lucidrains/vit-pytorch issue 65; karpathy/ng-video-lecture pull request 6"
)]
impl AttentionLoops for ByHiddenSize {
    fn divisor(&self, sizes: &AttendSizes) -> f64 {
        ((sizes.num_heads * sizes.head_dim) as f64).sqrt()
    }
}

/// divides by the root of the number of heads
///
/// Two numbers were next to each other, and the wrong one was used. The comment above was right.
#[bug(
    "attention/scaled-by-heads",
    named_by = "attention/score-scale",
    source = "tenstorrent/tt-metal pull request 56789"
)]
impl AttentionLoops for ByHeads {
    fn divisor(&self, sizes: &AttendSizes) -> f64 {
        (sizes.num_heads as f64).sqrt()
    }
}

/// multiplies the scores by √hd
///
/// The scale was stored as hd to the power of −0.5, and then divided by.
#[bug(
    "attention/scaled-up",
    named_by = "attention/score-scale",
    source = "esceptico/perceiver-io issue 9"
)]
impl AttentionLoops for ScaledUp {
    fn divisor(&self, sizes: &AttendSizes) -> f64 {
        (sizes.head_dim as f64).sqrt().recip()
    }
}

// --- softmax ----------------------------------------------------------------------------

/// takes the exponential of the raw scores, which in f32 overflows beyond 88
///
/// On paper nothing needs to be subtracted, but a model whose scores reached 151 wrote garbage.
#[bug(
    "attention/no-maximum",
    named_by = "attention/large-scores",
    source = "pytorch/executorch pull request 18407; ggml-org/llama.cpp pull request 2665"
)]
impl AttentionLoops for NoMaximum {
    fn softmax(&self, scores: &[f64]) -> Vec<f64> {
        softmax_f32(scores, 0.0)
    }
}

/// subtracts the first score of a row instead of the largest
///
/// On paper any number will do, and finding the first needs no pass. In f32 another score may be larger by more than 88.
#[bug("attention/first-subtracted", named_by = "attention/large-scores")]
impl AttentionLoops for FirstSubtracted {
    fn softmax(&self, scores: &[f64]) -> Vec<f64> {
        softmax_f32(scores, scores[0])
    }
}

/// subtracts the largest score of all queries instead of the row's own
///
/// One pass over the matrix finds it. A row whose scores are all lower by more than 103 then becomes 0 / 0.
#[bug("attention/one-maximum-for-all", named_by = "attention/forward-f64-loops")]
impl AttentionLoops for OneMaximum {
    fn weights(&self, scores: Scores) -> Vec<Vec<f64>> {
        let rows = masked(scores);
        let largest = Oracle.largest(&rows.concat());
        rows.iter().map(|row| softmax_f32(row, largest)).collect()
    }
}

/// takes the softmax over the queries, so that the columns sum to 1 instead of the rows
///
/// The axes of the scores, i and j, were confused. The picture of the weights looks similar.
#[bug(
    "attention/over-queries",
    named_by = "attention/weights-sum-to-one",
    source = "labmlai/annotated_deep_learning_paper_implementations issue 146; PetrochukM/PyTorch-NLP issue 2"
)]
impl AttentionLoops for OverQueries {
    fn weights(&self, scores: Scores) -> Vec<Vec<f64>> {
        let rows = masked(scores);
        let column = |j: usize| -> Vec<f64> { rows.iter().map(|row| row[j]).collect() };
        let columns: Vec<_> = (0..rows[0].len()).map(|j| Oracle.softmax(&column(j))).collect();
        (0..rows.len()).map(|i| columns.iter().map(|column| column[i]).collect()).collect()
    }
}

/// applies the mask after the softmax, so that the remaining weights no longer sum to 1
///
/// The weights of later tokens become 0, as they should, but these tokens have already taken their share of the sum.
#[bug(
    "attention/mask-after-softmax",
    named_by = "attention/weights-sum-to-one",
    source = "huggingface/pytorch-image-models pull request 2236; lucidrains/memory-compressed-attention issue 2"
)]
impl AttentionLoops for MaskAfterSoftmax {
    fn weights(&self, (scores, seen): Scores) -> Vec<Vec<f64>> {
        let row = |(scores, seen): (&Vec<f64>, &Vec<bool>)| -> Vec<f64> {
            let weights = Oracle.softmax(scores);
            weights.iter().zip(seen).map(|(&w, &s)| if s { w } else { 0.0 }).collect()
        };
        scores.iter().zip(seen).map(row).collect()
    }
}

/// gives hidden positions the score 0 instead of −∞
///
/// The scores were multiplied by the mask, but a score of 0 is an ordinary one: e⁰ is 1.
#[bug("attention/hidden-scores-zero", named_by = "attention/causal")]
impl AttentionLoops for HiddenZero {
    fn hidden(&self, _: f64) -> f64 {
        0.0
    }
}

/// subtracts 100 from hidden scores instead of setting them to −∞
///
/// It is a large number that half precision can hold, but a later token whose score is higher by a hundred is seen.
#[bug("attention/hidden-by-hundred", named_by = "attention/forward-f64-loops")]
impl AttentionLoops for HiddenByHundred {
    fn hidden(&self, score: f64) -> f64 {
        score - 100.0
    }
}

/// subtracts 10,000 from hidden scores instead of setting them to −∞
///
/// Half precision holds no much larger number. While a model trains from scratch, scores can exceed it, and then the future
/// is read. Even a trained model was found with scores beyond 100,000.
#[bug(
    "attention/hidden-by-ten-thousand",
    named_by = "attention/causal",
    source = "huggingface/transformers issue 14859; TransformerLensOrg/TransformerLens pull request 319"
)]
impl AttentionLoops for HiddenByTenThousand {
    fn hidden(&self, score: f64) -> f64 {
        score - 1e4
    }
}

/// adds −∞ to hidden scores instead of replacing them
///
/// Added to a number, −∞ hides it, but a later key with NaN or infinity comes through: NaN plus −∞ is NaN, which also
/// spoils the tokens before it. Scaled dot-product attention adds masks.
#[bug("attention/mask-added", named_by = "attention/unseen-keys")]
impl AttentionLoops for MaskAdded {
    fn hidden(&self, score: f64) -> f64 {
        score + f64::NEG_INFINITY
    }
}

/// gives hidden positions the score −10,000 instead of −∞
///
/// The mask is filled in instead of added. It hides, as long as what is visible has a score above it.
#[bug("attention/hidden-is-ten-thousand", named_by = "attention/first-token")]
impl AttentionLoops for HiddenIsTenThousand {
    fn hidden(&self, _: f64) -> f64 {
        -1e4
    }
}

/// gives hidden positions the score −10⁹ instead of −∞
///
/// No score is so low until a model diverges, and then its first tokens read the future.
#[bug("attention/hidden-is-a-billion", named_by = "attention/first-token")]
impl AttentionLoops for HiddenIsABillion {
    fn hidden(&self, _: f64) -> f64 {
        -1e9
    }
}

/// clamps the scores between −10,000 and 10,000
///
/// This guards against infinities, although the largest score is subtracted anyway. Beyond the clamp all scores are equal.
#[bug("attention/scores-clamped", named_by = "attention/large-scores")]
impl AttentionLoops for ScoresClamped {
    fn softmax(&self, scores: &[f64]) -> Vec<f64> {
        let clamped = |score: &f64| match *score {
            f64::NEG_INFINITY => f64::NEG_INFINITY,
            score => score.clamp(-1e4, 1e4),
        };
        Oracle.softmax(&scores.iter().map(clamped).collect::<Vec<f64>>())
    }
}

/// does not divide by the sum of the exponentials
///
/// The norm after attention removes any factor, so the loss hardly shows it.
#[bug("attention/not-divided", named_by = "attention/weights-sum-to-one")]
impl AttentionLoops for NotDivided {
    fn softmax(&self, scores: &[f64]) -> Vec<f64> {
        let largest = Oracle.largest(scores);
        scores.iter().map(|score| (score - largest).exp()).collect()
    }
}

/// adds 1 to the sum of the exponentials
///
/// It is an epsilon against a sum of 0, and much too large. None is needed, because the largest term is already 1.
#[bug("attention/one-more-in-sum", named_by = "attention/weights-sum-to-one")]
impl AttentionLoops for OneMore {
    fn softmax(&self, scores: &[f64]) -> Vec<f64> {
        let largest = Oracle.largest(scores);
        let sum: f64 = scores.iter().map(|score| (score - largest).exp()).sum();
        scores.iter().map(|score| (score - largest).exp() / (1.0 + sum)).collect()
    }
}

/// rounds the weights to f16
///
/// It makes the product with the values faster, but only three digits are right.
#[bug("attention/half-weights", named_by = "attention/forward-f64-loops")]
impl AttentionLoops for HalfWeights {
    fn softmax(&self, scores: &[f64]) -> Vec<f64> {
        Oracle.softmax(scores).into_iter().map(|w| f64::from(to_f16(w))).collect()
    }
}

/// replaces weights that are NaN by 0
///
/// This is for rows that see nothing, which padding can produce, but it also hides that something went wrong in earlier
/// layers.
#[bug("attention/nan-becomes-zero", named_by = "attention/batch-rows-apart")]
impl AttentionLoops for NanBecomesZero {
    fn softmax(&self, scores: &[f64]) -> Vec<f64> {
        let weights = Oracle.softmax(scores);
        weights.into_iter().map(|w| if w.is_nan() { 0.0 } else { w }).collect()
    }
}

// --- gradients --------------------------------------------------------------------------

/// uses y · dy as the softmax's gradient, and forgets how each score affects the other weights
///
/// This is the derivative of an exponential. It forgets that what one position gains, the others lose.
#[bug(
    "attention/softmax-gradient-without-sum",
    named_by = "attention/softmax-gradient-sums-to-zero"
)]
impl AttentionLoops for WithoutSum {
    fn softmax_back(&self, y: &[f64], dy: &[f64]) -> Vec<f64> {
        y.iter().zip(dy).map(|(y, dy)| y * dy).collect()
    }
}

/// uses y · (1 − y) · dy as the softmax's gradient, which is the sigmoid's
///
/// It is the diagonal of the softmax's derivatives, which is right for one position against all others.
#[bug("attention/softmax-gradient-diagonal", named_by = "attention/softmax-gradient-sums-to-zero")]
impl AttentionLoops for Diagonal {
    fn softmax_back(&self, y: &[f64], dy: &[f64]) -> Vec<f64> {
        y.iter().zip(dy).map(|(y, dy)| y * (1.0 - y) * dy).collect()
    }
}

/// subtracts the plain mean of dy instead of the mean weighted by y
///
/// LayerNorm does so, and for equal weights both are the same.
#[bug(
    "attention/softmax-gradient-plain-mean",
    named_by = "attention/softmax-gradient-sums-to-zero"
)]
impl AttentionLoops for PlainMean {
    fn softmax_back(&self, y: &[f64], dy: &[f64]) -> Vec<f64> {
        let mean = dy.iter().sum::<f64>() / dy.len() as f64;
        y.iter().zip(dy).map(|(y, dy)| y * (dy - mean)).collect()
    }
}

/// divides the sum of y · dy by the number of positions
///
/// A mean was written for a sum, although the weights are already in it.
#[bug(
    "attention/softmax-gradient-mean-of-products",
    named_by = "attention/softmax-gradient-sums-to-zero"
)]
impl AttentionLoops for MeanOfProducts {
    fn softmax_back(&self, y: &[f64], dy: &[f64]) -> Vec<f64> {
        let along: f64 = y.iter().zip(dy).map(|(y, dy)| y * dy).sum();
        let mean = along / dy.len() as f64;
        y.iter().zip(dy).map(|(y, dy)| y * (dy - mean)).collect()
    }
}

/// subtracts the wrong way round, so that the softmax's gradient has the wrong sign
///
/// Each sum is still 0, but each step goes uphill.
#[bug("attention/softmax-gradient-sign", named_by = "attention/softmax-gradient-f64-loops")]
impl AttentionLoops for WrongSign {
    fn softmax_back(&self, y: &[f64], dy: &[f64]) -> Vec<f64> {
        Oracle.softmax_back(y, dy).into_iter().map(|dx| -dx).collect()
    }
}

/// keeps only the gradient of a key head's last reader, and drops the group's other heads
///
/// Each query head writes its gradient into the key head that it read, and overwrites the one before.
#[bug(
    "attention/last-head-of-group-only",
    named_by = "attention/gradient-of-values-adds-up",
    source = "marin-community/levanter pull request 449: the sum over the group was missing"
)]
impl AttentionLoops for LastHeadOnly {
    fn share_back(&self, head: usize, sizes: &AttendSizes) -> f64 {
        let group = sizes.num_heads / sizes.num_kv_heads;
        if head % group == group - 1 { 1.0 } else { 0.0 }
    }
}

/// copies keys and values outside the tape, so that neither gets a gradient
///
/// Copied numbers have no history. The queries still learn, so the loss falls.
#[bug("attention/copies-off-the-tape", named_by = "attention/repeat-gradient")]
impl AttentionLoops for CopiesOffTheTape {
    fn share_back(&self, _: usize, _: &AttendSizes) -> f64 {
        0.0
    }
}

/// averages a key head's gradient over its group instead of summing it
///
/// The copies of a head were merged back into one, the way weights are merged.
#[bug("attention/group-averaged", named_by = "attention/gradient-of-values-adds-up")]
impl AttentionLoops for GroupAveraged {
    fn share_back(&self, _: usize, sizes: &AttendSizes) -> f64 {
        sizes.num_kv_heads as f64 / sizes.num_heads as f64
    }
}

/// forgets √hd in the gradients of queries and keys
///
/// The scores were divided in place, while the backward pass starts from what was stored before.
#[bug("attention/gradient-not-scaled", named_by = "attention/gradient-differences")]
impl AttentionLoops for GradientNotScaled {
    fn divisor_back(&self, _: &AttendSizes) -> f64 {
        1.0
    }
}

/// treats the weights as constants, so that queries and keys get no gradient
///
/// The weights were detached from the tape to plot them. The values still learn, so the loss falls.
#[bug("attention/weights-are-constants", named_by = "attention/gradient-differences")]
impl AttentionLoops for Constants {
    fn dscores(&self, weights: &[f64], _: &[f64], _: &[bool]) -> Vec<f64> {
        vec![0.0; weights.len()]
    }
}

// --- cache ------------------------------------------------------------------------------

/// drops the oldest positions when the cache is full
///
/// A ring needs no error. The text goes on without its beginning, and rotated keys are at positions that no longer count.
#[bug("attention/oldest-overwritten", named_by = "attention/full-cache-refuses")]
impl AttentionLoops for OldestOverwritten {
    fn room(&self, _: usize) -> usize {
        usize::MAX
    }
    fn join(&self, kept: Option<&KeysValues>, piece: &KeysValues, capacity: usize) -> KeysValues {
        let all = Oracle.join(kept, piece, capacity);
        cut(&all, all.shape[1].saturating_sub(capacity), all.shape[1])
    }
}

/// takes as many tokens as there is room for and drops the rest
///
/// In some languages a slice that ends past the array is simply shorter, without an error.
#[bug("attention/cut-at-the-end", named_by = "attention/full-cache-refuses")]
impl AttentionLoops for CutAtTheEnd {
    fn room(&self, _: usize) -> usize {
        usize::MAX
    }
    fn join(&self, kept: Option<&KeysValues>, piece: &KeysValues, capacity: usize) -> KeysValues {
        let all = Oracle.join(kept, piece, capacity);
        cut(&all, 0, all.shape[1].min(capacity))
    }
}

/// grows past its capacity
///
/// The capacity is stored and printed, but never read. Growth ends far from here, when memory does.
#[bug("attention/never-full", named_by = "attention/full-cache-refuses")]
impl AttentionLoops for NeverFull {
    fn room(&self, _: usize) -> usize {
        usize::MAX
    }
}

/// has room for one position more than its capacity
///
/// ≤ was written for <, in a check that comes before the piece is counted.
#[bug("attention/one-too-many", named_by = "attention/full-cache-refuses")]
impl AttentionLoops for OneTooMany {
    fn room(&self, capacity: usize) -> usize {
        capacity + 1
    }
}

/// rejects the piece that fills the cache
///
/// < was written for ≤, so a model trained for 4096 positions reads only 4095.
#[bug("attention/last-place-unused", named_by = "attention/full-cache-refuses")]
impl AttentionLoops for LastPlaceUnused {
    fn room(&self, capacity: usize) -> usize {
        capacity.saturating_sub(1)
    }
}

/// is empty after rejecting a piece
///
/// The contents were taken out to be changed, and the error returned before they were put back.
#[bug("attention/cleared-by-refusal", named_by = "attention/refused-piece-changes-nothing")]
impl AttentionLoops for ClearedByRefusal {
    fn after_refusal(&self, _: Option<KeysValues>, _: &KeysValues) -> Option<KeysValues> {
        None
    }
}

/// keeps the first token of a piece that it rejects
///
/// Tokens are stored one by one, and the check fails only when the room runs out.
#[bug("attention/refused-and-kept", named_by = "attention/refused-piece-changes-nothing")]
impl AttentionLoops for RefusedAndKept {
    fn after_refusal(&self, kept: Option<KeysValues>, piece: &KeysValues) -> Option<KeysValues> {
        let fits = Oracle.check_piece(kept.as_ref(), piece).is_ok();
        kept.map(|kept| if fits { joined(&kept, &cut(piece, 0, 1)) } else { kept })
    }
}

/// puts new keys and values before the old ones
///
/// The arguments of a concatenation were swapped. Without a mask it makes no difference, because attention reads a bag.
#[bug("attention/new-before-old", named_by = "attention/cache-keeps")]
impl AttentionLoops for NewBeforeOld {
    fn join(&self, kept: Option<&KeysValues>, piece: &KeysValues, _: usize) -> KeysValues {
        kept.map_or_else(|| piece.clone(), |kept| joined(piece, kept))
    }
}

/// keeps only the last piece
///
/// The cache is assigned where it should be appended to.
#[bug("attention/forgets", named_by = "attention/cache-keeps")]
impl AttentionLoops for Forgets {
    fn join(&self, _: Option<&KeysValues>, piece: &KeysValues, _: usize) -> KeysValues {
        piece.clone()
    }
}

/// returns the keys in both places
///
/// The two fields have the same type, and one of them was typed twice.
#[bug("attention/keys-for-values", named_by = "attention/cache-keeps")]
impl AttentionLoops for KeysForValues {
    fn join(&self, kept: Option<&KeysValues>, piece: &KeysValues, capacity: usize) -> KeysValues {
        let all = Oracle.join(kept, piece, capacity);
        KeysValues { v: all.k.clone(), ..all }
    }
}

/// appends a piece after all batch rows instead of after each
///
/// The values were concatenated as one list, along the batch. For a batch of one it is right.
#[bug("attention/batch-rows-mixed", named_by = "attention/cache-keeps")]
impl AttentionLoops for BatchRowsMixed {
    fn join(&self, kept: Option<&KeysValues>, piece: &KeysValues, _: usize) -> KeysValues {
        let Some(kept) = kept else { return piece.clone() };
        let [b, p, nkv, hd] = kept.shape;
        let shape = [b, p + piece.shape[1], nkv, hd];
        let (k, v) = ([&kept.k[..], &piece.k].concat(), [&kept.v[..], &piece.v].concat());
        KeysValues { shape, k, v }
    }
}

/// stores keys and values as f16
///
/// This silently saves half of the memory, and scores are off in the fourth digit.
#[bug("attention/half-cache", named_by = "attention/cache-keeps")]
impl AttentionLoops for HalfCache {
    fn join(&self, kept: Option<&KeysValues>, piece: &KeysValues, capacity: usize) -> KeysValues {
        let all = Oracle.join(kept, piece, capacity);
        let half = |x: &[f32]| x.iter().map(|x| to_f16(f64::from(*x))).collect();
        KeysValues { k: half(&all.k), v: half(&all.v), ..all }
    }
}

/// compares only the total width of a piece, nkv · hd, with the cache, not its two sizes
///
/// The cache is a matrix with one row per position, and heads are cut from the row later, when it is read.
#[bug("attention/width-of-a-piece", named_by = "attention/cache-refuses-other-shapes")]
impl AttentionLoops for WidthOfPiece {
    fn check_piece(&self, kept: Option<&KeysValues>, piece: &KeysValues) -> Reply<()> {
        let [b, s, nkv, hd] = piece.shape;
        let same = kept.is_some_and(|kept| kept.shape[2] * kept.shape[3] == nkv * hd);
        let [_, _, nkv, hd] = kept.filter(|_| same).map_or(piece.shape, |kept| kept.shape);
        Oracle.check_piece(kept, &KeysValues { shape: [b, s, nkv, hd], k: vec![], v: vec![] })
    }
}

/// accepts a piece for another number of texts
///
/// Missing rows are filled from the first text's. When one text of a batch ends, the batch becomes smaller, and the rest
/// continues with the wrong past.
#[bug("attention/any-batch", named_by = "attention/cache-refuses-other-shapes")]
impl AttentionLoops for AnyBatch {
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
}
