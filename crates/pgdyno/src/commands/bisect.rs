//! `pgdyno bisect`: the commit, release, setting or kernel that changed the performance.

mod axis;
mod candidates;
mod kernels;
mod run_test;
mod settings;

use std::path::{Path, PathBuf};

use bench::WeightedName;
use clap::{Args, ValueEnum};
use host::Cache;
use model::factor::pin::Processors;
use model::machine::Acceleration;
use model::paired::PairedFigure;
use model::plan::DEFAULT_CONFIDENCE;
use model::units::{Rate, Share, Span};
use model::workload::Protocol;
use runner::campaign_file::CampaignFile;
use runner::campaign_file::ab::{Comparison, Method, Search, VirtualMachines};
use store::Store;

use crate::bisection::{self, BisectionFormat};
use crate::campaign_run::{CampaignRun, program};
use crate::commands::ab::is_script;
use crate::commands::ab::load::LoadArgs;
use crate::commands::ab::servers::absolute;
use crate::commands::ab::workload::WorkloadArgs;
use crate::completion;
use crate::exit::{Exit, Usage};
use crate::output::{command_line, note, print};
use crate::progress::PreparationProgress;
use crate::store_arg::StoreArg;
use kernels::KernelsArgs;
use run_test::TestRun;
use settings::SettingsArgs;

const EXAMPLES: &str = "\
Examples:
  pgdyno bisect REL_17_0 master --repo ./postgres -S -c 4
                                                       which commit of a git repository
  pgdyno bisect 16.0..16.9 -N                          which minor release
  pgdyno bisect 13 18 my-query.sql                     which major
  pgdyno bisect 18 --good-conf old.conf --bad-conf new.conf
                                                       which setting of two configurations
  pgdyno bisect --kernels 6.1 6.12 --server 18 -S -c 1  which kernel, in virtual machines
  pgdyno bisect --kernels v6.6 v6.7 --repo ./linux -S  which commit of Linux: kernels are built
  pgdyno bisect 18 --kernel 6.12 --bad-args 'mitigations=off nosmt' -S
                                                       which argument on a kernel's command line
  pgdyno bisect v1 v2 --repo . -S --metric server-cpu  by server CPU time per transaction: next to other load
  pgdyno bisect v1 v2 --repo . -S --max-time 30min     at most half an hour; resume goes on
  pgdyno bisect v1 v2 --repo . --run './configure -q && make -s check'
                                                       by a test that may be wrong now and then

Exit codes: 0 found, or both ends are equivalent, 1 error, 2 usage, 4 no session is usable, 6 not known within the time, 130
interrupted.";

/// Find the commit, release, setting or kernel that changed the performance
///
/// Both ends are compared first, in pairs of sessions as in `pgdyno ab`. If they differ, commits between them are built and
/// measured against GOOD, each time the one that tells most per second, until one is known with --confidence. A commit that does
/// not build is left out, and its neighbours are measured. The result is a run in the store: resume continues it, and report,
/// show, compare and explain work with it.
///
/// GOOD and BAD are branches, tags or commits of --repo, releases (16.0 16.9, or 16.0..16.9), with --kernels kernels, or one
/// server whose settings differ. Nothing in the repository is changed. Arguments that end in .sql or .sql@WEIGHT are scripts.
///
/// Kernels run in virtual machines, by KVM or, where that does not work, by an emulator that counts instructions. A session is then
/// a trial of each of both, one after the other.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BisectArgs {
    /// Both ends, as two arguments or as GOOD..BAD, and scripts; with --kernels also all kernels, or their directory
    #[arg(value_name = "GOOD|BAD|SCRIPT.sql", required = true, add = completion::servers_and_paths())]
    arguments: Vec<String>,

    /// Git repository with the commits
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,

    /// Test of the user's own, which is run in a work tree of each commit: exit code 0 is good, 1 to 127 bad, 125 not testable. It
    /// need not always be right
    #[arg(
        long,
        value_name = "COMMAND",
        requires = "repo",
        conflicts_with_all = [
            "set", "good_set", "bad_set", "good_conf", "bad_conf", "kernels", "kernel", "good_args", "bad_args", "good_sysctl",
            "bad_sysctl", "select_only", "skip_some_updates", "builtin", "file", "define",
            "dump", "scale", "clients", "rate", "metric", "margin", "build_while_measuring", "cache_size", "profile", "tag", "notes", "seed", "print_campaign",
        ]
    )]
    run: Option<String>,

    #[command(flatten)]
    settings: SettingsArgs,

    #[command(flatten)]
    kernels: KernelsArgs,

    #[command(flatten)]
    workload: WorkloadArgs,

    #[command(flatten)]
    load: LoadArgs,

    /// Transactions started per second, such as 400/s: mean latency is searched [default: as many as possible]
    #[arg(short = 'R', long, value_name = "RATE", help_heading = "Load", value_parser = bench::positive_rate)]
    rate: Option<f64>,

    /// The figure whose change is searched [default: throughput, with --rate latency; next to other load server-cpu; of kernels
    /// without KVM instructions]
    #[arg(long, value_enum, value_name = "FIGURE", help_heading = "Decision")]
    metric: Option<FigureName>,

    /// The smallest change of both ends that matters [default: 2%; of counted instructions at most 1%]
    #[arg(long, value_name = "SHARE", help_heading = "Decision")]
    margin: Option<Share>,

    /// Probability at which a commit, release, setting or kernel is named [default: 95%]
    #[arg(long, value_name = "SHARE", help_heading = "Decision")]
    confidence: Option<Share>,

    /// Time for the sessions: the last one begins before it is over [default: no limit]
    #[arg(long, value_name = "TIME", help_heading = "Decision")]
    max_time: Option<Span>,

    /// Build the next commit while sessions of others run: this takes less time, and may disturb them
    #[arg(long, help_heading = "Run")]
    build_while_measuring: bool,

    /// Size of all builds in the cache, such as 20GB: before a new one, the least recently used are removed, unless they are in use
    /// [default: PGDYNO_BUILDS_MAX, else no limit]
    #[arg(long, value_name = "SIZE", help_heading = "Run", value_parser = size)]
    cache_size: Option<u64>,

    /// Take CPU profiles, for `pgdyno profile`
    #[arg(long, help_heading = "Run")]
    profile: bool,

    /// Name of the campaign
    #[arg(long, value_name = "NAME", default_value = "bisect", help_heading = "Run")]
    name: String,

    /// Tag to find the trials by; may be repeated
    #[arg(long, value_name = "NAME", help_heading = "Run")]
    tag: Vec<String>,

    /// Notes, stored in every bundle
    #[arg(long, value_name = "TEXT", help_heading = "Run")]
    notes: Option<String>,

    /// Seed of the scripts' random numbers [default: drawn, and recorded]
    #[arg(long, value_name = "N", help_heading = "Run")]
    seed: Option<u64>,

    /// Do not wait for other pgdynos that measure on this host: each makes the other's trials suspect
    #[arg(long, help_heading = "Run")]
    allow_concurrent: bool,

    /// Print the campaign instead of running it
    #[arg(long, help_heading = "Run")]
    print_campaign: bool,

    /// How to print the result
    #[arg(long, value_enum, default_value = "table", value_name = "FORMAT")]
    format: BisectionFormat,

    #[command(flatten)]
    store: StoreArg,
}

/// The smallest change that matters: users come with a change that they have seen.
const DEFAULT_MARGIN: Share = Share(0.02);

/// A figure whose change is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FigureName {
    /// Transactions per second
    Throughput,
    /// Mean latency from the intended start
    Latency,
    /// CPU time of the server per transaction, which other load hardly affects
    ServerCpu,
    /// Instructions of the server's programs per transaction, where the CPU counts them
    ServerInstructions,
    /// Instructions of client, server and kernel per transaction, of kernels: an emulator counts them
    Instructions,
}

impl BisectArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        if let Some((test, repository)) = self.run.as_ref().zip(self.repo.as_ref()) {
            let ends = self.ends();
            let [good, bad] = ends.as_slice() else {
                return Err(Usage("error: expected two ends: the commits GOOD and BAD".to_owned()).into());
            };
            let test_run = TestRun {
                repository: absolute(repository)?,
                ends: (*good, *bad),
                test,
                confidence: self.confidence.map_or(DEFAULT_CONFIDENCE, |share| share.0),
                max_time: self.max_time.map(|time| time.duration()),
                store: self.store.root(),
                format: self.format,
            };
            return test_run.run();
        }
        let mut comparison = self.comparison()?;
        let parse =
            |comparison: &Comparison| CampaignFile::parse(Path::new(&self.name), comparison.to_toml(), None);
        let mut file = parse(&comparison)?;
        if self.print_campaign {
            print(&file.text)?;
            return Ok(Exit::Ok);
        }
        if let Some(bytes) = self.cache_size {
            server::limit_builds(bytes);
        }
        let cache = Cache::open()?;
        file.check_servers(&cache)?;
        if comparison.virtual_machines.is_some() {
            let bar = PreparationProgress::new();
            let chosen = file.choose_acceleration(&cache, &program()?, &bar);
            bar.clear();
            file = chosen?;
        } else if let Some(foreign) = self.load.pin.foreign_use(self.allow_concurrent) {
            comparison.pin = Processors::none();
            let by_cpu = self.metric.is_none() && self.rate.is_none();
            if by_cpu {
                comparison.method = Method::Bisect(self.search(Some(PairedFigure::ServerCpu)));
            }
            let searched = if by_cpu { ", and server CPU time per transaction is searched" } else { "" };
            note(&format!(
                "other processes use {foreign}: driver and servers are not pinned{searched} (--pin separate pins them nevertheless)\n"
            ));
            file = parse(&comparison)?;
        }
        let store = Store::open(&self.store.root())?;
        let run = file.new_run(&[]);
        note(&report::plan::headline(&file.plan));
        let allow_concurrent = self.allow_concurrent;
        let run =
            CampaignRun { file: &file, run: &run, trials: &[], fleet: None, strict: false, allow_concurrent };
        bisection::search(run, &store, self.format)
    }

    fn search(&self, default: Option<PairedFigure>) -> Search {
        let figure = self.metric.map(|name| match name {
            FigureName::Throughput => PairedFigure::Throughput,
            FigureName::Latency => PairedFigure::Latency,
            FigureName::ServerCpu => PairedFigure::ServerCpu,
            FigureName::ServerInstructions => PairedFigure::ServerInstructions,
            FigureName::Instructions => PairedFigure::Instructions,
        });
        Search {
            figure: figure.or(default),
            confidence: self.confidence,
            build_while_measuring: self.build_while_measuring,
            max_time: self.max_time,
        }
    }

    /// The ends that the command line names.
    fn ends(&self) -> Vec<&str> {
        let names: Vec<&String> = self.arguments.iter().filter(|argument| !is_script(argument)).collect();
        // A path to a kernel may have two dots.
        let are_paths = self.kernels.are_ends() && self.repo.is_none();
        let is_range = |name: &str| name.contains("..") && !(are_paths && name.contains('/'));
        match names.as_slice() {
            [range] if is_range(range) => range.splitn(2, "..").collect(),
            _ => names.iter().map(|name| name.as_str()).collect(),
        }
    }

    /// What the command line asks for.
    fn comparison(&self) -> Result<Comparison, Usage> {
        let scripts = self.arguments.iter().filter(|argument| is_script(argument));
        let scripts = scripts.map(|script| script.parse()).collect::<Result<Vec<WeightedName>, _>>();
        let axis = axis::axis(&self.ends(), self.repo.as_deref(), &self.settings, &self.kernels)?;
        let virtual_machines = axis.kernels.map(|kernels| {
            // Without a figure, that which is measured where the kernels run here.
            let acceleration = self.metric.map(|figure| match figure {
                FigureName::Throughput | FigureName::Latency => Acceleration::Kvm,
                _ => Acceleration::Icount,
            });
            VirtualMachines { kernels, acceleration }
        });
        let pin = match &virtual_machines {
            Some(_) if self.load.pin.has_lists() => {
                return Err(Usage(
                    "error: virtual machines have CPUs of their own: leave out --driver-cpus and --server-cpus".to_owned(),
                ));
            }
            Some(_) => Processors::none(),
            None => self.load.pin.processors(),
        };
        Ok(Comparison {
            name: self.name.clone(),
            description: command_line(&["--print-campaign"]),
            tags: self.tag.clone(),
            notes: self.notes.clone(),
            sides: axis.sides,
            settings: self.settings.of_all(),
            workload: self.workload.workload(scripts.map_err(Usage::from_error)?)?,
            scale: self.workload.scale,
            clients: self.load.clients,
            threads: self.load.threads,
            pin,
            cpu_decides: false,
            protocol: Protocol::from(self.load.protocol),
            rate: self.rate.and_then(Rate::per_second).unwrap_or(Rate::MAX),
            margin: Some(self.margin.unwrap_or(DEFAULT_MARGIN)),
            method: Method::Bisect(self.search(None)),
            virtual_machines,
            seed: self.seed,
            profile: self.profile,
        })
    }
}

fn size(text: &str) -> Result<u64, String> {
    server::bytes(text)
        .ok_or_else(|| "expected a number and a unit (kB, MB, GB or TB), such as \"20GB\"".to_owned())
}
