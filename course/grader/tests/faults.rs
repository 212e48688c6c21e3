//! What the machine does to a compiler, a program or a sandbox is never a grade: a right submission gets all its points, or no
//! grade and the reason.
//!
//! A script takes the place of bubblewrap. It knows each step by its arguments, and disturbs those of the submission:
//! the first time, or always. The course's own program is never disturbed, so only the fault itself shows that the
//! machine is to blame.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    if std::env::var_os(grader::worker::WORKER).is_some() {
        return course::ended(grader::worker::run().map(|()| true));
    }
    on_linux::run()
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    ExitCode::SUCCESS
}

#[cfg(target_os = "linux")]
mod on_linux {
    use contract::registry::task;
    use grader::grade::Judge;
    use grader::intake::Taken;
    use grader::parts::Parts;
    use grader::record::{Outcome, Sandbox};
    use grader::settings::{Limits, Settings};
    use learner::exercise::Workspace;
    use libtest_mimic::{Arguments, Failed, Trial};
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};
    use std::process::{Command, ExitCode};
    use std::sync::{Arc, LazyLock, Mutex};

    /// Names the program that makes sandboxes.
    const BWRAP: &str = "QUADRIVIUM_BWRAP";

    /// Each step of a submission, and a word by which its arguments are known.
    const STEPS: [(&str, &str); 4] = [
        ("compile the exercises", "--crate-name=exercises"),
        ("compile the program", "--crate-name=submission"),
        ("compile a types task", "norm-types"),
        ("run", "-- /submission"),
    ];

    /// What happens, in the words of the shell; `"$@"` are bubblewrap's arguments. And whether it can go on for ever and still be the
    /// machine's fault.
    const FAULTS: [(&str, &str, bool); 14] = [
        ("killed at once, as where memory is short", "kill -KILL $$", true),
        ("killed in the sandbox", "exit 137", true),
        ("killed in its middle", "timeout -s KILL 0.3 bwrap \"$@\"; exit 137", true),
        ("ended by a system that shuts down", "kill -TERM $$", true),
        ("a page of a file that can't be read", "kill -BUS $$", true),
        ("a wrong address, as in bad memory", "kill -SEGV $$", false),
        ("aborted", "kill -ABRT $$", false),
        ("ended without a word", "exit 1", false),
        ("interrupted", INTERRUPTED, false),
        (
            "no space left for LLVM",
            "echo 'rustc-LLVM ERROR: IO failure on output stream: No space left on device' >&2; exit 101",
            true,
        ),
        ("no namespaces left", "echo 'bwrap: No space left on device' >&2; exit 1", true),
        ("little memory allowed", "ulimit -v 500000; bwrap \"$@\"", true),
        ("a full disk", FULL, true),
        ("files that are gone", GONE, true),
    ];
    /// As by a key: rustc catches this signal. If it evaluates a constant, it says that this was interrupted; otherwise it ends without a
    /// word.
    const INTERRUPTED: &str = r#"bwrap "$@" &
outer=$!
sleep 0.2
for inner in $(pgrep -P $outer); do kill -INT $(pgrep -P $inner); done
wait $outer"#;
    /// What may be written to is another disk, of one page.
    const FULL: &str = r#"for word; do
    shift
    if [ "$word" = --bind ]; then
        set -- "$@" --size 4096 --tmpfs "$2"; skip=2
    elif [ "${skip:-0}" -gt 0 ]; then
        skip=$((skip - 1))
    else
        set -- "$@" "$word"
    fi
done
exec bwrap "$@""#;
    /// The crates, or the program, are not there.
    const GONE: &str = r#"for word; do
    shift
    case $word in */parts-*|*/quadrivium-*/submission) [ -n "$gone" ] || { word=/dev/null; gone=1; } ;; esac
    set -- "$@" "$word"
done
exec bwrap "$@""#;

    /// A fault for the next submission: a step's word, how often, and what happens.
    struct Ground {
        folder: PathBuf,
        judge: Judge,
        taken: Taken,
    }

    impl Ground {
        fn new(folder: PathBuf) -> Self {
            let workspace = Workspace::find().unwrap();
            let parts = Parts::build(&workspace, &|_| {}).unwrap();
            let limits = Limits { cpu_seconds: 5, wall_seconds: 10, ..Limits::default() };
            let judge =
                Judge::new(parts, Settings { limits, ..Settings::default() }, Sandbox::Full, 7);
            let solution = |slug: &str| workspace.read(&format!("exercises/{slug}/solution.rs"));
            let files =
                BTreeMap::from(["norm", "loss"].map(|slug| (slug, solution(slug).unwrap())));
            Self { folder, judge: judge.unwrap(), taken: Taken { files, left_out: Vec::new() } }
        }

        /// How the right submission comes out with this fault.
        fn graded(&self, step: &str, often: u32, fault: &str) -> Result<String, Failed> {
            for (name, text) in [("step", step), ("left", &often.to_string()), ("fault.sh", fault)]
            {
                let file = self.folder.join(name);
                std::fs::write(&file, text).unwrap();
                std::fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
            }
            let tasks = ["norm/forward", "norm/types", "norm/property", "loss/shift"];
            let tasks: Vec<_> = tasks.map(|name| task(name).unwrap()).into();
            let record = self.judge.grade_tasks("right", &Ok(self.taken.clone()), &tasks, 1);
            let left: u32 =
                std::fs::read_to_string(self.folder.join("left")).unwrap().trim().parse().unwrap();
            match record.outcome {
                _ if left == often => Err(Failed::from("no step of the submission was disturbed")),
                Outcome::Graded => match record.tasks.iter().find(|task| !task.grade.passed) {
                    None => Ok("all points".to_string()),
                    Some(task) => Err(Failed::from(task.report.clone())),
                },
                Outcome::NotGraded { why } | Outcome::Decided { why } => {
                    Ok(format!("not graded: {why}"))
                }
            }
        }
    }

    /// In the place of bubblewrap: `left` more of the submission's steps are disturbed. The first folders that it sees are
    /// those of the course's own program, which goes on as it is.
    const SCRIPT: &str = r#"#!/bin/bash
here=$(dirname "$0")
stage=$(printf '%s\n' "$@" | grep -v '/sandbox-exec$' | grep -o '.*/quadrivium-[^/]*' | head -1)
own=$here/compiled; [ "${!#}" = /submission ] && own=$here/run
[ -f "$own" ] || printf '%s' "$stage" > "$own"
if [ -f "$here/left" ] && [ "$(cat "$own")" != "$stage" ] && [[ " $* " = *"$(cat "$here/step")"* ]]; then
    left=$(cat "$here/left")
    if [ "$left" -gt 0 ]; then
        echo $((left - 1)) > "$here/left"
        . "$here/fault.sh"
        exit
    fi
fi
exec bwrap "$@"
"#;

    /// All of them take some minutes. `QUADRIVIUM_STEP=8` takes each eighth, from the one on that `QUADRIVIUM_FIRST` names.
    pub fn run() -> ExitCode {
        let arguments = Arguments::from_args();
        let Some(script) = std::env::var_os(BWRAP) else {
            let folder = tempfile::tempdir().unwrap();
            let script = folder.path().join("bwrap.sh");
            std::fs::write(&script, SCRIPT).unwrap();
            // Programs are started as another user.
            for path in [&script, &folder.path().to_path_buf()] {
                std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
            }
            let mut with_it = Command::new(std::env::current_exe().unwrap());
            let status = with_it.args(std::env::args_os().skip(1)).env(BWRAP, &script).status();
            return if status.unwrap().success() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        };
        let folder = Path::new(&script).parent().unwrap().to_path_buf();
        let make: Box<dyn FnOnce() -> Mutex<Ground> + Send> =
            Box::new(move || Mutex::new(Ground::new(folder)));
        let ground = Arc::new(LazyLock::new(make));
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
        let (step, first) =
            (number("QUADRIVIUM_STEP").unwrap_or(1), number("QUADRIVIUM_FIRST").unwrap_or(0));
        let mut trials = Vec::new();
        for (what, word) in STEPS {
            for (name, fault, lasts) in FAULTS {
                for often in [Some(1), lasts.then_some(1_000_000)].into_iter().flatten() {
                    let ground = ground.clone();
                    let name =
                        format!("{what}: {name}, {}", if often == 1 { "once" } else { "always" });
                    let title = name.clone();
                    trials.push(Trial::test(name, move || {
                        let ground =
                            ground.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        let came_to = ground.graded(word, often, fault)?;
                        println!("{title}: {came_to}");
                        Ok(())
                    }));
                }
            }
        }
        let chosen = trials.into_iter().skip(first % step).step_by(step).collect();
        libtest_mimic::run(&arguments, chosen).exit_code()
    }
}
