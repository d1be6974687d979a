//! User-defined workloads: their data, scripts, commit counts, and files in the bundle.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::fs;
use std::time::Duration;

use model::record::Status;
use support::{Bench, signal, text, wait_until};

/// A campaign with the files of its workloads.
fn bench(campaign: &str, files: &[(&str, &str)]) -> Bench {
    let bench = Bench::new(campaign);
    for (name, text) in files {
        let path = bench.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    bench
}

const KINDS: &str = "name = 'kinds'\n[factors]\nserver = ['11', '18']\nsettings = ['quiet']\nclients = [3]\n\
     workload = ['statements', 'blocks-and-rollbacks', 'pipeline', 'joined', 'procedure', 'workers', 'reconnecting']\n\
     exclude = [{ server = '18', workload = 'joined' }]\n\
     [run]\nduration = '300ms'\nwarmup = '100ms'\nrepeats = 1\nseed = 1\n\
     [settings.quiet]\nautovacuum = false\nsynchronous_commit = false\nparallel_setup_cost = 0\nparallel_tuple_cost = 0\n\
     [workloads.statements]\nscripts = ['statements.sql@2', 'select-only']\n\
     [workloads.blocks-and-rollbacks]\nscript = 'rollbacks.sql'\n\
     [workloads.pipeline]\nscript = 'pipeline.sql'\n\
     [workloads.joined]\nscript = 'joined.sql'\n\
     [workloads.procedure]\nscript = 'procedure.sql'\nsetup = 'procedure-setup.sql'\ntables = 'none'\n\
     [workloads.workers]\nscript = 'workers.sql'\nwrites = false\n\
     [workloads.reconnecting]\nscript = 'select-only'\nreconnect = true\n";

const FILES: [(&str, &str); 7] = [
    (
        "statements.sql",
        "select 1;\nupdate pgbench_tellers set tbalance = 1 where tid = :client_id + 1;\nselect 2;\n",
    ),
    (
        "rollbacks.sql",
        "begin;\nselect 1;\nsavepoint a;\nrollback to a;\ncommit;\nbegin;\nselect 2;\nrollback;\n\
         \\if :client_id = 1\nselect 3;\n\\endif\n",
    ),
    ("pipeline.sql", "\\startpipeline\nselect 1;\nselect 2;\n\\syncpipeline\nselect 3;\n\\endpipeline\n"),
    ("joined.sql", "select 1 \\; select 2;\n"),
    ("procedure.sql", "call thrice();\n"),
    (
        "procedure-setup.sql",
        "create table kept (n int);\n\
         create procedure thrice() language plpgsql as $$ begin for i in 1..3 loop\n\
         insert into kept values (i); commit; end loop; end $$;\n",
    ),
    ("workers.sql", "select count(*) from pgbench_accounts;\n"),
];

#[test]
fn the_commits_of_every_kind_of_script_are_the_servers() {
    let campaign = KINDS.replace("clients = [3]", "clients = [3]\nprotocol = ['simple', 'prepared']");
    // Statements joined by `\;` can't be prepared, and pipelines need the extended protocol.
    let campaign = campaign.replace(
        "exclude = [{ server = '18', workload = 'joined' }]",
        "exclude = [{ protocol = 'prepared', workload = 'joined' }, { protocol = 'simple', workload = 'pipeline' }]",
    );
    let bench = bench(&campaign, &FILES);
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(trials.len(), 2 * (2 * 7 - 2));
    for trial in &trials {
        let cell = &trial.cell;
        let (context, surplus) =
            (format!("{cell}: {:?}", trial.accounting), trial.accounting.surplus().unwrap());
        assert_ne!(trial.validity.status, Status::Invalid, "{context} {:?}", trial.validity);
        assert!(trial.accounting.driver_transactions.unwrap() > 0, "{context}");
        let finding = trial.validity.findings.iter().find(|finding| finding.gate == "transaction-count");
        match cell.workload.known().unwrap().name() {
            // Commits that can't be counted are reported, without an alarm.
            "procedure" | "workers" => {
                assert!(trial.accounting.has_unreported_commits && surplus > 0, "{context}");
                assert_eq!(finding.unwrap().status, Status::Valid, "{context} {finding:?}");
            }
            _ => assert_eq!((surplus, finding), (0, None), "{context}"),
        }
    }
    let count = |name: &str| {
        let trial = trials.iter().find(|trial| trial.cell.workload.known().unwrap().name() == name).unwrap();
        trial.accounting.driver_commits.unwrap() as f64 / trial.accounting.driver_transactions.unwrap() as f64
    };
    // Three statements outside of transaction blocks, in two of three transactions.
    assert!(count("statements") > 1.5, "{}", count("statements"));
    let record = bench.store().load(&trials[0].id).unwrap();
    assert!(!record.intervals.is_empty());
}

/// Sessions of servers before PostgreSQL 15 send their statistics to a process of the server, which is stopped here for a while.
#[test]
fn statistics_that_the_kernel_dropped_make_no_trial_invalid() {
    let campaign = "name = 'lost'\n[factors]\nserver = ['9.6']\nworkload = ['connect']\nclients = [8]\n\
         [run]\nduration = '6s'\nrepeats = 1\nretries = 0\nseed = 1\n";
    let bench = Bench::new(campaign);
    let running = bench.start();
    let find = |name: &str| running.process_tree().into_iter().find(|one| one.command.contains(name));
    wait_until("the load runs", || find("pgdyno driver").is_some() && find("stats collector").is_some());
    let collector = find("stats collector").unwrap();
    std::thread::sleep(Duration::from_secs(1));
    signal(collector.pid, libc::SIGSTOP);
    std::thread::sleep(Duration::from_secs(3));
    signal(collector.pid, libc::SIGCONT);
    let (status, shown) = running.end();
    let trial = bench.trials().remove(0);
    let (surplus, findings) = (trial.accounting.surplus().unwrap(), &trial.validity.findings);
    assert!(surplus < 0, "nothing was dropped: {:?}", trial.accounting);
    let finding = findings.iter().find(|finding| finding.gate == "transaction-count").unwrap();
    assert_eq!(finding.status, Status::Valid, "{finding:?}");
    assert!(finding.evidence.contains(" fewer; the kernel dropped "), "{finding:?}");
    assert_eq!(status, Some(0), "{shown}");
}

#[test]
fn the_bundle_is_sufficient_to_run_the_trial_again() {
    let campaign = "name = 'own'\n[factors]\nserver = ['18']\nworkload = ['jobs']\nclients = [2]\nscale = [2]\n\
         [run]\nduration = '1s'\nrepeats = 1\nseed = 1\n\
         [workloads.jobs]\ndirectory = 'workloads/jobs'\nparameters = { jobs = 50 }\n";
    let toml = "description = 'Takes jobs off a list'\nscripts = ['take.sql@3', 'add.sql']\n\
         setup = ['tables.sql', 'rows.sql']\nteardown = 'check.sql'\ntables = 'none'\nparameters = { jobs = 10 }\n";
    let bench = bench(
        campaign,
        &[
            ("workloads/jobs/workload.toml", toml),
            ("workloads/jobs/take.sql", "delete from jobs where id = (select min(id) from jobs);\n"),
            ("workloads/jobs/add.sql", "insert into jobs values (default, :jobs);\n"),
            ("workloads/jobs/tables.sql", "create table jobs (id serial primary key, n int);\n"),
            (
                "workloads/jobs/rows.sql",
                "\\set all :jobs * :scale\ninsert into jobs (n) select g from generate_series(1, :all) g;\n",
            ),
            ("workloads/jobs/check.sql", "do $$ begin raise exception 'looked at the list'; end $$;\n"),
        ],
    );
    let planned = bench.pgdyno(&["plan", "campaign.toml"]);
    assert!(text(&planned).contains("jobs: Takes jobs off a list"), "{}", text(&planned));
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));

    let trial = bench.trials().remove(0);
    let record = bench.store().load(&trial.id).unwrap();
    let relations: Vec<_> =
        record.environment.server.relations.iter().flatten().map(|table| table.name.as_str()).collect();
    assert_eq!(relations, ["jobs"], "without pgbench's tables");
    let custom = trial.cell.workload.known().unwrap().custom().unwrap();
    assert_eq!(custom.scripts[0].weight, 3);
    assert_eq!(custom.parameters["jobs"], "50");
    assert!(custom.setup[1].text.contains(":jobs * :scale"));
    let is_message = |event: &model::record::Event| event.message.contains("check.sql:1: looked at the list");
    assert!(record.events.iter().any(is_message), "{:?}", record.events);
    let mut scripts: Vec<_> = record.intervals.iter().flat_map(|i| &i.scripts).map(|s| &s.script).collect();
    scripts.sort();
    scripts.dedup();
    assert_eq!(scripts, ["add.sql", "take.sql"], "figures by script");
    assert_eq!(trial.accounting.surplus(), Some(0), "{:?}", trial.accounting);

    // The run can be resumed and shown without the files.
    fs::remove_dir_all(bench.path().join("workloads")).unwrap();
    let output = bench.pgdyno(&["resume"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(bench.trials().len(), 1, "nothing was missing");
    let report = bench.pgdyno(&["report", "-o", "report.html"]);
    assert_eq!(report.status.code(), Some(0), "{}", text(&report));
}

#[test]
fn different_scripts_of_one_name_are_different_workloads() {
    let campaign = "name = 'same'\n[factors]\nserver = ['18']\nworkload = ['w.sql']\nclients = [1]\n\
         [run]\nduration = '100ms'\nrepeats = 1\nseed = 1\n";
    let bench = bench(campaign, &[("w.sql", "select 1;\n")]);
    assert_eq!(bench.pgdyno(&["run", "campaign.toml"]).status.code(), Some(0));
    fs::write(bench.path().join("w.sql"), "select 1, 2;\n").unwrap();
    let resumed = bench.pgdyno(&["resume", "campaign.toml"]);
    assert_eq!(resumed.status.code(), Some(2), "{}", text(&resumed));
    assert!(text(&resumed).contains("has been edited"), "{}", text(&resumed));
    assert_eq!(bench.pgdyno(&["run", "campaign.toml"]).status.code(), Some(0));
    // An invalid trial has been run again, so that a run may have several.
    let mut runs: Vec<_> = bench.trials().into_iter().map(|trial| format!("run:{}", trial.run.id)).collect();
    runs.sort();
    runs.dedup();
    let [first, second] = runs.as_slice() else { panic!("{runs:?}") };
    let compared = bench.pgdyno(&["compare", first, second]);
    assert_ne!(compared.status.code(), Some(0), "{}", text(&compared));
    assert!(text(&compared).contains("share no cell"), "{}", text(&compared));
}

#[test]
fn mistakes_in_scripts_are_reported_before_any_server_starts() {
    let campaign = "name = 'bad'\n[factors]\nserver = ['18']\nworkload = ['w.sql']\nclients = [1]\n";
    let wrong = bench(campaign, &[("w.sql", "select 1;\n\\set x random(1\n")]);
    let planned = wrong.pgdyno(&["plan", "campaign.toml"]);
    assert_eq!(planned.status.code(), Some(2), "{}", text(&planned));
    assert!(text(&planned).contains("w.sql:2: syntax error"), "{}", text(&planned));
    assert!(text(&planned).contains("^ error found here"), "{}", text(&planned));

    // The server checks SQL, when the data set is created.
    let campaign = "name = 'bad'\n[factors]\nserver = ['18']\nworkload = ['w']\nclients = [1]\n\
         [workloads.w]\nscript = 'w.sql'\nsetup = 's.sql'\n";
    let refused = bench(campaign, &[("w.sql", "select 1;\n"), ("s.sql", "\n\ncreate tible x ();\n")]);
    let output = refused.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    for words in ["the setup of the workload \"w\" failed at s.sql:3", "syntax error at or near \"tible\""] {
        assert!(text(&output).contains(words), "{words}: {}", text(&output));
    }
}

#[test]
fn errors_in_setup_expressions_are_reported_before_any_server_starts() {
    let campaign = |key: &str, exclude: &str| {
        format!(
            "name = 'bad'\n[factors]\nserver = ['18']\nworkload = ['w', 'select-only']\nclients = [1]\n\
             scale = [1, 2]\n{exclude}\n[workloads.w]\nscript = 'w.sql'\n{key} = 's.sql'\n"
        )
    };
    let files = [("w.sql", "select 1;\n"), ("s.sql", "select 1;\n\\set x 1 / (:scale - 2)\n")];
    for key in ["setup", "teardown"] {
        let wrong = bench(&campaign(key, ""), &files).pgdyno(&["plan", "campaign.toml"]);
        assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong));
        let error = "error: the workload \"w\" at scale 2: s.sql:2: division by zero";
        assert!(text(&wrong).contains(error), "{}", text(&wrong));
        let without = campaign(key, "exclude = [{ workload = 'w', scale = 2 }]");
        let planned = bench(&without, &files).pgdyno(&["plan", "campaign.toml"]);
        assert_eq!(planned.status.code(), Some(0), "{}", text(&planned));
    }
}

const BACKGROUND: &str = "name = 'beside'\n[factors]\nserver = ['9.6', '18']\nsettings = ['quiet']\nclients = [2]\nscale = [2]\n\
     workload = ['alone', 'mixed']\n[run]\nduration = '3s'\nwarmup = '500ms'\nrepeats = 1\nseed = 1\n\
     [settings.quiet]\nautovacuum = false\nmax_parallel_workers_per_gather = 0\n\
     [workloads.alone]\nbuiltin = 'select-only'\nspans = false\n\
     [workloads.mixed]\nbuiltin = 'select-only'\n\
     background = [{ workload = 'busy', clients = 5, start = '200ms' }, { workload = 'once.sql' }, { workload = 'long.sql' }]\n\
     [workloads.busy]\nscript = 'scan.sql'\nwrites = false\nspans = true\nstagger = '100ms'\nparameters = { rounds = 20 }\n";

const BACKGROUND_FILES: [(&str, &str); 3] = [
    ("long.sql", "select pg_sleep(600);\n"),
    (
        "scan.sql",
        "select count(*) from pgbench_accounts a, generate_series(1, :rounds) where a.aid * 7 % 5 = :client_id;\n",
    ),
    ("once.sql", "\\sleep 500 ms\nselect 2;\n"),
];

#[test]
fn alone_background_workloads_have_their_own_figures_and_are_named_as_causes() {
    let bench = bench(BACKGROUND, &BACKGROUND_FILES);
    let planned = text(&bench.pgdyno(&["plan", "campaign.toml"]));
    let beside = "mixed: in the background busy (clients: 5 from 200ms on), once.sql (clients: 1), long.sql (clients: 1)";
    assert!(planned.contains(beside), "{planned}");
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        let context = format!("{}: {:?} {:?}", trial.cell, trial.validity, trial.accounting);
        assert_ne!(trial.validity.status, Status::Invalid, "{context}");
        assert_eq!(trial.accounting.surplus(), Some(0), "{context}");
        let summary = trial.summary.as_ref().unwrap();
        let record = bench.store().load(&trial.id).unwrap();
        if trial.cell.workload.known().unwrap().name() == "alone" {
            assert!(summary.background.is_empty());
            continue;
        }
        let [busy, once, long] = summary.background.as_slice() else { panic!("{context}") };
        // The end of the load cuts it short, and it is not counted.
        assert_eq!((long.transactions, long.failed, &long.latency), (0, 0, &None));
        assert_eq!((busy.workload.as_str(), once.workload.as_str()), ("busy", "once.sql"));
        assert!(busy.transactions > 0 && once.transactions >= 2, "{summary:?}");
        // Their latency is separate from that of the lookups.
        let mean_us = summary.latency.as_ref().unwrap().mean_us.unwrap();
        assert!(once.latency.as_ref().unwrap().min_us.unwrap() >= 499_000.0, "{summary:?}");
        assert!(busy.latency.as_ref().unwrap().mean_us.unwrap() > 10.0 * mean_us, "{summary:?}");
        // They are counted separately in each interval.
        let scripts: Vec<&str> =
            record.intervals[0].background.iter().map(|script| script.script.as_str()).collect();
        assert_eq!(scripts, ["busy/scan.sql", "once.sql", "long.sql"]);
        assert_eq!(record.intervals[0].scripts[0].script, "select-only");
        let cpu_us = record.metrics.growth("role.run_us", Some("beside"), 500_000, 3_500_000).unwrap();
        assert!(cpu_us > 300_000.0, "{cpu_us}");
        assert!(record.waits.iter().any(|waits| waits.session.name() == "beside"));

        let explained = text(&bench.pgdyno(&["explain", &trial.id]));
        assert!(
            explained.contains("\nbeside: ") && explained.contains("busy, once.sql, long.sql used "),
            "{explained}"
        );
        let shown = text(&bench.pgdyno(&["store", "show", &trial.id]));
        assert!(shown.contains("background: busy"), "{shown}");
    }
    let reported = text(&bench.pgdyno(&["report"]));
    let of_busy: Vec<&str> = reported.lines().filter(|line| line.starts_with("busy ")).collect();
    assert_eq!(of_busy.len(), 2, "{reported}");
    let compared = text(&bench.pgdyno(&[
        "compare",
        "server=9.6,workload=mixed",
        "server=18,workload=mixed",
        "--metric",
        "beside.latency.mean{busy}",
    ]));
    assert!(compared.contains("B against A: mean latency of busy, a background workload\n"), "{compared}");
}

#[test]
fn a_load_ends_after_its_iterations_or_reports_that_time_was_too_short() {
    let campaign = "name = 'ends'\n[factors]\nserver = ['18']\nclients = [3]\nworkload = ['done', 'late']\n\
         [run]\nrepeats = 1\nretries = 0\nseed = 1\nduration = '60s'\nwarmup = '10s'\n\
         [workloads.done]\nscript = 'nap.sql'\nparameters = { ms = 100 }\niterations = 4\nstagger = '150ms'\n\
         [workloads.late]\nscript = 'nap.sql'\nparameters = { ms = 300 }\niterations = 100\nduration = '1s'\n";
    let bench = bench(campaign, &[("nap.sql", "select pg_sleep(:ms / 1000.0);\n")]);
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    let trials = bench.trials();
    let trial_of =
        |name: &str| trials.iter().find(|trial| trial.cell.workload.known().unwrap().name() == name).unwrap();
    let (done, late) = (trial_of("done"), trial_of("late"));
    assert_ne!(done.validity.status, Status::Invalid, "{:?} {}", done.validity, text(&output));
    let summary = done.summary.as_ref().unwrap();
    assert_eq!((summary.transactions, summary.failed), (Some(12), Some(0)));
    // The last client begins 300 ms after the first, and sleeps four times.
    let window_us = summary.window_us.unwrap();
    assert!((700_000..3_000_000).contains(&window_us), "{window_us}");
    assert!(summary.statistics.is_none());
    assert_eq!(late.validity.status, Status::Invalid);
    let evidence = &late.validity.findings[0].evidence;
    assert!(
        evidence.contains("some clients had not completed their iterations (100) after 1s"),
        "{evidence}"
    );
}

#[test]
fn a_refused_statement_ends_the_campaign_with_its_message_alone() {
    let campaign = "name = 'refused'\n[factors]\nserver = ['18']\nworkload = ['wrong']\nclients = [1, 2]\n\
                    [run]\nduration = '30s'\nwarmup = '100ms'\nrepeats = 3\nseed = 1\n\
                    [workloads.wrong]\nscript = 'wrong.sql'\n";
    let bench = bench(campaign, &[("wrong.sql", "select 1;\nselect * from nowhere;\n")]);
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_eq!(text.matches("relation \"nowhere\" does not exist").count(), 1, "{text}");
    assert!(text.contains("wrong.sql") && text.contains("Correct the workload"), "{text}");
    assert!(!text.contains("invalid") && !text.contains("clients failed"), "{text}");
    assert!(!text.contains("prepared statement"), "{text}");
    let trials = bench.trials();
    assert_eq!(trials.len(), 1, "no other trial was attempted");
    assert_eq!(trials[0].validity.status, Status::Invalid);
    let interval = &bench.store().load(&trials[0].id).unwrap().intervals;
    assert!(interval.len() < 10, "the load ended: {}", interval.len());
}

/// Errors that another try may not have end no campaign: division by zero is of class 22.
#[test]
fn another_error_is_tried_again() {
    let campaign = "name = 'failing'\n[factors]\nserver = ['18']\nworkload = ['wrong']\nclients = [1]\n\
                    [run]\nduration = '300ms'\nwarmup = '0s'\nrepeats = 1\nretries = 1\nseed = 1\n\
                    [workloads.wrong]\nscript = 'wrong.sql'\n";
    let bench = bench(campaign, &[("wrong.sql", "select 1 / 0;\n")]);
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert!(!text(&output).contains("Correct the workload"), "{}", text(&output));
    assert_eq!(bench.trials().len(), 2);
}
