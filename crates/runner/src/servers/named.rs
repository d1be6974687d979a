//! Names of a campaign's servers in progress and errors: several may be of one version.

use model::version::VersionRequest;

/// A server as named to users: `PostgreSQL 18`, or by its name in the campaign if that is not a version.
pub(super) fn title(name: &str) -> String {
    if is_version(name) { format!("PostgreSQL {name}") } else { name.to_owned() }
}

/// Adds the server's name to an error, unless it is a version, which errors have.
pub(super) fn named(name: &str, error: server::Error) -> server::Error {
    if is_version(name) || error.is_interrupted() {
        error
    } else {
        server::Error::OfServer { server: name.to_owned(), error: Box::new(error) }
    }
}

/// Progress on one server: adds its name to steps and notices, unless it is a version, which they have.
pub(super) struct OfServer<'a> {
    pub(super) name: &'a str,
    pub(super) progress: &'a dyn host::Progress,
}

impl OfServer<'_> {
    fn text(&self, what: &str) -> String {
        if is_version(self.name) { what.to_owned() } else { format!("{}: {what}", self.name) }
    }
}

impl host::Progress for OfServer<'_> {
    fn step(&self, what: &str, done: u64, total: Option<u64>) {
        self.progress.step(&self.text(what), done, total);
    }

    fn interrupted(&self) -> bool {
        self.progress.interrupted()
    }

    fn notice(&self, text: &str) {
        self.progress.notice(&self.text(text));
    }
}

fn is_version(name: &str) -> bool {
    name.parse::<VersionRequest>().is_ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use host::Progress as _;

    use super::*;

    #[derive(Default)]
    struct Steps(Mutex<Vec<String>>);

    impl host::Progress for Steps {
        fn step(&self, what: &str, _: u64, _: Option<u64>) {
            self.0.lock().unwrap().push(what.to_owned());
        }
    }

    #[test]
    fn progress_and_errors_have_the_name_unless_it_is_a_version() {
        let steps = Steps::default();
        for name in ["18", "patched"] {
            OfServer { name, progress: &steps }.step("compiling PostgreSQL 18.6", 0, None);
        }
        let steps = steps.0.into_inner().unwrap();
        assert_eq!(steps, ["compiling PostgreSQL 18.6", "patched: compiling PostgreSQL 18.6"]);

        let error = |name| named(name, server::Error::NoPrograms).to_string();
        assert_eq!(error("18"), server::Error::NoPrograms.to_string());
        assert_eq!(error("patched"), format!("the server \"patched\": {}", server::Error::NoPrograms));
        let interrupted = || server::Error::from(host::Error::Interrupted);
        assert!(named("patched", interrupted()).is_interrupted());
        assert_eq!((title("18"), title("patched")), ("PostgreSQL 18".to_owned(), "patched".to_owned()));
    }
}
