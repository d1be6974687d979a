//! From the trials in the store to what a person reads: [`analyse()`] makes a [`View`] of them, which [`tables`] prints
//! and [`file()`] puts into one file that needs nothing else; [`mod@serve`] shows a whole store, also while a campaign runs. [`explained()`] says where the time of a trial goes,
//! and [`timeline()`] what went on in each second of it. [`mod@compare`] says whether something changed between two selections
//! of trials, [`mod@history`] when, [`mod@detail`] is one trial in all its detail, [`mod@profile`] says which functions processors were in, and [`power`] which changes can be seen at the noise of these; [`foresee`] is that of a
//! plan.

mod analyse;
mod beside;
mod blocks;
mod chart;
pub mod compare;
pub mod detail;
mod emulation;
mod environment;
mod explained;
mod figures;
mod file;
pub mod flat;
mod foresight;
mod histories;
pub mod history;
mod html;
pub mod metric;
mod noise;
pub mod power;
pub mod profile;
mod scalability;
mod selector;
pub mod serve;
pub mod show;
mod source;
mod spans;
mod tables;
mod timeline;
mod verdicts;
mod version;
pub mod view;

pub use analyse::{Surroundings, analyse};
pub use blocks::BlockFigure;
pub use chart::Terminal;
pub use explained::text as explanation_text;
pub use explained::{
    Document as ExplainDocument, ExplainError, Explained, ExplainedDocument, difference_text, explained,
    selected,
};
pub use file::{FileError, ROOM_BYTES, ReportFile, file};
pub use foresight::{ALPHA, Foresight, POWER, foresee};
pub use histories::histories;
pub use html::html;
pub use noise::{CellNoise, median_noise, noise_of, noise_on};
pub use plaintext::table;
pub use selector::{SelectError, Selector, SelectorError};
pub use source::{ReadError, Selection, of_run, read};
pub use spans::{gantt, spans};
pub use tables::tables;
pub use timeline::timeline;
pub use view::View;
