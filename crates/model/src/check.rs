//! Checks what a campaign says: names are known, numbers in range. What is wrong is shown at its place in the text.

mod machine;
mod run;
mod server;
mod settings;
mod value;

use toml::Spanned;

use crate::cell::{CacheState, Pin, cpu_list};
use crate::factor::ANY;
use crate::limits::{DiskLimit, MemoryLimit};
use crate::matrix::Level;
use crate::spec::{self, Campaign, SpecError};
use crate::units::{Span, Throughput};
use crate::workload::{Protocol, Transport, Workload, Workloads};
use value::{one_of, plain, whole};

/// The most clients a campaign may ask for: beyond PostgreSQL's own limit of connections.
const MAX_CLIENTS: i64 = 262_143;
/// The highest scale at which pgbench's account numbers fit its tables' integer columns.
const MAX_SCALE: i64 = 21_474;
/// The most threads a driver may have.
const MAX_THREADS: i64 = 1024;
/// The least memory that a server can be asked to live in.
const LEAST_MEMORY_BYTES: u64 = 8 << 20;
/// The most requests a second that a disk may be limited to.
const MAX_IOPS: i64 = 1_000_000_000;

/// A campaign under examination: what its cells have in common has been checked.
pub(crate) struct Checked<'a> {
    campaign: &'a Campaign,
    /// The workloads beside pgbench's that may be named.
    workloads: &'a Workloads,
    /// Length of the measured window, where no factor or workload says it.
    pub(crate) duration: Span,
    /// Load before it, where it is not a share of the duration.
    pub(crate) warmup: Option<Span>,
    /// Threads of the driver, where no factor says it.
    pub(crate) threads: u32,
}

/// A campaign's name is plain enough for file names and tables.
pub(crate) fn name(name: &Spanned<String>) -> Result<(), SpecError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let text = name.get_ref();
    if text.is_empty() || text.len() > 60 || !text.chars().all(plain) {
        return Err(SpecError::at(
            name,
            format!("campaign name \"{text}\" can't be used"),
            "expected 1 to 60 letters, digits, `-`, `_` or `.`",
        ));
    }
    Ok(())
}

impl<'a> Checked<'a> {
    /// Checks everything that is not a level of a factor, used or not.
    pub(crate) fn new(campaign: &'a Campaign, workloads: &'a Workloads) -> Result<Self, SpecError> {
        name(&campaign.name)?;
        let duration = Span::from_us(10_000_000);
        let mut checked = Self { campaign, workloads, duration, warmup: None, threads: 1 };
        if let Some(given) = &campaign.run.duration {
            checked.duration = checked.window(given)?;
        }
        checked.warmup = campaign.run.warmup.as_ref().map(|given| *given.get_ref());
        if let Some(given) = &campaign.run.threads {
            checked.threads = checked.threads(given)?;
        }
        for tag in &campaign.tags {
            plain(tag, "tag")?;
        }
        for (name, table) in &campaign.servers {
            plain(name, "name of a server")?;
            server::of_table(name.get_ref(), table)?;
        }
        for name in campaign.settings.keys() {
            plain(name, "name of settings")?;
            checked.settings(name)?;
        }
        for (name, pin) in &campaign.pins {
            plain(name, "name of a pin")?;
            for given in [&pin.driver, &pin.server].into_iter().flatten() {
                cpus(given)?;
            }
        }
        for (name, table) in &campaign.disks {
            plain(name, "name of a disk limit")?;
            disk_limit(name.get_ref(), table)?;
        }
        checked.sysctls()?;
        for name in campaign.workloads.keys() {
            plain(name, "name of a workload")?;
            if Workload::by_name(name.get_ref()).is_some() {
                return Err(SpecError::at(
                    name,
                    format!("`{}` is a built-in workload", name.get_ref()),
                    "expected another name for this one",
                ));
            }
            checked.workload(name)?;
        }
        Ok(checked)
    }

    /// A host, none for any.
    pub(crate) fn host(&self, given: &Spanned<String>) -> Result<Level, SpecError> {
        if given.get_ref() == ANY {
            return Ok(Level::Host(None));
        }
        plain(given, "label")?;
        Ok(Level::Host(Some(given.get_ref().clone())))
    }

    pub(crate) fn workload(&self, given: &Spanned<String>) -> Result<Level, SpecError> {
        let named = self.campaign.workloads.iter().find(|(name, _)| name.get_ref() == given.get_ref());
        let Some((_, table)) = named else {
            let workload = self.known_workload(given)?;
            return Ok(Level::Workload { workload, duration: None, warmup: None });
        };
        let builtin = table.builtin.as_ref();
        let known = builtin
            .filter(|_| !table.says_how())
            .and_then(|builtin| Workload::by_name(builtin.get_ref()))
            .or_else(|| self.workloads.get(given.get_ref()));
        Ok(Level::Workload {
            workload: match (known, builtin) {
                (Some(workload), _) => workload,
                (None, Some(builtin)) => self.known_workload(builtin)?,
                (None, None) => {
                    return Err(SpecError::at(
                        given,
                        format!("it is not said what the workload \"{}\" does", given.get_ref()),
                        "expected `builtin`, `directory`, `script` or `scripts` in its table",
                    ));
                }
            },
            duration: table.duration.as_ref().map(|given| self.window(given)).transpose()?,
            warmup: table.warmup.as_ref().map(|given| *given.get_ref()),
        })
    }

    /// A workload by its own name: pgbench's, or of those that may be named.
    fn known_workload(&self, given: &Spanned<String>) -> Result<Workload, SpecError> {
        let name = given.get_ref();
        if let Some(workload) = Workload::by_name(name).or_else(|| self.workloads.get(name)) {
            return Ok(workload);
        }
        let builtin = Workload::BUILTIN;
        let known = builtin.iter().map(Workload::name).chain(self.workloads.0.keys().map(String::as_str));
        let known: Vec<String> = known.map(|name| format!("\"{name}\"")).collect();
        Err(SpecError::at(
            given,
            format!("there is no workload \"{name}\""),
            format!("expected {}", known.join(", ")),
        ))
    }

    pub(crate) fn scale(&self, given: &Spanned<i64>) -> Result<Level, SpecError> {
        whole(given, "scale", 1, MAX_SCALE).map(|scale| Level::Scale(scale as u32))
    }

    pub(crate) fn clients(&self, given: &Spanned<i64>) -> Result<Level, SpecError> {
        whole(given, "clients", 1, MAX_CLIENTS).map(|clients| Level::Clients(clients as u32))
    }

    pub(crate) fn threads(&self, given: &Spanned<i64>) -> Result<u32, SpecError> {
        whole(given, "threads", 1, MAX_THREADS).map(|threads| threads as u32)
    }

    pub(crate) fn protocol(&self, given: &Spanned<String>) -> Result<Level, SpecError> {
        one_of(given, "protocol", &Protocol::ALL.map(|p| (p.name(), p))).map(Level::Protocol)
    }

    pub(crate) fn transport(&self, given: &Spanned<String>) -> Result<Level, SpecError> {
        one_of(given, "transport", &Transport::ALL.map(|t| (t.name(), t))).map(Level::Transport)
    }

    /// A length that can be measured.
    pub(crate) fn window(&self, given: &Spanned<Span>) -> Result<Span, SpecError> {
        if given.get_ref().us() >= 100_000 {
            return Ok(*given.get_ref());
        }
        Err(SpecError::at(
            given,
            format!("a duration of {} is too short to measure", given.get_ref()),
            "expected at least 100ms",
        ))
    }

    pub(crate) fn pin(&self, given: &Spanned<String>) -> Result<Level, SpecError> {
        let name = given.get_ref();
        let named = self.campaign.pins.iter().find(|(defined, _)| defined.get_ref() == name);
        match named {
            Some((_, pin)) => Ok(Level::Pin(Pin {
                name: name.clone(),
                driver: pin.driver.as_ref().map(cpus).transpose()?,
                server: pin.server.as_ref().map(cpus).transpose()?,
            })),
            None if *name == Pin::none().name => Ok(Level::Pin(Pin::none())),
            None => Err(SpecError::at(
                given,
                format!("there is no pin \"{name}\""),
                format!("expected \"none\", or a table [pins.{name}]"),
            )),
        }
    }

    pub(crate) fn cache(&self, given: &Spanned<String>) -> Result<Level, SpecError> {
        one_of(given, "cache", &CacheState::ALL.map(|state| (state.name(), state))).map(Level::Cache)
    }

    pub(crate) fn memory(&self, given: &Spanned<MemoryLimit>) -> Result<Level, SpecError> {
        match given.get_ref().bytes() {
            Some(bytes) if bytes < LEAST_MEMORY_BYTES => Err(SpecError::at(
                given,
                format!("memory of {} is too little for any server", given.get_ref()),
                "expected at least \"8MB\", or \"none\"",
            )),
            _ => Ok(Level::Memory(*given.get_ref())),
        }
    }

    pub(crate) fn disk(&self, given: &Spanned<String>) -> Result<Level, SpecError> {
        let name = given.get_ref();
        let named = self.campaign.disks.iter().find(|(defined, _)| defined.get_ref() == name);
        match named {
            Some((_, table)) => disk_limit(name, table).map(Level::Disk),
            None if *name == DiskLimit::none().name => Ok(Level::Disk(DiskLimit::none())),
            None => Err(SpecError::at(
                given,
                format!("there is no disk limit \"{name}\""),
                format!("expected \"none\", or a table [disks.{name}]"),
            )),
        }
    }
}

/// A table of `[disks.…]`.
fn disk_limit(name: &str, table: &Spanned<spec::Disk>) -> Result<DiskLimit, SpecError> {
    let spec::Disk { read, read_iops, write, write_iops } = table.get_ref();
    let bytes = |given: &Option<Spanned<Throughput>>, what: &str| match given {
        None => Ok(None),
        Some(given) if given.get_ref().0.bytes() > 0 => Ok(Some(given.get_ref().0.bytes())),
        Some(given) => Err(SpecError::at(
            given,
            format!("nothing could be {what} at all"),
            "expected a size in a second, such as \"100MB/s\"",
        )),
    };
    let requests = |given: &Option<Spanned<i64>>, what: &str| {
        given.as_ref().map(|given| whole(given, what, 1, MAX_IOPS).map(|number| number as u64)).transpose()
    };
    let limit = DiskLimit {
        name: name.to_owned(),
        read_bytes_s: bytes(read, "read")?,
        read_iops: requests(read_iops, "read_iops")?,
        write_bytes_s: bytes(write, "written")?,
        write_iops: requests(write_iops, "write_iops")?,
    };
    match limit.is_none() {
        true => Err(SpecError::at(
            table,
            format!("the disk limit \"{name}\" limits nothing"),
            "expected at least one of `read`, `read_iops`, `write` and `write_iops`",
        )),
        false => Ok(limit),
    }
}

/// Processors, as the kernel lists them.
fn cpus(given: &Spanned<String>) -> Result<String, SpecError> {
    match cpu_list(given.get_ref()) {
        Some(_) => Ok(given.get_ref().clone()),
        None => Err(SpecError::at(
            given,
            format!("\"{}\" is not a list of processors", given.get_ref()),
            "expected numbers and ranges, such as \"0-3,8\"",
        )),
    }
}
