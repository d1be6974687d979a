//! From the trials in a store to values: what `report` shows, and commands decide by.
//!
//! In the way of the data: [`select`] finds the trials that are meant, [`context`] reads what belongs to them, [`metric`]
//! takes a figure of each. On these stand [`overview()`] (all cells of a run next to each other), [`mod@compare`] (did it change
//! between two selections), [`mod@history`] (when did it change), [`mod@explain`] (where the time goes), [`mod@profile`] (which functions
//! took it), [`trial`] (one trial in all its detail) and [`power`] (which changes can be seen at all).

pub mod compare;
pub mod context;
mod emulation;
pub mod explain;
mod facts;
pub mod history;
pub mod judgement;
mod layout;
pub mod levels;
pub mod metric;
pub mod overview;
pub mod power;
pub mod profile;
pub mod select;
pub mod spans;
pub mod trial;
mod version;

#[cfg(test)]
mod typescript;

pub use emulation::notes;
pub use layout::in_order;
pub use overview::overview;
