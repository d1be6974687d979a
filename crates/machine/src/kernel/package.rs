//! Packages of kernels.

/// Prefix of the names of all packages of kernels.
pub(crate) const PREFIX: &str = "linux-image-";

/// One version of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The field `Depends`: clauses with alternatives.
    pub(super) depends: String,
    /// Bytes of its file.
    pub(super) bytes: u64,
}

impl Package {
    /// A package of which only name and version are known.
    pub(crate) fn named(name: &str, version: &str) -> Self {
        Self { name: name.to_owned(), version: version.to_owned(), ..Self::default() }
    }

    /// Whether it contains a kernel of some release, rather than depending on a package that does.
    pub(crate) fn is_kernel(&self) -> bool {
        let release = self.name.strip_prefix(PREFIX).unwrap_or_default();
        let has_release = release.starts_with(|c: char| c.is_ascii_digit());
        has_release && !self.is_auxiliary() && self.depends_on(PREFIX).is_none()
    }

    /// Whether it only accompanies a kernel.
    pub(crate) fn is_auxiliary(&self) -> bool {
        ["-dbg", "-template"].iter().any(|end| self.name.ends_with(end))
    }

    /// First dependency whose name has this prefix, with its version if the version is exact.
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

/// Whether a text can be the name or version of a package. It is then neither an option nor a path.
pub(super) fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || ".+-~:".contains(c))
}
