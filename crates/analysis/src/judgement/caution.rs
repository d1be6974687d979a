//! What has to be known of the trials next to a verdict on them.

use model::record::Status;

use super::Runs;

/// A fact about the trials of one side that may explain a verdict, or contradict it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caution {
    /// Index of the side: 0 is the baseline, 1 the variant.
    pub side: usize,
    /// The fact: `server-exited in 2 of 7 trials`.
    pub text: String,
}

/// Gates that make a trial invalid by what the server did under the load.
const OF_SERVER: [&str; 5] =
    ["server-exited", "server-restarted", "out-of-memory", "client-died", "transactions-failed"];

/// Cautions about two sides: trials that the server ended, those of both, although no figure has them; a schedule that
/// was not kept; and a gate that made at least half of one side's trials suspect and found nothing in the other's, which
/// differ in that, too.
pub(super) fn cautions(sides: [&Runs; 2]) -> Vec<Caution> {
    let mut cautions = Vec::new();
    for (side, runs) in sides.into_iter().enumerate() {
        let mut add = |text: String| cautions.push(Caution { side, text });
        let all = runs.trials.len() + runs.without + runs.invalid;
        for of in runs.findings.iter().filter(|of| of.status == Status::Invalid) {
            if OF_SERVER.contains(&of.gate.as_str()) {
                add(format!("{} in {} of {all} trials, which are not used", of.gate, of.trials));
            }
        }
        if runs.behind > 0 {
            add(format!("behind its schedule in {} of {} trials", runs.behind, runs.trials.len()));
        }
        let other = sides[1 - side];
        for of in runs.findings.iter().filter(|of| of.status == Status::Suspect) {
            if runs.has_mostly(&of.gate) && !other.has_any(&of.gate) && !other.trials.is_empty() {
                let n = runs.trials.len();
                add(format!(
                    "{} in {} of {n} trials, and in none of the other side: a confound",
                    of.gate, of.trials
                ));
            }
        }
    }
    cautions
}

#[cfg(test)]
mod tests {
    use super::super::GateCount;
    use super::*;

    fn runs(trials: usize, findings: &[(&str, Status, usize)]) -> Runs {
        let count = |(gate, status, trials): &(&str, Status, usize)| GateCount {
            gate: (*gate).to_owned(),
            status: *status,
            trials: *trials,
        };
        let invalid = findings.iter().filter(|of| of.1 == Status::Invalid).map(|of| of.2).sum();
        Runs {
            trials: vec!["id".to_owned(); trials],
            findings: findings.iter().map(count).collect(),
            invalid,
            ..Runs::default()
        }
    }

    fn texts(a: &Runs, b: &Runs) -> Vec<(usize, String)> {
        cautions([a, b]).into_iter().map(|caution| (caution.side, caution.text)).collect()
    }

    #[test]
    fn crashes_and_what_one_side_alone_has_are_cautions() {
        let clean = runs(5, &[]);
        assert_eq!(texts(&clean, &clean), []);
        let crashed = runs(5, &[("server-exited", Status::Invalid, 2)]);
        let crashes = "server-exited in 2 of 7 trials, which are not used".to_owned();
        assert_eq!(texts(&clean, &crashed), [(1, crashes)]);
        let stolen = runs(5, &[("cpu-steal", Status::Suspect, 4)]);
        let confound = "cpu-steal in 4 of 5 trials, and in none of the other side: a confound".to_owned();
        assert_eq!(texts(&stolen, &clean), [(0, confound)]);
        // On both sides, or in a trial by chance, it is none.
        assert_eq!(texts(&stolen, &runs(5, &[("cpu-steal", Status::Suspect, 1)])), []);
        assert_eq!(texts(&clean, &runs(5, &[("cpu-steal", Status::Suspect, 2)])), []);
        // The same on the other side, where it did less harm.
        assert_eq!(texts(&stolen, &runs(5, &[("cpu-steal", Status::Valid, 1)])), []);
        let behind = Runs { behind: 3, ..runs(3, &[]) };
        assert_eq!(texts(&clean, &behind), [(1, "behind its schedule in 3 of 3 trials".to_owned())]);
    }
}
