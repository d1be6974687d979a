//! Machines of a fleet: what a campaign wants of them, and what they do.

mod status;

use serde::Serialize;

pub use self::status::{
    AgentFacts, AgentState, AgentStatus, Allows, FleetStatus, QueuedRun, RunStatus, RunningBlock,
    SetAsideBlock,
};
use crate::units::{Size, Span};

/// Time for which an agent may not be heard of, by default.
pub const DEFAULT_LEASE: Span = Span::from_us(30_000_000);
/// The shortest lease: agents extend it three times in that time.
pub(crate) const MIN_LEASE: Span = Span::from_us(2_000_000);

/// `[fleet]`, checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fleet {
    /// Labels that an agent must have.
    pub labels: Vec<String>,
    /// Main memory that it must have; none for any.
    pub memory: Option<Size>,
    /// Time after which the block of an agent that is not heard of goes to another one.
    pub lease: Span,
}

impl Default for Fleet {
    fn default() -> Self {
        Self { labels: Vec::new(), memory: None, lease: DEFAULT_LEASE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::spec::Campaign;

    fn fleet(table: &str) -> Result<Fleet, String> {
        let text = format!(
            "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\n{table}"
        );
        let campaign = Campaign::parse(&text).map_err(|error| error.message)?;
        Plan::new(&campaign, 1).map(|plan| plan.fleet).map_err(|error| error.message)
    }

    #[test]
    fn machines_are_wanted_by_label_and_memory() {
        assert_eq!(fleet("").unwrap(), Fleet::default());
        let wanted = fleet("[fleet]\nlabels = ['nvme', 'big']\nmemory = '64GB'\nlease = '1min'\n").unwrap();
        assert_eq!(wanted.labels, ["nvme", "big"]);
        assert_eq!(wanted.memory, Some(Size::from_bytes(64 << 30)));
        assert_eq!(wanted.lease, Span::from_us(60_000_000));
        for (table, why) in [
            ("labels = ['a b']", "label"),
            ("memory = '64 things'", "is not a size"),
            ("lease = '1s'", "too short"),
            ("label = ['a']", "unknown field"),
        ] {
            let error = fleet(&format!("[fleet]\n{table}\n")).unwrap_err();
            assert!(error.contains(why), "{table}: {error}");
        }
    }
}
