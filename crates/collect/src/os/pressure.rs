//! Pressure stall information: time in which tasks waited. Source: the kernel's accounting/psi.

use procfs::parse_pressure_record;

use model::metric;
use model::metrics::Metric;

use super::kernel_file::KernelFile;
use crate::Reading;
use crate::root::Root;

/// File, line, metric. At the system level, `full` is undefined for the CPU.
const RECORDS: [(&str, &str, &Metric); 5] = [
    ("cpu", "some", metric!("psi.cpu_some_us")),
    ("io", "some", metric!("psi.io_some_us")),
    ("io", "full", metric!("psi.io_full_us")),
    ("memory", "some", metric!("psi.memory_some_us")),
    ("memory", "full", metric!("psi.memory_full_us")),
];

/// The existing files: none before Linux 4.20, or if PSI is off.
#[derive(Debug)]
pub(super) struct Pressure {
    files: Vec<(&'static str, KernelFile)>,
}

impl Pressure {
    pub(super) fn new(root: &Root) -> Self {
        let file = |name| Some((name, KernelFile::open(root, &format!("proc/pressure/{name}"))?));
        Self { files: ["cpu", "io", "memory"].into_iter().filter_map(file).collect() }
    }

    pub(super) fn read(&mut self, into: &mut Reading) {
        for (name, file) in &mut self.files {
            let Some(text) = file.text() else { continue };
            for (_, line, metric) in RECORDS.iter().filter(|(file, ..)| file == name) {
                // Line by line: the crate's type of a whole file requires both lines, and older kernels have one for
                // the CPU.
                let record = text.lines().find(|text| text.starts_with(line));
                if let Some(record) = record.and_then(|line| parse_pressure_record(line).ok()) {
                    into.add(metric, None, record.total as f64);
                }
            }
        }
    }
}
