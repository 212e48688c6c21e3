//! Ranks on several hosts. A host here is a process with a network, a name, process numbers, and folders for temporary files
//! and shared memory of its own; a cable leads from each to a switch. All else of the file system they share. Only who may make such things can run these tests: as root, on Linux,
//! with `ip` of iproute2.

use crate::support::{RANKS, Random, alone, text};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Far more than any of this takes.
const LIMIT: Duration = Duration::from_secs(300);
/// How long a rank waits for another.
const PATIENCE: u64 = 20;

/// Hosts that are joined by a switch.
struct Network {
    hosts: Vec<Host>,
    /// What mpirun had begun on them.
    begun: Arc<Mutex<Vec<Child>>>,
    /// What all of them see.
    folder: tempfile::TempDir,
    /// In the names of its devices: no other network has it.
    number: u32,
}

struct Host {
    /// What has made it.
    maker: Child,
    /// The process that does nothing but be the host.
    process: u32,
}

fn run(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn ip(arguments: &str) -> bool {
    run("ip", &arguments.split(' ').collect::<Vec<_>>())
}

impl Network {
    /// `None` where this machine lets no one make hosts.
    fn of(count: usize) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        for name in ["tmp", "disk"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let number = std::process::id();
        let mut network = Self { hosts: Vec::new(), begun: Arc::default(), folder, number };
        let made = ip(&format!("link add qs{number} type bridge forward_delay 0"))
            && ip(&format!("link set qs{number} up"))
            && (0..count).all(|host| network.add(host));
        if !made {
            println!("no hosts can be made here: this needs root and `ip`; nothing was tested");
            return None;
        }
        network.serve();
        Some(network)
    }

    /// In place of ssh: the agent that mpirun calls on a host hands `HOST COMMAND` to this process, which begins it there.
    fn serve(&self) {
        let requests = self.path().join("requests");
        assert!(run("mkfifo", &[requests.to_str().unwrap()]));
        // To be read and written, it has no end.
        let from = File::options().read(true).write(true).open(&requests).unwrap();
        let hosts: Vec<u32> = self.hosts.iter().map(|host| host.process).collect();
        let (temporary, begun) = (self.temporary(), self.begun.clone());
        std::thread::spawn(move || {
            for request in BufReader::new(from).lines().map_while(Result::ok) {
                let (to, command) = request.split_once(' ').unwrap();
                let host = (0..hosts.len()).find(|host| address(*host) == to).unwrap();
                let mut shell = on(hosts[host], "sh", &temporary);
                let shell = shell.args(["-c", command]).stderr(Stdio::null()).spawn().unwrap();
                begun.lock().unwrap().push(shell);
            }
        });
        let agent = format!("#!/bin/sh\nprintf '%s\\n' \"$*\" > {}\n", requests.display());
        std::fs::write(self.agent(), agent).unwrap();
        assert!(run("chmod", &["+x", self.agent().to_str().unwrap()]));
    }

    /// Whether the host could be made.
    fn add(&mut self, host: usize) -> bool {
        let (cable, far) = (self.cable(host), format!("qf{}x{host}", self.number));
        let folders = format!(
            "mount -t proc p /proc && mount -t tmpfs t {} && mount -t tmpfs d {} && mount -t tmpfs s /dev/shm",
            self.temporary(),
            self.disk().display()
        );
        let ready = self.path().join(format!("ready-{host}"));
        let script = format!(
            "hostname host-{host} && {folders} && ip link set lo up && touch {} && exec sleep 3600",
            ready.display()
        );
        let mut command = Command::new("unshare");
        command.args(["-n", "-m", "-u", "-p", "--fork", "sh", "-c", &script]).stderr(Stdio::null());
        let Ok(mut maker) = command.spawn() else { return false };
        let mut gave_up = false;
        until("the host is there", || {
            gave_up = maker.try_wait().unwrap().is_some();
            gave_up || ready.exists()
        });
        if gave_up {
            return false;
        }
        let children = format!("/proc/{0}/task/{0}/children", maker.id());
        let Ok(process) = std::fs::read_to_string(children) else { return false };
        let process = process.trim().parse().unwrap();
        self.hosts.push(Host { maker, process });
        let on_host = |what: &str| {
            self.on(host, "ip").args(what.split(' ')).status().is_ok_and(|status| status.success())
        };
        ip(&format!("link add {cable} type veth peer name {far}"))
            && ip(&format!("link set {cable} master qs{} up", self.number))
            && ip(&format!("link set {far} netns {process}"))
            && on_host(&format!("addr add {}/24 dev {far}", address(host)))
            && on_host(&format!("link set {far} up"))
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder for temporary files, of which each host has one of its own.
    fn temporary(&self) -> String {
        self.path().join("tmp").display().to_string()
    }

    /// The folder for what stays, of which each host has one of its own.
    fn disk(&self) -> PathBuf {
        self.path().join("disk")
    }

    /// The newest checkpoint in a folder, as each host sees it.
    fn newest(&self, folder: &Path) -> Vec<Option<usize>> {
        let seen = |host: &Host| {
            let root = PathBuf::from(format!("/proc/{}/root", host.process));
            ranks::checkpoint::newest(&root.join(folder.strip_prefix("/").unwrap())).unwrap()
        };
        self.hosts.iter().map(seen).collect()
    }

    fn agent(&self) -> PathBuf {
        self.path().join("agent")
    }

    /// The near end of a host's cable.
    fn cable(&self, host: usize) -> String {
        format!("qc{}x{host}", self.number)
    }

    /// Back in after a cut, until others are reached.
    fn plug_in(&self, host: usize) {
        assert!(ip(&format!("link set {} up", self.cable(host))));
        let other = usize::from(host == 0);
        let hear = format!("exec 3<>/dev/tcp/{}/9; test $? = 0", address(other));
        // A port where no one listens answers at once that it does not.
        let reached = || {
            let said = self.on(host, "timeout").args(["2", "bash", "-c", &hear]).output().unwrap();
            String::from_utf8_lossy(&said.stderr).contains("refused")
        };
        until("the cable leads to the others", reached);
    }

    /// A program on a host.
    fn on(&self, host: usize, program: &str) -> Command {
        on(self.hosts[host].process, program, &self.temporary())
    }

    /// The living processes of a host, itself not among them.
    fn processes(&self, host: usize) -> Vec<i32> {
        let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/pid")).ok();
        let itself = self.hosts[host].process.to_string();
        let wanted = namespace(&itself);
        let names = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
        let names = names.filter_map(|name| name.into_string().ok());
        let lives = |name: &String| {
            std::fs::read(format!("/proc/{name}/cmdline")).is_ok_and(|words| !words.is_empty())
        };
        let on_host = |name: &String| {
            let is_process = name.parse::<i32>().is_ok() && *name != itself;
            is_process && namespace(name) == wanted && lives(name)
        };
        names.filter(on_host).filter_map(|name| name.parse().ok()).collect()
    }

    /// The program of `cargo course ranks`, begun on the first host, with `of_each` ranks on each.
    fn ranks(&self, of_each: usize, more: &[&str]) -> Child {
        self.ranks_on_first(self.hosts.len(), of_each, more)
    }

    /// The same on the first `count` hosts.
    fn ranks_on_first(&self, count: usize, of_each: usize, more: &[&str]) -> Child {
        let hosts: Vec<String> =
            (0..count).map(|host| format!("{}:{of_each}", address(host))).collect();
        let mut command = self.on(0, RANKS);
        command.args(["ranks", "-n", &(of_each * count).to_string()]);
        command.args(["--host", &hosts.join(",")]).args(more);
        if !more.contains(&"--patience") {
            command.args(["--patience", &PATIENCE.to_string()]);
        }
        command.args(["--", "--mca", "plm_rsh_agent"]).arg(self.agent());
        command.args(["--mca", "btl_tcp_if_include", "10.77.0.0/24"]);
        command.args(["--mca", "oob_tcp_if_include", "10.77.0.0/24"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// What is left on the hosts but they themselves: processes and files.
    fn left(&self) -> Vec<String> {
        let of_host = |host: usize| {
            let processes = self.processes(host).into_iter().map(|process| {
                let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
                format!("host-{host}: {process} {}", String::from_utf8_lossy(&words))
            });
            let listed = self
                .on(host, "find")
                .args([&self.temporary(), "/dev/shm", "-mindepth", "1"])
                .output();
            let listed = String::from_utf8_lossy(&listed.unwrap().stdout).into_owned();
            let files =
                listed.lines().map(|file| format!("host-{host}: {file}")).collect::<Vec<_>>();
            processes.chain(files).collect::<Vec<_>>()
        };
        (0..self.hosts.len()).flat_map(of_host).collect()
    }

    fn until_clear(&self) {
        let deadline = Instant::now() + LIMIT;
        while !self.left().is_empty() {
            assert!(Instant::now() < deadline, "left after {LIMIT:?}: {:#?}", self.left());
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // First those who are to reap what ends: one that was stopped reaps nothing, and a host waits for that.
        for begun in self.begun.lock().unwrap().iter_mut() {
            let _ = begun.kill();
            let _ = begun.wait();
        }
        for host in 0..self.hosts.len() {
            for process in self.processes(host) {
                let _ = Pid::from_raw(process).map(|pid| kill_process(pid, Signal::KILL));
            }
            let Host { maker, process } = &mut self.hosts[host];
            let _ = Pid::from_raw(*process as i32).map(|pid| kill_process(pid, Signal::KILL));
            let _ = maker.wait();
            ip(&format!("link del {}", self.cable(host)));
        }
        ip(&format!("link del qs{}", self.number));
    }
}

/// A program on the host of this process.
fn on(host: u32, program: &str, temporary: &str) -> Command {
    let mut command = Command::new("nsenter");
    command
        .args(["-t", &host.to_string(), "-n", "-m", "-u", "-p", program])
        .env("TMPDIR", temporary);
    command
}

/// Of a host in its network.
fn address(host: usize) -> String {
    format!("10.77.0.{}", host + 1)
}

fn until(what: &str, mut is: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is() {
        assert!(Instant::now() < deadline, "{what}: not within {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).replace("\n  ", " ").replace('\n', " ")
}

/// Weights and losses at the end, as JSON has them.
fn result(output: &Output) -> (serde_json::Value, serde_json::Value) {
    assert!(output.status.success(), "{}", words(output));
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    (all["losses"].clone(), all["weights"].clone())
}

#[test]
fn ranks_on_several_hosts_have_the_bits_of_one() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let file = text(folder.path());
    let arguments = ["--tiny", "--steps", "5", "--json", "--text", &file];
    let alone = Command::new(RANKS).args(["ranks", "-n", "1"]).args(arguments).output();
    let expected = result(&alone.unwrap());
    for count in [2, 3] {
        let Some(network) = Network::of(count) else { return };
        // The text is on no host but the first.
        let mut there = network.on(0, "sh");
        there.args(["-c", "cat > $TMPDIR/text"]).stdin(Stdio::piped());
        let mut there = there.spawn().unwrap();
        let content = std::fs::read(&file).unwrap();
        std::io::Write::write_all(&mut there.stdin.take().unwrap(), &content).unwrap();
        assert!(there.wait().unwrap().success());
        let text = format!("{}/text", network.temporary());
        let arguments = ["--tiny", "--steps", "5", "--json", "--text", &text];
        let output = network.ranks(2, &arguments).wait_with_output().unwrap();
        assert_eq!(result(&output), expected, "{count} hosts");
        if count == 2 {
            let arguments = ["--tensor-parallel", "--steps", "3", "--json", "--text", &text];
            let mut alone = Command::new(RANKS);
            alone.args(["ranks", "-n", "1"]).args(&arguments[..4]).args(["--text", &file]);
            let alone = alone.output().unwrap();
            let output = network.ranks(1, &arguments).wait_with_output().unwrap();
            assert_eq!(result(&output), result(&alone), "blocks that are cut");
        }
        assert!(network.on(0, "rm").arg(&text).status().unwrap().success());
        network.until_clear();
    }
}

/// Only rank 0's host has the model that a run leaves.
#[test]
fn a_model_is_sent_to_hosts_that_lack_it() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let file = text(folder.path());
    let arguments = ["--tiny", "--steps", "5", "--json", "--text", &file];
    let on_one = |more: [&str; 2]| {
        let output =
            Command::new(RANKS).args(["ranks", "-n", "1"]).args(arguments).args(more).output();
        result(&output.unwrap())
    };
    let out = folder.path().join("out");
    on_one(["--out", out.to_str().unwrap()]);
    let expected = on_one(["--model", out.to_str().unwrap()]);
    let Some(network) = Network::of(2) else { return };
    let disk = network.disk();
    let run = |more: [&str; 2]| {
        let arguments = [&arguments[..], &more].concat();
        result(&network.ranks(2, &arguments).wait_with_output().unwrap())
    };
    run(["--out", disk.to_str().unwrap()]);
    let has = |host| {
        let file = disk.join("step-000005/config.json");
        network.on(host, "test").arg("-f").arg(file).status().unwrap().success()
    };
    assert!(has(0) && !has(1));
    assert_eq!(run(["--model", disk.to_str().unwrap()]), expected);
    network.until_clear();
}

/// What may happen to a host, or to a rank on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Its cable is pulled out.
    Cut,
    /// All of its processes are killed.
    Killed,
    /// All of them are stopped.
    Stopped,
    /// One rank is killed.
    RankKilled,
    /// One rank is stopped.
    RankStopped,
}

const FAULTS: [Fault; 5] =
    [Fault::Cut, Fault::Killed, Fault::Stopped, Fault::RankKilled, Fault::RankStopped];

impl Network {
    /// The ranks on a host.
    fn ranks_on(&self, host: usize) -> Vec<i32> {
        let is_rank = |process: &i32| {
            let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|entry| entry.starts_with(b"OMPI_COMM_WORLD_RANK="))
        };
        self.processes(host).into_iter().filter(is_rank).collect()
    }

    fn send(&self, host: usize, signal: Signal, to: impl IntoIterator<Item = i32>) {
        let processes = to.into_iter().filter_map(Pid::from_raw);
        assert!(host < self.hosts.len());
        for process in processes {
            let _ = kill_process(process, signal);
        }
    }

    fn disturb(&self, host: usize, fault: Fault) {
        let (all, ranks) = (self.processes(host), self.ranks_on(host));
        assert!(!ranks.is_empty(), "host {host} has no ranks");
        match fault {
            Fault::Cut => assert!(ip(&format!("link set {} down", self.cable(host)))),
            Fault::Killed => self.send(host, Signal::KILL, all),
            Fault::Stopped => self.send(host, Signal::STOP, all),
            Fault::RankKilled => self.send(host, Signal::KILL, ranks.into_iter().take(1)),
            Fault::RankStopped => self.send(host, Signal::STOP, ranks.into_iter().take(1)),
        }
    }
}

/// Disturbs runs at random moments: each ends, names the host, and leaves nothing; the next goes on from what it left. The
/// last one is left alone, and has the bits of one process that was never disturbed.
///
/// Checkpoints lie in a folder that all hosts share, or on the disk of each.
fn disturbed(faults: &[(usize, Fault)], count: usize, own_disks: bool) {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let file = text(folder.path());
    let steps = ["--tiny", "--steps", "200", "--every", "1", "--json", "--text", &file];
    let once = Command::new(RANKS).args(["ranks", "-n", "1"]).args(steps).output();
    let expected = result(&once.unwrap()).1;
    let Some(network) = Network::of(count) else { return };
    let out = if own_disks { network.disk() } else { network.path().join("out") };
    let steps = [&steps[..], &["--out", out.to_str().unwrap()]].concat();
    let mut random = Random::new(31);
    for (round, (host, fault)) in faults.iter().enumerate() {
        let begun = network.newest(&out);
        let ranks = network.ranks(2, &steps);
        until("a checkpoint", || {
            network.newest(&out).into_iter().zip(&begun).all(|(newest, begun)| newest > *begun)
        });
        std::thread::sleep(Duration::from_millis(random.below(100) as u64));
        let disturbed = Instant::now();
        network.disturb(*host, *fault);
        if (*host, *fault) == (0, Fault::Stopped) {
            // So is the command, which will only say so when it goes on; and nsenter, which stops with it.
            until("the others end", || (1..count).all(|host| network.processes(host).is_empty()));
            let all = network.processes(0).into_iter().chain([ranks.id() as i32]);
            network.send(0, Signal::CONT, all);
        }
        let output = ranks.wait_with_output().unwrap();
        let (took, said) = (disturbed.elapsed().as_secs_f64(), words(&output));
        assert!(!output.status.success(), "{round}, {fault:?} of {host}: it ended well");
        println!("{fault:?} of host-{host}: {took:.1} s: {said}");
        // The command is on host 0. When that one is lost, it is the others who are not heard.
        if *host > 0 || matches!(fault, Fault::RankKilled | Fault::RankStopped) {
            let named = said.contains(&format!("is on host-{host})"));
            assert!(named, "{round}, {fault:?} of {host}: {said}");
        }
        // What is stopped ends when it is let go on.
        network.send(*host, Signal::CONT, network.processes(*host));
        if *fault == Fault::Killed {
            // No one is left there who could remove files.
            let folders = format!("rm -rf {}/* /dev/shm/*", network.temporary());
            assert!(network.on(*host, "sh").args(["-c", &folders]).status().unwrap().success());
        }
        network.until_clear();
        network.plug_in(*host);
    }
    let output = network.ranks(2, &steps).wait_with_output().unwrap();
    assert_eq!(result(&output).1, expected);
    network.until_clear();
}

#[test]
fn a_host_that_is_lost_is_named() {
    let faults = [Fault::Killed, Fault::RankKilled, Fault::RankStopped];
    disturbed(&faults.map(|fault| (1, fault)), 2, false);
}

#[test]
fn hosts_go_on_from_their_own_disks() {
    disturbed(&[(1, Fault::Cut), (0, Fault::Killed), (2, Fault::Stopped)], 3, true);
}

/// What a user of two machines meets first.
#[test]
fn hosts_that_are_not_ready_are_named() {
    let _alone = alone();
    let Some(network) = Network::of(2) else { return };
    let ended = |more: &[&str]| {
        let output = network.ranks(1, &[&["--tiny"], more].concat()).wait_with_output().unwrap();
        assert!(!output.status.success());
        network.until_clear();
        words(&output)
    };
    let said = ended(&["--out", "checkpoints"]);
    assert!(said.contains("--out must be an absolute path"), "{said}");
    // The program is not there.
    let empty = network.path().join("tmp");
    let hidden = Path::new(RANKS).parent().unwrap().display().to_string();
    let hide = format!("mount --bind {} {hidden}", empty.display());
    assert!(network.on(1, "sh").args(["-c", &hide]).status().unwrap().success());
    let said = ended(&[]);
    assert!(said.contains(&address(1)) && said.contains(RANKS), "{said}");
}

/// What the table says that ranks send, beside what goes through the cables of their hosts.
#[test]
#[ignore = "a minute, and prints numbers"]
fn bytes_of_the_table_and_of_the_cables() {
    let _alone = alone();
    for order in ["fixed", "any"] {
        // Then of blocks that are cut, too.
        for (count, more) in [(2, ""), (3, ""), (4, ""), (2, "--tensor-parallel")] {
            let Some(network) = Network::of(count) else { return };
            let through = |host: usize| -> u64 {
                let counter = format!("/sys/class/net/{}/statistics/rx_bytes", network.cable(host));
                std::fs::read_to_string(counter).unwrap().trim().parse().unwrap()
            };
            // What is sent before and after the steps is not the table's.
            let of_steps = |steps: &str| {
                let before: u64 = (0..count).map(through).sum();
                let arguments = ["--steps", steps, "--json", "--order", order, more];
                let arguments = &arguments[..arguments.len() - usize::from(more.is_empty())];
                let output = network.ranks(1, arguments).wait_with_output().unwrap();
                assert!(output.status.success(), "{}", words(&output));
                let run: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
                let ranks = run["ranks"].as_array().unwrap();
                let sent: u64 = ranks.iter().map(|of| of["sent"].as_u64().unwrap()).sum();
                [sent, (0..count).map(through).sum::<u64>() - before]
            };
            let (few, many) = (of_steps("2"), of_steps("6"));
            let [table, cables] = [0, 1].map(|i| (many[i] - few[i]) as f64 / 4096.0);
            println!(
                "{order} {more}, {count} ranks: {table:.1} KiB a step in the table, {cables:.1} KiB through the cables"
            );
            // With headers, and with the signs of life.
            assert!((1.0..1.1).contains(&(cables / table)), "{table} and {cables}");
        }
    }
}

/// What one host wrote on its own disk is sent to the others, in any number; if it can't be reached, the error says so.
#[test]
fn a_disk_that_is_missing_is_named() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let file = text(folder.path());
    let with = |steps| ["--tiny", "--steps", "8", "--every", steps, "--json", "--text", &file];
    let once = Command::new(RANKS).args(["ranks", "-n", "1"]).args(with("8")).output();
    let expected = result(&once.unwrap()).1;
    let Some(network) = Network::of(3) else { return };
    let out = network.disk().display().to_string();
    let on_disks = [&with("4")[..], &["--out", &out]].concat();
    let ended = network.ranks(2, &[&on_disks[..], &["--fault", "1:leaves:6"]].concat());
    assert!(!ended.wait_with_output().unwrap().status.success());
    network.until_clear();
    let output = network.ranks_on_first(2, 2, &on_disks).wait_with_output().unwrap();
    let said = words(&output);
    let missing = "step-000004/rank-4-of-6.safetensors: it was written on host-2, and no host of this run has it";
    assert!(said.contains(missing), "{said}");
    network.until_clear();
    let output = network.ranks(1, &on_disks).wait_with_output().unwrap();
    assert_eq!(result(&output).1, expected);
    assert_eq!(network.newest(&network.disk()), [Some(8); 3]);
}

#[test]
#[ignore = "some minutes: 20 faults, at random"]
fn hosts_are_disturbed_at_random() {
    let mut random = Random::new(53);
    let mut fault = || (random.below(3), FAULTS[random.below(FAULTS.len())]);
    let faults: Vec<_> = (0..20).map(|_| fault()).collect();
    let (shared, own) = faults.split_at(10);
    disturbed(shared, 3, false);
    disturbed(own, 3, true);
}
