//! One submission: what is taken of it, its program, its tasks.

use crate::cage::{self, Cage};
use crate::error::{Error, Result};
use crate::fair::{ALL_TOGETHER, blame};
use crate::intake::{NotTaken, Taken, hex};
use crate::limit::watched;
use crate::parts::Parts;
use crate::program::{self, OWN_SIGNALS, Stage, read_some, signal_of};
use crate::record::{LAYOUT, Outcome, Record, TaskRecord};
use crate::settings::Settings;
use crate::temporary;
use crate::worker::{Asked, Heard, Judged, WORKER, recorded};
use contract::grade::Grade;
use contract::run::Run;
use contract::task::Task;
use learner::compile_error::CompileError;
use learner::exercise::compile::without::Settled;
use learner::exercise::names::refused;
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// All that is the same for every submission.
pub struct Judge {
    /// What submissions are linked with.
    pub parts: Parts,
    /// The settings.
    pub settings: Settings,
    /// The tasks that are graded.
    pub tasks: Vec<&'static Task>,
    /// The sandbox.
    pub cage: Cage,
    /// SHA-256 of what all this is made of.
    pub digest: String,
    /// The seed from which each submission has its own.
    pub seed: u64,
    /// Whether files are refused that name what no task needs ([`refused`]). Without it, attacks show what the sandbox holds.
    pub names: bool,
    /// A program with the empty tasks: where it runs, the machine is not to blame. The sandbox's own file is in its folder.
    control: Stage,
}

/// How often a task is tried whose program ends without an answer.
const TRIES: usize = 3;
/// A pause before another try: the machine may have been out of something.
const PAUSE: Duration = Duration::from_secs(2);
/// Seconds that its tasks may take together, for each that a submission may compute. A machine with much to do needs more.
const CLOCK: u32 = 4;
/// The most of a judge's own words that is kept.
const SAID: u64 = 64 << 10;

impl Judge {
    /// Makes the sandbox, and sees that it holds.
    ///
    /// # Errors
    /// It does not.
    pub fn new(
        parts: Parts,
        settings: Settings,
        kind: crate::record::Sandbox,
        seed: u64,
    ) -> Result<Self> {
        let tasks = settings.selected().map_err(|got| Error::Argument {
            what: "settings".to_string(),
            expected: "tasks of the course".to_string(),
            got,
            to_do: "fix the file of settings".to_string(),
        })?;
        let digest = digest(&parts, &settings, &tasks)?;
        temporary::tidy();
        let control = Stage::new(&parts, &Taken::default())?;
        let cage = Cage::new(kind, settings.limits.clone(), &parts, control.reachable())?;
        let version = ["--version".to_string()];
        cage::check(&cage, cage.compile(&parts, control.path(), &version))?;
        let judge = Self { parts, settings, tasks, cage, digest, seed, names: true, control };
        judge.build_control()?;
        judge.check()?;
        Ok(judge)
    }

    /// Builds the program with the empty tasks.
    fn build_control(&self) -> Result<()> {
        let all: Vec<&str> = contract::registry::COMPONENTS.iter().map(|of| of.slug).collect();
        let built =
            program::build(&self.cage, &self.parts, &self.control, &Taken::default(), &all, &[])?;
        match built.uncompiled.into_iter().next() {
            None => Ok(()),
            Some(CompileError { first: reason, .. }) => Err(Error::Program {
                what: "the course's own empty tasks can't be built in the sandbox",
                reason,
            }),
        }
    }

    /// Whether that program runs.
    fn check(&self) -> Result<()> {
        cage::check(&self.cage, self.cage.run(&self.control.program()))
    }

    /// The seed of a submission: the class's, and what was handed in.
    pub(crate) fn seed_of(&self, digest: &str) -> u64 {
        let hash = Sha256::digest(format!("{} {digest}", self.seed));
        u64::from_le_bytes(hash[..8].try_into().unwrap_or_default())
    }

    /// Grades what was taken. `jobs` tasks are judged at the same time.
    pub fn grade(
        &self,
        name: &str,
        taken: &std::result::Result<Taken, NotTaken>,
        jobs: usize,
    ) -> Record {
        self.grade_tasks(name, taken, &self.tasks, jobs)
    }

    /// The same for these tasks only.
    pub fn grade_tasks(
        &self,
        name: &str,
        taken: &std::result::Result<Taken, NotTaken>,
        tasks: &[&'static Task],
        jobs: usize,
    ) -> Record {
        let files = taken.as_ref().ok();
        let digest = files.map(Taken::digest).unwrap_or_default();
        let seed = self.seed_of(&digest);
        let mut record = Record {
            layout: LAYOUT,
            submission: name.to_string(),
            judge: self.digest.clone(),
            seed,
            sandbox: self.cage.kind,
            taken: files
                .iter()
                .flat_map(|taken| taken.files.keys())
                .map(|slug| format!("{slug}.rs"))
                .collect(),
            left_out: match taken {
                Ok(taken) => taken.left_out.clone(),
                Err(not) => not.found.clone(),
            },
            outcome: Outcome::Graded,
            digest,
            points: None,
            out_of: 0.0,
            maximum: None,
            tasks: Vec::new(),
            changed: Vec::new(),
        };
        let graded = match taken {
            Ok(taken) => {
                let starter = |slug: &str| {
                    let file = format!("exercises/{slug}/starter.rs");
                    std::fs::read_to_string(self.parts.course.join(file)).ok()
                };
                let mut graded = self.tasks_of(taken, tasks, seed, jobs);
                if let Ok(tasks) = &mut graded {
                    blame(tasks, taken, starter);
                }
                graded.map_err(|error| match error {
                    Error::Machine(what) => {
                        format!(
                            "{}. That may be the machine's fault; the next run tries again",
                            what.trim()
                        )
                    }
                    other => other.to_string(),
                })
            }
            Err(not) => Err(not.why.clone()),
        };
        match graded {
            Ok(tasks) => record.tasks = tasks,
            Err(why) => record.outcome = Outcome::NotGraded { why },
        }
        record
    }

    fn tasks_of(
        &self,
        taken: &Taken,
        tasks: &[&'static Task],
        seed: u64,
        jobs: usize,
    ) -> Result<Vec<TaskRecord>> {
        let stage = Stage::new(&self.parts, taken)?;
        let mut wanted: Vec<&str> = tasks.iter().map(|task| task.component).collect();
        wanted.dedup();
        let refused: Vec<CompileError> = match self.names {
            true => taken.files.iter().filter_map(|(slug, text)| refused(slug, text)).collect(),
            false => Vec::new(),
        };
        let built = program::build(&self.cage, &self.parts, &stage, taken, &wanted, &refused)?;
        let clock = Clock::default();
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        let work = || -> Result<()> {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(task) = tasks.get(at) else { return Ok(()) };
                let (grade, printed) = self.task(task, taken, &stage, &built, seed, &clock)?;
                let one = recorded(task, grade, printed, (0.0, 0.0));
                done.lock().expect("no thread panics").push((at, one));
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
        })?;
        let mut done = done.into_inner().expect("no thread panics");
        done.sort_by_key(|(at, _)| *at);
        Ok(done.into_iter().map(|(_, task)| task).collect())
    }

    /// One task, in a separate process.
    fn task(
        &self,
        task: &'static Task,
        taken: &Taken,
        stage: &Stage,
        built: &Settled<()>,
        seed: u64,
        clock: &Clock,
    ) -> Result<(Grade, String)> {
        let own = |error: &&CompileError| error.component == Some(task.component);
        if let Some(error) = built.uncompiled.iter().find(own) {
            return Ok((Grade::uncompiled(task, error.first.clone()), String::new()));
        }
        let most = Duration::from_secs(self.settings.limits.submission_seconds);
        if Clock::of(&clock.computed) >= most || Clock::of(&clock.taken) >= CLOCK * most {
            return Ok((out_of_time(task, most), String::new()));
        }
        let asked = Asked {
            task: task.name.to_string(),
            cage: self.cage.clone(),
            parts: self.parts.clone(),
            stage: stage.path().to_path_buf(),
            program: stage.program(),
            file: taken.files.get(task.component).cloned().unwrap_or_default(),
            seed,
            cases: self.settings.cases.unwrap_or(Run::default().cases),
        };
        // An end without an answer is the code's if it comes twice, and the course's own program runs meanwhile.
        let (mut broken, mut words) = (None, String::new());
        for _ in 0..TRIES {
            match self.judged(&asked, clock)? {
                Judged::Grade(grade, printed) => return Ok((*grade, printed)),
                Judged::Broken(grade, printed) => {
                    if let Some(grade) = broken.replace(grade) {
                        return Ok((*grade, printed));
                    }
                }
                Judged::NoGrade(why) => words = why,
            }
            std::thread::sleep(PAUSE);
            self.check()?;
        }
        Err(Error::Machine(format!("{}: {words}", task.name)))
    }

    /// What a worker says.
    fn judged(&self, asked: &Asked, clock: &Clock) -> Result<Judged> {
        let failed = |reason: io::Error| Error::Program {
            what: "a judge can't be started",
            reason: reason.to_string(),
        };
        let most = Duration::from_secs(self.settings.limits.submission_seconds);
        let mut worker = Command::new(own_program().map_err(failed)?);
        worker.env(WORKER, "1").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = worker.spawn().map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin
                .write_all(&serde_json::to_vec(asked).map_err(|error| failed(error.into()))?)
                .map_err(failed)?;
        }
        let (out, said) = (child.stdout.take(), child.stderr.take());
        let read = move || {
            let said = std::thread::spawn(move || read_some(said, SAID));
            let out = out.map(io::read_to_string);
            (out, said.join().unwrap_or_default())
        };
        let left = (CLOCK * most).saturating_sub(Clock::of(&clock.taken));
        let ((out, said), status, taken) = watched(&mut child, left, read).map_err(failed)?;
        Clock::add(&clock.taken, taken);
        let Some(status) = status else {
            // What waits so long waits for itself, if the course's own program runs.
            self.check()?;
            let task = contract::registry::task(&asked.task).expect("a task of the course");
            return Ok(Judged::Grade(Box::new(out_of_time(task, most)), String::new()));
        };
        let heard: Option<Heard> =
            out.and_then(io::Result::ok).and_then(|text: String| serde_json::from_str(&text).ok());
        let words = format!("its judge ended over the answers ({status}) {}", said.trim());
        Ok(match (heard, signal_of(status)) {
            (Some((judged, seconds)), _) if status.success() => {
                Clock::add(&clock.computed, Duration::from_secs_f64(seconds));
                judged
            }
            (_, Some(signal)) if !OWN_SIGNALS.contains(&signal) => Judged::NoGrade(words),
            _ => {
                let task = contract::registry::task(&asked.task).expect("a task of the course");
                let sentence = "Answers are such that they can be judged.";
                let grade = Grade::failed(task, "autograder/judge", sentence, words);
                Judged::Broken(Box::new(grade), String::new())
            }
        })
    }

    /// The points of a record, by the settings.
    pub fn points(&self, record: &mut Record) {
        record.changed.clear();
        if let Outcome::Decided { why } = &record.outcome {
            // Decisions are made again in each call.
            record.outcome = Outcome::NotGraded { why: why.clone() };
        }
        record.maximum = self.settings.columns.maximum;
        for (task, one) in self.tasks.iter().zip(&mut record.tasks) {
            one.out_of = self.settings.points_of(task);
            one.points = round(one.out_of * self.settings.share(task, &one.grade));
        }
        let points = round(record.tasks.iter().map(|task| task.points).sum());
        record.points = record.is_graded().then_some(points);
        record.out_of = round(self.tasks.iter().map(|task| self.settings.points_of(task)).sum());
    }
}

/// The grade of a task for which no time was left.
fn out_of_time(task: &Task, most: Duration) -> Grade {
    let most = most.as_secs();
    let what = format!(
        "{ALL_TOGETHER} have computed for {most} seconds, or waited for {}, before this one had ended",
        u64::from(CLOCK) * most
    );
    Grade::failed(task, "autograder/time", "A submission ends within its time limit.", what)
}

/// What the tasks of a submission have taken so far, in milliseconds: of computing, and of time in which the grader was awake. Those of
/// tasks at the same time are added, so that the limits are the same for any number of them.
#[derive(Default)]
struct Clock {
    computed: AtomicU64,
    taken: AtomicU64,
}

impl Clock {
    fn of(one: &AtomicU64) -> Duration {
        Duration::from_millis(one.load(Ordering::Relaxed))
    }

    fn add(one: &AtomicU64, more: Duration) {
        one.fetch_add(more.as_millis() as u64, Ordering::Relaxed);
    }
}

/// To hundredths.
fn round(points: f64) -> f64 {
    // The sum of nothing is -0, and becomes 0.
    (points * 100.0).round() / 100.0 + 0.0
}

fn own_program() -> io::Result<PathBuf> {
    // A worker of a program that was replaced meanwhile would be another one; by this name it is the same.
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() { Ok(running) } else { std::env::current_exe() }
}

/// SHA-256 of what grades: the built crates' names, the course's own files, and the settings that change a verdict.
fn digest(parts: &Parts, settings: &Settings, tasks: &[&Task]) -> Result<String> {
    let mut hash = Sha256::new();
    let mut files = Vec::new();
    for folder in [
        "contract/src",
        "contract/error-bounds/src",
        "contract/protocol/src",
        "contract/interfaces/src",
        "contract/macros/src",
        "course/grader/src",
        "exercises/submission/dfdx-prebuilt/src",
        "exercises/submission/src",
        "exercises/tensor/src",
        "tensor/src",
        "exercises/adapters/src",
    ] {
        below(&parts.course.join(folder), &mut files);
    }
    for file in ["Cargo.lock", "exercises/src/lib.rs", "exercises/src/prelude.rs"] {
        files.push(parts.course.join(file));
    }
    files.sort();
    for file in files {
        let text = std::fs::read(&file).map_err(Error::file(&file, "can't be read"))?;
        hash.update(Sha256::digest(text));
    }
    let Settings { cases, limits, .. } = settings;
    let tasks: Vec<&str> = tasks.iter().map(|task| task.name).collect();
    hash.update(format!("{tasks:?} {cases:?} {limits:?}"));
    Ok(hex(&hash.finalize()))
}

fn below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => below(&entry.path(), files),
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
}
