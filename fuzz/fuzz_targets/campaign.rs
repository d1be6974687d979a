//! Any text is planned or refused as a campaign, also with overrides; errors are shown at their place in the text.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use model::plan::{Basis, Plan};
use runner::campaign_file::{CampaignFile, CampaignFileError, overrides};

#[path = "../../crates/pgdyno/src/snippet.rs"]
#[allow(dead_code)]
mod snippet;

fn plan(text: &str) -> Option<Plan> {
    // No workload of its own: the directory does not exist.
    let path = Path::new("/nonexistent/campaign.toml");
    match CampaignFile::parse(path, text.to_owned(), Some(Basis { seed: 1, processors: Some(2) })) {
        Ok(campaign) => Some(campaign.plan),
        Err(CampaignFileError::Invalid { path, text, error }) => {
            let at = error.at.clone().unwrap_or_default();
            assert!(text.get(at).is_some(), "the place is not in the text: {error:?}");
            assert!(snippet::render(&path, &text, &error).contains("campaign.toml"));
            None
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

fuzz_target!(|text: &str| {
    if let Some(first) = plan(text) {
        assert!(!first.trials.is_empty() && !first.cells.is_empty());
        assert_eq!(plan(text).as_ref(), Some(&first), "a plan depends only on text and seed");
        let _ = report::plan::headline(&first);
    }
    for setting in ["scale=7", "duration=3s", "run.repeats=2", "name=other"] {
        if let Ok(text) = overrides::apply(text, &[setting.to_owned()]) {
            plan(&text);
        }
    }
    plan(&overrides::without_virtual_machines(text));
});
