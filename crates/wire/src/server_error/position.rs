//! The line of a query that contains an error, and a mark below its position.

use unicode_width::UnicodeWidthChar;

/// Maximum width of a line, in columns; libpq's.
const MAX_WIDTH: usize = 60;

/// Width that remains after the position in a long line, in columns; libpq's.
const WIDTH_AFTER: usize = 10;

/// Appends the line of `query` that contains `position`, in characters from 1, and a line that marks it; nothing if the
/// query is shorter. Of a long line the part around the position is shown.
pub(super) fn show(query: &str, position: usize, out: &mut String) {
    let Some(index) = position.checked_sub(1) else { return };
    let chars: Vec<char> = query.chars().collect();
    if index > chars.len() {
        return;
    }
    let is_end = |c: &char| matches!(c, '\r' | '\n');
    let mut begin = chars[..index].iter().rposition(is_end).map_or(0, |end| end + 1);
    let mut end = chars[index..].iter().position(is_end).map_or(chars.len(), |end| index + end);
    let number = 1 + (0..begin).filter(|at| ends_line(&chars, *at)).count();
    // The column at which each character begins, and the one after the last.
    let mut columns = vec![0];
    columns.extend(chars.iter().scan(0, |column, c| {
        *column += c.width().unwrap_or(1).max(1);
        Some(*column)
    }));
    let (mut cut_before, mut cut_after) = (false, false);
    if columns[end] - columns[begin] > MAX_WIDTH {
        if columns[begin] + MAX_WIDTH >= columns[index] + WIDTH_AFTER {
            cut_after = true;
            while columns[end] - columns[begin] > MAX_WIDTH {
                end -= 1;
            }
        } else {
            while columns[end] > columns[index] + WIDTH_AFTER {
                cut_after = true;
                end -= 1;
            }
            while columns[end] - columns[begin] > MAX_WIDTH {
                cut_before = true;
                begin += 1;
            }
        }
    }
    let dots = |cut| if cut { "..." } else { "" };
    let head = format!("LINE {number}: {}", dots(cut_before));
    out.push_str(&head);
    out.extend(chars[begin..end].iter().map(|c| if *c == '\t' { ' ' } else { *c }));
    out.push_str(dots(cut_after));
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', head.len() + columns[index] - columns[begin]));
    out.push_str("^\n");
}

/// Whether a line ends with this character: `\r` and `\n` together are one end.
fn ends_line(chars: &[char], at: usize) -> bool {
    match chars[at] {
        '\r' => true,
        '\n' => at == 0 || chars[at - 1] != '\r',
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marked(query: &str, position: usize) -> String {
        let mut out = String::new();
        show(query, position, &mut out);
        out
    }

    #[test]
    fn the_position_is_marked_in_its_line() {
        assert_eq!(marked("SELECT x", 8), "LINE 1: SELECT x\n               ^\n");
        assert_eq!(marked("SELECT\n\tx\nFROM y", 9), "LINE 2:  x\n         ^\n");
        assert_eq!(marked("a\r\nb\rc\nd", 8), "LINE 4: d\n        ^\n");
        assert_eq!(marked("'日本' x", 6), "LINE 1: '日本' x\n               ^\n");
        assert_eq!(marked("SELECT", 7), "LINE 1: SELECT\n              ^\n");
        assert_eq!(marked("SELECT", 8), "");
        assert_eq!(marked("SELECT", 0), "");
    }

    #[test]
    fn long_lines_are_cut_around_the_position() {
        let query = format!("SELECT {}x{}", "1, ".repeat(20), ", 2".repeat(20));
        assert_eq!(
            marked(&query, 8),
            format!("LINE 1: SELECT {}1,...\n               ^\n", "1, ".repeat(17))
        );
        assert_eq!(
            marked(&query, 68),
            format!("LINE 1: ...{}, x, 2, 2, 2...\n{}^\n", ", 1".repeat(16), " ".repeat(61))
        );
    }

    proptest! {
        #[test]
        fn arbitrary_positions_do_not_panic(query in any::<String>(), long in "[a-z\n\t漢]{0,200}", at in 0_usize..250) {
            marked(&query, at);
            marked(&long, at);
        }
    }
}
