//! What a server tells of a session when it begins.

/// A session that has begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// The process that serves it.
    pub process_id: i32,
    /// What a cancel request has to say; 4 bytes in protocol 3.0.
    pub secret_key: Vec<u8>,
    /// What the server reports of itself, such as `server_version`.
    pub parameters: Vec<(String, String)>,
}

impl Session {
    /// What the server reports under that name.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The server's version as one number, as `PQserverVersion` has it: 180001 for 18.1, 90624 for 9.6.24.
    pub fn server_version(&self) -> Option<u32> {
        let version = self.parameter("server_version")?;
        let numbers = version.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
        let mut parts = numbers.split('.').map(|part| part.parse::<u32>().ok());
        let major = parts.next()??;
        let minor = parts.next().flatten().unwrap_or(0);
        let patch = parts.next().flatten().unwrap_or(0);
        Some(if major >= 10 { major * 10_000 + minor } else { major * 10_000 + minor * 100 + patch })
    }

    pub(crate) fn set_parameter(&mut self, name: &str, value: &str) {
        match self.parameters.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => value.clone_into(known),
            None => self.parameters.push((name.to_owned(), value.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbered_as_libpq_does() {
        for (version, number) in [
            ("18.1", 180_001),
            ("13.23 (Debian 13.23-1)", 130_023),
            ("9.6.24", 90_624),
            ("19devel", 190_000),
            ("18beta2", 180_000),
        ] {
            let mut session = Session::default();
            session.set_parameter("server_version", version);
            assert_eq!(session.server_version(), Some(number), "{version}");
        }
        assert_eq!(Session::default().server_version(), None);
    }
}
