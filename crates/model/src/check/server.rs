//! Checks of the servers: their sources, and what each supports.

use std::path::PathBuf;

use super::CheckedCampaign;
use crate::cell::Cell;
use crate::factor::cache::CacheState;
use crate::limits::MemoryLimit;
use crate::secret::secrets;
use crate::server::{Build, Dsn, EXPECTED_SERVER, ServerSpec, Source, commit_of};
use crate::spec;
use crate::value::{Spanned, SpecError, word};

impl CheckedCampaign<'_> {
    /// The servers of the cells, in that order.
    pub(crate) fn servers(&self, cells: &[Cell]) -> Result<Vec<ServerSpec>, SpecError> {
        let mut servers: Vec<ServerSpec> = Vec::new();
        for cell in cells {
            if servers.iter().any(|server| server.name == cell.server) {
                continue;
            }
            let table = |name: &str| self.campaign.servers.iter().find(|(known, _)| known.get_ref() == name);
            let of_commit =
                commit_of(&cell.server).and_then(|(name, git_ref)| Some((table(name)?.1, git_ref)));
            servers.push(match (table(&cell.server), of_commit) {
                (Some((_, table)), _) => parse_table(&cell.server, table)?,
                (None, Some((table, git_ref))) => {
                    at_commit(parse_table(&cell.server, table)?, table, git_ref)?
                }
                (None, None) => ServerSpec {
                    name: cell.server.clone(),
                    // Its level was checked.
                    source: Source::from_name(&cell.server)
                        .unwrap_or_else(|| Source::Embedded(cell.server.clone())),
                    initdb: Vec::new(),
                },
            });
        }
        Ok(servers)
    }

    /// Rejects cells that require what their servers don't support.
    pub(crate) fn check_server_support(
        &self,
        cells: &[Cell],
        servers: &[ServerSpec],
    ) -> Result<(), SpecError> {
        for cell in cells {
            let Some(server) = servers.iter().find(|server| server.name == cell.server) else { continue };
            let Source::Dsn(dsn) = &server.source else {
                check_connections(cell, server)?;
                continue;
            };
            let table = self.campaign.servers.iter().find(|(name, _)| *name.get_ref() == cell.server);
            if !cell.settings.values.is_empty() && !dsn.can_change_settings {
                return Err(SpecError {
                    message: format!(
                        "the settings \"{}\" can't be set on the server \"{}\", which pgdyno does not own",
                        cell.settings.name, cell.server
                    ),
                    at: table.map(|(name, _)| name.span()),
                    help: Some(
                        "allow it by `allow_settings = true` (they are restored afterwards), or leave this combination \
                         out by `exclude`"
                            .to_owned(),
                    ),
                });
            }
            let what = match (cell.cache, &cell.pin.server) {
                (CacheState::Cold, _) => "`cache = [\"cold\"]` needs a restart",
                (_, Some(_)) => "pinning the server needs access to its processes",
                _ if cell.memory != MemoryLimit::NONE => {
                    "`memory` needs a server that pgdyno starts within its limit"
                }
                _ if !cell.disk.is_none() => "`disk` needs a server that pgdyno starts within its limit",
                _ => continue,
            };
            return Err(SpecError {
                message: format!("{what}, but pgdyno does not own the server \"{}\"", cell.server),
                at: table.map(|(name, _)| name.span()),
                help: Some("leave this combination out, by `exclude` or a separate `[[matrix]]`".to_owned()),
            });
        }
        Ok(())
    }
}

/// A server built from another commit than its table says.
fn at_commit(
    mut server: ServerSpec,
    table: &Spanned<spec::Server>,
    git_ref: &str,
) -> Result<ServerSpec, SpecError> {
    match &mut server.source {
        Source::Build(build) if build.git_ref.is_none() => {
            build.git_ref = Some(git_ref.to_owned());
            Ok(server)
        }
        _ => Err(SpecError::at(
            table,
            format!("there is no commit \"{git_ref}\" of this server"),
            "expected a git repository as its `source`, without `ref`",
        )),
    }
}

/// Default of `max_connections`.
const MAX_CONNECTIONS: u32 = 100;

/// Rejects a cell with more clients than its server admits, which also needs a connection for pgdyno's own queries.
fn check_connections(cell: &Cell, server: &ServerSpec) -> Result<(), SpecError> {
    const SETTING: &str = "max_connections";
    if server.initdb.iter().any(|option| option.contains(SETTING)) {
        return Ok(());
    }
    let set = cell.settings.values.iter().find(|(name, _)| name.eq_ignore_ascii_case(SETTING));
    let admitted = set.map_or(Ok(MAX_CONNECTIONS), |(_, value)| value.parse());
    let clients = cell.server_connections();
    match admitted {
        Ok(admitted) if clients >= admitted => Err(SpecError {
            message: format!(
                "{clients} clients of the workload \"{}\" can't connect: `{SETTING}` of the settings \"{}\" is \
                 {admitted}, and pgdyno's own queries need connections, too",
                cell.workload.name(),
                cell.settings.name
            ),
            at: None,
            help: Some(format!("set `{SETTING} = {}` in settings of these cells", clients + 20)),
        }),
        _ => Ok(()),
    }
}

/// Parses a server's table: one kind of source, and only the keys of that kind.
pub(super) fn parse_table(name: &str, table: &Spanned<spec::Server>) -> Result<ServerSpec, SpecError> {
    let given = table.get_ref();
    let only_with = |key: &str, other: &str, at: Option<std::ops::Range<usize>>, is_given: bool| match at {
        Some(at) if !is_given => Err(SpecError {
            message: format!("`{key}` requires `{other}`"),
            at: Some(at),
            help: Some("leave it out".to_owned()),
        }),
        _ => Ok(()),
    };
    let span = |given: &Option<Spanned<String>>| given.as_ref().map(Spanned::span);
    only_with("ref", "source", span(&given.git_ref), given.source.is_some())?;
    only_with("patch", "source", given.patch.as_ref().map(Spanned::span), given.source.is_some())?;
    only_with("build", "source", given.build.as_ref().map(Spanned::span), given.source.is_some())?;
    let allow = given.allow_settings.as_ref();
    only_with("allow_settings", "dsn", allow.map(Spanned::span), given.dsn.is_some())?;
    let initdb = given.initdb.as_ref();
    only_with("initdb", "version, bin or source", initdb.map(Spanned::span), given.dsn.is_none())?;

    let source = match (&given.version, &given.bin, &given.source, &given.dsn) {
        (Some(version), None, None, None) => Source::from_name(version.get_ref()).ok_or_else(|| {
            SpecError::at(
                version,
                format!("\"{}\" is not a PostgreSQL version", version.get_ref()),
                format!("expected {EXPECTED_SERVER}"),
            )
        })?,
        (None, Some(directory), None, None) => Source::Bin(PathBuf::from(directory.get_ref())),
        (None, None, Some(location), None) => {
            let build = given.build.as_ref().map(|build| build.get_ref().clone()).unwrap_or_default();
            Source::Build(Build {
                location: PathBuf::from(location.get_ref()),
                git_ref: given.git_ref.as_ref().map(|name| name.get_ref().clone()),
                system: build.system.as_ref().map(|system| word(system, "build system")).transpose()?,
                options: build.options,
                cflags: build.cflags,
                patches: given.patch.iter().flat_map(|patch| &patch.get_ref().0).map(PathBuf::from).collect(),
                sorted_functions: false,
            })
        }
        (None, None, None, Some(dsn)) if has_password(dsn.get_ref()) => {
            return Err(SpecError::at(
                dsn,
                "a password in a campaign's connection string is not accepted",
                "leave it out: the password file (~/.pgpass) and PGPASSWORD are used",
            ));
        }
        (None, None, None, Some(dsn)) => Source::Dsn(Dsn {
            conninfo: dsn.get_ref().clone(),
            can_change_settings: allow.is_some_and(|given| *given.get_ref()),
        }),
        _ => {
            return Err(SpecError::at(
                table,
                format!("the server \"{name}\" has no source, or several"),
                "expected exactly one of `version`, `bin`, `source` and `dsn`",
            ));
        }
    };
    let initdb = initdb.map(|given| given.get_ref().clone()).unwrap_or_default();
    Ok(ServerSpec { name: name.to_owned(), source, initdb })
}

/// Whether a connection string contains a password, as keyword or in a URI, or another secret.
fn has_password(conninfo: &str) -> bool {
    let text: String = conninfo.to_ascii_lowercase().split_whitespace().collect();
    let authority = text.split_once("://").map(|(_, rest)| rest.split(['/', '?']).next().unwrap_or_default());
    let user = authority.and_then(|authority| authority.rsplit_once('@')).map(|(user, _)| user);
    text.contains("password=") || user.is_some_and(|user| user.contains(':')) || !secrets(conninfo).is_empty()
}
