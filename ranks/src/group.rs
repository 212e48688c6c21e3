//! Collectives made of messages: agreement, sums, gathering.

use crate::communicator::{Call, Communicator, Op, Values};
use crate::error::{Error, Others, Refusal, Result};
use crate::link::{Link, Lost};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// A communicator over any link.
pub struct Group<L: Link> {
    link: L,
    calls: Cell<u64>,
    sent: Cell<u64>,
    waited: Cell<Duration>,
    /// Why nothing can be exchanged any more. It stays.
    broken: RefCell<Option<Error>>,
}

/// What a rank sends the others before each call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Notice {
    /// Calls before this one.
    number: u64,
    name: String,
    size: String,
    digest: u64,
    refusal: Option<Refusal>,
}

impl Notice {
    /// The call, in words.
    fn words(&self) -> String {
        let call = Call { name: self.name.clone(), size: self.size.clone(), digest: 0 };
        format!("call {}, {call}", self.number)
    }
}

impl<L: Link> Group<L> {
    /// The communicator of a link.
    pub fn new(link: L) -> Self {
        Self {
            link,
            calls: Cell::new(0),
            sent: Cell::new(0),
            waited: Cell::default(),
            broken: RefCell::new(None),
        }
    }

    fn others(&self) -> Vec<usize> {
        (0..self.link.world_size()).filter(|rank| *rank != self.link.rank()).collect()
    }

    fn exchange(
        &self,
        call: &dyn Fn() -> String,
        out: &[(usize, &[u8])],
        from: &[usize],
    ) -> Result<Vec<Vec<u8>>> {
        let bytes: usize = out.iter().map(|(_, bytes)| bytes.len()).sum();
        self.sent.set(self.sent.get() + bytes as u64);
        let done = self.timed(|| self.link.exchange(out, from));
        done.map_err(|lost| self.lost(lost, call()))
    }

    fn timed<R>(&self, work: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = work();
        self.waited.set(self.waited.get() + start.elapsed());
        result
    }

    /// Nothing can be exchanged any more: who went on would meet messages of this call.
    fn lost(&self, lost: Lost, call: String) -> Error {
        let error = match lost {
            Lost::Missing(rank) => Error::Missing { rank, call, seconds: self.link.patience() },
            Lost::Gone(rank) => Error::Gone { rank, call },
        };
        *self.broken.borrow_mut() = Some(error.clone());
        error
    }

    /// A call whose ranks do not refuse.
    fn begin(&self, name: &str, size: String) -> Result<()> {
        self.agree(Call::new(name, size), Ok(()))
    }
}

impl<L: Link> Group<L> {
    /// Each rank adds up its part of the elements, in the order of the ranks, and sends it to the others.
    fn reduce_parts(
        &self,
        values: &mut Values<'_>,
        op: Op,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        let (rank, others) = (self.rank(), self.others());
        let parts = parts(values.len(), self.world_size());
        let size = values.bytes().len() / values.len().max(1);
        let bytes = |part: &std::ops::Range<usize>| part.start * size..part.end * size;
        let theirs = {
            let all = values.bytes();
            let out: Vec<_> = others.iter().map(|r| (*r, &all[bytes(&parts[*r])])).collect();
            self.exchange(call, &out, &others)?
        };
        let own = parts[rank].clone();
        let mut of_ranks = theirs.into_iter();
        let mine = values.bytes()[bytes(&own)].to_vec();
        let mut mine = Some(mine);
        for r in 0..self.world_size() {
            let next = if r == rank { mine.take() } else { of_ranks.next() }.unwrap_or_default();
            match values {
                Values::F32(values) => reduce(&mut values[own.clone()], &next, r == 0, op, larger),
                Values::F64(values) => reduce(&mut values[own.clone()], &next, r == 0, op, larger),
            }
        }
        let done = values.bytes()[bytes(&own)].to_vec();
        let out: Vec<_> = others.iter().map(|r| (*r, done.as_slice())).collect();
        for (r, part) in others.iter().zip(self.exchange(call, &out, &others)?) {
            self.put(&mut values.bytes_mut()[bytes(&parts[*r])], &part, *r, call)?;
        }
        Ok(())
    }

    /// Bytes that came, which must be as many as were agreed on.
    fn put(
        &self,
        into: &mut [u8],
        bytes: &[u8],
        rank: usize,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        if into.len() != bytes.len() {
            return Err(self.lost(Lost::Gone(self.link.name(rank)), call()));
        }
        into.copy_from_slice(bytes);
        Ok(())
    }
}

impl<L: Link> Communicator for Group<L> {
    fn rank(&self) -> usize {
        self.link.rank()
    }

    fn world_size(&self) -> usize {
        self.link.world_size()
    }

    fn name(&self) -> usize {
        self.link.name(self.link.rank())
    }

    // ANCHOR: agree
    fn agree(&self, call: Call, mine: std::result::Result<(), Refusal>) -> Result<()> {
        if let Some(error) = self.broken.borrow().clone() {
            return Err(error);
        }
        let number = self.calls.replace(self.calls.get() + 1);
        let Call { name, size, digest } = call;
        let mine = Notice { number, name, size, digest, refusal: mine.err() };
        let message = serde_json::to_vec(&mine).unwrap_or_default();
        let others = self.others();
        let out: Vec<_> = others.iter().map(|rank| (*rank, message.as_slice())).collect();
        let mut notices = Vec::new();
        for (rank, bytes) in others.iter().zip(self.exchange(&|| mine.words(), &out, &others)?) {
            let notice: Option<Notice> = serde_json::from_slice(&bytes).ok();
            notices.push(
                notice.ok_or_else(|| self.lost(Lost::Gone(self.link.name(*rank)), mine.words()))?,
            );
        }
        notices.insert(self.rank(), mine);
        // From here on every rank looks at the same notices, and so comes to the same end.
        let verdict = verdict(&notices, &|rank| self.link.name(rank));
        if let Err(error @ Error::Elsewhere { .. }) = &verdict {
            *self.broken.borrow_mut() = Some(error.clone());
        }
        verdict
    }
    // ANCHOR_END: agree

    fn all_reduce(&self, mut values: Values<'_>, op: Op) -> Result<()> {
        let name = if op == Op::Sum { "a sum" } else { "a maximum" };
        self.begin(name, values.words())?;
        let words = values.words();
        let call = || format!("{name} of {words}");
        match self.timed(|| self.link.all_reduce(&mut values, op)) {
            Some(done) => {
                let (w, bytes) = (self.world_size() as u64, values.bytes().len() as u64);
                self.sent.set(self.sent.get() + 2 * (w - 1) * bytes / w);
                done.map_err(|lost| self.lost(lost, call()))
            }
            None => self.reduce_parts(&mut values, op, &call),
        }
    }

    // ANCHOR: carry
    fn carry(&self, mut total: Values<'_>, own: &mut dyn FnMut(Values<'_>)) -> Result<()> {
        self.begin("a sum in order", total.words())?;
        let words = total.words();
        let call = || format!("a sum in order of {words}");
        let (rank, last) = (self.rank(), self.world_size() - 1);
        if rank > 0 {
            let before = self.exchange(&call, &[], &[rank - 1])?;
            self.put(total.bytes_mut(), &before[0], rank - 1, &call)?;
        }
        own(total.again());
        if rank < last {
            self.exchange(&call, &[(rank + 1, total.bytes())], &[])?;
            let whole = self.exchange(&call, &[], &[last])?;
            self.put(total.bytes_mut(), &whole[0], last, &call)
        } else {
            let out: Vec<_> = (0..last).map(|rank| (rank, total.bytes())).collect();
            self.exchange(&call, &out, &[]).map(drop)
        }
    }
    // ANCHOR_END: carry

    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.begin("a gathering", String::new())?;
        let others = self.others();
        let out: Vec<_> = others.iter().map(|rank| (*rank, bytes)).collect();
        let mut all = self.exchange(&|| "a gathering".into(), &out, &others)?;
        all.insert(self.rank(), bytes.to_vec());
        Ok(all)
    }

    fn broadcast(&self, root: usize, bytes: &[u8]) -> Result<Vec<u8>> {
        let world_size = self.world_size();
        let mine = if root < world_size {
            Ok(())
        } else {
            Err(quadrivium::Error::Rank { rank: root, world_size }.into())
        };
        self.agree(Call::new("a broadcast", format!("what rank {root} has")), mine)?;
        let call = || "a broadcast".to_string();
        if self.rank() == root {
            let out: Vec<_> = self.others().into_iter().map(|rank| (rank, bytes)).collect();
            self.exchange(&call, &out, &[])?;
            return Ok(bytes.to_vec());
        }
        Ok(self.exchange(&call, &[], &[root])?.swap_remove(0))
    }

    fn split(&self, colour: usize) -> Result<Box<dyn Communicator>> {
        let colours = self.gather(&(colour as u64).to_le_bytes())?;
        let colour = |bytes: Vec<u8>| bytes.iter().rev().fold(0, |n, byte| n << 8 | *byte as usize);
        let colours: Vec<usize> = colours.into_iter().map(colour).collect();
        let link = self.link.split(&colours).map_err(|lost| self.lost(lost, "a split".into()))?;
        Ok(Box::new(Group::new(link)))
    }

    fn sent(&self) -> u64 {
        self.sent.get()
    }

    fn waited(&self) -> Duration {
        self.waited.get()
    }
}

/// What the notices of all ranks come to. Errors have the ranks' names.
fn verdict(notices: &[Notice], name: &dyn Fn(usize) -> usize) -> Result<()> {
    if let Some(odd) = odd_one(notices, |n| (n.number, n.name.clone(), n.size.clone())) {
        let [its, theirs] = [odd.rank, odd.usual].map(|rank| notices[rank].words());
        return Err(Error::Elsewhere {
            rank: name(odd.rank),
            its,
            others: odd.others(name),
            theirs,
        });
    }
    for (rank, notice) in notices.iter().enumerate() {
        match notice.refusal.clone() {
            Some(Refusal::Heard { rank, why }) => return Err(Error::Refused { rank, why: *why }),
            Some(Refusal::Told(words)) => return Err(Error::Told(words)),
            Some(why) => return Err(Error::Refused { rank: name(rank), why }),
            None => {}
        }
    }
    match odd_one(notices, |notice| notice.digest) {
        Some(odd) => {
            let (rank, others) = (name(odd.rank), odd.others(name));
            Err(Error::Apart { rank, others, call: notices[odd.rank].words() })
        }
        None => Ok(()),
    }
}

/// A rank that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Odd {
    /// The lowest one whose value is not the most frequent.
    pub rank: usize,
    /// The first that has the most frequent value; of equally frequent ones, that of the lowest rank.
    pub usual: usize,
    /// Whether as many have the one as the other.
    pub tied: bool,
}

impl Odd {
    /// From whom it differs, by name.
    pub fn others(&self, name: &dyn Fn(usize) -> usize) -> Others {
        if self.tied { Others::Rank(name(self.usual)) } else { Others::Most }
    }
}

/// The ranks that differ from most.
pub(crate) fn odd_one<T, K: PartialEq>(all: &[T], of: impl Fn(&T) -> K) -> Option<Odd> {
    let keys: Vec<K> = all.iter().map(of).collect();
    let count = |place: usize| keys.iter().filter(|other| **other == keys[place]).count();
    let mut usual = 0;
    for place in 1..keys.len() {
        if count(place) > count(usual) {
            usual = place;
        }
    }
    let rank = keys.iter().position(|key| *key != keys[usual])?;
    Some(Odd { rank, usual, tied: count(rank) == count(usual) })
}

/// The part of `len` elements that each rank adds up.
fn parts(len: usize, world_size: usize) -> Vec<std::ops::Range<usize>> {
    let begin = |rank: usize| rank * len / world_size;
    (0..world_size).map(|rank| begin(rank)..begin(rank + 1)).collect()
}

fn larger<N: PartialOrd + Copy>(a: N, b: N) -> N {
    if a >= b { a } else { b }
}

/// Takes the elements in `bytes` into `values`; the first rank's replace what is there.
fn reduce<N>(values: &mut [N], bytes: &[u8], first: bool, op: Op, larger: fn(N, N) -> N)
where
    N: bytemuck::Pod + std::ops::Add<Output = N>,
{
    let elements = bytes.chunks_exact(size_of::<N>()).map(bytemuck::pod_read_unaligned::<N>);
    for (value, next) in values.iter_mut().zip(elements) {
        *value = match (first, op) {
            (true, _) => next,
            (false, Op::Sum) => *value + next,
            (false, Op::Max) => larger(*value, next),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_odd_one_is_not_with_the_most() {
        let odd = |values: &[u8]| {
            odd_one(values, |value| *value).map(|odd| (odd.rank, odd.usual, odd.tied))
        };
        assert_eq!(odd(&[]), None);
        assert_eq!(odd(&[1, 1, 1]), None);
        assert_eq!(odd(&[1, 2, 1]), Some((1, 0, false)));
        assert_eq!(odd(&[2, 1, 1]), Some((0, 1, false)));
        assert_eq!(odd(&[1, 2]), Some((1, 0, true)), "of two nobody knows who is right");
        assert_eq!(odd(&[3, 1, 2, 2, 1]), Some((0, 1, false)));
    }

    #[test]
    fn parts_have_all_elements() {
        for (len, w) in [(0, 3), (2, 4), (7, 3), (8, 8)] {
            let parts = parts(len, w);
            assert_eq!(parts.iter().map(|part| part.len()).sum::<usize>(), len);
            assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }
}
