//! Where the time of a transaction goes, and why: a pure function of a trial's record.
//!
//! [`Budget`] takes the mean latency apart into parts that add up to it; [`causes`](causes::CAUSES) name what the parts,
//! the events and the machine's figures point to; [`Difference`] says where one budget's time went beside another's.

mod budget;
mod case;
mod causes;
mod difference;

pub use budget::{Budget, Part, Place};
pub use causes::{Cause, Confidence, Measure};
pub use difference::{Change, Difference};

use model::record::TrialRecord;

use case::Case;

/// What is said of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The mean latency, taken apart.
    pub budget: Budget,
    /// What was found, the most important first; empty where nothing stands out.
    pub causes: Vec<Cause>,
}

/// Explains a trial.
///
/// # Errors
/// There is nothing to explain, and why: no load ran, or nothing was looked at beside it.
pub fn explain(record: &TrialRecord) -> Result<Explanation, String> {
    let case = Case::of(record)?;
    let budget = Budget::of(&case);
    let mut causes: Vec<Cause> = causes::CAUSES.iter().filter_map(|cause| cause(&case, &budget)).collect();
    causes.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
    Ok(Explanation { budget, causes })
}

impl Explanation {
    /// One sentence that says what limits, or that nothing stands out.
    pub fn verdict(&self) -> String {
        match self.causes.first() {
            Some(cause) => cause.sentence.clone(),
            None => {
                let largest = self.budget.parts.iter().max_by(|a, b| a.us.total_cmp(&b.us));
                let largest = largest.map(|part| {
                    format!(
                        ": the largest part is {}, {:.0}% of latency",
                        part.name(),
                        100.0 * self.budget.share(part)
                    )
                });
                format!("no single thing limits{}", largest.unwrap_or_default())
            }
        }
    }

    /// How much the verdict is to be trusted.
    pub fn confidence(&self) -> Confidence {
        self.causes.first().map_or_else(|| self.budget.confidence(0.5), |cause| cause.confidence)
    }
}
