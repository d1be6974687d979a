//! The order of a trial's steps, and its record of failures and interrupts in each of them.

mod mock;
mod scenario;

use std::collections::BTreeMap;
use std::sync::Arc;

use server::{RawReadError, RawReading};

use model::outage::Outage;
use model::record::Status;
use model::units::Rate;
use model::workload::{Custom, Phase, PhaseLoad};

use crate::error::RunError;
use mock::{COMMITS_BEFORE, DriverReply};
use scenario::{
    Scenario, client_died, client_died_of, connected, failed, finished, finished_early, interval, raw_read,
    started,
};

/// The steps of a complete trial.
const STEPS: [&str; 28] = [
    "start server",
    "ready",
    "before hook",
    "vacuum",
    "checkpoint",
    "warm",
    "pause 2s",
    "read version",
    "read size",
    "read settings",
    "count commits",
    "start driver",
    "start collectors",
    "send load",
    "clients connected",
    "load started",
    "interval",
    "finish collectors",
    "count commits",
    "read limits",
    "check server",
    "read settings",
    "determine figure",
    "check consistency",
    "teardown",
    "after hook",
    "read log",
    "end trial",
];

/// The steps after a preparation or load that failed, if the server answers.
const AFTER_FAILURE: [&str; 6] =
    ["read limits", "read version", "check server", "after hook", "read log", "end trial"];

/// Name of the step at a place, and the number of its occurrence.
fn occurrence(place: usize) -> (&'static str, usize) {
    let name = STEPS[place];
    (name, STEPS[..=place].iter().filter(|step| **step == name).count())
}

/// The steps up to and including this one.
fn up_to(step: &str) -> &'static [&'static str] {
    &STEPS[..=STEPS.iter().position(|other| *other == step).unwrap()]
}

fn join(parts: &[&[&str]]) -> String {
    parts.concat().join(", ")
}

#[test]
fn a_complete_trial_runs_its_steps_in_order() {
    let ending = Scenario::complete().run();
    assert_eq!(ending.steps, join(&[&STEPS]));
    let record = ending.record();
    assert_eq!((record.trial.validity.status, ending.findings()), (Status::Valid, vec![]));
    assert_eq!(record.trial.server_version.as_deref(), Some("18.1"));
    assert_eq!(record.trial.server_build.as_deref(), Some("mock"));
    assert_eq!(record.trial.database_bytes, Some(8192));
    assert_eq!(record.intervals.len(), 1);
    assert_eq!(record.logs[0].name, "server");
    assert!(ending.result.is_ok_and(|finished| finished.loaded));
}

/// A workload whose load `own.sql` is judged, after one phase and before another.
fn with_phases(workload: &mut Custom) {
    let load = PhaseLoad {
        workload: Arc::new(Custom::new("other", workload.scripts.clone())),
        clients: None,
        rate: Rate::MAX,
        duration: None,
        warmup: None,
    };
    let phase = |name: &str, load| Phase { name: name.to_owned(), parameters: BTreeMap::new(), load };
    workload.phases =
        vec![phase("before", Some(load.clone())), phase("own", None), phase("after", Some(load))];
}

/// The replies of a driver to the loads of some phases.
fn replies_to_phases(phases: usize) -> Vec<DriverReply> {
    (0..phases).flat_map(|_| [connected(), started(), interval(), finished()]).collect()
}

#[test]
fn the_loads_of_phases_run_one_after_the_other_on_the_prepared_server() {
    let ending = Scenario::reading().with_workload(with_phases).driver(replies_to_phases(3)).run();
    let asked_for =
        ["before hook", "vacuum", "determine figure", "check consistency", "teardown", "after hook"];
    let steps: Vec<&str> = STEPS.into_iter().filter(|step| !asked_for.contains(step)).collect();
    let from = steps.iter().position(|step| *step == "read version").unwrap();
    let to = steps.iter().rposition(|step| *step == "count commits").unwrap() + 1;
    let expected = [&steps[..to], &steps[from..to], &steps[from..]].concat();
    assert_eq!(ending.steps, expected.join(", "));
    assert_eq!(ending.findings(), [""; 0]);
    let record = ending.record();
    assert_eq!(record.trial.phases.iter().map(|phase| &*phase.name).collect::<Vec<_>>(), ["before", "after"]);
    assert_eq!(record.phases.iter().map(|phase| phase.intervals.len()).collect::<Vec<_>>(), [1, 1]);
    assert!(
        record.trial.summary.is_some() && record.trial.phases.iter().all(|phase| phase.summary.is_some())
    );
    // Each load begins with the commits of those before it: 103 as without phases, and 106 of each.
    assert_eq!(ending.expected_commits, [Some(103), Some(209), Some(209), Some(315), Some(315), Some(421)]);
    assert_eq!(ending.end, Some((false, Some(421))), "the data set is as it was");
}

#[test]
fn a_phase_that_fails_leaves_out_those_after_it() {
    let failing = |ended: usize| {
        let replies: Vec<DriverReply> =
            replies_to_phases(ended).into_iter().chain([failed("it broke", None)]).collect();
        Scenario::reading().with_workload(with_phases).driver(replies).run()
    };
    let ending = failing(0);
    assert_eq!(ending.steps.matches("send load").count(), 1);
    assert_eq!(
        ending.findings(),
        [
            "load-failed: it did not run, because the phase \"before\" did not run to its end",
            "load-failed: phase before: it broke",
        ]
    );
    assert!(ending.record().trial.summary.is_none());
    // The judged phase has its figures, but the trial is not what it had to be.
    let ending = failing(2);
    assert_eq!(ending.findings(), ["load-failed: phase after: it broke"]);
    assert!(ending.record().trial.summary.is_some());
    assert_eq!(ending.record().trial.validity.status, Status::Invalid);
}

#[test]
fn a_reading_trial_leaves_out_what_its_campaign_does_not_ask_for() {
    let ending = Scenario::reading().run();
    let asked_for =
        ["before hook", "vacuum", "determine figure", "check consistency", "teardown", "after hook"];
    let steps: Vec<&str> = STEPS.into_iter().filter(|step| !asked_for.contains(step)).collect();
    assert_eq!(ending.steps, steps.join(", "));
    assert_eq!(ending.findings(), [""; 0]);
}

#[test]
fn commits_of_the_preparation_the_load_and_the_collectors_are_expected() {
    // 100 at the start and 3 for warming; 100 transactions, 1 connection, 5 of the collectors.
    let ending = Scenario::reading().run();
    assert_eq!(ending.expected_commits, [Some(103), Some(209)]);
    assert_eq!(ending.end, Some((false, Some(209))), "the data set is as it was");
    let accounting = ending.record().trial.accounting;
    assert_eq!((accounting.server_commits, accounting.other_commits), (Some(106), Some(6)));

    // The effect of a hook is unknown.
    let ending = Scenario::complete().run();
    assert_eq!(ending.expected_commits, [None, Some(COMMITS_BEFORE + 106)]);
    assert_eq!(ending.end, Some((true, Some(COMMITS_BEFORE + 106))));
}

#[test]
fn a_server_that_does_not_start_has_no_further_step() {
    let ending = Scenario::complete().fail("start server").run();
    assert_eq!(ending.steps, "start server, end trial");
    assert_eq!(
        ending.findings(),
        [
            "load-failed: the server could not be started: could not start server on the server mock: no answer; see its log"
        ]
    );
    assert!(ending.result.is_ok_and(|finished| !finished.loaded));
}

#[test]
fn a_failure_before_the_load_leaves_out_the_load_and_the_teardown() {
    let not_prepared = "the server could not be prepared";
    let no_answer = "the server did not answer before the load";
    for (step, why) in [
        ("vacuum", not_prepared),
        ("checkpoint", not_prepared),
        ("warm", not_prepared),
        ("read version", no_answer),
        ("read size", no_answer),
        ("read settings", no_answer),
        ("count commits", no_answer),
    ] {
        let ending = Scenario::complete().fail(step).run();
        assert_eq!(ending.steps, join(&[up_to(step), &AFTER_FAILURE]));
        let finding =
            format!("load-failed: {why}: could not {step} on the server mock: no answer; see its log");
        assert_eq!(ending.findings(), [finding]);
        assert_eq!(ending.record().trial.server_version, None);
        assert_eq!(ending.end, Some((true, None)));
    }
}

#[test]
fn a_before_hook_that_fails_leaves_out_all_preparation() {
    let ending = Scenario::complete().fail("before hook").run();
    assert_eq!(ending.steps, join(&[up_to("before hook"), &AFTER_FAILURE]));
    assert_eq!(ending.findings(), ["load-failed: the hook `before` failed (exit status: 3) without output"]);
}

#[test]
fn a_raw_read_comes_after_the_checkpoint_and_goes_into_the_record() {
    let read = || Some(RawReading { outcome: Ok(raw_read()), commits: 4 });
    let ending = Scenario::reading().with_raw_read(read).run();
    assert!(ending.steps.starts_with("start server, ready, checkpoint, raw read, pause 2s, read version, "));
    assert_eq!(ending.expected_commits[0], Some(104), "without warming");
    assert_eq!(ending.record().trial.raw_read, Some(raw_read()));
    assert_eq!(ending.notes(), [""; 0]);
}

#[test]
fn an_impossible_raw_read_is_a_note_and_a_failed_one_ends_the_preparation() {
    let ending = Scenario::reading().with_raw_read(|| None).run();
    assert_eq!(ending.notes(), ["no raw read of \"t\": the server's files are not on this machine"]);
    assert_eq!(ending.findings(), [""; 0]);

    let refused =
        || Some(RawReading { outcome: Err(RawReadError::Failed("no direct I/O".to_owned())), commits: 4 });
    let ending = Scenario::reading().with_raw_read(refused).run();
    assert_eq!(ending.notes().len(), 1);
    assert!(ending.notes()[0].starts_with("no raw read of \"t\": "), "{:?}", ending.notes());
    assert_eq!((ending.findings(), ending.record().trial.raw_read.clone()), (vec![], None));

    let ending = Scenario::reading().with_raw_read(|| None).fail("raw read").run();
    assert_eq!(
        ending.steps,
        "start server, ready, checkpoint, raw read, read limits, read version, check server, read log, end trial"
    );
    assert_eq!(
        ending.findings(),
        [
            "load-failed: the server could not be prepared: could not raw read on the server mock: no answer; see its log"
        ]
    );
}

#[test]
fn missing_privileges_are_a_note() {
    let ending = Scenario::complete().unprivileged().run();
    assert_eq!(ending.steps, join(&[&STEPS]));
    assert_eq!(
        ending.notes(),
        [
            "no checkpoint before the load: the role may not run CHECKPOINT",
            "pg_prewarm is not available: tables were warmed by scans, and indexes not at all"
        ]
    );
    assert_eq!(ending.findings(), [""; 0]);
}

#[test]
fn no_driver_starts_if_clients_cannot_reach_the_server() {
    let ending = Scenario::complete().unreachable().run();
    let prepared = STEPS.iter().position(|step| *step == "start driver").unwrap();
    assert_eq!(ending.steps, join(&[&STEPS[..prepared], &AFTER_FAILURE]));
    assert_eq!(
        ending.findings(),
        [
            "load-failed: clients can't connect: could not find a socket on the server mock: no answer; see its log"
        ]
    );
}

#[test]
fn a_driver_that_does_not_start_ends_the_campaign() {
    let ending = Scenario::complete().fail("start driver").run();
    assert_eq!(ending.steps, join(&[up_to("start driver")]));
    assert!(matches!(ending.result, Err(RunError::Driver(_))));
}

/// The driver may be killed because memory is short before it has read the load.
#[test]
fn a_driver_that_exits_before_it_takes_the_load_is_a_failed_load_with_its_stderr() {
    let after = ["finish collectors"];
    let dies = [DriverReply::Exits("out of memory")];
    let ending = Scenario::complete().fail("send load").driver(dies).run();
    assert_eq!(ending.steps, join(&[up_to("send load"), &after, &AFTER_FAILURE]));
    let why = "the driver process died (signal: 9 (SIGKILL)): out of memory";
    assert_eq!(ending.findings(), [format!("load-failed: {why}")]);
    assert!(ending.result.is_ok_and(|finished| !finished.loaded));

    let ending = Scenario::complete().fail("send load").driver([]).run();
    let [finding] = ending.findings().try_into().unwrap();
    assert!(finding.contains("cannot send a request to the driver process"), "{finding}");
}

#[test]
fn a_driver_that_can_not_connect_its_clients_has_no_load() {
    let refused = "connection refused";
    let ending = Scenario::complete().driver([failed(refused, None)]).run();
    let after = ["finish collectors"];
    assert_eq!(ending.steps, join(&[up_to("send load"), &after, &AFTER_FAILURE]));
    assert_eq!(ending.findings(), ["load-failed: connection refused"]);
    assert!(ending.result.is_ok_and(|finished| !finished.loaded));
}

#[test]
fn a_driver_that_dies_is_a_failed_load_with_its_stderr() {
    for (stderr, why) in [
        ("out of memory\n", "the driver process died (signal: 9 (SIGKILL)): out of memory"),
        ("", "the driver process died (signal: 9 (SIGKILL)) and left no message"),
    ] {
        let dies = DriverReply::Exits(stderr);
        let ending = Scenario::complete().driver([connected(), started(), interval(), dies]).run();
        // The load had started.
        let after = [
            "finish collectors",
            "read limits",
            "read version",
            "check server",
            "read settings",
            "determine figure",
            "check consistency",
            "teardown",
            "after hook",
            "read log",
            "end trial",
        ];
        assert_eq!(ending.steps, join(&[up_to("interval"), &after]));
        assert_eq!(ending.findings(), [format!("load-failed: {why}")]);
        assert_eq!(ending.record().intervals.len(), 1, "what it reported is kept");
        assert_eq!(ending.end, Some((true, None)));
    }
}

#[test]
fn a_client_that_dies_makes_the_trial_invalid_and_the_server_doubtful() {
    let ending = Scenario::reading().driver([connected(), started(), client_died(), finished()]).run();
    assert!(
        ending.steps.ends_with(
            "finish collectors, count commits, read limits, read version, check server, read settings, read log, end trial"
        ),
        "{}",
        ending.steps
    );
    assert_eq!(
        ending.findings(),
        ["client-died: 1 of 1 clients failed; client 0 after 0.500 s: the server closed the connection"]
    );
    assert_eq!(ending.events("client-died"), ["client 0: the server closed the connection"]);
    assert_eq!(ending.end.map(|(altered, _)| altered), Some(true));
}

#[test]
fn a_silent_driver_times_out() {
    let ending = Scenario::complete().driver([]).run();
    assert_eq!(ending.findings(), ["load-failed: the clients were not connected after 60 s"]);
    assert_eq!(ending.waited.as_secs(), 60);

    let ending = Scenario::complete().driver([connected(), started()]).run();
    assert_eq!(ending.findings(), ["load-failed: the load was still running 15 s after its planned end"]);
    assert_eq!(ending.waited.as_secs(), 1 + 15);
}

#[test]
fn a_driver_that_does_not_stop_times_out() {
    let ending = Scenario::complete().interrupt("load started").driver([connected(), started()]).run();
    assert!(ending.steps.contains("load started, stop load, finish collectors, "), "{}", ending.steps);
    assert_eq!(
        ending.findings(),
        [
            "interrupted: ended by the user before the load began",
            "load-failed: the load was still running 15 s after its planned end"
        ]
    );
    assert_eq!(ending.waited.as_secs(), 15);
}

#[test]
fn an_interrupt_up_to_the_end_of_the_load_stops_it_and_makes_the_trial_invalid() {
    let end_of_load = up_to("interval").len();
    for place in up_to("before hook").len()..end_of_load {
        let (step, nth) = occurrence(place);
        let ending = Scenario::complete()
            .interrupt_nth(step, nth)
            .driver([connected(), started(), interval(), finished_early()])
            .run();
        // The driver receives the interrupt right after the load at the earliest.
        let stop = (place + 1).max(up_to("send load").len());
        assert_eq!(ending.steps, join(&[&STEPS[..stop], &["stop load"], &STEPS[stop..]]), "{step}");
        assert_eq!(ending.findings(), ["interrupted: ended by the user after 1.0 s of the window"], "{step}");
        assert_eq!(ending.notes(), ["the hook `after` was ended by the user"], "{step}");
    }
}

#[test]
fn an_interrupt_before_the_hook_has_ended_kills_the_hook_and_leaves_out_the_load() {
    for step in up_to("before hook") {
        let ending = Scenario::complete().interrupt(step).run();
        assert_eq!(ending.steps, join(&[up_to("before hook"), &AFTER_FAILURE]), "{step}");
        assert_eq!(
            ending.findings(),
            [
                "interrupted: ended by the user before the load began",
                "load-failed: the hook `before` was ended by the user"
            ],
            "{step}"
        );
    }
}

#[test]
fn an_interrupt_after_the_load_leaves_the_trial_valid() {
    for place in up_to("interval").len()..STEPS.len() {
        let (step, nth) = occurrence(place);
        let ending = Scenario::complete().interrupt_nth(step, nth).run();
        assert_eq!(ending.steps, join(&[&STEPS]), "{step}");
        assert_eq!(ending.findings(), [""; 0], "{step}");
        let notes = if ["read log", "end trial"].contains(&step) {
            vec![]
        } else {
            vec!["the hook `after` was ended by the user"]
        };
        assert_eq!(ending.notes(), notes, "{step}");
    }
}

#[test]
fn collectors_that_do_not_start_are_a_note() {
    let ending = Scenario::complete().collector_note("collector waits: no").run();
    assert_eq!(ending.steps, join(&[&STEPS]));
    assert_eq!((ending.notes(), ending.findings()), (vec!["collector waits: no"], vec![]));
}

#[test]
fn a_server_that_dies_in_the_load_has_no_teardown_and_no_hook() {
    let replies = [connected(), started(), interval(), client_died(), finished_early()];
    let ending = Scenario::complete().kill_server("interval").driver(replies).run();
    let after = [
        "finish collectors",
        "count commits",
        "read limits",
        "read version",
        "wait for its end",
        "read log",
        "end trial",
    ];
    assert_eq!(ending.steps, join(&[up_to("interval"), &after]));
    let findings = ending.findings();
    assert_eq!(findings[0], "server-exited: the server ended during the trial: signal: 9 (SIGKILL)");
    assert!(findings[1].starts_with("client-died: "), "{findings:?}");
    assert_eq!(ending.events("server-exited"), ["signal: 9 (SIGKILL)"]);
    assert_eq!(ending.end, Some((true, None)));
}

#[test]
fn a_server_that_dies_unnoticed_is_found_after_the_load() {
    let ending = Scenario::reading().kill_server("finish collectors").run();
    assert!(
        ending.steps.ends_with("count commits, read limits, check server, read log, end trial"),
        "{}",
        ending.steps
    );
    assert_eq!(ending.findings()[0], "server-exited: the server ended during the trial: signal: 9 (SIGKILL)");
    assert_eq!(ending.end, Some((true, None)));
}

#[test]
fn a_server_that_dies_in_the_preparation_is_not_asked_again() {
    let ending = Scenario::complete().kill_server("warm").run();
    let after = ["read limits", "read version", "wait for its end", "read log", "end trial"];
    assert_eq!(ending.steps, join(&[up_to("warm"), &after]));
    let findings = ending.findings();
    assert_eq!(findings[0], "server-exited: the server ended during the trial: signal: 9 (SIGKILL)");
    assert!(findings[1].starts_with("load-failed: the server could not be prepared: "), "{findings:?}");
}

#[test]
fn a_server_that_hangs_counts_as_ended() {
    let ending = Scenario::complete().hang_server("send load").driver([failed("no answer", None)]).run();
    assert!(
        ending.steps.ends_with("read version, wait for its end, read log, end trial"),
        "{}",
        ending.steps
    );
    assert_eq!(
        ending.findings()[0],
        "server-exited: the server ended during the trial: it no longer answers"
    );
}

#[test]
fn a_teardown_that_fails_is_a_note() {
    let ending = Scenario::complete().fail("teardown").run();
    assert_eq!(ending.steps, join(&[&STEPS]));
    assert_eq!(
        ending.notes(),
        ["the teardown failed: could not teardown on the server mock: no answer; see its log"]
    );
    assert_eq!(ending.findings(), [""; 0]);
}

#[test]
fn an_own_figure_is_one_of_the_trial_and_its_failure_a_note() {
    let ending = Scenario::complete().run();
    assert_eq!(ending.record().trial.figures, [("figure.recall".to_owned(), 0.5)].into());
    assert_eq!(ending.notes(), [""; 0]);
    let ending = Scenario::complete().fail("determine figure").run();
    assert_eq!(ending.steps, join(&[&STEPS]), "the rest goes on");
    assert_eq!(
        ending.notes(),
        ["figure.recall is not known: could not determine figure on the server mock: no answer; see its log"]
    );
    assert!(ending.record().trial.figures.is_empty());
    assert_eq!(ending.findings(), [""; 0]);
}

#[test]
fn inconsistent_data_make_the_trial_invalid() {
    let ending = Scenario::complete().fail("check consistency").run();
    assert_eq!(ending.steps, join(&[&STEPS]), "the teardown runs all the same");
    assert_eq!(
        ending.findings(),
        ["consistency: could not check consistency on the server mock: no answer; see its log"]
    );
    assert_eq!(ending.record().trial.validity.status, Status::Invalid);
    assert_eq!(ending.notes(), [""; 0]);
}

#[test]
fn an_after_hook_that_fails_is_a_note() {
    let ending = Scenario::complete().fail("after hook").run();
    assert_eq!(ending.steps, join(&[&STEPS]));
    assert_eq!(ending.notes(), ["the hook `after` failed (exit status: 3) without output"]);
    assert_eq!(ending.findings(), [""; 0]);
}

#[test]
fn counts_and_settings_that_can_not_be_read_after_the_load_are_not_known() {
    let ending = Scenario::complete().fail_nth("count commits", 2).run();
    assert_eq!(ending.steps, join(&[&STEPS]));
    assert_eq!(ending.findings(), ["transaction-count: the server's own count could not be read"]);
    assert_eq!(ending.record().trial.accounting.server_commits, None);
    assert_eq!(ending.end, Some((true, None)));

    let ending = Scenario::complete().fail_nth("read settings", 2).run();
    assert_eq!((ending.steps.as_str(), ending.findings()), (join(&[&STEPS]).as_str(), vec![]));
}

#[test]
fn incomplete_iterations_make_the_trial_invalid() {
    let scenario = || {
        let early = [connected(), started(), interval(), finished_early()];
        Scenario::reading().with_workload(|workload| workload.iterations = Some(100)).driver(early)
    };
    let ending = scenario().run();
    assert_eq!(
        ending.findings(),
        ["load-failed: some clients had not completed their iterations (100) after 1s: set a longer \
             `duration` for the workload"]
    );
    // Its server did not fail.
    assert!(ending.steps.contains("count commits, read limits, check server"), "{}", ending.steps);
    assert_eq!(ending.end.map(|(altered, _)| altered), Some(false));

    let ending = scenario().interrupt("interval").run();
    assert_eq!(ending.findings(), ["interrupted: ended by the user after 1.0 s of the window"]);
}

#[test]
fn before_postgresql_15_statistics_have_time_to_arrive() {
    let scenario = |version| Scenario::reading().with_workload(|_| ()).version(version).run().steps;
    assert!(scenario("14.9").contains("interval, pause 600ms, finish collectors"));
    assert!(scenario("15.1").contains("interval, finish collectors"));
}

#[test]
fn unparsed_lines_of_the_log_are_a_note() {
    let ending = Scenario::reading().log("a line of somebody else's\n").run();
    assert_eq!(ending.notes().len(), 1);
    assert!(ending.notes()[0].starts_with("1 lines of the server's log have an unexpected format"));
    assert_eq!(ending.record().logs[0].text, "a line of somebody else's\n");
}

#[test]
fn a_server_that_pgdyno_does_not_own_and_can_not_reach_is_an_outage() {
    for step in ["start server", "warm", "read version", "count commits"] {
        let ending = Scenario::on_external_server().fail(step).run();
        let (kind, reason, loaded) = ending.outage().unwrap();
        assert_eq!((kind, loaded), (Outage::Unreachable, false), "{step}");
        assert!(reason.ends_with(&format!("could not {step} on the server mock: no answer; see its log")));
        // One that pgdyno started is part of the trial.
        assert_eq!(Scenario::reading().fail(step).run().outage(), None, "{step}");
    }
    let refused = || [failed("connection refused", Some(Outage::Unreachable))];
    let ending = Scenario::on_external_server().driver(refused()).run();
    assert_eq!(ending.outage(), Some((Outage::Unreachable, "connection refused", false)));
    assert_eq!(Scenario::reading().driver(refused()).run().outage(), None);
    // What it does to a load is part of the trial.
    let ending = Scenario::on_external_server().driver([connected(), started(), client_died(), finished()]);
    assert_eq!(ending.run().outage(), None);
    let ending = Scenario::on_external_server().driver([failed("no such database", None)]).run();
    assert_eq!(ending.outage(), None);
}

#[test]
fn a_full_disk_is_an_outage_at_any_time() {
    let exhausted = || [failed("cannot start a thread", Some(Outage::Exhausted))];
    let ending = Scenario::reading().driver(exhausted()).run();
    assert_eq!(ending.outage(), Some((Outage::Exhausted, "cannot start a thread", false)));

    let full = client_died_of(Some("53100"), "could not extend file: No space left on device");
    let ending = Scenario::reading().driver([connected(), started(), full, finished()]).run();
    let reason = "could not extend file: No space left on device";
    assert_eq!(ending.outage(), Some((Outage::Exhausted, reason, true)));

    let panic = "PANIC:  could not write to file \"pg_wal/xlogtemp.9\": No space left on device";
    let log = |ending: Scenario| {
        ending.log("PANIC:  could not write to file \"pg_wal/xlogtemp.9\": No space left on device\n")
    };
    let ending = log(Scenario::reading()).driver([connected(), started(), client_died(), finished()]).run();
    assert_eq!(ending.outage(), Some((Outage::Exhausted, panic, true)));
    let ending = log(Scenario::reading()).fail("warm").run();
    assert_eq!(ending.outage(), Some((Outage::Exhausted, panic, false)));
    assert_eq!(log(Scenario::reading()).run().outage(), None, "the load ran to its end");
    let shared_memory = "FATAL:  could not resize shared memory segment: No space left on device\n";
    assert_eq!(
        Scenario::reading().log(shared_memory).fail("warm").run().outage(),
        None,
        "a matter of settings"
    );
}
