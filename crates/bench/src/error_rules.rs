//! Error rules: those of the command line, and the default ones.

use driver::{ErrorPolicy, OnError};

use crate::request::ErrorOptions;

/// The class of errors in the script itself, such as a misspelt table: syntax errors and access rule violations.
const SYNTAX_OR_ACCESS: &str = "42";

/// The policy for errors. The default rules come first; of several for the same state the last one counts.
pub(crate) fn error_policy(options: &ErrorOptions) -> ErrorPolicy {
    let rule = |state: &str, action| (state.to_owned(), action);
    let mut rules = vec![
        rule("40001", OnError::Retry),
        rule("40P01", OnError::Retry),
        rule(SYNTAX_OR_ACCESS, OnError::Abort),
    ];
    let mut otherwise = OnError::Count;
    let (for_all, for_some): (Vec<_>, Vec<_>) =
        options.rules.iter().partition(|rule| rule.sqlstate.is_empty());
    for rule in for_all {
        otherwise = rule.action;
        // A rule for all other errors replaces the default rule that aborts clients.
        rules.retain(|rule| *rule != (SYNTAX_OR_ACCESS.to_owned(), OnError::Abort));
    }
    for rule in for_some {
        // A rule for a class replaces the default rules for states in it.
        rules.retain(|(state, _)| {
            !state.starts_with(&rule.sqlstate) || options.rules.iter().any(|r| r.sqlstate == *state)
        });
        rules.push((rule.sqlstate.clone(), rule.action));
    }
    ErrorPolicy {
        rules,
        otherwise,
        max_tries: (options.max_tries > 0).then_some(options.max_tries),
        back_off: options.back_off,
        reconnect: options.reconnect,
        exit_on_abort: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(rules: &[&str]) -> ErrorPolicy {
        let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        error_policy(&ErrorOptions { rules, max_tries: 10, ..ErrorOptions::default() })
    }

    #[test]
    fn rules_of_the_user_win_over_default_ones() {
        let default = policy(&[]);
        let action = |policy: &ErrorPolicy| ["40001", "42P01", "23505"].map(|state| policy.action(state));
        assert_eq!(action(&default), [OnError::Retry, OnError::Abort, OnError::Count]);
        assert_eq!(action(&policy(&["40001=count"])), [OnError::Count, OnError::Abort, OnError::Count]);
        assert_eq!(action(&policy(&["40=abort"])), [OnError::Abort, OnError::Abort, OnError::Count]);
        assert_eq!(
            action(&policy(&["40=abort", "40001=count"])),
            [OnError::Count, OnError::Abort, OnError::Count]
        );
        assert_eq!(action(&policy(&["*=count"])), [OnError::Retry, OnError::Count, OnError::Count]);
        assert_eq!(
            action(&policy(&["*=abort", "23=reconnect"])),
            [OnError::Retry, OnError::Abort, OnError::Reconnect]
        );
    }
}
