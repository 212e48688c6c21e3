//! Ranks that are threads of one process: a channel from each to each.

use super::{Link, Lost, members, names_of};
use crate::communicator::Communicator;
use crate::group::Group;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// One thread's channels.
#[derive(Debug)]
pub struct Threads {
    rank: usize,
    /// Of all ranks of this group.
    names: Vec<usize>,
    patience: Duration,
    /// To each rank. The one to itself is not used.
    to: Vec<Sender<Parcel>>,
    /// From each rank.
    from: Vec<Receiver<Parcel>>,
}

/// What goes through a channel.
#[derive(Debug)]
enum Parcel {
    Bytes(Vec<u8>),
    /// A way to the sender in a smaller group.
    Line(Sender<Parcel>),
}

impl Threads {
    /// The channels of `world_size` ranks.
    pub fn all(world_size: usize, patience: Duration) -> Vec<Self> {
        let names: Vec<usize> = (0..world_size).collect();
        let new =
            |rank| Self { rank, names: names.clone(), patience, to: Vec::new(), from: Vec::new() };
        let mut links: Vec<Self> = (0..world_size).map(new).collect();
        for sender in 0..world_size {
            for receiver in 0..world_size {
                let (to, from) = channel();
                links[sender].to.push(to);
                links[receiver].from.push(from); // in the order of the senders
            }
        }
        links
    }

    fn take(&self, rank: usize, deadline: Instant) -> Result<Parcel, Lost> {
        let left = deadline.saturating_duration_since(Instant::now());
        self.from[rank].recv_timeout(left).map_err(|error| match error {
            RecvTimeoutError::Timeout => Lost::Missing(self.name(rank)),
            RecvTimeoutError::Disconnected => Lost::Gone(self.name(rank)),
        })
    }
}

impl Link for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world_size(&self) -> usize {
        self.to.len()
    }

    fn name(&self, rank: usize) -> usize {
        self.names[rank]
    }

    fn exchange(&self, out: &[(usize, &[u8])], from: &[usize]) -> Result<Vec<Vec<u8>>, Lost> {
        let deadline = Instant::now() + self.patience;
        for (rank, bytes) in out {
            // A rank that has ended is named by those that wait for it.
            let _ = self.to[*rank].send(Parcel::Bytes(bytes.to_vec()));
        }
        let take = |rank: &usize| match self.take(*rank, deadline)? {
            Parcel::Bytes(bytes) => Ok(bytes),
            Parcel::Line(_) => Err(Lost::Gone(self.name(*rank))), // it splits a group, and this rank does not
        };
        from.iter().map(take).collect()
    }

    fn split(&self, colours: &[usize]) -> Result<Self, Lost> {
        let deadline = Instant::now() + self.patience;
        let (members, rank) = members(colours, self.rank);
        let mut from = Vec::new();
        for member in &members {
            let (to_me, from_member) = channel();
            from.push(from_member);
            let _ = self.to[*member].send(Parcel::Line(to_me));
        }
        let line = |member: &usize| match self.take(*member, deadline)? {
            Parcel::Line(to) => Ok(to),
            Parcel::Bytes(_) => Err(Lost::Gone(self.name(*member))),
        };
        let to = members.iter().map(line).collect::<Result<_, _>>()?;
        let names = names_of(&members, &self.names);
        Ok(Self { rank, names, patience: self.patience, to, from })
    }

    fn patience(&self) -> u64 {
        self.patience.as_secs()
    }
}

/// Runs `work` on `world_size` ranks, each a thread, and returns what each gives, in their order. A rank that panics gives
/// `None`.
///
/// ```
/// use ranks::communicator::{Communicator, Order, sum};
/// use ranks::link::threads::run;
///
/// let of_rank = |comm: &std::rc::Rc<dyn Communicator>| {
///     let mut values = [comm.rank() as f32, 1.0];
///     sum(comm.as_ref(), Order::Any, &mut values).map(|()| values)
/// };
/// assert!(run(3, of_rank).into_iter().all(|got| got == Some(Ok([3.0, 3.0]))));
/// ```
pub fn run<R: Send>(
    world_size: usize,
    work: impl Fn(&Rc<dyn Communicator>) -> R + Sync,
) -> Vec<Option<R>> {
    run_for(world_size, PATIENCE, work)
}

/// How long a rank is waited for, if nothing else is said.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// [`run`] with another patience.
pub fn run_for<R: Send>(
    world_size: usize,
    patience: Duration,
    work: impl Fn(&Rc<dyn Communicator>) -> R + Sync,
) -> Vec<Option<R>> {
    let links = Threads::all(world_size, patience);
    std::thread::scope(|scope| {
        let start = |link| {
            let work = &work;
            scope.spawn(move || {
                let comm: Rc<dyn Communicator> = Rc::new(Group::new(link));
                work(&comm)
            })
        };
        let threads: Vec<_> = links.into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().ok()).collect()
    })
}
