//! The roll of a run: which ranks have come and from which host, which ranks each of them waits for, and why one ended.
//!
//! One process keeps it: the command that starts the ranks, or rank 0 where something else has started them. Every rank
//! has a connection to it, over which it says something at least every [`BEAT`], so it makes no difference on which host
//! a rank is. A message is a line of JSON.

mod place;

use place::{INTRODUCTION, once, receive_by};
pub(crate) use place::{Place, host};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a rank says that it is alive.
pub(crate) const BEAT: Duration = Duration::from_millis(500);
/// A rank that is alive is heard within this time, however busy its cores are.
const QUIET: Duration = Duration::from_secs(3);
/// A host that takes no byte within this time is cut off.
pub(crate) const TAKES: Duration = Duration::from_secs(10);
/// Connections, besides those of the ranks, that may be saying who they are.
const STRANGERS: usize = 64;
/// Bytes of a message at most: one that names all ranks, with room.
const LONGEST: u64 = 1 << 20;

/// What a rank says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Said {
    /// First of all: who it is.
    Here { proof: String, once: String, rank: usize, process: u32, host: String },
    /// That it is alive.
    Alive,
    /// For whom it waits; `None` when it has stopped waiting.
    Waits(Option<Vec<usize>>),
    /// A question: who of these keeps the others waiting?
    WhoKeepsUsWaiting(Vec<usize>),
    /// The files of shared memory that MPI has made for it.
    SharedMemory(Vec<String>),
    /// That it has done its work, and may end.
    Done,
    /// Why it ends.
    Why(String),
}

/// What the keeper answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// First of all: a number, for it to prove who it is.
    Who(String),
    /// That it is let in, and by whom.
    Welcome(String),
    /// That its message was heard.
    Heard,
    /// The hosts of all ranks, once all have come.
    Hosts(Vec<String>),
    /// The rank that does not wait for another one; `None` if all do.
    KeepsWaiting(Option<usize>),
}

/// Writes a message.
pub(crate) fn send(mut to: &TcpStream, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// Reads a message; `None` at the end, or if it is none.
pub(crate) fn receive<M: for<'a> Deserialize<'a>>(from: &mut impl BufRead) -> Option<M> {
    let mut line = Vec::new();
    from.take(LONGEST).read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

/// What is known of a rank.
#[derive(Debug, Default)]
struct Entry {
    process: Option<u32>,
    host: String,
    /// When it last said something.
    heard: Option<Instant>,
    /// When its connection ended.
    ended: Option<Instant>,
    waits: Option<Vec<usize>>,
    shared_memory: Vec<String>,
    done: bool,
    /// The first reason that it gave, and when.
    why: Option<(Instant, String)>,
    to: Option<Arc<Mutex<TcpStream>>>,
}

impl Entry {
    fn is_silent(&self) -> bool {
        let quiet = self.heard.is_some_and(|at| at.elapsed() > QUIET);
        quiet && !self.done && self.ended.is_none()
    }

    /// Ends its connection. One that is being written to ends when its time is over.
    fn shut(&self) {
        let to = self.to.as_ref().and_then(|to| to.try_lock().ok());
        let _ = to.map(|to| to.shutdown(Shutdown::Both));
    }
}

/// Without a lock on the roll: the other side may be slow to take it. A connection that takes nothing ends.
fn tell(to: Option<Arc<Mutex<TcpStream>>>, answer: &Answer) {
    let Some(to) = to else { return };
    let to = to.lock().unwrap_or_else(PoisonError::into_inner);
    if send(&to, answer).is_err() {
        let _ = to.shutdown(Shutdown::Both);
    }
}

/// The roll, as its keeper has it. Dropped, all connections end, and the ranks with them.
#[derive(Debug)]
pub(crate) struct Roll {
    place: Place,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    entries: Mutex<Vec<Entry>>,
    strangers: AtomicUsize,
    closed: AtomicBool,
}

impl Roll {
    /// Begins a roll of `world_size` ranks; of other hosts, too, if `everywhere`.
    ///
    /// # Errors
    /// The system gives no socket, or no random numbers.
    pub(crate) fn begin(world_size: usize, everywhere: bool) -> io::Result<Self> {
        let ip = if everywhere { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
        let listener = TcpListener::bind((ip, 0))?;
        let place = Place::new(listener.local_addr()?.port(), everywhere)?;
        let shared = Arc::new(Shared {
            entries: Mutex::new((0..world_size).map(|_| Entry::default()).collect()),
            strangers: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        });
        let roll = Self { place: place.clone(), shared: shared.clone() };
        std::thread::Builder::new().spawn(move || shared.let_in(&listener, &place))?;
        Ok(roll)
    }

    /// Where it is kept.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// The process ids of the ranks that have come so far, in the order of the ranks.
    pub(crate) fn processes(&self) -> Vec<Option<u32>> {
        self.shared.entries().iter().map(|entry| entry.process).collect()
    }

    /// The host of each rank that has come.
    pub(crate) fn hosts(&self) -> Vec<String> {
        self.shared.entries().iter().map(|entry| entry.host.clone()).collect()
    }

    /// The first rank whose connection ended before it was done.
    pub(crate) fn gone(&self) -> Option<usize> {
        let entries = self.shared.entries();
        let all = entries.iter().enumerate().filter(|(_, entry)| !entry.done);
        all.filter_map(|(rank, entry)| Some((entry.ended?, rank))).min().map(|(_, rank)| rank)
    }

    /// A rank that should have been heard, and was not.
    pub(crate) fn silent(&self) -> Option<usize> {
        self.shared.entries().iter().position(Entry::is_silent)
    }

    /// The reason that a rank gave.
    pub(crate) fn why(&self, rank: usize) -> Option<(Instant, String)> {
        self.shared.entries()[rank].why.clone()
    }

    /// The files of shared memory that MPI has made for the ranks.
    pub(crate) fn shared_memory(&self) -> Vec<String> {
        let mut entries = self.shared.entries();
        entries.iter_mut().flat_map(|entry| std::mem::take(&mut entry.shared_memory)).collect()
    }
}

impl Drop for Roll {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        for entry in self.shared.entries().iter() {
            entry.shut();
        }
        // Wakes the listening thread.
        drop(self.place.addresses.first().map(TcpStream::connect));
    }
}

impl Shared {
    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens until the roll is dropped.
    fn let_in(self: &Arc<Self>, listener: &TcpListener, place: &Place) {
        for stream in listener.incoming() {
            if self.closed.load(Ordering::SeqCst) {
                break;
            }
            let (shared, place) = (self.clone(), place.clone());
            let Ok(stream) = stream else {
                std::thread::sleep(BEAT); // there are too many files: some may be closed meanwhile
                continue;
            };
            let most = self.entries().len() + STRANGERS;
            if self.strangers.fetch_add(1, Ordering::SeqCst) >= most {
                self.strangers.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            let listen = move || {
                let introduced = shared.introduce(stream, &place);
                shared.strangers.fetch_sub(1, Ordering::SeqCst);
                if let Some((rank, from)) = introduced {
                    shared.listen(rank, from);
                }
            };
            if std::thread::Builder::new().spawn(listen).is_err() {
                self.strangers.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// The rank that a connection is from. `None` if it is no rank of this run.
    fn introduce(&self, stream: TcpStream, place: &Place) -> Option<(usize, BufReader<TcpStream>)> {
        let (until, mine) = (Instant::now() + INTRODUCTION, once().ok()?);
        stream.set_nodelay(true).ok()?;
        stream.set_write_timeout(Some(TAKES)).ok()?;
        send(&stream, &Answer::Who(mine.clone())).ok()?;
        let to = stream.try_clone().ok()?;
        let mut from = BufReader::new(stream);
        let Said::Here { proof, once, rank, process, host } = receive_by(&mut from, until)? else {
            return None;
        };
        from.get_ref().set_read_timeout(None).ok()?;
        let all_have_come = {
            let mut entries = self.entries();
            let entry = entries.get_mut(rank)?;
            let is_rank = proof == place.proof("rank", &mine) && entry.process.is_none();
            if !is_rank || self.closed.load(Ordering::SeqCst) {
                return None;
            }
            // Before any other message to it.
            send(&to, &Answer::Welcome(place.proof("keeper", &once))).ok()?;
            let (process, heard) = (Some(process), Some(Instant::now()));
            let to = Some(Arc::new(Mutex::new(to)));
            *entry = Entry { process, host, heard, to, ..Entry::default() };
            // Under the same lock: only one rank is the last to come, so the hosts are sent once.
            entries.iter().all(|entry| entry.process.is_some())
        };
        if all_have_come {
            self.tell_hosts();
        }
        Some((rank, from))
    }

    /// Hears one rank until its connection ends.
    fn listen(&self, rank: usize, mut from: BufReader<TcpStream>) {
        while let Some(said) = receive(&mut from) {
            let answer = self.hear(rank, said);
            let to = self.entries()[rank].to.clone();
            tell(to, &answer);
        }
        let mut entries = self.entries();
        // A rank that has gone waits for no one.
        (entries[rank].ended, entries[rank].waits) = (Some(Instant::now()), None);
    }

    /// Once all ranks have come, each learns where the others are.
    fn tell_hosts(&self) {
        let (hosts, all) = {
            let entries = self.entries();
            let hosts = entries.iter().map(|entry| entry.host.clone()).collect();
            let all: Vec<_> = entries.iter().map(|entry| entry.to.clone()).collect();
            (Answer::Hosts(hosts), all)
        };
        all.into_iter().for_each(|to| tell(to, &hosts));
    }

    fn hear(&self, rank: usize, said: Said) -> Answer {
        let mut entries = self.entries();
        let entry = &mut entries[rank];
        entry.heard = Some(Instant::now());
        match said {
            Said::Here { .. } | Said::Alive => {}
            Said::Waits(ranks) => entry.waits = ranks,
            Said::SharedMemory(files) => entry.shared_memory = files,
            Said::Done => entry.done = true,
            Said::Why(why) => drop(entry.why.get_or_insert((Instant::now(), why))),
            Said::WhoKeepsUsWaiting(ranks) => {
                // A silent rank may have been cut off while it waited.
                let signed =
                    |rank: usize| entries.get(rank).filter(|of| !of.is_silent())?.waits.clone();
                return Answer::KeepsWaiting(first_not_waiting(&ranks, signed));
            }
        }
        Answer::Heard
    }
}

/// The first of `ranks` that has not said for whom it waits, or of those that they wait for, and so on: a rank that is
/// missed may itself wait for another. `None` if all wait.
fn first_not_waiting(
    ranks: &[usize],
    signed: impl Fn(usize) -> Option<Vec<usize>>,
) -> Option<usize> {
    let (mut known, mut next) = (Vec::new(), ranks.to_vec());
    while !next.is_empty() {
        if let Some(rank) = next.iter().find(|rank| signed(**rank).is_none()) {
            return Some(*rank);
        }
        known.extend(next.iter().copied());
        next = next.into_iter().filter_map(&signed).flatten().collect();
        next.sort_unstable();
        next.dedup();
        next.retain(|rank| !known.contains(rank));
    }
    None
}

/// A reason, and after it the host of the rank that it names, where the ranks are on several.
pub(crate) fn with_host(why: &str, hosts: &[String]) -> String {
    let named = || {
        let behind = why.split_once("rank ")?.1;
        let digits = behind.split(|c: char| !c.is_ascii_digit()).next()?;
        hosts
            .get(digits.parse::<usize>().ok()?)
            .filter(|host| !host.is_empty())
            .map(|h| (digits, h))
    };
    let several = hosts.iter().any(|host| *host != hosts[0]);
    match named().filter(|_| several) {
        Some((rank, host)) => format!("{why} (rank {rank} is on {host})"),
        None => why.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_another_is_not_the_one() {
        // 0 waits for 2, 2 for 3; 1 for anyone else.
        let signed =
            |rank: usize| [Some(vec![2]), Some(vec![0, 2, 3]), Some(vec![3]), None][rank].clone();
        assert_eq!(first_not_waiting(&[2], signed), Some(3));
        assert_eq!(first_not_waiting(&[3], signed), Some(3));
        assert_eq!(first_not_waiting(&[0, 2, 3], signed), Some(3));
        let circle = |rank: usize| Some(vec![1 - rank]);
        assert_eq!(first_not_waiting(&[1], circle), None, "all wait");
    }

    #[test]
    fn a_host_is_named_where_there_are_several() {
        let hosts = ["a", "a", "b", ""].map(String::from);
        let on_b = "rank 2 is stuck (rank 2 is on b)";
        assert_eq!(with_host("rank 2 is stuck", &hosts), on_b);
        assert_eq!(with_host("rank 1 is stuck", &hosts[..2]), "rank 1 is stuck");
        for unknown in ["rank 3 is stuck", "rank 4 is stuck", "all ranks wait"] {
            assert_eq!(with_host(unknown, &hosts), unknown);
        }
        assert_eq!(with_host("rank 0", &[]), "rank 0");
    }

    fn limit() -> Duration {
        Duration::from_secs(60)
    }

    fn until(is: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is() {
            assert!(begun.elapsed() < limit());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Over a connection, in both directions.
    #[test]
    fn what_ranks_say_is_on_the_roll() {
        let roll = Roll::begin(2, true).unwrap();
        let place: Place = roll.place().to_string().parse().unwrap();
        assert_eq!(&place, roll.place());
        let mut from = [0, 1].map(|rank| place.join(rank, limit()).unwrap());
        let streams = from.each_ref().map(|from| from.get_ref().try_clone().unwrap());
        let mut next = |rank: usize| receive::<Answer>(&mut from[rank]).unwrap();
        let hosts = vec![host(), host()];
        assert!((0..2).all(|rank| matches!(next(rank), Answer::Hosts(h) if h == hosts)));
        assert_eq!(roll.processes(), [Some(std::process::id()); 2]);
        send(&streams[1], &Said::Waits(Some(vec![0]))).unwrap();
        assert!(matches!(next(1), Answer::Heard));
        send(&streams[1], &Said::WhoKeepsUsWaiting(vec![0])).unwrap();
        assert!(matches!(next(1), Answer::KeepsWaiting(Some(0))));
        send(&streams[0], &Said::Why("no reason".into())).unwrap();
        assert!(matches!(next(0), Answer::Heard));
        assert_eq!(roll.why(0).map(|(_, why)| why), Some("no reason".into()));
        send(&streams[0], &Said::Done).unwrap();
        assert!(matches!(next(0), Answer::Heard));
        assert_eq!(roll.gone(), None);
        streams.iter().for_each(|stream| stream.shutdown(Shutdown::Both).unwrap());
        until(|| roll.gone().is_some());
        assert_eq!(roll.gone(), Some(1), "0 was done");
    }

    #[test]
    fn who_has_not_the_word_is_not_let_in() {
        let roll = Roll::begin(1, false).unwrap();
        let other = Roll::begin(1, false).unwrap();
        // The word of the other, at this address.
        let mut wrong = other.place.clone();
        wrong.addresses = roll.place.addresses.clone();
        assert!(wrong.join(0, limit()).is_err());
        assert!(roll.place.join(1, limit()).is_err(), "there is no rank 1");
        assert_eq!(roll.processes(), [None]);
        let _in = roll.place.join(0, limit()).unwrap();
        assert!(roll.place.join(0, limit()).is_err(), "it is there already");
    }

    /// Bytes that come one by one are no way to hold a place.
    #[test]
    fn who_does_not_introduce_itself_is_left() {
        let roll = Roll::begin(1, false).unwrap();
        let address = roll.place.addresses[0];
        let silent: Vec<TcpStream> =
            (0..200).map(|_| TcpStream::connect(address).unwrap()).collect();
        until(|| roll.shared.strangers.load(Ordering::SeqCst) == 1 + STRANGERS);
        // More are not heard at all, and these only for a while.
        until(|| roll.shared.strangers.load(Ordering::SeqCst) == 0);
        let _in = roll.place.join(0, limit()).unwrap();
        drop(silent);
    }

    #[test]
    fn a_roll_that_is_dropped_ends_its_connections() {
        let roll = Roll::begin(1, false).unwrap();
        let mut from = roll.place().join(0, limit()).unwrap();
        drop(roll);
        while receive::<Answer>(&mut from).is_some() {}
    }
}
