//! Stores from elsewhere: what is in place of a file must neither block a reader nor fill its memory.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod sample;

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use model::record::TrialRecord;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use sample::{bare, record, stored, update_checksums};
use store::{BundleArchive, Problem, Store, StoreError, archived_trial, new_id};

/// Files of a bundle, one of each kind, and the list of them.
const FILES: [&str; 8] = [
    "trial.json",
    "campaign.toml",
    "environment.json",
    "latency.hlog",
    "metrics.parquet",
    "events.jsonl",
    "logs/server.log.zst",
    "SHA256SUMS",
];

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

/// The reason that is given for a replacement of a file, and a function that puts it in place.
type Replacement = (&'static str, Box<dyn Fn(&Path)>);

fn replacements(elsewhere: &Path) -> Vec<Replacement> {
    let copy = elsewhere.join("copy");
    vec![
        ("it is a pipe, not a file", Box::new(pipe)),
        ("it is a directory, not a file", Box::new(|path| fs::create_dir(path).unwrap())),
        ("it is a socket, not a file", Box::new(|path| drop(UnixListener::bind(path).unwrap()))),
        ("it is a symbolic link, not a file", Box::new(|path| symlink("/dev/zero", path).unwrap())),
        // Not even to the same content: it could be a file of whoever reads the store.
        (
            "it is a symbolic link, not a file",
            Box::new(move |path| {
                fs::copy(path.with_file_name("original"), &copy).unwrap();
                symlink(&copy, path).unwrap();
            }),
        ),
    ]
}

fn problems(store: &Store) -> Vec<Problem> {
    store.check().unwrap().problems
}

#[test]
fn what_is_not_a_file_is_a_problem_of_its_bundle() {
    let elsewhere = tempfile::tempdir().unwrap();
    for file in FILES {
        for (reason, replace) in replacements(elsewhere.path()) {
            let root = tempfile::tempdir().unwrap();
            let store = Store::open(root.path()).unwrap();
            let (first, second) = (new_id(), new_id());
            let path = store.write(&record(&first)).unwrap().join(file);
            store.write(&bare(&second)).unwrap();
            fs::rename(&path, path.with_file_name("original")).unwrap();
            replace(&path);
            let found = problems(&store);
            assert!(
                found.iter().any(|problem| problem.bundle.as_ref() == Some(&first)
                    && problem.file.as_deref() == Some(file)
                    && problem.reason.contains(reason)),
                "{file}: {found:?}"
            );
            assert!(matches!(store.load(&first), Err(StoreError::Unreadable(_))), "{file}");
            assert_eq!(store.load(&second).unwrap(), stored(bare(&second)));
        }
    }
}

#[test]
fn a_linked_directory_within_a_bundle_is_not_followed() {
    let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Store::open(root.path()).unwrap();
    let id = new_id();
    let bundle = store.write(&record(&id)).unwrap();
    let logs = elsewhere.path().join("logs");
    fs::create_dir(&logs).unwrap();
    for log in fs::read_dir(bundle.join("logs")).unwrap() {
        let log = log.unwrap();
        fs::copy(log.path(), logs.join(log.file_name())).unwrap();
    }
    fs::remove_dir_all(bundle.join("logs")).unwrap();
    symlink(&logs, bundle.join("logs")).unwrap();
    assert!(store.load(&id).unwrap_err().to_string().contains("logs/driver.log.zst"));
}

#[test]
fn a_device_is_not_opened() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    let path = store.write(&record(&new_id())).unwrap().join("environment.json");
    fs::remove_file(&path).unwrap();
    let zero = rustix::fs::makedev(1, 5);
    if let Err(error) = mknodat(CWD, &path, FileType::CharacterDevice, Mode::from_raw_mode(0o600), zero) {
        skip::skip(format!("devices can't be created: {error}"));
        return;
    }
    let found = problems(&store);
    assert_eq!((found.len(), found[0].reason.as_str()), (1, "it is a device, not a file"));
}

#[test]
fn files_of_the_store_that_are_pipes_block_nobody() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    let id = new_id();
    store.write(&bare(&id)).unwrap();
    let run = &bare(&id).trial.run.id;
    let accepted = root.path().join(format!("accepted/{}.json", new_id()));
    fs::create_dir(root.path().join("accepted")).unwrap();
    fs::remove_file(root.path().join("trials/.writers")).unwrap();
    let files = ["index.lock", "index.sqlite", "trials/.writers", &format!(".live-{run}.jsonl")];
    for path in files.map(|file| root.path().join(file)).iter().chain([&accepted]) {
        pipe(path);
    }
    assert_eq!(store.live_runs(), [run.as_str()]);
    assert!(store.open_live(run).unwrap().poll().unwrap().lines.is_empty());
    // Opening a store sweeps it.
    let store = Store::existing(root.path()).unwrap();
    assert_eq!(store.trials().unwrap().len(), 1);
    assert!(store.acceptances().unwrap_err().to_string().contains("it is a pipe"));
    let found = problems(&store);
    assert!(found.iter().all(|problem| problem.bundle.is_none()), "{found:?}");
    fs::remove_file(root.path().join("index.lock")).unwrap();
    // An index that can't be used is replaced.
    assert_eq!(store.trials().unwrap().len(), 1);
    assert!(root.path().join("index.sqlite").is_file());
}

#[test]
fn only_those_who_can_write_to_a_store_can_lock_its_files() {
    let root = tempfile::tempdir().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let set_mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let store = Store::open(root.path()).unwrap();
    let [index, writers] = ["index.lock", "trials/.writers"].map(|file| root.path().join(file));
    for (directory, lock) in [(0o755, 0o600), (0o700, 0o600), (0o775, 0o660), (0o755, 0o600), (0o1777, 0o666)]
    {
        set_mode(root.path(), directory);
        set_mode(&root.path().join("trials"), directory);
        let run = &store.write(&bare(&new_id())).map(|_| new_id()).unwrap();
        store.trials().unwrap();
        let _claim = store.claim(run).unwrap();
        let claim = root.path().join(format!(".run-{run}.lock"));
        assert_eq!([&index, &writers, &claim].map(|path| mode(path)), [lock; 3], "{directory:o}");
    }
    // As those of earlier releases are.
    set_mode(root.path(), 0o755);
    set_mode(&index, 0o644);
    store.trials().unwrap();
    assert_eq!(mode(&index), 0o600);
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    for (file, most) in [("trial.json", 64_u64 << 20), ("metrics.parquet", 1 << 30), ("SHA256SUMS", 64 << 20)]
    {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path()).unwrap();
        let path = store.write(&record(&new_id())).unwrap().join(file);
        // Sparse: it takes no space.
        File::options().write(true).open(&path).unwrap().set_len(most + 1).unwrap();
        let found = problems(&store);
        assert!(found[0].reason.contains(&format!("such a file has at most {most}")), "{file}: {found:?}");
    }
}

#[test]
fn logs_that_unpack_to_much_more_than_a_log_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    let id = new_id();
    let bundle = store.write(&record(&id)).unwrap();
    let frame = zstd::encode_all([0_u8; 1 << 20].as_slice(), 1).unwrap();
    // A file may have several frames, one after the other: 2 GiB of zeros in less than a hundred kilobytes.
    fs::write(bundle.join("logs/server.log.zst"), frame.repeat(2048)).unwrap();
    update_checksums(&bundle);
    let found = problems(&store);
    assert_eq!((found.len(), found[0].file.as_deref()), (1, Some("logs/server.log.zst")), "{found:?}");
    assert!(found[0].reason.contains("too large"), "{found:?}");
    assert!(store.log(&id, "server").is_err());
    assert!(store.head(&id).is_ok());
}

#[test]
fn an_archive_of_one_trial_has_no_other_one() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    let records = [bare(&new_id()), bare(&new_id())];
    for record in &records {
        store.write(record).unwrap();
    }
    let archive = |records: &[TrialRecord]| {
        let mut bytes = Vec::new();
        let mut archive = BundleArchive::new(&mut bytes, false).unwrap();
        records.iter().for_each(|record| archive.add(&store, record).unwrap());
        archive.finish().unwrap();
        archived_trial(&mut bytes.as_slice())
    };
    assert_eq!(archive(&records[..1]).unwrap().trial.id, records[0].trial.id);
    for (records, why) in [(&records[..], "it has more than one trial"), (&[], "it has no trials")] {
        let error = archive(records).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
