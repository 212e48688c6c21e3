//! `cargo course read` from outside: what it writes, what it serves, and what it refuses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn read(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_author"));
    command
        .arg("read")
        .args(arguments)
        .env("QUADRIVIUM_ROOT", concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
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

#[test]
fn it_serves_on_this_machine_only() {
    let mut child = read(&["--port", "0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_string();
    assert!(address.starts_with("127.0.0.1:"), "{line}");
    let answer = |path: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let page = answer("/norm.html");
    assert!(page.contains("200 OK") && page.contains("GroupRMSNorm"), "{page:.300}");
    assert!(answer("/../../Cargo.toml").contains("404 Not Found"));
    child.kill().unwrap();
    child.wait().unwrap();
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
