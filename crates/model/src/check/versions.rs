//! Workloads that need a newer PostgreSQL than some of the servers are.

use super::CheckedCampaign;
use crate::cell::Cell;
use crate::factor::Factor;
use crate::run::RunSettings;
use crate::server::{ServerSpec, Source};
use crate::value::SpecError;
use crate::version::{Major, Version, VersionRequest};

/// Finds the cells that are compared with each other, by the compared factor.
type FindPairs = fn(&[Cell], Option<Factor>) -> Vec<(usize, usize)>;

/// What can run of a campaign.
pub(crate) struct Supported {
    /// The cells whose servers are new enough for their workloads, as far as their versions are known.
    pub(crate) cells: Vec<Cell>,
    /// Why the other cells are left out: a sentence for each workload.
    pub(crate) left_out: Vec<String>,
}

impl CheckedCampaign<'_> {
    /// Leaves out cells whose server is too old for their workload; of paired trials, also those that are left without a pair.
    /// Versions of programs and running servers are not known yet.
    pub(crate) fn supported(
        &self,
        cells: Vec<Cell>,
        run: &RunSettings,
        pairs: FindPairs,
    ) -> Result<Supported, SpecError> {
        let servers = self.servers(&cells)?;
        let is_too_old = |cell: &Cell| {
            let server = servers.iter().find(|server| server.name == cell.server);
            let known = server.and_then(known_major).zip(cell.workload.minimum_version());
            known.is_some_and(|(major, minimum)| major < minimum)
        };
        let (too_old, mut cells): (Vec<Cell>, Vec<Cell>) = cells.into_iter().partition(is_too_old);
        if too_old.is_empty() {
            return Ok(Supported { cells, left_out: Vec::new() });
        }
        if run.order.is_paired() {
            let pairs = pairs(&cells, run.compare);
            let mut place = 0..;
            cells.retain(|cell| {
                let own = place.next().unwrap_or_default();
                let is_paired = pairs.iter().any(|(a, b)| [*a, *b].contains(&own));
                is_paired || too_old.iter().all(|other| other.workload != cell.workload)
            });
        }
        let left_out = sentences(&too_old, run.order.is_paired());
        if cells.is_empty() {
            return Err(SpecError {
                message: format!("no cells remain: {}", left_out.join("; ")),
                at: None,
                help: Some("expected newer servers, or other workloads".to_owned()),
            });
        }
        Ok(Supported { cells, left_out })
    }
}

/// `micro-merge is left out on 9.6 and 13: it needs PostgreSQL 15 or newer`, for each workload.
fn sentences(too_old: &[Cell], is_paired: bool) -> Vec<String> {
    let mut all: Vec<(&str, Major, Vec<&str>)> = Vec::new();
    for cell in too_old {
        let Some(minimum) = cell.workload.minimum_version() else { continue };
        let name = cell.workload.name();
        match all.iter_mut().find(|(known, ..)| *known == name) {
            Some((.., servers)) if servers.contains(&cell.server.as_str()) => {}
            Some((.., servers)) => servers.push(&cell.server),
            None => all.push((name, minimum, vec![&cell.server])),
        }
    }
    let sentence = |(name, minimum, servers): (&str, Major, Vec<&str>)| {
        let pairs = if is_paired { ", and so are its pairs with it" } else { "" };
        let servers = servers.join(" and ");
        format!("{name} is left out on {servers}{pairs}: it needs PostgreSQL {minimum} or newer")
    };
    all.into_iter().map(sentence).collect()
}

/// The major of a server that is named by its version; none of programs and running servers.
pub(super) fn known_major(server: &ServerSpec) -> Option<Major> {
    match &server.source {
        Source::Embedded(version) => version.parse::<VersionRequest>().ok().map(VersionRequest::major),
        Source::Installed(name) => {
            let (version, _) = name.split_once("-src-")?;
            version.parse::<Version>().ok().map(Version::major)
        }
        Source::Bin(_) | Source::Build(_) | Source::Dsn(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::plan::{Basis, Plan};
    use crate::spec::{Campaign, SpecError};
    use crate::workload::{Custom, Workload, Workloads};

    fn plan(factors: &str) -> Result<Plan, SpecError> {
        let mut merge = Custom::new("merge", Vec::new());
        merge.minimum_version = Some(crate::version::Major::new(15));
        let mut workloads = Workloads::default();
        workloads.insert("merge", Workload::Custom(Arc::new(merge)));
        let text = format!("name = 'x'\n[factors]\nclients = [1]\n{factors}");
        let campaign = Campaign::parse(&text).unwrap();
        Plan::with_workloads(&campaign, Basis { seed: 1, processors: Some(1) }, &workloads)
    }

    fn cells(plan: &Plan) -> Vec<String> {
        plan.cells.iter().map(|cell| format!("{} {}", cell.server, cell.workload.name())).collect()
    }

    #[test]
    fn a_server_that_is_too_old_for_a_workload_runs_the_others() {
        let plan =
            plan("server = ['9.6', '14.2', '15', '18.6-src-0a']\nworkload = ['merge', 'select-only']\n")
                .unwrap();
        assert_eq!(
            cells(&plan),
            [
                "9.6 select-only",
                "14.2 select-only",
                "15 merge",
                "15 select-only",
                "18.6-src-0a merge",
                "18.6-src-0a select-only"
            ]
        );
        let expected = "merge is left out on 9.6 and 14.2: it needs PostgreSQL 15 or newer";
        assert_eq!(plan.warnings()[0], expected);
    }

    #[test]
    fn what_is_left_without_a_pair_is_left_out_too() {
        let paired = "[run]\norder = 'paired'\n";
        let servers = "server = ['14', '15', '18']\n";
        let plan = plan(&format!("{servers}workload = ['merge', 'select-only']\n{paired}")).unwrap();
        assert_eq!(cells(&plan), ["14 select-only", "15 select-only", "18 select-only"]);
        assert_eq!(plan.comparisons(), [(0, 1), (0, 2)]);
        let expected =
            "merge is left out on 14, and so are its pairs with it: it needs PostgreSQL 15 or newer";
        assert_eq!(plan.warnings()[0], expected);
    }

    #[test]
    fn a_campaign_without_a_cell_that_can_run_is_refused_with_the_reason() {
        let error = plan("server = ['13', '14']\nworkload = ['merge']\n").unwrap_err();
        let expected = "no cells remain: merge is left out on 13 and 14: it needs PostgreSQL 15 or newer";
        assert_eq!(error.message, expected);
    }
}
