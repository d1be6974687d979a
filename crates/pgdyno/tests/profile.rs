//! Campaigns with profiles, on a real server with the real perf; tests that need perf are skipped if it is unavailable.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::fs;

use collect::Perf;
use model::cell::Level;
use model::profile::{MAX_SWITCHES, Profile, Stacks, Unwinding};
use model::record::{Status, TrialRecord};
use model::units::Span;
use skip::skip;
use support::{Bench, signal, text, wait_until, wait_until_gone};

/// Whether profiles are available here; if not, reports why the test is skipped.
fn can_profile() -> bool {
    let profile = Profile { hz: Profile::DEFAULT_HZ, callgraph: None, window: None, off_cpu: None };
    Perf::find(&profile).map_err(skip).is_ok()
}

fn bench(duration: &str, profile: &str) -> Bench {
    let bench = Bench::new(&format!(
        "name = 'profile'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [4]\n\
         [run]\nduration = '{duration}'\nwarmup = '300ms'\nrepeats = 1\n[profile]\n{profile}\n"
    ));
    fs::create_dir(bench.path().join("tmp")).unwrap();
    bench
}

/// Runs pgdyno with its own directory for temporary files.
fn pgdyno(bench: &Bench, args: &[&str]) -> std::process::Output {
    bench.command(args).env("TMPDIR", bench.path().join("tmp")).output().unwrap()
}

fn temporary_files(bench: &Bench) -> usize {
    fs::read_dir(bench.path().join("tmp")).unwrap().count()
}

/// Share of a role's samples that have a function in their stack.
fn share(stacks: &Stacks, is_there: impl Fn(&str) -> bool) -> f64 {
    let with = stacks.samples.iter().filter(|(stack, _)| stack.split(';').any(&is_there));
    with.map(|(_, samples)| *samples).sum::<u64>() as f64 / stacks.total() as f64
}

fn stacks_of<'a>(record: &'a TrialRecord, role: &str) -> &'a Stacks {
    let found = record.stacks.iter().find(|stacks| stacks.role == role);
    found.unwrap_or_else(|| panic!("no {role}: {:?}", record.trial.profile))
}

#[test]
fn a_trial_has_the_stacks_of_each_role_and_their_method() {
    if !can_profile() {
        return;
    }
    let bench = bench("3s", "hz = 299");
    let output = pgdyno(&bench, &["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(temporary_files(&bench), 0);
    let trial = &bench.trials()[0];
    assert_ne!(trial.validity.status, Status::Invalid, "{:?}", trial.validity);
    let record = bench.store().load(&trial.id).unwrap();
    let profile = trial.profile.as_ref().unwrap_or_else(|| panic!("{:?}", record.events));
    assert_eq!((profile.hz, profile.callgraph), (299, Unwinding::Dwarf));
    assert_eq!(profile.callgraph_reason, "0% of 2000 functions of postgres keep frame pointers");
    assert!(profile.event.is_some() && !profile.perf_version.is_empty(), "{profile:?}");
    assert!(profile.from_us >= 300_000 && profile.to_us > profile.from_us, "{profile:?}");
    assert_eq!(profile.samples, record.stacks.iter().map(Stacks::total).sum::<u64>());
    assert!(profile.samples > 50, "{profile:?}");

    let load = stacks_of(&record, "load");
    assert!(share(load, |function| function == "PostgresMain") > 0.9, "{}", load.folded());
    let runs = |function: &str| function.ends_with("ExecutorRun") || function.starts_with("exec_");
    assert!(share(load, runs) > 0.02, "{}", load.folded());
    let of_kernel = |function: &str| function.ends_with(model::profile::KERNEL_SUFFIX);
    assert_eq!(share(load, of_kernel) > 0.0, profile.has_kernel(), "{}", load.folded());
    let driver = stacks_of(&record, "driver");
    assert!(share(driver, |function| function.contains("event_loop")) > 0.2, "{}", driver.folded());
    assert_eq!(share(driver, |function| function == "PostgresMain"), 0.0);

    let shown = pgdyno(&bench, &["profile"]);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown));
    for part in ["load by group", "executor", "protocol", "load by function", "callers by DWARF"] {
        assert!(text(&shown).contains(part), "{part}: {}", text(&shown));
    }
    let stored = text(&pgdyno(&bench, &["store", "show", &trial.id]));
    let words = stored.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [&format!("Profile samples {}", profile.samples), "at 299 Hz", "callers by DWARF", "own CPU"]
    {
        assert!(words.contains(part), "{part}: {stored}");
    }
    let json = pgdyno(&bench, &["store", "show", &trial.id, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["trial"]["profile"]["callgraph"], "dwarf");
    let function = pgdyno(&bench, &["profile", "clients=4", "--function", "PostgresMain"]);
    assert_eq!(function.status.code(), Some(0), "{}", text(&function));
    let drawn = pgdyno(&bench, &["profile", "--role", "load", "--svg", "load.svg"]);
    assert_eq!(drawn.status.code(), Some(0), "{}", text(&drawn));
    assert!(fs::read_to_string(bench.path().join("load.svg")).unwrap().contains("PostgresMain ("));
    let folded = pgdyno(&bench, &["profile", "--role", "load", "--folded"]);
    assert!(String::from_utf8_lossy(&folded.stdout).starts_with("postgres"), "{}", text(&folded));
    let both = pgdyno(&bench, &["profile", "clients=4", "clients=4", "--folded"]);
    assert_eq!(both.status.code(), Some(2), "{}", text(&both));

    let bundle = support::bundle(&bench, &trial.id);
    let listed = fs::read_to_string(bundle.join("SHA256SUMS")).unwrap();
    assert!(listed.contains("  stacks/load.folded.zst\n"), "{listed}");
    let check = pgdyno(&bench, &["store", "check"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check));
}

#[test]
fn a_part_of_the_window_is_profiled_if_requested() {
    if !can_profile() {
        return;
    }
    let bench = bench("2s", "window = '500ms'\ncallgraph = 'fp'");
    let output = pgdyno(&bench, &["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let profile = bench.trials()[0].profile.clone().unwrap();
    assert_eq!(profile.callgraph, Unwinding::FramePointers);
    assert_eq!(profile.callgraph_reason, "requested by the campaign");
    // On a busy machine, both ends may be late: a late start makes it shorter.
    let length_us = profile.to_us - profile.from_us;
    assert!(profile.from_us >= 300_000 && (100_000..1_500_000).contains(&length_us), "{profile:?}");
}

#[test]
fn a_cell_is_measured_and_its_profile_shown() {
    let bench = bench("1s", "");
    let wrong = |args: &[&str], why: &str| {
        let output = pgdyno(&bench, args);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains(why), "{why}: {}", text(&output));
        assert!(!bench.path().join(".pgdyno").exists());
    };
    wrong(&["profile", "--measure", "sever=18"], "there is no factor \"sever\"; there are server,");
    wrong(&["profile", "--measure", "server=18,workload=tpcc,clients=2"], "there is no workload \"tpcc\"");
    wrong(&["profile", "--measure", "server=18,workload=select-only"], "clients");
    if !can_profile() {
        return;
    }
    let cell = "server=18,workload=select-only,clients=2,duration=2s";
    let args =
        ["profile", "--measure", cell, "--set", "profile.hz=499", "--role", "load", "--format", "json"];
    let output = pgdyno(&bench, &args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let profile = &json["profiles"][0];
    assert_eq!((&profile["taken"][0]["hz"], &profile["roles"][0]["role"]), (&499.into(), &"load".into()));
    let trials = bench.trials();
    assert_eq!((trials.len(), trials[0].cell.clients), (1, Level::Known(2)));
    assert!(trials[0].run.campaign_toml.contains("hz = 499"), "{}", trials[0].run.campaign_toml);
}

#[test]
fn alone_sessions_that_wait_for_a_row_are_off_cpu_in_the_lock() {
    let profile = Profile {
        hz: Profile::DEFAULT_HZ,
        callgraph: None,
        window: None,
        off_cpu: Some(Span::from_us(1_000_000)),
    };
    if let Err(why) = Perf::find(&profile) {
        return skip(why);
    }
    // All clients update one row and lock it for 20 ms: seven of eight wait for it.
    let bench = Bench::new(
        "name = 'off-cpu'\n[factors]\nserver = ['18']\nworkload = ['row.sql']\nclients = [8]\n\
         [run]\nduration = '5s'\nwarmup = '300ms'\nrepeats = 1\n[profile]\noff_cpu = '1s'\n",
    );
    fs::create_dir(bench.path().join("tmp")).unwrap();
    let script = "BEGIN;\nUPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;\n\
                  SELECT pg_sleep(0.02);\nEND;\n";
    fs::write(bench.path().join("row.sql"), script).unwrap();
    let output = pgdyno(&bench, &["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(temporary_files(&bench), 0);
    let record = bench.store().load(&bench.trials()[0].id).unwrap();
    let taken = record.trial.profile.as_ref().unwrap_or_else(|| panic!("{:?}", record.events));
    let off_cpu = taken.off_cpu.as_ref().unwrap_or_else(|| panic!("{:?}", record.events));
    // As long as there are fewer than the stacks wanted, each has one, unless its stack was taken before the start.
    let all = off_cpu.switches.min(MAX_SWITCHES / 2);
    assert!(off_cpu.switches > 0 && off_cpu.sampled as f64 > 0.9 * all as f64, "{off_cpu:?}");
    assert!(taken.to_us <= off_cpu.from_us && off_cpu.to_us > off_cpu.from_us, "{taken:?}");
    let load = record.off_cpu.iter().find(|stacks| stacks.role == "load");
    let load = load.unwrap_or_else(|| panic!("{:?}", record.off_cpu));
    // Eight sessions, which do almost nothing but wait.
    let window_us = (off_cpu.to_us - off_cpu.from_us) as f64;
    let waited = load.total() as f64 / (8.0 * window_us);
    assert!((0.8..1.01).contains(&waited), "{waited} {off_cpu:?}: {}", load.folded());
    let locks = share(load, |function| function.starts_with("LockAcquire"));
    assert!(locks > 0.6, "{locks} {off_cpu:?}: {}", load.folded());
    // One at a time sleeps, except while it commits. If the machine is busy, only one switch of several has a stack: then the
    // time is an estimate from as many sleeps.
    let slept = share(load, |function| function == "pg_sleep") * load.total() as f64 / window_us;
    let sampled = off_cpu.sampled as f64 / off_cpu.switches as f64;
    let sleeps = slept * window_us / 20_000.0 * sampled;
    let error = ((1.0 - sampled) / sleeps).sqrt();
    assert!((0.3..1.05 + 4.0 * error).contains(&slept), "{slept} {error} {off_cpu:?}: {}", load.folded());

    let shown = pgdyno(&bench, &["profile", "--off-cpu"]);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown));
    let first =
        text(&shown).lines().skip_while(|line| !line.starts_with("load by group")).nth(1).unwrap().to_owned();
    assert!(first.starts_with("lock "), "{}", text(&shown));
    let function = pgdyno(&bench, &["profile", "--off-cpu", "--function", "ProcSleep"]);
    assert_eq!(function.status.code(), Some(0), "{}", text(&function));
    let drawn = pgdyno(&bench, &["profile", "--off-cpu", "--role", "load", "--svg", "waits.svg"]);
    assert_eq!(drawn.status.code(), Some(0), "{}", text(&drawn));
    assert!(fs::read_to_string(bench.path().join("waits.svg")).unwrap().contains("ProcSleep ("));
    let stored = text(&pgdyno(&bench, &["store", "show", &record.trial.id]));
    assert!(stored.contains(&format!("{} switches", off_cpu.switches)), "{stored}");
    let check = pgdyno(&bench, &["store", "check"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check));
}

#[test]
fn ctrl_c_leaves_neither_perf_nor_its_recording() {
    if !can_profile() {
        return;
    }
    let bench = bench("60s", "");
    let mut running = {
        let mut command = bench.command(&["run", "campaign.toml"]);
        command.env("TMPDIR", bench.path().join("tmp"));
        bench.start_command(command)
    };
    running.wait_for("trial 1/1");
    let mut process_tree = Vec::new();
    wait_until("the load runs beside perf", || {
        process_tree = running.process_tree();
        process_tree.iter().any(|process| process.command.contains("perf record"))
            && process_tree.iter().any(|process| process.command.contains("postgres pgdyno [local]"))
    });
    signal(running.pid(), libc::SIGINT);
    let (code, stderr) = running.end();
    assert_eq!(code, Some(130), "{stderr}");
    wait_until_gone(&process_tree);
    assert_eq!(temporary_files(&bench), 0);
    let check = pgdyno(&bench, &["store", "check"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check));
}

#[test]
fn without_perf_the_plan_reports_it_and_nothing_starts() {
    let bench = bench("1s", "");
    let without = |args: &[&str]| bench.command(args).env("PATH", bench.path()).output().unwrap();
    let plan = without(&["plan", "campaign.toml"]);
    assert_eq!(plan.status.code(), Some(0), "{}", text(&plan));
    let stderr = String::from_utf8_lossy(&plan.stderr).into_owned();
    assert!(stderr.contains("This can't run here: a profile needs the program perf"), "{stderr}");
    assert!(stderr.contains("apt-get install linux-perf"), "{stderr}");
    let run = without(&["run", "campaign.toml"]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run));
    assert!(text(&run).contains("apt-get install linux-perf"), "{}", text(&run));
    assert!(!text(&run).contains("starting PostgreSQL"), "{}", text(&run));
    assert_eq!(bench.trials().len(), 0);
}

#[test]
fn refused_access_to_perf_is_reported_with_the_remedy() {
    let bench = bench("1s", "");
    // The kernel's refusal can't be provoked at will, but perf's message about it is known.
    let perf = bench.path().join("perf");
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && { echo perf version 6.1.0; exit; }\n\
                  echo 'Access to performance monitoring and observability operations is limited.' >&2\nexit 255\n";
    fs::write(&perf, script).unwrap();
    fs::set_permissions(&perf, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run = bench.command(&["run", "campaign.toml"]).env("PATH", bench.path()).output().unwrap();
    assert_eq!(run.status.code(), Some(1), "{}", text(&run));
    for part in ["perf may not take 99 samples per second", "kernel.perf_event_paranoid=1", "is limited"] {
        assert!(text(&run).contains(part), "{part}: {}", text(&run));
    }
    let only_running = script
        .replace("echo 'Access", "case \"$*\" in *context-switches*) ;; *) exit 0 ;; esac\necho 'Access");
    fs::write(&perf, only_running).unwrap();
    let args = ["run", "campaign.toml", "--set", "duration=10s", "--set", "profile.off_cpu=2s"];
    let run = bench.command(&args).env("PATH", bench.path()).output().unwrap();
    assert_eq!(run.status.code(), Some(1), "{}", text(&run));
    for part in [
        "perf may not record context switches",
        "kernel.perf_event_paranoid=1",
        "leave off_cpu out",
        "is limited",
    ] {
        assert!(text(&run).contains(part), "{part}: {}", text(&run));
    }
    let old = script.replace("6.1.0", "4.19.1");
    fs::write(&perf, old).unwrap();
    let run = bench.command(&["run", "campaign.toml"]).env("PATH", bench.path()).output().unwrap();
    assert!(text(&run).contains("needs perf 5.12 or later"), "{}", text(&run));
}
