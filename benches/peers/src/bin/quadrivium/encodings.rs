//! Position encodings at work: rotations of queries, what is added to tokens, attention with biases. The name of an operation is
//! `encoding-NAME PASS`.

use peers::*;
use quadrivium::attention::biased_attention;
use quadrivium::functional::*;
use quadrivium::pos_emb::*;
use quadrivium::position::*;
use quadrivium::tensor::{AutoDevice as Dev, *};

/// Positions, heads and head size where there is attention.
pub const S: usize = 1024;
const NH: usize = 8;
const HD: usize = 64;
/// Seen in training, and how many times longer the texts are.
const TRAINED: usize = 512;
const FACTOR: f64 = 4.0;
/// What learned parts are made of.
const TENTH: f32 = 0.1;

/// One of the two passes of `$y`, a tensor of the inputs that are named. Backward their gradients are the results.
macro_rules! operation {
    ($pass:expr, ($($x:ident),+), $y:expr) => {
        match $pass {
            "forward" => Some(Box::new(move || -> Results {
                $(let $x = $x.clone();)+
                let y = $y;
                Box::new(move || vec![y.as_vec()])
            }) as Call),
            "forward+backward" => Some(Box::new(move || -> Results {
                let leaves = ($($x.clone(),)+);
                $(let $x = $x.leaky_trace();)+
                let grads = $y.sum::<Rank0, _>().backward();
                Box::new(move || {
                    let ($($x,)+) = leaves;
                    vec![$(grads.get(&$x).as_vec()),+]
                })
            }) as Call),
            _ => None,
        }
    };
}

/// The same with a weight, which is read by reference and has a gradient too.
macro_rules! operation_with {
    ($pass:expr, ($($x:ident),+), ($($weight:ident),+), $y:expr) => {
        match $pass {
            "forward" => operation!($pass, ($($x),+), $y),
            "forward+backward" => Some(Box::new(move || -> Results {
                let leaves = ($($x.clone(),)+);
                $(let $x = $x.leaky_trace();)+
                let grads = $y.sum::<Rank0, _>().backward();
                $(let $weight = $weight.clone();)+
                Box::new(move || {
                    let ($($x,)+) = leaves;
                    vec![$(grads.get(&$x).as_vec(),)+ $(grads.get(&$weight).as_vec()),+]
                })
            }) as Call),
            _ => None,
        }
    };
}

pub fn make(dev: &Dev, name: &str) -> Option<Call> {
    let (name, pass) = name.split_once(' ')?;
    // Queries of a large model, [1, 2048, 32, 128], and its tokens, [1, 2048, 4096].
    let heads = || dev.tensor_from_vec(x(), Rank4::<1, SEQ, HEADS, HEAD>::default());
    let tokens = || dev.tensor_from_vec(x(), Rank3::<1, SEQ, HIDDEN>::default());
    let shape = (1usize, S, NH, Const::<HD>);
    let of = |nth: usize| dev.tensor_from_vec(values(nth * S * NH * HD, S * NH * HD), shape);
    let (q, k, v) = (of(0), of(1), of(2));
    match name {
        "yarn" => {
            let yarn = Yarn { factor: FACTOR, max_seq_len: TRAINED, ..Yarn::default() };
            let frequencies = RotaryFrequencies::yarn(HEAD, 1e4, yarn).ok()?;
            let rope =
                ScaledRope::<HEAD, Dev>::new(dev, ScaledRopeConfig::new(frequencies, SEQ)).ok()?;
            let x = heads();
            operation!(pass, (x), rope.try_forward(x).unwrap())
        }
        "partial" => {
            let frequencies = RotaryFrequencies::plain(HEAD / 4, 1e4).ok()?;
            let mut config = ScaledRopeConfig::new(frequencies, SEQ);
            config.rotary_dim = Some(HEAD / 4);
            let rope = ScaledRope::<HEAD, Dev>::new(dev, config).ok()?;
            let x = heads();
            operation!(pass, (x), rope.try_forward(x).unwrap())
        }
        "xpos" => {
            let config = XPosConfig { max_position: SEQ, ..Default::default() };
            let xpos = XPos::<HEAD, Dev>::new(dev, config).ok()?;
            let x = heads();
            operation!(pass, (x), xpos.queries(x, 0).unwrap())
        }
        "axial" => {
            let planes = AxialPlanes::direct_sum(&[HEAD / 4, HEAD / 4], 1e4).ok()?;
            let rope = AxialRope::<HEAD, 2, Dev>::new(AxialRopeConfig {
                planes,
                layout: Layout::HalfSplit,
            })
            .ok()?;
            let places: Vec<[usize; 2]> = (0..SEQ).map(|t| [t / 64, t % 64]).collect();
            let tables = rope.tables(dev, &places).ok()?;
            let x = heads();
            operation!(pass, (x), tables.rotate(x).unwrap())
        }
        "learnable" => {
            let theta: Vec<f32> =
                (0..HEAD / 2).map(|i| 1e4f64.powf(-2.0 * i as f64 / HEAD as f64) as f32).collect();
            let theta = dev.tensor_from_vec(theta, (HEAD / 2,));
            let x = heads();
            operation_with!(
                pass,
                (x),
                (theta),
                rotate_by_frequencies(x, &theta, 0, Layout::HalfSplit).unwrap()
            )
        }
        "sinusoidal" => {
            // As PyTorch's, it keeps its table.
            let (x, sinusoidal) = (tokens(), Sinusoidal::default());
            operation!(pass, (x), sinusoidal.try_forward(x).unwrap())
        }
        "learned" => {
            let table = dev.tensor_from_vec(values(0, SEQ * HIDDEN), (SEQ, HIDDEN));
            let x = tokens();
            operation_with!(pass, (x), (table), add_learned_positions(x, &table, 0).unwrap())
        }
        "alibi" => operation!(pass, (q, k, v), {
            let bias = alibi_bias(q.device(), NH, S).unwrap();
            attend(q, k, v, |tape| bias.put_tape(tape))
        }),
        "t5" => {
            let weight = dev.tensor_from_vec(values(7, 32 * NH), (32usize, NH));
            operation_with!(pass, (q, k, v), (weight), {
                attend(q, k, v, |tape| with_tape(t5_bias(&weight, false, 128, S), tape))
            })
        }
        "kerple" => {
            let r1 = dev.tensor_from_vec(vec![TENTH; NH], (NH,));
            let r2 = dev.tensor_from_vec(vec![TENTH; NH], (NH,));
            operation_with!(pass, (q, k, v), (r1, r2), {
                let kernel = KerpleKernel::Logarithmic;
                attend(q, k, v, |tape| with_tape(kerple_bias(kernel, &r1, &r2, S), tape))
            })
        }
        "linear" => {
            let plain = rotary_frequencies(HD, 1e4, 1.0).ok()?;
            let tables = RotaryTables::new(dev, Const, &plain, 0..S, Layout::HalfSplit).ok()?;
            operation!(pass, (q, k, v), linear_attention(q, k, v, Some(&tables)).unwrap())
        }
        _ => None,
    }
}

type Heads<T> = Tensor<(usize, usize, usize, Const<HD>), f32, Dev, T>;
type ByDistance<T> = Tensor<(usize, usize), f32, Dev, T>;

/// A bias with what its own tape holds, and an empty tape of the caller's kind beside it.
fn with_tape<T: Tape<f32, Dev>>(
    bias: quadrivium::error::Result<ByDistance<T>>,
    tape: T,
) -> ByDistance<T> {
    let (bias, own) = bias.unwrap().split_tape();
    bias.put_tape(own.merge(tape))
}

fn attend<T: Tape<f32, Dev>>(
    q: Heads<T>,
    k: Heads<T>,
    v: Heads<T>,
    bias: impl FnOnce(T) -> ByDistance<T>,
) -> Heads<T> {
    let bias = ScoreBias::of_distances(bias(T::default()));
    biased_attention(q, k, v, bias, &[]).unwrap()
}
