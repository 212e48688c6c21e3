//! Starts ranks under mpirun, looks after them, and says in one line what went wrong.

use crate::error::{Error, Result};
use crate::link::processes;
use crate::roll::{Roll, with_host};
use crate::{group::Group, watch, watch::is_of};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long mpirun has to end its ranks before it is ended itself.
const GRACE: Duration = Duration::from_secs(3);
/// How often a run is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Ranks to be started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program that each rank runs.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// How many.
    pub ranks: usize,
    /// Threads of each. Without a number, cores are shared out among the ranks.
    pub threads: Option<usize>,
    /// How long a rank waits for another one.
    pub patience: Duration,
    /// Whether this process writes to rank 0 and reads what it prints. Otherwise it prints where this process does.
    pub piped: bool,
    /// On which hosts.
    pub hosts: Hosts,
}

/// The hosts of a run, in the form that mpirun takes.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    /// Files that name them.
    pub files: Vec<PathBuf>,
    /// Their names: `HOST` or `HOST:RANKS`, separated by commas.
    pub names: Vec<OsString>,
    /// What else mpirun is given.
    pub mpirun: Vec<OsString>,
}

impl Hosts {
    /// Whether all ranks are on this host.
    pub fn is_here(&self) -> bool {
        let Self { files, names, mpirun } = self;
        files.is_empty() && names.is_empty() && mpirun.is_empty()
    }

    fn arguments(&self) -> impl Iterator<Item = OsString> {
        let files = self.files.iter().flat_map(|file| ["--hostfile".into(), file.into()]);
        let names = self.names.iter().flat_map(|name| ["--host".into(), name.clone()]);
        files.chain(names).chain(self.mpirun.iter().cloned())
    }
}

/// Ranks at work. Dropped, they are ended.
pub struct Started {
    mpirun: Child,
    said: Receiver<String>,
    hosts: Hosts,
    roll: Roll,
    folder: tempfile::TempDir,
    patience: Duration,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Every rank did what it was asked.
    Well,
    /// In one line: which rank, and why.
    Badly(String),
}

/// Whether Ctrl-C was pressed since [`end_on_interrupt`].
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on, Ctrl-C ends the ranks that this process waits for, and not this process before them.
pub fn end_on_interrupt() {
    // It fails only if there is a handler already, or the system has none to give. Then Ctrl-C ends this process, and the
    // ranks notice that it is gone.
    let _ = ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed));
}

impl Launch {
    /// Starts the ranks.
    ///
    /// # Errors
    /// There is no mpirun, or it is not Open MPI's; this process is a rank itself; no folder can be made.
    pub fn start(&self) -> Result<Started> {
        if std::env::var_os(watch::ROLL).is_some() {
            // A rank that does not know itself for one would start ranks, and each of them, too.
            return Err(Error::Start {
                what: "a rank does not start ranks".into(),
                reason: format!("{} is set; unset it to start from here", watch::ROLL),
            });
        }
        if self.arguments.iter().any(|argument| argument == ":") {
            return Err(Error::Start {
                what: "mpirun takes `:` for itself".into(),
                reason: "name the file or the folder `./:`".into(),
            });
        }
        learner::ranks::is_open_mpi()
            .map_err(|e| Error::Start { what: "no ranks".into(), reason: e.to_string() })?;
        let failed = |what: &str, e: std::io::Error| Error::Start {
            what: what.into(),
            reason: e.to_string(),
        };
        let folder = tempfile::Builder::new().prefix("ranks-").tempdir();
        let folder = folder.map_err(|e| failed("no folder for the ranks could be made", e))?;
        let roll = Roll::begin(self.ranks, !self.hosts.is_here());
        let roll = roll.map_err(|e| failed("the roll could not be started", e))?;
        let mut mpirun = Command::new("mpirun");
        mpirun.args(["-n", &self.ranks.to_string()]);
        if self.hosts.is_here() {
            // Its own files go where this process removes them. Other hosts have no such folder.
            mpirun.args(["--mca", "orte_tmpdir_base"]).arg(folder.path());
        }
        // More ranks than cores; each may use any core.
        mpirun.args(["--oversubscribe", "--bind-to", "none"]);
        if rustix::process::geteuid().is_root() {
            mpirun.arg("--allow-run-as-root");
        }
        // What is in the environment of all ranks, on other hosts, too.
        let mut share = |name: &str, value: &OsStr| {
            mpirun.env(name, value).args(["-x", name]);
        };
        share(watch::ROLL, roll.place().to_string().as_ref());
        share(watch::FOLDER, folder.path().as_ref());
        if let Some(threads) = self.threads {
            share("RAYON_NUM_THREADS", threads.to_string().as_ref());
        }
        if !self.piped && !std::io::stdout().is_terminal() {
            // mpirun gives its ranks its own terminal in any case.
            share("NO_COLOR", "1".as_ref());
            share("CLICOLOR", "0".as_ref());
        }
        mpirun.args(self.hosts.arguments());
        mpirun.arg(&self.program).args(&self.arguments).stderr(Stdio::piped());
        if self.piped {
            mpirun.stdin(Stdio::piped()).stdout(Stdio::piped());
        } else {
            mpirun.stdin(Stdio::null());
        }
        let mut mpirun = mpirun.spawn().map_err(|e| Error::Start {
            what: "mpirun can't be run".into(),
            reason: format!("{e}; {}", learner::ranks::GET_MPI),
        })?;
        let (tell, said) = channel();
        if let Some(mut stderr) = mpirun.stderr.take() {
            std::thread::spawn(move || {
                let mut said = Vec::new();
                let _ = stderr.read_to_end(&mut said);
                let _ = tell.send(String::from_utf8_lossy(&said).into_owned());
            });
        }
        let (hosts, patience) = (self.hosts.clone(), self.patience);
        Ok(Started { mpirun, said, hosts, roll, folder, patience })
    }
}

impl Started {
    /// The pipes to rank 0 and from it.
    pub fn pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        self.mpirun.stdin.take().zip(self.mpirun.stdout.take())
    }

    /// The process ids of the ranks that have come so far, in the order of the ranks. They are those of the ranks' hosts.
    pub fn processes(&self) -> Vec<Option<u32>> {
        self.roll.processes()
    }

    /// The folder for temporary files. It names the run: each of its processes on this host has it in its environment.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// mpirun's own process id.
    pub fn mpirun(&self) -> u32 {
        self.mpirun.id()
    }

    /// Waits until all ranks have ended, for at most `limit`; then they are ended. A rank that stays stopped is not
    /// waited for.
    pub fn wait(&mut self, limit: Duration) -> Ended {
        let deadline = Instant::now() + limit;
        let (mut gone, mut silent, mut stopped) =
            (Since::default(), Since::default(), Since::default());
        // The others have said so long before, if there are others who can.
        let most = self.patience + watch::MOST_GRACE.min(self.patience) + GRACE;
        loop {
            if INTERRUPTED.load(Ordering::Relaxed) {
                self.end();
                return Ended::Badly("Ctrl-C has stopped them".into());
            }
            // A rank that is killed while MPI starts may go unnoticed by mpirun.
            gone.see(self.roll.gone());
            silent.see(self.roll.silent());
            stopped.see(is_stopped(self.mpirun.id()).then_some(()));
            match self.mpirun.try_wait() {
                Ok(Some(status)) if status.success() => {
                    self.end();
                    return Ended::Well;
                }
                Ok(None) if gone.longer_than(GRACE) => {
                    self.end();
                    let rank = gone.what().unwrap_or_default();
                    if self.roll.why(rank).is_some() {
                        return self.badly(None); // it has said so itself
                    }
                    return self.told(&format!(
                        "rank {rank} was ended, and mpirun did not notice; the other ranks were ended after it"
                    ));
                }
                Ok(None) if silent.longer_than(most) => {
                    self.end();
                    let (rank, seconds) =
                        (silent.what().unwrap_or_default(), self.patience.as_secs());
                    return self.told(&format!(
                        "rank {rank} sent nothing for more than {seconds} s: it was stopped, or its host can't be reached"
                    ));
                }
                Ok(None) if stopped.longer_than(most) => {
                    self.end();
                    let seconds = self.patience.as_secs();
                    return self.told(&format!("mpirun was stopped for more than {seconds} s"));
                }
                Ok(None) if Instant::now() < deadline => std::thread::sleep(LOOK),
                Ok(None) => {
                    self.end();
                    return Ended::Badly(format!(
                        "the ranks did not end within {} s",
                        limit.as_secs()
                    ));
                }
                Ok(Some(status)) => {
                    self.end();
                    return self.badly(Some(status));
                }
                Err(_) => {
                    self.end();
                    return self.badly(None);
                }
            }
        }
    }

    fn badly(&mut self, mpirun: Option<ExitStatus>) -> Ended {
        let why = self.reason(mpirun);
        self.told(&why)
    }

    /// With the host of the rank that is named.
    fn told(&self, why: &str) -> Ended {
        Ended::Badly(with_host(why, &self.roll.hosts()))
    }

    /// Ends what still runs. Afterwards there is no process of this run on this host.
    pub fn end(&mut self) {
        let ended = |mpirun: &mut Child| !matches!(mpirun.try_wait(), Ok(None));
        if !ended(&mut self.mpirun) {
            signal(self.mpirun.id(), Signal::TERM);
            let deadline = Instant::now() + GRACE;
            while !ended(&mut self.mpirun) && Instant::now() < deadline {
                std::thread::sleep(LOOK);
            }
            let _ = self.mpirun.kill();
            let _ = self.mpirun.wait();
        }
        // All that is left, and not only who has signed the roll; until no one is, for a signal is no end yet.
        let deadline = Instant::now() + GRACE;
        loop {
            let left = of(self.folder.path());
            if left.is_empty() || Instant::now() > deadline {
                break;
            }
            left.into_iter().for_each(|process| signal(process, Signal::KILL));
            std::thread::sleep(LOOK);
        }
        // What MPI would have removed, had it come to its end.
        for file in self.roll.shared_memory() {
            if file.starts_with(watch::SHARED_MEMORY) {
                let _ = std::fs::remove_file(file);
            }
        }
    }

    /// Why it ended badly, in one line.
    fn reason(&mut self, mpirun: Option<ExitStatus>) -> String {
        if let Some(signal) = mpirun.and_then(|status| status.signal()) {
            return format!("mpirun was ended by signal {signal}; the ranks were ended after it");
        }
        // Something else may have mpirun's standard error, too, and keep it open.
        let said = self.said.recv_timeout(GRACE).unwrap_or_default();
        let ranks = 0..self.roll.processes().len();
        let why = |rank: usize| self.roll.why(rank).map(|(at, line)| (at, rank, line));
        let reports: Vec<_> = ranks.filter_map(why).collect();
        let begins = |line: &&str| {
            line.strip_prefix("rank ")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        if let Some(line) = said.lines().find(begins) {
            return line.into(); // of a rank that could not reach this process, and then ended itself
        }
        let killed = signalled(&said);
        let silent = |rank: &usize| reports.iter().all(|(_, of, _)| of != rank);
        if let Some((rank, signal)) = killed.as_ref().filter(|(rank, _)| silent(rank)) {
            return format!(
                "rank {rank} was ended by signal {signal}; the other ranks were ended after it"
            );
        }
        if let Some((_, _, line)) = reports.into_iter().min() {
            return line;
        }
        // What mpirun can't start has a number, too.
        let unstarted = ["the specified executable", "the specified application"];
        let ended = || number_behind(&said, "process rank ").or(self.roll.gone());
        match if unstarted.iter().any(|words| said.contains(words)) { None } else { ended() } {
            Some(rank) => {
                format!("rank {rank} ended without a word; the other ranks were ended after it")
            }
            None => {
                let is_word = |line: &&str| !line.is_empty() && !line.starts_with('-');
                let lines: Vec<&str> = said.lines().map(str::trim).filter(is_word).collect();
                // On several hosts, what comes first may be ssh's warning or a host's greeting.
                let shown =
                    if self.hosts.is_here() { &lines[..lines.len().min(1)] } else { &lines };
                let shown =
                    if shown.is_empty() { "it said nothing".into() } else { shown.join("\n") };
                format!("mpirun could not run the ranks: {shown}")
            }
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.end();
    }
}

fn signal(process: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Something that is seen again and again, and since when it has been the same.
struct Since<T>(Option<(T, Instant)>);

impl<T> Default for Since<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: PartialEq + Copy> Since<T> {
    fn see(&mut self, what: Option<T>) {
        if what != self.what() {
            self.0 = what.map(|what| (what, Instant::now()));
        }
    }

    fn what(&self) -> Option<T> {
        self.0.as_ref().map(|(what, _)| *what)
    }

    fn longer_than(&self, limit: Duration) -> bool {
        self.0.as_ref().is_some_and(|(_, since)| since.elapsed() > limit)
    }
}

/// Whether a signal or a debugger has stopped a process.
fn is_stopped(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // `71 (name) T ...`
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}

/// The living processes of the run with this folder, on this host.
fn of(folder: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|process| is_of(*process, folder)).collect()
}

/// `process rank 2 with PID 71 on node x exited on signal 9 (Killed).`
fn signalled(said: &str) -> Option<(usize, String)> {
    let text = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let (before, behind) = text.split_once("exited on signal ")?;
    let signal = behind.split('.').next()?.to_string();
    let rank = before.rsplit_once("process rank ")?.1;
    Some((rank.split(' ').next()?.parse().ok()?, signal))
}

fn number_behind(said: &str, words: &str) -> Option<usize> {
    let text = said.split_whitespace().collect::<Vec<_>>().join(" ");
    text.split_once(words)?.1.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// What each rank's program does: joins the others, works with them, and takes leave. An error ends the process, with its
/// line on the roll. Returns what `work` gave.
pub fn as_rank<R>(
    patience: Duration,
    work: impl FnOnce(&std::rc::Rc<dyn crate::communicator::Communicator>) -> Result<R>,
) -> Option<R> {
    watch::end_with_mpirun();
    say_panics();
    share_cores();
    let (universe, link) = processes::join(patience)?;
    let comm: std::rc::Rc<dyn crate::communicator::Communicator> =
        std::rc::Rc::new(Group::new(link));
    match work(&comm) {
        Ok(done) => {
            drop(comm);
            watch::done();
            processes::leave(universe);
            Some(done)
        }
        Err(error) => {
            watch::report(&error.to_string());
            // Not dropped: MPI would wait for ranks that are lost. mpirun ends the others.
            std::mem::forget(universe);
            std::process::exit(3)
        }
    }
}

/// Shares out the cores of this host among its ranks, if nothing else was asked for.
fn share_cores() {
    let asked = std::env::var_os("RAYON_NUM_THREADS").is_some();
    if let Some(of_host) = watch::of_host().filter(|_| !asked) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (cores / of_host.max(1)).max(1);
        // It fails only if there is a pool already.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    }
}

fn say_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload().downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.payload().downcast_ref::<&str>().copied());
        let (rank, _) = watch::started_as().unwrap_or_default();
        watch::report(&format!("rank {rank} panicked: {}", message.unwrap_or("without a word")));
        std::process::exit(3);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    /// A path need not be text.
    #[test]
    fn a_process_is_known_by_its_folder() {
        let odd = Path::new(std::ffi::OsStr::from_bytes(b"/nowhere/\xff\xfe"));
        let mut sleep = Command::new("sleep").arg("600").env(watch::FOLDER, odd).spawn().unwrap();
        // It begins as a copy of this process.
        let deadline = Instant::now() + Duration::from_secs(60);
        while of(odd).is_empty() && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
        let found = of(odd);
        sleep.kill().unwrap();
        sleep.wait().unwrap();
        assert_eq!(found, [sleep.id()]);
        assert_eq!(of(odd), [0u32; 0]);
    }

    #[test]
    fn what_mpirun_says_of_a_signal() {
        let said = "----\nmpirun noticed that process rank 2 with PID 0 on node x exited on\nsignal 9 (Killed).\n----";
        assert_eq!(signalled(said), Some((2, "9 (Killed)".into())));
        assert_eq!(signalled("all is well"), None);
        assert_eq!(number_behind("due to process rank 1 with PID 0", "process rank "), Some(1));
    }
}
