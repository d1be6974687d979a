//! The processes that used CPU time, by name.

use serde::Serialize;

/// CPU time that the processes of a name used.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessShare {
    /// Their name; none for all others together, named or not known.
    pub name: Option<String>,
    /// Their share of the machine's CPU time, 0 to 1.
    pub share: f64,
}

/// Number of names that a sentence has.
const MAX_NAMES: usize = 3;
/// Share from which a sentence mentions the others.
const MIN_SHARE: f64 = 0.005;

/// `busiest: cc1 38%, cargo 5%, others 2.1% of the CPU`; none without names.
pub fn busiest_in_words(processes: &[ProcessShare]) -> Option<String> {
    let named: Vec<(&str, f64)> =
        processes.iter().filter_map(|process| Some((process.name.as_deref()?, process.share))).collect();
    let shown = &named[..named.len().min(MAX_NAMES)];
    let all: f64 = processes.iter().map(|process| process.share).sum();
    let others = all - shown.iter().map(|(_, share)| share).sum::<f64>();
    let others = (others >= MIN_SHARE).then_some(("others", others));
    let words = |(name, share): (&str, f64)| {
        let percent = share * 100.0;
        if percent >= 10.0 { format!("{name} {percent:.0}%") } else { format!("{name} {percent:.1}%") }
    };
    let all: Vec<String> = shown.iter().copied().chain(others).map(words).collect();
    (!shown.is_empty()).then(|| format!("busiest: {} of the CPU", all.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(name: &str, share: f64) -> ProcessShare {
        ProcessShare { name: Some(name.to_owned()), share }
    }

    #[test]
    fn the_busiest_are_named_and_the_others_summed() {
        let mut processes = vec![process("cc1", 0.384)];
        assert_eq!(busiest_in_words(&processes).as_deref(), Some("busiest: cc1 38% of the CPU"));
        processes.extend([process("cargo", 0.05), process("ld", 0.03), process("as", 0.02)]);
        let others = ProcessShare { name: None, share: 0.011 };
        processes.push(others.clone());
        let expected = "busiest: cc1 38%, cargo 5.0%, ld 3.0%, others 3.1% of the CPU";
        assert_eq!(busiest_in_words(&processes).as_deref(), Some(expected));
        assert_eq!(busiest_in_words(&[others]), None);
        assert_eq!(busiest_in_words(&[]), None);
    }
}
