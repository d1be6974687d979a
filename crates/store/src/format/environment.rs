//! `environment.json`: the machine as it was.

use std::collections::BTreeMap;

use model::record::Environment as Model;
use serde::{Deserialize, Serialize};

/// Name of the file within a bundle.
pub(crate) const FILE: &str = "environment.json";

/// The document in `environment.json`; null where a fact could not be had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Host name.
    pub hostname: Option<String>,
    /// Kernel name and release.
    pub kernel: Option<String>,
    /// The kernel's full version line.
    pub kernel_version: Option<String>,
    /// Distribution.
    pub os: Option<String>,
    /// Processor architecture.
    pub architecture: Option<String>,
    /// Processor model.
    pub cpu_model: Option<String>,
    /// Logical processors that pgdyno could use.
    pub cpus: Option<u32>,
    /// Frequency governor of the first processor.
    pub cpu_governor: Option<String>,
    /// Main memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Swap in bytes; 0 means that there is none.
    pub swap_bytes: Option<u64>,
    /// Transparent huge pages: the mode in force.
    pub transparent_hugepages: Option<String>,
    /// Hypervisor or container, where one shows itself.
    pub virtualization: Option<String>,
    /// Filesystem type of the data directory.
    pub data_filesystem: Option<String>,
    /// Mount options of the data directory's filesystem.
    pub data_mount_options: Option<String>,
    /// Load average over one minute just before the trial, in hundredths.
    pub load_average_1m_centi: Option<u32>,
    /// Kernel parameters, by name.
    #[serde(default)]
    pub sysctl: BTreeMap<String, String>,
}

mirrors!(
    Environment,
    Model {
        hostname,
        kernel,
        kernel_version,
        os,
        architecture,
        cpu_model,
        cpus,
        cpu_governor,
        memory_bytes,
        swap_bytes,
        transparent_hugepages,
        virtualization,
        data_filesystem,
        data_mount_options,
        load_average_1m_centi,
        sysctl
    }
);
