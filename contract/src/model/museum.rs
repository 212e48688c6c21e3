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

/// puts the norms after the sums, as the first Transformer did
///
/// Both designs are in use and both train, but weights of the one give nonsense in the other.
#[bug("model/post-norm", named_by = "model/nothing-added")]
impl LlamaLoops for PostNorm {
    wired!(|on, weights, x, attention| {
        let found = attention(&x);
        let x = all_normed(&sums(&x, &found), &weights.input_norm, on.eps);
        let network: Rows = x.iter().map(|x| Oracle.network(weights, x)).collect();
        all_normed(&sums(&x, &network), &weights.post_norm, on.eps)
    });
}

/// adds attention's output to the normed tokens instead of the tokens
///
/// x = norm(x), then x = x + attention(x): one name is used for two things.
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

/// adds the network's output to the normed tokens
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

/// leaves out the network's input, so that its output replaces the tokens
///
/// The plus sign of the second half was forgotten. A network of two blocks learns all the same.
#[bug("model/no-residual", named_by = "model/nothing-added")]
impl LlamaLoops for NoResidual {
    wired!(|on, weights, x, attention| {
        let found = attention(&all_normed(&x, &weights.input_norm, on.eps));
        networks(on, weights, &sums(&x, &found))
    });
}

/// adds the network's output to the block's input, so that attention's output is lost
///
/// The residual was saved in a variable at the start of the block, and used twice.
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
/// GPT-J and PaLM do so to save time, but Llama's weights expect one after the other.
#[bug("model/parallel-halves", named_by = "model/block-f64-loops")]
impl LlamaLoops for ParallelHalves {
    wired!(|on, weights, x, attention| {
        let found = attention(&all_normed(&x, &weights.input_norm, on.eps));
        let network = networks(on, weights, &x);
        sums(&sums(&x, &found), &network)
    });
}

/// puts the network before attention
///
/// Each half was right, but their order was written from memory.
#[bug("model/network-first", named_by = "model/block-f64-loops")]
impl LlamaLoops for NetworkFirst {
    wired!(|on, weights, x, attention| {
        let network = networks(on, weights, &x);
        let x = sums(&x, &network);
        let found = attention(&all_normed(&x, &weights.input_norm, on.eps));
        sums(&x, &found)
    });
}

/// uses one norm for both halves
///
/// One module was built and called twice. While the gammas are a fresh 1, there is no difference.
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
/// Of input_layernorm and post_attention_layernorm, the second sounds as if it came after attention's own output, so a
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

/// gives the tokens to the network without the second norm
///
/// The norm was built and counted among the weights, but never called.
#[bug("model/network-not-normed", named_by = "model/each-half-alone")]
impl LlamaLoops for NetworkNotNormed {
    wired!(|on, weights, x, attention| {
        let found = attention(&all_normed(&x, &weights.input_norm, on.eps));
        let x = sums(&x, &found);
        let network: Rows = x.iter().map(|x| Oracle.network(weights, x)).collect();
        sums(&x, &network)
    });
}

/// gives the tokens to attention without the first norm
///
/// In the first block, rows of a fresh table are about the size that a norm produces.
#[bug("model/attention-not-normed", named_by = "model/each-half-alone")]
impl LlamaLoops for AttentionNotNormed {
    wired!(|on, weights, x, attention| {
        let found = attention(&x);
        let x = sums(&x, &found);
        let network = networks(on, weights, &x);
        sums(&x, &network)
    });
}

/// rotates the values by their positions, too
///
/// q, k and v came out of one projection, and the rotation was applied to all of it.
#[bug("model/values-turned", named_by = "model/equal-tokens")]
impl LlamaLoops for ValuesTurned {
    fn turned(&self, _: Role, head: &[f64], position: usize, base: f64) -> Vec<f64> {
        rotate(head, position, base)
    }
}

/// rotates only the queries
///
/// A score then knows where the query is, but not how far it is from the key.
#[bug("model/keys-not-turned", named_by = "model/block-f64-loops")]
impl LlamaLoops for KeysNotTurned {
    fn turned(&self, role: Role, head: &[f64], position: usize, base: f64) -> Vec<f64> {
        if role == Role::Query { rotate(head, position, base) } else { head.to_vec() }
    }
}

/// splits a projection into heads across: each head takes every nh-th element
///
/// reshape(hd, nh) was written for reshape(nh, hd). A model trained this way from the start works.
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
/// It is square, so nothing complains. One library stores [in, out], another [out, in].
#[bug("model/output-transposed", named_by = "model/block-f64-loops")]
impl LlamaLoops for OutputTransposed {
    fn merged(&self, o: &[f32], found: &[f64]) -> Vec<f64> {
        let h = found.len();
        let turned: Vec<f32> = (0..h * h).map(|i| o[i % h * h + i / h]).collect();
        product(&turned, found)
    }
}

/// lets each token see the one after it
///
/// The mask is one diagonal too far. The loss falls to almost nothing at once, which looks like success until the model has
/// to write.
#[bug("model/sees-the-next", named_by = "model/later-tokens-unseen")]
impl LlamaLoops for SeesTheNext {
    fn sees(&self, query: usize, key: usize, _: Place) -> bool {
        key <= query + 1
    }
}

/// computes attention outside the tape, so that the weights before it get no gradient
///
/// The norm received the tokens without their tape, and attention's output was added to those that had it. The network and
/// W_o learn, so the loss falls.
#[bug("model/attention-off-the-tape", named_by = "model/block-gradient")]
impl LlamaLoops for AttentionOffTheTape {
    fn block_reaches(&self, tensor: usize) -> bool {
        // The first norm, q, k and v.
        !(1..5).contains(&tensor)
    }
}

/// leaves out the norm after the last block
///
/// Each block starts with a norm, so another one at the end seems to be one too many.
#[bug("model/no-last-norm", named_by = "model/last-norm")]
impl LlamaLoops for NoLastNorm {
    fn last_norm(&self, x: &[f64], _: &[f32], _: f64) -> Vec<f64> {
        x.to_vec()
    }
}

/// multiplies the table's rows by √h, as the first Transformer did
///
/// Gemma does so, and Llama does not. A loader for both did it for all.
#[bug("model/embedding-scaled", named_by = "model/forward-f64-loops")]
impl LlamaLoops for EmbeddingScaled {
    fn embedded(&self, row: Vec<f64>) -> Vec<f64> {
        let root = (row.len() as f64).sqrt();
        row.into_iter().map(|x| x * root).collect()
    }
}

/// passes through the first block again and again
///
/// In Python, [block] * n is a list of the same block, n times.
#[bug("model/one-block", named_by = "model/idle-block")]
impl LlamaLoops for OneBlock {
    fn order(&self, blocks: usize) -> Vec<usize> {
        vec![0; blocks]
    }
}

/// leaves out the last block
///
/// The loop ends at n − 1, and out of 32 blocks one is not missed at once.
#[bug("model/last-block-left-out", named_by = "model/idle-block")]
impl LlamaLoops for LastBlockLeftOut {
    fn order(&self, blocks: usize) -> Vec<usize> {
        (0..blocks.saturating_sub(1).max(usize::from(blocks == 1))).collect()
    }
}

/// passes through the blocks from last to first
///
/// A stack was filled from the file, and then emptied.
#[bug("model/blocks-reversed", named_by = "model/forward-f64-loops")]
impl LlamaLoops for BlocksReversed {
    fn order(&self, blocks: usize) -> Vec<usize> {
        (0..blocks).rev().collect()
    }
}

/// passes through the blocks in the order of their names as text, where 10 comes before 2
///
/// The names in a file were sorted, which is right for up to ten blocks.
#[bug("model/blocks-by-name", named_by = "model/forward-f64-loops")]
impl LlamaLoops for BlocksByName {
    fn order(&self, blocks: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..blocks).collect();
        order.sort_by_key(usize::to_string);
        order
    }
}

/// uses the table for the output, although there is a separate matrix
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
/// A tokenizer had added tokens and the table was smaller, so % v was written against the crash.
#[bug("model/ids-wrap", named_by = "model/unknown-id")]
impl LlamaLoops for IdsWrap {
    fn row(&self, id: usize, v: usize) -> Option<usize> {
        Some(id % v)
    }
}

/// counts positions from 0 in each call, although there are cached tokens
///
/// The prompt comes in one call and is right, but what is written afterwards slowly goes wrong.
#[bug("model/positions-restart", named_by = "model/pieces")]
impl LlamaLoops for PositionsRestart {
    fn position(&self, _: Place, t: usize) -> usize {
        t
    }
}

/// uses the number of calls as the position of a call's first token
///
/// Token by token it is right, but after a prompt of 100 tokens the next one is at 1.
#[bug("model/position-is-the-call", named_by = "model/pieces")]
impl LlamaLoops for PositionIsTheCall {
    fn position(&self, place: Place, t: usize) -> usize {
        place.calls + t
    }
}

/// counts positions from 1 once there is a cache
///
/// The length of the cache was read after the new keys were added.
#[bug("model/position-one-late", named_by = "model/pieces")]
impl LlamaLoops for PositionOneLate {
    fn position(&self, place: Place, t: usize) -> usize {
        place.offset + t + usize::from(place.offset > 0)
    }
}

/// starts each call with empty caches
///
/// The cache was a copy, and everything the call put into it was thrown away with it.
#[bug("model/cache-forgets", named_by = "model/pieces")]
impl LlamaLoops for CacheForgets {
    fn piece(&self, case: &ModelCase, ids: &[usize], caches: &mut [Kept], place: Place) -> Rows {
        caches.fill(Kept::default());
        Oracle.piece(case, ids, caches, place)
    }
}

/// uses one cache for all blocks
///
/// The block's number was not passed on, which is right for one block.
#[bug("model/one-cache", named_by = "model/pieces")]
impl LlamaLoops for OneCache {
    fn cache_of(&self, _: usize) -> usize {
        0
    }
}

/// lets the tokens of a later call see all of that call
///
/// With one token per call no mask is needed, so it was left out wherever a cache is used.
#[bug("model/piece-unmasked", named_by = "model/pieces")]
impl LlamaLoops for PieceUnmasked {
    fn sees(&self, query: usize, key: usize, place: Place) -> bool {
        place.calls > 0 || key <= query
    }
}

/// masks a later call as if the cache were empty, so that row t sees the keys up to t
///
/// A mask [s, s] meets scores [s, p + s], whose first columns fit.
#[bug("model/mask-without-cache", named_by = "model/pieces", source = "candle-vllm issue 6")]
impl LlamaLoops for MaskWithoutCache {
    fn sees(&self, query: usize, key: usize, place: Place) -> bool {
        key <= query - place.offset
    }
}

/// sorts the logits in ascending order, and cuts the wrong end
///
/// Sorting ascends by default.
#[bug("model/smallest-first", named_by = "model/greedy")]
impl LlamaLoops for SmallestFirst {
    fn likelier(&self, a: (usize, f64), b: (usize, f64)) -> Ordering {
        Oracle.likelier(b, a)
    }
}

/// returns the last of equal logits
///
/// The search for the largest has ≥ instead of >, as has Rust's max_by.
#[bug("model/last-of-equals", named_by = "model/greedy")]
impl LlamaLoops for LastOfEquals {
    fn likelier(&self, a: (usize, f64), b: (usize, f64)) -> Ordering {
        b.1.total_cmp(&a.1).then(b.0.cmp(&a.0))
    }
}

/// multiplies the logits by the temperature
///
/// At 1 it is right. At 0.5 the text becomes wilder instead of tamer.
#[bug("model/temperature-multiplies", named_by = "model/temperature-divides")]
impl LlamaLoops for TemperatureMultiplies {
    fn tempered(&self, logits: &[f64], temperature: f64) -> Vec<f64> {
        Oracle.tempered(logits, 1.0 / temperature)
    }
}

/// draws at temperature 1, whatever is asked
///
/// The setting was read and checked, but not passed on.
#[bug("model/temperature-ignored", named_by = "model/temperature-divides")]
impl LlamaLoops for TemperatureIgnored {
    fn tempered(&self, logits: &[f64], _: f64) -> Vec<f64> {
        Oracle.tempered(logits, 1.0)
    }
}

/// exponentiates raw logits in f32, where a logit of 1000 gives infinity
///
/// A fresh model has only logits near 0.
#[bug("model/no-largest-subtracted", named_by = "model/often-as-probable")]
impl LlamaLoops for NoLargestSubtracted {
    fn tempered(&self, logits: &[f64], temperature: f64) -> Vec<f64> {
        // What an f32 makes of the exponential.
        logits.iter().map(|logit| f64::from((logit / temperature).exp() as f32).ln()).collect()
    }
}

/// keeps one token more than top_k
///
/// The place k counts from 0, and its token was kept along with those before it.
#[bug("model/one-too-many", named_by = "model/cuts-keep-enough")]
impl LlamaLoops for OneTooMany {
    fn among(&self, top_k: usize, n: usize) -> usize {
        top_k.saturating_add(1).min(n)
    }
}

/// drops the token that crosses top_p
///
/// cumsum ≤ p keeps those that stay below. If the first alone is above, nothing remains, so a special case keeps it.
#[bug("model/nucleus-too-small", named_by = "model/cuts-keep-enough")]
impl LlamaLoops for NucleusTooSmall {
    fn nucleus(&self, p: &[f64], top_p: f64) -> usize {
        if top_p >= 1.0 { p.len() } else { (Oracle.nucleus(p, top_p) - 1).max(1) }
    }
}

/// keeps the tokens that are each more probable than 1 − top_p, instead of summing them
///
/// A threshold per token is min-p, a different cut.
#[bug("model/each-below-p", named_by = "model/cuts-keep-enough")]
impl LlamaLoops for EachBelowP {
    fn nucleus(&self, p: &[f64], top_p: f64) -> usize {
        p.iter().filter(|p| **p >= 1.0 - top_p).count().max(1)
    }
}

/// keeps one more token where the probabilities add up to exactly top_p
///
/// The sum is compared with <= instead of <.
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

/// draws as if nothing had been cut off, and gives that share to the last kept token
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

/// draws uniformly among the kept tokens
///
/// choice(tokens) lacks their probabilities, as if the cut were all that a sampler does.
#[bug("model/evenly-among-kept", named_by = "model/often-as-probable")]
impl LlamaLoops for EvenlyAmongKept {
    fn drawn(&self, p: &[f64], unit: f64) -> usize {
        (unit * p.len() as f64) as usize
    }
}

/// draws a token once the running sum reaches the unit, although it must exceed it
///
/// It searches from the left instead of the right, so a unit of 0 could draw a token of probability 0.
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
/// An unstable sort is faster, and with few tokens it happens to be stable.
#[bug("model/ties-mixed", named_by = "model/sample-f64-loops")]
impl LlamaLoops for TiesMixed {
    fn likelier(&self, a: (usize, f64), b: (usize, f64)) -> Ordering {
        let equal = a.1 == b.1 && a.0.min(b.0) >= 20;
        if equal { b.0.cmp(&a.0) } else { Oracle.likelier(a, b) }
    }
}

/// checks top_k and top_p only where the temperature is above 0
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

/// treats a temperature below 10⁻⁵ as 0
///
/// This avoids dividing by nearly 0, but of two equal tokens the first is then always chosen.
#[bug("model/nearly-cold", named_by = "model/often-as-probable")]
impl LlamaLoops for NearlyCold {
    fn sampled(&self, case: &SampleCase) -> usize {
        let cold = case.temperature < 1e-5;
        let temperature = if cold { 0.0 } else { case.temperature };
        Oracle.sampled(&SampleCase { temperature, ..case.clone() })
    }
}

/// raises a temperature below 10⁻⁶ to 10⁻⁶
///
/// This avoids dividing by nearly 0, but makes logits as small as their temperature all nearly equal.
#[bug("model/temperature-floored", named_by = "model/temperature-divides")]
impl LlamaLoops for TemperatureFloored {
    fn tempered(&self, logits: &[f64], temperature: f64) -> Vec<f64> {
        Oracle.tempered(logits, temperature.max(1e-6))
    }
}

/// computes in f32, so that a unit near an edge draws the neighbour
///
/// Logits are f32, so the rest was, too. Two machines that add in another order then write different texts from the same
/// seed.
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

/// adds up to top_p in f32, and keeps one token more or fewer
///
/// The cut comes before the draw, where precision did not seem to matter.
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

/// rejects logits whose first one is minus infinity
///
/// The search for the largest logit started with the first one, which was then checked. Minus infinity forbids an id, and
/// any id may be forbidden.
#[bug("model/forbidden-refused", named_by = "model/sample-f64-loops")]
impl LlamaLoops for ForbiddenRefused {
    fn checked(&self, case: &SampleCase) -> Reply<()> {
        if case.logits.first() == Some(&f32::NEG_INFINITY) {
            return Err(Refusal::new("a logit must be a number"));
        }
        Oracle.checked(case)
    }
}

/// accepts pieces for which the caches have no room
///
/// The cache was sized for the prompt, and grows with what is written until the memory is full.
#[bug("model/full-cache-taken", named_by = "model/full-cache-refused")]
impl LlamaLoops for FullCacheTaken {
    fn fits(&self, _: usize, _: usize) -> bool {
        true
    }
}

/// draws from logits that contain NaN
///
/// A NaN is not larger than anything, so a search for the largest skips it. The model has diverged, and keeps writing.
#[bug("model/nan-drawn", named_by = "model/sample-refuses")]
impl LlamaLoops for NanDrawn {
    fn checked(&self, case: &SampleCase) -> Reply<()> {
        let logits = case.logits.iter().map(|x| if x.is_nan() { 0.0 } else { *x }).collect();
        Oracle.checked(&SampleCase { logits, ..case.clone() })
    }
}

/// treats a top_k of 0 as all tokens
///
/// In many libraries 0 turns the cut off. Here None does so, and keeping no token is an error.
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

/// asks each place for its own token instead of the next
///
/// The ids are both input and target. A model that copies is perfect, but can't write.
#[bug("model/loss-not-shifted", named_by = "model/loss-is-of-the-next")]
impl LlamaLoops for LossNotShifted {
    fn targets(&self, ids: &[usize]) -> Vec<(usize, usize)> {
        ids[..ids.len() - 1].iter().copied().enumerate().collect()
    }
}

/// asks each place for the token after the next
///
/// The data were already shifted, and the model shifts them again.
#[bug("model/loss-shifted-twice", named_by = "model/loss-is-of-the-next")]
impl LlamaLoops for LossShiftedTwice {
    fn targets(&self, ids: &[usize]) -> Vec<(usize, usize)> {
        // A text of two tokens has no such place; then it is the next.
        let by = if ids.len() > 2 { 2 } else { 1 };
        ids[by..].iter().copied().enumerate().collect()
    }
}

/// asks only the last place
///
/// The loss was copied from a classifier. The model learns, but from one token of each text.
#[bug("model/last-place-only", named_by = "model/step-f64-loops")]
impl LlamaLoops for LastPlaceOnly {
    fn targets(&self, ids: &[usize]) -> Vec<(usize, usize)> {
        vec![(ids.len() - 2, ids[ids.len() - 1])]
    }
}

/// adds up the losses of all places instead of averaging them
///
/// The effective learning rate then depends on how much text a batch has.
#[bug("model/loss-summed", named_by = "model/loss-of-equal-logits")]
impl LlamaLoops for LossSummed {
    fn mean(&self, losses: &[f64], _: usize) -> f64 {
        losses.iter().sum()
    }
}

/// divides by the number of texts instead of tokens
///
/// The mean is over the batch axis alone, which is right for texts of two tokens.
#[bug("model/loss-per-text", named_by = "model/loss-of-equal-logits")]
impl LlamaLoops for LossPerText {
    fn mean(&self, losses: &[f64], texts: usize) -> f64 {
        losses.iter().sum::<f64>() / texts as f64
    }
}

/// adds the gradient instead of subtracting it
///
/// The loss grows, and the learning rate gets the blame.
#[bug("model/uphill", named_by = "model/step-lowers-loss")]
impl LlamaLoops for Uphill {
    fn stepped(&self, weight: f64, rate: f64, gradient: f64) -> f64 {
        weight + rate * gradient
    }
}

/// takes a step of the same length for each weight, following the gradient's sign
///
/// Adam's first step does so, but no other one.
#[bug("model/sign-only", named_by = "model/step-f64-loops")]
impl LlamaLoops for SignOnly {
    fn stepped(&self, weight: f64, rate: f64, gradient: f64) -> f64 {
        // Differences leave some 1e-9 where there is no gradient.
        if gradient.abs() < 1e-7 { weight } else { weight - rate * gradient.signum() }
    }
}

/// does not train the gammas
///
/// They were left out of the list of weights because they should not decay.
#[bug("model/gammas-not-trained", named_by = "model/step-f64-loops")]
impl LlamaLoops for GammasNotTrained {
    fn is_trained(&self, case: &ModelCase, tensor: usize) -> bool {
        case.weights()[tensor].len() != case.sizes.h
    }
}

/// does not train the table
///
/// The lookup was outside the tape: rows were copied, and no gradient came back to them.
#[bug("model/table-not-trained", named_by = "model/gradient")]
impl LlamaLoops for TableNotTrained {
    fn reaches(&self, _: &ModelCase, tensor: usize) -> bool {
        tensor > 0
    }
}

/// reports the loss after the step instead of the one before it
///
/// A curve plotted this way looks a step better than the model was.
#[bug("model/loss-after-step", named_by = "model/step-f64-loops")]
impl LlamaLoops for LossAfterStep {
    fn told(&self, _: f64, after: f64) -> f64 {
        after
    }
}
