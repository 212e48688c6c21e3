//! Bugs of the model.

use crate::component::{bug, bugs};
use crate::model::interface::*;
use crate::model::oracle::*;
use crate::oracle::Oracle;
use std::cmp::Ordering;

bugs! {
    PostNorm, ResidualOfNormed, SecondResidualOfNormed, NoResidual, ResidualFromStart, ParallelHalves, NetworkFirst,
    OneNorm, NormsExchanged, NetworkNotNormed, AttentionNotNormed, ValuesTurned, KeysNotTurned, HeadsAcross,
    OutputTransposed, SeesTheNext, AttentionOffTheTape, NoLastNorm, EmbeddingScaled, OneBlock, LastBlockLeftOut,
    BlocksReversed, BlocksByName, AlwaysTied, IdsWrap, PositionsRestart, PositionIsTheCall, PositionOneLate,
    CacheForgets, OneCache, PieceUnmasked, MaskWithoutCache, SmallestFirst, LastOfEquals, TemperatureMultiplies,
    TemperatureIgnored, NoLargestSubtracted, OneTooMany, NucleusTooSmall, EachBelowP, OneMoreAtEqual, NotRenormalized,
    EvenlyAmongKept, EdgeToBefore, TiesMixed, ColdSettingsUnread, NearlyCold, TemperatureFloored, SampledInF32,
    TopPInF32, ForbiddenRefused, FullCacheTaken, NanDrawn, TopKOfNone, LossNotShifted, LossShiftedTwice,
    LastPlaceOnly, LossSummed, LossPerText, Uphill, SignOnly, GammasNotTrained, TableNotTrained, LossAfterStep,
}

/// A block whose halves are put together in another way. `$attention` gives what is found for normed tokens.
macro_rules! wired {
    (|$on:ident, $weights:ident, $x:ident, $attention:ident| $body:expr) => {
        fn block(
            &self,
            $on: &Settings,
            $weights: &BlockWeights,
            $x: Rows,
            kept: &mut Kept,
            place: Place,
        ) -> Rows {
            let mut $attention =
                |normed: &[Vec<f64>]| Oracle.attention($on, $weights, normed, kept, place);
            $body
        }
    };
}

/// All tokens behind one norm.
fn all_normed(x: &[Vec<f64>], gamma: &[f32], eps: f64) -> Rows {
    x.iter().map(|x| Oracle.normed(x, gamma, eps)).collect()
}

/// The sums of two lists of tokens.
fn sums(x: &[Vec<f64>], y: &[Vec<f64>]) -> Rows {
    x.iter().zip(y).map(|(x, y)| sum(x, y)).collect()
}

/// What the network gives for tokens behind the second norm.
fn networks(on: &Settings, weights: &BlockWeights, x: &[Vec<f64>]) -> Rows {
    let normed = all_normed(x, &weights.post_norm, on.eps);
    normed.iter().map(|x| Oracle.network(weights, x)).collect()
}

/// puts the norms behind the sums, as the first Transformer did
///
/// Both designs are in use, and both train. Weights of the one give nonsense in the other.
#[bug("model/post-norm", named_by = "model/nothing-added")]
impl LlamaLoops for PostNorm {
    wired!(|on, weights, x, attention| {
        let found = attention(&x);
        let x = all_normed(&sums(&x, &found), &weights.input_norm, on.eps);
        let network: Rows = x.iter().map(|x| Oracle.network(weights, x)).collect();
        all_normed(&sums(&x, &network), &weights.post_norm, on.eps)
    });
}

/// adds what attention finds to the normed tokens, not to the tokens
///
/// x = norm(x), then x = x + attention(x): one name for two things.
#[bug("model/residual-of-normed", named_by = "model/nothing-added")]
impl LlamaLoops for ResidualOfNormed {
    wired!(|on, weights, x, attention| {
        let x = all_normed(&x, &weights.input_norm, on.eps);
        let found = attention(&x);
        let x = sums(&x, &found);
        let network = networks(on, weights, &x);
        sums(&x, &network)
    });
}

/// adds the network's answer to the normed tokens
///
/// The first half was right, and the second was written a line shorter.
#[bug("model/second-residual-of-normed", named_by = "model/nothing-added")]
impl LlamaLoops for SecondResidualOfNormed {
    wired!(|on, weights, x, attention| {
        let found = attention(&all_normed(&x, &weights.input_norm, on.eps));
        let x = all_normed(&sums(&x, &found), &weights.post_norm, on.eps);
        let network: Rows = x.iter().map(|x| Oracle.network(weights, x)).collect();
        sums(&x, &network)
    });
}

/// leaves out what went into the network: its answer takes the tokens' place
///
/// The plus sign of the second half was forgotten. A network of two blocks learns all the same.
#[bug("model/no-residual", named_by = "model/nothing-added")]
impl LlamaLoops for NoResidual {
    wired!(|on, weights, x, attention| {
        let found = attention(&all_normed(&x, &weights.input_norm, on.eps));
        networks(on, weights, &sums(&x, &found))
    });
}

/// adds the network's answer to the block's input, so that what attention found is lost
///
/// The residual was kept in a variable at the block's beginning, and used twice.
#[bug("model/residual-from-start", named_by = "model/each-half-alone")]
impl LlamaLoops for ResidualFromStart {
    wired!(|on, weights, x, attention| {
        let found = attention(&all_normed(&x, &weights.input_norm, on.eps));
        let network = networks(on, weights, &sums(&x, &found));
        sums(&x, &network)
    });
}

/// lets both halves read the block's input, and adds both
///
/// GPT-J and PaLM are made so, to save time. Weights of Llama expect one after the other.
#[bug("model/parallel-halves", named_by = "model/block-f64-loops")]
impl LlamaLoops for ParallelHalves {
    wired!(|on, weights, x, attention| {
        let found = attention(&all_normed(&x, &weights.input_norm, on.eps));
        let network = networks(on, weights, &x);
        sums(&sums(&x, &found), &network)
    });
}

/// lets the network come before attention
///
/// Each half was right, and their order was taken from memory.
#[bug("model/network-first", named_by = "model/block-f64-loops")]
impl LlamaLoops for NetworkFirst {
    wired!(|on, weights, x, attention| {
        let network = networks(on, weights, &x);
        let x = sums(&x, &network);
        let found = attention(&all_normed(&x, &weights.input_norm, on.eps));
        sums(&x, &found)
    });
}

/// has one norm for both halves
///
/// One module was built and called twice. Freshly made, with gammas of 1, nobody can tell.
#[bug("model/one-norm", named_by = "model/gamma-folds")]
impl LlamaLoops for OneNorm {
    wired!(|on, weights, x, attention| {
        let found = attention(&all_normed(&x, &weights.input_norm, on.eps));
        let x = sums(&x, &found);
        let normed = all_normed(&x, &weights.input_norm, on.eps);
        let network: Rows = normed.iter().map(|x| Oracle.network(weights, x)).collect();
        sums(&x, &network)
    });
}

/// uses each half's norm for the other
///
/// input_layernorm and post_attention_layernorm: the second name sounds as if it stood behind attention's own result, and a
/// loader paired them wrongly.
#[bug("model/norms-exchanged", named_by = "model/gamma-folds")]
impl LlamaLoops for NormsExchanged {
    wired!(|on, weights, x, attention| {
        let found = attention(&all_normed(&x, &weights.post_norm, on.eps));
        let x = sums(&x, &found);
        let normed = all_normed(&x, &weights.input_norm, on.eps);
        let network: Rows = normed.iter().map(|x| Oracle.network(weights, x)).collect();
        sums(&x, &network)
    });
}

/// gives the tokens to the network as they are, without the second norm
///
/// The norm was built, counted among the weights, and never called.
#[bug("model/network-not-normed", named_by = "model/each-half-alone")]
impl LlamaLoops for NetworkNotNormed {
    wired!(|on, weights, x, attention| {
        let found = attention(&all_normed(&x, &weights.input_norm, on.eps));
        let x = sums(&x, &found);
        let network: Rows = x.iter().map(|x| Oracle.network(weights, x)).collect();
        sums(&x, &network)
    });
}

/// gives the tokens to attention as they are, without the first norm
///
/// In the first block the rows of a fresh table have about the size that a norm gives.
#[bug("model/attention-not-normed", named_by = "model/each-half-alone")]
impl LlamaLoops for AttentionNotNormed {
    wired!(|on, weights, x, attention| {
        let found = attention(&x);
        let x = sums(&x, &found);
        let network = networks(on, weights, &x);
        sums(&x, &network)
    });
}

/// turns the values by their positions, too
///
/// q, k and v came out of one projection, and the rotation was applied to all of it.
#[bug("model/values-turned", named_by = "model/equal-tokens")]
impl LlamaLoops for ValuesTurned {
    fn turned(&self, _: Role, head: &[f64], position: usize, base: f64) -> Vec<f64> {
        rotate(head, position, base)
    }
}

/// turns the queries only
///
/// A score then knows where the query stands, and not how far it is from the key.
#[bug("model/keys-not-turned", named_by = "model/block-f64-loops")]
impl LlamaLoops for KeysNotTurned {
    fn turned(&self, role: Role, head: &[f64], position: usize, base: f64) -> Vec<f64> {
        if role == Role::Query { rotate(head, position, base) } else { head.to_vec() }
    }
}

/// cuts a projection into heads across: each head takes every nh-th element
///
/// reshape(hd, nh) where reshape(nh, hd) was meant. Trained so from the start, it works.
#[bug("model/heads-across", named_by = "model/block-f64-loops")]
impl LlamaLoops for HeadsAcross {
    fn split(&self, projected: Vec<f64>, heads: usize) -> Vec<f64> {
        let hd = projected.len() / heads;
        let at = |i: usize| projected[i % hd * heads + i / hd];
        (0..projected.len()).map(at).collect()
    }
}

/// multiplies by the transposed output matrix of attention
///
/// It is square, so nothing complains. One library keeps [in, out], another [out, in].
#[bug("model/output-transposed", named_by = "model/block-f64-loops")]
impl LlamaLoops for OutputTransposed {
    fn merged(&self, o: &[f32], found: &[f64]) -> Vec<f64> {
        let h = found.len();
        let turned: Vec<f32> = (0..h * h).map(|i| o[i % h * h + i / h]).collect();
        product(&turned, found)
    }
}

/// lets each token see the one behind it
///
/// A mask that is one diagonal too far. The loss falls at once to almost nothing, which looks like success until the model has
/// to write.
#[bug("model/sees-the-next", named_by = "model/later-tokens-unseen")]
impl LlamaLoops for SeesTheNext {
    fn sees(&self, query: usize, key: usize, _: Place) -> bool {
        key <= query + 1
    }
}

/// computes attention outside of the tape: the weights before it get no gradient
///
/// The norm was given the tokens without their tape, and what attention made of them was added to those that had it. The
/// network and W_o learn, so the loss falls.
#[bug("model/attention-off-the-tape", named_by = "model/block-gradient")]
impl LlamaLoops for AttentionOffTheTape {
    fn block_reaches(&self, tensor: usize) -> bool {
        // The first norm, q, k and v.
        !(1..5).contains(&tensor)
    }
}

/// leaves out the norm behind the last block
///
/// The blocks begin with a norm each, so another one at the end seems to be one too many.
#[bug("model/no-last-norm", named_by = "model/last-norm")]
impl LlamaLoops for NoLastNorm {
    fn last_norm(&self, x: &[f64], _: &[f32], _: f64) -> Vec<f64> {
        x.to_vec()
    }
}

/// multiplies the table's rows by √h, as the first Transformer did
///
/// Gemma does so, and Llama does not. A loader of both did it for all.
#[bug("model/embedding-scaled", named_by = "model/forward-f64-loops")]
impl LlamaLoops for EmbeddingScaled {
    fn embedded(&self, row: Vec<f64>) -> Vec<f64> {
        let root = (row.len() as f64).sqrt();
        row.into_iter().map(|x| x * root).collect()
    }
}

/// passes through the first block again and again
///
/// In Python, [block] * n is a list of one block, n times.
#[bug("model/one-block", named_by = "model/idle-block")]
impl LlamaLoops for OneBlock {
    fn order(&self, blocks: usize) -> Vec<usize> {
        vec![0; blocks]
    }
}

/// leaves out the last block
///
/// A loop to n − 1. Of 32 blocks, one is not missed at once.
#[bug("model/last-block-left-out", named_by = "model/idle-block")]
impl LlamaLoops for LastBlockLeftOut {
    fn order(&self, blocks: usize) -> Vec<usize> {
        (0..blocks.saturating_sub(1).max(usize::from(blocks == 1))).collect()
    }
}

/// passes through the blocks from the last to the first
///
/// A stack was filled from the file, and emptied.
#[bug("model/blocks-reversed", named_by = "model/forward-f64-loops")]
impl LlamaLoops for BlocksReversed {
    fn order(&self, blocks: usize) -> Vec<usize> {
        (0..blocks).rev().collect()
    }
}

/// passes through the blocks in the order of their names as text: 10 comes before 2
///
/// The names of a file were sorted. Up to ten blocks it is right.
#[bug("model/blocks-by-name", named_by = "model/forward-f64-loops")]
impl LlamaLoops for BlocksByName {
    fn order(&self, blocks: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..blocks).collect();
        order.sort_by_key(usize::to_string);
        order
    }
}

/// takes the table for the output, although there is a matrix of its own
///
/// The first checkpoint had tied weights, and the loader was written for it.
#[bug("model/always-tied", named_by = "model/tied")]
impl LlamaLoops for AlwaysTied {
    fn output<'a>(&self, case: &'a ModelCase) -> &'a [f32] {
        &case.table
    }
}

/// takes ids modulo the vocabulary
///
/// A tokenizer with added tokens and a smaller table: to keep it from crashing, % v was written.
#[bug("model/ids-wrap", named_by = "model/unknown-id")]
impl LlamaLoops for IdsWrap {
    fn row(&self, id: usize, v: usize) -> Option<usize> {
        Some(id % v)
    }
}

/// counts positions from 0 in each call, although tokens are kept before it
///
/// The prompt comes in one call and is right. What is written then goes wrong slowly.
#[bug("model/positions-restart", named_by = "model/pieces")]
impl LlamaLoops for PositionsRestart {
    fn position(&self, _: Place, t: usize) -> usize {
        t
    }
}

/// takes the number of calls for the position of a call's first token
///
/// Token by token it is right. After a prompt of 100 tokens the next one stands at 1.
#[bug("model/position-is-the-call", named_by = "model/pieces")]
impl LlamaLoops for PositionIsTheCall {
    fn position(&self, place: Place, t: usize) -> usize {
        place.calls + t
    }
}

/// counts positions from 1 once there is a cache
///
/// The length of the cache was taken after the new keys were put into it.
#[bug("model/position-one-late", named_by = "model/pieces")]
impl LlamaLoops for PositionOneLate {
    fn position(&self, place: Place, t: usize) -> usize {
        place.offset + t + usize::from(place.offset > 0)
    }
}

/// begins each call with empty caches
///
/// The cache was a copy, and what the call put into it was thrown away with it.
#[bug("model/cache-forgets", named_by = "model/pieces")]
impl LlamaLoops for CacheForgets {
    fn piece(&self, case: &ModelCase, ids: &[usize], caches: &mut [Kept], place: Place) -> Rows {
        caches.fill(Kept::default());
        Oracle.piece(case, ids, caches, place)
    }
}

/// has one cache for all blocks
///
/// The block's number was not handed on. With one block it is right.
#[bug("model/one-cache", named_by = "model/pieces")]
impl LlamaLoops for OneCache {
    fn cache_of(&self, _: usize) -> usize {
        0
    }
}

/// lets the tokens of a later call see all of that call
///
/// With one token a call no mask is needed, so it was left out wherever a cache is used.
#[bug("model/piece-unmasked", named_by = "model/pieces")]
impl LlamaLoops for PieceUnmasked {
    fn sees(&self, query: usize, key: usize, place: Place) -> bool {
        place.calls > 0 || key <= query
    }
}

/// masks a later call as if nothing were kept: row t sees the keys up to t
///
/// A mask [s, s] against scores [s, p + s], where the first columns fit.
#[bug("model/mask-without-cache", named_by = "model/pieces", source = "candle-vllm issue 6")]
impl LlamaLoops for MaskWithoutCache {
    fn sees(&self, query: usize, key: usize, place: Place) -> bool {
        key <= query - place.offset
    }
}

/// sorts the logits from the smallest up, and cuts the wrong end
///
/// Sorting goes up unless told otherwise.
#[bug("model/smallest-first", named_by = "model/greedy")]
impl LlamaLoops for SmallestFirst {
    fn likelier(&self, a: (usize, f64), b: (usize, f64)) -> Ordering {
        Oracle.likelier(b, a)
    }
}

/// takes the last of equal logits
///
/// A search for the largest with ≥ instead of >. Rust's max_by does it, too.
#[bug("model/last-of-equals", named_by = "model/greedy")]
impl LlamaLoops for LastOfEquals {
    fn likelier(&self, a: (usize, f64), b: (usize, f64)) -> Ordering {
        b.1.total_cmp(&a.1).then(b.0.cmp(&a.0))
    }
}

/// multiplies the logits by the temperature
///
/// At 1 it is right. At 0.5 the text becomes wilder, and should become tamer.
#[bug("model/temperature-multiplies", named_by = "model/temperature-divides")]
impl LlamaLoops for TemperatureMultiplies {
    fn tempered(&self, logits: &[f64], temperature: f64) -> Vec<f64> {
        Oracle.tempered(logits, 1.0 / temperature)
    }
}

/// draws at temperature 1, whatever is asked
///
/// The setting was read, checked, and not handed on.
#[bug("model/temperature-ignored", named_by = "model/temperature-divides")]
impl LlamaLoops for TemperatureIgnored {
    fn tempered(&self, logits: &[f64], _: f64) -> Vec<f64> {
        Oracle.tempered(logits, 1.0)
    }
}

/// takes the exponential of logits in f32 as they are: a logit of 1000 is infinity there
///
/// Logits near 0 are all that a fresh model has.
#[bug("model/no-largest-subtracted", named_by = "model/often-as-probable")]
impl LlamaLoops for NoLargestSubtracted {
    fn tempered(&self, logits: &[f64], temperature: f64) -> Vec<f64> {
        // What an f32 makes of the exponential.
        logits.iter().map(|logit| f64::from((logit / temperature).exp() as f32).ln()).collect()
    }
}

/// keeps one token more than top_k
///
/// The place k counts from 0, and its token was kept with those before it.
#[bug("model/one-too-many", named_by = "model/cuts-keep-enough")]
impl LlamaLoops for OneTooMany {
    fn among(&self, top_k: usize, n: usize) -> usize {
        top_k.saturating_add(1).min(n)
    }
}

/// drops the token that crosses top_p
///
/// cumsum ≤ p keeps those that stay below. If the first alone is above, nothing is left, so it was kept by hand.
#[bug("model/nucleus-too-small", named_by = "model/cuts-keep-enough")]
impl LlamaLoops for NucleusTooSmall {
    fn nucleus(&self, p: &[f64], top_p: f64) -> usize {
        if top_p >= 1.0 { p.len() } else { (Oracle.nucleus(p, top_p) - 1).max(1) }
    }
}

/// keeps the tokens that are each more probable than 1 − top_p, where their sum is meant
///
/// A threshold for one token is min-p, another cut.
#[bug("model/each-below-p", named_by = "model/cuts-keep-enough")]
impl LlamaLoops for EachBelowP {
    fn nucleus(&self, p: &[f64], top_p: f64) -> usize {
        p.iter().filter(|p| **p >= 1.0 - top_p).count().max(1)
    }
}

/// keeps one token more where the probabilities add up to top_p exactly
///
/// The sum is compared with <= in place of <.
#[bug("model/one-more-at-equal", named_by = "model/cuts-keep-enough")]
impl LlamaLoops for OneMoreAtEqual {
    fn nucleus(&self, p: &[f64], top_p: f64) -> usize {
        let mut before = 0.0;
        let kept = p.iter().take_while(|p| {
            let kept = before <= top_p;
            before += *p;
            kept
        });
        kept.count()
    }
}

/// draws as if what was cut off were still there; what falls there becomes the last token that was kept
///
/// After the cut the probabilities no longer add up to 1, and the loop runs over the end.
#[bug("model/not-renormalized", named_by = "model/sample-f64-loops")]
impl LlamaLoops for NotRenormalized {
    fn drawn(&self, p: &[f64], unit: f64) -> usize {
        let mut left = unit;
        for (place, p) in p.iter().enumerate() {
            left -= p;
            if left < 0.0 {
                return place;
            }
        }
        p.len() - 1
    }
}

/// draws evenly among the tokens that were kept
///
/// choice(tokens) without their probabilities: the cut looks like all that a sampler does.
#[bug("model/evenly-among-kept", named_by = "model/often-as-probable")]
impl LlamaLoops for EvenlyAmongKept {
    fn drawn(&self, p: &[f64], unit: f64) -> usize {
        (unit * p.len() as f64) as usize
    }
}

/// draws a token once the running sum reaches the unit, where it must exceed it
///
/// A search from the left in place of one from the right. A unit of 0 could draw a token of probability 0.
#[bug("model/edge-to-the-token-before", named_by = "model/edge-of-a-token")]
impl LlamaLoops for EdgeToBefore {
    fn drawn(&self, p: &[f64], unit: f64) -> usize {
        let at = unit * p.iter().sum::<f64>();
        let mut sum = 0.0;
        let reaches = |p: &f64| {
            sum += p;
            sum >= at
        };
        p.iter().position(reaches).unwrap_or(p.len() - 1)
    }
}

/// sorts many equal logits in any order
///
/// An unstable sort, which is faster. With few tokens it happens to be stable.
#[bug("model/ties-mixed", named_by = "model/sample-f64-loops")]
impl LlamaLoops for TiesMixed {
    fn likelier(&self, a: (usize, f64), b: (usize, f64)) -> Ordering {
        let equal = a.1 == b.1 && a.0.min(b.0) >= 20;
        if equal { b.0.cmp(&a.0) } else { Oracle.likelier(a, b) }
    }
}

/// looks at top_k and top_p only where the temperature is above 0
///
/// The likeliest token needs neither, and is returned before they are checked.
#[bug("model/cold-settings-unread", named_by = "model/sample-refuses")]
impl LlamaLoops for ColdSettingsUnread {
    fn checked(&self, case: &SampleCase) -> Reply<()> {
        let cold = case.temperature == 0.0;
        let (top_k, top_p) = if cold { (None, 1.0) } else { (case.top_k, case.top_p) };
        Oracle.checked(&SampleCase { top_k, top_p, ..case.clone() })
    }
}

/// takes a temperature below 10⁻⁵ for 0
///
/// So that nothing is divided by nearly 0. Of two equal tokens the first is then always taken.
#[bug("model/nearly-cold", named_by = "model/often-as-probable")]
impl LlamaLoops for NearlyCold {
    fn sampled(&self, case: &SampleCase) -> usize {
        let cold = case.temperature < 1e-5;
        let temperature = if cold { 0.0 } else { case.temperature };
        Oracle.sampled(&SampleCase { temperature, ..case.clone() })
    }
}

/// takes a temperature below 10⁻⁶ for 10⁻⁶
///
/// So that nothing is divided by nearly 0. Logits that are as small as their temperature are all alike then.
#[bug("model/temperature-floored", named_by = "model/temperature-divides")]
impl LlamaLoops for TemperatureFloored {
    fn tempered(&self, logits: &[f64], temperature: f64) -> Vec<f64> {
        Oracle.tempered(logits, temperature.max(1e-6))
    }
}

/// computes in f32: a unit near an edge draws the neighbour
///
/// Logits are f32, so the rest was, too. Two machines that add up in another order then write different texts from one seed.
#[bug("model/sampled-in-f32", named_by = "model/sample-f64-loops")]
impl LlamaLoops for SampledInF32 {
    fn drawn(&self, p: &[f64], unit: f64) -> usize {
        let mut sum = 0.0f32;
        let sums: Vec<f32> = p
            .iter()
            .map(|p| {
                sum += *p as f32;
                sum
            })
            .collect();
        let at = unit as f32 * sum;
        sums.iter().position(|sum| *sum > at).unwrap_or(p.len() - 1)
    }
}

/// adds up to top_p in f32: one token more or fewer is kept
///
/// The cut was made before the draw, where nobody thought of digits.
#[bug("model/top-p-in-f32", named_by = "model/sample-f64-loops")]
impl LlamaLoops for TopPInF32 {
    fn nucleus(&self, p: &[f64], top_p: f64) -> usize {
        let mut before = 0.0f32;
        let kept = p.iter().take_while(|p| {
            let kept = before < top_p as f32;
            before += **p as f32;
            kept
        });
        kept.count()
    }
}

/// refuses logits whose first one is minus infinity
///
/// The largest logit was looked for from the first one on, and what was found first was checked. Minus infinity forbids an id,
/// and any id may be forbidden.
#[bug("model/forbidden-refused", named_by = "model/sample-f64-loops")]
impl LlamaLoops for ForbiddenRefused {
    fn checked(&self, case: &SampleCase) -> Reply<()> {
        if case.logits.first() == Some(&f32::NEG_INFINITY) {
            return Err(Refusal::new("a logit must be a number"));
        }
        Oracle.checked(case)
    }
}

/// takes pieces for which the caches have no room
///
/// The cache was made for the prompt, and grows with what is written, until the memory is full.
#[bug("model/full-cache-taken", named_by = "model/full-cache-refused")]
impl LlamaLoops for FullCacheTaken {
    fn fits(&self, _: usize, _: usize) -> bool {
        true
    }
}

/// draws from logits that are no numbers
///
/// A NaN is not larger than anything, so a search for the largest goes past it. The model has diverged, and writes on.
#[bug("model/nan-drawn", named_by = "model/sample-refuses")]
impl LlamaLoops for NanDrawn {
    fn checked(&self, case: &SampleCase) -> Reply<()> {
        let logits = case.logits.iter().map(|x| if x.is_nan() { 0.0 } else { *x }).collect();
        Oracle.checked(&SampleCase { logits, ..case.clone() })
    }
}

/// takes a top_k of 0 for all tokens
///
/// In many libraries 0 means that the cut is off. Here no cut is None, and keeping no token is a mistake.
#[bug("model/top-k-of-none", named_by = "model/sample-refuses")]
impl LlamaLoops for TopKOfNone {
    fn checked(&self, case: &SampleCase) -> Reply<()> {
        let top_k = case.top_k.filter(|k| *k > 0);
        Oracle.checked(&SampleCase { top_k, ..case.clone() })
    }

    fn among(&self, top_k: usize, n: usize) -> usize {
        if top_k == 0 { n } else { Oracle.among(top_k, n) }
    }
}

/// asks each place for its own token, not for the next
///
/// The ids are both input and target. A model that copies is perfect, and can't write.
#[bug("model/loss-not-shifted", named_by = "model/loss-is-of-the-next")]
impl LlamaLoops for LossNotShifted {
    fn targets(&self, ids: &[usize]) -> Vec<(usize, usize)> {
        ids[..ids.len() - 1].iter().copied().enumerate().collect()
    }
}

/// asks each place for the token after the next
///
/// The data were shifted, and the model shifts them again.
#[bug("model/loss-shifted-twice", named_by = "model/loss-is-of-the-next")]
impl LlamaLoops for LossShiftedTwice {
    fn targets(&self, ids: &[usize]) -> Vec<(usize, usize)> {
        // A text of two tokens has no such place; then it is the next.
        let by = if ids.len() > 2 { 2 } else { 1 };
        ids[by..].iter().copied().enumerate().collect()
    }
}

/// asks the last place only
///
/// The loss of a classifier, taken over from one. It learns, from one token of each text.
#[bug("model/last-place-only", named_by = "model/step-f64-loops")]
impl LlamaLoops for LastPlaceOnly {
    fn targets(&self, ids: &[usize]) -> Vec<(usize, usize)> {
        vec![(ids.len() - 2, ids[ids.len() - 1])]
    }
}

/// adds the losses of all places, where their mean is meant
///
/// The learning rate then depends on how much text a batch has.
#[bug("model/loss-summed", named_by = "model/loss-of-equal-logits")]
impl LlamaLoops for LossSummed {
    fn mean(&self, losses: &[f64], _: usize) -> f64 {
        losses.iter().sum()
    }
}

/// divides by the number of texts, not of tokens
///
/// The mean over the batch axis alone. With texts of two tokens it is right.
#[bug("model/loss-per-text", named_by = "model/loss-of-equal-logits")]
impl LlamaLoops for LossPerText {
    fn mean(&self, losses: &[f64], texts: usize) -> f64 {
        losses.iter().sum::<f64>() / texts as f64
    }
}

/// adds the gradient instead of subtracting it
///
/// The loss grows, and the learning rate is blamed.
#[bug("model/uphill", named_by = "model/step-lowers-loss")]
impl LlamaLoops for Uphill {
    fn stepped(&self, weight: f64, rate: f64, gradient: f64) -> f64 {
        weight + rate * gradient
    }
}

/// takes a step of the same length for each weight, by the gradient's sign
///
/// It is what Adam's first step does, and what no other one does.
#[bug("model/sign-only", named_by = "model/step-f64-loops")]
impl LlamaLoops for SignOnly {
    fn stepped(&self, weight: f64, rate: f64, gradient: f64) -> f64 {
        // Differences leave some 1e-9 where there is no gradient.
        if gradient.abs() < 1e-7 { weight } else { weight - rate * gradient.signum() }
    }
}

/// does not train the gammas
///
/// They were left out of the list of weights, because they shall have no decay.
#[bug("model/gammas-not-trained", named_by = "model/step-f64-loops")]
impl LlamaLoops for GammasNotTrained {
    fn is_trained(&self, case: &ModelCase, tensor: usize) -> bool {
        case.weights()[tensor].len() != case.sizes.h
    }
}

/// does not train the table
///
/// The lookup was made outside the tape: rows were copied, and nothing came back to them.
#[bug("model/table-not-trained", named_by = "model/gradient")]
impl LlamaLoops for TableNotTrained {
    fn reaches(&self, _: &ModelCase, tensor: usize) -> bool {
        tensor > 0
    }
}

/// tells the loss after the step, where that before it is meant
///
/// A curve drawn so looks a step better than the model that was asked.
#[bug("model/loss-after-step", named_by = "model/step-f64-loops")]
impl LlamaLoops for LossAfterStep {
    fn told(&self, _: f64, after: f64) -> f64 {
        after
    }
}
