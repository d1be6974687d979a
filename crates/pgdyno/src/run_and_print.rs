//! Runs campaigns of every kind, and prints what they show.

use model::plan::Order;
use plaintext::table::Format;
use store::Store;

use crate::bisection::{self, BisectionFormat};
use crate::campaign_run::{CampaignRun, closing_lines, exit, print_tables, says_all};
use crate::exit::Exit;
use crate::output::note;

/// Runs the remaining trials of a campaign, and prints its tables, or the answer of a bisection.
///
/// # Errors
/// As [`CampaignRun::measure`].
pub(crate) fn run_and_print(run: CampaignRun<'_>, store: &Store, format: Format) -> anyhow::Result<Exit> {
    if run.file.plan.run.order == Order::Bisect {
        let format = if format == Format::Json { BisectionFormat::Json } else { BisectionFormat::Table };
        return bisection::search(run, store, format);
    }
    let outcome = run.measure(store);
    let printed = match &outcome {
        Err(error) if says_all(error) => Ok(()),
        _ => print_tables(store, run.run, format),
    };
    let outcome = outcome?;
    // The terminal may have been closed, which interrupts the run.
    if !outcome.interrupted {
        printed?;
    }
    note(&closing_lines(&outcome, store.root(), run.fleet.is_some()));
    Ok(exit(&outcome))
}
