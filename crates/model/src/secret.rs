//! Masks secrets in texts before they are stored.

/// Replacement for a secret.
pub const MASK: &str = "(masked)";

/// Words that mark a name as a secret's wherever they occur in it.
const SECRET_SUBSTRINGS: [&str; 7] =
    ["password", "passwd", "passphrase", "secret", "token", "credential", "apikey"];
/// Words that do so only as a separate part, as in `rd.luks.key`.
const SECRET_WORDS: [&str; 10] =
    ["auth", "cred", "creds", "key", "keys", "pass", "passcode", "psk", "pw", "pwd"];

/// Whether a name looks like a secret's: `sshkey.password`, `--auth-token`, `AWS_SECRET_ACCESS_KEY`.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_SUBSTRINGS.iter().any(|word| name.contains(word))
        || name.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| SECRET_WORDS.contains(&part))
}

/// Masks secrets in a text of words (a command line, a log, mount options): values of `name=value` and words after
/// `--name` if the name looks like a secret's, and passwords in URLs. The rest is unchanged.
pub fn mask(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        mask_line(line, &mut masked);
    }
    masked
}

fn mask_line(line: &str, masked: &mut String) {
    let mut value_follows = false;
    let mut rest = line;
    while !rest.is_empty() {
        let (space, from_word) = rest.split_at(rest.len() - rest.trim_start().len());
        let (word, after) = from_word.split_at(end_of_word(from_word));
        masked.push_str(space);
        let is_option = word.starts_with('-');
        if value_follows && !is_option && !word.is_empty() {
            masked.push_str(MASK);
        } else {
            mask_word(word, masked);
        }
        value_follows = is_option && !word.contains('=') && is_secret_name(word);
        rest = after;
    }
}

/// End of a word: a space outside quotes. A quote opens at the beginning of a word and after `=`, so that an apostrophe
/// does not count.
fn end_of_word(text: &str) -> usize {
    let mut open = None;
    let mut before = None;
    for (at, c) in text.char_indices() {
        match (open, c) {
            (Some(quote), c) if c == quote && before != Some('\\') => open = None,
            (None, '"' | '\'') if matches!(before, None | Some('=')) => open = Some(c),
            (None, c) if c.is_whitespace() => return at,
            _ => {}
        }
        before = Some(c);
    }
    text.len()
}

fn mask_word(word: &str, masked: &mut String) {
    let mut rest = word;
    while let Some(at) = rest.find('=') {
        let (before, value) = (&rest[..at], &rest[at + 1..]);
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let name = before.rsplit(|c| !is_of_name(c)).next().unwrap_or_default();
        mask_url(before, masked);
        masked.push('=');
        rest = value;
        if is_secret_name(name) {
            // A quoted value extends to the end of the word; others end at the next option.
            let is_quoted = value.starts_with(['"', '\'']) || word.starts_with(['"', '\'']);
            let end =
                if is_quoted { value.len() } else { value.find([',', ';', '&']).unwrap_or(value.len()) };
            if end > 0 {
                masked.push_str(MASK);
            }
            rest = &value[end..];
        }
    }
    mask_url(rest, masked);
}

/// `scheme://user:password@host` without the password.
fn mask_url(text: &str, masked: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (scheme, authority) = rest.split_at(at + 3);
        masked.push_str(scheme);
        rest = authority;
        // A password may contain a slash that should have been encoded: the last @ ends it.
        if let Some((login, _)) = authority.rsplit_once('@')
            && let Some((user, _)) = login.split_once(':')
        {
            masked.push_str(user);
            masked.push(':');
            masked.push_str(MASK);
            rest = &authority[login.len()..];
        }
    }
    masked.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_secrets_are_masked() {
        for (text, expected) in [
            ("quiet root=/dev/vda ro", "quiet root=/dev/vda ro"),
            ("a=1 luks.password=hunter2\n b", "a=1 luks.password=(masked)\n b"),
            ("x.api_key=\"two words\" y", "x.api_key=(masked) y"),
            ("\"password=two words\" y", "\"password=(masked) y"),
            (
                "init -- --auth-token abc --password=def --auth-required --port 1",
                "init -- --auth-token (masked) --password=(masked) --auth-required --port 1",
            ),
            ("rw,username=u,password=p,vers=3", "rw,username=u,password=(masked),vers=3"),
            ("url=http://u:p/w@host/x postgresql://u@h/d", "url=http://u:(masked)@host/x postgresql://u@h/d"),
            ("host=h password='p q' dbname=d", "host=h password=(masked) dbname=d"),
            (
                "AWS_SECRET_ACCESS_KEY=abc wal-g wal-push %p",
                "AWS_SECRET_ACCESS_KEY=(masked) wal-g wal-push %p",
            ),
            ("keyboard=us monkey=1 author=x", "keyboard=us monkey=1 author=x"),
            ("can't stop x=1 token=a don't", "can't stop x=1 token=(masked) don't"),
            ("token=", "token="),
            ("é=ü schlüssel.pw=ß", "é=ü schlüssel.pw=(masked)"),
        ] {
            assert_eq!(mask(text), expected);
        }
    }
}
