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
    fn what_the_user_has_there_stays_to_the_letter() {
        for theirs in ["", "menuentry 'x' {\n}\n", "no newline"] {
            let ours = with(&with(theirs, "one\n"), "two\n");
            assert!(ours.contains("two\n") && !ours.contains("one\n"), "{ours}");
            assert_eq!(without(&ours), theirs);
            assert_eq!(without(&format!("{ours}more\n")), format!("{theirs}more\n"));
        }
    }
}
