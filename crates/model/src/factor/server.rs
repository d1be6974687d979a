//! The PostgreSQL server under test.

use super::{Axis, Column, LevelError, Place};
use crate::definitions::Definitions;
use crate::server::{EXPECTED_SERVER, Source, commit_of};
use crate::value::{Spanned, SpecError};

/// The factor `server`.
#[derive(Clone, Copy, Debug)]
pub struct Server;

impl Axis for Server {
    type Level = String;
    type Written = String;
    type Stored = String;

    const KEY: &'static str = "server";
    const DESCRIPTION: &'static str = "PostgreSQL versions as strings: a major (`\"18\"`, `\"9.6\"`: its newest release) or a full version (`\"16.4\"`); names of builds (`\"18.6-src-…\"`) and of `[servers.…]`; `\"NAME@COMMIT\"`: a commit, branch or tag of the git repository that is the source of `[servers.NAME]`; `{ repo = \"./postgres\", commits = \"OLDER..NEWER\", every = 10 }`: each tenth commit of a range";
    const EXAMPLE: &'static str = "9.6";
    const PLACE: Place = Place::Column;
    const REQUIRED: Option<&'static str> = Some("server = [\"17\", \"18\"]");
    const COLUMN: Column = Column::text("server", "factor server: name of the server in the campaign");

    fn check(given: &Spanned<String>, definitions: &Definitions<'_>) -> Result<String, SpecError> {
        let name = given.get_ref();
        let is_defined = |name: &str| definitions.servers.keys().any(|defined| defined.get_ref() == name);
        let is_commit = commit_of(name).is_some_and(|(server, _)| is_defined(server));
        if is_defined(name) || is_commit || Source::from_name(name).is_some() {
            return Ok(name.clone());
        }
        Err(SpecError::at(
            given,
            format!("\"{name}\" is not a PostgreSQL version"),
            format!("expected {EXPECTED_SERVER}, or a table [servers.{name}]"),
        ))
    }

    fn parse(text: &str) -> Result<String, LevelError> {
        Ok(text.to_owned())
    }

    fn show(level: &String) -> String {
        level.clone()
    }

    fn to_stored(level: &String) -> Option<String> {
        Some(level.clone())
    }

    fn from_stored(stored: String) -> Result<String, LevelError> {
        Ok(stored)
    }
}
