//! Checks of a plan before it runs: confounds known without a server, and features that this host does not support.

use std::collections::HashMap;

use collect::Perf;
use diagnose::{Confound, Facts, confounds};
use host::{Cache, Progress};
use model::cell::Cell;
use model::limits::Limits;
use model::plan::Plan;
use model::server::{ServerSpec, Source};
use model::version::{Major, VersionRequest};
use server::{Installation, Origin};

use crate::servers::build_facts;

/// The first major whose `initdb` enables data checksums by default.
const CHECKSUMS_BY_DEFAULT: Major = Major::new(18);

/// The confounds that are known from the cache and from PostgreSQL's defaults. Nothing is downloaded or started.
///
/// # Errors
/// The cache can't be read.
pub fn known_confounds(plan: &Plan, progress: &dyn Progress) -> Result<Vec<Confound>, server::Error> {
    // Without a cache, fewer facts are known.
    let cache = Cache::open().ok();
    let facts: HashMap<&str, Facts> = plan
        .servers
        .iter()
        .map(|server| Ok((server.name.as_str(), known_facts(cache.as_ref(), server, progress)?)))
        .collect::<Result<_, server::Error>>()?;
    Ok(confounds(plan, |cell| facts.get(cell.server.as_str())))
}

/// Reasons why parts of a plan can't run on this host, which may not be the one to measure on: limits and profiles.
pub fn unsupported(plan: &Plan) -> Vec<String> {
    let mut limits: Vec<Limits> =
        plan.cells.iter().map(Cell::limits).filter(|limits| !limits.is_none()).collect();
    limits.sort();
    limits.dedup();
    let cache = Cache::open().ok();
    let limits = cache.iter().flat_map(|cache| {
        limits
            .iter()
            .filter_map(|limits| server::check_limits(cache, limits).err())
            .map(|error| error.to_string())
    });
    let profile = plan.profile.as_ref().and_then(|profile| Perf::find(profile).err());
    limits.chain(profile.map(|error| error.to_string())).collect()
}

/// The facts of a server that may not exist yet: its build, if it is installed, and its data checksums, which `initdb`
/// decides on.
fn known_facts(
    cache: Option<&Cache>,
    server: &ServerSpec,
    progress: &dyn Progress,
) -> Result<Facts, server::Error> {
    let is_version = |known: &Installation, wanted: &str| {
        known.origin() == Origin::Embedded
            && wanted.parse::<VersionRequest>().is_ok_and(|wanted| wanted.allows(known.version()))
    };
    let installation = match (cache, &server.source) {
        (Some(cache), Source::Embedded(wanted)) => {
            server::installed(cache)?.into_iter().rfind(|known| is_version(known, wanted))
        }
        (Some(cache), Source::Bin(_)) => server::installation(cache, &server.source, progress).ok(),
        _ => None,
    };
    let major = match (&installation, &server.source) {
        (Some(installation), _) => Some(installation.version().major()),
        (None, Source::Embedded(wanted)) => wanted.parse::<VersionRequest>().ok().map(VersionRequest::major),
        (None, _) => None,
    };
    let mut facts = installation.as_ref().map(build_facts).unwrap_or_default();
    let has_option =
        |options: [&str; 2]| server.initdb.iter().any(|option| options.contains(&option.as_str()));
    let checksums = if has_option(["--data-checksums", "-k"]) {
        Some(true)
    } else if has_option(["--no-data-checksums", ""]) {
        Some(false)
    } else {
        major.map(|major| major >= CHECKSUMS_BY_DEFAULT)
    };
    if let Some(checksums) = checksums {
        let value = if checksums { "on" } else { "off" };
        facts.insert("setting data_checksums".to_owned(), value.to_owned());
    }
    Ok(facts)
}
