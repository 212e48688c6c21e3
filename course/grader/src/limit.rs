//! Processes with a limit of time on the clock.

use std::io;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Runs `read`, which ends when the process has closed what it writes to, and waits for the process. One that takes longer is
/// killed; then there is no status.
///
/// # Errors
/// The process can't be waited for.
pub fn watched<T: Send>(
    child: &mut Child,
    limit: Duration,
    read: impl FnOnce() -> T + Send,
) -> io::Result<(T, Option<ExitStatus>)> {
    let (done, waits) = channel();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let got = read();
            let _ = done.send(());
            got
        });
        let in_time = waits.recv_timeout(limit) != Err(RecvTimeoutError::Timeout);
        if !in_time {
            child.kill()?;
        }
        let status = child.wait()?;
        let got = reader.join().map_err(|_| io::Error::other("its output can't be read"))?;
        Ok((got, in_time.then_some(status)))
    })
}
