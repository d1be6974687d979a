//! Workloads that a campaign can name, with their texts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use host::{NoProgress, Progress};
use model::dataset::OwnDatabase;
use model::merit::{COST_PREFIX, FIGURE_PREFIX, NamedFigure, own_figure};
use model::spec::Spanned;
use model::spec::{Background, Campaign, Family, Files, SpecError, Tables, Workload as Table};
use model::trace::PREFIX;
use model::units::{Rate, Span};
use model::version::Major;
use model::workload::{BackgroundWorkload, Custom, ScriptText, WeightedScript, Workload, Workloads};
use script::{Names, Script};

use crate::datasets::{Datasets, own_database};
use crate::error::WorkloadError;
use crate::read::Location;
use crate::{consistency, figures, parameters, setup, shipped, teardown};

mod phases;
mod streams;
mod trace;

/// Keys that a table may have for any workload.
const COMMON_KEYS: [&str; 9] =
    ["duration", "warmup", "description", "stagger", "iterations", "spans", "figure", "background", "judged"];
/// Additional keys of a table that refers to a workload defined elsewhere: they override its own.
const OVERRIDE_KEYS: [&str; 3] = ["parameters", "script", "scripts"];
/// Suffix of a level that names an SQL file.
const SQL_FILE: &str = ".sql";
/// Keys of the playing of a trace.
const TRACE_KEYS: [&str; 4] = ["speed", "rate_scale", "closed", "sessions"];

/// Workloads that a campaign can name in addition to pgbench's: those of its tables, the files that are levels
/// themselves, and those bundled with pgdyno. Relative paths are relative to `directory`. Workloads in `known` are
/// taken from there, and their files are not read. Reading a large data set is reported to `progress`.
///
/// # Errors
/// A file can't be read, a table has too many or too few keys, or a script has an error.
pub fn workloads(
    campaign: &Campaign,
    directory: &Path,
    known: &Workloads,
    progress: &dyn Progress,
) -> Result<Workloads, WorkloadError> {
    let datasets = Datasets { tables: &campaign.datasets, progress };
    let mut found = known.clone();
    let location = Location::Directory(directory.to_owned());
    for (name, table) in &campaign.workloads {
        if found.get(name.get_ref()).is_some() {
            continue;
        }
        let reader = TableReader {
            name: name.get_ref(),
            at: name.span(),
            location: &location,
            datasets,
            file: None,
            overridden_by: None,
        };
        if let Some(custom) = reader.read_table(table)? {
            found.insert(name.get_ref(), Workload::Custom(Arc::new(custom)));
        }
    }
    let background = campaign.workloads.values().filter_map(|table| table.background.as_ref());
    let background = background
        .flat_map(|background| background.get_ref())
        .map(|background| &background.get_ref().workload);
    let levels: Vec<&Spanned<String>> = campaign.workload_levels().chain(background).collect();
    let named: BTreeSet<&str> = levels.iter().map(|level| level.get_ref().as_str()).collect();
    for level in levels {
        let name = level.get_ref();
        if found.get(name).is_some() {
            continue;
        }
        let reader = TableReader {
            name,
            at: level.span(),
            location: &location,
            datasets,
            file: None,
            overridden_by: None,
        };
        let custom = if let Some(file) = name.strip_prefix(PREFIX) {
            let trace = Some(Spanned::new(level.span(), file.to_owned()));
            reader.read_trace(&Table { trace, ..Table::default() })?
        } else if name.ends_with(SQL_FILE) {
            reader.read_scripts(&Table { script: Some(level.clone()), ..Table::default() })?
        } else {
            continue;
        };
        found.insert(name, Workload::Custom(Arc::new(custom)));
    }
    add_shipped(&mut found, &named)?;
    let without_background = found.clone();
    for (name, table) in &campaign.workloads {
        let (Some(background), None) = (&table.background, known.get(name.get_ref())) else { continue };
        if let Some(Workload::Custom(custom)) = found.0.get_mut(name.get_ref()) {
            let reader = TableReader {
                name: name.get_ref(),
                at: name.span(),
                location: &location,
                datasets,
                file: None,
                overridden_by: None,
            };
            let background = reader.background(custom, background, &without_background)?;
            let custom = Arc::make_mut(custom);
            for other in &background {
                custom.writes |= other.workload.writes();
                custom.pgbench_tables |= other.workload.custom().is_none_or(|other| other.pgbench_tables);
                custom.star_tables |= other.workload.custom().is_some_and(|other| other.star_tables);
            }
            custom.background = background;
        }
    }
    Ok(found)
}

/// Workloads that a campaign of another machine can name: those that came with it, and those bundled with pgdyno. No file is
/// read: paths in such a campaign are the other machine's. Of tables that no cell names, such as those of background workloads,
/// only the name is known.
///
/// # Errors
/// A workload of a cell did not come with it.
pub fn received_workloads(campaign: &Campaign, received: &Workloads) -> Result<Workloads, WorkloadError> {
    let mut found = received.clone();
    add_shipped(&mut found, &campaign.workload_levels().map(|level| level.get_ref().as_str()).collect())?;
    let is_pgbench = |name: &str| Workload::builtin(name).is_some();
    for (name, table) in &campaign.workloads {
        let name = name.get_ref();
        // A table may be one of pgbench's scripts under another name.
        let is_renamed = table.builtin.as_ref().is_some_and(|builtin| is_pgbench(builtin.get_ref()));
        if !is_renamed && found.get(name).is_none() {
            found.insert(name, Workload::Named(name.clone()));
        }
    }
    let is_table = |name: &str| campaign.workloads.keys().any(|table| table.get_ref() == name);
    let is_missing = |level: &&Spanned<String>| match found.get(level.get_ref()) {
        Some(workload) => workload.custom().is_none(),
        None => !is_pgbench(level.get_ref()) && !is_table(level.get_ref()),
    };
    match campaign.workload_levels().find(is_missing) {
        None => Ok(found),
        Some(level) => Err(WorkloadError::Campaign(SpecError::at(
            level,
            format!("the workload \"{}\" did not come with the campaign", level.get_ref()),
            "queue the campaign by `pgdyno run --fleet` where its files are: no workload is read from files of this machine",
        ))),
    }
}

/// Adds the workloads bundled with pgdyno, except those whose names others have. `named` are the names in the campaign.
fn add_shipped(found: &mut Workloads, named: &BTreeSet<&str>) -> Result<(), WorkloadError> {
    for name in shipped() {
        if found.get(name).is_some() {
            continue;
        }
        // Reading all of a family takes long; of those that nothing refers to, the name is enough.
        let is_wanted = !shipped::is_of_family(name) || named.contains(name);
        let custom = if is_wanted { read_shipped(name, None)? } else { None };
        let workload = custom.map(|custom| Workload::Custom(Arc::new(custom)));
        found.insert(name, workload.unwrap_or_else(|| Workload::Named(name.to_owned())));
    }
    Ok(())
}

fn read_shipped(
    name: &str,
    overridden_by: Option<(&TableReader<'_>, &Table)>,
) -> Result<Option<Custom>, WorkloadError> {
    let Some(location) = shipped::location(name) else { return Ok(None) };
    // A bundled workload has none.
    let datasets = Datasets { tables: &Tables::new(), progress: &NoProgress };
    TableReader { name, at: 0..0, location: &location, datasets, file: None, overridden_by }
        .read_directory(0..0)
        .map(Some)
}

/// Reads a workload's table.
struct TableReader<'a> {
    /// Name of the workload.
    name: &'a str,
    /// Position of the name in the text.
    at: Range<usize>,
    /// Location of the files.
    location: &'a Location,
    /// The campaign's `[datasets.…]`.
    datasets: Datasets<'a>,
    /// Text of the `workload.toml` with the table; none for a table of the campaign.
    file: Option<&'a str>,
    /// The campaign's table that names the workload being read, and overrides parts of it.
    overridden_by: Option<(&'a TableReader<'a>, &'a Table)>,
}

impl TableReader<'_> {
    /// Reads a table; none for a workload of pgbench's.
    fn read_table(&self, table: &Table) -> Result<Option<Custom>, WorkloadError> {
        let count = |given: &[bool]| given.iter().filter(|given| **given).count();
        let bases = count(&[table.builtin.is_some(), table.directory.is_some()]);
        let own = count(&[
            table.script.is_some(),
            table.scripts.is_some(),
            table.phases.is_some(),
            table.trace.is_some(),
        ]);
        if bases > 1 || own > 1 || bases + own == 0 || (table.trace.is_some() && bases > 0) {
            return Err(self.wrong(
                self.at.clone(),
                format!("the workload \"{}\" must have exactly one definition", self.name),
                "expected `builtin` or `directory`, or `script`, `scripts`, `phases` or `trace`, or a `builtin` or `directory` with a \
                 `script` or `scripts` to replace its own",
            ));
        }
        let is_same_builtin = table.builtin.as_ref().is_some_and(|builtin| builtin.get_ref() == self.name);
        if Workload::builtin(self.name).is_some() && (!is_same_builtin || table.configures_clients()) {
            return Err(self.wrong(
                self.at.clone(),
                format!("\"{}\" is a built-in script of pgbench", self.name),
                "give the workload another name",
            ));
        }
        if let Some(builtin) = &table.builtin {
            if let Some(workload) = Workload::builtin(builtin.get_ref()) {
                self.check_keys(table, "a built-in script of pgbench", &[])?;
                if !table.configures_clients() {
                    return Ok(None);
                }
                let script = Table { script: table.builtin.clone(), ..table.clone() };
                let custom = self.read_scripts(&script)?;
                return Ok(Some(Custom { writes: workload.writes(), ..custom }));
            }
            self.check_keys(table, "a workload that is defined elsewhere", &OVERRIDE_KEYS)?;
            // The plan reports an unknown name.
            let custom = read_shipped(builtin.get_ref(), Some((self, table)))?;
            return Ok(custom.map(|custom| self.renamed(custom, table)));
        }
        if let Some(directory) = &table.directory {
            self.check_keys(table, "a workload that is defined elsewhere", &OVERRIDE_KEYS)?;
            let location = match self.location {
                Location::Directory(base) => Location::Directory(base.join(directory.get_ref())),
                Location::Shipped { .. } => self.location.clone(),
            };
            let overridden_by = Some((self, table));
            let reader = TableReader {
                name: self.name,
                at: self.at.clone(),
                location: &location,
                datasets: self.datasets,
                file: None,
                overridden_by,
            };
            return reader.read_directory(directory.span()).map(|custom| Some(self.renamed(custom, table)));
        }
        match table.trace {
            Some(_) => self.read_trace(table).map(Some),
            None => self.read_scripts(table).map(Some),
        }
    }

    /// Reads the workload of the directory `location`, which is named at `at`.
    fn read_directory(&self, at: Range<usize>) -> Result<Custom, WorkloadError> {
        let text = self.location.read(self.location.table_file()).map_err(|why| {
            let named_by = self.overridden_by.map_or(self, |(reader, _)| reader);
            named_by.wrong(
                at,
                why.to_string(),
                "expected a directory with a file workload.toml and SQL files",
            )
        })?;
        let reader = TableReader {
            name: self.name,
            at: 0..0,
            location: self.location,
            datasets: self.datasets,
            file: Some(&text),
            overridden_by: self.overridden_by,
        };
        let table = match self.location.member() {
            None => Table::parse(&text),
            Some(member) => Family::parse(&text).and_then(|family| family.workload(member)),
        };
        let table = table.map_err(|error| reader.error(error))?;
        let bases = [&table.builtin, &table.directory].into_iter().flatten().map(Spanned::span);
        let lengths = [&table.duration, &table.warmup].into_iter().flatten().map(Spanned::span);
        let background = table.background.as_ref().map(Spanned::span);
        let trace = table.trace.as_ref().map(Spanned::span);
        if let Some(at) = bases.chain(lengths).chain(background).chain(trace).next() {
            return Err(reader.wrong(
                at,
                "this key is not allowed in a workload.toml".to_owned(),
                "move it to the campaign's table [workloads.…]",
            ));
        }
        let sources = [table.script.is_some(), table.scripts.is_some(), table.phases.is_some()];
        if sources.iter().filter(|given| **given).count() != 1 {
            return Err(reader.wrong(
                0..0,
                format!("the workload \"{}\" must have exactly one definition", self.name),
                "expected `script`, `scripts` or `phases`",
            ));
        }
        reader.read_scripts(&table)
    }

    /// A workload defined elsewhere, with the name and description of the campaign's table.
    fn renamed(&self, custom: Custom, table: &Table) -> Custom {
        let description = table.description.clone().or(custom.description);
        Custom { name: self.name.to_owned(), description, ..custom }
    }

    /// Refuses keys other than those in `allowed` and those that any table may have.
    fn check_keys(&self, table: &Table, what: &str, allowed: &[&str]) -> Result<(), WorkloadError> {
        let keys = [
            ("script", table.script.as_ref().map(Spanned::span)),
            ("scripts", table.scripts.as_ref().map(Spanned::span)),
            ("parameters", table.parameters.keys().next().map(Spanned::span)),
            ("setup", table.setup.as_ref().map(Spanned::span)),
            ("teardown", table.teardown.as_ref().map(Spanned::span)),
            ("consistency", table.consistency.as_ref().map(Spanned::span)),
            ("figures", table.figures.keys().next().map(Spanned::span)),
            ("costs", table.costs.keys().next().map(Spanned::span)),
            ("tables", table.tables.as_ref().map(Spanned::span)),
            ("dataset", table.dataset.as_ref().map(Spanned::span)),
            ("minimum_version", table.minimum_version.as_ref().map(Spanned::span)),
            ("writes", table.writes.as_ref().map(Spanned::span)),
            ("reconnect", table.reconnect.as_ref().map(Spanned::span)),
            ("raw_read", table.raw_read.as_ref().map(Spanned::span)),
            ("phases", table.phases.as_ref().map(Spanned::span)),
            ("speed", table.speed.as_ref().map(Spanned::span)),
            ("rate_scale", table.rate_scale.as_ref().map(Spanned::span)),
            ("closed", table.closed.as_ref().map(Spanned::span)),
            ("sessions", table.sessions.as_ref().map(Spanned::span)),
            ("streams", table.streams.as_ref().map(Spanned::span)),
        ];
        for (key, at) in keys {
            if let (Some(at), false) = (at, allowed.contains(&key)) {
                let allowed = allowed.iter().chain(&COMMON_KEYS).map(|key| format!("`{key}`"));
                let allowed = allowed.collect::<Vec<_>>().join(", ");
                return Err(self.wrong(at, format!("{what} has no `{key}`"), &format!("expected {allowed}")));
            }
        }
        Ok(())
    }

    /// Reads a table with `script`, `scripts` or `phases`.
    fn read_scripts(&self, table: &Table) -> Result<Custom, WorkloadError> {
        let of_traces = [
            table.speed.as_ref().map(Spanned::span),
            table.rate_scale.as_ref().map(Spanned::span),
            table.closed.as_ref().map(Spanned::span),
            table.sessions.as_ref().map(Spanned::span),
        ];
        for (key, at) in TRACE_KEYS.into_iter().zip(of_traces) {
            if let Some(at) = at {
                let message = format!("`{key}` requires `trace`");
                return Err(self.wrong(at, message, "leave it out, or name a trace of `pgdyno replay read`"));
            }
        }
        let mut parameters = parameters::texts(&table.parameters).map_err(|error| self.error(error))?;
        if let Some((reader, overrides)) = self.overridden_by {
            parameters::replace(&mut parameters, &overrides.parameters)
                .map_err(|error| reader.error(error))?;
        }
        let tables = || self.overridden_by.map(|(_, overrides)| overrides).into_iter().chain([table]);
        if let (None, Some(judged)) = (&table.phases, tables().find_map(|table| table.judged.as_ref())) {
            return Err(self.of_campaign().wrong(
                judged.span(),
                format!("the workload \"{}\" has no phases", self.name),
                "leave `judged` out",
            ));
        }
        // The campaign's scripts override the workload's own, too.
        let has_scripts = |table: &Table| table.script.is_some() || table.scripts.is_some();
        let (reader, source) =
            self.overridden_by.filter(|(_, overrides)| has_scripts(overrides)).unwrap_or((self, table));
        let scripts = match (&source.script, &source.scripts) {
            (Some(script), _) => {
                let (name, text) = reader.script(script, script.get_ref())?;
                vec![WeightedScript { name, weight: 1, text }]
            }
            (None, Some(scripts)) => reader.weighted_scripts(scripts, &parameters)?,
            (None, None) => Vec::new(),
        };
        let dataset = self.dataset(table)?;
        let pgbench_tables = match table.tables.as_ref().map(|tables| (tables.get_ref().as_str(), tables)) {
            Some((name @ ("pgbench" | "star"), at)) if dataset.is_some() => {
                let replaced =
                    if name == "star" { "the tables of the star schema" } else { "pgbench's tables" };
                return Err(self.wrong(
                    at.span(),
                    format!("`dataset` replaces {replaced}"),
                    "leave one of them out",
                ));
            }
            None | Some(("pgbench", _)) => dataset.is_none(),
            Some(("star" | "none", _)) => false,
            Some((other, at)) => {
                return Err(self.wrong(
                    at.span(),
                    format!("unknown tables \"{other}\""),
                    "expected \"pgbench\", \"star\" or \"none\"",
                ));
            }
        };
        // The campaign's table overrides the workload's own.
        let iterations = tables().find_map(|table| table.iterations.as_ref());
        let iterations = iterations.map(|iterations| self.count(iterations, "iterations")).transpose()?;
        let custom = Custom {
            name: self.name.to_owned(),
            description: table.description.clone(),
            scripts,
            parameters,
            setup: self.texts(table.setup.as_ref())?,
            teardown: self.texts(table.teardown.as_ref())?,
            consistency: self.texts(table.consistency.as_ref())?,
            figures: self.figures(table)?,
            pgbench_tables,
            star_tables: table.tables.as_ref().is_some_and(|tables| tables.get_ref() == "star"),
            trace: None,
            dataset,
            minimum_version: table.minimum_version.as_ref().map(|given| self.major(given)).transpose()?,
            writes: table.writes.as_ref().is_none_or(|writes| *writes.get_ref()),
            reconnect: table.reconnect.as_ref().is_some_and(|reconnect| *reconnect.get_ref()),
            raw_read: table.raw_read.as_ref().map(|relation| relation.get_ref().clone()),
            stagger: tables()
                .find_map(|table| table.stagger.as_ref())
                .map_or(Span::default(), |span| *span.get_ref()),
            iterations,
            rows_per_transaction: None,
            spans: tables().find_map(|table| table.spans.as_ref()).is_some_and(|spans| *spans.get_ref()),
            figure: NamedFigure(
                tables().find_map(|table| table.figure.as_ref()).map(|figure| *figure.get_ref()),
            ),
            background: Vec::new(),
            phases: Vec::new(),
        };
        let custom = match &table.phases {
            Some(phases) => self.with_phases(custom, table, phases)?,
            None => custom,
        };
        let custom = match &table.streams {
            Some(streams) => self.with_streams(custom, table, streams)?,
            None => custom,
        };
        let mut checked = custom.clone();
        let Custom { setup: made, teardown: ended, consistency: checks, figures: asked, .. } = &mut checked;
        for text in made.iter_mut().chain(ended).chain(checks).chain(asked.values_mut()) {
            // Errors show the whole path, which is no part of the workload.
            text.name = self.location.path(&text.name).display().to_string();
        }
        // `check` computes them at the cells' scales later.
        setup(&checked, 1)?;
        teardown(&checked, 1)?;
        consistency(&checked, 1)?;
        for (metric, statements) in figures(&checked, 1)? {
            if statements.is_empty() {
                let file = &checked.figures[&metric].name;
                return Err(WorkloadError::Script(format!(
                    "error: {file} has no query, which is to return {metric}"
                )));
            }
        }
        Ok(custom)
    }

    /// The database that the workload of a table runs on, if it is one of the user's own.
    fn dataset(&self, table: &Table) -> Result<Option<OwnDatabase>, WorkloadError> {
        let Some(name) = &table.dataset else { return Ok(None) };
        match self.location {
            Location::Directory(directory) if self.file.is_none() => {
                own_database(name, self.datasets, directory).map(Some).map_err(|error| self.error(error))
            }
            _ => Err(self.wrong(
                name.span(),
                "this key is not allowed in a workload.toml".to_owned(),
                "name the scripts in the campaign's table [workloads.…], with `dataset`",
            )),
        }
    }

    /// The reader of the campaign's table, if that overrides parts of this one; else this one.
    fn of_campaign(&self) -> &Self {
        self.overridden_by.map_or(self, |(reader, _)| reader)
    }

    /// A major version.
    fn major(&self, given: &Spanned<String>) -> Result<Major, WorkloadError> {
        let major = given.get_ref().parse();
        major.map_err(|_| {
            let message = format!("\"{}\" is not a major version of PostgreSQL", given.get_ref());
            self.wrong(given.span(), message, "expected a major such as \"15\" or \"9.6\"")
        })
    }

    /// A number of at least 1.
    fn count(&self, given: &Spanned<i64>, what: &str) -> Result<u32, WorkloadError> {
        let number = u32::try_from(*given.get_ref()).ok().filter(|number| *number > 0);
        number.ok_or_else(|| {
            let message = format!("invalid number of {what}: {}", given.get_ref());
            self.wrong(given.span(), message, "expected a whole number of at least 1")
        })
    }

    /// Background workloads of a workload, among those found.
    fn background(
        &self,
        custom: &Custom,
        background: &Spanned<Vec<Spanned<Background>>>,
        found: &Workloads,
    ) -> Result<Vec<BackgroundWorkload>, WorkloadError> {
        let mut all: Vec<BackgroundWorkload> = Vec::new();
        for given in background.get_ref() {
            let table = given.get_ref();
            let name = table.workload.get_ref();
            let wrong = |message: String, help: &str| Err(self.wrong(table.workload.span(), message, help));
            let Some(workload) = Workload::builtin(name).or_else(|| found.get(name)) else {
                return wrong(
                    format!("there is no workload \"{name}\""),
                    "expected a built-in or bundled workload, the name of a [workloads.…] table, or an SQL file",
                );
            };
            let other = workload.custom();
            if workload.has_phases() {
                return wrong(
                    format!("\"{name}\" has phases, which can't run in the background of another workload"),
                    "expected a workload without phases",
                );
            }
            if name == self.name || other.is_some_and(|other| !other.background.is_empty()) {
                return wrong(
                    format!("\"{name}\" has background workloads itself"),
                    "expected one without background workloads",
                );
            }
            let has_tables = other.is_none_or(|other| other.pgbench_tables);
            let has_tables = has_tables || other.is_some_and(|other| other.star_tables);
            let own = workload.own_database();
            if own != custom.dataset.as_ref() && (own.is_some() || has_tables) {
                return wrong(
                    format!("\"{name}\" runs on another data set than \"{}\"", self.name),
                    "expected a workload with the same `dataset`, or with `tables = \"none\"`",
                );
            }
            if all.iter().any(|known| known.workload.name() == name) {
                return wrong(
                    format!("\"{name}\" is listed twice"),
                    "expected it once, with all its clients",
                );
            }
            if custom.iterations.is_some() && other.is_none_or(|other| other.iterations.is_none()) {
                return wrong(
                    format!("\"{name}\" would never end, while the main workload ends after its iterations"),
                    "give it `iterations`, too, or make it the main workload",
                );
            }
            let clients = table.clients.as_ref().map(|clients| self.count(clients, "clients")).transpose()?;
            let rate = table.rate.as_ref().map_or(Rate::MAX, |rate| *rate.get_ref());
            let start = table.start.as_ref().map_or(Span::default(), |start| *start.get_ref());
            let clients = clients.unwrap_or(1);
            all.push(BackgroundWorkload {
                workload,
                clients,
                rate,
                start,
                per_client: false,
                replica: table.replica,
            });
        }
        self.check_script_names(custom, &all, background.span())?;
        Ok(all)
    }

    /// Refuses background workloads whose scripts have the names of others.
    fn check_script_names(
        &self,
        custom: &Custom,
        background: &[BackgroundWorkload],
        at: Range<usize>,
    ) -> Result<(), WorkloadError> {
        let mut names: Vec<String> = custom.scripts.iter().map(|script| script.name.clone()).collect();
        for other in background {
            let scripts = match other.workload.custom() {
                None => vec![other.script(other.workload.name())],
                Some(custom) => custom.scripts.iter().map(|script| other.script(&script.name)).collect(),
            };
            if let Some(name) = scripts.iter().find(|script| names.contains(script)) {
                let message = format!("the script \"{name}\" is listed twice");
                return Err(self.wrong(at, message, "expected scripts of different names"));
            }
            names.extend(scripts);
        }
        Ok(())
    }

    fn weighted_scripts(
        &self,
        scripts: &Spanned<Vec<Spanned<String>>>,
        parameters: &BTreeMap<String, String>,
    ) -> Result<Vec<WeightedScript>, WorkloadError> {
        let mut found: Vec<WeightedScript> = Vec::new();
        for given in scripts.get_ref() {
            let (file, weight) = match given.get_ref().rsplit_once('@') {
                None => (given.get_ref().as_str(), 1),
                Some((file, weight)) => {
                    let weight = parameters::weight(weight, parameters).map_err(|why| {
                        self.wrong(given.span(), format!("\"{weight}\" is not a weight"), &why.to_string())
                    })?;
                    (file, weight)
                }
            };
            let (name, text) = self.script(given, file)?;
            if found.iter().any(|script| script.name == name) {
                let message = format!("the script \"{name}\" is listed twice");
                return Err(self.wrong(given.span(), message, "expected it once, with its weight"));
            }
            found.push(WeightedScript { name, weight, text });
        }
        if found.iter().any(|script| script.weight > 0) {
            Ok(found)
        } else {
            Err(self.wrong(
                scripts.span(),
                "no script would ever run".to_owned(),
                "expected at least one with a weight above 0",
            ))
        }
    }

    /// The name and text of a script: one of pgbench's, or a file's.
    fn script(&self, given: &Spanned<String>, file: &str) -> Result<(String, String), WorkloadError> {
        let text = match script::builtin(file) {
            Some(builtin) => builtin.text.to_owned(),
            None => {
                let expected = "expected a file in pgbench's script language, or one of pgbench's scripts";
                self.location.read(file).map_err(|why| self.wrong(given.span(), why.to_string(), expected))?
            }
        };
        let path = self.location.path(file).display().to_string();
        Script::parse(&path, &text, &mut Names::default())
            .map_err(|error| WorkloadError::Script(format!("error: {error}")))?;
        Ok((file.to_owned(), text))
    }

    fn texts(&self, files: Option<&Spanned<Files>>) -> Result<Vec<ScriptText>, WorkloadError> {
        let Some(files) = files else { return Ok(Vec::new()) };
        let read = |file: &String| match self.location.read(file) {
            Ok(text) => Ok(ScriptText { name: file.clone(), text }),
            Err(why) => Err(self.wrong(files.span(), why.to_string(), "expected SQL files")),
        };
        files.get_ref().0.iter().map(read).collect()
    }

    /// The files of a workload's own figures, by the names of their metrics.
    fn figures(&self, table: &Table) -> Result<BTreeMap<String, ScriptText>, WorkloadError> {
        let named = [(FIGURE_PREFIX, &table.figures), (COST_PREFIX, &table.costs)];
        let given =
            named.into_iter().flat_map(|(prefix, files)| files.iter().map(move |file| (prefix, file)));
        let read = |(prefix, (name, file)): (&str, (&Spanned<String>, &Spanned<String>))| {
            let metric = format!("{prefix}{}", name.get_ref());
            if own_figure(&metric).is_none() {
                let message = format!("invalid name of a figure: \"{}\"", name.get_ref());
                return Err(self.wrong(name.span(), message, "expected up to 40 letters, digits and `_`"));
            }
            match self.location.read(file.get_ref()) {
                Ok(text) => Ok((metric, ScriptText { name: file.get_ref().clone(), text })),
                Err(why) => Err(self.wrong(file.span(), why.to_string(), "expected an SQL file")),
            }
        };
        given.map(read).collect()
    }

    fn wrong(&self, at: Range<usize>, message: String, help: &str) -> WorkloadError {
        self.error(SpecError { message, at: Some(at), help: Some(help.to_owned()) })
    }

    fn error(&self, error: SpecError) -> WorkloadError {
        match self.file {
            None => WorkloadError::Campaign(error),
            Some(text) => {
                let path = self.location.path(self.location.table_file());
                WorkloadError::Directory { path, text: text.to_owned(), error }
            }
        }
    }
}
