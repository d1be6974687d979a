//! Resource limits of this process, which servers inherit. Source: proc(5), `/proc/self/limits`.

use std::collections::BTreeMap;

use crate::root::Root;

/// Limits by the kernel's names: the soft one, followed by the hard one if it differs.
pub(super) fn read(root: &Root) -> BTreeMap<String, String> {
    let text = root.text("proc/self/limits").unwrap_or_default();
    // The first line has the column headings.
    text.lines().skip(1).filter_map(limit).collect()
}

/// At least two spaces separate columns; names contain single spaces.
fn limit(line: &str) -> Option<(String, String)> {
    let mut columns = line.split("  ").map(str::trim).filter(|column| !column.is_empty());
    let (name, soft, hard) = (columns.next()?, columns.next()?, columns.next()?);
    let unit = columns.next().map(|unit| format!(" {unit}")).unwrap_or_default();
    let value = if soft == hard { format!("{soft}{unit}") } else { format!("{soft}{unit} (hard {hard})") };
    Some((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::limit;

    #[test]
    fn limits_are_reported_with_their_units() {
        let read = |line| limit(line).map(|(name, value)| format!("{name}: {value}"));
        let line = "Max stack size            8388608              unlimited            bytes     ";
        assert_eq!(read(line).unwrap(), "Max stack size: 8388608 bytes (hard unlimited)");
        let line = "Max nice priority         0                    0                    ";
        assert_eq!(read(line).unwrap(), "Max nice priority: 0");
        assert_eq!(read("nonsense"), None);
    }
}
