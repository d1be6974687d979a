//! Tables of commands: aligned for a terminal, Markdown for a page, CSV for a spreadsheet.
//!
//! JSON is not a table: commands that offer it serialize a versioned type of their own.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The sign for an unknown value.
pub const GAP: &str = "–";

/// Spaces between aligned columns.
pub const BETWEEN: usize = 2;

/// Output format of a command (`--format`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns.
    #[default]
    Table,
    /// A versioned JSON document.
    Json,
    /// Comma-separated values (RFC 4180), a header row first.
    Csv,
    /// A Markdown table.
    Markdown,
}

/// Rows and columns of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Heads of the columns.
    pub columns: Vec<Column>,
    /// The rows, each as long as `columns`.
    pub rows: Vec<Vec<String>>,
}

/// Head and alignment of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The head.
    pub name: String,
    /// Whether the column is right-aligned.
    pub numeric: bool,
}

impl Table {
    /// A table without rows; a column whose name starts with `#` holds numbers (the `#` is not shown).
    pub fn new<S: AsRef<str>>(columns: impl IntoIterator<Item = S>) -> Self {
        let column = |name: S| match name.as_ref().strip_prefix('#') {
            Some(name) => Column { name: name.to_owned(), numeric: true },
            None => Column { name: name.as_ref().to_owned(), numeric: false },
        };
        Self { columns: columns.into_iter().map(column).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Renders the table as text that ends in a line break. `Json` gives the aligned table.
    pub fn render(&self, format: Format) -> String {
        match format {
            Format::Table | Format::Json => self.aligned(),
            Format::Markdown => self.markdown(),
            Format::Csv => self.csv(),
        }
    }

    /// Each row as texts by column name.
    pub fn objects(&self) -> Vec<BTreeMap<&str, &str>> {
        let names = || self.columns.iter().map(|column| column.name.as_str());
        self.rows.iter().map(|row| names().zip(row.iter().map(String::as_str)).collect()).collect()
    }

    /// Width of the aligned table, in characters.
    pub fn width(&self) -> usize {
        self.widths().iter().sum::<usize>() + self.columns.len().saturating_sub(1) * BETWEEN
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|column| width(&column.name)).collect();
        for row in &self.rows {
            for (widest, text) in widths.iter_mut().zip(row) {
                *widest = (*widest).max(width(text));
            }
        }
        widths
    }

    fn aligned(&self) -> String {
        let widths = self.widths();
        let heads: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        let mut out = String::new();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let fields: Vec<String> = self
                .columns
                .iter()
                .zip(&widths)
                .zip(row)
                .map(|((column, &width), text)| pad(text, width, column.numeric))
                .collect();
            out.push_str(fields.join(&" ".repeat(BETWEEN)).trim_end());
            out.push('\n');
        }
        out
    }

    fn markdown(&self) -> String {
        let escape = |text: &String| text.replace('|', "\\|");
        let mut out = String::new();
        let heads: Vec<String> = self.columns.iter().map(|column| escape(&column.name)).collect();
        let _ = writeln!(out, "| {} |", heads.join(" | "));
        let rules: Vec<&str> = self.columns.iter().map(|c| if c.numeric { "---:" } else { "---" }).collect();
        let _ = writeln!(out, "| {} |", rules.join(" | "));
        for row in &self.rows {
            let fields: Vec<String> = row.iter().map(escape).collect();
            let _ = writeln!(out, "| {} |", fields.join(" | "));
        }
        out
    }

    fn csv(&self) -> String {
        let quote = |text: &str| {
            if text.contains([',', '"', '\n', '\r']) {
                format!("\"{}\"", text.replace('"', "\"\""))
            } else {
                text.to_owned()
            }
        };
        let mut out = String::new();
        let heads: Vec<String> = self.columns.iter().map(|column| quote(&column.name)).collect();
        let _ = writeln!(out, "{}", heads.join(","));
        for row in &self.rows {
            let fields: Vec<String> = row.iter().map(|text| quote(text)).collect();
            let _ = writeln!(out, "{}", fields.join(","));
        }
        out
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn pad(text: &str, to: usize, right: bool) -> String {
    let gap = " ".repeat(to.saturating_sub(width(text)));
    if right { format!("{gap}{text}") } else { format!("{text}{gap}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(["name", "#tps"]);
        table.push(vec!["a|b".to_owned(), "1,234".to_owned()]);
        table.push(vec!["é".to_owned(), "7".to_owned()]);
        table
    }

    #[test]
    fn numbers_are_aligned_to_the_right() {
        assert_eq!(sample().render(Format::Table), "name    tps\na|b   1,234\né         7\n");
    }

    #[test]
    fn characters_with_a_meaning_in_the_format_are_escaped() {
        assert_eq!(sample().render(Format::Csv), "name,tps\na|b,\"1,234\"\né,7\n");
        assert!(sample().render(Format::Markdown).contains("| a\\|b | 1,234 |"));
    }
}
