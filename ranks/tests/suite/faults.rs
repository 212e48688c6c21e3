//! Ranks that are killed, that never come, or that were started with other settings: every rank ends, and the command
//! says in one line who it was.

use crate::support::{RANKS, Random, alone, refuses, said, text};
use ranks::checkpoint;
use ranks::launch::{Ended, Hosts, Launch, Started};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Far more than any of this takes.
const LIMIT: Duration = Duration::from_secs(120);

#[test]
fn a_rank_with_other_settings_is_named() {
    let _alone = alone();
    for (fault, what) in [
        ("1:seed", "rank 1 was started with the seed 43, the others with 42"),
        ("2:vocabulary", "rank 2 was started with the vocabulary 276, the others with 288"),
        ("0:version", "rank 0 was started with the version 0.0.1, the others with 0.1.0"),
        ("1:text", "rank 1 was started with a text whose tokens have the fingerprint "),
    ] {
        refuses(&["-n", "3", "--fault", fault], &[what, "start them by one command"]);
    }
}

#[test]
fn a_rank_that_never_starts_is_named() {
    let _alone = alone();
    for fault in ["2:never", "2:late"] {
        refuses(
            &["-n", "3", "--fault", fault, "--patience", "5"],
            &["rank 2 keeps the others waiting: the start of MPI did not end within 5 s"],
        );
    }
}

#[test]
fn a_rank_that_stops_in_a_step_is_named() {
    let _alone = alone();
    refuses(
        &["-n", "3", "--fault", "1:stuck:2", "--patience", "5"],
        &["rank 1 did not come to call", "a batch", "within 5 s"],
    );
}

/// By its number among all ranks, which is not the one among those that share its model.
#[test]
fn a_rank_of_a_copy_is_named() {
    let _alone = alone();
    let grid = ["-n", "4", "--copies", "2", "--patience", "5", "--fault"];
    let of = |fault, words| refuses(&[&grid[..], &[fault]].concat(), &[words]);
    of("3:stuck:2", "ended: rank 3 did not come to call");
    // Of two no one knows who is right.
    of("3:batch:2", "ended: rank 3 has other input than rank 2 in call");
    of("2:batch:2", "ended: rank 3 has other input than rank 2 in call");
    of("2:panics:2", "ended: rank 2 panicked");
}

#[test]
fn a_rank_that_ends_early_is_named() {
    let _alone = alone();
    refuses(&["-n", "3", "--fault", "1:panics:2"], &["rank 1 panicked: on purpose, at step 2"]);
    refuses(&["-n", "3", "--fault", "2:leaves:2"], &["rank 2"]);
}

#[test]
fn a_rank_with_another_batch_is_named() {
    let _alone = alone();
    refuses(
        &["-n", "4", "--fault", "3:batch:1"],
        &["rank 3 has other input than the others in call", "a lookup"],
    );
}

/// The living processes of a run.
fn of_run(folder: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let numbers =
        entries.filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok());
    numbers.filter(|process| ranks::watch::is_of(*process, folder)).collect()
}

/// The process of a rank of this run.
fn rank_of(folder: &Path, rank: usize) -> Option<u32> {
    let wanted = format!("OMPI_COMM_WORLD_RANK={rank}");
    of_run(folder).into_iter().find(|process| {
        let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    })
}

fn kill(process: u32) {
    send(process, Signal::KILL);
}

fn stop(process: u32) {
    send(process, Signal::STOP);
}

fn send(process: u32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(process as i32).unwrap(), signal);
}

fn long_run(folder: &Path, ranks: usize) -> Launch {
    let text = text(folder);
    let out = folder.join("out").display().to_string();
    let arguments =
        ["ranks", "--tiny", "--text", &text, "--steps", "100000", "--every", "3", "--out", &out];
    let arguments =
        arguments.iter().map(Into::into).chain(["-n".into(), ranks.to_string().into()]).collect();
    let patience = Duration::from_secs(60);
    Launch {
        program: RANKS.into(),
        arguments,
        ranks,
        threads: None,
        patience,
        piped: false,
        hosts: Hosts::default(),
    }
}

/// Waits until something is so.
fn until(what: &str, mut is: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is() {
        assert!(Instant::now() < deadline, "{what}: not within {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Kills a random rank at random moments; from the second round on, runs go on from what the one before left. Returns how
/// long the others took at most.
fn killed_at_random(rounds: usize) -> Duration {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut random = Random::new(17);
    let mut longest = Duration::ZERO;
    let mut newest = None;
    for round in 0..rounds {
        let launch = long_run(folder.path(), [2, 3, 4][random.below(3)]);
        let mut started = launch.start().unwrap();
        let (rank, pause) = (random.below(launch.ranks), random.below(2500) as u64);
        until("the rank comes", || started.processes()[rank].is_some());
        std::thread::sleep(Duration::from_millis(pause));
        let before = Instant::now();
        kill(started.processes()[rank].unwrap());
        let ended = started.wait(LIMIT);
        longest = longest.max(before.elapsed());
        let Ended::Badly(why) = ended else { panic!("round {round}: it ended well") };
        let expected = format!("rank {rank} was ended");
        assert!(
            why.starts_with(&expected),
            "round {round}, {pause} ms: {why:?}, expected {expected:?}"
        );
        assert_eq!(of_run(started.folder()), [0u32; 0], "round {round}: processes are left");
        // Every checkpoint that is there is whole, and none goes back.
        let all = checkpoint::all(&out).unwrap();
        all.iter().for_each(|folder| drop(checkpoint::check(folder).unwrap()));
        assert!(
            all.last().cloned() >= newest,
            "round {round}: {newest:?} is gone, there is {all:?}"
        );
        newest = all.last().cloned();
    }
    assert!(newest.is_some(), "no round came to a checkpoint");
    longest
}

#[test]
fn a_rank_that_is_killed_ends_the_others_and_leaves_no_half_checkpoint() {
    let longest = killed_at_random(6);
    assert!(longest < LIMIT);
}

#[test]
#[ignore = "some minutes: 50 rounds of the test above"]
fn fifty_ranks_are_killed() {
    let longest = killed_at_random(50);
    println!("the others ended at most {:.2} s after a rank was killed", longest.as_secs_f64());
    assert!(longest < Duration::from_secs(10), "{longest:?}");
}

fn begun(started: &Started) {
    until("all ranks come", || started.processes().iter().all(Option::is_some));
}

/// A rank is killed, and mpirun does not notice, as it happens while MPI starts: here it is stopped, and notices nothing. The
/// launcher watches the ranks itself. Whether the others are in the start of MPI or at work, they are ended.
#[test]
fn a_rank_that_mpirun_does_not_miss_is_missed() {
    let _alone = alone();
    for fault in [&["--fault", "2:late", "--patience", "3600"][..], &["--patience", "3600"]] {
        let folder = tempfile::tempdir().unwrap();
        let mut launch = long_run(folder.path(), 3);
        launch.arguments.extend(fault.iter().map(Into::into));
        let mut started = launch.start().unwrap();
        begun(&started);
        stop(started.mpirun());
        kill(started.processes()[1].unwrap());
        let why =
            "rank 1 was ended, and mpirun did not notice; the other ranks were ended after it";
        assert_eq!(started.wait(LIMIT), Ended::Badly(why.into()), "{fault:?}");
        assert_eq!(of_run(started.folder()), [0u32; 0], "{fault:?}: processes are left");
    }
}

/// The same of ranks that end themselves and say why: their own words are the reason.
#[test]
fn what_a_rank_says_that_mpirun_does_not_miss_is_heard() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut launch = long_run(folder.path(), 3);
    launch.arguments.extend(["--fault", "2:late", "--patience", "5"].map(Into::into));
    let mut started = launch.start().unwrap();
    begun(&started);
    stop(started.mpirun());
    let Ended::Badly(why) = started.wait(LIMIT) else { panic!("it ended well") };
    assert!(why.contains("the start of MPI did not end within 5 s"), "{why}");
    assert_eq!(of_run(started.folder()), [0u32; 0], "processes are left");
}

/// A rank that can't reach the command, behind a firewall, say, writes why on standard error before it ends itself.
#[test]
fn what_a_rank_says_to_mpirun_alone_is_heard() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let script = "echo 'rank 0: it is cut off' >&2; kill -9 $$";
    let arguments = ["-c", script].map(Into::into).to_vec();
    let launch = Launch { program: "/bin/sh".into(), arguments, ..long_run(folder.path(), 1) };
    let ended = launch.start().unwrap().wait(LIMIT);
    assert_eq!(ended, Ended::Badly("rank 0: it is cut off".into()));
}

/// A rank that has not even signed, of a run whose mpirun is killed: it is ended, too.
#[test]
fn a_rank_that_never_came_is_ended() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut launch = long_run(folder.path(), 3);
    launch.arguments.extend(["--fault", "2:never", "--patience", "3600"].map(Into::into));
    let mut started = launch.start().unwrap();
    until("two ranks come", || started.processes().iter().flatten().count() == 2);
    // Three ranks and mpirun.
    until("the third is there", || of_run(started.folder()).len() == 4);
    kill(started.mpirun());
    assert!(matches!(started.wait(LIMIT), Ended::Badly(_)));
    assert_eq!(of_run(started.folder()), [0u32; 0], "processes are left");
}

/// Stops a random rank at random moments, as a debugger does: also within a sum, where others wait for those that wait for it.
fn stopped_at_random(rounds: usize, order: &str) {
    let _alone = alone();
    let mut random = Random::new(23);
    for round in 0..rounds {
        let folder = tempfile::tempdir().unwrap();
        let mut launch = long_run(folder.path(), 4);
        launch.arguments.extend(["--patience", "4", "--order", order].map(Into::into));
        let mut started = launch.start().unwrap();
        begun(&started);
        until("a checkpoint", || !checkpoint::all(&folder.path().join("out")).unwrap().is_empty());
        let (rank, pause) = (random.below(4), random.below(300) as u64);
        std::thread::sleep(Duration::from_millis(pause));
        stop(started.processes()[rank].unwrap());
        let Ended::Badly(why) = started.wait(LIMIT) else { panic!("it ended well") };
        assert!(
            why.starts_with(&format!("rank {rank} ")),
            "{order}, round {round}, {pause} ms: {rank} stopped: {why}"
        );
        assert_eq!(of_run(started.folder()), [0u32; 0], "round {round}: processes are left");
    }
}

#[test]
fn a_rank_that_stops_anywhere_is_named() {
    stopped_at_random(2, "fixed");
    stopped_at_random(1, "any");
}

#[test]
#[ignore = "some minutes: 24 rounds of the test above"]
fn many_ranks_are_stopped() {
    stopped_at_random(12, "fixed");
    stopped_at_random(12, "any");
}

/// Ranks that are stopped where no one is left to miss them: all ranks at once; mpirun itself.
#[test]
fn what_nobody_can_miss_is_missed() {
    let _alone = alone();
    let ended = |who: &dyn Fn(&Started) -> Vec<u32>, expected: &str| {
        let folder = tempfile::tempdir().unwrap();
        let mut launch = long_run(folder.path(), 3);
        launch.arguments.extend(["--patience", "3"].map(Into::into));
        launch.patience = Duration::from_secs(3);
        let mut started = launch.start().unwrap();
        until("a checkpoint", || !checkpoint::all(&folder.path().join("out")).unwrap().is_empty());
        who(&started).into_iter().for_each(stop);
        assert_eq!(started.wait(LIMIT), Ended::Badly(expected.into()));
        assert_eq!(of_run(started.folder()), [0u32; 0], "processes are left");
    };
    let all = |started: &Started| started.processes().into_iter().flatten().collect();
    ended(
        &all,
        "rank 0 sent nothing for more than 3 s: it was stopped, or its host can't be reached",
    );
    ended(&|started| vec![started.mpirun()], "mpirun was stopped for more than 3 s");
}

/// A command at work, in its own folder for temporary files.
struct AtWork {
    folder: tempfile::TempDir,
    command: Child,
    /// The command's own in that one.
    run: PathBuf,
}

impl AtWork {
    /// Begun, with a checkpoint at each step.
    fn new() -> Self {
        Self::with(&[], |folder, _| !checkpoint::all(&folder.join("out")).unwrap().is_empty())
    }

    /// As far as `ready` wants it, which is given its folder and the command's own.
    fn with(more: &[&str], ready: impl Fn(&Path, &Path) -> bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let Launch { program, mut arguments, .. } = long_run(folder.path(), 3);
        let every = arguments.iter().position(|word| word == "--every").unwrap();
        arguments[every + 1] = "1".into();
        let temporary = folder.path().join("temporary");
        std::fs::create_dir(&temporary).unwrap();
        let mut command = Command::new(program);
        // A separate group, as a shell gives it.
        command.args(arguments).args(more).env("TMPDIR", &temporary);
        let command = command.process_group(0).stderr(Stdio::piped()).spawn().unwrap();
        let mut run = PathBuf::new();
        until("the ranks are at work", || {
            let mut found = files(&temporary).into_iter().filter(|path| begins(path, "ranks-"));
            found.next().is_some_and(|path| {
                run = path;
                ready(folder.path(), &run)
            })
        });
        Self { folder, command, run }
    }

    fn rank(&self, rank: usize) -> u32 {
        rank_of(&self.run, rank).unwrap()
    }

    /// The process that the command has started.
    fn mpirun(&self) -> u32 {
        let of_rank = format!("/proc/{}/stat", self.rank(0));
        let stat = std::fs::read_to_string(of_rank).unwrap();
        // `71 (name) S PARENT ...`
        stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// Waits until no process is left; what is left of its temporary files, and what it said.
    fn end(self) -> (Vec<PathBuf>, String) {
        let output = self.command.wait_with_output().unwrap();
        assert!(!output.status.success());
        until("all end", || of_run(&self.run).is_empty());
        (files(&self.folder.path().join("temporary")), said(&output))
    }
}

fn files(of: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(of).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn begins(path: &Path, with: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(with))
}

/// A rank is killed while it writes the optimizer's state, and mpirun with all its files.
#[test]
fn nothing_is_left_where_temporary_files_lie() {
    let _alone = alone();
    let work = AtWork::new();
    let writes = || {
        let temporary = work.run.parent().unwrap();
        files(&work.run).iter().chain(&files(temporary)).any(|path| begins(path, ".tmp"))
    };
    until("a rank writes", writes);
    kill(work.rank(1));
    assert_eq!(work.end().0, Vec::<PathBuf>::new());
    let work = AtWork::new();
    kill(work.mpirun());
    assert_eq!(work.end().0, Vec::<PathBuf>::new());
}

/// mpirun itself is killed, and only the ranks themselves are left to end them. Open MPI's do so once MPI has started;
/// before, only the ranks' own watch can notice.
#[test]
fn ranks_do_not_outlive_mpirun() {
    let _alone = alone();
    for fault in [&["--fault", "1:late", "--patience", "3600"][..], &[]] {
        let folder = tempfile::tempdir().unwrap();
        let mut launch = long_run(folder.path(), 3);
        launch.arguments.extend(fault.iter().map(Into::into));
        let started = launch.start().unwrap();
        begun(&started);
        kill(started.mpirun());
        until("all end", || of_run(started.folder()).is_empty());
    }
}

#[test]
fn mpirun_that_is_killed_is_named() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut started = long_run(folder.path(), 3).start().unwrap();
    begun(&started);
    kill(started.mpirun());
    let why = "mpirun was ended by signal 9; the ranks were ended after it";
    assert_eq!(started.wait(LIMIT), Ended::Badly(why.into()));
}

/// The command and mpirun are killed: a rank that has not signed is known to no one, and one that is stopped notices
/// nothing.
#[test]
fn no_rank_outlives_all() {
    let _alone = alone();
    for fault in ["2:never", "2:late"] {
        let more = ["--fault", fault, "--patience", "3600"];
        let mut work = AtWork::with(&more, |_, run| {
            // Three ranks and mpirun.
            let threads =
                |process| std::fs::read_dir(format!("/proc/{process}/task")).map(Iterator::count);
            // Who watches has a thread for it.
            let watches = rank_of(run, 0).is_some_and(|rank| threads(rank).is_ok_and(|n| n > 1));
            of_run(run).len() == 4 && watches
        });
        stop(work.rank(0));
        kill(work.mpirun());
        work.command.kill().unwrap();
        work.end();
    }
}

/// The command itself is killed: no one is left to end mpirun and its ranks.
#[test]
fn ranks_do_not_outlive_the_command() {
    let _alone = alone();
    let mut work = AtWork::new();
    work.command.kill().unwrap();
    let (left, _) = work.end();
    assert!(!left.iter().any(|path| begins(path, "ranks-")), "{left:?}");
}

/// Ctrl-C in a terminal: the command and mpirun get the signal, and the ranks do not.
#[test]
fn ctrl_c_ends_all() {
    let _alone = alone();
    let work = AtWork::new();
    let group = Pid::from_raw(work.command.id() as i32).unwrap();
    kill_process_group(group, Signal::INT).unwrap();
    let (left, said) = work.end();
    assert!(said.contains("Ctrl-C has stopped them"), "{said}");
    assert_eq!(left, Vec::<PathBuf>::new());
}
