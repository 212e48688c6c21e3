//! What a limit does to the program that follows.
#![cfg(target_os = "linux")]

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

/// A shell, and so every program it starts, may ignore the signals.
#[test]
fn limits_end_a_program_also_where_their_signals_are_ignored() {
    for (limit, script, signal) in
        [("cpu=1", "while :; do :; done", 24), ("file=4096", "exec cat /dev/zero > \"$FILE\"", 25)]
    {
        for ignores in ["", "trap '' XCPU XFSZ"] {
            let file = tempfile::NamedTempFile::new().unwrap();
            let mut shell = Command::new("bash");
            shell.args(["-c", &format!("{ignores}\nexec \"$@\""), "bash"]);
            shell.args([
                env!("CARGO_BIN_EXE_sandbox-exec"),
                "core=0",
                limit,
                "--",
                "bash",
                "-c",
                script,
            ]);
            let status = shell.env("FILE", file.path()).status().unwrap();
            assert_eq!(status.signal(), Some(signal), "{limit} {ignores}: {status:?}");
        }
    }
}
