//! Data sets: equal initial states, `initdb` options, and a disk or a limit without space.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use host::{Cache, Progress};
use model::workload::Statement;
use server::{Content, Dataset, Error, Server, Setup, StopMode, disk_need};
use skip::skip;
use support::{as_child, cache, installed, role, settings, template};
use tempfile::TempDir;

/// State that a load may have changed, as visible to the user.
const STATE: &str = "
    select format('%s %s', count(*), sum(bbalance)) from pgbench_branches union all
    select format('%s %s', count(*), sum(tbalance)) from pgbench_tellers union all
    select format('%s %s', count(*), sum(abalance)) from pgbench_accounts union all
    select format('%s %s', count(*), sum(delta)) from pgbench_history union all
    select string_agg(relname::text, ' ' order by relname) from pg_class where relnamespace = 'public'::regnamespace";

#[test]
fn every_repeat_starts_with_equal_tables_and_files() {
    for version in ["9.6", "13", "18"] {
        let template = template(version, 1);
        let original = files(template.directory());
        let mut cluster = template.clone_cluster(&cache(), &host::NoProgress).unwrap();
        let mut states = Vec::new();
        for (round, end) in [StopMode::Immediate, StopMode::Fast, StopMode::Immediate].into_iter().enumerate()
        {
            assert!(
                files(&cluster.data_directory()) == original,
                "the files of {version} before round {round}"
            );
            let server = cluster.start(&settings(&[("autovacuum", "off")])).unwrap();
            states.push(state(&server));
            write(&server);
            assert_ne!(state(&server), states[0], "{version}: the load changes something");
            cluster = server.stop(end).unwrap();
            template.restore(&mut cluster, &host::NoProgress).unwrap();
            let copied = cluster.copied();
            assert!(copied.kept_bytes > 0, "{version}: {copied:?}");
            assert_eq!(copied.kept_bytes + copied.copied_bytes + copied.reflinked_bytes, bytes(&original));
        }
        assert!(states[0][0].starts_with("1 0") && states[0][2].starts_with("100000 0"), "{states:?}");
        assert!(states.iter().all(|state| *state == states[0]), "{version}: {states:?}");
    }
}

#[test]
fn initdb_options_make_separate_data_sets_and_the_server_reports_their_effect() {
    let options = ["--data-checksums".to_owned()];
    let plain = template("13", 1);
    let checked =
        server::template(&cache(), &installed("13"), &options, &1.into(), None, &host::NoProgress).unwrap();
    assert_ne!(plain.directory(), checked.directory());
    assert_eq!((plain.initdb(), checked.initdb()), (&[][..], &options[..]));
    let facts = |template: &server::Template| template.facts().unwrap().clone();
    assert_eq!((facts(&plain).data_checksums, facts(&checked).data_checksums), (false, true));
    assert!(facts(&template("18", 1)).data_checksums);
    assert!(facts(&plain).pg_config["CFLAGS"].contains("-O"), "{:?}", facts(&plain).pg_config);
    assert!(facts(&plain).prewarm && facts(&plain).bytes > 30_000_000, "{:?}", facts(&plain));

    let server = checked.clone_cluster(&cache(), &host::NoProgress).unwrap().start(&settings(&[])).unwrap();
    let blocks = "select pg_prewarm('pgbench_accounts')";
    assert!(server.session("pgdyno").unwrap().query_one::<i64>(blocks).unwrap() > 1600);
    drop(server);
    checked.remove(&cache()).unwrap();
}

#[test]
fn data_sets_can_have_large_wal_segments() {
    let options = ["--wal-segsize".to_owned(), "64".to_owned()];
    let template =
        server::template(&cache(), &installed("18"), &options, &1.into(), None, &host::NoProgress).unwrap();
    let cluster = template.clone_cluster(&cache(), &host::NoProgress).unwrap();
    let wal = fs::read_dir(cluster.data_directory().join("pg_wal")).unwrap().flatten();
    assert!(wal.map(|entry| entry.metadata().unwrap().len()).any(|bytes| bytes == 64 << 20));
    template.remove(&cache()).unwrap();
}

#[test]
fn an_invalid_initdb_option_is_reported_with_advice() {
    let error = |version, option: &str| {
        server::template(
            &cache(),
            &installed(version),
            &[option.to_owned()],
            &1.into(),
            None,
            &host::NoProgress,
        )
        .unwrap_err()
        .to_string()
    };
    let message = error("9.6", "--allow-group-access");
    assert!(
        message.contains("initdb of PostgreSQL 9.6") && message.contains("--allow-group-access"),
        "{message}"
    );
    assert!(message.contains("this version has no such option"), "{message}");
    let message = error("18", "--waldir=/tmp/elsewhere");
    assert!(message.contains("\"--waldir=/tmp/elsewhere\"") && message.contains("leave it out"), "{message}");
    assert!(!Path::new("/tmp/elsewhere").exists());
}

#[test]
fn a_data_set_in_use_is_not_removed() {
    let place = TestCache::new();
    let first = place.template("18");
    let name = first.name().to_owned();
    let listed = || server::templates(&place.cache).unwrap().remove(0);
    let error = listed().remove(&place.cache).unwrap_err();
    assert!(matches!(&error, Error::InUse { what, .. } if what.contains(&name)), "{error}");
    drop(first);
    listed().remove(&place.cache).unwrap();
    assert!(server::templates(&place.cache).unwrap().is_empty());
}

#[test]
fn an_interrupted_copy_leaves_nothing() {
    /// Interrupts as soon as the copy is under way.
    struct Stopping(AtomicBool);
    impl Progress for Stopping {
        fn step(&self, what: &str, _: u64, total: Option<u64>) {
            assert!(what.contains("scale 1: copying") && total.is_some(), "{what}");
            self.0.store(true, Ordering::Relaxed);
        }
        fn interrupted(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }
    let place = TestCache::new();
    let template = place.template("18");
    match template.clone_cluster(&place.cache, &Stopping(AtomicBool::new(false))) {
        Ok(cluster) => {
            assert!(cluster.copied().reflinked_bytes > 0, "only shared blocks leave no time to stop")
        }
        Err(error) => assert!(error.is_interrupted(), "{error}"),
    }
    assert_eq!(place.clusters(), 0);
}

/// Runs in a process of its own, because the limit is in its environment.
#[test]
fn evicting() {
    let Some(directory) = role() else { return };
    let cache = Cache::at(Path::new(&directory)).unwrap();
    match server::template(
        &cache,
        &installed("18"),
        &["--no-locale".to_owned()],
        &1.into(),
        None,
        &host::NoProgress,
    ) {
        Ok(template) => println!("CREATED {}", template.name()),
        Err(error) => println!("ERROR {error}"),
    }
}

#[test]
fn the_least_recently_used_data_sets_are_evicted_except_those_in_use() {
    let place = TestCache::new();
    let in_use = place.template("18");
    let old = place.template("13");
    let (in_use_bytes, old_bytes) = (in_use.bytes(), old.bytes());
    let names = || {
        let all = server::templates(&place.cache).unwrap();
        all.iter().map(|template| template.name().to_owned()).collect::<Vec<_>>()
    };
    let (in_use_name, old_name) = (in_use.name().to_owned(), old.name().to_owned());
    let create = |limit: &str| {
        let directory = place.cache.directory().to_str().unwrap();
        let output =
            as_child("evicting", directory, &[("PGDYNO_DATASETS_MAX", limit)]).wait_with_output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(create("plenty").contains("ERROR PGDYNO_DATASETS_MAX is \"plenty\""));
    assert_eq!(names().len(), 2);
    // The first was used before the second, but is still in use.
    drop(old);
    let limit = format!("{}MB", (in_use_bytes + old_bytes) / 1_000_000);
    let printed = create(&limit);
    assert!(printed.contains("CREATED "), "{printed}");
    assert!(names().contains(&in_use_name) && !names().contains(&old_name), "{:?}", names());
    assert_eq!(names().len(), 2);
}

#[test]
fn data_sets_that_do_not_fit_on_the_disk_are_reported_before_they_are_created() {
    let installation = installed("18");
    let existing = template("18", 1);
    let [small, large]: [Content; 2] = [existing.scale().into(), 100_000_000.into()];
    let dataset = |content, copies| Dataset { installation: &installation, initdb: &[], content, copies };
    let fits = disk_need(&cache(), &[dataset(&small, 0)]).unwrap();
    assert_eq!(fits.need, 0, "it exists: {fits:?}");
    fits.check(&cache()).unwrap();

    let large = disk_need(&cache(), &[dataset(&small, 1), dataset(&large, 1)]).unwrap();
    assert_eq!(large.need, large.parts.iter().map(|part| part.bytes).sum::<u64>());
    assert!(large.parts.is_sorted_by_key(|part| std::cmp::Reverse(part.bytes)), "{large:?}");
    let message = large.check(&cache()).unwrap_err().to_string();
    for words in ["scale 100000000: the data set", "pgdyno dataset remove", "PGDYNO_CACHE"] {
        assert!(message.contains(words), "no \"{words}\" in {message}");
    }
    assert!(message.contains(&format!("{:.0} GB", large.need as f64 / 1e9)), "{message}");
}

/// The estimate is close enough to rely on, and rather too high than too low.
#[test]
fn the_estimated_size_of_a_data_set_is_accurate() {
    let place = TestCache::new();
    for version in ["9.6", "13", "18"] {
        let installation = installed(version);
        let dataset = Dataset { installation: &installation, initdb: &[], content: &1.into(), copies: 0 };
        let estimate = disk_need(&place.cache, &[dataset]).unwrap().parts[0].bytes;
        let bytes = place.template(version).bytes();
        assert!((bytes..bytes * 3 / 2).contains(&estimate), "{version}: {bytes}, estimated {estimate}");
    }
}

#[test]
fn a_full_disk_while_filling_is_reported_and_leaves_nothing() {
    let Some(small) = SmallDisk::mounted("130m") else { return };
    let place = TestCache::at(&small.directory);
    let error = server::template(&place.cache, &installed("18"), &[], &10.into(), None, &host::NoProgress)
        .unwrap_err();
    let message = error.to_string();
    assert!(message.contains("No space left on device") && message.contains("pgdyno dataset"), "{message}");
    assert_eq!(place.clusters(), 0);
    assert!(server::templates(&place.cache).unwrap().is_empty());
}

#[test]
fn a_full_disk_while_copying_is_reported_and_leaves_nothing() {
    let Some(small) = SmallDisk::mounted("200m") else { return };
    let place = TestCache::at(&small.directory);
    let template = place.template("18");
    let stat = rustix::fs::statvfs(&small.directory).unwrap();
    let free = stat.f_bavail * stat.f_frsize;
    fs::write(small.directory.join("others"), vec![1; usize::try_from(free - template.bytes() / 2).unwrap()])
        .unwrap();
    let error = template.clone_cluster(&place.cache, &host::NoProgress).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("No space left on device") && message.contains("pgdyno dataset"), "{message}");
    assert_eq!(place.clusters(), 0);
    fs::remove_file(small.directory.join("others")).unwrap();
    template.clone_cluster(&place.cache, &host::NoProgress).unwrap();
}

#[test]
fn a_full_disk_while_filling_is_reported_with_the_reason_from_the_log() {
    // Space for an empty cluster, but not for the data.
    let Some(small) = SmallDisk::mounted("110m") else { return };
    let place = TestCache::at(&small.directory);
    let fill = |content: &Content| {
        let error = server::template(&place.cache, &installed("18"), &[], content, None, &host::NoProgress)
            .unwrap_err();
        error.to_string()
    };
    let setup = Setup {
        workload: "large".to_owned(),
        pgbench_tables: true,
        star_tables: false,
        statements: vec![Statement {
            place: "setup of large".to_owned(),
            sql: "create table t as select repeat('x', 1000) from generate_series(1, 1000000)".to_owned(),
        }],
    };
    for content in [20.into(), Content { setup: Some(Arc::new(setup)), ..1.into() }] {
        let message = fill(&content);
        assert!(message.starts_with("the disk was full while PostgreSQL 18."), "{message}");
        assert!(message.contains("No space left on device"), "{message}");
        assert!(message.contains("PGDYNO_CACHE") && !message.contains("correct the statement"), "{message}");
        assert_eq!(place.clusters(), 0);
    }
}

#[test]
fn copies_share_blocks_if_the_file_system_supports_it() {
    let directory = cache().directory().to_owned();
    let file = || tempfile::tempfile_in(&directory).unwrap();
    let is_supported = rustix::fs::ioctl_ficlone(file(), file()).is_ok();
    let cluster = template("18", 1).clone_cluster(&cache(), &host::NoProgress).unwrap();
    let copied = cluster.copied();
    if is_supported {
        assert!(copied.reflinked_bytes > 0 && copied.copied_bytes == 0, "{copied:?}");
    } else {
        assert!(copied.copied_bytes > 0 && copied.reflinked_bytes == 0, "{copied:?}");
        skip("copies that share blocks: the file system of the cache does not support them");
    }
}

/// A cache of the test's own.
struct TestCache {
    cache: Cache,
    _directory: Option<TempDir>,
}

impl TestCache {
    fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("pgdyno-test-").tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self { cache: Cache::at(directory.path()).unwrap(), _directory: Some(directory) }
    }

    fn at(directory: &Path) -> Self {
        Self { cache: Cache::at(&directory.join("cache")).unwrap(), _directory: None }
    }

    fn template(&self, version: &str) -> server::Template {
        server::template(&self.cache, &installed(version), &[], &1.into(), None, &host::NoProgress).unwrap()
    }

    fn clusters(&self) -> usize {
        fs::read_dir(self.cache.directory().join("clusters")).unwrap().count()
    }
}

/// A file system in memory, for root.
struct SmallDisk {
    directory: PathBuf,
    _above: TempDir,
}

impl SmallDisk {
    fn mounted(size: &str) -> Option<Self> {
        let above = tempfile::Builder::new().prefix("pgdyno-test-").tempdir().unwrap();
        fs::set_permissions(above.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let directory = above.path().join("disk");
        fs::create_dir(&directory).unwrap();
        let options = format!("size={size},mode=755");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&directory).output();
        if mount.is_ok_and(|mount| mount.status.success()) {
            return Some(Self { directory, _above: above });
        }
        skip("no small file system can be mounted here (root may)");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.directory).status();
    }
}

/// Updates, new rows, a new table, a dropped index: changes that a trial may leave.
fn write(server: &Server) {
    server
        .session("pgdyno")
        .unwrap()
        .execute(
            "update pgbench_accounts set abalance = abalance + 7 where aid % 10 = 0;
             update pgbench_tellers set tbalance = 7;
             update pgbench_branches set bbalance = 7;
             insert into pgbench_history select 1, 1, n, 7, now(), null from generate_series(1, 10000) n;
             create table left_behind as select * from pgbench_accounts limit 1000;
             alter table pgbench_tellers drop constraint pgbench_tellers_pkey",
        )
        .unwrap();
    server.session("postgres").unwrap().execute("alter system set work_mem = '7MB'").unwrap();
}

fn state(server: &Server) -> Vec<String> {
    server.session("pgdyno").unwrap().query(STATE).unwrap()
}

/// Every file below a directory: path, size, and a hash of the content.
fn files(directory: &Path) -> Vec<(PathBuf, u64, u64)> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(parent) = pending.pop() {
        for entry in fs::read_dir(&parent).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                pending.push(entry.path());
            }
            let content = fs::read(entry.path()).unwrap_or_default();
            let mut hasher = DefaultHasher::new();
            content.hash(&mut hasher);
            let path = entry.path().strip_prefix(directory).unwrap().to_owned();
            found.push((path, content.len() as u64, hasher.finish()));
        }
    }
    found.sort();
    found
}

fn bytes(files: &[(PathBuf, u64, u64)]) -> u64 {
    files.iter().map(|(_, bytes, _)| bytes).sum()
}
