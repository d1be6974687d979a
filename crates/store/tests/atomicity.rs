//! Bundles are atomic: with a full disk, a file size limit, a killed writer, concurrent writers.
//!
//! Writers that are killed or limited are separate processes: this test program, restricted to the test [`writer`].
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod sample;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use model::record::{Log, TrialRecord};
use sample::{noise, record, stored};
use skip::skip;
use store::{Store, StoreError, new_id};

/// Directory, number of bundles, and length of each log in bytes for [`writer`].
const ROOT: &str = "STORE_TEST_ROOT";
const BUNDLES: &str = "STORE_TEST_BUNDLES";
const LOG_BYTES: &str = "STORE_TEST_LOG_BYTES";

#[test]
#[ignore = "a process that other tests start"]
fn writer() {
    let number = |name: &str| env::var(name).unwrap().parse::<usize>().unwrap();
    let store = Store::open(Path::new(&env::var(ROOT).unwrap())).unwrap();
    let text = noise(number(LOG_BYTES));
    for _ in 0..number(BUNDLES) {
        match store.write(&with_log(&text)) {
            Ok(_) => {}
            Err(error) => println!("refused: {error}"),
        }
    }
}

/// The command that runs [`writer`], in a shell that first executes `limits`.
fn command(root: &Path, bundles: usize, log_bytes: usize, limits: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("{limits} exec \"$0\" --exact writer --ignored --nocapture")])
        .arg(env::current_exe().unwrap())
        .env(ROOT, root)
        .env(BUNDLES, bundles.to_string())
        .env(LOG_BYTES, log_bytes.to_string());
    command
}

fn with_log(text: &str) -> TrialRecord {
    let mut record = record(&new_id());
    record.logs = vec![Log { name: "server".to_owned(), text: text.to_owned() }];
    record
}

/// Entries of the directory of trials, without the writers' lock.
fn entries(root: &Path) -> Vec<String> {
    let names = fs::read_dir(root.join("trials")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != ".writers").collect()
}

#[test]
fn a_full_disk_is_reported_and_leaves_no_bundle() {
    let Some(disk) = SmallDisk::mount() else {
        return skip("a tmpfs can't be mounted here; the limit on file sizes is tested all the same");
    };
    let store = Store::open(disk.path()).unwrap();
    let small = with_log("fits");
    store.write(&small).unwrap();
    let large = with_log(&noise(1 << 20));
    let error = store.write(&large).unwrap_err();
    assert!(matches!(error, StoreError::NotWritten { .. }));
    let text = error.to_string();
    for part in [&large.trial.id, "was not stored", "server.log.zst", "No space left", "free space"] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    assert_eq!(entries(disk.path()), [small.trial.id.as_str()]);
    assert_eq!(store.load(&small.trial.id).unwrap(), stored(small));
    assert_eq!(store.check().unwrap().problems, []);
}

#[test]
fn a_file_size_limit_leaves_no_bundle() {
    let root = tempfile::tempdir().unwrap();
    let Output { status, stdout, .. } =
        command(root.path(), 1, 1 << 20, "trap '' XFSZ; ulimit -f 64;").output().unwrap();
    let stdout = String::from_utf8(stdout).unwrap();
    assert!(status.success(), "{stdout}");
    assert!(stdout.contains("refused: trial") && stdout.contains("File too large"), "{stdout}");
    assert_eq!(entries(root.path()), [""; 0]);
}

#[test]
fn a_partial_bundle_of_a_killed_writer_is_removed() {
    let root = tempfile::tempdir().unwrap();
    let mut partials = 0;
    for _ in 0..5 {
        let mut writer = command(root.path(), usize::MAX, 4 << 20, "").stdout(Stdio::null()).spawn().unwrap();
        wait_for_a_partial(root.path(), &mut writer);
        writer.kill().unwrap();
        writer.wait().unwrap();

        partials += entries(root.path()).iter().filter(|name| name.starts_with(".partial-")).count();
        let store = Store::open(root.path()).unwrap();
        let left = entries(root.path());
        assert!(left.iter().all(|name| !name.starts_with('.')), "swept: {left:?}");
        assert_eq!(store.trials().unwrap().len(), left.len());
        assert_eq!(store.check().unwrap().problems, []);
    }
    assert!(partials > 0, "no writer was killed while it wrote");
}

fn wait_for_a_partial(root: &Path, writer: &mut Child) {
    loop {
        assert!(writer.try_wait().unwrap().is_none(), "the writer ended early");
        let begun = |name: &String| name.starts_with(".partial-");
        if root.join("trials").is_dir() && entries(root).iter().any(begun) {
            return;
        }
    }
}

#[test]
fn a_partial_bundle_is_kept_while_any_writer_is_alive() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    let partial = root.path().join("trials").join(format!(".partial-{}", new_id()));
    fs::create_dir(&partial).unwrap();

    let lock = root.path().join("trials/.writers");
    let lock = fs::File::options().create(true).write(true).truncate(false).open(lock).unwrap();
    lock.lock_shared().unwrap();
    store.write(&record(&new_id())).unwrap();
    assert!(partial.is_dir());
    assert_eq!(store.check().unwrap().problems, [], "it is being written");
    assert_eq!(store.trials().unwrap().len(), 1);

    drop(lock);
    let problems = store.check().unwrap().problems;
    assert!(problems[0].reason.contains("its writer was killed"), "{problems:?}");
    store.write(&record(&new_id())).unwrap();
    assert!(!partial.exists());
}

#[test]
fn several_processes_write_at_once_while_another_reads() {
    const WRITERS: usize = 3;
    const EACH: usize = 15;
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    let mut writers: Vec<Child> = (0..WRITERS)
        .map(|_| command(root.path(), EACH, 1000, "").stdout(Stdio::null()).spawn().unwrap())
        .collect();
    let mut seen = 0;
    while writers.iter_mut().any(|writer| writer.try_wait().unwrap().is_none()) {
        let listing = store.list().unwrap();
        assert_eq!(listing.rejected, []);
        assert!(listing.trials.len() >= seen, "a trial that was there is gone");
        seen = listing.trials.len();
    }
    assert!(writers.iter_mut().all(|writer| writer.wait().unwrap().success()));
    assert_eq!(store.trials().unwrap().len(), WRITERS * EACH);
    assert_eq!(store.check().unwrap().problems, []);
}

/// A filesystem of 256 KiB, if this process may mount one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256k", "pgdyno-test"])
            .arg(directory.path())
            .stderr(Stdio::null())
            .status();
        mount.is_ok_and(|status| status.success()).then_some(Self(directory))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let path: PathBuf = self.0.path().to_owned();
        let _ = Command::new("umount").arg(path).status();
    }
}
