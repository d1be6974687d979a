//! Logs of a bundle with what the git repository of its server or kernel said about commits, so that results have their subjects without the
//! repository.

/// Name of the log with the commit that the trial's server was built from.
pub const COMMIT_LOG: &str = "commit";
/// Name of the log with the commit that the trial's kernel was built from.
pub const KERNEL_COMMIT_LOG: &str = "kernel-commit";
/// Name of the log with the subjects of all commits of a bisection.
pub const COMMITS_LOG: &str = "commits";

/// A commit, as [`COMMIT_LOG`] and [`KERNEL_COMMIT_LOG`] have it: its subject, its author and date, and its files, in lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitText {
    /// The subject.
    pub subject: String,
    /// The author's name and the date, such as `Ada Lovelace, 2026-11-21`.
    pub author: String,
    /// Its files with their numbers of changed lines, and their sum.
    pub files: Vec<String>,
}

impl CommitText {
    /// Reads the log.
    pub fn parse(log: &str) -> Self {
        let mut lines = log.lines().map(str::to_owned);
        let mut next = || lines.next().unwrap_or_default();
        Self { subject: next(), author: next(), files: lines.collect() }
    }
}

/// Names of commits with their subjects, as [`COMMITS_LOG`] has them: a line each.
pub fn subjects(log: &str) -> impl Iterator<Item = (&str, &str)> {
    log.lines().filter_map(|line| line.split_once(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_read_line_by_line() {
        let log = "Check portals twice\nAda Lovelace, 2026-11-21\n a.c | 2 +-\n 1 file changed\n";
        let commit = CommitText::parse(log);
        assert_eq!(
            (commit.subject.as_str(), commit.author.as_str()),
            ("Check portals twice", "Ada Lovelace, 2026-11-21")
        );
        assert_eq!(commit.files, [" a.c | 2 +-", " 1 file changed"]);
        assert_eq!(CommitText::parse("Empty").files, [""; 0]);
        let all: Vec<(&str, &str)> =
            subjects("1a2b Check portals\nREL_17_0 Stamp 17.0\ndamaged\n3c4d \n").collect();
        assert_eq!(all, [("1a2b", "Check portals"), ("REL_17_0", "Stamp 17.0"), ("3c4d", "")]);
    }
}
