//! Profiles as output: shares, groups, functions, differences, flame graphs.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[path = "../../analysis/tests/fixture/bundles.rs"]
mod bundles;

use analysis::profile::{Difference, Kind, Profile, ProfileError, parse_groups, profile};
use analysis::select::{RunSelection, Selector};
use bundles::{Bundles, cell, record};
use diagnose::profile::Groups;
use model::message::ScriptInterval;
use model::profile::{OffCpu, ProfileSummary, Scope, Stacks, Unwinding};
use model::record::TrialRecord;
use plaintext::table::Format;
use report::profile::{Document, difference_svg, difference_text, function_text, svg, text};

const LOAD: &str = "\
postgres;PostgresMain;pq_getbyte;recv;sys_recv_[k] 50
postgres;PostgresMain;standard_ExecutorRun;ExecScan;heap_getnext.isra.0 30
postgres;PostgresMain;standard_ExecutorRun;ExecScan;ReadBuffer 15
postgres;PostgresMain 5
";

/// A trial of 5000 transactions in ten seconds, of which half were profiled at 100 Hz.
fn profiled(server: &str, load: &str) -> TrialRecord {
    let mut record = record(cell(server, 4), 500.0);
    let load = Stacks::from_folded("load", load).unwrap();
    let driver = Stacks::from_folded("driver", "driver-0;event_loop;wait 20\n").unwrap();
    record.trial.profile = Some(ProfileSummary {
        event: Some("cycles".to_owned()),
        hz: 100,
        instructions_per_sample: None,
        callgraph: Unwinding::FramePointers,
        callgraph_reason: "96% of 2000 functions of postgres keep frame pointers".to_owned(),
        scope: Scope::Machine,
        from_us: 0,
        to_us: 5_000_000,
        samples: load.total() + 20,
        lost: 0,
        nameless: [("[libc.so.6]".to_owned(), 12)].into(),
        perf_version: "6.1".to_owned(),
        perf_cpu_us: Some(50_000),
        off_cpu: None,
    });
    record.stacks = vec![driver, load];
    record.intervals[0].scripts = vec![ScriptInterval {
        script: "select-only".to_owned(),
        transactions: 5000,
        failed: Some(0),
        unfinished: None,
        latencies: Vec::new(),
    }];
    record
}

fn shown(bundles: &Bundles, what: &str) -> Result<Profile, ProfileError> {
    profile(&bundles.reader(), &RunSelection::Latest, &what.parse::<Selector>().unwrap(), Kind::OnCpu)
}

/// The cells of a table's row, separated by single spaces.
fn row(table: &str, begins: &str) -> String {
    let found = table.lines().find(|line| line.trim_start().starts_with(begins));
    found.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn shares_are_computed_by_role_group_function_and_transaction() {
    let mut bundles = Bundles::new();
    bundles.write(profiled("18", LOAD));
    let profile = shown(&bundles, "server=18").unwrap();
    assert_eq!(profile.transactions, Some(2500.0), "half of the interval was profiled");
    let text = text(&profile, &Groups::default(), Format::Table);
    assert!(
        text.contains("120 samples in 5.0 s of the whole machine, cycles at 100 Hz, none lost"),
        "{text}"
    );
    assert!(text.contains("callers by frame pointers (96% of 2000 functions"), "{text}");
    assert!(
        text.contains(
            "2,500 transactions, 500 a second (500 in the rest of the window); perf itself used 1.00%"
        ),
        "{text}"
    );
    // 100 samples of 10 ms in 2500 transactions.
    assert_eq!(row(&text, "load  "), "load 100 83.3% 400.00");
    assert_eq!(row(&text, "protocol"), "protocol 50.0% 50.0% 200.00");
    assert_eq!(row(&text, "executor"), "executor 30.0% 45.0% 120.00");
    assert_eq!(row(&text, "buffer"), "buffer 15.0% 15.0% 60.00");
    assert_eq!(row(&text, "(other)"), "(other) 5.0% 20.00");
    assert_eq!(row(&text, "heap_getnext"), "heap_getnext 30.0% 30.0% 120.00");
    assert_eq!(row(&text, "PostgresMain"), "PostgresMain 5.0% 100.0% 20.00");
    assert!(text.contains("10.0% of the samples are in functions of libc.so.6 that have no name"), "{text}");

    let csv = report::profile::text(&profile, &Groups::default(), Format::Csv);
    assert!(csv.contains("load,ExecScan,0,0.000000,45,0.450000,0.0000,180.0000\n"), "{csv}");
    assert!(csv.contains("driver,wait,20,1.000000,20,1.000000,80.0000,80.0000\n"), "{csv}");
    let document = Document::new(&[&profile], &Groups::default(), None);
    let json = serde_json::to_value(&document).unwrap();
    assert_eq!((&json["schema"], &json["difference"]), (&1.into(), &serde_json::Value::Null));
    assert_eq!(json["profiles"][0]["roles"][0]["groups"][0]["group"], "protocol");
    assert_eq!(json["profiles"][0]["roles"][0]["functions"][0]["self_samples"], 50);
}

#[test]
fn a_function_is_shown_with_its_callers_and_callees() {
    let mut bundles = Bundles::new();
    bundles.write(profiled("18", LOAD));
    let profile = shown(&bundles, "server=18").unwrap();
    let load = profile.role("load").unwrap();
    let text = function_text(&profile, load, "ExecScan", Format::Table).unwrap();
    assert_eq!(row(&text, "called by"), "called by standard_ExecutorRun 45 45.0% 180.00");
    assert_eq!(row(&text, "all of"), "all of ExecScan 45 45.0% 180.00");
    assert_eq!(row(&text, "calls"), "calls heap_getnext 30 30.0% 120.00");
    let error = function_text(&profile, load, "scan", Format::Table).unwrap_err().to_string();
    assert_eq!(error, "scan is in none of the samples of load; there are ExecScan");
    let error = profile.only("checkpointer").unwrap_err().to_string();
    assert!(error.ends_with("it has those of load, driver"), "{error}");
}

#[test]
fn trials_of_a_cell_are_one_profile_and_those_without_one_are_left_out() {
    let mut bundles = Bundles::new();
    bundles.write(profiled("18", LOAD));
    bundles.write(profiled("18", LOAD));
    let bare = bundles.write(record(cell("18", 4), 500.0));
    bundles.write(record(cell("17", 4), 500.0));
    let profile = shown(&bundles, "server=18").unwrap();
    assert_eq!((profile.trials.len(), profile.transactions, profile.samples()), (2, Some(5000.0), 240));
    assert_eq!(profile.us_per_transaction(200), Some(400.0));
    let error = shown(&bundles, &bare).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("trial {bare} has no profile: the campaign has no [profile]")),
        "{error}"
    );
    let error = shown(&bundles, "server=17").unwrap_err().to_string();
    assert!(error.contains("has no profile"), "{error}");
    let mut other = profiled("18", LOAD);
    other.trial.profile.as_mut().unwrap().hz = 200;
    bundles.write(other);
    assert!(shown(&bundles, "server=18").unwrap_err().to_string().contains("at different rates"));
}

#[test]
fn waits_are_shown_as_time_and_compared_with_the_rest_of_the_window() {
    let mut bundles = Bundles::new();
    let mut record = profiled("18", LOAD);
    record.trial.profile.as_mut().unwrap().off_cpu = Some(OffCpu {
        from_us: 8_000_000,
        to_us: 10_000_000,
        switches: 700,
        sampled: 500,
        lost: 0,
        perf_cpu_us: Some(100_000),
    });
    let text_of = "postgres;PostgresMain;LockAcquire;ProcSleep;schedule_[k] 6000000\n\
                   postgres;PostgresMain;pq_getbyte;schedule_[k] 1500000\npostgres;PostgresMain;[preempted] 500000\n";
    record.off_cpu = vec![Stacks::from_folded("load", text_of).unwrap()];
    bundles.write(record);
    bundles.write(profiled("17", LOAD));
    let profile_of = |what: &str| {
        let what = what.parse::<Selector>().unwrap();
        profile(&bundles.reader(), &RunSelection::Latest, &what, Kind::OffCpu)
    };
    let profile = profile_of("server=18").unwrap();
    // The last two of ten seconds with 5000 transactions.
    assert_eq!((profile.transactions, profile.tps_outside), (Some(1000.0), Some(500.0)));
    let table = text(&profile, &Groups::default(), Format::Table);
    for part in [
        "waits: 700 switches in 2.0 s, 500 with a stack, none lost; perf itself used 5.00% of a CPU",
        "1,000 transactions, 500 a second (500 in the rest of the window)",
        "Off-CPU time of threads, 8000.0 ms in all",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    assert_eq!(row(&table, "lock"), "lock 75.0% 75.0% 6000.00");
    assert_eq!(row(&table, "ProcSleep"), "ProcSleep 0.0% 75.0% 0.00");
    assert_eq!(row(&table, "[preempted]"), "[preempted] 6.2% 6.2% 500.00");
    let load = profile.role("load").unwrap();
    let one = function_text(&profile, load, "ProcSleep", Format::Table).unwrap();
    assert!(one.contains("ProcSleep in 8000.0 ms of load"), "{one}");
    assert_eq!(row(&one, "called by"), "called by LockAcquire 6000.0 75.0% 6000.00");
    let csv = text(&profile, &Groups::default(), Format::Csv);
    assert!(csv.starts_with("role,function,self_us,") && csv.contains("load,[preempted],500000,"), "{csv}");
    let drawn = svg(&profile).unwrap();
    assert!(drawn.contains("8000.0 ms off the CPU") && drawn.contains("ProcSleep (6,000,000 µs"), "{drawn}");
    let json = serde_json::to_value(Document::new(&[&profile], &Groups::default(), None)).unwrap();
    assert_eq!(
        (&json["profiles"][0]["kind"], &json["profiles"][0]["taken"][0]["off_cpu"]["switches"]),
        (&"off-cpu".into(), &700.into())
    );
    let error = profile_of("server=17").unwrap_err().to_string();
    assert!(error.contains("no off-CPU stacks: [profile] has no off_cpu"), "{error}");
}

#[test]
fn counted_instructions_add_up_to_the_path_length() {
    let mut bundles = Bundles::new();
    let counted = |server: &str, load: &str, path_length: f64| {
        let mut record = profiled(server, load);
        record.trial.profile.as_mut().unwrap().instructions_per_sample = Some(100_000);
        record.trial.summary.as_mut().unwrap().instructions_per_transaction = Some(path_length);
        record
    };
    // 120 samples and 220: 500 instructions of a transaction each, whatever the rate and the load's length.
    bundles.write(counted("17", LOAD, 60_000.0));
    let longer = LOAD.replace("ReadBuffer 15", "ReadBuffer;LWLockAcquire 115");
    bundles.write(counted("18", &longer, 110_000.0));
    let (before, after) = (shown(&bundles, "server=17").unwrap(), shown(&bundles, "server=18").unwrap());
    assert_eq!(before.tps_outside, None);
    let table = text(&before, &Groups::default(), Format::Table);
    for part in [
        "120 samples in 5.0 s of the whole machine, one in 100000 counted instructions, none lost",
        "\n60000 instructions per transaction, counted after the profile; perf itself",
        "instructions/transaction",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    assert_eq!(row(&table, "load"), "load 100 83.3% 50000");
    assert_eq!(row(&table, "sys_recv_[k]"), "sys_recv_[k] 50.0% 50.0% 25000");
    let load = before.role("load").unwrap();
    let one = function_text(&before, load, "ExecScan", Format::Table).unwrap();
    assert_eq!(row(&one, "all of"), "all of ExecScan 45 45.0% 22500");
    let csv = text(&before, &Groups::default(), Format::Csv);
    assert!(csv.contains("self_instructions") && csv.contains(",25000,"), "{csv}");
    let differences = Difference::between(&before, &after, &Groups::default()).unwrap();
    let table = difference_text(&before, &after, &differences, Format::Table);
    assert!(table.contains("Counted instructions of one transaction; ±: sampling error only"), "{table}");
    assert_eq!(row(&table, "load"), "load 50000 100000 +50000 16974 +100%");
    assert_eq!(row(&table, "LWLockAcquire"), "LWLockAcquire 0 57500 +57500 10509 new");
    assert_eq!(row(&table, "sys_recv_[k]"), "sys_recv_[k] 25000 25000 +0 9800 0.0%");
    let drawn = difference_svg(&before, &after).unwrap();
    assert!(drawn.contains("Instructions of a transaction") && drawn.contains(" instructions,"), "{drawn}");
    assert!(svg(&after).unwrap().contains("220 samples of counted instructions"));
}

#[test]
fn a_difference_is_per_transaction_with_its_sampling_error() {
    let mut bundles = Bundles::new();
    bundles.write(profiled("17", LOAD));
    let slower = LOAD.replace("ReadBuffer 15", "ReadBuffer;LWLockAcquire 115");
    bundles.write(profiled("18", &slower));
    let (before, after) = (shown(&bundles, "server=17").unwrap(), shown(&bundles, "server=18").unwrap());
    let groups = Groups::default();
    let differences = Difference::between(&before, &after, &groups).unwrap();
    let load = &differences[0];
    assert_eq!(load.role.of.as_deref(), Some("load"));
    assert_eq!((load.role.before_us, load.role.after_us), (400.0, 800.0));
    // 1.96 · 4 µs · √(100 + 200)
    assert!((load.role.margin_us - 135.8).abs() < 0.1, "{}", load.role.margin_us);
    assert_eq!(load.functions.iter().map(|change| change.after_us).sum::<f64>(), 800.0);
    let text = difference_text(&before, &after, &differences, Format::Table);
    assert_eq!(row(&text, "load  "), "load 400.000 800.000 +400.000 135.793 +100%");
    assert!(text.contains("±: sampling error only"), "{text}");
    assert!(row(&text, "lock").starts_with("lock 0.000 460.000 +460.000"), "{text}");
    assert!(row(&text, "LWLockAcquire").ends_with("new"), "{text}");
    assert!(row(&text, "buffer").starts_with("buffer 60.000 0.000 -60.000"), "{text}");

    let drawn = difference_svg(&before, &after).unwrap();
    assert!(drawn.contains("LWLockAcquire") && drawn.contains("red: more than in 17 default"), "{drawn}");
    let mut without = profiled("16", LOAD);
    without.intervals[0].scripts.clear();
    let id = bundles.write(without);
    let without = shown(&bundles, &id).unwrap();
    let error = Difference::between(&without, &after, &groups).unwrap_err().to_string();
    assert!(error.contains(&format!("trial {id} has no transactions")), "{error}");
}

#[test]
fn a_difference_has_the_spread_between_trials_and_new_functions_first() {
    let mut bundles = Bundles::new();
    let sorted = "postgres;PostgresMain;ExecutorRun;ExecSort 60\n";
    // Trials of the first side differ by a third, although each is sampled well.
    for samples in [900, 1100, 1300] {
        bundles.write(profiled(
            "17",
            &format!("{sorted}postgres;PostgresMain;ExecutorRun;hash_search {samples}\n"),
        ));
    }
    for samples in [1000, 1000, 1000] {
        bundles.write(profiled("18", &format!("postgres;PostgresMain;ExecutorRun;hash_search {samples}\n")));
    }
    let (before, after) = (shown(&bundles, "server=17").unwrap(), shown(&bundles, "server=18").unwrap());
    let differences = Difference::between(&before, &after, &Groups::default()).unwrap();
    let functions = &differences[0].functions;
    let names: Vec<_> = functions.iter().filter_map(|change| change.of.as_deref()).collect();
    assert_eq!(names, ["ExecSort", "hash_search"]);
    // 4 µs a sample: t(2 df, 95 %) = 4.303 times 800 / √3, and not 1.96 · 4 · √(3300 + 3000) / 3.
    assert!((functions[1].margin_us - 1987.3).abs() < 1.0, "{:?}", functions[1]);
    assert!(functions[1].increase_us().abs() < functions[1].margin_us && functions[0].margin_us < 240.0);
    let text = difference_text(&before, &after, &differences, Format::Table);
    assert!(text.contains("±: 95% interval, with the spread between trials"), "{text}");
}

#[test]
fn a_flame_graph_has_the_functions_of_its_roles() {
    let mut bundles = Bundles::new();
    bundles.write(profiled("18", LOAD));
    let profile = shown(&bundles, "server=18").unwrap();
    let all = svg(&profile).unwrap();
    assert!(all.starts_with("<?xml") && all.trim_end().ends_with("</svg>"));
    for part in ["ExecScan (45 samples, 37.50%)", "driver (20 samples, 16.67%)", "18 default select-only"] {
        assert!(all.contains(part), "{part}");
    }
    assert_eq!(svg(&profile).unwrap(), all, "the same profile is the same picture");
    let load = svg(&profile.clone().only("load").unwrap()).unwrap();
    assert!(load.contains("ExecScan (45 samples, 45.00%)") && !load.contains("event_loop"), "{load}");
    assert!(profile.folded().contains("driver;driver-0;event_loop;wait 20\n"));
    assert!(profile.only("driver").unwrap().folded().starts_with("driver-0;event_loop"));
}

#[test]
fn groups_are_added_by_a_file() {
    let mut bundles = Bundles::new();
    bundles.write(profiled("18", LOAD));
    let profile = shown(&bundles, "server=18").unwrap();
    let groups =
        parse_groups("[groups]\ntables = ['heap_*']\nprotocol = ['PostgresMain']\n", "g.toml").unwrap();
    let text = text(&profile, &groups, Format::Table);
    assert_eq!(row(&text, "tables"), "tables 30.0% 30.0% 120.00");
    assert_eq!(row(&text, "protocol"), "protocol 55.0% 100.0% 220.00");
    for wrong in ["groups = 1", "[group]\na = []", "[groups]\na = 'b'"] {
        let error = parse_groups(wrong, "g.toml").unwrap_err().to_string();
        assert!(error.contains("g.toml") && error.contains("expected a table [groups]"), "{error}");
    }
}
