//! What a class is, as Moodle and lecturers make it, and what is taken of each submission.

use grader::intake::{NotTaken, Source, Taken, take};
use grader::submissions::{Submissions, found, passed_over, refuse_twins};
use grader::systems::System;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

const NORM: &str = "// norm\n";
const ROPE: &str = "// rope\n";

struct Class(tempfile::TempDir);

impl Class {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn found(&self, name: &str) -> Submissions {
        found(&[self.at(name)], &[System::Moodle]).unwrap()
    }
}

fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn tar_gz(files: &[(&str, &[u8])]) -> Vec<u8> {
    let gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gz);
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, *content).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn files(taken: &Result<Taken, NotTaken>) -> Vec<&'static str> {
    taken.as_ref().unwrap().files.keys().copied().collect()
}

fn why(taken: Result<Taken, NotTaken>) -> String {
    taken.unwrap_err().why
}

fn folder(nth: usize) -> String {
    format!("Participant {nth}_{nth}_assignsubmission_file_")
}

/// What Moodle has of a class: archives of any name, bare files, and what is neither.
fn moodle() -> Vec<(String, Vec<u8>)> {
    let norm = ("exercises/src/norm.rs", NORM.as_bytes());
    let both = [("src/norm.rs", NORM.as_bytes()), ("src/rope.rs", ROPE.as_bytes())];
    vec![
        (folder(1) + "/exercises.zip", zip(&[norm])),
        (folder(2) + "/hw2 final (2).zip", zip(&both)),
        (folder(3) + "/exercises.tar.gz", tar_gz(&[norm])),
        (folder(4) + "/norm.rs", NORM.into()),
        (folder(5) + "/solution.pdf", b"%PDF".to_vec()),
        (folder(6) + "/exercises.zip", b"PK no zip".to_vec()),
        (folder(7) + "/work.rar", b"Rar!".to_vec()),
    ]
}

fn is_moodles(all: &Submissions) {
    let names: Vec<String> = (1..=7).map(folder).collect();
    assert_eq!(all.keys().cloned().collect::<Vec<_>>(), names, "someone is not there");
    let of = |nth: usize| all[&folder(nth)].take();
    assert_eq!([1, 2, 3, 4].map(|nth| files(&of(nth)).len()), [1, 2, 1, 1]);
    assert_eq!(of(2).unwrap().files["rope"], ROPE);
    let words = [
        (5, "solution.pdf"),
        (6, "exercises.zip: it can't be opened as a zip archive: it is damaged"),
        (7, "work.rar (an archive that is not opened: hand in a .zip"),
    ];
    for (nth, words) in words {
        let not = of(nth).unwrap_err();
        assert!(not.why.contains(words), "{}", not.why);
        assert_eq!(not.found.len(), 1, "what was found is listed");
    }
    assert!(!why(of(6)).contains("EOCD"));
}

/// A program that opens a pipe waits until another one writes, and a device may have no end.
#[cfg(target_os = "linux")]
#[test]
fn a_submission_that_is_no_file_is_not_waited_for() {
    let class = Class::new();
    for name in ["ann.zip", "bob.tar.gz", "cleo"] {
        let made = std::process::Command::new("mkfifo").arg(class.at(name)).status();
        assert!(made.unwrap().success());
        let all = found(&[class.at(name)], &[System::Moodle]).unwrap();
        for one in all.values() {
            assert!(why(one.take()).contains("this is a pipe or a device"), "{name}");
        }
        assert!(!all.is_empty());
    }
    std::os::unix::fs::symlink("/dev/zero", class.at("zeros.zip")).unwrap();
    assert!(why(take(&class.at("zeros.zip"))).contains("this is a pipe or a device"));
}

#[test]
fn what_moodle_makes_of_a_class_is_opened_as_it_is() {
    let class = Class::new();
    let all = moodle();
    for (name, content) in &all {
        class.write(&format!("folders/{name}"), content);
        // Without folders, the file's own name follows the participant's.
        class.write(&format!("flat/{}", name.replace('/', "")), content);
        class.write(&format!("one more/CS631-Sheet 2-48213/{name}"), content);
    }
    let entries: Vec<(&str, &[u8])> = all.iter().map(|(n, c)| (n.as_str(), c.as_slice())).collect();
    class.write("whole/CS631-Sheet 2-48213.zip", zip(&entries));
    let flat: Vec<(String, &[u8])> =
        all.iter().map(|(n, c)| (n.replace('/', ""), c.as_slice())).collect();
    let flat: Vec<(&str, &[u8])> = flat.iter().map(|(n, c)| (n.as_str(), *c)).collect();
    class.write("flat.zip", zip(&flat));
    for name in
        ["folders", "flat", "one more", "whole", "whole/CS631-Sheet 2-48213.zip", "flat.zip"]
    {
        println!("{name}");
        is_moodles(&class.found(name));
    }
}

#[test]
fn several_files_of_one_participant_are_one_submission() {
    let class = Class::new();
    class.write(&format!("class/{}norm.rs", folder(1)), NORM);
    class.write(&format!("class/{}rope.rs", folder(1)), ROPE);
    class.write(&format!("class/{}/onlinetext.html", folder(1).replace("file", "onlinetext")), "");
    let all = class.found("class");
    assert_eq!(all.len(), 1);
    assert_eq!(files(&all[&folder(1)].take()), ["norm", "rope"]);
}

#[test]
fn nobody_disappears_from_a_class() {
    let class = Class::new();
    class.write("class/s1.zip", zip(&[("norm.rs", NORM.as_bytes())]));
    for name in ["s2.rar", "s3.pdf", "notes.txt"] {
        class.write(&format!("class/{name}"), "");
    }
    class.write("class/.DS_Store", "");
    class.write("class/__MACOSX/._s1.zip", "");
    #[cfg(unix)]
    std::os::unix::fs::symlink("s1.zip", class.at("class/s4.zip")).unwrap();
    // A class that a student made, to hand in for others.
    let others = [(folder(1) + "/norm.rs", NORM), (folder(2) + "/norm.rs", NORM)];
    let others: Vec<(&str, &[u8])> =
        others.iter().map(|(n, c)| (n.as_str(), c.as_bytes())).collect();
    class.write("class/s5.zip", zip(&others));
    let all = class.found("class");
    let names: Vec<&str> = all.keys().map(String::as_str).collect();
    assert_eq!(names, ["notes.txt", "s1", "s2.rar", "s3.pdf", "s4.zip", "s5.zip"]);
    assert_eq!(files(&all["s1"].take()), ["norm"]);
    for (name, words) in
        [("s2.rar", "a single file"), ("s4.zip", "a link"), ("s5.zip", "several participants")]
    {
        let why = why(all[name].take());
        assert!(why.contains(words), "{name}: {why}");
    }
    // A learner's file beside the participants' folders makes no submission of the class.
    class.write(&format!("class/{}/norm.rs", folder(3)), NORM);
    class.write("class/norm.rs", NORM);
    let all = class.found("class");
    assert_eq!(all.len(), 8);
    assert_eq!(files(&all[&folder(3)].take()), ["norm"]);
    // And one participant's folder is no class.
    let one = found(&[class.at(&format!("class/{}", folder(3)))], &[System::Moodle]).unwrap();
    assert_eq!(one.keys().collect::<Vec<_>>(), [&folder(3)]);
}

#[test]
fn what_is_nobodys_submission_is_named() {
    let class = Class::new();
    class.write("class/ann/norm.rs", NORM);
    // Hidden, and a submission all the same.
    class.write("class/.bob/norm.rs", NORM);
    class.write("class/.cleo.zip", zip(&[("norm.rs", NORM.as_bytes())]));
    class.write("class/.dora/exercises/src/norm.rs", NORM);
    // No submission, or too deep to be recognized as one.
    for name in [".git/config", ".emil/work/norm.rs", ".notes.txt", ".DS_Store", "__MACOSX/._a"] {
        class.write(&format!("class/{name}"), "");
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("ann", class.at("class/.fred")).unwrap();
    let all = class.found("class");
    let taken = all.iter().filter(|(_, source)| source.take().is_ok()).map(|(name, _)| name);
    let names: Vec<&str> = taken.map(|name| name.split('-').next().unwrap()).collect();
    assert_eq!(names, ["_.bob", "_.cleo", "_.dora", "ann"], "{:?}", all.keys());
    assert_eq!(all.len(), 4);
    let passed = |name: &str| passed_over(&[class.at(name)], &[System::Moodle]).unwrap();
    let names: Vec<String> = passed("class").into_iter().map(|one| one.name).collect();
    let links = if cfg!(unix) { &[".fred"][..] } else { &[] };
    assert_eq!(names, [&[".emil"], links, &[".git", ".notes.txt"]].concat());
    assert!(passed("class").iter().all(|one| one.why.contains("begins with a dot")));
    // The same in a class that lies alone in a folder, and what a field of Moodle's holds.
    let text = format!("more/one/{}", folder(1).replace("file", "onlinetext"));
    class.write(&format!("{text}/onlinetext.html"), "");
    class.write(&format!("more/one/{}/norm.rs", folder(1)), NORM);
    class.write("more/one/.git/config", "");
    let names: Vec<String> = passed("more").into_iter().map(|one| one.name).collect();
    assert!(names.len() == 2 && names[0] == ".git" && names[1].contains("onlinetext"), "{names:?}");
    assert!(passed("class/ann").is_empty());
}

#[test]
fn what_counts_is_never_guessed() {
    let class = Class::new();
    let (old, new) = (zip(&[("norm.rs", b"// old\n")]), zip(&[("norm.rs", NORM.as_bytes())]));
    class.write("two/old.zip", &old);
    class.write("two/new.zip", &new);
    let said = why(take(&class.at("two")));
    assert!(said.contains("old.zip") && said.contains("new.zip"), "{said}");
    class.write("beside/exercises/src/norm.rs", NORM);
    class.write("beside/old.zip", &old);
    let said = why(take(&class.at("beside")));
    assert!(said.contains("old.zip (with norm.rs)") && said.contains("not clear"), "{said}");
    // The same files twice are no question, and neither is an archive without any.
    class.write("same/norm.rs", NORM);
    class.write("same/new.zip", &new);
    class.write("same/figures.zip", zip(&[("figure.png", b"")]));
    let same = take(&class.at("same"));
    assert_eq!(files(&same), ["norm"]);
    let left = &same.unwrap().left_out;
    assert!(left.iter().any(|left| left.name == "figures.zip: figure.png"), "{left:?}");
    // A file that was finished elsewhere than the starter lies. What was saved before a reset is not meant.
    let finished = format!("{NORM}\n// task norm/uniform: begin\n");
    class.write("starter/exercises/src/norm.rs", NORM);
    class.write("starter/exercises/backups/norm.rs", &finished);
    class.write("starter/exercises/adapters/src/norm.rs", "// the course's own");
    assert_eq!(files(&take(&class.at("starter"))), ["norm"]);
    class.write("starter/final/norm.rs", NORM);
    assert_eq!(files(&take(&class.at("starter"))), ["norm"]);
    class.write("starter/final/norm.rs", &finished);
    let said = why(take(&class.at("starter")));
    assert!(said.contains("final/norm.rs") && said.contains("not clear"), "{said}");
    // One that can't be read may hold others.
    class.write("damaged/norm.rs", NORM);
    class.write("damaged/new.zip", "PK");
    let said = why(take(&class.at("damaged")));
    assert!(said.contains("new.zip") && said.contains("norm.rs"), "{said}");
}

/// A zip in which the second entry of these gets the name of the first. They are as long as each other.
fn zip_with_twins(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = zip(files);
    let (name, twin) = (files[0].0.as_bytes(), files[1].0.as_bytes());
    assert_eq!(name.len(), twin.len());
    for at in 0..bytes.len() - twin.len() {
        if bytes[at..].starts_with(twin) {
            bytes[at..at + name.len()].copy_from_slice(name);
        }
    }
    bytes
}

/// Some programs unpack the first of two, and others the last.
#[test]
fn a_name_that_is_twice_in_an_archive_is_no_choice() {
    let class = Class::new();
    let two: [(&str, &[u8]); 2] =
        [("src/norm.rs", NORM.as_bytes()), ("src/norm.rX", b"// another\n")];
    let twins = zip_with_twins(&two);
    class.write("zip/1.zip", &twins);
    class.write("inner.zip", zip(&[("work.zip", &twins), ("rope.rs", ROPE.as_bytes())]));
    class.write("packed.zip", zip_with_twins(&[("a.zip", &twins), ("b.zip", &twins)]));
    class.write("folder/twins.zip", &twins);
    class.write("folder/norm.rs", NORM);
    for name in ["zip/1.zip", "inner.zip", "packed.zip", "folder"] {
        let said = why(take(&class.at(name)));
        assert!(said.contains("two of its entries have the same name"), "{name}: {said}");
    }
    // A class has a row for it, which says so.
    assert!(why(class.found("zip")["1"].take()).contains("same name"));
    // The same in a tar, in which both can be read.
    class.write("two.tgz", tar_gz(&[("norm.rs", NORM.as_bytes()), ("norm.rs", b"// another\n")]));
    assert!(why(take(&class.at("two.tgz"))).contains("norm.rs is there twice"));
    class.write("same.tgz", tar_gz(&[("norm.rs", NORM.as_bytes()), ("norm.rs", NORM.as_bytes())]));
    assert_eq!(files(&take(&class.at("same.tgz"))), ["norm"]);
    // Names that are written in another way and lead to the same file.
    for twin in ["./src/norm.rs", "src\\norm.rs", ".\\src\\norm.rs", "src/Norm.rs", "src/NORM.RS"] {
        let two: [(&str, &[u8]); 2] = [("src/norm.rs", NORM.as_bytes()), (twin, b"// another\n")];
        class.write("twin.zip", zip(&two));
        class.write("twin.tgz", tar_gz(&two));
        for name in ["twin.zip", "twin.tgz"] {
            let said = why(take(&class.at(name)));
            assert!(said.contains("norm.rs is there twice"), "{twin} in {name}: {said}");
        }
    }
    // A folder separates them only where the system does.
    class.write("folder of two/norm.rs", NORM);
    class.write("folder of two/Norm.rs", "// another\n");
    if class.at("folder of two").read_dir().unwrap().count() == 2 {
        assert!(why(take(&class.at("folder of two"))).contains("norm.rs is there twice"));
    }
}

/// Beside an empty file of the right name, the finished one of another name would be 0 points.
#[test]
fn a_finished_file_in_capitals_is_not_passed_over() {
    let class = Class::new();
    let finished = format!("{NORM}\n// task norm/uniform: begin\n");
    class.write("s1/exercises/src/norm.rs", NORM);
    class.write("s1/final/Norm.rs", &finished);
    let said = why(take(&class.at("s1")));
    assert!(said.contains("final/") && said.contains("not clear"), "{said}");
    class.write("s2/norm.rs ", NORM);
    class.write("s2/loss.rs", "");
    assert!(why(take(&class.at("s2"))).contains("there is no norm.rs"));
}

#[test]
fn archives_in_archives_are_opened_once_and_no_deeper() {
    let class = Class::new();
    let inner = zip(&[("exercises/src/norm.rs", NORM.as_bytes())]);
    class.write("once.zip", zip(&[("work/exercises.zip", &inner)]));
    class.write("in a tar.tar.gz", tar_gz(&[("submission/exercises.zip", &inner)]));
    for name in ["once.zip", "in a tar.tar.gz"] {
        assert_eq!(files(&take(&class.at(name))), ["norm"], "{name}");
    }
    let outer = zip(&[("exercises.zip", &inner)]);
    class.write("twice.zip", zip(&[("outer.zip", &outer)]));
    class.write("folder/outer.zip", &outer);
    for name in ["twice.zip", "folder"] {
        let said = why(take(&class.at(name)));
        assert!(said.contains("outer.zip: exercises.zip (an archive in an archive"), "{said}");
    }
}

/// A tar.gz with a file of so many MiB, which is made of the same MiB again and again.
fn bomb(mebibytes: usize) -> Vec<u8> {
    let gz = |bytes: &[u8]| {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(bytes).unwrap();
        gz.finish().unwrap()
    };
    let mut header = tar::Header::new_gnu();
    header.set_path("bomb.bin").unwrap();
    header.set_size((mebibytes << 20) as u64);
    header.set_cksum();
    let mut all = gz(header.as_bytes());
    all.extend(gz(&vec![0; 1 << 20]).repeat(mebibytes));
    all.extend(gz(&[0; 1024]));
    all
}

#[test]
fn archives_in_archives_have_limits() {
    let class = Class::new();
    let inner = zip(&[("norm.rs", NORM.as_bytes())]);
    let names: Vec<String> = (0..21).map(|nth| format!("{nth}.zip")).collect();
    let many: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &*inner)).collect();
    class.write("many.zip", zip(&many));
    assert!(why(take(&class.at("many.zip"))).contains("more than 20 archives"));
    // Of one megabyte, and unpacked far more than is gone through.
    let zeros = vec![0; 65 << 20];
    class.write("large.zip", zip(&[("a.zip", &zeros)]));
    assert!(why(take(&class.at("large.zip"))).contains("more than 67108864 bytes"));
    let bomb = bomb(300);
    class.write("bombs.zip", zip(&[("1.tgz", &bomb), ("2.tgz", &bomb)]));
    assert!(why(take(&class.at("bombs.zip"))).contains("unpacks to more than 512 MiB"));
    let mebibyte = vec![b' '; 1 << 20];
    let names: Vec<String> = (0..65).map(|nth| format!("{nth}/norm.rs")).collect();
    let full: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &*mebibyte)).collect();
    class.write("full.zip", zip(&full));
    assert!(why(take(&class.at("full.zip"))).contains("more than 64 MiB together"));
}

#[cfg(unix)]
#[test]
fn a_link_to_an_archive_is_not_followed() {
    let class = Class::new();
    class.write("outside.zip", zip(&[("norm.rs", NORM.as_bytes())]));
    std::fs::create_dir(class.at("s1")).unwrap();
    std::os::unix::fs::symlink(class.at("outside.zip"), class.at("s1/exercises.zip")).unwrap();
    assert!(why(take(&class.at("s1"))).contains("links"));
    class.write(&format!("class/{}rope.rs", folder(1)), ROPE);
    let link = class.at(&format!("class/{}exercises.zip", folder(1)));
    std::os::unix::fs::symlink(class.at("outside.zip"), link).unwrap();
    let all = class.found("class");
    assert!(all.values().all(|source| source.take().is_err() || files(&source.take()) == ["rope"]));
}

#[test]
fn two_submissions_of_one_participant_are_not_graded() {
    let class = Class::new();
    let one = zip(&[("norm.rs", NORM.as_bytes())]);
    class.write(&format!("class/{}/norm.rs", folder(1)), NORM);
    class.write(&format!("class/{}.zip", folder(1)), &one);
    class.write("class/Anna_2_assignsubmission_file_/norm.rs", NORM);
    class.write(&format!("class/{}/norm.rs", folder(2)), NORM);
    class.write(&format!("class/{}/norm.rs", folder(3)), NORM);
    class.write(&format!("class/{}norm.rs", folder(3)), NORM);
    class.write("class/s4.zip", &one);
    let mut all = class.found("class");
    let columns = grader::output::table::Columns::default();
    refuse_twins(&mut all, |name| columns.whose_words(name, &[]));
    let said = why(all[&folder(1)].take());
    assert!(said.contains(&format!("\"{}\" and \"{}.zip\"", folder(1), folder(1))), "{said}");
    for name in [folder(2), "Anna_2_assignsubmission_file_".to_string()] {
        let said = why(all[&name].take());
        assert!(said.contains(&folder(2)) && said.contains("Anna_2"), "{said}");
        assert!(said.contains("participant 2"), "{said}");
    }
    assert!(why(all[&folder(3)].take()).contains("one participant"));
    assert_eq!(all["s4"], Source::Path(class.at("class/s4.zip")));
    // Names with numbers are Canvas's where Canvas is asked for.
    class.write("canvas/anna_12_345_a/norm.rs", NORM);
    class.write("canvas/anna_12_346_b.zip", &one);
    let mut all = class.found("canvas");
    refuse_twins(&mut all, |name| columns.whose_words(name, &[]));
    assert!(all.values().all(|source| source.take().is_ok()));
    let canvas = [course::arguments::Format::Canvas];
    let mut all = found(&[class.at("canvas")], &CANVAS).unwrap();
    refuse_twins(&mut all, |name| columns.whose_words(name, &canvas));
    assert_eq!(all.len(), 2);
    assert!(all.values().all(|source| source.take().is_err()));
}

const CANVAS: [System; 2] = [System::Moodle, System::Canvas];

/// File systems count bytes, not letters, and not every name is a text.
#[cfg(unix)]
#[test]
fn a_name_of_any_length_can_be_a_folder_and_says_whose_it_is() {
    use std::os::unix::ffi::OsStrExt;

    let class = Class::new();
    let mut names: Vec<Vec<u8>> = vec![
        format!("\u{202e}{}", "界".repeat(84)).into(),
        "é".repeat(127).into(),
        "x".repeat(255).into(),
        vec![0xff; 255],
    ];
    // These differ in bytes that are no text.
    names.extend([b"M\x81ller".to_vec(), b"M\x84ller".to_vec()]);
    for name in &names {
        let folder = class.at("class").join(std::ffi::OsStr::from_bytes(name));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("norm.rs"), NORM).unwrap();
    }
    let all = class.found("class");
    assert_eq!(all.len(), names.len(), "{:?}", all.keys());
    let archive = |nth: usize| format!("{}_{nth}_assignsubmission_file_/norm.rs", "界".repeat(100));
    let [one, two] = [12, 13].map(archive);
    class.write("class.zip", zip(&[(&one, NORM.as_bytes()), (&two, NORM.as_bytes())]));
    let of_zip = class.found("class.zip");
    assert_eq!(of_zip.len(), 2);
    for (name, source) in all.iter().chain(&of_zip) {
        assert!(name.len() <= 255, "{} bytes", name.len());
        assert_eq!(files(&source.take()), ["norm"], "{name}");
        std::fs::create_dir_all(class.at("results").join(name)).unwrap();
    }
    let participants: Vec<_> =
        of_zip.keys().filter_map(|name| grader::systems::moodle_participant(name)).collect();
    assert_eq!(participants.len(), 2, "{of_zip:?}");
    let canvas = format!("{}_12_345_norm.rs", "x".repeat(240));
    class.write(&format!("canvas/{canvas}"), NORM);
    let of_canvas = found(&[class.at("canvas")], &CANVAS).unwrap();
    let whose: Vec<_> = of_canvas.keys().map(|name| grader::systems::canvas_user(name)).collect();
    assert_eq!(whose, [Some("12")]);
}

/// Canvas has no folders: a user's files are those that begin with their name and number.
/// A student hands in under a name that is shown as another one's.
#[test]
fn nobody_takes_the_name_of_another() {
    let class = Class::new();
    class.write("class/Ann_Lee/norm.rs", "// Ann Lee's\n");
    let long = "x".repeat(150);
    class.write(&format!("class/{long}/norm.rs"), "// long\n");
    class.write("class/_grades.csv/norm.rs", "// grades\n");
    let names = ["Ann\\Lee", "Ann\u{1}Lee", "Ann\u{202e}Lee", "Ann\u{200b}Lee", "grades.csv"];
    for name in names.map(String::from).iter().chain([&format!("{long}y")]) {
        class.write(&format!("class/{name}/norm.rs"), "// another one's\n");
    }
    let all = class.found("class");
    assert_eq!(all.len(), 9, "{:?}", all.keys());
    for (name, text) in
        [("Ann_Lee", "// Ann Lee's\n"), (&*long, "// long\n"), ("_grades.csv", "// grades\n")]
    {
        assert_eq!(all[name].take().unwrap().files["norm"], text, "{name}");
    }
    // The other entries have no say in what one is called.
    for file in names {
        let alone = Class::new();
        alone.write(&format!("class/{file}/norm.rs"), NORM);
        alone.write("class/other/norm.rs", NORM);
        let found = alone.found("class");
        assert!(found.keys().all(|name| all.contains_key(name) || name == "other"), "{found:?}");
    }
}

#[test]
fn what_canvas_makes_of_a_class_is_opened_as_it_is() {
    let class = Class::new();
    let both = zip(&[("src/norm.rs", NORM.as_bytes()), ("src/rope.rs", ROPE.as_bytes())]);
    let all: Vec<(&str, &[u8])> = vec![
        ("anna_1_901_exercises.zip", &both),
        ("bert_2_902_norm.rs", NORM.as_bytes()),
        ("bert_2_903_rope-1.rs", ROPE.as_bytes()),
        ("cleo_LATE_3_904_exercises-2.zip", &both),
        ("dora_4_905_work.7z", b"7z"),
        ("emil_5_text.html", b"too late"),
        ("fine_6_906_norm.rs", NORM.as_bytes()),
        ("fine_6_907_norm-1.rs", b"// another\n"),
    ];
    for (name, content) in &all {
        class.write(&format!("flat/{name}"), content);
    }
    class.write("submissions.zip", zip(&all));
    class.write("whole/submissions.zip", zip(&all));
    for name in ["flat", "submissions.zip", "whole"] {
        let all = found(&[class.at(name)], &CANVAS).unwrap();
        let names: Vec<&str> = all.keys().map(String::as_str).collect();
        let users = ["anna_1", "bert_2", "cleo_3", "dora_4", "emil_5", "fine_6"];
        assert_eq!(names, users.map(|user| format!("{user}_canvas")), "{name}");
        let of = |user: &str| all[&format!("{user}_canvas")].take();
        for user in ["anna_1", "bert_2", "cleo_3"] {
            assert_eq!(files(&of(user)), ["norm", "rope"], "{name}, {user}");
        }
        let words =
            [("dora_4", "work.7z (an archive that is not opened"), ("fine_6", "there twice")];
        for (user, words) in words {
            let said = why(of(user));
            assert!(said.contains(words), "{name}, {user}: {said}");
        }
        assert!(of("emil_5").is_err());
    }
    // Others name archives so, too: who is not asked for does not join them.
    let alone = class.found("flat");
    assert_eq!(alone.len(), all.len());
    let said = found(&[class.at("submissions.zip")], &[System::Moodle]).unwrap_err().to_string();
    assert!(said.contains("--format canvas"), "{said}");
    let said = why(class.found("whole")["submissions.zip"].take());
    assert!(said.contains("--format canvas"), "{said}");
}

#[test]
fn a_name_that_is_nearly_right_is_told() {
    let class = Class::new();
    for name in ["Norm.rs", "norm (1).rs", "norm-2.rs", "NORM.RS", "norm.rs.txt"] {
        class.write(&format!("{name}/{name}"), NORM);
        let said = why(take(&class.at(name)));
        assert!(said.contains("hand it in as norm.rs"), "{name}: {said}");
        // Beside another file, its tasks would have 0 points. Beside the right one it is none that is missing.
        class.write(&format!("{name}/loss.rs"), "");
        let said = why(take(&class.at(name)));
        assert!(said.contains("there is no norm.rs") && said.contains(name), "{said}");
        class.write(&format!("{name}/norm.rs"), NORM);
        assert_eq!(files(&take(&class.at(name))), ["loss", "norm"]);
    }
    // The same, of a file that can't be taken.
    class.write("unread/loss.rs", "");
    class.write("unread/norm.rs", [0xff, 0xfe]);
    let said = why(take(&class.at("unread")));
    assert!(said.contains("norm.rs can't be taken: it is not UTF-8"), "{said}");
    class.write("other/normal.rs", NORM);
    assert!(!why(take(&class.at("other"))).contains("hand it in as"));
}

#[test]
fn what_systems_leave_behind_is_not_listed() {
    let class = Class::new();
    let files = [
        ("exercises/src/norm.rs", NORM.as_bytes()),
        ("exercises/src/lib.rs", b""),
        ("__MACOSX/exercises/src/._norm.rs", b""),
        ("__MACOSX/._exercises.zip", b""),
        (".DS_Store", b""),
    ];
    class.write("s1.zip", zip(&files));
    for (name, content) in files {
        class.write(&format!("s2/{name}"), content);
    }
    for name in ["s1.zip", "s2"] {
        let left = take(&class.at(name)).unwrap().left_out;
        assert_eq!(left.len(), 1, "{left:?}");
        assert!(left[0].name.ends_with("lib.rs") && left[0].why.contains("course's own"));
    }
}

#[test]
fn a_class_of_nothing_is_refused_and_says_what_is_there() {
    let class = Class::new();
    class.write("class/solution.pdf", "");
    let said = found(&[class.at("class")], &[System::Moodle]).unwrap_err().to_string();
    assert!(said.contains("solution.pdf"), "{said}");
    assert!(found(&[Path::new("/nowhere/at all").to_path_buf()], &[System::Moodle]).is_err());
}
