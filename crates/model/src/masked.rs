//! Masks of records and plans: their parts that may contain secrets.

use crate::acceptance::Acceptance;
use crate::environment::Environment;
use crate::plan::Plan;
use crate::record::{Event, Log, Run, Setting, Trial, TrialRecord, Validity};
use crate::run::Hooks;
use crate::secret::{MaskSecrets, mask_campaign, mask_kernel_parameter, mask_reported_setting, mask_sql};
use crate::server::Source;

/// Name of the log with the kernel's configuration, whose options are called `KEYS` and the like. Secrets in its command
/// line are masked when it is read.
const KERNEL_CONFIG: &str = "kernel-config";

impl MaskSecrets for TrialRecord {
    fn mask_secrets(&mut self) {
        self.trial.mask_secrets();
        self.environment.mask_secrets();
        self.settings.mask_secrets();
        let of_phases = self.phases.iter_mut().flat_map(|phase| &mut phase.statements);
        for statement in self.statements.iter_mut().chain(of_phases) {
            statement.query = mask_sql(&statement.query);
        }
        for statement in &mut self.played {
            statement.text = mask_sql(&statement.text);
        }
        self.events.mask_secrets();
        self.logs.mask_secrets();
    }
}

impl MaskSecrets for Trial {
    fn mask_secrets(&mut self) {
        self.run.mask_secrets();
        self.cell = std::mem::take(&mut self.cell).masked();
        self.reason.mask_secrets();
        self.validity.mask_secrets();
        for phase in &mut self.phases {
            phase.validity.mask_secrets();
        }
        for host in &mut self.load_hosts {
            host.lost.mask_secrets();
        }
    }
}

impl MaskSecrets for Run {
    fn mask_secrets(&mut self) {
        self.campaign_toml = mask_campaign(&self.campaign_toml);
        self.tags.mask_secrets();
        self.notes.mask_secrets();
    }
}

impl MaskSecrets for Validity {
    fn mask_secrets(&mut self) {
        for finding in &mut self.findings {
            finding.evidence.mask_secrets();
        }
    }
}

impl MaskSecrets for Event {
    fn mask_secrets(&mut self) {
        self.message.mask_secrets();
    }
}

impl MaskSecrets for Log {
    fn mask_secrets(&mut self) {
        if self.name != KERNEL_CONFIG {
            self.text.mask_secrets();
        }
    }
}

impl MaskSecrets for Setting {
    fn mask_secrets(&mut self) {
        self.value = mask_reported_setting(&self.name, &self.value);
    }
}

impl MaskSecrets for Environment {
    fn mask_secrets(&mut self) {
        self.kernel_command_line.mask_secrets();
        self.data_mount_options.mask_secrets();
        for mount in &mut self.mounts {
            mount.source.mask_secrets();
            mount.options.mask_secrets();
        }
        for (name, value) in &mut self.sysctl {
            *value = mask_kernel_parameter(name, value);
        }
        if let Some(machine) = &mut self.virtual_machine {
            machine.command_line.mask_secrets();
        }
        self.server.pg_config.iter_mut().flat_map(|facts| facts.values_mut()).for_each(String::mask_secrets);
    }
}

impl MaskSecrets for Acceptance {
    fn mask_secrets(&mut self) {
        self.note.mask_secrets();
    }
}

impl MaskSecrets for Plan {
    fn mask_secrets(&mut self) {
        self.tags.mask_secrets();
        self.notes.mask_secrets();
        self.hooks.mask_secrets();
        for server in &mut self.servers {
            if let Source::Dsn(dsn) = &mut server.source {
                dsn.conninfo.mask_secrets();
            }
        }
        self.cells = std::mem::take(&mut self.cells).into_iter().map(|cell| cell.masked()).collect();
    }
}

impl MaskSecrets for Hooks {
    fn mask_secrets(&mut self) {
        let Self { before_campaign, after_campaign, before_trial, after_trial } = self;
        [before_campaign, after_campaign, before_trial, after_trial]
            .into_iter()
            .for_each(MaskSecrets::mask_secrets);
    }
}
