//! Checks of a plan before it runs: confounds known without a server, and features that this host does not support.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use collect::Perf;
use diagnose::{Confound, Facts, confounds};
use host::{Cache, Progress};
use model::cell::Cell;
use model::dataset::DatasetSource;
use model::limits::Limits;
use model::machine::{Acceleration, KernelSpec};
use model::plan::{Order, Plan};
use model::server::{ServerSpec, Source};
use model::topology::Companion;
use model::version::{Major, VersionRequest};
use server::{Installation, Origin};

use crate::machines::without_profile;
use crate::servers::build_facts;
use crate::topology;

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

/// Reasons why parts of a plan can't run on this host, which may not be the one to measure on: limits, profiles, more
/// clients than open files, missing sources, and settings that an installed server does not have.
///
/// # Errors
/// The cache can't be read.
pub fn unsupported(plan: &Plan, progress: &dyn Progress) -> Result<Vec<String>, server::Error> {
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
    let has_here = plan.cells.iter().any(|cell| !cell.acceleration.is_virtual());
    let profile = plan.profile.as_ref().filter(|_| has_here).and_then(|profile| Perf::find(profile).err());
    let is_here = |cell: &&Cell| !cell.acceleration.is_virtual() && plan.load_hosts.is_none();
    let here = plan.cells.iter().filter(is_here);
    let files = here.max_by_key(|cell| cell.all_clients());
    let files = files.and_then(|cell| {
        let threads = cell.driver_threads(plan.run.processors.unwrap_or(1));
        driver::check_file_limit(cell.all_clients(), threads).err()
    });
    let mut reasons: Vec<String> = limits
        .chain(profile.map(|error| error.to_string()))
        .chain(files.map(|error| error.to_string()))
        .collect();
    if let Some(cache) = &cache {
        reasons.extend(unusable_sources(cache, plan, progress));
        reasons.extend(missing_templates(plan));
        reasons.extend(too_old(cache, plan, progress)?);
        reasons.extend(topologies(cache, plan, progress)?);
        reasons.extend(unknown_settings(cache, plan, progress)?);
    }
    Ok(reasons)
}

/// Why the trials of a plan with counted instructions will have no profile here, if it asks for one: a sentence.
pub fn missing_profile(plan: &Plan) -> Option<String> {
    let has_counted = plan.cells.iter().any(|cell| cell.acceleration == Acceleration::Icount);
    plan.profile
        .filter(|_| has_counted)
        .and_then(|_| Perf::for_guests().err())
        .map(|error| without_profile(&error))
}

/// The servers and kernels of a plan that have to be built first, a sentence each.
pub fn builds(plan: &Plan) -> Vec<String> {
    let Ok(cache) = Cache::open() else { return Vec::new() };
    let to_build = plan.servers.iter().filter_map(|server| match &server.source {
        Source::Build(build) if matches!(server::is_built(&cache, build), Ok(false)) => Some(format!(
            "the server \"{}\" is built first, from {}: that takes minutes, which are not part of the estimate",
            server.name,
            build.location.display()
        )),
        _ => None,
    });
    let kernels = kernels(plan).filter(|kernel| matches!(is_to_be_built(&cache, kernel), Ok(true)));
    let kernels = kernels.map(|kernel| {
        format!(
            "the kernel {} is built first: that takes minutes, which are not part of the estimate",
            kernel.name
        )
    });
    to_build.chain(kernels).collect()
}

/// The kernels of a plan that are made available before the first trial: a bisection has many more.
fn kernels(plan: &Plan) -> impl Iterator<Item = &KernelSpec> {
    plan.kernels.iter().filter(|_| plan.run.order != Order::Bisect)
}

/// Whether a kernel still has to be built from a commit.
fn is_to_be_built(cache: &Cache, kernel: &KernelSpec) -> Result<bool, machine::Error> {
    let label = kernel.path.as_deref().and_then(Path::to_str).unwrap_or_default();
    machine::is_to_be_built(cache, label, Path::new(""))
}

/// Sources of servers and kernels that can't be used here: missing directories, refs and tools.
fn unusable_sources(cache: &Cache, plan: &Plan, progress: &dyn Progress) -> Vec<String> {
    let error = |server: &ServerSpec| match &server.source {
        Source::Build(build) => server::is_built(cache, build).err(),
        Source::Bin(_) | Source::Installed(_) => server::installation(cache, &server.source, progress).err(),
        Source::Embedded(_) | Source::Dsn(_) => None,
    };
    let reason = |server: &ServerSpec| Some(format!("the server \"{}\": {}", server.name, error(server)?));
    let servers = plan.servers.iter().filter_map(reason);
    let kernels = kernels(plan).filter_map(|kernel| is_to_be_built(cache, kernel).err());
    servers.chain(kernels.map(|error| error.to_string())).collect()
}

/// Databases to be copied that running servers do not have; of a server that can't be reached now, nothing is known.
fn missing_templates(plan: &Plan) -> Vec<String> {
    let mut reasons = Vec::new();
    for cell in &plan.cells {
        let (Some(DatasetSource::Template(database)), Some(server)) = (plan.dataset(cell), plan.server(cell))
        else {
            continue;
        };
        let Source::Dsn(dsn) = &server.source else { continue };
        if let Err(error @ server::Error::NoDatabase { .. }) =
            server::check_template(&server.name, dsn, database)
        {
            reasons.push(error.to_string());
        }
    }
    reasons.dedup();
    reasons
}

/// Workloads that need a newer PostgreSQL than programs in place are, a sentence for each.
fn too_old(cache: &Cache, plan: &Plan, progress: &dyn Progress) -> Result<Vec<String>, server::Error> {
    let mut reasons = Vec::new();
    for cell in &plan.cells {
        let Some((minimum, server)) = cell.workload.minimum_version().zip(plan.server(cell)) else {
            continue;
        };
        let Some(installation) = existing(cache, server, progress)? else { continue };
        if installation.version().major() < minimum {
            reasons.push(format!(
                "the workload \"{}\" needs PostgreSQL {minimum} or newer, and the server \"{}\" is {}: leave this \
                 combination out, by `exclude`",
                cell.workload.name(),
                server.name,
                installation.version()
            ));
        }
    }
    reasons.dedup();
    Ok(reasons)
}

/// Topologies that can't run here: what they need is missing, or does not fit their servers or protocols.
fn topologies(cache: &Cache, plan: &Plan, progress: &dyn Progress) -> Result<Vec<String>, server::Error> {
    let mut reasons = Vec::new();
    for cell in &plan.cells {
        let installation =
            plan.server(cell).map(|server| existing(cache, server, progress)).transpose()?.flatten();
        let version = installation.as_ref().map(Installation::version);
        reasons.extend(topology::check(cell, version).err().map(|error| error.to_string()));
    }
    reasons.dedup();
    Ok(reasons)
}

/// Settings that servers in the cache or in place do not have, a sentence for each server and its settings.
fn unknown_settings(
    cache: &Cache,
    plan: &Plan,
    progress: &dyn Progress,
) -> Result<Vec<String>, server::Error> {
    let mut reasons = Vec::new();
    for server in &plan.servers {
        let Some(installation) = existing(cache, server, progress)? else { continue };
        let of_server = plan.cells.iter().filter(|cell| cell.server == server.name);
        let settings: BTreeSet<_> = of_server.map(|cell| &cell.settings).collect();
        for variant in settings.iter().filter(|variant| !variant.values.is_empty()) {
            let names = variant.values.keys().filter_map(|name| match Companion::of_setting(name) {
                Some((companion, own)) => companion.is_replica().then_some(own),
                None => Some(name.as_str()),
            });
            let unknown = installation.unknown_settings(names)?;
            if !unknown.is_empty() {
                reasons.push(format!(
                    "the settings \"{}\" have {}, which the server {} (PostgreSQL {}) does not know",
                    variant.name,
                    unknown.join(", "),
                    server.name,
                    installation.version()
                ));
            }
        }
    }
    Ok(reasons)
}

/// The programs of a server, if nothing needs to be downloaded or built.
fn existing(
    cache: &Cache,
    server: &ServerSpec,
    progress: &dyn Progress,
) -> Result<Option<Installation>, server::Error> {
    let is_version = |known: &Installation, wanted: &str| {
        known.origin() == Origin::Embedded
            && wanted.parse::<VersionRequest>().is_ok_and(|wanted| wanted.allows(known.version()))
    };
    Ok(match &server.source {
        Source::Embedded(wanted) => {
            server::installed(cache)?.into_iter().rfind(|known| is_version(known, wanted))
        }
        Source::Installed(_) | Source::Bin(_) => server::installation(cache, &server.source, progress).ok(),
        Source::Build(_) | Source::Dsn(_) => None,
    })
}

/// The facts of a server that may not exist yet: its build, if it is installed, and its data checksums, which `initdb`
/// decides on.
fn known_facts(
    cache: Option<&Cache>,
    server: &ServerSpec,
    progress: &dyn Progress,
) -> Result<Facts, server::Error> {
    let installation = cache.map(|cache| existing(cache, server, progress)).transpose()?.flatten();
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
