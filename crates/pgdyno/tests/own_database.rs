//! Campaigns on a database of the user's own.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::collections::BTreeSet;
use std::fs;

use host::{Cache, Contents, NoProgress};
use model::dataset::DatabaseKind;
use model::record::Status;
use support::{Bench, text};

const ROWS: u64 = 1000;

/// What pg_dump writes of a table with rows, whose owner no server has.
fn dump(note: &str) -> String {
    let rows: String = (1..=ROWS).map(|id| format!("{id}\t{note} {id}; \\\\ \\N\n")).collect();
    format!(
        "--\n-- PostgreSQL database dump\n--\n\n\\restrict abc\n\nSET client_encoding = 'UTF8';\n\
         SELECT pg_catalog.set_config('search_path', '', false);\n\n\
         CREATE TABLE public.notes (\n    id bigint NOT NULL,\n    note text\n);\n\n\
         ALTER TABLE public.notes OWNER TO writer_of_notes;\n\n\
         COPY public.notes (id, note) FROM stdin;\n{rows}\\.\n\n\
         ALTER TABLE ONLY public.notes\n    ADD CONSTRAINT notes_pkey PRIMARY KEY (id);\n\n\
         --\n-- PostgreSQL database dump complete\n--\n\n\\unrestrict abc\n"
    )
}

const CAMPAIGN: &str = "name = 'own'\n[factors]\nserver = ['15', '18']\nsettings = ['quick']\nworkload = ['append', 'look']\nscale = [7, 8]\n\
     clients = [2]\n[run]\nduration = '300ms'\nwarmup = '0ms'\nrepeats = 2\nseed = 1\n\
     [settings.quick]\nsynchronous_commit = false\n[datasets.notes]\ndump = 'notes.sql'\n\
     [workloads.append]\nscript = 'append.sql'\nsetup = 'sequence.sql'\nteardown = 'check.sql'\ndataset = 'notes'\n\
     [workloads.look]\nscript = 'look.sql'\nwrites = false\ndataset = 'notes'\n";

fn bench(campaign: &str) -> Bench {
    let bench = Bench::new(campaign);
    for (name, text) in [
        ("notes.sql", dump("first")),
        ("append.sql", "insert into notes values (nextval('ids'), 'new');\n".to_owned()),
        ("look.sql", format!("\\set id random(1, {ROWS})\nselect note from notes where id = :id;\n")),
        ("sequence.sql", format!("create sequence ids start {};\n", ROWS + 1)),
        (
            "check.sql",
            "do $$ begin raise exception '% rows', (select count(*) from notes); end $$;\n".to_owned(),
        ),
    ] {
        fs::write(bench.path().join(name), text).unwrap();
    }
    bench
}

/// Names of the data sets that were restored from the dump of a bench.
fn restored(bench: &Bench) -> BTreeSet<String> {
    let content = Contents::read(&bench.path().join("notes.sql"), &NoProgress).unwrap().sha256;
    let templates = server::templates(&Cache::open().unwrap()).unwrap().into_iter();
    let of_dump = templates.filter(|one| one.own().is_some_and(|own| own.content.as_ref() == Some(&content)));
    of_dump.map(|template| format!("{} {}", template.name(), template.made())).collect()
}

fn remove(restored: &BTreeSet<String>) {
    let cache = Cache::open().unwrap();
    for template in server::templates(&cache).unwrap() {
        if restored.iter().any(|name| name.starts_with(&format!("{} ", template.name()))) {
            template.remove(&cache).unwrap();
        }
    }
}

#[test]
fn every_trial_begins_with_the_content_of_the_dump() {
    let bench = bench(CAMPAIGN);
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(trials.len(), 2 * 2 * 2, "scale does not apply");
    for trial in &trials {
        let record = bench.store().load(&trial.id).unwrap();
        let context = format!("{}: {:?} {:?}", trial.cell, trial.validity, record.events);
        assert_ne!(trial.validity.status, Status::Invalid, "{context}");
        assert_eq!(trial.accounting.surplus(), Some(0), "{context}");
        let workload = trial.cell.workload.known().unwrap();
        let own = workload.own_database().unwrap();
        assert_eq!((own.name.as_str(), own.kind), ("notes", DatabaseKind::Dump), "{context}");
        assert_eq!(
            own.content,
            Some(Contents::read(&bench.path().join("notes.sql"), &NoProgress).unwrap().sha256)
        );
        let relations = record.environment.server.relations.iter().flatten();
        assert_eq!(relations.map(|table| table.name.as_str()).collect::<Vec<_>>(), ["notes"], "{context}");
        if workload.name() == "append" {
            let rows = format!("{} rows", ROWS + trial.accounting.driver_transactions.unwrap());
            assert!(record.events.iter().any(|event| event.message.contains(&rows)), "{rows}: {context}");
        }
    }

    let planned = text(&bench.pgdyno(&["plan", "campaign.toml"]));
    let hash = &Contents::read(&bench.path().join("notes.sql"), &NoProgress).unwrap().sha256[..12];
    assert!(planned.contains(&format!("look: on the dump notes ({hash}, ")), "{planned}");

    // Its cells have the name of the data set, and where there is a title the size, in place of a scale.
    let shown = |args: &[&str]| {
        let shown = text(&bench.pgdyno(args));
        assert!(shown.contains("data set notes") && !shown.contains("scale 1"), "{args:?}: {shown}");
        shown
    };
    assert!(planned.contains("data set notes"), "{planned}");
    shown(&["compare", "server=15", "server=18"]);
    shown(&["show", "workload=look"]);
    shown(&["show", &trials[0].id]);
    shown(&["store", "list"]);
    let report = shown(&["report", "--format", "table"]);
    let sized = report.lines().any(|line| line.contains("data set notes (") && line.contains("iB)"));
    assert!(sized, "{report}");

    // The dump is restored once per server and setup.
    let before = restored(&bench);
    assert_eq!(before.len(), 2 * 2, "{before:?}");
    let output = bench.pgdyno(&["run", "campaign.toml", "--set", "repeats=1", "--set", "server=18"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(restored(&bench), before);
    let listed = text(&bench.pgdyno(&["dataset", "list"]));
    assert!(listed.lines().any(|line| line.contains("-dump-") && line.contains("dump notes")), "{listed}");

    // A run continues without the dump, and not with another one.
    let remaining = ["resume", "--set", "repeats=2"];
    fs::rename(bench.path().join("notes.sql"), bench.path().join("moved.sql")).unwrap();
    let output = bench.pgdyno(&remaining);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    fs::write(bench.path().join("notes.sql"), dump("other")).unwrap();
    let output = text(&bench.pgdyno(&["resume", "campaign.toml", "--set", "server=18"]));
    assert!(output.contains("new: 2 cells") && output.contains("removed"), "{output}");
    fs::rename(bench.path().join("moved.sql"), bench.path().join("notes.sql")).unwrap();
    remove(&before);
    assert!(restored(&bench).is_empty());
}

#[test]
fn databases_that_do_not_fit_are_refused_by_plan() {
    let bench = bench(CAMPAIGN);
    let path = bench.path().join("campaign.toml");
    let backup = bench.path().join("backup");
    fs::create_dir_all(backup.join("pg_tblspc")).unwrap();
    fs::write(backup.join("PG_VERSION"), "15\n").unwrap();
    for (from, to, expected) in [
        ("dump = 'notes.sql'", "dump = 'nonesuch.sql'", "the dump of the data set \"notes\" can't be read"),
        ("dump = 'notes.sql'", "dump = 'backup'", "a directory without toc.dat"),
        ("dump = 'notes.sql'", "base_backup = 'backup'", "name the tested one: `database"),
        (
            "dump = 'notes.sql'",
            "base_backup = 'backup'\ndatabase = 'notes'",
            "it is of PostgreSQL 15, and a server of 18 can't read its files",
        ),
        ("dump = 'notes.sql'", "template = 'template1'", "other than template0 and template1"),
        (
            "dump = 'notes.sql'",
            "template = 'notes'",
            "its data set \"notes\" is a database of a running server",
        ),
        ("dump = 'notes.sql'", "dump = 'notes.sql'\ntemplate = 'x'", "has no source, or several"),
        ("dataset = 'notes'", "dataset = 'other'", "there is no data set \"other\""),
        ("dataset = 'notes'", "dataset = 'notes'\ntables = 'pgbench'", "`dataset` replaces pgbench's tables"),
        (
            "dataset = 'notes'",
            "dataset = 'notes'\nbackground = [{ workload = 'select-only' }]",
            "\"select-only\" runs on another data set than \"append\"",
        ),
    ] {
        fs::write(&path, CAMPAIGN.replacen(from, to, 1)).unwrap();
        let output = bench.pgdyno(&["plan", "campaign.toml"]);
        let shown = text(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(output.status.code() == Some(2) && shown.contains(expected), "{to}: {shown}");
    }
}

#[test]
fn ab_compares_on_a_dump() {
    let bench = bench("");
    // Tests that run at the same time have data sets of their own.
    fs::write(bench.path().join("notes.sql"), dump("compared")).unwrap();
    let printed = bench.pgdyno(&[
        "ab",
        "18",
        "18",
        "--dump",
        "notes.sql",
        "look.sql",
        "--read-only",
        "--print-campaign",
    ]);
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(
        printed.contains("[datasets.dump]\ndump = \"/") && printed.contains("/notes.sql\"\n"),
        "{printed}"
    );
    assert!(printed.contains("dataset = \"dump\"\n") && !printed.contains("scale"), "{printed}");
    let output = bench.pgdyno(&["ab", "17", "18", "--dump", "notes.sql"]);
    assert!(
        output.status.code() == Some(2) && text(&output).contains("--dump needs scripts"),
        "{}",
        text(&output)
    );

    let load = ["look.sql", "--read-only", "-c", "2", "--allow-concurrent", "--pin", "none", "--count=never"];
    let time = ["--margin", "60%", "--max-time", "10min"];
    let output = bench.pgdyno(&[&["ab", "18", "18", "--dump", "notes.sql"], &load[..], &time].concat());
    let shown = text(&output);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(shown.contains("EQUIVALENT"), "{shown}");
    let trials = bench.trials();
    assert!(trials.iter().all(|trial| trial.cell.workload.known().unwrap().own_database().is_some()));
    remove(&restored(&bench));
}
