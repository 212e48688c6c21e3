//! The calls of all interfaces, and who answers them.

use crate::asker::{Asker, Carried, Head, Outcome, Talk, Whom};
use crate::frame::{Ends, whole};
use interfaces::attention::interface::KeyValueCache;
use interfaces::interface::*;
use interfaces::panics;
use interfaces::rope::interface::RopeModule;
use serde::Serialize;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Answers that travel as they are.
macro_rules! plain {
    ($($answer:ty),+ $(,)?) => {$(
        impl Carried for $answer {
            type Sent = Self;

            fn arrived(sent: Self, _: &Talk) -> Self {
                sent
            }
        }

        impl Told for $answer {
            fn tell(self, _: &mut Made) -> Self {
                self
            }
        }
    )+};
}

plain!(
    usize,
    f32,
    Vec<f32>,
    Vec<f64>,
    Vec<bool>,
    Range<usize>,
    NormGrads,
    Found,
    Tables,
    RopeState,
    LayerNormGrads,
    AttendGrads,
    KeysValues,
    SwiGluGrads,
    Pairs,
    Trained,
    KerpleGrads,
    Frequencies,
    StretchedRopeGrads,
    TurnedPair,
    LinearGrads,
    LearnedGrads,
    World<Entropy>,
    World<Vec<f32>>,
);

/// How an interface has an argument: by value, by reference, as a slice.
macro_rules! param {
    (val $ty:ty) => {
        $ty
    };
    (by $ty:ty) => {
        &$ty
    };
    (list $ty:ty) => {
        &[$ty]
    };
}

/// What arrives for it.
macro_rules! owned {
    (list $ty:ty) => { Vec<$ty> };
    ($kind:ident $ty:ty) => { $ty };
}

/// How it is handed on.
macro_rules! lent {
    (val $arg:ident) => {
        $arg
    };
    ($kind:ident $arg:ident) => {
        &$arg
    };
}

macro_rules! calls {
    ($($slug:ident: $interface:ident {
        $($call:ident($($kind:ident $arg:ident: $ty:ty),*) -> $out:ty;)+
    })+) => {
        /// The implementations of this side, by component. One that is not there answers nothing.
        #[derive(Clone, Copy, Default)]
        pub struct Implementations<'p> {
            $(
                #[allow(missing_docs)]
                pub $slug: Option<&'p dyn $interface>,
            )+
        }

        impl<'p> Implementations<'p> {
            /// One implementation for every component.
            pub fn all<P: $($interface +)+>(implementation: &'p P) -> Self {
                Self { $($slug: Some(implementation),)+ }
            }
        }

        $(impl $interface for Asker {
            $(fn $call(&self, $($arg: param!($kind $ty)),*) -> Reply<$out> {
                self.ask(stringify!($slug), stringify!($call), &($($arg,)*))
            })+
        })+

        /// What the implementation of an interface says to a call.
        fn of_interface(
            implementations: &Implementations,
            (slug, call, arguments): (&str, &str, &[u8]),
            number: u64,
            made: &mut Made,
        ) -> io::Result<Vec<u8>> {
            match (slug, call) {
                $($((stringify!($slug), stringify!($call)) => {
                    let ($($arg,)*): ($(owned!($kind $ty),)*) = whole(arguments)?;
                    answer(number, made, || match implementations.$slug {
                        Some(implementation) => implementation.$call($(lent!($kind $arg)),*),
                        None => Err(Refusal::not_asked("nobody stands for this component")),
                    })
                })+)+
                _ => Err(unknown(slug, call)),
            }
        }
    };
}

calls! {
    norm: GroupRmsNorm {
        initial_gamma(val hidden_size: usize, val range: (f32, f32), val seed: u64) -> Vec<f32>;
        forward_in(val manner: Manner, by case: NormCase) -> Vec<f32>;
        backward_in(val manner: Manner, by case: NormCase, list dy: f32) -> NormGrads;
        forward_half_in(val manner: Manner, by case: NormCase) -> Vec<f32>;
    }
    embedding: VocabEmbedding {
        initial_table(val vocab_size: usize, val embedding_dim: usize, val init: NormalInit) -> Vec<f32>;
        forward_in(val manner: Manner, by case: LookupCase) -> Found;
        backward_in(val manner: Manner, by case: LookupCase, list dy: f32) -> Vec<f32>;
    }
    parallel: ParallelVocabEmbedding {
        shard_range(val vocab_size: usize, val world_size: usize, val rank: usize) -> Range<usize>;
        initial_shard(
            val vocab_size: usize, val embedding_dim: usize, val world_size: usize, val rank: usize, val init: NormalInit
        ) -> Vec<f32>;
        forward_in(val manner: Manner, by case: ShardCase) -> Found;
        backward_in(val manner: Manner, by case: ShardCase, list dy: f32) -> Vec<f32>;
    }
    rope: NtkAwareRope {
        frequencies(val head_dim: usize, val base: f64, val ratio: f64) -> Vec<f64>;
        tables(val head_dim: usize, val base: f64, val ratio: f64, val positions: Range<usize>) -> Tables;
        rotate_in(val manner: Manner, by case: RotateCase) -> Vec<f32>;
        rotate_backward_in(val manner: Manner, by case: RotateCase, list dy: f32) -> Vec<f32>;
        to_interleaved(val head_dim: usize, list x: f32) -> Vec<f32>;
        to_half_split(val head_dim: usize, list x: f32) -> Vec<f32>;
        ratio_for_length(val length: usize, val max_seq_len: usize) -> usize;
        build(by settings: RopeSettings) -> Box<dyn RopeModule>;
    }
    layernorm: LayerNorm {
        forward_in(val manner: Manner, by case: LayerNormCase) -> Vec<f32>;
        backward_in(val manner: Manner, by case: LayerNormCase, list dy: f32) -> LayerNormGrads;
    }
    attention: GroupedQueryAttention {
        repeat_backward(val manner: Manner, val shape: [usize; 4], val times: usize, list dy: f32) -> Vec<f32>;
        mask(val s: usize, val p: usize) -> Vec<bool>;
        window_mask(val s: usize, val p: usize, val window: usize) -> Vec<bool>;
        cache(val capacity: usize) -> Box<dyn KeyValueCache>;
        repeat_in(val manner: Manner, val shape: [usize; 4], val times: usize, list x: f32) -> Vec<f32>;
        forward_in(val manner: Manner, by case: AttendCase) -> Vec<f32>;
        backward_in(val manner: Manner, by case: AttendCase, list dy: f32) -> AttendGrads;
        softmax_backward_in(val manner: Manner, val shape: [usize; 4], list y: f32, list dy: f32) -> Vec<f32>;
    }
    feedforward: SwiGlu {
        size(by case: SizeCase) -> usize;
        forward_in(val manner: Manner, by case: SwiGluCase) -> Vec<f32>;
        backward_in(val manner: Manner, by case: SwiGluCase, list dy: f32) -> SwiGluGrads;
    }
    loss: CrossEntropy {
        next_tokens(by case: TextCase) -> Pairs;
        perplexity(list parts: Part) -> f32;
        forward_in(val manner: Manner, by case: LossCase) -> f32;
        backward_in(val manner: Manner, by case: LossCase, val dloss: f32) -> Vec<f32>;
    }
    model: Llama {
        block(by case: BlockCase) -> Vec<f32>;
        block_backward(by case: BlockCase, list dy: f32) -> Vec<f32>;
        forward(by case: ModelCase) -> Vec<f32>;
        backward(by case: ModelCase, list dy: f32) -> Vec<f32>;
        decode(by case: ModelCase, list pieces: usize) -> Vec<f32>;
        sample(by case: SampleCase) -> usize;
        train(by case: ModelCase, val rate: f32) -> Trained;
    }
    biases: ScoreBiases {
        slopes(val num_heads: usize) -> Vec<f64>;
        alibi(by case: AlibiCase) -> Vec<f32>;
        bucket(by case: BucketCase) -> usize;
        t5_in(val manner: Manner, by case: T5Case) -> Vec<f32>;
        t5_backward_in(val manner: Manner, by case: T5Case, list dy: f32) -> Vec<f32>;
        kerple_in(val manner: Manner, by case: KerpleCase) -> Vec<f32>;
        kerple_backward_in(val manner: Manner, by case: KerpleCase, list dy: f32) -> KerpleGrads;
        transformer_xl_in(val manner: Manner, by case: XlCase) -> Vec<f32>;
    }
    frequencies: StretchedRope {
        frequencies(by case: FrequenciesCase) -> Frequencies;
        forward_in(val manner: Manner, by case: StretchedRopeCase) -> Vec<f32>;
        backward_in(val manner: Manner, by case: StretchedRopeCase, list dy: f32) -> StretchedRopeGrads;
    }
    rotations: Rotations {
        running(by case: LinearCase, list pieces: usize) -> Vec<f32>;
        xpos_in(val manner: Manner, by case: XPosCase) -> TurnedPair;
        axial_in(val manner: Manner, by case: AxialCase) -> Vec<f32>;
        axial_backward_in(val manner: Manner, by case: AxialCase, list dy: f32) -> Vec<f32>;
        linear_in(val manner: Manner, by case: LinearCase) -> Vec<f32>;
        linear_backward_in(val manner: Manner, by case: LinearCase, list dy: f32) -> LinearGrads;
    }
    absolute: AbsolutePositions {
        table(val hidden_size: usize, val base: f64, val positions: Range<usize>) -> Vec<f32>;
        shift(val hidden_size: usize, val base: f64, val steps: usize) -> Vec<f32>;
        add_sinusoids_in(val manner: Manner, by case: SinusoidCase) -> Vec<f32>;
        sinusoids_backward_in(val manner: Manner, by case: SinusoidCase, list dy: f32) -> Vec<f32>;
        add_learned_in(val manner: Manner, by case: LearnedCase) -> Vec<f32>;
        learned_backward_in(val manner: Manner, by case: LearnedCase, list dy: f32) -> LearnedGrads;
        add_sinusoids_at(val manner: Manner, by case: SinusoidCase, list position_ids: usize) -> Vec<f32>;
        add_learned_at(val manner: Manner, by case: LearnedCase, list position_ids: usize) -> Vec<f32>;
        learned_backward_at(
            val manner: Manner, by case: LearnedCase, list position_ids: usize, list dy: f32
        ) -> LearnedGrads;
    }
    collectives: Collectives {
        entropy(by case: EntropyCase) -> World<Entropy>;
        tree_sum(by case: SumCase) -> World<Vec<f32>>;
    }
}

/// How serving came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Served {
    /// The pipe was closed.
    Closed,
    /// There is no other question. These are the last words.
    Done(Vec<u8>),
}

/// Answers the questions of the other side until it has none.
///
/// # Errors
/// A frame that is no question. What is refused, or panics, is an answer.
pub fn serve(ends: &mut Ends, implementations: &Implementations) -> io::Result<Served> {
    let mut made = Made::default();
    loop {
        let bytes = match ends.receive() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Ok(Served::Closed);
            }
            Err(error) => return Err(error),
        };
        let (head, rest) = postcard::take_from_bytes::<Head>(&bytes).map_err(io::Error::other)?;
        let answer = match head {
            Head::Done => return Ok(Served::Done(rest.to_vec())),
            Head::Release(id) => {
                made.all.remove(&id);
                continue;
            }
            Head::Ask(number, Whom::Interface(slug), call) => {
                of_interface(implementations, (slug, call, rest), number, &mut made)?
            }
            Head::Ask(number, Whom::Made(id), call) => {
                of_made((id, call, rest), number, &mut made)?
            }
        };
        ends.send_bytes(&answer)?;
    }
}

/// What was made and is still in use.
#[derive(Default)]
struct Made {
    next: u32,
    all: HashMap<u32, Thing>,
}

enum Thing {
    Rope(Box<dyn RopeModule>),
    Cache(Box<dyn KeyValueCache>),
}

impl Made {
    fn keep(&mut self, thing: Thing) -> u32 {
        self.next += 1;
        self.all.insert(self.next, thing);
        self.next
    }
}

/// An answer on its way to the side that asked.
trait Told: Carried {
    fn tell(self, made: &mut Made) -> Self::Sent;
}

impl Told for Box<dyn RopeModule> {
    fn tell(self, made: &mut Made) -> u32 {
        made.keep(Thing::Rope(self))
    }
}

impl Told for Box<dyn KeyValueCache> {
    fn tell(self, made: &mut Made) -> u32 {
        made.keep(Thing::Cache(self))
    }
}

/// The frame that answers a question.
fn answer<T: Told>(
    number: u64,
    made: &mut Made,
    run: impl FnOnce() -> Reply<T>,
) -> io::Result<Vec<u8>> {
    let outcome = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(reply)) => Outcome::Answer(reply.tell(made)),
        Ok(Err(refusal)) => Outcome::Refused(refusal),
        Err(payload) => Outcome::Panicked(panics::message(&*payload)),
    };
    bytes(&(number, outcome))
}

fn bytes(message: &impl Serialize) -> io::Result<Vec<u8>> {
    postcard::to_stdvec(message).map_err(io::Error::other)
}

/// What something that was made says to a call.
fn of_made(
    (id, call, arguments): (u32, &str, &[u8]),
    number: u64,
    made: &mut Made,
) -> io::Result<Vec<u8>> {
    let gone = || io::Error::other(format!("nothing with the number {id} was made"));
    // Out of the list while it answers: its answer may be put there.
    let mut thing = made.all.remove(&id).ok_or_else(gone)?;
    let answered = match (&mut thing, call) {
        (Thing::Rope(rope), "state") => answer(number, made, || rope.state()),
        (Thing::Rope(rope), "cloned") => answer(number, made, || rope.cloned()),
        (Thing::Rope(rope), "forward_in") => {
            let (manner, case): (Manner, RopeCase) = whole(arguments)?;
            answer(number, made, || rope.forward_in(manner, &case))
        }
        (Thing::Rope(rope), "backward_in") => {
            let (manner, case, dy): (Manner, RopeCase, Vec<f32>) = whole(arguments)?;
            answer(number, made, || rope.backward_in(manner, &case, &dy))
        }
        (Thing::Rope(rope), "forward_at") => {
            let (manner, case, ids): (Manner, RopeCase, Vec<usize>) = whole(arguments)?;
            answer(number, made, || rope.forward_at(manner, &case, &ids))
        }
        (Thing::Rope(rope), "backward_at") => {
            let (manner, case, ids, dy): (Manner, RopeCase, Vec<usize>, Vec<f32>) =
                whole(arguments)?;
            answer(number, made, || rope.backward_at(manner, &case, &ids, &dy))
        }
        (Thing::Cache(cache), "positions") => answer(number, made, || cache.positions()),
        (Thing::Cache(cache), "push_in") => {
            let (manner, piece): (Manner, KeysValues) = whole(arguments)?;
            answer(number, made, || cache.push_in(manner, &piece))
        }
        _ => Err(unknown("what was made", call)),
    };
    made.all.insert(id, thing);
    answered
}

fn unknown(whom: &str, call: &str) -> io::Error {
    io::Error::other(format!("{whom} has no call {call}"))
}
