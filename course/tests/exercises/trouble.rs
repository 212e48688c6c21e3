//! Trouble while a command works: it is killed, several run at once, nothing can be written, the environment is strange.
//! Each file of the learner's stays as it was, or is new and whole, and what a reset takes away is in the backups.

use crate::scratch::{Said, Scratch, write};
use learner::exercise::Workspace;
use learner::exercise::source::Source;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A file for each component that belongs to no other.
fn fill(scratch: &Scratch, round: usize) -> BTreeMap<String, String> {
    let sources = Source::all(&Workspace::find().unwrap()).unwrap();
    let of = |source: &Source| (source.file(), format!("{}// draft {round}\n", source.solution));
    let files: BTreeMap<String, String> = sources.iter().map(of).collect();
    files.iter().for_each(|(name, text)| scratch.write(name, text));
    files
}

fn starter(slug: &str) -> String {
    Workspace::find().unwrap().starter(slug).unwrap()
}

/// What is in a folder, by name.
fn contents(folder: &Path) -> BTreeMap<String, String> {
    let Ok(entries) = folder.read_dir() else { return BTreeMap::new() };
    let of = |path: PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).map(of).collect()
}

/// The copies that resets have made; what a killed one may leave begins with a dot.
fn backups(scratch: &Scratch) -> Vec<String> {
    let all = contents(&scratch.file("exercises/backups"));
    all.into_iter().filter(|(name, _)| !name.starts_with('.')).map(|(_, text)| text).collect()
}

/// Kills a command and what it has started.
#[cfg(unix)]
fn kill(child: &mut Child) {
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
    let _ = child.wait();
}

/// Numbers that look random, the same in each run (xorshift).
#[cfg(unix)]
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[cfg(unix)]
#[test]
fn killed_at_a_hundred_moments_nothing_of_the_learners_is_lost() {
    use std::os::unix::process::CommandExt;

    let scratch = Scratch::with_solutions();
    let grades = scratch.file("grades.json");
    let path = grades.to_str().unwrap();
    let commands: [(&[&str], u64); 6] = [
        (&["reset", "norm"], 20_000),
        (&["reset", "norm/forward"], 20_000),
        (&["reset", "embedding"], 20_000),
        (&["hint", "rope/rotate"], 20_000),
        (&["check", "norm/uniform", "--json", path], 3_000_000),
        (&["diff", "norm/uniform"], 3_000_000),
    ];
    let (mut state, mut replaced) = (2026, 0);
    for round in 0..100 {
        // Resets, most of the time: the others write nothing of the learner's.
        let (command, longest) = commands[if round % 10 < 8 { round % 3 } else { 3 + round % 3 }];
        let before = fill(&scratch, round);
        let _ = std::fs::remove_dir_all(scratch.file("exercises/backups"));
        std::fs::write(&grades, "[]").unwrap();
        let mut child = scratch
            .command(command)
            .process_group(0)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        if command[0] == "reset" && round % 2 == 0 {
            // In the middle of it: as soon as it has begun to write, or has ended.
            while !scratch.file("exercises/backups").exists() && child.try_wait().unwrap().is_none()
            {
                std::hint::spin_loop();
            }
            std::thread::sleep(Duration::from_micros(next(&mut state) % 1_000));
        } else {
            std::thread::sleep(Duration::from_micros(next(&mut state) % longest));
        }
        kill(&mut child);

        let copies = backups(&scratch);
        for (name, old) in &before {
            let now = scratch.read(name);
            if now == *old {
                continue;
            }
            replaced += 1;
            assert!(command[0] == "reset" && name.contains(command[1].split('/').next().unwrap()));
            assert!(copies.contains(old), "{command:?} has lost {name}");
            let whole = match command[1] {
                "norm" => starter("norm"),
                "embedding" => starter("embedding"),
                _ => {
                    assert!(now.contains("todo!(\"task norm/forward\")"), "{now}");
                    assert!(now.ends_with(&format!("// draft {round}\n")), "half of {name}");
                    continue;
                }
            };
            assert_eq!(now, whole, "{command:?} has left half of {name}");
        }
        assert!(copies.iter().all(|copy| before.values().any(|old| old == copy)), "half a copy");
        let grades: Vec<serde_json::Value> =
            serde_json::from_str(&std::fs::read_to_string(&grades).unwrap()).unwrap();
        assert!(grades.len() < 2);
    }
    assert!(
        (5..100).contains(&replaced),
        "{replaced} files were replaced: no moment is before, or none after"
    );
}

/// An edit during a run builds the program again, and cargo takes the old one away first.
#[test]
fn who_grades_keeps_what_he_grades_with() {
    let scratch = Scratch::with_solutions();
    let file = "exercises/src/norm.rs";
    let wait = "static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| { std::fs::write(std::env::var(\"RUNS\").unwrap(), \"\").unwrap(); \
                std::thread::sleep(std::time::Duration::from_secs(2)) });
    let mut random = Mt";
    scratch.change(file, "let mut random = Mt", wait);
    let (runs, json) = (scratch.file("runs"), scratch.file("grades.json"));
    let _ = std::fs::remove_file(&runs);
    let tasks =
        ["check", "norm/uniform", "norm/types", "norm/forward", "embedding/types", "--json"];
    let mut check = scratch.command(&[&tasks[..], &[json.to_str().unwrap()]].concat());
    let check = check.env("RUNS", &runs).env("RUST_TEST_THREADS", "1");
    let check = check.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !runs.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    // In the middle of the first task, all that cargo would remove is gone.
    let mut removed = 0;
    for entry in scratch.built().read_dir().unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if ["autograder-", "libexercises-", "libcontract_dylib"]
            .iter()
            .any(|begin| name.starts_with(begin))
        {
            std::fs::remove_file(path).unwrap();
            removed += 1;
        }
    }
    assert!(removed > 2, "{removed} files");
    let said = Said::new(check.wait_with_output().unwrap()).ends_with(0);
    assert!(said.out.contains("4 of 4 tasks done"), "{said:#?}");
    // And the next run builds them again.
    scratch.run(&["check", "norm/types"]).ends_with(0);
}

#[test]
fn several_resets_at_once_keep_what_was_there() {
    let scratch = Scratch::with_solutions();
    for round in 0..10 {
        let before = fill(&scratch, round);
        let _ = std::fs::remove_dir_all(scratch.file("exercises/backups"));
        let tasks = ["norm", "norm", "norm/forward", "norm"];
        let started: Vec<Child> = tasks
            .iter()
            .map(|task| scratch.command(&["reset", task]).stdout(Stdio::piped()).spawn().unwrap())
            .collect();
        let said: Vec<Said> =
            started.into_iter().map(|child| Said::new(child.wait_with_output().unwrap())).collect();
        // One that begins later may find no place of the task, but never a half.
        assert!(said.iter().all(|said| said.code == Some(0)), "{said:#?}");
        let copies = backups(&scratch);
        assert_eq!(copies.len(), tasks.len(), "a copy was written over");
        assert!(copies.contains(&before["exercises/src/norm.rs"]));
    }
}

/// A command with other mounts, by bubblewrap: `--bind A B` and the like.
#[cfg(target_os = "linux")]
fn with_mounts(scratch: &Scratch, mounts: &[&OsStr], script: &str, arguments: &[&str]) -> Said {
    let inner = scratch.command(arguments);
    let mut bwrap = Command::new("bwrap");
    bwrap.args(["--dev-bind", "/", "/"]).args(mounts);
    bwrap.args(["--", "sh", "-c", &format!("{script}\nexec \"$@\""), "sh"]);
    bwrap.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => bwrap.env(name, value),
            None => bwrap.env_remove(name),
        };
    }
    Said::new(bwrap.output().expect("bubblewrap is installed"))
}

#[cfg(target_os = "linux")]
#[test]
fn where_nothing_can_be_written_nothing_changes() {
    let scratch = Scratch::with_solutions();
    let before = fill(&scratch, 0);
    let exercises = scratch.file("exercises");
    let kept = tempfile::tempdir().unwrap();
    let copied = Command::new("cp").arg("-a").arg(&exercises).arg(kept.path()).status().unwrap();
    assert!(copied.success());
    let folder = exercises.as_os_str();
    let full = format!(
        "cp -a '{}'/exercises/. '{}'/ && cat /dev/zero > '{}'/zeros 2> /dev/null",
        kept.path().display(),
        exercises.display(),
        exercises.display(),
    );
    let size = OsStr::new("4194304");
    let kinds: [(&[&OsStr], &str, &str); 2] = [
        (&[OsStr::new("--ro-bind"), folder, folder], "", "Read-only file system"),
        (
            &[OsStr::new("--size"), size, OsStr::new("--tmpfs"), folder],
            &full,
            "No space left on device",
        ),
    ];
    let json = exercises.join("grades.json");
    let json = json.to_str().unwrap();
    for (mounts, script, reason) in kinds {
        for arguments in [
            &["reset", "norm"][..],
            &["reset", "norm/forward"],
            &["check", "norm/uniform", "--json", json],
        ] {
            // The full one is gone with its mount, so it says itself whether its files are whole.
            let whole = "trap 'for f in norm embedding; do tail -n 1 @/src/$f.rs; done >&2' EXIT"
                .replace('@', &format!("'{}'", exercises.display()));
            let script = format!("{script}\n{whole}");
            let said = with_mounts_and_then(&scratch, mounts, &script, arguments);
            assert_eq!(said.code, Some(2), "{arguments:?}: {said:#?}");
            assert!(said.err.contains(reason) && !said.err.contains("panicked"), "{said:#?}");
            assert_eq!(said.err.matches("// draft 0").count(), 2, "{said:#?}");
        }
        let said = with_mounts(&scratch, mounts, script, &["hint", "norm/forward"]);
        assert_eq!(said.code, Some(0), "{said:#?}");
    }
    for (name, old) in &before {
        assert_eq!(scratch.read(name), *old);
    }
}

/// The same, and the script's own end comes after the command's.
#[cfg(target_os = "linux")]
fn with_mounts_and_then(
    scratch: &Scratch,
    mounts: &[&OsStr],
    script: &str,
    arguments: &[&str],
) -> Said {
    with_mounts(scratch, mounts, &format!("{script}\n\"$@\"; exit $?"), arguments)
}

#[test]
fn no_environment_changes_what_a_command_says() {
    let scratch = Scratch::with_solutions();
    scratch.run(&["reset", "norm/forward"]).ends_with(0);
    let said = |change: &dyn Fn(&mut Command)| {
        let commands =
            [&["hint", "norm/forward"][..], &["check", "norm/uniform"], &["check", "norm/forward"]];
        commands.map(|arguments| {
            let mut command = scratch.command(arguments);
            change(&mut command);
            let said = Said::new(command.output().unwrap());
            assert!(!said.err.contains("panicked"), "{said:#?}");
            (said.code, said.out)
        })
    };
    let usual = said(&|_| {});
    let changes: [&[(&str, Option<&str>)]; 6] = [
        &[("HOME", None), ("XDG_CACHE_HOME", None), ("USER", None)],
        &[("HOME", Some("/nowhere/at all"))],
        &[("LC_ALL", Some("tr_TR.UTF-8")), ("LANG", Some("tr_TR.UTF-8"))],
        &[("LC_ALL", Some("no such locale"))],
        &[("LC_ALL", Some("C")), ("TERM", Some("dumb")), ("COLUMNS", Some("0"))],
        &[("TERM", None), ("TZ", Some("nowhere"))],
    ];
    // Where rustup and cargo are, a home says; without one they are given.
    let at = |name: &str, default: &str| {
        let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(default);
        std::env::var_os(name).map_or_else(home, PathBuf::from)
    };
    let tools =
        [("CARGO_HOME", at("CARGO_HOME", ".cargo")), ("RUSTUP_HOME", at("RUSTUP_HOME", ".rustup"))];
    for change in changes {
        let again = said(&|command| {
            command.envs(tools.iter().cloned());
            for (name, value) in change {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
        });
        assert_eq!(again, usual, "{change:?}");
    }
}

#[test]
fn any_path_will_do() {
    let scratch = Scratch::with_solutions();
    let outer = tempfile::tempdir().unwrap();
    let mut names: Vec<OsString> =
        ["two words", "Übung \u{1f980}", "it's $HOME \"and\" `more`", "-n", "100%"]
            .map(OsString::from)
            .into();
    #[cfg(target_os = "linux")]
    names.push(std::os::unix::ffi::OsStringExt::from_vec(b"Latin-1 \xfc".to_vec()));
    for name in names {
        let root = outer.path().join(&name);
        let file = "exercises/src/norm.rs";
        let old = scratch.read(file);
        for name in [file, "exercises/norm/hints/forward.md", "exercises/norm/solution.rs"] {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            write(&root.join(name), scratch.read(name).as_bytes());
        }
        let run = |arguments: &[&str]| {
            let mut command = scratch.command(arguments);
            command.env("QUADRIVIUM_ROOT", &root).current_dir(&root);
            Said::new(command.output().unwrap())
        };
        run(&["hint", "norm/forward"]).ends_with(0);
        let said = run(&["reset", "norm/forward"]).ends_with(0);
        assert!(said.out.contains("exercises/backups/norm-1.rs"), "{said:#?}");
        let copy = std::fs::read_to_string(root.join("exercises/backups/norm-1.rs")).unwrap();
        assert_eq!(copy, old);
        assert_ne!(std::fs::read_to_string(root.join(file)).unwrap(), old);
    }
}
