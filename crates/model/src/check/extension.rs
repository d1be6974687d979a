//! Checks of extensions: what can't be built for a server.

use super::CheckedCampaign;
use crate::cell::Cell;
use crate::factor::Factor;
use crate::server::{ServerSpec, Source};
use crate::value::SpecError;

impl CheckedCampaign<'_> {
    /// Rejects cells whose extension can't be built.
    pub(crate) fn check_extensions(&self, cells: &[Cell], servers: &[ServerSpec]) -> Result<(), SpecError> {
        for cell in cells {
            let Some(source) = cell.extension.source() else { continue };
            let server = servers.iter().find(|server| server.name == cell.server);
            let is_built =
                server.is_some_and(|server| matches!(server.source, Source::Build(_) | Source::Installed(_)));
            let (message, help) = if !is_built {
                (
                    format!(
                        "the extension {source} can't be built for the server \"{}\": only a server that pgdyno builds from \
                         source has the headers and makefiles (PGXS)",
                        cell.server
                    ),
                    "expected a server with `source`, or the name of an extension that the server has",
                )
            } else if cell.acceleration.is_virtual() {
                (
                    format!(
                        "the extension {source} can't be built for a server in a virtual machine: {cell}"
                    ),
                    "expected the host's kernel for these cells",
                )
            } else {
                continue;
            };
            let at = self.place(Factor::Extension, cell)?;
            return Err(SpecError { message, at, help: Some(help.to_owned()) });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::Plan;
    use crate::spec::Campaign;

    fn plan(server: &str, extension: &str) -> Result<Plan, String> {
        let text = format!(
            "name = 'n'\n[factors]\nserver = ['{server}']\nworkload = ['select-only']\nclients = [1]\n\
             extension = ['none', '{extension}']\n[servers.built]\nsource = './postgres'\n[servers.theirs]\n\
             dsn = 'host=db.example'\n"
        );
        Plan::new(&Campaign::parse(&text).unwrap(), 1).map_err(|error| error.to_string())
    }

    #[test]
    fn sources_need_a_server_that_is_built() {
        let extensions =
            |plan: Plan| plan.cells.iter().map(|cell| cell.extension.to_string()).collect::<Vec<_>>();
        assert_eq!(extensions(plan("built", "./my_ext").unwrap()), ["none", "./my_ext"]);
        assert_eq!(extensions(plan("18", "pg_trgm@1.6").unwrap()), ["none", "pg_trgm@1.6"]);
        assert_eq!(extensions(plan("theirs", "pg_trgm").unwrap()), ["none", "pg_trgm"]);
        for server in ["18", "theirs"] {
            let refused = plan(server, "./my_ext").unwrap_err();
            assert!(refused.contains("only a server that pgdyno builds"), "{refused}");
        }
        assert!(plan("18", "a b").unwrap_err().contains("is no extension"));
    }
}
