//! Options of counted instructions.

use clap::{Args, ValueEnum};
use host::Cache;
use model::machine::Acceleration;
use runner::campaign_file::ab::VirtualMachines;

/// Kernel if none was fetched: Debian's newest one for virtual machines.
const DEBIAN: &str = "linux-image-cloud-amd64";

#[derive(Debug, Args)]
#[command(next_help_heading = "Counting")]
pub(super) struct CountArgs {
    /// Count the instructions of a transaction in virtual machines: their number is independent of the machine's other
    /// load
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value = "undecided",
        default_missing_value = "only",
        num_args = 0..=1,
        require_equals = true
    )]
    count: Count,

    /// Kernel of the virtual machines [default: the one fetched last, else Debian's for virtual machines]
    #[arg(long, value_name = "LABEL")]
    kernel: Option<String>,

    /// Compare kernels under one SERVER, by counted instructions: kernel of the baseline
    #[arg(long, value_name = "LABEL", requires = "b_kernel", conflicts_with = "kernel")]
    a_kernel: Option<String>,

    /// Compare kernels under one SERVER: kernel of the variant
    #[arg(long, value_name = "LABEL", requires = "a_kernel")]
    b_kernel: Option<String>,
}

/// When instructions are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Count {
    /// Instead of measuring in pairs
    Only,
    /// If pairs do not decide within the time, and the emulator is installed and a kernel fetched or named
    Undecided,
    /// Never
    Never,
}

impl CountArgs {
    /// Whether kernels are compared.
    pub(super) const fn compares_kernels(&self) -> bool {
        self.a_kernel.is_some()
    }

    /// Whether the comparison begins with pairs.
    pub(super) fn is_paired(&self) -> bool {
        self.count != Count::Only && !self.compares_kernels()
    }

    /// Kernels of the virtual machines that count from the start; none if the comparison begins with pairs.
    pub(super) fn kernels(&self) -> Option<Vec<String>> {
        match (&self.a_kernel, &self.b_kernel) {
            (Some(a), Some(b)) => Some(vec![a.clone(), b.clone()]),
            _ if self.is_paired() => None,
            _ => Some(vec![self.kernel.clone().unwrap_or_else(default_kernel)]),
        }
    }

    /// Kernel of the virtual machines that count for a second opinion; none if it is not wanted, or this machine would have to
    /// fetch a kernel or an emulator for it.
    pub(super) fn kernel_of_second_opinion(&self) -> Option<String> {
        let is_wanted = self.is_paired() && self.count == Count::Undecided;
        self.kernel().filter(|_| is_wanted && machine::vm::emulator().is_ok())
    }

    /// The kernel that is named, else the one that was fetched last.
    fn kernel(&self) -> Option<String> {
        self.kernel.clone().or_else(last_fetched)
    }
}

/// Virtual machines with these kernels that count instructions.
pub(super) const fn counting(kernels: Vec<String>) -> VirtualMachines {
    VirtualMachines { kernels, acceleration: Some(Acceleration::Icount) }
}

/// Label of the kernel of virtual machines if none is named: the one that was fetched last, else Debian's for them.
pub(in crate::commands) fn default_kernel() -> String {
    last_fetched().unwrap_or_else(|| DEBIAN.to_owned())
}

/// A label of the kernel that was fetched last.
fn last_fetched() -> Option<String> {
    let kernels = machine::kernels(&Cache::open().ok()?).ok()?;
    let last = kernels.into_iter().max_by_key(|kernel| kernel.fetched)?;
    Some(last.labels.into_iter().next().unwrap_or(last.kernel.label))
}
