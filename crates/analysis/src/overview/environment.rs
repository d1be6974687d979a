//! Environment of the trials: facts of the machine with all their values, and the relevant settings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use diagnose::{KernelOptions, canonical_value, option_matters};
use model::environment::BlockDevice;
use model::record::{self, Trial};
use plaintext::figures;

use super::view::{Environment, Fact, FactValue, KernelOption, Setting, SettingValue};
use crate::context::TrialContext;
use crate::layout::ColumnKey;

/// Describes the environment of these trials.
pub(crate) fn describe(
    columns: &[ColumnKey],
    trials: &[&Trial],
    contexts: &BTreeMap<String, TrialContext>,
) -> Environment {
    let known = trials.iter().filter_map(|trial| Some((*trial, &contexts.get(&trial.id)?.environment)));
    let (known_trials, environments): (Vec<&Trial>, Vec<&record::Environment>) = known.unzip();
    let columns_of_trials = known_trials
        .iter()
        .map(|trial| columns.iter().position(|column| column.holds(&trial.cell)))
        .collect();
    let tally = Tally { columns_of_trials, columns: columns.len() };
    Environment {
        machine: machine(&environments),
        facts: facts(&known_trials, &environments, &tally),
        confounds: Vec::new(),
        kernel_options: kernel_options(columns, trials, contexts),
        settings: settings(columns, trials, contexts),
    }
}

/// The machine in one line, if there was only one.
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

fn facts(trials: &[&Trial], environments: &[&record::Environment], tally: &Tally) -> Vec<Fact> {
    if environments.is_empty() {
        return Vec::new();
    }
    let machine = |name: &str, value: fn(&record::Environment) -> Option<String>| Fact {
        group: "machine",
        name: name.to_owned(),
        of_kernel: false,
        values: tally.count(environments.iter().map(|environment| value(environment))),
    };
    let kernel = |name: &str, value: fn(&record::Environment) -> Option<String>| Fact {
        group: "kernel",
        of_kernel: true,
        ..machine(name, value)
    };
    let mut facts = vec![
        machine("host", |e| e.hostname.clone()),
        Fact {
            group: "machine",
            name: "agent".to_owned(),
            of_kernel: false,
            values: tally.count(trials.iter().map(|trial| trial.agent.clone())),
        },
        machine("processor", |e| e.cpu_model.clone()),
        machine("architecture", |e| e.architecture.clone()),
        machine("CPUs", |e| e.cpus.map(|cpus| cpus.to_string())),
        machine("frequency governor", |e| e.cpu_governor.clone()),
        machine("memory", |e| e.memory_bytes.map(figures::bytes)),
        machine("swap", |e| {
            e.swap_bytes.map(|swap| if swap == 0 { "none".into() } else { figures::bytes(swap) })
        }),
        machine("transparent huge pages", |e| e.transparent_hugepages.clone()),
        machine("transparent huge page defrag", |e| e.transparent_hugepages_defrag.clone()),
        machine("virtualization", |e| e.virtualization.clone()),
        machine("operating system", |e| e.os.clone()),
        kernel("kernel", |e| e.kernel.clone()),
        kernel("kernel build", |e| e.kernel_version.clone()),
        kernel("kernel configuration", |e| {
            let config = e.kernel_facts.config.as_ref()?;
            Some(format!("{} of {}", config.sha256.get(..12).unwrap_or(&config.sha256), config.source))
        }),
        kernel("CPU scheduler", |e| e.kernel_facts.scheduler.clone()),
        kernel("preemption", |e| e.kernel_facts.preemption.clone()),
        kernel("timer frequency (HZ)", |e| e.kernel_facts.hz.map(|hz| hz.to_string())),
        kernel("clock source", |e| e.clocksource.clone()),
        kernel("mitigations", |e| mitigations(&e.cpu.vulnerabilities)),
        kernel("modules", |e| e.kernel_facts.modules_list()),
        kernel("tainted", |e| {
            e.kernel_facts.tainted.map(|bits| if bits == 0 { "no".into() } else { bits.to_string() })
        }),
        machine(COMMAND_LINE, |e| e.kernel_command_line.clone()),
        machine("C library", |e| e.libc.clone()),
        machine("data filesystem", |e| e.data_filesystem.clone()),
        machine("mount options", |e| e.data_mount_options.clone()),
        machine("block devices of the data", |e| {
            let device = |device: &BlockDevice| {
                let model = device.facts.get("model").map(|model| format!(" ({model})")).unwrap_or_default();
                let scheduler = device.facts.get("scheduler").map(|name| format!(", scheduler {name}"));
                format!("{}{model}{}", device.name, scheduler.unwrap_or_default())
            };
            let devices: Vec<String> = e.data_devices.iter().map(device).collect();
            (!devices.is_empty()).then(|| devices.join(", "))
        }),
        Fact {
            group: "machine",
            name: "load average before a trial".to_owned(),
            of_kernel: false,
            values: load(environments, tally),
        },
    ];
    facts.extend(details(environments, tally));
    if environments.iter().all(|environment| environment.virtual_machine.is_some()) {
        for fact in &mut facts {
            fact.of_kernel |= fact.name != COMMAND_LINE && !fact.name.starts_with(VM_PREFIX);
        }
    }
    facts
}

/// Name of the kernel's command line.
const COMMAND_LINE: &str = "kernel command line";
/// Prefix of facts about the configuration of a virtual machine.
const VM_PREFIX: &str = "virtual_machine.";

/// Mitigations of the CPU's vulnerabilities, in the kernel's words.
fn mitigations(vulnerabilities: &BTreeMap<String, String>) -> Option<String> {
    let line = |(name, state): (&String, &String)| {
        (state != "Not affected").then(|| format!("{name}: {}", state.trim_start_matches("Mitigation: ")))
    };
    let lines: Vec<String> = vulnerabilities.iter().filter_map(line).collect();
    match vulnerabilities.is_empty() {
        true => None,
        false if lines.is_empty() => Some("none needed".to_owned()),
        false => Some(lines.join("; ")),
    }
}

/// Kernel options that differ between the columns.
fn kernel_options(
    columns: &[ColumnKey],
    trials: &[&Trial],
    contexts: &BTreeMap<String, TrialContext>,
) -> Vec<KernelOption> {
    let mut all: Vec<&Arc<KernelOptions>> = Vec::new();
    let mut of_columns: Vec<Vec<&KernelOptions>> = vec![Vec::new(); columns.len()];
    for trial in trials {
        let Some(column) = columns.iter().position(|column| column.holds(&trial.cell)) else { continue };
        let known = contexts.get(&trial.id).and_then(|known| known.kernel_options.as_ref());
        let Some(options) = known else { continue };
        if !all.contains(&options) {
            all.push(options);
        }
        if !of_columns[column].contains(&options.as_ref()) {
            of_columns[column].push(options);
        }
    }
    let all: Vec<&KernelOptions> = all.into_iter().map(Arc::as_ref).collect();
    let values = |option: &str| {
        let value = |of: &Vec<&KernelOptions>| {
            let mut values: Vec<&str> = of.iter().map(|options| options.value(option)).collect();
            values.dedup();
            (!values.is_empty()).then(|| values.join(", "))
        };
        of_columns.iter().map(value).collect()
    };
    KernelOptions::differing(&all)
        .into_iter()
        .map(|name| KernelOption { matters: option_matters(&name), values: values(&name), name })
        .collect()
}

/// Kernel parameters that affect PostgreSQL: they are shown even if all trials share them. A `*` at the end matches any
/// suffix.
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

/// Kernel parameters that matter, and other facts that differ between trials. Facts of servers and data sets are
/// expected to differ: settings and builds cover what a server reports.
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
            let values = tally.count(flat.iter().map(|facts| facts.get(name).cloned()));
            let differs = values.len() > 1;
            let of_kernel = diagnose::is_kernel_fact(&format!("machine {name}"));
            let fact = |group, name: &str| Some(Fact { group, name: name.to_owned(), of_kernel, values });
            match name.strip_prefix("sysctl.") {
                Some(name) if differs || is_shown(name) => fact("sysctl", name),
                None if !differs || is_named_fact(name) => None,
                None => fact("other", name),
                Some(_) => None,
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

/// Whether a fact is shown under a display name, in the groups `machine` and `kernel`.
fn is_named_fact(name: &str) -> bool {
    const GROUPS: [&str; 2] = ["cpu.vulnerabilities.", "kernel."];
    NAMED_FACTS.contains(&name) || GROUPS.iter().any(|group| name.starts_with(group))
}

const NAMED_FACTS: [&str; 17] = [
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
    "transparent_hugepages_defrag",
    "virtualization",
];

/// Counts values: `columns_of_trials` are the columns of their trials.
struct Tally {
    columns_of_trials: Vec<Option<usize>>,
    columns: usize,
}

impl Tally {
    /// Distinct values with their frequencies, the most frequent first, from one value per trial, in order.
    fn count(&self, values: impl Iterator<Item = Option<String>>) -> Vec<FactValue> {
        let mut tally: Vec<FactValue> = Vec::new();
        for (value, column) in values.zip(&self.columns_of_trials) {
            let at = tally.iter().position(|known| known.value == value).unwrap_or_else(|| {
                tally.push(FactValue { value, trials: 0, columns: vec![0; self.columns] });
                tally.len() - 1
            });
            tally[at].trials += 1;
            if let Some(column) = column {
                tally[at].columns[*column] += 1;
            }
        }
        tally.sort_by_key(|value| std::cmp::Reverse(value.trials));
        tally
    }
}

/// The load average differs in every trial: its range is what matters.
fn load(environments: &[&record::Environment], tally: &Tally) -> Vec<FactValue> {
    let known: Vec<u32> = environments.iter().filter_map(|e| e.load_average_1m_centi).collect();
    let text = |centi: u32| format!("{:.2}", f64::from(centi) / 100.0);
    let value = match (known.iter().min(), known.iter().max()) {
        (Some(least), Some(most)) if least == most => Some(text(*least)),
        (Some(least), Some(most)) => Some(format!("{} to {}", text(*least), text(*most))),
        _ => None,
    };
    tally.count(environments.iter().map(|_| value.clone()))
}

/// Settings for a server's paths and addresses, which do not affect its behaviour.
const LOCATION_SETTINGS: [&str; 12] = [
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

/// Non-default settings, and those that differ between columns.
fn settings(
    columns: &[ColumnKey],
    trials: &[&Trial],
    contexts: &BTreeMap<String, TrialContext>,
) -> Vec<Setting> {
    let mut settings: BTreeMap<String, Setting> = BTreeMap::new();
    let mut known: Vec<(usize, &Arc<Vec<record::Setting>>)> = Vec::new();
    for trial in trials {
        let Some(column) = columns.iter().position(|column| column.holds(&trial.cell)) else { continue };
        let Some(TrialContext { settings: of_trial, .. }) = contexts.get(&trial.id) else { continue };
        // Most trials share their settings, and add nothing.
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
    settings.into_values().filter(is_noteworthy).collect()
}

/// `override` is determined by the server (such as `data_checksums`), `client` and `session` are set by pgdyno's
/// connection.
///
/// Source: PostgreSQL manual, `pg_settings`; `GucSource` in guc.h.
fn is_default(source: &str) -> bool {
    matches!(source, "default" | "override" | "client" | "session")
}

fn is_noteworthy(setting: &Setting) -> bool {
    if LOCATION_SETTINGS.contains(&setting.name.as_str()) {
        return false;
    }
    let known = setting.values.iter().flatten();
    let was_set = known.clone().any(|value| !value.default);
    let canonical = |value: &SettingValue| -> Vec<String> {
        let unit = value.unit.as_deref();
        value.values.iter().map(|text| canonical_value(&setting.name, text, unit)).collect()
    };
    let mut canonical = known.map(canonical);
    let first = canonical.next();
    was_set || canonical.any(|value| Some(&value) != first.as_ref())
}
