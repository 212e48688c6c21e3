//! What ranks do together. Formulas see this trait alone, so the same code runs in threads and in processes.

use crate::error::{Error, Refusal, Result};
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// One rank's way to the others.
///
/// Every method but [`Communicator::rank`], [`Communicator::world_size`], [`Communicator::name`],
/// [`Communicator::sent`] and [`Communicator::waited`] is a *collective*: all ranks call it, in the same order. Each begins with [`Communicator::agree`], so ranks that are at different
/// calls learn it there, and none waits for ever.
pub trait Communicator {
    /// `r`.
    fn rank(&self) -> usize;

    /// `w`.
    fn world_size(&self) -> usize;

    /// This rank's number among all that were started. Errors name ranks this way, no matter which group they were met
    /// in.
    fn name(&self) -> usize;

    /// Sends the others what this rank is about to do and whether it can, and hears the same from them.
    ///
    /// # Errors
    /// The same on every rank: a rank that refused, that is at another call, or whose input differs. A rank that did
    /// not come in time.
    fn agree(&self, call: Call, mine: std::result::Result<(), Refusal>) -> Result<()>;

    /// Element by element, the sum or the largest of all ranks' values. In which order it adds is the engine's own.
    ///
    /// # Errors
    /// As for [`Communicator::agree`].
    fn all_reduce(&self, values: Values<'_>, op: Op) -> Result<()>;

    /// One sum that goes from rank to rank: rank 0 begins with what is in `total`, lets `own` add to it, and hands
    /// it to rank 1, which goes on. All ranks get what the last one has. Each element is therefore added up in the
    /// order of the ranks, and in that of `own` within a rank, however many ranks there are.
    ///
    /// # Errors
    /// As for [`Communicator::agree`].
    fn carry(&self, total: Values<'_>, own: &mut dyn FnMut(Values<'_>)) -> Result<()>;

    /// The bytes of every rank, in their order. They may differ in length.
    ///
    /// # Errors
    /// As for [`Communicator::agree`].
    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// The bytes of `root`, on every rank.
    ///
    /// # Errors
    /// As for [`Communicator::agree`]; a root that is no rank.
    fn broadcast(&self, root: usize, bytes: &[u8]) -> Result<Vec<u8>>;

    /// A communicator of those that named the same colour, in the order of their ranks.
    ///
    /// # Errors
    /// As for [`Communicator::agree`].
    fn split(&self, colour: usize) -> Result<Box<dyn Communicator>>;

    /// Bytes that this rank has sent, agreements included. Where the engine reduces by its own algorithm, the least
    /// that any algorithm sends is counted: `2 (w - 1) / w` of the values.
    fn sent(&self) -> u64;

    /// How long this rank was in calls to the others.
    fn waited(&self) -> Duration;
}

/// What a rank is about to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// How many elements it is about, in words. All ranks must say the same.
    pub size: String,
    /// A number that is another one for other input; 0 where ranks may differ.
    pub digest: u64,
}

impl Call {
    /// A call whose input may differ from rank to rank.
    pub fn new(name: &str, size: impl Display) -> Self {
        Self { name: name.into(), size: size.to_string(), digest: 0 }
    }

    /// A call whose input must be the same on every rank.
    pub fn same(name: &str, size: impl Display, digest: u64) -> Self {
        Self { digest, ..Self::new(name, size) }
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, size, .. } = self;
        if size.is_empty() { write!(f, "{name}") } else { write!(f, "{name} of {size}") }
    }
}

/// A number that is another one for other ids, in another order too. (FNV-1a, of 64 bits.)
pub fn digest(ids: &[usize]) -> u64 {
    fnv(ids.iter().flat_map(|id| (*id as u64).to_le_bytes()))
}

/// The same for floats, by their bits.
pub fn digest_of_floats(values: &[f32]) -> u64 {
    fnv(values.iter().flat_map(|value| value.to_bits().to_le_bytes()))
}

pub(crate) fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// What a reduction makes of two elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Their sum.
    Sum,
    /// The larger. No element may be NaN: what an engine makes of it is its own.
    Max,
}

/// In which order sums are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The engine's own: the fastest, and a few bits depend on how many ranks there are.
    Any,
    /// That of the vocabulary, in blocks of so many rows. Any number of ranks whose shards such blocks fill gives the
    /// bits of one rank. Each sum waits for the rank before.
    Fixed {
        /// Rows whose products are added up together.
        block: usize,
    },
}

/// Elements that ranks exchange.
#[derive(Debug)]
pub enum Values<'a> {
    /// Single precision.
    F32(&'a mut [f32]),
    /// Double precision.
    F64(&'a mut [f64]),
}

impl Values<'_> {
    /// The same elements, borrowed for a shorter time.
    pub fn again(&mut self) -> Values<'_> {
        match self {
            Self::F32(values) => Values::F32(values),
            Self::F64(values) => Values::F64(values),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The size of a call about them, in words.
    pub fn words(&self) -> String {
        match self {
            Self::F32(values) => format!("{} f32", values.len()),
            Self::F64(values) => format!("{} f64", values.len()),
        }
    }

    /// Their memory.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::F32(values) => bytemuck::cast_slice(values),
            Self::F64(values) => bytemuck::cast_slice(values),
        }
    }

    /// Their memory, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::F32(values) => bytemuck::cast_slice_mut(values),
            Self::F64(values) => bytemuck::cast_slice_mut(values),
        }
    }
}

impl<'a> From<&'a mut [f32]> for Values<'a> {
    fn from(values: &'a mut [f32]) -> Self {
        Self::F32(values)
    }
}

impl<'a> From<&'a mut [f64]> for Values<'a> {
    fn from(values: &'a mut [f64]) -> Self {
        Self::F64(values)
    }
}

/// A float type that ranks exchange.
pub trait Number: Copy + std::ops::AddAssign + 'static {
    /// The elements, to be exchanged.
    fn values(values: &mut [Self]) -> Values<'_>;
    /// The elements that were exchanged.
    fn of(values: Values<'_>) -> Option<&mut [Self]>;
}

impl Number for f32 {
    fn values(values: &mut [Self]) -> Values<'_> {
        Values::F32(values)
    }

    fn of(values: Values<'_>) -> Option<&mut [Self]> {
        if let Values::F32(values) = values { Some(values) } else { None }
    }
}

impl Number for f64 {
    fn values(values: &mut [Self]) -> Values<'_> {
        Values::F64(values)
    }

    fn of(values: Values<'_>) -> Option<&mut [Self]> {
        if let Values::F64(values) = values { Some(values) } else { None }
    }
}

/// What this rank has, once all have said that they have theirs.
///
/// # Errors
/// What a rank refused, on all of them; as for [`Communicator::agree`].
pub(crate) fn accept<T>(
    comm: &dyn Communicator,
    call: Call,
    mine: std::result::Result<T, Refusal>,
) -> Result<T> {
    let refused = mine.as_ref().err().cloned();
    comm.agree(call, refused.map_or(Ok(()), Err))?;
    mine.map_err(|why| Error::Refused { rank: comm.name(), why })
}

// ANCHOR: sum
/// Element by element, the sum of what each rank has. Afterwards every rank has it.
///
/// # Errors
/// As for [`Communicator::agree`].
pub fn sum<N: Number>(comm: &dyn Communicator, order: Order, values: &mut [N]) -> Result<()> {
    match order {
        Order::Any => comm.all_reduce(N::values(values), Op::Sum),
        Order::Fixed { .. } => {
            let mine = values.to_vec();
            go_on(comm, values, |total| {
                if comm.rank() == 0 {
                    total.copy_from_slice(&mine);
                } else {
                    total.iter_mut().zip(&mine).for_each(|(total, mine)| *total += *mine);
                }
            })
        }
    }
}
// ANCHOR_END: sum

/// The values of all ranks, in their order.
///
/// # Errors
/// As for [`Communicator::agree`].
pub(crate) fn all_values(comm: &dyn Communicator, own: &[f32]) -> Result<Vec<f32>> {
    let all = comm.gather(bytemuck::cast_slice(own))?.concat();
    Ok(all.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect())
}

/// [`Communicator::carry`] for one float type.
///
/// # Errors
/// As for [`Communicator::agree`].
pub fn go_on<N: Number>(
    comm: &dyn Communicator,
    total: &mut [N],
    mut own: impl FnMut(&mut [N]),
) -> Result<()> {
    comm.carry(N::values(total), &mut |total| {
        if let Some(total) = N::of(total) {
            own(total);
        }
    })
}
