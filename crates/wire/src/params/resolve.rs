//! Resolution of parameters: precedence of given values, files, environment and defaults.

use std::path::PathBuf;

use nix::unistd::{Uid, User};

use super::conninfo;
use super::from_values::{self, Defaults};
use super::keywords::Values;
use super::password_file::{Key, PasswordFile};
use super::service::ServiceFiles;
use super::{ConnectParams, ParamError};

/// Parameters given by the user, in order: later ones win.
///
/// As with libpq's `PQconnectdbParams` and `expand_dbname`, the first `dbname` may be a connection string, whose values
/// win over those before it and not over those after it. psql and pgbench give host, port, user and password first.
#[derive(Clone, Debug, Default)]
pub struct Given(Vec<(String, String)>);

impl Given {
    /// No parameters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value of a parameter. An empty one is ignored.
    pub fn set(&mut self, keyword: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.0.push((keyword.into(), value.into()));
        self
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Given {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(values: I) -> Self {
        Self(values.into_iter().map(|(keyword, value)| (keyword.into(), value.into())).collect())
    }
}

/// Parameters, and warnings for the user.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The parameters.
    pub params: ConnectParams,
    /// Warnings, each a line without its end.
    pub warnings: Vec<String>,
}

/// Socket directory of Debian and similar distributions.
const PACKAGED_SOCKETS: &str = "/var/run/postgresql";

/// Default socket directory of PostgreSQL.
const DEFAULT_SOCKETS: &str = "/tmp";

impl ConnectParams {
    /// Resolves parameters in libpq's order: given ones, then a service (`service`, `PGSERVICE`) of `PGSERVICEFILE`,
    /// `~/.pg_service.conf` or `PGSYSCONFDIR`, then the environment, then defaults; the password of each host also from
    /// the password file.
    ///
    /// libpq has its default directory of Unix sockets compiled in. Here it is `/var/run/postgresql` if that exists, as
    /// in packages of Debian and Red Hat, and `/tmp` otherwise. Without `PGSYSCONFDIR`, there is no system-wide service
    /// file.
    ///
    /// # Errors
    ///
    /// In libpq's words: an invalid keyword, value, connection string or service. Unlike in libpq, all values are
    /// checked before a connection is tried.
    pub fn resolve(
        given: &Given,
        environment: &impl Fn(&str) -> Option<String>,
    ) -> Result<Resolved, ParamError> {
        let mut values = expand(given)?;
        let home = home(environment);
        if let Some(service) = values.get("service").map(str::to_owned).or_else(|| environment("PGSERVICE")) {
            let files = ServiceFiles {
                file: environment("PGSERVICEFILE").map(PathBuf::from),
                home: home.clone(),
                system: environment("PGSYSCONFDIR").map(PathBuf::from),
            };
            files.look_up(&service, &mut values)?;
        }
        values.fill_from_environment(environment);
        apply_sslmode_defaults(&mut values, environment)?;
        let user = match values.given("user") {
            Some(user) => user.to_owned(),
            None => local_user()?,
        };
        let defaults =
            Defaults { home: home.clone(), user, sockets: default_sockets(), charset: charset(environment) };
        let mut params = from_values::from_values(&values, &defaults)?;
        params.settings = session_settings(environment);
        let mut warnings = Vec::new();
        if values.given("password").is_none() {
            let own = home.map(|home| home.join(".pgpass"));
            params.password_file = values.given("passfile").map(PathBuf::from).or(own);
            look_up_passwords(&mut params, defaults.sockets, &mut warnings);
        }
        if let Some(file) = values.given("sslkeylogfile") {
            warnings
                .push(format!("WARNING: SSL keys are not logged to \"{file}\": pgdyno does not support it"));
        }
        Ok(Resolved { params, warnings })
    }
}

fn expand(given: &Given) -> Result<Values, ParamError> {
    let mut values = Values::default();
    let mut names = 0;
    for (keyword, value) in &given.0 {
        names += usize::from(keyword == "dbname");
        if value.is_empty() {
            continue;
        }
        if keyword == "dbname" && names == 1 && conninfo::is_connection_string(value) {
            values.override_by(conninfo::parse(value)?);
        } else {
            values.set(keyword, value.clone())?;
        }
    }
    Ok(values)
}

fn home(environment: &impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let from_variable = environment("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    from_variable.or_else(|| Some(User::from_uid(Uid::effective()).ok()??.dir))
}

fn local_user() -> Result<String, ParamError> {
    let uid = Uid::effective();
    match User::from_uid(uid) {
        Ok(Some(user)) => Ok(user.name),
        _ => Err(ParamError::NoLocalUser(uid.as_raw())),
    }
}

fn default_sockets() -> &'static str {
    let is_packaged = std::fs::metadata(PACKAGED_SOCKETS).is_ok_and(|meta| meta.is_dir());
    if is_packaged { PACKAGED_SOCKETS } else { DEFAULT_SOCKETS }
}

/// `sslmode` of an obsolete variable, and of roots that require the strongest mode.
fn apply_sslmode_defaults(
    values: &mut Values,
    environment: &impl Fn(&str) -> Option<String>,
) -> Result<(), ParamError> {
    if environment("PGREQUIRESSL").is_some_and(|value| value.starts_with('1')) {
        values.set_default("sslmode", "require")?;
    }
    if values.get("sslrootcert") == Some("system") {
        values.set_default("sslmode", "verify-full")?;
    }
    Ok(())
}

/// The encoding that the locale names, for `client_encoding=auto`.
fn charset(environment: &impl Fn(&str) -> Option<String>) -> String {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(environment).find(|value| !value.is_empty());
    let charset =
        locale.as_deref().and_then(|locale| locale.split_once('.')).map_or("", |(_, charset)| charset);
    let charset = charset.split('@').next().unwrap_or_default().to_ascii_lowercase().replace(['-', '_'], "");
    match charset.as_str() {
        "utf8" => "UTF8",
        "iso88591" => "LATIN1",
        "iso88592" => "LATIN2",
        "iso88595" => "ISO_8859_5",
        "iso885915" => "LATIN9",
        "koi8r" => "KOI8R",
        "koi8u" => "KOI8U",
        "eucjp" => "EUC_JP",
        "euckr" => "EUC_KR",
        "gb2312" | "euccn" => "EUC_CN",
        "gbk" => "GBK",
        "gb18030" => "GB18030",
        "big5" => "BIG5",
        _ => "SQL_ASCII",
    }
    .to_owned()
}

/// Settings of every session that libpq takes from the environment.
fn session_settings(environment: &impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let variables = [("PGDATESTYLE", "datestyle"), ("PGTZ", "timezone"), ("PGGEQO", "geqo")];
    let set = variables.into_iter().filter_map(|(variable, name)| Some((name, environment(variable)?)));
    let set = set.filter(|(_, value)| !value.eq_ignore_ascii_case("default"));
    set.map(|(name, value)| (name.to_owned(), value)).collect()
}

fn look_up_passwords(params: &mut ConnectParams, sockets: &str, warnings: &mut Vec<String>) {
    let Some(path) = &params.password_file else { return };
    let file = match PasswordFile::read(path) {
        Ok(Some(file)) => file,
        Ok(None) => return,
        Err(warning) => return warnings.push(warning.to_string()),
    };
    for host in &mut params.hosts {
        let name = match &host.hostaddr {
            Some(address) if host.host.is_empty() => address.to_string(),
            _ if host.host == sockets => "localhost".to_owned(),
            _ => host.host.clone(),
        };
        let port = host.port.to_string();
        let key = Key { host: &name, port: &port, database: &params.database, user: &params.user };
        host.password = file.password(&key).filter(|password| !password.is_empty());
        host.password_from_file = host.password.is_some();
    }
}
