//! The campaign of `pgdyno init`: text with comments, for a user to change.

use model::units::{Share, Span};
use plaintext::figures::{bytes, counted};
use server::BYTES_PER_SCALE;

use super::toml_text::{key, string, strings};

/// What a new campaign compares, and how long it may take.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Name of the campaign.
    pub name: String,
    /// Versions or names of builds, the baseline first.
    pub servers: Vec<String>,
    /// Names of workloads, and of the scripts in the campaign's directory.
    pub workloads: Vec<DraftWorkload>,
    /// Scale factor of pgbench's tables.
    pub scale: u32,
    /// Numbers of clients.
    pub clients: Vec<u32>,
    /// Time for the whole campaign.
    pub time: Span,
    /// The smallest change that matters.
    pub effect: Share,
    /// The machine that it is for.
    pub machine: DraftMachine,
}

/// A workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DraftWorkload {
    /// A built-in or bundled one.
    Named(String),
    /// A script of the user's, with SQL files that create its tables.
    Script {
        /// Name of the workload.
        name: String,
        /// File.
        file: String,
        /// Files.
        setup: Vec<String>,
    },
}

impl DraftWorkload {
    /// Name of the workload.
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) | Self::Script { name, .. } => name,
        }
    }
}

/// What a campaign is fitted to.
#[derive(Clone, Debug, Default)]
pub struct DraftMachine {
    /// CPUs that pgdyno may use.
    pub cpus: Option<u32>,
    /// Main memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Whether other processes use too much of the CPUs for pins.
    pub is_shared: bool,
}

/// Shortest and longest load of a trial of a single server, in seconds.
const DURATIONS_S: std::ops::RangeInclusive<u64> = 5..=60;
/// Repeats of a single server's cells: enough to show how much they spread.
const REPEATS: usize = 3;
/// Time of a trial without its load, in seconds: starting, warming up, stopping.
const OVERHEAD_S: u64 = 10;

impl Draft {
    /// The campaign's text.
    pub fn to_toml(&self) -> String {
        let Self { name, machine, .. } = self;
        let cpus = machine
            .cpus
            .map_or_else(|| "an unknown number of CPUs".to_owned(), |cpus| counted(cpus as usize, "CPU"));
        let memory = machine
            .memory_bytes
            .map_or_else(String::new, |memory| format!(" and {} of memory", bytes(memory)));
        format!(
            "# Written by pgdyno init, for a machine with {cpus}{memory}.\n\
             # pgdyno plan FILE shows its cells and how long it takes, pgdyno run FILE runs it.\n\n\
             name = {}\ndescription = {}\n{}{}{}",
            string(name),
            string(&self.description()),
            self.factors(),
            self.run(),
            self.tables(),
        )
    }

    fn description(&self) -> String {
        match self.servers.as_slice() {
            [] => String::new(),
            [only] => format!("PostgreSQL {only}"),
            [baseline, others @ ..] => format!("PostgreSQL {} against {baseline}", others.join(", ")),
        }
    }

    /// The number of comparisons; of cells if there is one server.
    fn comparisons(&self) -> usize {
        let sides = self.servers.len().saturating_sub(1).max(1);
        sides * self.workloads.len() * self.clients.len()
    }

    fn is_paired(&self) -> bool {
        self.servers.len() > 1
    }

    fn factors(&self) -> String {
        let workloads = self.workloads.iter().map(DraftWorkload::name);
        let clients: Vec<String> = self.clients.iter().map(u32::to_string).collect();
        let mut lines = vec![
            (
                format!("server   = {}", strings(self.servers.iter().map(String::as_str))),
                "the first is the baseline".to_owned(),
            ),
            (format!("workload = {}", strings(workloads)), "what the clients do".to_owned()),
            (
                format!("scale    = [{}]", self.scale),
                format!("{} in pgbench's tables", bytes(u64::from(self.scale) * BYTES_PER_SCALE)),
            ),
            (format!("clients  = [{}]", clients.join(", ")), "sessions at the same time".to_owned()),
        ];
        if self.is_paired() && !self.machine.is_shared {
            lines.push((
                "pin      = [\"separate\"]".to_owned(),
                "half of the CPUs for the driver, half for the servers".to_owned(),
            ));
        }
        commented("[factors]", "each list is an axis; the cells are their product", &lines)
    }

    fn run(&self) -> String {
        if !self.is_paired() {
            let seconds = self.time.seconds() as u64 / (self.comparisons() * REPEATS).max(1) as u64;
            let duration = seconds.saturating_sub(OVERHEAD_S).clamp(*DURATIONS_S.start(), *DURATIONS_S.end());
            let lines = [
                (format!("repeats  = {REPEATS}"), "runs of each cell".to_owned()),
                (format!("duration = \"{duration}s\""), "load of each run".to_owned()),
            ];
            return commented("[run]", "", &lines);
        }
        let percent = (self.effect.0 * 1e10).round() / 1e8;
        let mut lines = vec![
            (
                "order    = \"paired\"".to_owned(),
                "both servers run, the load alternates: noise affects both alike".to_owned(),
            ),
            (
                format!("effect   = \"{percent}%\""),
                "the smallest change that matters; a smaller one takes longer".to_owned(),
            ),
            (
                format!("max_time = \"{}\"", self.time),
                format!(
                    "for {}; on a quiet machine each takes about half a minute at 5%",
                    counted(self.comparisons(), "comparison")
                ),
            ),
        ];
        if self.machine.is_shared {
            let comment = "server CPU time decides, too: other processes use the CPUs";
            lines.push(("cpu_decides = true".to_owned(), comment.to_owned()));
        }
        commented("[run]", "", &lines)
    }

    fn tables(&self) -> String {
        let mut text = String::new();
        for workload in &self.workloads {
            let DraftWorkload::Script { name, file, setup } = workload else { continue };
            text += &format!("\n[workloads.{}]\nscripts = {}", key(name), strings([file.as_str()]));
            if !setup.is_empty() {
                text += &format!("\nsetup   = {}", strings(setup.iter().map(String::as_str)));
            }
            text += "\n# writes = false          # if it changes no data: sessions then need no fresh copy of it\n";
        }
        text + "\n# Settings of the servers, as in postgresql.conf: remove the signs, and add to [factors]  settings = [\"mine\"]\n\
                # [settings.mine]\n# shared_buffers = \"1GB\"\n# jit            = false\n"
    }
}

/// A table with its lines, and their comments in a column.
fn commented(title: &str, comment: &str, lines: &[(String, String)]) -> String {
    let width =
        lines.iter().map(|(line, _)| line.chars().count()).chain([title.len()]).max().unwrap_or_default();
    let line = |(text, comment): &(String, String)| match comment.is_empty() {
        true => format!("{text}\n"),
        false => format!("{text:width$}   # {comment}\n"),
    };
    let title = line(&(title.to_owned(), comment.to_owned()));
    format!("\n{title}{}", lines.iter().map(line).collect::<String>())
}
