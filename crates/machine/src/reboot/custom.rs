//! `custom.cfg`, which may also have entries of the user: pgdyno's are between markers.

const BEGIN: &str = "\n### BEGIN pgdyno ###\n";
const END: &str = "### END pgdyno ###\n";

/// The file with this entry in place of an earlier one of pgdyno's.
pub(super) fn with(text: &str, entry: &str) -> String {
    format!("{}{BEGIN}{entry}{END}", without(text))
}

/// The file without pgdyno's entry.
pub(super) fn without(text: &str) -> String {
    let Some((before, ours)) = text.split_once(BEGIN) else { return text.to_owned() };
    let after = ours.split_once(END).map_or("", |(_, after)| after);
    format!("{before}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_the_user_are_not_changed() {
        for original in ["", "menuentry 'x' {\n}\n", "no newline"] {
            let extended = with(&with(original, "one\n"), "two\n");
            assert!(extended.contains("two\n") && !extended.contains("one\n"), "{extended}");
            assert_eq!(without(&extended), original);
            assert_eq!(without(&format!("{extended}more\n")), format!("{original}more\n"));
        }
    }
}
