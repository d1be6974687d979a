//! Errors in connection parameters.

/// Errors in connection parameters. Texts are libpq's, if it has them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// No such keyword.
    #[error("invalid connection option \"{0}\"")]
    InvalidOption(String),
    /// A keyword without a value.
    #[error("missing \"=\" after \"{0}\" in connection info string")]
    MissingEquals(String),
    /// A quote without end.
    #[error("unterminated quoted string in connection info string")]
    UnterminatedQuote,
    /// `[` without `]`.
    #[error("end of string reached when looking for matching \"]\" in IPv6 host address in URI: \"{0}\"")]
    UnterminatedAddress(String),
    /// `[]`.
    #[error("IPv6 host address may not be empty in URI: \"{0}\"")]
    EmptyAddress(String),
    /// An unexpected character after `]`.
    #[error(
        "unexpected character \"{character}\" at position {position} in URI (expected \":\" or \"/\"): \"{uri}\""
    )]
    AfterAddress {
        /// The character.
        character: char,
        /// Its position, in bytes from 1.
        position: usize,
        /// The URI.
        uri: String,
    },
    /// `a=b=c`.
    #[error("extra key/value separator \"=\" in URI query parameter: \"{0}\"")]
    ExtraSeparator(String),
    /// A parameter without `=`.
    #[error("missing key/value separator \"=\" in URI query parameter: \"{0}\"")]
    MissingSeparator(String),
    /// No such keyword.
    #[error("invalid URI query parameter: \"{0}\"")]
    InvalidUriParameter(String),
    /// `%` without two hexadecimal digits.
    #[error("invalid percent-encoded token: \"{0}\"")]
    InvalidPercent(String),
    /// `%00`.
    #[error("forbidden value %00 in percent-encoded value: \"{0}\"")]
    PercentZero(String),
    /// Spaces within a part of a URI.
    #[error("unexpected spaces found in \"{0}\", use percent-encoded spaces (%20) instead")]
    Spaces(String),
    /// A decoded value that is not text.
    #[error("percent-encoded value is not UTF-8: \"{0}\"")]
    PercentNotText(String),
    /// `PGSERVICEFILE` names a file that cannot be read.
    #[error("service file \"{0}\" not found")]
    NoServiceFile(String),
    /// No file defines the service.
    #[error("definition of service \"{0}\" not found")]
    NoService(String),
    /// A line that is too long.
    #[error("line {line} too long in service file \"{file}\"")]
    ServiceLineTooLong {
        /// The file.
        file: String,
        /// Its line, from 1.
        line: usize,
    },
    /// A line that is not `keyword=value`.
    #[error("syntax error in service file \"{file}\", line {line}")]
    ServiceSyntax {
        /// The file.
        file: String,
        /// Its line, from 1.
        line: usize,
    },
    /// A service within a service.
    #[error("nested service specifications not supported in service file \"{file}\", line {line}")]
    NestedService {
        /// The file.
        file: String,
        /// Its line, from 1.
        line: usize,
    },
    /// The numbers of hosts and addresses differ.
    #[error("could not match {hosts} host names to {addresses} hostaddr values")]
    HostsAndAddresses {
        /// Number of hosts.
        hosts: usize,
        /// Number of addresses.
        addresses: usize,
    },
    /// The numbers of ports and hosts differ.
    #[error("could not match {ports} port numbers to {hosts} hosts")]
    PortsAndHosts {
        /// Number of ports.
        ports: usize,
        /// Number of hosts.
        hosts: usize,
    },
    /// `hostaddr` with something that is not an address.
    #[error("could not parse network address \"{0}\": Name or service not known")]
    InvalidAddress(String),
    /// A port beyond 65535, or 0.
    #[error("invalid port number: \"{0}\"")]
    InvalidPort(String),
    /// A value that should be an integer.
    #[error("invalid integer value \"{value}\" for connection option \"{option}\"")]
    InvalidInteger {
        /// The value.
        value: String,
        /// The keyword.
        option: &'static str,
    },
    /// An unknown value.
    #[error("invalid {option} value: \"{value}\"")]
    InvalidValue {
        /// The keyword.
        option: &'static str,
        /// The value.
        value: String,
    },
    /// A known value that is not supported.
    #[error("{option} value \"{value}\" is not supported by pgdyno{advice}")]
    UnsupportedValue {
        /// The keyword.
        option: &'static str,
        /// The value.
        value: String,
        /// Advice to the user.
        advice: &'static str,
    },
    /// An unknown TLS version.
    #[error("invalid \"{option}\" value: \"{value}\"")]
    InvalidTlsVersion {
        /// The keyword.
        option: &'static str,
        /// The value.
        value: String,
    },
    /// The oldest TLS version is newer than the newest.
    #[error("invalid SSL protocol version range")]
    TlsVersionRange,
    /// The oldest protocol is newer than the newest.
    #[error("\"min_protocol_version\" is greater than \"max_protocol_version\"")]
    ProtocolVersionRange,
    /// `sslnegotiation=direct` with a mode that may continue without TLS.
    #[error(
        "weak sslmode \"{0}\" may not be used with sslnegotiation=direct (use \"require\", \"verify-ca\", or \
         \"verify-full\")"
    )]
    WeakModeForDirect(String),
    /// `sslrootcert=system` with a mode that does not check names.
    #[error("weak sslmode \"{0}\" may not be used with sslrootcert=system (use \"verify-full\")")]
    WeakModeForSystem(String),
    /// `!method` after `method`.
    #[error("negative require_auth method \"{0}\" cannot be mixed with non-negative methods")]
    NegativeMethod(String),
    /// `method` after `!method`.
    #[error("require_auth method \"{0}\" cannot be mixed with negative methods")]
    PositiveMethod(String),
    /// The same method twice.
    #[error("require_auth method \"{0}\" is specified more than once")]
    RepeatedMethod(String),
    /// The process runs as a user without a name, and no role is given.
    #[error("local user with ID {0} does not exist; specify the role with -U or PGUSER")]
    NoLocalUser(u32),
}
