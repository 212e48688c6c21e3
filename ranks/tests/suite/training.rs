//! A hundred steps of a model with both ends cut, in threads and in processes.

use crate::support::{alone, course, processes, said, worlds};
use model::batches::Batches;
use model::corpus::Corpus;
use model::text::Text;
use quadrivium::loss::cross_entropy;
use quadrivium::model::{Head, LlamaTransformer};
use quadrivium::tensor::*;
use quadrivium::training::clip_gradients;
use quadrivium::weights::{load_weights, save_weights};
use ranks::act::{
    Answer, Question, RATE, TINY_BLOCK, TINY_GROUPS, TINY_VOCAB, Tiny, tiny, tiny_batch,
    tiny_config,
};
use ranks::communicator::Order;
use ranks::link::threads::run;
use ranks::show::Run;
use ranks::size::{BLOCK, Size};
use ranks::train::{Batch, Grid, Named};
use ranks::world::{OfThreads, Said, World};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::sync::LazyLock;

/// Half a unit in the last place, relative.
const U: f64 = 1.0 / (1 << 24) as f64;
const STEPS: usize = 100;
const SEED: u64 = 42;

fn train(world: &dyn World, question: Question) -> Answer {
    match world.ask(&question).unwrap() {
        Said::Answer(answer) => {
            assert!(answer.same, "the ranks do not have the same losses and blocks");
            answer
        }
        other => panic!("{} ranks: {other:?}", world.world_size()),
    }
}

fn in_order(world_size: usize, kind: Tiny) -> Question {
    Question::Train {
        world_size,
        steps: STEPS,
        seed: SEED,
        same_text: true,
        kind,
        block: Some(TINY_BLOCK),
    }
}

const KINDS: [Tiny; 3] = [Tiny::Tied, Tiny::Untied, Tiny::TensorParallel];

/// One rank, for each kind.
static ONE: [LazyLock<Answer>; 3] = [
    LazyLock::new(|| train(&OfThreads::new(1), in_order(1, KINDS[0]))),
    LazyLock::new(|| train(&OfThreads::new(1), in_order(1, KINDS[1]))),
    LazyLock::new(|| train(&OfThreads::new(1), in_order(1, KINDS[2]))),
];

fn one(kind: Tiny) -> &'static Answer {
    &ONE[kind as usize]
}

/// The kinds that so many ranks can share.
fn kinds(world_size: usize) -> impl Iterator<Item = Tiny> {
    let fits = move |kind: &Tiny| *kind != Tiny::TensorParallel || TINY_GROUPS % world_size == 0;
    KINDS.into_iter().filter(fits)
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Losses and gradients' norms of every step, and after the last all weights, with what AdamW remembers of all gradients.
fn same_as_one(world: &dyn World) {
    let w = world.world_size();
    for kind in kinds(w) {
        let (answer, one) = (train(world, in_order(w, kind)), one(kind));
        assert_eq!(bits(&answer.y), bits(&one.y), "losses of {w} ranks, {kind:?}");
        assert_eq!(bits(&answer.dtable), bits(&one.dtable), "rows of {w} ranks, {kind:?}");
        assert_eq!(bits(&answer.dx), bits(&one.dx), "blocks of {w} ranks, {kind:?}");
    }
}

#[test]
fn something_is_learned() {
    let mean = |losses: &[f32]| losses.iter().sum::<f32>() / losses.len() as f32;
    for kind in KINDS {
        let one = one(kind);
        let (first, last) = (mean(&one.y[..10]), mean(&one.y[90..]));
        assert!(last < 0.8 * first, "from {first} to {last}, {kind:?}");
    }
}

/// A row has three numbers for each weight: it, and what AdamW remembers of its gradients.
#[test]
fn an_output_of_its_own_has_rows_of_its_own() {
    assert_eq!(one(Tiny::Tied).dtable.len(), 3 * TINY_VOCAB * 16);
    assert_eq!(one(Tiny::Untied).dtable.len(), 2 * 3 * TINY_VOCAB * 16);
    assert_ne!(one(Tiny::Tied).y, one(Tiny::Untied).y);
}

#[test]
fn threads_in_order_train_bit_for_bit_as_one() {
    for ranks in worlds() {
        same_as_one(&OfThreads::new(ranks));
    }
}

#[test]
fn processes_in_order_train_bit_for_bit_as_one() {
    let _alone = alone();
    for ranks in worlds() {
        same_as_one(&processes(ranks));
    }
}

/// In the engine's order. From the same weights, the logits are the same bits in both orders, and so are the largest of
/// them; the totals, in `f64`, differ by less than half a unit of an `f32`. The losses of a step, rounded to `f32`, are
/// therefore at most one unit apart. (Later weights are not compared: differences of a few bits grow from step to
/// step.)
fn as_good_as_in_order(world: &dyn World, steps: usize) {
    for kind in [Tiny::Tied, Tiny::Untied] {
        as_good(world, steps, kind);
    }
}

fn as_good(world: &dyn World, steps: usize, kind: Tiny) {
    let world_size = world.world_size();
    let (seed, same_text, block) = (SEED, true, None);
    let question = Question::Train { world_size, steps, seed, same_text, kind, block };
    let answer = train(world, question);
    assert_eq!(answer.y[0], one(kind).y[0]);
    for (step, (any, fixed)) in answer.y.iter().zip(&answer.dx[..steps]).enumerate() {
        let (any, fixed) = (f64::from(*any), f64::from(*fixed));
        assert!((any - fixed).abs() <= 2.0 * U * fixed.abs(), "step {step}: {any} and {fixed}");
    }
    let last = &answer.y[steps - 10..];
    let (mean, first) = (last.iter().sum::<f32>() / 10.0, answer.y[0]);
    assert!(mean < first, "nothing was learned: from {first} to {mean}");
}

#[test]
fn threads_in_any_order_train() {
    for ranks in worlds() {
        as_good_as_in_order(&OfThreads::new(ranks), STEPS);
    }
}

#[test]
fn processes_in_any_order_train() {
    let _alone = alone();
    for ranks in worlds() {
        as_good_as_in_order(&processes(ranks), 30);
    }
}

/// Two copies that read the same text have the same gradients, and the mean of two equal numbers is exact: w x 2 ranks train
/// as w do, bit for bit.
#[test]
fn copies_that_read_the_same_train_as_one() {
    for (w, kind) in (1..=3).flat_map(|w| kinds(w).map(move |kind| (w, kind))) {
        let answer = train(&OfThreads::new(2 * w), in_order(w, kind));
        assert_eq!(bits(&answer.y), bits(&one(kind).y), "losses of {w} x 2 ranks");
        assert_eq!(bits(&answer.dtable), bits(&one(kind).dtable), "the rows of {w} x 2 ranks");
    }
}

/// Copies that read different texts: the grid's shape changes no bit, if the number of copies stays.
#[test]
fn a_grid_of_processes_trains_as_one_of_threads() {
    let question = |world_size| Question::Train {
        world_size,
        steps: 10,
        seed: SEED,
        same_text: false,
        kind: Tiny::Untied,
        block: Some(TINY_BLOCK),
    };
    let expected = train(&OfThreads::new(2), question(1));
    assert_ne!(expected.y, one(Tiny::Untied).y[..10], "the copies read something else");
    let _alone = alone();
    for w in [2, 4] {
        let answer = train(&processes(2 * w), question(w));
        assert_eq!(bits(&answer.y), bits(&expected.y), "losses of {w} x 2 ranks");
        assert_eq!(bits(&answer.dtable), bits(&expected.dtable), "the rows of {w} x 2 ranks");
    }
}

/// The mean over copies is that of the gradients, not of anything else: after a step of two copies the loss of each is
/// the mean of what each saw.
#[test]
fn the_loss_of_copies_is_their_mean() {
    let first = |same_text, copies| {
        let question = Question::Train {
            world_size: 1,
            steps: 1,
            seed: SEED,
            same_text,
            kind: Tiny::Tied,
            block: Some(TINY_BLOCK),
        };
        train(&OfThreads::new(copies), question).y[0]
    };
    let of_copy = |copy: usize| {
        let alone = run(1, |comm| {
            let model = tiny(Grid::new(comm, 1)?, SEED, Order::Any, Tiny::Tied)?;
            model.loss(&tiny_batch(SEED, 0, copy), Order::Fixed { block: TINY_BLOCK })
        });
        alone.into_iter().next().flatten().unwrap().unwrap()
    };
    assert_eq!(first(true, 1), of_copy(0));
    assert_eq!(first(false, 2), (of_copy(0) + of_copy(1)) / 2.0);
}

type Whole<O> = LlamaTransformer<TINY_VOCAB, 16, 2, 1, 8, 48, 2, f32, Cpu, O>;
/// The library's models in one process, given the weights of each step: their loss is the sharded one's, within what the
/// roundings of two products of the same matrices cost.
#[test]
fn each_step_has_the_loss_of_the_library() {
    as_the_library(|dev| Whole::tied(dev, tiny_config(SEED)).unwrap(), Tiny::Tied);
    as_the_library(|dev| Whole::new(dev, tiny_config(SEED)).unwrap(), Tiny::Untied);
}

fn as_the_library<O: Head<TINY_VOCAB, 16, f32, Cpu> + TensorCollection<f32, Cpu>>(
    whole: impl Fn(&Cpu) -> Whole<O> + Sync,
    kind: Tiny,
) {
    let checked = run(1, |comm| {
        let dev = Cpu::default();
        let mut whole = whole(&dev);
        let order = Order::Fixed { block: TINY_BLOCK };
        let mut model = tiny(Grid::new(comm, 1).unwrap(), SEED, order, kind).unwrap();
        drawn_alike(&whole, &model.weights().unwrap());
        for step in 0..STEPS {
            let weights = model.weights().unwrap();
            take(&mut whole, &weights);
            let batch = tiny_batch(SEED, step, 0);
            let ids = dev.tensor_from_vec(batch.ids.clone(), batch.shape);
            let next = dev.tensor_from_vec(batch.next.clone(), batch.shape);
            let grads = whole.try_alloc_grads().unwrap();
            let logits = whole.try_forward_padded(ids.traced(grads), &[]).unwrap();
            let loss = cross_entropy(logits, &next).unwrap();
            let expected = f64::from(loss.array());
            let mut grads = loss.try_backward().unwrap();
            let norm = clip_gradients(&mut whole, &mut grads, f64::MAX).unwrap();

            let seen = model.step(&batch, RATE).unwrap();
            let bound = bound(&weights, expected);
            let apart = (f64::from(seen.loss) - expected).abs();
            assert!(
                apart <= bound,
                "step {step}: {} and {expected}, {apart:e} apart, bound {bound:e}",
                seen.loss
            );
            // Whether the gradients of both ends are there, in the table or in two matrices. A part that was left out, or
            // counted twice, would change the norm by far more; what roundings add up to through two blocks is far less.
            let ratio = seen.norm / norm;
            assert!((ratio - 1.0).abs() < 1e-3, "step {step}: norms {} and {norm}", seen.norm);
        }
    });
    assert_eq!(checked, [Some(())]);
}

/// The command's copies read different parts of one batch: the loss that it prints is the mean of theirs.
#[test]
fn copies_read_different_parts_of_a_batch() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let output = course(folder.path(), &["-n", "2", "--copies", "2", "--steps", "1", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let printed: Run = serde_json::from_slice(&output.stdout).unwrap();

    let Size { batch: (b, s), vocab_size, .. } = Size::TINY;
    let text = Text::read(&[folder.path().join("text")]).unwrap();
    let corpus = Corpus::new(&text, (2 * b, s), vocab_size).unwrap();
    let mut batches = Batches::new(&corpus.trained, 42, (2 * b, s));
    let first = batches.after(0);
    let (both, _) = batches.at(first);
    let of_copies = run(1, |comm| {
        let order = Order::Fixed { block: BLOCK };
        let model =
            Size::TINY.trainer(Grid::new(comm, 1)?, Size::TINY.settings(42), order, false)?;
        let loss = |copy: usize| {
            let part = |all: &[usize]| all[copy * b * s..][..b * s].to_vec();
            model
                .loss(&Batch { ids: part(&both.ids), next: part(&both.next), shape: (b, s) }, order)
        };
        Ok::<_, ranks::Error>([loss(0)?, loss(1)?])
    });
    let [one, other] = of_copies[0].clone().unwrap().unwrap();
    assert_ne!(one, other);
    assert_eq!(printed.losses, [(one + other) / 2.0]);
}

/// Two evaluations of a loss from the same tokens and rows. Tokens and rows of `h` elements: a logit is a sum of `h` products,
/// at most `|token| |row|` together, and wrong by `(h + 1) U` of that at most. A token that a norm has left has a mean square
/// of at most 1, so its length is at most `sqrt(h)` times the largest gain. A loss is at most twice as wrong as its logits;
/// the differences to the largest are rounded once more, the library's exponentials are off by `2^-22`, its sums of 48
/// terms, and all that is left, by 64 roundings.
fn bound(weights: &[Named], loss: f64) -> f64 {
    let of = |name: &str| &weights.iter().find(|named| named.name == name).unwrap().values;
    let largest = |values: &[f32]| values.iter().map(|x| f64::from(x.abs())).fold(0.0, f64::max);
    let length = |row: &[f32]| row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    let h: f64 = 16.0;
    let untied = weights.iter().any(|named| named.name == "lm_head.weight");
    let output = if untied { "lm_head.weight" } else { "model.embed_tokens.weight" };
    let row = of(output).chunks(16).map(length).fold(0.0, f64::max);
    let logit = h.sqrt() * largest(of("model.norm.weight")) * row;
    let one = 2.0 * (h + 1.0) * U * logit + U * 2.0 * logit;
    2.0 * one + 4.0 * U + 64.0 * U + 2.0 * U * loss.abs()
}

/// The same seeds give the same first weights, with the same names.
///
/// # Panics
/// They do not.
pub fn drawn_alike(whole: &impl TensorCollection<f32, Cpu>, weights: &[Named]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weights");
    save_weights(whole, &file).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.len(), weights.len());
    for Named { name, shape, values, .. } in weights {
        let tensor = tensors.tensor(name).unwrap();
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!((tensor.shape(), tensor.data()), (&shape[..], &bytes[..]), "{name}");
    }
}

/// Puts named weights into the library's model, by a file.
fn take(whole: &mut impl TensorCollection<f32, Cpu>, weights: &[Named]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weights");
    let bytes =
        |named: &Named| named.values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
    let bytes: Vec<Vec<u8>> = weights.iter().map(bytes).collect();
    let views = weights.iter().zip(&bytes).map(|(named, bytes)| {
        (&named.name, TensorView::new(Dtype::F32, named.shape.clone(), bytes).unwrap())
    });
    std::fs::write(&file, safetensors::serialize(views, None).unwrap()).unwrap();
    load_weights(whole, &file).unwrap();
}
