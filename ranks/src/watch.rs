//! What keeps a process from waiting for ever where MPI itself waits, and from outliving who started it.
//!
//! A separate thread looks at a clock. A call into MPI that can't be interrupted has a deadline; past it, or when the
//! launcher is gone, the process says why and ends itself.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// The folder in which launcher and ranks meet, in the environment of the ranks.
pub const ROLL: &str = "QUADRIVIUM_RANKS_ROLL";

/// How often the thread looks.
const LOOK: Duration = Duration::from_millis(100);

/// What this process waits for.
static WATCH: OnceLock<Watch> = OnceLock::new();

struct Watch {
    rank: usize,
    world_size: usize,
    patience: Duration,
    roll: Option<PathBuf>,
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

/// The number of this process among those that mpirun has started, and how many these are; before MPI is asked.
pub fn started_as() -> (usize, usize) {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let rank = number("OMPI_COMM_WORLD_RANK").unwrap_or(0);
    (rank, number("OMPI_COMM_WORLD_SIZE").unwrap_or(1))
}

/// What each rank does first: it does not outlive mpirun, which has started it. Where the system has no such thing, [`begin`]
/// looks for it.
pub fn end_with_mpirun() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        let parent = std::os::unix::process::parent_id();
        if std::env::var_os(ROLL).is_some_and(|roll| !is_of(parent, roll.as_ref())) {
            std::process::exit(3); // it ended a moment before
        }
    }
}

/// Begins to watch this process: nothing takes longer than `patience`. It signs the roll: `RANK.pid` has its process id.
pub fn begin(patience: Duration) {
    let (rank, world_size) = started_as();
    let roll = std::env::var_os(ROLL).map(PathBuf::from);
    if let Some(roll) = &roll {
        let _ = write_whole(&roll.join(format!("{rank}.pid")), &std::process::id().to_string());
    }
    let watch = Watch { rank, world_size, patience, roll, wait: Mutex::new(None) };
    if WATCH.set(watch).is_ok() {
        std::thread::spawn(look);
    }
}

/// Signs that this rank has done its work, and may end.
pub(crate) fn done() {
    if let Some(Watch { rank, roll: Some(roll), .. }) = WATCH.get() {
        let _ = std::fs::write(roll.join(format!("{rank}.done")), "");
    }
}

fn look() {
    let Some(watch) = WATCH.get() else { return };
    #[cfg(unix)]
    let parent = std::os::unix::process::parent_id();
    loop {
        std::thread::sleep(LOOK);
        let wait = watch.wait.lock().map(|wait| wait.clone()).unwrap_or_default();
        if let Some(Wait { what, since, for_others }) = wait {
            let others = || -> Vec<usize> {
                (0..watch.world_size).filter(|rank| *rank != watch.rank).collect()
            };
            if for_others && since.elapsed() > sign_after(watch.patience) {
                sign(&others());
            }
            if since.elapsed() > watch.patience {
                let seconds = watch.patience.as_secs();
                let did_not_end = format!("{what} did not end within {seconds} s");
                die(&match for_others.then(|| culprit(&others())) {
                    None => format!("rank {}: {did_not_end}", watch.rank),
                    Some(Some(rank)) => {
                        format!("rank {rank} keeps the others waiting: {did_not_end}")
                    }
                    Some(None) => {
                        format!("{did_not_end}, and all ranks wait: mpirun may have stopped")
                    }
                });
            }
        }
        #[cfg(unix)]
        if std::os::unix::process::parent_id() != parent {
            die(&format!("rank {}: mpirun has ended", watch.rank));
        }
        if let Some(roll) = &watch.roll
            && launcher_is_gone(roll)
        {
            die(&format!("rank {}: the command that started the ranks has ended", watch.rank));
        }
    }
}

/// After how long a wait is signed.
pub(crate) fn sign_after(patience: Duration) -> Duration {
    patience / 8
}

/// Signs that this rank waits for one of `ranks`. A wait that is short is not worth it.
pub(crate) fn sign(ranks: &[usize]) {
    if let Some(file) = waits_of(WATCH.get().map_or(0, |watch| watch.rank)) {
        let names: Vec<String> = ranks.iter().map(usize::to_string).collect();
        let _ = write_whole(&file, &names.join(" "));
    }
}

/// Takes that back.
pub(crate) fn sign_off() {
    if let Some(file) = waits_of(WATCH.get().map_or(0, |watch| watch.rank)) {
        let _ = std::fs::remove_file(file);
    }
}

fn waits_of(rank: usize) -> Option<PathBuf> {
    Some(WATCH.get()?.roll.as_ref()?.join(format!("{rank}.waits")))
}

/// The rank that this one waits for, when it has waited in vain for `ranks`. A rank that is missed may itself wait for
/// another: each rank signs for whom it waits, and the one that has not is the culprit. `None` if all wait.
pub(crate) fn culprit(ranks: &[usize]) -> Option<usize> {
    let signed = |rank: usize| -> Option<Vec<usize>> {
        let names = std::fs::read_to_string(waits_of(rank)?).ok()?;
        Some(names.split_whitespace().filter_map(|name| name.parse().ok()).collect())
    };
    sign(ranks);
    if let Some(Watch { roll: Some(_), patience, .. }) = WATCH.get() {
        // Others may have begun to wait a moment ago, and not signed yet.
        std::thread::sleep((*patience / 4).clamp(LEAST_GRACE, MOST_GRACE));
    }
    first_not_waiting(ranks, signed)
}

/// The first of `ranks` that has not signed for whom it waits, or of those that they wait for, and so on.
fn first_not_waiting(
    ranks: &[usize],
    signed: impl Fn(usize) -> Option<Vec<usize>>,
) -> Option<usize> {
    let (mut known, mut next) = (Vec::new(), ranks.to_vec());
    while !next.is_empty() {
        if let Some(rank) = next.iter().find(|rank| signed(**rank).is_none()) {
            return Some(*rank);
        }
        known.extend(next.iter().copied());
        next = next.into_iter().filter_map(&signed).flatten().collect();
        next.retain(|rank| !known.contains(rank));
    }
    None
}

const LEAST_GRACE: Duration = Duration::from_secs(1);
pub(crate) const MOST_GRACE: Duration = Duration::from_secs(10);

/// A folder for a moment, in the roll if there is one: who is killed leaves nothing elsewhere.
///
/// # Errors
/// What the system reports.
pub(crate) fn folder() -> std::io::Result<tempfile::TempDir> {
    match WATCH.get().and_then(|watch| watch.roll.as_ref()) {
        Some(roll) => tempfile::tempdir_in(roll),
        None => tempfile::tempdir(),
    }
}

/// Notes the shared memory that MPI has made for this rank. MPI removes it at its end, if it comes to that.
pub(crate) fn note_shared_memory() {
    if let Some(Watch { rank, roll: Some(roll), .. }) = WATCH.get() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let files: BTreeSet<&str> =
            maps.lines().filter_map(|line| Some(&line[line.find(SHARED_MEMORY)?..])).collect();
        let files: Vec<&str> = files.into_iter().collect();
        let _ = write_whole(&roll.join(format!("{rank}.shm")), &files.join("\n"));
    }
}

/// A rank that finds the file finds all of it: a wait that is half written would be a wait for no one.
fn write_whole(file: &Path, text: &str) -> std::io::Result<()> {
    let roll = file.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::Builder::new().prefix("sign-").tempfile_in(roll)?;
    new.write_all(text.as_bytes())?;
    new.persist(file)?;
    Ok(())
}

/// Where Open MPI has it.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm/vader_segment.";

/// The launcher holds a lock as long as it lives.
fn launcher_is_gone(roll: &Path) -> bool {
    match OpenOptions::new().read(true).write(true).open(roll.join("launcher")) {
        Ok(file) => file.try_lock_shared().is_ok(),
        Err(_) => true, // it has cleared the roll
    }
}

/// What the launcher holds.
///
/// # Errors
/// What the system reports.
pub(crate) fn hold_roll(roll: &Path) -> std::io::Result<File> {
    let file = File::create(roll.join("launcher"))?;
    file.lock()?;
    Ok(file)
}

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

/// What a rank does last when it ends badly: it says why, in the roll, where the launcher reads it, or on standard error if
/// there is none. Where the launcher is gone, no one reads it, and nothing is left of the roll.
pub fn report(why: &str) {
    let (rank, _) = started_as();
    let line = why.lines().next().unwrap_or_default();
    match WATCH.get().and_then(|watch| watch.roll.as_ref()) {
        Some(roll) => {
            let file =
                OpenOptions::new().create(true).append(true).open(roll.join(format!("{rank}.why")));
            let _ = file.and_then(|mut file| writeln!(file, "{line}"));
            if launcher_is_gone(roll) {
                clear(roll);
            }
        }
        None => {
            let _ = writeln!(std::io::stderr(), "rank {rank}: {line}");
        }
    }
}

/// Removes the roll, which no one else does now. At the first rank's end, mpirun kills the others where they are: so
/// none ends before the roll is gone, and until then others may still write there.
fn clear(roll: &Path) {
    let deadline = Instant::now() + MOST_GRACE;
    while std::fs::remove_dir_all(roll).is_err() && roll.exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends this process where MPI can't be left in order: without `MPI_Finalize`, which would wait for the others.
pub fn die(why: &str) -> ! {
    report(why);
    // Not `exit`: handlers of MPI may wait, too.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::exit(3)
}

/// Whether a process is alive and of the run with this roll: its number may belong to another one by now.
pub fn is_of(process: u32, roll: &Path) -> bool {
    let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let wanted = [ROLL.as_bytes(), b"=", roll.as_os_str().as_bytes()].concat();
    environment.split(|byte| *byte == 0).any(|entry| entry == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_another_is_not_the_one() {
        // 0 waits for 2, 2 for 3; 1 for anyone else.
        let signed =
            |rank: usize| [Some(vec![2]), Some(vec![0, 2, 3]), Some(vec![3]), None][rank].clone();
        assert_eq!(first_not_waiting(&[2], signed), Some(3));
        assert_eq!(first_not_waiting(&[3], signed), Some(3));
        assert_eq!(first_not_waiting(&[0, 2, 3], signed), Some(3));
        let circle = |rank: usize| Some(vec![1 - rank]);
        assert_eq!(first_not_waiting(&[1], circle), None, "all wait");
    }

    #[test]
    fn a_sign_is_never_read_in_halves() {
        let roll = tempfile::tempdir().unwrap();
        let file = roll.path().join("0.waits");
        write_whole(&file, "1 2").unwrap();
        let read = || std::fs::read_to_string(&file).unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| (0..2000).for_each(|_| write_whole(&file, "1 2").unwrap()));
            while !writer.is_finished() {
                assert_eq!(read(), "1 2");
            }
        });
        assert_eq!(std::fs::read_dir(roll.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_roll_is_cleared_while_others_write_there() {
        let roll = tempfile::tempdir().unwrap();
        let write =
            |number: usize| std::fs::write(roll.path().join((number % 50).to_string()), "").is_ok();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..20_000).all(write));
            }
            while !roll.path().join("49").exists() {}
            clear(roll.path());
            assert!(!roll.path().exists());
        });
    }
}
