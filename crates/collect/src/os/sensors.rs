//! CPU frequencies and temperatures. Sources: the kernel's admin-guide/pm/cpufreq, hwmon/sysfs-interface and
//! `ABI/testing/sysfs-class-thermal`.

use model::metric;

use super::kernel_file::KernelFile;
use crate::Reading;
use crate::root::Root;

/// Sensors found at the start; virtual machines have none.
#[derive(Debug)]
pub(super) struct Sensors {
    /// In kHz.
    frequencies: Vec<(String, KernelFile)>,
    /// In thousandths of a degree.
    temperatures: Vec<(String, KernelFile)>,
}

impl Sensors {
    pub(super) fn new(root: &Root) -> Self {
        let frequency = |cpu: u32| {
            let file = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
            Some((format!("cpu{cpu}"), KernelFile::open(root, &file)?))
        };
        let cpus = root.numbered("sys/devices/system/cpu", "cpu");
        let mut temperatures = monitors(root);
        if temperatures.is_empty() {
            temperatures = zones(root);
        }
        Self { frequencies: cpus.into_iter().filter_map(frequency).collect(), temperatures }
    }

    pub(super) fn read(&mut self, into: &mut Reading) {
        for (cpu, file) in &mut self.frequencies {
            if let Some(khz) = file.number() {
                into.add(metric!("cpu.frequency_hz"), Some(cpu), khz * 1000.0);
            }
        }
        for (name, file) in &mut self.temperatures {
            if let Some(thousandths) = file.number() {
                into.add(metric!("temperature.celsius"), Some(name), thousandths / 1000.0);
            }
        }
    }
}

/// `hwmon0/temp1_input` and so on, named by chip and label.
fn monitors(root: &Root) -> Vec<(String, KernelFile)> {
    let mut found: Vec<(String, KernelFile)> = Vec::new();
    for chip in root.names("sys/class/hwmon") {
        let directory = format!("sys/class/hwmon/{chip}");
        for file in root.names(&directory) {
            let Some(sensor) = file.strip_suffix("_input").filter(|name| name.starts_with("temp")) else {
                continue;
            };
            let name = root.line(&format!("{directory}/name")).unwrap_or_else(|| chip.clone());
            let label =
                root.line(&format!("{directory}/{sensor}_label")).unwrap_or_else(|| sensor.to_owned());
            let mut label = format!("{name} {label}");
            // Chips of two CPUs have the same name.
            if found.iter().any(|(other, _)| *other == label) {
                label = format!("{label} ({chip})");
            }
            found.extend(KernelFile::open(root, &format!("{directory}/{file}")).map(|file| (label, file)));
        }
    }
    found
}

/// `thermal_zone0/temp` and so on, named by type and number.
fn zones(root: &Root) -> Vec<(String, KernelFile)> {
    let zone = |number: u32| {
        let directory = format!("sys/class/thermal/thermal_zone{number}");
        let kind = root.line(&format!("{directory}/type"))?;
        Some((format!("{kind} {number}"), KernelFile::open(root, &format!("{directory}/temp"))?))
    };
    root.numbered("sys/class/thermal", "thermal_zone").into_iter().filter_map(zone).collect()
}
