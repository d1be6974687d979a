//! Workloads that a campaign can name, with their texts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use model::spec::Spanned;
use model::spec::{Background, Campaign, Files, SpecError, Workload as Table};
use model::units::{Rate, Span};
use model::workload::{BackgroundWorkload, Custom, ScriptText, WeightedScript, Workload, Workloads};
use script::{Names, Script};

use crate::error::WorkloadError;
use crate::read::Place;
use crate::{parameters, setup, shipped, teardown};

/// File that defines the workload of a directory.
const TABLE_FILE: &str = "workload.toml";
/// Keys that a table may have for any workload.
const ANYWHERE: [&str; 7] =
    ["duration", "warmup", "description", "stagger", "iterations", "spans", "background"];
/// Additional keys for a workload that is described elsewhere.
const ELSEWHERE: [&str; 3] = ["parameters", "script", "scripts"];
/// Suffix of a level that names an SQL file.
const SQL_FILE: &str = ".sql";

/// Workloads that a campaign can name in addition to pgbench's: those of its tables, the files that are levels
/// themselves, and those bundled with pgdyno. Relative paths are relative to `directory`. Workloads in `known` are
/// taken from there, and their files are not read.
///
/// # Errors
/// A file can't be read, a table has too many or too few keys, or a script has an error.
pub fn workloads(
    campaign: &Campaign,
    directory: &Path,
    known: &Workloads,
) -> Result<Workloads, WorkloadError> {
    let mut found = known.clone();
    let place = Place::Directory(directory.to_owned());
    for (name, table) in &campaign.workloads {
        if found.get(name.get_ref()).is_some() {
            continue;
        }
        let reading =
            Reading { name: name.get_ref(), at: name.span(), place: &place, file: None, changed_by: None };
        if let Some(custom) = reading.read_table(table)? {
            found.insert(name.get_ref(), Workload::Custom(Arc::new(custom)));
        }
    }
    let background = campaign.workloads.values().filter_map(|table| table.background.as_ref());
    let background = background
        .flat_map(|background| background.get_ref())
        .map(|background| &background.get_ref().workload);
    for level in campaign.workload_levels().chain(background) {
        let name = level.get_ref();
        if name.ends_with(SQL_FILE) && found.get(name).is_none() {
            let reading = Reading { name, at: level.span(), place: &place, file: None, changed_by: None };
            let table = Table { script: Some(level.clone()), ..Table::default() };
            found.insert(name, Workload::Custom(Arc::new(reading.read_scripts(&table)?)));
        }
    }
    for name in shipped() {
        if found.get(name).is_none()
            && let Some(custom) = read_shipped(name, None)?
        {
            found.insert(name, Workload::Custom(Arc::new(custom)));
        }
    }
    let alone = found.clone();
    for (name, table) in &campaign.workloads {
        let (Some(background), None) = (&table.background, known.get(name.get_ref())) else { continue };
        if let Some(Workload::Custom(custom)) = found.0.get_mut(name.get_ref()) {
            let reading = Reading {
                name: name.get_ref(),
                at: name.span(),
                place: &place,
                file: None,
                changed_by: None,
            };
            let background = reading.background(custom, background, &alone)?;
            let custom = Arc::make_mut(custom);
            for other in &background {
                custom.writes |= other.workload.writes();
                custom.pgbench_tables |= other.workload.custom().is_none_or(|other| other.pgbench_tables);
            }
            custom.background = background;
        }
    }
    Ok(found)
}

fn read_shipped(
    name: &str,
    changed_by: Option<(&Reading<'_>, &Table)>,
) -> Result<Option<Custom>, WorkloadError> {
    let Some(place) = shipped::place(name) else { return Ok(None) };
    Reading { name, at: 0..0, place: &place, file: None, changed_by }.read_directory(0..0).map(Some)
}

/// A table that is being read.
struct Reading<'a> {
    /// Name of the workload.
    name: &'a str,
    /// Position of the name in the text.
    at: Range<usize>,
    /// Location of the files.
    place: &'a Place,
    /// Text of the `workload.toml` with the table; none for a table of the campaign.
    file: Option<&'a str>,
    /// The campaign's table that names the workload being read, and overrides parts of it.
    changed_by: Option<(&'a Reading<'a>, &'a Table)>,
}

impl Reading<'_> {
    /// Reads a table; none for a workload of pgbench's.
    fn read_table(&self, table: &Table) -> Result<Option<Custom>, WorkloadError> {
        let elsewhere = (table.builtin.is_some(), table.directory.is_some());
        let here = (table.script.is_some(), table.scripts.is_some());
        if elsewhere == (true, true) || here == (true, true) || (elsewhere, here) == Default::default() {
            return Err(self.wrong(
                self.at.clone(),
                format!("it is not said what the workload \"{}\" does", self.name),
                "expected `builtin` or `directory`, or else `script` or `scripts`; with both, these in place of its own",
            ));
        }
        let as_pgbench_has_it = table.builtin.as_ref().is_some_and(|builtin| builtin.get_ref() == self.name);
        if Workload::builtin(self.name).is_some() && (!as_pgbench_has_it || table.says_how()) {
            return Err(self.wrong(
                self.at.clone(),
                format!("\"{}\" is pgbench's own", self.name),
                "give the workload a name of its own",
            ));
        }
        if let Some(builtin) = &table.builtin {
            if let Some(workload) = Workload::builtin(builtin.get_ref()) {
                self.only(table, "a workload that is pgbench's", &[])?;
                if !table.says_how() {
                    return Ok(None);
                }
                let script = Table { script: table.builtin.clone(), ..table.clone() };
                let custom = self.read_scripts(&script)?;
                return Ok(Some(Custom { writes: workload.writes(), ..custom }));
            }
            self.only(table, "a workload that is described elsewhere", &ELSEWHERE)?;
            // The plan reports an unknown name.
            let custom = read_shipped(builtin.get_ref(), Some((self, table)))?;
            return Ok(custom.map(|custom| self.described(custom, table)));
        }
        if let Some(directory) = &table.directory {
            self.only(table, "a workload that is described elsewhere", &ELSEWHERE)?;
            let place = match self.place {
                Place::Directory(base) => Place::Directory(base.join(directory.get_ref())),
                Place::Shipped(..) => self.place.clone(),
            };
            let changed_by = Some((self, table));
            let there =
                Reading { name: self.name, at: self.at.clone(), place: &place, file: None, changed_by };
            return there.read_directory(directory.span()).map(|custom| Some(self.described(custom, table)));
        }
        self.read_scripts(table).map(Some)
    }

    /// Reads the workload of the directory `place`, which is named at `at`.
    fn read_directory(&self, at: Range<usize>) -> Result<Custom, WorkloadError> {
        let text = self.place.read(TABLE_FILE).map_err(|why| {
            let named_by = self.changed_by.map_or(self, |(reading, _)| reading);
            named_by.wrong(
                at,
                why.to_string(),
                "expected a directory with a file workload.toml and files of SQL",
            )
        })?;
        let within = Reading {
            name: self.name,
            at: 0..0,
            place: self.place,
            file: Some(&text),
            changed_by: self.changed_by,
        };
        let table = Table::parse(&text).map_err(|error| within.error(error))?;
        let elsewhere = [&table.builtin, &table.directory].into_iter().flatten().map(Spanned::span);
        let lengths = [&table.duration, &table.warmup].into_iter().flatten().map(Spanned::span);
        let background = table.background.as_ref().map(Spanned::span);
        if let Some(at) = elsewhere.chain(lengths).chain(background).next() {
            return Err(within.wrong(
                at,
                "this has no place in a workload.toml".to_owned(),
                "leave it out: it belongs in the campaign's table [workloads.…]",
            ));
        }
        if table.script.is_some() == table.scripts.is_some() {
            return Err(within.wrong(
                0..0,
                format!("it is not said what the workload \"{}\" does", self.name),
                "expected `script` or `scripts`",
            ));
        }
        within.read_scripts(&table)
    }

    /// A workload described elsewhere, with the name and description of the campaign's table.
    fn described(&self, custom: Custom, table: &Table) -> Custom {
        let description = table.description.clone().or(custom.description);
        Custom { name: self.name.to_owned(), description, ..custom }
    }

    /// Refuses keys other than those in `may` and those that any table may have.
    fn only(&self, table: &Table, what: &str, may: &[&str]) -> Result<(), WorkloadError> {
        let keys = [
            ("script", table.script.as_ref().map(Spanned::span)),
            ("scripts", table.scripts.as_ref().map(Spanned::span)),
            ("parameters", table.parameters.keys().next().map(Spanned::span)),
            ("setup", table.setup.as_ref().map(Spanned::span)),
            ("teardown", table.teardown.as_ref().map(Spanned::span)),
            ("tables", table.tables.as_ref().map(Spanned::span)),
            ("writes", table.writes.as_ref().map(Spanned::span)),
            ("reconnect", table.reconnect.as_ref().map(Spanned::span)),
            ("raw_read", table.raw_read.as_ref().map(Spanned::span)),
        ];
        for (key, at) in keys {
            if let (Some(at), false) = (at, may.contains(&key)) {
                let may = may.iter().chain(&ANYWHERE).map(|key| format!("`{key}`"));
                let may = may.collect::<Vec<_>>().join(", ");
                return Err(self.wrong(at, format!("{what} has no `{key}`"), &format!("expected {may}")));
            }
        }
        Ok(())
    }

    /// Reads a table with `script` or `scripts`.
    fn read_scripts(&self, table: &Table) -> Result<Custom, WorkloadError> {
        let mut parameters = parameters::texts(&table.parameters).map_err(|error| self.error(error))?;
        if let Some((reading, changes)) = self.changed_by {
            parameters::replace(&mut parameters, &changes.parameters)
                .map_err(|error| reading.error(error))?;
        }
        // The campaign's scripts override the workload's own, too.
        let has_scripts = |table: &Table| table.script.is_some() || table.scripts.is_some();
        let (reading, told) =
            self.changed_by.filter(|(_, changes)| has_scripts(changes)).unwrap_or((self, table));
        let scripts = match (&told.script, &told.scripts) {
            (Some(script), _) => {
                let (name, text) = reading.script(script, script.get_ref())?;
                vec![WeightedScript { name, weight: 1, text }]
            }
            (None, Some(scripts)) => reading.weighted(scripts, &parameters)?,
            (None, None) => Vec::new(),
        };
        let pgbench_tables = match table.tables.as_ref().map(|tables| (tables.get_ref().as_str(), tables)) {
            None | Some(("pgbench", _)) => true,
            Some(("none", _)) => false,
            Some((other, at)) => {
                return Err(self.wrong(
                    at.span(),
                    format!("there are no tables \"{other}\""),
                    "expected \"pgbench\" or \"none\"",
                ));
            }
        };
        // The campaign's table overrides the workload's own.
        let tables = || self.changed_by.map(|(_, changes)| changes).into_iter().chain([table]);
        let iterations = tables().find_map(|table| table.iterations.as_ref());
        let iterations = iterations.map(|iterations| self.count(iterations, "iterations")).transpose()?;
        let custom = Custom {
            name: self.name.to_owned(),
            description: table.description.clone(),
            scripts,
            parameters,
            setup: self.texts(table.setup.as_ref())?,
            teardown: self.texts(table.teardown.as_ref())?,
            pgbench_tables,
            writes: table.writes.as_ref().is_none_or(|writes| *writes.get_ref()),
            reconnect: table.reconnect.as_ref().is_some_and(|reconnect| *reconnect.get_ref()),
            raw_read: table.raw_read.as_ref().map(|relation| relation.get_ref().clone()),
            stagger: tables()
                .find_map(|table| table.stagger.as_ref())
                .map_or(Span::default(), |span| *span.get_ref()),
            iterations,
            spans: tables().find_map(|table| table.spans.as_ref()).is_some_and(|spans| *spans.get_ref()),
            background: Vec::new(),
        };
        let mut checked = custom.clone();
        for text in checked.setup.iter_mut().chain(&mut checked.teardown) {
            // Errors show the whole path, which is no part of the workload.
            text.name = self.place.path(&text.name).display().to_string();
        }
        // `check` computes them at the cells' scales later.
        setup(&checked, 1)?;
        teardown(&checked, 1)?;
        Ok(custom)
    }

    /// A number of at least 1.
    fn count(&self, given: &Spanned<i64>, of: &str) -> Result<u32, WorkloadError> {
        let number = u32::try_from(*given.get_ref()).ok().filter(|number| *number > 0);
        number.ok_or_else(|| {
            let message = format!("{} is no number of {of}", given.get_ref());
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
                    "expected one of pgbench's, one that comes along, the name of a [workloads.…] table, or a file of SQL",
                );
            };
            let other = workload.custom();
            if name == self.name || other.is_some_and(|other| !other.background.is_empty()) {
                return wrong(
                    format!("\"{name}\" has background workloads itself"),
                    "expected one that runs by itself",
                );
            }
            if all.iter().any(|there| there.workload.name() == name) {
                return wrong(format!("\"{name}\" is there twice"), "expected it once, with all its clients");
            }
            if custom.iterations.is_some() && other.is_none_or(|other| other.iterations.is_none()) {
                return wrong(
                    format!("\"{name}\" would never end beside a workload that ends after its iterations"),
                    "give it `iterations`, too, or make it the one that others run beside",
                );
            }
            let clients = table.clients.as_ref().map(|clients| self.count(clients, "clients")).transpose()?;
            let rate = table.rate.as_ref().map_or(Rate::MAX, |rate| *rate.get_ref());
            let start = table.start.as_ref().map_or(Span::default(), |start| *start.get_ref());
            all.push(BackgroundWorkload { workload, clients: clients.unwrap_or(1), rate, start });
        }
        let mut names: Vec<String> = custom.scripts.iter().map(|script| script.name.clone()).collect();
        for there in &all {
            let scripts = match there.workload.custom() {
                None => vec![there.script(there.workload.name())],
                Some(other) => other.scripts.iter().map(|script| there.script(&script.name)).collect(),
            };
            if let Some(name) = scripts.iter().find(|script| names.contains(script)) {
                let message = format!("the script \"{name}\" is there twice");
                return Err(self.wrong(background.span(), message, "expected scripts of different names"));
            }
            names.extend(scripts);
        }
        Ok(all)
    }

    fn weighted(
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
                let message = format!("the script \"{name}\" is there twice");
                return Err(self.wrong(given.span(), message, "expected it once, with its weight"));
            }
            found.push(WeightedScript { name, weight, text });
        }
        if found.iter().any(|script| script.weight > 0) {
            Ok(found)
        } else {
            Err(self.wrong(
                scripts.span(),
                "no script would ever be chosen".to_owned(),
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
                self.place.read(file).map_err(|why| self.wrong(given.span(), why.to_string(), expected))?
            }
        };
        let path = self.place.path(file).display().to_string();
        Script::parse(&path, &text, &mut Names::default())
            .map_err(|error| WorkloadError::Script(format!("error: {error}")))?;
        Ok((file.to_owned(), text))
    }

    fn texts(&self, files: Option<&Spanned<Files>>) -> Result<Vec<ScriptText>, WorkloadError> {
        let Some(files) = files else { return Ok(Vec::new()) };
        let read = |file: &String| match self.place.read(file) {
            Ok(text) => Ok(ScriptText { name: file.clone(), text }),
            Err(why) => Err(self.wrong(files.span(), why.to_string(), "expected files of SQL")),
        };
        files.get_ref().0.iter().map(read).collect()
    }

    fn wrong(&self, at: Range<usize>, message: String, help: &str) -> WorkloadError {
        self.error(SpecError { message, at: Some(at), help: Some(help.to_owned()) })
    }

    fn error(&self, error: SpecError) -> WorkloadError {
        match self.file {
            None => WorkloadError::Campaign(error),
            Some(text) => {
                WorkloadError::Directory { path: self.place.path(TABLE_FILE), text: text.to_owned(), error }
            }
        }
    }
}
