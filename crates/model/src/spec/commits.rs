//! Ranges of commits as levels of the factor `server`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::Deserialize;

use super::SpecError;
use crate::value::parse;

/// Commits of a git repository, of first parents from one to another one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
#[serde(deny_unknown_fields)]
pub struct CommitLevels {
    /// The repository, or a work tree of it; a relative path is relative to the campaign's file.
    pub repo: PathBuf,
    /// `OLDER..NEWER`: branches, tags or commits.
    pub commits: String,
    /// Each of so many commits, and the newer end; by default all of them. Those that change only documentation, tests or
    /// translations are left out before.
    pub every: Option<NonZeroU32>,
}

impl CommitLevels {
    /// Parses an inline table of TOML.
    ///
    /// # Errors
    /// It is malformed.
    pub fn parse(table: &str) -> Result<Self, SpecError> {
        #[derive(Deserialize)]
        struct Document {
            levels: CommitLevels,
        }
        let Document { levels } = parse(&format!("levels = {table}"))?;
        match levels.ends() {
            Some(_) => Ok(levels),
            None => Err(SpecError {
                message: format!("\"{}\" is not a range of commits", levels.commits),
                at: None,
                help: Some("expected \"OLDER..NEWER\", such as \"REL_18_0..master\"".to_owned()),
            }),
        }
    }

    /// Names of the older and the newer end.
    pub fn ends(&self) -> Option<(&str, &str)> {
        let ends = self.commits.split_once("..")?;
        (!ends.0.is_empty() && !ends.1.is_empty() && !ends.1.starts_with('.')).then_some(ends)
    }
}
