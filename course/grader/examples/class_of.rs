//! Makes a class to try the grader with: `cargo run -p grader --example class_of -- 200 FOLDER`.
//!
//! Model solutions, correct code and bugs by people who had not seen the contract, work half done, files that do not compile,
//! attacks, and folders with nothing in them; in folders and in zips. The same for the same number.

use contract::graded_cases::Draw;
use contract::registry::COMPONENTS;
use contract::run::Run;
use learner::exercise::Workspace;
use learner::exercise::source::{Source, region, replaced};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Lines for a task's place.
#[derive(Deserialize)]
struct Case {
    task: String,
    code: String,
}

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

/// An attack that needs nothing but lines in places. Others are left out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "to deny other fields, these must be named")]
struct Attack {
    id: String,
    about: String,
    hopes: String,
    stopped_by: Vec<String>,
    tasks: Vec<String>,
    earns: Vec<String>,
    places: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Attacks {
    attack: Vec<toml::Value>,
}

/// All files with this ending, below a folder.
fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in folder.read_dir()? {
        let path = entry?.path();
        match path.is_dir() {
            true => found.extend(files(&path)?),
            false if path.extension().is_some_and(|ending| ending == "toml") => found.push(path),
            false => {}
        }
    }
    found.sort();
    Ok(found)
}

fn cases(folder: &Path) -> Result<Vec<Case>, Box<dyn Error>> {
    let mut all = Vec::new();
    for file in files(folder)? {
        all.extend(toml::from_str::<Cases>(&std::fs::read_to_string(file)?)?.case);
    }
    Ok(all)
}

/// What one student hands in, by component.
type Files = BTreeMap<&'static str, String>;

fn put(
    files: &mut Files,
    task: &str,
    code: &str,
    sources: &[Source],
) -> Result<(), Box<dyn Error>> {
    for (slug, text) in files {
        if task.split('/').next() != Some(slug) {
            continue;
        }
        let source = sources.iter().find(|source| source.slug == *slug);
        let right = source.and_then(|source| source.solution_region(task)).unwrap_or_default();
        let place = region(text, task)?;
        *text = replaced(text, &place, &format!("{}\n", code.replace("{right}", &right)));
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(count), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("say how many, and in which folder".into());
    };
    let count: usize = count.parse()?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let workspace = Workspace::find()?;
    let sources = Source::all(&workspace)?;
    let bugs = cases(&workspace.path("course/tests/unseen/bugs"))?;
    let variants = cases(&workspace.path("course/tests/unseen/variants"))?;
    let mut attacks: Vec<Attack> = Vec::new();
    for file in files(&workspace.path("tests/hostile"))? {
        let of_file: Attacks = toml::from_str(&std::fs::read_to_string(file)?)?;
        attacks.extend(of_file.attack.into_iter().filter_map(|attack| attack.try_into().ok()));
    }

    let mut draw = Draw::new(&Run::default(), count as u64);
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for nth in 0..count {
        let solution = |slug| {
            let source = sources.iter().find(|source| source.slug == slug);
            source.map(|source| source.solution.to_string()).unwrap_or_default()
        };
        let mut all: Files = COMPONENTS.iter().map(|one| (one.slug, solution(one.slug))).collect();
        let kind = match draw.below(100) {
            0..25 => "solutions",
            25..45 => {
                for _ in 0..4 {
                    let case = &variants[draw.below(variants.len())];
                    put(&mut all, &case.task, &case.code, &sources)?;
                }
                "correct code of others"
            }
            45..70 => {
                for _ in 0..3 {
                    let case = &bugs[draw.below(bugs.len())];
                    put(&mut all, &case.task, &case.code, &sources)?;
                }
                "bugs"
            }
            70..86 => {
                let done = draw.below(COMPONENTS.len());
                for source in &sources[done..] {
                    all.insert(source.slug, source.starter());
                }
                "half done"
            }
            86..91 => {
                let slug = COMPONENTS[draw.below(COMPONENTS.len())].slug;
                all.entry(slug).or_default().push_str("\nfn half( {\n");
                "do not compile"
            }
            91..98 => {
                for source in &sources {
                    all.insert(source.slug, source.starter());
                }
                let attack = &attacks[draw.below(attacks.len())];
                for (task, code) in &attack.places {
                    put(&mut all, task, code, &sources)?;
                }
                "attacks"
            }
            _ => {
                all.clear();
                "nothing"
            }
        };
        *kinds.entry(kind).or_default() += 1;
        // No two are the same, as no two people are.
        let texts = all.iter().map(|(slug, text)| (slug, format!("{text}// {nth}\n")));
        if nth % 2 == 0 {
            let files = folder.join(format!("student {nth:03}/exercises/src"));
            std::fs::create_dir_all(&files)?;
            for (slug, text) in texts {
                std::fs::write(files.join(format!("{slug}.rs")), text)?;
            }
        } else {
            let file = std::fs::File::create(folder.join(format!("student {nth:03}.zip")))?;
            let mut zip = zip::ZipWriter::new(file);
            for (slug, text) in texts {
                zip.start_file(
                    format!("exercises/src/{slug}.rs"),
                    zip::write::SimpleFileOptions::default(),
                )?;
                zip.write_all(text.as_bytes())?;
            }
            zip.finish()?;
        }
    }
    for (kind, count) in kinds {
        println!("{count:4} {kind}");
    }
    Ok(())
}
