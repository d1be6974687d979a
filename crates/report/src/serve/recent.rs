//! The most recently requested values, by id.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

/// Values by id, of which the least recently requested one is dropped. Requests for one that is being computed wait for
/// it; others do not.
pub(crate) struct Recent<T> {
    capacity: usize,
    entries: Mutex<Entries<T>>,
}

struct Entries<T> {
    requests: u64,
    /// Entries, each with the number of its last request.
    by_id: BTreeMap<String, (u64, Arc<tokio::sync::Mutex<T>>)>,
}

impl<T: Default> Recent<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, entries: Mutex::new(Entries { requests: 0, by_id: BTreeMap::new() }) }
    }

    /// The value with this id, at first the default one, when nobody else has it.
    pub(crate) async fn get(&self, id: &str) -> OwnedMutexGuard<T> {
        self.entry(id).lock_owned().await
    }

    fn entry(&self, id: &str) -> Arc<tokio::sync::Mutex<T>> {
        // Entries are consistent after each step, even if another thread panicked.
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let Entries { requests, by_id } = &mut *entries;
        *requests += 1;
        let (last, value) = by_id.entry(id.to_owned()).or_default();
        *last = *requests;
        let value = Arc::clone(value);
        if by_id.len() > self.capacity {
            let oldest = by_id.iter().min_by_key(|(_, (last, _))| *last).map(|(id, _)| id.clone());
            oldest.map(|id| by_id.remove(&id));
        }
        value
    }
}
