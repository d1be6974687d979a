//! Results of `pgdyno compare`, and its errors for trials that it can't compare.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

#[path = "../../analysis/tests/fixture/bundles.rs"]
mod bundles;

use std::collections::BTreeMap;

use analysis::compare::{Compared, Request, compare};
use analysis::judgement::{Outcome, Row};
use analysis::select::{RunSelection, Selector};
use bundles::{Bundles, cell, record, run, with_metric, with_setting, with_validity};
use model::cell::Cell;
use model::environment::KernelConfig;
use model::metrics::{Better, Kind};
use model::record::{Log, Status};
use plaintext::table::Format;
use report::Terminal;
use report::compare::{Document, text};

const STEADY: [f64; 5] = [1000.0, 1005.0, 995.0, 1002.0, 998.0];

fn times(factor: f64) -> [f64; 5] {
    STEADY.map(|value| value * factor)
}

fn request(selectors: &[&str], metrics: &[&str], gates: &[&str]) -> Request {
    Request {
        selectors: selectors.iter().map(|text| text.parse::<Selector>().unwrap()).collect(),
        run: RunSelection::Latest,
        metrics: metrics.iter().map(|text| text.parse().unwrap()).collect(),
        gates: gates.iter().map(|text| text.parse().unwrap()).collect(),
        margins: Vec::new(),
    }
}

fn compared(bundles: &Bundles, selectors: &[&str]) -> Compared {
    compare(&bundles.reader(), &request(selectors, &["tps"], &[])).unwrap()
}

fn refused(bundles: &Bundles, selectors: &[&str]) -> String {
    compare(&bundles.reader(), &request(selectors, &["tps"], &[])).unwrap_err().to_string()
}

fn verdicts(compared: &Compared) -> Vec<&'static str> {
    let table = &compared.metrics[0];
    table.rows.iter().map(|row| row.judged.outcome.name(table.metric.better())).collect()
}

/// Two servers by two numbers of clients: 18 is slower with 8.
fn sweep() -> Bundles {
    let mut bundles = Bundles::new();
    bundles.runs(&cell("17", 1), &STEADY);
    bundles.runs(&cell("17", 8), &times(4.0));
    bundles.runs(&cell("18", 1), &times(1.001));
    bundles.runs(&cell("18", 8), &times(3.4));
    bundles
}

/// The rows of a file, each a map from a column's name to the field.
fn rows(csv: &'static str) -> Vec<BTreeMap<&'static str, &'static str>> {
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines.map(|line| names.iter().copied().zip(line.split(',')).collect()).collect()
}

fn number(row: &BTreeMap<&str, &str>, column: &str) -> f64 {
    row[column].parse().unwrap()
}

#[track_caller]
fn equal(row: &BTreeMap<&str, &str>, column: &str, ours: f64) {
    let theirs = number(row, column);
    assert!((ours - theirs).abs() <= 1e-4 * theirs.abs(), "{column}: {ours} here, {theirs} in {row:?}");
}

/// The client sweep of 2008 as bundles, compared kernel by kernel: each pair of kernels is one command.
#[test]
fn the_client_sweep_of_2008_gets_the_expected_verdicts() {
    let mut bundles = Bundles::new();
    for row in rows(include_str!("../../stats/tests/data/client-sweep-2008.csv")) {
        let mut cell = cell("8.3", row["clients"].parse().unwrap());
        cell.kernel = Some(row["kernel"].to_owned());
        bundles.write(record(cell, number(&row, "tps")));
    }
    let expected = rows(include_str!("../../stats/tests/data/client-sweep-2008.expected-compare.csv"));
    let pairs: Vec<_> =
        expected.chunk_by(|one, next| (one["a"], one["b"]) == (next["a"], next["b"])).collect();
    assert_eq!((pairs.len(), expected.len()), (4, 52));
    for pair in pairs {
        let [a, b] = ["a", "b"].map(|side| format!("kernel={}", pair[0][side]));
        let compared = compared(&bundles, &[&a, &b]);
        let ours = &compared.metrics[0].rows;
        assert_eq!(ours.len(), pair.len());
        for (expected, row) in pair.iter().zip(ours) {
            let levels = &compared.pairs[0].cells[row.cell];
            let clients = levels.iter().find(|(factor, _)| factor.name() == "clients").unwrap();
            assert_eq!(clients.1, expected["clients"]);
            let comparison = row.judged.comparison.as_ref().unwrap();
            assert_eq!(row.judged.outcome.name(Better::Higher), expected["verdict"], "{expected:?}");
            assert_eq!(comparison.a.class().unwrap().to_string(), expected["cls_a"], "{expected:?}");
            assert_eq!(comparison.b.class().unwrap().to_string(), expected["cls_b"], "{expected:?}");
            equal(expected, "med_a", comparison.a.median);
            equal(expected, "med_b", comparison.b.median);
            equal(expected, "ratio_med", comparison.median_ratio());
            equal(expected, "ratio_gm", row.ratio().unwrap());
            equal(expected, "p_holm", row.judged.p_holm.unwrap());
            let estimate = comparison.estimate.unwrap();
            equal(expected, "p_welch", estimate.p);
            let interval = estimate.confidence_interval(0.95).unwrap();
            equal(expected, "ci95_lo", interval.low);
            equal(expected, "ci95_hi", interval.high);
        }
    }
}

#[test]
fn cells_are_matched_by_what_the_selectors_do_not_name() {
    let mut bundles = sweep();
    bundles.runs(&cell("17", 32), &STEADY);
    bundles.runs(&cell("18", 64), &STEADY);
    let compared = compared(&bundles, &["server=17", "server=18"]);
    assert_eq!(verdicts(&compared), ["EQUIVALENT", "REGRESSION"]);
    let clients = |cells: &[analysis::levels::Levels]| {
        let clients = |levels: &analysis::levels::Levels| {
            levels.iter().find(|(factor, _)| factor.name() == "clients").unwrap().1.clone()
        };
        cells.iter().map(clients).collect::<Vec<_>>()
    };
    let pair = &compared.pairs[0];
    assert_eq!(clients(&pair.cells), ["1", "8"]);
    assert_eq!(
        (clients(&pair.only_baseline), clients(&pair.only_variant)),
        (vec!["32".into()], vec!["64".into()])
    );
}

#[test]
fn less_latency_is_better() {
    let bundles = sweep();
    let compared =
        compare(&bundles.reader(), &request(&["server=17", "server=18"], &["latency.p99", "tps"], &[]))
            .unwrap();
    assert_eq!(verdicts(&compared), ["EQUIVALENT", "REGRESSION"]);
    assert!(compared.metrics[0].rows[1].ratio().unwrap() > 1.1);
    assert!(compared.metrics[1].rows[1].ratio().unwrap() < 0.9);
}

/// The same trials, selected in all ways.
#[test]
fn runs_campaigns_tags_and_ids_select() {
    let mut bundles = Bundles::new();
    let second = "01KAK3W8XQ5T2M9HC4ZP7VRB0F";
    let mut ids = [Vec::new(), Vec::new()];
    for tps in STEADY {
        let mut before = record(cell("mine", 4), tps);
        before.trial.run.tags = vec!["before".to_owned()];
        ids[0].push(bundles.write(before));
        let mut after = record(cell("mine", 4), tps * 0.8);
        after.trial.run = run(second, "again");
        ids[1].push(bundles.write(after));
    }
    let [before, after] = ids.map(|ids| ids.join(","));
    for selectors in [
        ["run:01KAK3W8XQ5T2M9HC4ZP7VRB0E", "run:01KAK3W8XQ5T2M9HC4ZP7VRB0F"],
        ["campaign:sweep", "latest"],
        ["tag:before", "campaign:again,clients=4"],
        ["campaign:sweep,server=mine", "server=mine"],
        [&before, &after],
    ] {
        assert_eq!(verdicts(&compared(&bundles, &selectors)), ["REGRESSION"], "{selectors:?}");
    }
    assert!(
        refused(&bundles, &["tag:befor", "latest"])
            .contains("no trial is tagged \"befor\"; there are before")
    );
    assert!(refused(&bundles, &["campaign:x", "latest"]).starts_with("A (campaign:x): the store has no run"));
    assert!(refused(&bundles, &["latest", "01KAK3W9"]).starts_with("B (01KAK3W9): "));
}

#[test]
fn several_variants_are_each_compared_with_the_first() {
    let mut bundles = sweep();
    bundles.runs(&cell("19", 1), &times(1.3));
    let compared = compared(&bundles, &["server=17", "server=18", "server=19"]);
    assert_eq!(verdicts(&compared), ["EQUIVALENT", "REGRESSION", "IMPROVEMENT"]);
    assert_eq!(compared.pairs[1].only_baseline.len(), 1);
    // One matrix: the largest p of three is the only one that is not multiplied.
    let rows = &compared.metrics[0].rows;
    let p = |row: &Row| row.judged.comparison.as_ref().unwrap().estimate.unwrap().p;
    assert_eq!(rows[0].judged.p_holm, Some(p(&rows[0])));
    let smaller = f64::min(p(&rows[1]), p(&rows[2]));
    assert!(rows[1..].iter().any(|row| row.judged.p_holm == Some(3.0 * smaller)));
}

#[test]
fn invalid_trials_are_left_out_and_suspect_ones_are_not() {
    let mut bundles = sweep();
    bundles.write(with_validity(record(cell("18", 1), 1.0), Status::Invalid, "server-exited"));
    bundles.write(with_validity(record(cell("18", 1), 1003.0), Status::Suspect, "steal"));
    let compared = compared(&bundles, &["server=17", "server=18"]);
    let row = &compared.metrics[0].rows[0];
    assert_eq!((row.b.values.len(), row.b.suspect, row.b.invalid), (6, 1, 1));
    assert_eq!(verdicts(&compared)[0], "EQUIVALENT");
    assert!(!compared.is_invalid());
    let page = text(&compared, Format::Table, None);
    assert!(page.contains("1 invalid, not used: server-exited 1"), "{page}");
    assert!(page.contains("1 suspect, used: steal 1"), "{page}");
    assert!(page.contains("5/6†‡"), "{page}");
}

#[test]
fn a_side_without_a_usable_trial_is_invalid_and_in_no_family() {
    let mut bundles = sweep();
    bundles.runs(&cell("17", 16), &STEADY);
    bundles.write(with_validity(record(cell("18", 16), 900.0), Status::Invalid, "server-exited"));
    let compared = compared(&bundles, &["server=17", "server=18"]);
    assert_eq!(verdicts(&compared), ["EQUIVALENT", "REGRESSION", "INVALID"]);
    assert!(compared.is_invalid());
    assert_eq!(compared.metrics[0].rows[2].judged.p_holm, None);
}

#[test]
fn fewer_than_three_runs_are_insufficient() {
    let mut bundles = Bundles::new();
    bundles.runs(&cell("17", 1), &STEADY);
    bundles.runs(&cell("18", 1), &[500.0, 501.0]);
    assert_eq!(verdicts(&compared(&bundles, &["server=17", "server=18"])), ["INSUFFICIENT"]);
}

#[test]
fn a_gate_takes_a_change_and_a_size() {
    let mut bundles = sweep();
    bundles.runs(&cell("17", 2), &STEADY);
    bundles.runs(&cell("18", 2), &[700.0, 701.0]);
    let gates = ["tps < -5%", "tps < -20%", "latency.mean > 10%", "tps > 5%"];
    let compared =
        compare(&bundles.reader(), &request(&["server=17", "server=18"], &["tps"], &gates)).unwrap();
    let hit: Vec<&[usize]> = compared.gates.iter().map(|gate| gate.hit.as_slice()).collect();
    // The cells are 1, 2 and 8 clients; a gate's metric is compared too.
    assert_eq!(hit, [&[2][..], &[], &[2], &[]]);
    assert!(compared.gates.iter().all(|gate| gate.undecided == [1]));
    assert_eq!(compared.metrics.len(), 2);
    let words = compared.gates_in_words();
    assert_eq!(words[0], "gate tps < -5%: HIT by B at clients 8 (-15.0%)");
    assert!(words[1].starts_with("gate tps < -5%: not decided for B at clients 2 (-29.9%, INSUFFICIENT)"));
}

/// A certain loss of 4% is within the default margin, but neither within that of a campaign for 2% nor within a gate of 3%.
#[test]
fn the_margin_is_the_campaigns_effect_or_that_of_a_gate() {
    let bundles_with = |effect: &str| {
        let mut bundles = Bundles::new();
        for (server, tps) in [("17", [1000.0, 1001.0, 999.0]), ("18", [960.0, 961.0, 959.0])] {
            for tps in tps {
                let mut record = record(cell(server, 1), tps);
                record.trial.run.campaign_toml =
                    format!("name = 'm'\n[factors]\nserver = ['17', '18']\n[run]\n{effect}\n");
                bundles.write(record);
            }
        }
        bundles
    };
    let sides = ["server=17", "server=18"];
    let (default, fine) = (bundles_with(""), bundles_with("effect = '2%'"));
    assert_eq!(verdicts(&compared(&default, &sides)), ["EQUIVALENT"]);
    assert_eq!(verdicts(&compared(&fine, &sides)), ["REGRESSION"]);
    let given =
        |margin: &str| Request { margins: vec![margin.parse().unwrap()], ..request(&sides, &["tps"], &[]) };
    assert_eq!(verdicts(&compare(&default.reader(), &given("tps=2%")).unwrap()), ["REGRESSION"]);
    assert_eq!(verdicts(&compare(&fine.reader(), &given("10%")).unwrap()), ["EQUIVALENT"]);
    let gated = compare(&default.reader(), &request(&sides, &["tps"], &["tps < -3%"])).unwrap();
    assert_eq!((verdicts(&gated), gated.gates[0].hit.as_slice()), (vec!["REGRESSION"], &[0][..]));
    // The bound, not the margin, decides about the gate.
    let gated = compare(&fine.reader(), &request(&sides, &["tps"], &["tps < -5%"])).unwrap();
    assert!(gated.gates[0].hit.is_empty() && gated.gates[0].undecided.is_empty());
}

#[test]
fn a_halved_throughput_of_unstable_cells_is_a_regression_and_no_verdict_at_all_is_said_first() {
    let mut bundles = Bundles::new();
    bundles.runs(&cell("17", 1), &[1000.0, 1070.0, 1140.0]);
    bundles.runs(&cell("18", 1), &[500.0, 535.0, 570.0]);
    assert_eq!(verdicts(&compared(&bundles, &["server=17", "server=18"])), ["REGRESSION*"]);
    let mut bundles = Bundles::new();
    for clients in [1, 2] {
        bundles.runs(&cell("17", clients), &[1000.0, 1100.0, 1210.0]);
        bundles.runs(&cell("18", clients), &[1010.0, 1200.0, 1120.0]);
    }
    let none = compared(&bundles, &["server=17", "server=18"]);
    let sentence = analysis::compare::sentence(&none.metrics[0], 0, &none.pairs);
    assert!(sentence.starts_with("no verdict in 2 of 2 cells: too noisy (2 unstable). "), "{sentence}");
}

/// The first sentence on cells whose throughput changes by these factors: a factor of zero stands for one that is too noisy.
fn headline(factors: &[f64]) -> String {
    let mut bundles = Bundles::new();
    for (clients, factor) in (1..).zip(factors) {
        let (before, after) = match factor {
            0.0 => ([1000.0, 1100.0, 1210.0].to_vec(), [1010.0, 1200.0, 1120.0].to_vec()),
            factor => (STEADY.to_vec(), times(*factor).to_vec()),
        };
        bundles.runs(&cell("17", clients), &before);
        bundles.runs(&cell("18", clients), &after);
    }
    let compared = compared(&bundles, &["server=17", "server=18"]);
    let sentence = analysis::compare::sentence(&compared.metrics[0], 0, &compared.pairs);
    let headline = sentence.split(". ").next().unwrap();
    let without_worst = headline.split("; worst").next().unwrap();
    without_worst.split("; best").next().unwrap().to_owned()
}

#[test]
fn what_is_undecided_comes_first_if_it_is_more_than_a_tenth() {
    let mut factors = [0.0; 10];
    factors[0] = 1.0;
    assert_eq!(headline(&factors), "no verdict in 9 of 10 cells: too noisy (9 unstable); 1 equivalent");
    // A change that was found comes before everything else.
    factors[1] = 0.8;
    assert_eq!(headline(&factors), "1 of 10 cells regressed, 8 unstable, 1 equivalent");
    factors[1] = 1.2;
    assert_eq!(headline(&factors), "1 of 10 cells improved, 8 unstable, 1 equivalent");
    // A tenth is a small part.
    let mut factors = [1.0; 10];
    factors[9] = 0.0;
    assert_eq!(headline(&factors), "none of 10 cells regressed, 9 equivalent, 1 unstable");
    factors[0] = 1.2;
    assert_eq!(headline(&factors), "none of 10 cells regressed, 1 improved, 8 equivalent, 1 unstable");
}

#[test]
fn without_shared_cells_the_levels_of_both_sides_are_reported() {
    let mut bundles = Bundles::new();
    bundles.runs(&cell("17", 1), &STEADY);
    bundles.runs(&cell("18", 2), &STEADY);
    let error = refused(&bundles, &["server=17", "server=18"]);
    assert!(error.contains("\n  clients: A has 1; B has 2\n"), "{error}");
    assert!(error.contains("`server=17,clients=1` `server=18,clients=2`"), "{error}");
    // The suggested selectors work.
    assert_eq!(compared(&bundles, &["server=17,clients=1", "server=18,clients=2"]).pairs[0].cells.len(), 1);
}

#[test]
fn an_empty_selection_lists_what_exists() {
    let bundles = sweep();
    let error = refused(&bundles, &["server=17", "server=19"]);
    assert!(
        error.starts_with("B (server=19): no trial of run 01KAK3W8XQ5T2M9HC4ZP7VRB0E of campaign \"sweep\"")
    );
    assert!(error.ends_with("has server=19; there are\n  server: 17, 18"), "{error}");
}

#[test]
fn comparing_a_side_with_itself_is_refused() {
    let bundles = sweep();
    let error = compare(&bundles.reader(), &request(&["server=17", "server=17"], &["tps"], &[])).unwrap_err();
    assert!(error.is_usage());
    assert_eq!(error.to_string(), "A and B are the same selector, \"server=17\"");
    let error = refused(&bundles, &["server=17", "latest"]);
    assert!(error.contains("A (server=17) and B (latest) have 10 trials in common"), "{error}");
}

#[test]
fn a_side_with_several_levels_needs_a_named_level() {
    let mut bundles = sweep();
    let mut big = cell("17", 1);
    big.settings.name = "big".to_owned();
    bundles.runs(&big, &STEADY);
    let error = refused(&bundles, &["server=17", "server=18,settings=default"]);
    assert!(
        error.starts_with("A (server=17) has several levels of settings (default, big) for one cell"),
        "{error}"
    );
    // With the sides swapped, the one that names none has only one.
    assert_eq!(verdicts(&compared(&bundles, &["server=17,settings=big", "server=18"])), ["EQUIVALENT"]);
}

#[test]
fn settings_with_equal_names_and_different_content_are_different_cells() {
    let mut bundles = Bundles::new();
    let with = |value: &str, server: &str| {
        let mut cell = cell(server, 1);
        cell.settings.name = "big".to_owned();
        cell.settings.values.insert("work_mem".to_owned(), value.to_owned());
        cell
    };
    bundles.runs(&with("1GB", "17"), &STEADY);
    bundles.runs(&with("2GB", "18"), &STEADY);
    let error = refused(&bundles, &["server=17", "server=18"]);
    assert!(error.contains("settings: A has big (work_mem = 1GB); B has big (work_mem = 2GB)"), "{error}");
}

#[test]
fn other_differences_are_reported() {
    let mut bundles = Bundles::new();
    for tps in STEADY {
        let trial = |server: &str, checksums: &str| {
            let record = with_setting(record(cell(server, 1), tps), "data_checksums", checksums);
            with_setting(record, "server_version", server)
        };
        bundles.write(trial("17", "off"));
        let mut newer = trial("18", "on");
        newer.environment.kernel = Some("Linux 6.12".to_owned());
        bundles.write(newer);
    }
    let compared = compared(&bundles, &["server=17", "server=18"]);
    let differences: Vec<&str> =
        compared.pairs[0].differences.undeclared.iter().map(|difference| difference.what.as_str()).collect();
    // The version is the factor compared by; one side's kernel is unknown.
    assert_eq!(differences, ["setting data_checksums"]);
    assert!(text(&compared, Format::Table, None).contains("A → B: setting data_checksums: off → on"));
}

#[test]
fn kernel_options_are_reported_for_kernels_and_confound_servers() {
    let mut bundles = Bundles::new();
    for (server, kernel, facts, config) in [
        ("17", "6.1", ["6.1.140", "CFS"], "CONFIG_HZ=250\nCONFIG_A=y\nCONFIG_PREEMPT_VOLUNTARY=y\n"),
        ("17", "6.12", ["6.12.9", "EEVDF"], "CONFIG_HZ=1000\nCONFIG_B=m\nCONFIG_PREEMPT_LAZY=y\n"),
        ("18", "6.1", ["6.12.9", "EEVDF"], "CONFIG_HZ=1000\nCONFIG_B=m\nCONFIG_PREEMPT_LAZY=y\n"),
    ] {
        for tps in STEADY {
            let mut record = record(Cell { kernel: Some(kernel.to_owned()), ..cell(server, 1) }, tps);
            let [release, scheduler] = facts.map(str::to_owned);
            record.environment.kernel = Some(format!("Linux {release}"));
            record.environment.kernel_command_line = Some(format!("BOOT_IMAGE=/boot/vmlinuz-{release} ro"));
            record.environment.kernel_facts.scheduler = Some(scheduler);
            // Any hash will do: hashes are only compared for equality.
            let (source, sha256) = ("/proc/config.gz".to_owned(), format!("hash of {release}"));
            record.environment.kernel_facts.config = Some(KernelConfig { source, sha256 });
            record.logs = vec![Log { name: "kernel-config".to_owned(), text: config.to_owned() }];
            bundles.write(record);
        }
    }
    let whats = |found: &[diagnose::Undeclared]| {
        found.iter().map(|found| found.what.trim_start_matches("machine ").to_owned()).collect::<Vec<_>>()
    };
    let kernels = compared(&bundles, &["server=17,kernel=6.1", "server=17,kernel=6.12"]);
    let found = &kernels.pairs[0].differences;
    assert_eq!(whats(&found.undeclared), [""; 0]);
    assert_eq!(whats(&found.of_kernel), ["kernel", "kernel.config", "kernel.scheduler"]);
    assert_eq!(whats(&found.kernel_options), ["PREEMPT_LAZY", "PREEMPT_VOLUNTARY", "HZ", "A", "B"]);
    let page = text(&kernels, Format::Table, None).replace("\n    ", " ");
    for line in [
        "what differs between the kernels\n  A → B: machine kernel: Linux 6.1.140 → Linux 6.12.9\n",
        "  A → B: machine kernel.scheduler: CFS → EEVDF\n",
        "  A → B: configuration: 5 options differ, PREEMPT_LAZY: n → y, PREEMPT_VOLUNTARY: y → n,",
    ] {
        assert!(page.contains(line), "{page}");
    }
    assert!(
        page.contains("HZ: 250 → 1000, …: --format json has all") && !page.contains("A: y → n"),
        "{page}"
    );
    let json = serde_json::to_value(Document::new(&kernels)).unwrap();
    assert_eq!(json["pairs"][0]["kernel_options"][4]["variant"], "m");

    // The same labels under two servers: their kernels differ undeclared.
    let servers = compared(&bundles, &["server=17,kernel=6.1", "server=18,kernel=6.1"]);
    let found = &servers.pairs[0].differences;
    assert_eq!(whats(&found.undeclared), ["kernel", "kernel.config", "kernel.scheduler"]);
    assert_eq!((found.of_kernel.len(), found.kernel_options.len()), (0, 5));
    assert!(text(&servers, Format::Markdown, None).contains("configuration: 5 options differ"));
}

/// Server CPU, WAL, a sum over subjects, a gauge.
#[test]
fn collected_metrics_are_rates_means_and_sums() {
    let mut bundles = Bundles::new();
    for tps in STEADY {
        for (server, factor) in [("17", 1.0), ("18", 1.5)] {
            let grown = |amount: f64| [Some(5.0), Some(5.0 + amount * tps * 10.0 * factor)];
            let mut trial = record(cell(server, 1), tps);
            for (metric, subject, each) in [
                ("role.run_us", Some("load"), 40.0),
                ("role.run_us", Some("checkpointer"), 10.0),
                ("role.run_us", Some("driver"), 500.0),
                ("pg.wal.bytes", None, 200.0),
                ("disk.writes", Some("vda"), 1.0),
                ("disk.writes", Some("vdb"), 2.0),
                ("cpu.user_us", Some("all"), 8.0),
                ("cpu.user_us", Some("cpu0"), 8.0),
            ] {
                trial = with_metric(trial, metric, subject, Kind::Counter, grown(each));
            }
            let ends = [Some(10.0 * factor), Some(30.0 * factor)];
            bundles.write(with_metric(trial, "memory.dirty_bytes", None, Kind::Gauge, ends));
        }
    }
    let metrics = [
        "cpu_per_transaction",
        "wal_bytes_per_transaction",
        "disk.writes",
        "disk.writes{vdb}",
        "cpu.user_us",
        "memory.dirty_bytes",
    ];
    let compared = compare(&bundles.reader(), &request(&["server=17", "server=18"], &metrics, &[])).unwrap();
    let medians: Vec<f64> =
        compared.metrics.iter().map(|of| of.rows[0].judged.comparison.as_ref().unwrap().a.median).collect();
    for (ours, expected) in medians.iter().zip([50.0, 200.0, 3000.0, 2000.0, 8000.0, 20.0]) {
        assert!((ours / expected - 1.0).abs() < 1e-6, "{medians:?}");
    }
    let names: Vec<&str> =
        compared.metrics.iter().map(|of| of.rows[0].judged.outcome.name(of.metric.better())).collect();
    assert_eq!(names, ["REGRESSION", "REGRESSION", "HIGHER", "HIGHER", "HIGHER", "HIGHER"]);
    let error = |metric: &str| {
        compare(&bundles.reader(), &request(&["server=17", "server=18"], &[metric], &[]))
            .unwrap_err()
            .to_string()
    };
    assert!(error("disk.wites").ends_with("the metrics of disk are disk.writes"), "{}", error("disk.wites"));
    assert!(error("disk.writes{vdz}").contains("it was collected, but not of \"vdz\""));
}

/// As after a cold start: it is reported, and no run is left out.
#[test]
fn an_unusual_first_run_is_reported() {
    let mut bundles = Bundles::new();
    bundles.runs(&cell("17", 1), &STEADY);
    bundles.runs(&cell("18", 1), &[880.0, 1000.0, 1001.0, 999.0, 1000.5]);
    let compared = compare(&bundles.reader(), &request(&["server=17", "server=18"], &["tps"], &[])).unwrap();
    let printed = text(&compared, Format::Table, None).replace("\n    ", " ");
    assert!(
        printed.contains("the first run differs from the others, as after a cold start: B at"),
        "{printed}"
    );
    assert!(printed.contains("(-12.0%)"), "{printed}");
    assert_eq!(compared.metrics[0].rows[0].b.values.len(), 5);
}

/// The report and `compare` give the same verdicts on the same trials.
#[test]
fn verdicts_of_the_report_are_those_of_compare() {
    let bundles = sweep();
    let view = analysis::overview(&bundles.store.trials().unwrap(), &BTreeMap::new());
    let of_report: Vec<_> = view.panels[0]
        .rows
        .iter()
        .map(|row| row.points[1].as_ref().unwrap().verdict.clone().unwrap())
        .map(|of| (of.verdict, of.p_holm))
        .collect();
    let compared = compared(&bundles, &["server=17", "server=18"]);
    let rows = &compared.metrics[0].rows;
    let ours: Vec<_> =
        rows.iter().map(|row| (row.judged.outcome.name(Better::Higher), row.judged.p_holm)).collect();
    assert_eq!(of_report, ours);
    let printed = text(&compared, Format::Table, None);
    let sentence = &view.answers[0].sentence;
    assert!(printed.replace("\n  ", " ").contains(sentence), "{sentence}\n{printed}");
}

/// Missing is not zero: trials without a figure are reported and not counted.
#[test]
fn a_trial_without_the_figure_is_left_out() {
    let mut bundles = sweep();
    for _ in 0..2 {
        let mut without = record(cell("18", 1), 1000.0);
        without.trial.summary.as_mut().unwrap().latency = None;
        bundles.write(without);
    }
    let compared =
        compare(&bundles.reader(), &request(&["server=17", "server=18"], &["latency.p50"], &[])).unwrap();
    let row = &compared.metrics[0].rows[0];
    assert_eq!((row.b.values.len(), row.b.without, row.judged.outcome), (5, 2, Outcome::Equivalent));
}

#[test]
fn json_is_versioned_and_has_the_same_figures() {
    let bundles = sweep();
    let compared =
        compare(&bundles.reader(), &request(&["server=17", "server=18"], &["tps"], &["tps < -5%"])).unwrap();
    let json = serde_json::to_value(Document::new(&compared)).unwrap();
    assert_eq!(json["schema"], 1);
    let cell = &json["metrics"][0]["cells"][1];
    assert_eq!(cell["verdict"], "REGRESSION");
    assert_eq!(cell["cell"]["clients"], "8");
    assert_eq!(cell["b"]["n"], 5);
    assert_eq!(json["gates"][0]["is_hit"], true);
    assert_eq!(
        json["metrics"][0]["sentences"][0].as_str().unwrap().split(';').next(),
        Some("1 of 2 cells regressed, 1 equivalent")
    );
}

/// A wide matrix.
fn wide() -> Compared {
    let mut bundles = Bundles::new();
    for (server, factor) in [("17", 1.0), ("18", 0.93)] {
        for (workload, base) in [("select-only", 14.0), ("tpcb-like", 0.6)] {
            for clients in [1_u32, 8, 128] {
                let mut cell = cell(server, clients);
                cell.workload = model::workload::Workload::builtin(workload).unwrap();
                let grown = base * f64::from(clients).sqrt();
                let factor = if workload == "select-only" { factor } else { 1.0 };
                let unstable = if clients == 128 { [0.8, 1.0, 1.1, 0.9, 1.3] } else { [1.0; 5] };
                let tps: Vec<f64> =
                    STEADY.iter().zip(unstable).map(|(tps, u)| tps * grown * factor * u).collect();
                for tps in tps {
                    bundles.write(with_setting(
                        record(cell.clone(), tps),
                        "data_checksums",
                        if server == "18" { "on" } else { "off" },
                    ));
                }
            }
        }
    }
    bundles.runs(&cell("17", 256), &STEADY);
    let request = request(&["server=17", "server=18"], &["tps", "latency.p99"], &["tps < -5%"]);
    compare(&bundles.reader(), &request).unwrap()
}

#[test]
fn as_a_table_of_100_columns() {
    let page = text(&wide(), Format::Table, None);
    for line in page.lines() {
        assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
    }
    insta::assert_snapshot!(page);
}

#[test]
fn colours_are_only_added() {
    let compared = wide();
    let on = |colours| text(&compared, Format::Table, Some(Terminal { width: 100, colours }));
    let mut coloured = on(true);
    assert!(coloured.contains("\x1b[1;31mREGRESSION\x1b[0m"));
    for code in ["1;31", "32", "33", "0"] {
        coloured = coloured.replace(&format!("\x1b[{code}m"), "");
    }
    assert_eq!(coloured, on(false));
}

/// The changes are next to the table if there is room, else below it; nothing is lost.
#[test]
fn on_a_terminal_with_a_chart_beside_or_below() {
    for width in [80, 120] {
        let page = text(&wide(), Format::Table, Some(Terminal { width, colours: false }));
        for line in page.lines() {
            assert!(line.chars().count() <= width, "{} columns: {line}", line.chars().count());
        }
        insta::assert_snapshot!(format!("on_a_terminal_of_{width}_columns"), page);
    }
}

#[test]
fn as_markdown() {
    insta::assert_snapshot!(text(&wide(), Format::Markdown, None));
}

#[test]
fn as_csv() {
    insta::assert_snapshot!(text(&wide(), Format::Csv, None));
}
