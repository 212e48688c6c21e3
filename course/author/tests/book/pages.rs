//! The built site: every link leads somewhere, nothing is loaded from elsewhere, it stays small.

use author::book::build::build;
use contract::registry::COMPONENTS;
use scraper::{Html, Selector};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The workspace.
pub fn root() -> PathBuf {
    Path::new("../..").canonicalize().unwrap()
}

/// The site, built once for all tests.
pub fn site() -> &'static Site {
    static SITE: OnceLock<Site> = OnceLock::new();
    SITE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        build(&root(), folder.path()).unwrap_or_else(|error| panic!("{error}"));
        Site::read(folder)
    })
}

/// A built site.
pub struct Site {
    folder: tempfile::TempDir,
    /// The pages by the names of their files.
    pub pages: BTreeMap<String, Page>,
}

/// A page, as far as the tests look at it.
#[derive(Default)]
pub struct Page {
    /// Its source.
    pub html: String,
    /// All its ids.
    pub ids: BTreeSet<String>,
    /// Where its links lead.
    pub links: BTreeSet<String>,
    /// What a browser loads for it.
    pub loads: BTreeSet<String>,
    /// The pieces of code in it, each as a text.
    pub code: BTreeSet<String>,
}

impl Site {
    fn read(folder: tempfile::TempDir) -> Self {
        let mut pages = BTreeMap::new();
        for entry in folder.path().read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "html") {
                let name = path.file_name().unwrap().to_str().unwrap().to_string();
                pages.insert(name, Page::read(&std::fs::read_to_string(&path).unwrap()));
            }
        }
        Self { folder, pages }
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The chapters: no frames, and not the page that prints all.
    pub fn chapters(&self) -> impl Iterator<Item = (&String, &Page)> {
        let others = ["print.html", "toc.html", "404.html"];
        self.pages.iter().filter(move |(name, _)| !others.contains(&name.as_str()))
    }

    /// The files, with their sizes.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let (mut files, mut folders) = (Vec::new(), vec![self.folder().to_path_buf()]);
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir().unwrap() {
                let entry = entry.unwrap();
                match entry.metadata().unwrap() {
                    meta if meta.is_dir() => folders.push(entry.path()),
                    meta => files.push((entry.path(), meta.len())),
                }
            }
        }
        files
    }
}

impl Page {
    fn read(html: &str) -> Self {
        let document = Html::parse_document(html);
        let attributes = |selector: &str, name: &str| -> BTreeSet<String> {
            let selector = Selector::parse(selector).unwrap();
            let values = document.select(&selector).filter_map(|found| found.attr(name));
            values.map(str::to_string).collect()
        };
        let mut loads = attributes("[src]", "src");
        loads.extend(attributes("link[href]", "href"));
        let code = Selector::parse("code").unwrap();
        Self {
            html: html.to_string(),
            ids: attributes("[id]", "id"),
            links: attributes("a[href]", "href"),
            loads,
            code: document.select(&code).map(|code| code.text().collect()).collect(),
        }
    }
}

fn outside(address: &str) -> bool {
    address.contains("://") || address.starts_with("//")
}

/// The page and the id that a link leads to.
fn target<'l>(page: &'l str, link: &'l str) -> (&'l str, Option<&'l str>) {
    let (file, id) = link.split_once('#').map_or((link, None), |(file, id)| (file, Some(id)));
    let file = file.split('?').next().unwrap_or_default().trim_start_matches("./");
    (if file.is_empty() { page } else { file }, id.filter(|id| !id.is_empty()))
}

/// A lecturer puts the site on any server, or hands it out.
#[test]
fn the_site_is_small() {
    fn size(folder: &std::path::Path) -> u64 {
        let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap());
        let of = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
            true => size(&entry.path()),
            false => entry.metadata().unwrap().len(),
        };
        entries.map(of).sum()
    }
    let bytes = size(site().folder());
    assert!(bytes < 20_000_000, "{bytes}");
}

#[test]
fn every_link_leads_somewhere() {
    let site = site();
    let mut broken = Vec::new();
    for (name, page) in &site.pages {
        for link in page.links.iter().filter(|link| !outside(link)) {
            let (file, id) = target(name, link);
            let there = match (site.pages.get(file), id) {
                (Some(page), Some(id)) => page.ids.contains(id),
                (Some(_), None) => true,
                (None, _) => site.folder().join(file).is_file(),
            };
            if !there {
                broken.push(format!("{name}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn links_to_other_sites_are_safe() {
    for (name, page) in &site().pages {
        for link in page.links.iter().filter(|link| outside(link)) {
            assert!(link.starts_with("https://"), "{name}: {link}");
        }
    }
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let site = site();
    for (name, page) in &site.pages {
        for file in &page.loads {
            assert!(!outside(file), "{name} loads {file}");
            if !file.starts_with("data:") {
                assert!(site.folder().join(target(name, file).0).is_file(), "{name} loads {file}");
            }
        }
        assert!(!page.html.contains("play.rust-lang.org"), "{name} names a playground");
    }
    for (file, _) in site.files() {
        if file.extension().is_some_and(|extension| extension == "css") {
            let text = std::fs::read_to_string(&file).unwrap();
            for loaded in text.split("url(").skip(1).chain(text.split("@import").skip(1)) {
                let loaded = loaded.split([')', ';']).next().unwrap().trim_matches(['"', '\'']);
                let inside = loaded.starts_with("data:") || !outside(loaded);
                assert!(inside, "{} loads {loaded}", file.display());
            }
        }
    }
}

#[test]
fn a_scan_finds_what_is_loaded() {
    let page = Page::read(
        "<link rel=stylesheet href='https://cdn/x.css'><img src='//host/a.png'><a href='#x'>y</a>",
    );
    assert_eq!(page.loads.iter().filter(|file| outside(file)).count(), 2);
    assert_eq!(target("a.html", "#x"), ("a.html", Some("x")));
    assert_eq!(target("a.html", "b.html?q#x"), ("b.html", Some("x")));
}

/// Its pages, figures and notebook, with their part of the index, of the page that prints all, and of what is
/// no component's own.
const FOR_EACH_COMPONENT: u64 = 2_500_000;

#[test]
fn it_is_small() {
    let mut files = site().files();
    let bytes: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    let most = FOR_EACH_COMPONENT * COMPONENTS.len() as u64;
    files.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    files.truncate(5);
    assert!(bytes < most, "{bytes} bytes, and {most} are allowed. The largest: {files:#?}");
}
