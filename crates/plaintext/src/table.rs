//! Tables of commands: aligned for a terminal, Markdown for a page, CSV for a spreadsheet.
//!
//! JSON is not a table: commands that offer it serialize a versioned type of their own.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::wrap;

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

    /// The aligned table. If that is wider than `width`, columns of text, the widest first, are below their rows: names and
    /// values.
    pub fn fitted(&self, width: usize) -> String {
        let is_text = |column: usize| column > 0 && !self.columns[column].numeric;
        let widths = self.widths();
        let mut below: Vec<usize> = Vec::new();
        let mut left = self.width();
        while left > width {
            let movable = (0..widths.len()).filter(|column| is_text(*column) && !below.contains(column));
            let Some(widest) = movable.max_by_key(|column| widths[*column]) else { break };
            left -= widths[widest] + BETWEEN;
            below.push(widest);
        }
        if below.is_empty() {
            return self.aligned();
        }
        below.sort_unstable();
        let of_rows: Vec<usize> = (0..self.columns.len()).filter(|column| !below.contains(column)).collect();
        let select = |row: &Vec<String>| of_rows.iter().map(|column| row[*column].clone()).collect();
        let rows = Self {
            columns: of_rows.iter().map(|column| self.columns[*column].clone()).collect(),
            rows: self.rows.iter().map(select).collect(),
        };
        let aligned = rows.aligned();
        let (head, lines) = aligned.split_once('\n').unwrap_or_default();
        let mut out = format!("{head}\n");
        for (line, row) in lines.lines().zip(&self.rows) {
            out += &format!("{line}\n");
            let values = below.iter().filter(|column| !row[**column].is_empty());
            let values: Vec<String> =
                values.map(|column| format!("{} {}", self.columns[*column].name, row[*column])).collect();
            if !values.is_empty() {
                out += &wrap(&format!("    {}", values.join(" · ")), width);
            }
        }
        out
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
    fn columns_that_do_not_fit_are_below_their_rows() {
        let mut table = Table::new(["id", "cell", "#tps", "state"]);
        table.push(["1", "18 select-only scale 1", "7.5", "valid"].map(str::to_owned).into());
        table.push(["2", "", "12.5", "suspect"].map(str::to_owned).into());
        assert_eq!(table.width(), 41);
        assert_eq!(table.fitted(41), table.render(Format::Table));
        assert_eq!(
            table.fitted(20),
            "id   tps  state\n1    7.5  valid\n    cell 18\n      select-only\n      scale 1\n2   12.5  suspect\n"
        );
        let narrow = "id   tps\n1    7.5\n    cell 18\n      select-only\n      scale 1 ·\n      state\n      valid\n2   12.5\n    state\n      suspect\n";
        assert_eq!(table.fitted(16), narrow);
        assert_eq!(table.fitted(3).lines().next(), Some("id   tps"), "numbers stay");
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
