//! Access to a server that pgdyno starts: its owner through the socket, authenticated by the operating system (`peer`);
//! over TCP, if the server listens there, any client with the password generated for this start.
//!
//! The files are outside the data directory and belong to pgdyno, so that no session can change them.

use std::fs;
use std::path::{Path, PathBuf};

use host::{IoContext, ServerUser, current_user_name};
use model::version::Major;

use crate::error::Error;

/// Name of the map from operating-system users to roles.
const MAP: &str = "pgdyno";
const HEADER: &str = "# Written by pgdyno at each start.\n";
/// The first major with SCRAM.
const SCRAM: Major = Major::new(10);

/// Clients that may connect.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Access<'a> {
    /// The owner, through the socket, as [`crate::USER`]; the server does not listen on TCP.
    Socket,
    /// Also clients with the password, on 127.0.0.1.
    Tcp,
    /// Those that match these lines of `pg_hba.conf`, through the socket and on 127.0.0.1.
    Rules(&'a str),
}

impl Access<'_> {
    pub(crate) fn listens(self) -> bool {
        !matches!(self, Self::Socket)
    }

    pub(crate) fn has_password(self) -> bool {
        matches!(self, Self::Tcp)
    }

    fn hba(self, major: Major) -> String {
        let own = format!("local all all peer map={MAP}\nlocal replication all peer map={MAP}\n");
        match self {
            Self::Socket => own,
            Self::Tcp => {
                let method = if has_scram(major) { "scram-sha-256" } else { "md5" };
                format!("{own}host all all 127.0.0.1/32 {method}\n")
            }
            Self::Rules(rules) => rules.to_owned(),
        }
    }
}

/// Paths of a server's `pg_hba.conf` and `pg_ident.conf`.
pub(crate) struct AccessFiles {
    pub(crate) hba: PathBuf,
    pub(crate) ident: PathBuf,
}

/// Writes the files into the server's home directory.
pub(crate) fn write_files(
    home: &Path,
    user: &ServerUser,
    major: Major,
    access: Access<'_>,
) -> Result<AccessFiles, Error> {
    let files = AccessFiles { hba: home.join("pg_hba.conf"), ident: home.join("pg_ident.conf") };
    fs::write(&files.hba, format!("{HEADER}{}", access.hba(major))).doing("write", &files.hba)?;
    let own = current_user_name()?;
    // The server's processes connect to it, too: by dblink, or as a subscriber to its own publication.
    let users = [Some(own.as_str()), user.name()].into_iter().flatten();
    fs::write(&files.ident, ident(users)).doing("write", &files.ident)?;
    Ok(files)
}

/// Whether a server stores passwords as SCRAM verifiers.
pub(crate) fn has_scram(major: Major) -> bool {
    major >= SCRAM
}

fn ident<'a>(users: impl Iterator<Item = &'a str>) -> String {
    let lines: String = users.map(|user| format!("{MAP} \"{user}\" {}\n", crate::USER)).collect();
    format!("{HEADER}{lines}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_connections_are_only_allowed_on_request_and_with_a_password() {
        let (old, new) = (Major::new(9), Major::new(18));
        for major in [old, new] {
            assert!(!Access::Socket.hba(major).contains("host"));
            assert!(!Access::Tcp.hba(major).contains("trust"));
        }
        assert!(Access::Tcp.hba(old).ends_with("host all all 127.0.0.1/32 md5\n"));
        assert!(Access::Tcp.hba(new).ends_with("host all all 127.0.0.1/32 scram-sha-256\n"));
        let lines = ident(["root", "a b"].into_iter());
        assert!(lines.ends_with("\npgdyno \"root\" postgres\npgdyno \"a b\" postgres\n"), "{lines}");
    }
}
