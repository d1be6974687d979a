//! The campaign of `pgdyno ab` and `pgdyno bisect`: servers, settings of one server, or kernels under it, compared under one load.

use std::collections::BTreeMap;

use model::factor::pin::Processors;
use model::machine::Acceleration;
use model::paired::PairedFigure;
use model::server::{Build, ServerSpec, Source, commit_of};
use model::units::{Rate, Share, Span};
use model::workload::Protocol;

use super::toml_text::{key, string, strings};

/// A comparison to be measured.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Name of the campaign.
    pub name: String,
    /// What is compared, for people.
    pub description: String,
    /// Words to find its trials by.
    pub tags: Vec<String>,
    /// Notes for people.
    pub notes: Option<String>,
    /// What is compared.
    pub sides: Sides,
    /// Settings of every side.
    pub settings: BTreeMap<String, String>,
    /// What clients do.
    pub workload: AbWorkload,
    /// Scale factor of pgbench's tables.
    pub scale: u32,
    /// Number of clients.
    pub clients: u32,
    /// Threads of the driver; none for the default.
    pub threads: Option<u32>,
    /// CPUs of driver and servers.
    pub pin: Processors,
    /// Whether the server's CPU time decides pairs, next to throughput or latency.
    pub cpu_decides: bool,
    /// How statements are sent.
    pub protocol: Protocol,
    /// Transactions started per second.
    pub rate: Rate,
    /// The smallest change that matters; none for the default.
    pub margin: Option<Share>,
    /// How it is measured.
    pub method: Method,
    /// The virtual machines in which it is measured; none for the machine itself.
    pub virtual_machines: Option<VirtualMachines>,
    /// Seed of the order and of the scripts' random numbers; none for a new one.
    pub seed: Option<u64>,
    /// Whether CPU profiles are taken.
    pub profile: bool,
}

/// What is compared.
#[derive(Clone, Debug)]
pub enum Sides {
    /// Servers, each with the first.
    Servers(Vec<ServerSpec>),
    /// Settings of one server, each with its name.
    Settings(ServerSpec, Vec<(String, BTreeMap<String, String>)>),
    /// The kernels of the virtual machines, with one server.
    Kernels(ServerSpec),
    /// Arguments of the kernel of the virtual machines, with one server.
    KernelArgs(ServerSpec, Vec<String>),
    /// Parameters of the kernel of the virtual machines, each set with its name, with one server.
    Sysctls(ServerSpec, Vec<(String, BTreeMap<String, String>)>),
}

/// Virtual machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualMachines {
    /// Labels of their kernels: one, or those that are compared.
    pub kernels: Vec<String>,
    /// What executes their instructions; none for [the one that works](super::CampaignFile::choose_acceleration).
    pub acceleration: Option<Acceleration>,
}

/// How sides are compared.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// Throughput and CPU time of sessions of paired trials, for at most this time.
    Pairs(Span),
    /// A search for the side where the performance changed.
    Bisect(Search),
    /// Counted instructions, in virtual machines.
    Count,
}

/// A search among sides in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The figure that changed; none for throughput, or mean latency at a rate.
    pub figure: Option<PairedFigure>,
    /// Probability at which a side is named; none for the default.
    pub confidence: Option<Share>,
    /// Whether the next side is built while sessions of others run.
    pub build_while_measuring: bool,
    /// The time of the sessions; none without a limit.
    pub max_time: Option<Span>,
}

/// Workload of a comparison.
#[derive(Clone, Debug)]
pub enum AbWorkload {
    /// One that campaigns know by its name.
    Named(String),
    /// A workload of its own.
    Scripts {
        /// Its name.
        name: String,
        /// Files and built-in scripts with their weights.
        scripts: Vec<(String, u64)>,
        /// Values of variables.
        parameters: BTreeMap<String, String>,
        /// Whether it changes the data.
        writes: bool,
        /// Dump of the database that it runs on; none for pgbench's tables.
        dump: Option<String>,
    },
}

/// Name of the data set of a dump.
const DUMP: &str = "dump";

/// Name of the settings that all sides have.
const COMMON: &str = "common";

/// Trials of counted instructions on each side: they hardly spread, so that three decide. A number that depended on the results
/// would need more, whatever these are.
const COUNTED_REPEATS: u32 = 3;
/// Length of trials in virtual machines, in virtual time where instructions are counted.
const VIRTUAL_DURATION: &str = "5s";

impl Comparison {
    /// The campaign's text.
    pub fn to_toml(&self) -> String {
        let mut text =
            format!("name = {}\ndescription = {}\n", string(&self.name), string(&self.description));
        if !self.tags.is_empty() {
            text += &format!("tags = {}\n", strings(self.tags.iter().map(String::as_str)));
        }
        if let Some(notes) = &self.notes {
            text += &format!("notes = {}\n", string(notes));
        }
        text += &self.factors();
        text += &self.run();
        if self.profile {
            text += "\n[profile]\n";
        }
        text + &self.tables()
    }

    fn factors(&self) -> String {
        let mut text =
            format!("\n[factors]\nserver = {}\n", strings(self.servers().map(|server| &*server.name)));
        match &self.sides {
            Sides::Settings(_, sides) => {
                let names = sides.iter().map(|(name, _)| name.as_str());
                text += &format!("settings = {}\n", strings(names));
            }
            _ if self.settings.is_empty() => {}
            _ => text += &format!("settings = {}\n", strings([COMMON])),
        }
        let workload = match &self.workload {
            AbWorkload::Named(name) | AbWorkload::Scripts { name, .. } => name.as_str(),
        };
        text += &format!(
            "workload = {}\n{}clients = [{}]\nprotocol = {}\n",
            strings([workload]),
            if self.has_dump() { String::new() } else { format!("scale = [{}]\n", self.scale) },
            self.clients,
            strings([self.protocol.as_str()])
        );
        if let Some(rate) = self.rate.get() {
            text += &format!("rate = [{rate}]\n");
        }
        if !self.pin.is_none() {
            text += &format!("pin = {}\n", strings([&*self.pin.name]));
        }
        if let Some(VirtualMachines { kernels, acceleration }) = &self.virtual_machines {
            text += &format!("kernel = {}\n", strings(kernels.iter().map(String::as_str)));
            let acceleration = acceleration.map(Acceleration::as_str);
            text.extend(acceleration.map(|name| format!("acceleration = {}\n", strings([name]))));
        }
        match &self.sides {
            Sides::KernelArgs(_, sides) => {
                text += &format!("kernel_args = {}\n", strings(sides.iter().map(String::as_str)));
            }
            Sides::Sysctls(_, sides) => {
                text += &format!("sysctl = {}\n", strings(sides.iter().map(|(name, _)| name.as_str())));
            }
            Sides::Servers(_) | Sides::Settings(..) | Sides::Kernels(_) => {}
        }
        text
    }

    /// Whether it runs on a dump, which has no scale.
    fn has_dump(&self) -> bool {
        matches!(&self.workload, AbWorkload::Scripts { dump: Some(_), .. })
    }

    fn run(&self) -> String {
        let compare = match self.sides {
            Sides::Servers(_) => "server",
            Sides::Settings(..) => "settings",
            Sides::Kernels(_) => "kernel",
            Sides::KernelArgs(..) => "kernel_args",
            Sides::Sysctls(..) => "sysctl",
        };
        let mut text = format!("\n[run]\ncompare = {}\n", string(compare));
        match &self.method {
            Method::Pairs(max_time) => {
                text += &format!("order = \"paired\"\nmax_time = \"{max_time}\"\n");
                if self.cpu_decides {
                    text += "cpu_decides = true\n";
                }
            }
            Method::Bisect(Search { figure, confidence, build_while_measuring, max_time }) => {
                text += "order = \"bisect\"\n";
                let figure = figure.map(|figure| format!("figure = \"{}\"\n", figure.as_str()));
                let confidence = confidence.map(|share| format!("confidence = \"{}\"\n", percent(share)));
                let max_time = max_time.map(|time| format!("max_time = \"{time}\"\n"));
                let builds = build_while_measuring.then(|| "build_while_measuring = true\n".to_owned());
                text.extend([figure, confidence, builds, max_time].into_iter().flatten());
            }
            Method::Count => text += &format!("repeats = {COUNTED_REPEATS}\n"),
        }
        if self.virtual_machines.is_some() {
            text += &format!("duration = \"{VIRTUAL_DURATION}\"\n");
        }
        if let Some(margin) = self.margin {
            text += &format!("effect = \"{}\"\n", percent(margin));
        }
        if let Some(threads) = self.threads {
            text += &format!("threads = {threads}\n");
        }
        if let Some(seed) = self.seed {
            text += &format!("seed = {seed}\n");
        }
        text
    }

    /// The tables that the factors name.
    fn tables(&self) -> String {
        let mut text = String::new();
        let mut tables: Vec<(&str, String)> = Vec::new();
        for server in self.servers() {
            let table = match (&server.source, commit_of(&server.name)) {
                (named, _) if Source::from_name(&server.name).as_ref() == Some(named) => continue,
                (Source::Build(build), Some((name, git_ref)))
                    if build.git_ref.as_deref() == Some(git_ref) =>
                {
                    (name, source(&Source::Build(Build { git_ref: None, ..build.clone() })))
                }
                _ => (server.name.as_str(), source(&server.source)),
            };
            if !tables.contains(&table) {
                text += &format!("\n[servers.{}]\n{}", key(table.0), table.1);
                tables.push(table);
            }
        }
        let settings: Vec<(String, BTreeMap<String, String>)> = match &self.sides {
            Sides::Settings(_, sides) => {
                let merged = |(name, side): &(String, BTreeMap<String, String>)| {
                    let own = side.iter().map(|(name, value)| (name.clone(), value.clone()));
                    (name.clone(), self.settings.clone().into_iter().chain(own).collect())
                };
                sides.iter().map(merged).collect()
            }
            _ if self.settings.is_empty() => Vec::new(),
            _ => vec![(COMMON.to_owned(), self.settings.clone())],
        };
        for (name, settings) in settings {
            text += &format!("\n[settings.{}]\n{}", key(&name), values(&settings));
        }
        if let Sides::Sysctls(_, sides) = &self.sides {
            for (name, parameters) in sides {
                text += &format!("\n[sysctls.{}]\n{}", key(name), values(parameters));
            }
        }
        if !self.pin.is_none() {
            let Processors { name, driver, server } = &self.pin;
            let lists = [("driver", driver), ("server", server)].into_iter();
            let lists = lists.filter_map(|(of, list)| Some((of.to_owned(), list.clone()?))).collect();
            text += &format!("\n[pins.{}]\n{}", key(name), values(&lists));
        }
        if let AbWorkload::Scripts { name, scripts, parameters, writes, dump } = &self.workload {
            if let Some(dump) = dump {
                text += &format!("\n[datasets.{DUMP}]\ndump = {}\n", string(dump));
            }
            let scripts: Vec<String> =
                scripts.iter().map(|(script, weight)| format!("{script}@{weight}")).collect();
            let scripts = strings(scripts.iter().map(String::as_str));
            text += &format!("\n[workloads.{}]\nscripts = {scripts}\n", key(name));
            if dump.is_some() {
                text += &format!("dataset = \"{DUMP}\"\n");
            }
            if !writes {
                text += "writes = false\n";
            }
            if !parameters.is_empty() {
                text += &format!("\n[workloads.{}.parameters]\n{}", key(name), values(parameters));
            }
        }
        text
    }

    /// The servers that are measured.
    pub fn servers(&self) -> impl Iterator<Item = &ServerSpec> {
        match &self.sides {
            Sides::Servers(servers) => servers.iter(),
            Sides::Settings(server, _)
            | Sides::Kernels(server)
            | Sides::KernelArgs(server, _)
            | Sides::Sysctls(server, _) => std::slice::from_ref(server).iter(),
        }
    }
}

/// A share in per cent, with as many digits as were given: 0.07 is 7.000000000000001 %.
fn percent(Share(share): Share) -> String {
    format!("{}%", (share * 1e10).round() / 1e8)
}

/// The lines of a server's table.
fn source(source: &Source) -> String {
    match source {
        Source::Embedded(version) | Source::Installed(version) => format!("version = {}\n", string(version)),
        Source::Bin(directory) => format!("bin = {}\n", string(&directory.to_string_lossy())),
        Source::Build(build) => build_lines(build),
        Source::Dsn(dsn) => format!("dsn = {}\n", string(&dsn.conninfo)),
    }
}

fn build_lines(build: &Build) -> String {
    let mut text = format!("source = {}\n", string(&build.location.to_string_lossy()));
    if let Some(git_ref) = &build.git_ref {
        text += &format!("ref = {}\n", string(git_ref));
    }
    if !build.patches.is_empty() {
        let patches: Vec<_> = build.patches.iter().map(|patch| patch.to_string_lossy()).collect();
        text += &format!("patch = {}\n", strings(patches.iter().map(|patch| &**patch)));
    }
    if let Some(system) = build.system {
        text += &format!("build = {{ system = \"{}\" }}\n", system.as_str());
    }
    text
}

fn values(values: &BTreeMap<String, String>) -> String {
    values.iter().map(|(name, value)| format!("{} = {}\n", key(name), string(value))).collect()
}
