//! Ids of trials and runs: ULIDs, 26 characters of Crockford's base 32 that sort by time (github.com/ulid/spec).

use std::sync::{Mutex, PoisonError};

use ulid::{Generator, Ulid};

/// Returns a new id: larger than all earlier ids of this process, and different from those of any other process.
pub fn new_id() -> String {
    static GENERATOR: Mutex<Generator> = Mutex::new(Generator::new());
    let mut generator = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
    generator.generate().unwrap_or_else(|overflow| overflow.commit_overflow_increment()).to_string()
}

/// Whether `text` is an id in the form of [`new_id`], and thus may be the name of a bundle's directory.
pub fn is_id(text: &str) -> bool {
    Ulid::from_string(text).is_ok_and(|ulid| ulid.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_in_the_order_they_were_drawn() {
        let ids: Vec<String> = (0..10_000).map(|_| new_id()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        assert!(ids.iter().all(|id| is_id(id)));
    }

    #[test]
    fn only_the_canonical_spelling_is_an_id() {
        let id = new_id();
        for other in
            [id.to_lowercase(), id[1..].to_owned(), format!("{id}0"), "../etc".to_owned(), String::new()]
        {
            assert!(!is_id(&other), "{other}");
        }
    }
}
