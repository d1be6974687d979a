//! Keywords of connection parameters, and the values known so far.

use super::ParamError;

/// A connection parameter.
#[derive(Debug)]
pub(super) struct Keyword {
    pub(super) name: &'static str,
    /// Environment variable with its default.
    pub(super) variable: Option<&'static str>,
}

const fn keyword(name: &'static str, variable: &'static str) -> Keyword {
    Keyword { name, variable: Some(variable) }
}

const fn bare(name: &'static str) -> Keyword {
    Keyword { name, variable: None }
}

/// All keywords of libpq 18. Unused ones, such as `gsslib`, are accepted.
pub(super) const KEYWORDS: [Keyword; 50] = [
    keyword("service", "PGSERVICE"),
    keyword("user", "PGUSER"),
    keyword("password", "PGPASSWORD"),
    keyword("passfile", "PGPASSFILE"),
    keyword("channel_binding", "PGCHANNELBINDING"),
    keyword("connect_timeout", "PGCONNECT_TIMEOUT"),
    keyword("dbname", "PGDATABASE"),
    keyword("host", "PGHOST"),
    keyword("hostaddr", "PGHOSTADDR"),
    keyword("port", "PGPORT"),
    keyword("client_encoding", "PGCLIENTENCODING"),
    keyword("options", "PGOPTIONS"),
    keyword("application_name", "PGAPPNAME"),
    bare("fallback_application_name"),
    bare("keepalives"),
    bare("keepalives_idle"),
    bare("keepalives_interval"),
    bare("keepalives_count"),
    bare("tcp_user_timeout"),
    keyword("sslmode", "PGSSLMODE"),
    keyword("sslnegotiation", "PGSSLNEGOTIATION"),
    keyword("sslcompression", "PGSSLCOMPRESSION"),
    keyword("sslcert", "PGSSLCERT"),
    keyword("sslkey", "PGSSLKEY"),
    keyword("sslcertmode", "PGSSLCERTMODE"),
    bare("sslpassword"),
    keyword("sslrootcert", "PGSSLROOTCERT"),
    keyword("sslcrl", "PGSSLCRL"),
    keyword("sslcrldir", "PGSSLCRLDIR"),
    keyword("sslsni", "PGSSLSNI"),
    keyword("requirepeer", "PGREQUIREPEER"),
    keyword("require_auth", "PGREQUIREAUTH"),
    keyword("min_protocol_version", "PGMINPROTOCOLVERSION"),
    keyword("max_protocol_version", "PGMAXPROTOCOLVERSION"),
    keyword("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    keyword("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    keyword("gssencmode", "PGGSSENCMODE"),
    keyword("krbsrvname", "PGKRBSRVNAME"),
    keyword("gsslib", "PGGSSLIB"),
    keyword("gssdelegation", "PGGSSDELEGATION"),
    bare("replication"),
    keyword("target_session_attrs", "PGTARGETSESSIONATTRS"),
    keyword("load_balance_hosts", "PGLOADBALANCEHOSTS"),
    bare("scram_client_key"),
    bare("scram_server_key"),
    bare("oauth_issuer"),
    bare("oauth_client_id"),
    bare("oauth_client_secret"),
    bare("oauth_scope"),
    bare("sslkeylogfile"),
];

/// Values by keyword, in the order of [`KEYWORDS`].
#[derive(Clone, Debug)]
pub(super) struct Values([Option<String>; KEYWORDS.len()]);

impl Default for Values {
    fn default() -> Self {
        Self([const { None }; KEYWORDS.len()])
    }
}

impl Values {
    /// Returns the value, also an empty one, which takes precedence over defaults.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0[index_of(name)?].as_deref()
    }

    /// The value, unless it is empty.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// Every keyword that has a value, with it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        KEYWORDS.iter().zip(&self.0).filter_map(|(keyword, value)| Some((keyword.name, value.as_deref()?)))
    }

    /// Stores a value, replacing any other.
    pub(super) fn set(&mut self, name: &str, value: String) -> Result<(), ParamError> {
        // An obsolete name with values of its own.
        if name == "requiressl" {
            let mode = if value.starts_with('1') { "require" } else { "prefer" };
            return self.set("sslmode", mode.to_owned());
        }
        let index = index_of(name).ok_or_else(|| ParamError::InvalidOption(name.to_owned()))?;
        self.0[index] = Some(value);
        Ok(())
    }

    /// Stores a value unless there is one.
    pub(super) fn set_default(&mut self, name: &str, value: impl Into<String>) -> Result<(), ParamError> {
        if self.get(name).is_some() { Ok(()) } else { self.set(name, value.into()) }
    }

    /// Overrides values with the other's.
    pub(super) fn override_by(&mut self, other: Self) {
        for (value, new) in self.0.iter_mut().zip(other.0) {
            if new.is_some() {
                *value = new;
            }
        }
    }

    /// Fills in missing values from the environment.
    pub(super) fn fill_from_environment(&mut self, environment: &impl Fn(&str) -> Option<String>) {
        for (value, keyword) in self.0.iter_mut().zip(&KEYWORDS) {
            if value.is_none() {
                *value = keyword.variable.and_then(environment);
            }
        }
    }
}

fn index_of(name: &str) -> Option<usize> {
    KEYWORDS.iter().position(|keyword| keyword.name == name)
}
