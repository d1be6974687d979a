//! Starting a server of pgdyno's own for a cell, on a copy of its data set, with what its topology has next to it.

use model::cell::Cell;
use model::factor::pin::cpu_list;
use model::topology::Companion;
use server::{Cluster, CompanionStart, StopMode};

use super::named::OfServer;
use super::{Origin, Running, Servers, Start, State};
use crate::server_handle::{OwnServer, ServerHandle};

impl Servers<'_> {
    pub(super) fn start_own(
        &mut self,
        cell: &Cell,
        start: Start,
        fresh_data: bool,
        cold: bool,
    ) -> Result<Running, server::Error> {
        let given = &cell.settings.values;
        let settings = start.topology.settings(given);
        // A replica continues from where its server starts.
        let has_replica = start.topology.has_replica();
        let (mut cluster, mut known) = self.copy(&start.origin, fresh_data || has_replica)?;
        let mut replica = None;
        if has_replica {
            // The data set was filled with `wal_level = minimal`: from its end on, the WAL has what a standby needs.
            cluster = cluster.start(&settings)?.stop(StopMode::Fast)?;
            replica = Some(self.copy_for_replica(&start.origin, &cluster)?);
        }
        if cold {
            [Some(&cluster), replica.as_ref()]
                .into_iter()
                .flatten()
                .try_for_each(Cluster::drop_page_cache)?;
        }
        let server = cluster.start_within(&settings, &start.limits, start.transport)?;
        let cpus = start.cpus.as_deref().and_then(cpu_list);
        if let Some(cpus) = &cpus {
            server.set_cpu_affinity(cpus)?;
        }
        let companion = match start.topology.companion() {
            None => None,
            Some(kind) => {
                let companion = CompanionStart {
                    topology: start.topology,
                    settings: &kind.settings(given),
                    limits: &start.limits,
                    transport: start.transport,
                    connections: start.pooled.unwrap_or_default(),
                    replica,
                };
                let companion = companion.run(&server)?;
                if let Some(cpus) = &cpus {
                    companion.set_cpu_affinity(cpus)?;
                }
                // A publication is made in the tested database.
                known = known.filter(|_| kind != Companion::Subscriber);
                Some(companion)
            }
        };
        let commits = match known {
            Some(commits) => commits,
            None => server.commits(None)?,
        };
        if start.topology.companion() != Some(Companion::Subscriber) {
            self.first_commits.entry(start.origin.clone()).or_insert(commits);
        }
        let build = self.installation(cell).map(|known| known.identity().to_owned());
        let state = State { altered: false, commits: Some(commits) };
        Ok(Running { start, build, server: ServerHandle::Own(OwnServer { companion, server }), state })
    }

    /// A copy that has not been written to, with its count of commits if known.
    fn copy(&mut self, origin: &Origin, fresh_data: bool) -> Result<(Cluster, Option<u64>), server::Error> {
        let copy = self.copies.remove(origin);
        let Some(template) = self.templates.get(origin) else {
            return match copy {
                // A guest has one copy, for one trial, and no template.
                Some((cluster, State { altered: false, commits })) => Ok((cluster, commits)),
                _ => {
                    Err(server::Error::NoTemplate { server: origin.0.clone(), content: origin.1.to_string() })
                }
            };
        };
        let progress = OfServer { name: &origin.0, progress: self.progress };
        let cluster = match copy {
            None => template.clone_cluster(self.cache, &progress)?,
            Some((mut cluster, state)) if state.altered || fresh_data => {
                template.restore(&mut cluster, &progress)?;
                cluster
            }
            Some((cluster, state)) => return Ok((cluster, state.commits)),
        };
        Ok((cluster, self.first_commits.get(origin).copied()))
    }

    /// A copy of a stopped server's data for its replica.
    fn copy_for_replica(&mut self, origin: &Origin, server: &Cluster) -> Result<Cluster, server::Error> {
        let progress = OfServer { name: &origin.0, progress: self.progress };
        match self.replicas.remove(origin) {
            None => server.duplicate(self.cache, &progress),
            Some(mut replica) => {
                replica.copy_from(server, &progress)?;
                Ok(replica)
            }
        }
    }
}
