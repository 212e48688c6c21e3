//! Makes a submission of an attack.

use super::corpus::{Attack, Base, Entry, HandedIn, Long};
use contract::registry::COMPONENTS;
use learner::exercise::Workspace;
use learner::exercise::source::{Source, region, replaced};
use std::ffi::OsString;
use std::io::{Cursor, Read, Seek, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The learner's files of an attack, by component.
fn files(workspace: &Workspace, attack: &Attack) -> Vec<(&'static str, String)> {
    let mut files = Vec::new();
    for component in COMPONENTS {
        let slug = component.slug;
        if attack.without.iter().any(|without| without == slug) {
            continue;
        }
        if let Some(whole) = attack.files.get(slug) {
            files.push((slug, whole.clone()));
            continue;
        }
        let source = Source::of(workspace, slug).unwrap();
        let mut text = match attack.base {
            Base::Starter => source.starter(),
            Base::Solution => source.solution.clone(),
        };
        for (task, code) in &attack.places {
            if task.split('/').next() != Some(slug) {
                continue;
            }
            let right = source
                .solution_region(task)
                .unwrap_or_else(|| panic!("{}: no place {task}", attack.id));
            let place = region(&text, task).unwrap();
            text = replaced(&text, &place, &format!("{}\n", code.replace("{right}", &right)));
        }
        if let Some(items) = attack.items.get(slug) {
            text.push('\n');
            text.push_str(items);
        }
        if let Some(Long { first, again, times, last }) = attack.long.get(slug) {
            text.push_str(&format!("\n{first}{}{last}", again.repeat(*times)));
        }
        files.push((slug, text));
    }
    files
}

/// What an entry is.
enum Thing {
    Bytes(Box<dyn Fn() -> Box<dyn Read>>),
    Folder,
    Symlink(String),
    Hardlink(String),
    Fifo,
    Device,
}

fn bytes(content: Vec<u8>) -> Thing {
    Thing::Bytes(Box::new(move || Box::new(Cursor::new(content.clone()))))
}

fn from_hex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Where an entry's content comes from.
struct Makes<'a> {
    workspace: &'a Workspace,
    attack: &'a Attack,
    /// Where right files lie that are no submission.
    outside: &'a Path,
}

/// Everything in a submission, in its order.
fn things(makes: &Makes) -> Vec<(OsString, Thing)> {
    let own = |(slug, text): (&str, String)| {
        (format!("exercises/src/{slug}.rs").into(), bytes(text.into_bytes()))
    };
    let files = files(makes.workspace, makes.attack).into_iter().map(own);
    files.chain(makes.entries(&makes.attack.entries)).collect()
}

impl Makes<'_> {
    /// Everything that these entries cover.
    fn entries(&self, entries: &[Entry]) -> Vec<(OsString, Thing)> {
        entries.iter().flat_map(|entry| self.entry(entry)).collect()
    }

    fn solution(&self, component: Option<&str>) -> Thing {
        let file = format!("exercises/{}/solution.rs", component.unwrap());
        bytes(self.workspace.read(&file).unwrap().into_bytes())
    }

    fn entry(&self, entry: &Entry) -> Vec<(OsString, Thing)> {
        let Entry { kind, path, path_hex, target, count, component, entries, .. } = entry;
        let name = match path_hex {
            Some(hex) => OsString::from_vec(from_hex(hex)),
            None => path.into(),
        };
        let target =
            || target.clone().unwrap().replace("{outside}", &self.outside.display().to_string());
        let thing = match kind.as_str() {
            "file" => file(entry),
            "solution" => self.solution(component.as_deref()),
            "folder" => Thing::Folder,
            "symlink" => Thing::Symlink(target()),
            "hardlink" => Thing::Hardlink(target()),
            "fifo" => Thing::Fifo,
            "device" => Thing::Device,
            "zip" => {
                let mut archive = Cursor::new(Vec::new());
                to_zip(&mut archive, self.entries(entries));
                bytes(archive.into_inner())
            }
            "tar.gz" => {
                let mut archive = Vec::new();
                to_tar(&mut archive, self.entries(entries));
                bytes(archive)
            }
            "many" => {
                let empty = |nth| (format!("{path}{nth}").into(), bytes(Vec::new()));
                return (0..count.unwrap()).map(empty).collect();
            }
            "deep" => {
                let folders = vec![path.rsplit('/').next().unwrap(); count.unwrap() - 1].join("/");
                let name = format!("{path}/{folders}/{}.rs", component.as_deref().unwrap());
                return vec![(name.into(), self.solution(component.as_deref()))];
            }
            "junk" => return Vec::new(),
            other => panic!("{}: no entry is of kind {other}", self.attack.id),
        };
        vec![(name, thing)]
    }
}

fn file(Entry { content, hex, zeros, .. }: &Entry) -> Thing {
    match (*zeros, hex) {
        (Some(zeros), _) => {
            Thing::Bytes(Box::new(move || Box::new(std::io::repeat(0).take(zeros))))
        }
        (None, Some(hex)) => bytes(from_hex(hex)),
        (None, None) => bytes(content.clone().unwrap().into_bytes()),
    }
}

/// Writes the submission of an attack into a folder, and names it.
pub fn make(workspace: &Workspace, attack: &Attack, class: &Path, outside: &Path) -> PathBuf {
    let name = attack.submission.as_deref().unwrap_or(&attack.id);
    let things = things(&Makes { workspace, attack, outside });
    let junk = attack.entries.iter().find(|entry| entry.kind == "junk");
    let path = match attack.handed_in {
        HandedIn::Folder => {
            let root = class.join(name);
            std::fs::create_dir(&root).unwrap();
            in_folder(&root, things);
            return root;
        }
        HandedIn::Zip => class.join(format!("{name}.zip")),
        HandedIn::TarGz => class.join(format!("{name}.tar.gz")),
    };
    match (junk, attack.handed_in) {
        (Some(junk), _) => std::fs::write(&path, from_hex(junk.hex.as_deref().unwrap())).unwrap(),
        (None, HandedIn::Zip) => to_zip(std::fs::File::create(&path).unwrap(), things),
        (None, _) => to_tar(std::fs::File::create(&path).unwrap(), things),
    }
    path
}

fn in_folder(root: &Path, things: Vec<(OsString, Thing)>) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    for (name, thing) in things {
        let path = root.join(name);
        // Thousands of folders in each other have no path that the system takes at once.
        if path.as_os_str().len() < 4000 {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        } else {
            deep(root, &path, thing);
            continue;
        }
        match thing {
            Thing::Bytes(content) => {
                let mut file = std::fs::File::create(&path).unwrap();
                std::io::copy(&mut content(), &mut file).unwrap();
            }
            Thing::Folder => std::fs::create_dir_all(&path).unwrap(),
            Thing::Symlink(target) => std::os::unix::fs::symlink(target, &path).unwrap(),
            Thing::Hardlink(target) => std::fs::hard_link(target, &path).unwrap(),
            Thing::Fifo => mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap(),
            Thing::Device => panic!("a device stands in an archive"),
        }
    }
}

/// A file below more folders than one path can name.
fn deep(root: &Path, path: &Path, thing: Thing) {
    use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
    let mut folder = open(root, OFlags::DIRECTORY, Mode::empty()).unwrap();
    let parts: Vec<_> = path.strip_prefix(root).unwrap().components().collect();
    let (file, folders) = parts.split_last().unwrap();
    for part in folders {
        let _ = mkdirat(&folder, part.as_os_str(), Mode::RWXU);
        folder = openat(&folder, part.as_os_str(), OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    let flags = OFlags::CREATE | OFlags::WRONLY;
    let file = openat(&folder, file.as_os_str(), flags, Mode::RUSR | Mode::WUSR).unwrap();
    let Thing::Bytes(content) = thing else { panic!("no file") };
    std::io::copy(&mut content(), &mut std::fs::File::from(file)).unwrap();
}

fn to_zip(archive: impl Write + Seek, things: Vec<(OsString, Thing)>) {
    use zip::write::SimpleFileOptions;
    let mut zip = zip::ZipWriter::new(archive);
    let options = SimpleFileOptions::default().large_file(true);
    for (name, thing) in things {
        let name = name.to_string_lossy().into_owned();
        match thing {
            Thing::Bytes(content) => {
                zip.start_file(name, options).unwrap();
                std::io::copy(&mut content(), &mut zip).unwrap();
            }
            Thing::Folder => zip.add_directory(name, options).unwrap(),
            Thing::Symlink(target) => zip.add_symlink(name, target, options).unwrap(),
            _ => panic!("a zip holds no such thing"),
        }
    }
    zip.finish().unwrap();
}

fn to_tar(archive: impl Write, things: Vec<(OsString, Thing)>) {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tar::{Builder, EntryType, Header};
    let mut gz = GzEncoder::new(archive, Compression::fast());
    let mut tar = Builder::new(&mut gz);
    for (name, thing) in things {
        let mut header = Header::new_gnu();
        // Bytes, and not a path: the library would refuse those that lead elsewhere.
        let name = name.into_vec();
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(&name);
        header.set_mode(0o644);
        let mut content: Box<dyn Read> = Box::new(std::io::empty());
        let link = |header: &mut Header, kind, target: String| {
            header.set_entry_type(kind);
            header.as_gnu_mut().unwrap().linkname[..target.len()]
                .copy_from_slice(target.as_bytes());
        };
        let mut size = 0;
        match thing {
            Thing::Bytes(of) => {
                header.set_entry_type(EntryType::Regular);
                size = std::io::copy(&mut of(), &mut std::io::sink()).unwrap();
                content = of();
            }
            Thing::Folder => header.set_entry_type(EntryType::Directory),
            Thing::Symlink(target) => link(&mut header, EntryType::Symlink, target),
            Thing::Hardlink(target) => link(&mut header, EntryType::Link, target),
            Thing::Fifo => header.set_entry_type(EntryType::Fifo),
            Thing::Device => {
                header.set_entry_type(EntryType::Char);
                header.set_device_major(1).unwrap();
                header.set_device_minor(5).unwrap();
            }
        }
        header.set_size(size);
        header.set_cksum();
        tar.append(&header, content).unwrap();
    }
    tar.finish().unwrap();
    drop(tar);
    gz.finish().unwrap().flush().unwrap();
}
