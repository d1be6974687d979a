//! `pgdyno plan`: shows a campaign's plan without running it.

use std::path::Path;

use analysis::power::{PowerCheck, expected_sessions, noise_of, power_check, trials_on};
use clap::Args;
use model::plan::{Order, Plan};
use model::secret::MaskSecrets;
use plaintext::table::Format;
use report::plan::{Document, text};
use runner::HostContext;
use runner::preview::{builds, known_confounds, missing_profile, unsupported};
use store::Store;

use crate::campaign_arg::CampaignArg;
use crate::exit::{Exit, Usage};
use crate::output::{FormatArg, note, print, print_json, terminal};
use crate::progress::PreparationProgress;
use crate::store_arg::StoreArg;

/// The JSON schema of campaign files.
const SCHEMA: &str = include_str!("../../../../docs/campaign.schema.json");

/// Show the plan of a campaign, without running it
///
/// Prints the cells (combinations of factor levels), the trials in their order, and their approximate duration. Warns of
/// confounds: other differences between compared levels, as far as they are known before servers start; of too few
/// repeats to detect the change in question (run.effect) at the noise of earlier trials on this host; of servers that have
/// to be built first; and of what is not available here: sources, profiles, memory and disk limits, settings, open files.
/// Nothing is downloaded, built or started.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pgdyno plan campaigns/quick.toml\n  \
                        pgdyno plan campaigns/versions.toml --set scale=100 --strict\n  \
                        pgdyno plan campaigns/quick.toml --format json | jq '.cells | length'\n  \
                        pgdyno plan --schema > campaign.schema.json\n\n\
                        Editors that support JSON schemas for TOML find the schema by a first line\n  \
                        #:schema ./campaign.schema.json")]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    campaign: Option<CampaignArg>,

    /// Print the JSON schema of campaign files, for editors
    #[arg(long, exclusive = true)]
    schema: bool,

    /// Exit with 2 if compared cells are known to differ in more than the factor they are compared by
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    store: StoreArg,

    #[command(flatten)]
    format: FormatArg,
}

impl PlanArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        if self.schema {
            print(SCHEMA)?;
            return Ok(Exit::Ok);
        }
        let Some(campaign) = &self.campaign else {
            return Err(Usage("error: no campaign is named: pgdyno plan FILE".to_owned()).into());
        };
        let mut plan = campaign.read()?.plan;
        plan.mask_secrets();
        let confounds = known_confounds(&plan, &PreparationProgress::new())?;
        let root = self.store.root_next_to(campaign.directory());
        let power = power_of_plan(&plan, &root);
        match self.format.get() {
            Format::Json => print_json(&Document::new(&plan, &confounds, power.as_ref()))?,
            format => print(&text(&plan, format, terminal()))?,
        }
        let unsupported = unsupported(&plan, &PreparationProgress::new())?
            .into_iter()
            .map(|reason| format!("This can't run here: {reason}"));
        let power = power.and_then(|power| power.warning());
        let warnings = plan.warnings().into_iter().chain(builds(&plan)).chain(missing_profile(&plan));
        for warning in warnings.chain(unsupported).chain(power).chain(expected_time(&plan, &root)) {
            note(&format!("\n{warning}\n"));
        }
        if confounds.is_empty() {
            return Ok(Exit::Ok);
        }
        let confounds = diagnose::in_words(&confounds);
        if self.strict {
            return Err(Usage::from_error(confounds).into());
        }
        note(&format!("\n{confounds}\n"));
        Ok(Exit::Ok)
    }
}

/// Power of a plan's comparisons at the noise of earlier trials on this host; `None` if the store does not exist or
/// can't be read, since the user did not ask for it.
pub(crate) fn power_of_plan(plan: &Plan, store: &Path) -> Option<PowerCheck> {
    plan.run.compare.filter(|_| !plan.run.order.is_paired())?;
    let store = Store::existing(store).ok()?;
    // Those of stored trials are masked.
    let mut plan = plan.clone();
    plan.mask_secrets();
    power_check(&plan, &noise_of(&trials_on(&store.reader().ok()?, &HostContext::detect().hostname)))
}

/// How long a paired campaign takes by earlier sessions on this host, a sentence; `None` as in [`power_of_plan`], and
/// without such sessions.
pub(crate) fn expected_time(plan: &Plan, store: &Path) -> Option<String> {
    if plan.run.order != Order::Paired {
        return None;
    }
    let store = Store::existing(store).ok()?;
    let reader = store.reader().ok()?;
    let mut plan = plan.clone();
    plan.mask_secrets();
    let expected = expected_sessions(&plan, &trials_on(&reader, &HostContext::detect().hostname))?;
    Some(expected.in_words())
}
