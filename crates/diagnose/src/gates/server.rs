//! Was it the same server throughout, and what did it do during the load?

use std::collections::BTreeMap;

use super::{Gate, GateFinding, Observation, invalid, noted};

pub(super) const GATES: [Gate; 6] = [
    ("server-exited", exited),
    ("topology", companion_failed),
    ("server-restarted", restarted),
    ("settings-changed", settings_changed),
    ("autovacuum", autovacuum),
    ("no-checkpoint", no_checkpoint),
];

fn exited(observed: &Observation) -> Option<GateFinding> {
    let exit = observed.server_exit?;
    Some(invalid(format!("the server ended during the trial: {exit}")).with_advice("see its log"))
}

fn companion_failed(observed: &Observation) -> Option<GateFinding> {
    let failure = observed.companion_failure?;
    Some(
        invalid(format!("the topology did not last: {failure}"))
            .with_advice("see its log, which is among those of the trial"),
    )
}

fn restarted(observed: &Observation) -> Option<GateFinding> {
    let start = observed.events_after(0).find(|event| event.kind == "server-started")?;
    let evidence = format!("the server restarted during the load: {}", start.message);
    Some(invalid(evidence).with_advice("see its log; do not restart a server during a measurement"))
}

fn settings_changed(observed: &Observation) -> Option<GateFinding> {
    const SHOWN: usize = 5;
    let after: BTreeMap<&str, &str> = observed
        .settings_after
        .iter()
        .map(|setting| (setting.name.as_str(), setting.value.as_str()))
        .collect();
    let changed: Vec<String> = observed
        .settings
        .iter()
        .filter_map(|before| {
            let now = after.get(before.name.as_str()).filter(|now| **now != before.value)?;
            Some(format!("{}: {} → {now}", before.name, before.value))
        })
        .collect();
    if changed.is_empty() {
        return None;
    }
    let more = match changed.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let shown = changed.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    let evidence = format!("settings changed during the load: {shown}{more}");
    Some(invalid(evidence).with_advice("do not change the server's configuration during a measurement"))
}

/// Schemas of the server's own tables.
const SYSTEM_SCHEMAS: [&str; 3] = ["pg_catalog.", "pg_toast.", "information_schema."];

fn autovacuum(observed: &Observation) -> Option<GateFinding> {
    let (from_us, _) = observed.window?;
    let mut tables: BTreeMap<&str, u32> = BTreeMap::new();
    let vacuums = observed.events_after(from_us).filter(|event| event.kind == "autovacuum");
    for table in vacuums.filter_map(|event| event.object.as_deref()) {
        if !SYSTEM_SCHEMAS.iter().any(|schema| table.contains(schema)) {
            *tables.entry(table).or_default() += 1;
        }
    }
    if tables.is_empty() {
        return None;
    }
    let tables: Vec<String> = tables.iter().map(|(table, times)| format!("{table} ({times}×)")).collect();
    let evidence = format!("autovacuum processed tested tables: {}", tables.join(", "));
    Some(
        noted(evidence).with_advice("compare with trials with as much autovacuum, or vacuum before the load"),
    )
}

fn no_checkpoint(observed: &Observation) -> Option<GateFinding> {
    let (from_us, to_us) = observed.window?;
    let logged =
        observed.settings.iter().any(|setting| setting.name == "log_checkpoints" && setting.value == "on");
    let ended = observed.events_after(from_us).any(|event| event.kind == "checkpoint-ended");
    if ended || !observed.writes || !logged || !observed.log_was_read || observed.clocks.is_none() {
        return None;
    }
    let seconds = (to_us - from_us) as f64 / 1e6;
    let evidence = format!("the load writes, but no checkpoint ended in its window of {seconds:.0} s");
    Some(noted(evidence).with_advice(
        "throughput does not include the cost of checkpoints: run longer than checkpoint_timeout",
    ))
}

#[cfg(test)]
mod tests {
    use model::record::{Setting, Status};

    use super::super::fixture::{TrialFixture, gates};
    use super::*;

    #[test]
    fn a_server_that_exits_or_restarts_makes_the_trial_invalid() {
        let mut trial = TrialFixture::new();
        let failed = Observation { companion_failure: Some("the standby has ended"), ..trial.observed() };
        assert_eq!(gates(&failed), (Status::Invalid, vec!["topology"]));
        let exited = Observation { server_exit: Some("signal 9"), ..trial.observed() };
        assert_eq!(gates(&exited), (Status::Invalid, vec!["server-exited"]));
        trial.event("server-started", None, -1_000_000);
        assert_eq!(gates(&trial.observed()), (Status::Valid, vec![]), "before the load");
        trial.event("server-started", None, 700_000);
        assert_eq!(gates(&trial.observed()), (Status::Invalid, vec!["server-restarted"]), "in the warm-up");
        let unknown = Observation { clocks: None, ..trial.observed() };
        assert_eq!(gates(&unknown), (Status::Valid, vec![]), "nobody knows when");
    }

    #[test]
    fn changed_settings_make_the_trial_invalid() {
        let trial = TrialFixture::new();
        let changed: Vec<Setting> = trial
            .settings
            .iter()
            .cloned()
            .map(|setting| Setting { value: "x".to_owned(), ..setting })
            .collect();
        let with = |after| gates(&Observation { settings_after: after, ..trial.observed() });
        assert_eq!(with(&trial.settings), (Status::Valid, vec![]));
        assert_eq!(with(&[]), (Status::Valid, vec![]), "not known");
        assert_eq!(with(&changed), (Status::Invalid, vec!["settings-changed"]));
        let found = settings_changed(&Observation { settings_after: &changed, ..trial.observed() }).unwrap();
        assert_eq!(found.evidence, "settings changed during the load: log_checkpoints: on → x");
    }

    #[test]
    fn autovacuum_on_tested_tables_is_noted() {
        let mut trial = TrialFixture::new();
        trial.event("autovacuum", Some("pgbench.public.pgbench_branches"), 500_000);
        trial.event("autovacuum", Some("pgbench.pg_catalog.pg_class"), 2_500_000);
        assert_eq!(gates(&trial.observed()), (Status::Valid, vec![]), "in the warm-up, and the server's own");
        trial.event("autovacuum", Some("pgbench.public.pgbench_branches"), 2_500_000);
        assert_eq!(gates(&trial.observed()), (Status::Valid, vec!["autovacuum"]));
        let evidence = autovacuum(&trial.observed()).unwrap().evidence;
        assert_eq!(evidence, "autovacuum processed tested tables: pgbench.public.pgbench_branches (1×)");
    }

    #[test]
    fn a_writing_load_without_a_checkpoint_is_noted_if_checkpoints_are_logged() {
        let mut trial = TrialFixture::new();
        trial.events.clear();
        assert_eq!(gates(&trial.observed()), (Status::Valid, vec!["no-checkpoint"]));
        for unknown in [
            Observation { writes: false, ..trial.observed() },
            Observation { log_was_read: false, ..trial.observed() },
            Observation { settings: &[], ..trial.observed() },
            Observation { clocks: None, ..trial.observed() },
        ] {
            assert_eq!(gates(&unknown), (Status::Valid, vec![]));
        }
        trial.event("checkpoint-ended", None, 500_000);
        assert_eq!(gates(&trial.observed()), (Status::Valid, vec!["no-checkpoint"]), "before the window");
    }
}
