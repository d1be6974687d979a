//! State of the caches at the start of a load.

use serde::Serialize;
use serde_json::Value;
use strum::{EnumString, IntoStaticStr, VariantArray};

use super::{Axis, Column, LevelError, Place, parse_word, word_schema};
use crate::definitions::Definitions;
use crate::value::{Spanned, SpecError, word};

/// Contents of the server's and the system's caches at the start of a load.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// The tables and their indexes, as far as they fit: they have been read (by `pg_prewarm` if available).
    #[default]
    Warm,
    /// None of the data set: the server was restarted, and its files evicted from the system's page cache.
    Cold,
    /// Contents left by the previous trials.
    AsIs,
}

impl CacheState {
    /// Its name in campaigns and bundles.
    pub fn as_str(self) -> &'static str {
        self.into()
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
    const DESCRIPTION: &'static str = "`warm`: tables and indexes have been read into the server's buffers, as far as they fit; `cold`: the server was restarted, and its files dropped from the system's page cache; `as-is`: whatever is there";
    const EXAMPLE: &'static str = "cold";
    const PLACE: Place = Place::Condition;
    const COLUMN: Column = Column::text("cache", "factor cache: warm, cold, as-is");

    fn schema() -> Value {
        word_schema::<CacheState>()
    }

    fn check(given: &Spanned<String>, _: &Definitions<'_>) -> Result<CacheState, SpecError> {
        word(given, Self::KEY)
    }

    fn parse(text: &str) -> Result<CacheState, LevelError> {
        parse_word(Self::KEY, text)
    }

    fn show(level: &CacheState) -> String {
        level.as_str().to_owned()
    }

    fn default() -> Option<CacheState> {
        Some(CacheState::Warm)
    }

    fn to_stored(level: &CacheState) -> Option<String> {
        Some(level.as_str().to_owned())
    }

    fn from_stored(stored: String) -> Result<CacheState, LevelError> {
        parse_word(Self::KEY, &stored)
    }
}
