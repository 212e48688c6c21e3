//! The table at the end of a run.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Result;
use std::path::{Path, PathBuf};

/// The implementations, in the order of their columns.
const IMPLEMENTATIONS: [&str; 3] = ["fused", "loop", "composed"];

/// Seconds of one call: the median, the shortest and the longest.
struct Times {
    median: f64,
    range: [f64; 2],
}

/// Reads this run's measurements back and prints them as multiples of the copy: the median, and from where to
/// where it goes. The copy is the median of all copies of as many numbers in this run, so that two lines of one size have
/// the same unit.
pub fn print(folder: &Path, memory: &str) -> Result<()> {
    println!("\nTimes in copies of the output's bytes by all threads; {memory}.");
    println!("Behind each median: the shortest and the longest time of ten.");
    let mut groups = sorted(folder)?;
    groups.retain(|group| group.join("copy").is_dir());
    let copies = copies(&groups)?;
    for group in groups {
        println!("\n{}", name(&group));
        print!("{:<40}{:>9}{:>9}", "", "copy ms", "ns each");
        IMPLEMENTATIONS.iter().for_each(|implementation| print!("{implementation:>26}"));
        println!();
        let mut sizes = sorted(&group.join("copy"))?;
        sizes.sort_by_key(|size| measured(size).map(|times| (times.median * 1e9) as u64));
        for size in sizes {
            let Some(copy) = elements(&size).and_then(|n| copies.get(&(n as u64))) else {
                continue;
            };
            let of = |implementation: &str| measured(&group.join(implementation).join(name(&size)));
            let each = of("fused").zip(elements(&size)).map(|(it, n)| it.median * 1e9 / n);
            let each = each.map_or(String::new(), |each| format!("{each:.2}"));
            print!("{:<40}{:>9.3}{each:>9}", title(&size), copy * 1e3);
            for implementation in IMPLEMENTATIONS {
                let cell = of(implementation).map_or("not run".to_string(), |times| {
                    let [least, most] = times.range.map(|time| time / copy);
                    format!("{:.1} ({least:.1} to {most:.1})", times.median / copy)
                });
                print!("{cell:>26}");
            }
            println!();
        }
    }
    Ok(())
}

/// For each number of elements, the median of the copies' medians, in seconds.
fn copies(groups: &[PathBuf]) -> Result<BTreeMap<u64, f64>> {
    let mut all: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for group in groups {
        for size in sorted(&group.join("copy"))? {
            if let (Some(elements), Some(copy)) = (elements(&size), measured(&size)) {
                all.entry(elements as u64).or_default().push(copy.median);
            }
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    Ok(all.into_iter().map(|(elements, times)| (elements, median(times))).collect())
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths: Vec<_> = folder.read_dir()?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn json(path: &Path) -> Option<Value> {
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
}

/// The times that criterion has noted.
fn measured(implementation: &Path) -> Option<Times> {
    let sample = json(&implementation.join("new/sample.json"))?;
    let list = |name: &str| -> Option<Vec<f64>> {
        sample[name].as_array()?.iter().map(Value::as_f64).collect()
    };
    let mut times: Vec<f64> =
        list("times")?.iter().zip(list("iters")?).map(|(time, calls)| time / calls / 1e9).collect();
    times.sort_by(f64::total_cmp);
    let range = [*times.first()?, *times.last()?];
    Some(Times { median: times[times.len() / 2], range })
}

/// The size in its own words. In the folder's name, some signs are replaced.
fn title(size: &Path) -> String {
    let about = json(&size.join("new/benchmark.json"));
    let words = about.and_then(|about| Some(about["value_str"].as_str()?.to_string()));
    words.unwrap_or_else(|| name(size))
}

/// How many numbers the output has.
fn elements(size: &Path) -> Option<f64> {
    json(&size.join("new/benchmark.json"))?["throughput"]["Elements"].as_f64()
}
