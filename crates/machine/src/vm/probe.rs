//! Whether KVM runs kernels here. That /dev/kvm opens does not say so: within some virtual machines guests hang or die.

use std::fs;
use std::path::Path;
use std::time::Duration;

use model::machine::Acceleration;
use serde::{Deserialize, Serialize};

use crate::vm::guest::{Job, Orders};
use crate::vm::initramfs::Root;
use crate::vm::qemu::{Hardware, Vm, VmError, emulator};
use host::Cache;
use host::Doing;

/// What a kernel that KVM runs needs for booting is a second or two.
const BOOTS_WITHIN: Duration = Duration::from_secs(20);
const MEMORY_BYTES: u64 = 512 << 20;

/// `kvm.json`: what was found out, and of what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Answer {
    /// The host's kernel and its boot: another may do otherwise.
    boot: String,
    emulator: String,
    works: bool,
    why: String,
}

/// Whether KVM really runs kernels here, and why not: this one is booted, once for each boot of the host. `program` is
/// pgdyno.
///
/// # Errors
/// No emulator; the answer can't be kept.
pub fn works_here(cache: &Cache, kernel: &Path, program: &Path) -> Result<Result<(), String>, VmError> {
    let emulator = emulator()?;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let file = cache.directory().join("kvm.json");
    let known = fs::read(&file).ok().and_then(|text| serde_json::from_slice::<Answer>(&text).ok());
    let answer = match known {
        Some(known) if known.boot == boot && known.emulator == emulator => known,
        _ => {
            let tried = try_it(cache, kernel, program);
            let why = tried.as_ref().err().cloned().unwrap_or_default();
            let answer = Answer { boot, emulator, works: tried.is_ok(), why };
            let text = serde_json::to_vec_pretty(&answer).doing("write", &file)?;
            fs::write(&file, text).doing("write", &file)?;
            answer
        }
    };
    Ok(if answer.works { Ok(()) } else { Err(answer.why) })
}

fn try_it(cache: &Cache, kernel: &Path, program: &Path) -> Result<(), String> {
    if let Err(error) = fs::OpenOptions::new().read(true).write(true).open("/dev/kvm") {
        return Err(format!("/dev/kvm can't be opened: {error}"));
    }
    let told = |error: &dyn std::error::Error| error.to_string();
    let mut root = Root::new(cache.directory()).map_err(|error| told(&error))?;
    Orders::of(Job::Probe).pack(&mut root, program, &[]).map_err(|error| told(&error))?;
    let hardware = Hardware {
        acceleration: Acceleration::Kvm,
        cpus: 1,
        memory_bytes: MEMORY_BYTES,
        disk: None,
        host_files: false,
        patience: Some(BOOTS_WITHIN),
    };
    let mut vm = Vm::boot(kernel, root, hardware, "").map_err(|error| told(&error))?;
    match vm.run(&|| false, |_| ()) {
        Ok(0) => Ok(()),
        Ok(code) => Err(format!("the guest ended with {code}")),
        Err(error) => Err(told(&error)),
    }
}
