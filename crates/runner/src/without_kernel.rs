//! Trials whose kernel failed to boot or crashed: invalid, with the reason.

use std::collections::BTreeSet;

use jiff::Timestamp;
use model::cell::Cell;
use model::plan::Plan;
use model::record::{Event, Finding, Log, Run, Status, Trial, TrialRecord, Validity};

use crate::host_context::HostContext;
use crate::schedule::{NextTrial, TrialSchedule};

/// The gate of a trial without its kernel.
pub(crate) const KERNEL: &str = "kernel";

/// A planned trial still to run on any host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenTrial<'a> {
    next: NextTrial,
    /// Its cell.
    pub(crate) cell: &'a Cell,
}

/// The planned trials still to run on any host, in their order. `trials` are those of the run that are in the store,
/// `earlier` the ids of those that an earlier command of the user ran.
pub(crate) fn open_trials<'a>(
    plan: &'a Plan,
    trials: &[Trial],
    earlier: &BTreeSet<String>,
) -> Vec<OpenTrial<'a>> {
    // Open trials do not depend on the host.
    let any_host = HostContext::default();
    let open = TrialSchedule::new(plan, &any_host, trials, earlier).open();
    open.into_iter().map(|next| OpenTrial { cell: plan.cell(&next.trial), next }).collect()
}

impl OpenTrial<'_> {
    /// The record of the trial without its kernel: no load and no environment, since it ran on no machine. `log` is the end
    /// of the kernel's log.
    pub(crate) fn without_kernel(&self, run: &Run, evidence: &str, log: Option<&str>) -> TrialRecord {
        let now = Timestamp::now();
        let finding = Finding {
            gate: KERNEL.to_owned(),
            status: Status::Invalid,
            evidence: evidence.to_owned(),
            threshold: None,
            advice: None,
            processes: Vec::new(),
        };
        let trial = Trial {
            started: Some(now),
            ended: Some(now),
            validity: Validity { status: Status::Invalid, findings: vec![finding] },
            ..self.next.head(run, self.cell)
        };
        TrialRecord {
            events: vec![Event {
                at: now,
                kind: "judged-invalid".to_owned(),
                message: format!("{KERNEL}: {evidence}"),
                ..Event::default()
            }],
            logs: log
                .map(|text| Log { name: "kernel".to_owned(), text: text.to_owned() })
                .into_iter()
                .collect(),
            ..TrialRecord::new(trial)
        }
    }
}

#[cfg(test)]
mod tests {
    use model::plan::Plan;
    use model::spec::Campaign;

    use super::*;
    use crate::schedule::Schedule;

    #[test]
    fn a_trial_whose_kernel_never_boots_has_as_many_attempts_as_any_other() {
        let text = "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\n\
                    kernel = ['6.1', '6.12']\nacceleration = ['none']\n[run]\nrepeats = 2\nretries = 1\n";
        let plan = Plan::new(&Campaign::parse(text).unwrap(), 1).unwrap();
        let (mut trials, earlier): (Vec<Trial>, _) = (Vec::new(), BTreeSet::new());
        let mut attempts = Vec::new();
        loop {
            let open = open_trials(&plan, &trials, &earlier);
            let open: Vec<_> =
                open.iter().filter(|trial| trial.cell.kernel.as_deref() == Some("6.1")).collect();
            if open.is_empty() {
                break;
            }
            attempts.push(open.len());
            trials.extend(open.iter().map(|trial| {
                trial.without_kernel(&Run::default(), "it panicked", Some("Kernel panic")).trial
            }));
        }
        assert_eq!(attempts, [2, 2], "two repeats, two tries");
        assert_eq!(open_trials(&plan, &trials, &earlier).len(), 2, "those of the other kernel");
        let host = HostContext { kernel: "6.1.0".to_owned(), ..HostContext::default() };
        assert!(TrialSchedule::new(&plan, &host, &trials, &earlier).next().is_empty());
    }
}
