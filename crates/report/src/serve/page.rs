//! The page as served: that of report files, which may connect to its own server, and to no other.

/// Rule of the page's policy for connections, in files and when served.
const CONNECT_NONE: &str = "connect-src 'none'";
const CONNECT_SELF: &str = "connect-src 'self'";

/// Reason why a page can't be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the page in this pgdyno can't be served: {0}; this is a defect of its build: `make web`, and build it again"
)]
pub struct PageError(String);

impl PageError {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// The page and its content security policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) html: String,
    pub(crate) policy: String,
}

impl Page {
    /// The page to serve, of the page as built.
    pub(crate) fn new(built: &str) -> Result<Self, PageError> {
        if built.matches(crate::html::PLACEHOLDER).count() != 1 {
            return Err(PageError::new(format!("it does not have exactly one {}", crate::html::PLACEHOLDER)));
        }
        let (head, rest) = built
            .split_once("http-equiv=\"Content-Security-Policy\"")
            .ok_or_else(|| PageError::new("it has no content security policy"))?;
        let found = rest.split_once("content=\"").and_then(|(between, rest)| {
            let (policy, rest) = rest.split_once('"')?;
            Some((between, policy, rest))
        });
        let (between, policy, rest) =
            found.ok_or_else(|| PageError::new("its content security policy is empty"))?;
        if policy.matches(CONNECT_NONE).count() != 1 {
            return Err(PageError::new(format!("its content security policy has no {CONNECT_NONE}")));
        }
        let served = policy.replace(CONNECT_NONE, CONNECT_SELF);
        Ok(Self {
            html: format!("{head}http-equiv=\"Content-Security-Policy\"{between}content=\"{served}\"{rest}"),
            // A meta element may not restrict framing.
            policy: format!("{served}; frame-ancestors 'none'"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_page_may_connect_to_its_own_server_only() {
        let page = Page::new(crate::html::PAGE).unwrap();
        assert!(page.policy.starts_with("default-src 'none'; script-src 'sha256-"), "{}", page.policy);
        assert!(page.policy.contains("connect-src 'self'") && !page.policy.contains("unsafe-eval"));
        assert!(page.html.contains(&page.policy.replace("; frame-ancestors 'none'", "")));
        assert!(page.html.contains(crate::html::PLACEHOLDER));
        assert_eq!(page.html.len(), crate::html::PAGE.len());
    }

    #[test]
    fn a_page_without_its_policy_or_its_placeholder_is_refused() {
        let whole = crate::html::PAGE;
        for without in [crate::html::PLACEHOLDER, CONNECT_NONE, "http-equiv=\"Content-Security-Policy\""] {
            let error = Page::new(&whole.replace(without, "")).unwrap_err().to_string();
            assert!(error.contains("can't be served") && error.contains("make web"), "{error}");
        }
    }
}
