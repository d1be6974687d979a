//! Information that a server reports at the start of a session.

/// An established session, as the server reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionInfo {
    /// Process id of the session's backend.
    pub process_id: i32,
    /// Secret that a cancel request repeats; 4 bytes in protocol 3.0.
    pub secret_key: Vec<u8>,
    /// Parameters that the server reports, such as `server_version`.
    pub parameters: Vec<(String, String)>,
}

impl SessionInfo {
    /// Returns the parameter of that name.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the server's version as it reports it, such as `18.1` or `13.23 (Debian 13.23-1)`.
    pub fn server_version(&self) -> Option<&str> {
        self.parameter("server_version")
    }

    pub(crate) fn set_parameter(&mut self, name: &str, value: &str) {
        match self.parameters.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => value.clone_into(known),
            None => self.parameters.push((name.to_owned(), value.to_owned())),
        }
    }
}
