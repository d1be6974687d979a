//! The report as one file: the page built from `web/`, with the figures inside.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

use analysis::overview::view::View;
use analysis::trial::Detail;

use crate::history;
use crate::json::json;

/// The page as `make web` builds it; build.rs checks that it exists.
pub(crate) const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/dist/index.html"));

/// Placeholder of the figures in the page.
pub(crate) const PLACEHOLDER: &str = "<!--PGDYNO_DATA-->";

/// Creates a page that needs no network and no other file. The figures in it are JSON, compressed by gzip and encoded
/// in base64, so that nothing in them is treated as markup.
///
/// # Errors
/// Compression into memory fails, for which there is no known cause.
pub fn html(view: &View, histories: &[history::Document], details: &[Detail]) -> io::Result<String> {
    let details = details.iter().map(|detail| Ok((detail.id.clone(), compressed(&json(detail))?)));
    page(view, histories, details.collect::<io::Result<Vec<_>>>()?)
}

/// As [`html`], with details that are compressed already, each with its trial's id.
pub(crate) fn page(
    view: &View,
    histories: &[history::Document],
    details: Vec<(String, Vec<u8>)>,
) -> io::Result<String> {
    let (before, after) = PAGE.split_once(PLACEHOLDER).unwrap_or((PAGE, ""));
    let mut page = before.to_owned();
    embed(&mut page, "view", &compressed(&json(view))?);
    embed(&mut page, "histories", &compressed(&json(&histories))?);
    for (trial, detail) in details {
        embed(&mut page, &format!("trial-{trial}"), &detail);
    }
    page.push_str(after);
    Ok(page)
}

/// A text compressed for the page, before it is encoded in base64.
pub(crate) fn compressed(text: &str) -> io::Result<Vec<u8>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(text.as_bytes())?;
    gzip.finish()
}

fn embed(page: &mut String, id: &str, data: &[u8]) {
    page.push_str(&format!("<script id=\"{id}\" type=\"text/plain\">"));
    STANDARD.encode_string(data, page);
    page.push_str("</script>\n");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;
    use analysis::overview;

    /// The page's data under an id.
    fn embedded(page: &str, id: &str) -> String {
        let (_, from) = page.split_once(&format!("<script id=\"{id}\"")).unwrap();
        let (_, from) = from.split_once('>').unwrap();
        let (data, _) = from.split_once("</script>").unwrap();
        let mut json = String::new();
        GzDecoder::new(STANDARD.decode(data.trim()).unwrap().as_slice()).read_to_string(&mut json).unwrap();
        json
    }

    #[test]
    fn the_page_has_the_figures_inside() {
        let view = overview(&[], &BTreeMap::new());
        let details = vec![("01A".to_owned(), compressed("{}").unwrap())];
        let page = page(&view, &[], details).unwrap();
        assert_eq!(embedded(&page, "view"), json(&view));
        assert_eq!(embedded(&page, "histories"), "[]");
        assert_eq!(embedded(&page, "trial-01A"), "{}");
        assert!(!page.contains(PLACEHOLDER));
        assert!(page.trim_end().ends_with("</html>"));
    }
}
