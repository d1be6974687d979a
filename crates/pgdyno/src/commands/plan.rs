//! `pgdyno plan`: what a campaign comes to, without running it.

use std::collections::HashMap;
use std::path::Path;

use analysis::power::{PowerCheck, noise_on, power_check};
use clap::Args;
use collect::Perf;
use diagnose::{Confound, Facts, confounds, in_words};
use host::Cache;
use model::cell::Cell;
use model::factor::Factor;
use model::limits::Limits;
use model::plan::{Plan, PlannedTrial, RunSettings};
use model::server::{ServerSpec, Source};
use model::version::{Major, VersionRequest};
use model::workload::Custom;
use plaintext::table::{Format, Table};
use serde::Serialize;
use server::{Installation, Origin};
use store::Store;

use crate::campaign_file::CampaignArg;
use crate::campaign_run::here;
use crate::exit::{Exit, Usage};
use crate::output::{FormatArg, about, note, print, print_json};
use crate::progress::PreparationProgress;
use crate::store_arg::StoreArg;

/// The JSON schema of campaign files.
const SCHEMA: &str = include_str!("../../../../docs/campaign.schema.json");

/// Show what a campaign comes to, without running it
///
/// Prints the cells (combinations of factor levels), the trials in the order in which they would run, and about how
/// long they would take; what else differs, as far as it is known before, between the levels that are to be
/// compared; whether the repeats are too few for the change that is to be shown (run.effect), at the noise that
/// trials in the store have on this host; and what can't be had here: profiles, memory and disk limits, or limits that
/// a server may not live within. Nothing is downloaded, built or started.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pgdyno plan campaigns/quick.toml\n  \
                        pgdyno plan campaigns/versions.toml --set scale=100 --strict\n  \
                        pgdyno plan campaigns/quick.toml --format json | jq '.cells | length'\n  \
                        pgdyno plan --schema > campaign.schema.json\n\n\
                        Editors that know JSON schemas for TOML take the schema by a first line\n  \
                        #:schema ./campaign.schema.json")]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    campaign: Option<CampaignArg>,

    /// Print the JSON schema of campaign files, for editors
    #[arg(long, exclusive = true)]
    schema: bool,

    /// Exit with 2 where cells that are to be compared are known to differ in more than the factor they are compared by
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    store: StoreArg,

    #[command(flatten)]
    format: FormatArg,
}

/// `plan --format json`, schema 2.
#[derive(Serialize)]
struct PlanDocument<'a> {
    schema: u32,
    campaign: &'a str,
    tags: &'a [String],
    run: RunSettings,
    /// Seconds.
    estimated_s: f64,
    servers: &'a [ServerSpec],
    cells: &'a [Cell],
    trials: &'a [PlannedTrial],
    /// The workloads that are not pgbench's.
    workloads: Vec<&'a Custom>,
    confounds: Vec<ConfoundDocument<'a>>,
    /// What the comparisons can show; null where nothing is compared, or the noise is not known.
    power: Option<&'a PowerCheck>,
}

#[derive(Serialize)]
struct ConfoundDocument<'a> {
    factor: Factor,
    baseline: &'a str,
    level: &'a str,
    what: &'a str,
    before: &'a str,
    after: &'a str,
}

impl PlanArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        if self.schema {
            print(SCHEMA)?;
            return Ok(Exit::Ok);
        }
        let Some(campaign) = &self.campaign else {
            return Err(Usage("error: no campaign is named: pgdyno plan FILE".to_owned()).into());
        };
        let plan = campaign.read(None)?.plan;
        let confounds = known_confounds(&plan)?;
        let power = power_of_plan(&plan, &self.store.root_beside(campaign.directory()));
        match self.format.get() {
            Format::Json => print_json(&document(&plan, &confounds, power.as_ref()))?,
            Format::Table => {
                let shown = table(&plan).render(Format::Table);
                print(&format!("{}{}\n{shown}", headline(&plan), described(&plan)))?;
            }
            format => print(&table(&plan).render(format))?,
        }
        let power = power.and_then(|power| power.warning());
        for warning in plan
            .warnings()
            .into_iter()
            .chain(impossible_limits(&plan))
            .chain(impossible_profile(&plan))
            .chain(power)
        {
            note(&format!("\n{warning}\n"));
        }
        if confounds.is_empty() {
            return Ok(Exit::Ok);
        }
        let text = in_words(&confounds);
        if self.strict {
            return Err(Usage(format!("error: {text}")).into());
        }
        note(&format!("\n{text}\n"));
        Ok(Exit::Ok)
    }
}

fn document<'a>(
    plan: &'a Plan,
    confounds: &'a [Confound],
    power: Option<&'a PowerCheck>,
) -> PlanDocument<'a> {
    PlanDocument {
        schema: 2,
        campaign: &plan.campaign,
        tags: &plan.tags,
        run: plan.run,
        estimated_s: plan.estimate().seconds(),
        servers: &plan.servers,
        cells: &plan.cells,
        trials: &plan.trials,
        workloads: plan.custom_workloads(),
        confounds: confounds
            .iter()
            .map(|Confound { factor, baseline, level, what, before, after }| ConfoundDocument {
                factor: *factor,
                baseline,
                level,
                what,
                before,
                after,
            })
            .collect(),
        power,
    }
}

/// What a plan's comparisons can show at the noise that the store knows of this host. A store that is not there or can't be
/// read knows nothing: nobody asked for it.
pub(crate) fn power_of_plan(plan: &Plan, store: &Path) -> Option<PowerCheck> {
    plan.run.compare?;
    let store = Store::existing(store).ok()?;
    power_check(plan, &noise_on(&store, &here().hostname).ok()?)
}

/// The limits that servers can't be held to on this machine, which may not be the one to measure on.
fn impossible_limits(plan: &Plan) -> Vec<String> {
    let mut limits: Vec<Limits> =
        plan.cells.iter().map(Cell::limits).filter(|limits| !limits.is_none()).collect();
    limits.sort();
    limits.dedup();
    let Ok(cache) = Cache::open() else { return Vec::new() };
    let why = limits.iter().filter_map(|limits| server::check_limits(&cache, limits).err());
    why.map(|why| format!("Here this can't be run: {why}")).collect()
}

/// Why profiles can't be had on this machine, where the plan asks for them.
fn impossible_profile(plan: &Plan) -> Option<String> {
    let why = Perf::find(plan.profile.as_ref()?).err()?;
    Some(format!("Here this can't be run: {why}"))
}

/// What is known of the servers before they are there: from what is in the cache, and of PostgreSQL itself.
fn known_confounds(plan: &Plan) -> anyhow::Result<Vec<Confound>> {
    // Without a cache, less is known.
    let cache = Cache::open().ok();
    let facts: HashMap<&str, Facts> = plan
        .servers
        .iter()
        .map(|server| Ok((server.name.as_str(), foreseen(cache.as_ref(), server)?)))
        .collect::<anyhow::Result<_>>()?;
    Ok(confounds(plan, |cell| facts.get(cell.server.as_str())))
}

/// What is known of a server that may not be there yet: how it was built, if it is, and whether it will have checksums,
/// of which `initdb` decides.
fn foreseen(cache: Option<&Cache>, server: &ServerSpec) -> anyhow::Result<Facts> {
    let of_version = |known: &Installation, wanted: &str| {
        known.origin() == Origin::Embedded
            && wanted.parse::<VersionRequest>().is_ok_and(|wanted| wanted.allows(known.version()))
    };
    let installation = match (cache, &server.source) {
        (Some(cache), Source::Embedded(wanted)) => {
            server::installed(cache)?.into_iter().rfind(|known| of_version(known, wanted))
        }
        (Some(cache), Source::Bin(_)) => {
            server::installation(cache, &server.source, &PreparationProgress::new()).ok()
        }
        _ => None,
    };
    let major = match (&installation, &server.source) {
        (Some(installation), _) => Some(installation.version().major()),
        (None, Source::Embedded(wanted)) => wanted.parse::<VersionRequest>().ok().map(VersionRequest::major),
        (None, _) => None,
    };
    let mut facts = installation.as_ref().map(runner::build_facts).unwrap_or_default();
    let asks = |options: [&str; 2]| server.initdb.iter().any(|option| options.contains(&option.as_str()));
    let checksums = if asks(["--data-checksums", "-k"]) {
        Some(true)
    } else if asks(["--no-data-checksums", ""]) {
        Some(false)
    } else {
        major.map(|major| major >= CHECKSUMS_BY_DEFAULT)
    };
    if let Some(checksums) = checksums {
        let value = if checksums { "on" } else { "off" };
        facts.insert("setting data_checksums".to_owned(), value.to_owned());
    }
    Ok(facts)
}

/// The first major whose `initdb` makes data checksums without being asked.
const CHECKSUMS_BY_DEFAULT: Major = Major::new(18);

/// `quick: 20 cells × 3 repeats = 60 trials, about 3 min of trials (…)`.
pub(crate) fn headline(plan: &Plan) -> String {
    format!(
        "{}: {} cells × {} repeats = {} trials of {} (warm-up {}), about {} in all; seed {}\n",
        plan.campaign,
        plan.cells.len(),
        plan.run.repeats,
        plan.trials.len(),
        lengths(plan),
        Factor::Warmup.levels(&plan.cells).join(", "),
        about(plan.estimate().seconds()),
        plan.run.seed
    )
}

/// How long windows are, such as `10s, 60s`; of what ends by itself, that it does.
fn lengths(plan: &Plan) -> String {
    let (ends, lasts): (Vec<Cell>, Vec<Cell>) =
        plan.cells.iter().cloned().partition(|cell| cell.workload.iterations().is_some());
    let mut lengths = Factor::Duration.levels(&lasts);
    if !ends.is_empty() {
        lengths.push("as long as their iterations take".to_owned());
    }
    lengths.join(", ")
}

/// What the workloads are that are not pgbench's, a line each, where they say it, and what runs beside them.
fn described(plan: &Plan) -> String {
    let line = |custom: &Custom| {
        let beside = custom.background.iter().map(|beside| {
            let rate = beside.rate.get().map(|rate| format!(" at {rate}/s")).unwrap_or_default();
            let start = (!beside.start.is_zero()).then(|| format!(" from {} on", beside.start));
            let (name, start) = (beside.workload.name(), start.unwrap_or_default());
            format!("{name} (clients: {}{rate}{start})", beside.clients)
        });
        let beside = beside.collect::<Vec<_>>().join(", ");
        let said = custom.description.clone().into_iter();
        let said: Vec<String> =
            said.chain((!beside.is_empty()).then(|| format!("beside it {beside}"))).collect();
        (!said.is_empty()).then(|| format!("{}: {}\n", custom.name, said.join("; ")))
    };
    let lines: String = plan.custom_workloads().into_iter().filter_map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// Factors that the table has though all cells have the same level.
const ALWAYS_SHOWN: [Factor; 5] =
    [Factor::Server, Factor::Settings, Factor::Workload, Factor::Scale, Factor::Clients];

fn table(plan: &Plan) -> Table {
    let varied = Factor::varied(&plan.cells);
    let shown: Vec<Factor> = Factor::ALL
        .into_iter()
        .filter(|factor| ALWAYS_SHOWN.contains(factor) || varied.contains(factor))
        .collect();
    let mark = |factor: &Factor| if factor.is_number() { "#" } else { "" };
    let heads = shown.iter().map(|factor| format!("{}{}", mark(factor), factor.name()));
    let mut table = Table::new(["#trial", "#repeat"].map(str::to_owned).into_iter().chain(heads));
    for trial in &plan.trials {
        let cell = plan.cell(trial);
        let mut row = vec![trial.position.to_string(), trial.repeat.to_string()];
        row.extend(shown.iter().map(|factor| factor.level(cell)));
        table.push(row);
    }
    table
}
