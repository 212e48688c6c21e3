//! A class: all submissions, some at a time, each with its own result.

use crate::changes::{Changes, Entry};
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::grade::Judge;
use crate::output::{self, page::on_terminal};
use crate::parts::Parts;
use crate::record::{Outcome, Record, Sandbox};
use crate::settings::Settings;
use crate::similar::{self, Printer};
use crate::submissions::{Submissions, found, passed_over, refuse_twins, shard};
use crate::systems::System;
use crate::told::{self, Forgotten, NowGraded, Told};
use crate::{inherited, intake, package};
use course::arguments::{Format, GradeArguments, SandboxLines};
use indicatif::{ProgressBar, ProgressStyle};
use learner::exercise::Workspace;
use learner::progress::with_spinner;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// The most names that an error lists.
const NAMED: usize = 10;

/// What a class has in common, kept so that a second run is the first one's end.
#[derive(Debug, Serialize, Deserialize)]
struct Common {
    seed: u64,
}

/// Grades, or writes a package. Returns whether each submission has a grade.
///
/// # Errors
/// Bad arguments; no sandbox; a folder that can't be used.
pub fn run(arguments: &GradeArguments) -> Result<bool> {
    let course = Workspace::find()?;
    if let Some(package) = arguments.package {
        // Settings that are wrong are said to be here, and not on the other system.
        let text = arguments.settings.as_deref().map(|path| {
            let settings = read(Some(path), Settings::read);
            let text = text(path);
            settings.and(text)
        });
        let text = text.transpose()?;
        for line in package::write(package, &course.path(""), text.as_deref(), &arguments.out)? {
            println!("{line}");
        }
        return Ok(true);
    }
    let settings = read(arguments.settings.as_deref(), Settings::read)?;
    let changes = read(arguments.changes.as_deref(), Changes::read)?;
    // A table that an earlier call has made is written again, and so its names are those of this call.
    let is_canvas =
        arguments.format.contains(&Format::Canvas) || arguments.out.join("canvas.csv").exists();
    let systems: &[System] =
        if is_canvas { &[System::Moodle, System::Canvas] } else { &[System::Moodle] };
    if arguments.submissions.is_empty() && !arguments.out.join("class.json").exists() {
        return Err(Error::Argument {
            what: "a call without submissions is about results that are there".to_string(),
            expected: "submissions, or a folder of results".to_string(),
            got: arguments.out.display().to_string(),
            to_do: "name the folder of submissions".to_string(),
        });
    }
    let mut all = found(&arguments.submissions, systems)?;
    let whose = |name: &str| settings.columns.whose_words(name, &arguments.format);
    refuse_twins(&mut all, whose);
    let passed_over = passed_over(&arguments.submissions, systems)?;
    let names: Vec<String> = all.keys().cloned().collect();
    if let Some((nth, of)) = arguments.shard {
        all = shard(all, nth, of);
    }
    too_many_points(&changes, &settings)?;
    not_within(&arguments.out, &arguments.submissions)?;
    let kind = sandbox(arguments.sandbox);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // One more: code that waits for nothing until its time is over would let a core wait with it.
    // Without namespaces all submissions are one user, whose threads are counted together.
    let most = if kind.has_namespaces() { cores + 1 } else { 1 };
    let jobs = Jobs::shared(arguments.jobs.map_or(most, usize::from), all.len());
    inherited::check(&settings.limits, jobs.submissions.saturating_mul(jobs.tasks))?;
    let folder = Folder::open(&arguments.out, arguments.shard.is_some())?;
    let others = others(&folder, &names, whose)?;
    unknown_changes(&changes, &names, &others)?;
    let seed = seed(&folder, arguments.seed, arguments.fresh)?;
    let judge = with_spinner(|says| -> Result<Judge> {
        says("building what submissions are linked with");
        let parts = Parts::build(&course, says)?;
        says("trying the sandbox");
        Judge::new(parts, settings, kind, seed)
    })?;
    let printer = Printer::new(&course);
    let now_graded = grade_all(&judge, &printer, &folder, &all, jobs, arguments.fresh)?;
    folder.check()?;
    if let Some(part) = arguments.shard {
        // Of the class, nothing is written before all parts are there.
        let records: Vec<_> = all.keys().filter_map(|name| folder.record(name)).collect();
        print!("{}", on_terminal(&told::part(part, &records, now_graded.len())));
        return Ok(records.iter().all(Record::has_points));
    }

    // All that lie here, and not of those alone that were named: the others are of the same class, from earlier calls or
    // from other machines.
    let mut records = folder.records();
    let mut forgotten = Forgotten::default();
    for record in &mut records {
        let regraded = now_graded.iter().find(|one| one.name == record.submission);
        let before = regraded.map_or(Some(&*record), |one| one.before.as_ref()).cloned();
        // A task less or more in the settings: what was graded by others stays as it was.
        if record.judge == judge.digest {
            judge.points(record);
        }
        changes.apply(record);
        forgotten.see(before.as_ref(), record);
        write_record(&folder, record)?;
    }
    let comparison = printer.class(&folder, &records);
    let class = output::class::Class {
        records: &records,
        comparison: &comparison,
        passed_over: &passed_over,
    };
    let also = output::files::write_all(&folder, &class, &arguments.format, &judge.settings)?;
    let (judge, settings) = (judge.digest.as_str(), &judge.settings);
    let changes = &changes;
    let told = Told { class, now_graded, others, also, changes, judge, forgotten };
    told.tell(&arguments.out, &settings.columns);
    Ok(records.iter().all(Record::has_points))
}

/// A file of settings, if one is named.
fn read<T: Default>(
    path: Option<&Path>,
    read: impl FnOnce(&str) -> std::result::Result<T, String>,
) -> Result<T> {
    let Some(path) = path else { return Ok(T::default()) };
    read(&text(path)?).map_err(|got| Error::Argument {
        what: format!("{} says what is to be done", path.display()),
        expected: "TOML as the book's chapter on grading has it".to_string(),
        got,
        to_do: "fix it".to_string(),
    })
}

/// The most bytes of a file of settings or of changes.
const LONGEST: u64 = 1 << 24;

fn text(path: &Path) -> Result<String> {
    learner::read::text(path, LONGEST).map_err(Error::file(path, "can't be read"))
}

/// The results that lie in the folder and are of submissions that were not named. They stay in the class.
fn others(
    folder: &Folder,
    names: &[String],
    whose: impl Fn(&str) -> Option<String>,
) -> Result<Vec<String>> {
    let there = folder.records().into_iter().map(|record| record.submission);
    let others: Vec<String> = there.filter(|name| !names.contains(name)).collect();
    for other in &others {
        let Some(own) = whose(other) else { continue };
        if let Some(name) = names.iter().find(|name| whose(name).as_ref() == Some(&own)) {
            return Err(Error::Argument {
                what: "a participant has one result in a folder of results".to_string(),
                expected: format!("one name for {own}"),
                got: format!("\"{name}\" now, and a result called \"{other}\" from before"),
                to_do: format!(
                    "call the submission \"{other}\", and its result is replaced; or remove {}",
                    folder.at(other).display()
                ),
            });
        }
    }
    Ok(others)
}

/// A change of a submission that is not there is a mistake in its name.
fn unknown_changes(changes: &Changes, names: &[String], others: &[String]) -> Result<()> {
    let names: Vec<&str> = names.iter().chain(others).map(String::as_str).collect();
    match changes.unknown(&names).first() {
        None => Ok(()),
        Some(name) => Err(Error::Argument {
            what: "a change is of a submission".to_string(),
            expected: format!("one of {} names", names.len()),
            got: format!("\"{name}\""),
            to_do: format!("write it as a folder of results is called: {}", nearest(name, &names)),
        }),
    }
}

/// No change gives more than a task is worth: in a gradebook it would be more than all.
fn too_many_points(changes: &Changes, settings: &Settings) -> Result<()> {
    let tasks = settings.selected().unwrap_or_default();
    let worth = |name: &Option<String>| -> f64 {
        let of = tasks.iter().filter(|task| name.as_ref().is_none_or(|name| task.name == name));
        of.map(|task| settings.points_of(task)).sum()
    };
    // Of a task that is not graded, another message reports.
    let too_many = |entry: &&Entry| {
        let most = worth(&entry.task);
        (entry.task.is_none() || most > 0.0) && entry.points > most
    };
    match changes.change.iter().find(too_many) {
        None => Ok(()),
        Some(entry) => Err(Error::Argument {
            what: "a change gives at most what there is to have".to_string(),
            expected: format!("at most {} points", worth(&entry.task)),
            got: format!(
                "{} for {} of \"{}\"",
                entry.points,
                entry.task.as_deref().unwrap_or("the whole"),
                entry.submission
            ),
            to_do: "write fewer; or make a task worth more, under [points] in the settings"
                .to_string(),
        }),
    }
}

/// The folder of results is none of a submission's: results would be handed in, and files of a submission written over.
fn not_within(out: &Path, submissions: &[PathBuf]) -> Result<()> {
    // The part of the path that is there.
    let there = out.ancestors().find_map(|path| match path.as_os_str().is_empty() {
        true => Path::new(".").canonicalize().ok(),
        false => path.canonicalize().ok(),
    });
    let whose = submissions.iter().find(|path| {
        path.is_dir()
            && path
                .canonicalize()
                .is_ok_and(|path| there.as_ref().is_some_and(|out| out.starts_with(path)))
    });
    match whose {
        None => Ok(()),
        Some(path) => Err(Error::Argument {
            what: "results lie in a folder of their own".to_string(),
            expected: format!("a folder outside of {}", path.display()),
            got: out.display().to_string(),
            to_do: "name another folder with --out".to_string(),
        }),
    }
}

/// The names that are most like a wrong one, or some.
fn nearest(wrong: &str, names: &[&str]) -> String {
    let (near, others): (Vec<&str>, Vec<&str>) =
        names.iter().partition(|name| name.contains(wrong) || wrong.contains(*name));
    let shown = if near.is_empty() { others } else { near };
    shown.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ")
}

fn sandbox(lines: SandboxLines) -> Sandbox {
    match lines {
        SandboxLines::Full => Sandbox::Full,
        SandboxLines::Namespaces => Sandbox::Namespaces,
        SandboxLines::Confined => Sandbox::Confined,
        SandboxLines::None => Sandbox::None,
    }
}

/// The seed that is named, or that of the run before, or a new one. A class has one.
fn seed(folder: &Folder, named: Option<u64>, fresh: bool) -> Result<u64> {
    let text = std::fs::read(folder.at("class.json")).ok();
    let kept = text.as_ref().and_then(|text| serde_json::from_slice::<Common>(text).ok());
    let drawn = || {
        // Short enough to be written down.
        getrandom::u32().map(u64::from).map_err(|error| Error::Program {
            what: "a seed can't be drawn",
            reason: error.to_string(),
        })
    };
    let refused = |expected: String, got: String, to_do: &str| {
        Err(Error::Argument {
            what: "a class has one seed, which its results are made with".to_string(),
            expected,
            got,
            to_do: to_do.to_string(),
        })
    };
    let seed = match (named, kept) {
        (Some(seed), Some(Common { seed: before })) if seed != before && !fresh => {
            return refused(
                format!("--seed {before}, or none"),
                format!("--seed {seed}"),
                "leave it out; or grade all of them again, with --fresh",
            );
        }
        (Some(seed), _) => seed,
        (None, Some(Common { seed })) => seed,
        (None, None) if text.is_some() => {
            return refused(
                "{\"seed\": a number} in class.json".to_string(),
                "something else".to_string(),
                "name the seed with --seed, if you know it; or grade all of them into a new folder",
            );
        }
        (None, None) => drawn()?,
    };
    folder.write("class.json", json(&Common { seed })?)?;
    Ok(seed)
}

fn json(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(|error| Error::Program {
        what: "a result can't be written as JSON",
        reason: error.to_string(),
    })
}

fn write_record(folder: &Folder, record: &Record) -> Result<()> {
    let name = &record.submission;
    folder.write(&format!("{name}/report.html"), output::report::report(record))?;
    // Last: where it is, the others are.
    folder.write(&format!("{name}/result.json"), json(record)?)
}

/// The same for a record that was made now. A name that the results' file system does not take does not stop the
/// grading of others: the record says so, under another name.
fn write_new(folder: &Folder, mut record: Record) -> Result<()> {
    use std::io::ErrorKind::{InvalidFilename, InvalidInput};
    match write_record(folder, &record) {
        Err(Error::File { reason, .. })
            if matches!(reason.kind(), InvalidFilename | InvalidInput) =>
        {
            let name = &record.submission;
            let why = format!(
                "no folder of results can be called \"{name}\" on the disk of --out ({reason}). Rename the submission, remove this \
                 folder of results, and call the command again"
            );
            record.submission = format!("_renamed-{}", intake::hex(&Sha256::digest(name)[..4]));
            (record.outcome, record.points) = (Outcome::NotGraded { why }, None);
            record.tasks.clear();
            write_record(folder, &record)
        }
        written => written,
    }
}

/// What is graded at the same time.
#[derive(Clone, Copy)]
struct Jobs {
    submissions: usize,
    /// Of each of them.
    tasks: usize,
}

impl Jobs {
    /// Few submissions share all cores: each task is a separate process.
    fn shared(jobs: usize, submissions: usize) -> Self {
        let submissions = jobs.min(submissions).max(1);
        Self { submissions, tasks: jobs.div_ceil(submissions) }
    }
}

/// Whether a result is what this run would come to.
fn is_kept(judge: &Judge, kept: &Record, digest: &str) -> bool {
    // Not the whole records: a value that a report shows may be NaN, which equals nothing.
    let common = (&*judge.digest, digest, judge.cage.kind, judge.seed_of(digest));
    common == (&*kept.judge, &*kept.digest, kept.sandbox, kept.seed) && kept.is_graded()
}

fn grade_all(
    judge: &Judge,
    printer: &Printer,
    folder: &Folder,
    all: &Submissions,
    jobs: Jobs,
    fresh: bool,
) -> Result<Vec<NowGraded>> {
    let bar = ProgressBar::new(all.len() as u64);
    let style = ProgressStyle::with_template("{pos} of {len} graded  {bar:30}  {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let all: Vec<_> = all.iter().collect();
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let error = Mutex::new(None);
    let graded = Mutex::new(Vec::new());
    let silent = bar.is_hidden();
    if silent {
        eprintln!("If this is stopped, the same command goes on where it was.");
    }
    let keep = |written: Result<()>| {
        if let Err(reason) = written {
            // Without a place for results, nothing more can be done.
            failed.store(true, Ordering::Relaxed);
            error.lock().expect("no thread panics").get_or_insert(reason);
        }
    };
    let work = || {
        while !failed.load(Ordering::Relaxed) {
            let Some((name, source)) = all.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return;
            };
            bar.set_message((*name).clone());
            let taken = source.take();
            let digest = taken.as_ref().map(intake::Taken::digest).unwrap_or_default();
            let before = folder.record(name);
            let begin = Instant::now();
            let is_kept =
                before.as_ref().is_some_and(|kept| !fresh && is_kept(judge, kept, &digest));
            if !is_kept {
                let mut record = judge.grade(name, &taken, jobs.tasks);
                judge.points(&mut record);
                graded
                    .lock()
                    .expect("no thread panics")
                    .push(NowGraded { name: (*name).clone(), before });
                keep(write_new(folder, record));
            }
            // Without its own folder, its result says why.
            if let Ok(taken) = &taken
                && folder.at(name).is_dir()
            {
                keep(similar::keep(folder, name, &printer.prints(taken)));
            }
            bar.inc(1);
            if silent {
                let seconds = begin.elapsed().as_secs_f64();
                let took =
                    if is_kept { "as before".to_string() } else { format!("{seconds:.1} s") };
                eprintln!("{} of {}: {name}, {took}", bar.position(), all.len());
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.submissions {
            scope.spawn(work);
        }
    });
    bar.finish_and_clear();
    let mut graded = graded.into_inner().expect("no thread panics");
    graded.sort_by(|a, b| a.name.cmp(&b.name));
    error.into_inner().expect("no thread panics").map_or(Ok(graded), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said<T>(result: Result<T>) -> String {
        result.err().expect("an error").to_string()
    }

    #[test]
    fn a_change_gives_no_more_than_a_task_is_worth() {
        let changes = |task: &str, points: f64| {
            let text = format!(
                "[[change]]\nsubmission = 'ann'\n{task}\npoints = {points:?}\nwho = 'me'\nwhen = 2026-01-01\nwhy = 'why'\n"
            );
            Changes::read(&text).unwrap()
        };
        let settings =
            Settings::read("tasks = ['norm/forward', 'norm/half']\n[points]\n'norm/half' = 2.5")
                .unwrap();
        let of = |task: &str, points| too_many_points(&changes(task, points), &settings);
        let forward = f64::from(contract::registry::task("norm/forward").unwrap().points);
        of("task = 'norm/forward'", forward).unwrap();
        of("task = 'norm/half'", 2.5).unwrap();
        of("", forward + 2.5).unwrap();
        assert!(said(of("task = 'norm/half'", 3.0)).contains("at most 2.5 points"));
        assert!(said(of("", forward + 3.0)).contains("the whole"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn settings_and_changes_have_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [&pipe, Path::new("/dev/zero")] {
            for words in
                [said(read(Some(path), Settings::read)), said(read(Some(path), Changes::read))]
            {
                assert!(words.contains("it is a pipe or a device"), "{words}");
            }
        }
    }

    #[test]
    fn results_lie_in_a_folder_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("class/ann")).unwrap();
        for out in ["class", "class/ann/out", "class/new/out"] {
            let said = said(not_within(&at(out), &[at("class")]));
            assert!(said.contains("a folder outside of"), "{said}");
        }
        not_within(&at("out"), &[at("class")]).unwrap();
        not_within(&at("class/out"), &[at("class/ann")]).unwrap();
        // Of others' files nothing is written over, and no lock is left there.
        assert!(said(Folder::open(&at("class"), false).map(drop)).contains("has other files"));
        assert!(!at("class/.lock").exists());
        drop(Folder::open(&at("out"), false).unwrap());
        Folder::open(&at("out"), false).unwrap();
    }

    #[test]
    fn a_name_that_no_folder_can_have_stops_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Folder::open(folder.path(), false).unwrap();
        let (long, right) = ("x".repeat(256), output::made_up::hostile());
        write_new(&folder, Record { submission: long.clone(), ..right.clone() }).unwrap();
        write_new(&folder, Record { submission: "ann".to_string(), ..right.clone() }).unwrap();
        let [renamed, ann] = &folder.records()[..] else { panic!("two results") };
        assert!(renamed.why_not().unwrap().contains(&long) && renamed.points.is_none());
        assert_eq!(ann.outcome, right.outcome);
        // A failure that no name caused affects everyone.
        std::fs::write(folder.at("ben"), "").unwrap();
        write_new(&folder, Record { submission: "ben".to_string(), ..right }).unwrap_err();
    }

    #[test]
    fn a_class_has_one_seed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Folder::open(folder.path(), false).unwrap();
        let drawn = seed(&folder, None, false).unwrap();
        assert_eq!(seed(&folder, None, false).unwrap(), drawn);
        assert_eq!(seed(&folder, Some(drawn), false).unwrap(), drawn);
        let refused = said(seed(&folder, Some(drawn + 1), false));
        assert!(refused.contains(&format!("--seed {drawn}, or none")), "{refused}");
        assert_eq!(seed(&folder, Some(drawn + 1), true).unwrap(), drawn + 1);
        folder.write("class.json", "{").unwrap();
        assert!(said(seed(&folder, None, false)).contains("in class.json"));
        assert_eq!(seed(&folder, Some(drawn), false).unwrap(), drawn);
    }
}
