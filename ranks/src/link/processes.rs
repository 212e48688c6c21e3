//! Ranks that are processes, over MPI.
//!
//! MPI's own calls wait for ever if a rank does not come. Therefore no call here waits: each is begun, and asked again
//! and again whether it is done, until the patience ends. The few that can't be asked are watched by [`crate::watch`].

use super::{Link, Lost, members, names_of};
use crate::communicator::{Op, Values};
use crate::roll::Roll;
use crate::watch;
use mpi::collective::SystemOperation;
use mpi::environment::Universe;
use mpi::point_to_point::MatchedReceiveVec;
use mpi::request::{self, Request};
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::*;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// All messages of this course. Those of a pair of ranks arrive in their order, so no more is needed.
const TAG: i32 = 17;
/// Times that a call is asked at once; then this process makes room for others that could run.
const SPINS: u64 = 20;
/// Times that it is asked so; then it rests in between.
const YIELDS: u64 = 400;
const REST: Duration = Duration::from_micros(50);

/// One process's way to the others.
pub struct Processes {
    world: SimpleCommunicator,
    rank: usize,
    /// Of all ranks of this group.
    names: Vec<usize>,
    patience: Duration,
}

/// Joins the other processes that mpirun has started. The first value must live as long as the second is used; dropped, it
/// takes leave of them. `None` if this process has done so before.
pub fn join(patience: Duration) -> Option<(Universe, Processes)> {
    watch::begin(patience);
    let start = || mpi::initialize_with_threading(mpi::Threading::Funneled);
    let (universe, _) = watch::during("the start of MPI", start)?;
    let world = universe.world();
    let rank = world.rank() as usize;
    let names = (0..world.size() as usize).collect();
    if !watch::is_on_roll() {
        begin_roll(&world);
    }
    watch::note_shared_memory();
    Some((universe, Processes { world, rank, names, patience }))
}

/// The roll of ranks that no command has started.
static ROLL: OnceLock<Roll> = OnceLock::new();

/// Rank 0 begins a roll, and tells the others where it is.
fn begin_roll(world: &SimpleCommunicator) {
    let first = world.process_at_rank(0);
    let mut place = match world.rank() {
        0 => match Roll::begin(world.size() as usize, !watch::is_all_here()) {
            Ok(roll) => ROLL.get_or_init(|| roll).place().to_string(),
            Err(why) => watch::die(&format!("rank 0 can't begin a roll: {why}")),
        },
        _ => String::new(),
    }
    .into_bytes();
    watch::during("the start of the roll", || {
        let mut length = place.len() as u64;
        first.broadcast_into(&mut length);
        place.resize(length as usize, 0);
        first.broadcast_into(&mut place[..]);
    });
    match String::from_utf8_lossy(&place).parse() {
        Ok(place) => watch::come_to(&place, true),
        Err(why) => watch::die(&format!("rank 0 sent no valid address of its roll: {why}")),
    }
}

/// Takes leave of the others, if all do so in time.
pub fn leave(universe: Universe) {
    watch::during("the end of MPI", || drop(universe));
}

impl Processes {
    /// Asks whether it is done, and makes room for others now and then: there may be more ranks than cores. `ask` also says
    /// for whom it waits, where it is given a place for that.
    fn until_done(&self, mut ask: impl FnMut(Option<&mut Vec<usize>>) -> bool) -> bool {
        let (start, mut signed) = (Instant::now(), false);
        for turn in 0u64.. {
            if ask(None) {
                break;
            }
            match turn {
                0..SPINS => std::hint::spin_loop(),
                SPINS..YIELDS => std::thread::yield_now(),
                _ => std::thread::sleep(REST),
            }
            if turn % 16 != 15 {
                continue;
            }
            if start.elapsed() > self.patience {
                return false;
            }
            if !signed && start.elapsed() > watch::sign_after(self.patience) {
                let mut names = Vec::new();
                ask(Some(&mut names));
                watch::sign(&names);
                signed = true;
            }
        }
        if signed {
            watch::sign_off();
        }
        true
    }

    fn others(&self) -> Vec<usize> {
        self.names.iter().copied().filter(|name| *name != self.names[self.rank]).collect()
    }

    fn all_reduce<T: Equivalence + Copy>(
        &self,
        values: &mut [T],
        op: SystemOperation,
    ) -> Result<(), Lost> {
        let mine = values.to_vec();
        request::scope(|scope| {
            let begun = self.world.immediate_all_reduce_into(scope, &mine[..], values, op);
            let mut begun = Some(begun);
            let ask = |for_whom: Option<&mut Vec<usize>>| {
                for_whom.into_iter().for_each(|names| names.extend(self.others()));
                completed(&mut begun)
            };
            if !self.until_done(ask) {
                // MPI keeps the memory of a reduction that has begun, so there is no way back.
                let did_not_end = format!("did not end within {} s", self.patience.as_secs());
                let what = "a reduction that all ranks began";
                watch::die(&match watch::culprit(&self.others()) {
                    Some(rank) => format!("rank {rank} stopped in {what}: it {did_not_end}"),
                    None => format!("{what} {did_not_end}, and all ranks wait"),
                });
            }
        });
        Ok(())
    }
}

fn completed<'a, D: ?Sized, S: request::Scope<'a>>(begun: &mut Option<Request<'a, D, S>>) -> bool {
    match begun.take().map(Request::test) {
        Some(Err(request)) => {
            *begun = Some(request);
            false
        }
        _ => true,
    }
}

impl Link for Processes {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world_size(&self) -> usize {
        self.world.size() as usize
    }

    fn name(&self, rank: usize) -> usize {
        self.names[rank]
    }

    fn exchange(&self, out: &[(usize, &[u8])], from: &[usize]) -> Result<Vec<Vec<u8>>, Lost> {
        let process = |rank: usize| self.world.process_at_rank(rank as i32);
        let mut taken: Vec<Option<Vec<u8>>> = vec![None; from.len()];
        request::scope(|scope| {
            let mut sends = Vec::new();
            for (rank, bytes) in out {
                let begun = process(*rank).immediate_send_with_tag(scope, *bytes, TAG);
                sends.push((*rank, Some(begun)));
            }
            let done = self.until_done(|for_whom| {
                for (rank, taken) in from.iter().zip(&mut taken) {
                    if taken.is_none()
                        && let Some(message) = process(*rank).immediate_matched_probe_with_tag(TAG)
                    {
                        let name = self.name(*rank);
                        let what = format!("a message of rank {name}, which has begun,");
                        let take = || message.matched_receive_vec::<u8>().0;
                        *taken = Some(watch::during(&what, take));
                    }
                }
                sends.retain_mut(|(_, begun)| !completed(begun));
                let silent = from.iter().zip(&taken).filter(|(_, taken)| taken.is_none());
                let mut missing = silent.map(|(rank, _)| rank).chain(sends.iter().map(|(r, _)| r));
                match for_whom {
                    None => missing.next().is_none(),
                    Some(names) => {
                        names.extend(missing.map(|rank| self.name(*rank)));
                        names.is_empty()
                    }
                }
            });
            // MPI keeps the memory of a message that has begun, so there is no way back.
            let to: Vec<usize> = sends.iter().map(|(rank, _)| self.name(*rank)).collect();
            if !done && !to.is_empty() {
                let (rank, seconds) =
                    (watch::culprit(&to).unwrap_or(to[0]), self.patience.as_secs());
                watch::die(&format!("rank {rank} did not take a message within {seconds} s"));
            }
        });
        let silent = from.iter().zip(&taken).filter(|(_, taken)| taken.is_none());
        let silent: Vec<usize> = silent.map(|(rank, _)| self.name(*rank)).collect();
        match silent.is_empty() {
            true => Ok(taken.into_iter().flatten().collect()),
            false => Err(Lost::Missing(watch::culprit(&silent).unwrap_or(silent[0]))),
        }
    }

    fn all_reduce(&self, values: &mut Values<'_>, op: Op) -> Option<Result<(), Lost>> {
        let op = match op {
            Op::Sum => SystemOperation::sum(),
            Op::Max => SystemOperation::max(),
        };
        Some(match values {
            Values::F32(values) => Processes::all_reduce(self, values, op),
            Values::F64(values) => Processes::all_reduce(self, values, op),
        })
    }

    fn split(&self, colours: &[usize]) -> Result<Self, Lost> {
        let (members, rank) = members(colours, self.rank);
        // A colour of MPI is a small number: the lowest rank that has it.
        let colour = Color::with_value(members[0] as i32);
        let split = || self.world.split_by_color(colour);
        let world = watch::during("a split of the ranks", split);
        let world = world.ok_or(Lost::Gone(self.names[self.rank]))?;
        let names = names_of(&members, &self.names);
        Ok(Self { world, rank, names, patience: self.patience })
    }

    fn patience(&self) -> u64 {
        self.patience.as_secs()
    }
}
