//! PostgreSQL itself, built from source. It takes minutes, so it runs only if `PGDYNO_TEST_SOURCE` names a source
//! directory or a tarball; `PGDYNO_TEST_SYSTEM` may be `meson`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::time::Instant;

use host::Progress;
use model::server::{Build, BuildSystem, Source};
use server::{Installation, StopMode};
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
#[ignore = "builds PostgreSQL from the source that PGDYNO_TEST_SOURCE names, for minutes"]
fn a_server_built_from_source_runs_like_any_other() {
    let location =
        std::env::var("PGDYNO_TEST_SOURCE").expect("PGDYNO_TEST_SOURCE names a source of PostgreSQL");
    let meson = std::env::var("PGDYNO_TEST_SYSTEM").is_ok_and(|system| system == "meson");
    let source = Source::Build(Build {
        location: location.into(),
        git_ref: None,
        system: Some(if meson { BuildSystem::Meson } else { BuildSystem::Configure }),
        options: vec![],
        cflags: None,
    });
    let get = || -> Installation {
        let start = Instant::now();
        let installation = server::installation(&cache(), &source, &Printed).unwrap();
        println!("{} after {:.1} s", installation.identity(), start.elapsed().as_secs_f64());
        installation
    };
    let installation = get();
    let again = get();
    assert_eq!(again.installed(), installation.installed());

    let flags = installation.build_flags();
    println!("{flags:?}");
    assert!(flags.cflags.unwrap().contains("-fno-omit-frame-pointer"));
    assert!(flags.configure.unwrap().contains("/usr/local/pgsql"));

    let template = server::template(&cache(), &installation, &[], &1.into(), &Printed).unwrap();
    assert_eq!(template.server(), installation.identity());
    let server = template.clone_cluster(&cache(), &Printed).unwrap().start(&settings(&[])).unwrap();
    let (version, _) = server.version().unwrap();
    assert_eq!(version, installation.version().to_string());
    let mut client = server.session("pgdyno").unwrap();
    let accounts: i64 = client.query_one("select count(*) from pgbench_accounts").unwrap();
    assert_eq!(accounts, 100_000);
    client.execute("do $$ begin perform 1; end $$").unwrap();
    for extension in ["pg_prewarm", "pg_stat_statements", "pg_buffercache"] {
        client.execute(&format!("create extension {extension}")).unwrap();
    }
    drop(client);
    server.stop(StopMode::Fast).unwrap();
    template.remove(&cache()).unwrap();
}
