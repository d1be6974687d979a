//! Any request gets a response: none fails, and without the token none has data. An input is the method and the target of
//! a request, then a line for each header.

#![no_main]

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use axum::response::Response;
use fuzz::SampleStore;
use http_body_util::BodyExt as _;
use libfuzzer_sys::fuzz_target;
use report::serve::{Guard, Token, site};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

const TOKEN: &str = "0123456789abcdef0123";

struct Serve {
    runtime: Runtime,
    open: Router,
    guarded: Router,
    _sample: SampleStore,
}

impl Default for Serve {
    fn default() -> Self {
        let sample = SampleStore::default();
        let address = "127.0.0.1:7432".parse().expect("an address");
        let router = |token| site(sample.store.clone(), None, Guard::new(address, token)).expect("a page");
        let token = Token::new(TOKEN).expect("a token");
        let runtime = Builder::new_current_thread().enable_time().max_blocking_threads(1).build();
        let (open, guarded) = (router(None), router(Some(token)));
        Self { runtime: runtime.expect("a runtime"), open, guarded, _sample: sample }
    }
}

thread_local! {
    static SERVE: Serve = Serve::default();
}

/// The request; none if it is not HTTP.
fn request(text: &[u8]) -> Option<Request<Body>> {
    let mut lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let mut words = lines.next()?.splitn(2, |byte| *byte == b' ');
    let mut request = Request::builder().method(words.next()?).uri(words.next()?);
    for line in lines.take_while(|line| !line.is_empty()) {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        request = request.header(name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?);
    }
    request.body(Body::empty()).ok()
}

/// The response, with all of its body; of a stream the first part.
async fn response(site: &Router, request: Request<Body>) -> Response {
    let is_stream = request.uri().path() == "/api/live";
    let Ok(mut response) = site.clone().oneshot(request).await;
    while let Some(frame) = response.body_mut().frame().await {
        frame.expect("the body is sent");
        if is_stream {
            break;
        }
    }
    response
}

fuzz_target!(|text: &[u8]| {
    let knows_token = text.windows(TOKEN.len()).any(|part| part == TOKEN.as_bytes());
    SERVE.with(|serve| {
        for (site, is_guarded) in [(&serve.open, false), (&serve.guarded, true)] {
            let Some(request) = request(text) else { return };
            let may_read = [Method::GET, Method::HEAD].contains(request.method());
            let response = serve.runtime.block_on(response(site, request));
            let status = response.status();
            assert!(!status.is_server_error(), "{status}");
            assert!(may_read || status == StatusCode::METHOD_NOT_ALLOWED, "{status}");
            if is_guarded && !knows_token && may_read {
                assert_eq!(status, StatusCode::UNAUTHORIZED);
            }
            for header in [CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS] {
                assert!(response.headers().contains_key(&header), "{header} is missing");
            }
        }
    });
});
