//! Tasks about a property: the learner's own invariant is shown to right and wrong implementations.
//!
//! Each implementation is met in a fresh process, and in an order that no one knows: what a counter, a static or a file
//! remembers of the implementations before says nothing about this one.

use crate::own::Own;
use crate::process;
use contract::grade::Grade;
use contract::printed::Printed;
use contract::property::{Refusals, Shown, by_bugs, is_not_begun};
use contract::task::Task;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;
use std::thread;

/// What has come out so far.
#[derive(Default)]
struct Asked {
    refusals: BTreeMap<usize, String>,
    /// Of the first that printed anything.
    printed: Printed,
    lost: Option<Box<Grade>>,
    /// No other answer can change the grade.
    decided: bool,
}

/// Grades a task about a property.
///
/// # Errors
/// A grade that says why there is none: see [`process::ask`].
pub fn grade(own: &Own, task: &'static Task) -> Result<Grade, Box<Grade>> {
    let mut printed = Vec::new();
    let mut grade = by_bugs(task, |all| {
        let asked = ask_all(own, task, all);
        match asked.lost {
            Some(grade) => Err(grade), // with what was printed before it was lost
            None => {
                printed = asked.printed.shown();
                Ok(Refusals { words: asked.refusals, of_all: true })
            }
        }
    });
    grade.printed.extend(printed);
    Ok(grade)
}

fn ask_all(own: &Own, task: &'static Task, all: &[Shown]) -> Asked {
    let order = Mutex::new(shuffled(all.len()));
    let asked = Mutex::new(Asked::default());
    // Not in the condition of the loop: it would be locked while the loop's body runs.
    let next = || order.lock().expect("no thread panics").pop();
    let ask = || {
        while let Some(place) = next() {
            let answer = process::ask::<Option<String>>(own, task, Some(all[place]));
            let mut asked = asked.lock().expect("no thread panics");
            match answer {
                Ok((refusal, printed)) => {
                    let telling = all[place].is_right() && refusal.is_some();
                    if telling || asked.printed.shown().is_empty() {
                        asked.printed = printed;
                    }
                    if let Some(words) = refusal {
                        asked.decided |= all[place].is_right() || is_not_begun(&words);
                        asked.refusals.insert(place, words);
                    }
                }
                Err(grade) => {
                    asked.lost.get_or_insert(grade);
                    asked.decided = true;
                }
            }
            if asked.decided {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(ask);
        }
    });
    asked.into_inner().expect("no thread panics")
}

/// The places `0..n` in a new order in each run.
fn shuffled(n: usize) -> Vec<usize> {
    let random = RandomState::new();
    let mut places: Vec<usize> = (0..n).collect();
    places.sort_by_cached_key(|place| random.hash_one(place));
    places
}
