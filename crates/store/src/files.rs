//! The files of a bundle, in memory.

use std::collections::BTreeMap;

/// Contents of files by path within the bundle. An empty file is absent.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;
