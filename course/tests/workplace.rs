//! What tools read of this repository: assistants, editors, containers and forges. Each command in it is one that the
//! course understands, and each file that it names is there.

use clap::Parser;
use clap::error::ErrorKind;
use contract::registry::{component, tasks_called};
use course::arguments::{Arguments, CheckArguments, Command, DiffArguments, HintArguments};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new("..").to_path_buf()
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The files in some folders, named from the root.
fn files(folders: &[&str]) -> Vec<String> {
    let of = |folder: &&str| {
        let entries =
            root().join(folder).read_dir().unwrap_or_else(|error| panic!("{folder}: {error}"));
        let name = |entry: std::fs::DirEntry| entry.file_name().into_string().unwrap();
        entries.map(|entry| format!("{folder}/{}", name(entry.unwrap()))).collect::<Vec<_>>()
    };
    folders.iter().flat_map(of).collect()
}

/// JSON whose comments are on separate lines.
fn json(name: &str) -> Value {
    let code = |line: &&str| !line.trim_start().starts_with("//");
    let text: Vec<String> = read(name).lines().filter(code).map(String::from).collect();
    serde_json::from_str(&text.join("\n")).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What the course makes of the words after `cargo`. Editors put a file and a line into some.
fn understood(words: &[&str]) -> Result<(), String> {
    let filled = |word: &&str| {
        let word = word.replace("${fileBasename}", "norm.rs").replace("${lineNumber}", "1");
        word.replace("${input:level}", "2").trim_matches('"').to_string()
    };
    let arguments = Arguments::try_parse_from(words.iter().map(filled));
    // Help; and a command that is only named.
    let told = |error: &clap::Error| {
        let named = error.kind() == ErrorKind::MissingRequiredArgument && words.len() == 2;
        !error.use_stderr() || named
    };
    let command = match arguments {
        Ok(arguments) => arguments.command,
        Err(error) if told(&error) => None,
        Err(error) => return Err(error.to_string()),
    };
    let tasks = match command {
        Some(Command::Hint(HintArguments { task, .. })) => vec![task],
        Some(
            Command::Check(CheckArguments { tasks, .. }) | Command::Diff(DiffArguments { tasks }),
        ) => tasks,
        _ => Vec::new(),
    };
    // A line of a file is looked up in the learner's own.
    let named = |task: &&String| match task.split_once(".rs") {
        Some((slug, _)) => component(slug).is_some(),
        None => !tasks_called(task).is_empty(),
    };
    match tasks.iter().find(|task| !named(task)) {
        Some(task) => Err(format!("nothing is called {task}")),
        None => Ok(()),
    }
}

/// The commands of the course in a text, each to its end.
fn commands(text: &str) -> Vec<&str> {
    let end =
        |rest: &str| rest.find(['`', '\n', '&', '|', ';', ',', '#', '\'']).unwrap_or(rest.len());
    text.match_indices("cargo course").map(|(at, _)| &text[at..][..end(&text[at..])]).collect()
}

#[test]
fn every_command_is_one() {
    let mut texts = files(&[".github/workflows", ".devcontainer"]);
    texts.push("AGENTS.md".to_string());
    let mut seen = 0;
    for name in texts {
        for command in commands(&read(&name)) {
            let words: Vec<&str> =
                command.trim_end_matches(['"', '.', ':']).split_whitespace().skip(1).collect();
            understood(&words).unwrap_or_else(|error| panic!("{name}: `{command}`: {error}"));
            seen += 1;
        }
    }
    assert!(seen >= 10, "{seen}");
    let tasks = json(".vscode/tasks.json");
    let inputs: Vec<&str> = tasks["inputs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|input| input["id"].as_str().unwrap())
        .collect();
    assert_eq!(inputs, ["level"], "`understood` fills these in");
    for task in tasks["tasks"].as_array().unwrap() {
        assert_eq!(
            (&task["type"], &task["command"]),
            (&"process".into(), &"cargo".into()),
            "{task:#}"
        );
        let words: Vec<&str> =
            task["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        understood(&words).unwrap_or_else(|error| panic!("{task:#}: {error}"));
    }
    // It can fail.
    for wrong in [
        "course chek",
        "course hint norm/forward 4",
        "course check norm/forwards",
        "course read --biuld x",
    ] {
        assert!(understood(&wrong.split(' ').collect::<Vec<_>>()).is_err(), "{wrong}");
    }
}

#[test]
fn every_file_is_there() {
    let mut seen = 0;
    let folders = [".github/workflows", ".devcontainer", ".vscode"];
    for name in files(&folders).into_iter().chain(["AGENTS.md".to_string()]) {
        let text = read(&name);
        for word in text.split(|c: char| c.is_whitespace() || "`\"'(),;".contains(c)) {
            let word = word.trim_end_matches(['.', ':']);
            let ours = [".ci/", ".devcontainer/", "book/", "course/", "exercises/"];
            let named = ours.iter().any(|folder| word.starts_with(folder)) || word.ends_with(".md");
            if named && !word.contains('*') {
                assert!(root().join(word).exists(), "{name} names {word}, which is not there");
                seen += 1;
            }
        }
    }
    assert!(seen > 15, "{seen}");
}

/// One text for all assistants.
#[test]
fn assistants_are_sent_to_one_page() {
    let pointers = [
        "CLAUDE.md",
        "GEMINI.md",
        ".aider.conf.yml",
        ".cursor/rules/agents.mdc",
        ".github/copilot-instructions.md",
    ];
    for name in pointers {
        let text = read(name);
        assert!(
            text.contains("AGENTS.md") && text.lines().count() <= 6,
            "{name} is more than a pointer:\n{text}"
        );
    }
}

/// rust-analyzer builds without the packages that need more than Rust, and apart from `cargo course`.
#[test]
fn editors_build_what_builds_everywhere() {
    let settings = json(".vscode/settings.json");
    let command = settings["rust-analyzer.cargo.buildScripts.overrideCommand"].as_array().unwrap();
    let words: Vec<&str> = command.iter().map(|word| word.as_str().unwrap()).collect();
    let after = |option: &str| {
        let pairs = words.windows(2).filter(|pair| pair[0] == option);
        pairs.map(|pair| pair[1]).collect::<Vec<_>>()
    };
    assert_eq!(after("--target-dir"), ["target/rust-analyzer"]);
    assert_eq!(settings["rust-analyzer.cargo.targetDir"], true, "which is that folder");
    let needs_mpi = |package: &&str| {
        read(&format!("{package}/Cargo.toml")).lines().any(|line| line.starts_with("mpi = "))
    };
    let packages = after("--package");
    assert!(packages.contains(&"exercises") && !words.contains(&"--workspace"), "{words:?}");
    assert!(!packages.iter().any(needs_mpi) && needs_mpi(&"ranks"), "{packages:?}");
    let recommended = &json(".vscode/extensions.json")["recommendations"];
    assert_eq!(
        recommended,
        &json(".devcontainer/devcontainer.json")["customizations"]["vscode"]["extensions"]
    );
}

/// What is published is what was built.
#[test]
fn the_book_is_published_from_where_it_is_built() {
    let text = read(".github/workflows/book.yml");
    let built =
        text.split("--build ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
    assert!(text.contains(&format!("path: {built}\n")), "{built}");
    assert!(read(".gitignore").contains(&format!("/{built}/")));
}
