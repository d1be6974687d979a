//! Whether a cell's topology can run here, as far as its programs decide that.

use model::cell::Cell;
use model::topology::Companion;
use model::version::Version;

/// Checks that a cell's topology fits its server's version, that its pooler is installed, and that clients can use their protocol
/// through it.
///
/// # Errors
/// It can't run, with the reason.
pub(crate) fn check(cell: &Cell, version: Option<Version>) -> Result<(), server::Error> {
    let Some(companion) = cell.topology.companion() else { return Ok(()) };
    if let Some((minimum, version)) = cell.topology.minimum_version().zip(version)
        && version.major() < minimum
    {
        return Err(server::Error::Companion {
            companion: companion.as_str().to_owned(),
            why: format!(
                "of the topology `{}` needs PostgreSQL {minimum} or newer, and the server \"{}\" is {version}: leave this \
                 combination out, by `exclude`",
                cell.topology.as_str(),
                cell.server
            ),
        });
    }
    if companion == Companion::Pgbouncer {
        server::pgbouncer()?.check_protocol(cell.topology, cell.protocol)?;
    }
    Ok(())
}
