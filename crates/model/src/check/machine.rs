//! Checks for combinations that a virtual machine can't run, and for levels of kernels and machines that no cell has.

use std::ops::Range;

use super::CheckedCampaign;
use crate::cell::Cell;
use crate::factor::Factor;
use crate::factor::cache::CacheState;
use crate::factor::pin::Processors;
use crate::machine::{Acceleration, KernelSpec, Storage};
use crate::matrix::{self, Draft, Levels};
use crate::server::{ServerSpec, Source};
use crate::value::{Spanned, SpecError};

/// Reason why a cell can't run, and its place in the text.
type Obstacle = (String, Option<Range<usize>>);

impl CheckedCampaign<'_> {
    /// The distinct kernels of the cells.
    pub(crate) fn kernels(&self, cells: &[Cell]) -> Vec<KernelSpec> {
        let mut kernels: Vec<KernelSpec> = Vec::new();
        for label in cells.iter().filter_map(|cell| cell.kernel.as_deref()) {
            if kernels.iter().all(|kernel| kernel.name != label) {
                kernels.push(KernelSpec::from_label(label));
            }
        }
        kernels
    }

    /// Rejects cells that a virtual machine can't run, and levels of virtual machines and kernels that no cell has.
    pub(crate) fn check_virtual_machines(
        &self,
        cells: &[Cell],
        servers: &[ServerSpec],
    ) -> Result<(), SpecError> {
        for cell in cells.iter().filter(|cell| cell.acceleration.is_virtual()) {
            if let Some((message, at)) = self.obstacle(cell, servers)? {
                return Err(SpecError {
                    message,
                    at,
                    help: Some(
                        "leave it out for kernels in virtual machines, by `exclude` or a separate `[[matrix]]`, or \
                         boot the machine itself into the kernel: `acceleration = [\"none\"]`"
                            .to_owned(),
                    ),
                });
            }
        }
        self.reject_booted_commits(cells)?;
        self.reject_unused_levels(cells)
    }

    /// Rejects kernels built from a commit on the machine itself: nothing installs them.
    fn reject_booted_commits(&self, cells: &[Cell]) -> Result<(), SpecError> {
        let is_commit = |label: &str| KernelSpec::from_label(label).commit().is_some();
        let is_booted = |cell: &&Cell| !cell.acceleration.is_virtual();
        let mut booted = cells.iter().filter(is_booted);
        let Some(cell) = booted.find(|cell| cell.kernel.as_deref().is_some_and(is_commit)) else {
            return Ok(());
        };
        let label = cell.kernel.as_deref().unwrap_or_default();
        Err(SpecError {
            message: format!("the kernel {label} is built from a commit: it boots in virtual machines only"),
            at: self.place(Factor::Kernel, cell)?,
            help: Some(
                "leave out `acceleration = [\"none\"]`, or install the kernel and name its release"
                    .to_owned(),
            ),
        })
    }

    /// Reason why a cell can't run in a virtual machine, with its place in the text.
    fn obstacle(&self, cell: &Cell, servers: &[ServerSpec]) -> Result<Option<Obstacle>, SpecError> {
        let is_external = servers
            .iter()
            .any(|server| server.name == cell.server && matches!(server.source, Source::Dsn(_)));
        if is_external {
            let table = self.campaign.servers.keys().find(|name| *name.get_ref() == cell.server);
            let message = format!("the server \"{}\" already runs, outside the virtual machine", cell.server);
            return Ok(Some((message, table.map(Spanned::span))));
        }
        if cell.workload.has_phases() {
            let message = format!(
                "the workload \"{}\" has phases, which do not run in a virtual machine",
                cell.workload.name()
            );
            return Ok(Some((message, self.place(Factor::Workload, cell)?)));
        }
        if cell.workload.trace().is_some() {
            let message = format!(
                "the trace of the workload \"{}\" is a file of this machine, but the trial runs in a virtual one",
                cell.workload.name()
            );
            return Ok(Some((message, self.place(Factor::Workload, cell)?)));
        }
        if !cell.disk.is_none() {
            let message = "a disk can't be limited in a virtual machine: `storage` selects its disk";
            let place = self.place(Factor::Disk, cell)?;
            return Ok(Some((message.to_owned(), place)));
        }
        if cell.pin != Processors::none() {
            let message =
                "`pin` names processors of the machine itself: `cpus` sets the number in a virtual machine";
            let place = self.place(Factor::Pin, cell)?;
            return Ok(Some((message.to_owned(), place)));
        }
        if cell.cache == CacheState::Cold && cell.storage == Storage::Memory {
            let message = "caches can't be cold where the data are in memory: `storage = [\"virtio\"]` puts them on a disk";
            let place = self.place(Factor::Cache, cell)?;
            return Ok(Some((message.to_owned(), place)));
        }
        if let Some(cpus) = cell.cpus.filter(|cpus| cell.acceleration == Acceleration::Icount && *cpus != 1) {
            let message = format!(
                "the acceleration `icount` counts instructions on one processor: {cpus} are not available"
            );
            return Ok(Some((message, self.place(Factor::Cpus, cell)?)));
        }
        if let Some(profile) = &self.campaign.profile {
            if let (Acceleration::Icount, Some(off_cpu)) = (cell.acceleration, &profile.get_ref().off_cpu) {
                let message = "where instructions are counted, nothing can be said about waiting";
                return Ok(Some((message.to_owned(), Some(off_cpu.span()))));
            }
            if cell.acceleration != Acceleration::Icount {
                let message =
                    "profiles in a virtual machine need counted instructions: `acceleration = [\"icount\"]`";
                return Ok(Some((message.to_owned(), Some(profile.span()))));
            }
            if cell.workload.iterations().is_some() {
                let message = "where instructions are counted, the profile precedes the measured window: a workload with \
                               `iterations` would have ended by then";
                return Ok(Some((message.to_owned(), Some(profile.span()))));
            }
        }
        let hooks = &self.campaign.hooks;
        let hook = [("before_trial", &hooks.before_trial), ("after_trial", &hooks.after_trial)];
        let hook = hook.into_iter().find_map(|(name, hook)| Some((name, hook.as_ref()?)));
        let Some((name, hook)) = hook else { return Ok(None) };
        let message = format!("`{name}` is a command on this machine, but the trial runs in a virtual one");
        Ok(Some((message, Some(hook.span()))))
    }

    /// Rejects levels that no cell has: the running kernel accepts none of them.
    fn reject_unused_levels(&self, cells: &[Cell]) -> Result<(), SpecError> {
        let machine =
            [Factor::Acceleration, Factor::KernelArgs, Factor::Sysctl, Factor::Cpus, Factor::Storage];
        for factor in machine {
            for (at, level) in self.given(factor)? {
                if cells.iter().any(|cell| level.matches(cell)) {
                    continue;
                }
                let help = match factor {
                    Factor::Cpus | Factor::Storage => {
                        "expected a virtual machine: a named `kernel` with an `acceleration` other than `none`"
                    }
                    _ => "expected a named `kernel`: the running one is used as it is",
                };
                return Err(SpecError {
                    message: format!("no cell has this level of the factor `{}`", factor.name()),
                    at: Some(at),
                    help: Some(help.to_owned()),
                });
            }
        }
        Ok(())
    }

    /// Place where the level of a cell is first given.
    pub(super) fn place(&self, factor: Factor, cell: &Cell) -> Result<Option<Range<usize>>, SpecError> {
        let given = self.given(factor)?;
        Ok(given.into_iter().find(|(_, level)| level.matches(cell)).map(|(at, _)| at))
    }

    /// All levels of a factor that can produce cells, with their places.
    fn given(&self, factor: Factor) -> Result<Vec<(Range<usize>, Draft)>, SpecError> {
        let common = &self.campaign.factors;
        let own = self.campaign.matrix.iter().map(Spanned::get_ref);
        // If every matrix has the factor itself, none uses the common one.
        let is_hidden = own.len() > 0 && own.clone().all(|matrix| matrix.has(factor));
        let mut given: Vec<Levels> = Vec::new();
        for matrix in own.chain([common]) {
            if !(is_hidden && std::ptr::eq(matrix, common)) {
                given.extend(matrix::levels(matrix, &self.definitions)?);
            }
            for point in &matrix.include {
                given.extend(matrix::levels_of_point(point.get_ref(), &self.definitions)?);
            }
        }
        let given = given.into_iter().filter(|levels| levels.factor == factor);
        Ok(given.flat_map(|levels| levels.levels).collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::cell::Cell;
    use crate::machine::{Acceleration, KernelSpec};
    use crate::plan::Plan;
    use crate::spec::Campaign;
    use crate::value::SpecError;

    const TWO_KERNELS: &str = "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\n\
                       kernel = ['host', '6.12']\n";

    fn plan(text: &str) -> Result<Plan, SpecError> {
        Campaign::parse(text).and_then(|campaign| Plan::new(&campaign, 1))
    }

    fn machines(text: &str) -> Vec<String> {
        let levels = |cell: &Cell| {
            let text = cell.to_string();
            text.split_once("10s").map(|(_, rest)| rest.trim().to_owned()).unwrap_or_default()
        };
        plan(text).unwrap().cells.iter().map(levels).collect()
    }

    /// Message, place and help.
    fn rejection(text: &str) -> (String, String, String) {
        let error = plan(text).unwrap_err();
        let at = error.at.clone().map(|at| text[at].to_owned()).unwrap_or_default();
        (error.message, at, error.help.unwrap_or_default())
    }

    #[test]
    fn a_named_kernel_defaults_to_icount_one_processor_and_memory() {
        let cells = plan(TWO_KERNELS).unwrap().cells;
        assert_eq!((cells[0].kernel.as_deref(), cells[0].acceleration), (None, Acceleration::None));
        assert_eq!((cells[0].cpus, cells[0].storage.to_string().as_str()), (None, "host"));
        assert_eq!((cells[1].kernel.as_deref(), cells[1].acceleration), (Some("6.12"), Acceleration::Icount));
        assert_eq!((cells[1].cpus, cells[1].storage.to_string().as_str()), (Some(1), "memory"));
        assert_eq!(machines(TWO_KERNELS), ["", "kernel 6.12 acceleration icount"]);
    }

    #[test]
    fn levels_of_virtual_machines_add_no_cells_of_the_running_kernel() {
        let text = format!(
            "{TWO_KERNELS}acceleration = ['none', 'kvm']\nkernel_args = ['none', 'mitigations=off']\nsysctl = ['default', 'calm']\n\
             cpus = ['host', 4]\nstorage = ['memory', 'virtio-none-native']\n\
             [sysctls.calm]\n'vm.swappiness' = 1\n'/sys/block/vda/queue/scheduler' = 'none'\n"
        );
        let cells = plan(&text).unwrap().cells;
        // The running kernel; 6.12 on the machine itself with arguments and parameters; 6.12 under KVM with all of
        // them.
        assert_eq!(cells.len(), 1 + 2 * 2 + 2 * 2 * 2 * 2);
        assert!(cells.iter().all(|cell| cell.acceleration.is_virtual() || cell.cpus.is_none()));
        let last = cells.last().unwrap();
        assert!(
            last.to_string().ends_with(
                "kernel 6.12 acceleration kvm kernel_args mitigations=off sysctl calm cpus 4 storage virtio-none-native"
            ),
            "{last}"
        );
        assert_eq!(last.sysctl.values["vm.swappiness"], "1");
        assert_eq!(last.sysctl.values["/sys/block/vda/queue/scheduler"], "none");
        assert_eq!(cells[0], plan(TWO_KERNELS).unwrap().cells[0]);
    }

    #[test]
    fn levels_of_named_kernels_are_rejected_for_the_running_one() {
        let host = TWO_KERNELS.replace(", '6.12'", "");
        for (given, level) in [
            ("kernel_args = ['quiet']", "'quiet'"),
            ("cpus = [2]", "2"),
            ("storage = ['memory']", "'memory'"),
            ("acceleration = ['icount']", "'icount'"),
            ("sysctl = ['calm']\n[sysctls.calm]\n'vm.swappiness' = 1", "'calm'"),
            ("include = [{ server = '18', workload = 'select-only', clients = 1, cpus = 2 }]", "2"),
        ] {
            let (message, at, help) = rejection(&format!("{host}{given}\n"));
            assert!(message.starts_with("no cell has this level"), "{message}");
            assert_eq!(at, level, "{given}");
            assert!(help.contains("a named `kernel`"), "{help}");
        }
        // Defaults are not shown.
        let defaults = "kernel_args = ['']\ncpus = ['host']\nstorage = ['host']\nacceleration = ['none']\n\
                     sysctl = ['default']\n";
        assert_eq!(machines(&format!("{host}{defaults}")), [""]);
        // A kernel on the machine itself has its own command line and parameters, but no other disk.
        let booted = TWO_KERNELS.replace("'host', ", "") + "acceleration = ['none']\n";
        assert_eq!(
            machines(&format!("{booted}kernel_args = ['quiet']\n")),
            ["kernel 6.12 kernel_args quiet"]
        );
        assert_eq!(rejection(&format!("{booted}storage = ['virtio']\n")).1, "'virtio'");
    }

    #[test]
    fn combinations_not_available_in_virtual_machines_are_rejected() {
        for (given, place, reason) in [
            ("disk = ['slow']\n[disks.slow]\nread_iops = 10", "'slow'", "`storage` selects its disk"),
            ("pin = ['one']\n[pins.one]\ndriver = '0'", "'one'", "`cpus` sets the number"),
            ("cache = ['cold']", "'cold'", "`storage = [\"virtio\"]`"),
            ("cpus = [1, 2]", "2", "counts instructions on one processor"),
            ("[profile]\noff_cpu = '1s'", "'1s'", "about waiting"),
            ("acceleration = ['tcg']\n[profile]\nhz = 99", "[profile]", "need counted instructions"),
            ("[hooks]\nbefore_trial = 'true'", "'true'", "a command on this machine"),
            ("[servers.'18']\ndsn = 'host=x'", "'18'", "already runs"),
        ] {
            let (message, at, help) = rejection(&format!("{TWO_KERNELS}{given}\n"));
            assert!(message.contains(reason), "{message}");
            assert!(at.starts_with(place), "{given}: {at}");
            assert!(help.contains("acceleration = [\"none\"]"), "{help}");
        }
        assert!(plan(&format!("{TWO_KERNELS}[profile]\n")).is_ok());
        // Excluded from the product, they do not affect the others.
        let text = format!("{TWO_KERNELS}cpus = [1, 2]\nacceleration = ['icount', 'kvm']\n");
        let text = format!("{text}exclude = [{{ acceleration = 'icount', cpus = 2 }}]\n");
        assert_eq!(machines(&text).len(), 4);
        assert_eq!(machines(&format!("{TWO_KERNELS}cache = ['cold']\nstorage = ['virtio']\n")).len(), 2);
        assert!(plan(&format!("{TWO_KERNELS}[hooks]\nbefore_campaign = 'true'\n")).is_ok());
        let host = TWO_KERNELS.replace(", '6.12'", "");
        assert!(plan(&format!("{host}[profile]\n")).is_ok());
    }

    #[test]
    fn threads_default_to_at_most_the_processors_of_the_virtual_machine() {
        let threads = |more: &str| {
            let text = format!("{TWO_KERNELS}{more}[run]\nthreads = 4\n");
            plan(&text).unwrap().cells.iter().map(|cell| cell.threads.unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(threads(""), [4, 1]);
        assert_eq!(threads("acceleration = ['kvm']\ncpus = [2]\n"), [4, 2]);
        assert_eq!(threads("threads = [3]\n"), [3, 3]);
    }

    #[test]
    fn kernels_are_versions_packages_and_paths() {
        let kernels = ["6.12", "linux-image-6.12.*-cloud-amd64", "./linux/bzImage", "/boot/vmlinuz"];
        let text = TWO_KERNELS.replace(
            "'6.12'",
            "'6.12', 'linux-image-6.12.*-cloud-amd64', './linux/bzImage', '/boot/vmlinuz'",
        );
        let mut plan = plan(&text).unwrap();
        plan.relative_to(std::path::Path::new("/campaigns"));
        assert_eq!(plan.kernels.iter().map(|kernel| kernel.name.as_str()).collect::<Vec<_>>(), kernels);
        let paths: Vec<_> =
            plan.kernels.iter().filter_map(|kernel| kernel.path.as_deref()?.to_str()).collect();
        assert_eq!(paths, ["/campaigns/./linux/bzImage", "/boot/vmlinuz"]);
        assert_eq!(plan.kernel(&plan.cells[0]), None);
        assert_eq!(plan.kernel(&plan.cells[3]), Some(&plan.kernels[2]));
        for (label, expected) in
            [("any", "\"host\""), ("6 12", "a version"), ("a/b,c", "without commas"), ("", "a path")]
        {
            let (_, at, help) = rejection(&TWO_KERNELS.replace("6.12", label));
            assert_eq!(at, format!("'{label}'"));
            assert!(help.contains(expected), "{help}");
        }
    }

    #[test]
    fn kernels_built_from_commits_boot_in_virtual_machines_only() {
        let text = TWO_KERNELS.replace("'6.12'", "'./linux@v6.6'");
        let plan = plan(&text).unwrap();
        let commit = (std::path::Path::new("./linux"), "v6.6");
        assert_eq!(plan.kernels.iter().map(KernelSpec::commit).collect::<Vec<_>>(), [Some(commit)]);
        let (message, at, help) = rejection(&format!("{text}acceleration = ['none']\n"));
        assert!(message.contains("./linux@v6.6 is built from a commit"), "{message}");
        assert_eq!(at, "'./linux@v6.6'");
        assert!(help.contains("its release"), "{help}");
    }

    #[test]
    fn kernel_parameters_are_named_as_in_sysctl() {
        let with = |line: &str| format!("{TWO_KERNELS}[sysctls.x]\n{line}\n");
        for good in ["'kernel.sched_autogroup_enabled' = 0", "'/sys/kernel/mm/ksm/run' = '0'"] {
            assert!(plan(&with(good)).is_ok(), "{good}");
        }
        for wrong in [
            "swappiness = 1",
            "'/proc/sys/vm/swappiness' = 1",
            "'/sys/../etc/passwd' = 1",
            "'/sys/' = 1",
            "'vm.' = 1",
        ] {
            let (_, at, help) = rejection(&with(wrong));
            assert!(wrong.starts_with(&at), "{at}");
            assert!(help.contains("\"vm.swappiness\""), "{help}");
        }
        assert!(rejection(&with("'vm.swappiness' = true")).2.contains("whole number"));
        assert!(rejection(&with("vm.swappiness = 1")).2.contains("in quotes"));
        assert_eq!(rejection(&format!("{TWO_KERNELS}[sysctls.default]\n")).1, "default");
        assert_eq!(rejection(&format!("{TWO_KERNELS}sysctl = ['calm']\n")).1, "'calm'");
    }

    #[test]
    fn storage_and_arguments_are_checked() {
        assert!(
            rejection(&format!("{TWO_KERNELS}storage = ['virtio-writeback-native']\n"))
                .0
                .contains("not available")
        );
        assert!(rejection(&format!("{TWO_KERNELS}storage = ['nvme']\n")).2.contains("directsync"));
        assert!(rejection(&format!("{TWO_KERNELS}kernel_args = [\"a\\nb\"]\n")).2.contains("printable"));
        let text = format!("{TWO_KERNELS}[run]\ncompare = 'acceleration'\n");
        assert_eq!(rejection(&text).1, "'acceleration'");
        assert!(rejection(&format!("{TWO_KERNELS}acceleration = ['hvf']\n")).2.contains("\"icount\""));
        assert!(rejection(&format!("{TWO_KERNELS}cpus = [0]\n")).2.contains("from 1 to 255"));
        assert!(rejection(&format!("{TWO_KERNELS}cpus = ['all']\n")).2.contains("\"host\""));
        assert_eq!(
            machines(&format!("{TWO_KERNELS}storage = ['virtio']\n"))[1],
            "kernel 6.12 acceleration icount storage virtio-writeback-threads"
        );
    }
}
