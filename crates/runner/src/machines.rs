//! Trials in virtual machines: each boots its kernel in a machine of its own, where the same program runs the trial and
//! sends its bundle back.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use collect::{Perf, ProfileError};
use host::{Cache, Scratch, usable_cpus};
use jiff::Timestamp;
use machine::Kernel;
use machine::vm::guest::{GuestConfig, Job};
use machine::vm::{Frame, Hardware, Initramfs, Vm, VmError};
use model::cell::Cell;
use model::commit_log::KERNEL_COMMIT_LOG;
use model::environment::{Environment, VirtualMachine};
use model::machine::{Storage, kernel_commit};
use model::message::Interval;
use model::outage::Outage;
use model::plan::Plan;
use model::record::{Log, TrialRecord};
use model::units::Size;
use model::waits::Waits;
use server::guest::{guest_server, is_runtime_file};
use store::Store;

use crate::error::RunError;
use crate::schedule::NextTrial;
use crate::servers::Servers;
use crate::trial::{self, FinishedTrial, RunContext};

/// The guest's directory of its job, a store.
pub(crate) const JOB: &str = "/job";
/// The guest's directory of its bundle, a store, and the path of its files when sent to the host.
pub(crate) const RESULT: &str = "result";

/// The guest's path of perf, on its `PATH`.
const PERF: &str = "/usr/bin/perf";

/// Kernel modules that a disk needs, unless they are built in.
const DISK_MODULES: [&str; 3] = ["virtio_pci", "virtio_blk", "ext4"];
/// Memory of a guest in addition to its file system if the cell gives no size: for the kernel, the server and its sessions.
const MEMORY_BYTES: u64 = 1 << 30;
/// Granularity of a guest's memory.
const MEMORY_STEP_BYTES: u64 = 64 << 20;

/// Maximum size of the files of a trial from a guest, which are in memory until it ends.
const MAX_INCOMING_BYTES: usize = 1 << 30;

/// The kernels of a campaign and the emulator that boots them.
pub(crate) struct Machines {
    emulator: String,
    kernels: BTreeMap<String, Kernel>,
    /// What their repositories say about the commits that kernels are built from, by name of the kernel.
    commit_texts: BTreeMap<String, String>,
    /// perf, if the plan asks for profiles and it can run in guests.
    perf: Option<PathBuf>,
}

/// A guest that returned no trial, with its kernel's output.
struct Failure {
    why: String,
    /// The outage of the host that is the reason, if it is one.
    outage: Option<Outage>,
    console: Option<Log>,
}

/// Files that a guest sent, by their paths.
#[derive(Default)]
struct Incoming {
    files: BTreeMap<String, Vec<u8>>,
    bytes: usize,
}

impl Incoming {
    /// Adds a part of a file.
    fn add(&mut self, path: String, part: Vec<u8>) -> Result<(), VmError> {
        self.bytes += path.len() + part.len();
        if self.bytes > MAX_INCOMING_BYTES {
            let limit = Size::from_bytes(MAX_INCOMING_BYTES as u64);
            return Err(VmError::Guest(format!("its files are larger than {limit}, the limit for a trial")));
        }
        self.files.entry(path).or_default().extend(part);
        Ok(())
    }
}

impl Machines {
    /// Fetches or builds the kernels of the cells that run in virtual machines; none if there are no such cells.
    ///
    /// # Errors
    /// There is no emulator; a kernel can't be fetched or built.
    pub(crate) fn prepare(
        cache: &Cache,
        plan: &Plan,
        cells: &[&Cell],
        progress: &dyn host::Progress,
    ) -> Result<Option<Self>, RunError> {
        let virtual_cells: Vec<&Cell> =
            cells.iter().copied().filter(|cell| cell.acceleration.is_virtual()).collect();
        if virtual_cells.is_empty() {
            return Ok(None);
        }
        let left = machine::sweep(cache)?.len();
        if left > 0 {
            progress.notice(&format!("removed {left} incomplete kernels of a killed pgdyno"));
        }
        let emulator = machine::vm::emulator()?;
        let perf = match plan.profile.map(|_| Perf::for_guests()) {
            Some(Err(error)) => {
                progress.notice(&without_profile(&error));
                None
            }
            found => found.and_then(Result::ok),
        };
        let mut machines = Self { emulator, kernels: BTreeMap::new(), commit_texts: BTreeMap::new(), perf };
        for cell in virtual_cells {
            machines.provide(cache, plan, cell, progress)?;
        }
        Ok(Some(machines))
    }

    /// Fetches or builds the kernel of a cell, unless that has been done.
    ///
    /// # Errors
    /// It can't be fetched or built, or lacks a module for the cell's disk.
    pub(crate) fn provide(
        &mut self,
        cache: &Cache,
        plan: &Plan,
        cell: &Cell,
        progress: &dyn host::Progress,
    ) -> Result<(), machine::Error> {
        let Some(spec) = plan.kernel(cell) else { return Ok(()) };
        if !self.kernels.contains_key(&spec.name) {
            let path = spec.path.as_ref().map(|path| path.to_string_lossy().into_owned());
            let label = path.unwrap_or_else(|| spec.name.clone());
            let text = kernel_commit(&label)
                .and_then(|(repository, name)| host::git::commit_text(Path::new(repository), name));
            self.commit_texts.extend(text.map(|text| (spec.name.clone(), text)));
            let kernel = machine::kernel(cache, &label, Path::new(""), progress)?;
            self.kernels.insert(spec.name.clone(), kernel);
        }
        if let Some(kernel) = self.kernels.get(&spec.name).filter(|_| has_disk(cell)) {
            // A missing module is reported before the first trial.
            machine::modules(kernel, &DISK_MODULES)?;
        }
        Ok(())
    }

    /// Adds to the record of a cell's trial the commit that its kernel was built from.
    pub(crate) fn add_commit(&self, cell: &Cell, record: &mut TrialRecord) {
        let text = cell.kernel.as_ref().and_then(|name| self.commit_texts.get(name)).cloned();
        record.logs.extend(text.map(|text| Log { name: KERNEL_COMMIT_LOG.to_owned(), text }));
    }

    /// Runs one trial in a guest. A failure of the guest makes an invalid trial.
    ///
    /// # Errors
    /// The cell's kernel is not one of the campaign's.
    pub(crate) fn run(
        &self,
        context: &RunContext,
        cache: &Cache,
        servers: &Servers,
        next: &NextTrial,
        on_interval: impl FnMut(&Interval, Option<&[Waits]>),
    ) -> Result<FinishedTrial, RunError> {
        let started = Timestamp::now();
        let cell = context.plan.cell(&next.trial);
        let mut machine = self.describe(cell);
        let outcome = self.attempt(context, cache, servers, next, &mut machine, on_interval);
        Ok(match outcome {
            Ok(mut record) => {
                // A guest's clock is not the host's: where instructions are counted, it is slower, or jumps.
                let (of_guest, ended) = (record.trial.started, record.trial.ended);
                record.trial.started = of_guest.into_iter().chain([started]).min();
                record.trial.ended = ended.into_iter().chain([Timestamp::now()]).max();
                let loaded = record.trial.load_started.is_some();
                FinishedTrial { loaded, outage: None, refusal: None, record }
            }
            Err(Failure { why, outage, console }) => {
                let environment = Environment { virtual_machine: Some(machine), ..Environment::default() };
                let logs = console.into_iter().collect();
                trial::failed(context, next, started, environment, (why, outage), logs)
            }
        })
    }

    fn describe(&self, cell: &Cell) -> VirtualMachine {
        let kernel = cell.kernel.as_ref().and_then(|name| self.kernels.get(name));
        let host = rustix::system::uname();
        VirtualMachine {
            acceleration: cell.acceleration.as_str().to_owned(),
            emulator: self.emulator.clone(),
            cpus: cpus(cell),
            storage: cell.storage.to_string(),
            cpu_model: machine::vm::cpu_model(cell.acceleration).to_owned(),
            kernel_source: kernel.map(|kernel| kernel.origin.clone()).unwrap_or_default(),
            kernel_identity: kernel.map(|kernel| kernel.identity.clone()).unwrap_or_default(),
            host_kernel: Some(host.release().to_string_lossy().into_owned()),
            ..VirtualMachine::default()
        }
    }

    fn attempt(
        &self,
        context: &RunContext,
        cache: &Cache,
        servers: &Servers,
        next: &NextTrial,
        machine: &mut VirtualMachine,
        mut on_interval: impl FnMut(&Interval, Option<&[Waits]>),
    ) -> Result<TrialRecord, Failure> {
        let cell = context.plan.cell(&next.trial);
        machine.host_cpu = context.host.environment(None).cpu_model;
        let (root, disk, kernel) = self.pack(context, cache, servers, next)?;
        machine.memory_bytes = memory(cell, &root);
        let hardware = Hardware {
            acceleration: cell.acceleration,
            cpus: machine.cpus,
            memory_bytes: machine.memory_bytes,
            disk: disk.map(|image| (image, cell.storage)),
            host_files: false,
            silence_timeout: None,
        };
        let mut vm = Vm::boot(&kernel.image, root, hardware, &cell.kernel_args)?;
        machine.command_line = vm.command_line().to_vec();
        let mut incoming = Incoming::default();
        let mut failed = None;
        let started = Instant::now();
        let elapsed_us = || u64::try_from(started.elapsed().as_micros()).ok();
        let code = vm.run(&|| context.interrupt.load(Ordering::Relaxed), |frame| {
            match frame {
                Frame::Up => machine.up_after_us = elapsed_us(),
                Frame::Ready => machine.ready_after_us = elapsed_us(),
                Frame::Interval(json) => {
                    if let Ok(interval) = serde_json::from_slice(&json) {
                        on_interval(&interval, None);
                    }
                }
                Frame::File(path, bytes) => incoming.add(path, bytes)?,
                Frame::Failed(why) => failed = Some(why),
                _ => {}
            }
            Ok(())
        });
        let console = Log { name: "console".to_owned(), text: vm.console() };
        let result = match (code, failed) {
            (Err(error), _) => Err(error.to_string()),
            (Ok(_), Some(why)) => Err(format!("in the virtual machine: {why}")),
            (Ok(0), None) => read_bundle(cache, &incoming.files).map_err(|error| error.to_string()),
            (Ok(code), None) => Err(format!("pgdyno in the virtual machine ended with {code}")),
        };
        match result {
            Err(why) => Err(Failure { why, outage: None, console: Some(console) }),
            Ok(mut record) => {
                // The guest derived its id from a virtual clock.
                record.trial.id = store::new_id();
                record.environment.virtual_machine = Some(machine.clone());
                record.logs.push(console);
                Ok(record)
            }
        }
    }

    /// The files, disk and kernel of a trial's guest.
    fn pack(
        &self,
        context: &RunContext,
        cache: &Cache,
        servers: &Servers,
        next: &NextTrial,
    ) -> Result<(Initramfs, Option<fs::File>, &Kernel), RunError> {
        let cell = context.plan.cell(&next.trial);
        let none = || server::Error::NoTemplate { server: cell.server.clone(), content: String::new() };
        let template = servers.template(cell).ok_or_else(none)?;
        let name = cell.kernel.as_deref().unwrap_or_default();
        let kernel = self.kernels.get(name).ok_or_else(|| RunError::NoKernel { name: name.to_owned() })?;

        let mut root = Initramfs::new(cache.directory())?;
        root.keep_symbols(self.perf.is_some());
        let variables = pack(&mut root, cache, template, !has_disk(cell))?;
        root.keep_symbols(false);
        if let Some(perf) = &self.perf {
            root.program(perf, Some(Path::new(PERF)))?;
        }
        let job = Scratch::new(cache)?;
        let id = write_job(job.path(), context, next)?;
        root.tree(job.path(), Path::new(JOB), &|_| true)?;
        if let Some(config) = &kernel.config {
            let content = fs::read(config).map_err(VmError::from)?;
            root.file(&Path::new("/boot").join(format!("config-{}", kernel.release)), 0o644, &content)?;
        }
        let (mut disk, mut modules) = (None, Vec::new());
        if has_disk(cell) {
            disk = Some(machine::vm::image(template.directory(), template.bytes(), cache.directory())?);
            modules = machine::modules(kernel, &DISK_MODULES)?;
        }
        let config = GuestConfig {
            disk_at: disk.as_ref().map(|_| server::guest::disk_at(cache)),
            sysctl: cell
                .sysctl
                .values
                .iter()
                .map(|(name, value)| (sysctl_file(name), value.clone()))
                .collect(),
            variables,
            ..GuestConfig::new(Job::Pgdyno(vec![id]))
        };
        config.pack(&mut root, context.program, &modules)?;
        Ok((root, disk, kernel))
    }
}

/// Packs a server for a guest, with its data unless they are on a disk. Returns the environment variables that pgdyno needs
/// in the guest.
fn pack(
    root: &mut Initramfs,
    cache: &Cache,
    template: &server::Template,
    with_data: bool,
) -> Result<Vec<(String, String)>, RunError> {
    let server = guest_server(cache, template)?;
    for program in &server.programs {
        root.program(program, None)?;
    }
    for directory in &server.directories {
        root.tree(directory, directory, &is_runtime_file)?;
    }
    root.libraries_of(&server.libraries)?;
    for (path, content) in &server.files {
        root.file(path, 0o644, content)?;
    }
    root.directory(&server.clusters, 0o755)?;
    if with_data {
        let (from, to) = &server.data;
        root.tree(from, to, &|_| true)?;
    }
    Ok(server.environment)
}

fn has_disk(cell: &Cell) -> bool {
    matches!(cell.storage, Storage::Virtio { .. })
}

/// Notice that trials in guests have no profile.
pub(crate) fn without_profile(error: &ProfileError) -> String {
    format!("trials with counted instructions have no profile: {error}")
}

/// Processors of a cell's guest; by default as many as the host has.
fn cpus(cell: &Cell) -> u32 {
    cell.cpus.or_else(usable_cpus).unwrap_or(1)
}

/// Memory of a cell's guest. The default holds its file system, of which there are two copies while it is unpacked, and the
/// server; it is the same for all trials of a cell.
fn memory(cell: &Cell, root: &Initramfs) -> u64 {
    cell.memory
        .bytes()
        .unwrap_or_else(|| (2 * root.bytes() + MEMORY_BYTES).next_multiple_of(MEMORY_STEP_BYTES))
}

/// The file of a kernel parameter, which is given as a path or by its sysctl(8) name.
fn sysctl_file(name: &str) -> PathBuf {
    if name.starts_with('/') {
        PathBuf::from(name)
    } else {
        Path::new("/proc/sys").join(name.replace('.', "/"))
    }
}

impl<E: std::error::Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let outage = host::is_exhausted(&error).then_some(Outage::Exhausted);
        Self { why: error.to_string(), outage, console: None }
    }
}

/// Writes the job for a trial as a store and returns the job's id. The store has the campaign's workloads too, so that
/// the guest needs none of the campaign's files, and its secrets, which the trial needs.
fn write_job(directory: &Path, context: &RunContext, next: &NextTrial) -> Result<String, RunError> {
    let store = Store::open(directory)?.with_secrets();
    let cell = context.plan.cell(&next.trial);
    let mut id = String::new();
    let mut written: Vec<&str> = Vec::new();
    for known in std::iter::once(cell).chain(&context.plan.cells) {
        let is_job = id.is_empty();
        let is_new = known.workload.custom().is_some() && !written.contains(&known.workload.name());
        if is_job || is_new {
            let record = TrialRecord::new(next.head(context.run, known));
            if is_job {
                id.clone_from(&record.trial.id);
            }
            store.write(&record)?;
            written.push(known.workload.name());
        }
    }
    Ok(id)
}

/// The one trial of a store that the guest sent as files, by their paths.
fn read_bundle(cache: &Cache, files: &BTreeMap<String, Vec<u8>>) -> Result<TrialRecord, RunError> {
    let directory = Scratch::new(cache)?;
    for (path, bytes) in files {
        write_below(directory.path(), path, bytes).map_err(VmError::from)?;
    }
    let store = Store::existing(&directory.path().join(RESULT))?;
    let ids = store.ids()?;
    let [id] = ids.as_slice() else { return Err(RunError::NoBundle { count: ids.len() }) };
    Ok(store.load(id)?)
}

/// Writes a file below a directory; rejects paths that lead out of it.
fn write_below(directory: &Path, path: &str, bytes: &[u8]) -> io::Result<()> {
    let path = Path::new(path);
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(io::Error::other(format!("{} is not below its directory", path.display())));
    }
    let file = directory.join(path);
    if let Some(above) = file.parent() {
        fs::create_dir_all(above)?;
    }
    fs::write(file, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_parameters_are_files() {
        assert_eq!(sysctl_file("vm.swappiness"), Path::new("/proc/sys/vm/swappiness"));
        assert_eq!(
            sysctl_file("/sys/block/vda/queue/scheduler"),
            Path::new("/sys/block/vda/queue/scheduler")
        );
    }

    #[test]
    fn files_of_a_guest_are_limited() {
        let mut incoming = Incoming::default();
        incoming.add("result/a".to_owned(), b"one".to_vec()).unwrap();
        incoming.add("result/a".to_owned(), b" two".to_vec()).unwrap();
        assert_eq!(incoming.files["result/a"], b"one two");
        incoming.bytes = MAX_INCOMING_BYTES - 10;
        incoming.add("b".to_owned(), vec![0; 9]).unwrap();
        let error = incoming.add("b".to_owned(), vec![0]).unwrap_err();
        assert!(error.to_string().contains("larger than 1GB"), "{error}");
    }

    #[test]
    fn files_of_a_guest_stay_below_their_directory() {
        let place = tempfile::tempdir().unwrap();
        write_below(place.path(), "result/trials/a", b"one").unwrap();
        assert_eq!(fs::read(place.path().join("result/trials/a")).unwrap(), b"one");
        for path in ["../out", "/etc/passwd", "a/../../b"] {
            assert!(write_below(place.path(), path, b"").is_err(), "{path}");
        }
    }
}
