//! The text after the options of `--help`: lists of examples and variables whose lines fit 80 columns, so that no command is
//! broken where it can't be copied.

use clap::Command;
use plaintext::wrap;

/// Columns that a list fits.
const WIDTH: usize = 80;
/// Indentation of what is listed, and below it of its description.
const INDENT: &str = "  ";
const BELOW: &str = "      ";

/// A command, and all below it, with lists that fit.
pub(crate) fn fitted(command: Command) -> Command {
    let text = command.get_after_help().map(|text| fitted_text(&text.to_string()));
    let command = match text {
        Some(text) => command.after_help(text),
        None => command,
    };
    command.mut_subcommands(fitted)
}

/// Text whose paragraphs are lists or sentences.
fn fitted_text(text: &str) -> String {
    text.split("\n\n").map(fitted_paragraph).collect::<Vec<_>>().join("\n\n")
}

fn fitted_paragraph(paragraph: &str) -> String {
    let is_list = paragraph.lines().any(|line| line.starts_with(INDENT));
    let is_wide = paragraph.lines().any(|line| line.chars().count() > WIDTH);
    match (is_list, is_wide) {
        (true, true) => below_each_other(paragraph),
        (true, false) => paragraph.to_owned(),
        // clap wraps sentences; line ends of the source would be in the middle.
        (false, _) => paragraph.replace('\n', " "),
    }
}

/// A list whose descriptions are below what they describe instead of next to it.
fn below_each_other(list: &str) -> String {
    let mut lines = Vec::new();
    let mut description = String::new();
    for line in list.lines() {
        let continues = line.strip_prefix(BELOW).filter(|_| !lines.is_empty());
        if let Some(rest) = continues {
            description = format!("{description} {}", rest.trim());
            continue;
        }
        lines.extend(described(&std::mem::take(&mut description)));
        match line.strip_prefix(INDENT) {
            None => lines.push(line.to_owned()),
            Some(item) => {
                let (item, text) = item.split_once("  ").unwrap_or((item, ""));
                lines.extend(command_lines(item));
                text.trim().clone_into(&mut description);
            }
        }
    }
    lines.extend(described(&description));
    lines.join("\n")
}

fn described(text: &str) -> Vec<String> {
    match text.trim() {
        "" => Vec::new(),
        text => wrap(&format!("{BELOW}{text}"), WIDTH).lines().map(str::to_owned).collect(),
    }
}

/// A command of the shell on lines that continue each other.
fn command_lines(command: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = INDENT.to_owned();
    let mut parts = parts(command).into_iter().peekable();
    while let Some(part) = parts.next() {
        let end = if parts.peek().is_some() { " \\".len() } else { 0 };
        let is_begun = !line.trim().is_empty();
        if is_begun && line.chars().count() + 1 + part.chars().count() + end > WIDTH {
            lines.push(format!("{line} \\"));
            line = format!("{BELOW}{part}");
        } else {
            line = if is_begun { format!("{line} {part}") } else { line + &part };
        }
    }
    lines.push(line);
    lines
}

/// The parts of a command that stay on a line: those between `|` and `&&` or, if one is too long, its words, each option with
/// its value.
fn parts(command: &str) -> Vec<String> {
    let mut commands: Vec<Vec<&str>> = vec![Vec::new()];
    for word in words(command) {
        match commands.last_mut() {
            Some(last) if !["|", "&&"].contains(&word) => last.push(word),
            _ => commands.push(vec![word]),
        }
    }
    let fits = |line: &String| BELOW.len() + line.chars().count() + " \\".len() <= WIDTH;
    let parts = commands.into_iter().flat_map(|words| match words.join(" ") {
        line if fits(&line) => vec![line],
        _ => with_values(&words),
    });
    parts.collect()
}

fn with_values(words: &[&str]) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut takes_next = false;
    for word in words {
        let is_option = word.starts_with('-');
        match parts.last_mut().filter(|_| takes_next && !is_option) {
            Some(last) => *last += &format!(" {word}"),
            None => parts.push((*word).to_owned()),
        }
        takes_next = is_option && !word.contains('=');
    }
    parts
}

/// Splits at spaces that are not quoted.
fn words(command: &str) -> Vec<&str> {
    let mut quote = None;
    let is_end = |char: char| {
        match quote {
            Some(open) if open == char => quote = None,
            None if ['\'', '"'].contains(&char) => quote = Some(char),
            _ => {}
        }
        quote.is_none() && char == ' '
    };
    command.split(is_end).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::commands::Cli;

    fn all(command: &Command, found: &mut Vec<(String, String)>) {
        found.extend(command.get_after_help().map(|text| (command.get_name().to_owned(), text.to_string())));
        command.get_subcommands().for_each(|below| all(below, found));
    }

    #[test]
    fn lists_of_every_command_fit() {
        let mut texts = Vec::new();
        all(&fitted(Cli::command()), &mut texts);
        assert!(texts.len() > 40, "{}", texts.len());
        for (command, text) in &texts {
            for line in text.lines().filter(|line| line.starts_with(INDENT)) {
                assert!(line.chars().count() <= WIDTH, "{command}: {line}");
            }
        }
    }

    #[test]
    fn only_lists_that_do_not_fit_have_descriptions_below() {
        let narrow = "Examples:\n  pgdyno show        the latest run\n  pgdyno show --run 01  one run";
        assert_eq!(fitted_text(narrow), narrow);
        let wide = "Examples:\n  pgdyno ab 17 18        two versions, with pgbench's tpcb-like at scale 10, until one of \
                    them is known\n  pgdyno ab ./base ./patched --fail 'tps < -5%' --undecided pass --max-time 15min -c 4\n\
                    \x20                        in CI\n  pgdyno power --campaign versions --format json | jq '.noises[] | {of, noise, \
                    effects}'\n\nExit codes: 0 decided,\n1 error";
        assert_eq!(
            fitted_text(wide),
            "Examples:\n  pgdyno ab 17 18\n      two versions, with pgbench's tpcb-like at scale 10, until one of \
             them is\n        known\n  pgdyno ab ./base ./patched --fail 'tps < -5%' --undecided pass \\\n      \
             --max-time 15min -c 4\n      in CI\n  pgdyno power --campaign versions --format json \\\n      | jq '.noises[] | {of, \
             noise, effects}'\n\nExit codes: 0 decided, 1 error"
        );
    }
}
