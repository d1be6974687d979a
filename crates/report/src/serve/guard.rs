//! Access control: read-only, by a name of this server or with its token, and never from another site.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HOST, LOCATION,
    REFERRER_POLICY, SET_COOKIE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

use super::response::{ErrorResponse, HTML};

/// Fewest characters of a token: shorter ones are guessed too soon.
const MIN_CHARS: usize = 16;

/// Secret that gives access.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Error of a text that is not a valid token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a token has at least {MIN_CHARS} characters, which are letters, digits, `-`, `.`, `_` and `~`: try `openssl rand -hex 16`"
)]
pub struct BadToken;

impl Token {
    /// Token chosen by the user.
    ///
    /// # Errors
    /// It is too short, or has characters that URLs and cookies would escape.
    pub fn new(text: &str) -> Result<Self, BadToken> {
        let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "-._~".contains(c));
        (is_plain && text.len() >= MIN_CHARS).then(|| Self(text.to_owned())).ok_or(BadToken)
    }

    /// A random token of 128 bits.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random() -> io::Result<Self> {
        let mut bits = [0; 16];
        rustix::rand::getrandom(&mut bits, rustix::rand::GetRandomFlags::empty())?;
        Ok(Self(bits.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The text of the token.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not depend on the position of the first difference.
    fn equals(&self, other: &str) -> bool {
        self.0.as_bytes().ct_eq(other.as_bytes()).into()
    }
}

/// Decides which requests are answered.
#[derive(Clone, Debug)]
pub struct Guard {
    address: SocketAddr,
    token: Option<Token>,
}

impl Guard {
    /// Guard of a server at this address. Without a token it answers only requests to a name of this machine: otherwise
    /// other sites could resolve their own name to it, and a browser would let them read (DNS rebinding).
    pub fn new(address: SocketAddr, token: Option<Token>) -> Self {
        Self { address, token }
    }

    fn is_own_name(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, port),
            _ => (host, "80"),
        };
        let is_name = ["localhost", "127.0.0.1", "[::1]"].contains(&name.to_ascii_lowercase().as_str());
        let is_address = name == self.address.ip().to_string();
        (is_name || is_address) && port == self.address.port().to_string()
    }

    /// Whether the host that a request names, once or in two places, is this server.
    fn is_for_this_server(&self, request: &Request) -> bool {
        let mut hosts = request.headers().get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        host.to_str().is_ok_and(|host| self.is_own_name(host))
            && request.uri().authority().is_none_or(|host| self.is_own_name(host.as_str()))
    }

    /// Name of the cookie. A host's cookies are shared by all of its ports.
    fn cookie(&self) -> String {
        format!("pgdyno-{}", self.address.port())
    }

    fn has_token(&self, token: &Token, headers: &HeaderMap) -> bool {
        let values =
            |name: HeaderName| headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        let mut bearers = values(AUTHORIZATION).filter_map(|value| value.strip_prefix("Bearer "));
        let mut cookies = values(COOKIE)
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='))
            .filter(|(name, _)| *name == self.cookie())
            .map(|(_, value)| value);
        bearers.any(|text| token.equals(text.trim())) || cookies.any(|text| token.equals(text))
    }

    /// The response that refuses a request; none if the request may be answered.
    fn refusal(&self, request: &Request) -> Option<Response> {
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let error = "pgdyno serve is read-only: it accepts GET and HEAD".to_owned();
            let refusal = ErrorResponse { status: StatusCode::METHOD_NOT_ALLOWED, error };
            return Some(([(ALLOW, "GET, HEAD")], refusal).into_response());
        }
        let Some(token) = &self.token else {
            return (!self.is_for_this_server(request)).then(|| {
                let error = format!(
                    "pgdyno serve accepts only requests to the names of this machine: use http://localhost:{}/ (other \
                     names need a token: see docs/serve.md)",
                    self.address.port()
                );
                ErrorResponse { status: StatusCode::FORBIDDEN, error }.into_response()
            });
        };
        if self.has_token(token, request.headers()) {
            return None;
        }
        let mut tokens = query(request).filter(|(name, _)| *name == "token").map(|(_, value)| value);
        if request.uri().path() == "/" && tokens.any(|text| token.equals(text)) {
            let cookie = format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie(), token.0);
            let location = HeaderValue::from_static("./");
            let headers = [
                (SET_COOKIE, HeaderValue::try_from(cookie).ok()?),
                (LOCATION, location),
                (CACHE_CONTROL, HeaderValue::from_static("no-store")),
            ];
            return Some((StatusCode::SEE_OTHER, headers).into_response());
        }
        Some(without_token(request.uri().path()))
    }
}

fn query(request: &Request) -> impl Iterator<Item = (&str, &str)> {
    request
        .uri()
        .query()
        .into_iter()
        .flat_map(|query| query.split('&'))
        .filter_map(|part| part.split_once('='))
}

fn without_token(path: &str) -> Response {
    let headers = [(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))];
    // Programs, not people, request these.
    if path.starts_with("/api/") || path == "/metrics" {
        let error = "this request needs the token of `pgdyno serve`: open the URL that it printed, or send the token as \
                     `Authorization: Bearer`";
        let refusal = ErrorResponse { status: StatusCode::UNAUTHORIZED, error: error.to_owned() };
        return (headers, refusal).into_response();
    }
    let page = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>pgdyno: a token is needed</title>\
                <style>body{font:1.1rem/1.5 system-ui;max-width:40rem;margin:4rem auto;padding:0 1rem;\
                color-scheme:light dark}</style>\
                <h1>A token is needed</h1>\
                <p>Open the URL that <code>pgdyno serve</code> printed when it was started: it ends in \
                <code>/?token=…</code>. This browser then keeps the token until it is closed.</p>\
                <p>If you followed a link that contains the token, <a href=\"./\">continue</a>.</p>\
                <p>Programs send it as <code>Authorization: Bearer …</code>.</p></html>";
    let kind = [
        (CONTENT_TYPE, HeaderValue::from_static(HTML)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (StatusCode::UNAUTHORIZED, headers, kind, page).into_response()
}

/// Passes on requests that may be answered.
pub(crate) async fn guard(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    match guard.refusal(&request) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    }
}

/// Adds security headers to each response.
pub(crate) async fn headers(State(policy): State<HeaderValue>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine_are_own_with_the_servers_port_only() {
        let guard = Guard::new("127.0.0.1:7432".parse().unwrap(), None);
        for own in ["localhost:7432", "LOCALHOST:7432", "127.0.0.1:7432", "[::1]:7432"] {
            assert!(guard.is_own_name(own), "{own}");
        }
        for foreign in
            ["localhost", "localhost:80", "evil.example:7432", "127.0.0.1.evil.example:7432", "[::1]", ""]
        {
            assert!(!guard.is_own_name(foreign), "{foreign}");
        }
        assert!(Guard::new("127.0.0.1:80".parse().unwrap(), None).is_own_name("[::1]"));
        assert!(Guard::new("127.0.0.2:7432".parse().unwrap(), None).is_own_name("127.0.0.2:7432"));
    }

    #[test]
    fn a_token_is_long_and_plain() {
        assert!(Token::new("0123456789abcdef").is_ok());
        for bad in ["", "0123456789abcde", "0123456789abcdef;", "0123456789 abcdef", "0123456789abcdeü"] {
            assert_eq!(Token::new(bad), Err(BadToken), "{bad}");
        }
        assert_eq!(format!("{:?}", Token::new("0123456789abcdef").unwrap()), "Token");
    }
}
