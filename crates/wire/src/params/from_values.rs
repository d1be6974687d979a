//! From texts to parameters: parses and checks every value.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::keywords::Values;
use super::{
    ChannelBinding, ConnectParams, Host, Keepalives, ParamError, ProtocolVersion, RequireAuth, RootCert,
    SslMode, SslNegotiation, SslParams, TargetSessionAttrs, TlsVersion,
};

/// PostgreSQL's default port.
const DEFAULT_PORT: &str = "5432";

/// Sources of defaults for values that are not given.
pub(super) struct Defaults {
    pub(super) home: Option<PathBuf>,
    pub(super) user: String,
    /// Directory of Unix sockets.
    pub(super) sockets: &'static str,
    /// `client_encoding` for the locale.
    pub(super) charset: String,
}

/// Parses parameters. The password file is not read.
pub(super) fn from_values(values: &Values, defaults: &Defaults) -> Result<ConnectParams, ParamError> {
    let user = defaults.user.clone();
    let database = values.given("dbname").unwrap_or(&user).to_owned();
    let owned = |name| values.given(name).map(str::to_owned);
    let (min_protocol_version, max_protocol_version) = protocol_versions(values)?;
    let client_encoding = owned("client_encoding").map(|encoding| match encoding.as_str() {
        "auto" => defaults.charset.clone(),
        _ => encoding,
    });
    // A given name overrides the fallback even if empty.
    let application_name = values.get("application_name").or(values.get("fallback_application_name"));
    let channel_bindings = [
        ("disable", ChannelBinding::Disable),
        ("prefer", ChannelBinding::Prefer),
        ("require", ChannelBinding::Require),
    ];
    let session_attrs = [
        ("any", TargetSessionAttrs::Any),
        ("read-write", TargetSessionAttrs::ReadWrite),
        ("read-only", TargetSessionAttrs::ReadOnly),
        ("primary", TargetSessionAttrs::Primary),
        ("standby", TargetSessionAttrs::Standby),
        ("prefer-standby", TargetSessionAttrs::PreferStandby),
    ];
    let hosts = hosts(values, defaults)?;
    let require_auth = require_auth(values.given("require_auth"))?;
    let channel_binding = choice(values, "channel_binding", channel_bindings)?.unwrap_or_default();
    let ssl = ssl(values, defaults.home.as_deref())?;
    check_gss(values)?;
    Ok(ConnectParams {
        hosts,
        user,
        database,
        application_name: application_name.map(str::to_owned),
        options: owned("options"),
        client_encoding,
        replication: owned("replication"),
        settings: Vec::new(),
        connect_timeout: positive(values, "connect_timeout")?.map(|s| Duration::from_secs(s.into())),
        keepalives: keepalives(values)?,
        tcp_user_timeout: positive(values, "tcp_user_timeout")?.map(|ms| Duration::from_millis(ms.into())),
        ssl,
        channel_binding,
        require_auth,
        require_peer: owned("requirepeer"),
        target_session_attrs: choice(values, "target_session_attrs", session_attrs)?.unwrap_or_default(),
        load_balance_hosts: choice(values, "load_balance_hosts", [("disable", false), ("random", true)])?
            .unwrap_or_default(),
        min_protocol_version,
        max_protocol_version,
        password_file: None,
        scram_keys: Default::default(),
    })
}

fn hosts(values: &Values, defaults: &Defaults) -> Result<Vec<Host>, ParamError> {
    let list = |name| values.given(name).map(|list| list.split(',').collect::<Vec<_>>());
    let (names, addresses, ports) = (list("host"), list("hostaddr"), list("port"));
    let count = addresses.as_ref().or(names.as_ref()).map_or(1, Vec::len);
    if let Some(names) = names.as_ref().filter(|names| names.len() != count) {
        return Err(ParamError::HostsAndAddresses { hosts: names.len(), addresses: count });
    }
    if let Some(ports) = ports.as_ref().filter(|ports| ports.len() != 1 && ports.len() != count) {
        return Err(ParamError::PortsAndHosts { ports: ports.len(), hosts: count });
    }
    let at = |list: &Option<Vec<&str>>, at: usize| -> String {
        let list = list.as_deref().unwrap_or_default();
        let value = if list.len() == 1 { list.first() } else { list.get(at) };
        value.copied().unwrap_or_default().to_owned()
    };
    let host = |number| {
        let address = at(&addresses, number);
        let hostaddr: Option<IpAddr> = match address.as_str() {
            "" => None,
            text => Some(text.parse().map_err(|_| ParamError::InvalidAddress(address.clone()))?),
        };
        let host = match at(&names, number) {
            none if none.is_empty() && hostaddr.is_none() => defaults.sockets.to_owned(),
            name => name,
        };
        let port = port(&at(&ports, number))?;
        let password = values.given("password").map(str::to_owned);
        Ok(Host { host, hostaddr, port, password, password_from_file: false })
    };
    (0..count).map(host).collect()
}

fn port(text: &str) -> Result<u16, ParamError> {
    let text = if text.is_empty() { DEFAULT_PORT } else { text };
    let number = integer(text, "port")?;
    match u16::try_from(number) {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(ParamError::InvalidPort(text.to_owned())),
    }
}

/// An integer as C's `strtol` parses it, with spaces on both sides.
fn integer(text: &str, option: &'static str) -> Result<i32, ParamError> {
    let invalid = || ParamError::InvalidInteger { value: text.to_owned(), option };
    text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b').parse().map_err(|_| invalid())
}

/// A number; none if it is not above 0.
fn positive(values: &Values, name: &'static str) -> Result<Option<u32>, ParamError> {
    let Some(text) = values.get(name) else { return Ok(None) };
    Ok(u32::try_from(integer(text, name)?).ok().filter(|number| *number > 0))
}

fn keepalives(values: &Values) -> Result<Keepalives, ParamError> {
    let on = values.get("keepalives").map(|text| integer(text, "keepalives")).transpose()?;
    let seconds = |name| Ok::<_, ParamError>(positive(values, name)?.map(|s| Duration::from_secs(s.into())));
    Ok(Keepalives {
        on: on.is_none_or(|on| on != 0),
        idle: seconds("keepalives_idle")?,
        interval: seconds("keepalives_interval")?,
        count: positive(values, "keepalives_count")?,
    })
}

/// One of several values.
fn choice<T, const N: usize>(
    values: &Values,
    option: &'static str,
    choices: [(&str, T); N],
) -> Result<Option<T>, ParamError> {
    let Some(value) = values.get(option) else { return Ok(None) };
    let chosen = choices.into_iter().find(|(name, _)| *name == value).map(|(_, choice)| choice);
    chosen.map(Some).ok_or_else(|| ParamError::InvalidValue { option, value: value.to_owned() })
}

fn protocol_versions(values: &Values) -> Result<(ProtocolVersion, ProtocolVersion), ParamError> {
    use ProtocolVersion::{V3_0, V3_2};
    let versions = [("3.0", V3_0), ("3.2", V3_2), ("latest", V3_2)];
    let min = choice(values, "min_protocol_version", versions)?.unwrap_or(V3_0);
    // Newer protocols are requested only if required: some poolers would break.
    let max = choice(values, "max_protocol_version", versions)?.unwrap_or(min);
    if min > max { Err(ParamError::ProtocolVersionRange) } else { Ok((min, max)) }
}

fn ssl(values: &Values, home: Option<&Path>) -> Result<SslParams, ParamError> {
    let modes = [
        ("disable", SslMode::Disable),
        ("allow", SslMode::Allow),
        ("prefer", SslMode::Prefer),
        ("require", SslMode::Require),
        ("verify-ca", SslMode::VerifyCa),
        ("verify-full", SslMode::VerifyFull),
    ];
    let mode = choice(values, "sslmode", modes)?.unwrap_or_default();
    let mode_text = || values.get("sslmode").unwrap_or("prefer").to_owned();
    let negotiations = [("postgres", SslNegotiation::Postgres), ("direct", SslNegotiation::Direct)];
    let negotiation = choice(values, "sslnegotiation", negotiations)?.unwrap_or_default();
    let is_weak = matches!(mode, SslMode::Disable | SslMode::Allow | SslMode::Prefer);
    if negotiation == SslNegotiation::Direct && is_weak {
        return Err(ParamError::WeakModeForDirect(mode_text()));
    }
    let own = |file: &str| home.map(|home| home.join(".postgresql").join(file));
    let path = |name, file| values.given(name).map(PathBuf::from).or_else(|| own(file));
    let root_cert = match values.given("sslrootcert") {
        Some("system") if mode != SslMode::VerifyFull => {
            return Err(ParamError::WeakModeForSystem(mode_text()));
        }
        Some("system") => RootCert::System,
        _ => path("sslrootcert", "root.crt").map_or(RootCert::None, RootCert::File),
    };
    let (min_version, max_version) = tls_versions(values)?;
    let crl_dir = values.given("sslcrldir").map(PathBuf::from);
    let crl = match values.given("sslcrl") {
        None if crl_dir.is_some() => None,
        _ => path("sslcrl", "root.crl"),
    };
    Ok(SslParams {
        mode,
        negotiation,
        root_cert,
        crl,
        crl_dir,
        cert: path("sslcert", "postgresql.crt"),
        key: path("sslkey", "postgresql.key"),
        send_cert: send_cert(values)?,
        sni: values.get("sslsni").is_none_or(|value| value.starts_with('1')),
        min_version,
        max_version,
    })
}

fn send_cert(values: &Values) -> Result<bool, ParamError> {
    match choice(values, "sslcertmode", [("disable", Some(false)), ("allow", Some(true)), ("require", None)])?
    {
        None => Ok(true),
        Some(Some(sends)) => Ok(sends),
        Some(None) => Err(unsupported("sslcertmode", "require", ": use \"allow\"")),
    }
}

fn tls_versions(values: &Values) -> Result<(TlsVersion, Option<TlsVersion>), ParamError> {
    let (min_name, max_name) = ("ssl_min_protocol_version", "ssl_max_protocol_version");
    // rustls does not support old versions: as lower bounds they are equivalent to the next one.
    let number = |option| match values.given(option) {
        None => Ok(None),
        Some(text) => match text.to_ascii_lowercase().as_str() {
            "tlsv1" => Ok(Some(0)),
            "tlsv1.1" => Ok(Some(1)),
            "tlsv1.2" => Ok(Some(2)),
            "tlsv1.3" => Ok(Some(3)),
            _ => Err(ParamError::InvalidTlsVersion { option, value: text.to_owned() }),
        },
    };
    let (min, max) = (number(min_name)?, number(max_name)?);
    // libpq's own default is a bound like any other.
    let min = if values.get(min_name).is_none() { Some(2) } else { min };
    if min.zip(max).is_some_and(|(min, max)| min > max) {
        return Err(ParamError::TlsVersionRange);
    }
    let max = match max {
        None => None,
        Some(2) => Some(TlsVersion::V1_2),
        Some(3) => Some(TlsVersion::V1_3),
        Some(_) => {
            let value = values.given(max_name).unwrap_or_default();
            return Err(unsupported(max_name, value, ": the oldest supported version is TLSv1.2"));
        }
    };
    Ok((if min == Some(3) { TlsVersion::V1_3 } else { TlsVersion::V1_2 }, max))
}

/// A libpq without GSSAPI accepts these values, too.
fn check_gss(values: &Values) -> Result<(), ParamError> {
    match choice(values, "gssencmode", [("disable", false), ("prefer", false), ("require", true)])? {
        Some(true) => {
            Err(unsupported("gssencmode", "require", ", which does not implement GSSAPI: use sslmode"))
        }
        _ => Ok(()),
    }
}

fn unsupported(option: &'static str, value: &str, advice: &'static str) -> ParamError {
    ParamError::UnsupportedValue { option, value: value.to_owned(), advice }
}

fn require_auth(text: Option<&str>) -> Result<RequireAuth, ParamError> {
    let Some(text) = text else { return Ok(RequireAuth::default()) };
    let negative = text.starts_with('!');
    // The named methods are accepted, or all others.
    let mut required = RequireAuth {
        text: text.to_owned(),
        none: negative,
        password: negative,
        md5: negative,
        scram: negative,
    };
    let (mut gss, mut sspi, mut oauth) = (negative, negative, negative);
    for part in text.split(',') {
        let method = match part.strip_prefix('!') {
            Some(_) if !negative => return Err(ParamError::NegativeMethod(part.to_owned())),
            None if negative => return Err(ParamError::PositiveMethod(part.to_owned())),
            Some(method) => method,
            None => part,
        };
        let accepted = match method {
            "none" => &mut required.none,
            "password" => &mut required.password,
            "md5" => &mut required.md5,
            "scram-sha-256" => &mut required.scram,
            "gss" => &mut gss,
            "sspi" => &mut sspi,
            "oauth" => &mut oauth,
            _ => return Err(ParamError::InvalidValue { option: "require_auth", value: method.to_owned() }),
        };
        if *accepted != negative {
            return Err(ParamError::RepeatedMethod(part.to_owned()));
        }
        *accepted = !negative;
    }
    Ok(required)
}
