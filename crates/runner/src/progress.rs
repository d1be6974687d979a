//! What happens while a campaign runs, told as it happens.

use model::cell::Cell;
use model::message::Interval;
use model::plan::PlannedTrial;
use model::record::Trial;
use model::units::Span;
use model::waits::Waits;

/// Something worth telling the user.
#[derive(Debug)]
pub enum Event<'a> {
    /// Before the first trial: fetching a server, filling a data set.
    Preparing {
        /// What is being done, on what.
        what: &'a str,
        /// How much of it is done.
        done: u64,
        /// How much there is, where that is known.
        total: Option<u64>,
    },
    /// Something to know though the work goes on.
    Notice(&'a str),
    /// A trial begins.
    TrialBegins {
        /// Which.
        trial: &'a PlannedTrial,
        /// Its cell.
        cell: &'a Cell,
        /// Which try at it, from 1.
        attempt: u32,
        /// Why it is run beyond what was planned; none where it was planned.
        reason: Option<&'a str>,
        /// Number of trials, as far as is known.
        of: usize,
        /// About how long this and the trials after it will take.
        remaining: Span,
    },
    /// An interval of the load has ended.
    Load {
        /// What came of it.
        interval: &'a Interval,
        /// What the server's sessions were doing in its second; none where it was not looked.
        waits: Option<&'a [Waits]>,
    },
    /// A trial has ended and is in the store.
    TrialEnded(&'a Trial),
}

/// Who is told. Called from several threads while servers are prepared.
pub trait Observer: Sync {
    /// Takes note of an event.
    fn see(&self, event: &Event);
}
