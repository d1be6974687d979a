//! Extensions: what a server has in addition, created in each data set.

use std::fmt;
use std::str::FromStr;

/// The word for no extension.
const NONE: &str = "none";

/// An extension of the server; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extension(Option<Named>);

/// An extension by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Named {
    /// Its name for `CREATE EXTENSION`.
    pub name: String,
    /// Its version; none for the default one.
    pub version: Option<String>,
    /// Directory of its source, which is built against the server; none if the server has it.
    pub source: Option<String>,
}

/// What an extension is written as.
pub const EXPECTED: &str = "expected `none`, a name with or without a version (`pg_trgm`, `vector@0.8.0`), a directory with its \
                            source (`./my_ext`), or both (`vector=./pgvector`)";

/// A text that is no extension.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no extension: {EXPECTED}")]
pub struct ParseExtensionError(String);

impl Extension {
    /// The extension, if there is one.
    pub fn named(&self) -> Option<&Named> {
        self.0.as_ref()
    }

    /// Directory of its source, if it is to be built.
    pub fn source(&self) -> Option<&str> {
        self.0.as_ref()?.source.as_deref()
    }
}

impl Named {
    /// The statement that creates it, with extensions that it needs.
    pub fn statement(&self) -> String {
        let quoted = |text: &str, quote: char| format!("{quote}{text}{quote}");
        let version = self.version.as_ref().map(|version| format!(" VERSION {}", quoted(version, '\'')));
        format!(
            "CREATE EXTENSION IF NOT EXISTS {}{} CASCADE",
            quoted(&self.name, '"'),
            version.unwrap_or_default()
        )
    }
}

impl FromStr for Extension {
    type Err = ParseExtensionError;

    fn from_str(text: &str) -> Result<Self, ParseExtensionError> {
        let refuse = || ParseExtensionError(text.to_owned());
        if text == NONE {
            return Ok(Self::default());
        }
        let (rest, version) = match text.rsplit_once('@') {
            Some((rest, version)) if !version.contains('/') => (rest, Some(version)),
            _ => (text, None),
        };
        let (name, source) = match rest.split_once('=') {
            Some((name, source)) => (Some(name), Some(source)),
            None if rest.contains('/') => (None, Some(rest)),
            None => (Some(rest), None),
        };
        let last = || source?.trim_end_matches('/').rsplit('/').next();
        let name = name.or_else(last).ok_or_else(refuse)?;
        // Both are in quotes in statements.
        let is_word = |text: &str, more: &str| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        let is_valid = is_word(name, "_-")
            && version.is_none_or(|version| is_word(version, "._-+"))
            && source.is_none_or(|source| source.contains('/'));
        if !is_valid {
            return Err(refuse());
        }
        let [version, source] = [version, source].map(|part| part.map(str::to_owned));
        Ok(Self(Some(Named { name: name.to_owned(), version, source })))
    }
}

impl fmt::Display for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Named { name, version, source }) = &self.0 else { return f.write_str(NONE) };
        match source {
            None => f.write_str(name)?,
            Some(source) if source.trim_end_matches('/').ends_with(&format!("/{name}")) => {
                f.write_str(source)?
            }
            Some(source) => write!(f, "{name}={source}")?,
        }
        version.as_ref().map_or(Ok(()), |version| write!(f, "@{version}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_read_as_they_are_shown() {
        let parts = |text: &str| {
            let extension: Extension = text.parse().unwrap();
            assert_eq!(extension.to_string(), text);
            extension.named().map(|named| {
                (
                    named.name.clone(),
                    named.version.clone().unwrap_or_default(),
                    named.source.clone().unwrap_or_default(),
                )
            })
        };
        let expected = |name: &str, version: &str, source: &str| {
            Some((name.to_owned(), version.to_owned(), source.to_owned()))
        };
        assert_eq!(parts("none"), None);
        assert_eq!(parts("pg_trgm"), expected("pg_trgm", "", ""));
        assert_eq!(parts("uuid-ossp@1.1"), expected("uuid-ossp", "1.1", ""));
        assert_eq!(parts("./my_ext"), expected("my_ext", "", "./my_ext"));
        assert_eq!(parts("../a@b/my_ext@2.0-rc1"), expected("my_ext", "2.0-rc1", "../a@b/my_ext"));
        assert_eq!(parts("vector=./pgvector@0.8.0"), expected("vector", "0.8.0", "./pgvector"));
        for text in ["", "a b", "a'b", "@1", "./", "a=", "a=b", "x@", "x@1'2", "=./x"] {
            assert!(text.parse::<Extension>().is_err(), "{text}");
        }
        let named: Extension = "uuid-ossp@1.1".parse().unwrap();
        assert_eq!(
            named.named().unwrap().statement(),
            "CREATE EXTENSION IF NOT EXISTS \"uuid-ossp\" VERSION '1.1' CASCADE"
        );
    }
}
