//! Saving: a file is whole or as it was before, no matter who saves there at the same time.

use crate::support::*;
use quadrivium::training::{AdamW, AdamWConfig};
use quadrivium::weights::{load_weights, save_weights};
use quadrivium::*;
use std::path::Path;

fn norm(seed: u64) -> GroupRmsNorm<512, 2, f32, Dev> {
    let config = GroupRmsNormConfig { init_seed: seed, ..Default::default() };
    GroupRmsNorm::new(&dev(), config).unwrap()
}

fn save(seed: u64, path: &Path) -> quadrivium::error::Result<()> {
    save_weights::<f32, Dev, _>(&norm(seed), path)
}

fn loaded(path: &Path) -> Vec<f32> {
    let mut model = norm(0);
    load_weights::<f32, Dev, _>(&mut model, path).unwrap();
    model.weight.as_vec()
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_save_that_fails_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("model");
    std::fs::create_dir(&target).unwrap();
    let error = save(1, &target).unwrap_err().to_string();
    assert!(error.ends_with("model: this is a folder; name a file"), "{error}");
    assert_eq!(names(folder.path()), ["model"]);

    let nowhere = folder.path().join("no folder/model");
    let error = save(1, &nowhere).unwrap_err().to_string();
    assert!(error.contains("no folder/model: there is no folder "), "{error}");
    assert_eq!(names(folder.path()), ["model"]);
}

#[test]
fn a_path_without_a_file_name_is_refused() {
    for path in ["", "/", "..", "."] {
        let error = save(1, Path::new(path)).unwrap_err().to_string();
        let says = match path {
            "" => "the path is empty; name a file",
            _ => "this is a folder; name a file",
        };
        assert!(error.ends_with(says), "{path:?}: {error}");
    }
    let error = load_weights::<f32, Dev, _>(&mut norm(1), "").unwrap_err().to_string();
    assert!(error.ends_with("the path is empty; name a file"), "{error}");
}

/// A file called `NAME.new` belongs to another user.
#[test]
fn a_neighbour_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let neighbour = folder.path().join("model.safetensors.new");
    std::fs::write(&neighbour, "mine").unwrap();
    let path = folder.path().join("model.safetensors");
    save(1, &path).unwrap();
    assert_eq!(std::fs::read_to_string(&neighbour).unwrap(), "mine");
    assert_same_bits(&loaded(&path), &norm(1).weight.as_vec());
}

#[test]
fn threads_that_save_to_one_path_do_not_disturb_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    std::thread::scope(|scope| {
        let saves: Vec<_> = (0..8)
            .map(|seed| {
                let path = &path;
                scope.spawn(move || (0..100).try_for_each(|_| save(seed, path)))
            })
            .collect();
        for thread in saves {
            thread.join().unwrap().unwrap();
        }
    });
    let saved = loaded(&path);
    assert!((0..8).any(|seed| norm(seed).weight.as_vec() == saved), "one of them is whole");
    assert_eq!(names(folder.path()), ["model.safetensors"]);
}

#[cfg(unix)]
mod on_unix {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let (target, link) = (inner.join("model"), folder.path().join("latest"));
        save(1, &target).unwrap();
        symlink("inner/model", &link).unwrap();
        save(2, &link).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_same_bits(&loaded(&target), &norm(2).weight.as_vec());

        // A link to a file that is not there yet.
        let (later, link) = (inner.join("later"), folder.path().join("next"));
        symlink("inner/later", &link).unwrap();
        save(3, &link).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_same_bits(&loaded(&later), &norm(3).weight.as_vec());

        // A link to itself leads nowhere.
        let circle = folder.path().join("circle");
        symlink("circle", &circle).unwrap();
        assert!(save(4, &circle).is_err());
        assert_eq!(names(folder.path()), ["circle", "inner", "latest", "next"]);
        assert_eq!(names(&inner), ["later", "model"]);
    }

    /// A rename would put a file in the place of a socket, and of `/dev/null`.
    #[test]
    fn what_is_no_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let error = save(1, &path).unwrap_err().to_string();
        assert!(error.ends_with("this is a device, a pipe or a socket; name a file"), "{error}");
        assert!(path.metadata().unwrap().file_type().is_socket());
        assert_eq!(names(folder.path()), ["socket"]);
    }

    /// A pipe may have no writer, and a device may have no end.
    #[test]
    fn what_is_no_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [pipe.as_path(), Path::new("/dev/zero")] {
            let mut model = norm(0);
            let before = model.weight.as_vec();
            let weights = load_weights::<f32, Dev, _>(&mut model, path).unwrap_err();
            let state = AdamW::<f32, Dev>::load(AdamWConfig::default(), &model, path).unwrap_err();
            for error in [weights.to_string(), state.to_string()] {
                assert!(error.contains("this is a device, a pipe or a socket"), "{error}");
            }
            assert_same_bits(&model.weight.as_vec(), &before);
        }
    }

    /// A new file can be read by whom a new file can; an old one keeps who could read it.
    #[test]
    fn permissions_are_those_of_a_plain_write() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let (path, plain) = (folder.path().join("model"), folder.path().join("plain"));
        std::fs::write(&plain, "").unwrap();
        save(1, &path).unwrap();
        assert_eq!(mode(&path), mode(&plain));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        save(2, &path).unwrap();
        assert_eq!(mode(&path), 0o640);
    }
}
