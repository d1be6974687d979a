//! Connection strings: `keyword = value` pairs and URIs.
//!
//! Source: PostgreSQL manual, "Connection Strings" of libpq.

use super::ParamError;
use super::keywords::Values;

/// Prefixes of URIs.
const SCHEMES: [&str; 2] = ["postgresql://", "postgres://"];

/// Keywords whose values are secret.
const SECRETS: [&str; 5] =
    ["password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret"];

/// Converts a connection string of either form to keywords and values for display and storage: without passwords and
/// other secrets, and with some values replaced.
///
/// # Errors
///
/// If it is not a connection string. The error may quote a part of it.
pub fn without_secrets(conninfo: &str, replaced: &[(&str, &str)]) -> Result<String, ParamError> {
    let mut values = parse(conninfo)?;
    for (keyword, value) in replaced {
        values.set(keyword, (*value).to_owned())?;
    }
    let shown = values.iter().filter(|(keyword, _)| !SECRETS.contains(keyword));
    let pairs: Vec<String> = shown.map(|(keyword, value)| format!("{keyword}={}", quoted(value))).collect();
    Ok(pairs.join(" "))
}

/// A value as written in a connection string.
fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:/@+".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
    }
}

/// Whether a database name is a connection string instead.
pub(super) fn is_connection_string(text: &str) -> bool {
    without_scheme(text).is_some() || text.contains('=')
}

fn without_scheme(text: &str) -> Option<&str> {
    SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme))
}

/// Parses a connection string of either form.
pub(super) fn parse(text: &str) -> Result<Values, ParamError> {
    match without_scheme(text) {
        Some(rest) => parse_uri(text, rest),
        None => parse_pairs(text),
    }
}

/// Whether C's `isspace` accepts the character.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r')
}

fn parse_pairs(text: &str) -> Result<Values, ParamError> {
    let mut values = Values::default();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let name_end = rest.find(|c| c == '=' || is_space(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(name_end);
        let Some(after) = after.trim_start_matches(is_space).strip_prefix('=') else {
            return Err(ParamError::MissingEquals(name.to_owned()));
        };
        let (value, after) = take_value(after.trim_start_matches(is_space))?;
        values.set(name, value)?;
        rest = after.trim_start_matches(is_space);
    }
    Ok(values)
}

/// A value, in quotes or not, and the rest of the text.
fn take_value(text: &str) -> Result<(String, &str), ParamError> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut chars = text.char_indices().skip(usize::from(quoted));
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            '\'' if quoted => return Ok((value, &text[at + 1..])),
            c if !quoted && is_space(c) => return Ok((value, &text[at..])),
            c => value.push(c),
        }
    }
    if quoted { Err(ParamError::UnterminatedQuote) } else { Ok((value, "")) }
}

/// `scheme://[user[:password]@][host][:port][,...][/dbname][?name=value&...]`
fn parse_uri(uri: &str, rest: &str) -> Result<Values, ParamError> {
    let mut values = Values::default();
    let mut set = |name: &str, text: &str| match text {
        "" => Ok(()),
        text => values.set(name, decode(text)?),
    };
    let mut rest = rest;
    if let Some(at) = rest.find(['@', '/']).filter(|at| rest[*at..].starts_with('@')) {
        let (user, password) = rest[..at].split_once(':').unwrap_or((&rest[..at], ""));
        set("user", user)?;
        set("password", password)?;
        rest = &rest[at + 1..];
    }
    let (mut hosts, mut ports) = (String::new(), String::new());
    loop {
        let host;
        (host, rest) = take_host(uri, rest)?;
        hosts.push_str(host);
        if let Some(after) = rest.strip_prefix(':') {
            let (port, after) = split_before(after, ['/', '?', ',']);
            ports.push_str(port);
            rest = after;
        }
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None => break,
        }
        hosts.push(',');
        ports.push(',');
    }
    set("host", &hosts)?;
    set("port", &ports)?;
    if let Some(after) = rest.strip_prefix('/') {
        let (database, after) = split_before(after, ['?']);
        // An empty name would prevent the use of PGDATABASE.
        set("dbname", database)?;
        rest = after;
    }
    if let Some(parameters) = rest.strip_prefix('?') {
        parse_parameters(parameters, &mut values)?;
    }
    Ok(values)
}

/// A host of a URI, and the rest of it.
fn take_host<'a>(uri: &str, rest: &'a str) -> Result<(&'a str, &'a str), ParamError> {
    let Some(address) = rest.strip_prefix('[') else {
        return Ok(split_before(rest, [':', '/', '?', ',']));
    };
    let (host, after) =
        address.split_once(']').ok_or_else(|| ParamError::UnterminatedAddress(uri.to_owned()))?;
    if host.is_empty() {
        return Err(ParamError::EmptyAddress(uri.to_owned()));
    }
    match after.chars().next() {
        Some(character) if !":/?,".contains(character) => {
            let position = uri.len() - after.len() + 1;
            Err(ParamError::AfterAddress { character, position, uri: uri.to_owned() })
        }
        _ => Ok((host, after)),
    }
}

fn split_before<const N: usize>(text: &str, ends: [char; N]) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

fn parse_parameters(parameters: &str, values: &mut Values) -> Result<(), ParamError> {
    let mut rest = parameters;
    while !rest.is_empty() {
        let (parameter, after) = rest.split_once('&').unwrap_or((rest, ""));
        rest = after;
        let (name, value) =
            parameter.split_once('=').ok_or_else(|| ParamError::MissingSeparator(parameter.to_owned()))?;
        if value.contains('=') {
            return Err(ParamError::ExtraSeparator(name.to_owned()));
        }
        let (name, value) = (decode(name)?, decode(value)?);
        // JDBC's way of requesting TLS.
        let (name, value) = match (name.as_str(), value.as_str()) {
            ("ssl", "true") => ("sslmode".to_owned(), "require".to_owned()),
            _ => (name, value),
        };
        values.set(&name, value).map_err(|error| match error {
            ParamError::InvalidOption(name) => ParamError::InvalidUriParameter(name),
            error => error,
        })?;
    }
    Ok(())
}

/// Decodes percent-encoding. Spaces around a part are dropped.
fn decode(text: &str) -> Result<String, ParamError> {
    let trimmed = text.trim_matches(' ');
    let mut bytes = Vec::with_capacity(trimmed.len());
    let mut rest = trimmed.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'%' => {
                let digit = |at: usize| char::from(*rest.get(at)?).to_digit(16);
                let (Some(high), Some(low)) = (digit(0), digit(1)) else {
                    return Err(ParamError::InvalidPercent(text.to_owned()));
                };
                if (high, low) == (0, 0) {
                    return Err(ParamError::PercentZero(text.to_owned()));
                }
                bytes.push((high << 4 | low) as u8);
                rest = &rest[2..];
            }
            b' ' => return Err(ParamError::Spaces(text.to_owned())),
            byte => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| ParamError::PercentNotText(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(value: &str) -> String {
        value.bytes().map(|byte| format!("%{byte:02x}")).collect()
    }

    proptest! {
        #[test]
        fn quoted_values_round_trip(user in "[^\0]*", password in "[^\0]*") {
            let values = parse(&format!("user={} password = {}", quoted(&user), quoted(&password))).unwrap();
            prop_assert_eq!(values.get("user"), Some(user.as_str()));
            prop_assert_eq!(values.get("password"), Some(password.as_str()));
        }

        #[test]
        fn percent_encoded_values_round_trip(user in "[^\0]+", host in "[^\0]+", name in "[^\0]+") {
            let (user_text, host_text, name_text) = (encoded(&user), encoded(&host), encoded(&name));
            let uri = format!("postgresql://{user_text}@{host_text}:1/?application_name={name_text}");
            let values = parse(&uri).unwrap();
            prop_assert_eq!(values.get("user"), Some(user.as_str()));
            prop_assert_eq!(values.get("host"), Some(host.as_str()));
            prop_assert_eq!(values.get("port"), Some("1"));
            prop_assert_eq!(values.get("application_name"), Some(name.as_str()));
        }

        #[test]
        fn secrets_are_removed(user in "[^\0]*", password in "[^\0]+") {
            let conninfo = format!("host=a user={} password={} port=1", quoted(&user), quoted(&password));
            let shown = without_secrets(&conninfo, &[("port", "5433")]).unwrap();
            let values = parse(&shown).unwrap();
            prop_assert_eq!(values.get("user"), Some(user.as_str()));
            prop_assert_eq!((values.get("host"), values.get("port")), (Some("a"), Some("5433")));
            prop_assert_eq!(values.get("password"), None);
            prop_assert_eq!(without_secrets(&shown, &[]), Ok(shown));
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in any::<String>(), uri in "[a=:/?@&,%\\[\\]0 ]*") {
            let _ = parse(&text);
            let _ = parse(&format!("postgresql://{uri}"));
        }
    }
}
