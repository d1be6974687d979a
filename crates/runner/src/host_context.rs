//! The host that a campaign runs on: which of its cells can run there.

use machine::reboot::Machine;
use model::cell::Cell;
use model::machine::SysctlVariant;

/// The host and its kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostContext {
    /// Release of the running kernel, such as `6.1.0-37-amd64`.
    pub kernel: String,
    /// The kernel's command line.
    pub command_line: String,
    /// The levels that a campaign booted this kernel for; none if a campaign did not boot it.
    pub booted: Option<BootedFor>,
    /// Host name.
    pub hostname: String,
    /// Name of the agent of a fleet that runs trials here; none without a fleet.
    pub agent: Option<String>,
    /// Whether this stands for all machines of a fleet, of which one can run each cell.
    pub is_fleet: bool,
}

/// The levels that a kernel was booted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootedFor {
    /// Level of `kernel_args`.
    pub kernel_args: String,
    /// Level of `sysctl`; its parameters are set.
    pub sysctl: String,
}

impl BootedFor {
    /// The levels in the machine's journal of boots.
    fn detect() -> Option<Self> {
        let boot = Machine::local().journal().ok()??.last.filter(|last| last.came_up)?.boot;
        Some(Self { kernel_args: boot.args, sysctl: boot.sysctl.name })
    }
}

impl HostContext {
    /// This host, under its running kernel.
    pub fn detect() -> Self {
        let uname = rustix::system::uname();
        Self {
            kernel: uname.release().to_string_lossy().into_owned(),
            command_line: std::fs::read_to_string("/proc/cmdline").unwrap_or_default(),
            booted: BootedFor::detect(),
            hostname: uname.nodename().to_string_lossy().into_owned(),
            agent: None,
            is_fleet: false,
        }
    }

    /// Whether a cell can run here: its kernel and its host, if it names them, are these. A virtual machine boots any kernel.
    pub fn runs(&self, cell: &Cell) -> bool {
        let is_kernel =
            |label: &str| cell.acceleration.is_virtual() || self.is_kernel(label) && self.is_booted_for(cell);
        self.is_fleet || cell.kernel.as_deref().is_none_or(is_kernel) && self.is_host(cell)
    }

    /// Whether a cell runs on this host, under any kernel. In a fleet, hosts have the names of their agents.
    pub fn is_host(&self, cell: &Cell) -> bool {
        cell.host.as_deref().is_none_or(|label| self.agent.as_ref().unwrap_or(&self.hostname) == label)
    }

    /// A kernel that the user booted has the arguments on its command line and no parameters set by pgdyno.
    fn is_booted_for(&self, cell: &Cell) -> bool {
        match &self.booted {
            Some(booted) => booted.kernel_args == cell.kernel_args && booted.sysctl == cell.sysctl.name,
            None => self.has_kernel_args(&cell.kernel_args) && cell.sysctl == SysctlVariant::none(),
        }
    }

    /// Whether the running kernel is of this series.
    pub fn is_kernel(&self, label: &str) -> bool {
        is_release(&self.kernel, label)
    }

    /// Whether the kernel was booted with these arguments.
    pub fn has_kernel_args(&self, args: &str) -> bool {
        let has = |arg| self.command_line.split_whitespace().any(|present| present == arg);
        args.split_whitespace().all(has)
    }
}

/// All machines of a fleet: one can run each cell.
pub(crate) static FLEET: HostContext = HostContext {
    kernel: String::new(),
    command_line: String::new(),
    booted: None,
    hostname: String::new(),
    agent: None,
    is_fleet: true,
};

/// Whether a release belongs to the series of a label: `6.1.0-37-amd64` to `6.1`, `6.12.9` not.
pub(crate) fn is_release(release: &str, label: &str) -> bool {
    release.strip_prefix(label).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}
