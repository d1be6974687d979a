//! The tutorials do what they show: each command of a page runs on real servers, in order and in one shell, and its output
//! has the lines of the page.
//!
//! A block `console` has commands (`$ `) with their output, in which a line `…` stands for any lines and `…` in a line for any
//! text. Figures, verdicts and the states of `doctor` depend on the machine: there, any others match. A command goes on after
//! a `\` at the end of its line. It must succeed, unless the next one is `echo $?`. Another block whose first line is a
//! comment with a file's name (`# upgrade.toml`) is that file.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests fail by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::LazyLock;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use regex::{NoExpand, Regex};
use skip::skip;
use tempfile::TempDir;

/// Begins the line that the shell prints after each command, with its exit code.
const END: &str = "=== end of the command: ";

#[derive(Debug, PartialEq)]
enum Step {
    File { name: String, content: String },
    Run { command: String, shown: Vec<String> },
}

/// The steps of a page, in order.
fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut block: Option<(bool, String)> = None;
    for event in Parser::new(page) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                block = Some((&*language == "console", String::new()));
            }
            Event::Text(text) => {
                if let Some((_, content)) = &mut block {
                    *content += &text;
                }
            }
            Event::End(TagEnd::CodeBlock) => match block.take() {
                Some((true, content)) => add_commands(&content, &mut steps),
                Some((false, content)) => steps.extend(file(content)),
                None => {}
            },
            _ => {}
        }
    }
    steps
}

fn add_commands(block: &str, steps: &mut Vec<Step>) {
    for line in block.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push(Step::Run { command: command.to_owned(), shown: Vec::new() }),
            (None, Some(Step::Run { command, shown })) if command.ends_with('\\') && shown.is_empty() => {
                *command = format!("{command}\n{line}");
            }
            (None, Some(Step::Run { shown, .. })) => shown.push(line.to_owned()),
            (None, _) => panic!("a console block begins without a command: {line}"),
        }
    }
}

/// The file that a block shows, if its first line names one.
fn file(content: String) -> Option<Step> {
    let first = content.lines().next()?;
    let name = first.strip_prefix("# ").or_else(|| first.strip_prefix("-- "))?.to_owned();
    let is_name = name.contains('.') && !name.contains(['/', ' ']);
    is_name.then_some(Step::File { name, content })
}

/// A shell in a directory of its own, with the built pgdyno.
struct Shell {
    directory: TempDir,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Shell {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_pgdyno")).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell.current_dir(directory.path()).env("PATH", format!("{}:{path}", program.display()));
        // Tests run at the same time, and must not wait for each other.
        shell.env("PGDYNO_QUEUE", directory.path()).env_remove("PGDYNO_STORE");
        let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { directory, child, input, output }
    }

    /// Runs a command to its end: exit code and output.
    fn run(&mut self, command: &str) -> (i32, String) {
        // The next command finds the exit code in `$?`.
        writeln!(
            self.input,
            "{{ {command}\n}} 2>&1 </dev/null\ncode=$?; printf '\\n{END}%s\\n' $code; (exit $code)"
        )
        .unwrap();
        let mut output = String::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "{command} ended the shell: {output}");
            if let Some(code) = line.strip_prefix(END) {
                output.pop();
                return (code.trim().parse().unwrap(), output);
            }
            output += &line;
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line without what depends on the machine: figures, verdicts, classes, states, ids and the widths of columns.
fn without_figures(line: &str) -> String {
    static FIGURE: LazyLock<Regex> = LazyLock::new(|| {
        let verdict = "REGRESSION|IMPROVEMENT|EQUIVALENT|INCONCLUSIVE|INSUFFICIENT|NO VERDICT";
        let class = "(?:UNSTABLE|STABLE|NOISY)(?:-WIDE|-MODES)?";
        let state = "^(?:ok|warn|bad|unknown)\\b";
        let id = "\\b[0-9A-HJKMNP-TV-Z]{26}\\b";
        let figure = "[+-]?[0-9][0-9.,:]*[†‡]?(?: ?%)?|–";
        Regex::new(&format!("{verdict}|{class}|{state}|{id}|{figure}")).unwrap()
    });
    static INTERVAL: LazyLock<Regex> = LazyLock::new(|| Regex::new("# to #").unwrap());
    let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let masked = FIGURE.replace_all(&words, NoExpand("#"));
    INTERVAL.replace_all(&masked, NoExpand("#")).into_owned()
}

/// Whether a line is as shown, where `…` stands for any text.
fn is_like(line: &str, shown: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

/// The first of the shown lines that the output lacks, if it lacks any.
fn missing(output: &str, shown: &[String], has_figures: bool) -> Option<String> {
    let comparable = |line: &str| match has_figures {
        true => without_figures(line),
        false => line.trim_end().to_owned(),
    };
    let lines: Vec<String> = output.lines().map(comparable).collect();
    let mut next = 0;
    for group in shown.split(|line| line == "…").filter(|group| !group.is_empty()) {
        let wanted: Vec<String> = group.iter().map(|line| comparable(line)).collect();
        let is_here = |at: &usize| {
            let here = &lines[*at..*at + wanted.len()];
            here.iter().zip(&wanted).all(|(line, shown)| is_like(line, shown))
        };
        match (next..(lines.len() + 1).saturating_sub(wanted.len())).find(is_here) {
            Some(at) => next = at + wanted.len(),
            None => return Some(group.join("\n")),
        }
    }
    None
}

/// Does what a page says, and returns how many commands it ran, or what was not as shown.
fn follow(page: &str, shell: &mut Shell) -> Result<usize, String> {
    let steps = steps(page);
    let mut ran = 0;
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::File { name, content } => fs::write(shell.directory.path().join(name), content).unwrap(),
            Step::Run { command, shown } => {
                let (code, output) = shell.run(command);
                ran += 1;
                let next = steps.get(number + 1);
                let is_shown =
                    matches!(next, Some(Step::Run { command, .. }) if command.as_str() == "echo $?");
                if code != 0 && !is_shown {
                    return Err(format!("{command} ended with {code}:\n{output}"));
                }
                if let Some(lines) = missing(&output, shown, command.starts_with("pgdyno ")) {
                    return Err(format!(
                        "{command} does not print, after what precedes it:\n{lines}\nbut:\n{output}"
                    ));
                }
            }
        }
    }
    Ok(ran)
}

fn tutorials() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorials")
}

/// Follows a tutorial with these files.
fn tutorial(name: &str, files: &[&Path]) {
    let page = fs::read_to_string(tutorials().join(name)).unwrap();
    let mut shell = Shell::new();
    for file in files {
        std::os::unix::fs::symlink(file, shell.directory.path().join(file.file_name().unwrap())).unwrap();
    }
    let ran = follow(&page, &mut shell).unwrap_or_else(|difference| panic!("{name}: {difference}"));
    let has = page.lines().filter(|line| line.starts_with("$ ")).count();
    assert_eq!(ran, has, "{name}");
    assert!(ran >= 4, "{name}: {ran} commands");
    println!("{name}: {ran} commands");
}

#[test]
fn upgrade() {
    tutorial("upgrade.md", &[]);
}

#[test]
fn commit() {
    tutorial("commit.md", &[]);
}

#[test]
fn machine() {
    tutorial("machine.md", &[]);
}

/// Builds the source as the tests of the crate `server` do, and with a patch.
#[test]
fn patch() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-sources/postgresql.tar.bz2");
    if !source.exists() {
        return skip("there is no source of PostgreSQL: run setup/test-sources target/test-sources");
    }
    // These tests replace the installation.
    let cache = host::Cache::open().unwrap();
    let _alone = host::Lock::exclusive(&cache.lock_file("test-build-configure")).unwrap();
    tutorial("patch.md", &[&fs::canonicalize(source).unwrap()]);
}

#[test]
fn every_tutorial_is_followed() {
    for entry in fs::read_dir(tutorials()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(include_str!("tutorials.rs").contains(&format!("tutorial(\"{name}\", ")), "{name}");
    }
}

fn followed(page: &str) -> Result<usize, String> {
    follow(page, &mut Shell::new())
}

#[test]
fn a_page_is_run_in_one_shell_with_its_files() {
    let page =
        "```toml\n# a.toml\nx = 1\n```\n\n```console\n$ name=a\n$ cat $name.toml\n# a.toml\nx = 1\n```\n";
    assert_eq!(followed(page), Ok(2));
    let page = "```console\n$ printf \\\n  'one\\n2\\nthree\\nfour\\n'\none\n…\nt…e\nfour\n$ false\n$ echo $?\n1\n```\n";
    assert_eq!(followed(page), Ok(3));
}

#[test]
fn a_page_that_shows_something_else_is_found() {
    for (commands, difference) in [
        ("$ false\n$ true\n", "false ended with 1"),
        ("$ echo one\ntwo\n", "echo one does not print"),
        ("$ printf 'a\\nb\\n'\nb\n…\na\n", "does not print"),
        ("$ printf 'a\\nb\\nc\\n'\na\nc\n", "does not print"),
        ("$ (exit 3)\n$ echo $?\n4\n", "echo $? does not print"),
        ("$ pgdyno --version\npgdino 0.1.0\n", "pgdyno --version does not print"),
        ("$ pgdyno no-such-command\n", "pgdyno no-such-command ended with 2"),
    ] {
        let found = followed(&format!("```console\n{commands}```\n")).unwrap_err();
        assert!(found.contains(difference), "{commands}: {found}");
    }
}

#[test]
fn figures_and_verdicts_vary() {
    let same = |one: &str, other: &str| without_figures(one) == without_figures(other);
    assert!(same("tps   6  -65.0%  -86.2% to -11.4%  REGRESSION", "tps  12  +5%  –  INSUFFICIENT"));
    assert!(same("A  run 01M8CEQTD8KDSQS2A3PS529C58 of 6", "A  run 01KAK3W8XQ5T2M9HC4ZP7VRB0E of 12"));
    assert!(same("  ok       steal    0.0% of the time", "  bad      steal    2.8% of the time"));
    assert!(!same("tps  6  -65.0%", "latency  6  -65.0%"));
}
