//! Tables and pgbench-tools' exports: mapped columns and bad rows.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeMap;
use std::path::Path;

use import::csv::{self, LatencyFigure, Mapping};
use import::{Import, Source, pgbench_tools};
use model::cell::Level;
use model::factor::Factor;
use proptest::prelude::*;

fn data(name: &str) -> Source {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name).as_path().into()
}

fn text(text: &str) -> Source {
    Source::Bytes("table.csv".to_owned(), text.as_bytes().to_vec())
}

fn mapping(factors: &[(Factor, &str)]) -> Mapping {
    Mapping {
        factors: factors.iter().map(|(factor, column)| (*factor, (*column).to_owned())).collect(),
        tps: "tps".to_owned(),
        ..Mapping::default()
    }
}

fn clients(source: &Source) -> Result<Import, String> {
    csv::read(source, &mapping(&[(Factor::Clients, "clients")]), false).map_err(|error| error.to_string())
}

#[test]
fn the_client_sweep_is_read_row_by_row() {
    let mut mapping = mapping(&[(Factor::Kernel, "kernel"), (Factor::Clients, "clients")]);
    mapping.repeat = Some("run".to_owned());
    mapping.levels.insert(Factor::Workload, "select-only".to_owned());
    let import = csv::read(&data("client-sweep-2008.csv"), &mapping, false).unwrap();
    assert_eq!((import.drafts.len(), import.skipped.len()), (299, 0));
    let first = &import.drafts[0];
    assert_eq!(first.cell.to_string(), "kernel 2.6.25-remote, workload select-only, clients 1");
    assert_eq!((first.line, first.repeat, first.summary.tps), (Some(2), 1, 3057.844199));
    assert_eq!((first.summary.latency.clone(), first.summary.transactions), (None, None));
    assert!(
        import.drafts.iter().zip(2..).all(|(draft, line)| draft.line == Some(line)),
        "in the order of the rows"
    );
}

#[test]
fn the_history_of_kernels_is_read_with_a_column_of_another_name() {
    let factors = [
        (Factor::Kernel, "kernel"),
        (Factor::Scale, "scale"),
        (Factor::Workload, "mode"),
        (Factor::Clients, "clients"),
    ];
    let import = csv::read(&data("kernels-2016-read-only.csv"), &mapping(&factors), false).unwrap();
    assert_eq!(import.drafts.len(), 891);
    assert_eq!(import.unused, ["run"]);
    let kernels = Factor::Kernel.levels(import.drafts.iter().map(|draft| &draft.cell));
    assert_eq!((kernels.len(), kernels[0].as_str()), (33, "2.6.39"));
    assert_eq!(Factor::Workload.level(&import.drafts[0].cell), "read-only");
    assert!(import.drafts.iter().all(|draft| (1..=3).contains(&draft.repeat)));
}

#[test]
fn bad_rows_are_reported_with_line_and_column_and_nothing_is_imported() {
    let table = text("clients,tps\n1,100\ntwo,100\n\n4,fast\n8,0\n16,\n32\n64,640\n");
    assert_eq!(
        clients(&table).unwrap_err(),
        "table.csv: nothing was imported: 5 rows are invalid:\n  \
         line 3, column clients: `two` is not a number for clients: expected 1, 2, 3, …\n  \
         line 5, column tps: `fast` is not a number\n  \
         line 6, column tps: 0 transactions per second are not a measurement\n  \
         line 7, column tps: the field is empty\n  \
         line 8: the row has 1 fields, the header 2\n\
         Correct the file, or skip these rows with --skip-bad"
    );
    let rest = csv::read(&table, &mapping(&[(Factor::Clients, "clients")]), true).unwrap();
    let lines: Vec<_> = rest.drafts.iter().map(|draft| draft.line).collect();
    assert_eq!((lines, rest.skipped.len()), (vec![Some(2), Some(9)], 5));
}

#[test]
fn an_invalid_table_is_rejected_with_the_reason() {
    assert!(clients(&text("")).unwrap_err().contains("the file is empty"));
    assert!(clients(&text("clients,tps\n")).unwrap_err().contains("a header but no rows"));
    assert!(clients(&text("clients,tps,tps\n1,2,3\n")).unwrap_err().contains("two columns \"tps\""));
    assert_eq!(
        clients(&text("sessions,tps\n1,2\n")).unwrap_err(),
        "table.csv has no column \"clients\"; it has sessions, tps"
    );
}

#[test]
fn other_separators_quotes_and_byte_order_marks_are_accepted() {
    for table in [
        "\u{feff}clients,tps\r\n8,100.5\r\n",
        "clients;tps\n8;100.5\n",
        "clients\ttps\n8\t100.5\n",
        "clients|tps\n 8 | 100.5\n",
        "tps,\"clients\"\n\"100.5\",\"8\"",
    ] {
        let import = clients(&text(table)).unwrap();
        let draft = &import.drafts[0];
        assert_eq!(
            (draft.cell.clients, draft.summary.tps, draft.line),
            (Level::Known(8), 100.5, Some(2)),
            "{table:?}"
        );
    }
}

#[test]
fn rows_with_the_same_cell_and_repeat_are_rejected() {
    let mut mapping = mapping(&[(Factor::Clients, "clients")]);
    mapping.repeat = Some("run".to_owned());
    let table = text("kernel,clients,run,tps\na,1,1,100\nb,1,1,200\n");
    let error = csv::read(&table, &mapping, false).unwrap_err().to_string();
    assert!(error.contains("line 3, column run: line 2 is repeat 1 of the same cell"), "{error}");
}

#[test]
fn times_and_latencies_are_imported_and_no_others_are_derived() {
    let mut mapping = mapping(&[(Factor::Clients, "clients")]);
    mapping.started = Some("at".to_owned());
    mapping.latency_ms =
        [(LatencyFigure::Mean, "ms".to_owned()), (LatencyFigure::P999, "worst".to_owned())].into();
    let table = text(
        "clients,tps,at,ms,worst\n1,10,2016-03-01 12:00:00+01,1.5,20\n1,10,2016-03-01 11:00:00,,\n1,10,2016-03-01,0,\n",
    );
    let import = csv::read(&table, &mapping, false).unwrap();
    let started: Vec<String> = import.drafts.iter().map(|draft| draft.started.unwrap().to_string()).collect();
    assert_eq!(started, ["2016-03-01T11:00:00Z", "2016-03-01T11:00:00Z", "2016-03-01T00:00:00Z"]);
    let latency = import.drafts[0].summary.latency.clone().unwrap();
    assert_eq!((latency.mean_us, latency.p50_us, latency.stddev_us), (Some(1500.0), None, None));
    assert_eq!(latency.p999_us, Some(20_000.0));
    assert_eq!(import.drafts[1].summary.latency, None);
    let error = csv::read(&text("clients,tps,at,ms,worst\n1,10,soon,1,2\n"), &mapping, false)
        .unwrap_err()
        .to_string();
    assert!(error.contains("line 2, column at: `soon` is not a time"), "{error}");
}

#[test]
fn pgbench_tools_tests_are_read_with_the_names_of_their_sets() {
    let (tests, sets) = (data("pgbench-tools/tests.csv"), data("pgbench-tools/testset.csv"));
    let none = BTreeMap::new();
    let error = pgbench_tools::read(&tests, Some(&sets), &none, false).unwrap_err().to_string();
    assert!(error.contains("line 5, column tps: 0 transactions per second"), "{error}");
    let import = pgbench_tools::read(&tests, Some(&sets), &none, true).unwrap();
    let cells: Vec<String> =
        import.drafts.iter().map(|draft| format!("{} #{}", draft.cell, draft.repeat)).collect();
    assert_eq!(
        cells,
        [
            "settings shared_buffers 128MB, workload select.sql, scale 100, clients 8, threads 4, rate max #1",
            "settings shared_buffers 128MB, workload select.sql, scale 100, clients 8, threads 4, rate max #2",
            "settings shared_buffers 8GB, big, workload tpc-b.sql, scale 100, clients 8, threads 4, rate 500 #1",
        ]
    );
    let first = &import.drafts[0];
    let latency = first.summary.latency.clone().unwrap();
    assert_eq!((latency.mean_us, latency.p90_us, latency.p50_us), (Some(660.0), Some(910.0), None));
    assert_eq!((first.database_bytes, first.summary.transactions), (Some(1_580_000_000), Some(722_070)));
    assert_eq!(first.started.unwrap().to_string(), "2012-05-01T10:00:00.5Z");
    assert_eq!(import.unused, ["test", "wal_written", "cleanup"]);
    let unnamed = pgbench_tools::read(&tests, None, &none, true).unwrap();
    assert_eq!(Factor::Settings.level(&unnamed.drafts[2].cell), "set 2");
}

#[test]
fn the_newer_tables_of_pgbench_tools_have_servers_and_versions() {
    let tests = text(
        "server,test,set,tps,script,clients,server_version,percentile_99_latency\n\
         box1,1,1,100,select,1,\"PostgreSQL 13.1 on x86_64-pc-linux-gnu, compiled by gcc\",2.5\n\
         box2,1,1,100,select,1,\"PostgreSQL 13.1 on x86_64-pc-linux-gnu, compiled by gcc\",\n",
    );
    let sets = text("server,set,info\nbox1,1,same\nbox2,1,same\n");
    let import = pgbench_tools::read(&tests, Some(&sets), &BTreeMap::new(), false).unwrap();
    assert_eq!(
        import.drafts[0].cell.to_string(),
        "server 13.1, settings same (1), host box1, workload select, clients 1"
    );
    assert!(import.drafts[0].server_banner.as_ref().unwrap().starts_with("PostgreSQL 13.1 on"));
    assert_eq!(import.drafts[1].summary.latency, None);
}

proptest! {
    #[test]
    fn arbitrary_tables_do_not_panic(table in "((clients|tps|\"|,|;|\n|[0-9.]{1,3}|\\PC){1}){0,60}") {
        let _ = clients(&text(&format!("clients,tps\n{table}")));
        let _ = clients(&text(&table));
        let _ = pgbench_tools::read(&text(&format!("clients,tps,set\n{table}")), Some(&text(&table)), &BTreeMap::new(), true);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let with_header = [b"clients,tps\n", bytes.as_slice()].concat();
        let _ = clients(&Source::Bytes("x".to_owned(), with_header));
    }
}
