//! Tasks about a property: the pipe is turned round. The learner's invariant asks, and implementations of this side answer.
//!
//! Each implementation is met by a fresh process in its own sandbox, one after the other, in an order that no one
//! knows. No process therefore has anything of the implementations that the others met: not a file, not a number that
//! they could change, and not the load of the processor. What is left is the moment at which the one before has ended,
//! and a file that is graded has no clock to read it from ([`names`](learner::exercise::names)).
//!
//! Those that are right are shown first, among some of the bugs that the model solution's invariant catches. A test
//! that has caught enough by then has passed, and is not shown the others. Else these come, with those that are right
//! once more.

use super::adapters::Adapter;
use super::talk::{NotStarted, Talk};
use super::{Asked, Judged, broken, number};
use contract::property::{Refusals, Shown, by_bugs, is_not_begun};
use contract::registry;
use contract::task::{Grading, Task};
use protocol::{Order, Served, whole};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::Path;

/// What has come out so far.
#[derive(Default)]
struct Heard {
    refusals: BTreeMap<usize, String>,
    of_all: bool,
    printed: String,
    lost: Option<Judged>,
}

/// Judges a task about a property.
pub(super) fn judge(asked: &Asked, task: &'static Task, adapter: &Adapter) -> Judged {
    let (mut printed, mut is_broken, mut lost) = (String::new(), false, None);
    let grade = by_bugs(task, |all| {
        let heard = ask_all(asked, task, adapter, all);
        printed = heard.printed;
        is_broken = matches!(heard.lost, Some(Judged::Broken(..)));
        match heard.lost {
            Some(Judged::Grade(grade, _) | Judged::Broken(grade, _)) => Err(grade),
            // What is said in its place is not heard.
            Some(Judged::NoGrade(words)) => {
                lost = Some(words);
                Ok(Refusals::default())
            }
            None => Ok(Refusals { words: heard.refusals, of_all: heard.of_all }),
        }
    });
    match lost {
        Some(words) => Judged::NoGrade(words),
        None if is_broken => Judged::Broken(Box::new(grade), printed),
        None => Judged::Grade(Box::new(grade), printed),
    }
}

fn ask_all(asked: &Asked, task: &'static Task, adapter: &Adapter, all: &[Shown]) -> Heard {
    let mut heard = Heard::default();
    let Grading::Property { needed } = task.grading else { return heard };
    let everything = std::env::var_os(CAUGHT);
    let is_first = |place: &usize| everything.is_some() || is_usual(task, all[*place]);
    let (right, bugs): (Vec<usize>, Vec<usize>) =
        (0..all.len()).partition(|place| all[*place].is_right());
    let (usual, mut others): (Vec<usize>, Vec<usize>) = bugs.into_iter().partition(is_first);
    let mut usual = drawn(usual, asked.seed);
    if everything.is_none() {
        others.extend(usual.split_off(usual.len().min(needed + SPARE)));
    }
    let undecided = shown(asked, task, adapter, all, [&right[..], &usual].concat(), &mut heard);
    if let Some(file) = everything {
        keep_caught(task, all, &heard, Path::new(&file));
    }
    heard.of_all = others.is_empty();
    if undecided && !heard.of_all && heard.refusals.len() < needed {
        heard.of_all = shown(asked, task, adapter, all, [&right[..], &others].concat(), &mut heard);
    }
    heard
}

/// How many usual bugs an invariant may miss, and still be known to catch enough by those that are shown first.
const SPARE: usize = 2;

/// Names a file: all are shown, and the caught bugs are added to it. This is how `caught.txt` was made, of the model
/// solutions.
const CAUGHT: &str = "QUADRIVIUM_CAUGHT";

/// Whether the model solution's invariant catches it: a line has the task and the bug.
fn is_usual(task: &Task, shown: Shown) -> bool {
    let line = bug(task, shown).map(|id| format!("{} {id}", task.name));
    line.is_some_and(|line| include_str!("caught.txt").lines().any(|one| one == line))
}

fn bug(task: &Task, shown: Shown) -> Option<&'static str> {
    let Shown::Bug(place) = shown else { return None };
    Some(registry::component(task.component)?.exhibits().get(place)?.id)
}

fn keep_caught(task: &Task, all: &[Shown], heard: &Heard, file: &Path) {
    let ids = heard.refusals.keys().filter_map(|place| bug(task, all[*place]));
    let lines: String = ids.map(|id| format!("{} {id}\n", task.name)).collect();
    let file = std::fs::OpenOptions::new().create(true).append(true).open(file);
    let _ = file.and_then(|mut file| file.write_all(lines.as_bytes()));
}

/// Shows these, in an order that no one knows. Whether all were shown: not if another answer can't change the grade.
fn shown(
    asked: &Asked,
    task: &'static Task,
    adapter: &Adapter,
    all: &[Shown],
    places: Vec<usize>,
    heard: &mut Heard,
) -> bool {
    for place in shuffled(places) {
        match meet(asked, task, adapter, all[place]) {
            Ok((refusal, printed)) => {
                heard.printed.push_str(&printed);
                if let Some(words) = refusal {
                    let decided = all[place].is_right() || is_not_begun(&words);
                    heard.refusals.insert(place, words);
                    if decided {
                        return false;
                    }
                }
            }
            Err(judged) => {
                if let Judged::Grade(_, printed) | Judged::Broken(_, printed) = &judged {
                    heard.printed.push_str(printed);
                }
                heard.lost = Some(judged);
                return false;
            }
        }
    }
    true
}

/// What the learner's invariant says of an implementation, and what it printed.
type Met = Result<(Option<String>, String), Judged>;

/// The most bytes of a question. An implementation computes in this process, whose time is charged to no one, and a
/// question of many millions of numbers would keep it busy for minutes.
const LONGEST: usize = 1 << 20;

fn meet(asked: &Asked, task: &'static Task, adapter: &Adapter, shown: Shown) -> Met {
    let Asked { cage, program, .. } = asked;
    let order = Order::Judge { slug: task.component.to_string() };
    let (talk, mut ends) =
        Talk::start(cage, program, &order).map_err(|NotStarted(words)| Judged::NoGrade(words))?;
    ends.at_most(LONGEST);
    let served = (adapter.serve)(shown, &mut ends);
    let last = match served {
        Ok(Served::Done(last)) => whole::<Option<String>>(&last).map_err(|error| error.to_string()),
        Ok(Served::Closed) => Err("it ended before it said what it found".to_string()),
        Err(error) => Err(error.to_string()),
    };
    drop(ends);
    let end = talk.end(last.as_ref().err().cloned());
    match (last, broken(task, cage, &end)) {
        (_, Some(broken)) => Err(broken),
        (Ok(refusal), None) => Ok((refusal, end.printed)),
        (Err(lost), None) => Err(Judged::NoGrade(lost)),
    }
}

/// The places in a new order in each run.
fn shuffled(mut places: Vec<usize>) -> Vec<usize> {
    places.sort_by_cached_key(|_| number());
    places
}

/// The places in an order that is the same for a seed: which of them are shown is listed in a report.
fn drawn(mut places: Vec<usize>, seed: u64) -> Vec<usize> {
    places.sort_by_cached_key(|place| {
        let mut hash = DefaultHasher::new();
        (seed, place).hash(&mut hash);
        hash.finish()
    });
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enough for a grade, and no bug that there is no more.
    #[test]
    fn the_usual_bugs_are_bugs_and_enough() {
        let lines = || include_str!("caught.txt").lines();
        let mut found = 0;
        for task in registry::TASKS.iter() {
            let Grading::Property { needed } = task.grading else { continue };
            let bugs = registry::component(task.component).unwrap().exhibits().len();
            let usual = (0..bugs).filter(|place| is_usual(task, Shown::Bug(*place))).count();
            assert!(needed <= usual, "{}: {usual} of {needed}", task.name);
            found += usual;
        }
        assert_eq!(found, lines().count());
    }

    #[test]
    fn each_seed_draws_an_order_of_its_own_of_all() {
        let of = |seed| drawn((0..60).collect(), seed);
        assert!(of(1) == of(1) && of(1) != of(2));
        assert_eq!(of(1).iter().sum::<usize>(), 59 * 30);
    }

    #[test]
    fn each_run_has_an_order_of_its_own_of_all() {
        let (one, other) = (shuffled((0..60).collect()), shuffled((0..60).collect()));
        assert_ne!(one, other);
        let mut sorted = one;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..60));
    }
}
