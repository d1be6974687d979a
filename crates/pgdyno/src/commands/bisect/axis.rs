//! The levels between both ends: commits, releases, settings or kernels.

use std::path::Path;

use host::git::RangeCommit;
use model::server::{Build, ServerSpec, Source};
use model::version::Version;
use runner::campaign_file::ab::Sides;
use runner::campaign_file::commits::repository_name;

use super::candidates::without_others;
use super::kernels::KernelsArgs;
use super::settings::SettingsArgs;
use crate::commands::ab::servers::{absolute, servers};
use crate::exit::Usage;

/// What is searched.
pub(super) struct Axis {
    /// The levels between the ends, the good one first.
    pub(super) sides: Sides,
    /// Kernels of the virtual machines in which they are measured; none for the machine itself.
    pub(super) kernels: Option<Vec<String>>,
}

/// What is searched between the ends.
pub(super) fn axis(
    ends: &[&str],
    repository: Option<&Path>,
    settings: &SettingsArgs,
    kernels: &KernelsArgs,
) -> Result<Axis, Usage> {
    if kernels.is_given() && !settings.differ() && (repository.is_none() || kernels.are_ends()) {
        let (sides, kernels) = kernels.sides(ends, repository)?;
        return Ok(Axis { sides, kernels: Some(kernels) });
    }
    if kernels.is_given() || kernels.is_named() {
        return Err(Usage(
            "error: kernels are found with one server and its settings (--set): --kernel is for --good-args, --bad-args, \
             --good-sysctl and --bad-sysctl"
                .to_owned(),
        ));
    }
    Ok(Axis { sides: sides(ends, repository, settings)?, kernels: None })
}

fn sides(ends: &[&str], repository: Option<&Path>, settings: &SettingsArgs) -> Result<Sides, Usage> {
    match (ends, repository) {
        ([server], None) if settings.differ() => {
            let server = servers(&[(*server).to_owned()], None, &[])?.remove(0);
            Ok(Sides::Settings(server, settings.levels()?))
        }
        _ if settings.differ() => Err(Usage(
            "error: the ends would differ in server and in settings: to find a setting, name one server; to find a commit or \
             release, use --set for settings of all servers"
                .to_owned(),
        )),
        ([good, bad], Some(repository)) => commits(&absolute(repository)?, good, bad).map(Sides::Servers),
        ([good, bad], None) => releases(good, bad).map(Sides::Servers),
        _ => Err(Usage(
            "error: expected two ends: GOOD and BAD, such as 16.0 16.9, or with --kernels 6.1 6.12, or one \
             server with --good-conf and --bad-conf"
                .to_owned(),
        )),
    }
}

/// The commits from the good one to the bad one, of first parents.
fn commits(repository: &Path, good: &str, bad: &str) -> Result<Vec<ServerSpec>, Usage> {
    let commits = server::commits_between(repository, good, bad).map_err(Usage::from_error)?;
    let commits = without_others(commits, [good, bad], "server", "documentation, tests or translations")?;
    let name = repository_name(repository);
    let server = |RangeCommit { id: commit, .. }: RangeCommit| {
        let git_ref = Some(commit.clone());
        let location = repository.to_owned();
        let build = Build {
            location,
            git_ref,
            system: None,
            options: Vec::new(),
            cflags: None,
            patches: Vec::new(),
            sorted_functions: false,
        };
        ServerSpec { name: format!("{name}@{commit}"), source: Source::Build(build), initdb: Vec::new() }
    };
    Ok(commits.into_iter().map(server).collect())
}

/// The releases from the good one to the bad one: minor releases of one major, or majors.
fn releases(good: &str, bad: &str) -> Result<Vec<ServerSpec>, Usage> {
    let version = |text: &str| {
        text.parse::<Version>().map_err(|_| {
            Usage(format!(
                "error: \"{text}\" is no release: expected one such as 16.4, or name the git repository of a commit: --repo DIR"
            ))
        })
    };
    let names: Vec<String> = match (version(good), version(bad)) {
        (Ok(from), Ok(to)) if from.major() == to.major() && from < to => {
            let known = server::known_releases();
            let between = known.into_iter().filter(|release| *release > from && *release < to);
            let between = between.map(|release| release.to_string());
            std::iter::once(good.to_owned()).chain(between).chain([bad.to_owned()]).collect()
        }
        (Ok(from), Ok(to)) if from.major() == to.major() => {
            return Err(Usage(format!("error: {good} is not older than {bad}: GOOD is the older end")));
        }
        _ => majors(good, bad)?,
    };
    let server = |name: String| {
        let source = Source::from_name(&name).unwrap_or_else(|| Source::Embedded(name.clone()));
        ServerSpec { source, name, initdb: Vec::new() }
    };
    Ok(names.into_iter().map(server).collect())
}

/// Both ends and the majors between them.
fn majors(good: &str, bad: &str) -> Result<Vec<String>, Usage> {
    let major = |text: &str| match Source::from_name(text) {
        Some(Source::Embedded(version)) => {
            Ok(version.parse::<model::version::VersionRequest>().map_err(Usage::from_error)?.major())
        }
        _ => Err(Usage(format!(
            "error: \"{text}\" is no release: expected one such as 16.4 or 16, or name the git repository of a commit: --repo DIR"
        ))),
    };
    let (from, to) = (major(good)?, major(bad)?);
    if from >= to {
        return Err(Usage(format!("error: {good} is not older than {bad}: GOOD is the older end")));
    }
    let between = server::known_majors().into_iter().filter(|known| *known > from && *known < to);
    let between = between.map(|major| major.to_string());
    Ok(std::iter::once(good.to_owned()).chain(between).chain([bad.to_owned()]).collect())
}
