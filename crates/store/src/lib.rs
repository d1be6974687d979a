//! The store: a directory of bundles, one per trial, and an index over them.
//!
//! The bundles are the source of truth; the index is a cache of their heads, rebuilt if it is missing, damaged or
//! outdated. docs/bundle.md describes every file of a bundle. In the order of the data: [`Store`] → `bundle` (an atomic
//! directory) → `content` (a record as files) → `format`, `hlog`, `series`, `spans`, `metrics`, `waits`, `statements`, `played`
//! (the form of each file; `columns` is common to the Parquet files), and next to it `index` and `check`; `acceptances`
//! are accepted shifts of histories; `live` is the progress of running runs (`totals` of
//! their load), `claim` the right to execute one.

mod acceptances;
mod archive;
mod bundle;
mod check;
mod claim;
pub mod columns;
mod compressed;
mod content;
mod error;
mod files;
pub mod format;
pub mod hlog;
mod id;
mod index;
mod intervals;
mod live;
mod metrics;
mod parts;
mod phases;
mod played;
mod reader;
mod redact;
mod series;
mod spans;
mod stacks;
mod statements;
mod store;
mod sums;
mod totals;
mod waits;

pub use archive::{BundleArchive, ImportedBundles, MAX_ARCHIVE_BYTES, archived_trial};
pub use check::Check;
pub use claim::Claim;
pub use content::StoredContext;
pub use error::{Problem, StoreError};
pub use id::{is_id, new_id};
pub use index::{Listing, Reindexed};
pub use live::{LiveReader, LiveUpdate, LiveWriter};
pub use parts::Part;
pub use reader::StoreReader;
pub use redact::Redacted;
pub use store::{Stamp, Store};
pub use totals::{LATENCY_BOUNDS_US, PhaseTotals, Totals};
