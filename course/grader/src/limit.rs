//! Processes with a limit of time on the clock, and what others have taken of it.

use std::io;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often it is checked whether time is over.
const TICK: Duration = Duration::from_secs(1);

/// Waits for a message until this process has been awake for as long as `limit` says, which is asked each time. A process that is
/// stopped, or whose machine sleeps, has not waited meanwhile. What came, and for how long it was waited.
pub fn awaited<T: PartialEq>(
    message: &Receiver<T>,
    limit: impl Fn() -> Duration,
) -> (Result<T, RecvTimeoutError>, Duration) {
    let mut awake = Duration::ZERO;
    loop {
        let begin = Instant::now();
        let came = message.recv_timeout(TICK.min(limit().saturating_sub(awake)));
        awake += begin.elapsed().min(2 * TICK);
        if came != Err(RecvTimeoutError::Timeout) || awake >= limit() {
            return (came, awake);
        }
    }
}

/// How long a process and those that it has started have waited for a core: the thread that has waited longest.
/// Nothing, on a system that does not report it.
pub fn starved(process: u32) -> Duration {
    let threads = Path::new("/proc").join(process.to_string()).join("task");
    let mut longest = Duration::ZERO;
    for thread in threads.read_dir().into_iter().flatten().flatten() {
        let read =
            |file: &str| std::fs::read_to_string(thread.path().join(file)).unwrap_or_default();
        // Nanoseconds on a core, nanoseconds in which one was waited for, and turns.
        let waited = read("schedstat").split_whitespace().nth(1).and_then(|text| text.parse().ok());
        longest = longest.max(Duration::from_nanos(waited.unwrap_or(0)));
        for child in read("children").split_whitespace().flat_map(str::parse) {
            longest = longest.max(starved(child));
        }
    }
    longest
}

/// Runs `read`, which ends when the process has closed what it writes to, and waits for the process. One that takes longer is
/// killed; then there is no status. The last is the time it took.
///
/// # Errors
/// The process can't be waited for.
pub fn watched<T: Send>(
    child: &mut Child,
    limit: Duration,
    read: impl FnOnce() -> T + Send,
) -> io::Result<(T, Option<ExitStatus>, Duration)> {
    let (done, waits) = channel();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let got = read();
            let _ = done.send(());
            got
        });
        let (came, taken) = awaited(&waits, || limit);
        let in_time = came != Err(RecvTimeoutError::Timeout);
        if !in_time {
            child.kill()?;
        }
        let status = child.wait()?;
        let got = reader.join().map_err(|_| io::Error::other("its output can't be read"))?;
        Ok((got, in_time.then_some(status), taken))
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_that_is_stopped_has_not_waited() -> io::Result<()> {
        let (_open, never) = channel::<()>();
        let stops = format!("kill -STOP {0}; sleep 6; kill -CONT {0}", std::process::id());
        let begin = Instant::now();
        let mut shell = Command::new("sh").args(["-c", &stops]).spawn()?;
        let limit = Duration::from_secs(12);
        let (came, awake) = awaited(&never, || limit);
        assert_eq!(came, Err(RecvTimeoutError::Timeout));
        assert!(awake >= limit && shell.wait()?.success());
        // Of the 6 seconds, two at most count.
        assert!(begin.elapsed() >= awake + Duration::from_secs(3), "{:?}", begin.elapsed());
        Ok(())
    }

    #[test]
    fn who_waits_for_a_core_is_told_from_who_sleeps() -> io::Result<()> {
        // More loops than cores, each below another process. None goes on without this one.
        let cores = std::thread::available_parallelism()?.get();
        let run = |program: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", program]).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
        };
        let lives = format!("kill -0 {}", std::process::id());
        let mut asleep = run(&format!("(while {lives}; do sleep 60; done) & wait"))?;
        let busy: io::Result<Vec<Child>> =
            (0..4 * cores).map(|_| run(&format!("(while {lives}; do :; done) & wait"))).collect();
        let mut busy = busy?;
        let most = Duration::from_millis(500);
        let begin = std::time::Instant::now();
        while busy.iter().any(|child| starved(child.id()) < most) {
            assert!(begin.elapsed() < Duration::from_secs(300), "nobody has waited for a core");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(starved(asleep.id()) < most);
        for child in busy.iter_mut().chain([&mut asleep]) {
            let below = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id()));
            let _ = Command::new("kill").args(below?.split_whitespace()).status();
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }
}
