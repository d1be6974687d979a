//! The variables of a load, by name and by number.

use std::sync::Arc;

use crate::EvalError;

/// The number of a variable in its [`Names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot(pub u16);

impl Slot {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The names of all variables of a load. Its scripts share them, since a client keeps its variables from one script to
/// the next.
///
/// A clone is cheap, and does not see names that are added to the other later.
#[derive(Debug, Clone, Default)]
pub struct Names(Arc<Table>);

#[derive(Debug, Clone, Default)]
struct Table {
    by_slot: Vec<String>,
    /// The slots in the order of their names' bytes.
    by_name: Vec<Slot>,
}

impl Names {
    /// Returns the slot of a variable, a new one if it has none yet. `None` when all 65536 slots are taken by others.
    ///
    /// Accepts any text. One that is not a [valid name](is_valid_variable_name) gets a variable that never has a value:
    /// pgbench reports it only when it is assigned.
    pub fn slot(&mut self, name: &str) -> Option<Slot> {
        let position = match self.position(&[name.as_bytes()]) {
            Ok(slot) => return Some(slot),
            Err(position) => position,
        };
        let slot = Slot(u16::try_from(self.0.by_slot.len()).ok()?);
        let table = Arc::make_mut(&mut self.0);
        table.by_slot.push(name.to_owned());
        table.by_name.insert(position, slot);
        Some(slot)
    }

    /// Returns the slot of a variable, unless no script names it.
    pub fn find(&self, name: &str) -> Option<Slot> {
        self.position(&[name.as_bytes()]).ok()
    }

    /// Returns the variable that `\gset` or `\aset` with this prefix assigns a result's column to, or `None` when no
    /// script reads it. Allocates only for errors.
    ///
    /// # Errors
    ///
    /// When prefix and column together are not a [valid name](is_valid_variable_name), as in `?column?`.
    pub fn find_column(&self, prefix: &str, column: impl AsRef<[u8]>) -> Result<Option<Slot>, EvalError> {
        let pieces = [prefix.as_bytes(), column.as_ref()];
        if is_valid(pieces.iter().copied().flatten().copied()) {
            return Ok(self.position(&pieces).ok());
        }
        let name = String::from_utf8_lossy(&pieces.concat()).into_owned();
        Err(EvalError::InvalidVariableName { name })
    }

    /// Returns the name of a slot of this table.
    ///
    /// # Panics
    ///
    /// When the slot belongs to another table and is beyond this one.
    pub fn name(&self, slot: Slot) -> &str {
        &self.0.by_slot[slot.index()]
    }

    /// All names, by slot.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, &str)> {
        (0..=u16::MAX).map(Slot).zip(self.0.by_slot.iter().map(String::as_str))
    }

    /// Number of variables.
    pub fn len(&self) -> usize {
        self.0.by_slot.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.by_slot.is_empty()
    }

    /// The slot of the name with these pieces, or else its index among the sorted ones.
    fn position(&self, pieces: &[&[u8]]) -> Result<Slot, usize> {
        let order = |slot: &Slot| self.name(*slot).bytes().cmp(pieces.iter().copied().flatten().copied());
        self.0.by_name.binary_search_by(order).map(|position| self.0.by_name[position])
    }
}

/// Whether a variable of this name can be assigned: letters, digits, `_` and anything beyond ASCII, not beginning with
/// a digit.
pub fn is_valid_variable_name(name: &str) -> bool {
    is_valid(name.bytes())
}

fn is_valid(mut name: impl Iterator<Item = u8>) -> bool {
    name.next().is_some_and(is_start) && name.all(is_part)
}

/// Whether `byte` may begin an identifier, here and in SQL.
pub(crate) fn is_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

/// Whether `byte` may be in a variable's name.
pub(crate) fn is_part(byte: u8) -> bool {
    is_start(byte) || byte.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_slot() {
        let mut names = Names::default();
        assert!(names.is_empty());
        let slots = ["b", "a", "c", "ab", "", "größe"].map(|name| names.slot(name).unwrap());
        assert_eq!(slots, [0, 1, 2, 3, 4, 5].map(Slot));
        assert_eq!(names.slot("ab"), Some(Slot(3)));
        assert_eq!(names.find("größe"), Some(Slot(5)));
        assert_eq!(names.find("x"), None);
        assert_eq!(names.name(Slot(2)), "c");
        assert_eq!(names.iter().map(|(slot, name)| (slot.0, name)).nth(1), Some((1, "a")));
        assert_eq!(names.len(), 6);
    }

    #[test]
    fn all_slots_can_be_used() {
        let mut names = Names::default();
        for number in 0..=u16::MAX {
            assert_eq!(names.slot(&format!("v{number}")), Some(Slot(number)));
        }
        assert_eq!(names.slot("one more"), None);
        assert_eq!(names.slot("v7"), Some(Slot(7)));
    }

    #[test]
    fn a_column_is_found_by_its_prefix_and_name() {
        let mut names = Names::default();
        let slot = names.slot("x_id").unwrap();
        for (prefix, column) in [("x_", "id"), ("", "x_id"), ("x_id", "")] {
            assert_eq!(names.find_column(prefix, column), Ok(Some(slot)));
        }
        assert_eq!(names.find_column("x_", "count"), Ok(None));
        assert_eq!(
            names.find_column("", "?column?").unwrap_err().to_string(),
            "invalid variable name: \"?column?\""
        );
        assert!(names.find_column("", "1").is_err());
        assert!(names.find_column("", "").is_err());
    }

    #[test]
    fn a_clone_is_independent() {
        let mut names = Names::default();
        names.slot("a").unwrap();
        let earlier = names.clone();
        names.slot("b").unwrap();
        assert_eq!((earlier.find("b"), names.find("b")), (None, Some(Slot(1))));
    }

    #[test]
    fn valid_variable_names() {
        for (name, valid) in [
            ("a", true),
            ("_1", true),
            ("größe", true),
            ("", false),
            ("1a", false),
            (".", false),
            ("a b", false),
            ("a-", false),
        ] {
            assert_eq!(is_valid_variable_name(name), valid, "{name}");
        }
    }
}
