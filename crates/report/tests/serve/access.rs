//! Access control: methods, ids, host names and the token; headers that protect the page.

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, SET_COOKIE};
use axum::http::{HeaderName, Method, StatusCode};

use report::serve::Limits;

use crate::{OWN, TOKEN, TestServer, exchange, start};

#[tokio::test]
async fn the_page_may_connect_to_this_server_only_and_its_policy_is_sent() {
    let page = TestServer::new().get("/").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.body.contains("<!--PGDYNO_DATA-->") && page.body.contains("connect-src 'self'"));
    let policy = page.header("content-security-policy".parse::<HeaderName>().unwrap());
    assert!(policy.contains("default-src 'none'") && policy.contains("connect-src 'self'"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("connect-src 'none'"), "{policy}");
}

#[tokio::test]
async fn all_responses_have_the_security_headers() {
    let server = TestServer::new();
    let mut responses = vec![server.request(Method::GET, "/", &[(HOST, "evil.example")]).await];
    for path in ["/", "/api/runs", "/api/runs/x", "/metrics", "/nowhere"] {
        responses.push(server.get(path).await);
    }
    responses.push(server.request(Method::POST, "/", &[(HOST, OWN)]).await);
    for response in responses {
        let header = |name: &'static str| response.header(HeaderName::from_static(name));
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin");
        assert_eq!(header("x-frame-options"), "DENY");
        assert!(header("content-security-policy").contains("default-src 'none'"));
        assert!(!header("cache-control").is_empty());
    }
}

#[tokio::test]
async fn only_get_and_head_are_accepted() {
    let server = TestServer::new();
    let head = server.request(Method::HEAD, "/api/runs", &[(HOST, OWN)]).await;
    assert_eq!((head.status, head.body.as_str()), (StatusCode::OK, ""));
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS] {
        for path in ["/", "/api/runs", "/api/live", "/metrics", "/nowhere"] {
            let response = server.request(method.clone(), path, &[(HOST, OWN)]).await;
            assert_eq!(response.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
            assert!(response.error().contains("GET"));
        }
    }
}

#[tokio::test]
async fn only_ids_give_access_to_the_store() {
    let server = TestServer::new();
    std::fs::write(server.folder.path().join("secret"), "secret").unwrap();
    let id = server.run();
    let lower = id.to_lowercase();
    for bad in ["..", "../secret", "..%2Fsecret", "%2e%2e%2fsecret", "%00", "%FF", "x", &id[..10], &lower] {
        for path in
            [format!("/api/runs/{bad}"), format!("/api/runs/{bad}/histories"), format!("/api/trials/{bad}")]
        {
            let response = server.get(&path).await;
            assert_eq!(response.status, StatusCode::NOT_FOUND, "{path}");
            assert!(
                !response.error().is_empty() && !response.body.contains("secret"),
                "{path}: {}",
                response.body
            );
        }
    }
    for path in
        ["/secret", "/../secret", "/%2e%2e/secret", "//etc/passwd", "/api", "/api/runs/", "/api/runs/a/b/c"]
    {
        assert_eq!(server.get(path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    let unknown = server.get(&format!("/api/runs/{}", store::new_id())).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert!(unknown.error().contains("no trial of run"));
}

#[tokio::test]
async fn a_refused_host_name_is_answered_with_the_address_to_use() {
    let server = TestServer::new();
    let response = server.request(Method::GET, "/api/runs", &[(HOST, "evil.example:7432")]).await;
    assert_eq!(response.status, StatusCode::FORBIDDEN);
    assert!(response.error().contains("http://localhost:7432/"));
}

#[tokio::test]
async fn outside_loopback_a_token_is_required_and_kept_by_the_browser() {
    let server = TestServer::guarded("192.0.2.1:7432", Some(TOKEN));
    let host = (HOST, "bench.example:7432");
    let without = server.request(Method::GET, "/", std::slice::from_ref(&host)).await;
    assert_eq!(without.status, StatusCode::UNAUTHORIZED);
    assert!(without.body.contains("pgdyno serve") && without.body.contains("?token="), "{}", without.body);
    for path in ["/api/runs", "/api/live", "/api/nowhere"] {
        let without = server.request(Method::GET, path, std::slice::from_ref(&host)).await;
        assert_eq!(without.status, StatusCode::UNAUTHORIZED, "{path}");
        assert!(without.error().contains("token"));
    }
    for wrong in [
        "/?token=",
        "/?token=0123456789abcdef0124",
        "/?token=0123456789abcdef01234",
        "/api/runs?token=0123456789abcdef0123",
    ] {
        let wrong = server.request(Method::GET, wrong, std::slice::from_ref(&host)).await;
        assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
        assert_eq!(wrong.header(SET_COOKIE), "");
    }

    let right = server.request(Method::GET, &format!("/?token={TOKEN}"), std::slice::from_ref(&host)).await;
    assert_eq!(right.status, StatusCode::SEE_OTHER);
    assert_eq!(right.header(HeaderName::from_static("location")), "./");
    let cookie = right.header(SET_COOKIE);
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let kept = format!("theme=dark; {}", cookie.split(';').next().unwrap());
    let page = server.request(Method::GET, "/", &[host.clone(), (COOKIE, &kept)]).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(!page.body.contains(TOKEN));

    let bearer = |token: &str| format!("Bearer {token}");
    let with =
        server.request(Method::GET, "/api/runs", &[host.clone(), (AUTHORIZATION, &bearer(TOKEN))]).await;
    assert_eq!(with.status, StatusCode::OK);
    for wrong in ["", "0123456789abcdef0124", "x"] {
        let with =
            server.request(Method::GET, "/api/runs", &[host.clone(), (AUTHORIZATION, &bearer(wrong))]).await;
        assert_eq!(with.status, StatusCode::UNAUTHORIZED);
    }
    let other = kept.replace("pgdyno-7432", "pgdyno-7433");
    let of_another = server.request(Method::GET, "/api/runs", &[host, (COOKIE, &other)]).await;
    assert_eq!(of_another.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn no_path_leads_to_a_file() {
    let server = TestServer::new();
    let (id, run) = (&server.records[0].trial.id, server.run());
    let inside = server.folder.path().join("secret");
    std::fs::write(&inside, "the secret").unwrap();
    let address = start(server.site.clone(), Limits::default()).await;
    let far = format!("/{}etc/passwd", "../".repeat(1000));
    for path in [
        "/secret",
        "/../secret",
        "/../../../../../../etc/passwd",
        "/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/index.sqlite",
        "/trials/",
        &format!("/trials/{id}/trial.json"),
        inside.to_str().unwrap(),
        &far,
        "etc/passwd",
        "file:///etc/passwd",
        "*",
        "/api/trials/..",
        "/api/trials/../../secret",
        "/api/trials/..%2f..%2fsecret",
        "/api/trials/..%5c..%5csecret",
        "/api/trials/%252e%252e%252fsecret",
        "/api/trials/%c0%ae%c0%ae%c0%af%c0%ae%c0%ae%c0%afsecret",
        "/api/trials/%00",
        &format!("/api/trials/{id}%00"),
        &format!("/api/trials/{id}%2f..%2f..%2fsecret"),
        &format!("/api/trials/{id}/trial.json"),
        &format!("/api/trials/{}", &id[..25]),
        &format!("/api/runs/{run}/../../../secret"),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {OWN}\r\nConnection: close\r\n\r\n");
        let (status, body) = exchange(address, &request).await;
        assert!((400..500).contains(&status), "{path}: {status} {body}");
        assert!(!body.contains("the secret") && !body.contains("root:"), "{path}: {body}");
        assert!(!body.contains(server.folder.path().to_str().unwrap()), "{path}: {body}");
    }
}

#[tokio::test]
async fn without_a_token_only_names_of_this_machine_are_answered() {
    let server = TestServer::new();
    let address = start(server.site.clone(), Limits::default()).await;
    let request = |target: &str, hosts: &str| {
        let request = format!("GET {target} HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n");
        async move { exchange(address, &request).await }
    };
    for host in [
        "evil.example",
        "evil.example:7432",
        "localhost",
        "localhost:",
        "localhost:80",
        "localhost:7433",
        "localhost:07432",
        "localhost:+7432",
        "localhost.:7432",
        "localhost.evil.example:7432",
        "127.0.0.1.evil.example:7432",
        "evil.example.127.0.0.1:7432",
        "localhost:7432@evil.example",
        "evil.example@localhost:7432",
        "evil.example:7432#localhost:7432",
        "localhost:7432, evil.example",
        "localhost:7432 evil.example",
        "0.0.0.0:7432",
        "127.0.0.2:7432",
        "127.1:7432",
        "2130706433:7432",
        "0x7f000001:7432",
        "[::]:7432",
        "[::ffff:127.0.0.1]:7432",
        "",
    ] {
        let (status, body) = request("/api/runs", &format!("Host: {host}\r\n")).await;
        assert!([400, 403].contains(&status), "{host}: {status} {body}");
        assert!(!body.contains(server.run()), "{host}");
    }
    let own = format!("Host: {OWN}\r\n");
    for (target, hosts) in [
        ("/api/runs", String::new()),
        ("/api/runs", format!("{own}Host: evil.example:7432\r\n")),
        ("/api/runs", format!("Host: evil.example:7432\r\n{own}")),
        ("http://evil.example:7432/api/runs", own.clone()),
    ] {
        let (status, body) = request(target, &hosts).await;
        assert!([400, 403].contains(&status), "{target} {hosts}: {status} {body}");
    }
    assert_eq!(request("http://localhost:7432/api/runs", &own).await.0, 200);
    for host in ["localhost:7432", "LocalHost:7432", "127.0.0.1:7432", "[::1]:7432"] {
        assert_eq!(request("/api/runs", &format!("Host: {host}\r\n")).await.0, 200, "{host}");
    }
}

#[tokio::test]
async fn what_a_store_contains_is_not_a_page_on_its_own() {
    let server = TestServer::new();
    let id = &server.records[0].trial.id;
    for path in ["/api/runs", &format!("/api/trials/{id}"), &format!("/api/runs/{}", server.run())] {
        let response = server.get(path).await;
        assert_eq!(response.status, StatusCode::OK);
        assert_eq!(response.header(HeaderName::from_static("content-type")), "application/json");
        assert_eq!(response.header(HeaderName::from_static("x-content-type-options")), "nosniff");
        let policy = response.header(HeaderName::from_static("content-security-policy")).to_owned();
        assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
        assert!(!policy.contains("unsafe-eval") && !policy.contains("script-src 'unsafe"), "{policy}");
    }
}
