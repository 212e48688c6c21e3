//! The packages for other systems, laid out as those systems document it, and run there.
//!
//! Most tests put a program in cargo's place that writes a result, so that the scripts are tested and the course is not built.

#![cfg(target_os = "linux")]

#[path = "packages/layout.rs"]
mod layout;
#[path = "packages/results.rs"]
mod results;

use contract::registry::COMPONENTS;
use course::arguments::{Format, Package};
use layout::{Cargo, Ended, Machine};
use results::{GradescopeResults, PrairieLearnResults};
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn gradescope_gets_the_grade() {
    let machine = Machine::gradescope(Cargo::StandIn);
    machine.submit("norm.rs", "fn main() {}");
    machine.answers(0, Format::Gradescope, &results::graded());
    assert_eq!(machine.run().code, 0);
    let results: GradescopeResults = machine.results();
    assert_eq!((results.score, results.tests.len()), (2.0, 2));
    let called = machine.called();
    assert!(
        called.starts_with("course grade ") && called.contains("/submission.tar.gz"),
        "{called}"
    );
    assert!(
        called.contains("--format gradescope") && called.contains("/settings.toml"),
        "{called}"
    );
    assert!(called.contains("--sandbox full") || called.contains("--sandbox confined"), "{called}");
    assert_eq!(machine.handed_in(), ["submission/", "submission/norm.rs"]);
}

#[test]
fn a_container_without_namespaces_has_the_other_lines() {
    for machine in [Machine::gradescope(Cargo::StandIn), Machine::prairielearn(Cargo::StandIn)] {
        machine.submit("norm.rs", "fn main() {}");
        machine.has_no_namespaces();
        machine.answers(0, Format::Gradescope, &results::graded());
        machine.run();
        assert!(machine.called().contains("--sandbox confined"), "{}", machine.called());
    }
}

#[test]
fn gradescope_gets_no_grade_where_a_machine_failed() {
    // Not graded, the machine ended it, wrong arguments, killed.
    for code in [1, 101, 2, 137] {
        let machine = Machine::gradescope(Cargo::StandIn);
        machine.submit("norm.rs", "fn main() {}");
        machine.leave("results/results.json", "{\"score\": 100}");
        machine.answers(code, Format::Gradescope, &results::failed_machine());
        let Ended { code, said } = machine.run();
        assert_ne!(code, 0);
        assert!(said.contains("not graded") && said.contains("not 0 points"), "{said}");
        assert!(!machine.has_results(), "Gradescope would take this for a grade");
    }
}

#[test]
fn a_result_of_a_grader_that_broke_down_is_none() {
    let machine = Machine::gradescope(Cargo::StandIn);
    machine.submit("norm.rs", "fn main() {}");
    machine.answers(137, Format::Gradescope, &results::graded());
    assert_ne!(machine.run().code, 0);
    assert!(!machine.has_results());
}

#[test]
fn what_lies_in_a_submission_is_no_result() {
    let machine = Machine::gradescope(Cargo::StandIn);
    for name in
        ["results.json", "out/submission/gradescope.json", "gradescope.json", "settings.toml"]
    {
        machine.submit(name, "{\"score\": 100}");
    }
    machine.answers(1, Format::Gradescope, &results::failed_machine());
    assert_ne!(machine.run().code, 0);
    assert!(!machine.has_results());
    assert!(machine.called().contains("source/settings.toml"), "{}", machine.called());
}

#[test]
fn gradescope_is_not_kept_waiting() {
    let machine = Machine::gradescope(Cargo::StandIn);
    machine.submit("norm.rs", "fn main() {}");
    machine.answers(0, Format::Gradescope, &results::graded());
    machine.waits(30);
    let begin = std::time::Instant::now();
    let Ended { code, said } = machine.run_with(&[("QUADRIVIUM_LIMIT", "1")]);
    assert!(
        begin.elapsed().as_secs() < 20 && code == 124 && said.contains("not graded"),
        "{code}: {said}"
    );
    assert!(!machine.has_results());
}

#[test]
fn gradescope_is_set_up() {
    let machine = Machine::gradescope(Cargo::StandIn);
    machine.answers(0, Format::Gradescope, &results::graded());
    let Ended { code, said } = machine.set_up();
    assert_eq!(code, 0, "{said}");
    let calls = machine.calls();
    for wanted in [
        "apt-get install",
        "rustup toolchain install",
        "cargo fetch --locked",
        "--profile proof",
        "course grade ",
    ] {
        assert!(calls.contains(wanted), "no {wanted} in:\n{calls}");
    }
    assert!(!machine.has_results());
}

#[test]
fn prairielearn_gets_the_grade() {
    let machine = Machine::prairielearn(Cargo::StandIn);
    machine.submit("norm.rs", "fn main() {}");
    machine.answers(0, Format::Prairielearn, &results::graded());
    let Ended { code, said } = machine.run();
    assert_eq!(code, 0, "{said}");
    let results: PrairieLearnResults = machine.results();
    assert_eq!((results.gradable, results.score, results.tests.len()), (true, Some(0.5), 2));
    assert!(machine.called().contains("/tests/settings.toml"), "{}", machine.called());
    assert_eq!(machine.handed_in(), ["student/", "student/norm.rs"]);
}

#[test]
fn prairielearn_is_told_that_an_answer_is_not_in_form() {
    // PrairieLearn makes no folder where there is no file.
    let machine = Machine::prairielearn(Cargo::StandIn);
    machine.answers(1, Format::Prairielearn, &results::nothing_to_take());
    assert_eq!(machine.run().code, 0);
    let results: PrairieLearnResults = machine.results();
    assert_eq!((results.gradable, results.score, results.format_errors.len()), (false, None, 1));
}

#[test]
fn prairielearn_sees_a_failed_job_where_a_machine_failed() {
    for code in [1, 101, 2] {
        let machine = Machine::prairielearn(Cargo::StandIn);
        machine.submit("norm.rs", "fn main() {}");
        machine.leave("results/results.json", "{\"score\": 1}");
        machine.answers(code, Format::Prairielearn, &results::failed_machine());
        assert_ne!(machine.run().code, 0);
        assert!(!machine.has_results());
    }
}

#[test]
fn prairielearn_builds_all_into_its_image() {
    let machine = Machine::prairielearn(Cargo::StandIn);
    let package = machine.package();
    let dockerfile = fs::read_to_string(package.join("image/Dockerfile")).unwrap();
    let pinned = fs::read_to_string(layout::course().join("rust-toolchain.toml")).unwrap();
    let version = dockerfile
        .lines()
        .find_map(|line| line.strip_prefix("FROM rust:")?.strip_suffix("-slim-trixie"));
    assert!(pinned.contains(&format!("\"{}\"", version.unwrap())), "{dockerfile}");
    // What it copies is there.
    for line in
        dockerfile.lines().filter(|line| line.starts_with("COPY") || line.starts_with("ADD"))
    {
        let names: Vec<&str> = line.split(' ').skip(1).collect();
        for name in &names[..names.len() - 1] {
            assert!(package.join("image").join(name).is_file(), "{name}");
        }
    }
    machine.answers(0, Format::Prairielearn, &results::graded());
    let Ended { code, said } = machine.set_up();
    assert_eq!(code, 0, "{said}");
    let info = fs::read_to_string(package.join("question/info.json")).unwrap();
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["externalGradingOptions"]["enableNetworking"], false);
    let entrypoint = info["externalGradingOptions"]["entrypoint"].as_str().unwrap();
    assert!(dockerfile.contains(&format!("[\"{entrypoint}\"]")), "{entrypoint}");
    assert!(!info.to_string().contains("{{") && !dockerfile.contains("{{"));
    let question = fs::read_to_string(package.join("question/question.html")).unwrap();
    assert!(question.contains("\"embedding.rs, norm.rs, "), "{question}");
}

#[test]
fn a_package_holds_no_solution_and_no_secret() {
    for machine in [Machine::gradescope(Cargo::StandIn), Machine::prairielearn(Cargo::StandIn)] {
        let names = machine.course_files();
        for component in COMPONENTS {
            let starter = format!("exercises/{}/starter.rs", component.slug);
            assert!(names.contains(&starter), "{starter}");
        }
        assert!(names.iter().any(|name| name == "Cargo.lock"));
        for name in names {
            let solution = name.starts_with("exercises/") && name.ends_with("/solution.rs");
            assert!(
                !solution && !name.starts_with("target/") && !name.starts_with(".git/"),
                "{name}"
            );
        }
    }
}

#[test]
fn the_settings_of_a_package_are_settings() {
    for machine in [Machine::gradescope(Cargo::StandIn), Machine::prairielearn(Cargo::StandIn)] {
        let settings = grader::settings::Settings::read(&machine.settings()).unwrap();
        // The system's own limit is 600 seconds, and it gives 0 points or no grade.
        assert!(settings.limits.build_seconds + settings.limits.submission_seconds <= 540);
    }
    let own = "tasks = ['norm']\n";
    let folder = tempfile::tempdir().unwrap();
    grader::package::write(Package::Github, &layout::course(), Some(own), folder.path()).unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("settings.toml")).unwrap(), own);
    assert!(folder.path().join(".github/workflows/grade.yml").is_file());
}

#[test]
fn the_same_course_is_the_same_package() {
    for which in [Package::Gradescope, Package::Prairielearn] {
        let bytes = [(), ()].map(|()| {
            let folder = tempfile::tempdir().unwrap();
            grader::package::write(which, &layout::course(), None, folder.path()).unwrap();
            let archive =
                ["gradescope.zip", "image/course.tar.gz"].map(|name| folder.path().join(name));
            fs::read(archive.iter().find(|path| path.is_file()).unwrap()).unwrap()
        });
        assert!(bytes[0] == bytes[1], "{which:?}");
    }
}

/// `git` in a folder.
fn git(folder: &Path, arguments: &[&str]) {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

/// Bash on Linux takes a carriage return at the end of a line for a part of the line.
#[test]
fn what_is_packed_has_line_feeds_whatever_the_checkout_has() {
    let checkout = tempfile::tempdir().unwrap();
    let texts = ["Cargo.lock", "rust-toolchain.toml", ".cargo/config.toml", "tests/mutants.sh"];
    for name in texts {
        let text = fs::read_to_string(layout::course().join(name)).unwrap().replace('\n', "\r\n");
        layout::write(&checkout.path().join(name), text.as_bytes(), 0o644);
    }
    let binary = b"\xff\r\n\0";
    layout::write(&checkout.path().join("tests/binary"), binary, 0o644);
    git(checkout.path(), &["init", "--quiet"]);
    git(checkout.path(), &["-c", "core.autocrlf=false", "add", "."]);
    let settings = Some("tasks = ['norm']\r\n");
    for which in [Package::Gradescope, Package::Prairielearn, Package::Github] {
        let files = layout::unpacked(which, checkout.path(), settings);
        for (name, content) in &files {
            match name.ends_with("tests/binary") {
                true => assert_eq!(content, binary, "{name}"),
                false => assert!(!content.contains(&b'\r'), "{which:?}: {name}"),
            }
        }
        let packed = |name: &str| files.iter().any(|(packed, _)| packed.ends_with(name));
        let of_course = [&texts[..], &["tests/binary"]].concat();
        assert!(packed("settings.toml"));
        assert!(which == Package::Github || of_course.iter().all(|name| packed(name)));
    }
}

#[test]
fn a_clone_has_line_feeds_whatever_git_is_set_to() {
    let folder = tempfile::tempdir().unwrap();
    let course = layout::course();
    let windows = ["-c", "core.autocrlf=true", "-c", "core.eol=crlf"];
    let clone = [&["clone", "--quiet", "--shared"][..], &windows, &[course.to_str().unwrap(), "."]];
    git(folder.path(), &clone.concat());
    let files = layout::below(folder.path());
    assert!(files.iter().any(|file| file.ends_with("run_autograder")));
    for file in files.iter().filter(|file| !file.starts_with(folder.path().join(".git"))) {
        let content = fs::read(file).unwrap();
        let is_text = std::str::from_utf8(&content).is_ok();
        assert!(!is_text || !content.contains(&b'\r'), "{}", file.display());
    }
}

/// Builds the course in each package, and grades two submissions in it.
#[test]
#[ignore = "builds the whole course twice: nine minutes on two cores"]
fn packages_grade() {
    let solution = fs::read_to_string(layout::course().join("exercises/norm/solution.rs")).unwrap();
    let machine = Machine::gradescope(Cargo::Real);
    let Ended { code, said } = machine.set_up();
    assert!(code == 0 && !said.contains("WARNING"), "{said}");
    machine.submit("a/b/norm.rs", &solution);
    let Ended { code, said } = machine.run();
    assert_eq!(code, 0, "{said}");
    let results: GradescopeResults = machine.results();
    let passed = |name: &str| {
        results.tests.iter().any(|test| test.name.contains(name) && test.status == "passed")
    };
    assert!(passed("norm/forward") && !passed("rope/rotate"), "{said}");

    let machine = Machine::prairielearn(Cargo::Real);
    let Ended { code, said } = machine.set_up();
    assert!(code == 0 && !said.contains("WARNING"), "{said}");
    machine.submit("notes.txt", "no file of the course");
    assert_eq!(machine.run().code, 0);
    assert!(!machine.results::<PrairieLearnResults>().gradable);
    machine.submit("norm.rs", &solution);
    assert_eq!(machine.run().code, 0);
    let results: PrairieLearnResults = machine.results();
    assert!(results.gradable && results.score.is_some_and(|score| 0.0 < score && score < 1.0));
}
