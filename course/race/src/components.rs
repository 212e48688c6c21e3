//! The races of each component, at one size: 1,024 tokens of 4,096 numbers, as in a model of 7 billion parameters.

use crate::{COMPOSED, COPY, FUSED, Implementation, PLAIN, Race, YOURS, race};
use benches::{copy, ids, input, loops, values};
use quadrivium::tensor::*;
use quadrivium::*;
use std::hint::black_box;

const TOKENS: usize = 1024;
const HIDDEN: usize = 4096;
const GROUP: usize = 128;
const HEADS: usize = 32;
const HEAD_DIM: usize = 128;
const VOCAB: usize = 32_000;
const WORLD: usize = 4;

type Hidden = Rank3<1, TOKENS, HIDDEN>;
type Heads = Rank4<1, TOKENS, HEADS, HEAD_DIM>;

/// A pass of the library, of a loop, of the learner.
type One<'p> = Box<dyn FnMut() + 'p>;

/// Runs the races of a component, with the learner's code or without.
type Run = fn(bool) -> Vec<Race>;

/// All components, in the order of the course.
pub const ALL: [(&str, Run); 5] = [
    ("norm", norm),
    ("embedding", embedding),
    ("parallel", parallel),
    ("rope", rope),
    ("layernorm", layernorm),
];

/// Forward, and forward and backward of a sum.
type Passes<'p> = [One<'p>; 2];

fn passes<'p>(forward: impl FnMut() + 'p, both: impl FnMut() + 'p) -> Passes<'p> {
    [Box::new(forward), Box::new(both)]
}

/// Both races. `library` is made twice, for its fused and for its composed code.
fn races<'p>(
    slug: &'static str,
    subject: &str,
    library: impl Fn() -> Passes<'p>,
    plain: Passes<'p>,
    mine: Option<Passes<'p>>,
) -> Vec<Race> {
    let [source, target] = [1.0, 0.0].map(|value| vec![value; TOKENS * HIDDEN]);
    let mine: [Option<One>; 2] = mine.map_or([None, None], |passes| passes.map(Some));
    let names = ["forward", "forward and backward"];
    let mut races = Vec::new();
    let all = library().into_iter().zip(library()).zip(plain).zip(mine);
    for (name, (((fused, mut formula), plain), mine)) in names.into_iter().zip(all) {
        let mut target = target.clone();
        let mut implementations: Vec<Implementation> = vec![
            (COPY, Box::new(|| copy(&source, black_box(&mut target)))),
            (FUSED, fused),
            (COMPOSED, Box::new(move || composed(&mut formula))),
            (PLAIN, plain),
        ];
        implementations.extend(mine.map(|mine| (YOURS, mine)));
        races.push(race(slug, &format!("{subject}, {name}"), implementations));
    }
    races
}

/// Both passes of something that computes an output from an input, and can be asked with a tape.
macro_rules! passes_of {
    ($x:expr, |$input:ident| $output:expr) => {{
        let (plain, traced) = ($x, $x);
        passes(
            move || {
                let $input = plain.clone();
                drop(black_box($output));
            },
            move || {
                let $input = traced.leaky_trace();
                drop(black_box($output.sum::<Rank0, _>().backward()));
            },
        )
    }};
}

fn device() -> Cpu {
    let dev = Cpu::default();
    dev.enable_cache();
    dev
}

fn norm(with_mine: bool) -> Vec<Race> {
    let dev = device();
    let x = input::<Hidden>(&dev, Default::default());
    let norm =
        GroupRmsNorm::<HIDDEN, GROUP, f32, _>::new(&dev, Default::default()).expect("a norm");
    let norm = &norm;
    let eps = GroupRmsNormConfig::default().eps;
    let mine = with_mine.then(|| {
        exercises::norm::GroupRmsNorm::<HIDDEN, GROUP, Cpu>::new(norm.weight.clone(), eps)
    });
    let subject = format!("norm, [1, {TOKENS}, {HIDDEN}], groups of {GROUP}");
    let (values, gamma) = (values(TOKENS * HIDDEN), norm.weight.as_vec());
    let plain = |with_gradient: bool| {
        let (values, gamma, eps) = (&values, &gamma, eps as f32);
        let (mut y, mut dx, dy) = (values.clone(), values.clone(), vec![1.0; values.len()]);
        let mut dgamma = vec![0.0; HIDDEN];
        move || {
            loops::norm(values, gamma, GROUP, eps, black_box(&mut y));
            if with_gradient {
                black_box(y.iter().sum::<f32>());
                loops::norm_backward(
                    values,
                    gamma,
                    (GROUP, eps),
                    &dy,
                    &mut dx,
                    black_box(&mut dgamma),
                );
            }
        }
    };
    races(
        "norm",
        &subject,
        || passes_of!(x.clone(), |x| norm.forward(x)),
        passes(plain(false), plain(true)),
        mine.as_ref().map(|mine| passes_of!(x.clone(), |x| mine.forward(x))),
    )
}

fn layernorm(with_mine: bool) -> Vec<Race> {
    let dev = device();
    let x = input::<Hidden>(&dev, Default::default());
    let norm = LayerNorm::<HIDDEN, f32, _>::new(&dev, Default::default()).expect("a norm");
    let norm = &norm;
    let eps = LayerNormConfig::default().eps;
    let mine = with_mine.then(|| {
        exercises::layernorm::LayerNorm::<HIDDEN, Cpu>::new(
            norm.weight.clone(),
            norm.bias.clone(),
            eps,
        )
    });
    let subject = format!("layernorm, [1, {TOKENS}, {HIDDEN}]");
    let values = values(TOKENS * HIDDEN);
    let (gamma, beta) = (norm.weight.as_vec(), norm.bias.as_vec());
    let plain = |with_gradient: bool| {
        let (values, gamma, beta, eps) = (&values, &gamma, &beta, eps as f32);
        let (mut y, mut dx, dy) = (values.clone(), values.clone(), vec![1.0; values.len()]);
        let (mut dgamma, mut dbeta) = (vec![0.0; HIDDEN], vec![0.0; HIDDEN]);
        move || {
            loops::layernorm(values, gamma, beta, eps, black_box(&mut y));
            if with_gradient {
                black_box(y.iter().sum::<f32>());
                let sums = (&mut dgamma[..], &mut dbeta[..]);
                loops::layernorm_backward(values, gamma, eps, &dy, black_box(&mut dx), sums);
            }
        }
    };
    races(
        "layernorm",
        &subject,
        || passes_of!(x.clone(), |x| norm.forward(x)),
        passes(plain(false), plain(true)),
        mine.as_ref().map(|mine| passes_of!(x.clone(), |x| mine.forward(x))),
    )
}

fn rope(with_mine: bool) -> Vec<Race> {
    let dev = device();
    let x = input::<Heads>(&dev, Default::default());
    let config = NtkAwareRopeConfig { max_seq_len: TOKENS, ..Default::default() };
    let rope = NtkAwareRope::<HEAD_DIM, _>::new(&dev, config).expect("a rope");
    let rope = &rope;
    let tables = rope.tables(&dev).expect("tables");
    // The learner's function takes as many rows as there are tokens.
    let rows = |table: &Tensor<(usize, Const<HEAD_DIM>), f32, Cpu>| {
        let rows = table.as_vec()[..TOKENS * HEAD_DIM].to_vec();
        dev.tensor_from_vec(rows, (TOKENS, Const::<HEAD_DIM>))
    };
    let (cos, sin) = (&rows(&tables.cos), &rows(&tables.sin));
    let subject = format!("rope, [1, {TOKENS}, {HEADS}, {HEAD_DIM}]");
    let (values, tables) = (values(TOKENS * HIDDEN), (cos.as_vec(), sin.as_vec()));
    let plain = |with_gradient: bool| {
        let (values, tables) = (&values, (&tables.0[..], &tables.1[..]));
        let (mut y, mut dx, dy) = (values.clone(), values.clone(), vec![1.0; values.len()]);
        move || {
            loops::rope(values, tables, HEAD_DIM, 1.0, black_box(&mut y));
            if with_gradient {
                black_box(y.iter().sum::<f32>());
                loops::rope(&dy, tables, HEAD_DIM, -1.0, black_box(&mut dx));
            }
        }
    };
    races(
        "rope",
        &subject,
        || passes_of!(x.clone(), |x| rope.forward(x)),
        passes(plain(false), plain(true)),
        with_mine
            .then(|| passes_of!(x.clone(), |x| exercises::rope::apply_rotary_pos_emb(x, cos, sin))),
    )
}

fn embedding(with_mine: bool) -> Vec<Race> {
    let dev = device();
    let batch = batch(&dev);
    let embedding = VocabEmbedding::<VOCAB, HIDDEN, f32, _>::new(&dev, Default::default());
    let embedding = &embedding.expect("an embedding");
    let mine = with_mine.then(|| {
        exercises::embedding::VocabEmbedding::<VOCAB, HIDDEN, Cpu>::new(embedding.weight.clone())
    });
    let subject = format!("embedding, {TOKENS} rows of [{VOCAB}, {HIDDEN}]");
    let table = embedding.weight.as_vec();
    races(
        "embedding",
        &subject,
        || passes_of!(batch.clone(), |ids| embedding.forward(ids)),
        plain_lookup(&table, 0),
        mine.as_ref().map(|mine| passes_of!(batch.clone(), |ids| mine.forward(ids).expect("rows"))),
    )
}

fn parallel(with_mine: bool) -> Vec<Race> {
    const RANK: usize = 1;
    let dev = device();
    let batch = batch(&dev);
    let config = ParallelVocabEmbeddingConfig { rank: RANK, ..Default::default() };
    let shard = ParallelVocabEmbedding::<VOCAB, HIDDEN, WORLD, f32, _>::new(&dev, config);
    let shard = &shard.expect("a shard");
    let weight = dev.tensor_from_vec(shard.weight.as_vec(), Default::default());
    type Mine = exercises::parallel::ParallelVocabEmbedding<VOCAB, HIDDEN, WORLD, Cpu>;
    let mine = with_mine.then(|| Mine::new(weight, RANK));
    let subject =
        format!("parallel, {TOKENS} ids, rank {RANK} of {WORLD}, [{VOCAB}, {HIDDEN}] in all");
    let table = shard.weight.as_vec();
    races(
        "parallel",
        &subject,
        || passes_of!(batch.clone(), |ids| shard.forward(ids)),
        plain_lookup(&table, RANK * VOCAB / WORLD),
        mine.as_ref().map(|mine| passes_of!(batch.clone(), |ids| mine.forward(ids).expect("rows"))),
    )
}

fn batch(dev: &Cpu) -> Tensor<Rank2<1, TOKENS>, usize, Cpu> {
    dev.tensor_from_vec(ids(TOKENS, VOCAB), Default::default())
}

/// Lookups in a table whose first row belongs to the id `first`.
fn plain_lookup(table: &[f32], first: usize) -> Passes<'_> {
    let pass = |with_gradient: bool| {
        let ids = ids(TOKENS, VOCAB);
        let (mut y, dy) = (vec![0.0; TOKENS * HIDDEN], vec![1.0; TOKENS * HIDDEN]);
        let mut dtable = vec![0.0; if with_gradient { table.len() } else { 0 }];
        move || {
            loops::lookup(table, HIDDEN, first, &ids, black_box(&mut y));
            if with_gradient {
                black_box(y.iter().sum::<f32>());
                dtable.fill(0.0); // a gradient begins at zero, in each step
                loops::lookup_backward(&dy, HIDDEN, first, &ids, black_box(&mut dtable));
            }
        }
    };
    passes(pass(false), pass(true))
}
