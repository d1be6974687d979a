//! The report as one file: the page built from `web/`, with the view inside.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::view::View;

/// The page as `make web` builds it; build.rs makes sure that it is there.
const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/dist/index.html"));

/// Stands in the page where the figures go.
const PLACE: &str = "<!--PGDYNO_DATA-->";

/// Makes a page that needs no network and no other file. The view in it is JSON, compressed by gzip and written in
/// base64, so that nothing in it can be taken for markup.
///
/// # Errors
/// Only what compressing into memory may fail with, which is nothing known.
pub fn html(view: &View) -> io::Result<String> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(view.json().as_bytes())?;
    let view = STANDARD.encode(gzip.finish()?);
    Ok(PAGE.replacen(PLACE, &format!("<script id=\"view\" type=\"text/plain\">{view}</script>"), 1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;
    use crate::analyse;

    #[test]
    fn the_page_has_the_view_inside() {
        let view = analyse(&[], &BTreeMap::new());
        let page = html(&view).unwrap();
        let (_, from) = page.split_once("<script id=\"view\"").unwrap();
        let (_, from) = from.split_once('>').unwrap();
        let (data, _) = from.split_once("</script>").unwrap();
        let mut json = String::new();
        GzDecoder::new(STANDARD.decode(data.trim()).unwrap().as_slice()).read_to_string(&mut json).unwrap();
        assert_eq!(json, view.json());
    }
}
