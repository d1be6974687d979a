//! The systemd unit that continues a campaign after each boot. Source: systemd.service(5), systemd.unit(5),
//! systemd.exec(5).

use std::collections::BTreeMap;
use std::path::Path;

use super::journal::Campaign;

/// Name of the unit.
pub(super) const NAME: &str = "pgdyno-campaign.service";

/// Text of the unit. `program` is pgdyno itself; `environment` has the variables that it needs.
pub(super) fn text(campaign: &Campaign, program: &Path, environment: &BTreeMap<String, String>) -> String {
    let store = campaign.store.to_string_lossy();
    let variables: String = environment
        .iter()
        .map(|(name, value)| format!("Environment={}\n", quoted(&format!("{name}={value}"))))
        .collect();
    format!(
        "[Unit]\n\
         Description=pgdyno continues the campaign {name} under another kernel\n\
         After=network.target local-fs.target systemd-pstore.service\n\
         RequiresMountsFor={mount}\n\
         \n\
         [Service]\n\
         Type=exec\n\
         {variables}\
         ExecStart={program} resume --run {run} --store {store} --kernels-by-reboot\n\
         StandardOutput=append:{log}\n\
         StandardError=inherit\n\
         SuccessExitStatus=4 5 130\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        name = one_line(&campaign.name).replace('%', "%%"),
        mount = quoted(&store),
        program = quoted(&program.to_string_lossy()),
        run = campaign.run,
        store = quoted(&store),
        log = campaign.log().to_string_lossy().replace('%', "%%"),
    )
}

/// A word, quoted for unit files.
fn quoted(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{}\"", one_line(&escaped))
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
