//! The bundled workloads, on the oldest and the newest server.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use model::record::{Status, Trial};
use support::{Bench, text};

/// Workloads with commits that are not reported: of parallel workers, of sessions that read notifications or catch up with
/// objects that others created, and of traces, whose statements may be of any kind.
const UNREPORTED: [&str; 4] = ["analytic", "micro-notify", "micro-parallel-scan", "micro-temp-table"];

/// The workload that needs an extension which downloaded servers do not have: tests/vector_search.rs.
const ON_EXTENSION: &str = "vector-search";

#[test]
fn each_shipped_workload_runs_and_its_commits_are_the_servers() {
    let shipped = || workload::shipped().filter(|name| *name != ON_EXTENSION);
    let names: Vec<String> = shipped().map(|name| format!("'{name}'")).collect();
    // Enough rows for each statement, and few to copy for each trial.
    let small =
        |name: &str| format!("[workloads.{name}]\nbuiltin = '{name}'\nparameters = {{ rows = 20000 }}\n");
    let small: String = shipped().filter(|name| name.starts_with("micro-")).map(small).collect();
    let bench = Bench::new(&format!(
        "name = 'shipped'\n[factors]\nserver = ['9.6', '18']\nsettings = ['quiet']\nworkload = [{}]\nclients = [4]\n\
         [run]\nduration = '500ms'\nwarmup = '100ms'\nrepeats = 1\nseed = 1\norder = 'sequential'\n\
         [workloads.order-entry]\nbuiltin = 'order-entry'\nparameters = {{ items = 500, customers = 60 }}\n\
         {small}[settings.quiet]\nautovacuum = false\nmax_parallel_workers_per_gather = 0\nsynchronous_commit = false\n",
        names.join(", ")
    ));
    let planned = bench.pgdyno(&["plan", "campaign.toml"]);
    assert!(text(&planned).contains("\nqueue: Jobs in a table"), "{}", text(&planned));
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    for trial in &trials {
        let context = format!("{}: {:?} {:?}", trial.cell, trial.accounting, trial.validity);
        assert_ne!(trial.validity.status, Status::Invalid, "{context}");
        assert!(trial.accounting.driver_transactions.unwrap() > 0, "{context}");
        // On a busy machine, the kernel drops statistics of 9.6 now and then.
        let lost = |finding: &model::record::Finding| finding.evidence.contains("the kernel dropped");
        let surplus = trial.accounting.surplus().filter(|_| !trial.validity.findings.iter().any(lost));
        if !UNREPORTED.contains(&trial.cell.workload.known().unwrap().name()) {
            assert_eq!(
                (surplus.unwrap_or_default(), trial.accounting.has_unreported_commits),
                (0, false),
                "{context}"
            );
        }
        assert_eq!(trial.summary.as_ref().unwrap().failed, Some(0), "{context}");
    }
    let of_9_6 = |name: &&str| {
        let has_run = |trial: &Trial| trial.cell.to_string().starts_with(&format!("9.6 quiet {name} "));
        trials.iter().any(has_run)
    };
    let left_out: Vec<&str> = shipped().filter(|name| !of_9_6(name)).collect();
    assert_eq!(left_out, ["micro-merge", "micro-partition"]);
    assert_eq!(trials.len(), 2 * names.len() - left_out.len());
}
