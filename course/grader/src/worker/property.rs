//! Tasks about a property: the pipe is turned round. The learner's invariant asks, and parties of this side answer.
//!
//! Each party is met by a fresh process in a sandbox of its own, in an order that nobody knows, and many at the same time. So
//! no process has anything of the parties that the others met: not a file, not a number that the kernel counts on. The clock
//! is left to it, which tells no more than when the slowest one of the round before had ended.

use super::seats::Seat;
use super::talk::{NotStarted, Talk};
use super::{Asked, Judged, broken, number};
use contract::grade::{Shown, by_bugs, is_not_begun};
use contract::task::Task;
use std::collections::BTreeMap;
use wire::{Order, Served, whole};

/// What has come out so far.
#[derive(Default)]
struct Heard {
    refusals: BTreeMap<usize, String>,
    printed: String,
    lost: Option<Judged>,
}

/// Judges a task about a property.
pub(super) fn judge(asked: &Asked, task: &'static Task, seat: &Seat) -> Judged {
    let (mut printed, mut lost) = (String::new(), None);
    let grade = by_bugs(task, |all| {
        let heard = ask_all(asked, task, seat, all);
        printed = heard.printed;
        match heard.lost {
            Some(Judged::Grade(grade, _)) => Err(grade),
            // What is said in its place is not heard.
            Some(Judged::NoGrade(words)) => {
                lost = Some(words);
                Ok(vec![None; all.len()])
            }
            None => Ok((0..all.len()).map(|place| heard.refusals.get(&place).cloned()).collect()),
        }
    });
    match lost {
        Some(words) => Judged::NoGrade(words),
        None => Judged::Grade(Box::new(grade), printed),
    }
}

/// How many parties are met at the same time.
const ROUND: usize = 16;

fn ask_all(asked: &Asked, task: &'static Task, seat: &Seat, all: &[Shown]) -> Heard {
    let mut heard = Heard::default();
    let order = shuffled(all.len());
    // One is met alone: most of what ends badly does so at once.
    let (first, others) = order.split_at(1.min(order.len()));
    let at_a_time = if asked.cage.has_namespaces() { ROUND } else { 1 };
    for round in std::iter::once(first).chain(others.chunks(at_a_time)) {
        let mut decided = false;
        for (place, met) in meet_all(asked, task, seat, all, round) {
            match met {
                Ok((refusal, printed)) => {
                    heard.printed.push_str(&printed);
                    if let Some(words) = refusal {
                        decided |= all[place].is_right() || is_not_begun(&words);
                        heard.refusals.insert(place, words);
                    }
                }
                Err(judged) => {
                    heard.lost = Some(judged);
                    return heard;
                }
            }
        }
        if decided {
            break; // no other answer can change the grade
        }
    }
    heard
}

/// What the learner's invariant says of a party, and what it printed.
type Met = Result<(Option<String>, String), Judged>;

/// Lets it meet these parties, all at the same time.
fn meet_all(
    asked: &Asked,
    task: &'static Task,
    seat: &Seat,
    all: &[Shown],
    round: &[usize],
) -> Vec<(usize, Met)> {
    std::thread::scope(|scope| {
        let started: Vec<_> = round
            .iter()
            .map(|&place| {
                let meeting = move || meet(asked, task, seat, all[place]);
                (place, std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, meeting))
            })
            .collect();
        let of = |lost: &str| Err(Judged::NoGrade(lost.to_string()));
        started
            .into_iter()
            .map(|(place, meeting)| match meeting {
                Ok(meeting) => (place, meeting.join().unwrap_or_else(|_| of("a thread ended"))),
                Err(error) => (place, of(&error.to_string())),
            })
            .collect()
    })
}

/// As much as the main thread of a process has.
const STACK: usize = 8 << 20;

fn meet(asked: &Asked, task: &'static Task, seat: &Seat, shown: Shown) -> Met {
    let Asked { cage, program, .. } = asked;
    let order = Order::Judge { slug: task.component.to_string() };
    let (talk, mut ends) =
        Talk::start(cage, program, &order).map_err(|NotStarted(words)| Judged::NoGrade(words))?;
    let served = (seat.serve)(shown, &mut ends);
    let last = match served {
        Ok(Served::Done(last)) => whole::<Option<String>>(&last).map_err(|error| error.to_string()),
        Ok(Served::Closed) => Err("it ended before it said what it found".to_string()),
        Err(error) => Err(error.to_string()),
    };
    drop(ends);
    let end = talk.end(last.as_ref().err().cloned());
    match (last, broken(task, cage, &end.why)) {
        (Ok(refusal), None) => Ok((refusal, end.printed)),
        (_, Some(Ok(grade))) => Err(Judged::Grade(Box::new(grade), end.printed)),
        (_, Some(Err(words))) => Err(Judged::NoGrade(words)),
        (Err(lost), None) => Err(Judged::NoGrade(lost)),
    }
}

/// The places `0..n` in an order of their own in each run.
fn shuffled(n: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..n).collect();
    places.sort_by_cached_key(|_| number());
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_an_order_of_its_own_of_all() {
        let (one, other) = (shuffled(60), shuffled(60));
        assert_ne!(one, other);
        let mut sorted = one;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..60));
    }
}
