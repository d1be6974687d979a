//! Which sessions of a trace to play.

use std::str::FromStr;
use std::sync::Arc;

use crate::statement::Identity;

/// A choice of sessions by who they are: `user=alice,database=app,application=web`. What is not named may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Role.
    pub user: Option<String>,
    /// Database.
    pub database: Option<String>,
    /// `application_name`.
    pub application: Option<String>,
}

/// A choice of sessions that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected user=NAME, database=NAME or application=NAME, several separated by commas, but got `{0}`")]
pub struct FilterError(String);

impl FromStr for SessionFilter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let mut filter = Self::default();
        for term in text.split(',') {
            let refused = || FilterError(term.to_owned());
            let (key, name) = term.split_once('=').ok_or_else(refused)?;
            let place = match key.trim() {
                "user" => &mut filter.user,
                "database" => &mut filter.database,
                "application" => &mut filter.application,
                _ => return Err(refused()),
            };
            if place.replace(name.to_owned()).is_some() {
                return Err(refused());
            }
        }
        Ok(filter)
    }
}

impl SessionFilter {
    /// Whether it chooses a session.
    pub fn chooses(&self, identity: &Identity) -> bool {
        let fits = |wanted: &Option<String>, name: &Option<Arc<str>>| {
            wanted.as_deref().is_none_or(|wanted| wanted == name.as_deref().unwrap_or_default())
        };
        fits(&self.user, &identity.user)
            && fits(&self.database, &identity.database)
            && fits(&self.application, &identity.application)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_chosen_by_all_terms() {
        let identity = Identity { user: Some("me".into()), database: Some("app".into()), application: None };
        for (text, chooses) in [
            ("user=me", true),
            ("user=me,database=app", true),
            ("user=me,database=other", false),
            ("application=", true),
            ("application=psql", false),
        ] {
            assert_eq!(text.parse::<SessionFilter>().unwrap().chooses(&identity), chooses, "{text}");
        }
        assert!(SessionFilter::default().chooses(&identity));
        for text in ["", "me", "role=me", "user=a,user=b"] {
            assert!(text.parse::<SessionFilter>().is_err(), "{text}");
        }
    }
}
