//! Ranks that are killed, that never come, or that were started with other settings: everybody ends, and the command says
//! in one line who it was.

use crate::support::{Random, alone};
use ranks::checkpoint;
use ranks::launch::{Ended, Launch, Started};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

/// The program of `cargo course ranks`.
const RANKS: &str = env!("CARGO_BIN_EXE_ranks");
/// Far more than any of this takes.
const LIMIT: Duration = Duration::from_secs(120);

/// A text from which the tiny model can learn for some steps.
fn text(folder: &Path) -> String {
    let file = folder.join("text");
    let words = ["the", "norm", "of", "a", "token", "turns", "each", "rank"];
    let mut random = Random::new(3);
    let content: String =
        (0..3000).map(|_| words[random.below(words.len())]).collect::<Vec<_>>().join(" ");
    std::fs::write(&file, content).unwrap();
    file.display().to_string()
}

fn course(folder: &Path, more: &[&str]) -> Output {
    let text = text(folder);
    let mut command = Command::new(RANKS);
    command.args(["ranks", "--tiny", "--text", &text]).args(more);
    command.output().unwrap()
}

/// The command must end with code 2, one line, and these words in it.
fn refuses(more: &[&str], words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let output = course(folder.path(), more);
    let said = String::from_utf8_lossy(&output.stderr).replace("\n  ", " ").replace('\n', " ");
    assert_eq!(output.status.code(), Some(2), "{more:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{more:?}: {word:?} is not in {said:?}");
    }
    assert_eq!(said.matches("error:").count(), 1, "{said:?}");
}

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
    refuses(
        &["-n", "3", "--fault", "2:never", "--patience", "5"],
        &["the start of MPI", "within 5 s: rank 2 never came"],
    );
}

#[test]
fn a_rank_that_stops_in_a_step_is_named() {
    let _alone = alone();
    refuses(
        &["-n", "3", "--fault", "1:stuck:2", "--patience", "5"],
        &["rank 1 did not come to call", "a lookup of 2 x 16 tokens", "within 5 s"],
    );
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

#[test]
fn what_fits_no_grid_is_refused_before_anything_starts() {
    refuses(&["-n", "5"], &["world size 5 does not divide vocabulary size 288"]);
    refuses(&["-n", "4", "--copies", "3"], &["4 ranks are no grid with 2 shards"]);
    refuses(&["-n", "0"], &["--ranks must be at least 1"]);
    refuses(&["--text", "nowhere"], &["--text"]);
}

#[test]
fn without_mpi_one_line_says_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let text = text(folder.path());
    let mut command = Command::new(RANKS);
    command.args(["ranks", "--tiny", "--text", &text]).env("PATH", folder.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).replace("\n  ", " ").replace('\n', " ");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains("there is no mpirun here")
            && said.contains("libopenmpi-dev openmpi-bin libclang-dev"),
        "{said}"
    );
}

/// What a run prints of its weights.
fn weights(output: &Output) -> (String, Vec<f32>) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let run: ranks::show::Run = serde_json::from_slice(&output.stdout).unwrap();
    (run.weights, run.losses)
}

/// A run of 4 ranks that goes on with 2, and ends with 3: the bits are those of one rank that was never stopped.
#[test]
fn any_number_of_ranks_goes_on_from_a_checkpoint() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let run = |n: &str, more: &[&str]| {
        let arguments: Vec<&str> =
            ["-n", n, "--steps", "12", "--json"].iter().chain(more).copied().collect();
        course(folder.path(), &arguments)
    };
    let (expected, losses) = weights(&run("1", &[]));
    let out = folder.path().join("out").display().to_string();
    let checkpoints = ["--out", out.as_str(), "--every", "4"];
    let stopped = run("4", &[&checkpoints[..], &["--fault", "1:panics:6"]].concat());
    assert_eq!(stopped.status.code(), Some(2));
    let step = |step| vec![checkpoint::folder_of(Path::new(&out), step)];
    // What a run left that was killed while it removed an older one. The next checkpoint clears it away.
    let half = Path::new(&out).join(".old-step-000002");
    std::fs::create_dir_all(&half).unwrap();
    std::fs::write(half.join("rank-1-of-4.safetensors"), "").unwrap();
    assert_eq!(checkpoint::all(Path::new(&out)), step(4));
    let stopped = run("2", &[&checkpoints[..], &["--fault", "0:panics:9"]].concat());
    assert_eq!(stopped.status.code(), Some(2));
    assert_eq!(checkpoint::all(Path::new(&out)), step(8));
    assert!(!half.exists());
    let (got, last) = weights(&run("3", &checkpoints));
    assert_eq!(last, losses[8..], "losses of the last steps");
    assert_eq!(got, expected);
    assert_eq!(checkpoint::all(Path::new(&out)), step(12));

    // Another run in the same folder, and a file that was changed.
    let other = course(folder.path(), &["-n", "2", "--steps", "13", "--out", &out]);
    let said = String::from_utf8_lossy(&other.stderr).replace("\n  ", " ");
    assert!(said.contains("it is of another run (seed 42, 12 steps"), "{said}");
    let file = checkpoint::folder_of(Path::new(&out), 12).join("rank-1-of-3.safetensors");
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let broken = run("2", &checkpoints);
    let said = String::from_utf8_lossy(&broken.stderr).replace("\n  ", " ");
    assert!(
        said.contains("rank-1-of-3.safetensors: its bytes are not those that were written"),
        "{said}"
    );
}

/// A rank whose disk fails: all say so, and there is no checkpoint of that step.
#[test]
fn a_checkpoint_that_one_rank_cannot_write_is_absent() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    let output = course(
        folder.path(),
        &["-n", "3", "--steps", "8", "--every", "4", "--out", &out, "--fault", "2:disk:8"],
    );
    let said = String::from_utf8_lossy(&output.stderr).replace("\n  ", " ");
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("rank 2 refused: ") && said.contains("No such file"), "{said}");
    assert_eq!(checkpoint::all(Path::new(&out)), [checkpoint::folder_of(Path::new(&out), 4)]);
    checkpoint::check(&checkpoint::folder_of(Path::new(&out), 4)).unwrap();
}

/// The living processes of a run.
fn of_run(roll: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let numbers =
        entries.filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok());
    numbers.filter(|process| ranks::launch::is_of(*process, roll)).collect()
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
    Launch { program: RANKS.into(), arguments, ranks, threads: None, piped: false }
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
        assert_eq!(of_run(started.roll()), [0u32; 0], "round {round}: processes are left");
        // Every checkpoint that is there is whole, and none goes back.
        let all = checkpoint::all(&out);
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
        assert_eq!(of_run(started.roll()), [0u32; 0], "{fault:?}: processes are left");
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
    assert_eq!(of_run(started.roll()), [0u32; 0], "processes are left");
}

/// mpirun itself is killed, and nobody is left to end the ranks but they themselves. Open MPI's do so once MPI has started;
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
        until("all end", || of_run(started.roll()).is_empty());
    }
}

/// The command itself is killed: nobody is left to end mpirun and its ranks.
#[test]
fn ranks_do_not_outlive_the_command() {
    let _alone = alone();
    at_work(|command| command.kill().unwrap());
}

/// Ctrl-C in a terminal: the command and mpirun get the signal, and the ranks do not.
#[test]
fn ctrl_c_ends_all() {
    let _alone = alone();
    at_work(|command| {
        let group = Pid::from_raw(command.id() as i32).unwrap();
        kill_process_group(group, Signal::INT).unwrap();
    });
}

/// Starts the command, ends it in the given way once its ranks have come, and waits until nobody is left.
fn at_work(end: impl Fn(&mut Child)) {
    let folder = tempfile::tempdir().unwrap();
    let Launch { program, arguments, .. } = long_run(folder.path(), 3);
    let rolls = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    // A group of its own, as a shell gives it.
    let command = command.args(arguments).env("TMPDIR", rolls.path()).process_group(0);
    let mut command = command.spawn().unwrap();
    let roll = || {
        let entries = std::fs::read_dir(rolls.path()).unwrap().filter_map(Result::ok);
        entries
            .map(|entry| entry.path())
            .find(|path| path.join("2.pid").exists() && path.join("1.pid").exists())
    };
    until("the ranks come", || roll().is_some());
    let roll = roll().unwrap();
    end(&mut command);
    assert!(!command.wait().unwrap().success());
    until("all end", || of_run(&roll).is_empty());
}
