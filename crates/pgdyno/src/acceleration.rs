//! Whether the kernels of a campaign that leaves it open run on the machine's processors or by counted instructions.

use std::path::Path;

use host::Cache;
use machine::vm::Kvm;
use model::machine::Acceleration;

use crate::campaign_file::CampaignFile;
use crate::output::note;
use crate::progress::PreparationProgress;

/// Decides for a campaign that does not say it, and writes what was decided into its text, so that whoever goes on with it
/// does the same. Others stay as they are.
///
/// # Errors
/// A kernel that can't be had, no emulator, or the campaign is none any more.
pub(crate) fn decide(file: CampaignFile) -> anyhow::Result<CampaignFile> {
    let boots = file.plan.cells.iter().any(|cell| cell.acceleration.is_virtual());
    let Some(first) = file.plan.kernels.first().filter(|_| boots && file.leaves_acceleration_open()) else {
        return Ok(file);
    };
    let cache = Cache::open()?;
    let bar = PreparationProgress::new();
    let label = first.path.as_ref().map_or_else(|| first.name.clone(), |path| path.display().to_string());
    let kernel = machine::kernel(&cache, &label, Path::new(""), &bar);
    bar.clear();
    let program = std::env::current_exe()?;
    let acceleration = match machine::vm::works_here(&cache, &kernel?.image, &program)? {
        Kvm::Works => Acceleration::Kvm,
        Kvm::Fails(why) => {
            let why = why.lines().next().unwrap_or_default().to_owned();
            note(&format!(
                "KVM runs no kernels here, so instructions are counted (acceleration icount): {why}\n"
            ));
            Acceleration::Icount
        }
    };
    Ok(file.with_set(&format!("acceleration={}", acceleration.as_str()))?)
}
