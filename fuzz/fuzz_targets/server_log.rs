//! Any text can be read as a server log: nothing panics, all figures are finite, and no line is counted twice.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // With the prefix, the parser reads much more of the text.
    let prefix = "2026-01-02 03:04:05.678 UTC [42] 00000 <> <a> LOG:  ";
    for text in [text.to_owned(), format!("{prefix}{}", text.replace('\n', &format!("\n{prefix}")))] {
        let log = collect::server_log::events(&text);
        assert!(log.unparsed as usize <= text.lines().count());
        assert!(log.events.is_sorted_by_key(|event| event.at));
        let figures = || log.events.iter().flat_map(|event| event.figures.values());
        assert!(figures().all(|figure| figure.is_finite()));
    }
});
