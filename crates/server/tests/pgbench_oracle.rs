//! pgdyno's data set against pgbench's own: the same tables, rows, order and sizes. Runs if a pgbench is installed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::process::Command;

use model::message::Endpoint;
use model::workload::Transport;
use server::Server;
use skip::skip;
use support::{cache, settings, template};

const SCALE: u32 = 2;

#[test]
fn the_data_set_equals_that_of_pgbench() {
    let Some(major) = pgbench_major() else {
        return skip("pgbench is not installed");
    };
    let server = template(&major, SCALE)
        .clone_cluster(&cache(), &host::NoProgress)
        .unwrap()
        .start(&settings(&[]))
        .unwrap();
    pgbench_init(&server);
    for (what, query) in QUERIES {
        let ours = rows(&server, "pgdyno", query);
        let expected = rows(&server, "oracle", query);
        assert!(!ours.is_empty(), "{what}");
        assert_eq!(ours, expected, "{what}");
    }
}

/// Queries that must agree. Each returns rows of one text.
const QUERIES: [(&str, &str); 5] = [
    (
        "columns",
        "select format('%s.%s %s %s %s %s', c.relname, a.attnum, a.attname, format_type(atttypid, atttypmod), attnotnull,
                attstorage)
         from pg_attribute a join pg_class c on c.oid = attrelid
         where relname like 'pgbench_%' and attnum > 0 and relkind = 'r' order by 1",
    ),
    (
        "tables and indexes: options, size on disk, pages, rows, visibility",
        "select format('%s %s %s %s %s %s %s', relname, relkind, reloptions, pg_relation_size(oid), relpages, reltuples,
                relallvisible)
         from pg_class where relname like 'pgbench_%' order by 1",
    ),
    ("keys", "select format('%s %s', conname, pg_get_constraintdef(oid)) from pg_constraint
              where conrelid::regclass::text like 'pgbench_%' order by 1"),
    (
        "rows, as they lie on the disk",
        "select md5(string_agg(r, E'\\n')) from (
             (select ctid::text || t::text r from pgbench_branches t order by ctid) union all
             (select ctid::text || t::text r from pgbench_tellers t order by ctid) union all
             (select ctid::text || t::text r from pgbench_accounts t order by ctid) union all
             (select ctid::text || t::text r from pgbench_history t order by ctid)) r",
    ),
    (
        "null or padded, and how large",
        "select format('%s %s %s', n, count(*), sum(size)) from (
             select 'branches ' || (filler is null) n, pg_column_size(t.*) size from pgbench_branches t union all
             select 'tellers ' || (filler is null), pg_column_size(t.*) from pgbench_tellers t union all
             select 'accounts ' || octet_length(filler), pg_column_size(t.*) from pgbench_accounts t) s
         group by n order by 1",
    ),
];

fn pgbench_major() -> Option<String> {
    let output = Command::new("pgbench").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.split_whitespace().nth(2)?.split('.').next()?.to_owned())
}

fn pgbench_init(server: &Server) {
    server.session("postgres").unwrap().execute("create database oracle").unwrap();
    let Endpoint::Unix { directory, port } = server.endpoint(Transport::Unix) else { panic!("not a socket") };
    let output = Command::new("pgbench")
        .args([
            "-i",
            "-s",
            &SCALE.to_string(),
            "-h",
            &directory,
            "-p",
            &port.to_string(),
            "-U",
            "postgres",
            "oracle",
        ])
        .env_remove("PGOPTIONS")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn rows(server: &Server, database: &str, query: &str) -> Vec<String> {
    server.session(database).unwrap().query(query).unwrap()
}
