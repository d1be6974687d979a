//! The context of a trial: its machine, settings, kernel configuration, profiles, spans and commits, read from the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use diagnose::KernelOptions;
use model::cell::RecordedCell;
use model::commit_log::{self, COMMIT_LOG, COMMITS_LOG, CommitText, KERNEL_COMMIT_LOG};
use model::merit::Merit;
use model::record::{Environment, Log, Setting, Trial};
use model::trace::PlayedStatement;
use store::{Part, StoreReader};

use crate::metric::{BlockRates, ScriptSummary, script_summaries, scripts};
use crate::profile::{Kind, TrialProfile};
use crate::spans::{Spans, spans};

/// Context of a trial: what its bundle has in addition to its figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrialContext {
    /// The machine.
    pub environment: Environment,
    /// The server's settings, usually shared with other trials.
    pub settings: Arc<Vec<Setting>>,
    /// Options of its kernel; `None` if unknown, or if all trials have the same.
    pub kernel_options: Option<Arc<KernelOptions>>,
    /// Its profiles.
    pub profiles: Vec<TrialProfile>,
    /// Its transactions, if the workload stores them.
    pub spans: Option<Spans>,
    /// Its rates of blocks, if they are its figure of merit.
    pub blocks: Option<BlockRates>,
    /// Results of each script, if its workload has several.
    pub scripts: Vec<ScriptSummary>,
    /// What became of the statements of its trace, if it plays one.
    pub played: Vec<PlayedStatement>,
    /// The commit that its server was built from; `None` unless it was built from a git ref, and in older bundles.
    pub commit: Option<CommitText>,
    /// The commit that its kernel was built from; `None` unless it was.
    pub kernel_commit: Option<CommitText>,
    /// Subjects of commits by their names: those of a bisection are in one of its bundles.
    pub subjects: BTreeMap<String, String>,
}

/// Reads the contexts of these trials, by id. Trials whose context can't be read are [left out](StoreReader::left_out);
/// imported trials have none.
pub fn contexts(reader: &StoreReader, trials: &[&Trial]) -> BTreeMap<String, TrialContext> {
    let measured = trials.iter().filter(|trial| trial.imported.is_none());
    measured.filter_map(|trial| Some((trial.id.clone(), context(reader, trial)?))).collect()
}

/// Whether figures of the trials of a cell are not in their heads.
pub fn has_figures_beyond_head(cell: &RecordedCell) -> bool {
    Merit::of(cell) == Merit::Blocks || !scripts(cell).is_empty()
}

fn context(reader: &StoreReader, trial: &Trial) -> Option<TrialContext> {
    let store::StoredContext { environment, settings, has_spans, commit_logs } = reader.context(&trial.id)?;
    let mut context = TrialContext { environment, settings, ..TrialContext::default() };
    for Log { name, text } in &commit_logs {
        match name.as_str() {
            COMMIT_LOG => context.commit = Some(CommitText::parse(text)),
            KERNEL_COMMIT_LOG => context.kernel_commit = Some(CommitText::parse(text)),
            COMMITS_LOG => context.subjects = commit_log::subjects(text).map(owned).collect(),
            _ => {}
        }
    }
    // Loading parts of bundles is slow, and most trials have none of these.
    if has_spans {
        context.spans = spans(&reader.load_parts(&trial.id, &[Part::Spans, Part::Metrics])?);
    }
    if Merit::of(&trial.cell) == Merit::Blocks {
        context.blocks =
            Some(BlockRates::new(&reader.load_parts(&trial.id, &[Part::Series, Part::Metrics])?));
    }
    if !scripts(&trial.cell).is_empty() {
        context.scripts = script_summaries(&reader.load_parts(&trial.id, &[Part::Series, Part::Latency])?);
    }
    if trial.cell.workload.known().is_some_and(|workload| workload.trace().is_some()) {
        context.played = reader.load_parts(&trial.id, &[Part::Played])?.played;
    }
    if trial.profile.is_some() {
        let record = reader.load_parts(&trial.id, &[Part::Stacks, Part::Series])?;
        context.profiles =
            Kind::ALL.iter().filter_map(|kind| TrialProfile::from_record(&record, *kind)).collect();
    }
    Some(context)
}

fn owned((name, subject): (&str, &str)) -> (String, String) {
    (name.to_owned(), subject.to_owned())
}

/// Adds the kernel options to each context, unless all are the same: each configuration is read once, from the first
/// bundle that has it. Contexts of trials that can't be read are removed.
pub fn read_kernel_options(reader: &StoreReader, contexts: &mut BTreeMap<String, TrialContext>) {
    let config =
        |context: &TrialContext| Some(context.environment.kernel_facts.config.as_ref()?.sha256.clone());
    let configs: BTreeSet<String> = contexts.values().filter_map(config).collect();
    if configs.len() < 2 {
        return;
    }
    let mut options: BTreeMap<String, Option<Arc<KernelOptions>>> = BTreeMap::new();
    for (id, context) in &*contexts {
        if let Some(config) = config(context).filter(|config| !options.contains_key(config))
            && let Some(read) = kernel_options(reader, id)
        {
            options.insert(config, read.map(Arc::new));
        }
    }
    contexts.retain(|id, _| !reader.is_left_out(id));
    for context in contexts.values_mut() {
        context.kernel_options = config(context).and_then(|config| options.get(&config)?.clone());
    }
}

/// Kernel options of a trial; the inner `None` if its bundle does not have them.
pub(crate) fn kernel_options(reader: &StoreReader, id: &str) -> Option<Option<KernelOptions>> {
    Some(reader.log(id, "kernel-config")?.map(|text| KernelOptions::parse(&text)))
}
