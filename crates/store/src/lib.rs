//! The store: a directory of bundles, one a trial, and an index over them.
//!
//! The bundles are the truth; the index is a cache of their heads that is made anew whenever it is missing, damaged
//! or behind. docs/bundle.md describes every file of a bundle. Read in the way of the data: [`Store`] → `bundle` (a
//! directory that exists whole or not at all) → `content` (a record as files) → `format`, `hlog`, `series`,
//! `spans`, `metrics`, `waits`, `statements` (each file's own form; `columns` is what the Parquet files share), and next to it
//! `index` and `check`; `acceptances` are what people made of shifts in histories; `live` is what runs tell while they
//! go on.

mod acceptances;
mod bundle;
mod check;
pub mod columns;
mod content;
mod context;
mod error;
mod files;
pub mod format;
pub mod hlog;
mod id;
mod index;
mod live;
mod metrics;
mod series;
mod spans;
mod stacks;
mod statements;
mod store;
mod sums;
mod waits;

pub use check::Check;
pub use content::StoredContext;
pub use context::{ContextReader, Part};
pub use error::{Problem, StoreError};
pub use id::{is_id, new_id};
pub use index::{Listing, Reindexed};
pub use live::{LiveReader, LiveWriter, News};
pub use store::{Claim, Stamp, Store};
