//! The command, as a lecturer calls it.
#![cfg(target_os = "linux")]

use grader::record::{Outcome, Record};
use learner::exercise::Workspace;
use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// A folder of submissions, and one of results.
struct Class {
    folder: tempfile::TempDir,
}

impl Class {
    fn new() -> Self {
        let class = Self { folder: tempfile::tempdir().unwrap() };
        // Few tasks, of all three kinds.
        class.write(
            "settings.toml",
            "tasks = ['norm/forward', 'norm/types', 'norm/property', 'loss/shift']\n",
        );
        class
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_grader"));
        command.arg("grade").arg(self.at("class")).arg("--out").arg(self.at("results"));
        command.arg("--settings").arg(self.at("settings.toml")).args(["--seed", "3"]).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn grade(&self, more: &[&str]) -> Output {
        self.command(more).output().unwrap()
    }

    fn record(&self, name: &str) -> Record {
        let text = std::fs::read(self.at(&format!("results/{name}/result.json"))).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    /// The tasks that a submission has passed.
    fn passed(&self, name: &str) -> Vec<String> {
        let tasks = self.record(name).tasks.into_iter();
        tasks.filter(|task| task.grade.passed).map(|task| task.name).collect()
    }
}

fn solution(slug: &str) -> String {
    let workspace = Workspace::find().unwrap();
    workspace.read(&format!("exercises/{slug}/solution.rs")).unwrap()
}

const ALL: [&str; 4] = ["norm/forward", "norm/types", "norm/property", "loss/shift"];

#[test]
fn folders_and_archives_are_graded_and_who_hands_in_nothing_has_no_grade() {
    let class = Class::new();
    let [norm, loss] = ["norm", "loss"].map(solution);
    let mark = "// task norm/property: begin\n";
    let prints = format!("{mark}    println!(\"my invariant is asked\");\n");
    assert!(norm.contains(mark));
    class.write("class/group 1/norm.rs", norm.replace(mark, &prints));
    class.write("class/group 1/loss.rs", &loss);
    class.write("class/group 1/notes.txt", "");
    class.write("class/.git/config", "");
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, text) in
        [("norm.rs", norm.replace("squares.mean::<", "squares.sum::<")), ("loss.rs", loss.clone())]
    {
        zip.start_file(format!("our work/exercises/src/{name}"), options).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    class.write("class/gruppe-ä.zip", zip.finish().unwrap().into_inner());
    class.write("class/group 3/exercises/src/norm.rs", format!("{norm}\nfn half( {{"));
    class.write("class/group 3/exercises/src/loss.rs", &loss);
    class.write("class/group 4/readme.md", "nothing");

    let output = class.grade(&["--jobs", "2"]);
    let said = String::from_utf8_lossy(&output.stderr);
    // One of them has no grade.
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(class.passed("group 1"), ALL);
    assert_eq!(class.passed("gruppe-ä"), ["norm/types", "norm/property", "loss/shift"]);
    assert_eq!(class.passed("group 3"), ["loss/shift"]);
    assert!(class.record("group 3").tasks[0].grade.does_not_compile());
    let Outcome::NotGraded { why } = class.record("group 4").outcome else { panic!("graded") };
    assert!(why.contains("norm.rs"), "{why}");
    let group = class.record("group 1");
    assert_eq!(group.points, Some(group.out_of));
    assert_eq!(group.left_out[0].name, "notes.txt");
    // It has caught enough before all bugs were shown.
    let property = group.tasks.iter().find(|task| task.name == "norm/property").unwrap();
    let remarks = &property.grade.remarks;
    assert!(remarks.iter().any(|remark| remark.contains("at least 21 of ")), "{remarks:?}");
    assert!(property.printed.contains("my invariant is asked"), "{}", property.printed);
    let report = std::fs::read_to_string(class.at("results/group 1/report.html")).unwrap();
    assert!(report.contains("my invariant is asked"), "{report}");

    // The points of who was not graded are nothing, and not 0.
    let table = std::fs::read_to_string(class.at("results/grades.csv")).unwrap();
    assert!(table.lines().any(|line| line.starts_with("group 4,,")), "{table}");
    let page = std::fs::read_to_string(class.at("results/class.html")).unwrap();
    assert!(page.contains("group 4") && page.contains("gruppe-ä"));
    // Students whose file does not compile and why, what is similar, and what belongs to no submission.
    for words in [
        "What does not compile",
        "error: this file contains an unclosed delimiter",
        "equal: loss.rs",
        ".git",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let said = String::from_utf8_lossy(&output.stdout);
    for words in ["taken for nobody's submission: .git", "alike: 6 pairs of submissions"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let alike = std::fs::read_to_string(class.at("results/alike.csv")).unwrap();
    for row in ["group 1,group 3,loss.rs,equal,100,", "group 1,gruppe-ä,norm.rs,near,"] {
        assert!(alike.lines().any(|line| line.starts_with(row)), "{row}: {alike}");
    }
    assert!(table.starts_with('\u{feff}') && alike.starts_with('\u{feff}'));

    // Once more: what is there is kept, and other points need no other grading.
    let settings = std::fs::read_to_string(class.at("settings.toml")).unwrap();
    class.write(
        "settings.toml",
        format!("{settings}partial = true\n[points]\n'norm/forward' = 100\n"),
    );
    let changes = "[[change]]\nsubmission = 'group 1'\ntask = 'loss/shift'\npoints = 1.5\nwho = 'the lecturer'\n\
                   when = 2026-05-04\nwhy = 'explained it at the board'\n";
    class.write("changes.toml", changes);
    let output = class.grade(&["--changes", class.at("changes.toml").to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stdout);
    // No one, except those who hand in nothing.
    assert!(said.contains("graded in this call: 1; as before: 3"), "{said}");
    let again = class.record("group 1");
    let of = |name: &str| again.tasks.iter().find(|task| task.name == name).unwrap().points;
    assert_eq!((of("norm/forward"), of("loss/shift")), (100.0, 1.5));
    assert_eq!(again.points, Some(again.tasks.iter().map(|task| task.points).sum::<f64>()));
    assert_eq!(again.changed[0].why, "explained it at the board");
    let partial = class.record("gruppe-ä").tasks[0].points;
    assert!(0.0 < partial && partial < 100.0, "{partial}");
}

#[test]
fn a_grader_that_is_killed_goes_on_and_comes_to_the_same() {
    let class = Class::new();
    class.write("settings.toml", "tasks = ['norm/uniform', 'loss/shift']\n");
    for nth in 0..6 {
        class.write(&format!("class/g{nth}/norm.rs"), solution("norm") + &format!("// {nth}\n"));
        class.write(&format!("class/g{nth}/loss.rs"), solution("loss"));
    }
    let result = |nth: usize| class.at(&format!("results/g{nth}/result.json"));
    // Killed as soon as one, then three of them have a result.
    for wanted in [1, 3] {
        let mut grader = class.command(&["--jobs", "1"]).spawn().unwrap();
        while (0..6).filter(|nth| result(*nth).exists()).count() < wanted {
            assert!(grader.try_wait().unwrap().is_none(), "it has ended by itself");
            std::thread::sleep(Duration::from_millis(20));
        }
        grader.kill().unwrap();
        grader.wait().unwrap();
    }
    let there = (0..6).filter(|nth| result(*nth).exists()).count();
    let output = class.grade(&["--jobs", "2"]);
    let said = String::from_utf8_lossy(&output.stdout);
    let words = format!("graded in this call: {}; as before: {there}", 6 - there);
    assert!(output.status.success() && said.contains(&words), "{said}");
    let killed: Vec<Record> = (0..6).map(|nth| class.record(&format!("g{nth}"))).collect();
    assert!(class.grade(&["--fresh"]).status.success());
    for (nth, before) in killed.into_iter().enumerate() {
        assert_eq!(class.record(&format!("g{nth}")), before);
    }
}

/// NaN equals nothing, not even the NaN of the result that is kept.
/// Also in a sandbox whose outer process ends before its inner one.
#[test]
fn what_a_submission_computes_is_counted() {
    let class = Class::new();
    let tasks = "tasks = ['norm/uniform', 'norm/forward', 'loss/shift']\n";
    let limits = "[limits]\ncpu_seconds = 5\nwall_seconds = 8\nsubmission_seconds = 8\n";
    class.write("settings.toml", format!("{tasks}{limits}"));
    let mut norm = solution("norm");
    for task in ["uniform", "forward"] {
        let mark = format!("// task norm/{task}: begin\n");
        norm = norm.replace(&mark, &format!("{mark}    loop {{ std::hint::spin_loop(); }}\n"));
    }
    class.write("class/ann/norm.rs", norm);
    class.write("class/ann/loss.rs", solution("loss"));
    assert!(class.grade(&["--jobs", "1"]).status.success());
    let tasks = class.record("ann").tasks;
    let last = tasks.last().unwrap();
    assert!(
        last.report.contains("all tasks together have computed for 8 seconds"),
        "{}",
        last.report
    );
}

#[test]
fn a_result_that_shows_nan_is_kept() {
    let class = Class::new();
    class.write("settings.toml", "tasks = ['norm/uniform']\n");
    let wrong = solution("norm").replace("unit().mul_add(high - low, low)", "unit() * f32::NAN");
    class.write("class/g0/norm.rs", wrong);
    assert!(class.grade(&[]).status.success());
    let json = std::fs::read_to_string(class.at("results/g0/result.json")).unwrap();
    assert!(json.contains("\"got\": \"NaN\""), "{json}");
    let said = String::from_utf8(class.grade(&[]).stdout).unwrap();
    assert!(said.contains("graded in this call: 0; as before: 1"), "{said}");
}

/// The error with which a command ends.
fn refused(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_graded() {
    let class = Class::new();
    class.write("class/g/norm.rs", solution("norm"));

    let mut without = class.command(&[]);
    without.env("QUADRIVIUM_BWRAP", "/nowhere/bwrap");
    assert!(refused(without).contains("install bubblewrap"));

    // A bwrap that may make no namespaces.
    let bwrap = class.at("bwrap");
    std::fs::write(
        &bwrap,
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n",
    )
    .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&bwrap, mode).unwrap();
    let mut forbidden = class.command(&[]);
    forbidden.env("QUADRIVIUM_BWRAP", &bwrap);
    let said = refused(forbidden);
    assert!(said.contains("user namespaces") || said.contains("new namespace"), "{said}");

    class.write("settings.toml", "tasks = ['norm/forword']\n");
    assert!(refused(class.command(&[])).contains("norm/forword"));
    class.write("settings.toml", "");
    class.write(
        "changes.toml",
        "[[change]]\nsubmission = 'h'\npoints = 1\nwho = 'a'\nwhen = 2026-05-04\nwhy = 'b'\n",
    );
    let changes = class.at("changes.toml");
    assert!(refused(class.command(&["--changes", changes.to_str().unwrap()])).contains("\"h\""));
    for part in ["3/2", "0/5", "3/", "1"] {
        assert!(refused(class.command(&["--shard", part])).contains("counted from 1"), "{part}");
    }

    let results = class.at("results");
    let graded = results.read_dir().into_iter().flatten().flatten().map(|entry| entry.file_name());
    let graded: Vec<_> = graded.filter(|name| name != ".lock" && name != "class.json").collect();
    assert!(graded.is_empty(), "{graded:?}");

    // Another grader is at work there.
    let lock = std::fs::File::create(results.join(".lock")).unwrap();
    lock.lock().unwrap();
    assert!(refused(class.command(&[])).contains("at work"));
    drop(lock);

    let file = class.at("file");
    std::fs::write(&file, "").unwrap();
    let mut onto_a_file = Command::new(env!("CARGO_BIN_EXE_grader"));
    onto_a_file.arg("grade").arg(class.at("class")).arg("--out").arg(&file);
    assert!(refused(onto_a_file).contains("can't be made"));
}

/// The same command from a shell that has been given this.
fn in_shell(told: &str, command: &Command) -> Command {
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(format!("{told} && exec \"$0\" \"$@\""));
    shell.arg(command.get_program()).args(command.get_args());
    shell
}

#[test]
fn no_umask_and_nobodys_name_stop_the_class() {
    let class = Class::new();
    class.write("settings.toml", "tasks = ['loss/shift']\n");
    let long = format!("\u{202e}{}", "界".repeat(84));
    for name in ["ann", &long] {
        class.write(&format!("class/{name}/loss.rs"), solution("loss"));
    }
    for umask in ["027", "077"] {
        let command = class.command(&["--fresh"]);
        let output = in_shell(&format!("umask {umask}"), &command).output().unwrap();
        assert!(output.status.success(), "umask {umask}: {output:?}");
        assert_eq!(class.passed("ann"), ["loss/shift"]);
    }
    let table = std::fs::read_to_string(class.at("results/grades.csv")).unwrap();
    assert_eq!(table.lines().count(), 3, "{table}");
}

#[test]
fn a_limit_of_the_shell_costs_nobody_points() {
    let class = Class::new();
    class.write("class/ann/loss.rs", solution("loss"));
    for limit in ["u 70", "v 3000000", "d 100000", "s 4096", "f 100000", "t 600", "n 50"] {
        // Only the soft one, which the shell may raise again.
        for of in ["", "S"] {
            let told = format!("ulimit -{of}{limit}");
            let said = refused(in_shell(&told, &class.command(&["--jobs", "2"])));
            let letter = &limit[..1];
            assert!(said.contains(&format!("(`ulimit -{letter}`)")), "{told}: {said}");
            assert!(!class.at("results").exists(), "{told}");
        }
    }
    let said = refused(in_shell("ulimit -u 70", &class.command(&["--jobs", "3"])));
    assert!(said.contains("3 at a time, each with 64 and 4 of its sandbox"), "{said}");
}

/// In a container, the processes of others are not to be seen. Their folders are in use all the same.
#[test]
fn a_grader_in_another_container_leaves_the_folders_of_this_one() {
    let class = Class::new();
    class.write("class/ann/loss.rs", solution("loss"));
    let workspace = Workspace::find().unwrap();
    let parts = grader::parts::Parts::build(&workspace, &|_| {}).unwrap();
    let stage = grader::program::Stage::new(&parts, &grader::intake::Taken::default()).unwrap();
    let mut container = Command::new("bwrap");
    container.args(["--unshare-user", "--unshare-pid", "--dev-bind", "/", "/", "--proc", "/proc"]);
    let command = class.command(&[]);
    container.arg(command.get_program()).args(command.get_args());
    // Whether it can have a sandbox in there is another thing: it tidies before.
    let output = container.output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).starts_with("bwrap:"), "{output:?}");
    for folder in [stage.path(), stage.reachable()] {
        assert!(folder.exists(), "{}", folder.display());
    }
}

/// All files of a folder of results, the lock left out, and what is in them.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in folder.read_dir().unwrap().map(Result::unwrap) {
        match entry.path() {
            path if path.is_dir() => files.append(&mut self::files(&path)),
            path if path.ends_with(".lock") => {}
            path => _ = files.insert(path.clone(), std::fs::read(path).unwrap()),
        }
    }
    files
}

#[test]
fn parts_of_a_class_that_are_killed_and_called_again_are_what_one_machine_writes() {
    let class = Class::new();
    class.write("settings.toml", "tasks = ['norm/uniform', 'loss/shift']\n");
    for nth in 0..6 {
        class.write(&format!("class/g{nth}/norm.rs"), solution("norm") + &format!("// {nth}\n"));
        class.write(&format!("class/g{nth}/loss.rs"), solution("loss"));
    }
    class.write("class/g1/loss.rs", "fn half( {");
    class.write("class/g6/readme.md", "nothing");
    let change =
        "[[change]]\nsubmission = 'g4'\npoints = 1.5\nwho = 'a'\nwhen = 2026-05-04\nwhy = 'b'\n";
    class.write("changes.toml", change);
    let changes = class.at("changes.toml");
    let formats = ["--format", "gradescope", "--format", "junit", "--format", "moodle"];
    let finish = [&["--changes", changes.to_str().unwrap()][..], &formats].concat();
    // One of them has no grade.
    assert_eq!(class.grade(&finish).status.code(), Some(1));
    let results = class.at("results");
    let alone = files(&results);
    std::fs::remove_dir_all(&results).unwrap();

    // All begin at once, in one folder. The second is killed when the first of its two has a result.
    let part = |words: &str| class.command(&["--jobs", "1", "--shard", words]);
    let [first, mut second, third] =
        ["1/3", "2/3", "3/3"].map(|words| part(words).spawn().unwrap());
    while !class.at("results/g1/result.json").exists() {
        assert!(second.try_wait().unwrap().is_none(), "it has ended by itself");
        std::thread::sleep(Duration::from_millis(20));
    }
    second.kill().unwrap();
    second.wait().unwrap();
    assert!(!class.at("results/g4/result.json").exists());
    let ended = |process: Child| -> (Option<i32>, String) {
        let output = process.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, said) = ended(first);
    assert_eq!(code, Some(1), "{said}");
    for words in ["part 1 of 3: 2 of 3 submissions", "not graded: g6: ", "without --shard"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let (code, said) = ended(third);
    assert!(code == Some(0) && said.contains("part 3 of 3: 2 of 2 submissions"), "{said}");
    assert!(!class.at("results/grades.csv").exists(), "it would be of a part of the class");
    let (code, said) = ended(part("2/3").spawn().unwrap());
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("graded in this call: 1; as before: 1"), "{said}");

    // What a killed one was about to write, a result of another commit, and one that is missing.
    class.write("results/g1/.a1b2c3.new", "{");
    let other = class.record("g0");
    let json = std::fs::read_to_string(class.at("results/g0/result.json")).unwrap();
    class.write("results/g0/result.json", json.replace(&other.judge, &"e2".repeat(32)));
    std::fs::remove_dir_all(class.at("results/g5")).unwrap();
    // Not as long as a part is at work.
    let lock = std::fs::File::open(class.at("results/.lock")).unwrap();
    lock.lock_shared().unwrap();
    assert!(refused(class.command(&finish)).contains("at work"));
    drop(lock);
    let output = class.grade(&finish);
    let said = String::from_utf8_lossy(&output.stdout);
    // The two of these, and who is tried again since there is nothing to take.
    assert!(said.contains("graded in this call: 3; as before: 4"), "{said}");
    assert_eq!(output.status.code(), Some(1));
    let parts = files(&results);
    assert_eq!(parts.keys().collect::<Vec<_>>(), alone.keys().collect::<Vec<_>>());
    for (path, text) in &parts {
        assert!(alone[path] == *text, "{} differs", path.display());
    }
}

#[test]
fn a_late_hand_in_leaves_the_class_whole_and_decisions_can_be_made() {
    let class = Class::new();
    class.write("settings.toml", "tasks = ['loss/shift']\n");
    let folder = |nth: usize| format!("P {nth}_{nth}_assignsubmission_file_");
    class.write(&format!("class/{}/loss.rs", folder(1)), solution("loss"));
    class.write(&format!("class/{}/loss.rs", folder(2)), "fn half( {");
    class.write(&format!("class/{}/solution.pdf", folder(3)), "%PDF");
    let output =
        class.grade(&["--format", "moodle", "--format", "canvas", "--format", "gradescope"]);
    assert_eq!(output.status.code(), Some(1));
    let nobody = class.record(&folder(3));
    assert_eq!((nobody.points, nobody.left_out.len()), (None, 1));
    let json = std::fs::read_to_string(class.at(&format!("results/{}/result.json", folder(3))));
    assert!(json.unwrap().contains("\"points\": null"));

    // One of them once more, alone, and points for who could not be graded.
    class.write(&format!("late/{}/loss.rs", folder(2)), solution("loss"));
    let change = |who: usize, more: &str| {
        format!(
            "[[change]]\nsubmission = '{}'\n{more}\npoints = 1.5\nwho = 'the lecturer'\nwhen = 2026-11-25\n\
             why = 'shown on paper'\n",
            folder(who)
        )
    };
    class.write("changes.toml", change(3, "") + &change(3, "task = 'loss/shift'"));
    let late = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_grader"));
        command.arg("grade").arg(class.at("late")).arg("--out").arg(class.at("results"));
        command.arg("--settings").arg(class.at("settings.toml")).args(["--seed", "3"]).args(more);
        command.output().unwrap()
    };
    let output = late(&["--changes", class.at("changes.toml").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "everybody has points");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    for words in [
        "3 of 3 submissions have a grade".to_string(),
        "graded in this call: 1; as before: 0".to_string(),
        format!("graded again: {}: 0 before, 6 now", folder(2)),
        "not named in this one: 2. They stay in the class".to_string(),
        format!("decided by hand: {}: 1.5 points", folder(3)),
        format!("a change that does nothing: {} has no graded task loss/shift", folder(3)),
        "from an earlier call, and written again: gradescope.json, moodle.csv, canvas.csv"
            .to_string(),
    ] {
        assert!(said.contains(&words), "no {words:?} in {said}");
    }
    // All files are of the whole class, also those of formats that were not asked for.
    for file in ["grades.csv", "moodle.csv", "canvas.csv", "class.html"] {
        let text = std::fs::read_to_string(class.at(&format!("results/{file}"))).unwrap();
        let all = (1..=3).all(|nth| {
            text.contains(&format!("P {nth}")) || text.contains(&format!("Participant {nth},"))
        });
        assert!(all && text.contains("1.5"), "{file}: {text}");
    }
    let decided = class.record(&folder(3));
    assert!(matches!(decided.outcome, Outcome::Decided { .. }));
    let gradescope = class.at(&format!("results/{}/gradescope.json", folder(3)));
    assert!(gradescope.is_file());
    let report = std::fs::read_to_string(class.at(&format!("results/{}/report.html", folder(3))));
    let report = report.unwrap();
    for words in ["Decided by hand", "shown on paper", "solution.pdf"] {
        assert!(report.contains(words), "{words}");
    }

    // The results that lie there get changes and formats without the files of a submission.
    class.write("other.toml", "tasks = ['loss/shift']\n[columns]\nmaximum = 60\n");
    let (changes, other) = (class.at("changes.toml"), class.at("other.toml"));
    let alone = |settings: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_grader"));
        command.arg("grade").arg("--out").arg(class.at("results")).arg("--settings").arg(settings);
        command.arg("--changes").arg(&changes).args(["--seed", "3"]).output().unwrap()
    };
    let output = alone(&other);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let words = format!("{}: 1.5 points of the course's; in a gradebook 15", folder(3));
    assert!(said.contains("graded in this call: 0") && said.contains(&words), "{said}");
    assert!(!said.contains("warning"), "{said}");
    assert_eq!(class.record(&folder(2)).points, Some(6.0));
    class.write("wider.toml", "tasks = ['loss']\n");
    let said = alone(&class.at("wider.toml"));
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let words = "not graded by the rules of this call";
    assert!(said.contains(words) && said.contains(&folder(1)), "{said}");
    let mut nothing = Command::new(env!("CARGO_BIN_EXE_grader"));
    let nothing = nothing.arg("grade").arg("--out").arg(class.at("nothing")).output().unwrap();
    let said = String::from_utf8_lossy(&nothing.stderr).into_owned();
    assert!(nothing.status.code() == Some(2) && said.contains("name the folder"), "{said}");
    assert!(!class.at("nothing").exists());

    // A decision that is named no more counts no more, which is reported, as it is of the gradebook's maximum.
    alone(&other);
    let output = late(&[]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = format!("have the computed ones now: {}. Was --changes left out?", folder(3));
    assert!(said.contains(&words) && said.contains("were scaled to 60"), "{said}");
    assert_eq!(class.record(&folder(3)).points, None);
    assert!(!gradescope.exists());

    // The same participant by another name would have two rows.
    class.write("late/Anna_1_assignsubmission_file_/loss.rs", solution("loss"));
    let output = late(&[]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("Anna_1") && said.contains(&folder(1)), "{said}");
}
