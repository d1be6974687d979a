//! What is secret: the one list of names, settings and notations, and the masks for texts that are stored or shown.

mod campaign;
mod find;
mod line;
mod sql;

use std::ops::Range;

use crate::units::Size;

pub use campaign::{SecretPlace, campaign_secrets, mask_campaign, masked_keys};

/// Replacement for a secret.
pub const MASK: &str = "(masked)";

/// Words that mark a name as a secret's wherever they occur in it.
const SECRET_SUBSTRINGS: [&str; 8] =
    ["password", "passwd", "passphrase", "secret", "token", "credential", "apikey", "authorization"];
/// Words that do so only as a separate part, as in `rd.luks.key`.
const SECRET_WORDS: [&str; 10] =
    ["auth", "cred", "creds", "key", "keys", "pass", "passcode", "psk", "pw", "pwd"];
/// Last parts of names that are about a secret, and no secret themselves: `password_encryption`, `ssl_key_file`.
const HARMLESS_ENDINGS: [&str; 10] =
    ["check", "dir", "encryption", "file", "length", "method", "path", "required", "timeout", "type"];
/// libpq's list of accepted authentication methods.
const HARMLESS_NAMES: [&str; 1] = ["require_auth"];

/// Settings whose whole value is secret.
const SECRET_SETTINGS: [&str; 2] = ["primary_conninfo", "ssl_passphrase_command"];
/// Settings that are commands, which may contain secrets in any notation.
const COMMAND_SETTINGS: [&str; 4] =
    ["archive_cleanup_command", "archive_command", "recovery_end_command", "restore_command"];

/// Shortest secret that is searched for in other texts: shorter ones occur by chance.
const MIN_KNOWN_BYTES: usize = 4;

/// A value that is stored and shown with its secrets masked.
pub trait MaskSecrets {
    /// Masks its secrets. What is masked already stays as it is.
    fn mask_secrets(&mut self);
}

impl MaskSecrets for String {
    fn mask_secrets(&mut self) {
        *self = mask(self);
    }
}

impl<T: MaskSecrets> MaskSecrets for Option<T> {
    fn mask_secrets(&mut self) {
        self.iter_mut().for_each(T::mask_secrets);
    }
}

impl<T: MaskSecrets> MaskSecrets for Vec<T> {
    fn mask_secrets(&mut self) {
        self.iter_mut().for_each(T::mask_secrets);
    }
}

/// Whether a name looks like a secret's: `sshkey.password`, `--auth-token`, `AWS_SECRET_ACCESS_KEY`.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut parts = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    (has_secret_substring(&name) || parts.clone().any(|part| SECRET_WORDS.contains(&part)))
        && !parts.next_back().is_some_and(|last| HARMLESS_ENDINGS.contains(&last))
        && !HARMLESS_NAMES.contains(&name.as_str())
}

/// As [`is_secret_name`], for names in texts where `key` and `auth` are ordinary words.
fn is_surely_secret_name(name: &str) -> bool {
    is_secret_name(name) && has_secret_substring(&name.to_ascii_lowercase())
}

fn has_secret_substring(lower_case: &str) -> bool {
    SECRET_SUBSTRINGS.iter().any(|word| lower_case.contains(word))
}

/// Masks secrets in a text of words (a command, a log, a message, mount options): values of `name=value`, `"name":
/// "value"` and `--name value` if the name looks like a secret's, passwords in connection strings, URLs and SQL, and
/// `Authorization` headers. References such as `$PASSWORD` are no secrets. The rest is unchanged.
pub fn mask(text: &str) -> String {
    mask_by(text, find::in_words)
}

/// Masks secrets in SQL and in scripts of pgbench's language: `PASSWORD '…'`, connection strings in literals, secrets in
/// comments and in shell commands. Columns and variables may have any name.
pub fn mask_sql(text: &str) -> String {
    mask_by(text, find::in_sql)
}

/// The lines, from 1, in which [`mask_sql`] finds secrets.
pub fn lines_with_secrets(sql: &str) -> Vec<usize> {
    let line = |secret: &Range<usize>| 1 + sql[..secret.start].matches('\n').count();
    let mut lines: Vec<usize> = find::in_sql(sql).iter().map(line).collect();
    lines.dedup();
    lines
}

/// Masks a setting of a server as a campaign gives it. Settings of extensions are judged by their names.
pub fn mask_setting(name: &str, value: &str) -> String {
    let name = name.to_ascii_lowercase();
    let is_secret = SECRET_SETTINGS.contains(&name.as_str()) || (name.contains('.') && is_secret_name(&name));
    if is_secret && !value.is_empty() { MASK.to_owned() } else { mask(value) }
}

/// Masks a setting as a server reports it: whole commands, too, since the server may be anybody's.
pub fn mask_reported_setting(name: &str, value: &str) -> String {
    match value {
        // What the server shows for a command that is disabled.
        "" | "(disabled)" => value.to_owned(),
        _ if COMMAND_SETTINGS.contains(&name) => MASK.to_owned(),
        _ => mask_setting(name, value),
    }
}

/// Masks a kernel parameter, given as a path or by its sysctl(8) name, if the last part of the name is a secret's, as
/// `tcp_fastopen_key` is: `kernel.keys.*` are the key ring's quotas.
pub fn mask_kernel_parameter(name: &str, value: &str) -> String {
    let last = name.rsplit(['/', '.']).next().unwrap_or_default();
    if is_secret_name(last) && !value.is_empty() { MASK.to_owned() } else { value.to_owned() }
}

/// Masks the value of a script's variable: numbers are no secrets, whatever their name.
pub(crate) fn mask_variable(name: &str, value: &str) -> String {
    let is_secret = is_surely_secret_name(name)
        && !value.is_empty()
        && value.parse::<f64>().is_err()
        && value.parse::<Size>().is_err();
    if is_secret { MASK.to_owned() } else { mask(value) }
}

/// Masks what [`mask`] does, and every occurrence of known secrets, except very short ones.
pub fn mask_known(text: &str, known: &[String]) -> String {
    let mut found = find::in_words(text);
    for secret in known.iter().filter(|secret| secret.len() >= MIN_KNOWN_BYTES && *secret != MASK) {
        found.extend(text.match_indices(secret).map(|(at, _)| at..at + secret.len()));
    }
    replace(text, &find::merged(found))
}

/// The secrets in a text of words, as byte ranges in order: what [`mask`] replaces.
pub fn secrets(text: &str) -> Vec<Range<usize>> {
    find::in_words(text)
}

/// Masks what `find` finds until nothing is left, so that masking again changes nothing: without a secret, the rest of a
/// line may have another meaning.
fn mask_by(text: &str, find: fn(&str) -> Vec<Range<usize>>) -> String {
    const MAX_PASSES: usize = 8;
    let mut masked = text.to_owned();
    for _ in 0..MAX_PASSES {
        let found = find(&masked);
        if found.is_empty() {
            break;
        }
        masked = replace(&masked, &found);
    }
    masked
}

/// The text with the mask for each range.
fn replace(text: &str, ranges: &[Range<usize>]) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut from = 0;
    for range in ranges {
        masked.push_str(&text[from..range.start]);
        masked.push_str(MASK);
        from = range.end;
    }
    masked.push_str(&text[from..]);
    masked
}

#[cfg(test)]
mod tests;
