//! The state of the caches when a load begins.

use serde::Serialize;
use serde_json::Value;

use super::{Axis, Column, LevelError, Place, named, names};
use crate::definitions::Definitions;
use crate::value::{Spanned, SpecError, one_of};

/// What the server's and the system's caches hold when a load begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// The tables and their indexes, as far as they fit: they have been read (by `pg_prewarm` where it is there).
    #[default]
    Warm,
    /// Nothing of the data set: the server was started anew, and its files put out of the system's page cache.
    Cold,
    /// Whatever the trials before have left there.
    AsIs,
}

impl CacheState {
    /// Every state there is.
    pub const ALL: [Self; 3] = [Self::Warm, Self::Cold, Self::AsIs];

    /// Its name in campaigns and bundles.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
            Self::AsIs => "as-is",
        }
    }
}

/// The factor `cache`.
#[derive(Clone, Copy, Debug)]
pub struct Cache;

impl Axis for Cache {
    type Level = CacheState;
    type Written = String;
    type Stored = String;

    const KEY: &'static str = "cache";
    const SENTENCE: &'static str = "`warm`: tables and indexes have been read into the server's buffers, as far as they fit; `cold`: the server was restarted, and its files dropped from the system's page cache; `as-is`: whatever is there";
    const PLACE: Place = Place::Condition;
    const COLUMN: Column = Column::text("cache", "factor cache: warm, cold, as-is");

    fn schema() -> Value {
        names(&CacheState::ALL.map(CacheState::name))
    }

    fn check(given: &Spanned<String>, _: &Definitions<'_>) -> Result<CacheState, SpecError> {
        one_of(given, "cache", &CacheState::ALL.map(|level| (level.name(), level)))
    }

    fn parse(text: &str) -> Result<CacheState, LevelError> {
        named(Self::KEY, text, &CacheState::ALL, CacheState::name)
    }

    fn show(level: &CacheState) -> String {
        level.name().to_owned()
    }

    fn default() -> Option<CacheState> {
        Some(CacheState::Warm)
    }

    fn to_stored(level: &CacheState) -> Option<String> {
        Some(level.name().to_owned())
    }

    fn from_stored(stored: String) -> Result<CacheState, LevelError> {
        named(Self::KEY, &stored, &CacheState::ALL, CacheState::name)
    }
}
