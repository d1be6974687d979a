//! The sessions of a run.

use std::time::Duration;

use model::paired::{MeasuredSlice, PairedFigure, PairedTrial, Side};
use model::record::{Status, Trial};
use stats::{DecidingFigure, PairedSequence, Verdict, deciding, session_log_ratio};

/// A run by pairs.
pub(crate) struct Round {
    pub(crate) sessions: Sessions,
    pub(crate) elapsed: Duration,
}

/// What a run's sessions showed.
pub(crate) struct Sessions {
    /// By throughput.
    pub(crate) throughput: PairedSequence,
    /// By CPU time of the server per transaction.
    pub(crate) server_cpu: PairedSequence,
    /// Whether the latter decides, too.
    cpu_decides: bool,
    /// CPU time of the paused server, as a share of the running one's.
    pub(crate) leftover: f64,
}

impl Sessions {
    pub(crate) fn new(trials: &[Trial], clients: u32, margin: f64, cpu_decides: bool) -> Self {
        let together = 1 + usize::from(cpu_decides);
        let mut sessions = Self {
            throughput: PairedSequence::new(margin, together),
            server_cpu: PairedSequence::new(margin, together),
            cpu_decides,
            leftover: 0.0,
        };
        let usable: Vec<&PairedTrial> = trials
            .iter()
            .filter(|trial| trial.validity.status != Status::Invalid)
            .filter_map(|trial| trial.paired.as_ref())
            .collect();
        let of = |number, side| usable.iter().find(|trial| (trial.session, trial.side) == (number, side));
        for number in 1..=usable.iter().map(|trial| trial.session).max().unwrap_or(0) {
            let (Some(a), Some(b)) = (of(number, Side::A), of(number, Side::B)) else { continue };
            for (figure, sequence) in [
                (PairedFigure::Throughput, &mut sessions.throughput),
                (PairedFigure::ServerCpu, &mut sessions.server_cpu),
            ] {
                if let Some(log_ratio) = session_log_ratio(&figure.pairs([a, b], [clients; 2])) {
                    sequence.add(log_ratio);
                }
            }
        }
        let slices = || usable.iter().flat_map(|trial| &trial.slices);
        let sum = |of: fn(&MeasuredSlice) -> Option<u64>| slices().filter_map(of).sum::<u64>() as f64;
        sessions.leftover = sum(|slice| slice.paused_cpu_us) / sum(|slice| slice.server_cpu_us).max(1.0);
        sessions
    }

    /// The verdict in terms of throughput: more CPU time is a regression.
    pub(crate) fn verdict(&self) -> Verdict {
        let figures = [
            DecidingFigure { sequence: &self.throughput, higher_is_better: true },
            DecidingFigure { sequence: &self.server_cpu, higher_is_better: false },
        ];
        let deciding = if self.cpu_decides { deciding(&figures) } else { 0 };
        match figures[deciding].sequence.verdict() {
            Verdict::Improvement if deciding == 1 => Verdict::Regression,
            Verdict::Regression if deciding == 1 => Verdict::Improvement,
            verdict => verdict,
        }
    }
}
