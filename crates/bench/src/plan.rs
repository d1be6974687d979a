//! A plan: a request that has been checked and completed.

use std::path::PathBuf;
use std::time::Duration;

use driver::{Arrivals, Group, Load, Spacing, Verbosity};
use model::workload::Protocol;
use script::{Names, Script, Seeds, Slot, Value, Variables};

use crate::arrivals::{arrivals, random_spacing};
use crate::error::PlanError;
use crate::error_rules::error_policy;
use crate::objective::Objective;
use crate::request::Request;
use crate::source::Source;

/// A load, or a search for the highest rate, that is ready to run.
pub struct Plan {
    /// The load; for a search, the common part of its steps.
    pub(crate) load: Load,
    pub(crate) search: Option<SearchPlan>,
    pub(crate) setup: Option<Script>,
    pub(crate) teardown: Option<Script>,
    pub(crate) seed: u64,
    /// The variable that still needs the scale of the data, which only the server knows.
    pub(crate) unknown_scale: Option<Slot>,
    pub(crate) scale: Option<u32>,
    /// Whether the default script runs because none is named.
    pub(crate) default_script: bool,
    pub(crate) interval_log: Option<PathBuf>,
    /// Other numbers of threads to probe after the load.
    pub(crate) other_threads: Vec<u32>,
}

/// A search for the highest rate.
pub(crate) struct SearchPlan {
    pub(crate) objectives: Vec<Objective>,
    pub(crate) spacing: Spacing,
    /// Length of a step.
    pub(crate) step: Duration,
}

/// Default length of the measured window.
const DEFAULT_DURATION: Duration = Duration::from_secs(10);

/// Default length of a step of a search, and of its warm-up.
const DEFAULT_STEP: Duration = Duration::from_secs(5);
const DEFAULT_STEP_WARMUP: Duration = Duration::from_secs(1);

/// Maximum length of a load after the last arrival of a file. It ends with the last transaction.
const MAX_AFTER_LAST_ARRIVAL: Duration = Duration::from_secs(24 * 3600);

impl Plan {
    /// Checks and completes a request.
    ///
    /// # Errors
    /// The request contradicts itself, or a file can't be read.
    pub fn new(request: Request) -> Result<Self, PlanError> {
        let options = &request.scripts;
        let sources = Source::all(options)?;
        let mut names = Names::default();
        for define in &options.define {
            names.slot(&define.name).ok_or(PlanError::TooManyVariables)?;
        }
        let scripts = sources.iter().map(|source| source.parse(&mut names)).collect::<Result<Vec<_>, _>>()?;
        let mut script = |path: &Option<PathBuf>| match path {
            None => Ok(None),
            Some(path) => Source::read(path, 1)?.parse(&mut names).map(|parsed| Some(parsed.script)),
        };
        let (setup, teardown) = (script(&options.setup)?, script(&options.teardown)?);
        let Request { clients, threads, protocol, .. } = request;
        if threads > clients {
            return Err(PlanError::IdleThreads { threads, clients });
        }
        if protocol != Protocol::Simple {
            scripts.iter().try_for_each(|script| script.script.check_params())?;
        }
        let defined = |name: &str| options.define.iter().any(|define| define.name == name);
        let seeds = Seeds::draw(options.seed, clients as usize, threads as usize, defined("default_seed"));
        let variables = variables(&request, &names, &seeds)?;
        let needs_scale =
            options.scale.is_none() && !defined("scale") && sources.iter().any(|source| source.is_builtin);
        let unknown_scale = if needs_scale { names.find("scale") } else { None };

        let searches = !request.schedule.objectives.is_empty();
        let default_warmup = if searches { DEFAULT_STEP_WARMUP } else { Duration::ZERO };
        let warmup = request.warmup.unwrap_or(default_warmup);
        let arrivals = arrivals(&request.schedule, warmup)?;
        let length = length(&request, &arrivals);
        let load = Load {
            protocol,
            length,
            warmup,
            interval: request.interval,
            think: request.think,
            latency_limit: request.latency_limit,
            errors: error_policy(&request.errors),
            per_command: request.per_statement,
            verbosity: Verbosity::default(),
            engine: request.engine,
            ..Load::new(
                request.connection,
                Group {
                    client_id: names.find("client_id").filter(|_| !defined("client_id")),
                    arrivals,
                    reconnect: request.connect,
                    transactions: request.transactions,
                    ..Group::new(clients, scripts, variables)
                },
                seeds,
            )
        };
        Ok(Self {
            load,
            search: searches.then(|| SearchPlan {
                spacing: random_spacing(&request.schedule),
                objectives: Objective::with_errors(request.schedule.objectives),
                step: request.duration.unwrap_or(DEFAULT_STEP),
            }),
            setup,
            teardown,
            seed: options.seed,
            unknown_scale,
            scale: options.scale,
            default_script: options.named.is_empty()
                && options.builtin.is_empty()
                && options.files.is_empty(),
            interval_log: request.interval_log,
            other_threads: request.other_threads,
        })
    }
}

/// Variables with the values that are known before the load.
fn variables(request: &Request, names: &Names, seeds: &Seeds) -> Result<Variables, PlanError> {
    let options = &request.scripts;
    let mut variables = Variables::new(names);
    let automatic = [
        ("scale", Some(i64::from(options.scale.unwrap_or(1)))),
        ("random_seed", Some(options.seed as i64)),
        ("default_seed", seeds.default_seed),
    ];
    for (name, value) in automatic {
        if let (Some(slot), Some(value)) = (names.find(name), value) {
            variables.set(slot, Value::Int(value))?;
        }
    }
    for define in &options.define {
        if let Some(slot) = names.find(&define.name) {
            variables.set_text(slot, &define.value)?;
        }
    }
    Ok(variables)
}

/// Length of the measured window; none if a number of transactions ends it.
fn length(request: &Request, arrivals: &Arrivals) -> Option<Duration> {
    if request.transactions.is_some() {
        return None;
    }
    Some(request.duration.unwrap_or_else(|| match arrivals {
        Arrivals::Given(times) => times.last().copied().unwrap_or_default() + MAX_AFTER_LAST_ARRIVAL,
        _ if !request.schedule.stages.is_empty() => {
            request.schedule.stages.iter().map(|stage| stage.length).sum()
        }
        _ => DEFAULT_DURATION,
    }))
}

/// Length of a load's window, if it is known before.
pub(crate) fn planned_window(load: &Load) -> Option<Duration> {
    match (load.length, &load.main.arrivals) {
        (Some(length), Arrivals::Given(_)) if length >= MAX_AFTER_LAST_ARRIVAL => None,
        (length, _) => length,
    }
}
