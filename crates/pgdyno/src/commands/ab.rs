//! `pgdyno ab`: two servers, or settings or kernels of one, compared without a campaign file.

pub(super) mod count;
pub(super) mod load;
mod pin;
pub(super) mod servers;
mod subject;
pub(super) mod workload;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use analysis::compare::{Compared, Gate, Gates, Request, compare};
use analysis::judgement::Outcome;
use analysis::metric::Metric;
use analysis::overview::view::View;
use analysis::select::{RunSelection, Selector};
use bench::WeightedName;
use clap::Args;
use host::Cache;
use model::factor::pin::Processors;
use model::merit::Merit;
use model::plan::DEFAULT_EFFECT;
use model::record::{Run, Trial};
use model::units::{Rate, Share, Span};
use model::workload::Protocol;
use report::plan::headline;
use runner::campaign::RunOutcome;
use runner::campaign_file::CampaignFile;
use runner::campaign_file::ab::{Comparison, Method, Sides};
use store::Store;

use crate::campaign_run::{CampaignRun, closing_lines, exit};
use crate::comparison::comparison;
use crate::completion;
use crate::exit::{Exit, Undecided, Usage};
use crate::output::{command_line, note, print};
use crate::progress::PreparationProgress;
use crate::reading::Reading;
use crate::result_output::{ResultFormat, ResultOutput};
use crate::store_arg::StoreArg;
use count::CountArgs;
use load::LoadArgs;
use workload::WorkloadArgs;

const EXAMPLES: &str = "\
Examples:
  pgdyno ab 17 18                                      two versions, with pgbench's tpcb-like at scale 10
  pgdyno ab ./base ./patched -S -c 4                   two directories of programs or of sources, which are built
  pgdyno ab master my-branch --repo ./postgres -S      two refs of a git repository
  pgdyno ab ./postgres --patch fix.patch -N            a source without and with a patch
  pgdyno ab 16 17 18 --margin 2% --max-time 1h         several, each with the first
  pgdyno ab 18 --b-set plan_cache_mode=force_custom_plan script.sql@3 other.sql
                                                       two settings of one server, with scripts of one's own
  pgdyno ab 17 18 --dump shop.sql.gz app.sql           two versions, on a copy of one's own database
  pgdyno ab 18 18 -S                                   a server with itself: what this machine can show
  pgdyno ab 17 18 -S --driver-cpus 0-3 --server-cpus 4-15
                                                       other CPUs than half of them for the driver and half for the servers
  pgdyno ab ./base ./patched --fail 'tps < -5%' --undecided pass --max-time 15min
                                                       in CI: exit code 3 if throughput fell by more than 5 %
  pgdyno ab ./base ./patched --fail 'tps < -5%' --output junit=pgdyno.xml --output markdown=summary.md
                                                       the same, with files for the CI system
  pgdyno ab 17 18 -S --count                           instructions per transaction, where the machine is too noisy
  pgdyno ab 18 --a-kernel 6.1 --b-kernel 6.12 -S       two kernels, in virtual machines that count instructions

Exit codes: 0 decided, no gate is hit, or all servers are byte-identical, 1 error, 2 usage, 3 a gate is hit, 4 no trial is
usable, 6 not decided within the time, 130 interrupted.";

/// Compare servers, or settings of one, in pairs: did it change?
///
/// The servers run at the same time, and the load alternates between them in short slices, so that disturbances of the
/// machine affect both alike. Each session has newly started servers; sessions are added until it is decided whether the
/// change exceeds the margin, or the time is over. The result is a run in the store: report, show, compare, explain and
/// resume work with it.
///
/// A SERVER is a version (18, 16.4), the name of a build, a directory with a server's programs or with PostgreSQL's source, a
/// tarball of the source, or with --repo a branch, tag or commit. Sources are built once. Arguments that end in .sql or
/// .sql@WEIGHT are scripts.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AbArgs {
    /// The servers, the first of which is the baseline, and scripts
    #[arg(value_name = "SERVER|SCRIPT.sql", required = true, add = completion::servers_and_paths())]
    arguments: Vec<String>,

    /// Git repository whose branches, tags or commits the SERVERs are
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,

    /// Compare the source that SERVER names with the same source and this patch; may be repeated, to apply several
    #[arg(long = "patch", value_name = "FILE")]
    patches: Vec<PathBuf>,

    /// Setting of all servers; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<Setting>,

    /// Compare settings of one server: setting of the baseline; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    a_set: Vec<Setting>,

    /// Compare settings of one server: setting of the variant; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    b_set: Vec<Setting>,

    #[command(flatten)]
    workload: WorkloadArgs,

    #[command(flatten)]
    load: LoadArgs,

    /// Transactions started per second, such as 400/s: latency is compared [default: as many as possible: throughput is]
    #[arg(short = 'R', long, value_name = "RATE", help_heading = "Load", value_parser = bench::positive_rate)]
    rate: Option<f64>,

    /// The smallest change that matters [default: 5%; of counted instructions 1%]
    #[arg(long, value_name = "SHARE", help_heading = "Decision")]
    margin: Option<Share>,

    /// Time for the sessions: the last one begins before it is over [default: 10min]
    #[arg(long, value_name = "TIME", help_heading = "Decision")]
    max_time: Option<Span>,

    /// Exit with 3 if it changed by more than this, such as 'tps < -5%' or 'latency.mean > 10%'; may be repeated
    #[arg(long = "fail", value_name = "GATE", allow_hyphen_values = true, help_heading = "Decision")]
    gates: Vec<Gate>,

    /// What it means that the time was too short to decide [default: exit with 6]
    #[arg(long, value_enum, value_name = "MEANING", help_heading = "Decision")]
    undecided: Option<Undecided>,

    #[command(flatten)]
    count: CountArgs,

    /// Take CPU profiles, for `pgdyno profile`
    #[arg(long, help_heading = "Run")]
    profile: bool,

    /// Name of the campaign
    #[arg(long, value_name = "NAME", default_value = "ab", help_heading = "Run")]
    name: String,

    /// Tag to find the trials by; may be repeated
    #[arg(long, value_name = "NAME", help_heading = "Run")]
    tag: Vec<String>,

    /// Notes, stored in every bundle
    #[arg(long, value_name = "TEXT", help_heading = "Run")]
    notes: Option<String>,

    /// Seed of the order and of the scripts' random numbers [default: drawn, and recorded]
    #[arg(long, value_name = "N", help_heading = "Run")]
    seed: Option<u64>,

    /// Do not wait for other pgdynos that measure on this host: each makes the other's trials suspect
    #[arg(long, help_heading = "Run")]
    allow_concurrent: bool,

    /// Print the campaign instead of running it
    #[arg(long, help_heading = "Run")]
    print_campaign: bool,

    #[command(flatten)]
    output: ResultOutput,

    #[command(flatten)]
    store: StoreArg,
}

impl AbArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let mut comparison = self.comparison()?;
        let mut file = CampaignFile::parse(Path::new(&self.name), comparison.to_toml(), None)?;
        if self.print_campaign {
            print(&file.text)?;
            return Ok(Exit::Ok);
        }
        file.check_datasets(&PreparationProgress::new())?;
        let cache = Cache::open()?;
        file.check_servers(&cache)?;
        let foreign = match self.count.is_paired() {
            true => self.load.pin.foreign_use(self.allow_concurrent),
            false => None,
        };
        if let Some(foreign) = &foreign {
            comparison.pin = Processors::none();
            comparison.cpu_decides |= self.gates.is_empty();
            let decides = if comparison.cpu_decides { ", and server CPU time decides, too" } else { "" };
            note(&format!(
                "other processes use {foreign}: driver and servers are not pinned{decides} (--pin separate pins them nevertheless)\n"
            ));
            file = CampaignFile::parse(Path::new(&self.name), comparison.to_toml(), None)?;
        }
        let origins = subject::origins(&comparison);
        let store = Store::open(&self.store.root())?;
        let (run, outcome) = self.measure(&file, &store)?;
        let decide = || -> anyhow::Result<Exit> {
            let reading = Reading::of(&store)?;
            let compared = compare(&reading, &self.request(&file, &run.id)?)?;
            let is_open = !is_decided(&compared) && !outcome.interrupted;
            let is_text = self.output.format() == ResultFormat::Table;
            let counted = if is_open && is_text { self.second_opinion(&comparison, &store) } else { None };
            let trials: Vec<&Trial> =
                reading.trials().iter().filter(|trial| trial.run.id == run.id).collect();
            let mut facts = subject::facts(&comparison, &origins, &cache, &trials);
            facts.extend(foreign.map(|foreign| ("other load".to_owned(), foreign)));
            self.print_result(&reading, &run.id, &compared, facts, counted.as_ref())?;
            if is_open && self.count.is_paired() && !is_refused(&compared) {
                let more = Span::from_us(2 * self.max_time().us());
                note(&format!(
                    "more time for sessions: pgdyno resume --run {} --set max_time={more}\n",
                    run.id
                ));
            }
            Ok(self.exit(&compared))
        };
        let decision = match (outcome.progress.usable > 0).then(decide).transpose() {
            // A side may have no trial yet; and the terminal may have been closed, which interrupts the run.
            Err(_) if outcome.interrupted => None,
            decision => decision?,
        };
        note(&closing_lines(&outcome, store.root(), false));
        Ok(match (exit(&outcome), decision) {
            (Exit::Interrupted, _) => Exit::Interrupted,
            (failed, None) => failed,
            (_, Some(decision)) => decision,
        })
    }

    /// Runs a campaign.
    fn measure(&self, file: &CampaignFile, store: &Store) -> anyhow::Result<(Run, RunOutcome)> {
        note(&headline(&file.plan));
        for warning in file.plan.warnings() {
            note(&format!("{warning}\n"));
        }
        let run = file.new_run(&[]);
        let allow_concurrent = self.allow_concurrent;
        let trials =
            CampaignRun { file, run: &run, trials: &[], fleet: None, strict: false, allow_concurrent };
        let outcome = trials.measure(store)?;
        Ok((run, outcome))
    }

    /// Counts the instructions of a comparison that sessions have not decided, if this machine can do so now. That it
    /// fails or is interrupted takes nothing from what was measured.
    fn second_opinion(&self, comparison: &Comparison, store: &Store) -> Option<View> {
        // At a rate, latency is compared, of which the number of instructions says nothing.
        let kernel = self.count.kernel_of_second_opinion().filter(|_| self.rate.is_none())?;
        let counted = Comparison {
            name: format!("{}-count", comparison.name),
            method: Method::Count,
            virtual_machines: Some(count::counting(vec![kernel])),
            // Virtual machines have CPUs of their own.
            pin: Processors::none(),
            ..comparison.clone()
        };
        note("not decided in pairs: counting instructions as a second opinion (Ctrl-C ends it)\n");
        let count = || -> anyhow::Result<Option<View>> {
            let file = CampaignFile::parse(Path::new(&counted.name), counted.to_toml(), None)?;
            let (run, outcome) = self.measure(&file, store)?;
            if outcome.progress.usable == 0 {
                return Ok(None);
            }
            let reading = Reading::of(store)?;
            Ok(analysis::overview::read_run(&reading, &run.id)?)
        };
        count().unwrap_or_else(|error| {
            note(&format!("could not count instructions: {error:#}\n"));
            None
        })
    }

    /// Prints the comparison of a run's trials, with that of counted instructions if they were counted as a second opinion.
    fn print_result(
        &self,
        reading: &Reading,
        run: &str,
        compared: &Compared,
        facts: Vec<(String, String)>,
        counted: Option<&View>,
    ) -> anyhow::Result<()> {
        let Some(view) = analysis::overview::read_run(reading, run)? else { return Ok(()) };
        let max_time = self.count.is_paired().then(|| self.max_time());
        let gates = compared.gates_in_words();
        let subject = report::ab::Subject { facts, command: command_line(&[]), gates, max_time };
        let table = report::ab::text(&view, counted, &subject);
        self.output.print(|format, terminal| match format {
            ResultFormat::Table => Ok(table.clone()),
            _ => comparison(reading, compared, self.undecided, format, terminal),
        })
    }

    /// The comparison of each side with the first.
    fn request(&self, file: &CampaignFile, run: &str) -> anyhow::Result<Request> {
        let mut selectors: Vec<Selector> = Vec::new();
        for cell in &file.plan.cells {
            let level =
                file.plan.run.compare.map(|factor| format!(",{}={}", factor.name(), factor.level(cell)));
            selectors.push(format!("run:{run}{}", level.unwrap_or_default()).parse()?);
        }
        let run = RunSelection::Run(run.to_owned());
        Ok(Request { selectors, run, metrics: Vec::new(), gates: self.gates.clone(), margins: Vec::new() })
    }

    /// Exit code of a comparison. Without a gate, the verdicts decide.
    fn exit(&self, compared: &Compared) -> Exit {
        let gates = match self.gates.is_empty() {
            true => Gates { hit: false, undecided: !is_decided(compared) },
            false => compared.gates_state(),
        };
        Exit::from_gates(gates, self.undecided, compared.is_invalid())
    }

    /// The comparison that the command line asks for.
    fn comparison(&self) -> Result<Comparison, Usage> {
        let (scripts, names): (Vec<&String>, Vec<&String>) =
            self.arguments.iter().partition(|argument| is_script(argument));
        let scripts =
            scripts.into_iter().map(|script| script.parse()).collect::<Result<Vec<WeightedName>, _>>();
        let sides = self.sides(&names.into_iter().cloned().collect::<Vec<_>>())?;
        let virtual_machines = self.count.kernels().map(count::counting);
        let (method, pin) = match &virtual_machines {
            Some(_) if self.rate.is_some() || self.max_time.is_some() || self.load.pin.has_lists() => {
                return Err(Usage(
                    "error: instructions (--count, --a-kernel) are counted without --rate, --max-time, --driver-cpus and \
                     --server-cpus"
                        .to_owned(),
                ));
            }
            // Virtual machines have CPUs of their own.
            Some(_) => (Method::Count, Processors::none()),
            None => (Method::Pairs(self.max_time()), self.load.pin.processors()),
        };
        Ok(Comparison {
            name: self.name.clone(),
            description: command_line(&["--print-campaign"]),
            tags: self.tag.clone(),
            notes: self.notes.clone(),
            sides,
            settings: settings(&self.set),
            workload: self.workload.workload(scripts.map_err(Usage::from_error)?)?,
            scale: self.workload.scale,
            clients: self.load.clients,
            threads: self.load.threads,
            pin,
            cpu_decides: self.gates.iter().any(|gate| gate.metric == Metric::CpuPerTransaction),
            protocol: Protocol::from(self.load.protocol),
            rate: self.rate.and_then(Rate::per_second).unwrap_or(Rate::MAX),
            margin: self.margin(),
            method,
            virtual_machines,
            seed: self.seed,
            profile: self.profile,
        })
    }

    fn max_time(&self) -> Span {
        self.max_time.unwrap_or(Span::from_us(600_000_000))
    }

    /// The margin that decides when the run ends: a tighter gate on a figure that decides makes it as small.
    fn margin(&self) -> Option<Share> {
        let merit = if self.rate.is_some() { Merit::Latency } else { Merit::Throughput };
        let deciding = Metric::deciding(merit, true);
        let of_deciding = self.gates.iter().filter(|gate| deciding.contains(&gate.metric));
        let bounds = of_deciding.map(|gate| gate.bound.abs()).filter(|bound| *bound > 0.0);
        let margin = self.margin.map_or(DEFAULT_EFFECT, |Share(margin)| margin);
        bounds.filter(|bound| *bound < margin).min_by(f64::total_cmp).map(Share).or(self.margin)
    }

    fn sides(&self, names: &[String]) -> Result<Sides, Usage> {
        let servers = servers::servers(names, self.repo.as_deref(), &self.patches)?;
        let has_settings = !self.a_set.is_empty() || !self.b_set.is_empty();
        let is_same = servers.iter().all(|server| server.source == servers[0].source);
        match servers.as_slice() {
            [] => Err(Usage("error: no SERVER is named: expected two, such as 17 18".to_owned())),
            [server] if self.count.compares_kernels() && !has_settings => Ok(Sides::Kernels(server.clone())),
            _ if self.count.compares_kernels() => Err(Usage(
                "error: --a-kernel and --b-kernel compare two kernels under one SERVER, with --set for its settings"
                    .to_owned(),
            )),
            [_] if !has_settings => Err(Usage(format!(
                "error: nothing to compare {} with: name another SERVER, or use --b-set NAME=VALUE or --patch FILE",
                servers[0].name
            ))),
            [server] | [server, _] if has_settings && is_same => {
                let sides = [("a", &self.a_set), ("b", &self.b_set)];
                let sides = sides.map(|(name, given)| (name.to_owned(), settings(given)));
                Ok(Sides::Settings(server.clone(), sides.into()))
            }
            _ if has_settings => Err(Usage(
                "error: the sides would differ in server and in settings, so that neither explains a change: compare one at a \
                 time, with --set for settings of all servers"
                    .to_owned(),
            )),
            _ => Ok(Sides::Servers(servers)),
        }
    }
}

/// Whether an argument is a script: `FILE.sql`, with a weight or without.
pub(super) fn is_script(argument: &str) -> bool {
    let name = argument.rsplit_once('@').map_or(argument, |(name, _)| name);
    Path::new(name).extension().is_some_and(|extension| extension == "sql")
}

/// A setting of a server, `NAME=VALUE`.
#[derive(Clone, Debug)]
pub(super) struct Setting(String, String);

impl std::str::FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok(Self(name.trim().to_owned(), value.trim().to_owned()))
            }
            _ => Err("expected NAME=VALUE, such as work_mem=64MB".to_owned()),
        }
    }
}

pub(super) fn settings(given: &[Setting]) -> BTreeMap<String, String> {
    given.iter().map(|Setting(name, value)| (name.clone(), value.clone())).collect()
}

/// Whether there are comparisons, and each has a verdict.
fn is_decided(compared: &Compared) -> bool {
    let mut outcomes = compared.outcomes().peekable();
    outcomes.peek().is_some() && outcomes.all(Outcome::is_decided)
}

/// Whether more sessions would not give a verdict.
fn is_refused(compared: &Compared) -> bool {
    compared.outcomes().any(|outcome| matches!(outcome, Outcome::Refused(_)))
}
