//! Where the trials were measured: facts of the machine with every value they had, and the settings worth knowing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::environment::BlockDevice;
use model::record::{self, Trial};

use crate::analyse::{ColumnKey, Surroundings};
use crate::figures;
use crate::view::{Environment, Fact, FactValue, Setting, SettingValue};

/// Describes the surroundings of these trials.
pub(crate) fn describe(
    columns: &[ColumnKey],
    trials: &[&Trial],
    surroundings: &BTreeMap<String, Surroundings>,
) -> Environment {
    let known = trials.iter().filter_map(|trial| Some((*trial, &surroundings.get(&trial.id)?.environment)));
    let (of, environments): (Vec<&Trial>, Vec<&record::Environment>) = known.unzip();
    let places = of.iter().map(|trial| columns.iter().position(|column| column.holds(&trial.cell))).collect();
    let tally = Tally { places, columns: columns.len() };
    Environment {
        machine: machine(&environments),
        facts: facts(&environments, &tally),
        confounds: Vec::new(),
        settings: settings(columns, trials, surroundings),
    }
}

/// The machine in one line, where there was but one.
fn machine(environments: &[&record::Environment]) -> Option<String> {
    let mut lines = environments.iter().map(|environment| {
        let parts = [
            environment.cpu_model.clone(),
            environment.cpus.map(|cpus| figures::counted(cpus as usize, "CPU")),
            environment.memory_bytes.map(|bytes| format!("{} RAM", figures::bytes(bytes))),
            environment.data_filesystem.clone(),
            environment.kernel.clone(),
            environment.virtualization.clone(),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    });
    let first = lines.next().filter(|line| !line.is_empty())?;
    lines.all(|line| line == first).then_some(first)
}

fn facts(environments: &[&record::Environment], tally: &Tally) -> Vec<Fact> {
    if environments.is_empty() {
        return Vec::new();
    }
    let machine = |name: &str, value: fn(&record::Environment) -> Option<String>| Fact {
        group: "machine",
        name: name.to_owned(),
        values: tally.of(environments.iter().map(|environment| value(environment))),
    };
    let mut facts = vec![
        machine("host", |e| e.hostname.clone()),
        machine("processor", |e| e.cpu_model.clone()),
        machine("architecture", |e| e.architecture.clone()),
        machine("CPUs", |e| e.cpus.map(|cpus| cpus.to_string())),
        machine("frequency governor", |e| e.cpu_governor.clone()),
        machine("memory", |e| e.memory_bytes.map(figures::bytes)),
        machine("swap", |e| {
            e.swap_bytes.map(|swap| if swap == 0 { "none".into() } else { figures::bytes(swap) })
        }),
        machine("transparent huge pages", |e| e.transparent_hugepages.clone()),
        machine("clock source", |e| e.clocksource.clone()),
        machine("virtualization", |e| e.virtualization.clone()),
        machine("operating system", |e| e.os.clone()),
        machine("kernel", |e| e.kernel.clone()),
        machine("kernel build", |e| e.kernel_version.clone()),
        machine("kernel command line", |e| e.kernel_command_line.clone()),
        machine("C library", |e| e.libc.clone()),
        machine("data filesystem", |e| e.data_filesystem.clone()),
        machine("mount options", |e| e.data_mount_options.clone()),
        machine("block devices of the data", |e| {
            let device = |device: &BlockDevice| {
                let model = device.facts.get("model").map(|model| format!(" ({model})")).unwrap_or_default();
                format!("{}{model}", device.name)
            };
            let devices: Vec<String> = e.data_devices.iter().map(device).collect();
            (!devices.is_empty()).then(|| devices.join(", "))
        }),
        Fact {
            group: "machine",
            name: "load average before a trial".to_owned(),
            values: load(environments, tally),
        },
    ];
    facts.extend(details(environments, tally));
    facts
}

/// Kernel parameters that change what PostgreSQL does: they are shown though all trials share them. One that ends in
/// `*` stands for all that begin so.
///
/// Source: the kernel's admin-guide/sysctl.
const SYSCTL_SHOWN: [&str; 10] = [
    "kernel.numa_balancing",
    "kernel.perf_event_paranoid",
    "kernel.randomize_va_space",
    "kernel.sched_*",
    "net.core.somaxconn",
    "vm.dirty_*",
    "vm.nr_hugepages",
    "vm.overcommit_*",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
];

/// Kernel parameters that matter, and whatever else differs between trials. Of other servers and data sets it is known
/// that they differ: what a server says of itself is told by its settings and builds.
fn details(environments: &[&record::Environment], tally: &Tally) -> Vec<Fact> {
    let flat: Vec<BTreeMap<String, String>> = environments
        .iter()
        .map(|environment| {
            record::Environment { server: Default::default(), ..(*environment).clone() }.flatten()
        })
        .collect();
    let names: BTreeSet<&String> = flat.iter().flat_map(BTreeMap::keys).collect();
    names
        .into_iter()
        .filter_map(|name| {
            let values = tally.of(flat.iter().map(|facts| facts.get(name).cloned()));
            let differs = values.len() > 1;
            let fact = |group, name: &str| Some(Fact { group, name: name.to_owned(), values });
            match name.strip_prefix("sysctl.") {
                Some(name) if differs || is_shown(name) => fact("sysctl", name),
                None if differs && !IN_MACHINE.contains(&name.as_str()) => fact("other", name),
                _ => None,
            }
        })
        .collect()
}

fn is_shown(sysctl: &str) -> bool {
    SYSCTL_SHOWN.iter().any(|shown| match shown.strip_suffix('*') {
        Some(beginning) => sysctl.starts_with(beginning),
        None => sysctl == *shown,
    })
}

/// Facts that the group `machine` has under names for people.
const IN_MACHINE: [&str; 16] = [
    "architecture",
    "clocksource",
    "cpu_governor",
    "cpu_model",
    "cpus",
    "data_filesystem",
    "data_mount_options",
    "kernel",
    "kernel_command_line",
    "kernel_version",
    "libc",
    "memory_bytes",
    "os",
    "swap_bytes",
    "transparent_hugepages",
    "virtualization",
];

/// Counts values: `places` are the columns of the trials that they are of.
struct Tally {
    places: Vec<Option<usize>>,
    columns: usize,
}

impl Tally {
    /// Distinct values with their frequencies, the most frequent first; one value of each trial, in order.
    fn of(&self, values: impl Iterator<Item = Option<String>>) -> Vec<FactValue> {
        let mut tally: Vec<FactValue> = Vec::new();
        for (value, place) in values.zip(&self.places) {
            let at = tally.iter().position(|known| known.value == value).unwrap_or_else(|| {
                tally.push(FactValue { value, trials: 0, columns: vec![0; self.columns] });
                tally.len() - 1
            });
            tally[at].trials += 1;
            if let Some(column) = place {
                tally[at].columns[*column] += 1;
            }
        }
        tally.sort_by_key(|value| std::cmp::Reverse(value.trials));
        tally
    }
}

/// The load average is another one in every trial by nature: its range is what matters.
fn load(environments: &[&record::Environment], tally: &Tally) -> Vec<FactValue> {
    let known: Vec<u32> = environments.iter().filter_map(|e| e.load_average_1m_centi).collect();
    let text = |centi: u32| format!("{:.2}", f64::from(centi) / 100.0);
    let value = match (known.iter().min(), known.iter().max()) {
        (Some(least), Some(most)) if least == most => Some(text(*least)),
        (Some(least), Some(most)) => Some(format!("{} to {}", text(*least), text(*most))),
        _ => None,
    };
    tally.of(environments.iter().map(|_| value.clone()))
}

/// Settings that say where a server is, not how it works.
const PLACES: [&str; 12] = [
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "lc_messages",
    "log_line_prefix",
    "log_timezone",
    "port",
    "server_version",
    "server_version_num",
    "unix_socket_directories",
];

/// The settings that were set, and those whose values the columns do not share.
fn settings(
    columns: &[ColumnKey],
    trials: &[&Trial],
    surroundings: &BTreeMap<String, Surroundings>,
) -> Vec<Setting> {
    let mut settings: BTreeMap<String, Setting> = BTreeMap::new();
    let mut known: Vec<(usize, &Arc<Vec<record::Setting>>)> = Vec::new();
    for trial in trials {
        let Some(column) = columns.iter().position(|column| column.holds(&trial.cell)) else { continue };
        let Some(Surroundings { settings: of_trial, .. }) = surroundings.get(&trial.id) else { continue };
        // Most trials share theirs, and say nothing new.
        if known.iter().any(|(of, settings)| *of == column && Arc::ptr_eq(settings, of_trial)) {
            continue;
        }
        known.push((column, of_trial));
        for seen in of_trial.iter() {
            let setting = settings
                .entry(seen.name.clone())
                .or_insert_with(|| Setting { name: seen.name.clone(), values: vec![None; columns.len()] });
            let value = setting.values[column].get_or_insert_with(|| SettingValue {
                unit: seen.unit.clone(),
                values: Vec::new(),
                default: true,
            });
            value.default &= is_default(&seen.source);
            if !value.values.contains(&seen.value) {
                value.values.push(seen.value.clone());
            }
        }
    }
    settings.into_values().filter(worth_knowing).collect()
}

/// `override` is what the server finds for itself (such as `data_checksums`), `client` and `session` what our own
/// connection asks for.
///
/// Source: PostgreSQL manual, `pg_settings`; `GucSource` in guc.h.
fn is_default(source: &str) -> bool {
    matches!(source, "default" | "override" | "client" | "session")
}

fn worth_knowing(setting: &Setting) -> bool {
    if PLACES.contains(&setting.name.as_str()) {
        return false;
    }
    let mut known = setting.values.iter().flatten();
    let was_set = known.clone().any(|value| !value.default);
    let first = known.next();
    was_set
        || known.any(|value| {
            Some((&value.values, &value.unit)) != first.map(|first| (&first.values, &first.unit))
        })
}
