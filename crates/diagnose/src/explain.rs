//! Where the time of a transaction goes, and why: a pure function of a trial's record.
//!
//! [`Budget`] breaks the mean latency down into parts that add up to it; [`causes`](causes::causes) names the limits
//! that the parts, the events and the machine's figures show; [`Difference`] compares one budget with another.

mod budget;
mod case;
mod causes;
mod confidence;
mod difference;
#[cfg(test)]
mod tests;

pub use budget::{Budget, Component, ComponentTime};
pub use case::NotExplained;
pub use causes::{Cause, Measure};
pub use confidence::Confidence;
pub use difference::{Change, Difference};

use model::record::TrialRecord;

use case::Case;

/// The explanation of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The parts of the mean latency.
    pub budget: Budget,
    /// The causes, those of high confidence first, and the larger one first; empty if nothing stands out.
    pub causes: Vec<Cause>,
}

/// Explains a trial.
///
/// # Errors
/// No load ran, or nothing was collected during it.
pub fn explain(record: &TrialRecord) -> Result<Explanation, NotExplained> {
    let case = Case::new(record)?;
    let budget = Budget::new(&case);
    let causes = causes::causes(&case, &budget);
    Ok(Explanation::new(budget, causes))
}

impl Explanation {
    /// An explanation with its causes in order: by confidence, then by size.
    pub fn new(budget: Budget, mut causes: Vec<Cause>) -> Self {
        causes.sort_by(|a, b| b.confidence.cmp(&a.confidence).then(b.weight().total_cmp(&a.weight())));
        Self { budget, causes }
    }

    /// One sentence that names the limit, or states that nothing stands out; worded by its confidence.
    pub fn verdict(&self) -> String {
        match self.causes.first() {
            Some(cause) => cause.confidence.worded(&cause.sentence),
            None => {
                let largest = self.budget.parts.iter().max_by(|a, b| a.us.total_cmp(&b.us));
                let largest = largest.map(|part| {
                    format!(
                        ": the largest part is {}, {:.0}% of latency",
                        part.name(),
                        100.0 * self.budget.share(part)
                    )
                });
                format!("no single limit{}", largest.unwrap_or_default())
            }
        }
    }

    /// Confidence in the verdict.
    pub fn confidence(&self) -> Confidence {
        self.causes.first().map_or_else(|| self.budget.confidence(), |cause| cause.confidence)
    }
}
