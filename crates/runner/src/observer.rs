//! Events of a running campaign, reported as they happen.

use model::cell::Cell;
use model::message::Interval;
use model::paired::Side;
use model::plan::PlannedTrial;
use model::record::Trial;
use model::units::Span;
use model::waits::Waits;

use crate::schedule::ComparisonState;

/// An event that users see.
#[derive(Debug)]
pub enum Event<'a> {
    /// A step of the preparation: fetching a server, filling a data set.
    Preparing {
        /// The step, such as `filling pgbench at scale 10`.
        what: &'a str,
        /// Parts of it that are done.
        done: u64,
        /// Number of its parts; none if not known.
        total: Option<u64>,
    },
    /// A message; the campaign continues.
    Notice(&'a str),
    /// A trial begins.
    TrialBegins {
        /// Its place in the plan.
        trial: &'a PlannedTrial,
        /// Its cell.
        cell: &'a Cell,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// Reason for a trial in addition to the plan; none for a planned trial.
        reason: Option<&'a str>,
        /// Number of trials, as far as known.
        of: usize,
        /// Number of trials if each cell needs all of its repeats.
        of_at_most: usize,
        /// Estimated time until the end of the campaign.
        remaining: Span,
        /// The same if each cell needs all of its repeats.
        remaining_at_most: Span,
        /// Its side, if it is measured in pairs.
        side: Option<Side>,
        /// The trial of the other side, which runs at the same time and is about to begin, too.
        other: Option<OtherTrial<'a>>,
    },
    /// An interval of the load has ended.
    Load {
        /// The interval.
        interval: &'a Interval,
        /// The side of its load, if it is measured in pairs.
        side: Option<Side>,
        /// Activity of the server's sessions in its second; none if it was not sampled.
        waits: Option<&'a [Waits]>,
    },
    /// A trial has ended and is stored.
    TrialEnded(&'a Trial),
    /// A session of paired trials has ended; the state of its comparison.
    SessionEnded(&'a ComparisonState<'a>),
}

/// The second trial of a session.
#[derive(Debug)]
pub struct OtherTrial<'a> {
    /// Its place in the plan.
    pub trial: &'a PlannedTrial,
    /// Its cell.
    pub cell: &'a Cell,
    /// Number of the attempt, from 1.
    pub attempt: u32,
}

/// A receiver of events. Called from several threads, while servers are prepared and by the sides of a session.
pub trait Observer: Sync {
    /// Handles an event.
    fn on_event(&self, event: &Event);
}
