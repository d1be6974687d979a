//! The workloads that pgdyno brings along: the directories below `workloads/` of its source.

use crate::read::Place;

/// Name, and files.
type Files = (&'static str, &'static [(&'static str, &'static str)]);

/// Every one of them.
static SHIPPED: [Files; 0] = [];

/// Their names.
pub fn shipped() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// The files of the one of that name.
pub(crate) fn place(name: &str) -> Option<Place> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(name, files)| Place::Shipped(name, files))
}
