//! Files of a class that are similar, as a section of its page and as a table.

use super::page::{NAME, SENTENCE, count, line, name};
use super::table::csv_of_names;
use crate::similar::{Alike, Comparison, How, SOLUTION};
use crate::systems::called;
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Pairs that the page shows. `alike.csv` has all.
const SHOWN: usize = 40;

/// The pairs of submissions, each with its files: those first that have most in common.
fn by_pair(alike: &[Alike]) -> Vec<(&[String; 2], Vec<&Alike>)> {
    let mut pairs: BTreeMap<&[String; 2], Vec<&Alike>> = BTreeMap::new();
    for one in alike {
        pairs.entry(&one.submissions).or_default().push(one);
    }
    let mut pairs: Vec<_> = pairs.into_iter().collect();
    let common = |files: &[&Alike]| files.iter().map(|one| one.common).sum::<usize>();
    pairs.sort_by_key(|(_, files)| std::cmp::Reverse(common(files)));
    pairs
}

/// The section of the class's page. It is empty if there was nothing to compare.
pub fn section(comparison: &Comparison) -> Markup {
    let pairs = by_pair(&comparison.alike);
    html! {
        @if comparison.compared > 1 || !pairs.is_empty() {
            h2 id="alike" { "Files that are alike" }
            @if pairs.is_empty() {
                p.soft { "None, among " (count(comparison.compared, "submission")) "." }
            } @else {
                p {
                    "A hint for a person, and no verdict: people who learned together, or who both followed a hint, write alike too. \
                     Read both files, and let both explain theirs. Comments, spaces and chosen names are not compared, nor is what \
                     the empty tasks or much of the class have."
                }
                div.scroll {
                    table {
                        thead { tr {
                            th scope="col" { "Submission" }
                            th scope="col" { "And" }
                            th scope="col" { "Files, with the share that is in both" }
                        } }
                        tbody {
                            @for ([one, other], files) in pairs.iter().take(SHOWN) {
                                tr {
                                    th.who scope="row" { (name(&called(one))) }
                                    td.who { @if other == SOLUTION { (SOLUTION) } @else { (name(&called(other))) } }
                                    td { (line(&in_words(files), SENTENCE)) }
                                }
                            }
                        }
                    }
                }
                @if pairs.len() > SHOWN {
                    p.soft { "And " (count(pairs.len() - SHOWN, "more pair")) ": see alike.csv." }
                }
            }
            @if !comparison.not_compared.is_empty() {
                p.soft {
                    "Not compared, since the result is of an earlier version or came without its prints.json: "
                    (line(&comparison.not_compared.join(", "), NAME))
                    ". Name these submissions in a call, and they are."
                }
            }
        }
    }
}

/// The files of a pair: equal ones together.
fn in_words(files: &[&Alike]) -> String {
    let of = |how: How| files.iter().filter(move |one| one.how == how);
    let names = |how: How| of(how).map(|one| one.file.as_str()).collect::<Vec<_>>().join(", ");
    let mut words = Vec::new();
    for (how, said) in
        [(How::Equal, "equal"), (How::Renamed, "equal except for names and comments")]
    {
        if of(how).next().is_some() {
            words.push(format!("{said}: {}", names(how)));
        }
    }
    let near = of(How::Near).map(|one| format!("{} {} %", one.file, percent(one)));
    words.extend(near);
    words.join("; ")
}

fn percent(one: &Alike) -> usize {
    (100.0 * one.share).floor() as usize
}

/// `alike.csv`: a row for each file of each pair.
pub fn table(comparison: &Comparison) -> String {
    let head = ["submission", "other", "file", "how", "percent", "fingerprints_in_common"];
    let mut rows = vec![head.map(str::to_string).to_vec()];
    for (_, files) in by_pair(&comparison.alike) {
        for one in files {
            let how = match one.how {
                How::Equal => "equal",
                How::Renamed => "equal except for names and comments",
                How::Near => "near",
            };
            let [a, b] = &one.submissions;
            let numbers = [percent(one).to_string(), one.common.to_string()];
            rows.push(
                [&[a.clone(), b.clone(), one.file.clone(), how.to_string()][..], &numbers].concat(),
            );
        }
    }
    csv_of_names(rows)
}

#[cfg(test)]
mod tests {
    use super::super::made_up::HOSTILE;
    use super::*;

    fn alike(one: &str, other: &str, file: &str, how: How, share: f64) -> Alike {
        let submissions = [one.to_string(), other.to_string()];
        Alike { submissions, file: file.to_string(), how, share, common: 100 }
    }

    fn some() -> Comparison {
        let alike = vec![
            alike("ann", "bob", "loss.rs", How::Near, 0.799),
            alike("ann", SOLUTION, "norm.rs", How::Renamed, 1.0),
            alike("ann", "bob", "norm.rs", How::Equal, 1.0),
            alike("ann", "bob", "rope.rs", How::Equal, 1.0),
        ];
        Comparison { alike, compared: 3, not_compared: vec!["cleo".to_string()] }
    }

    #[test]
    fn pairs_are_listed_as_a_hint() {
        let page = section(&some()).into_string();
        for words in [
            "no verdict",
            "equal: norm.rs, rope.rs; loss.rs 79 %",
            "equal except for names and comments: norm.rs",
            "the course&#39;s own solution",
            "cleo",
        ] {
            assert!(page.replace('\'', "&#39;").contains(words), "{words}: {page}");
        }
        // The pair with most in common comes first.
        assert!(page.find("79 %") < page.find("except for names"), "{page}");
        let none = Comparison { compared: 3, ..Comparison::default() };
        assert!(section(&none).into_string().contains("None, among 3 submissions."));
        assert_eq!(section(&Comparison::default()).into_string(), "");
    }

    #[test]
    fn the_table_has_all_and_computes_nothing() {
        let mut comparison = some();
        comparison.alike.push(alike(HOSTILE, "=1+1", "norm.rs", How::Near, 0.8));
        let table = table(&comparison);
        assert!(table.starts_with("\u{feff}submission,other,file,how,percent,"), "{table}");
        assert!(table.contains("ann,bob,loss.rs,near,79,100\n"), "{table}");
        assert!(table.contains("'=1+1") && !table.contains('\0'), "{table}");
        assert_eq!(table.lines().count(), 6);
    }

    #[test]
    fn a_long_list_ends() {
        let alike =
            (0..100).map(|nth| alike("a", &format!("b{nth:03}"), "norm.rs", How::Equal, 1.0));
        let comparison =
            Comparison { alike: alike.collect(), compared: 101, ..Comparison::default() };
        let page = section(&comparison).into_string();
        assert!(page.contains("And 60 more pairs: see alike.csv."), "{page}");
        assert_eq!(table(&comparison).lines().count(), 101);
    }
}
