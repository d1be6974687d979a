//! One round: each way once, in turn.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use host::{Cache, Progress};
use model::message::Endpoint;
use model::workload::Transport;
use server::{Cluster, Copied, Installation, Server, StopMode};

use crate::Console;

/// An option for `initdb` without effect on the data. It gives the measured template a name of its own, so that one in
/// other use is neither used nor removed.
const NEUTRAL_OPTION: &str = "-n";
/// Transactions of the load after which a copy is restored.
const RESTORE_TRANSACTIONS: &str = "10000";

/// The inputs of a measurement.
pub(crate) struct Setup<'a> {
    pub(crate) cache: &'a Cache,
    pub(crate) installation: &'a Installation,
    pub(crate) settings: &'a BTreeMap<String, String>,
    pub(crate) scale: u32,
    pub(crate) pgbench: &'a Path,
    pub(crate) console: &'a Console,
}

/// Wall times in seconds.
pub(crate) struct Round {
    /// `pgbench -i` alone, and with initdb, start and stop.
    pub(crate) pgbench: Filled,
    /// The same tables filled in a server of the same settings; and a whole template.
    pub(crate) pgdyno: Filled,
    /// A copy of the template.
    pub(crate) clone: Copied,
    /// Restoring the copy.
    pub(crate) restore: Copied,
}

pub(crate) struct Filled {
    pub(crate) tables: f64,
    pub(crate) whole: f64,
}

impl Round {
    pub(crate) fn measure(setup: &Setup, pgbench_first: bool) -> Result<Self> {
        let before = if pgbench_first { Some(setup.by_pgbench()?) } else { None };
        let tables = setup.tables()?;
        let begun = Instant::now();
        let initdb = [NEUTRAL_OPTION.to_owned()];
        let template = server::template(
            setup.cache,
            setup.installation,
            &initdb,
            &setup.scale.into(),
            None,
            setup.console,
        )?;
        let whole = begun.elapsed().as_secs_f64();
        let copies = setup.copies(&template);
        template.remove(setup.cache)?;
        let (clone, restore) = copies?;
        let pgbench = match before {
            Some(filled) => filled,
            None => setup.by_pgbench()?,
        };
        Ok(Self { pgbench, pgdyno: Filled { tables, whole }, clone, restore })
    }
}

impl Setup<'_> {
    fn by_pgbench(&self) -> Result<Filled> {
        self.console.step("pgbench -i", 0, None);
        let begun = Instant::now();
        let server = Cluster::empty(self.cache, self.installation, &[])?.start(self.settings)?;
        let started = begun.elapsed();
        self.pgbench(&server, "postgres", &["-i", "-q", "-s", &self.scale.to_string()])?;
        let tables = begun.elapsed() - started;
        server.stop(StopMode::Fast)?;
        Ok(Filled { tables: tables.as_secs_f64(), whole: begun.elapsed().as_secs_f64() })
    }

    fn tables(&self) -> Result<f64> {
        let server = Cluster::empty(self.cache, self.installation, &[])?.start(self.settings)?;
        let begun = Instant::now();
        server.fill(&self.scale.into(), self.console)?;
        Ok(begun.elapsed().as_secs_f64())
    }

    fn copies(&self, template: &server::Template) -> Result<(Copied, Copied)> {
        let cluster = template.clone_cluster(self.cache, self.console)?;
        let clone = cluster.copied();
        let server = cluster.start(self.settings)?;
        self.pgbench(&server, server::DATABASE, &["-n", "-t", RESTORE_TRANSACTIONS])?;
        let mut cluster = server.stop(StopMode::Immediate)?;
        template.restore(&mut cluster, self.console)?;
        Ok((clone, cluster.copied()))
    }

    fn pgbench(&self, server: &Server, database: &str, arguments: &[&str]) -> Result<()> {
        let Endpoint::Unix { directory, port } = server.endpoint(Transport::Unix) else {
            bail!("the server has no socket")
        };
        let mut child = Command::new(self.pgbench)
            .args(arguments)
            .args(["-h", &directory, "-p", &port.to_string(), "-U", server::USER, database])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", self.pgbench.display()))?;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if self.console.interrupted() {
                child.kill()?;
                child.wait()?;
                bail!("interrupted");
            }
            thread::sleep(Duration::from_millis(5));
        };
        if !status.success() {
            bail!("{} {} failed ({status})", self.pgbench.display(), arguments.join(" "));
        }
        Ok(())
    }
}
