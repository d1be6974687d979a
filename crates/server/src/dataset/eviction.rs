//! Limits the size of all templates: the least recently used are removed first.

use crate::dataset::template::{remove_unused, templates};
use crate::error::Error;
use host::Cache;
use host::Lock;
use host::Progress;

/// Variable with the maximum size of all templates; without it there is no limit.
const VARIABLE: &str = "PGDYNO_DATASETS_MAX";
const UNITS: [(&str, f64); 4] = [("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)];

/// Removes templates until one of so many bytes fits below the limit, or all others are in use.
pub(crate) fn free_space(cache: &Cache, needed: u64, progress: &dyn Progress) -> Result<(), Error> {
    match std::env::var(VARIABLE) {
        Ok(text) if !text.is_empty() => evict(cache, needed, bytes(&text)?, progress),
        _ => Ok(()),
    }
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

/// Parses a size such as `50GB`; a kB is 1000 bytes.
fn bytes(text: &str) -> Result<u64, Error> {
    let refuse = || Error::NotASize { text: text.to_owned() };
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').ok_or_else(refuse)?;
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim();
    let (_, factor) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(refuse)?;
    let number: f64 = number.parse().map_err(|_| refuse())?;
    Ok((number * factor) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit() {
        assert_eq!(bytes("50GB").unwrap(), 50_000_000_000);
        assert_eq!(bytes("1.5 tb").unwrap(), 1_500_000_000_000);
        for text in ["50", "GB", "-1GB", "5 bananas", "1..2GB"] {
            assert!(bytes(text).unwrap_err().to_string().contains("\"50GB\""), "{text}");
        }
    }
}
