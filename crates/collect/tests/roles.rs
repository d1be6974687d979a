//! Roles of real servers' processes, compared with the kernel's figures for each process.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use collect::{Backends, Processes, Reading, Source, Value, Watched};
use host::{Cache, NoProgress};
use model::message::Endpoint;
use model::metrics::Kind;
use model::workload::Transport;
use server::{Cluster, Server};
use wire::ConnectParams;
use wire::blocking::Session;

/// CPU time that a server's other sessions may still use, such as the one that checked that it is ready.
const OTHERS_US: f64 = 50_000.0;
/// Long enough to differ from that.
const CPU_QUERY: &str = "select count(*) from generate_series(1, 1500000) where random() < 2";

fn start(major: &str, settings: &[(&str, &str)]) -> Server {
    let cache = Cache::open().unwrap();
    let installation = server::install(&cache, major, &NoProgress).unwrap();
    let settings: BTreeMap<String, String> =
        settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Cluster::empty(&cache, &installation, &[]).unwrap().start(&settings).unwrap()
}

fn connect(server: &Server) -> (Session, i32) {
    let Endpoint::Unix { directory, port } = server.endpoint(Transport::Unix) else { panic!("not a socket") };
    let params = ConnectParams::new(directory, port, server::USER, "postgres", None);
    let session = Session::connect(&params).unwrap();
    let pid = session.info().process_id;
    (session, pid)
}

fn watch(server: &Server) -> (Processes, Arc<Mutex<Backends>>) {
    let backends = Arc::default();
    let watched =
        Watched { postmaster: Some(server.pid()), backends: Arc::clone(&backends), ..Watched::default() };
    (Processes::new(watched), backends)
}

type Values = BTreeMap<(String, String), (Kind, f64)>;

fn read(processes: &mut Processes) -> Values {
    let mut reading = Reading::default();
    processes.read(&mut reading).unwrap();
    let key = |value: &Value| (value.metric.name.to_owned(), value.label.clone().unwrap());
    reading.values().iter().map(|value| (key(value), (value.metric.kind, value.value))).collect()
}

fn get(values: &Values, metric: &str, role: &str) -> f64 {
    let key = (metric.to_owned(), role.to_owned());
    values.get(&key).unwrap_or_else(|| panic!("no {metric} of {role} in {values:#?}")).1
}

/// Time on a CPU and in run queues, in microseconds, as reported by the kernel.
fn schedule_us(pid: i32) -> [f64; 2] {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    let mut numbers = text.split_whitespace().map(|number| number.parse::<f64>().unwrap() / 1000.0);
    [numbers.next().unwrap(), numbers.next().unwrap()]
}

/// Growth of each, less rounding errors.
fn growth(before: [f64; 2], after: [f64; 2]) -> [f64; 2] {
    [after[0] - before[0] - 1e-3, after[1] - before[1] - 1e-3]
}

/// Waits until a process has ended, and its parent has waited for it.
fn wait_for_end(pid: i32) {
    let end = Instant::now() + Duration::from_secs(30);
    while Path::new(&format!("/proc/{pid}")).exists() {
        assert!(Instant::now() < end, "process {pid} does not end");
        std::thread::yield_now();
    }
}

fn assert_no_counter_decreased(before: &Values, after: &Values) {
    for (name, (kind, value)) in before {
        let now = after.get(name).unwrap_or_else(|| panic!("{name:?} is gone"));
        assert!(*kind == Kind::Gauge || now.1 >= *value, "{name:?}: {value}, then {}", now.1);
    }
}

#[test]
fn the_time_of_a_process_counts_for_its_role() {
    for major in ["9.6", "13", "18"] {
        // The cluster's name is part of every title.
        let server = start(major, &[("cluster_name", "main: a")]);
        let (mut processes, backends) = watch(&server);
        let (mut load, load_pid) = connect(&server);
        let (mut collector, collector_pid) = connect(&server);
        backends.lock().unwrap().collectors.push(collector_pid);

        for (session, pid, role, other) in
            [(&mut load, load_pid, "load", "collector"), (&mut collector, collector_pid, "collector", "load")]
        {
            let lower_before = schedule_us(pid);
            let before = read(&mut processes);
            let upper_before = schedule_us(pid);
            session.execute(CPU_QUERY).unwrap();
            let lower_after = schedule_us(pid);
            let after = read(&mut processes);
            let upper_after = schedule_us(pid);
            let grew = |metric: &str, role: &str| get(&after, metric, role) - get(&before, metric, role);
            let [min_run, min_wait] = growth(upper_before, lower_after);
            let [max_run, _] = growth(lower_before, upper_after);
            let [run, wait] = ["role.run_us", "role.wait_us"].map(|metric| grew(metric, role));
            assert!(run >= min_run && run <= max_run + OTHERS_US, "{major}: {min_run} {run} {max_run}");
            // No upper bound: other processes that were still ending may have waited.
            assert!(wait >= min_wait, "{major}: {min_wait} {wait}");
            assert!(grew("role.run_us", role) > 2.0 * OTHERS_US, "{major}: {CPU_QUERY} is too short");
            assert!(grew("role.run_us", other) < OTHERS_US, "{major}: {other} did what {role} did");
            let by_ticks = grew("role.user_us", role) + grew("role.system_us", role);
            assert!((by_ticks - grew("role.run_us", role)).abs() < OTHERS_US, "{major}: {by_ticks} by ticks");
            assert_no_counter_decreased(&before, &after);
        }

        let one =
            ["checkpointer", "background writer", "walwriter", "autovacuum launcher", "postmaster", "pgdyno"];
        let now = read(&mut processes);
        for role in one {
            assert_eq!(get(&now, "role.processes", role), 1.0, "{role} of {major}");
        }
        let stats_collectors = if major == "18" { 0.0 } else { 1.0 };
        assert_eq!(get(&now, "role.processes", "stats collector"), stats_collectors, "{major}");
        assert_eq!(get(&now, "role.processes", "io worker") > 0.0, major == "18", "{major}");

        // Their counters remain after their end.
        drop((load, collector));
        wait_for_end(load_pid);
        wait_for_end(collector_pid);
        let after = read(&mut processes);
        assert_no_counter_decreased(&now, &after);
        assert_eq!(get(&after, "role.processes", "collector"), 0.0);
        assert_eq!(get(&after, "role.run_us", "collector"), get(&now, "role.run_us", "collector"));
    }
}

#[test]
fn checkpoints_count_for_the_checkpointer() {
    let server = start("18", &[]);
    let (mut processes, _) = watch(&server);
    let (mut client, _) = connect(&server);
    client.execute("create table t as select generate_series(1, 300000) as a").unwrap();
    let before = read(&mut processes);
    client.execute("checkpoint").unwrap();
    let after = read(&mut processes);
    let grew = get(&after, "role.run_us", "checkpointer") - get(&before, "role.run_us", "checkpointer");
    assert!(grew > 0.0);
}

#[test]
fn sessions_between_two_readings_are_counted() {
    for major in ["9.6", "18"] {
        let server = start(major, &[]);
        let (mut processes, _) = watch(&server);
        let before = read(&mut processes);
        let mut used_us = 0.0;
        for _ in 0..3 {
            let (mut client, pid) = connect(&server);
            client.execute(CPU_QUERY).unwrap();
            used_us += schedule_us(pid)[0];
            drop(client);
            wait_for_end(pid);
        }
        let after = read(&mut processes);
        let grew = |metric: &str| get(&after, metric, "server ended") - get(&before, metric, "server ended");
        // The kernel reports it in ticks.
        assert!(grew("role.run_us") > used_us - OTHERS_US, "{major}: {} of {used_us}", grew("role.run_us"));
        assert_eq!(grew("role.run_us"), grew("role.user_us") + grew("role.system_us"));
    }
}

/// A shell whose processes have this name.
fn shell(directory: &Path, name: &str) -> Command {
    let program = directory.join(name);
    fs::copy("/bin/sh", &program).unwrap();
    Command::new(program)
}

#[test]
fn alone_time_of_a_foreign_process_is_reported_by_its_name() {
    const NAME: &str = "planted-busy";
    let directory = tempfile::tempdir().unwrap();
    let mut processes = Processes::new(Watched::default());
    let before = read(&mut processes);
    let mut burner = shell(directory.path(), NAME).args(["-c", "while :; do :; done"]).spawn().unwrap();
    let pid = burner.id() as i32;
    let end = Instant::now() + Duration::from_secs(60);
    while schedule_us(pid)[0] < 500_000.0 && Instant::now() < end {
        std::thread::yield_now();
    }
    let [burned_us, _] = schedule_us(pid);
    let after = read(&mut processes);
    burner.kill().unwrap();
    burner.wait().unwrap();
    let foreign = get(&after, "role.run_us", "foreign") - get(&before, "role.run_us", "foreign");
    // Other processes may run meanwhile; the machine's time is counted in ticks, and excludes CPU steal.
    assert!(burned_us >= 500_000.0 && foreign > burned_us / 4.0, "{foreign} of {burned_us}");
    let named = get(&after, "foreign.run_us", NAME);
    assert!((named - burned_us).abs() < OTHERS_US, "{named} of {burned_us}");
    assert!(!before.contains_key(&("foreign.run_us".to_owned(), NAME.to_owned())));
    assert_no_counter_decreased(&before, &after);
}

#[test]
fn time_of_processes_between_two_readings_is_that_of_their_parents_children() {
    const NAME: &str = "planted-parent";
    const WORK: &str = "read a; for n in 1 2 3; do \
        sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; done; echo; read a";
    let directory = tempfile::tempdir().unwrap();
    let mut command = shell(directory.path(), NAME);
    let mut parent = command.args(["-c", WORK]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut processes = Processes::new(Watched::default());
    let before = read(&mut processes);
    parent.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    parent.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let after = read(&mut processes);
    let stat = fs::read_to_string(format!("/proc/{}/stat", parent.id())).unwrap();
    parent.kill().unwrap();
    parent.wait().unwrap();
    // The 16th and 17th field, in ticks.
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: f64 = fields[13..15].iter().map(|field| field.parse::<f64>().unwrap()).sum();
    let children_us = ticks * 1e6 / rustix::param::clock_ticks_per_second() as f64;
    assert!(children_us > 4.0 * OTHERS_US, "{WORK} is too short: {children_us}");
    assert_eq!(get(&after, "foreign.run_us", &format!("children of {NAME}")), children_us);
    assert_no_counter_decreased(&before, &after);
}
