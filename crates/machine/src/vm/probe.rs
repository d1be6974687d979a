//! Whether KVM runs kernels here. An accessible /dev/kvm is not enough: in some virtual machines guests hang or die.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use model::machine::Acceleration;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::vm::error::VmError;
use crate::vm::guest::{GuestConfig, Job};
use crate::vm::initramfs::Initramfs;
use crate::vm::qemu::{Hardware, Vm, emulator};
use host::Cache;
use host::IoContext;

/// Time limit of a boot, which takes a second or two with KVM.
const BOOT_TIMEOUT: Duration = Duration::from_secs(20);
const MEMORY_BYTES: u64 = 512 << 20;

/// `kvm.json`: the result, and the conditions under which it is valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ProbeResult {
    /// The host's kernel and its boot: others may differ.
    boot: String,
    emulator: String,
    works: bool,
    why: String,
}

/// Whether KVM runs kernels on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kvm {
    /// A kernel booted.
    Works,
    /// No kernel booted, for this reason.
    Fails(String),
}

/// Reason that KVM did not boot a kernel.
#[derive(Debug, thiserror::Error)]
enum ProbeError {
    #[error("/dev/kvm can't be opened: {0}")]
    Device(#[source] io::Error),
    #[error(transparent)]
    Pack(#[from] Error),
    #[error(transparent)]
    Vm(#[from] VmError),
    #[error("the guest ended with {0}")]
    Exit(u8),
}

/// Whether KVM really runs kernels here: boots this one, once per boot of the host. `program` is pgdyno.
///
/// # Errors
/// No emulator; the result can't be stored.
pub fn probe_kvm(cache: &Cache, kernel: &Path, program: &Path) -> Result<Kvm, VmError> {
    let emulator = emulator()?;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let file = cache.directory().join("kvm.json");
    let known = fs::read(&file).ok().and_then(|text| serde_json::from_slice::<ProbeResult>(&text).ok());
    let result = match known {
        Some(known) if known.boot == boot && known.emulator == emulator => known,
        _ => {
            let tried = try_boot(cache, kernel, program);
            let why = tried.as_ref().err().map(ToString::to_string).unwrap_or_default();
            let result = ProbeResult { boot, emulator, works: tried.is_ok(), why };
            let text = serde_json::to_vec_pretty(&result).doing("write", &file)?;
            fs::write(&file, text).doing("write", &file)?;
            result
        }
    };
    Ok(if result.works { Kvm::Works } else { Kvm::Fails(result.why) })
}

fn try_boot(cache: &Cache, kernel: &Path, program: &Path) -> Result<(), ProbeError> {
    fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").map_err(ProbeError::Device)?;
    let mut root = Initramfs::new(cache.directory())?;
    GuestConfig::new(Job::Probe).pack(&mut root, program, &[])?;
    let hardware = Hardware {
        acceleration: Acceleration::Kvm,
        cpus: 1,
        memory_bytes: MEMORY_BYTES,
        disk: None,
        host_files: false,
        silence_timeout: Some(BOOT_TIMEOUT),
    };
    match Vm::boot(kernel, root, hardware, "")?.run(&|| false, |_| Ok(()))? {
        0 => Ok(()),
        code => Err(ProbeError::Exit(code)),
    }
}
