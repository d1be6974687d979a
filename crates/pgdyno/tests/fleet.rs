//! Machines of a fleet share a campaign over a real NATS server: agents are processes here, each with a name of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::factor::Factor;
use model::plan::Plan;
use model::record::{Status, Trial};
use model::spec::Campaign;
use model::workload::{Custom, WeightedScript, Workload, Workloads};
use store::Store;
use support::nats::{Nats, agent, start_agent};
use support::serve::Server;
use support::theirs::Theirs;
use support::{
    Bench, Process, Random, Running, joined, process_tree, signal, text, wait_until, wait_until_gone,
};

/// Twelve trials in six blocks: two servers, compared at two numbers of clients.
const CAMPAIGN: &str = "name = 'shared'\n[factors]\nserver = ['17', '18']\nworkload = ['select-only']\nscale = [1]\n\
                        clients = [1, 2]\nduration = ['1s']\nwarmup = ['0s']\n[run]\nrepeats = 3\ncompare = 'server'\n\
                        checkpoint = false\n[fleet]\nlease = '2s'\n";

fn run_on(bench: &Bench, nats: &Nats, args: &[&str]) -> Running {
    let url = nats.url();
    bench.start_with(&[&["run", "campaign.toml", "--fleet", "--nats", &url], args].concat())
}

fn resume_on(bench: &Bench, nats: &Nats) -> Running {
    let url = nats.url();
    bench.start_with(&["resume", "campaign.toml", "--fleet", "--nats", &url])
}

/// The agent that ran a trial.
fn agent_of(trial: &Trial) -> String {
    trial.agent.clone().unwrap()
}

/// Each planned trial is usable exactly once, and all of a block ran on one machine.
fn check_trials(bench: &Bench, campaign: &str) -> Vec<Trial> {
    let trials = bench.trials();
    let basis = trials[0].run.basis().unwrap();
    let plan =
        Plan::with_workloads(&Campaign::parse(campaign).unwrap(), basis, &Workloads::default()).unwrap();
    let mut usable: BTreeMap<(String, u32), usize> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.validity.status != Status::Invalid) {
        *usable.entry((trial.cell.to_string(), trial.repeat)).or_default() += 1;
    }
    for planned in &plan.trials {
        let key = (plan.cell(planned).to_string(), planned.repeat);
        assert_eq!(usable.get(&key), Some(&1), "{key:?}");
    }
    assert_eq!(usable.len(), plan.trials.len());
    let mut machines: BTreeMap<(u32, String), BTreeSet<String>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.validity.status != Status::Invalid) {
        let block = (trial.repeat, Factor::Clients.level(&trial.cell));
        machines.entry(block).or_default().insert(agent_of(trial));
    }
    assert!(machines.values().all(|agents| agents.len() == 1), "{machines:?}");
    let (ids, runs): (BTreeSet<_>, BTreeSet<_>) =
        trials.iter().map(|trial| (trial.id.clone(), trial.run.id.clone())).unzip();
    assert_eq!((ids.len(), runs.len()), (trials.len(), 1));
    let check = bench.pgdyno(&["store", "check"]);
    assert!(check.status.success(), "{}", text(&check));
    trials
}

/// Stops an agent as systemd does, and waits until nothing of it is left.
fn stop(agent: Running) -> String {
    let tree = agent.process_tree();
    signal(agent.pid(), libc::SIGTERM);
    let (code, stderr) = agent.end();
    wait_until_gone(&tree);
    assert_eq!(code, Some(0), "{stderr}");
    stderr
}

fn fleet_status(bench: &Bench, nats: &Nats) -> serde_json::Value {
    let status = bench.pgdyno(&["fleet", "status", "--format", "json", "--nats", &nats.url()]);
    serde_json::from_slice(&status.stdout).unwrap()
}

#[test]
fn trials_of_three_agents_are_stored_once() {
    let Some(nats) = Nats::start() else { return };
    // No agent dies here, and none is late on a busy machine.
    let campaign = CAMPAIGN.replace("lease = '2s'", "lease = '1min'");
    let bench = Bench::new(&campaign);
    let agents = ["one", "two", "three"].map(|name| agent(&bench, &nats, name, &["--label", "test"]));
    wait_until("all agents wait", || {
        let status = text(&bench.pgdyno(&["fleet", "status", "--nats", &nats.url()]));
        let waits =
            |name: &&str| status.lines().any(|line| line.starts_with(*name) && line.contains("waits"));
        ["one", "two", "three"].iter().all(waits)
    });
    let (code, stderr) = run_on(&bench, &nats, &[]).end();
    assert_eq!(code, Some(0), "{stderr}");
    let trials = check_trials(&bench, &campaign);
    assert_eq!(trials.len(), 12);
    let compared = bench.pgdyno(&["compare", "server=17", "server=18"]);
    assert!(compared.status.success(), "{}", text(&compared));
    let ran: Vec<usize> = agents.into_iter().map(|agent| stop(agent).matches("(shared)").count()).collect();
    assert_eq!(ran.iter().sum::<usize>(), 6, "each block ran once: {ran:?}");
    assert!(ran.iter().filter(|blocks| **blocks > 0).count() > 1, "nobody shared: {ran:?}");
    let status = text(&bench.pgdyno(&["fleet", "status", "--nats", &nats.url()]));
    assert!(status.contains("no agent answers") && !status.contains("shared"), "{status}");
}

#[test]
fn the_served_store_shows_the_fleet() {
    let Some(mut nats) = Nats::start() else { return };
    let bench = Bench::new(CAMPAIGN);
    Store::open(&bench.path().join(".pgdyno")).unwrap();
    let _agent = agent(&bench, &nats, "one", &["--label", "test"]);
    let url = nats.url();
    let server = Server::start(&bench, &["--listen", "127.0.0.1:0", "--fleet", "--nats", &url]);
    let fleet = || {
        let (status, body) = server.get("/api/fleet", "");
        (status, serde_json::from_str::<serde_json::Value>(&body).unwrap())
    };
    let (status, idle) = fleet();
    assert_eq!((status, &idle["agents"][0]["facts"]["name"]), (200, &"one".into()), "{idle}");
    assert_eq!((&idle["agents"][0]["state"], &idle["runs"]), (&"idle".into(), &serde_json::json!([])));
    let run = run_on(&bench, &nats, &[]);
    wait_until("a block runs", || {
        let (_, now) = fleet();
        now["runs"][0]["running"][0]["agent"] == "one"
            && now["agents"][0]["state"]["running"]["campaign"] == "shared"
    });
    nats.kill();
    wait_until("the fleet does not answer", || fleet().0 == 503);
    nats.restart();
    wait_until("it answers again", || fleet().0 == 200);
    assert_eq!(run.end().0, Some(0));
}

#[test]
fn sessions_of_a_comparison_stay_on_one_machine() {
    let Some(nats) = Nats::start() else { return };
    let campaign = "name = 'pairs'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nscale = [1]\nclients = [1, 2]\n\
                    settings = ['default', 'slow']\n[run]\norder = 'paired'\ncompare = 'settings'\nrepeats = { min = 3, max = 8 }\n\
                    [settings.slow]\nlog_statement = 'all'\nlog_duration = 'on'\n";
    let bench = Bench::new(campaign);
    let _agents = ["one", "two"].map(|name| agent(&bench, &nats, name, &[]));
    let (code, stderr) = run_on(&bench, &nats, &[]).end();
    assert_eq!(code, Some(0), "{stderr}");
    let mut sessions: BTreeMap<u32, Vec<Trial>> = BTreeMap::new();
    for trial in bench.trials() {
        sessions.entry(trial.repeat).or_default().push(trial);
    }
    // Of each comparison: its sessions, and the agents that ran them.
    let mut comparisons: BTreeMap<String, (usize, BTreeSet<String>)> = BTreeMap::new();
    for (number, of) in &sessions {
        let clients: BTreeSet<String> = of.iter().map(|trial| Factor::Clients.level(&trial.cell)).collect();
        assert_eq!((of.len(), clients.len()), (2, 1), "session {number}");
        let (count, agents) = comparisons.entry(clients.into_iter().collect()).or_default();
        *count += 1;
        agents.extend(of.iter().map(agent_of));
    }
    assert_eq!(comparisons.len(), 2);
    let agents: BTreeSet<&String> = comparisons.values().flat_map(|(_, agents)| agents).collect();
    assert_eq!(agents.len(), 2, "nobody shared: {comparisons:?}");
    for (count, agents) in comparisons.values() {
        assert!((3..=8).contains(count) && agents.len() == 1, "{comparisons:?}");
    }
}

/// Commands of a campaign and builds run only where the agent's owner allows it; labels and names choose machines.
#[test]
fn blocks_wait_for_an_agent_that_can_take_them() {
    let Some(nats) = Nats::start() else { return };
    let hooks = format!("{CAMPAIGN}labels = ['nvme']\n[hooks]\nbefore_trial = 'true'\n");
    let bench = Bench::new(&hooks);
    let plain = agent(&bench, &nats, "plain", &[]);
    let mut run = run_on(&bench, &nats, &["--set", "repeats=1"]);
    run.wait_for("plain: it has no label nvme; it does not run hooks (--allow hooks)");
    let _allowing = agent(&bench, &nats, "allowing", &["--label", "nvme", "--allow", "hooks"]);
    let (code, stderr) = run.end();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!stop(plain).contains("(shared)"), "it ran hooks");
}

#[test]
fn a_block_that_ends_three_agents_is_set_aside() {
    let Some(nats) = Nats::start() else { return };
    // The hook kills the agent that runs it, in trials of two clients.
    let deadly =
        format!("{CAMPAIGN}[hooks]\nbefore_trial = 'if [ $PGDYNO_CLIENTS = 2 ]; then kill -9 $PPID; fi'\n");
    let bench = Bench::new(&deadly);
    let run = run_on(&bench, &nats, &["--set", "repeats=1"]);
    let mut agents = Vec::new();
    let start = |n: usize| start_agent(&bench, &nats, &format!("agent-{n}"), &["--allow", "hooks"]);
    agents.push(start(0));
    let deadline = Instant::now() + Duration::from_secs(200);
    let is_over = |run: &Running| !run.process_tree().iter().any(|process| process.pid == run.pid());
    while !is_over(&run) {
        assert!(Instant::now() < deadline, "it never ends");
        let last = agents.last().unwrap();
        if last.process_tree().is_empty() {
            agents.push(start(agents.len()));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let (code, stderr) = run.end();
    assert_eq!(code, Some(5), "{stderr}");
    let stderr = joined(&stderr);
    assert!(stderr.contains("was set aside after 3 attempts: agent-"), "{stderr}");
    let usable = bench.trials().iter().filter(|trial| trial.validity.status != Status::Invalid).count();
    assert_eq!(usable, 2, "the trials with one client are there: {stderr}");
    let lost = |trial: &Trial| trial.validity.findings.iter().any(|finding| finding.gate == "lost-agent");
    assert_eq!(bench.trials().iter().filter(|trial| lost(trial)).count(), bench.trials().len() - 2);
}

/// The first signal lets an agent complete its block; the second makes it give the block back.
#[test]
fn a_stopped_agent_completes_its_block_or_gives_it_back() {
    let Some(nats) = Nats::start() else { return };
    let long = CAMPAIGN
        .replace("duration = ['1s']", "duration = ['4s']")
        .replace("clients = [1, 2]", "clients = [1]");
    let bench = Bench::new(&long);
    let mut first = agent(&bench, &nats, "first", &[]);
    let run = run_on(&bench, &nats, &["--set", "repeats=2"]);
    first.wait_for("(shared)");
    let tree = first.process_tree();
    signal(first.pid(), libc::SIGTERM);
    first.wait_for("completing the block");
    let (code, stderr) = first.end();
    wait_until_gone(&tree);
    assert_eq!((code, stderr.matches("(shared)").count()), (Some(0), 1), "{stderr}");

    let mut second = agent(&bench, &nats, "second", &[]);
    second.wait_for("(shared)");
    signal(second.pid(), libc::SIGTERM);
    second.wait_for("completing the block");
    signal(second.pid(), libc::SIGTERM);
    let (code, stderr) = second.end();
    assert_eq!(code, Some(0), "{stderr}");
    let _third = agent(&bench, &nats, "third", &[]);
    let (code, stderr) = run.end();
    assert_eq!(code, Some(0), "{stderr}");
    check_trials(&bench, &long.replace("repeats = 3", "repeats = 2"));
}

/// The fleet goes on without its coordinator, and the next one collects.
#[test]
fn a_run_goes_on_without_its_coordinator() {
    let Some(nats) = Nats::start() else { return };
    let bench = Bench::new(CAMPAIGN);
    let mut run = run_on(&bench, &nats, &[]);
    run.wait_for("no agent answers");
    signal(run.pid(), libc::SIGKILL);
    run.end();
    assert!(bench.trials().is_empty());
    let mut only = agent(&bench, &nats, "only", &[]);
    for _ in 0..6 {
        only.wait_for("(shared)");
    }
    wait_until("all blocks are complete", || {
        let status = fleet_status(&bench, &nats);
        status["runs"][0]["complete"] == 6
    });
    let (code, stderr) = resume_on(&bench, &nats).end();
    assert_eq!(code, Some(0), "{stderr}");
    check_trials(&bench, CAMPAIGN);

    // Another one, which is not wanted any more.
    stop(only);
    let mut run = run_on(&bench, &nats, &["--set", "repeats=1"]);
    run.wait_for("no agent answers");
    signal(run.pid(), libc::SIGINT);
    let (code, stderr) = run.end();
    assert_eq!(code, Some(130), "{stderr}");
    assert!(joined(&stderr).contains("pgdyno resume --fleet"), "{stderr}");
    let status = fleet_status(&bench, &nats);
    let id = status["runs"][0]["run"].as_str().unwrap().to_owned();
    assert!(bench.pgdyno(&["fleet", "cancel", &id[..10], "--nats", &nats.url()]).status.success());
    let status = text(&bench.pgdyno(&["fleet", "status", "--nats", &nats.url()]));
    assert!(!status.contains("shared"), "{status}");
}

/// One repeat is stored when the coordinator dies, and the next one is being measured.
const TWO_REPEATS: &str = "name = 'shared'\n[factors]\nserver = ['17', '18']\nworkload = ['select-only']\nscale = [1]\n\
                           clients = [1]\nduration = ['4s']\nwarmup = ['0s']\n[run]\nrepeats = 2\ncompare = 'server'\n\
                           checkpoint = false\n[fleet]\nlease = '2s'\n";

/// Whether the first repeat is stored.
fn has_first_repeat(bench: &Bench) -> bool {
    bench.path().join(".pgdyno/trials").exists() && bench.trials().len() == 2
}

/// What has ended is kept, also of a block that is not complete.
#[test]
fn a_changed_campaign_loses_no_trial_that_has_ended() {
    let Some(nats) = Nats::start() else { return };
    let bench = Bench::new(TWO_REPEATS);
    let first = agent(&bench, &nats, "first", &[]);
    let run = run_on(&bench, &nats, &[]);
    wait_until("the second block has a trial", || {
        let status = fleet_status(&bench, &nats);
        status["runs"][0]["trials"] == 3 && has_first_repeat(&bench)
    });
    for running in [run, first] {
        let tree = running.process_tree();
        signal(running.pid(), libc::SIGKILL);
        running.end();
        wait_until_gone(&tree);
    }
    let changed = TWO_REPEATS.replace("repeats = 2", "repeats = 3");
    fs::write(bench.path().join("campaign.toml"), &changed).unwrap();
    let url = nats.url();
    let mut run = bench.start_with(&["resume", "campaign.toml", "--edited", "--fleet", "--nats", &url]);
    run.wait_for("the campaign was changed");
    let _second = agent(&bench, &nats, "second", &[]);
    let (code, stderr) = run.end();
    assert_eq!(code, Some(0), "{stderr}");
    let trials = check_trials(&bench, &changed);
    let lost: Vec<&Trial> = trials.iter().filter(|trial| trial.validity.status == Status::Invalid).collect();
    assert_eq!((trials.len(), lost.len()), (7, 1), "{stderr}");
    assert_eq!((&*agent_of(lost[0]), &*lost[0].validity.findings[0].gate), ("first", "lost-agent"));
}

/// The fleet still has the trial, but a bundle is never changed.
#[test]
fn a_trial_whose_bundle_was_damaged_is_measured_again() {
    let Some(nats) = Nats::start() else { return };
    let bench = Bench::new(TWO_REPEATS);
    let run = run_on(&bench, &nats, &[]);
    let _only = agent(&bench, &nats, "only", &[]);
    wait_until("a block is stored", || has_first_repeat(&bench));
    signal(run.pid(), libc::SIGKILL);
    run.end();
    let damaged = bench.trials()[0].id.clone();
    let path = bench.path().join(".pgdyno/trials").join(&damaged).join("trial.json");
    fs::write(path, "{").unwrap();
    let (code, stderr) = resume_on(&bench, &nats).end();
    assert_eq!(code, Some(0), "{stderr}");
    let notice = format!("trial {damaged} is measured again: bundle {damaged}, trial.json: ");
    assert!(joined(&stderr).contains(&notice), "{stderr}");
    let usable = bench.trials().iter().filter(|trial| trial.validity.status != Status::Invalid).count();
    assert_eq!(usable, 4, "{stderr}");
}

/// Agents, the coordinator and the NATS server are killed at random moments: nothing is lost, nothing is measured twice. The
/// number of kills and the seed can be set (FLEET_KILLS, FLEET_SEED).
#[test]
fn nothing_is_lost_or_doubled_by_sigkill() {
    let Some(mut nats) = Nats::start() else { return };
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let kills = number("FLEET_KILLS").unwrap_or(9);
    let seed = number("FLEET_SEED").unwrap_or(u64::from(std::process::id()) | 1);
    println!("FLEET_SEED={seed}");
    let campaign = CAMPAIGN.replace("repeats = 3", "repeats = 15").replace("'1s'", "'500ms'");
    let bench = Bench::new(&campaign);
    let mut random = Random(seed);
    let names = ["one", "two", "three"];
    let mut agents = names.map(|name| agent(&bench, &nats, name, &[]));
    let mut run = run_on(&bench, &nats, &[]);
    // Before, there is nothing to resume.
    wait_until("the run is queued", || !fleet_status(&bench, &nats)["runs"][0].is_null());
    let mut killed: Vec<Process> = Vec::new();
    let mut counts = [0_u64; 3];
    let has_ended =
        |running: &Running| !running.process_tree().iter().any(|process| process.pid == running.pid());
    while counts.iter().sum::<u64>() < kills && !has_ended(&run) {
        std::thread::sleep(Duration::from_millis(random.below(2500)));
        let kind = random.below(3) as usize;
        match kind {
            0 => {
                let at = random.below(3) as usize;
                killed.extend(agents[at].process_tree());
                signal(agents[at].pid(), libc::SIGKILL);
                let new = start_agent(&bench, &nats, names[at], &[]);
                std::mem::replace(&mut agents[at], new).end();
            }
            1 => {
                killed.extend(run.process_tree());
                if has_ended(&run) {
                    break;
                }
                signal(run.pid(), libc::SIGKILL);
                std::mem::replace(&mut run, resume_on(&bench, &nats)).end();
            }
            _ => {
                nats.kill();
                std::thread::sleep(Duration::from_millis(random.below(1500)));
                nats.restart();
            }
        }
        counts[kind] += 1;
    }
    // One that was started while the server was away has ended.
    loop {
        let (code, stderr) = run.end();
        if code == Some(0) {
            break;
        }
        assert!(stderr.contains("NATS server"), "seed {seed}: {stderr}");
        run = resume_on(&bench, &nats);
    }
    let trials = check_trials(&bench, &campaign);
    let lost = trials.iter().filter(|trial| trial.validity.status == Status::Invalid).count();
    let [of_agents, of_coordinators, of_servers] = counts;
    println!(
        "seed {seed}: killed {of_agents} agents, {of_coordinators} coordinators, {of_servers} NATS servers; \
         {} trials usable, {lost} invalid",
        trials.len() - lost
    );
    for agent in agents {
        // It may have found no server when it was started.
        if !has_ended(&agent) {
            stop(agent);
        }
    }
    wait_until_gone(&killed);
    let left: Vec<Process> = process_tree(std::process::id() as i32)
        .into_iter()
        .filter(|process| process.command.contains("postgres") || process.command.contains("pgdyno"))
        .filter(|process| process.command.contains(&*bench.path().to_string_lossy()))
        .collect();
    assert_eq!(left, [], "seed {seed}");
    fs::remove_dir_all(bench.path().join(".pgdyno")).unwrap();
}

/// An agent that can't connect: its exit code and what it says.
fn refused_agent(bench: &Bench, url: &str, args: &[&str]) -> String {
    let output = bench.pgdyno(&[&["agent", "--name", "refused", "--nats", url], args].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    text(&output)
}

#[test]
fn a_wrong_password_and_no_server_are_named() {
    let Some(nats) = Nats::with_configuration(|_| {
        "authorization { users: [ { user: agents, password: right } ] }".to_owned()
    }) else {
        return;
    };
    let bench = Bench::new(CAMPAIGN);
    let login = bench.path().join("login");
    let path = login.to_str().unwrap();
    fs::write(&login, "agents:wrong\n").unwrap();
    let refused = refused_agent(&bench, &nats.url(), &["--nats-user", path]);
    assert!(refused.contains("authorization violation") && refused.contains("--nats-user"), "{refused}");
    fs::write(&login, "agents:right\n").unwrap();
    let mut agent = start_agent(&bench, &nats, "welcome", &["--nats-user", path]);
    agent.wait_for("waits for trials");
    let nobody = refused_agent(&bench, "nats://127.0.0.1:1", &[]);
    assert!(nobody.contains("nats://127.0.0.1:1") && nobody.contains("nats-server -js"), "{nobody}");
    fs::write(&login, "agents\n").unwrap();
    let output = bench.pgdyno(&["fleet", "status", "--nats", &nats.url(), "--nats-user", path]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("has no line user:password"), "{}", text(&output));
}

/// A certificate for this host, valid until a year, and its key.
fn write_certificate(directory: &Path, until: i32) {
    let mut params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(until, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    fs::write(directory.join("server.crt"), params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(directory.join("server.key"), key.serialize_pem()).unwrap();
}

#[test]
fn an_expired_certificate_is_refused_and_a_good_one_encrypts() {
    let tls = |directory: &Path, until| {
        write_certificate(directory, until);
        let [certificate, key] = ["server.crt", "server.key"].map(|name| directory.join(name));
        format!("tls {{ cert_file: \"{}\", key_file: \"{}\" }}", certificate.display(), key.display())
    };
    let bench = Bench::new(CAMPAIGN);
    let Some(expired) = Nats::with_configuration(|directory| tls(directory, 2021)) else { return };
    let url = expired.url().replace("nats://", "tls://");
    let ca = expired.path().join("server.crt");
    let refused = refused_agent(&bench, &url, &["--nats-ca", ca.to_str().unwrap()]);
    assert!(refused.contains("xpired") && refused.contains("--nats-ca"), "{refused}");

    let good = Nats::with_configuration(|directory| tls(directory, 2100)).unwrap();
    let url = good.url().replace("nats://", "tls://");
    let ca = good.path().join("server.crt");
    let ca = ca.to_str().unwrap();
    let status = bench.pgdyno(&["fleet", "status", "--nats", &url, "--nats-ca", ca]);
    assert!(status.status.success(), "{}", text(&status));
    let unknown = refused_agent(&bench, &url, &[]);
    assert!(unknown.contains("--nats-ca"), "{unknown}");
}

/// What nobody of the fleet has sent is refused and named; what is not signed by a trusted key does not run.
#[test]
fn garbage_and_strangers_are_refused() {
    let Some(nats) = Nats::start() else { return };
    let bench = Bench::new(CAMPAIGN);
    let [own, stranger] = ["own", "stranger"].map(|name| bench.path().join(name).display().to_string());
    let public = bench.pgdyno(&["fleet", "key", &own]);
    assert!(bench.pgdyno(&["fleet", "key", &stranger]).status.success());
    let trusted = bench.path().join("keys.pub").display().to_string();
    fs::write(&trusted, &public.stdout).unwrap();
    let mut careful = agent(&bench, &nats, "careful", &["--trust", &trusted]);

    let mut run = run_on(&bench, &nats, &["--set", "repeats=1", "--sign-with", &stranger]);
    careful.wait_for("which is not trusted");
    signal(run.pid(), libc::SIGINT);
    run.wait_for("fleet goes on");
    assert_eq!(run.end().0, Some(130));
    let status = fleet_status(&bench, &nats);
    let id = status["runs"][0]["run"].as_str().unwrap();
    assert!(bench.pgdyno(&["fleet", "cancel", id, "--nats", &nats.url()]).status.success());
    assert!(bench.trials().is_empty(), "an agent ran what a stranger signed");
    stop(careful);

    let run = run_on(&bench, &nats, &["--set", "repeats=1", "--sign-with", &own]);
    wait_until("blocks are queued", || {
        let status = text(&bench.pgdyno(&["fleet", "status", "--nats", &nats.url()]));
        status.contains("shared")
    });
    for queue in nats.queues() {
        for garbage in
            [&b"\x00\xffnothing"[..], b"{}", b"{\"version\":99}", b"{\"version\":1,\"block\":\"{}\"}"]
        {
            nats.publish(&queue, garbage);
        }
    }
    nats.publish("pgdyno.progress.x", b"garbage");
    nats.publish("pgdyno.agents", b"garbage");
    let mut careful = agent(&bench, &nats, "careful", &["--trust", &trusted]);
    careful.wait_for("refused a block");
    let (code, stderr) = run.end();
    assert_eq!(code, Some(0), "{stderr}");
    check_trials(&bench, &CAMPAIGN.replace("repeats = 3", "repeats = 1"));
}

/// A full disk of the NATS server: agents keep what they have measured, and send it when there is space.
#[test]
fn a_full_object_store_loses_nothing() {
    let Some(mut nats) = Nats::start() else { return };
    nats.reconfigure("store_dir", "max_file_store: 300KB, store_dir");
    let bench = Bench::new(CAMPAIGN);
    let mut only = agent(&bench, &nats, "only", &[]);
    let run = run_on(&bench, &nats, &["--set", "repeats=2"]);
    only.wait_for("trying again");
    nats.reconfigure("max_file_store: 300KB", "max_file_store: 1GB");
    let (code, stderr) = run.end();
    assert_eq!(code, Some(0), "{stderr}");
    check_trials(&bench, &CAMPAIGN.replace("repeats = 3", "repeats = 2"));
}

/// The drivers of other agents make one load; one that dies is named, and the next trial has the load again.
#[test]
fn a_load_comes_from_other_agents() {
    let Some(nats) = Nats::start() else { return };
    let theirs = Theirs::new();
    let campaign = theirs.campaign(
        "workload = ['select-only']\nscale = [1]\nclients = [4]\nduration = ['4s']\nwarmup = ['0s']",
        "repeats = 2\nretries = 3\nload_hosts = 2\ncheckpoint = false",
    );
    let bench = Bench::new(&format!("{campaign}[fleet]\nlease = '5s'\nlabels = ['runs']\n"));
    let mut main = agent(&bench, &nats, "main", &["--label", "runs", "--allow", "load"]);
    let mut hosts = ["load-1", "load-2"].map(|name| agent(&bench, &nats, name, &["--allow", "load"]));
    let run = run_on(&bench, &nats, &[]);
    main.wait_for("(hosts)");
    wait_until("a load host has a driver", || {
        hosts[1].process_tree().iter().any(|process| process.command.contains(" driver"))
    });
    std::thread::sleep(Duration::from_secs(2));
    let driver = hosts[1].process(" driver");
    signal(driver.pid, libc::SIGKILL);
    let (code, stderr) = run.end();
    assert_eq!(code, Some(0), "{stderr}");
    let trials = bench.trials();
    let (lost, usable): (Vec<&Trial>, Vec<&Trial>) =
        trials.iter().partition(|trial| trial.validity.status == Status::Invalid);
    assert_eq!((lost.len(), usable.len()), (1, 2), "{stderr}");
    let gate = &lost[0].validity.findings[0];
    assert_eq!(gate.gate, "load-host-lost");
    assert!(gate.evidence.contains("load-2"), "{}", gate.evidence);
    for trial in usable {
        let names: Vec<&str> = trial.load_hosts.iter().map(|host| &*host.name).collect();
        assert_eq!(names, ["load-1", "load-2"]);
        let clients: u32 = trial.load_hosts.iter().map(|host| host.clients).sum();
        assert_eq!(clients, 4);
        let bounds: Vec<Option<i64>> = trial.load_hosts.iter().map(|host| host.offset_us).collect();
        // All clocks are this machine's.
        assert!(bounds.iter().all(|offset| offset.is_some_and(|us| us.abs() < 10_000)), "{bounds:?}");
    }
    let tree: Vec<Process> = hosts.iter().flat_map(Running::process_tree).collect();
    for host in &mut hosts {
        signal(host.pid(), libc::SIGTERM);
    }
    wait_until_gone(&tree);
}

/// Load on a server elsewhere waits for an agent that allows it.
#[test]
fn servers_elsewhere_need_permission() {
    let Some(nats) = Nats::start() else { return };
    let theirs = Theirs::new();
    let factors =
        "workload = ['select-only']\nscale = [1]\nclients = [1]\nduration = ['1s']\nwarmup = ['0s']";
    let bench = Bench::new(&theirs.campaign(factors, "repeats = 1\ncheckpoint = false"));
    let plain = agent(&bench, &nats, "plain", &[]);
    let mut run = run_on(&bench, &nats, &[]);
    run.wait_for("plain: it puts no load on servers elsewhere (--allow load)");
    let _allowing = agent(&bench, &nats, "allowing", &["--allow", "load"]);
    let (code, stderr) = run.end();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!stop(plain).contains("(hosts)"), "it put load on a server elsewhere");
}

/// What a load host gets after a signed block is not signed itself: it runs loads of the signed campaign alone, each in a
/// message of its own.
#[test]
fn a_load_host_runs_no_load_of_a_stranger() {
    let Some(nats) = Nats::start() else { return };
    let theirs = Theirs::new();
    let campaign = theirs.campaign(
        "workload = ['select-only']\nscale = [1]\nclients = [2]\nduration = ['1s']\nwarmup = ['0s']",
        "repeats = 1\nload_hosts = ['load']\ncheckpoint = false",
    );
    let bench = Bench::new(&format!("{campaign}[fleet]\nlabels = ['runs']\n"));
    let [key, trusted, executed] =
        ["key", "keys.pub", "executed"].map(|name| bench.path().join(name).display().to_string());
    let public = bench.pgdyno(&["fleet", "key", &key]);
    fs::write(&trusted, &public.stdout).unwrap();
    let allowed = ["--allow", "load,hooks", "--trust", &*trusted];
    let _agents = [("main", "runs"), ("load", "loads")]
        .map(|(name, label)| agent(&bench, &nats, name, &[&["--label", label], &allowed[..]].concat()));

    // A stranger reads along.
    let mut messages = nats.subscribe("pgdyno.>");
    let mut message_with = |pointer: &str| loop {
        let message: Option<serde_json::Value> = serde_json::from_slice(&messages.next()).ok();
        if let Some(message) = message.filter(|message| message.pointer(pointer).is_some()) {
            return message;
        }
    };
    let run = run_on(&bench, &nats, &["--sign-with", &key]);
    let start = message_with("/session");
    let load = message_with("/run/workload");
    // The campaign stays in the fleet.
    signal(run.pid(), libc::SIGKILL);
    run.end();
    let wait_until_idle = || {
        wait_until("agents are idle", || {
            let status = fleet_status(&bench, &nats);
            let agents = status["agents"].as_array().unwrap();
            agents.len() == 2 && agents.iter().all(|agent| agent["state"] == "idle")
        });
    };
    wait_until_idle();

    let script = WeightedScript {
        name: "evil".to_owned(),
        weight: 1,
        text: format!("\\shell touch {executed}\nSELECT 1;"),
    };
    let mut evil = load.clone();
    let workload = Workload::Custom(Arc::new(Custom::new("evil", vec![script])));
    evil["run"]["workload"] = serde_json::to_value(workload).unwrap();
    for (session, message, why) in [
        ("stolen-1", evil.to_string(), "no trial of the campaign hosts has this load"),
        ("stolen-2", format!("{load}\n{evil}"), "a message is not one request"),
    ] {
        let mut request = start.clone();
        request["session"] = session.into();
        let mut answers = nats.subscribe(&format!("pgdyno.test.{session}"));
        let mut replies = nats.subscribe(&format!("pgdyno.driver.{session}.replies"));
        // With the subject of the answer.
        let subject = format!("pgdyno.host.{} pgdyno.test.{session}", host::sha256_of_bytes(b"load"));
        nats.publish(&subject, request.to_string().as_bytes());
        let answer = String::from_utf8(answers.next()).unwrap();
        assert!(answer.contains("yes"), "{answer}");
        nats.publish(&format!("pgdyno.driver.{session}.requests"), message.as_bytes());
        let refused = loop {
            let reply = String::from_utf8(replies.next()).unwrap();
            if reply.starts_with('!') {
                break reply;
            }
        };
        assert!(refused.contains(why), "{refused}");
        assert!(!Path::new(&executed).exists(), "a load host ran a stranger's command");
        wait_until_idle();
    }
}
