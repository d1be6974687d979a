//! The commits of a range that are candidates.

use host::git::RangeCommit;
use plaintext::figures::counted;

use crate::exit::Usage;
use crate::output::note;

/// The commits that can have changed a program; others change only what `only` names.
pub(super) fn without_others(
    mut commits: Vec<RangeCommit>,
    [good, bad]: [&str; 2],
    program: &str,
    only: &str,
) -> Result<Vec<RangeCommit>, Usage> {
    let all = commits.len();
    commits.retain(|commit| commit.can_change_programs);
    if commits.len() == 1 {
        return Err(Usage(format!(
            "error: no commit from {good} to {bad} can have changed a {program}: they change {only}"
        )));
    }
    if let left_out @ 1.. = all - commits.len() {
        let verb = if left_out == 1 { "changes" } else { "change" };
        note(&format!("{} left out that {verb} only {only}\n", counted(left_out, "commit")));
    }
    Ok(commits)
}
