//! The files of a bundle, in memory.

use std::collections::BTreeMap;

/// The content of each file, by its path within the bundle. A file without content is not there.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;
