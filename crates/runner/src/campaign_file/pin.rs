//! The pin `separate`, whose CPUs are this machine's, or those of the machine that a run began on.

use std::time::Duration;

use host::usable_cpus;
use model::factor::pin::{Processors, SEPARATE};
use model::fitness::MAX_FOREIGN_SHARE;
use model::spec::Campaign;

use super::overrides;

/// The pin `separate` on this machine; none if its CPUs are not known.
pub fn separate() -> Option<Processors> {
    host::halves_of_cpus().as_ref().map(Processors::separate)
}

/// Use of the CPUs by other processes over `time`, in words, if it is too much for pins.
pub fn foreign_use(time: Duration) -> Option<String> {
    let (activity, cpus) = (collect::activity(time)?, usable_cpus()?);
    (activity.foreign_share(cpus) > MAX_FOREIGN_SHARE).then(|| activity.foreign_in_words(cpus))
}

/// The campaign's text with a table for the pin `separate` if it names that without having one, so that a resumed run has the
/// same CPUs.
pub(super) fn with_table(text: String) -> String {
    fill(text, separate)
}

/// A campaign's text with the table of the pin `separate` of an earlier one, if it names that without having a table.
pub(crate) fn with_table_of(text: &str, earlier: &str) -> String {
    fill(text.to_owned(), || {
        let pins = Campaign::parse(earlier).ok()?.pins;
        let (name, pin) = pins.into_iter().find(|(name, _)| name.get_ref() == SEPARATE)?;
        let [driver, server] = [pin.driver, pin.server].map(|list| list.map(|list| list.into_inner()));
        Some(Processors { name: name.into_inner(), driver, server })
    })
}

/// The text with these CPUs as the pin `separate` if it names that without having a table for it.
fn fill(text: String, pin: impl FnOnce() -> Option<Processors>) -> String {
    let is_open = |campaign: Campaign| {
        let has_table = campaign.pins.keys().any(|name| name.get_ref() == SEPARATE);
        !has_table && campaign.pin_levels().any(|level| level.get_ref() == SEPARATE)
    };
    // The planner reports an error in the text.
    let is_open = Campaign::parse(&text).is_ok_and(is_open);
    let Some(Processors { name, driver, server }) = is_open.then(pin).flatten() else { return text };
    let lists = [("driver", driver), ("server", server)].into_iter();
    let table = lists.filter_map(|(key, list)| Some(format!("pins.{name}.{key}=\"{}\"", list?)));
    overrides::apply(&text, &table.collect::<Vec<_>>()).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use model::factor::pin::cpu_list;

    use super::super::CampaignFile;
    use super::*;

    const TEXT: &str = "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\n\
                        pin = ['none', 'separate']\n";

    fn pins(text: &str) -> Vec<Processors> {
        let file = CampaignFile::parse(Path::new("n.toml"), text.to_owned(), None).unwrap();
        file.plan.cells.into_iter().map(|cell| cell.pin).collect()
    }

    #[test]
    fn the_pin_separate_is_written_into_the_text() {
        let pin = separate().unwrap();
        assert_eq!(pins(TEXT), [Processors::none(), pin.clone()]);
        let text = with_table(TEXT.to_owned());
        let lists = [&pin.driver, &pin.server].map(|list| list.clone().unwrap());
        let table = format!("[pins.separate]\ndriver = \"{}\"\nserver = \"{}\"\n", lists[0], lists[1]);
        assert!(text.starts_with(TEXT) && text.ends_with(&table), "{text}");
        assert_eq!(with_table(text.clone()), text);
        let cpus = |list: &str| cpu_list(list).unwrap();
        let is_shared = cpus(&lists[0]).iter().any(|cpu| cpus(&lists[1]).contains(cpu));
        assert!(!is_shared || lists[0] == lists[1], "only a single CPU is shared: {lists:?}");
    }

    #[test]
    fn a_table_of_that_name_is_the_campaigns_own() {
        let own = format!("{TEXT}[pins.separate]\ndriver = '5'\n");
        assert_eq!(with_table(own.clone()), own);
        assert_eq!(pins(&own)[1].driver.as_deref(), Some("5"));
        // The matrix alone may name it, and an included cell.
        let matrix = TEXT.replace("pin = ", "[[matrix]]\npin = ");
        assert_eq!(pins(&matrix), pins(TEXT));
        let included = TEXT.replace(
            "pin = ['none', 'separate']",
            "[[factors.include]]\nserver = '18'\nworkload = 'select-only'\nclients = 2\npin = 'separate'",
        );
        assert_eq!(pins(&included), pins(TEXT));
        let none = TEXT.replace(", 'separate'", "");
        assert_eq!(with_table(none.clone()), none);
    }

    #[test]
    fn a_resumed_campaign_has_the_cpus_of_its_run() {
        let earlier = format!("{TEXT}\n[pins.separate]\ndriver = \"6\"\nserver = \"7\"\n");
        assert_eq!(pins(&with_table_of(TEXT, &earlier))[1].server.as_deref(), Some("7"));
        let other = format!("{TEXT}\n[pins.one]\ndriver = '1'\n");
        assert_eq!(pins(&with_table_of(&other, &earlier))[1].server.as_deref(), Some("7"));
        let own = earlier.replace('7', "5");
        assert_eq!(with_table_of(&own, &earlier), own);
        assert_eq!(with_table_of(TEXT, TEXT), TEXT);
    }
}
