//! `pgdyno export --bundle` and `pgdyno import bundle`: trials in another store.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output};

use crate::bundles::{Bundles, cell, ten_minutes};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgdyno");

/// Runs pgdyno on the store of a directory.
fn pgdyno(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).current_dir(directory).env_remove("PGDYNO_STORE").output().unwrap()
}

/// What `store check` finds: the test data have no histograms.
fn problems(directory: &Path) -> String {
    String::from_utf8(pgdyno(directory, &["store", "check"]).stdout).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A store with a trial of ten minutes on a host with a name, whose log has a user's directory, and two short ones.
fn bundles() -> Bundles {
    let mut bundles = Bundles::new();
    let mut long = ten_minutes();
    long.environment.hostname = Some("bench7.lab.example".to_owned());
    long.logs.push(model::record::Log {
        name: "connections".to_owned(),
        text: "from bench7.lab.example and bench7, not bench70: /home/anna/.cache\n".to_owned(),
    });
    bundles.write(long);
    bundles.runs(&cell("18", 1), &[500.0, 505.0]);
    bundles
}

/// All files of the trials of a store, by path.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    fn collect(directory: &Path, found: &mut Vec<(String, Vec<u8>)>) {
        for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => collect(&path, found),
                false => found.push((path.display().to_string(), fs::read(&path).unwrap())),
            }
        }
    }
    let trials = directory.join(".pgdyno/trials");
    let mut found = Vec::new();
    collect(&trials, &mut found);
    let mut found: Vec<(String, Vec<u8>)> = found
        .into_iter()
        .map(|(path, content)| (path.replace(&trials.display().to_string(), ""), content))
        .filter(|(path, _)| path != "/.writers")
        .collect();
    found.sort();
    found
}

#[test]
fn bundles_are_the_same_in_another_store_and_are_imported_once() {
    let bundles = bundles();
    let here = bundles.directory.path();
    let exported = pgdyno(here, &["export", "--bundle", "run.tar.zst"]);
    assert!(
        exported.status.success() && stderr(&exported).contains("run.tar.zst: the bundles of 3 trials"),
        "{exported:?}"
    );

    let there = tempfile::tempdir().unwrap();
    let archive = here.join("run.tar.zst").display().to_string();
    let imported = pgdyno(there.path(), &["import", "bundle", &archive]);
    assert!(imported.status.success() && stderr(&imported).contains("3 trials added"), "{imported:?}");
    assert_eq!(files(there.path()), files(here));
    assert_eq!(problems(there.path()), problems(here));

    let again = pgdyno(there.path(), &["import", "bundle", &archive]);
    assert!(
        again.status.success()
            && stderr(&again).contains("0 trials added")
            && stderr(&again).contains("3 trials already"),
        "{again:?}"
    );
    // The same trials are the same archive.
    pgdyno(there.path(), &["export", "--bundle", "again.tar.zst"]);
    assert!(fs::read(there.path().join("again.tar.zst")).unwrap() == fs::read(&archive).unwrap());
}

#[test]
fn names_are_left_out_on_demand_and_what_was_is_listed() {
    let bundles = bundles();
    let here = bundles.directory.path();
    let exported = pgdyno(here, &["export", "--bundle", "run.tar.zst", "--redact"]);
    let listed = stderr(&exported);
    assert!(exported.status.success(), "{listed}");
    // The environment, and twice in the log.
    assert!(
        listed.contains("redacted: host names in 3 places of environment.json, logs/connections.log.zst"),
        "{listed}"
    );
    assert!(listed.contains("redacted: user names in 1 places of logs/connections.log.zst"), "{listed}");

    let there = tempfile::tempdir().unwrap();
    let archive = here.join("run.tar.zst").display().to_string();
    assert!(pgdyno(there.path(), &["import", "bundle", &archive]).status.success());
    assert_eq!(problems(there.path()), problems(here));
    for (path, content) in files(there.path()) {
        let text = match path.ends_with(".zst") {
            true => zstd::decode_all(content.as_slice()).unwrap(),
            false => content,
        };
        let text = String::from_utf8_lossy(&text);
        assert!(
            !text.contains("bench7.lab") && !text.contains("bench7,") && !text.contains("/home/anna"),
            "{path}: {text}"
        );
        assert!(!path.contains("connections") || text.contains("bench70"), "{text}");
    }
    // The redacted bundle is another one.
    let refused = pgdyno(here, &["import", "bundle", &archive]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("another content") && stderr(&refused).contains("--store"),
        "{refused:?}"
    );
}

#[test]
fn damaged_and_foreign_archives_store_nothing() {
    let bundles = bundles();
    let here = bundles.directory.path();
    pgdyno(here, &["export", "--bundle", "run.tar.zst"]);
    let archive = fs::read(here.join("run.tar.zst")).unwrap();
    let tar = zstd::decode_all(archive.as_slice()).unwrap();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut tar = tar.clone();
        change(&mut tar);
        zstd::encode_all(tar.as_slice(), 1).unwrap()
    };
    let replace = |from: &'static str, to: &'static str| {
        changed(&move |tar: &mut Vec<u8>| {
            let at = tar.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
            tar[at..at + to.len()].copy_from_slice(to.as_bytes());
        })
    };
    for (name, content, expected) in [
        ("cut", archive[..archive.len() / 2].to_vec(), "can't be read"),
        ("cut tar", changed(&|tar| tar.truncate(tar.len() / 3)), "can't be read"),
        ("no archive", b"hello".to_vec(), "can't be read"),
        ("empty", zstd::encode_all(&[0u8; 1024][..], 1).unwrap(), "no trials"),
        ("a changed file", replace("bench7.lab.example", "bench8.lab.example"), "SHA-256 differs"),
    ] {
        let there = tempfile::tempdir().unwrap();
        fs::write(there.path().join("a.tar.zst"), content).unwrap();
        let refused = pgdyno(there.path(), &["import", "bundle", "a.tar.zst"]);
        assert_eq!(refused.status.code(), Some(1), "{name}");
        assert!(stderr(&refused).contains(expected), "{name}: {}", stderr(&refused));
        assert_eq!(files(there.path()), [], "{name}");
    }
    // Paths that leave the store, links, and what is no trial.
    for (path, kind) in [
        ("../../../etc/evil", tar::EntryType::Regular),
        ("trials/01KAK3W8XQ5T2M9HC4ZP7V0001/../../x", tar::EntryType::Regular),
        ("trials/01KAK3W8XQ5T2M9HC4ZP7V0001/trial.json", tar::EntryType::Symlink),
        ("trials/notes/trial.json", tar::EntryType::Regular),
        ("index.sqlite", tar::EntryType::Regular),
    ] {
        let there = tempfile::tempdir().unwrap();
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_cksum();
        let mut archive = tar::Builder::new(Vec::new());
        archive.append(&header, std::io::empty()).unwrap();
        let content = zstd::encode_all(archive.into_inner().unwrap().as_slice(), 1).unwrap();
        fs::write(there.path().join("a.tar.zst"), content).unwrap();
        let refused = pgdyno(there.path(), &["import", "bundle", "a.tar.zst"]);
        assert_eq!(refused.status.code(), Some(1), "{path}");
        assert!(stderr(&refused).contains("no file of a bundle"), "{path}: {}", stderr(&refused));
        assert_eq!(files(there.path()), [], "{path}");
    }
}

/// An archive of one entry, or of as many as there are paths, whose contents are zeros.
fn archive_of(paths: impl Iterator<Item = String>, kind: tar::EntryType, bytes: u64) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for path in paths {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(bytes);
        header.set_path(path).unwrap();
        header.set_cksum();
        archive.append(&header, std::io::repeat(0).take(bytes)).unwrap();
    }
    zstd::encode_all(archive.into_inner().unwrap().as_slice(), 1).unwrap()
}

#[test]
fn an_archive_that_unpacks_to_much_more_than_bundles_is_refused() {
    let bundle = "trials/01KAK3W8XQ5T2M9HC4ZP7V0001";
    let one = |name: &str| std::iter::once(format!("{bundle}/{name}"));
    let many = (0..5000).map(|number| format!("{bundle}/{number}"));
    for (content, expected) in [
        (
            archive_of(one("trial.json"), tar::EntryType::GNULongName, 4 << 20),
            "the header of an entry is too long",
        ),
        (
            archive_of(one("trial.json"), tar::EntryType::XHeader, 4 << 20),
            "the header of an entry is too long",
        ),
        (
            archive_of(one("directory"), tar::EntryType::Directory, 4 << 20),
            "the header of an entry is too long",
        ),
        (archive_of(one("trial.json"), tar::EntryType::Regular, 65 << 20), "trial.json is too large"),
        (archive_of(many, tar::EntryType::Regular, 0), "has more than 4096 files"),
    ] {
        let there = tempfile::tempdir().unwrap();
        fs::write(there.path().join("a.tar.zst"), content).unwrap();
        let refused = pgdyno(there.path(), &["import", "bundle", "a.tar.zst"]);
        assert_eq!(refused.status.code(), Some(1), "{expected}");
        assert!(stderr(&refused).contains(expected), "{expected}: {}", stderr(&refused));
        assert_eq!(files(there.path()), [], "{expected}");
    }
}

#[test]
fn an_archive_goes_through_pipes() {
    let bundles = bundles();
    let there = tempfile::tempdir().unwrap();
    let line = format!(
        "cd '{}' && '{PROGRAM}' export --bundle - | '{PROGRAM}' import bundle - --store '{}'",
        bundles.directory.path().display(),
        there.path().join(".pgdyno").display()
    );
    let piped = Command::new("sh").args(["-c", &line]).env_remove("PGDYNO_STORE").output().unwrap();
    assert!(piped.status.success(), "{piped:?}");
    assert_eq!(files(there.path()), files(bundles.directory.path()));
    let mut first = [0; 4];
    let exported = pgdyno(bundles.directory.path(), &["export", "--bundle", "x.tar.zst"]);
    assert!(exported.status.success());
    File::open(bundles.directory.path().join("x.tar.zst")).unwrap().read_exact(&mut first).unwrap();
    // Zstandard's magic number, RFC 8878.
    assert_eq!(first, [0x28, 0xb5, 0x2f, 0xfd]);
}
