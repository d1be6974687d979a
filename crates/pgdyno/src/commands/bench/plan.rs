//! What the command line comes to: checked, complete, and nothing of it written in two ways.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use driver::{
    Arrivals, Engine, ErrorPolicy, Group, Load, OnError, Rate, Spacing, Stage, Verbosity, WeightedScript,
};
use model::workload::Protocol;
use script::{Names, Script, Seeds, Slot, Value, Variables};

use super::BenchArgs;
use super::args::{ArrivalArgs, EngineName, ErrorArgs, ProtocolName, ScriptArgs};
use super::objective::Objective;
use super::quantity::Weighted;
use crate::exit::Usage;

/// What is to be run.
pub(super) struct Plan {
    /// The load; of a search what its steps have in common.
    pub(super) load: Load,
    pub(super) objectives: Vec<Objective>,
    pub(super) setup: Option<Script>,
    pub(super) teardown: Option<Script>,
    pub(super) seed: u64,
    /// The variable that still needs the scale of the data, which only the server knows.
    pub(super) unknown_scale: Option<Slot>,
    pub(super) scale: Option<u32>,
    /// Whether nobody said what to run.
    pub(super) default_script: bool,
}

/// Length of the measured window, where nothing is said.
const DURATION: Duration = Duration::from_secs(10);

/// The same of a step of a search, and its warm-up.
const STEP: Duration = Duration::from_secs(5);
const STEP_WARMUP: Duration = Duration::from_secs(1);

/// How long a load over given arrivals may go on after the last one. It ends with the last transaction.
const AFTER_LAST_ARRIVAL: Duration = Duration::from_secs(24 * 3600);

/// What an error of the script itself, such as a misspelt table, begins with.
const SYNTAX_OR_ACCESS: &str = "42";

impl Plan {
    /// # Errors
    /// [`Usage`]: what is asked for does not make sense, or a file cannot be read.
    pub(super) fn of(args: &BenchArgs) -> Result<Self, Usage> {
        let connection = args.connection.resolve()?;
        let scripts = &args.scripts;
        let sources = sources(scripts)?;
        let mut names = Names::default();
        for define in &scripts.define {
            if names.slot(&define.name).is_none() {
                return Err(usage("there are too many variables"));
            }
        }
        let parsed = sources.iter().map(|source| source.parse(&mut names)).collect::<Result<Vec<_>, _>>()?;
        let mut once = |path: &Option<PathBuf>| match path {
            None => Ok(None),
            Some(path) => Source::read(path, 1)?.parse(&mut names).map(|parsed| Some(parsed.script)),
        };
        let (setup, teardown) = (once(&scripts.setup)?, once(&scripts.teardown)?);

        let (clients, threads) = (args.load.clients, args.load.threads);
        if threads > clients {
            return Err(usage(&format!(
                "{threads} threads have no work with {clients} clients: use fewer, by -j"
            )));
        }
        let protocol = protocol(args.load.protocol);
        if protocol != Protocol::Simple {
            for script in &parsed {
                script.script.check_params().map_err(|error| usage(&error.to_string()))?;
            }
        }
        let defined = |name: &str| scripts.define.iter().any(|define| define.name == name);
        let seed = scripts.seed.unwrap_or_else(drawn_seed);
        let seeds = Seeds::draw(seed, clients as usize, threads as usize, defined("default_seed"));
        let mut variables = Variables::new(&names);
        let known = [
            ("scale", Some(i64::from(scripts.scale.unwrap_or(1)))),
            ("random_seed", Some(seed as i64)),
            ("default_seed", seeds.default_seed),
        ];
        for (name, value) in known {
            if let (Some(slot), Some(value)) = (names.find(name), value) {
                variables.set(slot, Value::Int(value)).map_err(|error| usage(&error.to_string()))?;
            }
        }
        for define in &scripts.define {
            if let Some(slot) = names.find(&define.name) {
                variables.set_text(slot, &define.value).map_err(|error| usage(&error.to_string()))?;
            }
        }
        let asks_scale =
            scripts.scale.is_none() && !defined("scale") && sources.iter().any(|source| source.builtin);
        let unknown_scale = if asks_scale { names.find("scale") } else { None };

        let searches = !args.arrivals.find_max.is_empty();
        let warmup = match (args.load.warmup, searches) {
            (Some(warmup), _) => warmup,
            (None, true) => STEP_WARMUP,
            (None, false) => Duration::ZERO,
        };
        let arrivals = arrivals(&args.arrivals, warmup)?;
        let length = match (args.load.transactions, args.load.duration) {
            (Some(_), _) => None,
            (None, Some(duration)) => Some(duration),
            (None, None) => Some(match &arrivals {
                Arrivals::Given(times) => times.last().copied().unwrap_or_default() + AFTER_LAST_ARRIVAL,
                _ if !args.arrivals.stage.is_empty() => {
                    args.arrivals.stage.iter().map(|stage| stage.length).sum()
                }
                _ if searches => STEP,
                _ => DURATION,
            }),
        };
        let load = Load {
            main: Group {
                client_id: names.find("client_id").filter(|_| !defined("client_id")),
                arrivals,
                reconnect: args.load.connect,
                transactions: args.load.transactions,
                ..Group::new(clients, parsed, variables)
            },
            beside: Vec::new(),
            connection,
            protocol,
            threads,
            seeds,
            length,
            warmup,
            interval: args.output.interval,
            drain: None,
            think: args.load.think,
            latency_limit: args.errors.latency_limit,
            errors: errors(&args.errors),
            per_command: args.output.per_statement,
            log: None,
            verbosity: Verbosity::default(),
            engine: match args.load.engine {
                EngineName::Auto => Engine::Auto,
                EngineName::Epoll => Engine::Epoll,
                EngineName::Uring => Engine::Uring,
            },
        };
        Ok(Self {
            load,
            objectives: args.arrivals.find_max.clone(),
            setup,
            teardown,
            seed,
            unknown_scale,
            scale: scripts.scale,
            default_script: scripts.scripts.is_empty()
                && scripts.builtin.is_empty()
                && scripts.file.is_empty(),
        })
    }
}

/// Length of a load's window, where it is known before.
pub(super) fn duration(load: &Load) -> Option<Duration> {
    match (load.length, &load.main.arrivals) {
        (Some(time), Arrivals::Given(_)) if time >= AFTER_LAST_ARRIVAL => None,
        (length, _) => length,
    }
}

fn usage(what: &str) -> Usage {
    Usage(format!("error: {what}"))
}

/// A script's text, and where it comes from.
struct Source {
    name: String,
    text: String,
    weight: u64,
    builtin: bool,
}

/// The scripts, in the order: named, built-in, files.
fn sources(args: &ScriptArgs) -> Result<Vec<Source>, Usage> {
    let named = args.scripts.iter().map(named);
    let builtins = args.builtin.iter().map(|builtin| Source::builtin(&builtin.name, builtin.weight));
    let files = args.file.iter().map(|file| Source::read(Path::new(&file.name), file.weight));
    let sources = named.chain(builtins).chain(files).collect::<Result<Vec<_>, _>>()?;
    if sources.is_empty() {
        return Ok(vec![Source::builtin("tpcb-like", 1)?]);
    }
    if sources.iter().all(|source| source.weight == 0) {
        return Err(usage("every script has the weight 0: none would ever be chosen"));
    }
    Ok(sources)
}

/// A file, or else a built-in script.
fn named(script: &Weighted) -> Result<Source, Usage> {
    let path = Path::new(&script.name);
    if path.exists() || script.name == "-" {
        return Source::read(path, script.weight);
    }
    Source::builtin(&script.name, script.weight).map_err(|_| {
        usage(&format!(
            "there is no script \"{name}\": neither a file, nor one of the built-in tpcb-like, simple-update and \
             select-only; a database is given by -d {name}",
            name = script.name
        ))
    })
}

impl Source {
    fn builtin(name: &str, weight: u64) -> Result<Self, Usage> {
        let builtin = script::builtin_by_prefix(name).map_err(|error| usage(&error.to_string()))?;
        Ok(Self { name: builtin.name.to_owned(), text: builtin.text.to_owned(), weight, builtin: true })
    }

    fn read(path: &Path, weight: u64) -> Result<Self, Usage> {
        let standard = path.as_os_str() == "-";
        let text = match standard {
            true => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).map(|_| text)
            }
            false => std::fs::read_to_string(path),
        };
        let text =
            text.map_err(|error| usage(&format!("the script {} can't be read: {error}", path.display())))?;
        Ok(Self { name: path.display().to_string(), text, weight, builtin: false })
    }

    fn parse(&self, names: &mut Names) -> Result<WeightedScript, Usage> {
        let script =
            Script::parse(&self.name, &self.text, names).map_err(|error| usage(&error.to_string()))?;
        Ok(WeightedScript { script, weight: self.weight })
    }
}

/// A seed that nobody chose: short enough to be copied by hand.
fn drawn_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64 ^ u64::from(std::process::id())) % 1_000_000_000
}

fn protocol(name: ProtocolName) -> Protocol {
    match name {
        ProtocolName::Simple => Protocol::Simple,
        ProtocolName::Extended => Protocol::Extended,
        ProtocolName::Prepared => Protocol::Prepared,
    }
}

/// The first rules are those that nobody gave; of several for the same state the last one counts.
fn errors(args: &ErrorArgs) -> ErrorPolicy {
    let rule = |state: &str, action| (state.to_owned(), action);
    let mut rules = vec![
        rule("40001", OnError::Retry),
        rule("40P01", OnError::Retry),
        rule(SYNTAX_OR_ACCESS, OnError::Abort),
    ];
    let mut otherwise = OnError::Count;
    for given in &args.on_error {
        if given.sqlstate.is_empty() {
            otherwise = given.action;
            // All others are really all: of the rules that nobody gave, the one that ends clients has to go.
            rules.retain(|rule| *rule != (SYNTAX_OR_ACCESS.to_owned(), OnError::Abort));
        }
    }
    let given = args.on_error.iter().filter(|rule| !rule.sqlstate.is_empty());
    for given in given {
        // A class that is given is meant whole.
        rules.retain(|(state, _)| {
            !state.starts_with(&given.sqlstate) || args.on_error.iter().any(|r| r.sqlstate == *state)
        });
        rules.push((given.sqlstate.clone(), given.action));
    }
    ErrorPolicy {
        rules,
        otherwise,
        max_tries: (args.max_tries > 0).then_some(args.max_tries),
        back_off: args.back_off,
        reconnect: args.reconnect,
        exit_on_abort: false,
    }
}

fn arrivals(args: &ArrivalArgs, warmup: Duration) -> Result<Arrivals, Usage> {
    let open = args.rate.is_some() || !args.stage.is_empty() || !args.find_max.is_empty();
    let spacing = match args.arrivals.as_deref() {
        None => Spacing::Poisson,
        Some("poisson" | "uniform") if !open => {
            return Err(usage(
                "--arrivals spaces the transactions of a rate: give one by --rate, --stage or --find-max",
            ));
        }
        Some("poisson") => Spacing::Poisson,
        Some("uniform") => Spacing::Uniform,
        Some(other) => {
            let Some(path) = other.strip_prefix("file:") else {
                return Err(usage(&format!(
                    "`{other}` is not a way to space arrivals: expected poisson, uniform or file:PATH"
                )));
            };
            if open {
                return Err(usage(
                    "the arrivals of a file have no other rate: drop --rate, --stage or --find-max",
                ));
            }
            if !warmup.is_zero() {
                return Err(usage("the arrivals of a file begin at once: drop --warmup"));
            }
            return given(Path::new(path)).map(Arrivals::Given);
        }
    };
    if let Some(rate) = args.rate {
        return Ok(Arrivals::Rate(Rate::constant(rate, spacing)));
    }
    let Some(first) = args.stage.first() else { return Ok(Arrivals::Closed) };
    if args.stage.iter().all(|stage| stage.from == 0.0 && stage.to == 0.0) {
        return Err(usage("the rate of every stage is 0: nothing would ever begin"));
    }
    // The schedule belongs to the window; the warm-up has the rate with which it begins.
    let warm = Stage { length: warmup, from: first.from, to: first.from };
    let warm = (!warmup.is_zero()).then_some(warm);
    let stages = warm.into_iter().chain(args.stage.iter().copied()).collect();
    Ok(Arrivals::Rate(Rate { stages, spacing }))
}

/// Reads the times of arrivals.
fn given(path: &Path) -> Result<Arc<[Duration]>, Usage> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| usage(&format!("the arrivals {shown} can't be read: {error}")))?;
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    let mut times = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let time = line.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let Some(time) = time else {
            return Err(usage(&format!(
                "{shown}:{number}: `{line}` is no time: expected seconds after the start"
            )));
        };
        if times.last().is_some_and(|last| time < *last) {
            return Err(usage(&format!(
                "{shown}:{number}: `{line}` is before the arrival of the line above"
            )));
        }
        times.push(time);
    }
    if times.is_empty() {
        return Err(usage(&format!("there are no arrivals in {shown}")));
    }
    Ok(times.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(rules: &[&str]) -> ErrorPolicy {
        let on_error = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        let back_off = Duration::ZERO;
        errors(&ErrorArgs { on_error, max_tries: 10, back_off, reconnect: false, latency_limit: None })
    }

    #[test]
    fn what_is_said_of_errors_wins_over_what_is_not() {
        let default = policy(&[]);
        let action = |policy: &ErrorPolicy| ["40001", "42P01", "23505"].map(|state| policy.action(state));
        assert_eq!(action(&default), [OnError::Retry, OnError::Abort, OnError::Count]);
        assert_eq!(action(&policy(&["40001=count"])), [OnError::Count, OnError::Abort, OnError::Count]);
        assert_eq!(action(&policy(&["40=abort"])), [OnError::Abort, OnError::Abort, OnError::Count]);
        assert_eq!(
            action(&policy(&["40=abort", "40001=count"])),
            [OnError::Count, OnError::Abort, OnError::Count]
        );
        assert_eq!(action(&policy(&["*=count"])), [OnError::Retry, OnError::Count, OnError::Count]);
        assert_eq!(
            action(&policy(&["*=abort", "23=reconnect"])),
            [OnError::Retry, OnError::Abort, OnError::Reconnect]
        );
    }
}
