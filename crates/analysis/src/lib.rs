//! Derives values from the trials in a store: the contents of `report`, and the results of commands.
//!
//! In the order of the data: [`select`] selects trials, [`context`] reads their contexts, [`metric`] derives a figure
//! from each. These are the basis of [`overview()`] (all cells of a run next to each other), [`mod@compare`]
//! (differences between two selections, with [`statements`] those of a trace), [`mod@history`] (changes over time), [`mod@explain`] (where the time goes),
//! [`mod@profile`] (the functions that use it), [`trial`] (one trial in detail; [`phase`] makes a trial of one of its phases), [`mod@bisection`] (at which level it changed) and [`power`] (detectable changes).

pub mod bisection;
pub mod compare;
pub mod context;
mod design;
mod emulation;
pub mod explain;
mod facts;
pub mod history;
pub mod judgement;
mod layout;
mod left_out;
pub mod levels;
pub mod margin;
pub mod metric;
pub mod overview;
pub mod phase;
pub mod power;
pub mod profile;
pub mod select;
pub mod spans;
pub mod statements;
pub mod trial;
mod version;

#[cfg(test)]
mod typescript;

pub use emulation::notes;
pub use layout::ordered_cells;
pub use left_out::{LeftOut, left_out};
pub use overview::overview;
