//! What was compared: versions, commits, flags and settings, for the text of the result.

use std::collections::BTreeMap;
use std::path::Path;

use host::Cache;
use model::factor::Factor;
use model::factor::pin::Processors;
use model::record::Trial;
use model::server::{Build, ServerSpec, Source};
use runner::campaign_file::ab::{Comparison, Sides};
use server::Installation;

use crate::progress::PreparationProgress;

/// Option for the digits of a commit.
const SHORT: &str = "--short=12";

/// A server with the origin of its programs, as it was before the run.
pub(super) struct Origin {
    server: ServerSpec,
    origin: String,
}

/// The origins of a comparison's servers.
pub(super) fn origins(comparison: &Comparison) -> Vec<Origin> {
    let origin = |server: &ServerSpec| Origin { server: server.clone(), origin: origin(&server.source) };
    comparison.servers().map(origin).collect()
}

/// A line for each server, for the settings that differ, for those that all servers have, and for the CPUs.
pub(super) fn facts(
    comparison: &Comparison,
    origins: &[Origin],
    cache: &Cache,
    trials: &[&Trial],
) -> Vec<(String, String)> {
    let (mut facts, mut all_flags) = (Vec::new(), Vec::new());
    for Origin { server, origin } in origins {
        let is_of_server = |trial: &&&Trial| Factor::Server.level(&trial.cell) == server.name;
        let trial = trials.iter().find(|trial| is_of_server(trial) && trial.server_version.is_some());
        let version = trial.and_then(|trial| trial.server_version.as_deref()).unwrap_or(&server.name);
        let identity = trial.and_then(|trial| trial.server_build.as_deref());
        let installation = identity.and_then(|identity| installation(cache, &server.source, identity));
        let of_server = installation.map(|installation| flags(&installation));
        all_flags.push(of_server.filter(|flags| !flags.is_empty()));
        facts.push((server.name.clone(), format!("PostgreSQL {version}, {origin}")));
    }
    if all_flags.iter().all(|flags| *flags == all_flags[0]) {
        all_flags.truncate(1);
        facts.extend(all_flags.pop().flatten().map(|flags| ("built with".to_owned(), flags)));
    }
    for ((_, text), flags) in facts.iter_mut().zip(all_flags) {
        *text += &flags.map(|flags| format!("; {flags}")).unwrap_or_default();
    }
    if let Sides::Settings(_, sides) = &comparison.sides {
        facts.extend(sides.iter().map(|(name, settings)| (name.clone(), in_words(settings))));
    }
    if !comparison.settings.is_empty() {
        facts.push(("settings".to_owned(), in_words(&comparison.settings)));
    }
    if !comparison.pin.is_none() {
        let Processors { driver, server, .. } = &comparison.pin;
        let [driver, server] = [driver, server].map(|list| list.as_deref().unwrap_or("all"));
        facts.push(("CPUs".to_owned(), format!("driver {driver}, servers {server}")));
    }
    facts
}

fn in_words(settings: &BTreeMap<String, String>) -> String {
    match settings.is_empty() {
        true => "default settings".to_owned(),
        false => {
            settings.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
        }
    }
}

/// Where the programs of a server come from.
fn origin(source: &Source) -> String {
    match source {
        Source::Embedded(_) => "downloaded".to_owned(),
        Source::Installed(name) => format!("the build {name}"),
        Source::Bin(_) => "programs in place".to_owned(),
        Source::Build(build) => {
            let patches = build.patches.iter().map(|patch| format!(" with {}", file_name(patch)));
            format!("built from {}{}", commit(build), patches.collect::<String>())
        }
        Source::Dsn(_) => "a running server".to_owned(),
    }
}

/// The commit of a source, or its name.
fn commit(build: &Build) -> String {
    let git = |arguments: &[&str]| host::git::read(&build.location, arguments, "").ok().flatten();
    let name = file_name(&build.location);
    match &build.git_ref {
        Some(git_ref) => {
            let commit = format!("{git_ref}^{{commit}}");
            let id = git(&["rev-parse", SHORT, "--verify", "--end-of-options", &commit]);
            id.map_or_else(|| git_ref.clone(), |id| format!("{git_ref}, commit {id}"))
        }
        None if build.location.join(".git").exists() => {
            let changes = git(&["status", "--porcelain"]).filter(|changes| !changes.is_empty());
            let changes = changes.map_or("", |_| " with uncommitted changes");
            let id = git(&["rev-parse", SHORT, "HEAD"]);
            id.map_or_else(|| name.clone(), |id| format!("{name}, commit {id}{changes}"))
        }
        None => name,
    }
}

/// The programs that a trial ran with; none if they are gone.
fn installation(cache: &Cache, source: &Source, identity: &str) -> Option<Installation> {
    match source {
        Source::Bin(_) => server::installation(cache, source, &PreparationProgress::new()).ok(),
        _ => server::find(cache, identity).ok().flatten(),
    }
}

/// Compiler and flags; warnings change no code.
fn flags(installation: &Installation) -> String {
    let flags = installation.build_flags();
    let chosen = installation.build().map(|build| build.cflags.clone()).or(flags.cflags).unwrap_or_default();
    let words: Vec<&str> = chosen.split_whitespace().filter(|word| !word.starts_with("-W")).collect();
    let parts = [flags.cc.unwrap_or_default(), words.join(" ")];
    parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
