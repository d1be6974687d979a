//! Packages of kernels.

/// Beginning of the name of every package of a kernel.
pub(crate) const PREFIX: &str = "linux-image-";

/// One version of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// As it says itself: clauses with alternatives.
    pub(super) depends: String,
    /// Bytes of its file.
    pub(super) bytes: u64,
}

impl Package {
    /// One whose name and version alone are known.
    pub(crate) fn named(name: &str, version: &str) -> Self {
        Self { name: name.to_owned(), version: version.to_owned(), ..Self::default() }
    }

    /// Whether it has a kernel of some release, and does not only depend on another that has.
    pub(crate) fn is_kernel(&self) -> bool {
        let release = self.name.strip_prefix(PREFIX).unwrap_or_default();
        let has_release = release.starts_with(|c: char| c.is_ascii_digit());
        has_release && !self.is_auxiliary() && self.depends_on(PREFIX).is_none()
    }

    /// Whether it has what belongs to a kernel.
    pub(crate) fn is_auxiliary(&self) -> bool {
        ["-dbg", "-template"].iter().any(|end| self.name.ends_with(end))
    }

    /// The first package it depends on whose name begins like this, and the version where it has to be just one.
    pub(crate) fn depends_on(&self, prefix: &str) -> Option<(String, Option<String>)> {
        self.depends.split(',').find_map(|clause| {
            let first = clause.split('|').next()?.trim();
            let (name, condition) = first.split_once(' ').unwrap_or((first, ""));
            let exactly = condition.trim().strip_prefix("(=").and_then(|rest| rest.strip_suffix(')'));
            let version = exactly.map(|version| version.trim().to_owned());
            (name.starts_with(prefix) && is_word(name)).then(|| (name.to_owned(), version))
        })
    }
}

/// Whether a text can be the name or version of a package. It is then no option, and no path.
pub(super) fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || ".+-~:".contains(c))
}
