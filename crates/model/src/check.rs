//! Checks a campaign apart from its levels: tables, run settings, and cells that can't run.

mod dataset;
mod extension;
mod load_hosts;
mod machine;
pub(crate) mod memory;
mod pairs;
mod run;
mod server;
mod topology;
mod versions;

pub(crate) use versions::Supported;

use crate::definitions::{Dataset, Definitions};
use crate::factor::{self, Axis, duration};
use crate::matrix::Defaults;
use crate::spec::Campaign;
use crate::value::{Spanned, SpecError, check_name, integer};
use crate::workload::{Workload, Workloads};

/// A campaign whose tables and defaults have been checked.
pub(crate) struct CheckedCampaign<'a> {
    campaign: &'a Campaign,
    /// All definitions that levels can name.
    pub(crate) definitions: Definitions<'a>,
    /// Levels given in the run's settings.
    pub(crate) defaults: Defaults,
}

/// Accepts a campaign name that is safe in file names and tables.
pub(crate) fn check_campaign_name(name: &Spanned<String>) -> Result<(), SpecError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let text = name.get_ref();
    if text.is_empty() || text.len() > 60 || !text.chars().all(is_allowed) {
        return Err(SpecError::at(
            name,
            format!("\"{text}\" is not a valid campaign name"),
            "expected 1 to 60 letters, digits, `-`, `_` or `.`",
        ));
    }
    Ok(())
}

impl<'a> CheckedCampaign<'a> {
    /// Checks everything except levels of factors, used or not.
    pub(crate) fn new(
        campaign: &'a Campaign,
        workloads: &'a Workloads,
        processors: Option<u32>,
    ) -> Result<Self, SpecError> {
        check_campaign_name(&campaign.name)?;
        let definitions = campaign.definitions(workloads);
        let run = &campaign.run;
        let duration = run.duration.as_ref().map(duration::check).transpose()?;
        let threads =
            run.threads.as_ref().map(|given| integer(given, "threads", 1, factor::threads::MAX_THREADS));
        let defaults = Defaults {
            duration,
            warmup: run.warmup.as_ref().map(|given| *given.get_ref()),
            is_paired: run::order(run)?.is_paired(),
            threads: match threads.transpose()? {
                Some(threads) => Some(threads as u32),
                // As in releases that did not record the CPUs.
                None => processors.is_none().then_some(1),
            },
        };
        for tag in &campaign.tags {
            check_name(tag, "tag")?;
        }
        for (name, table) in &campaign.servers {
            check_name(name, "name of a server")?;
            server::parse_table(name.get_ref(), table)?;
        }
        for (name, table) in &campaign.datasets {
            check_name(name, "name of a data set")?;
            Dataset::source(name.get_ref(), table)?;
        }
        for name in campaign.settings.keys() {
            check_name(name, "name of settings")?;
            factor::settings::Settings::check(name, &definitions)?;
        }
        for (name, table) in &campaign.pins {
            check_name(name, "name of a pin")?;
            factor::pin::parse_table(name.get_ref(), table)?;
        }
        for (name, table) in &campaign.disks {
            check_name(name, "name of a disk limit")?;
            factor::disk::parse_table(name.get_ref(), table)?;
        }
        for name in campaign.sysctls.keys() {
            check_name(name, "name of kernel parameters")?;
            factor::sysctl::check_table(name, &definitions)?;
        }
        for (name, table) in &campaign.workloads {
            check_name(name, "name of a workload")?;
            if Workload::builtin(name.get_ref()).is_some() {
                return Err(SpecError::at(
                    name,
                    format!("`{}` is a built-in workload", name.get_ref()),
                    "expected another name for this one",
                ));
            }
            factor::workload::Workload::check(name, &definitions)?;
            table.duration.as_ref().map(duration::check).transpose()?;
        }
        Ok(Self { campaign, definitions, defaults })
    }
}
