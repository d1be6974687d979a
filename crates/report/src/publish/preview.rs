//! Preview of a publication, for `pgdyno publish --dry-run`.

use std::collections::BTreeMap;

use model::record::Trial;
use plaintext::figures::counted;
use plaintext::table::{Format, Table};

use super::schema::{State, VERSION};

/// Trials that a publication would copy.
#[derive(Clone, Debug)]
pub struct Preview<'t> {
    pub(super) new: Vec<&'t Trial>,
    /// Number of selected trials.
    pub(super) selected: usize,
    pub(super) state: State,
}

impl Preview<'_> {
    /// Number of trials and, in a table, their runs; `place` is where they would be copied to.
    pub fn text(&self, place: &str) -> String {
        let mut runs: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
        for trial in &self.new {
            runs.entry(&trial.run.id).or_insert((&trial.run.campaign, 0)).1 += 1;
        }
        let mut table = Table::new(["run", "campaign", "#trials"]);
        for (run, (campaign, trials)) in runs {
            table.push(vec![run.to_owned(), campaign.to_owned(), trials.to_string()]);
        }
        let change = match self.state {
            State::Absent | State::Empty => ", which would be created",
            State::Version(version) if version < VERSION => ", which would be upgraded",
            State::Version(_) => "",
        };
        let head = format!(
            "{} of {} would be copied into {place}{change}\n",
            self.new.len(),
            counted(self.selected, "trial")
        );
        if self.new.is_empty() { head } else { head + &table.render(Format::Table) }
    }
}
