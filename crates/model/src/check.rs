//! Checks what a campaign says: names are known, numbers in range. What is wrong is shown at its place in the text.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;

use toml::Spanned;

use crate::cell::{CacheState, Cell, Pin, SettingsVariant, cpu_list};
use crate::factor::{ANY, Factor};
use crate::limits::{DiskLimit, MemoryLimit};
use crate::matrix::Level;
use crate::plan::{Collect, Hooks, Order, Repeats, RunSettings, Vacuum};
use crate::profile::{AROUND_OFF_CPU_US, Profile, Unwinding};
use crate::server::{Build, BuildSystem, Dsn, ServerSpec, Source};
use crate::spec::{self, Campaign, SpecError};
use crate::units::{Span, Throughput};
use crate::validity::Thresholds;
use crate::workload::{Protocol, Transport, Workload, Workloads};

/// The most clients a campaign may ask for: beyond PostgreSQL's own limit of connections.
const MAX_CLIENTS: i64 = 262_143;
/// The highest scale at which pgbench's account numbers fit its tables' integer columns.
const MAX_SCALE: i64 = 21_474;
/// The most threads a driver may have.
const MAX_THREADS: i64 = 1024;
/// The least memory that a server can be asked to live in.
const LEAST_MEMORY_BYTES: u64 = 8 << 20;
/// The most requests a second that a disk may be limited to.
const MAX_IOPS: i64 = 1_000_000_000;
/// The most samples a second of a processor: more would measure the sampling.
const MAX_PROFILE_HZ: i64 = 10_000;
/// The most trials of a cell.
const MAX_REPEATS: i64 = 10_000;
/// The least number of trials of which a spread can be told.
const LEAST_ADAPTIVE: i64 = 3;
/// Trials of each cell to begin with, and at most, where their number is found while the campaign runs.
const ADAPTIVE: (u32, u32) = (5, 20);

/// The change that a comparison is to show: those within it count as equivalent (`stats::MARGIN`).
const EFFECT: f64 = 0.05;

/// A campaign under examination: what its cells have in common has been checked.
pub(crate) struct Checked<'a> {
    campaign: &'a Campaign,
    /// The workloads beside pgbench's that may be named.
    workloads: &'a Workloads,
    /// Length of the measured window, where no factor or workload says it.
    pub(crate) duration: Span,
    /// Load before it, where it is not a share of the duration.
    pub(crate) warmup: Option<Span>,
    /// Threads of the driver, where no factor says it.
    pub(crate) threads: u32,
}

/// A campaign's name is plain enough for file names and tables.
pub(crate) fn name(name: &Spanned<String>) -> Result<(), SpecError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let text = name.get_ref();
    if text.is_empty() || text.len() > 60 || !text.chars().all(plain) {
        return Err(SpecError::at(
            name,
            format!("campaign name \"{text}\" can't be used"),
            "expected 1 to 60 letters, digits, `-`, `_` or `.`",
        ));
    }
    Ok(())
}

impl<'a> Checked<'a> {
    /// Checks everything that is not a level of a factor, used or not.
    pub(crate) fn new(campaign: &'a Campaign, workloads: &'a Workloads) -> Result<Self, SpecError> {
        name(&campaign.name)?;
        let duration = Span::from_us(10_000_000);
        let mut checked = Self { campaign, workloads, duration, warmup: None, threads: 1 };
        if let Some(given) = &campaign.run.duration {
            checked.duration = checked.window(given)?;
        }
        checked.warmup = campaign.run.warmup.as_ref().map(|given| *given.get_ref());
        if let Some(given) = &campaign.run.threads {
            checked.threads = checked.threads(given)?;
        }
        for tag in &campaign.tags {
            plain(tag, "tag")?;
        }
        for (name, table) in &campaign.servers {
            plain(name, "name of a server")?;
            server(name.get_ref(), table)?;
        }
        for name in campaign.settings.keys() {
            plain(name, "name of settings")?;
            checked.settings(name)?;
        }
        for (name, pin) in &campaign.pins {
            plain(name, "name of a pin")?;
            for given in [&pin.driver, &pin.server].into_iter().flatten() {
                cpus(given)?;
            }
        }
        for (name, table) in &campaign.disks {
            plain(name, "name of a disk limit")?;
            disk_limit(name.get_ref(), table)?;
        }
        for name in campaign.workloads.keys() {
            plain(name, "name of a workload")?;
            if Workload::by_name(name.get_ref()).is_some() {
                return Err(SpecError::at(
                    name,
                    format!("`{}` is a built-in workload", name.get_ref()),
                    "expected another name for this one",
                ));
            }
            checked.workload(name)?;
        }
        Ok(checked)
    }

    /// How trials run, with the defaults of what is left out.
    pub(crate) fn run_settings(&self, cells: &[Cell], drawn_seed: u64) -> Result<RunSettings, SpecError> {
        let run = &self.campaign.run;
        let varied = Factor::varied(cells);
        let compare = match &run.compare {
            None => [Factor::Server, Factor::Settings, Factor::Kernel, Factor::Host]
                .into_iter()
                .find(|factor| varied.contains(factor)),
            Some(given) => {
                let named = one_of(given, "factor", &Factor::ALL.map(|factor| (factor.name(), factor)))?;
                if !varied.contains(&named) {
                    return Err(SpecError::at(
                        given,
                        format!("`{}` has one level only", named.name()),
                        "expected a factor whose levels can be compared",
                    ));
                }
                Some(named)
            }
        };
        Ok(RunSettings {
            repeats: match &run.repeats {
                None => Repeats { min: 3, max: 3, until_ci: None },
                Some(given) => repeats(given)?,
            },
            order: match &run.order {
                None => Order::RandomizedBlocks,
                Some(given) => one_of(given, "order", &Order::ALL)?,
            },
            seed: match &run.seed {
                None => drawn_seed,
                Some(given) => whole(given, "seed", 0, i64::MAX)? as u64,
            },
            compare,
            effect: run.effect.as_ref().map_or(EFFECT, |given| given.get_ref().0),
            retries: match &run.retries {
                None => 2,
                Some(given) => whole(given, "retries", 0, 100)? as u32,
            },
            vacuum: match &run.vacuum {
                None => Vacuum::None,
                Some(given) => one_of(given, "vacuum", &Vacuum::ALL)?,
            },
            checkpoint: run.checkpoint.unwrap_or(true),
            settle: run.settle.as_ref().map_or(Span::default(), |given| *given.get_ref()),
        })
    }

    /// The servers that the cells name, in that order.
    pub(crate) fn servers(&self, cells: &[Cell]) -> Result<Vec<ServerSpec>, SpecError> {
        let mut servers: Vec<ServerSpec> = Vec::new();
        for cell in cells {
            if servers.iter().any(|server| server.name == cell.server) {
                continue;
            }
            let table = self.campaign.servers.iter().find(|(name, _)| *name.get_ref() == cell.server);
            servers.push(match table {
                Some((_, table)) => server(&cell.server, table)?,
                None => ServerSpec {
                    name: cell.server.clone(),
                    source: Source::Embedded(cell.server.clone()),
                    initdb: Vec::new(),
                },
            });
        }
        Ok(servers)
    }

    /// Whether what the cells ask for can be done with their servers.
    pub(crate) fn possible(&self, cells: &[Cell], servers: &[ServerSpec]) -> Result<(), SpecError> {
        for cell in cells {
            let server = servers.iter().find(|server| server.name == cell.server);
            if !server.is_some_and(|server| matches!(server.source, Source::Dsn(_))) {
                continue;
            }
            let what = match (cell.cache, &cell.pin.server) {
                (CacheState::Cold, _) => "`cache = [\"cold\"]` needs a restart",
                (_, Some(_)) => "a pin of the server needs its processes",
                _ if cell.memory != MemoryLimit::NONE => {
                    "`memory` needs a server that pgdyno starts within its limit"
                }
                _ if !cell.disk.is_none() => "`disk` needs a server that pgdyno starts within its limit",
                _ => continue,
            };
            let table = self.campaign.servers.iter().find(|(name, _)| *name.get_ref() == cell.server);
            return Err(SpecError {
                message: format!("{what}, and the server \"{}\" is not pgdyno's own", cell.server),
                at: table.map(|(name, _)| name.span()),
                help: Some(
                    "leave this combination out, by `exclude` or a `[[matrix]]` of its own".to_owned(),
                ),
            });
        }
        Ok(())
    }

    /// What is collected beside each load.
    pub(crate) fn collect(&self) -> Result<Collect, SpecError> {
        let spec::Collect { metrics_hz, waits_hz, statements, buffers } = &self.campaign.collect;
        let rate = |name: &str, given: &Option<Spanned<f64>>, default: f64, most: f64| match given {
            None => Ok(default),
            Some(given) if (0.0..=most).contains(given.get_ref()) => Ok(*given.get_ref()),
            Some(given) => {
                let message = format!("`{name}` is {}", given.get_ref());
                let expected = format!("expected how often a second, from 0 (never) to {most}");
                Err(SpecError::at(given, message, expected))
            }
        };
        Ok(Collect {
            metrics_hz: rate("metrics_hz", metrics_hz, 1.0, 100.0)?,
            waits_hz: rate("waits_hz", waits_hz, 20.0, 1000.0)?,
            statements: statements.unwrap_or(true),
            buffers: buffers.unwrap_or(false),
        })
    }

    /// What is profiled beside each load of these cells.
    pub(crate) fn profile(&self, cells: &[Cell]) -> Result<Option<Profile>, SpecError> {
        let Some(table) = &self.campaign.profile else { return Ok(None) };
        let spec::Profile { hz, callgraph, window, off_cpu } = table.get_ref();
        if let Some(given) = window {
            let asked = self.window(given)?;
            if let Some(shorter) = cells.iter().map(|cell| cell.duration).find(|duration| *duration < asked) {
                return Err(SpecError::at(
                    given,
                    format!("{asked} are to be profiled of a measured window of {shorter}"),
                    "expected no more than the shortest window; left out, it is all of it",
                ));
            }
        }
        if let Some(given) = off_cpu {
            let asked = self.window(given)?;
            let too_short = |duration: &Span| duration.us() < 2 * (asked.us() + AROUND_OFF_CPU_US);
            if let Some(shorter) = cells.iter().map(|cell| cell.duration).find(too_short) {
                return Err(SpecError::at(
                    given,
                    format!("{asked} are to be recorded off CPU of a measured window of {shorter}"),
                    "expected less than half of the shortest window, and a second less for getting ready",
                ));
            }
        }
        let choices = [("auto", None)].into_iter();
        let choices: Vec<_> =
            choices.chain(Unwinding::ALL.map(|unwinding| (unwinding.name(), Some(unwinding)))).collect();
        Ok(Some(Profile {
            hz: match hz {
                None => Profile::USUAL_HZ,
                Some(given) => whole(given, "hz", 1, MAX_PROFILE_HZ)? as u32,
            },
            callgraph: match callgraph {
                None => None,
                Some(given) => one_of(given, "call graph", &choices)?,
            },
            window: window.as_ref().map(|given| *given.get_ref()),
            off_cpu: off_cpu.as_ref().map(|given| *given.get_ref()),
        }))
    }

    /// Up to where a trial is sound.
    pub(crate) fn validity(&self) -> Result<Thresholds, SpecError> {
        let Some(given) = &self.campaign.validity else { return Ok(Thresholds::default()) };
        let thresholds = *given.get_ref();
        match thresholds.all().into_iter().find(|(_, value)| !value.is_finite() || *value < 0.0) {
            Some((name, value)) => Err(SpecError::at(
                given,
                format!("`{name}` is {value}"),
                "expected a number that is not negative",
            )),
            None => Ok(thresholds),
        }
    }

    /// The commands around campaign and trials.
    pub(crate) fn hooks(&self) -> Hooks {
        let spec::Hooks { before_campaign, after_campaign, before_trial, after_trial } =
            self.campaign.hooks.clone();
        Hooks { before_campaign, after_campaign, before_trial, after_trial }
    }

    pub(crate) fn server(&self, given: &Spanned<String>) -> Result<Level, SpecError> {
        let is_named = self.campaign.servers.keys().any(|name| name.get_ref() == given.get_ref());
        match is_named || is_version(given.get_ref()) {
            true => Ok(Level::Server(given.get_ref().clone())),
            false => Err(SpecError::at(
                given,
                format!("\"{}\" is not a PostgreSQL version", given.get_ref()),
                format!(
                    "expected a major version such as \"18\", a full one such as \"16.4\", or a table [servers.{}]",
                    given.get_ref()
                ),
            )),
        }
    }

    pub(crate) fn settings(&self, given: &Spanned<String>) -> Result<Level, SpecError> {
        let name = given.get_ref();
        let mut values = BTreeMap::new();
        let mut from: Vec<&String> = Vec::new();
        let mut next = Some(given.clone());
        // The nearest value counts: what is inherited comes later.
        while let Some(this) = next.take() {
            let table = self.campaign.settings.iter().find(|(defined, _)| **defined == this);
            let Some((defined, table)) = table else {
                if this.get_ref() == DEFAULT_SETTINGS {
                    break;
                }
                return Err(self.no_settings(&this));
            };
            if from.contains(&defined.get_ref()) {
                return Err(SpecError::at(
                    &this,
                    format!("the settings \"{name}\" inherit from themselves"),
                    "expected no circle",
                ));
            }
            from.push(defined.get_ref());
            for (setting, value) in table.get_ref() {
                if setting == INHERITS {
                    next = Some(inherited(value)?);
                } else {
                    let checked = setting_value(value)?;
                    values.entry(setting_name(setting, value)?).or_insert(checked);
                }
            }
        }
        Ok(Level::Settings(SettingsVariant { name: name.clone(), values }))
    }

    /// The settings `default`, which a table may define.
    pub(crate) fn default_settings(&self) -> SettingsVariant {
        match self.settings(&Spanned::new(0..0, DEFAULT_SETTINGS.to_owned())) {
            Ok(Level::Settings(settings)) => settings,
            _ => SettingsVariant { name: DEFAULT_SETTINGS.to_owned(), values: BTreeMap::new() },
        }
    }

    fn no_settings(&self, given: &Spanned<String>) -> SpecError {
        let known: Vec<String> = std::iter::once(DEFAULT_SETTINGS)
            .chain(self.campaign.settings.keys().map(|name| name.get_ref().as_str()))
            .map(|name| format!("\"{name}\""))
            .collect();
        SpecError::at(
            given,
            format!("there are no settings \"{}\"", given.get_ref()),
            format!("expected {}, or a table [settings.{}]", known.join(", "), given.get_ref()),
        )
    }

    /// A kernel or host, none for any.
    pub(crate) fn label(&self, given: &Spanned<String>) -> Result<Option<String>, SpecError> {
        if given.get_ref() == ANY {
            return Ok(None);
        }
        plain(given, "label")?;
        Ok(Some(given.get_ref().clone()))
    }

    pub(crate) fn workload(&self, given: &Spanned<String>) -> Result<Level, SpecError> {
        let named = self.campaign.workloads.iter().find(|(name, _)| name.get_ref() == given.get_ref());
        let Some((_, table)) = named else {
            let workload = self.known_workload(given)?;
            return Ok(Level::Workload { workload, duration: None, warmup: None });
        };
        let workload = match &table.builtin {
            Some(builtin) => Workload::by_name(builtin.get_ref()),
            None => None,
        };
        Ok(Level::Workload {
            workload: match (workload, self.workloads.get(given.get_ref()), &table.builtin) {
                (Some(workload), ..) | (None, Some(workload), _) => workload,
                (None, None, Some(builtin)) => self.known_workload(builtin)?,
                (None, None, None) => {
                    return Err(SpecError::at(
                        given,
                        format!("it is not said what the workload \"{}\" does", given.get_ref()),
                        "expected exactly one of `builtin`, `script`, `scripts` and `directory` in its table",
                    ));
                }
            },
            duration: table.duration.as_ref().map(|given| self.window(given)).transpose()?,
            warmup: table.warmup.as_ref().map(|given| *given.get_ref()),
        })
    }

    /// A workload by its own name: pgbench's, or of those that may be named.
    fn known_workload(&self, given: &Spanned<String>) -> Result<Workload, SpecError> {
        let name = given.get_ref();
        if let Some(workload) = Workload::by_name(name).or_else(|| self.workloads.get(name)) {
            return Ok(workload);
        }
        let builtin = Workload::BUILTIN;
        let known = builtin.iter().map(Workload::name).chain(self.workloads.0.keys().map(String::as_str));
        let known: Vec<String> = known.map(|name| format!("\"{name}\"")).collect();
        Err(SpecError::at(
            given,
            format!("there is no workload \"{name}\""),
            format!("expected {}", known.join(", ")),
        ))
    }

    pub(crate) fn scale(&self, given: &Spanned<i64>) -> Result<Level, SpecError> {
        whole(given, "scale", 1, MAX_SCALE).map(|scale| Level::Scale(scale as u32))
    }

    pub(crate) fn clients(&self, given: &Spanned<i64>) -> Result<Level, SpecError> {
        whole(given, "clients", 1, MAX_CLIENTS).map(|clients| Level::Clients(clients as u32))
    }

    pub(crate) fn threads(&self, given: &Spanned<i64>) -> Result<u32, SpecError> {
        whole(given, "threads", 1, MAX_THREADS).map(|threads| threads as u32)
    }

    pub(crate) fn protocol(&self, given: &Spanned<String>) -> Result<Level, SpecError> {
        one_of(given, "protocol", &Protocol::ALL.map(|p| (p.name(), p))).map(Level::Protocol)
    }

    pub(crate) fn transport(&self, given: &Spanned<String>) -> Result<Level, SpecError> {
        one_of(given, "transport", &Transport::ALL.map(|t| (t.name(), t))).map(Level::Transport)
    }

    /// A length that can be measured.
    pub(crate) fn window(&self, given: &Spanned<Span>) -> Result<Span, SpecError> {
        if given.get_ref().us() >= 100_000 {
            return Ok(*given.get_ref());
        }
        Err(SpecError::at(
            given,
            format!("a duration of {} is too short to measure", given.get_ref()),
            "expected at least 100ms",
        ))
    }

    pub(crate) fn pin(&self, given: &Spanned<String>) -> Result<Level, SpecError> {
        let name = given.get_ref();
        let named = self.campaign.pins.iter().find(|(defined, _)| defined.get_ref() == name);
        match named {
            Some((_, pin)) => Ok(Level::Pin(Pin {
                name: name.clone(),
                driver: pin.driver.as_ref().map(cpus).transpose()?,
                server: pin.server.as_ref().map(cpus).transpose()?,
            })),
            None if *name == Pin::none().name => Ok(Level::Pin(Pin::none())),
            None => Err(SpecError::at(
                given,
                format!("there is no pin \"{name}\""),
                format!("expected \"none\", or a table [pins.{name}]"),
            )),
        }
    }

    pub(crate) fn cache(&self, given: &Spanned<String>) -> Result<Level, SpecError> {
        one_of(given, "cache", &CacheState::ALL.map(|state| (state.name(), state))).map(Level::Cache)
    }

    pub(crate) fn memory(&self, given: &Spanned<MemoryLimit>) -> Result<Level, SpecError> {
        match given.get_ref().bytes() {
            Some(bytes) if bytes < LEAST_MEMORY_BYTES => Err(SpecError::at(
                given,
                format!("memory of {} is too little for any server", given.get_ref()),
                "expected at least \"8MB\", or \"none\"",
            )),
            _ => Ok(Level::Memory(*given.get_ref())),
        }
    }

    pub(crate) fn disk(&self, given: &Spanned<String>) -> Result<Level, SpecError> {
        let name = given.get_ref();
        let named = self.campaign.disks.iter().find(|(defined, _)| defined.get_ref() == name);
        match named {
            Some((_, table)) => disk_limit(name, table).map(Level::Disk),
            None if *name == DiskLimit::none().name => Ok(Level::Disk(DiskLimit::none())),
            None => Err(SpecError::at(
                given,
                format!("there is no disk limit \"{name}\""),
                format!("expected \"none\", or a table [disks.{name}]"),
            )),
        }
    }
}

/// A word that is fit for tables, file names and environments.
fn plain(given: &Spanned<String>, what: &str) -> Result<(), SpecError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    let text = given.get_ref();
    if !text.is_empty() && text.len() <= 60 && text.chars().all(fits) {
        return Ok(());
    }
    Err(SpecError::at(
        given,
        format!("\"{text}\" can't be the {what}"),
        "expected 1 to 60 letters, digits, `-`, `_`, `.` or `+`",
    ))
}

/// Whether a connection string has a password, as keyword or in a URI.
fn has_password(conninfo: &str) -> bool {
    let text: String = conninfo.to_ascii_lowercase().split_whitespace().collect();
    let authority = text.split_once("://").map(|(_, rest)| rest.split(['/', '?']).next().unwrap_or_default());
    let user = authority.and_then(|authority| authority.rsplit_once('@')).map(|(user, _)| user);
    text.contains("password=") || user.is_some_and(|user| user.contains(':'))
}

/// A server's table: one kind of source, and only what that kind has.
fn server(name: &str, table: &Spanned<spec::Server>) -> Result<ServerSpec, SpecError> {
    let given = table.get_ref();
    let only_with = |key: &str, of: &str, place: Option<std::ops::Range<usize>>, is_so: bool| match place {
        Some(at) if !is_so => Err(SpecError {
            message: format!("`{key}` is for a server with `{of}`"),
            at: Some(at),
            help: Some("leave it out".to_owned()),
        }),
        _ => Ok(()),
    };
    let span = |given: &Option<Spanned<String>>| given.as_ref().map(Spanned::span);
    only_with("ref", "source", span(&given.git_ref), given.source.is_some())?;
    only_with("build", "source", given.build.as_ref().map(Spanned::span), given.source.is_some())?;
    let allow = given.allow_settings.as_ref();
    only_with("allow_settings", "dsn", allow.map(Spanned::span), given.dsn.is_some())?;
    let initdb = given.initdb.as_ref();
    only_with("initdb", "version, bin or source", initdb.map(Spanned::span), given.dsn.is_none())?;

    let source = match (&given.version, &given.bin, &given.source, &given.dsn) {
        (Some(version), None, None, None) => {
            if !is_version(version.get_ref()) {
                return Err(SpecError::at(
                    version,
                    format!("\"{}\" is not a PostgreSQL version", version.get_ref()),
                    "expected a major version such as \"18\", or a full one such as \"16.4\"",
                ));
            }
            Source::Embedded(version.get_ref().clone())
        }
        (None, Some(directory), None, None) => Source::Bin(PathBuf::from(directory.get_ref())),
        (None, None, Some(location), None) => {
            let build = given.build.as_ref().map(|build| build.get_ref().clone()).unwrap_or_default();
            Source::Build(Build {
                location: PathBuf::from(location.get_ref()),
                git_ref: given.git_ref.as_ref().map(|name| name.get_ref().clone()),
                system: build
                    .system
                    .as_ref()
                    .map(|system| one_of(system, "build system", &BuildSystem::ALL))
                    .transpose()?,
                options: build.options,
                cflags: build.cflags,
            })
        }
        (None, None, None, Some(dsn)) if has_password(dsn.get_ref()) => {
            return Err(SpecError::at(
                dsn,
                "a password in a campaign would be in every bundle",
                "leave it out: the password file (~/.pgpass) and PGPASSWORD are read",
            ));
        }
        (None, None, None, Some(dsn)) => Source::Dsn(Dsn {
            conninfo: dsn.get_ref().clone(),
            may_set: allow.is_some_and(|given| *given.get_ref()),
        }),
        _ => {
            return Err(SpecError::at(
                table,
                format!("it is not said where the server \"{name}\" comes from"),
                "expected exactly one of `version`, `bin`, `source` and `dsn`",
            ));
        }
    };
    let initdb = initdb.map(|given| given.get_ref().clone()).unwrap_or_default();
    Ok(ServerSpec { name: name.to_owned(), source, initdb })
}

fn repeats(given: &Spanned<spec::Repeats>) -> Result<Repeats, SpecError> {
    let (min, max, until_ci) = match *given.get_ref() {
        spec::Repeats::Fixed(number) => {
            let number = in_range(given, number, "repeats", 1, MAX_REPEATS)?;
            return Ok(Repeats { min: number as u32, max: number as u32, until_ci: None });
        }
        spec::Repeats::Adaptive { min, max, until_ci } => (min, max, until_ci),
    };
    let min = min.map(|min| in_range(given, min, "repeats.min", LEAST_ADAPTIVE, MAX_REPEATS)).transpose()?;
    let min = min.map_or(ADAPTIVE.0, |min| min as u32);
    let max = max.map(|max| in_range(given, max, "repeats.max", i64::from(min), MAX_REPEATS)).transpose()?;
    Ok(Repeats { min, max: max.map_or(ADAPTIVE.1.max(min), |max| max as u32), until_ci })
}

/// A table of `[disks.…]`.
fn disk_limit(name: &str, table: &Spanned<spec::Disk>) -> Result<DiskLimit, SpecError> {
    let spec::Disk { read, read_iops, write, write_iops } = table.get_ref();
    let bytes = |given: &Option<Spanned<Throughput>>, what: &str| match given {
        None => Ok(None),
        Some(given) if given.get_ref().0.bytes() > 0 => Ok(Some(given.get_ref().0.bytes())),
        Some(given) => Err(SpecError::at(
            given,
            format!("nothing could be {what} at all"),
            "expected a size in a second, such as \"100MB/s\"",
        )),
    };
    let requests = |given: &Option<Spanned<i64>>, what: &str| {
        given.as_ref().map(|given| whole(given, what, 1, MAX_IOPS).map(|number| number as u64)).transpose()
    };
    let limit = DiskLimit {
        name: name.to_owned(),
        read_bytes_s: bytes(read, "read")?,
        read_iops: requests(read_iops, "read_iops")?,
        write_bytes_s: bytes(write, "written")?,
        write_iops: requests(write_iops, "write_iops")?,
    };
    match limit.is_none() {
        true => Err(SpecError::at(
            table,
            format!("the disk limit \"{name}\" limits nothing"),
            "expected at least one of `read`, `read_iops`, `write` and `write_iops`",
        )),
        false => Ok(limit),
    }
}

/// Processors, as the kernel lists them.
fn cpus(given: &Spanned<String>) -> Result<String, SpecError> {
    match cpu_list(given.get_ref()) {
        Some(_) => Ok(given.get_ref().clone()),
        None => Err(SpecError::at(
            given,
            format!("\"{}\" is not a list of processors", given.get_ref()),
            "expected numbers and ranges, such as \"0-3,8\"",
        )),
    }
}

fn whole(given: &Spanned<i64>, what: &str, least: i64, most: i64) -> Result<i64, SpecError> {
    in_range(given, *given.get_ref(), what, least, most)
}

fn in_range<T>(
    given: &Spanned<T>,
    value: i64,
    what: impl Display,
    least: i64,
    most: i64,
) -> Result<i64, SpecError> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(SpecError::at(
        given,
        format!("{what} = {value} is out of range"),
        format!("expected a whole number from {least} to {most}"),
    ))
}

fn one_of<T: Copy>(given: &Spanned<String>, what: &str, known: &[(&str, T)]) -> Result<T, SpecError> {
    let name = given.get_ref();
    if let Some((_, value)) = known.iter().find(|(known, _)| known == name) {
        return Ok(*value);
    }
    let names: Vec<String> = known.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    Err(SpecError::at(
        given,
        format!("there is no {what} \"{name}\""),
        format!("expected {}", names.join(", ")),
    ))
}

/// The settings variant that is always there.
const DEFAULT_SETTINGS: &str = "default";
/// The key of a table of settings that names another one.
const INHERITS: &str = "inherits";

/// A major (`9.6`, `18`) or a full version (`9.6.24`, `16.4`). Whether it can be had is the target's to say.
fn is_version(text: &str) -> bool {
    let parts: Vec<Option<u32>> =
        text.split('.').map(|part| part.parse().ok().filter(|_| part.len() <= 4)).collect();
    match parts.as_slice() {
        [Some(9), Some(_)] | [Some(9), Some(_), Some(_)] => true,
        [Some(major)] | [Some(major), Some(_)] => *major >= 10,
        _ => false,
    }
}

fn inherited(value: &Spanned<toml::Value>) -> Result<Spanned<String>, SpecError> {
    match value.get_ref() {
        toml::Value::String(name) => Ok(Spanned::new(value.span(), name.clone())),
        _ => Err(SpecError::at(value, "`inherits` names other settings", "expected a string")),
    }
}

/// Settings that pgdyno itself decides: where the server lives and listens.
const OUR_SETTINGS: [&str; 6] = [
    "data_directory",
    "listen_addresses",
    "port",
    "unix_socket_directories",
    "logging_collector",
    "log_destination",
];

fn setting_name(name: &str, value: &Spanned<toml::Value>) -> Result<String, SpecError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    if name.is_empty() || !name.chars().all(plain) {
        return Err(SpecError::at(
            value,
            format!("`{name}` can't be the name of a server setting"),
            "expected letters, digits, `_` and `.`, as in postgresql.conf",
        ));
    }
    if OUR_SETTINGS.contains(&name) {
        return Err(SpecError::at(value, format!("`{name}` is set by pgdyno itself"), "leave it out"));
    }
    Ok(name.to_owned())
}

fn setting_value(value: &Spanned<toml::Value>) -> Result<String, SpecError> {
    match value.get_ref() {
        toml::Value::String(text) if !text.contains(['\n', '\0']) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Boolean(true) => Ok("on".to_owned()),
        toml::Value::Boolean(false) => Ok("off".to_owned()),
        _ => Err(SpecError::at(
            value,
            "this can't be the value of a server setting",
            "expected a string without line breaks, a number, or true or false",
        )),
    }
}
