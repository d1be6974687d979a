//! The phases of a workload's table.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use model::spec::{Phase as PhaseTable, PhaseBackground, Spanned, Workload as Table};
use model::units::{Rate, Span};
use model::workload::{BackgroundWorkload, Custom, Phase, PhaseLoad, WeightedScript, Workload};

use super::{SQL_FILE, TableReader};
use crate::error::WorkloadError;
use crate::parameters;

/// Most clients, iterations and rows.
const MAX_COUNT: f64 = 2_147_483_647.0;

impl TableReader<'_> {
    /// A workload with the phases of its table, of which it is the judged one. `common` has what all of them share.
    pub(super) fn with_phases(
        &self,
        common: Custom,
        table: &Table,
        phases: &Spanned<Vec<Spanned<PhaseTable>>>,
    ) -> Result<Custom, WorkloadError> {
        self.check_common_keys(table)?;
        if let Some((campaign, overrides)) = self.overridden_by {
            campaign.check_common_keys(overrides)?;
        }
        let shared = Custom { setup: Vec::new(), teardown: Vec::new(), ..common.clone() };
        let mut known: Vec<Custom> = Vec::new();
        for phase in phases.get_ref() {
            let read = self.phase(&shared, phase)?;
            if known.iter().any(|known| known.name == read.name) {
                let message = format!("the phase \"{}\" is listed twice", read.name);
                return Err(self.wrong(
                    phase.get_ref().name.span(),
                    message,
                    "expected phases of different names",
                ));
            }
            known.push(read);
        }
        let of_campaign = self.overridden_by.and_then(|(_, overrides)| overrides.judged.as_ref());
        let given = of_campaign.or(table.judged.as_ref());
        let last = phases.get_ref().last().map(|phase| phase.get_ref().name.get_ref().as_str());
        let Some(judged) = given.map(|given| given.get_ref().as_str()).or(last) else {
            return Err(self.wrong(phases.span(), "there are no phases".to_owned(), "expected at least one"));
        };
        let reader = if of_campaign.is_some() { self.of_campaign() } else { self };
        let at = given.map_or(phases.span(), Spanned::span);
        let Some(place) = known.iter().position(|phase| phase.name == judged) else {
            let names: Vec<String> = known.iter().map(|phase| format!("\"{}\"", phase.name)).collect();
            let message = format!("there is no phase \"{judged}\"");
            return Err(reader.wrong(at, message, &format!("expected {}", names.join(", "))));
        };
        let judged_table = phases.get_ref()[place].get_ref();
        if let Some(key) = key_of_load(judged_table) {
            return Err(reader.wrong(
                at,
                format!("the judged phase \"{judged}\" has a `{key}` of its own, but it runs with the factors of its cell"),
                "leave that out, or judge another phase: `judged = \"…\"`",
            ));
        }
        let Custom { scripts, iterations, rows_per_transaction, background, .. } = known[place].clone();
        let all = known.into_iter().zip(phases.get_ref()).enumerate().map(|(at, (workload, table))| {
            let table = table.get_ref();
            let load = (at != place).then(|| self.load(workload.clone(), table)).transpose()?;
            Ok(Phase { name: workload.name, parameters: self.own_parameters(table)?, load })
        });
        let phases = all.collect::<Result<Vec<_>, WorkloadError>>()?;
        Ok(Custom { scripts, iterations, rows_per_transaction, background, phases, ..common })
    }

    /// Refuses keys that belong to a phase.
    fn check_common_keys(&self, table: &Table) -> Result<(), WorkloadError> {
        let keys = [
            ("script", table.script.as_ref().map(Spanned::span)),
            ("scripts", table.scripts.as_ref().map(Spanned::span)),
            ("iterations", table.iterations.as_ref().map(Spanned::span)),
            ("stagger", table.stagger.as_ref().map(Spanned::span)),
            ("spans", table.spans.as_ref().map(Spanned::span)),
            ("background", table.background.as_ref().map(Spanned::span)),
        ];
        match keys.into_iter().find_map(|(key, at)| Some((key, at?))) {
            None => Ok(()),
            Some((key, at)) => Err(self.wrong(
                at,
                format!("a workload with phases has no `{key}`"),
                "expected it in a phase, if phases have it: they have `script` or `scripts`, `clients`, `rate`, `iterations`, \
                 `rows`, `rows_per_transaction`, `duration`, `warmup`, `parameters` and `background`",
            )),
        }
    }

    /// A phase as a workload of its own, which shares the rest with the others.
    fn phase(&self, shared: &Custom, phase: &Spanned<PhaseTable>) -> Result<Custom, WorkloadError> {
        let table = phase.get_ref();
        let name = table.name.get_ref();
        self.check_phase_name(&table.name, name)?;
        let mut parameters = shared.parameters.clone();
        parameters::replace(&mut parameters, &table.parameters).map_err(|error| self.error(error))?;
        let scripts = match (&table.script, &table.scripts) {
            (Some(script), None) => {
                let (name, text) = self.script(script, script.get_ref())?;
                vec![WeightedScript { name, weight: 1, text }]
            }
            (None, Some(scripts)) => self.weighted_scripts(scripts, &parameters)?,
            _ => {
                let message = format!("the phase \"{name}\" must have exactly one definition");
                return Err(self.wrong(table.name.span(), message, "expected `script` or `scripts`"));
            }
        };
        let bounds = Bounds {
            iterations: table.iterations.as_ref(),
            rows: table.rows.as_ref(),
            rows_per_transaction: table.rows_per_transaction.as_ref(),
        };
        let (iterations, rows_per_transaction) = self.bounds(&bounds, &parameters)?;
        let main = Custom { scripts, iterations, rows_per_transaction, ..shared.clone() };
        let mut background: Vec<BackgroundWorkload> = Vec::new();
        for given in &table.background {
            let read = self.background_of_phase(&main, &parameters, given.get_ref())?;
            if background.iter().any(|known| known.workload.name() == read.workload.name()) {
                return Err(self.wrong(
                    given.span(),
                    format!("the background workload \"{}\" is listed twice", read.workload.name()),
                    "expected it once with all its clients, or with another `name`",
                ));
            }
            background.push(read);
        }
        self.check_script_names(&main, &background, phase.span())?;
        Ok(Custom { name: name.clone(), background, ..main })
    }

    fn check_phase_name(&self, at: &Spanned<String>, name: &str) -> Result<(), WorkloadError> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if (1..=40).contains(&name.len()) && !name.starts_with('.') && name.chars().all(is_allowed) {
            return Ok(());
        }
        Err(self.wrong(
            at.span(),
            format!("\"{name}\" is not a valid name of a phase"),
            "expected 1 to 40 letters, digits, `-`, `_` or `.`, and no `.` in front",
        ))
    }

    /// The load of a phase that is not judged.
    fn load(&self, workload: Custom, table: &PhaseTable) -> Result<PhaseLoad, WorkloadError> {
        let mut parameters = workload.parameters.clone();
        parameters::replace(&mut parameters, &table.parameters).map_err(|error| self.error(error))?;
        Ok(PhaseLoad {
            clients: self.number_of(table.clients.as_ref(), "clients", &parameters)?,
            rate: self.rate(table.rate.as_ref(), &parameters)?,
            duration: table.duration.as_ref().map(|span| *span.get_ref()),
            warmup: table.warmup.as_ref().map(|span| *span.get_ref()),
            workload: Arc::new(workload),
        })
    }

    fn own_parameters(&self, table: &PhaseTable) -> Result<BTreeMap<String, String>, WorkloadError> {
        parameters::texts(&table.parameters).map_err(|error| self.error(error))
    }

    /// A background workload of a phase.
    fn background_of_phase(
        &self,
        main: &Custom,
        parameters: &BTreeMap<String, String>,
        table: &PhaseBackground,
    ) -> Result<BackgroundWorkload, WorkloadError> {
        let file = table.script.get_ref();
        let (script, text) = self.script(&table.script, file)?;
        let name = table.name.as_ref().map_or(file.trim_end_matches(SQL_FILE), |name| name.get_ref());
        let bounds = Bounds {
            iterations: table.iterations.as_ref(),
            rows: table.rows.as_ref(),
            rows_per_transaction: table.rows_per_transaction.as_ref(),
        };
        let (iterations, rows_per_transaction) = self.bounds(&bounds, parameters)?;
        if main.iterations.is_some() && iterations.is_none() {
            return Err(self.wrong(
                table.script.span(),
                format!(
                    "\"{name}\" would never end, while the clients of its phase end after their iterations"
                ),
                "give it `iterations` or `rows`, too",
            ));
        }
        let workload = Custom {
            name: name.to_owned(),
            description: None,
            scripts: vec![WeightedScript { name: script, weight: 1, text }],
            parameters: parameters.clone(),
            iterations,
            rows_per_transaction,
            ..main.clone()
        };
        Ok(BackgroundWorkload {
            workload: Workload::Custom(Arc::new(workload)),
            clients: self.number_of(table.clients.as_ref(), "clients", parameters)?.unwrap_or(1),
            rate: self.rate(table.rate.as_ref(), parameters)?,
            start: table.start.as_ref().map_or(Span::default(), |start| *start.get_ref()),
            per_client: table.per_client,
            replica: table.replica,
        })
    }

    /// The iterations of each client, and the rows of a transaction.
    fn bounds(
        &self,
        bounds: &Bounds,
        parameters: &BTreeMap<String, String>,
    ) -> Result<(Option<u32>, Option<u32>), WorkloadError> {
        let of_transaction =
            self.number_of(bounds.rows_per_transaction, "rows_per_transaction", parameters)?;
        let rows = self.number_of(bounds.rows, "rows", parameters)?;
        let iterations = self.number_of(bounds.iterations, "iterations", parameters)?;
        let wrong = |given: &Spanned<toml::Value>, message: String, help: &str| {
            Err(self.wrong(given.span(), message, help))
        };
        match (bounds.rows.zip(rows), bounds.iterations) {
            (None, _) => Ok((iterations, of_transaction)),
            (Some((given, _)), Some(_)) => {
                wrong(given, "`rows` and `iterations` are both given".to_owned(), "expected one of them")
            }
            (Some((given, rows)), None) => match of_transaction {
                None => wrong(
                    given,
                    "how many transactions have these rows is not known".to_owned(),
                    "expected `rows_per_transaction`, too",
                ),
                Some(each) if rows % each != 0 => wrong(
                    given,
                    format!("{rows} rows of a client are no whole number of transactions of {each} rows"),
                    "expected a multiple of `rows_per_transaction`",
                ),
                Some(each) => Ok((Some(rows / each), of_transaction)),
            },
        }
    }

    /// A whole number of at least 1.
    pub(super) fn number_of(
        &self,
        given: Option<&Spanned<toml::Value>>,
        what: &str,
        parameters: &BTreeMap<String, String>,
    ) -> Result<Option<u32>, WorkloadError> {
        let Some(given) = given else { return Ok(None) };
        let number = self.value(given, what, parameters)?;
        match number.fract() == 0.0 && (1.0..=MAX_COUNT).contains(&number) {
            true => Ok(Some(number as u32)),
            false => Err(self.wrong(
                given.span(),
                format!("invalid number of {what}: {number}"),
                "expected a whole number of at least 1, or an expression of parameters with such a value",
            )),
        }
    }

    fn rate(
        &self,
        given: Option<&Spanned<toml::Value>>,
        parameters: &BTreeMap<String, String>,
    ) -> Result<Rate, WorkloadError> {
        let Some(given) = given else { return Ok(Rate::MAX) };
        if given.get_ref().as_str() == Some("max") {
            return Ok(Rate::MAX);
        }
        let number = self.value(given, "rate", parameters)?;
        Rate::per_second(number).ok_or_else(|| {
            let message = format!("invalid rate: {number}");
            self.wrong(
                given.span(),
                message,
                "expected \"max\", or transactions per second of at least 0.001",
            )
        })
    }

    fn value(
        &self,
        given: &Spanned<toml::Value>,
        what: &str,
        parameters: &BTreeMap<String, String>,
    ) -> Result<f64, WorkloadError> {
        let number = parameters::number(given.get_ref(), parameters);
        number
            .map_err(|help| self.wrong(given.span(), format!("invalid `{what}`: {}", given.get_ref()), &help))
    }
}

/// The bounds of clients as they are written.
struct Bounds<'a> {
    iterations: Option<&'a Spanned<toml::Value>>,
    rows: Option<&'a Spanned<toml::Value>>,
    rows_per_transaction: Option<&'a Spanned<toml::Value>>,
}

/// A key by which a phase differs from the factors of its cell.
fn key_of_load(table: &PhaseTable) -> Option<&'static str> {
    let given: [(&str, Option<Range<usize>>); 4] = [
        ("clients", table.clients.as_ref().map(Spanned::span)),
        ("rate", table.rate.as_ref().map(Spanned::span)),
        ("duration", table.duration.as_ref().map(Spanned::span)),
        ("warmup", table.warmup.as_ref().map(Spanned::span)),
    ];
    given.into_iter().find_map(|(key, at)| at.map(|_| key))
}
