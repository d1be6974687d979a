//! `pgdyno agent`: runs trials for the campaigns of a fleet on this machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use diagnose::State;
use fleet::agent::Agent;
use fleet::signature::TrustedKeys;

use host::Cache;
use model::fleet::{AgentFacts, Allows};
use runner::HostContext;

use crate::campaign_run::program;
use crate::exit::{Exit, Usage};
use crate::fleet_args::FleetArgs;
use crate::interrupt::{END_SIGNALS, exit, on_each_signal};
use crate::output::note;

/// Time for which the machine is observed at the start.
const OBSERVATION: Duration = Duration::from_secs(2);

/// Run trials for the campaigns of a fleet on this machine
///
/// Waits for blocks of `pgdyno run --fleet`: trials that are compared with each other, and so run on one machine. Takes one at a
/// time whose requirements it meets (labels, memory, kernel, the same release of pgdyno), runs it with the servers and data sets
/// of this machine's cache, and sends each trial's bundle back at once.
///
/// The first Ctrl-C or SIGTERM lets it complete its block and take no other; the second one gives the block back, with
/// the trials that have ended. After a crash, another agent gets the block when its lease ends (30 s by default).
///
/// Whoever can log in to the NATS server can queue campaigns, which send SQL to servers of this machine. With --trust, only
/// campaigns signed by a known key run; commands of a campaign (hooks, \shell) and builds are refused without --allow.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno agent --nats tls://nats.example:4222 --nats-creds agent.creds\n  \
                        pgdyno agent --label nvme --label big --trust keys.pub\n  \
                        pgdyno agent --name small-1 --allow builds\n\n\
                        Exit codes: 0 stopped by Ctrl-C or SIGTERM, 1 error, 2 usage, 130 stopped by the third signal.")]
pub(crate) struct AgentArgs {
    /// Its name, unique in the fleet: a level of the factor `host` [default: the host name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Label for campaigns that ask for it; may be repeated
    #[arg(long, value_name = "LABEL")]
    label: Vec<String>,

    /// Run only campaigns that are signed by a key of this file: a public key in each line
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,

    /// What campaigns may do here, in addition to measuring its own servers
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    allow: Vec<Allowed>,

    #[command(flatten)]
    fleet: FleetArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Allowed {
    /// Run commands of their own: hooks, \\shell in scripts
    Hooks,
    /// Build servers and kernels, and run those in directories
    Builds,
    /// Put load on servers elsewhere (dsn, load_hosts)
    Load,
}

impl AgentArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let name = self.name.clone().unwrap_or_else(|| HostContext::detect().hostname);
        if let Some(bad) = self.label.iter().chain([&name]).find(|text| !is_name(text)) {
            return Err(Usage(format!(
                "error: `{bad}` can't be a name or a label: expected letters, digits, `-`, `_` and `.`"
            ))
            .into());
        }
        let trusted = self.trust.as_deref().map(TrustedKeys::read).transpose()?;
        let cache = Cache::open()?;
        let (drain, stop) = signals()?;
        let connection = self.fleet.connect(&format!("pgdyno agent {name}"))?;
        let facts = self.facts(&cache, name);
        let labels =
            if facts.labels.is_empty() { String::new() } else { format!(" ({})", facts.labels.join(", ")) };
        note(&format!("agent {}{labels} waits for trials; Ctrl-C stops it\n", facts.name));
        for finding in &facts.findings {
            note(&format!("  {finding}\n"));
        }
        let program = program()?;
        let agent = Agent {
            facts,
            trusted,
            cache: &cache,
            program: &program,
            drain,
            stop: &stop,
            log: &|line| note(&format!("{line}\n")),
        };
        agent.run(&connection)?;
        note("stopped\n");
        Ok(Exit::Ok)
    }

    fn facts(&self, cache: &Cache, name: String) -> AgentFacts {
        let context = HostContext::detect();
        let machine = collect::Host::read().environment(None);
        let servers = server::installed(cache).unwrap_or_default();
        let checks = diagnose::fitness(&collect::fitness(cache.directory(), OBSERVATION));
        let findings = checks
            .iter()
            .filter(|check| matches!(check.state, State::Warn | State::Bad))
            .map(|check| format!("{}: {}", check.name, check.evidence));
        AgentFacts {
            machine: format!("{name} {}", machine_id()),
            name,
            pgdyno_version: model::release::VERSION.to_owned(),
            labels: self.label.clone(),
            hostname: context.hostname,
            cpus: machine.cpus,
            cpu_model: machine.cpu_model,
            memory_bytes: machine.memory_bytes,
            kernel: context.kernel,
            kernel_command_line: context.command_line,
            servers: servers.iter().map(|server| server.identity().to_owned()).collect(),
            pgbouncer: server::pgbouncer().ok().map(|pgbouncer| pgbouncer.version),
            findings: findings.collect(),
            allows: Allows {
                hooks: self.allow.contains(&Allowed::Hooks),
                builds: self.allow.contains(&Allowed::Builds),
                load: self.allow.contains(&Allowed::Load),
            },
            is_trusting_keys: self.trust.is_some(),
        }
    }
}

/// Whether a text can be a level of the factor `host`, or a label.
fn is_name(text: &str) -> bool {
    (1..=60).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Identity of this machine. Source: machine-id(5).
fn machine_id() -> String {
    std::fs::read_to_string("/etc/machine-id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

/// Flags that the first and the second signal set; the third ends the process.
fn signals() -> anyhow::Result<(Arc<AtomicBool>, Arc<AtomicBool>)> {
    let (drain, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let flags = (Arc::clone(&drain), Arc::clone(&stop));
    on_each_signal(&END_SIGNALS, move |signal| {
        if !flags.0.swap(true, Ordering::Relaxed) {
            note("completing the block, and taking no other; a second Ctrl-C gives it back at once\n");
        } else if !flags.1.swap(true, Ordering::Relaxed) {
            note("giving the block back\n");
        } else {
            exit(signal);
        }
    })
    .context("could not handle Ctrl-C")?;
    Ok((drain, stop))
}
