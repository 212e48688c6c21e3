//! Bugs of the model.

use crate::component::Bug;
use crate::model::interface::*;
use crate::model::oracle::*;
use crate::oracle::Oracle;
use std::cmp::Ordering;

/// A bug: its name, and the steps that it writes wrong.
macro_rules! bug {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl LlamaLoops for $name { $($steps)* }
        || -> Box<dyn Llama> { implementation($name) }
    }};
}

/// A block whose halves are put together in another way. `$attention` gives what is found for normed tokens.
macro_rules! wired {
    ($name:ident, |$on:ident, $weights:ident, $x:ident, $attention:ident| $body:expr) => {
        bug!($name {
            fn block(&self, $on: &Settings, $weights: &BlockWeights, $x: Rows, kept: &mut Kept, place: Place) -> Rows {
                let mut $attention = |normed: &[Vec<f64>]| Oracle.attention($on, $weights, normed, kept, place);
                $body
            }
        })
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

/// All of them.
pub static BUGS: &[Bug<dyn Llama>] = &[
    Bug {
        id: "model/post-norm",
        misconception: "puts the norms behind the sums, as the first Transformer did",
        story: "Both designs are in use, and both train. Weights of the one give nonsense in the other.",
        source: None,
        named_by: "model/nothing-added",
        implementation: wired!(PostNorm, |on, weights, x, attention| {
            let found = attention(&x);
            let x = all_normed(&sums(&x, &found), &weights.input_norm, on.eps);
            let network: Rows = x.iter().map(|x| Oracle.network(weights, x)).collect();
            all_normed(&sums(&x, &network), &weights.post_norm, on.eps)
        }),
    },
    Bug {
        id: "model/residual-of-normed",
        misconception: "adds what attention finds to the normed tokens, not to the tokens",
        story: "x = norm(x), then x = x + attention(x): one name for two things.",
        source: None,
        named_by: "model/nothing-added",
        implementation: wired!(ResidualOfNormed, |on, weights, x, attention| {
            let x = all_normed(&x, &weights.input_norm, on.eps);
            let found = attention(&x);
            let x = sums(&x, &found);
            let network = networks(on, weights, &x);
            sums(&x, &network)
        }),
    },
    Bug {
        id: "model/second-residual-of-normed",
        misconception: "adds the network's answer to the normed tokens",
        story: "The first half was right, and the second was written a line shorter.",
        source: None,
        named_by: "model/nothing-added",
        implementation: wired!(SecondResidualOfNormed, |on, weights, x, attention| {
            let found = attention(&all_normed(&x, &weights.input_norm, on.eps));
            let x = all_normed(&sums(&x, &found), &weights.post_norm, on.eps);
            let network: Rows = x.iter().map(|x| Oracle.network(weights, x)).collect();
            sums(&x, &network)
        }),
    },
    Bug {
        id: "model/no-residual",
        misconception: "leaves out what went into the network: its answer takes the tokens' place",
        story: "The plus sign of the second half was forgotten. A network of two blocks learns all the same.",
        source: None,
        named_by: "model/nothing-added",
        implementation: wired!(NoResidual, |on, weights, x, attention| {
            let found = attention(&all_normed(&x, &weights.input_norm, on.eps));
            networks(on, weights, &sums(&x, &found))
        }),
    },
    Bug {
        id: "model/residual-from-start",
        misconception: "adds the network's answer to the block's input, so that what attention found is lost",
        story: "The residual was kept in a variable at the block's beginning, and used twice.",
        source: None,
        named_by: "model/each-half-alone",
        implementation: wired!(ResidualFromStart, |on, weights, x, attention| {
            let found = attention(&all_normed(&x, &weights.input_norm, on.eps));
            let network = networks(on, weights, &sums(&x, &found));
            sums(&x, &network)
        }),
    },
    Bug {
        id: "model/parallel-halves",
        misconception: "lets both halves read the block's input, and adds both",
        story: "GPT-J and PaLM are made so, to save time. Weights of Llama expect one after the other.",
        source: None,
        named_by: "model/block-f64-loops",
        implementation: wired!(ParallelHalves, |on, weights, x, attention| {
            let found = attention(&all_normed(&x, &weights.input_norm, on.eps));
            let network = networks(on, weights, &x);
            sums(&sums(&x, &found), &network)
        }),
    },
    Bug {
        id: "model/network-first",
        misconception: "lets the network come before attention",
        story: "Each half was right, and their order was taken from memory.",
        source: None,
        named_by: "model/block-f64-loops",
        implementation: wired!(NetworkFirst, |on, weights, x, attention| {
            let network = networks(on, weights, &x);
            let x = sums(&x, &network);
            let found = attention(&all_normed(&x, &weights.input_norm, on.eps));
            sums(&x, &found)
        }),
    },
    Bug {
        id: "model/one-norm",
        misconception: "has one norm for both halves",
        story: "One module was built and called twice. Freshly made, with gammas of 1, nobody can tell.",
        source: None,
        named_by: "model/gamma-folds",
        implementation: wired!(OneNorm, |on, weights, x, attention| {
            let found = attention(&all_normed(&x, &weights.input_norm, on.eps));
            let x = sums(&x, &found);
            let normed = all_normed(&x, &weights.input_norm, on.eps);
            let network: Rows = normed.iter().map(|x| Oracle.network(weights, x)).collect();
            sums(&x, &network)
        }),
    },
    Bug {
        id: "model/norms-exchanged",
        misconception: "uses each half's norm for the other",
        story: "input_layernorm and post_attention_layernorm: the second name sounds as if it stood behind \
                attention's own result, and a loader paired them wrongly.",
        source: None,
        named_by: "model/gamma-folds",
        implementation: wired!(NormsExchanged, |on, weights, x, attention| {
            let found = attention(&all_normed(&x, &weights.post_norm, on.eps));
            let x = sums(&x, &found);
            let normed = all_normed(&x, &weights.input_norm, on.eps);
            let network: Rows = normed.iter().map(|x| Oracle.network(weights, x)).collect();
            sums(&x, &network)
        }),
    },
    Bug {
        id: "model/network-not-normed",
        misconception: "gives the tokens to the network as they are, without the second norm",
        story: "The norm was built, counted among the weights, and never called.",
        source: None,
        named_by: "model/each-half-alone",
        implementation: wired!(NetworkNotNormed, |on, weights, x, attention| {
            let found = attention(&all_normed(&x, &weights.input_norm, on.eps));
            let x = sums(&x, &found);
            let network: Rows = x.iter().map(|x| Oracle.network(weights, x)).collect();
            sums(&x, &network)
        }),
    },
    Bug {
        id: "model/attention-not-normed",
        misconception: "gives the tokens to attention as they are, without the first norm",
        story: "In the first block the rows of a fresh table have about the size that a norm gives.",
        source: None,
        named_by: "model/each-half-alone",
        implementation: wired!(AttentionNotNormed, |on, weights, x, attention| {
            let found = attention(&x);
            let x = sums(&x, &found);
            let network = networks(on, weights, &x);
            sums(&x, &network)
        }),
    },
    Bug {
        id: "model/values-turned",
        misconception: "turns the values by their positions, too",
        story: "q, k and v came out of one projection, and the rotation was applied to all of it.",
        source: None,
        named_by: "model/equal-tokens",
        implementation: bug!(ValuesTurned {
            fn turned(&self, _: Role, head: &[f64], position: usize, base: f64) -> Vec<f64> {
                rotate(head, position, base)
            }
        }),
    },
    Bug {
        id: "model/keys-not-turned",
        misconception: "turns the queries only",
        story: "A score then knows where the query stands, and not how far it is from the key.",
        source: None,
        named_by: "model/block-f64-loops",
        implementation: bug!(KeysNotTurned {
            fn turned(&self, role: Role, head: &[f64], position: usize, base: f64) -> Vec<f64> {
                if role == Role::Query { rotate(head, position, base) } else { head.to_vec() }
            }
        }),
    },
    Bug {
        id: "model/heads-across",
        misconception: "cuts a projection into heads across: each head takes every nh-th element",
        story: "reshape(hd, nh) where reshape(nh, hd) was meant. Trained so from the start, it works.",
        source: None,
        named_by: "model/block-f64-loops",
        implementation: bug!(HeadsAcross {
            fn split(&self, projected: Vec<f64>, heads: usize) -> Vec<f64> {
                let hd = projected.len() / heads;
                let at = |i: usize| projected[i % hd * heads + i / hd];
                (0..projected.len()).map(at).collect()
            }
        }),
    },
    Bug {
        id: "model/output-transposed",
        misconception: "multiplies by the transposed output matrix of attention",
        story: "It is square, so nothing complains. One library keeps [in, out], another [out, in].",
        source: None,
        named_by: "model/block-f64-loops",
        implementation: bug!(OutputTransposed {
            fn merged(&self, o: &[f32], found: &[f64]) -> Vec<f64> {
                let h = found.len();
                let turned: Vec<f32> = (0..h * h).map(|i| o[i % h * h + i / h]).collect();
                product(&turned, found)
            }
        }),
    },
    Bug {
        id: "model/sees-the-next",
        misconception: "lets each token see the one behind it",
        story: "A mask that is one diagonal too far. The loss falls at once to almost nothing, which looks like \
                success until the model has to write.",
        source: None,
        named_by: "model/later-tokens-unseen",
        implementation: bug!(SeesTheNext {
            fn sees(&self, query: usize, key: usize, _: Place) -> bool {
                key <= query + 1
            }
        }),
    },
    Bug {
        id: "model/attention-off-the-tape",
        misconception: "computes attention outside of the tape: the weights before it get no gradient",
        story: "The norm was given the tokens without their tape, and what attention made of them was added to those that had \
                it. The network and W_o learn, so the loss falls.",
        source: None,
        named_by: "model/block-gradient",
        implementation: bug!(AttentionOffTheTape {
            fn block_reaches(&self, tensor: usize) -> bool {
                // The first norm, q, k and v.
                !(1..5).contains(&tensor)
            }
        }),
    },
    Bug {
        id: "model/no-last-norm",
        misconception: "leaves out the norm behind the last block",
        story: "The blocks begin with a norm each, so another one at the end seems to be one too many.",
        source: None,
        named_by: "model/last-norm",
        implementation: bug!(NoLastNorm {
            fn last_norm(&self, x: &[f64], _: &[f32], _: f64) -> Vec<f64> {
                x.to_vec()
            }
        }),
    },
    Bug {
        id: "model/embedding-scaled",
        misconception: "multiplies the table's rows by √h, as the first Transformer did",
        story: "Gemma does so, and Llama does not. A loader of both did it for all.",
        source: None,
        named_by: "model/forward-f64-loops",
        implementation: bug!(EmbeddingScaled {
            fn embedded(&self, row: Vec<f64>) -> Vec<f64> {
                let root = (row.len() as f64).sqrt();
                row.into_iter().map(|x| x * root).collect()
            }
        }),
    },
    Bug {
        id: "model/one-block",
        misconception: "passes through the first block again and again",
        story: "In Python, [block] * n is a list of one block, n times.",
        source: None,
        named_by: "model/idle-block",
        implementation: bug!(OneBlock {
            fn order(&self, blocks: usize) -> Vec<usize> {
                vec![0; blocks]
            }
        }),
    },
    Bug {
        id: "model/last-block-left-out",
        misconception: "leaves out the last block",
        story: "A loop to n − 1. Of 32 blocks, one is not missed at once.",
        source: None,
        named_by: "model/idle-block",
        implementation: bug!(LastBlockLeftOut {
            fn order(&self, blocks: usize) -> Vec<usize> {
                (0..blocks.saturating_sub(1).max(usize::from(blocks == 1))).collect()
            }
        }),
    },
    Bug {
        id: "model/blocks-reversed",
        misconception: "passes through the blocks from the last to the first",
        story: "A stack was filled from the file, and emptied.",
        source: None,
        named_by: "model/forward-f64-loops",
        implementation: bug!(BlocksReversed {
            fn order(&self, blocks: usize) -> Vec<usize> {
                (0..blocks).rev().collect()
            }
        }),
    },
    Bug {
        id: "model/blocks-by-name",
        misconception: "passes through the blocks in the order of their names as text: 10 comes before 2",
        story: "The names of a file were sorted. Up to ten blocks it is right.",
        source: None,
        named_by: "model/forward-f64-loops",
        implementation: bug!(BlocksByName {
            fn order(&self, blocks: usize) -> Vec<usize> {
                let mut order: Vec<usize> = (0..blocks).collect();
                order.sort_by_key(usize::to_string);
                order
            }
        }),
    },
    Bug {
        id: "model/always-tied",
        misconception: "takes the table for the output, although there is a matrix of its own",
        story: "The first checkpoint had tied weights, and the loader was written for it.",
        source: None,
        named_by: "model/tied",
        implementation: bug!(AlwaysTied {
            fn output<'a>(&self, case: &'a ModelCase) -> &'a [f32] {
                &case.table
            }
        }),
    },
    Bug {
        id: "model/ids-wrap",
        misconception: "takes ids modulo the vocabulary",
        story: "A tokenizer with added tokens and a smaller table: to keep it from crashing, % v was written.",
        source: None,
        named_by: "model/unknown-id",
        implementation: bug!(IdsWrap {
            fn row(&self, id: usize, v: usize) -> Option<usize> {
                Some(id % v)
            }
        }),
    },
    Bug {
        id: "model/positions-restart",
        misconception: "counts positions from 0 in each call, although tokens are kept before it",
        story: "The prompt comes in one call and is right. What is written then goes wrong slowly.",
        source: None,
        named_by: "model/pieces",
        implementation: bug!(PositionsRestart {
            fn position(&self, _: Place, t: usize) -> usize {
                t
            }
        }),
    },
    Bug {
        id: "model/position-is-the-call",
        misconception: "takes the number of calls for the position of a call's first token",
        story: "Token by token it is right. After a prompt of 100 tokens the next one stands at 1.",
        source: None,
        named_by: "model/pieces",
        implementation: bug!(PositionIsTheCall {
            fn position(&self, place: Place, t: usize) -> usize {
                place.calls + t
            }
        }),
    },
    Bug {
        id: "model/position-one-late",
        misconception: "counts positions from 1 once there is a cache",
        story: "The length of the cache was taken after the new keys were put into it.",
        source: None,
        named_by: "model/pieces",
        implementation: bug!(PositionOneLate {
            fn position(&self, place: Place, t: usize) -> usize {
                place.offset + t + usize::from(place.offset > 0)
            }
        }),
    },
    Bug {
        id: "model/cache-forgets",
        misconception: "begins each call with empty caches",
        story: "The cache was a copy, and what the call put into it was thrown away with it.",
        source: None,
        named_by: "model/pieces",
        implementation: bug!(CacheForgets {
            fn piece(&self, case: &ModelCase, ids: &[usize], caches: &mut [Kept], place: Place) -> Rows {
                caches.fill(Kept::default());
                Oracle.piece(case, ids, caches, place)
            }
        }),
    },
    Bug {
        id: "model/one-cache",
        misconception: "has one cache for all blocks",
        story: "The block's number was not handed on. With one block it is right.",
        source: None,
        named_by: "model/pieces",
        implementation: bug!(OneCache {
            fn cache_of(&self, _: usize) -> usize {
                0
            }
        }),
    },
    Bug {
        id: "model/piece-unmasked",
        misconception: "lets the tokens of a later call see all of that call",
        story: "With one token a call no mask is needed, so it was left out wherever a cache is used.",
        source: None,
        named_by: "model/pieces",
        implementation: bug!(PieceUnmasked {
            fn sees(&self, query: usize, key: usize, place: Place) -> bool {
                place.calls > 0 || key <= query
            }
        }),
    },
    Bug {
        id: "model/mask-without-cache",
        misconception: "masks a later call as if nothing were kept: row t sees the keys up to t",
        story: "A mask [s, s] against scores [s, p + s], where the first columns fit.",
        source: Some("candle-vllm issue 6"),
        named_by: "model/pieces",
        implementation: bug!(MaskWithoutCache {
            fn sees(&self, query: usize, key: usize, place: Place) -> bool {
                key <= query - place.offset
            }
        }),
    },
    Bug {
        id: "model/smallest-first",
        misconception: "sorts the logits from the smallest up, and cuts the wrong end",
        story: "Sorting goes up unless told otherwise.",
        source: None,
        named_by: "model/greedy",
        implementation: bug!(SmallestFirst {
            fn likelier(&self, a: (usize, f64), b: (usize, f64)) -> Ordering {
                Oracle.likelier(b, a)
            }
        }),
    },
    Bug {
        id: "model/last-of-equals",
        misconception: "takes the last of equal logits",
        story: "A search for the largest with ≥ instead of >. Rust's max_by does it, too.",
        source: None,
        named_by: "model/greedy",
        implementation: bug!(LastOfEquals {
            fn likelier(&self, a: (usize, f64), b: (usize, f64)) -> Ordering {
                b.1.total_cmp(&a.1).then(b.0.cmp(&a.0))
            }
        }),
    },
    Bug {
        id: "model/temperature-multiplies",
        misconception: "multiplies the logits by the temperature",
        story: "At 1 it is right. At 0.5 the text becomes wilder, and should become tamer.",
        source: None,
        named_by: "model/temperature-divides",
        implementation: bug!(TemperatureMultiplies {
            fn tempered(&self, logits: &[f64], temperature: f64) -> Vec<f64> {
                Oracle.tempered(logits, 1.0 / temperature)
            }
        }),
    },
    Bug {
        id: "model/temperature-ignored",
        misconception: "draws at temperature 1, whatever is asked",
        story: "The setting was read, checked, and not handed on.",
        source: None,
        named_by: "model/temperature-divides",
        implementation: bug!(TemperatureIgnored {
            fn tempered(&self, logits: &[f64], _: f64) -> Vec<f64> {
                Oracle.tempered(logits, 1.0)
            }
        }),
    },
    Bug {
        id: "model/no-largest-subtracted",
        misconception: "takes the exponential of logits in f32 as they are: a logit of 1000 is infinity there",
        story: "Logits near 0 are all that a fresh model has.",
        source: None,
        named_by: "model/often-as-probable",
        implementation: bug!(NoLargestSubtracted {
            fn tempered(&self, logits: &[f64], temperature: f64) -> Vec<f64> {
                // What an f32 makes of the exponential.
                logits.iter().map(|logit| f64::from((logit / temperature).exp() as f32).ln()).collect()
            }
        }),
    },
    Bug {
        id: "model/one-too-many",
        misconception: "keeps one token more than top_k",
        story: "The place k counts from 0, and its token was kept with those before it.",
        source: None,
        named_by: "model/cuts-keep-enough",
        implementation: bug!(OneTooMany {
            fn among(&self, top_k: usize, n: usize) -> usize {
                top_k.saturating_add(1).min(n)
            }
        }),
    },
    Bug {
        id: "model/nucleus-too-small",
        misconception: "drops the token that crosses top_p",
        story: "cumsum ≤ p keeps those that stay below. If the first alone is above, nothing is left, so it \
                was kept by hand.",
        source: None,
        named_by: "model/cuts-keep-enough",
        implementation: bug!(NucleusTooSmall {
            fn nucleus(&self, p: &[f64], top_p: f64) -> usize {
                if top_p >= 1.0 { p.len() } else { (Oracle.nucleus(p, top_p) - 1).max(1) }
            }
        }),
    },
    Bug {
        id: "model/each-below-p",
        misconception: "keeps the tokens that are each more probable than 1 − top_p, where their sum is meant",
        story: "A threshold for one token is min-p, another cut.",
        source: None,
        named_by: "model/cuts-keep-enough",
        implementation: bug!(EachBelowP {
            fn nucleus(&self, p: &[f64], top_p: f64) -> usize {
                p.iter().filter(|p| **p >= 1.0 - top_p).count().max(1)
            }
        }),
    },
    Bug {
        id: "model/one-more-at-equal",
        misconception: "keeps one token more where the probabilities add up to top_p exactly",
        story: "The sum is compared with <= in place of <.",
        source: None,
        named_by: "model/cuts-keep-enough",
        implementation: bug!(OneMoreAtEqual {
            fn nucleus(&self, p: &[f64], top_p: f64) -> usize {
                let mut before = 0.0;
                let kept = p.iter().take_while(|p| {
                    let kept = before <= top_p;
                    before += *p;
                    kept
                });
                kept.count()
            }
        }),
    },
    Bug {
        id: "model/not-renormalized",
        misconception: "draws as if what was cut off were still there; what falls there becomes the last token \
                        that was kept",
        story: "After the cut the probabilities no longer add up to 1, and the loop runs over the end.",
        source: None,
        named_by: "model/sample-f64-loops",
        implementation: bug!(NotRenormalized {
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
        }),
    },
    Bug {
        id: "model/evenly-among-kept",
        misconception: "draws evenly among the tokens that were kept",
        story: "choice(tokens) without their probabilities: the cut looks like all that a sampler does.",
        source: None,
        named_by: "model/often-as-probable",
        implementation: bug!(EvenlyAmongKept {
            fn drawn(&self, p: &[f64], unit: f64) -> usize {
                (unit * p.len() as f64) as usize
            }
        }),
    },
    Bug {
        id: "model/edge-to-the-token-before",
        misconception: "draws a token once the running sum reaches the unit, where it must exceed it",
        story: "A search from the left in place of one from the right. A unit of 0 could draw a token of probability 0.",
        source: None,
        named_by: "model/edge-of-a-token",
        implementation: bug!(EdgeToBefore {
            fn drawn(&self, p: &[f64], unit: f64) -> usize {
                let at = unit * p.iter().sum::<f64>();
                let mut sum = 0.0;
                let reaches = |p: &f64| {
                    sum += p;
                    sum >= at
                };
                p.iter().position(reaches).unwrap_or(p.len() - 1)
            }
        }),
    },
    Bug {
        id: "model/ties-mixed",
        misconception: "sorts many equal logits in any order",
        story: "An unstable sort, which is faster. With few tokens it happens to be stable.",
        source: None,
        named_by: "model/sample-f64-loops",
        implementation: bug!(TiesMixed {
            fn likelier(&self, a: (usize, f64), b: (usize, f64)) -> Ordering {
                let equal = a.1 == b.1 && a.0.min(b.0) >= 20;
                if equal { b.0.cmp(&a.0) } else { Oracle.likelier(a, b) }
            }
        }),
    },
    Bug {
        id: "model/cold-settings-unread",
        misconception: "looks at top_k and top_p only where the temperature is above 0",
        story: "The likeliest token needs neither, and is returned before they are checked.",
        source: None,
        named_by: "model/sample-refuses",
        implementation: bug!(ColdSettingsUnread {
            fn checked(&self, case: &SampleCase) -> Reply<()> {
                let cold = case.temperature == 0.0;
                let (top_k, top_p) = if cold { (None, 1.0) } else { (case.top_k, case.top_p) };
                Oracle.checked(&SampleCase { top_k, top_p, ..case.clone() })
            }
        }),
    },
    Bug {
        id: "model/nearly-cold",
        misconception: "takes a temperature below 10⁻⁵ for 0",
        story: "So that nothing is divided by nearly 0. Of two equal tokens the first is then always taken.",
        source: None,
        named_by: "model/often-as-probable",
        implementation: bug!(NearlyCold {
            fn sampled(&self, case: &SampleCase) -> usize {
                let cold = case.temperature < 1e-5;
                let temperature = if cold { 0.0 } else { case.temperature };
                Oracle.sampled(&SampleCase { temperature, ..case.clone() })
            }
        }),
    },
    Bug {
        id: "model/temperature-floored",
        misconception: "takes a temperature below 10⁻⁶ for 10⁻⁶",
        story: "So that nothing is divided by nearly 0. Logits that are as small as their temperature are all alike then.",
        source: None,
        named_by: "model/temperature-divides",
        implementation: bug!(TemperatureFloored {
            fn tempered(&self, logits: &[f64], temperature: f64) -> Vec<f64> {
                Oracle.tempered(logits, temperature.max(1e-6))
            }
        }),
    },
    Bug {
        id: "model/sampled-in-f32",
        misconception: "computes in f32: a unit near an edge draws the neighbour",
        story: "Logits are f32, so the rest was, too. Two machines that add up in another order then write different texts from \
                one seed.",
        source: None,
        named_by: "model/sample-f64-loops",
        implementation: bug!(SampledInF32 {
            fn drawn(&self, p: &[f64], unit: f64) -> usize {
                let mut sum = 0.0f32;
                let sums: Vec<f32> = p.iter().map(|p| { sum += *p as f32; sum }).collect();
                let at = unit as f32 * sum;
                sums.iter().position(|sum| *sum > at).unwrap_or(p.len() - 1)
            }
        }),
    },
    Bug {
        id: "model/top-p-in-f32",
        misconception: "adds up to top_p in f32: one token more or fewer is kept",
        story: "The cut was made before the draw, where nobody thought of digits.",
        source: None,
        named_by: "model/sample-f64-loops",
        implementation: bug!(TopPInF32 {
            fn nucleus(&self, p: &[f64], top_p: f64) -> usize {
                let mut before = 0.0f32;
                let kept = p.iter().take_while(|p| {
                    let kept = before < top_p as f32;
                    before += **p as f32;
                    kept
                });
                kept.count()
            }
        }),
    },
    Bug {
        id: "model/forbidden-refused",
        misconception: "refuses logits whose first one is minus infinity",
        story: "The largest logit was looked for from the first one on, and what was found first was checked. Minus infinity \
                forbids an id, and any id may be forbidden.",
        source: None,
        named_by: "model/sample-f64-loops",
        implementation: bug!(ForbiddenRefused {
            fn checked(&self, case: &SampleCase) -> Reply<()> {
                if case.logits.first() == Some(&f32::NEG_INFINITY) {
                    return Err(Refusal::new("a logit must be a number"));
                }
                Oracle.checked(case)
            }
        }),
    },
    Bug {
        id: "model/full-cache-taken",
        misconception: "takes pieces for which the caches have no room",
        story: "The cache was made for the prompt, and grows with what is written, until the memory is full.",
        source: None,
        named_by: "model/full-cache-refused",
        implementation: bug!(FullCacheTaken {
            fn fits(&self, _: usize, _: usize) -> bool {
                true
            }
        }),
    },
    Bug {
        id: "model/nan-drawn",
        misconception: "draws from logits that are no numbers",
        story: "A NaN is not larger than anything, so a search for the largest goes past it. The model has \
                diverged, and writes on.",
        source: None,
        named_by: "model/sample-refuses",
        implementation: bug!(NanDrawn {
            fn checked(&self, case: &SampleCase) -> Reply<()> {
                let logits = case.logits.iter().map(|x| if x.is_nan() { 0.0 } else { *x }).collect();
                Oracle.checked(&SampleCase { logits, ..case.clone() })
            }
        }),
    },
    Bug {
        id: "model/top-k-of-none",
        misconception: "takes a top_k of 0 for all tokens",
        story: "In many libraries 0 means that the cut is off. Here no cut is None, and keeping no token is a mistake.",
        source: None,
        named_by: "model/sample-refuses",
        implementation: bug!(TopKOfNone {
            fn checked(&self, case: &SampleCase) -> Reply<()> {
                let top_k = case.top_k.filter(|k| *k > 0);
                Oracle.checked(&SampleCase { top_k, ..case.clone() })
            }

            fn among(&self, top_k: usize, n: usize) -> usize {
                if top_k == 0 { n } else { Oracle.among(top_k, n) }
            }
        }),
    },
    Bug {
        id: "model/loss-not-shifted",
        misconception: "asks each place for its own token, not for the next",
        story: "The ids are both input and target. A model that copies is perfect, and can't write.",
        source: None,
        named_by: "model/loss-is-of-the-next",
        implementation: bug!(LossNotShifted {
            fn targets(&self, ids: &[usize]) -> Vec<(usize, usize)> {
                ids[..ids.len() - 1].iter().copied().enumerate().collect()
            }
        }),
    },
    Bug {
        id: "model/loss-shifted-twice",
        misconception: "asks each place for the token after the next",
        story: "The data were shifted, and the model shifts them again.",
        source: None,
        named_by: "model/loss-is-of-the-next",
        implementation: bug!(LossShiftedTwice {
            fn targets(&self, ids: &[usize]) -> Vec<(usize, usize)> {
                // A text of two tokens has no such place; then it is the next.
                let by = if ids.len() > 2 { 2 } else { 1 };
                ids[by..].iter().copied().enumerate().collect()
            }
        }),
    },
    Bug {
        id: "model/last-place-only",
        misconception: "asks the last place only",
        story: "The loss of a classifier, taken over from one. It learns, from one token of each text.",
        source: None,
        named_by: "model/step-f64-loops",
        implementation: bug!(LastPlaceOnly {
            fn targets(&self, ids: &[usize]) -> Vec<(usize, usize)> {
                vec![(ids.len() - 2, ids[ids.len() - 1])]
            }
        }),
    },
    Bug {
        id: "model/loss-summed",
        misconception: "adds the losses of all places, where their mean is meant",
        story: "The learning rate then depends on how much text a batch has.",
        source: None,
        named_by: "model/loss-of-equal-logits",
        implementation: bug!(LossSummed {
            fn mean(&self, losses: &[f64], _: usize) -> f64 {
                losses.iter().sum()
            }
        }),
    },
    Bug {
        id: "model/loss-per-text",
        misconception: "divides by the number of texts, not of tokens",
        story: "The mean over the batch axis alone. With texts of two tokens it is right.",
        source: None,
        named_by: "model/loss-of-equal-logits",
        implementation: bug!(LossPerText {
            fn mean(&self, losses: &[f64], texts: usize) -> f64 {
                losses.iter().sum::<f64>() / texts as f64
            }
        }),
    },
    Bug {
        id: "model/uphill",
        misconception: "adds the gradient instead of subtracting it",
        story: "The loss grows, and the learning rate is blamed.",
        source: None,
        named_by: "model/step-lowers-loss",
        implementation: bug!(Uphill {
            fn stepped(&self, weight: f64, rate: f64, gradient: f64) -> f64 {
                weight + rate * gradient
            }
        }),
    },
    Bug {
        id: "model/sign-only",
        misconception: "takes a step of the same length for each weight, by the gradient's sign",
        story: "It is what Adam's first step does, and what no other one does.",
        source: None,
        named_by: "model/step-f64-loops",
        implementation: bug!(SignOnly {
            fn stepped(&self, weight: f64, rate: f64, gradient: f64) -> f64 {
                // Differences leave some 1e-9 where there is no gradient.
                if gradient.abs() < 1e-7 { weight } else { weight - rate * gradient.signum() }
            }
        }),
    },
    Bug {
        id: "model/gammas-not-trained",
        misconception: "does not train the gammas",
        story: "They were left out of the list of weights, because they shall have no decay.",
        source: None,
        named_by: "model/step-f64-loops",
        implementation: bug!(GammasNotTrained {
            fn is_trained(&self, case: &ModelCase, tensor: usize) -> bool {
                case.weights()[tensor].len() != case.sizes.h
            }
        }),
    },
    Bug {
        id: "model/table-not-trained",
        misconception: "does not train the table",
        story: "The lookup was made outside the tape: rows were copied, and nothing came back to them.",
        source: None,
        named_by: "model/gradient",
        implementation: bug!(TableNotTrained {
            fn reaches(&self, _: &ModelCase, tensor: usize) -> bool {
                tensor > 0
            }
        }),
    },
    Bug {
        id: "model/loss-after-step",
        misconception: "tells the loss after the step, where that before it is meant",
        story: "A curve drawn so looks a step better than the model that was asked.",
        source: None,
        named_by: "model/step-f64-loops",
        implementation: bug!(LossAfterStep {
            fn told(&self, _: f64, after: f64) -> f64 {
                after
            }
        }),
    },
];
