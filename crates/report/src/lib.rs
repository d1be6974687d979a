//! From the trials in the store to what a person reads: [`analyse()`] makes a [`View`] of them, which [`tables`] prints
//! and [`html()`] puts into one file that needs nothing else. [`explained()`] says where the time of a trial goes,
//! and [`timeline()`] what went on in each second of it. [`mod@compare`] says whether something changed between two selections
//! of trials, and [`mod@history`] when.

mod analyse;
pub mod compare;
mod environment;
mod explained;
mod figures;
pub mod history;
mod html;
pub mod metric;
mod selector;
mod source;
pub mod table;
mod tables;
mod timeline;
pub mod view;

pub use analyse::{Surroundings, analyse};
pub use explained::text as explanation_text;
pub use explained::{
    Document as ExplainDocument, ExplainError, Explained, difference_text, explained, selected,
};
pub use html::html;
pub use selector::{SelectError, Selector, SelectorError};
pub use source::{ReadError, Selection, of_run, read};
pub use tables::tables;
pub use timeline::timeline;
pub use view::View;
