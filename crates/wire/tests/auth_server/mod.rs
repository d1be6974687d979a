//! A server with TLS, password and certificate authentication, and the parameters to reach it.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use host::{Cache, NoProgress};
use model::message::Endpoint;
use model::workload::Transport;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair};
use server::{Cluster, Server, StopMode};
use wire::blocking::Session;
use wire::{ConnectParams, Given};

/// Majors of tests that depend on the server's: 13 does not report the kind of a session, and supports neither the
/// newest protocol nor direct TLS.
pub(crate) const MAJORS: [&str; 2] = ["13", NEWEST];

/// Major of tests for which any server is suitable.
pub(crate) const NEWEST: &str = "18";

/// Roles are named after their authentication.
const HBA: &str = "local all all trust
hostssl all only_tls all trust
hostnossl all only_plain all trust
hostssl all certified all cert
host all scram all scram-sha-256
host all md5 all md5
host all clear all password
host all postgres all trust
";

const ROLES: &str = "CREATE ROLE only_tls LOGIN; CREATE ROLE only_plain LOGIN; CREATE ROLE certified LOGIN;
CREATE ROLE read_only LOGIN;
ALTER ROLE read_only SET default_transaction_read_only = on;
SET password_encryption = 'scram-sha-256';
CREATE ROLE scram LOGIN PASSWORD 'of scram'; CREATE ROLE clear LOGIN PASSWORD 'of clear';
SET password_encryption = 'md5';
CREATE ROLE md5 LOGIN PASSWORD 'of md5';";

/// A server, and a directory with the files of its clients.
pub(crate) struct AuthServer {
    server: Server,
    files: tempfile::TempDir,
}

/// Kind of a server's certificate.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Certificate {
    /// None: no TLS.
    None,
    /// For `localhost`, signed by the issuer.
    Signed,
    /// Of X.509 version 1, for the common name `localhost`, signed by the issuer.
    Version1,
    /// Self-signed as issuers are, for the common name `localhost`; a copy is the clients' root.
    SelfSigned,
}

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn issuer(name: &str) -> Issuer {
    let mut params = named(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

impl AuthServer {
    pub(crate) fn new(major: &str, certificate: Certificate) -> Self {
        Self::start(cluster(major), certificate)
    }

    /// A standby without a primary.
    pub(crate) fn standby(major: &str) -> Self {
        let wal_level = [("wal_level".to_owned(), "replica".to_owned())].into();
        let cluster = cluster(major).start(&wal_level).unwrap().stop(StopMode::Fast).unwrap();
        write_file(&cluster, "standby.signal", b"");
        Self::start(cluster, Certificate::None)
    }

    fn start(cluster: Cluster, certificate: Certificate) -> Self {
        let files = tempfile::tempdir().unwrap();
        let cluster = cluster.with_rules(HBA);
        let issuer = issuer("the issuer");
        let write = |name: &str, content: &str| {
            fs::write(files.path().join(name), content).unwrap();
            fs::set_permissions(files.path().join(name), Permissions::from_mode(0o600)).unwrap();
        };
        write("root.crt", &issuer.as_ref().pem());
        write("issuer.key", &issuer.key().serialize_pem());
        write("other.crt", &self::issuer("somebody else").as_ref().pem());
        let client_key = KeyPair::generate().unwrap();
        write("client.crt", &named("certified").signed_by(&client_key, &issuer).unwrap().pem());
        write("client.key", &client_key.serialize_pem());
        let key = KeyPair::generate().unwrap();
        write("server.key", &key.serialize_pem());
        match certificate {
            Certificate::None => {}
            Certificate::Signed => {
                let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
                params.distinguished_name = DistinguishedName::new();
                write("server.crt", &params.signed_by(&key, &issuer).unwrap().pem());
            }
            Certificate::Version1 => {
                // As in PostgreSQL's manual.
                openssl(files.path(), "req -new -key server.key -subj /CN=localhost -out server.csr");
                openssl(
                    files.path(),
                    "x509 -req -in server.csr -days 30 -CA root.crt -CAkey issuer.key -CAcreateserial -out server.crt",
                );
            }
            Certificate::SelfSigned => {
                openssl(
                    files.path(),
                    "req -new -x509 -days 30 -nodes -newkey rsa:2048 -subj /CN=localhost -keyout server.key -out root.crt",
                );
                fs::copy(files.path().join("root.crt"), files.path().join("server.crt")).unwrap();
            }
        }
        let mut settings = vec![("autovacuum", "off"), ("fsync", "off"), ("wal_level", "replica")];
        if certificate != Certificate::None {
            for name in ["server.crt", "server.key", "root.crt"] {
                write_file(&cluster, name, &fs::read(files.path().join(name)).unwrap());
            }
            settings.extend([
                ("ssl", "on"),
                ("ssl_cert_file", "server.crt"),
                ("ssl_key_file", "server.key"),
                ("ssl_ca_file", "root.crt"),
            ]);
        }
        let settings = settings.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { server: cluster.start(&settings.collect()).unwrap(), files }
    }

    /// Creates roles to log in as.
    pub(crate) fn with_roles(self) -> Self {
        self.control().execute(ROLES).unwrap();
        self
    }

    pub(crate) fn port(&self) -> u16 {
        match self.server.endpoint(Transport::Tcp) {
            Endpoint::Tcp { port, .. } => port,
            other => panic!("not TCP: {other:?}"),
        }
    }

    /// The path of one of the clients' files.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// The parameters of a connection string, in which `{dir}` is the directory of the clients' files. The defaults are
    /// TCP to `localhost` and the role `postgres`.
    pub(crate) fn params(&self, conninfo: &str) -> ConnectParams {
        let dir = self.files.path().to_str().unwrap();
        let mut given = Given::new();
        given.set("host", "localhost").set("port", self.port().to_string()).set("user", server::USER);
        given.set("dbname", format!("dbname=postgres {}", conninfo.replace("{dir}", dir)));
        // No variable but the home directory, which is empty.
        let home = |name: &str| (name == "HOME").then(|| format!("{dir}/home"));
        ConnectParams::resolve(&given, &home).unwrap().params
    }

    pub(crate) fn connect(&self, conninfo: &str) -> Result<Session, String> {
        Session::connect(&self.params(conninfo)).map_err(|error| error.to_string())
    }

    /// A session by the socket, as the superuser.
    pub(crate) fn control(&self) -> Session {
        self.connect(&format!("host={}", self.socket_directory())).unwrap()
    }

    /// The directory of the socket.
    pub(crate) fn socket_directory(&self) -> String {
        match self.server.endpoint(Transport::Unix) {
            Endpoint::Unix { directory, .. } => directory,
            other => panic!("not a socket: {other:?}"),
        }
    }

    /// The TLS of a connection string's session, as the server reports it; none if unencrypted.
    pub(crate) fn tls_version(&self, conninfo: &str) -> Result<Option<String>, String> {
        let mut session = self.connect(conninfo)?;
        let reported: Option<(String, String)> = session
            .query_opt("SELECT version, cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl")
            .map_err(|error| error.to_string())?;
        let ours = session.tls().map(|tls| tls.version().to_owned());
        assert_eq!(reported.map(|(version, _)| version), ours);
        Ok(ours)
    }
}

/// A port without a listener.
pub(crate) fn unused_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub(crate) fn has_openssl() -> bool {
    Command::new("openssl").arg("version").output().is_ok_and(|output| output.status.success())
}

/// Runs openssl in a directory.
pub(crate) fn openssl(directory: &Path, arguments: &str) {
    let output = Command::new("openssl").args(arguments.split(' ')).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Writes a file into a data directory, with the directory's owner.
fn write_file(cluster: &Cluster, name: &str, content: &[u8]) {
    let data = cluster.data_directory();
    let owner = fs::metadata(&data).unwrap();
    let path = data.join(name);
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
}

fn cluster(major: &str) -> Cluster {
    let cache = Cache::open().unwrap();
    let installation = server::install(&cache, major, &NoProgress).unwrap();
    server::template(&cache, &installation, &[], &1.into(), None, &NoProgress)
        .unwrap()
        .clone_cluster(&cache, &NoProgress)
        .unwrap()
}
