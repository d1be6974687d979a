//! The commands, one file each.

mod ab;
mod agent;
mod bench;
mod bisect;
mod compare;
mod completions;
mod dataset;
mod doctor;
mod driver;
mod explain;
mod export;
mod fleet;
pub(crate) mod guest;
mod history;
mod import;
mod init;
mod kernel;
mod man_pages;
pub(crate) mod pgbench;
mod plan;
mod power;
mod profile;
mod publish;
mod read_files;
mod replay;
mod report;
mod resume;
mod run;
mod serve;
mod server;
mod show;
mod store;

use clap::{CommandFactory, Parser, Subcommand};

use crate::exit::Exit;
use crate::help;

/// A dynamometer for PostgreSQL
///
/// Puts a server under a known load, measures throughput and latency, and reports changes between versions, settings,
/// kernels, builds and machines.
#[derive(Debug, Parser)]
#[command(version = model::release::VERSION, propagate_version = true, disable_help_subcommand = true)]
#[command(
    after_help = "Start with:\n  pgdyno run campaigns/quick.toml\n  pgdyno report --store campaigns/.pgdyno -o report.html"
)]
pub(crate) struct Cli {
    /// Download from a PGDYNO_MIRROR without TLS (http://)
    #[arg(long, global = true, hide = true)]
    insecure_mirror: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::InitArgs),
    Run(run::RunArgs),
    Ab(Box<ab::AbArgs>),
    Bisect(Box<bisect::BisectArgs>),
    Bench(Box<bench::BenchArgs>),
    Replay(replay::ReplayArgs),
    Plan(plan::PlanArgs),
    Resume(resume::ResumeArgs),
    Report(report::ReportArgs),
    Serve(serve::ServeArgs),
    Show(show::ShowArgs),
    Compare(compare::CompareArgs),
    History(Box<history::HistoryArgs>),
    Explain(explain::ExplainArgs),
    Profile(profile::ProfileArgs),
    Import(import::ImportArgs),
    Export(export::ExportArgs),
    Publish(publish::PublishArgs),
    Power(power::PowerArgs),
    Server(server::ServerArgs),
    Dataset(dataset::DatasetArgs),
    Kernel(kernel::KernelArgs),
    Store(store::StoreArgs),
    Doctor(doctor::DoctorArgs),
    Agent(agent::AgentArgs),
    Fleet(fleet::FleetCommandArgs),
    Pgbench(pgbench::PgbenchArgs),
    Completions(completions::CompletionsArgs),
    #[command(hide = true)]
    ManPages(man_pages::ManPagesArgs),
    #[command(hide = true)]
    Guest(guest::GuestArgs),
    #[command(hide = true)]
    Driver(driver::DriverArgs),
    #[command(hide = true)]
    ReadFiles(read_files::ReadFilesArgs),
}

impl Cli {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        if self.insecure_mirror {
            ::server::allow_insecure_mirror();
        }
        match self.command {
            Command::Init(args) => args.run(),
            Command::Run(args) => args.run(),
            Command::Ab(args) => args.run(),
            Command::Bisect(args) => args.run(),
            Command::Bench(args) => args.run(),
            Command::Replay(args) => args.run(),
            Command::Plan(args) => args.run(),
            Command::Report(args) => args.run(),
            Command::Serve(args) => args.run(),
            Command::Show(args) => args.run(),
            Command::Compare(args) => args.run(),
            Command::History(args) => args.run(),
            Command::Explain(args) => args.run(),
            Command::Profile(args) => args.run(),
            Command::Import(args) => args.run(),
            Command::Export(args) => args.run(),
            Command::Publish(args) => args.run(),
            Command::Power(args) => args.run(),
            Command::Resume(args) => args.run(),
            Command::Server(args) => args.run(),
            Command::Dataset(args) => args.run(),
            Command::Kernel(args) => args.run(),
            Command::Store(args) => args.run(),
            Command::Doctor(args) => args.run(),
            Command::Agent(args) => args.run(),
            Command::Fleet(args) => args.run(),
            Command::Pgbench(args) => args.run(),
            Command::Completions(args) => args.run(),
            Command::ManPages(args) => args.run(help::fitted(Self::command())),
            Command::Guest(args) => args.run(),
            Command::Driver(args) => args.run(),
            Command::ReadFiles(args) => args.run(),
        }
    }
}
