//! The result of `pgdyno bisect --run`: which commit changed the outcome of a test.

use plaintext::figures::{counted, duration};
use plaintext::table::{Format, GAP, Table};
use plaintext::wrap;
use serde::Serialize;

use analysis::bisection::probability;

use super::chart;
use crate::ab::{WIDTH, fact};
use crate::answers::command;

/// Version of the document, raised when readers of the older version would misread it.
const SCHEMA: u32 = 1;
/// The most commits of the table.
const MAX_ROWS: usize = 12;
/// Commits less probable than this are not listed, unless they were tested.
const LEAST_PROBABILITY: f64 = 0.001;

/// A search among commits by a test of the user's, as `--format json` has it, schema 1.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TestBisection {
    schema: u32,
    /// `found`, `searching`, `nothing-to-find` or `ends-open`.
    pub state: TestBisectionState,
    /// What was found, in a sentence.
    pub sentence: String,
    /// The repository.
    pub repository: String,
    /// The test.
    pub test: String,
    /// The probability at which a commit is named.
    pub confidence: f64,
    /// The commit that was found, or those that can't be told apart.
    pub found: Vec<String>,
    /// Probability that it is one of these; null if none was found.
    pub probability: Option<f64>,
    /// Whether the test fails less often at the newer end.
    pub is_mended: bool,
    /// Estimated shares of the runs that fail before and after the change; null before both ends are known to differ.
    pub failing: Option<[f64; 2]>,
    /// All commits, the older end first.
    pub commits: Vec<TestedCommit>,
    /// Time of the tests.
    pub seconds: f64,
    /// If the commit is a merge: the search among the commits that it brought.
    pub merge: Option<Box<Self>>,
    /// Lines about the commits that were found: author, date and files.
    #[serde(skip)]
    pub details: Vec<String>,
    /// The command to repeat it.
    #[serde(skip)]
    pub command: String,
    /// Release and day of the search.
    #[serde(skip)]
    pub measured_by: String,
}

/// How far a search by tests is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TestBisectionState {
    /// Whether the ends differ is not known yet.
    EndsOpen,
    /// The test fails as often at both ends.
    NothingToFind,
    /// The ends differ, and the commit is not known yet.
    Searching,
    /// The commit is known, or no test would tell more.
    Found,
}

/// A commit of a search by tests.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TestedCommit {
    /// Its first digits.
    pub commit: String,
    /// Its subject.
    pub title: String,
    /// Probability of the change at this commit; null for the older end, and before the search.
    pub probability: Option<f64>,
    /// Tests that passed.
    pub passed: u32,
    /// Tests that failed.
    pub failed: u32,
    /// Whether it can't be tested.
    pub is_untestable: bool,
}

impl TestBisection {
    /// A search that has not begun.
    pub fn new(repository: String, test: String, confidence: f64) -> Self {
        Self {
            schema: SCHEMA,
            state: TestBisectionState::EndsOpen,
            sentence: String::new(),
            repository,
            test,
            confidence,
            found: Vec::new(),
            probability: None,
            is_mended: false,
            failing: None,
            commits: Vec::new(),
            seconds: 0.0,
            merge: None,
            details: Vec::new(),
            command: String::new(),
            measured_by: String::new(),
        }
    }

    /// What was found, in a sentence or two, for [`Self::sentence`].
    pub fn in_words(&self) -> String {
        let [Some(first), Some(last)] = [self.commits.first(), self.commits.last()] else {
            return String::new();
        };
        let share = |commit: &TestedCommit| {
            let runs = commit.passed + commit.failed;
            format!("{} of {}", commit.failed, counted(runs as usize, "run"))
        };
        let ends = format!(
            "it failed in {} at {} and in {} at {}",
            share(last),
            last.commit,
            share(first),
            first.commit
        );
        match self.state {
            TestBisectionState::EndsOpen => {
                format!("Not decided whether the test fails more often at {}: {ends}.", last.commit)
            }
            TestBisectionState::NothingToFind => {
                format!("Nothing to find: the test fails as often at both ends: {ends}.")
            }
            TestBisectionState::Searching => format!("Not known yet: the test's outcome changed: {ends}."),
            TestBisectionState::Found => {
                let place = match self.found.as_slice() {
                    [only] => {
                        let title = self.commits.iter().find(|commit| commit.commit == *only);
                        let title = title.map(|commit| format!(", \"{}\"", commit.title)).unwrap_or_default();
                        format!("at {only}{title}")
                    }
                    several => format!(
                        "at one of {}, which can't be told apart, as no commit between them can be tested",
                        several.join(", ")
                    ),
                };
                let certainty = probability(self.probability.unwrap_or_default());
                let [before, after] =
                    self.failing.unwrap_or_default().map(|share| format!("{:.0}%", 100.0 * share));
                format!(
                    "The change is {place} (probability {certainty}): by estimate, the test fails in {before} of its runs before \
                     it, and in {after} from there on."
                )
            }
        }
    }

    /// The result as text.
    pub fn text(&self) -> String {
        let count = self.commits.len().saturating_sub(1);
        let [first, last] = [self.commits.first(), self.commits.last()]
            .map(|commit| commit.map_or("", |commit| &*commit.commit));
        let mut out = fact(
            "bisect",
            &format!("{} of {}, from {first} to {last}", counted(count, "commit"), self.repository),
        );
        out += &fact("test", &self.test);
        out += &fact("tested by", &self.measured_by);
        out += &format!("\n{}", wrap(&self.sentence, WIDTH));
        out.extend(self.details.iter().map(|line| format!("  {line}\n")));
        let probabilities: Vec<f64> = self.commits.iter().filter_map(|commit| commit.probability).collect();
        if !probabilities.is_empty() {
            out += &format!("\n{}\n\n{}", chart(&probabilities), self.candidates().render(Format::Table));
        }
        let tested = self.commits.iter().filter(|commit| commit.passed + commit.failed > 0).count();
        let runs: u32 = self.commits.iter().map(|commit| commit.passed + commit.failed).sum();
        let summary = format!(
            "Tested: {tested} of {} commits in {}, {}.",
            self.commits.len(),
            counted(runs as usize, "run"),
            duration(self.seconds)
        );
        out += &format!("\n{}", wrap(&summary, WIDTH));
        let untestable = self.commits.iter().filter(|commit| commit.is_untestable);
        let untestable: Vec<&str> = untestable.map(|commit| commit.commit.as_str()).collect();
        if !untestable.is_empty() {
            out += &wrap(&format!("Not testable: {}.", untestable.join(", ")), WIDTH);
        }
        out += &format!("\nTo repeat it:\n{}", command(&self.command, WIDTH));
        out
    }

    /// The most probable commits, and those that were tested.
    fn candidates(&self) -> Table {
        let mut table = Table::new(["#probability", "commit", "#passed", "#failed", "title"]);
        let mut shown: Vec<usize> = (1..self.commits.len()).collect();
        shown.sort_by(|a, b| {
            let probability = |at: &usize| self.commits[*at].probability.unwrap_or_default();
            probability(b).total_cmp(&probability(a))
        });
        shown.truncate(MAX_ROWS);
        shown.sort_unstable();
        for commit in shown.into_iter().map(|at| &self.commits[at]) {
            let is_listed = commit.probability.is_some_and(|share| share >= LEAST_PROBABILITY);
            if !is_listed && commit.passed + commit.failed == 0 {
                continue;
            }
            let runs = |count: u32| if commit.is_untestable { GAP.to_owned() } else { count.to_string() };
            table.push(vec![
                commit.probability.map(probability).unwrap_or_default(),
                commit.commit.clone(),
                runs(commit.passed),
                runs(commit.failed),
                commit.title.chars().take(36).collect(),
            ]);
        }
        table
    }
}
