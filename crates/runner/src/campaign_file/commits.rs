//! Ranges of commits as levels of the factor `server`: `{ repo = "./postgres", commits = "REL_18_0..master", every = 10 }`.
//!
//! They are replaced by the commits in the campaign's text, so that a resumed run has the same ones.

use std::ops::Range;
use std::path::Path;

use model::spec::{CommitLevels, SpecError};
use toml_edit::{Document, InlineTable, Item, TableLike, Value};

use super::toml_text::{key, string, strings};

/// Name of the servers that are built from a repository, as campaigns can have it.
pub fn repository_name(repository: &Path) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name = repository.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().map(|c| if is_allowed(c) { c } else { '-' }).collect();
    if name.is_empty() { "source".to_owned() } else { name }
}

/// A range of commits in a campaign.
struct CommitRange {
    levels: CommitLevels,
    /// Its place in the text.
    at: Range<usize>,
    /// Whether it is the factor's value, instead of one of its levels.
    is_alone: bool,
}

impl CommitRange {
    fn refuse(&self, message: String, help: Option<&str>) -> SpecError {
        SpecError { message, at: Some(self.at.clone()), help: help.map(str::to_owned) }
    }
}

/// The campaign's text with commits instead of ranges of commits; paths are relative to a directory. A repository that has no
/// table `[servers.NAME]` yet gets one.
///
/// # Errors
/// A range is malformed, or its commits can't be listed.
pub(super) fn with_commits(text: String, directory: &Path) -> Result<String, SpecError> {
    // The parser of campaigns reports malformed TOML with its place.
    let Ok(document) = Document::parse(text.as_str()) else { return Ok(text) };
    let ranges = ranges(&document, &text)?;
    let (mut replaced, mut tables) = (text.clone(), String::new());
    // From the end, so that the places before remain.
    for range in ranges.iter().rev() {
        let (name, table) = server(range, &document, directory)?;
        if !tables.contains(&table) {
            tables += &table;
        }
        let commits = commits(range, directory)?;
        let levels: Vec<String> = commits.iter().map(|commit| format!("{name}@{commit}")).collect();
        let levels = strings(levels.iter().map(String::as_str));
        let levels = if range.is_alone { &levels } else { levels.trim_matches(['[', ']']) };
        replaced.replace_range(range.at.clone(), levels);
    }
    Ok(replaced + &tables)
}

/// Checks that a campaign's text has no ranges of commits: that of a [`super::CampaignFile`] has the commits in their place.
///
/// # Errors
/// It has one, or a malformed one.
pub(super) fn check_listed(text: &str) -> Result<(), SpecError> {
    let Ok(document) = Document::parse(text) else { return Ok(()) };
    match ranges(&document, text)?.first() {
        None => Ok(()),
        Some(range) => {
            let repository = range.levels.repo.display();
            let message =
                format!("the commits of \"{repository}\" were not listed where the campaign is from");
            Err(range.refuse(
                message,
                Some("name the commits, or queue the campaign by `pgdyno run --fleet`, which lists them"),
            ))
        }
    }
}

/// The ranges of commits, in the order of the text.
fn ranges(document: &Document<&str>, text: &str) -> Result<Vec<CommitRange>, SpecError> {
    let matrices = document.get("matrix").and_then(Item::as_array_of_tables).into_iter().flatten();
    let factors = document.get("factors").and_then(Item::as_table_like).into_iter();
    let tables = factors.chain(matrices.map(|table| table as &dyn TableLike));
    let range = |table: &InlineTable, is_alone: bool| {
        let at = table.span().unwrap_or_default();
        let levels = CommitLevels::parse(&text[at.clone()]);
        let levels = levels.map_err(|error| SpecError { at: Some(at.clone()), ..error })?;
        Ok(CommitRange { levels, at, is_alone })
    };
    let mut found = Vec::new();
    for value in tables.filter_map(|table| table.get("server")?.as_value()) {
        match value {
            Value::InlineTable(table) => found.push(range(table, true)?),
            Value::Array(levels) => {
                for table in levels.iter().filter_map(Value::as_inline_table) {
                    found.push(range(table, false)?);
                }
            }
            _ => {}
        }
    }
    found.sort_by_key(|range| range.at.start);
    Ok(found)
}

/// Name of a range's servers, and the text of their table, if the campaign has none.
fn server(
    range: &CommitRange,
    document: &Document<&str>,
    directory: &Path,
) -> Result<(String, String), SpecError> {
    let given = &range.levels.repo;
    let place = directory.join(given).canonicalize().map_err(|error| {
        let message = format!("the repository \"{}\" can't be read: {error}", given.display());
        range.refuse(message, Some("a relative path is relative to the campaign's file"))
    })?;
    let name = repository_name(&place);
    let tables = document.get("servers").and_then(Item::as_table_like);
    let Some(table) = tables.and_then(|servers| servers.get(&name)) else {
        let source = string(&given.to_string_lossy());
        return Ok((name.clone(), format!("\n[servers.{}]\nsource = {source}\n", key(&name))));
    };
    let source = table.as_table_like().and_then(|server| server.get("source")?.as_str());
    if source.and_then(|of| directory.join(of).canonicalize().ok()) == Some(place) {
        return Ok((name, String::new()));
    }
    let message = format!("[servers.{name}] is another server than the commits of \"{}\"", given.display());
    Err(range.refuse(message, Some("give that table another name, or this repository as its `source`")))
}

/// The commits of a range: each of so many, from the older end on, and the newer end.
fn commits(range: &CommitRange, directory: &Path) -> Result<Vec<String>, SpecError> {
    let (older, newer) = range.levels.ends().unwrap_or_default();
    let found = server::commits_between(&directory.join(&range.levels.repo), older, newer);
    let mut commits = found.map_err(|error| range.refuse(error.to_string(), None))?;
    commits.retain(|commit| commit.can_change_programs);
    let (every, last) = (range.levels.every.map_or(1, |every| every.get() as usize), commits.len() - 1);
    let chosen = commits.into_iter().enumerate().filter(|(at, _)| at % every == 0 || *at == last);
    Ok(chosen.map(|(_, commit)| commit.id).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use model::server::commit_of;

    use super::super::CampaignFile;
    use super::*;

    fn git(repository: &Path, arguments: &[&str]) -> String {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"];
        let output = Command::new("git").arg("-C").arg(repository).args(identity).args(arguments).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// A repository of commits that change a source file each, and one of a text between them.
    fn repository(directory: &Path) -> Vec<String> {
        let place = directory.join("postgres");
        fs::create_dir_all(place.join("src")).unwrap();
        git(&place, &["init", "-q", "-b", "main"]);
        let commits = (0..8).filter_map(|number| {
            let file = if number == 3 { "README" } else { "src/a.c" };
            fs::write(place.join(file), number.to_string()).unwrap();
            git(&place, &["add", "-A"]);
            git(&place, &["commit", "-q", "-m", "c"]);
            (number != 3).then(|| git(&place, &["rev-parse", "HEAD"])[..12].to_owned())
        });
        commits.collect()
    }

    fn campaign(servers: &str) -> String {
        format!("name = 'n'\n[factors]\nserver = {servers}\nworkload = ['select-only']\nclients = [1]\n")
    }

    #[test]
    fn a_range_becomes_its_commits_in_the_text_which_is_the_same_afterwards() {
        let directory = tempfile::tempdir().unwrap();
        let commits = repository(directory.path());
        let path = directory.path().join("n.toml");
        let levels = |servers: &str| {
            let file = CampaignFile::parse(&path, campaign(servers), None).unwrap();
            assert_eq!(with_commits(file.text.clone(), directory.path()).unwrap(), file.text);
            let again = CampaignFile::parse(&path, file.text.clone(), Some(file.plan.run.basis())).unwrap();
            assert_eq!(again.plan, file.plan);
            file.plan.cells.iter().map(|cell| cell.server.clone()).collect::<Vec<String>>()
        };
        let named =
            |of: &[usize]| of.iter().map(|at| format!("postgres@{}", commits[*at])).collect::<Vec<_>>();
        let range = "repo = 'postgres', commits = 'main~7..main'";
        assert_eq!(levels(&format!("{{ {range} }}")), named(&[0, 1, 2, 3, 4, 5, 6]));
        assert_eq!(levels(&format!("{{ {range}, every = 4 }}")), named(&[0, 4, 6]));
        let both = levels(&format!("[\n  '18', # a release\n  {{ {range}, every = 3 }},\n]"));
        assert_eq!(both, [&["18".to_owned()][..], &named(&[0, 3, 6])].concat());
        assert!(both[1..].iter().all(|level| commit_of(level).is_some()));
    }

    #[test]
    fn a_table_of_the_repository_keeps_its_options() {
        let directory = tempfile::tempdir().unwrap();
        repository(directory.path());
        let range = "{ repo = './postgres', commits = 'main~1..main' }";
        let table = "[servers.postgres]\nsource = 'postgres'\nbuild = { options = ['--with-lz4'] }\n";
        let text = campaign(range) + table;
        let file = CampaignFile::parse(&directory.path().join("n.toml"), text, None).unwrap();
        assert!(file.text.ends_with(table), "{}", file.text);
    }

    #[test]
    fn wrong_ranges_are_refused_with_their_place() {
        let directory = tempfile::tempdir().unwrap();
        repository(directory.path());
        fs::create_dir(directory.path().join("other")).unwrap();
        let other = "\n[servers.postgres]\nversion = '18'\n";
        for (servers, rest, message) in [
            ("{ repo = 'postgres' }", "", "missing field `commits`"),
            ("{ commits = 'a..b' }", "", "missing field `repo`"),
            ("{ repo = 'postgres', commits = 'main' }", "", "\"main\" is not a range of commits"),
            ("{ repo = 'postgres', commits = 'a...b' }", "", "\"a...b\" is not a range of commits"),
            ("{ repo = 'postgres', commits = 'main~1..main', every = 0 }", "", "invalid value: integer `0`"),
            ("{ repo = 'postgres', commits = 'main~1..main', step = 2 }", "", "unknown field `step`"),
            ("{ repo = 'missing', commits = 'a..b' }", "", "\"missing\" can't be read"),
            ("['18', { repo = 'postgres', commits = 'a..main' }]", "", "there is no commit \"a\""),
            (
                "{ repo = 'postgres', commits = 'main~1..main' }",
                other,
                "is another server than the commits of",
            ),
        ] {
            let text = campaign(servers) + rest;
            let error = with_commits(text.clone(), directory.path()).unwrap_err();
            assert!(error.message.contains(message), "{servers}: {error}");
            assert!(text[error.at.unwrap()].starts_with("{ "), "{servers}");
        }
    }
}
