//! Answers as text: what a reader decides by, above the figures.

use analysis::overview::view::{Answer, AnswerKind};
use plaintext::table::Format;
use plaintext::wrap;

use crate::chart::Terminal;

/// Answers that are shown whole; the results of the others are one sentence each.
const MAX_WHOLE: usize = 3;

/// All answers, the most important first, in lines of at most `width` columns; the first sentence is bold on a terminal.
pub(crate) fn answers(all: &[Answer], width: usize, terminal: Option<Terminal>) -> String {
    let mut out = String::new();
    for (at, answer) in all.iter().enumerate() {
        let text = wrap(&headline(answer), width);
        out += &match terminal {
            Some(terminal) if at == 0 => terminal.painted(text.trim_end(), "1") + "\n",
            _ => text,
        };
        if at >= MAX_WHOLE {
            continue;
        }
        for (label, text) in details(answer) {
            out += &wrap(&format!("  {label}: {text}"), width);
        }
        for advice in &answer.next {
            let colon = if advice.commands.is_empty() { "" } else { ":" };
            out += &wrap(&format!("  next: {}{colon}", advice.text), width);
            out.extend(advice.named().iter().map(|text| command(&format!("    {text}"), width)));
        }
    }
    out
}

/// The same as Markdown.
fn markdown(all: &[Answer]) -> String {
    let mut out = String::new();
    for (at, answer) in all.iter().enumerate() {
        out += &format!("**{}**\n\n", headline(answer));
        if at >= MAX_WHOLE {
            continue;
        }
        let details = details(answer).map(|(label, text)| format!("- {label}: {text}\n"));
        let next = answer.next.iter().map(|advice| {
            let commands: String = advice.named().iter().map(|command| format!(" `{command}`")).collect();
            format!("- next: {}{}{commands}\n", advice.text, if commands.is_empty() { "" } else { ":" })
        });
        let lines: String = details.chain(next).collect();
        out += &lines;
        if !lines.is_empty() {
            out.push('\n');
        }
    }
    out
}

/// The answers in a format for people.
pub(crate) fn in_format(all: &[Answer], format: Format, width: usize) -> String {
    match format {
        Format::Markdown => markdown(all).trim_end().to_owned() + "\n",
        _ => answers(all, width, None),
    }
}

/// The result in one sentence.
pub(crate) fn headline(Answer { kind, subject, sentence, .. }: &Answer) -> String {
    match kind {
        AnswerKind::Open => format!("No answer on {subject}: {sentence}"),
        _ => format!("{subject}: {sentence}"),
    }
}

/// What is known about it, with labels.
fn details(answer: &Answer) -> impl Iterator<Item = (&'static str, &str)> {
    let confidence = answer.confidence.iter().map(|text| ("confidence", text));
    let why = answer.why.iter().map(|text| ("why", text));
    let risks = answer.risks.iter().map(|text| ("risk", text));
    confidence.chain(why).chain(risks).map(|(label, text)| (label, text.as_str()))
}

/// A command in lines that a shell takes for one: they end between its words, not within quotes.
pub(crate) fn command(command: &str, width: usize) -> String {
    /// Stand for a space and a line break within quotes, where `wrap` would break a line.
    const SPACE: char = '\u{1}';
    const BREAK: char = '\u{2}';
    let (mut quoted, mut is_escaped) = (false, false);
    let kept = command.chars().map(|c| {
        let is_quote = c == '\'' && !is_escaped;
        is_escaped = c == '\\' && !quoted && !is_escaped;
        quoted ^= is_quote;
        match c {
            ' ' if quoted => SPACE,
            '\n' if quoted => BREAK,
            c => c,
        }
    });
    let lines = wrap(&kept.collect::<String>(), width - 2);
    let lines = lines.trim_end().replace('\n', " \\\n") + "\n";
    lines.replace(SPACE, " ").replace(BREAK, "\n")
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn lines_of_a_command_do_not_end_within_quotes() {
        let script = r"pgdyno bisect a..b --run 'make check && it'\''s here' --repo some/where";
        assert_eq!(
            command(script, 30),
            "pgdyno bisect a..b --run \\\n  'make check && it'\\''s here' \\\n  --repo some/where\n"
        );
        assert_eq!(command("x --run 'a\nb c'", 12), "x --run \\\n  'a\nb c'\n");
    }
}
