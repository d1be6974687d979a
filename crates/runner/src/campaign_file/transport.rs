//! Transport of servers given by connection strings, which have a host or a directory of sockets.

use model::server::Source;
use model::spec::SpecError;
use model::workload::Transport;

use super::{CampaignFile, CampaignFileError};

impl CampaignFile {
    /// Gives cells of servers with a connection string its transport if the campaign names no transport. A string that
    /// can't be resolved here is reported when the server is connected.
    ///
    /// # Errors
    /// The campaign names another transport, or load hosts, which can't reach a socket of this host.
    pub(super) fn derive_transport(mut self) -> Result<Self, CampaignFileError> {
        let is_open =
            self.leaves_open(|matrix| matrix.transport.is_none(), |point| point.transport.is_none());
        let (mut other, mut unreachable) = (None, None);
        for server in &self.plan.servers {
            let Source::Dsn(dsn) = &server.source else { continue };
            let Ok(actual) = server::transport(&server.name, dsn) else { continue };
            if self.plan.load_hosts.is_some() && actual == Transport::Unix {
                unreachable = Some(server.name.clone());
            }
            for cell in self.plan.cells.iter_mut().filter(|cell| cell.server == server.name) {
                if is_open {
                    cell.transport = actual;
                } else if cell.transport != actual {
                    other = Some((server.name.clone(), actual));
                }
            }
        }
        match (other, unreachable) {
            (Some((server, actual)), _) => Err(self.other_transport(&server, actual)),
            (None, Some(server)) => Err(self.socket_of_this_host(&server)),
            (None, None) => Ok(self),
        }
    }

    fn socket_of_this_host(&self, server: &str) -> CampaignFileError {
        self.invalid(SpecError {
            message: format!("load hosts can't reach the server \"{server}\" by a socket of this host"),
            at: self.server_span(server),
            help: Some(
                "expected the host name or the address by which the load hosts know it in the connection string"
                    .to_owned(),
            ),
        })
    }

    fn other_transport(&self, server: &str, actual: Transport) -> CampaignFileError {
        let actual = actual.as_str();
        self.invalid(SpecError {
            message: format!("the connection string of the server \"{server}\" connects by {actual} only"),
            at: self.server_span(server),
            help: Some(
                "leave `transport` out, exclude its other levels for this server, or set another host in the \
                 connection string (a directory means a Unix socket)"
                    .to_owned(),
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn transports(servers: &str, more: &str) -> Result<Vec<Transport>, String> {
        let text = format!(
            "name = 'n'\n[factors]\nserver = {servers}\nworkload = ['select-only']\nclients = [1]\n{more}\n\
             [servers.tcp]\ndsn = 'host=127.0.0.1 port=5999 user=me'\n\
             [servers.socket]\ndsn = 'host=/run/postgresql port=5999 user=me'\n"
        );
        let file = CampaignFile::parse(Path::new("n.toml"), text, None).map_err(|error| error.to_string())?;
        Ok(file.plan.cells.iter().map(|cell| cell.transport).collect())
    }

    #[test]
    fn the_transport_is_that_of_the_connection_string() {
        let all = "['18', 'tcp', 'socket']";
        assert_eq!(transports(all, "").unwrap(), [Transport::Unix, Transport::Tcp, Transport::Unix]);
        let tcp = "transport = ['tcp']";
        assert_eq!(transports("['18', 'tcp']", tcp).unwrap(), [Transport::Tcp, Transport::Tcp]);
        let refused = transports(all, tcp).unwrap_err();
        assert!(refused.contains("the server \"socket\" connects by unix only"), "{refused}");
        let on_hosts = "[run]\nload_hosts = 1";
        assert_eq!(transports("['tcp']", on_hosts).unwrap(), [Transport::Tcp]);
        let refused = transports("['socket']", on_hosts).unwrap_err();
        assert!(refused.contains("load hosts can't reach the server \"socket\" by a socket"), "{refused}");
        let refused = transports("['tcp']", "transport = ['unix']").unwrap_err();
        assert!(refused.contains("the server \"tcp\" connects by tcp only"), "{refused}");
    }
}
