//! Tables with paths in the cache, whose own path is long.

use plaintext::table::Table;

/// A table for a terminal of this width: in its last column, paths in the cache are relative to it, which is named once.
pub(crate) fn fitted(mut table: Table, cache: &str, width: usize) -> String {
    let prefix = format!("{cache}/");
    let mut is_shortened = false;
    for path in table.rows.iter_mut().filter_map(|row| row.last_mut()) {
        if let Some(below) = path.strip_prefix(&prefix) {
            *path = below.to_owned();
            is_shortened = true;
        }
    }
    let text = table.fitted(width);
    if is_shortened { format!("{text}Directories are relative to {cache}\n") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_the_cache_are_relative_to_it() {
        let cache = format!("/home/{}/.cache/pgdyno", "user".repeat(12));
        let path = |path: &str| vec!["template".to_owned(), path.to_owned()];
        let mut table = Table::new(["what", "directory"]);
        table.push(path(&format!("{cache}/templates/18.1-scale-10-1a2b3c4d")));
        table.push(path("/opt/postgresql"));
        assert_eq!(
            fitted(table, &cache, 80),
            format!(
                "what      directory\ntemplate  templates/18.1-scale-10-1a2b3c4d\ntemplate  /opt/postgresql\n\
                 Directories are relative to {cache}\n"
            )
        );
        let mut table = Table::new(["what", "directory"]);
        table.push(path("/opt/postgresql"));
        assert_eq!(fitted(table, &cache, 80), "what      directory\ntemplate  /opt/postgresql\n");
    }
}
