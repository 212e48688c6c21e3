//! `cargo course read` from outside: what it writes, what it serves, and what it refuses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

fn read(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_author"));
    command.arg("read").args(arguments).env("QUADRIVIUM_ROOT", "../..");
    command
}

fn run(arguments: &[&str]) -> (Output, String) {
    let output = read(arguments).output().unwrap();
    let words = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into();
    (output, words)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn it_writes_the_site_and_leaves_other_folders_alone() {
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("new/site");
    for _ in 0..2 {
        let (output, words) = run(&["--build", text(&site)]);
        assert_eq!(output.status.code(), Some(0), "{words}");
        assert!(words.contains("Open index.html there."), "{words}");
        assert!(site.join("rope.html").is_file());
    }
    std::fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
    let (output, words) = run(&["--build", text(folder.path())]);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.contains("it holds other files"), "{words}");
    assert!(folder.path().join("thesis.txt").is_file());
    let (output, words) = run(&["--build", text(&folder.path().join("thesis.txt"))]);
    assert_eq!(output.status.code(), Some(2), "{words}");
}

#[test]
fn a_taken_port_is_told() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (output, words) = run(&["--port", &port]);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.contains(&format!("nothing can be served on port {port}")), "{words}");
}

/// The book, served until this is dropped, and what was said of it.
struct Served {
    child: Child,
    said: BufReader<ChildStdout>,
    line: String,
}

impl Served {
    fn with(arguments: &[&str]) -> Self {
        let mut program = read(arguments);
        let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        Self { child, said, line }
    }

    /// Host and port.
    fn address(&self) -> String {
        let address = self.line.split("http://").nth(1).unwrap();
        address.split('/').next().unwrap().to_string()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn it_serves_on_this_machine_only() {
    let served = Served::with(&["--port", "0"]);
    let address = served.address();
    assert!(address.starts_with("127.0.0.1:"), "{}", served.line);
    let page = get(&address, "/norm.html");
    assert!(page.contains("200 OK") && page.contains("GroupRMSNorm"), "{page:.300}");
    assert!(get(&address, "/../../Cargo.toml").contains("404 Not Found"));
    #[cfg(target_os = "linux")]
    assert!(TcpStream::connect(address.replace("127.0.0.1", "127.0.0.2")).is_err());
}

/// As from a container, or on a remote machine.
#[test]
fn other_machines_reach_it_if_that_is_asked_for() {
    let mut served = Served::with(&["--port", "0", "--host", "0.0.0.0"]);
    let address = served.address();
    assert!(address.starts_with("127.0.0.1:"), "no address to open: {}", served.line);
    let mut readers = String::new();
    served.said.read_line(&mut readers).unwrap();
    assert!(
        readers.contains("can reach this machine") && readers.contains("can read it"),
        "{readers}"
    );
    // Each address of this machine is one that others may come by.
    #[cfg(target_os = "linux")]
    let address = address.replace("127.0.0.1", "127.0.0.2");
    assert!(get(&address, "/norm.html").contains("200 OK"));
    drop(served);

    let served = Served::with(&["--beside", "--host", "0.0.0.0"]);
    assert!(get(&served.address(), "/norm.html").contains("200 OK"));
}

#[test]
fn a_host_that_is_not_this_machine_is_told() {
    let told = |host: &str, more: &[&str]| {
        let (output, words) = run(&[&["--host", host], more].concat());
        assert_eq!(output.status.code(), Some(2), "{host}: {words}");
        assert!(words.contains("rule      --host needs an address of this machine"), "{words}");
        assert!(words.contains(&format!("got       \"{host}\": ")), "{words}");
    };
    for host in [
        "",
        "no such name",
        "300.1.1.1",
        "127.0.0.1:80",
        "http://127.0.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "fe80::1",
    ] {
        told(host, &[]);
    }
    // One of the addresses that RFC 5737 keeps for texts.
    for more in [&[][..], &["--port", "0"], &["--beside"]] {
        told("192.0.2.1", more);
    }
    let (output, words) = run(&["--host", "0.0.0.0", "--build", "site"]);
    assert_eq!(output.status.code(), Some(2), "{words}");
}

/// The board starts it this way. However the board ends, its end of the pipe closes.
#[test]
fn beside_another_program_it_ends_with_it() {
    let mut program = read(&["--beside"]);
    let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("http://").unwrap().trim_end_matches('/');
    assert!(TcpStream::connect(address).is_ok(), "{line}");
    drop(child.stdin.take());
    let ended = (0..300).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        child.try_wait().unwrap()
    });
    let _ = child.kill();
    assert_eq!(ended.expect("it goes on").code(), Some(0));
    assert!(TcpStream::connect(address).is_err(), "it still serves");
}

#[test]
fn wrong_sources_are_told_with_their_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("book/src");
    std::fs::create_dir_all(&pages).unwrap();
    std::fs::create_dir_all(folder.path().join("exercises/src")).unwrap();
    std::fs::write(folder.path().join("book/book.toml"), "[book]\ntitle = \"T\"\n").unwrap();
    std::fs::write(pages.join("SUMMARY.md"), "# Summary\n\n- [One](one.md)\n").unwrap();
    let page = "# One\n\n0.5<!-- = no/such -->, `norm/nonsense`, $\\frac{1}{2$\n\n{{tasks no}}\n";
    std::fs::write(pages.join("one.md"), page).unwrap();
    let site = folder.path().join("site");
    let output = read(&["--build", text(&site)]).env("QUADRIVIUM_ROOT", folder.path()).output();
    let output = output.unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words}");
    for told in ["no number is called no/such", "norm/nonsense", "dollar sign", "{{tasks no}}"] {
        assert!(words.contains(told), "{told} is not in: {words}");
    }
    assert!(!site.exists(), "nothing is written");
}
