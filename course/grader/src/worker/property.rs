//! Tasks about a property: the pipe is turned round. The learner's invariant asks, and parties of this side answer.
//!
//! Each party is met by a fresh process with an empty `/tmp`, in an order that nobody knows: what a counter, a static or a file
//! remembers of the parties before says nothing about this one.

use super::seats::Seat;
use super::talk::{NotStarted, Talk};
use super::{Asked, Judged, broken, number};
use contract::grade::{Shown, by_bugs, is_not_begun};
use contract::task::Task;
use std::collections::BTreeMap;
use wire::{Ends, Order, Served, whole};

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

fn ask_all(asked: &Asked, task: &'static Task, seat: &Seat, all: &[Shown]) -> Heard {
    let mut heard = Heard::default();
    let mut parties = Parties { asked, task, seat, open: None };
    for place in shuffled(all.len()) {
        match parties.meet(all[place]) {
            Ok((refusal, printed)) => {
                heard.printed.push_str(&printed);
                if let Some(words) = refusal {
                    let decided = all[place].is_right() || is_not_begun(&words);
                    heard.refusals.insert(place, words);
                    if decided {
                        break; // no other answer can change the grade
                    }
                }
            }
            Err(judged) => {
                heard.lost = Some(judged);
                break;
            }
        }
    }
    if let Some((talk, ends)) = parties.open.take() {
        drop(ends);
        heard.printed.push_str(&talk.end(None).printed);
    }
    heard
}

/// Lets the learner's invariant meet one party after the other.
struct Parties<'p> {
    asked: &'p Asked,
    task: &'static Task,
    seat: &'p Seat,
    /// The sandbox of several processes, once it has been opened.
    open: Option<(Talk, Ends)>,
}

impl Parties<'_> {
    /// What the learner's invariant says of a party, and what it printed, as far as that is known yet.
    fn meet(&mut self, shown: Shown) -> Result<(Option<String>, String), Judged> {
        let Asked { cage, program, .. } = self.asked;
        let order = Order::Judge { slug: self.task.component.to_string() };
        let not_started = |NotStarted(words)| Judged::NoGrade(words);
        let again = cage.can_run_again();
        let (talk, mut ends) = match self.open.take() {
            Some((talk, mut ends)) => match talk.next(&mut ends, &order) {
                Ok(()) => (talk, ends),
                Err(error) => {
                    drop(ends);
                    return Err(Judged::NoGrade(format!(
                        "the next process: {error}; {:?}",
                        talk.end(None).why
                    )));
                }
            },
            None if again => Talk::start_many(cage, program, &order).map_err(not_started)?,
            None => Talk::start(cage, program, &order).map_err(not_started)?,
        };
        let served = (self.seat.serve)(shown, &mut ends);
        let last = match served {
            Ok(Served::Done(last)) => {
                whole::<Option<String>>(&last).map_err(|error| error.to_string())
            }
            Ok(Served::Closed) => Err("it ended before it said what it found".to_string()),
            Err(error) => Err(error.to_string()),
        };
        if again && let Ok(refusal) = last {
            self.open = Some((talk, ends));
            return Ok((refusal, String::new()));
        }
        drop(ends);
        let end = talk.end(last.as_ref().err().cloned());
        match (last, broken(self.task, cage, &end.why)) {
            (Ok(refusal), None) => Ok((refusal, end.printed)),
            (_, Some(Ok(grade))) => Err(Judged::Grade(Box::new(grade), end.printed)),
            (_, Some(Err(words))) => Err(Judged::NoGrade(words)),
            (Err(lost), None) => Err(Judged::NoGrade(lost)),
        }
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
