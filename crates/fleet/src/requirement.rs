//! What a block needs of the agent that takes it.

use host::sha256_of_bytes;
use model::cell::Cell;
use model::fleet::AgentFacts;
use model::load_hosts::RequestedHosts;
use model::plan::{Hooks, Plan};
use model::server::Source;
use model::topology::Companion;
use model::units::Size;
use model::workload::Custom;
use runner::HostContext;
use runner::blocks::Block;
use script::{CommandKind, Names, Script};
use serde::{Deserialize, Serialize};

use crate::error::FleetError;

/// What an agent must have or be.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Requirement {
    /// Release of pgdyno.
    pub pgdyno_version: String,
    /// Name of the agent: the level of the factor `host`.
    pub host: Option<String>,
    /// Labels.
    pub labels: Vec<String>,
    /// Main memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// The running kernel: its release, or the beginning of it.
    pub kernel: Option<String>,
    /// Words on the kernel's command line.
    pub kernel_args: String,
    /// Whether commands of the campaign run there.
    pub hooks: bool,
    /// Number of other agents that its load comes from.
    pub load_hosts: u32,
    /// Their names; empty if any agents will do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named_load_hosts: Vec<String>,
    /// Whether servers or kernels are built there, or run from a directory there.
    pub builds: bool,
    /// Whether its load is on servers that pgdyno does not start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other_servers: bool,
    /// Whether clients connect through PgBouncer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pgbouncer: bool,
}

impl Requirement {
    /// That of a block of a campaign.
    ///
    /// # Errors
    /// No fleet can meet it.
    pub fn of(block: &Block, plan: &Plan) -> Result<Self, FleetError> {
        let cells = block.cells(plan);
        let booted = cells.iter().find(|cell| !cell.acceleration.is_virtual());
        if let Some(cell) = cells.iter().find(|cell| needs_parameters(cell)) {
            return Err(FleetError::Campaign(format!(
                "the cell {cell} sets kernel parameters (sysctl): agents do not, as they may not be root; run it on the machine \
                 itself with --kernels-by-reboot, or in virtual machines"
            )));
        }
        let is_other =
            |cell: &&Cell| plan.server(cell).is_some_and(|server| matches!(server.source, Source::Dsn(_)));
        let named_load_hosts = match &plan.load_hosts {
            Some(RequestedHosts::Named(names)) => names.clone(),
            Some(RequestedHosts::Number(_)) | None => Vec::new(),
        };
        Ok(Self {
            pgdyno_version: model::release::VERSION.to_owned(),
            host: cells.iter().find_map(|cell| cell.host.clone()),
            labels: plan.fleet.labels.clone(),
            memory_bytes: plan.fleet.memory.map(Size::bytes),
            kernel: booted.and_then(|cell| cell.kernel.clone()),
            kernel_args: booted.map(|cell| cell.kernel_args.clone()).unwrap_or_default(),
            hooks: runs_commands(plan, &cells),
            load_hosts: plan.load_hosts.as_ref().map_or(0, RequestedHosts::count),
            named_load_hosts,
            builds: cells.iter().any(|cell| uses_builds(plan, cell)),
            other_servers: cells.iter().any(is_other),
            pgbouncer: cells.iter().any(|cell| cell.topology.companion() == Some(Companion::Pgbouncer)),
        })
    }

    /// A name of it, for subjects.
    pub(crate) fn name(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        sha256_of_bytes(text.as_bytes())[..16].to_owned()
    }

    /// What an agent lacks, in words; empty if it can take the block.
    pub fn unmet(&self, agent: &AgentFacts) -> Vec<String> {
        let mut unmet = Vec::new();
        if agent.pgdyno_version != self.pgdyno_version {
            unmet.push(format!(
                "it is pgdyno {}, not {}: trials of two versions are not compared",
                agent.pgdyno_version, self.pgdyno_version
            ));
        }
        if let Some(host) = self.host.as_ref().filter(|host| **host != agent.name) {
            unmet.push(format!("its name is not {host}"));
        }
        if self.named_load_hosts.contains(&agent.name) {
            unmet.push("it is one of the campaign's load hosts".to_owned());
        }
        for label in self.labels.iter().filter(|label| !agent.labels.contains(label)) {
            unmet.push(format!("it has no label {label}"));
        }
        if let Some(bytes) =
            self.memory_bytes.filter(|bytes| agent.memory_bytes.is_none_or(|has| has < *bytes))
        {
            unmet.push(format!("it has less memory than {}", Size::from_bytes(bytes)));
        }
        let context = HostContext {
            kernel: agent.kernel.clone(),
            command_line: agent.kernel_command_line.clone(),
            ..HostContext::default()
        };
        if let Some(kernel) = self.kernel.as_ref().filter(|kernel| !context.is_kernel(kernel)) {
            unmet.push(format!("its kernel {} is not {kernel}", agent.kernel));
        }
        if !context.has_kernel_args(&self.kernel_args) {
            unmet.push(format!("its kernel was not booted with {}", self.kernel_args));
        }
        if self.hooks && !agent.allows.hooks {
            unmet.push("it does not run hooks (--allow hooks)".to_owned());
        }
        if self.builds && !agent.allows.builds {
            unmet.push("it does not build servers or kernels (--allow builds)".to_owned());
        }
        if self.other_servers && !agent.allows.load {
            unmet.push("it puts no load on servers elsewhere (--allow load)".to_owned());
        }
        if self.pgbouncer && agent.pgbouncer.is_none() {
            unmet.push("it has no PgBouncer (Debian: apt-get install pgbouncer)".to_owned());
        }
        unmet
    }
}

/// Whether a campaign's own commands run where its trials do: hooks, and `\\shell` and `\\setshell` in scripts.
fn runs_commands(plan: &Plan, cells: &[&Cell]) -> bool {
    let Hooks { before_campaign, after_campaign, before_trial, after_trial } = &plan.hooks;
    let has_hooks =
        [before_campaign, after_campaign, before_trial, after_trial].into_iter().any(Option::is_some);
    has_hooks || cells.iter().filter_map(|cell| cell.workload.custom()).any(may_run_commands)
}

/// Whether the scripts of a workload, its phases or its background workloads have `\\shell` or `\\setshell`, or are no scripts.
/// All other texts of a workload are refused unless they are SQL and `\\set`.
pub(crate) fn may_run_commands(workload: &Custom) -> bool {
    let is_command =
        |kind: &CommandKind| matches!(kind, CommandKind::Shell { .. } | CommandKind::SetShell { .. });
    let own = workload.scripts.iter().any(|script| {
        match Script::parse(&script.name, &script.text, &mut Names::default()) {
            Ok(parsed) => parsed.commands().iter().any(|command| is_command(&command.kind)),
            Err(_) => true,
        }
    });
    let background = workload.background.iter().filter_map(|background| background.workload.custom());
    let phases = workload.phases.iter().filter_map(|phase| phase.load.as_ref()).map(|load| &*load.workload);
    own || background.chain(phases).any(may_run_commands)
}

/// Whether a cell needs something that is built on its machine, or that is in a directory there.
fn uses_builds(plan: &Plan, cell: &Cell) -> bool {
    let is_built =
        |source: &Source| matches!(source, Source::Build(_) | Source::Bin(_) | Source::Installed(_));
    // A kernel that is not in a virtual machine has been booted.
    let kernel = plan.kernel(cell).filter(|_| cell.acceleration.is_virtual());
    plan.server(cell).is_some_and(|server| is_built(&server.source))
        || kernel.is_some_and(|kernel| kernel.path.is_some())
}

fn needs_parameters(cell: &Cell) -> bool {
    !cell.acceleration.is_virtual() && cell.sysctl != model::machine::SysctlVariant::none()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;

    use model::spec::Campaign;
    use model::units::{Rate, Span};
    use model::workload::{BackgroundWorkload, Phase, PhaseLoad, WeightedScript, Workload};
    use runner::blocks::open_blocks;

    use super::*;

    #[test]
    fn a_load_host_of_a_campaign_takes_none_of_its_blocks() {
        let requirement =
            Requirement { named_load_hosts: vec!["load-1".to_owned()], ..Requirement::default() };
        let agent = |name: &str| AgentFacts { name: name.to_owned(), ..AgentFacts::default() };
        assert_eq!(requirement.unmet(&agent("load-1")), ["it is one of the campaign's load hosts"]);
        assert_eq!(requirement.unmet(&agent("main")), [""; 0]);
    }

    /// The requirement of the first block of a campaign with these factors and tables.
    fn requirement(factors: &str) -> Requirement {
        let text = format!(
            "name = 'n'\n[factors]\nworkload = ['select-only']\nclients = [1]\nprotocol = ['simple']\n{factors}\n"
        );
        let plan = Plan::new(&Campaign::parse(&text).unwrap(), 1).unwrap();
        let blocks = open_blocks(&plan, &[], &BTreeSet::new());
        Requirement::of(&blocks[0], &plan).unwrap()
    }

    /// An agent that allows nothing.
    fn agent() -> AgentFacts {
        AgentFacts { pgdyno_version: model::release::VERSION.to_owned(), ..AgentFacts::default() }
    }

    #[test]
    fn topologies_with_a_pooler_need_an_agent_that_has_it() {
        let with = AgentFacts { pgbouncer: Some("1.24.1".to_owned()), ..agent() };
        let pooled = requirement("server = ['18']\ntopology = ['single', 'pgbouncer-session']");
        assert_eq!(pooled.unmet(&agent()), ["it has no PgBouncer (Debian: apt-get install pgbouncer)"]);
        assert_eq!(pooled.unmet(&with), [""; 0]);
        let single = requirement("server = ['18']\ntopology = ['single', 'standby-async']");
        assert_eq!(single.unmet(&agent()), [""; 0]);
        // The name of a queue of before stays.
        let text = serde_json::to_string(&single).unwrap();
        assert!(!text.contains("pgbouncer") && !text.contains("other_servers"), "{text}");
    }

    #[test]
    fn servers_elsewhere_need_an_agent_that_allows_load() {
        let elsewhere =
            requirement("server = ['18', 'theirs']\n[servers.theirs]\ndsn = 'host=db.example user=me'");
        assert_eq!(elsewhere.unmet(&agent()), ["it puts no load on servers elsewhere (--allow load)"]);
        let mut allowing = agent();
        allowing.allows.load = true;
        assert_eq!(elsewhere.unmet(&allowing), [""; 0]);
        assert!(!requirement("server = ['18']").other_servers);
    }

    #[test]
    fn what_is_built_needs_an_agent_that_allows_builds() {
        let refused = ["it does not build servers or kernels (--allow builds)"];
        let mut allowing = agent();
        allowing.allows.builds = true;
        for factors in [
            "server = ['mine']\n[servers.mine]\nsource = './postgres'",
            "server = ['mine']\nextension = ['./my_ext']\n[servers.mine]\nsource = './postgres'",
            "server = ['18']\nacceleration = ['kvm']\nkernel = ['./linux@v6.6']",
            "server = ['18']\nacceleration = ['kvm']\nkernel = ['./linux@origin/master']",
            "server = ['18']\nacceleration = ['kvm']\nkernel = ['/boot/bzImage']",
        ] {
            let built = requirement(factors);
            assert_eq!(built.unmet(&agent()), refused, "{factors}");
            assert_eq!(built.unmet(&allowing), [""; 0], "{factors}");
        }
        for factors in ["extension = ['pg_trgm']", "acceleration = ['kvm']\nkernel = ['6.12']"] {
            assert!(!requirement(&format!("server = ['18']\n{factors}")).builds, "{factors}");
        }
    }

    #[test]
    fn commands_are_found_wherever_a_script_may_have_them() {
        let with = |text: &str| {
            let script = WeightedScript { name: "a.sql".to_owned(), weight: 0, text: text.to_owned() };
            Custom::new("mine", vec![script])
        };
        for text in [
            "\\shell id",
            "SELECT 1; \\shell id",
            "SELECT 1 \\SHELL id\n",
            "\\if false\n\\SetShell x echo 1\n\\endif",
            "/* a */ \\shell id",
            // Not a script: it may be one for another parser.
            "\\shel id",
            "",
        ] {
            assert!(may_run_commands(&with(text)), "{text}");
        }
        for text in ["SELECT '\\shell id';", "-- \\shell id\nSELECT 1;", "\\set shell 1\nSELECT :shell;"] {
            assert!(!may_run_commands(&with(text)), "{text}");
        }
        let bad = Arc::new(with("\\shell id"));
        let background = BackgroundWorkload {
            workload: Workload::Custom(Arc::clone(&bad)),
            clients: 1,
            rate: Rate::MAX,
            start: Span::default(),
            per_client: false,
            replica: true,
        };
        let load = PhaseLoad { workload: bad, clients: None, rate: Rate::MAX, duration: None, warmup: None };
        let phase = Phase { name: "load".to_owned(), parameters: BTreeMap::new(), load: Some(load) };
        let good = with("SELECT 1;");
        assert!(may_run_commands(&Custom { background: vec![background], ..good.clone() }));
        assert!(may_run_commands(&Custom { phases: vec![phase], ..good }));
    }
}
