//! Checks of topologies: what can't run next to a server, and settings that a topology makes itself.

use std::ops::Range;

use super::CheckedCampaign;
use super::versions::known_major;
use crate::cell::Cell;
use crate::factor::Factor;
use crate::server::{ServerSpec, Source};
use crate::topology::{Companion, Topology};
use crate::value::SpecError;

/// PgBouncer's setting of the number of server connections.
const POOL_SIZE: &str = "pgbouncer.default_pool_size";

impl CheckedCampaign<'_> {
    /// Rejects cells whose topology can't run, or would not be what it says.
    pub(crate) fn check_topologies(&self, cells: &[Cell], servers: &[ServerSpec]) -> Result<(), SpecError> {
        for cell in cells.iter().filter(|cell| cell.topology != Topology::Single) {
            let server = servers.iter().find(|server| server.name == cell.server);
            if let Some((message, help)) = self.obstacle_of_topology(cell, server)? {
                let at: Option<Range<usize>> = self.place(Factor::Topology, cell)?;
                return Err(SpecError { message, at, help: Some(help.to_owned()) });
            }
        }
        Ok(())
    }

    /// Why a cell's topology can't run, and what to do.
    fn obstacle_of_topology(
        &self,
        cell: &Cell,
        server: Option<&ServerSpec>,
    ) -> Result<Option<(String, &'static str)>, SpecError> {
        const EXCLUDE: &str = "expected the topology `single` for these cells: leave the others out, by `exclude` or a separate `[[matrix]]`";
        let topology = cell.topology.as_str();
        let rejected = |message: String| Ok(Some((message, EXCLUDE)));
        if server.is_some_and(|server| matches!(server.source, Source::Dsn(_))) {
            return rejected(format!(
                "the topology `{topology}` needs a server that pgdyno starts, but it does not own the server \"{}\"",
                cell.server
            ));
        }
        if cell.acceleration.is_virtual() {
            return rejected(format!("the topology `{topology}` does not run in virtual machines: {cell}"));
        }
        if super::run::order(&self.campaign.run)?.is_paired() {
            let message = format!(
                "the topology `{topology}` does not run in sessions of two servers: what it adds works on in the other's slices"
            );
            return Ok(Some((message, "expected the order `randomized-blocks` or `sequential`")));
        }
        let known = server.and_then(known_major).zip(cell.topology.minimum_version());
        if let Some((_, minimum)) = known.filter(|(major, minimum)| major < minimum) {
            return rejected(format!(
                "the topology `{topology}` needs PostgreSQL {minimum} or newer, and the server \"{}\" is older",
                cell.server
            ));
        }
        let needed = cell.topology.server_settings().iter().map(|(name, _)| *name);
        let given = |name: &str| cell.settings.values.keys().any(|given| given.eq_ignore_ascii_case(name));
        if let Some(name) = needed.into_iter().find(|name| given(name)) {
            let message = format!(
                "the settings \"{}\" have `{name}`, which the topology `{topology}` sets itself",
                cell.settings.name
            );
            return Ok(Some((message, "expected other settings for these cells, without it")));
        }
        if cell.topology.companion() == Some(Companion::Pgbouncer) {
            return Ok(obstacle_of_pooler(cell));
        }
        Ok(None)
    }
}

fn obstacle_of_pooler(cell: &Cell) -> Option<(String, &'static str)> {
    let topology = cell.topology.as_str();
    if cell.workload.custom().is_some_and(|custom| custom.with_background().count() > 1) {
        let message = format!(
            "the workload \"{}\" has background workloads, whose sessions can't be told from the others behind a pooler \
             (`{topology}`)",
            cell.workload.name()
        );
        return Some((message, "expected a workload without them, or the topology `single`"));
    }
    let size = cell.pool_size().filter(|size| *size > 0);
    if size.is_none() {
        let message = format!(
            "`{POOL_SIZE}` of the settings \"{}\" is not a number of connections",
            cell.settings.name
        );
        return Some((message, "expected 1, 2, 3, …"));
    }
    let reconnects = cell.workload.custom().is_some_and(|custom| custom.reconnect);
    let clients = cell.all_clients();
    if let Some(size) = size.filter(|size| *size < clients)
        && cell.topology == Topology::PgbouncerSession
        && !reconnects
    {
        let message = format!(
            "{clients} clients keep their server connections (`{topology}`), and `{POOL_SIZE}` of the settings \
             \"{}\" is {size}: the others would wait for ever",
            cell.settings.name
        );
        return Some((
            message,
            "expected at least as many connections as clients, or `pgbouncer-transaction`",
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::cell::Cell;
    use crate::plan::Plan;
    use crate::spec::Campaign;
    use crate::topology::Topology;

    const TEXT: &str = "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [4]\n\
                        topology = ['single', 'standby-sync']\n[servers.theirs]\ndsn = 'host=db.example'\n\
                        [servers.mine]\nbin = '/nowhere'\n[settings.small]\n'pgbouncer.default_pool_size' = 1\n\
                        'standby.work_mem' = '1MB'\n[settings.sync]\nsynchronous_commit = 'off'\n[run]\nrepeats = 1\n";

    fn cells(changes: &[(&str, &str)]) -> Result<Vec<Cell>, (String, Option<String>)> {
        let text = changes.iter().fold(TEXT.to_owned(), |text, (from, to)| text.replace(from, to));
        match Plan::new(&Campaign::parse(&text).unwrap(), 1) {
            Ok(plan) => Ok(plan.cells),
            Err(error) => Err((error.message, error.at.map(|at| text[at].to_owned()))),
        }
    }

    #[test]
    fn topologies_are_a_factor_and_single_is_the_default() {
        let topologies = |cells: Vec<Cell>| cells.into_iter().map(|cell| cell.topology).collect::<Vec<_>>();
        assert_eq!(topologies(cells(&[]).unwrap()), [Topology::Single, Topology::StandbySync]);
        let without = cells(&[("topology = ['single', 'standby-sync']\n", "")]).unwrap();
        assert_eq!(topologies(without), [Topology::Single]);
        // The version of programs in place is not known yet.
        assert!(cells(&[("['18']", "['mine', '10']")]).is_ok());
    }

    #[test]
    fn topologies_that_can_not_run_are_rejected_at_their_level() {
        let with = |topology: &'static str| ("'standby-sync'", topology);
        let order = |order: &'static str| ("repeats = 1", order);
        for (changes, message) in [
            (&[("['18']", "['theirs']")][..], "it does not own the server \"theirs\""),
            (&[("['18']", "['9.6']")], "needs PostgreSQL 10 or newer"),
            (&[("['18']", "['18']\nkernel = ['6.1']")], "does not run in virtual machines"),
            (&[("['18']", "['18', '17']"), order("order = 'paired'")], "sessions of two servers"),
            (&[("['18']", "['18']\nsettings = ['sync']")], "`synchronous_commit`, which the topology"),
            (
                &[("['18']", "['18']\nsettings = ['small']"), with("'pgbouncer-session'")],
                "4 clients keep their server connections",
            ),
        ] {
            let (found, at) = cells(changes).unwrap_err();
            assert!(found.contains(message), "{found}");
            assert!(at.as_deref().is_some_and(|at| at.starts_with('\'')), "{at:?}");
        }
        // Their settings allow these.
        assert!(cells(&[("['18']", "['18']\nsettings = ['sync']"), with("'logical'")]).is_ok());
        assert!(
            cells(&[("['18']", "['18']\nsettings = ['small']"), with("'pgbouncer-transaction'")]).is_ok()
        );
    }

    #[test]
    fn settings_by_which_pgdyno_connects_companions_are_rejected() {
        for (name, at) in
            [("pgbouncer.auth_file", "'x'"), ("standby.primary_conninfo", "'x'"), ("standby.port", "'x'")]
        {
            let setting = format!("'{name}' = 'x'");
            let (message, found) = cells(&[("'standby.work_mem' = '1MB'", &setting)]).unwrap_err();
            assert!(message.contains(name) && found.as_deref() == Some(at), "{message} at {found:?}");
        }
    }

    #[test]
    fn a_pooler_needs_as_many_server_connections_as_its_pool_has() {
        let many = ("clients = [4]", "clients = [150]");
        assert!(cells(&[many]).unwrap_err().0.contains("max_connections"));
        let pooled = cells(&[many, ("['single', 'standby-sync']", "['pgbouncer-transaction']")]).unwrap();
        assert_eq!(pooled[0].server_connections(), 20);
        let (message, _) =
            cells(&[many, ("['single', 'standby-sync']", "['pgbouncer-session']")]).unwrap_err();
        assert!(message.contains("max_connections"), "{message}");
    }
}
