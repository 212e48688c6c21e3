//! JupyterLab in a folder that was moved after it was installed there.

use super::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// A workspace with what `cargo course lab` has installed, and nothing at the place where that was done: an empty
/// folder is there, by bubblewrap.
struct Moved {
    folder: tempfile::TempDir,
}

impl Moved {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("Übung 1 ").tempdir().unwrap();
        let root = folder.path();
        for name in ["exercises/src", "notebooks", "target/lab", "target/evcxr"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::fs::write(root.join("exercises/src/lib.rs"), "").unwrap();
        for name in ["requirements.txt", "2-norm.ipynb"] {
            std::fs::copy(home().notebooks().join(name), root.join("notebooks").join(name))
                .unwrap();
        }
        let copied = Command::new("cp")
            .arg("-a")
            .arg(home().environment())
            .arg(root.join("target/lab"))
            .status();
        assert!(copied.unwrap().success(), "`cargo course lab` installs it");
        std::fs::copy(env!("CARGO_BIN_EXE_author"), root.join("target/author")).unwrap();
        // Nothing is built here: no cell is run.
        std::fs::write(root.join("target/evcxr/warm"), format!("{}/", root.display())).unwrap();
        Self { folder }
    }

    fn lab(&self, arguments: &[&str]) -> Child {
        let root = self.folder.path();
        // What a script starts in the background ignores Ctrl-C, and so would all that it starts.
        let mut bwrap = Command::new("env");
        bwrap.args(["--default-signal=INT", "bwrap", "--dev-bind", "/", "/", "--tmpfs"]);
        bwrap.arg(home().environment()).arg("--");
        bwrap.arg(root.join("target/author")).args(["lab", "norm", "--no-browser", "--port", "0"]);
        bwrap.args(arguments).env("QUADRIVIUM_ROOT", root);
        // A separate group gets Ctrl-C, as in a terminal.
        bwrap.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

fn interrupt(child: &Child) {
    let group = format!("-{}", child.id());
    assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
}

/// Waits until nothing is left that could say a word, for bubblewrap may end before what it has started.
#[track_caller]
fn ends(child: &mut Child, said: Said) {
    let (tell, told) = channel();
    std::thread::spawn(move || tell.send(said.count()));
    let ended = told.recv_timeout(Duration::from_secs(120));
    if ended.is_err() {
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
    }
    let _ = child.wait();
    assert!(ended.is_ok(), "Ctrl-C does not end it");
}

/// The lines that it says.
type Said = Box<dyn Iterator<Item = String> + Send>;

fn lines(child: &mut Child) -> Said {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    Box::new(lines.map_while(Result::ok).fuse())
}

/// What follows these words in one of the lines.
#[track_caller]
fn find(said: &mut Said, child: &mut Child, words: &str) -> String {
    let found = said.find_map(|line| Some(line.split_once(words)?.1.to_string()));
    found.unwrap_or_else(|| {
        let mut error = String::new();
        child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        panic!("{words:?} is not said: {error}")
    })
}

#[test]
#[ignore = "needs what `cargo course lab` installs"]
fn a_moved_lab_starts_and_ends() {
    let _turn = beside_others();
    let moved = Moved::new();
    for host in ["127.0.0.1", "0.0.0.0"] {
        let mut lab = moved.lab(&["--host", host]);
        let mut said = lines(&mut lab);
        let url = find(&mut said, &mut lab, "The notebooks are at http://");
        let readers = find(&mut said, &mut lab, "reach");
        let (address, page) = url.split_once('/').unwrap();
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        assert_eq!(readers.contains("run any program as you"), host == "0.0.0.0", "{readers}");
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET /{page} HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("200 OK") && answer.contains("JupyterLab"), "{answer:.500}");
        interrupt(&lab);
        ends(&mut lab, said);
        assert!(TcpStream::connect(address).is_err(), "JupyterLab was left behind");
    }
    // Before it has said where it is.
    let mut lab = moved.lab(&[]);
    let mut said = lines(&mut lab);
    find(&mut said, &mut lab, "evcxr");
    interrupt(&lab);
    ends(&mut lab, said);
}

/// As in a copy from another machine, which has no Python at that place.
#[test]
#[ignore = "needs what `cargo course lab` installs"]
fn an_environment_without_its_python_is_made_again() {
    let _turn = beside_others();
    let moved = Moved::new();
    let python = moved.folder.path().join("target/lab/python/bin/python");
    std::fs::remove_file(&python).unwrap();
    std::os::unix::fs::symlink("/no/such/python", &python).unwrap();
    let mut lab = moved.lab(&[]);
    let mut said = lines(&mut lab);
    find(&mut said, &mut lab, "The notebooks are at ");
    interrupt(&lab);
    ends(&mut lab, said);
}
