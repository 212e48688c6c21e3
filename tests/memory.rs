//! How much memory fused code takes on a CPU: the result, and what the backward pass must keep.
//!
//! A separate program, and one test after another: the allocator counts for all of it.
#![allow(missing_docs)]

use peak_alloc::PeakAlloc;
use quadrivium::attention::causal_attention;
use quadrivium::feedforward::silu_mul;
use quadrivium::functional::*;
use quadrivium::loss::cross_entropy;
use quadrivium::model::{LlamaConfig, LlamaTransformer};
use quadrivium::pos_emb::{
    DynamicNtk, DynamicNtkRope, DynamicNtkRopeConfig, RotaryFrequencies, ScaledRope,
    ScaledRopeConfig, XPos, XPosConfig,
};
use quadrivium::tensor::*;
use quadrivium::{NtkAwareRope, NtkAwareRopeConfig};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const TOKENS: usize = 512;
const HIDDEN: usize = 2048;
const TABLE: usize = 2000;
/// A tensor of `[TOKENS, HIDDEN]`.
const RESULT: usize = TOKENS * HIDDEN * size_of::<f32>();
/// Rows that threads work on, lists of pieces and ids, sums of gamma's gradient.
const SMALL: usize = RESULT / 16;

type Hidden = Rank3<1, TOKENS, HIDDEN>;
type Traced<S> = Tensor<S, f32, Cpu, OwnedTape<f32, Cpu>>;

/// How many threads there are, each with its own memory.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Bytes that stay after `run`, and the most that there were, beyond those before.
fn bytes<R>(run: impl FnOnce() -> R) -> (R, usize, usize) {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let result = run();
    (result, MEMORY.current_usage().saturating_sub(before), MEMORY.peak_usage() - before)
}

/// What one computation takes: `kept` is what the tape holds beside the result while the input is held, and
/// `gradients` what the backward pass makes beside the gradient of the result.
fn expect<S: ConstShape>(
    name: &str,
    kept: usize,
    gradients: usize,
    forward: impl Fn() -> Traced<S>,
) {
    drop(forward()); // threads start, and keep what they need to run
    let (y, held, peak) = bytes(&forward);
    assert!(held <= RESULT + kept + SMALL, "{name}: {held} bytes stay of a result of {RESULT}");
    assert!(peak <= RESULT + kept + SMALL, "{name}: {peak} bytes for a result of {RESULT}");
    let loss = y.sum::<Rank0, _>(); // it drops the result
    let ((), _, peak) = bytes(|| drop(loss.backward()));
    assert!(
        peak <= RESULT + gradients + SMALL,
        "{name}: {peak} bytes for gradients of {RESULT} and {gradients}"
    );
}

/// What stays of a computation whose input is not held elsewhere: the result, and `kept`.
fn expect_alone<S: ConstShape>(name: &str, kept: usize, forward: impl Fn() -> Traced<S>) {
    drop(forward());
    let (_y, held, _) = bytes(&forward);
    assert!(held <= RESULT + kept + SMALL, "{name}: {held} bytes stay of a result of {RESULT}");
}

/// Without a tape nothing is kept, however narrow the rows: the most is the result, and `ids` for look-ups.
fn expect_plain<S: Shape>(name: &str, ids: usize, forward: impl Fn() -> Tensor<S, f32, Cpu>) {
    drop(forward());
    let (y, _, peak) = bytes(&forward);
    let result = y.shape().num_elements() * size_of::<f32>();
    assert!(peak <= result + ids + SMALL, "{name}: {peak} bytes for a result of {result}");
}

/// A module for a million positions has the rows of those that a call had, and a far call leaves nothing behind.
fn a_table_costs_what_was_asked_of_it(dev: &Cpu) {
    const MILLION: usize = 1 << 20;
    let heads = |s: usize| -> Tensor<(usize, usize, Const<1>, Const<64>), f32, Cpu> {
        dev.zeros_like(&(1, s, Const, Const))
    };
    let (heads_of_one, heads_of_many) = (heads(1), heads(TOKENS));
    let row = 2 * 64 * size_of::<f32>(); // a cosine and a sine for each element
    let check = |name: &str, sides: usize, rope: &dyn Fn(usize, usize), held: usize| {
        assert!(held < 1 << 14, "{name}: {held} bytes before a call");
        let ((), held, peak) = bytes(|| rope(MILLION - 1, 1));
        assert!(held < 1 << 14 && peak < 1 << 16, "{name}: {held} bytes stay, {peak} at most");
        let ((), held, _) = bytes(|| rope(0, TOKENS));
        let most = sides * TOKENS * row + (1 << 14);
        assert!((TOKENS * row..most).contains(&held), "{name}: {held} bytes of {TOKENS} rows");
    };
    let pick = |s: usize| if s == 1 { heads_of_one.clone() } else { heads_of_many.clone() };

    let config = NtkAwareRopeConfig { max_seq_len: MILLION, ..Default::default() };
    let (rope, held, _) = bytes(|| NtkAwareRope::<64, _>::new(dev, config).unwrap());
    check("NtkAwareRope", 1, &|at, s| drop(rope.forward((pick(s), at))), held);
    let plain = || RotaryFrequencies::plain(64, 10_000.0).unwrap();
    let config = || ScaledRopeConfig::new(plain(), MILLION);
    let (rope, held, _) = bytes(|| ScaledRope::<64, _>::new(dev, config()).unwrap());
    check("ScaledRope", 1, &|at, s| drop(rope.forward((pick(s), at))), held);
    let ntk = DynamicNtk { factor: 2.0, max_seq_len: MILLION };
    let config = DynamicNtkRopeConfig { ntk, ..Default::default() };
    let (rope, held, _) = bytes(|| DynamicNtkRope::<64, _>::new(dev, config).unwrap());
    check("DynamicNtkRope", 1, &|at, s| drop(rope.forward((pick(s), at))), held);
    let config = XPosConfig { max_position: MILLION, scale_base: 65_536.0, ..Default::default() };
    let (rope, held, _) = bytes(|| XPos::<64, _>::new(dev, config).unwrap());
    let both = |at: usize, s: usize| {
        drop(rope.queries(pick(s), at).unwrap());
        drop(rope.keys(pick(s), at).unwrap());
    };
    check("XPos", 2, &both, held);

    // A model's blocks share one table.
    let rope = NtkAwareRopeConfig { max_seq_len: MILLION, ..LlamaConfig::default().rope };
    let config = LlamaConfig { rope, ..Default::default() };
    type Model = LlamaTransformer<8, 8, 1, 1, 8, 8, 4, f32, Cpu>;
    let (model, held, peak) = bytes(|| Model::new(dev, config).unwrap());
    assert!(held < 1 << 16 && peak < 1 << 17, "a model: {held} bytes, {peak} at most");
    drop(model);
}

/// Of each block, a forward pass keeps its input and no activation. A backward pass has those of one block at a time: less than half of
/// what all eight take.
fn a_block_that_is_recomputed_keeps_its_input(dev: &Cpu) {
    const BLOCKS: usize = 8;
    type Model = LlamaTransformer<8, 64, 4, 4, 16, 192, BLOCKS, f32, Cpu>;
    let model = Model::new(dev, LlamaConfig::default()).unwrap();
    let ids = dev.tensor_from_vec((0..TOKENS).map(|t| t * 5 % 8).collect(), (1, TOKENS));
    let step = |again: bool| {
        let mut held = 0;
        let ((), _, peak) = bytes(|| {
            let ids = ids.clone().traced(model.alloc_grads());
            let (logits, stay, _) = bytes(|| match again {
                true => model.try_forward_recomputed(ids, 0).unwrap(),
                false => model.try_forward_at(ids, 0).unwrap(),
            });
            held = stay;
            drop(logits.square().sum::<Rank0, _>().backward());
        });
        (held, peak)
    };
    step(false); // threads start
    let (all, most) = step(false);
    let (inputs, least) = step(true);
    let input = TOKENS * 64 * size_of::<f32>();
    // The head has logits and a normed input of its own.
    let expected = (BLOCKS + 3) * input;
    assert!(
        inputs < expected,
        "{inputs} bytes are kept, where the inputs take {expected}; all: {all}"
    );
    assert!(2 * least < most, "{least} bytes at most; if all is kept, {most}");
}

#[test]
fn fused_code_takes_the_memory_of_its_result() {
    let dev = Cpu::default();
    let x: Tensor<Hidden, f32, Cpu> = dev.sample_normal();
    let gamma: Tensor<Rank1<HIDDEN>, f32, Cpu> = dev.ones();
    for gz in [1, 16, HIDDEN] {
        expect(&format!("group_rms_norm, {gz}"), RESULT / gz, RESULT, || {
            group_rms_norm(x.leaky_trace(), &gamma, gz, 1e-6).unwrap()
        });
    }
    let beta: Tensor<Rank1<HIDDEN>, f32, Cpu> = dev.zeros();
    expect("layer_norm", 0, RESULT, || layer_norm(x.leaky_trace(), &gamma, &beta, 1e-6).unwrap());

    let heads: Tensor<Rank4<1, TOKENS, 32, 64>, f32, Cpu> = dev.sample_normal();
    for layout in [Layout::HalfSplit, Layout::Interleaved] {
        let config = NtkAwareRopeConfig { max_seq_len: 4096, layout, ..Default::default() };
        let rope = NtkAwareRope::<64, _>::new(&dev, config).unwrap();
        expect(&format!("rotation, {layout:?}"), 0, RESULT, || {
            rope.forward((heads.leaky_trace(), 3000))
        });
    }

    let table = TABLE * HIDDEN * size_of::<f32>();
    let ids: Tensor<Rank2<1, TOKENS>, usize, Cpu> =
        dev.tensor_from_vec((0..TOKENS).map(|t| t * 37 % TABLE).collect(), Default::default());
    let whole: Tensor<Rank2<TABLE, HIDDEN>, f32, Cpu> = dev.sample_normal();
    expect("vocab_embedding", 0, table, || vocab_embedding(ids.leaky_trace(), &whole).unwrap());
    let shard: Tensor<Rank2<{ TABLE / 4 }, HIDDEN>, f32, Cpu> = dev.sample_normal();
    expect("vocab_shard_embedding", 0, table / 4, || {
        vocab_shard_embedding(ids.leaky_trace(), &shard, 1, 4).unwrap()
    });

    // A block's scores, of 64 queries and all keys on each thread, are small beside the heads.
    let short: Tensor<Rank4<1, TOKENS, 32, 64>, f32, Cpu> = dev.sample_normal();
    let two = 2 * TOKENS * 32 * 2 * size_of::<f32>();
    let copies = 2 * RESULT; // of keys and values, for the call
    let (y, held, peak) = bytes(|| {
        let [k, v] = [(); 2].map(|()| short.retaped::<OwnedTape<f32, Cpu>>());
        causal_attention(short.leaky_trace(), k, v, &[]).unwrap()
    });
    assert!(held <= RESULT + two + SMALL, "attention: {held} bytes stay of a result of {RESULT}");
    let scores = 2 * 64 * TOKENS * size_of::<f32>() * threads();
    assert!(peak <= RESULT + two + copies + scores + SMALL, "attention: {peak} bytes at most");
    drop(y);
    let [gate, up]: [Tensor<Hidden, f32, Cpu>; 2] = [(); 2].map(|()| dev.sample_normal());
    expect("silu_mul", 0, 2 * RESULT, || {
        silu_mul(gate.leaky_trace(), up.retaped::<OwnedTape<f32, Cpu>>()).unwrap()
    });
    let targets = dev.tensor_from_vec((0..TOKENS).collect(), (Const::<1>, Const::<TOKENS>));
    drop(cross_entropy(gate.leaky_trace(), &targets).unwrap());
    let (loss, held, peak) = bytes(|| cross_entropy(gate.leaky_trace(), &targets).unwrap());
    assert!(held <= SMALL && peak <= SMALL, "cross_entropy: {held} bytes stay, {peak} at most");
    let ((), _, peak) = bytes(|| drop(loss.backward()));
    assert!(peak <= RESULT + SMALL, "cross_entropy: {peak} bytes for a gradient of {RESULT}");

    // The input is not held, not even by the rotation and the look-ups. A permuted table is copied for the call.
    let rope = NtkAwareRope::<64, _>::new(&dev, NtkAwareRopeConfig::default()).unwrap();
    expect_alone("rotation", 0, || {
        let heads: Tensor<Rank4<1, TOKENS, 32, 64>, f32, Cpu> = dev.ones();
        rope.forward(heads.leaky_trace())
    });
    expect_alone("group_rms_norm", RESULT, || {
        let x: Tensor<Hidden, f32, Cpu> = dev.ones();
        group_rms_norm(x.leaky_trace(), &gamma, HIDDEN, 1e-6).unwrap()
    });
    let across: Tensor<Rank2<HIDDEN, TABLE>, f32, Cpu> = dev.sample_normal();
    let permuted = across.permute::<Rank2<TABLE, HIDDEN>, _>();
    expect_alone("vocab_embedding of a permuted table", 0, || {
        vocab_embedding(ids.leaky_trace(), &permuted).unwrap()
    });

    for gz in [1, 16] {
        expect_plain(&format!("group_rms_norm, {gz}"), 0, || {
            group_rms_norm(x.clone(), &gamma, gz, 1e-6).unwrap()
        });
    }
    let narrow = x.reshape::<Rank3<1, { TOKENS * HIDDEN }, 1>>();
    let one: Tensor<Rank1<1>, f32, Cpu> = dev.ones();
    expect_plain("group_rms_norm of single numbers", 0, || {
        group_rms_norm(narrow.clone(), &one, 1, 1e-6).unwrap()
    });
    expect_plain("layer_norm of single numbers", 0, || {
        layer_norm(narrow.clone(), &one, &one, 1e-6).unwrap()
    });
    let many = (1, TOKENS * HIDDEN);
    let ids = dev.tensor_from_vec((0..many.1).map(|t| t * 37 % TABLE).collect(), many);
    let column: Tensor<Rank2<TABLE, 1>, f32, Cpu> = dev.sample_normal();
    let host = many.1 * size_of::<usize>();
    expect_plain("vocab_embedding of single numbers", host, || {
        vocab_embedding(ids.clone(), &column).unwrap()
    });
    let part: Tensor<Rank2<{ TABLE / 4 }, 1>, f32, Cpu> = dev.sample_normal();
    expect_plain("vocab_shard_embedding of single numbers", host, || {
        vocab_shard_embedding(ids.clone(), &part, 1, 4).unwrap()
    });

    a_table_costs_what_was_asked_of_it(&dev);
    a_block_that_is_recomputed_keeps_its_input(&dev);

    // A kept buffer is the same one in each call.
    dev.enable_cache();
    let small: Tensor<Rank3<1, 1, 4>, f32, Cpu> = dev.ones();
    let gamma: Tensor<Rank1<4>, f32, Cpu> = dev.ones();
    let call = || drop(group_rms_norm(small.clone(), &gamma, 4, 1e-6).unwrap());
    (0..10).for_each(|_| call());
    let ((), held, _) = bytes(|| (0..20_000).for_each(|_| call()));
    assert!(held < 20_000, "{held} bytes stay of 20,000 calls");
}
