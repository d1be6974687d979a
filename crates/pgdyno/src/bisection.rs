//! Runs bisections: to the answer, and from a merge that was found on to its commits.

use std::collections::BTreeMap;

use analysis::bisection::{Bisection, BisectionState, bisection};
use analysis::overview::read_trials;
use clap::ValueEnum;
use host::git::RangeCommit;
use model::factor::Factor;
use model::machine::KernelSpec;
use model::plan::Plan;
use model::record::{Run, Trial};
use model::server::{Build, Source, commit_of};
use model::units::Rate;
use plaintext::figures::counted;
use report::bisect::{Document, text};
use runner::campaign_file::{new_basis, workloads_of};
use store::Store;

use crate::campaign_run::{CampaignRun, closing_lines, exit, says_all};
use crate::exit::Exit;
use crate::output::{command_line, note, print, print_json};
use crate::reading::Reading;

/// What the tag of a run begins with that searches the commits of a merge; the id of the run that found the merge follows.
const MERGE_TAG: &str = "merge-of-";

/// What is printed if none of a merge's commits changed what the merge did.
pub(crate) const MERGE_ITSELF: &str = "\nThe change is one of the merge itself: of its branch together with the commits that it was \
                                       merged into.\n";

/// Announces the search among the commits of a merge, between both answers if they are text.
pub(crate) fn announce_merge(merge: &str, commits: usize, format: BisectionFormat) -> anyhow::Result<()> {
    let commits = counted(commits, "commit");
    match format {
        BisectionFormat::Table => print(&format!("\n{merge} is a merge of {commits}. Among these:\n\n")),
        BisectionFormat::Json => {
            note(&format!("{merge} is a merge of {commits}: searching these\n"));
            Ok(())
        }
    }
}

/// A format of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BisectionFormat {
    /// Text for people
    Table,
    /// A versioned document with everything
    Json,
}

/// Runs the remaining sessions of a bisection, and prints its answer. If that is a merge, the commits that it brought are searched in
/// the same way, in a run of their own.
///
/// # Errors
/// As [`CampaignRun::measure`]; the store or the repository can't be read.
pub(crate) fn search(run: CampaignRun<'_>, store: &Store, format: BisectionFormat) -> anyhow::Result<Exit> {
    let mut documents = Vec::new();
    let ended = search_levels(run, store, format, &mut documents);
    if let (BisectionFormat::Json, [document]) = (format, documents.as_slice()) {
        // The terminal may have been closed, which interrupts the run.
        let printed = print_json(document);
        if !matches!(ended, Ok(Exit::Interrupted)) {
            printed?;
        }
    }
    ended
}

/// As [`search`], with the answer as a document at the end of `documents`.
fn search_levels(
    run: CampaignRun<'_>,
    store: &Store,
    format: BisectionFormat,
    documents: &mut Vec<Document>,
) -> anyhow::Result<Exit> {
    let outcome = run.measure(store);
    let answer = match &outcome {
        Err(error) if says_all(error) => Ok(None),
        _ => answer(run, store, format),
    };
    // The terminal may have been closed, which interrupts the run.
    let is_incomplete = outcome.as_ref().map_or(true, |outcome| outcome.interrupted);
    let answer = if is_incomplete { answer.unwrap_or_default() } else { answer? };
    documents.extend(answer.as_ref().map(Document::new));
    let outcome = outcome?;
    note(&closing_lines(&outcome, store.root(), false));
    if outcome.interrupted {
        return Ok(Exit::Interrupted);
    }
    let Some(answer) = answer else { return Ok(exit(&outcome)) };
    let mut ended = match answer.state {
        BisectionState::Found | BisectionState::NothingToFind => Exit::Ok,
        BisectionState::EndsOpen | BisectionState::Searching | BisectionState::NoVerdict => {
            Exit::UndecidedGate
        }
    };
    for merge in merges(&run.file.plan, &answer) {
        announce_merge(&merge.commit, merge.levels.len() - 1, format)?;
        let mut merged = Vec::new();
        let inner = search_merge(run, &merge, store, format, &mut merged);
        let is_of_merge = merged.last().is_some_and(Document::has_nothing_to_find);
        if is_of_merge && format == BisectionFormat::Table {
            print(MERGE_ITSELF)?;
        }
        if let Some(document) = documents.last_mut() {
            document.merges.append(&mut merged);
        }
        match inner? {
            Exit::Ok => {}
            other => ended = other,
        }
        if ended == Exit::Interrupted {
            break;
        }
    }
    Ok(ended)
}

/// A merge that was found.
struct Merge {
    /// Its name.
    commit: String,
    /// The factor of the commits.
    factor: Factor,
    /// The level before the merged branch, and those of its commits.
    levels: Vec<String>,
}

/// The merges among the changes that were found, except those that brought nothing which could have changed the programs.
fn merges(plan: &Plan, answer: &Bisection) -> Vec<Merge> {
    let mut merges = Vec::new();
    for found in answer.changes.iter().filter(|found| found.first == found.last) {
        let Some(level) = answer.levels.get(found.first) else { continue };
        let commits = commits_of_merge(plan, &level.name).unwrap_or_else(|error| {
            note(&format!("whether {} is a merge is not known: {error}\n", level.short));
            None
        });
        let Some((factor, mut commits)) = commits else { continue };
        commits.retain(|commit| commit.can_change_programs);
        // Before the @, all levels have the same name.
        if let (Some((name, _)), 2..) = (level.name.rsplit_once('@'), commits.len()) {
            let levels = commits.iter().map(|commit| format!("{name}@{}", commit.id)).collect();
            merges.push(Merge { commit: level.short.clone(), factor, levels });
        }
    }
    merges
}

/// The commits that a level brought, if it is a merge, and their factor.
fn commits_of_merge(plan: &Plan, level: &str) -> anyhow::Result<Option<(Factor, Vec<RangeCommit>)>> {
    let server = plan.servers.iter().find(|server| server.name == level);
    let kernel = plan.kernels.iter().find(|kernel| kernel.name == level);
    let source = server.map(|server| &server.source);
    let (factor, commits) = match (source, kernel.and_then(KernelSpec::commit)) {
        // Other servers of commits have names and tables of their own.
        (Some(Source::Build(Build { location, git_ref: Some(commit), .. })), _)
            if commit_of(level).is_some() =>
        {
            (Factor::Server, server::commits_of_merge(location, commit)?)
        }
        (_, Some((repository, commit))) => (Factor::Kernel, machine::commits_of_merge(repository, commit)?),
        _ => return Ok(None),
    };
    Ok(commits.map(|commits| (factor, commits)))
}

/// Searches the commits of a merge: in a new run, or in the one that an earlier command began.
fn search_merge(
    run: CampaignRun<'_>,
    merge: &Merge,
    store: &Store,
    format: BisectionFormat,
    documents: &mut Vec<Document>,
) -> anyhow::Result<Exit> {
    let tag = format!("{MERGE_TAG}{}", run.run.id);
    let name = format!("{}-{}", run.file.plan.campaign, merge.commit);
    let all = store.trials()?;
    let is_of_it = |trial: &&Trial| trial.run.campaign == name && trial.run.tags.contains(&tag);
    let begun = all.iter().filter(is_of_it).map(|trial| &trial.run).max_by(|a, b| a.id.cmp(&b.id));
    let known = workloads_of(all.iter().filter(|trial| trial.run.id == run.run.id));
    let basis = begun.map_or_else(new_basis, |begun| begun.basis().unwrap_or_else(new_basis));
    let file = run.file.with_levels(&name, merge.factor, &merge.levels, basis, &known)?;
    let (inner, trials) = match begun {
        Some(begun) => {
            (begun.clone(), all.iter().filter(|trial| trial.run.id == begun.id).cloned().collect())
        }
        None => (file.new_run(&[tag]), Vec::new()),
    };
    search_levels(CampaignRun { file: &file, run: &inner, trials: &trials, ..run }, store, format, documents)
}

/// The answer of a run so far; as a table, it is printed. None if the run is no bisection, or has no session.
fn answer(run: CampaignRun<'_>, store: &Store, format: BisectionFormat) -> anyhow::Result<Option<Bisection>> {
    let (plan, run) = (&run.file.plan, run.run);
    let reading = Reading::of(store)?;
    let trials: Vec<&Trial> = reading.trials().iter().filter(|trial| trial.run.id == run.id).collect();
    if trials.is_empty() {
        return Ok(None);
    }
    let mut contexts = BTreeMap::new();
    let view = read_trials(&reading, &trials, &mut contexts)?;
    // By this plan, which may have changed since the trials were run.
    let Some(bisection) = bisection(plan, &trials, &contexts, &|_| None) else { return Ok(None) };
    if format == BisectionFormat::Table {
        let mut facts = vec![("bisect", bisection.searched.clone()), ("load", load(plan))];
        facts.extend(view.environment.machine.map(|machine| ("machine", machine.replace(" · ", ", "))));
        facts.push(("measured by", measured_by(run, &trials)));
        print(&text(&bisection, &facts, &command_line(&[])))?;
    }
    Ok(Some(bisection))
}

/// The levels that all cells have.
fn load(plan: &Plan) -> String {
    let Some(first) = plan.cells.first() else { return String::new() };
    let mut load = vec![Factor::Workload, Factor::Scale, Factor::Clients, Factor::Protocol];
    if first.rate != Rate::MAX {
        load.push(Factor::Rate);
    }
    let load = load.iter().map(|factor| format!("{} {}", factor.name(), factor.level(first)));
    load.collect::<Vec<_>>().join(", ")
}

/// The release that measured it, and the day.
fn measured_by(run: &Run, trials: &[&Trial]) -> String {
    let day = trials.iter().filter_map(|trial| trial.started).min();
    let day = day.map(|at| format!(", {}", at.strftime("%Y-%m-%d"))).unwrap_or_default();
    format!("pgdyno {}{day}", run.pgdyno_version)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use model::spec::Campaign;

    use super::*;

    #[test]
    fn the_commits_of_a_merge_are_those_that_can_have_changed_the_kernel() {
        let directory = tempfile::tempdir().unwrap();
        let repository = directory.path();
        let git = |arguments: &[&str]| {
            let identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"];
            let mut git = Command::new("git");
            let output = git.arg("-C").arg(repository).args(identity).args(arguments).output().unwrap();
            assert!(output.status.success(), "{arguments:?}");
        };
        let id = |name: &str| {
            let output = Command::new("git").arg("-C").arg(repository).args(["rev-parse", name]).output();
            String::from_utf8(output.unwrap().stdout).unwrap()[..12].to_owned()
        };
        let commit = |file: &str| {
            fs::create_dir_all(repository.join(file).parent().unwrap()).unwrap();
            fs::write(repository.join(file), file).unwrap();
            git(&["add", "-A"]);
            git(&["commit", "-qm", file]);
        };
        git(&["init", "-q", "-b", "main"]);
        commit("mm/mmap.c");
        git(&["checkout", "-q", "-b", "topic"]);
        commit("kernel/fork.c");
        commit("Documentation/index.rst");
        git(&["checkout", "-q", "main"]);
        git(&["merge", "-q", "--no-ff", "-m", "merge", "topic"]);
        let label = |name: &str| format!("{}@{}", repository.display(), id(name));
        let text = format!(
            "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\nkernel = ['{}', '{}']\n",
            label("main~1"),
            label("main")
        );
        let plan = Plan::new(&Campaign::parse(&text).unwrap(), 1).unwrap();
        let (factor, commits) = commits_of_merge(&plan, &label("main")).unwrap().unwrap();
        let found: Vec<(&str, bool)> =
            commits.iter().map(|commit| (&*commit.id, commit.can_change_programs)).collect();
        let expected = [(&*id("main~1"), true), (&*id("topic~1"), true), (&*id("topic"), false)];
        assert_eq!((factor, &found[..]), (Factor::Kernel, &expected[..]));
        assert!(commits_of_merge(&plan, &label("main~1")).unwrap().is_none());
        assert!(commits_of_merge(&plan, "18").unwrap().is_none());
    }
}
