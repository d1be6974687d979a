//! Lines wrapped to a width.

/// Wraps a line before words that would exceed `columns`. The line keeps its indentation; continuation lines are
/// indented by two more columns. The result ends in a line break.
pub fn wrap(line: &str, columns: usize) -> String {
    let indent = line.len() - line.trim_start().len();
    let mut out = " ".repeat(indent);
    let mut column = indent;
    for (at, word) in line.trim_start().split(' ').enumerate() {
        let width = word.chars().count();
        if at > 0 && column + 1 + width > columns {
            out += &format!("\n{}", " ".repeat(indent + 2));
            column = indent + 2;
        } else if at > 0 {
            out.push(' ');
            column += 1;
        }
        out += word;
        column += width;
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn continuation_lines_are_indented_and_no_line_is_too_long() {
        let text = wrap(&format!(" a{}", " word".repeat(6)), 14);
        assert_eq!(text, " a word word\n   word word\n   word word\n");
        assert_eq!(wrap("incomprehensibilities alone", 10), "incomprehensibilities\n  alone\n");
    }
}
