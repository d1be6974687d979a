//! PostgreSQL itself, built from source by both build systems. Builds take minutes the first time; afterwards their
//! directories are in the cache, and only what changed is built again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use host::{Lock, Progress};
use model::server::{Build, BuildSystem, Source};
use server::{Error, StopMode};
use skip::skip;
use support::{cache, settings};

struct Printed;

impl Progress for Printed {
    fn step(&self, what: &str, done: u64, _: Option<u64>) {
        if done == 0 {
            println!("{what}");
        }
    }
}

#[test]
fn a_server_built_by_configure_runs_like_any_other() {
    builds_and_runs(BuildSystem::Configure);
}

#[test]
#[ignore = "builds PostgreSQL, for minutes: make test-slow"]
fn a_server_built_by_meson_runs_like_any_other() {
    builds_and_runs(BuildSystem::Meson);
}

/// `PGDYNO_TEST_SOURCE`, or what `make test` has downloaded.
fn source() -> Option<PathBuf> {
    let downloaded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-sources/postgresql.tar.bz2");
    let named = std::env::var_os("PGDYNO_TEST_SOURCE").map(PathBuf::from);
    named.or_else(|| downloaded.exists().then_some(downloaded))
}

fn builds_and_runs(system: BuildSystem) {
    let Some(location) = source() else {
        return skip("there is no source of PostgreSQL: run setup/test-sources target/test-sources");
    };
    let cache = cache();
    // Without optimization, for speed.
    let build = Build {
        location,
        git_ref: None,
        system: Some(system),
        options: vec![],
        cflags: Some("-O0".to_owned()),
        patches: vec![],
        sorted_functions: false,
    };
    let get = || server::installation(&cache, &Source::Build(build.clone()), &Printed);
    // Another checkout may run the same test.
    let _alone = Lock::exclusive(&cache.lock_file(&format!("test-build-{}", system.as_str()))).unwrap();
    let earlier = match get() {
        Err(error @ Error::Host(host::Error::Tool { .. })) => return skip(error),
        outcome => outcome.unwrap(),
    };
    // An earlier installation is replaced by what the present pgdyno installs of the same build.
    fs::remove_dir_all(earlier.directory()).unwrap();
    let installation = get().unwrap();
    assert_eq!(installation.identity(), earlier.identity());
    assert_eq!(get().unwrap().installed(), installation.installed(), "it is installed once");

    assert!(installation.build_flags().cflags.unwrap().contains("-O0"));

    let template = server::template(&cache, &installation, &[], &1.into(), None, &Printed).unwrap();
    assert_eq!(template.server(), installation.identity());
    let server = template.clone_cluster(&cache, &Printed).unwrap().start(&settings(&[])).unwrap();
    let (version, _) = server.version().unwrap();
    assert_eq!(version, installation.version().to_string());
    let mut client = server.session("pgdyno").unwrap();
    let accounts: i64 = client.query_one("select count(*) from pgbench_accounts").unwrap();
    assert_eq!(accounts, 100_000);
    client.execute("do $$ begin perform 1; end $$").unwrap();
    for extension in ["pg_prewarm", "pg_stat_statements", "pg_buffercache"] {
        client.execute(&format!("create extension if not exists {extension}")).unwrap();
    }
    drop(client);
    server.stop(StopMode::Fast).unwrap();
    let makefile = installation.directory().join("lib/pgxs/src/makefiles/pgxs.mk");
    assert!(makefile.is_file(), "extensions can be built");
    template.remove(&cache).unwrap();
}
