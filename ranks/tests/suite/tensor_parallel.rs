//! Blocks that are cut by heads and columns: what one rank computes, all together compute.

use crate::support::{Random, alone, of_any_size, processes, said};
use crate::training::drawn_alike;
use contract::model::bounds::{Near, of_block, of_block_back, of_training};
use contract::model::interface::{BlockCase, BlockWeights, ModelCase, Sizes};
use quadrivium::model::{LlamaTransformer, Tied};
use quadrivium::tensor::*;
use ranks::act::{
    Answer, Question, RATE, TINY_GROUPS, TINY_VOCAB, Tiny, tiny, tiny_batch, tiny_config,
};
use ranks::communicator::Order;
use ranks::error::Result;
use ranks::folder::{Beginning, gathered};
use ranks::link::threads;
use ranks::train::{Grid, Named, Seen};
use ranks::world::{OfThreads, Said, World};
use std::path::Path;

const SIZES: Sizes = Sizes { v: 1, h: 32, nh: 8, nkv: TINY_GROUPS, hd: 4, f: 48 };
const TOKENS: [usize; 2] = [2, 5];
/// Worlds whose ranks have whole groups.
const WORLDS: [usize; 3] = [1, 2, 4];

/// A block, and the gradient of its answer.
pub fn case(seed: u64) -> (BlockCase, Vec<f32>) {
    let mut random = Random::new(seed);
    let Sizes { h, nh, nkv, hd, f, .. } = SIZES;
    let mut matrix = |rows: usize| random.floats(rows * h, 0.5);
    let (input_norm, post_norm) = (matrix(1), matrix(1));
    let [q, o] = [(); 2].map(|()| matrix(nh * hd));
    let [k, v] = [(); 2].map(|()| matrix(nkv * hd));
    let [gate, up, down] = [(); 3].map(|()| matrix(f));
    let weights = BlockWeights { input_norm, q, k, v, o, post_norm, gate, up, down };
    let [x, dy] = [(); 2].map(|()| matrix(TOKENS[0] * TOKENS[1]));
    let case =
        BlockCase { tokens: TOKENS, sizes: SIZES, eps: 1e-6, base: 100.0, weights, offset: 0, x };
    (case, dy)
}

pub fn question(seed: u64, in_order: bool) -> Question {
    let (case, dy) = case(seed);
    Question::Block { case: Box::new(case), dy, in_order }
}

fn ask(world: &dyn World, seed: u64, in_order: bool) -> Answer {
    match world.ask(&question(seed, in_order)).unwrap() {
        Said::Answer(answer) => {
            assert!(answer.same, "the ranks do not have the same");
            answer
        }
        other => panic!("{} ranks: {other:?}", world.world_size()),
    }
}

fn bits(answer: &Answer) -> Vec<u32> {
    answer.y.iter().chain(&answer.dx).map(|x| x.to_bits()).collect()
}

/// The first number that is further off than the contract lets any implementation of a block be.
pub fn too_far(answer: &Answer, seed: u64) -> Option<String> {
    let (case, dy) = case(seed);
    let (y, back) = (of_block(&case), of_block_back(&case, &dy));
    assert_eq!((answer.y.len(), answer.dx.len()), (y.len(), back.len()));
    let mut all = answer.y.iter().chain(&answer.dx).zip(y.iter().chain(back.iter())).enumerate();
    let is_off = |got: &f32, near: &Near| (f64::from(*got) - near.value).abs() > near.off;
    all.find(|(_, (got, near))| !got.is_finite() || is_off(got, near))
        .map(|(at, (got, near))| format!("number {at} is {got}, and it should be {near:?}"))
}

/// The answer and all gradients, in both orders, within the bounds of the contract; and in the fixed order the same bits,
/// no matter how many ranks compute.
fn is_one_block(world: &dyn World) {
    for seed in 0..4 {
        let in_order = ask(world, seed, true);
        assert_eq!(bits(&in_order), bits(&ask(&OfThreads::new(1), seed, true)), "seed {seed}");
        for answer in [in_order, ask(world, seed, false)] {
            assert_eq!(too_far(&answer, seed), None, "{} ranks, seed {seed}", world.world_size());
        }
    }
}

#[test]
fn threads_compute_one_block() {
    for ranks in WORLDS {
        is_one_block(&OfThreads::new(ranks));
    }
}

#[test]
fn processes_compute_one_block() {
    let _alone = alone();
    for ranks in [2, 4] {
        is_one_block(&processes(ranks));
    }
}

type Whole = LlamaTransformer<TINY_VOCAB, 32, 8, TINY_GROUPS, 4, 48, 2, f32, Cpu, Tied>;

/// The library's model as the contract takes it, and a text whose tokens are all asked about.
fn whole_case(weights: &[Named]) -> ModelCase {
    let of = |name: &str| weights.iter().find(|named| named.name == name).unwrap().values.clone();
    let block = |nth: usize| {
        let of = |name: &str| of(&format!("model.layers.{nth}.{name}.weight"));
        let [q, k, v, o] = ["q", "k", "v", "o"].map(|name| of(&format!("self_attn.{name}_proj")));
        let [gate, up, down] = ["gate", "up", "down"].map(|name| of(&format!("mlp.{name}_proj")));
        let (input_norm, post_norm) = (of("input_layernorm"), of("post_attention_layernorm"));
        BlockWeights { input_norm, q, k, v, o, post_norm, gate, up, down }
    };
    let batch = tiny_batch(42, 0, 0);
    let (b, s) = batch.shape;
    let text = |row: usize| {
        let ids = batch.ids[row * s..(row + 1) * s].iter();
        ids.chain(&batch.next[row * s + s - 1..row * s + s]).copied().collect::<Vec<_>>()
    };
    let config = tiny_config(42);
    ModelCase {
        sizes: Sizes { v: TINY_VOCAB, ..SIZES },
        eps: config.eps,
        base: config.rope.base,
        table: of("model.embed_tokens.weight"),
        blocks: vec![block(0), block(1)],
        norm: of("model.norm.weight"),
        head: None,
        tokens: [b, s + 1],
        ids: (0..b).flat_map(text).collect(),
        positions: s + 1,
    }
}

/// From the same seed, the weights that the library draws, bit for bit, its loss, and gradients of the same length.
#[test]
fn ranks_begin_as_the_library_does() {
    for ranks in WORLDS {
        let of_ranks = threads::run(ranks, |comm| -> Result<(Vec<Named>, Seen)> {
            let mut model = tiny(Grid::new(comm, ranks)?, 42, Order::Any, Tiny::TensorParallel)?;
            let weights = gathered(model.as_mut())?;
            Ok((weights, model.step(&tiny_batch(42, 0, 0), RATE)?))
        });
        let (weights, seen) = of_ranks.into_iter().next().flatten().unwrap().unwrap();
        drawn_alike(&Whole::tied(&Cpu::default(), tiny_config(42)).unwrap(), &weights);
        let (near, gradients) = &*of_training(&whole_case(&weights));
        let apart = (f64::from(seen.loss) - near.value).abs();
        assert!(apart <= near.off, "{ranks} ranks: {seen:?}, {near:?}");
        // Two lists of gradients are at most as far apart in their length as in their elements.
        let length = |of: fn(&Near) -> f64| {
            gradients.iter().map(|near| of(near).powi(2)).sum::<f64>().sqrt()
        };
        let (norm, off) = (length(|near| near.value), length(|near| near.off));
        assert!(off < 0.1 * norm, "{off} of {norm} would hide a part that is counted twice");
        assert!((seen.norm - norm).abs() <= off, "{ranks} ranks: {seen:?}, {norm}, {off}");
    }
}

#[test]
fn ranks_that_would_share_a_head_are_refused() {
    let said = OfThreads::new(3).ask(&question(0, true)).unwrap();
    let Said::Failed(words) = said else { panic!("{said:?}") };
    assert!(words[0].contains("one that divides the 4 key and value heads"), "{words:?}");
}

/// What a run of the command prints, in some steps of the model that readers train.
fn run(folder: &Path, n: &str, more: &[&str]) -> ranks::show::Run {
    let arguments = ["-n", n, "--steps", "4", "--every", "2", "--json", "--tensor-parallel"];
    let output = of_any_size(folder, &[&arguments, more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_run_has_the_same_bits_on_any_grid_and_from_any_checkpoint() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let one = run(folder.path(), "1", &[]);
    let (out, broken) = (path("out"), path("broken"));
    let two = run(folder.path(), "2", &["--out", &out]);
    assert_eq!((&two.weights, &two.losses), (&one.weights, &one.losses));
    let copies = |n| run(folder.path(), n, &["--copies", "2"]).weights;
    assert_eq!(copies("2"), copies("4"));

    // Each has half of what one has, and all that is cut is counted: the table, and seven matrices of four blocks.
    let matrices = 576 * 128 + 4 * (2 * 128 * 128 + 2 * 64 * 128 + 3 * 384 * 128);
    assert_eq!(one.ranks[0].shard_bytes, 4 * matrices);
    assert!(two.ranks.iter().all(|of| of.shard_bytes == 2 * matrices));

    // Broken off after the second step, and continued by another number.
    let goes_on = |out: &str, from, to, more: &[&str]| {
        let arguments = ["-n", from, "--steps", "4", "--every", "2", "--tensor-parallel"];
        let fault = ["--fault", "0:panics:2", "--out", out];
        let output = of_any_size(folder.path(), &[&arguments[..], &fault, more].concat());
        assert_ne!(output.status.code(), Some(0), "{}", said(&output));
        let rest = run(folder.path(), to, &[&["--out", out], more].concat());
        (rest.weights, rest.losses)
    };
    let rest_of_one = (one.weights.clone(), one.losses[2..].to_vec());
    assert_eq!(goes_on(&broken, "2", "1", &[]), rest_of_one);
    assert_eq!(goes_on(&path("other"), "1", "2", &[]), rest_of_one);
    assert_eq!(goes_on(&path("copies"), "4", "2", &["--copies", "2"]).0, copies("2"));
    let whole_blocks = ["-n", "2", "--steps", "4", "--every", "2", "--out", &broken];
    let output = of_any_size(folder.path(), &whole_blocks);
    assert!(said(&output).contains("it is of another run (blocks cut, "), "{}", said(&output));

    // The model that is left is one of whole blocks, and both ways of training begin from it.
    assert_eq!(Beginning::read(Path::new(&out)).unwrap().fingerprint(), one.weights);
    let from = |n| run(folder.path(), n, &["--model", &out]);
    let (on_one, on_two) = (from("1"), from("2"));
    assert_eq!((&on_one.weights, &on_one.losses), (&on_two.weights, &on_two.losses));
    let output =
        of_any_size(folder.path(), &["-n", "2", "--steps", "1", "--json", "--model", &out]);
    let whole: ranks::show::Run = serde_json::from_slice(&output.stdout).unwrap();
    assert!((whole.losses[0] - on_one.losses[0]).abs() < 1e-5, "{:?}, {:?}", whole, on_one);

    let output = of_any_size(folder.path(), &["-n", "3", "--tensor-parallel"]);
    let words = "must be one of 1, 2, which divide its 2 key and value heads, got 3";
    assert!(said(&output).contains(words), "{}", said(&output));
}
