//! Findings of validity gates by cause: one group for all trials in which a gate found the same, in figures. The processes
//! that evidence names may differ.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::process_share::{ProcessShare, busiest_in_words};

use super::view::{Finding, FindingGroup};

/// Validities, the worst first.
const WORST_FIRST: [&str; 3] = ["invalid", "suspect", "valid"];

/// Findings, each with its trial's id, by cause: those that make trials invalid first, then those of most trials.
pub fn by_cause<'f>(findings: impl Iterator<Item = (&'f str, &'f Finding)>) -> Vec<FindingGroup> {
    let mut same: BTreeMap<Cause<'f>, (Vec<String>, Vec<&Finding>)> = BTreeMap::new();
    for (trial, finding) in findings {
        let (trials, findings) = same.entry(Cause::new(finding)).or_default();
        trials.push(trial.to_owned());
        findings.push(finding);
    }
    let group = |(cause, (trials, findings)): (Cause<'_>, (Vec<String>, Vec<&Finding>))| {
        let first = findings[0];
        FindingGroup {
            gate: first.gate.clone(),
            validity: first.validity,
            trials,
            evidence: with_ranges(&cause.words, &findings) + &busiest(&findings),
            threshold: first.threshold.clone(),
            advice: first.advice.clone(),
        }
    };
    let mut groups: Vec<FindingGroup> = same.into_iter().map(group).collect();
    groups.sort_by_key(|group| (place(group.validity), Reverse(group.trials.len())));
    groups
}

/// What findings of one group have in common.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Cause<'f> {
    place: usize,
    gate: &'f str,
    /// The evidence without its figures.
    words: Vec<&'f str>,
}

impl<'f> Cause<'f> {
    fn new(finding: &'f Finding) -> Self {
        Self {
            place: place(finding.validity),
            gate: &finding.gate,
            words: split(without_processes(finding)).0,
        }
    }
}

/// The place of a validity among all, the worst first.
fn place(validity: &str) -> usize {
    WORST_FIRST.iter().position(|other| *other == validity).unwrap_or(WORST_FIRST.len())
}

/// The evidence of a finding without the processes that it ends with.
fn without_processes(finding: &Finding) -> &str {
    let evidence = finding.evidence.as_str();
    let words = busiest_in_words(&finding.processes);
    let before = words.and_then(|words| evidence.strip_suffix(&words)?.strip_suffix("; "));
    before.unwrap_or(evidence)
}

/// The processes that findings name, by their mean shares, as the end of evidence; empty if they name none.
fn busiest(findings: &[&Finding]) -> String {
    let naming: Vec<&[ProcessShare]> = findings
        .iter()
        .map(|finding| finding.processes.as_slice())
        .filter(|processes| !processes.is_empty())
        .collect();
    let mut means: BTreeMap<Option<&str>, f64> = BTreeMap::new();
    for process in naming.iter().copied().flatten() {
        *means.entry(process.name.as_deref()).or_default() += process.share / naming.len() as f64;
    }
    let mut processes: Vec<ProcessShare> = means
        .into_iter()
        .map(|(name, share)| ProcessShare { name: name.map(str::to_owned), share })
        .collect();
    processes.sort_by(|a, b| b.share.total_cmp(&a.share));
    let average = if naming.len() > 1 { " on average" } else { "" };
    busiest_in_words(&processes).map_or_else(String::new, |words| format!("; {words}{average}"))
}

/// The words of evidence around its figures, and the figures: a text begins and ends with words, which may be empty.
fn split(evidence: &str) -> (Vec<&str>, Vec<&str>) {
    let is_part = |c: char| c.is_ascii_digit() || c == ',' || c == '.';
    let (mut words, mut figures, mut rest) = (Vec::new(), Vec::new(), evidence);
    while let Some(from) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, figure_on) = rest.split_at(from);
        let end = figure_on.find(|c| !is_part(c)).unwrap_or(figure_on.len());
        // A comma or a full stop after a figure belongs to the sentence.
        let figure = figure_on[..end].trim_end_matches([',', '.']);
        words.push(before);
        figures.push(figure);
        rest = &figure_on[figure.len()..];
    }
    words.push(rest);
    (words, figures)
}

/// The evidence of findings that differ in their figures at most, with the smallest and the largest of each.
fn with_ranges(words: &[&str], findings: &[&Finding]) -> String {
    let figures: Vec<Vec<&str>> =
        findings.iter().map(|finding| split(without_processes(finding)).1).collect();
    let size = |figure: &str| figure.replace(',', "").parse::<f64>().unwrap_or(f64::NAN);
    let mut text = String::new();
    for (at, words) in words.iter().enumerate() {
        text += words;
        let mut of_place: Vec<&str> = figures.iter().filter_map(|of| of.get(at).copied()).collect();
        of_place.sort_by(|a, b| size(a).total_cmp(&size(b)));
        match of_place.as_slice() {
            [least, .., most] if least != most => text += &format!("{least}–{most}"),
            [first, ..] => text += first,
            [] => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(gate: &str, validity: &'static str, evidence: &str) -> Finding {
        Finding {
            gate: gate.to_owned(),
            validity,
            evidence: evidence.to_owned(),
            threshold: None,
            advice: None,
            processes: Vec::new(),
        }
    }

    fn texts(findings: &[Finding]) -> Vec<(String, usize)> {
        let found = by_cause(findings.iter().map(|finding| ("01A", finding)));
        found.into_iter().map(|group| (group.evidence, group.trials.len())).collect()
    }

    #[test]
    fn findings_that_differ_in_figures_are_one_group_with_their_ranges() {
        let used = |share: &str, cost: &str| {
            finding("foreign-cpu", "suspect", &format!("others used {share}% of 2 CPUs, {cost}% of latency."))
        };
        let found = texts(&[used("46", "9.5"), used("10", "12"), used("8.3", "1,000")]);
        assert_eq!(found, [("others used 8.3–46% of 2 CPUs, 9.5–1,000% of latency.".to_owned(), 3)]);
    }

    #[test]
    fn processes_that_differ_do_not_make_other_groups() {
        let used = |share: &str, processes: &[(&str, f64)]| {
            let share_of = |(name, share): &(&str, f64)| {
                let name = Some((*name).to_owned()).filter(|name| name != "others");
                ProcessShare { name, share: *share }
            };
            let processes: Vec<ProcessShare> = processes.iter().map(share_of).collect();
            let words = busiest_in_words(&processes).map_or_else(String::new, |words| format!("; {words}"));
            let found = finding("foreign-cpu", "suspect", &format!("others used {share}%{words}"));
            Finding { processes, ..found }
        };
        let one = used("46", &[("cc1", 0.4), ("7z", 0.06)]);
        assert_eq!(
            texts(std::slice::from_ref(&one)),
            [("others used 46%; busiest: cc1 40%, 7z 6.0% of the CPU".to_owned(), 1)]
        );
        let another = used("20", &[("7z", 0.12), ("cargo", 0.05), ("others", 0.03)]);
        let expected =
            "others used 9–46%; busiest: cc1 20%, 7z 9.0%, cargo 2.5%, others 1.5% of the CPU on average";
        // One of an older bundle, which names none.
        assert_eq!(texts(&[one, another, used("9", &[])]), [(expected.to_owned(), 3)]);
    }

    #[test]
    fn other_words_another_gate_or_validity_are_other_groups_the_worst_first() {
        let found = texts(&[
            finding("swap", "valid", "4 pages"),
            finding("swap", "suspect", "4 pages"),
            finding("trend", "suspect", "4 pages"),
            finding("trend", "suspect", "9 pages"),
            finding("trend", "suspect", "unknown"),
            finding("load-failed", "invalid", "signal 9"),
        ]);
        let texts: Vec<(&str, usize)> = found.iter().map(|(text, n)| (text.as_str(), *n)).collect();
        assert_eq!(
            texts,
            [("signal 9", 1), ("4–9 pages", 2), ("4 pages", 1), ("unknown", 1), ("4 pages", 1)]
        );
    }
}
