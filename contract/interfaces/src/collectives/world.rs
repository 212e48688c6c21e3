//! The ranks of a world as threads, and what they hand to each other.
//!
//! Nothing here waits for a clock. A collective comes to its end when every rank has called one. It never will when
//! every rank that has not ended waits in one, and one has ended: then all that wait get an error at once. Which rank
//! came first makes no difference to any result.

use super::interface::{
    Communicator, Kind, Lost, RankCall, RankError, RankOutcome, Trouble, World,
};
use crate::panics;
use crate::interface::{Refusal, Reply};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Runs the program of a rank on `world_size` ranks at once, and says how each has ended. A panic is an end like any
/// other. One rank may be `lost` on the way.
///
/// # Errors
/// The system gives no thread.
pub fn run<T: Send>(
    world_size: usize,
    lost: Option<Lost>,
    program: impl Fn(&dyn Communicator) -> Result<T, RankError> + Sync,
) -> Reply<World<T>> {
    let meeting = Meeting::new(world_size, lost);
    let mut started = Ok(());
    let ranks: Vec<RankOutcome<T>> = thread::scope(|scope| {
        let (meeting, program) = (&meeting, &program);
        let start = |rank| {
            let live = move || {
                let ended = catch_unwind(AssertUnwindSafe(|| program(&Rank { rank, meeting })));
                // In the thread that panicked: its place is kept there.
                let outcome = match ended {
                    _ if meeting.loses(rank) => RankOutcome::Lost,
                    Ok(Ok(result)) => RankOutcome::Result(result),
                    Ok(Err(error)) => RankOutcome::Refused(error),
                    Err(payload) => RankOutcome::Panicked(panics::message(&*payload)),
                };
                meeting.end(rank);
                outcome
            };
            thread::Builder::new().name(format!("rank {rank}")).spawn_scoped(scope, live)
        };
        let mut threads = Vec::new();
        for rank in 0..world_size {
            match start(rank) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    started = Err(Refusal::not_asked(format!("no thread for rank {rank}: {error}")));
                    meeting.end(rank);
                }
            }
        }
        let lost = |_| RankOutcome::Panicked("the thread of this rank was lost".to_string());
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(lost)).collect()
    });
    started?;
    let state = meeting.lock();
    Ok(World { ranks, trouble: state.trouble, handed: state.handed.clone() })
}

/// A rank that has called a collective.
struct Arrived {
    call: RankCall,
    values: Vec<f32>,
}

/// Where a rank is.
enum Place {
    /// It computes.
    Away,
    /// It waits in a collective.
    Waits(Arrived),
    /// All have come, and this is what it takes away.
    Served(Vec<f32>),
    /// It has ended.
    Ended,
}

struct State {
    places: Vec<Place>,
    /// How many collectives each rank has called.
    calls: Vec<usize>,
    handed: Vec<usize>,
    trouble: Option<Trouble>,
    /// Whether the rank that is to be lost is.
    is_lost: bool,
}

/// Where ranks meet.
struct Meeting {
    state: Mutex<State>,
    moved: Condvar,
    lost: Option<Lost>,
}

impl Meeting {
    fn new(world_size: usize, lost: Option<Lost>) -> Self {
        let places = (0..world_size).map(|_| Place::Away).collect();
        let zeros = vec![0; world_size];
        let (calls, handed) = (zeros.clone(), zeros);
        let state = State { places, calls, handed, trouble: None, is_lost: false };
        Self { state: Mutex::new(state), moved: Condvar::new(), lost }
    }

    /// Whether this rank is the one that was lost.
    fn loses(&self, rank: usize) -> bool {
        self.lost.is_some_and(|lost| lost.rank == rank) && self.lock().is_lost
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No program of a rank runs under the lock, so nothing is half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A rank comes to a collective, and goes when all have come.
    fn meet(&self, rank: usize, kind: Kind, values: &[f32]) -> Result<Vec<f32>, Trouble> {
        let mut state = self.lock();
        if let Some(trouble) = state.trouble {
            return Err(trouble);
        }
        if self.lost == Some(Lost { rank, after: state.calls[rank] }) {
            state.is_lost = true;
            drop(state);
            // The rest of its program never runs. No word is printed, since nothing is wrong with it.
            resume_unwind(Box::new("this rank is lost"));
        }
        state.calls[rank] += 1;
        state.handed[rank] += values.len();
        let call = RankCall { kind, values: values.len(), nth: state.calls[rank] };
        state.places[rank] = Place::Waits(Arrived { call, values: values.to_vec() });
        if state.settle() {
            self.moved.notify_all();
        }
        loop {
            if let Place::Served(values) = &mut state.places[rank] {
                let values = std::mem::take(values);
                state.places[rank] = Place::Away;
                return Ok(values);
            }
            if let Some(trouble) = state.trouble {
                state.places[rank] = Place::Away;
                return Err(trouble);
            }
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn end(&self, rank: usize) {
        let mut state = self.lock();
        state.places[rank] = Place::Ended;
        if state.settle() {
            self.moved.notify_all();
        }
    }
}

impl State {
    /// Ends the collective that all ranks have come to, or that some never will. Says whether anything has changed.
    fn settle(&mut self) -> bool {
        if self.trouble.is_some() || !self.places.iter().all(Place::is_settled) {
            return false;
        }
        let calls: Vec<(usize, RankCall)> = self.waiting().map(|(rank, at)| (rank, at.call)).collect();
        let Some(&(rank, call)) = calls.first() else { return false };
        if let Some(gone) = self.places.iter().position(|place| matches!(place, Place::Ended)) {
            self.trouble = Some(Trouble::Gone { rank, call, gone });
            return true;
        }
        let differs = |(_, its): &&(usize, RankCall)| (its.kind, its.values) != (call.kind, call.values);
        if let Some(&(other, its)) = calls.iter().find(differs) {
            self.trouble = Some(Trouble::Apart { rank, call, other, its });
            return true;
        }
        let parts: Vec<&[f32]> = self.waiting().map(|(_, at)| &at.values[..]).collect();
        let result = match call.kind {
            Kind::Sum => sum_in_a_ring(&parts),
            Kind::Max => largest(&parts),
            Kind::Gather => parts.concat(),
        };
        self.places.iter_mut().for_each(|place| *place = Place::Served(result.clone()));
        true
    }

    fn waiting(&self) -> impl Iterator<Item = (usize, &Arrived)> {
        self.places.iter().enumerate().filter_map(|(rank, place)| match place {
            Place::Waits(at) => Some((rank, at)),
            _ => None,
        })
    }
}

impl Place {
    fn is_settled(&self) -> bool {
        matches!(self, Self::Waits(_) | Self::Ended)
    }
}

/// As a ring of ranks adds: the values are cut into `w` pieces, and piece `k` starts its way round at rank `k + 1`.
/// Elements are therefore added up in different orders, as libraries do it.
fn sum_in_a_ring(parts: &[&[f32]]) -> Vec<f32> {
    let (w, len) = (parts.len(), parts[0].len());
    let sum = |i: usize| {
        let first = i * w / len.max(1) + 1;
        (1..w).fold(parts[first % w][i], |sum, step| sum + parts[(first + step) % w][i])
    };
    (0..len).map(sum).collect()
}

fn largest(parts: &[&[f32]]) -> Vec<f32> {
    let largest = |i: usize| parts.iter().map(|part| part[i]).fold(f32::NAN, f32::max);
    (0..parts[0].len()).map(largest).collect()
}

/// A rank's own way to the meeting.
struct Rank<'m> {
    rank: usize,
    meeting: &'m Meeting,
}

impl Communicator for Rank<'_> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world_size(&self) -> usize {
        self.meeting.lock().places.len()
    }

    fn all_reduce_sum(&self, values: &mut [f32]) -> Result<(), Trouble> {
        values.copy_from_slice(&self.meeting.meet(self.rank, Kind::Sum, values)?);
        Ok(())
    }

    fn all_reduce_max(&self, values: &mut [f32]) -> Result<(), Trouble> {
        values.copy_from_slice(&self.meeting.meet(self.rank, Kind::Max, values)?);
        Ok(())
    }

    fn all_gather(&self, values: &[f32]) -> Result<Vec<f32>, Trouble> {
        self.meeting.meet(self.rank, Kind::Gather, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended<T: Clone>(world: &World<T>) -> Vec<T> {
        let result = |rank: &RankOutcome<T>| match rank {
            RankOutcome::Result(result) => result.clone(),
            _ => panic!("a rank has no result"),
        };
        world.ranks.iter().map(result).collect()
    }

    #[test]
    fn ranks_get_what_all_have_brought() {
        for w in [1, 2, 3, 4, 8] {
            let world = run(w, None, |comm| {
                let r = comm.rank() as f32;
                let (mut sum, mut max) = ([1.0, r], [-r, r]);
                comm.all_reduce_sum(&mut sum)?;
                comm.all_reduce_max(&mut max)?;
                Ok((sum, max, comm.all_gather(&[r, -r])?))
            });
            let world = world.unwrap();
            let n = w as f32;
            let gathered: Vec<f32> = (0..w).flat_map(|r| [r as f32, -(r as f32)]).collect();
            let want = ([n, n * (n - 1.0) / 2.0], [0.0, n - 1.0], gathered);
            assert!(ended(&world).iter().all(|got| *got == want), "{world:?}");
            assert_eq!((world.trouble, world.handed), (None, vec![6; w]));
        }
    }

    #[test]
    fn pieces_of_a_sum_begin_at_different_ranks() {
        // 1 is lost beside 2^25, unless the two large ones have met before.
        let parts = [1.0, 33_554_432.0, -33_554_432.0];
        let world = run(3, None, |comm| {
            let mut sum = [parts[comm.rank()]; 3];
            comm.all_reduce_sum(&mut sum)?;
            Ok(sum)
        });
        assert_eq!(ended(&world.unwrap())[0], [1.0, 0.0, 0.0]);
    }

    #[test]
    fn what_is_no_number_is_passed_over_by_the_largest() {
        let world = run(2, None, |comm| {
            let mut max = [f32::NAN, if comm.rank() == 0 { f32::NAN } else { 2.0 }];
            comm.all_reduce_max(&mut max)?;
            Ok(max)
        });
        let got = ended(&world.unwrap())[1];
        assert!(got[0].is_nan() && got[1] == 2.0);
    }

    /// Many times: it may not depend on who comes first.
    #[test]
    fn who_waits_for_ever_is_told_at_once() {
        for _ in 0..200 {
            let world = run(4, None, |comm| {
                comm.all_reduce_max(&mut [0.5])?;
                if comm.rank() != 2 {
                    comm.all_reduce_sum(&mut [1.0, 2.0])?;
                }
                Ok(())
            });
            let call = RankCall { kind: Kind::Sum, values: 2, nth: 2 };
            let gone = Trouble::Gone { rank: 0, call, gone: 2 };
            let world = world.unwrap();
            assert_eq!(world.trouble, Some(gone));
            let told = RankOutcome::Refused(RankError::Ranks(gone));
            let want = [told.clone(), told.clone(), RankOutcome::Result(()), told];
            assert_eq!(world.ranks, want);
        }
    }

    #[test]
    fn who_waits_for_a_lost_rank_is_told() {
        for after in 0..4 {
            let lost = Lost { rank: 1, after };
            let world = run(3, Some(lost), |comm| {
                for _ in 0..3 {
                    comm.all_reduce_sum(&mut [1.0])?;
                }
                Ok(())
            });
            let world = world.unwrap();
            if after == 3 {
                // Its program has no fourth call in which it could be lost.
                assert_eq!(world.ranks, vec![RankOutcome::Result(()); 3]);
                continue;
            }
            let call = RankCall { kind: Kind::Sum, values: 1, nth: after + 1 };
            let gone = Trouble::Gone { rank: 0, call, gone: 1 };
            let told = RankOutcome::Refused(RankError::Ranks(gone));
            assert_eq!(world.ranks, [told.clone(), RankOutcome::Lost, told]);
        }
    }

    #[test]
    fn ranks_at_different_calls_are_told_which() {
        for _ in 0..200 {
            let world = run(3, None, |comm| match comm.rank() {
                1 => comm.all_reduce_max(&mut [0.0]).map_err(Into::into),
                2 => comm.all_reduce_sum(&mut [0.0, 0.0]).map_err(Into::into),
                _ => comm.all_reduce_sum(&mut [0.0]).map_err(Into::into),
            });
            let call = |kind, values| RankCall { kind, values, nth: 1 };
            let (call, its) = (call(Kind::Sum, 1), call(Kind::Max, 1));
            let apart = Trouble::Apart { rank: 0, call, other: 1, its };
            assert_eq!(world.unwrap().trouble, Some(apart));
        }
    }

    #[test]
    fn a_panic_is_an_end_and_trouble_is_kept() {
        let world = run(2, None, |comm| {
            assert_eq!(comm.rank(), 1, "rank 0 does not like this");
            // An error that no one looks at is trouble all the same, and the next call gets it too.
            let _ = comm.all_reduce_sum(&mut [0.0]);
            Ok(comm.all_gather(&[]).is_err())
        });
        let world = world.unwrap();
        assert!(matches!(&world.ranks[0], RankOutcome::Panicked(words) if words.contains("like this")));
        assert_eq!(world.ranks[1], RankOutcome::Result(true));
        assert!(matches!(world.trouble, Some(Trouble::Gone { rank: 1, gone: 0, .. })));
    }
}
