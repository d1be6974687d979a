//! How long a paired campaign takes, by how much sessions differed before on this machine.

use std::collections::BTreeMap;

use model::cell::Cell;
use model::merit::Merit;
use model::paired::PairedFigure;
use model::plan::{Order, Plan};
use model::record::Trial;
use plaintext::figures::duration;
use stats::{Logs, Sample, session_log_ratio, sessions_for_equivalence};

use super::power_check::is_like;
use crate::judgement::CommonSessions;

/// Sessions that the comparisons of a paired campaign take if nothing has changed, by sessions of before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedSessions {
    /// The margin, as a share.
    effect: f64,
    /// Sessions of the comparison that takes the most.
    sessions: usize,
    /// The standard deviation of the log ratios of sessions there.
    log_sd: f64,
    /// Time of the sessions of all comparisons, in seconds.
    seconds: f64,
}

/// The sessions expected by those of the same workload with as many clients among `trials`; `None` if a comparison has none, or
/// trials are not paired.
pub fn expected_sessions(plan: &Plan, trials: &[&Trial]) -> Option<ExpectedSessions> {
    if plan.run.order != Order::Paired {
        return None;
    }
    let comparisons = plan.comparisons();
    let merit = |cell: &Cell| Merit::of(&cell.clone().into());
    let figures =
        |(_, b): &(usize, usize)| PairedFigure::deciding(merit(&plan.cells[*b]), plan.run.cpu_decides).len();
    let together = comparisons.iter().map(figures).sum();
    let mut expected = ExpectedSessions { effect: plan.run.effect, sessions: 0, log_sd: 0.0, seconds: 0.0 };
    for (_, b) in &comparisons {
        let (log_sd, session_seconds) = known_sessions(&plan.cells[*b], trials)?;
        let sessions = sessions_for_equivalence(log_sd, 1.0 + plan.run.effect, together)?;
        if sessions > expected.sessions {
            (expected.sessions, expected.log_sd) = (sessions, log_sd);
        }
        expected.seconds += sessions as f64 * session_seconds;
    }
    Some(expected)
}

/// The spread of log ratios between sessions with a cell's workload and clients, the median over their comparisons, and the
/// median length of a session in seconds.
fn known_sessions(cell: &Cell, trials: &[&Trial]) -> Option<(f64, f64)> {
    // By run and cell, the two sides of comparisons.
    let mut cells: BTreeMap<(&str, String), Vec<&Trial>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.paired.is_some() && is_like(&trial.cell, cell)) {
        cells.entry((&trial.run.id, trial.cell.to_string())).or_default().push(trial);
    }
    let figure = PairedFigure::of(Merit::of(&cell.clone().into()));
    let (mut spreads, mut seconds) = (Vec::new(), Vec::new());
    let all: Vec<_> = cells.iter().collect();
    for (at, ((run, _), a)) in all.iter().enumerate() {
        for (_, b) in all[at + 1..].iter().filter(|((other, _), _)| other == run) {
            let Some(common) = CommonSessions::new(a, b) else { continue };
            let log_ratio = |pair: [&Trial; 2]| {
                let [Some(a), Some(b)] = pair.map(|trial| trial.paired.as_ref()) else { return None };
                session_log_ratio(&figure.pairs([a, b], [cell.clients; 2]))
            };
            let Some(logs) = Logs::new(common.usable().filter_map(log_ratio).map(f64::exp)) else { continue };
            if logs.n() >= stats::MIN_RUNS {
                spreads.extend(logs.standard_deviation());
                seconds.extend(common.session_seconds());
            }
        }
    }
    let median = |values: Vec<f64>| Sample::new(values).map(|sample| sample.median());
    Some((median(spreads)?, median(seconds)?))
}

impl ExpectedSessions {
    /// A sentence.
    pub fn in_words(&self) -> String {
        format!(
            "sessions on this machine spread by {:.1}%: if nothing has changed, that is certain within {:.1}% after some {} sessions of \
             a comparison, about {} in all",
            self.log_sd * 100.0,
            self.effect * 100.0,
            self.sessions,
            duration(self.seconds)
        )
    }
}
