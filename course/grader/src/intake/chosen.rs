//! Which of the files that were found are meant.

use super::{Finds, Found, NotTaken, Taken, shown};
use crate::record::LeftOut;
use std::collections::{BTreeMap, BTreeSet};

/// The most names that are listed as left out for one reason. A whole checkout has hundreds of other files.
const LISTED: usize = 20;
/// The most names in the reason why nothing is taken.
const NAMED: usize = 6;

type Files = BTreeMap<&'static str, String>;

impl Finds {
    /// The files that are meant: those of one place. `looked` says whether all of the submission was gone through.
    pub(super) fn chosen(mut self, looked: Result<(), String>) -> Result<Taken, NotTaken> {
        let files =
            looked.and_then(|()| self.of_one_place()).and_then(|files| self.complete(files));
        let left_out = listed(self.left_out);
        match files {
            Ok(files) => Ok(Taken { files, left_out }),
            Err(why) => Err(NotTaken { why, found: left_out }),
        }
    }

    /// The files, if none is missing that may be there by another name: its tasks would have 0 points.
    fn complete(&self, files: Files) -> Result<Files, String> {
        match self.near.iter().find(|(slug, _)| !files.contains_key(slug)) {
            None => Ok(files),
            Some((slug, place)) => Err(format!(
                "there is no {slug}.rs, and {place} may be it by another name, so it is not clear what is handed in. Hand it in as \
                 {slug}.rs, or without that file"
            )),
        }
    }

    /// The files of the submission itself, or of the only archive in it that has any.
    fn of_one_place(&mut self) -> Result<Files, String> {
        let found = std::mem::take(&mut self.found);
        let mut places: BTreeMap<String, Vec<Found>> = BTreeMap::new();
        for one in found {
            places.entry(one.archive.clone()).or_default().push(one);
        }
        for (name, why) in &self.unread {
            self.left_out.push(LeftOut { name: name.clone(), why: why.clone() });
        }
        if let Some((name, why)) = self.unread.first() {
            if let Some((place, of_it)) = places.iter().next() {
                let there = named(place, of_it);
                return Err(format!(
                    "{name}: {why}. It may hold other files than {there}, so it is not clear which ones are meant"
                ));
            }
            return Err(format!("{name}: {why}"));
        }
        let mut all: Vec<(String, Result<Files, String>)> = Vec::new();
        for (place, found) in places {
            let words = named(&place, &found);
            all.push((words, self.of_one_folder(found)));
        }
        let Some((first, files)) = all.first() else { return Err(self.nothing()) };
        // The same files twice, such as an archive and what was unpacked of it, are no question.
        let other = all[1..].iter().find(|(_, of)| of.is_err() || of != files);
        if let Some((other, _)) = other {
            return Err(format!(
                "files of the exercises are in several places of it, they are not the same, and it is not clear which ones \
                 are meant: {first}; {other}. Hand in one archive of exercises/src, and nothing beside it"
            ));
        }
        all.swap_remove(0).1
    }

    /// The files of one folder: of `exercises/src`, or of the only folder that has any.
    fn of_one_folder(&mut self, found: Vec<Found>) -> Result<Files, String> {
        let own = |folder: &str| folder == "exercises/src" || folder.ends_with("/exercises/src");
        let mut folders: Vec<String> = found.iter().map(|found| found.folder.clone()).collect();
        folders.sort();
        folders.dedup();
        if folders.iter().any(|folder| own(folder)) {
            folders.retain(|folder| own(folder));
            if let Some(other) = elsewhere(&found, own) {
                return Err(format!(
                    "{other} is another file of the exercises than those in exercises/src, and it is not clear which one is meant. \
                     Hand in exercises/src alone"
                ));
            }
        }
        let folder = match &folders[..] {
            [] => return Err(self.nothing()),
            [one] => one.clone(),
            several => {
                let several = several.iter().map(|folder| match folder.as_str() {
                    "" => "beside its folders".to_string(),
                    folder => shown(folder),
                });
                return Err(format!(
                    "learner's files are in several of its folders, and it is not clear which ones are meant: {}. Hand in \
                     exercises/src alone",
                    several.collect::<Vec<_>>().join(", ")
                ));
            }
        };
        let mut files = Files::new();
        let (mut twice, mut unread) = (None, None);
        let (mut rightly_named, mut nearly_named) = (BTreeSet::new(), Vec::new());
        for Found { archive, folder: of, slug, file, content } in found {
            self.within = archive;
            let name = if of.is_empty() { file.clone() } else { format!("{of}/{file}") };
            if of != folder {
                self.leave(&name, "another folder has the learner's files");
                continue;
            }
            match content.and_then(|bytes| {
                String::from_utf8(bytes)
                    .map_err(|_| "it is not UTF-8: save it in this encoding".to_string())
            }) {
                Ok(text) => {
                    match files.get(slug) {
                        None => _ = files.insert(slug, text),
                        Some(other) if *other == text => self.leave(&name, "it is there twice"),
                        Some(_) => twice = Some(slug),
                    }
                    match file == format!("{slug}.rs") {
                        true => _ = rightly_named.insert(slug),
                        false => nearly_named.push((slug, name, file)),
                    }
                }
                Err(why) => {
                    self.leave(&name, &why);
                    unread = Some((slug, name, why));
                }
            }
        }
        twice = twice
            .or(unread.as_ref().map(|(slug, ..)| *slug).filter(|slug| files.contains_key(slug)));
        if let Some(slug) = twice {
            return Err(format!(
                "{slug}.rs is there twice (capitals don't count), the two are not the same, and it is not clear which one is meant. Hand in one"
            ));
        }
        for (slug, name, file) in nearly_named {
            if !rightly_named.contains(slug) {
                files.remove(slug);
                self.leave_unwanted(&name, &file);
            }
        }
        self.within.clear();
        // Its tasks would have 0 points.
        if let Some((_, name, why)) = unread.filter(|_| !files.is_empty()) {
            return Err(format!("{name} can't be taken: {why}"));
        }
        if files.is_empty() { Err(self.nothing()) } else { Ok(files) }
    }

    /// Nothing is there: what is, instead.
    fn nothing(&self) -> String {
        let what = "no file of the exercises, such as norm.rs or rope.rs, can be taken from it";
        if self.left_out.is_empty() {
            return format!("{what}: it holds no file at all");
        }
        // An entry with an unusual reason says more than the many others.
        let mut left: Vec<&LeftOut> = self.left_out.iter().collect();
        left.sort_by_key(|left| left.why == super::OTHER);
        let said = left.iter().take(NAMED).map(|left| format!("{} ({})", left.name, left.why));
        let more = left.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        format!(
            "{what}. It holds {}{more}. Hand in the files of exercises/src, or a .zip of them",
            said.collect::<Vec<_>>().join(", ")
        )
    }
}

/// A learner's file outside of `exercises/src`, which has none like it. What `cargo course reset` has saved is none that is
/// meant, and neither is a file of the course that has the same name.
fn elsewhere(found: &[Found], own: impl Fn(&str) -> bool) -> Option<String> {
    let is_learners = |one: &Found| {
        let mark = format!("// task {}/", one.slug);
        let text = one.content.as_ref().map(|bytes| String::from_utf8_lossy(bytes));
        !one.folder.ends_with("exercises/backups") && text.is_ok_and(|text| text.contains(&mark))
    };
    let is_there = |one: &Found| {
        found
            .iter()
            .any(|mine| own(&mine.folder) && mine.slug == one.slug && mine.content == one.content)
    };
    let other = found.iter().find(|one| !own(&one.folder) && is_learners(one) && !is_there(one))?;
    let folder = if other.folder.is_empty() { String::new() } else { format!("{}/", other.folder) };
    Some(shown(&format!("{folder}{}.rs", other.slug)))
}

/// A place, by its archive or by its files.
fn named(archive: &str, found: &[Found]) -> String {
    let files = found.iter().take(NAMED).map(|found| format!("{}.rs", found.slug));
    let mut files: Vec<String> = files.collect();
    files.dedup();
    let files = files.join(", ") + if found.len() > NAMED { ", .." } else { "" };
    match archive {
        "" => files,
        archive => format!("{archive} (with {files})"),
    }
}

/// Those of each reason, if they are few; else the first, and how many more.
fn listed(all: Vec<LeftOut>) -> Vec<LeftOut> {
    let mut by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for LeftOut { name, why } in all {
        by_reason.entry(why).or_default().push(name);
    }
    let mut left_out = Vec::new();
    for (why, mut names) in by_reason {
        names.sort();
        let more = names.len().saturating_sub(LISTED);
        names.truncate(LISTED);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        left_out.extend(names.into_iter().map(|name| LeftOut { name, why: why.clone() }));
    }
    left_out
}
