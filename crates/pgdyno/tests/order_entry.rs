//! The workload `order-entry`: its mix, its figure, and its conditions of consistency, on real servers.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::collections::BTreeMap;
use std::fs;

use model::message::Phase;
use model::record::{Status, Trial};
use support::{Bench, text};

/// A small business: enough for each script.
const SMALL: &str = "builtin = 'order-entry'\nparameters = { items = 500, customers = 60 }\n";

fn consistency(trial: &Trial) -> Option<&str> {
    let finding = trial.validity.findings.iter().find(|finding| finding.gate == "consistency")?;
    Some(&finding.evidence)
}

#[test]
fn orders_are_entered_on_all_versions_and_leave_the_data_consistent() {
    let bench = Bench::new(&format!(
        "name = 'orders'\n[factors]\nserver = ['9.6', '13', '18']\nsettings = ['quiet']\nworkload = ['small']\n\
         scale = [2]\nclients = [4]\n[run]\nduration = '3s'\nwarmup = '200ms'\nrepeats = 1\nseed = 1\n\
         [workloads.small]\n{SMALL}[settings.quiet]\nautovacuum = false\nsynchronous_commit = false\n"
    ));
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(trials.len(), 3);
    for trial in &trials {
        let context = format!("{}: {:?} {:?}", trial.cell, trial.accounting, trial.validity);
        assert_ne!(trial.validity.status, Status::Invalid, "{context}");
        assert_eq!(trial.summary.as_ref().unwrap().failed, Some(0), "{context}");
        let accounting = &trial.accounting;
        assert_eq!(accounting.surplus(), Some(0), "{context}");
        let (transactions, commits) =
            (accounting.driver_transactions.unwrap(), accounting.driver_commits.unwrap());
        // Of the new orders, one in a hundred is rolled back.
        assert!(commits <= transactions && commits * 100 > transactions * 97, "{context}");

        let record = bench.store().load(&trial.id).unwrap();
        let mut of_script: BTreeMap<&str, u64> = BTreeMap::new();
        let measured = record.intervals.iter().filter(|interval| interval.phase == Phase::Measure);
        for script in measured.flat_map(|interval| &interval.scripts) {
            *of_script.entry(&script.script).or_default() += script.transactions;
        }
        let all: u64 = of_script.values().sum();
        let share = |script: &str| of_script[script] as f64 / all as f64;
        assert_eq!(of_script.len(), 5, "{of_script:?}");
        let spread = 4.0 / (all as f64).sqrt();
        for (script, weight) in [("new-order.sql", 0.45), ("payment.sql", 0.43), ("delivery.sql", 0.04)] {
            assert!((share(script) - weight).abs() < spread, "{script}: {of_script:?}");
        }
    }
    let compared = bench.pgdyno(&["compare", "server=9.6", "server=18"]);
    assert!(text(&compared).contains("new orders per minute"), "{}", text(&compared));
}

/// What breaks a condition, by its number, while orders are entered.
const FAULTS: [(&str, &str); 9] = [
    ("1", "update warehouse set ytd = ytd + 1;"),
    ("2", "delete from orders o using district d where o.district = d.id and o.id = d.next_order - 1;"),
    (
        "3",
        "delete from new_order n where n.id = (select max(id) - 1 from new_order m where m.district = n.district);",
    ),
    ("4", "delete from order_line where line = 1 and order_id < 9;"),
    ("5", "update orders set carrier = 1 where carrier is null;"),
    ("6 and 7", "update order_line set delivered = now() where delivered is null;"),
    ("8", "delete from history where customer = 1;"),
    ("9", "update district set ytd = ytd + case id when 1 then 1 else -1 end where id <= 2;"),
    ("10 and 12", "update customer set balance = balance + 1 where id = 7;"),
];

#[test]
fn each_fault_that_is_planted_in_the_data_makes_the_trial_invalid() {
    let names: Vec<String> = FAULTS.iter().map(|(condition, _)| condition.replace(' ', "-")).collect();
    let mut campaign = format!(
        "name = 'faults'\n[factors]\nserver = ['18']\nsettings = ['quiet']\nworkload = ['none', {}]\nclients = [1]\n\
         [run]\nduration = '500ms'\nwarmup = '100ms'\nrepeats = 1\nretries = 0\nseed = 1\n\
         [settings.quiet]\nautovacuum = false\n[workloads.none]\n{SMALL}",
        names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
    );
    for name in &names {
        // Deliveries would pass the gap between open orders, and close it.
        let scripts = if name == "3" { "script = 'nothing.sql'\nfigure = 'throughput'\n" } else { "" };
        campaign += &format!(
            "[workloads.{name}]\n{SMALL}{scripts}background = [{{ workload = 'fault-{name}' }}]\n\
             [workloads.fault-{name}]\nscript = '{name}.sql'\ntables = 'none'\n"
        );
    }
    let bench = Bench::new(&campaign);
    fs::write(bench.path().join("nothing.sql"), "select 1;\n").unwrap();
    // A fault happens once; then its client sleeps until the load ends.
    for (name, (_, fault)) in names.iter().zip(FAULTS) {
        fs::write(bench.path().join(format!("{name}.sql")), format!("{fault}\n\\sleep 10 s\n")).unwrap();
    }
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    let trials = bench.trials();
    assert_eq!(trials.len(), 1 + FAULTS.len(), "{}", text(&output));
    let of =
        |name: &str| trials.iter().find(|trial| trial.cell.workload.known().unwrap().name() == name).unwrap();
    assert_eq!(consistency(of("none")), None);
    assert_ne!(of("none").validity.status, Status::Invalid, "{:?}", of("none").validity);
    for (name, (condition, _)) in names.iter().zip(FAULTS) {
        let evidence = consistency(of(name)).unwrap_or_default();
        assert!(evidence.contains(&format!("condition {condition} (")), "{name}: {evidence}");
        assert_eq!(of(name).validity.status, Status::Invalid, "{name}");
    }
}
