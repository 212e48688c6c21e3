//! What is asked of the model: blocks, models and texts from a plan of what is not plain, and logits to sample from.

use crate::graded_cases::Draw;
use crate::model::interface::*;
use crate::model::menu::sizes;
use crate::run::Run;

/// What a graded case asks of a block or of a model. [`PLAIN`] is one token and one block.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// `b` and `s`.
    pub tokens: [usize; 2],
    /// The sizes, by their place in the menu.
    pub place: usize,
    /// Blocks.
    pub blocks: usize,
    /// Whether the table serves as output.
    pub tied: bool,
    /// Of all norms.
    pub eps: f64,
    /// Of the rotation.
    pub base: f64,
    /// How large the tokens are that enter the first block.
    pub scale: f32,
    /// Whether the first token is NaN. All of its text sees it.
    pub nan: bool,
    /// Of a block: tokens that come in a call before the others.
    pub offset: usize,
    /// Whether queries are 0, so that a token finds the mean of all that it sees, wherever that is.
    pub even: bool,
}

/// One token.
pub const PLAIN: Plan = Plan {
    tokens: [1, 1],
    place: 0,
    blocks: 1,
    tied: false,
    eps: 1e-6,
    base: 10_000.0,
    scale: 1.0,
    nan: false,
    offset: 0,
    even: false,
};

impl Plan {
    fn draw(self, run: &Run) -> Draw {
        let [b, s] = self.tokens;
        Draw::new(run, (b * 1000 + s * 100 + self.place * 10 + self.blocks) as u64)
    }

    /// A block and tokens for it.
    pub fn block(self, run: &Run) -> BlockCase {
        let (mut draw, sizes) = (self.draw(run), sizes(self.place));
        let weights = weights(&mut draw, sizes);
        let [b, s] = self.tokens;
        let mut x: Vec<f32> = draw.values(b * s * sizes.h).iter().map(|x| x * self.scale).collect();
        if self.nan {
            x[0] = f32::NAN;
        }
        let Self { tokens, eps, base, offset, .. } = self;
        BlockCase { tokens, sizes, eps, base, weights, offset, x }
    }

    /// And a gradient of what it gives.
    pub fn block_back(self, run: &Run) -> (BlockCase, Vec<f32>) {
        let case = self.block(run);
        let dy = Draw::new(run, case.x.len() as u64).values(case.x.len());
        (case, dy)
    }

    /// A model, texts for it, and a gradient of their logits. The first of several texts begins with a token whose logits no
    /// loss asks for.
    pub fn model_back(self, run: &Run) -> (ModelCase, Vec<f32>) {
        let case = self.model(run);
        let v = case.sizes.v;
        let mut dy = Draw::new(run, (case.ids.len() * v) as u64).values(case.ids.len() * v);
        if self.tokens[0] > 1 {
            dy[..v].fill(0.0);
        }
        (case, dy)
    }

    /// A model and texts for it.
    pub fn model(self, run: &Run) -> ModelCase {
        model(&mut self.draw(run), self)
    }
}

/// Weights that leave softmax and gate in their bends: of some 1/16 to 1.
fn weights(draw: &mut Draw, sizes: Sizes) -> BlockWeights {
    let Sizes { h, nh, nkv, hd, f, .. } = sizes;
    let mut some = |n: usize| -> Vec<f32> { draw.values(n).iter().map(|w| w / 4.0).collect() };
    BlockWeights {
        input_norm: some(h),
        q: some(nh * hd * h),
        k: some(nkv * hd * h),
        v: some(nkv * hd * h),
        o: some(h * nh * hd),
        post_norm: some(h),
        gate: some(f * h),
        up: some(f * h),
        down: some(h * f),
    }
}

/// A model with drawn weights, and drawn ids.
pub fn model(draw: &mut Draw, plan: Plan) -> ModelCase {
    let Plan { tokens, blocks, tied, eps, base, scale, even, .. } = plan;
    let sizes = sizes(plan.place);
    let Sizes { v, h, .. } = sizes;
    let table = draw.values(v * h).iter().map(|x| x * scale).collect();
    let mut blocks: Vec<BlockWeights> = (0..blocks).map(|_| weights(draw, sizes)).collect();
    if even {
        blocks.iter_mut().for_each(|block| block.q.fill(0.0));
    }
    let norm = draw.values(h).iter().map(|w| w / 2.0).collect();
    let head = (!tied).then(|| draw.values(v * h).iter().map(|w| w / 4.0).collect());
    let ids = (0..tokens[0] * tokens[1]).map(|_| draw.below(v)).collect();
    ModelCase { sizes, eps, base, table, blocks, norm, head, tokens, ids, positions: tokens[1] }
}

/// Lengths that add up to `s`: one after the other, all at once, and between.
pub fn pieces(s: usize, kind: usize) -> Vec<usize> {
    match kind % 4 {
        0 => vec![1; s],
        1 => [s - s / 2, s / 2].into_iter().filter(|n| *n > 0).collect(),
        2 => [1, s - 1].into_iter().filter(|n| *n > 0).collect(),
        // A prompt, one token, a longer piece, and the rest one by one.
        _ => {
            let mut pieces = vec![2.min(s)];
            let mut left = s - pieces[0];
            for n in [1, 3] {
                let n = n.min(left);
                pieces.extend((n > 0).then_some(n));
                left -= n;
            }
            pieces.extend(vec![1; left]);
            pieces
        }
    }
}

/// A question to a sampler.
pub fn drawn(draw: &mut Draw, v: usize) -> SampleCase {
    let logits = draw.values(v).iter().map(|x| x / 2.0).collect();
    let mut one = |from: &[f64]| from[draw.below(from.len())];
    let temperature = one(&[1.0, 0.5, 2.0, 0.25, 1.0]);
    let top_p = one(&[1.0, 0.9, 0.6, 0.3, 1.0]);
    let top_k = [None, Some(1), Some(2), Some(3), Some(v), Some(v + 5)][draw.below(6)];
    let unit = draw.below(1 << 20) as f64 / f64::from(1 << 20);
    SampleCase { logits, temperature, top_k, top_p, unit }
}

/// Units and `top_p` on both sides of each edge between two tokens: nearer than `f32` can resolve, and further than
/// `f64` is off.
pub fn beside_edges(case: &SampleCase) -> impl Iterator<Item = SampleCase> + use<> {
    const BESIDE: f64 = 2e-9;
    let mut terms: Vec<f64> =
        case.logits.iter().map(|&logit| (f64::from(logit) / case.temperature).exp()).collect();
    terms.sort_by(|a, b| b.total_cmp(a));
    let total: f64 = terms.iter().sum();
    let (case, mut before) = (case.clone(), 0.0);
    terms.pop();
    terms.into_iter().flat_map(move |term| {
        before += term;
        [-BESIDE, BESIDE].into_iter().flat_map({
            let (case, edge) = (case.clone(), before / total);
            move |by| {
                let unit = SampleCase { unit: edge + by, ..case.clone() };
                // The last token that is kept.
                [unit, SampleCase { top_p: edge + by, unit: 1.0 - 1e-6, ..case.clone() }]
            }
        })
    })
}
