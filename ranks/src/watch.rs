//! What keeps a process from waiting for ever where MPI itself waits, and from outliving who started it.
//!
//! A thread of its own looks at a clock. A call into MPI that can't be interrupted has a deadline; past it, or when the
//! launcher is gone, the process says why and ends itself.

use std::fs::{File, OpenOptions};
use std::io::Write;
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
    roll: Option<PathBuf>,
    until: Mutex<Option<(Instant, Duration, String)>>,
}

/// The number of this process among those that mpirun has started, and how many these are; before MPI is asked.
pub fn started_as() -> (usize, usize) {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let rank = number("OMPI_COMM_WORLD_RANK").unwrap_or(0);
    (rank, number("OMPI_COMM_WORLD_SIZE").unwrap_or(1))
}

/// Begins to watch this process. It signs the roll: `RANK.pid` has its process id.
pub fn begin() {
    let (rank, world_size) = started_as();
    let roll = std::env::var_os(ROLL).map(PathBuf::from);
    if let Some(roll) = &roll {
        let _ = std::fs::write(roll.join(format!("{rank}.pid")), std::process::id().to_string());
    }
    if WATCH.set(Watch { rank, world_size, roll, until: Mutex::new(None) }).is_ok() {
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
        let until = watch.until.lock().map(|until| until.clone()).unwrap_or_default();
        if let Some((deadline, patience, what)) = until
            && Instant::now() > deadline
        {
            let seconds = patience.as_secs();
            die(&format!("{what} did not end within {seconds} s{}", watch.not_here()));
        }
        #[cfg(unix)]
        if std::os::unix::process::parent_id() != parent {
            die("mpirun has ended");
        }
        if let Some(roll) = &watch.roll
            && launcher_is_gone(roll)
        {
            die("the command that started the ranks has ended");
        }
    }
}

impl Watch {
    /// Ranks that have not signed the roll.
    fn not_here(&self) -> String {
        let Some(roll) = &self.roll else { return String::new() };
        let missing = |rank: &usize| !roll.join(format!("{rank}.pid")).exists();
        let names: Vec<String> =
            (0..self.world_size).filter(missing).map(|r| r.to_string()).collect();
        if names.is_empty() {
            String::new()
        } else {
            format!(": rank {} never came", names.join(", "))
        }
    }
}

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

/// Runs `work`, which may wait in MPI, for at most `patience`.
pub(crate) fn during<R>(what: &str, patience: Duration, work: impl FnOnce() -> R) -> R {
    let set = |until| {
        if let Some(watch) = WATCH.get()
            && let Ok(mut place) = watch.until.lock()
        {
            *place = until;
        }
    };
    set(Some((Instant::now() + patience, patience, what.to_string())));
    let result = work();
    set(None);
    result
}

/// Says why this rank ends: in the roll, where the launcher reads it, or on standard error if there is none.
pub fn report(why: &str) {
    let (rank, _) = started_as();
    let line = why.lines().next().unwrap_or_default();
    match WATCH.get().and_then(|watch| watch.roll.as_ref()) {
        Some(roll) => {
            let file =
                OpenOptions::new().create(true).append(true).open(roll.join(format!("{rank}.why")));
            let _ = file.and_then(|mut file| writeln!(file, "{line}"));
        }
        None => {
            let _ = writeln!(std::io::stderr(), "rank {rank}: {line}");
        }
    }
}

/// Ends this process where MPI can't be left in order: without `MPI_Finalize`, which would wait for the others.
pub fn die(why: &str) -> ! {
    report(&match WATCH.get() {
        Some(watch) => format!("rank {}: {why}", watch.rank),
        None => why.to_string(),
    });
    // Not `exit`: handlers of MPI may wait, too.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::exit(3)
}
