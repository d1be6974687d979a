//! The variables of a script, by name and by number.

use std::collections::HashMap;

/// The number of a variable in its script: the index into [`Script::variables`](crate::Script::variables).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot(pub u16);

impl Slot {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Gives each name the next free slot when it is first met.
#[derive(Debug, Default)]
pub(crate) struct Names {
    by_name: HashMap<String, Slot>,
    by_slot: Vec<String>,
}

impl Names {
    /// The slot of `name`, or `None` when all 65536 slots are taken by other names.
    pub(crate) fn slot(&mut self, name: &str) -> Option<Slot> {
        if let Some(slot) = self.by_name.get(name) {
            return Some(*slot);
        }
        let slot = Slot(u16::try_from(self.by_slot.len()).ok()?);
        self.by_name.insert(name.to_owned(), slot);
        self.by_slot.push(name.to_owned());
        Some(slot)
    }

    pub(crate) fn into_vec(self) -> Vec<String> {
        self.by_slot
    }
}

/// Whether `name` may be given a value: letters, digits, `_` and anything beyond ASCII, not beginning with a digit.
pub(crate) fn is_valid(name: &str) -> bool {
    name.bytes().next().is_some_and(is_start) && name.bytes().all(is_part)
}

/// Whether `byte` may begin an identifier, here and in SQL.
pub(crate) fn is_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

/// Whether `byte` may be in a variable's name.
pub(crate) fn is_part(byte: u8) -> bool {
    is_start(byte) || byte.is_ascii_digit()
}
