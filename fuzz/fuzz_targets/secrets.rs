//! Secrets in any text are masked; masking again changes nothing, and a campaign stays a campaign.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::secret::{campaign_secrets, lines_with_secrets, mask, mask_campaign, mask_sql, secrets};
use model::spec::Campaign;

fuzz_target!(|text: &str| {
    let found = secrets(text);
    assert!(found.iter().all(|secret| !secret.is_empty() && text.get(secret.clone()).is_some()));
    assert!(found.is_sorted_by(|a, b| a.end <= b.start), "{found:?}");
    let masked = mask(text);
    assert_eq!(mask(&masked), masked);
    let masked = mask_sql(text);
    assert_eq!(mask_sql(&masked), masked);
    assert!(lines_with_secrets(text).iter().all(|line| (1..=text.lines().count().max(1)).contains(line)));
    let _ = campaign_secrets(text);
    let masked = mask_campaign(text);
    assert_eq!(mask_campaign(&masked), masked);
    assert!(Campaign::parse(text).is_err() || Campaign::parse(&masked).is_ok(), "{masked}");
});
