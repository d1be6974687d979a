//! Bundles of a store as `pgdyno store` prints them: the list, one in full, and their problems.

mod document;
mod list;
mod problems;
mod show;

pub use document::{CheckDocument, ListDocument, ReindexDocument, ShowDocument};
pub use list::table as list_table;
pub use problems::{
    bundles as counted_bundles, left_out_lines, lines as problem_lines, table as problem_table,
};
pub use show::{table as record_table, text as record_text};
