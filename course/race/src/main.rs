//! The program of `cargo course bench`. `learner::race` grades, and starts it with what passed.

#![forbid(unsafe_code)]

mod bars;
mod components;
mod guard;
mod recorded;
#[cfg(test)]
mod tests;
mod token;
mod whole;

use course::arguments::{BenchArguments, Command};
use learner::terminal::Terminal;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Rounds in which each implementation runs once, so that what disturbs one disturbs all.
const ROUNDS: usize = 15;

/// The unit of all bars.
const COPY: &str = "copy";
/// The library's fast code, as an implementation.
const FUSED: &str = "library, fused";
/// The same by its formula, operation by operation.
const COMPOSED: &str = "library, composed";
/// What anyone would write first.
const PLAIN: &str = "plain loop";
/// The learner's code, as an implementation.
const YOURS: &str = "yours";

/// An implementation: who it is, and its work.
type Implementation<'p> = (&'static str, Box<dyn FnMut() + 'p>);

/// The times of one implementation, in seconds.
struct Times {
    implementation: &'static str,
    median: f64,
    least: f64,
    most: f64,
    /// Not run here.
    recorded: bool,
}

/// One race: what is computed, and who was how fast.
struct Race {
    slug: &'static str,
    title: String,
    times: Vec<Times>,
    /// What must be known about a bar that was not run here.
    note: String,
}

fn main() -> ExitCode {
    match course::command() {
        Some(Command::Bench(BenchArguments { component, check: true, .. })) => {
            course::ended(guard::run(|slug| component.as_deref().is_none_or(|one| one == slug)))
        }
        Some(Command::Bench(arguments)) if arguments.is_token() => {
            course::ended(token::run(&arguments))
        }
        Some(Command::Bench(arguments)) => course::ended(run(&arguments)),
        _ => course::not_here(),
    }
}

fn run(arguments: &BenchArguments) -> learner::Result<bool> {
    let mine = learner::race::racers();
    let mut terminal = Terminal::stdout();
    let folder = arguments.out.as_path();
    writable(folder)?;
    let wanted = |slug: &str| arguments.component.as_deref().is_none_or(|one| one == slug);
    let mut all = Vec::new();
    for (slug, run) in components::ALL.iter().filter(|(slug, _)| wanted(slug)) {
        let passes = mine.iter().any(|passed| passed == slug);
        let races = run(passes);
        for race in &races {
            terminal.heading(&race.title)?;
            for line in bars::lines(race) {
                terminal.line(&line)?;
            }
            if passes && race.times.iter().all(|times| times.implementation != YOURS) {
                terminal
                    .line("  Yours panicked here, so it did not race. Its message stands above.")?;
            }
            terminal.line(&format!("  {}", race.note))?;
            if let Some(apart) = bars::disturbed(race) {
                terminal.line(&format!(
                    "  The copy's own times are {apart:.0} times apart: something else runs here. Race again without it."
                ))?;
            }
        }
        if !passes {
            let task = learner::race::forward(slug);
            terminal.line(&format!(
                "  Yours is not here yet: {task} has to pass. `cargo course check {task}` says why not."
            ))?;
        }
        let file = arguments.out.join(format!("{slug}.svg"));
        bars::draw(&races, &file)?;
        terminal.line(&format!("  The same as a figure: {}", file.display()))?;
        all.extend(races);
    }
    let numbers = format!("{:#}\n", recorded::json(&all));
    learner::save::write(&folder.join("bench.json"), numbers)
        .map_err(|reason| refused(folder, reason))?;
    Ok(true)
}

/// What can't be written is said before anything runs.
fn writable(folder: &Path) -> learner::Result<()> {
    std::fs::create_dir_all(folder).map_err(|reason| refused(folder, reason))?;
    tempfile::tempfile_in(folder).map_err(|reason| refused(folder, reason))?;
    Ok(())
}

fn refused(folder: &Path, reason: std::io::Error) -> learner::Error {
    learner::Error::File { file: folder.display().to_string(), reason: reason.to_string() }
}

/// Runs a race.
fn race(slug: &'static str, title: &str, implementations: Vec<Implementation>) -> Race {
    let (title, note) = (title.to_string(), String::new());
    let mut race = Race { slug, title, times: timed(ROUNDS, implementations), note };
    race.note = recorded::add_pytorch(&mut race);
    race
}

/// The times of each. They take turns. In its turn each runs twice, and the second time counts: then its threads are awake,
/// and its memory is in the caches as far as it fits. One that panics is left out.
fn timed(rounds: usize, mut implementations: Vec<Implementation>) -> Vec<Times> {
    implementations.retain_mut(|(_, work)| catch_unwind(AssertUnwindSafe(work)).is_ok());
    let mut seconds: Vec<Vec<f64>> = vec![Vec::new(); implementations.len()];
    for _ in 0..rounds {
        for ((_, work), seconds) in implementations.iter_mut().zip(&mut seconds) {
            work();
            let start = Instant::now();
            work();
            seconds.push(start.elapsed().as_secs_f64());
        }
    }
    let times = implementations.iter().zip(seconds).map(|((implementation, _), mut seconds)| {
        seconds.sort_by(f64::total_cmp);
        let [least, median, most] = [0, rounds / 2, rounds - 1].map(|place| seconds[place]);
        Times { implementation, median, least, most, recorded: false }
    });
    times.collect()
}
