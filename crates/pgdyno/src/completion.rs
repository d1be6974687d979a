//! Candidates for completing arguments in a shell: the workloads that are bundled, the servers in the cache, and the runs
//! and trials of the store.
//!
//! A shell runs pgdyno with the variable [`VARIABLE`] for each completion. What can't be read has no candidates: an error
//! would be printed into the command line that the user types.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use host::Cache;
use model::factor::Factor;
use model::record::Trial;
use server::Installation;
use store::Store;

/// Environment variable that asks for candidates; its value is the shell.
pub(crate) const VARIABLE: &str = "PGDYNO_COMPLETE";

/// Prints the candidates and exits, if a shell asks for them.
pub(crate) fn answer_shell(command: fn() -> clap::Command) {
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

/// Campaign files.
pub(crate) fn campaign_files() -> ArgValueCompleter {
    let is_campaign = |path: &Path| path.extension().is_some_and(|extension| extension == "toml");
    ArgValueCompleter::new(PathCompleter::file().filter(is_campaign))
}

/// Overrides of a campaign, `FACTOR=LEVEL,…`.
pub(crate) fn overrides() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let levels = |name: &str| match name.parse() {
            Ok(Factor::Server) => server_names(),
            Ok(Factor::Workload) => workload_names(),
            _ => Vec::new(),
        };
        let Some((name, before, level)) = current.to_str().and_then(last_level) else {
            return matching(current, Factor::ALL.iter().map(|factor| format!("{}=", factor.name())));
        };
        matching(OsStr::new(level), levels(name)).into_iter().map(|found| found.add_prefix(before)).collect()
    })
}

/// The factor of an override, the text before its last level, and that level.
fn last_level(text: &str) -> Option<(&str, &str, &str)> {
    let (name, levels) = text.split_once('=')?;
    let last = levels.rsplit(',').next().unwrap_or(levels);
    Some((name, &text[..text.len() - last.len()], last))
}

/// Built-in scripts and bundled workloads.
pub(crate) fn workloads() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| matching(current, workload_names()))
}

/// Servers: majors, and what is installed.
pub(crate) fn servers() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| matching(current, server_names()))
}

/// Servers and paths.
pub(crate) fn servers_and_paths() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut candidates = matching(current, server_names());
        candidates.extend(PathCompleter::any().complete(current));
        candidates
    })
}

/// Ids of runs.
pub(crate) fn runs() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        newest_first(current, &stored_trials(), |trial| trial.run.id.clone())
    })
}

/// Names of campaigns that have run.
pub(crate) fn campaigns() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        matching(current, stored_trials().into_iter().map(|trial| trial.run.campaign))
    })
}

/// Ids of trials.
pub(crate) fn trials() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        newest_first(current, &stored_trials(), |trial| trial.id.clone())
    })
}

/// Selectors of trials: their last term.
pub(crate) fn selectors() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let Some(text) = current.to_str() else { return Vec::new() };
        let term = text.rsplit(',').next().unwrap_or(text);
        let before = &text[..text.len() - term.len()];
        let trials = stored_trials();
        let mut candidates = term_candidates(term, &trials);
        // Ids can't be combined with other terms; without a first character, hundreds of them would hide those.
        if before.is_empty() && !term.is_empty() {
            candidates.extend(newest_first(current, &trials, |trial| trial.id.clone()));
        }
        candidates.into_iter().map(|candidate| candidate.add_prefix(before)).collect()
    })
}

fn term_candidates(term: &str, trials: &[Trial]) -> Vec<CompletionCandidate> {
    let cells = || trials.iter().map(|trial| &trial.cell);
    let current = OsStr::new(term);
    if let Some((name, _)) = term.split_once('=') {
        let Ok(factor) = name.parse::<Factor>() else { return Vec::new() };
        return matching(current, factor.levels(cells()).into_iter().map(|level| format!("{name}={level}")));
    }
    match term.split_once(':') {
        None => {
            let factors = Factor::varied(cells()).into_iter().map(|factor| format!("{}=", factor.name()));
            matching(current, factors.chain(["run:", "campaign:", "tag:", "latest"].map(str::to_owned)))
        }
        Some(("run", _)) => newest_first(current, trials, |trial| format!("run:{}", trial.run.id)),
        Some(("campaign", _)) => {
            matching(current, trials.iter().map(|trial| format!("campaign:{}", trial.run.campaign)))
        }
        Some(("tag", _)) => {
            matching(current, trials.iter().flat_map(|trial| &trial.run.tags).map(|tag| format!("tag:{tag}")))
        }
        Some(_) => Vec::new(),
    }
}

/// The candidates that begin with what was typed, each once.
fn matching(current: &OsStr, candidates: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    let mut found: Vec<String> = Vec::new();
    for candidate in candidates {
        if begins_with(&candidate, current) && !found.contains(&candidate) {
            found.push(candidate);
        }
    }
    found.into_iter().map(CompletionCandidate::new).collect()
}

/// The ids that begin with what was typed, each once, the newest first, with their campaign and its start.
fn newest_first(
    current: &OsStr,
    trials: &[Trial],
    id: impl Fn(&Trial) -> String,
) -> Vec<CompletionCandidate> {
    let mut found: BTreeMap<String, &Trial> = BTreeMap::new();
    for trial in trials {
        found.entry(id(trial)).or_insert(trial);
    }
    let newest = found.into_iter().rev().filter(|(id, _)| begins_with(id, current));
    let candidates = newest.enumerate().map(|(order, (id, trial))| {
        let started = trial.started.map(|started| format!(", {}", started.strftime("%F %R")));
        let help = format!("{}{}", trial.run.campaign, started.unwrap_or_default());
        CompletionCandidate::new(id).help(Some(help.into())).display_order(Some(order))
    });
    candidates.collect()
}

/// Whether a candidate continues what was typed; ids are found by lower case, too.
fn begins_with(candidate: &str, current: &OsStr) -> bool {
    let typed = current.as_encoded_bytes();
    candidate.as_bytes().get(..typed.len()).is_some_and(|start| start.eq_ignore_ascii_case(typed))
}

fn workload_names() -> Vec<String> {
    let builtin = script::builtins().iter().map(|script| script.name);
    builtin.chain(workload::shipped()).map(str::to_owned).collect()
}

fn server_names() -> Vec<String> {
    let name = |installation: &Installation| match installation.build() {
        Some(_) => installation.identity().to_owned(),
        None => installation.version().to_string(),
    };
    let majors = server::known_majors().into_iter().map(|major| major.to_string());
    let installed = Cache::open().ok().and_then(|cache| server::installed(&cache).ok()).unwrap_or_default();
    majors.chain(installed.iter().map(name)).collect()
}

/// Trials of the store that the command line or the environment names.
fn stored_trials() -> Vec<Trial> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let root = store_option(&words)
        .or_else(|| std::env::var_os("PGDYNO_STORE"))
        .map_or_else(|| PathBuf::from(".pgdyno"), PathBuf::from);
    Store::existing(&root).and_then(|store| store.trials()).unwrap_or_default()
}

/// The value of `--store` in a command line.
fn store_option(words: &[OsString]) -> Option<OsString> {
    let separate = words.windows(2).find(|pair| pair[0] == "--store").map(|pair| pair[1].clone());
    let attached = words.iter().find_map(|word| word.to_str()?.strip_prefix("--store=").map(OsString::from));
    separate.or(attached)
}
