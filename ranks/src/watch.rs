//! What keeps a process from waiting for ever where MPI itself waits, and from outliving who started it.
//!
//! A separate thread looks at a clock. A call into MPI that can't be interrupted has a deadline; past it, or when the
//! launcher is gone, the process says why and ends itself.

use crate::roll::{Answer, BEAT, Place, Said, TAKES, host, receive, send, with_host};
use rustix::process::{Signal, getpid, getppid, kill_process};
use std::collections::BTreeSet;
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Where the roll is kept, in the environment of ranks that the command has started.
pub const ROLL: &str = "QUADRIVIUM_RANKS_ROLL";
/// The command's folder for temporary files, also in their environment. On its host it names the run: no process of
/// another run has it.
pub const FOLDER: &str = "QUADRIVIUM_RANKS_FOLDER";

/// How often the thread looks.
const LOOK: Duration = Duration::from_millis(100);
/// The keeper of the roll answers within this time, however busy its cores are.
const QUIET: Duration = Duration::from_secs(10);

/// What this process waits for.
static WATCH: OnceLock<Watch> = OnceLock::new();

struct Watch {
    rank: usize,
    world_size: usize,
    patience: Duration,
    line: OnceLock<Line>,
    done: AtomicBool,
    wait: Mutex<Option<Wait>>,
}

/// What can't be interrupted, and since when.
#[derive(Clone)]
struct Wait {
    what: String,
    since: Instant,
    /// Whether it waits for other ranks.
    for_others: bool,
}

/// The connection to the keeper of the roll.
struct Line {
    to: TcpStream,
    /// Whether rank 0 keeps it, because something other than the command started the ranks.
    of_rank_0: bool,
    /// Whether the command is on this host.
    is_here: bool,
    /// Whether anything was heard since the thread last looked.
    heard: AtomicBool,
    ended: AtomicBool,
    /// Messages, and how many of them were answered.
    said: Mutex<u64>,
    answered: AtomicU64,
    /// Who keeps the others waiting.
    culprits: Mutex<Receiver<Option<usize>>>,
    hosts: OnceLock<Vec<String>>,
}

impl Line {
    /// Which message it was, by its number.
    fn say(&self, what: &Said) -> u64 {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        *said += 1;
        if send(&self.to, what).is_err() {
            self.ended.store(true, Ordering::Release);
        }
        *said
    }

    /// Waits until a message was answered, for at most `limit`.
    fn until_answered(&self, message: u64, limit: Duration) -> bool {
        let begun = Instant::now();
        let answered = || self.answered.load(Ordering::Acquire) >= message;
        while !answered() && begun.elapsed() < limit && !self.ended.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
        answered()
    }

    fn hear(&self, mut from: BufReader<TcpStream>, culprits: &Sender<Option<usize>>) {
        while let Some(answer) = receive(&mut from) {
            match answer {
                Answer::Hosts(hosts) => drop(self.hosts.set(hosts)),
                Answer::Who(_) | Answer::Welcome(_) => {}
                Answer::Heard => drop(self.answered.fetch_add(1, Ordering::Release)),
                Answer::KeepsWaiting(rank) => {
                    self.answered.fetch_add(1, Ordering::Release);
                    let _ = culprits.send(rank);
                }
            }
            self.heard.store(true, Ordering::Release);
        }
        self.ended.store(true, Ordering::Release);
    }
}

fn line() -> Option<&'static Line> {
    WATCH.get()?.line.get()
}

/// The number of this process among those that were started with it, and how many these are; before MPI is asked. `None` if
/// nothing says so, and this process is no rank.
pub(crate) fn started_as() -> Option<(usize, usize)> {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    // By mpirun, or by Slurm's srun.
    let starters =
        [("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMIX_RANK", "SLURM_STEP_NUM_TASKS")];
    starters.into_iter().find_map(|(rank, size)| number(rank).zip(number(size)))
}

/// How many ranks of this world are on this host, where mpirun says so.
pub(crate) fn of_host() -> Option<usize> {
    std::env::var("OMPI_COMM_WORLD_LOCAL_SIZE").ok()?.parse().ok()
}

/// Whether all ranks are known to be on this host.
pub(crate) fn is_all_here() -> bool {
    of_host().is_some_and(|of_host| started_as().is_some_and(|(_, all)| all == of_host))
}

/// What each rank does first: it does not outlive mpirun, or whatever else started it. Where the system has no such thing,
/// [`begin`] looks for it.
pub fn end_with_mpirun() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        let Some(folder) = std::env::var_os(FOLDER) else { return };
        let parent = std::os::unix::process::parent_id();
        let name = std::fs::read_to_string(format!("/proc/{parent}/comm")).unwrap_or_default();
        // On other hosts it is mpirun's daemon, of Open MPI 4 or 5.
        if !is_of(parent, folder.as_ref()) && !["orted", "prted"].contains(&name.trim()) {
            write_line(
                "a rank has no mpirun above it: mpirun ended, or something else started the rank",
            );
            std::process::exit(3);
        }
    }
}

/// Begins to watch this process: nothing takes longer than `patience`. It comes to the roll, if there is one.
pub fn begin(patience: Duration) {
    let (rank, world_size) = started_as().unwrap_or((0, 1));
    let (line, wait, done) = (OnceLock::new(), Mutex::new(None), AtomicBool::new(false));
    let watch = Watch { rank, world_size, patience, line, done, wait };
    if WATCH.set(watch).is_err() {
        return;
    }
    if let Ok(place) = std::env::var(ROLL) {
        match place.parse::<Place>() {
            Ok(place) => come_to(&place, false),
            Err(why) => die(&format!("{ROLL}: {why}")),
        }
    }
    std::thread::spawn(look);
}

/// Whether this process is on a roll.
pub(crate) fn is_on_roll() -> bool {
    line().is_some()
}

/// Comes to the roll.
pub(crate) fn come_to(place: &Place, of_rank_0: bool) {
    let Some(watch) = WATCH.get() else { return };
    let (tell, culprits) = channel();
    let joined = place.join(watch.rank, watch.patience);
    let both = |from: BufReader<TcpStream>| {
        let to = from.get_ref().try_clone()?;
        to.set_write_timeout(Some(TAKES)).map(|()| (to, from))
    };
    match joined.and_then(both) {
        Ok((to, from)) => {
            let line = watch.line.get_or_init(|| Line {
                to,
                of_rank_0,
                is_here: !of_rank_0 && place.is_here(),
                heard: AtomicBool::new(true),
                ended: AtomicBool::new(false),
                said: Mutex::new(0),
                answered: AtomicU64::new(0),
                culprits: Mutex::new(culprits),
                hosts: OnceLock::new(),
            });
            std::thread::spawn(move || line.hear(from, &tell));
        }
        Err(why) => {
            let who = keeper(of_rank_0);
            die(&format!(
                "rank {} on {} can't reach {who}: {why}; open the firewall between the hosts, as ranks connect to \
                 ports that the system chooses",
                watch.rank,
                host()
            ));
        }
    }
}

/// Who keeps the roll.
fn keeper(of_rank_0: bool) -> &'static str {
    if of_rank_0 { "rank 0" } else { "the command that started the ranks" }
}

/// Says that this rank has done its work, and may end.
pub(crate) fn done() {
    if let Some(watch) = WATCH.get() {
        watch.done.store(true, Ordering::Release);
    }
    line().map(|line| line.say(&Said::Done));
}

fn look() {
    let Some(watch) = WATCH.get() else { return };
    let (parent, mut quiet, mut last) = (getppid(), Duration::ZERO, Instant::now());
    loop {
        std::thread::sleep(LOOK);
        let wait = watch.wait.lock().map(|wait| wait.clone()).unwrap_or_default();
        if let Some(wait) = wait {
            see(watch, wait);
        }
        if getppid() != parent {
            die(&format!("rank {}: the process that started it has ended", watch.rank));
        }
        let Some(line) = watch.line.get() else { continue };
        if last.elapsed() > BEAT {
            last = Instant::now();
            line.say(&Said::Alive);
        }
        // Counted in looks, not by the clock: a process that was stopped heard no one meanwhile.
        quiet =
            if line.heard.swap(false, Ordering::AcqRel) { Duration::ZERO } else { quiet + LOOK };
        if quiet > watch.patience.max(QUIET) {
            lose(line, quiet);
        }
        if line.ended.load(Ordering::Acquire) && !watch.done.load(Ordering::Acquire) {
            die(&format!("rank {}: {} has ended", watch.rank, keeper(line.of_rank_0)));
        }
    }
}

/// Ends this process, because the keeper of the roll is silent.
fn lose(line: &Line, since: Duration) -> ! {
    let who = keeper(line.of_rank_0);
    let why = format!(
        "{who} sent nothing for {} s: it has stopped, or its host can't be reached",
        since.as_secs()
    );
    report(&why);
    if !line.of_rank_0 && !line.is_here {
        end_daemon();
    }
    end()
}

/// Ends the daemon of mpirun that has started this process, with what it and MPI would have removed: cut off from mpirun, it
/// would wait for it. This process ends with it.
fn end_daemon() {
    for file in shared_memory() {
        let _ = std::fs::remove_file(file);
    }
    let of_job = folder_of_job().unwrap_or_default();
    let of_user = of_job.parent().unwrap_or(Path::new(""));
    if of_user.file_name().is_some_and(|name| name.as_bytes().starts_with(b"ompi.")) {
        let _ = std::fs::remove_dir_all(&of_job);
        let _ = std::fs::remove_dir(of_user); // there may be other jobs
    }
    let _ = getppid().map(|daemon| kill_process(daemon, Signal::KILL));
    std::thread::sleep(LEAST_GRACE);
}

/// Looks at what can't be interrupted.
fn see(watch: &Watch, Wait { what, since, for_others }: Wait) {
    let others =
        || -> Vec<usize> { (0..watch.world_size).filter(|rank| *rank != watch.rank).collect() };
    let for_others = for_others && is_on_roll();
    if for_others && since.elapsed() > sign_after(watch.patience) {
        sign(&others());
    }
    if since.elapsed() > watch.patience {
        let did_not_end = format!("{what} did not end within {} s", watch.patience.as_secs());
        die(&match for_others.then(|| culprit(&others())) {
            None => format!("rank {}: {did_not_end}", watch.rank),
            Some(Some(rank)) => format!("rank {rank} keeps the others waiting: {did_not_end}"),
            Some(None) => format!("{did_not_end}, and all ranks wait: mpirun may have stopped"),
        });
    }
}

/// After how long a rank says that it waits.
pub(crate) fn sign_after(patience: Duration) -> Duration {
    patience / 8
}

/// Says that this rank waits for one of `ranks`. A short wait is not worth a message.
pub(crate) fn sign(ranks: &[usize]) {
    line().map(|line| line.say(&Said::Waits(Some(ranks.to_vec()))));
}

/// Takes that back.
pub(crate) fn sign_off() {
    line().map(|line| line.say(&Said::Waits(None)));
}

/// The rank that this one waits for, when it has waited in vain for `ranks`. A rank that is missed may itself wait for
/// another: each says for whom it waits, and the one that has not is the culprit. `None` if all wait.
pub(crate) fn culprit(ranks: &[usize]) -> Option<usize> {
    let (Some(line), Some(watch)) = (line(), WATCH.get()) else { return ranks.first().copied() };
    sign(ranks);
    // Others may have begun to wait a moment ago, and not said so yet.
    let until = Instant::now() + (watch.patience / 4).clamp(LEAST_GRACE, MOST_GRACE);
    while Instant::now() < until {
        // This may be the thread that says so otherwise.
        line.say(&Said::Alive);
        std::thread::sleep(BEAT);
    }
    let culprits = line.culprits.lock().unwrap_or_else(PoisonError::into_inner);
    line.say(&Said::WhoKeepsUsWaiting(ranks.to_vec()));
    match culprits.recv_timeout(MOST_GRACE) {
        Ok(rank) => rank,
        Err(_) if line.of_rank_0 => Some(0),
        Err(_) => lose(line, MOST_GRACE),
    }
}

const LEAST_GRACE: Duration = Duration::from_secs(1);
pub(crate) const MOST_GRACE: Duration = Duration::from_secs(10);

/// The command's folder for temporary files, if this host is the command's.
fn folder_of_run() -> Option<PathBuf> {
    let folder = line().filter(|line| line.is_here).and_then(|_| std::env::var_os(FOLDER));
    folder.map(PathBuf::from).filter(|folder| folder.is_dir())
}

/// What mpirun's daemon on this host has made for the job, and removes after it: `ompi.HOST.USER/jf.JOB`.
fn folder_of_job() -> Option<PathBuf> {
    std::env::var_os("PMIX_SERVER_TMPDIR").map(PathBuf::from).filter(|folder| folder.is_dir())
}

/// A folder for a moment, within one that is removed after the run: a rank that is killed leaves nothing elsewhere.
///
/// # Errors
/// What the system reports.
pub(crate) fn folder() -> std::io::Result<tempfile::TempDir> {
    match folder_of_run().or_else(folder_of_job) {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    }
}

/// Notes the shared memory that MPI has made for this rank. MPI removes it at its end, if it comes to that.
pub(crate) fn note_shared_memory() {
    line().map(|line| line.say(&Said::SharedMemory(shared_memory())));
}

/// The files of shared memory that MPI has made for this rank and its neighbours.
fn shared_memory() -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let files: BTreeSet<&str> =
        maps.lines().filter_map(|line| Some(&line[line.find(SHARED_MEMORY)?..])).collect();
    files.into_iter().map(String::from).collect()
}

/// Where Open MPI has it.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm/vader_segment.";

/// Runs `work`, which may wait for other ranks in MPI.
pub(crate) fn during<R>(what: &str, work: impl FnOnce() -> R) -> R {
    watched(what, true, work)
}

/// Runs `work`, which waits only for the system.
pub(crate) fn alone<R>(what: &str, work: impl FnOnce() -> R) -> R {
    watched(what, false, work)
}

fn watched<R>(what: &str, for_others: bool, work: impl FnOnce() -> R) -> R {
    let set = |wait| {
        if let Some(watch) = WATCH.get()
            && let Ok(mut place) = watch.wait.lock()
        {
            *place = wait;
        }
    };
    let (since, patience) = (Instant::now(), WATCH.get().map(|watch| watch.patience));
    set(Some(Wait { what: what.into(), since, for_others }));
    let result = work();
    set(None);
    // A short one has signed nothing, and what it is a part of may have.
    if for_others && patience.is_some_and(|patience| since.elapsed() > sign_after(patience)) {
        sign_off();
    }
    result
}

/// What a rank does last when it ends badly: it says why. Where the command is gone, no one hears it, and nothing is left of
/// the run's folder.
pub fn report(why: &str) {
    say(why);
    if line().is_some_and(|line| !line.of_rank_0 && line.ended.load(Ordering::Acquire))
        && let Some(folder) = folder_of_run()
    {
        clear(&folder);
    }
}

/// To the command that has started the ranks, or on standard error if there is none.
fn say(why: &str) {
    let why = why.lines().next().unwrap_or_default();
    match line().filter(|line| !line.of_rank_0) {
        Some(line) => {
            let message = line.say(&Said::Why(why.into()));
            line.until_answered(message, LEAST_GRACE);
        }
        None => {
            let hosts = line().and_then(|line| line.hosts.get()).map_or(&[][..], Vec::as_slice);
            let (rank, _) = started_as().unwrap_or_default();
            let mine = format!("rank {rank}");
            let why = why
                .strip_prefix(&mine)
                .map(|why| why.trim_start_matches(':').trim_start())
                .unwrap_or(why);
            write_line(&format!("{mine}: {}", with_host(why, hosts)));
        }
    }
}

/// Writes a line on standard error in one piece: several ranks may speak, and mpirun would mix smaller ones.
fn write_line(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Removes the folder, which no one else does now. At the first rank's end, mpirun kills the others where they are: so
/// none ends before the folder is gone, and until then others may still write there.
fn clear(folder: &Path) {
    let deadline = Instant::now() + MOST_GRACE;
    while std::fs::remove_dir_all(folder).is_err() && folder.exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends this process where MPI can't be left in order: without `MPI_Finalize`, which would wait for the others.
pub fn die(why: &str) -> ! {
    report(why);
    end()
}

fn end() -> ! {
    // Not `exit`: handlers of MPI may wait, too.
    let _ = kill_process(getpid(), Signal::KILL);
    std::process::exit(3)
}

/// Whether a process is alive and of the run with this folder: its number may belong to another one by now.
pub fn is_of(process: u32, folder: &Path) -> bool {
    let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let wanted = [FOLDER.as_bytes(), b"=", folder.as_os_str().as_bytes()].concat();
    environment.split(|byte| *byte == 0).any(|entry| entry == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_cleared_while_others_write_there() {
        let folder = tempfile::tempdir().unwrap();
        let write = |number: usize| {
            std::fs::write(folder.path().join((number % 50).to_string()), "").is_ok()
        };
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..20_000).all(write));
            }
            while !folder.path().join("49").exists() {}
            clear(folder.path());
            assert!(!folder.path().exists());
        });
    }
}
