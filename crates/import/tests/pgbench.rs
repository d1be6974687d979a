//! Outputs and logs of pgbench of all majors are read correctly.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeMap;
use std::path::Path;

use import::pgbench::{Run, read};
use import::{Draft, Source};
use model::factor::Factor;
use proptest::prelude::*;

fn data(name: &str) -> Source {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pgbench").join(name).as_path().into()
}

fn draft(run: &Run) -> Draft {
    let mut drafts = read(std::slice::from_ref(run), &BTreeMap::new()).unwrap().drafts;
    assert_eq!(drafts.len(), 1);
    drafts.remove(0)
}

fn draft_of_output(name: &str) -> Draft {
    draft(&Run { output: Some(data(name)), ..Run::default() })
}

fn draft_of_logs(logs: &[&str]) -> Draft {
    draft(&Run { logs: logs.iter().map(|log| data(log)).collect(), ..Run::default() })
}

fn import_error(run: &Run) -> String {
    read(std::slice::from_ref(run), &BTreeMap::new()).unwrap_err().to_string()
}

#[test]
fn the_report_of_every_major_is_read() {
    let rows = [
        "v9.0.out",
        "v9.5.out",
        "v11.out",
        "v14.out",
        "v15-threads.out",
        "v15-mix.out",
        "v15-custom.out",
        "v15-connect.out",
        "v17-select.out",
        "v18-select.out",
    ]
    .map(|name| {
        let draft = draft_of_output(name);
        let mean = draft.summary.latency.and_then(|latency| latency.mean_us);
        format!(
            "{name}: {}; {:.3} tps, {:?} µs, {:?}",
            draft.cell, draft.summary.tps, mean, draft.server_version
        )
    });
    let expected = [
        "v9.0.out: workload tpcb-like, scale 10, clients 10, threads 1, protocol simple, rate max, warmup 0s; 85.296 tps, None µs, None",
        "v9.5.out: workload select-only, scale 100, clients 16, threads 4, protocol prepared, rate max, duration 1min, warmup 0s; 49210.951 tps, Some(325.0) µs, None",
        "v11.out: workload insert.sql, scale 1, clients 8, threads 2, protocol extended, rate max, duration 2s, warmup 0s; 610.123 tps, Some(13071.0) µs, None",
        "v14.out: server 13.8, workload simple-update, scale 50, clients 8, threads 8, protocol simple, rate max, duration 30s, warmup 0s; 2041.975 tps, Some(3918.0) µs, Some(\"13.8\")",
        // With a rate that pgbench does not report.
        "v15-threads.out: server 15.18, workload select-only, scale 1, clients 2, threads 2, protocol simple, duration 3s, warmup 0s; 317.207 tps, Some(483.0) µs, Some(\"15.18\")",
        "v15-mix.out: server 15.18, workload select-only@3+simple-update@1, scale 1, clients 2, threads 1, protocol simple, rate max, warmup 0s; 1663.810 tps, Some(1202.0) µs, Some(\"15.18\")",
        "v15-custom.out: server 15.18, workload my.sql, scale 1, clients 2, threads 1, protocol simple, rate max, warmup 0s; 3611.086 tps, Some(554.0) µs, Some(\"15.18\")",
        "v15-connect.out: server 15.18, workload select-only, scale 1, clients 2, threads 1, protocol simple, rate max, warmup 0s; 153.514 tps, Some(13028.0) µs, Some(\"15.18\")",
        "v17-select.out: server 15.18, workload select-only, scale 1, clients 2, threads 1, protocol simple, rate max, warmup 0s; 3665.979 tps, Some(546.0) µs, Some(\"15.18\")",
        "v18-select.out: server 15.18, workload select-only, scale 1, clients 2, threads 1, protocol simple, rate max, warmup 0s; 2223.442 tps, Some(900.0) µs, Some(\"15.18\")",
    ];
    assert_eq!(rows.join("\n"), expected.join("\n"));
}

#[test]
fn missing_figures_are_none_and_never_derived() {
    let old = draft_of_output("v9.0.out").summary;
    assert_eq!((old.latency, old.failed, old.connect_us), (None, None, None));
    assert_eq!((old.transactions, old.window_us), (Some(10_000), Some(117_238_316)));
    let new = draft_of_output("v15-threads.out").summary;
    assert_eq!((new.failed, new.connect_us), (Some(0), Some(7800)));
    let latency = new.latency.unwrap();
    assert_eq!((latency.stddev_us, latency.p50_us, latency.max_us), (Some(784.0), None, None));
}

#[test]
fn progress_reports_are_read_from_the_output_or_their_own_file() {
    let within = draft_of_output("v11.out");
    let seconds: Vec<u64> =
        within.intervals.iter().map(|interval| interval.scripts[0].transactions).collect();
    assert_eq!((seconds, within.intervals[0].scripts[0].script.as_str()), (vec![600, 620], "insert.sql"));
    let separate = draft(&Run {
        output: Some(data("v15-threads.out")),
        progress: Some(data("threads.err")),
        ..Run::default()
    });
    assert_eq!(separate.intervals.len(), 2);
    assert_eq!(separate.intervals[1].scripts[0].failed, Some(0));
    let mean = separate.metrics.get("pgbench.latency_mean_us", None).unwrap();
    assert_eq!(mean.points[1].value, Some(462.0));
    let other = Run { progress: Some(data("v9.0.out")), output: Some(data("v9.0.out")), ..Run::default() };
    assert!(import_error(&other).contains("no progress report"));
}

#[test]
fn histograms_of_a_log_agree_with_the_output() {
    let draft = draft(&Run {
        output: Some(data("v15-threads.out")),
        logs: vec![data("threads.log"), data("threads.log.1")],
        ..Run::default()
    });
    let latency = draft.summary.latency.unwrap();
    // pgbench's own figures, in milliseconds with three decimals; the histogram has three digits.
    assert!((latency.mean_us.unwrap() - 483.0).abs() < 1.0, "{latency:?}");
    assert!((latency.stddev_us.unwrap() - 784.0).abs() < 2.0, "{latency:?}");
    assert!(latency.p50_us < latency.p99_us && latency.p99_us <= latency.max_us);
    let seconds: u64 = draft.intervals.iter().flat_map(|i| &i.scripts).map(|s| s.transactions).sum();
    assert_eq!(Some(seconds), draft.summary.transactions);
    assert!(draft.notes.is_empty(), "{:?}", draft.notes);
    let length_us: u64 = draft.intervals.iter().map(|interval| interval.width_us).sum();
    assert!((2_900_000..3_100_000).contains(&length_us), "{length_us}");
    assert_eq!(draft.started.unwrap().strftime("%Y-%m-%d").to_string(), "2026-11-22");
}

#[test]
fn an_incomplete_log_is_noted() {
    let part =
        Run { output: Some(data("v15-threads.out")), logs: vec![data("threads.log")], ..Run::default() };
    let notes = draft(&part).notes;
    assert_eq!(
        notes,
        ["the log has 457 of the 949 transactions that pgbench counted: latencies and seconds are of these"]
    );
}

#[test]
fn scripts_are_distinguished_by_name() {
    let run = Run { output: Some(data("v15-mix.out")), logs: vec![data("mix.log")], ..Run::default() };
    let draft = draft(&run);
    let mut scripts: BTreeMap<&str, u64> = BTreeMap::new();
    for script in draft.intervals.iter().flat_map(|interval| &interval.scripts) {
        *scripts.entry(&script.script).or_default() += script.transactions;
    }
    assert_eq!(scripts, BTreeMap::from([("select-only@3", 72), ("simple-update@1", 28)]));
}

#[test]
fn the_throughput_of_a_log_without_output_is_computed() {
    let draft = draft_of_logs(&["v9.3-transactions.log"]);
    // Four transactions from 1175850568.993357 to 1175850569.003000.
    assert!((draft.summary.tps - 4.0 / 0.009_643).abs() < 0.1, "{}", draft.summary.tps);
    assert_eq!((draft.summary.transactions, draft.summary.failed), (Some(4), Some(1)));
    assert_eq!(draft.intervals.len(), 2);
    assert_eq!(Factor::Clients.known_level(&draft.cell), None);
    assert!(draft.notes[0].contains("throughput is that of the log"));
}

#[test]
fn aggregated_logs_have_mean_and_extremes_but_no_percentiles() {
    let old = draft_of_logs(&["v9.3-aggregate.log"]);
    let widths: Vec<u64> = old.intervals.iter().map(|interval| interval.width_us).collect();
    assert_eq!(widths, [2_000_000; 4], "the last one is cut short");
    assert_eq!(old.summary.tps, f64::from(5601 + 7884 + 7208 + 7685) / 8.0);
    let latency = old.summary.latency.unwrap();
    assert_eq!((latency.min_us, latency.max_us, latency.p50_us), (Some(59.0), Some(2573.0), None));
    assert!((latency.mean_us.unwrap() - 9_462_025.0 / 35_451.0).abs() < 1e-9);

    let run = Run {
        output: Some(data("v15-agg.out")),
        logs: vec![data("agg.log"), data("agg.log.1")],
        ..Run::default()
    };
    let new = draft(&run);
    let seconds: Vec<u64> = new.intervals.iter().map(|interval| interval.scripts[0].transactions).collect();
    assert_eq!((seconds, new.summary.tps), (vec![668 + 744, 983 + 1254], 2083.906986));
    assert_eq!(new.intervals[0].scripts[0].failed, None, "a 0 there may be of what was not counted");
    let max = new.metrics.get("pgbench.latency_max_us", None).unwrap();
    assert_eq!(max.points[0].value, Some(41_737.0));
}

#[test]
fn an_invalid_log_is_reported_with_its_line() {
    let bytes = |text: &str| Source::Bytes("a.log".to_owned(), text.as_bytes().to_vec());
    let log_error = |logs: &[Source]| import_error(&Run { logs: logs.to_vec(), ..Run::default() });
    let error = log_error(&[bytes("0 1 100 0 1175850568 1\nhello\n")]);
    assert!(error.starts_with("a.log, line 2: not a line of a pgbench log"), "{error}");
    let error = log_error(&[data("agg.log"), data("mix.log")]);
    assert!(error.contains("mix.log, line 1: the format of the log differs"), "{error}");
    assert!(log_error(&[bytes("")]).contains("the log is empty"));
    assert!(log_error(&[bytes("0 1 100 0 5 1\n0 2 100 0 1175850568 1\n")]).contains("too long for one run"));
    assert!(log_error(&[bytes("0 1 failed 0 1175850568 1\n")]).contains("no transaction succeeded"));
    let missing = Run { output: Some(Path::new("/nowhere/x.out").into()), ..Run::default() };
    assert!(import_error(&missing).contains("/nowhere/x.out can't be read"));
}

#[test]
fn given_levels_apply_to_all_runs() {
    let levels = BTreeMap::from([(Factor::Server, "14".to_owned()), (Factor::Rate, "300".to_owned())]);
    let run = Run { output: Some(data("v15-threads.out")), ..Run::default() };
    let import = read(&[run.clone(), run], &levels).unwrap();
    let cells: Vec<_> =
        import.drafts.iter().map(|draft| (Factor::Server.level(&draft.cell), draft.repeat)).collect();
    assert_eq!(cells, [("14".to_owned(), 1), ("14".to_owned(), 2)]);
    assert_eq!(Factor::Rate.level(&import.drafts[0].cell), "300");
}

proptest! {
    #[test]
    fn arbitrary_files_do_not_panic(
        output in "((transaction type|tps|duration|scaling factor|latency average|number of clients)(: | = )[0-9a-z.<> ]{0,12}\n){0,6}",
        log in "(([0-9]{1,20}|skipped|failed|-1|nan)( |\n)){0,40}",
    ) {
        let bytes = |text: &str| Source::Bytes("x".to_owned(), text.as_bytes().to_vec());
        let levels = BTreeMap::new();
        let _ = read(&[Run { output: Some(bytes(&output)), ..Run::default() }], &levels);
        let _ = read(&[Run { logs: vec![bytes(&log)], ..Run::default() }], &levels);
        let with = Run { output: Some(bytes("tps = 1 (x)")), logs: vec![bytes(&log)], ..Run::default() };
        let _ = read(&[with], &levels);
    }

    #[test]
    fn arbitrary_transaction_logs_do_not_panic(
        entries in prop::collection::vec((0_u32..4, any::<u32>(), 0_i64..4_000_000_000, 0_i64..1_000_000), 0..20)
    ) {
        let line = |(client, us, seconds, micros): &(u32, u32, i64, i64)| format!("{client} 1 {us} 0 {seconds} {micros}\n");
        let text: String = entries.iter().map(line).collect();
        let log = Source::Bytes("x".to_owned(), text.into_bytes());
        let _ = read(&[Run { logs: vec![log], ..Run::default() }], &BTreeMap::new());
    }
}
