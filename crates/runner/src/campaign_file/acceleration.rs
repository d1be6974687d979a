//! Acceleration of a campaign's virtual machines if the campaign does not choose one.

use std::path::Path;

use host::{Cache, Progress};
use machine::vm::Kvm;
use model::machine::Acceleration;

use super::{CampaignFile, CampaignFileError};

impl CampaignFile {
    /// Chooses KVM if it works here, else counted instructions, and writes the choice into the campaign's text, so that
    /// a resumed run makes the same one. Campaigns without virtual machines, or with an acceleration of their own, stay
    /// as they are. `program` is pgdyno itself.
    ///
    /// # Errors
    /// A kernel can't be fetched, or there is no emulator.
    pub fn choose_acceleration(
        self,
        cache: &Cache,
        program: &Path,
        progress: &dyn Progress,
    ) -> Result<Self, CampaignFileError> {
        let boots = self.plan.cells.iter().any(|cell| cell.acceleration.is_virtual());
        let Some(first) = self.plan.kernels.first().filter(|_| boots && self.leaves_acceleration_open())
        else {
            return Ok(self);
        };
        let label = first.path.as_ref().map_or_else(|| first.name.clone(), |path| path.display().to_string());
        let kernel = machine::kernel(cache, &label, Path::new(""), progress)?;
        let acceleration = match machine::vm::probe_kvm(cache, &kernel.image, program)? {
            Kvm::Works => Acceleration::Kvm,
            Kvm::Fails(reason) => {
                let reason = reason.lines().next().unwrap_or_default();
                progress.notice(&format!(
                    "KVM does not work here, so instructions are counted (acceleration icount): {reason}"
                ));
                Acceleration::Icount
            }
        };
        self.with_setting(&format!("acceleration={}", acceleration.as_str()))
    }

    /// Whether no level of the factor `acceleration` is named.
    fn leaves_acceleration_open(&self) -> bool {
        self.leaves_open(|matrix| matrix.acceleration.is_none(), |point| point.acceleration.is_none())
    }
}
