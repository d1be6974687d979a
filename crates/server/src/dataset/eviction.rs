//! Limits the size of all templates: the least recently used are removed first.

use crate::dataset::template::{remove_unused, templates};
use crate::error::Error;
use crate::size_limit::size_limit;
use host::Cache;
use host::Lock;
use host::Progress;

/// Variable with the maximum size of all templates; without it there is no limit.
const VARIABLE: &str = "PGDYNO_DATASETS_MAX";

/// Removes templates until one of so many bytes fits below the limit, or all others are in use.
pub(crate) fn free_space(cache: &Cache, needed: u64, progress: &dyn Progress) -> Result<(), Error> {
    size_limit(VARIABLE)?.map_or(Ok(()), |limit| evict(cache, needed, limit, progress))
}

fn evict(cache: &Cache, needed: u64, limit: u64, progress: &dyn Progress) -> Result<(), Error> {
    let _lock = Lock::exclusive(&cache.lock_file("eviction"))?;
    let mut found = templates(cache)?;
    // Unusable ones go before all others.
    found.sort_by_key(|template| (template.is_current(), template.last_used()));
    let mut total = needed + found.iter().map(|template| template.bytes()).sum::<u64>();
    for template in found {
        if total <= limit {
            return Ok(());
        }
        if remove_unused(cache, template.directory())? {
            total -= template.bytes().min(total);
            progress.notice(&format!(
                "removed the data set {}, last used {:.0}, because of the limit {VARIABLE}",
                template.name(),
                template.last_used(),
            ));
        }
    }
    if total > limit {
        progress.notice(&format!(
            "data sets will use {} MB, more than {VARIABLE} allows ({} MB): the remaining ones are in use",
            total / 1_000_000,
            limit / 1_000_000
        ));
    }
    Ok(())
}
